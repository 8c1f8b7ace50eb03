/* SPDX-License-Identifier: MIT */
/*
 * A stage: the process under one back end that owns the workers, obeys the coordinator, and
 * describes after each step what can be seen. Also the protocol between the two.
 */
#ifndef DIFFERENTIAL_STAGE_H
#define DIFFERENTIAL_STAGE_H

#include "shared.h"
#include "text.h"
#include "watch.h"
#include "world.h"

enum command_kind {
	COMMAND_STEP,
	COMMAND_FINISH, /* end all workers, describe what is left */
};

struct command {
	uint32_t kind;
	struct step step;
};

struct reply {
	uint32_t event_bytes; /* what happened; then follows the state */
	uint32_t state_bytes;
	uint8_t trouble; /* the stage cannot go on */
	uint8_t slept;   /* the call of this step sleeps */
	uint8_t woken;   /* sleepers that returned in this step */
	uint8_t worker_state[WORKERS_MAX];
	uint8_t person[WORKERS_MAX];
	uint8_t stopped[WORKERS_MAX];
	struct object_hint hints[FAMILIES_MAX][SLOTS_MAX];
};

enum {
	EVENT_BYTES_MAX = 8 * 1024,
	STATE_BYTES_MAX = 64 * 1024,
	PARENT_TASKS_MAX = 8,
};

/* How a stage is started: its command line, in text. */
struct stage_options {
	unsigned process_count;
	unsigned threads[WORKERS_MAX]; /* of each process */
	int deadline_ms;
	int cpu; /* -1: any */
	enum fault fault;
};

struct stage_process {
	pid_t pid;
	unsigned incarnation;
};

struct stage {
	struct shared *shared;
	struct stage_process process[WORKERS_MAX];
	struct watch watch[WORKERS_MAX];
	struct watch parent[PARENT_TASKS_MAX];
	unsigned parent_count;
	unsigned caller_ix; /* who was last asked for something */
	int report_fd;
	int command_fd;
	int reply_fd;
	int deadline_ms;
	bool reported[WORKERS_MAX]; /* returned in this step */
	bool trouble;
	struct object_hint hints[FAMILIES_MAX][SLOTS_MAX]; /* of the last look */
	struct text events;
	struct text state;
};

int stage_main(int argument_count, char **arguments);

/* For the families' act functions: */

/* Is this worker in a call? */
bool stage_is_busy(const struct stage *stage, unsigned worker_ix);
/* Waits until nobody runs any more. */
void stage_settle(struct stage *stage);
/* Waits for the end of a process that is to end now, tells how, and starts its successor. */
void stage_replace(struct stage *stage, unsigned process_ix, const char *what);
/* Stops a process by SIGSTOP and waits until all its threads have stopped. */
void stage_stop(struct stage *stage, unsigned process_ix);
pid_t stage_pid(const struct stage *stage, unsigned worker_ix);

#endif
