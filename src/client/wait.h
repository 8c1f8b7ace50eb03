/* SPDX-License-Identifier: MIT */
/* Waiting: on what is busy, with nothing held, and for the end of a queued request. */
#ifndef USYSV_CLIENT_WAIT_H
#define USYSV_CLIENT_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "client/thread.h"

/*
 * After OUTCOME_BUSY: waits until what caller.busy names has changed, or its owner has died (who is
 * then recovered). Called in a section, which it leaves, so that handlers run meanwhile; the call
 * then starts over. BUSY_VALUE
 * is waited for by spinning only: true when the value changed, false when spinning did not help.
 */
bool wait_busy(struct thread_block *tb);

/* The same within a section, where handlers are put off: for the short work at a process's end. And
 * for some milliseconds at the most. */
void wait_busy_in_section(struct thread_block *tb);
void wait_busy_briefly(struct thread_block *tb);

/*
 * Sleeps until the request queued in the thread's waiter has ended (0), the deadline of
 * CLOCK_MONOTONIC has passed (-ETIMEDOUT; null: none) or a handler has run (-EINTR): in the last
 * two cases the waiter is still queued, unless s->settled. Outside a section.
 */
int wait_asleep(struct thread_block *tb, struct sleep *s, uint32_t *state,
		const struct timespec *deadline);

/* CLOCK_MONOTONIC, and plus ns. */
int64_t wait_now_ns(void);
struct timespec wait_deadline(int64_t ns);

#endif
