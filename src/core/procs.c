// SPDX-License-Identifier: MIT
/*
 * The registry.
 *
 *   REG_P2  process slot and groups
 *    word      proc_shm.state, owner words of the groups {generation, process index + 1}
 *    states    state FREE > RESERVED > LIVE > FREE; RESERVED > FREE. Owner 0 > process > 0
 *    writers   FREE > RESERVED: CAS, who holds the kernel's token of that index, if it could take
 *              it. RESERVED > LIVE: CAS, that process, or its child. RESERVED > FREE: CAS, who has
 *              the token by then; of one without, when the reserver is gone. LIVE > FREE: who has
 *              claimed the slot (REG_P1). Generation + 2: the process's next image, CAS while
 *              nobody has claimed the slot (REG_P1). Owner 0 > p: a thread of p, CAS. p > 0: who
 *              buried the last thread of the group, CAS
 *    order     R of procs_publish pairs with A of its readers; publishes pid, start and generation
 *    stale-ok  a LIVE slot whose process is gone: to be buried
 *    death     freed by one store, the claim left as it is. Reserved: the reaper frees it. A group
 *              taken, no thread in it: its owner's burial gives it back
 *    progress  lock-free
 *    tests     unit/procs, crash/scenes-life
 */
#include "core/procs.h"

#include <errno.h>

#include "base/ident.h"
#include "core/region.h"

int procs_reserve(unsigned char *base, bool (*own)(void *context, uint32_t ix), void *context,
		  uint32_t pid, uint32_t *ret_ix)
{
	struct header_shm *h = region_header(base);

	for (uint32_t ix = 0; ix < PROC_CAPACITY; ix++) {
		struct proc_shm *p;
		uint32_t seen;
		int rc = region_grow(base, &h->proc_hi, PROCS_OFF, sizeof(*p), PROC_CAPACITY, ix);

		if (rc < 0)
			return rc;
		p = region_known_proc(base, ix);
		if (load_acquire(&p->state) != PROC_FREE || /* REG_P2/A */
		    (own && !own(context, ix)))
			continue;
		seen = PROC_FREE;
		if (cas(&p->state, &seen,
			PROC_WORD(own ? PROC_RESERVED : PROC_RESERVED_BARE, pid))) { /* REG_P2/R */
			*ret_ix = ix;
			return 0;
		}
	}
	return -ENOSPC;
}

void procs_unreserve(unsigned char *base, uint32_t ix, uint32_t word)
{
	if (PROC_STATE(word) == PROC_RESERVED || PROC_STATE(word) == PROC_RESERVED_BARE)
		(void)cas(&region_known_proc(base, ix)->state, &word, PROC_FREE); /* REG_P2/R */
}

static uint32_t next_odd(uint32_t gen)
{
	return ((gen + 1) | 1) & 0xffffff;
}

bool procs_publish(unsigned char *base, uint32_t ix, uint32_t pid, uint64_t start,
		   uint32_t pid_view, uint32_t flags)
{
	struct proc_shm *p = region_known_proc(base, ix);
	uint32_t word = load_acquire(&p->state); /* REG_P2/A */

	if (PROC_STATE(word) != PROC_RESERVED && PROC_STATE(word) != PROC_RESERVED_BARE)
		return false;
	p->pid = pid;
	p->start = start;
	p->pid_view = pid_view;
	store_relaxed(&p->flags, flags); /* published with the state */
	p->undo_ref = 0;
	p->undo_clock = 0;
	store_relaxed(&p->first_thread_link, 0); /* a hint */
	store_release(&p->claim,
		      CLAIM_WORD(next_odd(own_generation(&p->claim)), 0, 0)); /* REG_P1/R */
	return cas(&p->state, &word, PROC_LIVE);                              /* REG_P2/R */
}

int32_t procs_find_from(const unsigned char *base, uint32_t pid, uint64_t start, uint32_t from)
{
	uint32_t hi = region_proc_count(base);

	for (uint32_t ix = from; ix < hi; ix++) {
		const struct proc_shm *p = region_proc(base, ix);

		if (p && load_acquire(&p->state) == PROC_LIVE && p->pid == pid && /* REG_P2/A */
		    (start == 0 || ident_same_start(p->start, start)))
			return (int32_t)ix;
	}
	return -1;
}

int32_t procs_find(const unsigned char *base, uint32_t pid, uint64_t start)
{
	return procs_find_from(base, pid, start, 0);
}

bool procs_adopt(unsigned char *base, uint32_t ix)
{
	struct proc_shm *p = region_known_proc(base, ix);
	uint64_t seen = load_acquire(&p->claim); /* REG_P1/A */
	uint32_t gen = (CLAIM_GEN(seen) + 2) & 0xffffff;

	/* A store would let two in: the claimer of now, and the next one. Groups of the old image
	 * name the old generation; its threads are dead. */
	if (CLAIM_CLAIMER(seen) || !cas(&p->claim, &seen, CLAIM_WORD(gen, 0, 0))) /* REG_P1/AR */
		return false;
	store_relaxed(&p->first_thread_link, 0); /* a hint */
	return true;
}

static uint64_t owner_word(const unsigned char *base, uint32_t proc_ix)
{
	const struct proc_shm *p = region_known_proc(base, proc_ix);

	return (uint64_t)CLAIM_GEN(load_acquire(&p->claim)) << 32 | (proc_ix + 1); /* REG_P1/A */
}

int procs_take_group(unsigned char *base, uint32_t proc_ix, uint32_t *ret_group)
{
	struct header_shm *h = region_header(base);
	uint64_t mine = owner_word(base, proc_ix);

	for (uint32_t g = 0; g < GROUP_CAPACITY; g++) {
		uint64_t seen = 0;

		if (g >= load_acquire(&h->group_hi)) { /* REGION_P1/A */
			int rc = region_populate(base, OWNERS_OFF + (uint64_t)g * 8, 8);

			if (rc == 0)
				rc = region_grow(base, &h->group_hi, GROUPS_OFF, PAGE_BYTES,
						 GROUP_CAPACITY, g);
			if (rc < 0)
				return rc;
		}
		if (cas(region_group_owner(base, g), &seen, mine)) {   /* REG_P2/R */
			store_release(region_known_watch(base, g), 0); /* WATCH_P1/R */
			*ret_group = g;
			return 0;
		}
	}
	return -ENOSPC;
}

void procs_enter_thread(unsigned char *base, uint32_t thread_ix, uint32_t proc_ix, uint32_t tid,
			bool is_marked)
{
	struct thread_shm *t = region_known_thread(base, thread_ix);
	struct proc_shm *p = region_known_proc(base, proc_ix);

	/* Any living thread of it will do: relaxed. */
	if (!load_relaxed(&p->first_thread_link))
		store_relaxed(&p->first_thread_link, thread_ix + 1);
	t->proc_ix = proc_ix;
	t->tid = tid;
	t->held = t->hold = t->owes_wake = t->undo_reserved = 0;
	store_relaxed(&t->victim_link, 0); /* a burier of the slot's last user may look still */
	t->victim_proc_link = t->repairs_link = t->chunk_link = 0;
	t->op = OP_NONE;
	store_release(region_known_life(base, thread_ix), is_marked ? tid : 0); /* LIFE_P1/R */
	store_release(&t->claim,
		      CLAIM_WORD(next_odd(own_generation(&t->claim)), 0, 0)); /* REG_P1/R */
}

bool procs_owns_group(const unsigned char *base, uint32_t proc_ix, uint32_t group)
{
	return load_acquire(region_group_owner(base, group)) ==
	       owner_word(base, proc_ix); /* REG_P2/A */
}
