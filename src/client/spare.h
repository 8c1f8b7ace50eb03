/* SPDX-License-Identifier: MIT */
/*
 * System calls that need a descriptor, in a process that has none left.
 *
 * The kernel's System V IPC needs no descriptors, so a call must not fail for want of one. What
 * opens a file runs here; when it meets the limit, it runs again in a child that shares the memory
 * but has a table of descriptors and limits of its own: those it raises and that it empties. What
 * it maps is mapped for both.
 *
 * Async-signal-safe; leaves errno alone.
 */
#ifndef USYSV_CLIENT_SPARE_H
#define USYSV_CLIENT_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ident.h"

/*
 * Calls run(context), which opens descriptors and closes them again, and gives its result. When
 * that is -EMFILE, -ENFILE, -EFBIG or -EBADF (another thread closes what it does not know), again
 * (once or twice) with more descriptors and larger files allowed. There it may run in another
 * process, killed with the caller: getpid() is not the caller's, signal handlers are a copy. Not
 * where that would matter: in the caller, handlers stay out meanwhile, but those of faults. The
 * context, of so many bytes, is copied there and back. What run() writes to elsewhere, it must be
 * free to write to for a moment more when its caller is dead: see spare.c.
 */
int spare_run(int (*run)(void *context), void *context, size_t bytes);

/* A descriptor that run() may use; -1: none. */
void spare_keep(int fd);

/* Raises soft limits to what is allowed: for a child that has just been made. */
void spare_raise_limits(void);

/* Would spare_run() try again after this result? */
bool spare_would_help(long result);

/* ident_start() and ident_process() by way of spare_run(). */
uint64_t spare_ident_start(pid_t pid);
enum ident_state spare_ident_process(pid_t pid, uint64_t start);

#endif
