/* SPDX-License-Identifier: MIT */
/*
 * The registry: process slots, and threads in groups of five that share a page, at whose end
 * their life words lie (the kernel's robust list needs them there; client/life.c says why).
 * Card REG_P1 is in rlock.c, REG_P2 in procs.c.
 */
#ifndef USYSV_CORE_PROCS_H
#define USYSV_CORE_PROCS_H

#include "core/caller.h"
#include "core/layout.h"

/*
 * Reserves a free process slot that `own` (which takes the kernel's token for it; null: without)
 * accepts, in the name of pid; 0 or -ENOMEM, -ENOSPC.
 */
int procs_reserve(unsigned char *base, bool (*own)(void *context, uint32_t ix), void *context,
		  uint32_t pid, uint32_t *ret_ix);

/* Gives a slot back that was reserved and not used: the word is what the caller judged. */
void procs_unreserve(unsigned char *base, uint32_t ix, uint32_t word);

/* Publishes a reserved slot with a new generation. False: it is reserved no more, for somebody took
 * the reserver for gone. */
bool procs_publish(unsigned char *base, uint32_t ix, uint32_t pid, uint64_t start,
		   uint32_t pid_view, uint32_t flags);

/* The slot of a live record with this pid and start time, or -1: an image that was replaced by
 * exec left it. */
int32_t procs_find(const unsigned char *base, uint32_t pid, uint64_t start);

/* The same, from this index on: one pid can have several records (of other pid namespaces, or of an
 * image that could not take the former one's over). */
int32_t procs_find_from(const unsigned char *base, uint32_t pid, uint64_t start, uint32_t from);

/* A new image takes over the slot that exec left: new generation, the undo list stays. False:
 * somebody has claimed it, and is at work on what the old image left. */
bool procs_adopt(unsigned char *base, uint32_t ix);

/* Takes a free group for the process; 0, -ENOMEM, -ENOSPC. */
int procs_take_group(unsigned char *base, uint32_t proc_ix, uint32_t *ret_group);

/* Puts a thread into a slot of a group that its process owns. is_marked: the kernel will mark its
 * life word. */
void procs_enter_thread(unsigned char *base, uint32_t thread_ix, uint32_t proc_ix, uint32_t tid,
			bool is_marked);

/* Does the group belong to the present generation of this process slot? */
bool procs_owns_group(const unsigned char *base, uint32_t proc_ix, uint32_t group);

#endif
