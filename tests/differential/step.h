/* SPDX-License-Identifier: MIT */
/*
 * The vocabulary of the differential test: what a step is, and what a family of calls must
 * supply.
 *
 * A step is one call by one worker (or one act upon a worker, such as a kill) with symbolic
 * arguments: slots instead of ids, workers instead of pids. It is plain data, so it travels
 * through pipes as it is, can be written as a line of text, read back, and simplified by
 * somebody who does not know what it means: each operation describes its parameters in a table.
 *
 * The engine (coordinator, stages, workers, text, shrinking) knows only these tables. A new
 * family of calls is one more struct family in families.c.
 */
#ifndef DIFFERENTIAL_STEP_H
#define DIFFERENTIAL_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

enum {
	WORKERS_MAX = 8,
	SLOTS_MAX = 6,    /* object slots of one family */
	ARGS_MAX = 8,     /* arguments of one step */
	ITEMS_MAX = 12,   /* entries of the list argument of one step */
	FAMILIES_MAX = 4, /* see families.c */
	PARAMS_MAX = 9,
	HINT_VALUES_MAX = 6,
};

/* An entry of a list argument: an operation of a semop, a value of a SETALL. */
struct item {
	int32_t num;
	int32_t value;
	int32_t flags;
};

/* Who performs the call: the worker itself, a child that it forks for this one call, or a handler.
 */
enum by {
	BY_SELF,
	BY_CHILD,        /* the child ends by _exit */
	BY_KILLED_CHILD, /* the child kills itself with SIGKILL after the call */
	BY_HANDLER,      /* a signal handler that interrupts the sleeping worker */
};

struct step {
	uint8_t family_ix;
	uint8_t op_ix;
	uint8_t worker_ix;
	uint8_t by;
	uint8_t quiet; /* nobody looks at the objects after it */
	uint8_t item_count;
	int64_t arg[ARGS_MAX];
	struct item item[ITEMS_MAX];
};

/* Values of a PARAM_ID argument that are not the number of a slot. */
enum {
	ID_NEGATIVE = -1,
	ID_NEVER = -2, /* an id that no object has had */
};

/* Values of a PARAM_POINTER argument. */
enum pointer_kind {
	POINTER_GOOD,
	POINTER_NULL,
	POINTER_BAD,  /* a page that cannot be accessed */
	POINTER_EDGE, /* the second half lies in such a page */
};

enum param_kind {
	PARAM_INT,     /* a number */
	PARAM_OCTAL,   /* a number written in octal */
	PARAM_ID,      /* the slot of an object, or one of ID_... */
	PARAM_SLOT,    /* the slot that receives a new id */
	PARAM_CHOICE,  /* one of the names */
	PARAM_FLAGS,   /* names joined by |, the rest as an octal number */
	PARAM_POINTER, /* enum pointer_kind */
	PARAM_LIST,    /* step.item; the names are those of item flags */
};

struct name_value {
	const char *name;
	long value;
};

struct param {
	const char *name; /* null ends the list */
	enum param_kind kind;
	uint8_t arg_ix;
	int64_t plain; /* the simplest value: not written, and tried when shrinking */
	const struct name_value *names;
};

struct hands;   /* what a worker has to make a call with: worker.h */
struct outcome; /* what a call gave: shared.h */
struct shared;
struct stage;
struct world; /* what the generator knows: world.h */
struct object_hint;

enum op_traits {
	OP_MAY_SLEEP = 1, /* the call may wait for others */
	OP_BY_STAGE = 2,  /* done to the worker, not by it */
	OP_ENDS_PROCESS = 4,
	OP_RENEWS_THREADS = 8,
	OP_ALONE = 16,      /* never in a child that was forked for it */
	OP_IN_HANDLER = 32, /* can also interrupt a sleeping worker, and be made in its handler */
	OP_LOUD = 64,       /* everything is looked at after it, always */
};

struct op {
	const char *name;
	unsigned traits;
	/* Makes the call; runs in a worker. */
	void (*call)(struct hands *hands, const struct step *step, struct outcome *outcome);
	/* The same for OP_BY_STAGE; what happened goes to text. */
	void (*act)(struct stage *stage, const struct step *step, struct text *text);
	struct param params[PARAMS_MAX];
};

struct family {
	const char *name;
	/* The family's file in /proc: 'n' a column to compare as it is, 'p' a pid, 't' a time. */
	const char *view_path;
	const char *view_columns;
	const struct op *ops;
	unsigned op_count;
	/* A step that suits the world; false if there is none. Runs in the coordinator. */
	bool (*generate)(struct world *world, struct step *step);
	/* At the start of a sequence: the weights that this sequence will have. */
	void (*choose_style)(struct world *world);
	/*
	 * Everything that can be seen of the family's objects, with ids and pids made comparable;
	 * hints tells the generator about the objects in the slots. Runs in the stage.
	 */
	void (*dump)(const struct shared *shared, struct text *text, struct object_hint *hints);
	/* May be null. A worker forks a child for a call; a process or its image has ended. */
	void (*process_forks)(struct shared *shared, unsigned process_ix);
	void (*process_ends)(struct shared *shared, unsigned process_ix);
};

extern const struct family *const families[];
extern const unsigned families_count;

static inline const struct op *step_op(const struct step *step)
{
	return &families[step->family_ix]->ops[step->op_ix];
}

#endif
