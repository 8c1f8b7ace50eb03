// SPDX-License-Identifier: MIT
/*
 * A process dies that owes something to a set whose lock is in the hands of a process that is
 * stopped. Its parent's wait returns all the same (for the parent may be who continues the stopped
 * one), what others owe to other sets is given back, and what the dead one owes as soon as
 * the lock is free. A lock that the stopped one does not know of, by damage, is set free meanwhile.
 *
 * As in stopped.c the lock is put into the stopped process's hands from here.
 *
 *	usysv run -- stopped-bury
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/ids.h"
#include "core/region.h"
#include "fuzz/inside.h"

#define LIMIT_S 20
#define NOBODY  100000 /* no thread */

static pid_t stopped, owner[2];

static void clear_up(void)
{
	pid_t all[] = {stopped, owner[0], owner[1]};

	for (int i = 0; i < 3; i++)
		if (all[i] > 0)
			kill(all[i], SIGKILL);
}

_Noreturn static void wrong(const char *what)
{
	fprintf(stderr, "stopped-bury: %s (errno %d)\n", what, errno);
	exit(1);
}

/* A call does not return. */
_Noreturn static void on_alarm(int sig)
{
	static const char text[] = "stopped-bury: a call waits for who is stopped\n";

	(void)sig;
	(void)!write(2, text, sizeof(text) - 1);
	clear_up();
	_exit(1);
}

/* A process that owes the set one down, and so a second one (-1: none), which it has used last. */
static pid_t start_owner(int set, int second)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	char byte = 0;
	int ready[2];
	pid_t pid;

	if (pipe(ready) < 0)
		wrong("pipe");
	pid = fork();
	if (pid == 0) {
		byte = semop(set, &up, 1) == 0 && (second < 0 || semop(second, &up, 1) == 0) ? 'y'
											     : 'n';
		(void)!write(ready[1], &byte, 1);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1 || byte != 'y')
		wrong("an owner does not begin");
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static uint32_t *lock_of(unsigned char *region, int set)
{
	uint32_t ix = (uint32_t)set % OBJECT_CAPACITY;

	return (uint32_t *)(void *)(region + ids_object_lock(FAMILY_SEM, ix));
}

static void put_into_hands(uint32_t *lock, uint32_t holder)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(lock, &none, holder + 1, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		wrong("the lock is not free");
}

static void end_owner(int i)
{
	kill(owner[i], SIGKILL);
	if (waitpid(owner[i], NULL, 0) != owner[i])
		wrong("waitpid");
	owner[i] = 0;
}

/* Nobody makes a call that waits for the lock: burial alone meets it. */
static void bury_at_damaged_lock(unsigned char *region)
{
	int set = semget(IPC_PRIVATE, 1, 0600);

	if (set < 0)
		wrong("semget");
	kill(stopped, SIGKILL);
	stopped = inside_start_stopped();
	owner[0] = start_owner(set, -1);
	put_into_hands(lock_of(region, set), inside_thread_of(region, stopped));
	end_owner(0);
	while (semctl(set, 0, GETVAL) != 0)
		usleep(1000);
}

/* What the dead process did last was to a set that is beyond repair: the rest is given back. */
static void bury_at_lost_set(unsigned char *region, bool by_lock)
{
	const struct proc_shm *p;
	struct set_shm *s;
	uint64_t *word;
	int set[2];

	for (int i = 0; i < 2; i++) {
		set[i] = semget(IPC_PRIVATE, 1, 0600);
		if (set[i] < 0)
			wrong("semget");
	}
	owner[0] = start_owner(set[0], set[1]);
	p = region_known_proc(region, inside_slot_of(region, owner[0]));
	s = region_set(region, (uint32_t)set[1] % OBJECT_CAPACITY);
	word = region_block(region, s->words_ref, sizeof(*word));
	if (by_lock)
		put_into_hands(lock_of(region, set[1]), NOBODY);
	else
		__atomic_store_n(word, (*word & ~SEM_TAG) | SEM_HELD | NOBODY, __ATOMIC_SEQ_CST);
	end_owner(0);
	while (semctl(set[0], 0, GETVAL) != 0 || load_acquire(&p->state) == PROC_LIVE)
		usleep(1000);
}

int main(void)
{
	struct sembuf wait_for_zero = {0, 0, 0};
	unsigned char *region;
	uint32_t holder;
	uint32_t *lock;
	int set[2];

	atexit(clear_up);
	signal(SIGALRM, on_alarm);
	for (int i = 0; i < 2; i++) {
		set[i] = semget(IPC_PRIVATE, 1, 0600);
		if (set[i] < 0)
			wrong("semget");
		owner[i] = start_owner(set[i], -1);
	}
	stopped = inside_start_stopped();
	region = inside_map_region();
	holder = inside_thread_of(region, stopped);
	lock = lock_of(region, set[0]);
	region_known_thread(region, holder)->held = (uint32_t)((unsigned char *)lock - region);
	put_into_hands(lock, holder);

	alarm(LIMIT_S);
	for (int i = 0; i < 2; i++)
		end_owner(i);
	if (semop(set[1], &wait_for_zero, 1) < 0)
		wrong("the other set");
	if (semctl(set[0], 0, GETVAL) != 1)
		wrong("the set of the stopped process has been changed");

	/* As if it had been continued. */
	if (__atomic_exchange_n(lock, 0, __ATOMIC_SEQ_CST) & RLOCK_W)
		kill(stopped, SIGKILL); /* who sleeps on the lock hears of that */
	region_known_thread(region, holder)->held = 0;
	if (semop(set[0], &wait_for_zero, 1) < 0)
		wrong("the set");
	bury_at_damaged_lock(region);
	bury_at_lost_set(region, true);
	bury_at_lost_set(region, false);
	return 0;
}
