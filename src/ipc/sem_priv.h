/* SPDX-License-Identifier: MIT */
/* What the files of the semaphore family share. */
#ifndef USYSV_IPC_SEM_PRIV_H
#define USYSV_IPC_SEM_PRIV_H

#include "core/region.h"
#include "ipc/sem.h"

#define SEMOP_NOWAIT 04000  /* IPC_NOWAIT */
#define SEMOP_UNDO   010000 /* SEM_UNDO */
#define SEM_ADJ_MIN  (-32768)
#define SEM_ADJ_MAX  32767

/* outcome of the fast paths: take the set's lock */
#define OUTCOME_SLOW 3

/* A set as seen by one call: read without a lock, checked twice against `live`, and noticed to be
 * gone by the generation in the words. */
struct sem_view {
	struct set_shm *set;
	unsigned char *words;
	struct semq_shm *side; /* once found under the lock; null: look for it */
	uint32_t ix, gen, nsems, stride;
	int32_t id;
};

static inline struct sem_shm *view_word(const struct sem_view *v, uint32_t num)
{
	return (struct sem_shm *)(void *)(v->words + (uint64_t)num * v->stride);
}

/* Of the number of semaphores: GETALL writes so many values to the program's memory. */
static inline uint32_t sem_seal(uint32_t nsems, uint32_t gen)
{
	const uint64_t facts[] = {nsems, gen};

	return region_seal(facts, 2);
}

static inline uint32_t cell_of(const struct caller *c, const struct sem_shm *s)
{
	return (uint32_t)((region_off(c->base, s) - ARENAS_OFF - ARENA_SEM * ARENA_BYTES) /
			  SEM_CELL_BYTES);
}

/* sem_word.c */
int sem_view_id(struct caller *c, int32_t id, struct sem_view *ret);
/* The same for a slot whose lock is held: 0, or -EIDRM when it is not (any more) that set. */
int sem_view_locked(struct caller *c, uint32_t ix, struct sem_view *ret);
/* Has the set of this view been removed or replaced? Under its lock that is final. */
bool sem_view_stale(const struct sem_view *v);
int sem_plain(struct caller *c, const struct sem_view *v, const struct sem_request *rq);
int sem_held(struct caller *c, const struct sem_view *v, const struct sem_request *rq,
	     uint32_t undo_ref);
/* OUTCOME_BUSY on a held word (a dead holder is settled on the way: then 0, look again). */
int sem_word_busy(struct caller *c, struct sem_shm *s, uint64_t seen);
bool sem_would_block(const struct semop_shm *op, int value);

/* sem_set.c; "set" functions need the set's lock, held by c or by the dead in whose name c acts */
struct sem_wakes {
	uint32_t count;
	uint32_t thread_ix[30];
};
uint64_t sem_lock_off(const struct sem_view *v);
void sem_unlock(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes);
/* Claims the words of n operations (null: of all semaphores). OUTCOME_BUSY: one is held (-EINTR: by
 * the call that this handler interrupted); nothing but SLOW bits has changed. */
int sem_claim(struct caller *c, const struct sem_view *v, const struct semop_shm *ops, uint32_t n);
void sem_settle_words(struct caller *c, const struct sem_view *v, const struct semop_shm *ops,
		      uint32_t n);
/* 0 it can proceed (the outcome is in the shadow), 1 it must wait, -errno it fails. */
int sem_evaluate(struct caller *c, const struct sem_view *v, struct thread_shm *t);
void sem_clear_shadow(struct caller *c, const struct sem_view *v, const struct semop_shm *ops,
		      uint32_t n);
const struct semop_shm *sem_request_ops(struct caller *c, const struct thread_shm *t);
struct semq_shm *sem_side(struct caller *c, const struct sem_view *v);
/* Stores the intent and carries it out; the shadow is the caller's to clear afterwards. */
void sem_commit(struct caller *c, const struct sem_view *v, enum sem_intent kind,
		uint32_t thread_ix, int32_t result, struct sem_wakes *wakes);
enum list { LIST_NONE, LIST_SEM_ALTER, LIST_SEM_ZERO, LIST_ALTER, LIST_CONST };
struct thread_shm *sem_link_thread(struct caller *c, uint32_t link);
/* No list of the set is longer, unless it is damaged. */
uint32_t sem_list_bound(struct caller *c, const struct sem_view *v);
/* The operations of a queued request, cut to those that lie in the set (damage aside, all). */
uint32_t sem_request_count(struct caller *c, const struct sem_view *v, const struct thread_shm *t);
/* Puts a waiting request into the list it belongs in. */
void sem_enlist(struct caller *c, const struct sem_view *v, struct thread_shm *t,
		uint32_t thread_ix);
/* The last request of several operations has left: each altering one back to its semaphore. */
void sem_unmerge(struct caller *c, const struct sem_view *v);
/* A killed sleeper is no longer there, though nobody has buried it yet. */
bool sem_is_gone(struct caller *c, uint32_t thread_ix);
/* Calls f for every queued request of the set, however the lists may look. */
void sem_each_waiter(struct caller *c, const struct sem_view *v,
		     void (*f)(struct caller *c, const struct sem_view *v, struct thread_shm *t,
			       uint32_t thread_ix, struct sem_wakes *wakes),
		     struct sem_wakes *wakes);
/* Carries the set's intent out and takes it away. Repeatable from any point. */
void sem_apply(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes);
void sem_enqueue(struct caller *c, const struct sem_view *v, uint32_t thread_ix);
void sem_unlink(struct caller *c, const struct sem_view *v, uint32_t thread_ix);
/* What became possible is performed. ops null: any semaphore may have changed. */
void sem_serve(struct caller *c, const struct sem_view *v, const struct semop_shm *ops, uint32_t n,
	       struct sem_wakes *wakes);
int sem_count(struct caller *c, const struct sem_view *v, uint32_t num, bool zero);
void sem_wake_told(struct caller *c, uint32_t set_ix);

/* sem_undo.c */
int sem_undo_find(struct caller *c, const struct sem_view *v, uint32_t *inout_ref);
struct undo_shm *sem_undo_at(struct caller *c, uint32_t ref, const struct sem_view *v);
/* Drops the records of a set being removed: they become reusable. */
void sem_undo_drop_set(struct caller *c, struct set_shm *set);
/* Clears semadj of the semaphores in the shadow, in every record of the set. */
void sem_undo_clear(struct caller *c, const struct sem_view *v);
/* Puts the dead thread's half-made record right, in the set whose lock it held. */
void sem_undo_finish_link(struct caller *c, struct set_shm *set, uint32_t dead_ix);
int sem_undo_release(struct caller *c, uint32_t dead_ix);
void sem_undo_unlink(struct caller *c, const struct sem_view *v, uint32_t ref);

#endif
