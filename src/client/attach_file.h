/* SPDX-License-Identifier: MIT */
/*
 * The files of segments: names, making, mapping, the kernel's answer to "is somebody attached",
 * room.
 *
 * They lie in <namespace>/shm-<tag>/SYSV<key>-<id>. The tag is the region's own, so that nothing of
 * an earlier region of the same name is ever taken for a segment. The namespace's directory lets
 * nobody in but its user; below it, directory and files are open to all, for a process that came in
 * as that user and then became another has to be able to attach what the permission bits allow. It
 * gets there by a descriptor of the directory, the one that the library ever keeps: opened before a
 * change of root or identity, close-on-exec, and looked at before each use, for programs close what
 * they do not know.
 *
 * A segment of huge pages has a link in the place of its file (hugefile.h), and its file is made by
 * who makes the segment. It is its user's alone.
 *
 * Everything is async-signal-safe, leaves errno alone, and works when the process has no descriptor
 * left (spare.h).
 */
#ifndef USYSV_CLIENT_ATTACH_FILE_H
#define USYSV_CLIENT_ATTACH_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/layout.h"

/* The session is attached: where its segments are. region: absolute path of the region file, of
 * that inode, made at that time: the two are the tag. */
void attach_file_place(const char *region, dev_t dev, uint64_t inode, int64_t created);

/* The path of the directory, with its last slash; null: not attached. */
const char *attach_file_directory(void);

/* The same of any region; its length. */
size_t attach_file_name_directory(char to[PATH_MAX], const char *region, uint64_t inode,
				  int64_t created);

/* The device of a segment's file. */
dev_t attach_file_device(const struct segment_shm *s);

/* Root or identity are about to change: keeps a way to the directory. */
void attach_file_keep_door(void);

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

/* Is there, from the address on, one mapping of the segment's file of so many bytes? False also when
 * it cannot be told at the price of one system call. */
bool attach_file_is_whole_at(const struct segment_shm *s, uint64_t address, uint64_t bytes);

/* Has anybody still something mapped of the attach that locked this byte? As above. */
int attach_file_holds(const struct segment_shm *s, uint64_t byte);

/* Makes the file, if nobody has done that before. The segment counts as being attached. */
int attach_file_make(struct segment_shm *s);

/* Removes it; no harm if it is gone. */
void attach_file_drop(const struct segment_shm *s);

/* Pages that the file has; 0 when unknown. */
uint64_t attach_file_pages(const struct segment_shm *s);

/* Could the file system hold `bytes` more, beside all that the segments may still grow to? */
bool attach_file_has_room(const unsigned char *base, uint64_t bytes);

/* Are there so many bytes of huge pages of this size, in a file system that takes a segment? */
bool attach_file_has_huge(uint32_t shift, uint64_t bytes, bool reserve);

#endif
