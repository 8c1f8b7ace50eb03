// SPDX-License-Identifier: MIT
/* The set's lock: queues, serving, counting, setting, removal, and what deaths leave of these. */
#include "unit.h"

#include "ipc/sem_priv.h"

#define MANY 8

static void join_many(void **state, struct actor **a)
{
	for (int i = 0; i < MANY; i++)
		a[i] = engine_join(*state);
}

static struct semq_shm *side_of(struct actor *a, int32_t id, uint32_t num)
{
	struct set_shm *set = set_of(a, id);
	struct semq_shm *side = region_block(a->e->base, set->side_ref, set->nsems * sizeof(*side));

	return &side[num];
}

static void queue(struct actor *a, int32_t id, const struct semop_shm *ops, uint32_t n)
{
	EXPECT_INT(engine_try(a, id, ops, n), OUTCOME_SLEEP);
}

/* The sleeper has been told, with this result. */
static void told(struct actor *a, int result)
{
	enum wait_state state = actor_state(a);

	EXPECT(state == WAIT_GRANTED || state == WAIT_REMOVED);
	EXPECT_INT(sem_wait_result(&a->c), result);
	EXPECT_INT(actor_state(a), WAIT_FREE);
}

static void waits(struct actor *a)
{
	EXPECT(actor_state(a) == WAIT_WAITING || actor_state(a) == WAIT_ASLEEP);
}

static void leaves(struct actor *a)
{
	bool left;

	EXPECT_INT(sem_leave(&a->c, &left), OUTCOME_DONE);
	EXPECT(left);
	EXPECT_INT(actor_state(a), WAIT_FREE);
}

/* ---- Queues ------------------------------------------------------------------------------- */

static void test_first_come_first_served(void **state)
{
	struct actor *a[MANY];
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	for (int i = 1; i < MANY; i++)
		queue_op(a[i], id, 0, -1, 0);
	EXPECT(sem_of(a[0], id, 0)->word & SEM_SLOW);
	EXPECT_INT(engine_getncnt(a[0], id, 0), MANY - 1);
	EXPECT_INT(engine_getzcnt(a[0], id, 0), 0);
	EXPECT_INT(engine_op(a[0], id, 0, 3, 0), 0);
	for (int i = 1; i <= 3; i++)
		told(a[i], 0);
	for (int i = 4; i < MANY; i++)
		waits(a[i]);
	EXPECT_INT(value_of(a[0], id, 0), 0);
	EXPECT_INT(engine_getpid(a[0], id, 0), a[3]->c.pid); /* the waker performed it for him */
	EXPECT_INT(engine_op(a[0], id, 0, 10, 0), 0);
	for (int i = 4; i < MANY; i++)
		told(a[i], 0);
	EXPECT_INT(value_of(a[0], id, 0), 6);
	EXPECT(!(sem_of(a[0], id, 0)->word & SEM_SLOW));
}

static void test_who_fits_passes(void **state)
{
	struct actor *a[MANY];
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	queue_op(a[1], id, 0, -5, 0);
	queue_op(a[2], id, 0, -2, 0);
	EXPECT_INT(engine_op(a[0], id, 0, 2, 0), 0);
	waits(a[1]);
	told(a[2], 0);
	EXPECT_INT(engine_op(a[0], id, 0, 5, 0), 0);
	told(a[1], 0);
}

static void test_zero(void **state)
{
	struct actor *a[MANY];
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 2, (int[]){3, 0});
	queue_op(a[1], id, 0, 0, 0);
	queue_op(a[2], id, 0, 0, 0);
	queue_op(a[3], id, 0, -4, 0);
	EXPECT_INT(engine_getzcnt(a[0], id, 0), 2);
	EXPECT_INT(engine_getncnt(a[0], id, 0), 1);
	EXPECT_INT(engine_op(a[0], id, 0, -2, 0), 0);
	waits(a[1]);
	EXPECT_INT(engine_op(a[0], id, 0, -1, 0), 0);
	told(a[1], 0);
	told(a[2], 0);
	waits(a[3]);
	EXPECT_INT(engine_getpid(a[0], id, 0), a[2]->c.pid);
	EXPECT_INT(engine_setval(a[0], id, 0, 4), 0);
	told(a[3], 0);
	EXPECT_INT(value_of(a[0], id, 0), 0);
}

static void test_several_operations(void **state)
{
	struct actor *a[MANY];
	struct semop_shm both[] = {{0, -1, 0}, {1, -1, 0}};
	struct semop_shm zeros[] = {{0, 0, 0}, {1, 0, 0}};
	struct semop_shm down_up[] = {{0, -1, 0}, {1, 1, 0}};
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 2, (int[]){0, 0});
	queue_op(a[1], id, 0, -2, 0);
	queue(a[2], id, both, 2);
	queue_op(a[3], id, 1, -2, 0);
	queue(a[4], id, down_up, 2);
	EXPECT_INT(set_of(a[0], id)->complex_count, 2);
	EXPECT_INT(engine_getncnt(a[0], id, 0), 3); /* of a[2] only what blocks it */
	EXPECT_INT(engine_getncnt(a[0], id, 1), 1);
	EXPECT_INT(engine_check(a[0]->e), 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[4], 0); /* takes the one, adds one to 1 */
	EXPECT_INT(value_of(a[0], id, 1), 1);
	waits(a[1]);
	waits(a[2]);
	waits(a[3]);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[2], 0);
	EXPECT_INT(set_of(a[0], id)->complex_count, 0);
	EXPECT_INT(set_of(a[0], id)->alter_head, 0); /* each back on its semaphore */
	EXPECT(side_of(a[0], id, 0)->alter_head && side_of(a[0], id, 1)->alter_head);
	EXPECT_INT(engine_check(a[0]->e), 0);
	EXPECT_INT(engine_op(a[0], id, 1, 2, 0), 0);
	told(a[3], 0);
	EXPECT_INT(engine_op(a[0], id, 0, 2, 0), 0);
	told(a[1], 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	queue(a[5], id, zeros, 2);
	EXPECT_INT(set_of(a[0], id)->const_count, 1);
	EXPECT_INT(engine_getzcnt(a[0], id, 0), 1);
	EXPECT_INT(engine_op(a[0], id, 0, -1, 0), 0);
	told(a[5], 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	EXPECT_INT(engine_op(a[0], id, 0, -1, 0), 0);
}

/* More operations than fit into the slot: a block of the arena holds them. */
static void test_many_operations(void **state)
{
	struct actor *a[MANY];
	struct semop_shm ops[20];
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 20, (int[20]){0});
	for (uint16_t i = 0; i < 20; i++)
		ops[i] = (struct semop_shm){i, (int16_t)(i == 19 ? -1 : 1), OP_UNDO};
	queue(a[1], id, ops, 20);
	EXPECT(actor_slot(a[1])->name_ref[NAME_SOPS]);
	EXPECT_INT(engine_op(a[0], id, 19, 1, 0), 0);
	told(a[1], 0);
	for (uint32_t i = 0; i < 19; i++) {
		EXPECT_INT(value_of(a[0], id, i), 1);
		EXPECT_INT(semadj_of(a[1], id, i), -1);
	}
	EXPECT_INT(semadj_of(a[1], id, 19), 1);
	queue(a[1], id, ops, 20);
	leaves(a[1]);
}

/* A request that fails when it is looked at again. */
static void test_errors_at_wake_time(void **state)
{
	struct actor *a[MANY];
	struct semop_shm range[] = {{0, -1, 0}, {1, 1, 0}};
	struct semop_shm nowait[] = {{0, -1, 0}, {1, -1, OP_NOWAIT}};
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 2, (int[]){0, 32767});
	queue(a[1], id, range, 2);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[1], -ERANGE);
	EXPECT_INT(value_of(a[0], id, 0), 1);
	EXPECT_INT(engine_setval(a[0], id, 0, 0), 0);
	EXPECT_INT(engine_setval(a[0], id, 1, 0), 0);
	queue(a[1], id, nowait, 2);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[1], -EAGAIN);
	EXPECT_INT(value_of(a[0], id, 0), 1);
	EXPECT_INT(set_of(a[0], id)->waiting, 0);
}

static void test_leaving(void **state)
{
	struct actor *a[MANY];
	bool left;
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	for (int i = 1; i < 4; i++)
		queue_op(a[i], id, 0, -1, 0);
	leaves(a[2]);
	EXPECT_INT(engine_getncnt(a[0], id, 0), 2);
	seize(a[0], ids_object_lock(FAMILY_SEM, 0));
	EXPECT_INT(sem_leave(&a[1]->c, &left), OUTCOME_BUSY);
	waits(a[1]);
	let_loose(a[0], ids_object_lock(FAMILY_SEM, 0));
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	EXPECT_INT(sem_leave(&a[1]->c, &left), OUTCOME_DONE);
	EXPECT(!left); /* success wins */
	told(a[1], 0);
	leaves(a[3]);
	EXPECT(!(sem_of(a[0], id, 0)->word & SEM_SLOW));
	EXPECT_INT(engine_try_op(a[1], id, 0, 1, 0), OUTCOME_DONE);
}

/* ---- Waking ------------------------------------------------------------------------------- */

static void fall_asleep(struct actor *a)
{
	uint32_t st = actor_slot(a)->st;

	EXPECT_INT(WAIT_STATE(st), WAIT_WAITING);
	actor_slot(a)->st = WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP);
}

static uint64_t st_off(struct actor *a)
{
	return region_off(a->e->base, &actor_slot(a)->st);
}

static void test_sleepers_are_woken(void **state)
{
	static struct actor *sleeper[40]; /* more than one list of wakes has room for */
	struct engine *e = *state;
	struct actor *a = engine_join(e);
	int32_t id = new_set(a, 1, (int[]){0});
	uint32_t since;

	for (int i = 0; i < 40; i++) {
		sleeper[i] = engine_join(e);
		queue_op(sleeper[i], id, 0, -1, 0);
		if (i != 7)
			fall_asleep(sleeper[i]);
	}
	since = e->shared->wakes;
	EXPECT_INT(engine_op(a, id, 0, 39, 0), 0);
	for (int i = 0; i < 40; i++)
		EXPECT_INT(engine_woken(e, st_off(sleeper[i]), since), i < 39 && i != 7);
	EXPECT_INT(actor_slot(a)->owes_wake, 0);
	EXPECT_INT(engine_rmid(a, id), 0);
	EXPECT(engine_woken(e, st_off(sleeper[39]), since));
	for (int i = 0; i < 39; i++)
		told(sleeper[i], 0);
	told(sleeper[39], -EIDRM);
}

/* ---- Setting and removing ----------------------------------------------------------------- */

static void test_setall(void **state)
{
	struct actor *a[MANY];
	struct semop_shm both[] = {{0, -1, 0}, {1, -1, 0}};
	uint16_t values[3] = {1, 1, 5}, got[3];
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 3, (int[]){0, 0, 9});
	EXPECT_INT(engine_op(a[2], id, 2, -4, OP_UNDO), 0);
	queue(a[1], id, both, 2);
	queue_op(a[3], id, 2, 0, OP_UNDO);
	leaves(a[3]);
	EXPECT_INT(engine_setall(a[0], id, values), 0);
	told(a[1], 0);
	EXPECT_INT(semadj_of(a[2], id, 2), 0);
	EXPECT_INT(engine_getall(a[0], id, got), 0);
	EXPECT_INT(got[0] | got[1] << 4 | got[2] << 8, 0x500);
	EXPECT_INT(engine_getpid(a[0], id, 2), a[0]->c.pid);
	values[1] = 32768;
	EXPECT_INT(engine_setall(a[0], id, values), -ERANGE);
	a[0]->copy_fault = 1;
	EXPECT_INT(engine_setall(a[0], id, got), -EFAULT);
	a[0]->copy_fault = 1;
	EXPECT_INT(engine_getall(a[0], id, got), -EFAULT);
	EXPECT_INT(actor_slot(a[0])->name_ref[NAME_SIDE], 0);
	EXPECT_INT(engine_setval(a[0], id, 0, -1), -ERANGE);
	EXPECT_INT(engine_setval(a[0], id, 0, 32768), -ERANGE);
	EXPECT_INT(engine_setval(a[0], id, 3, 0), -EINVAL);
}

static void test_removal(void **state)
{
	struct actor *a[MANY];
	struct semop_shm both[] = {{0, -1, 0}, {1, -1, 0}};
	uint64_t *words;
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 2, (int[]){1, 1});
	words = &sem_of(a[0], id, 0)->word;
	EXPECT_INT(engine_op(a[4], id, 0, -1, OP_UNDO), 0);
	queue_op(a[1], id, 0, -2, 0);
	queue_op(a[2], id, 1, 0, 0);
	queue(a[3], id, both, 2);
	EXPECT_INT(engine_rmid(a[0], id), 0);
	told(a[1], -EIDRM);
	told(a[2], -EIDRM);
	told(a[3], -EIDRM);
	EXPECT_INT(*words, 0);
	EXPECT_INT(engine_rmid(a[0], id), -EINVAL);
	EXPECT_INT(engine_blocks(a[0]->e), 1); /* a[4]'s record, for another set */
	EXPECT_INT(engine_exit(a[4]), 0);
	EXPECT_INT(engine_blocks(a[0]->e), 0);
}

static void test_busy_at_every_lock(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(a, 1, (int[]){0});
	uint64_t lock = ids_object_lock(FAMILY_SEM, 0);
	uint16_t values[1] = {1};

	seize(a, lock);
	EXPECT_INT(engine_try_op(b, id, 0, -1, 0), OUTCOME_BUSY);
	EXPECT_INT(b->c.busy.word_off, lock);
	EXPECT_INT(sem_set_one(&b->c, id, 0, 1, NOW), OUTCOME_BUSY);
	EXPECT_INT(sem_set_all(&b->c, id, values, NOW), OUTCOME_BUSY);
	EXPECT_INT(sem_get_all(&b->c, id, values), OUTCOME_BUSY);
	EXPECT_INT(sem_set_owner(&b->c, id, 0, 0, 0600, NOW), OUTCOME_BUSY);
	EXPECT_INT(sem_remove(&b->c, id), OUTCOME_BUSY);
	EXPECT_INT(engine_try_op(b, id, 0, 1, OP_UNDO), OUTCOME_BUSY);
	EXPECT_INT(engine_try_op(b, id, 0, 1, 0), OUTCOME_DONE); /* the fast path asks nobody */
	let_loose(a, lock);
	EXPECT_INT(engine_op(b, id, 0, 1, OP_UNDO), 0);
	EXPECT_INT(value_of(a, id, 0), 2);
}

/* ---- Deaths ------------------------------------------------------------------------------- */

static void test_dead_sleeper_is_passed_over(void **state)
{
	struct actor *a[MANY];
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	for (int i = 1; i < 4; i++)
		queue_op(a[i], id, 0, -1, 0);
	engine_kill(a[1]);
	EXPECT_INT(engine_getncnt(a[0], id, 0), 2);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[2], 0);
	EXPECT_INT(value_of(a[0], id, 0), 0);
	engine_bury(a[0], a[1]);
	EXPECT_INT(set_of(a[0], id)->waiting, 1);
	waits(a[3]);
	EXPECT_INT(engine_check(a[0]->e), 0);
}

/* Lists in disorder, their order known by arrival alone. */
static void test_lists_are_rebuilt(void **state)
{
	struct actor *a[MANY];
	struct semop_shm both[] = {{0, -1, 0}, {1, -1, 0}};
	struct set_shm *set;
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 2, (int[]){0, 0});
	set = set_of(a[0], id);
	queue_op(a[3], id, 0, -1, 0);
	queue_op(a[2], id, 0, -1, 0);
	queue(a[5], id, both, 2);
	queue_op(a[1], id, 1, -1, 0);
	seize(a[6], ids_object_lock(FAMILY_SEM, 0));
	set->alter_head = set->alter_tail = 12345;
	set->waiting = set->complex_count = 99;
	memset(side_of(a[0], id, 0), 0x77, 2 * sizeof(struct semq_shm));
	for (int i = 1; i < 6; i++)
		actor_slot(a[i])->next_link = actor_slot(a[i])->prev_link = 4000;
	engine_kill(a[6]);
	rlock_recover(&a[0]->c, a[6]->c.thread_ix, false);
	EXPECT_INT(set->waiting, 4);
	EXPECT_INT(engine_check(a[0]->e), 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[3], 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[2], 0);
	EXPECT_INT(engine_op(a[0], id, 1, 1, 0), 0);
	told(a[1], 0);
	waits(a[5]);
}

/* Changed, but nobody was served before the death: those who can go on now do. */
/* A number of semaphores that has been spoilt is not how much GETALL writes. */
static void test_getall_of_a_spoilt_set(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_set(a, 4, (int[]){1, 2, 3, 4});
	uint16_t got[16] = {0};

	set_of(a, id)->nsems = 16;
	EXPECT_INT(engine_getall(a, id, got), -ENOTRECOVERABLE);
	EXPECT_INT(got[0], 0);
	set_of(a, id)->nsems = 4;
	EXPECT_INT(engine_getall(a, id, got), 0);
	EXPECT_INT(got[3], 4);
	EXPECT_INT(got[4], 0);
}

static void test_repair_serves(void **state)
{
	struct actor *a[MANY];
	struct set_shm *set;
	uint32_t since;
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	set = set_of(a[0], id);
	queue_op(a[1], id, 0, -1, 0);
	fall_asleep(a[1]);
	seize(a[2], ids_object_lock(FAMILY_SEM, 0));
	side_of(a[0], id, 0)->used = 1;
	side_of(a[0], id, 0)->next_value = 1;
	set->intent_pid = a[2]->c.pid;
	set->intent_thread = a[2]->c.thread_ix;
	set->intent_time = NOW;
	set->intent_otime_ix = ~0u;
	set->intent = INTENT_SETVAL;
	engine_kill(a[2]);
	since = a[0]->e->shared->wakes;
	rlock_recover(&a[0]->c, a[2]->c.thread_ix, false);
	EXPECT_INT(value_of(a[0], id, 0), 0);
	EXPECT(engine_woken(a[0]->e, st_off(a[1]), since));
	told(a[1], 0);
	EXPECT_INT(set->intent, INTENT_NONE);
}

/* Told but not woken, unlocked: the burial wakes. */
static void test_owed_wakes(void **state)
{
	struct actor *a[MANY];
	uint32_t since;
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	queue_op(a[1], id, 0, -1, 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	EXPECT_INT(actor_state(a[1]), WAIT_GRANTED);
	actor_slot(a[2])->owes_wake = set_of(a[0], id)->object.live ? 1 : 0;
	engine_kill(a[2]);
	since = a[0]->e->shared->wakes;
	engine_bury(a[0], a[2]);
	EXPECT(engine_woken(a[0]->e, st_off(a[1]), since));
	told(a[1], 0);
}

/* A grant that had been told is not applied again to the waiter's next request. */
static void test_redone_grant_knows_the_request(void **state)
{
	struct actor *a[MANY];
	struct set_shm *set;
	int32_t id;

	join_many(state, a);
	id = new_set(a[0], 1, (int[]){0});
	set = set_of(a[0], id);
	queue_op(a[1], id, 0, -1, 0);
	EXPECT_INT(engine_op(a[0], id, 0, 1, 0), 0);
	told(a[1], 0);
	queue_op(a[1], id, 0, -3, 0);
	seize(a[2], ids_object_lock(FAMILY_SEM, 0));
	set->intent_thread = a[1]->c.thread_ix;
	set->intent_request = WAIT_REQUEST(actor_slot(a[1])->st) - 1;
	set->intent_result = 0;
	set->intent = INTENT_GRANT;
	side_of(a[0], id, 0)->used = 1;
	side_of(a[0], id, 0)->next_value = 2; /* whatever it said: it has been done, and is past */
	engine_kill(a[2]);
	rlock_recover(&a[0]->c, a[2]->c.thread_ix, false);
	waits(a[1]);
	EXPECT_INT(value_of(a[0], id, 0), 0);
	EXPECT_INT(engine_check(a[0]->e), 0);
	leaves(a[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_first_come_first_served),
		TEST(test_who_fits_passes),
		TEST(test_zero),
		TEST(test_several_operations),
		TEST(test_many_operations),
		TEST(test_errors_at_wake_time),
		TEST(test_leaving),
		TEST(test_sleepers_are_woken),
		TEST(test_setall),
		TEST(test_getall_of_a_spoilt_set),
		TEST(test_removal),
		TEST(test_busy_at_every_lock),
		TEST(test_dead_sleeper_is_passed_over),
		TEST(test_lists_are_rebuilt),
		TEST(test_repair_serves),
		TEST(test_owed_wakes),
		TEST(test_redone_grant_knows_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
