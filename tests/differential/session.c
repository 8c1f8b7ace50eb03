// SPDX-License-Identifier: MIT
/*
 * Plays a sequence on two stages and compares their replies byte by byte. Within a stage one
 * call is made at a time; but neither stage waits for the other, nor, where the steps are known
 * beforehand, for the coordinator. Only the generator must see what back end a did last.
 *
 * A stage is a process of its own in a fresh namespace: for the kernel, after
 * unshare(CLONE_NEWIPC); for usysv, under `usysv run` besides. It speaks through its standard input
 * and output, so any other launcher can be put before it. A stage that dies, hangs, or speaks
 * nonsense counts as a difference like any other.
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void verdict_free(struct verdict *verdict)
{
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++) {
		free(verdict->events[ix]);
		free(verdict->state[ix]);
	}
	free(verdict->state_before);
	memset(verdict, 0, sizeof(*verdict));
}

/* The child's side of start: never returns. */
static _Noreturn void execute_stage(const struct session *session, const struct backend *backend,
				    const struct script *script, pid_t coordinator)
{
	char numbers[5][16], threads[WORKERS_MAX][4];
	char self[] = "/proc/self/exe", mode[] = "stage";
	char usysv[512], run[] = "run", dashes[] = "--";
	char shell[] = "/bin/sh", dash_c[] = "-c", command[1024];
	char *arguments[WORKERS_MAX + 16], path[512];
	unsigned count = 0;
	ssize_t length = readlink(self, path, sizeof(path) - 1);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (length <= 0)
		_exit(126);
	path[length] = '\0';
	/* For usysv too: should a call slip through to the kernel, it shall meet nobody there. */
	if (unshare(CLONE_NEWIPC)) {
		fprintf(stderr, "no new IPC namespace: %s\n", strerror(errno));
		_exit(126);
	}
	if (!strcmp(backend->name, "usysv")) {
		text_copy(usysv, sizeof(usysv), session->usysv_path);
		arguments[count++] = usysv;
		arguments[count++] = run;
		arguments[count++] = dashes;
	} else if (strcmp(backend->name, "kernel")) {
		snprintf(command, sizeof(command), "exec %s \"$@\"", backend->name);
		arguments[count++] = shell;
		arguments[count++] = dash_c;
		arguments[count++] = command;
		arguments[count++] = shell;
	}
	snprintf(numbers[0], sizeof(numbers[0]), "%d", (int)coordinator);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", session->deadline_ms);
	snprintf(numbers[2], sizeof(numbers[2]), "%d", backend->cpu);
	snprintf(numbers[3], sizeof(numbers[3]), "%d", (int)backend->fault);
	snprintf(numbers[4], sizeof(numbers[4]), "%u", session->families);
	arguments[count++] = path;
	arguments[count++] = mode;
	for (unsigned ix = 0; ix < 5; ix++)
		arguments[count++] = numbers[ix];
	for (unsigned ix = 0; ix < script->process_count; ix++) {
		snprintf(threads[ix], sizeof(threads[ix]), "%u", script->threads[ix]);
		arguments[count++] = threads[ix];
	}
	arguments[count] = NULL;
	execvp(arguments[0], arguments);
	fprintf(stderr, "cannot execute %s: %s\n", arguments[0], strerror(errno));
	_exit(127);
}

static bool start(const struct session *session, struct backend *backend,
		  const struct script *script)
{
	pid_t coordinator = getpid();
	int commands[2], replies[2];

	if (pipe2(commands, O_CLOEXEC) || pipe2(replies, O_CLOEXEC))
		return false;
	backend->pid = fork();
	if (backend->pid == 0) {
		dup2(commands[0], STDIN_FILENO);
		dup2(replies[1], STDOUT_FILENO);
		execute_stage(session, backend, script, coordinator);
	}
	close(commands[0]);
	close(replies[1]);
	backend->command_fd = commands[1];
	backend->reply_fd = replies[0];
	backend->sent = 0;
	backend->answered = 0;
	backend->input_bytes = 0;
	return backend->pid > 0;
}

void session_kill(struct session *session)
{
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++)
		if (session->backend[ix].pid > 0)
			kill(-session->backend[ix].pid, SIGKILL);
}

/* Ends a stage: it sees the end of its commands. One that does not go is killed. */
static void end(struct backend *backend, int deadline_ms)
{
	struct pollfd pipe_end = {.fd = backend->reply_fd, .events = POLLIN};
	pid_t pid = backend->pid;
	int status;

	if (pid <= 0)
		return;
	close(backend->command_fd);
	/* Its end of the pipe closes when it and its workers are gone. */
	poll(&pipe_end, 1, deadline_ms);
	close(backend->reply_fd);
	for (int waited_ms = 0; waitpid(pid, &status, WNOHANG) == 0; waited_ms++) {
		if (waited_ms >= deadline_ms)
			kill(-pid, SIGKILL);
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	/* Workers of a stage that was killed are still in its group. */
	kill(-pid, SIGKILL);
	backend->pid = 0;
}

static void send_command(struct backend *backend, const struct script *script)
{
	struct command command = {.kind = COMMAND_FINISH};
	ssize_t written;

	if (backend->sent < script->count) {
		command.kind = COMMAND_STEP;
		command.step = script->steps[backend->sent];
	}
	backend->sent++;
	written = write(backend->command_fd, &command, sizeof(command));
	(void)written; /* a stage that is gone will not answer */
}

static void give_up(struct backend *backend)
{
	struct answer *answer = &backend->answers[backend->answered++ % LAG_MAX];

	memset(&answer->reply, 0, sizeof(answer->reply));
	answer->reply.trouble = 1;
	text_copy(answer->events, sizeof(answer->events), "TROUBLE: the stage does not answer\n");
	answer->state[0] = '\0';
}

/* Takes one answer from the input; false if it is not all there. */
static bool take_answer(struct backend *backend)
{
	struct answer *answer = &backend->answers[backend->answered % LAG_MAX];
	struct reply *reply = &answer->reply;
	size_t size;

	if (backend->input_bytes < sizeof(*reply))
		return false;
	memcpy(reply, backend->input, sizeof(*reply));
	if (reply->event_bytes > EVENT_BYTES_MAX || reply->state_bytes > STATE_BYTES_MAX) {
		backend->input_bytes = 0;
		give_up(backend);
		return true;
	}
	size = sizeof(*reply) + reply->event_bytes + reply->state_bytes;
	if (backend->input_bytes < size)
		return false;
	memcpy(answer->events, backend->input + sizeof(*reply), reply->event_bytes);
	answer->events[reply->event_bytes] = '\0';
	memcpy(answer->state, backend->input + sizeof(*reply) + reply->event_bytes,
	       reply->state_bytes);
	answer->state[reply->state_bytes] = '\0';
	backend->answered++;
	backend->input_bytes -= size;
	memmove(backend->input, backend->input + size, backend->input_bytes);
	return true;
}

/* Waits until one of the stages that owe an answer has sent something. */
static void receive(struct session *session)
{
	/* A stage that has trouble says so itself, at its own deadline. */
	int patience_ms = session->deadline_ms * 4 + 10000;
	struct pollfd pollfds[BACKEND_COUNT];
	int ready;

	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++) {
		const struct backend *backend = &session->backend[ix];

		pollfds[ix].fd = backend->sent > backend->answered ? backend->reply_fd : -1;
		pollfds[ix].events = POLLIN;
	}
	do {
		ready = poll(pollfds, BACKEND_COUNT, patience_ms);
	} while (ready < 0 && errno == EINTR);
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++) {
		struct backend *backend = &session->backend[ix];
		ssize_t got = 0;

		if (pollfds[ix].fd < 0 || (ready > 0 && !pollfds[ix].revents))
			continue;
		if (ready > 0)
			got = read(backend->reply_fd, backend->input + backend->input_bytes,
				   sizeof(backend->input) - backend->input_bytes);
		if (got <= 0) {
			give_up(backend);
			continue;
		}
		backend->input_bytes += (size_t)got;
		while (backend->answered < backend->sent && take_answer(backend))
			;
	}
}

static void look_around(const struct answer *answer, struct world *world)
{
	const struct reply *reply = &answer->reply;

	memcpy(world->state, reply->worker_state, sizeof(world->state));
	memcpy(world->person, reply->person, sizeof(world->person));
	memcpy(world->stopped, reply->stopped, sizeof(world->stopped));
	memcpy(world->hints, reply->hints, sizeof(world->hints));
}

static void generate(const struct session *session, struct world *world, struct script *script)
{
	const struct backend *a = &session->backend[BACKEND_A];
	struct step step;

	if (script->count > 0)
		look_around(&a->answers[(script->count - 1) % LAG_MAX], world);
	world_generate(world, &step);
	script_append(script, &step);
	if (!(step_op(&step)->traits & OP_BY_STAGE) && step.by != BY_HANDLER)
		world->last[step.worker_ix] = step;
}

static void trace_step(const struct step *step, const struct answer *answer)
{
	char line[512];
	struct text text = TEXT_ON(line);

	script_put_step(&text, step);
	printf("%s\n%s%s", line, answer->events, answer->state);
}

static void note_difference(const struct session *session, struct verdict *verdict, size_t step_ix)
{
	const struct backend *a = &session->backend[BACKEND_A];

	verdict->differs = true;
	verdict->step_ix = step_ix;
	verdict->state_before =
		strdup(step_ix ? a->answers[(step_ix - 1) % LAG_MAX].state : "(nothing)\n");
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++) {
		const struct answer *answer = &session->backend[ix].answers[step_ix % LAG_MAX];

		verdict->trouble |= answer->reply.trouble;
		verdict->events[ix] = strdup(answer->events);
		verdict->state[ix] = strdup(answer->state);
	}
}

/* Compares what both have answered to step step_ix; true if they agree and can go on. */
static bool compare(struct session *session, const struct script *script, size_t step_ix)
{
	const struct answer *a = &session->backend[BACKEND_A].answers[step_ix % LAG_MAX];
	const struct answer *b = &session->backend[BACKEND_B].answers[step_ix % LAG_MAX];

	if (a->reply.trouble || b->reply.trouble || strcmp(a->events, b->events) ||
	    strcmp(a->state, b->state))
		return false;
	if (step_ix < script->count) {
		session->steps++;
		session->slept += a->reply.slept;
		session->woken += a->reply.woken;
		if (session->trace)
			trace_step(&script->steps[step_ix], a);
	}
	return true;
}

void session_play(struct session *session, struct script *script, struct world *world,
		  size_t step_count, struct verdict *ret_verdict)
{
	struct backend *a = &session->backend[BACKEND_A], *b = &session->backend[BACKEND_B];
	size_t compared = 0;
	bool started = true;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++)
		started &= start(session, &session->backend[ix], script);
	if (!started)
		abort();
	/* One command more than there are steps: the end. */
	while (compared < script->count + 1 && !ret_verdict->differs) {
		bool complete = !world || script->count >= step_count;

		if (!complete && a->answered == script->count &&
		    (a->answered == 0 || !a->answers[(a->answered - 1) % LAG_MAX].reply.trouble))
			generate(session, world, script);
		complete = !world || script->count >= step_count;
		for (unsigned ix = 0; ix < BACKEND_COUNT; ix++) {
			struct backend *backend = &session->backend[ix];

			/* The answers to the step before the one to compare next are kept. */
			while (backend->sent < script->count + complete &&
			       backend->sent + 2 < compared + LAG_MAX)
				send_command(backend, script);
		}
		if (a->sent > a->answered || b->sent > b->answered)
			receive(session);
		while (compared < a->answered && compared < b->answered && !ret_verdict->differs) {
			if (compare(session, script, compared))
				compared++;
			else
				note_difference(session, ret_verdict, compared);
		}
	}
	for (unsigned ix = 0; ix < BACKEND_COUNT; ix++)
		end(&session->backend[ix], session->deadline_ms);
}
