// SPDX-License-Identifier: MIT
/* Semaphores: semget(2), semop(2), semtimedop(2), semctl(2). See entry.h. */
#include "preload/entry.h"

#include <stdarg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include "client/calls.h"

PUBLIC int semget(key_t key, int nsems, int flags)
{
	entry_begin();
	return (int)entry_return(call_semget(key, nsems, flags));
}

PUBLIC int semop(int id, struct sembuf *sops, size_t nsops)
{
	entry_begin();
	return (int)entry_return(call_semop(id, sops, nsops, NULL));
}

PUBLIC int semtimedop(int id, struct sembuf *sops, size_t nsops, const struct timespec *timeout)
{
	entry_begin();
	return (int)entry_return(call_semop(id, sops, nsops, timeout));
}

/*
 * The fourth argument is a union that callers define; whatever its member, it arrives as one
 * word. Reading it where none was passed yields a value that the command does not look at.
 */
PUBLIC int semctl(int id, int semnum, int cmd, ...)
{
	unsigned long arg;
	va_list ap;

	va_start(ap, cmd);
	arg = va_arg(ap, unsigned long);
	va_end(ap);
	entry_begin();
	return (int)entry_return(call_semctl(id, semnum, cmd, arg));
}

const struct entry_name entry_sem_names[] = {
	{"semget", (void *)semget},
	{"semop", (void *)semop},
	{"semtimedop", (void *)semtimedop},
	{"semctl", (void *)semctl},
	{NULL, NULL},
};

long entry_sem_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long result = -ENOSYS;

	(void)e;
	(void)f;
	entry_begin();
	switch (nr) {
#ifdef SYS_semget
	case SYS_semget:
		result = call_semget((key_t)a, (int)b, (int)c);
		break;
	case SYS_semctl:
		result = call_semctl((int)a, (int)b, (int)c, (unsigned long)d);
		break;
#endif
#ifdef SYS_semop
	case SYS_semop:
		result = call_semop((int)a, (struct sembuf *)b, (unsigned)c, NULL);
		break;
#endif
#ifdef SYS_semtimedop
	case SYS_semtimedop:
		result = call_semop((int)a, (struct sembuf *)b, (unsigned)c,
				    (const struct timespec *)d);
		break;
#endif
	default:
		(void)d;
		break;
	}
	return entry_return(result);
}
