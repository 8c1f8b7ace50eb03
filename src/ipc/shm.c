// SPDX-License-Identifier: MIT
/*
 * Segments: shmget and shmctl.
 *
 * The memory of a segment is a file beside the region, named after key and id; it is made by
 * whoever attaches first, so a creation is an entry in the table and nothing can be left half made.
 * A removed segment stays, found by its id alone, while somebody is attached. Whether somebody is,
 * the kernel says (a byte lock on the file that lives as long as any mapping, see client/attach.c);
 * what it cannot say is that nobody is just about to. So who destroys reads attach_seq, asks the
 * kernel, then looks under the segment's lock that no attach is in progress and that none has begun
 * or ended since.
 *
 *   SHM_L1  segment lock and intent
 *    word      segment_shm.object.lock (RLOCK_P1); segment_shm.intent
 *    states    intent 0 > 1 > 0 under the lock
 *    writers   holder of the lock: owner, mode, ctime, live > 0, an attach's begin
 *    order     RLOCK_P1
 *    stale-ok  readers without the lock (IPC_STAT, permission) may see owner and mode of two
 *              moments of one IPC_SET
 *    death     before intent: nothing happened. After: repair does the rest from the dead thread's
 *              slot. Mode bits, key and `live` change by one store each
 *    progress  the caller waits with nothing held
 *    tests     crash/scenes-shm, conform/shmctl
 *
 *   SHM_D1  destruction
 *    word      segment_shm.attach_seq, 32-bit; attach_shm.state
 *    states    counts up
 *    writers   attaching threads: under the lock at the begin, at the end without it
 *    order     R of an attach's end (seq, then the record leaves MAKING) pairs with A of
 *              shm_destroy (records, then seq): an attach that is not MAKING any more is in seq
 *    stale-ok  a count changed by an attach that failed: ask again
 *    death     attaching: the record is MAKING until its process is buried, the segment stays
 *              until then. Destroying: op PURGE before `live`: after it burial finishes it, before
 *              it repair of the lock takes the op away
 *    progress  lock-free but for the lock; who retries is beaten by an attach
 *    tests     unit/shm-attach, crash/scenes-pair, conform/shm-life
 */
#include "ipc/shm.h"

#include <errno.h>

#include "core/ids.h"
#include "core/perm.h"
#include "core/rlock.h"

#define FLAG_CREAT 01000
#define FLAG_EXCL  02000

static uint64_t pages_of(uint64_t bytes)
{
	return bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0);
}

/* ---- shmget ------------------------------------------------------------------------------ */

/* What Linux checks about a segment that has the key. */
static int check_existing(struct caller *c, uint32_t ix, const struct shm_request *rq)
{
	const struct segment_shm *s = shm_known_segment(c->base, ix);

	if ((rq->flags & FLAG_CREAT) && (rq->flags & FLAG_EXCL))
		return -EEXIST;
	if (rq->bytes > s->bytes)
		return -EINVAL;
	return perm_check_flags(c, &s->object, rq->flags);
}

/* A removed one that still has its key loses it here: its remover had not come so far. */
static bool find_key_locked(struct caller *c, int32_t key, uint32_t *ret_ix, int32_t *ret_id)
{
	uint32_t live;

	while (ids_find_key_locked(c, FAMILY_SHM, key, ret_ix, &live)) {
		if (!(region_known_object(c->base, FAMILY_SHM, *ret_ix)->mode & SEGMENT_DEST)) {
			*ret_id = (int32_t)(live - 1);
			return true;
		}
		ids_drop_key_locked(c, FAMILY_SHM, *ret_ix);
	}
	return false;
}

static int32_t id_at(struct caller *c, uint32_t ix)
{
	/* ID_P1/A */
	return (int32_t)(load_acquire(&region_known_object(c->base, FAMILY_SHM, ix)->live) - 1);
}

/* What may be said about a new segment before anything is looked up. */
static int check_size(const struct limits_shm *limits, uint64_t bytes)
{
	if (bytes < 1 || bytes > limits->shmmax)
		return -EINVAL;
	if (pages_of(bytes) > UINT64_MAX / PAGE_BYTES)
		return -ENOSPC;
	return 0;
}

static void fill_locked(struct caller *c, const struct shm_request *rq, uint32_t ix, int32_t id)
{
	struct segment_shm *s = shm_known_segment(c->base, ix);

	s->bytes = rq->bytes;
	s->atime = s->dtime = 0;
	s->inode = 0;
	store_release(&s->made, 0); /* SHM_F1/R: not published yet */
	s->id = id;
	s->key = rq->key;
	s->flags = (rq->flags & SHMF_NORESERVE ? SEGMENT_NORESERVE : 0) |
		   (rq->huge_shift & 63) << SEGMENT_HUGE_SHIFT;
	s->device = 0;
	s->cpid = c->pid;
	s->lpid = 0;
	s->creator_tid = rq->tid;
	s->lock_uid = 0;
	store_release(&s->attach_seq, 0); /* SHM_D1/R: not published yet */
	s->intent = 0;
	s->next_byte = 0;
	s->seal = shm_seal(s);
	ids_fill_locked(c, FAMILY_SHM, ix, ids_new_generation(c, FAMILY_SHM), rq->key, rq->flags,
			rq->now);
}

uint32_t shm_moment(const unsigned char *base)
{
	uint32_t *generation = &region_header(base)->table[FAMILY_SHM].generation;

	return load_relaxed(generation) | 1u << 31; /* compared with itself under the lock */
}

static bool is_admitted(const struct caller *c, const struct shm_request *rq)
{
	return rq->admitted && (!rq->admitted_at || rq->admitted_at == shm_moment(c->base));
}

static int create(struct caller *c, const struct shm_request *rq, int32_t *ret_id)
{
	struct header_shm *h = region_header(c->base);
	struct table_shm *table = &h->table[FAMILY_SHM];
	uint64_t lock = ids_table_lock(FAMILY_SHM), pages = pages_of(rq->bytes);
	uint32_t ix;
	int rc = check_size(&h->limits, rq->bytes);

	while (rc == OUTCOME_DONE) {
		rc = rlock_acquire(c, lock);
		if (rc != OUTCOME_DONE)
			break;
		if (rq->key != 0 && find_key_locked(c, rq->key, &ix, ret_id)) {
			rc = check_existing(c, ix, rq);
			rlock_release(c, lock);
			break;
		}
		if (table->total + pages < pages || table->total + pages > h->limits.shmall)
			rc = -ENOSPC;
		else
			rc = is_admitted(c, rq) ? ids_reserve_locked(c, FAMILY_SHM,
								     h->limits.shmmni, &ix, ret_id)
						: OUTCOME_ASK;
		if (rc == -EAGAIN) {
			rlock_release(c, lock);
			rc = ids_make_slot(c, FAMILY_SHM, ix);
			continue;
		}
		if (rc == OUTCOME_DONE) {
			fill_locked(c, rq, ix, *ret_id);
			ids_publish_locked(c, FAMILY_SHM, ix, *ret_id, pages);
			store_crash(&region_self(c)->op, OP_NONE);
			if (rq->ret_created)
				*rq->ret_created = true;
		}
		rlock_release(c, lock);
		break;
	}
	return rc;
}

int shm_get(struct caller *c, const struct shm_request *rq, int32_t *ret_id)
{
	uint32_t ix, live;
	int rc;

	if (rq->key != 0 && ids_find_key(c->base, FAMILY_SHM, rq->key, &ix, &live)) {
		struct object_shm *o = region_known_object(c->base, FAMILY_SHM, ix);
		bool removed = o->mode & SEGMENT_DEST;

		rc = check_existing(c, ix, rq);
		if (!removed && load_acquire(&o->live) == live) { /* ID_P1/A */
			*ret_id = (int32_t)(live - 1);
			return rc;
		}
	}
	if (rq->key != 0) {
		bool found;

		rc = rlock_acquire(c, ids_table_lock(FAMILY_SHM));
		if (rc != OUTCOME_DONE)
			return rc;
		found = find_key_locked(c, rq->key, &ix, ret_id);
		if (found)
			rc = check_existing(c, ix, rq);
		rlock_release(c, ids_table_lock(FAMILY_SHM));
		if (found)
			return rc;
		if (!(rq->flags & FLAG_CREAT))
			return -ENOENT;
	}
	return create(c, rq, ret_id);
}

/* ---- shmctl ------------------------------------------------------------------------------ */

/* Takes the segment's lock; -EIDRM when it has gone since its lookup. */
static int lock_segment(struct caller *c, int32_t id, uint32_t ix)
{
	uint64_t lock = ids_object_lock(FAMILY_SHM, ix);
	int rc = rlock_acquire(c, lock);

	if (rc != OUTCOME_DONE || id_at(c, ix) == id)
		return rc;
	rlock_release(c, lock);
	return -EIDRM;
}

static void unlock_segment(struct caller *c, uint32_t ix)
{
	rlock_release(c, ids_object_lock(FAMILY_SHM, ix));
}

int shm_stat(struct caller *c, int32_t id, bool by_index, bool any, struct shm_status *ret)
{
	struct object_shm *o;
	uint32_t ix;

	if (by_index) {
		uint32_t live;

		o = region_object(c->base, FAMILY_SHM, (uint32_t)id & (OBJECT_CAPACITY - 1));
		live = o ? load_acquire(&o->live) : 0; /* ID_P1/A */
		if (!live)
			return -EINVAL;
		id = (int32_t)(live - 1);
	}
	o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
	if (!o)
		return -EINVAL;
	if (!any && perm_check(c, o, 4) < 0)
		return -EACCES;
	ret->id = id;
	ret->ix = ix;
	ret->segment = *shm_known_segment(c->base, ix);
	fence_acquire(); /* ID_P1: the copy was read before `live` is looked at again */
	return id_at(c, ix) == id ? OUTCOME_DONE : -EIDRM;
}

static void finish_set(struct segment_shm *s, const struct thread_shm *t)
{
	s->object.uid = t->set_uid;
	s->object.gid = t->set_gid;
	s->object.mode = t->set_mode;
	s->object.ctime = s->intent_time;
	store_crash(&s->intent, 0);
}

int shm_set_owner(struct caller *c, int32_t id, uint32_t uid, uint32_t gid, uint32_t mode,
		  int64_t now)
{
	struct thread_shm *self = region_self(c);
	struct segment_shm *s;
	uint32_t ix;
	struct object_shm *o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
	int rc = o ? perm_check_owner(c, o) : -EINVAL;

	if (rc == 0 && (uid == UINT32_MAX || gid == UINT32_MAX))
		rc = -EINVAL;
	if (rc == 0)
		rc = lock_segment(c, id, ix);
	if (rc != OUTCOME_DONE)
		return rc;
	s = shm_known_segment(c->base, ix);
	self->set_uid = uid;
	self->set_gid = gid;
	self->set_mode = (o->mode & ~0777u) | (mode & 0777);
	s->intent_time = now;
	store_crash(&s->intent, 1); /* SHM_L1: the commit */
	finish_set(s, self);
	unlock_segment(c, ix);
	return OUTCOME_DONE;
}

void shm_repair_segment(struct caller *c, uint32_t dead_ix, uint32_t ix)
{
	struct segment_shm *s = shm_segment(c->base, ix);
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);

	if (s && s->intent)
		finish_set(s, dead);
	/* Before the commit: another may destroy it before the dead one is buried. */
	if (s && load_acquire(&s->object.live) && dead->op == OP_PURGE && /* ID_P1/A */
	    dead->op_family == FAMILY_SHM && dead->op_ix == ix)
		store_crash(&dead->op, OP_NONE);
}

/* Bytes that a user's locked segments count for. */
static uint64_t locked_bytes(const unsigned char *base, uint32_t uid)
{
	uint32_t hi = region_object_count(base, FAMILY_SHM);
	uint64_t sum = 0;

	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct segment_shm *s = shm_known_segment(base, ix);

		if (load_acquire(&s->object.live) &&
		    (s->object.mode & SEGMENT_LOCKED) && /* ID_P1/A */
		    s->lock_uid == uid)
			sum += shm_mapped_bytes(s->bytes);
	}
	return sum;
}

int shm_set_locked(struct caller *c, int32_t id, bool locked, uint64_t limit_bytes)
{
	const struct creds *who = c->creds;
	struct segment_shm *s;
	uint32_t ix;
	struct object_shm *o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
	int rc = OUTCOME_DONE;

	if (!o)
		return -EINVAL;
	if (!who->cap_ipc_lock &&
	    ((who->euid != o->uid && who->euid != o->cuid) || (locked && limit_bytes == 0)))
		return -EPERM;
	rc = lock_segment(c, id, ix);
	if (rc != OUTCOME_DONE)
		return rc;
	s = shm_known_segment(c->base, ix);
	if (shm_huge_shift(s)) {
		; /* huge pages stay in memory anyway; Linux does nothing either */
	} else if (!locked) {
		store_crash(&o->mode, o->mode & ~SEGMENT_LOCKED);
	} else if (!(o->mode & SEGMENT_LOCKED)) {
		limit_bytes &= ~(uint64_t)(PAGE_BYTES - 1);
		if (!who->cap_ipc_lock &&
		    locked_bytes(c->base, who->uid) + shm_mapped_bytes(s->bytes) > limit_bytes) {
			rc = -ENOMEM;
		} else {
			s->lock_uid = who->uid; /* the real one, as Linux counts */
			store_crash(&o->mode, o->mode | SEGMENT_LOCKED);
		}
	}
	unlock_segment(c, ix);
	return rc;
}

/* ---- Removal ----------------------------------------------------------------------------- */

int shm_mark_removed(struct caller *c, int32_t id, bool *marked)
{
	uint32_t ix;
	struct object_shm *o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
	int rc;

	if (!*marked) {
		rc = o ? perm_check_owner(c, o) : -EINVAL;
		if (rc == 0)
			rc = lock_segment(c, id, ix);
		if (rc != OUTCOME_DONE)
			return rc;
		store_crash(&o->mode, o->mode | SEGMENT_DEST); /* the commit */
		unlock_segment(c, ix);
		*marked = true;
	}
	if (!o || o->key == 0)
		return OUTCOME_DONE;
	rc = rlock_acquire(c, ids_table_lock(FAMILY_SHM));
	if (rc != OUTCOME_DONE)
		return rc;
	if (id_at(c, ix) == id)
		ids_drop_key_locked(c, FAMILY_SHM, ix);
	rlock_release(c, ids_table_lock(FAMILY_SHM));
	return OUTCOME_DONE;
}

bool shm_is_doomed(const unsigned char *base, const struct segment_shm *s)
{
	/* a limit, any moment's */
	return (s->object.mode & SEGMENT_DEST) ||
	       load_relaxed(&region_header(base)->limits.shm_rmid_forced) != 0;
}

/* Is somebody on the way to attach it? Under the segment's lock, so nobody can begin. */
static bool is_being_attached(struct caller *c, uint32_t ix, uint32_t gen)
{
	uint32_t hi = region_proc_count(c->base);

	for (uint32_t p = 0; p < hi; p++) {
		struct shm_walk w = shm_records(c->base, p);
		const struct attach_shm *r;

		while ((r = shm_next_record(&w)) != NULL)
			if (load_acquire(&r->state) == ATTACH_MAKING && /* SHM_D1/A */
			    r->segment_ix == ix && r->segment_gen == gen)
				return true;
	}
	return false;
}

int shm_destroy(struct caller *c, int32_t id, uint32_t seq)
{
	struct thread_shm *self = region_self(c);
	struct segment_shm *s;
	uint32_t ix;
	struct object_shm *o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
	int rc = o ? lock_segment(c, id, ix) : -EIDRM;

	if (rc != OUTCOME_DONE)
		return rc == -EIDRM ? OUTCOME_DONE : rc; /* somebody else did it */
	s = shm_known_segment(c->base, ix);
	if (!shm_is_doomed(c->base, s)) {
		rc = OUTCOME_DONE;
	} else if (is_being_attached(c, ix, o->gen) ||
		   load_acquire(&s->attach_seq) != seq) { /* SHM_D1/A */
		rc = OUTCOME_RETRY;
	} else {
		self->op_family = FAMILY_SHM;
		self->op_ix = ix;
		store_crash(&self->op, OP_PURGE);
		store_release(&o->live, 0); /* ID_P1/R commit */
		crash_barrier();
	}
	unlock_segment(c, ix);
	return rc;
}

int shm_purge(struct caller *c, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct segment_shm *s;
	uint32_t ix;

	if (!t || t->op != OP_PURGE || t->op_family != FAMILY_SHM)
		return OUTCOME_DONE;
	ix = t->op_ix;
	s = shm_segment(c->base, ix);
	if (!s || load_acquire(&s->object.live)) { /* ID_P1/A: not removed after all */
		store_crash(&t->op, OP_NONE);
		return OUTCOME_DONE;
	}
	if (load_acquire(&s->attach_seq) && c->ops->drop_segment) /* SHM_D1/A */
		c->ops->drop_segment(c, s);
	return ids_forget(c, FAMILY_SHM, thread_ix, ix, pages_of(s->bytes));
}

/* ---- For repair and burial --------------------------------------------------------------- */

void shm_created(struct caller *c, uint32_t thread_ix)
{
	/* a segment owns no blocks */
	(void)c;
	(void)thread_ix;
}

uint64_t shm_total(const unsigned char *base, uint32_t ix)
{
	const struct segment_shm *s = shm_segment(base, ix);

	return s ? pages_of(s->bytes) : 0;
}
