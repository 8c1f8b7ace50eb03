// SPDX-License-Identifier: MIT
/*
 * The stage. One command at a time: lay the step on the worker's desk, wait until everybody
 * has either returned or sleeps, then write down who returned with what, and all that can be
 * seen of all objects.
 *
 * "Everybody sleeps" is not guessed from time: see watch.h. Besides the workers the stage
 * watches its own parent where that is not the coordinator: a launcher may do part of the
 * work (cleaning up after the dead), and while it runs, nothing is settled.
 *
 * The stage dies when its command pipe ends, when its parent dies, and by SIGALRM when a step
 * takes much longer than its deadline. The workers die with the stage.
 */
#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "worker.h"

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int64_t deadline_of(const struct stage *stage)
{
	return now_ns() + stage->deadline_ms * 1000000LL;
}

static void say_trouble(struct stage *stage, const char *what, unsigned worker_ix)
{
	stage->trouble = true;
	text_printf(&stage->events, "TROUBLE: w%u %s\n", worker_ix, what);
}

bool stage_is_busy(const struct stage *stage, unsigned worker_ix)
{
	return atomic_load_explicit(&stage->shared->desk[worker_ix].state, memory_order_acquire) ==
	       DESK_BUSY;
}

pid_t stage_pid(const struct stage *stage, unsigned worker_ix)
{
	return stage->process[stage->shared->process_of[worker_ix]].pid;
}

/* Sleeps until a worker reports, but not for long: going to sleep is not reported. */
static void wait_a_moment(struct stage *stage)
{
	struct pollfd report = {.fd = stage->report_fd, .events = POLLIN};
	struct timespec moment = {.tv_nsec = 50000};

	if (ppoll(&report, 1, &moment, NULL) > 0) {
		char bytes[64];
		ssize_t got = read(stage->report_fd, bytes, sizeof(bytes));

		(void)got; /* the bytes only wake us up: what counts is on the desks */
	}
}

/* Takes outcomes from desks. */
static void collect(struct stage *stage)
{
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++) {
		struct desk *desk = &stage->shared->desk[ix];

		if (atomic_load_explicit(&desk->state, memory_order_acquire) != DESK_DONE)
			continue;
		atomic_store_explicit(&desk->state, DESK_IDLE, memory_order_relaxed);
		stage->reported[ix] = true;
	}
}

static enum look look_at(struct stage *stage, unsigned worker_ix)
{
	struct watch *watch = &stage->watch[worker_ix];
	pid_t tid = atomic_load_explicit(&stage->shared->desk[worker_ix].tid, memory_order_relaxed);

	if (watch->tid != tid)
		watch_start(watch, stage_pid(stage, worker_ix), tid);
	return watch_look(watch);
}

/*
 * One round of looks, which ends at the first that moves. If nobody does, everybody sleeps and
 * slept all the time since the last look at him: who could have woken him up has been looked at
 * later, or had returned before. A caller whose call cannot sleep is not at rest before it has
 * returned, whatever it sleeps in.
 */
enum motion {
	MOTION_NONE,
	MOTION_PAST, /* look again at once */
	MOTION_NOW,
	MOTION_DEATH,
};

static unsigned desk_state(const struct stage *stage, unsigned worker_ix)
{
	return atomic_load_explicit(&stage->shared->desk[worker_ix].state, memory_order_acquire);
}

static enum motion motion_of(struct stage *stage, unsigned worker_ix, bool must_return)
{
	switch (desk_state(stage, worker_ix)) {
	case DESK_DONE:
		return MOTION_PAST;
	case DESK_STARTING:
		return MOTION_NOW;
	case DESK_BUSY:
		break;
	default:
		return MOTION_NONE;
	}
	switch (look_at(stage, worker_ix)) {
	case LOOK_DEAD:
		return MOTION_DEATH;
	case LOOK_ASLEEP:
		/* A thread shows as asleep a moment before it really is, and may yet turn back. */
		if (desk_state(stage, worker_ix) != DESK_BUSY)
			return MOTION_PAST;
		return must_return ? MOTION_NOW : MOTION_NONE;
	case LOOK_CHANGED:
		return MOTION_PAST;
	case LOOK_STOPPED:
		return MOTION_NONE;
	default:
		return MOTION_NOW;
	}
}

static enum motion look_around(struct stage *stage, int must_return, unsigned *ret_worker_ix)
{
	unsigned count = stage->shared->worker_count;

	/* The one most likely to move first. */
	for (unsigned turn = 0; turn < count; turn++) {
		unsigned ix = (turn + stage->caller_ix) % count;
		enum motion motion = motion_of(stage, ix, (int)ix == must_return);

		if (motion != MOTION_NONE) {
			*ret_worker_ix = ix;
			return motion;
		}
	}
	for (unsigned ix = 0; ix < stage->parent_count; ix++) {
		switch (watch_look(&stage->parent[ix])) {
		case LOOK_RUNNING:
			return MOTION_NOW;
		case LOOK_CHANGED:
			return MOTION_PAST;
		default:
			break;
		}
	}
	return MOTION_NONE;
}

static void name_process(struct stage *stage, unsigned process_ix)
{
	struct shared *shared = stage->shared;
	unsigned incarnation = stage->process[process_ix].incarnation;
	bool first = true;

	for (unsigned ix = 0; ix < shared->worker_count; ix++) {
		char name[28];

		if (shared->process_of[ix] != process_ix)
			continue;
		snprintf(name, sizeof(name), incarnation ? "%c%u.%u" : "%c%u", first ? 'p' : 't',
			 first ? process_ix : ix, incarnation);
		shared_name_pid(
			shared,
			first ? stage->process[process_ix].pid
			      : atomic_load_explicit(&shared->desk[ix].tid, memory_order_relaxed),
			name);
		first = false;
	}
}

/* Starts a process with its threads, and waits until they are at their desks. */
static void start_process(struct stage *stage, unsigned process_ix)
{
	struct shared *shared = stage->shared;
	int64_t deadline = deadline_of(stage);
	pid_t pid;

	for (unsigned ix = 0; ix < shared->worker_count; ix++) {
		if (shared->process_of[ix] != process_ix)
			continue;
		watch_end(&stage->watch[ix]);
		shared->person[ix] = 0;
		atomic_store_explicit(&shared->desk[ix].state, DESK_STARTING, memory_order_relaxed);
	}
	shared->stopped[process_ix] = 0;
	pid = fork();
	if (pid == 0) {
		close(stage->command_fd);
		close(stage->reply_fd);
		close(stage->report_fd);
		worker_main(shared, process_ix, -1);
	}
	stage->process[process_ix].pid = pid;
	shared->process_pid[process_ix] = pid;
	for (unsigned ix = 0; ix < shared->worker_count; ix++) {
		if (shared->process_of[ix] != process_ix)
			continue;
		while (atomic_load_explicit(&shared->desk[ix].state, memory_order_acquire) ==
		       DESK_STARTING) {
			if (pid < 0 || now_ns() > deadline) {
				say_trouble(stage, "does not start", ix);
				return;
			}
			wait_a_moment(stage);
		}
	}
	name_process(stage, process_ix);
}

static void tell_end(struct stage *stage, unsigned process_ix, int status, const char *what)
{
	text_printf(&stage->events, "p%u %s: ", process_ix, what);
	if (WIFEXITED(status))
		text_printf(&stage->events, "status %d\n", WEXITSTATUS(status));
	else
		text_printf(&stage->events, "signal %d\n", WTERMSIG(status));
}

static void mark_gone(struct stage *stage, unsigned process_ix)
{
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++)
		if (stage->shared->process_of[ix] == process_ix)
			atomic_store_explicit(&stage->shared->desk[ix].state, DESK_GONE,
					      memory_order_relaxed);
}

/* Waits for the end of a process; false if it does not come. */
static bool await_end(struct stage *stage, unsigned process_ix, const char *what)
{
	struct stage_process *process = &stage->process[process_ix];
	int64_t deadline = deadline_of(stage);
	int status;

	while (waitpid(process->pid, &status, WNOHANG) == 0) {
		if (now_ns() > deadline) {
			text_printf(&stage->events, "TROUBLE: p%u does not end\n", process_ix);
			stage->trouble = true;
			return false;
		}
		wait_a_moment(stage);
	}
	mark_gone(stage, process_ix);
	shared_process_ends(stage->shared, process_ix);
	tell_end(stage, process_ix, status, what);
	return true;
}

void stage_replace(struct stage *stage, unsigned process_ix, const char *what)
{
	if (!await_end(stage, process_ix, what))
		return;
	stage_settle(stage);
	stage->process[process_ix].incarnation++;
	start_process(stage, process_ix);
}

/* One thread takes the signal and makes the others stop: none of them moves before. */
void stage_stop(struct stage *stage, unsigned process_ix)
{
	int64_t deadline = deadline_of(stage);

	stage->shared->stopped[process_ix] = 1;
	kill(stage->process[process_ix].pid, SIGSTOP);
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++) {
		if (stage->shared->process_of[ix] != process_ix)
			continue;
		look_at(stage, ix);
		while (!watch_is_stopped(&stage->watch[ix]) && now_ns() < deadline)
			wait_a_moment(stage);
	}
}

/* A busy worker's thread is dead: if its process is too, it ended without being told to. */
static bool bury_if_dead(struct stage *stage, unsigned worker_ix)
{
	unsigned process_ix = stage->shared->process_of[worker_ix];
	int status;

	if (waitpid(stage->process[process_ix].pid, &status, WNOHANG) !=
	    stage->process[process_ix].pid)
		return false;
	mark_gone(stage, process_ix);
	tell_end(stage, process_ix, status, "died unexpectedly");
	stage->trouble = true;
	return true;
}

static void say_restless(struct stage *stage)
{
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++)
		if (stage_is_busy(stage, ix))
			say_trouble(stage, "does not come to rest", ix);
	if (!stage->trouble)
		say_trouble(stage, "is idle, but something else runs on", 0);
}

static void settle(struct stage *stage, int must_return)
{
	int64_t deadline = deadline_of(stage);
	bool yielded = false;

	for (;;) {
		unsigned worker_ix;
		enum motion motion;

		collect(stage);
		motion = look_around(stage, must_return, &worker_ix);
		if (motion == MOTION_NONE)
			return;
		if (motion == MOTION_DEATH && bury_if_dead(stage, worker_ix))
			continue;
		if (now_ns() > deadline) {
			say_restless(stage);
			return;
		}
		if (motion == MOTION_PAST)
			continue;
		/* On one CPU this is all that a worker needs to go to sleep. */
		if (!yielded)
			sched_yield();
		else
			wait_a_moment(stage);
		yielded = true;
	}
}

void stage_settle(struct stage *stage)
{
	settle(stage, -1);
}

static void submit(struct stage *stage, const struct step *step)
{
	struct desk *desk = &stage->shared->desk[step->worker_ix];
	char byte = 0;

	desk->step = *step;
	atomic_store_explicit(&desk->state, DESK_BUSY, memory_order_release);
	if (write(desk->command_write_fd, &byte, 1) != 1)
		say_trouble(stage, "cannot be told", step->worker_ix);
}

/* For FAULT_ORDER: pretends that another sleeper in the same call was the one to be woken. */
static unsigned pretended(const struct stage *stage, unsigned worker_ix)
{
	const struct shared *shared = stage->shared;
	const struct step *step = &shared->desk[worker_ix].step;

	for (unsigned ix = 0; shared->fault == FAULT_ORDER && ix < shared->worker_count; ix++) {
		const struct step *other = &shared->desk[ix].step;

		if (stage_is_busy(stage, ix) && other->op_ix == step->op_ix &&
		    !memcmp(other->arg, step->arg, sizeof(step->arg)) &&
		    !memcmp(other->item, step->item, sizeof(step->item)))
			return ix;
	}
	return worker_ix;
}

/* Interrupts a sleeper by a signal whose handler makes the call of the step. */
static void perform_in_handler(struct stage *stage, const struct step *step)
{
	struct desk *desk = &stage->shared->desk[step->worker_ix];

	desk->handler_step = *step;
	desk->handler_outcome.text[0] = '\0';
	atomic_store_explicit(&desk->handler_state, DESK_BUSY, memory_order_release);
	syscall(SYS_tgkill, stage_pid(stage, step->worker_ix), desk->tid, SIGUSR1);
	stage_settle(stage);
	if (atomic_load_explicit(&desk->handler_state, memory_order_acquire) == DESK_DONE)
		text_printf(&stage->events, "w%u in handler: %s = %s\n", step->worker_ix,
			    step_op(step)->name, desk->handler_outcome.text);
	else
		text_printf(&stage->events, "w%u: no handler ran\n", step->worker_ix);
	atomic_store_explicit(&desk->handler_state, DESK_IDLE, memory_order_relaxed);
}

/* The step, and what happened, in the order of workers. */
static void perform(struct stage *stage, const struct step *step, struct reply *reply)
{
	const struct op *op = step_op(step);
	unsigned worker_ix = step->worker_ix;
	bool submitted = false;

	if (worker_ix >= stage->shared->worker_count) {
		text_puts(&stage->events, "no such worker\n");
	} else if (op->traits & OP_BY_STAGE) {
		op->act(stage, step, &stage->events);
		stage_settle(stage);
	} else if (stage->shared->stopped[stage->shared->process_of[worker_ix]]) {
		text_puts(&stage->events, "is stopped\n");
	} else if (stage_is_busy(stage, worker_ix) && step->by == BY_HANDLER &&
		   (op->traits & (OP_MAY_SLEEP | OP_IN_HANDLER))) {
		perform_in_handler(stage, step);
	} else if (stage_is_busy(stage, worker_ix)) {
		text_puts(&stage->events, "is busy\n");
	} else {
		bool may_sleep = (op->traits & OP_MAY_SLEEP) &&
				 (step->by == BY_SELF || step->by == BY_HANDLER);

		submitted = true;
		stage->caller_ix = worker_ix;
		submit(stage, step);
		if (op->traits & OP_ENDS_PROCESS)
			stage_replace(stage, stage->shared->process_of[worker_ix], "ended");
		else
			settle(stage, may_sleep ? -1 : (int)worker_ix);
		if (op->traits & OP_RENEWS_THREADS)
			name_process(stage, stage->shared->process_of[worker_ix]);
		if (stage_is_busy(stage, worker_ix)) {
			text_printf(&stage->events, "w%u sleeps\n", worker_ix);
			reply->slept = 1;
		}
	}
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++) {
		const struct desk *desk = &stage->shared->desk[ix];
		bool woken = !submitted || ix != worker_ix;

		if (!stage->reported[ix])
			continue;
		text_printf(&stage->events, "w%u %s %s = %s\n", woken ? pretended(stage, ix) : ix,
			    woken ? "woke:" : "called", step_op(&desk->step)->name,
			    desk->outcome.text);
		reply->woken += woken;
	}
}

/* A look at the objects also makes an implementation tidy up: sometimes nobody looks. */
static void describe(struct stage *stage, struct reply *reply, bool quiet)
{
	if (!quiet)
		memset(stage->hints, 0, sizeof(stage->hints));
	for (unsigned ix = 0; ix < families_count && !quiet; ix++)
		if (families[ix]->dump && (stage->shared->families >> ix & 1))
			families[ix]->dump(stage->shared, &stage->state, stage->hints[ix]);
	memcpy(reply->hints, stage->hints, sizeof(reply->hints));
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++) {
		unsigned state =
			atomic_load_explicit(&stage->shared->desk[ix].state, memory_order_relaxed);

		reply->worker_state[ix] = state == DESK_BUSY   ? WORKER_ASLEEP
					  : state == DESK_GONE ? WORKER_GONE
							       : WORKER_IDLE;
		reply->person[ix] = stage->shared->person[ix];
		reply->stopped[ix] = stage->shared->stopped[stage->shared->process_of[ix]];
	}
	/* Two workers changing places must not escape for lack of a result. */
	text_puts(&stage->state, "workers ");
	for (unsigned ix = 0; ix < stage->shared->worker_count; ix++)
		text_puts(&stage->state, reply->worker_state[ix] == WORKER_ASLEEP ? "z" : ".");
	text_puts(&stage->state, "\n");
}

static bool write_all(int fd, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count > 0) {
		ssize_t written = write(fd, at, count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		at += written;
		count -= (size_t)written;
	}
	return true;
}

static bool send_reply(struct stage *stage, struct reply *reply)
{
	static char packet[sizeof(struct reply) + EVENT_BYTES_MAX + STATE_BYTES_MAX];

	reply->trouble = stage->trouble;
	reply->event_bytes = (uint32_t)stage->events.used;
	reply->state_bytes = (uint32_t)stage->state.used;
	memcpy(packet, reply, sizeof(*reply));
	memcpy(packet + sizeof(*reply), stage->events.chars, stage->events.used);
	memcpy(packet + sizeof(*reply) + stage->events.used, stage->state.chars, stage->state.used);
	return write_all(stage->reply_fd, packet,
			 sizeof(*reply) + stage->events.used + stage->state.used);
}

static void finish(struct stage *stage)
{
	for (unsigned ix = 0; ix < stage->shared->process_count; ix++) {
		kill(stage->process[ix].pid, SIGKILL);
		if (!await_end(stage, ix, "killed at the end"))
			continue;
		stage_settle(stage);
	}
}

static void kill_workers(struct stage *stage)
{
	for (unsigned ix = 0; ix < stage->shared->process_count; ix++)
		if (stage->process[ix].pid > 0)
			kill(stage->process[ix].pid, SIGKILL);
}

static int obey(struct stage *stage)
{
	for (;;) {
		struct command command;
		struct reply reply;
		ssize_t got = read(stage->command_fd, &command, sizeof(command));

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			return 0;
		if (got != (ssize_t)sizeof(command))
			return 1;
		/* Covers waiting for the next command too, by as much as the other side may take.
		 */
		alarm((unsigned)(stage->deadline_ms / 1000 * 8 + 30));
		memset(&reply, 0, sizeof(reply));
		memset(stage->reported, 0, sizeof(stage->reported));
		text_clear(&stage->events);
		text_clear(&stage->state);
		if (command.kind == COMMAND_FINISH)
			finish(stage);
		else
			perform(stage, &command.step, &reply);
		describe(stage, &reply,
			 command.kind == COMMAND_STEP && command.step.quiet &&
				 !(step_op(&command.step)->traits & OP_LOUD));
		if (!send_reply(stage, &reply))
			return 1;
	}
}

static void watch_parent(struct stage *stage, pid_t coordinator)
{
	pid_t parent = getppid();
	struct dirent *entry;
	char path[64];
	DIR *tasks;

	if (parent == coordinator)
		return;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)) != NULL) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid <= 0 || stage->parent_count == PARENT_TASKS_MAX)
			continue;
		stage->parent[stage->parent_count].state_fd = -1;
		stage->parent[stage->parent_count].runs_fd = -1;
		watch_start(&stage->parent[stage->parent_count++], parent, tid);
	}
	if (tasks)
		closedir(tasks);
}

static bool make_pipes(struct stage *stage)
{
	struct shared *shared = stage->shared;
	int ends[2];

	/* The worker's ends pass through exec; its siblings' are there too, and do no harm. */
	if (pipe(ends))
		return false;
	stage->report_fd = ends[0];
	shared->report_write_fd = ends[1];
	fcntl(stage->report_fd, F_SETFD, FD_CLOEXEC);
	fcntl(stage->report_fd, F_SETFL, O_NONBLOCK);
	for (unsigned ix = 0; ix < shared->worker_count; ix++) {
		if (pipe(ends))
			return false;
		shared->desk[ix].command_read_fd = ends[0];
		shared->desk[ix].command_write_fd = ends[1];
		fcntl(ends[1], F_SETFD, FD_CLOEXEC);
	}
	return true;
}

/* Command line: stage COORDINATOR-PID DEADLINE-MS CPU FAULT FAMILIES THREADS... */
int stage_main(int argument_count, char **arguments)
{
	static char event_chars[EVENT_BYTES_MAX], state_chars[STATE_BYTES_MAX];
	static struct stage stage;
	struct shared *shared = shared_create();
	pid_t coordinator;
	int cpu, status;

	if (!shared || argument_count < 8)
		return 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1UL);
	stage.shared = shared;
	stage.events = (struct text)TEXT_ON(event_chars);
	stage.state = (struct text)TEXT_ON(state_chars);
	coordinator = (pid_t)atoi(arguments[2]);
	stage.deadline_ms = atoi(arguments[3]);
	cpu = atoi(arguments[4]);
	shared->fault = (unsigned)atoi(arguments[5]);
	shared->families = (unsigned)atoi(arguments[6]);
	for (int ix = 7; ix < argument_count; ix++) {
		for (int thread = atoi(arguments[ix]); thread > 0; thread--) {
			if (shared->worker_count == WORKERS_MAX)
				return 1;
			stage.watch[shared->worker_count].state_fd = -1;
			stage.watch[shared->worker_count].runs_fd = -1;
			shared->process_of[shared->worker_count++] = (uint8_t)shared->process_count;
		}
		shared->process_count++;
	}
	if (cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET((unsigned)cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	stage.command_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 10);
	stage.reply_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	close(STDIN_FILENO);
	if (open("/dev/null", O_RDONLY) != STDIN_FILENO || !make_pipes(&stage))
		return 1;
	shared->tick[shared->tick_count++] = time(NULL);
	shared_name_pid(shared, getpid(), "stage");
	watch_parent(&stage, coordinator);
	for (unsigned ix = 0; ix < shared->process_count; ix++)
		start_process(&stage, ix);
	status = obey(&stage);
	kill_workers(&stage);
	while (wait(NULL) > 0)
		;
	return status;
}
