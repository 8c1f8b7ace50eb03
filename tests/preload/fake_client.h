/* SPDX-License-Identifier: MIT */
/*
 * What the fake client (fake_client.c) understands and what it counts. Test programs find the
 * counts through the library's symbol fake_counts, weak so that they also link without it.
 */
#ifndef USYSV_TESTS_PRELOAD_FAKE_CLIENT_H
#define USYSV_TESTS_PRELOAD_FAKE_CLIENT_H

#include <stdint.h>
#include <sys/types.h>

/* As the id of semop(2); sops and nsops are the command's arguments. */
enum fake_command {
	FAKE_HOLD = 1,     /* a section in which in_section() is called */
	FAKE_SLEEP = 2,    /* until a handler ends it */
	FAKE_COPY_IN = 3,  /* nsops bytes from sops */
	FAKE_COPY_OUT = 4, /* nsops bytes to sops */
	FAKE_COPY_IN_SECTION = 5,
	FAKE_PROBE = 6, /* does the thread probe? */
};

struct fake_counts {
	int registrations, attach_early, creds_changed;
	int fork_prepare, fork_parent, fork_child;
	int exits, reaps, sweeps, left_sleeps, undo_left;
	pid_t reaped;
	int sleeping;
	void (*in_section)(void);
	char buffer[16384];
};

extern struct fake_counts fake_counts __attribute__((weak));
extern struct fake_counts *fake_shared __attribute__((weak));

#endif
