// SPDX-License-Identifier: MIT
/*
 * Shared parts of the behaviour tests; see harness.h for what they promise.
 *
 * Whatever a test makes is noted here and undone by the teardown, which cmocka runs after a failed
 * test as well. Should a test hang in a call, the alarm that the setup armed makes it fail; should
 * that not help, a second one cleans up and ends the program. Nothing outlives it in any case.
 */
#include "harness.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

enum {
	TEST_DEADLINE_S = 90,
	/* After the test was told to end. */
	GIVE_UP_S = 20,
	CHILD_DEADLINE_S = 60,
	OBJECTS_MAX = 40000,
	CHILDREN_MAX = 256,
	SETTINGS_MAX = 4,
};

struct board *board;

static bool in_child;
static atomic_int hangs;

static struct {
	char family;
	int id;
} objects[OBJECTS_MAX];
static unsigned int object_count;

static pid_t children[CHILDREN_MAX];
static unsigned int child_count;

static struct {
	char path[64];
	char value[64];
} settings[SETTINGS_MAX];
static unsigned int setting_count;

/* ---- checks ---- */

void check_fail(const char *file, int line, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (in_child) {
		fprintf(stderr, "%s:%d: in child %d: %s\n", file, line, (int)getpid(), text);
		_exit(CHILD_FAILED);
	}
	print_error("%s\n", text);
	_fail(file, line);
	abort();
}

void check_int(const char *file, int line, const char *what, long long actual, long long expected)
{
	if (actual != expected)
		check_fail(file, line, "%s is %lld (%#llx), not %lld", what, actual,
			   (unsigned long long)actual, expected);
}

long check_ok(const char *file, int line, const char *what, long ret, const int *err)
{
	if (ret == -1)
		check_fail(file, line, "%s: %s", what, strerror(*err));
	return ret;
}

void check_err(const char *file, int line, const char *what, long ret, const int *err, int expected)
{
	int got = *err;

	if (ret != -1)
		check_fail(file, line, "%s gave %ld, not -1 with %s", what, ret,
			   strerrorname_np(expected));
	if (got != expected)
		check_fail(file, line, "%s: %s, not %s", what, strerrorname_np(got),
			   strerrorname_np(expected));
}

/* ---- time ---- */

int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* The coarse clock is never ahead of the fine one, so the two bracket every "now". */
time_t second_before(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec;
}

time_t second_after(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec;
}

void pass_second(time_t second)
{
	UNTIL(second_before() > second);
}

bool poll_again(struct poll_state *state)
{
	int64_t now_ns = monotonic_ns();
	struct timespec pause = {.tv_nsec = state->rounds < 20 ? 50000 : 1000000};

	if (state->until_ns == 0)
		state->until_ns = now_ns + WAIT_DEADLINE_MS * INT64_C(1000000);
	if (now_ns > state->until_ns)
		return false;
	state->rounds++;
	(void)nanosleep(&pause, NULL);
	return true;
}

void board_record(unsigned int row, long ret)
{
	int err = errno;

	board->result[row].ret = ret;
	board->result[row].err = ret == -1 ? err : 0;
	atomic_store(&board->result[row].done, 1);
}

/* ---- children ---- */

static void default_signals(void)
{
	static const int caught[] = {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};

	for (size_t i = 0; i < ARRAY_COUNT(caught); i++)
		(void)signal(caught[i], SIG_DFL);
}

pid_t child_start(void)
{
	pid_t parent = getpid();
	pid_t pid;

	(void)fflush(NULL);
	pid = fork();
	if (pid == -1)
		check_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	if (pid > 0) {
		if (child_count == CHILDREN_MAX)
			check_fail(__FILE__, __LINE__, "too many children in one test");
		children[child_count++] = pid;
		return pid;
	}
	in_child = true;
	child_count = 0;
	object_count = 0;
	setting_count = 0;
	default_signals();
	(void)alarm(CHILD_DEADLINE_S);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It died meanwhile. (0: the child is the first process of a pid namespace.) */
	if (getppid() != parent && getppid() != 0)
		_exit(CHILD_FAILED);
	return 0;
}

void child_exit(void)
{
	(void)fflush(NULL);
	_exit(0);
}

void child_forget(pid_t pid)
{
	for (unsigned int i = 0; i < child_count; i++)
		if (children[i] == pid)
			children[i] = children[--child_count];
}

int child_status(pid_t pid)
{
	struct poll_state state = {0};
	int status = 0;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0)
		if (!poll_again(&state))
			check_fail(__FILE__, __LINE__, "child %d does not end", (int)pid);
	if (got != pid)
		check_fail(__FILE__, __LINE__, "waitpid: %s", strerror(errno));
	child_forget(pid);
	return status;
}

void child_ok_or_skip(pid_t pid, const char *reason)
{
	int status = child_status(pid);

	if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPPED)
		SKIP(reason);
	check_int(__FILE__, __LINE__, "status of the child", status, 0);
}

void child_kill(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)child_status(pid);
}

bool child_runs(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

/* Fields of /proc/N/stat follow the last parenthesis: the name may hold anything. */
char task_state(pid_t task)
{
	char path[32];
	char buf[512];
	const char *end;
	ssize_t got;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)task);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return '?';
	got = read(fd, buf, sizeof(buf) - 1);
	(void)close(fd);
	if (got <= 0)
		return '?';
	buf[got] = '\0';
	end = strrchr(buf, ')');
	return end && end[1] ? end[2] : '?';
}

static long task_switches(pid_t task)
{
	char path[32];
	char line[128];
	long voluntary = -1;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)task);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &voluntary) == 1)
			break;
	(void)fclose(file);
	return voluntary;
}

bool task_sleeps(pid_t task)
{
	long switches = task_switches(task);
	struct timespec pause = {.tv_nsec = 1000000};

	for (int looks = 0; looks < 4; looks++) {
		if (task_state(task) != 'S')
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return task_state(task) == 'S' && task_switches(task) == switches;
}

/* ---- identity ---- */

void become(const struct identity *who)
{
	if (setgroups((size_t)who->group_count, who->groups) != 0 ||
	    setresgid(who->gid, who->gid, who->gid) != 0 ||
	    setresuid(who->uid, who->uid, who->uid) != 0)
		check_fail(__FILE__, __LINE__, "become %u: %s", who->uid, strerror(errno));
	/* Changing identity dropped it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void become_nobody(void)
{
	become(&(struct identity){.uid = NOBODY_ID, .gid = NOBODY_ID});
}

static int capabilities(long call, struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	return (int)syscall(call, &header, data);
}

void keep_capabilities(uint64_t mask)
{
	struct __user_cap_data_struct data[2] = {0};

	if (capabilities(SYS_capget, data) != 0)
		check_fail(__FILE__, __LINE__, "capget: %s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		uint32_t part = (uint32_t)(mask >> (32 * i));

		data[i].effective = data[i].permitted & part;
		data[i].permitted = data[i].effective;
		data[i].inheritable = 0;
		if (data[i].effective != part)
			check_fail(__FILE__, __LINE__, "capabilities to keep are not held");
	}
	if (capabilities(SYS_capset, data) != 0)
		check_fail(__FILE__, __LINE__, "capset: %s", strerror(errno));
}

bool has_capability(int capability)
{
	struct __user_cap_data_struct data[2] = {0};
	unsigned long count = 0;
	char map[256];

	read_file("/proc/self/uid_map", map, sizeof(map));
	if (sscanf(map, "%*u %*u %lu", &count) != 1 || count != 0xffffffff)
		return false;
	return capabilities(SYS_capget, data) == 0 &&
	       (data[capability / 32].effective >> (capability % 32) & 1);
}

/* Root of a user namespace with one user only cannot become anybody else: so try. */
void need_users(void)
{
	pid_t kid;

	if (geteuid() != 0)
		SKIP("only root can become other users");
	IN_CHILD (kid) {
		if (setgroups(0, NULL) != 0 || setresgid(1, 1, 1) != 0 || setresuid(1, 1, 1) != 0)
			_exit(1);
	}
	if (child_status(kid) != 0)
		SKIP("this user namespace has no other users");
}

/* ---- differences ---- */

bool compat_differs(const char *name)
{
	const char *backend = getenv("USYSV_BACKEND");

	if (!backend || strcmp(backend, "usysv") != 0)
		return false;
	print_message("known difference: %s (doc/COMPAT.md)\n", name);
	return true;
}

void compat_skip(const char *name)
{
	if (compat_differs(name))
		skip();
}

/* ---- objects and settings ---- */

static int own(char family, int id)
{
	if (id < 0)
		return id;
	if (object_count == OBJECTS_MAX)
		check_fail(__FILE__, __LINE__, "too many objects in one test");
	objects[object_count].family = family;
	objects[object_count++].id = id;
	return id;
}

int own_sem(int id)
{
	return own('s', id);
}

int own_msg(int id)
{
	return own('q', id);
}

int own_shm(int id)
{
	return own('m', id);
}

static void remove_objects(void)
{
	while (object_count > 0) {
		int id = objects[--object_count].id;

		switch (objects[object_count].family) {
		case 's':
			(void)semctl(id, 0, IPC_RMID);
			break;
		case 'q':
			(void)msgctl(id, IPC_RMID, NULL);
			break;
		default:
			(void)shmctl(id, IPC_RMID, NULL);
			break;
		}
	}
}

key_t test_key(unsigned int number)
{
	return (key_t)(0x75000000u + number);
}

void read_file(const char *path, char *buf, size_t size)
{
	size_t length = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		check_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	while (length < size - 1 && (got = read(fd, buf + length, size - 1 - length)) > 0)
		length += (size_t)got;
	(void)close(fd);
	buf[length] = '\0';
}

int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;
	ssize_t put;

	if (fd == -1)
		return errno;
	put = write(fd, text, strlen(text));
	if (put != (ssize_t)strlen(text))
		err = put == -1 ? errno : EIO;
	(void)close(fd);
	return err;
}

void set_limit(const char *path, const char *value)
{
	unsigned int slot = 0;

	while (slot < setting_count && strcmp(settings[slot].path, path) != 0)
		slot++;
	if (slot == SETTINGS_MAX)
		check_fail(__FILE__, __LINE__, "too many settings in one test");
	if (slot == setting_count) {
		(void)snprintf(settings[slot].path, sizeof(settings[slot].path), "%s", path);
		read_file(path, settings[slot].value, sizeof(settings[slot].value));
		if (write_file(path, settings[slot].value) != 0)
			SKIP("limits cannot be changed here");
		setting_count++;
	}
	check_int(__FILE__, __LINE__, "errno of setting the limit", write_file(path, value), 0);
}

/* ---- programs ---- */

static void end_children(void)
{
	for (unsigned int i = 0; i < child_count; i++)
		(void)kill(children[i], SIGKILL);
	while (child_count > 0)
		(void)waitpid(children[--child_count], NULL, 0);
}

/* The second time only what is allowed in a handler: the test may be anywhere. */
static void hung(int signal_number)
{
	static const char text[] = "a test hangs and cannot be ended: gave up\n";

	(void)signal_number;
	if (!hangs) {
		hangs = 1;
		(void)alarm(GIVE_UP_S);
		check_fail(__FILE__, __LINE__, "the test hangs");
	}
	(void)signal(SIGALRM, SIG_DFL);
	(void)alarm(5);
	end_children();
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	remove_objects();
	_exit(1);
}

int harness_setup(void **state)
{
	(void)state;
	memset(board, 0, sizeof(*board));
	/* Not deferred: the first handler does not return. */
	(void)sigaction(SIGALRM, &(struct sigaction){.sa_handler = hung, .sa_flags = SA_NODEFER},
			NULL);
	hangs = 0;
	(void)alarm(TEST_DEADLINE_S);
	return 0;
}

int harness_teardown(void **state)
{
	(void)state;
	end_children();
	remove_objects();
	while (setting_count > 0) {
		setting_count--;
		if (write_file(settings[setting_count].path, settings[setting_count].value) != 0)
			print_error("%s was not restored\n", settings[setting_count].path);
	}
	(void)alarm(0);
	return 0;
}

void harness_begin(int argc, char **argv, const struct role *roles)
{
	if (argc > 2 && strcmp(argv[1], "--role") == 0) {
		in_child = true;
		for (; roles && roles->name; roles++)
			if (strcmp(roles->name, argv[2]) == 0)
				exit(roles->run(argc - 3, argv + 3));
		fprintf(stderr, "no role %s\n", argv[2]);
		exit(CHILD_FAILED);
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
}

void exec_self(const char *role, ...)
{
	char path[4096];
	char args[8][64] = {"", "--role"};
	char *argv[10];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *arg = role;
	size_t count = 2;
	va_list list;

	if (length < 0)
		check_fail(__FILE__, __LINE__, "/proc/self/exe: %s", strerror(errno));
	path[length] = '\0';
	(void)snprintf(args[0], sizeof(args[0]), "conform");
	va_start(list, role);
	for (; arg && count < ARRAY_COUNT(args); arg = va_arg(list, const char *))
		(void)snprintf(args[count++], sizeof(args[0]), "%s", arg);
	va_end(list);
	for (size_t i = 0; i < count; i++)
		argv[i] = args[i];
	argv[count] = NULL;
	(void)execv(path, argv);
	check_fail(__FILE__, __LINE__, "execv: %s", strerror(errno));
}
