// SPDX-License-Identifier: MIT
/* Mappings as the kernel's call tells them and as the text does: they agree, and with what was
 * mapped. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/attach_maps.h"
#include "unit.h"

#define FOUND_MOST 512

static uint32_t walk(pid_t pid, bool any, struct attach_vma *found)
{
	struct attach_maps m;
	uint64_t from = 0;
	uint32_t n = 0;

	EXPECT_INT(attach_maps_open(&m, pid), 0);
	while (n < FOUND_MOST && attach_maps_next(&m, from, any, &found[n]))
		from = found[n++].end;
	EXPECT_INT(attach_maps_close(&m), 0);
	return n;
}

static void test_both_ways_agree(void **state)
{
	static struct attach_vma call[FOUND_MOST], text[FOUND_MOST];
	char path[] = "/tmp/usysv-maps-XXXXXX";
	int fd = mkstemp(path);
	struct stat st;
	char *p;
	bool seen = false;

	(void)state;
	EXPECT(fd >= 0 && ftruncate(fd, 8 * PAGE_BYTES) == 0 && fstat(fd, &st) == 0);
	EXPECT(unlink(path) == 0);
	p = mmap(NULL, 4 * PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 2 * PAGE_BYTES);
	EXPECT(p != MAP_FAILED && munmap(p + PAGE_BYTES, PAGE_BYTES) == 0);
	for (int any = 0; any < 2; any++) {
		uint32_t n, k = 0;

		attach_maps_only_text = false;
		n = walk(0, any, call);
		attach_maps_only_text = true;
		/* the text may show [vsyscall] besides, at the very end */
		EXPECT(walk(any ? getpid() : 0, any, text) - n <= (uint32_t)any);
		attach_maps_only_text = false;
		for (; k < n; k++) {
			EXPECT(call[k].start == text[k].start && call[k].end == text[k].end);
			EXPECT(call[k].inode == text[k].inode && call[k].dev == text[k].dev);
			EXPECT(!call[k].inode || call[k].offset == text[k].offset);
			if (call[k].start != (uint64_t)(uintptr_t)(p + 2 * PAGE_BYTES))
				continue;
			EXPECT_INT(call[k].end - call[k].start, 2 * PAGE_BYTES);
			EXPECT_INT(call[k].offset, 4 * PAGE_BYTES);
			EXPECT(call[k].inode == st.st_ino);
			seen = true;
		}
	}
	EXPECT(seen);
	EXPECT(munmap(p, 4 * PAGE_BYTES) == 0 && close(fd) == 0);
}

/* A failure after some lines is no end. */
static void test_failure_half_way(void **state)
{
	struct attach_maps m;
	struct attach_vma v = {0};
	uint32_t n = 0;
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	for (int text = 0; text < 2; text++) {
		attach_maps_only_text = text;
		EXPECT_INT(attach_maps_open(&m, 0), 0);
		EXPECT(attach_maps_next(&m, 0, true, &v));
		EXPECT(dup2(fd, (int)m.fd) == m.fd); /* nobody can read that */
		while (n++ < FOUND_MOST && attach_maps_next(&m, v.end, true, &v))
			;
		EXPECT(n < FOUND_MOST);
		EXPECT(attach_maps_close(&m) < 0);
	}
	attach_maps_only_text = false;
	EXPECT(close(fd) == 0);
	EXPECT_INT(attach_maps_open(&m, 4194303), -ENOSYS); /* no such process */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_ways_agree),
		cmocka_unit_test(test_failure_half_way),
	};

	return cmocka_run_group_tests_name("shm-maps", tests, NULL, NULL);
}
