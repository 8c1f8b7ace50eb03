/* SPDX-License-Identifier: MIT */
/*
 * What shmat() has mapped in this memory, by this process's own account: for shmdt() where /proc
 * does not tell what is mapped, which then must not take a range from the region, whose contents
 * may be damaged. With MUTEX_ATTACHES. Async-signal-safe; leaves errno alone.
 */
#ifndef USYSV_CLIENT_ATTACH_OWN_H
#define USYSV_CLIENT_ATTACH_OWN_H

#include <stdbool.h>
#include <stdint.h>

/* Is there room for one more? Else there is no memory. */
bool attach_own_reserve(void);

/* An attach is mapped. It takes the place of those that it overlaps. */
void attach_own_add(uint64_t address, uint64_t bytes);

/* How many bytes the attach has that begins there; 0: there is none. */
uint64_t attach_own_bytes(uint64_t address);

/* It has been detached; no harm if there is none. */
void attach_own_drop(uint64_t address);

#endif
