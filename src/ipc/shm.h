/* SPDX-License-Identifier: MIT */
/*
 * Shared memory: what shmget, shmat, shmdt and shmctl mean, as far as the region goes. The engine
 * side: files, mappings and /proc are the caller's business (client/attach.h); here are the
 * segments, who is attached, and when a removed one may go. Results: OUTCOME_DONE, OUTCOME_BUSY
 * (wait on c->busy, then start over from the beginning), or -errno as the manual pages have it;
 * -ENOTRECOVERABLE for a damaged region; -EINTR when the call comes from a handler that interrupted
 * a call of the same thread on the same segment. The design and its cards are in shm.c and
 * shm_attach.c.
 */
#ifndef USYSV_IPC_SHM_H
#define USYSV_IPC_SHM_H

#include "core/caller.h"
#include "core/layout.h"
#include "core/region.h"

/* Flags of the calls. */
#define SHMF_HUGETLB   04000
#define SHMF_NORESERVE 010000

/* outcomes beside those of caller.h */
#define OUTCOME_ASK                                                                                \
	4 /* shm_get: the call would create; is there room for it? Call again, admitted */
#define OUTCOME_RETRY 5 /* shm_destroy: somebody attaches or has just attached */

static inline struct segment_shm *shm_segment(const unsigned char *base, uint32_t ix)
{
	return (struct segment_shm *)(void *)region_object(base, FAMILY_SHM, ix);
}

/* A segment that the caller has just found, whatever the region's mark says by now. */
static inline struct segment_shm *shm_known_segment(const unsigned char *base, uint32_t ix)
{
	return (struct segment_shm *)(void *)region_known_object(base, FAMILY_SHM, ix);
}

/* Whole pages, in bytes. */
static inline uint64_t shm_mapped_bytes(uint64_t bytes)
{
	return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

/* Of the size of a segment's huge pages; 0: it has none. */
static inline uint32_t shm_huge_shift(const struct segment_shm *s)
{
	return s->flags >> SEGMENT_HUGE_SHIFT & 63;
}

/* What a segment takes in memory when it is attached: whole pages of its kind, in bytes. */
static inline uint64_t shm_segment_bytes(const struct segment_shm *s)
{
	uint32_t shift = shm_huge_shift(s);
	uint64_t rest = (shift ? 1ull << shift : PAGE_BYTES) - 1;

	return (s->bytes + rest) & ~rest;
}

/* Over the size and what names the file: these are believed only when it fits, for an attach may
 * take the place of the program's own mappings (SHM_REMAP). */
static inline uint32_t shm_seal(const struct segment_shm *s)
{
	const uint64_t facts[] = {s->bytes, (uint32_t)s->id, (uint32_t)s->key, s->flags};

	return region_seal(facts, sizeof(facts) / sizeof(facts[0]));
}

struct shm_request {
	int32_t key;
	uint64_t bytes;
	uint32_t flags;
	uint32_t tid;
	int64_t now; /* CLOCK_REALTIME seconds, as time(2) gives them */
	bool admitted;
	uint32_t admitted_at; /* shm_moment() when that was found out; 0: whenever */
	uint32_t huge_shift;  /* of the huge pages' size; 0: small ones */
	bool *ret_created;    /* set when the segment is a new one; may be null */
};
int shm_get(struct caller *c, const struct shm_request *rq, int32_t *ret_id);

/* Changes with every creation: of two that are admitted at the same moment one has to ask again. */
uint32_t shm_moment(const unsigned char *base);

/* A segment as it was at one moment. */
struct shm_status {
	int32_t id;
	uint32_t ix;
	struct segment_shm segment;
};
/* by_index: id is an index (SHM_STAT); any: without permission check (SHM_STAT_ANY). */
int shm_stat(struct caller *c, int32_t id, bool by_index, bool any, struct shm_status *ret);
int shm_set_owner(struct caller *c, int32_t id, uint32_t uid, uint32_t gid, uint32_t mode,
		  int64_t now);
/* SHM_LOCK and SHM_UNLOCK; limit_bytes: RLIMIT_MEMLOCK, UINT64_MAX for none. */
int shm_set_locked(struct caller *c, int32_t id, bool locked, uint64_t limit_bytes);

/* IPC_RMID: from now on nobody finds it by its key, and it goes when nobody is attached.
 * *marked: false at first, the engine's own. */
int shm_mark_removed(struct caller *c, int32_t id, bool *marked);

/* Does it go when nobody is attached? */
bool shm_is_doomed(const unsigned char *base, const struct segment_shm *s);

/*
 * Takes a doomed segment away, of whose file the kernel said that nobody has it mapped, after
 * attach_seq had been `seq`. OUTCOME_RETRY: ask again. The thread then has op PURGE.
 */
int shm_destroy(struct caller *c, int32_t id, uint32_t seq);

/* ---- Attach records ---------------------------------------------------------------------- */

/* An attach in progress. */
struct shm_attach {
	struct attach_shm *record;
	bool was_left; /* the record, of the same segment: if the attach fails it stays so */
	struct segment_shm *segment;
	int32_t id;
	uint64_t bytes;
	uint64_t byte; /* of the file, to be locked for as long as the mapping lives */
};

/*
 * Begins an attach for the calling process: from here to its end the segment counts as attached.
 * wanted: permission bits. The process's attaches are begun and ended one at a time.
 */
int shm_attach_begin(struct caller *c, int32_t id, uint32_t wanted, struct shm_attach *ret);
/* The mapping is there, at this address. Records of what was there before are the caller's care. */
void shm_attach_done(struct caller *c, const struct shm_attach *a, uint64_t address, int64_t now);
void shm_attach_failed(struct caller *c, const struct shm_attach *a);

/*
 * A walk over the records of a process slot:
 *
 *	struct shm_walk w = shm_records(base, proc_ix);
 *
 *	while ((r = shm_next_record(&w)) != NULL)
 *
 * It ends also where the chain is damaged. Another process's may change hands on the way.
 */
struct shm_walk {
	const unsigned char *base;
	const struct proc_shm *p;
	struct attach_block_shm *b;
	uint32_t capacity, at, blocks;
};
struct shm_walk shm_records(const unsigned char *base, uint32_t proc_ix);
struct attach_shm *shm_next_record(struct shm_walk *w);

/* The segment of a record; null when it is gone. */
struct segment_shm *shm_segment_of(const unsigned char *base, const struct attach_shm *r);

/* A segment was attached or detached by the caller; for mappings without a record, too. */
void shm_note_attach(struct segment_shm *s, uint32_t pid, int64_t now);
void shm_note_detach(struct segment_shm *s, uint32_t pid, int64_t now);

/* The record's mapping is gone. The record stays in state LEFT, unless the segment is gone, too, or
 * the process has another of it: Linux's shmdt takes one address away, and what mremap has copied
 * elsewhere stays attached. */
void shm_left(struct caller *c, struct attach_shm *r);

/* Attaches of this segment that a process slot has on record; and may it have others, left? */
uint32_t shm_count_records(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen);
bool shm_has_left(const unsigned char *base, uint32_t proc_ix, uint32_t ix, uint32_t gen);

/* Is an attach of this process slot in progress? */
bool shm_is_attaching(const unsigned char *base, uint32_t proc_ix);

/* The child of a fork has what the caller has: records in its slot, which is reserved for it. */
int shm_fork(struct caller *c, uint32_t child_ix, int64_t now);

/*
 * The same where no slot can be reserved for the child: the parent copies its records, of which
 * there are shm_fork_most() at the most, into memory of its own; the child, when it has a slot,
 * takes over what there is. How many; an outcome or -errno.
 */
uint32_t shm_fork_most(struct caller *c);
uint32_t shm_fork_copy(struct caller *c, struct attach_shm *to, uint32_t most, int64_t now);
int shm_inherit(struct caller *c, const struct attach_shm *from, uint32_t count);

/* A process, or its image, has ended: all its attaches do. pid 0: unknown, no statistics. */
int shm_exit_process(struct caller *c, uint32_t proc_ix, uint32_t pid, int64_t now);

/* ---- For repair and burial --------------------------------------------------------------- */

void shm_repair_segment(struct caller *c, uint32_t dead_ix, uint32_t ix);
void shm_created(struct caller *c, uint32_t thread_ix);
uint64_t shm_total(const unsigned char *base, uint32_t ix);
int shm_bury_thread(struct caller *c, uint32_t dead_ix);
/* A removal's last part, for the thread that has op PURGE (c's own, or a victim). */
int shm_purge(struct caller *c, uint32_t thread_ix);

#endif
