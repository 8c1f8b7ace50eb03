/* SPDX-License-Identifier: MIT */
/*
 * Blocks of shared memory. Card ARENA_P1 and the design are in arena.c.
 *
 * A block is always named: by the object it belongs to, or by one of the name words of the
 * thread that is taking, filling or giving it back.
 */
#ifndef USYSV_CORE_ARENA_H
#define USYSV_CORE_ARENA_H

#include "core/caller.h"
#include "core/layout.h"

/*
 * Takes a block of at least `bytes` for the calling thread and names it in name_ref[name], which
 * must be 0. 0, OUTCOME_BUSY, -ENOMEM. Contents are undefined in ARENA_GENERAL; in ARENA_SEM they
 * are what the last set left (or zero), for stale readers must find words there.
 */
int arena_take(struct caller *c, enum arena_id arena, enum name name, uint64_t bytes);

/* Gives the block named in name_ref[name] of the calling thread back; 0 is none. 0, OUTCOME_BUSY.
 */
int arena_give(struct caller *c, enum name name);

/* Gives back the chunk that an earlier call left between arena and pool, because something was
 * busy: before the calling thread's slot is given up. 0, OUTCOME_BUSY. */
int arena_settle(struct caller *c);

/* As arena_give() for the names of a dead thread that c has claimed and named as its victim. */
int arena_give_of(struct caller *c, uint32_t thread_ix, enum name name);

/* Bytes usable in the block at ref; 0 when there is no such block. */
uint64_t arena_capacity(const unsigned char *base, uint32_t ref);

/* Repair of a pool's or an arena's lock held by the dead thread. */
void arena_repair(struct caller *c, uint32_t dead_ix, uint64_t lock_off);

/* Is off the lock of a pool or of an arena? */
bool arena_owns_lock(uint64_t lock_off);

/* Blocks in use (bits clear in chunks of classes, plus spans), for the checker and `usysv ls`. */
struct arena_usage {
	uint64_t blocks, bytes, chunks;
};
void arena_usage(const unsigned char *base, enum arena_id arena, struct arena_usage *ret);

#endif
