// SPDX-License-Identifier: MIT
/*
 * What a program meets that has run out of something: all families of System V IPC while a limit is
 * reached, before the first call or between calls. A call works or says what is lacking;
 * afterwards, the limit lifted, everything works. Run in a namespace by lack.sh.
 *
 *	lack WHICH
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

#define OBJECTS_MOST  20000
#define SEGMENT_BYTES 65536u

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

/* Between any two calls the descriptors from here on are closed; -1: none. */
static int closes_from = -1;

static void between_calls(void)
{
	if (closes_from < 0)
		return;
	if (close_range((unsigned)closes_from, ~0u, 0) < 0)
		wrong("close_range");
	if (closes_from == 0 && (open("/dev/null", O_RDWR) != 0 || dup(0) != 1 || dup(0) != 2))
		exit(1);
}

/* 0 it worked; else the errno, which must be one of a lack: such as Linux has for these calls. */
static int outcome(long result, const char *call)
{
	int error = result == -1 ? errno : 0;

	if (error && error != ENOMEM && error != ENOSPC)
		wrong(call);
	between_calls();
	return error;
}
#define OUTCOME(call) outcome((long)(call), #call)

/* Is attached memory written to? */
static bool touches = true;

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
		if (!OUTCOME(msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT))) {
			if (msgrcv(queue, &m, sizeof(m.text), 0, IPC_NOWAIT) != sizeof(m.text))
				wrong("msgrcv");
			between_calls();
		}
		failed += OUTCOME(msgctl(queue, IPC_RMID, NULL)) != 0;
	} else {
		failed++;
	}
	segment = shmget(IPC_PRIVATE, 8192, 0600);
	if (!OUTCOME(segment)) {
		at = shmat(segment, NULL, 0);
		if (!OUTCOME((long)at)) {
			if (touches)
				memset(at, 7, 8192);
			if (shmdt(at) < 0)
				wrong("shmdt");
			between_calls();
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

/* Between any two calls, in a child too. */
static void close_all(int from)
{
	int status;

	closes_from = from;
	between_calls();
	for (int k = 0; k < 4; k++)
		use_well("descriptors closed");
	if (fork() == 0) {
		use_well("descriptors closed in a child");
		exit(0);
	}
	if (wait(&status) < 0 || status != 0)
		exit(1);
	use_well("descriptors closed after a child");
}

static volatile bool closing;

static void *closer(void *unused)
{
	(void)unused;
	while (closing)
		(void)close_range(3, ~0u, 0);
	return NULL;
}

/* At any time: another thread closes all descriptors, over and over. */
static void close_in_thread(void)
{
	pthread_t t;

	closing = true;
	if (pthread_create(&t, NULL, closer, NULL) != 0)
		exit(1);
	for (int k = 0; k < 300; k++)
		use_well("descriptors being closed");
	closing = false;
	(void)pthread_join(t, NULL);
}

/* An object that holds something that must not get lost. */
struct kept {
	enum { SET, QUEUE, SEGMENT } kind;
	int id;
	unsigned messages;
	unsigned char *at;
};

/* One more object with contents that tell its number; 0, or the lack. */
static int keep(struct kept *o, int n, bool with_segments)
{
	struct message m = {n + 1, "text"};
	struct sembuf up = {199, (short)(n % 1000 + 1), 0};
	void *at;

	*o = (struct kept){.kind = n % (with_segments ? 3 : 2)};
	switch (o->kind) {
	case SET:
		o->id = semget(IPC_PRIVATE, 200, 0600);
		return OUTCOME(o->id) ?: OUTCOME(semop(o->id, &up, 1));
	case QUEUE:
		o->id = msgget(IPC_PRIVATE, 0600);
		if (OUTCOME(o->id))
			return errno;
		for (; o->messages < 10; o->messages++)
			if (OUTCOME(msgsnd(o->id, &m, sizeof(m.text), IPC_NOWAIT)))
				return errno;
		return 0;
	default:
		o->id = shmget(IPC_PRIVATE, SEGMENT_BYTES, 0600);
		if (OUTCOME(o->id))
			return errno;
		at = shmat(o->id, NULL, 0);
		if (OUTCOME((long)at))
			return errno;
		o->at = at;
		memset(o->at, n % 255 + 1, SEGMENT_BYTES);
		return 0;
	}
}

static void look_and_remove(const struct kept *o, int n)
{
	struct message m;

	if (o->id < 0)
		return;
	switch (o->kind) {
	case SET:
		/* The last of them may lack what semop() would have added. */
		if (semctl(o->id, 199, GETVAL) != n % 1000 + 1 && semctl(o->id, 199, GETVAL) != 0)
			wrong("a semaphore");
		if (semctl(o->id, 0, IPC_RMID) < 0)
			wrong("removal");
		break;
	case QUEUE:
		for (unsigned k = 0; k < o->messages; k++)
			if (msgrcv(o->id, &m, sizeof(m.text), n + 1, IPC_NOWAIT) !=
				    sizeof(m.text) ||
			    strcmp(m.text, "text") != 0)
				wrong("a message");
		if (msgctl(o->id, IPC_RMID, NULL) < 0)
			wrong("removal");
		break;
	default:
		for (unsigned k = 0; o->at && k < SEGMENT_BYTES; k++)
			if (o->at[k] != n % 255 + 1)
				wrong("a segment's contents");
		if ((o->at && shmdt(o->at) < 0) || shmctl(o->id, IPC_RMID, NULL) < 0)
			wrong("removal");
	}
}

/* Objects until there is no more room: an error, never a signal. What is there stays what it is.
 * Then they go, and it works. */
static void until_full(bool with_segments)
{
	static struct kept kept[OBJECTS_MOST];
	int n = 0, error = 0;

	stage = "filling up";
	while (n < OBJECTS_MOST && !error) {
		error = keep(&kept[n], n, with_segments);
		n++;
	}
	if (!error) {
		fprintf(stderr, "lack: it is never full\n");
		exit(1);
	}
	/* What a segment may still grow to is asked for at its making only: here not at all. */
	touches = false;
	stage = "full";
	for (int k = 0; k < 50; k++)
		(void)use();
	while (n-- > 0)
		look_and_remove(&kept[n], n);
	touches = true;
	use_well("emptied");
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
	else if (strcmp(which, "data-first") == 0 || strcmp(which, "data-between") == 0)
		with_limit(RLIMIT_DATA, 4096, which[5] == 'f');
	else if (strcmp(which, "fsize-first") == 0 || strcmp(which, "fsize-between") == 0)
		with_limit(RLIMIT_FSIZE, 0, which[6] == 'f');
	else if (strcmp(which, "nproc-first") == 0 || strcmp(which, "nproc-between") == 0)
		with_limit(RLIMIT_NPROC, 0, which[6] == 'f');
	else if (strcmp(which, "closefrom-3") == 0)
		close_all(3);
	else if (strcmp(which, "closefrom-0") == 0)
		close_all(0);
	else if (strcmp(which, "full") == 0)
		until_full(false);
	else if (strcmp(which, "full-shm") == 0)
		until_full(true);
	else if (strcmp(which, "closefrom-thread") == 0)
		close_in_thread();
	else
		return 2;
	return 0;
}
