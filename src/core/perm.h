/* SPDX-License-Identifier: MIT */
/* Permission as the kernel's ipcperms() and ipcctl_obtain_check() decide it. */
#ifndef USYSV_CORE_PERM_H
#define USYSV_CORE_PERM_H

#include "core/caller.h"
#include "core/layout.h"

/* May the caller have all of `wanted` (rwx bits 0..7)? 0 or -EACCES. */
int perm_check(const struct caller *c, const struct object_shm *o, uint32_t wanted);

/* The same for the nine mode bits in the flags of a get call, folded to a class. */
int perm_check_flags(const struct caller *c, const struct object_shm *o, uint32_t flags);

/* May the caller remove or change the object? 0 or -EPERM. */
int perm_check_owner(const struct caller *c, const struct object_shm *o);

#endif
