// SPDX-License-Identifier: MIT
/*
 * What the victim does when it dies: blocks of memory, and how processes and threads come and go.
 * What the client does around these calls is killed for real in real-kill.
 */
#include "scenes.h"

#include <stdlib.h>

#include "core/arena.h"
#include "core/procs.h"

static void empty(struct cast *c)
{
	(void)c;
}

/* ---- Blocks ------------------------------------------------------------------------------ */

static void take_block(struct cast *c)
{
	EXPECT_INT(arena_take(&c->victim->c, ARENA_GENERAL, NAME_FLY, 3000), OUTCOME_DONE);
}

static void two_blocks(struct cast *c)
{
	/* Two chunks of the class, so that the emptied one goes back to the arena. */
	for (int i = 0; i < 3; i++) {
		EXPECT_INT(arena_take(&c->victim->c, ARENA_GENERAL, (enum name)i, 32768),
			   OUTCOME_DONE);
	}
}

static void give_blocks(struct cast *c)
{
	for (int i = 2; i >= 0; i--)
		EXPECT_INT(arena_give(&c->victim->c, (enum name)i), OUTCOME_DONE);
}

static void take_span(struct cast *c)
{
	EXPECT_INT(arena_take(&c->victim->c, ARENA_GENERAL, NAME_FLY, 3 * CHUNK_BYTES),
		   OUTCOME_DONE);
}

static void give_span(struct cast *c)
{
	EXPECT_INT(arena_give(&c->victim->c, NAME_FLY), OUTCOME_DONE);
}

/* ---- Ends and beginnings ----------------------------------------------------------------- */

static void two_sets_undone(struct cast *c)
{
	make_set(c, 0, 3, (int[]){1, 3, 0});
	make_set(c, 1, 10, (int[10]){4, 4});
	do_op(c, c->victim, 0, 0, -1, OP_UNDO);
	do_op(c, c->victim, 1, 1, 2, OP_UNDO);
	do_op(c, c->victim, 0, 2, 1, OP_UNDO);
	do_op(c, c->victim, 1, 0, -4, OP_UNDO);
	queue_one(c, 0, 0, -1, OP_UNDO);
	queue_one(c, 0, 2, 0, 0);
	queue_one(c, 1, 0, -2, 0);
	contend_object(c, FAMILY_SEM, c->id[0]);
}

static void leave_for_good(struct cast *c)
{
	EXPECT_INT(engine_exit(c->victim), 0);
}

static void with_dead_thread(struct cast *c)
{
	two_sets_undone(c);
	c->thread = engine_join_thread(c->victim);
	EXPECT_INT(arena_take(&c->thread->c, ARENA_GENERAL, NAME_FLY, 500), OUTCOME_DONE);
	EXPECT_INT(engine_try_op(c->thread, c->id[1], 9, -1, 0), OUTCOME_SLEEP);
	engine_kill_thread(c->thread);
}

/* The victim buries a process that died in the middle of things. */
static void somebody_died(struct cast *c)
{
	struct actor *d = c->dead = engine_join(c->e);

	make_set(c, 0, 3, (int[]){1, 3, 0});
	make_set(c, 1, 2, (int[]){4, 4});
	EXPECT_INT(engine_op(d, c->id[0], 0, -1, OP_UNDO), 0);
	EXPECT_INT(engine_op(d, c->id[1], 1, -3, OP_UNDO), 0);
	queue_one(c, 0, 0, -1, OP_UNDO);
	/* Of sizes that others take meanwhile. */
	EXPECT_INT(arena_take(&d->c, ARENA_GENERAL, NAME_SIDE, 200), OUTCOME_DONE);
	EXPECT_INT(arena_take(&d->c, ARENA_GENERAL, NAME_FLY, 4000), OUTCOME_DONE);
	EXPECT_INT(engine_try_op(d, c->id[1], 1, -30, 0), OUTCOME_SLEEP);
	engine_kill(d);
	c->sweeps = true;
}

static void sweep(struct cast *c)
{
	engine_sweep(c->victim);
}

/* ---- Registration ------------------------------------------------------------------------ */

static void nobody_new(struct cast *c)
{
	c->enters = true;
}

static void enter_slot(unsigned char *base, uint32_t ix)
{
	uint32_t group;

	procs_publish(base, ix, ENGINE_FIRST_PID + ix, 1, 1, 0);
	EXPECT_INT(procs_take_group(base, ix, &group), 0);
	procs_enter_thread(base, group * GROUP_SPAN, ix, 5, true);
	procs_enter_thread(base, group * GROUP_SPAN + 1, ix, 6, true);
}

static void enter(struct cast *c)
{
	uint32_t ix;

	EXPECT_INT(procs_reserve(c->e->base, NULL, NULL, 1, &ix), 0);
	enter_slot(c->e->base, ix);
}

/* In a namespace where many have come and gone. */
static void used_slots(struct cast *c)
{
	struct actor *a[3];

	c->enters = true;
	for (int i = 0; i < 3; i++)
		a[i] = engine_join(c->e);
	for (int i = 0; i < 3; i++)
		EXPECT_INT(engine_exit(a[i]), 0);
}

static void one_thread(struct cast *c)
{
	make_set(c, 0, 1, (int[]){1});
	do_op(c, c->victim, 0, 0, 1, OP_UNDO);
}

/* Into a slot of a group that the process has. */
static void enter_thread(struct cast *c)
{
	(void)engine_join_thread(c->victim);
}

static void five_threads(struct cast *c)
{
	one_thread(c);
	for (uint32_t k = 1; k < GROUP_THREADS; k++)
		(void)engine_join_thread(c->victim);
}

/* ---- fork, exec, exit -------------------------------------------------------------------- */

/* Sets, queues and segments that the victim uses. */
static void uses_all(struct cast *c)
{
	two_sets_undone(c);
	(void)new_queue(c->last);
	put_messages(c);
	EXPECT_INT(receive(c->victim, scene_queue(c), 64, 0, MSGF_NOWAIT, NULL), 0);
	new_scene_segment(c);
	EXPECT_INT(attach_at(c->victim, scene_segment(c), PAGE_BYTES), 0);
	EXPECT_INT(attach_at(c->victim, scene_segment(c), 9 * PAGE_BYTES), 0);
	c->forks = true;
}

static void fork_slot(struct cast *c)
{
	(void)fork_records(c->victim);
}

/* The child of the victim takes the slot over that its parent reserved. */
static void slot_is_reserved(struct cast *c)
{
	uses_all(c);
	c->procs = fork_records(c->victim);
	c->enters = true;
}

static void be_child(struct cast *c)
{
	enter_slot(c->e->base, c->procs);
}

/* Of its former image only the record is left, and its undo. */
static void image_is_gone(struct cast *c)
{
	uses_all(c);
	engine_kill_thread(c->victim);
	c->sweeps = true; /* its old group names a generation that is no more */
}

static void be_next_image(struct cast *c)
{
	unsigned char *base = c->e->base;
	uint32_t ix = c->victim->c.proc_ix, group;
	struct actor next = *c->victim;

	procs_adopt(base, ix);
	EXPECT_INT(procs_take_group(base, ix, &group), 0);
	EXPECT(group * GROUP_SPAN < ENGINE_THREADS);
	procs_enter_thread(base, group * GROUP_SPAN, ix, 5, true);
	next.c.context = &next;
	next.c.thread_ix = group * GROUP_SPAN;
	while (repair_begin_anew(&next.c, NOW) == OUTCOME_BUSY)
		engine_wait(&next);
}

static void undo_at_exit(struct cast *c)
{
	while (sem_undo_exit(&c->victim->c, c->victim->c.proc_ix, NOW, false) == OUTCOME_BUSY)
		engine_wait(c->victim);
}

static void with_living_thread(struct cast *c)
{
	two_sets_undone(c);
	c->thread = engine_join_thread(c->victim);
	EXPECT_INT(engine_try_op(c->thread, c->id[1], 9, -1, 0), OUTCOME_SLEEP);
}

/* ---- Burial ------------------------------------------------------------------------------ */

static void user_of_all_died(struct cast *c)
{
	struct actor *d;

	uses_all(c);
	d = c->dead = engine_join(c->e);
	do_op(c, d, 0, 1, -1, OP_UNDO);
	EXPECT_INT(attach_at(d, scene_segment(c), PAGE_BYTES), 0);
	EXPECT_INT(receive(d, scene_queue(c), 64, 0, MSGF_NOWAIT, NULL), 0);
	EXPECT_INT(receive(d, scene_queue(c), 64, 40, 0, NULL), OUTCOME_SLEEP);
	engine_kill(d);
	*(rlock_shm *)region_at(c->e->base, c->lock[0]) = RLOCK_W; /* it has been taken since */
	c->sweeps = true;
}

/* It had the lock of its set, and was about to wake a sleeper. */
static void owner_died(struct cast *c)
{
	struct actor *d = c->dead = engine_join(c->e);

	make_set(c, 0, 2, (int[]){3, 0});
	do_op(c, d, 0, 0, -1, OP_UNDO);
	queue_one(c, 0, 1, -1, 0);
	EXPECT_INT(rlock_acquire(&d->c, ids_object_lock(FAMILY_SEM, 0)), OUTCOME_DONE);
	actor_slot(d)->owes_wake = 1;
	engine_kill(d);
	c->sweeps = true;
}

static void child_never_came(struct cast *c)
{
	uint32_t ix;

	uses_all(c);
	ix = fork_records(c->victim);
	(void)ix;
}

static void bury_reserved(struct cast *c)
{
	free_reserved(c->victim);
}

#define S(...) SCENE("life", __VA_ARGS__, NULL, 0)

const struct scene life_scenes[] = {
	S("block", "taken", empty, take_block),
	S("block", "given back", two_blocks, give_blocks),
	S("block", "span taken", empty, take_span),
	S("block", "span given back", take_span, give_span),
	S("registration", "process", nobody_new, enter),
	S("registration", "process, into used slots", used_slots, enter),
	S("registration", "thread", one_thread, enter_thread),
	S("registration", "thread, in a new group", five_threads, enter_thread),
	S("fork", "a slot for the child", uses_all, fork_slot),
	S("fork", "the child comes", slot_is_reserved, be_child),
	S("fork", "the child never came", child_never_came, bury_reserved),
	S("exec", "the next image comes", image_is_gone, be_next_image),
	S("exit", "undo", two_sets_undone, leave_for_good),
	S("exit", "undo and a dead thread", with_dead_thread, leave_for_good),
	S("exit", "undo and a thread that sleeps", with_living_thread, leave_for_good),
	S("exit", "undo, messages and attaches", uses_all, leave_for_good),
	S("exit", "undo alone, the slot stays", two_sets_undone, undo_at_exit),
	S("burial", "undo, blocks, a request", somebody_died, sweep),
	S("burial", "user of all families", user_of_all_died, sweep),
	S("burial", "owner of a lock", owner_died, sweep),
	{NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
