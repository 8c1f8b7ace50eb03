// SPDX-License-Identifier: MIT
/* A queue as the engine has it: room, sleepers, memory, and what the lock covers. */
#include "msg-calls.h"

#define NUMBER_OF(text) (*(uint32_t *)(void *)(text))

/* ---- Room and order ---------------------------------------------------------------------- */

static void order_is_that_of_arrival(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_queue(a);
	struct got got = {0};

	for (uint32_t n = 0; n < 50; n++)
		EXPECT_INT(send_number(a, id, 1 + n % 3, 8, n, 0), 0);
	EXPECT_INT(receive(a, id, 8, 2, 0, &got), 0);
	EXPECT_INT(got.number, 1);
	EXPECT_INT(receive(a, id, 8, 1, MSGF_EXCEPT, &got), 0);
	EXPECT_INT(got.number, 2);
	for (uint32_t n = 0; n < 48; n++) {
		EXPECT_INT(receive(a, id, 8, 0, 0, &got), 0);
		EXPECT_INT(got.number, n == 0 ? 0 : n + 2);
	}
	EXPECT_INT(receive(a, id, 8, 0, MSGF_NOWAIT, NULL), -ENOMSG);
	EXPECT_INT(remove_queue(a, id), 0);
}

static void room_is_of_bytes_and_of_messages(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_queue(a);

	EXPECT_INT(change_queue(a, id, 0, 0600, 3), 0);
	for (uint32_t n = 0; n < 3; n++)
		EXPECT_INT(send_number(a, id, 1, 0, n, MSGF_NOWAIT), 0);
	EXPECT_INT(send_number(a, id, 1, 0, 3, MSGF_NOWAIT), -EAGAIN);
	EXPECT_INT(receive(a, id, 0, 0, 0, NULL), 0);
	EXPECT_INT(send_number(a, id, 1, 4, 3, MSGF_NOWAIT), -EAGAIN);
	EXPECT_INT(send_number(a, id, 1, 3, 3, MSGF_NOWAIT), 0);
	EXPECT_INT(queue_of(a, id)->bytes, 3);
	EXPECT_INT(queue_of(a, id)->count, 3);
	EXPECT_INT(change_queue(a, id, 0, 0600, UINT64_MAX), 0);
	EXPECT_INT(send_number(a, id, 1, 5000, 4, MSGF_NOWAIT), 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* ---- Sleepers ---------------------------------------------------------------------------- */

static void hand_off_shows_the_receivers_thread(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join_thread(engine_join(*state));
	int32_t id = new_queue(a);
	struct got got = {0};

	EXPECT_INT(receive(b, id, 64, -5, 0, NULL), OUTCOME_SLEEP);
	EXPECT_INT(send_number(a, id, 6, 8, 1, 0), 0);
	EXPECT_INT(actor_state(b), WAIT_WAITING);
	EXPECT_INT(send_number(a, id, 5, 8, 2, 0), 0);
	EXPECT_INT(actor_state(b), WAIT_GRANTED);
	EXPECT_INT(receive_ended(b, 64, &got), 0);
	EXPECT_INT(got.number, 2);
	EXPECT_INT(got.type, 5);
	EXPECT_INT(queue_of(a, id)->count, 1);
	EXPECT_INT(queue_of(a, id)->lrpid, actor_slot(b)->tid);
	EXPECT(actor_slot(b)->tid != b->c.pid);
	EXPECT_INT(queue_of(a, id)->lspid, a->c.pid);
	EXPECT_INT(receive(b, id, 64, 0, 0, &got), 0);
	EXPECT_INT(queue_of(a, id)->lrpid, b->c.pid);
	EXPECT_INT(remove_queue(a, id), 0);
}

static void sender_that_fits_passes_one_that_does_not(void **state)
{
	struct actor *a = engine_join(*state), *large = engine_join(*state),
		     *small = engine_join(*state);
	int32_t id = new_queue(a);
	struct got got = {0};

	EXPECT_INT(change_queue(a, id, 0, 0600, 100), 0);
	EXPECT_INT(send_number(a, id, 1, 60, 1, 0), 0);
	EXPECT_INT(send_number(a, id, 1, 40, 2, 0), 0);
	EXPECT_INT(send_number(large, id, 1, 90, 3, 0), OUTCOME_SLEEP);
	EXPECT_INT(send_number(small, id, 1, 50, 4, 0), OUTCOME_SLEEP);
	EXPECT_INT(queue_of(a, id)->smallest, 50);
	EXPECT_INT(receive(a, id, 100, 0, 0, &got), 0);
	EXPECT_INT(got.number, 1);
	EXPECT_INT(actor_state(small), WAIT_GRANTED);
	EXPECT_INT(actor_state(large), WAIT_WAITING);
	EXPECT_INT(send_ended(small), 0);
	EXPECT_INT(queue_of(a, id)->lspid, small->c.pid);
	EXPECT_INT(engine_check(*state), 0);
	EXPECT_INT(receive(a, id, 100, 0, 0, &got), 0);
	EXPECT_INT(got.number, 2);
	EXPECT_INT(receive(a, id, 100, 0, 0, &got), 0);
	EXPECT_INT(got.number, 4);
	EXPECT_INT(send_ended(large), 0);
	EXPECT_INT(receive(a, id, 100, 0, 0, &got), 0);
	EXPECT_INT(got.number, 3);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* A killed sleeper that nobody has buried yet neither receives nor sends. */
static void the_dead_take_no_part(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state), *d = engine_join(*state);
	int32_t id = new_queue(a);
	struct got got = {0};

	EXPECT_INT(receive(b, id, 64, 0, 0, NULL), OUTCOME_SLEEP);
	engine_kill(b);
	EXPECT_INT(send_number(a, id, 1, 8, 1, 0), 0);
	EXPECT_INT(receive(a, id, 8, 0, MSGF_NOWAIT, &got), 0);
	EXPECT_INT(got.number, 1);
	EXPECT_INT(change_queue(a, id, 0, 0600, 8), 0);
	EXPECT_INT(send_number(a, id, 1, 8, 1, 0), 0);
	EXPECT_INT(send_number(d, id, 1, 8, 2, 0), OUTCOME_SLEEP);
	engine_kill(d);
	EXPECT_INT(receive(a, id, 8, 0, 0, NULL), 0);
	EXPECT_INT(queue_of(a, id)->count, 0);
	engine_sweep(a);
	EXPECT_INT(engine_check(*state), 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

static void removal_ends_every_sleep(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state), *d = engine_join(*state);
	int32_t id = new_queue(a);

	EXPECT_INT(change_queue(a, id, 0, 0600, 8), 0);
	EXPECT_INT(send_number(a, id, 1, 8, 1, 0), 0);
	EXPECT_INT(receive(b, id, 64, 2, 0, NULL), OUTCOME_SLEEP);
	EXPECT_INT(send_number(d, id, 1, 8, 2, 0), OUTCOME_SLEEP);
	EXPECT_INT(remove_queue(a, id), 0);
	EXPECT_INT(receive_ended(b, 64, NULL), -EIDRM);
	EXPECT_INT(send_ended(d), -EIDRM);
	EXPECT_INT(receive(b, id, 64, 2, 0, NULL), -EINVAL);
	EXPECT_INT(engine_check(*state), 0);
}

/* After IPC_SET: by the credentials in the waiter, or, with more groups than it holds, by itself.
 */
static void changed_permission_is_asked_for_again(void **state)
{
	static gid_t groups[WHO_GROUPS + 1];
	struct actor *a = engine_join(*state), *b = engine_join(*state),
		     *many = engine_join(*state);
	int32_t id = new_queue(a);

	for (uint32_t i = 0; i <= WHO_GROUPS; i++)
		groups[i] = 500 + i;
	b->creds =
		(struct creds){.euid = 7, .fsgid = 7, .groups = groups, .group_count = WHO_GROUPS};
	many->creds = b->creds;
	many->creds.group_count++;
	EXPECT_INT(change_queue(a, id, 0, 0666, 100), 0);
	EXPECT_INT(receive(b, id, 64, 2, 0, NULL), OUTCOME_SLEEP);
	EXPECT_INT(receive(many, id, 64, 2, 0, NULL), OUTCOME_SLEEP);
	EXPECT_INT(change_queue(a, id, 0, 0664, 100), 0);
	EXPECT_INT(actor_state(b), WAIT_WAITING);
	EXPECT_INT(receive_ended(many, 64, NULL), -EAGAIN);
	EXPECT_INT(change_queue(a, id, 0, 0662, 100), 0);
	EXPECT_INT(receive_ended(b, 64, NULL), -EACCES);
	EXPECT_INT(send_number(a, id, 1, 100, 0, 0), 0);
	EXPECT_INT(send_number(b, id, 1, 10, 0, 0), OUTCOME_SLEEP);
	EXPECT_INT(change_queue(a, id, 0, 0660, 100), 0);
	EXPECT_INT(actor_state(b), WAIT_WAITING); /* no room: nobody asks */
	EXPECT_INT(receive(a, id, 100, 0, 0, NULL), 0);
	EXPECT_INT(send_ended(b), -EACCES);
	EXPECT_INT(queue_of(a, id)->count, 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* ---- User memory ------------------------------------------------------------------------- */

static void faults_leave_or_lose_as_in_linux(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_queue(a);

	EXPECT_INT(send_number(a, id, 1, 8, 1, 0), 0);
	a->copy_fault = 1;
	EXPECT_INT(receive(a, id, 8, 0, 0, NULL), -EFAULT);
	EXPECT_INT(queue_of(a, id)->count, 0);
	a->copy_fault = 1; /* the message in one; then it succeeds in parts */
	EXPECT_INT(send_number(a, id, 1, 8, 1, 0), 0);
	EXPECT_INT(receive(a, id, 8, 0, 0, NULL), 0);
	EXPECT_INT(send_number(a, id, 0, 8, 1, 0), -EINVAL);
	EXPECT_INT(engine_check(*state), 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* Starting over copies the text again only if the block has been used meanwhile. */
static void text_is_copied_once(void **state)
{
	static struct msg_buffer buffer = {.type = 1};
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_queue(a), other = new_queue(a);
	struct msg_send_request rq = {.id = id, .user = &buffer, .bytes = 60000, .now = NOW};
	uint64_t lock = ids_object_lock(FAMILY_MSG, (uint32_t)id);
	struct got got = {0};

	region_header(a->e->base)->limits.msgmax = 1 << 20;
	EXPECT_INT(change_queue(a, id, 0, 0600, 1 << 20), 0);
	for (uint32_t use = 0; use < 2; use++) {
		rq.copied = false;
		NUMBER_OF(buffer.text) = 1;
		seize(b, lock);
		EXPECT_INT(msg_send(&a->c, &rq), OUTCOME_BUSY);
		NUMBER_OF(buffer.text) = 2;
		if (use) { /* as a signal handler may */
			EXPECT_INT(send_number(a, other, 1, 8, 7, 0), 0);
			EXPECT_INT(receive(a, other, 8, 0, 0, NULL), 0);
		}
		let_loose(b, lock);
		EXPECT_INT(msg_send(&a->c, &rq), 0);
		EXPECT_INT(receive(a, id, 60000, 0, 0, &got), 0);
		EXPECT_INT(got.number, use ? 2 : 1);
	}
	EXPECT_INT(remove_queue(a, id), 0);
	EXPECT_INT(remove_queue(a, other), 0);
}

static void copy_leaves_the_message(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_queue(a);
	struct got got = {0};

	for (uint32_t n = 0; n < 3; n++)
		EXPECT_INT(send_number(a, id, 1 + n, 100 * n, n, 0), 0);
	EXPECT_INT(receive(a, id, 8192, 2, MSGF_COPY | MSGF_NOWAIT, &got), 0);
	EXPECT_INT(got.type, 3);
	EXPECT_INT(got.bytes, 200);
	EXPECT_INT(got.number, 2);
	EXPECT_INT(receive(a, id, 8192, 3, MSGF_COPY | MSGF_NOWAIT, NULL), -ENOMSG);
	EXPECT_INT(receive(a, id, 199, 2, MSGF_COPY | MSGF_NOWAIT, NULL), -E2BIG);
	EXPECT_INT(receive(a, id, 199, 2, MSGF_COPY | MSGF_NOWAIT | MSGF_NOERROR, NULL), -EINVAL);
	EXPECT_INT(receive(a, id, 8192, 0, MSGF_COPY, NULL), -EINVAL);
	EXPECT_INT(queue_of(a, id)->count, 3);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static uint64_t arena_chunks(const struct engine *e)
{
	struct arena_usage u;

	arena_usage(e->base, ARENA_GENERAL, &u);
	return u.chunks;
}

/* To and fro between two threads needs no pool: the same few blocks go round. */
static void blocks_go_round(void **state)
{
	struct actor *a = engine_join(*state), *b = engine_join(*state);
	int32_t id = new_queue(a);

	for (uint32_t n = 0; n < 4; n++) {
		EXPECT_INT(send_number(a, id, 1, 64, n, 0), 0);
		EXPECT_INT(receive(b, id, 64, 0, 0, NULL), 0);
	}
	EXPECT_INT(engine_blocks(*state), 3);
	for (uint32_t pool = 0; pool < ARENA_POOLS; pool++) /* no pool: its lock is not free */
		region_header(a->e->base)->arena[ARENA_GENERAL].pool[pool].lock =
			b->c.thread_ix + 1;
	for (uint32_t n = 0; n < 100; n++) {
		EXPECT_INT(send_number(a, id, 1, 64, n, 0), 0);
		EXPECT_INT(receive(b, id, 64, 0, 0, NULL), 0);
	}
	for (uint32_t pool = 0; pool < ARENA_POOLS; pool++)
		region_header(a->e->base)->arena[ARENA_GENERAL].pool[pool].lock = 0;
	EXPECT_INT(engine_blocks(*state), 3);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* A queue that was deep keeps a few blocks, and its chunks go back to the system. */
static void drained_queue_keeps_little(void **state)
{
	static const uint64_t size[] = {0, 100, 1000, 8000, 30000, 200000};
	struct actor *a = engine_join(*state);
	int32_t id = new_queue(a);

	region_header(a->e->base)->limits.msgmax = 1 << 20;
	EXPECT_INT(change_queue(a, id, 0, 0600, 1 << 26), 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t k = 0; k < sizeof(size) / sizeof(size[0]); k++)
			for (uint32_t n = 0; n < 60; n++)
				EXPECT_INT(send_number(a, id, 1 + n % 5, size[k], n, 0), 0);
		EXPECT(arena_chunks(*state) > 100);
		for (uint32_t n = 0; n < 60 * sizeof(size) / sizeof(size[0]); n++)
			EXPECT_INT(receive(a, id, 200000, 0, 0, NULL), 0);
		EXPECT(engine_blocks(*state) <= QUEUE_CACHES * QUEUE_CACHE_MOST + 1);
		EXPECT(arena_chunks(*state) <= 40);
		EXPECT_INT(engine_check(*state), 0);
	}
	EXPECT_INT(remove_queue(a, id), 0);
	EXPECT(engine_blocks(*state) <= 1);
}

static void removal_gives_messages_back(void **state)
{
	struct actor *a = engine_join(*state);
	int32_t id = new_queue(a);
	uint64_t count, bytes;

	for (uint32_t n = 0; n < 100; n++)
		EXPECT_INT(send_number(a, id, 1 + n % 7, n, n, 0), 0);
	msg_totals(a->e->base, &count, &bytes);
	EXPECT_INT(count, 100);
	EXPECT_INT(bytes, 4950);
	EXPECT_INT(msg_remove(&a->c, id), OUTCOME_DONE);
	EXPECT_INT(engine_check(a->e), 0); /* it is known what becomes of them */
	EXPECT_INT(msg_purge(&a->c, a->c.thread_ix), OUTCOME_DONE);
	EXPECT(engine_blocks(*state) <= 1);
	msg_totals(a->e->base, &count, &bytes);
	EXPECT_INT(count + bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(order_is_that_of_arrival),
		TEST(room_is_of_bytes_and_of_messages),
		TEST(hand_off_shows_the_receivers_thread),
		TEST(sender_that_fits_passes_one_that_does_not),
		TEST(the_dead_take_no_part),
		TEST(removal_ends_every_sleep),
		TEST(changed_permission_is_asked_for_again),
		TEST(faults_leave_or_lose_as_in_linux),
		TEST(text_is_copied_once),
		TEST(copy_leaves_the_message),
		TEST(blocks_go_round),
		TEST(drained_queue_keeps_little),
		TEST(removal_gives_messages_back),
	};

	return cmocka_run_group_tests_name("msg-queue", tests, NULL, NULL);
}
