/* SPDX-License-Identifier: MIT */
/* Segments for the unit tests: calls that wait, as a client does. There are no files. */
#ifndef TESTS_UNIT_SHM_CALLS_H
#define TESTS_UNIT_SHM_CALLS_H

#include "ipc/shm.h"
#include "unit.h"

#define UNTIL_DONE(actor, call)                                                                    \
	do                                                                                         \
		rc = (call);                                                                       \
	while (rc == OUTCOME_BUSY && (engine_wait(actor), true))

static inline int get_segment(struct actor *a, int32_t key, uint64_t bytes, uint32_t flags)
{
	struct shm_request rq = {.key = key,
				 .bytes = bytes,
				 .flags = flags,
				 .tid = a->c.pid,
				 .now = NOW,
				 .admitted = true};
	int32_t id = -1;
	int rc;

	UNTIL_DONE(a, shm_get(&a->c, &rq, &id));
	return rc < 0 ? rc : id;
}

static inline int32_t new_segment(struct actor *a, int32_t key, uint64_t bytes)
{
	int id = get_segment(a, key, bytes, GET_CREAT | 0600);

	EXPECT(id >= 0);
	return id;
}

static inline struct segment_shm *segment_at(struct actor *a, int32_t id)
{
	return shm_segment(a->e->base, (uint32_t)id & (OBJECT_CAPACITY - 1));
}

static inline bool segment_lives(struct actor *a, int32_t id)
{
	return load_acquire(&segment_at(a, id)->object.live) == (uint32_t)id + 1;
}

static inline int begin_attach(struct actor *a, int32_t id, struct shm_attach *ret)
{
	int rc;

	UNTIL_DONE(a, shm_attach_begin(&a->c, id, 6, ret));
	return rc;
}

static inline int attach_at(struct actor *a, int32_t id, uint64_t address)
{
	struct shm_attach at;
	int rc = begin_attach(a, id, &at);

	if (rc == 0)
		shm_attach_done(&a->c, &at, address, NOW);
	return rc;
}

static inline struct attach_shm *record_at(struct actor *a, uint64_t address)
{
	struct shm_walk w = shm_records(a->e->base, a->c.proc_ix);
	struct attach_shm *r;

	while ((r = shm_next_record(&w)) != NULL)
		if (r->address == address)
			break;
	return r;
}

static inline void detach_at(struct actor *a, uint64_t address)
{
	struct attach_shm *r = record_at(a, address);
	struct segment_shm *s;

	EXPECT(r);
	s = shm_segment_of(a->e->base, r);
	if (s) /* or it was destroyed, as if the kernel had said that nobody has it */
		shm_note_detach(s, a->c.pid, NOW);
	shm_left(&a->c, r);
}

static inline uint32_t attached(struct actor *a, int32_t id)
{
	uint32_t hi = region_header(a->e->base)->proc_hi, n = 0;

	for (uint32_t p = 0; p < hi; p++)
		n += shm_count_records(a->e->base, p, (uint32_t)id & (OBJECT_CAPACITY - 1),
				       segment_at(a, id)->object.gen);
	return n;
}

static inline int mark_removed(struct actor *a, int32_t id)
{
	bool marked = false;
	int rc;

	UNTIL_DONE(a, shm_mark_removed(&a->c, id, &marked));
	return rc;
}

/* As if the kernel had said that nobody is attached. */
static inline int destroy(struct actor *a, int32_t id)
{
	uint32_t seq = load_acquire(&segment_at(a, id)->attach_seq);
	int rc;

	UNTIL_DONE(a, shm_destroy(&a->c, id, seq));
	if (rc == 0)
		UNTIL_DONE(a, shm_purge(&a->c, a->c.thread_ix));
	return rc;
}

/* A slot for a child, with the records of its parent. */
static inline uint32_t fork_records(struct actor *a)
{
	uint32_t ix = 0;
	int rc = procs_reserve(a->e->base, NULL, NULL, a->c.pid, &ix);

	EXPECT_INT(rc, 0);
	UNTIL_DONE(a, shm_fork(&a->c, ix, NOW));
	EXPECT_INT(rc, 0);
	return ix;
}

/* Reserved slots whose child has not come to be, as the session empties them. */
static inline void free_reserved(struct actor *a)
{
	uint32_t hi = region_header(a->e->base)->proc_hi;

	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t word = load_acquire(&region_proc(a->e->base, ix)->state);
		int rc;

		if (PROC_STATE(word) != PROC_RESERVED_BARE)
			continue;
		UNTIL_DONE(a, repair_bury_reserved(&a->c, ix));
		procs_unreserve(a->e->base, ix, word);
	}
}

/* Nothing is left: at the end of a test. */
static inline void remove_segments(struct actor *a)
{
	uint32_t hi = region_header(a->e->base)->table[FAMILY_SHM].hi;

	free_reserved(a);
	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t live = load_acquire(&shm_segment(a->e->base, ix)->object.live);

		if (!live)
			continue;
		EXPECT_INT(mark_removed(a, (int32_t)live - 1), 0);
		EXPECT_INT(destroy(a, (int32_t)live - 1), 0);
	}
}

#endif
