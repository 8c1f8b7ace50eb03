/* SPDX-License-Identifier: MIT */
/* Asynchronous cancellation and sections; see cancel.c. */
#ifndef USYSV_PRELOAD_CANCEL_H
#define USYSV_PRELOAD_CANCEL_H

#include "client/thread.h"

/* Around a call, if thread_is_async_cancel. The second may not return. */
void cancel_hold(void);
void cancel_release(void);

/* A handler is about to run that interrupted this sleep, and may leave it by longjmp.
 * Async-signal-safe. */
void cancel_uncover(struct sleep *s);

#endif
