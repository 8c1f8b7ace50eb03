// SPDX-License-Identifier: MIT
/*
 * The whole-region checker. Each family's and each layer's invariants, as the cards state them for
 * a region at rest: derived structures agree with the truth, every block has one name, every
 * waiter stands in exactly the list it should and could not proceed, every word has the hand it
 * says it has.
 */
#include "ipc/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/region.h"
#include "ipc/check_priv.h"
#include "ipc/sem_priv.h"
#include "ipc/shm.h"

void check_bad(struct check *k, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	k->count++;
	if (k->say)
		k->say(k->context, text);
}

static const char *const family_name[FAMILY_COUNT] = {"msg", "sem", "shm"};

/* ---- Registry ---------------------------------------------------------------------------- */

void check_each_thread(struct check *k, check_thread_visitor *f, void *context)
{
	uint32_t groups = region_group_count(k->base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t n = 0; n < GROUP_THREADS; n++) {
			struct thread_shm *t = region_thread(k->base, g * GROUP_SPAN + n);

			if (t)
				f(k, t, g * GROUP_SPAN + n, context);
		}
}

static void check_thread(struct check *k, struct thread_shm *t, uint32_t ix, void *context)
{
	bool owned = CLAIM_GEN(load_acquire(&t->claim)) & 1;                         /* REG_P1/A */
	uint64_t owner = load_acquire(region_group_owner(k->base, ix / GROUP_SPAN)); /* REG_P2/A */

	(void)context;
	if (owned && !owner)
		check_bad(k, "thread %u is in use, but its group belongs to nobody", ix);
	if (owned && !region_proc(k->base, t->proc_ix))
		check_bad(k, "thread %u: process slot %u does not exist", ix, t->proc_ix);
	if (HOLD_COUNT(t->hold) > HOLD_MAX)
		check_bad(k, "thread %u: hold record of %u words", ix, HOLD_COUNT(t->hold));
	if (owned)
		return;
	for (int n = 0; n < NAME_COUNT; n++)
		if (t->name_ref[n])
			check_bad(k, "free thread slot %u still names block %#x", ix,
				  t->name_ref[n]);
	if (t->held || t->hold || t->op || t->victim_link || t->chunk_link)
		check_bad(k, "free thread slot %u is in the middle of something", ix);
	if (WAIT_STATE(load_acquire(&t->st)) != WAIT_FREE) /* SEM_P2/A */
		check_bad(k, "free thread slot %u has a waiter", ix);
}

static void check_registry(struct check *k)
{
	uint32_t procs = region_proc_count(k->base);

	check_each_thread(k, check_thread, NULL);
	for (uint32_t ix = 0; ix < procs; ix++) {
		const struct proc_shm *p = region_proc(k->base, ix);

		if (p && load_acquire(&p->state) == PROC_FREE && p->undo_ref) /* REG_P2/A */
			check_bad(k, "free process slot %u has undo records", ix);
		check_lock(k,
			   PROCS_OFF + (uint64_t)ix * sizeof(*p) +
				   offsetof(struct proc_shm, undo_lock),
			   "process slot", ix);
	}
}

/* ---- Locks ------------------------------------------------------------------------------- */

void check_lock(struct check *k, uint64_t off, const char *what, uint32_t ix)
{
	const rlock_shm *word = region_at(k->base, off);
	uint32_t owner = load_acquire(word) & RLOCK_OWNER; /* RLOCK_P1/A */
	struct thread_shm *t = owner ? region_thread(k->base, owner - 1) : NULL;

	if (owner && (!t || !(CLAIM_GEN(load_acquire(&t->claim)) & 1))) /* REG_P1/A */
		check_bad(k, "lock of %s %u belongs to thread %u, which is nobody's", what, ix,
			  owner - 1);
	else if (owner && t->held != off)
		check_bad(k, "lock of %s %u: its owner %u does not name it", what, ix, owner - 1);
}

/* ---- Ids --------------------------------------------------------------------------------- */

/* Is somebody at the last part of the object's removal, or dead in it? It is counted until then. */
static bool is_purged_by(const struct check *k, const struct thread_shm *t, enum family family,
			 uint32_t ix)
{
	const struct object_shm *o = region_object(k->base, family, ix);

	return (CLAIM_GEN(load_acquire(&t->claim)) & 1) && t->op == OP_PURGE && /* REG_P1/A */
	       t->op_family == (uint32_t)family && t->op_ix == ix && o &&
	       !load_acquire(&o->live); /* ID_P1/A */
}

static bool is_purged(const struct check *k, enum family family, uint32_t ix)
{
	uint32_t groups = region_group_count(k->base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t n = 0; n < GROUP_THREADS; n++) {
			const struct thread_shm *t = region_thread(k->base, g * GROUP_SPAN + n);

			if (t && is_purged_by(k, t, family, ix))
				return true;
		}
	return false;
}

static bool in_chain(struct check *k, enum family family, uint32_t ix)
{
	const struct object_shm *o = region_known_object(k->base, family, ix);
	uint32_t found, live;

	if (o->key == 0)
		return true;
	return ids_find_key(k->base, family, o->key, &found, &live) ||
	       region_header(k->base)->table[family].in_use > BUCKETS_AT_FIRST;
}

static void check_ids(struct check *k, enum family family)
{
	const struct table_shm *t = &region_header(k->base)->table[family];
	const uint64_t *map = region_at(k->base, TABLES_OFF + family * TABLE_BYTES + BITMAP_OFF);
	uint64_t total = 0;
	uint32_t live_count = 0;

	check_lock(k, ids_table_lock(family), "table", family);
	for (uint32_t ix = 0; ix < region_object_count(k->base, family); ix++) {
		const struct object_shm *o = region_known_object(k->base, family, ix);
		uint32_t live = load_acquire(&o->live); /* ID_P1/A */
		bool marked = map[ix / 64] >> ix % 64 & 1;
		bool purged = marked && !live && is_purged(k, family, ix);

		if (marked != (live != 0) && !purged)
			check_bad(k, "%s index %u: %s, but the bitmap says otherwise",
				  family_name[family], ix, live ? "in use" : "free");
		if (!live && !purged)
			continue;
		live_count++;
		total += family == FAMILY_SEM   ? sem_total(k->base, ix)
			 : family == FAMILY_SHM ? shm_total(k->base, ix)
						: 0;
		if (purged)
			continue;
		if (((live - 1) & (OBJECT_CAPACITY - 1)) != ix)
			check_bad(k, "%s index %u has id %u", family_name[family], ix, live - 1);
		if (o->gen == 0 || o->gen > 0xffffff)
			check_bad(k, "%s id %u has generation %u", family_name[family], live - 1,
				  o->gen);
		if (!in_chain(k, family, ix))
			check_bad(k, "%s id %u is not found by its key %#x", family_name[family],
				  live - 1, (unsigned)o->key);
	}
	if (live_count != t->in_use)
		check_bad(k, "%s: %u objects, counted as %u", family_name[family], live_count,
			  t->in_use);
	if (family != FAMILY_MSG && total != t->total)
		check_bad(k, "%s: %llu semaphores or pages, counted as %llu", family_name[family],
			  (unsigned long long)total, (unsigned long long)t->total);
}

/* ---- Semaphores -------------------------------------------------------------------------- */

/* Would this queued request run on the values as they are? Zero-only requests of several
 * operations are looked at lazily, so nothing is said about them. */
static bool could_run(const struct sem_view *v, const struct semop_shm *ops, uint32_t n)
{
	if (n != 1) /* intermediate values: conform and differential tests cover these */
		return false;
	return !sem_would_block(&ops[0], SEM_WORD_VALUE(load_acquire(
						 &view_word(v, ops[0].num)->word))); /* SEM_W1/A */
}

static uint32_t count_waiters(struct check *k, const struct sem_view *v, uint32_t *ret_complex)
{
	uint32_t groups = region_group_count(k->base), n = 0;
	struct caller c = {.base = (unsigned char *)(uintptr_t)k->base};

	*ret_complex = 0;
	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t i = 0; i < GROUP_THREADS; i++) {
			uint32_t ix = g * GROUP_SPAN + i;
			struct thread_shm *t = region_thread(k->base, ix);
			uint32_t st = t ? load_acquire(&t->st) : 0; /* SEM_P2/A */
			const struct semop_shm *ops;
			uint32_t named;

			if (!wait_is_queued(st) || t->family != FAMILY_SEM || t->object_ix != v->ix)
				continue;
			if (t->object_gen != v->gen) {
				check_bad(k, "thread %u sleeps on a former set in slot %u", ix,
					  v->ix);
				continue;
			}
			n++;
			*ret_complex += t->nsops > 1;
			ops = sem_request_ops(&c, t);
			named = sem_request_count(&c, v, t);
			if (named != t->nsops)
				check_bad(k,
					  "thread %u sleeps on sem id %d with a request that names "
					  "what is "
					  "not there",
					  ix, v->id);
			if (could_run(v, ops, named))
				check_bad(k, "thread %u sleeps on sem id %d although it could run",
					  ix, v->id);
			for (uint32_t s = 0; s < named; s++)
				if (!(load_acquire(&view_word(v, ops[s].num)->word) &
				      SEM_SLOW)) /* SEM_W1/A */
					check_bad(
						k,
						"sem id %d semaphore %u: waited for, but not SLOW",
						v->id, ops[s].num);
		}
	return n;
}

static uint32_t walk_list(struct check *k, const struct sem_view *v, uint32_t head, uint32_t tail)
{
	uint32_t link = head, last = 0, n = 0;

	while (link) {
		struct thread_shm *t = region_thread(k->base, link - 1);

		if (!t || t->object_ix != v->ix || t->prev_link != last || ++n > v->set->waiting) {
			check_bad(k, "sem id %d: a list of waiters is broken at thread %u", v->id,
				  link - 1);
			return n;
		}
		last = link;
		link = t->next_link;
	}
	if (last != tail)
		check_bad(k, "sem id %d: a list of waiters ends at the wrong place", v->id);
	return n;
}

static void check_undo_chain(struct check *k, const struct sem_view *v)
{
	struct caller c = {.base = (unsigned char *)(uintptr_t)k->base};
	uint32_t ref = v->set->undo_ref, n = 0;

	while (ref) {
		struct undo_shm *u = sem_undo_at(&c, ref, v);

		if (!u || ++n > PROC_CAPACITY) {
			check_bad(k, "sem id %d: undo record %#x is not one of this set's", v->id,
				  ref);
			return;
		}
		if (!region_proc(k->base, u->proc_ix))
			check_bad(k, "sem id %d: undo record of process slot %u", v->id,
				  u->proc_ix);
		ref = u->next_in_set_ref;
	}
}

static void check_set(struct check *k, uint32_t ix)
{
	struct caller c = {.base = (unsigned char *)(uintptr_t)k->base};
	struct sem_view v;
	struct semq_shm *side;
	uint32_t listed, waiting, complex;
	int rc = sem_view_locked(&c, ix, &v);

	if (rc == -EIDRM)
		return;
	side = rc == 0 ? sem_side(&c, &v) : NULL;
	if (!side) {
		check_bad(k, "sem slot %u: its memory cannot be found", ix);
		return;
	}
	check_lock(k, sem_lock_off(&v), "sem slot", ix);
	if (v.set->seal != sem_seal(v.nsems, v.gen))
		check_bad(k, "sem id %d: the number of its semaphores has been changed", v.id);
	if (v.set->intent)
		check_bad(k, "sem id %d: a change (%u) is not finished", v.id, v.set->intent);
	listed = walk_list(k, &v, v.set->alter_head, v.set->alter_tail) +
		 walk_list(k, &v, v.set->const_head, v.set->const_tail);
	for (uint32_t s = 0; s < v.nsems; s++) {
		uint64_t word = load_acquire(&view_word(&v, s)->word); /* SEM_W1/A */

		if (SEM_WORD_GEN(word) != v.gen)
			check_bad(k, "sem id %d semaphore %u: generation %u instead of %u", v.id, s,
				  SEM_WORD_GEN(word), v.gen);
		if (word & SEM_HELD) {
			struct thread_shm *t = region_thread(k->base, SEM_WORD_TAG(word));

			if (!t || !(CLAIM_GEN(load_acquire(&t->claim)) & 1) ||
			    !t->hold) /* REG_P1/A */
				check_bad(k, "sem id %d semaphore %u: held by nobody", v.id, s);
		}
		if (side[s].used)
			check_bad(k, "sem id %d semaphore %u: a shadow is left", v.id, s);
		if (side[s].named && !(word & SEM_SLOW))
			check_bad(k,
				  "sem id %d semaphore %u: %u requests name it, but it is not SLOW",
				  v.id, s, side[s].named);
		listed += walk_list(k, &v, side[s].alter_head, side[s].alter_tail) +
			  walk_list(k, &v, side[s].zero_head, side[s].zero_tail);
	}
	waiting = count_waiters(k, &v, &complex);
	if (waiting != v.set->waiting || listed != waiting)
		check_bad(k, "sem id %d: %u requests wait, %u are in lists, counted as %u", v.id,
			  waiting, listed, v.set->waiting);
	if (complex != v.set->complex_count)
		check_bad(k, "sem id %d: %u requests of several operations, counted as %u", v.id,
			  complex, v.set->complex_count);
	check_undo_chain(k, &v);
}

/* ---- Blocks: everything that is taken has a name ----------------------------------------- */

static void check_set_blocks(struct check *k, uint32_t ix)
{
	const struct set_shm *set = region_set(k->base, ix);

	if (!set)
		return;
	check_name(k, set->words_ref, "sem slot", ix);
	check_name(k, set->side_ref, "sem slot", ix);
}

static const struct family_checks {
	void (*object)(struct check *k, uint32_t ix);
	void (*blocks)(struct check *k, uint32_t ix); /* check_name() of what the object has */
} families[FAMILY_COUNT] = {
	[FAMILY_MSG] = {check_queue, check_queue_blocks},
	[FAMILY_SEM] = {check_set, check_set_blocks},
	[FAMILY_SHM] = {check_segment, NULL}, /* its blocks are the processes' */
};

void check_name(struct check *k, uint32_t ref, const char *what, uint32_t ix)
{
	uint64_t off = (uint64_t)ref * REF_UNIT;

	if (!ref || ref == k->counted_ref)
		return;
	if (!arena_capacity(k->base, ref) || off < ARENAS_OFF) {
		check_bad(k, "%s %u names block %#x, which is none", what, ix, ref);
		return;
	}
	k->named[(off - ARENAS_OFF) / ARENA_BYTES]++;
}

/* What is being purged is given back by way of one of the thread's names. */
static void name_thread_blocks(struct check *k, struct thread_shm *t, uint32_t ix, void *context)
{
	uint32_t family = t->op_family;

	(void)context;
	for (int i = 0; i < NAME_COUNT; i++)
		check_name(k, t->name_ref[i], "thread", ix);
	if (family >= FAMILY_COUNT || !families[family].blocks ||
	    !is_purged_by(k, t, (enum family)family, t->op_ix))
		return;
	k->counted_ref = t->name_ref[NAME_FLY];
	families[family].blocks(k, t->op_ix);
	k->counted_ref = 0;
}

static void check_blocks(struct check *k)
{
	check_each_thread(k, name_thread_blocks, NULL);
	check_attaches(k);
	for (uint32_t p = 0; p < region_proc_count(k->base); p++) {
		uint32_t ref = region_known_proc(k->base, p)->undo_ref, steps = 0;

		while (ref && steps++ < OBJECT_CAPACITY * 2) {
			const struct undo_shm *u = region_block(k->base, ref, sizeof(*u));

			check_name(k, ref, "process", p);
			ref = u ? u->next_in_proc_ref : 0;
		}
	}
	for (uint32_t a = 0; a < ARENA_COUNT; a++) {
		uint64_t lock = offsetof(struct header_shm, arena) + a * sizeof(struct arena_shm);
		struct arena_usage usage;

		check_lock(k, lock, "arena", a);
		for (uint32_t p = 0; p < ARENA_POOLS; p++)
			check_lock(k,
				   lock + offsetof(struct arena_shm, pool) +
					   p * sizeof(struct pool_shm),
				   "pool", p);
		arena_usage(k->base, (enum arena_id)a, &usage);
		if (usage.blocks != k->named[a])
			check_bad(k, "arena %u: %llu blocks are taken, %llu have a name", a,
				  (unsigned long long)usage.blocks,
				  (unsigned long long)k->named[a]);
	}
}

int check_region(const unsigned char *base, void (*say)(void *context, const char *text),
		 void *context)
{
	struct check k = {.base = base, .say = say, .context = context};
	const char *why = "";

	if (region_validate(base, REGION_BYTES, &why) < 0) {
		check_bad(&k, "header: %s", why);
		return k.count;
	}
	check_registry(&k);
	for (int f = 0; f < FAMILY_COUNT; f++) {
		uint32_t hi = region_object_count(base, (enum family)f);

		check_ids(&k, (enum family)f);
		for (uint32_t ix = 0; ix < hi && families[f].object; ix++) {
			families[f].object(&k, ix);
			if (families[f].blocks &&
			    load_acquire(&region_known_object(base, (enum family)f, ix)
						  ->live)) /* ID_P1/A */
				families[f].blocks(&k, ix);
		}
	}
	check_blocks(&k);
	return k.count;
}
