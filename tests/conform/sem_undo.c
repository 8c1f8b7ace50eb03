// SPDX-License-Identifier: MIT
/*
 * conform-sem-undo: what SEM_UNDO gives back, and when it does not. Every way in which a process
 * can end or change is asked by conform-sem-undo-life; here a child simply exits, and what it owed
 * is back when its parent knows of its end.
 */
#include "conform/sem_calls.h"

/* ---- what is given back ---- */

#define UNDO SEM_UNDO

static const struct undo_case {
	const char *rule;
	unsigned short before[3];
	struct sembuf ops[6];
	unsigned short held[3];
	unsigned short after[3];
} undo_cases[] = {
	{"a decrement", {5, 0, 0}, {{0, -2, UNDO}}, {3, 0, 0}, {5, 0, 0}},
	{"an increment", {5, 0, 0}, {{0, 2, UNDO}}, {7, 0, 0}, {5, 0, 0}},
	{"none without the flag", {5, 0, 0}, {{0, -2, 0}}, {3, 0, 0}, {3, 0, 0}},
	{"flagged ones",
	 {5, 5, 5},
	 {{0, -2, UNDO}, {1, -2, 0}, {2, 3, UNDO}},
	 {3, 3, 8},
	 {5, 3, 5}},
	{"one named twice", {5, 0, 0}, {{0, -2, UNDO}, {0, -1, UNDO}}, {2, 0, 0}, {5, 0, 0}},
	{"named twice, flagged once", {5, 0, 0}, {{0, -2, UNDO}, {0, -1, 0}}, {2, 0, 0}, {4, 0, 0}},
	{"nothing if it is even", {5, 0, 0}, {{0, -2, UNDO}, {0, 2, UNDO}}, {5, 0, 0}, {5, 0, 0}},
	{"a lock by zero and one", {0, 0, 0}, {{1, 0, 0}, {1, 1, UNDO}}, {0, 1, 0}, {0, 0, 0}},
	{"a wait for zero changes nothing", {0, 4, 0}, {{0, 0, UNDO}}, {0, 4, 0}, {0, 4, 0}},
	{"the whole range", {32767, 0, 0}, {{0, -32767, UNDO}}, {0, 0, 0}, {32767, 0, 0}},
};

static void undo_gives_back_what_was_flagged(void **state)
{
	int id = sem_new(3);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(undo_cases); i++) {
		const struct undo_case *c = &undo_cases[i];
		unsigned short values[3];
		pid_t kid;

		memcpy(values, c->before, sizeof(values));
		CHECK_OK(sem_setall(id, values));
		IN_CHILD (kid) {
			struct sembuf ops[ARRAY_COUNT(c->ops)];
			size_t count = ARRAY_COUNT(ops);

			memcpy(ops, c->ops, sizeof(ops));
			while (count > 1 && !ops[count - 1].sem_op && !ops[count - 1].sem_flg)
				count--;
			CHECK_OK(semop(id, ops, count));
			CHECK_OK(sem_getall(id, values));
			CHECK_INT(memcmp(values, c->held, sizeof(values)), 0);
		}
		child_ok(kid);
		CHECK_OK(sem_getall(id, values));
		if (memcmp(values, c->after, sizeof(values)) != 0)
			check_fail(__FILE__, __LINE__, "'%s': values %d %d %d", c->rule, values[0],
				   values[1], values[2]);
	}
}

static void undo_sums_up_over_calls(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 100, 0}, {1, 100, 0}));
	IN_CHILD (kid) {
		for (int i = 0; i < 30; i++)
			CHECK_OK(SEMOP(id, {0, -3, SEM_UNDO}));
		for (int i = 0; i < 10; i++)
			CHECK_OK(SEMOP(id, {0, 2, SEM_UNDO}, {1, 1, SEM_UNDO}));
		CHECK_INT(sem_value(id, 0), 30);
		CHECK_INT(sem_value(id, 1), 110);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 100);
	CHECK_INT(sem_value(id, 1), 100);
}

static void undo_adds_to_what_others_did_meanwhile(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 5, 0}));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		atomic_store(&board->flag[0], 1);
		UNTIL(atomic_load(&board->flag[1]));
	}
	UNTIL(atomic_load(&board->flag[0]));
	CHECK_OK(SEMOP(id, {0, 10, 0}));
	atomic_store(&board->flag[1], 1);
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 15);
}

static void undo_of_many_processes_each_its_own(void **state)
{
	enum { KIDS = 12 };
	int id = sem_new(2);
	pid_t kids[KIDS];

	(void)state;
	CHECK_OK(SEMOP(id, {0, 200, 0}));
	for (short k = 0; k < KIDS; k++) {
		IN_CHILD (kids[k]) {
			CHECK_OK(SEMOP(id, {0, (short)-(k + 1), SEM_UNDO}, {1, 1, 0}));
			UNTIL(atomic_load(&board->flag[k]));
		}
	}
	UNTIL(sem_value(id, 1) == KIDS);
	CHECK_INT(sem_value(id, 0), 200 - KIDS * (KIDS + 1) / 2);
	for (int k = KIDS - 1; k >= 0; k--) {
		atomic_store(&board->flag[k], 1);
		child_ok(kids[k]);
		CHECK_INT(sem_value(id, 0), 200 - k * (k + 1) / 2);
	}
}

static void undo_of_many_sets(void **state)
{
	enum { SETS = 300 };
	static int ids[SETS];
	pid_t kid;

	(void)state;
	for (int i = 0; i < SETS; i++) {
		ids[i] = sem_new(3);
		CHECK_OK(SEMOP(ids[i], {1, 10, 0}));
	}
	IN_CHILD (kid)
		for (int i = 0; i < SETS; i++)
			CHECK_OK(SEMOP(ids[i], {1, -4, SEM_UNDO}, {2, 1, SEM_UNDO}));
	child_ok(kid);
	for (int i = 0; i < SETS; i++) {
		CHECK_INT(sem_value(ids[i], 1), 10);
		CHECK_INT(sem_value(ids[i], 2), 0);
	}
}

static void undo_of_a_large_set(void **state)
{
	enum { COUNT = 500 };
	struct sembuf ops[COUNT];
	int id = sem_new(5000);
	pid_t kid;

	(void)state;
	for (unsigned short i = 0; i < COUNT; i++)
		ops[i] = (struct sembuf){(unsigned short)(i * 10), (short)(i + 1), SEM_UNDO};
	IN_CHILD (kid)
		CHECK_OK(semop(id, ops, COUNT));
	child_ok(kid);
	for (int i = 0; i < COUNT; i++) {
		CHECK_INT(sem_value(id, i * 10), 0);
		CHECK_INT(sem_pid(id, i * 10), kid);
	}
}

/* ---- limits ---- */

static void undo_is_clamped_at_the_maximum(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 10, 0}));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -5, SEM_UNDO}, {1, 1, SEM_UNDO}));
		CHECK_OK(SEMOP(id, {0, SEMVMX - 5 - 2, 0}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), SEMVMX);
	CHECK_INT(sem_value(id, 1), 0);
}

static void undo_is_clamped_at_zero(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, 5, SEM_UNDO}, {1, 3, SEM_UNDO}));
		CHECK_OK(SEMOP(id, {0, -3, 0}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 0);
}

static void undo_sum_out_of_range_is_erange(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	/* Owed by decrements: at most 32767 back. */
	CHECK_OK(SEMOP(id, {0, SEMVMX, 0}));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -SEMVMX, SEM_UNDO}));
		CHECK_OK(SEMOP(id, {0, 2, 0}));
		CHECK_ERR(SEMOP(id, {0, -1, SEM_UNDO}), ERANGE);
		CHECK_ERR(SEMOP(id, {1, 1, SEM_UNDO}, {0, -1, SEM_UNDO}), ERANGE);
		CHECK_INT(sem_value(id, 0), 2);
		CHECK_INT(sem_value(id, 1), 0);
		/* Would it block, then that comes first. */
		CHECK_ERR(SEMOP(id, {0, -3, SEM_UNDO | IPC_NOWAIT}), EAGAIN);
		CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}));
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), SEMVMX);
	/* Owed by increments: one more than that. */
	CHECK_OK(sem_setval(id, 0, 0));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, SEMVMX, SEM_UNDO}));
		CHECK_OK(SEMOP(id, {0, -SEMVMX, 0}));
		CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}));
		CHECK_ERR(SEMOP(id, {0, 1, SEM_UNDO}), ERANGE);
		CHECK_INT(sem_value(id, 0), 1);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 0);
}

/* The value's own range is looked at before that of the sum. */
static void undo_in_one_call_sums_up_as_it_goes(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, SEMVMX, SEM_UNDO}, {0, -SEMVMX, 0}));
		CHECK_ERR(SEMOP(id, {0, 1, SEM_UNDO}, {0, 1, SEM_UNDO}), ERANGE);
		CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}, {0, -1, SEM_UNDO}, {0, 1, SEM_UNDO}));
		CHECK_INT(sem_value(id, 0), 1);
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 0);
}

/* ---- what is recorded ---- */

static void undo_sets_the_pid_only_where_something_is_owed(void **state)
{
	int id = sem_new(4);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}, {1, 1, 0}, {2, 1, SEM_UNDO}, {2, -1, SEM_UNDO},
			       {3, 0, SEM_UNDO}));
		atomic_store(&board->flag[0], 1);
		UNTIL(atomic_load(&board->flag[1]));
	}
	UNTIL(atomic_load(&board->flag[0]));
	for (int i = 0; i < 4; i++) {
		CHECK_INT(sem_pid(id, i), kid);
		CHECK_OK(SEMOP(id, {(unsigned short)i, 1, 0}));
	}
	atomic_store(&board->flag[1], 1);
	child_ok(kid);
	CHECK_INT(sem_pid(id, 0), kid);
	for (int i = 1; i < 4; i++)
		CHECK_INT(sem_pid(id, i), getpid());
}

static void undo_sets_otime(void **state)
{
	int id = sem_new(1);
	time_t used;
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, 1, SEM_UNDO}));
		board->number[0] = sem_stat(id).sem_otime;
		pass_second(board->number[0]);
	}
	child_ok(kid);
	used = sem_stat(id).sem_otime;
	CHECK(used > board->number[0]);
	CHECK(used <= second_after());
	/* Who owes nothing leaves it. */
	pass_second(used);
	IN_CHILD (kid)
		CHECK_ERR(SEMOP(id, {0, -1, IPC_NOWAIT}), EAGAIN);
	child_ok(kid);
	CHECK_INT(sem_stat(id).sem_otime, used);
}

/* The record of what is owed is made before the call is known to fail, and lasts. */
static void undo_of_a_failed_call_sets_otime_at_exit(void **state)
{
	static const struct {
		struct sembuf op;
		int err;
	} cases[] = {
		{{0, -1, SEM_UNDO | IPC_NOWAIT}, EAGAIN},
		{{9, -1, SEM_UNDO | IPC_NOWAIT}, EFBIG},
		{{1, 1, SEM_UNDO}, ERANGE},
	};
	pid_t kid;
	int id;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		id = sem_new(2);
		CHECK_OK(sem_setval(id, 1, SEMVMX));
		IN_CHILD (kid) {
			CHECK_ERR(SEMOP(id, cases[i].op), cases[i].err);
			CHECK_INT(sem_stat(id).sem_otime, 0);
		}
		child_ok(kid);
		CHECK(sem_stat(id).sem_otime != 0);
		CHECK_INT(sem_pid(id, 0), 0);
	}
	need_users();
	id = sem_new(1);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(SEMOP(id, {0, 1, SEM_UNDO}), EACCES);
	}
	child_ok(kid);
	CHECK(sem_stat(id).sem_otime != 0);
}

/* ---- what wipes it out ---- */

/* A child that owes on all of three semaphores until it is told to end. */
static pid_t debtor(int id, int row)
{
	pid_t kid;

	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}, {1, -2, SEM_UNDO}, {2, 3, SEM_UNDO}));
		atomic_store(&board->flag[row], 1);
		UNTIL(atomic_load(&board->flag[row]) == 2);
	}
	UNTIL(atomic_load(&board->flag[row]));
	return kid;
}

static void debtor_ends(pid_t kid, int row)
{
	atomic_store(&board->flag[row], 2);
	child_ok(kid);
}

static void setval_clears_what_all_owe_on_that_semaphore(void **state)
{
	int id = sem_new(3);
	pid_t kids[3];

	(void)state;
	CHECK_OK(SEMOP(id, {0, 10, 0}, {1, 10, 0}));
	for (int i = 0; i < 3; i++)
		kids[i] = debtor(id, i);
	CHECK_OK(sem_setval(id, 0, 20));
	for (int i = 0; i < 3; i++)
		debtor_ends(kids[i], i);
	CHECK_INT(sem_value(id, 0), 20);
	CHECK_INT(sem_value(id, 1), 10);
	CHECK_INT(sem_value(id, 2), 0);
}

static void setall_clears_what_all_owe_on_the_set(void **state)
{
	unsigned short values[] = {7, 8, 9};
	int id = sem_new(3);
	int other = sem_new(3);
	pid_t kids[3];
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 10, 0}, {1, 10, 0}));
	CHECK_OK(SEMOP(other, {0, 10, 0}, {1, 10, 0}));
	for (int i = 0; i < 3; i++)
		kids[i] = debtor(id, i);
	kid = debtor(other, 3);
	CHECK_OK(sem_setall(id, values));
	for (int i = 0; i < 3; i++)
		debtor_ends(kids[i], i);
	debtor_ends(kid, 3);
	CHECK_OK(sem_getall(id, values));
	CHECK_INT(values[0], 7);
	CHECK_INT(values[1], 8);
	CHECK_INT(values[2], 9);
	CHECK_INT(sem_value(other, 0), 10);
}

static void setval_clears_also_what_the_caller_owes_and_it_counts_anew(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, 5, SEM_UNDO}));
		CHECK_OK(sem_setval(id, 0, 5));
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
	}
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

static void setval_and_setall_that_fail_clear_nothing(void **state)
{
	unsigned short values[] = {1, 40000, 1};
	int id = sem_new(3);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 10, 0}, {1, 10, 0}));
	kid = debtor(id, 0);
	CHECK_ERR(sem_setval(id, 0, -1), ERANGE);
	CHECK_ERR(sem_setval(id, 3, 1), EINVAL);
	CHECK_ERR(sem_setall(id, values), ERANGE);
	debtor_ends(kid, 0);
	CHECK_INT(sem_value(id, 0), 10);
	CHECK_INT(sem_value(id, 1), 10);
	CHECK_INT(sem_value(id, 2), 0);
}

/* Nothing of it reaches the set that takes the place of the removed one. */
static void rmid_discards_what_was_owed(void **state)
{
	int id = own_sem((int)CHECK_OK(semget(test_key(1), 3, IPC_CREAT | 0600)));
	int first = id;
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 10, 0}, {1, 10, 0}));
	kid = debtor(id, 0);
	CHECK_OK(semctl(id, 0, IPC_RMID));
	do {
		id = own_sem((int)CHECK_OK(semget(test_key(1), 3, IPC_CREAT | 0600)));
		if ((id & 0x7fff) == (first & 0x7fff))
			break;
		CHECK_OK(semctl(id, 0, IPC_RMID));
	} while (true);
	CHECK_OK(SEMOP(id, {0, 10, 0}, {1, 10, 0}, {2, 10, 0}));
	debtor_ends(kid, 0);
	CHECK_INT(sem_value(id, 0), 10);
	CHECK_INT(sem_value(id, 1), 10);
	CHECK_INT(sem_value(id, 2), 10);
}

static void undo_ignores_permission_that_was_revoked(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	need_users();
	sem_chmod(id, 0666);
	CHECK_OK(SEMOP(id, {0, 5, 0}));
	IN_CHILD (kid) {
		become_nobody();
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		atomic_store(&board->flag[0], 1);
		UNTIL(atomic_load(&board->flag[1]));
		CHECK_ERR(SEMOP(id, {0, 1, 0}), EACCES);
	}
	UNTIL(atomic_load(&board->flag[0]));
	sem_chmod(id, 0000);
	atomic_store(&board->flag[1], 1);
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 5);
}

/* ---- undo and sleepers ---- */

static void undo_serves_sleepers(void **state)
{
	int id = sem_new(2);
	pid_t kid;
	pid_t next;

	(void)state;
	CHECK_OK(sem_setval(id, 0, 1));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}, {1, 1, SEM_UNDO}));
		UNTIL(atomic_load(&board->flag[0]));
	}
	UNTIL(sem_value(id, 1) == 1);
	next = SLEEPER(0, id, {0, -1, 0});
	(void)SLEEPER(1, id, {1, 0, 0});
	UNTIL(sem_ncnt(id, 0) == 1);
	UNTIL(sem_zcnt(id, 1) == 1);
	atomic_store(&board->flag[0], 1);
	child_ok(kid);
	CHECK_INT(sem_ncnt(id, 0), 0);
	CHECK_INT(sem_zcnt(id, 1), 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_pid(id, 0), next);
	ENDS(0, 0);
	ENDS(1, 0);
}

static void undo_of_a_call_that_slept(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {1, 5, SEM_UNDO}, {0, -1, SEM_UNDO}));
		UNTIL(atomic_load(&board->flag[0]));
	}
	UNTIL(sem_ncnt(id, 0) == 1);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 5);
	atomic_store(&board->flag[0], 1);
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_INT(sem_value(id, 1), 0);
}

/* Served and killed before it ran again: it had the token, so the token comes back. */
static void undo_of_a_call_that_was_served_in_its_sleep(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		int id = sem_new(1);
		pid_t kid;

		IN_CHILD (kid) {
			CHECK_OK(SEMOP(id, {0, -1, SEM_UNDO}));
			UNTIL(false);
		}
		UNTIL(sem_ncnt(id, 0) == 1);
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		child_kill(kid);
		CHECK_INT(sem_value(id, 0), 1);
	}
}

static void undo_of_a_call_that_did_not_happen(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_ERR(SEMTIMEDOP(id, 10, {1, 5, SEM_UNDO}, {0, -1, SEM_UNDO}), EAGAIN);
		CHECK_ERR(SEMOP(id, {1, 5, SEM_UNDO}, {0, -1, SEM_UNDO | IPC_NOWAIT}), EAGAIN);
	}
	child_ok(kid);
	kid = SLEEPER(0, id, {1, 5, SEM_UNDO}, {0, -1, SEM_UNDO});
	UNTIL(sem_ncnt(id, 0) == 1);
	child_kill(kid);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 0);
}

/* Cleared while its holder sleeps in another call on the set. */
static void setval_clears_what_a_sleeper_owes(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 5, 0}));
	IN_CHILD (kid) {
		CHECK_OK(SEMOP(id, {0, -2, SEM_UNDO}));
		CHECK_OK(SEMOP(id, {1, -1, SEM_UNDO}));
	}
	UNTIL(sem_ncnt(id, 1) == 1);
	CHECK_OK(sem_setval(id, 0, 1));
	CHECK_OK(SEMOP(id, {1, 1, 0}));
	child_ok(kid);
	CHECK_INT(sem_value(id, 0), 1);
	CHECK_INT(sem_value(id, 1), 1);
}

/* ---- the order of the sets ---- */

/*
 * Sets are treated one after the other, the one used last first. So when one set is seen to have
 * its value back, every set that was used later must have its too. Each round watches another one.
 */
static void undo_treats_the_set_used_last_first(void **state)
{
	enum { SETS = 200, ROUNDS = 20 };
	int ids[SETS];

	(void)state;
	for (int i = 0; i < SETS; i++)
		ids[i] = sem_new(1);
	for (int watched = 0; watched < SETS; watched += SETS / ROUNDS) {
		unsigned int looks = 0;
		pid_t kid;

		atomic_store(&board->flag[0], 0);
		IN_CHILD (kid) {
			/* First in the other order: each use moves its set to the front. */
			for (int i = SETS - 1; i >= 0; i--)
				CHECK_OK(SEMOP(ids[i], {0, 1, SEM_UNDO}));
			for (int i = 0; i < SETS; i++)
				CHECK_OK(SEMOP(ids[i], {0, 1, SEM_UNDO}));
			atomic_store(&board->flag[0], 1);
		}
		UNTIL(atomic_load(&board->flag[0]));
		while (sem_value(ids[watched], 0) != 0 && (++looks % 1000 || child_runs(kid)))
			;
		for (int i = SETS - 1; i >= watched; i--)
			CHECK_INT(sem_value(ids[i], 0), 0);
		child_ok(kid);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(undo_gives_back_what_was_flagged),
		TEST(undo_sums_up_over_calls),
		TEST(undo_adds_to_what_others_did_meanwhile),
		TEST(undo_of_many_processes_each_its_own),
		TEST(undo_of_many_sets),
		TEST(undo_of_a_large_set),
		TEST(undo_is_clamped_at_the_maximum),
		TEST(undo_is_clamped_at_zero),
		TEST(undo_sum_out_of_range_is_erange),
		TEST(undo_in_one_call_sums_up_as_it_goes),
		TEST(undo_sets_the_pid_only_where_something_is_owed),
		TEST(undo_sets_otime),
		TEST(undo_of_a_failed_call_sets_otime_at_exit),
		TEST(setval_clears_what_all_owe_on_that_semaphore),
		TEST(setall_clears_what_all_owe_on_the_set),
		TEST(setval_clears_also_what_the_caller_owes_and_it_counts_anew),
		TEST(setval_and_setall_that_fail_clear_nothing),
		TEST(rmid_discards_what_was_owed),
		TEST(undo_ignores_permission_that_was_revoked),
		TEST(undo_serves_sleepers),
		TEST(undo_of_a_call_that_slept),
		TEST(undo_of_a_call_that_was_served_in_its_sleep),
		TEST(undo_of_a_call_that_did_not_happen),
		TEST(setval_clears_what_a_sleeper_owes),
		TEST(undo_treats_the_set_used_last_first),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("sem-undo", tests, NULL, NULL);
}
