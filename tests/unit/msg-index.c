// SPDX-License-Identifier: MIT
/* The index of messages and of sleeping receivers answers what looking at everything answers. */
#include <stdio.h>
#include <time.h>

#include "msg-calls.h"

#define SLEEPERS 60

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static void seed(void)
{
	const char *given = getenv("SEED");

	random_state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	printf("SEED=%llu\n", (unsigned long long)random_state);
}

/* Types that collide often, with the ends of the range. */
static int64_t some_type(uint32_t types)
{
	uint32_t k = random_below(types + 2);

	return k == types ? INT64_MAX : k > types ? INT64_MAX - 1 : (int64_t)k + 1;
}

static uint32_t depth_of(struct actor *a, uint32_t ref)
{
	struct msg_shm *m = ref ? msg_at(a->e->base, ref) : NULL;
	uint32_t l, r;

	if (!m)
		return 0;
	l = depth_of(a, m->tree.left);
	r = depth_of(a, m->tree.right);
	return 1 + (l > r ? l : r);
}

static void random_wish(int64_t *ret_type, uint32_t *ret_flags, uint32_t types)
{
	*ret_flags = 0;
	*ret_type = some_type(types);
	switch (random_below(5)) {
	case 0:
		*ret_type = 0;
		break;
	case 1:
		*ret_type = -*ret_type;
		break;
	case 2:
		*ret_flags = MSGF_EXCEPT;
		break;
	default:
		break;
	}
}

/* Messages come and go by all kinds of wishes; the checker asks the index and compares. */
static void messages_are_found_as_by_looking(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e);
	int32_t id = new_queue(a);

	seed();
	EXPECT_INT(change_queue(a, id, 0, 0600, 1 << 20), 0);
	for (uint32_t round = 0; round < 40; round++) {
		uint32_t types = 1 + random_below(round % 2 ? 4 : 60), most = 1 + random_below(120);

		for (uint32_t n = 0; n < 300; n++) {
			int64_t type;
			uint32_t flags;

			if (queue_of(a, id)->count < most && random_below(2)) {
				EXPECT_INT(send_number(a, id, some_type(types), 4, n, 0), 0);
			} else {
				random_wish(&type, &flags, types);
				(void)receive(a, id, 64, type, flags | MSGF_NOWAIT, NULL);
			}
			if (n % 16 == 0)
				EXPECT_INT(engine_check(e), 0);
		}
		EXPECT_INT(engine_check(e), 0);
	}
	while (receive(a, id, 64, 0, MSGF_NOWAIT, NULL) == 0)
		;
	EXPECT_INT(queue_of(a, id)->root_ref, 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

static void tree_of_many_types_is_shallow(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e);
	int32_t id = new_queue(a);

	EXPECT_INT(change_queue(a, id, 0, 0600, 1 << 20), 0);
	for (uint32_t n = 1; n <= 4096; n++)
		EXPECT_INT(send_number(a, id, n, 4, n, 0), 0);
	EXPECT(depth_of(a, queue_of(a, id)->root_ref) < 48);
	for (uint32_t n = 4096; n > 0; n -= 2) {
		struct got got = {0};

		EXPECT_INT(receive(a, id, 4, n, MSGF_NOWAIT, &got), 0);
		EXPECT_INT(got.number, n);
	}
	EXPECT_INT(engine_check(e), 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* Receivers sleep and leave in any order; each message goes to the oldest that takes it. */
static void sleepers_are_found_as_by_looking(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e), *sleeper[SLEEPERS];
	int32_t id = new_queue(a);

	seed();
	for (uint32_t k = 0; k < SLEEPERS; k++)
		sleeper[k] = engine_join(e);
	for (uint32_t n = 0; n < 6000; n++) {
		uint32_t k = random_below(SLEEPERS), flags, types = 1 + n / 1000 * 3;
		struct actor *s = sleeper[k];
		int64_t type = some_type(types);

		if (random_below(3) == 0) {
			uint32_t link = msg_scan_match(&a->c, queue_of(a, id), type);

			EXPECT_INT(send_number(a, id, type, 4, n, 0), 0);
			for (k = 0; link && sleeper[k]->c.thread_ix != link - 1;)
				k++;
			if (link) {
				struct got got = {0};

				EXPECT_INT(actor_state(sleeper[k]), WAIT_GRANTED);
				EXPECT_INT(receive_ended(sleeper[k], 64, &got), 0);
				EXPECT_INT(got.number, n);
				EXPECT_INT(got.type, type);
			} else {
				EXPECT_INT(receive(a, id, 64, 0, MSGF_NOWAIT, NULL), 0);
			}
		} else if (actor_state(s) == WAIT_WAITING) {
			EXPECT(leaves(s));
		} else {
			random_wish(&type, &flags, types);
			EXPECT_INT(receive(s, id, 64, type, flags, NULL), OUTCOME_SLEEP);
		}
		if (n % 8 == 0)
			EXPECT_INT(engine_check(e), 0);
	}
	for (uint32_t k = 0; k < SLEEPERS; k++)
		if (actor_state(sleeper[k]) == WAIT_WAITING)
			EXPECT(leaves(sleeper[k]));
	EXPECT_INT(queue_of(a, id)->waiting, 0);
	EXPECT_INT(queue_of(a, id)->exact_root_link, 0);
	EXPECT_INT(queue_of(a, id)->other_head_link, 0);
	EXPECT_INT(remove_queue(a, id), 0);
}

/* A lookup must not depend on what does not match: it may not even be able to read it. */
static void what_does_not_match_is_not_looked_at(void **state)
{
	struct engine *e = *state;
	struct actor *a = engine_join(e);
	int32_t id = new_queue(a);
	uint32_t middle;
	struct got got = {0};

	EXPECT_INT(change_queue(a, id, 0, 0600, 1 << 20), 0);
	for (uint32_t n = 0; n < 100; n++)
		EXPECT_INT(send_number(a, id, 7, 4, n, 0), 0);
	EXPECT_INT(send_number(a, id, 8, 4, 100, 0), 0);
	/* Break the chain inside the run: a walk would end there. */
	middle = msg_at(e->base, queue_of(a, id)->head_ref)->next_ref;
	middle = msg_at(e->base, middle)->next_ref;
	got.number = msg_at(e->base, middle)->next_ref;
	msg_at(e->base, middle)->next_ref = 0;
	EXPECT(msg_index_find(&a->c, queue_of(a, id), MSG_KIND_EXACT, 8));
	EXPECT(msg_index_find(&a->c, queue_of(a, id), MSG_KIND_OTHER, 7));
	EXPECT(!msg_scan_find(&a->c, queue_of(a, id), MSG_KIND_EXACT, 8));
	msg_at(e->base, middle)->next_ref = got.number;
	EXPECT_INT(receive(a, id, 4, 7, MSGF_EXCEPT | MSGF_NOWAIT, &got), 0);
	EXPECT_INT(got.number, 100);
	EXPECT_INT(remove_queue(a, id), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_are_found_as_by_looking),
		TEST(tree_of_many_types_is_shallow),
		TEST(sleepers_are_found_as_by_looking),
		TEST(what_does_not_match_is_not_looked_at),
	};

	return cmocka_run_group_tests_name("msg-index", tests, NULL, NULL);
}
