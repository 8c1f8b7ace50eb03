// SPDX-License-Identifier: MIT
/*
 * What looks at a set's queued requests without granting any: counting them, and making the lists
 * anew after a death inside the set's lock (cards SEM_L1 and SEM_P2 in sem_set.c).
 *
 * The lists are derived: who waits is told by the waiters' own state words, in which order by the
 * number they drew on arrival. So links that a death left half done are thrown away.
 */
#include "base/futex.h"
#include "core/chain.h"
#include "ipc/sem_priv.h"

#include <limits.h>

/* ---- Counting ---------------------------------------------------------------------------- */

static int count_list(struct caller *c, const struct sem_view *v, uint32_t link, uint32_t num,
		      bool zero)
{
	uint32_t steps = 0, bound = sem_list_bound(c, v);
	int count = 0;

	while (link && steps++ <= bound) {
		struct thread_shm *t = sem_link_thread(c, link);
		const struct semop_shm *op;

		if (!t)
			break;
		op = &sem_request_ops(
			c, t)[t->blocking < sem_request_count(c, v, t) ? t->blocking : 0];
		if (op->num == num && (zero ? op->op == 0 : op->op < 0) &&
		    !sem_is_gone(c, link - 1))
			count++;
		link = t->next_link;
	}
	return count;
}

int sem_count(struct caller *c, const struct sem_view *v, uint32_t num, bool zero)
{
	struct semq_shm *side = sem_side(c, v);
	int count;

	if (!side)
		return 0;
	count = count_list(c, v, zero ? side[num].zero_head : side[num].alter_head, num, zero);
	count += count_list(c, v, v->set->alter_head, num, zero);
	if (zero)
		count += count_list(c, v, v->set->const_head, num, zero);
	return count;
}

/* ---- Repair ------------------------------------------------------------------------------ */

static void wake_told_one(struct thread_shm *t, uint32_t set_ix)
{
	uint32_t state = WAIT_STATE(load_acquire(&t->st)); /* SEM_P2/A */

	if ((state == WAIT_GRANTED || state == WAIT_REMOVED) && t->family == FAMILY_SEM &&
	    t->object_ix == set_ix)
		futex_wake(&t->st, INT_MAX);
}

void sem_wake_told(struct caller *c, uint32_t set_ix)
{
	uint32_t groups = region_group_count(c->base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			wake_told_one(region_known_thread(c->base, g * GROUP_SPAN + k), set_ix);
}

/* Links threads by next_link into `*chain`; sorted by arrival afterwards. */
static void collect(struct caller *c, const struct sem_view *v, struct thread_shm *t,
		    uint32_t thread_ix, struct sem_wakes *wakes)
{
	(void)c;
	(void)wakes;
	t->listed = LIST_NONE;
	t->prev_link = 0;
	t->next_link = v->set->alter_head;
	v->set->alter_head = thread_ix + 1;
}

static void rebuild_lists(struct caller *c, const struct sem_view *v)
{
	struct set_shm *set = v->set;
	struct semq_shm *side = sem_side(c, v);
	uint32_t chain;

	set->alter_head = set->alter_tail = set->const_head = set->const_tail = 0;
	set->complex_count = set->const_count = set->waiting = 0;
	for (uint32_t num = 0; side && num < v->nsems; num++)
		side[num] = (struct semq_shm){0};
	sem_each_waiter(c, v, collect, NULL);
	chain = chain_sort_by_arrival(c, set->alter_head);
	set->alter_head = 0;
	for (uint32_t n = 0; chain && n < THREAD_CAPACITY; n++) {
		struct thread_shm *t = sem_link_thread(c, chain);
		uint32_t thread_ix = chain - 1;

		if (!t)
			break;
		chain = t->next_link;
		sem_enlist(c, v, t, thread_ix);
	}
}

void sem_repair_set(struct caller *c, uint32_t dead_ix, uint32_t set_ix)
{
	struct set_shm *set = region_set(c->base, set_ix);
	struct sem_wakes wakes = {0};
	struct sem_view v;

	if (!set)
		return;
	if (set->intent == INTENT_RMID) {
		/* live may be 0 already: the view comes from the slot itself */
		v = (struct sem_view){.set = set,
				      .ix = set_ix,
				      .gen = set->object.gen,
				      .nsems = set->nsems,
				      .stride = set->stride};
		v.words = region_block(c->base, set->words_ref, (uint64_t)v.nsems * v.stride);
		if (v.words)
			sem_apply(c, &v, &wakes);
	} else if (sem_view_locked(c, set_ix, &v) == 0 && (v.side = sem_side(c, &v)) != NULL) {
		/* The lists may be half linked; what that does to them is mended right after. */
		if (set->intent != INTENT_NONE)
			sem_apply(c, &v, &wakes);
		sem_undo_finish_link(c, set, dead_ix);
		rebuild_lists(c, &v);
		sem_serve(c, &v, NULL, 0, &wakes);
		if (set->complex_count == 0 && set->alter_head)
			sem_unmerge(c, &v);
	}
	/* In the dead one's name: whoever repeats this wakes all of them again. */
	sem_wake_told(c, set_ix);
}
