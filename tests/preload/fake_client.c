// SPDX-License-Identifier: MIT
/*
 * A client without a region, for tests of the preload library alone: it counts what the library
 * tells it, and its semop() does what the operation number asks for, so that a test program can
 * hold a section open, sleep, or copy from any address.
 */
#include "fake_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "client/calls.h"
#include "client/lost.h"
#include "client/reaper_start.h"
#include "client/session.h"
#include "client/thread.h"
#include "client/usercopy.h"
#include "client/vfork.h"
#include "client/view.h"

#define EXPORT __attribute__((visibility("default")))

__thread struct thread_block *thread_self;
void (*thread_flush_signals)(struct thread_block *tb);
int (*thread_cancellable)(struct thread_block *tb, struct sleep *s,
			  int (*wait)(struct thread_block *tb, struct sleep *s));
void (*thread_cancel_gate)(bool open);
void (*session_on_attach)(void);
__thread uint32_t vfork_depth;
__thread bool thread_is_async_cancel;

EXPORT struct fake_counts fake_counts;
EXPORT struct fake_counts *fake_shared = &fake_counts;

static bool attached;

bool session_attached(void)
{
	return attached;
}

struct thread_block *session_thread_slow(int *ret_error)
{
	struct thread_block *tb = thread_self;

	if (!tb) {
		tb = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (tb == MAP_FAILED) {
			*ret_error = -ENOMEM;
			return NULL;
		}
		madvise(tb, 4096, MADV_WIPEONFORK);
		thread_self = tb;
	}
	if (!attached) {
		attached = true;
		if (session_on_attach)
			session_on_attach();
	}
	tb->probe = 1;
	tb->ready = 1;
	fake_shared->registrations++;
	return tb;
}

void session_attach_early(void)
{
	fake_shared->attach_early++;
}

void session_creds_changed(void)
{
	fake_shared->creds_changed++;
}

void session_fork_prepare(void)
{
	fake_shared->fork_prepare++;
}

void session_fork_parent(void)
{
	fake_shared->fork_parent++;
}

void session_fork_child(void)
{
	fake_shared->fork_child++;
}

void session_exit(void)
{
	fake_shared->exits++;
	if (getenv("FAKE_TELL_EXIT"))
		(void)!write(1, "session_exit\n", 13);
}

void session_reap(pid_t pid)
{
	fake_shared->reaps++;
	fake_shared->reaped = pid;
}

bool session_sweep(enum sweep kind)
{
	(void)kind;
	fake_shared->sweeps++;
	return true;
}

void session_leave_undo(void)
{
	fake_shared->undo_left++;
}

const char *session_region_env(void)
{
	return attached ? "USYSV_REGION=default:/nowhere/region" : NULL;
}

bool session_has_attaches(void)
{
	return false;
}

/* Its region is never lost. */

uint32_t lost_word;

void reaper_start_beside(const char *file)
{
	(void)file; /* nobody is started */
}

bool lost_mend(uintptr_t address)
{
	(void)address;
	return false;
}

void vfork_ended(void)
{
}

/* A client without views: the kernel's files stay. */

const int view_count = 0;

const char *view_path(int view)
{
	(void)view;
	return "";
}

void view_stat(int view, mode_t *ret_mode, uid_t *ret_uid, gid_t *ret_gid)
{
	(void)view;
	*ret_mode = 0;
	*ret_uid = 0;
	*ret_gid = 0;
}

int view_access(int view, int mode)
{
	(void)view;
	(void)mode;
	return 0;
}

int view_text(int view, int (*put)(void *context, const char *text, size_t bytes), void *context)
{
	(void)view;
	(void)put;
	(void)context;
	return 0;
}

int view_write(int view, const char *text, size_t bytes)
{
	(void)view;
	(void)text;
	(void)bytes;
	return 0;
}

void thread_leave_sleep(struct thread_block *tb)
{
	struct sleep *s = tb->sleep;

	fake_shared->left_sleeps++;
	tb->sleep = NULL;
	s->settled = true;
	s->result = -EINTR;
}

long call_semget(key_t key, int nsems, int flags)
{
	int error;

	(void)key;
	(void)nsems;
	(void)flags;
	return session_thread(&error) ? 4711 : error;
}

static long hold(struct thread_block *tb)
{
	section_enter(tb);
	if (fake_shared->in_section)
		fake_shared->in_section();
	section_leave(tb);
	return 0;
}

static long sleep_once(struct thread_block *tb)
{
	struct sleep s = {0};
	struct timespec far = {3600, 0};

	section_enter(tb);
	tb->sleep = &s;
	section_leave(tb);
	store_release(&fake_shared->sleeping, 1);
	while (!s.settled)
		sys_call(SYS_nanosleep, (long)&far, 0, 0, 0, 0, 0);
	return s.result;
}

long call_semop(int id, struct sembuf *sops, size_t nsops, const struct timespec *timeout)
{
	int error;
	struct thread_block *tb = session_thread(&error);

	(void)timeout;
	if (!tb)
		return error;
	switch (id) {
	case FAKE_HOLD:
		return hold(tb);
	case FAKE_SLEEP:
		return sleep_once(tb);
	case FAKE_COPY_IN:
		return usercopy_in(fake_shared->buffer, sops, nsops, tb->probe);
	case FAKE_COPY_OUT:
		return usercopy_out(sops, fake_shared->buffer, nsops, tb->probe);
	case FAKE_COPY_IN_SECTION:
		section_enter(tb);
		if (fake_shared->in_section)
			fake_shared->in_section();
		error = usercopy_in(fake_shared->buffer, sops, nsops, tb->probe);
		section_leave(tb);
		return error;
	case FAKE_PROBE:
		return tb->probe;
	default:
		return -EINVAL;
	}
}

long call_semctl(int id, int semnum, int cmd, unsigned long arg)
{
	(void)id;
	(void)semnum;
	(void)cmd;
	return (long)arg;
}

/* Of the other families only that they arrive here matters. */

long call_msgget(key_t key, int flags)
{
	(void)key;
	(void)flags;
	return 4712;
}

long call_msgsnd(int id, const void *message, size_t bytes, int flags, bool cancellable)
{
	(void)id;
	(void)message;
	(void)flags;
	(void)cancellable;
	return (long)bytes;
}

long call_msgrcv(int id, void *message, size_t bytes, long type, int flags, bool cancellable)
{
	(void)id;
	(void)message;
	(void)type;
	(void)flags;
	(void)cancellable;
	return (long)bytes;
}

long call_msgctl(int id, int cmd, void *buffer)
{
	(void)id;
	(void)cmd;
	(void)buffer;
	return 0;
}

long call_shmget(key_t key, size_t bytes, int flags)
{
	(void)key;
	(void)bytes;
	(void)flags;
	return 4713;
}

long call_shmat(int id, const void *address, int flags)
{
	(void)id;
	(void)flags;
	return (long)address;
}

long call_shmdt(const void *address)
{
	(void)address;
	return 0;
}

long call_shmctl(int id, int cmd, void *buffer)
{
	(void)id;
	(void)cmd;
	(void)buffer;
	return 0;
}
