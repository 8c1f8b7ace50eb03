// SPDX-License-Identifier: MIT
/*
 * Two at once on one object, both of whom die. Results are not looked at: what the one finds
 * depends on how far the other has come. The second makes each call once; whoever has the lock
 * that it wants is stopped and will not give it back, so it is killed just before it would sleep.
 */
#include "scenes.h"

#include "core/ids.h"

/* A call was busy: what the client does before it sleeps. */
static void announce(struct actor *a, int rc)
{
	if (rc != OUTCOME_BUSY)
		return;
	if (a->c.busy.kind == BUSY_LOCK)
		(void)rlock_announce(&a->c);
	else if (a->c.busy.kind == BUSY_WORD)
		(void)sem_announce(&a->c);
}

/* ---- Sets -------------------------------------------------------------------------------- */

static void four(struct cast *c)
{
	make_set(c, 0, 4, (int[]){2, 2, 2, 2});
	do_op(c, c->last, 0, 1, 0 + 1, 0);
}

static void undone_by_both(struct cast *c)
{
	four(c);
	do_op(c, c->victim, 0, 2, -1, OP_UNDO);
	do_op(c, c->second, 0, 3, -1, OP_UNDO);
}

static void sleepers(struct cast *c)
{
	make_set(c, 0, 4, (int[]){0, 0, 2, 2});
	queue_one(c, 0, 0, -1, OP_UNDO);
	queue_one(c, 0, 0, -1, 0);
}

static void second_sleeps(struct cast *c)
{
	sleepers(c);
	EXPECT_INT(engine_try_op(c->second, c->id[0], 0, -1, OP_UNDO), OUTCOME_SLEEP);
}

static void second_sleeps_first(struct cast *c)
{
	make_set(c, 0, 4, (int[]){0, 0, 2, 2});
	EXPECT_INT(engine_try_op(c->second, c->id[0], 0, -1, OP_UNDO), OUTCOME_SLEEP);
	queue_one(c, 0, 0, -1, OP_UNDO);
}

static void add_two(struct actor *a, int32_t id, uint16_t first)
{
	struct semop_shm ops[2] = {{first, 1, OP_UNDO}, {(uint16_t)(first + 1), -1, OP_UNDO}};

	announce(a, engine_try(a, id, ops, 2));
}

static void first_low(struct cast *c)
{
	add_two(c->victim, c->id[0], 0);
}

static void second_high(struct cast *c)
{
	add_two(c->second, c->id[0], 2);
}

static void second_middle(struct cast *c)
{
	add_two(c->second, c->id[0], 1);
}

static void first_gives(struct cast *c)
{
	(void)engine_op(c->victim, c->id[0], 0, 2, 0);
}

static void first_gives_undo(struct cast *c)
{
	(void)engine_op(c->victim, c->id[0], 0, 3, OP_UNDO);
}

static void second_waits(struct cast *c)
{
	announce(c->second, engine_try_op(c->second, c->id[0], 0, -1, OP_UNDO));
}

static void second_waits_long(struct cast *c)
{
	announce(c->second, engine_try_op(c->second, c->id[0], 0, -30, OP_UNDO));
}

static void second_takes(struct cast *c)
{
	announce(c->second, engine_try_op(c->second, c->id[0], 2, -1, OP_UNDO));
}

static void second_leaves(struct cast *c)
{
	bool left = true;
	int rc = sem_leave(&c->second->c, &left);

	announce(c->second, rc);
	if (rc == OUTCOME_DONE && !left)
		(void)sem_wait_result(&c->second->c);
}

static void second_is_woken(struct cast *c)
{
	enum wait_state state = actor_state(c->second);

	if (state == WAIT_GRANTED || state == WAIT_REMOVED)
		(void)sem_wait_result(&c->second->c);
}

static void first_sets(struct cast *c)
{
	(void)engine_setval(c->victim, c->id[0], 0, 1);
}

static void first_sets_all(struct cast *c)
{
	uint16_t values[4] = {1, 0, 7, 7};

	(void)engine_setall(c->victim, c->id[0], values);
}

static void first_removes(struct cast *c)
{
	(void)engine_rmid(c->victim, c->id[0]);
}

static void second_removes(struct cast *c)
{
	int rc = sem_remove(&c->second->c, c->id[0]);

	if (rc == OUTCOME_DONE)
		rc = sem_purge(&c->second->c, c->second->c.thread_ix);
	announce(c->second, rc);
}

static void first_exits(struct cast *c)
{
	(void)engine_exit(c->victim);
}

static void second_exits(struct cast *c)
{
	announce(c->second, repair_exit_process(&c->second->c, NOW));
}

static void keyed(struct cast *c)
{
	c->key = 77;
	c->id[0] = engine_semget(c->last, 77, 2, GET_CREAT | 0600);
	EXPECT(c->id[0] >= 0);
}

static void no_key(struct cast *c)
{
	c->key = 77;
	make_set(c, 0, 1, NULL);
}

static void first_creates(struct cast *c)
{
	(void)engine_semget(c->victim, 77, 3, GET_CREAT | 0600);
}

static void second_creates(struct cast *c)
{
	int32_t id;

	announce(c->second, sem_get(&c->second->c, 77, 2, GET_CREAT | 0600, NOW, &id));
}

static void second_looks_up(struct cast *c)
{
	int32_t id;
	int rc = sem_get(&c->second->c, 77, 1, 0, NOW, &id);

	announce(c->second, rc);
	if (rc == OUTCOME_DONE)
		announce(c->second, engine_try_op(c->second, id, 0, 1, 0));
}

static void somebody_died(struct cast *c)
{
	c->dead = engine_join(c->e);
	undone_by_both(c);
	do_op(c, c->dead, 0, 0, -1, OP_UNDO);
	do_op(c, c->dead, 0, 1, -1, OP_UNDO);
	queue_one(c, 0, 0, -2, 0);
	engine_kill(c->dead);
}

static void first_buries(struct cast *c)
{
	engine_sweep(c->victim);
}

static void second_buries(struct cast *c)
{
	announce(c->second, repair_bury_process(&c->second->c, c->dead->c.proc_ix, NOW));
}

/* ---- Queues ------------------------------------------------------------------------------ */

static void messages(struct cast *c)
{
	(void)new_queue(c->last);
	put_messages(c);
}

static void second_receives_asleep(struct cast *c)
{
	(void)new_queue(c->last);
	EXPECT_INT(receive(c->second, scene_queue(c), 64, 3, 0, NULL), OUTCOME_SLEEP);
	receiver_sleeps(c, 64, 3, 0);
}

static void second_sends_asleep(struct cast *c)
{
	(void)new_queue(c->last);
	set_room(c, 24);
	put_messages(c);
	EXPECT_INT(send_number(c->second, scene_queue(c), 2, 8, 9, 0), OUTCOME_SLEEP);
	sender_sleeps(c, 4, 8);
}

static void first_sends(struct cast *c)
{
	(void)send_number(c->victim, scene_queue(c), 3, 8, 9, MSGF_NOWAIT);
}

static void second_sends(struct cast *c)
{
	static struct msg_buffer buffer = {.type = 4};
	struct msg_send_request rq = {.id = scene_queue(c),
				      .user = &buffer,
				      .bytes = 8,
				      .flags = MSGF_NOWAIT,
				      .now = NOW + 1};

	announce(c->second, msg_send(&c->second->c, &rq));
}

static void first_receives(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 64, 0, MSGF_NOWAIT, NULL);
}

static void second_receives(struct cast *c)
{
	struct msg_receive_request rq = {.id = scene_queue(c),
					 .user = receive_buffer(),
					 .bytes = 64,
					 .type = 2,
					 .flags = MSGF_NOWAIT,
					 .now = NOW + 2};

	announce(c->second, msg_receive(&c->second->c, &rq));
}

static void second_leaves_queue(struct cast *c)
{
	struct msg_receive_request rq = {.user = receive_buffer(), .bytes = 64};
	bool is_receiver = actor_slot(c->second)->msg_kind != MSG_KIND_SENDER;
	bool left = true;
	int rc = msg_leave(&c->second->c, &left);

	announce(c->second, rc);
	if (rc != OUTCOME_DONE || left)
		return;
	if (msg_wait_result(&c->second->c) == 0 && is_receiver)
		(void)msg_receive_granted(&c->second->c, &rq);
}

static void first_widens(struct cast *c)
{
	(void)change_queue(c->victim, scene_queue(c), 0, 0600, 1000);
}

static void first_removes_queue(struct cast *c)
{
	(void)remove_queue(c->victim, scene_queue(c));
}

static void second_removes_queue(struct cast *c)
{
	int rc = msg_remove(&c->second->c, scene_queue(c));

	if (rc == OUTCOME_DONE)
		rc = msg_purge(&c->second->c, c->second->c.thread_ix);
	announce(c->second, rc);
}

static void no_queue(struct cast *c)
{
	(void)c;
}

static void first_creates_queue(struct cast *c)
{
	int32_t id;

	while (msg_get(&c->victim->c, 4711, GET_CREAT | 0640, NOW, &id) == OUTCOME_BUSY)
		engine_wait(c->victim);
}

static void second_creates_queue(struct cast *c)
{
	int32_t id;

	announce(c->second, msg_get(&c->second->c, 4711, GET_CREAT | 0600, NOW, &id));
}

/* ---- Segments ---------------------------------------------------------------------------- */

static void segment(struct cast *c)
{
	new_scene_segment(c);
}

static void segment_of_both(struct cast *c)
{
	new_scene_segment(c);
	EXPECT_INT(attach_at(c->victim, scene_segment(c), PAGE_BYTES), 0);
	EXPECT_INT(attach_at(c->second, scene_segment(c), PAGE_BYTES), 0);
}

static void marked_segment(struct cast *c)
{
	new_scene_segment(c);
	EXPECT_INT(attach_at(c->victim, scene_segment(c), PAGE_BYTES), 0);
	EXPECT_INT(mark_removed(c->last, scene_segment(c)), 0);
}

static void first_attaches(struct cast *c)
{
	(void)attach_at(c->victim, scene_segment(c), 5 * PAGE_BYTES);
}

static void second_attaches(struct cast *c)
{
	struct shm_attach at;
	int rc = shm_attach_begin(&c->second->c, scene_segment(c), 6, &at);

	announce(c->second, rc);
	if (rc == OUTCOME_DONE)
		shm_attach_done(&c->second->c, &at, 6 * PAGE_BYTES, NOW);
}

static void first_detaches(struct cast *c)
{
	detach_at(c->victim, PAGE_BYTES);
}

static void first_forks(struct cast *c)
{
	(void)fork_records(c->victim);
}

static void segment_of_forker(struct cast *c)
{
	segment_of_both(c);
	c->forks = true;
}

static void second_marks(struct cast *c)
{
	bool marked = false;

	announce(c->second, shm_mark_removed(&c->second->c, scene_segment(c), &marked));
}

/* As if the kernel had said that nobody is attached. */
static int destroy_once(struct actor *a, int32_t id)
{
	return shm_destroy(&a->c, id, load_acquire(&segment_at(a, id)->attach_seq));
}

static void first_destroys(struct cast *c)
{
	if (!destroy_once(c->victim, scene_segment(c)))
		(void)shm_purge(&c->victim->c, c->victim->c.thread_ix);
}

static void second_destroys(struct cast *c)
{
	int rc = destroy_once(c->second, scene_segment(c));

	if (rc == OUTCOME_DONE)
		rc = shm_purge(&c->second->c, c->second->c.thread_ix);
	announce(c->second, rc);
}

static void no_segment(struct cast *c)
{
	(void)c;
}

static void first_creates_segment(struct cast *c)
{
	(void)get_segment(c->victim, 815, PAGE_BYTES, GET_CREAT | 0640);
}

static void second_creates_segment(struct cast *c)
{
	struct shm_request rq = {.key = 815,
				 .bytes = PAGE_BYTES,
				 .flags = GET_CREAT | 0600,
				 .tid = c->second->c.pid,
				 .now = NOW,
				 .admitted = true};
	int32_t id;

	announce(c->second, shm_get(&c->second->c, &rq, &id));
}

#define P(...) SCENE(__VA_ARGS__, 0)

const struct scene pair_scenes[] = {
	P("sem", "semop and semop", "other semaphores", four, first_low, second_high),
	P("sem", "semop and semop", "one in common", four, first_low, second_middle),
	P("sem", "semop and semop", "undo of both", undone_by_both, first_low, second_middle),
	P("sem", "semop and semop", "hand-off and going to sleep", sleepers, first_gives,
	  second_waits_long),
	P("sem", "semop and semop", "hand-off and who takes first", sleepers, first_gives_undo,
	  second_waits),
	P("sem", "semop and leaving", "hand-off", second_sleeps, first_gives, second_leaves),
	P("sem", "semop and leaving", "hand-off to who leaves", second_sleeps_first,
	  first_gives_undo, second_leaves),
	P("sem", "semop and waking", "hand-off", second_sleeps_first, first_gives, second_is_woken),
	P("sem", "SETVAL and semop", "sleepers", sleepers, first_sets, second_waits_long),
	P("sem", "SETALL and semop", "sleepers", sleepers, first_sets_all, second_takes),
	P("sem", "IPC_RMID and semop", "undo", undone_by_both, first_removes, second_takes),
	P("sem", "IPC_RMID and semop", "going to sleep", sleepers, first_removes, second_waits),
	P("sem", "IPC_RMID and leaving", "sleepers", second_sleeps, first_removes, second_leaves),
	P("sem", "IPC_RMID and IPC_RMID", "sleepers", sleepers, first_removes, second_removes),
	P("sem", "IPC_RMID and semget", "its key", keyed, first_removes, second_looks_up),
	P("sem", "IPC_RMID and semget", "its key anew", keyed, first_removes, second_creates),
	P("sem", "semget and semget", "create", no_key, first_creates, second_creates),
	P("sem", "semget and semget", "create and find", no_key, first_creates, second_looks_up),
	P("sem", "exit and semop", "undo", undone_by_both, first_exits, second_takes),
	P("sem", "exit and exit", "undo", undone_by_both, first_exits, second_exits),
	P("sem", "exit and IPC_RMID", "undo", undone_by_both, first_exits, second_removes),
	P("sem", "burial and burial", "undo", somebody_died, first_buries, second_buries),
	P("msg", "msgsnd and msgsnd", "messages", messages, first_sends, second_sends),
	P("msg", "msgsnd and msgrcv", "messages", messages, first_sends, second_receives),
	P("msg", "msgrcv and msgrcv", "messages", messages, first_receives, second_receives),
	P("msg", "msgsnd and leaving", "hand-off", second_receives_asleep, first_sends,
	  second_leaves_queue),
	P("msg", "msgrcv and leaving", "sender admitted", second_sends_asleep, first_receives,
	  second_leaves_queue),
	P("msg", "IPC_SET and leaving", "sender admitted", second_sends_asleep, first_widens,
	  second_leaves_queue),
	P("msg", "IPC_RMID and msgsnd", "messages", messages, first_removes_queue, second_sends),
	P("msg", "IPC_RMID and msgrcv", "messages", messages, first_removes_queue, second_receives),
	P("msg", "IPC_RMID and leaving", "sleepers", second_receives_asleep, first_removes_queue,
	  second_leaves_queue),
	P("msg", "IPC_RMID and IPC_RMID", "messages", messages, first_removes_queue,
	  second_removes_queue),
	P("msg", "msgget and msgget", "create", no_queue, first_creates_queue,
	  second_creates_queue),
	P("shm", "shmat and shmat", "one segment", segment, first_attaches, second_attaches),
	P("shm", "shmat and IPC_RMID", "nobody attached", segment, first_attaches, second_marks),
	P("shm", "shmat and destruction", "marked", marked_segment, first_attaches,
	  second_destroys),
	P("shm", "shmdt and destruction", "marked", marked_segment, first_detaches,
	  second_destroys),
	P("shm", "destruction and shmat", "marked", marked_segment, first_destroys,
	  second_attaches),
	P("shm", "destruction and destruction", "marked", marked_segment, first_destroys,
	  second_destroys),
	P("shm", "fork and IPC_RMID", "attached", segment_of_forker, first_forks, second_marks),
	P("shm", "exit and shmat", "attached", segment_of_both, first_exits, second_attaches),
	P("shm", "shmget and shmget", "create", no_segment, first_creates_segment,
	  second_creates_segment),
	{NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
