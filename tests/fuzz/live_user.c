// SPDX-License-Identifier: MIT
/*
 * A program whose namespace is being spoilt under it (live.c): all families of calls, sleeps that a
 * timer ends, children by fork and vfork that exit, execute or are killed, threads, another image
 * of itself, the views of /proc. Any call may fail, with any error, or give nonsense; what must not
 * happen is a signal that nobody sent, or a call that does not return.
 *
 * Attached memory is not touched: a segment whose recorded size is spoilt may be mapped shorter.
 *
 *	live-user SEED END-NS BOARD DEPTH
 *
 * With the depth -1 it only sleeps for a semaphore that nobody ever gives, until its region is
 * lost.
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
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/live.h"

#define DEPTH_MOST 3

static struct board *board;
static uint32_t my_seat;
static uint64_t state; /* of the chances */
static int64_t end_ns;
static int depth;
static char **arguments;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static uint32_t chance(uint64_t *s, uint32_t below)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return (uint32_t)(*s * 0x2545f4914f6cdd1dull >> 33) % below;
}

static void doing(const char *what)
{
	struct seat *seat = &board->seat[my_seat];

	snprintf(seat->doing, sizeof(seat->doing), "%s", what);
}

static void sit_down(void)
{
	my_seat = __atomic_fetch_add(&board->seats, 1, __ATOMIC_RELAXED) % LIVE_SEATS;
	board->seat[my_seat].pid = getpid();
	doing("nothing");
}

static void went_wrong(const char *what, const char *doing_what)
{
	if (__atomic_exchange_n(&board->bad, 1, __ATOMIC_RELAXED) == 0)
		snprintf(board->text, sizeof(board->text), "%s, in %s", what, doing_what);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* The calls between the two may sleep. */
static void may_sleep(void)
{
	struct itimerval t = {{0, 4000}, {0, 4000}};

	setitimer(ITIMER_REAL, &t, NULL);
}

static void no_sleep(void)
{
	struct itimerval t = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &t, NULL);
}

/* ---- The families ---------------------------------------------------------------------------- */

static void sem(uint64_t *s, bool sleeps)
{
	static const int count[] = {1, 3, 40};
	uint32_t which = chance(s, 3);
	struct sembuf ops[4];
	struct timespec soon = {0, 1000000};
	unsigned short values[40] = {0};
	struct semid_ds ds;
	int id, n = (int)chance(s, 3) + 1;

	doing("semget");
	id = semget((key_t)which + 1, count[which], IPC_CREAT | 0600);
	if (id < 0 || chance(s, 40) == 0)
		id = (int)chance(s, 4);
	for (int i = 0; i < n; i++) {
		ops[i].sem_num = (unsigned short)chance(s, (uint32_t)count[which]);
		ops[i].sem_op = (short)((int)chance(s, 4) - 1);
		ops[i].sem_flg = (short)((chance(s, 2) ? SEM_UNDO : 0) |
					 (sleeps && chance(s, 4) == 0 ? 0 : IPC_NOWAIT));
	}
	switch (chance(s, 12)) {
	case 0:
		doing("semctl SETALL");
		(void)semctl(id, 0, SETALL, values);
		break;
	case 1:
		doing("semctl GETALL");
		if (semctl(id, 0, IPC_STAT, &ds) == 0 && ds.sem_nsems <= 40)
			(void)semctl(id, 0, GETALL, values);
		break;
	case 2:
		doing("semctl GETNCNT");
		(void)semctl(id, 0, GETNCNT);
		(void)semctl(id, 0, GETPID);
		break;
	case 3:
		doing("semctl IPC_RMID");
		if (chance(s, 4) == 0)
			(void)semctl(id, 0, IPC_RMID);
		break;
	case 4:
		doing("semtimedop");
		(void)semtimedop(id, ops, (size_t)n, &soon);
		break;
	default:
		doing("semop");
		(void)semop(id, ops, (size_t)n);
	}
}

static void msg(uint64_t *s, bool sleeps)
{
	static const int flags[] = {0, MSG_NOERROR, 020000 /* MSG_EXCEPT */, 040000 /* MSG_COPY */};
	struct {
		long type;
		char text[3000];
	} m;
	struct msqid_ds ds;
	int id, wait = sleeps && chance(s, 4) == 0 ? 0 : IPC_NOWAIT;

	doing("msgget");
	id = msgget((key_t)chance(s, 3) + 1, IPC_CREAT | 0600);
	if (id < 0 || chance(s, 40) == 0)
		id = (int)chance(s, 4);
	m.type = (long)chance(s, 6) + 1;
	memset(m.text, 1, sizeof(m.text));
	switch (chance(s, 12)) {
	case 0:
		doing("msgctl IPC_STAT");
		(void)msgctl(id, IPC_STAT, &ds);
		break;
	case 1:
		doing("msgctl IPC_SET");
		if (msgctl(id, IPC_STAT, &ds) == 0)
			(void)msgctl(id, IPC_SET, &ds);
		break;
	case 2:
		doing("msgctl IPC_RMID");
		if (chance(s, 4) == 0)
			(void)msgctl(id, IPC_RMID, NULL);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		doing("msgsnd");
		(void)msgsnd(id, &m, chance(s, sizeof(m.text)), wait);
		break;
	default:
		doing("msgrcv");
		(void)msgrcv(id, &m, chance(s, sizeof(m.text)), (long)chance(s, 9) - 3,
			     flags[chance(s, 4)] | wait);
	}
}

static void shm(uint64_t *s)
{
	struct shmid_ds ds;
	void *at;
	int id;

	doing("shmget");
	id = shmget((key_t)chance(s, 3) + 1, 8192, IPC_CREAT | 0600);
	if (id < 0 || chance(s, 40) == 0)
		id = (int)chance(s, 4);
	switch (chance(s, 6)) {
	case 0:
		doing("shmctl IPC_STAT");
		(void)shmctl(id, IPC_STAT, &ds);
		break;
	case 1:
		doing("shmctl SHM_LOCK");
		(void)shmctl(id, chance(s, 2) ? SHM_LOCK : SHM_UNLOCK, NULL);
		break;
	case 2:
		doing("shmctl IPC_RMID");
		(void)shmctl(id, IPC_RMID, NULL);
		break;
	default:
		doing("shmat");
		at = shmat(id, NULL, chance(s, 2) ? SHM_RDONLY : 0);
		if (at == (void *)-1 || chance(s, 4) == 0) /* NOLINT(performance-no-int-to-ptr) */
			break;
		doing("shmdt");
		(void)shmdt(at);
	}
}

static void calls(uint64_t *s, uint32_t n, bool sleeps)
{
	while (n-- > 0) {
		switch (chance(s, 3)) {
		case 0:
			sem(s, sleeps);
			break;
		case 1:
			msg(s, sleeps);
			break;
		default:
			shm(s);
		}
	}
}

static void views(uint64_t *s)
{
	static const char *const path[] = {"/proc/sysvipc/msg", "/proc/sysvipc/sem",
					   "/proc/sysvipc/shm", "/proc/sys/kernel/sem",
					   "/proc/sys/kernel/shm_next_id"};
	char text[4096];
	int fd;

	doing("open of a view");
	fd = open(path[chance(s, 5)], O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
		;
	if (fd >= 0)
		close(fd);
}

/* ---- Processes and threads ---------------------------------------------------------------- */

_Noreturn static void execute_again(void)
{
	char seed[24], level[16];

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)state);
	snprintf(level, sizeof(level), "%d", depth + 1);
	doing("exec");
	execl("/proc/self/exe", "live-user", seed, arguments[2], arguments[3], level, (char *)NULL);
	_exit(0); /* without it the run is only shorter */
}

static void wait_for(pid_t pid, bool killed)
{
	char text[64];
	int status = 0;

	doing("waitpid");
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && !(killed && WTERMSIG(status) == SIGKILL)) {
		const char *last = "?";

		for (uint32_t i = 0; i < LIVE_SEATS; i++)
			if (board->seat[i].pid == pid)
				last = board->seat[i].doing;
		snprintf(text, sizeof(text), "a child has got signal %d", WTERMSIG(status));
		went_wrong(text, last);
	}
}

static void child(void)
{
	bool killed = chance(&state, 3) == 0;
	pid_t pid;

	doing("fork");
	pid = fork();
	if (pid < 0)
		return;
	if (pid > 0) {
		if (killed) {
			usleep(chance(&state, 3000));
			kill(pid, SIGKILL);
		}
		wait_for(pid, killed);
		return;
	}
	depth++;
	state = state * 3 | 1;
	sit_down();
	calls(&state, chance(&state, 20), false);
	switch (killed ? 3 : chance(&state, 3)) {
	case 0:
		doing("_exit");
		_exit(0);
	case 1:
		execute_again();
	default:
		if (killed)
			for (;;)
				calls(&state, 10, false);
		doing("exit");
		exit(0);
	}
}

static void vfork_child(void)
{
	volatile int before = depth;
	struct sembuf up = {0, 1, SEM_UNDO};
	volatile bool executes = chance(&state, 2);
	pid_t pid;

	doing("vfork");
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (pid == 0) {
		(void)semop(semget(1, 1, IPC_CREAT | 0600), &up, 1);
		if (executes)
			execute_again();
		_exit(0);
	}
	depth = before;
	if (pid > 0)
		wait_for(pid, false);
}

static void *thread(void *seed)
{
	uint64_t s = *(uint64_t *)seed;

	calls(&s, chance(&s, 30), false);
	return NULL;
}

static void threads(void)
{
	uint64_t seed[3];
	pthread_t t[3];
	sigset_t timer, old;
	int n = 0;

	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &timer, &old);
	for (; n < 3; n++) {
		seed[n] = state * (uint64_t)(2 * n + 3) | 1;
		if (pthread_create(&t[n], NULL, thread, &seed[n]) != 0)
			break;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	calls(&state, 20, false);
	while (n-- > 0)
		pthread_join(t[n], NULL);
}

static void step(void)
{
	bool is_deep = depth >= DEPTH_MOST;

	switch (chance(&state, 16)) {
	case 0:
	case 1:
		if (!is_deep)
			child();
		break;
	case 2:
		if (!is_deep)
			vfork_child();
		break;
	case 3:
		if (!is_deep && chance(&state, 4) == 0)
			execute_again();
		break;
	case 4:
		threads();
		break;
	case 5:
		views(&state);
		break;
	case 6:
	case 7:
		may_sleep();
		calls(&state, 5, true);
		no_sleep();
		break;
	default:
		calls(&state, 10, false);
	}
}

/* The region is cut off under a sleeper that handlers interrupt. Less private memory is allowed
 * than a region is long. */
static void sleep_until_lost(void)
{
	struct rlimit data = {1ull << 30, 1ull << 30};
	struct sembuf down = {0, -1, 0};
	int id = semget(1, 1, IPC_CREAT | 0600);

	if (id < 0 || setrlimit(RLIMIT_DATA, &data) < 0) {
		went_wrong("it could not begin", "semget");
		return;
	}
	may_sleep();
	for (;;) {
		doing(LIVE_ASLEEP);
		if (semop(id, &down, 1) == 0) {
			went_wrong("a semaphore that nobody gave", LIVE_ASLEEP);
			return;
		}
		if (errno != EINTR)
			break;
	}
	no_sleep();
	if (errno != ENOTRECOVERABLE)
		went_wrong(strerror(errno), LIVE_ASLEEP);
	if (semctl(id, 0, IPC_RMID) != -1 || errno != ENOTRECOVERABLE ||
	    shmget(IPC_PRIVATE, 1, 0600) != -1 || errno != ENOTRECOVERABLE ||
	    msgget(IPC_PRIVATE, 0600) != -1 || errno != ENOTRECOVERABLE)
		went_wrong("a call does without a region", "the end");
}

int main(int argc, char **argv)
{
	struct sigaction timer = {.sa_handler = on_alarm};
	int fd;

	if (argc != 5)
		return 2;
	arguments = argv;
	state = strtoull(argv[1], NULL, 10) | 1;
	end_ns = strtoll(argv[2], NULL, 10);
	depth = atoi(argv[4]); /* NOLINT(cert-err34-c) */
	fd = open(argv[3], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 2;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (board == MAP_FAILED)
		return 2;
	sit_down();
	sigaction(SIGALRM, &timer, NULL);
	if (depth < 0) {
		sleep_until_lost();
		doing("exit");
		return 0;
	}
	/* On a slow machine the end may have come already. */
	for (int n = 0; now_ns() < end_ns || (n < 10 && depth == 0); n++)
		step();
	doing("exit");
	return 0;
}
