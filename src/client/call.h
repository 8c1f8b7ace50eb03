/* SPDX-License-Identifier: MIT */
/*
 * What the calls of all families share: sections around the engine's work, waiting when something
 * was busy, and the end of a sleep.
 */
#ifndef USYSV_CLIENT_CALL_H
#define USYSV_CLIENT_CALL_H

#include <errno.h>
#include <sys/ipc.h>

#include "client/creds.h"
#include "client/thread.h"
#include "core/region.h"

/* What an interrupted call of this thread left behind is settled first. In a section. */
void call_settle(struct thread_block *tb);

/* Enters the section in which the engine is called. */
static inline void call_enter(struct thread_block *tb)
{
	section_enter(tb);
	if (__builtin_expect(tb->stale || region_self(&tb->caller)->op == OP_PURGE, 0))
		call_settle(tb);
	tb->caller.creds = creds_current();
}

/*
 * The thread's slot says that a call of it is at work on something. That is the call which the
 * handler has interrupted that makes this one; in the outermost section there is none, and the slot
 * is damaged. True: it was, and has been set right. At the beginning of a section, or after -EINTR.
 */
bool call_set_right(struct thread_block *tb);

/* As call_again(), for the answers that are not simply the end. */
bool call_again_slow(struct thread_block *tb, int rc);

/* Leaves the section with an answer. True: the call starts over, after waiting for what was busy.
 */
static inline bool call_again(struct thread_block *tb, int rc)
{
	if (__builtin_expect(rc > 0 || rc == -ENOTRECOVERABLE || rc == -EINTR || tb->caller.owed,
			     0))
		return call_again_slow(tb, rc);
	section_leave(tb);
	return false;
}

/* The engine has queued the call's request: leaves the section, asleep in name. */
void call_sleeps(struct thread_block *tb, struct sleep *s);

/* Takes the queued request back, or its result when it has ended: 0 or -errno, else `reason`.
 * Outside a section. */
int call_take_back(struct thread_block *tb, struct sleep *s, int reason);

/* Copies between user memory and the library's, in a section of their own. 0 or -EFAULT. */
int call_copy_in(struct thread_block *tb, void *to, const void *user, size_t n);
int call_copy_out(struct thread_block *tb, void *user, const void *from, size_t n);

/* sem_stat(), after the SEM_UNDO of the dead has been applied: otime shows it. */
struct sem_status;
int call_sem_stat(struct thread_block *tb, int32_t id, bool by_index, bool any,
		  struct sem_status *ret);

/* Owner, mode and key of an object, as IPC_STAT reports them. Fields that are padding stay. */
void call_fill_perm(struct ipc_perm *ret, const struct object_shm *o, int32_t id);

#endif
