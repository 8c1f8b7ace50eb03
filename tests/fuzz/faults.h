/* SPDX-License-Identifier: MIT */
/* What faults.c and the program that it watches agree on. */
#ifndef TESTS_FUZZ_FAULTS_H
#define TESTS_FUZZ_FAULTS_H

#include <sys/syscall.h>

/* A system call that fails by itself, and that nobody else makes in this way. */
#define FAULTS_MARK       SYS_getpriority
#define FAULTS_MARK_WHICH 0x5359
#define FAULTS_BEGIN      1
#define FAULTS_END        2

/* exit status */
#define FAULTS_WRONG      3 /* a call failed as it should not */
#define FAULTS_STAYED_OUT 4 /* the process could not enter the namespace */

#endif
