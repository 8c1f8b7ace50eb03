/* SPDX-License-Identifier: MIT */
/*
 * A random test in rounds, each of which follows from a seed and its number alone:
 *
 *	... [--seed N] [--first N] [--rounds N] [--seconds N] [--say]
 */
#ifndef TESTS_FUZZ_ROUNDS_H
#define TESTS_FUZZ_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

struct rounds {
	uint64_t seed;
	uint64_t first, end;
	int64_t until_ms;
	bool say; /* what is done */
};

/*
 * Reads the options and prints the seed; optind is then that of the first other word. Without
 * number and time there are `usual` rounds. Ends the program with 2 when the options are wrong.
 */
void rounds_begin(struct rounds *rounds, int argc, char **argv, uint64_t usual);

/* The state of the round's random numbers, never 0. */
uint64_t rounds_state(const struct rounds *rounds, uint64_t number);

/* There are rounds and time left. */
bool rounds_go_on(const struct rounds *rounds, uint64_t number);

int64_t rounds_now_ms(void);

#endif
