/* SPDX-License-Identifier: MIT */
/*
 * Who a process is, beyond its pid: start time and whether it is on its way out, read from
 * /proc. Everything is async-signal-safe (raw calls, no stdio) and leaves errno alone.
 */
#ifndef USYSV_BASE_IDENT_H
#define USYSV_BASE_IDENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum ident_state {
	IDENT_ALIVE,   /* runs, sleeps or is stopped */
	IDENT_EXITING, /* PF_EXITING is set in every thread, or a zombie: it runs no more */
	IDENT_GONE,    /* no such process */
	IDENT_UNKNOWN, /* /proc cannot tell (not mounted, hidden, another pid namespace) */
};

/*
 * A number for how the calling process sees others: those who have the same number mean the same by
 * pids and start times. 0 when its /proc is that of other pids. -ENOENT: it has none.
 */
int ident_view(uint32_t *ret);

/*
 * Would a child of the calling thread be in another pid namespace, after unshare(CLONE_NEWPID) or
 * setns(), which count for one thread? The first such child is its process 1, and with it the
 * namespace ends: that is for the program to make. Unknown, without /proc: no.
 */
bool ident_forks_away(void);

/* Start time of pid in clock ticks since boot; 0 when unknown. */
uint64_t ident_start(pid_t pid);

/*
 * The state of the process that had this pid and start time (start 0: any). A pid used again by
 * another process reads as IDENT_GONE.
 */
enum ident_state ident_process(pid_t pid, uint64_t start);

/* The same two, with -EMFILE or -ENFILE when they cannot tell for want of a descriptor; else 0. */
int ident_try_start(pid_t pid, uint64_t *ret);
int ident_try_process(pid_t pid, uint64_t start, enum ident_state *ret);

/*
 * The pid by which /proc shows the process that knows itself by this view and pid (of a pid
 * namespace inside the caller's); 0: it shows none. -errno when it cannot be looked at. Slow.
 */
int ident_try_find(uint32_t view, pid_t pid, pid_t *ret);

/* A thread of the process that is not on its way out, for the first may have left while others run;
 * 0: none, or unknown. -EMFILE or -ENFILE as above. */
int ident_try_running(pid_t pid, pid_t *ret_tid);

/* Threads of the process; 0 when unknown. */
unsigned ident_threads(pid_t pid);

/* Is tid a thread of tgid now? Unknown (no permission) counts as yes. */
bool ident_thread_exists(pid_t tgid, pid_t tid);

#endif
