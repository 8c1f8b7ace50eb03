/* SPDX-License-Identifier: MIT */
/*
 * Notice of deaths that somebody may sleep for: of processes that have undo records (WATCH_P1).
 *
 * The close event by which the reaper hears of any death (loop.h) comes when the memory of the dead
 * has been taken down, and the larger that was, the later. Life and watch words are marked before.
 * So threads sleep on them, one for each 126 process slots, which is what the kernel lets one sleep
 * on; they change nothing else in the region and take no part in the session. A process that keeps
 * undo records over exec and no longer has a word (it is linked statically, say) is watched by a
 * pidfd.
 *
 * Without threads, or before Linux 5.16, there is no notice, and the reaper learns the old way.
 */
#ifndef USYSV_REAPER_WATCH_H
#define USYSV_REAPER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define WATCH_PIDFDS_MOST 64u

struct watcher;

struct watch {
	unsigned char *base;
	uint32_t pid_view;
	int fd; /* readable: look */
	int event_fd;
	uint32_t stop;
	uint32_t pidfd[WATCH_PIDFDS_MOST]; /* descriptor + 1; 0 = none */
	struct watcher *first;
};

enum watch_news {
	WATCH_NOTHING,
	WATCH_MARKED = 1, /* a thread is marked dead whose process has undo records */
	WATCH_ENDED = 2,  /* a process with undo records and no such thread has ended */
};

/*
 * Begins to watch. Pids are understood where pid_view is the caller's (ident_view(); 0: nowhere).
 * 0, or -errno: nothing is watched, and w->fd is -1. Not for a process that forks without exec.
 */
int watch_begin(struct watch *w, unsigned char *base, uint32_t pid_view);

/* What has happened since the last call; enum watch_news, or'ed. Does not block. */
unsigned watch_news(struct watch *w);

/* May be repeated. */
void watch_end(struct watch *w);

#endif
