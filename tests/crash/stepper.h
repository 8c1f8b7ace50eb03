/* SPDX-License-Identifier: MIT */
/*
 * Death at every instruction.
 *
 * A scene sets a region up and lets one actor, the victim, do one thing. That runs in a child which
 * shares the region and is stepped by ptrace. Whenever an instruction has changed the region, the
 * region is copied, the victim is dead in the copy, and others recover. What they then see must be
 * what they would see had the victim died before the call, or right after it; once it is the
 * latter, never the former again. Everybody else must still be able to work; whoever was told must
 * have been woken; nothing may be left when all is taken down. An instruction that changed nothing
 * leaves what the one before it left, so it needs no copy.
 *
 * The second depth does the same to the recovery: it is stepped in its turn, its actor dies as
 * well, and a third one recovers both. The outcome must be that of the first death. Most of these
 * are stepped store by store (trace.h), which finds the same states in a twentieth of the time;
 * some by ptrace.
 *
 * A pair has two victims at work on one object: the first is stopped, or dead, at each change that
 * it makes, the second begins then, is stopped at each of its own, and both are dead. The outcome
 * must be one that the two calls have when each of them was made or not, in either order.
 *
 * State before and after is text (view.c), so that a difference can be printed.
 */
#ifndef TESTS_STEPPER_H
#define TESTS_STEPPER_H

#include "harness/engine.h"

#define STEP_OBJECTS 3
#define STEP_WAITERS 4
#define STEP_TEXT    16384

/* The roles, at the same places in the region and in every copy. */
struct cast {
	struct engine *e;
	struct actor *victim;
	struct actor *second;    /* the other victim of a pair; null: none */
	struct actor *thread;    /* another thread of the victim's process; null: none */
	struct actor *dead;      /* had died before; null: none */
	struct actor *recoverer; /* who dies second */
	struct actor *last;      /* who survives all */
	struct actor *waiter[STEP_WAITERS];
	int32_t id[STEP_OBJECTS]; /* -1: none */
	int32_t key;              /* looked for among the sets; 0 none */
	uint64_t lock[4];         /* locks on which somebody sleeps throughout; 0 none */
	uint32_t wakes;           /* given before the call */
	bool enters;        /* the call registers a process: dead is whoever was not there before */
	bool sweeps;        /* there are other dead than the victim */
	bool forks;         /* a process slot may be left reserved for a child */
	struct actor *pool; /* blocks are taken from its pool in the middle of recovery; null: no */
	uint32_t procs, threads; /* in use before the call: those below; procs may be set */
};

/* Its region is large: not in the short run; and recovery is stepped at samples only. */
#define SCENE_LARGE 1u

struct scene {
	const char *family, *operation, *situation;
	void (*prepare)(struct cast *c);
	void (*act)(struct cast *c);    /* by the victim alone */
	void (*second)(struct cast *c); /* by c->second, in a pair; makes each call once */
	uint32_t flags;
};

/* All tables end with one whose family is null. */
extern const struct scene sem_scenes[], msg_scenes[], shm_scenes[], life_scenes[], pair_scenes[];

struct step_options {
	const char *only;      /* scenes whose name has this in it; null: all */
	int64_t end_ns;        /* 0: no end; else scenes not begun by then are left out */
	uint32_t scene_every;  /* each so-many-th scene */
	uint32_t every;        /* deaths tried: each so-many-th change of the region */
	uint32_t deep_every;   /* of these, recovery stepped for each so-many-th; 0: none */
	uint32_t traced_every; /* of these, by ptrace each so-many-th; 0: none */
	bool singles, pairs;
	bool large;
	bool verbose;
};

struct step_count {
	uint64_t operations, situations, instructions, stores, deaths, second_deaths, pair_deaths;
	uint64_t failures, left_out;
};

/* 0, or 77 where processes cannot be stepped. */
int step_all(const struct step_options *o, struct step_count *ret);
/* One line a scene. */
void step_list(void);

/* ---- view.c: what others see, and what they can do ---------------------------------------- */

struct text {
	size_t used;
	char s[STEP_TEXT];
};

void step_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t step_failures(void);

void view_describe(const struct cast *c, struct text *t);
/* Whoever was told has been woken, and whoever sleeps on a lock that is free. */
void view_check_wakes(struct cast *c, uint64_t lock);
/* The last one can still do everything; then all is taken down, and nothing is left. */
void view_work_and_take_down(struct cast *c);
/* Everybody but the last one is dead, and all objects go. */
void view_take_down(struct cast *c);
/* Blocks of the sizes that recovery frees: taken and filled; looked at, and given back. */
void view_take_blocks(struct cast *c, struct actor *a);
void view_give_blocks(struct cast *c, struct actor *a);

#endif
