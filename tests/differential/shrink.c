// SPDX-License-Identifier: MIT
/*
 * Delta debugging. Every subset of a script is a valid script: a step for a worker that is
 * busy, or on a slot that is empty, does the same harmless thing on both sides. First whole
 * runs of steps go, in pieces that get smaller; then single steps are simplified; then workers
 * and processes that have nothing left to do go. Repeated until nothing changes any more.
 *
 * Any difference counts, not only the one seen first: a smaller script with another difference
 * is as welcome. Only trouble (a deadline, a crash) does not replace a difference in results.
 */
#include "shrink.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct search {
	struct session *session;
	struct script *best;
	struct verdict *verdict;
	time_t until;
	unsigned tries;
	unsigned tries_max;
	bool expired;
};

/* Is the candidate a failure too? Then it is the best so far. Takes the candidate over. */
static bool try_script(struct search *search, struct script *candidate)
{
	struct verdict verdict;

	if (time(NULL) >= search->until || search->tries >= search->tries_max)
		search->expired = true;
	if (search->expired) {
		script_free(candidate);
		return false;
	}
	search->tries++;
	session_play(search->session, candidate, NULL, 0, &verdict);
	if (!verdict.differs || (verdict.trouble && !search->verdict->trouble)) {
		verdict_free(&verdict);
		script_free(candidate);
		return false;
	}
	/* What comes after the difference is not needed. */
	if (candidate->count > verdict.step_ix + 1)
		candidate->count = verdict.step_ix + 1;
	script_free(search->best);
	*search->best = *candidate;
	verdict_free(search->verdict);
	*search->verdict = verdict;
	return true;
}

static bool remove_steps(struct search *search, size_t from, size_t count)
{
	struct script candidate = {0};

	script_copy(&candidate, search->best);
	memmove(&candidate.steps[from], &candidate.steps[from + count],
		(candidate.count - from - count) * sizeof(struct step));
	candidate.count -= count;
	return try_script(search, &candidate);
}

/* From the end towards the start: late steps depend on early ones, seldom the reverse. */
static bool remove_pieces(struct search *search, size_t piece)
{
	size_t end = search->best->count;
	bool any = false;

	while (end > 0 && !search->expired) {
		size_t count = piece < end ? piece : end;
		size_t from = end - count;

		any |= remove_steps(search, from, count);
		end = from < search->best->count ? from : search->best->count;
	}
	return any;
}

static bool simplify_steps(struct search *search)
{
	bool any = false;

	for (size_t ix = 0; ix < search->best->count; ix++) {
		unsigned variant = 0;

		while (ix < search->best->count && !search->expired) {
			struct script candidate = {0};
			struct step simpler;

			if (!script_simplify(&search->best->steps[ix], variant, &simpler))
				break;
			script_copy(&candidate, search->best);
			candidate.steps[ix] = simpler;
			if (try_script(search, &candidate))
				any = true; /* the same variant number is another one now */
			else
				variant++;
		}
	}
	return any;
}

/* Takes one thread away from a process; the workers behind it move up. */
static bool remove_worker(struct search *search, unsigned worker_ix)
{
	struct script candidate = {0};
	unsigned process_ix = 0, left = worker_ix;

	for (size_t ix = 0; ix < search->best->count; ix++)
		if (search->best->steps[ix].worker_ix == worker_ix)
			return false;
	if (script_worker_count(search->best) == 1)
		return false;
	script_copy(&candidate, search->best);
	while (left >= candidate.threads[process_ix])
		left -= candidate.threads[process_ix++];
	if (--candidate.threads[process_ix] == 0) {
		memmove(&candidate.threads[process_ix], &candidate.threads[process_ix + 1],
			(WORKERS_MAX - process_ix - 1) * sizeof(candidate.threads[0]));
		candidate.process_count--;
	}
	for (size_t ix = 0; ix < candidate.count; ix++)
		if (candidate.steps[ix].worker_ix > worker_ix)
			candidate.steps[ix].worker_ix--;
	return try_script(search, &candidate);
}

static bool remove_workers(struct search *search)
{
	bool any = false;

	for (unsigned ix = script_worker_count(search->best); ix-- > 0;)
		any |= remove_worker(search, ix);
	return any;
}

void shrink(struct session *session, struct script *script, struct verdict *verdict,
	    int seconds_max, unsigned tries_max)
{
	struct search search = {
		.session = session,
		.best = script,
		.verdict = verdict,
		.until = time(NULL) + seconds_max,
		.tries_max = tries_max,
	};
	size_t before = script->count;
	bool any = true;

	if (script->count > verdict->step_ix + 1)
		script->count = verdict->step_ix + 1;
	while (any && !search.expired) {
		any = false;
		for (size_t piece = script->count / 2; piece > 1; piece /= 2)
			any |= remove_pieces(&search, piece);
		while (remove_pieces(&search, 1))
			any = true;
		any |= remove_workers(&search);
		any |= simplify_steps(&search);
	}
	printf("shrunk from %zu steps to %zu in %u tries%s\n", before, script->count, search.tries,
	       search.expired ? " (then gave up)" : "");
}
