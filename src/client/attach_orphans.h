/* SPDX-License-Identifier: MIT */
/*
 * Files of segments that have gone. A removal's last part unlinks the file; who dies before that is
 * buried, and the burial does it. What is left then comes from a remover that could not reach the
 * directory (chroot, another user), or from a helper that outlived its process by a system call
 * (spare.h). Nothing but room is lost by it; the reaper looks for it now and then, `usysv check`
 * tells of it.
 *
 * Not async-signal-safe in time: a walk over the directory.
 */
#ifndef USYSV_CLIENT_ATTACH_ORPHANS_H
#define USYSV_CLIENT_ATTACH_ORPHANS_H

#include "client/thread.h"

/*
 * Calls back with each name in this directory (a path, with its last slash) that is of no segment
 * of the region, at this moment. 0, also without a directory, or -errno.
 */
int attach_orphans_each(const char *directory, const unsigned char *base,
			void (*each)(void *context, const char *name), void *context);

/* Removes them, if anything has changed since it last found none; how many. Outside a section. */
uint32_t attach_orphans_remove(struct thread_block *tb);

#endif
