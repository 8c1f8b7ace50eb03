/* SPDX-License-Identifier: MIT */
/*
 * The directory in which the files of segments lie, and their names.
 *
 * They are <namespace>/shm-<tag>/SYSV<key>-<id>. The tag is the region's own, so that nothing of
 * an earlier region of the same name is ever taken for a segment. The namespace's directory lets
 * nobody in but its user; below it, directory and files are open to all, for a process that came in
 * as that user and then became another has to be able to attach what the permission bits allow. It
 * gets there by a descriptor of the directory, the one that the library ever keeps (the "door"):
 * opened before a change of root or identity, close-on-exec, and looked at before each use, for
 * programs close what they do not know.
 *
 * Everything is async-signal-safe and leaves errno alone.
 */
#ifndef USYSV_CLIENT_ATTACH_DIR_H
#define USYSV_CLIENT_ATTACH_DIR_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACH_NAME_BYTES 32
#define ATTACH_TAG_BYTES  14 /* "/shm-<tag>/", the end of a directory's path */

/* The session is attached: where its segments are. region: absolute path of the region file, of
 * that inode, made at that time: the two are the tag. */
void attach_dir_place(const char *region, dev_t dev, uint64_t inode, int64_t created);

/* The path of the directory, with its last slash; null: not attached. */
const char *attach_dir_path(void);

/* What the names of its segments in huge pages begin with (hugefile.h). */
const char *attach_dir_huge_prefix(void);

/* The device of the directory and of what lies in it. */
dev_t attach_dir_device(void);

/* The path of any region's directory; its length. */
size_t attach_dir_name(char to[PATH_MAX], const char *region, uint64_t inode, int64_t created);

/* The name in it of a segment's file. */
void attach_dir_file_name(char to[ATTACH_NAME_BYTES], int32_t key, int32_t id);

/* Root or identity are about to change: keeps a way to the directory. */
void attach_dir_keep_door(void);

/* The descriptor that is kept; -1: none. */
int attach_dir_door(void);

/* The system call nr(directory, name, a, b, c) of the openat kind. */
long attach_dir_call(long nr, const char *name, long a, long b, long c);

/* The directory, opened; closed again by the second. */
long attach_dir_open(void);
void attach_dir_close(long fd);

/* Makes it: 0, also when it is there already. */
long attach_dir_make(void);

/* Private: a segment of this place, as {index, generation}, whose file has been looked at since the
 * way to it was last in question. */
uint64_t *attach_dir_seen(uint32_t ix);

#endif
