// SPDX-License-Identifier: MIT
/*
 * The lock over what a process knows of itself. It has the owner's thread id, for two reasons: a
 * handler that the library could not put off must not wait for its own thread, and a vfork child
 * that is killed with the lock in its hand leaves it to its parent, in whose memory it ran.
 *
 *   SESSION_P1  state of the process
 *    word      session.lock (private), futex mutex: 0 free, else the owner's thread id, and W when
 *              somebody may sleep on it
 *    states    0 > owner > 0; W may be added while owned
 *    writers   any thread, and any vfork child of one; all signals but SIGBUS (of a region that was
 *              cut off) are blocked while it is held
 *    order     R of unlock pairs with A of lock; publishes the session
 *    stale-ok  W with nobody asleep
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

#define LOCK_W 0x80000000u

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
	uint32_t me = (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0), mine = me, seen = 0;

	block_signals(signals);
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
	if ((load_acquire(&session.lock) & ~LOCK_W) == (uint32_t)child) /* SESSION_P1/A */
		let_go();
	attach_vfork_ended((uint32_t)child);
}
