/* SPDX-License-Identifier: MIT */
/*
 * Children of vfork(): processes of their own that run in their parent's memory until they exit or
 * exec. What a process knows of itself there is a record each, so that the parent finds its own
 * untouched. See vfork.c.
 */
#ifndef USYSV_CLIENT_VFORK_H
#define USYSV_CLIENT_VFORK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/thread.h"

/* A process as it has registered itself. */
struct process_record {
	bool registered;
	bool anew; /* in the slot of an image that exec replaced: its attaches are to be settled */
	pid_t pid;
	uint32_t pid_view; /* how its pid is to be read: ident_view(); 0: unknown */
	uint32_t proc_ix;
	void *token; /* the mapping that holds the byte lock */
	/* of a vfork child */
	struct thread_block *block; /* of its only thread; null: none */
	const void *thread;         /* whose child it is; null: a free record */
	uint32_t depth;
};

/* The calling vfork child's record; null: none yet. */
struct process_record *vfork_record(void);

/* The same, made if there is none; null: too many. With the session's lock. */
struct process_record *vfork_record_made(void);

/* The child ends. With the session's lock. */
void vfork_record_free(struct process_record *r);

/* In the thread that has called vfork(): the child runs in its memory no more, for it has executed
 * a program or ended, perhaps killed. What it had here is given back. Leaves errno alone. */
void vfork_ended(void);

#endif
