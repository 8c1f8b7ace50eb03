// SPDX-License-Identifier: MIT
/*
 * What the three families of objects share: see family_common.h.
 */
#include "family_common.h"

#include <errno.h>
#include <string.h>

const struct name_value pointer_names[] = {
	{"good", POINTER_GOOD},
	{"null", POINTER_NULL},
	{"bad", POINTER_BAD},
	{"edge", POINTER_EDGE},
	{NULL, 0},
};

bool put_result(struct outcome *outcome, struct text *text, long ret)
{
	outcome->err = ret < 0 ? errno : 0;
	outcome->ret = ret;
	text_result(text, ret, outcome->err);
	return ret >= 0;
}

void put_perm(struct text *text, const struct ipc_perm *perm)
{
	text_puts(text, " key=");
	text_putd(text, perm->__key);
	text_printf(text, " mode=%o owner=", perm->mode);
	text_putd(text, perm->uid);
	text_puts(text, ":");
	text_putd(text, perm->gid);
	text_puts(text, " creator=");
	text_putd(text, perm->cuid);
	text_puts(text, ":");
	text_putd(text, perm->cgid);
	text_puts(text, " seq=");
	text_putd(text, perm->__seq);
}

void fill_perm(struct ipc_perm *perm, int64_t mode, int64_t person_ix)
{
	const struct person *person = &persons[person_ix & (PERSON_COUNT - 1)];

	perm->mode = (unsigned short)mode;
	perm->uid = person->uid;
	perm->gid = person->gid;
}

int index_of(int id)
{
	return id >= 0 ? id & 0x7fff : id;
}

void dump_objects(const struct looker *looker, const struct shared *shared, struct text *text,
		  struct object_hint *hints, int highest, int count)
{
	const char *name = families[looker->family_ix]->name;
	union object_ds ds;
	int live = 0;

	memset(&ds, 0, sizeof(ds));
	for (unsigned slot = 0; slot < SLOTS_MAX; slot++)
		hints[slot].id = shared->slot_id[looker->family_ix][slot];
	for (int ix = 0; ix <= highest && live < count; ix++) {
		struct object_hint seen = {.live = 1};
		struct object_hint *hint = NULL;

		seen.id = looker->look(ix, &ds, &seen);
		if (seen.id < 0) {
			if (errno != EINVAL)
				text_printf(text, "%s index %d: errno %d\n", name, ix, errno);
			continue;
		}
		live++;
		for (unsigned slot = 0; slot < SLOTS_MAX; slot++) {
			if (hints[slot].id != seen.id)
				continue;
			hint = &hints[slot];
			*hint = seen;
			text_printf(text, "s%u ", slot);
		}
		text_puts(text, name);
		text_puts(text, " ");
		text_putd(text, seen.id);
		looker->put(shared, text, seen.id, &ds, hint);
		text_puts(text, "\n");
	}
	hints[0].shared_live_count = (uint8_t)live;
}

bool family_chance(struct world *world, unsigned family_ix, unsigned style_ix)
{
	return random_percent(&world->random, world->style[family_ix][style_ix]);
}

bool family_is_full(const struct world *world, unsigned family_ix)
{
	return world->hints[family_ix][0].shared_live_count >=
	       world->style[family_ix][STYLE_OBJECTS];
}

/* The slot, or the next one that has an object, or has none; the slot itself if there is none. */
static unsigned next_slot(const struct world *world, unsigned family_ix, unsigned slot, bool live)
{
	const struct object_hint *hints = world->hints[family_ix];

	for (unsigned tries = 0; tries < SLOTS_MAX && hints[slot].live != live; tries++)
		slot = (slot + 1) % SLOTS_MAX;
	return slot;
}

int64_t choose_id(struct world *world, unsigned family_ix)
{
	struct random *random = &world->random;
	unsigned slot = random_below(random, SLOTS_MAX);

	if (!family_chance(world, family_ix, STYLE_BAD))
		return next_slot(world, family_ix, slot, true);
	if (random_percent(random, 30))
		return ID_NEGATIVE;
	return random_percent(random, 50) ? ID_NEVER : (int64_t)slot;
}

unsigned choose_free_slot(struct world *world, unsigned family_ix)
{
	return next_slot(world, family_ix, random_below(&world->random, SLOTS_MAX), false);
}

int64_t choose_key(struct world *world, bool full)
{
	return random_percent(&world->random, full ? 0 : 25) ? IPC_PRIVATE
							     : 1 + random_below(&world->random, 3);
}

int64_t choose_create_flags(struct world *world, bool full)
{
	return (random_percent(&world->random, full ? 30 : 85) ? IPC_CREAT : 0) |
	       (random_percent(&world->random, 15) ? IPC_EXCL : 0);
}

int64_t choose_mode(struct world *world, bool executable)
{
	static const unsigned modes[] = {0600, 0600, 0666, 0666, 0660, 0644,
					 0640, 0200, 0400, 0,    0777, 0755};

	/* With root alone no mode keeps anybody out. */
	return world_draw(world, modes, executable ? 12 : 10);
}

int64_t choose_person(struct world *world)
{
	return world->with_users ? random_below(&world->random, PERSON_COUNT) : 0;
}
