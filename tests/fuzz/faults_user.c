// SPDX-License-Identifier: MIT
/*
 * The program whose system calls fail (faults.c): all families of System V IPC, a child, a thread
 * for which a sleep ends, a view of /proc, an exit with SEM_UNDO; with FAULTS_EARLY also a call in
 * a constructor. Between the two marks any call may fail, with an error of this kind of failure;
 * after the second everything works again, unless the process could not enter the namespace at all:
 * that stays as it is. All objects are removed at the end.
 *
 *	faults-user NEVER | faults-user ANY
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/faults.h"

static bool may_fail;
static int failures;

/* Errors that a lack of something causes; with them the call has changed nothing. */
static bool is_lack(int error)
{
	switch (error) {
	case EACCES:
	case EAGAIN:
	case EFBIG:
	case EINTR:
	case EIO:
	case EMFILE:
	case ENFILE:
	case ENOLCK:
	case ENOMEM:
	case ENOSPC:
	case ENOSYS:
	case EPERM:
	case ENOTDIR:
	case EOPNOTSUPP:
	case ESTALE:
		return true;
	default:
		return false;
	}
}

static long did(long result, const char *call)
{
	if (result != -1)
		return result;
	failures++;
	if (!may_fail || !is_lack(errno)) {
		fprintf(stderr, "faults-user: %s: %s\n", call, strerror(errno));
		_exit(FAULTS_WRONG);
	}
	fprintf(stderr, "faults-user: (%s: %s)\n", call, strerror(errno));
	return result;
}
#define DID(call) did((long)(call), #call)

static void in_child(int set, int queue, int segment)
{
	struct sembuf undone = {0, 1, SEM_UNDO};
	struct {
		long type;
		char text[16];
	} m = {3, "child"};
	void *at = shmat(segment, NULL, 0);

	if (at == (void *)-1) /* NOLINT(performance-no-int-to-ptr) */
		did(-1, "shmat in the child");
	DID(semop(set, &undone, 1));
	DID(msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT));
	exit(0);
}

/* Ids, -1 for what could not be made. */
static int set = -1, queue = -1, segment = -1;

static void *wake(void *unused)
{
	struct sembuf up = {2, 1, 0};

	/* Not before there is a sleeper, unless that takes too long. */
	for (int n = 0; n < 500 && semctl(set, 2, GETNCNT) == 0; n++)
		usleep(100);
	DID(semop(set, &up, 1));
	return unused;
}

/* A sleep that a thread ends, or nobody: then in a while by itself. */
static void sleep_for_thread(void)
{
	struct sembuf down = {2, -1, 0};
	struct timespec limit = {0, 100000000};
	pthread_t t;
	bool started;

	errno = pthread_create(&t, NULL, wake, NULL);
	started = errno == 0;
	if (!started)
		did(-1, "pthread_create");
	if (semtimedop(set, &down, 1, &limit) < 0 && errno != EAGAIN)
		did(-1, "semtimedop");
	if (started)
		(void)pthread_join(t, NULL);
}

static void look_at_view(void)
{
	char text[4096];
	int fd = (int)DID(open("/proc/sysvipc/sem", O_RDONLY | O_CLOEXEC));

	if (fd < 0)
		return;
	(void)DID(read(fd, text, sizeof(text)));
	(void)close(fd);
}

static void use(void)
{
	struct sembuf up = {0, 2, 0}, down = {0, -2, IPC_NOWAIT}, undone = {1, 1, SEM_UNDO};
	struct sembuf many[2] = {{0, 1, 0}, {1, 0, IPC_NOWAIT}};
	struct {
		long type;
		char text[2000];
	} m = {1, "text"};
	char *at = (void *)-1; /* NOLINT(performance-no-int-to-ptr) */
	int status;
	pid_t pid;

	if (set < 0)
		set = (int)DID(semget(IPC_PRIVATE, 3, IPC_CREAT | 0600));
	if (queue < 0)
		queue = (int)DID(msgget(IPC_PRIVATE, IPC_CREAT | 0600));
	if (segment < 0)
		segment = (int)DID(shmget(IPC_PRIVATE, 10000, IPC_CREAT | 0600));
	if (set >= 0 && DID(semop(set, &up, 1)) == 0)
		DID(semop(set, &down, 1));
	if (set >= 0 && DID(semop(set, many, 2)) == 0)
		DID(semctl(set, 0, SETVAL, 0));
	if (set >= 0)
		DID(semop(set, &undone, 1));
	if (set >= 0)
		sleep_for_thread();
	look_at_view();
	if (queue >= 0 && DID(msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT)) == 0)
		DID(msgrcv(queue, &m, sizeof(m.text), 0, IPC_NOWAIT));
	if (segment >= 0) {
		at = shmat(segment, NULL, 0);
		if (did((long)at, "shmat") != -1)
			memset(at, 1, 10000);
	}
	pid = set >= 0 && queue >= 0 && segment >= 0 ? (pid_t)DID(fork()) : -1;
	if (pid == 0)
		in_child(set, queue, segment);
	if (pid > 0) {
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			fprintf(stderr, "faults-user: the child's status is %#x\n", status);
			_exit(FAULTS_WRONG);
		}
	}
	if (at != (void *)-1) /* NOLINT(performance-no-int-to-ptr) */
		DID(shmdt(at));
	if (set >= 0 && DID(semctl(set, 0, IPC_RMID)) == 0)
		set = -1;
	if (queue >= 0 && DID(msgctl(queue, IPC_RMID, NULL)) == 0)
		queue = -1;
	if (segment >= 0 && DID(shmctl(segment, IPC_RMID, NULL)) == 0)
		segment = -1;
}

__attribute__((constructor)) static void early(void)
{
	int id;

	if (!getenv("FAULTS_EARLY"))
		return;
	may_fail = true;
	id = (int)DID(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600));
	/* Else it is this test's own leak. */
	while (id >= 0 && DID(semctl(id, 0, IPC_RMID)) < 0)
		;
}

int main(int argc, char **argv)
{
	bool fresh;

	if (argc != 2)
		return 2;
	may_fail = strcmp(argv[1], "ANY") == 0;
	syscall(FAULTS_MARK, FAULTS_MARK_WHICH, FAULTS_BEGIN);
	use();
	syscall(FAULTS_MARK, FAULTS_MARK_WHICH, FAULTS_END);
	fresh = semget(0x7fffffff, 0, 0) < 0 && errno == ENOENT;
	/* It could not enter: then nothing works, and nothing was made. */
	if (failures && !fresh && set < 0 && queue < 0 && segment < 0)
		return FAULTS_STAYED_OUT;
	may_fail = false;
	use();
	if (set >= 0)
		DID(semctl(set, 0, IPC_RMID));
	return 0;
}
