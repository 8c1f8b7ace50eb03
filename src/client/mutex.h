/* SPDX-License-Identifier: MIT */
/*
 * The locks over what a process knows of itself, in its own memory. Async-signal-safe; leave errno
 * alone. Of the two, the session's comes first.
 */
#ifndef USYSV_CLIENT_MUTEX_H
#define USYSV_CLIENT_MUTEX_H

#include <stdbool.h>

enum mutex {
	MUTEX_SESSION,  /* attaching and registering */
	MUTEX_ATTACHES, /* the process's attaches of segments */
	MUTEXES,
};

/* Waits until it is free. False: this thread has it already, interrupted by a handler that the
 * library could not put off. */
bool mutex_lock(enum mutex m);
void mutex_unlock(enum mutex m);

/* In the child of a fork, which has one thread: nobody has it. */
void mutex_forget(enum mutex m);

/* A child of vfork() runs in this thread's memory no more: what it had locked is given back. */
void mutex_vfork_ended(void);

#endif
