// SPDX-License-Identifier: MIT
/*
 * A thread whose own slot is damaged: it says that the thread holds what it does not hold, or that
 * a sleep has ended which nobody has ended. Calls may fail, but not for ever with EINTR, upon which
 * programs call again; and what has ended so has failed.
 * The reaper goes on to bury.
 *
 *	usysv run -- own-slot
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <unistd.h>

#include "base/futex.h"
#include "core/region.h"
#include "fuzz/inside.h"

#define LIMIT_S 60
#define ROUNDS  3

static int set, queue;

_Noreturn static void wrong(const char *what)
{
	fprintf(stderr, "own-slot: %s (errno %d)\n", what, errno);
	exit(1);
}

static int plain(void)
{
	struct sembuf up = {0, 1, 0};

	return semop(set, &up, 1);
}

static int undone(void)
{
	struct sembuf both[2] = {{0, 1, SEM_UNDO}, {1, 1, SEM_UNDO}};

	return semop(set, both, 2);
}

static int look(void)
{
	return semctl(set, 0, GETVAL) < 0 ? -1 : 0;
}

static int send(void)
{
	struct {
		long type;
		char text[8];
	} m = {1, "text"};

	return msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT) < 0 ||
			       msgrcv(queue, &m, sizeof(m.text), 0, IPC_NOWAIT) < 0
		       ? -1
		       : 0;
}

static int make(void)
{
	int id = semget(IPC_PRIVATE, 1, 0600);

	return id < 0 || semctl(id, 0, IPC_RMID) < 0 ? -1 : 0;
}

static void after_damage(uint32_t *word, uint32_t value, const char *name)
{
	static int (*const calls[])(void) = {plain, undone, look, send, make};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int rc = -1;

		__atomic_store_n(word, value, __ATOMIC_RELEASE);
		/* One may fail, and sets it right. */
		for (int n = 0; n < ROUNDS && rc < 0; n++) {
			rc = calls[i]();
			if (rc < 0 && errno != ENOTRECOVERABLE && errno != EINTR)
				wrong(name);
		}
		if (rc < 0)
			wrong(name);
	}
}

/* A semaphore says that the thread holds it. */
static void word_is_ours(unsigned char *region, uint32_t thread_ix)
{
	const struct set_shm *s = region_set(region, (uint32_t)set % OBJECT_CAPACITY);
	uint64_t *word = region_block(region, s->words_ref, sizeof(*word));
	int rc = -1;

	if (!word)
		wrong("no words");
	__atomic_store_n(word, (*word & ~SEM_TAG) | thread_ix | SEM_HELD, __ATOMIC_RELEASE);
	for (int n = 0; n < ROUNDS && rc < 0; n++)
		rc = plain();
	if (rc < 0)
		wrong("word");
}

/* ---- A sleep ------------------------------------------------------------------------------- */

struct sleeper {
	int (*call)(void);
	uint32_t tid;
	int result, error;
};

static int sleep_for_semaphore(void)
{
	struct sembuf down = {2, -1, 0};

	return semop(set, &down, 1);
}

static int sleep_for_message(void)
{
	struct {
		long type;
		char text[8];
	} m;

	return (int)msgrcv(queue, &m, sizeof(m.text), 0, 0);
}

static void *run_sleeper(void *context)
{
	struct sleeper *s = context;

	(void)look(); /* so that it has a slot */
	__atomic_store_n(&s->tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	s->result = s->call();
	s->error = errno;
	return NULL;
}

static struct thread_shm *slot_of(const unsigned char *region, uint32_t tid)
{
	for (uint32_t ix = 0; ix < region_group_count(region) * GROUP_SPAN; ix++) {
		struct thread_shm *t = region_thread(region, ix);

		if (t && (CLAIM_GEN(load_acquire(&t->claim)) & 1) && t->tid == tid)
			return t;
	}
	wrong("the sleeper has no slot");
}

static void end_falsely(const unsigned char *region, int (*call)(void), const char *name)
{
	struct sleeper s = {.call = call};
	struct thread_shm *t;
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_sleeper, &s) != 0)
		wrong("pthread_create");
	while (!__atomic_load_n(&s.tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	t = slot_of(region, s.tid);
	while (WAIT_STATE(load_acquire(&t->st)) != WAIT_ASLEEP)
		usleep(1000);
	t->result = 0;
	store_release(&t->st, 0); /* as zeros in place of a page are */
	(void)futex_wake(&t->st, 1);
	if (pthread_join(thread, NULL) != 0 || s.result != -1 || s.error != ENOTRECOVERABLE)
		wrong(name);
}

/* ---- The reaper's -------------------------------------------------------------------------- */

static void end_unseen(unsigned char *region)
{
	const struct header_shm *h = region_header(region);
	const struct proc_shm *p;
	uint32_t link;
	char byte = 0;
	int ready[2];
	pid_t pid;

	while ((link = load_acquire(&h->reaper_link)) == 0)
		usleep(1000);
	if (pipe(ready) < 0)
		wrong("pipe");
	pid = fork();
	if (pid == 0) {
		byte = undone() == 0 ? 'y' : 'n';
		(void)!write(ready[1], &byte, 1);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1 || byte != 'y')
		wrong("no process that owes anything");
	p = region_known_proc(region, inside_slot_of(region, pid));
	region_known_thread(region, link - 1)->held = 8;
	/* Neither waited for nor looked at by anybody else. */
	kill(pid, SIGKILL);
	while (load_acquire(&p->state) == PROC_LIVE)
		usleep(1000);
}

int main(void)
{
	unsigned char *region;
	struct thread_shm *self;

	alarm(LIMIT_S);
	set = semget(IPC_PRIVATE, 3, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	if (set < 0 || queue < 0)
		wrong("no objects");
	region = inside_map_region();
	self = region_known_thread(region, inside_thread_of(region, getpid()));
	after_damage(&self->held, UINT32_MAX, "held");
	after_damage(&self->held, 8, "held, small");
	after_damage(&self->hold, UINT32_MAX, "hold");
	after_damage(&self->hold, 1, "hold, one");
	word_is_ours(region, inside_thread_of(region, getpid()));
	end_falsely(region, sleep_for_semaphore, "a semop that nobody has performed");
	end_falsely(region, sleep_for_message, "a msgrcv that nobody has served");
	end_unseen(region);
	return 0;
}
