// SPDX-License-Identifier: MIT
/*
 * The checker names what is wrong: in the region of hostile_build.c one word after the other is
 * changed, each of another structure, and what the checker then says must tell of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ids.h"
#include "core/region.h"
#include "fuzz/hostile_priv.h"
#include "fuzz/hostile_region.h"
#include "ipc/check.h"

#define LINES_MOST 200

static char lines[LINES_MOST][200];
static unsigned line_count;

static void keep(void *context, const char *text)
{
	(void)context;
	if (line_count < LINES_MOST)
		snprintf(lines[line_count++], sizeof(lines[0]), "%s", text);
}

/* Where the words are: in the slots of the first objects, or what these refer to. */
static struct set_shm *set_of(uint32_t ix)
{
	return region_set(hostile.base, ix);
}

static struct queue_shm *queue_of(uint32_t ix)
{
	return (struct queue_shm *)(void *)region_object(hostile.base, FAMILY_MSG, ix);
}

static struct segment_shm *segment_of(uint32_t ix)
{
	return (struct segment_shm *)(void *)region_object(hostile.base, FAMILY_SHM, ix);
}

static struct thread_shm *thread_of(uint32_t actor)
{
	return region_self(&hostile.actor[actor].c);
}

static struct proc_shm *proc_of(uint32_t actor)
{
	return region_known_proc(hostile.base, hostile.actor[actor].c.proc_ix);
}

static void *by_ref(uint32_t ref)
{
	return region_at(hostile.base, (uint64_t)ref * REF_UNIT);
}

static struct header_shm *header(void)
{
	return region_header(hostile.base);
}

/* Actors whose requests hostile_build.c queued. */
#define SLEEPS_IN_SET   3
#define SLEEPS_IN_QUEUE 9
#define DAMAGES(X)                                                                                 \
	X("header", header()->magic ^= 1, "header:")                                               \
	X("mark", header()->proc_hi = ~0u, "header:")                                              \
	X("group's owner", *region_group_owner(hostile.base, 0) = 0, "belongs to nobody")          \
	X("thread's process", thread_of(2)->proc_ix = 60000, "process slot 60000 does not exist")  \
	X("hold record", thread_of(2)->hold = 7, "hold record of 7")                               \
	X("name of a block", thread_of(2)->name_ref[NAME_FLY] = 77, "names block 0x4d")            \
	X("process slot", proc_of(2)->state = PROC_FREE, "")                                       \
	X("table's lock", header()->table[FAMILY_MSG].lock = 0xfff00, "lock of table 0")           \
	X("object's lock", set_of(0)->object.lock = thread_of(2) ? 1 : 0, "lock of sem slot 0")    \
	X("count of objects", header()->table[FAMILY_SEM].in_use++, "objects, counted as")         \
	X("total", header()->table[FAMILY_SEM].total++, "semaphores or pages, counted as")         \
	X("bitmap",                                                                                \
	  *(uint64_t *)region_at(hostile.base,                                                     \
				 TABLES_OFF + FAMILY_SHM * TABLE_BYTES + BITMAP_OFF) ^= 1,         \
	  "the bitmap says otherwise")                                                             \
	X("id", queue_of(0)->object.live += 1, "msg index 0 has id")                               \
	X("generation", queue_of(0)->object.gen = 0, "has generation")                             \
	X("key", set_of(0)->object.key ^= 0x1000, "not found by its key")                          \
	X("set's memory", set_of(0)->words_ref = ~0u, "its memory cannot be found")                \
	X("set's shadow", set_of(1)->side_ref = 1, "its memory cannot be found")                   \
	X("number of semaphores", set_of(0)->nsems -= 1, "number of its semaphores")               \
	X("intent", set_of(1)->intent = INTENT_GRANT, "is not finished")                           \
	X("semaphore", *(uint64_t *)by_ref(set_of(0)->words_ref) ^= 1ull << SEM_GEN_SHIFT,         \
	  "instead of")                                                                            \
	X("held semaphore", *(uint64_t *)by_ref(set_of(0)->words_ref) |= SEM_HELD,                 \
	  "held by nobody")                                                                        \
	X("list of waiters", thread_of(SLEEPS_IN_SET)->next_link = 0xffff, "list of waiters")      \
	X("waiters' count", set_of(1)->waiting++, "requests wait")                                 \
	X("waiter", thread_of(SLEEPS_IN_SET)->object_gen++, "sleeps on a former set")              \
	X("undo record", ((struct undo_shm *)by_ref(set_of(0)->undo_ref))->set_ix = 3,             \
	  "undo record")                                                                           \
	X("undo chain", set_of(0)->undo_ref = 0xfffffff, "undo record")                            \
	X("chain of messages", queue_of(0)->head_ref = 5, "chain of messages is broken")           \
	X("message", ((struct msg_shm *)by_ref(queue_of(0)->head_ref))->bytes = ~0u,               \
	  "longer than its block")                                                                 \
	X("type", ((struct msg_shm *)by_ref(queue_of(0)->head_ref))->tree.key = -1, "has type -1") \
	X("index of messages", queue_of(0)->root_ref = 0, "the index finds")                       \
	X("count of messages", queue_of(0)->count++, "counted as")                                 \
	X("bytes of messages", queue_of(0)->bytes--, "counted as")                                 \
	X("sleeper", thread_of(SLEEPS_IN_QUEUE)->next_link = 0xffff, "list of sleepers")           \
	X("index of sleepers", queue_of(1)->other_head_link = 0, "the index chooses")              \
	X("segment's size", segment_of(0)->bytes = 0, "has no size")                               \
	X("segment's seal", segment_of(0)->bytes += 1, "has been changed")                         \
	X("segment's file", segment_of(0)->id++, "its file is named after")                        \
	X("attach record",                                                                         \
	  ((struct attach_block_shm *)by_ref(proc_of(0)->attach_ref))->record[0].state = 9,        \
	  "attach record in state 9")                                                              \
	X("attach byte",                                                                           \
	  ((struct attach_block_shm *)by_ref(proc_of(0)->attach_ref))->record[0].byte = 1 << 20,   \
	  "never given out")                                                                       \
	X("free blocks",                                                                           \
	  ((struct chunk_shm *)region_at(hostile.base, CHUNKS_OFF))->free_bits[0] ^= 1, "")        \
	X("arena's lock", header()->arena[0].pool[0].lock = 0xfff00, "lock of pool 0")             \
	X("undo list's lock", proc_of(2)->undo_lock = 0xfff00, "lock of process slot")

static int bad;

static void look(const char *what, const char *wanted)
{
	int n = check_region(hostile.base, keep, NULL);

	for (unsigned i = 0; i < line_count; i++)
		if (strstr(lines[i], wanted))
			return;
	bad++;
	printf("%s: %d findings, none says '%s'\n", what, n, wanted);
	for (unsigned i = 0; i < line_count && i < 5; i++)
		printf("    %s\n", lines[i]);
}

int main(void)
{
	int count = 0;

	if (!hostile_begin())
		return 77;
#define ONE(what, damage, wanted)                                                                  \
	hostile_restore();                                                                         \
	line_count = 0;                                                                            \
	(void)(damage);                                                                            \
	look(what, wanted);                                                                        \
	count++;
	DAMAGES(ONE)
	printf("%d damages, %d not named\n", count, bad);
	return bad != 0;
}
