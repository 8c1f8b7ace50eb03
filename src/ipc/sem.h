/* SPDX-License-Identifier: MIT */
/*
 * Semaphore sets: what semget, semop and semctl mean. The engine side: it never sleeps, and user
 * memory is touched through the caller's copy functions only. Results: OUTCOME_DONE,
 * OUTCOME_BUSY (wait on c->busy, then start over from the beginning), OUTCOME_SLEEP (semop only),
 * or -errno as the manual pages have it; -ENOTRECOVERABLE for a damaged region; -EINTR when the
 * call comes from a handler that interrupted a call of the same thread on the same object.
 * The design and its cards are in sem_word.c, sem_set.c and sem_undo.c.
 */
#ifndef USYSV_IPC_SEM_H
#define USYSV_IPC_SEM_H

#include "core/caller.h"
#include "core/layout.h"

/* now: CLOCK_REALTIME seconds, as time(2) gives them. */
int sem_get(struct caller *c, int32_t key, int nsems, uint32_t flags, int64_t now, int32_t *ret_id);

/* One call of semop; ops are the engine's copy. */
struct sem_request {
	int32_t id;
	const struct semop_shm *ops;
	uint32_t nsops;
	int64_t now;
	bool may_queue;     /* false: say OUTCOME_BUSY (BUSY_VALUE) instead of queueing, so that the
			     * client can spin on the value first */
	uint32_t undo_hint; /* reference of the undo record used last for this id; 0 none. In/out */
};
int sem_op(struct caller *c, struct sem_request *rq);

/* The waiter's state word of c's thread, for the client to spin and sleep on. */
uint32_t *sem_wait_word(struct caller *c);

/* The sleep has ended with GRANTED or REMOVED: takes the result (0 or -errno), frees the waiter. */
int sem_wait_result(struct caller *c);

/* Ends the sleep from this side: *ret_left false when it had been granted or removed meanwhile
 * (sem_wait_result() is due). OUTCOME_BUSY: wait, then call again. */
int sem_leave(struct caller *c, bool *ret_left);

/* A word that was busy: sets the bit that makes its release wake, for a sleep while the low half
 * holds c->busy.value. False: it changed. */
bool sem_announce(struct caller *c);

/* A word that was busy, of a holder that lives: does the holder not know of it (rlock_is_false())?
 * It names its words before it takes them. And the release of such a word. */
bool sem_is_false(const struct caller *c, const struct busy *b);
void sem_break(struct caller *c, const struct busy *b);

/* semctl; val: the argument of SETVAL. ret_value: the call's result. */
enum sem_get_what { SEM_GET_VALUE, SEM_GET_PID, SEM_GET_NCNT, SEM_GET_ZCNT };
int sem_get_one(struct caller *c, int32_t id, int semnum, enum sem_get_what what,
		int32_t *ret_value);
int sem_set_one(struct caller *c, int32_t id, int semnum, int32_t value, int64_t now);
int sem_get_all(struct caller *c, int32_t id, uint16_t *user);
int sem_set_all(struct caller *c, int32_t id, const uint16_t *user, int64_t now);

struct sem_status {
	int32_t id;
	struct object_shm object;
	int64_t otime;
	uint32_t nsems;
};
/* by_index: id is an index (SEM_STAT); any: without permission check (SEM_STAT_ANY). */
int sem_stat(struct caller *c, int32_t id, bool by_index, bool any, struct sem_status *ret);
int sem_set_owner(struct caller *c, int32_t id, uint32_t uid, uint32_t gid, uint32_t mode,
		  int64_t now);
int sem_remove(struct caller *c, int32_t id);

/* A process that has an undo record for this set and looks dead: its slot, else -1. A hint, for who
 * is about to report or to wait for what its burial would change. */
int32_t sem_dead_holder(struct caller *c, int32_t id);

/* ---- For repair and burial --------------------------------------------------------------- */

/* Phase 1: the words that the dead thread holds go forward or back. Under its claim. */
void sem_recover_holds(struct caller *c, uint32_t dead_ix);
/* Phase 1: the set whose lock the dead thread holds. */
void sem_repair_set(struct caller *c, uint32_t dead_ix, uint32_t set_ix);
/* Burial: its queued request leaves, wakes it owed are given, its undo reservation ends. */
int sem_bury_thread(struct caller *c, uint32_t dead_ix);
/* A removal's last part, for the thread t that has op PURGE (c's own, or a victim). */
int sem_purge(struct caller *c, uint32_t thread_ix);
/* After publishing: the blocks named by the creating thread belong to the set. */
void sem_created(struct caller *c, uint32_t thread_ix);
uint64_t sem_total(const unsigned char *base, uint32_t ix);

/* For who only looks, without a lock: does the process owe anything of this set of so many
 * semaphores? */
bool sem_undo_owes(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen,
		   uint32_t nsems);
/* To who watches for the death of processes with undo records: the caller's is now one (WATCH_P1).
 */
void sem_undo_announce(struct caller *c);
/* Applies all undo records of a process that has ended (or is the caller's own, exiting) and, with
 * free_records, gives them back. Most recently used set first. */
int sem_undo_exit(struct caller *c, uint32_t proc_ix, int64_t now, bool free_records);
/* Repair of a process's undo list, whose lock the dead thread holds. */
void sem_undo_repair(struct caller *c, uint32_t dead_ix, uint32_t proc_ix);

#endif
