// SPDX-License-Identifier: MIT
/*
 * The worker's side of a step: take it from the desk, make the call, leave the outcome.
 *
 * A worker must do nothing between two steps that an implementation of the calls could notice,
 * and it sleeps in two places only: in read() when idle, in a call when busy. How the stage
 * tells these apart: the state on the desk.
 */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *hands_place(struct hands *hands, int64_t kind, const void *object, size_t bytes)
{
	char *place;

	switch (kind) {
	case POINTER_NULL:
		return NULL;
	case POINTER_BAD:
		return hands->edge;
	case POINTER_EDGE:
		bytes = (bytes + 1) / 2;
		place = hands->edge - bytes;
		break;
	default:
		place = hands->good;
		break;
	}
	if (object)
		memcpy(place, object, bytes);
	else
		memset(place, 0, bytes);
	return place;
}

void worker_die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* What a handler on this thread makes calls with: not the memory of the call it interrupts. */
static _Thread_local struct hands *handler_hands;

/* Its purpose is to interrupt; on demand it makes a call as well. */
static void on_signal(int number)
{
	struct hands *hands = handler_hands;
	struct desk *desk;
	int saved_errno = errno;

	(void)number;
	if (!hands)
		return;
	desk = hands->desk;
	if (atomic_load_explicit(&desk->handler_state, memory_order_acquire) != DESK_BUSY)
		return;
	step_op(&desk->handler_step)->call(hands, &desk->handler_step, &desk->handler_outcome);
	atomic_store_explicit(&desk->handler_state, DESK_DONE, memory_order_release);
	errno = saved_errno;
}

/* Leaves the desk in a new state, and wakes up the stage. */
static void report(struct hands *hands, enum desk_state state)
{
	char byte = (char)hands->worker_ix;
	ssize_t written;

	atomic_store_explicit(&hands->desk->state, state, memory_order_release);
	do {
		written = write(hands->shared->report_write_fd, &byte, 1);
	} while (written < 0 && errno == EINTR);
	if (written != 1)
		_exit(1);
}

/* Makes the call in a child of its own, which ends at once. */
static void perform_by_child(struct hands *hands, const struct step *step)
{
	struct outcome *outcome = &hands->desk->outcome;
	struct shared *shared = hands->shared;
	struct text text = TEXT_ON(outcome->text);
	char name[28];
	pid_t child;
	int status;

	/* As with exec: a new process of another user may be locked out. */
	if (geteuid() != getuid()) {
		text_puts(&text, "not as another user");
		return;
	}
	text_puts(&text, "child: did nothing");
	snprintf(name, sizeof(name), "c%u.%u", hands->process_ix, ++shared->child_count);
	for (unsigned ix = 0; ix < families_count; ix++)
		if (families[ix]->process_forks)
			families[ix]->process_forks(shared, hands->process_ix);
	child = fork();
	if (child < 0) {
		text_clear(&text);
		text_puts(&text, "fork failed");
		return;
	}
	if (child == 0) {
		worker_die_with_parent();
		shared_name_pid(shared, getpid(), name);
		hands->never_sleep = true;
		hands->is_child = true;
		step_op(step)->call(hands, step, outcome);
		if (step->by == BY_KILLED_CHILD)
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	text.used = strnlen(outcome->text, sizeof(outcome->text) - 1);
	if (WIFEXITED(status))
		text_printf(&text, "; child exited %d", WEXITSTATUS(status));
	else
		text_printf(&text, "; child got signal %d", WTERMSIG(status));
}

static void wait_for_step(struct hands *hands)
{
	char byte;
	ssize_t got;

	do {
		got = read(hands->desk->command_read_fd, &byte, 1);
	} while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0);
}

static void make_hands(struct hands *hands, struct shared *shared, unsigned worker_ix)
{
	char *memory = mmap(NULL, HANDS_GOOD_BYTES + HANDS_EDGE_BYTES + 65536,
			    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	hands->shared = shared;
	hands->desk = &shared->desk[worker_ix];
	hands->worker_ix = worker_ix;
	hands->process_ix = shared->process_of[worker_ix];
	hands->never_sleep = false;
	hands->is_child = false;
	hands->good = memory;
	hands->edge = memory + HANDS_GOOD_BYTES + HANDS_EDGE_BYTES;
	if (mprotect(hands->edge, 65536, PROT_NONE))
		_exit(1);
}

static void *work(void *argument)
{
	struct hands *hands = argument;
	struct desk *desk = hands->desk;

	/* They lie in pairs. */
	handler_hands = hands + 1;
	atomic_store_explicit(&desk->tid, (pid_t)syscall(SYS_gettid), memory_order_relaxed);
	/* A desk that is busy now is that of a thread which executed this image or ended. */
	if (atomic_load_explicit(&desk->state, memory_order_acquire) == DESK_STARTING)
		report(hands, DESK_IDLE);
	else
		report(hands, DESK_DONE);
	for (;;) {
		wait_for_step(hands);
		desk->outcome.ret = 0;
		desk->outcome.err = 0;
		desk->outcome.text[0] = '\0';
		if (desk->step.by == BY_SELF || desk->step.by == BY_HANDLER)
			step_op(&desk->step)->call(hands, &desk->step, &desk->outcome);
		else
			perform_by_child(hands, &desk->step);
		report(hands, DESK_DONE);
	}
	return NULL;
}

static void start_thread(struct hands *hands)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, work, hands))
		_exit(1);
	pthread_attr_destroy(&attributes);
}

_Noreturn void worker_renew_thread(struct hands *hands)
{
	start_thread(hands);
	pthread_exit(NULL);
}

_Noreturn void worker_main(struct shared *shared, unsigned process_ix, int executed_by)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	static struct hands all_hands[WORKERS_MAX][2]; /* of the thread, of its handler */
	struct hands *own = NULL;

	worker_die_with_parent();
	sigaction(SIGUSR1, &action, NULL);
	for (unsigned ix = 0; ix < shared->worker_count; ix++) {
		struct desk *desk = &shared->desk[ix];

		if (shared->process_of[ix] != process_ix)
			continue;
		make_hands(&all_hands[ix][0], shared, ix);
		make_hands(&all_hands[ix][1], shared, ix);
		all_hands[ix][1].never_sleep = true;
		if (executed_by >= 0) {
			unsigned state = atomic_load_explicit(&desk->state, memory_order_acquire);

			if (state != DESK_BUSY)
				atomic_store_explicit(&desk->state, DESK_STARTING,
						      memory_order_release);
			else
				text_copy(desk->outcome.text, sizeof(desk->outcome.text),
					  (int)ix == executed_by ? "executed" : "ended by exec");
		}
		if (own)
			start_thread(&all_hands[ix][0]);
		else
			own = &all_hands[ix][0];
	}
	work(own);
	_exit(0);
}

int worker_exec(struct hands *hands)
{
	char memory_fd[12], process_ix[12], worker_ix[12];
	char program[] = "/proc/self/exe", mode[] = "worker";
	char *arguments[] = {program, mode, memory_fd, process_ix, worker_ix, NULL};

	snprintf(memory_fd, sizeof(memory_fd), "%d", hands->shared->memory_fd);
	snprintf(process_ix, sizeof(process_ix), "%u", hands->process_ix);
	snprintf(worker_ix, sizeof(worker_ix), "%u", hands->worker_ix);
	shared_process_ends(hands->shared, hands->process_ix);
	execv(program, arguments);
	return -errno;
}

_Noreturn void worker_executed(int argument_count, char **arguments)
{
	struct shared *shared;

	if (argument_count != 5)
		_exit(1);
	shared = shared_open(atoi(arguments[2]));
	if (!shared)
		_exit(1);
	worker_main(shared, (unsigned)atoi(arguments[3]), atoi(arguments[4]));
}
