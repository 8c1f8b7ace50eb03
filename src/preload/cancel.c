// SPDX-License-Identifier: MIT
/*
 * Asynchronous cancellation could end a thread in the middle of a section. What it had in hand
 * would be repaired, as after a death, but the thread's own cleanup handlers would find its block
 * half way through an operation. So for the time of a call the type is made deferred; giving it
 * back acts on a request that came meanwhile. A thread that sleeps in a call can be cancelled there
 * (entry_msg.c). Threads that never asked for the asynchronous type (nearly all) pay for one look
 * at a flag.
 */
#include "preload/cancel.h"

#include <pthread.h>

#include "preload/symbols.h"

PUBLIC int pthread_setcanceltype(int type, int *old)
{
	int rc;

	/* Known to be asynchronous no later than it is, and no less long. */
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		thread_is_async_cancel = true;
	rc = NEXT(pthread_setcanceltype)(type, old);
	if (rc == 0 && type == PTHREAD_CANCEL_DEFERRED)
		thread_is_async_cancel = false;
	return rc;
}

void cancel_hold(void)
{
	(void)NEXT(pthread_setcanceltype)(PTHREAD_CANCEL_DEFERRED, NULL);
}

void cancel_release(void)
{
	(void)NEXT(pthread_setcanceltype)(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
}
