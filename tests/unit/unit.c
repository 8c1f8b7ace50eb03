// SPDX-License-Identifier: MIT
#include "unit.h"

#include "ipc/sem_priv.h"

uint64_t spare_lock(void)
{
	return ids_table_lock(FAMILY_SHM);
}

rlock_shm *lock_word(struct actor *a, uint64_t off)
{
	return region_at(a->e->base, off);
}

void seize(struct actor *a, uint64_t off)
{
	EXPECT_INT(rlock_acquire(&a->c, off), OUTCOME_DONE);
}

void let_loose(struct actor *a, uint64_t off)
{
	rlock_release(&a->c, off);
}

struct set_shm *set_of(struct actor *a, int32_t id)
{
	struct set_shm *set = region_set(a->e->base, (uint32_t)id & (OBJECT_CAPACITY - 1));

	EXPECT(set);
	return set;
}

struct sem_shm *sem_of(struct actor *a, int32_t id, uint32_t num)
{
	struct set_shm *set = set_of(a, id);
	unsigned char *words =
		region_block(a->e->base, set->words_ref, (uint64_t)set->nsems * set->stride);

	EXPECT(words && num < set->nsems);
	return (struct sem_shm *)(void *)(words + (size_t)num * set->stride);
}

int value_of(struct actor *a, int32_t id, uint32_t num)
{
	return SEM_WORD_VALUE(load_acquire(&sem_of(a, id, num)->word));
}

int semadj_of(struct actor *a, int32_t id, uint32_t num)
{
	uint32_t ref = set_of(a, id)->undo_ref;

	while (ref) {
		struct undo_shm *u = region_block(a->e->base, ref, sizeof(*u));

		EXPECT(u);
		if (u->proc_ix == a->c.proc_ix)
			return u->adj[num];
		ref = u->next_in_set_ref;
	}
	return 0;
}

int32_t new_set(struct actor *a, uint32_t n, const int *values)
{
	int32_t id = engine_semget(a, 0, (int)n, 0600);

	EXPECT(id >= 0);
	for (uint32_t s = 0; s < n; s++)
		if (values[s])
			EXPECT_INT(engine_setval(a, id, s, values[s]), 0);
	return id;
}

void queue_op(struct actor *a, int32_t id, uint32_t num, int op, int flags)
{
	EXPECT_INT(engine_try_op(a, id, num, op, flags), OUTCOME_SLEEP);
	EXPECT_INT(actor_state(a), WAIT_WAITING);
}
