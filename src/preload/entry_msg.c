// SPDX-License-Identifier: MIT
/*
 * Message queues: msgget(2), msgsnd(2), msgrcv(2), msgctl(2). See entry.h.
 *
 * msgsnd() and msgrcv() are cancellation points: at their beginning, and asleep. There the type is
 * made asynchronous around the wait in the kernel and nowhere else, so that a cancelled thread is
 * outside every section, with its waiter queued; the cleanup handler takes that back.
 */
#include "preload/entry.h"

#include <pthread.h>
#include <sys/msg.h>
#include <sys/syscall.h>

#include "client/calls.h"
#include "client/thread.h"

/*
 * The cleanup handler's place in the thread's list lies in the frame of the call. The C library
 * does not take it out when a signal handler leaves the call by longjmp; so that is done before the
 * handler runs, which finds the sleep taken back already. Twice does no harm.
 */
#if defined(__GLIBC__) && !defined(__EXCEPTIONS)
#define COVER (&__cancel_buf) /* of pthread_cleanup_push() */
#endif

static void take_back(void *arg)
{
	struct thread_block *tb = arg;

	if (!tb->sleep)
		return;
	tb->sleep->finish = NULL; /* nobody will look at the buffer */
	thread_leave_sleep(tb);
}

static int cancellable(struct thread_block *tb, struct sleep *s,
		       int (*wait)(struct thread_block *tb, struct sleep *s))
{
	int rc;

	pthread_cleanup_push(take_back, tb);
#ifdef COVER
	s->cover = COVER;
	crash_barrier();
#endif
	rc = wait(tb, s);
	pthread_cleanup_pop(0);
	crash_barrier();
	s->cover = NULL;
	return rc;
}

void cancel_uncover(struct sleep *s)
{
#ifdef COVER
	if (s->cover)
		__pthread_unregister_cancel(s->cover);
#else
	(void)s;
#endif
}

static void gate(bool open)
{
	(void)NEXT(pthread_setcanceltype)(
		open ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
}

__attribute__((constructor)) static void offer_cancellation(void)
{
	thread_cancellable = cancellable;
	thread_cancel_gate = gate;
}

PUBLIC int msgget(key_t key, int flags)
{
	entry_begin();
	return (int)entry_return(call_msgget(key, flags));
}

PUBLIC int msgsnd(int id, const void *message, size_t bytes, int flags)
{
	pthread_testcancel();
	entry_begin();
	return (int)entry_return(call_msgsnd(id, message, bytes, flags, true));
}

PUBLIC ssize_t msgrcv(int id, void *message, size_t bytes, long type, int flags)
{
	pthread_testcancel();
	entry_begin();
	return entry_return(call_msgrcv(id, message, bytes, type, flags, true));
}

PUBLIC int msgctl(int id, int cmd, struct msqid_ds *buffer)
{
	entry_begin();
	return (int)entry_return(call_msgctl(id, cmd, buffer));
}

const struct entry_name entry_msg_names[] = {
	{"msgget", (void *)msgget},
	{"msgsnd", (void *)msgsnd},
	{"msgrcv", (void *)msgrcv},
	{"msgctl", (void *)msgctl},
	{NULL, NULL},
};

long entry_msg_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long result = -ENOSYS;

	(void)f;
	entry_begin();
	switch (nr) {
#ifdef SYS_msgget
	case SYS_msgget:
		result = call_msgget((key_t)a, (int)b);
		break;
	case SYS_msgsnd:
		result = call_msgsnd((int)a, (const void *)b, (size_t)c, (int)d, false);
		break;
	case SYS_msgrcv:
		result = call_msgrcv((int)a, (void *)b, (size_t)c, d, (int)e, false);
		break;
	case SYS_msgctl:
		result = call_msgctl((int)a, (int)b, (void *)c);
		break;
#endif
	default:
		(void)a;
		(void)b;
		(void)c;
		(void)d;
		(void)e;
		break;
	}
	return entry_return(result);
}
