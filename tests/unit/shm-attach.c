// SPDX-License-Identifier: MIT
/* Segments and attach records: creation, keys of removed ones, counts, fork, ends, destruction. */
#include "shm-calls.h"

static void test_creation(void **state)
{
	struct actor *a = engine_join(*state);
	struct table_shm *t = &region_header(a->e->base)->table[FAMILY_SHM];
	struct shm_request rq = {.bytes = 10, .flags = 0600, .now = NOW};
	int32_t id, other;

	EXPECT_INT(get_segment(a, 0, 0, 0600), -EINVAL);
	EXPECT_INT(get_segment(a, 5, 10, 0600), -ENOENT);
	EXPECT_INT(get_segment(a, 0, region_header(a->e->base)->limits.shmmax + 1, 0600), -EINVAL);
	EXPECT_INT(shm_get(&a->c, &rq, &id), OUTCOME_ASK);
	EXPECT_INT(t->in_use, 0);
	id = new_segment(a, 5, PAGE_BYTES + 1);
	EXPECT_INT(t->total, 2);
	EXPECT_INT(get_segment(a, 5, PAGE_BYTES, 0), id);
	EXPECT_INT(get_segment(a, 5, PAGE_BYTES + 2, 0), -EINVAL);
	EXPECT_INT(get_segment(a, 5, 1, GET_CREAT | GET_EXCL), -EEXIST);
	other = new_segment(a, 0, 1);
	EXPECT(other != id);
	EXPECT_INT(t->total, 3);
	remove_segments(a);
	EXPECT_INT(t->total, 0);
	EXPECT_INT(t->in_use, 0);
}

/* Two are admitted at the same moment; there is room for one. */
static void test_admission_is_of_a_moment(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	struct shm_request rq = {.bytes = 10, .flags = GET_CREAT | 0600, .admitted = true};
	int32_t id;

	rq.admitted_at = shm_moment(a->e->base);
	EXPECT_INT(shm_get(&a->c, &rq, &id), OUTCOME_DONE);
	EXPECT_INT(shm_get(&b->c, &rq, &id), OUTCOME_ASK);
	EXPECT_INT(region_header(a->e->base)->table[FAMILY_SHM].in_use, 1);
	rq.admitted_at = shm_moment(a->e->base);
	EXPECT_INT(shm_get(&b->c, &rq, &id), OUTCOME_DONE);
	remove_segments(a);
}

static struct {
	uint32_t count;
	int32_t key, id;
} dropped;

static void count_dropped(struct caller *c, const struct segment_shm *s)
{
	(void)c;
	dropped.count++;
	dropped.key = s->key;
	dropped.id = s->id;
}

/* Killed between the removal and the end of the file: the file goes with its burial. */
static void test_file_of_a_dead_remover(void **state)
{
	struct actor *d = engine_join(*state), *a = engine_join(*state);
	struct caller_ops ops = *a->c.ops;
	int32_t id = new_segment(d, 9, 1), none = new_segment(d, 0, 1);

	ops.drop_segment = count_dropped;
	a->c.ops = &ops;
	dropped.count = 0;
	EXPECT_INT(attach_at(d, id, PAGE_BYTES), 0);
	detach_at(d, PAGE_BYTES);
	EXPECT_INT(mark_removed(d, id), 0);
	EXPECT_INT(shm_destroy(&d->c, id, load_acquire(&segment_at(d, id)->attach_seq)),
		   OUTCOME_DONE);
	EXPECT(!segment_lives(d, id));
	engine_kill_thread(d);
	EXPECT_INT(repair_bury_thread(&a->c, d->c.thread_ix, false), BURIAL_DONE);
	EXPECT_INT(dropped.count, 1);
	EXPECT_INT(dropped.key, 9);
	EXPECT_INT(dropped.id, id);
	/* what nobody ever attached has none */
	EXPECT_INT(mark_removed(a, none), 0);
	EXPECT_INT(destroy(a, none), 0);
	EXPECT_INT(dropped.count, 1);
	a->c.ops = d->c.ops;
}

static void test_limits(void **state)
{
	struct actor *a = engine_join(*state);
	struct limits_shm *l = &region_header(a->e->base)->limits;

	l->shmmni = 2;
	l->shmall = 5;
	(void)new_segment(a, 0, 3 * PAGE_BYTES);
	EXPECT_INT(get_segment(a, 0, 2 * PAGE_BYTES + 1, 0600), -ENOSPC);
	(void)new_segment(a, 0, 1);
	EXPECT_INT(get_segment(a, 0, 1, 0600), -ENOSPC);
	l->shmmax = 100;
	EXPECT_INT(get_segment(a, 0, 101, 0600), -EINVAL);
	remove_segments(a);
}

static void test_key_of_a_removed_segment(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_segment(a, 5, 1), second;

	EXPECT_INT(attach_at(a, id, 0x10000), 0);
	EXPECT_INT(mark_removed(a, id), 0);
	EXPECT_INT(segment_at(a, id)->object.key, 0);
	EXPECT_INT(get_segment(a, 5, 1, 0), -ENOENT);
	second = new_segment(a, 5, 1);
	EXPECT(second != id);
	EXPECT_INT(get_segment(a, 5, 1, 0), second);
	EXPECT_INT(mark_removed(a, id), 0);
	EXPECT_INT(get_segment(a, 5, 1, 0), second);
	EXPECT_INT(engine_check(a->e), 0);
	detach_at(a, 0x10000);
	remove_segments(a);
}

/* Its remover died between the mark and the key. */
static void test_key_that_a_dead_remover_left(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_segment(a, 5, 1), second;

	segment_at(a, id)->object.mode |= SEGMENT_DEST;
	EXPECT_INT(get_segment(a, 5, 1, 0), -ENOENT);
	EXPECT_INT(segment_at(a, id)->object.key, 0);
	segment_at(a, id)->object.mode &= ~SEGMENT_DEST;
	EXPECT_INT(mark_removed(a, id), 0);
	second = new_segment(a, 5, 1);
	EXPECT_INT(get_segment(a, 5, 1, 0), second);
	remove_segments(a);
}

static void test_counts(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_segment(a, 0, 1), other = new_segment(a, 0, 1);

	for (uint64_t i = 0; i < 300; i++)
		EXPECT_INT(attach_at(a, id, (i + 1) * PAGE_BYTES), 0);
	EXPECT_INT(attach_at(b, id, PAGE_BYTES), 0);
	EXPECT_INT(attach_at(b, other, 2 * PAGE_BYTES), 0);
	EXPECT_INT(attached(a, id), 301);
	EXPECT_INT(attached(a, other), 1);
	EXPECT_INT(engine_check(a->e), 0);
	for (uint64_t i = 0; i < 300; i += 2)
		detach_at(a, (i + 1) * PAGE_BYTES);
	EXPECT_INT(attached(a, id), 151);
	/* what is free is used again */
	for (uint64_t i = 0; i < 150; i++)
		EXPECT_INT(attach_at(a, other, (i + 1000) * PAGE_BYTES), 0);
	EXPECT_INT(attached(a, other), 151);
	EXPECT_INT(segment_at(a, id)->next_byte, 301);
	EXPECT_INT(engine_check(a->e), 0);
	EXPECT_INT(engine_exit(a), 0);
	EXPECT_INT(attached(b, id), 1);
	EXPECT_INT(segment_at(b, id)->lpid, a->c.pid);
	engine_kill(a);
	remove_segments(b);
}

static void test_a_mapping_in_the_place_of_another(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_segment(a, 0, 1);

	EXPECT_INT(attach_at(a, id, PAGE_BYTES), 0);
	EXPECT_INT(attach_at(a, id, PAGE_BYTES), 0);
	/* what was there before may have been moved: its record is the client's care */
	EXPECT_INT(attached(a, id), 2);
	detach_at(a, PAGE_BYTES);
	EXPECT_INT(attached(a, id), 1);
	detach_at(a, PAGE_BYTES);
	EXPECT_INT(attached(a, id), 0);
	remove_segments(a);
}

static void test_times_and_pids(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_segment(a, 0, 1);
	struct segment_shm *s = segment_at(a, id);
	struct shm_attach at;

	EXPECT_INT(begin_attach(b, id, &at), 0);
	EXPECT_INT(attached(a, id), 1);
	shm_attach_failed(&b->c, &at);
	EXPECT_INT(attached(a, id), 0);
	EXPECT_INT(s->atime, 0);
	EXPECT_INT(s->lpid, 0);
	EXPECT_INT(attach_at(b, id, PAGE_BYTES), 0);
	EXPECT_INT(s->atime, NOW);
	EXPECT_INT(s->dtime, 0);
	EXPECT_INT(s->lpid, b->c.pid);
	EXPECT_INT(s->cpid, a->c.pid);
	engine_kill(b);
	engine_bury(a, b);
	EXPECT_INT(attached(a, id), 0);
	EXPECT_INT(s->dtime, NOW);
	EXPECT_INT(s->lpid, b->c.pid);
	remove_segments(a);
}

static void test_fork(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_segment(a, 0, 1);
	uint32_t child;

	EXPECT_INT(attach_at(a, id, PAGE_BYTES), 0);
	for (uint64_t i = 2; i < 20; i++)
		EXPECT_INT(attach_at(a, id, i * PAGE_BYTES), 0);
	child = fork_records(a);
	EXPECT_INT(attached(a, id), 38);
	EXPECT_INT(shm_count_records(a->e->base, child, 0, segment_at(a, id)->object.gen), 19);
	EXPECT_INT(engine_check(a->e), 0);
	/* the child comes to be, and ends */
	procs_publish(a->e->base, child, 4711, 1, 0, 0);
	EXPECT_INT(attached(a, id), 38);
	a->e->shared->proc_dead[child] = 1;
	EXPECT_INT(repair_bury_process(&a->c, child, NOW), OUTCOME_DONE);
	EXPECT_INT(attached(a, id), 19);
	EXPECT_INT(segment_at(a, id)->lpid, 4711);
	EXPECT_INT(region_proc(a->e->base, child)->state, PROC_FREE);
	/* and one that does not */
	a->e->shared->proc_dead[child] = 0;
	child = fork_records(a);
	EXPECT_INT(attached(a, id), 38);
	free_reserved(a);
	EXPECT_INT(attached(a, id), 19);
	for (uint64_t i = 1; i < 20; i++)
		detach_at(a, i * PAGE_BYTES);
	remove_segments(a);
}

/* A block that was given back is the next one's to take, from the same pool, and a sweep leaves it
 * to him. */
static void stays_with_taker(struct actor *taker, uint32_t pool_of, struct actor *sweeper,
			     uint32_t ref)
{
	unsigned char *base = taker->c.base;
	uint32_t own = taker->c.proc_ix;

	taker->c.proc_ix = pool_of;
	EXPECT_INT(arena_take(&taker->c, ARENA_GENERAL, NAME_SIDE, arena_capacity(base, ref)),
		   OUTCOME_DONE);
	EXPECT_INT(actor_slot(taker)->name_ref[NAME_SIDE], ref);
	engine_sweep(sweeper);
	EXPECT_INT(engine_check(sweeper->e), 0);
	EXPECT_INT(arena_give(&taker->c, NAME_SIDE), OUTCOME_DONE);
	taker->c.proc_ix = own;
}

/* Its slot is emptied before anybody has buried the parent, and what was the slot's is somebody
 * else's by then. */
static void test_parent_dead_with_the_records_in_hand(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b;
	struct engine *e = *state;
	int32_t id = new_segment(g, 0, 1);
	uint32_t child, ref;

	EXPECT_INT(attach_at(a, id, PAGE_BYTES), 0);
	child = fork_records(a);
	ref = region_proc(e->base, child)->attach_ref;
	actor_slot(a)->victim_proc_link = child + 1; /* linked, its name not dropped yet */
	actor_slot(a)->name_ref[NAME_FLY] = ref;
	EXPECT_INT(repair_bury_reserved(&g->c, child), OUTCOME_RETRY); /* its parent lives */
	EXPECT_INT(region_proc(e->base, child)->attach_ref, ref);
	engine_kill(a);
	free_reserved(g);
	EXPECT_INT(region_proc(e->base, child)->state, PROC_FREE);
	b = engine_join(e);
	stays_with_taker(b, a->c.proc_ix, g, ref);
	remove_segments(g);
}

/* A thread that was killed by its process's exec, with the same in hand. */
static void test_image_gone_with_the_records_in_hand(void **state)
{
	struct actor *g = engine_join(*state), *a = engine_join(*state), *b = engine_join(*state);
	struct engine *e = *state;
	int32_t id = new_segment(g, 0, 1);
	struct actor next;
	uint32_t ref, group;

	EXPECT_INT(attach_at(a, id, PAGE_BYTES), 0);
	ref = actor_proc(a)->attach_ref;
	actor_slot(a)->name_ref[NAME_FLY] = ref;
	engine_kill_thread(a);
	EXPECT(procs_adopt(e->base, a->c.proc_ix));
	EXPECT_INT(procs_take_group(e->base, a->c.proc_ix, &group), 0);
	procs_enter_thread(e->base, group * GROUP_SPAN, a->c.proc_ix, 5, true);
	next = *a;
	next.c.context = &next;
	next.c.thread_ix = group * GROUP_SPAN;
	EXPECT_INT(repair_begin_anew(&next.c, NOW), OUTCOME_DONE);
	EXPECT_INT(engine_blocks(e), 0);
	stays_with_taker(b, a->c.proc_ix, g, ref);
	*a = next;
	a->c.context = a;
	remove_segments(g);
}

static void test_destruction_waits_for_who_attaches(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_segment(a, 0, 1);
	uint32_t seq = load_acquire(&segment_at(a, id)->attach_seq);
	struct shm_attach at;

	/* not removed: it stays */
	EXPECT_INT(shm_destroy(&a->c, id, seq), OUTCOME_DONE);
	EXPECT(segment_lives(a, id));
	EXPECT_INT(mark_removed(a, id), 0);
	EXPECT_INT(begin_attach(b, id, &at), 0);
	EXPECT_INT(destroy(a, id), OUTCOME_RETRY);
	/* it has begun and ended since the kernel was asked */
	seq = load_acquire(&segment_at(a, id)->attach_seq);
	shm_attach_done(&b->c, &at, PAGE_BYTES, NOW);
	EXPECT_INT(shm_destroy(&a->c, id, seq), OUTCOME_RETRY);
	EXPECT(segment_lives(a, id));
	detach_at(b, PAGE_BYTES);
	EXPECT_INT(destroy(a, id), 0);
	EXPECT(!segment_lives(a, id));
	EXPECT_INT(begin_attach(b, id, &at), -EINVAL);
	EXPECT_INT(destroy(a, id), 0);
}

static void test_dead_attacher(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_segment(a, 0, 1);
	struct shm_attach at;

	EXPECT_INT(begin_attach(b, id, &at), 0);
	EXPECT_INT(mark_removed(a, id), 0);
	engine_kill(b);
	EXPECT_INT(destroy(a, id), OUTCOME_RETRY);
	engine_bury(a, b);
	EXPECT_INT(destroy(a, id), 0);
	EXPECT(!segment_lives(a, id));
}

static bool has_no_memory;

static bool is_memory_gone(struct caller *c, uint32_t proc_ix)
{
	(void)c, (void)proc_ix;
	return has_no_memory;
}

/* Killed with the memory still there, in which a helper may be making the file: the segment
 * stays. */
static void test_dead_attacher_whose_memory_is_left(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_segment(a, 0, 1);
	int32_t set = new_set(a, 1, (int[]){1});
	const struct caller_ops *usual = a->c.ops;
	struct caller_ops ops = *usual;
	struct shm_attach at;

	ops.is_image_gone = is_memory_gone;
	a->c.ops = &ops;
	has_no_memory = false;
	EXPECT_INT(engine_op(b, set, 0, -1, OP_UNDO), 0);
	EXPECT_INT(begin_attach(b, id, &at), 0);
	EXPECT_INT(mark_removed(a, id), 0);
	engine_kill(b);
	engine_bury(a, b);
	EXPECT_INT(actor_proc(b)->state, PROC_LIVE);
	EXPECT_INT(destroy(a, id), OUTCOME_RETRY);
	EXPECT_INT(value_of(a, set, 0), 1); /* that does not wait */
	has_no_memory = true;
	engine_bury(a, b);
	EXPECT_INT(actor_proc(b)->state, PROC_FREE);
	EXPECT_INT(destroy(a, id), 0);
	EXPECT(!segment_lives(a, id));
	EXPECT_INT(engine_rmid(a, set), 0);
	a->c.ops = usual;
}

static void test_forced_removal(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_segment(a, 5, 1);

	region_header(a->e->base)->limits.shm_rmid_forced = 1;
	EXPECT_INT(destroy(a, id), 0);
	EXPECT(!segment_lives(a, id));
	EXPECT_INT(get_segment(a, 5, 1, 0), -ENOENT);
}

static void test_locked_memory(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_segment(a, 0, PAGE_BYTES + 1), other = new_segment(a, 0, 1);

	EXPECT_INT(shm_set_locked(&a->c, id, true, 0), -EPERM);
	EXPECT_INT(shm_set_locked(&a->c, id, true, 2 * PAGE_BYTES - 1), -ENOMEM);
	EXPECT_INT(shm_set_locked(&a->c, id, true, 2 * PAGE_BYTES), 0);
	EXPECT_INT(shm_set_locked(&a->c, id, true, 1), 0);
	EXPECT_INT(shm_set_locked(&a->c, other, true, 2 * PAGE_BYTES), -ENOMEM);
	EXPECT_INT(shm_set_locked(&a->c, other, true, 3 * PAGE_BYTES), 0);
	EXPECT_INT(shm_set_locked(&a->c, id, false, 0), 0);
	EXPECT_INT(segment_at(a, id)->object.mode, 0600);
	EXPECT_INT(segment_at(a, other)->object.mode, SEGMENT_LOCKED | 0600);
	a->creds.euid = 1000;
	EXPECT_INT(shm_set_locked(&a->c, id, false, 0), -EPERM);
	a->creds.euid = 0;
	remove_segments(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_creation),
		TEST(test_admission_is_of_a_moment),
		TEST(test_file_of_a_dead_remover),
		TEST(test_limits),
		TEST(test_key_of_a_removed_segment),
		TEST(test_key_that_a_dead_remover_left),
		TEST(test_counts),
		TEST(test_a_mapping_in_the_place_of_another),
		TEST(test_times_and_pids),
		TEST(test_fork),
		TEST(test_parent_dead_with_the_records_in_hand),
		TEST(test_image_gone_with_the_records_in_hand),
		TEST(test_destruction_waits_for_who_attaches),
		TEST(test_dead_attacher),
		TEST(test_dead_attacher_whose_memory_is_left),
		TEST(test_forced_removal),
		TEST(test_locked_memory),
	};

	return cmocka_run_group_tests_name("shm-attach", tests, NULL, NULL);
}
