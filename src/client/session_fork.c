// SPDX-License-Identifier: MIT
/*
 * The session around fork.
 *
 * The locks are held over the fork: a registration or an attach half made in another thread would
 * be cut in two in the child. The child's token is locked, mapped and inherited; the parent unmaps
 * its copy. A parent that dies in the middle leaves a reserved slot whose token is free, which the
 * reaper frees.
 */
#include "client/session_priv.h"

#include "client/attach_fork.h"
#include "client/lost.h"
#include "client/mutex.h"
#include "core/region.h"

static uint64_t fork_signals;
/* By session_fork_prepare(), not by what a handler interrupted: then the child has what there
 * is. */
static bool fork_locked, attaches_locked;

void session_fork_prepare(void)
{
	struct thread_block *tb = NULL;
	uint32_t ix;
	uint64_t signals;
	int error;

	/* Whose attaches the child will have, registers: only then can it be written down. */
	if (session_has_attaches())
		tb = session_thread(&error);
	fork_locked = session_lock(&signals);
	if (!fork_locked)
		return;
	fork_signals = signals;
	session.child_ix = NO_SLOT;
	session.child_token = NULL;
	attaches_locked = mutex_lock(MUTEX_ATTACHES);
	if (!session.attached || lost_region())
		return;
	/* Else the child registers without a token. */
	if (session_reserve(session_pid(), true, &session.child_token, &ix) == 0) {
		session.child_ix = ix;
		if (tb)
			attach_fork_record(tb, ix);
	} else if (tb) {
		attach_fork_copy(tb);
	}
}

void session_fork_parent(void)
{
	uint64_t signals = fork_signals;

	if (!fork_locked)
		return;
	session_drop_token(session.child_token);
	session.child_ix = NO_SLOT;
	session.child_token = NULL;
	attach_fork_drop();
	if (attaches_locked)
		mutex_unlock(MUTEX_ATTACHES);
	session_unlock(&signals);
}

void session_fork_child(void)
{
	struct process_record *me;
	struct thread_block *tb;
	uint64_t signals = fork_signals;
	int error;

	vfork_depth = 0; /* memory of its own */
	session.process = (struct process_record){.pid_view = session.process.pid_view};
	session.own_ix = session.child_ix;
	session.own_token = session.child_token;
	session.child_ix = NO_SLOT;
	session.child_token = NULL;
	session_keep_from_children(session.own_token);
	mutex_forget(MUTEX_ATTACHES);
	/* What it has attached it must be known by: its end is to be seen. */
	if (session.own_ix != NO_SLOT &&
	    load_acquire(
		    &region_known_proc(session.base, session.own_ix)->attach_ref)) /* SHM_A1/A */
		(void)session_register_process(&me);
	mutex_forget(MUTEX_SESSION);
	if (attach_fork_is_heir()) {
		tb = session_thread(&error);
		if (tb)
			attach_fork_take(tb);
		else
			attach_fork_drop();
	}
	if (fork_locked)
		session_restore_signals(&signals);
}
