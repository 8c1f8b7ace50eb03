// SPDX-License-Identifier: MIT
/*
 * A correct program that uses all three families, for what watches it (valgrind): threads and
 * children that sleep and are woken, SEM_UNDO of a child that is killed, exec, memory of the heap
 * that is in use at the end, which is a signal. It knows nothing of usysv.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 200

struct message {
	long type;
	char text[100];
};

static int set, queue;
static char *kept;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(3);
}

static void change(unsigned short num, short by, short flags)
{
	struct sembuf op = {num, by, flags};
	int rc;

	do
		rc = semop(set, &op, 1);
	while (rc < 0 && errno == EINTR);
	check(rc == 0, "semop");
}

/* What 0 gives, 1 gets back; each round sleeps, on one side or the other. */
static void *other(void *argument)
{
	struct message m = {2, "from the thread"};

	for (int i = 0; i < ROUNDS; i++) {
		change(0, -1, 0);
		change(1, 1, i % 2 ? SEM_UNDO : 0);
	}
	check(msgsnd(queue, &m, sizeof(m.text), 0) == 0, "msgsnd");
	return argument;
}

static void play(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		change(0, 1, 0);
		change(1, -1, 0);
	}
}

static void with_thread(void)
{
	struct message m;
	pthread_t thread;

	check(pthread_create(&thread, NULL, other, NULL) == 0, "pthread_create");
	play();
	check(msgrcv(queue, &m, sizeof(m.text), 2, 0) == (ssize_t)sizeof(m.text), "msgrcv");
	check(pthread_join(thread, NULL) == 0 && m.text[0] == 'f', "pthread_join");
}

static void with_children(char *segment)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		(void)other(NULL);
		segment[0] = 'c';
		execlp("true", "true", (char *)NULL);
		_exit(4);
	}
	play();
	check(waitpid(child, &status, 0) == child && status == 0 && segment[0] == 'c', "child");
	child = fork();
	if (child == 0) {
		change(2, 5, SEM_UNDO);
		(void)raise(SIGKILL);
		_exit(4);
	}
	check(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "killed child");
	check(semctl(set, 2, GETVAL) == 0, "SEM_UNDO");
}

int main(void)
{
	int id = shmget(IPC_PRIVATE, 100000, 0600);
	char *segment = shmat(id, NULL, 0);
	struct shmid_ds ds;

	set = semget(IPC_PRIVATE, 3, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	check(segment != (void *)-1 && set >= 0 && queue >= 0, "objects");
	memset(segment, 'x', 100000);
	kept = malloc(1000);
	with_thread();
	with_children(segment);
	check(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 1, "shmctl");
	check(shmdt(segment) == 0 && shmctl(id, IPC_RMID, NULL) == 0, "shmdt");
	check(semctl(set, 0, IPC_RMID) == 0 && msgctl(queue, IPC_RMID, NULL) == 0, "IPC_RMID");
	printf("done\n");
	(void)fflush(stdout);
	(void)raise(SIGTERM);
	return kept != NULL;
}
