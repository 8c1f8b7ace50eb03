// SPDX-License-Identifier: MIT
/* What a mapping must look like to be entered, and growth of the published ranges. */
#include <stdio.h>
#include <sys/mman.h>

#include "unit.h"

static void refuse(struct engine *e, uint64_t size, int expected)
{
	const char *why = NULL;

	EXPECT_INT(region_validate(e->base, size, &why), expected);
	EXPECT(why && *why);
}

static void test_fresh_region(void **state)
{
	struct engine *e = *state;
	const char *why;

	EXPECT_INT(region_validate(e->base, REGION_BYTES, &why), 0);
	EXPECT_INT(engine_check(e), 0);
	EXPECT_INT(region_header(e->base)->limits.semmni, 32000);
}

static void test_foreign(void **state)
{
	struct engine *e = *state;
	struct header_shm *h = region_header(e->base);

	h->magic = 0;
	refuse(e, REGION_BYTES, -EINVAL);
	h->magic = REGION_MAGIC ^ 1;
	refuse(e, REGION_BYTES, -EINVAL);
	h->magic = REGION_MAGIC;
}

static void test_truncated(void **state)
{
	struct engine *e = *state;
	struct header_shm *h = region_header(e->base);

	refuse(e, 0, -EINVAL);
	refuse(e, sizeof(*h) - 1, -EINVAL);
	refuse(e, sizeof(*h), -EINVAL);
	refuse(e, REGION_BYTES - PAGE_BYTES, -EINVAL);
	h->size = REGION_BYTES - PAGE_BYTES;
	refuse(e, REGION_BYTES - PAGE_BYTES, -EINVAL);
	refuse(e, REGION_BYTES, -EINVAL);
	h->size = REGION_BYTES;
}

static void test_other_version(void **state)
{
	struct engine *e = *state;
	struct header_shm *h = region_header(e->base);

	h->format ^= 1;
	refuse(e, REGION_BYTES, -EPROTO);
	h->format ^= 1;
	h->protocol++;
	refuse(e, REGION_BYTES, -EPROTO);
	h->protocol--;
}

/* Marks that would lead a lookup out of its range. */
static void test_damaged_marks(void **state)
{
	struct engine *e = *state;
	struct header_shm *h = region_header(e->base);
	struct {
		uint32_t *word, bad;
	} mark[] = {
		{&h->proc_hi, PROC_CAPACITY + 1},
		{&h->group_hi, GROUP_CAPACITY + 1},
		{&h->table[FAMILY_SEM].hi, OBJECT_CAPACITY + 1},
		{&h->table[FAMILY_MSG].hi, ~0u},
		{&h->table[FAMILY_SHM].bucket_mask, BUCKET_CAPACITY},
		{&h->table[FAMILY_SEM].bucket_mask, 1000}, /* not 2^n - 1 */
		{&h->arena[ARENA_SEM].hi, CHUNK_CAPACITY + 1},
		{&h->arena[ARENA_GENERAL].hi, ~0u},
	};

	for (size_t i = 0; i < sizeof(mark) / sizeof(mark[0]); i++) {
		uint32_t good = *mark[i].word;

		*mark[i].word = mark[i].bad;
		refuse(e, REGION_BYTES, -EINVAL);
		*mark[i].word = good;
	}
}

/* Even with marks past the end nothing beyond the range is reached. */
static void test_accessors_have_bounds(void **state)
{
	struct engine *e = *state;
	struct header_shm *h = region_header(e->base);
	struct header_shm good = *h;

	engine_join(e);
	good = *h;
	EXPECT(!region_proc(e->base, h->proc_hi));
	EXPECT(!region_thread(e->base, h->group_hi * GROUP_SPAN));
	EXPECT(!region_thread(e->base, GROUP_THREADS)); /* a hole of the first group */
	EXPECT(!region_object(e->base, FAMILY_SEM, h->table[FAMILY_SEM].hi));
	h->proc_hi = h->group_hi = h->table[FAMILY_SEM].hi = h->arena[ARENA_SEM].hi = ~0u;
	EXPECT(!region_proc(e->base, PROC_CAPACITY));
	EXPECT(!region_thread(e->base, THREAD_CAPACITY));
	EXPECT(!region_life(e->base, THREAD_CAPACITY));
	EXPECT(!region_object(e->base, FAMILY_SEM, OBJECT_CAPACITY));
	EXPECT(!region_block(e->base, (uint32_t)((ARENAS_OFF + ARENA_BYTES) / REF_UNIT), 64));
	*h = good;
}

static void test_growth(void **state)
{
	struct engine *e = *state;
	struct table_shm *t = &region_header(e->base)->table[FAMILY_SHM];
	uint64_t off = object_off(FAMILY_SHM, 0);

	EXPECT_INT(region_grow(e->base, &t->hi, off, OBJECT_SLOT_BYTES, OBJECT_CAPACITY, 0), 0);
	EXPECT_INT(t->hi, PAGE_BYTES / OBJECT_SLOT_BYTES); /* a whole page becomes visible */
	EXPECT_INT(region_grow(e->base, &t->hi, off, OBJECT_SLOT_BYTES, OBJECT_CAPACITY, 3), 0);
	EXPECT_INT(t->hi, PAGE_BYTES / OBJECT_SLOT_BYTES);
	EXPECT_INT(region_grow(e->base, &t->hi, off, OBJECT_SLOT_BYTES, OBJECT_CAPACITY, 100), 0);
	EXPECT_INT(t->hi, 112);
	EXPECT_INT(region_grow(e->base, &t->hi, off, OBJECT_SLOT_BYTES, OBJECT_CAPACITY,
			       OBJECT_CAPACITY),
		   -ENOSPC);
	EXPECT_INT(t->hi, 112);
	t->hi = 0;
}

/* The mark does not move over pages that could not be made real. */
static void test_growth_on_a_full_file_system(void **state)
{
	struct engine *e = *state;
	struct table_shm *t = &region_header(e->base)->table[FAMILY_SHM];
	uint64_t off = object_off(FAMILY_SHM, 0);

	EXPECT_INT(region_grow(e->base, &t->hi, off, OBJECT_SLOT_BYTES, OBJECT_CAPACITY, 0), 0);
	munmap(e->base + off + PAGE_BYTES, PAGE_BYTES); /* what cannot be populated */
	EXPECT_INT(region_grow(e->base, &t->hi, off, OBJECT_SLOT_BYTES, OBJECT_CAPACITY, 20),
		   -ENOMEM);
	EXPECT_INT(t->hi, PAGE_BYTES / OBJECT_SLOT_BYTES);
	t->hi = 0;
}

static void say(void *context, const char *text)
{
	snprintf(context, 256, "%s", text);
}

/* The checker notices: a checker that sees nothing would let every other test pass. */
static void test_checker_sees_damage(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *b = engine_join(e);
	int32_t id = new_set(a, 2, (int[]){1, 0});
	struct set_shm *set = set_of(a, id);
	struct semq_shm *side = region_block(e->base, set->side_ref, 2 * sizeof(*side));
	struct table_shm *t = &region_header(e->base)->table[FAMILY_SEM];
	char text[256];

	queue_op(b, id, 1, -1, 0);
#define DAMAGE(lvalue, bad)                                                                        \
	do {                                                                                       \
		typeof(lvalue) good = (lvalue);                                                    \
		(lvalue) = (typeof(lvalue))(bad);                                                  \
		text[0] = 0;                                                                       \
		EXPECT(check_region(e->base, say, text) > 0);                                      \
		EXPECT(text[0]);                                                                   \
		(lvalue) = good;                                                                   \
		EXPECT_INT(engine_check(e), 0);                                                    \
	} while (0)
	DAMAGE(t->in_use, 2);
	DAMAGE(t->total, 3);
	DAMAGE(set->intent, INTENT_SELF);
	DAMAGE(set->waiting, 0);
	DAMAGE(set->complex_count, 1);
	DAMAGE(set->object.gen, 0);
	DAMAGE(set->object.lock, 77);
	DAMAGE(set->words_ref, 0);
	DAMAGE(set->undo_ref, set->side_ref);
	DAMAGE(side[0].used, 1);
	DAMAGE(side[1].alter_head, 0);
	DAMAGE(side[1].alter_tail, 0);
	DAMAGE(sem_of(a, id, 1)->word, SEM_WORD(0, set->object.gen, 0));
	DAMAGE(sem_of(a, id, 1)->word, SEM_WORD(1, set->object.gen, 0) | SEM_SLOW);
	DAMAGE(sem_of(a, id, 0)->word, SEM_WORD(1, set->object.gen + 1, 0));
	DAMAGE(sem_of(a, id, 0)->word, SEM_WORD(1, set->object.gen, a->c.thread_ix) | SEM_HELD);
	DAMAGE(actor_slot(b)->object_gen, 99);
	DAMAGE(actor_slot(b)->st, WAIT_WORD(1, WAIT_FREE));
	DAMAGE(actor_slot(a)->name_ref[NAME_FLY], set->side_ref);
	DAMAGE(actor_slot(a)->hold, 7);
#undef DAMAGE
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_fresh_region),
		TEST(test_foreign),
		TEST(test_truncated),
		TEST(test_other_version),
		TEST(test_damaged_marks),
		TEST(test_accessors_have_bounds),
		TEST(test_growth),
		TEST(test_growth_on_a_full_file_system),
		TEST(test_checker_sees_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
