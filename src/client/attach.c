// SPDX-License-Identifier: MIT
/*
 * Attaching and detaching.
 *
 * Every attach is an open file description of its own, with a lock on a byte of its own, that
 * nothing but the mapping keeps: the lock lives as long as any part of the mapping in any process,
 * through fork, partial munmap, mremap and whatever end of a process, and closing descriptors does
 * not touch it. So "nobody is attached" is the kernel's word. How many are attached is counted when
 * somebody asks, in /proc/PID/maps of the processes that have records.
 *
 * A detach looks at what is mapped first, for the program may have unmapped parts of a segment, or
 * put something else in its place, or have moved it. Mostly it has not, which one system call
 * tells.
 *
 * A process begins and ends its attaches one at a time (MUTEX_ATTACHES); nobody waits for a busy
 * segment with the lock held.
 */
#include "client/attach.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include "client/attach_file.h"
#include "client/attach_maps.h"
#include "client/attach_own.h"
#include "client/attach_used.h"
#include "client/call.h"
#include "client/mutex.h"
#include "client/spare.h"
#include "client/wait.h"
#include "core/ids.h"
#include "core/rlock.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

/* The segment whose file a mapping is of. */
static struct segment_shm *segment_of(const unsigned char *base, const struct attach_vma *v)
{
	uint32_t hi = region_object_count(base, FAMILY_SHM);

	for (uint32_t ix = 0; ix < hi; ix++) {
		struct segment_shm *s = shm_known_segment(base, ix);

		if (load_acquire(&s->object.live) &&
		    load_acquire(&s->made) && /* ID_P1/A, SHM_F1/A */
		    attach_is_of(v, s))
			return s;
	}
	return NULL;
}

/* ---- What an attach takes the place of --------------------------------------------------- */

#define REPLACED_MAX 16

struct replaced {
	struct caller *c;
	uint64_t start, end;
	int64_t now;
	uint32_t count;
	struct segment_shm *segment[REPLACED_MAX];
	bool cut[REPLACED_MAX]; /* a part of the mapping will be left */
};

static void note_replaced(const struct replaced *p, struct segment_shm *s, bool cut)
{
	if (cut)
		shm_note_attach(s, p->c->pid, p->now);
	shm_note_detach(s, p->c->pid, p->now);
}

static int find_replaced(void *context)
{
	struct replaced *p = context;
	struct attach_maps maps;
	struct attach_vma v = {.end = p->start};
	int r = attach_maps_open(&maps, 0);

	if (r < 0)
		return r;
	p->count = 0;
	while (attach_maps_next(&maps, v.end, false, &v) && v.start < p->end) {
		struct segment_shm *s = segment_of(p->c->base, &v);
		bool cut = v.start < p->start || v.end > p->end;

		if (s && p->count < REPLACED_MAX) {
			p->segment[p->count] = s;
			p->cut[p->count++] = cut;
		} else if (s) {
			note_replaced(p, s, cut); /* too many to wait for success */
		}
	}
	return attach_maps_close(&maps);
}

/*
 * Has the process still something of the attach, that mremap took elsewhere? Its byte says that it
 * has not, mostly; a child may hold it, too, so mappings are compared with records whose bytes are
 * held. A process that has anything of a segment mapped keeps a record of it, or would not be
 * looked at; one too many does no harm where mappings can be counted.
 */
static bool is_needed(struct caller *c, const struct attach_shm *r, const struct segment_shm *s)
{
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	const struct attach_shm *other;
	uint64_t count = 0;
	int rc;

	if (attach_file_holds(s, r->byte) == 0)
		return false;
	rc = attach_count_mappings(s, 0, &count);
	if (rc < 0)
		return rc != -ENOSYS;
	while (count > 0 && (other = shm_next_record(&w)) != NULL)
		if (other != r && shm_segment_of(c->base, other) == s &&
		    attach_file_holds(s, other->byte) != 0)
			count--;
	return count > 0;
}

/* Records of what was where the new attach is. */
static void forget_replaced(struct caller *c, const struct shm_attach *a, uint64_t address)
{
	uint64_t end = address + shm_mapped_bytes(a->bytes);
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	struct attach_shm *r;

	while ((r = shm_next_record(&w)) != NULL) {
		struct segment_shm *s = shm_segment_of(c->base, r);

		if (r == a->record || load_acquire(&r->state) != ATTACH_LIVE) /* SHM_A1/A */
			continue;
		if (s && (r->address >= end || address >= r->address + shm_segment_bytes(s)))
			continue;
		if (!s || !is_needed(c, r, s))
			shm_left(c, r);
	}
}

/* ---- Attaching --------------------------------------------------------------------------- */

static int something_there(void *context)
{
	const struct attach_mapping *m = context;
	struct attach_maps maps;
	struct attach_vma v;
	bool found;
	int r = attach_maps_open(&maps, 0);

	if (r < 0)
		return r;
	found = attach_maps_next(&maps, m->address, true, &v) && v.start < m->address + m->bytes;
	r = attach_maps_close(&maps);
	return r < 0 ? r : found;
}

/* What Linux makes of a mapping that could not be had. */
static int map_error(int error, struct attach_mapping *m, const struct attach_request *rq)
{
	switch (error) {
	case -EEXIST:
		return -EINVAL;
	case -ENOMEM:
		/* It looks for what is in the way first, and only then at the end of memory. */
		if (rq->fixed && !rq->replace && spare_run(something_there, m, sizeof(*m)) == 1)
			return -EINVAL;
		return -ENOMEM;
	case -EPERM: /* the file system is mounted noexec, or page 0 */
		return rq->execute ? -EACCES : -EPERM;
	case -EMFILE:
	case -ENFILE:
	case -EFBIG:
	case -ENOSPC:
	case -EDQUOT:
		return -ENOMEM;
	default:
		return error;
	}
}

static int map_segment(struct caller *c, const struct shm_attach *a, struct attach_request *rq,
		       int64_t now)
{
	struct replaced p = {.c = c, .start = rq->address, .now = now};
	struct attach_mapping m = {
		.segment = a->segment,
		.byte = a->byte,
		.read_only = rq->read_only,
		.protection = PROT_READ | (rq->read_only ? 0 : PROT_WRITE) |
			      (rq->execute ? PROT_EXEC : 0),
		.address = rq->address,
		.bytes = a->bytes,
	};
	int rc;

	if (rq->fixed) {
		/* at address 0 Linux does not look at what is there */
		m.map_flags = rq->replace || !rq->address ? MAP_FIXED : MAP_FIXED_NOREPLACE;
		if (rq->address && !rq->replace && rq->address + a->bytes < rq->address)
			return -EINVAL;
	}
	if (rq->fixed && rq->replace) {
		p.end = rq->address + shm_mapped_bytes(a->bytes);
		(void)spare_run(find_replaced, &p,
				sizeof(p)); /* then nobody, or not everybody, is told */
	}
	if (!attach_own_reserve())
		return -ENOMEM;
	rc = attach_file_map(&m);
	if (rc < 0)
		return map_error(rc, &m, rq);
	attach_own_add(m.address, shm_mapped_bytes(m.bytes));
	for (uint32_t i = 0; i < p.count; i++)
		note_replaced(&p, p.segment[i], p.cut[i]);
	rq->address = m.address;
	return 0;
}

int attach_segment(struct thread_block *tb, struct attach_request *rq)
{
	struct caller *c = &tb->caller;
	struct shm_attach a = {0};
	bool failed = false;
	int64_t now;
	int rc;

	do {
		call_enter(tb);
		if (!mutex_lock(MUTEX_ATTACHES)) {
			(void)call_again(tb, OUTCOME_DONE);
			return -EINTR;
		}
		rc = shm_attach_begin(c, rq->id, rq->wanted, &a);
		if (rc == OUTCOME_DONE) {
			if (c->owed)
				rlock_settle(c);
			now = time(NULL);
			rc = map_segment(c, &a, rq, now);
			failed = rc < 0;
			if (failed) {
				shm_attach_failed(c, &a);
			} else {
				shm_attach_done(c, &a, rq->address, now);
				forget_replaced(c, &a, rq->address);
			}
		}
		mutex_unlock(MUTEX_ATTACHES);
	} while (call_again(tb, rc));
	if (failed)
		attach_try_destroy(tb, rq->id, false);
	return rc;
}

int attach_make(struct thread_block *tb, int32_t id)
{
	struct caller *c = &tb->caller;
	struct shm_attach a = {0};
	bool removed = false;
	int rc;

	do {
		call_enter(tb);
		if (!mutex_lock(MUTEX_ATTACHES)) {
			(void)call_again(tb, OUTCOME_DONE);
			return -EINTR;
		}
		rc = shm_attach_begin(c, id, 0, &a);
		if (rc == OUTCOME_DONE) {
			if (c->owed)
				rlock_settle(c);
			rc = attach_file_make(a.segment);
			shm_attach_failed(c, &a);
			removed = a.segment->object.mode & SEGMENT_DEST;
		}
		mutex_unlock(MUTEX_ATTACHES);
	} while (call_again(tb, rc));
	if (removed) /* meanwhile: its remover has found it being attached */
		attach_try_destroy(tb, id, false);
	return rc;
}

/* ---- Detaching --------------------------------------------------------------------------- */

struct detaching {
	struct caller *c;
	uint64_t address;
	struct attach_shm *record;   /* that begins there */
	struct segment_shm *segment; /* whose mappings were found; null: none */
	struct attach_maps maps;
};

static void unmap(uint64_t start, uint64_t end)
{
	sys_call(SYS_munmap, (long)start, (long)(end - start), 0, 0, 0, 0);
}

/* Mostly it is what the record says. */
static struct segment_shm *segment_here(const struct detaching *d, const struct attach_vma *v)
{
	struct segment_shm *s = d->record ? shm_segment_of(d->c->base, d->record) : NULL;

	if (s && load_acquire(&s->made) && attach_is_of(v, s)) /* SHM_F1/A */
		return s;
	return segment_of(d->c->base, v);
}

/*
 * Unmaps all that starts, less its offset, at the address: the first that does says of which
 * segment, and the rest lies within its size. What the kernel knows by another name is none of it,
 * whatever the region says of inode numbers.
 */
static int unmap_found(void *context)
{
	struct detaching *d = context;
	uint64_t from = d->address, last = UINT64_MAX;
	struct attach_vma v;
	int r = attach_maps_open(&d->maps, 0);

	if (r < 0)
		return r;
	while (from < last && attach_maps_next(&d->maps, from, false, &v)) {
		struct segment_shm *s;

		from = v.end;
		if (v.start < d->address || v.start - d->address != v.offset)
			continue;
		s = d->segment ? d->segment : segment_here(d, &v);
		if (!s || !attach_is_of(&v, s) || attach_file_is_mapped(s, v.start, v.end) == 0)
			continue;
		if (d->segment && v.end > last) /* grown beyond the segment */
			continue;
		d->segment = s;
		last = d->address + shm_segment_bytes(s);
		unmap(v.start, v.end);
	}
	return attach_maps_close(&d->maps);
}

/* /proc says nothing: all that was mapped there, as this process itself knows it. */
static void unmap_blindly(struct detaching *d)
{
	uint64_t bytes = attach_own_bytes(d->address);

	if (!bytes || !d->record)
		return;
	d->segment = shm_segment_of(d->c->base, d->record);
	if (d->segment)
		unmap(d->address, d->address + bytes);
}

static struct attach_shm *record_at(struct caller *c, uint64_t address)
{
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	struct attach_shm *r;

	while ((r = shm_next_record(&w)) != NULL)
		if (r->address == address && load_acquire(&r->state) == ATTACH_LIVE) /* SHM_A1/A */
			break;
	return r;
}

struct beginning {
	const struct attach_shm *record;
	const struct segment_shm *segment;
};

static int begins_there(void *context)
{
	const struct beginning *b = context;
	struct attach_maps maps;
	struct attach_vma v;
	bool does;
	int r = attach_maps_open(&maps, 0);

	if (r < 0)
		return r;
	does = attach_maps_next(&maps, b->record->address, false, &v) &&
	       v.start - b->record->address == v.offset && attach_is_of(&v, b->segment);
	r = attach_maps_close(&maps);
	return r < 0 ? r : does;
}

/* The record of what was unmapped, where it had been moved: one of the segment whose own address
 * holds nothing any more. */
static struct attach_shm *record_of_moved(struct caller *c, const struct segment_shm *s)
{
	struct shm_walk w = shm_records(c->base, c->proc_ix);
	struct attach_shm *r;

	while ((r = shm_next_record(&w)) != NULL) {
		struct beginning b = {r, s};

		if (load_acquire(&r->state) == ATTACH_LIVE && /* SHM_A1/A */
		    shm_segment_of(c->base, r) == s && spare_run(begins_there, &b, sizeof(b)) == 0)
			break;
	}
	return r;
}

/* The attach is as it was made: it goes without a look around. */
static bool unmap_whole(struct detaching *d)
{
	struct segment_shm *s = d->record ? shm_segment_of(d->c->base, d->record) : NULL;
	uint64_t bytes = s ? shm_segment_bytes(s) : 0; /* once: it lies in shared memory */

	if (!s || attach_file_is_mapped(s, d->address, d->address + bytes) != 1)
		return false;
	d->segment = s;
	unmap(d->address, d->address + bytes);
	return true;
}

int attach_detach(struct thread_block *tb, uint64_t address)
{
	struct caller *c = &tb->caller;
	struct detaching d = {.c = c, .address = address};
	struct attach_shm *r;
	int32_t doomed = -1;
	bool is_whole;
	int rc = 0;

	if (address % PAGE_BYTES)
		return -EINVAL;
	call_enter(tb);
	if (!mutex_lock(MUTEX_ATTACHES)) {
		(void)call_again(tb, OUTCOME_DONE);
		return -EINTR;
	}
	r = d.record = record_at(c, address);
	is_whole = unmap_whole(&d);
	if (!is_whole)
		rc = spare_run(unmap_found, &d, sizeof(d));
	if (rc == -ENOSYS) {
		unmap_blindly(&d);
		rc = 0;
	}
	if (d.segment && rc == 0 && !is_whole && (!r || shm_segment_of(c->base, r) != d.segment))
		r = record_of_moved(c, d.segment);
	if (d.segment && rc == 0) {
		if (r)
			attach_own_drop(r->address);
		shm_note_detach(d.segment, c->pid, time(NULL));
		if (shm_is_doomed(c->base, d.segment))
			doomed = d.segment->id;
		if (is_whole || (r && !is_needed(c, r, d.segment)))
			shm_left(c, r);
	}
	/* With nothing found its record stays: it may have been moved. */
	mutex_unlock(MUTEX_ATTACHES);
	(void)call_again(tb, OUTCOME_DONE);
	if (doomed >= 0)
		attach_try_destroy(tb, doomed, true);
	if (rc < 0) /* what is left of it goes when the program tries again */
		return -ENOMEM;
	return d.segment ? 0 : -EINVAL;
}
