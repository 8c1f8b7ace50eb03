// SPDX-License-Identifier: MIT
/*
 * Which shared memory calls to make. Few small segments, and one small window of addresses in each
 * process, so that attaches meet; about as many detaches as attaches; and in some sequences much
 * that programs do to mappings without the calls.
 */
#include <sys/mman.h>

#include "family_common.h"
#include "family_shm.h"

enum {
	STYLE_RAW = STYLE_OWN, /* percent of steps that change mappings without the calls */
	STYLE_ACCESS,          /* percent of steps that read or write */
	STYLE_WINDOW,          /* percent of attaches in the window */
	STYLE_REMAP,           /* percent of these with SHM_REMAP */
	STYLE_RDONLY,          /* percent of attaches */
	STYLE_DETACH,          /* percent of the other steps that are shmdt */
	STYLE_HUGE,            /* percent of new segments */
	STYLE_EXEC,            /* percent of attaches and mprotects with execution */
};

void shm_choose_style(struct world *world)
{
	static const unsigned segments[] = {1, 2, 3, 5}, ctl[] = {4, 12, 30}, bad[] = {0, 2, 8},
			      child[] = {0, 2, 8}, removals[] = {1, 3, 8},
			      raw[] = {0, 0, 5, 20, 40}, access[] = {2, 10, 30},
			      window[] = {0, 30, 60, 90}, remap[] = {0, 20, 60}, rdonly[] = {5, 30},
			      detach[] = {25, 45, 60}, huge[] = {0, 0, 10}, exec[] = {0, 10};
	unsigned *style = world->style[FAMILY_SHM];

	style[STYLE_OBJECTS] = world_draw(world, segments, 4);
	style[STYLE_CTL] = world_draw(world, ctl, 3);
	style[STYLE_BAD] = world_draw(world, bad, 3);
	style[STYLE_CHILD] = world_draw(world, child, 3);
	style[STYLE_REMOVE] = world_draw(world, removals, 3);
	style[STYLE_RAW] = world_draw(world, raw, 5);
	style[STYLE_ACCESS] = world_draw(world, access, 3);
	style[STYLE_WINDOW] = world_draw(world, window, 4);
	style[STYLE_REMAP] = world_draw(world, remap, 3);
	style[STYLE_RDONLY] = world_draw(world, rdonly, 2);
	style[STYLE_DETACH] = world_draw(world, detach, 3);
	style[STYLE_HUGE] = world_draw(world, huge, 3);
	style[STYLE_EXEC] = world->with_execution ? world_draw(world, exec, 2) : 0;
}

static bool chance(struct world *world, unsigned style_ix)
{
	return family_chance(world, FAMILY_SHM, style_ix);
}

static bool is_bad(struct world *world)
{
	return chance(world, STYLE_BAD);
}

/* One of the bits that are set, or -1. */
static int choose_bit(struct world *world, uint32_t bits)
{
	int found[32];
	unsigned count = 0;

	for (int bit = 0; bit < 32; bit++)
		if (bits >> bit & 1)
			found[count++] = bit;
	return count ? found[random_below(&world->random, count)] : -1;
}

/* What is known of the worker's process: see shm_dump_pieces. */
static const struct object_hint *process_hint(const struct world *world, const struct step *step)
{
	static const struct object_hint nothing;
	unsigned process_ix = world->process_of[step->worker_ix];

	return process_ix < SLOTS_MAX ? &world->hints[FAMILY_SHM][process_ix] : &nothing;
}

static void generate_get(struct world *world, struct step *step)
{
	/* The second is more than there are addresses. */
	static const int64_t huge[] = {1LL << 40, 1LL << 47, 1LL << 30};
	static const int64_t bad_sizes[] = {0, -1, -(1LL << 24), INT64_MAX, INT64_MIN, 1LL << 47};
	struct random *random = &world->random;
	unsigned slot = choose_free_slot(world, FAMILY_SHM);
	bool full = family_is_full(world, FAMILY_SHM);

	step->op_ix = SHM_OP_GET;
	step->arg[0] = choose_key(world, full);
	step->arg[1] = (1 + random_below(random, 4)) * SHM_PAGE_BYTES;
	if (random_percent(random, 40))
		step->arg[1] -= random_below(random, SHM_PAGE_BYTES);
	if (random_percent(random, 10))
		step->arg[1] = 0;
	step->arg[2] = choose_mode(world, true) | choose_create_flags(world, full) |
		       (random_percent(random, 10) ? SHM_NORESERVE : 0);
	step->arg[3] = slot;
	if (chance(world, STYLE_HUGE)) {
		step->arg[1] = huge[random_below(random, 3)];
		step->arg[2] |= SHM_NORESERVE;
	}
	if (is_bad(world))
		step->arg[1] = bad_sizes[random_below(random, 6)];
}

static int64_t window_page(struct world *world)
{
	unsigned page = random_below(&world->random, WINDOW_PAGES - 4);

	return random_percent(&world->random, 60) ? page / 4 * 4 : page;
}

static void generate_at(struct world *world, struct step *step)
{
	static const unsigned odd_bytes[] = {1, 100, 2048, 4095};
	struct random *random = &world->random;
	const struct object_hint *hint = process_hint(world, step);
	int free_at = choose_bit(world, ~(uint32_t)hint->value[1] & ((1U << ATTACHES_MAX) - 1));
	int64_t flags = chance(world, STYLE_RDONLY) ? SHM_RDONLY : 0;

	step->op_ix = SHM_OP_AT;
	step->arg[0] = choose_id(world, FAMILY_SHM);
	step->arg[1] = WHERE_NULL;
	/* One that is not remembered any more could never be detached. */
	if (chance(world, STYLE_WINDOW) || free_at < 0) {
		step->arg[1] = WHERE_WINDOW;
		step->arg[2] = window_page(world);
		if (chance(world, STYLE_REMAP))
			flags |= SHM_REMAP;
		if (random_percent(random, 20))
			flags |= SHM_RND;
		if ((flags & SHM_RND) ? random_percent(random, 50) : is_bad(world))
			step->arg[4] = world_draw(world, odd_bytes, 4);
	} else {
		step->arg[5] = free_at;
	}
	if (chance(world, STYLE_EXEC))
		flags |= SHM_EXEC;
	if (is_bad(world)) {
		step->arg[1] = WHERE_TAKEN + random_below(random, WHERE_COUNT - WHERE_TAKEN);
		step->arg[2] = random_below(random, 6);
		step->arg[4] = random_percent(random, 40) ? world_draw(world, odd_bytes, 4) : 0;
		/* At 0 root may attach, and then no pointer is null any more. */
		if (step->arg[1] == WHERE_LOW)
			flags |= SHM_REMAP;
		flags |= random_percent(random, 30) ? SHM_REMAP : 0;
	}
	if (is_bad(world))
		flags |= random_percent(random, 50) ? SHM_REMAP : SHM_RND | 01;
	step->arg[3] = flags;
}

/* Arguments where, page and at: something attached, if there is anything. */
static bool choose_attached(struct world *world, const struct object_hint *hint, int64_t *ret_where,
			    int64_t *ret_page, int64_t *ret_at, bool starts)
{
	int at = choose_bit(world, (uint32_t)hint->value[1]);
	int page = choose_bit(world, (uint32_t)hint->value[starts ? 3 : 2]);

	if (at < 0 && page < 0)
		return false;
	if (page < 0 || (at >= 0 && random_percent(&world->random, 50))) {
		*ret_where = WHERE_ATTACH;
		*ret_at = at;
	} else {
		*ret_where = WHERE_WINDOW;
		*ret_page = page;
	}
	return true;
}

static bool generate_dt(struct world *world, struct step *step)
{
	struct random *random = &world->random;

	step->op_ix = SHM_OP_DT;
	if (!choose_attached(world, process_hint(world, step), &step->arg[0], &step->arg[1],
			     &step->arg[2], random_percent(random, 90)))
		return random_percent(random, 3);
	if (random_percent(random, 5)) {
		/* A page of it that is not its first; or where something was. */
		step->arg[1] += 1 + random_below(random, 3);
		if (step->arg[0] == WHERE_WINDOW && random_percent(random, 50))
			step->arg[1] = window_page(world);
	}
	if (is_bad(world)) {
		if (random_percent(random, 50))
			step->arg[3] = 1 + random_below(random, SHM_PAGE_BYTES - 1);
		else
			step->arg[0] = random_percent(random, 50) ? WHERE_NULL : WHERE_TAKEN;
	}
	return true;
}

static bool generate_access(struct world *world, struct step *step)
{
	static const unsigned bytes[] = {0, 1, 7, 2047, 2048, 4000, 4094};
	struct random *random = &world->random;
	bool write = random_percent(random, 60);

	step->op_ix = write ? SHM_OP_WRITE : SHM_OP_READ;
	if (!choose_attached(world, process_hint(world, step), &step->arg[0], &step->arg[1],
			     &step->arg[2], false))
		return false;
	if (random_percent(random, 30))
		step->arg[1] += random_below(random, 4);
	step->arg[3] = write ? world_draw(world, bytes, 7) : 1 + random_below(random, 4);
	step->arg[4] = write ? random_below(random, 65536) : 0;
	return true;
}

/* A change of mappings that touches something, mostly. */
static bool generate_raw(struct world *world, struct step *step)
{
	static const unsigned ops[] = {SHM_OP_MUNMAP, SHM_OP_MPROTECT, SHM_OP_MREMAP, SHM_OP_MMAP};
	static const unsigned weights[] = {5, 4, 4, 1};
	struct random *random = &world->random;
	int page = choose_bit(world, (uint32_t)process_hint(world, step)->value[2]);

	if (page < 0 && random_percent(random, 95))
		return false;
	step->op_ix = (uint8_t)ops[random_weighted(random, weights, 4)];
	step->arg[0] = page < 0 || random_percent(random, 10) ? window_page(world) : page;
	step->arg[1] = 1 + random_below(random, 4);
	if (step->arg[0] + step->arg[1] > WINDOW_PAGES)
		step->arg[1] = 1;
	switch (step->op_ix) {
	case SHM_OP_MPROTECT:
		step->arg[2] = random_percent(random, 60)   ? PROT_READ
			       : random_percent(random, 50) ? PROT_READ | PROT_WRITE
							    : PROT_NONE;
		if (chance(world, STYLE_EXEC))
			step->arg[2] |= PROT_EXEC | PROT_READ;
		break;
	case SHM_OP_MREMAP:
		step->arg[1] = 1 + random_below(random, 2) * random_below(random, 4);
		if (step->arg[0] + step->arg[1] > WINDOW_PAGES)
			step->arg[1] = 1;
		step->arg[2] = window_page(world);
		step->arg[3] =
			random_percent(random, 70) ? step->arg[1] : 1 + random_below(random, 4);
		step->arg[4] = random_below(random, 3);
		break;
	default:
		break;
	}
	return true;
}

static void generate_ctl(struct world *world, struct step *step)
{
	static const int commands[] = {IPC_STAT, SHM_STAT,   15,       SHM_INFO, IPC_INFO, IPC_SET,
				       SHM_LOCK, SHM_UNLOCK, IPC_RMID, 99,       -1};
	unsigned weights[] = {3, 1, 1, 1, 1, 6, 3, 3, 0, 0, 0};
	struct random *random = &world->random;

	weights[8] = world->style[FAMILY_SHM][STYLE_REMOVE];
	if (is_bad(world))
		weights[9] = weights[10] = 5;
	step->op_ix = SHM_OP_CTL;
	step->arg[0] = choose_id(world, FAMILY_SHM);
	step->arg[1] = commands[random_weighted(random, weights, 11)];
	step->arg[3] = choose_mode(world, true);
	step->arg[4] = choose_person(world);
	if (is_bad(world))
		step->arg[2] = 1 + random_below(random, 3);
}

bool shm_generate(struct world *world, struct step *step)
{
	struct random *random = &world->random;
	unsigned live = world->hints[FAMILY_SHM][0].shared_live_count;
	int worker_ix = world_worker(world, WORKER_IDLE);

	if (worker_ix < 0)
		return false;
	step->worker_ix = (uint8_t)worker_ix;
	if (live == 0 || random_percent(random, family_is_full(world, FAMILY_SHM) ? 2 : 15))
		generate_get(world, step);
	else if (chance(world, STYLE_CTL))
		generate_ctl(world, step);
	else if (chance(world, STYLE_RAW) && generate_raw(world, step))
		(void)0;
	else if (chance(world, STYLE_ACCESS) && generate_access(world, step))
		(void)0;
	else if (!chance(world, STYLE_DETACH) || !generate_dt(world, step))
		generate_at(world, step);
	if (chance(world, STYLE_CHILD))
		step->by = random_percent(random, 50) ? BY_CHILD : BY_KILLED_CHILD;
	else if (step_op(step)->traits & OP_IN_HANDLER)
		world_let_handler(world, step);
	return true;
}
