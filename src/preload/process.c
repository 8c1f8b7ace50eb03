// SPDX-License-Identifier: MIT
/*
 * What happens to the process as a whole: its start and end, fork, changes of identity.
 *
 * The kernel applies SEM_UNDO before a parent can learn of a death; so the end of this process is
 * settled here before its last system call. exit() and a return from main() run handlers and
 * destructors first, which may still use semaphores: what comes after all of these is the loader's
 * own finaliser, which the start-up code passes to __libc_start_main() and we replace. Where that
 * was not called through us (another C library), our destructor does it, which may be early.
 *
 * The constructor maps nothing and looks nothing up that is not needed: programs that never make
 * a System V call pay for a few table writes. Constructors of other libraries may run before it;
 * what they may do needs nothing of it, but that the programs they start get no library.
 */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "client/session.h"
#include "client/thread.h"
#include "preload/entry.h"
#include "preload/exec.h"
#include "preload/procview.h"
#include "preload/signals.h"
#include "preload/symbols.h"
#include "preload/wait.h"

/* Start and end. */

typedef int main_fn(int argc, char **argv, char **envp);

static void (*loader_finish)(void);
static bool finish_is_replaced;

/* The streams of views that are open for writing: the C library would flush them later. */
static void finish_streams(void)
{
	if (load_relaxed(&procview_writable))
		(void)fflush(NULL);
}

static void finish(void)
{
	if (loader_finish)
		loader_finish();
	finish_streams();
	session_exit();
}

/* The image before this one had segments attached. They went with it: that must be seen. */
static bool old_image_is_due;

static void settle_old_image(void)
{
	int error;

	if (old_image_is_due)
		(void)session_thread(&error); /* it has said why not */
	old_image_is_due = false;
}

int __libc_start_main(main_fn *program, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

PUBLIC int __libc_start_main(main_fn *program, int argc, char **argv, void (*init)(void),
			     void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	loader_finish = rtld_fini;
#ifdef __GLIBC__
	finish_is_replaced = true;
#endif
	settle_old_image();
	return NEXT(__libc_start_main)(program, argc, argv, init, fini, finish, stack_end);
}

/* By hand: the C library's numbers need its locale. */
static bool is_own_pid(const char *text)
{
	long pid = 0;

	while (*text >= '0' && *text <= '9' && pid < INT_MAX)
		pid = pid * 10 + (*text++ - '0');
	return !*text && pid == sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* What the image before this one left to it. */
static void take_over(char **environment)
{
	const char *views = exec_take_variable(environment, PROCVIEW_HINT);
	const char *mark = exec_take_variable(environment, EXEC_MARK);

	if (views)
		procview_start(views);
	old_image_is_due = mark && is_own_pid(mark);
#ifndef __GLIBC__
	settle_old_image();
#endif
}

/*
 * ThreadSanitizer, where it is linked into the program: its versions of the C library's functions
 * lead nowhere before this, and the program's own constructor, which calls it, comes after ours.
 */
extern void __tsan_init(void) __attribute__((weak)); /* NOLINT: its name */

/* glibc hands the arguments of main() to constructors; its environ may not be set up yet. */
__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
#ifndef __GLIBC__
	envp = environ;
#endif
	if (__tsan_init)
		__tsan_init();
	thread_flush_signals = signals_flush;
	session_on_attach = preload_install_fault_handlers;
	if (session_attached())
		preload_install_fault_handlers();
	exec_start(envp);
	take_over(envp);
	(void)pthread_atfork(session_fork_prepare, session_fork_parent, session_fork_child);
	/* Registered first, called last. */
	(void)at_quick_exit(session_exit);
}

__attribute__((destructor)) static void stop(void)
{
	if (finish_is_replaced)
		return;
	finish_streams();
	session_exit();
}

static void __attribute__((noreturn)) end_process(int status)
{
	if (load_relaxed(&procview_writable))
		(void)procview_settle_all();
	session_exit();
	for (;;)
		sys_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

PUBLIC void _exit(int status)
{
	end_process(status);
}

PUBLIC void _Exit(int status)
{
	end_process(status);
}

/* fork() runs the handlers registered above; this is fork() without handlers. */
pid_t _Fork(void);

PUBLIC pid_t _Fork(void)
{
	pid_t pid;
	int saved;

	/* A C library without it: whoever found ours can be given the other. */
	if (!next_function(NEXT__Fork))
		return NEXT(fork)();
	session_fork_prepare();
	pid = NEXT(_Fork)();
	saved = errno;
	if (pid == 0)
		session_fork_child();
	else
		session_fork_parent();
	errno = saved;
	return pid;
}

/*
 * Identity. A change can put the namespace out of reach, so one that exists is entered before;
 * and permissions are judged by what holds after.
 */

static int changed(int result)
{
	session_creds_changed();
	return result;
}

PUBLIC int setuid(uid_t uid)
{
	session_attach_early();
	return changed(NEXT(setuid)(uid));
}

PUBLIC int seteuid(uid_t uid)
{
	session_attach_early();
	return changed(NEXT(seteuid)(uid));
}

PUBLIC int setreuid(uid_t ruid, uid_t euid)
{
	session_attach_early();
	return changed(NEXT(setreuid)(ruid, euid));
}

PUBLIC int setresuid(uid_t ruid, uid_t euid, uid_t suid)
{
	session_attach_early();
	return changed(NEXT(setresuid)(ruid, euid, suid));
}

PUBLIC int setgid(gid_t gid)
{
	session_attach_early();
	return changed(NEXT(setgid)(gid));
}

PUBLIC int setegid(gid_t gid)
{
	session_attach_early();
	return changed(NEXT(setegid)(gid));
}

PUBLIC int setregid(gid_t rgid, gid_t egid)
{
	session_attach_early();
	return changed(NEXT(setregid)(rgid, egid));
}

PUBLIC int setresgid(gid_t rgid, gid_t egid, gid_t sgid)
{
	session_attach_early();
	return changed(NEXT(setresgid)(rgid, egid, sgid));
}

PUBLIC int setgroups(size_t count, const gid_t *groups)
{
	session_attach_early();
	return changed(NEXT(setgroups)(count, groups));
}

PUBLIC int initgroups(const char *user, gid_t group)
{
	session_attach_early();
	return changed(NEXT(initgroups)(user, group));
}

PUBLIC int setfsuid(uid_t uid)
{
	session_attach_early();
	return changed(NEXT(setfsuid)(uid));
}

PUBLIC int setfsgid(gid_t gid)
{
	session_attach_early();
	return changed(NEXT(setfsgid)(gid));
}

/* No header of the C library declares these two. */
int capset(void *header, const void *data);
int pivot_root(const char *new_root, const char *put_old);

PUBLIC int capset(void *header, const void *data)
{
	session_attach_early();
	return changed(NEXT(capset)(header, data));
}

PUBLIC int pivot_root(const char *new_root, const char *put_old)
{
	session_attach_early();
	return NEXT(pivot_root)(new_root, put_old);
}

PUBLIC int chroot(const char *path)
{
	session_attach_early();
	return NEXT(chroot)(path);
}

PUBLIC int unshare(int flags)
{
	session_attach_early();
	int rc = changed(NEXT(unshare)(flags));

	if (rc == 0 && (flags & (CLONE_SYSVSEM | CLONE_NEWIPC)))
		session_leave_undo();
	return rc;
}

PUBLIC int setns(int fd, int type)
{
	session_attach_early();
	int rc = changed(NEXT(setns)(fd, type));

	if (rc == 0 && (type & CLONE_NEWIPC))
		session_leave_undo();
	return rc;
}

/* The same by number. Those that end or replace the process are made as the functions are. */
long process_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long result;

	switch (nr) {
	case SYS_exit_group:
		end_process((int)a);
	case SYS_mlockall:
		return mlockall((int)a);
	case SYS_execve:
		return execve((const char *)a, (char *const *)b, (char *const *)c);
	case SYS_execveat:
		return execveat((int)a, (const char *)b, (char *const *)c, (char *const *)d,
				(int)e);
	case SYS_wait4:
		return wait4((pid_t)a, (int *)b, (int)c, (struct rusage *)d);
	case SYS_waitid:
		return wait_id_raw((int)a, (id_t)b, (siginfo_t *)c, (int)d, (struct rusage *)e);
	default:
		session_attach_early();
		result = NEXT(syscall)(nr, a, b, c, d, e, f);
		session_creds_changed();
		return result;
	}
}
