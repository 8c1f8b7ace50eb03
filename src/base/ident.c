// SPDX-License-Identifier: MIT
/* Process identity from /proc; see the header. */
#include "base/ident.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/text.h"

/* A start: ticks, and a number of 1 to NUMBERS. */
#define NUMBERS        65535
#define START_OF(t, n) (TICKS_OF(t) | (uint64_t)(n) << 48)
#define TICKS_OF(s)    ((uint64_t)(s)&0xffffffffffffull)
#define NUMBER_OF(s)   ((int)((uint64_t)(s) >> 48))

#define PF_EXITING 0x00000004ul

struct stat_fields {
	char state;
	unsigned long flags;
	unsigned long long num_threads;
	unsigned long long start;
};

static unsigned long long number(const char *s)
{
	unsigned long long n = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (unsigned long long)(*s - '0');
	return n;
}

/* Fields of /proc/.../stat by the numbers of proc(5); the name may hold spaces and brackets. */
static int parse_stat(char *text, struct stat_fields *ret)
{
	char *p = strrchr(text, ')');
	int field = 3;

	if (!p || p[1] != ' ' || !p[2])
		return -EPROTO;
	p += 2;
	ret->state = *p;
	while ((p = strchr(p, ' ')) != NULL) {
		p++;
		field++;
		if (field == 9)
			ret->flags = (unsigned long)number(p);
		else if (field == 20)
			ret->num_threads = number(p);
		else if (field == 22) {
			ret->start = number(p);
			return 0;
		}
	}
	return -EPROTO;
}

/* Whose pids has /proc? Those that the calling process knows: 0; others: -EXDEV; none: -ENOENT. */
static int judge_proc(void)
{
	char self[24];
	long n = sys_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self", (long)self,
			  sizeof(self) - 1, 0, 0);

	if (n < 0) /* mounted all the same: this process has no pid there */
		return sys_call(SYS_faccessat, AT_FDCWD, (long)"/proc/uptime", F_OK, 0, 0, 0) < 0
			       ? -ENOENT
			       : -EXDEV;
	self[n] = 0;
	return number(self) == (unsigned long long)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0) ? 0
											  : -EXDEV;
}

/* The view of who has this folder in /proc; 0: unknown. */
static uint32_t view_of(const char *folder)
{
	struct stat pids, times;
	char path[64];
	char *end = stpcpy(stpcpy(path, folder), "/ns/");
	uint32_t view;

	stpcpy(end, "pid");
	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&pids, 0, 0, 0) < 0)
		return 0;
	/* What a start time reads depends on who reads it: Linux 5.6. */
	stpcpy(end, "time");
	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)&times, 0, 0, 0) < 0)
		times.st_ino = 0;
	view = (uint32_t)pids.st_ino + (uint32_t)times.st_ino * 0x9e3779b1u;
	return view ? view : 1;
}

/* By the thread's own entries: where the first thread has ended /proc/self shows little. */
int ident_view(uint32_t *ret)
{
	int rc = judge_proc();

	*ret = rc == -ENOENT ? 0 : view_of("/proc/thread-self");
	return rc == -ENOENT ? rc : 0;
}

bool ident_proc_is_ours(void)
{
	return judge_proc() == 0;
}

bool ident_forks_away(void)
{
	static const char children[] = "/proc/thread-self/ns/pid_for_children";
	struct stat own, of_children;

	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/thread-self/ns/pid", (long)&own, 0, 0,
		     0) < 0)
		return false;
	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)children, (long)&of_children, 0, 0, 0) == 0)
		return of_children.st_ino != own.st_ino;
	/* There, but leads nowhere: a namespace without a process. Not there before Linux 4.12. */
	return sys_call(SYS_newfstatat, AT_FDCWD, (long)children, (long)&of_children,
			AT_SYMLINK_NOFOLLOW, 0, 0) == 0;
}

static int read_stat_of(const char *folder, struct stat_fields *ret)
{
	char path[64], text[1024];
	long n;

	stpcpy(stpcpy(path, folder), "/stat");
	n = text_read(path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	return parse_stat(text, ret);
}

static int read_stat(pid_t pid, struct stat_fields *ret)
{
	char folder[32];
	int rc = judge_proc();

	if (rc < 0)
		return rc;
	text_put_number(stpcpy(folder, "/proc/"), (uint64_t)pid);
	return read_stat_of(folder, ret);
}

static int want_of_descriptors(long rc)
{
	return rc == -EMFILE || rc == -ENFILE ? (int)rc : 0;
}

/* 0: unknown, 1 and more; or -EMFILE, -ENFILE. Before Linux 6.9 all have the same. */
static int number_of(pid_t pid)
{
	struct stat st;
	long fd = sys_call(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);
	long rc;

	if (fd < 0)
		return want_of_descriptors(fd);
	rc = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return rc < 0 ? 0 : (int)(st.st_ino % NUMBERS) + 1;
}

bool ident_same_start(uint64_t a, uint64_t b)
{
	return TICKS_OF(a) == TICKS_OF(b) &&
	       (NUMBER_OF(a) == NUMBER_OF(b) || !NUMBER_OF(a) || !NUMBER_OF(b));
}

int ident_try_start(pid_t pid, uint64_t *ret)
{
	struct stat_fields f;
	int n, rc = read_stat(pid, &f);

	if (rc == -EXDEV && pid == (pid_t)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0))
		rc = read_stat_of("/proc/self", &f);
	*ret = 0;
	if (rc < 0)
		return want_of_descriptors(rc);
	n = number_of(pid);
	if (n < 0)
		return n;
	*ret = START_OF(f.start, n);
	return 0;
}

uint64_t ident_start(pid_t pid)
{
	uint64_t start;

	(void)ident_try_start(pid, &start); /* 0: unknown */
	return start;
}

unsigned ident_threads(pid_t pid)
{
	struct stat_fields f;

	return read_stat(pid, &f) == 0 ? (unsigned)f.num_threads : 0;
}

static bool runs(const struct stat_fields *f)
{
	return !(f->flags & PF_EXITING) && f->state != 'Z' && f->state != 'X';
}

int ident_try_running(pid_t pid, pid_t *ret_tid)
{
	struct stat_fields first;
	char path[64], text[1024];
	char entries[2048] __attribute__((aligned(8)));
	char *base = stpcpy(text_put_number(stpcpy(path, "/proc/"), (uint64_t)pid), "/task");
	long fd = sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
			   0, 0);
	int lacking = want_of_descriptors(fd);
	long n;

	*ret_tid = 0;
	while (fd >= 0 && !*ret_tid &&
	       (n = sys_call(SYS_getdents64, fd, (long)entries, sizeof(entries), 0, 0, 0)) > 0) {
		for (long at = 0; at < n && !*ret_tid;) {
			struct sys_dirent *e = (struct sys_dirent *)(void *)(entries + at);
			struct stat_fields f = {0};
			long n_read;

			at += e->bytes;
			if (e->name[0] < '0' || e->name[0] > '9')
				continue;
			stpcpy(text_put_number(stpcpy(base, "/"), number(e->name)), "/stat");
			n_read = text_read(path, text, sizeof(text));
			if (want_of_descriptors(n_read))
				lacking = (int)n_read;
			if (n_read < 0 || parse_stat(text, &f) < 0)
				continue;
			if (runs(&f))
				*ret_tid = (pid_t)number(e->name);
		}
	}
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	if (*ret_tid)
		return 0;
	/* A thread that executes a program takes the place of the first one, perhaps when that had
	 * been looked at and it not yet; and for a moment there is no folder. */
	n = read_stat(pid, &first);
	if (want_of_descriptors(n))
		lacking = (int)n;
	if (n == 0 && runs(&first))
		*ret_tid = pid;
	return *ret_tid ? 0 : lacking;
}

/* The state of a process by its first thread's, and by those of the others when that is over. */
static int try_state(pid_t pid, const struct stat_fields *first, enum ident_state *ret)
{
	pid_t tid = pid;
	int rc = runs(first) ? 0 : ident_try_running(pid, &tid);

	*ret = tid ? IDENT_ALIVE : rc == 0 ? IDENT_EXITING : IDENT_UNKNOWN;
	return rc;
}

/* The last of the numbers that a process has in its pid namespace and those around it. 0: it has
 * none; or -EMFILE, -ENFILE. */
static int inner_pid(const char *folder)
{
	static const char name[] = "\nNSpid:";
	unsigned matched = 0, n = 0;
	struct text_file f;
	char path[64];
	int c, rc;

	stpcpy(stpcpy(path, folder), "/status");
	rc = text_open(&f, path);
	if (rc < 0)
		return want_of_descriptors(rc);
	while (name[matched] && (c = text_next(&f)) >= 0)
		matched = c == name[matched] ? matched + 1 : c == '\n';
	while (!name[matched] && (c = text_next(&f)) >= 0 && c != '\n')
		n = c == '\t' ? 0 : n * 10 + (unsigned)(c - '0');
	text_close(&f);
	return (int)n;
}

/*
 * Is it the process of this folder? 1, 0, -EMFILE or -ENFILE. The view of one that executes a
 * program of another user's (setuid) is not for everybody to see: then its start must do.
 */
static int is_known_as(const char *folder, uint32_t view, pid_t pid, uint64_t start)
{
	uint32_t seen = view_of(folder);
	struct stat_fields f;
	int rc;

	if (seen && seen != view)
		return 0;
	if (!seen) {
		rc = read_stat_of(folder, &f);
		if (rc < 0 || !TICKS_OF(start) || f.start != TICKS_OF(start))
			return want_of_descriptors(rc);
	}
	rc = inner_pid(folder);
	return rc < 0 ? rc : rc == pid;
}

/* Its number in /proc; 0: it is not there. Or -errno. */
static int search(uint32_t view, pid_t pid, uint64_t start)
{
	char entries[2048] __attribute__((aligned(8)));
	char folder[32];
	long n, fd = sys_call(SYS_openat, AT_FDCWD, (long)"/proc",
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
	int found = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : (int)fd;
	while (!found &&
	       (n = sys_call(SYS_getdents64, fd, (long)entries, sizeof(entries), 0, 0, 0)) > 0) {
		for (long at = 0; at < n && !found;) {
			struct sys_dirent *e = (struct sys_dirent *)(void *)(entries + at);

			at += e->bytes;
			if (e->name[0] < '0' || e->name[0] > '9')
				continue;
			text_put_number(stpcpy(folder, "/proc/"), number(e->name));
			found = is_known_as(folder, view, pid, start);
			if (found > 0)
				found = (int)number(e->name);
		}
	}
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return found;
}

int ident_try_elsewhere(uint32_t view, pid_t pid, uint64_t start, enum ident_state *ret,
			pid_t *ret_shown)
{
	struct stat_fields f;
	char folder[32];
	int rc = search(view, pid, start);

	*ret_shown = rc > 0 ? rc : 0;
	if (rc > 0) {
		text_put_number(stpcpy(folder, "/proc/"), (uint64_t)rc);
		rc = read_stat_of(folder, &f);
		rc = rc < 0 ? want_of_descriptors(rc) : 1;
	}
	*ret = rc < 0 ? IDENT_UNKNOWN : IDENT_GONE;
	if (rc <= 0)
		return rc;
	return try_state(*ret_shown, &f, ret);
}

/* For who knows no more of a process than that there is one of this pid: has it ended? */
static int try_ended(pid_t pid, enum ident_state *ret)
{
	struct pollfd p = {.events = POLLIN};
	struct timespec at_once = {0, 0};
	long fd = sys_call(SYS_pidfd_open, pid, 0, 0, 0, 0, 0);

	*ret = IDENT_UNKNOWN;
	if (fd < 0)
		return want_of_descriptors(fd);
	p.fd = (int)fd;
	if (sys_call(SYS_ppoll, (long)&p, 1, (long)&at_once, 0, 0, 0) == 1)
		*ret = IDENT_EXITING;
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return 0;
}

int ident_try_process(pid_t pid, uint64_t start, enum ident_state *ret)
{
	struct stat_fields f = {0};
	int rc = read_stat(pid, &f);

	if (rc < 0) {
		/* Present but not shown: hidepid, or the /proc of another pid namespace. */
		*ret = IDENT_GONE;
		if (sys_call(SYS_kill, pid, 0, 0, 0, 0, 0) == -ESRCH)
			return 0;
		*ret = IDENT_UNKNOWN;
		return want_of_descriptors(rc) ? rc : try_ended(pid, ret);
	}
	*ret = IDENT_GONE;
	if (start && TICKS_OF(f.start) != TICKS_OF(start))
		return 0;
	if (NUMBER_OF(start)) {
		rc = number_of(pid);
		if (rc > 0 && rc != NUMBER_OF(start))
			return 0;
		*ret = IDENT_UNKNOWN;
		if (rc < 0)
			return rc;
	}
	return try_state(pid, &f, ret);
}

enum ident_state ident_process(pid_t pid, uint64_t start)
{
	enum ident_state state;

	(void)ident_try_process(pid, start, &state); /* then it is unknown */
	return state;
}

bool ident_thread_exists(pid_t tgid, pid_t tid)
{
	return sys_call(SYS_tgkill, tgid, tid, 0, 0, 0, 0) != -ESRCH;
}
