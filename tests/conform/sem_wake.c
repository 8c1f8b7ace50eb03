// SPDX-License-Identifier: MIT
/*
 * conform-sem-wake: who is served when a set changes. The process that changes it performs every
 * sleeping call that became possible, in the order of arrival, before it returns; so after any
 * call the counts and values show at once who was served, and no test here has to wait to see
 * that somebody was not.
 */
#include "conform/sem_calls.h"

/* Queues a sleeper behind those that wait already: its semaphore counts `number` of them after. */
#define QUEUE(row, id, sem, number, ...)                                                           \
	do {                                                                                       \
		(void)SLEEPER(row, id, __VA_ARGS__);                                               \
		UNTIL(sem_ncnt(id, sem) == (number));                                              \
	} while (0)

#define QUEUE_ZERO(row, id, sem, number, ...)                                                      \
	do {                                                                                       \
		(void)SLEEPER(row, id, __VA_ARGS__);                                               \
		UNTIL(sem_zcnt(id, sem) == (number));                                              \
	} while (0)

/* ---- hand-off ---- */

static void post_serves_the_sleeper_at_once(void **state)
{
	int id = sem_new(1);

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		QUEUE(i, id, 0, 1, {0, -1, 0});
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		/* Whether the sleeper runs already or not. */
		CHECK_ERR(SEMOP(id, {0, -1, IPC_NOWAIT}), EAGAIN);
		CHECK_INT(sem_value(id, 0), 0);
		CHECK_INT(sem_ncnt(id, 0), 0);
		ENDS(i, 0);
	}
}

static void post_by_the_waker_records_the_sleepers_pid(void **state)
{
	int id = sem_new(3);
	pid_t kid;

	(void)state;
	kid = SLEEPER(0, id, {0, -1, 0}, {1, 0, 0});
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_INT(sem_pid(id, 0), 0);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_pid(id, 0), kid);
	CHECK_INT(sem_pid(id, 1), kid);
	CHECK_INT(sem_pid(id, 2), 0);
	ENDS(0, 0);
}

static void post_that_suffices_for_some_serves_those(void **state)
{
	int id = sem_new(1);

	(void)state;
	QUEUE(0, id, 0, 1, {0, -2, 0});
	QUEUE(1, id, 0, 2, {0, -2, 0});
	QUEUE(2, id, 0, 3, {0, -1, 0});
	QUEUE(3, id, 0, 4, {0, -1, 0});
	CHECK_OK(SEMOP(id, {0, 3, 0}));
	ENDS(0, 0);
	ENDS(2, 0);
	CHECK_INT(sem_ncnt(id, 0), 2);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_OK(SEMOP(id, {0, 3, 0}));
	ENDS(1, 0);
	ENDS(3, 0);
	CHECK_INT(sem_value(id, 0), 0);
}

static void post_of_one_semaphore_leaves_sleepers_of_others(void **state)
{
	int id = sem_new(8);

	(void)state;
	for (unsigned short i = 0; i < 8; i++)
		QUEUE(i, id, i, 1, {i, -1, 0});
	for (unsigned short i = 0; i < 8; i++) {
		CHECK_OK(SEMOP(id, {i, 1, 0}));
		for (int k = 0; k < 8; k++)
			CHECK_INT(sem_ncnt(id, k), k > i);
		ENDS(i, 0);
	}
}

/* ---- order ---- */

static void equal_sleepers_are_served_first_in_first_out(void **state)
{
	enum { COUNT = 6 };
	int id = sem_new(1);

	(void)state;
	for (unsigned int i = 0; i < COUNT; i++)
		QUEUE(i, id, 0, (int)i + 1, {0, -1, 0});
	for (unsigned int i = 0; i < COUNT; i++) {
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		CHECK_INT(sem_ncnt(id, 0), COUNT - 1 - (int)i);
		ENDS(i, 0);
	}
}

static void equal_sleepers_for_several_are_served_first_in_first_out(void **state)
{
	enum { COUNT = 6 };
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, COUNT));
	for (unsigned int i = 0; i < COUNT; i++)
		QUEUE(i, id, 0, (int)i + 1, {0, -1, 0}, {1, -1, 0});
	for (unsigned int i = 0; i < COUNT; i++) {
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		CHECK_INT(sem_ncnt(id, 0), COUNT - 1 - (int)i);
		CHECK_INT(sem_value(id, 1), COUNT - 1 - (int)i);
		ENDS(i, 0);
	}
}

static void simple_and_several_stand_in_one_line(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, 10));
	QUEUE(0, id, 0, 1, {0, -1, 0});
	QUEUE(1, id, 0, 2, {0, -1, 0}, {1, -1, 0});
	QUEUE(2, id, 0, 3, {0, -1, 0});
	QUEUE(3, id, 0, 4, {1, -1, 0}, {0, -1, 0});
	QUEUE(4, id, 0, 5, {0, -1, 0});
	for (unsigned int i = 0; i < 5; i++) {
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		CHECK_INT(sem_ncnt(id, 0), 4 - (int)i);
		ENDS(i, 0);
	}
	CHECK_INT(sem_value(id, 1), 8);
}

static void sleeper_that_cannot_run_is_passed_over(void **state)
{
	int id = sem_new(1);

	(void)state;
	QUEUE(0, id, 0, 1, {0, -2, 0});
	QUEUE(1, id, 0, 2, {0, -1, 0});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	ENDS(1, 0);
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_INT(sem_value(id, 0), 0);
	/* The large one keeps its place, but nothing is kept for it. */
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, -1, IPC_NOWAIT}));
	CHECK_OK(SEMOP(id, {0, 2, 0}));
	ENDS(0, 0);
}

static void sleeper_for_several_that_cannot_run_is_passed_over(void **state)
{
	int id = sem_new(2);

	(void)state;
	QUEUE(0, id, 0, 1, {0, -1, 0}, {1, -1, 0});
	QUEUE(1, id, 0, 2, {0, -1, 0});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	ENDS(1, 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_INT(sem_ncnt(id, 1), 1);
	CHECK_OK(SEMOP(id, {1, 1, 0}));
	ENDS(0, 0);
	CHECK_INT(sem_value(id, 0), 0);
}

/* Serving one may make an earlier one possible: the line is gone through again. */
static void line_is_gone_through_again_after_a_change(void **state)
{
	int id = sem_new(3);

	(void)state;
	QUEUE(0, id, 0, 1, {0, -1, 0});
	QUEUE(1, id, 1, 1, {1, -1, 0}, {0, 1, 0});
	QUEUE(2, id, 2, 1, {2, -1, 0}, {1, 1, 0});
	CHECK_OK(SEMOP(id, {2, 1, 0}));
	for (int i = 0; i < 3; i++) {
		CHECK_INT(sem_ncnt(id, i), 0);
		CHECK_INT(sem_value(id, i), 0);
	}
	for (unsigned int i = 0; i < 3; i++)
		ENDS(i, 0);
}

static void chain_of_sleepers_is_served_by_one_post(void **state)
{
	enum { LENGTH = 20 };
	int id = sem_new(LENGTH + 1);

	(void)state;
	for (unsigned short i = 0; i < LENGTH; i++)
		QUEUE(i, id, i, 1, {i, -1, 0}, {(unsigned short)(i + 1), 1, 0});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	for (int i = 0; i < LENGTH; i++)
		CHECK_INT(sem_value(id, i), 0);
	CHECK_INT(sem_value(id, LENGTH), 1);
	for (unsigned int i = 0; i < LENGTH; i++)
		ENDS(i, 0);
}

/* ---- waiting for zero ---- */

static void zero_serves_all_who_wait_for_it(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_OK(sem_setval(id, 0, 2));
	for (unsigned int i = 0; i < 5; i++)
		QUEUE_ZERO(i, id, 0, (int)i + 1, {0, 0, 0});
	CHECK_OK(SEMOP(id, {0, -1, 0}));
	CHECK_INT(sem_zcnt(id, 0), 5);
	CHECK_OK(SEMOP(id, {0, -1, 0}));
	CHECK_INT(sem_zcnt(id, 0), 0);
	for (unsigned int i = 0; i < 5; i++)
		ENDS(i, 0);
}

/* Only the values that a call leaves behind are seen by others. */
static void zero_in_the_middle_of_a_call_serves_nobody(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_OK(sem_setval(id, 0, 1));
	QUEUE_ZERO(0, id, 0, 1, {0, 0, 0});
	CHECK_OK(SEMOP(id, {0, -1, 0}, {0, 2, 0}));
	CHECK_INT(sem_zcnt(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, -2, 0}));
	CHECK_INT(sem_zcnt(id, 0), 0);
	ENDS(0, 0);
}

/* The zero would be gone if the other came first. */
static void zero_is_served_before_who_changes_it(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 0, 1));
	QUEUE(0, id, 1, 1, {1, -1, 0}, {0, 1, 0});
	QUEUE_ZERO(1, id, 0, 1, {0, 0, 0});
	CHECK_OK(SEMOP(id, {0, -1, 0}, {1, 1, 0}));
	CHECK_INT(sem_zcnt(id, 0), 0);
	CHECK_INT(sem_ncnt(id, 1), 0);
	CHECK_INT(sem_value(id, 0), 1);
	ENDS(0, 0);
	ENDS(1, 0);
}

/* One who is served leaves zero behind, the next one takes it away again: both at one post. */
static void zero_is_looked_at_again_after_each_one_served(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, 1));
	QUEUE(0, id, 0, 1, {0, -1, 0}, {1, -1, 0});
	QUEUE(1, id, 0, 2, {0, -1, 0}, {1, 1, 0});
	QUEUE_ZERO(2, id, 1, 1, {1, 0, 0});
	CHECK_OK(SEMOP(id, {0, 2, 0}));
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 1);
	for (unsigned int i = 0; i < 3; i++)
		ENDS(i, 0);
}

/* Who waits for zero only is looked at when a semaphore is left at 0, and not before. */
static void zero_waiter_is_looked_at_only_at_zero(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, 1));
	QUEUE_ZERO(0, id, 1, 1, {0, 0, IPC_NOWAIT}, {1, 0, 0});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_zcnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 1);
	CHECK_OK(SEMOP(id, {1, 1, 0}));
	CHECK_INT(sem_zcnt(id, 1), 1);
	CHECK_OK(SEMOP(id, {1, -2, 0}));
	ENDS(0, EAGAIN);
}

/* The count is as lazy: it tells where the sleeper stood when it was looked at last. */
static void zero_waiter_is_counted_where_it_was_seen_last(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, 1));
	QUEUE_ZERO(0, id, 1, 1, {0, 0, 0}, {1, 0, 0});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_zcnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 1);
	CHECK_OK(SEMOP(id, {1, -1, 0}));
	CHECK_INT(sem_zcnt(id, 0), 1);
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_OK(SEMOP(id, {0, -1, 0}));
	ENDS(0, 0);
}

/* ---- a sleeping call that ends with an error of its own ---- */

static void later_operation_with_nowait_is_eagain_when_the_first_is_possible(void **state)
{
	int id = sem_new(2);

	(void)state;
	QUEUE(0, id, 0, 1, {0, -1, 0}, {1, -1, IPC_NOWAIT});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_value(id, 0), 1);
	ENDS(0, EAGAIN);
}

static void earlier_operation_with_nowait_is_eagain_when_it_becomes_impossible(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 0, 1));
	QUEUE(0, id, 1, 1, {0, -1, IPC_NOWAIT}, {1, -1, 0});
	CHECK_OK(SEMOP(id, {0, -1, 0}));
	CHECK_INT(sem_ncnt(id, 1), 0);
	ENDS(0, EAGAIN);
}

static void later_operation_out_of_range_is_erange_when_the_first_is_possible(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_OK(sem_setval(id, 1, SEMVMX));
	QUEUE(0, id, 0, 1, {0, -1, 0}, {1, 1, 0});
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 1);
	ENDS(0, ERANGE);
}

static void earlier_operation_out_of_range_is_erange_when_it_becomes_so(void **state)
{
	int id = sem_new(2);

	(void)state;
	QUEUE(0, id, 1, 1, {0, 1, 0}, {1, -1, 0});
	CHECK_OK(SEMOP(id, {0, SEMVMX - 1, 0}));
	CHECK_INT(sem_ncnt(id, 1), 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 1), 0);
	CHECK_INT(sem_value(id, 0), SEMVMX);
	ENDS(0, ERANGE);
}

/* What would have to be given back does not fit any more: the call fails, the post stays. */
static void undo_out_of_range_is_erange_when_the_operation_is_possible(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	CHECK_OK(sem_setval(id, 0, SEMVMX));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -SEMVMX, SEM_UNDO}));
		RECORD(0, SEMOP(id, {0, -1, SEM_UNDO}));
		UNTIL(atomic_load(&board->flag[0]));
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_value(id, 0), 1);
	ENDS(0, ERANGE);
	atomic_store(&board->flag[0], 1);
	child_ok(kid);
}

/* ---- the semctl commands as wakers ---- */

static void setval_serves_sleepers(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	QUEUE(0, id, 0, 1, {0, -1, 0});
	kid = SLEEPER(1, id, {0, -1, 0});
	UNTIL(sem_ncnt(id, 0) == 2);
	QUEUE(2, id, 0, 3, {0, -1, 0});
	CHECK_OK(sem_setval(id, 0, 2));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_pid(id, 0), kid);
	ENDS(0, 0);
	ENDS(1, 0);
	CHECK_OK(sem_setval(id, 1, 5));
	CHECK_INT(sem_ncnt(id, 0), 1);
	QUEUE_ZERO(3, id, 1, 1, {1, 0, 0});
	CHECK_OK(sem_setval(id, 1, 4));
	CHECK_INT(sem_zcnt(id, 1), 1);
	CHECK_OK(sem_setval(id, 1, 0));
	CHECK_INT(sem_zcnt(id, 1), 0);
	ENDS(3, 0);
}

static void setval_sets_otime_if_a_sleeper_succeeded(void **state)
{
	int id = sem_new(2);

	(void)state;
	/* One that ends by an error is not enough. */
	QUEUE(0, id, 0, 1, {0, -1, 0}, {1, -1, IPC_NOWAIT});
	CHECK_OK(sem_setval(id, 0, 1));
	ENDS(0, EAGAIN);
	CHECK_INT(sem_stat(id).sem_otime, 0);
	CHECK_OK(sem_setval(id, 0, 0));
	CHECK_INT(sem_stat(id).sem_otime, 0);
	QUEUE(1, id, 0, 1, {0, -1, 0});
	CHECK_OK(sem_setval(id, 0, 1));
	CHECK(sem_stat(id).sem_otime != 0);
	ENDS(1, 0);
}

static void setall_serves_sleepers_and_sets_otime(void **state)
{
	unsigned short values[] = {2, 1, 0};
	int id = sem_new(3);

	(void)state;
	CHECK_OK(sem_setval(id, 2, 1));
	QUEUE(0, id, 0, 1, {0, -1, 0}, {1, -1, 0});
	QUEUE(1, id, 0, 2, {0, -2, 0});
	QUEUE(2, id, 0, 3, {0, -1, 0});
	QUEUE_ZERO(3, id, 2, 1, {2, 0, 0});
	CHECK_INT(sem_stat(id).sem_otime, 0);
	CHECK_OK(sem_setall(id, values));
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_INT(sem_zcnt(id, 2), 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 0);
	CHECK(sem_stat(id).sem_otime != 0);
	ENDS(0, 0);
	ENDS(2, 0);
	ENDS(3, 0);
}

static void ipc_set_does_not_disturb_sleepers(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	need_users();
	sem_chmod(id, 0666);
	IN_CHILD (kid) {
		become_nobody();
		RECORD(0, SEMOP(id, {0, -1, 0}));
		CHECK_ERR(SEMOP(id, {0, 1, 0}), EACCES);
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	sem_chmod(id, 0600);
	CHECK_INT(sem_ncnt(id, 0), 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_ncnt(id, 0), 0);
	ENDS(0, 0);
	child_ok(kid);
}

/* ---- the sleeper's own part ---- */

/* The operations are copied by the call; what becomes of the array then is nobody's concern. */
static void operations_are_those_of_the_call(void **state)
{
	struct sembuf *ops = (struct sembuf *)(void *)board->text;
	int id = sem_new(3);
	pid_t kid;

	(void)state;
	ops[0] = (struct sembuf){0, -1, 0};
	ops[1] = (struct sembuf){1, 3, 0};
	IN_CHILD (kid)
		RECORD(0, semop(id, ops, 2));
	UNTIL(sem_ncnt(id, 0) == 1);
	ops[0].sem_op = 5;
	ops[1].sem_num = 2;
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	ENDS(0, 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 3);
	CHECK_INT(sem_value(id, 2), 0);
}

static void sleeper_with_many_operations_is_served(void **state)
{
	enum { COUNT = 500 };
	struct sembuf *ops = (struct sembuf *)(void *)board->text;
	int id = sem_new(COUNT);
	pid_t kid;

	(void)state;
	for (unsigned short i = 0; i < COUNT; i++)
		ops[i] = (struct sembuf){i, i == COUNT - 1 ? -1 : 1, 0};
	IN_CHILD (kid)
		RECORD(0, semop(id, ops, COUNT));
	UNTIL(sem_ncnt(id, COUNT - 1) == 1);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_OK(SEMOP(id, {COUNT - 1, 1, 0}));
	for (int i = 0; i < COUNT - 1; i++)
		CHECK_INT(sem_value(id, i), 1);
	CHECK_INT(sem_value(id, COUNT - 1), 0);
	ENDS(0, 0);
	child_ok(kid);
}

static void sleeper_that_was_served_sets_otime(void **state)
{
	int id = sem_new(2);
	time_t posted;

	(void)state;
	QUEUE(0, id, 1, 1, {1, -1, 0});
	CHECK_INT(sem_stat(id).sem_otime, 0);
	CHECK_OK(SEMOP(id, {1, 1, 0}));
	posted = sem_stat(id).sem_otime;
	CHECK(posted != 0);
	CHECK(posted <= second_after());
	ENDS(0, 0);
	CHECK_INT(sem_stat(id).sem_otime, posted);
}

/* Two who hand one token to and fro: nothing is lost, nobody runs twice. */
static void ping_pong_loses_nothing(void **state)
{
	enum { ROUNDS = 2000 };
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		for (int i = 0; i < ROUNDS; i++) {
			CHECK_OK(SEMOP(id, {0, -1, 0}));
			board->number[0]++;
			CHECK_OK(SEMOP(id, {1, 1, 0}));
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(board->number[0], i);
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		CHECK_OK(SEMOP(id, {1, -1, 0}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 0);
}

/* A lock over several semaphores, taken by many: nobody else is inside, all get through. */
static void lock_of_two_semaphores_excludes(void **state)
{
	enum { KIDS = 4, ROUNDS = 300 };
	int id = sem_new(3);
	pid_t kids[KIDS];

	(void)state;
	CHECK_OK(SEMOP(id, {0, 1, 0}, {1, 1, 0}));
	for (int k = 0; k < KIDS; k++) {
		IN_CHILD (kids[k]) {
			for (int i = 0; i < ROUNDS; i++) {
				CHECK_OK(SEMOP(id, {0, -1, 0}, {1, -1, 0}, {2, 0, 0}, {2, 1, 0}));
				CHECK_INT(atomic_fetch_add(&board->flag[0], 1), 0);
				board->number[0] = board->number[0] + 1;
				CHECK_INT(atomic_fetch_sub(&board->flag[0], 1), 1);
				CHECK_OK(SEMOP(id, {2, -1, 0}, {0, 1, 0}, {1, 1, 0}));
			}
		}
	}
	for (int k = 0; k < KIDS; k++)
		child_ok(kids[k]);
	CHECK_INT(board->number[0], KIDS * ROUNDS);
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_INT(sem_value(id, 1), 1);
	CHECK_INT(sem_value(id, 2), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(post_serves_the_sleeper_at_once),
		TEST(post_by_the_waker_records_the_sleepers_pid),
		TEST(post_that_suffices_for_some_serves_those),
		TEST(post_of_one_semaphore_leaves_sleepers_of_others),
		TEST(equal_sleepers_are_served_first_in_first_out),
		TEST(equal_sleepers_for_several_are_served_first_in_first_out),
		TEST(simple_and_several_stand_in_one_line),
		TEST(sleeper_that_cannot_run_is_passed_over),
		TEST(sleeper_for_several_that_cannot_run_is_passed_over),
		TEST(line_is_gone_through_again_after_a_change),
		TEST(chain_of_sleepers_is_served_by_one_post),
		TEST(zero_serves_all_who_wait_for_it),
		TEST(zero_in_the_middle_of_a_call_serves_nobody),
		TEST(zero_is_served_before_who_changes_it),
		TEST(zero_is_looked_at_again_after_each_one_served),
		TEST(zero_waiter_is_looked_at_only_at_zero),
		TEST(zero_waiter_is_counted_where_it_was_seen_last),
		TEST(later_operation_with_nowait_is_eagain_when_the_first_is_possible),
		TEST(earlier_operation_with_nowait_is_eagain_when_it_becomes_impossible),
		TEST(later_operation_out_of_range_is_erange_when_the_first_is_possible),
		TEST(earlier_operation_out_of_range_is_erange_when_it_becomes_so),
		TEST(undo_out_of_range_is_erange_when_the_operation_is_possible),
		TEST(setval_serves_sleepers),
		TEST(setval_sets_otime_if_a_sleeper_succeeded),
		TEST(setall_serves_sleepers_and_sets_otime),
		TEST(ipc_set_does_not_disturb_sleepers),
		TEST(operations_are_those_of_the_call),
		TEST(sleeper_with_many_operations_is_served),
		TEST(sleeper_that_was_served_sets_otime),
		TEST(ping_pong_loses_nothing),
		TEST(lock_of_two_semaphores_excludes),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("sem-wake", tests, NULL, NULL);
}
