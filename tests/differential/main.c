// SPDX-License-Identifier: MIT
/*
 * The random differential test: the same calls, one at a time, on two implementations of
 * System V IPC, and everything that can be seen compared after each of them.
 *
 * Two kinds of process do the work, all of them this program: for each back end a stage
 * (stage.c) with its workers (worker.c), and above both the coordinator, which invents steps
 * (world.c, families.c), plays them (session.c), and makes a failing sequence small (shrink.c).
 *
 *	differential [--a BACKEND] [--b BACKEND] [--seed N] ...
 *	differential --replay FILE
 *
 * What it prints on a difference is a script in the form of script.c, the state before its last
 * step, and what both sides showed after it, with ! before the lines that the other side lacks.
 * In states, "0 p1 n2 z1" is a semaphore of value 0, last touched by process 1, with 2 and 1
 * waiting; p1.3 is its third successor, t2 the second worker's thread, c1.5 a child; times are
 * numbers of ticks. "p0 | +4 rw-s 2 of 5@0 17": process 0 has, at page 4 of its window, two pages
 * of segment 5 from its page 0 on, the first of which sums up to 17.
 *
 * Exit status: 0 agreed, 1 a difference, 2 wrong usage, 77 skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "families.h"
#include "session.h"
#include "shrink.h"
#include "worker.h"

enum { EXIT_SKIPPED = 77 };

struct options {
	uint64_t seed;
	uint64_t steps_max;
	uint64_t sequences_max;
	unsigned seconds_max;
	unsigned sequence_steps;
	int shrink_seconds;
	unsigned shrink_tries;
	const char *replay;
	const char *keep;
	const char *families;
	const char *without;
	bool spread; /* no pinning to CPUs */
	bool stops;
	bool no_users;
};

static struct session session = {
	.backend = {{.name = "kernel", .cpu = -1}, {.name = "usysv", .cpu = -1}},
	.usysv_path = "usysv",
	.deadline_ms = 10000,
};
static char namespaces_path[64];
static bool real_root;

static const char usage[] =
	"usage: differential [OPTIONS]\n"
	"  --a BACKEND, --b BACKEND  kernel, usysv, or a command that runs the words after it\n"
	"                            (default: kernel and usysv)\n"
	"  --usysv PATH              the usysv program (default: usysv, or $USYSV_EXE)\n"
	"  --family LIST             sem, msg, shm, joined by commas, or all (default)\n"
	"  --seed N                  of the first sequence (default: random); the next has N+1\n"
	"  --sequences N, --steps N, --seconds N\n"
	"                            end after so many (default: one sequence, or 10 seconds)\n"
	"  --length N                steps of one sequence (default: 400)\n"
	"  --replay FILE             play this script only\n"
	"  --keep FILE               write the shrunk script there too\n"
	"  --shrink SECONDS          time to spend on shrinking (default: 120)\n"
	"  --tries N                 tries to spend on shrinking (default: 5000)\n"
	"  --deadline MS             after which a call that neither returns nor sleeps is stuck\n"
	"  --spread                  use all CPUs in every sequence, not only in some\n"
	"  --stops                   also stop and continue sleeping processes\n"
	"  --no-users                let everybody be root\n"
	"  --without LIST            leave out these operations: view, exec, kill, semctl, ...\n"
	"  --trace                   print every step\n"
	"  --fault NAME              plant a fault in back end b: ncnt, order, undo, errno,\n"
	"                            otime, hang, crash, message, nattch\n";

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	remove(path);
	return 0;
}

static void remove_namespaces(void)
{
	if (namespaces_path[0])
		nftw(namespaces_path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	namespaces_path[0] = '\0';
}

/* A place for usysv's namespaces that is ours alone. */
static void make_namespaces(void)
{
	text_copy(namespaces_path, sizeof(namespaces_path), "/dev/shm/differential-XXXXXX");
	if (!mkdtemp(namespaces_path))
		text_copy(namespaces_path, sizeof(namespaces_path), "");
	else
		setenv("USYSV_DIR", namespaces_path, 1);
}

static void on_end_signal(int number)
{
	session_kill(&session);
	remove_namespaces();
	signal(number, SIG_DFL);
	raise(number);
}

static bool write_file(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line);

	if (fd >= 0)
		close(fd);
	return written;
}

/* IPC namespaces need root: without it, become root of a user namespace of our own. */
static bool become_root(void)
{
	char line[64];
	unsigned uid = geteuid(), gid = getegid();

	real_root = uid == 0;
	if (real_root)
		return true;
	if (unshare(CLONE_NEWUSER))
		return false;
	snprintf(line, sizeof(line), "0 %u 1\n", uid);
	if (!write_file("/proc/self/uid_map", line))
		return false;
	write_file("/proc/self/setgroups", "deny\n");
	snprintf(line, sizeof(line), "0 %u 1\n", gid);
	return write_file("/proc/self/gid_map", line);
}

/* Can a worker act as another user here? */
static bool users_exist(void)
{
	bool can;

	if (seteuid(persons[1].uid))
		return false;
	can = geteuid() == persons[1].uid;
	return seteuid(0) == 0 && can;
}

/* A namespace on a file system mounted noexec has no executable segments. */
static bool can_execute(void)
{
	struct statvfs status;

	return statvfs(namespaces_path[0] ? namespaces_path : "/dev/shm", &status) == 0 &&
	       !(status.f_flag & ST_NOEXEC);
}

static void choose_cast(struct random *random, struct script *script)
{
	unsigned processes = 2 + random_below(random, 5);

	script->process_count = processes;
	for (unsigned ix = 0; ix < processes; ix++)
		script->threads[ix] = 1;
	if (random_percent(random, 50))
		script->threads[0] = 2;
	if (random_percent(random, 15))
		script->threads[1] = 2;
}

/* Each stage on a CPU of its own: fastest. Some sequences let the workers run where they want. */
static void choose_cpus(struct random *random, const struct options *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	bool spread = options->spread || random_percent(random, 20);

	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++)
		session.backend[ix].cpu = spread || cpus < 1 ? -1 : (int)(ix % (unsigned)cpus);
}

static bool choose_families(struct world *world, const char *list)
{
	bool any = false;

	world->family_weight[FAMILY_PROCESS] = 10;
	for (unsigned ix = 1; ix < families_count; ix++) {
		const char *found = strstr(list, families[ix]->name);

		world->family_weight[ix] = found || !strcmp(list, "all") ? 90 : 0;
		session.families |= (world->family_weight[ix] > 0) << ix;
		any |= world->family_weight[ix] > 0;
	}
	return any;
}

static void print_marked(const char *title, const char *mine, const char *other)
{
	printf("%s:\n", title);
	while (*mine) {
		size_t length = strcspn(mine, "\n");
		bool same = false;

		for (const char *line = other; *line; line += strcspn(line, "\n")) {
			line += *line == '\n';
			if (!strncmp(line, mine, length) &&
			    (line[length] == '\n' || line[length] == '\0'))
				same = true;
		}
		printf("  %c %.*s\n", same ? ' ' : '!', (int)length, mine);
		mine += length + (mine[length] == '\n');
	}
}

static void print_difference(const struct script *script, const struct verdict *verdict)
{
	printf("-------- script\n");
	script_write(stdout, script);
	printf("-------- difference %s\n",
	       verdict->step_ix < script->count ? "in the last step" : "after all workers ended");
	printf("state before:\n%s", verdict->state_before);
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++) {
		printf("-- %c = %s\n", 'a' + (int)ix, session.backend[ix].name);
		print_marked("events", verdict->events[ix], verdict->events[!ix]);
		print_marked("state", verdict->state[ix], verdict->state[!ix]);
	}
	printf("--------\n");
	fflush(stdout);
}

static void keep_script(const struct options *options, const struct script *script)
{
	FILE *file;

	if (!options->keep)
		return;
	file = fopen(options->keep, "w");
	if (!file) {
		fprintf(stderr, "%s: %s\n", options->keep, strerror(errno));
		return;
	}
	script_write(file, script);
	fclose(file);
}

/* A difference was seen: see whether it comes again, make it small, show it. */
static void pursue(const struct options *options, struct script *script, struct verdict *verdict)
{
	bool again = false;

	printf("DIFFERENCE at step %zu of the sequence with seed %" PRIu64 "\n", verdict->step_ix,
	       script->seed);
	fflush(stdout);
	for (unsigned attempt = 0; attempt < 3 && !again; attempt++) {
		struct script copy = {0};
		struct verdict repeated;

		script_copy(&copy, script);
		session_play(&session, &copy, NULL, 0, &repeated);
		script_free(&copy);
		again = repeated.differs;
		if (again) {
			verdict_free(verdict);
			*verdict = repeated;
		} else {
			verdict_free(&repeated);
		}
	}
	if (again)
		shrink(&session, script, verdict, options->shrink_seconds, options->shrink_tries);
	else
		printf("NOT SEEN AGAIN in three replays: it depends on timing; not shrunk\n");
	print_difference(script, verdict);
	keep_script(options, script);
}

static bool run_sequence(const struct options *options, uint64_t seed, size_t step_count)
{
	struct world world = {.random = {.state = seed}};
	struct script script = {.seed = seed};
	struct verdict verdict;
	bool agreed;

	choose_cast(&world.random, &script);
	choose_cpus(&world.random, options);
	choose_families(&world, options->families);
	world.process_count = script.process_count;
	world.worker_count = script_worker_count(&script);
	for (unsigned ix = 0, worker_ix = 0; ix < script.process_count; ix++)
		for (unsigned thread = 0; thread < script.threads[ix]; thread++)
			world.process_of[worker_ix++] = (uint8_t)ix;
	world.with_users = real_root && !options->no_users && users_exist() &&
			   random_percent(&world.random, 35);
	world.with_stops = options->stops;
	world.with_ticks = true;
	world.with_execution = can_execute();
	world.without = options->without;
	world_choose_style(&world);
	session_play(&session, &script, &world, step_count, &verdict);
	agreed = !verdict.differs;
	if (!agreed)
		pursue(options, &script, &verdict);
	verdict_free(&verdict);
	script_free(&script);
	return agreed;
}

static int replay(const struct options *options)
{
	FILE *file = strcmp(options->replay, "-") ? fopen(options->replay, "r") : stdin;
	struct script script;
	struct verdict verdict;
	bool differs;

	if (!file) {
		fprintf(stderr, "%s: %s\n", options->replay, strerror(errno));
		return 2;
	}
	if (!script_read(file, &script))
		return 2;
	session.families = 0;
	for (size_t ix = 0; ix < script.count; ix++)
		session.families |= 1U << script.steps[ix].family_ix;
	session_play(&session, &script, NULL, 0, &verdict);
	differs = verdict.differs;
	if (differs)
		print_difference(&script, &verdict);
	printf("%s: replay of %zu steps\n", differs ? "DIFFERENCE" : "agreed", script.count);
	verdict_free(&verdict);
	script_free(&script);
	return differs;
}

static int run(const struct options *options)
{
	struct timespec begin, now;
	uint64_t sequences = 0;
	bool agreed = true;
	double seconds = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	printf("seed %" PRIu64 "\n", options->seed);
	fflush(stdout);
	while (agreed && sequences < options->sequences_max && seconds < options->seconds_max &&
	       session.steps < options->steps_max) {
		uint64_t left = options->steps_max - session.steps;

		agreed = run_sequence(options, options->seed + sequences,
				      left < options->sequence_steps ? left
								     : options->sequence_steps);
		sequences++;
		clock_gettime(CLOCK_MONOTONIC, &now);
		seconds = (double)(now.tv_sec - begin.tv_sec) +
			  (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
	}
	printf("%s: %" PRIu64 " sequences, %" PRIu64 " steps, %" PRIu64 " calls slept, %" PRIu64
	       " woken, %.0f steps/s, seed %" PRIu64 "\n",
	       agreed ? "agreed" : "DIFFERENCE", sequences, session.steps, session.slept,
	       session.woken, (double)session.steps / (seconds > 0 ? seconds : 1), options->seed);
	return !agreed;
}

static enum fault parse_fault(const char *name)
{
	static const char *const names[] = {"none",  "ncnt", "order", "undo",    "errno",
					    "otime", "hang", "crash", "message", "nattch"};

	for (unsigned ix = 0; ix < sizeof(names) / sizeof(names[0]); ix++)
		if (!strcmp(names[ix], name))
			return (enum fault)ix;
	fprintf(stderr, "no such fault: %s\n", name);
	exit(2);
}

static uint64_t parse_number(const char *word)
{
	char *end;
	uint64_t value = strtoull(word, &end, 0);

	if (end == word || *end) {
		fprintf(stderr, "not a number: %s\n", word);
		exit(2);
	}
	return value;
}

enum {
	OPTION_A = 256,
	OPTION_B,
	OPTION_USYSV,
	OPTION_FAMILY,
	OPTION_SEED,
	OPTION_SEQUENCES,
	OPTION_STEPS,
	OPTION_SECONDS,
	OPTION_LENGTH,
	OPTION_REPLAY,
	OPTION_KEEP,
	OPTION_SHRINK,
	OPTION_TRIES,
	OPTION_DEADLINE,
	OPTION_SPREAD,
	OPTION_STOPS,
	OPTION_NO_USERS,
	OPTION_TRACE,
	OPTION_WITHOUT,
	OPTION_FAULT,
	OPTION_HELP,
};

static const struct option long_options[] = {
	{"a", required_argument, NULL, OPTION_A},
	{"b", required_argument, NULL, OPTION_B},
	{"usysv", required_argument, NULL, OPTION_USYSV},
	{"family", required_argument, NULL, OPTION_FAMILY},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"sequences", required_argument, NULL, OPTION_SEQUENCES},
	{"steps", required_argument, NULL, OPTION_STEPS},
	{"seconds", required_argument, NULL, OPTION_SECONDS},
	{"length", required_argument, NULL, OPTION_LENGTH},
	{"replay", required_argument, NULL, OPTION_REPLAY},
	{"keep", required_argument, NULL, OPTION_KEEP},
	{"shrink", required_argument, NULL, OPTION_SHRINK},
	{"tries", required_argument, NULL, OPTION_TRIES},
	{"deadline", required_argument, NULL, OPTION_DEADLINE},
	{"spread", no_argument, NULL, OPTION_SPREAD},
	{"stops", no_argument, NULL, OPTION_STOPS},
	{"no-users", no_argument, NULL, OPTION_NO_USERS},
	{"without", required_argument, NULL, OPTION_WITHOUT},
	{"trace", no_argument, NULL, OPTION_TRACE},
	{"fault", required_argument, NULL, OPTION_FAULT},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

static void take_option(struct options *options, int option)
{
	switch (option) {
	case OPTION_A:
		session.backend[BACKEND_A].name = optarg;
		break;
	case OPTION_B:
		session.backend[BACKEND_B].name = optarg;
		break;
	case OPTION_USYSV:
		session.usysv_path = optarg;
		break;
	case OPTION_FAMILY:
		options->families = optarg;
		break;
	case OPTION_SEED:
		options->seed = parse_number(optarg);
		break;
	case OPTION_SEQUENCES:
		options->sequences_max = parse_number(optarg);
		break;
	case OPTION_STEPS:
		options->steps_max = parse_number(optarg);
		break;
	case OPTION_SECONDS:
		options->seconds_max = (unsigned)parse_number(optarg);
		break;
	case OPTION_LENGTH:
		options->sequence_steps = (unsigned)parse_number(optarg);
		break;
	case OPTION_REPLAY:
		options->replay = optarg;
		break;
	case OPTION_KEEP:
		options->keep = optarg;
		break;
	case OPTION_SHRINK:
		options->shrink_seconds = (int)parse_number(optarg);
		break;
	case OPTION_TRIES:
		options->shrink_tries = (unsigned)parse_number(optarg);
		break;
	case OPTION_DEADLINE:
		session.deadline_ms = (int)parse_number(optarg);
		break;
	case OPTION_SPREAD:
		options->spread = true;
		break;
	case OPTION_STOPS:
		options->stops = true;
		break;
	case OPTION_NO_USERS:
		options->no_users = true;
		break;
	case OPTION_WITHOUT:
		options->without = optarg;
		break;
	case OPTION_TRACE:
		session.trace = true;
		break;
	case OPTION_FAULT:
		session.backend[BACKEND_B].fault = parse_fault(optarg);
		break;
	case OPTION_HELP:
		fputs(usage, stdout);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

int main(int argument_count, char **arguments)
{
	struct options options = {
		.sequence_steps = 400,
		.shrink_seconds = 120,
		.shrink_tries = 5000,
		.families = "all",
	};
	struct world probe = {0};
	int option, status;

	if (argument_count > 1 && !strcmp(arguments[1], "stage"))
		return stage_main(argument_count, arguments);
	if (argument_count > 1 && !strcmp(arguments[1], "worker"))
		worker_executed(argument_count, arguments);
	if (getenv("USYSV_EXE"))
		session.usysv_path = getenv("USYSV_EXE");
	while ((option = getopt_long(argument_count, arguments, "", long_options, NULL)) != -1)
		take_option(&options, option);
	if (optind < argument_count || !choose_families(&probe, options.families)) {
		fputs(usage, stderr);
		return 2;
	}
	if (options.seed == 0 && getrandom(&options.seed, 4, 0) != 4)
		options.seed = (uint64_t)time(NULL);
	if (!options.steps_max && !options.sequences_max && !options.seconds_max)
		options.seconds_max = 10;
	options.steps_max = options.steps_max ? options.steps_max : UINT64_MAX;
	options.sequences_max = options.sequences_max ? options.sequences_max : UINT64_MAX;
	options.seconds_max = options.seconds_max ? options.seconds_max : UINT32_MAX;
	if (!become_root()) {
		printf("skipped: neither root nor allowed to make a user namespace\n");
		return EXIT_SKIPPED;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, on_end_signal);
	signal(SIGTERM, on_end_signal);
	make_namespaces();
	status = options.replay ? replay(&options) : run(&options);
	remove_namespaces();
	return status;
}
