/* SPDX-License-Identifier: MIT */
/* What the parts of the checker share: one part a family. */
#ifndef USYSV_IPC_CHECK_PRIV_H
#define USYSV_IPC_CHECK_PRIV_H

#include "core/region.h"

struct check {
	const unsigned char *base;
	void (*say)(void *context, const char *text);
	void *context;
	int count;
	uint64_t named[ARENA_COUNT]; /* blocks that were found to have a name */
	uint32_t counted_ref;        /* one of these, which may be met again; 0: none */
};

/* Something is inconsistent. */
void check_bad(struct check *k, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The lock at off is free, or its owner names it. */
void check_lock(struct check *k, uint64_t off, const char *what, uint32_t ix);

/* A block that `what` number ix names; 0 is none. */
void check_name(struct check *k, uint32_t ref, const char *what, uint32_t ix);

/* Calls f for every thread slot. */
typedef void check_thread_visitor(struct check *k, struct thread_shm *t, uint32_t ix,
				  void *context);
void check_each_thread(struct check *k, check_thread_visitor *f, void *context);

/* msg: one queue, whose slot exists; the blocks of one that is there, or is being purged. */
void check_queue(struct check *k, uint32_t ix);
void check_queue_blocks(struct check *k, uint32_t ix);

/* shm: one segment, whose slot exists; the attach records of all processes and their blocks. */
void check_segment(struct check *k, uint32_t ix);
void check_attaches(struct check *k);

#endif
