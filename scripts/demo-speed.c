// SPDX-License-Identifier: MIT
/*
 * What a semaphore operation costs, on whatever provides System V IPC: the kernel, or usysv when it
 * is preloaded. For the demonstration (scripts/demo.sh), which runs it on both.
 *
 * Prints a line "NANOSECONDS NAME" for each operation: the median over short batches, so that a
 * busy machine disturbs little. Takes about two seconds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 101, BATCH = 1000, ROUND_TRIPS = 100 };

static int set;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	(void)semctl(set, 0, IPC_RMID);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void add(unsigned short num, short value, short flags)
{
	struct sembuf op = {num, value, flags};

	must(semop(set, &op, 1) == 0, "semop");
}

static void plain(void)
{
	add(0, 1, 0);
	add(0, -1, 0);
}

static void undo(void)
{
	add(0, 1, SEM_UNDO);
	add(0, -1, SEM_UNDO);
}

static void look(void)
{
	must(semctl(set, 0, GETVAL) >= 0, "GETVAL");
}

/* The other process echoes: waits on semaphore 1 and posts semaphore 2. */
static void round_trip(void)
{
	add(1, 1, 0);
	add(2, -1, 0);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void measure(const char *name, void (*operation)(void), int operations, int batch)
{
	static double sample[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		int64_t begin = now_ns();

		for (int k = 0; k < batch; k++)
			operation();
		sample[i] = (double)(now_ns() - begin) / (batch * operations);
	}
	qsort(sample, BATCHES, sizeof(sample[0]), by_value);
	printf("%.0f %s\n", sample[BATCHES / 2], name);
	fflush(stdout);
}

int main(void)
{
	pid_t echo;

	set = semget(IPC_PRIVATE, 3, 0600);
	must(set >= 0, "semget");
	measure("semop, nobody waits", plain, 2, BATCH);
	measure("semop with SEM_UNDO", undo, 2, BATCH);
	measure("semctl GETVAL", look, 1, BATCH);
	echo = fork();
	must(echo >= 0, "fork");
	if (echo == 0) {
		struct sembuf wait_1 = {1, -1, 0}, post_2 = {2, 1, 0};

		alarm(60);
		while (semop(set, &wait_1, 1) == 0 && semop(set, &post_2, 1) == 0)
			continue;
		_exit(0);
	}
	measure("round trip of two processes", round_trip, 1, ROUND_TRIPS);
	must(semctl(set, 0, IPC_RMID) == 0, "IPC_RMID");
	must(waitpid(echo, NULL, 0) == echo, "waitpid");
	return 0;
}
