/* SPDX-License-Identifier: MIT */
/* Descriptors of the views of /proc; see procview.c. Everything here is async-signal-safe. */
#ifndef USYSV_PRELOAD_PROCVIEW_H
#define USYSV_PRELOAD_PROCVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/view.h"

/* Has this process had a view open that can be written to? */
extern uint32_t procview_writable;

/*
 * Which view a path names, as openat(2) would find it; VIEW_NONE. The path must be readable. A link
 * of another name than the view's is not known.
 */
int procview_find(int dirfd, const char *path);

/*
 * Opens a view; flags as of open(2). real: the descriptor of the kernel's file, which is replaced;
 * -1: none. The descriptor or -errno.
 */
long procview_open(int view, int flags, long real);

/*
 * The view that a file with these attributes is the text of; VIEW_NONE. Its modification time says
 * it: nobody else's is so early, and has no name any more.
 */
#define VIEW_NS 1000
static inline int procview_settled(uint64_t links, int64_t seconds, int64_t ns)
{
	return __builtin_expect(seconds == 0, 0) && links == 0 && ns >= VIEW_NS &&
			       ns < VIEW_NS + view_count
		       ? (int)(ns - VIEW_NS)
		       : VIEW_NONE;
}

/* The same for a file that has been opened for writing, and perhaps written to. */
int procview_written(dev_t dev, ino_t inode);

/* Is it a descriptor of a view that was opened for writing, by this process or one before it? */
bool procview_is(int fd);

/*
 * Something may have been written to the descriptor, from this position on (negative: so many bytes
 * up to the present one): if it is a view's, the namespace takes it, or ignores it, where it does
 * not begin at 0. How much of it was looked at (0: all) or -errno, as of write(2).
 */
long procview_settle(int fd, long begin);

/* The same for all low descriptors: before exec and at the end of the process, where nobody is
 * there to be told of an error. */
long procview_settle_all(void);

/* PROCVIEW_HINT and more for the environment of the next image, when this process has views open
 * that can be written to; an empty string otherwise. */
#define PROCVIEW_HINT       "USYSV_VIEWS="
#define PROCVIEW_HINT_BYTES 1024
void procview_hint(char text[PROCVIEW_HINT_BYTES]);

/* Of a new image: what followed USYSV_VIEWS=. */
void procview_start(const char *hint);

#endif
