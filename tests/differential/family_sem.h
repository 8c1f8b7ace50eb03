/* SPDX-License-Identifier: MIT */
/*
 * The semaphore family: what its two files share.
 */
#ifndef DIFFERENTIAL_FAMILY_SEM_H
#define DIFFERENTIAL_FAMILY_SEM_H

#include "step.h"

/* Arguments of the operations are described in the table of family_sem.c. */
enum {
	SEM_OP_GET,
	SEM_OP_OP,
	SEM_OP_BRIEF,
	SEM_OP_CTL,
	SEM_OP_COUNT,
};

enum timeout {
	TIMEOUT_NONE, /* semop; the others: semtimedop */
	TIMEOUT_ZERO, /* Linux does sleep, until its timer fires */
	TIMEOUT_SHORT,
	TIMEOUT_LONG,
	TIMEOUT_MINUS,
	TIMEOUT_NSEC,
	TIMEOUT_MINUS_NSEC,
	TIMEOUT_BAD,
	TIMEOUT_COUNT,
};

bool sem_generate(struct world *world, struct step *step);
void sem_choose_style(struct world *world);

#endif
