// SPDX-License-Identifier: MIT
/*
 * What a program meets that has run out of something: all families of System V IPC while a limit is
 * reached, before the first call or between calls. A call works or says what is lacking; afterwards,
 * the limit lifted, everything works. Run in a namespace by lack.sh.
 *
 *	lack WHICH
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define OBJECTS_MOST 20000

struct message {
	long type;
	char text[1000];
};

static const char *stage;

_Noreturn static void wrong(const char *call)
{
	int error = errno;

	fprintf(stderr, "lack: %s: %s: %s\n", stage, call, strerror(error));
	exit(1);
}

/* 0 it worked; else the errno, which must be one of a lack. */
static int outcome(long result, const char *call)
{
	if (result != -1)
		return 0;
	switch (errno) {
	case EAGAIN:
	case EFBIG:
	case EMFILE:
	case ENFILE:
	case ENOLCK:
	case ENOMEM:
	case ENOSPC:
		return errno;
	default:
		wrong(call);
	}
}
#define OUTCOME(call) outcome((long)(call), #call)

/* All calls once, on objects of their own; how many failed. */
static int use(void)
{
	struct sembuf up = {0, 1, SEM_UNDO}, down = {0, -1, SEM_UNDO};
	struct message m = {1, "text"};
	int set = semget(IPC_PRIVATE, 2, 0600), queue, segment, failed = 0;
	char *at;

	if (OUTCOME(set))
		return 1;
	failed += OUTCOME(semop(set, &up, 1)) || OUTCOME(semop(set, &down, 1));
	failed += OUTCOME(semctl(set, 0, IPC_RMID)) != 0;
	queue = msgget(IPC_PRIVATE, 0600);
	if (!OUTCOME(queue)) {
		if (!OUTCOME(msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT)) &&
		    msgrcv(queue, &m, sizeof(m.text), 0, IPC_NOWAIT) != sizeof(m.text))
			wrong("msgrcv");
		failed += OUTCOME(msgctl(queue, IPC_RMID, NULL)) != 0;
	} else {
		failed++;
	}
	segment = shmget(IPC_PRIVATE, 8192, 0600);
	if (!OUTCOME(segment)) {
		at = shmat(segment, NULL, 0);
		if (!OUTCOME((long)at)) {
			memset(at, 7, 8192);
			if (shmdt(at) < 0)
				wrong("shmdt");
		} else {
			failed++;
		}
		failed += OUTCOME(shmctl(segment, IPC_RMID, NULL)) != 0;
	} else {
		failed++;
	}
	return failed;
}

static void use_well(const char *when)
{
	stage = when;
	if (use() != 0)
		wrong("something is lacking");
}

/* Lowers a soft limit; returns what it was. */
static rlim_t limit(int resource, rlim_t to)
{
	struct rlimit old, now;

	if (getrlimit(resource, &old) < 0)
		wrong("getrlimit");
	now = (struct rlimit){to < old.rlim_max ? to : old.rlim_max, old.rlim_max};
	if (setrlimit(resource, &now) < 0)
		wrong("setrlimit");
	return old.rlim_cur;
}

/* The limit is reached at the first call (`first`), or only after one round; then it is lifted. */
static void with_limit(int resource, rlim_t to, bool first)
{
	rlim_t before;

	if (!first)
		use_well("before");
	before = limit(resource, to);
	stage = "at the limit";
	for (int k = 0; k < 3; k++)
		(void)use();
	limit(resource, before);
	/* A process that could not enter stays out; another one must come in. */
	if (first && fork() != 0) {
		int status;

		if (wait(&status) < 0 || status != 0)
			exit(1);
		return;
	}
	if (first)
		execl("/proc/self/exe", "lack", "well", (char *)NULL);
	use_well("after");
}

/* Takes all descriptors, keeping none that a call could use. */
static void without_descriptors(bool first)
{
	int fd;

	if (!first)
		use_well("before");
	limit(RLIMIT_NOFILE, 32);
	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0);
	stage = "no descriptors";
	for (int k = 0; k < 3; k++)
		(void)use();
	for (fd = 3; fd < 32; fd++)
		close(fd);
	if (!first)
		use_well("after");
}

static void close_all(unsigned from)
{
	for (int k = 0; k < 4; k++) {
		if (close_range(from, ~0u, 0) < 0)
			exit(1);
		if (from == 0 && (open("/dev/null", O_RDWR) != 0 || dup(0) != 1))
			exit(1);
		use_well("descriptors closed");
	}
}

/* Objects until there is no more room: an error, never a signal. Then they go, and it works. */
static void until_full(void)
{
	static int id[OBJECTS_MOST];
	struct message m = {1, "text"};
	int n = 0, error = 0, one;

	stage = "filling up";
	while (n < OBJECTS_MOST && !error) {
		id[n] = n % 2 ? semget(IPC_PRIVATE, 200, 0600) : msgget(IPC_PRIVATE, 0600);
		error = OUTCOME(id[n]);
		if (error)
			break;
		one = id[n++];
		for (int k = 0; k < 10 && n % 2 && !error; k++)
			error = OUTCOME(msgsnd(one, &m, sizeof(m.text), IPC_NOWAIT));
	}
	if (!error) {
		fprintf(stderr, "lack: it is never full\n");
		exit(1);
	}
	for (int k = 0; k < 50; k++)
		(void)use();
	while (n-- > 0)
		if ((n % 2 ? semctl(id[n], 0, IPC_RMID) : msgctl(id[n], IPC_RMID, NULL)) < 0)
			wrong("removal");
	stage = "emptied";
	if (semget(IPC_PRIVATE, 2, 0600) < 0 || msgget(IPC_PRIVATE, 0600) < 0)
		wrong("a new object");
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";

	if (strcmp(which, "well") == 0)
		use_well("well");
	else if (strcmp(which, "nofile-first") == 0 || strcmp(which, "nofile-between") == 0)
		without_descriptors(which[7] == 'f');
	else if (strcmp(which, "as-first") == 0 || strcmp(which, "as-between") == 0)
		with_limit(RLIMIT_AS, 64u << 20, which[3] == 'f');
	else if (strcmp(which, "fsize-first") == 0 || strcmp(which, "fsize-between") == 0)
		with_limit(RLIMIT_FSIZE, 0, which[6] == 'f');
	else if (strcmp(which, "nproc-first") == 0 || strcmp(which, "nproc-between") == 0)
		with_limit(RLIMIT_NPROC, 0, which[6] == 'f');
	else if (strcmp(which, "closefrom-3") == 0)
		close_all(3);
	else if (strcmp(which, "closefrom-0") == 0)
		close_all(0);
	else if (strcmp(which, "full") == 0)
		until_full();
	else
		return 2;
	return 0;
}
