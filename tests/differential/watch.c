// SPDX-License-Identifier: MIT
/*
 * States of threads, from /proc. The files are kept open: opening costs three times as much as
 * reading. schedstat counts runs in one short line; where the kernel lacks it, the context
 * switches of `status` serve.
 */
#include "watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_proc(pid_t pid, pid_t tid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void watch_start(struct watch *watch, pid_t pid, pid_t tid)
{
	watch_end(watch);
	watch->tid = tid;
	watch->state_fd = open_proc(pid, tid, "stat");
	watch->runs_fd = open_proc(pid, tid, "schedstat");
	watch->runs_in_status = watch->runs_fd < 0;
	if (watch->runs_in_status)
		watch->runs_fd = open_proc(pid, tid, "status");
}

void watch_end(struct watch *watch)
{
	if (watch->state_fd >= 0)
		close(watch->state_fd);
	if (watch->runs_fd >= 0)
		close(watch->runs_fd);
	watch->state_fd = -1;
	watch->runs_fd = -1;
	watch->tid = 0;
	watch->runs = 0;
}

static bool read_runs(struct watch *watch, unsigned long long *ret_runs)
{
	char buffer[4096];
	ssize_t bytes = pread(watch->runs_fd, buffer, sizeof(buffer) - 1, 0);
	const char *at;

	if (bytes <= 0)
		return false;
	buffer[bytes] = '\0';
	if (watch->runs_in_status) {
		unsigned long long sum = 0;

		for (at = buffer; (at = strstr(at, "ctxt_switches:\t")) != NULL;) {
			at += strlen("ctxt_switches:\t");
			sum += strtoull(at, NULL, 10);
		}
		*ret_runs = sum;
		return true;
	}
	at = strrchr(buffer, ' ');
	*ret_runs = at ? strtoull(at + 1, NULL, 10) : 0;
	return true;
}

static bool read_state(struct watch *watch, char *ret_state)
{
	char buffer[512];
	ssize_t bytes = pread(watch->state_fd, buffer, sizeof(buffer) - 1, 0);
	const char *at;

	if (bytes <= 0)
		return false;
	buffer[bytes] = '\0';
	at = strrchr(buffer, ')');
	if (!at || at[1] != ' ')
		return false;
	*ret_state = at[2];
	return true;
}

static bool is_at_rest(char state)
{
	return state == 'S' || state == 'T' || state == 't';
}

/*
 * State first, then runs: a run that is under way is not taken for one that was seen to end.
 * A new number of runs is believed only if the thread is seen at rest between two readings.
 */
enum look watch_look(struct watch *watch)
{
	unsigned long long runs, runs_again;
	char state;

	if (!read_state(watch, &state))
		return LOOK_DEAD;
	if (state == 'Z' || state == 'X' || state == 'x')
		return LOOK_DEAD;
	if (!is_at_rest(state))
		return LOOK_RUNNING;
	if (!read_runs(watch, &runs))
		return LOOK_DEAD;
	if (runs == watch->runs)
		return state == 'S' ? LOOK_ASLEEP : LOOK_STOPPED;
	if (!read_state(watch, &state) || !read_runs(watch, &runs_again))
		return LOOK_DEAD;
	if (!is_at_rest(state) || runs_again != runs)
		return LOOK_RUNNING;
	watch->runs = runs;
	return LOOK_CHANGED;
}

bool watch_is_stopped(struct watch *watch)
{
	char state;

	return !read_state(watch, &state) || state == 'T';
}
