/* SPDX-License-Identifier: MIT */
/*
 * Death at every instruction.
 *
 * A scene sets a region up and lets one actor, the victim, do one thing. That runs in a child which
 * shares the region and is stepped by ptrace. Whenever an instruction has changed the region, the
 * region is copied, the victim is dead in the copy, and others recover. What they then see must be
 * what they would see had the victim died before the call, or right after it; once it is the
 * latter, never the former again. Everybody else must still be able to work; whoever was told must
 * have been woken; nothing may be left when all is taken down.
 *
 * The second depth does the same to the recovery: it is stepped in its turn, its actor dies as
 * well, and a third one recovers both. The outcome must be that of the first death.
 *
 * State before and after is text, so that a difference can be printed.
 */
#ifndef TESTS_STEPPER_H
#define TESTS_STEPPER_H

#include "harness/engine.h"

#define STEP_SETS    3
#define STEP_WAITERS 4
#define STEP_TEXT    6144

/* The roles, at the same places in the region and in every copy. */
struct cast {
	struct engine *e;
	struct actor *victim;
	struct actor *thread;    /* another thread of its process; null: none */
	struct actor *recoverer; /* who dies second */
	struct actor *last;      /* who survives all */
	struct actor *waiter[STEP_WAITERS];
	int32_t id[STEP_SETS]; /* -1: none */
	int32_t key;           /* looked for; 0 none */
	uint64_t lock[4];      /* locks on which somebody sleeps throughout; 0 none */
	uint32_t wakes;        /* given before the call */
	bool enters; /* the call registers a process: dead is whoever was not there before */
	bool sweeps; /* there are other dead than the victim */
	uint32_t procs, threads; /* in use before the call */
};

struct scene {
	const char *name;
	void (*prepare)(struct cast *c);
	void (*act)(struct cast *c); /* by the victim alone */
	bool slow;                   /* its region is large: only in the full run */
};

/* Null-terminated by name. */
extern const struct scene scenes[];

struct step_options {
	const char *only;    /* scenes whose name begins so; null: all */
	int64_t end_ns;      /* 0: no end; else scenes not begun by then are left out */
	uint32_t every;      /* deaths tried: each so-many-th change of the region */
	uint32_t deep_every; /* of these, recovery stepped for each so-many-th; 0: none */
	bool slow;
	bool verbose;
};

struct step_count {
	uint64_t scenes, instructions, deaths, second_deaths, failures, left_out;
};

/* 0, or 77 where processes cannot be stepped. */
int step_all(const struct step_options *o, struct step_count *ret);

#endif
