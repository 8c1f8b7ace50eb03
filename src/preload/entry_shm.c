// SPDX-License-Identifier: MIT
/*
 * Shared memory: shmget(2), shmat(2), shmdt(2), shmctl(2). This build does not have them: they fail
 * with ENOSYS and say so once. They never reach the kernel, for then two halves of one program
 * could meet in different places.
 */
#include "preload/entry.h"

#include <sys/shm.h>

#include "client/report.h"

static long missing(const char *name)
{
	entry_begin();
	report(REPORT_FAMILY, "%s: not in this version of usysv: the call fails with ENOSYS", name);
	return entry_return(-ENOSYS);
}

PUBLIC int shmget(key_t key, size_t bytes, int flags)
{
	(void)key;
	(void)bytes;
	(void)flags;
	return (int)missing("shmget");
}

PUBLIC void *shmat(int id, const void *address, int flags)
{
	(void)id;
	(void)address;
	(void)flags;
	return (void *)missing("shmat");
}

PUBLIC int shmdt(const void *address)
{
	(void)address;
	return (int)missing("shmdt");
}

PUBLIC int shmctl(int id, int cmd, struct shmid_ds *buffer)
{
	(void)id;
	(void)cmd;
	(void)buffer;
	return (int)missing("shmctl");
}

const struct entry_name entry_shm_names[] = {
	{"shmget", (void *)shmget},
	{"shmat", (void *)shmat},
	{"shmdt", (void *)shmdt},
	{"shmctl", (void *)shmctl},
	{NULL, NULL},
};

long entry_shm_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	(void)nr;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	(void)e;
	(void)f;
	return missing("syscall(SYS_shm...)");
}
