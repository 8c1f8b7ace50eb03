// SPDX-License-Identifier: MIT
/*
 * conform-sem-undo-life: when what SEM_UNDO owes is given back: at the end of the process however
 * it comes, not at the end of a thread. And no later than anybody can know of the end: wherever a
 * test here looks after the end of a child it looks once. Fork, exec and unshare are asked by
 * conform-sem-undo-fork.
 */
#include "conform/sem_calls.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int set_with(int value)
{
	int id = sem_new(2);

	CHECK_OK(SEMOP(id, {0, (short)value, 0}));
	return id;
}

/* ---- the ways to end ---- */

static _Noreturn void end_by_exit(void)
{
	exit(0);
}

static _Noreturn void end_by_underscore_exit(void)
{
	_exit(0);
}

static _Noreturn void end_by_quick_exit(void)
{
	quick_exit(0);
}

static _Noreturn void end_by_raw_exit_group(void)
{
	(void)syscall(SYS_exit_group, 0);
	abort();
}

static _Noreturn void end_by_raw_exit(void)
{
	(void)syscall(SYS_exit, 0);
	abort();
}

static _Noreturn void end_by_pthread_exit(void)
{
	pthread_exit(NULL);
}

static _Noreturn void end_by_abort(void)
{
	abort();
}

static _Noreturn void end_by_fault(void)
{
	(void)raise(SIGSEGV);
	abort();
}

static _Noreturn void end_by_sigkill(void)
{
	(void)raise(SIGKILL);
	abort();
}

static _Noreturn void end_by_sigterm(void)
{
	(void)raise(SIGTERM);
	abort();
}

static void (*const ends[])(void) = {
	end_by_exit,     end_by_underscore_exit, end_by_quick_exit, end_by_raw_exit_group,
	end_by_raw_exit, end_by_pthread_exit,    end_by_abort,      end_by_fault,
	end_by_sigkill,  end_by_sigterm,
};

static void undo_at_every_kind_of_end(void **state)
{
	const struct rlimit no_core = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
		int id = set_with(5);
		pid_t kid;

		IN_CHILD (kid) {
			CHECK_OK(setrlimit(RLIMIT_CORE, &no_core));
			CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
			CHECK_INT(sem_value(id, 0), 3);
			ends[i]();
		}
		CHECK(WEXITSTATUS(child_status(kid)) != CHILD_FAILED);
		if (sem_value(id, 0) != 5)
			check_fail(__FILE__, __LINE__, "end %zu: value %d", i, sem_value(id, 0));
		CHECK_INT(sem_pid(id, 0), kid);
	}
}

static void undo_at_sigkill_from_outside(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		int id = set_with(5);
		pid_t kid;

		IN_CHILD (kid) {
			CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}, {1, 1, 0}));
			for (;;)
				(void)pause();
		}
		UNTIL(sem_value(id, 1) == 1);
		child_kill(kid);
		CHECK_INT(sem_value(id, 0), 5);
		CHECK_INT(sem_pid(id, 0), kid);
	}
}

/* The /proc that is mounted shows other processes by the numbers that these have. */
static void undo_in_a_pid_namespace_that_proc_does_not_show(void **state)
{
	pid_t kid, first, holder;

	(void)state;
	IN_CHILD (kid) {
		if (unshare(CLONE_NEWPID) != 0)
			_exit(CHILD_SKIPPED);
		IN_CHILD (first) {
			CHECK_INT(getpid(), 1);
			for (int i = 0; i < 20; i++) {
				int id = set_with(1);

				IN_CHILD (holder) {
					CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}, {1, 1, 0}));
					for (;;)
						(void)pause();
				}
				UNTIL(sem_value(id, 1) == 1);
				CHECK_INT(sem_value(id, 0), 0);
				child_kill(holder);
				CHECK_INT(sem_value(id, 0), 1);
				CHECK_OK(semctl(id, 0, IPC_RMID));
			}
		}
		child_ok(first);
	}
	child_ok_or_skip(kid, "no pid namespace can be made here");
}

static void stays_at(int id, int value)
{
	for (int i = 0; i < 200; i++) {
		CHECK_INT(sem_value(id, 0), value);
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

/* In a child: what it forks is in a new pid namespace. */
static void leave_pid_namespace(void)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
		_exit(CHILD_SKIPPED);
}

static void mount_proc(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) != 0)
		_exit(CHILD_SKIPPED);
}

static void hold_and_exec(int id)
{
	CHECK_OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
	CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	(void)execl("/bin/sleep", "sleep", "100", (char *)NULL);
	_exit(1);
}

/* The image has gone, and the pid means nothing to who looks: it is there all the same. */
static void over_exec_inside(bool with_proc)
{
	int id = set_with(1), executed[2];
	pid_t kid, first;
	char byte;

	CHECK_OK(pipe2(executed, O_CLOEXEC));
	IN_CHILD (kid) {
		leave_pid_namespace();
		IN_CHILD (first) {
			if (with_proc)
				mount_proc();
			hold_and_exec(id);
		}
		close(executed[1]);
		child_ok_or_skip(first, "no /proc can be mounted here");
	}
	close(executed[1]);
	CHECK_INT(read(executed[0], &byte, 1), 0); /* it has executed, or been skipped */
	close(executed[0]);
	if (sem_value(id, 0) == 1)
		child_ok_or_skip(kid, "no pid namespace can be made here");
	stays_at(id, 0);
	child_kill(kid);
	UNTIL(sem_value(id, 0) == 1);
	CHECK_OK(semctl(id, 0, IPC_RMID));
}

static void undo_over_exec_in_another_pid_namespace(void **state)
{
	(void)state;
	over_exec_inside(true);
}

static void undo_over_exec_in_a_pid_namespace_that_proc_does_not_show(void **state)
{
	(void)state;
	over_exec_inside(false);
}

/* Who looks is inside, and does not see the process. */
static void undo_over_exec_outside_of_the_pid_namespace(void **state)
{
	int id = set_with(1), executed[2];
	pid_t holder, kid, first;
	char byte;

	(void)state;
	CHECK_OK(pipe2(executed, O_CLOEXEC));
	IN_CHILD (holder)
		hold_and_exec(id);
	close(executed[1]);
	CHECK_INT(read(executed[0], &byte, 1), 0);
	close(executed[0]);
	IN_CHILD (kid) {
		leave_pid_namespace();
		IN_CHILD (first) {
			mount_proc();
			stays_at(id, 0);
		}
		child_ok_or_skip(first, "no /proc can be mounted here");
	}
	child_ok_or_skip(kid, "no pid namespace can be made here");
	CHECK_INT(sem_value(id, 0), 0);
	child_kill(holder);
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_OK(semctl(id, 0, IPC_RMID));
}

static void undo_at_sigkill_in_the_middle_of_calls(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		int id = set_with(5);
		pid_t kid;

		IN_CHILD (kid) {
			for (;;) {
				CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}, {1, 1, SEM_UNDO}));
				CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}, {1, -1, SEM_UNDO}));
			}
		}
		UNTIL(sem_pid(id, 1) == kid);
		(void)nanosleep(&(struct timespec){.tv_nsec = i * 7000L}, NULL);
		child_kill(kid);
		CHECK_INT(sem_value(id, 0), 5);
		CHECK_INT(sem_value(id, 1), 0);
		CHECK_OK(SEMOP(id, {0, -5, IPC_NOWAIT}, {1, 0, IPC_NOWAIT}));
	}
}

/* ---- the ways to know of the end ---- */

static pid_t know_by_wait(pid_t pid)
{
	(void)pid;
	return wait(NULL);
}

static pid_t know_by_waitpid_any(pid_t pid)
{
	(void)pid;
	return waitpid(-1, NULL, 0);
}

static pid_t know_by_wait3(pid_t pid)
{
	(void)pid;
	return wait3(NULL, 0, NULL);
}

static pid_t know_by_wait4(pid_t pid)
{
	return wait4(pid, NULL, 0, NULL);
}

static pid_t know_by_waitid(pid_t pid)
{
	siginfo_t info = {0};

	CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED));
	return info.si_pid;
}

/* The child stays a zombie; the harness fetches it later. */
static pid_t know_by_waitid_nowait(pid_t pid)
{
	siginfo_t info = {0};

	CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	return info.si_pid;
}

static pid_t (*const ways_to_know[])(pid_t pid) = {
	know_by_wait,  know_by_waitpid_any, know_by_wait3,
	know_by_wait4, know_by_waitid,      know_by_waitid_nowait,
};

static void undo_is_done_when_any_wait_returns(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(ways_to_know); i++) {
		int id = set_with(5);
		pid_t kid;

		IN_CHILD (kid) {
			CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}, {1, 1, 0}));
			for (;;)
				(void)pause();
		}
		UNTIL(sem_value(id, 1) == 1);
		CHECK_OK(kill(kid, SIGKILL));
		CHECK_INT(ways_to_know[i](kid), kid);
		if (sem_value(id, 0) != 5)
			check_fail(__FILE__, __LINE__, "way %zu: value %d", i, sem_value(id, 0));
		if (ways_to_know[i] != know_by_waitid_nowait)
			child_forget(kid);
	}
}

/* A process's files are closed after that, so a pipe that ends says the same. */
static void undo_is_done_when_a_pipe_ends(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		int id = set_with(5);
		int pipe_ends[2];
		char byte;
		pid_t kid;

		CHECK_OK(pipe(pipe_ends));
		IN_CHILD (kid) {
			(void)close(pipe_ends[0]);
			CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}, {1, 1, 0}));
			for (;;)
				(void)pause();
		}
		(void)close(pipe_ends[1]);
		UNTIL(sem_value(id, 1) == 1);
		CHECK_OK(kill(kid, SIGKILL));
		CHECK_INT(read(pipe_ends[0], &byte, 1), 0);
		CHECK_INT(sem_value(id, 0), 5);
		CHECK_OK(SEMOP(id, {0, -5, IPC_NOWAIT}));
		(void)close(pipe_ends[0]);
		(void)child_status(kid);
	}
}

/* Nobody waits for the child: who sleeps for what it holds is served all the same. */
static void undo_serves_a_sleeper_that_knows_nothing_of_the_end(void **state)
{
	int id = set_with(1);
	pid_t killer;
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}, {1, 1, 0}));
		for (;;)
			(void)pause();
	}
	UNTIL(sem_value(id, 1) == 1);
	IN_CHILD (killer) {
		UNTIL(sem_ncnt(id, 0) == 1);
		CHECK_OK(kill(kid, SIGKILL));
	}
	CHECK_OK(SEMOP(id, {0, -1, 0}));
	CHECK_INT(sem_pid(id, 0), getpid());
	child_ok(killer);
	(void)child_status(kid);
	CHECK_INT(sem_value(id, 0), 0);
}

/* Neither does anybody wait for an orphan. */
static void undo_of_an_orphan(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pid_t orphan;

		IN_CHILD (orphan) {
			CHECK_OK(prctl(PR_SET_PDEATHSIG, 0));
			CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}, {1, 1, 0}));
			UNTIL(atomic_load(&board->flag[0]));
		}
		board->number[0] = orphan;
		UNTIL(sem_value(id, 1) == 1);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 3);
	CHECK_OK(kill((pid_t)board->number[0], SIGKILL));
	UNTIL(sem_value(id, 0) == 5);
	CHECK_INT(sem_pid(id, 0), board->number[0]);
}

/* ---- threads ---- */

static void *thread_borrows(void *arg)
{
	CHECK_OK(SEMOP(*(int *)arg, {0, -1, SEM_UNDO}));
	return NULL;
}

static void *thread_returns(void *arg)
{
	CHECK_OK(SEMOP(*(int *)arg, {0, 1, SEM_UNDO}));
	return NULL;
}

static void in_thread(void *(*run)(void *), int id)
{
	pthread_t thread;

	CHECK_INT(pthread_create(&thread, NULL, run, &id), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
}

static void end_of_a_thread_gives_nothing_back(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		in_thread(thread_borrows, id);
		in_thread(thread_borrows, id);
		CHECK_INT(sem_value(id, 0), 3);
		/* The threads share one account. */
		in_thread(thread_returns, id);
		CHECK_INT(sem_value(id, 0), 4);
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
		CHECK_INT(sem_value(id, 0), 3);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
	CHECK_INT(sem_pid(id, 0), kid);
}

static void *thread_goes_on(void *arg)
{
	int id = *(int *)arg;

	/* The first thread is gone, and what it borrowed still is. */
	UNTIL(task_state(getpid()) == 'Z');
	CHECK_INT(sem_value(id, 0), 3);
	CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	CHECK_INT(sem_value(id, 0), 2);
	return NULL;
}

static void end_of_the_first_thread_gives_nothing_back(void **state)
{
	static int id;
	pid_t kid;

	(void)state;
	id = set_with(5);
	IN_CHILD (kid) {
		pthread_t thread;

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_INT(pthread_create(&thread, NULL, thread_goes_on, &id), 0);
		pthread_exit(NULL);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

static void *thread_sleeps(void *arg)
{
	CHECK_OK(SEMOP(*(int *)arg, {1, -1, SEM_UNDO}));
	return NULL;
}

static void end_of_a_process_with_sleeping_threads(void **state)
{
	int id = set_with(5);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pthread_t threads[3];

		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		for (int i = 0; i < 3; i++)
			CHECK_INT(pthread_create(&threads[i], NULL, thread_sleeps, &id), 0);
		UNTIL(sem_ncnt(id, 1) == 3);
		CHECK_OK(SEMOP(id, {1, 1, 0}));
		CHECK_INT(sem_ncnt(id, 1), 2);
		(void)raise(SIGKILL);
	}
	(void)child_status(kid);
	CHECK_INT(sem_value(id, 0), 5);
	CHECK_INT(sem_value(id, 1), 1);
	CHECK_INT(sem_ncnt(id, 1), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(undo_at_every_kind_of_end),
		TEST(undo_at_sigkill_from_outside),
		TEST(undo_in_a_pid_namespace_that_proc_does_not_show),
		TEST(undo_over_exec_in_another_pid_namespace),
		TEST(undo_over_exec_in_a_pid_namespace_that_proc_does_not_show),
		TEST(undo_over_exec_outside_of_the_pid_namespace),
		TEST(undo_at_sigkill_in_the_middle_of_calls),
		TEST(undo_is_done_when_any_wait_returns),
		TEST(undo_is_done_when_a_pipe_ends),
		TEST(undo_serves_a_sleeper_that_knows_nothing_of_the_end),
		TEST(undo_of_an_orphan),
		TEST(end_of_a_thread_gives_nothing_back),
		TEST(end_of_the_first_thread_gives_nothing_back),
		TEST(end_of_a_process_with_sleeping_threads),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("sem-undo-life", tests, NULL, NULL);
}
