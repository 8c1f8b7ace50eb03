// SPDX-License-Identifier: MIT
/* Sorting a chain of waiters, for the repair of either family's lists; see the header. */
#include "core/chain.h"

#include "core/region.h"

static struct thread_shm *link_thread(struct caller *c, uint32_t link)
{
	return link ? region_thread(c->base, link - 1) : NULL;
}

/* Merges two chains by arrival; merge sort of chains needs no memory. */
static uint32_t merge_chains(struct caller *c, uint32_t a, uint32_t b)
{
	uint32_t first = 0, *at = &first;

	while (a && b) {
		uint32_t *take = link_thread(c, a)->arrival <= link_thread(c, b)->arrival ? &a : &b;
		struct thread_shm *t = link_thread(c, *take);

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

	while (chain) {
		struct thread_shm *t = link_thread(c, chain);
		uint32_t one = chain;
		int k = 0;

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
