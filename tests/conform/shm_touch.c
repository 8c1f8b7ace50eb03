// SPDX-License-Identifier: MIT
/*
 * conform-shm-touch: shmdt takes away what is left of the attach that starts at its address, and
 * nothing else: whatever was done to the mapping, by whichever way, and by whom in this memory.
 */
#include "conform/shm_calls.h"

#include <pthread.h>
#include <sys/syscall.h>

#define PAGES 4

static char *segment(int *ret_id)
{
	char *p;

	*ret_id = shm_new(PAGES * PAGE);
	p = shm_at(*ret_id, NULL, 0);
	memset(p, 's', PAGES * PAGE);
	return p;
}

static void put_other(char *at, size_t pages)
{
	char *p = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	CHECK(p == at);
	memset(p, 'o', pages * PAGE);
}

static void is_other(const char *at, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		CHECK(is_mapped(at + i * PAGE) && at[i * PAGE] == 'o');
}

static void untouched(void **state)
{
	int id;
	char *p = segment(&id);

	(void)state;
	CHECK_OK(shmdt(p));
	for (size_t i = 0; i < PAGES; i++)
		CHECK(!is_mapped(p + i * PAGE));
	CHECK_ERR(shmdt(p), EINVAL);
	CHECK_INT(shm_nattch(id), 0);
}

/* ---- by munmap and mmap ---- */

static int by_libc(char *p, size_t n)
{
	return munmap(p, n);
}

static int by_syscall(char *p, size_t n)
{
	return (int)syscall(SYS_munmap, p, n);
}

static int by_mmap(char *p, size_t n)
{
	void *q = mmap(p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return q == p ? munmap(p, n) : -1;
}

static int by_syscall_of_mmap(char *p, size_t n)
{
	long q = syscall(SYS_mmap, p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return q == (long)p ? munmap(p, n) : -1;
}

static int by_mremap(char *p, size_t n)
{
	char *q = mremap(p, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, free_range(PAGES));

	return q == MAP_FAILED ? -1 : munmap(q, n);
}

static int by_a_smaller_mremap(char *p, size_t n)
{
	if (n > PAGE && mremap(p, n, PAGE, 0) != p)
		return -1;
	return munmap(p, PAGE);
}

static void *unmapper(void *p)
{
	return munmap(p, PAGES * PAGE) == 0 ? NULL : p;
}

static int by_a_thread(char *p, size_t n)
{
	pthread_t t;
	void *failed;

	(void)n;
	return pthread_create(&t, NULL, unmapper, p) != 0 || pthread_join(t, &failed) != 0 || failed
		       ? -1
		       : 0;
}

static int by_a_vfork_child(char *p, size_t n)
{
	pid_t kid = vfork();
	int status;

	if (kid == 0)
		_exit(munmap(p, n) < 0);
	return kid > 0 && waitpid(kid, &status, 0) == kid && status == 0 ? 0 : -1;
}

static void another_in_its_place(void **state)
{
	int (*const ways[])(char *p, size_t n) = {
		by_libc,   by_syscall,          by_mmap,     by_syscall_of_mmap,
		by_mremap, by_a_smaller_mremap, by_a_thread, by_a_vfork_child,
	};
	pid_t kid;

	(void)state;
	IN_CHILD (kid)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			int id;
			char *p = segment(&id);

			CHECK_OK(ways[i](p, PAGES * PAGE));
			CHECK_ERR(shmdt(p), EINVAL);
			put_other(p, PAGES);
			CHECK_ERR(shmdt(p), EINVAL);
			is_other(p, PAGES);
			CHECK_INT(shm_nattch(id), 0);
			CHECK_OK(munmap(p, PAGES * PAGE));
		}
	child_ok(kid);
}

static void another_in_the_middle(void **state)
{
	int id;
	char *p = segment(&id);

	(void)state;
	put_other(p + PAGE, 2);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmdt(p));
	is_other(p + PAGE, 2);
	CHECK(!is_mapped(p) && !is_mapped(p + 3 * PAGE));
	CHECK_INT(shm_nattch(id), 0);
	CHECK_OK(munmap(p + PAGE, 2 * PAGE));
}

static void another_at_its_start(void **state)
{
	int id;
	char *p = segment(&id);

	(void)state;
	put_other(p, 1);
	CHECK_OK(shmdt(p)); /* the rest counts from there */
	is_other(p, 1);
	CHECK(!is_mapped(p + PAGE));
	CHECK_INT(shm_nattch(id), 0);
	CHECK_OK(munmap(p, PAGE));
}

static void protection_only(void **state)
{
	int id;
	char *p = segment(&id);

	(void)state;
	CHECK_OK(mprotect(p + PAGE, PAGE, PROT_READ));
	CHECK_INT(shm_nattch(id), 3);
	CHECK_OK(shmdt(p));
	for (size_t i = 0; i < PAGES; i++)
		CHECK(!is_mapped(p + i * PAGE));
	CHECK_INT(shm_nattch(id), 0);
}

static void a_part_is_left_alone_outside(void **state)
{
	int id;
	char *p = segment(&id);
	char *other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	memset(other, 'o', PAGE);
	CHECK_OK(munmap(p + (PAGES - 1) * PAGE, PAGE));
	CHECK_OK(shmdt(p));
	is_other(other, 1);
	CHECK_OK(munmap(other, PAGE));
}

/* ---- moved, doubled, replaced ---- */

static void moved(void **state)
{
	int id;
	char *p = segment(&id), *q;

	(void)state;
	q = mremap(p, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, free_range(PAGES));
	CHECK(q != MAP_FAILED);
	put_other(p, PAGES);
	CHECK_ERR(shmdt(p), EINVAL);
	is_other(p, PAGES);
	CHECK_INT(shm_nattch(id), 1);
	CHECK(q[0] == 's');
	CHECK_OK(shmdt(q));
	CHECK(!is_mapped(q));
	CHECK_INT(shm_nattch(id), 0);
	CHECK_OK(munmap(p, PAGES * PAGE));
}

static void doubled(void **state)
{
	int id;
	char *p = segment(&id), *q;

	(void)state;
	q = mremap(p, 0, PAGES * PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 1);
	CHECK(!is_mapped(p) && q[0] == 's');
	CHECK_OK(shmdt(q));
	CHECK_INT(shm_nattch(id), 0);
}

static void another_segment_on_top(void **state)
{
	int id, over = shm_new(PAGE);
	char *p = segment(&id), *q;

	(void)state;
	q = shm_at(over, p + PAGE, SHM_REMAP);
	*q = 'o';
	CHECK_OK(shmdt(p));
	is_other(q, 1);
	CHECK_INT(shm_nattch(id), 0);
	CHECK_INT(shm_nattch(over), 1);
	CHECK_OK(shmdt(q));
	CHECK_INT(shm_nattch(over), 0);
}

static void same_place_again(void **state)
{
	int a, b = shm_new(2 * PAGE);
	char *p = segment(&a);

	(void)state;
	for (int i = 0; i < 3; i++) {
		CHECK_OK(munmap(p, PAGES * PAGE));
		CHECK(shm_at(b, p, 0) == p);
		put_other(p + 2 * PAGE, 1);
		CHECK_OK(shmdt(p));
		CHECK(!is_mapped(p) && !is_mapped(p + PAGE));
		is_other(p + 2 * PAGE, 1);
		CHECK_OK(munmap(p + 2 * PAGE, PAGE));
		CHECK(shm_at(a, p, 0) == p);
		CHECK_INT(shm_nattch(a), 1);
		CHECK_INT(shm_nattch(b), 0);
	}
	CHECK_OK(shmdt(p));
}

/* ---- children ---- */

static void child_detaches_its_own(void **state)
{
	int id;
	char *p = segment(&id);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(shmdt(p));
		CHECK(!is_mapped(p));
		CHECK_ERR(shmdt(p), EINVAL);
	}
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
}

static void child_has_not_inherited_it(void **state)
{
	int id;
	char *p = segment(&id);
	pid_t kid;

	(void)state;
	CHECK_OK(madvise(p, PAGES * PAGE, MADV_DONTFORK));
	IN_CHILD (kid) {
		put_other(p, PAGES);
		CHECK_ERR(shmdt(p), EINVAL);
		is_other(p, PAGES);
	}
	child_ok(kid);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
}

static void child_replaces_what_it_inherited(void **state)
{
	int id;
	char *p = segment(&id);
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		CHECK_OK(munmap(p, PAGES * PAGE));
		put_other(p, PAGES);
		CHECK_ERR(shmdt(p), EINVAL);
		is_other(p, PAGES);
	}
	child_ok(kid);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
}

static void vfork_child_detaches(void **state)
{
	int id, status;
	char *p = segment(&id);
	pid_t kid = vfork();

	(void)state;
	if (kid == 0)
		_exit(shmdt(p) < 0);
	CHECK_INT(waitpid(kid, &status, 0), kid);
	CHECK_INT(status, 0);
	CHECK(!is_mapped(p));
	put_other(p, PAGES);
	CHECK_ERR(shmdt(p), EINVAL);
	is_other(p, PAGES);
	CHECK_INT(shm_nattch(id), 0);
	CHECK_OK(munmap(p, PAGES * PAGE));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(untouched),
		TEST(another_in_its_place),
		TEST(another_in_the_middle),
		TEST(another_at_its_start),
		TEST(protection_only),
		TEST(a_part_is_left_alone_outside),
		TEST(moved),
		TEST(doubled),
		TEST(another_segment_on_top),
		TEST(same_place_again),
		TEST(child_detaches_its_own),
		TEST(child_has_not_inherited_it),
		TEST(child_replaces_what_it_inherited),
		TEST(vfork_child_detaches),
	};

	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("shm-touch", tests, NULL, NULL);
}
