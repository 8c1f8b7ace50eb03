/* SPDX-License-Identifier: MIT */
/*
 * Segments in huge pages: their files lie in a hugetlbfs that is mounted somewhere and lets the
 * namespace's user write, but no other put a file in the place of his: who else may write there
 * has to be held off by the sticky bit. Where, a symbolic link says that stands in the place of the
 * segment's file in the namespace's directory (attach_dir.h). It is there before the file is and
 * goes after it: so whoever takes a segment or a namespace away finds the file by the link, whether
 * or not a region, or its maker, is still alive.
 *
 * Every name is one that nobody can guess or has used before: it begins with the user, the
 * namespace and its directory's tag and ends with 64 random bits. What a link says is believed only
 * when its name begins so.
 *
 * Async-signal-safe; leaves errno alone.
 */
#ifndef USYSV_CLIENT_HUGEFILE_H
#define USYSV_CLIENT_HUGEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUGEFILE_PREFIX_BYTES 128

struct hugefile {
	uint32_t shift; /* of the page size */
	uint64_t bytes; /* whole huge pages */
	bool reserve;   /* as Linux does without SHM_NORESERVE */
	uint32_t owner; /* the only user for whom a file is made: others' could not be removed */
};

/* What the names of a directory's files begin with. path: .../usysv-UID/NAME/shm-TAG, of so many
 * characters. */
void hugefile_prefix(char to[HUGEFILE_PREFIX_BYTES], const char *path, size_t length);

/* Huge pages of which size are meant when none is named; 0: there are none. */
uint32_t hugefile_default_shift(void);

/* Could such a file be made now? 0 or -ENOMEM. */
int hugefile_try(const struct hugefile *h);

/* Makes the file of this link, or opens it if it is there. A descriptor or -errno. */
long hugefile_make(const struct hugefile *h, int directory, const char *prefix, const char *link);

/* Opens it. */
long hugefile_open(int directory, const char *prefix, const char *link, long flags);

/* Removes file and link. False: it is no link, or none of ours, and stays. */
bool hugefile_drop(int directory, const char *prefix, const char *link);

#endif
