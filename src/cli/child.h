/* SPDX-License-Identifier: MIT */
/*
 * The program under `usysv run`: a child in the same session and process group, with signals passed
 * on to it, its stops imitated and its end reported. See child.c for which signals are passed on.
 */
#ifndef USYSV_CLI_CHILD_H
#define USYSV_CLI_CHILD_H

#include <stdbool.h>
#include <signal.h>
#include <sys/types.h>

struct child {
	pid_t pid;
	int go_fd;       /* it waits for a byte from here before it executes the program */
	int signal_fd;   /* readable when a signal has come */
	sigset_t before; /* signal mask and action to give back to the program */
	struct sigaction before_chld;
	bool stopped;
	bool has_front; /* when it stopped, the terminal was its own group's, not ours */
	bool had_front; /* at any of its stops */
	bool ended;
	int status; /* of its end, for the shell */
};

/*
 * Raises the limit of descriptors for this process, not for the program, and sees whether there are
 * as many as this command needs until its end: who finds out too late leaves things behind. False:
 * there are not.
 */
bool child_make_room(void);

/*
 * Starts the child, which waits. environ is the program's. 0 or -errno. From here on this process's
 * signals are blocked and come through signal_fd.
 */
int child_start(struct child *c, const char *path, char **argv);

/* Lets it execute the program. */
void child_go(struct child *c);

/* Makes the waiting child end without having done anything. */
void child_abandon(struct child *c);

/*
 * signal_fd is readable: passes signals on and looks at the child. Returns the signal with which
 * this process should stop as well, 0 for none.
 */
int child_signals(struct child *c);

/* Stops this process as the child has stopped, and its process group if the child had the terminal
 * in another; returns when it is continued. */
void child_stop_too(const struct child *c, int signal);

#endif
