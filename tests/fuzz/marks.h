/* SPDX-License-Identifier: MIT */
/* The header's words that say how far something is in use: so many pages are walked over. */
#ifndef TESTS_FUZZ_MARKS_H
#define TESTS_FUZZ_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/region.h"

static inline bool is_mark(const struct header_shm *h, const uint32_t *word)
{
	bool found = word == &h->proc_hi || word == &h->group_hi;

	for (int f = 0; f < FAMILY_COUNT; f++)
		found |= word == &h->table[f].hi;
	for (int a = 0; a < ARENA_COUNT; a++)
		found |= word == &h->arena[a].hi;
	return found;
}

#endif
