/* SPDX-License-Identifier: MIT */
/* What the unit tests of the engine share. Each test gets a fresh region, which must be clean
 * after. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/ids.h"
#include "core/procs.h"
#include "core/rlock.h"
#include "harness/engine.h"
#include "ipc/check.h"
#include "ipc/repair.h"

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

#define NOW 1700000000 /* the time of all calls that the harness makes */

/* Some lock that protects nothing which these tests use. */
uint64_t spare_lock(void);

rlock_shm *lock_word(struct actor *a, uint64_t off);

/* The actor has this lock, whatever it does: as if it had been stopped in the section. */
void seize(struct actor *a, uint64_t off);
/* And gives it back. */
void let_loose(struct actor *a, uint64_t off);

struct sem_shm *sem_of(struct actor *a, int32_t id, uint32_t num);
struct set_shm *set_of(struct actor *a, int32_t id);
int value_of(struct actor *a, int32_t id, uint32_t num);

/* The actor's semadj for a semaphore; 0 without a record. */
int semadj_of(struct actor *a, int32_t id, uint32_t num);

/* A new set with these values. */
int32_t new_set(struct actor *a, uint32_t n, const int *values);

/* Queues an operation of one semaphore; it must sleep. */
void queue_op(struct actor *a, int32_t id, uint32_t num, int op, int flags);

#endif
