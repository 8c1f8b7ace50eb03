/* SPDX-License-Identifier: MIT */
/*
 * The System V calls as the C library has them. Each family has a file of its own with three
 * things: the public functions, the list of their names, and the same calls as syscall(2) takes
 * them; entry.c has one row for each family. These files are the only place where a -errno of the
 * calls becomes errno.
 */
#ifndef USYSV_PRELOAD_ENTRY_H
#define USYSV_PRELOAD_ENTRY_H

#include <errno.h>
#include <stdbool.h>

#include "client/lost.h"
#include "preload/cancel.h"
#include "preload/symbols.h"

struct entry_name {
	const char *name; /* null: end of the list */
	void *function;
};

/* First and last in every function of the families. */
static inline void entry_begin(void)
{
	if (__builtin_expect(thread_is_async_cancel, 0))
		cancel_hold();
}

/* Turns a result or -errno into what the C library returns. What a call found in a lost region's
 * zeros is no result. */
static inline long entry_return(long result)
{
	if (__builtin_expect(thread_is_async_cancel, 0))
		cancel_release();
	if (__builtin_expect(lost_region(), 0))
		result = -ENOTRECOVERABLE;
	if (__builtin_expect(result < 0 && result >= -4095, 0)) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

/* The calls of one family by number; arguments and result as of syscall(3). */
typedef long entry_syscall_fn(long nr, long a, long b, long c, long d, long e, long f);

extern const struct entry_name entry_sem_names[];
entry_syscall_fn entry_sem_syscall;

extern const struct entry_name entry_msg_names[];
entry_syscall_fn entry_msg_syscall;

extern const struct entry_name entry_shm_names[];
entry_syscall_fn entry_shm_syscall;

/* Other calls that must not slip past when made through syscall(3). */
entry_syscall_fn process_syscall;
entry_syscall_fn procview_syscall;

/* Our function of that name, if it is one of the families'; null otherwise. */
void *entry_find(const char *name);

/* Which handler syscall(nr, ...) goes to; 0: to the C library's syscall(). */
#define ENTRY_SYSCALL_COUNT 512
extern const unsigned char entry_syscall_class[ENTRY_SYSCALL_COUNT];
extern entry_syscall_fn *const entry_syscall_handlers[];

#endif
