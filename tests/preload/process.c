// SPDX-License-Identifier: MIT
/*
 * What the preload library notices of a process: waits, ends, forks, changes of identity; and its
 * stubs for syscall(), vfork(), dlsym() and dlopen().
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Waits. */

static pid_t child_that_exits(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(3);
	return pid;
}

static pid_t child_that_is_killed(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	kill(pid, SIGKILL);
	return pid;
}

static pid_t by_wait(pid_t pid)
{
	(void)pid;
	return wait(NULL);
}

static pid_t by_waitpid(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0);
}

static pid_t by_wait3(pid_t pid)
{
	(void)pid;
	return wait3(NULL, 0, NULL);
}

static pid_t by_wait4(pid_t pid)
{
	struct rusage usage;

	return wait4(pid, NULL, 0, &usage);
}

static pid_t by_waitid(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
	return info.si_pid;
}

static pid_t by_waitid_blind(pid_t pid)
{
	assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED), 0);
	return pid;
}

static pid_t by_number(pid_t pid)
{
	int status;

	return (pid_t)syscall(SYS_wait4, pid, &status, 0, NULL);
}

static pid_t by_waitid_number(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(syscall(SYS_waitid, P_PID, pid, &info, WEXITED, NULL), 0);
	return info.si_pid;
}

static void every_wait_reaps(void **state)
{
	static pid_t (*const ways[])(pid_t) = {
		by_wait,   by_waitpid,      by_wait3,  by_wait4,
		by_waitid, by_waitid_blind, by_number, by_waitid_number,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (int killed = 0; killed < 2; killed++) {
			pid_t pid = killed ? child_that_is_killed() : child_that_exits();
			int before = fake() ? fake()->reaps : 0;

			assert_int_equal(ways[i](pid), pid);
			if (fake()) {
				assert_int_equal(fake()->reaps, before + 1);
				assert_int_equal(fake()->reaped, pid);
			}
		}
	}
}

static void other_news_do_not_reap(void **state)
{
	siginfo_t info;
	int status, before;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		for (;;)
			pause();
	before = fake() ? fake()->reaps : 0;
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG), 0);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, WCONTINUED), pid);
	errno = 0;
	assert_int_equal(waitpid(getpid(), &status, 0), -1);
	assert_int_equal(errno, ECHILD);
	if (fake())
		assert_int_equal(fake()->reaps, before);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	if (fake())
		assert_int_equal(fake()->reaps, before + 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

static int sweeps(void)
{
	return fake() ? fake()->sweeps : 0;
}

static void inner_waits_sweep(void **state)
{
	int before = sweeps();
	FILE *f;

	(void)state;
	assert_int_equal(system("exit 5"), 5 << 8);
	if (fake())
		assert_int_equal(sweeps(), before + 1);
	f = popen("exit 6", "r");
	assert_non_null(f);
	assert_int_equal(pclose(f), 6 << 8);
	if (fake())
		assert_int_equal(sweeps(), before + 2);
	assert_int_not_equal(system(NULL), 0);
}

static int reaps_at_handler = -1, reaps_before;

static void on_child(int sig)
{
	(void)sig;
	reaps_at_handler = fake() ? fake()->reaps : reaps_before + 1;
}

static void child_signal_reaps_first(void **state)
{
	sigset_t child, old;
	pid_t pid;

	(void)state;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &old);
	signal(SIGCHLD, on_child);
	reaps_before = fake() ? fake()->reaps : 0;
	pid = child_that_exits();
	while (reaps_at_handler < 0)
		sigsuspend(&old);
	assert_int_equal(reaps_at_handler, reaps_before + 1);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Ends: this program runs itself with the way to end as its argument, and prints as it goes. */

static void say(const char *word)
{
	(void)!write(1, word, strlen(word));
}

static void at_exit(void)
{
	say("atexit\n");
}

static bool tell_destructor;

__attribute__((destructor)) static void destroy(void)
{
	if (tell_destructor)
		say("destructor\n");
}

static void *end_last(void *unused)
{
	(void)unused;
	pthread_exit(NULL);
}

static int end(const char *way)
{
	pthread_t thread;

	tell_destructor = true;
	atexit(at_exit);
	at_quick_exit(at_exit);
	if (strcmp(way, "exit") == 0)
		exit(7);
	if (strcmp(way, "_exit") == 0)
		_exit(7);
	if (strcmp(way, "_Exit") == 0)
		_Exit(7);
	if (strcmp(way, "quick_exit") == 0)
		quick_exit(7);
	if (strcmp(way, "exit_group") == 0)
		syscall(SYS_exit_group, 7);
	if (strcmp(way, "thread") == 0) {
		pthread_create(&thread, NULL, end_last, NULL);
		pthread_exit(NULL);
	}
	return 7;
}

static void run_and_read(const char *way, char *output, size_t size, int *ret_status)
{
	int pipe_fd[2];
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(pipe_fd), 0);
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fd[1], 1);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		setenv("FAKE_TELL_EXIT", "1", 1);
		execl("/proc/self/exe", "process", "end", way, (char *)NULL);
		_exit(127);
	}
	close(pipe_fd[1]);
	while ((got = read(pipe_fd[0], output + n, size - 1 - n)) > 0)
		n += (size_t)got;
	output[n] = '\0';
	close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, ret_status, 0), pid);
}

static void every_end_is_settled(void **state)
{
	static const struct {
		const char *way, *expected;
	} ends[] = {
		{"return", "atexit\ndestructor\nsession_exit\n"},
		{"exit", "atexit\ndestructor\nsession_exit\n"},
		{"thread", "atexit\ndestructor\nsession_exit\n"},
		{"_exit", "session_exit\n"},
		{"_Exit", "session_exit\n"},
		{"quick_exit", "atexit\nsession_exit\n"},
		{"exit_group", "session_exit\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char output[256], expected[256];
		int status;

		strcpy(expected, ends[i].expected);
		if (!fake())
			*strstr(expected, "session_exit") = '\0';
		run_and_read(ends[i].way, output, sizeof(output), &status);
		/* quick_exit() ends in the C library's own _exit(), after the last handler. */
		assert_string_equal(output, expected);
		assert_int_equal(status, strcmp(ends[i].way, "thread") == 0 ? 0 : 7 << 8);
	}
}

/* Forks. */

static void forks_are_seen(void **state)
{
	struct fake_counts before;
	pid_t pid;

	(void)state;
	NEEDS_FAKE();
	for (int raw = 0; raw < 2; raw++) {
		before = *fake();
		pid = raw ? _Fork() : fork();
		if (pid == 0)
			syscall(SYS_exit, 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(fake()->fork_prepare, before.fork_prepare + 1);
		assert_int_equal(fake()->fork_parent, before.fork_parent + 1);
		assert_int_equal(fake()->fork_child, before.fork_child + 1);
	}
}

static void forked_child_registers_anew(void **state)
{
	int before;
	pid_t pid;

	(void)state;
	NEEDS_FAKE();
	assert_int_equal(semget(1, 1, 0), 4711);
	before = fake()->registrations;
	pid = fork();
	if (pid == 0)
		_exit(semget(1, 1, 0) == 4711 ? 0 : 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(fake()->registrations, before + 1);
	assert_int_equal(semget(1, 1, 0), 4711);
	assert_int_equal(fake()->registrations, before + 1);
}

static void vfork_child_has_its_own_tie(void **state)
{
	volatile int in_child = 0, in_inner = 0;
	int before, status;
	pid_t pid;

	(void)state;
	NEEDS_FAKE();
	assert_int_equal(semget(1, 1, 0), 4711);
	before = fake()->registrations;
	pid = vfork();
	if (pid == 0) {
		pid_t inner = vfork();

		if (inner == 0) {
			in_inner = semget(1, 1, 0);
			_exit(0);
		}
		waitpid(inner, NULL, 0);
		in_child = semget(1, 1, 0);
		_exit(4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 4 << 8);
	assert_int_equal(in_child, 4711);
	assert_int_equal(in_inner, 4711);
	assert_int_equal(fake()->registrations, before + 2);
	assert_int_equal(semget(1, 1, 0), 4711);
	assert_int_equal(fake()->registrations, before + 2);
}

static void vfork_and_exec(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	for (int i = 0; i < 3; i++) {
		pid = vfork();
		if (pid == 0) {
			execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 9 << 8);
	}
}

/* Identity. */

static void identity_is_watched(void **state)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	struct fake_counts before;

	(void)state;
	NEEDS_FAKE();
	before = *fake();
	assert_int_equal(setuid(uid), 0);
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(setreuid(uid, uid), 0);
	assert_int_equal(setresuid(uid, uid, uid), 0);
	assert_int_equal(setgid(gid), 0);
	assert_int_equal(setegid(gid), 0);
	assert_int_equal(setregid(gid, gid), 0);
	assert_int_equal(setresgid(gid, gid, gid), 0);
	assert_int_equal(setfsuid(uid), (int)uid);
	assert_int_equal(setfsgid(gid), (int)gid);
	assert_int_equal(syscall(SYS_setuid, uid), 0);
	assert_int_equal(fake()->attach_early, before.attach_early + 11);
	assert_int_equal(fake()->creds_changed, before.creds_changed + 11);
}

/* Stubs. */

static void calls_by_number(void **state)
{
	(void)state;
	assert_int_equal(syscall(SYS_getpid), getpid());
	errno = 0;
	assert_int_equal(syscall(511), -1);
	assert_int_equal(errno, ENOSYS);
	errno = 0;
	assert_int_equal(syscall(100000), -1);
	assert_int_equal(errno, ENOSYS);
	errno = 0;
	assert_int_equal(syscall(-1), -1);
	assert_int_equal(errno, ENOSYS);
	NEEDS_FAKE();
	assert_int_equal(syscall(SYS_semget, 1, 1, 0), 4711);
	assert_int_equal(syscall(SYS_semctl, 1, 2, 3, 12345), 12345);
	errno = 0;
	assert_int_equal(syscall(SYS_semop, 12345, NULL, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(semctl(1, 2, 3, 54321), 54321);
	assert_int_equal(syscall(SYS_msgget, 1, 0), 4712);
	assert_int_equal(syscall(SYS_msgrcv, 1, NULL, 77, 0, 0), 77);
}

static void raw_fork_returns_twice(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(8);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 8 << 8);
}

#ifdef __x86_64__
static void on_new_stack(void)
{
	syscall(SYS_exit, 11);
	for (;;)
		;
}

/* The child returns from syscall() into what it finds on its own stack. */
static void clone_on_a_new_stack(void **state)
{
	static _Alignas(16) uintptr_t stack[4096];
	int status;
	pid_t pid;

	(void)state;
	stack[4094] = (uintptr_t)on_new_stack;
	pid = (pid_t)syscall(SYS_clone, CLONE_VM | SIGCHLD, &stack[4094], 0, 0, 0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 11 << 8);
}
#endif

static void symbols_lead_here(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	int (*get)(key_t, int, int);

	(void)state;
	assert_non_null(libc);
	assert_non_null(dlsym(libc, "getpid"));
	assert_null(dlsym(libc, "no_such_name"));
	assert_non_null(dlerror());
	assert_non_null(dlsym(RTLD_NEXT, "getpid"));
	NEEDS_FAKE();
	get = (int (*)(key_t, int, int))dlsym(libc, "semget");
	assert_int_equal(get(1, 1, 0), 4711);
	get = (int (*)(key_t, int, int))dlsym(RTLD_NEXT, "semget");
	assert_int_equal(get(1, 1, 0), 4711);
	get = (int (*)(key_t, int, int))dlvsym(libc, "semget", "GLIBC_2.2.5");
	assert_int_equal(get(1, 1, 0), 4711);
	assert_ptr_equal(dlsym(libc, "msgsnd"), dlsym(RTLD_DEFAULT, "msgsnd"));
	assert_ptr_equal(dlsym(libc, "shmat"), dlsym(RTLD_DEFAULT, "shmat"));
	dlclose(libc);
}

/* What the C library has under a name is what the program gets by that name, wrapped or not. */
static void c_library_handles_lead_where_names_do(void **state)
{
	static const char *const names[] = {
		"syscall", "dlsym",       "dlvsym", "dlopen", "open",   "open64",  "openat",
		"fopen",   "fopen64",     "write",  "close",  "fflush", "fclose",  "stat",
		"fstat",   "statx",       "access", "fork",   "vfork",  "execve",  "execv",
		"execlp",  "posix_spawn", "system", "popen",  "wait",   "wait4",   "waitid",
		"_exit",   "sigaction",   "signal", "setuid", "chroot", "unshare", "mlockall",
		"semop",   "msgsnd",      "shmat",  "getpid", "read",
	};
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	(void)state;
	assert_non_null(libc);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *by_name = dlsym(RTLD_DEFAULT, names[i]);

		assert_non_null(by_name);
		if (dlsym(libc, names[i]) != by_name)
			fail_msg("dlsym() of a handle leads elsewhere: %s", names[i]);
	}
#ifdef __x86_64__
	assert_ptr_equal(dlvsym(libc, "open", "GLIBC_2.2.5"), dlsym(RTLD_DEFAULT, "open"));
#endif
	assert_null(dlvsym(libc, "open", "GLIBC_1.0"));
	dlclose(libc);
}

/* Found by this program's own RUNPATH, and bound deeply. */
static void plugins_bind_to_us(void **state)
{
	void *plugin = dlopen("libpreload-plugin.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	int (*get)(void);

	(void)state;
	assert_non_null(plugin);
	get = (int (*)(void))dlsym(plugin, "plugin_semget");
	assert_non_null(get);
	if (fake())
		assert_int_equal(get(), 4711);
	dlclose(plugin);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wait_reaps),
		cmocka_unit_test(other_news_do_not_reap),
		cmocka_unit_test(inner_waits_sweep),
		cmocka_unit_test(child_signal_reaps_first),
		cmocka_unit_test(every_end_is_settled),
		cmocka_unit_test(forks_are_seen),
		cmocka_unit_test(forked_child_registers_anew),
		cmocka_unit_test(vfork_child_has_its_own_tie),
		cmocka_unit_test(vfork_and_exec),
		cmocka_unit_test(identity_is_watched),
		cmocka_unit_test(calls_by_number),
		cmocka_unit_test(raw_fork_returns_twice),
#ifdef __x86_64__
		cmocka_unit_test(clone_on_a_new_stack),
#endif
		cmocka_unit_test(symbols_lead_here),
		cmocka_unit_test(c_library_handles_lead_where_names_do),
		cmocka_unit_test(plugins_bind_to_us),
	};

	if (argc == 3 && strcmp(argv[1], "end") == 0)
		return end(argv[2]);
	share_counts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
