/* SPDX-License-Identifier: MIT */
/* What the files of the message family share. */
#ifndef USYSV_IPC_MSG_PRIV_H
#define USYSV_IPC_MSG_PRIV_H

#include "core/region.h"
#include "ipc/msg.h"
#include "ipc/msg_index.h"

static inline struct queue_shm *region_queue(const unsigned char *base, uint32_t ix)
{
	return (struct queue_shm *)(void *)region_object(base, FAMILY_MSG, ix);
}

/* The head of a message; null unless it lies in chunks that exist. */
static inline struct msg_shm *msg_at(const unsigned char *base, uint32_t ref)
{
	uint64_t inside = (uint64_t)ref * REF_UNIT - ARENAS_OFF;
	uint64_t end = (uint64_t)region_chunk_count(base, ARENA_GENERAL) * CHUNK_BYTES;

	if (inside >= end)
		return NULL;
	return (struct msg_shm *)region_at(base, ARENAS_OFF + inside);
}

static inline struct thread_shm *link_thread(const struct caller *c, uint32_t link)
{
	return link ? region_thread(c->base, link - 1) : NULL;
}

/* The queue of one call. */
struct msg_view {
	struct queue_shm *q;
	uint32_t ix;
	int32_t id;
};

/* Sleepers to be woken after the unlock. */
struct msg_wakes {
	uint32_t count;
	uint32_t thread_ix[30];
};

/* As many blocks as there can be: a chain that is longer is damaged. */
static inline uint32_t msg_chain_bound(const unsigned char *base)
{
	return region_chunk_count(base, ARENA_GENERAL) * CHUNK_BLOCKS;
}

/* ---- msg_queue.c: all but the first need the queue's lock, held by c or by the dead thread in
 * whose name c acts; `actor` is that thread ---- */

/* Looks the id up and takes its lock: -EINVAL no such id, -EIDRM gone meanwhile, OUTCOME_BUSY. */
int msg_lock(struct caller *c, int32_t id, struct msg_view *ret);
void msg_unlock(struct caller *c, const struct msg_view *v, struct msg_wakes *wakes);

/* Says what the actor is about to change, so that repair rebuilds what is derived. */
void msg_begin(struct thread_shm *actor, const struct msg_view *v, enum op op);
void msg_end(struct thread_shm *actor);

static inline bool msg_fits(const struct queue_shm *q, uint64_t bytes)
{
	return bytes <= q->qbytes && q->bytes <= q->qbytes - bytes && q->count < q->qbytes;
}

/* Appends a message: the link is the commit, what is derived follows. */
void msg_append(struct caller *c, struct queue_shm *q, uint32_t ref);
/* Takes it out of the chain: -ENOTRECOVERABLE when there is none. */
int msg_take_out(struct caller *c, struct queue_shm *q, uint32_t ref);

/*
 * The message goes to a sleeping receiver, or to the end of the chain. `op` OP_SEND or OP_ADMIT
 * with op_block_ref, op_pid, op_time (and op_sender_*) set; stores op before the commit. Finishes
 * what follows it: queue's times and pids, the block's old name.
 */
int msg_deliver(struct caller *c, const struct msg_view *v, struct thread_shm *actor, enum op op,
		struct msg_wakes *wakes);
/* After the commit of a delivery, also after a death. Repeatable. */
void msg_delivered(struct caller *c, const struct msg_view *v, struct thread_shm *actor, enum op op,
		   struct msg_wakes *wakes);

/* Sleeping senders whose messages fit now are admitted, oldest first. */
void msg_admit(struct caller *c, const struct msg_view *v, struct thread_shm *actor, int64_t now,
	       struct msg_wakes *wakes);

/* IPC_SET as the actor's slot has it. Repeatable. Senders that fit now are to be admitted, then
 * the receivers checked: those of before the change who may no longer read are told so. */
void msg_apply_set(struct queue_shm *q, const struct thread_shm *actor);
void msg_check_receivers(struct caller *c, const struct msg_view *v, struct msg_wakes *wakes);
/* The queue is gone (live is 0): everybody is told, and the actor's op becomes PURGE. Repeatable.
 */
void msg_apply_removal(struct caller *c, const struct msg_view *v, struct thread_shm *actor,
		       struct msg_wakes *wakes);

/* The calling thread's waiter, whose fields are filled, joins the queue. */
void msg_enqueue(struct caller *c, const struct msg_view *v);
/* Puts a queued waiter into the lists (its arrival is set) or takes it out. */
void msg_enlist(struct caller *c, struct queue_shm *q, uint32_t thread_ix);
void msg_delist(struct caller *c, struct queue_shm *q, uint32_t thread_ix);
void msg_wake_told(struct caller *c, uint32_t ix);

/* Calls f for every queued waiter of the queue, however the lists may look. */
void msg_each_waiter(struct caller *c, const struct msg_view *v,
		     void (*f)(struct caller *c, const struct msg_view *v, uint32_t thread_ix,
			       void *context),
		     void *context);

/* ---- msg_block.c ---- */

static inline unsigned char *msg_text(struct msg_shm *m)
{
	return (unsigned char *)(m + 1);
}

/* A block with room for so much text becomes the pocket. OUTCOME_DONE, _BUSY, -ENOMEM. */
int msg_fill_pocket(struct caller *c, uint64_t bytes);
/* The block in NAME_FLY is used up: it becomes the pocket, or stays named for msg_tidy(). */
void msg_pocket_fly(struct caller *c);
/* With the queue's lock and an op set: the pocket into a cache, if there is room; and out of it, a
 * block like one of this capacity. */
void msg_cache_put(struct caller *c, struct queue_shm *q);
void msg_cache_get(struct caller *c, struct queue_shm *q, uint32_t capacity);
/* Is it in one of the caches? Counts them anew. */
void msg_cache_rebuild(struct caller *c, struct queue_shm *q, struct thread_shm *dead);

#endif
