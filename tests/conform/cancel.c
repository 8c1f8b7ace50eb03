// SPDX-License-Identifier: MIT
/*
 * conform-cancel: threads that may be cancelled at any moment (PTHREAD_CANCEL_ASYNCHRONOUS), in
 * calls that sleep and in calls that do not. What a cancelled call was waiting for stays as if it
 * had never been made.
 */
#include "conform/sem_calls.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/msg.h>
#include <sys/syscall.h>

static int set_id, queue_id;

static void *become_asynchronous(void *(*call)(void))
{
	CHECK_INT(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL), 0);
	atomic_store(&board->number[0], syscall(SYS_gettid));
	return call();
}

static void *sleep_in_semop(void)
{
	return (void *)(intptr_t)SEMOP(set_id, {0, -1, SEM_UNDO});
}

static void *sleep_in_semtimedop(void)
{
	return (void *)(intptr_t)SEMTIMEDOP(set_id, 3600000, {0, 0, 0}, {1, -1, 0});
}

static void *sleep_in_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} message;

	return (void *)(intptr_t)msgrcv(queue_id, &message, sizeof(message.text), 0, 0);
}

static void *sleep_in_raw_semop(void)
{
	struct sembuf op = {0, -1, 0};

	/* By number it is no cancellation point, but this thread has no such points. */
	return (void *)(intptr_t)syscall(SYS_semtimedop, set_id, &op, 1, NULL);
}

static void *start(void *call)
{
	return become_asynchronous((void *(*)(void))call);
}

static void cancel_asleep(void *(*call)(void))
{
	pthread_t thread;
	void *result;

	atomic_store(&board->number[0], 0);
	CHECK_INT(pthread_create(&thread, NULL, start, (void *)call), 0);
	UNTIL(atomic_load(&board->number[0]) != 0 &&
	      task_sleeps((pid_t)atomic_load(&board->number[0])));
	CHECK_INT(pthread_cancel(thread), 0);
	CHECK_INT(pthread_join(thread, &result), 0);
	CHECK(result == PTHREAD_CANCELED);
}

static void sleeping_semop_is_cancelled(void **state)
{
	(void)state;
	set_id = sem_new(2);
	cancel_asleep(sleep_in_semop);
	CHECK_INT(sem_ncnt(set_id, 0), 0);
	CHECK_OK(SEMOP(set_id, {0, 1, 0}));
	CHECK_INT(sem_value(set_id, 0), 1);
	CHECK_OK(SEMOP(set_id, {0, -1, 0}));
}

static void sleeping_semop_of_several_operations_is_cancelled(void **state)
{
	(void)state;
	set_id = sem_new(2);
	cancel_asleep(sleep_in_semtimedop);
	CHECK_INT(sem_ncnt(set_id, 1), 0);
	CHECK_OK(SEMOP(set_id, {1, 1, 0}));
	CHECK_INT(sem_value(set_id, 1), 1);
}

static void sleeping_semop_by_number_is_cancelled(void **state)
{
	(void)state;
	set_id = sem_new(1);
	cancel_asleep(sleep_in_raw_semop);
	CHECK_INT(sem_ncnt(set_id, 0), 0);
}

static void sleeping_msgrcv_is_cancelled(void **state)
{
	struct {
		long type;
		char text[8];
	} message = {1, "text"};

	(void)state;
	queue_id = own_msg((int)CHECK_OK(msgget(IPC_PRIVATE, 0600)));
	cancel_asleep(sleep_in_msgrcv);
	CHECK_OK(msgsnd(queue_id, &message, sizeof(message.text), 0));
	message.type = 0;
	CHECK_INT(msgrcv(queue_id, &message, sizeof(message.text), 0, IPC_NOWAIT), 8);
	CHECK_INT(message.type, 1);
}

/* The other threads of the process, and of others, find everything in order. */
static void *add_and_take(void)
{
	for (;;) {
		(void)SEMOP(set_id, {0, 1, 0}, {1, 1, 0});
		(void)SEMOP(set_id, {0, -1, 0}, {1, -1, 0});
		atomic_fetch_add(&board->number[1], 1);
	}
	return NULL;
}

static void busy_thread_is_cancelled(void **state)
{
	(void)state;
	set_id = sem_new(2);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *result;
		long seen = atomic_load(&board->number[1]);

		CHECK_INT(pthread_create(&thread, NULL, start, (void *)add_and_take), 0);
		UNTIL(atomic_load(&board->number[1]) > seen + i);
		CHECK_INT(pthread_cancel(thread), 0);
		CHECK_INT(pthread_join(thread, &result), 0);
		CHECK(result == PTHREAD_CANCELED);
		/* Each call has happened or has not. */
		CHECK_INT(sem_value(set_id, 0), sem_value(set_id, 1));
		CHECK_OK(SEMOP(set_id, {0, 1, 0}, {1, 1, 0}));
	}
}

/* ---- left by longjmp ---- */

static sigjmp_buf out_of_sleep;

static void leave_by_longjmp(int sig)
{
	(void)sig;
	siglongjmp(out_of_sleep, 1);
}

static void *leave_and_end(void *by_cancel)
{
	atomic_store(&board->number[0], syscall(SYS_gettid));
	if (!sigsetjmp(out_of_sleep, 1))
		(void)sleep_in_msgrcv();
	atomic_store(&board->number[1], 1);
	if (!by_cancel)
		pthread_exit(NULL);
	for (;;)
		pause();
}

/* Nothing of the call that was left may run when the thread ends. */
static void call_left_by_longjmp_is_over(void **state)
{
	struct sigaction old, act = {.sa_handler = leave_by_longjmp};

	(void)state;
	queue_id = (int)CHECK_OK(msgget(IPC_PRIVATE, 0600));
	CHECK_OK(sigaction(SIGUSR1, &act, &old));
	for (int by_cancel = 0; by_cancel < 2; by_cancel++) {
		pthread_t thread;
		void *result;

		atomic_store(&board->number[0], 0);
		atomic_store(&board->number[1], 0);
		CHECK_INT(pthread_create(&thread, NULL, leave_and_end, (void *)(intptr_t)by_cancel),
			  0);
		UNTIL(atomic_load(&board->number[0]) != 0 &&
		      task_sleeps((pid_t)atomic_load(&board->number[0])));
		CHECK_INT(pthread_kill(thread, SIGUSR1), 0);
		UNTIL(atomic_load(&board->number[1]));
		if (by_cancel)
			CHECK_INT(pthread_cancel(thread), 0);
		CHECK_INT(pthread_join(thread, &result), 0);
		CHECK(result == (by_cancel ? PTHREAD_CANCELED : NULL));
	}
	CHECK_OK(sigaction(SIGUSR1, &old, NULL));
	CHECK_OK(msgctl(queue_id, IPC_RMID, NULL));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(sleeping_semop_is_cancelled),
		TEST(sleeping_semop_of_several_operations_is_cancelled),
		TEST(sleeping_semop_by_number_is_cancelled),
		TEST(sleeping_msgrcv_is_cancelled),
		TEST(busy_thread_is_cancelled),
		TEST(call_left_by_longjmp_is_over),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
