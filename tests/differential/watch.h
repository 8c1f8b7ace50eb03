/* SPDX-License-Identifier: MIT */
/*
 * Looks at a thread from outside: is it asleep, and has it run since the last look?
 *
 * A woken thread is in state R before its waker's call returns, and the count of its runs goes
 * up when it gets a CPU. So "asleep, and no run since the last look" means that it slept all
 * the time in between; nothing here depends on how fast anything is.
 */
#ifndef DIFFERENTIAL_WATCH_H
#define DIFFERENTIAL_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

struct watch {
	pid_t tid;
	int state_fd;
	int runs_fd;
	bool runs_in_status;
	unsigned long long runs;
};

enum look {
	LOOK_RUNNING,
	LOOK_CHANGED, /* asleep now, but it has run since the last look */
	LOOK_ASLEEP,
	LOOK_STOPPED,
	LOOK_DEAD,
};

#define WATCH_NONE                                                                                 \
	{                                                                                          \
		.state_fd = -1, .runs_fd = -1                                                      \
	}

/* Takes up a thread; a thread that cannot be opened will look dead. */
void watch_start(struct watch *watch, pid_t pid, pid_t tid);
void watch_end(struct watch *watch);
enum look watch_look(struct watch *watch);
/* Is it stopped now by a signal, or gone? */
bool watch_is_stopped(struct watch *watch);

#endif
