// SPDX-License-Identifier: MIT
/*
 * The warden of a storm (storm.h): starts everybody, kills, and sees to it that the rounds end.
 *
 *   storm USYSV PRELOAD [--seconds N] [--seed N] [--round MS] [--wait]
 *
 * It has no part in the namespace: it looks at the region from outside, to find the reaper and to
 * see at the end that nothing is left. It is the subreaper of all that it has started, and of the
 * reapers that they start. --wait: on failure everything stays as it is, for a debugger.
 */
#include "storm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/namespace.h"
#include "client/office.h"
#include "core/region.h"

#define MS 1000000ll
#define S  1000000000ll

#define STUCK_NS    (20 * S) /* nobody needs so long for anything but a message */
#define DEADLINE_NS (90 * S)
#define STOPS_MOST  8
#define KILLS_LEAST 40 /* in a round, if that does not take too long */

static const char *usysv, *preload;
static char base_dir[PATH_MAX];
static int ledger_fd, said_fd; /* what the processes write to standard error */
static off_t said_so_far;
static pid_t nursery[NURSERIES], checker;
static uint64_t random_state;
static bool waits_when_failed;
static const unsigned char *region;
static struct {
	unsigned rounds, kills, nurseries, reapers, stops, checks;
	int64_t longest_vacancy_ns;
} did;
static int64_t vacant_since_ns;
static struct {
	pid_t pid;
	int64_t until_ns;
} stopped[STOPS_MOST];

/* ---- The end, whatever it is like -------------------------------------------------------- */

/* Passes on what the processes have said. True: that the region is damaged, too. */
static bool pass_on(void)
{
	char text[4096];
	bool damaged = false;
	ssize_t n;

	while ((n = pread(said_fd, text, sizeof(text) - 1, said_so_far)) > 0) {
		const char *last = memrchr(text, '\n', (size_t)n);

		/* whole lines, so that nothing is looked for in halves */
		n = last ? last + 1 - text : n;
		text[n] = 0;
		said_so_far += n;
		fputs(text, stderr);
		damaged |= strstr(text, "is damaged") != NULL;
	}
	return damaged;
}

static bool is_ours(pid_t pid)
{
	return pid > 1 && getpgid(pid) == getpgrp();
}

static void kill_one(pid_t pid)
{
	if (is_ours(pid))
		kill(pid, SIGKILL);
}

/* Processes that this one inherits, whoever started them: reapers. */
static void kill_children(void)
{
	char path[64];
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (f)
		fclose(f);
}

static void remove_tree(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[PATH_MAX];

	while (d && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		if (unlink(path) < 0)
			remove_tree(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static void clean_up(void)
{
	for (int i = 0; i < NURSERIES; i++)
		kill_one(nursery[i]);
	for (int i = 0; ledger && i < SEATS; i++)
		kill_one(ledger->seat[i].pid);
	/* Their children may become ours one after the other. */
	for (int tries = 0; tries < 500; tries++) {
		kill_children();
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
			break;
		storm_sleep_ms(10);
	}
	if (base_dir[0])
		remove_tree(base_dir);
}

/* Runs `usysv ARG...`, its output on standard error. */
static pid_t start_usysv(const char *a, const char *b, const char *c)
{
	pid_t pid = fork();

	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl(usysv, usysv, a, b, c, (char *)NULL);
		_exit(126);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static void print_file(pid_t pid, const char *name)
{
	char path[64], line[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		fprintf(stderr, " %s: %.*s", name, (int)strcspn(line, "\n"), line);
	if (f)
		fclose(f);
}

/* Who is there, and what he does. */
static void describe(void)
{
	static const char *const doing[] = {"something", "wants tokens", "sends", "receives",
					    "waits for a child"};

	for (int i = 0; i < SEATS; i++) {
		const struct seat *s = &ledger->seat[i];

		if (!is_ours(s->pid))
			continue;
		fprintf(stderr,
			"  seat %2d: process %d, identity %u, %s, queue %u, type %lld, for %lld "
			"ms;",
			i, (int)s->pid, s->identity, doing[s->doing % 5], s->queue,
			(long long)s->type, (long long)((storm_now_ns() - s->since_ns) / MS));
		print_file(s->pid, "wchan");
		print_file(s->pid, "syscall");
		fputc('\n', stderr);
	}
	for (uint32_t g = 0; region && g < region_group_count(region); g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++) {
			uint32_t ix = g * GROUP_SPAN + k;
			const struct thread_shm *t = region_thread(region, ix);
			uint64_t claim = load_acquire(&t->claim);
			const struct proc_shm *p = region_proc(region, t->proc_ix);

			if (!(CLAIM_GEN(claim) & 1))
				continue;
			fprintf(stderr,
				"  thread %u of process %u (%u): life %#x, claimer %u, held %#x, "
				"op %u "
				"of family %u object %u, hold %#x, victims %u %u, waiter %#x of "
				"family %u object %u\n",
				ix, t->proc_ix, p ? p->pid : 0,
				load_acquire(region_life(region, ix)), CLAIM_CLAIMER(claim),
				t->held, t->op, t->op_family, t->op_ix, t->hold, t->victim_link,
				t->victim_proc_link, t->st, t->family, t->object_ix);
		}
	wait_for(start_usysv("ls", NULL, NULL));
	wait_for(start_usysv("ls", "-n", "storm"));
	wait_for(start_usysv("check", "-n", "storm"));
}

_Noreturn static void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn static void give_up(const char *format, ...)
{
	va_list args;

	(void)pass_on();
	fprintf(stderr, "storm: FAILED in round %u (seed %u): ", did.rounds, ledger->seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	describe();
	if (waits_when_failed) {
		fprintf(stderr, "storm: USYSV_DIR=%s; waiting (process %d)\n", base_dir,
			(int)getpid());
		pause();
	}
	clean_up();
	exit(1);
}

static void on_signal(int signal)
{
	(void)signal;
	clean_up();
	_exit(1);
}

/* ---- Starting ---------------------------------------------------------------------------- */

static pid_t start_role(const char *role, const char *argument)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("LD_PRELOAD", preload, 1);
		dup2(said_fd, STDERR_FILENO);
		execl(self_path, "storm", role, argument, (char *)NULL);
		_exit(126);
	}
	if (pid < 0)
		give_up("fork: %s", strerror(errno));
	return pid;
}

static void start_nursery(int i)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", i);
	nursery[i] = start_role("--nursery", text);
}

static void look_at_end(pid_t pid, int status)
{
	if (pid == checker) {
		checker = 0;
		if (status)
			give_up("`usysv check' found something during the storm: status %#x",
				status);
		did.checks++;
		return;
	}
	for (int i = 0; i < NURSERIES; i++)
		if (pid == nursery[i]) {
			nursery[i] = 0;
			if (status && status != SIGKILL)
				give_up("nursery %d ended with status %#x", i, status);
			return;
		}
	if (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL)
		give_up("process %d ended with status %#x", (int)pid, status);
}

/* Waits for who has ended; whoever sat somewhere does so no more. */
static void reap(void)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		look_at_end(pid, status);
	for (int i = 0; i < SEATS; i++) {
		int32_t seen = __atomic_load_n(&ledger->seat[i].pid, __ATOMIC_ACQUIRE);

		if (seen && kill(seen, 0) < 0 && errno == ESRCH)
			__atomic_compare_exchange_n(&ledger->seat[i].pid, &seen, 0, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
	if (__atomic_load_n(&ledger->failed, __ATOMIC_ACQUIRE))
		give_up("a process has said why");
}

static void run_role(const char *role)
{
	pid_t pid = start_role(role, NULL), ended;
	int64_t end = storm_now_ns() + DEADLINE_NS;
	int status;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
		reap();
		if (storm_now_ns() > end)
			give_up("%s does not end", role);
		storm_sleep_ms(2);
	}
	if (ended < 0 ? errno != ECHILD : status != 0) /* reap() may have had it, and looked */
		give_up("%s ended with status %#x", role, status);
}

/* ---- The storm --------------------------------------------------------------------------- */

static uint32_t rnd(uint32_t below)
{
	return storm_random(&random_state, below);
}

static bool seats_are_empty(int from, int to)
{
	for (int i = from; i < to; i++)
		if (__atomic_load_n(&ledger->seat[i].pid, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static void kill_nursery(int i)
{
	int64_t end = storm_now_ns() + STUCK_NS;

	did.nurseries++;
	kill_one(nursery[i]);
	while (nursery[i] || !seats_are_empty(i * PLACES * 2, (i + 1) * PLACES * 2)) {
		if (storm_now_ns() > end)
			give_up("those of a killed nursery do not end");
		storm_sleep_ms(1);
		reap();
	}
	start_nursery(i);
}

static bool is_my_child(pid_t pid)
{
	char path[64], line[512], *end;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(line, sizeof(line), f) && (end = strrchr(line, ')')))
		(void)sscanf(end + 1, " %*c %d", &parent);
	fclose(f);
	return parent == getpid();
}

static void kill_reaper(void)
{
	pid_t pid = (pid_t)office_pid(region);

	if (!pid || !is_my_child(pid))
		return;
	did.reapers++;
	kill(pid, SIGKILL);
	if (!vacant_since_ns)
		vacant_since_ns = storm_now_ns();
}

static void look_at_office(void)
{
	int64_t for_ns;

	if (!vacant_since_ns)
		return;
	for_ns = storm_now_ns() - vacant_since_ns;
	if (office_pid(region)) {
		vacant_since_ns = 0;
		if (for_ns > did.longest_vacancy_ns)
			did.longest_vacancy_ns = for_ns;
	} else if (for_ns > STUCK_NS) {
		give_up("nobody takes the office of the killed reaper");
	}
}

static void stop_for_a_while(pid_t pid)
{
	for (int i = 0; i < STOPS_MOST; i++)
		if (!stopped[i].pid) {
			stopped[i].pid = pid;
			stopped[i].until_ns = storm_now_ns() + 5 * MS + rnd(40) * MS;
			did.stops++;
			kill(pid, SIGSTOP);
			return;
		}
}

static void let_go_on(int64_t now)
{
	for (int i = 0; i < STOPS_MOST; i++)
		if (stopped[i].pid && now > stopped[i].until_ns) {
			if (is_ours(stopped[i].pid))
				kill(stopped[i].pid, SIGCONT);
			stopped[i].pid = 0;
		}
}

/* Messages may not come for long: who waits for them is asked for reasons in the reckoning. */
static void look_for_stuck(int64_t now)
{
	for (int i = 0; i < SEATS; i++) {
		const struct seat *s = &ledger->seat[i];
		uint32_t doing = __atomic_load_n(&s->doing, __ATOMIC_ACQUIRE);

		if (s->pid && (doing == DOING_TOKEN || doing == DOING_OTHER) &&
		    now - s->since_ns > STUCK_NS && is_ours(s->pid))
			give_up("process %d does not get on", (int)s->pid);
	}
}

static bool is_crowded(void)
{
	int n = 0;

	for (int i = 0; i < SEATS; i++)
		n += i % (PLACES * 2) < PLACES &&
		     __atomic_load_n(&ledger->seat[i].pid, __ATOMIC_ACQUIRE);
	return n > NURSERIES * PLACES / 2;
}

/* On a busy machine too, most get to do something before they are killed. */
static bool is_ripe(const struct seat *s)
{
	return rnd(4) == 0 || __atomic_load_n(&s->rounds, __ATOMIC_RELAXED) >= rnd(100);
}

static void strike(void)
{
	uint32_t what = rnd(1000);
	int seat = (int)rnd(SEATS);
	pid_t pid = __atomic_load_n(&ledger->seat[seat].pid, __ATOMIC_ACQUIRE);

	for (int tries = 0; tries < 8 && !pid; tries++) {
		seat = (int)rnd(SEATS);
		pid = __atomic_load_n(&ledger->seat[seat].pid, __ATOMIC_ACQUIRE);
	}
	if (!is_crowded())
		return;

	if (what < 3) {
		kill_nursery((int)rnd(NURSERIES));
	} else if (what < 20) {
		kill_reaper();
	} else if (what < 22 && !checker) {
		checker = start_usysv("check", "-n", "storm");
	} else if (seat % (PLACES * 2) != 0 && is_ripe(&ledger->seat[seat]) && is_ours(pid)) {
		if (what < 100) {
			stop_for_a_while(pid);
			return;
		}
		did.kills++;
		kill(pid, SIGKILL);
	}
}

/* On a machine so busy that little has happened, it lasts longer. */
static void storm(int64_t end_ns)
{
	int64_t now = storm_now_ns(), latest_ns = end_ns + 3 * (end_ns - now);
	unsigned enough = did.kills + KILLS_LEAST;

	while ((now = storm_now_ns()) < end_ns || (did.kills < enough && now < latest_ns)) {
		struct timespec pause = {0, 300000l + rnd(4000000)};

		nanosleep(&pause, NULL);
		for (uint32_t n = 1 + rnd(3); n > 0; n--)
			strike();
		reap();
		let_go_on(now);
		look_at_office();
		look_for_stuck(now);
		for (int i = 0; i < NURSERIES; i++)
			if (!nursery[i])
				give_up("nursery %d has ended", i);
	}
	let_go_on(INT64_MAX);
}

/* ---- What is left ------------------------------------------------------------------------ */

static const struct namespace_place *place(void)
{
	static struct namespace_place found;
	const char *why = "";

	if (!found.dir[0] && namespace_locate("storm", &found, &why) < 0)
		give_up("%s", why);
	return &found;
}

static void look_at_region(void)
{
	const char *why = "";
	void *p;
	int fd;

	if (namespace_open(place(), NAMESPACE_LOOK, &fd, &why) < 0)
		give_up("the namespace cannot be opened: %s", why);
	p = mmap(NULL, REGION_BYTES, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		give_up("mmap: %s", strerror(errno));
	region = p;
}

/* The first file in the namespace's directory that is not the region; those of segments lie in a
 * directory of their own, which stays. */
static bool file_left(const char *dir, char *ret, size_t size)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[PATH_MAX];
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, "region") == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= (int)sizeof(path))
			continue;
		found = e->d_type == DT_DIR ? file_left(path, ret, size)
					    : snprintf(ret, size, "%s", path) > 0;
	}
	if (d)
		closedir(d);
	return found;
}

/* What of the registry or of the directory is left that should be free. Null: nothing. */
static const char *leftover(void)
{
	static char text[PATH_MAX];

	for (uint32_t i = 0; i < region_proc_count(region); i++) {
		const struct proc_shm *p = region_proc(region, i);

		if (load_acquire(&p->state) == PROC_FREE || (load_acquire(&p->flags) & PROC_REAPER))
			continue;
		snprintf(text, sizeof(text), "process slot %u (%u)", i, p->pid);
		return text;
	}
	for (uint32_t i = 0; i < region_group_count(region) * GROUP_SPAN; i++) {
		const struct thread_shm *t = region_thread(region, i);
		const struct proc_shm *p = t ? region_proc(region, t->proc_ix) : NULL;

		if (!t || !(CLAIM_GEN(load_acquire(&t->claim)) & 1) ||
		    (p && load_acquire(&p->state) != PROC_FREE))
			continue;
		snprintf(text, sizeof(text), "thread slot %u", i);
		return text;
	}
	return file_left(place()->dir, text, sizeof(text)) ? text : NULL;
}

static void expect_nothing_left(void)
{
	int64_t end = storm_now_ns() + STUCK_NS;
	const char *what;
	int status;

	while ((what = leftover())) {
		reap();
		if (storm_now_ns() > end)
			give_up("the round has ended, and something is left: %s", what);
		storm_sleep_ms(5);
	}
	while (checker) { /* one that was started during the storm */
		reap();
		storm_sleep_ms(1);
	}
	status = wait_for(start_usysv("check", "-n", "storm"));
	if (status)
		give_up("`usysv check' says that not all is well: status %#x", status);
}

static void one_round(int64_t end_ns)
{
	int64_t end;

	did.rounds++;
	/* A new page, but for what counts over all rounds. */
	memset(ledger->inside, 0, sizeof(ledger->inside));
	memset(ledger->seat, 0, sizeof(ledger->seat));
	fallocate(ledger_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)offsetof(struct ledger, account), (off_t)sizeof(ledger->account));
	ledger->identities = 0;
	ledger->stop = 0;
	run_role("--set-up");
	if (!region)
		look_at_region();
	for (int i = 0; i < NURSERIES; i++)
		start_nursery(i);
	storm(end_ns);
	__atomic_store_n(&ledger->stop, 1, __ATOMIC_RELEASE);
	run_role("--reckon");
	for (end = storm_now_ns() + STUCK_NS; nursery[0] || nursery[1]; storm_sleep_ms(1)) {
		reap();
		if (storm_now_ns() > end)
			give_up("a nursery does not end");
	}
	expect_nothing_left();
}

/* The namespace was made on a program's behalf: it goes by itself, or with `usysv rm'. */
static void expect_namespace_goes(bool by_itself)
{
	int64_t end = storm_now_ns() + STUCK_NS;
	int status;

	run_role("--finish");
	if (!by_itself) {
		kill_reaper();
		while (office_pid(region) && storm_now_ns() < end)
			reap();
		status = wait_for(start_usysv("rm", "storm", NULL));
		if (status)
			give_up("`usysv rm' failed: status %#x", status);
	}
	while (access(place()->root, F_OK) == 0) {
		reap();
		if (storm_now_ns() > end)
			give_up("%s is still there", place()->root);
		storm_sleep_ms(10);
	}
}

/* ---- Roles ------------------------------------------------------------------------------- */

static void map_ledger(void)
{
	void *p = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED, ledger_fd, 0);

	if (p == MAP_FAILED) {
		perror("storm: ledger");
		exit(2);
	}
	ledger = p;
}

_Noreturn static void play(int argc, char **argv)
{
	const char *fd = getenv("STORM_LEDGER");

	if (!fd) {
		fprintf(stderr,
			"usage: storm USYSV PRELOAD [--seconds N] [--seed N] [--round MS]\n");
		exit(2);
	}
	ledger_fd = atoi(fd);
	map_ledger();
	if (strcmp(argv[1], "--nursery") == 0 && argc > 2)
		storm_nursery((uint32_t)atoi(argv[2]));
	if (strcmp(argv[1], "--image") == 0 && argc > 3)
		storm_image((uint32_t)atoi(argv[2]), atoi(argv[3]));
	if (strcmp(argv[1], "--set-up") == 0)
		storm_set_up();
	if (strcmp(argv[1], "--reckon") == 0)
		storm_reckon();
	if (strcmp(argv[1], "--finish") == 0 && semctl(ledger->anchor, 0, IPC_RMID) < 0)
		storm_fail("IPC_RMID of the anchor: %s", strerror(errno));
	exit(0);
}

static void prepare(uint32_t seed)
{
	const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	char text[16];

	snprintf(base_dir, sizeof(base_dir), "%s/usysv-storm-XXXXXX", memory);
	if (!mkdtemp(base_dir)) {
		perror("storm: directory");
		exit(2);
	}
	ledger_fd = memfd_create("storm-ledger", 0);
	if (ledger_fd < 0 || ftruncate(ledger_fd, sizeof(*ledger)) < 0) {
		perror("storm: ledger");
		exit(2);
	}
	said_fd = memfd_create("storm-said", 0);
	if (said_fd < 0 || fcntl(said_fd, F_SETFL, O_APPEND) < 0) {
		perror("storm: standard error");
		exit(2);
	}
	map_ledger();
	ledger->seed = seed;
	random_state = seed;
	snprintf(text, sizeof(text), "%d", ledger_fd);
	setenv("STORM_LEDGER", text, 1);
	setenv("USYSV_DIR", base_dir, 1);
	setenv("USYSV_NAMESPACE", "storm", 1);
	unsetenv("USYSV_REGION");
	unsetenv("LD_PRELOAD");
	setpgid(0, 0); /* so that nobody else's process can be taken for one of ours */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int s = SIGHUP; s <= SIGTERM; s++)
		if (s == SIGHUP || s == SIGINT || s == SIGTERM)
			signal(s, on_signal);
}

int main(int argc, char **argv)
{
	static char path[PATH_MAX];
	uint32_t seed = (uint32_t)getpid() * 2654435761u ^ (uint32_t)time(NULL);
	int64_t seconds = 8, round_ms = 2500, end;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		return 2;
	self_path = path;
	if (argc < 3 || argv[1][0] == '-')
		play(argc, argv);
	usysv = argv[1];
	preload = argv[2];
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "--wait") == 0)
			waits_when_failed = true;
		else if (i + 1 == argc)
			return 2;
		else if (strcmp(argv[i], "--seconds") == 0)
			seconds = atoi(argv[++i]);
		else if (strcmp(argv[i], "--seed") == 0)
			seed = (uint32_t)strtoul(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "--round") == 0)
			round_ms = atoi(argv[++i]);
		else
			return 2;
	}
	printf("seed %u\n", seed);
	fflush(stdout);
	prepare(seed);
	for (end = storm_now_ns() + seconds * S; storm_now_ns() < end;) {
		one_round(storm_now_ns() + round_ms * MS);
		if (pass_on())
			give_up("a region that nobody has spoilt is called damaged");
	}
	expect_namespace_goes(seed & 1);
	(void)pass_on();
	printf("%u rounds, killed: %u processes, %u nurseries with all in them, %u reapers; "
	       "stopped: %u; checked meanwhile: %u\n",
	       did.rounds, did.kills, did.nurseries, did.reapers, did.stops, did.checks);
	printf("%llu semops, %llu messages sent and %llu received, %llu attaches, %llu objects of "
	       "one's own, %llu forks, %llu execs, %llu exits\n",
	       (unsigned long long)ledger->semops, (unsigned long long)ledger->sent,
	       (unsigned long long)ledger->received, (unsigned long long)ledger->attaches,
	       (unsigned long long)ledger->own, (unsigned long long)ledger->forks,
	       (unsigned long long)ledger->execs, (unsigned long long)ledger->exits);
	printf("the office was vacant for at most %lld ms\n",
	       (long long)(did.longest_vacancy_ns / MS));
	clean_up();
	return 0;
}
