/* SPDX-License-Identifier: MIT */
/* Waiting for children; see wait.c. */
#ifndef USYSV_PRELOAD_WAIT_H
#define USYSV_PRELOAD_WAIT_H

#include <sys/resource.h>
#include <sys/types.h>
#include <signal.h>

/* waitid(2) as the kernel has it, with the child's resources; as of syscall(3). */
long wait_id_raw(int type, id_t id, siginfo_t *info, int options, struct rusage *usage);

#endif
