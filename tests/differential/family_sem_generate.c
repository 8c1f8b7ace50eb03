// SPDX-License-Identifier: MIT
/*
 * Which semaphore calls to make. Few small sets and few keys, so that workers meet; every now
 * and then a call that is made to fit a sleeper, so that sleepers are served and do not only
 * pile up; and a sprinkling of wrong arguments.
 */
#include "family_common.h"
#include "family_sem.h"

enum {
	STYLE_UNDO = STYLE_OWN, /* percent of operations */
	STYLE_NOWAIT,           /* percent of operations */
	STYLE_SEVERAL,          /* percent of semops with more than one operation */
	STYLE_ZERO,             /* percent of operations that wait for zero */
	STYLE_ANSWER,           /* percent of steps that fit a sleeper */
	STYLE_BIG,              /* percent of operations with extreme values */
	STYLE_SIZE,             /* largest set */
};

void sem_choose_style(struct world *world)
{
	static const unsigned undo[] = {0, 10, 30, 70}, nowait[] = {2, 8, 30},
			      several[] = {0, 25, 50, 90}, zero[] = {5, 15, 40},
			      answer[] = {5, 15, 30}, ctl[] = {5, 15, 35}, bad[] = {0, 2, 8},
			      big[] = {0, 0, 1, 10}, sets[] = {1, 1, 2, 4}, child[] = {0, 1, 5},
			      removals[] = {1, 2, 8}, size[] = {1, 2, 3, 6};
	unsigned *style = world->style[FAMILY_SEM];

	style[STYLE_UNDO] = world_draw(world, undo, 4);
	style[STYLE_NOWAIT] = world_draw(world, nowait, 3);
	style[STYLE_SEVERAL] = world_draw(world, several, 4);
	style[STYLE_ZERO] = world_draw(world, zero, 3);
	style[STYLE_ANSWER] = world_draw(world, answer, 3);
	style[STYLE_CTL] = world_draw(world, ctl, 3);
	style[STYLE_BAD] = world_draw(world, bad, 3);
	style[STYLE_BIG] = world_draw(world, big, 4);
	style[STYLE_OBJECTS] = world_draw(world, sets, 4);
	style[STYLE_CHILD] = world_draw(world, child, 3);
	style[STYLE_REMOVE] = world_draw(world, removals, 3);
	style[STYLE_SIZE] = world_draw(world, size, 4);
}

static bool chance(struct world *world, unsigned style_ix)
{
	return family_chance(world, FAMILY_SEM, style_ix);
}

static bool is_bad(struct world *world)
{
	return chance(world, STYLE_BAD);
}

static void generate_get(struct world *world, struct step *step)
{
	struct random *random = &world->random;
	unsigned slot = choose_free_slot(world, FAMILY_SEM);
	bool full = family_is_full(world, FAMILY_SEM);

	step->op_ix = SEM_OP_GET;
	step->arg[0] = choose_key(world, full);
	step->arg[1] = 1 + random_below(random, world->style[FAMILY_SEM][STYLE_SIZE]);
	step->arg[2] = choose_mode(world, false) | choose_create_flags(world, full);
	step->arg[3] = slot;
	if (random_percent(random, 10))
		step->arg[1] = 0;
	if (is_bad(world)) {
		static const int sizes[] = {-1, 0, 7, 32000, 32001, 1 << 30};

		step->arg[1] = sizes[random_below(random, 6)];
		/* Sets of that size are created nowhere: only asked for. */
		if (step->arg[1] > 6 && step->arg[1] <= 32000)
			step->arg[2] &= ~(int64_t)IPC_CREAT;
		if (step->arg[1] > 6 && step->arg[0] == IPC_PRIVATE)
			step->arg[0] = 1;
	}
}

static int choose_value(struct world *world)
{
	static const int values[] = {-1, -1, -1, -1, -1, -2, -2, -3, 1, 1, 1, 1, 2, 2, 3},
			 extremes[] = {32767, -32767, -32768, 32766, -32766, 16384, 16384};

	if (chance(world, STYLE_BIG))
		return extremes[random_below(&world->random, 7)];
	if (chance(world, STYLE_ZERO))
		return 0;
	return values[random_below(&world->random, 15)];
}

static void generate_item(struct world *world, struct item *item, unsigned size,
			  const struct object_hint *hint)
{
	item->num = (int)random_below(&world->random, size ? size : 1);
	if (random_percent(&world->random, 2) && is_bad(world))
		item->num = random_percent(&world->random, 50) ? (int)size : 65535;
	item->value = choose_value(world);
	/* Values shall stay where operations block. */
	if (hint && item->num < HINT_VALUES_MAX && hint->value[item->num] > 3 &&
	    random_percent(&world->random, 40))
		item->value = -hint->value[item->num];
	item->flags = (chance(world, STYLE_UNDO) ? SEM_UNDO : 0) |
		      (chance(world, STYLE_NOWAIT) ? IPC_NOWAIT : 0);
	if (is_bad(world) && random_percent(&world->random, 10))
		item->flags |= 0x100;
}

static void spoil_op(struct world *world, struct step *step)
{
	struct random *random = &world->random;

	switch (random_below(random, 6)) {
	case 0:
		step->arg[5] = 1 + random_below(random, 3);
		break;
	case 1:
		step->arg[4] = random_percent(random, 50) ? 501 : 1000000;
		break;
	case 2:
		step->item_count = 0;
		break;
	case 3:
		step->item[random_below(random, step->item_count)].num += 6;
		break;
	default:
		step->arg[3] = TIMEOUT_MINUS + random_below(random, TIMEOUT_COUNT - TIMEOUT_MINUS);
		break;
	}
}

static void generate_op(struct world *world, struct step *step)
{
	struct random *random = &world->random;
	unsigned size;

	step->op_ix = SEM_OP_OP;
	step->arg[0] = choose_id(world, FAMILY_SEM);
	size = step->arg[0] >= 0 ? (unsigned)world->hints[FAMILY_SEM][step->arg[0]].size : 1;
	step->item_count = 1;
	if (chance(world, STYLE_SEVERAL))
		step->item_count = (uint8_t)(2 + random_below(random, 2) * random_below(random, 3));
	/* More than the engine keeps within a waiter. */
	if (step->item_count > 2 && random_percent(random, 25))
		step->item_count = (uint8_t)(ITEMS_MAX - random_below(random, 6));
	for (unsigned ix = 0; ix < step->item_count; ix++)
		generate_item(world, &step->item[ix], size,
			      step->arg[0] >= 0 ? &world->hints[FAMILY_SEM][step->arg[0]] : NULL);
	if (random_percent(random, 5))
		step->arg[3] = TIMEOUT_LONG;
	if (is_bad(world)) {
		spoil_op(world, step);
	} else if (random_percent(random, 5)) {
		step->op_ix = SEM_OP_BRIEF;
		step->arg[3] = random_percent(random, 10) ? TIMEOUT_SHORT : TIMEOUT_ZERO;
	}
}

/* Gives one of the sleepers what one of its operations waits for. */
static bool generate_answer(struct world *world, struct step *step)
{
	int sleeper_ix = world_worker(world, WORKER_ASLEEP);
	const struct step *sleeper;
	const struct item *item;
	const struct object_hint *hint;

	if (sleeper_ix < 0)
		return false;
	sleeper = &world->last[sleeper_ix];
	if (sleeper->family_ix != FAMILY_SEM || sleeper->arg[0] < 0 || sleeper->item_count == 0)
		return false;
	item = &sleeper->item[random_below(&world->random, sleeper->item_count)];
	hint = &world->hints[FAMILY_SEM][sleeper->arg[0]];
	if (item->num < 0 || item->num >= HINT_VALUES_MAX)
		return false;
	step->op_ix = SEM_OP_OP;
	step->arg[0] = sleeper->arg[0];
	step->item_count = 1;
	step->item[0].num = item->num;
	step->item[0].value = item->value < 0 ? -item->value : -hint->value[item->num];
	if (random_percent(&world->random, 25))
		step->item[0].value++;
	if (item->value > 0 && random_percent(&world->random, 50))
		step->item[0].value = 1;
	step->item[0].flags = (chance(world, STYLE_UNDO) ? SEM_UNDO : 0) |
			      (random_percent(&world->random, 60) ? IPC_NOWAIT : 0);
	return true;
}

static void generate_ctl(struct world *world, struct step *step)
{
	static const int commands[] = {GETVAL,   GETPID,       GETNCNT,  GETZCNT,  GETALL, IPC_STAT,
				       SEM_STAT, SEM_STAT_ANY, SEM_INFO, IPC_INFO, SETVAL, SETALL,
				       IPC_SET,  IPC_RMID,     99,       -1};
	unsigned weights[] = {2, 1, 2, 2, 2, 2, 1, 1, 1, 1, 14, 8, 6, 0, 0, 0};
	struct random *random = &world->random;
	const struct object_hint *hints = world->hints[FAMILY_SEM];
	unsigned size;

	weights[13] = world->style[FAMILY_SEM][STYLE_REMOVE];
	if (is_bad(world))
		weights[14] = weights[15] = 5;
	step->op_ix = SEM_OP_CTL;
	step->arg[0] = choose_id(world, FAMILY_SEM);
	size = step->arg[0] >= 0 ? (unsigned)hints[step->arg[0]].size : 1;
	step->arg[1] = random_below(random, size ? size : 1);
	step->arg[2] = commands[random_weighted(random, weights, 16)];
	step->arg[5] = 0600;
	switch (step->arg[2]) {
	case SETVAL:
		step->arg[3] = random_below(random, 5);
		if (chance(world, STYLE_BIG))
			step->arg[3] = 32767 - random_below(random, 3);
		break;
	case SETALL:
		for (unsigned ix = 0; ix < size && ix < ITEMS_MAX; ix++) {
			struct item *item = &step->item[step->item_count++];

			item->num = (int)ix;
			item->value = (int)(random_below(random, 2) * random_below(random, 4));
			if (chance(world, STYLE_BIG))
				item->value = 32766 + (int)random_below(random, 3);
		}
		break;
	case IPC_SET:
		step->arg[5] = choose_mode(world, false);
		step->arg[6] = choose_person(world);
		break;
	default:
		break;
	}
	if (is_bad(world)) {
		if (random_percent(random, 50))
			step->arg[4] = 1 + random_below(random, 3);
		else if (random_percent(random, 50))
			step->arg[1] = random_percent(random, 50) ? -1 : (int64_t)size;
		else if (step->arg[2] == SETVAL)
			step->arg[3] = random_percent(random, 50) ? -1 : 32768;
	}
}

/* With hardly anybody left to wake the others, nobody may go to sleep. */
static void forbid_sleep(struct step *step)
{
	if (step->op_ix != SEM_OP_OP)
		return;
	for (unsigned ix = 0; ix < step->item_count; ix++)
		step->item[ix].flags |= IPC_NOWAIT;
}

bool sem_generate(struct world *world, struct step *step)
{
	struct random *random = &world->random;
	unsigned live = world->hints[FAMILY_SEM][0].shared_live_count;
	int worker_ix = world_worker(world, WORKER_IDLE);

	if (worker_ix < 0)
		return false;
	step->worker_ix = (uint8_t)worker_ix;
	if (live == 0 || random_percent(random, family_is_full(world, FAMILY_SEM) ? 2 : 15))
		generate_get(world, step);
	else if (chance(world, STYLE_ANSWER) && generate_answer(world, step))
		(void)0;
	else if (chance(world, STYLE_CTL))
		generate_ctl(world, step);
	else
		generate_op(world, step);
	if (world->idle_count == 1 && random_percent(random, 80))
		forbid_sleep(step);
	if (chance(world, STYLE_CHILD) && step->op_ix != SEM_OP_BRIEF)
		step->by = random_percent(random, 50) ? BY_CHILD : BY_KILLED_CHILD;
	else if (step->op_ix == SEM_OP_OP)
		world_let_handler(world, step);
	return true;
}
