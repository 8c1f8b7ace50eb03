// SPDX-License-Identifier: MIT
/* Death at every instruction; see the header. */
#include "stepper.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ids.h"
#include "core/procs.h"
#include "core/rlock.h"
#include "ipc/repair.h"
#include "trace.h"
#include "unit/shm-calls.h"

/* In the large scenes recovery is stepped for each so-many-th death, and dies at each so-many-th
 * change. */
#define LARGE_SAMPLE 61

static const struct step_options *options;
static struct step_count *count;
static const struct scene *scene;

static const struct scene *const tables[] = {sem_scenes, msg_scenes, shm_scenes, life_scenes,
					     pair_scenes};

/* Engines for copies, which hold what was copied last; they last as long as the program. */
static struct engine *copy1, *copy2, *snap1, *snap2;

/* ---- Failures ---------------------------------------------------------------------------- */

static struct {
	uint64_t step, second; /* 0: no second death */
} at;

void step_fail(const char *format, ...)
{
	va_list args;

	if (count->failures++ > 20)
		return;
	fprintf(stderr, "FAILED %s/%s/%s, death after instruction %llu", scene->family,
		scene->operation, scene->situation, (unsigned long long)at.step);
	if (at.second)
		fprintf(stderr, ", second death after step %llu", (unsigned long long)at.second);
	fputs(": ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

uint64_t step_failures(void)
{
	return count->failures;
}

/* ---- The cast in a copy ------------------------------------------------------------------ */

static struct actor *twin(struct engine *e, const struct actor *of)
{
	return of ? engine_twin(e, of) : NULL;
}

/* The same people in `to`, which becomes a copy of from's region. */
static struct cast cast_in(struct engine *to, const struct cast *from)
{
	struct cast c = *from;

	engine_copy(to, from->e);
	to->actor_count = 0;
	to->shared->lock = 0; /* the harness's own: the victim may have been joining */
	c.e = to;
	c.victim = twin(to, from->victim);
	c.second = twin(to, from->second);
	c.thread = twin(to, from->thread);
	c.dead = twin(to, from->dead);
	c.recoverer = twin(to, from->recoverer);
	c.last = twin(to, from->last);
	c.pool = twin(to, from->pool);
	for (int i = 0; i < STEP_WAITERS; i++)
		c.waiter[i] = twin(to, from->waiter[i]);
	return c;
}

/* Whoever has come since the call began is dead. */
static void kill_entrants(struct cast *c)
{
	const struct header_shm *h = region_header(c->e->base);

	for (uint32_t ix = c->threads; ix < h->group_hi * GROUP_SPAN && ix < ENGINE_THREADS; ix++)
		c->e->shared->thread_dead[ix] = 1;
	for (uint32_t ix = c->procs; ix < h->proc_hi && ix < ENGINE_PROCS; ix++)
		c->e->shared->proc_dead[ix] = 1;
	/* Reserved and never used: what the client frees when the kernel's token is free. */
	for (uint32_t ix = c->procs; ix < h->proc_hi && !c->forks; ix++)
		procs_unreserve(c->e->base, ix, region_proc(c->e->base, ix)->state);
}

static void kill_victims(struct cast *c)
{
	if (c->enters)
		kill_entrants(c);
	if (!c->enters)
		engine_kill(c->victim);
	if (c->second)
		engine_kill(c->second);
}

static void check_clean(const struct cast *c)
{
	if (engine_check(c->e))
		step_fail("not clean");
}

/* All that is to be done about the dead. */
static void recover(struct cast *c, struct actor *by)
{
	uint32_t groups = region_header(c->e->base)->group_hi;

	if (c->pool) {
		/* The threads first, then the processes. In between blocks are taken: one that was
		 * freed although a process still has it in its chain is then somebody else's. */
		for (uint32_t g = 0; g < groups; g++)
			for (uint32_t k = 0; k < GROUP_THREADS; k++)
				while (repair_bury_thread(&by->c, g * GROUP_SPAN + k, true) ==
				       BURIAL_BUSY)
					engine_wait(by);
		view_take_blocks(c, by);
	}
	if (c->enters || c->sweeps || c->second || c->pool)
		engine_sweep(by);
	else
		engine_bury(by, c->victim);
	if (c->forks)
		free_reserved(by);
	if (c->pool && by == c->last)
		check_clean(c); /* each block still has one owner */
	if (c->pool)
		view_give_blocks(c, by);
}

/* Somebody begins to sleep on a lock just before its owner dies. */
static uint64_t sleep_on_lock_of(struct cast *c, const struct actor *owner)
{
	uint64_t off = owner ? actor_slot(owner)->held : 0;
	rlock_shm *word = off ? region_at(c->e->base, off) : NULL;

	if (!word || (*word & RLOCK_OWNER) != owner->c.thread_ix + 1)
		return 0;
	*word |= RLOCK_W;
	return off;
}

static struct cast die_in(struct engine *e, const struct cast *from)
{
	struct cast c = cast_in(e, from);

	kill_victims(&c);
	return c;
}

/* What is left when the victim has done this (null: nothing) and died. */
static void state_after(const struct cast *c, void (*f)(struct cast *), struct text *t)
{
	struct cast s = cast_in(copy1, c);

	if (f)
		f(&s);
	kill_victims(&s);
	recover(&s, s.last);
	check_clean(&s);
	view_describe(&s, t);
}

/* ---- The second depth -------------------------------------------------------------------- */

static void recover_by_recoverer(struct cast *c)
{
	recover(c, c->recoverer);
}

struct recovery {
	struct cast cast; /* in copy1 */
	struct text expected;
	uint64_t changes;
	uint32_t every;
};

/* The recoverer of copy1 dies too, here in copy2. */
static void second_death(void *context, uint64_t n)
{
	static struct text seen;
	struct recovery *r = context;
	const struct text *expected = &r->expected;
	struct cast s;

	if (r->changes++ % r->every)
		return;
	s = cast_in(copy2, &r->cast);
	count->second_deaths++;
	at.second = n;
	engine_kill(s.recoverer);
	if (n & 1) { /* others work before anybody looks after the dead */
		int32_t id = engine_semget(s.last, 0, 2, 0600);
		struct actor *other = engine_join(s.e), *pool = s.pool;

		if (id < 0 || engine_op(s.last, id, 0, 1, 0) != 0)
			step_fail("nothing can be done between two deaths");
		/* What the dead had, and the dead burier was giving back. */
		s.pool = s.dead ? s.dead : s.victim;
		view_take_blocks(&s, other);
		s.pool = pool;
		engine_bury(s.last, s.recoverer);
		recover(&s, s.last);
		check_clean(&s);
		view_give_blocks(&s, other);
	} else {
		engine_bury(s.last, s.recoverer);
		recover(&s, s.last);
		check_clean(&s);
		/* Its own slots aside, which are gone. */
		s.recoverer = NULL;
		view_describe(&s, &seen);
		if (strcmp(seen.s, expected->s) != 0)
			step_fail("another outcome than that of the first death\n--- %s--- %s",
				  expected->s, seen.s);
		view_check_wakes(&s, 0);
	}
	view_work_and_take_down(&s);
	at.second = 0;
}

static void step_recovery(const struct cast *c, bool by_stores)
{
	static struct recovery r;
	struct cast s = die_in(copy1, c), runner;

	r.changes = 0;
	r.every = scene->flags & SCENE_LARGE ? LARGE_SAMPLE : 1;
	/* As it is when the recoverer is dead and buried too. */
	engine_kill(s.recoverer);
	engine_bury(s.last, s.recoverer);
	recover(&s, s.last);
	view_describe(&s, &r.expected);
	r.cast = die_in(copy1, c);
	(void)sleep_on_lock_of(&r.cast, r.cast.victim);
	/* The actor is changed by what it does: copies are made of its twin. */
	runner = r.cast;
	runner.recoverer = twin(copy1, r.cast.recoverer);
	if (by_stores)
		count->stores +=
			trace_stores(recover_by_recoverer, &runner, snap2, second_death, &r);
	else
		count->instructions +=
			trace_instructions(recover_by_recoverer, &runner, snap2, second_death, &r);
}

/* ---- The first depth --------------------------------------------------------------------- */

static struct text before, after;
static bool committed;

static void compare(const struct text *seen)
{
	bool is_before = strcmp(seen->s, before.s) == 0;
	bool is_after = strcmp(seen->s, after.s) == 0;

	if (!is_before && !is_after)
		step_fail("neither before nor after\n--- before\n%s--- after\n%s--- seen\n%s",
			  before.s, after.s, seen->s);
	if (committed && !is_after)
		step_fail("done before, and now it is not");
	committed |= is_after && !is_before;
}

static void one_death(const struct cast *c, uint64_t n)
{
	static struct text seen;
	struct cast s = die_in(copy1, c);
	uint64_t lock = c->enters ? 0 : sleep_on_lock_of(&s, s.victim);

	count->deaths++;
	if (n & 1) /* met by others first, buried later */
		for (int i = 0; i < STEP_OBJECTS; i++)
			if (c->id[i] >= 0) {
				(void)engine_getval(s.last, c->id[i], 0);
				(void)engine_getncnt(s.last, c->id[i], 0);
			}
	recover(&s, s.last);
	check_clean(&s);
	view_describe(&s, &seen);
	compare(&seen);
	view_check_wakes(&s, lock);
	view_work_and_take_down(&s);
}

/* Recovery is stepped for the k-th death; now and then both ways, which must see the same. */
static void deep_death(const struct cast *c, uint64_t k)
{
	bool traced =
		!trace_knows_stores || (options->traced_every && k % options->traced_every == 0);

	if (trace_knows_stores)
		step_recovery(c, true);
	if (traced)
		step_recovery(c, false);
}

static bool is_taken(const struct engine *e, uint32_t thread_ix)
{
	const struct thread_shm *t = region_thread(e->base, thread_ix);

	return t && (CLAIM_GEN(t->claim) & 1);
}

static void set_up(struct cast *c)
{
	*c = (struct cast){.e = engine_new()};
	at.step = at.second = 0;
	for (int i = 0; i < STEP_OBJECTS; i++)
		c->id[i] = -1;
	c->last = engine_join(c->e);
	c->recoverer = engine_join(c->e);
	c->victim = engine_join(c->e);
	if (scene->second)
		c->second = engine_join(c->e);
	scene->prepare(c);
	c->wakes = c->e->shared->wakes;
	for (uint32_t ix = region_header(c->e->base)->proc_hi; !c->procs && ix-- > 0;)
		if (region_proc(c->e->base, ix)->state != PROC_FREE)
			c->procs = ix + 1;
	c->threads = region_header(c->e->base)->group_hi * GROUP_SPAN;
	while (c->threads && !is_taken(c->e, c->threads - 1))
		c->threads--;
	if (engine_check(c->e))
		step_fail("not clean to begin with");
}

static void tear_down(struct cast *c)
{
	kill_victims(c);
	for (int i = 0; i < 4; i++)
		if (c->lock[i])
			*(rlock_shm *)region_at(c->e->base, c->lock[i]) = 0;
	view_take_down(c);
	if (engine_free(c->e))
		step_fail("not clean at the end");
}

struct first {
	struct cast cast;
	uint64_t changes, deaths;
};

static void first_change(void *context, uint64_t n)
{
	uint32_t deep = scene->flags & SCENE_LARGE && options->deep_every < LARGE_SAMPLE
				? LARGE_SAMPLE
				: options->deep_every;
	struct first *f = context;

	if (f->changes++ % options->every)
		return;
	at.step = n;
	one_death(&f->cast, n);
	if (options->deep_every && f->deaths % deep == 0)
		deep_death(&f->cast, f->deaths / deep);
	f->deaths++;
}

static bool run_single(void)
{
	struct first f = {0};
	uint64_t steps;

	set_up(&f.cast);
	state_after(&f.cast, NULL, &before);
	state_after(&f.cast, scene->act, &after);
	committed = false;
	steps = trace_instructions(scene->act, &f.cast, snap1, first_change, &f);
	count->instructions += steps;
	if (steps && !f.changes)
		step_fail("nothing was done");
	if (steps && strcmp(before.s, after.s) != 0 && options->every == 1 && !committed)
		step_fail("it never came to be done");
	if (options->verbose)
		printf("%s/%s/%s: %llu instructions, %llu changes, %llu deaths, commit %s\n",
		       scene->family, scene->operation, scene->situation, (unsigned long long)steps,
		       (unsigned long long)f.changes, (unsigned long long)f.deaths,
		       strcmp(before.s, after.s) ? "seen" : "not to be seen");
	tear_down(&f.cast);
	return steps != 0;
}

/* ---- Two deaths at once ------------------------------------------------------------------ */

/*
 * What may be seen after it: each of the two made its call (a, b) or not, and died at some moment
 * after it (A, B), when it was buried at once. A recovery that finishes the call of one may find
 * the other dead already.
 */
static const char *const histories[] = {
	"AB",  "BA",   "aAB",  "aBA",  "BaA",  "bBA",  "bAB",
	"AbB", "abAB", "abBA", "baAB", "baBA", "aAbB", "bBaA",
};
#define HISTORIES (sizeof(histories) / sizeof(histories[0]))

static struct text outcome[HISTORIES];

static void die_and_be_buried(struct cast *c, struct actor *a)
{
	engine_kill(a);
	engine_bury(c->last, a);
}

static void state_after_history(const struct cast *c, const char *history, struct text *t)
{
	struct cast s = cast_in(copy1, c);

	for (; *history; history++)
		switch (*history) {
		case 'a':
			scene->act(&s);
			break;
		case 'b':
			scene->second(&s);
			break;
		case 'A':
			die_and_be_buried(&s, s.victim);
			break;
		default:
			die_and_be_buried(&s, s.second);
		}
	recover(&s, s.last);
	check_clean(&s);
	view_describe(&s, t);
}

/* Both are dead; context: the cast in copy1. */
static void both_die(void *context, uint64_t n)
{
	static struct text seen;
	struct cast s = cast_in(copy2, context);
	size_t i = 0;

	count->pair_deaths++;
	at.second = n;
	(void)sleep_on_lock_of(&s, s.victim);
	(void)sleep_on_lock_of(&s, s.second);
	kill_victims(&s);
	if (n & 1)
		engine_bury(s.last, s.second);
	recover(&s, s.last);
	check_clean(&s);
	view_describe(&s, &seen);
	while (i < HISTORIES && strcmp(seen.s, outcome[i].s) != 0)
		i++;
	if (i == HISTORIES)
		step_fail("no outcome that the two can have\n--- neither\n%s--- the first\n%s"
			  "--- the second\n%s--- both\n%s--- seen\n%s",
			  outcome[0].s, outcome[2].s, outcome[5].s, outcome[8].s, seen.s);
	view_check_wakes(&s, 0);
	view_work_and_take_down(&s);
	at.second = 0;
}

/*
 * The first is stopped, or dead and not buried: the second begins, and both are dead at each change
 * that it makes. Who is stopped may be in its way; the dead are not.
 */
static void second_begins(const struct cast *from, bool is_dead)
{
	struct cast s, runner;

	runner = s = cast_in(copy1, from);
	runner.second = twin(copy1, s.second);
	if (is_dead)
		engine_kill(s.victim);
	else
		both_die(&s, 0);
	count->stores += trace_stores(scene->second, &runner, snap2, both_die, &s);
}

static void first_stops(void *context, uint64_t n)
{
	struct first *f = context;

	if (f->changes++ % options->every)
		return;
	at.step = n;
	second_begins(&f->cast, false);
	second_begins(&f->cast, true);
}

static bool run_pair(void)
{
	uint64_t deaths = count->pair_deaths, steps;
	struct first f = {0};

	set_up(&f.cast);
	for (size_t i = 0; i < HISTORIES; i++)
		state_after_history(&f.cast, histories[i], &outcome[i]);
	steps = trace_instructions(scene->act, &f.cast, snap1, first_stops, &f);
	count->instructions += steps;
	deaths = count->pair_deaths - deaths;
	if (steps && !deaths)
		step_fail("nothing was done");
	if (options->verbose)
		printf("%s/%s/%s: %llu instructions, %llu changes, %llu double deaths\n",
		       scene->family, scene->operation, scene->situation, (unsigned long long)steps,
		       (unsigned long long)f.changes, (unsigned long long)deaths);
	tear_down(&f.cast);
	return steps != 0;
}

/* ------------------------------------------------------------------------------------------ */

static bool is_wanted(void)
{
	static uint32_t number;
	char name[256];

	if (!(scene->second ? options->pairs : options->singles))
		return false;
	if (number++ % options->scene_every)
		return false;
	if (!options->only)
		return true;
	snprintf(name, sizeof(name), "%s/%s/%s", scene->family, scene->operation, scene->situation);
	return strstr(name, options->only) != NULL;
}

int step_all(const struct step_options *o, struct step_count *ret)
{
	const char *operation = "";
	bool runs = true;

	options = o;
	count = ret;
	copy1 = engine_new();
	copy2 = engine_new();
	snap1 = engine_new();
	snap2 = engine_new();
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (scene = tables[i]; scene->family && runs; scene++) {
			if (!is_wanted())
				continue;
			if (((scene->flags & SCENE_LARGE) && !o->large) ||
			    (o->end_ns && engine_now_ns() > o->end_ns)) {
				count->left_out++;
				continue;
			}
			count->situations++;
			count->operations += strcmp(operation, scene->operation) != 0;
			operation = scene->operation;
			runs = scene->second ? run_pair() : run_single();
			fflush(stdout);
		}
	return runs ? 0 : 77;
}

void step_list(void)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct scene *s = tables[i]; s->family; s++)
			printf("%-6s %-14s %s%s\n", s->family, s->operation, s->situation,
			       s->flags & SCENE_LARGE ? " (large)" : "");
}
