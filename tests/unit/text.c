// SPDX-License-Identifier: MIT
/* Numbers and files as text, against what the C library makes of them. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "unit.h"

static void test_numbers(void **state)
{
	static const uint64_t numbers[] = {0,          1,          9,         10,        99,
					   4294967295, 4294967296, INT64_MAX, UINT64_MAX};
	char wanted[32], got[32];

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int length = snprintf(wanted, sizeof(wanted), "%" PRIu64, numbers[i]);

		memset(got, '#', sizeof(got));
		EXPECT(text_put_number(got, numbers[i]) == got + length);
		EXPECT(strcmp(got, wanted) == 0 && got[length + 1] == '#');
	}
}

/* A file of so many bytes, each other than its neighbours, and its path. */
static int make_file(char path[40], size_t bytes)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	for (size_t i = 0; i < bytes; i++)
		EXPECT(dprintf(fd, "%c", (char)(i % 251)) == 1);
	snprintf(path, 40, "/proc/self/fd/%d", fd);
	return fd;
}

static void test_files(void **state)
{
	static const size_t sizes[] = {0, 1, sizeof(((struct text_file *)0)->buffer),
				       2 * sizeof(((struct text_file *)0)->buffer) + 7};
	struct text_file f;
	char path[40], begin[16];

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		int fd = make_file(path, sizes[k]);
		size_t wanted = sizes[k] < sizeof(begin) ? sizes[k] : sizeof(begin) - 1;

		EXPECT_INT(text_open(&f, path), 0);
		for (size_t i = 0; i < sizes[k]; i++)
			EXPECT_INT(text_next(&f), i % 251);
		EXPECT_INT(text_next(&f), -1);
		EXPECT_INT(text_next(&f), -1);
		EXPECT_INT(f.error, 0);
		text_close(&f);
		EXPECT_INT(text_read(path, begin, sizeof(begin)), wanted);
		EXPECT_INT(begin[wanted], 0);
		close(fd);
	}
}

static void test_errors(void **state)
{
	struct text_file f;
	char begin[16];

	(void)state;
	EXPECT_INT(text_open(&f, "/proc/self/not-there"), -ENOENT);
	text_close(&f);
	EXPECT_INT(text_read("/proc/self/not-there", begin, sizeof(begin)), -ENOENT);
	/* that can be opened, but not read */
	EXPECT_INT(text_open(&f, "/proc/self"), 0);
	EXPECT_INT(text_next(&f), -1);
	EXPECT_INT(f.error, -EISDIR);
	text_close(&f);
	EXPECT_INT(text_read("/proc/self", begin, sizeof(begin)), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
