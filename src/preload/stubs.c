// SPDX-License-Identifier: MIT
/* What the stubs need from C, and C versions for machines without assembly ones. See stubs.h. */
#include "preload/stubs.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "client/thread.h"
#include "preload/entry.h"
#include "preload/symbols.h"

long stub_error(long error)
{
	errno = (int)error;
	return -1;
}

#if defined(__x86_64__) && !defined(__ILP32__)

/* In place of a function that no library after us has: nothing would have called it. */
static void *absent(void)
{
	return NULL;
}

static void *next_or_absent(enum next_index ix)
{
	void *function = next_function(ix);

	return function ? function : (void *)absent;
}

void stubs_resolve(void)
{
	stub_next_syscall = next_or_absent(NEXT_syscall);
	stub_next_dlsym = next_or_absent(NEXT_dlsym);
	stub_next_dlvsym = next_or_absent(NEXT_dlvsym);
	stub_next_dlopen = next_or_absent(NEXT_dlopen);
	stub_next_dlmopen = next_or_absent(NEXT_dlmopen);
}

void *stub_handle_dlsym(void *handle, const char *name)
{
	void *function = entry_find(name);

	return function ? function : symbol_in_front(name, NEXT(dlsym)(handle, name));
}

void *stub_handle_dlvsym(void *handle, const char *name, const char *version)
{
	void *function = entry_find(name);

	return function ? function : symbol_in_front(name, NEXT(dlvsym)(handle, name, version));
}

#else

/*
 * A plain function in between: numbers that are not ours pass through it, which is wrong only for
 * those that return on another stack. dlopen() and dlsym() stay the C library's here, for they
 * look at their caller; vfork() too, whose child is then told apart by its process id.
 */
PUBLIC long syscall(long nr, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr >= 0 && nr < ENTRY_SYSCALL_COUNT && entry_syscall_class[nr])
		return entry_syscall_handlers[entry_syscall_class[nr]](nr, a[0], a[1], a[2], a[3],
								       a[4], a[5]);
	return NEXT(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
