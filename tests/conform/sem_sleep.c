// SPDX-License-Identifier: MIT
/*
 * conform-sem-sleep: a call that sleeps: how it is counted, and all the ways in which its sleep
 * ends other than by being served, namely time, signals, removal and death. Who is served when is
 * asked by conform-sem-wake.
 */
#include "conform/sem_calls.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>

/* ---- GETNCNT and GETZCNT ---- */

static void sleepers_are_counted_where_they_wait(void **state)
{
	int id = sem_new(3);

	(void)state;
	CHECK_OK(sem_setval(id, 1, 1));
	for (unsigned int i = 0; i < 3; i++)
		(void)SLEEPER(i, id, {0, -1, 0});
	for (unsigned int i = 3; i < 5; i++)
		(void)SLEEPER(i, id, {1, 0, 0});
	UNTIL(sem_ncnt(id, 0) == 3);
	UNTIL(sem_zcnt(id, 1) == 2);
	CHECK_INT(sem_zcnt(id, 0), 0);
	CHECK_INT(sem_ncnt(id, 1), 0);
	CHECK_INT(sem_ncnt(id, 2), 0);
	CHECK_INT(sem_zcnt(id, 2), 0);
	CHECK_OK(SEMOP(id, {0, 2, 0}));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_OK(SEMOP(id, {1, -1, 0}));
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 0);
	for (unsigned int i = 0; i < 5; i++)
		ENDS(i, 0);
}

static void sleeper_counts_once_for_its_first_blocking_operation(void **state)
{
	int id = sem_new(4);

	(void)state;
	CHECK_OK(sem_setval(id, 2, 1));
	(void)SLEEPER(0, id, {3, 1, 0}, {0, -1, 0}, {1, -1, 0}, {2, 0, 0});
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_INT(sem_ncnt(id, 1), 0);
	CHECK_INT(sem_zcnt(id, 2), 0);
	CHECK_INT(sem_ncnt(id, 3), 0);
	/* Looked at again with every change: now the next one is first. */
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_ncnt(id, 1), 1);
	CHECK_INT(sem_zcnt(id, 2), 0);
	CHECK_OK(SEMOP(id, {1, 1, 0}));
	CHECK_INT(sem_ncnt(id, 1), 0);
	CHECK_INT(sem_zcnt(id, 2), 1);
	/* And back. */
	CHECK_OK(SEMOP(id, {0, -1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_INT(sem_zcnt(id, 2), 0);
	CHECK_INT(sem_value(id, 3), 0);
	CHECK_OK(SEMOP(id, {0, 1, 0}, {2, -1, 0}));
	ENDS(0, 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 0);
	CHECK_INT(sem_value(id, 3), 1);
}

static void sleeper_with_one_semaphore_twice_counts_once(void **state)
{
	int id = sem_new(1);

	(void)state;
	(void)SLEEPER(0, id, {0, -1, 0}, {0, -1, 0});
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	ENDS(0, 0);
	CHECK_INT(sem_value(id, 0), 0);
}

static void sleeper_that_is_killed_is_counted_no_more(void **state)
{
	int id = sem_new(2);
	pid_t kids[4];

	(void)state;
	CHECK_OK(sem_setval(id, 1, 1));
	kids[0] = SLEEPER(0, id, {0, -1, 0});
	kids[1] = SLEEPER(1, id, {0, -1, SEM_UNDO});
	kids[2] = SLEEPER(2, id, {1, 0, 0});
	kids[3] = SLEEPER(3, id, {1, 5, SEM_UNDO}, {0, -1, 0});
	UNTIL(sem_ncnt(id, 0) == 3);
	UNTIL(sem_zcnt(id, 1) == 1);
	for (int i = 0; i < 4; i++)
		child_kill(kids[i]);
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 1);
	/* What comes now is nobody's. */
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_OK(SEMOP(id, {0, -1, IPC_NOWAIT}));
}

/* ---- time-outs ---- */

static void timeout_is_eagain_and_not_early(void **state)
{
	static const long timeouts_ms[] = {1, 20, 70};
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, 1));
	for (size_t i = 0; i < ARRAY_COUNT(timeouts_ms); i++) {
		int64_t start_ns = monotonic_ns();

		CHECK_ERR(SEMTIMEDOP(id, timeouts_ms[i], {0, -1, 0}), EAGAIN);
		CHECK(monotonic_ns() - start_ns >= timeouts_ms[i] * 1000000);
		start_ns = monotonic_ns();
		CHECK_ERR(SEMTIMEDOP(id, timeouts_ms[i], {1, 0, 0}), EAGAIN);
		CHECK(monotonic_ns() - start_ns >= timeouts_ms[i] * 1000000);
		start_ns = monotonic_ns();
		CHECK_ERR(SEMTIMEDOP(id, timeouts_ms[i], {1, 3, SEM_UNDO}, {0, -1, SEM_UNDO}),
			  EAGAIN);
		CHECK(monotonic_ns() - start_ns >= timeouts_ms[i] * 1000000);
	}
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_INT(sem_value(id, 1), 1);
	CHECK_INT(sem_pid(id, 0), 0);
	/* The token that comes too late stays. */
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 1);
}

static void timeout_that_is_long_does_not_end_the_sleep(void **state)
{
	static const struct timespec timeouts[] = {
		{.tv_sec = 3600},
		{.tv_sec = INT_MAX, .tv_nsec = 999999999},
		{.tv_sec = LONG_MAX, .tv_nsec = 999999999},
	};
	int id = sem_new(1);

	(void)state;
	for (unsigned int i = 0; i < ARRAY_COUNT(timeouts); i++) {
		pid_t kid;

		IN_CHILD (kid)
			RECORD(i, semtimedop(id, OPS({0, -1, 0}), 1, &timeouts[i]));
		UNTIL(sem_ncnt(id, 0) == 1);
		UNTIL(task_sleeps(kid));
		CHECK_INT(sem_ncnt(id, 0), 1);
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		CHECK_INT(sem_value(id, 0), 0);
		ENDS(i, 0);
		child_ok(kid);
	}
}

static void timeout_does_not_count_for_the_next_call(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_ERR(SEMTIMEDOP(id, 5, {0, -1, 0}), EAGAIN);
	CHECK_OK(SEMTIMEDOP(id, 5, {0, 1, 0}));
	CHECK_OK(SEMTIMEDOP(id, 0, {0, -1, 0}));
}

/* Whoever comes first, expiry or the post, the token is either taken or still there. */
static void timeout_and_success_never_both(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		for (int i = 0; i < 400; i++) {
			long timeout_ns = 20000L + i % 40 * 5000L;
			int ret;

			CHECK_OK(SEMOP(id, {1, 1, 0}));
			ret = semtimedop(id, OPS({0, -1, 0}), 1,
					 &(struct timespec){.tv_nsec = timeout_ns});
			if (ret == -1)
				CHECK_INT(errno, EAGAIN);
			board->number[0] = ret;
			CHECK_OK(SEMOP(id, {1, 1, 0}));
			CHECK_OK(SEMOP(id, {1, 0, 0}));
		}
	}
	for (int i = 0; i < 400; i++) {
		CHECK_OK(SEMOP(id, {1, -1, 0}));
		(void)nanosleep(&(struct timespec){.tv_nsec = i % 7 * 20000L}, NULL);
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		/* The child waits for zero behind its second post, so it stands still now. */
		UNTIL(sem_value(id, 1) == 1);
		CHECK_INT(sem_value(id, 0), board->number[0] == 0 ? 0 : 1);
		CHECK_INT(sem_ncnt(id, 0), 0);
		CHECK_OK(sem_setval(id, 0, 0));
		CHECK_OK(SEMOP(id, {1, -1, 0}));
	}
	child_ok(kid);
}

/* ---- signals ---- */

static atomic_int handler_runs;

static void count_signal(int signal_number)
{
	(void)signal_number;
	atomic_fetch_add(&handler_runs, 1);
}

static void catch_signal(int signal_number, int flags, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	CHECK_OK(sigaction(signal_number, &action, NULL));
}

enum sleep_kind {
	DECREMENT,
	DECREMENT_UNDO,
	TIMED,
	ZERO,
	SEVERAL,
	SLEEP_KINDS,
};

/* On a set of three, values 0 1 1: sleeps as the kind says. */
static int sleep_as(enum sleep_kind kind, int id)
{
	switch (kind) {
	case DECREMENT:
		return SEMOP(id, {0, -1, 0});
	case DECREMENT_UNDO:
		return SEMOP(id, {0, -1, SEM_UNDO});
	case TIMED:
		return SEMTIMEDOP(id, 3600000, {0, -1, 0});
	case ZERO:
		return SEMOP(id, {1, 0, 0});
	default:
		return SEMOP(id, {2, -1, SEM_UNDO}, {1, 5, 0}, {0, -1, SEM_UNDO});
	}
}

static int sleep_set(void)
{
	int id = sem_new(3);

	CHECK_OK(sem_setval(id, 1, 1));
	CHECK_OK(sem_setval(id, 2, 1));
	board->number[63] = getpid();
	return id;
}

static void check_sleep_set_untouched(int id)
{
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 1);
	CHECK_INT(sem_value(id, 2), 1);
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_INT(sem_pid(id, 0), 0);
	CHECK_INT(sem_pid(id, 1), board->number[63]);
}

static bool sleeps_as(enum sleep_kind kind, int id)
{
	return kind == ZERO ? sem_zcnt(id, 1) == 1 : sem_ncnt(id, 0) == 1;
}

static void signal_with_a_handler_is_eintr_even_with_sa_restart(void **state)
{
	static const int flags[] = {0, SA_RESTART, SA_RESTART | SA_NODEFER};

	(void)state;
	for (int kind = 0; kind < SLEEP_KINDS; kind++) {
		for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
			int id = sleep_set();
			pid_t kid;

			IN_CHILD (kid) {
				catch_signal(SIGUSR1, flags[i], count_signal);
				CHECK_ERR(sleep_as(kind, id), EINTR);
				CHECK_INT(handler_runs, 1);
			}
			UNTIL(sleeps_as(kind, id));
			CHECK_OK(kill(kid, SIGUSR1));
			child_ok(kid);
			check_sleep_set_untouched(id);
		}
	}
}

static void signal_that_is_ignored_does_not_end_the_sleep(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		(void)signal(SIGUSR1, SIG_IGN);
		RECORD(0, SEMOP(id, {0, -1, 0}));
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(kill(kid, SIGUSR1));
	/* These are ignored by default. */
	CHECK_OK(kill(kid, SIGCHLD));
	CHECK_OK(kill(kid, SIGWINCH));
	CHECK_OK(kill(kid, SIGURG));
	CHECK_OK(kill(kid, SIGCONT));
	UNTIL(task_sleeps(kid));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	ENDS(0, 0);
}

static void signal_that_is_blocked_does_not_end_the_sleep(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		sigset_t set;

		catch_signal(SIGUSR1, 0, count_signal);
		CHECK_OK(sigemptyset(&set));
		CHECK_OK(sigaddset(&set, SIGUSR1));
		CHECK_OK(sigprocmask(SIG_BLOCK, &set, NULL));
		RECORD(0, SEMOP(id, {0, -1, 0}));
		CHECK_INT(handler_runs, 0);
		CHECK_OK(sigprocmask(SIG_UNBLOCK, &set, NULL));
		CHECK_INT(handler_runs, 1);
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(kill(kid, SIGUSR1));
	UNTIL(task_sleeps(kid));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	ENDS(0, 0);
	child_ok(kid);
}

static int handler_set;

/* The interrupted call has left its queue by now, so what is given here is not taken by it. */
static void give_in_handler(int signal_number)
{
	(void)signal_number;
	CHECK_INT(sem_ncnt(handler_set, 0), 0);
	CHECK_OK(SEMOP(handler_set, {0, 1, 0}));
}

static void signal_handler_may_use_the_same_semaphore(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	handler_set = id;
	IN_CHILD (kid) {
		catch_signal(SIGUSR1, SA_RESTART, give_in_handler);
		CHECK_ERR(SEMOP(id, {0, -1, 0}), EINTR);
		CHECK_INT(sem_value(id, 0), 1);
		CHECK_OK(SEMOP(id, {0, -1, 0}));
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(kill(kid, SIGUSR1));
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 0);
}

/* One sleep inside a handler that interrupted another. */
static void sleep_in_handler(int signal_number)
{
	(void)signal_number;
	CHECK_OK(SEMOP(handler_set, {1, -1, 0}));
}

static void signal_handler_may_sleep(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	handler_set = id;
	IN_CHILD (kid) {
		catch_signal(SIGUSR1, SA_RESTART, sleep_in_handler);
		CHECK_ERR(SEMOP(id, {0, -1, 0}), EINTR);
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(kill(kid, SIGUSR1));
	UNTIL(sem_ncnt(id, 1) == 1);
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_OK(SEMOP(id, {1, 1, 0}));
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_INT(sem_value(id, 1), 0);
}

static sigjmp_buf out_of_sleep;

static void leap(int signal_number)
{
	(void)signal_number;
	siglongjmp(out_of_sleep, 1);
}

/* A function of its own: what its caller counts must survive the leap. */
static __attribute__((noinline)) void sleep_and_leap(enum sleep_kind kind, int id)
{
	catch_signal(SIGUSR1, 0, leap);
	if (sigsetjmp(out_of_sleep, 1) == 0) {
		(void)sleep_as(kind, id);
		check_fail(__FILE__, __LINE__, "the sleep ended by itself");
	}
}

static void signal_handler_may_leap_out_of_the_sleep(void **state)
{
	(void)state;
	for (int kind = 0; kind < SLEEP_KINDS; kind++) {
		int id = sleep_set();
		pid_t kid;

		IN_CHILD (kid) {
			sleep_and_leap(kind, id);
			check_sleep_set_untouched(id);
			CHECK_OK(SEMOP(id, {0, 2, 0}, {0, -2, 0}, {0, 0, 0}));
		}
		UNTIL(sleeps_as(kind, id));
		CHECK_OK(kill(kid, SIGUSR1));
		child_ok(kid);
		CHECK_INT(sem_value(id, 0), 0);
		CHECK_INT(sem_value(id, 1), 1);
		CHECK_INT(sem_value(id, 2), 1);
	}
}

static void signal_and_success_never_both(void **state)
{
	enum { ROUNDS = 300 };
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		catch_signal(SIGUSR1, SA_RESTART, count_signal);
		for (int i = 0; i < ROUNDS; i++) {
			int ret = SEMOP(id, {0, -1, 0});

			if (ret == -1)
				CHECK_INT(errno, EINTR);
			/* Both have happened: one of them to the call, the other too late. */
			while (atomic_load(&handler_runs) <= i || atomic_load(&board->flag[2]) <= i)
				(void)sched_yield();
			CHECK_INT(sem_value(id, 0), ret == 0 ? 0 : 1);
			CHECK_OK(sem_setval(id, 0, 0));
			atomic_store(&board->flag[0], i + 1);
			while (atomic_load(&board->flag[1]) <= i)
				(void)sched_yield();
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		UNTIL(sem_ncnt(id, 0) == 1);
		if (i % 2 == 0) {
			CHECK_OK(kill(kid, SIGUSR1));
			CHECK_OK(SEMOP(id, {0, 1, 0}));
		} else {
			CHECK_OK(SEMOP(id, {0, 1, 0}));
			CHECK_OK(kill(kid, SIGUSR1));
		}
		atomic_store(&board->flag[2], i + 1);
		UNTIL(atomic_load(&board->flag[0]) == i + 1);
		CHECK_INT(sem_ncnt(id, 0), 0);
		atomic_store(&board->flag[1], i + 1);
	}
	child_ok(kid);
}

/* A stopped sleeper has left the queue, and finds EINTR when it goes on. */
static void stop_and_cont_is_eintr_and_leaves_the_queue(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	compat_skip("stop-cont");
	kid = SLEEPER(0, id, {0, -1, 0});
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(kill(kid, SIGSTOP));
	UNTIL(task_state(kid) == 'T');
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_OK(SEMOP(id, {0, -1, IPC_NOWAIT}));
	CHECK_OK(kill(kid, SIGCONT));
	ENDS(0, EINTR);
}

/* ---- threads ---- */

struct thread_call {
	pthread_t thread;
	int id;
	unsigned short number;
	int err;
};

static void *thread_takes(void *arg)
{
	struct thread_call *call = arg;

	call->err = SEMOP(call->id, {call->number, -1, 0}) == -1 ? errno : 0;
	return NULL;
}

static void threads_of_one_process_sleep_each_for_itself(void **state)
{
	int id = sem_new(3);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		struct thread_call calls[6];

		catch_signal(SIGUSR1, 0, count_signal);
		for (int i = 0; i < 6; i++) {
			calls[i] =
				(struct thread_call){.id = id, .number = (unsigned short)(i % 3)};
			CHECK_INT(pthread_create(&calls[i].thread, NULL, thread_takes, &calls[i]),
				  0);
		}
		for (int i = 0; i < 3; i++)
			UNTIL(sem_ncnt(id, i) == 2);
		/* A signal ends the call of the thread that it is for. */
		CHECK_INT(pthread_kill(calls[4].thread, SIGUSR1), 0);
		CHECK_INT(pthread_join(calls[4].thread, NULL), 0);
		CHECK_INT(calls[4].err, EINTR);
		CHECK_INT(sem_ncnt(id, 0), 2);
		CHECK_INT(sem_ncnt(id, 1), 1);
		CHECK_INT(sem_ncnt(id, 2), 2);
		CHECK_OK(SEMOP(id, {0, 2, 0}, {1, 1, 0}));
		CHECK_INT(pthread_join(calls[0].thread, NULL), 0);
		CHECK_INT(pthread_join(calls[1].thread, NULL), 0);
		CHECK_INT(pthread_join(calls[3].thread, NULL), 0);
		CHECK_INT(calls[0].err | calls[1].err | calls[3].err, 0);
		CHECK_INT(sem_pid(id, 0), getpid());
		CHECK_INT(sem_ncnt(id, 2), 2);
		/* The rest ends with the process. */
	}
	child_ok(kid);
	CHECK_INT(sem_ncnt(id, 2), 0);
	CHECK_OK(SEMOP(id, {2, 1, 0}));
	CHECK_INT(sem_value(id, 2), 1);
}

/* ---- removal ---- */

static void rmid_ends_every_sleep_with_eidrm(void **state)
{
	int id = sleep_set();
	pid_t kid;

	(void)state;
	for (unsigned int kind = 0; kind < SLEEP_KINDS; kind++) {
		IN_CHILD (kid)
			RECORD(kind, sleep_as(kind, id));
	}
	UNTIL(sem_ncnt(id, 0) == SLEEP_KINDS - 1);
	UNTIL(sem_zcnt(id, 1) == 1);
	CHECK_INT(semctl(id, 0, IPC_RMID), 0);
	for (unsigned int kind = 0; kind < SLEEP_KINDS; kind++)
		ENDS(kind, EIDRM);
	/* Who comes later knows nothing of it. */
	CHECK_ERR(SEMOP(id, {0, -1, 0}), EINVAL);
}

static void rmid_by_another_process_ends_the_callers_sleep(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		UNTIL(sem_ncnt(id, 0) == 1);
		CHECK_OK(semctl(id, 0, IPC_RMID));
	}
	CHECK_ERR(SEMOP(id, {0, -1, 0}), EIDRM);
	child_ok(kid);
}

/* The set that takes the place of the removed one is not what they waited for. */
static void rmid_and_a_new_set_with_the_key_does_not_serve_old_sleepers(void **state)
{
	int id = own_sem((int)CHECK_OK(semget(test_key(1), 1, IPC_CREAT | 0600)));
	int second;

	(void)state;
	(void)SLEEPER(0, id, {0, -1, 0});
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(semctl(id, 0, IPC_RMID));
	second = own_sem((int)CHECK_OK(semget(test_key(1), 1, IPC_CREAT | 0600)));
	CHECK_OK(SEMOP(second, {0, 1, 0}));
	ENDS(0, EIDRM);
	CHECK_INT(sem_value(second, 0), 1);
	CHECK_INT(sem_ncnt(second, 0), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(sleepers_are_counted_where_they_wait),
		TEST(sleeper_counts_once_for_its_first_blocking_operation),
		TEST(sleeper_with_one_semaphore_twice_counts_once),
		TEST(sleeper_that_is_killed_is_counted_no_more),
		TEST(timeout_is_eagain_and_not_early),
		TEST(timeout_that_is_long_does_not_end_the_sleep),
		TEST(timeout_does_not_count_for_the_next_call),
		TEST(timeout_and_success_never_both),
		TEST(signal_with_a_handler_is_eintr_even_with_sa_restart),
		TEST(signal_that_is_ignored_does_not_end_the_sleep),
		TEST(signal_that_is_blocked_does_not_end_the_sleep),
		TEST(signal_handler_may_use_the_same_semaphore),
		TEST(signal_handler_may_sleep),
		TEST(signal_handler_may_leap_out_of_the_sleep),
		TEST(signal_and_success_never_both),
		TEST(stop_and_cont_is_eintr_and_leaves_the_queue),
		TEST(threads_of_one_process_sleep_each_for_itself),
		TEST(rmid_ends_every_sleep_with_eidrm),
		TEST(rmid_by_another_process_ends_the_callers_sleep),
		TEST(rmid_and_a_new_set_with_the_key_does_not_serve_old_sleepers),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("sem-sleep", tests, NULL, NULL);
}
