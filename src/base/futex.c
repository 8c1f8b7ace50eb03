// SPDX-License-Identifier: MIT
/* The futex system call; see the header for the contracts. */
#include "base/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
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

#define LINE 64u

/* Memcheck also looks at what system calls are given. The whole line: a value of which it knows a
 * part has no other part, to it. */
static void will_pass(const void *word)
{
	const char *line = (const char *)word - (uintptr_t)word % LINE;

	(void)memcheck_ask(MEMCHECK_DEFINED, line, LINE); /* nobody may listen */
}

int futex_wake(const void *word, int count)
{
	will_pass(word);
	return (int)sys_call(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

int futex_wait(const void *word, uint32_t value, const struct timespec *deadline)
{
	will_pass(word);
	return (int)sys_call(SYS_futex, (long)word, FUTEX_WAIT_BITSET, (long)value, (long)deadline,
			     0, (long)FUTEX_BITSET_MATCH_ANY);
}

int futex_wait_either(const void *a, uint32_t value_a, const void *b, uint32_t value_b,
		      const struct timespec *deadline)
{
	struct waitv v[2] = {
		{value_a, (uint64_t)(uintptr_t)a, WAITV_SIZE_U32, 0},
		{value_b, (uint64_t)(uintptr_t)b, WAITV_SIZE_U32, 0},
	};
	static bool unknown; /* before Linux 5.16; and valgrind says so each time */
	long r;

	if (load_relaxed(&unknown)) /* private */
		return -ENOSYS;
	will_pass(a);
	will_pass(b);
	r = sys_call(SYS_futex_waitv, (long)v, 2, 0, (long)deadline, CLOCK_MONOTONIC, 0);
	if (r == -ENOSYS)
		store_relaxed(&unknown, true); /* private */
	return r > 0 ? 0 : (int)r;
}
