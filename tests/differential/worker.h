/* SPDX-License-Identifier: MIT */
/*
 * A worker process: one thread a desk, each of which does what is laid on its desk.
 */
#ifndef DIFFERENTIAL_WORKER_H
#define DIFFERENTIAL_WORKER_H

#include "shared.h"

/* What a worker's thread has to make calls with. */
struct hands {
	struct shared *shared;
	struct desk *desk;
	unsigned worker_ix;
	unsigned process_ix;
	bool never_sleep; /* the call must carry IPC_NOWAIT: nobody watches it */
	bool is_child;    /* forked for this one call */
	char *good;       /* memory for arguments */
	char *edge;       /* the first inaccessible byte behind other memory */
};

enum {
	HANDS_GOOD_BYTES = 64 * 1024,
	HANDS_EDGE_BYTES = 16 * 1024,
};

/*
 * The address to pass for an argument of the given kind. If object is given its bytes (as far
 * as they fit, for POINTER_EDGE) are put there, else zeros.
 */
void *hands_place(struct hands *hands, int64_t kind, const void *object, size_t bytes);

/* Runs a worker process: never returns. executed_by: the worker that executed this image, or -1. */
_Noreturn void worker_main(struct shared *shared, unsigned process_ix, int executed_by);

/* The process as it was started by execution of a new image: arguments of worker_exec. */
_Noreturn void worker_executed(int argument_count, char **arguments);

/* Executes the program anew; the process stays the same worker. Returns on failure, with -errno. */
int worker_exec(struct hands *hands);

/* Ends this thread; another takes its desk. */
_Noreturn void worker_renew_thread(struct hands *hands);

/* To be killed when the stage dies; to be set again whenever credentials changed. */
void worker_die_with_parent(void);

#endif
