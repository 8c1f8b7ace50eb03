// SPDX-License-Identifier: MIT
/*
 * The checker's part about segments and attach records. What only the kernel knows (is the file
 * there, who has it mapped) is not asked: the checker looks at the region alone.
 */
#include "core/ids.h"
#include "ipc/check_priv.h"
#include "ipc/shm.h"

void check_segment(struct check *k, uint32_t ix)
{
	const struct segment_shm *s = shm_segment(k->base, ix);
	uint32_t live = s ? load_acquire(&s->object.live) : 0; /* ID_P1/A */

	if (!live)
		return;
	check_lock(k, ids_object_lock(FAMILY_SHM, ix), "shm slot", ix);
	if (s->intent)
		check_bad(k, "shm id %u: IPC_SET is not finished", live - 1);
	if ((uint32_t)s->id != live - 1)
		check_bad(k, "shm id %u: its file is named after id %d", live - 1, s->id);
	if (s->bytes == 0)
		check_bad(k, "shm id %u has no size", live - 1);
	if (s->seal != shm_seal(s))
		check_bad(k, "shm id %u: its size, or what names its file, has been changed",
			  live - 1);
	if (s->object.key != 0 && s->object.key != s->key)
		check_bad(k, "shm id %u: key %#x, its file is named after %#x", live - 1,
			  (unsigned)s->object.key, (unsigned)s->key);
	if (load_acquire(&s->made) > 1 || (s->made && !s->inode)) /* SHM_F1/A */
		check_bad(k, "shm id %u: its file is made, but not known", live - 1);
}

/* A record's byte is one that its segment gave out, and no other record of the process has it.
 * rest: the walk behind this one. */
static void check_record(struct check *k, uint32_t proc_ix, const struct attach_shm *r,
			 struct shm_walk rest)
{
	const struct segment_shm *s = shm_segment_of(k->base, r);
	const struct attach_shm *other;

	if (load_acquire(&r->state) > ATTACH_LEFT) /* SHM_A1/A */
		check_bad(k, "process %u: attach record in state %u", proc_ix, r->state);
	if (!s)
		return; /* stale */
	if (r->byte >= s->next_byte)
		check_bad(k,
			  "process %u: attach of shm id %d by byte %llu, which was never given out",
			  proc_ix, s->id, (unsigned long long)r->byte);
	while ((other = shm_next_record(&rest)) != NULL)
		if (other->segment_ix == r->segment_ix && other->segment_gen == r->segment_gen &&
		    other->byte == r->byte)
			check_bad(k, "process %u: shm id %d is attached twice by byte %llu",
				  proc_ix, s->id, (unsigned long long)r->byte);
}

void check_attaches(struct check *k)
{
	uint32_t procs = region_proc_count(k->base);

	for (uint32_t ix = 0; ix < procs; ix++) {
		const struct proc_shm *p = region_proc(k->base, ix);
		struct shm_walk w = shm_records(k->base, ix);
		const struct attach_shm *r;
		uint32_t ref = p ? load_acquire(&p->attach_ref) : 0, steps = 0; /* SHM_A1/A */

		if (ref && load_acquire(&p->state) == PROC_FREE) /* REG_P2/A */
			check_bad(k, "free process slot %u has attach records", ix);
		while (ref && steps++ < OBJECT_CAPACITY) {
			const struct attach_block_shm *b = region_block(k->base, ref, sizeof(*b));

			check_name(k, ref, "process", ix);
			ref = b ? b->next_ref : 0;
		}
		while ((r = shm_next_record(&w)) != NULL)
			check_record(k, ix, r, w);
	}
}
