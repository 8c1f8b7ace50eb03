// SPDX-License-Identifier: MIT
/*
 * Who is attached: records in blocks that the process's slot names. A process changes its own
 * records only (one thread at a time: the client has a lock for it), its burial all of them. So
 * nothing but a segment's lock is ever taken for an attach, and nothing at all for a detach; the
 * count of a segment is a walk over all processes, which only shmctl and removal need.
 *
 * Before an attach has a mapping it has a record in state MAKING, written under the segment's
 * lock: that is what a remover looks for (SHM_D1). Each attach gets a byte of the file that no
 * other ever had; its lock is the proof that a mapping still lives, after a fork also in another
 * process.
 *
 *   SHM_A1  attach records
 *    word      attach_shm.state; proc_shm.attach_ref, attach_block_shm.next_ref
 *    states    {FREE, LEFT} > MAKING > LIVE > {FREE, LEFT}; MAKING > {FREE, LEFT}; LEFT > FREE.
 *              Blocks: named by a thread > of a slot > named by a thread > free
 *    writers   threads of the process, one at a time; of a slot reserved for a child: its parent,
 *              then the child, or who has got its token; of a dead process: who has claimed the
 *              slot
 *    order     R of the state pairs with A of readers; publishes segment, byte and address
 *    stale-ok  a record whose mapping went by munmap or exec: the kernel's byte lock and /proc
 *              decide. A walk over a slot that is just being freed: see shm_count_records()
 *    death     a block linked and still named by the thread: its burial drops the name. A block
 *              named and not yet taken out by who empties a dead slot: taken out, then freed.
 *              Records of the dead: freed by the burial of the process; of an attach in progress,
 *              when the memory of the dead is gone, too (SPARE_P1)
 *    progress  wait-free but for memory
 *    tests     unit/shm-attach, crash/scenes-shm, conform/shm-life
 */
#include "ipc/shm.h"

#include <errno.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/perm.h"
#include "core/rlock.h"

#define FIRST_RECORDS 7u   /* of a process's first block: 256 bytes */
#define BLOCK_RECORDS 127u /* of a further one, or as many as there are before it */
#define BLOCKS_BOUND  4096u

/* ---- Blocks ------------------------------------------------------------------------------ */

static uint64_t block_bytes(uint32_t capacity)
{
	return sizeof(struct attach_block_shm) + (uint64_t)capacity * sizeof(struct attach_shm);
}

/* What is in the block is not trusted either. */
static struct attach_block_shm *block_at(const unsigned char *base, uint32_t ref,
					 uint32_t *ret_capacity)
{
	struct attach_block_shm *b = ref ? region_block(base, ref, sizeof(*b)) : NULL;

	*ret_capacity = b ? load_relaxed(&b->capacity) : 0; /* once: it bounds the walk */
	return b && block_bytes(*ret_capacity) <= arena_capacity(base, ref) ? b : NULL;
}

/* A block of zeroed records, named FLY. */
static int make_block(struct caller *c, uint32_t capacity, struct attach_block_shm **ret)
{
	struct thread_shm *self = region_self(c);
	struct attach_block_shm *b;
	int rc = arena_give(c, NAME_FLY); /* left by a call that was busy or cut short */

	if (rc == OUTCOME_DONE)
		rc = arena_take(c, ARENA_GENERAL, NAME_FLY, block_bytes(capacity));
	if (rc != OUTCOME_DONE)
		return rc;
	b = region_block(c->base, self->name_ref[NAME_FLY], block_bytes(capacity));
	if (!b)
		return -ENOTRECOVERABLE;
	b->next_ref = 0;
	b->capacity = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		b->record[i] = (struct attach_shm){0};
	*ret = b;
	return OUTCOME_DONE;
}

/* The block that this thread has named becomes the slot's. */
static void link_block(struct caller *c, struct proc_shm *p, struct attach_block_shm *b)
{
	struct thread_shm *self = region_self(c);

	b->next_ref = load_acquire(&p->attach_ref); /* SHM_A1/A */
	crash_barrier();
	store_release(&p->attach_ref, self->name_ref[NAME_FLY]); /* SHM_A1/R */
	store_crash(&self->name_ref[NAME_FLY], 0);
}

static bool chain_has(const unsigned char *base, const struct proc_shm *p, uint32_t ref)
{
	uint32_t at = p ? load_acquire(&p->attach_ref) : 0; /* SHM_A1/A */
	uint32_t capacity;

	for (uint32_t n = 0; at && n < BLOCKS_BOUND; n++) {
		const struct attach_block_shm *b = block_at(base, at, &capacity);

		if (at == ref)
			return true;
		at = b ? b->next_ref : 0;
	}
	return false;
}

int shm_bury_thread(struct caller *c, uint32_t dead_ix)
{
	struct thread_shm *t = region_known_thread(c->base, dead_ix);
	uint32_t ref = t->name_ref[NAME_FLY];

	/* Linked, but the name had not been dropped. */
	if (ref && chain_has(c->base, region_proc(c->base, t->proc_ix), ref))
		store_crash(&t->name_ref[NAME_FLY], 0);
	return OUTCOME_DONE;
}

/* ---- Records ----------------------------------------------------------------------------- */

/* Does a block share memory with one of the first n of the chain? Then a walk would not end. */
static bool overlaps(const unsigned char *base, const struct proc_shm *p, uint32_t n,
		     const struct attach_block_shm *b, uint32_t capacity)
{
	uint32_t ref = load_acquire(&p->attach_ref); /* SHM_A1/A */

	for (; ref && n > 0; n--) {
		uint32_t other_capacity;
		const struct attach_block_shm *other = block_at(base, ref, &other_capacity);

		if (!other)
			return true;
		if (b->record < other->record + other_capacity &&
		    other->record < b->record + capacity)
			return true;
		ref = other->next_ref;
	}
	return false;
}

struct shm_walk shm_records(const unsigned char *base, uint32_t proc_ix)
{
	return (struct shm_walk){.base = base, .p = region_proc(base, proc_ix)};
}

/* To the next block of the chain; false: there is none. */
static bool next_block(struct shm_walk *w)
{
	uint32_t ref;

	if (!w->p)
		return false;
	ref = w->b ? w->b->next_ref : load_acquire(&w->p->attach_ref); /* SHM_A1/A */
	w->at = 0;
	w->b = block_at(w->base, ref, &w->capacity);
	if (w->b && w->blocks < BLOCKS_BOUND &&
	    !overlaps(w->base, w->p, w->blocks, w->b, w->capacity)) {
		w->blocks++;
		return true;
	}
	w->p = NULL;
	w->capacity = 0;
	return false;
}

/* The next one, whatever its state. */
static struct attach_shm *next_any(struct shm_walk *w)
{
	while (w->at == w->capacity)
		if (!next_block(w))
			return NULL;
	return &w->b->record[w->at++];
}

struct attach_shm *shm_next_record(struct shm_walk *w)
{
	struct attach_shm *r;

	while ((r = next_any(w)) != NULL)
		if (load_acquire(&r->state) != ATTACH_FREE) /* SHM_A1/A */
			return r;
	return NULL;
}

/* For a new attach: one that is left of the same segment, which the new one stands for, or of none
 * that is still there; else a free one. */
static struct attach_shm *free_record(struct caller *c, uint32_t ix, uint32_t gen,
				      uint32_t *ret_total, bool *ret_left)
{
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	struct attach_shm *r, *best = NULL;

	*ret_total = 0;
	*ret_left = false;
	while ((r = next_any(&w)) != NULL) {
		uint32_t state = load_acquire(&r->state); /* SHM_A1/A */

		*ret_left = state == ATTACH_LEFT && r->segment_ix == ix && r->segment_gen == gen;
		if (*ret_left)
			return r;
		if (state == ATTACH_FREE || (state == ATTACH_LEFT && !shm_segment_of(c->base, r)))
			best = best ? best : r;
		(*ret_total)++;
	}
	return best;
}

struct segment_shm *shm_segment_of(const unsigned char *base, const struct attach_shm *r)
{
	struct segment_shm *s = shm_segment(base, r->segment_ix);

	return s && load_acquire(&s->object.live) && s->object.gen == r->segment_gen
		       ? s
		       : NULL; /* ID_P1/A */
}

static bool is_another(const struct attach_shm *r, const struct attach_shm *other)
{
	return other != r && other->segment_ix == r->segment_ix &&
	       other->segment_gen == r->segment_gen;
}

static uint32_t count(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen,
		      bool left)
{
	const struct proc_shm *p = region_proc(base, proc_ix);

	/* A slot that changed hands while it was counted is counted again: its blocks may have been
	 * anything. */
	for (int tries = 0; p && tries < 100; tries++) {
		uint64_t claim = load_acquire(&p->claim);    /* REG_P1/A */
		uint32_t state = load_acquire(&p->state);    /* REG_P2/A */
		uint32_t ref = load_acquire(&p->attach_ref); /* SHM_A1/A */
		struct shm_walk w = shm_records(base, proc_ix);
		const struct attach_shm *r;
		uint32_t n = 0;

		while ((r = shm_next_record(&w)) != NULL)
			n += r->segment_ix == ix && r->segment_gen == gen &&
			     (load_acquire(&r->state) == ATTACH_LEFT) == left; /* SHM_A1/A */
		if (load_acquire(&p->claim) == claim &&                        /* REG_P1/A */
		    load_acquire(&p->state) == state &&                        /* REG_P2/A */
		    load_acquire(&p->attach_ref) == ref)                       /* SHM_A1/A */
			return n;
	}
	return 0;
}

uint32_t shm_count_records(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen)
{
	return count(base, proc_ix, ix, gen, false);
}

bool shm_has_left(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen)
{
	return count(base, proc_ix, ix, gen, true) > 0;
}

/* ---- Attach and detach ------------------------------------------------------------------- */

/* Statistics are single words, each whole; of two writers the later one counts. */
void shm_note_attach(struct segment_shm *s, uint32_t pid, int64_t now)
{
	store_relaxed(&s->atime, now); /* statistics */
	store_relaxed(&s->lpid, pid);  /* statistics */
}

void shm_note_detach(struct segment_shm *s, uint32_t pid, int64_t now)
{
	store_relaxed(&s->dtime, now); /* statistics */
	store_relaxed(&s->lpid, pid);  /* statistics */
}

/* By one look at each word: then its size, in huge pages whole ones, is what was sealed. */
static bool is_sealed(const struct segment_shm *s, uint64_t *ret_bytes)
{
	/* relaxed: only damage changes them */
	struct segment_shm seen = {.bytes = load_relaxed(&s->bytes),
				   .id = load_relaxed(&s->id),
				   .key = load_relaxed(&s->key),
				   .flags = load_relaxed(&s->flags),
				   .seal = load_relaxed(&s->seal)};

	*ret_bytes = shm_huge_shift(&seen) ? shm_segment_bytes(&seen) : seen.bytes;
	return seen.seal == shm_seal(&seen);
}

/* With blocks that double the chain stays short. */
static uint32_t block_for(uint32_t total)
{
	if (total == 0)
		return FIRST_RECORDS;
	return total < BLOCK_RECORDS ? BLOCK_RECORDS : total;
}

int shm_attach_begin(struct caller *c, int32_t id, uint32_t wanted, struct shm_attach *ret)
{
	struct attach_block_shm *block;
	struct segment_shm *s;
	struct attach_shm *r;
	uint32_t ix, total;
	bool was_left;
	struct object_shm *o = ids_lookup(c->base, FAMILY_SHM, id, &ix);
	int rc = o ? perm_check(c, o, wanted) : -EINVAL;

	if (rc < 0)
		return rc;
	r = free_record(c, ix, o->gen, &total, &was_left);
	if (!r) {
		rc = make_block(c, block_for(total), &block);
		if (rc != OUTCOME_DONE)
			return rc;
		link_block(c, region_known_proc(c->base, c->proc_ix), block);
		r = block->record;
	}
	rc = rlock_acquire(c, ids_object_lock(FAMILY_SHM, ix));
	if (rc != OUTCOME_DONE)
		return rc;
	if (load_acquire(&o->live) != (uint32_t)id + 1) { /* ID_P1/A */
		rc = -EIDRM;
	} else if (!is_sealed(s = shm_known_segment(c->base, ix), &ret->bytes)) {
		rc = -ENOTRECOVERABLE;
	} else {
		ret->record = r;
		ret->was_left = was_left;
		ret->segment = s;
		ret->id = id;
		ret->byte = s->next_byte++;
		r->segment_ix = ix;
		r->segment_gen = o->gen;
		r->byte = ret->byte;
		r->address = 0;
		fetch_add(&s->attach_seq, 1);            /* SHM_D1/R */
		store_release(&r->state, ATTACH_MAKING); /* SHM_D1/R, SHM_A1/R */
	}
	rlock_release(c, ids_object_lock(FAMILY_SHM, ix));
	return rc;
}

void shm_attach_done(struct caller *c, const struct shm_attach *a, uint64_t address, int64_t now)
{
	a->record->address = address;
	shm_note_attach(a->segment, c->pid, now);
	fetch_add(&a->segment->attach_seq, 1);         /* SHM_D1/R: before the state */
	store_release(&a->record->state, ATTACH_LIVE); /* SHM_A1/R */
}

void shm_left(struct caller *c, struct attach_shm *r)
{
	const struct segment_shm *s = shm_segment_of(c->base, r);
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	const struct attach_shm *other;

	while ((other = shm_next_record(&w)) != NULL)
		if (is_another(r, other))
			break;
	r->address = UINT64_MAX;
	store_release(&r->state, other || !s ? ATTACH_FREE : ATTACH_LEFT); /* SHM_A1/R */
}

void shm_attach_failed(struct caller *c, const struct shm_attach *a)
{
	fetch_add(&a->segment->attach_seq, 1); /* SHM_D1/R: before the state */
	if (a->was_left)
		shm_left(c, a->record);
	else
		store_release(&a->record->state, ATTACH_FREE); /* SHM_A1/R */
}

bool shm_is_attaching(const unsigned char *base, uint32_t proc_ix)
{
	struct shm_walk w = shm_records(base, proc_ix);
	const struct attach_shm *r;

	while ((r = shm_next_record(&w)) != NULL)
		if (load_acquire(&r->state) == ATTACH_MAKING) /* SHM_A1/A */
			return true;
	return false;
}

/* ---- Processes --------------------------------------------------------------------------- */

uint32_t shm_fork_copy(struct caller *c, struct attach_shm *to, uint32_t most, int64_t now)
{
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	const struct attach_shm *r;
	uint32_t k = 0;

	while (k < most && (r = shm_next_record(&w)) != NULL) {
		struct segment_shm *s = shm_segment_of(c->base, r);
		uint32_t state = load_acquire(&r->state); /* SHM_A1/A */

		if (!s || state == ATTACH_MAKING)
			continue;
		if (state == ATTACH_LIVE)
			shm_note_attach(s, c->pid, now);
		to[k++] = *r;
	}
	return k;
}

uint32_t shm_fork_most(struct caller *c)
{
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	uint32_t n = 0;

	while (shm_next_record(&w))
		n++;
	return n;
}

int shm_fork(struct caller *c, uint32_t child_ix, int64_t now)
{
	struct thread_shm *self = region_self(c);
	struct proc_shm *child = region_proc(c->base, child_ix);
	struct attach_block_shm *b;
	uint32_t most = shm_fork_most(c);
	int rc;

	if (!most || !child)
		return OUTCOME_DONE;
	rc = make_block(c, most < FIRST_RECORDS ? FIRST_RECORDS : most, &b);
	if (rc != OUTCOME_DONE)
		return rc;
	(void)shm_fork_copy(c, b->record, most, now);
	/* From the link to the dropped name the child's slot is the victim, as if it were to be
	 * emptied: a death there is the death of a parent that never forked. */
	store_crash(&self->victim_proc_link, child_ix + 1);
	link_block(c, child, b);
	store_crash(&self->victim_proc_link, 0);
	return OUTCOME_DONE;
}

int shm_inherit(struct caller *c, const struct attach_shm *from, uint32_t count)
{
	struct attach_block_shm *b;
	int rc;

	if (!count)
		return OUTCOME_DONE;
	rc = make_block(c, count < FIRST_RECORDS ? FIRST_RECORDS : count, &b);
	if (rc != OUTCOME_DONE)
		return rc;
	for (uint32_t k = 0; k < count; k++)
		b->record[k] = from[k];
	link_block(c, region_known_proc(c->base, c->proc_ix), b);
	return OUTCOME_DONE;
}

int shm_exit_process(struct caller *c, uint32_t proc_ix, uint32_t pid, int64_t now)
{
	struct thread_shm *self = region_self(c);
	struct proc_shm *p = region_known_proc(c->base, proc_ix);
	struct shm_walk w = shm_records(c->base, proc_ix);
	struct attach_shm *r;
	uint32_t ref, capacity;
	int rc;

	while ((r = shm_next_record(&w)) != NULL) {
		struct segment_shm *s = shm_segment_of(c->base, r);

		if (s && pid && load_acquire(&r->state) == ATTACH_LIVE) /* SHM_A1/A */
			shm_note_detach(s, pid, now);
		store_release(&r->state, ATTACH_FREE); /* SHM_A1/R */
	}
	for (uint32_t n = 0;; n++) {
		struct attach_block_shm *b;

		ref = load_acquire(&p->attach_ref); /* SHM_A1/A */
		if (!ref)
			break;
		b = block_at(c->base, ref, &capacity);
		if (!b || n > BLOCKS_BOUND) {
			store_release(&p->attach_ref, 0); /* SHM_A1/R: damage */
			break;
		}
		rc = arena_give(c, NAME_FLY);
		if (rc != OUTCOME_DONE)
			return rc;
		store_crash(&self->name_ref[NAME_FLY], ref);
		store_release(&p->attach_ref, b->next_ref); /* SHM_A1/R */
		rc = arena_give(c, NAME_FLY);
		if (rc != OUTCOME_DONE)
			return rc;
	}
	return OUTCOME_DONE;
}
