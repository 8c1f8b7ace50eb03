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
 * Everything is async-signal-safe, leaves errno alone, and works when the process has no descriptor
 * left (RLIMIT_NOFILE): the system calls are then made by a child that shares the memory but has
 * a table of descriptors of its own.
 */
#ifndef USYSV_CLIENT_ATTACH_FILE_H
#define USYSV_CLIENT_ATTACH_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/layout.h"

/* The session is attached: where its segments are. region: absolute path of the region file. */
void attach_file_place(const char *region, dev_t dev, uint32_t tag);

/* The device of the files. */
dev_t attach_file_device(void);

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

/* Removes it; no harm if it is gone. */
void attach_file_drop(int32_t key, int32_t id);

/* Pages that the file has; 0 when unknown. */
uint64_t attach_file_pages(const struct segment_shm *s);

/* Could the file system hold `bytes` more, beside all that the segments may still grow to? */
bool attach_file_has_room(const unsigned char *base, uint64_t bytes);

/*
 * Calls run(context), which opens a descriptor and closes it again, and gives its result. When
 * that is -EMFILE, -ENFILE or -EFBIG, again with more descriptors and larger files allowed.
 */
int attach_file_run(int (*run)(void *context), void *context);

#endif
