// SPDX-License-Identifier: MIT
/*
 * Robust lock, and the claim on a dead thread's slot.
 *
 * The lock is one word and is never initialised: zero at birth and kept over reuse of the object,
 * so that a late comer with an old id may lock, see that the object is another, and unlock.
 * The right to repair is not the lock word (taking it over by CAS is ABA: with one death two
 * threads are inside) but a claim on the dead owner's slot, tagged with both generations.
 * Repair acts in the dead owner's name while the word still says so, and then releases it.
 *
 * A thread that sleeps on a lock is woken alone. It may then turn to something else (a handler
 * runs, another lock comes first): so the wake it received is a debt, named in `held` until it
 * takes the lock or passes the wake on. Recovery pays the debts of the dead.
 *
 *   REG_P1  claim of a dead thread
 *    word      thread_shm.claim (and proc_shm.claim), 64-bit
 *    states    gen odd, no claimer > gen odd, claimer c (> c' when c is dead) > gen + 1, no claimer
 *    writers   any live thread, by CAS from the value on which it judged the death. What it claims
 *              it says before in its own slot (repairs_link, victim_link, victim_proc_link), until
 *              it has given the claim up and counted that (claims_over)
 *    order     A of the claiming CAS pairs with R of the last claimer's; publishes its repairs. R
 *              of the CAS, of claims_over and of what it says pair with A of who doubts the claim
 *    stale-ok  none: without the generations a claimer steals from a live reuser of the slot
 *    death     claimer anywhere: the next one judges it dead, repairs the claimer's own lock first,
 *              then does the same repair again. What a dead claimer said of its claims does not
 *              count: its burial takes it away
 *    damage    a claimer that lives and does not say so: who finds that takes the claim over. If at
 *              this very moment the named one claims the slot indeed, both may act
 *    progress  lock-free; one claimer at a time acts
 *    tests     unit/rlock, unit/repair, fuzz/claimed, models/rlock.pml, models/claim.pml
 *
 *   RLOCK_P1  robust lock
 *    word      rlock_shm: 0 | owner | owner + W
 *    states    0 > owner > 0; W may be added while owned
 *    writers   0 > owner: the taker, CAS. owner > 0: the owner, or its claimer when it is dead
 *    order     A of the taking CAS pairs with R of the releasing exchange; publishes the object
 *    sleep     futex while owner + W; W is set before; who has slept takes it with W, so that
 *              nobody who sleeps is forgotten
 *    stale-ok  W set with nobody asleep: one spare wake. W never clear with a sleeper
 *    death     before the CAS: the wake passed on. Holding: repair, release, wake. After the
 *              exchange: wake. Woken and killed: wake passed on, since `held` names the debt
 *    damage    an owner that does not exist: ENOTRECOVERABLE. One that does not name the lock: who
 *              has waited in vain for some time releases it
 *    progress  the caller waits with nothing held; bounded by owners' sections, which touch no
 *              user memory
 *    tests     unit/rlock, models/rlock.pml
 */
#include "core/rlock.h"

#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/region.h"

/* A chain of claimers that died one after the other is followed this far (damage ends here). */
#define CLAIM_DEPTH 64

static rlock_shm *lock_at(const struct caller *c, uint64_t off)
{
	return (rlock_shm *)region_at(c->base, off);
}

/* Is off one of `count` locks that lie `stride` bytes apart, the first at `first`? */
static bool is_among(uint64_t off, uint64_t first, uint64_t stride, uint64_t count)
{
	return off >= first && (off - first) % stride == 0 && (off - first) / stride < count;
}

/* Is there a lock? The offset comes from the region, so it is not trusted. */
static bool is_lock_off(uint64_t off)
{
	const uint64_t arenas = offsetof(struct header_shm, arena), size = sizeof(struct arena_shm);

	return is_among(off, offsetof(struct header_shm, table) + offsetof(struct table_shm, lock),
			sizeof(struct table_shm), FAMILY_COUNT) ||
	       is_among(off, arenas + offsetof(struct arena_shm, lock), size, ARENA_COUNT) ||
	       (off >= arenas && (off - arenas) / size < ARENA_COUNT &&
		is_among((off - arenas) % size, offsetof(struct arena_shm, pool),
			 sizeof(struct pool_shm), ARENA_POOLS)) ||
	       is_among(off, PROCS_OFF + offsetof(struct proc_shm, undo_lock),
			sizeof(struct proc_shm), PROC_CAPACITY) ||
	       is_among(off, OBJECTS_OFF + offsetof(struct object_shm, lock), OBJECT_SLOT_BYTES,
			FAMILY_COUNT * OBJECTS_BYTES / OBJECT_SLOT_BYTES);
}

/*
 * Does the word stand for a thread that does not exist, so that it will never change? The slot's
 * claim is read on both sides of the word: with one and the same even generation nobody can have
 * had the slot meanwhile.
 */
bool rlock_is_orphan(const struct caller *c, uint32_t owner_ix, const uint32_t *word, uint32_t seen)
{
	struct thread_shm *t = region_thread(c->base, owner_ix);
	uint64_t claim = t ? load_acquire(&t->claim) : 0; /* REG_P1/A */

	if (CLAIM_GEN(claim) & 1)
		return false;
	return load_acquire(word) == seen &&             /* RLOCK_P1/A or SEM_W1/A */
	       (!t || load_acquire(&t->claim) == claim); /* REG_P1/A */
}

bool rlock_is_false(const struct caller *c, const struct busy *b)
{
	uint32_t owner_ix = b->owner_link - 1;
	const struct thread_shm *t = b->owner_link ? region_thread(c->base, owner_ix) : NULL;

	if (!t || load_acquire(lock_at(c, b->word_off)) != b->value) /* RLOCK_P1/A */
		return false;
	/* This thread waits for it: with nothing held. */
	if (owner_ix == c->thread_ix)
		return true;
	return load_relaxed(&t->held) != (uint32_t)b->word_off && /* a hint, see the header */
	       load_acquire(lock_at(c, b->word_off)) == b->value; /* RLOCK_P1/A */
}

void rlock_break(struct caller *c, const struct busy *b)
{
	rlock_shm *word = lock_at(c, b->word_off);
	uint32_t seen = b->value;

	if (cas(word, &seen, 0)) /* RLOCK_P1/R */
		futex_wake(word, INT_MAX);
}

int rlock_acquire(struct caller *c, uint64_t off)
{
	struct thread_shm *self = region_self(c);
	rlock_shm *word = lock_at(c, off);
	uint32_t me = c->thread_ix + 1;

	if (c->owed && c->owed != off)
		rlock_settle(c);
	if (self->held && !c->owed)
		return -EINTR;
	if (off >= GROUPS_OFF) /* no lock lies so high: by damage */
		return -ENOTRECOVERABLE;
	store_crash(&self->held, (uint32_t)off);
	for (;;) {
		uint32_t seen = load_relaxed(word); /* the CAS below decides */
		uint32_t owner = seen & RLOCK_OWNER;

		if (owner == 0) {
			uint32_t wait = c->owed == off ? RLOCK_W : 0;

			if (cas(word, &seen, me | (seen & RLOCK_W) | wait)) { /* RLOCK_P1/A */
				c->owed = 0;
				return OUTCOME_DONE;
			}
			continue;
		}
		if (c->ops->is_dead(c, owner - 1, false)) {
			rlock_recover(c, owner - 1, false);
			/* Unless another claimer is at it, the word has changed. */
			if ((load_relaxed(word) & RLOCK_OWNER) != owner) /* a hint, see above */
				continue;
		}
		c->busy = (struct busy){off, seen, owner, BUSY_LOCK};
		if (!c->owed)
			store_crash(&self->held, 0);
		return rlock_is_orphan(c, owner - 1, word, seen) ? -ENOTRECOVERABLE : OUTCOME_BUSY;
	}
}

void rlock_release(struct caller *c, uint64_t off)
{
	rlock_shm *word = lock_at(c, off);
	uint32_t old = exchange(word, 0); /* RLOCK_P1/R */

	if (old & RLOCK_W)
		futex_wake(word, 1);
	store_crash(&region_self(c)->held, 0);
}

void rlock_settle(struct caller *c)
{
	if (!c->owed)
		return;
	futex_wake(lock_at(c, c->owed), 1);
	c->owed = 0;
	store_crash(&region_self(c)->held, 0);
}

bool rlock_announce(struct caller *c)
{
	rlock_shm *word = lock_at(c, c->busy.word_off);
	uint32_t seen = c->busy.value;

	if (c->owed && c->owed != c->busy.word_off)
		rlock_settle(c);
	store_crash(&region_self(c)->held, (uint32_t)c->busy.word_off);
	c->owed = (uint32_t)c->busy.word_off;
	if (!(seen & RLOCK_W) &&
	    !cas(word, &seen, seen | RLOCK_W)) /* RLOCK_P1/R: before the sleep */
		return false;
	c->busy.value |= RLOCK_W;
	return true;
}

/* ---- The claim on a dead thread's slot --------------------------------------------------- */

void rlock_claim_begins(uint32_t *record, uint32_t link)
{
	store_crash(record, link); /* REG_P1/R: by the CAS */
}

/* Counted in between: who has seen the claim and then nothing said of it finds another number. */
void rlock_claim_ends(struct caller *c, uint32_t *record)
{
	struct thread_shm *self = region_self(c);

	/* relaxed: its own */
	store_crash(&self->claims_over, load_relaxed(&self->claims_over) + 1); /* REG_P1/R */
	store_crash(record, 0);                                                /* REG_P1/R */
}

bool rlock_is_false_claim(struct caller *c, const uint64_t *word, uint64_t seen, uint32_t link,
			  bool of_process)
{
	uint32_t claimer_ix = CLAIM_CLAIMER(seen) - 1;
	const struct thread_shm *t = region_thread(c->base, claimer_ix);
	uint64_t user = t ? load_acquire(&t->claim) : 0;         /* REG_P1/A */
	uint32_t before = t ? load_acquire(&t->claims_over) : 0; /* REG_P1/A */
	bool says_so;

	if (!t || (CLAIM_GEN(user) & 0xfffff) != CLAIM_CLAIMER_GEN(seen) ||
	    !(CLAIM_GEN(user) & 1) || load_acquire(word) != seen) /* REG_P1/A */
		return false;
	says_so = of_process ? load_acquire(&t->victim_proc_link) == link
			     : load_acquire(&t->repairs_link) == link ||      /* REG_P1/A */
				       load_acquire(&t->victim_link) == link; /* REG_P1/A */
	if (says_so || load_acquire(&t->claims_over) != before)               /* REG_P1/A */
		return false;
	/* A process slot that was freed keeps the word; the next who has it publishes another. */
	if (of_process &&
	    (load_acquire(&region_known_proc(c->base, link - 1)->state) != PROC_LIVE ||
	     load_acquire(word) != seen)) /* REG_P2/A, REG_P1/A */
		return false;
	/* Last: of the dead, burial has perhaps taken away what they said. */
	if (c->ops->is_dead(c, claimer_ix, true) ||
	    CLAIM_GEN(load_acquire(&t->claim)) != CLAIM_GEN(user)) /* REG_P1/A */
		return false;
	if (c->ops->note_damage)
		c->ops->note_damage(c);
	return true;
}

static void recover(struct caller *c, uint32_t dead_ix, bool patient, int depth);

static bool claim(struct caller *c, uint32_t dead_ix, uint32_t *record, bool patient, int depth)
{
	struct thread_shm *dead = region_thread(c->base, dead_ix);
	struct thread_shm *other;
	uint64_t seen, mine;
	uint32_t claimer;

	if (!dead || dead_ix == c->thread_ix || depth > CLAIM_DEPTH)
		return false;
	seen = load_acquire(&dead->claim); /* REG_P1/A */
	if (!(CLAIM_GEN(seen) & 1) || !c->ops->is_dead(c, dead_ix, patient))
		return false;
	claimer = CLAIM_CLAIMER(seen);
	other = claimer ? region_thread(c->base, claimer - 1) : NULL;
	if (other && other != region_self(c)) {
		uint32_t gen = CLAIM_GEN(load_acquire(&other->claim)); /* REG_P1/A */

		if ((gen & 0xfffff) == CLAIM_CLAIMER_GEN(seen) && (gen & 1)) {
			if (c->ops->is_dead(c, claimer - 1, patient))
				recover(c, claimer - 1, patient, depth + 1);
			else if (!rlock_is_false_claim(c, &dead->claim, seen, dead_ix + 1, false))
				return false;
		}
	}
	mine = CLAIM_WORD(CLAIM_GEN(seen), own_generation(&region_self(c)->claim) & 0xfffff,
			  c->thread_ix + 1);
	rlock_claim_begins(record, dead_ix + 1);
	if (cas(&dead->claim, &seen, mine)) /* REG_P1/AR */
		return true;
	rlock_claim_ends(c, record);
	return false;
}

/* The slot's generation moves on by `step`: 1 frees it. */
static void unclaim(struct caller *c, uint32_t dead_ix, uint32_t *record, uint32_t step)
{
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);

	store_release(&dead->claim,
		      CLAIM_WORD(own_generation(&dead->claim) + step, 0, 0)); /* REG_P1/R */
	rlock_claim_ends(c, record);
}

uint32_t rlock_claimer_link(const struct caller *c, uint32_t dead_ix)
{
	const struct thread_shm *dead = region_thread(c->base, dead_ix);
	uint32_t link = dead ? CLAIM_CLAIMER(load_acquire(&dead->claim)) : 0; /* REG_P1/A */

	return link == c->thread_ix + 1 ? 0 : link;
}

bool rlock_claim_dead(struct caller *c, uint32_t dead_ix, bool patient)
{
	return claim(c, dead_ix, &region_self(c)->victim_link, patient, 0);
}

void rlock_unclaim(struct caller *c, uint32_t dead_ix)
{
	unclaim(c, dead_ix, &region_self(c)->victim_link, 0);
}

void rlock_free_dead(struct caller *c, uint32_t dead_ix)
{
	unclaim(c, dead_ix, &region_self(c)->victim_link, 1);
}

static void recover(struct caller *c, uint32_t dead_ix, bool patient, int depth)
{
	uint32_t *record = &region_self(c)->repairs_link;
	struct thread_shm *dead;
	uint32_t off;

	if (!claim(c, dead_ix, record, patient, depth))
		return;
	dead = region_known_thread(c->base, dead_ix);
	off = dead->held;
	if (off && is_lock_off(off)) {
		rlock_shm *word = lock_at(c, off);

		if ((load_acquire(word) & RLOCK_OWNER) == dead_ix + 1) { /* RLOCK_P1/A */
			c->ops->repair(c, dead_ix, off);
			exchange(word, 0); /* RLOCK_P1/R */
		} else {
			c->ops->repair(c, dead_ix, 0);
		}
		futex_wake(word, 1);
	} else {
		c->ops->repair(c, dead_ix, 0);
	}
	store_crash(&dead->held, 0);
	unclaim(c, dead_ix, record, 0);
}

void rlock_recover(struct caller *c, uint32_t dead_ix, bool patient)
{
	recover(c, dead_ix, patient, 0);
}
