// SPDX-License-Identifier: MIT
/* The futex system call; see the header for the contracts. */
#include "base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memcheck.h"
#include "base/sys.h"

int futex_wake(const void *word, int count)
{
	memcheck_will_pass(word);
	return (int)sys_call(SYS_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

int futex_wait(const void *word, uint32_t value, const struct timespec *deadline)
{
	memcheck_will_pass(word);
	return (int)sys_call(SYS_futex, (long)word, FUTEX_WAIT_BITSET, (long)value, (long)deadline,
			     0, (long)FUTEX_BITSET_MATCH_ANY);
}
