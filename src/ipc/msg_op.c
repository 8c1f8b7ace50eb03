// SPDX-License-Identifier: MIT
/*
 * One call of msgsnd or msgrcv. Cards: msg_queue.c, msg_block.c.
 *
 * Texts are copied between the user's memory and a block that the thread owns, before the lock is
 * taken and after it is released. Nothing is kept over BUSY but blocks that the thread's slot
 * names, so starting over is always right; a text that was copied already is not copied again
 * unless the pocket has been used meanwhile.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "core/arena.h"
#include "core/perm.h"
#include "core/rlock.h"
#include "ipc/msg_priv.h"

#define TYPE_BYTES sizeof(long) /* of the type before the text in the user's struct msgbuf */

/* ---- msgsnd ------------------------------------------------------------------------------ */

/* The head and the text, in the order in which the kernel finds faults. */
static int copy_in(struct caller *c, struct msg_send_request *rq)
{
	const unsigned char *text = (const unsigned char *)rq->user + TYPE_BYTES;
	const struct limits_shm *limits = &region_header(c->base)->limits;
	struct thread_shm *self = region_self(c);
	struct msg_shm *m;
	long type;
	int rc;

	if (rq->bytes > load_relaxed(&limits->msgmax) || rq->id < 0) { /* a limit: any time's */
		rc = c->ops->copy_in(c, &type, rq->user, TYPE_BYTES);
		return rc < 0 ? rc : -EINVAL;
	}
	rc = msg_fill_pocket(c, rq->bytes);
	if (rc != OUTCOME_DONE)
		return rc;
	m = msg_at(c->base, self->name_ref[NAME_POCKET]);
	if (!m)
		return -ENOTRECOVERABLE;
	rq->uses = ++self->pocket_uses;
	if (TYPE_BYTES == sizeof(m->tree.key) &&
	    c->ops->copy_in(c, &m->tree.key, rq->user, TYPE_BYTES + rq->bytes) == 0) {
		type = (long)m->tree.key; /* the type lies before the text in both */
	} else {
		rc = c->ops->copy_in(c, &type, rq->user, TYPE_BYTES);
		if (rc == 0 && type >= 1)
			rc = c->ops->copy_in(c, msg_text(m), text, rq->bytes);
		m->tree.key = type;
	}
	if (rc < 0)
		return rc;
	m->bytes = (uint32_t)rq->bytes;
	rq->copied = type >= 1;
	return rq->copied ? OUTCOME_DONE : -EINVAL;
}

/* The sender's waiter. The message stays in the pocket. */
static int sleep_as_sender(struct caller *c, const struct msg_view *v, struct msg_shm *m)
{
	struct thread_shm *self = region_self(c);

	if (WAIT_STATE(load_relaxed(&self->st)) != WAIT_FREE) /* FREE: nobody else writes it */
		return -EINTR; /* the waiter of the call that this handler interrupted */
	self->msg_kind = MSG_KIND_SENDER;
	self->msg.key = m->tree.key;
	self->msg_bytes = m->bytes;
	self->msg_block_ref = self->name_ref[NAME_POCKET];
	self->pid = c->pid;
	msg_begin(self, v, OP_WAIT);
	msg_enqueue(c, v);
	msg_end(self);
	return OUTCOME_SLEEP;
}

int msg_send(struct caller *c, struct msg_send_request *rq)
{
	struct thread_shm *self = region_self(c);
	struct msg_wakes wakes = {0};
	struct msg_view v;
	struct msg_shm *m;
	uint32_t capacity;
	int rc = OUTCOME_DONE;

	if (!rq->copied || rq->uses != self->pocket_uses)
		rc = copy_in(c, rq);
	if (rc == OUTCOME_DONE)
		rc = msg_lock(c, rq->id, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	m = msg_at(c->base, self->name_ref[NAME_POCKET]);
	rc = m ? perm_check(c, &v.q->object, 2) : -ENOTRECOVERABLE;
	if (rc < 0)
		goto out;
	if (!msg_fits(v.q, m->bytes)) {
		rc = rq->flags & MSGF_NOWAIT ? -EAGAIN : sleep_as_sender(c, &v, m);
		goto out;
	}
	capacity = self->pocket_bytes;
	self->op_block_ref = self->name_ref[NAME_POCKET];
	self->op_pid = c->pid;
	self->op_time = rq->now;
	self->op_forward = 0;
	self->op_family = FAMILY_MSG;
	self->op_ix = v.ix;
	rc = msg_deliver(c, &v, self, OP_SEND, &wakes);
	if (rc == OUTCOME_DONE)
		msg_cache_get(c, v.q, capacity);
	msg_end(self);
out:
	msg_unlock(c, &v, &wakes);
	return rc;
}

/* ---- msgrcv ------------------------------------------------------------------------------ */

/* What Linux makes of type and flags. */
static enum msg_kind kind_of(const struct msg_receive_request *rq, int64_t *ret_type)
{
	*ret_type = rq->type;
	if (rq->flags & MSGF_COPY)
		return MSG_KIND_COPY;
	if (rq->type == 0)
		return MSG_KIND_ANY;
	if (rq->type < 0) {
		*ret_type = rq->type == (int64_t)LONG_MIN ? LONG_MAX : -rq->type;
		return MSG_KIND_UP_TO;
	}
	return rq->flags & MSGF_EXCEPT ? MSG_KIND_OTHER : MSG_KIND_EXACT;
}

/* The message in this block, which the thread owns, to the user. Its length, or -errno. */
static int64_t copy_out(struct caller *c, const struct msg_receive_request *rq, uint32_t ref)
{
	uint64_t capacity = arena_capacity(c->base, ref), n;
	struct msg_shm *m = msg_at(c->base, ref);
	int rc;

	/* Relaxed: its own block; read once, for a spoiler may change it at any time. */
	n = m ? load_relaxed(&m->bytes) : 0;
	if (!m || capacity < sizeof(*m) || n > capacity - sizeof(*m))
		return -ENOTRECOVERABLE;
	if (n > rq->bytes)
		n = rq->bytes;
	if (TYPE_BYTES == sizeof(m->tree.key)) {
		rc = c->ops->copy_out(c, rq->user, &m->tree.key, TYPE_BYTES + n);
	} else {
		long type = (long)m->tree.key;

		rc = c->ops->copy_out(c, rq->user, &type, TYPE_BYTES);
		if (rc == 0)
			rc = c->ops->copy_out(c, (unsigned char *)rq->user + TYPE_BYTES,
					      msg_text(m), n);
	}
	return rc < 0 ? rc : (int64_t)n;
}

int msg_receive_granted(struct caller *c, struct msg_receive_request *rq)
{
	rq->ret_bytes = copy_out(c, rq, region_self(c)->name_ref[NAME_FLY]);
	region_self(c)->pocket_uses++;
	msg_pocket_fly(c);
	return rq->ret_bytes < 0 ? (int)rq->ret_bytes : OUTCOME_DONE;
}

static int sleep_as_receiver(struct caller *c, const struct msg_view *v,
			     const struct msg_receive_request *rq, enum msg_kind kind, int64_t type)
{
	struct thread_shm *self = region_self(c);

	if (WAIT_STATE(load_relaxed(&self->st)) != WAIT_FREE) /* FREE: nobody else writes it */
		return -EINTR; /* the waiter of the call that this handler interrupted */
	self->msg_kind = kind;
	self->msg.key = type;
	self->msg_bytes = rq->flags & MSGF_NOERROR ? UINT64_MAX : rq->bytes;
	self->pid = c->pid;
	msg_begin(self, v, OP_WAIT);
	msg_enqueue(c, v);
	msg_end(self);
	return OUTCOME_SLEEP;
}

/* The n-th message into the block SIDE. With the lock; all memory is the region's. */
static int copy_message(struct caller *c, const struct msg_view *v,
			const struct msg_receive_request *rq, int64_t n, uint64_t room)
{
	struct msg_shm *to = msg_at(c->base, region_self(c)->name_ref[NAME_SIDE]);
	uint32_t ref = v->q->head_ref, bytes;
	struct msg_shm *m;

	if (n < 0 || (uint64_t)n >= v->q->count)
		return -ENOMSG;
	if (n >= msg_chain_bound(c->base))
		return -ENOTRECOVERABLE;
	while ((m = ref ? msg_at(c->base, ref) : NULL) && n-- > 0)
		ref = m->next_ref;
	if (!m || !to)
		return -ENOTRECOVERABLE;
	bytes = load_relaxed(&m->bytes); /* under the lock; once, as above */
	if (rq->bytes < bytes && !(rq->flags & MSGF_NOERROR))
		return -E2BIG;
	if (bytes > room)
		return -EINVAL;
	if (sizeof(*m) + (uint64_t)bytes > arena_capacity(c->base, ref))
		return -ENOTRECOVERABLE;
	to->tree.key = m->tree.key;
	to->bytes = bytes;
	memcpy(msg_text(to), msg_text(m), bytes);
	return OUTCOME_DONE;
}

/* MSG_COPY. As the kernel, it reads the buffer first and may know no longer text than that. */
static int receive_copy(struct caller *c, struct msg_receive_request *rq)
{
	uint64_t most = load_relaxed(&region_header(c->base)->limits.msgmax); /* any time's */
	uint64_t room = rq->bytes < most ? rq->bytes : most;
	struct msg_view v;
	struct msg_wakes none = {0};
	struct msg_shm *to;
	int rc = arena_take(c, ARENA_GENERAL, NAME_SIDE, sizeof(struct msg_shm) + room);

	if (rc != OUTCOME_DONE)
		return rc;
	to = region_block(c->base, region_self(c)->name_ref[NAME_SIDE], sizeof(*to) + room);
	rc = to ? c->ops->copy_in(c, msg_text(to), rq->user, room) : -ENOTRECOVERABLE;
	if (rc == 0)
		rc = msg_lock(c, rq->id, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	rc = perm_check(c, &v.q->object, 4);
	if (rc == 0)
		rc = copy_message(c, &v, rq, rq->type, room);
	msg_unlock(c, &v, &none);
	if (rc == OUTCOME_DONE) {
		rq->ret_bytes = copy_out(c, rq, region_self(c)->name_ref[NAME_SIDE]);
		rc = rq->ret_bytes < 0 ? (int)rq->ret_bytes : OUTCOME_DONE;
	}
	return rc;
}

int msg_receive(struct caller *c, struct msg_receive_request *rq)
{
	struct thread_shm *self = region_self(c);
	struct msg_wakes wakes = {0};
	struct msg_view v;
	struct msg_shm *m;
	enum msg_kind kind;
	int64_t type;
	uint32_t ref;
	int rc = msg_is_tidy(self) ? OUTCOME_DONE : msg_tidy(c);

	if (rc != OUTCOME_DONE)
		return rc;
	if (rq->id < 0 || (int64_t)rq->bytes < 0)
		return -EINVAL;
	kind = kind_of(rq, &type);
	if (kind == MSG_KIND_COPY) {
		if ((rq->flags & MSGF_EXCEPT) || !(rq->flags & MSGF_NOWAIT))
			return -EINVAL;
		return receive_copy(c, rq);
	}
	rc = msg_lock(c, rq->id, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	rc = perm_check(c, &v.q->object, 4);
	if (rc < 0)
		goto out;
	ref = v.q->head_ref ? msg_index_find(c, v.q, kind, type) : 0;
	if (!ref) {
		rc = rq->flags & MSGF_NOWAIT ? -ENOMSG : sleep_as_receiver(c, &v, rq, kind, type);
		goto out;
	}
	m = msg_at(c->base, ref);
	if (!m)
		rc = -ENOTRECOVERABLE;
	else if (rq->bytes < m->bytes && !(rq->flags & MSGF_NOERROR))
		rc = -E2BIG;
	if (rc < 0)
		goto out;
	self->op_block_ref = ref;
	self->op_pid = c->pid;
	self->op_time = rq->now;
	msg_begin(self, &v, OP_RECEIVE);
	store_crash(&self->name_ref[NAME_FLY], ref); /* MSG_B1: void until the commit */
	rc = msg_take_out(c, v.q, ref);
	if (rc < 0) {
		store_crash(&self->name_ref[NAME_FLY], 0); /* MSG_B1 */
		msg_end(self);
		goto out;
	}
	v.q->lrpid = c->pid;
	v.q->rtime = rq->now;
	msg_cache_put(c, v.q);
	msg_admit(c, &v, self, rq->now, &wakes);
	msg_end(self);
out:
	msg_unlock(c, &v, &wakes);
	return rc == OUTCOME_DONE ? msg_receive_granted(c, rq) : rc;
}
