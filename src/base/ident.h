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
 * A number for how the calling process means pids and start times: those who have the same number
 * mean the same. 0 when that cannot be known. -ENOENT: it has no /proc.
 */
int ident_view(uint32_t *ret);

/* Does /proc call processes by the pids that the caller knows them by? Not after unshare(1) without
 * --mount-proc, say. */
bool ident_proc_is_ours(void);

/*
 * Would a child of the calling thread be in another pid namespace, after unshare(CLONE_NEWPID) or
 * setns(), which count for one thread? The first such child is its process 1, and with it the
 * namespace ends: that is for the program to make. Unknown, without /proc: no.
 */
bool ident_forks_away(void);

/*
 * When pid was started, in clock ticks since boot, and above that a few bits of the number that
 * Linux 6.9 gives each process: a pid can be used twice in a tick. 0 when unknown. The caller's own
 * is known wherever /proc shows it.
 */
uint64_t ident_start(pid_t pid);

/* Is it one and the same? The number may be unknown. */
bool ident_same_start(uint64_t a, uint64_t b);

/*
 * The state of the process that had this pid and start time (start 0: any). A pid used again by
 * another process reads as IDENT_GONE.
 */
enum ident_state ident_process(pid_t pid, uint64_t start);

/* The same two, with -EMFILE or -ENFILE when they cannot tell for want of a descriptor; else 0. */
int ident_try_start(pid_t pid, uint64_t *ret);
int ident_try_process(pid_t pid, uint64_t start, enum ident_state *ret);

/*
 * The process that knows itself by this view, pid and start, of another pid namespace that /proc
 * shows: its state, IDENT_GONE when none is shown; and by which pid it is. -errno when it cannot be
 * looked at. Slow.
 */
int ident_try_elsewhere(uint32_t view, pid_t pid, uint64_t start, enum ident_state *ret,
			pid_t *ret_shown);

/* A thread of the process that is not on its way out, for the first may have left while others run;
 * 0: none, or unknown. -EMFILE or -ENFILE as above. */
int ident_try_running(pid_t pid, pid_t *ret_tid);

/* Threads of the process; 0 when unknown. */
unsigned ident_threads(pid_t pid);

/* Is tid a thread of tgid now? Unknown (no permission) counts as yes. */
bool ident_thread_exists(pid_t tgid, pid_t tid);

#endif
