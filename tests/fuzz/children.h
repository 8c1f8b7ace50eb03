/* SPDX-License-Identifier: MIT */
/* The children of a process, those that became it by adoption too. */
#ifndef TESTS_FUZZ_CHILDREN_H
#define TESTS_FUZZ_CHILDREN_H

#include <sys/types.h>

/* Calls back with each of the calling process's; how many. */
unsigned children_each(void (*see)(pid_t pid));

#endif
