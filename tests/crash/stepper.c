// SPDX-License-Identifier: MIT
/* Death at every instruction; see the header. */
#include "stepper.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/ids.h"
#include "core/procs.h"
#include "core/rlock.h"
#include "ipc/repair.h"
#include "ipc/sem_priv.h"

#define NOW               1700000000
#define INSTRUCTIONS_MOST 3000000

static const struct step_options *options;
static struct step_count *count;
static const struct scene *scene;

/* ---- Failures ---------------------------------------------------------------------------- */

static struct {
	uint64_t instruction, second; /* 0: no second death */
} at;

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fail(const char *format, ...)
{
	va_list args;

	if (count->failures++ > 20)
		return;
	fprintf(stderr, "FAILED %s, death after instruction %llu", scene->name,
		(unsigned long long)at.instruction);
	if (at.second)
		fprintf(stderr, ", of the recovery after %llu", (unsigned long long)at.second);
	fputs(": ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- What others see --------------------------------------------------------------------- */

struct text {
	size_t used;
	char s[STEP_TEXT];
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->s + t->used, sizeof(t->s) - t->used, format, args);
	va_end(args);
	EXPECT(n >= 0 && t->used + (size_t)n < sizeof(t->s));
	t->used += (size_t)n;
}

static void describe_set(const struct cast *c, int32_t id, struct text *t)
{
	struct sem_view v;
	struct caller *by = &c->last->c;

	if (sem_view_id(by, id, &v) != 0) {
		add(t, "set %d: none\n", id);
		return;
	}
	add(t, "set %d: %u semaphores, mode %o, uid %u, ctime %d\n", id, v.nsems,
	    v.set->object.mode, v.set->object.uid, v.set->object.ctime != 0);
	for (uint32_t s = 0; s < v.nsems && s < 12; s++) {
		add(t, "  %u: value %d, pid %d, %s", s, engine_getval(c->last, id, s),
		    engine_getpid(c->last, id, s), view_word(&v, s)->otime ? "used" : "unused");
		add(t, ", waited for by %d and %d\n", engine_getncnt(c->last, id, s),
		    engine_getzcnt(c->last, id, s));
	}
	for (uint32_t ref = v.set->undo_ref; ref;) {
		struct undo_shm *u = region_block(c->e->base, ref, sizeof(*u));

		EXPECT(u);
		for (uint32_t s = 0; s < u->nsems; s++)
			if (u->adj[s])
				add(t, "  undo of %u, %u: %d\n", u->proc_ix, s, u->adj[s]);
		ref = u->next_in_set_ref;
	}
}

static void describe(const struct cast *c, struct text *t)
{
	const struct table_shm *table = &region_header(c->e->base)->table[FAMILY_SEM];
	uint32_t live = 0, procs = 0;

	t->used = 0;
	t->s[0] = 0;
	add(t, "%u sets, %llu semaphores, next after %d of %u\n", table->in_use,
	    (unsigned long long)table->total, table->last_ix, table->seq);
	for (int i = 0; i < STEP_SETS; i++)
		if (c->id[i] >= 0)
			describe_set(c, c->id[i], t);
	if (c->key) {
		int32_t id = engine_semget(c->last, c->key, 0, 0);

		add(t, "key %d: %d\n", c->key, id);
		if (id >= 0)
			describe_set(c, id, t);
	}
	for (int i = 0; i < STEP_WAITERS; i++)
		if (c->waiter[i])
			add(t, "waiter %d: state %d, result %d\n", i,
			    actor_state(c->waiter[i]) == WAIT_ASLEEP ? WAIT_WAITING
								     : actor_state(c->waiter[i]),
			    actor_state(c->waiter[i]) == WAIT_GRANTED
				    ? actor_slot(c->waiter[i])->result
				    : 0);
	for (uint32_t ix = 0; ix < region_header(c->e->base)->proc_hi; ix++)
		procs += region_proc(c->e->base, ix)->state != PROC_FREE;
	for (uint32_t g = 0; g < region_header(c->e->base)->group_hi; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			live += CLAIM_GEN(region_thread(c->e->base, g * GROUP_SPAN + k)->claim) & 1;
	add(t, "%u processes, %u threads, %llu blocks\n", procs, live,
	    (unsigned long long)engine_blocks(c->e));
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
	c.e = to;
	c.victim = twin(to, from->victim);
	c.thread = twin(to, from->thread);
	c.recoverer = twin(to, from->recoverer);
	c.last = twin(to, from->last);
	for (int i = 0; i < STEP_WAITERS; i++)
		c.waiter[i] = twin(to, from->waiter[i]);
	return c;
}

static void kill_entrants(struct cast *c)
{
	const struct header_shm *h = region_header(c->e->base);

	for (uint32_t ix = c->procs; ix < h->proc_hi && ix < ENGINE_PROCS; ix++)
		c->e->shared->proc_dead[ix] = 1;
	for (uint32_t ix = c->threads; ix < h->group_hi * GROUP_SPAN && ix < ENGINE_THREADS; ix++)
		c->e->shared->thread_dead[ix] = 1;
	/* Reserved and never used: what the client frees when the kernel's token is free. */
	for (uint32_t ix = c->procs; ix < h->proc_hi; ix++)
		procs_unreserve(c->e->base, ix, region_proc(c->e->base, ix)->state);
}

/* All that is to be done about the dead victim. */
static void recover(struct cast *c, struct actor *by)
{
	if (c->enters || c->sweeps)
		engine_sweep(by);
	else
		engine_bury(by, c->victim);
}

/* Somebody begins to sleep on a lock just before its owner dies. */
static uint64_t sleep_on_victims_lock(struct cast *c, struct actor *owner)
{
	uint64_t off = actor_slot(owner)->held;
	rlock_shm *word = region_at(c->e->base, off);

	if (!off || (*word & RLOCK_OWNER) != owner->c.thread_ix + 1)
		return 0;
	*word |= RLOCK_W;
	return off;
}

/* ---- Checks after recovery --------------------------------------------------------------- */

static void check_wakes(struct cast *c, uint64_t lock)
{
	for (int i = 0; i < STEP_WAITERS; i++) {
		enum wait_state state = c->waiter[i] ? actor_state(c->waiter[i]) : WAIT_FREE;

		if ((state == WAIT_GRANTED || state == WAIT_REMOVED) &&
		    !engine_woken(c->e, region_off(c->e->base, &actor_slot(c->waiter[i])->st),
				  c->wakes))
			fail("waiter %d was told and not woken", i);
	}
	if (lock && !engine_woken(c->e, lock, c->wakes))
		fail("who sleeps on lock %#llx was not woken", (unsigned long long)lock);
	for (int i = 0; i < 4; i++) {
		uint32_t word = c->lock[i] ? *(rlock_shm *)region_at(c->e->base, c->lock[i]) : 0;

		if (c->lock[i] && word != RLOCK_W && !engine_woken(c->e, c->lock[i], c->wakes))
			fail("lock %#llx: %#x, and nobody was woken",
			     (unsigned long long)c->lock[i], word);
	}
}

/* Everybody can still do everything; then all is taken down, and nothing is left. */
static void work_and_take_down(struct cast *c)
{
	struct actor *a = c->last;
	struct table_shm *t = &region_header(c->e->base)->table[FAMILY_SEM];
	struct semop_shm both[2] = {{0, 1, OP_UNDO}, {1, 1, OP_UNDO}};
	int32_t id = engine_semget(a, 4711, 2, GET_CREAT | GET_EXCL | 0600);

	if (id < 0 || engine_semop(a, id, both, 2) != 0 || engine_op(a, id, 0, -1, 0) != 0 ||
	    engine_getval(a, id, 1) != 1 || engine_rmid(a, id) != 0)
		fail("a new set cannot be worked with");
	for (int i = 0; i < STEP_SETS; i++)
		if (c->id[i] >= 0 && engine_getval(a, c->id[i], 0) >= 0 &&
		    engine_setval(a, c->id[i], 0, 5) != 0)
			fail("set %d cannot be worked with", c->id[i]);
	for (uint32_t i = 0; i < c->e->actor_count; i++)
		if (&c->e->actor[i] != a)
			engine_kill(&c->e->actor[i]);
	engine_sweep(a);
	for (uint32_t ix = 0; ix < t->hi; ix++) {
		uint32_t live = region_object(c->e->base, FAMILY_SEM, ix)->live;

		if (live && engine_rmid(a, (int32_t)live - 1) != 0)
			fail("set %u cannot be removed", live - 1);
	}
	if (engine_exit(a) != 0)
		fail("the last one cannot leave");
	if (engine_check(c->e))
		fail("not clean after all was taken down");
	if (engine_blocks(c->e))
		fail("%llu blocks are left", (unsigned long long)engine_blocks(c->e));
	for (uint32_t ix = 0; ix < region_header(c->e->base)->proc_hi; ix++)
		if (region_proc(c->e->base, ix)->state != PROC_FREE)
			fail("process slot %u is left", ix);
}

/* ---- Stepping ---------------------------------------------------------------------------- */

static bool cannot_step;

/* Forks a child that does f and is stopped right before; its pid, or -1. */
static pid_t begin(void (*f)(struct cast *), struct cast *c)
{
	pid_t pid = fork();
	int status;

	EXPECT(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		kill(getpid(), SIGSTOP);
		f(c);
		kill(getpid(), SIGSTOP);
		_exit(0);
	}
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	if (WIFSTOPPED(status))
		return pid;
	cannot_step = true;
	return -1;
}

/* One instruction. False: f has returned, or the child has come to grief. */
static bool step(pid_t pid)
{
	int status;

	EXPECT(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0);
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP)
		return true;
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP)
		fail("what is stepped ended by itself, status %#x", status);
	return false;
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
}

/* ---- The second depth -------------------------------------------------------------------- */

static struct engine *copy1, *copy2, *snap1, *snap2;

static void recover_by_recoverer(struct cast *c)
{
	recover(c, c->recoverer);
}

/* `c` is a copy in which the victim is dead; `expected` is what its recovery leads to. */
static void step_recovery(struct cast *c, const struct text *expected)
{
	static struct text seen;
	pid_t pid = begin(recover_by_recoverer, c);
	uint64_t n = 0;
	struct cast s;

	if (pid < 0)
		return;
	cast_in(snap2, c);
	while (n++ < INSTRUCTIONS_MOST && step(pid)) {
		count->instructions++;
		if (!engine_differs(snap2, c->e))
			continue;
		cast_in(snap2, c);
		at.second = n;
		count->second_deaths++;
		s = cast_in(copy2, c);
		engine_kill(s.recoverer);
		s.recoverer->c.owed = 0;
		if (n & 1) { /* others work before anybody looks after the dead */
			int32_t id = engine_semget(s.last, 0, 2, 0600);

			if (id < 0 || engine_op(s.last, id, 0, 1, 0) != 0)
				fail("nothing can be done between two deaths");
			engine_bury(s.last, s.recoverer);
			recover(&s, s.last);
			if (engine_check(s.e))
				fail("not clean");
			work_and_take_down(&s);
			continue;
		}
		engine_bury(s.last, s.recoverer);
		recover(&s, s.last);
		if (engine_check(s.e))
			fail("not clean");
		/* Its own slots aside, which are gone. */
		s.recoverer = NULL;
		describe(&s, &seen);
		if (strcmp(seen.s, expected->s) != 0)
			fail("another outcome than that of the first death\n--- %s--- %s",
			     expected->s, seen.s);
		check_wakes(&s, 0);
		work_and_take_down(&s);
	}
	at.second = 0;
	end(pid);
}

/* ---- The first depth --------------------------------------------------------------------- */

struct death {
	uint64_t instruction;
	struct text seen;
};

/* The victim dies in a copy of what is. */
static struct cast die_in(struct engine *e, const struct cast *from)
{
	struct cast c = cast_in(e, from);

	if (c.enters)
		kill_entrants(&c);
	else
		engine_kill(c.victim);
	return c;
}

static void one_death(const struct cast *c, struct death *d, bool deep)
{
	struct cast s = die_in(copy1, c);
	uint64_t lock = c->enters ? 0 : sleep_on_victims_lock(&s, s.victim);

	count->deaths++;
	at.instruction = d->instruction;
	if (d->instruction & 1) /* met by others first, buried later */
		for (int i = 0; i < STEP_SETS; i++)
			if (c->id[i] >= 0) {
				(void)engine_getval(s.last, c->id[i], 0);
				(void)engine_getncnt(s.last, c->id[i], 0);
			}
	recover(&s, s.last);
	if (engine_check(s.e))
		fail("not clean");
	describe(&s, &d->seen);
	check_wakes(&s, lock);
	work_and_take_down(&s);
	if (deep) {
		static struct text expected;

		/* As it is when the recoverer is dead and buried too. */
		s = die_in(copy1, c);
		engine_kill(s.recoverer);
		engine_bury(s.last, s.recoverer);
		recover(&s, s.last);
		describe(&s, &expected);
		s = die_in(copy1, c);
		(void)sleep_on_victims_lock(&s, s.victim);
		step_recovery(&s, &expected);
	}
}

static void compare(const struct death *d, size_t n, const struct text *before,
		    const struct text *after)
{
	bool committed = false;

	for (size_t i = 0; i < n; i++) {
		bool is_before = strcmp(d[i].seen.s, before->s) == 0;
		bool is_after = strcmp(d[i].seen.s, after->s) == 0;

		at.instruction = d[i].instruction;
		if (!is_before && !is_after)
			fail("neither before nor after\n--- before\n%s--- after\n%s--- seen\n%s",
			     before->s, after->s, d[i].seen.s);
		if (committed && !is_after)
			fail("done before, and now it is not");
		committed |= is_after && !is_before;
	}
}

static void after_death(const struct cast *c, struct text *t)
{
	struct cast s = die_in(copy1, c);

	recover(&s, s.last);
	describe(&s, t);
}

static void run_scene(void)
{
	static struct text before, after;
	struct cast c = {.e = engine_new()};
	struct death *d = calloc(4000, sizeof(*d));
	uint64_t n = 0, changes = 0;
	size_t deaths = 0;
	pid_t pid;

	EXPECT(d);
	at.instruction = at.second = 0;
	for (int i = 0; i < STEP_SETS; i++)
		c.id[i] = -1;
	c.last = engine_join(c.e);
	c.recoverer = engine_join(c.e);
	c.victim = engine_join(c.e);
	scene->prepare(&c);
	c.wakes = c.e->shared->wakes;
	c.procs = c.e->actor_count;
	c.threads = region_header(c.e->base)->group_hi * GROUP_SPAN;
	if (engine_check(c.e))
		fail("not clean to begin with");
	after_death(&c, &before);
	pid = begin(scene->act, &c);
	if (pid >= 0) {
		engine_copy(snap1, c.e);
		while (n++ < INSTRUCTIONS_MOST && step(pid)) {
			if (!engine_differs(snap1, c.e))
				continue;
			engine_copy(snap1, c.e);
			if (changes++ % options->every || deaths == 4000)
				continue;
			d[deaths].instruction = n;
			one_death(&c, &d[deaths],
				  options->deep_every &&
					  (changes - 1) / options->every % options->deep_every ==
						  0);
			deaths++;
		}
		count->instructions += n;
		after_death(&c, &after);
		end(pid);
		compare(d, deaths, &before, &after);
	}
	if (options->verbose)
		printf("%-28s %7llu instructions, %4zu of %4llu changes, commit %s\n", scene->name,
		       (unsigned long long)n, deaths, (unsigned long long)changes,
		       strcmp(before.s, after.s) ? "seen" : "not to be seen");
	fflush(stdout);
	free(d);
	engine_kill(c.victim);
	if (c.enters)
		kill_entrants(&c);
	for (int i = 0; i < 4; i++)
		if (c.lock[i])
			*(rlock_shm *)region_at(c.e->base, c.lock[i]) = 0;
	if (engine_free(c.e))
		fail("not clean at the end");
}

int step_all(const struct step_options *o, struct step_count *ret)
{
	options = o;
	count = ret;
	copy1 = engine_new();
	copy2 = engine_new();
	snap1 = engine_new();
	snap2 = engine_new();
	for (scene = scenes; scene->name && !cannot_step; scene++) {
		if (o->only && strncmp(scene->name, o->only, strlen(o->only)) != 0)
			continue;
		if ((scene->slow && !o->slow) || (o->end_ns && engine_now_ns() > o->end_ns)) {
			count->left_out++;
			continue;
		}
		count->scenes++;
		run_scene();
	}
	return cannot_step ? 77 : 0;
}
