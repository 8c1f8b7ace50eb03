// SPDX-License-Identifier: MIT
/*
 * conform-msgctl: msgctl's effects, the limits of queues, and looking at messages without taking
 * them (MSG_COPY).
 */
#include "conform/msg_calls.h"

#include <limits.h>
#include <linux/capability.h>

enum {
	BAD_ID = 0x7fffffff,
	MSGMNI = 32000,
};

static struct message buffer;

/* ---- MSG_COPY ---- */

#define COPY (MSG_COPY | IPC_NOWAIT)

/* A kernel may be built without it. */
static int queue_for_copy(void)
{
	int id = msg_new();

	CHECK_OK(msg_send(id, 5, "first", 0));
	if (msgrcv(id, &buffer, MSGMAX, 0, COPY) == -1 && errno == ENOSYS)
		SKIP("MSG_COPY is not built in");
	CHECK_OK(msg_send(id, 3, "second", 0));
	CHECK_OK(msg_send(id, 5, "third", 0));
	return id;
}

static void copy_takes_a_place_and_changes_nothing(void **state)
{
	int id = queue_for_copy();
	struct msqid_ds before = msg_stat(id);
	struct msqid_ds after;

	(void)state;
	TAKES(id, 1, COPY, 3, "second");
	TAKES(id, 2, COPY, 5, "third");
	TAKES(id, 0, COPY, 5, "first");
	TAKES(id, 0, COPY, 5, "first");
	after = msg_stat(id);
	CHECK_INT(after.msg_qnum, before.msg_qnum);
	CHECK_INT(after.__msg_cbytes, before.__msg_cbytes);
	CHECK_INT(after.msg_rtime, 0);
	CHECK_INT(after.msg_lrpid, 0);
	CHECK_INT(after.msg_lspid, before.msg_lspid);
	TAKES(id, 0, 0, 5, "first");
	TAKES(id, 0, COPY, 3, "second");
}

static void copy_of_a_place_that_is_not_there_is_enomsg(void **state)
{
	int id = queue_for_copy();

	(void)state;
	TAKES_NOTHING(id, 3, COPY);
	TAKES_NOTHING(id, LONG_MAX, COPY);
	TAKES_NOTHING(id, -1, COPY);
	TAKES_NOTHING(id, LONG_MIN, COPY);
	CHECK_INT(msg_count(id), 3);
}

static void copy_needs_nowait_and_forbids_except(void **state)
{
	int id = queue_for_copy();

	(void)state;
	CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 0, MSG_COPY), EINVAL);
	CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 0, COPY | MSG_EXCEPT), EINVAL);
	CHECK_ERR(msgrcv(id, BAD_POINTER, MSGMAX, 0, MSG_COPY), EINVAL);
	CHECK_ERR(msgrcv(-1, BAD_POINTER, MSGMAX, 0, COPY), EINVAL);
	CHECK_ERR(msgrcv(BAD_ID, &buffer, MSGMAX, 0, COPY), EINVAL);
}

static void copy_that_does_not_fit_is_e2big_or_einval(void **state)
{
	int id = queue_for_copy();

	(void)state;
	CHECK_ERR(msgrcv(id, &buffer, 5, 1, COPY), E2BIG);
	CHECK_ERR(msgrcv(id, &buffer, 5, 1, COPY | MSG_NOERROR), EINVAL);
	CHECK_INT(msgrcv(id, &buffer, 5, 0, COPY | MSG_NOERROR), 5);
	CHECK_INT(msg_count(id), 3);
}

/* The buffer is looked at before the queue. */
static void copy_efault_beats_a_bad_id(void **state)
{
	int id = queue_for_copy();

	(void)state;
	CHECK_ERR(msgrcv(BAD_ID, BAD_POINTER, 100, 0, COPY), EFAULT);
	CHECK_ERR(msgrcv(id, BAD_POINTER, 100, 99, COPY), EFAULT);
	CHECK_INT(msg_count(id), 3);
}

/* ---- msgctl ---- */

static void ipc_set_sets_room_and_ctime(void **state)
{
	int id = msg_new();
	struct msqid_ds before = msg_stat(id);
	struct msqid_ds ds;

	(void)state;
	pass_second(before.msg_ctime);
	ds = before;
	ds.msg_qbytes = 100;
	ds.msg_qnum = 77;
	ds.msg_stime = 77;
	ds.msg_lspid = 77;
	CHECK_OK(msgctl(id, IPC_SET, &ds));
	ds = msg_stat(id);
	CHECK_INT(ds.msg_qbytes, 100);
	CHECK_INT(ds.msg_qnum, 0);
	CHECK_INT(ds.msg_stime, 0);
	CHECK_INT(ds.msg_lspid, 0);
	CHECK(ds.msg_ctime > before.msg_ctime);
	CHECK(ds.msg_ctime <= second_after());
}

static void ipc_set_room_may_be_less_than_what_is_queued(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_OK(msg_send(id, 1, "world", 0));
	msg_set_qbytes(id, 5);
	CHECK_INT(msg_count(id), 2);
	CHECK_ERR(msg_send(id, 1, "", IPC_NOWAIT), EAGAIN);
	TAKES(id, 0, 0, 1, "hello");
	CHECK_ERR(msg_send(id, 1, "x", IPC_NOWAIT), EAGAIN);
	msg_set_qbytes(id, 0);
	CHECK_ERR(msg_send(id, 1, "", IPC_NOWAIT), EAGAIN);
	TAKES(id, 0, 0, 1, "world");
	CHECK_ERR(msg_send(id, 1, "", IPC_NOWAIT), EAGAIN);
}

static void ipc_set_room_above_msgmnb_needs_a_capability(void **state)
{
	int id = msg_new();
	struct msqid_ds ds = msg_stat(id);
	pid_t kid;

	(void)state;
	ds.msg_qbytes = MSGMNB + 1;
	IN_CHILD (kid) {
		keep_capabilities(0);
		CHECK_ERR(msgctl(id, IPC_SET, &ds), EPERM);
		ds.msg_perm.uid = (uid_t)-1;
		/* Before the owner is looked at. */
		CHECK_ERR(msgctl(id, IPC_SET, &ds), EPERM);
		ds.msg_qbytes = MSGMNB;
		CHECK_ERR(msgctl(id, IPC_SET, &ds), EINVAL);
	}
	child_ok(kid);
	CHECK_INT(msg_stat(id).msg_qbytes, MSGMNB);
}

static void ipc_set_room_above_msgmnb_is_fine_with_it(void **state)
{
	int id = msg_new();
	struct msqid_ds ds = msg_stat(id);

	(void)state;
	if (!has_capability(CAP_SYS_RESOURCE))
		SKIP("needs CAP_SYS_RESOURCE");
	ds.msg_qbytes = MSGMNB * 10;
	CHECK_OK(msgctl(id, IPC_SET, &ds));
	for (int i = 0; i < 20; i++)
		CHECK_OK(msg_send_size(id, 1, MSGMAX, IPC_NOWAIT));
	CHECK_ERR(msg_send_size(id, 1, MSGMAX, IPC_NOWAIT), EAGAIN);
}

static void ipc_rmid_discards_messages_and_makes_every_call_einval(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_INT(msgctl(id, IPC_RMID, NULL), 0);
	CHECK_ERR(msg_send(id, 1, "x", 0), EINVAL);
	CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 0, 0), EINVAL);
	CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 0, COPY), EINVAL);
}

/* ---- limits ---- */

static struct msginfo info(int cmd)
{
	struct msginfo got;

	memset(&got, 0xff, sizeof(got));
	CHECK_OK(msgctl(0, cmd, (struct msqid_ds *)(void *)&got));
	return got;
}

static void ipc_info_tells_the_limits(void **state)
{
	struct msginfo got = info(IPC_INFO);

	(void)state;
	CHECK_INT(got.msgpool, (long)MSGMNI * MSGMNB / 1024);
	CHECK_INT(got.msgmap, MSGMNB);
	CHECK_INT(got.msgmax, MSGMAX);
	CHECK_INT(got.msgmnb, MSGMNB);
	CHECK_INT(got.msgmni, MSGMNI);
	CHECK_INT(got.msgssz, 16);
	CHECK_INT(got.msgtql, MSGMNB);
	CHECK_INT(got.msgseg, 65535);
}

static void msg_info_tells_what_is_in_use(void **state)
{
	struct msginfo got = info(MSG_INFO);
	int ids[2];

	(void)state;
	CHECK_INT(got.msgpool, 0);
	CHECK_INT(got.msgmap, 0);
	CHECK_INT(got.msgtql, 0);
	CHECK_INT(got.msgmax, MSGMAX);
	CHECK_INT(got.msgmni, MSGMNI);
	ids[0] = msg_new();
	ids[1] = msg_new();
	CHECK_OK(msg_send(ids[0], 1, "hello", 0));
	CHECK_OK(msg_send(ids[0], 1, "", 0));
	CHECK_OK(msg_send(ids[1], 1, "world!", 0));
	got = info(MSG_INFO);
	CHECK_INT(got.msgpool, 2);
	CHECK_INT(got.msgmap, 3);
	CHECK_INT(got.msgtql, 11);
	CHECK_OK(msgctl(ids[0], IPC_RMID, NULL));
	got = info(MSG_INFO);
	CHECK_INT(got.msgpool, 1);
	CHECK_INT(got.msgmap, 1);
	CHECK_INT(got.msgtql, 6);
}

static void limit_msgmni_is_enospc(void **state)
{
	int id;

	(void)state;
	set_limit("/proc/sys/kernel/msgmni", "2");
	(void)msg_new();
	id = own_msg((int)CHECK_OK(msgget(test_key(1), IPC_CREAT | 0600)));
	CHECK_ERR(msgget(IPC_PRIVATE, 0600), ENOSPC);
	CHECK_ERR(msgget(test_key(2), IPC_CREAT | 0600), ENOSPC);
	CHECK_INT(msgget(test_key(1), IPC_CREAT | 0600), id);
	CHECK_OK(msgctl(id, IPC_RMID, NULL));
	own_msg((int)CHECK_OK(msgget(test_key(2), IPC_CREAT | 0600)));
}

static void limit_msgmax_is_einval(void **state)
{
	int id = msg_new();

	(void)state;
	set_limit("/proc/sys/kernel/msgmax", "100");
	CHECK_OK(msg_send_size(id, 1, 100, 0));
	CHECK_ERR(msg_send_size(id, 1, 101, 0), EINVAL);
	CHECK_INT(info(IPC_INFO).msgmax, 100);
}

static void limit_msgmnb_is_the_room_of_new_queues(void **state)
{
	int id = msg_new();

	(void)state;
	set_limit("/proc/sys/kernel/msgmnb", "500");
	CHECK_INT(msg_stat(id).msg_qbytes, MSGMNB);
	CHECK_INT(msg_stat(msg_new()).msg_qbytes, 500);
}

static void limit_msgmni_is_32768_at_the_most(void **state)
{
	(void)state;
	set_limit("/proc/sys/kernel/msgmni", "32768");
	CHECK_INT(write_file("/proc/sys/kernel/msgmni", "32769"), EINVAL);
	CHECK_INT(info(IPC_INFO).msgmni, 32768);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(copy_takes_a_place_and_changes_nothing),
		TEST(copy_of_a_place_that_is_not_there_is_enomsg),
		TEST(copy_needs_nowait_and_forbids_except),
		TEST(copy_that_does_not_fit_is_e2big_or_einval),
		TEST(copy_efault_beats_a_bad_id),
		TEST(ipc_set_sets_room_and_ctime),
		TEST(ipc_set_room_may_be_less_than_what_is_queued),
		TEST(ipc_set_room_above_msgmnb_needs_a_capability),
		TEST(ipc_set_room_above_msgmnb_is_fine_with_it),
		TEST(ipc_rmid_discards_messages_and_makes_every_call_einval),
		TEST(ipc_info_tells_the_limits),
		TEST(msg_info_tells_what_is_in_use),
		TEST(limit_msgmni_is_enospc),
		TEST(limit_msgmax_is_einval),
		TEST(limit_msgmni_is_32768_at_the_most),
		TEST(limit_msgmnb_is_the_room_of_new_queues),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("msgctl", tests, NULL, NULL);
}
