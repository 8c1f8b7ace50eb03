// SPDX-License-Identifier: MIT
/*
 * Waiting. Everything here spins for a bounded time first, then sleeps in the kernel.
 *
 * A spinner looks only about once a microsecond: lock and data share a cache line, and each look
 * stops the owner. After queueing, and before it, spinning lasts longer than a wake-up takes: a
 * shorter budget is metastable, for once both partners sleep neither ever spins long enough to
 * meet the other. Where spinning keeps failing (one CPU, long waits) it is skipped, for twice as
 * many calls after each failure.
 *
 * Every sleep is woken by somebody; time-outs serve to notice that this somebody has died. With a
 * reaper in office, or a kernel that can wait on the owner's life word too, they find nothing.
 */
#include "client/wait.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>

#include "base/futex.h"
#include "base/sys.h"
#include "client/report.h"
#include "client/session.h"
#include "core/region.h"
#include "core/rlock.h"
#include "ipc/sem.h"

#define NS_PER_S       1000000000ll
#define LOCK_SPIN_NS   20000
#define WORD_SPIN_NS   10000
#define WAIT_SPIN_NS   40000
#define LOOK_PAUSES    16
#define FIRST_POLL_NS  5000000ll
#define LAST_POLL_NS   NS_PER_S
#define LOOK_AROUND_NS NS_PER_S
/* So many polls in a row find a word damaged before it is set free. */
#define FALSEHOODS_MOST 4
#define BACKOFF_MAX     255

int64_t wait_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
	return (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
}

struct timespec wait_deadline(int64_t ns)
{
	int64_t now = wait_now_ns();

	return to_timespec(ns > INT64_MAX - now ? INT64_MAX : now + ns);
}

/* Is there another CPU on which the one we wait for can be running? */
static bool have_company(void)
{
	static uint32_t cpus;             /* 0: not asked yet */
	uint32_t n = load_relaxed(&cpus); /* the same whoever asks */

	if (n == 0) {
		uint64_t mask[128] = {0};
		long bytes = sys_call(SYS_sched_getaffinity, 0, sizeof(mask), (long)mask, 0, 0, 0);

		for (long i = 0; i < bytes / 8; i++)
			n += (uint32_t)__builtin_popcountll(mask[i]);
		n = n ? n : 1;
		store_relaxed(&cpus, n); /* see above */
	}
	return n > 1;
}

/* Spins until the 32-bit word differs from value (under mask). True: it does. */
static bool spin(const uint32_t *word, uint32_t value, uint32_t mask, int64_t budget_ns)
{
	int64_t end = 0;

	if (!have_company())
		return false;
	for (int looks = 0;; looks++) {
		if ((load_acquire(word) & mask) !=
		    (value & mask)) /* LIFE_P1/A, RLOCK_P1/A: a hint */
			return true;
		for (int i = 0; i < LOOK_PAUSES; i++)
			cpu_relax();
		if (looks % 4 == 3) {
			int64_t now = wait_now_ns();

			if (end == 0)
				end = now + budget_ns;
			else if (now > end)
				return false;
		}
	}
}

/* Adaptive: is this one of the calls that spin? */
static bool may_spin(struct thread_block *tb)
{
	if (tb->spin_skip == 0)
		return true;
	tb->spin_skip--;
	return false;
}

static void spin_ended(struct thread_block *tb, bool success)
{
	if (success)
		tb->spin_backoff = 0;
	else
		tb->spin_backoff = tb->spin_backoff * 2 + 1 > BACKOFF_MAX
					   ? BACKOFF_MAX
					   : tb->spin_backoff * 2 + 1;
	tb->spin_skip = tb->spin_backoff;
}

/* Asks the kernel to wake us at the owner's death too. Null: it is dead, or there is no word. */
static uint32_t *watch_life(struct thread_block *tb, uint32_t owner_link, uint32_t *ret_value)
{
	uint32_t *life = owner_link ? region_life(tb->caller.base, owner_link - 1) : NULL;

	if (!life)
		return NULL;
	*ret_value = life_await(life);
	return *ret_value & LIFE_DIED ? NULL : life;
}

/* The kernel has woken one waiter of the life word; a watcher may be another (WATCH_P1). */
static void pass_on_death(const struct caller *c, uint32_t owner_ix)
{
	const uint32_t *life = region_life(c->base, owner_ix);

	if (life && (load_acquire(life) & (LIFE_DIED | LIFE_WAITERS)) ==
			    (LIFE_DIED | LIFE_WAITERS)) /* LIFE_P1/A */
		futex_wake(life, INT_MAX);
}

/* Sleeps while *word == value, until the owner dies (or who has claimed its slot, if it is dead) or
 * the poll is due. */
static int sleep_on(struct thread_block *tb, const uint32_t *word, uint32_t value,
		    uint32_t owner_link, int64_t poll_ns)
{
	struct timespec deadline = wait_deadline(poll_ns);
	uint32_t life_value, *life = watch_life(tb, owner_link, &life_value);
	uint32_t claimer_link =
		life || !owner_link ? 0 : rlock_claimer_link(&tb->caller, owner_link - 1);
	int rc = -ENOSYS;

	if (claimer_link)
		life = watch_life(tb, claimer_link, &life_value);
	if (life)
		rc = futex_wait_either(word, value, life, life_value, &deadline);
	if (rc == -ENOSYS || rc == -EPERM)
		rc = life || !owner_link ? futex_wait(word, value, &deadline) : -ETIMEDOUT;
	return rc;
}

/* Says that we are about to sleep on what is busy; handlers must not come between its stores. */
static bool announce(struct thread_block *tb, struct busy *b)
{
	struct caller *c = &tb->caller;
	bool ok;

	section_enter(tb);
	c->busy = *b;
	ok = b->kind == BUSY_LOCK ? rlock_announce(c) : sem_announce(c);
	b->value = c->busy.value;
	section_leave(tb);
	return ok;
}

/* After the sleep. A handler may have settled the debt meanwhile; the wake just received is one. */
static void after_sleep(struct thread_block *tb, const struct busy *b, bool timed_out)
{
	struct caller *c = &tb->caller;

	section_enter(tb);
	if (b->kind == BUSY_LOCK) {
		if (c->owed && c->owed != b->word_off)
			rlock_settle(c);
		c->owed = (uint32_t)b->word_off;
		store_crash(&region_self(c)->held, (uint32_t)b->word_off);
	}
	if (b->owner_link && c->ops->is_dead(c, b->owner_link - 1, timed_out)) {
		pass_on_death(c, b->owner_link - 1);
		rlock_recover(c, b->owner_link - 1, timed_out);
	}
	section_leave(tb);
}

/* The word says that a thread has it, and the thread does not. */
static bool is_false(struct thread_block *tb, const struct busy *b)
{
	return b->kind == BUSY_LOCK ? rlock_is_false(&tb->caller, b) : sem_is_false(&tb->caller, b);
}

static void set_free(struct thread_block *tb, const struct busy *b)
{
	if (b->kind == BUSY_LOCK)
		rlock_break(&tb->caller, b);
	else
		sem_break(&tb->caller, b);
	report_damage();
}

/* Has it been so for many polls in a row? These may be of many waits, for who waits briefly looks
 * again later. */
static bool is_false_for_long(struct thread_block *tb, const struct busy *b)
{
	if (!is_false(tb, b)) {
		tb->doubts = 0;
		return false;
	}
	if (tb->doubted_off != b->word_off)
		tb->doubts = 0;
	tb->doubted_off = b->word_off;
	if (++tb->doubts < FALSEHOODS_MOST)
		return false;
	tb->doubts = 0;
	return true;
}

static void wait_word(struct thread_block *tb, struct busy *b, bool briefly)
{
	bool is_lock = b->kind == BUSY_LOCK;
	const uint32_t *word = region_at(tb->caller.base, b->word_off);

	if (spin(word, b->value, is_lock ? RLOCK_OWNER : ~0u,
		 is_lock ? LOCK_SPIN_NS : WORD_SPIN_NS)) {
		tb->doubts = 0;
		return;
	}
	for (int64_t poll = FIRST_POLL_NS;;
	     poll = poll * 2 > LAST_POLL_NS ? LAST_POLL_NS : poll * 2) {
		int rc = -EAGAIN;

		if (announce(tb, b)) {
			rc = sleep_on(tb, word, b->value, b->owner_link, poll);
			after_sleep(tb, b, rc == -ETIMEDOUT);
			b->value = load_acquire(word); /* RLOCK_P1/A */
		}
		if (rc != -ETIMEDOUT || !b->value ||
		    (b->value & RLOCK_OWNER) + !is_lock != b->owner_link) {
			tb->doubts = 0;
			return;
		}
		if (is_false_for_long(tb, b)) {
			set_free(tb, b);
			return;
		}
		/* Now and then the call starts over, in case of what only its beginning finds. */
		if (briefly || poll == LAST_POLL_NS)
			return;
	}
}

static bool wait_value(struct thread_block *tb, const struct busy *b)
{
	/* The half with the value: it changes with it, and with nothing else in this set's life. */
	const uint32_t *high = (const uint32_t *)region_at(tb->caller.base, b->word_off) +
			       (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 0);
	bool changed;

	if (!may_spin(tb))
		return false;
	changed = spin(high, b->value << (SEM_VALUE_SHIFT - 32),
		       (uint32_t)SEMVAL_MAX << (SEM_VALUE_SHIFT - 32), WAIT_SPIN_NS);
	spin_ended(tb, changed);
	return changed;
}

bool wait_busy(struct thread_block *tb)
{
	/* The copy is made before the section ends, for a handler's calls find things busy too. */
	struct busy b = tb->caller.busy;

	section_leave(tb);
	if (b.kind == BUSY_VALUE)
		return wait_value(tb, &b);
	wait_word(tb, &b, false);
	return true;
}

void wait_busy_in_section(struct thread_block *tb)
{
	struct busy b = tb->caller.busy;

	if (b.kind != BUSY_VALUE)
		wait_word(tb, &b, false);
}

void wait_busy_briefly(struct thread_block *tb)
{
	struct busy b = tb->caller.busy;

	if (b.kind != BUSY_VALUE)
		wait_word(tb, &b, true);
}

static bool ended(uint32_t st)
{
	return !wait_is_queued(st);
}

int wait_asleep(struct thread_block *tb, struct sleep *s, uint32_t *state,
		const struct timespec *deadline)
{
	uint32_t st = load_acquire(state); /* SEM_P2/A */
	int64_t end = deadline ? deadline->tv_sec * NS_PER_S + deadline->tv_nsec : INT64_MAX;

	if (deadline && deadline->tv_sec > INT64_MAX / NS_PER_S - 1)
		end = INT64_MAX;
	if (!ended(st) && end > wait_now_ns() && may_spin(tb))
		spin_ended(tb, spin(state, st, ~0u, WAIT_SPIN_NS));
	for (;;) {
		int64_t now, until;
		struct timespec t;
		int rc;

		st = load_acquire(state); /* SEM_P2/A */
		if (s->stale && !s->settled)
			return -EINTR;
		if (s->settled || ended(st))
			return 0;
		if (WAIT_STATE(st) == WAIT_WAITING &&
		    !cas(state, &st, WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP))) /* SEM_P2/R */
			continue;
		st = WAIT_WORD(WAIT_REQUEST(st), WAIT_ASLEEP);
		now = wait_now_ns();
		until = end - now < LOOK_AROUND_NS ? end : now + LOOK_AROUND_NS;
		t = to_timespec(until);
		if (s->cancellable)
			thread_cancel_gate(true);
		rc = futex_wait(state, st, &t);
		if (s->cancellable)
			thread_cancel_gate(false);
		if (s->settled)
			return 0;
		if (rc == -EINTR)
			return -EINTR;
		if (rc == -ETIMEDOUT) {
			if (until == end)
				return ended(load_acquire(state)) ? 0 : -ETIMEDOUT; /* SEM_P2/A */
			session_check_reaper(tb);
		}
	}
}
