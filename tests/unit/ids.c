// SPDX-License-Identifier: MIT
/*
 * Ids, indexes and keys. The choice of ids is compared with a model of the kernel's rule: the next
 * index after the last one chosen, within max(1.5 x in use, 64), the sequence number going up
 * whenever the index does not.
 */
#include "unit.h"

/* ---- The model ---------------------------------------------------------------------------- */

#define MODEL_INDEXES 32768

struct model {
	unsigned char used[MODEL_INDEXES];
	int in_use, next, last, seq;
};

static int model_find(const struct model *m, int from, int end)
{
	for (int i = from; i < end; i++)
		if (!m->used[i])
			return i;
	return -1;
}

static int model_add(struct model *m)
{
	int end = m->in_use * 3 / 2, ix;

	end = end < 64 ? 64 : end > MODEL_INDEXES ? MODEL_INDEXES : end;
	ix = model_find(m, m->next, end);
	if (ix < 0)
		ix = model_find(m, 0, end);
	EXPECT(ix >= 0);
	if (ix <= m->last)
		m->seq = m->seq + 1 >= 65535 ? 0 : m->seq + 1;
	m->last = ix;
	m->next = ix + 1;
	m->used[ix] = 1;
	m->in_use++;
	return m->seq << 15 | ix;
}

static void model_remove(struct model *m, int id)
{
	m->used[id & 32767] = 0;
	m->in_use--;
}

static uint32_t random_next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void test_choice_of_ids(void **state)
{
	struct actor *a = engine_join(*state);
	static struct model m;
	static int32_t id[400];
	uint32_t seed = 4711, count = 0;

	m = (struct model){.last = -1};
	for (int step = 0; step < 6000; step++) {
		/* Phases that grow and phases that shrink. */
		bool grow = random_next(&seed) % 100 < (step / 1000 % 2 ? 35 : 65);

		if (count < 400 && (grow || count == 0)) {
			id[count] = engine_semget(a, 0, 1, 0600);
			EXPECT_INT(id[count], model_add(&m));
			count++;
		} else {
			uint32_t k = random_next(&seed) % count;

			EXPECT_INT(engine_rmid(a, id[k]), 0);
			model_remove(&m, id[k]);
			EXPECT_INT(engine_getval(a, id[k], 0), -EINVAL);
			id[k] = id[--count];
		}
	}
	EXPECT_INT(region_header(a->e->base)->table[FAMILY_SEM].in_use, count);
}

static void test_sequence_wraps(void **state)
{
	struct actor *a = engine_join(*state);
	struct table_shm *t = &region_header(a->e->base)->table[FAMILY_SEM];
	int32_t first = engine_semget(a, 0, 1, 0600), id;

	EXPECT_INT(engine_rmid(a, first), 0);
	t->seq = 65534;
	t->last_ix = 63;
	t->cursor = 64;
	id = engine_semget(a, 0, 1, 0600);
	EXPECT_INT(id, 0); /* index 0, sequence number 0 again */
	EXPECT_INT(engine_getval(a, id, 0), 0);
}

/* ---- Keys --------------------------------------------------------------------------------- */

static void test_get(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id, other;

	EXPECT_INT(engine_semget(a, 5, 1, 0600), -ENOENT);
	id = engine_semget(a, 5, 2, GET_CREAT | 0600);
	EXPECT(id >= 0);
	EXPECT_INT(engine_semget(b, 5, 0, 0), id);
	EXPECT_INT(engine_semget(b, 5, 2, GET_CREAT), id);
	EXPECT_INT(engine_semget(b, 5, 3, GET_CREAT), -EINVAL);
	EXPECT_INT(engine_semget(b, 5, 1, GET_CREAT | GET_EXCL), -EEXIST);
	EXPECT_INT(engine_semget(b, 6, 0, GET_CREAT), -EINVAL);
	other = engine_semget(b, 0, 1, 0600); /* private: never found again */
	EXPECT(other >= 0 && other != id);
	EXPECT(engine_semget(b, 0, 1, 0600) != other);
	EXPECT_INT(engine_rmid(a, id), 0);
	EXPECT_INT(engine_semget(a, 5, 1, 0600), -ENOENT);
	other = engine_semget(a, 5, 1, GET_CREAT | GET_EXCL | 0600);
	EXPECT(other >= 0 && other != id);
	EXPECT_INT(engine_getval(a, id, 0), -EINVAL);
}

/* 3000 keys, past two doublings of the buckets; removed in another order. */
static void test_many_keys(void **state)
{
	struct actor *a = engine_join(*state);
	struct table_shm *t = &region_header(a->e->base)->table[FAMILY_SEM];
	static int32_t id[3000];
	uint32_t ix, live;

	for (int i = 0; i < 3000; i++) {
		id[i] = engine_semget(a, 1000 + i * 64, 1, GET_CREAT | GET_EXCL | 0600);
		EXPECT(id[i] >= 0);
	}
	EXPECT_INT(t->bucket_mask, 4095);
	for (int i = 0; i < 3000; i++) {
		EXPECT(ids_find_key(a->e->base, FAMILY_SEM, 1000 + i * 64, &ix, &live));
		EXPECT_INT(live, id[i] + 1);
		EXPECT(!ids_find_key(a->e->base, FAMILY_SEM, 1001 + i * 64, &ix, &live));
	}
	EXPECT_INT(engine_check(a->e), 0);
	for (int i = 0; i < 3000; i++) {
		int k = i * 7 % 3000;

		EXPECT_INT(engine_rmid(a, id[k]), 0);
		EXPECT_INT(engine_semget(a, 1000 + k * 64, 0, 0), -ENOENT);
		k = (i * 7 + 3500) % 3000;
		EXPECT_INT(engine_semget(a, 1000 + k * 64, 0, 0) >= 0,
			   engine_getval(a, id[k], 0) == 0);
	}
	EXPECT_INT(t->in_use, 0);
	EXPECT_INT(t->total, 0);
}

/* ---- The next id, limits ------------------------------------------------------------------ */

static void test_next_id(void **state)
{
	struct actor *a = engine_join(*state);
	struct table_shm *t = &region_header(a->e->base)->table[FAMILY_SEM];
	int32_t id = engine_semget(a, 0, 1, 0600);

	EXPECT_INT(id, 0);
	t->next_id = 77 << 15 | 500;
	EXPECT_INT(engine_semget(a, 0, 1, 0600), 77 << 15 | 500);
	EXPECT_INT(t->next_id, -1);                  /* a wish is good for one creation */
	EXPECT_INT(engine_semget(a, 0, 1, 0600), 1); /* and leaves the cycle alone */
	t->next_id = 3 << 15 | 500;                  /* taken: the next free one */
	EXPECT_INT(engine_semget(a, 0, 1, 0600), 3 << 15 | 501);
	t->next_id = 9 << 15 | 32767;
	EXPECT_INT(engine_semget(a, 0, 1, 0600), 9 << 15 | 32767);
	EXPECT_INT(ids_highest(a->e->base, FAMILY_SEM), 32767);
}

static void test_limits(void **state)
{
	struct actor *a = engine_join(*state);
	struct limits_shm *l = &region_header(a->e->base)->limits;
	uint64_t blocks;
	int32_t id[4];

	l->semmni = 4;
	l->semmns = 10;
	l->semmsl = 7;
	EXPECT_INT(engine_semget(a, 0, 8, 0600), -EINVAL);
	EXPECT_INT(engine_semget(a, 0, -1, 0600), -EINVAL);
	id[0] = engine_semget(a, 0, 7, 0600);
	blocks = engine_blocks(a->e);
	EXPECT_INT(engine_semget(a, 0, 4, 0600), -ENOSPC);
	EXPECT_INT(engine_blocks(a->e), blocks); /* nothing is kept of a refused creation */
	for (int i = 1; i < 4; i++)
		EXPECT((id[i] = engine_semget(a, 0, 1, 0600)) >= 0);
	l->semmns = 1000;
	EXPECT_INT(engine_semget(a, 0, 1, 0600), -ENOSPC);
	EXPECT_INT(engine_rmid(a, id[2]), 0);
	EXPECT(engine_semget(a, 0, 1, 0600) >= 0);
}

static void test_all_indexes(void **state)
{
	struct actor *a = engine_join(*state);
	struct header_shm *h = region_header(a->e->base);
	static unsigned char seen[32768];
	int32_t id;

	memset(seen, 0, sizeof(seen));
	h->limits.semmni = 100000; /* the capacity rules */
	for (int i = 0; i < 32768; i++) {
		id = engine_semget(a, i + 1, 1, GET_CREAT | 0600);
		EXPECT(id >= 0);
		EXPECT(!seen[id & 32767]++);
	}
	EXPECT_INT(engine_semget(a, 0, 1, 0600), -ENOSPC);
	EXPECT_INT(engine_semget(a, 40000, 1, GET_CREAT | 0600), -ENOSPC);
	EXPECT_INT(h->table[FAMILY_SEM].bucket_mask, 32767);
	id = engine_semget(a, 12345, 0, 0);
	EXPECT_INT(engine_rmid(a, id), 0);
	EXPECT_INT(engine_semget(a, 0, 1, 0600) & 32767, id & 32767);
	for (int i = 0; i < 32768; i++)
		if (i + 1 != 12345)
			EXPECT_INT(engine_rmid(a, engine_semget(a, i + 1, 0, 0)), 0);
	EXPECT_INT(h->table[FAMILY_SEM].in_use, 1);
	EXPECT_INT(h->table[FAMILY_SEM].total, 1);
}

/* ---- Lookup of what is gone --------------------------------------------------------------- */

static void test_stale_ids(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t old = engine_semget(a, 0, 1, 0600), id = -1;
	uint32_t ix;

	EXPECT_INT(engine_rmid(a, old), 0);
	do { /* until the index comes round */
		if (id >= 0)
			EXPECT_INT(engine_rmid(a, id), 0);
		id = engine_semget(a, 0, 1, 0600);
	} while ((id & 32767) != (old & 32767));
	EXPECT(id != old);
	EXPECT_INT(engine_getval(a, old, 0), -EINVAL);
	EXPECT_INT(engine_op(a, old, 0, 1, 0), -EINVAL);
	EXPECT_INT(engine_rmid(a, old), -EINVAL);
	EXPECT_INT(value_of(a, id, 0), 0);
	EXPECT(!ids_lookup(a->e->base, FAMILY_SEM, -1, &ix));
	EXPECT(!ids_lookup(a->e->base, FAMILY_SEM, 20000, &ix)); /* beyond what exists */
	EXPECT(!ids_lookup(a->e->base, FAMILY_MSG, id, &ix));
}

/* ---- Deaths in the table ------------------------------------------------------------------ */

/* Derived things in disorder, and the lock's owner dead: one walk sets all of them right. */
static void test_repair_rebuilds(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join(e);
	struct table_shm *t = &region_header(e->base)->table[FAMILY_SEM];
	uint64_t *map = region_at(e->base, TABLES_OFF + FAMILY_SEM * TABLE_BYTES + BITMAP_OFF);
	uint32_t *buckets = region_at(e->base, TABLES_OFF + FAMILY_SEM * TABLE_BYTES);
	int32_t id[20];

	for (int i = 0; i < 20; i++)
		id[i] = engine_semget(a, 100 + i, i + 1, GET_CREAT | 0600);
	seize(d, ids_table_lock(FAMILY_SEM));
	t->in_use = 999;
	t->total = 999;
	map[0] = 0x5555;
	map[7] = ~0ull;
	for (uint32_t b = 0; b < 1024; b++)
		buckets[b] = b % 20 + 1;
	engine_kill_thread(d);
	EXPECT_INT(engine_semget(a, 99, 1, 0), -ENOENT);
	EXPECT_INT(t->in_use, 20);
	EXPECT_INT(t->total, 210);
	EXPECT_INT(engine_check(e), 0);
	for (int i = 0; i < 20; i++)
		EXPECT_INT(engine_semget(a, 100 + i, 0, 0), id[i]);
	EXPECT(engine_semget(a, 0, 1, 0600) >= 0);
}

/* Published, but the choice is not noted yet: the same id must not be chosen again. */
static void test_death_after_publishing(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join(e);
	struct table_shm *t = &region_header(e->base)->table[FAMILY_SEM];
	struct thread_shm *self = actor_slot(d);
	int32_t id, former = engine_semget(d, 0, 1, 0600);
	struct set_shm *set;

	id = engine_semget(d, 321, 3, GET_CREAT | 0600);
	EXPECT_INT(engine_rmid(d, former), 0); /* whose id would be chosen again */
	set = set_of(d, id);
	seize(d, ids_table_lock(FAMILY_SEM));
	self->op_family = FAMILY_SEM;
	self->op_ix = (uint32_t)id & 32767;
	self->op_chosen = 1;
	self->op = OP_CREATE;
	self->name_ref[NAME_FLY] = set->words_ref;
	self->name_ref[NAME_SIDE] = set->side_ref;
	t->cursor = 0;
	t->last_ix = -1;
	t->in_use = 0;
	t->total = 0;
	engine_kill_thread(d);
	EXPECT_INT(engine_semget(a, 321, 0, 0), id);
	EXPECT_INT(engine_semget(a, 0, 1, 0600), id + 1);
	EXPECT_INT(self->name_ref[NAME_FLY], 0);
	EXPECT_INT(self->name_ref[NAME_SIDE], 0);
	EXPECT_INT(t->in_use, 2);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(engine_setval(a, id, 2, 5), 0);
}

/* Filled, not published: the slot stays free, its blocks go back. */
static void test_death_before_publishing(void **state)
{
	struct engine *e = *state;
	struct actor *d = engine_join(e), *a = engine_join(e);
	struct thread_shm *self = actor_slot(d);
	uint32_t ix;
	int32_t id;

	EXPECT_INT(arena_take(&d->c, ARENA_SEM, NAME_FLY, 64), OUTCOME_DONE);
	EXPECT_INT(arena_take(&d->c, ARENA_GENERAL, NAME_SIDE, 64), OUTCOME_DONE);
	EXPECT_INT(ids_make_slot(&d->c, FAMILY_SEM, 0), 0);
	seize(d, ids_table_lock(FAMILY_SEM));
	EXPECT_INT(ids_reserve_locked(&d->c, FAMILY_SEM, 100, &ix, &id), 0);
	ids_fill_locked(&d->c, FAMILY_SEM, ix, 1, 4242, 0600, NOW);
	EXPECT_INT(self->op, OP_CREATE);
	engine_kill_thread(d);
	EXPECT_INT(engine_semget(a, 4242, 1, 0), -ENOENT);
	EXPECT_INT(self->op, OP_NONE);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(engine_blocks(e), 0);
	EXPECT_INT(engine_semget(a, 4242, 1, GET_CREAT | 0600), id);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_choice_of_ids),
		TEST(test_sequence_wraps),
		TEST(test_get),
		TEST(test_many_keys),
		TEST(test_next_id),
		TEST(test_limits),
		TEST(test_all_indexes),
		TEST(test_stale_ids),
		TEST(test_repair_rebuilds),
		TEST(test_death_after_publishing),
		TEST(test_death_before_publishing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
