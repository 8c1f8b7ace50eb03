// SPDX-License-Identifier: MIT
/*
 * What the victim does when it dies: each operation on segments and attach records, in the
 * situations that matter. There are no files and no mappings: those are the client's (real-kill).
 */
#include "scenes.h"

#include "core/ids.h"

/* ---- Setting up -------------------------------------------------------------------------- */

int32_t scene_segment(const struct cast *c)
{
	uint32_t hi = region_header(c->e->base)->table[FAMILY_SHM].hi, ix = 0;

	while (ix < hi && !load_acquire(&shm_segment(c->e->base, ix)->object.live))
		ix++;
	return ix < hi ? (int32_t)(load_acquire(&shm_segment(c->e->base, ix)->object.live) - 1) : 0;
}

void new_scene_segment(struct cast *c)
{
	(void)new_segment(c->last, 4711, 3 * PAGE_BYTES);
}

/* Recovery takes blocks from the pool of whose records are at stake. */
static void with_pool_of(struct cast *c, struct actor *a)
{
	c->pool = a;
	view_take_blocks(c, c->last); /* so that there are chunks for it */
	view_give_blocks(c, c->last);
}

static void nobody_attached(struct cast *c)
{
	with_pool_of(c, c->victim);
	new_scene_segment(c);
}

static void none_exists(struct cast *c)
{
	with_pool_of(c, c->victim);
}

static void attached_often(struct cast *c, struct actor *a, uint64_t n)
{
	for (uint64_t i = 1; i <= n; i++)
		EXPECT_INT(attach_at(a, scene_segment(c), i * PAGE_BYTES), 0);
}

static void victim_is_attached(struct cast *c)
{
	nobody_attached(c);
	attached_often(c, c->victim, 9);
	contend_object(c, FAMILY_SHM, scene_segment(c));
}

static void first_block_is_full(struct cast *c)
{
	nobody_attached(c);
	attached_often(c, c->victim, 7);
}

static void another_is_attached(struct cast *c)
{
	nobody_attached(c);
	attached_often(c, c->recoverer, 1);
}

static void locked(struct cast *c)
{
	another_is_attached(c);
	EXPECT_INT(shm_set_locked(&c->last->c, scene_segment(c), true, UINT64_MAX), 0);
}

static void it_is_marked(struct cast *c)
{
	nobody_attached(c);
	EXPECT_INT(mark_removed(c->last, scene_segment(c)), 0);
	contend(c, ids_table_lock(FAMILY_SHM));
}

static void marked_while_attached(struct cast *c)
{
	nobody_attached(c);
	attached_often(c, c->victim, 2);
	EXPECT_INT(mark_removed(c->last, scene_segment(c)), 0);
}

static void dead_are_attached(struct cast *c)
{
	c->dead = engine_join(c->e);
	with_pool_of(c, c->dead);
	new_scene_segment(c);
	attached_often(c, c->dead, 9);
	engine_kill(c->dead);
}

static void with_key(struct cast *c)
{
	nobody_attached(c);
	(void)new_segment(c->last, 814, PAGE_BYTES);
	contend(c, ids_table_lock(FAMILY_SHM));
}

/* ---- Operations -------------------------------------------------------------------------- */

static void create(struct cast *c)
{
	(void)get_segment(c->victim, 815, PAGE_BYTES, GET_CREAT | 0640);
}

static void look_up(struct cast *c)
{
	EXPECT(get_segment(c->victim, 814, PAGE_BYTES, 0) >= 0);
	EXPECT_INT(get_segment(c->victim, 813, PAGE_BYTES, 0), -ENOENT);
	EXPECT_INT(get_segment(c->victim, 814, PAGE_BYTES, GET_CREAT | GET_EXCL), -EEXIST);
}

static void attach(struct cast *c)
{
	(void)attach_at(c->victim, scene_segment(c), 77 * PAGE_BYTES);
}

/* Over an attach that is there already: SHM_REMAP. */
static void attach_over(struct cast *c)
{
	(void)attach_at(c->victim, scene_segment(c), 3 * PAGE_BYTES);
}

static void attach_in_vain(struct cast *c)
{
	struct shm_attach at;

	if (begin_attach(c->victim, scene_segment(c), &at) == 0)
		shm_attach_failed(&c->victim->c, &at);
}

static void detach(struct cast *c)
{
	detach_at(c->victim, PAGE_BYTES);
}

/* The last of a marked segment, which goes with it. */
static void detach_last(struct cast *c)
{
	int32_t id = scene_segment(c);

	detach_at(c->victim, PAGE_BYTES);
	detach_at(c->victim, 2 * PAGE_BYTES);
	(void)destroy(c->victim, id);
}

static void change(struct cast *c)
{
	(void)shm_set_owner(&c->victim->c, scene_segment(c), 77, 78, 0444, NOW + 5);
}

static void lock(struct cast *c)
{
	(void)shm_set_locked(&c->victim->c, scene_segment(c), true, UINT64_MAX);
}

static void unlock(struct cast *c)
{
	(void)shm_set_locked(&c->victim->c, scene_segment(c), false, UINT64_MAX);
}

static void mark(struct cast *c)
{
	(void)mark_removed(c->victim, scene_segment(c));
}

static void destroy_it(struct cast *c)
{
	(void)destroy(c->victim, scene_segment(c));
}

static void give_birth(struct cast *c)
{
	(void)fork_records(c->victim);
}

static void end(struct cast *c)
{
	(void)engine_exit(c->victim);
}

static void bury(struct cast *c)
{
	engine_sweep(c->victim);
}

/* The records of the child get a block of a size that recovery takes meanwhile. */
static void forking_with_few(struct cast *c)
{
	nobody_attached(c);
	attached_often(c, c->victim, 5);
	c->forks = true;
}

static void forking(struct cast *c)
{
	victim_is_attached(c);
	c->forks = true;
}

/* A child without a slot of its parent's making: it takes over what that has copied. */
static struct attach_shm heritage[4];
static uint32_t heritage_count;

static void heir(struct cast *c)
{
	another_is_attached(c);
	attached_often(c, c->recoverer, 2);
	heritage_count = shm_fork_copy(&c->recoverer->c, heritage, 4, NOW);
	EXPECT_INT(heritage_count, 3);
}

static void inherit(struct cast *c)
{
	int rc;

	UNTIL_DONE(c->victim, shm_inherit(&c->victim->c, heritage, heritage_count));
	EXPECT_INT(rc, OUTCOME_DONE);
}

#define S(...) SCENE("shm", __VA_ARGS__, NULL, 0)

const struct scene shm_scenes[] = {
	S("shmget", "creates", with_key, create),
	S("shmget", "creates the first", none_exists, create),
	S("shmget", "finds", with_key, look_up),
	S("shmat", "the first of the process", nobody_attached, attach),
	S("shmat", "a record to spare", victim_is_attached, attach),
	S("shmat", "records used up", first_block_is_full, attach),
	S("shmat", "over another", victim_is_attached, attach_over),
	S("shmat", "fails", victim_is_attached, attach_in_vain),
	S("shmat", "marked", marked_while_attached, attach),
	S("shmdt", "one of many", victim_is_attached, detach),
	S("shmdt", "the last of a marked one", marked_while_attached, detach_last),
	S("IPC_SET", "attached", another_is_attached, change),
	S("SHM_LOCK", "attached", another_is_attached, lock),
	S("SHM_UNLOCK", "attached", locked, unlock),
	S("IPC_RMID", "attached", another_is_attached, mark),
	S("IPC_RMID", "nobody attached", nobody_attached, mark),
	S("IPC_RMID", "it goes", it_is_marked, destroy_it),
	S("fork", "attached", forking, give_birth),
	S("fork", "attached a few times", forking_with_few, give_birth),
	S("fork", "the child takes over", heir, inherit),
	S("exit", "attached", victim_is_attached, end),
	S("burial", "attached", dead_are_attached, bury),
	{NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
