/* SPDX-License-Identifier: MIT */
/*
 * The files of segments: making, mapping, the kernel's answer to "is somebody attached". Where they
 * lie, attach_dir.h knows.
 *
 * A segment of huge pages has a link in the place of its file (hugefile.h), and its file is made by
 * who makes the segment. It is its user's alone.
 *
 * Everything is async-signal-safe, leaves errno alone, and works when the process has no descriptor
 * left (spare.h).
 */
#ifndef USYSV_CLIENT_ATTACH_FILE_H
#define USYSV_CLIENT_ATTACH_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/layout.h"

/* The device of a segment's file. */
dev_t attach_file_device(const struct segment_shm *s);

/* One attach. */
struct attach_mapping {
	struct segment_shm *segment;
	uint64_t byte; /* to be locked */
	bool read_only;
	int protection;
	int map_flags; /* beside MAP_SHARED */
	uint64_t address, bytes;
};

/*
 * Opens the segment's file anew, making it if nobody had it attached before, locks the byte and
 * maps. 0 with m->address, or -errno as mmap(2) and open(2).
 */
int attach_file_map(struct attach_mapping *m);

/* Has anybody the file mapped? 1 yes, 0 no, -errno unknown. */
int attach_file_in_use(const struct segment_shm *s);

/*
 * Is there, from one address to the other, one mapping of the segment's file, by the name that the
 * kernel knows it by? 1 yes, 0 it is of another file, -ENOENT there is no such mapping, else
 * -errno: unknown. One system call.
 */
int attach_file_is_mapped(const struct segment_shm *s, uint64_t start, uint64_t end);

/* Has anybody still something mapped of the attach that locked this byte? As above. */
int attach_file_holds(const struct segment_shm *s, uint64_t byte);

/* Makes the file, if nobody has done that before. The segment counts as being attached. */
int attach_file_make(struct segment_shm *s);

/* Removes it; no harm if it is gone. */
void attach_file_drop(const struct segment_shm *s);

/* Pages that the file has; 0 when unknown. */
uint64_t attach_file_pages(const struct segment_shm *s);

#endif
