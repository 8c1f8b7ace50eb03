// SPDX-License-Identifier: MIT
/*
 * The session's lock, with signals blocked: what is done under it is not to be interrupted half way
 * by a handler that makes a call.
 */
#include <signal.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "client/mutex.h"
#include "client/session_priv.h"

/* All but SIGBUS, of a region that was cut off. */
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
	block_signals(signals);
	if (mutex_lock(MUTEX_SESSION))
		return true;
	session_restore_signals(signals);
	return false;
}

void session_unlock(const uint64_t *signals)
{
	mutex_unlock(MUTEX_SESSION);
	session_restore_signals(signals);
}
