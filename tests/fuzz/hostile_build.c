// SPDX-License-Identifier: MIT
/*
 * The region that each round starts from: semaphore sets with undo records and sleepers, queues
 * with messages and sleepers, segments with attaches, made by the calls themselves. See the header.
 */
#include "fuzz/hostile_region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/procs.h"
#include "fuzz/hostile_priv.h"
#include "ipc/check.h"
#include "ipc/msg.h"
#include "ipc/sem.h"

struct hostile hostile;
static struct actor actors_at_first[ACTORS];

static const gid_t no_groups[1];
static const struct creds root = {.groups = no_groups,
				  .cap_ipc_owner = true,
				  .cap_sys_admin = true,
				  .cap_sys_resource = true,
				  .cap_ipc_lock = true};

static void must(int rc, int wanted, const char *what)
{
	if (rc != wanted) {
		fprintf(stderr, "hostile: building: %s is %d\n", what, rc);
		exit(1);
	}
}
#define MUST(call, wanted) must(call, wanted, #call)

/* Every fourth actor is another thread of the process before it. */
static void join(uint32_t i)
{
	uint32_t proc_ix, group, thread_ix;

	if (i % 4 == 3) {
		proc_ix = hostile.actor[i - 1].c.proc_ix;
		thread_ix = hostile.actor[i - 1].c.thread_ix + 1;
	} else {
		MUST(procs_reserve(hostile.base, NULL, NULL, 1, &proc_ix), 0);
		procs_publish(hostile.base, proc_ix, 1000 + i, 1, 1, 0);
		MUST(procs_take_group(hostile.base, proc_ix, &group), 0);
		thread_ix = group * GROUP_SPAN;
	}
	procs_enter_thread(hostile.base, thread_ix, proc_ix, 1000 + i, true);
	hostile.actor[i].c = (struct caller){.base = hostile.base,
					     .thread_ix = thread_ix,
					     .proc_ix = proc_ix,
					     .pid = 1000 + i,
					     .creds = &root,
					     .ops = &hostile_ops};
	if (thread_ix >= hostile.threads)
		hostile.threads = thread_ix + 1;
}

int hostile_semop(uint32_t i, int32_t id, const struct semop_shm *sops, uint32_t n)
{
	struct sem_request rq = {.id = id, .ops = sops, .nsops = n, .now = NOW, .may_queue = true};

	return sem_op(&hostile.actor[i].c, &rq);
}

int hostile_send(uint32_t i, int32_t id, long type, uint64_t bytes, uint32_t flags)
{
	struct msg_send_request rq = {
		.id = id, .user = hostile.user, .bytes = bytes, .flags = flags, .now = NOW};

	memcpy(hostile.user, &type, sizeof(type));
	return msg_send(&hostile.actor[i].c, &rq);
}

int hostile_receive(uint32_t i, int32_t id, int64_t type, uint64_t bytes, uint32_t flags)
{
	struct msg_receive_request rq = {.id = id,
					 .user = hostile.user,
					 .bytes = bytes,
					 .type = type,
					 .flags = flags,
					 .now = NOW};

	return msg_receive(&hostile.actor[i].c, &rq);
}

static int32_t new_set(int32_t key, int nsems)
{
	int32_t id = -1;

	MUST(sem_get(&hostile.actor[0].c, key, nsems, FLAG_CREAT | 0600, NOW, &id), 0);
	return id;
}

static int32_t new_queue(int32_t key)
{
	int32_t id = -1;

	MUST(msg_get(&hostile.actor[0].c, key, FLAG_CREAT | 0600, NOW, &id), 0);
	return id;
}

static void build_sets(void)
{
	struct semop_shm many[12];
	int32_t one = new_set(1, 1), three = new_set(2, 3), forty = new_set(0, 40);

	MUST(hostile_semop(0, one, &(struct semop_shm){0, 5, FLAG_UNDO}, 1), 0);
	MUST(hostile_semop(1, one, &(struct semop_shm){0, 2, FLAG_UNDO}, 1), 0);
	MUST(hostile_semop(1, three, &(struct semop_shm){1, 3, FLAG_UNDO}, 1), 0);
	MUST(hostile_semop(2, three, &(struct semop_shm){0, -1, FLAG_UNDO}, 1), OUTCOME_SLEEP);
	MUST(hostile_semop(3, three, &(struct semop_shm){0, -2, 0}, 1), OUTCOME_SLEEP);
	MUST(hostile_semop(4, three, &(struct semop_shm){1, 0, 0}, 1), OUTCOME_SLEEP);
	for (uint16_t s = 0; s < 12; s++)
		many[s] = (struct semop_shm){s, -1, FLAG_UNDO};
	MUST(hostile_semop(5, forty, many, 12), OUTCOME_SLEEP);
	MUST(hostile_semop(0, forty, &(struct semop_shm){0, 1, FLAG_UNDO}, 1), 0);
	for (uint16_t s = 0; s < 12; s++)
		many[s].op = 0;
	many[0] = (struct semop_shm){0, 0, 0};
	MUST(hostile_semop(6, forty, many, 2), OUTCOME_SLEEP);
	MUST(hostile_semop(7, forty, &(struct semop_shm){3, -1, 0}, 1), OUTCOME_SLEEP);
}

static void build_queues(void)
{
	int32_t mixed = new_queue(3), empty = new_queue(4), full = new_queue(0);
	struct msg_status status;

	for (int k = 0; k < 14; k++)
		MUST(hostile_send(0, mixed, k % 5 + 1, (uint64_t)(k * k * 8), 0), 0);
	MUST(hostile_receive(0, mixed, 3, 8192, 0), 0);
	MUST(hostile_receive(8, empty, 0, 100, 0), OUTCOME_SLEEP);
	MUST(hostile_receive(9, empty, 7, 100, 0), OUTCOME_SLEEP);
	MUST(hostile_receive(10, empty, 7, 10, 0), OUTCOME_SLEEP);
	MUST(hostile_receive(11, empty, -6, 100, 0), OUTCOME_SLEEP);
	MUST(hostile_receive(12, empty, 5, 100, MSGF_EXCEPT), OUTCOME_SLEEP);
	MUST(msg_stat(&hostile.actor[0].c, full, false, false, &status), 0);
	MUST(hostile_send(1, full, 1, 8192, 0), 0);
	MUST(hostile_send(1, full, 2, 8000, 0), 0);
	MUST(hostile_send(13, full, 3, 600, 0), OUTCOME_SLEEP);
	MUST(hostile_send(14, full, 1, 700, 0), OUTCOME_SLEEP);
}

static void build_segments(void)
{
	bool marked = false;
	int32_t id[4];

	for (int k = 0; k < 4; k++) {
		struct shm_request rq = {.key = k + 5,
					 .bytes = 4096u << k,
					 .flags = FLAG_CREAT | 0600,
					 .now = NOW,
					 .admitted = true};

		MUST(shm_get(&hostile.actor[0].c, &rq, &id[k]), 0);
	}
	for (uint32_t i = 0; i < 6; i++) {
		struct shm_attach a;

		MUST(shm_attach_begin(&hostile.actor[i % 3].c, id[i % 3], 4, &a), 0);
		shm_attach_done(&hostile.actor[i % 3].c, &a, MIB(i + 1), NOW);
	}
	MUST(shm_mark_removed(&hostile.actor[0].c, id[1], &marked), 0);
	MUST(shm_attach_begin(&hostile.actor[4].c, id[2], 4, &hostile.actor[4].attach), 0);
	hostile.actor[4].attaching = true;
}

static void keep(uint64_t off, uint64_t bytes)
{
	struct range *r = &hostile.range[hostile.range_count++];

	if (hostile.range_count > RANGES) {
		fprintf(stderr, "hostile: more ranges than expected\n");
		exit(1);
	}
	*r = (struct range){off, bytes, malloc((size_t)bytes)};
	if (!r->content)
		exit(1);
	memcpy(r->content, hostile.base + off, (size_t)bytes);
}

static void keep_all(void)
{
	const struct header_shm *h = region_header(hostile.base);

	keep(HEADER_OFF, sizeof(*h));
	keep(PROCS_OFF, (uint64_t)h->proc_hi * sizeof(struct proc_shm));
	keep(OWNERS_OFF, (uint64_t)h->group_hi * 8);
	keep(GROUPS_OFF, (uint64_t)h->group_hi * PAGE_BYTES);
	for (int f = 0; f < FAMILY_COUNT; f++) {
		uint64_t table = TABLES_OFF + (uint64_t)f * TABLE_BYTES;

		keep(table, BUCKETS_AT_FIRST * 4);
		keep(table + BITMAP_OFF, OBJECT_CAPACITY / 8);
		keep(object_off((enum family)f, 0), (uint64_t)h->table[f].hi * OBJECT_SLOT_BYTES);
	}
	for (int a = 0; a < ARENA_COUNT; a++) {
		uint64_t descs = CHUNKS_OFF + (uint64_t)a * CHUNKS_BYTES;

		keep(descs, (uint64_t)h->arena[a].hi * sizeof(struct chunk_shm));
		for (uint32_t ix = 0; ix < h->arena[a].hi; ix++) {
			const struct chunk_shm *ch =
				region_at(hostile.base, descs + ix * sizeof(*ch));

			if (ch->class_ix)
				keep(ARENAS_OFF + (uint64_t)a * ARENA_BYTES +
					     (uint64_t)ix * CHUNK_BYTES,
				     CHUNK_BYTES);
		}
	}
}

static void *map(void *at, uint64_t bytes, int protection, int flags)
{
	return mmap(at, (size_t)bytes, protection,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static void complain(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "hostile: the region as it was built: %s\n", text);
}

bool hostile_begin(void)
{
	unsigned char *all = map(NULL, GUARD_BYTES * 2 + REGION_BYTES, PROT_NONE, 0);

	if (all == MAP_FAILED ||
	    map(all + GUARD_BYTES, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED) == MAP_FAILED) {
		fprintf(stderr, "hostile: no address space for a region between guards\n");
		return false;
	}
	hostile.base = all + GUARD_BYTES;
	madvise(hostile.base, (size_t)REGION_BYTES, MADV_DONTDUMP);
	MUST(region_format(hostile.base, 0, NOW), 0);
	for (uint32_t i = 0; i < ACTORS; i++)
		join(i);
	build_sets();
	build_queues();
	build_segments();
	if (check_region(hostile.base, complain, NULL) != 0)
		exit(1);
	keep_all();
	memcpy(actors_at_first, hostile.actor, sizeof(actors_at_first));
	return true;
}

void hostile_restore(void)
{
	if (map(hostile.base, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED) == MAP_FAILED)
		abort();
	(void)madvise(hostile.base, (size_t)REGION_BYTES,
		      MADV_NOHUGEPAGE); /* else it costs time only */
	for (uint32_t i = 0; i < hostile.range_count; i++)
		memcpy(hostile.base + hostile.range[i].off, hostile.range[i].content,
		       (size_t)hostile.range[i].bytes);
	memcpy(hostile.actor, actors_at_first, sizeof(actors_at_first));
}
