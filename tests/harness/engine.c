// SPDX-License-Identifier: MIT
/* The engine without a client; see the header. */
#include "harness/engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "core/arena.h"
#include "core/ids.h"
#include "core/procs.h"
#include "core/rlock.h"
#include "ipc/check.h"
#include "ipc/repair.h"

#define NOW             1700000000
#define POLL_NS         10000000
#define ENGINES_AT_ONCE 8

static struct engine *engines[ENGINES_AT_ONCE];

/* ---- Failure and time -------------------------------------------------------------------- */

void engine_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

int64_t engine_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---- The futex calls of the engine -------------------------------------------------------- */

static struct engine *engine_of(const void *word)
{
	const unsigned char *p = word;

	for (int i = 0; i < ENGINES_AT_ONCE; i++)
		if (engines[i] && p >= engines[i]->base && p < engines[i]->base + REGION_BYTES)
			return engines[i];
	return NULL;
}

int futex_wake(const void *word, int count)
{
	struct engine *e = engine_of(word);

	if (e) {
		uint32_t n = fetch_add(&e->shared->wakes, 1);

		store_relaxed(&e->shared->wake_off[n % ENGINE_WAKES], region_off(e->base, word));
	}
	return (int)syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}

int futex_wait(const void *word, uint32_t value, const struct timespec *deadline)
{
	long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, deadline, NULL,
			  FUTEX_BITSET_MATCH_ANY);

	return rc < 0 ? -errno : 0;
}

bool engine_woken(const struct engine *e, uint64_t word_off, uint32_t since)
{
	uint32_t n = load_acquire(&e->shared->wakes);

	if (n - since > ENGINE_WAKES)
		engine_fail(__FILE__, __LINE__, "more wakes than can be noted");
	for (; since != n; since++)
		if (load_relaxed(&e->shared->wake_off[since % ENGINE_WAKES]) == word_off)
			return true;
	return false;
}

/* ---- What the engine asks ----------------------------------------------------------------- */

static struct actor *actor_of(struct caller *c)
{
	return c->context;
}

static bool is_dead(struct caller *c, uint32_t thread_ix, bool patient)
{
	(void)patient;
	EXPECT(thread_ix < ENGINE_THREADS);
	return load_acquire(&actor_of(c)->e->shared->thread_dead[thread_ix]);
}

static bool is_process_dead(struct caller *c, uint32_t proc_ix)
{
	EXPECT(proc_ix < ENGINE_PROCS);
	return load_acquire(&actor_of(c)->e->shared->proc_dead[proc_ix]);
}

static int copy(struct caller *c, void *to, const void *from, size_t n)
{
	struct actor *a = actor_of(c);

	/* No lock is held while user memory is touched. */
	EXPECT(!actor_slot(a)->held || c->owed);
	EXPECT(!actor_slot(a)->hold);
	if (a->copy_fault && --a->copy_fault == 0)
		return -EFAULT;
	memcpy(to, from, n);
	return 0;
}

static void repair(struct caller *c, uint32_t dead_ix, uint64_t lock_off)
{
	struct engine *e = actor_of(c)->e;

	(e->on_repair ? e->on_repair : repair_lock)(c, dead_ix, lock_off);
}

static const struct caller_ops actor_ops = {
	.is_dead = is_dead,
	.is_process_dead = is_process_dead,
	.copy_in = copy,
	.copy_out = copy,
	.repair = repair,
};

/* ---- The region --------------------------------------------------------------------------- */

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		engine_fail(__FILE__, __LINE__, "no memory for a region");
	madvise(p, bytes, MADV_DONTDUMP);
	return p;
}

struct engine *engine_new(void)
{
	struct engine *e = calloc(1, sizeof(*e));
	int i = 0;

	EXPECT(e);
	e->actor = calloc(ENGINE_ACTORS, sizeof(*e->actor));
	EXPECT(e->actor);
	e->base = shared_memory(REGION_BYTES);
	e->shared = shared_memory(sizeof(*e->shared));
	EXPECT_INT(region_format(e->base, 0, NOW), 0);
	while (i < ENGINES_AT_ONCE && engines[i])
		i++;
	EXPECT(i < ENGINES_AT_ONCE);
	engines[i] = e;
	return e;
}

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "check: %s\n", text);
}

int engine_check(const struct engine *e)
{
	return check_region(e->base, say, NULL);
}

uint64_t engine_blocks(const struct engine *e)
{
	uint64_t blocks = 0;

	for (int a = 0; a < ARENA_COUNT; a++) {
		struct arena_usage usage;

		arena_usage(e->base, (enum arena_id)a, &usage);
		blocks += usage.blocks;
	}
	return blocks;
}

int engine_free(struct engine *e)
{
	struct actor *last;
	uint32_t procs = load_acquire(&region_header(e->base)->proc_hi);
	struct table_shm *t = &region_header(e->base)->table[FAMILY_SEM];
	int bad;

	e->on_repair = NULL;
	for (uint32_t i = 0; i < e->actor_count; i++)
		engine_kill(&e->actor[i]);
	last = engine_join(e);
	engine_sweep(last);
	bad = engine_check(e);
	for (uint32_t ix = 0; ix < procs; ix++)
		if (ix != last->c.proc_ix &&
		    load_acquire(&region_proc(e->base, ix)->state) == PROC_LIVE) {
			fprintf(stderr, "process slot %u is left\n", ix);
			bad++;
		}
	for (uint32_t ix = 0; ix < t->hi; ix++) {
		uint32_t live = load_acquire(&region_object(e->base, FAMILY_SEM, ix)->live);

		if (live && engine_rmid(last, (int32_t)live - 1) != 0) {
			fprintf(stderr, "set %u cannot be removed\n", live - 1);
			bad++;
		}
	}
	bad += engine_check(e);
	for (uint32_t n = 0; n < NAME_COUNT; n++)
		while (arena_give(&last->c, (enum name)n) == OUTCOME_BUSY)
			engine_wait(last);
	if (engine_blocks(e)) {
		fprintf(stderr, "%llu blocks are left\n", (unsigned long long)engine_blocks(e));
		bad++;
	}
	for (int i = 0; i < ENGINES_AT_ONCE; i++)
		if (engines[i] == e)
			engines[i] = NULL;
	munmap(e->base, REGION_BYTES);
	munmap(e->shared, sizeof(*e->shared));
	free(e->actor);
	free(e);
	return bad;
}

/* Calls f for every range that is in use; until it says false. */
typedef bool range_function(unsigned char *to, const unsigned char *from, size_t bytes);

struct walk {
	unsigned char *to;
	const unsigned char *from;
	range_function *f;
	bool ended;
};

static void range(struct walk *w, uint64_t off, uint64_t bytes)
{
	w->ended = w->ended || (bytes && !w->f(w->to + off, w->from + off, bytes));
}

static void walk_chunks(struct walk *w, int arena)
{
	uint32_t hi = load_acquire(&region_header(w->from)->arena[arena].hi);
	uint64_t descs = CHUNKS_OFF + (uint64_t)arena * CHUNKS_BYTES;

	range(w, descs, hi * sizeof(struct chunk_shm));
	for (uint32_t ix = 0; ix < hi && !w->ended; ix++) {
		const struct chunk_shm *ch = region_at(w->from, descs + ix * sizeof(*ch));
		uint64_t off =
			ARENAS_OFF + (uint64_t)arena * ARENA_BYTES + (uint64_t)ix * CHUNK_BYTES;
		/* A span's own marks say nothing; a page never written to costs a page here. */
		uint32_t pages =
			ch->class_ix == ARENA_CLASS_SPAN || ch->class_ix == ARENA_CLASS_INSIDE
				? 0xffffu
				: ch->ready_pages;

		for (; pages; pages &= pages - 1)
			range(w, off + (uint64_t)__builtin_ctz(pages) * PAGE_BYTES, PAGE_BYTES);
	}
}

static bool walk_region(unsigned char *to, const unsigned char *from, range_function *f)
{
	const struct header_shm *h = region_header(from);
	struct walk w = {to, from, f, false};

	range(&w, HEADER_OFF, sizeof(*h));
	range(&w, GROUPS_OFF, (uint64_t)h->group_hi * PAGE_BYTES);
	range(&w, PROCS_OFF, (uint64_t)h->proc_hi * sizeof(struct proc_shm));
	range(&w, OWNERS_OFF, (uint64_t)h->group_hi * 8);
	for (int n = 0; n < FAMILY_COUNT && !w.ended; n++) {
		uint64_t table = TABLES_OFF + (uint64_t)n * TABLE_BYTES;

		range(&w, object_off((enum family)n, 0),
		      (uint64_t)h->table[n].hi * OBJECT_SLOT_BYTES);
		range(&w, table, ((uint64_t)h->table[n].bucket_mask + 1) * 4);
		range(&w, table + BITMAP_OFF, OBJECT_CAPACITY / 8);
	}
	for (int a = 0; a < ARENA_COUNT && !w.ended; a++)
		walk_chunks(&w, a);
	return !w.ended;
}

static bool copy_bytes(unsigned char *to, const unsigned char *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return true;
}

static bool same_bytes(unsigned char *to, const unsigned char *from, size_t bytes)
{
	return memcmp(to, from, bytes) == 0;
}

static void zero(struct engine *e, uint64_t off, uint64_t record_bytes, uint32_t from, uint32_t end)
{
	if (from < end)
		memset(e->base + off + from * record_bytes, 0, (end - from) * record_bytes);
}

/* What was in use in an older copy and is not any more must be as if it had never been. */
static void forget_excess(struct engine *to, const struct engine *from)
{
	const struct header_shm *t = region_header(to->base), *f = region_header(from->base);

	zero(to, PROCS_OFF, sizeof(struct proc_shm), f->proc_hi, t->proc_hi);
	zero(to, OWNERS_OFF, 8, f->group_hi, t->group_hi);
	zero(to, GROUPS_OFF, PAGE_BYTES, f->group_hi, t->group_hi);
	for (int n = 0; n < FAMILY_COUNT; n++)
		zero(to, object_off((enum family)n, 0), OBJECT_SLOT_BYTES, f->table[n].hi,
		     t->table[n].hi);
	for (int a = 0; a < ARENA_COUNT; a++)
		zero(to, CHUNKS_OFF + (uint64_t)a * CHUNKS_BYTES, sizeof(struct chunk_shm),
		     f->arena[a].hi, t->arena[a].hi);
}

void engine_copy(struct engine *to, const struct engine *from)
{
	forget_excess(to, from);
	walk_region(to->base, from->base, copy_bytes);
	memcpy(to->shared, from->shared, sizeof(*to->shared));
}

bool engine_differs(const struct engine *copy, const struct engine *of)
{
	return copy->shared->wakes != of->shared->wakes ||
	       !walk_region(copy->base, of->base, same_bytes);
}

/* ---- Actors ------------------------------------------------------------------------------- */

static void lock_joining(struct engine *e)
{
	while (exchange(&e->shared->lock, 1))
		sched_yield();
}

static struct actor *new_actor(struct engine *e)
{
	struct actor *a = &e->actor[fetch_add(&e->actor_count, 1)];

	EXPECT(a < e->actor + ENGINE_ACTORS);
	return a;
}

static struct actor *begin(struct engine *e, struct actor *a, uint32_t proc_ix, uint32_t thread_ix)
{
	*a = (struct actor){.e = e, .undo_id = -1};
	a->c = (struct caller){.base = e->base,
			       .thread_ix = thread_ix,
			       .proc_ix = proc_ix,
			       .pid = ENGINE_FIRST_PID + proc_ix,
			       .creds = &a->creds,
			       .ops = &actor_ops,
			       .context = a};
	return a;
}

static struct actor *enter(struct engine *e, struct actor *a, uint32_t proc_ix)
{
	uint32_t groups = load_acquire(&region_header(e->base)->group_hi), ix = UINT32_MAX, group;

	for (group = 0; group < groups && ix == UINT32_MAX; group++)
		for (uint32_t k = 0; k < GROUP_THREADS && procs_owns_group(e->base, proc_ix, group);
		     k++)
			if (!(CLAIM_GEN(load_acquire(
				      &region_thread(e->base, group * GROUP_SPAN + k)->claim)) &
			      1)) {
				ix = group * GROUP_SPAN + k;
				break;
			}
	if (ix == UINT32_MAX) {
		EXPECT_INT(procs_take_group(e->base, proc_ix, &group), 0);
		ix = group * GROUP_SPAN;
	}
	EXPECT(ix < ENGINE_THREADS);
	store_release(&e->shared->thread_dead[ix], 0);
	procs_enter_thread(e->base, ix, proc_ix, ENGINE_FIRST_PID + ix, true);
	return begin(e, a, proc_ix, ix);
}

static struct actor *join(struct engine *e, struct actor *a)
{
	uint32_t ix;

	lock_joining(e);
	EXPECT_INT(procs_reserve(e->base, NULL, NULL, 1, &ix), 0);
	EXPECT(ix < ENGINE_PROCS);
	store_release(&e->shared->proc_dead[ix], 0);
	procs_publish(e->base, ix, ENGINE_FIRST_PID + ix, 1, 1, 0);
	enter(e, a, ix);
	store_release(&e->shared->lock, 0);
	return a;
}

struct actor *engine_join(struct engine *e)
{
	return join(e, new_actor(e));
}

void engine_rejoin(struct actor *a)
{
	join(a->e, a);
}

struct actor *engine_join_thread(struct actor *of)
{
	struct actor *a = new_actor(of->e);

	lock_joining(of->e);
	enter(of->e, a, of->c.proc_ix);
	store_release(&of->e->shared->lock, 0);
	return a;
}

struct actor *engine_twin(struct engine *e, const struct actor *of)
{
	struct actor *a = begin(e, new_actor(e), of->c.proc_ix, of->c.thread_ix);

	a->undo_id = of->undo_id;
	a->undo_hint = of->undo_hint;
	a->creds = of->creds;
	return a;
}

void engine_kill_thread(struct actor *a)
{
	/* A slot that was given back, or that another uses by now, is nobody's to kill. */
	if (CLAIM_GEN(load_acquire(&actor_slot(a)->claim)) & 1)
		store_release(&a->e->shared->thread_dead[a->c.thread_ix], 1);
}

void engine_kill(struct actor *a)
{
	struct engine *e = a->e;

	store_release(&e->shared->proc_dead[a->c.proc_ix], 1);
	for (uint32_t g = 0; g < load_acquire(&region_header(e->base)->group_hi); g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			if (procs_owns_group(e->base, a->c.proc_ix, g))
				store_release(&e->shared->thread_dead[g * GROUP_SPAN + k], 1);
}

struct thread_shm *actor_slot(const struct actor *a)
{
	return region_self(&a->c);
}

struct proc_shm *actor_proc(const struct actor *a)
{
	return region_proc(a->e->base, a->c.proc_ix);
}

enum wait_state actor_state(const struct actor *a)
{
	return (enum wait_state)WAIT_STATE(load_acquire(&actor_slot(a)->st));
}

/* ---- Waiting ------------------------------------------------------------------------------ */

void engine_wait(struct actor *a)
{
	struct caller *c = &a->c;
	const uint32_t *word = region_at(c->base, c->busy.word_off);
	struct timespec t;
	int64_t until;
	bool is_lock = c->busy.kind == BUSY_LOCK;

	if (c->busy.kind == BUSY_VALUE) {
		sched_yield();
		return;
	}
	for (int i = 0; i < 50; i++) {
		if (load_acquire(word) != c->busy.value)
			return;
		sched_yield();
	}
	if (!(is_lock ? rlock_announce(c) : sem_announce(c)))
		return;
	until = engine_now_ns() + POLL_NS;
	t = (struct timespec){until / 1000000000, until % 1000000000};
	futex_wait(word, c->busy.value, &t);
	if (c->busy.owner_link && c->ops->is_dead(c, c->busy.owner_link - 1, true))
		rlock_recover(c, c->busy.owner_link - 1, true);
}

/* What an interrupted removal left. */
static void settle(struct actor *a)
{
	while (actor_slot(a)->op == OP_PURGE && sem_purge(&a->c, a->c.thread_ix) == OUTCOME_BUSY)
		engine_wait(a);
}

static bool again(struct actor *a, int rc)
{
	if (rc == OUTCOME_BUSY) {
		engine_wait(a);
		return true;
	}
	rlock_settle(&a->c);
	return false;
}

int engine_try(struct actor *a, int32_t id, const struct semop_shm *ops, uint32_t n)
{
	struct sem_request rq = {.id = id, .ops = ops, .nsops = n, .now = NOW, .may_queue = true};
	int rc;

	rq.undo_hint = a->undo_id == id ? a->undo_hint : 0;
	rc = sem_op(&a->c, &rq);
	if (rq.undo_hint) {
		a->undo_id = id;
		a->undo_hint = rq.undo_hint;
	}
	return rc;
}

int engine_try_op(struct actor *a, int32_t id, uint32_t num, int op, int flags)
{
	struct semop_shm s = {(uint16_t)num, (int16_t)op, (int16_t)flags};

	return engine_try(a, id, &s, 1);
}

int engine_sleep(struct actor *a)
{
	uint32_t *state = sem_wait_word(&a->c);
	int64_t end = engine_now_ns() + ENGINE_DEADLINE_S * 1000000000ll;

	rlock_settle(&a->c);
	for (;;) {
		uint32_t st = load_acquire(state);
		struct timespec t;
		int64_t until;

		if (WAIT_STATE(st) != WAIT_WAITING && WAIT_STATE(st) != WAIT_ASLEEP)
			return sem_wait_result(&a->c);
		if (WAIT_STATE(st) == WAIT_WAITING &&
		    !cas(state, &st, WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP)))
			continue;
		if (engine_now_ns() > end)
			engine_fail(__FILE__, __LINE__, "thread %u sleeps on", a->c.thread_ix);
		/* No poll: a wake that never comes must show. */
		until = end + 1000000000;
		t = (struct timespec){until / 1000000000, until % 1000000000};
		if (futex_wait(state, WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP), &t) == -ETIMEDOUT)
			engine_fail(__FILE__, __LINE__, "thread %u was never woken",
				    a->c.thread_ix);
	}
}

/* ---- Calls -------------------------------------------------------------------------------- */

int engine_semop(struct actor *a, int32_t id, const struct semop_shm *ops, uint32_t n)
{
	int rc;

	settle(a);
	do
		rc = engine_try(a, id, ops, n);
	while (again(a, rc));
	return rc == OUTCOME_SLEEP ? engine_sleep(a) : rc;
}

int engine_op(struct actor *a, int32_t id, uint32_t num, int op, int flags)
{
	struct semop_shm s = {(uint16_t)num, (int16_t)op, (int16_t)flags};

	return engine_semop(a, id, &s, 1);
}

int engine_semget(struct actor *a, int32_t key, int nsems, uint32_t flags)
{
	int32_t id = -1;
	int rc;

	settle(a);
	do
		rc = sem_get(&a->c, key, nsems, flags, NOW, &id);
	while (again(a, rc));
	return rc < 0 ? rc : id;
}

int engine_setval(struct actor *a, int32_t id, uint32_t num, int value)
{
	int rc;

	do
		rc = sem_set_one(&a->c, id, (int)num, value, NOW);
	while (again(a, rc));
	return rc;
}

static int get_one(struct actor *a, int32_t id, uint32_t num, enum sem_get_what what)
{
	int32_t value = 0;
	int rc;

	do
		rc = sem_get_one(&a->c, id, (int)num, what, &value);
	while (again(a, rc));
	return rc < 0 ? rc : value;
}

int engine_getval(struct actor *a, int32_t id, uint32_t num)
{
	return get_one(a, id, num, SEM_GET_VALUE);
}

int engine_getpid(struct actor *a, int32_t id, uint32_t num)
{
	return get_one(a, id, num, SEM_GET_PID);
}

int engine_getncnt(struct actor *a, int32_t id, uint32_t num)
{
	return get_one(a, id, num, SEM_GET_NCNT);
}

int engine_getzcnt(struct actor *a, int32_t id, uint32_t num)
{
	return get_one(a, id, num, SEM_GET_ZCNT);
}

int engine_getall(struct actor *a, int32_t id, uint16_t *values)
{
	int rc;

	do
		rc = sem_get_all(&a->c, id, values);
	while (again(a, rc));
	return rc;
}

int engine_setall(struct actor *a, int32_t id, const uint16_t *values)
{
	int rc;

	do
		rc = sem_set_all(&a->c, id, values, NOW);
	while (again(a, rc));
	return rc;
}

int engine_rmid(struct actor *a, int32_t id)
{
	int rc;

	settle(a);
	do
		rc = sem_remove(&a->c, id);
	while (again(a, rc));
	settle(a);
	rlock_settle(&a->c);
	return rc;
}

int engine_exit(struct actor *a)
{
	int rc;

	settle(a);
	do
		rc = repair_exit_process(&a->c, NOW);
	while (rc == OUTCOME_BUSY && (engine_wait(a), true));
	return rc;
}

void engine_bury(struct actor *a, struct actor *dead)
{
	while (repair_bury_process(&a->c, dead->c.proc_ix, NOW) == OUTCOME_BUSY)
		engine_wait(a);
	rlock_settle(&a->c);
}

void engine_sweep(struct actor *a)
{
	bool busy = true;

	while (busy) {
		repair_sweep(&a->c, NOW, SWEEP_ALL, &busy);
		if (busy)
			sched_yield();
	}
	rlock_settle(&a->c);
}

/* ---- cmocka ------------------------------------------------------------------------------- */

int engine_setup(void **state)
{
	*state = engine_new();
	return 0;
}

int engine_teardown(void **state)
{
	return engine_free(*state) ? -1 : 0;
}
