/* SPDX-License-Identifier: MIT */
/* Asynchronous cancellation and sections; see cancel.c. */
#ifndef USYSV_PRELOAD_CANCEL_H
#define USYSV_PRELOAD_CANCEL_H

#include <stdbool.h>

extern __thread bool cancel_is_asynchronous
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Around a call, if cancel_is_asynchronous. The second may not return. */
void cancel_hold(void);
void cancel_release(void);

#endif
