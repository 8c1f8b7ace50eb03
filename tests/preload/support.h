/* SPDX-License-Identifier: MIT */
/*
 * For test programs that run under the preload library with the fake client in it. Without the
 * library fake() is null; tests that need it are skipped then, the others hold the C library and
 * the kernel themselves to what they demand.
 */
#ifndef USYSV_TESTS_PRELOAD_SUPPORT_H
#define USYSV_TESTS_PRELOAD_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_client.h"

static inline struct fake_counts *fake(void)
{
	struct fake_counts **shared = (struct fake_counts **)dlsym(RTLD_DEFAULT, "fake_shared");

	return shared ? *shared : NULL;
}

#define NEEDS_FAKE()                                                                               \
	do {                                                                                       \
		if (!fake()) {                                                                     \
			print_message("skipped: needs the library, this run is without it\n");     \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

/* Moves the counts into memory that forked children share. */
static inline void share_counts(void)
{
	struct fake_counts **shared = (struct fake_counts **)dlsym(RTLD_DEFAULT, "fake_shared");
	struct fake_counts *p;

	if (!shared)
		return;
	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	*shared = p;
}

/* A section in which inside() is called; then its end. */
static inline void section(void (*inside)(void))
{
	fake()->in_section = inside;
	assert_int_equal(semop(FAKE_HOLD, NULL, 0), 0);
	fake()->in_section = NULL;
}

/* Runs body in a child; returns its wait status. */
static inline int in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

#endif
