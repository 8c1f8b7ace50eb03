// SPDX-License-Identifier: MIT
/*
 * Real death at each instruction: no copied region, and nobody who says who is dead. Runs with the
 * library preloaded, in a namespace whose reaper is `usysv run`. A first child is stepped through
 * one call by ptrace, which gives the addresses of its instructions; then for each n another makes
 * the call, is stopped before the n-th of them, and killed with SIGKILL. What others see must then
 * be what they would see had the call not been made, or had it returned; a process that works with
 * the same objects must come through; who slept and was granted something must be awake.
 *
 *   real-kill [-e EVERY] [-o OFFSET] [-v] [OPERATION]
 *
 * With -e each so-many-th instruction only, from that one on; without -o each run begins elsewhere,
 * and says where, so that runs add up to all of them. Half of the victims are left as zombies until
 * all is looked at: then nobody but the reaper, or who meets what they held, knows of their death.
 * The others are waited for first, and buried by that call.
 */
#include "real-kill.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_S 30
#define TEXT       512
#define TRAIL_MOST 1000000ul
#define ALL        TRAIL_MOST

struct world world;

static struct helper {
	pid_t pid;
	int ask, answer;
	bool busy;
} worker, sleeper;

static struct {
	uint64_t operations, kills, before, after;
} count;

/* Where the instructions of the call lie, in the order in which they were executed. */
static struct {
	uint64_t *at;
	unsigned long n;
} trail;

static const char *operation = "";
static unsigned long kill_at;
static pid_t victim;

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "FAILED %s, killed after %lu instructions: ", operation, kill_at);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	if (victim > 0)
		kill(victim, SIGKILL);
	if (worker.pid > 0)
		kill(worker.pid, SIGKILL);
	if (sleeper.pid > 0)
		kill(sleeper.pid, SIGKILL);
	_exit(1);
}

#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			fail("line %d: false: %s (%s)", __LINE__, #cond, strerror(errno));         \
	} while (0)

static void on_alarm(int signal)
{
	static const char text[] = "FAILED: a call of the survivors does not return\n";

	(void)signal;
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	kill(worker.pid, SIGKILL);
	kill(sleeper.pid, SIGKILL);
	_exit(1);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* ---- Who works and who sleeps ------------------------------------------------------------- */

static bool is_gone(void)
{
	return errno == EIDRM || errno == EINVAL;
}

/* Every object, if it is still there: 0, or the line that failed. */
static int work(void)
{
	struct sembuf up = {0, 1, IPC_NOWAIT}, down = {0, -1, IPC_NOWAIT};
	struct message m = {.type = 7};
	void *at;

	if (semop(world.sem, &up, 1) < 0 ? !is_gone()
					 : semop(world.sem, &down, 1) < 0 && errno != EAGAIN)
		return __LINE__;
	if (msgsnd(world.msg, &m, 5, IPC_NOWAIT) < 0) {
		if (!is_gone() && errno != EAGAIN)
			return __LINE__;
	} else if (msgrcv(world.msg, &m, 5, 7, IPC_NOWAIT) != 5) {
		return __LINE__;
	}
	at = shmat(world.shm, NULL, 0);
	if (at == (void *)-1)
		return is_gone() ? 0 : __LINE__;
	++*(volatile char *)at;
	return shmdt(at) < 0 ? __LINE__ : 0;
}

static int sleep_on_semaphore(void)
{
	struct sembuf down = {1, -1, 0};

	return semop(world.sem, &down, 1) < 0 ? errno : 0;
}

static int sleep_on_queue(void)
{
	struct message m;

	return msgrcv(world.msg, &m, sizeof(m.text), 3, 0) < 0 ? errno : 0;
}

static int sleep_for_room(void)
{
	struct message m = {4, "four"};

	return msgsnd(world.msg, &m, 10, 0) < 0 ? errno : 0;
}

static _Noreturn void be_helper(int ask, int answer)
{
	int (*const tasks[])(void) = {work, sleep_on_semaphore, sleep_on_queue, sleep_for_room};
	int task, result;

	while (read(ask, &task, sizeof(task)) == sizeof(task) &&
	       read(ask, &world, sizeof(world)) == sizeof(world)) {
		result = tasks[task]();
		if (write(answer, &result, sizeof(result)) != sizeof(result))
			break;
	}
	_exit(0);
}

static void start(struct helper *h)
{
	int to[2], from[2];

	NEED(pipe(to) == 0 && pipe(from) == 0);
	h->pid = fork();
	NEED(h->pid >= 0);
	if (h->pid == 0) {
		close(to[1]);
		close(from[0]);
		be_helper(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	h->ask = to[1];
	h->answer = from[0];
}

static void stop(struct helper *h)
{
	/* Others have inherited the pipe: its end does not end it. */
	kill(h->pid, SIGKILL);
	close(h->ask);
	NEED(waitpid(h->pid, NULL, 0) == h->pid);
	close(h->answer);
}

static void ask(struct helper *h, enum task task)
{
	int t = task;

	NEED(write(h->ask, &t, sizeof(t)) == sizeof(t));
	NEED(write(h->ask, &world, sizeof(world)) == sizeof(world));
	h->busy = true;
}

static bool has_answered(struct helper *h, int ms)
{
	struct pollfd p = {h->answer, POLLIN, 0};

	return poll(&p, 1, ms) == 1;
}

static int answer(struct helper *h)
{
	int result;

	if (!has_answered(h, DEADLINE_S * 1000))
		fail("a bystander does not come through");
	NEED(read(h->answer, &result, sizeof(result)) == sizeof(result));
	h->busy = false;
	return result;
}

/* ---- What there is to see ----------------------------------------------------------------- */

static char who(pid_t pid)
{
	return pid == 0 ? '-' : pid == victim ? 'V' : pid == getpid() ? 'C' : 'o';
}

static void describe(char *text)
{
	struct semid_ds set;
	struct msqid_ds q;
	struct shmid_ds s;
	char *p = text;
	bool waits = sleeper.busy && !has_answered(&sleeper, 0);

	if (semctl(world.sem, 0, IPC_STAT, (union semun){.ds = &set}) == 0)
		p += sprintf(p, "sem mode %o; ", (unsigned)set.sem_perm.mode);
	for (int i = 0; i < SEMS; i++) {
		int value = semctl(world.sem, i, GETVAL);

		if (value < 0)
			p += sprintf(p, "sem %d gone; ", i);
		else
			p += sprintf(p, "sem %d: %d %c %d; ", i, value,
				     who(semctl(world.sem, i, GETPID)),
				     semctl(world.sem, i, GETNCNT));
	}
	if (msgctl(world.msg, IPC_STAT, &q) < 0)
		p += sprintf(p, "msg gone; ");
	else
		p += sprintf(p, "msg: %lu of %lu bytes of %lu, %c %c; ", (unsigned long)q.msg_qnum,
			     (unsigned long)q.__msg_cbytes, (unsigned long)q.msg_qbytes,
			     who(q.msg_lspid), who(q.msg_lrpid));
	if (shmctl(world.shm, IPC_STAT, &s) < 0)
		p += sprintf(p, "shm gone; ");
	else
		p += sprintf(p, "shm: %lu, %o; ", (unsigned long)s.shm_nattch,
			     (unsigned)s.shm_perm.mode & 0777);
	p += sprintf(p, "keys %d %d %d; ", semget(KEY, 0, 0) >= 0, msgget(KEY, 0) >= 0,
		     shmget(KEY, 0, 0) >= 0);
	sprintf(p, "%s", waits ? "sleeps" : "awake");
}

/* ---- One life ----------------------------------------------------------------------------- */

static void make_world(const struct operation *o)
{
	struct message m = {1, "one"};
	unsigned short values[SEMS] = {3, 0, 0};
	int64_t end = now_ms() + DEADLINE_S * 1000;

	world.sem = semget(IPC_PRIVATE, SEMS, 0600);
	world.msg = msgget(IPC_PRIVATE, 0600);
	world.shm = shmget(IPC_PRIVATE, 4096, 0600);
	NEED(world.sem >= 0 && world.msg >= 0 && world.shm >= 0);
	NEED(semctl(world.sem, 0, SETALL, (union semun){.array = values}) == 0);
	NEED(msgsnd(world.msg, &m, 10, 0) == 0);
	if (o->task == TASK_NONE)
		return;
	if (o->task == TASK_ROOM) { /* "one" fills it */
		struct msqid_ds ds;

		NEED(msgctl(world.msg, IPC_STAT, &ds) == 0);
		ds.msg_qbytes = 10;
		NEED(msgctl(world.msg, IPC_SET, &ds) == 0);
	}
	ask(&sleeper, o->task);
	while (o->task == TASK_SEMAPHORE && semctl(world.sem, 1, GETNCNT) != 1) {
		NEED(now_ms() < end);
		poll(NULL, 0, 1);
	}
	/* There is no such count for queues: whether it sleeps yet or not is both right. */
}

static void remove_keyed(void)
{
	(void)semctl(semget(KEY, 0, 0), 0, IPC_RMID);
	(void)msgctl(msgget(KEY, 0), IPC_RMID, NULL);
	(void)shmctl(shmget(KEY, 0, 0), IPC_RMID, NULL);
}

static void end_world(void)
{
	remove_set();
	remove_queue();
	remove_segment();
	remove_keyed();
	if (sleeper.busy)
		(void)answer(&sleeper);
}

/* The victim, stopped right before its call. */
static void bear(const struct operation *o)
{
	int status;

	fflush(NULL);
	victim = fork();
	NEED(victim >= 0);
	if (victim == 0) {
		victim = getpid();
		if (o->before) {
			(void)semctl(world.sem, 0, GETVAL);
			o->before();
		}
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		kill(victim, SIGSTOP);
		o->act();
		kill(victim, SIGSTOP);
		_exit(0);
	}
	NEED(waitpid(victim, &status, 0) == victim);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		puts("processes cannot be stepped here");
		kill(worker.pid, SIGKILL);
		kill(sleeper.pid, SIGKILL);
		exit(77);
	}
	NEED(WIFSTOPPED(status));
	NEED(ptrace(PTRACE_SETOPTIONS, victim, NULL, PTRACE_O_TRACEEXEC) == 0);
}

/* How far the victim has come. */
enum progress { AT_IT, FINISHED, ENDED };

static uint64_t where(void)
{
	return (uint64_t)ptrace(PTRACE_PEEKUSER, victim, offsetof(struct user_regs_struct, rip),
				NULL);
}

/* One instruction, or up to a breakpoint. */
static enum progress go_on(int request)
{
	int status;

	for (;;) {
		NEED(ptrace(request, victim, NULL, NULL) == 0);
		NEED(waitpid(victim, &status, 0) == victim);
		if (!WIFSTOPPED(status))
			return ENDED;
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return FINISHED;
		if (WSTOPSIG(status) == SIGTRAP)
			return AT_IT;
		if (WSTOPSIG(status) == SIGSTOP)
			return FINISHED;
		if (WSTOPSIG(status) != SIGCHLD)
			fail("the victim got signal %d", WSTOPSIG(status));
	}
}

static enum progress step_all(void)
{
	enum progress p = AT_IT;

	for (trail.n = 0; p == AT_IT; trail.n++) {
		NEED(trail.n < TRAIL_MOST);
		trail.at[trail.n] = where();
		p = go_on(PTRACE_SINGLESTEP);
	}
	return p;
}

static enum progress step_to(unsigned long n)
{
	enum progress p = AT_IT;

	while (n-- > 0 && p == AT_IT)
		p = go_on(PTRACE_SINGLESTEP);
	return p;
}

/* Stops before the n-th instruction. By a breakpoint, for that many steps take their time. If the
 * call takes another way this time, it may finish. */
static enum progress run_to(unsigned long n)
{
	uint64_t at = trail.at[n];
	enum progress p = AT_IT;
	unsigned long times = 0;
	long text;

	for (unsigned long i = 0; i < n; i++)
		times += trail.at[i] == at;
	errno = 0;
	text = ptrace(PTRACE_PEEKTEXT, victim, at, NULL);
	if (errno || ptrace(PTRACE_POKETEXT, victim, at, (text & ~0xffl) | 0xcc) < 0)
		return step_to(n); /* the kernel's own page */
	for (;;) {
		p = go_on(PTRACE_CONT);
		if (p != AT_IT)
			return p;
		NEED(where() == at + 1);
		NEED(ptrace(PTRACE_POKETEXT, victim, at, text) == 0);
		NEED(ptrace(PTRACE_POKEUSER, victim, offsetof(struct user_regs_struct, rip), at) ==
		     0);
		if (times-- == 0)
			return AT_IT;
		p = go_on(PTRACE_SINGLESTEP);
		if (p != AT_IT)
			return p;
		NEED(ptrace(PTRACE_POKETEXT, victim, at, (text & ~0xffl) | 0xcc) == 0);
	}
}

static void bury(void)
{
	int status;

	while (waitpid(victim, &status, 0) == victim && WIFSTOPPED(status))
		;
}

/* Until what is to be seen is one of the two; a null one is what is to be learnt. */
static void look(const char *before, const char *after, char *seen)
{
	int64_t end = now_ms() + DEADLINE_S * 1000;

	for (;;) {
		describe(seen);
		if (!before)
			return;
		if (strcmp(seen, before) == 0) {
			count.before++;
			return;
		}
		if (strcmp(seen, after) == 0) {
			count.after++;
			return;
		}
		if (now_ms() > end)
			fail("neither before nor after\n before: %s\n after:  %s\n seen:   %s",
			     before, after, seen);
		poll(NULL, 0, 1);
	}
}

/* A victim of the operation dies before instruction n of the trail, or makes the trail. */
static void live(const struct operation *o, unsigned long n, const char *before, const char *after,
		 char *seen)
{
	bool waits = !before || n % 2;
	enum progress p;
	int rc;

	kill_at = n;
	alarm(4 * DEADLINE_S);
	make_world(o);
	bear(o);
	p = n == ALL ? step_all() : run_to(n);
	kill(victim, SIGKILL);
	if (waits && p != ENDED)
		bury();
	if (n == ALL && sleeper.busy) /* told, it has a moment to say so */
		(void)has_answered(&sleeper, DEADLINE_S * 1000);
	look(before, after, seen);
	ask(&worker, TASK_WORK);
	rc = answer(&worker);
	if (rc)
		fail("what the victim left cannot be worked with, line %d", rc);
	if (!waits && p != ENDED)
		bury();
	end_world();
	count.kills++;
}

static void try_operation(const struct operation *o, unsigned every, unsigned offset)
{
	char before[TEXT], after[TEXT], seen[TEXT];
	uint64_t was_before = count.before;

	operation = o->name;
	/* The first time a process does something differs from the next. */
	live(o, ALL, NULL, NULL, after);
	live(o, ALL, NULL, NULL, after);
	live(o, 0, NULL, NULL, before);
	live(o, 0, before, after, seen);
	for (unsigned long n = offset % every; n < trail.n; n += every)
		live(o, n, before, after, seen);
	live(o, trail.n - 1, before, after, seen);
	if (was_before == count.before)
		fail("it was never seen as before");
	if (strcmp(seen, after) != 0)
		fail("it finished and is not to be seen: %s", seen);
	count.operations++;
}

static int count_in(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	int n = 0;

	NEED(folder);
	while ((entry = readdir(folder)) != NULL)
		n += entry->d_name[0] != '.';
	closedir(folder);
	return n;
}

/* Files of segments, in a folder beside the region. */
static int count_files(void)
{
	const char *region = strchr(getenv("USYSV_REGION"), ':');
	char path[PATH_MAX], inside[2 * PATH_MAX];
	struct dirent *entry;
	DIR *folder;
	int n = 0;

	snprintf(path, sizeof(path), "%s", region ? region + 1 : "");
	if (strrchr(path, '/'))
		*strrchr(path, '/') = 0;
	folder = opendir(path);
	NEED(folder);
	while ((entry = readdir(folder)) != NULL) {
		snprintf(inside, sizeof(inside), "%s/%s", path, entry->d_name);
		n += strncmp(entry->d_name, "shm-", 4) == 0 ? count_in(inside) : 0;
	}
	closedir(folder);
	return n;
}

static void check_files(void)
{
	int64_t end = now_ms() + DEADLINE_S * 1000;

	while (count_files() > 0) {
		if (now_ms() > end)
			fail("%d files of segments are left", count_files());
		poll(NULL, 0, 10);
	}
}

int main(int argc, char **argv)
{
	bool verbose = false;
	unsigned every = 1, offset = (unsigned)getpid() ^ (unsigned)time(NULL);
	int option;

	while ((option = getopt(argc, argv, "e:o:v")) >= 0)
		if (option == 'e' && atoi(optarg) > 0)
			every = (unsigned)atoi(optarg);
		else if (option == 'o')
			offset = (unsigned)atoi(optarg);
		else if (option == 'v')
			verbose = true;
		else
			return 2;
	if (!getenv("USYSV_REGION")) {
		puts("to be run by usysv run");
		return 2;
	}
	if (every > 1)
		printf("each instruction of %u, from %u on\n", every, offset % every);
	trail.at = calloc(TRAIL_MOST, sizeof(*trail.at));
	NEED(trail.at);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, on_alarm);
	NEED(semget(KEY, 0, 0) < 0); /* the namespace is there */
	start(&worker);
	start(&sleeper);
	for (size_t i = 0; i < operation_count; i++) {
		uint64_t kills = count.kills;

		if (argv[optind] && !strstr(operations[i].name, argv[optind]))
			continue;
		try_operation(&operations[i], every, offset);
		if (verbose)
			printf("%s: killed %llu times in %lu instructions\n", operations[i].name,
			       (unsigned long long)(count.kills - kills), trail.n);
		fflush(stdout);
	}
	check_files();
	alarm(0);
	stop(&worker);
	stop(&sleeper);
	printf("%llu operations, %llu kills, seen before %llu and after %llu, 0 failures\n",
	       (unsigned long long)count.operations, (unsigned long long)count.kills,
	       (unsigned long long)count.before, (unsigned long long)count.after);
	return count.operations ? 0 : 1;
}
