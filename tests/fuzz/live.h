/* SPDX-License-Identifier: MIT */
/* What live.c and the programs that it watches share: a page that says who does what. */
#ifndef TESTS_FUZZ_LIVE_H
#define TESTS_FUZZ_LIVE_H

#include <stdint.h>

#define LIVE_SEATS 512u

#define LIVE_ASLEEP "a long sleep" /* what the sleeper does: live_user.c, depth -1 */

struct board {
	uint32_t seats; /* taken so far, by processes and images */
	uint32_t bad;
	char text[256]; /* of the first that went wrong */
	struct seat {
		int32_t pid;
		char doing[28]; /* the call that it is in */
	} seat[LIVE_SEATS];
};

#endif
