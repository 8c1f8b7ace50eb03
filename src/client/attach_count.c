// SPDX-License-Identifier: MIT
/*
 * Counting mappings; see the header. Only this process's memory is written to: who dies in the
 * middle leaves nothing.
 */
#include "client/attach_count.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/ident.h"
#include "base/sys.h"
#include "client/attach_file.h"
#include "client/session.h"
#include "client/spare.h"
#include "ipc/shm.h"

bool attach_is_of(const struct attach_vma *v, const struct segment_shm *s)
{
	return v->inode == s->inode && v->dev == attach_file_device(s);
}

/* ---- One process ------------------------------------------------------------------------- */

struct counting {
	const struct segment_shm *segment; /* null: all of the census */
	const struct attach_census *census;
	const unsigned char *base;
	pid_t pid;
	uint64_t count;
};

static uint32_t slot_of(const struct attach_census *k, uint64_t inode)
{
	return (uint32_t)(inode * 0x9e3779b97f4a7c15u >> 32) & k->mask;
}

/* A file of another device may have the same inode. */
static bool note_in_census(const struct counting *k, const struct attach_vma *v)
{
	const struct attach_census *s = k->census;

	for (uint32_t at = slot_of(s, v->inode); s->by_inode[at]; at = (at + 1) & s->mask) {
		uint32_t ix = s->by_inode[at] - 1;

		if (s->inode[ix] == v->inode && attach_is_of(v, shm_known_segment(k->base, ix))) {
			s->of_one[ix]++;
			return true;
		}
	}
	return false;
}

static int count_shown(struct counting *k, pid_t pid)
{
	struct attach_maps maps;
	struct attach_vma v = {0};
	int r = attach_maps_open(&maps, pid);

	if (r < 0)
		return r;
	k->count = 0;
	for (uint32_t ix = 0; !k->segment && ix < k->census->segments; ix++)
		k->census->of_one[ix] = 0;
	while (attach_maps_next(&maps, v.end, false, &v))
		k->count += k->segment ? attach_is_of(&v, k->segment) : note_in_census(k, &v);
	return attach_maps_close(&maps);
}

static int count_mappings(void *context)
{
	struct counting *k = context;
	pid_t tid;
	int r = count_shown(k, k->pid);

	if (r < 0 || k->count > 0 || k->pid == 0)
		return r;
	/* Of a process whose first thread has ended nothing is shown but by another thread. */
	r = ident_try_running(k->pid, &tid);
	return r < 0 || tid == 0 || tid == k->pid ? r : count_shown(k, tid);
}

int attach_count_mappings(const struct segment_shm *s, pid_t pid, uint64_t *ret_count)
{
	struct counting k = {.segment = s, .pid = pid};
	int r = spare_run(count_mappings, &k, sizeof(k));

	if (r == 0)
		*ret_count = k.count;
	return r;
}

bool attach_can_ask(struct caller *c, uint32_t proc_ix, pid_t *ret_pid)
{
	const struct proc_shm *p = region_known_proc(c->base, proc_ix);

	*ret_pid = 0;
	if (proc_ix == c->proc_ix)
		return true;
	if (PROC_STATE(load_acquire(&p->state)) != PROC_LIVE) /* REG_P2/A */
		return false;
	*ret_pid = (pid_t)session_visible_pid(proc_ix);
	return *ret_pid != 0;
}

/* ---- All --------------------------------------------------------------------------------- */

static bool make_tables(struct attach_census *k, uint32_t segments, uint32_t processes)
{
	size_t places = 16, bytes;
	long memory;

	while (places < 2 * (size_t)segments)
		places *= 2;
	bytes = segments * (sizeof(*k->inode) + sizeof(*k->sum) + sizeof(*k->of_one)) +
		places * sizeof(*k->by_inode) + processes;
	memory = sys_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory < 0 && memory > -4096)
		return false;
	k->bytes = bytes;
	k->inode = (uint64_t *)memory; /* the widest first */
	k->by_inode = (uint32_t *)(k->inode + segments);
	k->sum = k->by_inode + places;
	k->of_one = k->sum + segments;
	k->asked = (unsigned char *)(k->of_one + segments);
	k->mask = (uint32_t)places - 1;
	k->segments = segments;
	k->processes = processes;
	return true;
}

static void enter_segments(struct caller *c, struct attach_census *k)
{
	for (uint32_t ix = 0; ix < k->segments; ix++) {
		const struct segment_shm *s = shm_known_segment(c->base, ix);
		uint32_t at;

		if (!load_acquire(&s->object.live)) /* ID_P1/A */
			continue;
		k->inode[ix] = load_relaxed(&s->inode); /* asked for again by who counts */
		if (!k->inode[ix])
			continue; /* nobody ever had it attached */
		at = slot_of(k, k->inode[ix]);
		while (k->by_inode[at])
			at = (at + 1) & k->mask;
		k->by_inode[at] = ix + 1;
	}
}

void attach_census_take(struct caller *c, struct attach_census *k)
{
	uint32_t segments = region_object_count(c->base, FAMILY_SHM);

	*k = (struct attach_census){0};
	if (!segments || !make_tables(k, segments, region_proc_count(c->base)))
		return;
	enter_segments(c, k);
	for (uint32_t p = 0; p < k->processes; p++) {
		struct counting one = {.census = k, .base = c->base};
		struct shm_walk w = shm_records(c->base, p);

		if (!shm_next_record(&w) || !attach_can_ask(c, p, &one.pid) ||
		    spare_run(count_mappings, &one, sizeof(one)) < 0)
			continue;
		k->asked[p] = 1;
		for (uint32_t ix = 0; one.count && ix < segments; ix++)
			k->sum[ix] += k->of_one[ix];
	}
}

void attach_census_end(struct attach_census *k)
{
	if (k->bytes)
		sys_call(SYS_munmap, (long)k->inode, (long)k->bytes, 0, 0, 0, 0);
}

bool attach_census_of(const struct attach_census *k, uint32_t ix, const struct segment_shm *s,
		      uint64_t *ret_count)
{
	if (ix >= k->segments || k->inode[ix] != s->inode)
		return false;
	*ret_count = k->sum[ix];
	return true;
}
