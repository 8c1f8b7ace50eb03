// SPDX-License-Identifier: MIT
/*
 * The region as memory: growth, formatting, validation.
 *
 * Why pages are made real by madvise and not by fallocate: the library keeps no descriptor (a
 * program may close all of them at any time) and after chroot or setuid it may not reach the file
 * by name. MADV_POPULATE_WRITE (Linux 5.14) works on the mapping and reports a full file system
 * instead of raising SIGBUS. On older kernels reading one byte of each page through
 * process_vm_readv of ourselves does the same: the read of a hole allocates the page, and the
 * kernel turns the fault into EFAULT.
 *
 *   REGION_P1  high-water marks, and the magic
 *    word      header_shm.proc_hi, group_hi, table[].hi, arena[].hi, magic
 *    states    a mark only grows; magic 0 > REGION_MAGIC, once
 *    writers   any thread, CAS; the magic: the maker of the file, before it has a name
 *    order     R of region_grow pairs with A of every accessor; publishes zeroed, real pages
 *    stale-ok  a reader may see an older, lower mark: the record does not exist for it yet
 *    death     pages real and the mark unmoved: nothing to repair
 *    progress  lock-free, but for the system call that makes pages real
 *    tests     unit/region
 */
#include "core/region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/sys.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

void *region_block(const unsigned char *base, uint32_t ref, uint64_t bytes)
{
	uint64_t off = (uint64_t)ref * REF_UNIT;

	for (int a = 0; a < ARENA_COUNT; a++) {
		uint64_t start = ARENAS_OFF + (uint64_t)a * ARENA_BYTES;
		uint64_t end = region_chunk_count(base, (enum arena_id)a) * (uint64_t)CHUNK_BYTES;

		if (off >= start && off - start <= end && bytes <= end - (off - start))
			return region_at(base, off);
	}
	return NULL;
}

static int populate_by_reading(unsigned char *start, uint64_t bytes)
{
	long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);

	for (uint64_t at = 0; at < bytes; at += PAGE_BYTES) {
		unsigned char byte;
		struct iovec to = {&byte, 1}, from = {start + at, 1};
		long n = sys_call(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1, 0);

		if (n == -EFAULT)
			return -ENOMEM;
		if (n == -ENOSYS || n == -EPERM)
			return 0; /* no way to ask: stores will allocate */
	}
	return 0;
}

int region_populate(unsigned char *base, uint64_t off, uint64_t bytes)
{
	uint64_t first = off & ~(uint64_t)(PAGE_BYTES - 1);
	uint64_t end = (off + bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	long rc;

	if (bytes == 0)
		return 0;
	do
		rc = sys_call(SYS_madvise, (long)(base + first), (long)(end - first),
			      MADV_POPULATE_WRITE, 0, 0, 0);
	while (rc == -EINTR || rc == -EAGAIN);
	if (rc == -EINVAL)
		return populate_by_reading(base + first, end - first);
	return rc < 0 ? -ENOMEM : 0;
}

void region_punch(unsigned char *base, uint64_t off, uint64_t bytes)
{
	/* A failure costs memory only. */
	(void)sys_call(SYS_madvise, (long)(base + off), (long)bytes, MADV_REMOVE, 0, 0, 0);
}

int region_grow(unsigned char *base, uint32_t *hi, uint64_t range_off, uint32_t record_bytes,
		uint32_t capacity, uint32_t ix)
{
	uint32_t seen = load_acquire(hi); /* REGION_P1/A */
	uint32_t wanted;
	uint64_t end;
	int rc;

	if (seen > capacity)
		return -ENOTRECOVERABLE;
	if (ix < seen)
		return 0;
	if (ix >= capacity)
		return -ENOSPC;
	/* Whole pages: all records that fit on the last one become visible together. */
	end = ((uint64_t)(ix + 1) * record_bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	wanted = (uint32_t)(end / record_bytes);
	if (wanted > capacity)
		wanted = capacity;
	rc = region_populate(base, range_off + (uint64_t)seen * record_bytes,
			     (uint64_t)(wanted - seen) * record_bytes);
	if (rc < 0)
		return rc;
	while (seen < wanted && !cas(hi, &seen, wanted)) /* REGION_P1/R */
		;
	return 0;
}

uint64_t layout_format(void)
{
	static const uint64_t facts[] = {
		sizeof(struct header_shm),
		sizeof(struct proc_shm),
		sizeof(struct thread_shm),
		sizeof(struct object_shm),
		sizeof(struct set_shm),
		sizeof(struct sem_shm),
		sizeof(struct semq_shm),
		sizeof(struct segment_shm),
		sizeof(struct attach_shm),
		offsetof(struct segment_shm, made),
		offsetof(struct segment_shm, attach_seq),
		sizeof(struct undo_shm),
		sizeof(struct chunk_shm),
		sizeof(struct pool_shm),
		sizeof(struct arena_shm),
		sizeof(struct table_shm),
		offsetof(struct header_shm, limits),
		offsetof(struct header_shm, table),
		offsetof(struct header_shm, arena),
		offsetof(struct thread_shm, st),
		offsetof(struct thread_shm, sop),
		offsetof(struct thread_shm, msg),
		offsetof(struct thread_shm, set_qbytes),
		offsetof(struct thread_shm, op_sender_link),
		sizeof(struct queue_shm),
		sizeof(struct msg_shm),
		sizeof(struct tree_shm),
		offsetof(struct queue_shm, head_ref),
		offsetof(struct queue_shm, receiver_head_link),
		offsetof(struct queue_shm, cache_ref),
		offsetof(struct msg_shm, tree),
		offsetof(struct thread_shm, ent),
		offsetof(struct set_shm, intent),
		offsetof(struct set_shm, undo_ref),
		offsetof(struct undo_shm, adj),
		offsetof(struct chunk_shm, free_bits),
		PROC_CAPACITY,
		GROUP_CAPACITY,
		GROUP_SPAN,
		GROUP_THREADS,
		OBJECT_CAPACITY,
		OBJECT_SHIFT,
		CHUNK_CAPACITY,
		ARENA_POOLS,
		ARENA_CLASSES,
		PROCS_OFF,
		OWNERS_OFF,
		TABLES_OFF,
		TABLE_BYTES,
		BITMAP_OFF,
		OBJECTS_OFF,
		OBJECTS_BYTES,
		GROUPS_OFF,
		CHUNKS_OFF,
		CHUNKS_BYTES,
		ARENAS_OFF,
		ARENA_BYTES,
		REGION_BYTES,
		LIFE_WORDS_END,
		WATCH_WORD_OFF,
		SEM_GEN_SHIFT,
		SEM_VALUE_SHIFT,
	};
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		for (int shift = 0; shift < 64; shift += 8)
			hash = (hash ^ (facts[i] >> shift & 0xff)) * 0x100000001b3ull;
	return hash;
}

const struct limits_shm region_default_limits = {
	.semmsl = 32000,
	.semmns = 1024000000,
	.semopm = 500,
	.semmni = 32000,
	.msgmax = 8192,
	.msgmnb = 16384,
	.msgmni = 32000,
	.shmmax = UINT64_MAX - (1ull << 24),
	.shmall = UINT64_MAX - (1ull << 24),
	.shmmni = 4096,
};

int region_format(unsigned char *base, uint32_t flags, int64_t now)
{
	struct header_shm *h = region_header(base);
	int rc = region_populate(base, HEADER_OFF, sizeof(*h));

	if (rc == 0)
		rc = region_populate(base, PROCS_OFF, PAGE_BYTES);
	if (rc == 0)
		rc = region_populate(base, OWNERS_OFF, PAGE_BYTES);
	for (int f = 0; rc == 0 && f < FAMILY_COUNT; f++) {
		uint64_t table = TABLES_OFF + (uint64_t)f * TABLE_BYTES;

		rc = region_populate(base, table, BUCKETS_AT_FIRST * 4);
		if (rc == 0)
			rc = region_populate(base, table + BITMAP_OFF, OBJECT_CAPACITY / 8);
	}
	if (rc < 0)
		return rc;
	h->format = layout_format();
	h->protocol = REGION_PROTOCOL;
	h->flags = flags;
	h->size = REGION_BYTES;
	h->created = now;
	h->limits = region_default_limits;
	for (int f = 0; f < FAMILY_COUNT; f++) {
		h->table[f].bucket_mask = BUCKETS_AT_FIRST - 1;
		h->table[f].next_id = -1;
		h->table[f].last_ix = -1;
	}
	/* The file has no name yet; the magic goes in last all the same. */
	store_release(&h->magic, REGION_MAGIC); /* REGION_P1/R */
	return 0;
}

int region_validate(const unsigned char *base, uint64_t size, const char **ret_why)
{
	const struct header_shm *h = region_header(base);

	if (size < sizeof(*h)) {
		*ret_why = "it is truncated";
		return -EINVAL;
	}
	if (load_acquire(&h->magic) != REGION_MAGIC) { /* REGION_P1/A */
		*ret_why = "it is not a region of usysv";
		return -EINVAL;
	}
	if (h->format != layout_format() || h->protocol != REGION_PROTOCOL) {
		*ret_why = "it was made by another version of usysv; end the programs that use it "
			   "and remove it with `usysv rm --force'";
		return -EPROTO;
	}
	if (size != h->size || size != REGION_BYTES) {
		*ret_why = "it is truncated";
		return -EINVAL;
	}
	for (int f = 0; f < FAMILY_COUNT; f++) {
		const struct table_shm *t = &h->table[f];

		if (t->hi > OBJECT_CAPACITY || t->bucket_mask >= BUCKET_CAPACITY ||
		    (t->bucket_mask & (t->bucket_mask + 1)) != 0) {
			*ret_why = "its tables are damaged";
			return -EINVAL;
		}
	}
	if (h->proc_hi > PROC_CAPACITY || h->group_hi > GROUP_CAPACITY) {
		*ret_why = "its registry is damaged";
		return -EINVAL;
	}
	for (int a = 0; a < ARENA_COUNT; a++)
		if (h->arena[a].hi > CHUNK_CAPACITY) {
			*ret_why = "its arena is damaged";
			return -EINVAL;
		}
	return 0;
}
