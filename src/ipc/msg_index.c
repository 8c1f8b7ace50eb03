// SPDX-License-Identifier: MIT
/*
 * Which message is whose, found without looking at the others.
 *
 * Messages stand in three orders, all of them in their heads, so no node is ever allocated. By
 * arrival: the chain. By type: the oldest of each type is a node of a tree, the others of its type
 * hang on it in a chain of their own. In runs: neighbours of one type in the chain form a run,
 * whose first names its last and the other way round. What is received is always the oldest of its
 * type, hence a node of the tree and the first of a run: that makes removal simple.
 *
 * Sleeping receivers: those that want exactly one type stand in a tree by type, in order of
 * arrival within it. The others (any, another than, up to) stand in one list by arrival, in runs of
 * equal wishes: a run either takes a type or is passed over whole. The older of the two hits wins.
 *
 *      wanted        found                                       cost
 *      any           the chain's head                            1
 *      t             tree                                        log of distinct types
 *      up to t       the tree's lowest, compared                 log of distinct types
 *      other than t  the head, or what follows the head's run    1
 *
 *   MSG_I1  index of a queue
 *    word      queue_shm.{root_ref, exact_root_link, other_*_link}, msg_shm.{same_ref, last_ref,
 *              run_ref, tree}, thread_shm.{msg, msg_same_*_link, msg_last_link}
 *    states    derived: from the chain by arrival, and from the waiters
 *    writers   owner of the queue's lock, or in its name the claimer of its slot
 *    order     RLOCK_P1
 *    stale-ok  run_ref inside a run, last_ref of what is no node, msg_last_link inside a run
 *    death     rebuilt by msg_repair_queue
 *    progress  bounded
 *    tests     unit/msg-index, against the scans of msg_scan.c
 */
#include "ipc/msg_priv.h"
#include "ipc/msg_tree.h"

static struct tree_shm *message_node(const unsigned char *base, uint32_t ref)
{
	struct msg_shm *m = msg_at(base, ref);

	return m ? &m->tree : NULL;
}

static struct tree_shm *waiter_node(const unsigned char *base, uint32_t link)
{
	struct thread_shm *t = region_thread(base, link - 1);

	return t ? &t->msg : NULL;
}

/* ---- Messages ---------------------------------------------------------------------------- */

void msg_index_reset(struct queue_shm *q)
{
	q->root_ref = 0;
}

static void join_tree(struct caller *c, struct queue_shm *q, uint32_t ref, struct msg_shm *m)
{
	uint32_t *at = tree_find(c->base, message_node, &q->root_ref, m->tree.key);
	struct msg_shm *node = at ? msg_at(c->base, *at) : NULL;
	struct msg_shm *last = node ? msg_at(c->base, node->last_ref) : NULL;

	m->same_ref = 0;
	if (last) {
		last->same_ref = ref;
		node->last_ref = ref;
	} else if (!node) {
		m->last_ref = ref;
		tree_insert(c->base, message_node, &q->root_ref, ref);
	}
}

void msg_index_add(struct caller *c, struct queue_shm *q, uint32_t ref)
{
	struct msg_shm *m = msg_at(c->base, ref);
	struct msg_shm *prev = m && m->prev_ref ? msg_at(c->base, m->prev_ref) : NULL;
	struct msg_shm *first;

	if (!m)
		return; /* damaged meanwhile */
	join_tree(c, q, ref, m);
	m->run_ref = ref;
	if (!prev || prev->tree.key != m->tree.key)
		return;
	first = msg_at(c->base, prev->run_ref);
	if (!first)
		return;
	m->run_ref = prev->run_ref;
	first->run_ref = ref;
}

static void leave_tree(struct caller *c, struct queue_shm *q, uint32_t ref, struct msg_shm *m)
{
	uint32_t *at = tree_find(c->base, message_node, &q->root_ref, m->tree.key);
	struct msg_shm *same = m->same_ref ? msg_at(c->base, m->same_ref) : NULL;

	if (!at || *at != ref)
		return;
	if (same) {
		same->last_ref = m->last_ref;
		tree_replace(c->base, message_node, at, m->same_ref);
	} else {
		tree_remove(c->base, message_node, at);
	}
}

void msg_index_remove(struct caller *c, struct queue_shm *q, uint32_t ref)
{
	struct msg_shm *m = msg_at(c->base, ref);
	struct msg_shm *next = m && m->next_ref ? msg_at(c->base, m->next_ref) : NULL;
	struct msg_shm *prev = m && m->prev_ref ? msg_at(c->base, m->prev_ref) : NULL;
	struct msg_shm *first, *last;
	uint32_t first_ref;

	if (!m)
		return; /* damaged meanwhile */
	leave_tree(c, q, ref, m);
	if (m->run_ref != ref) { /* the next one is its run's first now */
		last = msg_at(c->base, m->run_ref);
		if (next && last) {
			next->run_ref = m->run_ref;
			last->run_ref = m->next_ref;
		}
		return;
	}
	/* The run is gone: those beside it may be one now. */
	if (!prev || !next || prev->tree.key != next->tree.key)
		return;
	first_ref = prev->run_ref;
	first = msg_at(c->base, first_ref);
	last = msg_at(c->base, next->run_ref);
	if (first && last) {
		first->run_ref = next->run_ref;
		last->run_ref = first_ref;
	}
}

static uint32_t find_other(struct caller *c, struct queue_shm *q, int64_t type)
{
	struct msg_shm *head = msg_at(c->base, q->head_ref), *last;

	if (!head || head->tree.key != type)
		return head ? q->head_ref : 0;
	last = msg_at(c->base, head->run_ref);
	return last ? last->next_ref : 0;
}

uint32_t msg_index_find(struct caller *c, struct queue_shm *q, enum msg_kind kind, int64_t type)
{
	struct msg_shm *m;
	uint32_t *at, ref;

	if (!q->head_ref)
		return 0;
	switch (kind) {
	case MSG_KIND_ANY:
		return q->head_ref;
	case MSG_KIND_EXACT:
		at = tree_find(c->base, message_node, &q->root_ref, type);
		return at ? *at : 0;
	case MSG_KIND_OTHER:
		return find_other(c, q, type);
	case MSG_KIND_UP_TO:
		ref = tree_lowest(c->base, message_node, q->root_ref);
		m = ref ? msg_at(c->base, ref) : NULL;
		return m && m->tree.key <= type ? ref : 0;
	default:
		return 0;
	}
}

/* ---- Sleeping receivers ------------------------------------------------------------------ */

static void sleep_exact(struct caller *c, struct queue_shm *q, struct thread_shm *t, uint32_t link)
{
	uint32_t *at = tree_find(c->base, waiter_node, &q->exact_root_link, t->msg.key);
	struct thread_shm *node = at ? link_thread(c, *at) : NULL;
	struct thread_shm *last = node ? link_thread(c, node->msg_last_link) : NULL;

	t->msg_same_next_link = t->msg_same_prev_link = 0;
	if (last) {
		t->msg_same_prev_link = node->msg_last_link;
		last->msg_same_next_link = link;
		node->msg_last_link = link;
	} else if (!node) {
		t->msg_last_link = link;
		tree_insert(c->base, waiter_node, &q->exact_root_link, link);
	}
}

static void wake_exact(struct caller *c, struct queue_shm *q, struct thread_shm *t)
{
	struct thread_shm *next = link_thread(c, t->msg_same_next_link);
	struct thread_shm *prev = link_thread(c, t->msg_same_prev_link);
	struct thread_shm *node;
	uint32_t *at = NULL;

	if (!prev || !next) /* the oldest or the youngest of its type: the node changes */
		at = tree_find(c->base, waiter_node, &q->exact_root_link, t->msg.key);
	node = at ? link_thread(c, *at) : NULL;
	if (prev)
		prev->msg_same_next_link = t->msg_same_next_link;
	if (next)
		next->msg_same_prev_link = t->msg_same_prev_link;
	if (prev && !next && node) {
		node->msg_last_link = t->msg_same_prev_link;
	} else if (!prev && next && node == t) {
		next->msg_last_link = t->msg_last_link;
		tree_replace(c->base, waiter_node, at, t->msg_same_next_link);
	} else if (!prev && !next && node == t) {
		tree_remove(c->base, waiter_node, at);
	}
}

static bool same_wish(const struct thread_shm *a, const struct thread_shm *b)
{
	return a && b && a->msg_kind == b->msg_kind && a->msg.key == b->msg.key;
}

static void sleep_other(struct caller *c, struct queue_shm *q, struct thread_shm *t, uint32_t link)
{
	struct thread_shm *last = link_thread(c, q->other_tail_link), *first;

	t->msg_same_next_link = 0;
	t->msg_same_prev_link = q->other_tail_link;
	t->msg_last_link = link;
	if (last)
		last->msg_same_next_link = link;
	else
		q->other_head_link = link;
	q->other_tail_link = link;
	if (!same_wish(last, t))
		return;
	first = link_thread(c, last->msg_last_link);
	if (!first)
		return;
	t->msg_last_link = last->msg_last_link;
	first->msg_last_link = link;
}

/* Names the ends of a run to each other. */
static void span_run(struct caller *c, uint32_t first_link, uint32_t last_link)
{
	struct thread_shm *first = link_thread(c, first_link), *last = link_thread(c, last_link);

	if (first && last) {
		first->msg_last_link = last_link;
		last->msg_last_link = first_link;
	}
}

static void wake_other(struct caller *c, struct queue_shm *q, struct thread_shm *t)
{
	struct thread_shm *next = link_thread(c, t->msg_same_next_link);
	struct thread_shm *prev = link_thread(c, t->msg_same_prev_link);
	bool is_first = !same_wish(prev, t), is_last = !same_wish(t, next);

	if (next)
		next->msg_same_prev_link = t->msg_same_prev_link;
	else
		q->other_tail_link = t->msg_same_prev_link;
	if (prev)
		prev->msg_same_next_link = t->msg_same_next_link;
	else
		q->other_head_link = t->msg_same_next_link;
	if (is_first && !is_last)
		span_run(c, t->msg_same_next_link, t->msg_last_link);
	else if (is_last && !is_first)
		span_run(c, t->msg_last_link, t->msg_same_prev_link);
	else if (is_first && same_wish(prev, next))
		span_run(c, prev->msg_last_link, next->msg_last_link);
}

void msg_index_sleep(struct caller *c, struct queue_shm *q, uint32_t thread_ix)
{
	struct thread_shm *t = region_thread(c->base, thread_ix);

	if (t && t->msg_kind == MSG_KIND_EXACT)
		sleep_exact(c, q, t, thread_ix + 1);
	else if (t)
		sleep_other(c, q, t, thread_ix + 1);
}

void msg_index_wake(struct caller *c, struct queue_shm *q, uint32_t thread_ix)
{
	struct thread_shm *t = region_thread(c->base, thread_ix);

	if (t && t->msg_kind == MSG_KIND_EXACT)
		wake_exact(c, q, t);
	else if (t)
		wake_other(c, q, t);
}

uint32_t msg_index_match(struct caller *c, struct queue_shm *q, int64_t type)
{
	uint32_t *at = q->exact_root_link
			       ? tree_find(c->base, waiter_node, &q->exact_root_link, type)
			       : NULL;
	struct thread_shm *exact = at ? link_thread(c, *at) : NULL, *t, *last;
	uint32_t link = q->other_head_link, steps = 0;

	while ((t = link_thread(c, link)) && steps++ < THREAD_CAPACITY) {
		if (exact && exact->arrival < t->arrival)
			break;
		if (msg_kind_matches((enum msg_kind)t->msg_kind, t->msg.key, type))
			return link;
		last = link_thread(c, t->msg_last_link);
		link = last ? last->msg_same_next_link : 0;
	}
	return exact ? *at : 0;
}
