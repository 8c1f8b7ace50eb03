// SPDX-License-Identifier: MIT
/*
 * Who has a segment attached, and the end of removed segments that nobody has; see the header.
 *
 * Records say whom to ask, attach_count.h how much they have mapped, the kernel's byte locks
 * whether anybody has it at all. Nothing here changes anything but by the engine's shm_destroy(),
 * so who dies in the middle leaves it to the next who looks.
 */
#include "client/attach_used.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/ident.h"
#include "base/sys.h"
#include "client/attach_file.h"
#include "client/call.h"
#include "client/session.h"
#include "core/ids.h"

#define DESTROY_TRIES 16

#define DYING_PAUSE_NS 500000 /* of who waits for the dying: so long each */
#define DYING_PAUSES   200
#define NOBODY_PAUSES  20 /* nobody is known to have it: the last moments of a burial */

/* ---- The dying --------------------------------------------------------------------------- */

/* Is it worth asking the kernel about this process? A living thread says no. */
static bool may_be_gone(struct caller *c, uint32_t proc_ix)
{
	const struct proc_shm *p = region_known_proc(c->base, proc_ix);
	uint32_t link = p->first_thread_link;

	if (PROC_STATE(load_acquire(&p->state)) != PROC_LIVE) /* REG_P2/A */
		return false;
	return !link || c->ops->is_dead(c, link - 1, false);
}

/* Who may have something of the segment: a living process? Else *ret_dying says if anybody. */
static bool is_held_by_living(struct caller *c, uint32_t ix, uint32_t gen, bool *ret_dying)
{
	uint32_t hi = region_proc_count(c->base);

	*ret_dying = false;
	for (uint32_t p = 0; p < hi; p++) {
		if (!shm_count_records(c->base, p, ix, gen))
			continue;
		if (p == c->proc_ix || !may_be_gone(c, p))
			return true;
		*ret_dying = true;
	}
	return false;
}

/*
 * The kernel closes the descriptors of a dying process before it lets go of the files that its
 * mappings kept: who learns of a death by a socket would find the segment in use still, which on
 * Linux it is not. So he waits a moment; what takes longer is left to the reaper. False: in use.
 */
static bool wait_for_dying(struct caller *c, const struct segment_shm *s, uint32_t ix)
{
	const struct timespec pause = {.tv_nsec = DYING_PAUSE_NS};
	uint32_t gen = load_relaxed(&s->object.gen); /* whichever: it only ends the wait */

	for (int n = 0;; n++) {
		bool dying;

		if (attach_file_in_use(s) == 0)
			return true;
		if (is_held_by_living(c, ix, gen, &dying) ||
		    n >= (dying ? DYING_PAUSES : NOBODY_PAUSES))
			return false;
		sys_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
}

/* ---- Who is attached --------------------------------------------------------------------- */

/* Attaches of a process that has records of the segment. */
static uint64_t count_of(struct caller *c, uint32_t proc_ix, const struct segment_shm *s,
			 uint32_t records)
{
	const struct proc_shm *p = region_known_proc(c->base, proc_ix);
	uint64_t sum = 0;
	pid_t pid;

	if (attach_can_ask(c, proc_ix, &pid))
		return attach_count_mappings(s, pid, &sum) < 0 ? records : sum;
	if (PROC_STATE(load_acquire(&p->state)) != PROC_LIVE) /* REG_P2/A */
		return c->ops->is_image_gone(c, proc_ix) ? 0 : records;
	return records;
}

/* Of the census, if the segment is in it, and of processes that are not. */
static uint64_t count_all(struct caller *c, const struct attach_census *k,
			  const struct shm_status *st)
{
	uint32_t hi = region_proc_count(c->base);
	uint32_t ix = st->ix, gen = st->segment.object.gen;
	const struct segment_shm *s = shm_known_segment(c->base, ix);
	uint64_t sum = 0;

	if (k && !attach_census_of(k, ix, s, &sum))
		k = NULL;
	for (uint32_t p = 0; p < hi; p++) {
		uint32_t n;

		if (k && attach_census_asked(k, p))
			continue;
		n = shm_count_records(c->base, p, ix, gen);
		if (n || shm_has_left(c->base, p, ix, gen))
			sum += count_of(c, p, s, n);
	}
	return sum;
}

static uint64_t count_attached(struct caller *c, const struct attach_census *k,
			       const struct shm_status *st)
{
	const struct segment_shm *s = shm_known_segment(c->base, st->ix);
	int in_use = attach_file_in_use(s);
	uint64_t sum;

	if (in_use == 0)
		return 0;
	sum = count_all(c, k, st);
	if (k && sum == 0) /* somebody came after the census */
		sum = count_all(c, NULL, st);
	/* Mappings that nobody has on record: a child made by a raw clone; or just dying. */
	return in_use == 1 && sum == 0 && !wait_for_dying(c, s, st->ix) ? 1 : sum;
}

static bool has_record_of(const unsigned char *base, uint32_t proc_ix, const struct shm_status *st)
{
	struct shm_walk w = shm_records(base, proc_ix);

	return st ? shm_count_records(base, proc_ix, st->ix, st->segment.object.gen) > 0
		  : shm_next_record(&w) != NULL;
}

/* Who has the segment (null: any) attached, and is dead. */
static void bury_attached(struct thread_block *tb, const struct shm_status *st)
{
	struct caller *c = &tb->caller;
	uint32_t hi = region_proc_count(c->base);

	for (uint32_t p = 0; p < hi; p++)
		if (p != c->proc_ix && may_be_gone(c, p) && has_record_of(c->base, p, st) &&
		    (c->ops->is_process_dead(c, p) || c->ops->is_image_gone(c, p)))
			session_bury(tb, p);
}

void attach_begin_list(struct thread_block *tb, struct attach_census *ret)
{
	bury_attached(tb, NULL);
	attach_census_take(&tb->caller, ret);
}

/* kernel.shm_rmid_forced: what nobody has attached goes with its creator. */
static bool creator_is_gone(const struct segment_shm *s)
{
	/* SHM_D1/A: a file in huge pages is made in an attach of its own, begun and ended */
	return load_acquire(&s->attach_seq) > (shm_huge_shift(s) ? 2u : 0u) ||
	       !ident_thread_exists((pid_t)s->cpid, (pid_t)s->creator_tid);
}

/* Does it go now, if nobody is attached? */
static bool is_due(const unsigned char *base, const struct segment_shm *s)
{
	return shm_is_doomed(base, s) && ((s->object.mode & SEGMENT_DEST) || creator_is_gone(s));
}

int attach_stat(struct thread_block *tb, int32_t id, bool by_index, bool any,
		const struct attach_census *k, struct shm_status *ret, uint64_t *ret_attached)
{
	for (bool buried = false;; buried = true) {
		int rc;

		do {
			call_enter(tb);
			rc = shm_stat(&tb->caller, id, by_index, any, ret);
		} while (call_again(tb, rc));
		if (rc < 0)
			return rc;
		if (!buried) {
			if (!k)
				bury_attached(tb, ret);
			if (is_due(tb->caller.base, &ret->segment))
				attach_try_destroy(tb, ret->id, true);
			continue; /* with the statistics of now */
		}
		*ret_attached = count_attached(&tb->caller, k, ret);
		return 0;
	}
}

/* ---- Removed segments -------------------------------------------------------------------- */

void attach_try_destroy(struct thread_block *tb, int32_t id, bool patient)
{
	struct caller *c = &tb->caller;
	uint32_t ix;

	for (int tries = 0; tries < DESTROY_TRIES; tries++) {
		struct object_shm *o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
		struct segment_shm *s = o ? shm_known_segment(c->base, ix) : NULL;
		uint32_t seq;
		int rc;

		if (!s || !shm_is_doomed(c->base, s))
			return;
		seq = load_acquire(&s->attach_seq); /* SHM_D1/A */
		if (patient ? !wait_for_dying(c, s, ix) : attach_file_in_use(s) != 0)
			return;
		do {
			call_enter(tb);
			rc = shm_destroy(c, id, seq);
			if (rc == OUTCOME_DONE)
				call_settle(tb);
		} while (call_again(tb, rc));
		if (rc != OUTCOME_RETRY)
			return;
	}
}

void attach_sweep(struct thread_block *tb)
{
	struct caller *c = &tb->caller;
	uint32_t hi = region_object_count(c->base, FAMILY_SHM);

	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct segment_shm *s = shm_known_segment(c->base, ix);

		if (load_acquire(&s->object.live) && is_due(c->base, s)) /* ID_P1/A */
			attach_try_destroy(tb, s->id, false);
	}
}

void attach_drop_unused(struct thread_block *tb, int32_t id)
{
	const unsigned char *base = tb->caller.base;
	uint32_t ix;

	if (ids_lookup(base, FAMILY_SHM, id, &ix) && is_due(base, shm_known_segment(base, ix)))
		attach_try_destroy(tb, id, true);
}
