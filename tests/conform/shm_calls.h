/* SPDX-License-Identifier: MIT */
/* Shorthands of the shared memory tests. */
#ifndef TESTS_CONFORM_SHM_CALLS_H
#define TESTS_CONFORM_SHM_CALLS_H

#include "harness/harness.h"

#include <sys/mman.h>
#include <sys/shm.h>

#ifndef SHM_DEST
#define SHM_DEST 01000
#endif
#ifndef SHM_LOCKED
#define SHM_LOCKED 02000
#endif
#ifndef SHM_EXEC
#define SHM_EXEC 0100000
#endif

enum {
	BAD_ID = 0x7fffffff,
};

#define PAGE ((size_t)4096)

/* A private segment, removed at the end of the test. */
static inline int shm_new(size_t bytes)
{
	return own_shm((int)CHECK_OK(shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600)));
}

static inline char *shm_at(int id, const void *address, int flags)
{
	return (char *)CHECK_OK(shmat(id, address, flags));
}

static inline struct shmid_ds shm_stat(int id)
{
	struct shmid_ds ds;

	memset(&ds, 0, sizeof(ds));
	CHECK_OK(shmctl(id, IPC_STAT, &ds));
	return ds;
}

static inline int shm_nattch(int id)
{
	return (int)shm_stat(id).shm_nattch;
}

/* Changes the mode of a segment. */
static inline void shm_chmod(int id, int mode)
{
	struct shmid_ds ds = shm_stat(id);

	ds.shm_perm.mode = (unsigned short)mode;
	CHECK_OK(shmctl(id, IPC_SET, &ds));
}

/* Addresses that nothing uses, as many pages; not mapped any more when this returns. */
static inline char *free_range(size_t pages)
{
	char *p = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK_OK(munmap(p, pages * PAGE));
	return p;
}

static inline bool is_mapped(const void *p)
{
	unsigned char there;

	return mincore((void *)(uintptr_t)p, PAGE, &there) == 0;
}

#endif
