// SPDX-License-Identifier: MIT
/*
 * conform-vfork: a vfork child is a process of its own while it runs in its parent's memory: its
 * SEM_UNDO, its pid and its identity are not its parent's, and its parent finds its own untouched.
 */
#include "conform/sem_calls.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

static int set_with(int value)
{
	int id = sem_new(2);

	CHECK_OK(SEMOP(id, {0, (short)value, 0}));
	return id;
}

/* vfork() returns twice into the same frame, so it has one of its own: the child calls and ends. */
static __attribute__((noinline)) pid_t in_vforked(void (*call)(int id), int id)
{
	pid_t pid = vfork();

	if (pid == 0) {
		call(id);
		_exit(9);
	}
	return pid;
}

static void end_if(bool ok)
{
	_exit(ok ? 0 : 1);
}

static void borrow_one(int id)
{
	bool ok = SEMOP(id, {0, -1, SEM_UNDO}) == 0;

	end_if(ok && semctl(id, 0, GETPID) == getpid());
}

static void borrow_two_deep(int id)
{
	bool ok = SEMOP(id, {0, -1, SEM_UNDO}) == 0;
	int value = semctl(id, 0, GETVAL), status = -1;
	pid_t inner = in_vforked(borrow_one, id);

	ok = ok && waitpid(inner, &status, 0) == inner && status == 0;
	/* The inner one's is back, its own is not. */
	end_if(ok && semctl(id, 0, GETVAL) == value);
}

static void borrow_and_die(int id)
{
	(void)SEMOP(id, {0, -1, SEM_UNDO});
	(void)kill(getpid(), SIGKILL);
}

static void *borrow_in_thread(void *arg)
{
	const int *id = arg;

	return (void *)(intptr_t)SEMOP(*id, {0, -1, SEM_UNDO});
}

static void parent_keeps_its_own_account(void **state)
{
	int id = set_with(9);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pthread_t thread;
		void *result;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		child_ok(in_vforked(borrow_one, id));
		CHECK_INT(sem_value(id, 0), 7);
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
		CHECK_INT(sem_pid(id, 0), getpid());
		/* A thread that is new to the library is this process's, not the child's. */
		CHECK_INT(pthread_create(&thread, NULL, borrow_in_thread, (void *)&id), 0);
		CHECK_INT(pthread_join(thread, &result), 0);
		CHECK(!result);
		CHECK_INT(sem_pid(id, 0), getpid());
		CHECK_INT(sem_value(id, 0), 5);
		for (int i = 0; i < 10; i++)
			child_ok(in_vforked(borrow_two_deep, id));
		CHECK_INT(sem_value(id, 0), 5);
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 9);
}

static void killed_child_is_undone(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	kid = in_vforked(borrow_and_die, id);
	CHECK_INT(child_status(kid), SIGKILL);
	CHECK_INT(sem_value(id, 0), 6);
	CHECK_OK(SEMOP(id, {0, -1, 0}));
}

static void fork_and_borrow(int id)
{
	bool ok = SEMOP(id, {0, -1, SEM_UNDO}) == 0;
	int value = semctl(id, 0, GETVAL), status = -1;
	pid_t inner = fork();

	if (inner == 0) {
		ok = SEMOP(id, {0, -1, SEM_UNDO}) == 0 && semctl(id, 0, GETPID) == getpid();
		end_if(ok && semctl(id, 0, GETVAL) == value - 1);
	}
	ok = ok && waitpid(inner, &status, 0) == inner && status == 0;
	end_if(ok && semctl(id, 0, GETVAL) == value);
}

static void child_may_fork(void **state)
{
	int id = set_with(5);

	(void)state;
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	child_ok(in_vforked(fork_and_borrow, id));
	CHECK_INT(sem_value(id, 0), 6);
}

/* ---- exec ---- */

static char id_text[16];

static int role_look(int argc, char **argv)
{
	CHECK_INT(argc, 1);
	/* The image before this one has borrowed. */
	CHECK_INT(sem_value(atoi(argv[0]), 0), 4);
	return 0;
}

static void borrow_and_exec(int id)
{
	char self[] = "/proc/self/exe", option[] = "--role", look[] = "look";
	char *argv[] = {self, option, look, id_text, NULL};

	if (SEMOP(id, {0, -1, SEM_UNDO}) == 0)
		execv("/proc/self/exe", argv);
}

static void fail_to_exec(int id)
{
	char none[] = "none";
	char *argv[] = {none, NULL};
	bool ok = SEMOP(id, {0, -1, SEM_UNDO}) == 0;

	(void)execv("/nowhere/none", argv);
	ok = ok && SEMOP(id, {0, -1, SEM_UNDO}) == 0;
	end_if(ok && semctl(id, 0, GETPID) == getpid() && semctl(id, 0, GETVAL) == 3);
}

static void account_is_kept_over_exec(void **state)
{
	int id = set_with(5);

	(void)state;
	(void)snprintf(id_text, sizeof(id_text), "%d", id);
	for (int i = 0; i < 3; i++) {
		child_ok(in_vforked(borrow_and_exec, id));
		CHECK_INT(sem_value(id, 0), 5);
	}
}

static void account_is_kept_over_failed_exec(void **state)
{
	int id = set_with(5);

	(void)state;
	child_ok(in_vforked(fail_to_exec, id));
	CHECK_INT(sem_value(id, 0), 5);
}

/* ---- the first call of all ---- */

static void post(int id)
{
	end_if(SEMOP(id, {0, 1, 0}) == 0);
}

/* Nothing of what the child sets up for itself may be missing in the parent. */
static int role_first(int argc, char **argv)
{
	int id = atoi(argv[0]), status = -1;
	pid_t kid;

	CHECK_INT(argc, 1);
	kid = in_vforked(post, id);
	CHECK_INT(waitpid(kid, &status, 0), kid);
	CHECK_INT(status, 0);
	CHECK_ERR(semop(id, BAD_POINTER, 1), EFAULT);
	CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}));
	CHECK_INT(sem_pid(id, 0), getpid());
	return 0;
}

static void child_may_be_the_first_to_call(void **state)
{
	int id = set_with(5);
	char text[16];
	pid_t kid;

	(void)state;
	(void)snprintf(text, sizeof(text), "%d", id);
	IN_CHILD (kid)
		exec_self("first", text, NULL);
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 6);
}

/* ---- identity ---- */

static void try_as_nobody(int id)
{
	if (syscall(SYS_setresuid, NOBODY_ID, NOBODY_ID, NOBODY_ID) != 0)
		_exit(2);
	errno = 0;
	end_if(SEMOP(id, {0, 1, 0}) == -1 && errno == EACCES);
}

static void identity_of_the_child_is_not_the_parents(void **state)
{
	int id;

	(void)state;
	need_users();
	id = set_with(5);
	child_ok(in_vforked(try_as_nobody, id));
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 6);
}

static const struct role roles[] = {
	{"look", role_look},
	{"first", role_first},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(parent_keeps_its_own_account),
		TEST(killed_child_is_undone),
		TEST(child_may_fork),
		TEST(account_is_kept_over_exec),
		TEST(account_is_kept_over_failed_exec),
		TEST(child_may_be_the_first_to_call),
		TEST(identity_of_the_child_is_not_the_parents),
	};

	harness_begin(argc, argv, roles);
	return cmocka_run_group_tests_name("vfork", tests, NULL, NULL);
}
