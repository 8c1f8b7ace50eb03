// SPDX-License-Identifier: MIT
/* What the victim does when it dies: each operation on queues, in the situations that matter. */
#include "scenes.h"

#include "core/ids.h"

/* ---- Setting up -------------------------------------------------------------------------- */

int32_t scene_queue(const struct cast *c)
{
	uint32_t hi = region_header(c->e->base)->table[FAMILY_MSG].hi, ix = 0;

	while (ix < hi && !load_acquire(&region_queue(c->e->base, ix)->object.live))
		ix++;
	return ix < hi ? (int32_t)(load_acquire(&region_queue(c->e->base, ix)->object.live) - 1)
		       : 0;
}

static struct queue_shm *the_queue(const struct cast *c)
{
	return queue_of(c->last, scene_queue(c));
}

void receiver_sleeps(struct cast *c, uint64_t bytes, int64_t type, uint32_t flags)
{
	struct actor *a = add_waiter(c);

	EXPECT_INT(receive(a, scene_queue(c), bytes, type, flags, NULL), OUTCOME_SLEEP);
	put_to_sleep(a);
}

void sender_sleeps(struct cast *c, long type, uint64_t bytes)
{
	struct actor *a = add_waiter(c);

	EXPECT_INT(send_number(a, scene_queue(c), type, bytes, 50 + (uint32_t)type, 0),
		   OUTCOME_SLEEP);
	put_to_sleep(a);
}

static void fill(struct cast *c, long type, uint64_t bytes, uint32_t number)
{
	EXPECT_INT(send_number(c->last, scene_queue(c), type, bytes, number, 0), 0);
}

void set_room(struct cast *c, uint64_t qbytes)
{
	EXPECT_INT(change_queue(c->last, scene_queue(c), 0, 0600, qbytes), 0);
}

static void no_queue(struct cast *c)
{
	(void)c;
}

static void empty(struct cast *c)
{
	(void)new_queue(c->last);
}

void put_messages(struct cast *c)
{
	fill(c, 1, 8, 1);
	fill(c, 2, 8, 2);
	fill(c, 1, 8, 3);
}

static void three_messages(struct cast *c)
{
	empty(c);
	put_messages(c);
}

/* Blocks in the pocket of the victim and in the caches of the queue. */
static void used_queue(struct cast *c)
{
	empty(c);
	for (uint32_t n = 0; n < 4; n++)
		fill(c, 5, 8, n);
	for (uint32_t n = 0; n < 4; n++)
		EXPECT_INT(receive(c->victim, scene_queue(c), 8, 5, 0, NULL), 0);
	EXPECT(actor_slot(c->victim)->name_ref[NAME_POCKET]);
	put_messages(c);
}

static void large_message(struct cast *c)
{
	three_messages(c);
	set_room(c, 1u << 20);
	region_header(c->e->base)->limits.msgmax = MSG_TEXT_MOST;
	fill(c, 9, 100000, 4); /* a span */
	fill(c, 8, 20000, 5);
}

void receivers_wait(struct cast *c)
{
	empty(c);
	receiver_sleeps(c, 64, 7, 0);
	receiver_sleeps(c, 64, 3, 0);
	receiver_sleeps(c, 64, 0, 0);
	contend_object(c, FAMILY_MSG, scene_queue(c));
}

static void short_receivers_wait(struct cast *c)
{
	empty(c);
	receiver_sleeps(c, 2, 3, 0);
	receiver_sleeps(c, 2, -9, 0);
	receiver_sleeps(c, 2, 4, 0);
}

static void short_and_long_receivers_wait(struct cast *c)
{
	empty(c);
	receiver_sleeps(c, 2, 3, 0);
	receiver_sleeps(c, 2, 8, MSGF_EXCEPT);
	receiver_sleeps(c, 2, 0, MSGF_NOERROR);
	receiver_sleeps(c, 64, 3, 0);
}

static void kill_waiter(struct cast *c, int i)
{
	engine_kill(c->waiter[i]);
	c->waiter[i] = NULL;
	c->sweeps = true;
}

static void dead_receiver_waits(struct cast *c)
{
	empty(c);
	receiver_sleeps(c, 64, 3, 0);
	receiver_sleeps(c, 64, 3, 0);
	kill_waiter(c, 0);
}

void senders_wait(struct cast *c)
{
	empty(c);
	set_room(c, 40);
	fill(c, 1, 32, 1);
	fill(c, 1, 8, 2);
	sender_sleeps(c, 9, 16);
	sender_sleeps(c, 2, 8);
	sender_sleeps(c, 2, 36);
	receiver_sleeps(c, 64, 9, 0);
}

static void everybody_waits(struct cast *c)
{
	used_queue(c);
	set_room(c, the_queue(c)->bytes);
	receiver_sleeps(c, 64, 70, 0);
	receiver_sleeps(c, 64, 71, 0);
	sender_sleeps(c, 3, 8);
	sender_sleeps(c, 4, 8);
	contend_object(c, FAMILY_MSG, scene_queue(c));
	contend(c, ids_table_lock(FAMILY_MSG));
}

static void victim_sleeps(struct cast *c)
{
	receivers_wait(c);
	EXPECT_INT(receive(c->victim, scene_queue(c), 64, 7, 0, NULL), OUTCOME_SLEEP);
	*(rlock_shm *)region_at(c->e->base, c->lock[0]) = RLOCK_W; /* it has been taken since */
}

static void victim_sends_asleep(struct cast *c)
{
	empty(c);
	set_room(c, 8);
	fill(c, 1, 8, 1);
	EXPECT_INT(send_number(c->victim, scene_queue(c), 2, 8, 9, 0), OUTCOME_SLEEP);
}

static void victim_was_granted(struct cast *c)
{
	empty(c);
	EXPECT_INT(receive(c->victim, scene_queue(c), 64, 7, 0, NULL), OUTCOME_SLEEP);
	fill(c, 7, 20, 6);
	EXPECT_INT(actor_state(c->victim), WAIT_GRANTED);
}

static void victim_was_removed(struct cast *c)
{
	victim_sends_asleep(c);
	EXPECT_INT(remove_queue(c->last, scene_queue(c)), 0);
}

/* The mode closes while receivers and senders of somebody else sleep, and makes room. */
static void strangers_wait(struct cast *c)
{
	struct actor *a;

	empty(c);
	EXPECT_INT(change_queue(c->last, scene_queue(c), 0, 0666, 8), 0);
	fill(c, 1, 8, 1);
	for (int k = 0; k < 3; k++) {
		a = add_waiter(c);
		a->creds.euid = 1000;
		a->creds.fsgid = 1000;
		if (k < 2)
			EXPECT_INT(receive(a, scene_queue(c), 64, 3 + k, 0, NULL), OUTCOME_SLEEP);
		else
			EXPECT_INT(send_number(a, scene_queue(c), 5, 8, 52, 0), OUTCOME_SLEEP);
		put_to_sleep(a);
	}
}

static void with_key(struct cast *c)
{
	int32_t id;

	three_messages(c);
	EXPECT_INT(msg_get(&c->last->c, 4710, GET_CREAT | 0640, NOW, &id), OUTCOME_DONE);
	contend(c, ids_table_lock(FAMILY_MSG));
}

/* ---- Operations -------------------------------------------------------------------------- */

static void send_3(struct cast *c)
{
	(void)send_number(c->victim, scene_queue(c), 3, 8, 9, 0);
}

static void send_1500(struct cast *c)
{
	(void)send_number(c->victim, scene_queue(c), 3, 1500, 9, 0);
}

static void send_span(struct cast *c)
{
	(void)send_number(c->victim, scene_queue(c), 3, 70000, 9, 0);
}

static void send_in_vain(struct cast *c)
{
	EXPECT_INT(send_number(c->victim, scene_queue(c), 3, 8, 9, MSGF_NOWAIT), -EAGAIN);
}

static void receive_any(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 64, 0, MSGF_NOWAIT, NULL);
}

static void receive_2(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 64, 2, MSGF_NOWAIT, NULL);
}

static void receive_up_to(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 64, -2, MSGF_NOWAIT, NULL);
}

static void receive_other(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 2, 1, MSGF_NOWAIT | MSGF_EXCEPT | MSGF_NOERROR,
		      NULL);
}

static void receive_span(struct cast *c)
{
	EXPECT_INT(receive(c->victim, scene_queue(c), MSG_TEXT_MOST, 9, MSGF_NOWAIT, NULL), 0);
}

static void receive_20000(struct cast *c)
{
	EXPECT_INT(receive(c->victim, scene_queue(c), MSG_TEXT_MOST, 8, MSGF_NOWAIT, NULL), 0);
}

static void receive_in_vain(struct cast *c)
{
	EXPECT_INT(receive(c->victim, scene_queue(c), 2, 1, MSGF_NOWAIT, NULL), -E2BIG);
	EXPECT_INT(receive(c->victim, scene_queue(c), 2, 30, MSGF_NOWAIT, NULL), -ENOMSG);
}

static void receive_asleep(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 64, 3, 0, NULL);
}

static void copy_second(struct cast *c)
{
	(void)receive(c->victim, scene_queue(c), 64, 1, MSGF_NOWAIT | MSGF_COPY, NULL);
}

static void leave(struct cast *c)
{
	EXPECT(leaves(c->victim));
}

static void take_message(struct cast *c)
{
	struct got got = {0};

	EXPECT(!leaves(c->victim));
	EXPECT_INT(receive_ended(c->victim, 64, &got), 0);
	EXPECT_INT(got.number, 6);
}

static void take_removal(struct cast *c)
{
	EXPECT_INT(send_ended(c->victim), -EIDRM);
}

static void widen(struct cast *c)
{
	(void)change_queue(c->victim, scene_queue(c), 0, 0600, 1000);
}

static void shut(struct cast *c)
{
	(void)change_queue(c->victim, scene_queue(c), 77, 0200, 1000);
}

static void look(struct cast *c)
{
	struct msg_status status;

	EXPECT_INT(msg_stat(&c->victim->c, scene_queue(c), false, false, &status), OUTCOME_DONE);
}

static void remove_it(struct cast *c)
{
	(void)remove_queue(c->victim, scene_queue(c));
}

static void create(struct cast *c)
{
	int32_t id;

	EXPECT_INT(msg_get(&c->victim->c, 4711, GET_CREAT | 0640, NOW, &id), OUTCOME_DONE);
}

static void look_up(struct cast *c)
{
	int32_t id;

	EXPECT_INT(msg_get(&c->victim->c, 4710, 0, NOW, &id), OUTCOME_DONE);
	EXPECT_INT(msg_get(&c->victim->c, 4709, 0, NOW, &id), -ENOENT);
	EXPECT_INT(msg_get(&c->victim->c, 4710, GET_CREAT | GET_EXCL, NOW, &id), -EEXIST);
}

#define S(...) SCENE("msg", __VA_ARGS__, NULL, 0)
#define L(...) SCENE("msg", __VA_ARGS__, NULL, SCENE_LARGE)

const struct scene msg_scenes[] = {
	S("msgsnd", "empty", empty, send_3),
	S("msgsnd", "behind others", three_messages, send_3),
	S("msgsnd", "blocks at hand", used_queue, send_3),
	S("msgsnd", "1500 bytes", used_queue, send_1500),
	L("msgsnd", "70000 bytes", large_message, send_span),
	S("msgsnd", "hand-off", receivers_wait, send_3),
	S("msgsnd", "receivers with too little room", short_receivers_wait, send_3),
	S("msgsnd", "receivers with little and enough room", short_and_long_receivers_wait, send_3),
	S("msgsnd", "hand-off past a dead sleeper", dead_receiver_waits, send_3),
	S("msgsnd", "full", senders_wait, send_3),
	S("msgsnd", "full, fails", senders_wait, send_in_vain),
	S("msgrcv", "the first", three_messages, receive_any),
	S("msgrcv", "by type", three_messages, receive_2),
	S("msgrcv", "lowest type", three_messages, receive_up_to),
	S("msgrcv", "other type, cut", three_messages, receive_other),
	S("msgrcv", "blocks at hand", used_queue, receive_any),
	S("msgrcv", "100000 bytes", large_message, receive_span),
	S("msgrcv", "20000 bytes", large_message, receive_20000),
	S("msgrcv", "admits senders", senders_wait, receive_any),
	S("msgrcv", "empty, fails", empty, receive_any),
	S("msgrcv", "none fits, fails", three_messages, receive_in_vain),
	S("msgrcv", "sleeps", three_messages, receive_asleep),
	S("msgrcv", "copy", three_messages, copy_second),
	S("end of sleep", "receiver leaves", victim_sleeps, leave),
	S("end of sleep", "sender leaves", victim_sends_asleep, leave),
	S("end of sleep", "message granted", victim_was_granted, take_message),
	S("end of sleep", "removed", victim_was_removed, take_removal),
	S("IPC_STAT", "with waiters", everybody_waits, look),
	S("IPC_SET", "makes room", senders_wait, widen),
	S("IPC_SET", "closed to sleepers", strangers_wait, shut),
	S("IPC_RMID", "nobody waits", three_messages, remove_it),
	S("IPC_RMID", "sleepers, contended", everybody_waits, remove_it),
	S("IPC_RMID", "large messages", large_message, remove_it),
	S("msgget", "creates", with_key, create),
	S("msgget", "creates the first", no_queue, create),
	S("msgget", "finds", with_key, look_up),
	{NULL, NULL, NULL, NULL, NULL, NULL, 0},
};
