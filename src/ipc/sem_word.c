// SPDX-License-Identifier: MIT
/*
 * The semaphore word: the paths that need no set lock.
 *
 * A word is at any moment in one of three hands. FREE: anybody, one CAS is the whole plain
 * operation: value, sempid and generation move together. HELD: one thread, for a few hundred
 * instructions, when SEM_UNDO, several semaphores or a new second in otime make one word too small
 * for the change. SLOW: the owner of the set's lock, because somebody waits. Nobody waits with
 * anything held: what is busy is given back, and the call starts over.
 *
 *   SEM_W1  semaphore word
 *    word      sem_shm.word, 64-bit
 *    states    FREE > HELD > FREE or SLOW; FREE > SLOW > FREE; HELD > HELD + SLOW, HELD + CONT
 *    writers   FREE: anybody, CAS. HELD: the holder, CAS (others may add SLOW and CONT). SLOW: the
 *              owner of the set's lock
 *    order     R of every CAS and release pairs with A of the loads here; publishes value, semadj
 *              and otime
 *    sleep     client, on the low half, while HELD; CONT is set before, by CAS; a release that
 *              loses its CAS to that wakes all
 *    stale-ok  SLOW may be set with nobody waiting, never clear with one. CONT may be stale
 *    death     FREE: none. HELD: SEM_H1. SLOW: SEM_L1
 *    damage    HELD by a thread that does not name the word: who has waited in vain for some time
 *              sets it free
 *    progress  plain: lock-free while FREE. Held: bounded. A stopped holder blocks its words
 *    tests     unit/sem-word, conform/sem, models/sem.pml
 *
 *   SEM_H1  hold record
 *    word      thread_shm.hold {n, COMMITTED}
 *    states    0 > n > {n, COMMITTED} > 0
 *    writers   the thread; after its death whoever has claimed its slot
 *    order     program order; R of the release of a word pairs with A of SEM_W1
 *    stale-ok  an entry whose word is not HELD by this thread: not yet, or already out
 *    death     n entries, not COMMITTED: words that it holds go back to old. COMMITTED: each word
 *              still held goes forward, its semadj first; a word already out is left alone, also
 *              its semadj, which may be another's by now
 *    progress  bounded
 *    tests     unit/sem-word, models/sem.pml
 *
 *   SEM_G1  generation
 *    word      sem_shm.word (24 bits), object_shm.gen, object_shm.live
 *    states    gen 0 > n > 0 > m, n and m from one counter of the family
 *    writers   creation, before the set is published; removal, with every word claimed
 *    order     R of ids_publish_locked pairs with A of sem_view_id
 *    stale-ok  an operation that has looked up the set may still commit until removal has claimed
 *              its word; afterwards generation 0 matches nothing: EIDRM
 *    death     creation: the words belong to a block named in the slot. Removal: redone
 *    progress  wait-free
 *    tests     unit/sem-word, models/sem.pml
 */
#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/ids.h"
#include "core/rlock.h"
#include "ipc/sem_priv.h"

/* ---- Views ------------------------------------------------------------------------------- */

/* Relaxed: without the lock, `live` is looked at before and after. */
static int fill_view(struct caller *c, struct set_shm *set, uint32_t ix, struct sem_view *ret)
{
	uint64_t bytes;

	ret->set = set;
	ret->side = NULL;
	ret->ix = ix;
	ret->gen = load_relaxed(&set->object.gen);
	ret->nsems = load_relaxed(&set->nsems);
	ret->stride = load_relaxed(&set->stride);
	bytes = (uint64_t)ret->nsems * ret->stride;
	ret->words = region_block(c->base, load_relaxed(&set->words_ref), bytes);
	if (!ret->words || (ret->stride != SEM_CELL_BYTES && ret->stride != REF_UNIT) ||
	    ret->words < c->base + ARENAS_OFF + ARENA_SEM * ARENA_BYTES || ret->gen == 0)
		return -ENOTRECOVERABLE;
	return 0;
}

int sem_view_id(struct caller *c, int32_t id, struct sem_view *ret)
{
	uint32_t ix;
	struct object_shm *o = ids_lookup(c->base, FAMILY_SEM, id, &ix); /* SEM_G1/A */
	int rc;

	if (!o)
		return -EINVAL;
	rc = fill_view(c, (struct set_shm *)(void *)o, ix, ret);
	ret->id = id;
	fence_acquire(); /* SEM_G1: the fields were read before `live` is looked at again */
	if (load_relaxed(&o->live) != (uint32_t)id + 1) /* ordered by the fence */
		return -EINVAL;
	return rc;
}

int sem_view_locked(struct caller *c, uint32_t ix, struct sem_view *ret)
{
	struct set_shm *set = region_set(c->base, ix);
	uint32_t live = set ? load_acquire(&set->object.live) : 0; /* SEM_G1/A */

	if (!live)
		return -EIDRM;
	ret->id = (int32_t)(live - 1);
	return fill_view(c, set, ix, ret);
}

bool sem_view_stale(const struct sem_view *v)
{
	return load_acquire(&v->set->object.live) != (uint32_t)v->id + 1 || /* SEM_G1/A */
	       load_relaxed(&v->set->object.gen) != v->gen;                 /* `live` came first */
}

/* ---- Busy words -------------------------------------------------------------------------- */

static uint32_t *low_half(struct sem_shm *s)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (uint32_t *)(void *)&s->word;
#else
	return (uint32_t *)(void *)&s->word + 1;
#endif
}

/* Does the thread say that it holds this one? */
static bool says_so(const struct caller *c, const struct thread_shm *t, struct sem_shm *s)
{
	uint32_t cell = cell_of(c, s), hold = load_acquire(&t->hold); /* SEM_H1/A */

	for (uint32_t k = 0; k < HOLD_COUNT(hold) && k < HOLD_MAX; k++)
		if (load_relaxed(&t->ent[k].cell) == cell) /* a hint, see rlock_is_false() */
			return true;
	return false;
}

int sem_word_busy(struct caller *c, struct sem_shm *s, uint64_t seen)
{
	uint32_t holder = SEM_WORD_TAG(seen);

	if (holder == c->thread_ix && says_so(c, region_self(c), s))
		return -EINTR; /* held by the very call that this handler interrupted */
	if (c->ops->is_dead(c, holder, false)) {
		rlock_recover(c, holder, false);
		if (load_acquire(&s->word) != seen) /* SEM_W1/A */
			return OUTCOME_DONE;
	}
	c->busy = (struct busy){region_off(c->base, low_half(s)), (uint32_t)seen, holder + 1,
				BUSY_WORD};
	return rlock_is_orphan(c, holder, low_half(s), (uint32_t)seen) ? -ENOTRECOVERABLE
								       : OUTCOME_BUSY;
}

bool sem_announce(struct caller *c)
{
	uint32_t *low = (uint32_t *)region_at(c->base, c->busy.word_off);
	uint32_t seen = c->busy.value;

	if (!(seen & (uint32_t)SEM_HELD))
		return false;
	if (!(seen & (uint32_t)SEM_CONT) &&
	    !cas(low, &seen, seen | (uint32_t)SEM_CONT)) /* SEM_W1/R: before the sleep */
		return false;
	c->busy.value |= (uint32_t)SEM_CONT;
	return true;
}

/* The word of whose low half this is the offset. */
static uint64_t *word_of(const struct caller *c, uint64_t low_off)
{
	return region_at(c->base, low_off & ~(uint64_t)(sizeof(uint64_t) - 1));
}

bool sem_is_false(const struct caller *c, const struct busy *b)
{
	uint32_t holder = b->owner_link - 1;
	const struct thread_shm *t = b->owner_link ? region_thread(c->base, holder) : NULL;
	uint64_t *word = word_of(c, b->word_off), seen = load_acquire(word); /* SEM_W1/A */

	if (!t || (uint32_t)seen != b->value || !(seen & SEM_HELD))
		return false;
	if (says_so(c, t, (struct sem_shm *)(void *)word))
		return false;
	return load_acquire(word) == seen; /* SEM_W1/A */
}

void sem_break(struct caller *c, const struct busy *b)
{
	uint64_t *word = word_of(c, b->word_off), seen = load_acquire(word); /* SEM_W1/A */

	if ((uint32_t)seen == b->value && (seen & SEM_HELD) &&
	    cas(word, &seen, seen & ~(SEM_TAG | SEM_HELD | SEM_CONT))) /* SEM_W1/R */
		futex_wake(region_at(c->base, b->word_off), INT_MAX);
}

/* ---- The plain operation ----------------------------------------------------------------- */

bool sem_would_block(const struct semop_shm *op, int value)
{
	return op->op == 0 ? value != 0 : value + op->op < 0;
}

/* Would block: an error, a moment's spinning by the client, or the queue. */
static int blocked(struct caller *c, const struct sem_request *rq, const struct semop_shm *op,
		   struct sem_shm *s, uint64_t seen)
{
	if (op->flags & SEMOP_NOWAIT)
		return -EAGAIN;
	if (rq->may_queue)
		return OUTCOME_SLOW;
	c->busy = (struct busy){region_off(c->base, s), (uint32_t)SEM_WORD_VALUE(seen), 0,
				BUSY_VALUE};
	return OUTCOME_BUSY;
}

int sem_plain(struct caller *c, const struct sem_view *v, const struct sem_request *rq)
{
	const struct semop_shm *op = &rq->ops[0];
	struct sem_shm *s = view_word(v, op->num);
	uint64_t seen = load_acquire(&s->word); /* SEM_W1/A */

	for (;;) {
		int value = SEM_WORD_VALUE(seen), rc;

		if (SEM_WORD_GEN(seen) != v->gen)
			return -EIDRM;
		if (seen & SEM_HELD) {
			rc = sem_word_busy(c, s, seen);
			if (rc != OUTCOME_DONE)
				return rc;
			seen = load_acquire(&s->word); /* SEM_W1/A */
			continue;
		}
		if (seen & SEM_SLOW)
			return OUTCOME_SLOW;
		if (sem_would_block(op, value))
			return blocked(c, rq, op, s, seen);
		if (value + op->op > SEMVAL_MAX)
			return -ERANGE;
		/* Once a second and semaphore: otime must be there before the call returns. */
		if (load_relaxed(&s->otime) !=
		    rq->now) /* the holder's store; any older is just old */
			return sem_held(c, v, rq, 0);
		if (cas(&s->word, &seen,
			SEM_WORD(value + op->op, v->gen, c->pid))) /* SEM_W1/R commit */
			return OUTCOME_DONE;
	}
}

/* ---- Held words -------------------------------------------------------------------------- */

static struct sem_shm *cell_at(struct caller *c, uint32_t cell)
{
	uint64_t off = ARENAS_OFF + ARENA_SEM * ARENA_BYTES + (uint64_t)cell * SEM_CELL_BYTES;

	return off + SEM_CELL_BYTES <= ARENAS_OFF + (ARENA_SEM + 1) * ARENA_BYTES &&
			       region_block(c->base, (uint32_t)(off / REF_UNIT), 1)
		       ? (struct sem_shm *)region_at(c->base, off)
		       : NULL;
}

/* Releases a held word to `to`, keeping SLOW, waking who sleeps on it. */
static void release_word(struct sem_shm *s, uint64_t held, uint64_t to)
{
	uint64_t seen = held;

	while (!cas(&s->word, &seen, to | (seen & SEM_SLOW))) /* SEM_W1/R */
		;
	if (seen & SEM_CONT)
		futex_wake(low_half(s), INT_MAX);
}

/* Is the word held by this thread? */
static bool holds(uint64_t word, uint32_t thread_ix)
{
	return (word & SEM_HELD) && SEM_WORD_TAG(word) == thread_ix;
}

/* Lets every held word of thread t go, forward when the record is committed. Repeatable. */
static void let_go(struct caller *c, struct thread_shm *t, uint32_t thread_ix)
{
	uint32_t hold = load_acquire(&t->hold); /* SEM_H1/A */
	bool committed = hold & HOLD_COMMITTED;
	uint32_t n = HOLD_COUNT(hold) <= HOLD_MAX ? HOLD_COUNT(hold) : HOLD_MAX;

	for (uint32_t k = 0; k < n; k++) {
		struct hold_shm *e = &t->ent[k];
		struct sem_shm *s = cell_at(c, e->cell);
		uint64_t word = s ? load_acquire(&s->word) : 0; /* SEM_W1/A */

		if (!s || !holds(word, thread_ix))
			continue;
		if (committed) {
			struct undo_shm *u =
				e->undo_ref ? region_block(c->base, e->undo_ref,
							   sizeof(*u) + (e->undo_ix + 1ull) * 2)
					    : NULL;

			if (u && e->undo_ix < u->capacity)
				u->adj[e->undo_ix] = e->adj;
			store_relaxed(&s->otime, e->otime); /* published by the release below */
		}
		crash_barrier();
		release_word(s, word, committed ? e->new_word : e->old_word);
	}
	store_crash(&t->hold, 0); /* SEM_H1/R */
}

void sem_recover_holds(struct caller *c, uint32_t dead_ix)
{
	let_go(c, region_known_thread(c->base, dead_ix), dead_ix);
}

/* Takes word number `num` into entry k of the hold record. */
static int take_word(struct caller *c, const struct sem_view *v, uint32_t num, uint32_t k)
{
	struct thread_shm *self = region_self(c);
	struct hold_shm *e = &self->ent[k];
	struct sem_shm *s = view_word(v, num);
	uint64_t seen = load_acquire(&s->word); /* SEM_W1/A */

	e->cell = cell_of(c, s);
	for (;;) {
		if (SEM_WORD_GEN(seen) != v->gen)
			return -EIDRM;
		if (seen & SEM_HELD) {
			int rc = sem_word_busy(c, s, seen);

			if (rc != OUTCOME_DONE)
				return rc;
			seen = load_acquire(&s->word); /* SEM_W1/A */
			continue;
		}
		if (seen & SEM_SLOW)
			return OUTCOME_SLOW;
		e->old_word = seen;
		store_crash(&self->hold, k + 1); /* SEM_H1/R */
		if (cas(&s->word, &seen,
			SEM_WORD(SEM_WORD_VALUE(seen), v->gen, c->thread_ix) |
				SEM_HELD)) /* SEM_W1/A */
			return OUTCOME_DONE;
	}
}

/* Distinct semaphores of the operations, ascending: 0 when there are too many to hold. */
static uint32_t distinct(const struct sem_request *rq, uint32_t *num)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < rq->nsops; i++) {
		uint32_t at = 0;

		while (at < n && num[at] < rq->ops[i].num)
			at++;
		if (at < n && num[at] == rq->ops[i].num)
			continue;
		if (n == HOLD_MAX)
			return 0;
		for (uint32_t k = n++; k > at; k--)
			num[k] = num[k - 1];
		num[at] = rq->ops[i].num;
	}
	return n;
}

int sem_held(struct caller *c, const struct sem_view *v, const struct sem_request *rq,
	     uint32_t undo_ref)
{
	struct thread_shm *self = region_self(c);
	struct undo_shm *undo = undo_ref ? sem_undo_at(c, undo_ref, v) : NULL;
	uint32_t num[HOLD_MAX], n = distinct(rq, num);
	int value[HOLD_MAX], adj[HOLD_MAX], rc = OUTCOME_DONE;

	if (n == 0)
		return OUTCOME_SLOW;
	if (self->hold)
		return -EINTR; /* the call that this handler interrupted holds words */
	for (uint32_t k = 0; k < n && rc == OUTCOME_DONE; k++)
		rc = take_word(c, v, num[k], k);
	if (rc != OUTCOME_DONE)
		goto out;
	for (uint32_t k = 0; k < n; k++) {
		value[k] = SEM_WORD_VALUE(self->ent[k].old_word);
		adj[k] = undo ? undo->adj[num[k]] : 0;
	}
	for (uint32_t i = 0; i < rq->nsops && rc == OUTCOME_DONE; i++) {
		const struct semop_shm *op = &rq->ops[i];
		uint32_t k = 0;

		while (num[k] != op->num)
			k++;
		if (sem_would_block(op, value[k])) {
			rc = blocked(c, rq, op, view_word(v, op->num), self->ent[k].old_word);
			goto out;
		}
		value[k] += op->op;
		if (op->flags & SEMOP_UNDO)
			adj[k] -= op->op;
		if (value[k] > SEMVAL_MAX || adj[k] < SEM_ADJ_MIN || adj[k] > SEM_ADJ_MAX)
			rc = -ERANGE;
	}
	if (rc != OUTCOME_DONE)
		goto out;
	for (uint32_t k = 0; k < n; k++) {
		struct hold_shm *e = &self->ent[k];

		e->new_word = SEM_WORD(value[k], v->gen, c->pid);
		e->undo_ref = undo ? undo_ref : 0;
		e->undo_ix = (uint16_t)num[k];
		e->adj = (int16_t)adj[k];
		e->otime = num[k] == rq->ops[0].num
				   ? rq->now
				   : load_relaxed(&view_word(v, num[k])->otime); /* held: ours */
	}
	store_crash(&self->hold, n | HOLD_COMMITTED); /* SEM_H1/R commit */
out:
	let_go(c, self, c->thread_ix);
	return rc;
}
