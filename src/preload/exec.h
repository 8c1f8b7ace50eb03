/* SPDX-License-Identifier: MIT */
/* What new programs inherit; see exec.c. */
#ifndef USYSV_PRELOAD_EXEC_H
#define USYSV_PRELOAD_EXEC_H

#include <stdbool.h>
#include <stddef.h>

/* Notes this library's path and the variables to pass on. Called once, by the constructor. */
void exec_start(char *const environment[]);

/*
 * A variable for a new image of the same process only: the environment loses it, and the value is
 * returned; null if it is not there.
 */
const char *exec_take_variable(char **environment, const char *prefix);

/* Its value is the id of the process whose image had segments attached. */
#define EXEC_MARK       "USYSV_EXEC="
#define EXEC_MARK_BYTES 32

/* Not every C library declares it. */
int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags);

/* Is the library passed on to programs with this environment? */
bool exec_is_on(char *const environment[]);

/* Would a program with this environment come without the library? */
bool exec_lacks(char *const environment[]);

/*
 * An environment that keeps the library (strip: leaves it out), built in scratch memory of the
 * size that exec_scratch_bytes() tells.
 */
size_t exec_scratch_bytes(char *const environment[]);
char *const *exec_environment(char *const environment[], bool strip, void *scratch);

#endif
