// SPDX-License-Identifier: MIT
/*
 * Starting usysvd unseen. Two clones: the middle process makes a session, closes everything and
 * starts usysvd, then ends and is waited for here; usysvd is an orphan from the start. Both share
 * the caller's memory (CLONE_VM | CLONE_VFORK: no copy of the address space, no handlers of
 * pthread_atfork) and run on a stack of their own with raw system calls only, for errno and the
 * thread's data are the caller's. The middle process has exit signal 0, so neither SIGCHLD nor
 * wait(-1) tells of it.
 *
 * A program that is a subreaper would inherit the orphan: it stops being one for the moment.
 */
#include "client/reaper_start.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/ident.h"
#include "base/sys.h"
#include "client/namespace.h"
#include "client/spare.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef USYSVD_PATH
#define USYSVD_PATH USYSV_LIBEXECDIR "/usysvd"
#endif

#define STACK_BYTES     16384
#define KERNEL_SIGSET   8
#define MIN_INTERVAL_NS 2000000000ll

struct search {
	char program[PATH_MAX];
	char line[PATH_MAX + 128];
	char buffer[4096];
};

/* Lives in a mapping of its own: the caller may be a handler on a small stack. */
struct start {
	_Alignas(64) unsigned char middle_stack[STACK_BYTES];
	_Alignas(64) unsigned char daemon_stack[STACK_BYTES];
	char *argv[4];
	char *envp[1];
	char command[16], option[24];
	char directory[PATH_MAX];
	struct search search;
	int error;
};

/* ---- Where usysvd is ----------------------------------------------------------------------- */

static const char *hex(const char *s, uintptr_t *ret)
{
	uintptr_t n = 0;

	for (;; s++) {
		if (*s >= '0' && *s <= '9')
			n = n << 4 | (uintptr_t)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			n = n << 4 | (uintptr_t)(*s - 'a' + 10);
		else
			break;
	}
	*ret = n;
	return s;
}

/* START-END PERMS OFFSET DEVICE INODE   PATH: the path, if the address is inside. */
static char *path_of_line(char *line, uintptr_t address)
{
	uintptr_t from, to;
	const char *s = hex(line, &from);

	if (*s != '-')
		return NULL;
	hex(s + 1, &to);
	return address >= from && address < to ? strchr(line, '/') : NULL;
}

static const char *own_file;

void reaper_start_beside(const char *file)
{
	own_file = file;
}

/* The directory of a file, with its slash, into `program`. */
static int take_directory(struct search *w, const char *file)
{
	if (!file || *file != '/' || strlen(file) >= sizeof(w->program) - 16)
		return -ENOENT;
	size_t n = (size_t)(strrchr(file, '/') + 1 - file);
	memcpy(w->program, file, n);
	w->program[n] = 0;
	return 0;
}

/*
 * The directory of the file that this code was mapped from (library or program): asked of the
 * kernel, since dladdr() takes the loader's locks.
 */
static int own_directory(void *context)
{
	struct search *w = context;
	uintptr_t here = (uintptr_t)&reaper_start;
	size_t length = 0;
	const char *found = NULL;
	long fd = sys_call(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/maps",
			   O_RDONLY | O_CLOEXEC, 0, 0, 0);

	if (fd < 0)
		return (int)fd;
	while (!found) {
		long n = sys_call(SYS_read, fd, (long)w->buffer, sizeof(w->buffer), 0, 0, 0);

		if (n <= 0)
			break;
		for (long i = 0; i < n && !found; i++) {
			if (w->buffer[i] != '\n') {
				if (length < sizeof(w->line) - 1)
					w->line[length++] = w->buffer[i];
				continue;
			}
			w->line[length] = 0;
			length = 0;
			found = path_of_line(w->line, here);
		}
	}
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return take_directory(w, found);
}

static bool executable(const char *path)
{
	return sys_call(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) == 0;
}

static bool find_program(struct search *w)
{
	if (spare_run(own_directory, w, sizeof(*w)) == 0 || take_directory(w, own_file) == 0) {
		memcpy(w->program + strlen(w->program), "usysvd", sizeof("usysvd"));
		if (executable(w->program))
			return true;
	}
	memcpy(w->program, USYSVD_PATH, sizeof(USYSVD_PATH));
	return executable(w->program);
}

/* ---- The two processes --------------------------------------------------------------------- */

static int daemon_process(void *arg)
{
	struct start *w = arg;

	w->error = (int)sys_call(SYS_execve, (long)w->search.program, (long)w->argv, (long)w->envp,
				 0, 0, 0);
	return 127;
}

static int middle_process(void *arg)
{
	struct start *w = arg;
	long fd;

	sys_call(SYS_setsid, 0, 0, 0, 0, 0, 0);
	spare_raise_limits(); /* what the caller may not open, usysvd must */
	if (sys_call(SYS_close_range, 0, ~0u, 0, 0, 0, 0) < 0)
		for (int i = 0; i < 1024; i++) /* before Linux 5.9; usysvd closes the rest */
			sys_call(SYS_close, i, 0, 0, 0, 0, 0);
	fd = sys_call(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDWR, 0, 0, 0);
	if (fd == 0) {
		sys_call(SYS_dup, 0, 0, 0, 0, 0, 0);
		sys_call(SYS_dup, 0, 0, 0, 0, 0, 0);
	}
	sys_call(SYS_chdir, (long)"/", 0, 0, 0, 0, 0);
	if (clone(daemon_process, w->daemon_stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
		  w) < 0)
		w->error = -errno;
	return 0;
}

static void run_middle(struct start *w)
{
	uint64_t all = ~0ull, mask = 0;
	int subreaper = 0;
	long r;

	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, KERNEL_SIGSET, 0, 0);
	sys_call(SYS_prctl, PR_GET_CHILD_SUBREAPER, (long)&subreaper, 0, 0, 0, 0);
	if (subreaper)
		sys_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0, 0);
	int pid = clone(middle_process, w->middle_stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, w);
	if (pid < 0)
		w->error = -errno;
	else
		do
			r = sys_call(SYS_wait4, pid, 0, __WALL, 0, 0, 0);
		while (r == -EINTR);
	if (subreaper)
		sys_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0);
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SIGSET, 0, 0);
}

/* Two threads at once start two daemons at worst, of which one leaves again. */
static bool too_soon(void)
{
	static int64_t last_ns;
	struct timespec now = {0, 0};
	int64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	int64_t last = load_relaxed(&last_ns); /* relaxed: a hint, of this process only */
	if (last && now_ns - last < MIN_INTERVAL_NS)
		return true;
	store_relaxed(&last_ns, now_ns); /* relaxed: as above */
	return false;
}

static bool may_start(void)
{
	return sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0) != 1 && !ident_forks_away();
}

static int start(const struct namespace_place *place)
{
	int saved = errno, r = 0;
	struct start *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED) {
		r = -errno;
		goto out;
	}
	if (find_program(&w->search)) {
		memcpy(w->command, "usysvd", sizeof("usysvd"));
		memcpy(w->option, "--namespace-path", sizeof("--namespace-path"));
		memcpy(w->directory, place->dir, strlen(place->dir) + 1);
		w->argv[0] = w->command;
		w->argv[1] = w->option;
		w->argv[2] = w->directory;
		run_middle(w);
		r = w->error;
	} else {
		r = -ENOENT;
	}
	munmap(w, sizeof(*w));
out:
	errno = saved;
	return r;
}

int reaper_start(const struct namespace_place *place)
{
	return may_start() ? start(place) : -EOPNOTSUPP;
}

int reaper_start_missed(const struct namespace_place *place)
{
	/* Asked first: children, who may, are not to be kept from it by one who may not. */
	if (!may_start())
		return -EOPNOTSUPP;
	return too_soon() ? -EAGAIN : start(place);
}
