// SPDX-License-Identifier: MIT
/*
 * The set's lock and what happens under it: whoever must wait queues here, and whoever changes the
 * set performs the operations of those who can now proceed, on their behalf, then tells them.
 *
 * The lists are Linux's: one-operation requests on their semaphore (those that alter it and those
 * that wait for zero apart), requests of several operations on the set's two lists. While one of
 * several operations waits, all altering requests stand in one list, so that one order of arrival
 * governs. When each request is looked at again, and which are skipped, follows the kernel to the
 * letter, since programs see it: in results (EAGAIN, ERANGE computed at wake time), in sempid, in
 * GETNCNT and GETZCNT, which count what blocked each request when it was last looked at.
 *
 * Claiming: the owner of the lock sets SLOW on the words it needs, also on a held one: the holder's
 * release keeps the bit, and after that the word is the lock's. A held word is waited for with
 * nothing held.
 *
 * One store commits a change: the set's intent. Everything it says is prepared before (the outcome
 * in the shadow beside each semaphore) and applied after by steps that recovery can repeat.
 *
 *   SEM_L1  set lock and intent
 *    word      set_shm.object.lock (RLOCK_P1), set_shm.intent
 *    states    intent NONE > kind > NONE, only while the lock is owned
 *    writers   the lock's owner, or in its name the claimer of its slot
 *    order     RLOCK_P1 publishes lists, shadow and intent
 *    stale-ok  shadow marks with no intent: cleared by repair
 *    death     no intent: lists rebuilt from the waiters (by arrival), everybody looked at again.
 *              Intent: applied to the end, then the same. After the unlock: owes_wake makes
 *              recovery wake everybody of the set who has been told
 *    progress  blocks; bounded by what the lists hold
 *    tests     unit/sem-set, conform/sem_sleep, models/sem.pml
 *
 *   SEM_P2  waiter hand-off
 *    word      thread_shm.st {request 28, state 4}
 *    states    FREE > WAITING > ASLEEP; {WAITING, ASLEEP} > {GRANTED, REMOVED, FREE}
 *    writers   owner of the set's lock: all edges out of WAITING and ASLEEP. The waiter:
 *              WAITING > ASLEEP, {GRANTED, REMOVED} > FREE
 *    order     R of tell() pairs with A of sem_wait_result; publishes result
 *    sleep     client, on {request, ASLEEP}; the step to ASLEEP and tell() are RMWs of one word
 *    stale-ok  a wake may come late: waiters read the state again. A waiter that has been told is
 *              in no list: it is unlinked first, for it may stand in another set's list at once
 *    death     granter before the intent: nothing. With it: redone; the request number keeps a
 *              redone grant off the waiter's next request. Told but not woken: owes_wake. Waiter
 *              queued: it leaves at burial. Waiter granted: the operation stands, as in Linux
 *    progress  granter bounded, waiter blocks
 *    tests     conform/sem_sleep, stress/sem-threads, crash/scenes-sem, models/sem.pml
 */
#include <errno.h>
#include <limits.h>

#include "base/futex.h"
#include "core/arena.h"
#include "core/ids.h"
#include "core/rlock.h"
#include "ipc/sem_priv.h"

uint64_t sem_lock_off(const struct sem_view *v)
{
	return ids_object_lock(FAMILY_SEM, v->ix);
}

struct semq_shm *sem_side(struct caller *c, const struct sem_view *v)
{
	if (v->side)
		return v->side;
	/* relaxed: of a set that is just gone; who asks looks at that afterwards, under the lock */
	return region_block(c->base, load_relaxed(&v->set->side_ref),
			    (uint64_t)v->nsems * sizeof(struct semq_shm));
}

static const struct semop_shm no_ops[1];

const struct semop_shm *sem_request_ops(struct caller *c, const struct thread_shm *t)
{
	const struct semop_shm *ops;

	if (t->nsops <= SEMOPS_INLINE)
		return t->sop;
	ops = region_block(c->base, t->name_ref[NAME_SOPS],
			   (uint64_t)t->nsops * sizeof(struct semop_shm));
	return ops ? ops : no_ops;
}

/* The operations of a queued request, cut to those that lie in the set (damage aside, all). */
uint32_t sem_request_count(struct caller *c, const struct sem_view *v, const struct thread_shm *t)
{
	const struct semop_shm *ops = sem_request_ops(c, t);
	uint32_t n = ops == no_ops ? 0 : t->nsops;

	for (uint32_t i = 0; i < n; i++)
		if (ops[i].num >= v->nsems)
			return i;
	return n;
}

static int value_of(const struct sem_view *v, uint32_t num)
{
	return SEM_WORD_VALUE(load_acquire(&view_word(v, num)->word)); /* SEM_W1/A */
}

/* ---- Claiming and settling words --------------------------------------------------------- */

static int claim_word(struct caller *c, const struct sem_view *v, uint32_t num)
{
	struct sem_shm *s = view_word(v, num);
	uint64_t seen = load_acquire(&s->word); /* SEM_W1/A */
	int rc;

	for (;;) {
		if (!(seen & SEM_SLOW) && !cas(&s->word, &seen, seen | SEM_SLOW)) /* SEM_W1/R */
			continue;
		seen |= SEM_SLOW;
		if (!(seen & SEM_HELD))
			return OUTCOME_DONE;
		rc = sem_word_busy(c, s, seen);
		if (rc != OUTCOME_DONE)
			return rc;
		seen = load_acquire(&s->word); /* SEM_W1/A: its holder was dead */
	}
}

int sem_claim(struct caller *c, const struct sem_view *v, const struct semop_shm *ops, uint32_t n)
{
	int rc = OUTCOME_DONE;

	if (!ops)
		n = v->nsems;
	for (uint32_t i = 0; i < n && rc == OUTCOME_DONE; i++)
		rc = claim_word(c, v, ops ? ops[i].num : i);
	return rc;
}

void sem_settle_words(struct caller *c, const struct sem_view *v, const struct semop_shm *ops,
		      uint32_t n)
{
	struct semq_shm *side = sem_side(c, v);

	if (!side || v->set->const_count)
		return;
	if (!ops)
		n = v->nsems;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t num = ops ? ops[i].num : i;
		struct sem_shm *s = view_word(v, num);
		uint64_t seen = load_relaxed(&s->word); /* SLOW: ours, or the CAS below fails */

		if (side[num].named == 0 && (seen & SEM_SLOW) && !(seen & SEM_HELD))
			(void)cas(&s->word, &seen,
				  seen & ~SEM_SLOW); /* SEM_W1/R; stale SLOW is ok */
	}
}

/* ---- Lists ------------------------------------------------------------------------------- */

struct ends {
	uint32_t *head, *tail;
};

static struct ends ends_of(struct caller *c, const struct sem_view *v, enum list list, uint32_t num)
{
	struct semq_shm *side = sem_side(c, v);
	struct set_shm *set = v->set;

	switch (side ? list : LIST_NONE) { /* null: damaged meanwhile, as below */
	case LIST_SEM_ALTER:
		return (struct ends){&side[num].alter_head, &side[num].alter_tail};
	case LIST_SEM_ZERO:
		return (struct ends){&side[num].zero_head, &side[num].zero_tail};
	case LIST_CONST:
		return (struct ends){&set->const_head, &set->const_tail};
	default:
		return (struct ends){&set->alter_head, &set->alter_tail};
	}
}

uint32_t sem_list_bound(struct caller *c, const struct sem_view *v)
{
	uint32_t threads = region_group_count(c->base) * GROUP_THREADS;

	return v->set->waiting < threads ? v->set->waiting : threads;
}

struct thread_shm *sem_link_thread(struct caller *c, uint32_t link)
{
	return link ? region_thread(c->base, link - 1) : NULL;
}

static void append(struct caller *c, struct ends e, struct thread_shm *t, uint32_t thread_ix)
{
	struct thread_shm *last = sem_link_thread(c, *e.tail);

	t->next_link = 0;
	t->prev_link = *e.tail;
	if (last)
		last->next_link = thread_ix + 1;
	else
		*e.head = thread_ix + 1;
	*e.tail = thread_ix + 1;
}

static void detach(struct caller *c, struct ends e, struct thread_shm *t)
{
	struct thread_shm *next = sem_link_thread(c, t->next_link);
	struct thread_shm *prev = sem_link_thread(c, t->prev_link);

	if (next)
		next->prev_link = t->prev_link;
	else
		*e.tail = t->prev_link;
	if (prev)
		prev->next_link = t->next_link;
	else
		*e.head = t->next_link;
	t->next_link = t->prev_link = 0;
}

/* A request of several operations is about to wait: all altering ones go into one list. */
static void merge(struct caller *c, const struct sem_view *v)
{
	struct semq_shm *side = sem_side(c, v);

	for (uint32_t num = 0; side && num < v->nsems; num++) {
		struct thread_shm *first = sem_link_thread(c, side[num].alter_head);
		struct thread_shm *last = sem_link_thread(c, side[num].alter_tail);
		struct thread_shm *old = sem_link_thread(c, v->set->alter_head);
		uint32_t steps = 0, bound = sem_list_bound(c, v);

		if (!first || !last)
			continue;
		for (struct thread_shm *t = first; t && steps++ < bound;
		     t = sem_link_thread(c, t->next_link))
			t->listed = LIST_ALTER;
		last->next_link = v->set->alter_head;
		if (old)
			old->prev_link = side[num].alter_tail;
		else
			v->set->alter_tail = side[num].alter_tail;
		v->set->alter_head = side[num].alter_head;
		side[num].alter_head = side[num].alter_tail = 0;
	}
}

/* The last of several operations has left: each altering request back to its semaphore. */
void sem_unmerge(struct caller *c, const struct sem_view *v)
{
	uint32_t link = v->set->alter_head, steps = 0, bound = sem_list_bound(c, v);

	v->set->alter_head = v->set->alter_tail = 0;
	while (link && steps++ <= bound && sem_side(c, v)) {
		struct thread_shm *t = sem_link_thread(c, link);
		uint32_t next;

		if (!t)
			return;
		next = t->next_link;
		if (t->sop[0].num < v->nsems) {
			t->listed = LIST_SEM_ALTER;
			append(c, ends_of(c, v, LIST_SEM_ALTER, t->sop[0].num), t, link - 1);
		}
		link = next;
	}
}

void sem_enlist(struct caller *c, const struct sem_view *v, struct thread_shm *t,
		uint32_t thread_ix)
{
	struct set_shm *set = v->set;
	struct semq_shm *side = sem_side(c, v);
	const struct semop_shm *ops = sem_request_ops(c, t);
	uint32_t n = sem_request_count(c, v, t);

	if (n == 0 || !side)
		return;
	if (n > 1 && set->complex_count == 0)
		merge(c, v);
	if (n == 1 && !t->alters)
		t->listed = LIST_SEM_ZERO;
	else if (!t->alters)
		t->listed = LIST_CONST;
	else
		t->listed = n > 1 || set->complex_count ? LIST_ALTER : LIST_SEM_ALTER;
	append(c, ends_of(c, v, (enum list)t->listed, ops[0].num), t, thread_ix);
	set->waiting++;
	if (n > 1) {
		set->complex_count++;
		set->const_count += !t->alters;
	}
	for (uint32_t i = 0; i < n; i++)
		side[ops[i].num].named++;
}

void sem_enqueue(struct caller *c, const struct sem_view *v, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);

	t->arrival = ++v->set->arrival;
	store_crash(&t->st, WAIT_WORD(WAIT_REQUEST(t->st), WAIT_WAITING)); /* SEM_P2/R commit */
	sem_enlist(c, v, t, thread_ix);
}

void sem_unlink(struct caller *c, const struct sem_view *v, uint32_t thread_ix)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	struct set_shm *set = v->set;
	struct semq_shm *side = sem_side(c, v);
	const struct semop_shm *ops = sem_request_ops(c, t);
	uint32_t n = sem_request_count(c, v, t);

	if (t->listed == LIST_NONE || n == 0 || !side)
		return;
	detach(c, ends_of(c, v, (enum list)t->listed, ops[0].num), t);
	t->listed = LIST_NONE;
	set->waiting--;
	for (uint32_t i = 0; i < n; i++)
		side[ops[i].num].named--;
	if (n > 1) {
		set->const_count -= !t->alters;
		set->complex_count--;
	}
}

/* ---- Evaluating a request ---------------------------------------------------------------- */

void sem_clear_shadow(struct caller *c, const struct sem_view *v, const struct semop_shm *ops,
		      uint32_t n)
{
	struct semq_shm *side = sem_side(c, v);

	if (!ops)
		n = v->nsems;
	for (uint32_t i = 0; side && i < n; i++)
		side[ops ? ops[i].num : i].used = 0;
}

int sem_evaluate(struct caller *c, const struct sem_view *v, struct thread_shm *t)
{
	const struct semop_shm *ops = sem_request_ops(c, t);
	uint32_t n = sem_request_count(c, v, t);
	struct semq_shm *side = sem_side(c, v);
	struct undo_shm *undo = t->undo_ref ? sem_undo_at(c, t->undo_ref, v) : NULL;
	int rc = side ? 0 : -ENOTRECOVERABLE;

	for (uint32_t i = 0; side && i < n; i++) {
		struct semq_shm *q = &side[ops[i].num];
		int value, adj;

		if (!q->used) {
			q->used = 1;
			q->next_value = (uint16_t)value_of(v, ops[i].num);
			q->next_adj = undo ? undo->adj[ops[i].num] : 0;
		}
		value = q->next_value;
		adj = q->next_adj;
		if (sem_would_block(&ops[i], value)) {
			t->blocking = (uint16_t)i;
			rc = ops[i].flags & SEMOP_NOWAIT ? -EAGAIN : 1;
			break;
		}
		value += ops[i].op;
		if (ops[i].flags & SEMOP_UNDO)
			adj -= ops[i].op;
		if (value > SEMVAL_MAX || adj < SEM_ADJ_MIN || adj > SEM_ADJ_MAX) {
			rc = -ERANGE;
			break;
		}
		q->next_value = (uint16_t)value;
		q->next_adj = (int16_t)adj;
	}
	if (rc != 0)
		sem_clear_shadow(c, v, ops, n);
	return rc;
}

/* ---- Committing and applying ------------------------------------------------------------- */

/* Writes the shadow of one semaphore out. The word is ours: SLOW, and not held. */
static void apply_word(const struct sem_view *v, const struct semq_shm *q, uint32_t num,
		       uint32_t pid)
{
	store_crash(&view_word(v, num)->word,
		    SEM_WORD(q->next_value, v->gen, pid) | SEM_SLOW); /* SEM_W1/R */
}

static void apply_request(struct caller *c, const struct sem_view *v, struct thread_shm *t)
{
	const struct semop_shm *ops = sem_request_ops(c, t);
	uint32_t n = sem_request_count(c, v, t);
	struct semq_shm *side = sem_side(c, v);
	struct undo_shm *undo = t->undo_ref ? sem_undo_at(c, t->undo_ref, v) : NULL;

	for (uint32_t i = 0; side && i < n; i++) {
		uint32_t num = ops[i].num;

		if (!side[num].used)
			continue;
		if (undo)
			store_crash(&undo->adj[num], side[num].next_adj);
		if (i == 0) /* published with the word */
			store_relaxed(&view_word(v, num)->otime, v->set->intent_time);
		apply_word(v, &side[num], num, v->set->intent_pid);
	}
}

static void apply_all(struct caller *c, const struct sem_view *v, struct undo_shm *exiting)
{
	struct semq_shm *side = sem_side(c, v);

	for (uint32_t num = 0; side && num < v->nsems; num++) {
		if (!side[num].used)
			continue;
		if (v->set->intent_otime_ix == num) /* published with the word */
			store_relaxed(&view_word(v, num)->otime, v->set->intent_time);
		/* used 2: the time alone changes, the value and its pid stay */
		if (side[num].used == 1)
			apply_word(v, &side[num], num, v->set->intent_pid);
		if (exiting)
			store_crash(&exiting->adj[num], 0);
	}
}

/* The waiter learns of its end; a sleeper goes on the wake list. */
static void tell(struct thread_shm *t, uint32_t thread_ix, uint32_t request, enum wait_state state,
		 struct sem_wakes *wakes)
{
	uint32_t seen = load_acquire(&t->st); /* SEM_P2/A */

	do {
		if (WAIT_REQUEST(seen) != request || !wait_is_queued(seen))
			return;
	} while (!cas(&t->st, &seen, WAIT_WORD(request, state))); /* SEM_P2/R */
	if (WAIT_STATE(seen) != WAIT_ASLEEP)
		return;
	if (wakes->count == sizeof(wakes->thread_ix) / sizeof(wakes->thread_ix[0]))
		futex_wake(&t->st, INT_MAX);
	else
		wakes->thread_ix[wakes->count++] = thread_ix;
}

static bool is_queued(const struct sem_view *v, const struct thread_shm *t, uint32_t st)
{
	return wait_is_of(t, WAIT_REQUEST(st), FAMILY_SEM, v->ix, v->gen);
}

/* Calls f for every queued request of the set, however the lists may look. */
void sem_each_waiter(struct caller *c, const struct sem_view *v,
		     void (*f)(struct caller *c, const struct sem_view *v, struct thread_shm *t,
			       uint32_t thread_ix, struct sem_wakes *wakes),
		     struct sem_wakes *wakes)
{
	uint32_t groups = region_group_count(c->base);

	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t k = 0; k < GROUP_THREADS; k++) {
			struct thread_shm *t = region_thread(c->base, g * GROUP_SPAN + k);
			uint32_t st = t ? load_acquire(&t->st) : 0; /* SEM_P2/A */

			if (t && is_queued(v, t, st))
				f(c, v, t, g * GROUP_SPAN + k, wakes);
		}
}

static void tell_removed(struct caller *c, const struct sem_view *v, struct thread_shm *t,
			 uint32_t thread_ix, struct sem_wakes *wakes)
{
	(void)c;
	(void)v;
	t->listed = LIST_NONE;
	t->result = -EIDRM;
	tell(t, thread_ix, WAIT_REQUEST(load_relaxed(&t->st)), /* tell() looks again */
	     WAIT_REMOVED, wakes);
}

static void apply_removal(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes)
{
	struct set_shm *set = v->set;
	struct thread_shm *remover = region_thread(c->base, set->intent_thread);

	if (remover) {
		remover->op_family = FAMILY_SEM;
		remover->op_ix = v->ix;
		store_crash(&remover->op, OP_PURGE);
	}
	store_crash(&set->object.live, 0); /* ID_P1/R: id and key are free from here on */
	sem_each_waiter(c, v, tell_removed, wakes);
	set->alter_head = set->alter_tail = set->const_head = set->const_tail = 0;
	set->complex_count = set->const_count = set->waiting = 0;
	sem_undo_drop_set(c, set);
	for (uint32_t num = 0; num < v->nsems; num++)
		store_release(&view_word(v, num)->word, 0); /* SEM_G1/R: no id matches any more */
}

static void apply_grant(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes)
{
	struct set_shm *set = v->set;
	struct thread_shm *t = region_thread(c->base, set->intent_thread);
	uint32_t st = t ? load_acquire(&t->st) : 0; /* SEM_P2/A */
	bool ours = t && WAIT_REQUEST(st) == set->intent_request && is_queued(v, t, st);

	if (!ours)
		return; /* told already: then all of it was done */
	if (set->intent == INTENT_GRANT)
		apply_request(c, v, t);
	sem_unlink(c, v, set->intent_thread);
	t->result = set->intent_result;
	tell(t, set->intent_thread, set->intent_request, WAIT_GRANTED, wakes);
}

/* Carries the intent out and takes it away. Repeatable from any point. */
void sem_apply(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes)
{
	struct set_shm *set = v->set;
	struct thread_shm *t = region_thread(c->base, set->intent_thread);
	struct undo_shm *undo;

	switch (set->intent) {
	case INTENT_SELF:
		if (t)
			apply_request(c, v, t);
		break;
	case INTENT_GRANT:
	case INTENT_FAIL:
		apply_grant(c, v, wakes);
		break;
	case INTENT_SETVAL:
		sem_undo_clear(c, v);
		apply_all(c, v, NULL);
		store_relaxed(&set->object.ctime, set->intent_time); /* read at any time */
		break;
	case INTENT_SET:
		if (t) {
			store_relaxed(&set->object.uid,
				      t->set_uid); /* permission is checked at any time */
			store_relaxed(&set->object.gid, t->set_gid);         /* the same */
			store_relaxed(&set->object.mode, t->set_mode);       /* the same */
			store_relaxed(&set->object.ctime, set->intent_time); /* the same */
		}
		break;
	case INTENT_EXIT:
		undo = sem_undo_at(c, set->intent_undo_ref, v);
		apply_all(c, v, undo);
		sem_undo_unlink(c, v, set->intent_undo_ref);
		break;
	case INTENT_RMID:
		apply_removal(c, v, wakes);
		break;
	default:
		break;
	}
	store_crash(&set->intent, INTENT_NONE);
}

void sem_commit(struct caller *c, const struct sem_view *v, enum sem_intent kind,
		uint32_t thread_ix, int32_t result, struct sem_wakes *wakes)
{
	struct set_shm *set = v->set;
	struct thread_shm *t = region_known_thread(c->base, thread_ix);

	set->intent_thread = thread_ix;
	set->intent_result = result;
	if (kind == INTENT_SELF || kind == INTENT_GRANT || kind == INTENT_FAIL) {
		set->intent_request = WAIT_REQUEST(load_relaxed(&t->st)); /* set before the lock */
		set->intent_pid = t->pid;
	}
	store_crash(&set->intent, kind); /* SEM_L1 commit */
	sem_apply(c, v, wakes);
}

/* ---- Serving ----------------------------------------------------------------------------- */

/* A killed sleeper is no longer there, though nobody has buried it yet. */
bool sem_is_gone(struct caller *c, uint32_t thread_ix)
{
	return c->ops->is_dead(c, thread_ix, false);
}

/*
 * Looks at one queued request: 1 it waits on, 0 it was performed, -errno it failed. In the last
 * two cases it is out of the lists and told. Its operations are copied first, for once told the
 * waiter may use its record for another request.
 */
static int try_waiter(struct caller *c, const struct sem_view *v, uint32_t thread_ix, bool *complex,
		      struct sem_wakes *wakes)
{
	struct thread_shm *t = region_known_thread(c->base, thread_ix);
	const struct semop_shm *ops = sem_request_ops(c, t);
	uint32_t n = sem_request_count(c, v, t);
	int rc;

	if (sem_is_gone(c, thread_ix) || !is_queued(v, t, load_acquire(&t->st))) /* SEM_P2/A */
		return 1; /* the second: by damage only, but then a grant would take nobody out */
	*complex = n > 1;
	rc = sem_evaluate(c, v, t);
	if (rc > 0)
		return rc;
	if (n <= SEMOPS_INLINE) {
		struct semop_shm copy[SEMOPS_INLINE];

		for (uint32_t i = 0; i < n; i++)
			copy[i] = ops[i];
		sem_commit(c, v, rc == 0 ? INTENT_GRANT : INTENT_FAIL, thread_ix, rc, wakes);
		sem_clear_shadow(c, v, copy, n);
		sem_settle_words(c, v, copy, n);
	} else {
		struct semq_shm *side = sem_side(c, v);

		for (uint32_t i = 0; side && rc == 0 && t->alters && i < n; i++)
			if (ops[i].num < v->nsems)
				side[ops[i].num].touched = 1;
		sem_commit(c, v, rc == 0 ? INTENT_GRANT : INTENT_FAIL, thread_ix, rc, wakes);
		sem_clear_shadow(c, v, NULL, 0);
	}
	return rc;
}

/* The zero-waiters of one list. */
static void serve_zero_list(struct caller *c, const struct sem_view *v, struct ends e,
			    struct sem_wakes *wakes)
{
	uint32_t link = *e.head, steps = 0, bound = sem_list_bound(c, v);
	bool complex;

	while (link && steps++ <= bound) {
		struct thread_shm *t = sem_link_thread(c, link);
		uint32_t next;

		if (!t)
			break;
		next = t->next_link;
		(void)try_waiter(c, v, link - 1, &complex, wakes); /* what became of it: told */
		link = next;
	}
}

/* The zero-waiters of one semaphore, if it is zero; true if it is. */
static bool serve_zero_one(struct caller *c, const struct sem_view *v, uint32_t num,
			   struct sem_wakes *wakes)
{
	if (value_of(v, num) != 0)
		return false;
	serve_zero_list(c, v, ends_of(c, v, LIST_SEM_ZERO, num), wakes);
	return true;
}

/* The zero-waiters that the named semaphores (ops null: all) concern, if they reached zero. */
static void serve_zero(struct caller *c, const struct sem_view *v, const struct semop_shm *ops,
		       uint32_t n, struct sem_wakes *wakes)
{
	bool got_zero = false;

	if (!ops)
		n = v->nsems;
	for (uint32_t i = 0; i < n && v->set->waiting; i++)
		got_zero |= serve_zero_one(c, v, ops ? ops[i].num : i, wakes);
	if (got_zero && v->set->waiting)
		serve_zero_list(c, v, ends_of(c, v, LIST_CONST, 0), wakes);
}

/* The same for the semaphores that try_waiter() has marked. */
static void serve_zero_touched(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes)
{
	struct semq_shm *side = sem_side(c, v);
	bool got_zero = false;

	for (uint32_t num = 0; side && num < v->nsems; num++) {
		if (!side[num].touched)
			continue;
		side[num].touched = 0;
		got_zero |= serve_zero_one(c, v, num, wakes);
	}
	if (got_zero && v->set->waiting)
		serve_zero_list(c, v, ends_of(c, v, LIST_CONST, 0), wakes);
}

/*
 * Altering requests of one list. After each that was performed the zero-waiters are looked at, and
 * the scan starts over when the set's common list is in use or the request was one of several
 * operations: a later one cannot have made an earlier simple one runnable.
 */
static void serve_alter_list(struct caller *c, const struct sem_view *v, bool common, uint32_t num,
			     struct sem_wakes *wakes)
{
	struct ends e = ends_of(c, v, common ? LIST_ALTER : LIST_SEM_ALTER, num);
	uint32_t link = *e.head, steps = 0, bound = sem_list_bound(c, v);

	while (link && steps++ <= bound) {
		struct thread_shm *t = sem_link_thread(c, link);
		struct semop_shm ops[SEMOPS_INLINE];
		bool complex = false;
		uint32_t next, n;
		int rc;

		if (!t || (!common && value_of(v, num) == 0))
			break;
		next = t->next_link;
		n = sem_request_count(c, v, t);
		for (uint32_t i = 0; i < n && n <= SEMOPS_INLINE; i++)
			ops[i] = sem_request_ops(c, t)[i];
		rc = try_waiter(c, v, link - 1, &complex, wakes);
		link = next;
		if (rc != 0)
			continue;
		if (n <= SEMOPS_INLINE)
			serve_zero(c, v, ops, n, wakes);
		else
			serve_zero_touched(c, v, wakes);
		if (v->set->alter_head || complex) {
			link = *e.head;
			steps = 0;
			bound = sem_list_bound(c, v);
		}
	}
}

void sem_serve(struct caller *c, const struct sem_view *v, const struct semop_shm *ops, uint32_t n,
	       struct sem_wakes *wakes)
{
	if (!v->set->waiting)
		return;
	serve_zero(c, v, ops, n, wakes);
	if (v->set->alter_head) {
		serve_alter_list(c, v, true, 0, wakes);
		return;
	}
	if (!ops)
		n = v->nsems;
	for (uint32_t i = 0; i < n && v->set->waiting; i++)
		if (!ops || ops[i].op > 0)
			serve_alter_list(c, v, false, ops ? ops[i].num : i, wakes);
}

void sem_unlock(struct caller *c, const struct sem_view *v, struct sem_wakes *wakes)
{
	struct thread_shm *self = region_self(c);

	if (v->set->complex_count == 0 && v->set->alter_head)
		sem_unmerge(c, v);
	if (wakes && wakes->count)
		store_crash(&self->owes_wake, v->ix + 1); /* SEM_P2: paid below, or by recovery */
	rlock_release(c, sem_lock_off(v));
	if (!wakes || !wakes->count)
		return;
	for (uint32_t i = 0; i < wakes->count; i++) {
		struct thread_shm *t = region_thread(c->base, wakes->thread_ix[i]);

		if (t)
			futex_wake(&t->st, INT_MAX);
	}
	wakes->count = 0;
	store_crash(&self->owes_wake, 0);
}
