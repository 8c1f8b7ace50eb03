/* SPDX-License-Identifier: MIT */
/*
 * The region as memory: where things are, what may be touched, and growth. Making and opening
 * the file is client/namespace.h's; here is only what works on a mapping, whoever made it.
 *
 * Every index and reference that was read from the region passes through one of the checked
 * accessors below: a damaged region then gives null and an error, never an access outside.
 */
#ifndef USYSV_CORE_REGION_H
#define USYSV_CORE_REGION_H

#include <errno.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "core/caller.h"
#include "core/layout.h"

static inline struct header_shm *region_header(const unsigned char *base)
{
	return (struct header_shm *)(void *)(uintptr_t)(base + HEADER_OFF);
}

static inline void *region_at(const unsigned char *base, uint64_t off)
{
	return (void *)(uintptr_t)(base + off);
}

static inline uint64_t region_off(const unsigned char *base, const void *p)
{
	return (uint64_t)((const unsigned char *)p - base);
}

/* A published mark. Beyond the capacity it is damaged, and nothing is below it. */
static inline uint32_t region_mark(const uint32_t *hi, uint32_t capacity)
{
	uint32_t mark = load_acquire(hi); /* REGION_P1/A */

	return mark <= capacity ? mark : 0;
}

/* How many slots of each kind exist. */
static inline uint32_t region_proc_count(const unsigned char *base)
{
	return region_mark(&region_header(base)->proc_hi, PROC_CAPACITY);
}

static inline uint32_t region_group_count(const unsigned char *base)
{
	return region_mark(&region_header(base)->group_hi, GROUP_CAPACITY);
}

static inline uint32_t region_object_count(const unsigned char *base, enum family family)
{
	return region_mark(&region_header(base)->table[family].hi, OBJECT_CAPACITY);
}

static inline uint32_t region_chunk_count(const unsigned char *base, enum arena_id arena)
{
	return region_mark(&region_header(base)->arena[arena].hi, CHUNK_CAPACITY);
}

/* The slot of a process that the caller knows to exist: its own, or one that it has just made. */
static inline struct proc_shm *region_known_proc(const unsigned char *base, uint32_t ix)
{
	return (struct proc_shm *)region_at(base, PROCS_OFF + (uint64_t)(ix % PROC_CAPACITY) *
								      sizeof(struct proc_shm));
}

/* Slots. The index must be below the published mark; null otherwise. */
static inline struct proc_shm *region_proc(const unsigned char *base, uint32_t ix)
{
	return ix < region_proc_count(base) ? region_known_proc(base, ix) : NULL;
}

static inline uint64_t group_off(uint32_t group)
{
	return GROUPS_OFF + (uint64_t)group * PAGE_BYTES;
}

/* Offset of a thread's slot; the index is not checked. */
static inline uint64_t thread_off(uint32_t ix)
{
	return group_off(ix / GROUP_SPAN) + (uint64_t)(ix % GROUP_SPAN) * THREAD_BYTES;
}

static inline struct thread_shm *region_thread(const unsigned char *base, uint32_t ix)
{
	if (ix / GROUP_SPAN >= region_group_count(base) || ix % GROUP_SPAN >= GROUP_THREADS)
		return NULL;
	return (struct thread_shm *)region_at(base, thread_off(ix));
}

/*
 * The slot of a thread that the caller knows to exist, whatever the region's mark says by now: its
 * own, one that it has claimed, or one that it has just found.
 */
static inline struct thread_shm *region_known_thread(const unsigned char *base, uint32_t ix)
{
	return (struct thread_shm *)region_at(base, thread_off(ix % THREAD_CAPACITY));
}

/* The calling thread's own slot: its index is this process's knowledge, not the region's. */
static inline struct thread_shm *region_self(const struct caller *c)
{
	return (struct thread_shm *)region_at(c->base, thread_off(c->thread_ix));
}

static inline uint64_t life_off(uint32_t thread_ix)
{
	return group_off(thread_ix / GROUP_SPAN) + LIFE_WORDS_END -
	       (uint64_t)(thread_ix % GROUP_SPAN + 1) * 4;
}

/* Life word of a thread that the caller knows to exist. */
static inline uint32_t *region_known_life(const unsigned char *base, uint32_t ix)
{
	return (uint32_t *)region_at(base, life_off(ix % THREAD_CAPACITY));
}

/* Life word of a thread; null when the index is out of range. */
static inline uint32_t *region_life(const unsigned char *base, uint32_t ix)
{
	return region_thread(base, ix) ? region_known_life(base, ix) : NULL;
}

/* Does a life or watch word name a thread that the kernel has not marked yet? */
static inline bool life_goes_on(uint32_t word)
{
	return (word & ~LIFE_WAITERS) && !(word & LIFE_DIED);
}

/* Asks the kernel to wake who sleeps on the word at the death. The value to sleep on, if
 * life_goes_on(). */
static inline uint32_t life_await(uint32_t *word)
{
	uint32_t seen = load_acquire(word); /* LIFE_P1/A, WATCH_P1/A */

	while (life_goes_on(seen) && !(seen & LIFE_WAITERS))
		if (cas(word, &seen, seen | LIFE_WAITERS)) /* LIFE_P1/R, WATCH_P1/R */
			seen |= LIFE_WAITERS;
	return seen;
}

/* Watch word of a group that the caller knows to exist (card WATCH_P1). */
static inline uint32_t *region_known_watch(const unsigned char *base, uint32_t group)
{
	return (uint32_t *)region_at(base, group_off(group % GROUP_CAPACITY) + WATCH_WORD_OFF);
}

/* Owner word of a group: process index + 1 in the low half, its generation above; 0 free. */
static inline uint64_t *region_group_owner(const unsigned char *base, uint32_t group)
{
	return (uint64_t *)region_at(base, OWNERS_OFF + (uint64_t)group * 8);
}

static inline uint64_t object_off(enum family family, uint32_t ix)
{
	return OBJECTS_OFF + (uint64_t)family * OBJECTS_BYTES + (uint64_t)ix * OBJECT_SLOT_BYTES;
}

/* An object's slot; null when no slot of that index exists yet. */
static inline struct object_shm *region_object(const unsigned char *base, enum family family,
					       uint32_t ix)
{
	if (ix >= region_object_count(base, family))
		return NULL;
	return (struct object_shm *)region_at(base, object_off(family, ix));
}

/* The slot of an object that the caller has just found, whatever the region's mark says by now. */
static inline struct object_shm *region_known_object(const unsigned char *base, enum family family,
						     uint32_t ix)
{
	return (struct object_shm *)region_at(base, object_off(family, ix % OBJECT_CAPACITY));
}

static inline struct set_shm *region_set(const unsigned char *base, uint32_t ix)
{
	return (struct set_shm *)(void *)region_object(base, FAMILY_SEM, ix);
}

/* Does a request with this state word wait, or sleep? */
static inline bool wait_is_queued(uint32_t st)
{
	return WAIT_STATE(st) == WAIT_WAITING || WAIT_STATE(st) == WAIT_ASLEEP;
}

/* What a waiter that is not queued any more has been told; one that nobody has told is damaged. */
static inline int wait_outcome(uint32_t st, int32_t result)
{
	switch (WAIT_STATE(st)) {
	case WAIT_GRANTED:
		return result;
	case WAIT_REMOVED:
		return -EIDRM;
	default:
		return -ENOTRECOVERABLE;
	}
}

/*
 * Does a thread wait with this request for this object? One that waits for another may be woken at
 * any time and write its next request: of this object, perhaps, but not in its lists yet. So the
 * word is read once more: while a request waits, nobody writes what it is of.
 */
static inline bool wait_is_of(const struct thread_shm *t, uint32_t request, enum family family,
			      uint32_t ix, uint32_t gen)
{
	uint32_t st = load_acquire(&t->st); /* SEM_P2/A, MSG_P1/A */

	if (!wait_is_queued(st) || WAIT_REQUEST(st) != request ||
	    load_relaxed(&t->family) != (uint32_t)family || /* ordered by the fence, all three */
	    load_relaxed(&t->object_ix) != ix ||            /* as above */
	    load_relaxed(&t->object_gen) != gen)            /* as above */
		return false;
	fence_acquire();           /* SEM_P2/A, MSG_P1/A */
	st = load_acquire(&t->st); /* SEM_P2/A, MSG_P1/A */
	return wait_is_queued(st) && WAIT_REQUEST(st) == request;
}

/* Over what is true of an object as long as it lives, stored when it is made: where a program's own
 * memory depends on it, it is believed only when the seal fits. */
static inline uint32_t region_seal(const uint64_t *facts, unsigned count)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < count; i++) {
		n = (n ^ facts[i]) * 0x9e3779b97f4a7c15ull;
		n ^= n >> 32;
	}
	return (uint32_t)n;
}

/* The generation of a slot that is the caller's own, claimed by it or just found by it: who else
 * writes the word meanwhile leaves the generation alone, or is noticed by a later CAS. */
static inline uint32_t own_generation(const uint64_t *claim)
{
	return CLAIM_GEN(load_relaxed(claim)); /* relaxed: see above */
}

/*
 * A block of arena memory; null unless [ref, ref + bytes) lies in chunks that exist. Whether the
 * block is allocated is the holder's business.
 */
void *region_block(const unsigned char *base, uint32_t ref, uint64_t bytes);

/*
 * Makes the pages of [off, off + bytes) real, so that later stores cannot meet a full file system:
 * 0 or -ENOMEM (full, or over a memory limit). Needs no descriptor and no path. Idempotent; what
 * is there already is left alone. Not under a lock.
 */
int region_populate(unsigned char *base, uint64_t off, uint64_t bytes);

/* Gives the pages of a range back that nobody reads (general arena only). */
void region_punch(unsigned char *base, uint64_t off, uint64_t bytes);

/*
 * Raises a published mark of fixed-size records so that index `ix` exists: the pages are made
 * real first. 0, -ENOMEM, -ENOSPC beyond capacity, -ENOTRECOVERABLE (the mark is damaged). Any
 * number of threads may do it at once.
 */
int region_grow(unsigned char *base, uint32_t *hi, uint64_t range_off, uint32_t record_bytes,
		uint32_t capacity, uint32_t ix);

/* The limits of a new region: the kernel's. */
extern const struct limits_shm region_default_limits;

/* Writes the header and first pages of a new region into zeroed memory (a fresh mapping). */
int region_format(unsigned char *base, uint32_t flags, int64_t now);

/* Is this mapping of `size` bytes a region that this build can work with? 0, -EINVAL (foreign or
 * truncated), -EPROTO (another format or protocol). *ret_why is a short clause for a message. */
int region_validate(const unsigned char *base, uint64_t size, const char **ret_why);

#endif
