// SPDX-License-Identifier: MIT
/*
 * conform-msg: msgsnd and msgrcv as far as nobody sleeps: the order of the checks, room, which
 * message is taken, what is recorded. MSG_COPY, msgctl and the limits are conform-msgctl's.
 */
#include "conform/msg_calls.h"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	BAD_ID = 0x7fffffff,
};

static struct message buffer;

/* A message whose type is readable and whose text is not: the last bytes of a page. */
static void *message_without_text(long type)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map =
		mmap(NULL, page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	CHECK_OK(mprotect(map + page, page, PROT_NONE));
	memcpy(map + page - sizeof(type), &type, sizeof(type));
	return map + page - sizeof(type);
}

static void free_message_without_text(void *message)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	CHECK_OK(munmap((char *)message + sizeof(long) - page, page * 2));
}

/* ---- a new queue ---- */

static void new_queue_is_empty_and_has_the_default_room(void **state)
{
	struct msqid_ds ds = msg_stat(msg_new());

	(void)state;
	CHECK_INT(ds.msg_qbytes, MSGMNB);
	CHECK_INT(ds.msg_qnum, 0);
	CHECK_INT(ds.__msg_cbytes, 0);
	CHECK_INT(ds.msg_stime, 0);
	CHECK_INT(ds.msg_rtime, 0);
	CHECK_INT(ds.msg_lspid, 0);
	CHECK_INT(ds.msg_lrpid, 0);
	CHECK(ds.msg_ctime != 0);
}

static void new_queue_is_empty_where_another_one_was(void **state)
{
	(void)state;
	for (int i = 0; i < 200; i++) {
		int id = msg_new();

		TAKES_NOTHING(id, 0, 0);
		CHECK_INT(msg_stat(id).msg_lrpid, 0);
		CHECK_OK(msg_send(id, 1, "left behind", 0));
		CHECK_OK(msgctl(id, IPC_RMID, NULL));
	}
}

/* ---- msgsnd: the order of the checks ---- */

static void msgsnd_efault_of_the_type_comes_first(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_ERR(msgsnd(id, BAD_POINTER, 1, 0), EFAULT);
	CHECK_ERR(msgsnd(-1, BAD_POINTER, 1, 0), EFAULT);
	CHECK_ERR(msgsnd(id, BAD_POINTER, MSGMAX + 1, 0), EFAULT);
	CHECK_ERR(msgsnd(id, BAD_POINTER, (size_t)-1, 0), EFAULT);
}

static void msgsnd_bad_size_is_einval(void **state)
{
	static const size_t sizes[] = {MSGMAX + 1, 1 << 20, SIZE_MAX, (size_t)LONG_MAX + 1};
	int id = msg_new();

	(void)state;
	buffer.type = 1;
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		CHECK_ERR(msgsnd(id, &buffer, sizes[i], 0), EINVAL);
		CHECK_ERR(msgsnd(BAD_ID, &buffer, sizes[i], IPC_NOWAIT), EINVAL);
	}
	CHECK_OK(msgsnd(id, &buffer, MSGMAX, 0));
	CHECK_INT(msg_bytes(id), MSGMAX);
}

static void msgsnd_bad_type_is_einval_before_the_text_is_read(void **state)
{
	static const long types[] = {0, -1, LONG_MIN};
	int id = msg_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		void *message = message_without_text(types[i]);

		CHECK_ERR(msgsnd(id, message, 1, 0), EINVAL);
		CHECK_ERR(msgsnd(id, message, 0, 0), EINVAL);
		free_message_without_text(message);
	}
	CHECK_OK(msg_send(id, LONG_MAX, "x", 0));
	CHECK_OK(msg_send(id, 1, "x", 0));
}

static void msgsnd_efault_of_the_text_beats_an_unknown_id(void **state)
{
	void *message = message_without_text(1);
	int id = msg_new();

	(void)state;
	CHECK_ERR(msgsnd(id, message, 1, 0), EFAULT);
	CHECK_ERR(msgsnd(id, message, MSGMAX, 0), EFAULT);
	CHECK_ERR(msgsnd(BAD_ID, message, 1, 0), EFAULT);
	/* A negative one is seen earlier. */
	CHECK_ERR(msgsnd(-1, message, 1, 0), EINVAL);
	CHECK_OK(msgsnd(id, message, 0, 0));
	CHECK_INT(msg_count(id), 1);
	free_message_without_text(message);
}

static void msgsnd_bad_id_is_einval(void **state)
{
	static const int ids[] = {-1, INT_MIN, BAD_ID, 32767};
	int removed = msg_new();

	(void)state;
	CHECK_OK(msgctl(removed, IPC_RMID, NULL));
	CHECK_ERR(msg_send(removed, 1, "x", 0), EINVAL);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
		CHECK_ERR(msg_send(ids[i], 1, "x", IPC_NOWAIT), EINVAL);
}

static void msgsnd_needs_write_permission_before_room(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	need_users();
	msg_set_qbytes(id, 0);
	msg_chmod(id, 0604);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(msg_send(id, 1, "x", 0), EACCES);
		CHECK_ERR(msg_send(id, 1, "x", IPC_NOWAIT), EACCES);
	}
	child_ok(kid);
	msg_chmod(id, 0602);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(msg_send(id, 1, "x", IPC_NOWAIT), EAGAIN);
	}
	child_ok(kid);
}

static void unknown_flags_are_ignored(void **state)
{
	const int unknown = 0x100000;
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "x", unknown | MSG_EXCEPT | MSG_NOERROR));
	TAKES(id, 1, unknown, 1, "x");
}

/* ---- msgsnd: room and records ---- */

static void msgsnd_room_is_in_bytes_and_in_messages(void **state)
{
	static const struct {
		unsigned long room;
		size_t size;
		int fit;
	} cases[] = {
		{100, 100, 1}, {100, 101, 0}, {100, 50, 2}, {100, 33, 3}, {100, 1, 100}, {3, 0, 3},
		{0, 0, 0},     {1, 0, 1},     {1, 1, 1},    {5, 2, 2},    {10, 11, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int id = msg_new();

		msg_set_qbytes(id, cases[i].room);
		for (int k = 0; k < cases[i].fit; k++)
			CHECK_OK(msg_send_size(id, 1, cases[i].size, IPC_NOWAIT));
		CHECK_ERR(msg_send_size(id, 1, cases[i].size, IPC_NOWAIT), EAGAIN);
		CHECK_INT(msg_count(id), cases[i].fit);
		CHECK_INT(msg_bytes(id), cases[i].fit * (long)cases[i].size);
		if (cases[i].fit == 0)
			continue;
		/* One taken is one more that fits. */
		CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
		CHECK_OK(msg_send_size(id, 1, cases[i].size, IPC_NOWAIT));
		CHECK_ERR(msg_send_size(id, 1, cases[i].size, IPC_NOWAIT), EAGAIN);
	}
}

static void msgsnd_smaller_one_fits_where_a_larger_one_does_not(void **state)
{
	int id = msg_new();

	(void)state;
	msg_set_qbytes(id, 10);
	CHECK_OK(msg_send_size(id, 1, 6, 0));
	CHECK_ERR(msg_send_size(id, 1, 5, IPC_NOWAIT), EAGAIN);
	CHECK_OK(msg_send_size(id, 1, 4, IPC_NOWAIT));
	CHECK_ERR(msg_send_size(id, 1, 1, IPC_NOWAIT), EAGAIN);
	CHECK_OK(msg_send_size(id, 1, 0, IPC_NOWAIT));
}

static void msgsnd_records_time_process_and_amount(void **state)
{
	time_t before = second_before();
	int id = msg_new();
	struct msqid_ds ds;
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(msg_send(id, 1, "four", 0));
		CHECK_OK(msg_send(id, 1, "seven77", 0));
	}
	child_ok(kid);
	ds = msg_stat(id);
	CHECK_INT(ds.msg_lspid, kid);
	CHECK_INT(ds.msg_lrpid, 0);
	CHECK_INT(ds.msg_rtime, 0);
	CHECK(ds.msg_stime >= before);
	CHECK(ds.msg_stime <= second_after());
	CHECK_INT(ds.msg_qnum, 2);
	CHECK_INT(ds.__msg_cbytes, 11);
	/* A failure records nothing. */
	msg_set_qbytes(id, 11);
	CHECK_ERR(msg_send(id, 1, "x", IPC_NOWAIT), EAGAIN);
	CHECK_INT(msg_stat(id).msg_lspid, kid);
}

static void msgrcv_records_time_process_and_amount(void **state)
{
	int id = msg_new();
	struct msqid_ds sent;
	struct msqid_ds ds;
	pid_t kid;

	(void)state;
	CHECK_OK(msg_send(id, 1, "four", 0));
	CHECK_OK(msg_send(id, 2, "seven77", 0));
	sent = msg_stat(id);
	pass_second(sent.msg_stime);
	IN_CHILD (kid)
		TAKES(id, 2, 0, 2, "seven77");
	child_ok(kid);
	ds = msg_stat(id);
	CHECK_INT(ds.msg_lrpid, kid);
	CHECK_INT(ds.msg_lspid, getpid());
	CHECK_INT(ds.msg_stime, sent.msg_stime);
	CHECK(ds.msg_rtime > sent.msg_stime);
	CHECK(ds.msg_rtime <= second_after());
	CHECK_INT(ds.msg_ctime, sent.msg_ctime);
	CHECK_INT(ds.msg_qnum, 1);
	CHECK_INT(ds.__msg_cbytes, 4);
	TAKES_NOTHING(id, 2, 0);
	CHECK_INT(msg_stat(id).msg_lrpid, kid);
}

static void *thread_sends_and_receives(void *arg)
{
	CHECK_OK(msg_send(*(int *)arg, 1, "x", 0));
	TAKES(*(int *)arg, 0, 0, 1, "x");
	return NULL;
}

static void calls_of_a_thread_record_the_process(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pthread_t thread;

		CHECK_INT(pthread_create(&thread, NULL, thread_sends_and_receives, &id), 0);
		CHECK_INT(pthread_join(thread, NULL), 0);
	}
	child_ok(kid);
	CHECK_INT(msg_stat(id).msg_lspid, kid);
	CHECK_INT(msg_stat(id).msg_lrpid, kid);
}

/* ---- msgrcv: the order of the checks ---- */

static void msgrcv_negative_id_or_size_is_einval(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "x", 0));
	CHECK_ERR(msgrcv(-1, &buffer, 10, 0, 0), EINVAL);
	CHECK_ERR(msgrcv(id, &buffer, SIZE_MAX, 0, 0), EINVAL);
	CHECK_ERR(msgrcv(id, &buffer, (size_t)LONG_MAX + 1, 0, MSG_NOERROR), EINVAL);
	CHECK_ERR(msgrcv(BAD_ID, &buffer, 10, 0, IPC_NOWAIT), EINVAL);
	CHECK_INT(msg_count(id), 1);
	/* Larger than any message is fine. */
	CHECK_INT(msgrcv(id, &buffer, LONG_MAX, 0, 0), 1);
}

static void msgrcv_needs_read_permission_before_a_message(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	need_users();
	msg_chmod(id, 0602);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(msgrcv(id, &buffer, 10, 0, IPC_NOWAIT), EACCES);
		CHECK_ERR(msgrcv(id, &buffer, 10, 0, 0), EACCES);
		CHECK_OK(msg_send(id, 1, "x", 0));
		CHECK_ERR(msgrcv(id, &buffer, 10, 0, 0), EACCES);
	}
	child_ok(kid);
	msg_chmod(id, 0604);
	IN_CHILD (kid) {
		become_nobody();
		TAKES(id, 0, 0, 1, "x");
		TAKES_NOTHING(id, 0, 0);
	}
	child_ok(kid);
}

/* ---- msgrcv: which message ---- */

static const long queued_types[] = {5, 2, 9, 2, 1, 9, 5, LONG_MAX};

static const struct search_case {
	const char *rule;
	long wanted;
	int flags;
	int place; /* in queued_types, -1: none */
} search_cases[] = {
	{"0 takes the first", 0, 0, 0},
	{"a type takes its first", 2, 0, 1},
	{"a type takes its first, behind others", 9, 0, 2},
	{"the largest type", LONG_MAX, 0, 7},
	{"a type that is not there", 3, 0, -1},
	{"except takes the first of another type", 5, MSG_EXCEPT, 1},
	{"except of what is not there takes the first", 77, MSG_EXCEPT, 0},
	{"negative takes the lowest", -9, 0, 4},
	{"negative takes the lowest, up to the bound", -1, 0, 4},
	{"negative, largest bound", -LONG_MAX, 0, 4},
	{"the most negative one is like its neighbour", LONG_MIN, 0, 4},
	{"except is ignored with 0", 0, MSG_EXCEPT, 0},
	{"except is ignored with negative", -4, MSG_EXCEPT, 4},
};

static void msgrcv_takes_the_right_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(search_cases); i++) {
		const struct search_case *c = &search_cases[i];
		int id = msg_new();
		int err;

		for (size_t k = 0; k < ARRAY_COUNT(queued_types); k++) {
			char text[] = {(char)('a' + k), '\0'};

			CHECK_OK(msg_send(id, queued_types[k], text, 0));
		}
		err = msgrcv(id, &buffer, MSGMAX, c->wanted, c->flags | IPC_NOWAIT) == -1 ? errno
											  : 0;
		if (c->place == -1 ? err != ENOMSG : err != 0 || buffer.text[0] != 'a' + c->place)
			check_fail(__FILE__, __LINE__, "'%s': error %d or place %d", c->rule, err,
				   buffer.text[0] - 'a');
		if (c->place != -1)
			CHECK_INT(buffer.type, queued_types[c->place]);
	}
}

static void msgrcv_negative_takes_by_type_then_by_age(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 3, "a", 0));
	CHECK_OK(msg_send(id, 2, "b", 0));
	CHECK_OK(msg_send(id, 3, "c", 0));
	CHECK_OK(msg_send(id, 2, "d", 0));
	CHECK_OK(msg_send(id, 4, "e", 0));
	TAKES(id, -3, 0, 2, "b");
	TAKES(id, -3, 0, 2, "d");
	TAKES(id, -3, 0, 3, "a");
	TAKES(id, -3, 0, 3, "c");
	TAKES_NOTHING(id, -3, 0);
	TAKES(id, LONG_MIN, 0, 4, "e");
}

static void msgrcv_nothing_there_is_enomsg(void **state)
{
	int id = msg_new();

	(void)state;
	TAKES_NOTHING(id, 0, 0);
	TAKES_NOTHING(id, 7, 0);
	TAKES_NOTHING(id, -7, 0);
	CHECK_OK(msg_send(id, 7, "x", 0));
	TAKES_NOTHING(id, 7, MSG_EXCEPT);
	TAKES_NOTHING(id, 6, 0);
	TAKES_NOTHING(id, -6, 0);
	CHECK_INT(msg_count(id), 1);
}

static void msgrcv_first_in_first_out_over_many(void **state)
{
	enum { COUNT = 3000 };
	int id = msg_new();

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		struct message message = {.type = i % 7 + 1};

		memcpy(message.text, &i, sizeof(i));
		CHECK_OK(msgsnd(id, &message, sizeof(i), IPC_NOWAIT));
	}
	for (int type = 7; type >= 1; type--) {
		for (int i = type - 1; i < COUNT; i += 7) {
			int number;

			CHECK_INT(msgrcv(id, &buffer, sizeof(number), type, IPC_NOWAIT),
				  sizeof(number));
			memcpy(&number, buffer.text, sizeof(number));
			CHECK_INT(number, i);
		}
	}
	CHECK_INT(msg_count(id), 0);
	CHECK_INT(msg_bytes(id), 0);
}

/* ---- msgrcv: the text ---- */

static void text_of_any_size_arrives_whole(void **state)
{
	static const size_t sizes[] = {0,    1,    2,    7,    8,    9,    15,   16,   17,   31,
				       63,   64,   65,   127,  128,  255,  256,  1000, 2047, 2048,
				       4000, 4040, 4048, 4049, 4095, 4096, 4097, 8000, 8191, 8192};
	int id = msg_new();

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
		CHECK_OK(msg_send_size(id, 3, sizes[i], 0));
		memset(&buffer, 0x55, sizeof(buffer));
		CHECK_INT(msgrcv(id, &buffer, MSGMAX, 0, 0), (long)sizes[i]);
		CHECK_INT(buffer.type, 3);
		for (size_t k = 0; k < sizes[i]; k++)
			CHECK_INT(buffer.text[k], (char)(k * 7 + sizes[i]));
		/* Nothing behind it was written. */
		CHECK_INT(buffer.text[sizes[i]], 0x55);
	}
}

static void too_long_is_e2big_and_the_message_stays(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_OK(msg_send(id, 1, "x", 0));
	CHECK_ERR(msgrcv(id, &buffer, 4, 0, 0), E2BIG);
	CHECK_ERR(msgrcv(id, &buffer, 0, 1, IPC_NOWAIT), E2BIG);
	/* It does not look for a later one that would fit. */
	CHECK_ERR(msgrcv(id, &buffer, 1, 1, IPC_NOWAIT), E2BIG);
	CHECK_INT(msg_count(id), 2);
	CHECK_INT(msg_stat(id).msg_lrpid, 0);
	TAKES(id, 0, 0, 1, "hello");
	TAKES(id, 0, 0, 1, "x");
}

static void too_long_with_noerror_is_cut_and_the_rest_is_lost(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_OK(msg_send(id, 1, "world", 0));
	memset(&buffer, 0x55, sizeof(buffer));
	CHECK_INT(msgrcv(id, &buffer, 3, 0, MSG_NOERROR), 3);
	CHECK_INT(memcmp(buffer.text, "hel\x55", 4), 0);
	CHECK_INT(msg_count(id), 1);
	CHECK_INT(msg_bytes(id), 5);
	CHECK_INT(msgrcv(id, &buffer, 0, 0, MSG_NOERROR), 0);
	CHECK_INT(msg_count(id), 0);
	CHECK_INT(msg_bytes(id), 0);
}

static void efault_of_the_receiver_loses_the_message(void **state)
{
	void *no_text = message_without_text(1);
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_ERR(msgrcv(id, BAD_POINTER, 10, 0, 0), EFAULT);
	CHECK_INT(msg_count(id), 0);
	CHECK_INT(msg_bytes(id), 0);
	CHECK_INT(msg_stat(id).msg_lrpid, getpid());
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_ERR(msgrcv(id, no_text, 10, 0, 0), EFAULT);
	CHECK_INT(msg_count(id), 0);
	/* Without a message, or with one too long, nothing is written. */
	CHECK_ERR(msgrcv(id, BAD_POINTER, 10, 0, IPC_NOWAIT), ENOMSG);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_ERR(msgrcv(id, BAD_POINTER, 1, 0, 0), E2BIG);
	CHECK_INT(msg_count(id), 1);
	free_message_without_text(no_text);
}

/* ---- other doors to the same calls ---- */

static void raw_system_calls_reach_the_same_objects(void **state)
{
	int id = own_msg((int)CHECK_OK(syscall(SYS_msgget, test_key(1), IPC_CREAT | 0600)));
	struct msqid_ds ds;

	(void)state;
	CHECK_INT(msgget(test_key(1), 0), id);
	buffer.type = 4;
	memcpy(buffer.text, "hello", 5);
	CHECK_OK(syscall(SYS_msgsnd, id, &buffer, 5UL, 0));
	TAKES(id, 0, 0, 4, "hello");
	CHECK_OK(msg_send(id, 6, "world", 0));
	CHECK_INT(syscall(SYS_msgrcv, id, &buffer, 100UL, 0L, 0), 5);
	CHECK_INT(buffer.type, 6);
	CHECK_ERR(syscall(SYS_msgrcv, id, &buffer, 100UL, 0L, IPC_NOWAIT), ENOMSG);
	CHECK_OK(syscall(SYS_msgctl, id, IPC_STAT, &ds));
	CHECK_INT(ds.msg_lspid, getpid());
	CHECK_OK(syscall(SYS_msgctl, id, IPC_RMID, NULL));
	CHECK_ERR(msg_send(id, 1, "x", 0), EINVAL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(new_queue_is_empty_and_has_the_default_room),
		TEST(new_queue_is_empty_where_another_one_was),
		TEST(msgsnd_efault_of_the_type_comes_first),
		TEST(msgsnd_bad_size_is_einval),
		TEST(msgsnd_bad_type_is_einval_before_the_text_is_read),
		TEST(msgsnd_efault_of_the_text_beats_an_unknown_id),
		TEST(msgsnd_bad_id_is_einval),
		TEST(msgsnd_needs_write_permission_before_room),
		TEST(unknown_flags_are_ignored),
		TEST(msgsnd_room_is_in_bytes_and_in_messages),
		TEST(msgsnd_smaller_one_fits_where_a_larger_one_does_not),
		TEST(msgsnd_records_time_process_and_amount),
		TEST(msgrcv_records_time_process_and_amount),
		TEST(calls_of_a_thread_record_the_process),
		TEST(msgrcv_negative_id_or_size_is_einval),
		TEST(msgrcv_needs_read_permission_before_a_message),
		TEST(msgrcv_takes_the_right_message),
		TEST(msgrcv_negative_takes_by_type_then_by_age),
		TEST(msgrcv_nothing_there_is_enomsg),
		TEST(msgrcv_first_in_first_out_over_many),
		TEST(text_of_any_size_arrives_whole),
		TEST(too_long_is_e2big_and_the_message_stays),
		TEST(too_long_with_noerror_is_cut_and_the_rest_is_lost),
		TEST(efault_of_the_receiver_loses_the_message),
		TEST(raw_system_calls_reach_the_same_objects),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("msg", tests, NULL, NULL);
}
