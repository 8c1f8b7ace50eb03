// SPDX-License-Identifier: MIT
/*
 * What happens under a queue's lock: messages join and leave, sleepers are served.
 *
 * The truth is one chain: head_ref and next_ref, in order of arrival. Everything else about the
 * messages is derived from it, and everything about sleepers from the waiters in the threads'
 * slots. One store commits each change; the thread's slot says before what it is about, and
 * repair looks which side of the store a dead thread was on.
 *
 * A message for which somebody sleeps never enters the chain: it is handed over, and the sleeper's
 * state is then the commit. A sender that finds no room sleeps with its message filled in; who
 * makes room performs the rest of its operation, oldest first among those that fit. So nobody who
 * fits is asleep while the lock is free, and a newcomer that fits need not look. After IPC_SET a
 * sleeper's permission is looked at again, by its credentials in the waiter: a receiver's at once,
 * though after the senders that the change admits, a sender's when its message would fit. (In
 * Linux all of them run again, in any order.)
 *
 * A sleeping receiver does not make room: as in Linux, a full queue is full.
 *
 *   MSG_L1  queue lock and operation
 *    word      queue_shm.object.lock (RLOCK_P1), thread_shm.op of its owner
 *    states    op NONE > WAIT, SEND, RECEIVE, ADMIT, SET, REMOVE > NONE or PURGE, while the lock
 *              is owned. SEND and ADMIT commit by next_ref (or head_ref) or by MSG_P1, RECEIVE by
 *              next_ref (or head_ref), SET by op, REMOVE by object_shm.live
 *    writers   the lock's owner, or in its name the claimer of its slot
 *    order     RLOCK_P1 publishes chain, lists and counts
 *    stale-ok  derived structures while op is not NONE
 *    death     op NONE: nothing was changed. Else derived structures are rebuilt by one walk, then:
 *              SEND, ADMIT: the block is in the chain, or its receiver no longer waits: finished;
 *              otherwise it is still the sender's, unless others were told of it: delivered.
 *              RECEIVE: the block is in the chain: nothing happened; otherwise it was taken, and
 *              goes with its receiver, as a killed receiver's does in Linux. SET: done again.
 *              REMOVE: live is 0: finished. Then senders that fit are admitted
 *    progress  blocks; sections touch no user memory and make no system calls
 *    tests     unit/msg-queue, stress/msg-kill, conform/msg
 *
 *   MSG_P1  hand-off
 *    word      thread_shm.st {request 28, state 4}
 *    states    FREE > WAITING > ASLEEP; {WAITING, ASLEEP} > {GRANTED, REMOVED, FREE}
 *    writers   owner of the queue's lock: all edges out of WAITING and ASLEEP. The waiter:
 *              WAITING > ASLEEP, {GRANTED, REMOVED} > FREE
 *    order     R of tell() pairs with A of msg_wait_result; publishes result and NAME_FLY
 *    sleep     client, on {request, ASLEEP}; the step to ASLEEP and tell() are RMWs of one word
 *    stale-ok  a wake may come late: waiters read the state again. Who has been told is in no
 *              list: it is taken out first, for it may stand in another queue's at once
 *    death     waker before the exchange: the name it wrote is void, repair clears it. After: the
 *              message is the receiver's. Told but not woken: msg_owes_wake. Waiter queued: it
 *              leaves at burial, before its names are given back. Waiter granted: its message goes
 *              with it; what it sent stays
 *    progress  waker bounded, waiter blocks
 *    tests     conform/msg-sleep, unit/msg-queue, stress/msg-kill, models/msg.pml
 */
#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/ids.h"
#include "core/perm.h"
#include "core/rlock.h"
#include "ipc/msg_priv.h"

/* ---- The lock ---------------------------------------------------------------------------- */

int msg_lock(struct caller *c, int32_t id, struct msg_view *ret)
{
	struct object_shm *o = ids_lookup(c->base, FAMILY_MSG, id, &ret->ix);
	uint64_t lock;
	int rc;

	if (!o)
		return -EINVAL;
	ret->q = (struct queue_shm *)(void *)o;
	ret->id = id;
	lock = ids_object_lock(FAMILY_MSG, ret->ix);
	rc = rlock_acquire(c, lock);
	if (rc != OUTCOME_DONE)
		return rc;
	if (load_acquire(&o->live) == (uint32_t)id + 1) /* ID_P1/A */
		return OUTCOME_DONE;
	rlock_release(c, lock);
	return -EIDRM;
}

void msg_unlock(struct caller *c, const struct msg_view *v, struct msg_wakes *wakes)
{
	struct thread_shm *self = region_self(c);

	if (wakes->count)
		store_crash(&self->msg_owes_wake,
			    v->ix + 1); /* MSG_P1: paid below, or by recovery */
	rlock_release(c, ids_object_lock(FAMILY_MSG, v->ix));
	if (!wakes->count)
		return;
	for (uint32_t i = 0; i < wakes->count; i++) {
		struct thread_shm *t = region_thread(c->base, wakes->thread_ix[i]);

		if (t)
			futex_wake(&t->st, INT_MAX);
	}
	wakes->count = 0;
	store_crash(&self->msg_owes_wake, 0);
}

void msg_begin(struct thread_shm *actor, const struct msg_view *v, enum op op)
{
	actor->op_family = FAMILY_MSG;
	actor->op_ix = v->ix;
	store_crash(&actor->op, op);
}

void msg_end(struct thread_shm *actor)
{
	store_crash(&actor->op, OP_NONE);
}

/* ---- The chain --------------------------------------------------------------------------- */

void msg_append(struct caller *c, struct queue_shm *q, uint32_t ref)
{
	struct msg_shm *m = msg_at(c->base, ref);
	struct msg_shm *tail = q->tail_ref ? msg_at(c->base, q->tail_ref) : NULL;

	if (!m)
		return; /* damaged meanwhile */
	m->next_ref = 0;
	m->prev_ref = q->tail_ref;
	if (tail)
		store_crash(&tail->next_ref, ref); /* MSG_L1 commit */
	else
		store_crash(&q->head_ref, ref); /* MSG_L1 commit */
	q->tail_ref = ref;
	q->count++;
	q->bytes += m->bytes;
	msg_index_add(c, q, ref);
}

int msg_take_out(struct caller *c, struct queue_shm *q, uint32_t ref)
{
	struct msg_shm *m = msg_at(c->base, ref);
	struct msg_shm *prev = m && m->prev_ref ? msg_at(c->base, m->prev_ref) : NULL;
	struct msg_shm *next = m && m->next_ref ? msg_at(c->base, m->next_ref) : NULL;

	if (!m || (m->prev_ref && !prev) || (m->next_ref && !next))
		return -ENOTRECOVERABLE;
	if (prev)
		store_crash(&prev->next_ref, m->next_ref); /* MSG_L1 commit */
	else
		store_crash(&q->head_ref, m->next_ref); /* MSG_L1 commit */
	if (next)
		next->prev_ref = m->prev_ref;
	else
		q->tail_ref = m->prev_ref;
	q->count--;
	q->bytes -= m->bytes;
	msg_index_remove(c, q, ref);
	return OUTCOME_DONE;
}

/* ---- Sleepers ---------------------------------------------------------------------------- */

void msg_enlist(struct caller *c, struct queue_shm *q, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	bool sends = t->msg_kind == MSG_KIND_SENDER;
	uint32_t *head = sends ? &q->sender_head_link : &q->receiver_head_link;
	uint32_t *tail = sends ? &q->sender_tail_link : &q->receiver_tail_link;
	struct thread_shm *last = link_thread(c, *tail);

	t->next_link = 0;
	t->prev_link = *tail;
	if (last)
		last->next_link = thread_ix + 1;
	else
		*head = thread_ix + 1;
	*tail = thread_ix + 1;
	q->waiting++;
	if (!sends)
		msg_index_sleep(c, q, thread_ix);
	else if (t->msg_bytes < q->smallest)
		q->smallest = t->msg_bytes;
}

void msg_delist(struct caller *c, struct queue_shm *q, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	bool sends = t->msg_kind == MSG_KIND_SENDER;
	struct thread_shm *next = link_thread(c, t->next_link);
	struct thread_shm *prev = link_thread(c, t->prev_link);

	if (!sends)
		msg_index_wake(c, q, thread_ix);
	if (next)
		next->prev_link = t->prev_link;
	else if (sends)
		q->sender_tail_link = t->prev_link;
	else
		q->receiver_tail_link = t->prev_link;
	if (prev)
		prev->next_link = t->next_link;
	else if (sends)
		q->sender_head_link = t->next_link;
	else
		q->receiver_head_link = t->next_link;
	q->waiting--;
	if (!q->sender_head_link)
		q->smallest = UINT64_MAX;
}

void msg_enqueue(struct caller *c, const struct msg_view *v)
{
	struct thread_shm *t = region_self(c);
	uint32_t st = load_relaxed(&t->st); /* FREE: nobody else writes it */
	const struct creds *who = c->creds;

	t->who_euid = who->euid;
	t->who_fsgid = who->fsgid;
	t->who_is_capable = who->cap_ipc_owner;
	t->who_group_count = (uint32_t)who->group_count;
	for (uint32_t i = 0; i < who->group_count && i < WHO_GROUPS; i++)
		t->who_group[i] = who->groups[i];
	store_relaxed(&t->family, FAMILY_MSG);           /* published by the state word */
	store_relaxed(&t->object_ix, v->ix);             /* as above */
	store_relaxed(&t->object_gen, v->q->object.gen); /* as above */
	t->msg_changes = v->q->changes;
	t->arrival = ++v->q->arrival;
	store_crash(&t->st, WAIT_WORD(WAIT_REQUEST(st) + 1, WAIT_WAITING)); /* MSG_P1/R commit */
	msg_enlist(c, v->q, c->thread_ix);
}

/*
 * The waiter, in no list any more, learns of its end; a sleeper goes on the wake list. Only the
 * owner of the lock ends a sleep, so the exchange cannot meet another end.
 */
static void tell(struct thread_shm *t, uint32_t thread_ix, enum wait_state state, int32_t result,
		 struct msg_wakes *wakes)
{
	uint32_t seen = load_relaxed(&t->st); /* the request; its state changes to ASLEEP at most */

	t->result = result;
	crash_barrier();
	seen = exchange(&t->st, WAIT_WORD(WAIT_REQUEST(seen), state)); /* MSG_P1/R */
	if (WAIT_STATE(seen) != WAIT_ASLEEP)
		return;
	if (wakes->count == sizeof(wakes->thread_ix) / sizeof(wakes->thread_ix[0]))
		futex_wake(&t->st, INT_MAX);
	else
		wakes->thread_ix[wakes->count++] = thread_ix;
}

static void end_sleep(struct caller *c, struct queue_shm *q, uint32_t thread_ix,
		      enum wait_state state, int32_t result, struct msg_wakes *wakes)
{
	msg_delist(c, q, thread_ix);
	tell(region_known_thread(c->base, thread_ix), thread_ix, state, result, wakes);
}

/* Does the waiter still stand in this queue with this request? */
static bool still_waits(const struct msg_view *v, const struct thread_shm *t, uint32_t request)
{
	return wait_is_of(t, request, FAMILY_MSG, v->ix, v->q->object.gen);
}

/* After IPC_SET: 0 it may go on, -EACCES, or -EAGAIN when only itself can tell. */
static int check_again(const struct msg_view *v, struct thread_shm *t, uint32_t wanted)
{
	struct creds who = {.euid = t->who_euid,
			    .fsgid = t->who_fsgid,
			    .groups = t->who_group,
			    .group_count = t->who_group_count,
			    .cap_ipc_owner = t->who_is_capable};
	struct caller as = {.creds = &who};

	if (t->msg_changes == v->q->changes)
		return 0;
	return who.group_count <= WHO_GROUPS ? perm_check(&as, &v->q->object, wanted) : -EAGAIN;
}

/* ---- Delivery ---------------------------------------------------------------------------- */

/*
 * The receiver that the message goes to; 0: none. Those for whom it is too long are told so, and
 * from then on the delivery will be finished whatever happens to the actor. The dead receive
 * nothing: they are taken out here, before their burial.
 */
static uint32_t choose_receiver(struct caller *c, const struct msg_view *v,
				struct thread_shm *actor, const struct msg_shm *m,
				struct msg_wakes *wakes)
{
	uint32_t link, steps = 0;

	while ((link = msg_index_match(c, v->q, m->tree.key)) != 0 && steps++ < THREAD_CAPACITY) {
		struct thread_shm *t = link_thread(c, link);

		if (!t)
			return 0;
		if (c->ops->is_dead(c, link - 1, false)) {
			end_sleep(c, v->q, link - 1, WAIT_GRANTED, -EINTR, wakes);
			continue;
		}
		if (t->msg_bytes >= m->bytes)
			return link;
		store_crash(&actor->op_forward, 1);
		end_sleep(c, v->q, link - 1, WAIT_GRANTED, -E2BIG, wakes);
	}
	return 0;
}

int msg_deliver(struct caller *c, const struct msg_view *v, struct thread_shm *actor, enum op op,
		struct msg_wakes *wakes)
{
	struct msg_shm *m = msg_at(c->base, actor->op_block_ref);
	struct thread_shm *t;
	uint32_t link;

	if (!m)
		return -ENOTRECOVERABLE;
	actor->op_waiter_link = 0;
	store_crash(&actor->op, op);
	link = v->q->receiver_head_link ? choose_receiver(c, v, actor, m, wakes) : 0;
	t = link_thread(c, link);
	if (t) {
		actor->op_waiter_request = WAIT_REQUEST(load_relaxed(&t->st)); /* as in tell() */
		actor->op_waiter_tid = t->tid;
		store_crash(&actor->op_waiter_link, link);
		store_crash(&t->name_ref[NAME_FLY], actor->op_block_ref); /* MSG_B1 */
		end_sleep(c, v->q, link - 1, WAIT_GRANTED, 0, wakes);     /* MSG_L1 commit */
	} else {
		msg_append(c, v->q, actor->op_block_ref);
	}
	msg_delivered(c, v, actor, op, wakes);
	return OUTCOME_DONE;
}

void msg_delivered(struct caller *c, const struct msg_view *v, struct thread_shm *actor, enum op op,
		   struct msg_wakes *wakes)
{
	struct queue_shm *q = v->q;
	struct thread_shm *sender = op == OP_SEND ? actor : link_thread(c, actor->op_sender_link);

	q->lspid = actor->op_pid;
	q->stime = actor->op_time;
	if (actor->op_waiter_link) {
		/* Linux shows the thread's id here, and only here. */
		q->lrpid = actor->op_waiter_tid;
		q->rtime = actor->op_time;
	}
	if (op == OP_SEND) {
		if (sender->name_ref[NAME_POCKET] == actor->op_block_ref)
			store_crash(&sender->name_ref[NAME_POCKET], 0); /* MSG_B1 */
	} else if (sender && still_waits(v, sender, actor->op_sender_request)) {
		if (sender->name_ref[NAME_POCKET] == actor->op_block_ref)
			store_crash(&sender->name_ref[NAME_POCKET], 0); /* MSG_B1 */
		end_sleep(c, q, actor->op_sender_link - 1, WAIT_GRANTED, 0, wakes);
	}
}

void msg_admit(struct caller *c, const struct msg_view *v, struct thread_shm *actor, int64_t now,
	       struct msg_wakes *wakes)
{
	struct queue_shm *q = v->q;
	uint64_t smallest = UINT64_MAX;
	uint32_t link = q->sender_head_link, steps = 0;

	if (!link)
		return;
	store_crash(&actor->op, OP_WAIT); /* MSG_L1: what the fields below said is done */
	while (link && steps++ < THREAD_CAPACITY && msg_fits(q, q->smallest)) {
		struct thread_shm *t = link_thread(c, link);
		uint32_t at = link - 1;
		int rc;

		if (!t)
			return;
		link = t->next_link;
		if (!msg_fits(q, t->msg_bytes)) {
			smallest = t->msg_bytes < smallest ? t->msg_bytes : smallest;
		} else if (c->ops->is_dead(c, at, false)) {
			end_sleep(c, q, at, WAIT_GRANTED, -EINTR, wakes);
		} else if ((rc = check_again(v, t, 2)) != 0) {
			end_sleep(c, q, at, WAIT_GRANTED, rc, wakes);
		} else {
			actor->op_block_ref = t->msg_block_ref;
			actor->op_pid = t->pid;
			actor->op_time = now;
			actor->op_sender_link = at + 1;
			actor->op_sender_request =
				WAIT_REQUEST(load_relaxed(&t->st)); /* as in tell() */
			actor->op_forward = 0;
			if (msg_deliver(c, v, actor, OP_ADMIT, wakes) != OUTCOME_DONE)
				return;
			store_crash(&actor->op, OP_WAIT);
		}
	}
	if (!link && q->sender_head_link)
		q->smallest = smallest;
}

/* ---- Changes of the queue ---------------------------------------------------------------- */

void msg_apply_set(struct queue_shm *q, const struct thread_shm *actor)
{
	q->object.uid = actor->set_uid;
	q->object.gid = actor->set_gid;
	q->object.mode = actor->set_mode;
	q->object.ctime = actor->set_time;
	q->qbytes = actor->set_qbytes;
	q->changes = actor->set_changes;
}

void msg_check_receivers(struct caller *c, const struct msg_view *v, struct msg_wakes *wakes)
{
	uint32_t link = v->q->receiver_head_link, steps = 0;

	while (link && steps++ < THREAD_CAPACITY) {
		struct thread_shm *t = link_thread(c, link);
		uint32_t at = link - 1;
		int rc;

		if (!t)
			return;
		link = t->next_link;
		rc = check_again(v, t, 4);
		if (rc == 0)
			t->msg_changes = v->q->changes;
		else
			end_sleep(c, v->q, at, WAIT_GRANTED, rc, wakes);
	}
}

static void tell_removed(struct caller *c, const struct msg_view *v, uint32_t thread_ix,
			 void *context)
{
	(void)v;
	tell(region_known_thread(c->base, thread_ix), thread_ix, WAIT_REMOVED, -EIDRM,
	     (struct msg_wakes *)context);
}

void msg_each_waiter(struct caller *c, const struct msg_view *v,
		     void (*f)(struct caller *c, const struct msg_view *v, uint32_t thread_ix,
			       void *context),
		     void *context)
{
	uint32_t groups = region_group_count(c->base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++) {
			struct thread_shm *t = region_thread(c->base, g * GROUP_SPAN + k);
			uint32_t st = t ? load_acquire(&t->st) : 0; /* MSG_P1/A */

			if (t && still_waits(v, t, WAIT_REQUEST(st)))
				f(c, v, g * GROUP_SPAN + k, context);
		}
}

void msg_apply_removal(struct caller *c, const struct msg_view *v, struct thread_shm *actor,
		       struct msg_wakes *wakes)
{
	struct queue_shm *q = v->q;

	msg_each_waiter(c, v, tell_removed, wakes);
	q->receiver_head_link = q->receiver_tail_link = 0;
	q->sender_head_link = q->sender_tail_link = 0;
	q->exact_root_link = q->other_head_link = q->other_tail_link = 0;
	q->waiting = 0;
	store_crash(&actor->op, OP_PURGE);
}

/* ---- Waiters' own ends ------------------------------------------------------------------- */

static void free_waiter(struct thread_shm *t)
{
	uint32_t st = load_relaxed(&t->st); /* ours: granted, removed or just taken back */

	store_crash(&t->st, WAIT_WORD(WAIT_REQUEST(st), WAIT_FREE)); /* MSG_P1/R */
}

int msg_wait_result(struct caller *c)
{
	struct thread_shm *self = region_self(c);
	uint32_t st = load_acquire(&self->st); /* MSG_P1/A */
	int result = wait_outcome(st, self->result);

	free_waiter(self);
	return result;
}

/* Takes a queued waiter back. *ret_left false: it has been told. */
static int leave(struct caller *c, uint32_t thread_ix, bool *ret_left)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct msg_wakes none = {0};
	struct msg_view v;
	int rc;

	*ret_left = false;
	if (!wait_is_queued(load_acquire(&t->st))) /* MSG_P1/A */
		return OUTCOME_DONE;
	v.ix = t->object_ix;
	v.q = region_queue(c->base, v.ix);
	if (!v.q)
		return -ENOTRECOVERABLE;
	rc = rlock_acquire(c, ids_object_lock(FAMILY_MSG, v.ix));
	if (rc != OUTCOME_DONE)
		return rc;
	if (wait_is_queued(load_acquire(&t->st))) { /* MSG_P1/A */
		*ret_left = true;
		msg_begin(region_self(c), &v, OP_WAIT);
		/* A void name, if a dead sender had begun to hand over a message. */
		if (t->msg_kind != MSG_KIND_SENDER)
			store_crash(&t->name_ref[NAME_FLY], 0); /* MSG_B1 */
		free_waiter(t);
		/* A queue that is gone has told all its waiters; gone it is only when damaged. */
		if (load_acquire(&v.q->object.live) &&
		    v.q->object.gen == t->object_gen) /* ID_P1/A */
			msg_delist(c, v.q, thread_ix);
		msg_end(region_self(c));
	}
	msg_unlock(c, &v, &none);
	return OUTCOME_DONE;
}

int msg_leave(struct caller *c, bool *ret_left)
{
	return leave(c, c->thread_ix, ret_left);
}

static void wake_told_one(struct thread_shm *t, uint32_t ix)
{
	uint32_t state = WAIT_STATE(load_acquire(&t->st)); /* MSG_P1/A */

	if ((state == WAIT_GRANTED || state == WAIT_REMOVED) && t->family == FAMILY_MSG &&
	    t->object_ix == ix)
		futex_wake(&t->st, INT_MAX);
}

void msg_wake_told(struct caller *c, uint32_t ix)
{
	uint32_t groups = region_group_count(c->base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			wake_told_one(region_known_thread(c->base, g * GROUP_SPAN + k), ix);
}

int msg_bury_thread(struct caller *c, uint32_t dead_ix)
{
	struct thread_shm *t = region_known_thread(c->base, dead_ix);
	bool left;
	int rc;

	/* Both in msg_pocket_fly(). Given back by one of them it could be another's at once. A name
	 * that is 0 is left alone: of one who waits it may be written in this moment. */
	if (t->name_ref[NAME_FLY] && t->name_ref[NAME_FLY] == t->name_ref[NAME_POCKET])
		store_crash(&t->name_ref[NAME_FLY], 0); /* MSG_B1 */
	if (t->family == FAMILY_MSG) {
		rc = leave(c, dead_ix, &left);
		if (rc != OUTCOME_DONE)
			return rc;
		free_waiter(t); /* granted: the message goes with the names */
	}
	if (t->msg_owes_wake) {
		msg_wake_told(c, t->msg_owes_wake - 1);
		store_crash(&t->msg_owes_wake, 0);
	}
	return OUTCOME_DONE;
}
