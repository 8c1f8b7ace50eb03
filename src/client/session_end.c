// SPDX-License-Identifier: MIT
/*
 * Ends: of this process, and of others that it learns of. Who has learnt of a death must find what
 * the dead owed settled; session.c has the rest of the session.
 */
#include "client/session_priv.h"

#include <sys/syscall.h>
#include <time.h>

#include "base/futex.h"
#include "base/ident.h"
#include "base/sys.h"
#include "client/attach_used.h"
#include "client/call.h"
#include "client/lost.h"
#include "client/office.h"
#include "client/reaper_start.h"
#include "client/spare.h"
#include "client/wait.h"
#include "core/procs.h"
#include "core/region.h"
#include "core/rlock.h"
#include "ipc/repair.h"
#include "ipc/sem.h"

/* How long a call waits for another's burial of the same process: the other one may be stopped. */
#define BURY_TRIES   200
#define BURY_POLL_NS 5000000ll

/*
 * And how long it waits for what is busy: its owner may be stopped, perhaps until this very call
 * returns. The rest is done by whoever looks next. The reaper has others to look after.
 */
#define PATIENCE_NS        300000000ll
#define REAPER_PATIENCE_NS 5000000ll

/* Nothing that damage has made of the own slot keeps from burying. */
static void enter(struct thread_block *tb)
{
	section_enter(tb);
	(void)call_set_right(tb);
}

/* In a section, after OUTCOME_BUSY. *end is 0 at first. False: it has taken too long. */
static bool wait_patiently(struct thread_block *tb, int64_t *end)
{
	int64_t now = wait_now_ns();

	if (*end == 0)
		*end = now + (session.adopted ? REAPER_PATIENCE_NS : PATIENCE_NS);
	if (now >= *end)
		return false;
	wait_busy_briefly(tb);
	return true;
}

void session_exit(void)
{
	struct process_record *me = session_is_attached() ? session_registered() : NULL;
	struct thread_block *tb;
	uint64_t signals;
	int64_t end = 0;
	int error;

	if (!me || lost_region())
		return;
	tb = session_thread(&error);
	if (!tb)
		return;
	/* A private namespace goes with its last process: somebody must be there to see to it. */
	if ((region_header(session.base)->flags & REGION_PRIVATE) && !session.adopted &&
	    !office_held(&tb->caller))
		(void)reaper_start_missed(&session.place);
	/* With the session's lock, for a thread that made its first call just now would enter a
	 * slot that is somebody else's in a moment. */
	if (!session_lock(&signals))
		return; /* burial does it */
	enter(tb);
	while (repair_exit_process(&tb->caller, time(NULL)) == OUTCOME_BUSY &&
	       wait_patiently(tb, &end))
		;
	rlock_settle(&tb->caller);
	section_leave(tb);
	if (session_slot_is_free(tb->caller.thread_ix)) {
		/* Given back whole. A later call registers anew. */
		tb->ready = 0;
		me->registered = false;
		session_drop_token(me->token);
		me->token = NULL;
		if (vfork_depth) {
			thread_self = NULL;
			vfork_record_free(me);
		}
	}
	session_unlock(&signals);
}

/*
 * Buries a process and, when it is dead but somebody else is at it, waits until that is done: who
 * has learnt of a death must find its SEM_UNDO applied.
 */
static void bury(struct thread_block *tb, uint32_t proc_ix)
{
	struct caller *c = &tb->caller;
	struct proc_shm *p = region_known_proc(c->base, proc_ix);
	uint64_t gen = CLAIM_GEN(load_acquire(&p->claim)); /* REG_P1/A */
	bool dead = c->ops->is_process_dead(c, proc_ix);
	int64_t end = 0;

	for (int tries = 0; tries < BURY_TRIES; tries++) {
		struct timespec deadline;
		bool goes_on = true;
		int rc;

		enter(tb);
		rc = repair_bury_process(c, proc_ix, time(NULL));
		if (rc == OUTCOME_BUSY)
			goes_on = wait_patiently(tb, &end);
		rlock_settle(c);
		section_leave(tb);
		if (!goes_on)
			return;
		if (rc == OUTCOME_BUSY)
			continue;
		if (!dead || load_acquire(&p->state) != PROC_LIVE || /* REG_P2/A */
		    CLAIM_GEN(load_acquire(&p->claim)) != gen)       /* REG_P1/A */
			return;
		deadline = wait_deadline(BURY_POLL_NS);
		/* Woken by unclaim_process(); the deadline is for a burier killed right before. */
		futex_wait(&p->state, PROC_LIVE, &deadline);
	}
}

void session_reap(pid_t pid)
{
	struct thread_block *tb;
	int32_t ix;
	int error;

	if (!session_is_attached() || pid <= 0 || lost_region())
		return;
	ix = procs_find(session.base, (uint32_t)pid, 0);
	if (ix < 0)
		return;
	tb = session_thread(&error);
	if (!tb)
		return;
	for (; ix >= 0; ix = procs_find_from(session.base, (uint32_t)pid, 0, (uint32_t)ix + 1))
		if ((uint32_t)ix != tb->caller.proc_ix)
			bury(tb, (uint32_t)ix);
	attach_sweep(tb);
}

uint32_t session_visible_pid(uint32_t proc_ix)
{
	const struct proc_shm *p = region_proc(session.base, proc_ix);

	return p && p->pid_view && p->pid_view == session_pid_view() && ident_proc_is_ours()
		       ? p->pid
		       : 0;
}

void session_bury(struct thread_block *tb, uint32_t proc_ix)
{
	bury(tb, proc_ix);
}

static bool empty_reserved(struct thread_block *tb, uint32_t ix)
{
	int64_t end = 0;
	int rc;

	enter(tb);
	while ((rc = repair_bury_reserved(&tb->caller, ix)) == OUTCOME_BUSY &&
	       wait_patiently(tb, &end))
		;
	rlock_settle(&tb->caller);
	section_leave(tb);
	return rc != OUTCOME_RETRY && rc != OUTCOME_BUSY;
}

/*
 * For a child that never made a call, or that never came to be; with records if its parent had
 * attaches. With the token in our hand nobody else empties the slot, or can have reserved it anew;
 * the session's lock keeps the token from children of ours.
 */
static void free_tokened(struct thread_block *tb, uint32_t ix, uint32_t word)
{
	const struct proc_shm *p = region_known_proc(session.base, ix);
	uint64_t signals;
	void *token;

	if (!session_lock(&signals))
		return;
	if (session_take_token(ix, &token)) {
		if (load_acquire(&p->state) == word &&                         /* REG_P2/A */
		    (!load_acquire(&p->attach_ref) || empty_reserved(tb, ix))) /* SHM_A1/A */
			procs_unreserve(session.base, ix, word);
		session_drop_token(token);
	}
	session_unlock(&signals);
}

/*
 * Unknown (hidden in /proc, or not to be looked at for now) is not gone. A reserved slot does not
 * tell the pid namespace of its reserver: who is of another one and judged wrongly finds his slot
 * taken when he publishes, and reserves anew. Where this process does not know its own namespace,
 * pids say nothing.
 */
static bool is_reserver_gone(uint32_t word)
{
	enum ident_state state;

	if (!session_pid_view())
		return false;
	state = spare_ident_process((pid_t)PROC_RESERVER(word), 0);
	return state == IDENT_GONE || state == IDENT_EXITING;
}

/* Slots reserved by who is gone without having used them. */
static void free_reserved(struct thread_block *tb)
{
	uint32_t hi = region_proc_count(session.base);
	long fd = -1;

	for (uint32_t ix = 0; ix < hi; ix++) {
		struct proc_shm *p = region_known_proc(session.base, ix);
		uint32_t word = load_acquire(&p->state); /* REG_P2/A */

		if (PROC_STATE(word) == PROC_RESERVED_BARE && is_reserver_gone(word))
			procs_unreserve(session.base, ix, word);
		if (PROC_STATE(word) != PROC_RESERVED)
			continue;
		/* Of most the child lives: one descriptor tells that of all, if there is one. */
		if (fd < 0)
			fd = session_open_region();
		if (fd < 0 || session_token_is_free_by(fd, ix))
			free_tokened(tb, ix, word);
	}
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

bool session_sweep(enum sweep kind)
{
	struct thread_block *tb;
	int64_t end = 0;
	bool busy;
	int error;

	if (!session_is_attached())
		return true;
	tb = session_thread(&error);
	if (!tb)
		return true;
	enter(tb);
	do
		repair_sweep(&tb->caller, time(NULL), kind, &busy);
	while (busy && wait_patiently(tb, &end));
	rlock_settle(&tb->caller);
	section_leave(tb);
	if (kind != SWEEP_MARKED) {
		free_reserved(tb);
		attach_sweep(tb);
	}
	return !busy;
}

void session_leave_undo(void)
{
	struct thread_block *tb;
	int error;

	if (!session_registered() || ident_threads(session_pid()) != 1)
		return;
	tb = session_thread(&error);
	if (!tb)
		return;
	enter(tb);
	while (sem_undo_exit(&tb->caller, tb->caller.proc_ix, time(NULL), false) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
	rlock_settle(&tb->caller);
	section_leave(tb);
}
