// SPDX-License-Identifier: MIT
/*
 * msgget and msgctl. A new queue needs no memory but its slot. Removal takes it away under its
 * lock (the id and the key are free from then on) and gives its messages back afterwards, one by
 * one, when the slot is the remover's alone. Cards: ids.c, msg_queue.c.
 */
#include "ipc/msg.h"

#include <errno.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/perm.h"
#include "core/rlock.h"
#include "ipc/msg_priv.h"

#define FLAG_CREAT 01000
#define FLAG_EXCL  02000

/* ---- msgget ------------------------------------------------------------------------------ */

/* What Linux checks about a queue that has the key. */
static int check_existing(struct caller *c, uint32_t ix, uint32_t flags)
{
	if ((flags & FLAG_CREAT) && (flags & FLAG_EXCL))
		return -EEXIST;
	return perm_check_flags(c, region_known_object(c->base, FAMILY_MSG, ix), flags);
}

/* With the table's lock: the slot's fields. Its lock word stays as it is. */
static void fill(struct caller *c, uint32_t ix)
{
	struct queue_shm *q =
		(struct queue_shm *)(void *)region_known_object(c->base, FAMILY_MSG, ix);

	q->head_ref = q->tail_ref = q->root_ref = q->count = 0;
	q->bytes = 0;
	q->qbytes = load_relaxed(&region_header(c->base)->limits.msgmnb); /* a limit: any time's */
	q->stime = q->rtime = 0;
	q->lspid = q->lrpid = q->changes = 0;
	q->receiver_head_link = q->receiver_tail_link = 0;
	q->exact_root_link = q->other_head_link = q->other_tail_link = 0;
	q->sender_head_link = q->sender_tail_link = q->waiting = 0;
	q->arrival = 0;
	q->smallest = UINT64_MAX;
	for (uint32_t k = 0; k < QUEUE_CACHES; k++)
		q->cache_ref[k] = q->cache_count[k] = 0;
}

static int create(struct caller *c, int32_t key, uint32_t flags, int64_t now, int32_t *ret_id)
{
	struct header_shm *h = region_header(c->base);
	uint64_t lock = ids_table_lock(FAMILY_MSG);
	uint32_t gen = ids_new_generation(c, FAMILY_MSG), ix, live;
	int rc;

	for (;;) {
		rc = rlock_acquire(c, lock);
		if (rc != OUTCOME_DONE)
			return rc;
		if (key != 0 && ids_find_key_locked(c, FAMILY_MSG, key, &ix, &live)) {
			*ret_id = (int32_t)(live - 1);
			rc = check_existing(c, ix, flags);
			break;
		}
		if (!(flags & FLAG_CREAT) && key != 0) {
			rc = -ENOENT;
			break;
		}
		rc = ids_reserve_locked(c, FAMILY_MSG, h->limits.msgmni, &ix, ret_id);
		if (rc == -EAGAIN) {
			rlock_release(c, lock);
			rc = ids_make_slot(c, FAMILY_MSG, ix);
			if (rc < 0)
				return rc;
			continue;
		}
		if (rc == OUTCOME_DONE) {
			fill(c, ix);
			ids_fill_locked(c, FAMILY_MSG, ix, gen, key, flags, now);
			ids_publish_locked(c, FAMILY_MSG, ix, *ret_id, 0);
			store_crash(&region_self(c)->op, OP_NONE);
		}
		break;
	}
	rlock_release(c, lock);
	return rc;
}

void msg_created(struct caller *c, uint32_t thread_ix)
{
	(void)c;
	(void)thread_ix;
}

uint64_t msg_total(const unsigned char *base, uint32_t ix)
{
	(void)base;
	(void)ix;
	return 0; /* a queue's messages are its own; see msg_totals() */
}

int msg_get(struct caller *c, int32_t key, uint32_t flags, int64_t now, int32_t *ret_id)
{
	uint32_t ix, live;

	if (key != 0 && ids_find_key(c->base, FAMILY_MSG, key, &ix, &live)) {
		int rc = check_existing(c, ix, flags);

		if (load_acquire(&region_known_object(c->base, FAMILY_MSG, ix)->live) ==
		    live) { /* ID_P1/A */
			*ret_id = (int32_t)(live - 1);
			return rc;
		}
	}
	return create(c, key, flags, now, ret_id);
}

/* ---- msgctl ------------------------------------------------------------------------------ */

int msg_stat(struct caller *c, int32_t id, bool by_index, bool any, struct msg_status *ret)
{
	struct msg_wakes none = {0};
	struct msg_view v;
	int rc;

	if (by_index) {
		struct object_shm *o =
			region_object(c->base, FAMILY_MSG, (uint32_t)id & (OBJECT_CAPACITY - 1));
		uint32_t live = o ? load_acquire(&o->live) : 0; /* ID_P1/A */

		if (!live)
			return -EINVAL;
		id = (int32_t)(live - 1);
	}
	rc = msg_lock(c, id, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	if (!any)
		rc = perm_check(c, &v.q->object, 4);
	if (rc == 0)
		*ret = (struct msg_status){
			.id = id,
			.object = v.q->object,
			.bytes = v.q->bytes,
			.qbytes = v.q->qbytes,
			.count = v.q->count,
			.stime = v.q->stime,
			.rtime = v.q->rtime,
			.lspid = v.q->lspid,
			.lrpid = v.q->lrpid,
		};
	msg_unlock(c, &v, &none);
	return rc;
}

int msg_set(struct caller *c, int32_t id, uint32_t uid, uint32_t gid, uint32_t mode,
	    uint64_t qbytes, int64_t now)
{
	struct thread_shm *self = region_self(c);
	uint64_t msgmnb = load_relaxed(&region_header(c->base)->limits.msgmnb); /* any time's */
	struct msg_wakes wakes = {0};
	struct msg_view v;
	int rc = msg_lock(c, id, &v);

	if (rc != OUTCOME_DONE)
		return rc;
	rc = perm_check_owner(c, &v.q->object);
	if (rc == 0 && qbytes > msgmnb && !c->creds->cap_sys_resource)
		rc = -EPERM;
	if (rc == 0 && (uid == UINT32_MAX || gid == UINT32_MAX))
		rc = -EINVAL;
	if (rc == 0) {
		self->set_uid = uid;
		self->set_gid = gid;
		self->set_mode = (v.q->object.mode & ~0777u) | (mode & 0777);
		self->set_qbytes = qbytes;
		self->set_time = now;
		self->set_changes = v.q->changes + 1;
		self->op_time = now;
		msg_begin(self, &v, OP_SET); /* MSG_L1 commit */
		msg_apply_set(v.q, self);
		msg_admit(c, &v, self, now, &wakes);
		msg_check_receivers(c, &v, &wakes);
		msg_end(self);
	}
	msg_unlock(c, &v, &wakes);
	return rc;
}

int msg_remove(struct caller *c, int32_t id)
{
	struct thread_shm *self = region_self(c);
	struct msg_wakes wakes = {0};
	struct msg_view v;
	int rc = self->op == OP_PURGE ? msg_purge(c, c->thread_ix) : OUTCOME_DONE;

	if (rc == OUTCOME_DONE)
		rc = msg_lock(c, id, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	rc = perm_check_owner(c, &v.q->object);
	if (rc == 0) {
		msg_begin(self, &v, OP_REMOVE);
		store_crash(&v.q->object.live, 0); /* ID_P1/R MSG_L1 commit */
		msg_apply_removal(c, &v, self, &wakes);
	}
	msg_unlock(c, &v, &wakes);
	return rc;
}

/* A death between the two stores of purge_one(): the block is still in its chain, which is the only
 * way to the next one, so it is not given back by its name. */
static void drop_void_name(const struct queue_shm *q, struct thread_shm *t)
{
	uint32_t ref = t->name_ref[NAME_FLY];
	bool is_void = ref == q->head_ref;

	for (uint32_t k = 0; k < QUEUE_CACHES; k++)
		is_void |= ref == q->cache_ref[k];
	if (is_void)
		store_crash(&t->name_ref[NAME_FLY], 0); /* MSG_B1 */
}

/* One block of the chain that begins at *head, by way of a name. */
static int purge_one(struct caller *c, uint32_t thread_ix, uint32_t *head, uint32_t *left)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct msg_shm *m = msg_at(c->base, *head);

	store_crash(&t->name_ref[NAME_FLY], *head);      /* MSG_B1 */
	store_crash(head, m && *left ? m->next_ref : 0); /* MSG_B1 */
	*left -= *left > 0;                              /* a chain that bites its tail ends, too */
	return arena_give_of(c, thread_ix, NAME_FLY);
}

int msg_purge(struct caller *c, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	uint32_t left = msg_chain_bound(c->base);
	struct queue_shm *q;
	int rc;

	if (!t || t->op != OP_PURGE || t->op_family != FAMILY_MSG)
		return OUTCOME_DONE;
	q = region_queue(c->base, t->op_ix);
	if (!q || load_acquire(&q->object.live)) { /* ID_P1/A: not removed after all */
		store_crash(&t->op, OP_NONE);
		return OUTCOME_DONE;
	}
	drop_void_name(q, t);
	rc = arena_give_of(c, thread_ix, NAME_FLY);
	while (rc == OUTCOME_DONE && q->head_ref)
		rc = purge_one(c, thread_ix, &q->head_ref, &left);
	for (uint32_t k = 0; k < QUEUE_CACHES; k++)
		while (rc == OUTCOME_DONE && q->cache_ref[k])
			rc = purge_one(c, thread_ix, &q->cache_ref[k], &left);
	return rc == OUTCOME_DONE ? ids_forget(c, FAMILY_MSG, thread_ix, t->op_ix, 0) : rc;
}

void msg_totals(const unsigned char *base, uint64_t *ret_count, uint64_t *ret_bytes)
{
	uint32_t hi = region_object_count(base, FAMILY_MSG);

	*ret_count = *ret_bytes = 0;
	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct queue_shm *q = region_queue(base, ix);

		if (!q || !load_acquire(&q->object.live)) /* ID_P1/A */
			continue;
		*ret_count += load_relaxed(&q->count); /* a sum of moments */
		*ret_bytes += load_relaxed(&q->bytes); /* as above */
	}
}
