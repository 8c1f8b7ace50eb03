// SPDX-License-Identifier: MIT
/*
 * The functions by which a parent learns that a child has ended. Before they return, what the
 * child left in the namespace is settled, as it would be with the kernel's objects. Stopped and
 * continued children are passed over. system() and pclose() wait inside the C library: after them
 * all of the dead are looked for.
 *
 * system() and popen() also start a shell with the process's own environment, which may have been
 * emptied; for their time it is replaced by one that keeps the library.
 */
#include "preload/wait.h"

#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "client/session.h"
#include "preload/entry.h"
#include "preload/exec.h"
#include "preload/symbols.h"

static pid_t ended(pid_t pid, int status)
{
	if (pid > 0 && (WIFEXITED(status) || WIFSIGNALED(status)))
		session_reap(pid);
	return pid;
}

pid_t __wait(int *status);
pid_t __waitpid(pid_t pid, int *status, int options);

PUBLIC pid_t wait(int *status)
{
	int mine = 0;
	int *where = status ? status : &mine;
	pid_t pid = NEXT(wait)(where);

	return pid > 0 ? ended(pid, *where) : pid;
}

PUBLIC pid_t __wait(int *status)
{
	return wait(status);
}

PUBLIC pid_t waitpid(pid_t pid, int *status, int options)
{
	int mine = 0;
	int *where = status ? status : &mine;

	pid = NEXT(waitpid)(pid, where, options);
	return pid > 0 ? ended(pid, *where) : pid;
}

PUBLIC pid_t __waitpid(pid_t pid, int *status, int options)
{
	return waitpid(pid, status, options);
}

PUBLIC pid_t wait3(int *status, int options, struct rusage *usage)
{
	int mine = 0;
	int *where = status ? status : &mine;
	pid_t pid = NEXT(wait3)(where, options, usage);

	return pid > 0 ? ended(pid, *where) : pid;
}

PUBLIC pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	int mine = 0;
	int *where = status ? status : &mine;

	pid = NEXT(wait4)(pid, where, options, usage);
	return pid > 0 ? ended(pid, *where) : pid;
}

static void ended_by_info(const siginfo_t *info)
{
	if (info->si_pid > 0 && (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
				 info->si_code == CLD_DUMPED))
		session_reap(info->si_pid);
}

PUBLIC int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	siginfo_t mine;
	siginfo_t *where = info ? info : &mine;
	int rc;

	mine.si_pid = 0;
	rc = NEXT(waitid)(type, id, where, options);
	if (rc == 0)
		ended_by_info(where);
	return rc;
}

long wait_id_raw(int type, id_t id, siginfo_t *info, int options, struct rusage *usage)
{
	siginfo_t mine;
	siginfo_t *where = info ? info : &mine;
	long rc;

	mine.si_pid = 0;
	rc = NEXT(syscall)(SYS_waitid, type, id, where, options, usage);
	if (rc == 0)
		ended_by_info(where);
	return rc;
}

static void restore_environment(void *old)
{
	environ = old;
}

static int shell_status(const char *command)
{
	return NEXT(system)(command);
}

PUBLIC int system(const char *command)
{
	char **old = environ, **mine;
	int status, saved;

	if (!exec_is_on(old) || !exec_lacks(old)) {
		status = shell_status(command);
	} else {
		mine = (char **)(uintptr_t)exec_environment(old, false,
							    alloca(exec_scratch_bytes(old)));
		pthread_cleanup_push(restore_environment, old);
		environ = mine;
		status = shell_status(command);
		pthread_cleanup_pop(1);
	}
	saved = errno;
	(void)session_sweep(SWEEP_DOUBTFUL);
	errno = saved;
	return status;
}

PUBLIC FILE *popen(const char *command, const char *type)
{
	char **old = environ;
	FILE *stream;

	if (!exec_is_on(old) || !exec_lacks(old))
		return NEXT(popen)(command, type);
	environ = (char **)(uintptr_t)exec_environment(old, false, alloca(exec_scratch_bytes(old)));
	stream = NEXT(popen)(command, type);
	environ = old;
	return stream;
}

PUBLIC int pclose(FILE *stream)
{
	int status = NEXT(pclose)(stream), saved = errno;

	(void)session_sweep(SWEEP_DOUBTFUL);
	errno = saved;
	return status;
}
