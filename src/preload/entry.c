// SPDX-License-Identifier: MIT
/*
 * The table of families: which names and which system call numbers are whose. Used by the stubs
 * (stubs.S, stubs.c) behind dlsym() and syscall().
 */
#include "preload/entry.h"

#include <sys/syscall.h>

enum syscall_class {
	CLASS_NONE,
	CLASS_SEM,
	CLASS_MSG,
	CLASS_SHM,
	CLASS_PROCESS,
	CLASS_VIEW,
	CLASS_COUNT
};

entry_syscall_fn *const entry_syscall_handlers[CLASS_COUNT] = {
	[CLASS_SEM] = entry_sem_syscall, [CLASS_MSG] = entry_msg_syscall,
	[CLASS_SHM] = entry_shm_syscall, [CLASS_PROCESS] = process_syscall,
	[CLASS_VIEW] = procview_syscall,
};

static const struct entry_name *const families[] = {
	entry_sem_names,
	entry_msg_names,
	entry_shm_names,
};

const unsigned char entry_syscall_class[ENTRY_SYSCALL_COUNT] = {
#ifdef SYS_semget
	[SYS_semget] = CLASS_SEM,
	[SYS_semctl] = CLASS_SEM,
#endif
#ifdef SYS_semop
	[SYS_semop] = CLASS_SEM,
#endif
#ifdef SYS_semtimedop
	[SYS_semtimedop] = CLASS_SEM,
#endif
#ifdef SYS_semtimedop_time64
	[SYS_semtimedop_time64] = CLASS_SEM,
#endif
#ifdef SYS_msgget
	[SYS_msgget] = CLASS_MSG,
	[SYS_msgsnd] = CLASS_MSG,
	[SYS_msgrcv] = CLASS_MSG,
	[SYS_msgctl] = CLASS_MSG,
#endif
#ifdef SYS_shmget
	[SYS_shmget] = CLASS_SHM,
	[SYS_shmat] = CLASS_SHM,
	[SYS_shmdt] = CLASS_SHM,
	[SYS_shmctl] = CLASS_SHM,
#endif
#ifdef SYS_open
	[SYS_open] = CLASS_VIEW,
	[SYS_creat] = CLASS_VIEW,
#endif
	[SYS_openat] = CLASS_VIEW,
#ifdef SYS_openat2
	[SYS_openat2] = CLASS_VIEW,
#endif
	[SYS_exit_group] = CLASS_PROCESS,
	[SYS_mlockall] = CLASS_PROCESS,
	[SYS_wait4] = CLASS_PROCESS,
	[SYS_waitid] = CLASS_PROCESS,
	[SYS_execve] = CLASS_PROCESS,
	[SYS_execveat] = CLASS_PROCESS,
	[SYS_setuid] = CLASS_PROCESS,
	[SYS_setgid] = CLASS_PROCESS,
	[SYS_setreuid] = CLASS_PROCESS,
	[SYS_setregid] = CLASS_PROCESS,
	[SYS_setresuid] = CLASS_PROCESS,
	[SYS_setresgid] = CLASS_PROCESS,
	[SYS_setgroups] = CLASS_PROCESS,
	[SYS_setfsuid] = CLASS_PROCESS,
	[SYS_setfsgid] = CLASS_PROCESS,
	[SYS_capset] = CLASS_PROCESS,
	[SYS_chroot] = CLASS_PROCESS,
	[SYS_pivot_root] = CLASS_PROCESS,
	[SYS_unshare] = CLASS_PROCESS,
	[SYS_setns] = CLASS_PROCESS,
};

void *entry_find(const char *name)
{
	if (!name || (*name != 's' && *name != 'm'))
		return NULL;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		for (const struct entry_name *n = families[i]; n->name; n++)
			if (symbol_is(n->name, name))
				return n->function;
	return NULL;
}
