// SPDX-License-Identifier: MIT
/* The semaphore word without the set's lock: plain operations, held words, and deaths of holders.
 */
#include "unit.h"

#include "ipc/sem_priv.h"

static uint32_t gen_of(struct actor *a, int32_t id)
{
	return set_of(a, id)->object.gen;
}

static uint64_t word_of(struct actor *a, int32_t id, uint32_t num)
{
	return load_acquire(&sem_of(a, id, num)->word);
}

static void expect_free(struct actor *a, int32_t id, uint32_t num, int value, uint32_t pid)
{
	uint64_t expected = SEM_WORD(value, gen_of(a, id), pid);

	EXPECT_INT(word_of(a, id, num), expected);
}

/* ---- Plain operations --------------------------------------------------------------------- */

static void test_plain(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(a, 2, (int[]){0, 0});

	EXPECT_INT(sem_of(a, id, 0)->otime, 0);
	EXPECT_INT(engine_try_op(a, id, 0, 3, 0), OUTCOME_DONE);
	expect_free(a, id, 0, 3, a->c.pid);
	EXPECT_INT(sem_of(a, id, 0)->otime, NOW); /* before the call returned */
	EXPECT_INT(sem_of(a, id, 1)->otime, 0);
	EXPECT_INT(engine_try_op(b, id, 0, -3, 0), OUTCOME_DONE);
	expect_free(a, id, 0, 0, b->c.pid);
	EXPECT_INT(engine_try_op(a, id, 0, 0, 0), OUTCOME_DONE);
	expect_free(a, id, 0, 0, a->c.pid);
	EXPECT_INT(engine_try_op(a, id, 0, -1, OP_NOWAIT), -EAGAIN);
	EXPECT_INT(engine_try_op(a, id, 0, 32767, 0), OUTCOME_DONE);
	EXPECT_INT(engine_try_op(b, id, 0, 1, 0), -ERANGE);
	EXPECT_INT(engine_try_op(b, id, 0, 0, OP_NOWAIT), -EAGAIN);
	expect_free(a, id, 0, 32767, a->c.pid); /* who failed leaves no trace */
	EXPECT_INT(engine_try_op(a, id, 2, 1, 0), -EFBIG);
	EXPECT_INT(engine_try_op(a, id + 32768, 0, 1, 0), -EINVAL);
}

static void test_may_not_queue(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_set(a, 1, (int[]){2});
	struct semop_shm op = {0, -5, 0}, undo = {0, -5, OP_UNDO};
	struct sem_request rq = {.id = id, .ops = &op, .nsops = 1, .now = NOW};

	EXPECT_INT(sem_op(&a->c, &rq), OUTCOME_BUSY);
	EXPECT_INT(a->c.busy.kind, BUSY_VALUE);
	EXPECT_INT(a->c.busy.value, 2);
	EXPECT_INT(a->c.busy.word_off, region_off(a->e->base, sem_of(a, id, 0)));
	rq.ops = &undo; /* through the held path */
	EXPECT_INT(sem_op(&a->c, &rq), OUTCOME_BUSY);
	EXPECT_INT(a->c.busy.kind, BUSY_VALUE);
	EXPECT_INT(a->c.busy.value, 2);
	EXPECT(!(word_of(a, id, 0) & (SEM_HELD | SEM_SLOW)));
	EXPECT_INT(actor_state(a), WAIT_FREE);
}

/* ---- Several operations, held ------------------------------------------------------------- */

static void test_several_at_once(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_set(a, 6, (int[]){1, 2, 3, 4, 5, 6});
	struct semop_shm ok[] = {{4, -5, 0}, {4, 0, 0}, {4, 2, 0}, {0, 1, 0}, {2, -3, 0}};
	struct semop_shm block[] = {{0, 1, 0}, {1, 3, 0}, {2, -1, OP_NOWAIT}};
	struct semop_shm range[] = {{0, 32767, 0}, {1, 1, 0}};
	struct semop_shm many[] = {{0, 1, 0}, {1, 1, 0}, {2, 1, 0},
				   {3, 1, 0}, {4, 1, 0}, {5, 1, 0}};

	EXPECT_INT(engine_try(a, id, ok, 5), OUTCOME_DONE);
	expect_free(a, id, 4, 2, a->c.pid);
	expect_free(a, id, 0, 2, a->c.pid);
	expect_free(a, id, 2, 0, a->c.pid);
	EXPECT_INT(sem_of(a, id, 4)->otime, NOW); /* the first operation's semaphore has the time */
	EXPECT_INT(sem_of(a, id, 0)->otime, 0);
	EXPECT_INT(engine_try(a, id, block, 3), -EAGAIN);
	EXPECT_INT(engine_try(a, id, range, 2), -ERANGE);
	EXPECT_INT(value_of(a, id, 0), 2);
	EXPECT_INT(value_of(a, id, 1), 2);
	EXPECT_INT(actor_slot(a)->hold, 0);
	/* More than can be held: under the set's lock. */
	EXPECT_INT(engine_try(a, id, many, 6), OUTCOME_DONE);
	expect_free(a, id, 5, 7, a->c.pid);
	expect_free(a, id, 0, 3, a->c.pid);
}

static void test_undo_moves_with_the_value(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_set(a, 2, (int[]){5, 0});
	struct semop_shm two[] = {{0, -1, OP_UNDO}, {1, 4, OP_UNDO}};

	EXPECT_INT(engine_op(a, id, 0, -2, OP_UNDO), 0);
	EXPECT_INT(semadj_of(a, id, 0), 2);
	EXPECT_INT(engine_op(a, id, 0, -2, 0), 0);
	EXPECT_INT(semadj_of(a, id, 0), 2);
	EXPECT_INT(engine_try(a, id, two, 2), OUTCOME_DONE);
	EXPECT_INT(semadj_of(a, id, 0), 3);
	EXPECT_INT(semadj_of(a, id, 1), -4);
	EXPECT_INT(engine_op(a, id, 1, 32763, OP_UNDO), 0);
	EXPECT_INT(semadj_of(a, id, 1), -32767);
	EXPECT_INT(engine_op(a, id, 1, -10, 0), 0);
	EXPECT_INT(engine_op(a, id, 1, 1, OP_UNDO), 0);
	EXPECT_INT(semadj_of(a, id, 1), -32768);
	EXPECT_INT(engine_op(a, id, 1, 1, OP_UNDO), -ERANGE);
	EXPECT_INT(semadj_of(a, id, 1), -32768);
	EXPECT_INT(value_of(a, id, 1), 32758);
}

/* ---- A word in another's hand ------------------------------------------------------------- */

/* The actor holds the word as if stopped in the middle, k operations committed or not. */
static void hold(struct actor *a, int32_t id, uint32_t num, int new_value, bool committed)
{
	struct thread_shm *self = actor_slot(a);
	struct sem_shm *s = sem_of(a, id, num);
	uint32_t k = HOLD_COUNT(self->hold);
	struct hold_shm *e = &self->ent[k];

	e->cell = (uint32_t)((region_off(a->e->base, s) - ARENAS_OFF - ARENA_SEM * ARENA_BYTES) /
			     SEM_CELL_BYTES);
	e->old_word = s->word;
	e->new_word = SEM_WORD(new_value, gen_of(a, id), a->c.pid);
	e->otime = NOW + 1;
	e->undo_ref = set_of(a, id)->undo_ref;
	e->undo_ix = (uint16_t)num;
	e->adj = 9;
	self->hold = (k + 1) | (committed ? HOLD_COMMITTED : 0);
	s->word = SEM_WORD(SEM_WORD_VALUE(s->word), gen_of(a, id), a->c.thread_ix) | SEM_HELD;
}

static void test_held_is_busy(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(a, 2, (int[]){5, 5});
	struct semop_shm two[] = {{0, -1, 0}, {1, -1, 0}};
	uint64_t half = region_off(a->e->base, sem_of(a, id, 1)), old;
	uint32_t since = a->e->shared->wakes;
	uint16_t values[2];
	int32_t value;

	hold(a, id, 1, 6, false);
	old = word_of(a, id, 1);
	EXPECT_INT(engine_try_op(b, id, 1, 1, 0), OUTCOME_BUSY);
	EXPECT_INT(b->c.busy.kind, BUSY_WORD);
	EXPECT_INT(b->c.busy.owner_link, a->c.thread_ix + 1);
	EXPECT_INT(b->c.busy.word_off, half);
	EXPECT_INT(engine_try(b, id, two, 2), OUTCOME_BUSY);
	EXPECT_INT(b->c.busy.kind, BUSY_WORD);
	EXPECT_INT(actor_slot(b)->hold, 0); /* with nothing held */
	EXPECT_INT(word_of(b, id, 0) & SEM_HELD, 0);
	EXPECT_INT(sem_get_one(&b->c, id, 1, SEM_GET_VALUE, &value), OUTCOME_BUSY);
	EXPECT_INT(word_of(b, id, 1), old);
	EXPECT_INT(sem_get_all(&b->c, id, values), OUTCOME_BUSY);
	EXPECT_INT(word_of(b, id, 1), old | SEM_SLOW); /* asked for: the release keeps it */
	EXPECT_INT(engine_try_op(b, id, 1, 1, 0), OUTCOME_BUSY);
	EXPECT(sem_announce(&b->c));
	EXPECT_INT(word_of(b, id, 1), old | SEM_SLOW | SEM_CONT);
	sem_recover_holds(&a->c, a->c.thread_ix); /* releases, as the holder does */
	EXPECT(engine_woken(a->e, half, since));
	EXPECT_INT(word_of(b, id, 1), SEM_WORD(5, gen_of(a, id), a->c.pid) | SEM_SLOW);
	EXPECT(b->c.busy.value != (uint32_t)word_of(b, id, 1)); /* nothing to wait for any more */
	EXPECT_INT(engine_try_op(b, id, 1, 1, 0), OUTCOME_DONE);
	expect_free(b, id, 1, 6, b->c.pid); /* the next one through the lock settles it */
}

static void test_own_hold_is_eintr(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_set(a, 2, (int[]){5, 5});
	uint16_t values[2] = {1, 1};
	int32_t value;

	hold(a, id, 0, 6, false);
	EXPECT_INT(engine_try_op(a, id, 0, 1, 0), -EINTR);
	EXPECT_INT(engine_try_op(a, id, 0, 1, OP_UNDO), -EINTR);
	EXPECT_INT(sem_get_one(&a->c, id, 0, SEM_GET_VALUE, &value), -EINTR);
	EXPECT_INT(sem_set_one(&a->c, id, 0, 1, NOW), -EINTR);
	EXPECT_INT(actor_slot(a)->hold, 1);
	EXPECT_INT(actor_slot(a)->held, 0);
	sem_recover_holds(&a->c, a->c.thread_ix);
	EXPECT_INT(engine_setall(a, id, values), 0);
	expect_free(a, id, 0, 1, a->c.pid);
}

/* ---- Deaths of holders -------------------------------------------------------------------- */

static void test_death_before_the_commit(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *d = engine_join(e);
	int32_t id = new_set(a, 3, (int[]){5, 6, 7});
	uint64_t before[2];

	EXPECT_INT(engine_op(d, id, 2, -1, OP_UNDO), 0);
	before[0] = word_of(a, id, 0);
	before[1] = word_of(a, id, 1);
	hold(d, id, 0, 50, false);
	hold(d, id, 1, 60, false);
	engine_kill_thread(d);
	EXPECT_INT(engine_try_op(a, id, 1, 1, 0), OUTCOME_DONE); /* settled on the way */
	EXPECT_INT(word_of(a, id, 0), before[0]);
	expect_free(a, id, 1, 7, a->c.pid);
	EXPECT_INT(actor_slot(d)->hold, 0);
	EXPECT_INT(semadj_of(d, id, 0), 0);
	EXPECT_INT(sem_of(a, id, 0)->otime, 0);
}

static void test_death_after_the_commit(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *d = engine_join(e);
	int32_t id = new_set(a, 3, (int[]){5, 6, 7});

	EXPECT_INT(engine_op(d, id, 2, -1, OP_UNDO), 0); /* so that it has a record */
	hold(d, id, 0, 50, false);
	hold(d, id, 1, 60, true);
	engine_kill_thread(d);
	EXPECT_INT(engine_getval(a, id, 0), 50);
	expect_free(a, id, 0, 50, d->c.pid);
	expect_free(a, id, 1, 60, d->c.pid);
	EXPECT_INT(semadj_of(d, id, 0), 9);
	EXPECT_INT(semadj_of(d, id, 1), 9);
	EXPECT_INT(sem_of(a, id, 0)->otime, NOW + 1);
	EXPECT_INT(actor_slot(d)->hold, 0);
}

/* One word was out already, and others have gone on with it. */
static void test_death_with_one_word_out(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *d = engine_join(e);
	int32_t id = new_set(a, 3, (int[]){5, 6, 7});

	EXPECT_INT(engine_op(d, id, 2, -1, OP_UNDO), 0);
	hold(d, id, 0, 50, false);
	hold(d, id, 1, 60, true);
	sem_of(a, id, 0)->word = SEM_WORD(50, gen_of(a, id), d->c.pid); /* released by d */
	EXPECT_INT(engine_try_op(a, id, 0, -8, 0), OUTCOME_DONE);
	engine_kill_thread(d);
	EXPECT_INT(engine_getval(a, id, 1), 60);
	expect_free(a, id, 0, 42, a->c.pid);
	EXPECT_INT(semadj_of(d, id, 0), 0); /* its semadj was d's before it was out, not after */
	EXPECT_INT(semadj_of(d, id, 1), 9);
}

/* Entered in the record, but another was faster with the CAS. */
static void test_death_before_the_cas(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *b = engine_join(e), *d = engine_join(e);
	int32_t id = new_set(a, 1, (int[]){5});

	hold(d, id, 0, 50, false);
	sem_of(a, id, 0)->word = SEM_WORD(5, gen_of(a, id), a->c.pid);
	hold(b, id, 0, 70, false);
	engine_kill_thread(d);
	rlock_recover(&a->c, d->c.thread_ix, false);
	EXPECT_INT(word_of(a, id, 0) & SEM_HELD, SEM_HELD); /* b's still */
	sem_recover_holds(&b->c, b->c.thread_ix);
	expect_free(a, id, 0, 5, a->c.pid);
}

/* A record that points outside is not followed. */
static void test_damaged_hold(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *d = engine_join(e);
	int32_t id = new_set(a, 1, (int[]){5});

	actor_slot(d)->hold = 7 | HOLD_COMMITTED;
	for (int k = 0; k < HOLD_MAX; k++)
		actor_slot(d)->ent[k] = (struct hold_shm){.cell = ~0u, .undo_ref = ~0u};
	engine_kill_thread(d);
	rlock_recover(&a->c, d->c.thread_ix, false);
	EXPECT_INT(actor_slot(d)->hold, 0);
	expect_free(a, id, 0, 5, a->c.pid);
}

/* ---- Generations -------------------------------------------------------------------------- */

static void test_stale_view(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_set(a, 1, (int[]){0}), next;
	struct semop_shm op = {0, 1, 0};
	struct sem_request rq = {.ops = &op, .nsops = 1, .now = NOW, .may_queue = true};
	struct sem_view v;
	uint64_t word;

	EXPECT_INT(sem_view_id(&b->c, id, &v), 0);
	EXPECT_INT(engine_rmid(a, id), 0);
	next = new_set(a, 1, (int[]){0});
	/* The same storage, the same value and pid; only the generation tells. */
	EXPECT(view_word(&v, 0) == sem_of(a, next, 0));
	word = word_of(a, next, 0);
	EXPECT_INT(sem_plain(&b->c, &v, &rq), -EIDRM);
	EXPECT_INT(sem_held(&b->c, &v, &rq, 0), -EIDRM);
	EXPECT(sem_view_stale(&v));
	EXPECT_INT(word_of(a, next, 0), word);
	EXPECT_INT(actor_slot(b)->hold, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_plain),
		TEST(test_may_not_queue),
		TEST(test_several_at_once),
		TEST(test_undo_moves_with_the_value),
		TEST(test_held_is_busy),
		TEST(test_own_hold_is_eintr),
		TEST(test_death_before_the_commit),
		TEST(test_death_after_the_commit),
		TEST(test_death_with_one_word_out),
		TEST(test_death_before_the_cas),
		TEST(test_damaged_hold),
		TEST(test_stale_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
