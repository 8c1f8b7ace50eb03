// SPDX-License-Identifier: MIT
/*
 * conform-sem: creation of semaphore sets, and semop and semtimedop as far as nobody sleeps: the
 * order of the checks, what a call performs, what it records.
 */
#include "conform/sem_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	SEMMSL = 32000,
	SEMOPM = 500,
	BAD_ID = 0x7fffffff,
};

/* ---- creation ---- */

static void semget_count_0_is_einval_for_a_new_set(void **state)
{
	(void)state;
	CHECK_ERR(semget(IPC_PRIVATE, 0, IPC_CREAT | 0600), EINVAL);
	CHECK_ERR(semget(test_key(1), 0, IPC_CREAT | 0600), EINVAL);
	/* A key that is not there is ENOENT before the count matters. */
	CHECK_ERR(semget(test_key(1), 0, 0600), ENOENT);
}

static void semget_count_up_to_the_sets_own_is_fine_for_an_existing_set(void **state)
{
	int id = own_sem((int)CHECK_OK(semget(test_key(1), 5, IPC_CREAT | 0600)));

	(void)state;
	for (int count = 0; count <= 5; count++)
		CHECK_INT(semget(test_key(1), count, IPC_CREAT | 0600), id);
}

static void semget_more_than_the_set_has_is_einval(void **state)
{
	(void)state;
	own_sem((int)CHECK_OK(semget(test_key(1), 5, IPC_CREAT | 0600)));
	CHECK_ERR(semget(test_key(1), 6, IPC_CREAT | 0600), EINVAL);
	CHECK_ERR(semget(test_key(1), 6, 0), EINVAL);
}

static void semget_count_out_of_range_is_einval_even_if_the_key_exists(void **state)
{
	static const int counts[] = {-1, -2147483647 - 1, SEMMSL + 1, 2147483647};

	(void)state;
	own_sem((int)CHECK_OK(semget(test_key(1), 5, IPC_CREAT | 0600)));
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
		CHECK_ERR(semget(test_key(1), counts[i], IPC_CREAT | IPC_EXCL | 0600), EINVAL);
		CHECK_ERR(semget(test_key(1), counts[i], 0), EINVAL);
		/* And before ENOENT. */
		CHECK_ERR(semget(test_key(2), counts[i], 0), EINVAL);
		CHECK_ERR(semget(IPC_PRIVATE, counts[i], 0600), EINVAL);
	}
}

static void semget_eexist_beats_a_count_too_large(void **state)
{
	(void)state;
	own_sem((int)CHECK_OK(semget(test_key(1), 5, IPC_CREAT | 0600)));
	CHECK_ERR(semget(test_key(1), 6, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
}

static void semget_a_count_too_large_beats_eacces(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	own_sem((int)CHECK_OK(semget(test_key(1), 5, IPC_CREAT | 0600)));
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(semget(test_key(1), 6, 0600), EINVAL);
		CHECK_ERR(semget(test_key(1), 5, 0600), EACCES);
	}
	child_ok(kid);
}

static void semget_makes_sets_up_to_semmsl(void **state)
{
	int id = sem_new(SEMMSL);

	(void)state;
	CHECK_INT(sem_stat(id).sem_nsems, SEMMSL);
	CHECK_OK(SEMOP(id, {SEMMSL - 1, 7, 0}));
	CHECK_INT(sem_value(id, SEMMSL - 1), 7);
	CHECK_INT(sem_value(id, SEMMSL - 2), 0);
	CHECK_ERR(SEMOP(id, {SEMMSL, 7, 0}), EFBIG);
}

static void new_set_is_all_zero(void **state)
{
	static const int counts[] = {1, 2, 7, 64, 1000};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
		int id = sem_new(counts[i]);
		struct semid_ds ds = sem_stat(id);

		CHECK_INT(ds.sem_otime, 0);
		CHECK_INT(ds.sem_nsems, counts[i]);
		for (int k = 0; k < counts[i]; k++) {
			CHECK_INT(sem_value(id, k), 0);
			CHECK_INT(sem_pid(id, k), 0);
			CHECK_INT(sem_ncnt(id, k), 0);
			CHECK_INT(sem_zcnt(id, k), 0);
		}
	}
}

/* A set that takes the place of a removed one shows nothing of it. */
static void new_set_is_all_zero_where_another_one_was(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		unsigned short values[9];
		int id = sem_new(9);

		CHECK_OK(sem_getall(id, values));
		for (int k = 0; k < 9; k++)
			CHECK_INT(values[k], 0);
		CHECK_INT(sem_pid(id, 4), 0);
		CHECK_INT(sem_stat(id).sem_otime, 0);
		CHECK_OK(SEMOP(id, {4, 100, SEM_UNDO}, {8, 1, 0}));
		CHECK_OK(semctl(id, 0, IPC_RMID));
	}
}

/* ---- the order of the checks ---- */

static void semop_e2big_beats_everything(void **state)
{
	struct sembuf ops[SEMOPM + 1];
	int id = sem_new(1);

	(void)state;
	memset(ops, 0, sizeof(ops));
	CHECK_OK(semop(id, ops, SEMOPM));
	CHECK_ERR(semop(id, ops, SEMOPM + 1), E2BIG);
	CHECK_ERR(semop(-1, ops, SEMOPM + 1), E2BIG);
	CHECK_ERR(semop(BAD_ID, ops, SEMOPM + 1), E2BIG);
	CHECK_ERR(semop(id, BAD_POINTER, SEMOPM + 1), E2BIG);
}

static void semop_no_operation_is_einval(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_ERR(semop(id, OPS({0, 1, 0}), 0), EINVAL);
	CHECK_ERR(semop(id, BAD_POINTER, 0), EINVAL);
}

static void semop_efault_beats_a_bad_id(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_ERR(semop(id, BAD_POINTER, 1), EFAULT);
	CHECK_ERR(semop(id, NULL, 1), EFAULT);
	CHECK_ERR(semop(-1, BAD_POINTER, 1), EFAULT);
	CHECK_ERR(semop(BAD_ID, BAD_POINTER, 1), EFAULT);
}

/* Operations that reach into a page that is not there. */
static void semop_efault_in_the_middle_of_the_operations(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	int id = sem_new(1);
	struct sembuf *ops;
	char *map;

	(void)state;
	map = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		   0);
	CHECK(map != MAP_FAILED);
	CHECK_OK(mprotect(map + page, (size_t)page, PROT_NONE));
	for (size_t fit = 0; fit < 6; fit++) {
		ops = (struct sembuf *)(void *)(map + page) - fit;
		for (size_t i = 0; i < fit; i++)
			ops[i] = (struct sembuf){.sem_op = 1};
		CHECK_ERR(semop(id, ops, fit + 1), EFAULT);
		CHECK_INT(sem_value(id, 0), 0);
	}
	ops = (struct sembuf *)(void *)(map + page) - 5;
	CHECK_OK(semop(id, ops, 5));
	CHECK_INT(sem_value(id, 0), 5);
	CHECK_OK(munmap(map, (size_t)page * 2));
}

static void semtimedop_efault_of_the_timeout_comes_first(void **state)
{
	struct sembuf ops[SEMOPM + 1];
	int id = sem_new(1);

	(void)state;
	memset(ops, 0, sizeof(ops));
	CHECK_ERR(semtimedop(id, ops, 1, BAD_POINTER), EFAULT);
	CHECK_ERR(semtimedop(id, ops, SEMOPM + 1, BAD_POINTER), EFAULT);
	CHECK_ERR(semtimedop(id, ops, 0, BAD_POINTER), EFAULT);
	CHECK_ERR(semtimedop(-1, ops, 1, BAD_POINTER), EFAULT);
}

static void semtimedop_invalid_timeout_is_einval_even_if_nothing_blocks(void **state)
{
	static const struct timespec invalid[] = {
		{.tv_sec = -1},
		{.tv_nsec = -1},
		{.tv_nsec = 1000000000},
		{.tv_sec = 5, .tv_nsec = -5},
		{.tv_sec = -1, .tv_nsec = 5},
	};
	int id = sem_new(1);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(invalid); i++) {
		CHECK_ERR(semtimedop(id, OPS({0, 1, 0}), 1, &invalid[i]), EINVAL);
		CHECK_ERR(semtimedop(id, OPS({5, 1, 0}), 1, &invalid[i]), EINVAL);
		CHECK_ERR(semtimedop(id, OPS({0, -1, IPC_NOWAIT}), 1, &invalid[i]), EINVAL);
		CHECK_ERR(semtimedop(id, BAD_POINTER, 1, &invalid[i]), EFAULT);
	}
	CHECK_INT(sem_value(id, 0), 0);
}

static void semtimedop_without_timeout_is_semop(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_OK(semtimedop(id, OPS({0, 1, 0}), 1, NULL));
	CHECK_INT(sem_value(id, 0), 1);
}

static void semop_bad_id_is_einval(void **state)
{
	static const int ids[] = {-1, -2147483647 - 1, BAD_ID, 32767};
	int removed = sem_new(1);

	(void)state;
	CHECK_OK(semctl(removed, 0, IPC_RMID));
	CHECK_ERR(SEMOP(removed, {0, 1, 0}), EINVAL);
	for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
		CHECK_ERR(SEMOP(ids[i], {0, 1, 0}), EINVAL);
		CHECK_ERR(SEMOP(ids[i], {0, 1, SEM_UNDO}), EINVAL);
		CHECK_ERR(SEMOP(ids[i], {0, 0, IPC_NOWAIT}), EINVAL);
		/* Whatever the semaphore's number. */
		CHECK_ERR(SEMOP(ids[i], {60000, 1, 0}), EINVAL);
	}
}

static void semop_number_out_of_range_is_efbig(void **state)
{
	int id = sem_new(3);

	(void)state;
	CHECK_ERR(SEMOP(id, {3, 1, 0}), EFBIG);
	CHECK_ERR(SEMOP(id, {3, 0, 0}), EFBIG);
	CHECK_ERR(SEMOP(id, {65535, -1, IPC_NOWAIT | SEM_UNDO}), EFBIG);
	/* Also when an earlier operation would block, or fail. */
	CHECK_ERR(SEMOP(id, {0, -1, IPC_NOWAIT}, {3, 1, 0}), EFBIG);
	CHECK_ERR(SEMOP(id, {0, 1, 0}, {3, 1, 0}), EFBIG);
	CHECK_INT(sem_value(id, 0), 0);
}

static void semop_efbig_beats_eacces(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	need_users();
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(SEMOP(id, {2, 1, 0}), EFBIG);
		CHECK_ERR(SEMOP(id, {1, 1, 0}), EACCES);
	}
	child_ok(kid);
}

/* Who may only read may wait for zero; a single change among the operations needs to write. */
static void semop_needs_write_permission_if_any_operation_changes(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	need_users();
	sem_chmod(id, 0604);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_OK(SEMOP(id, {0, 0, 0}));
		CHECK_OK(SEMOP(id, {0, 0, 0}, {1, 0, SEM_UNDO}));
		CHECK_ERR(SEMOP(id, {0, 1, 0}), EACCES);
		CHECK_ERR(SEMOP(id, {0, -1, IPC_NOWAIT}), EACCES);
		CHECK_ERR(SEMOP(id, {0, 0, 0}, {1, 1, 0}), EACCES);
	}
	child_ok(kid);
	sem_chmod(id, 0602);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(SEMOP(id, {0, 0, 0}), EACCES);
		CHECK_OK(SEMOP(id, {0, 1, 0}));
		CHECK_OK(SEMOP(id, {1, 0, 0}, {0, -1, 0}));
	}
	child_ok(kid);
	sem_chmod(id, 0600);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(SEMOP(id, {0, 0, IPC_NOWAIT}), EACCES);
		CHECK_ERR(SEMOP(id, {0, -1, IPC_NOWAIT}), EACCES);
		CHECK_ERR(SEMOP(id, {0, SEMVMX, 0}, {0, 1, 0}), EACCES);
	}
	child_ok(kid);
}

static void semop_unknown_flags_are_ignored(void **state)
{
	const short unknown = 0x4400;
	int id = sem_new(1);

	(void)state;
	CHECK_OK(SEMOP(id, {0, 1, unknown}));
	CHECK_ERR(SEMOP(id, {0, -2, unknown | IPC_NOWAIT}), EAGAIN);
	CHECK_INT(sem_value(id, 0), 1);
}

/* ---- what a call performs ---- */

#define NW IPC_NOWAIT

static const struct perform_case {
	const char *rule;
	unsigned short before[3];
	struct sembuf ops[5];
	int err;
	unsigned short after[3];
} perform_cases[] = {
	{"add", {1, 0, 0}, {{0, 2, 0}}, 0, {3, 0, 0}},
	{"subtract", {3, 0, 0}, {{0, -2, 0}}, 0, {1, 0, 0}},
	{"subtract all", {3, 0, 0}, {{0, -3, 0}}, 0, {0, 0, 0}},
	{"subtract more than there is", {3, 0, 0}, {{0, -4, NW}}, EAGAIN, {3, 0, 0}},
	{"zero", {0, 5, 0}, {{0, 0, 0}}, 0, {0, 5, 0}},
	{"not zero", {1, 0, 0}, {{0, 0, NW}}, EAGAIN, {1, 0, 0}},
	{"up to the maximum", {1, 0, 0}, {{0, SEMVMX - 1, 0}}, 0, {SEMVMX, 0, 0}},
	{"over the maximum", {2, 0, 0}, {{0, SEMVMX - 1, 0}}, ERANGE, {2, 0, 0}},
	{"over the maximum by one", {SEMVMX, 0, 0}, {{0, 1, 0}}, ERANGE, {SEMVMX, 0, 0}},
	{"largest decrement", {SEMVMX, 0, 0}, {{0, -SEMVMX, 0}}, 0, {0, 0, 0}},
	{"too large for any value", {SEMVMX, 0, 0}, {{0, -32768, NW}}, EAGAIN, {SEMVMX, 0, 0}},
	{"several at once", {1, 2, 3}, {{0, 1, 0}, {1, -1, 0}, {2, -3, 0}}, 0, {2, 1, 0}},
	{"all or nothing", {1, 2, 3}, {{0, 1, 0}, {1, -1, 0}, {2, -4, NW}}, EAGAIN, {1, 2, 3}},
	{"nor half", {1, 2, SEMVMX}, {{0, -1, 0}, {1, 1, 0}, {2, 1, 0}}, ERANGE, {1, 2, SEMVMX}},
	{"one semaphore twice", {1, 0, 0}, {{0, 1, 0}, {0, -2, 0}}, 0, {0, 0, 0}},
	{"order counts", {1, 0, 0}, {{0, -2, NW}, {0, 1, 0}}, EAGAIN, {1, 0, 0}},
	{"zero in between", {1, 0, 0}, {{0, -1, 0}, {0, 0, 0}, {0, 4, 0}}, 0, {4, 0, 0}},
	{"not zero in between", {0, 0, 0}, {{0, 1, 0}, {0, 0, NW}, {0, -1, 0}}, EAGAIN, {0, 0, 0}},
	{"zero, then taken as a lock", {0, 0, 0}, {{0, 0, 0}, {0, 1, SEM_UNDO}}, 0, {1, 0, 0}},
	{"range in between", {1, 0, 0}, {{0, SEMVMX, 0}, {0, -5, 0}}, ERANGE, {1, 0, 0}},
	{"high in between", {1, 0, 0}, {{0, SEMVMX - 1, 0}, {0, -SEMVMX, 0}}, 0, {0, 0, 0}},
	{"earlier block decides", {0, SEMVMX, 0}, {{0, -1, NW}, {1, 1, 0}}, EAGAIN, {0, SEMVMX, 0}},
	{"earlier range decides", {0, SEMVMX, 0}, {{1, 1, 0}, {0, -1, NW}}, ERANGE, {0, SEMVMX, 0}},
	{"change undone before EAGAIN", {0, 0, 0}, {{0, 5, 0}, {1, -1, NW}}, EAGAIN, {0, 0, 0}},
	{"last one", {0, 0, 9}, {{2, -9, 0}, {2, 0, 0}, {2, 0, NW}, {1, 1, 0}}, 0, {0, 1, 0}},
};

static void semop_performs_all_or_nothing_in_order(void **state)
{
	int id = sem_new(3);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(perform_cases); i++) {
		const struct perform_case *c = &perform_cases[i];
		struct sembuf ops[ARRAY_COUNT(c->ops)];
		unsigned short values[3];
		size_t count = ARRAY_COUNT(c->ops);
		int err;

		memcpy(values, c->before, sizeof(values));
		memcpy(ops, c->ops, sizeof(ops));
		/* A row ends at the last operation that says something. */
		while (count > 1 && !ops[count - 1].sem_num && !ops[count - 1].sem_op &&
		       !ops[count - 1].sem_flg)
			count--;
		CHECK_OK(sem_setall(id, values));
		err = semop(id, ops, count) == -1 ? errno : 0;
		if (err != c->err)
			check_fail(__FILE__, __LINE__, "'%s': %s, not %s", c->rule,
				   strerrorname_np(err), strerrorname_np(c->err));
		CHECK_OK(sem_getall(id, values));
		if (memcmp(values, c->after, sizeof(values)) != 0)
			check_fail(__FILE__, __LINE__, "'%s': values %d %d %d", c->rule, values[0],
				   values[1], values[2]);
	}
}

static void semop_performs_500_operations_as_one(void **state)
{
	struct sembuf ops[SEMOPM];
	int id = sem_new(SEMOPM);

	(void)state;
	for (unsigned short i = 0; i < SEMOPM; i++)
		ops[i] = (struct sembuf){.sem_num = i, .sem_op = (short)(i + 1)};
	CHECK_OK(semop(id, ops, SEMOPM));
	for (int i = 0; i < SEMOPM; i++)
		CHECK_INT(sem_value(id, i), i + 1);
	for (int i = 0; i < SEMOPM; i++)
		ops[i].sem_op = -1;
	ops[SEMOPM - 1].sem_op = -(SEMOPM + 1);
	ops[SEMOPM - 1].sem_flg = IPC_NOWAIT;
	CHECK_ERR(semop(id, ops, SEMOPM), EAGAIN);
	for (int i = 0; i < SEMOPM; i++)
		CHECK_INT(sem_value(id, i), i + 1);
}

static void semtimedop_zero_timeout_is_eagain_at_once(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_ERR(SEMTIMEDOP(id, 0, {0, -1, 0}), EAGAIN);
	CHECK_OK(SEMTIMEDOP(id, 0, {0, 1, 0}));
	CHECK_ERR(SEMTIMEDOP(id, 0, {0, 0, 0}), EAGAIN);
}

/* ---- what a call records ---- */

static void semop_sets_the_pid_of_every_semaphore_named(void **state)
{
	int id = sem_new(4);
	pid_t kid;

	(void)state;
	CHECK_OK(SEMOP(id, {0, 1, 0}, {1, 1, 0}));
	CHECK_INT(sem_pid(id, 0), getpid());
	CHECK_INT(sem_pid(id, 2), 0);
	IN_CHILD (kid)
		CHECK_OK(SEMOP(id, {0, -1, 0}, {2, 0, 0}));
	child_ok(kid);
	CHECK_INT(sem_pid(id, 0), kid);
	CHECK_INT(sem_pid(id, 1), getpid());
	CHECK_INT(sem_pid(id, 2), kid);
	CHECK_INT(sem_pid(id, 3), 0);
}

static void semop_that_fails_records_nothing(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_ERR(SEMOP(id, {0, 5, 0}, {1, -1, IPC_NOWAIT}), EAGAIN);
	CHECK_ERR(SEMOP(id, {0, SEMVMX, 0}, {0, 1, 0}), ERANGE);
	CHECK_ERR(SEMOP(id, {0, 1, 0}, {2, 1, 0}), EFBIG);
	CHECK_INT(sem_pid(id, 0), 0);
	CHECK_INT(sem_pid(id, 1), 0);
	CHECK_INT(sem_stat(id).sem_otime, 0);
}

static void *thread_adds(void *arg)
{
	CHECK_OK(SEMOP(*(int *)arg, {0, 1, 0}));
	return NULL;
}

static void semop_of_a_thread_records_the_process(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		pthread_t thread;

		CHECK_INT(pthread_create(&thread, NULL, thread_adds, &id), 0);
		CHECK_INT(pthread_join(thread, NULL), 0);
		CHECK_INT(sem_pid(id, 0), getpid());
	}
	child_ok(kid);
	CHECK_INT(sem_pid(id, 0), kid);
}

static void semop_success_sets_otime_also_for_zero_operations(void **state)
{
	time_t before;
	time_t first;
	int id = sem_new(3);

	(void)state;
	before = second_before();
	CHECK_OK(SEMOP(id, {1, 0, 0}));
	first = sem_stat(id).sem_otime;
	CHECK(first >= before);
	CHECK(first <= second_after());
	pass_second(first);
	CHECK_INT(sem_stat(id).sem_otime, first);
	CHECK_OK(SEMOP(id, {2, 1, 0}, {2, -1, 0}));
	CHECK(sem_stat(id).sem_otime > first);
	/* The latest of all semaphores counts, whichever is used. */
	first = sem_stat(id).sem_otime;
	pass_second(first);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK(sem_stat(id).sem_otime > first);
}

static void semop_leaves_ctime(void **state)
{
	int id = sem_new(1);
	time_t ctime = sem_stat(id).sem_ctime;

	(void)state;
	pass_second(ctime);
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	CHECK_INT(sem_stat(id).sem_ctime, ctime);
}

/* ---- other doors to the same calls ---- */

static void raw_system_calls_reach_the_same_objects(void **state)
{
	int id = own_sem((int)CHECK_OK(syscall(SYS_semget, test_key(1), 2, IPC_CREAT | 0600)));
	struct timespec nothing = {0};
	struct semid_ds ds;

	(void)state;
	CHECK_INT(semget(test_key(1), 2, 0), id);
	CHECK_OK(syscall(SYS_semop, id, OPS({0, 3, 0}), 1L));
	CHECK_OK(syscall(SYS_semtimedop, id, OPS({1, 2, 0}), 1L, &nothing));
	errno = 0;
	CHECK_ERR(syscall(SYS_semtimedop, id, OPS({1, -3, 0}), 1L, &nothing), EAGAIN);
	CHECK_INT(sem_value(id, 0), 3);
	CHECK_INT(syscall(SYS_semctl, id, 1, GETVAL, 0), 2);
	CHECK_INT(syscall(SYS_semctl, id, 1, SETVAL, 9), 0);
	CHECK_INT(sem_value(id, 1), 9);
	CHECK_OK(syscall(SYS_semctl, id, 0, IPC_STAT, &ds));
	CHECK_INT(ds.sem_nsems, 2);
	CHECK_ERR(syscall(SYS_semop, -1, OPS({0, 3, 0}), 1L), EINVAL);
	CHECK_INT(syscall(SYS_semctl, id, 0, IPC_RMID, 0), 0);
	CHECK_ERR(semctl(id, 0, GETVAL), EINVAL);
}

/* ISO C has no cast between object and function pointers. */
typedef int (*semget_call)(key_t, int, int);

static semget_call find_semget(void *handle)
{
	void *symbol = dlsym(handle, "semget");
	semget_call call;

	CHECK(symbol != NULL);
	memcpy(&call, &symbol, sizeof(call));
	return call;
}

static void symbols_looked_up_reach_the_same_objects(void **state)
{
	int id = own_sem((int)CHECK_OK(semget(test_key(1), 2, IPC_CREAT | 0600)));
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	(void)state;
	CHECK_INT(find_semget(RTLD_DEFAULT)(test_key(1), 2, 0), id);
	if (!libc)
		SKIP("no libc.so.6 to open");
	CHECK_INT(find_semget(libc)(test_key(1), 2, 0), id);
	CHECK_INT(dlclose(libc), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(semget_count_0_is_einval_for_a_new_set),
		TEST(semget_count_up_to_the_sets_own_is_fine_for_an_existing_set),
		TEST(semget_more_than_the_set_has_is_einval),
		TEST(semget_count_out_of_range_is_einval_even_if_the_key_exists),
		TEST(semget_eexist_beats_a_count_too_large),
		TEST(semget_a_count_too_large_beats_eacces),
		TEST(semget_makes_sets_up_to_semmsl),
		TEST(new_set_is_all_zero),
		TEST(new_set_is_all_zero_where_another_one_was),
		TEST(semop_e2big_beats_everything),
		TEST(semop_no_operation_is_einval),
		TEST(semop_efault_beats_a_bad_id),
		TEST(semop_efault_in_the_middle_of_the_operations),
		TEST(semtimedop_efault_of_the_timeout_comes_first),
		TEST(semtimedop_invalid_timeout_is_einval_even_if_nothing_blocks),
		TEST(semtimedop_without_timeout_is_semop),
		TEST(semop_bad_id_is_einval),
		TEST(semop_number_out_of_range_is_efbig),
		TEST(semop_efbig_beats_eacces),
		TEST(semop_needs_write_permission_if_any_operation_changes),
		TEST(semop_unknown_flags_are_ignored),
		TEST(semop_performs_all_or_nothing_in_order),
		TEST(semop_performs_500_operations_as_one),
		TEST(semtimedop_zero_timeout_is_eagain_at_once),
		TEST(semop_sets_the_pid_of_every_semaphore_named),
		TEST(semop_that_fails_records_nothing),
		TEST(semop_of_a_thread_records_the_process),
		TEST(semop_success_sets_otime_also_for_zero_operations),
		TEST(semop_leaves_ctime),
		TEST(raw_system_calls_reach_the_same_objects),
		TEST(symbols_looked_up_reach_the_same_objects),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("sem", tests, NULL, NULL);
}
