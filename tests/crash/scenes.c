// SPDX-License-Identifier: MIT
/* What the victim does when it dies: each operation of the engine, in the situations that matter.
 */
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/procs.h"
#include "core/rlock.h"
#include "stepper.h"

#define NOW 1700000000

/* ---- Setting up -------------------------------------------------------------------------- */

/*
 * Semaphore 0 has been used: an exit with a record, be it empty, sets its time, as on Linux. So a
 * death right after the record was made differs from one before by nothing else.
 */
static void make(struct cast *c, int k, int n, const int *values)
{
	c->id[k] = engine_semget(c->last, 0, n, 0600);
	EXPECT(c->id[k] >= 0);
	EXPECT_INT(engine_op(c->last, c->id[k], 0, 0, 0), 0);
	for (int s = 0; s < n && values; s++)
		if (values[s])
			EXPECT_INT(engine_setval(c->last, c->id[k], (uint32_t)s, values[s]), 0);
}

/* The next waiter queues these operations and sleeps, in the kernel. */
static void queue(struct cast *c, int k, const struct semop_shm *ops, uint32_t n)
{
	int i = 0;
	uint32_t *st;

	while (c->waiter[i])
		i++;
	EXPECT(i < STEP_WAITERS);
	c->waiter[i] = engine_join(c->e);
	EXPECT_INT(engine_try(c->waiter[i], c->id[k], ops, n), OUTCOME_SLEEP);
	st = &actor_slot(c->waiter[i])->st;
	*st = WAIT_WORD(WAIT_REQUEST(*st), WAIT_ASLEEP);
}

static void queue_one(struct cast *c, int k, uint16_t num, int16_t op, int16_t flags)
{
	struct semop_shm s = {num, op, flags};

	queue(c, k, &s, 1);
}

/* Somebody sleeps on this lock all the time. */
static void contend(struct cast *c, uint64_t lock)
{
	int i = 0;

	while (c->lock[i])
		i++;
	EXPECT(i < 4);
	c->lock[i] = lock;
	*(rlock_shm *)region_at(c->e->base, lock) = RLOCK_W;
}

static void contend_set(struct cast *c, int k)
{
	contend(c, ids_object_lock(FAMILY_SEM, (uint32_t)c->id[k] & (OBJECT_CAPACITY - 1)));
}

static void op(struct cast *c, struct actor *a, int k, uint32_t num, int by, int flags)
{
	EXPECT_INT(engine_op(a, c->id[k], num, by, flags), 0);
}

/* ---- One semaphore ----------------------------------------------------------------------- */

static void one(struct cast *c)
{
	make(c, 0, 3, (int[]){2, 0, 7});
}

static void add_one(struct cast *c)
{
	op(c, c->victim, 0, 0, 1, 0);
}

static void add_to_unused(struct cast *c)
{
	op(c, c->victim, 0, 1, 1, 0);
}

static void take_undo(struct cast *c)
{
	op(c, c->victim, 0, 0, -1, OP_UNDO);
}

static void undone_before(struct cast *c)
{
	one(c);
	op(c, c->last, 0, 2, -1, OP_UNDO);
	op(c, c->victim, 0, 2, -2, OP_UNDO);
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
	make(c, 0, 10, (int[10]){1, 1, 1, 1, 1, 1});
	op(c, c->victim, 0, 9, 1, OP_UNDO);
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
	op(c, c->victim, 0, 2, -1, OP_UNDO);
	contend_set(c, 0);
}

/* ---- Sleepers ---------------------------------------------------------------------------- */

static void three_wait(struct cast *c)
{
	make(c, 0, 2, (int[]){0, 0});
	queue_one(c, 0, 0, -1, OP_UNDO);
	queue_one(c, 0, 0, -1, 0);
	queue_one(c, 0, 0, -5, 0);
	contend_set(c, 0);
}

static void give_three(struct cast *c)
{
	op(c, c->victim, 0, 0, 3, 0);
}

static void give_three_undo(struct cast *c)
{
	op(c, c->victim, 0, 0, 3, OP_UNDO);
}

static void zero_waiters(struct cast *c)
{
	struct semop_shm lazy[] = {{0, 0, 0}, {1, 0, 0}};

	make(c, 0, 3, (int[]){1, 0, 5});
	queue_one(c, 0, 0, 0, 0);
	queue(c, 0, lazy, 2);
	queue_one(c, 0, 0, -3, 0);
	queue_one(c, 0, 2, 0, OP_UNDO);
}

static void to_zero(struct cast *c)
{
	op(c, c->victim, 0, 0, -1, OP_UNDO);
}

static void complex_waiters(struct cast *c)
{
	struct semop_shm both[] = {{0, -1, OP_UNDO}, {1, -1, OP_UNDO}};
	struct semop_shm then[] = {{1, -1, 0}, {2, 1, 0}};
	struct semop_shm range[] = {{0, -1, 0}, {2, 32767, 0}};

	make(c, 0, 3, (int[]){0, 1, 5});
	queue_one(c, 0, 0, -1, 0);
	queue(c, 0, both, 2);
	op(c, c->last, 0, 1, -1, 0);
	queue(c, 0, then, 2);
	op(c, c->last, 0, 2, 0 + 1, 0);
	queue(c, 0, range, 2); /* ends with an error when it is looked at */
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

	make(c, 0, 20, NULL);
	for (uint16_t i = 0; i < 20; i++)
		ops[i] = (struct semop_shm){i, (int16_t)(i == 19 ? -1 : 1), OP_UNDO};
	queue(c, 0, ops, 20);
}

static void serve_large(struct cast *c)
{
	op(c, c->victim, 0, 19, 1, 0);
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

	make(c, 0, 3, (int[]){1, 4, 6});
	op(c, c->last, 0, 2, -1, OP_UNDO);
	op(c, c->last, 0, 1, -1, OP_UNDO);
	op(c, c->victim, 0, 2, -1, OP_UNDO);
	op(c, c->victim, 0, 1, -1, OP_UNDO);
	queue_one(c, 0, 0, -2, OP_UNDO);
	queue_one(c, 0, 1, 0, 0);
	queue(c, 0, both, 2);
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
	make(c, 0, 1, (int[]){1});
	EXPECT(engine_semget(c->last, 76, 2, GET_CREAT | 0600) >= 0);
	contend(c, ids_table_lock(FAMILY_SEM));
}

static void create(struct cast *c)
{
	EXPECT(engine_semget(c->victim, 77, 3, GET_CREAT | GET_EXCL | 0600) >= 0);
}

static void create_large(struct cast *c) /* words and side array are spans */
{
	EXPECT(engine_semget(c->victim, 77, 5000, GET_CREAT | 0600) >= 0);
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
	make(c, 0, 5000, NULL);
}

static void full_buckets(struct cast *c)
{
	c->key = 77;
	for (int i = 0; i < 1023; i++)
		EXPECT(engine_semget(c->last, 1000 + i, 1, GET_CREAT | 0600) >= 0);
}

/* ---- Blocks ------------------------------------------------------------------------------ */

static void take_block(struct cast *c)
{
	EXPECT_INT(arena_take(&c->victim->c, ARENA_GENERAL, NAME_FLY, 3000), OUTCOME_DONE);
}

static void two_blocks(struct cast *c)
{
	/* Two chunks of the class, so that the emptied one goes back to the arena. */
	for (int i = 0; i < 3; i++) {
		EXPECT_INT(arena_take(&c->victim->c, ARENA_GENERAL, (enum name)i, 32768),
			   OUTCOME_DONE);
	}
}

static void give_blocks(struct cast *c)
{
	for (int i = 2; i >= 0; i--)
		EXPECT_INT(arena_give(&c->victim->c, (enum name)i), OUTCOME_DONE);
}

static void take_span(struct cast *c)
{
	EXPECT_INT(arena_take(&c->victim->c, ARENA_GENERAL, NAME_FLY, 3 * CHUNK_BYTES),
		   OUTCOME_DONE);
}

static void give_span(struct cast *c)
{
	EXPECT_INT(arena_give(&c->victim->c, NAME_FLY), OUTCOME_DONE);
}

/* ---- Ends and beginnings ----------------------------------------------------------------- */

static void two_sets_undone(struct cast *c)
{
	make(c, 0, 3, (int[]){1, 3, 0});
	make(c, 1, 10, (int[10]){4, 4});
	op(c, c->victim, 0, 0, -1, OP_UNDO);
	op(c, c->victim, 1, 1, 2, OP_UNDO);
	op(c, c->victim, 0, 2, 1, OP_UNDO);
	op(c, c->victim, 1, 0, -4, OP_UNDO);
	queue_one(c, 0, 0, -1, OP_UNDO);
	queue_one(c, 0, 2, 0, 0);
	queue_one(c, 1, 0, -2, 0);
	contend_set(c, 0);
}

static void leave_for_good(struct cast *c)
{
	EXPECT_INT(engine_exit(c->victim), 0);
}

static void with_dead_thread(struct cast *c)
{
	two_sets_undone(c);
	c->thread = engine_join_thread(c->victim);
	EXPECT_INT(arena_take(&c->thread->c, ARENA_GENERAL, NAME_FLY, 500), OUTCOME_DONE);
	EXPECT_INT(engine_try_op(c->thread, c->id[1], 9, -1, 0), OUTCOME_SLEEP);
	engine_kill_thread(c->thread);
}

/* The victim buries a process that died in the middle of things. */
static void somebody_died(struct cast *c)
{
	struct actor *d = engine_join(c->e);

	make(c, 0, 3, (int[]){1, 3, 0});
	make(c, 1, 2, (int[]){4, 4});
	EXPECT_INT(engine_op(d, c->id[0], 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(d, c->id[1], 1, -3, OP_UNDO), 0);
	queue_one(c, 0, 0, -1, OP_UNDO);
	EXPECT_INT(arena_take(&d->c, ARENA_GENERAL, NAME_SIDE, 500), OUTCOME_DONE);
	EXPECT_INT(arena_take(&d->c, ARENA_GENERAL, NAME_FLY, 32768), OUTCOME_DONE);
	EXPECT_INT(engine_try_op(d, c->id[1], 1, -30, 0), OUTCOME_SLEEP);
	engine_kill(d);
	c->sweeps = true;
}

static void sweep(struct cast *c)
{
	engine_sweep(c->victim);
}

static void nothing(struct cast *c)
{
	c->enters = true;
}

static void enter(struct cast *c)
{
	unsigned char *base = c->e->base;
	uint32_t ix, group;

	EXPECT_INT(procs_reserve(base, NULL, NULL, 1, &ix), 0);
	procs_publish(base, ix, ENGINE_FIRST_PID + ix, 1, 1, 0);
	EXPECT_INT(procs_take_group(base, ix, &group), 0);
	procs_enter_thread(base, group * GROUP_SPAN, ix, 5);
	procs_enter_thread(base, group * GROUP_SPAN + 1, ix, 6);
}

/* ------------------------------------------------------------------------------------------ */

const struct scene scenes[] = {
	{"plain", one, add_one, false},
	{"plain-new-second", one, add_to_unused, false},
	{"undo-first", one, take_undo, false},
	{"undo-again", undone_before, take_undo, false},
	{"undo-reused-record", reusable_record, take_undo, false},
	{"several", undone_before, several, false},
	{"several-first", one, several, false},
	{"six", six, six_at_once, false},
	{"fails", undone_before, fails, false},
	{"slow", slow_undone, add_one, false},
	{"slow-undo", slow_undone, take_undo, false},
	{"hand-off", three_wait, give_three, false},
	{"hand-off-undo", three_wait, give_three_undo, false},
	{"zero", zero_waiters, to_zero, false},
	{"complex", complex_waiters, give_both, false},
	{"large-request", large_request, serve_large, false},
	{"queue", three_wait, wait_for_one, false},
	{"queue-complex", three_wait, wait_for_two, false},
	{"queue-large", large_request, queue_large, false},
	{"leave", asleep, leave, false},
	{"setval", everything, setval, false},
	{"setall", everything, setall, false},
	{"getall", everything, getall, false},
	{"ipc-set", everything, set_owner, false},
	{"rmid", rmid_contended, rmid, false},
	{"rmid-large", large_set, rmid, true},
	{"create", with_key, create, false},
	{"create-first", first_of_all, create, false},
	{"create-wish", with_wish, create, false},
	{"create-large", with_key, create_large, true},
	{"create-doubling", full_buckets, create, true},
	{"look-up", with_key, look_up, false},
	{"take", first_of_all, take_block, false},
	{"give", two_blocks, give_blocks, false},
	{"take-span", first_of_all, take_span, false},
	{"give-span", take_span, give_span, false},
	{"exit", two_sets_undone, leave_for_good, false},
	{"exit-dead-thread", with_dead_thread, leave_for_good, false},
	{"burial", somebody_died, sweep, false},
	{"enter", nothing, enter, false},
	{NULL, NULL, NULL, false},
};
