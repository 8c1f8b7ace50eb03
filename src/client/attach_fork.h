/* SPDX-License-Identifier: MIT */
/*
 * Attaches over fork and exec: a child has what its parent has from the moment it exists, so it is
 * counted before fork returns; a new image has nothing.
 *
 * Records of a child are in its slot before it is forked. A parent that dies in between leaves a
 * reserved slot with records, which a sweep empties; a child that dies has them buried.
 */
#ifndef USYSV_CLIENT_ATTACH_FORK_H
#define USYSV_CLIENT_ATTACH_FORK_H

#include <stdbool.h>
#include <stdint.h>

#include "client/thread.h"

/* About to fork, with both locks of the process held: the child's slot gets the records. */
void attach_fork_record(struct thread_block *tb, uint32_t child_ix);

/* The same where there is no slot for it: the child takes them over when it has registered, which
 * it is to do at once; both drop the copy. */
void attach_fork_copy(struct thread_block *tb);
bool attach_fork_is_heir(void);
void attach_fork_take(struct thread_block *tb);
void attach_fork_drop(void);

/* A new image has taken over its process's slot: the attaches of the old one have gone. In the
 * first thread, before its first call. */
void attach_begin_anew(struct thread_block *tb);

#endif
