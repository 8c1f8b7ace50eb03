// SPDX-License-Identifier: MIT
/*
 * The calls of the semaphore family as programs make them: arguments in, the engine until it has
 * an answer, waiting in between, results out. See the header for the contract.
 */
#include "client/calls.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include "client/call.h"
#include "client/retire.h"
#include "client/session.h"
#include "client/wait.h"
#include "core/ids.h"
#include "core/region.h"
#include "ipc/sem.h"

#ifndef SEM_STAT_ANY
#define SEM_STAT_ANY 20
#endif

_Static_assert(sizeof(struct sembuf) == sizeof(struct semop_shm), "sembuf is copied as it is");

#define OPS_ON_STACK 64
/* Constants of Linux that IPC_INFO shows whatever the limits are. */
#define INFO_SEMMNS 1024000000
#define INFO_SEMUME 500
#define INFO_SEMUSZ 20
#define INFO_SEMVMX 32767

/* ---- Undo of the dead ------------------------------------------------------------------- */

/* Buries those whose SEM_UNDO this set awaits; true when there was one. */
static bool bury_holders(struct thread_block *tb, int id)
{
	int32_t last = -1;

	for (int n = 0; n < 64; n++) {
		int32_t holder = sem_dead_holder(&tb->caller, id);

		if (holder < 0 || holder == last) /* the second: it cannot be done now */
			break;
		session_bury(tb, (uint32_t)holder);
		last = holder;
	}
	return last >= 0;
}

int call_sem_stat(struct thread_block *tb, int32_t id, bool by_index, bool any,
		  struct sem_status *ret)
{
	int rc;

	for (bool looked = false;; looked = true) {
		do {
			call_enter(tb);
			rc = sem_stat(&tb->caller, id, by_index, any, ret);
		} while (call_again(tb, rc));
		if (rc < 0 || looked || !bury_holders(tb, ret->id))
			return rc;
	}
}

/* ---- semget ------------------------------------------------------------------------------ */

long call_semget(key_t key, int nsems, int flags)
{
	int32_t id = -1;
	int error = 0, rc;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (retire_is_final(tb->caller.base))
		return -EIDRM;
	do {
		call_enter(tb);
		rc = sem_get(&tb->caller, key, nsems, (uint32_t)flags, time(NULL), &id);
	} while (call_again(tb, rc));
	return rc < 0 ? rc : id;
}

/* ---- semop ------------------------------------------------------------------------------- */

struct timed_sleep {
	struct sleep sleep; /* first: found by it */
	const struct timespec *deadline;
};

static int wait_for_end(struct thread_block *tb, struct sleep *s)
{
	const struct timed_sleep *timed = (const void *)s;

	return wait_asleep(tb, s, sem_wait_word(&tb->caller), timed->deadline);
}

/* The request is queued and tb->sleep says so. Outside a section. */
static int sleep_until_ended(struct thread_block *tb, struct timed_sleep *s, int id)
{
	int rc;

	bury_holders(tb, id);
	rc = s->sleep.cancellable ? thread_cancellable(tb, &s->sleep, wait_for_end)
				  : wait_for_end(tb, &s->sleep);
	return call_take_back(tb, &s->sleep, rc == -ETIMEDOUT ? -EAGAIN : -EINTR);
}

static int run_semop(struct thread_block *tb, struct sem_request *rq,
		     const struct timespec *deadline)
{
	struct caller *c = &tb->caller;
	bool spun = false, looked = false;
	uint32_t slot = (uint32_t)rq->id % (sizeof(tb->undo) / sizeof(tb->undo[0]));
	int rc;

	for (;;) {
		struct timed_sleep s = {.sleep.cancellable =
						thread_is_async_cancel && thread_cancellable,
					.deadline = deadline};

		call_enter(tb);
		rq->now = time(NULL);
		rq->may_queue = spun;
		rq->undo_hint = tb->undo[slot].id == rq->id ? tb->undo[slot].ref : 0;
		rc = sem_op(c, rq);
		if (rq->undo_hint) {
			tb->undo[slot].id = rq->id;
			tb->undo[slot].ref = rq->undo_hint;
		}
		if (rc == OUTCOME_SLEEP) {
			call_sleeps(tb, &s.sleep);
			return sleep_until_ended(tb, &s, rq->id);
		}
		if (rc == OUTCOME_BUSY) {
			if (!wait_busy(tb))
				spun = true;
			continue;
		}
		if (rc == -EAGAIN && !looked) {
			looked = true;
			section_leave(tb);
			if (bury_holders(tb, rq->id))
				continue;
			section_enter(tb);
		}
		break;
	}
	(void)call_again(tb, rc);
	return rc;
}

/* The operations are in ops, which is this call's own: starting over needs no second copy. */
static int checked_semop(struct thread_block *tb, int id, const struct semop_shm *ops, size_t nsops,
			 const struct timespec *relative)
{
	struct sem_request rq = {.id = id, .ops = ops, .nsops = (uint32_t)nsops};
	struct timespec deadline;

	if (nsops == 0 || id < 0)
		return -EINVAL;
	if (!relative)
		return run_semop(tb, &rq, NULL);
	if (relative->tv_sec < 0 || relative->tv_nsec < 0 || relative->tv_nsec > 999999999)
		return -EINVAL;
	deadline = wait_deadline(relative->tv_sec > INT64_MAX / 1000000000 - 1
					 ? INT64_MAX
					 : relative->tv_sec * 1000000000ll + relative->tv_nsec);
	return run_semop(tb, &rq, &deadline);
}

/* More operations than a frame should hold, which may lie on a signal stack. */
static int large_semop(struct thread_block *tb, int id, const struct sembuf *user, size_t nsops,
		       const struct timespec *relative)
{
	size_t bytes = nsops * sizeof(struct semop_shm);
	long p = sys_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (p < 0 && p > -4096)
		return -ENOMEM;
	rc = call_copy_in(tb, (void *)p, user, bytes);
	if (rc == 0)
		rc = checked_semop(tb, id, (const struct semop_shm *)p, nsops, relative);
	sys_call(SYS_munmap, p, (long)bytes, 0, 0, 0, 0);
	return rc;
}

long call_semop(int id, struct sembuf *sops, size_t nsops, const struct timespec *timeout)
{
	struct semop_shm ops[OPS_ON_STACK];
	struct timespec relative;
	int error = 0, rc = 0;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (timeout) {
		rc = call_copy_in(tb, &relative, timeout, sizeof(relative));
		if (rc < 0)
			return rc;
		timeout = &relative;
	}
	nsops = (unsigned)nsops; /* as the kernel's argument is */
	if (nsops > region_header(tb->caller.base)->limits.semopm || nsops > UINT16_MAX)
		return -E2BIG;
	if (nsops > OPS_ON_STACK)
		return large_semop(tb, id, sops, nsops, timeout);
	rc = nsops ? call_copy_in(tb, ops, sops, nsops * sizeof(*ops)) : 0;
	return rc < 0 ? rc : checked_semop(tb, id, ops, nsops, timeout);
}

/* ---- semctl ------------------------------------------------------------------------------ */

static int info(struct thread_block *tb, int cmd, void *user)
{
	const unsigned char *base = tb->caller.base;
	const struct header_shm *h = region_header(base);
	struct seminfo s = {
		.semmap = INFO_SEMMNS,
		.semmni = (int)h->limits.semmni,
		.semmns = (int)h->limits.semmns,
		.semmnu = INFO_SEMMNS,
		.semmsl = (int)h->limits.semmsl,
		.semopm = (int)h->limits.semopm,
		.semume = INFO_SEMUME,
		.semusz = INFO_SEMUSZ,
		.semvmx = INFO_SEMVMX,
		.semaem = INFO_SEMVMX,
	};
	int highest = ids_highest(base, FAMILY_SEM), rc;

	if (cmd == SEM_INFO) {
		s.semusz = (int)h->table[FAMILY_SEM].in_use;
		s.semaem = (int)h->table[FAMILY_SEM].total;
	}
	rc = call_copy_out(tb, user, &s, sizeof(s));
	return rc < 0 ? rc : highest < 0 ? 0 : highest;
}

static int stat_set(struct thread_block *tb, int id, int cmd, void *user)
{
	struct semid_ds ds;
	struct sem_status st;
	int rc = call_sem_stat(tb, id, cmd != IPC_STAT, cmd == SEM_STAT_ANY, &st);

	if (rc < 0)
		return rc;
	memset(&ds, 0, sizeof(ds));
	call_fill_perm(&ds.sem_perm, &st.object, st.id);
	ds.sem_otime = st.otime;
	ds.sem_ctime = st.object.ctime;
	ds.sem_nsems = st.nsems;
	rc = call_copy_out(tb, user, &ds, sizeof(ds));
	return rc < 0 ? rc : cmd == IPC_STAT ? 0 : st.id;
}

static int set_owner(struct thread_block *tb, int id, const void *user)
{
	struct semid_ds ds;
	int rc = call_copy_in(tb, &ds, user, sizeof(ds));

	if (rc < 0)
		return rc;
	do {
		call_enter(tb);
		rc = sem_set_owner(&tb->caller, id, ds.sem_perm.uid, ds.sem_perm.gid,
				   ds.sem_perm.mode, time(NULL));
	} while (call_again(tb, rc));
	return rc;
}

static int remove_set(struct thread_block *tb, int id)
{
	int rc;

	do {
		call_enter(tb);
		rc = sem_remove(&tb->caller, id);
		if (rc == OUTCOME_DONE)
			call_settle(tb); /* gives the memory back */
	} while (call_again(tb, rc));
	return rc;
}

static int get_one(struct thread_block *tb, int id, int semnum, enum sem_get_what what)
{
	int32_t value = 0;
	int rc;

	bury_holders(tb, id);
	do {
		call_enter(tb);
		rc = sem_get_one(&tb->caller, id, semnum, what, &value);
	} while (call_again(tb, rc));
	return rc < 0 ? rc : value;
}

static int set_one(struct thread_block *tb, int id, int semnum, int value)
{
	int rc;

	do {
		call_enter(tb);
		rc = sem_set_one(&tb->caller, id, semnum, value, time(NULL));
	} while (call_again(tb, rc));
	return rc;
}

static int get_all(struct thread_block *tb, int id, uint16_t *user)
{
	int rc;

	bury_holders(tb, id);
	do {
		call_enter(tb);
		rc = sem_get_all(&tb->caller, id, user);
	} while (call_again(tb, rc));
	return rc;
}

static int set_all(struct thread_block *tb, int id, const uint16_t *user)
{
	int rc;

	do {
		call_enter(tb);
		rc = sem_set_all(&tb->caller, id, user, time(NULL));
	} while (call_again(tb, rc));
	return rc;
}

long call_semctl(int id, int semnum, int cmd, unsigned long arg)
{
	int error = 0;
	struct thread_block *tb = session_thread(&error);
	void *user = (void *)arg;

	if (!tb)
		return error;
	if (id < 0)
		return -EINVAL;
	switch (cmd) {
	case IPC_INFO:
	case SEM_INFO:
		return info(tb, cmd, user);
	case IPC_STAT:
	case SEM_STAT:
	case SEM_STAT_ANY:
		return stat_set(tb, id, cmd, user);
	case IPC_SET:
		return set_owner(tb, id, user);
	case IPC_RMID:
		return remove_set(tb, id);
	case GETVAL:
		return get_one(tb, id, semnum, SEM_GET_VALUE);
	case GETPID:
		return get_one(tb, id, semnum, SEM_GET_PID);
	case GETNCNT:
		return get_one(tb, id, semnum, SEM_GET_NCNT);
	case GETZCNT:
		return get_one(tb, id, semnum, SEM_GET_ZCNT);
	case SETVAL:
		return set_one(tb, id, semnum, (int)arg);
	case GETALL:
		return get_all(tb, id, user);
	case SETALL:
		return set_all(tb, id, user);
	default:
		return -EINVAL;
	}
}
