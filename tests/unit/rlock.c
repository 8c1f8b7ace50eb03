// SPDX-License-Identifier: MIT
/* The robust lock and the claim on a dead thread's slot: each step, and a death after each. */
#include "unit.h"

static struct {
	int count;
	uint32_t dead_ix;
	uint64_t lock_off;
} repaired;

static void note_repair(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	(void)c;
	repaired.count++;
	repaired.dead_ix = dead_ix;
	repaired.lock_off = lock_off;
}

static struct engine *noting(void **state)
{
	struct engine *e = *state;

	memset(&repaired, 0, sizeof(repaired));
	e->on_repair = note_repair;
	return e;
}

static void test_take_and_release(void **state)
{
	struct actor *a = engine_join(*state);
	uint64_t off = spare_lock();

	EXPECT_INT(rlock_acquire(&a->c, off), OUTCOME_DONE);
	EXPECT_INT(*lock_word(a, off), a->c.thread_ix + 1);
	EXPECT_INT(actor_slot(a)->held, off);
	rlock_release(&a->c, off);
	EXPECT_INT(*lock_word(a, off), 0);
	EXPECT_INT(actor_slot(a)->held, 0);
}

static void test_busy_says_what_to_wait_for(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	uint64_t off = spare_lock();

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT_INT(b->c.busy.kind, BUSY_LOCK);
	EXPECT_INT(b->c.busy.word_off, off);
	EXPECT_INT(b->c.busy.owner_link, a->c.thread_ix + 1);
	EXPECT_INT(b->c.busy.value, a->c.thread_ix + 1);
	EXPECT_INT(actor_slot(b)->held, 0);
	let_loose(a, off);
}

static void test_announce_makes_the_release_wake(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *b = engine_join(e);
	uint64_t off = spare_lock();
	uint32_t since = e->shared->wakes;

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT(rlock_announce(&b->c));
	EXPECT_INT(*lock_word(a, off), (a->c.thread_ix + 1) | RLOCK_W);
	EXPECT_INT(b->c.busy.value, (a->c.thread_ix + 1) | RLOCK_W);
	EXPECT_INT(actor_slot(b)->held, off);
	EXPECT(!engine_woken(e, off, since));
	let_loose(a, off);
	EXPECT(engine_woken(e, off, since));
	/* Who has slept takes it with W, for others may sleep on. */
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_DONE);
	EXPECT_INT(*lock_word(a, off), (b->c.thread_ix + 1) | RLOCK_W);
	EXPECT_INT(b->c.owed, 0);
	let_loose(b, off);
}

static void test_announce_sees_a_change(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	uint64_t off = spare_lock();

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	let_loose(a, off);
	EXPECT(!rlock_announce(&b->c));
	EXPECT_INT(*lock_word(a, off), 0);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_DONE);
	let_loose(b, off);
}

static void test_own_lock_is_eintr(void **state)
{
	struct actor *a = engine_join(*state);
	uint64_t off = spare_lock();

	seize(a, off);
	EXPECT_INT(rlock_acquire(&a->c, off), -EINTR);
	EXPECT_INT(rlock_acquire(&a->c, ids_table_lock(FAMILY_MSG)), -EINTR);
	EXPECT_INT(actor_slot(a)->held, off);
	let_loose(a, off);
}

/* Deaths. In each the dead thread's slot looks as it does after that many steps. */

static void recover_by(struct actor *by, struct actor *dead, uint64_t off, uint64_t repaired_off)
{
	uint32_t since = by->e->shared->wakes;

	rlock_recover(&by->c, dead->c.thread_ix, false);
	EXPECT_INT(repaired.count, 1);
	EXPECT_INT(repaired.dead_ix, dead->c.thread_ix);
	EXPECT_INT(repaired.lock_off, repaired_off);
	EXPECT(engine_woken(by->e, off, since));
	EXPECT_INT(actor_slot(dead)->held, 0);
	EXPECT_INT(CLAIM_CLAIMER(actor_slot(dead)->claim), 0);
	EXPECT_INT(CLAIM_GEN(actor_slot(dead)->claim) & 1, 1);
}

static void test_death_before_the_cas(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *a = engine_join(e);

	actor_slot(d)->held = (uint32_t)spare_lock();
	engine_kill_thread(d);
	recover_by(a, d, spare_lock(), 0);
	EXPECT_INT(*lock_word(a, spare_lock()), 0);
}

static void test_death_while_holding(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *a = engine_join(e);

	seize(d, spare_lock());
	engine_kill_thread(d);
	recover_by(a, d, spare_lock(), spare_lock());
	EXPECT_INT(*lock_word(a, spare_lock()), 0);
}

static void test_death_after_the_exchange(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);

	/* Somebody else has it by now: not the dead one's to repair or to release. */
	actor_slot(d)->held = (uint32_t)spare_lock();
	seize(b, spare_lock());
	engine_kill_thread(d);
	recover_by(a, d, spare_lock(), 0);
	EXPECT_INT(*lock_word(a, spare_lock()) & RLOCK_OWNER, b->c.thread_ix + 1);
	let_loose(b, spare_lock());
}

static void test_taker_repairs_on_the_way(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *a = engine_join(e);

	seize(d, spare_lock());
	engine_kill_thread(d);
	EXPECT_INT(rlock_acquire(&a->c, spare_lock()), OUTCOME_DONE);
	EXPECT_INT(repaired.count, 1);
	EXPECT_INT(repaired.lock_off, spare_lock());
	let_loose(a, spare_lock());
}

static void test_the_living_are_left_alone(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *a = engine_join(e);

	seize(d, spare_lock());
	rlock_recover(&a->c, d->c.thread_ix, true);
	EXPECT_INT(repaired.count, 0);
	EXPECT_INT(*lock_word(a, spare_lock()), d->c.thread_ix + 1);
	let_loose(d, spare_lock());
}

/* A wake that was received and not used is passed on. */

static void test_debt_paid_by_who_turns_away(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *b = engine_join(e);
	uint64_t off = spare_lock(), other = ids_table_lock(FAMILY_MSG);
	uint32_t since;

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT(rlock_announce(&b->c));
	let_loose(a, off);
	since = e->shared->wakes;
	EXPECT_INT(rlock_acquire(&b->c, other), OUTCOME_DONE);
	EXPECT(engine_woken(e, off, since));
	EXPECT_INT(actor_slot(b)->held, other);
	let_loose(b, other);
}

static void test_debt_paid_by_settling(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *b = engine_join(e);
	uint64_t off = spare_lock();
	uint32_t since;

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT(rlock_announce(&b->c));
	let_loose(a, off);
	since = e->shared->wakes;
	rlock_settle(&b->c);
	EXPECT(engine_woken(e, off, since));
	EXPECT_INT(actor_slot(b)->held, 0);
	EXPECT_INT(b->c.owed, 0);
}

static void test_debt_paid_by_recovery(void **state)
{
	struct engine *e = noting(state);
	struct actor *a = engine_join(e), *b = engine_join(e);
	uint64_t off = spare_lock();

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT(rlock_announce(&b->c));
	let_loose(a, off);
	engine_kill_thread(b);
	recover_by(a, b, off, 0);
}

static void test_debt_survives_busy(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	uint64_t off = spare_lock();

	seize(a, off);
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT(rlock_announce(&b->c));
	EXPECT_INT(rlock_acquire(&b->c, off), OUTCOME_BUSY);
	EXPECT_INT(actor_slot(b)->held, off);
	EXPECT_INT(b->c.owed, off);
	let_loose(a, off);
	rlock_settle(&b->c);
}

/* Claims. */

static void claim_for(struct actor *dead, struct actor *claimer)
{
	uint64_t *claim = &actor_slot(dead)->claim;

	*claim = CLAIM_WORD(CLAIM_GEN(*claim), CLAIM_GEN(actor_slot(claimer)->claim) & 0xfffff,
			    claimer->c.thread_ix + 1);
}

static void test_claim_of_a_live_claimer_stands(void **state)
{
	struct actor *d = engine_join(*state), *b = engine_join(*state), *a = engine_join(*state);

	engine_kill_thread(d);
	EXPECT(rlock_claim_dead(&b->c, d->c.thread_ix, true));
	EXPECT(!rlock_claim_dead(&a->c, d->c.thread_ix, true));
	EXPECT(rlock_claim_dead(&b->c, d->c.thread_ix, true)); /* its own, again */
	rlock_unclaim(&b->c, d->c.thread_ix);
	EXPECT(rlock_claim_dead(&a->c, d->c.thread_ix, true));
	rlock_unclaim(&a->c, d->c.thread_ix);
	EXPECT_INT(actor_slot(a)->victim_link, 0);
	EXPECT_INT(actor_slot(b)->victim_link, 0);
}

static struct {
	struct actor *other, *dead;
	int noted;
} doubt;

static void note_damage(struct caller *c)
{
	(void)c;
	doubt.noted++;
}

static bool is_doubts_dead(struct caller *c, uint32_t thread_ix, bool patient)
{
	(void)c, (void)patient;
	return thread_ix == doubt.dead->c.thread_ix;
}

static const struct caller_ops *doubting(struct actor *a, struct caller_ops *ops)
{
	const struct caller_ops *usual = a->c.ops;

	*ops = *usual;
	ops->is_dead = is_doubts_dead;
	ops->note_damage = note_damage;
	a->c.ops = ops;
	return usual;
}

/* A claim that names a thread which lives and does something else, or claims another. */
static void test_false_claim_is_taken_over(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);
	struct caller_ops ops;
	const struct caller_ops *usual = doubting(a, &ops);

	doubt.dead = d;
	doubt.noted = 0;
	seize(d, spare_lock());
	engine_kill_thread(d);
	claim_for(d, b); /* damage */
	actor_slot(b)->victim_link = a->c.thread_ix + 1;
	EXPECT_INT(rlock_acquire(&a->c, spare_lock()), OUTCOME_DONE);
	EXPECT_INT(repaired.dead_ix, d->c.thread_ix);
	EXPECT_INT(repaired.lock_off, spare_lock());
	EXPECT_INT(doubt.noted, 1);
	EXPECT_INT(CLAIM_CLAIMER(actor_slot(d)->claim), 0);
	EXPECT_INT(actor_slot(a)->repairs_link, 0);
	let_loose(a, spare_lock());
	actor_slot(b)->victim_link = 0;
	a->c.ops = usual;
}

static bool is_dead_for_the_patient(struct caller *c, uint32_t thread_ix, bool patient)
{
	return is_doubts_dead(c, thread_ix, patient) ||
	       (patient && thread_ix == doubt.other->c.thread_ix);
}

/* What a claimer said goes with its burial. Who has just found it alive does not call that
 * damage. */
static void test_claimer_dies_while_it_is_doubted(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);
	struct caller_ops ops;
	const struct caller_ops *usual = doubting(a, &ops);

	doubt.dead = d;
	doubt.other = b;
	doubt.noted = 0;
	ops.is_dead = is_dead_for_the_patient;
	engine_kill_thread(d);
	claim_for(d, b);
	EXPECT(!rlock_claim_dead(&a->c, d->c.thread_ix, false));
	EXPECT_INT(doubt.noted, 0);
	EXPECT(rlock_claim_dead(&a->c, d->c.thread_ix, true));
	EXPECT_INT(doubt.noted, 0);
	rlock_unclaim(&a->c, d->c.thread_ix);
	a->c.ops = usual;
}

/* Of each kind of claim, stopped in the middle, the owner is waited for. */
static void test_true_claims_are_never_doubted(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);
	struct caller_ops ops;
	const struct caller_ops *usual = doubting(a, &ops);

	doubt.dead = d;
	doubt.noted = 0;
	seize(d, spare_lock());
	engine_kill_thread(d);
	claim_for(d, b);
	actor_slot(b)->repairs_link = d->c.thread_ix + 1;
	EXPECT_INT(rlock_acquire(&a->c, spare_lock()), OUTCOME_BUSY);
	actor_slot(b)->repairs_link = 0;
	actor_slot(b)->victim_link = d->c.thread_ix + 1;
	EXPECT_INT(rlock_acquire(&a->c, spare_lock()), OUTCOME_BUSY);
	EXPECT_INT(repaired.count, 0);
	EXPECT_INT(doubt.noted, 0);
	actor_slot(b)->victim_link = 0;
	EXPECT_INT(rlock_acquire(&a->c, spare_lock()), OUTCOME_DONE);
	let_loose(a, spare_lock());
	a->c.ops = usual;
}

static void note_claim(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	note_repair(c, dead_ix, lock_off);
	/* Whoever is at it says so: nobody takes it for damage meanwhile. */
	EXPECT_INT(region_self(c)->repairs_link, dead_ix + 1);
	EXPECT_INT(rlock_acquire(&doubt.other->c, spare_lock()), OUTCOME_BUSY);
	EXPECT_INT(repaired.count, 1);
}

static void test_who_repairs_says_so(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *a = engine_join(e);

	doubt.other = engine_join(e);
	e->on_repair = note_claim;
	seize(d, spare_lock());
	engine_kill_thread(d);
	EXPECT_INT(rlock_acquire(&a->c, spare_lock()), OUTCOME_DONE);
	EXPECT_INT(repaired.count, 1);
	let_loose(a, spare_lock());
	EXPECT_INT(actor_slot(a)->claims_over, 1);
}

static void test_dead_claimer_is_recovered_first(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);

	engine_kill_thread(d);
	seize(b, spare_lock());
	claim_for(d, b);
	engine_kill_thread(b);
	EXPECT(rlock_claim_dead(&a->c, d->c.thread_ix, false));
	EXPECT_INT(repaired.count, 1);
	EXPECT_INT(repaired.dead_ix, b->c.thread_ix);
	EXPECT_INT(*lock_word(a, spare_lock()), 0);
	rlock_unclaim(&a->c, d->c.thread_ix);
}

static void test_claim_of_a_former_user_of_the_slot_is_void(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);
	struct caller_ops ops;
	const struct caller_ops *usual;
	struct actor *b2;

	engine_kill_thread(d);
	claim_for(d, b);
	engine_kill(b);
	engine_bury(a, b);
	b2 = engine_join(e);
	EXPECT_INT(b2->c.thread_ix, b->c.thread_ix);
	usual = doubting(a, &ops);
	doubt.dead = d;
	doubt.noted = 0;
	EXPECT(rlock_claim_dead(&a->c, d->c.thread_ix, false));
	EXPECT_INT(doubt.noted, 0); /* it is no damage */
	rlock_unclaim(&a->c, d->c.thread_ix);
	a->c.ops = usual;
}

static void test_free_slot_is_nobodys_to_claim(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join(e);

	engine_kill(d);
	engine_bury(a, d);
	EXPECT(!rlock_claim_dead(&a->c, d->c.thread_ix, true));
	EXPECT(!rlock_claim_dead(&a->c, a->c.thread_ix, true));
	EXPECT(!rlock_claim_dead(&a->c, 4000, true));
}

static struct {
	struct actor *dead, *gravedigger, *reuser;
} meanwhile;

/* The judgement is right, but before anything is done about it somebody buries the dead thread and
 * a new one gets its slot. */
static bool dead_then_reused(struct caller *c, uint32_t thread_ix, bool patient)
{
	(void)c, (void)patient;
	EXPECT_INT(thread_ix, meanwhile.dead->c.thread_ix);
	engine_bury(meanwhile.gravedigger, meanwhile.dead);
	meanwhile.reuser = engine_join(meanwhile.dead->e);
	EXPECT_INT(meanwhile.reuser->c.thread_ix, thread_ix);
	return true;
}

static void test_claim_is_on_the_value_judged(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *b = engine_join(e), *a = engine_join(e);
	struct caller_ops ops = *a->c.ops;
	const struct caller_ops *usual = a->c.ops;

	engine_kill(d);
	meanwhile.dead = d;
	meanwhile.gravedigger = b;
	ops.is_dead = dead_then_reused;
	a->c.ops = &ops;
	EXPECT(!rlock_claim_dead(&a->c, d->c.thread_ix, false));
	EXPECT_INT(CLAIM_CLAIMER(actor_slot(meanwhile.reuser)->claim), 0);
	a->c.ops = usual;
}

static void test_chain_of_dead_claimers(void **state)
{
	struct engine *e = noting(state);
	struct actor *a = engine_join(e), *d[10];

	for (int i = 0; i < 10; i++) {
		d[i] = engine_join(e);
		if (i)
			claim_for(d[i - 1], d[i]);
	}
	for (int i = 0; i < 10; i++)
		engine_kill_thread(d[i]);
	rlock_recover(&a->c, d[0]->c.thread_ix, false);
	EXPECT_INT(repaired.count, 10);
	EXPECT_INT(repaired.dead_ix, d[0]->c.thread_ix); /* last: its claimers come first */
	for (int i = 0; i < 10; i++)
		EXPECT_INT(CLAIM_CLAIMER(actor_slot(d[i])->claim), 0);
}

static void test_ring_of_dead_claimers_ends(void **state)
{
	struct engine *e = noting(state);
	struct actor *a = engine_join(e), *d = engine_join(e), *b = engine_join(e);

	claim_for(d, b); /* damage: no order of events leads here */
	claim_for(b, d);
	engine_kill_thread(d);
	engine_kill_thread(b);
	rlock_recover(&a->c, d->c.thread_ix, false);
	rlock_recover(&a->c, b->c.thread_ix, false);
}

static void test_held_from_a_damaged_slot(void **state)
{
	struct engine *e = noting(state);
	struct actor *d = engine_join(e), *a = engine_join(e);

	actor_slot(d)->held = (uint32_t)ARENAS_OFF - 4; /* no lock lies there */
	engine_kill_thread(d);
	rlock_recover(&a->c, d->c.thread_ix, false);
	EXPECT_INT(repaired.count, 1);
	EXPECT_INT(repaired.lock_off, 0);
	EXPECT_INT(actor_slot(d)->held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_take_and_release),
		TEST(test_busy_says_what_to_wait_for),
		TEST(test_announce_makes_the_release_wake),
		TEST(test_announce_sees_a_change),
		TEST(test_own_lock_is_eintr),
		TEST(test_death_before_the_cas),
		TEST(test_death_while_holding),
		TEST(test_death_after_the_exchange),
		TEST(test_taker_repairs_on_the_way),
		TEST(test_the_living_are_left_alone),
		TEST(test_debt_paid_by_who_turns_away),
		TEST(test_debt_paid_by_settling),
		TEST(test_debt_paid_by_recovery),
		TEST(test_debt_survives_busy),
		TEST(test_claim_of_a_live_claimer_stands),
		TEST(test_false_claim_is_taken_over),
		TEST(test_claimer_dies_while_it_is_doubted),
		TEST(test_true_claims_are_never_doubted),
		TEST(test_who_repairs_says_so),
		TEST(test_dead_claimer_is_recovered_first),
		TEST(test_claim_of_a_former_user_of_the_slot_is_void),
		TEST(test_free_slot_is_nobodys_to_claim),
		TEST(test_claim_is_on_the_value_judged),
		TEST(test_chain_of_dead_claimers),
		TEST(test_ring_of_dead_claimers_ends),
		TEST(test_held_from_a_damaged_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
