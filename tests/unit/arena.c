// SPDX-License-Identifier: MIT
/* Blocks: every class and spans, exhaustion, giving back, and what deaths leave in a thread's
 * names. */
#include <sys/mman.h>
#include <unistd.h>

#include "unit.h"

#define CLASSES 15
static const uint32_t class_bytes[CLASSES] = {64,   128,  192,  256,  384,  512,   768,  1024,
					      1536, 2048, 3072, 4096, 8448, 21824, 32768};

static uint32_t take(struct actor *a, enum arena_id arena, enum name name, uint64_t bytes)
{
	int rc;

	EXPECT_INT(actor_slot(a)->name_ref[name], 0);
	while ((rc = arena_take(&a->c, arena, name, bytes)) == OUTCOME_BUSY)
		engine_wait(a);
	EXPECT_INT(rc, OUTCOME_DONE);
	EXPECT(actor_slot(a)->name_ref[name]);
	EXPECT(arena_capacity(a->e->base, actor_slot(a)->name_ref[name]) >= bytes);
	return actor_slot(a)->name_ref[name];
}

/* Takes a block out of the names, as an object's owner would. */
static uint32_t take_away(struct actor *a, enum arena_id arena, uint64_t bytes)
{
	uint32_t ref = take(a, arena, NAME_FLY, bytes);

	actor_slot(a)->name_ref[NAME_FLY] = 0;
	return ref;
}

static void give(struct actor *a, uint32_t ref)
{
	EXPECT_INT(actor_slot(a)->name_ref[NAME_FLY], 0);
	actor_slot(a)->name_ref[NAME_FLY] = ref;
	while (arena_give(&a->c, NAME_FLY) == OUTCOME_BUSY)
		engine_wait(a);
	EXPECT_INT(actor_slot(a)->name_ref[NAME_FLY], 0);
}

static struct arena_shm *arena_of(struct actor *a, enum arena_id arena)
{
	return &region_header(a->e->base)->arena[arena];
}

static struct pool_shm *pool_of(struct actor *a)
{
	return &arena_of(a, ARENA_GENERAL)->pool[a->c.proc_ix % ARENA_POOLS];
}

static uint64_t pool_lock(struct actor *a)
{
	return region_off(a->e->base, &pool_of(a)->lock);
}

static struct chunk_shm *chunk_of(struct actor *a, enum arena_id arena, uint32_t ix)
{
	return region_at(a->e->base, CHUNKS_OFF + (uint64_t)arena * CHUNKS_BYTES +
					     (uint64_t)ix * sizeof(struct chunk_shm));
}

static uint32_t chunk_ix(uint32_t ref, enum arena_id arena)
{
	return (uint32_t)(((uint64_t)ref * REF_UNIT - ARENAS_OFF - (uint64_t)arena * ARENA_BYTES) /
			  CHUNK_BYTES);
}

static uint64_t usage(struct actor *a, enum arena_id arena, uint64_t *ret_chunks)
{
	struct arena_usage u;

	arena_usage(a->e->base, arena, &u);
	if (ret_chunks)
		*ret_chunks = u.chunks;
	return u.blocks;
}

/* ---- Taking and giving ------------------------------------------------------------------- */

static void test_every_class_is_exact(void **state)
{
	struct actor *a = engine_join(*state);

	for (int k = 0; k < CLASSES; k++) {
		uint32_t exact = take_away(a, ARENA_GENERAL, class_bytes[k]);
		uint32_t less = take_away(a, ARENA_GENERAL, class_bytes[k] - 1);
		uint32_t more = take_away(a, ARENA_GENERAL, class_bytes[k] + 1);

		EXPECT_INT(arena_capacity(a->e->base, exact), class_bytes[k]);
		EXPECT_INT(arena_capacity(a->e->base, less), class_bytes[k]);
		EXPECT_INT(arena_capacity(a->e->base, more),
			   k + 1 < CLASSES ? class_bytes[k + 1] : CHUNK_BYTES);
		give(a, exact);
		give(a, less);
		give(a, more);
	}
	EXPECT_INT(engine_blocks(a->e), 0);
}

/* Fills each chunk of a class to the last block and past it; no two blocks may overlap. */
static void test_blocks_do_not_overlap(void **state)
{
	struct actor *a = engine_join(*state);
	static uint32_t ref[3000];

	for (int k = 0; k < CLASSES; k++) {
		uint32_t n = CHUNK_BYTES / class_bytes[k] * 2 + 1;

		for (uint32_t i = 0; i < n; i++) {
			ref[i] = take_away(a, ARENA_GENERAL, class_bytes[k]);
			memset(region_block(a->e->base, ref[i], class_bytes[k]), (int)(i % 251),
			       class_bytes[k]);
		}
		EXPECT_INT(usage(a, ARENA_GENERAL, NULL), n);
		for (uint32_t i = 0; i < n; i++) {
			unsigned char *p = region_block(a->e->base, ref[i], class_bytes[k]);

			EXPECT_INT(p[0], i % 251);
			EXPECT_INT(memcmp(p, p + 1, class_bytes[k] - 1), 0);
		}
		for (uint32_t i = 0; i < n; i += 2)
			give(a, ref[i]);
		for (uint32_t i = 1; i < n; i += 2)
			give(a, ref[i]);
		EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 0);
	}
}

static void test_empty_chunks_go_back(void **state)
{
	struct actor *a = engine_join(*state), *b;
	uint32_t ref[64];
	uint64_t chunks;

	for (int i = 0; i < 64; i++)
		ref[i] = take_away(a, ARENA_GENERAL, 32768); /* two a chunk */
	usage(a, ARENA_GENERAL, &chunks);
	EXPECT_INT(chunks, 32);
	for (int i = 0; i < 64; i++)
		give(a, ref[i]);
	usage(a, ARENA_GENERAL, &chunks);
	EXPECT_INT(chunks, 1); /* a pool keeps one of a class */
	/* And another pool gets them, the lowest first. */
	b = engine_join(*state);
	EXPECT(b->c.proc_ix % ARENA_POOLS != a->c.proc_ix % ARENA_POOLS);
	ref[0] = take_away(b, ARENA_GENERAL, 64);
	EXPECT(chunk_ix(ref[0], ARENA_GENERAL) < 32);
	give(b, ref[0]);
}

static void test_semaphore_words_stay_words(void **state)
{
	struct actor *a = engine_join(*state);
	uint32_t ref = take_away(a, ARENA_SEM, 4096);
	uint64_t *words = region_block(a->e->base, ref, 4096), chunks;

	words[5] = 0x1234;
	give(a, ref);
	usage(a, ARENA_SEM, &chunks);
	EXPECT_INT(chunks, 1);
	EXPECT_INT(words[5], 0x1234); /* never punched */
	ref = take_away(a, ARENA_SEM, 1 << 20);
	words = region_block(a->e->base, ref, 1 << 20);
	words[70000] = 0x4321;
	give(a, ref);
	EXPECT_INT(words[70000], 0x4321);
}

static void test_spans(void **state)
{
	struct actor *a = engine_join(*state);
	uint32_t one = take_away(a, ARENA_GENERAL, CHUNK_BYTES);
	uint32_t three = take_away(a, ARENA_GENERAL, 2 * CHUNK_BYTES + 1);
	uint32_t two = take_away(a, ARENA_GENERAL, CHUNK_BYTES + 1), again;

	EXPECT_INT(arena_capacity(a->e->base, one), CHUNK_BYTES);
	EXPECT_INT(arena_capacity(a->e->base, three), 3 * CHUNK_BYTES);
	EXPECT_INT(arena_capacity(a->e->base, two), 2 * CHUNK_BYTES);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 3);
	memset(region_block(a->e->base, three, 3 * CHUNK_BYTES), 7, 3 * CHUNK_BYTES);
	give(a, three);
	/* Too large for the hole; then what fits it goes there. */
	again = take_away(a, ARENA_GENERAL, 4 * CHUNK_BYTES);
	EXPECT(chunk_ix(again, ARENA_GENERAL) > chunk_ix(two, ARENA_GENERAL));
	give(a, again);
	again = take_away(a, ARENA_GENERAL, 3 * CHUNK_BYTES);
	EXPECT_INT(again, three);
	/* Its pages were given back in between. */
	EXPECT_INT(((unsigned char *)region_block(a->e->base, again, 1))[2 * CHUNK_BYTES], 0);
	give(a, again);
	give(a, one);
	give(a, two);
	EXPECT_INT(engine_blocks(a->e), 0);
}

static void test_too_large(void **state)
{
	struct actor *a = engine_join(*state);
	uint32_t ref = take_away(a, ARENA_GENERAL, 64);

	EXPECT_INT(arena_take(&a->c, ARENA_GENERAL, NAME_FLY, ARENA_BYTES + 1), -ENOMEM);
	EXPECT_INT(arena_take(&a->c, ARENA_GENERAL, NAME_FLY, ARENA_BYTES), -ENOMEM);
	EXPECT_INT(actor_slot(a)->name_ref[NAME_FLY], 0);
	give(a, ref);
}

/* A file system with no room left: an error from the call, and nothing lost by it. */
static void test_full_file_system(void **state)
{
	struct actor *a = engine_join(*state);
	uint64_t end = ARENAS_OFF + 5 * CHUNK_BYTES, blocks;
	int fd = memfd_create("full", MFD_CLOEXEC), rc;
	uint32_t ref[200], n = 0;

	EXPECT(fd >= 0 && ftruncate(fd, (off_t)(4 * CHUNK_BYTES + CHUNK_BYTES / 2)) == 0);
	/* The arena from now on: populating beyond the end of this file fails as on a full one. */
	EXPECT(mmap(a->e->base + ARENAS_OFF, 1 << 20, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	for (;;) {
		rc = arena_take(&a->c, ARENA_GENERAL, NAME_FLY, 8448);
		if (rc != OUTCOME_DONE)
			break;
		EXPECT(n < 200);
		ref[n++] = actor_slot(a)->name_ref[NAME_FLY];
		EXPECT((uint64_t)ref[n - 1] * REF_UNIT + 8448 <= end);
		memset(region_block(a->e->base, ref[n - 1], 8448), 1, 8448);
		actor_slot(a)->name_ref[NAME_FLY] = 0;
	}
	EXPECT_INT(rc, -ENOMEM);
	EXPECT(n > 4 * 7); /* four whole chunks of seven, and more */
	blocks = usage(a, ARENA_GENERAL, NULL);
	EXPECT_INT(blocks, n);
	EXPECT_INT(actor_slot(a)->name_ref[NAME_FLY], 0);
	rc = arena_take(&a->c, ARENA_GENERAL, NAME_SIDE, 2 * CHUNK_BYTES);
	EXPECT_INT(rc, -ENOMEM);
	while (arena_give(&a->c, NAME_SIDE) != OUTCOME_DONE)
		;
	while (n)
		give(a, ref[--n]);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 0);
	close(fd);
}

/* ---- Names and deaths -------------------------------------------------------------------- */

static void test_busy_pool(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join_thread(a);

	seize(b, pool_lock(a));
	EXPECT_INT(arena_take(&a->c, ARENA_GENERAL, NAME_FLY, 64), OUTCOME_BUSY);
	EXPECT_INT(actor_slot(a)->name_ref[NAME_FLY], 0);
	let_loose(b, pool_lock(a));
	take(a, ARENA_GENERAL, NAME_FLY, 64);
	seize(b, pool_lock(a));
	EXPECT_INT(arena_give(&a->c, NAME_FLY), OUTCOME_BUSY);
	EXPECT(actor_slot(a)->name_ref[NAME_FLY]); /* still its own */
	let_loose(b, pool_lock(a));
	EXPECT_INT(arena_give(&a->c, NAME_FLY), OUTCOME_DONE);
}

/* Named, but the bit was not cleared yet: nothing has been taken. */
static void test_death_before_the_bit(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join_thread(d);
	uint32_t ref = take_away(d, ARENA_GENERAL, 64), other;

	give(d, ref);
	seize(d, pool_lock(d));
	actor_slot(d)->name_ref[NAME_POCKET] = ref;
	engine_kill_thread(d);
	other = take_away(a, ARENA_GENERAL, 64);
	EXPECT_INT(other, ref); /* repaired on the way, and free for others */
	EXPECT_INT(actor_slot(d)->name_ref[NAME_POCKET], 0);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	give(a, other);
}

/* The bit is clear, the derived things are not done: the block is the dead thread's. */
static void test_death_after_the_bit(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join_thread(d);
	uint32_t ref = take(d, ARENA_GENERAL, NAME_POCKET, 64), other;
	struct chunk_shm *chunk = chunk_of(d, ARENA_GENERAL, chunk_ix(ref, ARENA_GENERAL));

	seize(d, pool_lock(d));
	chunk->free_count = 77;
	chunk->listed = 0;
	chunk->next_link = chunk->prev_link = 999999;
	memset(pool_of(d)->class_link, 0xff, sizeof(pool_of(d)->class_link));
	engine_kill_thread(d);
	other = take_away(a, ARENA_GENERAL, 64);
	EXPECT(other != ref);
	EXPECT_INT(chunk->free_count, CHUNK_BYTES / 64 - 2);
	EXPECT_INT(actor_slot(d)->name_ref[NAME_POCKET], ref);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	EXPECT_INT(chunk->free_count, CHUNK_BYTES / 64 - 1);
	give(a, other);
}

/* Freed, but the name is still there: it must not be freed again under somebody else. */
static void test_death_after_giving(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join_thread(d);
	uint32_t ref = take(d, ARENA_GENERAL, NAME_POCKET, 64), other;

	EXPECT_INT(arena_give(&d->c, NAME_POCKET), OUTCOME_DONE);
	seize(d, pool_lock(d));
	actor_slot(d)->name_ref[NAME_POCKET] = ref;
	engine_kill_thread(d);
	other = take_away(a, ARENA_GENERAL, 64);
	EXPECT_INT(other, ref);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	give(a, other);
}

static void test_two_names_of_one_block(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join_thread(d);
	uint32_t ref = take(d, ARENA_GENERAL, NAME_POCKET, 64);

	actor_slot(d)->name_ref[NAME_FLY] = ref;
	engine_kill_thread(d);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 0);
}

/* A burier dies with the pool's lock: the names of its victim are looked at too. */
static void test_names_of_the_victim(void **state)
{
	struct actor *d = engine_join(*state), *b = engine_join_thread(d);
	struct actor *a = engine_join_thread(d);
	uint32_t ref = take(d, ARENA_GENERAL, NAME_POCKET, 64), other;

	engine_kill_thread(d);
	/* b had set the bit and not yet cleared the name */
	EXPECT_INT(arena_give_of(&b->c, d->c.thread_ix, NAME_POCKET), OUTCOME_DONE);
	actor_slot(b)->victim_link = d->c.thread_ix + 1;
	seize(b, pool_lock(b));
	actor_slot(d)->name_ref[NAME_POCKET] = ref;
	engine_kill_thread(b);
	other = take_away(a, ARENA_GENERAL, 64);
	EXPECT_INT(other, ref);
	EXPECT_INT(actor_slot(d)->name_ref[NAME_POCKET], 0);
	EXPECT_INT(repair_bury_thread(&a->c, b->c.thread_ix, false), BURIAL_DONE);
	EXPECT(!(CLAIM_GEN(actor_slot(d)->claim) & 1)); /* its victim was buried with it */
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	give(a, other);
}

static void test_half_made_span(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join_thread(d);
	uint64_t arena_lock = region_off(d->e->base, &arena_of(d, ARENA_GENERAL)->lock);
	uint32_t span = take_away(d, ARENA_GENERAL, 4 * CHUNK_BYTES), first, other;

	give(d, span);
	first = chunk_ix(span, ARENA_GENERAL);
	seize(d, arena_lock);
	for (uint32_t k = 1; k < 4; k++)
		chunk_of(d, ARENA_GENERAL, first + k)->class_ix = ARENA_CLASS_INSIDE;
	chunk_of(d, ARENA_GENERAL, first)->span = 4;
	actor_slot(d)->name_ref[NAME_SIDE] = span;
	engine_kill_thread(d);
	other = take_away(a, ARENA_GENERAL, 3 * CHUNK_BYTES);
	EXPECT_INT(other, span);
	EXPECT_INT(actor_slot(d)->name_ref[NAME_SIDE], 0);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	give(a, other);
}

static void test_chunk_between_arena_and_pool(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join_thread(d);
	uint64_t chunks;
	uint32_t ref = take_away(d, ARENA_GENERAL, 64);
	struct chunk_shm *chunk = chunk_of(d, ARENA_GENERAL, 1);

	chunk->class_ix = ARENA_CLASS_TAKEN;
	actor_slot(d)->chunk_link = ((uint32_t)ARENA_GENERAL << 24 | 1) + 1;
	engine_kill_thread(d);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	usage(a, ARENA_GENERAL, &chunks);
	EXPECT_INT(chunks, 1);
	EXPECT_INT(chunk->class_ix, 0);
	give(a, ref);
}

static struct {
	struct actor *blocker;
	uint64_t lock;
} on_repair;

/* Repairs, then the pool becomes busy: who took a chunk from the arena now waits with it. */
static void repair_and_block(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	repair_lock(c, dead_ix, lock_off);
	seize(on_repair.blocker, on_repair.lock);
}

/*
 * A thread that died with the name of a chunk that it had not taken yet, or had given back already.
 * Somebody else takes the chunk; the burial of the dead one must leave it to him.
 */
static void test_void_name_of_a_chunk(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join(e), *b = engine_join(e);
	struct actor *gravedigger = engine_join(e);
	uint64_t arena_lock = region_off(e->base, &arena_of(d, ARENA_GENERAL)->lock);
	uint32_t ref;

	ref = take_away(d, ARENA_GENERAL, 64); /* so that chunk 1 exists */
	seize(d, arena_lock);
	actor_slot(d)->chunk_link = ((uint32_t)ARENA_GENERAL << 24 | 1) + 1;
	engine_kill_thread(d);
	on_repair.blocker = b;
	on_repair.lock = pool_lock(a);
	e->on_repair = repair_and_block;
	EXPECT_INT(arena_take(&a->c, ARENA_GENERAL, NAME_FLY, 64), OUTCOME_BUSY);
	e->on_repair = NULL;
	EXPECT_INT(actor_slot(a)->chunk_link, ((uint32_t)ARENA_GENERAL << 24 | 1) + 1);
	EXPECT_INT(chunk_of(a, ARENA_GENERAL, 1)->class_ix, ARENA_CLASS_TAKEN);
	EXPECT_INT(repair_bury_thread(&gravedigger->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(chunk_of(a, ARENA_GENERAL, 1)->class_ix, ARENA_CLASS_TAKEN);
	let_loose(b, pool_lock(a));
	take(a, ARENA_GENERAL, NAME_FLY, 64);
	EXPECT_INT(arena_give(&a->c, NAME_FLY), OUTCOME_DONE);
	give(a, ref);
}

/* The same with the pool's lock: the chunk had become the pool's when its enlister died. */
static void test_void_name_of_an_enlisted_chunk(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join_thread(d);
	uint32_t ref = take_away(d, ARENA_GENERAL, 64);

	seize(d, pool_lock(d));
	actor_slot(d)->chunk_link =
		((uint32_t)ARENA_GENERAL << 24 | chunk_ix(ref, ARENA_GENERAL)) + 1;
	engine_kill_thread(d);
	rlock_recover(&a->c, d->c.thread_ix, false);
	EXPECT_INT(actor_slot(d)->chunk_link, 0);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	give(a, ref);
}

static void test_references_that_name_nothing(void **state)
{
	struct actor *a = engine_join(*state);
	uint32_t ref = take_away(a, ARENA_GENERAL, 128);
	static const uint32_t none[] = {0, 1, ~0u, (uint32_t)(ARENAS_OFF / REF_UNIT) + 3};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		EXPECT_INT(arena_capacity(a->e->base, none[i]), 0);
		actor_slot(a)->name_ref[NAME_FLY] = none[i];
		EXPECT_INT(arena_give(&a->c, NAME_FLY), OUTCOME_DONE);
		EXPECT_INT(actor_slot(a)->name_ref[NAME_FLY], 0);
	}
	EXPECT(!region_block(a->e->base, ref, 1ull << 40));
	EXPECT_INT(usage(a, ARENA_GENERAL, NULL), 1);
	give(a, ref);
}

static struct chunk_shm *damaged;

static void repair_and_damage(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	repair_lock(c, dead_ix, lock_off);
	damaged->span = 0;
}

/* What a look under the lock shows to be no span any more keeps its pages. */
static void test_nothing_is_punched_unseen(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join_thread(d);
	uint32_t ref = take_away(a, ARENA_GENERAL, 2 * CHUNK_BYTES);
	unsigned char *memory = region_block(e->base, ref, 2 * CHUNK_BYTES);

	memory[CHUNK_BYTES] = 7;
	damaged = chunk_of(a, ARENA_GENERAL, chunk_ix(ref, ARENA_GENERAL));
	seize(d, region_off(e->base, &arena_of(d, ARENA_GENERAL)->lock));
	engine_kill_thread(d);
	e->on_repair = repair_and_damage;
	give(a, ref); /* forgotten */
	e->on_repair = NULL;
	EXPECT_INT(memory[CHUNK_BYTES], 7);
	EXPECT_INT(damaged->class_ix, ARENA_CLASS_SPAN);
	damaged->span = 2;
	give(a, ref);
	EXPECT_INT(memory[CHUNK_BYTES], 0);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(engine_blocks(e), 0);
}

/* A span without length hides nothing of what is behind it from the repair of the arena. */
static void test_span_without_length(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join_thread(d);
	uint32_t ref = take_away(a, ARENA_GENERAL, CHUNK_BYTES), far;
	uint32_t ix = chunk_ix(ref, ARENA_GENERAL);

	far = take_away(a, ARENA_GENERAL, 3 * CHUNK_BYTES); /* so that those chunks exist */
	give(a, far);
	seize(d, region_off(e->base, &arena_of(d, ARENA_GENERAL)->lock));
	chunk_of(d, ARENA_GENERAL, ix)->span = 0;
	chunk_of(d, ARENA_GENERAL, ix + 2)->class_ix = ARENA_CLASS_INSIDE;
	engine_kill_thread(d);
	rlock_recover(&a->c, d->c.thread_ix, false);
	EXPECT_INT(chunk_of(a, ARENA_GENERAL, ix + 2)->class_ix, 0);
	EXPECT_INT(arena_capacity(e->base, ref), 0);
	chunk_of(a, ARENA_GENERAL, ix)->span = 1;
	give(a, ref);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_class_is_exact),
		TEST(test_blocks_do_not_overlap),
		TEST(test_empty_chunks_go_back),
		TEST(test_semaphore_words_stay_words),
		TEST(test_spans),
		TEST(test_too_large),
		TEST(test_full_file_system),
		TEST(test_busy_pool),
		TEST(test_death_before_the_bit),
		TEST(test_death_after_the_bit),
		TEST(test_death_after_giving),
		TEST(test_two_names_of_one_block),
		TEST(test_names_of_the_victim),
		TEST(test_half_made_span),
		TEST(test_chunk_between_arena_and_pool),
		TEST(test_void_name_of_a_chunk),
		TEST(test_void_name_of_an_enlisted_chunk),
		TEST(test_references_that_name_nothing),
		TEST(test_nothing_is_punched_unseen),
		TEST(test_span_without_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
