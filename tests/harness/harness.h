// SPDX-License-Identifier: MIT
/*
 * What every test of behaviour shares: children that tell their verdict by exit status, a page of
 * memory shared with them, waiting for a condition with a deadline, changing identity, and
 * cleaning up after a test whether it passed or not.
 *
 * The same checks work in a test and in its children. In a test a failed check ends the test
 * through cmocka; in a child it prints where and ends the child with CHILD_FAILED, which the
 * parent's child_ok() then reports. Threads may only be started in children: cmocka leaves a
 * failed test by a long jump, which only the test's own thread may do.
 *
 * A test runs against whatever provides the libc calls: the kernel in a namespace of its own, or
 * usysv. It asks which one only through compat_skip().
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Exit status of a child in which a check failed. */
#define CHILD_FAILED 101
/* Of one that could not do what the test is about, see child_ok_or_skip. */
#define CHILD_SKIPPED 77

/* Every wait ends here at the latest: long, because a loaded machine is no failure. */
#define WAIT_DEADLINE_MS 20000

/* An address that no process has mapped. */
#define BAD_POINTER ((void *)16)

/* ---- checks ---- */

_Noreturn void check_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond))                                                                       \
			check_fail(__FILE__, __LINE__, "false: %s", #cond);                        \
	} while (0)

#define CHECK_INT(actual, expected) check_int(__FILE__, __LINE__, #actual, (actual), (expected))

/* The call must succeed, that is not return -1; the value is the call's. */
#define CHECK_OK(call) (errno = 0, check_ok(__FILE__, __LINE__, #call, (long)(call), &errno))

/* The call must return -1 with this errno. */
#define CHECK_ERR(call, expected)                                                                  \
	(errno = 0, check_err(__FILE__, __LINE__, #call, (long)(call), &errno, (expected)))

void check_int(const char *file, int line, const char *what, long long actual, long long expected);
long check_ok(const char *file, int line, const char *what, long ret, const int *err);
void check_err(const char *file, int line, const char *what, long ret, const int *err,
	       int expected);

/* Polls until the condition holds; fails at the deadline. */
#define UNTIL(cond)                                                                                \
	do {                                                                                       \
		struct poll_state poll_state = {0};                                                \
		while (!(cond))                                                                    \
			if (!poll_again(&poll_state))                                              \
				check_fail(__FILE__, __LINE__, "never became true: %s", #cond);    \
	} while (0)

struct poll_state {
	unsigned int rounds;
	int64_t until_ns;
};

bool poll_again(struct poll_state *state);

/* ---- memory shared by a test and its children; zero at the start of each test ---- */

struct board {
	atomic_int flag[64];
	atomic_long number[64];
	/* What calls returned, one row a caller. */
	struct board_result {
		long ret;
		int err;
		atomic_int done;
	} result[64];
	char text[65536];
};

extern struct board *board;

/* Notes what a call returned for others to look at. */
#define RECORD(row, call) (errno = 0, board_record((row), (long)(call)))
void board_record(unsigned int row, long ret);

/* ---- children ---- */

/*
 * Runs the block that follows in a child, which exits 0 at its end:
 *
 *	pid_t kid;
 *	IN_CHILD(kid) {
 *		CHECK_OK(semop(id, &op, 1));
 *	}
 *	child_ok(kid);
 *
 * A child dies with its parent, and by SIGALRM when it lives for too long.
 */
#define IN_CHILD(pid) for (; ((pid) = child_start()) == 0; child_exit())

pid_t child_start(void);
_Noreturn void child_exit(void);

/* Waits for the child; what waitpid reports as its status. */
int child_status(pid_t pid);
/* Waits for the child, which must have exited 0. */
#define child_ok(pid) check_int(__FILE__, __LINE__, "status of the child", child_status(pid), 0)
/* Same, but a child that exited with CHILD_SKIPPED makes the test leave with this reason. */
void child_ok_or_skip(pid_t pid, const char *reason);
/* Kills the child and waits until it is gone. */
void child_kill(pid_t pid);
/* Forgets a child that the test waited for by itself. */
void child_forget(pid_t pid);
/* The child has not ended. */
bool child_runs(pid_t pid);

/*
 * The task (a process's or thread's id) is asleep and has been for a few looks in a row. With a
 * flag set just before the call this tells "sleeps in the call" where no call can tell.
 */
bool task_sleeps(pid_t task);
/* The state letter of the task in /proc, '?' when there is none. */
char task_state(pid_t task);

/* ---- identity ---- */

struct identity {
	uid_t uid;
	gid_t gid;
	int group_count;
	gid_t groups[4];
};

/* In a child: become this user with all ids and only these groups. */
void become(const struct identity *who);
/* In a child: become an ordinary user who is in no interesting group. */
void become_nobody(void);
#define NOBODY_ID 65534

/* In a child: have exactly these capabilities effective (a mask of 1 << CAP_x) and no others. */
void keep_capabilities(uint64_t mask);
/* Holds it towards the whole machine, not only towards a user namespace of its own. */
bool has_capability(int capability);

/* Skips the test unless children can become other users. */
void need_users(void);

/* ---- differences ---- */

/*
 * Leaves the test, visibly, on usysv: it shows a difference that doc/COMPAT.md lists under this
 * name as something that user space cannot do.
 */
void compat_skip(const char *name);
/* Same for a part of a test: true when that part must be left out. */
bool compat_differs(const char *name);

/* Leaves the test with a reason. */
#define SKIP(reason)                                                                               \
	do {                                                                                       \
		print_message("skipped: %s\n", reason);                                            \
		skip();                                                                            \
	} while (0)

/* ---- time ---- */

int64_t monotonic_ns(void);
/* A time not later than what any call made from now on stores as "now". */
time_t second_before(void);
/* A time not earlier than what any call made up to now has stored as "now". */
time_t second_after(void);
/* Waits until the clock shows a later second than this. */
void pass_second(time_t second);

/* ---- objects and settings that the test leaves behind ---- */

/* Remembers an object, to be removed at the end of the test; returns the id. */
int own_sem(int id);
int own_msg(int id);
int own_shm(int id);
/* A key that nothing in this namespace uses, different for each number. */
key_t test_key(unsigned int number);

/* Reads a file as a whole, as text. */
void read_file(const char *path, char *buf, size_t size);
/* Writes a file that exists; 0 or an errno. */
int write_file(const char *path, const char *text);
/* Writes a limit below /proc/sys/kernel until the end of the test; skips where not permitted. */
void set_limit(const char *path, const char *value);

/* ---- programs ---- */

/* What the test program does when it was started again by exec, see exec_self. */
struct role {
	const char *name;
	int (*run)(int argc, char **argv);
};

/* First thing in main: a role asked for, a pattern to choose tests, the board. */
void harness_begin(int argc, char **argv, const struct role *roles);
/* Becomes this program in one of its roles. Null-terminated arguments, 6 at the most. */
_Noreturn void exec_self(const char *role, ...) __attribute__((sentinel));

int harness_setup(void **state);
int harness_teardown(void **state);

#define TEST(function) cmocka_unit_test_setup_teardown(function, harness_setup, harness_teardown)

#endif
