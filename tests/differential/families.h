/* SPDX-License-Identifier: MIT */
/*
 * The families, each in a file of its own.
 */
#ifndef DIFFERENTIAL_FAMILIES_H
#define DIFFERENTIAL_FAMILIES_H

#include "step.h"

enum {
	FAMILY_PROCESS,
	FAMILY_SEM,
	FAMILY_MSG,
	FAMILY_SHM,
};

extern const struct family process_family;
extern const struct family sem_family;
extern const struct family msg_family;
extern const struct family shm_family;

/* The persons a worker may act as; 0 is root. */
enum { PERSON_COUNT = 4 };

struct person {
	const char *name;
	unsigned uid;
	unsigned gid;
};

extern const struct person persons[PERSON_COUNT];

#endif
