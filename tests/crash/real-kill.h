/* SPDX-License-Identifier: MIT */
/* Between real-kill.c, which kills, and real-kill-acts.c, which is what is killed. */
#ifndef TESTS_CRASH_REAL_KILL_H
#define TESTS_CRASH_REAL_KILL_H

#include <stddef.h>

#define SEMS 3
#define KEY  0x5ca1ab1e

struct semid_ds;

union semun {
	int val;
	struct semid_ds *ds;
	unsigned short *array;
};

struct message {
	long type;
	char text[24];
};

struct world {
	int sem, msg, shm;
	void *at; /* an attach that the victim has made */
};
extern struct world world;

enum task { TASK_NONE = -1, TASK_WORK, TASK_SEMAPHORE, TASK_QUEUE, TASK_ROOM };

struct operation {
	const char *name;
	void (*before)(void); /* by the victim; null: it has not even registered */
	void (*act)(void);
	enum task task; /* of the sleeper */
};
extern const struct operation operations[];
extern const size_t operation_count;

void remove_set(void);
void remove_queue(void);
void remove_segment(void);

#endif
