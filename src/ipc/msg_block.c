// SPDX-License-Identifier: MIT
/*
 * Where the memory of a message comes from, and where it goes.
 *
 * A message lies in one block, filled and emptied by the thread that owns the block, with no lock
 * held. So that an operation needs no pool and no second lock, blocks are kept in two places: each
 * thread has one in its pocket, and each queue has small stacks of them, under the lock that its
 * operations hold anyway. Sending gives the pocket's block away and takes one from the stack;
 * receiving puts the pocket's on the stack, and the block of the message becomes the pocket. Large
 * blocks are not kept, and stacks are short: memory of a queue that was once deep goes back.
 *
 *   MSG_B1  pocket and caches
 *    word      thread_shm.name_ref[NAME_POCKET, NAME_FLY], queue_shm.cache_ref[], msg_shm.next_ref
 *              of what lies in a cache: the truth. Counts are derived
 *    states    a block is in a pocket > a queue's chain > a thread's FLY > a pocket or a cache >
 *              a pocket
 *    writers   names: their thread, and who delivers or admits under the queue's lock (a
 *              receiver's FLY, a sender's POCKET, while that one sleeps). Caches: the lock's owner
 *    order     RLOCK_P1; a granted receiver's FLY is published by MSG_P1
 *    stale-ok  a pocket may also name a block that has just gone into a cache or has not left it
 *              yet: one of the two is void, which the queue's repair decides by looking
 *    death     repair of the queue clears a dead thread's pocket that is found in a cache or in
 *              the chain; who goes on with a removal drops a FLY that still heads a chain of the
 *              removed queue; burial drops a FLY that the pocket names as well, and gives all
 *              names back
 *    progress  bounded
 *    tests     unit/msg-queue, crash/scenes-msg, stress/msg-kill
 */
#include <errno.h>

#include "core/arena.h"
#include "ipc/msg_priv.h"

/* Blocks above this size are kept in smaller numbers. */
#define LARGE_BLOCK 4096u
#define LARGE_MOST  2u

/* A block that is more than this for a message is better used otherwise. */
static uint64_t most_for(uint64_t bytes)
{
	return bytes * 2 + 64;
}

int msg_fill_pocket(struct caller *c, uint64_t bytes)
{
	struct thread_shm *self = region_self(c);
	uint64_t wanted = sizeof(struct msg_shm) + bytes;
	uint64_t capacity;
	int rc;

	if (self->name_ref[NAME_POCKET]) {
		if (self->pocket_bytes >= wanted && self->pocket_bytes <= most_for(wanted))
			return OUTCOME_DONE;
		rc = arena_give(c, NAME_POCKET);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	self->pocket_bytes = 0;
	rc = arena_take(c, ARENA_GENERAL, NAME_POCKET, wanted);
	if (rc ==
	    -ENOMEM) /* one that could not be made real may still be named; if not now, later */
		(void)arena_give(c, NAME_POCKET);
	if (rc != OUTCOME_DONE)
		return rc;
	capacity = arena_capacity(c->base, self->name_ref[NAME_POCKET]);
	if (capacity < wanted || capacity > UINT32_MAX)
		return -ENOTRECOVERABLE;
	self->pocket_bytes = (uint32_t)capacity;
	return OUTCOME_DONE;
}

void msg_pocket_fly(struct caller *c)
{
	struct thread_shm *self = region_self(c);
	uint64_t capacity = arena_capacity(c->base, self->name_ref[NAME_FLY]);

	if (self->name_ref[NAME_POCKET] || capacity > MSG_KEEP_BLOCK)
		return;
	self->pocket_bytes = (uint32_t)capacity;
	store_crash(&self->name_ref[NAME_POCKET], self->name_ref[NAME_FLY]);
	store_crash(&self->name_ref[NAME_FLY], 0);
}

int msg_tidy(struct caller *c)
{
	struct thread_shm *self = region_self(c);
	int rc = arena_give(c, NAME_FLY);

	if (rc == OUTCOME_DONE)
		rc = arena_give(c, NAME_SIDE);
	if (rc == OUTCOME_DONE && self->pocket_bytes > MSG_KEEP_BLOCK) {
		self->pocket_uses++;
		rc = arena_give(c, NAME_POCKET);
	}
	return rc;
}

/* ---- A queue's caches -------------------------------------------------------------------- */

static uint32_t cache_of(uint32_t capacity)
{
	return (31 - (uint32_t)__builtin_clz(capacity | 1)) % QUEUE_CACHES;
}

static uint32_t cache_most(uint32_t capacity)
{
	return capacity > LARGE_BLOCK ? LARGE_MOST : QUEUE_CACHE_MOST;
}

void msg_cache_put(struct caller *c, struct queue_shm *q)
{
	struct thread_shm *self = region_self(c);
	uint32_t ref = self->name_ref[NAME_POCKET], k = cache_of(self->pocket_bytes);
	struct msg_shm *m = ref ? msg_at(c->base, ref) : NULL;

	if (!m || self->pocket_bytes > MSG_KEEP_BLOCK ||
	    q->cache_count[k] >= cache_most(self->pocket_bytes))
		return;
	m->capacity = self->pocket_bytes;
	m->next_ref = q->cache_ref[k];
	store_crash(&q->cache_ref[k], ref);           /* MSG_B1 commit */
	store_crash(&self->name_ref[NAME_POCKET], 0); /* MSG_B1 */
	q->cache_count[k]++;
}

void msg_cache_get(struct caller *c, struct queue_shm *q, uint32_t capacity)
{
	struct thread_shm *self = region_self(c);
	uint32_t k = cache_of(capacity), ref = q->cache_ref[k];
	struct msg_shm *m = ref ? msg_at(c->base, ref) : NULL;
	uint64_t real;

	/* One of another size makes room when the stack is full of them. */
	if (!m || self->name_ref[NAME_POCKET] ||
	    (m->capacity != capacity && q->cache_count[k] < cache_most(m->capacity)))
		return;
	real = arena_capacity(c->base, ref);
	self->pocket_bytes = real > UINT32_MAX ? 0 : (uint32_t)real;
	store_crash(&self->name_ref[NAME_POCKET], ref); /* MSG_B1 */
	store_crash(&q->cache_ref[k], m->next_ref);     /* MSG_B1 commit */
	q->cache_count[k]--;
}

void msg_cache_rebuild(struct caller *c, struct queue_shm *q, struct thread_shm *dead)
{
	for (uint32_t k = 0; k < QUEUE_CACHES; k++) {
		uint32_t ref = q->cache_ref[k];
		struct msg_shm *m;

		q->cache_count[k] = 0;
		while (ref && (m = msg_at(c->base, ref)) && q->cache_count[k] < QUEUE_CACHE_MOST) {
			if (dead->name_ref[NAME_POCKET] == ref)
				store_crash(&dead->name_ref[NAME_POCKET], 0);
			q->cache_count[k]++;
			ref = m->next_ref;
		}
	}
}
