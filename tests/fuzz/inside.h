/* SPDX-License-Identifier: MIT */
/*
 * For programs in a namespace that read and write its region themselves. What cannot be had ends
 * the program with status 1.
 */
#ifndef TESTS_FUZZ_INSIDE_H
#define TESTS_FUZZ_INSIDE_H

#include <stdint.h>
#include <sys/types.h>

const char *inside_region_path(void);

unsigned char *inside_map_region(void);

/* The slots of a process that has made a call, and of the thread that it has. */
uint32_t inside_slot_of(const unsigned char *region, pid_t pid);
uint32_t inside_thread_of(const unsigned char *region, pid_t pid);

/* A child that has made a call, so that it has a slot, and is stopped. */
pid_t inside_start_stopped(void);

#endif
