// SPDX-License-Identifier: MIT
/*
 * Asynchronous cancellation could end a thread in the middle of a section. What it had in hand
 * would be repaired, as after a death, but the thread's own cleanup handlers would find its block
 * half way through an operation. So for the time of a call the type is made deferred; giving it
 * back acts on a request that came meanwhile. Threads that never asked for the asynchronous type
 * (nearly all) pay for one look at a flag.
 */
#include "preload/cancel.h"

#include <pthread.h>

#include "preload/symbols.h"

__thread bool cancel_is_asynchronous;

PUBLIC int pthread_setcanceltype(int type, int *old)
{
	int rc;

	/* Known to be asynchronous no later than it is, and no less long. */
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		cancel_is_asynchronous = true;
	rc = NEXT(pthread_setcanceltype)(type, old);
	if (rc == 0 && type == PTHREAD_CANCEL_DEFERRED)
		cancel_is_asynchronous = false;
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
