// SPDX-License-Identifier: MIT
/*
 * A live region that somebody spoils: programs of all families (live_user.c) run on usysv while
 * this process, which has the region mapped too, changes words, empties pages and cuts the file
 * off. Nobody of them may die of a signal or stay in a call, the reaper neither. Afterwards the
 * commands do: `usysv check` ends and says what is wrong, `usysv rm --force` leaves nothing.
 *
 * Each round has a namespace in a base directory of its own, on a small tmpfs where mounts are
 * allowed: a spoilt mark then makes nobody fill the machine's memory. What is chosen follows from
 * the seed; what happens at once does not.
 *
 *	live USYSV PRELOAD LIVE-USER [OPTIONS of rounds.h]
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/region.h"
#include "fuzz/children.h"
#include "fuzz/live.h"
#include "fuzz/marks.h"
#include "fuzz/rounds.h"

#define USERS       3
#define ROUND_MS    200
#define LIMIT_MS    20000 /* for what ought to take a moment */
#define RANGES_MOST 64u

static const char *usysv, *preload, *program;
static char work[] = "/dev/shm/usysv-live-XXXXXX";
static char base_dir[64], board_path[64], region_path[128], output_path[64];
static bool is_mounted;
static struct board *board;
static unsigned char *region;
static uint64_t state;
static unsigned bad;
static struct rounds rounds;
static uint64_t round_number;

static uint64_t choose(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return below ? (state * 0x2545f4914f6cdd1dull >> 16) % below : 0;
}

static bool one_in(uint64_t n)
{
	return choose(n) == 0;
}

static void complain(const char *what)
{
	bad++;
	printf("round %llu: %s; --seed %llu --first %llu --rounds 1\n",
	       (unsigned long long)round_number, what, (unsigned long long)rounds.seed,
	       (unsigned long long)round_number);
	fflush(stdout);
}

/* ---- Processes ------------------------------------------------------------------------------ */

static const char *doing_of(pid_t pid)
{
	const char *doing = "?";

	for (uint32_t i = 0; i < LIVE_SEATS; i++)
		if (board->seat[i].pid == pid)
			doing = board->seat[i].doing;
	return doing;
}

/* Whoever of the users and their offspring is still there, and what it is at. LIVE_LEFT may name a
 * command, which gets the process's number: a debugger, say. */
static void show_left(void)
{
	const char *look = getenv("LIVE_LEFT");
	char line[256];

	for (uint32_t i = 0; i < LIVE_SEATS; i++) {
		const struct seat *seat = &board->seat[i];

		if (!seat->pid || kill(seat->pid, 0) < 0)
			continue;
		printf("    %d is left, in %s\n", seat->pid, seat->doing);
		fflush(stdout);
		snprintf(line, sizeof(line), "%s %d", look ? look : ":", seat->pid);
		(void)!system(line); /* NOLINT(cert-env33-c) */
	}
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
}

static void ended(pid_t pid, int status, const char *what)
{
	char text[128];

	if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 2))
		complain("a program could not be started");
	/* SIGKILL: one of the users' own victims. */
	if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL)
		return;
	snprintf(text, sizeof(text), "%s: %d has got signal %d, in %s", what, pid, WTERMSIG(status),
		 doing_of(pid));
	complain(text);
}

/* Waits for the end of these processes; -1: of all children, adopted ones too. Kills them when it
 * takes too long. */
static void reap(const pid_t *pids, int count, const char *what)
{
	int64_t end = rounds_now_ms() + LIMIT_MS;
	char text[128];

	for (int i = 0; i < count;) {
		int status;
		pid_t pid = waitpid(pids[i], &status, WNOHANG);

		if (pid > 0)
			ended(pid, status, what);
		if ((pid < 0 && errno == ECHILD) || (pid > 0 && pids[i] > 0))
			i++;
		if (pid != 0)
			continue;
		if (rounds_now_ms() > end) {
			snprintf(text, sizeof(text), "%s: not all have ended", what);
			complain(text);
			show_left();
			while (children_each(kill_child) > 0)
				while (waitpid(-1, &status, WNOHANG) > 0)
					;
			return;
		}
		usleep(2000);
	}
}

static pid_t start_user(uint64_t chance, int64_t end_ms, const char *depth)
{
	char number[24], end[32];
	pid_t pid;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)chance);
	snprintf(end, sizeof(end), "%lld000000", (long long)end_ms);
	pid = fork();
	if (pid != 0)
		return pid;
	/* For a debugger: a folder each, for the cores. */
	if (getenv("LIVE_CORES")) {
		snprintf(number, sizeof(number), "core-%d", getpid());
		if ((mkdir(number, 0700) < 0 && errno != EEXIST) || chdir(number) < 0)
			_exit(126);
		snprintf(number, sizeof(number), "%llu", (unsigned long long)chance);
	}
	setenv("LD_PRELOAD", preload, 1);
	execl(program, "live-user", number, end, board_path, depth, (char *)NULL);
	_exit(126);
}

/* A command of usysv: its exit status; -1: it did not end, or by a signal. */
static int command(const char *name, const char *a, const char *b)
{
	int64_t end = rounds_now_ms() + LIMIT_MS;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(output_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		dup2(fd, 1);
		dup2(fd, 2);
		execl(usysv, "usysv", name, a, b, (char *)NULL);
		_exit(126);
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (rounds_now_ms() > end) {
			show_left();
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		usleep(1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says_something(void)
{
	struct stat st;

	return stat(output_path, &st) == 0 && st.st_size > 0;
}

/* ---- Damage --------------------------------------------------------------------------------- */

struct range {
	uint64_t off, bytes;
};

static struct range range[RANGES_MOST];
static uint32_t range_count;
static struct header_shm good; /* the marks as they were */

static void add_range(uint64_t off, uint64_t bytes)
{
	if (bytes && range_count < RANGES_MOST)
		range[range_count++] = (struct range){off, bytes};
}

/* What is in use now, by the header as it was before the first damage. */
static void find_ranges(void)
{
	range_count = 0;
	add_range(HEADER_OFF, sizeof(good));
	add_range(PROCS_OFF, (uint64_t)good.proc_hi * sizeof(struct proc_shm));
	add_range(OWNERS_OFF, (uint64_t)good.group_hi * 8);
	/* A group's page as often as all else together: threads' slots are what recovery reads. */
	for (int k = 0; k < 4; k++)
		add_range(GROUPS_OFF, (uint64_t)good.group_hi * PAGE_BYTES);
	for (int f = 0; f < FAMILY_COUNT; f++) {
		uint64_t table = TABLES_OFF + (uint64_t)f * TABLE_BYTES;

		add_range(table, BUCKETS_AT_FIRST * 4);
		add_range(table + BITMAP_OFF, 64);
		for (int k = 0; k < 3; k++)
			add_range(object_off((enum family)f, 0), 4u * OBJECT_SLOT_BYTES);
	}
	for (int a = 0; a < ARENA_COUNT; a++) {
		add_range(CHUNKS_OFF + (uint64_t)a * CHUNKS_BYTES,
			  (uint64_t)good.arena[a].hi * sizeof(struct chunk_shm));
		for (uint32_t ix = 0; ix < good.arena[a].hi && ix < 8; ix++)
			add_range(ARENAS_OFF + (uint64_t)a * ARENA_BYTES +
					  (uint64_t)ix * CHUNK_BYTES,
				  PAGE_BYTES);
	}
}

static uint32_t *some_word(void)
{
	const struct range *r = &range[choose(range_count)];

	return region_at(region, r->off + choose(r->bytes / 4) * 4);
}

static uint32_t *some_mark(void)
{
	struct header_shm *h = region_header(region);

	switch (choose(4)) {
	case 0:
		return &h->proc_hi;
	case 1:
		return &h->group_hi;
	case 2:
		return &h->table[choose(FAMILY_COUNT)].hi;
	default:
		return &h->arena[choose(ARENA_COUNT)].hi;
	}
}

static uint32_t value_for(uint32_t old)
{
	static const uint32_t odd[] = {
		0,      1,       2,          7,          8,   0xff,    0x7fff,     0x8000,
		0xffff, 0x10000, 0x7fffffff, 0x80000000, ~0u, ~0u - 1, 0x40000000, 0x3fffffff};

	switch (choose(8)) {
	case 0:
	case 1:
		return odd[choose(sizeof(odd) / sizeof(odd[0]))];
	case 2:
		return old + 1;
	case 3:
		return old - 1;
	case 4:
	case 5:
		return old ^ 1u << choose(32);
	case 6:
		return (uint32_t)choose(good.group_hi * GROUP_SPAN + 1);
	default:
		return *some_word(); /* right elsewhere */
	}
}

static void spoil_mark(void)
{
	uint32_t *mark = some_mark(), old = *mark;
	uint32_t value = old - (old > 0);

	switch (choose(4)) {
	case 0:
		value = (uint32_t)choose(old + 1);
		break;
	case 1:
		value = old + (uint32_t)choose(100);
		break;
	case 2:
		value = ~0u;
		break;
	default:
		break;
	}
	__atomic_store_n(mark, value, __ATOMIC_RELAXED);
}

static void empty_page(int fd)
{
	const struct range *r = &range[choose(range_count)];
	uint64_t page = (r->off + choose(r->bytes)) & ~(uint64_t)(PAGE_BYTES - 1);

	if (page == HEADER_OFF && !one_in(8))
		return;
	if (one_in(2))
		memset(region + page, 0, PAGE_BYTES);
	else
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)page,
				PAGE_BYTES);
}

static void spoil(int fd)
{
	uint32_t *word;

	switch (choose(16)) {
	case 0:
		spoil_mark();
		return;
	case 1:
		empty_page(fd);
		return;
	default:
		word = some_word();
	}
	/* Marks only as above. */
	if (!is_mark(region_header(region), word))
		__atomic_store_n(word, value_for(*word), __ATOMIC_RELAXED);
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* Once there are programs in it, and objects: its descriptor, mapped too. -1: it never came. */
static int open_region(void)
{
	int64_t end = rounds_now_ms() + LIMIT_MS;
	int fd = -1;

	while (fd < 0 && rounds_now_ms() < end) {
		fd = open(region_path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			usleep(500);
	}
	if (fd < 0)
		return -1;
	region = mmap(NULL, (size_t)REGION_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (region == MAP_FAILED) {
		close(fd);
		return -1;
	}
	while (rounds_now_ms() < end) {
		memcpy(&good, region_header(region), sizeof(good));
		if (good.group_hi >= 2 && good.arena[ARENA_SEM].hi && good.arena[ARENA_GENERAL].hi)
			break;
		usleep(500);
	}
	find_ranges();
	return fd;
}

static void damage(int fd, int64_t until)
{
	static const uint32_t many[] = {1, 1, 2, 3, 5, 10, 40, 400};
	uint32_t left = many[choose(sizeof(many) / sizeof(many[0]))];
	bool cuts = one_in(12);

	while (left-- > 0 && rounds_now_ms() < until) {
		spoil(fd);
		if (left % 8 == 0)
			usleep((useconds_t)choose(20000));
	}
	if (cuts && !getenv("LIVE_UNCUT"))
		(void)ftruncate(fd,
				(off_t)(choose(4) ? choose(GIB(5)) : choose(MIB(70))) & ~4095ll);
}

static void afterwards(void)
{
	int status = command("check", NULL, NULL);

	if (status != 0 && status != 1 && status != 2)
		complain("`usysv check' does not do");
	else if (status != 0 && !says_something())
		complain("`usysv check' does not say what is wrong");
	status = command("check", "--repair", NULL);
	if (status != 0 && status != 1 && status != 2)
		complain("`usysv check --repair' does not do");
	status = command("ls", NULL, NULL);
	if (status != 0 && status != 1)
		complain("`usysv ls' does not do");
	/* When nobody was in it any more the reaper may have taken it away. */
	if (access(region_path, F_OK) == 0 && command("rm", "--force", "default") != 0 &&
	    access(region_path, F_OK) == 0)
		complain("`usysv rm --force' does not do");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void clear_base(void)
{
	nftw(base_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	mkdir(base_dir, 0700);
}

static void end_round(const pid_t *users, int count, const char *who)
{
	static const pid_t all = -1;

	reap(users, count, who);
	if (board->bad)
		complain(board->text);
	afterwards();
	reap(&all, 1, "in the end");
	clear_base();
}

static void one_round(void)
{
	int64_t end = rounds_now_ms() + ROUND_MS;
	pid_t user[USERS];
	int fd;

	state = rounds_state(&rounds, round_number);
	memset(board, 0, sizeof(*board));
	for (int i = 0; i < USERS; i++)
		user[i] = start_user(choose(1ull << 40), end, "0");
	fd = open_region();
	if (fd >= 0) {
		usleep((useconds_t)choose(50000));
		memcpy(&good, region_header(region), sizeof(good));
		find_ranges();
		damage(fd, end);
		munmap(region, (size_t)REGION_BYTES);
		close(fd);
	} else {
		complain("no region has come to be");
	}
	end_round(user, USERS, "the programs");
}

/* A sleeping call has not got what it waits for only because its waiter is zeros. */
static void cut_off_sleeper(void)
{
	int64_t end = rounds_now_ms() + LIMIT_MS;
	pid_t pid;

	memset(board, 0, sizeof(*board));
	pid = start_user(1, 0, "-1");
	while (strcmp(board->seat[0].doing, LIVE_ASLEEP) != 0 && !board->bad &&
	       rounds_now_ms() < end)
		usleep(500);
	if (truncate(region_path, 0) < 0)
		complain("the region could not be cut off");
	end_round(&pid, 1, "the sleeper");
}

/* A tmpfs of our own, so that it is full soon; else what /dev/shm is. */
static void prepare(void)
{
	if (!mkdtemp(work)) {
		printf("SKIP: no folder in /dev/shm\n");
		exit(77);
	}
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		is_mounted = mount("none", work, "tmpfs", 0, "size=700m,mode=700") == 0;
	snprintf(base_dir, sizeof(base_dir), "%s/base", work);
	snprintf(board_path, sizeof(board_path), "%s/board", work);
	snprintf(output_path, sizeof(output_path), "%s/output", work);
	snprintf(region_path, sizeof(region_path), "%s/usysv-%u/default/region", base_dir,
		 (unsigned)geteuid());
	mkdir(base_dir, 0700);
	setenv("USYSV_DIR", base_dir, 1);
	unsetenv("USYSV_NAMESPACE");
	unsetenv("USYSV_REGION");
	unsetenv("LD_PRELOAD");
}

static void clear_up(void)
{
	nftw(base_dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	unlink(board_path);
	unlink(output_path);
	if (is_mounted)
		umount2(work, MNT_DETACH);
	rmdir(work);
}

int main(int argc, char **argv)
{
	int fd;

	rounds_begin(&rounds, argc, argv, 20);
	if (argc - optind != 3)
		return 2;
	usysv = argv[optind];
	preload = argv[optind + 1];
	program = argv[optind + 2];
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	prepare();
	atexit(clear_up);
	fd = open(board_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*board)) < 0)
		return 1;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (board == MAP_FAILED)
		return 1;
	cut_off_sleeper();
	for (round_number = rounds.first; rounds_go_on(&rounds, round_number) && bad < 20;
	     round_number++)
		one_round();
	printf("%llu rounds, %u bad\n", (unsigned long long)(round_number - rounds.first), bad);
	return bad ? 1 : 0;
}
