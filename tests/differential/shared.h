/* SPDX-License-Identifier: MIT */
/*
 * The memory that a stage and its workers share, and how raw values become comparable ones.
 *
 * It is a memfd, so that a worker that executes a new image finds it again. Each worker has a
 * desk: the stage lays a step on it and writes a byte into the worker's pipe; the worker leaves
 * the outcome there and writes a byte into the pipe of reports.
 */
#ifndef DIFFERENTIAL_SHARED_H
#define DIFFERENTIAL_SHARED_H

#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#include "step.h"
#include "text.h"

enum {
	OUTCOME_TEXT_BYTES = 640,
	PID_NAMES_MAX = 2048,
	TICKS_MAX = 64,
	ATTACHES_MAX = 6, /* that a process remembers */
	BLURS_MAX = 200,
};

/* Deliberate faults, to see that the test finds them: --fault. */
enum fault {
	FAULT_NONE,
	FAULT_NCNT,    /* GETNCNT one too high while two wait */
	FAULT_ORDER,   /* of two equal sleepers the later one is served */
	FAULT_UNDO,    /* SEM_UNDO of an operation by two forgotten */
	FAULT_ERRNO,   /* EFBIG becomes EINVAL */
	FAULT_OTIME,   /* otime stays 0 while nothing but zero was waited for */
	FAULT_HANG,    /* a call that fails EIDRM never returns */
	FAULT_CRASH,   /* SETVAL of 3 crashes the caller */
	FAULT_MESSAGE, /* MSG_NOERROR returns the full length */
	FAULT_NATTCH,  /* shm_nattch one too low while two are attached */
};

struct outcome {
	int64_t ret;
	int32_t err;
	char text[OUTCOME_TEXT_BYTES]; /* result and everything the call delivered */
};

enum desk_state {
	DESK_STARTING,
	DESK_IDLE, /* waits for a command */
	DESK_BUSY, /* has one */
	DESK_DONE, /* the outcome is there */
	DESK_GONE, /* its process died */
};

struct desk {
	_Atomic unsigned state; /* enum desk_state */
	_Atomic pid_t tid;
	int command_read_fd;
	int command_write_fd;
	struct step step;
	struct outcome outcome;
	/* The same for a call to be made in a signal handler. */
	_Atomic unsigned handler_state; /* DESK_IDLE, DESK_BUSY, DESK_DONE */
	struct step handler_step;
	struct outcome handler_outcome;
};

struct pid_name {
	pid_t pid;
	char name[28];
};

/* What is not known of a segment: family_shm.h. */
struct blur {
	int id;
	uint8_t what;
	uint8_t by; /* processes, bits by index */
};

struct shared {
	int memory_fd;
	int report_write_fd;
	unsigned process_count;
	unsigned worker_count;
	unsigned fault;    /* enum fault */
	unsigned families; /* bits by index: whose objects are looked at */
	unsigned child_count;
	uint8_t process_of[WORKERS_MAX];
	uint8_t person[WORKERS_MAX];  /* whom it acts as: family_process.c */
	uint8_t stopped[WORKERS_MAX]; /* of each process: by SIGSTOP */
	int slot_id[FAMILIES_MAX][SLOTS_MAX];
	unsigned tick_count;
	time_t tick[TICKS_MAX];
	unsigned pid_name_count;
	struct pid_name pid_name[PID_NAMES_MAX];
	pid_t process_pid[WORKERS_MAX];
	/* Of the shared memory family: family_shm.h. */
	uint64_t attach_address[WORKERS_MAX][ATTACHES_MAX]; /* of each process; 0: none */
	uint8_t has_attached[WORKERS_MAX];                  /* of each process: ever */
	uint8_t has_pieces;                                 /* some attach may be in pieces */
	unsigned blur_count;
	struct blur blur[BLURS_MAX];
	struct desk desk[WORKERS_MAX];
};

struct shared *shared_create(void);
struct shared *shared_open(int memory_fd);

/* Gives a pid or thread id a name; the latest name of a number counts. */
void shared_name_pid(struct shared *shared, pid_t pid, const char *name);

/* A process or its image has ended, or is about to: the families forget what they know of it. */
void shared_process_ends(struct shared *shared, unsigned process_ix);

/* "p2", "0", "?123"; the time as the number of the tick after which it was taken, or 0. */
void shared_put_pid(const struct shared *shared, struct text *text, pid_t pid);
void shared_put_time(const struct shared *shared, struct text *text, time_t when);

/* The id that an argument of kind PARAM_ID stands for. */
int shared_id(const struct shared *shared, unsigned family_ix, int64_t argument);

#endif
