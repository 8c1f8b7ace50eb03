// SPDX-License-Identifier: MIT
/*
 * The claim on a dead thread's slot, or on a dead process's, damaged to name a thread that lives
 * and knows nothing of it: the next one who needs it takes it over. A claim that a stopped process
 * has truly made stands as long as it is stopped.
 *
 * Run by claimed.sh, in a namespace: claimed lock|undo|stopped.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/ids.h"
#include "core/region.h"
#include "fuzz/inside.h"

#define LIMIT_MS 20000
#define SLEEPS   8 /* of a waiter, that is long enough to have doubted the claim */

static unsigned char *region;
static pid_t children[3];

static void clear_up(void)
{
	for (int i = 0; i < 3; i++)
		if (children[i] > 0 && kill(children[i], SIGKILL) == 0)
			(void)waitpid(children[i], NULL, 0); /* none may be left */
}

_Noreturn static void wrong(const char *what)
{
	fprintf(stderr, "claimed: %s\n", what);
	exit(1);
}

static struct thread_shm *thread_of(pid_t pid, uint32_t *ret_ix)
{
	*ret_ix = inside_thread_of(region, pid);
	return region_known_thread(region, *ret_ix);
}

/* It makes a call, so that it has a slot, and is stopped then. */
static pid_t start_stopped(int set)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)semop(set, &up, 1);
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		wrong("nobody is stopped");
	return pid;
}

/* The claim on this slot names the thread of the process. */
static void claim_for(uint64_t *claim, pid_t claimer)
{
	uint32_t ix;
	const struct thread_shm *t = thread_of(claimer, &ix);

	*claim = CLAIM_WORD(CLAIM_GEN(*claim), CLAIM_GEN(t->claim) & 0xfffff, ix + 1);
}

/* The process dies with the lock of the queue. */
static void die_with_lock(pid_t victim, int queue)
{
	uint32_t ix = (uint32_t)queue % OBJECT_CAPACITY, owner, expected = 0;
	struct object_shm *o = region_object(region, FAMILY_MSG, ix);

	thread_of(victim, &owner)->held = (uint32_t)ids_object_lock(FAMILY_MSG, ix);
	if (!__atomic_compare_exchange_n(&o->lock, &expected, owner + 1, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_SEQ_CST))
		wrong("the lock is not free");
	kill(victim, SIGKILL);
}

static void send_one(int queue)
{
	struct {
		long type;
		char text[4];
	} m = {1, "abc"};

	if (msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT) < 0)
		wrong("msgsnd");
}

static long sleeps_of(pid_t pid)
{
	char path[64], line[256];
	long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
			n = strtol(line + 24, NULL, 10);
	if (f)
		fclose(f);
	return n;
}

static void truly_claimed(pid_t victim, pid_t claimer, int queue)
{
	uint32_t ix, victim_ix;
	struct thread_shm *t = thread_of(claimer, &ix);
	pid_t sender;
	int status;
	long before;

	(void)thread_of(victim, &victim_ix);
	t->repairs_link = victim_ix + 1;
	die_with_lock(victim, queue);
	sender = children[2] = fork();
	if (sender == 0) {
		send_one(queue);
		_exit(0);
	}
	before = sleeps_of(sender);
	for (int ms = 0; sleeps_of(sender) < before + SLEEPS; ms++) {
		if (waitpid(sender, &status, WNOHANG) == sender)
			wrong("it did not wait for a process that is stopped");
		if (ms == LIMIT_MS)
			wrong("the sender does not sleep");
		usleep(1000);
	}
	/* The stopped one gives the claim up. */
	__atomic_store_n(&region_known_thread(region, victim_ix)->claim,
			 CLAIM_WORD(CLAIM_GEN(region_known_thread(region, victim_ix)->claim), 0, 0),
			 __ATOMIC_SEQ_CST);
	t->repairs_link = 0;
	if (waitpid(sender, &status, 0) != sender || status != 0)
		wrong("the sender's end");
	children[2] = 0;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int set = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
	pid_t victim, claimer;
	uint32_t ix;

	if (set < 0 || queue < 0)
		wrong("no objects");
	region = inside_map_region();
	atexit(clear_up);
	victim = children[0] = start_stopped(set);
	claimer = children[1] = start_stopped(set);
	if (strcmp(what, "undo") == 0) {
		claim_for(&region_known_proc(region, inside_slot_of(region, victim))->claim,
			  claimer);
		kill(victim, SIGKILL);
	} else {
		claim_for(&thread_of(victim, &ix)->claim, claimer);
		if (strcmp(what, "stopped") == 0)
			truly_claimed(victim, claimer, queue);
		else
			die_with_lock(victim, queue);
	}
	if (strcmp(what, "lock") == 0)
		send_one(queue);
	if (waitpid(victim, NULL, 0) != victim)
		wrong("waitpid");
	children[0] = 0;
	if (semctl(set, 0, GETVAL) != 1) /* the claimer's */
		wrong("the dead one's SEM_UNDO has not been applied");
	return 0;
}
