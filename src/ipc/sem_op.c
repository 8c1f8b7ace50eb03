// SPDX-License-Identifier: MIT
/*
 * One call of semop: which path it takes, and the waiter when it has to wait. Cards: sem_word.c,
 * sem_set.c.
 *
 * Nothing is committed before a path answers DONE, and nothing is kept over BUSY but blocks that
 * the thread's slot names, so starting over from the lookup is always right.
 */
#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/arena.h"
#include "core/ids.h"
#include "core/perm.h"
#include "core/rlock.h"
#include "ipc/sem_priv.h"

struct shape {
	bool alters, undo;
	uint32_t highest;
};

static struct shape shape_of(const struct sem_request *rq)
{
	struct shape s = {0};

	for (uint32_t i = 0; i < rq->nsops; i++) {
		s.alters |= rq->ops[i].op != 0;
		s.undo |= (rq->ops[i].flags & SEMOP_UNDO) != 0;
		if (rq->ops[i].num > s.highest)
			s.highest = rq->ops[i].num;
	}
	return s;
}

/* The request into the thread's slot, where others may perform it. */
static int write_request(struct caller *c, const struct sem_view *v, const struct sem_request *rq,
			 const struct shape *shape, uint32_t undo_ref)
{
	struct thread_shm *self = region_self(c);
	struct semop_shm *to = self->sop;
	uint32_t st = load_relaxed(&self->st); /* FREE: nobody else writes it */

	if (WAIT_STATE(st) != WAIT_FREE)
		return -EINTR; /* the waiter of the call that this handler interrupted */
	if (rq->nsops > SEMOPS_INLINE) {
		uint64_t bytes = (uint64_t)rq->nsops * sizeof(*to);
		int rc = OUTCOME_DONE;

		if (arena_capacity(c->base, self->name_ref[NAME_SOPS]) < bytes) {
			rc = arena_give(c, NAME_SOPS);
			if (rc == OUTCOME_DONE)
				rc = arena_take(c, ARENA_GENERAL, NAME_SOPS, bytes);
		}
		if (rc != OUTCOME_DONE)
			return rc;
		to = region_block(c->base, self->name_ref[NAME_SOPS], bytes);
		if (!to)
			return -ENOTRECOVERABLE;
	}
	for (uint32_t i = 0; i < rq->nsops; i++)
		to[i] = rq->ops[i];
	store_relaxed(&self->family, FAMILY_SEM); /* published by the state word, all three */
	store_relaxed(&self->object_ix, v->ix);   /* as above */
	store_relaxed(&self->object_gen, v->gen); /* as above */
	self->pid = c->pid;
	self->nsops = (uint16_t)rq->nsops;
	self->alters = shape->alters;
	self->undo_ref = undo_ref;
	self->blocking = 0;
	self->listed = 0;
	store_crash(&self->st,
		    WAIT_WORD(WAIT_REQUEST(st) + 1, WAIT_FREE)); /* SEM_P2: a new request */
	return OUTCOME_DONE;
}

static int slow(struct caller *c, struct sem_view *v, const struct sem_request *rq,
		const struct shape *shape, uint32_t undo_ref)
{
	struct thread_shm *self = region_self(c);
	struct sem_wakes wakes = {0};
	bool lazy = !shape->alters && rq->nsops > 1;
	int rc = write_request(c, v, rq, shape, undo_ref);

	if (rc == OUTCOME_DONE)
		rc = rlock_acquire(c, sem_lock_off(v));
	if (rc != OUTCOME_DONE)
		return rc;
	v->side = sem_side(c, v);
	if (sem_view_stale(v) || !v->side) { /* the slot may be another set's by now */
		rc = sem_view_stale(v) ? -EIDRM : -ENOTRECOVERABLE;
		rlock_release(c, sem_lock_off(v));
		return rc;
	}
	rc = sem_claim(c, v, rq->ops, rq->nsops);
	if (rc != OUTCOME_DONE)
		goto out;
	rc = sem_evaluate(c, v, self);
	if (rc == 0) {
		v->set->intent_time = rq->now;
		sem_commit(c, v, INTENT_SELF, c->thread_ix, 0, &wakes);
		sem_clear_shadow(c, v, rq->ops, rq->nsops);
		if (shape->alters)
			sem_serve(c, v, rq->ops, rq->nsops, &wakes);
	} else if (rc > 0) {
		/* Requests of several operations that only wait for zero are looked at when any
		 * semaphore of the set reaches zero: all words must be the lock's meanwhile. */
		rc = lazy ? sem_claim(c, v, NULL, 0) : OUTCOME_DONE;
		if (rc == OUTCOME_DONE) {
			sem_enqueue(c, v, c->thread_ix);
			rc = OUTCOME_SLEEP;
		}
	}
	sem_settle_words(c, v, rq->ops, rq->nsops);
out:
	sem_unlock(c, v, &wakes);
	return rc;
}

int sem_op(struct caller *c, struct sem_request *rq)
{
	struct shape shape = shape_of(rq);
	struct sem_view v;
	uint32_t undo = 0;
	int rc = sem_view_id(c, rq->id, &v);

	if (rc < 0)
		return rc;
	if (shape.undo) {
		rc = sem_undo_find(c, &v, &rq->undo_hint);
		if (rc != OUTCOME_DONE)
			return rc;
		undo = rq->undo_hint;
	}
	if (shape.highest >= v.nsems)
		return -EFBIG;
	rc = perm_check(c, &v.set->object, shape.alters ? 2 : 4);
	if (rc < 0)
		return rc;
	if (rq->nsops == 1 && !undo)
		rc = sem_plain(c, &v, rq);
	else
		rc = sem_held(c, &v, rq, undo);
	return rc == OUTCOME_SLOW ? slow(c, &v, rq, &shape, undo) : rc;
}

/* ---- The waiter -------------------------------------------------------------------------- */

uint32_t *sem_wait_word(struct caller *c)
{
	return &region_self(c)->st;
}

static void free_waiter(struct thread_shm *t)
{
	uint32_t st = load_relaxed(&t->st); /* ours: granted, removed or just taken back */

	store_crash(&t->st, WAIT_WORD(WAIT_REQUEST(st), WAIT_FREE)); /* SEM_P2/R */
}

int sem_wait_result(struct caller *c)
{
	struct thread_shm *self = region_self(c);
	uint32_t st = load_acquire(&self->st); /* SEM_P2/A */
	int result = self->result;

	free_waiter(self);
	return wait_outcome(st, result);
}

/* Takes a queued request back. *ret_left false: it has been told. */
static int leave(struct caller *c, uint32_t thread_ix, bool *ret_left)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct sem_view v;
	uint32_t ix;
	uint64_t lock;
	int rc;

	*ret_left = false;
	if (!wait_is_queued(load_acquire(&t->st))) /* SEM_P2/A */
		return OUTCOME_DONE;
	ix = t->object_ix;
	if (!region_set(c->base, ix))
		return -ENOTRECOVERABLE;
	lock = ids_object_lock(FAMILY_SEM, ix);
	rc = rlock_acquire(c, lock);
	if (rc != OUTCOME_DONE)
		return rc;
	if (wait_is_queued(load_acquire(&t->st))) { /* SEM_P2/A */
		*ret_left = true;
		/* A set that is gone has told all its waiters; gone it is only when damaged. */
		if (sem_view_locked(c, ix, &v) == 0 && v.gen == t->object_gen) {
			v.side = sem_side(c, &v);
			free_waiter(t);
			sem_unlink(c, &v, thread_ix);
			sem_settle_words(c, &v, sem_request_ops(c, t), sem_request_count(c, &v, t));
			sem_unlock(c, &v, NULL);
			return OUTCOME_DONE;
		}
		free_waiter(t);
	}
	rlock_release(c, lock);
	return OUTCOME_DONE;
}

int sem_leave(struct caller *c, bool *ret_left)
{
	return leave(c, c->thread_ix, ret_left);
}

int sem_bury_thread(struct caller *c, uint32_t dead_ix)
{
	struct thread_shm *t = region_known_thread(c->base, dead_ix);
	bool left;
	int rc;

	if (wait_is_queued(load_acquire(&t->st)) && t->family == FAMILY_SEM) { /* SEM_P2/A */
		rc = leave(c, dead_ix, &left);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	if (t->family == FAMILY_SEM)
		free_waiter(t); /* granted: the operation stands, as in Linux */
	if (t->owes_wake) {
		sem_wake_told(c, t->owes_wake - 1);
		store_crash(&t->owes_wake, 0);
	}
	return sem_undo_release(c, dead_ix);
}
