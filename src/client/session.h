/* SPDX-License-Identifier: MIT */
/*
 * One process's tie to its namespace: the mapping, the process slot, the threads' slots, and what
 * fork, exec and exit do to them. Attached on first use, at no cost to programs that never use it.
 *
 * All functions are safe in any thread and leave errno alone; those marked [signal] are also
 * async-signal-safe.
 */
#ifndef USYSV_CLIENT_SESSION_H
#define USYSV_CLIENT_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/namespace.h"
#include "client/thread.h"
#include "ipc/repair.h"

/*
 * The calling thread's block, registering thread and process as needed; null with *ret_error =
 * -errno when that is impossible (the reason has been reported once). [signal]
 */
struct thread_block *session_thread_slow(int *ret_error);

static inline struct thread_block *session_thread(int *ret_error)
{
	struct thread_block *tb = thread_self;

	if (__builtin_expect(tb && tb->ready, 1))
		return tb;
	return session_thread_slow(ret_error);
}

/* Is this process attached (maps the region)? [signal] */
bool session_attached(void);

/*
 * Attaches if the namespace exists already, before something (setuid, chroot) could put it out
 * of reach. Creates nothing, reports nothing.
 */
void session_attach_early(void);

/* Credentials may have changed (the set*id family, setgroups, capset): read them anew at the next
 * call. [signal] */
void session_creds_changed(void);

/* Around fork: pthread_atfork handlers, also for a raw _Fork. The child registers at first use. */
void session_fork_prepare(void);
void session_fork_parent(void);
void session_fork_child(void);

/*
 * The process ends normally. When no other thread of it runs any more, SEM_UNDO is applied and its
 * slots are given back before the kernel lets the parent see the end; else burial does that, as for
 * who is killed. Idempotent; nothing in a vfork child or an unregistered process.
 * Calls that other threads make afterwards register anew. [signal]
 */
void session_exit(void);

/*
 * A child (or any process) is known to have ended: if it was registered, apply its SEM_UNDO and
 * free its slots before the caller learns of the death. Cheap when pid was never registered.
 * [signal]
 */
void session_reap(pid_t pid);

/*
 * unshare(CLONE_SYSVSEM), also by CLONE_NEWIPC: the process's SEM_UNDO is applied and starts empty,
 * if the caller is its only thread; else nothing. [signal]
 */
void session_leave_undo(void);

/* Looks for dead processes of the namespace and buries them. False: what some of them left is busy,
 * and has to wait. [signal] */
bool session_sweep(enum sweep kind);

/* ident_view() of the calling process, since it has registered; 0: unknown. A vfork child may
 * have another than its parent. */
uint32_t session_pid_view(void);

/* The pid in this process slot as this process sees pids in /proc; 0: it does not see that one. */
uint32_t session_visible_pid(uint32_t proc_ix);

/* Buries the process in this slot if it is dead: for who looks at an object and finds it among
 * those whose SEM_UNDO it awaits. Outside a section. */
void session_bury(struct thread_block *tb, uint32_t proc_ix);

/* Looks for the dead, and starts a reaper when nobody has the office: sleepers do it now and then.
 * Outside a section. */
void session_check_reaper(struct thread_block *tb);

/* Set by the preload: called once, when the process attaches (fault handlers are installed then).
 */
extern void (*session_on_attach)(void);

/* Whose the region is; false when not attached. [signal] */
bool session_owner(uid_t *ret);

/* Has this process segments attached, which its next image will not have? [signal] */
bool session_has_attaches(void);

/* "USYSV_REGION=NAME:/absolute/path" for the environment of children; null when not attached. */
const char *session_region_env(void);

/*
 * For programs that are not under the preload (usysv, usysvd, tests): attaches to a region that
 * was opened and mapped already; place is where it lies (for later opens).
 */
int session_adopt(unsigned char *base, const struct namespace_place *place, uint32_t proc_flags);

#endif
