/* SPDX-License-Identifier: MIT */
/* What the parts of the session share: session.c (attaching, registering), session_end.c,
 * session_fork.c, session_lock.c, session_ops.c, session_token.c. */
#ifndef USYSV_CLIENT_SESSION_PRIV_H
#define USYSV_CLIENT_SESSION_PRIV_H

#include <limits.h>
#include <sys/types.h>

#include "base/atomic.h"
#include "client/namespace.h"
#include "client/session.h"
#include "client/vfork.h"

#define NO_SLOT UINT32_MAX

struct session_state {
	bool attached; /* stored last: all that belongs to it is in place */
	bool failed;   /* the reason has been reported */
	int error;
	bool adopted; /* by session_adopt(): another process looks after the namespace */
	struct namespace_place place;
	unsigned char *base;
	dev_t dev;
	ino_t ino;
	uint32_t flags;
	uid_t owner;   /* of the region's file */
	bool announce; /* session_on_attach() is due, in a process with signal handlers of its own
			*/
	struct process_record process;
	/* a slot whose token this process has, to register in: made by the parent before the fork,
	 * or by itself before it gave up the right to open the file */
	uint32_t own_ix;
	void *own_token;
	/* the same for the child of a fork in progress */
	uint32_t child_ix;
	void *child_token;
	char region_env[PATH_MAX + NAMESPACE_NAME_MAX + 16];
};
extern struct session_state session;

/* For who has not the session's lock: what attaching stored is seen, and the mapping at
 * session.base stays, whatever another thread does. SESSION_P1/A */
static inline bool session_is_attached(void)
{
	return load_acquire(&session.attached); /* SESSION_P1/A */
}

/* session_lock.c, MUTEX_SESSION: all signals but SIGBUS are blocked between the two. False: this
 * thread has the lock already. */
bool session_lock(uint64_t *signals);
void session_unlock(const uint64_t *signals);
void session_restore_signals(const uint64_t *old);

pid_t session_pid(void);

/* The record of the calling process, if it is registered; else null. */
struct process_record *session_registered(void);

/* Registers the calling process, attached and with the session's lock: 0 and its record, or
 * -errno. */
int session_register_process(struct process_record **ret_me);

bool session_slot_is_free(uint32_t thread_ix);

/* What a caller of the engine supplies: session_ops.c. */
extern const struct caller_ops session_ops;

/* ---- Tokens: session_token.c -------------------------------------------------------------- */

/* The region's file, opened anew and known to be the same; or -errno. */
long session_open_region(void);

/* Is the token of this process slot free, so that its image is gone? False where the region's file
 * cannot be opened. */
bool session_token_is_free(uint32_t proc_ix);
/* The same by a descriptor of session_open_region(), for who asks about many. */
bool session_token_is_free_by(long fd, uint32_t proc_ix);

/* Takes the token of this slot; false: somebody has it, or it is out of reach. */
bool session_take_token(uint32_t ix, void **ret_token);

/*
 * Reserves a process slot with its token, for this image alone or (for_child) for a child about to
 * be forked, which inherits the mapping. 0 or -errno: then nothing is reserved.
 */
int session_reserve(pid_t pid, bool for_child, void **ret_token, uint32_t *ret_ix);

void session_keep_from_children(void *token);
void session_drop_token(void *token);

#endif
