// SPDX-License-Identifier: MIT
/* A library that a test program loads: how does its call of semget() bind? */
#include <sys/sem.h>

int plugin_semget(void);

int plugin_semget(void)
{
	return semget(1, 1, 0);
}
