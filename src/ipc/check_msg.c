// SPDX-License-Identifier: MIT
/*
 * The checker's part about queues: counts and links as the chain says, sleepers in the lists that
 * they should be in and in no position to proceed, and the index giving the answers that looking
 * at everything gives.
 */
#include "core/arena.h"
#include "core/ids.h"
#include "ipc/check_priv.h"
#include "ipc/msg_priv.h"

/* Types of so many messages and sleepers are asked about, for each costs a scan. */
#define ASK_MOST 64u

static const char *const kind_name[] = {
	[MSG_KIND_ANY] = "any",
	[MSG_KIND_EXACT] = "exactly",
	[MSG_KIND_OTHER] = "other than",
	[MSG_KIND_UP_TO] = "up to",
};

static void compare(struct check *k, const struct msg_view *v, enum msg_kind kind, int64_t type)
{
	struct caller c = {.base = (unsigned char *)(uintptr_t)k->base};
	uint32_t want = msg_scan_find(&c, v->q, kind, type);
	uint32_t got = msg_index_find(&c, v->q, kind, type);

	if (want != got)
		check_bad(k, "msg id %d: of type %s %lld the index finds %#x instead of %#x", v->id,
			  kind_name[kind], (long long)type, got, want);
}

static void compare_match(struct check *k, const struct msg_view *v, int64_t type)
{
	struct caller c = {.base = (unsigned char *)(uintptr_t)k->base};
	uint32_t want = msg_scan_match(&c, v->q, type);
	uint32_t got = msg_index_match(&c, v->q, type);

	if (want != got)
		check_bad(k, "msg id %d: for type %lld the index chooses thread %d instead of %d",
			  v->id, (long long)type, (int)got - 1, (int)want - 1);
}

/* Asks the index about this type and its neighbours. */
static void ask(struct check *k, const struct msg_view *v, int64_t type)
{
	int64_t next = type < INT64_MAX ? type + 1 : type, last = type > 1 ? type - 1 : type;

	compare(k, v, MSG_KIND_EXACT, type);
	compare(k, v, MSG_KIND_EXACT, next);
	compare(k, v, MSG_KIND_OTHER, type);
	compare(k, v, MSG_KIND_UP_TO, type);
	compare(k, v, MSG_KIND_UP_TO, last);
	compare_match(k, v, type);
	compare_match(k, v, next);
}

/* 0: the last, or there is no such message any more. */
static uint32_t next_of(const struct check *k, uint32_t ref)
{
	const struct msg_shm *m = msg_at(k->base, ref);

	return m ? m->next_ref : 0;
}

static void check_chain(struct check *k, const struct msg_view *v)
{
	struct queue_shm *q = v->q;
	uint32_t ref = q->head_ref, prev = 0, count = 0, asked = 0;
	uint32_t bound = msg_chain_bound(k->base);
	uint64_t bytes = 0;

	while (ref) {
		struct msg_shm *m = msg_at(k->base, ref);
		uint64_t capacity = arena_capacity(k->base, ref);

		if (!m || capacity < sizeof(*m) || count++ > q->count || count > bound) {
			check_bad(k, "msg id %d: its chain of messages is broken at %#x", v->id,
				  ref);
			return;
		}
		if (m->bytes > capacity - sizeof(*m))
			check_bad(k, "msg id %d: message %#x is longer than its block", v->id, ref);
		if (m->tree.key < 1)
			check_bad(k, "msg id %d: message %#x has type %lld", v->id, ref,
				  (long long)m->tree.key);
		if (m->prev_ref != prev) {
			check_bad(k, "msg id %d: message %#x is not linked back", v->id, ref);
			return;
		}
		bytes += m->bytes;
		prev = ref;
		ref = m->next_ref;
	}
	if (q->tail_ref != prev)
		check_bad(k, "msg id %d: the chain of messages ends at the wrong place", v->id);
	if (count != q->count || bytes != q->bytes)
		check_bad(k, "msg id %d: %u messages of %llu bytes, counted as %u of %llu", v->id,
			  count, (unsigned long long)bytes, q->count, (unsigned long long)q->bytes);
	compare(k, v, MSG_KIND_ANY, 0);
	for (ref = q->head_ref; ref && asked++ < ASK_MOST; ref = next_of(k, ref)) {
		const struct msg_shm *m = msg_at(k->base, ref);

		if (m)
			ask(k, v, m->tree.key);
	}
}

static void check_sleeper(struct check *k, const struct msg_view *v, struct thread_shm *t,
			  uint32_t ix)
{
	struct queue_shm *q = v->q;
	struct caller c = {.base = (unsigned char *)(uintptr_t)k->base};

	if (t->msg_kind == MSG_KIND_SENDER) {
		if (t->msg_bytes < q->smallest)
			check_bad(k, "msg id %d: thread %u sends less than the least, %llu bytes",
				  v->id, ix, (unsigned long long)q->smallest);
		if (msg_fits(q, t->msg_bytes))
			check_bad(k, "thread %u sleeps on msg id %d although its message fits", ix,
				  v->id);
		if (!t->msg_block_ref || t->name_ref[NAME_POCKET] != t->msg_block_ref)
			check_bad(k, "thread %u sleeps on msg id %d without its message", ix,
				  v->id);
		return;
	}
	if (t->name_ref[NAME_FLY])
		check_bad(k, "thread %u sleeps on msg id %d with a message", ix, v->id);
	if (msg_scan_find(&c, q, (enum msg_kind)t->msg_kind, t->msg.key))
		check_bad(k, "thread %u sleeps on msg id %d although there is a message", ix,
			  v->id);
}

static uint32_t check_list(struct check *k, const struct msg_view *v, uint32_t head, uint32_t tail,
			   bool senders)
{
	uint32_t link = head, last = 0, n = 0;
	uint64_t arrival = 0;

	while (link) {
		struct thread_shm *t = region_thread(k->base, link - 1);

		if (!t || t->object_ix != v->ix || t->prev_link != last || t->arrival <= arrival ||
		    (t->msg_kind == MSG_KIND_SENDER) != senders || ++n > v->q->waiting) {
			check_bad(k, "msg id %d: a list of sleepers is broken at thread %u", v->id,
				  link - 1);
			return n;
		}
		check_sleeper(k, v, t, link - 1);
		if (!senders && n < ASK_MOST && t->msg_kind != MSG_KIND_ANY)
			ask(k, v, t->msg.key);
		arrival = t->arrival;
		last = link;
		link = t->next_link;
	}
	if (last != tail)
		check_bad(k, "msg id %d: a list of sleepers ends at the wrong place", v->id);
	return n;
}

struct sleepers {
	const struct msg_view *v;
	uint32_t count;
};

static void count_sleeper(struct check *k, struct thread_shm *t, uint32_t ix, void *context)
{
	struct sleepers *s = context;

	if (!wait_is_queued(load_acquire(&t->st)) || t->family != FAMILY_MSG || /* MSG_P1/A */
	    t->object_ix != s->v->ix)
		return;
	if (t->object_gen == s->v->q->object.gen)
		s->count++;
	else
		check_bad(k, "thread %u sleeps on a former queue in slot %u", ix, s->v->ix);
}

static void check_caches(struct check *k, const struct msg_view *v)
{
	for (uint32_t i = 0; i < QUEUE_CACHES; i++) {
		uint32_t ref = v->q->cache_ref[i], n = 0;

		while (ref && n <= QUEUE_CACHE_MOST && msg_at(k->base, ref)) {
			n++;
			ref = next_of(k, ref);
		}
		if (ref || n != v->q->cache_count[i])
			check_bad(k, "msg id %d: %u free blocks, counted as %u", v->id, n,
				  v->q->cache_count[i]);
	}
}

void check_queue(struct check *k, uint32_t ix)
{
	struct msg_view v = {.q = region_queue(k->base, ix), .ix = ix};
	struct sleepers s = {.v = &v};
	uint32_t live = v.q ? load_acquire(&v.q->object.live) : 0, listed; /* ID_P1/A */

	if (!live)
		return;
	v.id = (int32_t)(live - 1);
	check_lock(k, ids_object_lock(FAMILY_MSG, ix), "msg slot", ix);
	check_chain(k, &v);
	listed = check_list(k, &v, v.q->receiver_head_link, v.q->receiver_tail_link, false) +
		 check_list(k, &v, v.q->sender_head_link, v.q->sender_tail_link, true);
	check_each_thread(k, count_sleeper, &s);
	if (s.count != listed || s.count != v.q->waiting)
		check_bad(k, "msg id %d: %u threads sleep, %u are in lists, counted as %u", v.id,
			  s.count, listed, v.q->waiting);
	check_caches(k, &v);
}

void check_queue_blocks(struct check *k, uint32_t ix)
{
	const struct queue_shm *q = region_queue(k->base, ix);
	uint32_t n = 0, bound = msg_chain_bound(k->base);

	if (!q)
		return;
	for (uint32_t ref = q->head_ref;
	     ref && n++ <= q->count && n <= bound && msg_at(k->base, ref); ref = next_of(k, ref))
		check_name(k, ref, "msg slot", ix);
	for (uint32_t i = 0; i < QUEUE_CACHES; i++) {
		n = 0;
		for (uint32_t ref = q->cache_ref[i];
		     ref && n++ <= QUEUE_CACHE_MOST && msg_at(k->base, ref); ref = next_of(k, ref))
			check_name(k, ref, "msg slot", ix);
	}
}
