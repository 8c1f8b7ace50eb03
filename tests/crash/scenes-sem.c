// SPDX-License-Identifier: MIT
/* What the victim does when it dies: each operation on semaphore sets, in the situations that
 * matter. */
#include "scenes.h"

#include <stdlib.h>

#include "core/ids.h"

/* ---- Setting up -------------------------------------------------------------------------- */

void make_set(struct cast *c, int k, int n, const int *values)
{
	c->id[k] = engine_semget(c->last, 0, n, 0600);
	EXPECT(c->id[k] >= 0);
	EXPECT_INT(engine_op(c->last, c->id[k], 0, 0, 0), 0);
	for (int s = 0; s < n && values; s++)
		if (values[s])
			EXPECT_INT(engine_setval(c->last, c->id[k], (uint32_t)s, values[s]), 0);
}

struct actor *add_waiter(struct cast *c)
{
	int i = 0;

	while (i < STEP_WAITERS && c->waiter[i])
		i++;
	EXPECT(i < STEP_WAITERS);
	return c->waiter[i] = engine_join(c->e);
}

void put_to_sleep(struct actor *a)
{
	uint32_t *st = &actor_slot(a)->st;

	EXPECT_INT(WAIT_STATE(*st), WAIT_WAITING);
	*st = WAIT_WORD(WAIT_REQUEST(*st), WAIT_ASLEEP);
}

void queue_ops(struct cast *c, int k, const struct semop_shm *ops, uint32_t n)
{
	struct actor *a = add_waiter(c);

	EXPECT_INT(engine_try(a, c->id[k], ops, n), OUTCOME_SLEEP);
	put_to_sleep(a);
}

void queue_one(struct cast *c, int k, uint16_t num, int16_t op, int16_t flags)
{
	struct semop_shm s = {num, op, flags};

	queue_ops(c, k, &s, 1);
}

void contend(struct cast *c, uint64_t lock)
{
	int i = 0;

	while (i < 4 && c->lock[i])
		i++;
	EXPECT(i < 4);
	c->lock[i] = lock;
	*(rlock_shm *)region_at(c->e->base, lock) = RLOCK_W;
}

void contend_object(struct cast *c, enum family family, int32_t id)
{
	contend(c, ids_object_lock(family, (uint32_t)id & (OBJECT_CAPACITY - 1)));
}

static void contend_set(struct cast *c, int k)
{
	contend_object(c, FAMILY_SEM, c->id[k]);
}

void do_op(struct cast *c, struct actor *a, int k, uint32_t num, int by, int flags)
{
	EXPECT_INT(engine_op(a, c->id[k], num, by, flags), 0);
}

/* ---- One semaphore ----------------------------------------------------------------------- */

static void one(struct cast *c)
{
	make_set(c, 0, 3, (int[]){2, 0, 7});
}

static void add_one(struct cast *c)
{
	do_op(c, c->victim, 0, 0, 1, 0);
}

static void add_to_unused(struct cast *c)
{
	do_op(c, c->victim, 0, 1, 1, 0);
}

static void take_undo(struct cast *c)
{
	do_op(c, c->victim, 0, 0, -1, OP_UNDO);
}

static void undone_before(struct cast *c)
{
	one(c);
	do_op(c, c->last, 0, 2, -1, OP_UNDO);
	do_op(c, c->victim, 0, 2, -2, OP_UNDO);
}

static void reusable_record(struct cast *c)
{
	undone_before(c);
	EXPECT_INT(engine_rmid(c->last, c->id[0]), 0);
	one(c);
}

static void several(struct cast *c)
{
	struct semop_shm ops[] = {
		{2, -3, OP_UNDO}, {0, 1, OP_UNDO}, {1, 0, 0}, {1, 4, OP_UNDO}, {2, -1, 0}};

	EXPECT_INT(engine_semop(c->victim, c->id[0], ops, 5), 0);
}

static void six(struct cast *c)
{
	make_set(c, 0, 10, (int[10]){1, 1, 1, 1, 1, 1});
	do_op(c, c->victim, 0, 9, 1, OP_UNDO);
}

static void six_at_once(struct cast *c)
{
	struct semop_shm ops[6];

	for (uint16_t i = 0; i < 6; i++)
		ops[i] = (struct semop_shm){i, (int16_t)(i % 2 ? 1 : -1), OP_UNDO};
	EXPECT_INT(engine_semop(c->victim, c->id[0], ops, 6), 0);
}

static void fails(struct cast *c)
{
	struct semop_shm ops[] = {{0, 1, OP_UNDO}, {1, -1, OP_NOWAIT}};

	EXPECT(engine_semop(c->victim, c->id[0], ops, 2) < 0);
}

static void slow_undone(struct cast *c)
{
	one(c);
	queue_one(c, 0, 0, -9, 0);
	do_op(c, c->victim, 0, 2, -1, OP_UNDO);
	contend_set(c, 0);
}

/* ---- Sleepers ---------------------------------------------------------------------------- */

static void three_wait(struct cast *c)
{
	make_set(c, 0, 2, (int[]){0, 0});
	queue_one(c, 0, 0, -1, OP_UNDO);
	queue_one(c, 0, 0, -1, 0);
	queue_one(c, 0, 0, -5, 0);
	contend_set(c, 0);
}

static void give_three(struct cast *c)
{
	do_op(c, c->victim, 0, 0, 3, 0);
}

static void give_three_undo(struct cast *c)
{
	do_op(c, c->victim, 0, 0, 3, OP_UNDO);
}

static void zero_waiters(struct cast *c)
{
	struct semop_shm lazy[] = {{0, 0, 0}, {1, 0, 0}};

	make_set(c, 0, 3, (int[]){1, 0, 5});
	queue_one(c, 0, 0, 0, 0);
	queue_ops(c, 0, lazy, 2);
	queue_one(c, 0, 0, -3, 0);
	queue_one(c, 0, 2, 0, OP_UNDO);
}

static void to_zero(struct cast *c)
{
	do_op(c, c->victim, 0, 0, -1, OP_UNDO);
}

static void complex_waiters(struct cast *c)
{
	struct semop_shm both[] = {{0, -1, OP_UNDO}, {1, -1, OP_UNDO}};
	struct semop_shm then[] = {{1, -1, 0}, {2, 1, 0}};
	struct semop_shm range[] = {{0, -1, 0}, {2, 32767, 0}};

	make_set(c, 0, 3, (int[]){0, 1, 5});
	queue_one(c, 0, 0, -1, 0);
	queue_ops(c, 0, both, 2);
	do_op(c, c->last, 0, 1, -1, 0);
	queue_ops(c, 0, then, 2);
	do_op(c, c->last, 0, 2, 0 + 1, 0);
	queue_ops(c, 0, range, 2); /* ends with an error when it is looked at */
	contend_set(c, 0);
}

static void give_both(struct cast *c)
{
	struct semop_shm both[] = {{0, 3, OP_UNDO}, {1, 2, OP_UNDO}};

	EXPECT_INT(engine_semop(c->victim, c->id[0], both, 2), 0);
}

static void large_request(struct cast *c)
{
	struct semop_shm ops[20];

	make_set(c, 0, 20, NULL);
	for (uint16_t i = 0; i < 20; i++)
		ops[i] = (struct semop_shm){i, (int16_t)(i == 19 ? -1 : 1), OP_UNDO};
	queue_ops(c, 0, ops, 20);
}

static void serve_large(struct cast *c)
{
	do_op(c, c->victim, 0, 19, 1, 0);
}

static void queue_large(struct cast *c)
{
	struct semop_shm ops[20];

	for (uint16_t i = 0; i < 20; i++)
		ops[i] = (struct semop_shm){i, (int16_t)(i == 18 ? -1 : 1), OP_UNDO};
	EXPECT_INT(engine_try(c->victim, c->id[0], ops, 20), OUTCOME_SLEEP);
}

static void wait_for_one(struct cast *c)
{
	EXPECT_INT(engine_try_op(c->victim, c->id[0], 1, -1, OP_UNDO), OUTCOME_SLEEP);
}

static void wait_for_two(struct cast *c)
{
	struct semop_shm two[] = {{0, -1, 0}, {1, -1, OP_UNDO}};

	EXPECT_INT(engine_try(c->victim, c->id[0], two, 2), OUTCOME_SLEEP);
}

static void asleep(struct cast *c)
{
	three_wait(c);
	wait_for_two(c);
	*(rlock_shm *)region_at(c->e->base, c->lock[0]) = RLOCK_W; /* it has been taken since */
}

static void leave(struct cast *c)
{
	bool left;

	EXPECT_INT(sem_leave(&c->victim->c, &left), OUTCOME_DONE);
	EXPECT(left);
}

/* ---- semctl ------------------------------------------------------------------------------ */

static void everything(struct cast *c)
{
	struct semop_shm both[] = {{0, -5, 0}, {1, -5, 0}};

	make_set(c, 0, 3, (int[]){1, 4, 6});
	do_op(c, c->last, 0, 2, -1, OP_UNDO);
	do_op(c, c->last, 0, 1, -1, OP_UNDO);
	do_op(c, c->victim, 0, 2, -1, OP_UNDO);
	do_op(c, c->victim, 0, 1, -1, OP_UNDO);
	queue_one(c, 0, 0, -2, OP_UNDO);
	queue_one(c, 0, 1, 0, 0);
	queue_ops(c, 0, both, 2);
	contend_set(c, 0);
}

static void setval(struct cast *c)
{
	EXPECT_INT(engine_setval(c->victim, c->id[0], 0, 4), 0);
}

static void setall(struct cast *c)
{
	uint16_t values[3] = {9, 0, 8};

	EXPECT_INT(engine_setall(c->victim, c->id[0], values), 0);
}

static void getall(struct cast *c)
{
	uint16_t values[3];

	EXPECT_INT(engine_getall(c->victim, c->id[0], values), 0);
}

static void set_owner(struct cast *c)
{
	EXPECT_INT(sem_set_owner(&c->victim->c, c->id[0], 12, 13, 0644, NOW), OUTCOME_DONE);
}

static void rmid(struct cast *c)
{
	EXPECT_INT(engine_rmid(c->victim, c->id[0]), 0);
}

static void rmid_contended(struct cast *c)
{
	everything(c);
	contend(c, ids_table_lock(FAMILY_SEM));
	contend(c,
		region_off(c->e->base, &region_header(c->e->base)->arena[ARENA_SEM].pool[0].lock));
}

/* ---- semget ------------------------------------------------------------------------------ */

static void with_key(struct cast *c)
{
	c->key = 77;
	make_set(c, 0, 1, (int[]){1});
	EXPECT(engine_semget(c->last, 76, 2, GET_CREAT | 0600) >= 0);
	contend(c, ids_table_lock(FAMILY_SEM));
}

static void create(struct cast *c)
{
	EXPECT(engine_semget(c->victim, 77, 3, GET_CREAT | GET_EXCL | 0600) >= 0);
}

static void create_large(struct cast *c) /* words and side array are spans */
{
	EXPECT(engine_semget(c->victim, 77, 2200, GET_CREAT | 0600) >= 0);
}

static void look_up(struct cast *c)
{
	EXPECT(engine_semget(c->victim, 76, 1, 0) >= 0);
	EXPECT(engine_semget(c->victim, 75, 1, 0) < 0);
	EXPECT(engine_semget(c->victim, 76, 1, GET_CREAT | GET_EXCL) < 0);
	EXPECT(engine_semget(c->victim, 76, 9, 0) < 0);
}

static void first_of_all(struct cast *c)
{
	c->key = 77;
}

static void with_wish(struct cast *c)
{
	with_key(c);
	region_header(c->e->base)->table[FAMILY_SEM].next_id = 5 << OBJECT_SHIFT | 40;
}

static void large_set(struct cast *c)
{
	make_set(c, 0, 2200, NULL); /* words and side array are spans */
}

static void full_buckets(struct cast *c)
{
	c->key = 77;
	for (int i = 0; i < 1023; i++)
		EXPECT(engine_semget(c->last, 1000 + i, 1, GET_CREAT | 0600) >= 0);
}

/* ---- More of the same family ------------------------------------------------------------- */

static void granted(struct cast *c)
{
	make_set(c, 0, 2, (int[]){0, 0});
	EXPECT_INT(engine_try_op(c->victim, c->id[0], 0, -1, OP_UNDO), OUTCOME_SLEEP);
	queue_one(c, 0, 0, -1, 0);
	do_op(c, c->last, 0, 0, 1, 0);
	EXPECT_INT(actor_state(c->victim), WAIT_GRANTED);
}

static void leave_too_late(struct cast *c)
{
	bool left;

	EXPECT_INT(sem_leave(&c->victim->c, &left), OUTCOME_DONE);
	EXPECT(!left);
	EXPECT_INT(sem_wait_result(&c->victim->c), 0);
}

static void set_is_removed(struct cast *c)
{
	make_set(c, 0, 2, (int[]){0, 0});
	EXPECT_INT(engine_try_op(c->victim, c->id[0], 0, -1, OP_UNDO), OUTCOME_SLEEP);
	EXPECT_INT(engine_rmid(c->last, c->id[0]), 0);
}

static void take_removal(struct cast *c)
{
	EXPECT_INT(sem_wait_result(&c->victim->c), -EIDRM);
	EXPECT_INT(engine_op(c->victim, c->id[0], 0, 1, OP_UNDO), -EINVAL);
}

static void look_at_all(struct cast *c)
{
	struct sem_status status;

	EXPECT_INT(engine_getval(c->victim, c->id[0], 0), 1);
	EXPECT(engine_getpid(c->victim, c->id[0], 1) >= 0);
	EXPECT_INT(engine_getncnt(c->victim, c->id[0], 0), 2);
	EXPECT_INT(engine_getzcnt(c->victim, c->id[0], 1), 1);
	EXPECT_INT(sem_stat(&c->victim->c, c->id[0], false, false, &status), OUTCOME_DONE);
}

static void give_to_dead(struct cast *c)
{
	three_wait(c);
	engine_kill(c->waiter[0]);
	c->waiter[0] = NULL;
	c->sweeps = true;
}

#define S(...) SCENE("sem", __VA_ARGS__, NULL, 0)
#define L(...) SCENE("sem", __VA_ARGS__, NULL, SCENE_LARGE)

const struct scene sem_scenes[] = {
	S("semop", "plain", one, add_one),
	S("semop", "plain, in a new second", one, add_to_unused),
	S("semop", "several, first undo", one, several),
	S("semop", "several, undo again", undone_before, several),
	S("semop", "six", six, six_at_once),
	S("semop", "fails", undone_before, fails),
	S("semop", "undo, first", one, take_undo),
	S("semop", "undo, again", undone_before, take_undo),
	S("semop", "undo, reused record", reusable_record, take_undo),
	S("semop", "others wait for more", slow_undone, add_one),
	S("semop", "others wait, undo", slow_undone, take_undo),
	S("semop", "hand-off", three_wait, give_three),
	S("semop", "hand-off, undo", three_wait, give_three_undo),
	S("semop", "hand-off past a dead sleeper", give_to_dead, give_three),
	S("semop", "to zero", zero_waiters, to_zero),
	S("semop", "complex waiters", complex_waiters, give_both),
	S("semop", "large request is served", large_request, serve_large),
	S("semop", "sleeps", three_wait, wait_for_one),
	S("semop", "sleeps, complex", three_wait, wait_for_two),
	S("semop", "sleeps, large request", large_request, queue_large),
	S("end of sleep", "leaves", asleep, leave),
	S("end of sleep", "granted", granted, leave_too_late),
	S("end of sleep", "removed", set_is_removed, take_removal),
	S("SETVAL", "nobody waits", one, setval),
	S("SETVAL", "with waiters and undo", everything, setval),
	S("SETALL", "with waiters and undo", everything, setall),
	S("GETALL", "with waiters", everything, getall),
	S("GETVAL", "with waiters, and the other looks", everything, look_at_all),
	S("IPC_SET", "with waiters", everything, set_owner),
	S("IPC_RMID", "nobody waits", undone_before, rmid),
	S("IPC_RMID", "sleepers, undo, contended", rmid_contended, rmid),
	L("IPC_RMID", "large", large_set, rmid),
	S("semget", "creates", with_key, create),
	S("semget", "creates the first", first_of_all, create),
	S("semget", "creates, id wished for", with_wish, create),
	L("semget", "creates, large", with_key, create_large),
	L("semget", "creates, table doubles", full_buckets, create),
	S("semget", "finds", with_key, look_up),
	{NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
