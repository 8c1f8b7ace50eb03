// SPDX-License-Identifier: MIT
/*
 * How long a bystander stands still when a process is killed at the worst moment.
 *
 *   stall USYSV PRELOAD [--deaths N] [--mib N] [--only TEXT] [--realtime]
 *
 * The victim is a real process with the library preloaded, stepped by ptrace until it is where the
 * bystander must wait for it, and a few random instructions further; when the bystander sleeps the
 * victim is killed with SIGKILL. The stall is the time from just before kill() to the end of the
 * bystander's operation. Where:
 *
 *   queue  inside a section of msgsnd or msgrcv that has the lock of the queue
 *   held   it holds the semaphore's word, for a semop with SEM_UNDO
 *   set    it has the lock of the set, for somebody sleeps on the semaphore
 *   token  nowhere: it only keeps what it took with SEM_UNDO, so its death must be noticed
 *   exec   the same, and it has become a program without the library
 *   mutex  for comparison: it has a robust mutex of the C library, that is, the machine's share
 *
 * each with a reaper in office and with the reaper killed at the same moment; with a victim that is
 * gigabytes large, whose end takes the kernel a while; with a long queue, which repair walks.
 * Numbers only: nothing is demanded of them but that the bystander gets on. They include what the
 * machine does besides; see what it does to a mutex, or use --realtime, which needs privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/namespace.h"
#include "client/office.h"
#include "core/ids.h"
#include "core/region.h"

#define MS           1000000ll
#define S            1000000000ll
#define DEADLINE_NS  (120 * S)
#define STEPS_MOST   200000
#define FURTHER_MOST 300
#define DEATHS_MOST  1000
#define GOAL_NS      (10 * MS)
#define LONG_QUEUE   100000
#define TEXT_BYTES   16

enum where { WHERE_QUEUE, WHERE_HELD, WHERE_SET, WHERE_TOKEN, WHERE_EXEC, WHERE_MUTEX };

static const struct scene {
	const char *name;
	enum where where;
	bool large, is_long, no_reaper;
	int divide; /* deaths: fewer, where each takes long */
} scenes[] = {
	{"mutex", WHERE_MUTEX, false, false, false, 1},
	{"mutex, large victim", WHERE_MUTEX, true, false, false, 8},
	{"queue", WHERE_QUEUE, false, false, false, 1},
	{"queue, large victim", WHERE_QUEUE, true, false, false, 8},
	{"queue of 100000", WHERE_QUEUE, false, true, false, 4},
	{"queue, reaper killed", WHERE_QUEUE, false, false, true, 2},
	{"queue, large, reaper killed", WHERE_QUEUE, true, false, true, 8},
	{"queue of 100000, large, reaper killed", WHERE_QUEUE, true, true, true, 8},
	{"held", WHERE_HELD, false, false, false, 1},
	{"held, large victim", WHERE_HELD, true, false, false, 8},
	{"held, reaper killed", WHERE_HELD, false, false, true, 2},
	{"held, large, reaper killed", WHERE_HELD, true, false, true, 8},
	{"set", WHERE_SET, false, false, false, 1},
	{"set, large victim", WHERE_SET, true, false, false, 8},
	{"set, reaper killed", WHERE_SET, false, false, true, 2},
	{"token", WHERE_TOKEN, false, false, false, 1},
	{"token, large victim", WHERE_TOKEN, true, false, false, 8},
	{"exec", WHERE_EXEC, false, false, false, 1},
	{"token, reaper killed", WHERE_TOKEN, false, false, true, 4},
	{"token, large, reaper killed", WHERE_TOKEN, true, false, true, 8},
};

/* What the processes share beside the namespace. */
static struct shared {
	int32_t queue[2]; /* short and long */
	int32_t set[2];   /* nobody sleeps on the first */
	int32_t token;
	int64_t done_ns; /* when the bystander's last operation ended */
	uint32_t done;   /* its operations */
	uint32_t begun;
	uint32_t ready; /* the victim, or whoever fills the queue, is where it should be */
	uint32_t stop;
	int64_t bytes; /* of memory that a victim touches */
	pthread_mutex_t mutex;
} * shared;

static const char *usysv, *preload;
static char base_dir[PATH_MAX], self_path[PATH_MAX];
static const unsigned char *region;
static pid_t victim, bystander, sleeper;
static uint64_t random_state = 1;

static uint32_t rnd(uint32_t below)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % below;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * S + t.tv_nsec;
}

static void pause_us(long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

/* ---- The end ----------------------------------------------------------------------------- */

static void end_process(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
}

static void clean_up(void)
{
	char command[PATH_MAX + 64];
	pid_t reaper = region ? (pid_t)office_pid(region) : 0;

	end_process(&victim);
	end_process(&bystander);
	end_process(&sleeper);
	if (reaper) /* ours, for we are a subreaper */
		kill(reaper, SIGKILL);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	snprintf(command, sizeof(command), "exec rm -rf '%s'", base_dir);
	if (base_dir[0] && system(command) != 0)
		fprintf(stderr, "stall: %s is left\n", base_dir);
}

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "stall: %s (%s)\n", what, strerror(errno));
	if (base_dir[0])
		clean_up();
	exit(1);
}

static void on_signal(int signal)
{
	(void)signal;
	clean_up();
	_exit(1);
}

/* ---- Roles: programs with the library ------------------------------------------------------ */

struct text {
	long type;
	char text[TEXT_BYTES];
};

static void send_and_receive(int queue, long type)
{
	struct text m = {.type = type};

	if ((msgsnd(queue, &m, sizeof(m.text), IPC_NOWAIT) < 0 && errno != EAGAIN) ||
	    (msgrcv(queue, &m, sizeof(m.text), type, IPC_NOWAIT) < 0 && errno != ENOMSG))
		fail("messages");
}

static void up_and_down(int set, short flags)
{
	struct sembuf up = {0, 1, flags}, down = {0, -1, flags};

	if (semop(set, &up, 1) < 0 || semop(set, &down, 1) < 0)
		fail("semop");
}

static void operate(enum where where, bool is_long, long type)
{
	struct sembuf down = {0, -1, SEM_UNDO}, up = {0, 1, SEM_UNDO};

	switch (where) {
	case WHERE_QUEUE:
		send_and_receive(shared->queue[is_long], type);
		break;
	case WHERE_HELD:
		up_and_down(shared->set[0], SEM_UNDO);
		break;
	case WHERE_SET:
		up_and_down(shared->set[1], 0);
		break;
	case WHERE_MUTEX:
		if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD)
			pthread_mutex_consistent(&shared->mutex);
		shared->done_ns = now_ns();
		__atomic_fetch_add(&shared->done, 1, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&shared->mutex);
		pause_us(1000);
		break;
	default:
		if (semop(shared->token, &down, 1) < 0)
			fail("semop");
		/* The victim's turn comes while it is here. */
		shared->done_ns = now_ns();
		__atomic_fetch_add(&shared->done, 1, __ATOMIC_RELEASE);
		if (semop(shared->token, &up, 1) < 0)
			fail("semop");
		pause_us(1000);
		break;
	}
}

static void grow_large(void)
{
	size_t bytes = (size_t)shared->bytes;

	if (bytes) {
		unsigned char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			fail("mmap");
		madvise(p, bytes, MADV_NOHUGEPAGE); /* small pages take longest to free */
		for (size_t i = 0; i < bytes; i += PAGE_BYTES)
			p[i] = 1;
	}
}

/* What the victim is after exec. */
_Noreturn static void play_idle(void)
{
	grow_large();
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		pause();
}

_Noreturn static void play_victim(enum where where, bool is_long)
{
	struct sembuf down = {0, -1, SEM_UNDO};

	if (where != WHERE_EXEC)
		grow_large();
	if (where == WHERE_TOKEN || where == WHERE_EXEC) {
		while (semop(shared->token, &down, 1) < 0)
			if (errno != EINTR)
				fail("semop");
		unsetenv("LD_PRELOAD");
		if (where == WHERE_EXEC)
			execl(self_path, "stall", "--idle", (char *)NULL);
		__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	if (where == WHERE_MUTEX) {
		if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD)
			pthread_mutex_consistent(&shared->mutex);
		__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	operate(where, is_long, 2);
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	for (;;)
		operate(where, is_long, 2);
}

_Noreturn static void play_bystander(enum where where, bool is_long)
{
	while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE)) {
		__atomic_fetch_add(&shared->begun, 1, __ATOMIC_RELEASE);
		operate(where, is_long, 3);
		if (where >= WHERE_TOKEN)
			continue;
		shared->done_ns = now_ns();
		__atomic_fetch_add(&shared->done, 1, __ATOMIC_RELEASE);
		pause_us(200);
	}
	exit(0);
}

/* Sleeps on the second set, so that its semaphore belongs to the lock of the set. */
_Noreturn static void play_sleeper(void)
{
	struct sembuf down = {0, -1000, 0};

	(void)semop(shared->set[1], &down, 1); /* ends with the set, or with this process */
	exit(0);
}

_Noreturn static void play_setup(void)
{
	struct text m = {.type = 1};
	struct msqid_ds ds;

	for (int i = 0; i < 2; i++) {
		shared->queue[i] = msgget(IPC_PRIVATE, 0600);
		shared->set[i] = semget(IPC_PRIVATE, 1, 0600);
		if (shared->queue[i] < 0 || shared->set[i] < 0)
			fail("objects");
	}
	shared->token = semget(IPC_PRIVATE, 1, 0600);
	if (shared->token < 0 || semctl(shared->token, 0, SETVAL, 1) < 0)
		fail("objects");
	if (msgctl(shared->queue[1], IPC_STAT, &ds) < 0)
		fail("IPC_STAT");
	for (int i = 0; i < LONG_QUEUE; i++) {
		m.type = i % 10 == 0 ? 4 + i % 1000 : 1;
		if (msgsnd(shared->queue[1], &m, sizeof(m.text), IPC_NOWAIT) < 0)
			fail("the long queue");
	}
	exit(0);
}

/* ---- Starting and stepping --------------------------------------------------------------- */

static pid_t start_role(const char *role, enum where where, bool is_long)
{
	char a[8], b[8];
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(a, sizeof(a), "%d", where);
		snprintf(b, sizeof(b), "%d", is_long);
		setenv("LD_PRELOAD", preload, 1);
		execl(self_path, "stall", role, a, b, (char *)NULL);
		_exit(126);
	}
	if (pid < 0)
		fail("fork");
	return pid;
}

/* Reapers that were killed, or have left. */
static void bury_reapers(void)
{
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid) {
		if (info.si_pid == victim || info.si_pid == bystander || info.si_pid == sleeper)
			fail("a process ended before its time");
		waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
}

static void wait_ready(void)
{
	int64_t end = now_ns() + DEADLINE_NS;

	while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE)) {
		if (now_ns() > end)
			fail("the victim is not ready");
		bury_reapers();
		pause_us(500);
	}
}

static char state_of(pid_t pid)
{
	char path[64], line[512], *end, state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f) && (end = strrchr(line, ')')) && end[1] == ' ')
		state = end[2];
	fclose(f);
	return state;
}

/* The bystander has begun what it cannot end, and sleeps. */
static void wait_blocked(void)
{
	int64_t end = now_ns() + DEADLINE_NS;
	uint32_t done;

	do {
		done = __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE);
		if (now_ns() > end)
			fail("the bystander does not wait");
		pause_us(2000);
	} while (state_of(bystander) != 'S' ||
		 __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) != done);
}

static uint32_t link_of(pid_t tid)
{
	for (uint32_t ix = 0; ix < region_group_count(region) * GROUP_SPAN; ix++) {
		const struct thread_shm *t = region_thread(region, ix);

		if (t && (CLAIM_GEN(load_acquire(&t->claim)) & 1) && t->tid == (uint32_t)tid)
			return ix + 1;
	}
	fail("the victim has no thread slot");
}

static bool is_there(const struct scene *s, uint32_t link)
{
	uint32_t ix;
	const struct set_shm *set;
	const struct sem_shm *sem;
	uint64_t word;

	switch (s->where) {
	case WHERE_QUEUE:
		ix = (uint32_t)shared->queue[s->is_long] & (OBJECT_CAPACITY - 1);
		return (load_acquire((const uint32_t *)region_at(region,
								 ids_object_lock(FAMILY_MSG, ix))) &
			RLOCK_OWNER) == link;
	case WHERE_SET:
		ix = (uint32_t)shared->set[1] & (OBJECT_CAPACITY - 1);
		return (load_acquire((const uint32_t *)region_at(region,
								 ids_object_lock(FAMILY_SEM, ix))) &
			RLOCK_OWNER) == link;
	default:
		ix = (uint32_t)shared->set[0] & (OBJECT_CAPACITY - 1);
		set = region_set(region, ix);
		sem = region_block(region, set->words_ref, sizeof(*sem));
		word = load_acquire(&sem->word);
		return (word & SEM_HELD) && SEM_WORD_TAG(word) == link - 1;
	}
}

static void step(void)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, victim, NULL, NULL) < 0 ||
	    waitpid(victim, &status, 0) != victim || !WIFSTOPPED(status))
		fail("the victim cannot be stepped");
}

/* Steps the victim to where it must not die, and then some of the way. It stays stopped. */
static void step_there(const struct scene *s)
{
	uint32_t link = link_of(victim), further = rnd(FURTHER_MOST);
	int status;

	if (ptrace(PTRACE_ATTACH, victim, NULL, NULL) < 0 || waitpid(victim, &status, 0) != victim)
		fail("ptrace");
	for (int again = 0;; again++) {
		for (int n = 0; !is_there(s, link); n++) {
			if (n > STEPS_MOST)
				fail("the victim does not come to where it should die");
			step();
		}
		for (; further > 0 && is_there(s, link); further--)
			step();
		if (is_there(s, link))
			return;
		further = rnd(FURTHER_MOST >> (again < 8 ? again : 8)); /* it was over before */
	}
}

/* ---- Measuring --------------------------------------------------------------------------- */

/* Who enters misses the reaper. The victim may have entered before it was quite dead, and who waits
 * for a lock does not look. */
static void let_one_enter(void)
{
	pid_t pid = start_role("--enter", WHERE_QUEUE, false);

	if (waitpid(pid, NULL, 0) != pid)
		fail("waitpid");
}

static void wait_office(void)
{
	int64_t begin = now_ns(), look = begin + S;

	while (!office_pid(region)) {
		if (now_ns() > begin + DEADLINE_NS)
			fail("there is no reaper");
		if (now_ns() > look) {
			let_one_enter();
			look = now_ns() + S;
		}
		bury_reapers();
		pause_us(1000);
	}
}

static int64_t one_death(const struct scene *s)
{
	int64_t killed_ns, end, stall;
	uint32_t done;
	pid_t reaper;

	shared->ready = 0;
	victim = start_role("--victim", s->where, s->is_long);
	wait_ready();
	if (s->where < WHERE_TOKEN)
		step_there(s);
	wait_blocked();
	if (s->where != WHERE_MUTEX)
		wait_office();
	reaper = s->no_reaper ? (pid_t)office_pid(region) : 0;
	done = __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE);
	if (reaper > 0)
		kill(reaper, SIGKILL);
	killed_ns = now_ns();
	kill(victim, SIGKILL);
	for (end = killed_ns + DEADLINE_NS;
	     __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) == done;) {
		if (now_ns() > end)
			fail("the bystander does not get on");
		pause_us(200);
	}
	stall = shared->done_ns - killed_ns;
	/* A later operation may have ended already: then the first was over before it. */
	waitpid(victim, NULL, 0);
	victim = 0;
	bury_reapers();
	return stall;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void measure(const struct scene *s, int deaths, int64_t large_bytes)
{
	static int64_t stall[DEATHS_MOST];
	int64_t goal = GOAL_NS + (s->is_long ? 150ll * LONG_QUEUE : 0);
	int n = deaths / s->divide > 4 ? deaths / s->divide : 4, over = 0;

	shared->bytes = s->large ? large_bytes : 0;
	shared->stop = 0;
	bystander = start_role("--bystander", s->where, s->is_long);
	if (s->where == WHERE_SET)
		sleeper = start_role("--sleeper", s->where, false);
	if (s->where != WHERE_MUTEX)
		wait_office();
	for (int i = 0; i < n; i++) {
		stall[i] = one_death(s);
		over += stall[i] > goal;
	}
	end_process(&bystander);
	end_process(&sleeper);
	qsort(stall, (size_t)n, sizeof(stall[0]), compare);
	printf("%-40s %6d %9.3f %9.3f %9.3f %6.1f%% over %lld ms\n", s->name, n,
	       (double)stall[n / 2] / MS, (double)stall[(n * 99 - 1) / 100] / MS,
	       (double)stall[n - 1] / MS, 100.0 * over / n, (long long)(goal / MS));
	fflush(stdout);
}

/* ---- Beginning --------------------------------------------------------------------------- */

static void look_at_region(void)
{
	struct namespace_place place;
	const char *why = "";
	void *p;
	int fd;

	if (namespace_locate("stall", &place, &why) < 0 ||
	    namespace_open(&place, NAMESPACE_LOOK, &fd, &why) < 0)
		fail(why);
	p = mmap(NULL, REGION_BYTES, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		fail("mmap");
	region = p;
}

static void map_shared(int fd)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		fail("mmap");
}

static void play(int argc, char **argv)
{
	const char *fd = getenv("STALL_SHARED");
	enum where where = argc > 3 ? (enum where)atoi(argv[2]) : WHERE_QUEUE;
	bool is_long = argc > 3 && atoi(argv[3]);

	if (!fd) {
		fprintf(stderr,
			"usage: stall USYSV PRELOAD [--deaths N] [--mib N] [--only TEXT]\n");
		exit(2);
	}
	map_shared(atoi(fd));
	if (strcmp(argv[1], "--victim") == 0)
		play_victim(where, is_long);
	if (strcmp(argv[1], "--bystander") == 0)
		play_bystander(where, is_long);
	if (strcmp(argv[1], "--sleeper") == 0)
		play_sleeper();
	if (strcmp(argv[1], "--idle") == 0)
		play_idle();
	if (strcmp(argv[1], "--enter") == 0)
		exit(semctl(shared->token, 0, GETVAL) < 0);
	play_setup();
}

static void set_up(void)
{
	pthread_mutexattr_t robust;
	char text[16], limit[32];
	int fd = memfd_create("stall", 0), status;
	pid_t pid;

	snprintf(base_dir, sizeof(base_dir), "%s/usysv-stall-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0 || !mkdtemp(base_dir))
		fail("set-up");
	map_shared(fd);
	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setpshared(&robust, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &robust);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("STALL_SHARED", text, 1);
	setenv("USYSV_DIR", base_dir, 1);
	setenv("USYSV_NAMESPACE", "stall", 1);
	unsetenv("USYSV_REGION");
	unsetenv("LD_PRELOAD");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGHUP, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	snprintf(limit, sizeof(limit), "msgmnb=%d", LONG_QUEUE * (TEXT_BYTES + 1));
	pid = fork();
	if (pid == 0) {
		execl(usysv, usysv, "run", "-n", "stall", "-l", limit, "--", self_path, "--set-up",
		      (char *)NULL);
		_exit(126);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		fail("set-up");
	look_at_region();
}

/* What may be touched without pressing others out. */
static int64_t memory_to_spare(void)
{
	long long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lld kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024 / 3;
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
	int64_t large = 3ll << 30;
	const char *only = "";
	int deaths = 200;

	if (n < 0)
		return 2;
	if (argc < 3 || argv[1][0] == '-')
		play(argc, argv);
	usysv = argv[1];
	preload = argv[2];
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "--realtime") == 0) {
			if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}) < 0)
				perror("stall: --realtime");
			continue;
		}
		if (i + 1 == argc)
			return 2;
		if (strcmp(argv[i], "--deaths") == 0)
			deaths = atoi(argv[++i]);
		else if (strcmp(argv[i], "--mib") == 0)
			large = (int64_t)atoi(argv[++i]) << 20;
		else if (strcmp(argv[i], "--only") == 0)
			only = argv[++i];
		else
			return 2;
	}
	if (deaths > DEATHS_MOST)
		deaths = DEATHS_MOST;
	if (large > memory_to_spare())
		large = memory_to_spare();
	set_up();
	printf("a large victim has %lld MiB of its own\n", (long long)(large >> 20));
	printf("%-40s %6s %9s %9s %9s\n", "stall in ms", "deaths", "median", "p99", "max");
	for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		if (strncmp(scenes[i].name, only, strlen(only)) == 0)
			measure(&scenes[i], deaths, large);
	clean_up();
	return 0;
}
