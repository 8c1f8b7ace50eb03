// SPDX-License-Identifier: MIT
/*
 * SEM_UNDO: one record for each process and set, shared by the process's threads, kept by exec.
 *
 * Two lists hold a record. The set's chain, under the set's lock, is the truth: what is in it is
 * cleared by SETVAL and dropped by removal. The process's list, under a lock in its slot, is a
 * superset written first, and only the process (or its burial) takes records out of it. A record
 * that a removed set left behind (gen 0) stays in the process's list and is used again.
 * The entries themselves, adj[s], have no lock: who holds word s of the set may touch them.
 *
 *   UNDO_P1  undo record
 *    word      undo_shm.gen, undo_shm.owner_link
 *    states    gen 0, owner 0 (reusable) > gen 0, owner t (being linked) > gen g, owner 0 > gen 0
 *    writers   reserve: the process's undo lock. Link and drop: the set's lock
 *    order     R of the gen store in link_record pairs with A of sem_undo_at; publishes adj
 *    stale-ok  a record in the process's list with gen 0
 *    damage    the set cannot be locked any more: gen 0, owner IN_CHAIN, and never used again
 *    death     reserved, not in a chain: burial of the thread sets owner 0. In the chain, gen 0:
 *              repair of the set finishes it. Applying: the set's intent (SEM_L1) redoes it
 *    progress  found last time: no lock. Else blocks
 *    tests     unit/sem-undo, conform/sem_undo
 */
#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/arena.h"
#include "core/ids.h"
#include "core/rlock.h"
#include "ipc/sem_priv.h"

/* For a walk, which may be long: a record but for its entries. */
static struct undo_shm *head_at(struct caller *c, uint32_t ref)
{
	return ref ? region_block(c->base, ref, sizeof(struct undo_shm)) : NULL;
}

static struct undo_shm *record_at(struct caller *c, uint32_t ref)
{
	struct undo_shm *u = head_at(c, ref);
	uint64_t room = u ? arena_capacity(c->base, ref) : 0;

	if (room < sizeof(*u) || u->capacity > (room - sizeof(*u)) / sizeof(u->adj[0]))
		return NULL;
	return u;
}

struct undo_shm *sem_undo_at(struct caller *c, uint32_t ref, const struct sem_view *v)
{
	struct undo_shm *u = record_at(c, ref);

	if (!u || load_acquire(&u->gen) != v->gen || u->set_ix != v->ix || /* UNDO_P1/A */
	    u->capacity < v->nsems)
		return NULL;
	return u;
}

static uint64_t undo_lock_off(uint32_t proc_ix)
{
	return PROCS_OFF + (uint64_t)proc_ix * sizeof(struct proc_shm) +
	       offsetof(struct proc_shm, undo_lock);
}

/* Linux looks at the record used last first, at exit. Threads may race here: any order of theirs
 * is as good. Null: damaged meanwhile. */
static void touch(struct proc_shm *proc, struct undo_shm *u)
{
	if (u && (u->stamp != proc->undo_clock || u->stamp == 0))
		u->stamp = ++proc->undo_clock;
}

/* In the process's list: the record of this set, else one that can be used again. Lock held, but by
 * who only looks. */
static uint32_t search_list(struct caller *c, const struct proc_shm *proc, const struct sem_view *v,
			    uint32_t *ret_reusable)
{
	uint32_t ref = proc->undo_ref;

	*ret_reusable = 0;
	for (uint32_t n = 0; ref && n < OBJECT_CAPACITY * 2; n++) {
		struct undo_shm *u = head_at(c, ref);
		uint32_t gen;

		if (!u)
			return 0;
		gen = load_acquire(&u->gen); /* UNDO_P1/A */
		if (gen == v->gen && u->set_ix == v->ix)
			return ref;
		if (gen == 0 && u->owner_link == 0 && u->capacity >= v->nsems && !*ret_reusable)
			*ret_reusable = ref;
		ref = u->next_in_proc_ref;
	}
	return 0;
}

bool sem_undo_owes(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen,
		   uint32_t nsems)
{
	struct caller c = {.base = (unsigned char *)(uintptr_t)base};
	const struct proc_shm *proc = region_proc(base, proc_ix);
	const struct sem_view v = {.ix = ix, .gen = gen, .nsems = nsems};
	uint32_t reusable, ref = proc ? search_list(&c, proc, &v, &reusable) : 0;
	const struct undo_shm *u = record_at(&c, ref);
	uint64_t bytes = u ? arena_capacity(base, ref) : 0, room = 0;

	if (bytes > sizeof(*u))
		room = (bytes - sizeof(*u)) / sizeof(u->adj[0]);
	for (uint32_t num = 0; num < nsems && num < room; num++)
		if (u->adj[num])
			return true;
	return false;
}

void sem_undo_announce(struct caller *c)
{
	uint32_t *owners = &region_header(c->base)->undo_owners;

	(void)fetch_add(owners, 1); /* WATCH_P1/R: that it has changed is all */
	futex_wake(owners, INT_MAX);
}

/* A record for this set, reserved for the thread in undo_reserved; or, when the process has one,
 * that one in *ret_found. */
static int reserve(struct caller *c, const struct sem_view *v, uint32_t *ret_found)
{
	struct thread_shm *self = region_self(c);
	struct proc_shm *proc = region_known_proc(c->base, c->proc_ix);
	uint64_t bytes = sizeof(struct undo_shm) + (uint64_t)v->nsems * sizeof(int16_t);
	bool is_first = !proc->undo_ref;
	uint32_t reusable, ref;
	struct undo_shm *u;
	int rc;

	for (;;) {
		rc = rlock_acquire(c, undo_lock_off(c->proc_ix));
		if (rc != OUTCOME_DONE)
			return rc;
		*ret_found = search_list(c, proc, v, &reusable);
		ref = self->name_ref[NAME_POCKET];
		if (*ret_found || reusable || (ref && arena_capacity(c->base, ref) >= bytes))
			break;
		rlock_release(c, undo_lock_off(c->proc_ix));
		rc = arena_give(c, NAME_POCKET);
		if (rc == OUTCOME_DONE)
			rc = arena_take(c, ARENA_GENERAL, NAME_POCKET, bytes);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	if (*ret_found) {
		rlock_release(c, undo_lock_off(c->proc_ix));
		return OUTCOME_DONE;
	}
	if (reusable) {
		u = record_at(c, reusable);
		if (!u)
			goto damaged;
		store_crash(&self->undo_reserved, reusable);
		store_crash(&u->owner_link, c->thread_ix + 1);
	} else {
		u = region_block(c->base, ref, bytes);
		if (!u)
			goto damaged;
		*u = (struct undo_shm){.owner_link = c->thread_ix + 1, .proc_ix = c->proc_ix};
		u->capacity =
			(uint32_t)((arena_capacity(c->base, ref) - sizeof(*u)) / sizeof(u->adj[0]));
		u->next_in_proc_ref = proc->undo_ref;
		store_crash(&self->undo_reserved, ref);
		store_crash(&proc->undo_ref, ref); /* from here on the process's */
		store_crash(&self->name_ref[NAME_POCKET], 0);
	}
	rlock_release(c, undo_lock_off(c->proc_ix));
	if (is_first)
		sem_undo_announce(c);
	return OUTCOME_DONE;
damaged:
	rlock_release(c, undo_lock_off(c->proc_ix));
	return -ENOTRECOVERABLE;
}

/* Puts the reserved record into the set's chain. The set's lock is held. */
static void link_record(struct thread_shm *self, struct undo_shm *u, uint32_t ref,
			const struct sem_view *v)
{
	for (uint32_t s = 0; s < v->nsems; s++)
		u->adj[s] = 0;
	u->set_ix = v->ix;
	u->nsems = v->nsems;
	u->stamp = 0;
	u->next_in_set_ref = v->set->undo_ref;
	store_crash(&v->set->undo_ref, ref); /* commit; the rest repair can do */
	store_crash(&u->gen, v->gen);        /* UNDO_P1/R */
	store_crash(&u->owner_link, 0);
	store_crash(&self->undo_reserved, 0);
}

/* The process's record in the set's chain: another thread of it may have been faster. */
static uint32_t find_in_chain(struct caller *c, const struct sem_view *v)
{
	uint32_t ref = v->set->undo_ref;

	for (uint32_t n = 0; ref && n < PROC_CAPACITY * 2; n++) {
		struct undo_shm *u = record_at(c, ref);

		if (!u)
			return 0;
		if (u->proc_ix == c->proc_ix && u->gen == v->gen)
			return ref;
		ref = u->next_in_set_ref;
	}
	return 0;
}

int sem_undo_find(struct caller *c, const struct sem_view *v, uint32_t *inout_ref)
{
	struct thread_shm *self = region_self(c);
	struct proc_shm *proc = region_known_proc(c->base, c->proc_ix);
	struct undo_shm *u = *inout_ref ? sem_undo_at(c, *inout_ref, v) : NULL;
	uint32_t found;
	int rc;

	if (u && u->proc_ix == c->proc_ix) {
		touch(proc, u);
		return OUTCOME_DONE;
	}
	if (!self->undo_reserved) {
		rc = reserve(c, v, &found);
		if (rc != OUTCOME_DONE)
			return rc;
		if (found) {
			*inout_ref = found;
			touch(proc, record_at(c, found));
			return OUTCOME_DONE;
		}
	}
	u = record_at(c, self->undo_reserved);
	if (!u || u->capacity < v->nsems) { /* reserved by a call that was for another set */
		rc = sem_undo_release(c, c->thread_ix);
		return rc != OUTCOME_DONE ? rc
		       : u                ? sem_undo_find(c, v, inout_ref)
					  : -ENOTRECOVERABLE;
	}
	rc = rlock_acquire(c, sem_lock_off(v));
	if (rc != OUTCOME_DONE)
		return rc;
	if (sem_view_stale(v)) {
		rlock_release(c, sem_lock_off(v));
		rc = sem_undo_release(c, c->thread_ix);
		return rc != OUTCOME_DONE ? rc : -EIDRM;
	}
	found = find_in_chain(c, v);
	if (!found) {
		found = self->undo_reserved;
		link_record(self, u, found, v);
	}
	rlock_release(c, sem_lock_off(v));
	*inout_ref = found;
	touch(proc, record_at(c, found));
	return self->undo_reserved ? sem_undo_release(c, c->thread_ix) : OUTCOME_DONE;
}

/* Ends a reservation that led to nothing: the record is reusable again. */
int sem_undo_release(struct caller *c, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct undo_shm *u = record_at(c, t->undo_reserved);

	if (u && load_acquire(&u->gen) == 0 && u->owner_link == thread_ix + 1) /* UNDO_P1/A */
		store_crash(&u->owner_link, 0);
	store_crash(&t->undo_reserved, 0);
	return OUTCOME_DONE;
}

void sem_undo_finish_link(struct caller *c, struct set_shm *set, uint32_t dead_ix)
{
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);
	uint32_t ref = set->undo_ref;
	struct undo_shm *u = record_at(c, dead->undo_reserved);

	for (uint32_t n = 0; u && ref && n < PROC_CAPACITY * 2; n++) {
		struct undo_shm *at = record_at(c, ref);

		if (!at)
			break;
		if (ref == dead->undo_reserved) {
			store_crash(&u->gen, set->object.gen); /* UNDO_P1/R */
			store_crash(&u->owner_link, 0);
			break;
		}
		ref = at->next_in_set_ref;
	}
	/* Not in the chain: burial makes it reusable. */
}

void sem_undo_repair(struct caller *c, uint32_t dead_ix, uint32_t proc_ix)
{
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);
	struct proc_shm *proc = region_proc(c->base, proc_ix);

	/* In the list and still in the pocket: it is the list's. */
	if (proc && dead->undo_reserved && dead->undo_reserved == proc->undo_ref &&
	    dead->name_ref[NAME_POCKET] == proc->undo_ref)
		store_crash(&dead->name_ref[NAME_POCKET], 0);
	else if (dead->undo_reserved && dead->undo_reserved == dead->name_ref[NAME_POCKET])
		store_crash(&dead->undo_reserved, 0); /* never got into the list */
}

void sem_undo_drop_set(struct caller *c, struct set_shm *set)
{
	/* One by one from the head, so that a death leaves a shorter chain. */
	for (uint32_t n = 0; set->undo_ref && n < PROC_CAPACITY * 2; n++) {
		struct undo_shm *u = record_at(c, set->undo_ref);
		uint32_t next = u ? u->next_in_set_ref : 0;

		/* Out of the chain before it can be used again, for then its link is another's. */
		store_crash(&set->undo_ref, next);
		if (u)
			store_crash(&u->gen, 0); /* UNDO_P1/R */
	}
}

void sem_undo_clear(struct caller *c, const struct sem_view *v)
{
	struct semq_shm *side = sem_side(c, v);
	uint32_t ref = v->set->undo_ref;

	for (uint32_t n = 0; side && ref && n < PROC_CAPACITY * 2; n++) {
		struct undo_shm *u = record_at(c, ref);

		if (!u)
			return;
		for (uint32_t s = 0; s < v->nsems && s < u->capacity; s++)
			if (side[s].used)
				u->adj[s] = 0;
		ref = u->next_in_set_ref;
	}
}

void sem_undo_unlink(struct caller *c, const struct sem_view *v, uint32_t ref)
{
	uint32_t *at = &v->set->undo_ref;
	struct undo_shm *record = record_at(c, ref);

	for (uint32_t n = 0; *at && n < PROC_CAPACITY * 2; n++) {
		struct undo_shm *u = record_at(c, *at);

		if (!u)
			break;
		if (*at == ref) {
			store_crash(at, u->next_in_set_ref);
			break;
		}
		at = &u->next_in_set_ref;
	}
	/* Also when it is out already: a death may have come between. */
	if (record)
		store_crash(&record->gen, 0); /* UNDO_P1/R */
}

int32_t sem_dead_holder(struct caller *c, int32_t id)
{
	struct sem_view v;
	uint32_t ref;

	if (sem_view_id(c, id, &v) < 0)
		return -1;
	ref = load_acquire(&v.set->undo_ref); /* UNDO_P1/A: without the lock, hence a hint */
	for (uint32_t n = 0; ref && n < PROC_CAPACITY; n++) {
		struct undo_shm *u = record_at(c, ref);
		struct proc_shm *p = u ? region_proc(c->base, u->proc_ix) : NULL;
		uint32_t link = p ? p->first_thread_link : 0;
		struct thread_shm *t = link ? region_thread(c->base, link - 1) : NULL;

		/* Dead, or buried already while the process is not: somebody is at it just now. */
		if (t && u->proc_ix != c->proc_ix &&
		    (t->proc_ix != u->proc_ix ||
		     !(CLAIM_GEN(load_acquire(&t->claim)) & 1) || /* REG_P1/A */
		     c->ops->is_dead(c, link - 1, false)))
			return (int32_t)u->proc_ix;
		ref = u ? u->next_in_set_ref : 0;
	}
	return -1;
}

/* ---- Exit -------------------------------------------------------------------------------- */

#define RECENT_COUNT 64
#define IN_CHAIN     UINT32_MAX /* owner_link of a record in the chain of a set that is lost */

/* The records in use that the process used last, the latest first. A walk over all for each one of
 * thousands would take longer than anybody waits. */
static uint32_t most_recent(struct caller *c, const struct proc_shm *proc,
			    uint32_t ret[RECENT_COUNT])
{
	uint64_t stamp[RECENT_COUNT];
	uint32_t ref = proc->undo_ref, count = 0;

	for (uint32_t n = 0; ref && n < OBJECT_CAPACITY * 2; n++) {
		struct undo_shm *u = head_at(c, ref);
		uint32_t at;

		if (!u)
			break;
		if (load_acquire(&u->gen) && /* UNDO_P1/A */
		    (count < RECENT_COUNT || u->stamp > stamp[RECENT_COUNT - 1])) {
			if (!record_at(c, ref))
				break; /* damaged: what is behind it is lost */
			count += count < RECENT_COUNT;
			for (at = count - 1; at > 0 && stamp[at - 1] < u->stamp; at--) {
				stamp[at] = stamp[at - 1];
				ret[at] = ret[at - 1];
			}
			stamp[at] = u->stamp;
			ret[at] = ref;
		}
		ref = u->next_in_proc_ref;
	}
	return count;
}

/* The set is beyond repair; what the process owes to others is not. */
static int give_up(struct caller *c, struct undo_shm *u)
{
	store_crash(&u->gen, 0); /* UNDO_P1/R */
	if (c->ops->note_damage)
		c->ops->note_damage(c);
	return OUTCOME_DONE;
}

/* Nobody can take it out of the chain: its memory is not given back. */
static int leave_in_chain(struct caller *c, struct undo_shm *u)
{
	store_crash(&u->owner_link, IN_CHAIN);
	return give_up(c, u);
}

/* Applies one record: clamped, without waiting, waking whom it should. */
static int apply_record(struct caller *c, uint32_t ref, uint32_t pid, int64_t now)
{
	struct undo_shm *u = record_at(c, ref);
	struct sem_wakes wakes = {0};
	struct semq_shm *side;
	struct sem_view v;
	uint32_t set_ix = u ? u->set_ix : 0;
	uint64_t lock = ids_object_lock(FAMILY_SEM, set_ix);
	int rc;

	if (!u) /* damaged meanwhile */
		return -ENOTRECOVERABLE;
	if (!region_set(c->base, set_ix)) {
		store_crash(&u->gen, 0); /* UNDO_P1/R: damage, there is no such slot */
		return OUTCOME_DONE;
	}
	rc = rlock_acquire(c, lock);
	if (rc != OUTCOME_DONE)
		return rc == -ENOTRECOVERABLE ? leave_in_chain(c, u) : rc;
	if (sem_view_locked(c, set_ix, &v) < 0 || !sem_undo_at(c, ref, &v) ||
	    (v.side = side = sem_side(c, &v)) == NULL) {
		/* Its set is gone: removal, which is one step under this lock, dropped it. */
		store_crash(&u->gen, 0); /* UNDO_P1/R */
		rlock_release(c, lock);
		return OUTCOME_DONE;
	}
	rc = sem_claim(c, &v, NULL, 0);
	if (rc != OUTCOME_DONE) {
		if (rc == -ENOTRECOVERABLE)
			sem_undo_unlink(c, &v, ref);
		sem_unlock(c, &v, &wakes);
		return rc == -ENOTRECOVERABLE ? give_up(c, u) : rc;
	}
	for (uint32_t s = 0; s < v.nsems; s++) {
		int value = SEM_WORD_VALUE(load_acquire(&view_word(&v, s)->word)); /* SEM_W1/A */

		side[s].used = u->adj[s] ? 1 : s == 0 ? 2 : 0;
		value += u->adj[s];
		side[s].next_value = (uint16_t)(value < 0            ? 0
						: value > SEMVAL_MAX ? SEMVAL_MAX
								     : value);
	}
	v.set->intent_undo_ref = ref;
	v.set->intent_pid = pid;
	v.set->intent_time = now;
	v.set->intent_otime_ix = 0;
	sem_commit(c, &v, INTENT_EXIT, c->thread_ix, 0, &wakes);
	sem_clear_shadow(c, &v, NULL, 0);
	sem_serve(c, &v, NULL, 0, &wakes);
	sem_settle_words(c, &v, NULL, 0);
	sem_unlock(c, &v, &wakes);
	return OUTCOME_DONE;
}

int sem_undo_exit(struct caller *c, uint32_t proc_ix, int64_t now, bool free_records)
{
	struct proc_shm *proc = region_known_proc(c->base, proc_ix);
	struct thread_shm *self = region_self(c);
	uint32_t recent[RECENT_COUNT], count;
	int rc;

	while ((count = most_recent(c, proc, recent)) != 0)
		for (uint32_t k = 0; k < count; k++) {
			rc = apply_record(c, recent[k], proc->pid, now);
			if (rc != OUTCOME_DONE)
				return rc;
		}
	for (uint32_t n = 0; free_records && proc->undo_ref; n++) {
		struct undo_shm *u = record_at(c, proc->undo_ref);

		if (!u || n > OBJECT_CAPACITY * 2) { /* damage */
			proc->undo_ref = 0;
			break;
		}
		if (u->owner_link == IN_CHAIN) {
			store_crash(&proc->undo_ref, u->next_in_proc_ref);
			continue;
		}
		rc = arena_give(c, NAME_FLY);
		if (rc != OUTCOME_DONE)
			return rc;
		store_crash(&self->name_ref[NAME_FLY], proc->undo_ref);
		store_crash(&proc->undo_ref, u->next_in_proc_ref);
		rc = arena_give(c, NAME_FLY);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	return OUTCOME_DONE;
}
