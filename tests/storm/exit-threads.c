// SPDX-License-Identifier: MIT
/*
 * A process ends by exit() while other threads of it take and give back, with SEM_UNDO, or make
 * their first call just then. Whatever they had is back when its parent has waited for it.
 *
 *   exit-threads [ROUNDS]
 *
 * The same program holds on the kernel's semaphores.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 2
#define TOKENS  10

static int set;

static void *take_and_give(void *unused)
{
	struct sembuf s = {0, -1, SEM_UNDO};

	(void)unused;
	while (semop(set, &s, 1) == 0)
		s.sem_op = (short)-s.sem_op;
	return NULL;
}

_Noreturn static void child(unsigned seed)
{
	struct sembuf s = {0, -1, SEM_UNDO};
	pthread_t thread;

	if (semop(set, &s, 1) < 0)
		_exit(1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, take_and_give, NULL))
			_exit(1);
	/* Some come to the end of their first call, some to its middle, some not that far. */
	for (unsigned spin = seed * 2654435761u % (1u << seed % 16); spin > 0; spin--)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	exit(0);
}

static int look(unsigned round)
{
	int value = semctl(set, 0, GETVAL), waiting = semctl(set, 0, GETNCNT);

	if (value == TOKENS && waiting == 0)
		return 0;
	fprintf(stderr, "exit-threads: round %u: %d tokens, not %d; %d wait\n", round, value,
		TOKENS, waiting);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 500;
	int failed = 0;

	set = semget(IPC_PRIVATE, 1, 0600);
	if (set < 0 || semctl(set, 0, SETVAL, TOKENS) < 0) {
		fprintf(stderr, "exit-threads: a set: %s\n", strerror(errno));
		return 1;
	}
	for (unsigned i = 0; i < rounds && !failed; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			child(i);
		failed = pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || look(i);
	}
	semctl(set, 0, IPC_RMID);
	return failed;
}
