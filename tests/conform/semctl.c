// SPDX-License-Identifier: MIT
/*
 * conform-semctl: semctl's commands, their checks and effects as far as nobody sleeps, and the
 * limits. What they do to undo and to sleepers is asked by conform-sem-undo and conform-sem-wake.
 */
#include "conform/sem_calls.h"

#include <limits.h>
#include <sched.h>

enum {
	BAD_ID = 0x7fffffff,
	SEMMNS = 1024000000,
	SEMMSL = 32000,
	SEMMNI = 32000,
	SEMOPM = 500,
};

static int ctl_ptr(int id, int number, int cmd, void *pointer)
{
	return semctl(id, number, cmd, (union semun){.buf = pointer});
}

/* ---- SETVAL ---- */

static void setval_sets_value_pid_and_ctime_but_not_otime(void **state)
{
	int id = sem_new(3);
	struct semid_ds ds = sem_stat(id);

	(void)state;
	pass_second(ds.sem_ctime);
	CHECK_INT(sem_setval(id, 1, 42), 0);
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_value(id, 1), 42);
	CHECK_INT(sem_value(id, 2), 0);
	CHECK_INT(sem_pid(id, 0), 0);
	CHECK_INT(sem_pid(id, 1), getpid());
	CHECK_INT(sem_stat(id).sem_otime, 0);
	CHECK(sem_stat(id).sem_ctime > ds.sem_ctime);
	CHECK(sem_stat(id).sem_ctime <= second_after());
}

static void setval_takes_0_to_semvmx(void **state)
{
	int id = sem_new(1);

	(void)state;
	CHECK_INT(sem_setval(id, 0, SEMVMX), 0);
	CHECK_INT(sem_value(id, 0), SEMVMX);
	CHECK_INT(sem_setval(id, 0, 0), 0);
	CHECK_INT(sem_value(id, 0), 0);
}

static void setval_out_of_range_is_erange_before_the_id_is_looked_up(void **state)
{
	static const int values[] = {-1, SEMVMX + 1, INT_MAX, INT_MIN};
	int id = sem_new(1);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
		CHECK_ERR(sem_setval(id, 0, values[i]), ERANGE);
		CHECK_ERR(sem_setval(BAD_ID, 0, values[i]), ERANGE);
		CHECK_ERR(sem_setval(id, 7, values[i]), ERANGE);
		/* A negative id is seen even earlier. */
		CHECK_ERR(sem_setval(-1, 0, values[i]), EINVAL);
	}
	CHECK_INT(sem_value(id, 0), 0);
	CHECK_INT(sem_pid(id, 0), 0);
}

static void setval_bad_id_or_number_is_einval(void **state)
{
	int id = sem_new(2);

	(void)state;
	CHECK_ERR(sem_setval(BAD_ID, 0, 1), EINVAL);
	CHECK_ERR(sem_setval(id, 2, 1), EINVAL);
	CHECK_ERR(sem_setval(id, -1, 1), EINVAL);
	CHECK_ERR(sem_setval(id, INT_MAX, 1), EINVAL);
}

static void setval_checks_the_number_before_permission(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	need_users();
	sem_chmod(id, 0604);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(sem_setval(id, 2, 1), EINVAL);
		CHECK_ERR(sem_setval(id, 1, 1), EACCES);
		CHECK_ERR(sem_setval(id, 1, -1), ERANGE);
	}
	child_ok(kid);
	sem_chmod(id, 0602);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_OK(sem_setval(id, 1, 1));
	}
	child_ok(kid);
}

/* ---- SETALL and GETALL ---- */

static void setall_sets_values_pids_and_ctime_but_not_otime(void **state)
{
	unsigned short values[] = {1, SEMVMX, 0, 7};
	unsigned short got[ARRAY_COUNT(values)];
	int id = sem_new(ARRAY_COUNT(values));
	struct semid_ds ds = sem_stat(id);

	(void)state;
	pass_second(ds.sem_ctime);
	CHECK_INT(sem_setall(id, values), 0);
	CHECK_INT(sem_getall(id, got), 0);
	CHECK_INT(memcmp(values, got, sizeof(values)), 0);
	for (int i = 0; i < (int)ARRAY_COUNT(values); i++)
		CHECK_INT(sem_pid(id, i), getpid());
	CHECK_INT(sem_stat(id).sem_otime, 0);
	CHECK(sem_stat(id).sem_ctime > ds.sem_ctime);
}

static void setall_out_of_range_is_erange_and_changes_nothing(void **state)
{
	unsigned short fine[] = {1, 2, 3};
	unsigned short bad[][3] = {{9, 9, SEMVMX + 1}, {65535, 9, 9}, {9, 40000, 9}};
	unsigned short got[3];
	int id = sem_new(3);

	(void)state;
	CHECK_OK(sem_setall(id, fine));
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		CHECK_ERR(sem_setall(id, bad[i]), ERANGE);
		CHECK_OK(sem_getall(id, got));
		CHECK_INT(memcmp(fine, got, sizeof(got)), 0);
	}
}

static void setall_bad_id_then_eacces_then_efault(void **state)
{
	unsigned short bad[] = {1, 65535};
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	CHECK_ERR(ctl_ptr(BAD_ID, 0, SETALL, BAD_POINTER), EINVAL);
	CHECK_ERR(ctl_ptr(-1, 0, SETALL, BAD_POINTER), EINVAL);
	CHECK_ERR(ctl_ptr(id, 0, SETALL, BAD_POINTER), EFAULT);
	CHECK_ERR(ctl_ptr(id, 0, SETALL, NULL), EFAULT);
	need_users();
	sem_chmod(id, 0604);
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(ctl_ptr(id, 0, SETALL, BAD_POINTER), EACCES);
		CHECK_ERR(sem_setall(id, bad), EACCES);
	}
	child_ok(kid);
}

static void getall_bad_id_then_eacces_then_efault(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	CHECK_ERR(ctl_ptr(BAD_ID, 0, GETALL, BAD_POINTER), EINVAL);
	CHECK_ERR(ctl_ptr(-1, 0, GETALL, BAD_POINTER), EINVAL);
	CHECK_ERR(ctl_ptr(id, 0, GETALL, BAD_POINTER), EFAULT);
	CHECK_ERR(ctl_ptr(id, 0, GETALL, NULL), EFAULT);
	need_users();
	sem_chmod(id, 0602);
	IN_CHILD (kid) {
		unsigned short got[2];

		become_nobody();
		CHECK_ERR(ctl_ptr(id, 0, GETALL, BAD_POINTER), EACCES);
		CHECK_ERR(sem_getall(id, got), EACCES);
	}
	child_ok(kid);
}

static void getall_and_setall_of_a_large_set(void **state)
{
	static unsigned short values[SEMMSL];
	static unsigned short got[SEMMSL];
	int id = sem_new(SEMMSL);

	(void)state;
	for (int i = 0; i < SEMMSL; i++)
		values[i] = (unsigned short)(i * 7 % (SEMVMX + 1));
	CHECK_OK(sem_setall(id, values));
	CHECK_OK(sem_getall(id, got));
	CHECK_INT(memcmp(values, got, sizeof(values)), 0);
	CHECK_INT(sem_value(id, 31999), values[31999]);
}

static void setall_getall_and_object_commands_ignore_the_number(void **state)
{
	unsigned short values[2] = {3, 4};
	static const int numbers[] = {-1, 2, INT_MAX, INT_MIN};
	struct semid_ds ds;
	int id;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
		id = sem_new(2);
		CHECK_OK(ctl_ptr(id, numbers[i], SETALL, values));
		CHECK_OK(ctl_ptr(id, numbers[i], GETALL, values));
		CHECK_INT(values[1], 4);
		CHECK_OK(ctl_ptr(id, numbers[i], IPC_STAT, &ds));
		CHECK_OK(ctl_ptr(id, numbers[i], IPC_SET, &ds));
		CHECK_OK(semctl(id, numbers[i], IPC_RMID));
	}
}

/* ---- GETVAL, GETPID, GETNCNT, GETZCNT ---- */

static const int get_cmds[] = {GETVAL, GETPID, GETNCNT, GETZCNT};

static void get_commands_bad_id_or_number_is_einval(void **state)
{
	int id = sem_new(2);
	int removed = sem_new(2);

	(void)state;
	CHECK_OK(semctl(removed, 0, IPC_RMID));
	for (size_t i = 0; i < ARRAY_COUNT(get_cmds); i++) {
		CHECK_INT(semctl(id, 1, get_cmds[i]), 0);
		CHECK_ERR(semctl(id, 2, get_cmds[i]), EINVAL);
		CHECK_ERR(semctl(id, -1, get_cmds[i]), EINVAL);
		CHECK_ERR(semctl(id, INT_MAX, get_cmds[i]), EINVAL);
		CHECK_ERR(semctl(BAD_ID, 0, get_cmds[i]), EINVAL);
		CHECK_ERR(semctl(-1, 0, get_cmds[i]), EINVAL);
		CHECK_ERR(semctl(removed, 0, get_cmds[i]), EINVAL);
	}
}

static void get_commands_need_read_permission_before_the_number(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	need_users();
	sem_chmod(id, 0602);
	IN_CHILD (kid) {
		become_nobody();
		for (size_t i = 0; i < ARRAY_COUNT(get_cmds); i++) {
			CHECK_ERR(semctl(id, 0, get_cmds[i]), EACCES);
			CHECK_ERR(semctl(id, 2, get_cmds[i]), EACCES);
		}
	}
	child_ok(kid);
	sem_chmod(id, 0604);
	IN_CHILD (kid) {
		become_nobody();
		for (size_t i = 0; i < ARRAY_COUNT(get_cmds); i++)
			CHECK_INT(semctl(id, 0, get_cmds[i]), 0);
	}
	child_ok(kid);
}

static void getpid_tells_the_last_to_change_or_wait_for_zero(void **state)
{
	int id = sem_new(1);
	pid_t kid;

	(void)state;
	IN_CHILD (kid)
		CHECK_OK(sem_setval(id, 0, 0));
	child_ok(kid);
	CHECK_INT(sem_pid(id, 0), kid);
	CHECK_OK(SEMOP(id, {0, 0, 0}));
	CHECK_INT(sem_pid(id, 0), getpid());
	IN_CHILD (kid)
		CHECK_INT(sem_value(id, 0), 0);
	child_ok(kid);
	CHECK_INT(sem_pid(id, 0), getpid());
}

/* ---- IPC_STAT, IPC_SET, IPC_RMID ---- */

static void ipc_stat_tells_count_and_times(void **state)
{
	time_t before = second_before();
	int id = sem_new(5);
	struct semid_ds ds = sem_stat(id);

	(void)state;
	CHECK_INT(ds.sem_nsems, 5);
	CHECK_INT(ds.sem_otime, 0);
	CHECK(ds.sem_ctime >= before);
	CHECK(ds.sem_ctime <= second_after());
	/* Nothing else writes these. */
	CHECK_OK(sem_value(id, 0));
	CHECK_INT(sem_stat(id).sem_otime, 0);
}

static void ipc_set_sets_ctime_and_leaves_otime(void **state)
{
	int id = sem_new(1);
	struct semid_ds ds = sem_stat(id);
	struct semid_ds changed = ds;

	(void)state;
	pass_second(ds.sem_ctime);
	changed.sem_otime = 4711;
	changed.sem_ctime = 4711;
	changed.sem_nsems = 9;
	changed.sem_perm.mode = 0640;
	CHECK_OK(ctl_ptr(id, 0, IPC_SET, &changed));
	changed = sem_stat(id);
	CHECK_INT(changed.sem_otime, 0);
	CHECK(changed.sem_ctime > ds.sem_ctime);
	CHECK(changed.sem_ctime <= second_after());
	CHECK_INT(changed.sem_nsems, 1);
	CHECK_INT(changed.sem_perm.mode, 0640);
}

static void ipc_rmid_makes_every_call_einval(void **state)
{
	unsigned short values[1] = {0};
	struct semid_ds ds;
	int id = sem_new(1);

	(void)state;
	ds = sem_stat(id);
	CHECK_INT(semctl(id, 0, IPC_RMID), 0);
	CHECK_ERR(SEMOP(id, {0, 1, 0}), EINVAL);
	CHECK_ERR(SEMTIMEDOP(id, 10, {0, -1, 0}), EINVAL);
	CHECK_ERR(sem_setval(id, 0, 1), EINVAL);
	CHECK_ERR(sem_setall(id, values), EINVAL);
	CHECK_ERR(sem_getall(id, values), EINVAL);
	CHECK_ERR(ctl_ptr(id, 0, IPC_STAT, &ds), EINVAL);
	CHECK_ERR(ctl_ptr(id, 0, IPC_SET, &ds), EINVAL);
	CHECK_ERR(semctl(id, 0, IPC_RMID), EINVAL);
}

static void unknown_commands_are_einval(void **state)
{
	static const int cmds[] = {-1, 4, 10, 21, 99, INT_MAX, INT_MIN};
	int id = sem_new(1);

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cmds); i++) {
		CHECK_ERR(ctl_ptr(id, 0, cmds[i], BAD_POINTER), EINVAL);
		CHECK_ERR(ctl_ptr(-1, 0, cmds[i], BAD_POINTER), EINVAL);
	}
}

/* ---- limits ---- */

static struct seminfo info(int cmd)
{
	struct seminfo got;

	memset(&got, 0xff, sizeof(got));
	CHECK_OK(semctl(0, 0, cmd, (union semun){.info = &got}));
	return got;
}

static void check_common_limits(const struct seminfo *got)
{
	CHECK_INT(got->semmap, SEMMNS);
	CHECK_INT(got->semmni, SEMMNI);
	CHECK_INT(got->semmns, SEMMNS);
	CHECK_INT(got->semmnu, SEMMNS);
	CHECK_INT(got->semmsl, SEMMSL);
	CHECK_INT(got->semopm, SEMOPM);
	CHECK_INT(got->semume, SEMOPM);
	CHECK_INT(got->semvmx, SEMVMX);
}

static void ipc_info_tells_the_limits(void **state)
{
	struct seminfo got = info(IPC_INFO);

	(void)state;
	check_common_limits(&got);
	CHECK_INT(got.semusz, 20);
	CHECK_INT(got.semaem, SEMVMX);
}

static void sem_info_tells_what_is_in_use(void **state)
{
	struct seminfo got = info(SEM_INFO);
	int id;

	(void)state;
	check_common_limits(&got);
	CHECK_INT(got.semusz, 0);
	CHECK_INT(got.semaem, 0);
	(void)sem_new(5);
	id = sem_new(100);
	got = info(SEM_INFO);
	CHECK_INT(got.semusz, 2);
	CHECK_INT(got.semaem, 105);
	CHECK_OK(semctl(id, 0, IPC_RMID));
	got = info(SEM_INFO);
	CHECK_INT(got.semusz, 1);
	CHECK_INT(got.semaem, 5);
}

static void limits_are_shown_in_proc(void **state)
{
	char text[128];

	(void)state;
	read_file("/proc/sys/kernel/sem", text, sizeof(text));
	CHECK_INT(strcmp(text, "32000\t1024000000\t500\t32000\n"), 0);
}

static void limit_semmni_is_enospc(void **state)
{
	int id;

	(void)state;
	set_limit("/proc/sys/kernel/sem", "32000 1024000000 500 3");
	(void)sem_new(1);
	(void)sem_new(1);
	id = own_sem((int)CHECK_OK(semget(test_key(1), 1, IPC_CREAT | 0600)));
	CHECK_ERR(semget(IPC_PRIVATE, 1, 0600), ENOSPC);
	CHECK_ERR(semget(test_key(2), 1, IPC_CREAT | 0600), ENOSPC);
	CHECK_ERR(semget(test_key(2), 0, IPC_CREAT | 0600), EINVAL);
	CHECK_INT(semget(test_key(1), 1, IPC_CREAT | 0600), id);
	CHECK_OK(semctl(id, 0, IPC_RMID));
	own_sem((int)CHECK_OK(semget(test_key(2), 1, IPC_CREAT | 0600)));
}

static void limit_semmns_is_enospc(void **state)
{
	(void)state;
	set_limit("/proc/sys/kernel/sem", "32000 100 500 32000");
	(void)sem_new(60);
	CHECK_ERR(semget(IPC_PRIVATE, 41, 0600), ENOSPC);
	(void)sem_new(40);
	CHECK_ERR(semget(IPC_PRIVATE, 1, 0600), ENOSPC);
}

static void limit_semmsl_is_einval(void **state)
{
	(void)state;
	set_limit("/proc/sys/kernel/sem", "10 1024000000 500 32000");
	(void)sem_new(10);
	CHECK_ERR(semget(IPC_PRIVATE, 11, 0600), EINVAL);
	CHECK_INT(info(IPC_INFO).semmsl, 10);
}

static void limit_semopm_is_e2big(void **state)
{
	int id = sem_new(1);

	(void)state;
	set_limit("/proc/sys/kernel/sem", "32000 1024000000 2 32000");
	CHECK_OK(SEMOP(id, {0, 1, 0}, {0, 1, 0}));
	CHECK_ERR(SEMOP(id, {0, 1, 0}, {0, 1, 0}, {0, 1, 0}), E2BIG);
	CHECK_INT(info(IPC_INFO).semopm, 2);
}

static void limit_semmni_is_32768_at_the_most(void **state)
{
	(void)state;
	set_limit("/proc/sys/kernel/sem", "32000 1024000000 500 32768");
	CHECK_INT(write_file("/proc/sys/kernel/sem", "32000 1024000000 500 32769"), ERANGE);
	CHECK_INT(info(IPC_INFO).semmni, 32768);
}

static void limits_of_a_new_namespace_are_the_defaults(void **state)
{
	pid_t kid;

	(void)state;
	compat_skip("ipc-namespaces");
	set_limit("/proc/sys/kernel/sem", "100 1000 50 10");
	IN_CHILD (kid) {
		struct seminfo got;

		if (unshare(CLONE_NEWIPC) != 0)
			_exit(CHILD_SKIPPED);
		got = info(IPC_INFO);
		check_common_limits(&got);
	}
	child_ok_or_skip(kid, "no IPC namespace can be made here");
	CHECK_INT(info(IPC_INFO).semmsl, 100);
}

/* ---- pids as the reader knows them ---- */

static void getpid_across_pid_namespaces(void **state)
{
	int id = sem_new(2);
	pid_t kid;

	(void)state;
	compat_skip("pid-namespaces");
	CHECK_OK(SEMOP(id, {0, 1, 0}));
	IN_CHILD (kid) {
		pid_t inner;

		if (unshare(CLONE_NEWPID) != 0)
			_exit(CHILD_SKIPPED);
		/* Who is outside of the reader's namespace has no number there. */
		IN_CHILD (inner) {
			CHECK_INT(getpid(), 1);
			CHECK_INT(sem_pid(id, 0), 0);
			CHECK_OK(SEMOP(id, {1, 1, 0}));
			CHECK_INT(sem_pid(id, 1), 1);
		}
		CHECK(inner > 1);
		child_ok(inner);
		/* Also after its end. */
		CHECK_INT(sem_pid(id, 1), inner);
	}
	child_ok_or_skip(kid, "no pid namespace can be made here");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(setval_sets_value_pid_and_ctime_but_not_otime),
		TEST(setval_takes_0_to_semvmx),
		TEST(setval_out_of_range_is_erange_before_the_id_is_looked_up),
		TEST(setval_bad_id_or_number_is_einval),
		TEST(setval_checks_the_number_before_permission),
		TEST(setall_sets_values_pids_and_ctime_but_not_otime),
		TEST(setall_out_of_range_is_erange_and_changes_nothing),
		TEST(setall_bad_id_then_eacces_then_efault),
		TEST(getall_bad_id_then_eacces_then_efault),
		TEST(getall_and_setall_of_a_large_set),
		TEST(setall_getall_and_object_commands_ignore_the_number),
		TEST(get_commands_bad_id_or_number_is_einval),
		TEST(get_commands_need_read_permission_before_the_number),
		TEST(getpid_tells_the_last_to_change_or_wait_for_zero),
		TEST(ipc_stat_tells_count_and_times),
		TEST(ipc_set_sets_ctime_and_leaves_otime),
		TEST(ipc_rmid_makes_every_call_einval),
		TEST(unknown_commands_are_einval),
		TEST(ipc_info_tells_the_limits),
		TEST(sem_info_tells_what_is_in_use),
		TEST(limits_are_shown_in_proc),
		TEST(limit_semmni_is_enospc),
		TEST(limit_semmns_is_enospc),
		TEST(limit_semmsl_is_einval),
		TEST(limit_semopm_is_e2big),
		TEST(limit_semmni_is_32768_at_the_most),
		TEST(limits_of_a_new_namespace_are_the_defaults),
		TEST(getpid_across_pid_namespaces),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("semctl", tests, NULL, NULL);
}
