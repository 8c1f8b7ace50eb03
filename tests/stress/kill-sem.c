// SPDX-License-Identifier: MIT
/*
 * Real processes, killed. Workers use semaphore sets as they are, by the C library's calls; their
 * parent kills one of them every few milliseconds, at whatever instruction, and starts another in
 * its place. What they take they take with SEM_UNDO, in one call or several, so that at the end
 * every value is what it was at first; nobody sleeps who could go on; bystanders, who are never
 * killed, have got on all the time.
 *
 *   kill-sem [SECONDS [SEED]]
 *
 * The same program holds on the kernel's semaphores.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS    6
#define BYSTANDERS 2
#define SETS       2
#define SEMS       7 /* 0 a lock, 1..5 counters, 6 goes up and down by itself */
#define TOKENS     2
#define LIMIT_S    60

static int set_id[SETS];
static int sets; /* made so far */
static pid_t owner;
static struct shared {
	uint32_t stop;
	uint64_t rounds[WORKERS + BYSTANDERS];
	uint64_t inside[SETS]; /* who has the lock; 0 nobody, or a dead one */
} * shared;

_Noreturn static void fail(const char *what, long value)
{
	fprintf(stderr, "kill-sem: %s: %ld (%s)\n", what, value, value < 0 ? "" : "see errno(3)");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t rnd(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

static bool over(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

static void op(int id, struct sembuf *s, size_t n)
{
	if (semop(id, s, n) < 0)
		fail("semop", errno);
}

/* Alone inside; a dead one's mark may be there, for its lock was given back by SEM_UNDO. */
static void lock_and_look(int i)
{
	struct sembuf down = {0, -1, SEM_UNDO}, up = {0, 1, SEM_UNDO};
	uint64_t me = (uint64_t)getpid();

	op(set_id[i], &down, 1);
	__atomic_store_n(&shared->inside[i], me, __ATOMIC_SEQ_CST);
	for (int k = 0; k < 20; k++)
		if (__atomic_load_n(&shared->inside[i], __ATOMIC_SEQ_CST) != me)
			fail("two have the lock", (long)i);
	__atomic_store_n(&shared->inside[i], 0, __ATOMIC_SEQ_CST);
	op(set_id[i], &up, 1);
}

_Noreturn static void work(int index, uint32_t seed)
{
	while (!over()) {
		int i = (int)rnd(&seed, SETS);
		struct sembuf take[SEMS], give[SEMS];
		size_t n = 0;

		__atomic_fetch_add(&shared->rounds[index], 1, __ATOMIC_RELAXED);
		if (rnd(&seed, 3) == 0) {
			lock_and_look(i);
			continue;
		}
		for (unsigned short s = 1; s < 6; s++)
			if (n == 0 || rnd(&seed, 3) == 0) {
				take[n] = (struct sembuf){s, -1, SEM_UNDO};
				give[n++] = (struct sembuf){s, 1, SEM_UNDO};
			}
		if (rnd(&seed, 4) == 0) {
			take[n] = (struct sembuf){6, (short)(rnd(&seed, 2) ? 1 : -1), SEM_UNDO};
			give[n] = (struct sembuf){6, (short)-take[n].sem_op, SEM_UNDO};
			n++;
		}
		op(set_id[i], take, n);
		op(set_id[i], give, n);
		if (rnd(&seed, 500) == 0)
			exit(0); /* now and then one goes by itself */
	}
	exit(0);
}

/* A set of its own, made and removed under everybody's eyes. */
static void own_set(void)
{
	struct sembuf up = {1, 1, SEM_UNDO};
	int id = semget(IPC_PRIVATE, 2, 0600);

	if (id < 0)
		fail("semget", errno);
	op(id, &up, 1);
	if (semctl(id, 1, GETVAL) != 1)
		fail("GETVAL", semctl(id, 1, GETVAL));
	if (semctl(id, 0, IPC_RMID) < 0)
		fail("IPC_RMID", errno);
}

static void start(pid_t *pid, int index, uint32_t seed)
{
	*pid = fork();
	if (*pid < 0)
		fail("fork", errno);
	if (*pid == 0) {
		if (index >= WORKERS)
			while (!over()) {
				own_set();
				lock_and_look(index % SETS);
				__atomic_fetch_add(&shared->rounds[index], 1, __ATOMIC_RELAXED);
			}
		work(index, seed);
	}
}

static void expect_values(void)
{
	unsigned short values[SEMS];

	for (int i = 0; i < SETS; i++) {
		if (semctl(set_id[i], 0, GETALL, values) < 0)
			fail("GETALL", errno);
		for (int s = 0; s < SEMS; s++) {
			int expected = s == 0 ? 1 : s < 6 ? TOKENS : 100;

			if (values[s] != expected) {
				fprintf(stderr, "kill-sem: set %d, semaphore %d: %d, not %d\n", i,
					s, values[s], expected);
				exit(1);
			}
			if (semctl(set_id[i], s, GETNCNT) || semctl(set_id[i], s, GETZCNT))
				fail("somebody waits still", s);
		}
	}
}

/* At exit, of the parent alone. */
static void remove_sets(void)
{
	for (int i = 0; i < sets && getpid() == owner; i++)
		semctl(set_id[i], 0, IPC_RMID);
}

int main(int argc, char **argv)
{
	unsigned short first[SEMS] = {1, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS, 100};
	int seconds = argc > 1 ? atoi(argv[1]) : 10;
	uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : (uint32_t)getpid();
	pid_t pid[WORKERS + BYSTANDERS];
	uint64_t before[BYSTANDERS] = {0};
	unsigned kills = 0, quiet = 0;
	double end, look;

	printf("seed %u\n", seed);
	fflush(stdout);
	alarm((unsigned)seconds + LIMIT_S);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		fail("mmap", errno);
	owner = getpid();
	atexit(remove_sets);
	for (int i = 0; i < SETS; i++) {
		set_id[i] = semget(IPC_PRIVATE, SEMS, 0600);
		if (set_id[i] < 0)
			fail("semget", errno);
		sets++;
		if (semctl(set_id[i], 0, SETALL, first) < 0)
			fail("SETALL", errno);
	}
	for (int i = 0; i < WORKERS + BYSTANDERS; i++)
		start(&pid[i], i, seed + (uint32_t)i);
	end = now() + seconds;
	look = now() + 2;
	while (now() < end) {
		struct timespec pause = {0, 1000000l + rnd(&seed, 4000000)};
		int victim = (int)rnd(&seed, WORKERS), status;

		nanosleep(&pause, NULL);
		kill(pid[victim], SIGKILL);
		if (waitpid(pid[victim], &status, 0) != pid[victim])
			fail("waitpid", errno);
		if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
			return 1; /* it has said why */
		kills++;
		start(&pid[victim], victim, seed);
		if (now() < look)
			continue;
		look = now() + 2;
		for (int i = 0; i < BYSTANDERS; i++) {
			uint64_t rounds = shared->rounds[WORKERS + i];

			quiet = rounds == before[i] ? quiet + 1 : 0;
			before[i] = rounds;
			if (quiet > 10)
				fail("a bystander does not get on", i);
		}
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < WORKERS + BYSTANDERS; i++) {
		int status;

		if (waitpid(pid[i], &status, 0) != pid[i])
			fail("waitpid", errno);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fail("a worker's status", status);
	}
	expect_values();
	printf("%u killed\n", kills);
	return 0;
}
