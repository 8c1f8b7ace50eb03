/* SPDX-License-Identifier: MIT */
/*
 * What is done about the dead. Phase 1 (repair_lock, called by rlock_recover) sets the object right
 * that a dead thread had locked, needs no lock and may be called anywhere. Burial frees the dead
 * thread's slot and what it names; the burial of a process also applies its SEM_UNDO. Burial
 * takes locks: never call it while holding anything. Every step may be interrupted by death and is
 * then done again by the next.
 */
#ifndef USYSV_IPC_REPAIR_H
#define USYSV_IPC_REPAIR_H

#include "core/caller.h"
#include "core/layout.h"

/* For caller_ops.repair. */
void repair_lock(struct caller *c, uint32_t dead_ix, uint64_t lock_off);

enum burial {
	BURIAL_NONE, /* it lives, or somebody else is at it */
	BURIAL_DONE, /* also when there was nothing left to do */
	BURIAL_BUSY, /* caller.busy: wait with nothing held, start over */
};

/* Buries one dead thread, if it is dead: enum burial or -errno. */
int repair_bury_thread(struct caller *c, uint32_t thread_ix, bool patient);

/*
 * Buries a process slot: all its dead threads, and, when the process itself (not only its image)
 * has ended, its undo records and its attaches, then frees the slot. now: as time(2). OUTCOME_DONE
 * (also when it lives, somebody else is at it, or an attach that it had begun has to wait),
 * OUTCOME_BUSY.
 */
int repair_bury_process(struct caller *c, uint32_t proc_ix, int64_t now);

/* Empties a slot that was reserved for a child that has not come to be: its records go. The
 * caller has the slot's token. OUTCOME_DONE, _BUSY, or _RETRY: later, somebody is at it. */
int repair_bury_reserved(struct caller *c, uint32_t proc_ix);

/* The caller's process has executed another program: what the image before had attached goes, and
 * what its threads left. OUTCOME_DONE or _BUSY. */
int repair_begin_anew(struct caller *c, int64_t now);

/*
 * The caller's own process is on its way out. When no other thread of it is left, its SEM_UNDO is
 * applied and its slots are given back: c is then no longer registered. Else that is left to
 * burial. OUTCOME_DONE or _BUSY.
 */
int repair_exit_process(struct caller *c, int64_t now);

/*
 * Looks at every slot and buries the dead. Returns how many processes that count as users (not
 * PROC_REAPER, not the caller's own) are left. What was busy is left for the next time (*ret_busy).
 * Asking the kernel about a process costs system calls, so each kind of sweep asks about more:
 */
enum sweep {
	SWEEP_MARKED,   /* those with a thread that is marked dead */
	SWEEP_DOUBTFUL, /* and those without a thread that the kernel would mark */
	SWEEP_ALL,      /* for marks that are not true (LIFE_P1) */
};
uint32_t repair_sweep(struct caller *c, int64_t now, enum sweep kind, bool *ret_busy);

#endif
