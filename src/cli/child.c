// SPDX-License-Identifier: MIT
/*
 * The program under `usysv run`, and signals.
 *
 * Keyboard signals reach the whole foreground process group, the program included: they are
 * swallowed here, for passing them on would deliver them twice. They are known by having been sent
 * by the kernel. What a process sends to us (kill, timeout, a supervisor) is meant for the program
 * and passed on, with its value if it has one; so are the timers of alarm(2), which a wrapper
 * may have set before it executed us. A hang-up goes to the leader of a session alone: if that is
 * us, it is passed on as well. What the program itself sends to its group it has already had.
 *
 * When the program stops, we stop with the same signal, so that the shell gets its terminal back;
 * a SIGSTOP only if we or the program are in the foreground of a terminal: otherwise whoever
 * continues the program by its pid would leave us stopped for ever.
 *
 * A program that makes itself a process group and takes the terminal (an interactive shell) stops
 * without our group. All of that is then stopped, for a shell waits until its whole job has; and
 * as the shell gives the terminal to the job that it knows, the program's group gets it from us
 * when we are continued. When the shell dies, the kernel hangs up and continues what is stopped in
 * its jobs, but not the program's group, which has us; it gets that from us, too.
 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signal_set.h"
#include "base/sys.h"
#include "cli/cli.h"

#define DESCRIPTORS 20 /* the reaper's, and for removing a namespace */

#define EXIT_CANNOT_START   125
#define EXIT_CANNOT_EXECUTE 126
#define EXIT_NOT_FOUND      127

static struct rlimit files_before;
static bool files_raised;

bool child_make_room(void)
{
	int fds[DESCRIPTORS], n = 0;
	bool enough;

	if (!files_raised && getrlimit(RLIMIT_NOFILE, &files_before) == 0 &&
	    files_before.rlim_cur < files_before.rlim_max) {
		struct rlimit raised = {files_before.rlim_max, files_before.rlim_max};

		files_raised = setrlimit(RLIMIT_NOFILE, &raised) == 0;
	}
	while (n < DESCRIPTORS && (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		n++;
	enough = n == DESCRIPTORS;
	while (n > 0)
		close(fds[--n]);
	return enough;
}

/*
 * A system call of its own: a preloaded usysv around us (a run within a run) would else put its own
 * namespace into the environment.
 */
static int execute(const char *path, char **argv)
{
	int error = (int)-sys_call(SYS_execve, (long)path, (long)argv, (long)environ, 0, 0, 0);
	size_t n = 0;

	if (error != ENOEXEC)
		return error;
	/* A script without "#!", as execvp() has it. */
	while (argv[n])
		n++;
	char **shell = calloc(n + 2, sizeof(*shell));
	if (!shell)
		return ENOMEM;
	shell[0] = argv[0];
	memcpy(shell + 1, argv, (n + 1) * sizeof(*argv));
	shell[1] = strdup(path);
	return (int)-sys_call(SYS_execve, (long)"/bin/sh", (long)shell, (long)environ, 0, 0, 0);
}

static _Noreturn void be_child(const struct child *c, int wait_fd, const char *path, char **argv)
{
	char go;
	int error;

	if (read(wait_fd, &go, 1) != 1)
		_exit(EXIT_CANNOT_START);
	sigaction(SIGCHLD, &c->before_chld, NULL);
	sigprocmask(SIG_SETMASK, &c->before, NULL);
	if (files_raised)
		(void)setrlimit(RLIMIT_NOFILE, &files_before); /* lowering needs no right */
	error = execute(path, argv);
	cli_error("%s: %s", argv[0], strerror(error));
	_exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE);
}

int child_start(struct child *c, const char *path, char **argv)
{
	struct sigaction normal;
	sigset_t all;
	int ends[2], error;

	memset(c, 0, sizeof(*c));
	memset(&normal, 0, sizeof(normal));
	normal.sa_handler = SIG_DFL;
	sigemptyset(&normal.sa_mask);
	signal_set_of_others(&all);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	c->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0) {
		error = -errno;
		goto close_pipe;
	}
	sigprocmask(SIG_BLOCK, &all, &c->before);
	sigaction(SIGCHLD, &normal, &c->before_chld); /* ignored, it would hide the child's end */
	c->pid = fork();
	if (c->pid < 0) {
		error = -errno;
		sigprocmask(SIG_SETMASK, &c->before, NULL);
		close(c->signal_fd);
		goto close_pipe;
	}
	if (c->pid == 0) {
		close(ends[1]);
		be_child(c, ends[0], path, argv);
	}
	close(ends[0]);
	c->go_fd = ends[1];
	return 0;
close_pipe:
	close(ends[0]);
	close(ends[1]);
	return error;
}

void child_go(struct child *c)
{
	/* It can only fail if the child is dead, which is then seen. */
	(void)!write(c->go_fd, "g", 1);
	close(c->go_fd);
}

void child_abandon(struct child *c)
{
	close(c->go_fd);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- Passing signals on -------------------------------------------------------------------- */

/* The program's process group, if that is not ours; else 0. */
static pid_t group_apart(const struct child *c)
{
	pid_t group = getpgid(c->pid);

	return group > 0 && group != getpgrp() ? group : 0;
}

/* Has the program had it from the kernel, as we have? */
static bool is_common(const struct child *c, int signal)
{
	switch (signal) {
	case SIGINT:
	case SIGQUIT:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGWINCH:
		return true;
	case SIGHUP:
	case SIGCONT:
		return getsid(0) != getpid() && !(c->stopped && group_apart(c));
	default:
		return false;
	}
}

static int open_terminal(void)
{
	return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

/* The program is about to be continued: its group gets the terminal back if it had it. */
static void give_front(const struct child *c, pid_t group)
{
	int fd = c->had_front ? open_terminal() : -1;

	if (fd < 0)
		return;
	if (tcgetpgrp(fd) == getpgrp())
		(void)tcsetpgrp(fd, group); /* SIGTTOU is blocked */
	close(fd);
}

static void pass_on(struct child *c, const struct signalfd_siginfo *s)
{
	int signal = (int)s->ssi_signo;
	bool by_process = s->ssi_code <= 0;

	if (signal == SIGCHLD || c->ended)
		return;
	if (by_process ? (pid_t)s->ssi_pid == c->pid : is_common(c, signal))
		return;
	if (signal == SIGCONT && !c->stopped)
		return; /* a shell continues the whole group */
	pid_t whom = c->pid, group = group_apart(c);

	if (group && signal == SIGCONT)
		give_front(c, group);
	if (group && (signal == SIGCONT || (signal == SIGHUP && c->stopped && !by_process)))
		whom = -group;
	if (s->ssi_code == SI_QUEUE && whom > 0) {
		union sigval value = {.sival_ptr = (void *)(uintptr_t)s->ssi_ptr};

		(void)sigqueue(whom, signal, value); /* as for kill */
	} else {
		(void)kill(whom, signal); /* it may have ended; no permission: then not ours */
	}
}

/* Is the terminal ours, or the program's group's, which is noted? */
static bool in_foreground(struct child *c)
{
	int fd = open_terminal();
	pid_t front = fd >= 0 ? tcgetpgrp(fd) : -1;
	bool ours = front == getpgrp();

	if (fd >= 0)
		close(fd);
	c->has_front = front > 0 && !ours && front == getpgid(c->pid);
	c->had_front |= c->has_front;
	return ours || c->has_front;
}

/* Looks at the child; returns a signal to stop with. */
static int look(struct child *c)
{
	int status, stop_with = 0;

	while (!c->ended && waitpid(c->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
		if (WIFSTOPPED(status)) {
			int signal = WSTOPSIG(status);

			c->stopped = true;
			stop_with = in_foreground(c) || signal != SIGSTOP ? signal : 0;
		} else if (WIFCONTINUED(status)) {
			c->stopped = false;
			stop_with = 0;
		} else {
			c->ended = true;
			c->status =
				WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
			return 0;
		}
	}
	return stop_with;
}

int child_signals(struct child *c)
{
	struct signalfd_siginfo s[8];
	int stop_with = look(c);
	ssize_t n;

	while ((n = read(c->signal_fd, s, sizeof(s))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(s[0]); i++)
			pass_on(c, &s[i]);
	if (c->ended)
		return 0;
	/* What came in between is not announced a second time. */
	int again = look(c);

	if (!c->stopped)
		return 0;
	return again ? again : stop_with;
}

void child_stop_too(const struct child *c, int signal)
{
	struct sigaction normal, before;
	sigset_t one, mask;

	memset(&normal, 0, sizeof(normal));
	normal.sa_handler = SIG_DFL;
	sigemptyset(&normal.sa_mask);
	sigemptyset(&one);
	sigaddset(&one, signal);
	if (signal != SIGSTOP)
		sigaction(signal, &normal, &before);
	/* Blocked: one that has come meanwhile is the same stop. */
	if (c->has_front)
		kill(0, signal);
	else
		raise(signal);
	/* In a group without a shell to continue it the kernel ignores it. */
	sigprocmask(SIG_UNBLOCK, &one, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (signal != SIGSTOP)
		sigaction(signal, &before, NULL);
}
