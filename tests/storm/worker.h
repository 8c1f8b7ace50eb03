/* SPDX-License-Identifier: MIT */
/* What the parts of a worker share: worker.c, objects.c. */
#ifndef TESTS_STORM_WORKER_H
#define TESTS_STORM_WORKER_H

#include "storm.h"

extern struct seat *seat;
extern uint32_t seat_ix;
extern struct account *me;
extern uint32_t identity;
extern struct storm_message message; /* being sent, or just received */

uint32_t rnd(uint32_t below); /* of this thread */
void count(uint64_t *counter);
bool has_account(void); /* else what it does is not to be counted */

/* What is written down survives this process, in the order of the program. */
static inline void note(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void mark(void);  /* counts in a segment that all attach */
void keyed(void); /* one of the objects under well-known keys */
void own(void);   /* one of its own */
/* What the last one in this seat left, but for what it had not written down. */
void remove_own(int i);

#endif
