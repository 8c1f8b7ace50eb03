// SPDX-License-Identifier: MIT
/* Segments of huge pages, where there are some (tests/harness/on-huge.sh). */
#include "shm_calls.h"

#include <fcntl.h>

#ifndef SHM_HUGETLB
#define SHM_HUGETLB 04000
#endif
#ifndef SHM_NORESERVE
#define SHM_NORESERVE 010000
#endif

static size_t huge; /* bytes of a page */

/* A number of /proc/meminfo. */
static long memory(const char *name)
{
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");
	long n = -1;

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			n = strtol(line + strlen(name) + 1, NULL, 10);
	(void)fclose(f);
	return n;
}

static int huge_new(size_t bytes, int flags)
{
	return own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, bytes, SHM_HUGETLB | 0600 | flags)));
}

/* An address of this alignment with so much room behind it that nothing uses. */
static char *free_huge(size_t pages)
{
	char *p = free_range((pages + 1) * (huge / PAGE));

	return p + (huge - (uintptr_t)p % huge) % huge;
}

static void size_is_the_one_asked_for(void **state)
{
	int id = huge_new(5000, 0);
	struct shmid_ds ds = shm_stat(id);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_INT(ds.shm_segsz, 5000);
	CHECK_INT(ds.shm_perm.mode, 0600);
	CHECK_INT((uintptr_t)p % huge, 0);
	p[0] = 1;
	p[huge - 1] = 2;
	CHECK_INT(shm_nattch(id), 1);
	CHECK_OK(shmdt(p));
	CHECK_INT(shm_nattch(id), 0);
	p = shm_at(id, NULL, SHM_RDONLY);
	CHECK_INT(p[0], 1);
	CHECK_INT(p[huge - 1], 2);
	CHECK_OK(shmdt(p));
}

static void key_finds_it_up_to_its_size(void **state)
{
	key_t key = test_key(1);
	int id = own_shm((int)CHECK_OK(shmget(key, 5000, SHM_HUGETLB | IPC_CREAT | 0600)));

	(void)state;
	CHECK_INT(shmget(key, 5000, 0), id);
	CHECK_INT(shmget(key, 0, SHM_HUGETLB), id);
	CHECK_ERR(shmget(key, 5001, 0), EINVAL);
	CHECK_ERR(shmget(key, 1, SHM_HUGETLB | IPC_CREAT | IPC_EXCL | 0600), EEXIST);
}

static void addresses(void **state)
{
	int id = huge_new(PAGE, 0);
	char *p = free_huge(4), *q;

	(void)state;
	CHECK(shm_at(id, p, 0) == p);
	CHECK_ERR(shmat(id, p, 0), EINVAL);
	CHECK_ERR(shmat(id, p + 2 * huge + PAGE, 0), EINVAL);
	CHECK_ERR(shmat(id, p + 2 * huge + PAGE, SHM_RND), EINVAL);
	CHECK_ERR(shmat(id, p + 2 * huge + 1, 0), EINVAL);
	CHECK_ERR(shmat(id, p + PAGE, SHM_REMAP), EINVAL);
	q = shm_at(id, p + 2 * huge + 1, SHM_RND);
	CHECK(q == p + 2 * huge);
	CHECK(shm_at(id, p, SHM_REMAP) == p);
	CHECK_INT(shm_nattch(id), 2);
	CHECK_ERR(shmdt(p + PAGE), EINVAL);
	CHECK_ERR(shmdt(p + huge), EINVAL);
	CHECK_OK(shmdt(p));
	CHECK(!is_mapped(p) && !is_mapped(p + huge - PAGE));
	CHECK_OK(shmdt(q));
	CHECK_INT(shm_nattch(id), 0);
}

static void parts(void **state)
{
	int id = huge_new(2 * huge, 0);
	char *p = shm_at(id, NULL, 0);

	(void)state;
	CHECK_ERR(munmap(p, PAGE), EINVAL);
	CHECK_OK(munmap(p, huge));
	CHECK_INT(shm_nattch(id), 1);
	CHECK_ERR(shmdt(p + huge), EINVAL);
	CHECK_OK(shmdt(p));
	CHECK(!is_mapped(p + huge));
	CHECK_INT(shm_nattch(id), 0);
}

static void pages_are_kept_from_the_start(void **state)
{
	long reserved = memory("HugePages_Rsvd");
	int id = huge_new(2 * huge + 1, 0), none;

	(void)state;
	CHECK_INT(memory("HugePages_Rsvd"), reserved + 3);
	none = huge_new(2 * huge + 1, SHM_NORESERVE);
	CHECK_INT(memory("HugePages_Rsvd"), reserved + 3);
	CHECK_OK(shmdt(shm_at(none, NULL, 0)));
	CHECK_OK(shmdt(shm_at(id, NULL, 0)));
	CHECK_INT(memory("HugePages_Rsvd"), reserved + 3);
	CHECK_OK(shmctl(id, IPC_RMID, NULL));
	CHECK_INT(memory("HugePages_Rsvd"), reserved);
}

static void too_many_pages(void **state)
{
	size_t all = (size_t)memory("MemTotal") * 1024;
	int id = huge_new(1, 0), next;
	long count = (memory("HugePages_Free") - memory("HugePages_Rsvd")) + 64;

	(void)state;
	CHECK_ERR(shmget(IPC_PRIVATE, 2 * all, SHM_HUGETLB | 0600), ENOMEM);
	CHECK_ERR(shmget(IPC_PRIVATE, (size_t)count * huge, SHM_HUGETLB | 0600), ENOMEM);
	CHECK_ERR(shmget(IPC_PRIVATE, (size_t)1 << 62, SHM_HUGETLB | 0600), ENOMEM);
	CHECK_ERR(shmget(IPC_PRIVATE, SIZE_MAX / 2 + 5, SHM_HUGETLB | 0600), ENOMEM);
	next = huge_new(1, 0); /* none of them took an id */
	CHECK_INT(next % 32768, id % 32768 + 1);
	CHECK_INT(next / 32768, id / 32768);
}

static void sizes_by_name(void **state)
{
	int shift = __builtin_ctzl(huge);

	(void)state;
	(void)huge_new(1, shift << 26);
	CHECK_ERR(shmget(IPC_PRIVATE, 1, SHM_HUGETLB | 0600 | 13 << 26), EINVAL);
	CHECK_ERR(shmget(IPC_PRIVATE, 0, SHM_HUGETLB | 0600), EINVAL);
}

static void locking_does_nothing(void **state)
{
	int id = huge_new(1, 0);

	(void)state;
	CHECK_OK(shmctl(id, SHM_LOCK, NULL));
	CHECK_INT(shm_stat(id).shm_perm.mode, 0600);
	CHECK_OK(shmctl(id, SHM_UNLOCK, NULL));
}

static void removed_while_attached(void **state)
{
	long pages = memory("HugePages_Total");
	int id = huge_new(huge, 0);
	char *p = shm_at(id, NULL, 0);
	pid_t kid;

	(void)state;
	p[7] = 1;
	IN_CHILD (kid) {
		char *q;

		CHECK_INT(shm_nattch(id), 2);
		CHECK_OK(shmctl(id, IPC_RMID, NULL));
		q = shm_at(id, NULL, 0);
		CHECK_INT(shm_nattch(id), 3);
		q[8] = (char)(p[7] + 1);
		atomic_store(&board->flag[0], 1);
		for (;;)
			pause();
	}
	UNTIL(atomic_load(&board->flag[0]));
	CHECK_OK(kill(kid, SIGKILL));
	(void)child_status(kid);
	CHECK_INT(p[8], 2);
	CHECK_INT(shm_nattch(id), 1);
	CHECK_INT(shm_stat(id).shm_perm.mode, 0600 | SHM_DEST);
	CHECK_INT(memory("HugePages_Total"), pages + 1);
	CHECK_OK(shmdt(p));
	CHECK_ERR(shmctl(id, IPC_RMID, NULL), EINVAL);
	CHECK_INT(memory("HugePages_Total"), pages);
}

static void goes_with_its_last_attach_where_that_is_set(void **state)
{
	int id;
	char *p;

	(void)state;
	set_limit("/proc/sys/kernel/shm_rmid_forced", "1");
	id = huge_new(1, 0);
	CHECK_INT(shm_nattch(id), 0);
	p = shm_at(id, NULL, 0);
	CHECK_OK(shmdt(p));
	CHECK_ERR(shmctl(id, IPC_RMID, NULL), EINVAL);
}

static void no_descriptors_left(void **state)
{
	pid_t kid;

	(void)state;
	IN_CHILD (kid) {
		int id;
		char *p;

		while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
			;
		CHECK_INT(errno, EMFILE);
		id = (int)CHECK_OK(shmget(IPC_PRIVATE, huge, SHM_HUGETLB | 0600));
		p = shm_at(id, NULL, 0);
		p[0] = 1;
		CHECK_INT(shm_nattch(id), 1);
		CHECK_OK(shmdt(p));
		CHECK_OK(shmctl(id, IPC_RMID, NULL));
	}
	child_ok(kid);
}

static void in_proc(void **state)
{
	int id = huge_new(5000, 0);
	char line[512];
	bool found = false;
	FILE *f = fopen("/proc/sysvipc/shm", "re");

	(void)state;
	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		int key, its;
		unsigned mode;
		size_t bytes;

		if (sscanf(line, "%d %d %o %zu", &key, &its, &mode, &bytes) == 4 && its == id) {
			found = true;
			CHECK_INT(bytes, 5000);
			CHECK_INT(mode, 0600);
		}
	}
	(void)fclose(f);
	CHECK(found);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(size_is_the_one_asked_for),
		TEST(key_finds_it_up_to_its_size),
		TEST(addresses),
		TEST(parts),
		TEST(pages_are_kept_from_the_start),
		TEST(too_many_pages),
		TEST(sizes_by_name),
		TEST(locking_does_nothing),
		TEST(removed_while_attached),
		TEST(goes_with_its_last_attach_where_that_is_set),
		TEST(no_descriptors_left),
		TEST(in_proc),
	};

	huge = (size_t)memory("Hugepagesize") * 1024;
	harness_begin(argc, argv, NULL);
	return cmocka_run_group_tests_name("shm-huge", tests, NULL, NULL);
}
