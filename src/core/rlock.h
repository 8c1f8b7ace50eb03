/* SPDX-License-Identifier: MIT */
/*
 * Robust lock and the claim on a dead thread's slot. The protocol cards are in rlock.c.
 *
 * A thread holds at most one lock, so repairing one never needs another. Nothing here sleeps: a
 * lock that somebody alive holds is OUTCOME_BUSY, and the client waits on it with nothing held.
 */
#ifndef USYSV_CORE_RLOCK_H
#define USYSV_CORE_RLOCK_H

#include "core/caller.h"
#include "core/layout.h"

/*
 * Takes the lock at `off` (below 4 GiB). OUTCOME_DONE: held. OUTCOME_BUSY: c->busy says what to
 * wait for. -EINTR: this very thread has it, interrupted by a handler that the library could not
 * defer. A dead owner's work is repaired on the way (c->ops->repair). -ENOTRECOVERABLE: it belongs
 * to nobody who exists, by damage.
 */
int rlock_acquire(struct caller *c, uint64_t off);

/* Releases the lock that c's thread holds, and wakes one waiter if there may be one. */
void rlock_release(struct caller *c, uint64_t off);

/* Pays the wake that this thread owes on a lock it slept on but did not take; none: nothing. */
void rlock_settle(struct caller *c);

/*
 * Client, before sleeping on a busy lock: names the debt and sets the waiters bit. True: sleep
 * while the word holds c->busy.value (now with the bit). False: the lock changed, try again.
 */
bool rlock_announce(struct caller *c);

/*
 * Claims the slot of a dead thread, finishing a dead claimer of it first. True: c may act in the
 * dead thread's name until rlock_unclaim(); false: it lives, is free, or somebody else acts.
 */
bool rlock_claim_dead(struct caller *c, uint32_t dead_ix, bool patient);
void rlock_unclaim(struct caller *c, uint32_t dead_ix);
/* The same with the slot free, for the next thread. */
void rlock_free_dead(struct caller *c, uint32_t dead_ix);

/*
 * For claims on other slots: before the CAS the claimer says so in a word of its own slot, and when
 * it has given the claim up it takes that back.
 */
void rlock_claim_begins(uint32_t *record, uint32_t link);
void rlock_claim_ends(struct caller *c, uint32_t *record);

/*
 * Does the living thread that the claim names know nothing of it, so that the word is damaged and
 * nobody would ever give the claim up? seen: the word's value. link: whose word it is, of a thread
 * or a process. Who claims truly is never taken for one that does not, however long it is stopped.
 */
bool rlock_is_false_claim(struct caller *c, const uint64_t *word, uint64_t seen, uint32_t link,
			  bool of_process);

/* Is this thread, by whom the 32-bit word (half of a semaphore's, too) said to be held when it was
 * `seen`, none that exists? */
bool rlock_is_orphan(const struct caller *c, uint32_t owner_ix, const uint32_t *word,
		     uint32_t seen);

/*
 * A lock that was busy, of an owner that lives: does the owner not know of it, so that the word is
 * damaged and nobody would ever release it? Each owner names its lock before it takes it and until
 * it has released it. One look may fall between two turns of an owner; several, each after a sleep
 * that no release has ended, do not.
 */
bool rlock_is_false(const struct caller *c, const struct busy *b);

/* Releases it all the same. */
void rlock_break(struct caller *c, const struct busy *b);

/* Who has claimed this dead thread's slot, index + 1, by what the claim says; 0: nobody, or the
 * caller. */
uint32_t rlock_claimer_link(const struct caller *c, uint32_t dead_ix);

/* Phase 1 for a dead thread: repairs and releases its lock, passes on its wake. Takes no lock. */
void rlock_recover(struct caller *c, uint32_t dead_ix, bool patient);

#endif
