/* SPDX-License-Identifier: MIT */
/*
 * What the library keeps of one thread, in private memory that a forked child finds wiped: there
 * `ready` reads 0, and "forked since" and "never registered" are one slow path, at no cost.
 *
 * Sections: between section_enter() and section_leave() the thread's own signal handlers must not
 * run, for they may call any operation of the library. Entering costs an increment; the preload
 * wraps handlers, and one that finds depth > 0 is put off to the end of the section.
 */
#ifndef USYSV_CLIENT_THREAD_H
#define USYSV_CLIENT_THREAD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "core/caller.h"

#define THREAD_SIGNALS 8

/* A call that sleeps, in the frame of the call. Settled by the call itself or, when a handler is
 * about to run, by thread_leave_sleep(): then the handler may use the thread's waiter again, or
 * never return. */
struct thread_block;
struct sleep {
	bool settled;
	int result;       /* 0 or -errno once settled */
	bool cancellable; /* pthread_cancel() ends it */
	void *cover;      /* what the preload has registered for that; null: nothing */
	bool stale;       /* a handler ran although the waiter could not be taken back in time: the
			   * call does it afterwards, unless the handler's own calls have done it:
			   * then thread_block.stale is clear, or the waiter has another request */
	uint32_t request; /* its number, when it became stale */
	/* The last part of the call after a sleep that succeeded, null: none. In a section, also
	 * before a handler runs. Returns the call's result or -errno. */
	int (*finish)(struct thread_block *tb, struct sleep *s);
};

struct thread_block {
	uint32_t ready;  /* 1: registered, everything below is valid */
	uint32_t depth;  /* sections entered */
	uint32_t masked; /* signals wait in cap[]: flush at the end of the section */
	uint32_t probe;  /* SIGSEGV or SIGBUS is blocked here: probe user memory before copying */
	struct sleep *sleep; /* the call that sleeps; null: none */
	bool stale; /* a handler ran although the waiter could not be taken back in time: the call
		     * itself does it, or the next one that is entered */
	struct caller caller;
	/* Found last: undo records by set, see calls.c */
	struct {
		int32_t id;
		uint32_t ref;
	} undo[8];
	uint32_t spin_skip, spin_backoff; /* adaptive spinning */
	uint64_t doubted_off;             /* a word that looks damaged, see wait.c */
	uint32_t doubts;                  /* so many polls in a row */
	/* for preload/signals.c alone */
	sigset_t saved_mask;
	uint32_t cap_count;
	siginfo_t cap[THREAD_SIGNALS];
};

/* Null before the thread's first call. Initial-exec: one load. */
extern __thread struct thread_block *thread_self
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * How many vfork() calls deep this thread is as a child that still runs in its parent's memory; the
 * preload's vfork() counts. There, thread_self is null until the child itself makes a call.
 */
extern __thread uint32_t vfork_depth
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Delivers what was put off; set by the preload, null in programs without it. */
extern void (*thread_flush_signals)(struct thread_block *tb);

/*
 * Cancellation of a sleep; set by the preload, null in programs without it. The first runs
 * wait(tb, s) such that a cancelled sleep is taken back before the thread's cleanup handlers run;
 * the second lets cancellation through, or no longer, and may not return.
 */
extern int (*thread_cancellable)(struct thread_block *tb, struct sleep *s,
				 int (*wait)(struct thread_block *tb, struct sleep *s));
extern void (*thread_cancel_gate)(bool open);

/* This thread has asked for asynchronous cancellation: every sleep can be cancelled. */
extern __thread bool thread_is_async_cancel
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline void section_enter(struct thread_block *tb)
{
	tb->depth++;
	crash_barrier();
}

static inline void section_leave(struct thread_block *tb)
{
	crash_barrier();
	if (--tb->depth == 0 && tb->masked)
		thread_flush_signals(tb);
}

/*
 * Called by the wrapper of a handler that interrupted a sleep, outside any section, before the
 * handler runs: ends the sleep (success wins over the signal), waiting a bounded time for the
 * object's lock. Async-signal-safe.
 */
void thread_leave_sleep(struct thread_block *tb);

#endif
