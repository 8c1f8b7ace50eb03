// SPDX-License-Identifier: MIT
/*
 * conform-common FAMILY: identifiers, keys, creation, index commands and the view in
 * /proc/sysvipc, which the three families share. Run it in a namespace of its own: the first test
 * asks what a fresh one gives.
 */
#include "conform/family.h"

#include <sched.h>

enum {
	INDEX_BITS = 15,
	INDEX_MASK = (1 << INDEX_BITS) - 1,
	WINDOW_MIN = 64,
	SEQ_COUNT = 65535,
	MODEL_MAX = 2048,
};

static int index_of(int id)
{
	return id & INDEX_MASK;
}

static void remove_now(int id)
{
	CHECK_OK(family->ctl(id, IPC_RMID, NULL));
}

/* ---- which id a new object gets ---- */

static void ids_of_a_fresh_namespace_count_from_0(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++)
		CHECK_INT(family_new(0600), i);
}

/* Nothing else is in use, so the window is the smallest one. */
static void ids_go_round_a_window_of_64(void **state)
{
	int last = family_new(0600);

	(void)state;
	remove_now(last);
	for (int i = 0; i < 3 * WINDOW_MIN; i++) {
		int index = (index_of(last) + 1) % WINDOW_MIN;
		int seq = (last >> INDEX_BITS) + (index <= index_of(last));
		int id = family_new(0600);

		CHECK_INT(id, (seq % SEQ_COUNT << INDEX_BITS) + index);
		remove_now(id);
		last = id;
	}
}

/* The rule as a whole, against which each id of a longer life is compared. */
struct id_model {
	bool used[MODEL_MAX];
	int in_use;
	int last_index;
	int seq;
};

static int model_next(struct id_model *model)
{
	int window = model->in_use * 3 / 2 > WINDOW_MIN ? model->in_use * 3 / 2 : WINDOW_MIN;
	int index = model->last_index + 1;

	while (index < window && model->used[index])
		index++;
	if (index >= window)
		for (index = 0; model->used[index];)
			index++;
	if (index <= model->last_index)
		model->seq = (model->seq + 1) % SEQ_COUNT;
	model->last_index = index;
	model->used[index] = true;
	model->in_use++;
	return (model->seq << INDEX_BITS) + index;
}

static void ids_use_a_window_half_as_large_again_as_what_is_in_use(void **state)
{
	static struct id_model model;
	static int ids[MODEL_MAX];
	unsigned int random = 12345;
	int last = family_new(0600);

	(void)state;
	remove_now(last);
	memset(&model, 0, sizeof(model));
	model.last_index = index_of(last);
	model.seq = last >> INDEX_BITS;
	for (int step = 0; step < 4000; step++) {
		/* Mostly growing, then mostly shrinking, twice. */
		bool growing = step / 1000 % 2 == 0;

		random = random * 1103515245 + 12345;
		if (model.in_use > 0 && (random >> 16) % 10 < (growing ? 3 : 7)) {
			int victim = (int)((random >> 8) % (unsigned int)model.in_use);

			remove_now(ids[victim]);
			model.used[index_of(ids[victim])] = false;
			ids[victim] = ids[--model.in_use];
		} else {
			int id = (int)CHECK_OK(family->get(IPC_PRIVATE, 0600));

			family->own(id);
			ids[model.in_use] = id;
			CHECK_INT(id, model_next(&model));
		}
	}
}

static void ids_carry_the_sequence_shown_in_ipc_perm(void **state)
{
	int id = 0;

	(void)state;
	for (int i = 0; i < WINDOW_MIN + 6; i++) {
		id = family_new(0600);
		CHECK_INT(family_stat(id).perm.__seq, id >> INDEX_BITS);
		remove_now(id);
	}
	CHECK(id >> INDEX_BITS > 0);
}

static void ids_do_not_repeat_soon(void **state)
{
	static int ids[20 * WINDOW_MIN];

	(void)state;
	for (int i = 0; i < (int)ARRAY_COUNT(ids); i++) {
		ids[i] = family_new(0600);
		CHECK(ids[i] >= 0);
		remove_now(ids[i]);
		for (int k = 0; k < i; k++)
			CHECK(ids[k] != ids[i]);
	}
}

/*
 * The sequence runs through 0..65534; only then an id comes again. With 42 objects in use the
 * window is still the smallest one and has 22 free places, so this takes the fewest creations.
 */
static void ids_repeat_after_65535_rounds_of_the_window(void **state)
{
	const int in_use = WINDOW_MIN * 2 / 3;
	int first;
	int id;

	(void)state;
	if (strcmp(family->name, "msg") != 0)
		SKIP("takes long, asked of message queues only");
	for (int i = 0; i < in_use; i++)
		(void)family_new(0600);
	first = (int)CHECK_OK(family->get(IPC_PRIVATE, 0600));
	remove_now(first);
	for (long i = 1; i < (long)(WINDOW_MIN - in_use) * SEQ_COUNT; i++) {
		id = family->get(IPC_PRIVATE, 0600);
		if (id < 0 || id == first || id >> INDEX_BITS >= SEQ_COUNT ||
		    family->ctl(id, IPC_RMID, NULL) != 0)
			check_fail(__FILE__, __LINE__, "creation %ld gave %d after %d", i, id,
				   first);
	}
	CHECK_INT(family_new(0600), first);
}

static void ids_of_removed_objects_are_einval_also_when_the_index_is_used_again(void **state)
{
	union object_ds ds;
	int stale = family_new(0600);
	int id;

	(void)state;
	remove_now(stale);
	CHECK_ERR(family->ctl(stale, IPC_STAT, &ds), EINVAL);
	while (index_of(id = family_new(0600)) != index_of(stale))
		remove_now(id);
	CHECK(id != stale);
	CHECK_ERR(family->ctl(stale, IPC_STAT, &ds), EINVAL);
	CHECK_ERR(family->ctl(stale, IPC_RMID, NULL), EINVAL);
	ds = family_stat(id);
	CHECK_ERR(family->ctl(stale, IPC_SET, &ds), EINVAL);
	CHECK_OK(family->ctl(id, IPC_STAT, &ds));
}

static void write_next_id(const char *value)
{
	if (write_file(family->next_id_path, value) != 0)
		SKIP("the next id cannot be chosen here");
}

static void ids_can_be_chosen_once_by_next_id(void **state)
{
	const int seq = 77;
	char text[32];
	int wanted;
	int id;

	(void)state;
	id = family_new(0600);
	wanted = (seq << INDEX_BITS) + (index_of(id) + 20) % WINDOW_MIN;
	read_file(family->next_id_path, text, sizeof(text));
	CHECK_INT(strcmp(text, "-1\n"), 0);
	(void)snprintf(text, sizeof(text), "%d", wanted);
	write_next_id(text);
	/* What reads back as "none" cannot be written. */
	CHECK_INT(write_file(family->next_id_path, "-1"), EINVAL);
	/* Only a creation uses it up. */
	CHECK_ERR(family->get(test_key(1), 0600), ENOENT);
	CHECK_INT(family_new(0600), wanted);
	read_file(family->next_id_path, text, sizeof(text));
	CHECK_INT(strcmp(text, "-1\n"), 0);
	id = family_new(0600);
	CHECK(id >> INDEX_BITS != seq);
	/* An index in use gives the next higher free one. */
	(void)snprintf(text, sizeof(text), "%d", wanted + (1 << INDEX_BITS));
	write_next_id(text);
	CHECK_INT(family_new(0600), wanted + (1 << INDEX_BITS) + 1);
}

/* ---- keys ---- */

static void key_private_creates_each_time(void **state)
{
	static const int flags[] = {0600, IPC_CREAT | 0600, IPC_CREAT | IPC_EXCL | 0600, IPC_EXCL};
	int ids[ARRAY_COUNT(flags)];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(flags); i++) {
		ids[i] = family->own((int)CHECK_OK(family->get(IPC_PRIVATE, flags[i])));
		for (size_t k = 0; k < i; k++)
			CHECK(ids[k] != ids[i]);
	}
	CHECK_INT(family_stat(ids[0]).perm.__key, IPC_PRIVATE);
}

static void key_is_free_at_once_after_removal(void **state)
{
	int first = family->own((int)CHECK_OK(family->get(test_key(1), IPC_CREAT | 0600)));
	int second;

	(void)state;
	CHECK_INT(family->get(test_key(1), 0), first);
	remove_now(first);
	CHECK_ERR(family->get(test_key(1), 0), ENOENT);
	second = family->own((int)CHECK_OK(family->get(test_key(1), IPC_CREAT | IPC_EXCL | 0600)));
	CHECK(second != first);
}

static void keys_differ_in_any_bit(void **state)
{
	key_t keys[34];
	int ids[ARRAY_COUNT(keys)];

	(void)state;
	for (int bit = 0; bit < 32; bit++)
		keys[bit] = (key_t)(1u << bit);
	keys[32] = -1;
	keys[33] = 0x7fffffff;
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		ids[i] = family->own(
			(int)CHECK_OK(family->get(keys[i], IPC_CREAT | IPC_EXCL | 0600)));
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		CHECK_INT(family->get(keys[i], 0), ids[i]);
		CHECK_INT(family_stat(ids[i]).perm.__key, keys[i]);
	}
}

static void keys_of_many_objects_are_all_found(void **state)
{
	enum { COUNT = 3000 };
	static int ids[COUNT];

	(void)state;
	for (unsigned int i = 0; i < COUNT; i++)
		ids[i] = family->own((int)CHECK_OK(family->get(test_key(i), IPC_CREAT | 0600)));
	for (unsigned int i = 0; i < COUNT; i += 2)
		remove_now(ids[i]);
	for (unsigned int i = 0; i < COUNT; i++) {
		if (i % 2 == 0)
			CHECK_ERR(family->get(test_key(i), 0), ENOENT);
		else
			CHECK_INT(family->get(test_key(i), 0), ids[i]);
	}
}

static void get_missing_key_is_enoent(void **state)
{
	(void)state;
	CHECK_ERR(family->get(test_key(1), 0), ENOENT);
	CHECK_ERR(family->get(test_key(1), 0600), ENOENT);
	CHECK_ERR(family->get(test_key(1), IPC_EXCL | 0600), ENOENT);
}

static void get_existing_key_is_found_with_and_without_creat(void **state)
{
	int id = family->own((int)CHECK_OK(family->get(test_key(1), IPC_CREAT | 0600)));

	(void)state;
	CHECK_INT(family->get(test_key(1), 0), id);
	CHECK_INT(family->get(test_key(1), 0600), id);
	CHECK_INT(family->get(test_key(1), IPC_CREAT | 0600), id);
}

static void get_creat_excl_of_existing_key_is_eexist(void **state)
{
	(void)state;
	family->own((int)CHECK_OK(family->get(test_key(1), IPC_CREAT | IPC_EXCL | 0600)));
	CHECK_ERR(family->get(test_key(1), IPC_CREAT | IPC_EXCL | 0600), EEXIST);
}

static void get_excl_without_creat_is_ignored(void **state)
{
	int id = family->own((int)CHECK_OK(family->get(test_key(1), IPC_CREAT | 0600)));

	(void)state;
	CHECK_INT(family->get(test_key(1), IPC_EXCL | 0600), id);
}

static void get_unknown_flags_are_ignored(void **state)
{
	const int unknown = 0x100000;
	int id = family->own((int)CHECK_OK(family->get(test_key(1), IPC_CREAT | unknown | 0600)));

	(void)state;
	CHECK_INT(family_stat(id).perm.mode, 0600);
	CHECK_INT(family->get(test_key(1), unknown), id);
}

static void get_creat_excl_has_one_winner_among_many(void **state)
{
	enum { KIDS = 4, ROUNDS = 50 };
	pid_t kids[KIDS];

	(void)state;
	for (int k = 0; k < KIDS; k++) {
		IN_CHILD (kids[k]) {
			for (int i = 0; i < ROUNDS; i++) {
				int id;

				/* All start each round together. */
				atomic_fetch_add(&board->flag[i % 60], 1);
				while (atomic_load(&board->flag[i % 60]) < KIDS * (i / 60 + 1))
					(void)sched_yield();
				id = family->get(test_key((unsigned int)i),
						 IPC_CREAT | IPC_EXCL | 0600);
				if (id == -1) {
					CHECK_INT(errno, EEXIST);
					continue;
				}
				atomic_fetch_add(&board->number[i], 1);
			}
		}
	}
	for (int k = 0; k < KIDS; k++)
		child_ok(kids[k]);
	for (int i = 0; i < ROUNDS; i++) {
		family->own((int)CHECK_OK(family->get(test_key((unsigned int)i), 0)));
		CHECK_INT(board->number[i], 1);
	}
}

/* ---- a new object ---- */

static void create_fills_in_mode_and_times(void **state)
{
	static const int modes[] = {0, 0600, 0777, 0421};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
		time_t before = second_before();
		int id = family_new(modes[i]);
		union object_ds ds;

		if (geteuid() != 0 && !(modes[i] & 0400))
			continue;
		ds = family_stat(id);
		CHECK_INT(ds.perm.mode, modes[i]);
		CHECK(family->ctime_of(&ds) >= before);
		CHECK(family->ctime_of(&ds) <= second_after());
		CHECK(family->is_unused(&ds));
		CHECK_INT(ds.perm.uid, geteuid());
		CHECK_INT(ds.perm.gid, getegid());
	}
}

static void create_takes_the_effective_ids(void **state)
{
	union object_ds ds;
	pid_t kid;

	(void)state;
	need_users();
	/* Who changes identity must have met the namespace before: it may not get in later. */
	CHECK_ERR(family->get(test_key(1), 0), ENOENT);
	IN_CHILD (kid) {
		CHECK_OK(setresgid(33, 44, 33));
		CHECK_OK(setresuid(11, 22, 11));
		board->number[0] = CHECK_OK(family->get(IPC_PRIVATE, 0600));
	}
	child_ok(kid);
	ds = family_stat(family->own((int)board->number[0]));
	CHECK_INT(ds.perm.uid, 22);
	CHECK_INT(ds.perm.cuid, 22);
	CHECK_INT(ds.perm.gid, 44);
	CHECK_INT(ds.perm.cgid, 44);
}

static void create_outlives_its_creator(void **state)
{
	pid_t kid;

	(void)state;
	IN_CHILD (kid)
		board->number[0] = CHECK_OK(family->get(test_key(1), IPC_CREAT | 0600));
	child_ok(kid);
	family->own((int)board->number[0]);
	CHECK_INT(family->get(test_key(1), 0), board->number[0]);
}

/* ---- index commands ---- */

static void index_stat_takes_an_index_and_returns_the_id(void **state)
{
	static const int any[] = {0, 1};
	int id = 0;

	(void)state;
	/* One with a sequence above 0, so that id and index differ. */
	do
		id = family_new(0600);
	while (id >> INDEX_BITS == 0 && (remove_now(id), true));
	for (size_t i = 0; i < ARRAY_COUNT(any); i++) {
		int cmd = any[i] ? family->stat_index_any : family->stat_index;
		union object_ds ds;

		memset(&ds, 0, sizeof(ds));
		CHECK_INT(family->ctl(index_of(id), cmd, &ds), id);
		CHECK_INT(ds.perm.__seq, id >> INDEX_BITS);
		CHECK_INT(ds.perm.mode, 0600);
		/* Bits above the index are not looked at. */
		CHECK_INT(family->ctl(index_of(id) | 5 << INDEX_BITS, cmd, &ds), id);
		CHECK_INT(family->ctl(id, cmd, &ds), id);
	}
}

static void index_stat_of_an_unused_index_is_einval(void **state)
{
	union object_ds ds;
	int id = family_new(0600);

	(void)state;
	CHECK_ERR(family->ctl(index_of(id) + 1, family->stat_index, &ds), EINVAL);
	CHECK_ERR(family->ctl(index_of(id) + 1, family->stat_index_any, &ds), EINVAL);
	CHECK_ERR(family->ctl(INDEX_MASK, family->stat_index, &ds), EINVAL);
	CHECK_ERR(family->ctl(-1, family->stat_index, &ds), EINVAL);
	CHECK_ERR(family->ctl(-1, family->stat_index_any, &ds), EINVAL);
}

static void index_info_returns_the_highest_index_in_use(void **state)
{
	static const int kinds[] = {0, 1};
	int ids[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		int cmd = kinds[i] ? family->info : IPC_INFO;
		union object_info info;
		int highest = 0;

		CHECK_INT(family->ctl(0, cmd, &info), 0);
		for (size_t k = 0; k < ARRAY_COUNT(ids); k++) {
			ids[k] = family_new(0600);
			if (index_of(ids[k]) > highest)
				highest = index_of(ids[k]);
		}
		CHECK_INT(family->ctl(0, cmd, &info), highest);
		/* The id says nothing, as long as it is not negative. */
		CHECK_INT(family->ctl(12345, cmd, &info), highest);
		for (size_t k = 0; k < ARRAY_COUNT(ids); k++) {
			int rest = 0;

			remove_now(ids[k]);
			for (size_t m = k + 1; m < ARRAY_COUNT(ids); m++)
				if (index_of(ids[m]) > rest)
					rest = index_of(ids[m]);
			CHECK_INT(family->ctl(0, cmd, &info), rest);
		}
	}
}

static void index_info_with_a_negative_id_is_einval(void **state)
{
	union object_info info;

	(void)state;
	CHECK_ERR(family->ctl(-1, IPC_INFO, &info), EINVAL);
	CHECK_ERR(family->ctl(-1, family->info, &info), EINVAL);
}

static void index_loop_from_0_to_info_meets_every_object(void **state)
{
	union object_info info;
	union object_ds ds;
	int ids[20];
	int highest;
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		ids[i] = family_new(0600);
	highest = family->ctl(0, family->info, &info);
	for (int index = 0; index <= highest; index++) {
		int id = family->ctl(index, family->stat_index, &ds);

		for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
			found += id == ids[i];
	}
	CHECK_INT(found, ARRAY_COUNT(ids));
}

/* ---- /proc/sysvipc ---- */

static void proc_view_shows_header_and_objects_in_index_order(void **state)
{
	char text[8192];
	const char *at = text;
	char line[400];
	int ids[5];

	(void)state;
	/* Start low, so that index order is the order of creation. */
	do {
		ids[0] = family_new(0640);
		if (index_of(ids[0]) < 32)
			break;
		remove_now(ids[0]);
	} while (true);
	for (size_t i = 1; i < ARRAY_COUNT(ids); i++)
		ids[i] = family->own((int)CHECK_OK(
			family->get((key_t)(0x90000000u + i), IPC_CREAT | (int)(0600 + i))));
	read_file(family->proc_path, text, sizeof(text));
	CHECK_INT(strncmp(at, family->proc_header, strlen(family->proc_header)), 0);
	at += strlen(family->proc_header);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
		union object_ds ds = family_stat(ids[i]);
		size_t length;

		family->proc_line(&ds, ids[i], line, sizeof(line));
		length = strlen(line);
		if (strncmp(at, line, length) != 0 || at[length] != '\n')
			check_fail(__FILE__, __LINE__, "line %zu is not '%s' but:\n%s", i, line,
				   at);
		at += length + 1;
	}
	CHECK_INT(*at, '\0');
}

static void proc_view_of_nothing_is_the_header(void **state)
{
	char text[1024];
	FILE *file;

	(void)state;
	read_file(family->proc_path, text, sizeof(text));
	CHECK_INT(strcmp(text, family->proc_header), 0);
	file = fopen(family->proc_path, "r");
	CHECK(file != NULL);
	CHECK(fgets(text, sizeof(text), file) != NULL);
	CHECK_INT(strcmp(text, family->proc_header), 0);
	CHECK(fgets(text, sizeof(text), file) == NULL);
	(void)fclose(file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(ids_of_a_fresh_namespace_count_from_0),
		TEST(ids_go_round_a_window_of_64),
		TEST(ids_use_a_window_half_as_large_again_as_what_is_in_use),
		TEST(ids_carry_the_sequence_shown_in_ipc_perm),
		TEST(ids_do_not_repeat_soon),
		TEST(ids_repeat_after_65535_rounds_of_the_window),
		TEST(ids_of_removed_objects_are_einval_also_when_the_index_is_used_again),
		TEST(ids_can_be_chosen_once_by_next_id),
		TEST(key_private_creates_each_time),
		TEST(key_is_free_at_once_after_removal),
		TEST(keys_differ_in_any_bit),
		TEST(keys_of_many_objects_are_all_found),
		TEST(get_missing_key_is_enoent),
		TEST(get_existing_key_is_found_with_and_without_creat),
		TEST(get_creat_excl_of_existing_key_is_eexist),
		TEST(get_excl_without_creat_is_ignored),
		TEST(get_unknown_flags_are_ignored),
		TEST(get_creat_excl_has_one_winner_among_many),
		TEST(create_fills_in_mode_and_times),
		TEST(create_takes_the_effective_ids),
		TEST(create_outlives_its_creator),
		TEST(index_stat_takes_an_index_and_returns_the_id),
		TEST(index_stat_of_an_unused_index_is_einval),
		TEST(index_info_returns_the_highest_index_in_use),
		TEST(index_info_with_a_negative_id_is_einval),
		TEST(index_loop_from_0_to_info_meets_every_object),
		TEST(proc_view_shows_header_and_objects_in_index_order),
		TEST(proc_view_of_nothing_is_the_header),
	};

	family_begin(&argc, &argv);
	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name(family->name, tests, NULL, NULL);
}
