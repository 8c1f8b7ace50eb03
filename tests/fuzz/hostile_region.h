/* SPDX-License-Identifier: MIT */
/*
 * A region with objects of all families, damage to it, and every call of the engine on what is
 * left: the property that a damaged region gives errors and never a wild access, an endless loop or
 * a crash. Shared by the test (hostile.c) and by the libFuzzer target (fuzz_region.c).
 *
 * The mapping is private to the process and lies between inaccessible areas as large as anything
 * that a 32-bit reference can reach, so that an access outside is a fault.
 */
#ifndef TESTS_FUZZ_HOSTILE_REGION_H
#define TESTS_FUZZ_HOSTILE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where choices come from: bytes that were given, else a generator. */
struct choices {
	const uint8_t *data;
	size_t left;
	uint64_t state; /* 0: what is beyond the data is zero */
};

uint64_t choose(struct choices *ch, uint64_t below);

/* Builds the region that each round starts from. False with a message on stderr: impossible here.
 */
bool hostile_begin(void);

/* One round: the region as it was built, damaged, and used. Failures of the property other than
 * a fault or a hang print a line and call abort(). say: what is done, on stderr. */
void hostile_round(struct choices *ch, bool say);

/* One word, a mark more often than not, is another for a moment: in a thread beside the rounds, for
 * what has been checked once need not be so any more. */
void hostile_spoil(struct choices *ch);

#endif
