// SPDX-License-Identifier: MIT
/* Sorting a chain of waiters, for the repair of either family's lists; see the header. */
#include "core/chain.h"

#include "core/region.h"

static struct thread_shm *link_thread(struct caller *c, uint32_t link)
{
	return link ? region_thread(c->base, link - 1) : NULL;
}

/* Merges two chains by arrival; merge sort of chains needs no memory. A chain that is spoilt
 * meanwhile is cut where it leads nowhere, or after more than there can be. */
static uint32_t merge_chains(struct caller *c, uint32_t a, uint32_t b)
{
	uint32_t first = 0, *at = &first;

	for (uint32_t n = 0; a && b && n < THREAD_CAPACITY; n++) {
		const struct thread_shm *ta = link_thread(c, a), *tb = link_thread(c, b);
		uint32_t *take = !tb || (ta && ta->arrival <= tb->arrival) ? &a : &b;
		struct thread_shm *t = link_thread(c, *take);

		if (!t)
			break;
		*at = *take;
		at = &t->next_link;
		*take = t->next_link;
	}
	*at = a ? a : b;
	return first;
}

uint32_t chain_sort_by_arrival(struct caller *c, uint32_t chain)
{
	uint32_t bin[32] = {0}, sorted = 0;

	for (uint32_t n = 0; chain && n < THREAD_CAPACITY; n++) {
		struct thread_shm *t = link_thread(c, chain);
		uint32_t one = chain;
		int k = 0;

		if (!t)
			break;
		chain = t->next_link;
		t->next_link = 0;
		for (; k < 31 && bin[k]; k++) {
			one = merge_chains(c, bin[k], one);
			bin[k] = 0;
		}
		bin[k] = merge_chains(c, bin[k], one);
	}
	for (int k = 0; k < 32; k++)
		sorted = merge_chains(c, bin[k], sorted);
	return sorted;
}
