// SPDX-License-Identifier: MIT
/* Shared memory: shmget(2), shmat(2), shmdt(2), shmctl(2). See entry.h. */
#include "preload/entry.h"

#include <sys/shm.h>
#include <sys/syscall.h>

#include "client/calls.h"

PUBLIC int shmget(key_t key, size_t bytes, int flags)
{
	entry_begin();
	return (int)entry_return(call_shmget(key, bytes, flags));
}

PUBLIC void *shmat(int id, const void *address, int flags)
{
	entry_begin();
	return (void *)entry_return(call_shmat(id, address, flags));
}

PUBLIC int shmdt(const void *address)
{
	entry_begin();
	return (int)entry_return(call_shmdt(address));
}

PUBLIC int shmctl(int id, int cmd, struct shmid_ds *buffer)
{
	entry_begin();
	return (int)entry_return(call_shmctl(id, cmd, buffer));
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
	long result = -ENOSYS;

	(void)d;
	(void)e;
	(void)f;
	entry_begin();
	switch (nr) {
#ifdef SYS_shmget
	case SYS_shmget:
		result = call_shmget((key_t)a, (size_t)b, (int)c);
		break;
	case SYS_shmat:
		result = call_shmat((int)a, (const void *)b, (int)c);
		break;
	case SYS_shmdt:
		result = call_shmdt((const void *)a);
		break;
	case SYS_shmctl:
		result = call_shmctl((int)a, (int)b, (void *)c);
		break;
#endif
	default:
		(void)a;
		(void)b;
		(void)c;
		break;
	}
	return entry_return(result);
}
