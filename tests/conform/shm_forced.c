// SPDX-License-Identifier: MIT
/*
 * conform-shm-forced: kernel.shm_rmid_forced, under which a segment goes as soon as nobody has it
 * attached, though nobody removed it: with its last attach, and if it never had one with the thread
 * that created it.
 */
#include "conform/shm_calls.h"

#include <pthread.h>

static void force(const char *value)
{
	set_limit("/proc/sys/kernel/shm_rmid_forced", value);
}

static bool is_there(int id)
{
	struct shmid_ds ds;
	int ret = shmctl(id, IPC_STAT, &ds);

	/* EIDRM: it went while this call looked */
	CHECK(ret == 0 || errno == EINVAL || errno == EIDRM);
	return ret == 0;
}

/* A segment whose creator has ended, after attaching and detaching it or not. */
static int new_orphan(bool attached)
{
	pid_t kid;

	IN_CHILD (kid) {
		int id = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));

		if (attached)
			CHECK_OK(shmdt(shm_at(id, NULL, 0)));
		board->number[0] = id;
	}
	child_ok(kid);
	return own_shm((int)board->number[0]);
}

static void orphans_go_when_it_is_switched_on(void **state)
{
	int never = new_orphan(false), once = new_orphan(true), own = shm_new(PAGE);
	int held = new_orphan(false);
	char *p = shm_at(held, NULL, 0);

	(void)state;
	CHECK(is_there(never) && is_there(once));
	force("1");
	CHECK(!is_there(never));
	CHECK(!is_there(once));
	CHECK(is_there(own));
	CHECK_INT(shm_nattch(held), 1);
	CHECK_OK(shmdt(p));
	CHECK(!is_there(held));
}

static void own_segment_stays_until_it_was_attached(void **state)
{
	char *p;
	int id;

	(void)state;
	force("1");
	id = shm_new(PAGE);
	CHECK(is_there(id));
	CHECK_INT(shmctl(id & 0x7fff, SHM_STAT, &(struct shmid_ds){0}), id);
	CHECK(is_there(id));
	p = shm_at(id, NULL, 0);
	/* not a removed one: it has no such mark */
	CHECK_INT(shm_stat(id).shm_perm.mode, 0600);
	CHECK_OK(shmdt(p));
	CHECK(!is_there(id));
}

static void own_segment_stays_when_it_was_attached_before(void **state)
{
	int id = shm_new(PAGE);

	(void)state;
	CHECK_OK(shmdt(shm_at(id, NULL, 0)));
	force("1");
	compat_skip("shm-rmid-forced");
	CHECK(is_there(id));
}

static void failed_attach_is_the_last(void **state)
{
	char here;
	int id;

	(void)state;
	force("1");
	id = shm_new(PAGE);
	CHECK_ERR(shmat(id, (void *)1, 0), EINVAL);
	CHECK(is_there(id));
	CHECK_ERR(shmat(id, &here - (uintptr_t)&here % PAGE, 0), EINVAL);
	CHECK(!is_there(id));
}

static void segments_go_with_the_process(void **state)
{
	pid_t kid;

	(void)state;
	force("1");
	CHECK(!is_there(new_orphan(false)));
	CHECK(!is_there(new_orphan(true)));
	IN_CHILD (kid) {
		int id = (int)CHECK_OK(shmget(test_key(1), PAGE, IPC_CREAT | 0600));

		(void)shm_at(id, NULL, 0);
		board->number[0] = id;
		(void)raise(SIGKILL);
	}
	CHECK_INT(WTERMSIG(child_status(kid)), SIGKILL);
	CHECK(!is_there((int)board->number[0]));
	CHECK_ERR(shmget(test_key(1), 0, 0), ENOENT);
}

static void *create(void *arg)
{
	board->number[0] = CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));
	return arg;
}

static void segments_go_with_the_thread(void **state)
{
	pid_t kid;

	(void)state;
	force("1");
	IN_CHILD (kid) {
		pthread_t thread;

		CHECK_INT(pthread_create(&thread, NULL, create, NULL), 0);
		CHECK_INT(pthread_join(thread, NULL), 0);
		/* joined a moment before it has ended */
		UNTIL(!is_there((int)board->number[0]));
	}
	child_ok(kid);
}

static void other_attaches_keep_it(void **state)
{
	pid_t kid;
	char *p;
	int id;

	(void)state;
	force("1");
	id = shm_new(PAGE);
	p = shm_at(id, NULL, 0);
	IN_CHILD (kid) {
		board->flag[0] = 1;
		UNTIL(board->flag[1]);
	}
	UNTIL(board->flag[0]);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 1);
	board->flag[1] = 1;
	child_ok(kid);
	CHECK(!is_there(id));
}

static void switched_off_again(void **state)
{
	int id;

	(void)state;
	force("1");
	force("0");
	id = shm_new(PAGE);
	CHECK_OK(shmdt(shm_at(id, NULL, 0)));
	CHECK(is_there(id));
	CHECK(is_there(new_orphan(true)));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(orphans_go_when_it_is_switched_on),
		TEST(own_segment_stays_until_it_was_attached),
		TEST(own_segment_stays_when_it_was_attached_before),
		TEST(failed_attach_is_the_last),
		TEST(segments_go_with_the_process),
		TEST(segments_go_with_the_thread),
		TEST(other_attaches_keep_it),
		TEST(switched_off_again),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("shm-forced", tests, NULL, NULL);
}
