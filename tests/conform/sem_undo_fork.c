// SPDX-License-Identifier: MIT
/*
 * conform-sem-undo-fork: whose account SEM_UNDO keeps when a process forks (a new one for the
 * child), executes a program (it is kept) or leaves the account by unshare.
 */
#include "conform/sem_calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

extern char **environ;

static int set_with(int value)
{
	int id = sem_new(2);

	CHECK_OK(SEMOP(id, {0, (short)value, 0}));
	return id;
}

static void in_thread(void *(*run)(void *), int id)
{
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, run, &id), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
}

/* ---- fork and its kin ---- */

static void forked_child_owes_nothing(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pid_t grandchild;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		IN_CHILD (grandchild)
			CHECK_INT(sem_value(id, 0), 3);
		child_ok(grandchild);
		CHECK_INT(sem_value(id, 0), 3);
		/* It starts its own account. */
		IN_CHILD (grandchild) {
			CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
			CHECK_INT(sem_value(id, 0), 2);
		}
		child_ok(grandchild);
		CHECK_INT(sem_value(id, 0), 3);
		/* Who returns what another borrowed does not change what that one owes. */
		IN_CHILD (grandchild)
			CHECK_OK(SEMOP(id, {0, 2, 0}));
		child_ok(grandchild);
		CHECK_INT(sem_value(id, 0), 5);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 7);
}

static void parent_that_ends_first_gives_back_its_own(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pid_t grandchild;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		IN_CHILD (grandchild) {
			CHECK_OK(prctl(PR_SET_PDEATHSIG, 0));
			CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}, {1, 1, 0}));
			UNTIL(atomic_load(&board->flag[0]));
		}
		UNTIL(sem_value(id, 1) == 1);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 4);
	atomic_store(&board->flag[0], 1);
	UNTIL(sem_value(id, 0) == 5);
}

/* Functions of their own: vfork returns twice into the same frame. */
static __attribute__((noinline)) pid_t vfork_borrowing(int id)
{
	pid_t pid = vfork();

	if (pid == 0) {
		if (SEMOP(id, {0, -1, SEM_UNDO}) != 0 || semctl(id, 0, GETVAL) != 2)
			_exit(CHILD_FAILED);
		_exit(0);
	}
	return pid;
}

static __attribute__((noinline)) pid_t vfork_exec_true(void)
{
	static char name[] = "true";
	static char *const argv[] = {name, NULL};
	pid_t pid = vfork();

	if (pid == 0) {
		(void)execvp(name, argv);
		_exit(CHILD_FAILED);
	}
	return pid;
}

static void vforked_child_has_an_account_of_its_own(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pid_t child;
		int status;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		child = vfork_borrowing(id);
		CHECK_OK(waitpid(child, &status, 0));
		CHECK_INT(status, 0);
		CHECK_INT(sem_value(id, 0), 3);
		CHECK_INT(sem_pid(id, 0), child);
		child = vfork_exec_true();
		CHECK_OK(waitpid(child, &status, 0));
		CHECK_INT(status, 0);
		CHECK_INT(sem_value(id, 0), 3);
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
		CHECK_INT(sem_pid(id, 0), getpid());
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

static void spawned_programs_owe_nothing(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		char name[] = "true";
		char *argv[] = {name, NULL};
		pid_t child;
		int status;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_INT(system("true"), 0);
		CHECK_INT(sem_value(id, 0), 3);
		CHECK_INT(posix_spawnp(&child, name, NULL, NULL, argv, environ), 0);
		CHECK_OK(waitpid(child, &status, 0));
		CHECK_INT(status, 0);
		CHECK_INT(sem_value(id, 0), 3);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

/* ---- exec ---- */

/* The program after exec: ID VALUE-BEFORE. Borrows one more and ends. */
static int role_borrower(int argc, char **argv)
{
	int id = argc > 1 ? atoi(argv[0]) : -1;

	CHECK_INT(sem_value(id, 0), atoi(argv[1]));
	CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	CHECK_INT(sem_value(id, 0), atoi(argv[1]) - 1);
	return 0;
}

/* The program after exec: ID. Returns what was borrowed before. */
static int role_returner(int argc, char **argv)
{
	CHECK_INT(argc, 1);
	CHECK_OK(SEMOP(atoi(argv[0]), {0, 2, SEM_UNDO}));
	return 0;
}

static const struct role roles[] = {
	{"borrower", role_borrower},
	{"returner", role_returner},
	{NULL, NULL},
};

static void as_text(char *text, size_t size, int number)
{
	(void)snprintf(text, size, "%d", number);
}

static void exec_keeps_what_is_owed(void **state)
{
	int id = set_with(5);
	char text[16];
	pid_t kid;

	(void)state;
	as_text(text, sizeof(text), id);
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		exec_self("borrower", text, "3", NULL);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
	CHECK_INT(sem_pid(id, 0), kid);
	/* What the new program gives back counts against it. */
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		exec_self("returner", text, NULL);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

/* The new program never looks at a semaphore. */
static void exec_of_any_program_keeps_what_is_owed(void **state)
{
	int id = set_with(5);
	int hold[2];
	pid_t kid;

	(void)state;
	CHECK_OK(pipe(hold));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_OK(dup2(hold[0], 0));
		(void)close(hold[0]);
		(void)close(hold[1]);
		/* Runs until its input ends. */
		(void)execlp("sh", "sh", "-c", "read line; exit 0", NULL);
		_exit(CHILD_FAILED);
	}
	(void)close(hold[0]);
	UNTIL(sem_value(id, 0) == 3);
	UNTIL(task_sleeps(kid));
	CHECK_INT(sem_value(id, 0), 3);
	(void)close(hold[1]);
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

static void exec_that_fails_changes_nothing(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_ERR(execl("/nonexistent/program", "program", NULL), ENOENT);
		CHECK_INT(sem_value(id, 0), 3);
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

static void *thread_execs(void *arg)
{
	char text[16];

	CHECK_OK(SEMOP(*(int *)arg, {0, -1, SEM_UNDO}));
	as_text(text, sizeof(text), *(int *)arg);
	exec_self("borrower", text, "2", NULL);
	return NULL;
}

/* The other threads end by it, and what they borrowed stays borrowed. */
static void exec_by_a_thread_keeps_what_all_owe(void **state)
{
	static int id;
	pid_t kid;

	(void)state;
	id = set_with(5);
	IN_CHILD (kid) {
		pthread_t thread;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_INT(pthread_create(&thread, NULL, thread_execs, &id), 0);
		CHECK_OK(SEMOP(id, {1, -1, SEM_UNDO}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
	CHECK_INT(sem_ncnt(id, 1), 0);
}

/* ---- leaving the account ---- */

static void unshare_sysvsem_gives_back(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_OK(unshare(CLONE_SYSVSEM));
		CHECK_INT(sem_value(id, 0), 5);
		/* And starts a new one. */
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
		CHECK_INT(sem_value(id, 0), 4);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

static void *thread_unshares(void *arg)
{
	int id = *(int *)arg;

	CHECK_OK(unshare(CLONE_SYSVSEM));
	/* The account is still shared by the other thread. */
	CHECK_INT(sem_value(id, 0), 3);
	/* This one is the thread's alone, and ends with it. */
	CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	CHECK_INT(sem_value(id, 0), 2);
	return NULL;
}

static void unshare_sysvsem_by_one_of_several_gives_nothing_back(void **state)
{
	static int id;
	pid_t kid;

	(void)state;
	compat_skip("thread-sysvsem");
	id = set_with(5);
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		in_thread(thread_unshares, id);
		UNTIL(sem_value(id, 0) == 3);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

/* Two processes with one account, as clone can make them. */
static void clone_sysvsem_shares_the_account(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	compat_skip("clone-sysvsem");
	IN_CHILD (kid) {
		pid_t sharer = (pid_t)syscall(SYS_clone, CLONE_SYSVSEM | SIGCHLD, 0, 0, 0, 0);

		if (sharer == 0) {
			if (SEMOP(id, {0, -2, SEM_UNDO}) != 0)
				_exit(CHILD_FAILED);
			_exit(0);
		}
		CHECK_INT(waitpid(sharer, NULL, 0), sharer);
		CHECK_INT(sem_value(id, 0), 3);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
	CHECK_INT(sem_pid(id, 0), kid);
}

static void unshare_newipc_gives_back(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	compat_skip("ipc-namespaces");
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		if (unshare(CLONE_NEWIPC) != 0)
			_exit(CHILD_SKIPPED);
		atomic_store(&board->flag[0], 1);
		UNTIL(atomic_load(&board->flag[1]));
	}
	UNTIL(atomic_load(&board->flag[0]) || !child_runs(kid));
	if (child_runs(kid))
		CHECK_INT(sem_value(id, 0), 5);
	atomic_store(&board->flag[1], 1);
	child_ok_or_skip(kid, "no IPC namespace can be made here");
}

static void setns_newipc_gives_back(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	compat_skip("ipc-namespaces");
	IN_CHILD (kid) {
		int home = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);

		CHECK(home != -1);
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		if (setns(home, CLONE_NEWIPC) != 0)
			_exit(CHILD_SKIPPED);
		CHECK_INT(sem_value(id, 0), 5);
	}
	child_ok_or_skip(kid, "IPC namespaces cannot be entered here");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(forked_child_owes_nothing),
		TEST(parent_that_ends_first_gives_back_its_own),
		TEST(vforked_child_has_an_account_of_its_own),
		TEST(spawned_programs_owe_nothing),
		TEST(exec_keeps_what_is_owed),
		TEST(exec_of_any_program_keeps_what_is_owed),
		TEST(exec_that_fails_changes_nothing),
		TEST(exec_by_a_thread_keeps_what_all_owe),
		TEST(unshare_sysvsem_gives_back),
		TEST(unshare_sysvsem_by_one_of_several_gives_nothing_back),
		TEST(clone_sysvsem_shares_the_account),
		TEST(unshare_newipc_gives_back),
		TEST(setns_newipc_gives_back),
	};

	harness_begin(argc, argv, roles);
	return cmocka_run_group_tests_name("sem-undo-fork", tests, NULL, NULL);
}
