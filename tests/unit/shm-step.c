// SPDX-License-Identifier: MIT
/*
 * Death at any instruction of an operation on segments and attach records. The operation runs in a
 * child that is stepped instruction by instruction; whenever the region has changed, a copy of it
 * is taken in which the process is dead, a survivor cleans up that copy, and what others see must
 * be what the operation finds or what it leaves; nothing may be lost. At some of these points the
 * clean-up is stepped likewise, and dies in turn.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm-calls.h"

#define STATE_MAX 4096
#define DEEPER    60 /* every so many points the clean-up is stepped too ... */
#define DEEPER_AT 7  /* ... from this one on */

struct scene {
	struct engine *e;
	struct actor *victim, *survivor, *second, *dead;
	int32_t id;
};

struct operation {
	const char *name;
	void (*prepare)(struct scene *s);
	void (*run)(struct scene *s);
	bool of_the_dead; /* it is about the blocks of `dead`, not of the victim */
};

/* ---- The state as others see it: segments, and who of the living is attached -------------- */

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, STATE_MAX - used, format, args);
	va_end(args);
}

static void describe(const struct engine *e, char *text)
{
	uint32_t hi = region_header(e->base)->table[FAMILY_SHM].hi;

	text[0] = 0;
	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct segment_shm *s = shm_segment(e->base, ix);
		uint32_t n = 0;

		if (!load_acquire(&s->object.live))
			continue;
		for (uint32_t p = 0; p < region_header(e->base)->proc_hi; p++)
			n += shm_count_records(e->base, p, ix, s->object.gen);
		add(text, "id %d key %d mode %o owner %u:%u ctime %lld bytes %llu attached %u\n",
		    s->id, s->object.mode & SEGMENT_DEST ? 0 : s->object.key, s->object.mode,
		    s->object.uid, s->object.gid, (long long)s->object.ctime,
		    (unsigned long long)s->bytes, n);
	}
}

/* ---- Cleaning up, and judging ------------------------------------------------------------- */

static const uint32_t block_sizes[] = {256, 4096}; /* as attach records have them */

#define FILLED 64 /* bytes: each costs a step */

/* From whose pool: of the process whose records are at stake. */
static uint32_t pool_of_proc_ix;

/* Takes a block of each size and fills it, or looks whether it is as it was and gives it back. */
static void take_blocks(struct actor *a)
{
	for (uint32_t i = 0; i < 2; i++) {
		enum name name = i ? NAME_SIDE : NAME_POCKET;
		uint32_t own = a->c.proc_ix;
		int rc;

		a->c.proc_ix = pool_of_proc_ix; /* all that the arena wants to know it for */
		UNTIL_DONE(a, arena_take(&a->c, ARENA_GENERAL, name, block_sizes[i]));
		a->c.proc_ix = own;
		EXPECT_INT(rc, 0);
		memset(region_block(a->e->base, actor_slot(a)->name_ref[name], FILLED), 'x',
		       FILLED);
	}
}

static void give_blocks(struct actor *a)
{
	for (uint32_t i = 0; i < 2; i++) {
		enum name name = i ? NAME_SIDE : NAME_POCKET;
		const char *p = region_block(a->e->base, actor_slot(a)->name_ref[name], FILLED);
		int rc;

		EXPECT(p[0] == 'x' && memcmp(p, p + 1, FILLED - 1) == 0);
		UNTIL_DONE(a, arena_give(&a->c, name));
		EXPECT_INT(rc, 0);
	}
}

/* The threads first, then the processes. In between blocks are taken: one that was freed although a
 * process still has it in its chain is then somebody else's. */
static void clean_up(struct actor *a)
{
	uint32_t groups = region_header(a->e->base)->group_hi;

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			while (repair_bury_thread(&a->c, g * GROUP_SPAN + k, true) > 1)
				engine_wait(a);
	take_blocks(a);
	engine_sweep(a);
	free_reserved(a);
	give_blocks(a);
}

struct judge {
	char before[STATE_MAX], after[STATE_MAX];
	bool committed;
	uint32_t points, deeper;
	const char *name;
};

static void judge(struct judge *j, const struct engine *copy, uint64_t instruction,
		  bool may_go_back)
{
	static char now[STATE_MAX];

	if (engine_check(copy))
		engine_fail(__FILE__, __LINE__, "%s: not clean after instruction %llu", j->name,
			    (unsigned long long)instruction);
	describe(copy, now);
	if (strcmp(now, j->after) == 0) {
		j->committed |= !may_go_back && strcmp(now, j->before) != 0;
		return;
	}
	if (strcmp(now, j->before) != 0 || (j->committed && !may_go_back))
		engine_fail(__FILE__, __LINE__,
			    "%s: neither before nor after, at instruction %llu:\n%s\nbefore:\n%s\n"
			    "after:\n%s",
			    j->name, (unsigned long long)instruction, now, j->before, j->after);
}

/* ---- Stepping ---------------------------------------------------------------------------- */

static bool range_differs(const struct engine *a, const struct engine *b, uint64_t off, uint64_t n)
{
	return memcmp(a->base + off, b->base + off, n) != 0;
}

static bool chunks_differ(const struct engine *e, const struct engine *seen)
{
	uint32_t hi = region_header(e->base)->arena[ARENA_GENERAL].hi;

	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct chunk_shm *ch = region_at(e->base, CHUNKS_OFF + ix * sizeof(*ch));
		uint64_t off = ARENAS_OFF + (uint64_t)ix * CHUNK_BYTES;

		for (uint32_t pages = ch->ready_pages; pages; pages &= pages - 1)
			if (range_differs(e, seen,
					  off + (uint64_t)__builtin_ctz(pages) * PAGE_BYTES,
					  PAGE_BYTES))
				return true;
	}
	return range_differs(e, seen, CHUNKS_OFF, hi * sizeof(struct chunk_shm));
}

/* Has what is in use changed since `seen` was copied from it? */
static bool region_changed(const struct engine *e, const struct engine *seen)
{
	const struct header_shm *h = region_header(e->base);
	uint64_t table = TABLES_OFF + FAMILY_SHM * TABLE_BYTES;

	return range_differs(e, seen, HEADER_OFF, sizeof(*h)) ||
	       range_differs(e, seen, PROCS_OFF, (uint64_t)h->proc_hi * sizeof(struct proc_shm)) ||
	       range_differs(e, seen, GROUPS_OFF, (uint64_t)h->group_hi * PAGE_BYTES) ||
	       range_differs(e, seen, object_off(FAMILY_SHM, 0),
			     (uint64_t)h->table[FAMILY_SHM].hi * OBJECT_SLOT_BYTES) ||
	       range_differs(e, seen, table, PAGE_BYTES) ||
	       range_differs(e, seen, table + BITMAP_OFF, 64) || chunks_differ(e, seen);
}

typedef void step_fn(void *context, uint64_t instruction);

/* Runs f in a child; after each instruction that changed e's region, calls at(). */
static void step(struct engine *e, struct engine *seen, void (*f)(void *context), void *context,
		 step_fn *at, void *at_context)
{
	pid_t kid = fork();
	uint64_t n = 0;
	int status;

	EXPECT(kid >= 0);
	if (kid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(2);
		raise(SIGSTOP);
		f(context);
		raise(SIGKILL);
	}
	EXPECT_INT(waitpid(kid, &status, 0), kid);
	EXPECT(WIFSTOPPED(status));
	engine_copy(seen, e);
	for (;;) {
		EXPECT(ptrace(PTRACE_SINGLESTEP, kid, NULL, NULL) == 0);
		EXPECT_INT(waitpid(kid, &status, 0), kid);
		if (!WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP)
			engine_fail(__FILE__, __LINE__, "the child got signal %d",
				    WSTOPSIG(status));
		n++;
		if (!region_changed(e, seen))
			continue;
		engine_copy(seen, e);
		at(at_context, n);
	}
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

struct stepper {
	struct scene *s;
	struct judge *j;
	struct engine *copy, *deep, *deep_seen;
	struct actor *cleaner;
};

static void clean(void *context)
{
	clean_up(((struct stepper *)context)->cleaner);
}

/* The clean-up of the copy was killed here: somebody else does it. */
static void at_clean_up(void *context, uint64_t instruction)
{
	struct stepper *st = context;

	engine_copy(st->deep, st->copy);
	st->deep->actor_count = 0;
	engine_kill(engine_twin(st->deep, st->s->survivor));
	clean_up(engine_twin(st->deep, st->s->second));
	judge(st->j, st->deep, instruction, true);
	st->j->deeper++;
}

static void at_operation(void *context, uint64_t instruction)
{
	struct stepper *st = context;

	engine_copy(st->copy, st->s->e);
	st->copy->actor_count = 0;
	engine_kill(engine_twin(st->copy, st->s->victim));
	st->cleaner = engine_twin(st->copy, st->s->survivor);
	if (++st->j->points % DEEPER == DEEPER_AT) {
		step(st->copy, st->deep_seen, clean, st, at_clean_up, st);
		return;
	}
	clean_up(st->cleaner);
	judge(st->j, st->copy, instruction, false);
}

/* What is left when the victim dies now. */
static void state_now(const struct scene *s, struct engine *copy, char *text)
{
	engine_copy(copy, s->e);
	copy->actor_count = 0;
	engine_kill(engine_twin(copy, s->victim));
	clean_up(engine_twin(copy, s->survivor));
	EXPECT_INT(engine_check(copy), 0);
	describe(copy, text);
}

struct running {
	const struct operation *op;
	struct scene *s;
};

static void run(void *context)
{
	struct running *r = context;

	r->op->run(r->s);
}

static void set_up(struct scene *s, const struct operation *op)
{
	*s = (struct scene){.e = engine_new()};
	s->victim = engine_join(s->e);
	s->survivor = engine_join(s->e);
	s->second = engine_join(s->e);
	s->dead = engine_join(s->e);
	/* chunks for what is taken in copies, which cannot grow */
	pool_of_proc_ix = (op->of_the_dead ? s->dead : s->victim)->c.proc_ix;
	take_blocks(s->survivor);
	give_blocks(s->survivor);
	s->id = new_segment(s->survivor, 4711, 3 * PAGE_BYTES);
	op->prepare(s);
}

static void tear_down(struct scene *s)
{
	struct actor *last = engine_join(s->e);

	for (uint32_t i = 0; i < s->e->actor_count; i++)
		if (&s->e->actor[i] != last)
			engine_kill(&s->e->actor[i]);
	clean_up(last);
	remove_segments(last);
	EXPECT_INT(engine_free(s->e), 0);
}

/* Engines for copies, which hold what was copied last; they last as long as the program. */
static struct engine *copies[4];

static void step_operation(const struct operation *op)
{
	static struct judge j;
	struct scene s;
	struct running r = {op, &s};
	struct stepper st = {
		.s = &s, .j = &j, .copy = copies[0], .deep = copies[1], .deep_seen = copies[2]};

	j = (struct judge){.name = op->name};
	/* Once without stepping, for the state at the end. */
	set_up(&s, op);
	op->run(&s);
	state_now(&s, st.copy, j.after);
	tear_down(&s);
	set_up(&s, op);
	state_now(&s, st.copy, j.before);
	step(s.e, copies[3], run, &r, at_operation, &st);
	printf("%s: died at %u points, and in the clean-up at %u\n", op->name, j.points, j.deeper);
	EXPECT(j.points > 0);
	tear_down(&s);
}

/* ---- Operations -------------------------------------------------------------------------- */

static void nothing(struct scene *s)
{
	(void)s;
}

static void victim_is_attached(struct scene *s)
{
	for (uint64_t i = 1; i < 10; i++)
		EXPECT_INT(attach_at(s->victim, s->id, i * PAGE_BYTES), 0);
}

static void first_block_is_full(struct scene *s)
{
	for (uint64_t i = 1; i < 8; i++)
		EXPECT_INT(attach_at(s->victim, s->id, i * PAGE_BYTES), 0);
}

static void another_is_attached(struct scene *s)
{
	EXPECT_INT(attach_at(s->second, s->id, PAGE_BYTES), 0);
}

static void it_is_marked(struct scene *s)
{
	EXPECT_INT(mark_removed(s->survivor, s->id), 0);
}

static void dead_are_attached(struct scene *s)
{
	for (uint64_t i = 1; i < 10; i++)
		EXPECT_INT(attach_at(s->dead, s->id, i * PAGE_BYTES), 0);
	engine_kill(s->dead);
}

static void create(struct scene *s)
{
	(void)get_segment(s->victim, 815, PAGE_BYTES, GET_CREAT | 0640);
}

static void attach(struct scene *s)
{
	(void)attach_at(s->victim, s->id, 77 * PAGE_BYTES);
}

static void attach_in_vain(struct scene *s)
{
	struct shm_attach at;

	if (begin_attach(s->victim, s->id, &at) == 0)
		shm_attach_failed(&s->victim->c, &at);
}

static void detach(struct scene *s)
{
	detach_at(s->victim, 3 * PAGE_BYTES);
}

static void change(struct scene *s)
{
	(void)shm_set_owner(&s->victim->c, s->id, 77, 78, 0444, NOW + 5);
}

static void lock(struct scene *s)
{
	(void)shm_set_locked(&s->victim->c, s->id, true, UINT64_MAX);
}

static void mark(struct scene *s)
{
	(void)mark_removed(s->victim, s->id);
}

static void destroy_it(struct scene *s)
{
	(void)destroy(s->victim, s->id);
}

static void give_birth(struct scene *s)
{
	(void)fork_records(s->victim);
}

static void end(struct scene *s)
{
	(void)engine_exit(s->victim);
}

static void bury(struct scene *s)
{
	clean_up(s->victim);
}

static const struct operation operations[] = {
	{"create", nothing, create, false},
	{"attach for the first time", nothing, attach, false},
	{"attach with a record to spare", victim_is_attached, attach, false},
	{"attach with none", first_block_is_full, attach, false},
	{"attach in vain", victim_is_attached, attach_in_vain, false},
	{"detach", victim_is_attached, detach, false},
	{"change", another_is_attached, change, false},
	{"lock", another_is_attached, lock, false},
	{"mark", another_is_attached, mark, false},
	{"mark and nobody is attached", nothing, mark, false},
	{"destroy", it_is_marked, destroy_it, false},
	{"fork", victim_is_attached, give_birth, false},
	{"exit", victim_is_attached, end, false},
	{"bury", dead_are_attached, bury, true},
};

static void every_operation_survives_death(void **state)
{
	const char *only = getenv("ONLY");

	(void)state;
	for (int i = 0; i < 4; i++)
		copies[i] = engine_new();
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!only || strstr(operations[i].name, only))
			step_operation(&operations[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation_survives_death),
	};

	return cmocka_run_group_tests_name("shm-step", tests, NULL, NULL);
}
