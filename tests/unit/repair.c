// SPDX-License-Identifier: MIT
/* Burial: of threads, processes, buriers; what is busy, who lives, and the end of one's own
 * process. */
#include "unit.h"

static bool in_use(struct actor *a)
{
	return CLAIM_GEN(load_acquire(&actor_slot(a)->claim)) & 1;
}

static void test_the_living_are_not_buried(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state);

	EXPECT_INT(repair_bury_thread(&g->c, a->c.thread_ix, true), BURIAL_NONE);
	EXPECT_INT(repair_bury_process(&g->c, a->c.proc_ix, NOW), OUTCOME_DONE);
	EXPECT_INT(repair_bury_process(&g->c, g->c.proc_ix, NOW), OUTCOME_DONE);
	EXPECT_INT(repair_bury_process(&g->c, 999, NOW), OUTCOME_DONE);
	EXPECT_INT(repair_bury_thread(&g->c, 4000, true), BURIAL_NONE);
	EXPECT(in_use(a) && in_use(g));
	EXPECT_INT(actor_proc(a)->state, PROC_LIVE);
	EXPECT_INT(CLAIM_CLAIMER(actor_slot(a)->claim), 0);
	EXPECT_INT(CLAIM_CLAIMER(actor_proc(a)->claim), 0);
}

static void test_one_thread_of_several(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join_thread(a);
	int32_t id = new_set(g, 1, (int[]){3});
	bool busy;

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	engine_kill_thread(a);
	EXPECT_INT(repair_sweep(&g->c, NOW, SWEEP_ALL, &busy), 1);
	EXPECT(!busy);
	EXPECT(!in_use(a) && in_use(b));
	EXPECT_INT(actor_proc(a)->state, PROC_LIVE);
	EXPECT_INT(value_of(g, id, 0), 2);
	EXPECT_INT(repair_bury_thread(&g->c, a->c.thread_ix, true),
		   BURIAL_DONE); /* nothing left to do */
}

static void test_sleepers_leave(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state);
	struct semop_shm ops[12];
	int32_t id = new_set(g, 12, (int[12]){0});

	for (uint16_t i = 0; i < 12; i++)
		ops[i] = (struct semop_shm){i, -1, 0};
	EXPECT_INT(engine_try(a, id, ops, 12), OUTCOME_SLEEP);
	EXPECT_INT(set_of(g, id)->waiting, 1);
	engine_kill(a);
	engine_bury(g, a);
	EXPECT_INT(set_of(g, id)->waiting, 0);
	EXPECT_INT(actor_state(a), WAIT_FREE);
	EXPECT_INT(engine_check(g->e), 0);
	for (uint32_t i = 0; i < 12; i++)
		EXPECT(!(sem_of(g, id, i)->word & SEM_SLOW));
}

/* What was performed for a sleeper stays performed; its SEM_UNDO is applied. */
static void test_granted_and_killed(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(g, 1, (int[]){0});

	queue_op(a, id, 0, -1, 0);
	queue_op(b, id, 0, -1, OP_UNDO);
	EXPECT_INT(engine_op(g, id, 0, 2, 0), 0);
	engine_kill(a);
	engine_kill(b);
	engine_sweep(g);
	EXPECT_INT(value_of(g, id, 0), 1);
	EXPECT(!in_use(a) && !in_use(b));
}

static void test_busy_is_tried_again(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *d = engine_join(*state);
	int32_t id = new_set(g, 1, (int[]){0});
	uint64_t lock = ids_object_lock(FAMILY_SEM, (uint32_t)id);
	bool busy;

	queue_op(d, id, 0, -1, 0);
	engine_kill(d);
	seize(a, lock);
	EXPECT_INT(repair_bury_thread(&g->c, d->c.thread_ix, false), BURIAL_BUSY);
	EXPECT_INT(g->c.busy.word_off, lock);
	EXPECT_INT(repair_bury_process(&g->c, d->c.proc_ix, NOW), OUTCOME_BUSY);
	EXPECT_INT(CLAIM_CLAIMER(actor_slot(d)->claim), 0);
	EXPECT_INT(actor_slot(g)->victim_link, 0);
	repair_sweep(&g->c, NOW, SWEEP_MARKED, &busy);
	EXPECT(busy);
	let_loose(a, lock);
	repair_sweep(&g->c, NOW, SWEEP_MARKED, &busy);
	EXPECT(!busy);
	EXPECT(!in_use(d));
	EXPECT_INT(actor_proc(d)->state, PROC_FREE);
}

/* The claim of a burier that lives keeps others out. */
static void test_one_burier_at_a_time(void **state)
{
	struct actor *g = engine_join(*state), *h = engine_join(*state), *d = engine_join(*state);

	engine_kill(d);
	EXPECT(rlock_claim_dead(&h->c, d->c.thread_ix, false));
	EXPECT_INT(repair_bury_thread(&g->c, d->c.thread_ix, false), BURIAL_NONE);
	EXPECT(in_use(d));
	engine_kill_thread(h);
	EXPECT_INT(repair_bury_thread(&g->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT(!in_use(d));
}

static void claim_process_for(struct actor *dead, struct actor *claimer)
{
	uint64_t *claim = &actor_proc(dead)->claim;

	*claim = CLAIM_WORD(CLAIM_GEN(*claim), CLAIM_GEN(actor_slot(claimer)->claim) & 0xfffff,
			    claimer->c.thread_ix + 1);
}

/* A process's claim that names a thread which lives: it stands while that thread says so. */
static void test_claim_of_a_process(void **state)
{
	struct actor *g = engine_join(*state), *h = engine_join(*state), *d = engine_join(*state);

	engine_kill(d);
	claim_process_for(d, h);
	actor_slot(h)->victim_proc_link = d->c.proc_ix + 1;
	engine_bury(g, d);
	EXPECT_INT(actor_proc(d)->state, PROC_LIVE);
	actor_slot(h)->victim_proc_link = 0;
	EXPECT(rlock_is_false_claim(&g->c, &actor_proc(d)->claim, actor_proc(d)->claim,
				    d->c.proc_ix + 1, true));
	engine_bury(g, d);
	EXPECT_INT(actor_proc(d)->state, PROC_FREE);
	EXPECT_INT(actor_slot(g)->victim_proc_link, 0);
	/* Who comes late and has seen it before: the freed slot keeps the word. */
	claim_process_for(d, h);
	EXPECT(!rlock_is_false_claim(&g->c, &actor_proc(d)->claim, actor_proc(d)->claim,
				     d->c.proc_ix + 1, true));
}

/* A burier dies with the victim's block in the victim's name. */
static void test_victim_of_a_dead_burier(void **state)
{
	struct actor *g = engine_join(*state), *h = engine_join(*state), *d = engine_join(*state);

	EXPECT_INT(arena_take(&d->c, ARENA_GENERAL, NAME_FLY, 100), OUTCOME_DONE);
	engine_kill(d);
	EXPECT(rlock_claim_dead(&h->c, d->c.thread_ix, false));
	engine_kill(h);
	engine_bury(g, h);
	EXPECT(!in_use(h) && !in_use(d));
	EXPECT_INT(engine_blocks(g->e), 0);
	engine_sweep(g);
	EXPECT_INT(actor_proc(d)->state, PROC_FREE);
}

static void test_chain_of_victims(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *d[6];

	for (int i = 0; i < 6; i++) {
		d[i] = engine_join(e);
		EXPECT_INT(arena_take(&d[i]->c, ARENA_GENERAL, NAME_FLY, 100), OUTCOME_DONE);
		if (i)
			actor_slot(d[i])->victim_link = d[i - 1]->c.thread_ix + 1;
	}
	for (int i = 0; i < 6; i++)
		engine_kill(d[i]);
	EXPECT_INT(repair_bury_thread(&g->c, d[5]->c.thread_ix, false), BURIAL_DONE);
	for (int i = 0; i < 6; i++)
		EXPECT(!in_use(d[i]));
	EXPECT_INT(engine_blocks(e), 0);
}

/* ---- Removal cut short -------------------------------------------------------------------- */

/* After the commit, at each step of giving the memory back. */
static void test_purge_is_finished(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e);

	for (int step = 0; step < 6; step++) {
		struct actor *d = engine_join(e);
		int32_t id = engine_semget(g, 55, 3, GET_CREAT | 0600);
		struct set_shm *set = set_of(g, id);
		struct thread_shm *self = actor_slot(d);

		EXPECT_INT(sem_remove(&d->c, id), OUTCOME_DONE);
		EXPECT_INT(self->op, OP_PURGE);
		EXPECT_INT(engine_semget(g, 55, 0, 0), -ENOENT); /* free from the commit on */
		if (step >= 1)
			self->name_ref[NAME_FLY] = set->words_ref;
		if (step >= 2)
			set->words_ref = 0;
		if (step >= 3)
			EXPECT_INT(arena_give(&d->c, NAME_FLY), OUTCOME_DONE);
		if (step >= 4)
			self->name_ref[NAME_FLY] = set->side_ref;
		if (step >= 5)
			set->side_ref = 0;
		engine_kill(d);
		EXPECT_INT(engine_check(e), 0); /* it is known what becomes of it */
		engine_bury(g, d);
		EXPECT_INT(engine_blocks(e), 0);
		EXPECT_INT(region_header(e->base)->table[FAMILY_SEM].in_use, 0);
		EXPECT_INT(engine_check(e), 0);
	}
}

static struct {
	struct set_shm *set;
	int looks;
} purged;

static void repair_and_look(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	repair_lock(c, dead_ix, lock_off);
	if (lock_off) {
		EXPECT_INT(purged.set->words_ref, 0);
		purged.looks++;
	}
}

/*
 * The words are named by the dead thread, and the set names them too. Once they are freed another
 * set may get them: before that the set's name must be gone, or they would be freed again. The
 * pool's lock has a dead owner, so that its repair tells when the freeing begins.
 */
static void test_purge_frees_once(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *d = engine_join(e), *b = engine_join(e);
	int32_t id = engine_semget(g, 0, 3, 0600);
	uint64_t pool = region_off(e->base, &region_header(e->base)->arena[ARENA_SEM].pool[0].lock);

	purged.set = set_of(g, id);
	purged.looks = 0;
	EXPECT_INT(sem_remove(&d->c, id), OUTCOME_DONE);
	actor_slot(d)->name_ref[NAME_FLY] = purged.set->words_ref;
	seize(b, pool);
	engine_kill(b);
	engine_kill(d);
	e->on_repair = repair_and_look;
	engine_bury(g, d);
	EXPECT_INT(purged.looks, 1);
}

/* ---- One's own end ------------------------------------------------------------------------ */

static void test_exit_alone(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e);
	int32_t id = new_set(g, 1, (int[]){3});
	uint32_t group = a->c.thread_ix / GROUP_SPAN;

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	EXPECT_INT(arena_take(&a->c, ARENA_GENERAL, NAME_SOPS, 100), OUTCOME_DONE);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(value_of(g, id, 0), 3);
	EXPECT(!in_use(a));
	EXPECT_INT(actor_proc(a)->state, PROC_FREE);
	EXPECT_INT(*region_group_owner(e->base, group), 0);
	EXPECT_INT(engine_blocks(e), 2); /* the set's */
	EXPECT_INT(engine_exit(a), 0);   /* again: nothing */
}

static void test_exit_with_other_threads(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e), *b = engine_join_thread(a),
		     *d = engine_join_thread(a);
	int32_t id = new_set(g, 1, (int[]){3});

	EXPECT_INT(engine_op(a, id, 0, -2, OP_UNDO), 0);
	queue_op(b, id, 0, -7, 0);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(value_of(g, id, 0), 1); /* others still run, and may be inside what it guards */
	EXPECT(in_use(a) && in_use(b));
	EXPECT_INT(actor_proc(a)->state, PROC_LIVE);
	EXPECT_INT(engine_op(d, id, 0, 1, OP_UNDO), 0); /* or leave it by themselves */
	EXPECT_INT(value_of(g, id, 0), 2);
	EXPECT_INT(engine_getncnt(g, id, 0), 1);
	engine_kill(a);
	engine_bury(g, a);
	EXPECT_INT(engine_getncnt(g, id, 0), 0);
	EXPECT_INT(value_of(g, id, 0), 3);
	EXPECT_INT(actor_proc(a)->state, PROC_FREE);
}

/* Is asked whether the process is dead, and before it answers another buries it and a third one
 * takes the slot. */
static struct actor *other, *judged;
static bool dead_a_moment_ago(struct caller *c, uint32_t proc_ix)
{
	uint32_t ix;

	if (proc_ix != judged->c.proc_ix || !other)
		return false;
	engine_bury(other, judged);
	EXPECT_INT(procs_reserve(c->base, NULL, NULL, 5000, &ix), 0);
	EXPECT_INT(ix, proc_ix);
	procs_publish(c->base, ix, 5000, 1, 1, 0);
	other = NULL;
	return true;
}

static void test_slot_in_use_again(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e);
	struct caller_ops ops = *g->c.ops;
	int32_t id = new_set(g, 1, (int[]){3});

	other = engine_join(e);
	judged = a;
	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	engine_kill(a);
	ops.is_process_dead = dead_a_moment_ago;
	g->c.ops = &ops;
	EXPECT_INT(repair_bury_process(&g->c, a->c.proc_ix, NOW), OUTCOME_DONE);
	g->c.ops = judged->c.ops;
	EXPECT_INT(value_of(g, id, 0), 3);
	EXPECT_INT(actor_proc(a)->state, PROC_LIVE); /* not his: he lives */
	EXPECT_INT(actor_proc(a)->pid, 5000);
}

static void test_exit_buries_own_dead_threads(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e), *b = engine_join_thread(a);

	EXPECT_INT(arena_take(&b->c, ARENA_GENERAL, NAME_FLY, 100), OUTCOME_DONE);
	engine_kill_thread(b);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT(!in_use(a) && !in_use(b));
	EXPECT_INT(engine_blocks(e), 0);
	EXPECT_INT(actor_proc(a)->state, PROC_FREE);
	(void)g;
}

/* The arena is busy when the last block's chunk goes back: the slot may not go with its name. */
static void test_exit_with_a_chunk_in_hand(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e);
	struct arena_shm *arena = &region_header(e->base)->arena[ARENA_GENERAL];
	struct arena_usage usage;
	uint64_t lock = region_off(e->base, &arena->lock);

	/* Three chunks of two; the third becomes empty by the exit. */
	for (int i = 0; i < 4; i++) {
		EXPECT_INT(arena_take(&a->c, ARENA_GENERAL, NAME_FLY, 32768), OUTCOME_DONE);
		if (i == 0) {
			actor_slot(a)->name_ref[NAME_POCKET] = actor_slot(a)->name_ref[NAME_FLY];
			actor_slot(a)->name_ref[NAME_FLY] = 0;
		} else if (i == 1) {
			actor_slot(a)->name_ref[NAME_SIDE] = actor_slot(a)->name_ref[NAME_FLY];
			actor_slot(a)->name_ref[NAME_FLY] = 0;
		} else if (i == 2) {
			actor_slot(a)->name_ref[NAME_SOPS] = actor_slot(a)->name_ref[NAME_FLY];
			actor_slot(a)->name_ref[NAME_FLY] = 0;
		}
	}
	arena_usage(e->base, ARENA_GENERAL, &usage);
	EXPECT_INT(usage.chunks, 2);
	seize(g, lock);
	EXPECT_INT(repair_exit_process(&a->c, NOW), OUTCOME_BUSY);
	EXPECT(in_use(a));
	let_loose(g, lock);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT(!in_use(a));
	EXPECT_INT(actor_slot(a)->chunk_link, 0);
	arena_usage(e->base, ARENA_GENERAL, &usage);
	EXPECT_INT(usage.chunks, 1);
	EXPECT_INT(usage.blocks, 0);
}

/* Death at the end of one's own exit: slot by slot. */
static void test_death_in_exit(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e);
	int32_t id = new_set(g, 1, (int[]){3});

	EXPECT_INT(engine_op(a, id, 0, -1, OP_UNDO), 0);
	/* The thread's slot is given back, the group and the process's are not. */
	actor_proc(a)->claim =
		CLAIM_WORD(CLAIM_GEN(actor_proc(a)->claim),
			   CLAIM_GEN(actor_slot(a)->claim) & 0xfffff, a->c.thread_ix + 1);
	actor_slot(a)->claim += CLAIM_WORD(1, 0, 0);
	engine_kill(a);
	engine_sweep(g);
	EXPECT_INT(actor_proc(a)->state, PROC_FREE);
	EXPECT_INT(value_of(g, id, 0), 3);
	EXPECT_INT(*region_group_owner(e->base, a->c.thread_ix / GROUP_SPAN), 0);
}

static uint32_t asked; /* slots, a bit each */

static bool note_question(struct caller *c, uint32_t proc_ix)
{
	(void)c;
	asked |= 1u << proc_ix;
	return false;
}

static uint32_t asked_by(struct actor *g, enum sweep kind)
{
	struct caller_ops ops = *g->c.ops;
	struct caller c = g->c;
	bool busy;

	ops.is_process_dead = note_question;
	c.ops = &ops;
	asked = 0;
	repair_sweep(&c, NOW, kind, &busy);
	EXPECT(!busy);
	return asked;
}

/* Each kind of sweep asks about more. */
static void test_whom_a_sweep_asks_about(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *marked = engine_join(e), *alone = engine_join(e);
	struct actor *unmarked = engine_join(e), *alive = engine_join(e);
	uint32_t doubtful = 1u << alone->c.proc_ix | 1u << unmarked->c.proc_ix;

	engine_kill_thread(alone);
	EXPECT_INT(asked_by(g, SWEEP_MARKED), 1u << alone->c.proc_ix);
	/* Its only thread has been buried. */
	EXPECT_INT(asked_by(g, SWEEP_MARKED), 0);
	store_release(region_life(e->base, unmarked->c.thread_ix), 0);
	EXPECT_INT(asked_by(g, SWEEP_DOUBTFUL), doubtful);
	/* Nor if somebody waits for it. */
	(void)life_await(region_life(e->base, unmarked->c.thread_ix));
	EXPECT_INT(asked_by(g, SWEEP_DOUBTFUL), doubtful);
	engine_kill_thread(marked);
	EXPECT_INT(asked_by(g, SWEEP_DOUBTFUL), doubtful | 1u << marked->c.proc_ix);
	EXPECT_INT(asked_by(g, SWEEP_ALL),
		   doubtful | 1u << marked->c.proc_ix | 1u << alive->c.proc_ix);
}

static void test_sweep_counts_users(void **state)
{
	struct engine *e = *state;
	struct actor *g = engine_join(e), *a = engine_join(e), *b = engine_join(e);
	bool busy;

	EXPECT_INT(repair_sweep(&g->c, NOW, SWEEP_ALL, &busy), 2);
	actor_proc(a)->flags |= PROC_REAPER;
	EXPECT_INT(repair_sweep(&g->c, NOW, SWEEP_ALL, &busy), 1);
	engine_kill(b);
	EXPECT_INT(repair_sweep(&g->c, NOW, SWEEP_ALL, &busy), 0);
	EXPECT_INT(repair_sweep(&a->c, NOW, SWEEP_ALL, &busy), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_living_are_not_buried),
		TEST(test_one_thread_of_several),
		TEST(test_sleepers_leave),
		TEST(test_granted_and_killed),
		TEST(test_busy_is_tried_again),
		TEST(test_one_burier_at_a_time),
		TEST(test_claim_of_a_process),
		TEST(test_victim_of_a_dead_burier),
		TEST(test_chain_of_victims),
		TEST(test_purge_is_finished),
		TEST(test_purge_frees_once),
		TEST(test_exit_alone),
		TEST(test_exit_with_other_threads),
		TEST(test_slot_in_use_again),
		TEST(test_exit_buries_own_dead_threads),
		TEST(test_exit_with_a_chunk_in_hand),
		TEST(test_death_in_exit),
		TEST(test_whom_a_sweep_asks_about),
		TEST(test_sweep_counts_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
