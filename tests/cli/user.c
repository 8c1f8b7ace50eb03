// SPDX-License-Identifier: MIT
/*
 * A program that uses System V semaphores, for the tests of the commands. It knows nothing of
 * usysv.
 *
 *   user hold [KEY]  makes a set (or opens that of the key), says its id, waits for the end of its
 *                    standard input
 *   user sleep ID    says "asleep", takes what is not there, says how that ended
 *   user receive ID  says "asleep", receives a message, says how that ended
 *   user get KEY     says the id of an existing set, or the error
 *   user segment     makes a segment, which must be empty, writes into it, says its id and leaves
 *                    it
 *   user room BYTES  two processes make segments of that size at the same moments, again and
 *                    again: there is room for one of them, which is then used
 *   user fill COUNT  writes the largest segment that is granted; then so many processes use a set
 *                    and a queue, all there at once
 *   user small       makes its first calls in a signal handler with a stack of 8 KiB
 *   user removed     makes one object of each kind, has the segment attached and owes the set
 *                    something, says "ready" and waits for a line; then says what each call gets,
 *                    and what it gets in a child
 *   user limits      says semmsl, semmns, semopm and semmni
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT_BYTES 8192
#define ROUNDS        60

union semun_arg {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

static const char *name_of(int error)
{
	switch (error) {
	case 0:
		return "0";
	case EIDRM:
		return "EIDRM";
	case EINVAL:
		return "EINVAL";
	case ENOENT:
		return "ENOENT";
	default:
		return strerror(error);
	}
}

static int say_error(void)
{
	puts(name_of(errno));
	return 1;
}

static int hold(const char *key)
{
	key_t k = key ? (key_t)strtoul(key, NULL, 0) : IPC_PRIVATE;
	int id = semget(k, 3, 0600 | IPC_CREAT);
	char c;

	if (id < 0)
		return say_error();
	printf("%d\n", id);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}

static int sleep_on(const char *id)
{
	struct sembuf op = {0, -1, 0};
	int r;

	puts("asleep");
	fflush(stdout);
	r = semop(atoi(id), &op, 1);
	puts(name_of(r < 0 ? errno : 0));
	return 0;
}

static int receive(const char *id)
{
	struct {
		long type;
		char text[8];
	} m;
	ssize_t r;

	puts("asleep");
	fflush(stdout);
	r = msgrcv(atoi(id), &m, sizeof(m.text), 0, 0);
	puts(name_of(r < 0 ? errno : 0));
	return 0;
}

static int get(const char *key)
{
	int id = semget((key_t)strtoul(key, NULL, 0), 0, 0);

	if (id < 0)
		return say_error();
	printf("%d\n", id);
	return 0;
}

static int segment(void)
{
	static const char empty[SEGMENT_BYTES];
	int id = shmget(IPC_PRIVATE, sizeof(empty), 0600);
	char *p = id < 0 ? (char *)-1 : shmat(id, NULL, 0);

	if (p == (char *)-1)
		return say_error();
	if (memcmp(p, empty, sizeof(empty)) != 0)
		return 3;
	memset(p, 'x', sizeof(empty));
	printf("%d\n", id);
	return 0;
}

struct race {
	atomic_int here[2], made[2];
};

/* Arrives at a round, and goes on when the other one has. */
static void meet(struct race *r, int me, int round)
{
	atomic_store(&r->here[me], round);
	while (atomic_load(&r->here[!me]) < round)
		sched_yield();
}

static int race(struct race *r, int me, size_t bytes)
{
	for (int round = 0; round < ROUNDS; round++) {
		int id;
		char *p;

		meet(r, me, 3 * round + 1);
		id = shmget(IPC_PRIVATE, bytes, 0600);
		if (id < 0 && errno != ENOMEM)
			return 4;
		atomic_store(&r->made[me], id >= 0);
		meet(r, me, 3 * round + 2);
		if (id >= 0 && atomic_load(&r->made[!me]))
			return 5; /* both: they do not fit */
		if (id < 0 && !atomic_load(&r->made[!me]))
			return 6; /* neither: there was room for one */
		if (id >= 0) {
			p = shmat(id, NULL, 0);
			if (p == (char *)-1)
				return 7;
			if (round % 16 == 0)
				memset(p, 'x', bytes);
			if (shmdt(p) < 0 || shmctl(id, IPC_RMID, NULL) < 0)
				return 8;
		}
		meet(r, me, 3 * round + 3);
	}
	return 0;
}

static int room(size_t bytes)
{
	struct race *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t kid[2];
	int worst = 0;

	if (r == MAP_FAILED)
		return 2;
	for (int me = 0; me < 2; me++) {
		kid[me] = fork();
		if (kid[me] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(race(r, me, bytes));
		}
	}
	for (int k = 0; k < 2; k++) {
		int status;
		pid_t pid = wait(&status);

		if (pid > 0 && status != 0 && worst == 0) {
			fprintf(stderr, "status %#x\n", (unsigned)status);
			worst = WIFEXITED(status) ? WEXITSTATUS(status) : 99;
			kill(kid[pid == kid[0]], SIGKILL); /* it waits for this one */
		}
	}
	return worst;
}

static void make_first_calls(int signal)
{
	struct sembuf up = {0, 1, SEM_UNDO};
	int set = semget(IPC_PRIVATE, 1, 0600), id = shmget(IPC_PRIVATE, 4096, 0600);
	void *p;

	(void)signal;
	if (set < 0 || id < 0 || semop(set, &up, 1) < 0)
		_exit(1);
	p = shmat(id, NULL, 0);
	if (p == (void *)-1 || shmdt(p) < 0 || shmctl(id, IPC_RMID, NULL) < 0)
		_exit(1);
}

/* The program's first calls are made in a signal handler, on as small a stack as is usual. */
static int small(void)
{
	enum { STACK = 8192, GUARD = 65536 };
	char *p = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	stack_t stack = {.ss_sp = p + GUARD, .ss_size = STACK};
	struct sigaction action = {.sa_handler = make_first_calls, .sa_flags = SA_ONSTACK};

	if (p == MAP_FAILED || mprotect(p, GUARD, PROT_NONE) < 0 || sigaltstack(&stack, NULL) < 0 ||
	    sigaction(SIGUSR1, &action, NULL) < 0)
		return 2;
	return raise(SIGUSR1);
}

/* One that did not use the objects before. */
static int newcomer(int set, int queue)
{
	struct {
		long type;
		char text[8];
	} m = {1, "text"};
	struct sembuf up = {0, 1, 0}, down = {0, -1, SEM_UNDO};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (semop(set, &up, 1) < 0 || semop(set, &down, 1) < 0 ||
	    msgsnd(queue, &m, sizeof(m.text), 0) < 0 ||
	    msgrcv(queue, &m, sizeof(m.text), 0, 0) < 0) {
		perror("newcomer");
		return 1;
	}
	return 0;
}

/* The largest segment that is granted is written; then others make calls, all there at once. */
static int fill(int count)
{
	int set = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600), id = -1;
	size_t bytes = (size_t)64 << 20;
	int worst = 0, hold[2];
	char *p;

	while (bytes > 4096 && (id = shmget(IPC_PRIVATE, bytes, 0600)) < 0)
		bytes -= 4096;
	p = shmat(id, NULL, 0);
	if (set < 0 || queue < 0 || p == (char *)-1 || pipe(hold) < 0)
		return 2;
	memset(p, 1, bytes);
	for (int k = 0; k < count; k++) {
		pid_t kid = fork();

		if (kid == 0) {
			int status = newcomer(set, queue);

			close(hold[1]);
			if (status == 0)
				(void)!read(hold[0], p, 1); /* until all have been there */
			_exit(status);
		}
		worst = kid < 0 ? 2 : worst;
	}
	close(hold[1]);
	for (int k = 0; k < count; k++) {
		int status = 0;

		if (wait(&status) < 0 || status != 0)
			worst = 1;
	}
	return worst;
}

static void say(const char *call, long result)
{
	printf("%s %s\n", call, name_of(result == -1 ? errno : 0));
}

/* Of objects of which the segment is attached. */
static void say_calls(const char *who, int queue, int set, int id, char *segment)
{
	struct {
		long type;
		char text[8];
	} m = {1, "text"};
	struct sembuf up = {0, 1, 0}, down = {0, -1, SEM_UNDO};
	struct msqid_ds queue_ds;
	struct semid_ds set_ds;
	struct shmid_ds segment_ds;

	printf("%s\n", who);
	say("msgsnd", msgsnd(queue, &m, sizeof(m.text), 0));
	say("msgrcv", msgrcv(queue, &m, sizeof(m.text), 0, 0));
	say("msgctl", msgctl(queue, IPC_STAT, &queue_ds));
	say("semop", semop(set, &up, 1));
	say("semop", semop(set, &down, 1));
	say("semctl", semctl(set, 0, IPC_STAT, (union semun_arg){.buf = &set_ds}));
	say("shmctl", shmctl(id, IPC_STAT, &segment_ds));
	say("shmat", (long)shmat(id, NULL, 0));
	say("msgget", msgget(0x71, IPC_CREAT | 0600));
	say("semget", semget(0x71, 1, IPC_CREAT | 0600));
	say("shmget", shmget(0x71, SEGMENT_BYTES, IPC_CREAT | 0600));
	say("msgget", msgget(IPC_PRIVATE, 0600));
	say("semget", semget(IPC_PRIVATE, 1, 0600));
	say("shmget", shmget(IPC_PRIVATE, SEGMENT_BYTES, 0600));
	printf("has %s\n", segment);
	say("shmdt", shmdt(segment));
	say("shmdt", shmdt(segment));
	fflush(stdout);
}

static int removed(void)
{
	int queue = msgget(0x70, IPC_CREAT | 0600), set = semget(0x70, 1, IPC_CREAT | 0600);
	int id = shmget(0x70, SEGMENT_BYTES, IPC_CREAT | 0600);
	char *segment = id < 0 ? (char *)-1 : shmat(id, NULL, 0), line[8];
	struct sembuf op = {0, 1, SEM_UNDO};
	pid_t pid;

	if (queue < 0 || set < 0 || segment == (char *)-1 || semop(set, &op, 1) < 0)
		return say_error();
	strcpy(segment, "text");
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	pid = fork();
	if (pid == 0) {
		say_calls("child", queue, set, id, segment);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		return 3;
	say_calls("parent", queue, set, id, segment);
	return 0;
}

static int limits(void)
{
	struct seminfo info;
	union semun_arg arg = {.info = &info};

	if (semctl(0, 0, IPC_INFO, arg) < 0)
		return say_error();
	printf("%d %d %d %d\n", info.semmsl, info.semmns, info.semopm, info.semmni);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "hold") == 0)
		return hold(argc > 2 ? argv[2] : NULL);
	if (strcmp(what, "sleep") == 0 && argc > 2)
		return sleep_on(argv[2]);
	if (strcmp(what, "receive") == 0 && argc > 2)
		return receive(argv[2]);
	if (strcmp(what, "get") == 0 && argc > 2)
		return get(argv[2]);
	if (strcmp(what, "room") == 0 && argc > 2)
		return room(strtoul(argv[2], NULL, 0));
	if (strcmp(what, "small") == 0)
		return small();
	if (strcmp(what, "fill") == 0 && argc > 2)
		return fill(atoi(argv[2]));
	if (strcmp(what, "segment") == 0)
		return segment();
	if (strcmp(what, "removed") == 0)
		return removed();
	if (strcmp(what, "limits") == 0)
		return limits();
	fprintf(stderr, "user: hold [KEY] | sleep ID | receive ID | get KEY | segment | room BYTES "
			"| fill COUNT | small | removed | limits\n");
	return 2;
}
