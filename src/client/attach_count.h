/* SPDX-License-Identifier: MIT */
/*
 * How much of a segment processes have mapped, as /proc/PID/maps shows it.
 *
 * One segment is counted by a walk over all mappings of those that have it; all segments, for a
 * list of them, by one such walk in all, the census. Async-signal-safe; leaves errno alone; not
 * called inside a section.
 */
#ifndef USYSV_CLIENT_ATTACH_COUNT_H
#define USYSV_CLIENT_ATTACH_COUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/attach_maps.h"
#include "core/caller.h"
#include "core/layout.h"

/* Is it a mapping of the segment's file? */
bool attach_is_of(const struct attach_vma *v, const struct segment_shm *s);

/* How much of the segment a process has mapped (pid 0: this one). 0 or -errno; -ENOSYS: /proc does
 * not say. */
int attach_count_mappings(const struct segment_shm *s, pid_t pid, uint64_t *ret_count);

/*
 * The pid by which this process may ask /proc of a process with attach records; 0: itself. False:
 * it is to be asked by its records.
 */
bool attach_can_ask(struct caller *c, uint32_t proc_ix, pid_t *ret_pid);

/* What all processes with records of any segment have mapped, at about the moment it was taken. */
struct attach_census {
	size_t bytes; /* of the tables; 0: there is none */
	uint32_t segments, processes;
	uint32_t mask;        /* of by_inode */
	uint32_t *by_inode;   /* index + 1 of a segment; open addressing */
	uint64_t *inode;      /* of the segment at an index */
	uint32_t *sum;        /* mappings by index, of all who could be asked */
	uint32_t *of_one;     /* ... of the one that is being asked */
	unsigned char *asked; /* by process slot */
};

/* Counts. Without memory there is no census, and nothing is in it. */
void attach_census_take(struct caller *c, struct attach_census *k);
void attach_census_end(struct attach_census *k);

/* Is the segment in the census, and how many mappings had those that were asked? */
bool attach_census_of(const struct attach_census *k, uint32_t ix, const struct segment_shm *s,
		      uint64_t *ret_count);

/* Is what the process has in these counts? */
static inline bool attach_census_asked(const struct attach_census *k, uint32_t proc_ix)
{
	return proc_ix < k->processes && k->asked[proc_ix];
}

#endif
