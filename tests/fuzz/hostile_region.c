// SPDX-License-Identifier: MIT
/* See the header. */
#include "fuzz/hostile_region.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/rlock.h"
#include "fuzz/hostile_priv.h"
#include "fuzz/marks.h"
#include "ipc/check.h"
#include "ipc/msg.h"
#include "ipc/repair.h"
#include "ipc/sem.h"

static bool strangers_are_dead;
static bool talks;

/* ---- Choices ------------------------------------------------------------------------------- */

uint64_t choose(struct choices *ch, uint64_t below)
{
	uint64_t n = 0;
	int bytes = below > UINT32_MAX ? 8 : below > 65536 ? 4 : below > 256 ? 2 : 1;

	if (below < 2)
		return 0;
	if (ch->left > 0) {
		while (bytes-- > 0 && ch->left > 0) {
			n = n << 8 | *ch->data++;
			ch->left--;
		}
	} else if (ch->state) {
		ch->state ^= ch->state << 13;
		ch->state ^= ch->state >> 7;
		ch->state ^= ch->state << 17;
		n = ch->state * 0x2545f4914f6cdd1dull >> 16;
		if (below > UINT32_MAX)
			n ^= ch->state << 20;
	}
	return n % below;
}

static bool one_in(struct choices *ch, uint64_t n)
{
	return choose(ch, n) == n - 1;
}

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *format, ...)
{
	va_list args;

	if (!talks)
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static void fail(const char *what, long long value)
{
	fprintf(stderr, "hostile: %s: %lld\n", what, value);
	abort();
}

/* ---- What the engine asks ------------------------------------------------------------------ */

static bool is_dead(struct caller *c, uint32_t thread_ix, bool patient)
{
	(void)patient;
	if (!region_life(c->base, thread_ix) || thread_ix == c->thread_ix)
		return false;
	for (uint32_t i = 0; i < ACTORS; i++)
		if (hostile.actor[i].c.thread_ix == thread_ix)
			return hostile.actor[i].dead;
	return strangers_are_dead;
}

static bool is_process_dead(struct caller *c, uint32_t proc_ix)
{
	if (!region_proc(c->base, proc_ix) || proc_ix == c->proc_ix)
		return false;
	for (uint32_t i = 0; i < ACTORS; i++)
		if (hostile.actor[i].c.proc_ix == proc_ix)
			return hostile.actor[i].dead;
	return strangers_are_dead;
}

static bool in_region(const unsigned char *p, size_t n)
{
	return p >= hostile.base && p <= hostile.base + REGION_BYTES &&
	       n <= (size_t)(hostile.base + REGION_BYTES - p);
}

/* Pointers into the region lie in it whole; nothing else is as large as the guards. */
static void check_range(const void *p, size_t n)
{
	const unsigned char *at = p;

	if (at + GUARD_BYTES >= hostile.base && at < hostile.base + REGION_BYTES + GUARD_BYTES &&
	    !in_region(at, n))
		fail("a copy goes outside the region, bytes", (long long)n);
}

static int copy_in(struct caller *c, void *to, const void *from, size_t n)
{
	(void)c;
	check_range(to, n);
	if (n > USER_BYTES)
		return -EFAULT;
	memcpy(to, from, n);
	return 0;
}

static int copy_out(struct caller *c, void *to, const void *from, size_t n)
{
	(void)c;
	check_range(from, n);
	if (n > USER_BYTES)
		return -EFAULT;
	memcpy(to, from, n);
	return 0;
}

static void drop_segment(struct caller *c, const struct segment_shm *s)
{
	(void)c, (void)s;
}

const struct caller_ops hostile_ops = {
	.is_dead = is_dead,
	.is_process_dead = is_process_dead,
	.is_image_gone = is_process_dead,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.repair = repair_lock,
	.drop_segment = drop_segment,
};

static void say_line(void *context, const char *text)
{
	(void)context;
	tell("  check: %s", text);
}

/* ---- Damage -------------------------------------------------------------------------------- */

/* A word somewhere in what is used: each range is as likely as the other, small or large. */
static uint32_t *some_word(struct choices *ch)
{
	const struct range *r = &hostile.range[choose(ch, hostile.range_count)];
	uint64_t words = r->bytes / 4;

	/* In large ranges the used part is at the beginning more often than not. */
	if (words > 1024 && !one_in(ch, 4))
		words = 1024;
	return region_at(hostile.base, r->off + choose(ch, words) * 4);
}

static uint32_t *mark_word(struct choices *ch)
{
	struct header_shm *h = region_header(hostile.base);

	switch (choose(ch, 4)) {
	case 0:
		return &h->proc_hi;
	case 1:
		return &h->group_hi;
	case 2:
		return &h->table[choose(ch, FAMILY_COUNT)].hi;
	default:
		return &h->arena[choose(ch, ARENA_COUNT)].hi;
	}
}

/* A word of what belongs to a living or dying actor: its slot, its process. */
static uint32_t *actor_word(struct choices *ch)
{
	const struct actor *a = &hostile.actor[choose(ch, ACTORS)];

	if (one_in(ch, 4))
		return region_at(hostile.base, PROCS_OFF + a->c.proc_ix * sizeof(struct proc_shm) +
						       choose(ch, sizeof(struct proc_shm) / 4) * 4);
	return region_at(hostile.base,
			 thread_off(a->c.thread_ix) + choose(ch, THREAD_BYTES / 4) * 4);
}

static uint32_t *object_word(struct choices *ch)
{
	enum family f = (enum family)choose(ch, FAMILY_COUNT);

	return region_at(hostile.base, object_off(f, (uint32_t)choose(ch, 4)) +
					       choose(ch, OBJECT_SLOT_BYTES / 4) * 4);
}

static uint32_t *header_word(struct choices *ch)
{
	return region_at(hostile.base, choose(ch, sizeof(struct header_shm) / 4) * 4);
}

static uint32_t value_for(struct choices *ch, uint32_t old)
{
	static const uint32_t odd[] = {0,          1,          2,          7,         8,
				       0xff,       0x7fff,     0x8000,     0xffff,    0x10000,
				       0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe};

	switch (choose(ch, 8)) {
	case 0:
	case 1:
		return odd[choose(ch, sizeof(odd) / sizeof(odd[0]))];
	case 2:
		return old + 1;
	case 3:
		return old - 1;
	case 4:
		return old ^ 1u << choose(ch, 32);
	case 5:
		return (uint32_t)choose(ch, 1ull << 32);
	case 6:
		return (uint32_t)choose(ch, hostile.threads * 2) + 1;
	default:
		return *some_word(ch); /* right elsewhere */
	}
}

/* Marks go down, or up a little, or to what is beyond any capacity. */
static void damage_mark(struct choices *ch)
{
	uint32_t *mark = mark_word(ch), old = *mark;

	switch (choose(ch, 4)) {
	case 0:
		*mark = (uint32_t)choose(ch, old + 1);
		break;
	case 1:
		*mark = old + (uint32_t)choose(ch, 100);
		break;
	case 2:
		*mark = 0;
		break;
	default:
		*mark = one_in(ch, 4) ? 0xffffffff : old - (old > 0);
	}
	tell("  mark at %#llx: %u, was %u", (unsigned long long)region_off(hostile.base, mark),
	     *mark, old);
}

void hostile_spoil(struct choices *ch)
{
	bool mark = !one_in(ch, 3);
	uint32_t *word = mark ? mark_word(ch) : one_in(ch, 2) ? actor_word(ch) : object_word(ch);
	uint32_t old = load_relaxed(word), value = mark ? 0 : value_for(ch, old);

	if (mark && one_in(ch, 4))
		value = one_in(ch, 4) ? ~0u : (uint32_t)choose(ch, old + 1ull);
	if (!mark && is_mark(region_header(hostile.base),
			     word)) /* only as above: pages as many are walked over */
		return;
	store_relaxed(word, value);
	for (uint64_t n = choose(ch, 300); n > 0; n--)
		cpu_relax();
	store_relaxed(word, old);
}

static void damage(struct choices *ch)
{
	uint32_t *word, old;

	switch (choose(ch, 10)) {
	case 0:
		damage_mark(ch);
		return;
	case 1:
		word = header_word(ch);
		break;
	case 2:
	case 3:
	case 4:
		word = actor_word(ch);
		break;
	case 5:
	case 6:
		word = object_word(ch);
		break;
	default:
		word = some_word(ch);
	}
	if (is_mark(region_header(hostile.base), word))
		return; /* only as above */
	old = *word;
	*word = value_for(ch, old);
	tell("  word at %#llx: %#x, was %#x", (unsigned long long)region_off(hostile.base, word),
	     *word, old);
}

/* Somebody dies: anywhere, or holding a lock, in the middle of something. */
static void kill_one(struct choices *ch)
{
	struct actor *a = &hostile.actor[choose(ch, ACTORS)];
	struct thread_shm *t = region_self(&a->c);

	a->dead = true;
	if (one_in(ch, 2)) {
		uint64_t lock;

		switch (choose(ch, 4)) {
		case 0:
			lock = ids_table_lock((enum family)choose(ch, FAMILY_COUNT));
			break;
		case 1:
			lock = offsetof(struct header_shm, arena) +
			       choose(ch, sizeof(region_header(hostile.base)->arena) / 64) * 64;
			break;
		case 2:
			lock = PROCS_OFF + choose(ch, ACTORS) * sizeof(struct proc_shm) +
			       offsetof(struct proc_shm, undo_lock);
			break;
		default:
			lock = ids_object_lock((enum family)choose(ch, FAMILY_COUNT),
					       (uint32_t)choose(ch, 4));
		}
		*(uint32_t *)region_at(hostile.base, lock) = a->c.thread_ix + 1;
		t->held = (uint32_t)lock;
		tell("  actor %u dies with the lock at %#llx", (unsigned)(a - hostile.actor),
		     (unsigned long long)lock);
	} else {
		tell("  actor %u dies", (unsigned)(a - hostile.actor));
	}
	if (one_in(ch, 2)) {
		t->op = (uint32_t)choose(ch, OP_ADMIT + 2);
		t->op_family = (uint32_t)choose(ch, FAMILY_COUNT);
		t->op_ix = (uint32_t)choose(ch, 4);
	}
	if (one_in(ch, 4)) {
		uint32_t intent = (uint32_t)choose(ch, INTENT_RMID + 2);

		for (uint32_t ix = 0; ix < 2; ix++)
			((struct set_shm *)(void *)region_known_object(hostile.base, FAMILY_SEM,
								       ix))
				->intent = intent;
	}
}

/* ---- Use ----------------------------------------------------------------------------------- */

static int32_t some_id(struct choices *ch, enum family f)
{
	const struct object_shm *o =
		region_at(hostile.base, object_off(f, (uint32_t)choose(ch, 4)));

	if (one_in(ch, 16))
		return (int32_t)choose(ch, 1ull << 32);
	return (int32_t)(o->live - 1);
}

static int call_sem(struct choices *ch, struct caller *c)
{
	int32_t id = some_id(ch, FAMILY_SEM), value = 0;
	struct semop_shm sops[12];
	struct sem_request rq = {.id = id, .ops = sops, .now = NOW + (int64_t)choose(ch, 2)};
	struct sem_status status;

	switch (choose(ch, 12)) {
	case 0:
		return sem_get(c, (int32_t)choose(ch, 9), (int)choose(ch, 50), FLAG_CREAT | 0600,
			       NOW, &id);
	case 1:
		return sem_get_one(c, id, (int)choose(ch, 40), (enum sem_get_what)choose(ch, 4),
				   &value);
	case 2:
		return sem_set_one(c, id, (int)choose(ch, 3), (int32_t)choose(ch, 4), NOW);
	case 3:
		return sem_get_all(c, id, (uint16_t *)(void *)hostile.user);
	case 4:
		memset(hostile.user, 0, sizeof(hostile.user));
		return sem_set_all(c, id, (uint16_t *)(void *)hostile.user, NOW);
	case 5:
		return sem_stat(c, id, one_in(ch, 2), one_in(ch, 2), &status);
	case 6:
		return one_in(ch, 2) ? sem_set_owner(c, id, 0, 0, 0600, NOW) : sem_remove(c, id);
	case 7:
		(void)sem_dead_holder(c, id);
		return 0;
	default:
		rq.nsops = (uint32_t)choose(ch, 12) + 1;
		if (one_in(ch, 2))
			rq.nsops = 1;
		for (uint32_t i = 0; i < rq.nsops; i++)
			sops[i] = (struct semop_shm){
				(uint16_t)choose(ch, i < 3 ? 3 : 40),
				(int16_t)((int)choose(ch, 5) - 2),
				(int16_t)(choose(ch, 2) * FLAG_UNDO | choose(ch, 2) * FLAG_NOWAIT)};
		rq.may_queue = true;
		rq.undo_hint = region_self(c)->undo_ref;
		return sem_op(c, &rq);
	}
}

static int call_msg(struct choices *ch, struct actor *a)
{
	static const uint32_t flags[] = {0, MSGF_NOWAIT, MSGF_NOERROR, MSGF_EXCEPT,
					 MSGF_COPY | MSGF_NOWAIT};
	struct caller *c = &a->c;
	int32_t id = some_id(ch, FAMILY_MSG);
	struct msg_status status;
	uint64_t count, bytes;

	switch (choose(ch, 9)) {
	case 0:
		return msg_get(c, (int32_t)choose(ch, 9), FLAG_CREAT | 0600, NOW, &id);
	case 1:
		return msg_stat(c, id, one_in(ch, 2), one_in(ch, 2), &status);
	case 2:
		return msg_set(c, id, 0, 0, 0600, choose(ch, 40000), NOW);
	case 3:
		return one_in(ch, 3) ? msg_remove(c, id) : msg_tidy(c);
	case 4:
		msg_totals(hostile.base, &count, &bytes);
		return 0;
	case 5:
	case 6:
		return hostile_send((uint32_t)(a - hostile.actor), id, (long)choose(ch, 8) + 1,
				    choose(ch, 4000), flags[choose(ch, 2)]);
	default:
		return hostile_receive((uint32_t)(a - hostile.actor), id,
				       (int64_t)choose(ch, 12) - 4, choose(ch, 9000),
				       flags[choose(ch, 5)]);
	}
}

static int call_shm(struct choices *ch, struct actor *a)
{
	struct caller *c = &a->c;
	int32_t id = some_id(ch, FAMILY_SHM);
	struct shm_request rq = {.key = (int32_t)choose(ch, 12),
				 .bytes = choose(ch, 100000),
				 .flags = FLAG_CREAT | 0600,
				 .now = NOW,
				 .admitted = true};
	struct shm_walk w;
	struct attach_shm *r;
	struct shm_status status;
	bool marked = false;
	int rc;

	switch (choose(ch, 9)) {
	case 0:
		return shm_get(c, &rq, &id);
	case 1:
		return shm_stat(c, id, one_in(ch, 2), one_in(ch, 2), &status);
	case 2:
		return shm_set_owner(c, id, 0, 0, 0600, NOW);
	case 3:
		return shm_set_locked(c, id, one_in(ch, 2), UINT64_MAX);
	case 4:
		return shm_mark_removed(c, id, &marked);
	case 5:
		return shm_destroy(c, id, (uint32_t)choose(ch, 8));
	case 6:
		if (a->attaching) {
			shm_attach_done(c, &a->attach, MIB(choose(ch, 8)), NOW);
			a->attaching = false;
			return 0;
		}
		rc = shm_attach_begin(c, id, 4, &a->attach);
		a->attaching = rc == OUTCOME_DONE;
		return rc;
	case 7:
		w = shm_records(hostile.base, c->proc_ix);
		r = shm_next_record(&w);
		if (r)
			shm_left(c, r);
		return (int)(shm_count_records(hostile.base, c->proc_ix, (uint32_t)id & 0x7fff, 1) &
			     0);
	default:
		return shm_fork(c, hostile.actor[choose(ch, ACTORS)].c.proc_ix, NOW);
	}
}

/* The waiter's own end of a sleep, as the client comes to it. */
static int end_sleep(struct choices *ch, struct caller *c)
{
	struct thread_shm *self = region_self(c);
	uint32_t state = WAIT_STATE(self->st);
	struct msg_receive_request rq = {.user = hostile.user, .bytes = choose(ch, 9000)};
	bool left, msg = self->family == FAMILY_MSG;
	int rc;

	if (state == WAIT_WAITING || state == WAIT_ASLEEP) {
		rc = msg ? msg_leave(c, &left) : sem_leave(c, &left);
		if (rc != OUTCOME_DONE || left)
			return rc;
	}
	rc = msg ? msg_wait_result(c) : sem_wait_result(c);
	if (rc == 0 && msg)
		rc = msg_receive_granted(c, &rq);
	return rc;
}

static int purge(struct caller *c)
{
	switch (region_self(c)->op_family) {
	case FAMILY_MSG:
		return msg_purge(c, c->thread_ix);
	case FAMILY_SEM:
		return sem_purge(c, c->thread_ix);
	default:
		return shm_purge(c, c->thread_ix);
	}
}

static void call(struct choices *ch, struct actor *a)
{
	struct caller *c = &a->c;
	struct thread_shm *self = region_self(c);
	unsigned what;
	bool busy;
	int rc;

	if (WAIT_STATE(self->st) != WAIT_FREE) {
		rc = end_sleep(ch, c);
		tell("  actor %u ends its sleep: %d", (unsigned)(a - hostile.actor), rc);
	}
	if (self->op == OP_PURGE)
		(void)purge(c);
	what = (unsigned)choose(ch, 10);
	if (what < 4)
		rc = call_sem(ch, c);
	else if (what < 7)
		rc = call_msg(ch, a);
	else if (what < 9)
		rc = call_shm(ch, a);
	else
		rc = (repair_sweep(c, NOW, (enum sweep)choose(ch, 3), &busy), 0);
	tell("  actor %u, family %s: %d", (unsigned)(a - hostile.actor),
	     what < 4   ? "sem"
	     : what < 7 ? "msg"
	     : what < 9 ? "shm"
			: "none",
	     rc);
	if (rc > OUTCOME_RETRY || rc < -4095)
		fail("a call's result is neither an outcome nor an errno", rc);
	if (rc == OUTCOME_BUSY) {
		if (c->busy.word_off > REGION_BYTES - 8)
			fail("what is busy lies outside the region", (long long)c->busy.word_off);
		if (c->busy.kind == BUSY_LOCK ? rlock_announce(c)
					      : c->busy.kind == BUSY_WORD && sem_announce(c))
			tell("  waits at %#llx", (unsigned long long)c->busy.word_off);
	}
	if (one_in(ch, 2))
		rlock_settle(c);
}

void hostile_round(struct choices *ch, bool say)
{
	struct actor *last = NULL;
	uint32_t damages, deaths, calls;
	bool busy;

	talks = say;
	hostile_restore();
	strangers_are_dead = one_in(ch, 2);
	damages = 1 + (uint32_t)choose(ch, one_in(ch, 4) ? 40 : 5);
	deaths = (uint32_t)choose(ch, 4);
	calls = 1 + (uint32_t)choose(ch, 24);
	while (deaths-- > 0)
		kill_one(ch);
	while (damages-- > 0)
		damage(ch);
	while (calls-- > 0) {
		struct actor *a = &hostile.actor[choose(ch, ACTORS)];

		if (a->dead)
			continue;
		call(ch, a);
		if (one_in(ch, 8))
			damage(ch);
		last = a;
	}
	if (last) {
		uint32_t users = repair_sweep(&last->c, NOW, SWEEP_ALL, &busy);

		tell("  swept: %u users%s", users, busy ? ", busy" : "");
		if (one_in(ch, 2))
			(void)repair_exit_process(&last->c, NOW);
	}
	(void)check_region(hostile.base, say_line, NULL);
}
