// SPDX-License-Identifier: MIT
/* The registry: process slots, groups, generations, and giving back. */
#include "unit.h"

static bool refuse_below(void *context, uint32_t ix)
{
	return ix >= *(uint32_t *)context;
}

static void test_reserve_and_give_back(void **state)
{
	struct engine *e = *state;
	uint32_t a, b, c, least = 7, word;

	EXPECT_INT(procs_reserve(e->base, NULL, NULL, 55, &a), 0);
	EXPECT_INT(procs_reserve(e->base, NULL, NULL, 56, &b), 0);
	EXPECT(a != b);
	word = region_proc(e->base, a)->state;
	EXPECT_INT(PROC_STATE(word), PROC_RESERVED_BARE);
	EXPECT_INT(PROC_RESERVER(word), 55);
	/* A slot whose token cannot be had is passed over. */
	EXPECT_INT(procs_reserve(e->base, refuse_below, &least, 57, &c), 0);
	EXPECT_INT(c, 7);
	/* Only on the word that was judged. */
	procs_unreserve(e->base, a, PROC_WORD(PROC_RESERVED, 99));
	EXPECT_INT(region_proc(e->base, a)->state, word);
	procs_unreserve(e->base, a, word);
	EXPECT_INT(region_proc(e->base, a)->state, PROC_FREE);
	procs_unreserve(e->base, b, PROC_WORD(PROC_RESERVED_BARE, 56));
	procs_unreserve(e->base, c, PROC_WORD(PROC_RESERVED, 57));
}

static void test_publish_find_adopt(void **state)
{
	struct engine *e = *state;
	struct proc_shm *p;
	uint32_t ix, gen, group;

	EXPECT_INT(procs_find(e->base, 300, 4000), -1);
	EXPECT_INT(procs_reserve(e->base, NULL, NULL, 300, &ix), 0);
	EXPECT_INT(procs_find(e->base, 300, 4000), -1); /* reserved is not registered */
	procs_publish(e->base, ix, 300, 4000, 5, PROC_REAPER);
	p = region_proc(e->base, ix);
	EXPECT_INT(p->state, PROC_LIVE);
	EXPECT_INT(p->flags, PROC_REAPER);
	gen = CLAIM_GEN(p->claim);
	EXPECT(gen & 1);
	EXPECT_INT(procs_find(e->base, 300, 4000), ix);
	EXPECT_INT(procs_find(e->base, 300, 0), ix);
	EXPECT_INT(procs_find(e->base, 300, 4001), -1); /* the pid, used again */
	EXPECT_INT(procs_find(e->base, 301, 4000), -1);
	EXPECT_INT(procs_take_group(e->base, ix, &group), 0);
	EXPECT(procs_owns_group(e->base, ix, group));
	p->undo_ref = 0;
	p->claim |= 77; /* somebody is at it */
	EXPECT(!procs_adopt(e->base, ix));
	EXPECT(procs_owns_group(e->base, ix, group));
	p->claim = CLAIM_WORD(gen, 0, 0);
	EXPECT(procs_adopt(e->base, ix));
	EXPECT_INT(CLAIM_GEN(p->claim), gen + 2);
	EXPECT(!procs_owns_group(e->base, ix, group)); /* the old image's */
	EXPECT_INT(procs_find(e->base, 300, 4000), ix);
	e->shared->proc_dead[ix] = 1;
}

static void test_threads_fill_groups(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *last = a;
	uint32_t first = a->c.thread_ix / GROUP_SPAN;

	for (uint32_t k = 1; k < GROUP_THREADS; k++) {
		last = engine_join_thread(a);
		EXPECT_INT(last->c.thread_ix, a->c.thread_ix + k);
	}
	last = engine_join_thread(a);
	EXPECT(last->c.thread_ix / GROUP_SPAN != first);
	EXPECT(procs_owns_group(e->base, a->c.proc_ix, last->c.thread_ix / GROUP_SPAN));
	EXPECT_INT(*region_life(e->base, last->c.thread_ix), ENGINE_FIRST_PID + last->c.thread_ix);
	EXPECT_INT(last->c.proc_ix, a->c.proc_ix);
}

static void test_slots_are_used_again(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e);
	uint32_t groups = 0, hi = 0;

	for (int i = 0; i < 50; i++) {
		uint64_t claim = actor_slot(a)->claim, proc_claim = actor_proc(a)->claim;
		struct actor *b;

		engine_kill(a);
		engine_bury(g, a);
		EXPECT_INT(actor_proc(a)->state, PROC_FREE);
		EXPECT_INT(CLAIM_GEN(actor_slot(a)->claim), CLAIM_GEN(claim) + 1);
		EXPECT_INT(*region_group_owner(e->base, a->c.thread_ix / GROUP_SPAN), 0);
		b = engine_join(e);
		EXPECT_INT(b->c.proc_ix, a->c.proc_ix);
		EXPECT_INT(b->c.thread_ix, a->c.thread_ix);
		EXPECT_INT(CLAIM_GEN(actor_slot(b)->claim), CLAIM_GEN(claim) + 2);
		EXPECT_INT(CLAIM_GEN(actor_proc(b)->claim), CLAIM_GEN(proc_claim) + 2);
		if (i == 0) {
			groups = region_header(e->base)->group_hi;
			hi = region_header(e->base)->proc_hi;
		}
		a = b;
	}
	EXPECT_INT(region_header(e->base)->group_hi, groups);
	EXPECT_INT(region_header(e->base)->proc_hi, hi);
}

/* exec: the image's threads are gone, the process and its undo list stay. */
static void test_image_replaced(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e), *b;
	int32_t id = new_set(g, 1, (int[]){1});
	uint32_t group = a->c.thread_ix / GROUP_SPAN;

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	engine_kill_thread(a);
	engine_sweep(g);
	EXPECT_INT(actor_proc(a)->state, PROC_LIVE);
	EXPECT_INT(value_of(g, id, 0), 0); /* no undo yet: the process lives */
	EXPECT_INT(CLAIM_GEN(actor_slot(a)->claim) & 1, 0);
	EXPECT(procs_adopt(e->base, a->c.proc_ix));
	b = engine_join_thread(a);
	engine_sweep(g);
	EXPECT(b->c.thread_ix / GROUP_SPAN != group || *region_group_owner(e->base, group));
	EXPECT_INT(engine_op(b, id, 0, 1, OP_UNDO), 0);
	EXPECT_INT(semadj_of(b, id, 0), 0); /* the same record */
	engine_kill(b);
	engine_sweep(g);
	EXPECT_INT(value_of(g, id, 0), 1);
	EXPECT_INT(actor_proc(b)->state, PROC_FREE);
}

static void test_many_processes(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e);

	for (int i = 0; i < 400; i++)
		engine_join(e);
	for (uint32_t i = 1; i < e->actor_count; i++)
		engine_kill(&e->actor[i]);
	engine_sweep(g);
	for (uint32_t i = 1; i < e->actor_count; i++)
		EXPECT_INT(actor_proc(&e->actor[i])->state, PROC_FREE);
	EXPECT_INT(actor_proc(g)->state, PROC_LIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reserve_and_give_back), TEST(test_publish_find_adopt),
		TEST(test_threads_fill_groups),   TEST(test_slots_are_used_again),
		TEST(test_image_replaced),        TEST(test_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
