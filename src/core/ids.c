// SPDX-License-Identifier: MIT
/*
 * Ids, indexes and keys of a family.
 *
 * The slots' `live` words are the truth. The index bitmap, the counts and the hash chains are
 * derived and rebuilt by one walk when somebody dies in the table. Lookups take no lock: an index,
 * a check against the published mark, and the sequence in `live`. Slots are type-stable, so what a
 * late reader finds is at worst another object, which `live` tells.
 *
 *   ID_P1  object slot
 *    word      object_shm.live
 *    states    0 > id + 1 > 0
 *    writers   creation, under the table's lock; removal, under the object's lock
 *    order     R of ids_publish_locked pairs with A of ids_lookup; publishes the object's fields
 *    stale-ok  a hash chain may hold dead slots (a removed object waits for its last step); a bit
 *              of the bitmap may be set without `live` (being filled, or being purged); a reader
 *              may miss a key while a chain changes: only a miss under the lock counts
 *    death     creation before `live`: the slot stays free. After: the creation is complete.
 *              Removal after `live` is 0: repair of the object's lock and burial finish it (PURGE)
 *    progress  lookup wait-free (chains are walked to a bound); creation and removal block
 *    tests     unit/ids, conform/common
 */
#include "core/ids.h"

#include <errno.h>

#include "core/perm.h"
#include "core/region.h"
#include "core/rlock.h"

#define CHAIN_BOUND  64u /* steps of a walk without the lock */
#define SMALL_WINDOW 64u /* indexes that are cycled through at least */
#define SEQ_COUNT    (INT32_MAX >> OBJECT_SHIFT)

static struct table_shm *table_of(const unsigned char *base, enum family family)
{
	return &region_header(base)->table[family];
}

uint64_t ids_table_lock(enum family family)
{
	return offsetof(struct header_shm, table) + (uint64_t)family * sizeof(struct table_shm) +
	       offsetof(struct table_shm, lock);
}

uint64_t ids_object_lock(enum family family, uint32_t ix)
{
	return object_off(family, ix) + offsetof(struct object_shm, lock);
}

static uint64_t family_off(enum family family)
{
	return TABLES_OFF + (uint64_t)family * TABLE_BYTES;
}

static uint64_t *bitmap_of(const unsigned char *base, enum family family)
{
	return (uint64_t *)region_at(base, family_off(family) + BITMAP_OFF);
}

/* One less than the number of buckets; as at first, if that is damaged. */
static uint32_t bucket_mask(const unsigned char *base, enum family family)
{
	uint32_t mask = load_acquire(&table_of(base, family)->bucket_mask); /* ID_P2/A */

	return mask < BUCKET_CAPACITY ? mask : BUCKETS_AT_FIRST - 1;
}

static uint32_t *bucket_of(const unsigned char *base, enum family family, int32_t key)
{
	uint32_t mask = bucket_mask(base, family);
	uint32_t hash = (uint32_t)key * 0x9e3779b1u;

	hash = (hash ^ hash >> 15) & mask;
	return (uint32_t *)region_at(base, family_off(family) + (uint64_t)hash * 4);
}

struct object_shm *ids_lookup(const unsigned char *base, enum family family, int32_t id,
			      uint32_t *ret_ix)
{
	uint32_t ix = (uint32_t)id & (OBJECT_CAPACITY - 1);
	struct object_shm *o = id < 0 ? NULL : region_object(base, family, ix);

	if (!o || load_acquire(&o->live) != (uint32_t)id + 1) /* ID_P1/A */
		return NULL;
	*ret_ix = ix;
	return o;
}

bool ids_find_key(const unsigned char *base, enum family family, int32_t key, uint32_t *ret_ix,
		  uint32_t *ret_live)
{
	uint32_t link = load_acquire(bucket_of(base, family, key)); /* ID_P2/A */

	for (uint32_t n = 0; link && n < CHAIN_BOUND; n++) {
		struct object_shm *o = region_object(base, family, link - 1);
		uint32_t live;

		if (!o)
			return false;
		live = load_acquire(&o->live);              /* ID_P1/A */
		if (live && load_relaxed(&o->key) == key) { /* ordered by the fence */
			fence_acquire(); /* ID_P1: key was read before `live` is looked at again */
			if (load_relaxed(&o->live) == live) { /* ordered by the fence */
				*ret_ix = link - 1;
				*ret_live = live;
				return true;
			}
		}
		link = load_acquire(&o->hash_link); /* ID_P2/A */
	}
	return false;
}

bool ids_find_key_locked(struct caller *c, enum family family, int32_t key, uint32_t *ret_ix,
			 uint32_t *ret_live)
{
	uint32_t link = *bucket_of(c->base, family, key);

	for (uint32_t n = 0; link && n <= OBJECT_CAPACITY; n++) {
		struct object_shm *o = region_object(c->base, family, link - 1);

		uint32_t live;

		if (!o)
			return false;
		live = load_acquire(&o->live); /* ID_P1/A */
		if (live && o->key == key) {
			*ret_ix = link - 1;
			*ret_live = live;
			return true;
		}
		link = o->hash_link;
	}
	return false;
}

/* ---- Derived structures, under the table's lock ------------------------------------------ */

/*
 *   ID_P2  hash chains and their number
 *    word      bucket, object_shm.hash_link, table_shm.bucket_mask
 *    states    derived from the keys of live slots
 *    writers   holder of the table's lock
 *    order     R of link_key and rebuild pairs with A of ids_find_key; publishes the slot's key
 *    stale-ok  everything: who misses asks again under the lock
 *    death     rebuilt by repair; a doubling that was cut short is finished or forgotten by that
 *    progress  readers bounded
 *    tests     unit/ids
 */
static void link_key(struct caller *c, enum family family, uint32_t ix)
{
	struct object_shm *o = region_known_object(c->base, family, ix);
	uint32_t *bucket = bucket_of(c->base, family, o->key);

	store_release(&o->hash_link, *bucket); /* ID_P2/R */
	store_release(bucket, ix + 1);         /* ID_P2/R */
}

static void unlink_key(struct caller *c, enum family family, uint32_t ix)
{
	struct object_shm *o = region_known_object(c->base, family, ix);
	uint32_t *at = bucket_of(c->base, family, o->key);

	for (uint32_t n = 0; *at && n <= OBJECT_CAPACITY; n++) {
		struct object_shm *next;

		if (*at == ix + 1) {
			store_release(at, o->hash_link); /* ID_P2/R */
			return;
		}
		next = region_object(c->base, family, *at - 1);
		if (!next)
			return;
		at = &next->hash_link;
	}
}

/* A death between the two: the chains are rebuilt with it, and it is dropped again. */
void ids_drop_key_locked(struct caller *c, enum family family, uint32_t ix)
{
	struct object_shm *o = region_known_object(c->base, family, ix);

	if (o->key != 0)
		unlink_key(c, family, ix);
	store_crash(&o->key, 0);
}

static void rebuild_chains(struct caller *c, enum family family, uint32_t mask)
{
	struct table_shm *t = table_of(c->base, family);
	uint32_t *buckets = (uint32_t *)region_at(c->base, family_off(family));

	store_release(&t->bucket_mask, mask); /* ID_P2/R */
	for (uint32_t b = 0; b <= mask; b++)
		store_release(&buckets[b], 0); /* ID_P2/R */
	for (uint32_t ix = 0; ix < region_object_count(c->base, family); ix++) {
		struct object_shm *o = region_known_object(c->base, family, ix);

		if (load_acquire(&o->live) && o->key != 0) /* ID_P1/A */
			link_key(c, family, ix);
	}
}

/* More buckets, when chains get long. Under the lock, yet a system call: once per doubling. */
static void grow_chains(struct caller *c, enum family family)
{
	struct table_shm *t = table_of(c->base, family);
	uint32_t size = bucket_mask(c->base, family) + 1;

	if (t->in_use < size || size >= BUCKET_CAPACITY)
		return;
	if (region_populate(c->base, family_off(family), (uint64_t)size * 2 * 4) == 0)
		rebuild_chains(c, family, size * 2 - 1);
}

/* Lowest index in [from, end) whose bit is clear; end when there is none. */
static uint32_t first_clear(const uint64_t *map, uint32_t from, uint32_t end)
{
	while (from < end) {
		uint64_t word = ~map[from / 64] >> from % 64;

		if (word) {
			from += (uint32_t)__builtin_ctzll(word);
			return from < end ? from : end;
		}
		from = (from / 64 + 1) * 64;
	}
	return end;
}

bool ids_repair(struct caller *c, uint32_t dead_ix, enum family family,
		uint64_t (*total)(const unsigned char *base, uint32_t ix))
{
	struct table_shm *t = table_of(c->base, family);
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);
	uint64_t *map = bitmap_of(c->base, family);
	bool created = false;

	if (dead->op == OP_CREATE && dead->op_family == (uint32_t)family) {
		struct object_shm *o = region_object(c->base, family, dead->op_ix);
		uint32_t live = o ? load_acquire(&o->live) : 0; /* ID_P1/A */

		created = live != 0;
		if (created && dead->op_chosen) { /* the choice that led to it is the table's now */
			t->seq = (live - 1) >> OBJECT_SHIFT;
			t->last_ix = (int32_t)dead->op_ix;
			t->cursor = dead->op_ix + 1;
		} else if (created) {
			t->next_id = -1;
		}
	}
	for (uint32_t w = 0; w < OBJECT_CAPACITY / 64; w++)
		map[w] = 0;
	t->in_use = 0;
	t->total = 0;
	for (uint32_t ix = 0; ix < region_object_count(c->base, family); ix++) {
		if (load_acquire(&region_known_object(c->base, family, ix)->live)) { /* ID_P1/A */
			map[ix / 64] |= 1ull << ix % 64;
			t->in_use++;
			t->total += total(c->base, ix);
		}
	}
	/* What is being purged is still counted: whoever does it takes it out. The dead one was at
	 * its last step, which this is. */
	for (uint32_t g = 0; g < region_group_count(c->base); g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++) {
			struct thread_shm *th = region_thread(c->base, g * GROUP_SPAN + k);
			struct object_shm *o;
			uint32_t ix;

			if (!th || th == dead || th->op != OP_PURGE ||
			    th->op_family != (uint32_t)family)
				continue;
			ix = th->op_ix;
			o = region_object(c->base, family, ix);
			if (!o || load_acquire(&o->live)) /* ID_P1/A */
				continue;
			map[ix / 64] |= 1ull << ix % 64;
			t->in_use++;
			t->total += total(c->base, ix);
		}
	rebuild_chains(c, family, bucket_mask(c->base, family));
	if (dead->op == OP_PURGE && dead->op_family == (uint32_t)family)
		store_crash(&dead->op, OP_NONE);
	return created;
}

/* ---- Creation ---------------------------------------------------------------------------- */

int ids_make_slot(struct caller *c, enum family family, uint32_t ix)
{
	int rc = region_grow(c->base, &table_of(c->base, family)->hi, object_off(family, 0),
			     OBJECT_SLOT_BYTES, OBJECT_CAPACITY, ix);

	return rc == -ENOSPC || rc >= 0 ? rc : rc == -ENOTRECOVERABLE ? rc : -ENOMEM;
}

int ids_reserve_locked(struct caller *c, enum family family, uint64_t limit, uint32_t *ret_ix,
		       int32_t *ret_id)
{
	struct table_shm *t = table_of(c->base, family);
	struct thread_shm *self = region_self(c);
	const uint64_t *map = bitmap_of(c->base, family);
	uint32_t ix, window, seq;

	if (t->in_use >= limit || t->in_use >= OBJECT_CAPACITY)
		return -ENOSPC;
	if (t->next_id >= 0) {
		uint32_t wish = (uint32_t)t->next_id & (OBJECT_CAPACITY - 1);

		seq = (uint32_t)t->next_id >> OBJECT_SHIFT;
		ix = first_clear(map, wish, OBJECT_CAPACITY);
		if (ix == OBJECT_CAPACITY)
			return -ENOSPC;
	} else {
		window = t->in_use * 3 / 2;
		if (window < SMALL_WINDOW)
			window = SMALL_WINDOW;
		if (window > OBJECT_CAPACITY)
			window = OBJECT_CAPACITY;
		ix = first_clear(map, t->cursor, window);
		if (ix >= window)
			ix = first_clear(map, 0, window);
		if (ix >= window)
			return -ENOSPC;
		seq = t->seq;
		if ((int32_t)ix <= t->last_ix)
			seq = seq + 1 >= SEQ_COUNT ? 0 : seq + 1;
	}
	*ret_ix = ix;
	*ret_id = (int32_t)(seq << OBJECT_SHIFT | ix);
	if (ix >= region_object_count(c->base, family))
		return load_relaxed(&t->hi) > OBJECT_CAPACITY /* in any case: it only tells why */
			       ? -ENOTRECOVERABLE
			       : -EAGAIN;
	self->op_chosen = t->next_id < 0;
	self->op_family = family;
	self->op_ix = ix;
	store_crash(&self->op, OP_CREATE);
	return 0;
}

uint32_t ids_new_generation(struct caller *c, enum family family)
{
	/* ID_P1: any order will do, as long as no two creations get the same */
	return fetch_add(&table_of(c->base, family)->generation, 1) % 0xffffff + 1;
}

void ids_fill_locked(struct caller *c, enum family family, uint32_t ix, uint32_t gen, int32_t key,
		     uint32_t mode, int64_t now)
{
	struct object_shm *o = region_known_object(c->base, family, ix);

	/* Relaxed: published with `live`. Who still looks at the former object sees it change. */
	store_relaxed(&o->gen, gen);
	store_relaxed(&o->key, key);
	store_relaxed(&o->mode, mode & 0777);
	store_relaxed(&o->uid, c->creds->euid);
	store_relaxed(&o->cuid, c->creds->euid);
	store_relaxed(&o->gid, c->creds->egid);
	store_relaxed(&o->cgid, c->creds->egid);
	store_relaxed(&o->ctime, now);
	bitmap_of(c->base, family)[ix / 64] |= 1ull << ix % 64;
	if (key != 0)
		link_key(c, family, ix);
}

void ids_publish_locked(struct caller *c, enum family family, uint32_t ix, int32_t id,
			uint64_t total)
{
	struct table_shm *t = table_of(c->base, family);
	struct thread_shm *self = region_self(c);

	crash_barrier();
	store_release(&region_known_object(c->base, family, ix)->live,
		      (uint32_t)id + 1); /* ID_P1/R commit */
	crash_barrier();
	t->in_use++;
	t->total += total;
	if (self->op_chosen) {
		t->seq = (uint32_t)id >> OBJECT_SHIFT;
		t->last_ix = (int32_t)ix;
		t->cursor = ix + 1;
	} else {
		t->next_id = -1;
	}
	grow_chains(c, family);
}

/* ---- Removal ----------------------------------------------------------------------------- */

int ids_forget(struct caller *c, enum family family, uint32_t thread_ix, uint32_t ix,
	       uint64_t total)
{
	struct table_shm *t = table_of(c->base, family);
	const struct object_shm *o = region_known_object(c->base, family, ix);
	int rc = rlock_acquire(c, ids_table_lock(family));

	if (rc != OUTCOME_DONE)
		return rc;
	ix %= OBJECT_CAPACITY;
	if (o->key != 0)
		unlink_key(c, family, ix);
	bitmap_of(c->base, family)[ix / 64] &= ~(1ull << ix % 64);
	t->in_use--;
	t->total -= total;
	store_crash(&region_known_thread(c->base, thread_ix)->op, OP_NONE);
	rlock_release(c, ids_table_lock(family));
	return OUTCOME_DONE;
}

/* Relaxed: `live` is looked at before and after. IPC_SET may be seen half done. */
void ids_copy_object(const struct object_shm *o, struct object_shm *ret)
{
	*ret = (struct object_shm){
		.gen = load_relaxed(&o->gen),
		.key = load_relaxed(&o->key),
		.mode = load_relaxed(&o->mode),
		.uid = load_relaxed(&o->uid),
		.gid = load_relaxed(&o->gid),
		.cuid = load_relaxed(&o->cuid),
		.cgid = load_relaxed(&o->cgid),
		.ctime = load_relaxed(&o->ctime),
	};
}

int32_t ids_highest(const unsigned char *base, enum family family)
{
	uint32_t hi = region_object_count(base, family);

	while (hi-- > 0) {
		const struct object_shm *o = region_object(base, family, hi);

		if (o && load_acquire(&o->live)) /* ID_P1/A */
			return (int32_t)hi;
	}
	return -1;
}
