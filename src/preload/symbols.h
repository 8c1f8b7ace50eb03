/* SPDX-License-Identifier: MIT */
/*
 * Where the functions lie that this library stands in front of. NEXT(name) is the definition that
 * the program would have got without us: that of the first library after ours (which may be
 * another preload), in the end the C library's.
 *
 * dlsym(RTLD_NEXT) would do, but it takes the loader's lock and may allocate, and these functions
 * are called in signal handlers, in vfork children and before our constructor. So the link maps
 * are walked by hand, at the first use of each name. The walk ends in the C library at the latest,
 * which was there from the start and is never unloaded: it needs no lock.
 *
 * Everything here is async-signal-safe and leaves errno alone.
 */
#ifndef USYSV_PRELOAD_SYMBOLS_H
#define USYSV_PRELOAD_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

/* A definition that programs find instead of the C library's. */
#define PUBLIC __attribute__((visibility("default")))

/* clang-format off */
#define NEXT_FUNCTIONS(X) \
	X(sigaction) X(siginterrupt) X(sigprocmask) X(pthread_sigmask) X(pthread_setcanceltype) \
	X(_exit) X(__libc_start_main) X(_Fork) X(fork) X(wait) X(waitpid) X(wait3) X(wait4) \
	X(waitid) X(system) X(popen) X(pclose) \
	X(setuid) X(seteuid) X(setreuid) X(setresuid) X(setgid) X(setegid) X(setregid) \
	X(setresgid) X(setgroups) X(initgroups) \
	X(setfsuid) X(setfsgid) X(capset) X(chroot) X(pivot_root) X(unshare) X(setns) \
	X(execve) X(execvpe) X(fexecve) X(execveat) X(posix_spawn) X(posix_spawnp) \
	X(syscall) X(dlsym) X(dlvsym) X(dlopen) X(dlmopen) \
	X(open) X(open64) X(__open) X(__open64) X(__open_2) X(__open64_2) X(openat) X(openat64) \
	X(__openat_2) X(__openat64_2) \
	X(creat) X(creat64) X(fopen) X(fopen64) X(freopen) X(freopen64) \
	X(write) X(writev) X(pwrite) X(pwrite64) X(close) X(fflush) X(fclose) \
	X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64) \
	X(statx) \
	X(__xstat) X(__xstat64) X(__lxstat) X(__lxstat64) X(__fxstat) X(__fxstat64) \
	X(__fxstatat) X(__fxstatat64) \
	X(access) X(eaccess) X(euidaccess) X(faccessat) \
	X(mlockall) X(mlock) X(munlock) X(munlockall)
/* clang-format on */

enum next_index {
#define X(name) NEXT_##name,
	NEXT_FUNCTIONS(X)
#undef X
		NEXT_COUNT,
};

extern void *next_table[NEXT_COUNT];

/* Looks the function up and remembers it; null if nothing after us defines it. */
void *next_resolve(enum next_index ix);

static inline void *next_function(enum next_index ix)
{
	void *function = __atomic_load_n(&next_table[ix], __ATOMIC_RELAXED);

	return __builtin_expect(function != NULL, 1) ? function : next_resolve(ix);
}

#define NEXT(name) ((__typeof__(name) *)next_function(NEXT_##name))

/*
 * Our function, if we have one of that name and `found` is what it stands in front of; else
 * `found`. What a preload behind us finds in the C library while it stands in between stays.
 */
void *symbol_in_front(const char *name, void *found);

/*
 * Are two names the same? In place of strcmp(), which a sanitizer's library replaces by one that
 * does not work yet when it looks its own symbols up, through us.
 */
static inline bool symbol_is(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

/* The file of the program interpreter (dynamic loader) of this process; null if unknown. */
const char *symbol_loader_path(void);

/* The file that this library was loaded from, as the loader was given it. */
const char *symbol_own_path(void);

#endif
