// SPDX-License-Identifier: MIT
/*
 * A lock of this process has its owner's mark, for two reasons: a handler that the library could
 * not put off must not wait for its own thread, and a vfork child that is killed with the lock in
 * its hand leaves it to its parent, in whose memory it ran.
 *
 * The mark of a thread is its id. That of a vfork child is one of the thread whose stack and
 * thread-local memory it borrows, for both must know it: in a pid namespace of its own the child
 * has another id than the parent sees. No vfork child makes another while it has a lock.
 *
 *   MUTEX_P1  lock within a process
 *    word      words[] (private), futex mutex: 0 free, else the owner's mark, and W when somebody
 *              may sleep on it
 *    states    0 > owner > 0; W may be added while owned
 *    writers   any thread, and any vfork child of one; in a section or with signals blocked
 *    order     R of unlock pairs with A of lock; publishes what the lock is over
 *    stale-ok  W with nobody asleep
 *    death     private memory: dies with the process. A forked child starts with it free. A vfork
 *              child's is given back by the thread that goes on when it has ended; what it had
 *              half done, the next one does anew
 *    progress  blocks
 *    tests     fuzz/vfork-killed, preload/process, conform/shm-life
 */
#include "client/mutex.h"

#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/sys.h"
#include "client/thread.h"

#define W     0x80000000u
#define CHILD 0x40000000u /* no thread id is as large */

static uint32_t words[MUTEXES];

/* Of the vfork children that run on this thread's stack; 0: none has wanted a lock yet. */
static __thread uint32_t child_mark __attribute__((tls_model("initial-exec")));
static uint32_t child_marks;

static uint32_t own_mark(void)
{
	if (!vfork_depth)
		return (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	if (!child_mark)
		child_mark = CHILD | (fetch_add(&child_marks, 1) & (CHILD - 1)); /* private */
	return child_mark;
}

bool mutex_lock(enum mutex m)
{
	uint32_t me = own_mark(), mine = me, seen = 0;

	while (!cas(&words[m], &seen, mine)) { /* MUTEX_P1/A */
		if ((seen & ~W) == me)
			return false;
		if (seen == 0)
			continue;
		if ((seen & W) || cas(&words[m], &seen, seen | W)) /* MUTEX_P1/A */
			futex_wait(&words[m], seen | W, NULL);
		mine = me | W; /* others may sleep, too */
		seen = 0;
	}
	return true;
}

void mutex_unlock(enum mutex m)
{
	if (exchange(&words[m], 0) & W) /* MUTEX_P1/R */
		futex_wake(&words[m], 1);
}

void mutex_forget(enum mutex m)
{
	store_release(&words[m], 0); /* MUTEX_P1/R */
}

void mutex_vfork_ended(void)
{
	for (int m = 0; child_mark && m < MUTEXES; m++)
		/* It runs no more here: what is its, will not change. */
		if ((load_acquire(&words[m]) & ~W) == child_mark) /* MUTEX_P1/A */
			mutex_unlock((enum mutex)m);
}
