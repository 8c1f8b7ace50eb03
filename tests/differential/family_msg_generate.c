// SPDX-License-Identifier: MIT
/*
 * Which message calls to make. Few queues, few types, small messages in small queues, so that
 * both senders and receivers have to wait.
 */
#include <limits.h>

#include "family_common.h"
#include "family_msg.h"

enum {
	STYLE_SEND = STYLE_OWN, /* weight against receiving 50 */
	STYLE_NOWAIT,           /* percent of calls */
	STYLE_TYPED,            /* percent of receives for certain types */
	STYLE_COPY,             /* percent of receives */
	STYLE_SHORT,            /* percent of receives with a small buffer */
	STYLE_ANSWER,           /* percent of steps that fit a sleeper */
	STYLE_LONG,             /* percent of messages near the limit */
	STYLE_NARROW,           /* percent of IPC_SETs that leave little room */
};

void msg_choose_style(struct world *world)
{
	static const unsigned send[] = {30, 50, 80}, nowait[] = {2, 8, 30}, typed[] = {10, 50, 90},
			      copy[] = {0, 3, 15}, small[] = {2, 20, 50}, answer[] = {5, 15, 30},
			      ctl[] = {4, 12, 30}, bad[] = {0, 2, 8}, lengthy[] = {0, 1, 20},
			      narrow[] = {20, 60, 90}, queues[] = {1, 1, 2, 3}, child[] = {0, 1, 5},
			      removals[] = {1, 2, 6};
	unsigned *style = world->style[FAMILY_MSG];

	style[STYLE_SEND] = world_draw(world, send, 3);
	style[STYLE_NOWAIT] = world_draw(world, nowait, 3);
	style[STYLE_TYPED] = world_draw(world, typed, 3);
	style[STYLE_COPY] = world_draw(world, copy, 3);
	style[STYLE_SHORT] = world_draw(world, small, 3);
	style[STYLE_ANSWER] = world_draw(world, answer, 3);
	style[STYLE_CTL] = world_draw(world, ctl, 3);
	style[STYLE_BAD] = world_draw(world, bad, 3);
	style[STYLE_LONG] = world_draw(world, lengthy, 3);
	style[STYLE_NARROW] = world_draw(world, narrow, 3);
	style[STYLE_OBJECTS] = world_draw(world, queues, 4);
	style[STYLE_CHILD] = world_draw(world, child, 3);
	style[STYLE_REMOVE] = world_draw(world, removals, 3);
}

static bool chance(struct world *world, unsigned style_ix)
{
	return family_chance(world, FAMILY_MSG, style_ix);
}

static bool is_bad(struct world *world)
{
	return chance(world, STYLE_BAD);
}

static void generate_get(struct world *world, struct step *step)
{
	unsigned slot = choose_free_slot(world, FAMILY_MSG);
	bool full = family_is_full(world, FAMILY_MSG);

	step->op_ix = MSG_OP_GET;
	step->arg[0] = choose_key(world, full);
	step->arg[1] = choose_mode(world, false) | choose_create_flags(world, full);
	step->arg[2] = slot;
}

static int64_t choose_size(struct world *world)
{
	static const unsigned near_limits[] = {8192, 8191, 8190, 4096, 4080, 4048, 8193, 16384};

	if (chance(world, STYLE_LONG))
		return world_draw(world, near_limits, 8);
	return random_percent(&world->random, 20) ? random_below(&world->random, 65)
						  : random_below(&world->random, 9);
}

static void generate_send(struct world *world, struct step *step)
{
	static const int64_t odd_types[] = {0, -1, LONG_MAX, LONG_MIN, 1};
	struct random *random = &world->random;

	step->op_ix = MSG_OP_SEND;
	step->arg[0] = choose_id(world, FAMILY_MSG);
	step->arg[1] = 1 + random_below(random, 4);
	step->arg[2] = choose_size(world);
	step->arg[3] = chance(world, STYLE_NOWAIT) ? IPC_NOWAIT : 0;
	step->arg[5] = random_below(random, 26);
	if (!is_bad(world))
		return;
	switch (random_below(random, 3)) {
	case 0:
		step->arg[1] = odd_types[random_below(random, 5)];
		break;
	case 1:
		step->arg[2] = random_percent(random, 50) ? -1 : 8193;
		break;
	default:
		step->arg[4] = 1 + random_below(random, 3);
		break;
	}
}

static int64_t choose_received_type(struct world *world)
{
	struct random *random = &world->random;

	if (!chance(world, STYLE_TYPED))
		return 0;
	if (is_bad(world))
		return random_percent(random, 50) ? LONG_MIN : LONG_MAX;
	return (1 + (int64_t)random_below(random, 4)) * (random_percent(random, 40) ? -1 : 1);
}

static void generate_receive(struct world *world, struct step *step)
{
	struct random *random = &world->random;

	step->op_ix = MSG_OP_RECEIVE;
	step->arg[0] = choose_id(world, FAMILY_MSG);
	step->arg[1] = chance(world, STYLE_SHORT) ? random_below(random, 6) : 8192;
	step->arg[2] = choose_received_type(world);
	step->arg[3] = (chance(world, STYLE_NOWAIT) ? IPC_NOWAIT : 0) |
		       (random_percent(random, 30) ? MSG_NOERROR : 0) |
		       (random_percent(random, 15) ? MSG_EXCEPT : 0);
	if (chance(world, STYLE_COPY)) {
		step->arg[2] = random_below(random, 5);
		step->arg[3] = (step->arg[3] & ~(int64_t)MSG_EXCEPT) | MSG_COPY | IPC_NOWAIT;
		if (is_bad(world))
			step->arg[3] ^= random_percent(random, 50) ? IPC_NOWAIT : MSG_EXCEPT;
		if (is_bad(world))
			step->arg[2] = -1;
	}
	if (!is_bad(world))
		return;
	if (random_percent(random, 30))
		step->arg[1] = random_percent(random, 50) ? -1 : 100000;
	else
		step->arg[4] = 1 + random_below(random, 3);
}

/* Sends what a sleeping receiver waits for, or makes room for a sleeping sender. */
static bool generate_answer(struct world *world, struct step *step)
{
	int sleeper_ix = world_worker(world, WORKER_ASLEEP);
	const struct step *sleeper;

	if (sleeper_ix < 0)
		return false;
	sleeper = &world->last[sleeper_ix];
	if (sleeper->family_ix != FAMILY_MSG)
		return false;
	if (sleeper->op_ix == MSG_OP_RECEIVE) {
		generate_send(world, step);
		step->arg[1] = sleeper->arg[2] > 0    ? sleeper->arg[2]
			       : sleeper->arg[2] < -4 ? 1
			       : sleeper->arg[2] < 0  ? -sleeper->arg[2]
						      : 1;
		if (sleeper->arg[3] & MSG_EXCEPT && sleeper->arg[2] > 0)
			step->arg[1] = sleeper->arg[2] % 4 + 1;
	} else {
		generate_receive(world, step);
		step->arg[2] = 0;
		step->arg[3] |= IPC_NOWAIT;
	}
	step->arg[0] = sleeper->arg[0];
	return true;
}

static void generate_ctl(struct world *world, struct step *step)
{
	static const int commands[] = {IPC_STAT, MSG_STAT, 13, MSG_INFO, IPC_INFO,
				       IPC_SET,  IPC_RMID, 99, -1};
	static const unsigned narrow[] = {0, 1, 3, 8, 16, 30, 100};
	unsigned weights[] = {2, 1, 1, 1, 1, 10, 0, 0, 0};
	struct random *random = &world->random;

	weights[6] = world->style[FAMILY_MSG][STYLE_REMOVE];
	if (is_bad(world))
		weights[7] = weights[8] = 5;
	step->op_ix = MSG_OP_CTL;
	step->arg[0] = choose_id(world, FAMILY_MSG);
	step->arg[1] = commands[random_weighted(random, weights, 9)];
	step->arg[3] = choose_mode(world, false);
	step->arg[4] = choose_person(world);
	step->arg[5] = chance(world, STYLE_NARROW) ? world_draw(world, narrow, 7) : 16384;
	if (is_bad(world))
		step->arg[2] = 1 + random_below(random, 3);
	if (is_bad(world))
		step->arg[5] = random_percent(random, 50) ? 16385 : 1 << 30;
}

bool msg_generate(struct world *world, struct step *step)
{
	struct random *random = &world->random;
	unsigned live = world->hints[FAMILY_MSG][0].shared_live_count;
	int worker_ix = world_worker(world, WORKER_IDLE);

	if (worker_ix < 0)
		return false;
	if (live == 0 || random_percent(random, family_is_full(world, FAMILY_MSG) ? 2 : 15))
		generate_get(world, step);
	else if (chance(world, STYLE_ANSWER) && generate_answer(world, step))
		(void)0;
	else if (chance(world, STYLE_CTL))
		generate_ctl(world, step);
	else if (random_below(random, 50 + world->style[FAMILY_MSG][STYLE_SEND]) < 50)
		generate_receive(world, step);
	else
		generate_send(world, step);
	step->worker_ix = (uint8_t)worker_ix;
	if (world->idle_count == 1 && random_percent(random, 80) &&
	    (step->op_ix == MSG_OP_SEND || step->op_ix == MSG_OP_RECEIVE))
		step->arg[3] |= IPC_NOWAIT;
	if (chance(world, STYLE_CHILD))
		step->by = random_percent(random, 50) ? BY_CHILD : BY_KILLED_CHILD;
	else if (step->op_ix == MSG_OP_SEND || step->op_ix == MSG_OP_RECEIVE)
		world_let_handler(world, step);
	return true;
}
