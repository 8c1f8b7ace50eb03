// SPDX-License-Identifier: MIT
/*
 * Shorthands of the semaphore tests. SEMOP and SLEEPER take operations as they are written in C,
 * {number, change, flags}, so that a test reads like the rule it checks.
 */
#ifndef TESTS_CONFORM_SEM_CALLS_H
#define TESTS_CONFORM_SEM_CALLS_H

#include "harness/harness.h"

#include <sys/sem.h>

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *info;
};

enum {
	SEMVMX = 32767,
};

#define OPS(...)       ((struct sembuf[]){__VA_ARGS__})
#define OPS_COUNT(...) (sizeof(OPS(__VA_ARGS__)) / sizeof(struct sembuf))

/* One semop call: SEMOP(id, {0, -1, 0}, {1, 1, SEM_UNDO}). */
#define SEMOP(id, ...) semop((id), OPS(__VA_ARGS__), OPS_COUNT(__VA_ARGS__))

/* One semtimedop call with a time-out. */
#define SEMTIMEDOP(id, timeout_ms, ...)                                                            \
	semtimedop((id), OPS(__VA_ARGS__), OPS_COUNT(__VA_ARGS__),                                 \
		   &(struct timespec){.tv_sec = (timeout_ms) / 1000,                               \
				      .tv_nsec = (timeout_ms) % 1000 * 1000000L})

/* A child that makes this call and notes its outcome in a row of the board; returns its pid. */
#define SLEEPER(row, id, ...) sem_sleeper((row), (id), OPS(__VA_ARGS__), OPS_COUNT(__VA_ARGS__))

static inline pid_t sem_sleeper(unsigned int row, int id, struct sembuf *ops, size_t count)
{
	pid_t kid;

	IN_CHILD (kid)
		RECORD(row, semop(id, ops, count));
	return kid;
}

/* Waits for the row's caller to be done; its call must have ended so (0: success). */
#define ENDS(row, expected) sem_row_ends(__FILE__, __LINE__, (row), (expected))

static inline void sem_row_ends(const char *file, int line, unsigned int row, int expected)
{
	UNTIL(atomic_load(&board->result[row].done));
	if (board->result[row].err != expected)
		check_fail(file, line, "caller %u ended with %s, not %s", row,
			   strerrorname_np(board->result[row].err), strerrorname_np(expected));
}

/* A private set, removed at the end of the test. */
static inline int sem_new(int count)
{
	return own_sem((int)CHECK_OK(semget(IPC_PRIVATE, count, IPC_CREAT | 0600)));
}

static inline int sem_setval(int id, int number, int value)
{
	return semctl(id, number, SETVAL, (union semun){.val = value});
}

static inline int sem_setall(int id, unsigned short *values)
{
	return semctl(id, 0, SETALL, (union semun){.array = values});
}

static inline int sem_getall(int id, unsigned short *values)
{
	return semctl(id, 0, GETALL, (union semun){.array = values});
}

static inline int sem_value(int id, int number)
{
	return (int)CHECK_OK(semctl(id, number, GETVAL));
}

static inline int sem_pid(int id, int number)
{
	return (int)CHECK_OK(semctl(id, number, GETPID));
}

/* How many sleep until the value rises, and until it is 0. */
static inline int sem_ncnt(int id, int number)
{
	return (int)CHECK_OK(semctl(id, number, GETNCNT));
}

static inline int sem_zcnt(int id, int number)
{
	return (int)CHECK_OK(semctl(id, number, GETZCNT));
}

static inline struct semid_ds sem_stat(int id)
{
	struct semid_ds ds;

	memset(&ds, 0, sizeof(ds));
	CHECK_OK(semctl(id, 0, IPC_STAT, (union semun){.buf = &ds}));
	return ds;
}

/* Changes the mode of a set. */
static inline void sem_chmod(int id, int mode)
{
	struct semid_ds ds = sem_stat(id);

	ds.sem_perm.mode = (unsigned short)mode;
	CHECK_OK(semctl(id, 0, IPC_SET, (union semun){.buf = &ds}));
}

#endif
