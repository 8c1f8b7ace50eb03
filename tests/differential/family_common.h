/* SPDX-License-Identifier: MIT */
/*
 * What the three families of objects share: of the calls, of the look at all objects, and of the
 * choice of calls.
 */
#ifndef DIFFERENTIAL_FAMILY_COMMON_H
#define DIFFERENTIAL_FAMILY_COMMON_H

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "families.h"
#include "shared.h"
#include "world.h"

/* ---- Calls ---- */

extern const struct name_value pointer_names[];

/* Takes a result; a failure counts with its errno. True if the call succeeded. */
bool put_result(struct outcome *outcome, struct text *text, long ret);

void put_perm(struct text *text, const struct ipc_perm *perm);

/* What IPC_SET is given. */
void fill_perm(struct ipc_perm *perm, int64_t mode, int64_t person_ix);

/* The index of an object, for the commands that take one; what is no id stays as it is. */
int index_of(int id);

/* ---- Looks ---- */

union object_ds {
	struct semid_ds sem;
	struct msqid_ds msg;
	struct shmid_ds shm;
};

struct looker {
	unsigned family_ix;
	/* Asks for the object at the index; its id, or -1. Gives size and values of its hint. */
	int (*look)(int ix, union object_ds *ds, struct object_hint *hint);
	/* What there is to see; hint: that of its slot, null if it is in none. */
	void (*put)(const struct shared *shared, struct text *text, int id,
		    const union object_ds *ds, struct object_hint *hint);
};

/* A line for each object that there is; how many there are is known before. */
void dump_objects(const struct looker *looker, const struct shared *shared, struct text *text,
		  struct object_hint *hints, int highest, int count);

/* ---- Choices ---- */

/* Styles that every family has. */
enum {
	STYLE_OBJECTS, /* how many there shall be */
	STYLE_CTL,     /* percent of steps that are a ...ctl */
	STYLE_BAD,     /* percent of calls with something wrong */
	STYLE_CHILD,   /* percent of calls made by a child */
	STYLE_REMOVE,  /* weight of IPC_RMID */
	STYLE_OWN,     /* the first that is the family's own */
};

bool family_chance(struct world *world, unsigned family_ix, unsigned style_ix);

/* Whether there are as many objects as there shall be. */
bool family_is_full(const struct world *world, unsigned family_ix);

/* For an argument of kind PARAM_ID: a slot, most often one with an object in it. */
int64_t choose_id(struct world *world, unsigned family_ix);

/* For an argument of kind PARAM_SLOT: most often one without an object. */
unsigned choose_free_slot(struct world *world, unsigned family_ix);

/* For a ...get: with all objects there, mostly of one that exists. */
int64_t choose_key(struct world *world, bool full);
int64_t choose_create_flags(struct world *world, bool full);

int64_t choose_mode(struct world *world, bool executable);

/* Whom IPC_SET shall give an object to. */
int64_t choose_person(struct world *world);

#endif
