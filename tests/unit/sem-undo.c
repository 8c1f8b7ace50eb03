// SPDX-License-Identifier: MIT
/* SEM_UNDO records: finding, sharing, clearing, using again, applying at exit; and half-made ones.
 */
#include "unit.h"

static struct undo_shm *record(struct actor *a, uint32_t ref)
{
	struct undo_shm *u = region_block(a->e->base, ref, sizeof(*u));

	EXPECT(u);
	return u;
}

static uint32_t records_of(struct actor *a)
{
	uint32_t n = 0;

	for (uint32_t ref = actor_proc(a)->undo_ref; ref; ref = record(a, ref)->next_in_proc_ref)
		n++;
	return n;
}

static void test_threads_share(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join_thread(a), *g = engine_join(*state);
	int32_t id = new_set(g, 1, (int[]){9});

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(b, id, 0, -2, OP_UNDO), 0);
	EXPECT_INT(records_of(a), 1);
	EXPECT_INT(semadj_of(b, id, 0), 3);
	engine_kill_thread(a);
	engine_sweep(g);
	EXPECT_INT(value_of(g, id, 0), 6); /* a thread's death undoes nothing */
	engine_kill(b);
	engine_sweep(g);
	EXPECT_INT(value_of(g, id, 0), 9);
	EXPECT_INT(engine_getpid(g, id, 0), b->c.pid);
}

/* Who watches for deaths is woken by a process that comes to have records, each time that it does,
 * and by no further record (WATCH_P1). */
static bool announces(struct actor *a, int32_t id)
{
	uint32_t *owners = &region_header(a->e->base)->undo_owners, before = load_acquire(owners);
	uint32_t since = load_acquire(&a->e->shared->wakes);

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	EXPECT(actor_proc(a)->undo_ref);
	EXPECT_INT(engine_woken(a->e, region_off(a->e->base, owners), since),
		   load_acquire(owners) != before);
	return load_acquire(owners) != before;
}

static void test_first_is_announced(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state);
	int32_t id = new_set(g, 1, (int[]){9}), other = new_set(g, 1, (int[]){9});

	EXPECT(announces(a, id));
	EXPECT(!announces(a, id));
	EXPECT(!announces(a, other));
	EXPECT(announces(g, id));
	EXPECT_INT(engine_exit(a), 0);
	a = engine_join(*state);
	EXPECT(announces(a, other));
}

static void test_exit_is_clamped(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state);
	int32_t id = new_set(g, 3, (int[]){5, 5, 7});

	EXPECT_INT(engine_op(a, id, 0, 3, OP_UNDO), 0);
	EXPECT_INT(engine_op(a, id, 1, -3, OP_UNDO), 0);
	EXPECT_INT(engine_op(g, id, 0, -7, 0), 0);
	EXPECT_INT(engine_setval(g, id, 2, 1), 0);
	EXPECT_INT(engine_op(g, id, 1, 32764, 0), 0);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(value_of(g, id, 0), 0);
	EXPECT_INT(value_of(g, id, 1), 32767);
	EXPECT_INT(value_of(g, id, 2), 1);
	EXPECT_INT(engine_getpid(g, id, 2), g->c.pid); /* untouched */
	EXPECT_INT(actor_proc(a)->state, PROC_FREE);
	EXPECT_INT(CLAIM_GEN(actor_slot(a)->claim) & 1, 0);
}

static void test_exit_wakes(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(g, 1, (int[]){1});

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	queue_op(b, id, 0, -1, OP_UNDO);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(actor_state(b), WAIT_GRANTED);
	EXPECT_INT(sem_wait_result(&b->c), 0);
	EXPECT_INT(semadj_of(b, id, 0), 1);
	engine_kill(b);
	engine_bury(g, b);
	EXPECT_INT(value_of(g, id, 0), 1);
}

static void test_setting_clears(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(g, 2, (int[]){5, 5});

	for (uint32_t s = 0; s < 2; s++) {
		EXPECT_INT(engine_op(a, id, s, -1, OP_UNDO), 0);
		EXPECT_INT(engine_op(b, id, s, -1, OP_UNDO), 0);
	}
	EXPECT_INT(engine_setval(g, id, 0, 20), 0);
	EXPECT_INT(semadj_of(a, id, 0), 0);
	EXPECT_INT(semadj_of(b, id, 0), 0);
	EXPECT_INT(semadj_of(a, id, 1), 1);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(engine_exit(b), 0);
	EXPECT_INT(value_of(g, id, 0), 20);
	EXPECT_INT(value_of(g, id, 1), 5);
}

static void test_records_are_used_again(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state);

	for (int i = 0; i < 20; i++) {
		int32_t id = new_set(g, 4, (int[]){5, 5, 5, 5});

		EXPECT_INT(engine_op(a, id, 3, -1, OP_UNDO), 0);
		EXPECT_INT(semadj_of(a, id, 3), 1);
		EXPECT_INT(semadj_of(a, id, 0), 0);
		EXPECT_INT(engine_rmid(g, id), 0);
		EXPECT_INT(records_of(a), 1);
	}
	/* Too small for a larger set. */
	EXPECT_INT(engine_op(a, new_set(g, 500, (int[500]){1}), 0, -1, OP_UNDO), 0);
	EXPECT_INT(records_of(a), 2);
}

/* The set that was used last is undone first: here it decides who is woken by whom. */
static void test_last_used_first(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join(*state);
	int32_t one = new_set(g, 1, (int[]){1}), two = new_set(g, 1, (int[]){1});
	uint64_t first, second;

	EXPECT_INT(engine_op(a, one, 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(a, two, 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(a, one, 0, 0, OP_UNDO), 0);
	first = record(a, set_of(a, one)->undo_ref)->stamp;
	second = record(a, set_of(a, two)->undo_ref)->stamp;
	EXPECT(first > second);
	/* Held up at the second: the first is done, and done once. */
	seize(b, ids_object_lock(FAMILY_SEM, (uint32_t)two));
	EXPECT_INT(repair_exit_process(&a->c, NOW), OUTCOME_BUSY);
	EXPECT_INT(value_of(g, one, 0), 1);
	EXPECT_INT(value_of(g, two, 0), 0);
	EXPECT_INT(repair_exit_process(&a->c, NOW), OUTCOME_BUSY);
	let_loose(b, ids_object_lock(FAMILY_SEM, (uint32_t)two));
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(value_of(g, one, 0), 1);
	EXPECT_INT(value_of(g, two, 0), 1);
}

static void test_stale_hint(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join(*state);
	int32_t one = new_set(g, 2, (int[]){5, 5}), two = new_set(g, 2, (int[]){5, 5});

	EXPECT_INT(engine_op(a, one, 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(b, two, 0, -1, OP_UNDO), 0);
	a->undo_id = two; /* hints that name another set's and another's record, and nothing */
	EXPECT_INT(engine_op(a, two, 1, -1, OP_UNDO), 0);
	EXPECT_INT(semadj_of(a, two, 1), 1);
	EXPECT_INT(semadj_of(a, one, 1), 0);
	a->undo_hint = b->undo_hint;
	EXPECT_INT(engine_op(a, two, 1, -1, OP_UNDO), 0);
	EXPECT_INT(semadj_of(b, two, 1), 0);
	a->undo_hint = 0x7fffffff;
	EXPECT_INT(engine_op(a, two, 1, -1, OP_UNDO), 0);
	EXPECT_INT(semadj_of(a, two, 1), 3);
}

/* ---- Half-made records -------------------------------------------------------------------- */

/* In the set's chain, but without its generation. */
static void test_death_while_linking(void **state)
{
	struct actor *g = engine_join(*state), *d = engine_join(*state), *t;
	int32_t id = new_set(g, 1, (int[]){5});
	struct undo_shm *u;
	uint32_t ref;

	EXPECT_INT(engine_op(d, id, 0, 0 + 1, OP_UNDO), 0);
	EXPECT_INT(engine_op(d, id, 0, -1, OP_UNDO), 0);
	t = engine_join_thread(d);
	ref = set_of(g, id)->undo_ref;
	u = record(g, ref);
	seize(d, ids_object_lock(FAMILY_SEM, (uint32_t)id));
	actor_slot(d)->undo_reserved = ref;
	u->owner_link = d->c.thread_ix + 1;
	u->gen = 0;
	engine_kill_thread(d);
	EXPECT_INT(engine_op(t, id, 0, -2, OP_UNDO), 0);
	EXPECT_INT(set_of(g, id)->undo_ref, ref);
	EXPECT_INT(semadj_of(t, id, 0), 2);
	EXPECT_INT(u->owner_link, 0);
	EXPECT_INT(records_of(t), 2); /* t had brought one, which is reusable now */
	EXPECT_INT(engine_op(t, new_set(g, 1, (int[]){5}), 0, -2, OP_UNDO), 0);
	EXPECT_INT(records_of(t), 2);
}

/* Reserved, in no chain: reusable after burial. */
static void test_death_after_reserving(void **state)
{
	struct actor *g = engine_join(*state), *d = engine_join(*state), *t = engine_join_thread(d);
	int32_t id = new_set(g, 1, (int[]){5});
	uint64_t lock = ids_object_lock(FAMILY_SEM, (uint32_t)id);

	seize(g, lock);
	EXPECT_INT(engine_try_op(d, id, 0, -1, OP_UNDO), OUTCOME_BUSY);
	EXPECT(actor_slot(d)->undo_reserved);
	EXPECT_INT(records_of(d), 1);
	let_loose(g, lock);
	engine_kill_thread(d);
	EXPECT_INT(repair_bury_thread(&g->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(engine_op(t, id, 0, -1, OP_UNDO), 0);
	EXPECT_INT(records_of(t), 1);
}

/* In the process's list and still in the pocket. */
static void test_death_between_pocket_and_list(void **state)
{
	struct actor *g = engine_join(*state), *d = engine_join(*state), *t = engine_join_thread(d);
	int32_t id = new_set(g, 1, (int[]){5});
	uint64_t lock = PROCS_OFF + d->c.proc_ix * sizeof(struct proc_shm) +
			offsetof(struct proc_shm, undo_lock);

	seize(g, ids_object_lock(FAMILY_SEM, (uint32_t)id));
	EXPECT_INT(engine_try_op(d, id, 0, -1, OP_UNDO), OUTCOME_BUSY);
	let_loose(g, ids_object_lock(FAMILY_SEM, (uint32_t)id));
	seize(d, lock);
	actor_slot(d)->name_ref[NAME_POCKET] = actor_slot(d)->undo_reserved;
	engine_kill_thread(d);
	EXPECT_INT(engine_op(t, id, 0, -1, OP_UNDO), 0);
	EXPECT_INT(repair_bury_thread(&g->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(semadj_of(t, id, 0), 1);
	EXPECT_INT(engine_check(g->e), 0);
	engine_kill(t);
	engine_bury(g, t);
	EXPECT_INT(value_of(g, id, 0), 5);
}

/* Applied and out of the set's chain, but it still has the generation: it ends here and is not
 * looked for in the chain for ever. */
static void test_death_after_unlinking(void **state)
{
	struct actor *g = engine_join(*state), *d = engine_join(*state);
	int32_t id = new_set(g, 2, (int[]){5, 5});
	struct set_shm *set = set_of(g, id);
	struct semq_shm *side = region_block(g->e->base, set->side_ref, 2 * sizeof(*side));
	struct undo_shm *u;

	EXPECT_INT(engine_op(d, id, 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(d, id, 1, -1, OP_UNDO), 0);
	u = record(g, set->undo_ref);
	seize(d, ids_object_lock(FAMILY_SEM, (uint32_t)id));
	for (uint32_t s = 0; s < 2; s++) {
		side[s].used = 1;
		side[s].next_value = 5;
		u->adj[s] = 0;
		sem_of(g, id, s)->word = SEM_WORD(5, set->object.gen, d->c.pid) | SEM_SLOW;
	}
	set->intent_undo_ref = set->undo_ref;
	set->intent_pid = d->c.pid;
	set->intent_time = NOW;
	set->intent_otime_ix = 0;
	set->intent_thread = d->c.thread_ix;
	set->intent = INTENT_EXIT;
	set->undo_ref = u->next_in_set_ref;
	engine_kill(d);
	engine_bury(g, d);
	EXPECT_INT(actor_proc(d)->state, PROC_FREE);
	EXPECT_INT(value_of(g, id, 0), 5);
	EXPECT_INT(value_of(g, id, 1), 5);
}

/* A burier died with a record in flight. */
static void test_death_of_the_burier(void **state)
{
	struct actor *g = engine_join(*state), *d = engine_join(*state), *b = engine_join(*state);
	int32_t one = new_set(g, 1, (int[]){5}), two = new_set(g, 1, (int[]){5});
	uint64_t *claim;
	uint32_t flying;

	EXPECT_INT(engine_op(d, one, 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(d, two, 0, -1, OP_UNDO), 0);
	engine_kill(d);
	claim = &actor_proc(d)->claim;
	*claim = CLAIM_WORD(CLAIM_GEN(*claim), CLAIM_GEN(actor_slot(b)->claim) & 0xfffff,
			    b->c.thread_ix + 1);
	actor_slot(b)->victim_proc_link = d->c.proc_ix + 1;
	actor_slot(b)->name_ref[NAME_FLY] = actor_proc(d)->undo_ref; /* and not popped yet */
	flying = actor_proc(d)->undo_ref;
	record(g, flying)->gen = 0;
	set_of(g, two)->undo_ref = 0;
	EXPECT_INT(engine_setval(g, two, 0, 5), 0);
	engine_kill(b);
	/* Freed with the burier's names, so out of the list: the block may be another's next. */
	EXPECT_INT(repair_bury_thread(&g->c, b->c.thread_ix, false), BURIAL_DONE);
	EXPECT(actor_proc(d)->undo_ref && actor_proc(d)->undo_ref != flying);
	engine_bury(g, d);
	EXPECT_INT(actor_proc(d)->state, PROC_FREE);
	EXPECT_INT(value_of(g, one, 0), 5);
	EXPECT_INT(value_of(g, two, 0), 5);
	EXPECT_INT(engine_check(g->e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_threads_share),
		TEST(test_first_is_announced),
		TEST(test_exit_is_clamped),
		TEST(test_exit_wakes),
		TEST(test_setting_clears),
		TEST(test_records_are_used_again),
		TEST(test_last_used_first),
		TEST(test_stale_hint),
		TEST(test_death_while_linking),
		TEST(test_death_after_reserving),
		TEST(test_death_between_pocket_and_list),
		TEST(test_death_after_unlinking),
		TEST(test_death_of_the_burier),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
