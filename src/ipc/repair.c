// SPDX-License-Identifier: MIT
/*
 * What is done about the dead: a table of families for what lies behind a lock, then burial.
 *
 *   BURY_P1  burial of a thread
 *    word      thread_shm.claim (REG_P1)
 *    states    odd, unclaimed > odd, claimed > even
 *    writers   whoever claims the dead thread's slot
 *    order     REG_P1
 *    stale-ok  names of blocks that are free already (ARENA_P1)
 *    death     the burier names its victim before it frees anything in the victim's name fields;
 *              who buries the burier buries that victim first. Every step may be done again.
 *              Between unclaiming a process slot and waking who waits for that: these look again by
 *              themselves, 5 ms later at the most (session_end.c, take_over() in session.c)
 *    progress  takes locks, one at a time, with nothing held; busy ends it, to be tried again
 *    tests     unit/repair, crash/scenes-life
 */
#include "ipc/repair.h"

#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/arena.h"
#include "core/ids.h"
#include "core/procs.h"
#include "core/region.h"
#include "core/rlock.h"
#include "ipc/msg.h"
#include "ipc/sem.h"
#include "ipc/shm.h"

#define BURY_DEPTH 64

static const struct family_ops {
	void (*repair_object)(struct caller *c, uint32_t dead_ix, uint32_t ix);
	void (*created)(struct caller *c, uint32_t thread_ix);
	uint64_t (*total)(const unsigned char *base, uint32_t ix);
	int (*bury_thread)(struct caller *c, uint32_t dead_ix);
	int (*purge)(struct caller *c, uint32_t thread_ix);
} families[FAMILY_COUNT] = {
	[FAMILY_MSG] = {msg_repair_queue, msg_created, msg_total, msg_bury_thread, msg_purge},
	[FAMILY_SEM] = {sem_repair_set, sem_created, sem_total, sem_bury_thread, sem_purge},
	[FAMILY_SHM] = {shm_repair_segment, shm_created, shm_total, shm_bury_thread, shm_purge},
};

/* ---- Phase 1 ----------------------------------------------------------------------------- */

static void repair_object(struct caller *c, uint32_t dead_ix, uint64_t off)
{
	uint32_t family = (uint32_t)((off - OBJECTS_OFF) / OBJECTS_BYTES);
	uint32_t ix = (uint32_t)((off - OBJECTS_OFF) % OBJECTS_BYTES / OBJECT_SLOT_BYTES);

	if (family < FAMILY_COUNT && families[family].repair_object &&
	    ids_object_lock((enum family)family, ix) == off)
		families[family].repair_object(c, dead_ix, ix);
}

static void repair_table(struct caller *c, uint32_t dead_ix, enum family family)
{
	struct thread_shm *dead = region_known_thread(c->base, dead_ix);

	if (!families[family].total)
		return;
	if (ids_repair(c, dead_ix, family, families[family].total))
		families[family].created(c, dead_ix);
	if (dead->op == OP_CREATE)
		store_crash(&dead->op, OP_NONE);
}

void repair_lock(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	sem_recover_holds(c, dead_ix);
	if (lock_off == 0)
		return;
	for (int f = 0; f < FAMILY_COUNT; f++)
		if (lock_off == ids_table_lock((enum family)f))
			repair_table(c, dead_ix, (enum family)f);
	if (arena_owns_lock(lock_off))
		arena_repair(c, dead_ix, lock_off);
	else if (lock_off >= PROCS_OFF && lock_off < OWNERS_OFF)
		sem_undo_repair(c, dead_ix,
				(uint32_t)((lock_off - PROCS_OFF) / sizeof(struct proc_shm)));
	else if (lock_off >= OBJECTS_OFF && lock_off < GROUPS_OFF)
		repair_object(c, dead_ix, lock_off);
}

/* ---- Burial of threads ------------------------------------------------------------------- */

static int bury_thread(struct caller *c, uint32_t ix, bool patient, int depth);

/* The block that a dead burier took out of one of a process's lists, or was about to; or that a
 * parent had just given to its child to be. */
static void finish_pop(struct caller *c, struct thread_shm *t)
{
	struct proc_shm *p =
		t->victim_proc_link ? region_proc(c->base, t->victim_proc_link - 1) : NULL;

	if (p && p->undo_ref && p->undo_ref == t->name_ref[NAME_FLY]) {
		struct undo_shm *u = region_block(c->base, p->undo_ref, sizeof(*u));

		store_crash(&p->undo_ref, u ? u->next_in_proc_ref : 0);
	}
	if (p && t->name_ref[NAME_FLY] &&
	    load_acquire(&p->attach_ref) == t->name_ref[NAME_FLY]) { /* SHM_A1/A */
		const struct attach_block_shm *b =
			region_block(c->base, t->name_ref[NAME_FLY], sizeof(*b));

		store_release(&p->attach_ref, b ? b->next_ref : 0); /* SHM_A1/R */
	}
	store_crash(&t->victim_proc_link, 0);
}

/* All that a dead thread left, under its claim. */
static int clear_thread(struct caller *c, uint32_t ix)
{
	struct thread_shm *t = region_known_thread(c->base, ix);
	int rc = OUTCOME_DONE;

	finish_pop(c, t);
	for (int f = 0; f < FAMILY_COUNT && rc == OUTCOME_DONE; f++) {
		if (families[f].bury_thread)
			rc = families[f].bury_thread(c, ix);
		if (rc == OUTCOME_DONE && families[f].purge)
			rc = families[f].purge(c, ix);
	}
	for (int n = 0; n < NAME_COUNT && rc == OUTCOME_DONE; n++)
		rc = arena_give_of(c, ix, (enum name)n);
	return rc;
}

static int bury_thread(struct caller *c, uint32_t ix, bool patient, int depth)
{
	struct thread_shm *t = region_thread(c->base, ix);
	uint32_t victim;
	int rc;

	if (!t || depth > BURY_DEPTH)
		return BURIAL_NONE;
	if (!(CLAIM_GEN(load_acquire(&t->claim)) & 1)) /* REG_P1/A */
		return BURIAL_DONE;
	if (ix == c->thread_ix || !c->ops->is_dead(c, ix, patient))
		return BURIAL_NONE;
	rlock_recover(c, ix, patient);
	victim = load_relaxed(
		&t->victim_link); /* the dead one's, or another burier has cleared it */
	if (victim && victim != ix + 1) {
		rc = bury_thread(c, victim - 1, patient, depth + 1);
		if (rc == BURIAL_BUSY || rc < 0)
			return rc;
	}
	if (!rlock_claim_dead(c, ix, patient))
		return BURIAL_NONE;
	rc = clear_thread(c, ix);
	if (rc != OUTCOME_DONE) {
		rlock_unclaim(c, ix);
		return rc == OUTCOME_BUSY ? BURIAL_BUSY : rc;
	}
	store_crash(&t->victim_link, 0);
	store_crash(&t->repairs_link, 0);
	store_crash(&t->hold, 0);
	rlock_free_dead(c, ix);
	return BURIAL_DONE;
}

int repair_bury_thread(struct caller *c, uint32_t thread_ix, bool patient)
{
	return bury_thread(c, thread_ix, patient, 0);
}

/* ---- Burial of processes ----------------------------------------------------------------- */

/* Claims a process slot, if it is the generation that was judged; a dead claimer of it is buried
 * first. The slot is the thread's victim until unclaim_process(). */
static bool claim_process(struct caller *c, uint32_t proc_ix, uint32_t gen)
{
	struct proc_shm *p = region_known_proc(c->base, proc_ix);
	uint32_t *record = &region_self(c)->victim_proc_link;
	uint64_t seen = load_acquire(&p->claim); /* REG_P1/A */
	uint32_t claimer = CLAIM_CLAIMER(seen);
	struct thread_shm *other = claimer ? region_thread(c->base, claimer - 1) : NULL;
	uint64_t mine;

	if (!(gen & 1) || CLAIM_GEN(seen) != gen ||
	    load_acquire(&p->state) != PROC_LIVE) /* REG_P2/A */
		return false;
	if (other && other != region_self(c) &&
	    (CLAIM_GEN(load_acquire(&other->claim)) & 0xfffff) ==
		    CLAIM_CLAIMER_GEN(seen)) { /* REG_P1/A */
		if (bury_thread(c, claimer - 1, false, 0) != BURIAL_DONE &&
		    !rlock_is_false_claim(c, &p->claim, seen, proc_ix + 1, true))
			return false;
	}
	mine = CLAIM_WORD(CLAIM_GEN(seen), own_generation(&region_self(c)->claim) & 0xfffff,
			  c->thread_ix + 1);
	rlock_claim_begins(record, proc_ix + 1);
	/* A former claimer may have freed it in the meantime: then it is nobody's, or another's as
	 * soon as that one publishes a claim of its own. */
	if (cas(&p->claim, &seen, mine) && load_acquire(&p->state) == PROC_LIVE && /* REG_P1/AR */
	    load_acquire(&p->claim) == mine)                                       /* REG_P2/A */
		return true;
	rlock_claim_ends(c, record);
	return false;
}

/*
 * One store frees the slot: two could be cut in between. The claim word stays, for from then on it
 * may be written by the next one who publishes. Either way there are who wait for it, at the state:
 * who has learnt of the death, and the next image, which takes the slot over unclaimed.
 */
static void let_process_go(struct proc_shm *p, bool free_slot)
{
	if (free_slot) {
		store_relaxed(&p->flags, 0);         /* the state says whether they count */
		store_release(&p->state, PROC_FREE); /* REG_P2/R */
	} else {
		store_release(&p->claim,
			      CLAIM_WORD(own_generation(&p->claim), 0, 0)); /* REG_P1/R */
	}
	futex_wake(&p->state, INT_MAX);
}

static void unclaim_process(struct caller *c, uint32_t proc_ix, bool free_slot)
{
	let_process_go(region_known_proc(c->base, proc_ix), free_slot);
	rlock_claim_ends(c, &region_self(c)->victim_proc_link);
}

/*
 * Buries the dead threads of a group; true when nobody is left in it. An owner that is the present
 * generation of a live process keeps its empty groups, unless `give_back`.
 */
static bool clear_group(struct caller *c, uint32_t group, bool give_back, bool patient,
			int *ret_busy)
{
	uint64_t owner = load_acquire(region_group_owner(c->base, group)); /* REG_P2/A */
	bool empty = true;

	for (uint32_t k = 0; owner && k < GROUP_THREADS; k++) {
		uint32_t ix = group * GROUP_SPAN + k;
		int rc;

		if (!(CLAIM_GEN(load_acquire(&region_known_thread(c->base, ix)->claim)) &
		      1)) /* REG_P1/A */
			continue;
		rc = bury_thread(c, ix, patient, 0);
		if (rc == BURIAL_BUSY)
			*ret_busy = 1;
		empty &= rc == BURIAL_DONE;
	}
	if (owner && empty && give_back)
		(void)cas(region_group_owner(c->base, group), &owner, 0); /* REG_P2/R */
	return empty;
}

/* A living thread stands for the process, in place of one that has ended. */
static void note_survivor(struct caller *c, uint32_t proc_ix, uint32_t group)
{
	struct proc_shm *p = region_known_proc(c->base, proc_ix);

	for (uint32_t k = 0; k < GROUP_THREADS; k++) {
		uint32_t ix = group * GROUP_SPAN + k;

		if ((CLAIM_GEN(load_acquire(&region_known_thread(c->base, ix)->claim)) &
		     1) && /* REG_P1/A */
		    !c->ops->is_dead(c, ix, false))
			store_relaxed(&p->first_thread_link, ix + 1); /* a hint */
	}
}

/* Buries the dead threads of a process; true when none is left. */
static bool clear_groups(struct caller *c, uint32_t proc_ix, bool patient, int *ret_busy)
{
	uint32_t groups = region_group_count(c->base);
	bool empty = true;

	for (uint32_t g = 0; g < groups; g++) {
		if (!procs_owns_group(c->base, proc_ix, g) ||
		    clear_group(c, g, false, patient, ret_busy))
			continue;
		empty = false;
		note_survivor(c, proc_ix, g);
	}
	return empty;
}

static void give_groups_back(struct caller *c, uint32_t proc_ix)
{
	uint32_t groups = region_group_count(c->base);
	int busy = 0;

	for (uint32_t g = 0; g < groups; g++)
		if (procs_owns_group(c->base, proc_ix, g))
			clear_group(c, g, true, true, &busy);
}

/* exec: the process lives on, its attaches have gone. Its undo records stay. */
static int detach_image(struct caller *c, uint32_t proc_ix, uint32_t gen, int64_t now)
{
	struct proc_shm *p = region_known_proc(c->base, proc_ix);
	int rc;

	if (!load_acquire(&p->attach_ref) || !c->ops->is_image_gone || /* SHM_A1/A */
	    !c->ops->is_image_gone(c, proc_ix) || !claim_process(c, proc_ix, gen))
		return OUTCOME_DONE;
	rc = shm_exit_process(c, proc_ix, p->pid, now);
	unclaim_process(c, proc_ix, false);
	return rc;
}

/*
 * An attach in progress is left alone while the memory is there in which it was made, as far as
 * that can be known: a helper of the dead thread may be at it for a moment more (SPARE_P1). Whoever
 * looks again finds it gone.
 */
static bool may_still_attach(struct caller *c, uint32_t proc_ix)
{
	const struct proc_shm *p = region_known_proc(c->base, proc_ix);

	return shm_is_attaching(c->base, proc_ix) && c->ops->is_image_gone &&
	       !(load_relaxed(&p->flags) & PROC_TOKENLESS) && /* the dead one's */
	       !c->ops->is_image_gone(c, proc_ix);
}

/*
 * Who is at a slot's lists says so. The dead among them are buried first: their burial alone knows
 * whose a block is that they have in hand, as long as the lists are as they were.
 */
static int bury_who_is_at(struct caller *c, uint32_t proc_ix)
{
	uint32_t groups = region_group_count(c->base);

	for (uint32_t ix = 0; ix < groups * GROUP_SPAN; ix++) {
		const struct thread_shm *t = region_thread(c->base, ix);
		int rc;

		if (!t || ix == c->thread_ix ||
		    !(CLAIM_GEN(load_acquire(&t->claim)) & 1) ||       /* REG_P1/A */
		    load_acquire(&t->victim_proc_link) != proc_ix + 1) /* REG_P1/A */
			continue;
		rc = bury_thread(c, ix, false, 0);
		if (rc != BURIAL_DONE)
			return rc == BURIAL_BUSY ? OUTCOME_BUSY : OUTCOME_RETRY;
	}
	return OUTCOME_DONE;
}

int repair_bury_reserved(struct caller *c, uint32_t proc_ix)
{
	struct thread_shm *self = region_self(c);
	int rc = bury_who_is_at(c, proc_ix);

	if (rc != OUTCOME_DONE)
		return rc;
	store_crash(&self->victim_proc_link, proc_ix + 1);
	rc = shm_exit_process(c, proc_ix, 0, 0);
	store_crash(&self->victim_proc_link, 0);
	return rc;
}

int repair_bury_process(struct caller *c, uint32_t proc_ix, int64_t now)
{
	struct proc_shm *p = region_proc(c->base, proc_ix);
	uint32_t gen;
	int busy = 0, rc;
	bool empty, gone;

	if (!p || proc_ix == c->proc_ix || load_acquire(&p->state) != PROC_LIVE) /* REG_P2/A */
		return OUTCOME_DONE;
	/* Before it is judged: by then another may have buried it, and a third one live here. */
	gen = CLAIM_GEN(load_acquire(&p->claim)); /* REG_P1/A */
	gone = c->ops->is_process_dead(c, proc_ix);
	empty = clear_groups(c, proc_ix, gone, &busy);
	if (busy)
		return OUTCOME_BUSY;
	if (!empty)
		return OUTCOME_DONE;
	if (!gone)
		return detach_image(c, proc_ix, gen, now);
	if (!claim_process(c, proc_ix, gen))
		return OUTCOME_DONE;
	rc = sem_undo_exit(c, proc_ix, now, true);
	if (rc == OUTCOME_DONE && may_still_attach(c, proc_ix)) {
		unclaim_process(c, proc_ix, false);
		return OUTCOME_DONE;
	}
	if (rc == OUTCOME_DONE)
		rc = shm_exit_process(c, proc_ix, p->pid, now);
	if (rc == OUTCOME_DONE)
		give_groups_back(c, proc_ix);
	unclaim_process(c, proc_ix, rc == OUTCOME_DONE);
	return rc;
}

int repair_begin_anew(struct caller *c, int64_t now)
{
	uint32_t groups = region_group_count(c->base);
	int busy = 0;

	/* The threads of the image before this one have groups of its generation. They are buried
	 * first, for the reason above. */
	for (uint32_t g = 0; g < groups; g++) {
		uint64_t owner = load_acquire(region_group_owner(c->base, g)); /* REG_P2/A */

		if ((uint32_t)owner == c->proc_ix + 1 && !procs_owns_group(c->base, c->proc_ix, g))
			clear_group(c, g, true, true, &busy);
	}
	return busy ? OUTCOME_BUSY : shm_exit_process(c, c->proc_ix, c->pid, now);
}

int repair_exit_process(struct caller *c, int64_t now)
{
	struct thread_shm *self = region_self(c);
	struct proc_shm *p = region_known_proc(c->base, c->proc_ix);
	bool alone;
	int rc;

	if (!p || !claim_process(c, c->proc_ix, own_generation(&p->claim)))
		return OUTCOME_DONE;
	alone = true;
	for (uint32_t g = 0; g < region_group_count(c->base); g++)
		for (uint32_t k = 0; k < GROUP_THREADS && procs_owns_group(c->base, c->proc_ix, g);
		     k++)
			if (g * GROUP_SPAN + k != c->thread_ix &&
			    (CLAIM_GEN(load_acquire(
				     &region_known_thread(c->base, g * GROUP_SPAN + k)->claim)) &
			     1)) /* REG_P1/A */
				alone &=
					bury_thread(c, g * GROUP_SPAN + k, false, 0) == BURIAL_DONE;
	/* As long as others run they may be inside what SEM_UNDO would give back, or give it back
	 * themselves: a token would be there twice. Linux ends them first, and so does burial. */
	if (!alone) {
		unclaim_process(c, c->proc_ix, false);
		return OUTCOME_DONE;
	}
	rc = sem_undo_exit(c, c->proc_ix, now, true);
	if (rc == OUTCOME_DONE)
		rc = shm_exit_process(c, c->proc_ix, c->pid, now);
	for (int n = 0; n < NAME_COUNT && rc == OUTCOME_DONE; n++)
		rc = arena_give_of(c, c->thread_ix, (enum name)n);
	if (rc == OUTCOME_DONE)
		rc = arena_settle(c);
	if (rc != OUTCOME_DONE) {
		unclaim_process(c, c->proc_ix, false);
		return rc;
	}
	rlock_settle(c);
	/* From here on the thread's slot is not ours, what it says of the claim stays, and says
	 * nothing: the claim names a former user of the slot. */
	store_release(&self->claim,
		      CLAIM_WORD(own_generation(&self->claim) + 1, 0, 0)); /* REG_P1/R */
	for (uint32_t g = 0; g < region_group_count(c->base); g++)
		if (procs_owns_group(c->base, c->proc_ix, g)) {
			uint64_t owner =
				load_acquire(region_group_owner(c->base, g)); /* REG_P2/A */

			(void)cas(region_group_owner(c->base, g), &owner, 0); /* REG_P2/R */
		}
	let_process_go(p, true);
	return OUTCOME_DONE;
}

/* By a hint, and words of which more than one says that it lives. */
static bool looks_alive(struct caller *c, uint32_t proc_ix)
{
	/* a hint: relaxed */
	uint32_t link = load_relaxed(&region_known_proc(c->base, proc_ix)->first_thread_link);
	const struct thread_shm *t = link ? region_thread(c->base, link - 1) : NULL;

	return t && (CLAIM_GEN(load_acquire(&t->claim)) & 1) && t->proc_ix == proc_ix &&
	       life_goes_on(load_acquire(
		       region_known_life(c->base, link - 1))) && /* REG_P1/A, LIFE_P1/A */
	       !c->ops->is_dead(c, link - 1, false);
}

uint32_t repair_sweep(struct caller *c, int64_t now, enum sweep kind, bool *ret_busy)
{
	uint32_t groups = region_group_count(c->base), procs = region_proc_count(c->base);
	uint32_t users = 0;
	int busy = 0;

	for (uint32_t g = 0; g < groups; g++) {
		uint64_t owner = load_acquire(region_group_owner(c->base, g)); /* REG_P2/A */
		uint32_t proc_ix = (uint32_t)owner - 1;
		struct proc_shm *p = owner ? region_proc(c->base, proc_ix) : NULL;

		if (!owner || proc_ix == c->proc_ix)
			continue;
		if (!p || load_acquire(&p->state) != PROC_LIVE || /* REG_P2/A */
		    !procs_owns_group(c->base, proc_ix, g)) {
			/* Of an image that is no more: a thread that executed the next one, not
			 * being the first of its process, took another id before the kernel looked
			 * at its list, so its life word is not marked. */
			clear_group(c, g, true, true, &busy);
			continue;
		}
		for (uint32_t k = 0; k < GROUP_THREADS; k++) {
			uint32_t ix = g * GROUP_SPAN + k;

			if ((CLAIM_GEN(load_acquire(&region_known_thread(c->base, ix)->claim)) &
			     1) && /* REG_P1/A */
			    c->ops->is_dead(c, ix, false)) {
				busy |= repair_bury_process(c, proc_ix, now) == OUTCOME_BUSY;
				break;
			}
		}
	}
	for (uint32_t ix = 0; ix < procs; ix++) {
		struct proc_shm *p = region_known_proc(c->base, ix);

		if (load_acquire(&p->state) != PROC_LIVE || ix == c->proc_ix) /* REG_P2/A */
			continue;
		if ((kind == SWEEP_ALL || (kind == SWEEP_DOUBTFUL && !looks_alive(c, ix))) &&
		    (load_acquire(&p->attach_ref) || c->ops->is_process_dead(c, ix))) /* SHM_A1/A */
			busy |= repair_bury_process(c, ix, now) == OUTCOME_BUSY;
		/* REG_P2/A */
		if (load_acquire(&p->state) == PROC_LIVE &&
		    !(load_relaxed(&p->flags) & PROC_REAPER)) /* a count of one moment */
			users++;
	}
	*ret_busy = busy;
	return users;
}
