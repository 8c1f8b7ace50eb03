// SPDX-License-Identifier: MIT
/* See the header. */
#include "fuzz/hostile_region.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/procs.h"
#include "core/region.h"
#include "core/rlock.h"
#include "ipc/check.h"
#include "ipc/msg.h"
#include "ipc/repair.h"
#include "ipc/sem.h"
#include "ipc/shm.h"

#define NOW         1700000000
#define GUARD_BYTES GIB(320) /* 2^32 references of 64 bytes, and some more */
#define ACTORS      20u
#define RANGES      64u
#define USER_BYTES  (64u << 10)
#define FLAG_CREAT  01000
#define FLAG_UNDO   010000
#define FLAG_NOWAIT 04000

struct actor {
	struct caller c;
	bool dead;
	struct shm_attach attach;
	bool attaching;
};

struct range {
	uint64_t off, bytes;
	unsigned char *content;
};

static unsigned char *base;
static struct actor actors[ACTORS], actors_at_first[ACTORS];
static struct range ranges[RANGES];
static uint32_t range_count;
static uint32_t threads_seen; /* indexes that the built region knows */
static bool strangers_are_dead;
static bool talks;
static _Alignas(64) unsigned char user[USER_BYTES];

static const gid_t no_groups[1];
static const struct creds root = {.groups = no_groups,
				  .cap_ipc_owner = true,
				  .cap_sys_admin = true,
				  .cap_sys_resource = true,
				  .cap_ipc_lock = true};

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
		if (actors[i].c.thread_ix == thread_ix)
			return actors[i].dead;
	return strangers_are_dead;
}

static bool is_process_dead(struct caller *c, uint32_t proc_ix)
{
	if (!region_proc(c->base, proc_ix) || proc_ix == c->proc_ix)
		return false;
	for (uint32_t i = 0; i < ACTORS; i++)
		if (actors[i].c.proc_ix == proc_ix)
			return actors[i].dead;
	return strangers_are_dead;
}

static bool in_region(const unsigned char *p, size_t n)
{
	return p >= base && p <= base + REGION_BYTES && n <= (size_t)(base + REGION_BYTES - p);
}

/* Pointers into the region lie in it whole; nothing else is as large as the guards. */
static void check_range(const void *p, size_t n)
{
	const unsigned char *at = p;

	if (at + GUARD_BYTES >= base && at < base + REGION_BYTES + GUARD_BYTES && !in_region(at, n))
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

static void drop_segment(struct caller *c, int32_t key, int32_t id)
{
	(void)c, (void)key, (void)id;
}

static const struct caller_ops ops = {
	.is_dead = is_dead,
	.is_process_dead = is_process_dead,
	.is_image_gone = is_process_dead,
	.copy_in = copy_in,
	.copy_out = copy_out,
	.repair = repair_lock,
	.drop_segment = drop_segment,
};

/* ---- Building ------------------------------------------------------------------------------ */

static void must(int rc, int wanted, const char *what)
{
	if (rc != wanted) {
		fprintf(stderr, "hostile: building: %s is %d\n", what, rc);
		exit(1);
	}
}
#define MUST(call, wanted) must(call, wanted, #call)

/* Every fourth actor is another thread of the process before it. */
static void join(uint32_t i)
{
	uint32_t proc_ix, group, thread_ix;

	if (i % 4 == 3) {
		proc_ix = actors[i - 1].c.proc_ix;
		thread_ix = actors[i - 1].c.thread_ix + 1;
	} else {
		MUST(procs_reserve(base, NULL, NULL, 1, &proc_ix), 0);
		procs_publish(base, proc_ix, 1000 + i, 1, 1, 0);
		MUST(procs_take_group(base, proc_ix, &group), 0);
		thread_ix = group * GROUP_SPAN;
	}
	procs_enter_thread(base, thread_ix, proc_ix, 1000 + i);
	actors[i].c = (struct caller){.base = base,
				      .thread_ix = thread_ix,
				      .proc_ix = proc_ix,
				      .pid = 1000 + i,
				      .creds = &root,
				      .ops = &ops};
	if (thread_ix >= threads_seen)
		threads_seen = thread_ix + 1;
}

static int semop_of(uint32_t i, int32_t id, const struct semop_shm *sops, uint32_t n)
{
	struct sem_request rq = {.id = id, .ops = sops, .nsops = n, .now = NOW, .may_queue = true};

	return sem_op(&actors[i].c, &rq);
}

static int send(uint32_t i, int32_t id, long type, uint64_t bytes, uint32_t flags)
{
	struct msg_send_request rq = {
		.id = id, .user = user, .bytes = bytes, .flags = flags, .now = NOW};

	memcpy(user, &type, sizeof(type));
	return msg_send(&actors[i].c, &rq);
}

static int receive(uint32_t i, int32_t id, int64_t type, uint64_t bytes, uint32_t flags)
{
	struct msg_receive_request rq = {
		.id = id, .user = user, .bytes = bytes, .type = type, .flags = flags, .now = NOW};

	return msg_receive(&actors[i].c, &rq);
}

static int32_t new_set(int32_t key, int nsems)
{
	int32_t id = -1;

	MUST(sem_get(&actors[0].c, key, nsems, FLAG_CREAT | 0600, NOW, &id), 0);
	return id;
}

static int32_t new_queue(int32_t key)
{
	int32_t id = -1;

	MUST(msg_get(&actors[0].c, key, FLAG_CREAT | 0600, NOW, &id), 0);
	return id;
}

static void build_sets(void)
{
	struct semop_shm many[12];
	int32_t one = new_set(1, 1), three = new_set(2, 3), forty = new_set(0, 40);

	MUST(semop_of(0, one, &(struct semop_shm){0, 5, FLAG_UNDO}, 1), 0);
	MUST(semop_of(1, one, &(struct semop_shm){0, 2, FLAG_UNDO}, 1), 0);
	MUST(semop_of(1, three, &(struct semop_shm){1, 3, FLAG_UNDO}, 1), 0);
	MUST(semop_of(2, three, &(struct semop_shm){0, -1, FLAG_UNDO}, 1), OUTCOME_SLEEP);
	MUST(semop_of(3, three, &(struct semop_shm){0, -2, 0}, 1), OUTCOME_SLEEP);
	MUST(semop_of(4, three, &(struct semop_shm){1, 0, 0}, 1), OUTCOME_SLEEP);
	for (uint16_t s = 0; s < 12; s++)
		many[s] = (struct semop_shm){s, -1, FLAG_UNDO};
	MUST(semop_of(5, forty, many, 12), OUTCOME_SLEEP);
	MUST(semop_of(0, forty, &(struct semop_shm){0, 1, FLAG_UNDO}, 1), 0);
	for (uint16_t s = 0; s < 12; s++)
		many[s].op = 0;
	many[0] = (struct semop_shm){0, 0, 0};
	MUST(semop_of(6, forty, many, 2), OUTCOME_SLEEP);
	MUST(semop_of(7, forty, &(struct semop_shm){3, -1, 0}, 1), OUTCOME_SLEEP);
}

static void build_queues(void)
{
	int32_t mixed = new_queue(3), empty = new_queue(4), full = new_queue(0);
	struct msg_status status;

	for (int k = 0; k < 14; k++)
		MUST(send(0, mixed, k % 5 + 1, (uint64_t)(k * k * 8), 0), 0);
	MUST(receive(0, mixed, 3, 8192, 0), 0);
	MUST(receive(8, empty, 0, 100, 0), OUTCOME_SLEEP);
	MUST(receive(9, empty, 7, 100, 0), OUTCOME_SLEEP);
	MUST(receive(10, empty, 7, 10, 0), OUTCOME_SLEEP);
	MUST(receive(11, empty, -6, 100, 0), OUTCOME_SLEEP);
	MUST(receive(12, empty, 5, 100, MSGF_EXCEPT), OUTCOME_SLEEP);
	MUST(msg_stat(&actors[0].c, full, false, false, &status), 0);
	MUST(send(1, full, 1, 8192, 0), 0);
	MUST(send(1, full, 2, 8000, 0), 0);
	MUST(send(13, full, 3, 600, 0), OUTCOME_SLEEP);
	MUST(send(14, full, 1, 700, 0), OUTCOME_SLEEP);
}

static void build_segments(void)
{
	bool marked = false;
	int32_t id[4];

	for (int k = 0; k < 4; k++) {
		struct shm_request rq = {.key = k + 5,
					 .bytes = 4096u << k,
					 .flags = FLAG_CREAT | 0600,
					 .now = NOW,
					 .admitted = true};

		MUST(shm_get(&actors[0].c, &rq, &id[k]), 0);
	}
	for (uint32_t i = 0; i < 6; i++) {
		struct shm_attach a;

		MUST(shm_attach_begin(&actors[i % 3].c, id[i % 3], 4, &a), 0);
		shm_attach_done(&actors[i % 3].c, &a, MIB(i + 1), NOW);
	}
	MUST(shm_mark_removed(&actors[0].c, id[1], &marked), 0);
	MUST(shm_attach_begin(&actors[4].c, id[2], 4, &actors[4].attach), 0);
	actors[4].attaching = true;
}

static void keep(uint64_t off, uint64_t bytes)
{
	struct range *r = &ranges[range_count++];

	if (range_count > RANGES) {
		fprintf(stderr, "hostile: more ranges than expected\n");
		exit(1);
	}
	*r = (struct range){off, bytes, malloc((size_t)bytes)};
	if (!r->content)
		exit(1);
	memcpy(r->content, base + off, (size_t)bytes);
}

static void keep_all(void)
{
	const struct header_shm *h = region_header(base);

	keep(HEADER_OFF, sizeof(*h));
	keep(PROCS_OFF, (uint64_t)h->proc_hi * sizeof(struct proc_shm));
	keep(OWNERS_OFF, (uint64_t)h->group_hi * 8);
	keep(GROUPS_OFF, (uint64_t)h->group_hi * PAGE_BYTES);
	for (int f = 0; f < FAMILY_COUNT; f++) {
		uint64_t table = TABLES_OFF + (uint64_t)f * TABLE_BYTES;

		keep(table, BUCKETS_AT_FIRST * 4);
		keep(table + BITMAP_OFF, OBJECT_CAPACITY / 8);
		keep(object_off((enum family)f, 0), (uint64_t)h->table[f].hi * OBJECT_SLOT_BYTES);
	}
	for (int a = 0; a < ARENA_COUNT; a++) {
		uint64_t descs = CHUNKS_OFF + (uint64_t)a * CHUNKS_BYTES;

		keep(descs, (uint64_t)h->arena[a].hi * sizeof(struct chunk_shm));
		for (uint32_t ix = 0; ix < h->arena[a].hi; ix++) {
			const struct chunk_shm *ch = region_at(base, descs + ix * sizeof(*ch));

			if (ch->class_ix)
				keep(ARENAS_OFF + (uint64_t)a * ARENA_BYTES +
					     (uint64_t)ix * CHUNK_BYTES,
				     CHUNK_BYTES);
		}
	}
}

static void *map(void *at, uint64_t bytes, int protection, int flags)
{
	return mmap(at, (size_t)bytes, protection,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static void say_line(void *context, const char *text)
{
	(void)context;
	tell("  check: %s", text);
}

static void complain(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "hostile: the region as it was built: %s\n", text);
}

bool hostile_begin(void)
{
	unsigned char *all = map(NULL, GUARD_BYTES * 2 + REGION_BYTES, PROT_NONE, 0);

	if (all == MAP_FAILED ||
	    map(all + GUARD_BYTES, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED) == MAP_FAILED) {
		fprintf(stderr, "hostile: no address space for a region between guards\n");
		return false;
	}
	base = all + GUARD_BYTES;
	madvise(base, (size_t)REGION_BYTES, MADV_DONTDUMP);
	MUST(region_format(base, 0, NOW), 0);
	for (uint32_t i = 0; i < ACTORS; i++)
		join(i);
	build_sets();
	build_queues();
	build_segments();
	if (check_region(base, complain, NULL) != 0)
		exit(1);
	keep_all();
	memcpy(actors_at_first, actors, sizeof(actors));
	return true;
}

static void restore(void)
{
	if (map(base, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_FIXED) == MAP_FAILED)
		fail("cannot map anew", errno);
	(void)madvise(base, (size_t)REGION_BYTES, MADV_NOHUGEPAGE); /* else it costs time only */
	for (uint32_t i = 0; i < range_count; i++)
		memcpy(base + ranges[i].off, ranges[i].content, (size_t)ranges[i].bytes);
	memcpy(actors, actors_at_first, sizeof(actors));
}

/* ---- Damage -------------------------------------------------------------------------------- */

/* A word somewhere in what is used: each range is as likely as the other, small or large. */
static uint32_t *some_word(struct choices *ch)
{
	const struct range *r = &ranges[choose(ch, range_count)];
	uint64_t words = r->bytes / 4;

	/* In large ranges the used part is at the beginning more often than not. */
	if (words > 1024 && !one_in(ch, 4))
		words = 1024;
	return region_at(base, r->off + choose(ch, words) * 4);
}

static uint32_t *mark_word(struct choices *ch)
{
	struct header_shm *h = region_header(base);

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
	const struct actor *a = &actors[choose(ch, ACTORS)];

	if (one_in(ch, 4))
		return region_at(base, PROCS_OFF + a->c.proc_ix * sizeof(struct proc_shm) +
					       choose(ch, sizeof(struct proc_shm) / 4) * 4);
	return region_at(base, thread_off(a->c.thread_ix) + choose(ch, THREAD_BYTES / 4) * 4);
}

static uint32_t *object_word(struct choices *ch)
{
	enum family f = (enum family)choose(ch, FAMILY_COUNT);

	return region_at(base, object_off(f, (uint32_t)choose(ch, 4)) +
				       choose(ch, OBJECT_SLOT_BYTES / 4) * 4);
}

static uint32_t *header_word(struct choices *ch)
{
	return region_at(base, choose(ch, sizeof(struct header_shm) / 4) * 4);
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
		return (uint32_t)choose(ch, threads_seen * 2) + 1;
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
	tell("  mark at %#llx: %u, was %u", (unsigned long long)region_off(base, mark), *mark, old);
}

static bool is_mark(const uint32_t *word)
{
	const struct header_shm *h = region_header(base);
	bool found = word == &h->proc_hi || word == &h->group_hi;

	for (int f = 0; f < FAMILY_COUNT; f++)
		found |= word == &h->table[f].hi;
	for (int a = 0; a < ARENA_COUNT; a++)
		found |= word == &h->arena[a].hi;
	return found;
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
	if (is_mark(word))
		return; /* only as above: pages as many as a mark says are walked over */
	old = *word;
	*word = value_for(ch, old);
	tell("  word at %#llx: %#x, was %#x", (unsigned long long)region_off(base, word), *word,
	     old);
}

/* Somebody dies: anywhere, or holding a lock, in the middle of something. */
static void kill_one(struct choices *ch)
{
	struct actor *a = &actors[choose(ch, ACTORS)];
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
			       choose(ch, sizeof(region_header(base)->arena) / 64) * 64;
			break;
		case 2:
			lock = PROCS_OFF + choose(ch, ACTORS) * sizeof(struct proc_shm) +
			       offsetof(struct proc_shm, undo_lock);
			break;
		default:
			lock = ids_object_lock((enum family)choose(ch, FAMILY_COUNT),
					       (uint32_t)choose(ch, 4));
		}
		*(uint32_t *)region_at(base, lock) = a->c.thread_ix + 1;
		t->held = (uint32_t)lock;
		tell("  actor %u dies with the lock at %#llx", (unsigned)(a - actors),
		     (unsigned long long)lock);
	} else {
		tell("  actor %u dies", (unsigned)(a - actors));
	}
	if (one_in(ch, 2)) {
		t->op = (uint32_t)choose(ch, OP_ADMIT + 2);
		t->op_family = (uint32_t)choose(ch, FAMILY_COUNT);
		t->op_ix = (uint32_t)choose(ch, 4);
	}
	if (one_in(ch, 4))
		region_set(base, 0)->intent = region_set(base, 1)->intent =
			(uint32_t)choose(ch, INTENT_RMID + 2);
}

/* ---- Use ----------------------------------------------------------------------------------- */

static int32_t some_id(struct choices *ch, enum family f)
{
	const struct object_shm *o = region_at(base, object_off(f, (uint32_t)choose(ch, 4)));

	if (one_in(ch, 16))
		return (int32_t)choose(ch, 1ull << 32);
	return (int32_t)o->live - 1;
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
		return sem_get_all(c, id, (uint16_t *)(void *)user);
	case 4:
		memset(user, 0, sizeof(user));
		return sem_set_all(c, id, (uint16_t *)(void *)user, NOW);
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
		msg_totals(base, &count, &bytes);
		return 0;
	case 5:
	case 6:
		return send((uint32_t)(a - actors), id, (long)choose(ch, 8) + 1, choose(ch, 4000),
			    flags[choose(ch, 2)]);
	default:
		return receive((uint32_t)(a - actors), id, (int64_t)choose(ch, 12) - 4,
			       choose(ch, 9000), flags[choose(ch, 5)]);
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
		r = shm_next_record(base, c->proc_ix, NULL);
		if (r)
			shm_detached(c, r, NOW);
		return (int)(shm_count_records(base, c->proc_ix, (uint32_t)id & 0x7fff, 1) & 0);
	default:
		return shm_fork(c, actors[choose(ch, ACTORS)].c.proc_ix, NOW);
	}
}

/* The waiter's own end of a sleep, as the client comes to it. */
static int end_sleep(struct choices *ch, struct caller *c)
{
	struct thread_shm *self = region_self(c);
	uint32_t state = WAIT_STATE(self->st);
	struct msg_receive_request rq = {.user = user, .bytes = choose(ch, 9000)};
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
		tell("  actor %u ends its sleep: %d", (unsigned)(a - actors), rc);
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
		rc = (repair_sweep(c, NOW, one_in(ch, 2), &busy), 0);
	tell("  actor %u, family %s: %d", (unsigned)(a - actors),
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
	restore();
	strangers_are_dead = one_in(ch, 2);
	damages = 1 + (uint32_t)choose(ch, one_in(ch, 4) ? 40 : 5);
	deaths = (uint32_t)choose(ch, 4);
	calls = 1 + (uint32_t)choose(ch, 24);
	while (deaths-- > 0)
		kill_one(ch);
	while (damages-- > 0)
		damage(ch);
	while (calls-- > 0) {
		struct actor *a = &actors[choose(ch, ACTORS)];

		if (a->dead)
			continue;
		call(ch, a);
		if (one_in(ch, 8))
			damage(ch);
		last = a;
	}
	if (last) {
		uint32_t users = repair_sweep(&last->c, NOW, true, &busy);

		tell("  swept: %u users%s", users, busy ? ", busy" : "");
		if (one_in(ch, 2))
			(void)repair_exit_process(&last->c, NOW);
	}
	(void)check_region(base, say_line, NULL);
}
