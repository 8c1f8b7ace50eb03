// SPDX-License-Identifier: MIT
/*
 * Death at any instruction of an operation on a queue. The operation runs in a child that is
 * stepped instruction by instruction; whenever the region has changed, a copy of it is taken in
 * which the thread is dead, a survivor sweeps that copy, and the result must be what the operation
 * finds or what it leaves: nothing half done, never back again, no sleeper forgotten, no block
 * lost. At some of these points the sweep is stepped likewise, and dies in turn.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "msg-calls.h"

#define SLEEPERS  4
#define STATE_MAX 4096
#define DEEPER    40 /* every so many points the sweep is stepped too ... */
#define DEEPER_AT 5  /* ... from this one on */

struct scene {
	struct engine *e;
	struct actor *victim, *survivor, *second, *sleeper[SLEEPERS];
	int32_t id;
	uint32_t wakes; /* given before the operation began */
	bool asleep[SLEEPERS];
};

struct operation {
	const char *name;
	void (*prepare)(struct scene *s);
	void (*run)(struct scene *s);
};

/* ---- The state as others see it ---------------------------------------------------------- */

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, STATE_MAX - used, format, args);
	va_end(args);
}

static void add_message(char *text, const struct engine *e, uint32_t ref)
{
	struct msg_shm *m = msg_at(e->base, ref);
	uint32_t number = 0;

	memcpy(&number, msg_text(m), m->bytes < 4 ? m->bytes : 4);
	add(text, " %lld/%u/%u", (long long)m->tree.key, m->bytes, number);
}

static void describe(const struct scene *s, const struct engine *e, char *text)
{
	uint32_t hi = region_header(e->base)->table[FAMILY_MSG].hi;

	text[0] = 0;
	for (uint32_t ix = 0; ix < hi; ix++) {
		struct queue_shm *q = region_queue(e->base, ix);

		if (!load_acquire(&q->object.live))
			continue;
		add(text, "queue %u key %d mode %o uid %u room %llu %lld/%lld/%lld %u %u:", ix,
		    q->object.key, q->object.mode, q->object.uid, (unsigned long long)q->qbytes,
		    (long long)q->stime, (long long)q->rtime, (long long)q->object.ctime, q->lspid,
		    q->lrpid);
		for (uint32_t ref = q->head_ref; ref; ref = msg_at(e->base, ref)->next_ref)
			add_message(text, e, ref);
	}
	for (int k = 0; k < SLEEPERS; k++) {
		struct thread_shm *t =
			s->sleeper[k] ? region_thread(e->base, s->sleeper[k]->c.thread_ix) : NULL;
		enum wait_state state = t ? WAIT_STATE(t->st) : WAIT_FREE;

		if (state == WAIT_FREE)
			continue;
		add(text, "\n sleeper %d %s", k, msg_is_queued(t->st) ? "sleeps" : "told");
		if (!msg_is_queued(t->st))
			add(text, " %d", state == WAIT_REMOVED ? -EIDRM : t->result);
		if (t->name_ref[NAME_FLY])
			add_message(text, e, t->name_ref[NAME_FLY]);
	}
}

/* ---- A copy in which somebody is dead ---------------------------------------------------- */

static void expect_woken(const struct scene *s, const struct engine *copy)
{
	for (int k = 0; k < SLEEPERS; k++) {
		uint64_t off;

		if (!s->asleep[k] ||
		    msg_is_queued(region_thread(copy->base, s->sleeper[k]->c.thread_ix)->st))
			continue;
		off = region_off(s->e->base, &actor_slot(s->sleeper[k])->st);
		if (!engine_woken(copy, off, s->wakes))
			engine_fail(__FILE__, __LINE__, "sleeper %d was told but not woken", k);
	}
}

struct judge {
	char before[STATE_MAX], after[STATE_MAX];
	bool committed;
	uint32_t points, deeper;
	const char *name;
};

static void judge(struct judge *j, const struct scene *s, const struct engine *copy,
		  uint64_t instruction, bool may_go_back)
{
	static char now[STATE_MAX];

	if (engine_check(copy))
		engine_fail(__FILE__, __LINE__, "%s: not clean after instruction %llu", j->name,
			    (unsigned long long)instruction);
	expect_woken(s, copy);
	describe(s, copy, now);
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

/* Has what is in use changed since `seen` was copied from it? */
static bool region_changed(const struct engine *e, const struct engine *seen)
{
	const struct header_shm *h = region_header(e->base);

	if (range_differs(e, seen, HEADER_OFF, sizeof(*h)) ||
	    range_differs(e, seen, GROUPS_OFF, (uint64_t)h->group_hi * PAGE_BYTES) ||
	    range_differs(e, seen, object_off(FAMILY_MSG, 0),
			  (uint64_t)h->table[FAMILY_MSG].hi * OBJECT_SLOT_BYTES) ||
	    range_differs(e, seen, TABLES_OFF, PAGE_BYTES) ||
	    range_differs(e, seen, TABLES_OFF + BITMAP_OFF, 64) ||
	    range_differs(e, seen, CHUNKS_OFF,
			  (uint64_t)h->arena[ARENA_GENERAL].hi * sizeof(struct chunk_shm)))
		return true;
	for (uint32_t ix = 0; ix < h->arena[ARENA_GENERAL].hi; ix++) {
		const struct chunk_shm *ch = region_at(e->base, CHUNKS_OFF + ix * sizeof(*ch));
		uint64_t off = ARENAS_OFF + (uint64_t)ix * CHUNK_BYTES;

		for (uint32_t pages = ch->ready_pages; pages; pages &= pages - 1)
			if (range_differs(e, seen,
					  off + (uint64_t)__builtin_ctz(pages) * PAGE_BYTES,
					  PAGE_BYTES))
				return true;
	}
	return false;
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
	EXPECT(n > 100);
}

struct stepper {
	struct scene *s;
	struct judge *j;
	struct engine *copy, *deep, *deep_seen;
	struct actor *sweeper;
};

static void sweep(void *context)
{
	engine_sweep(((struct stepper *)context)->sweeper);
}

/* The sweep of the copy was killed here: somebody else sweeps. */
static void at_sweep(void *context, uint64_t instruction)
{
	struct stepper *st = context;

	engine_copy(st->deep, st->copy);
	st->deep->actor_count = 0;
	engine_kill(engine_twin(st->deep, st->s->survivor));
	engine_sweep(engine_twin(st->deep, st->s->second));
	judge(st->j, st->s, st->deep, instruction, true);
	st->j->deeper++;
}

static void at_operation(void *context, uint64_t instruction)
{
	struct stepper *st = context;

	engine_copy(st->copy, st->s->e);
	st->copy->actor_count = 0;
	engine_kill(engine_twin(st->copy, st->s->victim));
	st->sweeper = engine_twin(st->copy, st->s->survivor);
	if (++st->j->points % DEEPER == DEEPER_AT) {
		step(st->copy, st->deep_seen, sweep, st, at_sweep, st);
		return;
	}
	engine_sweep(st->sweeper);
	judge(st->j, st->s, st->copy, instruction, false);
}

/* What is left when the victim dies now. */
static void state_now(const struct scene *s, struct engine *copy, char *text)
{
	engine_copy(copy, s->e);
	copy->actor_count = 0;
	engine_kill(engine_twin(copy, s->victim));
	engine_sweep(engine_twin(copy, s->survivor));
	EXPECT_INT(engine_check(copy), 0);
	describe(s, copy, text);
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
	for (int k = 0; k < SLEEPERS; k++)
		s->sleeper[k] = engine_join(s->e);
	s->id = new_queue(s->survivor);
	op->prepare(s);
	s->wakes = s->e->shared->wakes;
}

static void tear_down(struct scene *s)
{
	struct actor *last = engine_join(s->e);
	uint32_t hi = region_header(s->e->base)->table[FAMILY_MSG].hi;

	for (uint32_t i = 0; i < s->e->actor_count; i++)
		if (&s->e->actor[i] != last)
			engine_kill(&s->e->actor[i]);
	engine_sweep(last);
	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t live = load_acquire(&region_queue(s->e->base, ix)->object.live);

		if (live)
			EXPECT_INT(remove_queue(last, (int32_t)live - 1), 0);
	}
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
	printf("%s: died at %u points, and in the sweep at %u\n", op->name, j.points, j.deeper);
	EXPECT(j.points > 5);
	tear_down(&s);
}

/* ---- Scenes ------------------------------------------------------------------------------ */

static void sleeps(struct scene *s, int k)
{
	struct thread_shm *t = actor_slot(s->sleeper[k]);

	EXPECT_INT(actor_state(s->sleeper[k]), WAIT_WAITING);
	store_release(&t->st, WAIT_WORD(WAIT_REQUEST(t->st), WAIT_ASLEEP));
	s->asleep[k] = true;
}

static void receiver(struct scene *s, int k, uint64_t bytes, int64_t type, uint32_t flags)
{
	EXPECT_INT(receive(s->sleeper[k], s->id, bytes, type, flags, NULL), OUTCOME_SLEEP);
	sleeps(s, k);
}

static void sender(struct scene *s, int k, long type, uint64_t bytes)
{
	EXPECT_INT(send_number(s->sleeper[k], s->id, type, bytes, 50 + (uint32_t)k, 0),
		   OUTCOME_SLEEP);
	sleeps(s, k);
}

static void fill(struct scene *s, long type, uint64_t bytes, uint32_t number)
{
	EXPECT_INT(send_number(s->survivor, s->id, type, bytes, number, 0), 0);
}

static void room(struct scene *s, uint64_t qbytes)
{
	EXPECT_INT(change_queue(s->survivor, s->id, 0, 0600, qbytes), 0);
}

static void nothing(struct scene *s)
{
	(void)s;
}

static void three_messages(struct scene *s)
{
	fill(s, 1, 8, 1);
	fill(s, 2, 8, 2);
	fill(s, 1, 8, 3);
}

/* Blocks in the pocket of the victim and in the caches of the queue. */
static void used_queue(struct scene *s)
{
	for (uint32_t n = 0; n < 4; n++)
		fill(s, 5, 8, n);
	for (uint32_t n = 0; n < 4; n++)
		EXPECT_INT(receive(s->victim, s->id, 8, 5, 0, NULL), 0);
	EXPECT(actor_slot(s->victim)->name_ref[NAME_POCKET]);
	three_messages(s);
}

static void receivers_wait(struct scene *s)
{
	receiver(s, 0, 64, 7, 0);
	receiver(s, 1, 64, 3, 0);
	receiver(s, 2, 64, 0, 0);
}

static void short_receivers_wait(struct scene *s)
{
	receiver(s, 0, 2, 3, 0);
	receiver(s, 1, 2, -9, 0);
	receiver(s, 2, 2, 4, 0);
}

static void short_and_long_receivers_wait(struct scene *s)
{
	receiver(s, 0, 2, 3, 0);
	receiver(s, 1, 2, 8, MSGF_EXCEPT);
	receiver(s, 2, 2, 0, MSGF_NOERROR);
	receiver(s, 3, 64, 3, 0);
}

static void dead_receiver_waits(struct scene *s)
{
	receiver(s, 0, 64, 3, 0);
	receiver(s, 1, 64, 3, 0);
	engine_kill(s->sleeper[0]);
	s->asleep[0] = false;
	s->sleeper[0] = NULL;
}

/* Full, with two senders asleep: one small, one for whom a receiver sleeps as well. */
static void senders_wait(struct scene *s)
{
	room(s, 40);
	fill(s, 1, 32, 1);
	fill(s, 1, 8, 2);
	receiver(s, 3, 64, 9, 0);
	sender(s, 0, 9, 16);
	sender(s, 1, 2, 8);
	sender(s, 2, 2, 36);
}

static void everybody_waits(struct scene *s)
{
	used_queue(s);
	room(s, queue_of(s->survivor, s->id)->bytes);
	receiver(s, 0, 64, 70, 0);
	receiver(s, 1, 64, 71, 0);
	sender(s, 2, 3, 8);
	sender(s, 3, 4, 8);
}

static void victim_sleeps(struct scene *s)
{
	receivers_wait(s);
	EXPECT_INT(receive(s->victim, s->id, 64, 7, 0, NULL), OUTCOME_SLEEP);
}

static void victim_sends_asleep(struct scene *s)
{
	room(s, 8);
	fill(s, 1, 8, 1);
	EXPECT_INT(send_number(s->victim, s->id, 2, 8, 9, 0), OUTCOME_SLEEP);
}

static void dead_sleepers_are_left(struct scene *s)
{
	receiver(s, 0, 64, 3, 0);
	receiver(s, 1, 64, 4, 0);
	fill(s, 3, 8, 1);
	for (int k = 0; k < 2; k++) {
		engine_kill(s->sleeper[k]);
		s->asleep[k] = false;
		s->sleeper[k] = NULL;
	}
}

static void send_3(struct scene *s)
{
	(void)send_number(s->victim, s->id, 3, 8, 9, 0);
}

static void send_large(struct scene *s)
{
	(void)send_number(s->victim, s->id, 3, 1500, 9, 0);
}

static void send_when_full(struct scene *s)
{
	(void)send_number(s->victim, s->id, 3, 8, 9, 0);
}

static void receive_any(struct scene *s)
{
	(void)receive(s->victim, s->id, 64, 0, MSGF_NOWAIT, NULL);
}

static void receive_2(struct scene *s)
{
	(void)receive(s->victim, s->id, 64, 2, MSGF_NOWAIT, NULL);
}

static void receive_asleep(struct scene *s)
{
	(void)receive(s->victim, s->id, 64, 3, 0, NULL);
}

static void copy_second(struct scene *s)
{
	(void)receive(s->victim, s->id, 64, 1, MSGF_NOWAIT | MSGF_COPY, NULL);
}

static void leave(struct scene *s)
{
	(void)leaves(s->victim);
}

static void widen(struct scene *s)
{
	(void)change_queue(s->victim, s->id, 0, 0600, 1000);
}

static void shut(struct scene *s)
{
	(void)change_queue(s->victim, s->id, 77, 0200, 1000);
}

static void remove_it(struct scene *s)
{
	(void)remove_queue(s->victim, s->id);
}

static void create(struct scene *s)
{
	int32_t id;

	(void)msg_get(&s->victim->c, 4711, GET_CREAT | 0640, NOW, &id);
}

static void bury(struct scene *s)
{
	engine_sweep(s->victim);
}

/* The mode closes while receivers and senders of somebody else sleep, and makes room. */
static void strangers_wait(struct scene *s)
{
	EXPECT_INT(change_queue(s->survivor, s->id, 0, 0666, 8), 0);
	for (int k = 0; k < SLEEPERS; k++) {
		s->sleeper[k]->creds.euid = 1000;
		s->sleeper[k]->creds.fsgid = 1000;
	}
	fill(s, 1, 8, 1);
	receiver(s, 0, 64, 3, 0);
	receiver(s, 1, 64, 4, 0);
	sender(s, 2, 5, 8);
}

static const struct operation operations[] = {
	{"send to nobody", nothing, send_3},
	{"send to others", three_messages, send_3},
	{"send with caches", used_queue, send_3},
	{"send a large one", used_queue, send_large},
	{"send to a sleeper", receivers_wait, send_3},
	{"send to short sleepers", short_receivers_wait, send_3},
	{"send to short and long sleepers", short_and_long_receivers_wait, send_3},
	{"send past a dead sleeper", dead_receiver_waits, send_3},
	{"send when full", senders_wait, send_when_full},
	{"receive the first", three_messages, receive_any},
	{"receive the second", three_messages, receive_2},
	{"receive with caches", used_queue, receive_any},
	{"receive and admit", senders_wait, receive_any},
	{"receive asleep", receivers_wait, receive_asleep},
	{"copy", three_messages, copy_second},
	{"leave as receiver", victim_sleeps, leave},
	{"leave as sender", victim_sends_asleep, leave},
	{"make room", senders_wait, widen},
	{"close to strangers", strangers_wait, shut},
	{"remove", everybody_waits, remove_it},
	{"create", three_messages, create},
	{"bury", dead_sleepers_are_left, bury},
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

	return cmocka_run_group_tests_name("msg-step", tests, NULL, NULL);
}
