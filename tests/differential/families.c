// SPDX-License-Identifier: MIT
/*
 * The table of families. The first is that of what happens to processes; it is part of every
 * sequence. Weights of the others: --family.
 */
#include "families.h"

const struct family *const families[] = {
	[FAMILY_PROCESS] = &process_family,
	[FAMILY_SEM] = &sem_family,
	[FAMILY_MSG] = &msg_family,
	[FAMILY_SHM] = &shm_family,
};

const unsigned families_count = sizeof(families) / sizeof(families[0]);
