// SPDX-License-Identifier: MIT
/*
 * The lock over what a process knows of itself. It has the owner's mark, for two reasons: a
 * handler that the library could not put off must not wait for its own thread, and a vfork child
 * that is killed with the lock in its hand leaves it to its parent, in whose memory it ran.
 *
 * The mark of a thread is its id. That of a vfork child is one of the thread whose stack and
 * thread-local memory it borrows, for both must know it: in a pid namespace of its own the child
 * has another id than the parent sees. No vfork child makes another while it has the lock.
 *
 *   SESSION_P1  state of the process
 *    word      session.lock (private), futex mutex: 0 free, else the owner's mark, and W when
 *              somebody may sleep on it. session.attached: stored with the lock
 *    states    0 > owner > 0; W may be added while owned
 *    writers   any thread, and any vfork child of one; all signals but SIGBUS (of a region that was
 *              cut off) are blocked while it is held
 *    order     R of unlock pairs with A of lock; publishes the session. R of `attached`, stored
 *              last, pairs with A of session_is_attached(), for who has not the lock
 *    stale-ok  W with nobody asleep. `attached` to a region that was left: it stays mapped
 *    death     private memory: dies with the process. A forked child starts with it free. A vfork
 *              child's is given back by the thread that goes on when it has ended; what it had
 *              half done, the next one does anew
 *    progress  blocks
 *    tests     preload/process, conform/sem_undo, fuzz/vfork-killed
 */
#include <signal.h>
#include <sys/syscall.h>

#include "base/futex.h"
#include "base/sys.h"
#include "client/attach.h"
#include "client/session_priv.h"

#define LOCK_W     0x80000000u
#define LOCK_CHILD 0x40000000u /* no thread id is as large */

/* Of the vfork children that run on this thread's stack; 0: none has wanted the lock yet. */
static __thread uint32_t child_mark __attribute__((tls_model("initial-exec")));
static uint32_t child_marks;

static uint32_t own_mark(void)
{
	if (!vfork_depth)
		return (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	if (!child_mark)
		child_mark =
			LOCK_CHILD | (fetch_add(&child_marks, 1) & (LOCK_CHILD - 1)); /* private */
	return child_mark;
}

static void block_signals(uint64_t *old)
{
	uint64_t most = ~(1ull << (SIGBUS - 1));

	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&most, (long)old, sizeof(most), 0, 0);
}

void session_restore_signals(const uint64_t *old)
{
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)old, 0, sizeof(*old), 0, 0);
}

bool session_lock(uint64_t *signals)
{
	uint32_t me, mine, seen = 0;

	block_signals(signals);
	mine = me = own_mark();
	while (!cas(&session.lock, &seen, mine)) { /* SESSION_P1/A */
		if ((seen & ~LOCK_W) == me) {
			session_restore_signals(signals);
			return false;
		}
		if ((seen & LOCK_W) || cas(&session.lock, &seen, seen | LOCK_W)) /* SESSION_P1/A */
			futex_wait(&session.lock, seen | LOCK_W, NULL);
		mine = me | LOCK_W; /* others may sleep, too */
		seen = 0;
	}
	return true;
}

static void let_go(void)
{
	if (exchange(&session.lock, 0) & LOCK_W) /* SESSION_P1/R */
		futex_wake(&session.lock, 1);
}

void session_unlock(const uint64_t *signals)
{
	let_go();
	session_restore_signals(signals);
}

void session_vfork_ended(pid_t child)
{
	/* It runs no more here: what is its, will not change. */
	if (child_mark && (load_acquire(&session.lock) & ~LOCK_W) == child_mark) /* SESSION_P1/A */
		let_go();
	/* By its id: of a child that had a pid namespace of its own, this finds nothing. */
	attach_vfork_ended((uint32_t)child);
}
