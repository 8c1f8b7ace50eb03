// SPDX-License-Identifier: MIT
/*
 * Random numbers, and the choice among families: see world.h. All randomness of a sequence
 * comes from its seed and from what back end a answered, so a seed gives the same sequence
 * again as long as back end a behaves.
 */
#include "world.h"

#include <string.h>

uint64_t random_next(struct random *random)
{
	uint64_t mixed = random->state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

unsigned random_below(struct random *random, unsigned bound)
{
	return (unsigned)(random_next(random) >> 33) % bound;
}

bool random_percent(struct random *random, unsigned percent)
{
	return random_below(random, 100) < percent;
}

unsigned random_weighted(struct random *random, const unsigned *weights, unsigned count)
{
	unsigned sum = 0, drawn;

	for (unsigned ix = 0; ix < count; ix++)
		sum += weights[ix];
	drawn = random_below(random, sum);
	for (unsigned ix = 0; ix < count; ix++) {
		if (drawn < weights[ix])
			return ix;
		drawn -= weights[ix];
	}
	return count - 1;
}

unsigned world_draw(struct world *world, const unsigned *values, unsigned count)
{
	return values[random_below(&world->random, count)];
}

int world_worker(struct world *world, enum worker_state state)
{
	int found[WORKERS_MAX];
	unsigned count = 0;

	for (unsigned ix = 0; ix < world->worker_count; ix++)
		if (world->state[ix] == state && (state != WORKER_IDLE || !world->stopped[ix]))
			found[count++] = (int)ix;
	return count ? found[random_below(&world->random, count)] : -1;
}

void world_let_handler(struct world *world, struct step *step)
{
	int worker_ix = world_worker(world, WORKER_ASLEEP);

	if (worker_ix < 0 || world->stopped[worker_ix] || !random_percent(&world->random, 2))
		return;
	step->worker_ix = (uint8_t)worker_ix;
	step->by = BY_HANDLER;
}

void world_choose_style(struct world *world)
{
	static const unsigned quiet[] = {0, 0, 10, 50, 90};

	world->quiet_percent = world_draw(world, quiet, 5);
	for (unsigned ix = 0; ix < families_count; ix++)
		if (world->family_weight[ix] && families[ix]->choose_style)
			families[ix]->choose_style(world);
}

static bool is_left_out(const struct world *world, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = world->without; at && *at; at += *at == ',') {
		size_t word = strcspn(at, ",");

		if (word == length && !strncmp(at, name, length))
			return true;
		at += word;
	}
	return false;
}

void world_generate(struct world *world, struct step *step)
{
	world->idle_count = 0;
	for (unsigned ix = 0; ix < world->worker_count; ix++)
		world->idle_count += world->state[ix] == WORKER_IDLE && !world->stopped[ix];
	for (;;) {
		unsigned family_ix =
			random_weighted(&world->random, world->family_weight, families_count);

		memset(step, 0, sizeof(*step));
		step->family_ix = (uint8_t)family_ix;
		if (families[family_ix]->generate(world, step) &&
		    !is_left_out(world, step_op(step)->name))
			break;
	}
	/* Whose parent never made a call is buried by the reaper, in no order with others that die
	 * meanwhile: doc/COMPAT.md, undo-by-strangers. */
	step->quiet =
		step->by != BY_KILLED_CHILD && random_percent(&world->random, world->quiet_percent);
}
