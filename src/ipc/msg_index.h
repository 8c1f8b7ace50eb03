/* SPDX-License-Identifier: MIT */
/*
 * Which message a receiver takes, and which sleeping receiver a message goes to. Everything here
 * is derived from the chain of messages and from the threads' waiters, and is kept under the
 * queue's lock. Card MSG_I1 is in msg_index.c.
 */
#ifndef USYSV_IPC_MSG_INDEX_H
#define USYSV_IPC_MSG_INDEX_H

#include "core/caller.h"
#include "core/layout.h"

enum msg_kind {
	MSG_KIND_ANY,    /* the oldest */
	MSG_KIND_EXACT,  /* the oldest of this type */
	MSG_KIND_OTHER,  /* the oldest of another type (MSG_EXCEPT) */
	MSG_KIND_UP_TO,  /* of the lowest type up to this one, the oldest */
	MSG_KIND_COPY,   /* not indexed: the n-th */
	MSG_KIND_SENDER, /* a waiter that sends */
};

static inline bool msg_kind_matches(enum msg_kind kind, int64_t wanted, int64_t type)
{
	return kind == MSG_KIND_ANY || (kind == MSG_KIND_EXACT && type == wanted) ||
	       (kind == MSG_KIND_OTHER && type != wanted) ||
	       (kind == MSG_KIND_UP_TO && type <= wanted);
}

/* Messages. All but `next` of them is the index's. add: ref has just become the chain's last.
 * remove: ref, the oldest of its type, has just left the chain (its own links are unchanged). */
void msg_index_reset(struct queue_shm *q);
void msg_index_add(struct caller *c, struct queue_shm *q, uint32_t ref);
void msg_index_remove(struct caller *c, struct queue_shm *q, uint32_t ref);
/* The message, or 0. */
uint32_t msg_index_find(struct caller *c, struct queue_shm *q, enum msg_kind kind, int64_t type);

/* Sleeping receivers; queue: the last that arrived. */
void msg_index_sleep(struct caller *c, struct queue_shm *q, uint32_t thread_ix);
void msg_index_wake(struct caller *c, struct queue_shm *q, uint32_t thread_ix);
/* The oldest that takes this type: its link, or 0. */
uint32_t msg_index_match(struct caller *c, struct queue_shm *q, int64_t type);

/* The same answers by looking at everything: what the checker compares with. */
uint32_t msg_scan_find(struct caller *c, struct queue_shm *q, enum msg_kind kind, int64_t type);
uint32_t msg_scan_match(struct caller *c, struct queue_shm *q, int64_t type);

#endif
