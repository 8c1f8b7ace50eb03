/* SPDX-License-Identifier: MIT */
/*
 * Chains of waiters by next_link, as a repair collects them from the threads' state words. Under
 * the object's lock; a death leaves a chain that the next repair collects anew.
 */
#ifndef USYSV_CORE_CHAIN_H
#define USYSV_CORE_CHAIN_H

#include "core/caller.h"

/* Sorts the chain by the number that each waiter drew on arrival: its new first link. */
uint32_t chain_sort_by_arrival(struct caller *c, uint32_t chain);

#endif
