/* SPDX-License-Identifier: MIT */
/*
 * Functions that must leave the stack and the return address as they found them: dlopen() looks
 * at who called it, vfork() and some syscall()s return twice. On x86-64 they are written in
 * assembly (stubs.S) and end in a jump; elsewhere stubs.c has what can be done in C.
 */
#ifndef USYSV_PRELOAD_STUBS_H
#define USYSV_PRELOAD_STUBS_H

/* The next definitions, as the stubs jump through them. */
extern void *stub_next_syscall, *stub_next_dlsym, *stub_next_dlvsym, *stub_next_dlopen,
	*stub_next_dlmopen;

/* Fills these in; called by the stubs at their first use. */
void stubs_resolve(void);

/* dlsym() and dlvsym() where the handle is that of a library. */
void *stub_handle_dlsym(void *handle, const char *name);
void *stub_handle_dlvsym(void *handle, const char *name, const char *version);

/* errno = error; returns -1. */
long stub_error(long error);

#endif
