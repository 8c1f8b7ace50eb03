// SPDX-License-Identifier: MIT
/*
 * Repair of a queue whose lock a dead thread holds: what is derived is built anew by one walk over
 * the chain and one over the threads' waiters; then the dead thread's operation is finished or
 * taken back, as MSG_L1 in msg_queue.c says. Whoever does this may die in turn: everything is
 * written so that it can be done again from the beginning.
 */
#include "base/futex.h"
#include "core/chain.h"
#include "core/ids.h"
#include "ipc/msg_priv.h"

/* Rebuilds what is derived from the chain. True: the block is in it. */
static bool rebuild_chain(struct caller *c, struct queue_shm *q, uint32_t block_ref)
{
	uint32_t ref = q->head_ref, prev = 0, steps = 0, bound = msg_chain_bound(c->base);
	struct msg_shm *m;
	bool seen = false;

	msg_index_reset(q);
	q->tail_ref = q->count = 0;
	q->bytes = 0;
	while (ref && steps++ < bound && (m = msg_at(c->base, ref))) {
		/* Read before it is written: the kernel maps the pages around one that is read
		 * first, but one at a time for a store; and to who repairs they may all be new. */
		uint32_t next = load_relaxed(&m->next_ref); /* under the lock */

		crash_barrier();
		seen |= ref == block_ref;
		m->prev_ref = prev;
		q->tail_ref = prev = ref;
		q->count++;
		q->bytes += m->bytes;
		msg_index_add(c, q, ref);
		ref = next;
	}
	return seen;
}

/* Links waiters by next_link, to be sorted. */
static void collect(struct caller *c, const struct msg_view *v, uint32_t thread_ix, void *context)
{
	uint32_t *chain = context;

	(void)v;
	region_known_thread(c->base, thread_ix)->next_link = *chain;
	*chain = thread_ix + 1;
}

static void rebuild_lists(struct caller *c, const struct msg_view *v)
{
	struct queue_shm *q = v->q;
	uint32_t chain = 0;

	q->receiver_head_link = q->receiver_tail_link = 0;
	q->exact_root_link = q->other_head_link = q->other_tail_link = 0;
	q->sender_head_link = q->sender_tail_link = q->waiting = 0;
	q->smallest = UINT64_MAX;
	msg_each_waiter(c, v, collect, &chain);
	chain = chain_sort_by_arrival(c, chain);
	for (uint32_t n = 0; chain && n < THREAD_CAPACITY; n++) {
		uint32_t at = chain - 1;
		struct thread_shm *t = link_thread(c, chain);

		if (!t)
			break;
		chain = t->next_link;
		if (t->arrival > q->arrival)
			q->arrival = t->arrival;
		msg_enlist(c, q, at);
	}
}

/* SEND or ADMIT: was the message handed over? If not, its receiver's name is void. */
static bool was_handed(const struct msg_view *v, const struct caller *c, struct thread_shm *dead)
{
	struct thread_shm *t = link_thread(c, dead->op_waiter_link);
	uint32_t st;

	if (!t)
		return false;
	st = load_acquire(&t->st); /* MSG_P1/A */
	if (!wait_is_queued(st) || WAIT_REQUEST(st) != dead->op_waiter_request ||
	    t->family != FAMILY_MSG || t->object_ix != v->ix)
		return true;
	if (t->name_ref[NAME_FLY] == dead->op_block_ref)
		store_crash(&t->name_ref[NAME_FLY], 0); /* MSG_B1 */
	return false;
}

static void repair_delivery(struct caller *c, const struct msg_view *v, struct thread_shm *dead,
			    bool seen, struct msg_wakes *wakes)
{
	enum op op = (enum op)dead->op;
	bool handed = was_handed(v, c, dead);

	if (seen || handed) {
		if (!handed)
			dead->op_waiter_link = 0;
		msg_delivered(c, v, dead, op, wakes);
	} else if (dead->op_forward) {
		(void)msg_deliver(c, v, dead, op, wakes); /* fails when damaged only */
	}
}

void msg_repair_queue(struct caller *c, uint32_t dead_ix, uint32_t ix)
{
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);
	struct msg_view v = {.q = region_queue(c->base, ix), .ix = ix};
	struct msg_wakes wakes = {0};
	enum op op = (enum op)dead->op;
	uint32_t live;
	bool seen;

	if (!v.q || dead->op_family != FAMILY_MSG || dead->op_ix != ix || op == OP_CREATE)
		op = OP_NONE;
	live = v.q ? load_acquire(&v.q->object.live) : 0; /* ID_P1/A */
	v.id = (int32_t)(live - 1);
	if (op == OP_REMOVE && !live)
		msg_apply_removal(c, &v, dead, &wakes);
	else if (op == OP_REMOVE)
		msg_end(dead);
	if (live && op >= OP_SEND && op != OP_REMOVE) {
		seen = rebuild_chain(c, v.q, dead->op_block_ref);
		msg_cache_rebuild(c, v.q, dead);
		rebuild_lists(c, &v);
		if (op == OP_SEND || op == OP_ADMIT) {
			repair_delivery(c, &v, dead, seen, &wakes);
		} else if (op == OP_RECEIVE && seen) {
			store_crash(&dead->name_ref[NAME_FLY], 0); /* MSG_B1 */
		} else if (op == OP_RECEIVE) {
			v.q->lrpid = dead->op_pid;
			v.q->rtime = dead->op_time;
		} else if (op == OP_SET) {
			msg_apply_set(v.q, dead);
		}
		msg_admit(c, &v, dead, dead->op_time, &wakes);
		msg_check_receivers(c, &v, &wakes); /* if an IPC_SET had got that far */
		msg_end(dead);
	}
	/* In the dead one's name: whoever repeats this wakes all of them again. */
	msg_wake_told(c, ix);
}
