/* SPDX-License-Identifier: MIT */
/*
 * The reaper's loop, for usysvd and `usysv run`: waits for deaths in a namespace and has the dead
 * buried (session_sweep), while it holds the office or stands by to take it.
 *
 * How it learns of a death: each registered process holds a mapping of a file description of its
 * own of the region file, so the kernel's close event for that file comes when the process's
 * memory goes, at whatever kind of death. Of those for whose SEM_UNDO others may sleep it hears
 * before (watch.h). Where inotify cannot be had, it looks every 20 ms; and once a second in any
 * case.
 *
 * The process that runs it may be killed anywhere: the office is then vacant (OFFICE_P1).
 */
#ifndef USYSV_REAPER_LOOP_H
#define USYSV_REAPER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "client/namespace.h"
#include "reaper/watch.h"

struct reaper {
	struct namespace_place place;
	int region_fd;
	unsigned char *base;
	int epoll_fd, inotify_fd; /* inotify_fd -1: look often instead */
	struct watch watch;
	int64_t swept_ns, due_ns; /* last and next look */
	int64_t all_due_ns;       /* of which one asks about every process */
	int64_t rest_ns;          /* no look until then after the last, but for the marked */
	unsigned followup; /* next of the further looks: a death takes a moment to complete */
	uint32_t users;    /* registered processes at the last look, without reapers */
	bool was_busy;     /* what somebody dead has left, at the last look */
	bool in_office;
	bool gone; /* the namespace has been removed */
};

/*
 * Enters the namespace of an open and mapped region as a reaper and tries for the office. Takes
 * over the descriptor. 0 or -errno (then the descriptor is still the caller's).
 */
int reaper_begin(struct reaper *r, const struct namespace_place *place, int region_fd,
		 unsigned char *base);

/* Also wake up when fd is readable; reaper_step() then says so. */
int reaper_watch(struct reaper *r, int fd);

/*
 * Waits for the next event or until the next look is due, at most max_wait_ms (-1: no limit), and
 * looks after the dead if it is time. True: the watched descriptor is readable.
 */
bool reaper_step(struct reaper *r, int max_wait_ms);

/* Looks after the dead now; r->users is then up to date. */
void reaper_look(struct reaper *r);

/*
 * Looks again, for a second at most, while the only users left are processes that have begun to
 * die. Returns r->users.
 */
uint32_t reaper_settle(struct reaper *r);

/* Removes the namespace if it may go now (see retire.h for the flags). 0, -EBUSY, -errno. */
int reaper_retire(struct reaper *r, unsigned retire_flags);

/* Gives up the office. False: it has it still, for somebody entered at the last moment who saw it
 * held, and started no other reaper. */
bool reaper_resign(struct reaper *r);

/* Leaves office and namespace. */
void reaper_end(struct reaper *r);

#endif
