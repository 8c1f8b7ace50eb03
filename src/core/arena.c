// SPDX-License-Identifier: MIT
/*
 * Blocks of shared memory: chunks of 64 KiB cut into blocks of one class, and runs of whole chunks
 * for what is larger. Two arenas by the same code: ARENA_SEM holds semaphore words alone, for a
 * reader with an old id may look at one long after its set is gone, and must find a word there;
 * its chunks are never lent to anything else nor punched. ARENA_GENERAL gives its pages back.
 *
 * Chunks go from the arena (one lock: which chunks are taken) to a pool (sixteen of them, a lock
 * each: which blocks are free). A thread holds at most one of these locks; between them a chunk is
 * named in its slot. Pages are made real with no lock held, by the thread that owns the block.
 *
 *   ARENA_P1  block
 *    word      chunk_shm.free_bits[], 1 = free: the truth. Counts and lists are derived
 *    states    free > named by a thread > of an object > named by a thread > free
 *    writers   holder of the pool's lock; a thread's names: itself, or its burial
 *    order     under the pool's lock only; chunk marks are published by arena_shm.hi (A in
 *              region_block pairs with R in region_grow). ready_pages: any owner of a block, by OR
 *    stale-ok  a name may stand beside a bit that is set (not yet taken, or given back already)
 *    death     named, bit set: nothing happened, repair clears the name. Named, bit clear: the
 *              thread's, freed at burial. Two names of one block count once. A burial frees in the
 *              victim's name fields, so repair looks at those of the dead and of its victim
 *    progress  blocks on the pool's lock, a short section without system calls
 *    tests     unit/arena
 *
 *   ARENA_P2  chunk
 *    word      chunk_shm.class_ix
 *    states    0 > TAKEN (named in chunk_link) > class k > TAKEN > 0; 0 > SPAN > 0
 *    writers   0 <> TAKEN, 0 <> SPAN: holder of the arena's lock. TAKEN <> class: holder of the
 *              pool's lock
 *    order     under those locks
 *    stale-ok  INSIDE marks without a SPAN before them: dropped by repair
 *    death     TAKEN and named: handed back at burial. A name whose chunk is not TAKEN: void, and
 *              cleared by repair before the lock is free, for another may take the chunk then
 *    progress  as above
 *    tests     unit/arena
 */
#include "core/arena.h"

#include <errno.h>

#include "core/region.h"
#include "core/rlock.h"

static const uint32_t class_bytes[ARENA_CLASSES] = {
	64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8448, 21824, 32768,
};

static uint32_t class_blocks(uint32_t class)
{
	return CHUNK_BYTES / class_bytes[class];
}

static uint32_t class_for(uint64_t bytes)
{
	uint32_t class = 0;

	while (class < ARENA_CLASSES && class_bytes[class] < bytes)
		class ++;
	return class;
}

static struct arena_shm *arena_of(const unsigned char *base, enum arena_id arena)
{
	return &region_header(base)->arena[arena];
}

static uint64_t arena_lock_off(enum arena_id arena)
{
	return offsetof(struct header_shm, arena) + (uint64_t)arena * sizeof(struct arena_shm);
}

static uint64_t pool_lock_off(enum arena_id arena, uint32_t pool)
{
	return arena_lock_off(arena) + offsetof(struct arena_shm, pool) +
	       (uint64_t)pool * sizeof(struct pool_shm);
}

bool arena_owns_lock(uint64_t lock_off)
{
	return lock_off >= arena_lock_off(0) && lock_off < sizeof(struct header_shm);
}

static uint64_t chunk_off(enum arena_id arena, uint32_t ix)
{
	return ARENAS_OFF + (uint64_t)arena * ARENA_BYTES + (uint64_t)ix * CHUNK_BYTES;
}

static uint64_t descs_off(enum arena_id arena)
{
	return CHUNKS_OFF + (uint64_t)arena * CHUNKS_BYTES;
}

/* One that the caller has just found below the mark, whatever that says by now. */
static struct chunk_shm *known_chunk(const unsigned char *base, enum arena_id arena, uint32_t ix)
{
	return (struct chunk_shm *)region_at(base,
					     descs_off(arena) + (uint64_t)(ix % CHUNK_CAPACITY) *
									sizeof(struct chunk_shm));
}

/* Null beyond the published mark. */
static struct chunk_shm *chunk_at(const unsigned char *base, enum arena_id arena, uint32_t ix)
{
	return ix < region_chunk_count(base, arena) ? known_chunk(base, arena, ix) : NULL;
}

/* ---- Where a block is -------------------------------------------------------------------- */

struct place {
	enum arena_id arena;
	uint32_t chunk_ix, block, class; /* class ARENA_CLASSES: a span */
	struct chunk_shm *chunk;
};

static bool locate(const unsigned char *base, uint32_t ref, struct place *ret)
{
	uint64_t off = (uint64_t)ref * REF_UNIT;
	uint32_t mark, inside; /* narrow: it is divided */

	if (off < ARENAS_OFF || off >= REGION_BYTES)
		return false;
	ret->arena = (enum arena_id)((off - ARENAS_OFF) / ARENA_BYTES);
	ret->chunk_ix = (uint32_t)((off - ARENAS_OFF) % ARENA_BYTES / CHUNK_BYTES);
	inside = (uint32_t)(off % CHUNK_BYTES);
	ret->chunk = chunk_at(base, ret->arena, ret->chunk_ix);
	if (!ret->chunk)
		return false;
	mark = ret->chunk->class_ix;
	ret->block = 0;
	ret->class = ARENA_CLASSES;
	if (mark == ARENA_CLASS_SPAN)
		return inside == 0;
	if (mark == 0 || mark > ARENA_CLASSES)
		return false;
	ret->class = mark - 1;
	ret->block = inside / class_bytes[ret->class];
	return inside % class_bytes[ret->class] == 0 && ret->block < class_blocks(ret->class);
}

uint64_t arena_capacity(const unsigned char *base, uint32_t ref)
{
	struct place p;

	if (!ref || !locate(base, ref, &p))
		return 0;
	if (p.class < ARENA_CLASSES)
		return class_bytes[p.class];
	if (p.chunk->span > CHUNK_CAPACITY - p.chunk_ix)
		return 0;
	return (uint64_t)p.chunk->span * CHUNK_BYTES;
}

static uint32_t block_ref(enum arena_id arena, uint32_t chunk_ix, uint32_t class, uint32_t block)
{
	return (uint32_t)((chunk_off(arena, chunk_ix) + (uint64_t)block * class_bytes[class]) /
			  REF_UNIT);
}

/* ---- Lists of a pool: derived, under its lock -------------------------------------------- */

/* Damaged numbers lead to some list. */
static uint32_t *list_of(const unsigned char *base, enum arena_id arena, const struct chunk_shm *c)
{
	return &arena_of(base, arena)
			->pool[c->pool_ix % ARENA_POOLS]
			.class_link[(c->class_ix - 1) % ARENA_CLASSES];
}

static void list_chunk(const unsigned char *base, enum arena_id arena, uint32_t ix)
{
	struct chunk_shm *c = known_chunk(base, arena, ix);
	uint32_t *head = list_of(base, arena, c);
	struct chunk_shm *next;

	c->prev_link = 0;
	c->next_link = *head;
	next = *head ? chunk_at(base, arena, *head - 1) : NULL;
	if (next)
		next->prev_link = ix + 1;
	*head = ix + 1;
	c->listed = 1;
}

static void unlist_chunk(const unsigned char *base, enum arena_id arena, uint32_t ix)
{
	struct chunk_shm *c = known_chunk(base, arena, ix);
	uint32_t *head = list_of(base, arena, c);
	struct chunk_shm *next = c->next_link ? chunk_at(base, arena, c->next_link - 1) : NULL;
	struct chunk_shm *prev = c->prev_link ? chunk_at(base, arena, c->prev_link - 1) : NULL;

	if (next)
		next->prev_link = c->prev_link;
	if (prev)
		prev->next_link = c->next_link;
	else
		*head = c->next_link;
	c->listed = 0;
}

static bool bit_is_free(const struct chunk_shm *c, uint32_t block)
{
	return c->free_bits[block / 64] >> block % 64 & 1;
}

static uint32_t lowest_free(const struct chunk_shm *c, uint32_t blocks)
{
	for (uint32_t w = 0; w * 64 < blocks; w++)
		if (c->free_bits[w]) {
			uint32_t b = w * 64 + (uint32_t)__builtin_ctzll(c->free_bits[w]);

			return b < blocks ? b : CHUNK_BLOCKS;
		}
	return CHUNK_BLOCKS;
}

/* ---- Chunks between arena and pool ------------------------------------------------------- */

static uint32_t chunk_name(enum arena_id arena, uint32_t ix)
{
	return ((uint32_t)arena << 24 | ix) + 1;
}

/* The chunk that a name names, if it is still between arena and pool. */
static struct chunk_shm *named_chunk(const unsigned char *base, uint32_t link,
				     enum arena_id *ret_arena, uint32_t *ret_ix)
{
	struct chunk_shm *c;
	uint32_t arena = (link - 1) >> 24;

	if (!link || arena >= ARENA_COUNT)
		return NULL;
	*ret_arena = (enum arena_id)arena;
	*ret_ix = (link - 1) & 0xffffff;
	c = chunk_at(base, *ret_arena, *ret_ix);
	return c && c->class_ix == ARENA_CLASS_TAKEN ? c : NULL;
}

/* First run of n free chunks; the mark itself (and less than n beyond it) when there is none. */
static uint32_t find_run(const unsigned char *base, enum arena_id arena, uint32_t n)
{
	struct arena_shm *a = arena_of(base, arena);
	uint32_t hi = region_chunk_count(base, arena);
	uint32_t run = 0, ix = a->lowest < hi ? a->lowest : hi;

	for (; ix < hi && run < n; ix++)
		run = known_chunk(base, arena, ix)->class_ix == 0 ? run + 1 : 0;
	return ix - run;
}

/*
 * Locks the arena with n free chunks from *ret_ix on, growing it as needed. Growth happens with
 * no lock held, so it looks again afterwards.
 */
static int lock_with_run(struct caller *c, enum arena_id arena, uint32_t n, uint32_t *ret_ix)
{
	struct arena_shm *a = arena_of(c->base, arena);

	for (;;) {
		int rc = rlock_acquire(c, arena_lock_off(arena));
		uint32_t last;

		if (rc != OUTCOME_DONE)
			return rc;
		*ret_ix = find_run(c->base, arena, n);
		last = *ret_ix + n - 1;
		if (last < region_chunk_count(c->base, arena))
			return OUTCOME_DONE;
		rlock_release(c, arena_lock_off(arena));
		rc = region_grow(c->base, &a->hi, descs_off(arena), sizeof(struct chunk_shm),
				 CHUNK_CAPACITY, last);
		if (rc < 0)
			return -ENOMEM;
	}
}

static int take_chunk(struct caller *c, enum arena_id arena)
{
	struct thread_shm *self = region_self(c);
	uint32_t ix;
	int rc = lock_with_run(c, arena, 1, &ix);

	if (rc != OUTCOME_DONE)
		return rc;
	store_crash(&self->chunk_link, chunk_name(arena, ix));
	store_crash(&known_chunk(c->base, arena, ix)->class_ix,
		    ARENA_CLASS_TAKEN); /* ARENA_P2 commit */
	arena_of(c->base, arena)->lowest = ix + 1;
	rlock_release(c, arena_lock_off(arena));
	return OUTCOME_DONE;
}

/* Hands a named chunk back to its arena; a name that has become void is cleared. */
static int return_chunk(struct caller *c, struct thread_shm *t)
{
	enum arena_id arena;
	uint32_t ix;
	struct chunk_shm *chunk = named_chunk(c->base, t->chunk_link, &arena, &ix);
	struct arena_shm *a;
	int rc;

	if (chunk) {
		if (arena == ARENA_GENERAL && chunk->ready_pages) {
			chunk->ready_pages = 0;
			region_punch(c->base, chunk_off(arena, ix), CHUNK_BYTES);
		}
		rc = rlock_acquire(c, arena_lock_off(arena));
		if (rc != OUTCOME_DONE)
			return rc;
		a = arena_of(c->base, arena);
		store_crash(&chunk->class_ix, 0); /* ARENA_P2 commit */
		if (ix < a->lowest)
			a->lowest = ix;
		store_crash(&t->chunk_link, 0);
		rlock_release(c, arena_lock_off(arena));
	}
	store_crash(&t->chunk_link, 0);
	return OUTCOME_DONE;
}

/* Gives the thread's named chunk to a pool as one of this class. The pool's lock is held. */
static void enlist_chunk_locked(struct caller *c, uint32_t pool, uint32_t class)
{
	struct thread_shm *self = region_self(c);
	uint32_t blocks = class_blocks(class), ix;
	enum arena_id arena;
	struct chunk_shm *chunk = named_chunk(c->base, self->chunk_link, &arena, &ix);

	if (chunk) {
		for (uint32_t w = 0; w < CHUNK_BLOCKS / 64; w++) {
			uint32_t left = blocks > w * 64 ? blocks - w * 64 : 0;

			chunk->free_bits[w] = left >= 64 ? ~0ull : (1ull << left) - 1;
		}
		chunk->free_count = blocks;
		chunk->pool_ix = pool;
		chunk->listed = 0;
		store_crash(&chunk->class_ix, class + 1); /* ARENA_P2 commit */
		list_chunk(c->base, arena, ix);
	}
	store_crash(&self->chunk_link, 0);
}

/* ---- Taking ------------------------------------------------------------------------------ */

/* Which pages of its chunk a block lies on, rounded to groups of four so that growth is batched. */
static uint32_t pages_of(uint32_t class, uint32_t block)
{
	uint32_t first = block * class_bytes[class] / PAGE_BYTES / 4 * 4;
	uint32_t last = ((block + 1) * class_bytes[class] - 1) / PAGE_BYTES / 4 * 4 + 3;

	return (uint32_t)(((1ull << (last + 1)) - 1) & ~((1ull << first) - 1));
}

static int make_ready(struct caller *c, const struct place *p)
{
	uint32_t pages = pages_of(p->class, p->block);
	uint32_t missing = pages & ~load_acquire(&p->chunk->ready_pages); /* ARENA_P1/A */
	uint32_t first, last;
	int rc;

	if (!missing)
		return 0;
	first = (uint32_t)__builtin_ctz(missing);
	last = 31 - (uint32_t)__builtin_clz(missing);
	rc = region_populate(c->base,
			     chunk_off(p->arena, p->chunk_ix) + (uint64_t)first * PAGE_BYTES,
			     (uint64_t)(last - first + 1) * PAGE_BYTES);
	if (rc == 0)
		fetch_or(&p->chunk->ready_pages, pages); /* ARENA_P1/R */
	return rc;
}

static int take_span(struct caller *c, enum arena_id arena, enum name name, uint64_t bytes)
{
	struct thread_shm *self = region_self(c);
	uint32_t n = (uint32_t)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES), ix;
	int rc;

	if (bytes > ARENA_BYTES)
		return -ENOMEM;
	rc = lock_with_run(c, arena, n, &ix);
	if (rc != OUTCOME_DONE)
		return rc;
	for (uint32_t k = 1; k < n; k++)
		known_chunk(c->base, arena, ix + k)->class_ix = ARENA_CLASS_INSIDE;
	known_chunk(c->base, arena, ix)->span = n;
	store_crash(&self->name_ref[name], (uint32_t)(chunk_off(arena, ix) / REF_UNIT));
	store_crash(&known_chunk(c->base, arena, ix)->class_ix,
		    ARENA_CLASS_SPAN); /* ARENA_P2 commit */
	rlock_release(c, arena_lock_off(arena));
	rc = region_populate(c->base, chunk_off(arena, ix), bytes);
	if (rc < 0) {
		(void)arena_give(c, name); /* BUSY leaves it named: it goes at the next call */
		return -ENOMEM;
	}
	return OUTCOME_DONE;
}

int arena_take(struct caller *c, enum arena_id arena, enum name name, uint64_t bytes)
{
	struct thread_shm *self = region_self(c);
	uint32_t class = class_for(bytes), pool, link, block;
	struct place p;
	int rc;

	if (class == ARENA_CLASSES)
		return take_span(c, arena, name, bytes);
	pool = arena == ARENA_SEM ? 0 : c->proc_ix % ARENA_POOLS;
	for (;;) {
		rc = rlock_acquire(c, pool_lock_off(arena, pool));
		if (rc != OUTCOME_DONE)
			return rc;
		if (self->chunk_link && (self->chunk_link - 1) >> 24 == (uint32_t)arena)
			enlist_chunk_locked(c, pool, class);
		link = arena_of(c->base, arena)->pool[pool].class_link[class];
		if (link)
			break;
		rlock_release(c, pool_lock_off(arena, pool));
		rc = return_chunk(c, self);
		if (rc == OUTCOME_DONE)
			rc = take_chunk(c, arena);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	p = (struct place){arena, link - 1, 0, class, chunk_at(c->base, arena, link - 1)};
	block = p.chunk ? lowest_free(p.chunk, class_blocks(class)) : CHUNK_BLOCKS;
	if (block == CHUNK_BLOCKS || p.chunk->class_ix != class + 1 || p.chunk->pool_ix != pool) {
		rlock_release(c, pool_lock_off(arena, pool));
		return -ENOTRECOVERABLE;
	}
	p.block = block;
	store_crash(&self->name_ref[name], block_ref(arena, p.chunk_ix, class, block));
	store_crash(&p.chunk->free_bits[block / 64],
		    p.chunk->free_bits[block / 64] & ~(1ull << block % 64)); /* ARENA_P1 commit */
	if (--p.chunk->free_count == 0)
		unlist_chunk(c->base, arena, p.chunk_ix);
	rlock_release(c, pool_lock_off(arena, pool));
	rc = make_ready(c, &p);
	if (rc < 0) {
		/* BUSY leaves the block named; it goes back at the next call or at burial. */
		(void)arena_give(c, name);
		return -ENOMEM;
	}
	return OUTCOME_DONE;
}

/* ---- Giving ------------------------------------------------------------------------------ */

/* Takes the arena's lock when the name is that of a span, and gives its length: 0, lock given back,
 * when it is not, or is damaged. */
static int lock_span(struct caller *c, uint32_t ref, struct place *p, uint32_t *ret_chunks)
{
	int rc = rlock_acquire(c, arena_lock_off(p->arena));
	uint32_t n;

	if (rc != OUTCOME_DONE)
		return rc;
	n = locate(c->base, ref, p) && p->class == ARENA_CLASSES ? p->chunk->span : 0;
	*ret_chunks = n <= CHUNK_CAPACITY - p->chunk_ix ? n : 0;
	if (*ret_chunks == 0)
		rlock_release(c, arena_lock_off(p->arena));
	return OUTCOME_DONE;
}

/*
 * The pages go while no lock is held, for that may take long; but not before a look under the lock
 * has shown that they are the name's. The name keeps the span its own in between.
 */
static int give_span(struct caller *c, struct thread_shm *t, enum name name, struct place *p)
{
	struct arena_shm *a = arena_of(c->base, p->arena);
	uint32_t n;
	int rc = lock_span(c, t->name_ref[name], p, &n);

	if (rc == OUTCOME_DONE && n && p->arena == ARENA_GENERAL) {
		rlock_release(c, arena_lock_off(p->arena));
		region_punch(c->base, chunk_off(p->arena, p->chunk_ix), (uint64_t)n * CHUNK_BYTES);
		rc = lock_span(c, t->name_ref[name], p, &n);
	}
	if (rc != OUTCOME_DONE)
		return rc;
	if (n == 0) {
		store_crash(&t->name_ref[name], 0); /* damage: nothing that could be freed */
		return OUTCOME_DONE;
	}
	if (p->arena == ARENA_GENERAL)
		p->chunk->ready_pages = 0;
	store_crash(&p->chunk->class_ix, 0); /* ARENA_P2 commit */
	for (uint32_t k = 1; k < n && p->chunk_ix + k < region_chunk_count(c->base, p->arena);
	     k++) {
		struct chunk_shm *inside = known_chunk(c->base, p->arena, p->chunk_ix + k);

		if (inside->class_ix != ARENA_CLASS_INSIDE)
			break;
		inside->ready_pages = p->arena == ARENA_GENERAL ? 0 : inside->ready_pages;
		inside->class_ix = 0;
	}
	if (p->chunk_ix < a->lowest)
		a->lowest = p->chunk_ix;
	store_crash(&t->name_ref[name], 0);
	rlock_release(c, arena_lock_off(p->arena));
	return OUTCOME_DONE;
}

/* A pool keeps one empty chunk of each class; others go back to the arena. */
static bool should_detach(const struct place *p)
{
	return p->arena == ARENA_GENERAL && p->chunk->free_count == class_blocks(p->class) &&
	       (p->chunk->next_link || p->chunk->prev_link);
}

static int give(struct caller *c, struct thread_shm *t, enum name name)
{
	struct thread_shm *self = region_self(c);
	struct place p;
	uint64_t lock;
	int rc;

	if (!t->name_ref[name])
		return OUTCOME_DONE;
	if (!locate(c->base, t->name_ref[name], &p)) {
		store_crash(&t->name_ref[name], 0); /* damage: nothing that could be freed */
		return OUTCOME_DONE;
	}
	if (p.class == ARENA_CLASSES)
		return give_span(c, t, name, &p);
	if (p.chunk->pool_ix >= ARENA_POOLS)
		return -ENOTRECOVERABLE;
	lock = pool_lock_off(p.arena, p.chunk->pool_ix);
	rc = rlock_acquire(c, lock);
	if (rc != OUTCOME_DONE)
		return rc;
	if (!bit_is_free(p.chunk, p.block)) {
		store_crash(&p.chunk->free_bits[p.block / 64],
			    p.chunk->free_bits[p.block / 64] |
				    1ull << p.block % 64); /* ARENA_P1 commit */
		p.chunk->free_count++;
		if (!p.chunk->listed)
			list_chunk(c->base, p.arena, p.chunk_ix);
	}
	store_crash(&t->name_ref[name], 0);
	if (!self->chunk_link && should_detach(&p)) {
		unlist_chunk(c->base, p.arena, p.chunk_ix);
		store_crash(&self->chunk_link, chunk_name(p.arena, p.chunk_ix));
		store_crash(&p.chunk->class_ix, ARENA_CLASS_TAKEN); /* ARENA_P2 commit */
	}
	rlock_release(c, lock);
	if (self->chunk_link)
		(void)return_chunk(c, self); /* BUSY: stays named, goes at the next call */
	return OUTCOME_DONE;
}

int arena_give(struct caller *c, enum name name)
{
	return give(c, region_self(c), name);
}

int arena_settle(struct caller *c)
{
	return return_chunk(c, region_self(c));
}

int arena_give_of(struct caller *c, uint32_t thread_ix, enum name name)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);

	if (t->chunk_link && t != region_self(c)) {
		int rc = return_chunk(c, t);

		if (rc != OUTCOME_DONE)
			return rc;
	}
	return give(c, t, name);
}

/* ---- Repair ------------------------------------------------------------------------------ */

/* Names whose block is free: the taking did not happen, or the giving did. The same for a chunk. */
static void clear_void_names(struct caller *c, struct thread_shm *t)
{
	enum arena_id arena;
	uint32_t ix;

	if (t && !named_chunk(c->base, t->chunk_link, &arena, &ix))
		store_crash(&t->chunk_link, 0);
	for (int n = 0; t && n < NAME_COUNT; n++) {
		struct place p;

		if (t->name_ref[n] && (!locate(c->base, t->name_ref[n], &p) ||
				       (p.class < ARENA_CLASSES && bit_is_free(p.chunk, p.block))))
			store_crash(&t->name_ref[n], 0);
	}
}

static void rebuild_pool(struct caller *c, enum arena_id arena, uint32_t pool)
{
	struct arena_shm *a = arena_of(c->base, arena);
	uint32_t hi = region_chunk_count(c->base, arena);

	for (uint32_t k = 0; k < ARENA_CLASSES; k++)
		a->pool[pool].class_link[k] = 0;
	/* From the top down, so that the lowest chunk heads its list. */
	while (hi-- > 0) {
		struct chunk_shm *ch = known_chunk(c->base, arena, hi);
		/* In this order: another pool may be enlisting it. ARENA_P2/A */
		uint32_t mark = load_acquire(&ch->class_ix), blocks, count = 0;

		if (mark == 0 || mark > ARENA_CLASSES || ch->pool_ix != pool)
			continue;
		blocks = class_blocks(mark - 1);
		for (uint32_t b = 0; b < blocks; b++)
			count += bit_is_free(ch, b);
		ch->free_count = count;
		ch->listed = 0;
		if (count)
			list_chunk(c->base, arena, hi);
	}
}

static void rebuild_arena(struct caller *c, enum arena_id arena)
{
	struct arena_shm *a = arena_of(c->base, arena);
	uint32_t covered = 0;

	a->lowest = 0;
	for (uint32_t ix = 0; ix < region_chunk_count(c->base, arena); ix++) {
		struct chunk_shm *ch = known_chunk(c->base, arena, ix);

		if (covered) {
			covered--;
			continue;
		}
		if (ch->class_ix == ARENA_CLASS_INSIDE) {
			if (arena == ARENA_GENERAL)
				ch->ready_pages = 0; /* punched, if it was being given back */
			store_crash(&ch->class_ix, 0);
		} else if (ch->class_ix == ARENA_CLASS_SPAN)
			covered = ch->span ? ch->span - 1 : 0;
	}
}

void arena_repair(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);
	enum arena_id arena =
		(enum arena_id)((lock_off - arena_lock_off(0)) / sizeof(struct arena_shm));
	uint64_t inside = (lock_off - arena_lock_off(0)) % sizeof(struct arena_shm);
	struct thread_shm *victim =
		dead->victim_link ? region_thread(c->base, dead->victim_link - 1) : NULL;

	if (inside >= offsetof(struct arena_shm, pool))
		rebuild_pool(c, arena,
			     (uint32_t)((inside - offsetof(struct arena_shm, pool)) /
					sizeof(struct pool_shm)));
	else
		rebuild_arena(c, arena);
	clear_void_names(c, dead);
	clear_void_names(c, victim);
}

void arena_usage(const unsigned char *base, enum arena_id arena, struct arena_usage *ret)
{
	uint32_t hi = region_chunk_count(base, arena);

	*ret = (struct arena_usage){0};
	for (uint32_t ix = 0; ix < hi && ix < CHUNK_CAPACITY; ix++) {
		const struct chunk_shm *ch = known_chunk(base, arena, ix);
		uint32_t mark = ch->class_ix;

		if (mark == ARENA_CLASS_SPAN) {
			ret->blocks++;
			ret->bytes += (uint64_t)ch->span * CHUNK_BYTES;
		} else if (mark >= 1 && mark <= ARENA_CLASSES) {
			uint32_t used = 0;

			for (uint32_t b = 0; b < class_blocks(mark - 1); b++)
				used += !bit_is_free(ch, b);
			ret->blocks += used;
			ret->bytes += (uint64_t)used * class_bytes[mark - 1];
		}
		ret->chunks += mark != 0;
	}
}
