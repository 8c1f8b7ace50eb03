// SPDX-License-Identifier: MIT
/*
 * semget and semctl. Creation makes everything invisible first (words with the new generation,
 * the side array), then publishes the set under the table's lock; removal takes it away under the
 * set's lock and gives its memory back afterwards, one lock at a time. Cards: ids.c, sem_set.c.
 */
#include "ipc/sem.h"

#include <errno.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/perm.h"
#include "core/rlock.h"
#include "ipc/sem_priv.h"

#define FLAG_CREAT 01000
#define FLAG_EXCL  02000

/* Sets this small give each semaphore a cache line of its own. */
#define SPREAD_SEMS 8u

/* ---- semget ------------------------------------------------------------------------------ */

static uint32_t stride_for(uint32_t nsems)
{
	return nsems <= SPREAD_SEMS ? REF_UNIT : SEM_CELL_BYTES;
}

/* What Linux checks about a set that has the key. */
static int check_existing(struct caller *c, uint32_t ix, int nsems, uint32_t flags)
{
	struct set_shm *set =
		(struct set_shm *)(void *)region_known_object(c->base, FAMILY_SEM, ix);

	if ((flags & FLAG_CREAT) && (flags & FLAG_EXCL))
		return -EEXIST;
	if (nsems > (int)load_relaxed(&set->nsems)) /* the caller looks at `live` again */
		return -EINVAL;
	return perm_check_flags(c, &set->object, flags);
}

/* Blocks for a new set: words in FLY, side array in SIDE. */
static int take_blocks(struct caller *c, uint32_t nsems, uint32_t gen)
{
	struct thread_shm *self = region_self(c);
	uint64_t words_bytes = (uint64_t)nsems * stride_for(nsems);
	uint64_t side_bytes = (uint64_t)nsems * sizeof(struct semq_shm);
	unsigned char *words, *side;
	int rc = OUTCOME_DONE;

	if (!self->name_ref[NAME_FLY])
		rc = arena_take(c, ARENA_SEM, NAME_FLY, words_bytes);
	if (rc == OUTCOME_DONE && !self->name_ref[NAME_SIDE])
		rc = arena_take(c, ARENA_GENERAL, NAME_SIDE, side_bytes);
	if (rc != OUTCOME_DONE)
		return rc;
	words = region_block(c->base, self->name_ref[NAME_FLY], words_bytes);
	side = region_block(c->base, self->name_ref[NAME_SIDE], side_bytes);
	if (!words || !side)
		return -ENOTRECOVERABLE;
	for (uint32_t s = 0; s < nsems; s++) {
		struct sem_shm *sem =
			(struct sem_shm *)(void *)(words + (uint64_t)s * stride_for(nsems));

		store_relaxed(&sem->otime, 0);                  /* not published yet */
		store_release(&sem->word, SEM_WORD(0, gen, 0)); /* SEM_G1/R */
		((struct semq_shm *)(void *)side)[s] = (struct semq_shm){0};
	}
	return OUTCOME_DONE;
}

static int give_blocks(struct caller *c)
{
	int rc = arena_give(c, NAME_FLY);

	return rc == OUTCOME_DONE ? arena_give(c, NAME_SIDE) : rc;
}

static int create(struct caller *c, int32_t key, uint32_t nsems, uint32_t flags, int64_t now,
		  int32_t *ret_id)
{
	struct thread_shm *self = region_self(c);
	struct header_shm *h = region_header(c->base);
	struct table_shm *table = &h->table[FAMILY_SEM];
	uint64_t lock = ids_table_lock(FAMILY_SEM);
	uint32_t gen = ids_new_generation(c, FAMILY_SEM), ix, live;
	struct set_shm *set;
	int rc = give_blocks(c); /* left by a call that was busy or cut short */

	if (rc == OUTCOME_DONE)
		rc = take_blocks(c, nsems, gen);
	for (; rc == OUTCOME_DONE;) {
		rc = rlock_acquire(c, lock);
		if (rc != OUTCOME_DONE)
			break;
		if (key != 0 && ids_find_key_locked(c, FAMILY_SEM, key, &ix, &live)) {
			*ret_id = (int32_t)(live - 1);
			rc = check_existing(c, ix, (int)nsems, flags);
			rlock_release(c, lock);
			break;
		}
		rc = table->total + nsems > load_relaxed(&h->limits.semmns) /* a limit: any time */
			     ? -ENOSPC
			     : ids_reserve_locked(c, FAMILY_SEM, h->limits.semmni, &ix, ret_id);
		if (rc == -EAGAIN) {
			rlock_release(c, lock);
			rc = ids_make_slot(c, FAMILY_SEM, ix);
			continue;
		}
		if (rc == OUTCOME_DONE) {
			set = (struct set_shm *)(void *)region_known_object(c->base, FAMILY_SEM,
									    ix);
			/* Relaxed: published with `live`, as what ids_fill_locked() stores. */
			store_relaxed(&set->nsems, nsems);
			store_relaxed(&set->stride, stride_for(nsems));
			store_relaxed(&set->words_ref, self->name_ref[NAME_FLY]);
			store_relaxed(&set->side_ref, self->name_ref[NAME_SIDE]);
			set->seal = sem_seal(nsems, gen);
			set->intent = INTENT_NONE;
			set->undo_ref = 0;
			set->arrival = 0;
			set->alter_head = set->alter_tail = set->const_head = set->const_tail = 0;
			set->complex_count = set->const_count = set->waiting = 0;
			ids_fill_locked(c, FAMILY_SEM, ix, gen, key, flags, now);
			ids_publish_locked(c, FAMILY_SEM, ix, *ret_id, nsems);
			sem_created(c, c->thread_ix);
			store_crash(&self->op, OP_NONE);
		}
		rlock_release(c, lock);
		break;
	}
	if (rc != OUTCOME_BUSY)
		(void)give_blocks(c); /* BUSY here: they stay named, and go with the next call */
	return rc;
}

void sem_created(struct caller *c, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);

	(void)c;
	store_crash(&t->name_ref[NAME_FLY], 0);
	store_crash(&t->name_ref[NAME_SIDE], 0);
}

uint64_t sem_total(const unsigned char *base, uint32_t ix)
{
	const struct set_shm *set = region_set(base, ix);

	return set ? set->nsems : 0;
}

int sem_get(struct caller *c, int32_t key, int nsems, uint32_t flags, int64_t now, int32_t *ret_id)
{
	const struct limits_shm *limits = &region_header(c->base)->limits;
	uint32_t ix, live;
	int rc;

	if (nsems < 0 || (uint64_t)nsems > limits->semmsl)
		return -EINVAL;
	if (key != 0 && ids_find_key(c->base, FAMILY_SEM, key, &ix, &live)) {
		rc = check_existing(c, ix, nsems, flags);
		if (load_acquire(&region_known_object(c->base, FAMILY_SEM, ix)->live) ==
		    live) { /* ID_P1/A */
			*ret_id = (int32_t)(live - 1);
			return rc;
		}
	}
	if (key != 0) {
		bool found;

		rc = rlock_acquire(c, ids_table_lock(FAMILY_SEM));
		if (rc != OUTCOME_DONE)
			return rc;
		found = ids_find_key_locked(c, FAMILY_SEM, key, &ix, &live);
		if (found) {
			*ret_id = (int32_t)(live - 1);
			rc = check_existing(c, ix, nsems, flags);
		}
		rlock_release(c, ids_table_lock(FAMILY_SEM));
		if (found)
			return rc;
		if (!(flags & FLAG_CREAT))
			return -ENOENT;
	}
	return nsems == 0 ? -EINVAL : create(c, key, (uint32_t)nsems, flags, now, ret_id);
}

/* ---- semctl: one semaphore --------------------------------------------------------------- */

static int view_and_check(struct caller *c, int32_t id, uint32_t wanted, struct sem_view *v)
{
	int rc = sem_view_id(c, id, v);

	return rc < 0 ? rc : perm_check(c, &v->set->object, wanted);
}

/* Takes the set's lock; -EIDRM when the set has gone meanwhile. */
static int lock_set(struct caller *c, struct sem_view *v)
{
	int rc = rlock_acquire(c, sem_lock_off(v));

	if (rc != OUTCOME_DONE)
		return rc;
	v->side = sem_view_stale(v) ? NULL : sem_side(c, v);
	if (v->side)
		return OUTCOME_DONE;
	rc = sem_view_stale(v) ? -EIDRM : -ENOTRECOVERABLE;
	rlock_release(c, sem_lock_off(v));
	return rc;
}

int sem_get_one(struct caller *c, int32_t id, int semnum, enum sem_get_what what,
		int32_t *ret_value)
{
	struct sem_view v;
	struct sem_shm *s;
	uint64_t word;
	int rc = view_and_check(c, id, 4, &v);

	if (rc < 0)
		return rc;
	if (semnum < 0 || (uint32_t)semnum >= v.nsems)
		return -EINVAL;
	s = view_word(&v, (uint32_t)semnum);
	do {
		word = load_acquire(&s->word); /* SEM_W1/A */
		if (SEM_WORD_GEN(word) != v.gen)
			return -EIDRM;
		/* Held: an operation on several semaphores may be half out. */
		rc = word & SEM_HELD ? sem_word_busy(c, s, word) : OUTCOME_DONE;
	} while (rc == OUTCOME_DONE && (word & SEM_HELD));
	if (rc != OUTCOME_DONE)
		return rc;
	if (word & SEM_SLOW) {
		rc = lock_set(c, &v);
		if (rc != OUTCOME_DONE)
			return rc;
		word = load_acquire(&s->word); /* SEM_W1/A */
		if (what == SEM_GET_NCNT || what == SEM_GET_ZCNT)
			*ret_value = sem_count(c, &v, (uint32_t)semnum, what == SEM_GET_ZCNT);
		sem_unlock(c, &v, NULL);
		if (word & SEM_HELD)
			return sem_get_one(c, id, semnum, what, ret_value);
	} else {
		*ret_value = 0;
	}
	if (what == SEM_GET_VALUE)
		*ret_value = SEM_WORD_VALUE(word);
	else if (what == SEM_GET_PID)
		*ret_value = (int32_t)SEM_WORD_TAG(word);
	return OUTCOME_DONE;
}

/* Stores the values in the shadow (used semaphores) with SETVAL's effects. The words are claimed.
 */
static void set_values(struct caller *c, const struct sem_view *v, int64_t now,
		       struct sem_wakes *wakes)
{
	v->set->intent_pid = c->pid;
	v->set->intent_time = now;
	v->set->intent_otime_ix = ~0u;
	sem_commit(c, v, INTENT_SETVAL, c->thread_ix, 0, wakes);
	sem_clear_shadow(c, v, NULL, 0);
	sem_serve(c, v, NULL, 0, wakes);
}

int sem_set_one(struct caller *c, int32_t id, int semnum, int32_t value, int64_t now)
{
	struct sem_wakes wakes = {0};
	struct semop_shm op = {0};
	struct semq_shm *side;
	struct sem_view v;
	int rc;

	if (value < 0 || value > SEMVAL_MAX)
		return -ERANGE;
	rc = sem_view_id(c, id, &v);
	if (rc < 0)
		return rc;
	if (semnum < 0 || (uint32_t)semnum >= v.nsems)
		return -EINVAL;
	rc = perm_check(c, &v.set->object, 2);
	if (rc == 0)
		rc = lock_set(c, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	op.num = (uint16_t)semnum;
	rc = sem_claim(c, &v, &op, 1);
	if (rc == OUTCOME_DONE) {
		side = sem_side(c, &v);
		side[semnum].next_value = (uint16_t)value;
		side[semnum].used = 1;
		set_values(c, &v, now, &wakes);
		sem_settle_words(c, &v, &op, 1);
	}
	sem_unlock(c, &v, &wakes);
	return rc;
}

/* ---- semctl: all semaphores -------------------------------------------------------------- */

/* A block named SIDE for nsems values. */
static int values_block(struct caller *c, const struct sem_view *v, uint16_t **ret)
{
	uint64_t bytes = (uint64_t)v->nsems * sizeof(uint16_t);
	int rc = arena_give(c, NAME_SIDE);

	if (rc == OUTCOME_DONE)
		rc = arena_take(c, ARENA_GENERAL, NAME_SIDE, bytes);
	if (rc != OUTCOME_DONE)
		return rc;
	*ret = region_block(c->base, region_self(c)->name_ref[NAME_SIDE], bytes);
	return *ret ? OUTCOME_DONE : -ENOTRECOVERABLE;
}

int sem_get_all(struct caller *c, int32_t id, uint16_t *user)
{
	uint16_t *values;
	struct sem_view v;
	int rc = view_and_check(c, id, 4, &v);

	if (rc == 0)
		rc = values_block(c, &v, &values);
	if (rc != OUTCOME_DONE)
		return rc;
	rc = lock_set(c, &v);
	if (rc == OUTCOME_DONE) {
		rc = v.set->seal == sem_seal(v.nsems, v.gen) ? sem_claim(c, &v, NULL, 0)
							     : -ENOTRECOVERABLE;
		for (uint32_t s = 0; rc == OUTCOME_DONE && s < v.nsems; s++)
			values[s] = (uint16_t)SEM_WORD_VALUE(
				load_acquire(&view_word(&v, s)->word)); /* SEM_W1/A */
		sem_settle_words(c, &v, NULL, 0);
		sem_unlock(c, &v, NULL);
	}
	if (rc == OUTCOME_DONE)
		rc = c->ops->copy_out(c, user, values, (size_t)v.nsems * sizeof(*values));
	if (rc != OUTCOME_BUSY)
		(void)arena_give(c, NAME_SIDE);
	return rc;
}

int sem_set_all(struct caller *c, int32_t id, const uint16_t *user, int64_t now)
{
	struct sem_wakes wakes = {0};
	struct semq_shm *side;
	uint16_t *values;
	struct sem_view v;
	int rc = view_and_check(c, id, 2, &v);

	if (rc == 0)
		rc = values_block(c, &v, &values);
	if (rc != OUTCOME_DONE)
		return rc;
	rc = c->ops->copy_in(c, values, user, (size_t)v.nsems * sizeof(*values));
	for (uint32_t s = 0; rc == 0 && s < v.nsems; s++)
		if (values[s] > SEMVAL_MAX)
			rc = -ERANGE;
	if (rc == 0)
		rc = lock_set(c, &v);
	if (rc == OUTCOME_DONE) {
		rc = sem_claim(c, &v, NULL, 0);
		side = sem_side(c, &v);
		if (rc == OUTCOME_DONE && !side)
			rc = -ENOTRECOVERABLE;
		for (uint32_t s = 0; rc == OUTCOME_DONE && s < v.nsems; s++) {
			side[s].next_value = values[s];
			side[s].used = 1;
		}
		if (rc == OUTCOME_DONE) {
			set_values(c, &v, now, &wakes);
			sem_settle_words(c, &v, NULL, 0);
		}
		sem_unlock(c, &v, &wakes);
	}
	if (rc != OUTCOME_BUSY)
		(void)arena_give(c, NAME_SIDE);
	return rc;
}

/* ---- semctl: the set --------------------------------------------------------------------- */

int sem_stat(struct caller *c, int32_t id, bool by_index, bool any, struct sem_status *ret)
{
	struct sem_view v;
	int rc;

	if (by_index) {
		struct object_shm *o =
			region_object(c->base, FAMILY_SEM, (uint32_t)id & (OBJECT_CAPACITY - 1));
		uint32_t live = o ? load_acquire(&o->live) : 0; /* ID_P1/A */

		if (!live)
			return -EINVAL;
		id = (int32_t)(live - 1);
	}
	rc = sem_view_id(c, id, &v);
	if (rc == 0 && !any)
		rc = perm_check(c, &v.set->object, 4);
	if (rc < 0)
		return rc;
	ret->id = id;
	ids_copy_object(&v.set->object, &ret->object);
	ret->nsems = v.nsems;
	ret->otime = 0;
	for (uint32_t s = 0; s < v.nsems; s++) {
		int64_t t =
			load_relaxed(&view_word(&v, s)->otime); /* a whole second, any moment's */

		if (t > ret->otime)
			ret->otime = t;
	}
	return sem_view_stale(&v) ? -EIDRM : OUTCOME_DONE;
}

int sem_set_owner(struct caller *c, int32_t id, uint32_t uid, uint32_t gid, uint32_t mode,
		  int64_t now)
{
	struct thread_shm *self = region_self(c);
	struct sem_view v;
	int rc = sem_view_id(c, id, &v);

	if (rc == 0)
		rc = perm_check_owner(c, &v.set->object);
	if (rc == 0 && (uid == UINT32_MAX || gid == UINT32_MAX))
		rc = -EINVAL;
	if (rc == 0)
		rc = lock_set(c, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	self->set_uid = uid;
	self->set_gid = gid;
	self->set_mode = (v.set->object.mode & ~0777u) | (mode & 0777);
	v.set->intent_time = now;
	sem_commit(c, &v, INTENT_SET, c->thread_ix, 0, NULL);
	sem_unlock(c, &v, NULL);
	return OUTCOME_DONE;
}

int sem_remove(struct caller *c, int32_t id)
{
	struct sem_wakes wakes = {0};
	struct thread_shm *self = region_self(c);
	struct sem_view v;
	int rc;

	if (self->op == OP_PURGE) { /* an earlier removal was busy at its last part */
		rc = sem_purge(c, c->thread_ix);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	rc = sem_view_id(c, id, &v);
	if (rc == 0)
		rc = perm_check_owner(c, &v.set->object);
	if (rc == 0)
		rc = lock_set(c, &v);
	if (rc != OUTCOME_DONE)
		return rc;
	rc = sem_claim(c, &v, NULL, 0);
	if (rc == OUTCOME_DONE)
		sem_commit(c, &v, INTENT_RMID, c->thread_ix, 0, &wakes);
	sem_unlock(c, &v, &wakes);
	return rc;
}

int sem_purge(struct caller *c, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct set_shm *set;
	uint32_t ix;
	int rc;

	if (!t || t->op != OP_PURGE || t->op_family != FAMILY_SEM)
		return OUTCOME_DONE;
	ix = t->op_ix;
	set = region_set(c->base, ix);
	if (!set || load_acquire(&set->object.live)) { /* ID_P1/A: not removed after all */
		store_crash(&t->op, OP_NONE);
		return OUTCOME_DONE;
	}
	/* Named by a purge that was cut short: the name has it, for once freed it may be another's.
	 */
	if (t->name_ref[NAME_FLY] && t->name_ref[NAME_FLY] == set->words_ref)
		store_crash(&set->words_ref, 0);
	if (t->name_ref[NAME_FLY] && t->name_ref[NAME_FLY] == set->side_ref)
		store_crash(&set->side_ref, 0);
	rc = arena_give_of(c, thread_ix, NAME_FLY);
	if (rc == OUTCOME_DONE && set->words_ref) {
		store_crash(&t->name_ref[NAME_FLY], set->words_ref);
		store_crash(&set->words_ref, 0);
		rc = arena_give_of(c, thread_ix, NAME_FLY);
	}
	if (rc == OUTCOME_DONE && set->side_ref) {
		store_crash(&t->name_ref[NAME_FLY], set->side_ref);
		store_crash(&set->side_ref, 0);
		rc = arena_give_of(c, thread_ix, NAME_FLY);
	}
	return rc == OUTCOME_DONE ? ids_forget(c, FAMILY_SEM, thread_ix, ix, set->nsems) : rc;
}
