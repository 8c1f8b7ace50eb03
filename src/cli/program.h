/* SPDX-License-Identifier: MIT */
/* Finding the program to run as execvp(3) does, and whether a preload can reach it. */
#ifndef USYSV_CLI_PROGRAM_H
#define USYSV_CLI_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* 0 with the path to execute; else the errno that execvp() would give: ENOENT, EACCES, ... */
int program_find(const char *name, char ret_path[PATH_MAX]);

/*
 * Why the library cannot be preloaded into the program, as a sentence for the user with what to do;
 * null when it can (or nobody can tell). *ret_dies: it would not even start if the library were
 * offered to it.
 */
const char *program_out_of_reach(const char *path, bool *ret_dies);

#endif
