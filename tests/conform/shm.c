// SPDX-License-Identifier: MIT
/*
 * conform-shm: shmget, shmat and shmdt: sizes, addresses, flags, content. Who counts as attached,
 * and what fork, exec and the end of a process do, is asked by conform-shm-life, shmctl by
 * conform-shmctl.
 */
#include "conform/shm_calls.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- shmget ---- */

static void size_of_a_new_segment(void **state)
{
	int id;

	(void)state;
	CHECK_ERR(shmget(IPC_PRIVATE, 0, 0600), EINVAL);
	CHECK_ERR(shmget(test_key(1), 0, IPC_CREAT | 0600), EINVAL);
	CHECK_ERR(shmget(IPC_PRIVATE, SIZE_MAX, 0600), EINVAL);
	CHECK_ERR(shmget(IPC_PRIVATE, SIZE_MAX - (1ul << 24) + 1, 0600), EINVAL);
	id = shm_new(1);
	CHECK_INT(shm_stat(id).shm_segsz, 1);
	id = shm_new(PAGE + 1);
	CHECK_INT(shm_stat(id).shm_segsz, PAGE + 1);
}

static void size_beyond_what_files_can_have(void **state)
{
	(void)state;
	CHECK_ERR(shmget(IPC_PRIVATE, 1ul << 63, 0600 | SHM_NORESERVE), EINVAL);
	CHECK_ERR(shmget(IPC_PRIVATE, SIZE_MAX - (1ul << 24), 0600 | SHM_NORESERVE), EINVAL);
	CHECK_ERR(shmget(IPC_PRIVATE, LONG_MAX, 0600), ENOMEM);
	own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, LONG_MAX, 0600 | SHM_NORESERVE)));
}

static void size_that_cannot_be_held_is_enomem_but_for_noreserve(void **state)
{
	int id;
	char *p;

	(void)state;
	CHECK_ERR(shmget(IPC_PRIVATE, 1ul << 46, 0600), ENOMEM);
	id = own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, 1ul << 46, 0600 | SHM_NORESERVE)));
	CHECK_INT(shm_stat(id).shm_segsz, 1l << 46);
	/* as much address space need not be there in one piece */
	id = own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, 1ul << 42, 0600 | SHM_NORESERVE)));
	p = shm_at(id, NULL, 0);
	p[0] = 1;
	p[(1ul << 42) - 1] = 2;
	CHECK_INT(p[1ul << 41], 0);
	CHECK_OK(shmdt(p));
}

static void size_of_an_existing_segment(void **state)
{
	int id = own_shm((int)CHECK_OK(shmget(test_key(1), 5000, IPC_CREAT | 0600)));

	(void)state;
	CHECK_INT(shmget(test_key(1), 0, 0), id);
	CHECK_INT(shmget(test_key(1), 5000, 0), id);
	CHECK_INT(shmget(test_key(1), 1, IPC_CREAT | 0600), id);
	CHECK_ERR(shmget(test_key(1), 5001, 0), EINVAL);
	CHECK_ERR(shmget(test_key(1), PAGE * 2, IPC_CREAT | 0600), EINVAL);
	CHECK_ERR(shmget(test_key(1), 5001, IPC_CREAT | IPC_EXCL | 0600), EEXIST);
}

static void size_is_judged_before_permission(void **state)
{
	int id = own_shm((int)CHECK_OK(shmget(test_key(1), 5000, IPC_CREAT | 0600)));
	pid_t kid;

	(void)state;
	need_users();
	IN_CHILD (kid) {
		become_nobody();
		CHECK_ERR(shmget(test_key(1), 5001, 0400), EINVAL);
		CHECK_ERR(shmget(test_key(1), 5000, 0400), EACCES);
		CHECK_INT(shmget(test_key(1), 5000, 0), id);
	}
	child_ok(kid);
}

static void new_segment_has_no_past(void **state)
{
	time_t before = second_before();
	struct shmid_ds ds = shm_stat(shm_new(100));

	(void)state;
	CHECK_INT(ds.shm_atime, 0);
	CHECK_INT(ds.shm_dtime, 0);
	CHECK_INT(ds.shm_lpid, 0);
	CHECK_INT(ds.shm_nattch, 0);
	CHECK_INT(ds.shm_cpid, getpid());
	CHECK(ds.shm_ctime >= before && ds.shm_ctime <= second_after());
}

static void huge_pages_that_are_not_there(void **state)
{
	char text[64], more[64];

	(void)state;
	read_file("/proc/sys/vm/nr_hugepages", text, sizeof(text));
	read_file("/proc/sys/vm/nr_overcommit_hugepages", more, sizeof(more));
	CHECK_ERR(shmget(IPC_PRIVATE, PAGE, 0600 | SHM_HUGETLB | 13 << 26), EINVAL);
	CHECK_ERR(shmget(IPC_PRIVATE, PAGE, 0600 | SHM_HUGETLB | 1 << 26), EINVAL);
	/* where there are some: conform/shm-huge */
	if (atoi(text) == 0 && atoi(more) == 0)
		CHECK_ERR(shmget(IPC_PRIVATE, PAGE, 0600 | SHM_HUGETLB), ENOMEM);
}

static void huge_pages_need_a_privilege(void **state)
{
	pid_t kid;

	(void)state;
	need_users();
	IN_CHILD (kid) {
		struct rlimit none = {0, 0};

		become_nobody();
		CHECK_OK(setrlimit(RLIMIT_MEMLOCK, &none));
		CHECK_ERR(shmget(IPC_PRIVATE, PAGE, 0600 | SHM_HUGETLB), EPERM);
		CHECK_ERR(shmget(IPC_PRIVATE, PAGE, 0600 | SHM_HUGETLB | 13 << 26), EINVAL);
	}
	child_ok(kid);
}

/* ---- content ---- */

static void memory_is_zero_and_stays(void **state)
{
	int id = shm_new(3 * PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	for (size_t i = 0; i < 3 * PAGE; i++)
		CHECK(p[i] == 0);
	memset(p, 'x', 3 * PAGE);
	CHECK_OK(shmdt(p));
	p = shm_at(id, NULL, SHM_RDONLY);
	for (size_t i = 0; i < 3 * PAGE; i++)
		CHECK(p[i] == 'x');
	CHECK_OK(shmdt(p));
}

static void rest_of_the_last_page_can_be_written(void **state)
{
	int id = shm_new(10);
	char *p = shm_at(id, NULL, 0), *q = shm_at(id, NULL, 0);

	(void)state;
	p[PAGE - 1] = 7;
	CHECK_INT(q[PAGE - 1], 7);
	CHECK_OK(shmdt(p));
	CHECK_OK(shmdt(q));
}

static void attaches_are_one_memory(void **state)
{
	int id = shm_new(PAGE);
	char *p = shm_at(id, NULL, 0), *q = shm_at(id, NULL, 0);
	pid_t kid;

	(void)state;
	CHECK(p != q);
	p[1] = 1;
	CHECK_INT(q[1], 1);
	IN_CHILD (kid) {
		char *r = shm_at(id, NULL, 0);

		CHECK_INT(r[1], 1);
		r[2] = 2;
		q[3] = 3;
	}
	child_ok(kid);
	CHECK_INT(q[2], 2);
	CHECK_INT(p[3], 3);
	CHECK_OK(shmdt(p));
	CHECK_OK(shmdt(q));
}

/* ---- shmat: addresses ---- */

static void address_given(void **state)
{
	int id = shm_new(3 * PAGE);
	char *at = free_range(8);
	char *p = shm_at(id, at, 0);

	(void)state;
	CHECK(p == at);
	CHECK_ERR(shmat(id, at, 0), EINVAL);
	CHECK_ERR(shmat(id, at + 2 * PAGE, 0), EINVAL);
	CHECK(shm_at(id, at + 3 * PAGE, 0) == at + 3 * PAGE);
	CHECK_ERR(shmat(id, at + PAGE, 0), EINVAL);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmdt(at));
	CHECK_OK(shmdt(at + 3 * PAGE));
	CHECK_INT(shm_nattch(id), 0);
}

static void address_that_something_else_has(void **state)
{
	int id = shm_new(2 * PAGE);
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	p[PAGE] = 'k';
	CHECK_OK(munmap(p, PAGE));
	CHECK_ERR(shmat(id, p, 0), EINVAL);
	CHECK_INT(p[PAGE], 'k');
	CHECK_INT(shm_stat(id).shm_atime, 0);
	CHECK_OK(munmap(p + PAGE, PAGE));
}

static void address_between_pages(void **state)
{
	int id = shm_new(PAGE);
	char *at = free_range(4), *p;

	(void)state;
	CHECK_ERR(shmat(id, at + 1, 0), EINVAL);
	CHECK_ERR(shmat(id, at + PAGE / 2, SHM_RDONLY), EINVAL);
	p = shm_at(id, at + PAGE + 100, SHM_RND);
	CHECK(p == at + PAGE);
	CHECK_ERR(shmat(id, at + PAGE + 100, SHM_RND), EINVAL);
	CHECK_OK(shmdt(p));
	p = shm_at(id, at + PAGE, SHM_RND);
	CHECK(p == at + PAGE);
	CHECK_OK(shmdt(p));
}

static void address_rounded_down_to_nothing(void **state)
{
	int id = shm_new(PAGE);
	pid_t kid;

	(void)state;
	CHECK_ERR(shmat(id, (void *)100, SHM_RND | SHM_REMAP), EINVAL);
	need_users();
	IN_CHILD (kid) {
		int own;

		become_nobody();
		own = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));
		errno = 0;
		CHECK_ERR(shmat(own, (void *)100, SHM_RND), EPERM);
		CHECK_OK(shmctl(own, IPC_RMID, NULL));
	}
	child_ok(kid);
}

static void address_0_is_for_who_may_have_it(void **state)
{
	int id = shm_new(PAGE);
	char *p, *page_0 = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				0);

	(void)state;
	if (page_0 == MAP_FAILED)
		SKIP("nobody may have page 0 here");
	CHECK_OK(munmap(page_0, PAGE));
	p = shmat(id, (void *)100, SHM_RND);
	CHECK((uintptr_t)p == 0);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(NULL));
	CHECK_INT(shm_nattch(id), 0);
	CHECK(!is_mapped(NULL));
}

static void address_at_the_end_of_memory(void **state)
{
	int id = shm_new(3 * PAGE);
	uintptr_t top = (uintptr_t)1 << 47;

	(void)state;
	if (sizeof(void *) != 8)
		SKIP("addresses of another width");
	CHECK_ERR(shmat(id, (void *)(top - 2 * PAGE), 0), ENOMEM);
	CHECK_ERR(shmat(id, (void *)top, 0), ENOMEM);
	CHECK_ERR(shmat(id, (void *)(top - 2 * PAGE), SHM_REMAP), ENOMEM);
	CHECK_ERR(shmat(id, (void *)(0 - 4 * PAGE), 0), ENOMEM);
	/* wraps, also to exactly 0 */
	CHECK_ERR(shmat(id, (void *)(0 - PAGE), 0), EINVAL);
	CHECK_ERR(shmat(id, (void *)(0 - 3 * PAGE), 0), EINVAL);
	CHECK_ERR(shmat(id, (void *)(0 - PAGE), SHM_REMAP), ENOMEM);
	CHECK_ERR(shmat(id, (void *)(0 - 3 * PAGE), SHM_REMAP), ENOMEM);
	CHECK_INT(shm_nattch(id), 0);
}

static void address_with_too_little_behind_it(void **state)
{
	int id = own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, 1ul << 46, 0600 | SHM_NORESERVE)));
	char here, *sp = &here - (uintptr_t)&here % PAGE;

	(void)state;
	/* what is in the way is seen before the end of memory */
	CHECK_ERR(shmat(id, sp, 0), EINVAL);
	CHECK_ERR(shmat(id, sp - 64 * PAGE * 256, 0), EINVAL);
}

static void remap_takes_the_place(void **state)
{
	int id = shm_new(2 * PAGE);
	char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q;

	(void)state;
	p[PAGE] = 'a';
	p[3 * PAGE] = 'b';
	q = shm_at(id, p + PAGE, SHM_REMAP);
	CHECK(q == p + PAGE);
	CHECK_INT(q[0], 0);
	CHECK_INT(p[3 * PAGE], 'b');
	q[0] = 'c';
	/* over itself: one attach as before */
	CHECK(shm_at(id, q, SHM_REMAP | SHM_RDONLY) == q);
	CHECK_INT(q[0], 'c');
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(q));
	CHECK_INT(shm_nattch(id), 0);
	CHECK(!is_mapped(q));
	CHECK_ERR(shmat(id, NULL, SHM_REMAP), EINVAL);
	CHECK_ERR(shmat(id, NULL, SHM_REMAP | SHM_RND), EINVAL);
}

static void remap_over_another_segment(void **state)
{
	int one = shm_new(3 * PAGE), two = shm_new(PAGE);
	char *p = shm_at(one, NULL, 0);

	(void)state;
	CHECK(shm_at(two, p + PAGE, SHM_REMAP) == p + PAGE);
	CHECK_INT(shm_nattch(one), 2);
	CHECK_INT(shm_nattch(two), 1);
	p[PAGE] = 'x';
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(one), 0);
	CHECK_INT(shm_nattch(two), 1);
	CHECK_INT(p[PAGE], 'x');
	CHECK_OK(shmdt(p + PAGE));
	CHECK_INT(shm_nattch(two), 0);
}

/* ---- shmat: ids, permission, flags ---- */

static void attach_of_no_segment(void **state)
{
	int id = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));

	(void)state;
	CHECK_ERR(shmat(-1, NULL, 0), EINVAL);
	CHECK_ERR(shmat(INT_MIN, NULL, 0), EINVAL);
	CHECK_ERR(shmat(BAD_ID, NULL, 0), EINVAL);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_ERR(shmat(id, NULL, 0), EINVAL);
}

static void read_only_attach(void **state)
{
	int id = shm_new(PAGE);
	char *w = shm_at(id, NULL, 0), *r = shm_at(id, NULL, SHM_RDONLY);
	pid_t kid;

	(void)state;
	w[0] = 'w';
	CHECK_INT(r[0], 'w');
	CHECK_ERR(mprotect(r, PAGE, PROT_READ | PROT_WRITE), EACCES);
	CHECK_OK(mprotect(w, PAGE, PROT_READ));
	CHECK_OK(mprotect(w, PAGE, PROT_READ | PROT_WRITE));
	IN_CHILD (kid) {
		struct rlimit none = {0, 0};

		CHECK_OK(setrlimit(RLIMIT_CORE, &none));
		(void)signal(SIGSEGV, SIG_DFL);
		*(char volatile *)r = 1;
	}
	CHECK_INT(WTERMSIG(child_status(kid)), SIGSEGV);
	CHECK_OK(shmdt(w));
	CHECK_OK(shmdt(r));
}

static void permission_to_attach(void **state)
{
	static const struct {
		int mode, flags, error;
	} rows[] = {
		{0600, 0, EACCES},        {0604, 0, EACCES},
		{0602, 0, EACCES},        {0606, 0, 0},
		{0604, SHM_RDONLY, 0},    {0602, SHM_RDONLY, EACCES},
		{0606, SHM_EXEC, EACCES}, {0604, SHM_RDONLY | SHM_EXEC, EACCES},
	};
	int id = shm_new(PAGE);
	pid_t kid;

	(void)state;
	need_users();
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		shm_chmod(id, rows[i].mode);
		IN_CHILD (kid) {
			become_nobody();
			if (rows[i].error)
				CHECK_ERR(shmat(id, NULL, rows[i].flags), rows[i].error);
			else
				CHECK_OK(shmdt(shm_at(id, NULL, rows[i].flags)));
			/* what is wrong with the address is seen first */
			CHECK_ERR(shmat(id, (void *)1, rows[i].flags), EINVAL);
		}
		child_ok(kid);
	}
	CHECK_INT(shm_stat(id).shm_lpid != getpid(), 1);
}

static void executable_attach(void **state)
{
	int id = shm_new(PAGE);
	char *p;
	pid_t kid;

	(void)state;
	shm_chmod(id, 0700);
	errno = 0;
	p = shmat(id, NULL, SHM_EXEC);
	if (p == (char *)-1 && errno == EACCES)
		compat_skip("shm-noexec");
	CHECK(p != (char *)-1);
#ifdef __x86_64__
	*p = (char)0xc3; /* ret */
	((void (*)(void))(uintptr_t)p)();
#endif
	CHECK_OK(shmdt(p));
	need_users();
	IN_CHILD (kid) {
		int own;

		become_nobody();
		own = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));
		CHECK_ERR(shmat(own, NULL, SHM_EXEC), EACCES);
		CHECK_OK(shmctl(own, IPC_RMID, NULL));
	}
	child_ok(kid);
}

static void unknown_flags_are_ignored(void **state)
{
	int id = own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600 | 0100000)));

	(void)state;
	CHECK_OK(shmdt(shm_at(id, NULL, 1)));
	CHECK_INT(shm_nattch(id), 0);
}

/* ---- shmdt ---- */

static void detach_of_what_is_no_start(void **state)
{
	int id = shm_new(3 * PAGE), here;
	char *p = shm_at(id, NULL, 0);
	char *q = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	CHECK_ERR(shmdt(p + 1), EINVAL);
	CHECK_ERR(shmdt(p + PAGE), EINVAL);
	CHECK_ERR(shmdt(p - PAGE), EINVAL);
	CHECK_ERR(shmdt(q), EINVAL);
	CHECK_ERR(shmdt(&here), EINVAL);
	CHECK_ERR(shmdt(NULL), EINVAL);
	CHECK_ERR(shmdt((void *)-1), EINVAL);
	CHECK_ERR(shmdt((void *)(0 - PAGE)), EINVAL);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
	CHECK_ERR(shmdt(p), EINVAL);
	CHECK_INT(shm_nattch(id), 0);
	CHECK_OK(munmap(q, PAGE));
}

static void detach_leaves_other_mappings(void **state)
{
	int id = shm_new(4 * PAGE);
	char *p = shm_at(id, NULL, 0), *q;

	(void)state;
	CHECK_OK(munmap(p + PAGE, PAGE));
	q = mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(q == p + PAGE);
	*q = 'q';
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
	CHECK_INT(*q, 'q');
	CHECK(!is_mapped(p) && !is_mapped(p + 2 * PAGE) && !is_mapped(p + 3 * PAGE));
	CHECK_OK(munmap(q, PAGE));
}

static void detach_of_what_lies_there_instead(void **state)
{
	int id = shm_new(2 * PAGE);
	char *p = shm_at(id, NULL, 0);
	char *q = mmap(p, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		       -1, 0);

	(void)state;
	CHECK(q == p);
	*q = 'q';
	CHECK_INT(shm_nattch(id), 0);
	CHECK_ERR(shmdt(p), EINVAL);
	CHECK_INT(*q, 'q');
	CHECK_OK(munmap(q, 2 * PAGE));
	/* and once more in the same place */
	CHECK(shm_at(id, p, 0) == p);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
}

static void detach_after_the_first_page_went(void **state)
{
	int id = shm_new(3 * PAGE);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_OK(munmap(p, PAGE));
	CHECK_ERR(shmdt(p + PAGE), EINVAL);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
	CHECK(!is_mapped(p + PAGE));
}

static void detach_of_a_moved_attach(void **state)
{
	int id = shm_new(3 * PAGE);
	char *p = shm_at(id, NULL, 0), *other = shm_at(id, NULL, 0), *to = free_range(8), *q;

	(void)state;
	p[2 * PAGE] = 'm';
	q = mremap(p, 3 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(q == to);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_ERR(shmdt(p), EINVAL);
	CHECK_INT(q[2 * PAGE], 'm');
	CHECK_OK(shmdt(q));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_INT(other[2 * PAGE], 'm');
	CHECK_OK(shmdt(other));
	CHECK_INT(shm_nattch(id), 0);
}

static void detach_of_a_page_that_moved_away(void **state)
{
	int id = shm_new(3 * PAGE);
	char *p = shm_at(id, NULL, 0), *to = free_range(8), *q;

	(void)state;
	/* page 1, where only `to + PAGE` less its offset is no start of the attach */
	q = mremap(p + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to + PAGE);
	CHECK(q == to + PAGE);
	CHECK_OK(shmdt(p));
	CHECK(!is_mapped(p) && !is_mapped(p + 2 * PAGE));
	CHECK(is_mapped(q));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_ERR(shmdt(q), EINVAL);
	CHECK_OK(shmdt(to));
	CHECK(!is_mapped(q));
	CHECK_INT(shm_nattch(id), 0);
}

static void duplicate_by_mremap(void **state)
{
	int id = shm_new(2 * PAGE);
	char *p = shm_at(id, NULL, 0), *q = mremap(p, 0, 2 * PAGE, MREMAP_MAYMOVE);

	(void)state;
	CHECK(q != MAP_FAILED);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 1);
	q[0] = 1;
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(q));
	CHECK_ERR(shmctl(id, IPC_STAT, &(struct shmid_ds){0}), EINVAL);
}

/* ---- by number, and without descriptors ---- */

static void calls_by_number(void **state)
{
	(void)state;
#ifdef SYS_shmget
	struct shmid_ds ds;
	int id = own_shm((int)CHECK_OK(syscall(SYS_shmget, IPC_PRIVATE, PAGE, 0600)));
	char *p = (char *)CHECK_OK(syscall(SYS_shmat, id, NULL, 0));

	*p = 1;
	CHECK_OK(syscall(SYS_shmctl, id, IPC_STAT, &ds));
	CHECK_INT(ds.shm_nattch, 1);
	CHECK_OK(syscall(SYS_shmdt, p));
	CHECK_ERR(syscall(SYS_shmat, BAD_ID, NULL, 0), EINVAL);
#else
	SKIP("this architecture has no such numbers");
#endif
}

static void attach_without_descriptors_to_spare(void **state)
{
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		int id, first = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600)), fd;
		struct rlimit few = {0, 0};
		char *p;

		/* the first call may need one */
		CHECK_OK(getrlimit(RLIMIT_NOFILE, &few));
		few.rlim_cur = 20;
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &few));
		while ((fd = dup(1)) >= 0)
			;
		CHECK_INT(errno, EMFILE);
		p = shm_at(first, NULL, 0);
		*p = 'e';
		CHECK_INT(shm_nattch(first), 1);
		CHECK_OK(shmdt(p));
		id = (int)CHECK_OK(shmget(IPC_PRIVATE, PAGE, 0600));
		p = shm_at(id, NULL, SHM_RDONLY);
		CHECK_OK(shmctl(first, IPC_RMID, NULL));
		CHECK_OK(shmctl(id, IPC_RMID, NULL));
		CHECK_INT(shm_nattch(id), 1);
		CHECK_OK(shmdt(p));
		CHECK_ERR(shmctl(id, IPC_STAT, &(struct shmid_ds){0}), EINVAL);
		CHECK_ERR(dup(1), EMFILE);
	}
	child_ok(kid);
}

static void attach_leaves_no_descriptor(void **state)
{
	int id = shm_new(PAGE), before = dup(1), after;
	char *p;

	(void)state;
	CHECK_OK(close(before));
	p = shm_at(id, NULL, 0);
	after = dup(1);
	CHECK_OK(close(after));
	CHECK_INT(after, before);
	CHECK_OK(shmdt(p));
}

static void attach_with_a_small_limit_of_files(void **state)
{
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		struct rlimit small;
		int id = (int)CHECK_OK(shmget(IPC_PRIVATE, 100 * PAGE, 0600));
		char *p;

		CHECK_OK(getrlimit(RLIMIT_FSIZE, &small));
		small.rlim_cur = PAGE;
		CHECK_OK(setrlimit(RLIMIT_FSIZE, &small));
		p = shm_at(id, NULL, 0);
		p[99 * PAGE] = 1;
		CHECK_OK(shmctl(id, IPC_RMID, NULL));
	}
	child_ok(kid);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(size_of_a_new_segment),
		TEST(size_beyond_what_files_can_have),
		TEST(size_that_cannot_be_held_is_enomem_but_for_noreserve),
		TEST(size_of_an_existing_segment),
		TEST(size_is_judged_before_permission),
		TEST(new_segment_has_no_past),
		TEST(huge_pages_that_are_not_there),
		TEST(huge_pages_need_a_privilege),
		TEST(memory_is_zero_and_stays),
		TEST(rest_of_the_last_page_can_be_written),
		TEST(attaches_are_one_memory),
		TEST(address_given),
		TEST(address_that_something_else_has),
		TEST(address_between_pages),
		TEST(address_rounded_down_to_nothing),
		TEST(address_0_is_for_who_may_have_it),
		TEST(address_at_the_end_of_memory),
		TEST(address_with_too_little_behind_it),
		TEST(remap_takes_the_place),
		TEST(remap_over_another_segment),
		TEST(attach_of_no_segment),
		TEST(read_only_attach),
		TEST(permission_to_attach),
		TEST(executable_attach),
		TEST(unknown_flags_are_ignored),
		TEST(detach_of_what_is_no_start),
		TEST(detach_leaves_other_mappings),
		TEST(detach_of_what_lies_there_instead),
		TEST(detach_after_the_first_page_went),
		TEST(detach_of_a_moved_attach),
		TEST(detach_of_a_page_that_moved_away),
		TEST(duplicate_by_mremap),
		TEST(calls_by_number),
		TEST(attach_without_descriptors_to_spare),
		TEST(attach_leaves_no_descriptor),
		TEST(attach_with_a_small_limit_of_files),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("shm", tests, NULL, NULL);
}
