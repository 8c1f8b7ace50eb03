// SPDX-License-Identifier: MIT
/*
 * exec and posix_spawn: the new program gets this library and the namespace too, whatever
 * environment it was given (`env -i`), unless USYSV_INHERIT=0 says otherwise. The C library's own
 * functions call each other inside, so each is replaced by itself.
 *
 * These run in vfork children and signal handlers: memory is the caller's stack, calls are raw.
 *
 * A program that the library cannot get into (static, set-user-ID, another word size, another C
 * library) is named once, for its System V calls go to the kernel. To the last two the library is
 * not even offered: a loader prints an error for it, and a musl program dies of a glibc library.
 */
#include "preload/exec.h"

#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/memcheck.h"
#include "base/sys.h"
#include "base/text.h"
#include "client/reaper_start.h"
#include "client/report.h"
#include "client/session.h"
#include "core/layout.h"
#include "preload/procview.h"
#include "preload/signals.h"
#include "preload/stubs.h"
#include "preload/symbols.h"

#define LD_PRELOAD "LD_PRELOAD="

/* How LD_PRELOAD names this library; as the environment had it, for it may hold $LIB. */
static char own_library[PATH_MAX];

/* Variables to pass on, copied: programs overwrite the memory of their first environment. */
static char passed_namespace[128], passed_directory[PATH_MAX + 16];

/* Set by the constructor: LD_PRELOAD is how we came, and nobody said not to pass it on. */
static bool inherit;

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The loader splits LD_PRELOAD at colons and spaces. */
static const char *next_element(const char **at, size_t *ret_length)
{
	const char *start = *at + strspn(*at, ": ");

	*ret_length = strcspn(start, ": ");
	*at = start + *ret_length;
	return *ret_length ? start : NULL;
}

static bool names_us(const char *element, size_t length)
{
	const char *name = base_name(own_library);
	size_t n = strlen(name);

	return length >= n && memcmp(element + length - n, name, n) == 0 &&
	       (length == n || element[length - n - 1] == '/');
}

static bool preloads_us(const char *value)
{
	const char *element;
	size_t n;

	while ((element = next_element(&value, &n)) != NULL)
		if (names_us(element, n))
			return true;
	return false;
}

static const char *variable(char *const environment[], const char *prefix)
{
	for (; environment && *environment; environment++)
		if (starts_with(*environment, prefix))
			return *environment + strlen(prefix);
	return NULL;
}

/* The file that the loader mapped us from, made absolute. */
static void find_own_library(void)
{
	const char *path = symbol_own_path();
	size_t length = 0;

	if (!path)
		return;
	if (*path != '/') {
		long n = sys_call(SYS_getcwd, (long)own_library, sizeof(own_library), 0, 0, 0, 0);

		if (n < 2)
			return;
		length = (size_t)n - 1;
		own_library[length++] = '/';
		while (starts_with(path, "./"))
			path += 2;
	}
	if (length + strlen(path) >= sizeof(own_library)) {
		own_library[0] = '\0';
		return;
	}
	strcpy(own_library + length, path);
}

void exec_start(char *const environment[])
{
	const char *value = variable(environment, LD_PRELOAD), *element;
	size_t n;

	find_own_library();
	reaper_start_beside(own_library);
	if (!own_library[0] || !value)
		return;
	while ((element = next_element(&value, &n)) != NULL) {
		if (!names_us(element, n))
			continue;
		inherit = true;
		if (*element == '/' && memchr(element, '$', n) && n < sizeof(own_library)) {
			memcpy(own_library, element, n);
			own_library[n] = '\0';
		}
	}
	value = variable(environment, "USYSV_INHERIT=");
	if (value && strcmp(value, "0") == 0)
		inherit = false;
	value = variable(environment, "USYSV_NAMESPACE=");
	if (value && strlen(value) < 100)
		stpcpy(stpcpy(passed_namespace, "USYSV_NAMESPACE="), value);
	value = variable(environment, "USYSV_DIR=");
	if (value && strlen(value) < PATH_MAX)
		stpcpy(stpcpy(passed_directory, "USYSV_DIR="), value);
}

/* Out of the environment: what followed `prefix`; null if it was not there. */
const char *exec_take_variable(char **environment, const char *prefix)
{
	char **from = environment, **to = environment;
	const char *value = NULL;

	for (; from && *from; from++) {
		if (starts_with(*from, prefix))
			value = *from + strlen(prefix);
		else
			*to++ = *from;
	}
	if (value)
		*to = NULL;
	return value;
}

/* What kind of program a file is, as far as preloading goes. */
enum reach { REACH_YES, REACH_UNKNOWN, REACH_STATIC, REACH_SECURE, REACH_CLASS, REACH_LIBC };

#if UINTPTR_MAX > UINT32_MAX
#define OWN_CLASS ELFCLASS64
#else
#define OWN_CLASS ELFCLASS32
#endif

static bool gains_privilege(const struct stat *st)
{
	uid_t uid = (uid_t)sys_call(SYS_getuid, 0, 0, 0, 0, 0, 0);
	gid_t gid = (gid_t)sys_call(SYS_getgid, 0, 0, 0, 0, 0, 0);

	if ((st->st_mode & S_ISUID) && st->st_uid != uid)
		return true;
	return (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != gid;
}

static enum reach inspect_elf(int fd, const unsigned char *head, size_t n)
{
	const ElfW(Ehdr) *e = (const void *)head;
	const char *loader = symbol_loader_path();
	ElfW(Phdr) ph;
	char name[256];

	if (head[EI_CLASS] != OWN_CLASS)
		return REACH_CLASS;
	if (n < sizeof(*e))
		return REACH_UNKNOWN;
	for (unsigned i = 0; i < e->e_phnum && i < 64; i++) {
		long got = sys_call(SYS_pread64, fd, (long)&ph, sizeof(ph),
				    (long)(e->e_phoff + i * sizeof(ph)), 0, 0);
		size_t want;

		if (got != (long)sizeof(ph))
			return REACH_UNKNOWN;
		if (ph.p_type != PT_INTERP)
			continue;
		want = ph.p_filesz < sizeof(name) ? ph.p_filesz : sizeof(name);
		got = sys_call(SYS_pread64, fd, (long)name, (long)want, (long)ph.p_offset, 0, 0);
		if (got != (long)want || !want)
			return REACH_UNKNOWN;
		name[want - 1] = '\0';
		if (!loader || strcmp(base_name(name), base_name(loader)) == 0)
			return REACH_YES;
		return REACH_LIBC;
	}
	return REACH_STATIC;
}

/* depth: interpreters of interpreters, which the kernel follows some levels deep as well. */
static enum reach inspect(int dirfd, const char *path, int flags, int depth)
{
	char head[256] __attribute__((aligned(8)));
	struct stat st;
	enum reach reach = REACH_UNKNOWN;
	long fd = sys_call(SYS_openat, dirfd, (long)path,
			   O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
				   (flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0),
			   0, 0, 0);
	long n;

	if (fd < 0)
		return REACH_UNKNOWN;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || !S_ISREG(st.st_mode))
		goto out;
	n = sys_call(SYS_pread64, fd, (long)head, sizeof(head) - 1, 0, 0, 0);
	if (n < 4)
		goto out;
	head[n] = '\0';
	if (memcmp(head, ELFMAG, SELFMAG) == 0) {
		reach = inspect_elf((int)fd, (const unsigned char *)head, (size_t)n);
		/* The loader itself, run as a command, has no interpreter and is none. */
		if (reach == REACH_STATIC && starts_with(base_name(path), "ld"))
			reach = REACH_UNKNOWN;
		if (gains_privilege(&st))
			reach = REACH_SECURE;
	} else if (head[0] == '#' && head[1] == '!' && depth < 4) {
		char *interpreter = head + 2 + strspn(head + 2, " \t");

		interpreter[strcspn(interpreter, " \t\n")] = '\0';
		if (*interpreter)
			reach = inspect(AT_FDCWD, interpreter, 0, depth + 1);
	}
out:
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return reach;
}

static size_t longest_element(const char *search)
{
	size_t longest = 0;

	for (;;) {
		size_t n = strcspn(search, ":");

		if (n > longest && n < PATH_MAX)
			longest = n;
		search += n;
		if (!*search++)
			return longest;
	}
}

/* Looks a command up as execvp(3) does, as far as finding the file goes. */
static enum reach inspect_command(const char *file, const char *search)
{
	size_t file_length = strlen(file), room;
	char *path;

	if (strchr(file, '/'))
		return inspect(AT_FDCWD, file, 0, 0);
	if (!*file || file_length > NAME_MAX)
		return REACH_UNKNOWN;
	search = search ? search : "/bin:/usr/bin";
	room = longest_element(search) + file_length + 2;
	path = alloca(room); /* no more: it may be the stack of a handler */
	for (;;) {
		size_t n = strcspn(search, ":");

		if (n + file_length + 2 <= room) {
			memcpy(path, search, n);
			if (n)
				path[n++] = '/';
			memcpy(path + n, file, file_length + 1);
			if (sys_call(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) == 0)
				return inspect(AT_FDCWD, path, 0, 0);
		}
		search += strcspn(search, ":");
		if (!*search++)
			return REACH_UNKNOWN;
	}
}

/* Says what cannot be reached. Is the library better left out of its environment? */
static bool judge(char *const environment[], enum reach reach, const char *path)
{
	switch (reach) {
	case REACH_STATIC:
		/* Valgrind's tools are static, and load program and preloads themselves. */
		if (variable(environment, "VALGRIND_LAUNCHER="))
			return false;
		report(REPORT_EXEC,
		       "%s is linked statically: its System V IPC calls go to the kernel; link it "
		       "dynamically to have them in the namespace",
		       path);
		return false;
	case REACH_SECURE:
		report(REPORT_EXEC,
		       "%s is set-user-ID or set-group-ID: its System V IPC calls go to the "
		       "kernel; run it as a user for whom it changes nothing",
		       path);
		return false;
	case REACH_CLASS:
		if (strstr(own_library, "$LIB"))
			return false;
		report(REPORT_EXEC,
		       "%s is of another word size: its System V IPC calls go to the kernel; "
		       "install the library for it, with $LIB in the path in LD_PRELOAD",
		       path);
		return true;
	case REACH_LIBC:
		report(REPORT_EXEC,
		       "%s uses another C library: its System V IPC calls go to the kernel; start "
		       "it with a usysv built for that library",
		       path);
		return true;
	case REACH_YES:
	case REACH_UNKNOWN:
		break;
	}
	return false;
}

/* ---- Is it memory? ----------------------------------------------------------------------- */

/* The page of the last address that was found readable. */
struct readable {
	uintptr_t page;
};

/* Asks the kernel, which reads 8 bytes there before it finds that this call makes no sense. */
static bool is_readable(struct readable *known, const void *address)
{
	uintptr_t page = (uintptr_t)address & ~(uintptr_t)(PAGE_BYTES - 1);

	if (page == 0) /* to that call it would mean something else */
		return false;
	/* Memcheck would call this a use of what is there; where nothing is, it says so itself. */
	if (page == known->page || memcheck_listens())
		return true;
	if (sys_call(SYS_rt_sigprocmask, -1, (long)page, 0, KERNEL_SIGSET_BYTES, 0, 0) == -EFAULT)
		return false;
	known->page = page;
	return true;
}

static bool is_string(struct readable *known, const char *s)
{
	for (;;) {
		size_t n = PAGE_BYTES - (uintptr_t)s % PAGE_BYTES;

		if (!is_readable(known, s))
			return false;
		if (memchr(s, 0, n))
			return true;
		s += n;
	}
}

/* exec of what is no environment is EFAULT, and the kernel's to find. */
static bool is_environment(char *const environment[])
{
	struct readable array = {0}, text = {0};

	for (; environment; environment++) {
		if (!is_readable(&array, environment))
			return false;
		if (!*environment)
			break;
		if (!is_string(&text, *environment))
			return false;
	}
	return true;
}

bool exec_is_on(char *const environment[])
{
	const char *value;

	if (!inherit || !is_environment(environment))
		return false;
	value = variable(environment, "USYSV_INHERIT=");
	return !value || strcmp(value, "0") != 0;
}

bool exec_lacks(char *const environment[])
{
	const char *preload = variable(environment, LD_PRELOAD);

	return !preload || !preloads_us(preload);
}

size_t exec_scratch_bytes(char *const environment[])
{
	const char *value;
	size_t n = 0;

	while (environment && environment[n])
		n++;
	value = variable(environment, LD_PRELOAD);
	/* Six more variables and the end; then the text of three. */
	return (n + 8) * sizeof(char *) + PROCVIEW_HINT_BYTES + EXEC_MARK_BYTES +
	       sizeof(LD_PRELOAD) + (value ? strlen(value) : 0) + 1 + strlen(own_library) + 1;
}

/* LD_PRELOAD with us added at the end, or taken out; null if nothing remains. */
static char *preload_text(char *text, const char *value, bool strip)
{
	char *end = stpcpy(text, LD_PRELOAD), *first = end;
	const char *element;
	size_t n;

	if (!strip)
		end = stpcpy(end, value);
	while (strip && (element = next_element(&value, &n)) != NULL) {
		if (names_us(element, n))
			continue;
		if (end != first)
			*end++ = ':';
		memcpy(end, element, n);
		end += n;
		*end = '\0';
	}
	if (strip)
		return end == first ? NULL : text;
	if (end != first)
		*end++ = ':';
	stpcpy(end, own_library);
	return text;
}

/* "USYSV_EXEC=PID": the next image of this process is to settle what this one has attached. */
static void mark_image(char text[EXEC_MARK_BYTES])
{
	long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);

	text_put_number(stpcpy(text, EXEC_MARK), (uint64_t)pid);
}

char *const *exec_environment(char *const environment[], bool strip, void *scratch)
{
	const char *preload = variable(environment, LD_PRELOAD);
	const char *region = session_region_env();
	const char *name = variable(environment, "USYSV_NAMESPACE=");
	bool change = strip ? preload && preloads_us(preload) : !preload || !preloads_us(preload);
	char **out = scratch, *text, *views, *mark;
	size_t n = 0, k = 0;

	/* Its own choice of a namespace is not ours to name a region for. */
	if (name && (!passed_namespace[0] ||
		     strcmp(name, passed_namespace + strlen("USYSV_NAMESPACE=")) != 0))
		region = NULL;
	while (environment && environment[n])
		n++;
	views = (char *)(out + n + 8);
	mark = views + PROCVIEW_HINT_BYTES;
	text = mark + EXEC_MARK_BYTES;
	for (size_t i = 0; i < n; i++) {
		if (!change || !preload || environment[i] + strlen(LD_PRELOAD) != preload)
			out[k++] = environment[i];
		else if (preload_text(text, preload, strip))
			out[k++] = text;
	}
	if (change && !preload)
		out[k++] = preload_text(text, "", false);
	if (passed_namespace[0] && !name)
		out[k++] = passed_namespace;
	if (passed_directory[0] && !variable(environment, "USYSV_DIR="))
		out[k++] = passed_directory;
	if (region && !variable(environment, "USYSV_REGION="))
		out[k++] = (char *)(uintptr_t)region;
	if (load_relaxed(&procview_writable)) {
		procview_hint(views);
		if (*views)
			out[k++] = views;
	}
	if (session_has_attaches()) {
		mark_image(mark);
		out[k++] = mark;
	}
	out[k] = NULL;
	return out;
}

static void leave_image(void)
{
	if (load_relaxed(&procview_writable))
		(void)procview_settle_all();
}

/* An environment for this program in the caller's frame; the one given when nothing is to do. */
#define NEW_ENVIRONMENT(environment, reach, path)                                                  \
	(leave_image(), exec_is_on(environment)                                                    \
				? exec_environment(environment, judge(environment, reach, path),   \
						   alloca(exec_scratch_bytes(environment)))        \
				: (environment))

PUBLIC int execve(const char *path, char *const argv[], char *const envp[])
{
	char *const *env = NEW_ENVIRONMENT(envp, inspect(AT_FDCWD, path, 0, 0), path);

	return NEXT(execve)(path, argv, env);
}

PUBLIC int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

PUBLIC int execvpe(const char *file, char *const argv[], char *const envp[])
{
	char *const *env =
		NEW_ENVIRONMENT(envp, inspect_command(file, variable(environ, "PATH=")), file);

	return NEXT(execvpe)(file, argv, env);
}

PUBLIC int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

PUBLIC int fexecve(int fd, char *const argv[], char *const envp[])
{
	char path[TEXT_DESCRIPTOR_BYTES];
	char *const *env;

	text_put_descriptor(path, fd);
	env = NEW_ENVIRONMENT(envp, inspect(AT_FDCWD, path, 0, 0), path);
	return NEXT(fexecve)(fd, argv, env);
}

PUBLIC int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	char by_fd[TEXT_DESCRIPTOR_BYTES];
	char *const *env;

	if ((flags & AT_EMPTY_PATH) && !*path) {
		text_put_descriptor(by_fd, dirfd);
		env = NEW_ENVIRONMENT(envp, inspect(AT_FDCWD, by_fd, 0, 0), by_fd);
	} else {
		env = NEW_ENVIRONMENT(envp, inspect(dirfd, path, flags, 0), path);
	}
	if (!next_function(NEXT_execveat))
		return (int)stub_error(-sys_call(SYS_execveat, dirfd, (long)path, (long)argv,
						 (long)env, flags, 0));
	return NEXT(execveat)(dirfd, path, argv, env, flags);
}

PUBLIC int posix_spawn(pid_t *restrict pid, const char *restrict path,
		       const posix_spawn_file_actions_t *restrict actions,
		       const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
		       char *const envp[restrict])
{
	char *const *env = NEW_ENVIRONMENT(envp, inspect(AT_FDCWD, path, 0, 0), path);

	return NEXT(posix_spawn)(pid, path, actions, attributes, argv, env);
}

PUBLIC int posix_spawnp(pid_t *restrict pid, const char *restrict file,
			const posix_spawn_file_actions_t *restrict actions,
			const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
			char *const envp[restrict])
{
	char *const *env =
		NEW_ENVIRONMENT(envp, inspect_command(file, variable(environ, "PATH=")), file);

	return NEXT(posix_spawnp)(pid, file, actions, attributes, argv, env);
}

/* The arguments of execl() and its like, up to the null pointer. */
static size_t count_arguments(va_list ap)
{
	size_t n = 1;

	while (va_arg(ap, const char *))
		n++;
	return n;
}

static void take_arguments(char **argv, const char *first, size_t n, va_list ap)
{
	argv[0] = (char *)(uintptr_t)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(ap, char *);
}

PUBLIC int execl(const char *path, const char *first, ...)
{
	va_list ap;
	char **argv;
	size_t n;

	va_start(ap, first);
	n = count_arguments(ap);
	va_end(ap);
	argv = alloca((n + 1) * sizeof(*argv));
	va_start(ap, first);
	take_arguments(argv, first, n, ap);
	va_end(ap);
	return execve(path, argv, environ);
}

PUBLIC int execlp(const char *file, const char *first, ...)
{
	va_list ap;
	char **argv;
	size_t n;

	va_start(ap, first);
	n = count_arguments(ap);
	va_end(ap);
	argv = alloca((n + 1) * sizeof(*argv));
	va_start(ap, first);
	take_arguments(argv, first, n, ap);
	va_end(ap);
	return execvpe(file, argv, environ);
}

PUBLIC int execle(const char *path, const char *first, ...)
{
	va_list ap;
	char **argv, **envp;
	size_t n;

	va_start(ap, first);
	n = count_arguments(ap);
	va_end(ap);
	argv = alloca((n + 1) * sizeof(*argv));
	va_start(ap, first);
	take_arguments(argv, first, n, ap);
	envp = va_arg(ap, char **);
	va_end(ap);
	return execve(path, argv, envp);
}
