// SPDX-License-Identifier: MIT
/*
 * The calls of the message family as programs make them: arguments in, the engine until it has an
 * answer, waiting in between, results out. See calls.h for the contract.
 */
#include <errno.h>
#include <string.h>
#include <sys/msg.h>
#include <time.h>

#include "client/call.h"
#include "client/calls.h"
#include "client/retire.h"
#include "client/session.h"
#include "client/wait.h"
#include "core/ids.h"
#include "core/region.h"
#include "ipc/msg.h"

#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif

/* Constants of Linux that IPC_INFO shows whatever the limits are. */
#define INFO_MSGPOOL 512000
#define INFO_MSGMAP  16384
#define INFO_MSGTQL  16384
#define INFO_MSGSSZ  16
#define INFO_MSGSEG  65535

/* ---- msgget ------------------------------------------------------------------------------ */

long call_msgget(key_t key, int flags)
{
	int32_t id = -1;
	int error = 0, rc;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (retire_is_final(tb->caller.base))
		return -EIDRM;
	do {
		call_enter(tb);
		rc = msg_get(&tb->caller, key, (uint32_t)flags, time(NULL), &id);
	} while (call_again(tb, rc));
	return rc < 0 ? rc : id;
}

/* ---- msgsnd and msgrcv ------------------------------------------------------------------- */

/* Blocks that the call could not give back at once: large ones, mostly. */
static void tidy(struct thread_block *tb)
{
	int rc;

	do {
		call_enter(tb);
		rc = msg_tidy(&tb->caller);
	} while (call_again(tb, rc));
}

static int wait_for_end(struct thread_block *tb, struct sleep *s)
{
	return wait_asleep(tb, s, &region_self(&tb->caller)->st, NULL);
}

static bool may_be_cancelled(bool is_cancellation_point)
{
	return (is_cancellation_point || thread_is_async_cancel) && thread_cancellable;
}

/* The request is queued: its result, or -EAGAIN when the call must start over. */
static int sleep_until_ended(struct thread_block *tb, struct sleep *s)
{
	if (s->cancellable)
		(void)thread_cancellable(tb, s, wait_for_end);
	else
		(void)wait_for_end(tb, s);
	return call_take_back(tb, s, -EINTR);
}

/* A queue that has gone while the call slept: -EIDRM, though its id is merely unknown by now. */
static long ended(struct thread_block *tb, long result, bool slept)
{
	if (__builtin_expect(!msg_is_tidy(region_self(&tb->caller)), 0))
		tidy(tb);
	return slept && result == -EINVAL ? -EIDRM : result;
}

long call_msgsnd(int id, const void *message, size_t bytes, int flags, bool cancellable)
{
	struct msg_send_request rq = {
		.id = id, .user = message, .bytes = bytes, .flags = (uint32_t)flags};
	int error = 0, rc;
	struct thread_block *tb = session_thread(&error);
	bool slept = false;

	if (__builtin_expect(!tb, 0))
		return error;
	for (;;) {
		call_enter(tb);
		rq.now = time(NULL);
		rc = msg_send(&tb->caller, &rq);
		if (rc == OUTCOME_SLEEP) {
			struct sleep sleep = {.cancellable = may_be_cancelled(cancellable)};

			call_sleeps(tb, &sleep);
			slept = true;
			rc = sleep_until_ended(tb, &sleep);
			if (rc != -EAGAIN)
				break;
		} else if (!call_again(tb, rc)) {
			break;
		}
	}
	return ended(tb, rc, slept);
}

struct receive {
	struct sleep sleep; /* first, so that finish() finds the rest */
	struct msg_receive_request *rq;
};

static int finish(struct thread_block *tb, struct sleep *s)
{
	struct msg_receive_request *rq = ((struct receive *)(void *)s)->rq;
	int rc = msg_receive_granted(&tb->caller, rq);

	return rc < 0 ? rc : (int)rq->ret_bytes;
}

long call_msgrcv(int id, void *message, size_t bytes, long type, int flags, bool cancellable)
{
	struct msg_receive_request rq = {
		.id = id, .user = message, .bytes = bytes, .type = type, .flags = (uint32_t)flags};
	int error = 0, rc;
	struct thread_block *tb = session_thread(&error);
	bool slept = false;

	if (__builtin_expect(!tb, 0))
		return error;
	for (;;) {
		call_enter(tb);
		rq.now = time(NULL);
		rc = msg_receive(&tb->caller, &rq);
		if (rc == OUTCOME_SLEEP) {
			struct receive r = {
				{.cancellable = may_be_cancelled(cancellable), .finish = finish},
				&rq};

			call_sleeps(tb, &r.sleep);
			slept = true;
			rc = sleep_until_ended(tb, &r.sleep);
			if (rc != -EAGAIN)
				break;
		} else if (!call_again(tb, rc)) {
			rc = rc < 0 ? rc : (int)rq.ret_bytes;
			break;
		}
	}
	return ended(tb, rc, slept);
}

/* ---- msgctl ------------------------------------------------------------------------------ */

static int info(struct thread_block *tb, int cmd, void *user)
{
	const unsigned char *base = tb->caller.base;
	const struct header_shm *h = region_header(base);
	int highest = ids_highest(base, FAMILY_MSG), rc;
	uint64_t count, bytes;
	struct msginfo s;

	memset(&s, 0, sizeof(s));
	s.msgpool = INFO_MSGPOOL;
	s.msgmap = INFO_MSGMAP;
	s.msgmax = (int)h->limits.msgmax;
	s.msgmnb = (int)h->limits.msgmnb;
	s.msgmni = (int)h->limits.msgmni;
	s.msgssz = INFO_MSGSSZ;
	s.msgtql = INFO_MSGTQL;
	s.msgseg = INFO_MSGSEG;
	if (cmd == MSG_INFO) {
		msg_totals(base, &count, &bytes);
		s.msgpool = (int)h->table[FAMILY_MSG].in_use;
		s.msgmap = (int)count;
		s.msgtql = (int)bytes;
	}
	rc = call_copy_out(tb, user, &s, sizeof(s));
	return rc < 0 ? rc : highest < 0 ? 0 : highest;
}

static int stat_queue(struct thread_block *tb, int id, int cmd, void *user)
{
	struct msqid_ds ds;
	struct msg_status st;
	int rc;

	do {
		call_enter(tb);
		rc = msg_stat(&tb->caller, id, cmd != IPC_STAT, cmd == MSG_STAT_ANY, &st);
	} while (call_again(tb, rc));
	if (rc < 0)
		return rc;
	memset(&ds, 0, sizeof(ds));
	call_fill_perm(&ds.msg_perm, &st.object, st.id);
	ds.msg_stime = st.stime;
	ds.msg_rtime = st.rtime;
	ds.msg_ctime = st.object.ctime;
	ds.__msg_cbytes = st.bytes;
	ds.msg_qnum = st.count;
	ds.msg_qbytes = st.qbytes;
	ds.msg_lspid = (pid_t)st.lspid;
	ds.msg_lrpid = (pid_t)st.lrpid;
	rc = call_copy_out(tb, user, &ds, sizeof(ds));
	return rc < 0 ? rc : cmd == IPC_STAT ? 0 : st.id;
}

static int set_queue(struct thread_block *tb, int id, const void *user)
{
	struct msqid_ds ds;
	int rc = call_copy_in(tb, &ds, user, sizeof(ds));

	if (rc < 0)
		return rc;
	do {
		call_enter(tb);
		rc = msg_set(&tb->caller, id, ds.msg_perm.uid, ds.msg_perm.gid, ds.msg_perm.mode,
			     ds.msg_qbytes, time(NULL));
	} while (call_again(tb, rc));
	return rc;
}

static int remove_queue(struct thread_block *tb, int id)
{
	int rc;

	do {
		call_enter(tb);
		rc = msg_remove(&tb->caller, id);
		if (rc == OUTCOME_DONE)
			call_settle(tb); /* gives the memory back */
	} while (call_again(tb, rc));
	return rc;
}

long call_msgctl(int id, int cmd, void *buffer)
{
	int error = 0;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (id < 0)
		return -EINVAL;
	switch (cmd) {
	case IPC_INFO:
	case MSG_INFO:
		return info(tb, cmd, buffer);
	case IPC_STAT:
	case MSG_STAT:
	case MSG_STAT_ANY:
		return stat_queue(tb, id, cmd, buffer);
	case IPC_SET:
		return set_queue(tb, id, buffer);
	case IPC_RMID:
		return remove_queue(tb, id);
	default:
		return -EINVAL;
	}
}
