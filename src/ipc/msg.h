/* SPDX-License-Identifier: MIT */
/*
 * Message queues: what msgget, msgsnd, msgrcv and msgctl mean. The engine side: it never sleeps,
 * and user memory is touched through the caller's copy functions only, with no lock held. Results:
 * OUTCOME_DONE, OUTCOME_BUSY (wait on c->busy, then start over from the beginning), OUTCOME_SLEEP
 * (send and receive), or -errno as the manual pages have it; -ENOTRECOVERABLE for a damaged
 * region; -EINTR when the call comes from a handler that interrupted a call of the same thread on
 * the same queue. The design and its cards are in msg_queue.c, msg_block.c and msg_index.c.
 */
#ifndef USYSV_IPC_MSG_H
#define USYSV_IPC_MSG_H

#include "core/caller.h"
#include "core/layout.h"

/* Blocks up to this size stay with a thread for its next message; larger ones go back at once. */
#define MSG_KEEP_BLOCK 32768u

/* Flags of the calls. */
#define MSGF_NOWAIT  04000  /* IPC_NOWAIT */
#define MSGF_NOERROR 010000 /* MSG_NOERROR */
#define MSGF_EXCEPT  020000 /* MSG_EXCEPT */
#define MSGF_COPY    040000 /* MSG_COPY */

/* now: CLOCK_REALTIME seconds, as time(2) gives them. */
int msg_get(struct caller *c, int32_t key, uint32_t flags, int64_t now, int32_t *ret_id);

/* One call of msgsnd; user: struct msgbuf. */
struct msg_send_request {
	int32_t id;
	const void *user;
	uint64_t bytes;
	uint32_t flags;
	int64_t now;
	/* the engine's own, 0 at first: the text has been copied and is still in the pocket */
	bool copied;
	uint32_t uses;
};
int msg_send(struct caller *c, struct msg_send_request *rq);

/* One call of msgrcv. */
struct msg_receive_request {
	int32_t id;
	void *user;
	uint64_t bytes;
	int64_t type;
	uint32_t flags;
	int64_t now;
	int64_t ret_bytes; /* when DONE: what the call returns */
};
int msg_receive(struct caller *c, struct msg_receive_request *rq);

/*
 * A sleep ended with result 0: copies the message that the thread was handed. In the section in
 * which msg_wait_result() was called. As msg_receive(), but never OUTCOME_SLEEP or _BUSY.
 */
int msg_receive_granted(struct caller *c, struct msg_receive_request *rq);

/* Blocks that a call had to leave named are given back: OUTCOME_DONE or _BUSY. At any time when no
 * call of this thread is under way. */
int msg_tidy(struct caller *c);
static inline bool msg_is_tidy(const struct thread_shm *self)
{
	return !(self->name_ref[NAME_FLY] | self->name_ref[NAME_SIDE]) &&
	       (self->pocket_bytes <= MSG_KEEP_BLOCK || !self->name_ref[NAME_POCKET]);
}

/*
 * The sleep has ended with GRANTED or REMOVED: takes the result and frees the waiter. 0: done (a
 * receiver's message is due, see above), -errno, or -EAGAIN: the call must start over.
 */
int msg_wait_result(struct caller *c);

/* Ends the sleep from this side: *ret_left false when it had been granted or removed meanwhile
 * (msg_wait_result() is due). OUTCOME_BUSY: wait, then call again. */
int msg_leave(struct caller *c, bool *ret_left);

struct msg_status {
	int32_t id;
	struct object_shm object;
	uint64_t bytes, qbytes;
	uint32_t count;
	int64_t stime, rtime;
	uint32_t lspid, lrpid;
};
/* by_index: id is an index (MSG_STAT); any: without permission check (MSG_STAT_ANY). */
int msg_stat(struct caller *c, int32_t id, bool by_index, bool any, struct msg_status *ret);
int msg_set(struct caller *c, int32_t id, uint32_t uid, uint32_t gid, uint32_t mode,
	    uint64_t qbytes, int64_t now);
int msg_remove(struct caller *c, int32_t id);

/* Messages and bytes of text in all queues, at some moment each. */
void msg_totals(const unsigned char *base, uint64_t *ret_count, uint64_t *ret_bytes);

/* ---- For repair and burial --------------------------------------------------------------- */

/* Phase 1: the queue whose lock the dead thread holds. */
void msg_repair_queue(struct caller *c, uint32_t dead_ix, uint32_t ix);
/* Burial: its sleep ends, wakes it owed are given. */
int msg_bury_thread(struct caller *c, uint32_t dead_ix);
/* A removal's last part, for the thread that has op PURGE (c's own, or a victim). */
int msg_purge(struct caller *c, uint32_t thread_ix);
/* After publishing: nothing is left to do. */
void msg_created(struct caller *c, uint32_t thread_ix);
uint64_t msg_total(const unsigned char *base, uint32_t ix);

#endif
