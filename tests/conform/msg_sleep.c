// SPDX-License-Identifier: MIT
/*
 * conform-msg-sleep: receivers and senders that sleep: who gets which message, which sender is let
 * in, and all the ways in which a sleep ends.
 */
#include "conform/msg_calls.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/syscall.h>

static struct message buffer;

/* ---- receivers ---- */

static void receiver_is_handed_the_message(void **state)
{
	int id = msg_new();
	struct msqid_ds ds;
	pid_t kid;

	(void)state;
	kid = msg_receiver(0, id, MSGMAX, 0, 0);
	CHECK_OK(msg_send(id, 7, "hello", 0));
	/* It never was in the queue, and the sender did the receiver's book-keeping. */
	ds = msg_stat(id);
	CHECK_INT(ds.msg_qnum, 0);
	CHECK_INT(ds.__msg_cbytes, 0);
	CHECK_INT(ds.msg_lspid, getpid());
	CHECK_INT(ds.msg_lrpid, kid);
	CHECK(ds.msg_rtime >= ds.msg_stime && ds.msg_rtime != 0);
	TAKES_NOTHING(id, 0, 0);
	GETS(0, 7, "hello");
}

static void *thread_receives(void *arg)
{
	struct message message;

	board->number[1] = syscall(SYS_gettid);
	atomic_store(&board->flag[0], 1);
	CHECK_INT(msgrcv(*(int *)arg, &message, MSGMAX, 0, 0), 5);
	return NULL;
}

/* As the kernel has it: the thread's own id, where a message that was queued tells the process. */
static void receiver_that_is_a_thread_is_recorded_by_its_own_id(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pthread_t thread;

		CHECK_INT(pthread_create(&thread, NULL, thread_receives, &id), 0);
		UNTIL(atomic_load(&board->flag[0]));
		UNTIL(task_sleeps((pid_t)board->number[1]));
		CHECK_OK(msg_send(id, 7, "hello", 0));
		CHECK_INT(msg_stat(id).msg_lrpid, board->number[1]);
		CHECK(board->number[1] != getpid());
		CHECK_INT(pthread_join(thread, NULL), 0);
	}
	child_ok(kid);
}

static void receivers_are_served_first_in_first_out(void **state)
{
	int id = msg_new();

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		(void)msg_receiver(i, id, MSGMAX, 0, 0);
	CHECK_OK(msg_send(id, 1, "a", 0));
	CHECK_OK(msg_send(id, 1, "b", 0));
	CHECK_OK(msg_send(id, 1, "c", 0));
	CHECK_OK(msg_send(id, 1, "d", 0));
	GETS(0, 1, "a");
	GETS(1, 1, "b");
	GETS(2, 1, "c");
	GETS(3, 1, "d");
}

static void receivers_are_chosen_by_type_then_by_age(void **state)
{
	int id = msg_new();

	(void)state;
	(void)msg_receiver(0, id, MSGMAX, 5, 0);
	(void)msg_receiver(1, id, MSGMAX, -3, 0);
	(void)msg_receiver(2, id, MSGMAX, 5, MSG_EXCEPT);
	(void)msg_receiver(3, id, MSGMAX, 0, 0);
	(void)msg_receiver(4, id, MSGMAX, 5, 0);
	CHECK_OK(msg_send(id, 4, "except", 0));
	GETS(2, 4, "except");
	CHECK_OK(msg_send(id, 5, "five", 0));
	GETS(0, 5, "five");
	CHECK_OK(msg_send(id, 3, "three", 0));
	GETS(1, 3, "three");
	CHECK_OK(msg_send(id, 5, "five again", 0));
	GETS(3, 5, "five again");
	CHECK_OK(msg_send(id, 4, "nobody's", 0));
	CHECK_INT(msg_count(id), 1);
	CHECK_OK(msg_send(id, 5, "last", 0));
	GETS(4, 5, "last");
	TAKES(id, 0, 0, 4, "nobody's");
}

static void receivers_of_a_negative_type_match_up_to_it(void **state)
{
	int id = msg_new();

	(void)state;
	(void)msg_receiver(0, id, MSGMAX, -10, 0);
	(void)msg_receiver(1, id, MSGMAX, LONG_MIN, 0);
	CHECK_OK(msg_send(id, 11, "eleven", 0));
	GETS(1, 11, "eleven");
	CHECK_OK(msg_send(id, 11, "queued", 0));
	CHECK_INT(msg_count(id), 1);
	CHECK_OK(msg_send(id, 10, "ten", 0));
	GETS(0, 10, "ten");
}

static void receiver_with_too_small_a_buffer_is_e2big_and_the_next_one_served(void **state)
{
	int id = msg_new();

	(void)state;
	(void)msg_receiver(0, id, 3, 0, 0);
	(void)msg_receiver(1, id, 4, 0, 0);
	(void)msg_receiver(2, id, 5, 0, 0);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_INT(msg_count(id), 0);
	ENDS(0, E2BIG);
	ENDS(1, E2BIG);
	GETS(2, 1, "hello");
	(void)msg_receiver(3, id, 2, 0, 0);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_INT(msg_count(id), 1);
	ENDS(3, E2BIG);
	TAKES(id, 0, 0, 1, "hello");
}

static void receiver_with_noerror_gets_the_cut_message(void **state)
{
	int id = msg_new();

	(void)state;
	(void)msg_receiver(0, id, 3, 0, MSG_NOERROR);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_INT(msg_count(id), 0);
	GETS(0, 1, "hel");
}

static void receiver_with_a_bad_buffer_loses_the_message(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		atomic_store(&board->flag[0], 1);
		RECORD(0, msgrcv(id, BAD_POINTER, MSGMAX, 0, 0));
	}
	msg_until_asleep(kid, 0);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_INT(msg_count(id), 0);
	ENDS(0, EFAULT);
}

/* A receiver in waiting makes no room: what does not fit into the queue is not handed over. */
static void receiver_does_not_save_a_message_that_does_not_fit(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "0123456789", 0));
	msg_set_qbytes(id, 10);
	(void)msg_receiver(0, id, MSGMAX, 2, 0);
	CHECK_ERR(msg_send(id, 2, "x", IPC_NOWAIT), EAGAIN);
	TAKES(id, 1, 0, 1, "0123456789");
	CHECK_ERR(msg_send(id, 2, "0123456789+", IPC_NOWAIT), EAGAIN);
	msg_set_qbytes(id, 0);
	CHECK_ERR(msg_send(id, 2, "", IPC_NOWAIT), EAGAIN);
	msg_set_qbytes(id, 10);
	CHECK_OK(msg_send(id, 2, "x", IPC_NOWAIT));
	GETS(0, 2, "x");
}

static void receiver_that_is_killed_takes_nothing(void **state)
{
	int id = msg_new();

	(void)state;
	for (int i = 0; i < 5; i++) {
		pid_t kid = msg_receiver(0, id, MSGMAX, 0, 0);

		(void)msg_receiver(1, id, MSGMAX, 0, 0);
		child_kill(kid);
		CHECK_OK(msg_send(id, 1, "hello", 0));
		GETS(1, 1, "hello");
		CHECK_OK(msg_send(id, 1, "queued", 0));
		TAKES(id, 0, 0, 1, "queued");
		atomic_store(&board->flag[0], 0);
		atomic_store(&board->flag[1], 0);
		memset(board->result, 0, sizeof(board->result));
	}
}

/* A message that only this receiver wants passes by what others will want. */
static void receiver_of_a_type_sleeps_while_others_are_queued(void **state)
{
	int id = msg_new();

	(void)state;
	CHECK_OK(msg_send(id, 1, "other", 0));
	(void)msg_receiver(0, id, MSGMAX, 2, 0);
	CHECK_OK(msg_send(id, 1, "other too", 0));
	CHECK_INT(msg_count(id), 2);
	CHECK_OK(msg_send(id, 2, "mine", 0));
	CHECK_INT(msg_count(id), 2);
	GETS(0, 2, "mine");
}

/* ---- senders ---- */

static void sender_sleeps_until_its_message_fits(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	msg_set_qbytes(id, 10);
	CHECK_OK(msg_send_size(id, 1, 4, 0));
	CHECK_OK(msg_send_size(id, 1, 4, 0));
	kid = msg_sender(0, id, 2, 6);
	CHECK_INT(msg_count(id), 2);
	CHECK_INT(msg_stat(id).msg_lspid, getpid());
	TAKES_NOTHING(id, 2, 0);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
	ENDS(0, 0);
	CHECK_INT(msg_count(id), 2);
	CHECK_INT(msg_bytes(id), 10);
	CHECK_INT(msg_stat(id).msg_lspid, kid);
}

static void sender_of_more_than_the_queue_holds_sleeps_until_it_grows(void **state)
{
	int id = msg_new();

	(void)state;
	msg_set_qbytes(id, 10);
	(void)msg_sender(0, id, 1, 11);
	CHECK_OK(msg_send_size(id, 2, 10, 0));
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 2, 0));
	CHECK_INT(msg_count(id), 0);
	msg_set_qbytes(id, 11);
	ENDS(0, 0);
	CHECK_INT(msg_bytes(id), 11);
}

static void sender_in_a_queue_full_of_empty_messages(void **state)
{
	int id = msg_new();

	(void)state;
	msg_set_qbytes(id, 3);
	for (int i = 0; i < 3; i++)
		CHECK_OK(msg_send_size(id, 1, 0, 0));
	(void)msg_sender(0, id, 1, 0);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
	ENDS(0, 0);
	CHECK_INT(msg_count(id), 3);
}

/* A small message gets in before an older, larger one that does not fit. */
static void sender_of_a_small_message_passes_an_older_larger_one(void **state)
{
	int id = msg_new();

	(void)state;
	msg_set_qbytes(id, 10);
	for (int i = 0; i < 5; i++)
		CHECK_OK(msg_send_size(id, 1, 2, 0));
	(void)msg_sender(0, id, 2, 8);
	(void)msg_sender(1, id, 3, 2);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 1, 0));
	ENDS(1, 0);
	CHECK_INT(msg_bytes(id), 10);
	/* A newcomer does not even look at who sleeps. */
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 1, 0));
	CHECK_OK(msg_send_size(id, 1, 1, IPC_NOWAIT));
	CHECK_INT(atomic_load(&board->result[0].done), 0);
	for (int i = 0; i < 3; i++)
		CHECK_OK(msgrcv(id, &buffer, MSGMAX, 1, 0));
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 1, 0));
	ENDS(0, 0);
}

static void senders_all_get_in_as_room_appears(void **state)
{
	enum { KIDS = 5 };
	int id = msg_new();
	long sum = 0;

	(void)state;
	msg_set_qbytes(id, 4);
	CHECK_OK(msg_send_size(id, 100, 4, 0));
	for (unsigned int i = 0; i < KIDS; i++)
		(void)msg_sender(i, id, (long)i + 1, 4);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
	CHECK_INT(buffer.type, 100);
	for (int i = 0; i < KIDS; i++) {
		CHECK_INT(msgrcv(id, &buffer, MSGMAX, 0, 0), 4);
		sum += 1L << buffer.type;
	}
	CHECK_INT(sum, (1L << (KIDS + 1)) - 2);
	for (unsigned int i = 0; i < KIDS; i++)
		ENDS(i, 0);
	CHECK_INT(msg_count(id), 0);
}

static void sender_that_is_killed_sends_nothing(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	msg_set_qbytes(id, 4);
	CHECK_OK(msg_send_size(id, 1, 4, 0));
	kid = msg_sender(0, id, 2, 4);
	(void)msg_sender(1, id, 3, 4);
	child_kill(kid);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
	ENDS(1, 0);
	CHECK_INT(msg_count(id), 1);
	CHECK_INT(msgrcv(id, &buffer, MSGMAX, 0, 0), 4);
	CHECK_INT(buffer.type, 3);
}

/* ---- removal ---- */

static void rmid_ends_every_sleep_with_eidrm(void **state)
{
	int id = msg_new();

	(void)state;
	msg_set_qbytes(id, 4);
	CHECK_OK(msg_send_size(id, 1, 4, 0));
	(void)msg_receiver(0, id, MSGMAX, 2, 0);
	(void)msg_receiver(1, id, MSGMAX, 1, MSG_EXCEPT);
	(void)msg_sender(2, id, 1, 4);
	(void)msg_sender(3, id, 1, 100);
	CHECK_INT(msgctl(id, IPC_RMID, NULL), 0);
	for (unsigned int i = 0; i < 4; i++)
		ENDS(i, EIDRM);
	CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 0, 0), EINVAL);
}

/* ---- IPC_SET ---- */

static void ipc_set_that_revokes_permission_ends_receivers_with_eacces(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	need_users();
	msg_chmod(id, 0606);
	IN_CHILD (kid) {
		become_nobody();
		atomic_store(&board->flag[0], 1);
		RECORD(0, msgrcv(id, &buffer, MSGMAX, 0, 0));
	}
	msg_until_asleep(kid, 0);
	(void)msg_receiver(1, id, MSGMAX, 0, 0);
	msg_chmod(id, 0602);
	ENDS(0, EACCES);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	GETS(1, 1, "hello");
}

static void ipc_set_leaves_receivers_who_may_still_read(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	kid = msg_receiver(0, id, MSGMAX, 0, 0);
	msg_chmod(id, 0640);
	msg_until_asleep(kid, 0);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	GETS(0, 1, "hello");
}

/* A sender is asked again for its permission when there is room, not before. */
static void ipc_set_that_revokes_permission_ends_senders_when_room_appears(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	need_users();
	msg_chmod(id, 0606);
	msg_set_qbytes(id, 4);
	CHECK_OK(msg_send_size(id, 1, 4, 0));
	IN_CHILD (kid) {
		become_nobody();
		atomic_store(&board->flag[0], 1);
		RECORD(0, msg_send_size(id, 1, 4, 0));
	}
	msg_until_asleep(kid, 0);
	msg_chmod(id, 0604);
	msg_until_asleep(kid, 0);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
	ENDS(0, EACCES);
	CHECK_INT(msg_count(id), 0);
}

/* ---- signals ---- */

static atomic_int handler_runs;

static void count_signal(int signal_number)
{
	(void)signal_number;
	atomic_fetch_add(&handler_runs, 1);
}

static void catch_signal(int signal_number, int flags, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};

	CHECK_OK(sigaction(signal_number, &action, NULL));
}

static void signal_with_a_handler_is_eintr_even_with_sa_restart(void **state)
{
	static const int flags[] = {0, SA_RESTART};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(flags) * 2; i++) {
		bool receives = i % 2 == 0;
		int id = msg_new();
		pid_t kid;

		atomic_store(&board->flag[0], 0);
		msg_set_qbytes(id, 4);
		CHECK_OK(msg_send_size(id, 1, 4, 0));
		IN_CHILD (kid) {
			catch_signal(SIGUSR1, flags[i / 2], count_signal);
			atomic_store(&board->flag[0], 1);
			if (receives)
				CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 2, 0), EINTR);
			else
				CHECK_ERR(msg_send_size(id, 2, 1, 0), EINTR);
			CHECK_INT(handler_runs, 1);
		}
		msg_until_asleep(kid, 0);
		CHECK_OK(kill(kid, SIGUSR1));
		child_ok(kid);
		/* It took and left nothing. */
		CHECK_INT(msg_count(id), 1);
		CHECK_OK(msgrcv(id, &buffer, MSGMAX, 0, 0));
		CHECK_OK(msg_send(id, 2, "x", 0));
		TAKES(id, 0, IPC_NOWAIT, 2, "x");
	}
}

static void signal_that_is_ignored_does_not_end_the_sleep(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	kid = msg_receiver(0, id, MSGMAX, 0, 0);
	CHECK_OK(kill(kid, SIGCHLD));
	CHECK_OK(kill(kid, SIGWINCH));
	CHECK_OK(kill(kid, SIGCONT));
	msg_until_asleep(kid, 0);
	CHECK_OK(msg_send(id, 1, "hello", 0));
	GETS(0, 1, "hello");
}

static int handler_queue;

static void send_in_handler(int signal_number)
{
	(void)signal_number;
	CHECK_OK(msg_send(handler_queue, 1, "hello", 0));
	CHECK_INT(msg_count(handler_queue), 1);
}

static void signal_handler_may_use_the_same_queue(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	handler_queue = id;
	IN_CHILD (kid) {
		catch_signal(SIGUSR1, SA_RESTART, send_in_handler);
		atomic_store(&board->flag[0], 1);
		CHECK_ERR(msgrcv(id, &buffer, MSGMAX, 0, 0), EINTR);
		TAKES(id, 0, IPC_NOWAIT, 1, "hello");
	}
	msg_until_asleep(kid, 0);
	CHECK_OK(kill(kid, SIGUSR1));
	child_ok(kid);
}

static sigjmp_buf out_of_sleep;

static void leap(int signal_number)
{
	(void)signal_number;
	siglongjmp(out_of_sleep, 1);
}

static __attribute__((noinline)) void receive_and_leap(int id)
{
	catch_signal(SIGUSR1, 0, leap);
	if (sigsetjmp(out_of_sleep, 1) == 0) {
		atomic_store(&board->flag[0], 1);
		(void)msgrcv(id, &buffer, MSGMAX, 0, 0);
		check_fail(__FILE__, __LINE__, "the sleep ended by itself");
	}
}

static void signal_handler_may_leap_out_of_the_sleep(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		receive_and_leap(id);
		CHECK_OK(msg_send(id, 1, "hello", 0));
		CHECK_INT(msg_count(id), 1);
		TAKES(id, 0, IPC_NOWAIT, 1, "hello");
	}
	msg_until_asleep(kid, 0);
	CHECK_OK(kill(kid, SIGUSR1));
	child_ok(kid);
}

/* Either the message was received or it is still there. */
static void signal_and_success_never_both(void **state)
{
	enum { ROUNDS = 200 };
	int id = msg_new();
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		catch_signal(SIGUSR1, SA_RESTART, count_signal);
		for (int i = 0; i < ROUNDS; i++) {
			ssize_t got;

			atomic_store(&board->flag[0], i + 1);
			got = msgrcv(id, &buffer, MSGMAX, 0, 0);
			if (got == -1)
				CHECK_INT(errno, EINTR);
			while (atomic_load(&handler_runs) <= i || atomic_load(&board->flag[1]) <= i)
				(void)sched_yield();
			if (got == -1)
				TAKES(id, 0, IPC_NOWAIT, 1, "hello");
			TAKES_NOTHING(id, 0, 0);
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		UNTIL(atomic_load(&board->flag[0]) == i + 1);
		(void)nanosleep(&(struct timespec){.tv_nsec = i % 10 * 10000L}, NULL);
		if (i % 2 == 0) {
			CHECK_OK(kill(kid, SIGUSR1));
			CHECK_OK(msg_send(id, 1, "hello", 0));
		} else {
			CHECK_OK(msg_send(id, 1, "hello", 0));
			CHECK_OK(kill(kid, SIGUSR1));
		}
		atomic_store(&board->flag[1], i + 1);
	}
	child_ok(kid);
}

static void stop_and_cont_continues_silently(void **state)
{
	int id = msg_new();
	pid_t receiver;
	pid_t sender;

	(void)state;
	msg_set_qbytes(id, 4);
	CHECK_OK(msg_send_size(id, 1, 4, 0));
	receiver = msg_receiver(0, id, MSGMAX, 2, 0);
	sender = msg_sender(1, id, 3, 4);
	CHECK_OK(kill(receiver, SIGSTOP));
	CHECK_OK(kill(sender, SIGSTOP));
	UNTIL(task_state(receiver) == 'T');
	UNTIL(task_state(sender) == 'T');
	CHECK_OK(kill(receiver, SIGCONT));
	CHECK_OK(kill(sender, SIGCONT));
	msg_until_asleep(receiver, 0);
	msg_until_asleep(sender, 1);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 1, 0));
	ENDS(1, 0);
	CHECK_OK(msgrcv(id, &buffer, MSGMAX, 3, 0));
	CHECK_OK(msg_send(id, 2, "two", 0));
	GETS(0, 2, "two");
}

/* While it is stopped it waits for nothing, and afterwards it is the last in line. */
static void stopped_receiver_has_left_its_place(void **state)
{
	int id = msg_new();
	pid_t kid;

	(void)state;
	compat_skip("stop-cont");
	kid = msg_receiver(0, id, MSGMAX, 0, 0);
	CHECK_OK(kill(kid, SIGSTOP));
	UNTIL(task_state(kid) == 'T');
	CHECK_OK(msg_send(id, 1, "hello", 0));
	CHECK_INT(msg_count(id), 1);
	TAKES(id, 0, IPC_NOWAIT, 1, "hello");
	(void)msg_receiver(1, id, MSGMAX, 0, 0);
	CHECK_OK(kill(kid, SIGCONT));
	msg_until_asleep(kid, 0);
	CHECK_OK(msg_send(id, 1, "for the second", 0));
	GETS(1, 1, "for the second");
	CHECK_OK(msg_send(id, 1, "for the first", 0));
	GETS(0, 1, "for the first");
}

/* ---- threads ---- */

static void *thread_waits_to_be_cancelled(void *arg)
{
	bool receives = board->number[2] != 0;

	board->number[1] = syscall(SYS_gettid);
	atomic_store(&board->flag[0], 1);
	if (receives)
		(void)msgrcv(*(int *)arg, &buffer, MSGMAX, 2, 0);
	else
		(void)msg_send_size(*(int *)arg, 2, 4, 0);
	return NULL;
}

static void sleep_is_a_cancellation_point(void **state)
{
	(void)state;
	for (int receives = 0; receives < 2; receives++) {
		int id = msg_new();
		pid_t kid;

		board->number[2] = receives;
		atomic_store(&board->flag[0], 0);
		msg_set_qbytes(id, 4);
		CHECK_OK(msg_send_size(id, 1, 4, 0));
		IN_CHILD (kid) {
			pthread_t thread;
			void *result;

			CHECK_INT(pthread_create(&thread, NULL, thread_waits_to_be_cancelled, &id),
				  0);
			UNTIL(atomic_load(&board->flag[0]));
			UNTIL(task_sleeps((pid_t)board->number[1]));
			CHECK_INT(pthread_cancel(thread), 0);
			CHECK_INT(pthread_join(thread, &result), 0);
			CHECK(result == PTHREAD_CANCELED);
			/* Nobody is left in the queue's lines. */
			CHECK_OK(msgrcv(id, &buffer, MSGMAX, 1, 0));
			CHECK_OK(msg_send(id, 2, "two", 0));
			TAKES(id, 0, IPC_NOWAIT, 2, "two");
			TAKES_NOTHING(id, 0, 0);
		}
		child_ok(kid);
	}
}

/* ---- all together ---- */

/* Many senders and receivers on a queue that is full most of the time: nothing is lost. */
static void many_senders_and_receivers_lose_nothing(void **state)
{
	enum { PAIRS = 3, ROUNDS = 400 };
	int id = msg_new();
	pid_t kids[PAIRS * 2];

	(void)state;
	msg_set_qbytes(id, 64);
	for (int k = 0; k < PAIRS; k++) {
		IN_CHILD (kids[k]) {
			for (int i = 0; i < ROUNDS; i++)
				CHECK_OK(msg_send_size(id, k + 1, (size_t)(i % 30), 0));
		}
		IN_CHILD (kids[PAIRS + k]) {
			for (int i = 0; i < ROUNDS; i++) {
				ssize_t got = msgrcv(id, &buffer, MSGMAX, k + 1, 0);

				/* Of one sender's messages the order is kept. */
				CHECK_INT(got, i % 30);
				for (long b = 0; b < got; b++)
					CHECK_INT(buffer.text[b], (char)(b * 7 + got));
			}
		}
	}
	for (size_t k = 0; k < ARRAY_COUNT(kids); k++)
		child_ok(kids[k]);
	CHECK_INT(msg_count(id), 0);
	CHECK_INT(msg_bytes(id), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(receiver_is_handed_the_message),
		TEST(receiver_that_is_a_thread_is_recorded_by_its_own_id),
		TEST(receivers_are_served_first_in_first_out),
		TEST(receivers_are_chosen_by_type_then_by_age),
		TEST(receivers_of_a_negative_type_match_up_to_it),
		TEST(receiver_with_too_small_a_buffer_is_e2big_and_the_next_one_served),
		TEST(receiver_with_noerror_gets_the_cut_message),
		TEST(receiver_with_a_bad_buffer_loses_the_message),
		TEST(receiver_does_not_save_a_message_that_does_not_fit),
		TEST(receiver_that_is_killed_takes_nothing),
		TEST(receiver_of_a_type_sleeps_while_others_are_queued),
		TEST(sender_sleeps_until_its_message_fits),
		TEST(sender_of_more_than_the_queue_holds_sleeps_until_it_grows),
		TEST(sender_in_a_queue_full_of_empty_messages),
		TEST(sender_of_a_small_message_passes_an_older_larger_one),
		TEST(senders_all_get_in_as_room_appears),
		TEST(sender_that_is_killed_sends_nothing),
		TEST(rmid_ends_every_sleep_with_eidrm),
		TEST(ipc_set_that_revokes_permission_ends_receivers_with_eacces),
		TEST(ipc_set_leaves_receivers_who_may_still_read),
		TEST(ipc_set_that_revokes_permission_ends_senders_when_room_appears),
		TEST(signal_with_a_handler_is_eintr_even_with_sa_restart),
		TEST(signal_that_is_ignored_does_not_end_the_sleep),
		TEST(signal_handler_may_use_the_same_queue),
		TEST(signal_handler_may_leap_out_of_the_sleep),
		TEST(signal_and_success_never_both),
		TEST(stop_and_cont_continues_silently),
		TEST(stopped_receiver_has_left_its_place),
		TEST(sleep_is_a_cancellation_point),
		TEST(many_senders_and_receivers_lose_nothing),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("msg-sleep", tests, NULL, NULL);
}
