/* SPDX-License-Identifier: MIT */
/*
 * The engine (core and ipc) without a client: a region in anonymous shared memory, and actors who
 * call it. An actor is a thread slot of a process slot; two actors may be driven by one thread, by
 * two threads posing as processes, or by real processes that share the region. Who is dead is what
 * the test says: that is what makes a death possible between any two steps.
 *
 * futex calls of the engine end here too: they do what they do, and are noted, so that a test can
 * ask whether somebody was woken.
 *
 * Failures print where and end the process with abort(), for they may happen in any thread.
 */
#ifndef TESTS_ENGINE_H
#define TESTS_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/caller.h"
#include "core/layout.h"
#include "core/region.h"
#include "ipc/sem.h"

#define ENGINE_ACTORS     512
#define ENGINE_THREADS    4096 /* thread indexes whose death can be told */
#define ENGINE_PROCS      1024
#define ENGINE_WAKES      1024
#define ENGINE_FIRST_PID  1000u
#define ENGINE_DEADLINE_S 60

#define OP_NOWAIT 04000
#define OP_UNDO   010000
#define GET_CREAT 01000
#define GET_EXCL  02000

struct engine;

struct actor {
	struct caller c;
	struct creds creds;
	struct engine *e;
	uint32_t copy_fault; /* this copy from now on fails with EFAULT: 1 the next; 0 none */
	uint32_t undo_hint;
	int32_t undo_id;
};

/* What is shared even between processes. */
struct engine_shared {
	unsigned char thread_dead[ENGINE_THREADS];
	unsigned char proc_dead[ENGINE_PROCS];
	uint32_t wakes; /* noted so far */
	uint64_t wake_off[ENGINE_WAKES];
	uint32_t lock; /* over joining */
};

struct engine {
	unsigned char *base;
	struct engine_shared *shared;
	/* Called instead of repair_lock(), which it may call; null: that itself. */
	void (*on_repair)(struct caller *c, uint32_t dead_ix, uint64_t lock_off);
	uint32_t actor_count;
	struct actor *actor;
};

/* ---- The region -------------------------------------------------------------------------- */

struct engine *engine_new(void);

/*
 * The end of a test: everybody is dead and buried, all sets are removed; nothing may be left.
 * Returns the number of inconsistencies, which it prints.
 */
int engine_free(struct engine *e);

/* check_region() with the findings printed. */
int engine_check(const struct engine *e);

/* Blocks that are taken, in both arenas. */
uint64_t engine_blocks(const struct engine *e);

/* Makes `to` a copy of what is in use of `from`; `to` may hold an older copy. */
void engine_copy(struct engine *to, const struct engine *from);
/* Is `copy` no longer what engine_copy() would make of it? */
bool engine_differs(const struct engine *copy, const struct engine *of);

/* ---- Actors ------------------------------------------------------------------------------ */

/* A new process with one thread. */
struct actor *engine_join(struct engine *e);
/* Another thread of the actor's process. */
struct actor *engine_join_thread(struct actor *of);

/* The dead actor's place is taken by a new process with one thread. */
void engine_rejoin(struct actor *a);

/* Death, of a thread alone or of all its process. Nothing else happens. */
void engine_kill_thread(struct actor *a);
void engine_kill(struct actor *a);

/* An actor that has the same slots in another engine's region (a copy). */
struct actor *engine_twin(struct engine *e, const struct actor *of);

struct thread_shm *actor_slot(const struct actor *a);
struct proc_shm *actor_proc(const struct actor *a);

/* ---- Calls that wait, as a client does ---------------------------------------------------- */

int engine_semget(struct actor *a, int32_t key, int nsems, uint32_t flags);
int engine_semop(struct actor *a, int32_t id, const struct semop_shm *ops, uint32_t n);
int engine_op(struct actor *a, int32_t id, uint32_t num, int op, int flags);
int engine_setval(struct actor *a, int32_t id, uint32_t num, int value);
int engine_getval(struct actor *a, int32_t id, uint32_t num);
int engine_getpid(struct actor *a, int32_t id, uint32_t num);
int engine_getncnt(struct actor *a, int32_t id, uint32_t num);
int engine_getzcnt(struct actor *a, int32_t id, uint32_t num);
int engine_getall(struct actor *a, int32_t id, uint16_t *values);
int engine_setall(struct actor *a, int32_t id, const uint16_t *values);
int engine_rmid(struct actor *a, int32_t id);
int engine_exit(struct actor *a);

/* Burial by `a`, repeated while it is busy. */
void engine_bury(struct actor *a, struct actor *dead);
void engine_sweep(struct actor *a);

/* One call into the engine, with no waiting: its outcome. The request is queued if it must wait. */
int engine_try(struct actor *a, int32_t id, const struct semop_shm *ops, uint32_t n);
int engine_try_op(struct actor *a, int32_t id, uint32_t num, int op, int flags);

/* After OUTCOME_SLEEP: until the request has ended; its result. */
int engine_sleep(struct actor *a);
/* After OUTCOME_BUSY: waits on what is busy, with nothing held. */
void engine_wait(struct actor *a);

enum wait_state actor_state(const struct actor *a);

/* Has a wake been given on this word (offset in the region) since wakes stood at `since`? */
bool engine_woken(const struct engine *e, uint64_t word_off, uint32_t since);

/* ---- Time and failure -------------------------------------------------------------------- */

int64_t engine_now_ns(void);

_Noreturn void engine_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond))                                                                       \
			engine_fail(__FILE__, __LINE__, "false: %s", #cond);                       \
	} while (0)

#define EXPECT_INT(actual, expected)                                                               \
	do {                                                                                       \
		long long expect_a = (long long)(actual), expect_b = (long long)(expected);        \
                                                                                                   \
		if (expect_a != expect_b)                                                          \
			engine_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #actual, expect_a, \
				    expect_b);                                                     \
	} while (0)

/* cmocka's setup and teardown of a test with an engine in *state. */
int engine_setup(void **state);
int engine_teardown(void **state);

#endif
