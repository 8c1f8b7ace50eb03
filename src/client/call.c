// SPDX-License-Identifier: MIT
/* What the calls of all families share; see the header. */
#include "client/call.h"

#include "client/lost.h"
#include "client/report.h"
#include "client/wait.h"
#include "core/rlock.h"
#include "ipc/msg.h"
#include "ipc/sem.h"
#include "ipc/shm.h"

int (*thread_cancellable)(struct thread_block *tb, struct sleep *s,
			  int (*wait)(struct thread_block *tb, struct sleep *s));
void (*thread_cancel_gate)(bool open);
__thread bool thread_is_async_cancel;

/* How often a handler that is about to run has the lock waited for, some milliseconds each. */
#define LEAVE_TRIES 10

/* ---- Which family the thread's waiter, or its removed object, is of ---------------------------
 */

static int leave(struct caller *c, bool *ret_left)
{
	return region_self(c)->family == FAMILY_MSG ? msg_leave(c, ret_left)
						    : sem_leave(c, ret_left);
}

/* The sleep ended with a result: the call's last part, if it has one, is done at once, for a
 * handler that is about to run may never return to it. */
static int result(struct thread_block *tb, struct sleep *s)
{
	struct caller *c = &tb->caller;
	int rc = region_self(c)->family == FAMILY_MSG ? msg_wait_result(c) : sem_wait_result(c);

	return rc == 0 && s && s->finish ? s->finish(tb, s) : rc;
}

static int purge(struct caller *c)
{
	switch (region_self(c)->op_family) {
	case FAMILY_MSG:
		return msg_purge(c, c->thread_ix);
	case FAMILY_SEM:
		return sem_purge(c, c->thread_ix);
	default:
		return shm_purge(c, c->thread_ix);
	}
}

/* ---- Around every call ------------------------------------------------------------------- */

void call_settle(struct thread_block *tb)
{
	struct caller *c = &tb->caller;
	bool left;

	while (tb->stale) {
		if (leave(c, &left) == OUTCOME_BUSY) {
			wait_busy_in_section(tb);
			continue;
		}
		if (!left)
			(void)result(tb, NULL);
		tb->stale = false;
	}
	while (region_self(c)->op == OP_PURGE && purge(c) == OUTCOME_BUSY)
		wait_busy_in_section(tb);
}

bool call_set_right(struct thread_block *tb)
{
	struct thread_shm *self = region_self(&tb->caller);

	if (tb->depth != 1 || tb->caller.owed || !(self->held || self->hold))
		return false;
	store_crash(&self->held, 0);
	store_crash(&self->hold, 0);
	report_damage();
	return true;
}

bool call_again_slow(struct thread_block *tb, int rc)
{
	if (rc == -EINTR && call_set_right(tb)) {
		section_leave(tb);
		return true;
	}
	if (rc == OUTCOME_BUSY) {
		(void)wait_busy(tb);
		return true;
	}
	if (tb->caller.owed)
		rlock_settle(&tb->caller);
	section_leave(tb);
	if (rc == -ENOTRECOVERABLE)
		report_damage();
	return false;
}

/* ---- Sleeping ---------------------------------------------------------------------------- */

void call_sleeps(struct thread_block *tb, struct sleep *s)
{
	tb->sleep = s;
	if (tb->caller.owed)
		rlock_settle(&tb->caller);
	section_leave(tb);
}

/* Has nobody else settled it, and used the waiter again? */
static bool is_still_stale(const struct thread_block *tb, const struct sleep *s)
{
	return tb->stale && WAIT_REQUEST(load_acquire(&region_self(&tb->caller)->st)) ==
				    s->request; /* SEM_P2/A */
}

/* The waiter is taken back. Of a lost region it says nothing: its zeros look like a success. */
static void sleep_ended(struct thread_block *tb, struct sleep *s, bool left, int reason)
{
	s->result = left ? reason : result(tb, s);
	if (lost_region())
		s->result = -ENOTRECOVERABLE;
	if (s->result == -ENOTRECOVERABLE)
		report_damage();
	s->settled = true;
}

int call_take_back(struct thread_block *tb, struct sleep *s, int reason)
{
	struct caller *c = &tb->caller;

	for (;;) {
		bool left;
		int rc;

		section_enter(tb);
		if (s->stale && !s->settled && !is_still_stale(tb, s)) {
			s->result = -EINTR;
			s->settled = true;
		}
		if (s->settled) {
			section_leave(tb);
			return s->result;
		}
		rc = leave(c, &left);
		if (rc == OUTCOME_BUSY) {
			(void)wait_busy(tb);
			continue;
		}
		sleep_ended(tb, s, left, reason);
		tb->sleep = NULL;
		tb->stale = false;
		if (c->owed)
			rlock_settle(c);
		section_leave(tb);
		return rc < 0 ? rc : s->result;
	}
}

void thread_leave_sleep(struct thread_block *tb)
{
	struct caller *c = &tb->caller;
	struct sleep *s = tb->sleep;
	bool left = false;
	int rc = OUTCOME_BUSY;

	section_enter(tb);
	for (int tries = 0; tries < LEAVE_TRIES && rc == OUTCOME_BUSY; tries++) {
		rc = leave(c, &left);
		if (rc == OUTCOME_BUSY)
			wait_busy_briefly(tb);
	}
	if (c->owed)
		rlock_settle(c);
	if (rc == OUTCOME_BUSY) {
		/* Its owner is stopped, say: the handler must run all the same. When it returns,
		 * the call takes the waiter back, and what it may have been given by then. */
		tb->stale = s->stale = true;
		s->request = WAIT_REQUEST(load_acquire(&region_self(c)->st)); /* SEM_P2/A */
	} else {
		sleep_ended(tb, s, left, -EINTR);
	}
	tb->sleep = NULL;
	section_leave(tb);
}

/* ---- User memory ------------------------------------------------------------------------- */

int call_copy_in(struct thread_block *tb, void *to, const void *user, size_t n)
{
	int rc;

	section_enter(tb);
	rc = tb->caller.ops->copy_in(&tb->caller, to, user, n);
	section_leave(tb);
	return rc;
}

int call_copy_out(struct thread_block *tb, void *user, const void *from, size_t n)
{
	int rc;

	section_enter(tb);
	rc = tb->caller.ops->copy_out(&tb->caller, user, from, n);
	section_leave(tb);
	return rc;
}

void call_fill_perm(struct ipc_perm *ret, const struct object_shm *o, int32_t id)
{
	ret->__key = o->key;
	ret->uid = o->uid;
	ret->gid = o->gid;
	ret->cuid = o->cuid;
	ret->cgid = o->cgid;
	ret->mode = (unsigned short)o->mode;
	ret->__seq = (unsigned short)(id >> OBJECT_SHIFT);
}
