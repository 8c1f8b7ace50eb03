// SPDX-License-Identifier: MIT
/*
 * What happens to processes: signals, ends of every kind, exec, change of user, the passing of
 * a second, and the files in /proc that show the objects.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "families.h"
#include "family_shm.h"
#include "stage.h"
#include "worker.h"

const struct person persons[PERSON_COUNT] = {
	{"root", 0, 0},
	{"alice", 61001, 61001},
	{"bob", 61002, 61001}, /* of alice's group */
	{"carol", 61003, 61003},
};

enum {
	OP_SIGNAL,
	OP_KILL,
	OP_STOP,
	OP_CONTINUE,
	OP_EXIT,
	OP_EXEC,
	OP_RENEW,
	OP_BECOME,
	OP_TICK,
	OP_VIEW,
	OP_COUNT,
};

enum how {
	HOW_EXIT,
	HOW_UNDERSCORE_EXIT,
	HOW_QUICK_EXIT,
	HOW_ABORT,
	HOW_COUNT,
};

static const struct name_value how_names[] = {
	{"exit", HOW_EXIT},
	{"_exit", HOW_UNDERSCORE_EXIT},
	{"quick_exit", HOW_QUICK_EXIT},
	{"abort", HOW_ABORT},
	{NULL, 0},
};

static const struct name_value person_names[] = {
	{"root", 0}, {"alice", 1}, {"bob", 2}, {"carol", 3}, {NULL, 0},
};

static void act_signal(struct stage *stage, const struct step *step, struct text *text)
{
	unsigned worker_ix = step->worker_ix;

	if (!stage_is_busy(stage, worker_ix)) {
		text_puts(text, "is idle\n");
		return;
	}
	syscall(SYS_tgkill, stage_pid(stage, worker_ix), stage->shared->desk[worker_ix].tid,
		SIGUSR1);
}

static void act_kill(struct stage *stage, const struct step *step, struct text *text)
{
	(void)text;
	kill(stage_pid(stage, step->worker_ix), SIGKILL);
	stage_replace(stage, stage->shared->process_of[step->worker_ix], "killed");
}

static void act_stop(struct stage *stage, const struct step *step, struct text *text)
{
	if (!stage_is_busy(stage, step->worker_ix)) {
		text_puts(text, "is idle\n");
		return;
	}
	stage_stop(stage, stage->shared->process_of[step->worker_ix]);
}

static void act_continue(struct stage *stage, const struct step *step, struct text *text)
{
	(void)text;
	stage->shared->stopped[stage->shared->process_of[step->worker_ix]] = 0;
	kill(stage_pid(stage, step->worker_ix), SIGCONT);
}

/* From here on, times are of a later second than all before. */
static void act_tick(struct stage *stage, const struct step *step, struct text *text)
{
	struct shared *shared = stage->shared;
	time_t before = time(NULL);

	(void)step;
	if (shared->tick_count == TICKS_MAX) {
		text_puts(text, "no more ticks\n");
		return;
	}
	while (time(NULL) == before)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	shared->tick[shared->tick_count++] = time(NULL);
}

/* One line of a file of /proc/sysvipc, its pids and times made comparable. */
static void put_view_line(const struct shared *shared, struct text *text, const char *line,
			  const char *columns)
{
	unsigned blur = 0, column_ix = 0;
	long long there = 0;

	for (; *line && *line != '\n'; column_ix++) {
		size_t blanks = strspn(line, " ");
		size_t length = strcspn(line + blanks, " \n");
		long long value = strtoll(line + blanks, NULL, 10);

		if (column_ix == 1)
			blur = shm_blur_of(shared, (int)value);
		switch (*columns) {
		case 'l':
			text_puts(text, " ");
			if (blur & BLUR_LPID)
				text_puts(text, "~");
			else
				shared_put_pid(shared, text, (pid_t)value);
			break;
		case 'a':
		case 'd':
			text_puts(text, " ");
			if (blur & (*columns == 'a' ? BLUR_ATIME : BLUR_DTIME))
				text_puts(text, "~");
			else
				shared_put_time(shared, text, (time_t)value);
			break;
		case 'r':
			there = value;
			break;
		case 's':
			text_printf(text, " %lld", there + value);
			break;
		case 'p':
			text_puts(text, " ");
			shared_put_pid(shared, text, (pid_t)value);
			break;
		case 't':
			text_puts(text, " ");
			shared_put_time(shared, text, (time_t)value);
			break;
		default:
			text_printf(text, "%.*s", (int)(blanks + length), line);
			break;
		}
		if (*columns)
			columns++;
		line += blanks + length;
	}
	text_puts(text, "\n");
}

static void act_view(struct stage *stage, const struct step *step, struct text *text)
{
	(void)step;
	for (unsigned ix = 0; ix < families_count; ix++) {
		char buffer[8192];
		ssize_t bytes;
		bool header = true;
		int fd;

		if (!families[ix]->view_path || !(stage->shared->families >> ix & 1))
			continue;
		fd = open(families[ix]->view_path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			text_printf(text, "%s: errno %d\n", families[ix]->view_path, errno);
			continue;
		}
		bytes = read(fd, buffer, sizeof(buffer) - 1);
		close(fd);
		buffer[bytes > 0 ? bytes : 0] = '\0';
		for (const char *line = buffer; *line;) {
			put_view_line(stage->shared, text, line,
				      header ? "" : families[ix]->view_columns);
			header = false;
			line += strcspn(line, "\n");
			line += *line == '\n';
		}
	}
}

static void call_exit(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	(void)hands;
	(void)outcome;
	switch (step->arg[0]) {
	case HOW_EXIT:
		exit(3);
	case HOW_UNDERSCORE_EXIT:
		_exit(4);
	case HOW_QUICK_EXIT:
		quick_exit(5);
	default:
		abort();
	}
}

static bool sibling_is_busy(const struct hands *hands)
{
	for (unsigned ix = 0; ix < hands->shared->worker_count; ix++)
		if (ix != hands->worker_ix && hands->shared->process_of[ix] == hands->process_ix &&
		    atomic_load(&hands->shared->desk[ix].state) == DESK_BUSY)
			return true;
	return false;
}

static void call_exec(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	(void)step;
	/* A new image of another user may be locked out of what the old one had open. */
	if (geteuid() != getuid())
		text_copy(outcome->text, sizeof(outcome->text), "not as another user");
	else if (worker_exec(hands) < 0)
		text_copy(outcome->text, sizeof(outcome->text), "failed");
}

static void call_renew(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	(void)step;
	/* Without its first thread a process looks dead from outside. */
	if (getpid() == (pid_t)syscall(SYS_gettid)) {
		text_copy(outcome->text, sizeof(outcome->text), "not the first thread");
		return;
	}
	text_copy(outcome->text, sizeof(outcome->text), "another thread");
	worker_renew_thread(hands);
}

static void call_become(struct hands *hands, const struct step *step, struct outcome *outcome)
{
	const struct person *person = &persons[step->arg[0] & (PERSON_COUNT - 1)];
	struct text text = TEXT_ON(outcome->text);

	/* The C library changes the other threads by a signal, which would interrupt them. */
	if (sibling_is_busy(hands)) {
		text_puts(&text, "not while another thread is in a call");
		return;
	}
	if (seteuid(0) || setegid(person->gid) || seteuid(person->uid)) {
		text_printf(&text, "failed, errno %d", errno);
		return;
	}
	worker_die_with_parent();
	for (unsigned ix = 0; ix < hands->shared->worker_count; ix++)
		if (hands->shared->process_of[ix] == hands->process_ix)
			hands->shared->person[ix] = (uint8_t)(person - persons);
	text_puts(&text, person->name);
}

static const struct op process_ops[OP_COUNT] = {
	[OP_SIGNAL] = {.name = "signal", .traits = OP_BY_STAGE, .act = act_signal},
	[OP_KILL] = {.name = "kill", .traits = OP_BY_STAGE, .act = act_kill},
	[OP_STOP] = {.name = "stop", .traits = OP_BY_STAGE, .act = act_stop},
	[OP_CONTINUE] = {.name = "continue", .traits = OP_BY_STAGE, .act = act_continue},
	[OP_EXIT] = {.name = "exit",
		     .traits = OP_ENDS_PROCESS,
		     .call = call_exit,
		     .params = {{"how", PARAM_CHOICE, 0, HOW_EXIT, how_names}}},
	[OP_EXEC] = {.name = "exec", .traits = OP_RENEWS_THREADS | OP_LOUD, .call = call_exec},
	[OP_RENEW] = {.name = "renew", .traits = OP_RENEWS_THREADS, .call = call_renew},
	[OP_BECOME] = {.name = "become",
		       .call = call_become,
		       .params = {{"whom", PARAM_CHOICE, 0, 0, person_names}}},
	[OP_TICK] = {.name = "tick", .traits = OP_BY_STAGE, .act = act_tick},
	[OP_VIEW] = {.name = "view", .traits = OP_BY_STAGE, .act = act_view},
};

static void choose_style(struct world *world)
{
	static const unsigned few[] = {0, 2, 5, 10}, often[] = {2, 5, 10};
	unsigned *style = world->style[FAMILY_PROCESS];

	style[OP_SIGNAL] = world_draw(world, often, 3);
	style[OP_KILL] = world_draw(world, few, 4);
	style[OP_STOP] = world->with_stops ? world_draw(world, few, 4) : 0;
	style[OP_CONTINUE] = world->with_stops ? 10 : 0;
	style[OP_EXIT] = world_draw(world, few, 4);
	style[OP_EXEC] = world_draw(world, few, 4) / 2;
	style[OP_RENEW] = world_draw(world, few, 4) / 2;
	style[OP_BECOME] = world->with_users ? world_draw(world, few, 4) * 2 : 0;
	style[OP_VIEW] = 2;
	style[OP_TICK] = world->with_ticks && random_percent(&world->random, 5) ? 1 : 0;
}

/* A worker that op can be done to now. */
static int choose_worker(struct world *world, unsigned op_ix)
{
	switch (op_ix) {
	case OP_SIGNAL:
	case OP_STOP:
		return world_worker(world, WORKER_ASLEEP);
	case OP_KILL:
		return world_worker(world, random_percent(&world->random, 50) ? WORKER_ASLEEP
									      : WORKER_IDLE);
	case OP_CONTINUE:
		for (unsigned ix = 0; ix < world->worker_count; ix++)
			if (world->stopped[ix])
				return (int)ix;
		return -1;
	case OP_TICK:
	case OP_VIEW:
		return 0;
	default:
		return world_worker(world, WORKER_IDLE);
	}
}

static bool generate(struct world *world, struct step *step)
{
	unsigned op_ix = random_weighted(&world->random, world->style[FAMILY_PROCESS], OP_COUNT);
	int worker_ix;

	/* Nobody can be asked for anything: wake somebody up. */
	if (world->idle_count == 0 && op_ix != OP_KILL && op_ix != OP_CONTINUE)
		op_ix = OP_SIGNAL;
	worker_ix = choose_worker(world, op_ix);
	if (worker_ix < 0)
		return false;
	/* The stage cannot deliver anything but SIGKILL to a stopped worker. */
	if (world->stopped[worker_ix] && op_ix != OP_KILL && op_ix != OP_CONTINUE)
		return false;
	step->op_ix = (uint8_t)op_ix;
	step->worker_ix = (uint8_t)worker_ix;
	switch (op_ix) {
	case OP_EXIT:
		step->arg[0] = random_below(&world->random, HOW_COUNT);
		break;
	case OP_BECOME:
		step->arg[0] = world->person[worker_ix]
				       ? 0
				       : 1 + random_below(&world->random, PERSON_COUNT - 1);
		break;
	case OP_EXEC:
		if (world->person[worker_ix])
			return false;
		break;
	default:
		break;
	}
	return true;
}

const struct family process_family = {
	.name = "process",
	.ops = process_ops,
	.op_count = OP_COUNT,
	.generate = generate,
	.choose_style = choose_style,
};
