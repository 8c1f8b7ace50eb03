/* SPDX-License-Identifier: MIT */
/*
 * A region whose pages are gone: its file was cut off, or pages were taken out of it and the file
 * system has no room for new ones. Whoever touches one gets SIGBUS. See lost.c.
 */
#ifndef USYSV_CLIENT_LOST_H
#define USYSV_CLIENT_LOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

extern uint32_t lost_word;

/* Is this process's region lost? Then its calls fail, with ENOTRECOVERABLE. [signal] */
static inline bool lost_region(void)
{
	return load_relaxed(&lost_word) != 0; /* whoever lost it was told by a fault of its own */
}

/* SIGBUS at this address: true when it lies in the region, and now can be touched. [signal] */
bool lost_mend(uintptr_t address);

/* For programs without a preload: a handler for SIGBUS that does that, and what else they map of a
 * region (null: nothing more). */
void lost_install(void);
void lost_watch(const unsigned char *base);

#endif
