/* SPDX-License-Identifier: MIT */
/*
 * What the generator of steps knows: the last state that back end a reported, what each worker
 * was last asked to do, and the style of the sequence. Also the random numbers.
 *
 * Styles: a sequence in which everything happens with the same moderate frequency never gets
 * deep into anything. So each sequence draws its own weights, and some kinds of step are left
 * out of it altogether.
 */
#ifndef DIFFERENTIAL_WORLD_H
#define DIFFERENTIAL_WORLD_H

#include "step.h"

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *random);
/* 0 .. bound-1 */
unsigned random_below(struct random *random, unsigned bound);
/* True with a probability in percent. */
bool random_percent(struct random *random, unsigned percent);
/* An index of weights, each as likely as its weight. */
unsigned random_weighted(struct random *random, const unsigned *weights, unsigned count);

/* What the generator is told about the object in a slot. Meanings of size and value: the family's.
 */
struct object_hint {
	int32_t id; /* -1: the slot was never filled */
	uint8_t live;
	uint8_t shared_live_count; /* in slot 0 only: objects of the family that exist */
	int16_t size;
	int32_t value[HINT_VALUES_MAX];
};

enum worker_state {
	WORKER_IDLE,
	WORKER_ASLEEP,
	WORKER_GONE,
};

enum { STYLE_MAX = 16 };

struct world {
	struct random random;
	unsigned process_count;
	unsigned worker_count;
	uint8_t process_of[WORKERS_MAX];
	uint8_t state[WORKERS_MAX];
	struct step last[WORKERS_MAX]; /* the last call asked of each worker */
	uint8_t person[WORKERS_MAX];   /* whom it acts as: family_process.c */
	uint8_t stopped[WORKERS_MAX];
	struct object_hint hints[FAMILIES_MAX][SLOTS_MAX];
	unsigned family_weight[FAMILIES_MAX];
	unsigned style[FAMILIES_MAX][STYLE_MAX];
	bool with_users; /* workers may act as other users */
	bool with_stops; /* workers may be stopped and continued */
	bool with_ticks;
	bool with_execution;    /* segments can be made executable */
	unsigned quiet_percent; /* of steps, after which nobody looks */
	const char *without;    /* names of operations to leave out, joined by commas */
	unsigned idle_count;
};

/* A random worker in the given state, or -1. */
int world_worker(struct world *world, enum worker_state state);
/* Now and then gives a call to a sleeping worker instead, to be made in a signal handler. */
void world_let_handler(struct world *world, struct step *step);
/* Draws one of the values for a weight of the style. */
unsigned world_draw(struct world *world, const unsigned *values, unsigned count);
/* A family's generate, families chosen by weight. */
void world_generate(struct world *world, struct step *step);
void world_choose_style(struct world *world);

#endif
