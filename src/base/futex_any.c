// SPDX-License-Identifier: MIT
/* Sleeping on several words; see the header for the contracts. */
#include "base/futex.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/memcheck.h"
#include "base/sys.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* The kernel's struct futex_waitv, which older headers lack. */
struct waitv {
	uint64_t value;
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};
enum { WAITV_SIZE_U32 = 2 };

static int wait_vector(const struct waitv *v, unsigned count, const struct timespec *deadline)
{
	static bool unknown; /* before Linux 5.16; and valgrind says so each time */
	long r;

	if (load_relaxed(&unknown)) /* private */
		return -ENOSYS;
	for (unsigned i = 0; i < count; i++)
		memcheck_will_pass((const void *)(uintptr_t)v[i].address);
	r = sys_call(SYS_futex_waitv, (long)v, count, 0, (long)deadline, CLOCK_MONOTONIC, 0);
	if (r == -ENOSYS)
		store_relaxed(&unknown, true); /* private */
	return (int)r;
}

int futex_wait_either(const void *a, uint32_t value_a, const void *b, uint32_t value_b,
		      const struct timespec *deadline)
{
	struct waitv v[2] = {
		{value_a, (uint64_t)(uintptr_t)a, WAITV_SIZE_U32, 0},
		{value_b, (uint64_t)(uintptr_t)b, WAITV_SIZE_U32, 0},
	};
	int r = wait_vector(v, 2, deadline);

	return r > 0 ? 0 : r;
}

int futex_wait_any(const struct futex_word *words, unsigned count)
{
	struct waitv v[FUTEX_WORDS_MOST];

	for (unsigned i = 0; i < count; i++)
		v[i] = (struct waitv){words[i].value, (uint64_t)(uintptr_t)words[i].word,
				      WAITV_SIZE_U32, 0};
	return wait_vector(v, count, NULL);
}
