// SPDX-License-Identifier: MIT
/*
 * Semaphores under many threads that pose as processes. Each scene ends with a count that only
 * comes out right if nothing was lost or done twice, and with a clean region.
 *
 *   sem-threads SCENE [SECONDS [SEED]]
 *
 * tokens   semaphores as locks and as counters, with and without SEM_UNDO, one to six operations
 * handoff  a ring in which each wakes the next, and pairs
 * barrier  waiting for zero, by one operation and by several
 * change   SETVAL, SETALL, GETALL, IPC_RMID and creation by key under everybody's feet
 * death    as tokens, but everybody dies now and then: between two calls, where something was busy,
 *          asleep, or granted and unaware of it
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rlock.h"
#include "harness/engine.h"
#include "ipc/repair.h"

#define THREADS 8
#define SETS    3
#define SEMS    6 /* the last one: more than can be held at once, so the set's lock */
#define TOKENS  3
#define PLENTY  10000
#define DRIFT   100
#define NOW     1700000000

static struct engine *engine;
static int32_t set_id[SETS];
static uint32_t stop;
static uint64_t calls;
static int64_t end_ns;

/* Protected by semaphore 0 of each set, a lock, and by nothing else. */
static struct {
	uint64_t count;
	char pad[56];
} guarded[SETS];

struct worker {
	pthread_t thread;
	struct actor *a;
	uint32_t seed;
	int index;
	uint64_t entered[SETS], done;
	int drift[SETS];
};

static uint32_t rnd(struct worker *w, uint32_t n)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return (w->seed >> 8) % n;
}

static bool over(void)
{
	return load_relaxed(&stop);
}

static void start(struct worker *w, int n, void *(*body)(void *), uint32_t seed)
{
	for (int i = 0; i < n; i++) {
		w[i] = (struct worker){.seed = seed * 1000 + (uint32_t)i, .index = i};
		w[i].a = engine_join(engine);
		EXPECT_INT(pthread_create(&w[i].thread, NULL, body, &w[i]), 0);
	}
}

static void finish(struct worker *w, int n)
{
	while (engine_now_ns() < end_ns)
		sched_yield();
	store_relaxed(&stop, 1);
	for (int i = 0; i < n; i++) {
		EXPECT_INT(pthread_join(w[i].thread, NULL), 0);
		calls += w[i].done;
	}
}

/* ---- tokens ------------------------------------------------------------------------------- */

/* In each set: 0 a lock, 1..4 TOKENS each, 5 PLENTY that wander up and down. */
static void make_sets(void)
{
	struct actor *a = engine_join(engine);
	uint16_t values[SEMS] = {1, TOKENS, TOKENS, TOKENS, TOKENS, PLENTY};

	for (int i = 0; i < SETS; i++) {
		set_id[i] = engine_semget(a, 100 + i, SEMS, GET_CREAT | 0600);
		EXPECT(set_id[i] >= 0);
		EXPECT_INT(engine_setall(a, set_id[i], values), 0);
	}
	EXPECT_INT(engine_exit(a), 0);
}

static void expect_at_rest(int drift[SETS])
{
	struct actor *a = engine_join(engine);

	for (int i = 0; i < SETS; i++)
		for (uint32_t s = 0; s < SEMS; s++)
			EXPECT_INT(engine_getval(a, set_id[i], s), s == 0  ? 1
								   : s < 5 ? TOKENS
									   : PLENTY + drift[i]);
	EXPECT_INT(engine_exit(a), 0);
}

/* Some of a set's semaphores 1..4 and now and then 5, each by one; and the way back. */
static uint32_t choose(struct worker *w, struct semop_shm *take, struct semop_shm *give, int flags)
{
	uint32_t n = 0;

	for (uint16_t s = 1; s < SEMS; s++) {
		if (rnd(w, 3))
			continue;
		take[n] = (struct semop_shm){s, -1, (int16_t)flags};
		give[n] = (struct semop_shm){s, 1, (int16_t)flags};
		n++;
	}
	if (n)
		return n;
	take[0] = (struct semop_shm){1, -1, (int16_t)flags};
	give[0] = (struct semop_shm){1, 1, (int16_t)flags};
	return 1;
}

static void lock_and_count(struct worker *w, int i)
{
	int flags = rnd(w, 2) ? OP_UNDO : 0;

	EXPECT_INT(engine_op(w->a, set_id[i], 0, -1, flags), 0);
	guarded[i].count++;
	w->entered[i]++;
	EXPECT_INT(engine_op(w->a, set_id[i], 0, 1, flags), 0);
}

static void *use_tokens(void *arg)
{
	struct worker *w = arg;
	struct semop_shm take[SEMS], give[SEMS];

	while (!over()) {
		int i = (int)rnd(w, SETS), rc;
		uint32_t n;

		w->done++;
		switch (rnd(w, 4)) {
		case 0:
			lock_and_count(w, i);
			break;
		case 1:
			rc = w->drift[i] >= DRIFT || (w->drift[i] > -DRIFT && rnd(w, 2)) ? -1 : 1;
			EXPECT_INT(engine_op(w->a, set_id[i], 5, rc, 0), 0);
			w->drift[i] += rc;
			break;
		case 2: /* without waiting */
			n = choose(w, take, give, OP_NOWAIT | (rnd(w, 2) ? OP_UNDO : 0));
			rc = engine_semop(w->a, set_id[i], take, n);
			EXPECT(rc == 0 || rc == -EAGAIN);
			if (rc == 0)
				EXPECT_INT(engine_semop(w->a, set_id[i], give, n), 0);
			break;
		default:
			n = choose(w, take, give, rnd(w, 2) ? OP_UNDO : 0);
			EXPECT_INT(engine_semop(w->a, set_id[i], take, n), 0);
			EXPECT_INT(engine_semop(w->a, set_id[i], give, n), 0);
		}
	}
	EXPECT_INT(engine_exit(w->a), 0);
	return NULL;
}

static void scene_tokens(uint32_t seed)
{
	struct worker w[THREADS];
	int drift[SETS] = {0};

	make_sets();
	start(w, THREADS, use_tokens, seed);
	finish(w, THREADS);
	for (int i = 0; i < SETS; i++) {
		uint64_t entered = 0;

		for (int k = 0; k < THREADS; k++) {
			entered += w[k].entered[i];
			drift[i] += w[k].drift[i];
		}
		EXPECT_INT(guarded[i].count, entered);
	}
	expect_at_rest(drift);
}

/* ---- handoff ------------------------------------------------------------------------------ */

static void *pass_on(void *arg)
{
	struct worker *w = arg;
	uint32_t me = (uint32_t)w->index, next = (me + 1) % THREADS;

	while (!over()) {
		/* What is taken with SEM_UNDO is not given back to the same semaphore: semadj
		 * grows. */
		int flags = w->index & 1 && w->done < 30000 ? OP_UNDO : 0;

		EXPECT_INT(engine_op(w->a, set_id[0], me, -1, flags), 0);
		if (over()) /* perhaps one of the last lap's: there are several then */
			break;
		guarded[0].count++; /* who has the baton is alone */
		w->done++;
		EXPECT_INT(engine_op(w->a, set_id[0], next, 1, flags), 0);
	}
	/* The last lap, so that nobody waits for a baton that has been put down. */
	EXPECT_INT(engine_op(w->a, set_id[0], next, THREADS, 0), 0);
	return NULL;
}

static void *ping_pong(void *arg)
{
	struct worker *w = arg;
	uint32_t mine = (uint32_t)(w->index / 2 * 2 + w->index % 2);
	uint32_t other = mine ^ 1;
	struct semop_shm turn[2] = {{(uint16_t)mine, -1, 0}, {SEMS + 2, 0, 0}};

	while (!over()) {
		/* with a second operation the request is one of several, in the common list */
		EXPECT_INT(engine_semop(w->a, set_id[1], turn, w->index < 4 ? 1 : 2), 0);
		w->done++;
		EXPECT_INT(engine_op(w->a, set_id[1], other, 1, 0), 0);
	}
	EXPECT_INT(engine_op(w->a, set_id[1], other, 2, 0), 0);
	return NULL;
}

static void *ring_or_pair(void *arg)
{
	struct worker *w = arg;

	if (w->index < THREADS)
		return pass_on(w);
	w->index -= THREADS;
	return ping_pong(w);
}

static void scene_handoff(uint32_t seed)
{
	struct worker w[2 * THREADS];
	struct actor *a = engine_join(engine);
	uint64_t laps = 0;

	set_id[0] = engine_semget(a, 0, THREADS, 0600);
	set_id[1] = engine_semget(a, 0, SEMS + 3, 0600);
	EXPECT_INT(engine_op(a, set_id[0], 0, 1, 0), 0);
	for (uint32_t i = 0; i < THREADS; i += 2)
		EXPECT_INT(engine_op(a, set_id[1], i, 1, 0), 0);
	start(w, 2 * THREADS, ring_or_pair, seed);
	finish(w, 2 * THREADS);
	for (int i = 0; i < THREADS; i++)
		laps += w[i].done;
	EXPECT_INT(guarded[0].count, laps);
}

/* ---- barrier ------------------------------------------------------------------------------ */

/*
 * Two phases: semaphore p counts those still to come down to zero, for which all wait; the last to
 * leave sets the other one up. Nobody may be a phase ahead.
 */
static uint32_t phase[THREADS];
static uint32_t leave; /* said by thread 0 while all others wait at semaphore 3 */

static void *meet(void *arg)
{
	struct worker *w = arg;
	uint32_t p = 0;

	for (;;) {
		struct semop_shm zero[3] = {{(uint16_t)(p & 1), 0, 0}, {4, 0, 0}, {4, 0, 0}};

		store_relaxed(&phase[w->index], p);
		EXPECT_INT(engine_op(w->a, set_id[0], p & 1, -1, 0), 0);
		EXPECT_INT(engine_semop(w->a, set_id[0], zero, w->index % 2 ? 1 : 3), 0);
		for (int i = 0; i < THREADS; i++) {
			uint32_t seen = load_relaxed(&phase[i]);

			EXPECT(seen == p || seen == p + 1);
		}
		w->done++;
		/* 2 counts those who have seen it; the last one sets p up again for the phase after
		 * the next, and lets the others go (3). */
		EXPECT_INT(engine_op(w->a, set_id[0], 2, 1, 0), 0);
		if (w->index == 0) {
			EXPECT_INT(engine_op(w->a, set_id[0], 2, -THREADS, 0), 0);
			EXPECT_INT(engine_setval(w->a, set_id[0], p & 1, THREADS), 0);
			leave = over();
			EXPECT_INT(engine_op(w->a, set_id[0], 3, THREADS, 0), 0);
		}
		EXPECT_INT(engine_op(w->a, set_id[0], 3, -1, 0), 0);
		if (leave)
			return NULL;
		p++;
	}
}

static void scene_barrier(uint32_t seed)
{
	struct worker w[THREADS];
	struct actor *a = engine_join(engine);

	set_id[0] = engine_semget(a, 0, 5, 0600);
	EXPECT_INT(engine_setval(a, set_id[0], 0, THREADS), 0);
	EXPECT_INT(engine_setval(a, set_id[0], 1, THREADS), 0);
	start(w, THREADS, meet, seed);
	finish(w, THREADS);
	EXPECT_INT(engine_getval(a, set_id[0], 2), 0);
	EXPECT_INT(engine_getval(a, set_id[0], 3), 0);
	for (int i = 1; i < THREADS; i++)
		EXPECT_INT(w[i].done, w[0].done);
}

/* ---- change ------------------------------------------------------------------------------- */

static bool gone(int rc)
{
	return rc == -EINVAL || rc == -EIDRM;
}

/* All values of a set are equal whenever anybody looks: they are only set all at once. */
static void change_all(struct worker *w, int32_t id)
{
	uint16_t v[SEMS];
	int rc;

	for (int s = 0; s < SEMS; s++)
		v[s] = (uint16_t)(w->done % 30000);
	rc = rnd(w, 2) ? engine_setall(w->a, id, v) : engine_getall(w->a, id, v);
	EXPECT(rc == 0 || gone(rc));
	for (int s = 1; s < SEMS; s++)
		EXPECT_INT(v[s], v[0]);
}

static void *change(void *arg)
{
	struct worker *w = arg;
	struct semop_shm all[SEMS];

	while (!over()) {
		int key = 500 + (int)rnd(w, SETS), rc;
		int32_t id = engine_semget(w->a, key, SEMS, GET_CREAT | 0600);
		int16_t d = rnd(w, 2) ? 1 : -1;

		if (id < 0)
			EXPECT_INT(id, 0);
		w->done++;
		for (uint16_t s = 0; s < SEMS; s++)
			all[s] = (struct semop_shm){s, d, (int16_t)(rnd(w, 8) ? OP_NOWAIT : 0)};
		switch (rnd(w, 8)) {
		case 0:
			rc = engine_rmid(w->a, id);
			EXPECT(rc == 0 || gone(rc));
			break;
		case 1:
		case 2:
			change_all(w, id);
			break;
		case 3:
			rc = sem_set_owner(&w->a->c, id, 0, 0, 0600, NOW);
			EXPECT(rc == 0 || rc == OUTCOME_BUSY || gone(rc));
			break;
		case 4: {
			struct sem_status st;

			rc = sem_stat(&w->a->c, id, false, false, &st);
			EXPECT(rc == 0 || gone(rc));
			if (rc == 0)
				EXPECT_INT(st.nsems, SEMS);
			break;
		}
		default:
			rc = engine_semop(w->a, id, all, SEMS);
			EXPECT(rc == 0 || rc == -EAGAIN || rc == -ERANGE || gone(rc));
		}
		rlock_settle(&w->a->c);
	}
	return NULL;
}

/* Whoever sleeps at the end must be let go: the sets are removed until all threads have come home.
 */
static void *remove_at_the_end(void *arg)
{
	struct worker *w = arg;

	while (load_relaxed(&stop) < 2) {
		if (over() || rnd(w, 4) == 0)
			for (int i = 0; i < SETS; i++) {
				int32_t id = engine_semget(w->a, 500 + i, 0, 0);

				if (id >= 0)
					(void)engine_rmid(w->a, id); /* another may be faster */
			}
		sched_yield();
	}
	return NULL;
}

static void scene_change(uint32_t seed)
{
	struct worker w[THREADS], last;

	start(w, THREADS, change, seed);
	start(&last, 1, remove_at_the_end, seed + 1);
	finish(w, THREADS);
	store_relaxed(&stop, 2);
	EXPECT_INT(pthread_join(last.thread, NULL), 0);
}

/* ---- death -------------------------------------------------------------------------------- */

/* What this one had is buried by others; it goes on as a new process. */
static void die(struct worker *w)
{
	engine_kill(w->a);
	engine_rejoin(w->a);
}

/* One call; may die in it. False: it did, or the operation was not performed. */
static bool dangerous_call(struct worker *w, int32_t id, const struct semop_shm *ops, uint32_t n)
{
	for (;;) {
		int rc = engine_try(w->a, id, ops, n);

		if (rc == OUTCOME_BUSY) {
			/* busy: sometimes announced already, so that a wake is owed */
			if (rnd(w, 50) == 0) {
				if (w->a->c.busy.kind == BUSY_LOCK && rnd(w, 2))
					(void)rlock_announce(&w->a->c);
				die(w);
				return false;
			}
			engine_wait(w->a);
			continue;
		}
		rlock_settle(&w->a->c);
		if (rc == OUTCOME_SLEEP) {
			if (rnd(w, 50) == 0) {
				for (uint32_t k = rnd(w, 1000); k; k--)
					sched_yield();
				die(w);
				return false;
			}
			rc = engine_sleep(w->a);
		}
		EXPECT(rc == 0 || rc == -EAGAIN);
		return rc == 0;
	}
}

static void *live_dangerously(void *arg)
{
	struct worker *w = arg;
	struct semop_shm take[SEMS], give[SEMS];

	while (!over()) {
		int i = (int)rnd(w, SETS);
		uint32_t n = choose(w, take, give, OP_UNDO | (rnd(w, 4) ? 0 : OP_NOWAIT));

		w->done++;
		if (rnd(w, 8) == 0) { /* the lock, with a count that a death would spoil */
			lock_and_count(w, i);
			continue;
		}
		if (!dangerous_call(w, set_id[i], take, n))
			continue;
		if (rnd(w, 40) == 0) {
			die(w);
			continue;
		}
		(void)dangerous_call(w, set_id[i], give, n); /* dead or not, they come back */
		if (rnd(w, 200) == 0) {
			EXPECT_INT(engine_exit(w->a), 0);
			engine_rejoin(w->a);
		}
	}
	EXPECT_INT(engine_exit(w->a), 0);
	return NULL;
}

static void *bury(void *arg)
{
	struct worker *w = arg;

	while (load_relaxed(&stop) < 2) {
		engine_sweep(w->a);
		w->done++;
		sched_yield();
	}
	return NULL;
}

static void scene_death(uint32_t seed)
{
	struct worker w[THREADS], digger[2];
	int drift[SETS] = {0};

	make_sets();
	start(digger, 2, bury, seed + 1);
	start(w, THREADS, live_dangerously, seed);
	finish(w, THREADS);
	store_relaxed(&stop, 2);
	for (int i = 0; i < 2; i++)
		EXPECT_INT(pthread_join(digger[i].thread, NULL), 0);
	engine_sweep(digger[0].a);
	for (int i = 0; i < SETS; i++) {
		uint64_t entered = 0;

		for (int k = 0; k < THREADS; k++)
			entered += w[k].entered[i];
		EXPECT_INT(guarded[i].count, entered);
	}
	expect_at_rest(drift);
}

/* ------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(uint32_t seed);
	} scene[] = {
		{"tokens", scene_tokens}, {"handoff", scene_handoff}, {"barrier", scene_barrier},
		{"change", scene_change}, {"death", scene_death},
	};
	int seconds = argc > 2 ? atoi(argv[2]) : 3;
	uint32_t seed =
		argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : (uint32_t)(engine_now_ns() / 1000);

	for (size_t i = 0; argc > 1 && i < sizeof(scene) / sizeof(scene[0]); i++)
		if (strcmp(argv[1], scene[i].name) == 0) {
			int bad;

			printf("%s, seed %u\n", argv[1], seed);
			fflush(stdout);
			engine = engine_new();
			end_ns = engine_now_ns() + seconds * 1000000000ll;
			scene[i].run(seed);
			bad = engine_free(engine);
			printf("%llu rounds\n", (unsigned long long)calls);
			return bad ? 1 : 0;
		}
	fprintf(stderr, "usage: %s tokens|handoff|barrier|change|death [SECONDS [SEED]]\n",
		argv[0]);
	return 2;
}
