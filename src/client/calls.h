/* SPDX-License-Identifier: MIT */
/*
 * The calls as programs make them, returning the result or -errno (the preload sets errno). They
 * block where Linux blocks. Safe in threads, in signal handlers and after fork; structures are the
 * C library's (as of 64-bit Linux, where they are also the kernel's).
 *
 * semget(2), semop(2), semctl(2), and SVr4/POSIX.1-2017 as Linux reads them; the errno values are
 * those of the manual pages, and additionally ENOTRECOVERABLE when the region is damaged, EACCES
 * or another errno of open(2) when the namespace cannot be entered (reported once on stderr).
 */
#ifndef USYSV_CLIENT_CALLS_H
#define USYSV_CLIENT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/types.h>
#include <time.h>

struct sembuf;

long call_semget(key_t key, int nsems, int flags);
/* timeout: as for semtimedop(2), in user memory; null: none, semop(2). */
long call_semop(int id, struct sembuf *sops, size_t nsops, const struct timespec *timeout);
/* arg: what the variadic argument held, as the kernel sees union semun. */
long call_semctl(int id, int semnum, int cmd, unsigned long arg);

/*
 * msgget(2), msgsnd(2), msgrcv(2), msgctl(2), likewise. cancellable: the sleep is a cancellation
 * point, where the preload is there to make it one.
 */
long call_msgget(key_t key, int flags);
long call_msgsnd(int id, const void *message, size_t bytes, int flags, bool cancellable);
long call_msgrcv(int id, void *message, size_t bytes, long type, int flags, bool cancellable);
long call_msgctl(int id, int cmd, void *buffer);

/* shmget(2), shmat(2), shmdt(2), shmctl(2), likewise; shmat's result is the address or -errno. */
long call_shmget(key_t key, size_t bytes, int flags);
long call_shmat(int id, const void *address, int flags);
long call_shmdt(const void *address);
long call_shmctl(int id, int cmd, void *buffer);

#endif
