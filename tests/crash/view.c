// SPDX-License-Identifier: MIT
/* What others see of a region, as text, and whether they can still work with it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepper.h"
#include "unit/msg-calls.h"
#include "unit/shm-calls.h"

#include "ipc/sem_priv.h"

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

/* ---- Objects ------------------------------------------------------------------------------ */

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

static void describe_message(const struct engine *e, uint32_t ref, struct text *t)
{
	struct msg_shm *m = msg_at(e->base, ref);
	uint32_t number = 0;

	EXPECT(m);
	memcpy(&number, msg_text(m), m->bytes < 4 ? m->bytes : 4);
	add(t, " %lld/%u/%u", (long long)m->tree.key, m->bytes, number);
}

/* The number of queues. */
static uint32_t describe_queues(const struct engine *e, struct text *t)
{
	uint32_t hi = region_header(e->base)->table[FAMILY_MSG].hi, n = 0;

	for (uint32_t ix = 0; ix < hi; ix++) {
		struct queue_shm *q = region_queue(e->base, ix);

		if (!load_acquire(&q->object.live))
			continue;
		n++;
		add(t, "queue %u key %d mode %o uid %u room %llu %lld/%lld/%lld %u %u:", ix,
		    q->object.key, q->object.mode, q->object.uid, (unsigned long long)q->qbytes,
		    (long long)q->stime, (long long)q->rtime, (long long)q->object.ctime, q->lspid,
		    q->lrpid);
		for (uint32_t ref = q->head_ref; ref; ref = msg_at(e->base, ref)->next_ref)
			describe_message(e, ref, t);
		add(t, "\n");
	}
	return n;
}

static void describe_segments(const struct engine *e, struct text *t)
{
	uint32_t hi = region_header(e->base)->table[FAMILY_SHM].hi;

	for (uint32_t ix = 0; ix < hi; ix++) {
		const struct segment_shm *s = shm_segment(e->base, ix);
		uint32_t n = 0;

		if (!load_acquire(&s->object.live))
			continue;
		for (uint32_t p = 0; p < region_header(e->base)->proc_hi; p++)
			n += shm_count_records(e->base, p, ix, s->object.gen);
		add(t, "id %d key %d mode %o owner %u:%u ctime %lld bytes %llu attached %u\n",
		    s->id, s->object.mode & SEGMENT_DEST ? 0 : s->object.key, s->object.mode,
		    s->object.uid, s->object.gid, (long long)s->object.ctime,
		    (unsigned long long)s->bytes, n);
	}
}

/* ---- People ------------------------------------------------------------------------------ */

static void describe_waiter(const struct cast *c, int i, struct text *t)
{
	struct thread_shm *slot = actor_slot(c->waiter[i]);
	enum wait_state state = actor_state(c->waiter[i]);

	add(t, "waiter %d: ", i);
	if (state == WAIT_WAITING || state == WAIT_ASLEEP)
		add(t, "sleeps");
	else
		add(t, "state %d, result %d", state, state == WAIT_GRANTED ? slot->result : 0);
	if (state != WAIT_FREE && slot->family == FAMILY_MSG && slot->name_ref[NAME_FLY])
		describe_message(c->e, slot->name_ref[NAME_FLY], t);
	add(t, "\n");
}

void view_describe(const struct cast *c, struct text *t)
{
	const struct header_shm *h = region_header(c->e->base);
	uint32_t live = 0, procs = 0, queues;

	t->used = 0;
	t->s[0] = 0;
	for (int f = 0; f < FAMILY_COUNT; f++)
		add(t, "family %d: %u objects, total %llu, next after %d of %u\n", f,
		    h->table[f].in_use, (unsigned long long)h->table[f].total, h->table[f].last_ix,
		    h->table[f].seq);
	for (int i = 0; i < STEP_OBJECTS; i++)
		if (c->id[i] >= 0)
			describe_set(c, c->id[i], t);
	if (c->key) {
		int32_t id = engine_semget(c->last, c->key, 0, 0);

		add(t, "key %d: %d\n", c->key, id);
		if (id >= 0)
			describe_set(c, id, t);
	}
	queues = describe_queues(c->e, t);
	describe_segments(c->e, t);
	for (int i = 0; i < STEP_WAITERS; i++)
		if (c->waiter[i])
			describe_waiter(c, i, t);
	for (uint32_t ix = 0; ix < h->proc_hi; ix++)
		procs += region_proc(c->e->base, ix)->state != PROC_FREE;
	for (uint32_t g = 0; g < h->group_hi; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++)
			live += CLAIM_GEN(region_thread(c->e->base, g * GROUP_SPAN + k)->claim) & 1;
	add(t, "%u processes, %u threads", procs, live);
	/* How many a queue keeps for the next messages is nobody's business. */
	if (!queues)
		add(t, ", %llu blocks", (unsigned long long)engine_blocks(c->e));
	add(t, "\n");
}

void view_check_wakes(struct cast *c, uint64_t lock)
{
	for (int i = 0; i < STEP_WAITERS; i++) {
		enum wait_state state = c->waiter[i] ? actor_state(c->waiter[i]) : WAIT_FREE;

		if ((state == WAIT_GRANTED || state == WAIT_REMOVED) &&
		    !engine_woken(c->e, region_off(c->e->base, &actor_slot(c->waiter[i])->st),
				  c->wakes))
			step_fail("waiter %d was told and not woken", i);
	}
	if (lock && !engine_woken(c->e, lock, c->wakes))
		step_fail("who sleeps on lock %#llx was not woken", (unsigned long long)lock);
	for (int i = 0; i < 4; i++) {
		uint32_t word = c->lock[i] ? *(rlock_shm *)region_at(c->e->base, c->lock[i]) : 0;

		if (c->lock[i] && word != RLOCK_W && !engine_woken(c->e, c->lock[i], c->wakes))
			step_fail("lock %#llx: %#x, and nobody was woken",
				  (unsigned long long)c->lock[i], word);
	}
}

/* ---- Work -------------------------------------------------------------------------------- */

static void work_on_sets(struct cast *c, struct actor *a)
{
	struct semop_shm both[2] = {{0, 1, OP_UNDO}, {1, 1, OP_UNDO}};
	int32_t id = engine_semget(a, 4711, 2, GET_CREAT | GET_EXCL | 0600);

	if (id < 0 || engine_semop(a, id, both, 2) != 0 || engine_op(a, id, 0, -1, 0) != 0 ||
	    engine_getval(a, id, 1) != 1 || engine_rmid(a, id) != 0)
		step_fail("a new set cannot be worked with");
	for (int i = 0; i < STEP_OBJECTS; i++)
		if (c->id[i] >= 0 && engine_getval(a, c->id[i], 0) >= 0 &&
		    engine_setval(a, c->id[i], 0, 5) != 0)
			step_fail("set %d cannot be worked with", c->id[i]);
}

static bool is_allowed(int rc, int otherwise)
{
	return rc == 0 || rc == otherwise || rc == -EACCES;
}

static void work_on_queues(struct actor *a)
{
	uint32_t hi = region_header(a->e->base)->table[FAMILY_MSG].hi;
	struct got got = {0};
	int32_t id;

	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t live = load_acquire(&region_queue(a->e->base, ix)->object.live);

		id = (int32_t)live - 1;
		if (live && (!is_allowed(send_number(a, id, 3, 4, 1, MSGF_NOWAIT), -EAGAIN) ||
			     !is_allowed(receive(a, id, 64, 0, MSGF_NOWAIT | MSGF_NOERROR, NULL),
					 -ENOMSG) ||
			     !is_allowed(send_number(a, id, 3, 4, 1, MSGF_NOWAIT), -EAGAIN)))
			step_fail("queue %d cannot be worked with", id);
	}
	id = new_queue(a);
	if (send_number(a, id, 5, 100, 77, MSGF_NOWAIT) != 0 ||
	    receive(a, id, 100, 5, MSGF_NOWAIT, &got) != 0 || got.number != 77 ||
	    remove_queue(a, id) != 0)
		step_fail("a new queue cannot be worked with");
}

static void work_on_segments(struct actor *a)
{
	uint32_t hi = region_header(a->e->base)->table[FAMILY_SHM].hi;
	int32_t id;

	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t live = load_acquire(&shm_segment(a->e->base, ix)->object.live);
		int rc;

		if (!live)
			continue;
		rc = attach_at(a, (int32_t)live - 1, 64 * PAGE_BYTES);
		if (!is_allowed(rc, 0))
			step_fail("segment %u cannot be worked with", live - 1);
		if (rc == 0)
			detach_at(a, 64 * PAGE_BYTES);
	}
	id = get_segment(a, 4712, PAGE_BYTES, GET_CREAT | GET_EXCL | 0600);
	if (id < 0 || attach_at(a, id, 64 * PAGE_BYTES) != 0 || attached(a, id) != 1) {
		step_fail("a new segment cannot be worked with");
		return;
	}
	detach_at(a, 64 * PAGE_BYTES);
	if (mark_removed(a, id) != 0 || destroy(a, id) != 0 || segment_lives(a, id))
		step_fail("a new segment cannot be removed");
}

static void remove_sets(struct actor *a)
{
	uint32_t hi = region_header(a->e->base)->table[FAMILY_SEM].hi;

	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t live = region_object(a->e->base, FAMILY_SEM, ix)->live;

		if (live && engine_rmid(a, (int32_t)live - 1) != 0)
			step_fail("set %u cannot be removed", live - 1);
	}
}

static void remove_queues(struct actor *a)
{
	uint32_t hi = region_header(a->e->base)->table[FAMILY_MSG].hi;

	for (uint32_t ix = 0; ix < hi; ix++) {
		uint32_t live = region_queue(a->e->base, ix)->object.live;

		if (live && remove_queue(a, (int32_t)live - 1) != 0)
			step_fail("queue %u cannot be removed", live - 1);
	}
}

void view_take_down(struct cast *c)
{
	struct actor *a = c->last;

	for (uint32_t i = 0; i < c->e->actor_count; i++)
		if (&c->e->actor[i] != a)
			engine_kill(&c->e->actor[i]);
	engine_sweep(a);
	/* Like root, whatever became of owners and modes. */
	a->creds.cap_ipc_owner = a->creds.cap_sys_admin = true;
	remove_sets(a);
	remove_queues(a);
	remove_segments(a);
}

void view_work_and_take_down(struct cast *c)
{
	const struct header_shm *h = region_header(c->e->base);
	struct actor *a = c->last;
	bool sets = h->table[FAMILY_SEM].hi, queues = h->table[FAMILY_MSG].hi;
	bool segments = h->table[FAMILY_SHM].hi;

	if (sets || !(queues || segments))
		work_on_sets(c, a);
	if (queues)
		work_on_queues(a);
	if (segments)
		work_on_segments(a);
	view_take_down(c);
	if (engine_exit(a) != 0)
		step_fail("the last one cannot leave");
	if (engine_check(c->e))
		step_fail("not clean after all was taken down");
	if (engine_blocks(c->e))
		step_fail("%llu blocks are left", (unsigned long long)engine_blocks(c->e));
	for (uint32_t ix = 0; ix < h->proc_hi; ix++)
		if (region_proc(c->e->base, ix)->state != PROC_FREE)
			step_fail("process slot %u is left", ix);
}

/* ---- Blocks ------------------------------------------------------------------------------ */

/* As attach records and short messages have them. */
static const struct {
	enum name name;
	uint32_t bytes;
} blocks[] = {{NAME_POCKET, 256}, {NAME_SIDE, 4096}, {NAME_SOPS, 64}};
#define BLOCKS (sizeof(blocks) / sizeof(blocks[0]))

#define FILLED 64 /* bytes: each costs a step */

void view_take_blocks(struct cast *c, struct actor *a)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		enum name name = blocks[i].name;
		uint32_t own = a->c.proc_ix;
		int rc;

		a->c.proc_ix = c->pool->c.proc_ix; /* all that the arena wants to know it for */
		UNTIL_DONE(a, arena_take(&a->c, ARENA_GENERAL, name, blocks[i].bytes));
		a->c.proc_ix = own;
		EXPECT_INT(rc, 0);
		/* What still looks like the records of a child is more tempting as it is. */
		if (!c->forks)
			memset(region_block(a->e->base, actor_slot(a)->name_ref[name], FILLED), 'x',
			       FILLED);
	}
}

void view_give_blocks(struct cast *c, struct actor *a)
{
	for (size_t i = 0; i < BLOCKS; i++) {
		enum name name = blocks[i].name;
		const char *p = region_block(a->e->base, actor_slot(a)->name_ref[name], FILLED);
		int rc;

		if (!c->forks && (p[0] != 'x' || memcmp(p, p + 1, FILLED - 1) != 0))
			step_fail("a block that was free had another user");
		UNTIL_DONE(a, arena_give(&a->c, name));
		EXPECT_INT(rc, 0);
	}
}
