/* SPDX-License-Identifier: MIT */
/*
 * The coordinator's side: two back ends, and one sequence played on both.
 */
#ifndef DIFFERENTIAL_SESSION_H
#define DIFFERENTIAL_SESSION_H

#include "script.h"
#include "stage.h"
#include "world.h"

enum {
	/* How many steps one back end may be ahead of the other. */
	LAG_MAX = 32,
	INPUT_BYTES = sizeof(struct reply) + EVENT_BYTES_MAX + STATE_BYTES_MAX,
};

/* A reply that waits to be compared. */
struct answer {
	struct reply reply;
	char events[EVENT_BYTES_MAX + 1];
	char state[STATE_BYTES_MAX + 1];
};

struct backend {
	const char *name; /* kernel, usysv, or a command that runs the words after it */
	enum fault fault;
	int cpu; /* -1: any */
	pid_t pid;
	int command_fd;
	int reply_fd;
	size_t sent;
	size_t answered;
	size_t input_bytes;
	char input[INPUT_BYTES];
	struct answer answers[LAG_MAX]; /* of step ix at ix % LAG_MAX */
};

enum {
	BACKEND_A,
	BACKEND_B,
	BACKEND_COUNT,
};

struct session {
	struct backend backend[BACKEND_COUNT];
	const char *usysv_path;
	int deadline_ms;
	unsigned families; /* bits by index: whose objects are looked at */
	bool trace;        /* print every step and what happened */
	/* Totals. */
	uint64_t steps;
	uint64_t slept;
	uint64_t woken;
};

/* How a sequence ended. */
struct verdict {
	bool differs;
	bool trouble;   /* a stage died, hung, or lost a worker */
	size_t step_ix; /* the number of steps: after the last one */
	char *events[BACKEND_COUNT];
	char *state[BACKEND_COUNT];
	char *state_before; /* what both showed one step earlier */
};

void verdict_free(struct verdict *verdict);

/*
 * Plays the script on fresh stages. With a world, steps that the script lacks are generated
 * and appended, up to step_count.
 */
void session_play(struct session *session, struct script *script, struct world *world,
		  size_t step_count, struct verdict *ret_verdict);

/* Kills what runs; for signal handlers. */
void session_kill(struct session *session);

#endif
