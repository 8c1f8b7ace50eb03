// SPDX-License-Identifier: MIT
/*
 * conform-shmctl: shmctl's commands, their checks and effects, times and pids, and the limits. What
 * is common to all families (index commands, ids, keys) is asked by conform-common.
 */
#include "conform/shm_calls.h"

#include <limits.h>
#include <sched.h>
#include <sys/resource.h>

enum {
	SHMMNI = 4096,
};

static struct shminfo limits_now(void)
{
	struct shminfo got;

	memset(&got, 0xa5, sizeof(got));
	CHECK_OK(shmctl(0, IPC_INFO, (struct shmid_ds *)&got));
	return got;
}

static struct shm_info usage_now(void)
{
	struct shm_info got;

	memset(&got, 0xa5, sizeof(got));
	CHECK_OK(shmctl(0, SHM_INFO, (struct shmid_ds *)&got));
	return got;
}

/* ---- INFO ---- */

static void info_limits(void **state)
{
	struct shminfo got = limits_now();

	(void)state;
	CHECK(got.shmmax == ULONG_MAX - (1ul << 24));
	CHECK(got.shmall == ULONG_MAX - (1ul << 24));
	CHECK_INT(got.shmmin, 1);
	CHECK_INT(got.shmmni, SHMMNI);
	CHECK_INT(got.shmseg, SHMMNI);
}

static void info_usage(void **state)
{
	struct shm_info before = usage_now(), got;
	int id = shm_new(2 * PAGE + 1);
	char *p;

	(void)state;
	(void)shm_new(1);
	got = usage_now();
	CHECK_INT(got.used_ids, before.used_ids + 2);
	CHECK_INT(got.shm_tot, before.shm_tot + 4);
	CHECK_INT(got.shm_rss, before.shm_rss);
	CHECK_INT(got.swap_attempts, 0);
	CHECK_INT(got.swap_successes, 0);
	p = shm_at(id, NULL, 0);
	p[0] = p[2 * PAGE] = 1;
	CHECK_INT(usage_now().shm_rss + usage_now().shm_swp, before.shm_rss + before.shm_swp + 2);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_INT(usage_now().used_ids, before.used_ids + 2);
	CHECK_OK(shmdt(p));
	got = usage_now();
	CHECK_INT(got.used_ids, before.used_ids + 1);
	CHECK_INT(got.shm_tot, before.shm_tot + 1);
	CHECK_INT(got.shm_rss, before.shm_rss);
}

static void info_checks(void **state)
{
	(void)state;
	CHECK_ERR(shmctl(-1, IPC_INFO, (struct shmid_ds *)&(struct shminfo){0}), EINVAL);
	CHECK_ERR(shmctl(-1, SHM_INFO, (struct shmid_ds *)&(struct shm_info){0}), EINVAL);
	CHECK_ERR(shmctl(0, IPC_INFO, BAD_POINTER), EFAULT);
	CHECK_ERR(shmctl(0, SHM_INFO, BAD_POINTER), EFAULT);
}

/* ---- commands and their checks ---- */

static void unknown_commands(void **state)
{
	int id = shm_new(1);

	(void)state;
	CHECK_ERR(shmctl(id, 99, NULL), EINVAL);
	CHECK_ERR(shmctl(id, -1, NULL), EINVAL);
	CHECK_ERR(shmctl(BAD_ID, 99, NULL), EINVAL);
	CHECK_ERR(shmctl(-1, 99, NULL), EINVAL);
}

static void stat_checks(void **state)
{
	int id = shm_new(1);

	(void)state;
	CHECK_ERR(shmctl(BAD_ID, IPC_STAT, BAD_POINTER), EINVAL);
	CHECK_ERR(shmctl(-1, IPC_STAT, BAD_POINTER), EINVAL);
	CHECK_ERR(shmctl(id, IPC_STAT, BAD_POINTER), EFAULT);
	CHECK_ERR(shmctl(BAD_ID, IPC_SET, BAD_POINTER), EFAULT);
	CHECK_ERR(shmctl(BAD_ID, IPC_SET, &(struct shmid_ds){0}), EINVAL);
	CHECK_ERR(shmctl(BAD_ID, IPC_RMID, NULL), EINVAL);
	CHECK_ERR(shmctl(BAD_ID, SHM_LOCK, NULL), EINVAL);
	CHECK_ERR(shmctl(BAD_ID, SHM_UNLOCK, NULL), EINVAL);
}

static void set_changes_owner_and_mode_alone(void **state)
{
	int id = shm_new(100);
	char *p = shm_at(id, NULL, 0);
	struct shmid_ds was = shm_stat(id), ds = was, got;

	(void)state;
	pass_second(was.shm_ctime);
	ds.shm_perm.mode = 07421;
	ds.shm_segsz = 5;
	ds.shm_nattch = 9;
	ds.shm_cpid = 1;
	CHECK_OK(shmctl(id, IPC_SET, &ds));
	got = shm_stat(id);
	CHECK_INT(got.shm_perm.mode, 0421);
	CHECK(got.shm_ctime > was.shm_ctime);
	CHECK_INT(got.shm_segsz, 100);
	CHECK_INT(got.shm_nattch, 1);
	CHECK_INT(got.shm_cpid, was.shm_cpid);
	CHECK_INT(got.shm_atime, was.shm_atime);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	ds.shm_perm.mode = 0600;
	CHECK_OK(shmctl(id, IPC_SET, &ds));
	CHECK_INT(shm_stat(id).shm_perm.mode, SHM_DEST | 0600);
	CHECK_OK(shmdt(p));
}

/* ---- IPC_RMID ---- */

static void removal_while_attached(void **state)
{
	int id = own_shm((int)CHECK_OK(shmget(test_key(1), PAGE, IPC_CREAT | 0600))), other;
	char *p = shm_at(id, NULL, 0), *q;
	struct shmid_ds was = shm_stat(id), got;

	(void)state;
	p[0] = 'r';
	pass_second(was.shm_ctime);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	got = shm_stat(id);
	CHECK_INT(got.shm_perm.mode, SHM_DEST | 0600);
	CHECK_INT(got.shm_perm.__key, 0);
	CHECK_INT(got.shm_ctime, was.shm_ctime);
	CHECK_INT(got.shm_nattch, 1);
	/* the key is free, the id is not */
	CHECK_ERR(shmget(test_key(1), 0, 0), ENOENT);
	other = own_shm((int)CHECK_OK(shmget(test_key(1), PAGE, IPC_CREAT | IPC_EXCL | 0600)));
	CHECK(other != id);
	CHECK_INT(shmget(test_key(1), 0, 0), other);
	q = shm_at(id, NULL, 0);
	CHECK_INT(q[0], 'r');
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_OK(shmdt(p));
	CHECK_INT(q[0], 'r');
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(q));
	CHECK_ERR(shmctl(id, IPC_STAT, &got), EINVAL);
	CHECK_ERR(shmctl(id, IPC_RMID, NULL), EINVAL);
	CHECK_ERR(shmat(id, NULL, 0), EINVAL);
	CHECK_INT(shmget(test_key(1), 0, 0), other);
}

static void removal_while_nobody_is_attached(void **state)
{
	int id = (int)CHECK_OK(shmget(test_key(1), PAGE, IPC_CREAT | 0600));

	(void)state;
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_ERR(shmctl(id, IPC_STAT, &(struct shmid_ds){0}), EINVAL);
	CHECK_ERR(shmget(test_key(1), 0, 0), ENOENT);
	id = (int)CHECK_OK(shmget(test_key(1), PAGE, IPC_CREAT | 0600));
	CHECK_OK(shmdt(shm_at(id, NULL, 0)));
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_ERR(shmctl(id, IPC_STAT, &(struct shmid_ds){0}), EINVAL);
}

static void removal_ends_with_the_last_munmap(void **state)
{
	int id = shm_new(2 * PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_OK(munmap(p, PAGE));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(munmap(p + PAGE, PAGE));
	CHECK_ERR(shmctl(id, IPC_STAT, &(struct shmid_ds){0}), EINVAL);
}

/* ---- SHM_LOCK ---- */

static void lock_shows_in_the_mode(void **state)
{
	int id = shm_new(PAGE);
	struct shmid_ds was = shm_stat(id);

	(void)state;
	pass_second(was.shm_ctime);
	CHECK_OK(shmctl(id, SHM_LOCK, NULL));
	CHECK_INT(shm_stat(id).shm_perm.mode, SHM_LOCKED | 0600);
	CHECK_OK(shmctl(id, SHM_LOCK, NULL));
	shm_chmod(id, 0640);
	CHECK_INT(shm_stat(id).shm_perm.mode, SHM_LOCKED | 0640);
	CHECK_OK(shmctl(id, SHM_UNLOCK, NULL));
	CHECK_INT(shm_stat(id).shm_perm.mode, 0640);
	CHECK_OK(shmctl(id, SHM_UNLOCK, NULL));
}

static void lock_leaves_ctime(void **state)
{
	int id = shm_new(PAGE);
	struct shmid_ds was = shm_stat(id);

	(void)state;
	pass_second(was.shm_ctime);
	CHECK_OK(shmctl(id, SHM_LOCK, NULL));
	CHECK_OK(shmctl(id, SHM_UNLOCK, NULL));
	CHECK_INT(shm_stat(id).shm_ctime, was.shm_ctime);
}

static void limit_of_locked_memory(size_t bytes)
{
	struct rlimit limit = {bytes, bytes};

	CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &limit));
}

static void lock_needs_owner_and_limit(void **state)
{
	int id = shm_new(PAGE);
	pid_t kid;

	(void)state;
	need_users();
	shm_chmod(id, 0666);
	IN_CHILD (kid) {
		int own, second;

		become_nobody();
		limit_of_locked_memory(2 * PAGE);
		CHECK_ERR(shmctl(id, SHM_LOCK, NULL), EPERM);
		CHECK_ERR(shmctl(id, SHM_UNLOCK, NULL), EPERM);
		own = (int)CHECK_OK(shmget(IPC_PRIVATE, 2 * PAGE + 1, 0600));
		second = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE + 1, 0));
		CHECK_ERR(shmctl(own, SHM_LOCK, NULL), ENOMEM);
		CHECK_OK(shmctl(second, SHM_LOCK, NULL));
		/* what is locked already counts */
		CHECK_OK(shmctl(own, IPC_RMID, NULL));
		own = (int)CHECK_OK(shmget(IPC_PRIVATE, 1, 0600));
		CHECK_ERR(shmctl(own, SHM_LOCK, NULL), ENOMEM);
		CHECK_OK(shmctl(second, SHM_UNLOCK, NULL));
		CHECK_OK(shmctl(own, SHM_LOCK, NULL));
		limit_of_locked_memory(0);
		CHECK_ERR(shmctl(own, SHM_LOCK, NULL), EPERM);
		CHECK_OK(shmctl(own, SHM_UNLOCK, NULL));
		CHECK_OK(shmctl(own, IPC_RMID, NULL));
		CHECK_OK(shmctl(second, IPC_RMID, NULL));
	}
	child_ok(kid);
}

/* ---- times and pids ---- */

static void attach_sets_atime_and_lpid(void **state)
{
	int id = shm_new(PAGE);
	struct shmid_ds ds = shm_stat(id);
	time_t before;
	char *p;
	pid_t kid;

	(void)state;
	pass_second(ds.shm_ctime);
	before = second_before();
	p = shm_at(id, NULL, SHM_RDONLY);
	ds = shm_stat(id);
	CHECK(ds.shm_atime >= before && ds.shm_atime <= second_after());
	CHECK(ds.shm_atime > ds.shm_ctime);
	CHECK_INT(ds.shm_dtime, 0);
	CHECK_INT(ds.shm_lpid, getpid());
	IN_CHILD (kid)
		CHECK_OK(shmdt(shm_at(id, NULL, 0)));
	child_ok(kid);
	CHECK_INT(shm_stat(id).shm_lpid, kid);
	CHECK_INT(shm_stat(id).shm_cpid, getpid());
	CHECK_OK(shmdt(p));
}

static void detach_sets_dtime_and_lpid(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0);
	struct shmid_ds was = shm_stat(id), ds;
	time_t before;

	(void)state;
	pass_second(was.shm_atime);
	before = second_before();
	CHECK_OK(shmdt(p));
	ds = shm_stat(id);
	CHECK(ds.shm_dtime >= before && ds.shm_dtime <= second_after());
	CHECK_INT(ds.shm_atime, was.shm_atime);
	CHECK_INT(ds.shm_ctime, was.shm_ctime);
	CHECK_INT(ds.shm_lpid, getpid());
}

static void remap_detaches_what_was_there(void **state)
{
	int whole = shm_new(PAGE), part = shm_new(3 * PAGE), other = shm_new(4 * PAGE);
	char *at = free_range(8);
	struct shmid_ds was, ds;
	pid_t kid;

	(void)state;
	(void)shm_at(whole, at + PAGE, 0);
	(void)shm_at(part, at + 3 * PAGE, SHM_RDONLY);
	IN_CHILD (kid)
		CHECK_OK(shmdt(at + PAGE));
	child_ok(kid);
	was = shm_stat(part);
	pass_second(was.shm_atime);
	CHECK(shm_at(other, at, SHM_REMAP) == at);
	ds = shm_stat(whole);
	CHECK(ds.shm_dtime > was.shm_atime);
	CHECK_INT(ds.shm_lpid, getpid());
	CHECK_INT(ds.shm_nattch, 0);
	ds = shm_stat(part);
	CHECK(ds.shm_dtime > was.shm_atime);
	/* what is left of it is a new piece */
	CHECK(ds.shm_atime > was.shm_atime);
	CHECK_INT(ds.shm_nattch, 1);
	CHECK_INT(shm_stat(other).shm_dtime, 0);
	CHECK_OK(shmdt(at));
	CHECK_ERR(shmdt(at + PAGE), EINVAL);
	CHECK_OK(shmdt(at + 3 * PAGE));
	CHECK_INT(shm_nattch(part), 0);
}

static void failed_calls_set_nothing(void **state)
{
	int id = shm_new(PAGE);
	struct shmid_ds ds;

	(void)state;
	CHECK_ERR(shmat(id, (void *)1, 0), EINVAL);
	CHECK_ERR(shmat(id, &ds - (uintptr_t)&ds % PAGE / sizeof(ds), 0), EINVAL);
	CHECK_ERR(shmdt(&ds), EINVAL);
	ds = shm_stat(id);
	CHECK_INT(ds.shm_atime, 0);
	CHECK_INT(ds.shm_dtime, 0);
	CHECK_INT(ds.shm_lpid, 0);
}

static void munmap_sets_dtime(void **state)
{
	int id = shm_new(2 * PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_OK(munmap(p, 2 * PAGE));
	compat_skip("shm-munmap-times");
	CHECK(shm_stat(id).shm_dtime != 0);
}

/* ---- limits ---- */

static void limit_shmmni_is_enospc(void **state)
{
	int id;

	(void)state;
	set_limit("/proc/sys/kernel/shmmni", "2");
	CHECK_INT(limits_now().shmmni, 2);
	CHECK_INT(limits_now().shmseg, 2);
	(void)shm_new(1);
	id = own_shm((int)CHECK_OK(shmget(test_key(1), 1, IPC_CREAT | 0600)));
	CHECK_ERR(shmget(IPC_PRIVATE, 1, 0600), ENOSPC);
	CHECK_ERR(shmget(test_key(2), 1, IPC_CREAT | 0600), ENOSPC);
	CHECK_INT(shmget(test_key(1), 1, IPC_CREAT | 0600), id);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	own_shm((int)CHECK_OK(shmget(test_key(2), 1, IPC_CREAT | 0600)));
}

static void limit_shmmax_is_einval(void **state)
{
	int id = shm_new(3 * PAGE);

	(void)state;
	set_limit("/proc/sys/kernel/shmmax", "8192");
	CHECK_ERR(shmget(IPC_PRIVATE, 8193, 0600), EINVAL);
	(void)shm_new(8192);
	CHECK_INT(limits_now().shmmax, 8192);
	CHECK_OK(shmdt(shm_at(id, NULL, 0)));
}

static void limit_shmmax_of_everything(void **state)
{
	(void)state;
	set_limit("/proc/sys/kernel/shmmax", "18446744073709551615");
	/* as many bytes are no whole pages */
	CHECK_ERR(shmget(IPC_PRIVATE, SIZE_MAX, 0600 | SHM_NORESERVE), ENOSPC);
	CHECK_ERR(shmget(IPC_PRIVATE, SIZE_MAX - PAGE + 2, 0600 | SHM_NORESERVE), ENOSPC);
	CHECK_ERR(shmget(IPC_PRIVATE, 0, 0600 | SHM_NORESERVE), EINVAL);
}

static void limit_shmall_is_enospc(void **state)
{
	int id = shm_new(3 * PAGE);

	(void)state;
	set_limit("/proc/sys/kernel/shmall", "5");
	CHECK_ERR(shmget(IPC_PRIVATE, 2 * PAGE + 1, 0600), ENOSPC);
	(void)shm_new(2 * PAGE);
	CHECK_ERR(shmget(IPC_PRIVATE, 1, 0600), ENOSPC);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	(void)shm_new(3 * PAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(info_limits),
		TEST(info_usage),
		TEST(info_checks),
		TEST(unknown_commands),
		TEST(stat_checks),
		TEST(set_changes_owner_and_mode_alone),
		TEST(removal_while_attached),
		TEST(removal_while_nobody_is_attached),
		TEST(removal_ends_with_the_last_munmap),
		TEST(lock_shows_in_the_mode),
		TEST(lock_leaves_ctime),
		TEST(lock_needs_owner_and_limit),
		TEST(attach_sets_atime_and_lpid),
		TEST(detach_sets_dtime_and_lpid),
		TEST(remap_detaches_what_was_there),
		TEST(failed_calls_set_nothing),
		TEST(munmap_sets_dtime),
		TEST(limit_shmmni_is_enospc),
		TEST(limit_shmmax_is_einval),
		TEST(limit_shmmax_of_everything),
		TEST(limit_shmall_is_enospc),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("shmctl", tests, NULL, NULL);
}
