/* SPDX-License-Identifier: MIT */
/*
 * Copies between the library and memory that the program named, which may be anything: unmapped,
 * read-only, a file's hole. As in the kernel, the copying instructions are listed in a table with
 * where to go on after a fault; the preload's SIGSEGV and SIGBUS handlers look there first. Without
 * such handlers in force (programs that use the library directly, or a thread that has SIGSEGV
 * blocked) every range is probed before it is touched.
 */
#ifndef USYSV_CLIENT_USERCOPY_H
#define USYSV_CLIENT_USERCOPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0 or -EFAULT. probe: ask the kernel about each page first. Async-signal-safe. */
int usercopy_in(void *to, const void *user, size_t n, bool probe);
int usercopy_out(void *user, const void *from, size_t n, bool probe);

/* Where to continue when the instruction at pc faulted; 0: not one of ours. */
uintptr_t usercopy_fixup(uintptr_t pc);

/* Set by whoever installs handlers that use usercopy_fixup(); false: always probe. */
extern bool usercopy_handlers;

#endif
