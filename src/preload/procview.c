// SPDX-License-Identifier: MIT
/*
 * Views of /proc as descriptors.
 *
 * Who opens one gets a memory file with the text of that moment, at the number that the kernel's
 * file would have had. What is written to it must change the namespace at once, and bad values must
 * be refused. The C library's streams write by calls of its own that nobody can stand in front of,
 * and shells open, dup and exec before somebody writes. So the file itself remembers: one that was
 * opened for writing only is empty until somebody writes, and a settled one has a modification time
 * that no other file has (procview.h). The hooks (write, fflush, fclose, close, exec, exit:
 * procview_calls.c) ask whether a descriptor's file is a view's, by its inode, and has been written
 * to; then its contents are the write. Descriptors need not be followed that way, neither over dup
 * nor fork. A new image is told by its environment.
 *
 * The same time says which view it is: fstat() and its like then answer as stat() of the view's
 * path does, for programs that compare the two, or look for the size of 0 of such files.
 *
 * Processes that never open a view for writing pay for one look at procview_writable.
 *
 * As with the kernel, only what is written at the beginning of the file counts: a write behind that
 * leaves a hole where the first, taken away, has been.
 */
#include "preload/procview.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "base/text.h"
#include "preload/symbols.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif

#define FILES       16 /* that are open at a time, of one process */
#define DESCRIPTORS 64 /* that are looked at when all are */

uint32_t procview_writable;

/* Files that were opened for writing, the youngest over the oldest. */
static struct file {
	uint64_t inode; /* 0: none */
	int view;
} files[FILES];
static uint32_t file_count;
static dev_t files_dev; /* of all memory files */

/* ---- Paths -------------------------------------------------------------------------------- */

static const char *last_component(const char *path)
{
	const char *last = path;

	while (*path)
		if (*path++ == '/')
			last = path;
	return last;
}

static bool same_path(const char *path, const char *view)
{
	for (;;) {
		while (path[0] == '/' && (path[1] == '/' || (path[1] == '.' && path[2] == '/')))
			path += path[1] == '/' ? 1 : 2;
		if (*path != *view)
			return false;
		if (!*path)
			return true;
		path++;
		view++;
	}
}

static bool stat_path(int dirfd, const char *path, struct stat *ret)
{
	return sys_call(SYS_newfstatat, dirfd, (long)path, (long)ret, 0, 0, 0) == 0;
}

/*
 * Nearly every path ends here by its last component alone, without a system call. Another spelling
 * of a view's path (with "..", by a directory's descriptor, by links) leads to the same file of the
 * kernel's, if it has it.
 */
int procview_find(int dirfd, const char *path)
{
	const char *name = last_component(path);
	int named[2], count = 0; /* only "sem" is two */
	struct stat st, of_view;

	if (*name != 'm' && *name != 's')
		return VIEW_NONE;
	for (int v = 0; v < view_count && count < 2; v++)
		if (symbol_is(name, last_component(view_path(v))))
			named[count++] = v;
	for (int i = 0; i < count; i++)
		if (same_path(path, view_path(named[i])))
			return named[i];
	if (count == 0 || !stat_path(dirfd, path, &st))
		return VIEW_NONE;
	for (int i = 0; i < count; i++)
		if (stat_path(AT_FDCWD, view_path(named[i]), &of_view) &&
		    of_view.st_dev == st.st_dev && of_view.st_ino == st.st_ino)
			return named[i];
	return VIEW_NONE;
}

/* ---- Files -------------------------------------------------------------------------------- */

static void remember(uint64_t inode, int view)
{
	struct file *f = &files[__atomic_fetch_add(&file_count, 1, __ATOMIC_RELAXED) % FILES];

	f->view = view;
	store_release(&f->inode, inode);
	store_release(&procview_writable, 1);
}

int procview_written(dev_t dev, ino_t inode)
{
	if (dev != files_dev)
		return VIEW_NONE;
	for (unsigned i = 0; i < FILES; i++)
		if (load_acquire(&files[i].inode) == inode)
			return files[i].view;
	return VIEW_NONE;
}

/* The view whose file, opened for writing, this is; VIEW_NONE. */
static int view_of(const struct stat *st)
{
	return procview_written(st->st_dev, st->st_ino);
}

static bool get_stat(int fd, struct stat *ret)
{
	return sys_call(SYS_fstat, fd, (long)ret, 0, 0, 0, 0) == 0;
}

bool procview_is(int fd)
{
	struct stat st;

	return fd >= 0 && get_stat(fd, &st) && view_of(&st) != VIEW_NONE;
}

struct position {
	long fd;
	long at;
};

/* To write beyond the limit is a signal that kills. */
static bool is_within_limit(uint64_t end)
{
	struct rlimit limit;

	return sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) < 0 ||
	       end <= limit.rlim_cur;
}

static int put_text(void *context, const char *text, size_t bytes)
{
	struct position *p = context;

	if (!is_within_limit((uint64_t)p->at + bytes))
		return -EFBIG;

	while (bytes > 0) {
		long n = sys_call(SYS_pwrite64, p->fd, (long)text, (long)bytes, p->at, 0, 0);

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		p->at += n;
		text += n;
		bytes -= (size_t)n;
	}
	return 0;
}

/* Nothing is left to take. */
static void mark_settled(long fd, int view)
{
	struct timespec times[2] = {{0, UTIME_OMIT}, {0, VIEW_NS + view}};

	sys_call(SYS_utimensat, fd, 0, (long)times, 0, 0, 0);
}

static bool is_settled(const struct stat *st)
{
	return st->st_size == 0 ||
	       procview_settled(st->st_nlink, st->st_mtim.tv_sec, st->st_mtim.tv_nsec) != VIEW_NONE;
}

static long memory_file(int view)
{
	const char *name = last_component(view_path(view));
	long fd = sys_call(SYS_memfd_create, (long)name, MFD_CLOEXEC | MFD_NOEXEC_SEAL, 0, 0, 0, 0);

	if (fd == -EINVAL)
		fd = sys_call(SYS_memfd_create, (long)name, MFD_CLOEXEC, 0, 0, 0, 0);
	return fd;
}

/* The file of fd anew, with a position and an access mode of its own. */
static long reopen(long fd, int flags)
{
	char path[TEXT_DESCRIPTOR_BYTES];

	text_put_descriptor(path, (int)fd);
	return sys_call(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

/* Puts `fd` in the place of `to` and closes it; flags: O_CLOEXEC or not. */
static long move(long fd, long to, int flags)
{
	long rc = sys_call(SYS_dup3, fd, to, flags & O_CLOEXEC, 0, 0, 0);

	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return rc;
}

static long refusal(int view, int flags)
{
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	return (flags & O_ACCMODE) == O_RDONLY ? 0 : view_access(view, W_OK);
}

/* The file is made; its descriptor is `memory`. Returns one of the right kind. */
static long finish(int view, long memory, int flags)
{
	struct position start = {.fd = memory};
	int access = flags & O_ACCMODE;
	struct stat st;
	long fd;

	if (access != O_WRONLY) {
		long rc = view_text(view, put_text, &start);

		if (rc < 0)
			return rc;
	}
	if (access != O_RDONLY) {
		if (!get_stat((int)memory, &st))
			return -EIO;
		files_dev = st.st_dev;
		remember(st.st_ino, view);
	}
	mark_settled(memory, view);
	fd = reopen(memory, access | O_CLOEXEC | (flags & O_NONBLOCK));
	/* Without /proc: what there is. */
	if (fd < 0)
		fd = sys_call(SYS_fcntl, memory, F_DUPFD_CLOEXEC, 0, 0, 0, 0);
	if (fd >= 0)
		sys_call(SYS_fchmod, memory, access == O_RDONLY ? 0444 : 0644, 0, 0, 0, 0);
	return fd;
}

long procview_open(int view, int flags, long real)
{
	long rc = refusal(view, flags), memory = -1, fd;

	/* What a stream has written of itself, without a buffer, say. */
	if (load_relaxed(&procview_writable)) /* private */
		(void)procview_settle_all();
	if (rc == 0) {
		memory = memory_file(view);
		rc = memory < 0 ? memory : 0;
	}
	if (rc == 0) {
		fd = finish(view, memory, flags);
		rc = fd < 0 ? fd : move(fd, real >= 0 ? real : memory, flags);
	}
	if (memory >= 0 && rc != memory)
		sys_call(SYS_close, memory, 0, 0, 0, 0, 0);
	if (real >= 0 && rc != real)
		sys_call(SYS_close, real, 0, 0, 0, 0, 0);
	return rc;
}

/* ---- Writes ------------------------------------------------------------------------------- */

static long read_back(int fd, char *text, long bytes)
{
	long n = sys_call(SYS_pread64, fd, (long)text, bytes, 0, 0, 0), again;

	if (n != -EBADF)
		return n;
	again = reopen(fd, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		return again;
	n = sys_call(SYS_pread64, again, (long)text, bytes, 0, 0, 0);
	sys_call(SYS_close, again, 0, 0, 0, 0, 0);
	return n;
}

static long take(int view, int fd, const struct stat *st, long begin)
{
	struct position start = {.fd = fd};
	bool is_write_only = (sys_call(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_ACCMODE) == O_WRONLY;
	long at = sys_call(SYS_lseek, fd, 0, SEEK_CUR, 0, 0, 0), n = st->st_size, rc;
	char text[VIEW_WRITE_MAX];

	/* Old text lies behind what was written. */
	if (!is_write_only && at > 0 && at < n)
		n = at;
	n = read_back(fd, text, n < VIEW_WRITE_MAX ? n : VIEW_WRITE_MAX);
	if (n <= 0)
		return n;
	if (begin < 0)
		begin += at;
	/* Of a file that is written only, all is new; a hole: see above. */
	rc = text[0] && (is_write_only || begin == 0) ? view_write(view, text, (size_t)n) : 0;
	sys_call(SYS_ftruncate, fd, 0, 0, 0, 0, 0);
	if (!is_write_only)
		(void)view_text(view, put_text, &start);
	mark_settled(fd, view);
	if (rc < 0)
		sys_call(SYS_lseek, fd, 0, SEEK_SET, 0, 0, 0);
	return rc;
}

long procview_settle(int fd, long begin)
{
	struct stat st;
	int view;

	if (fd < 0 || !get_stat(fd, &st))
		return 0;
	view = view_of(&st);
	return view == VIEW_NONE || is_settled(&st) ? 0 : take(view, fd, &st, begin);
}

long procview_settle_all(void)
{
	long first = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		long rc = procview_settle(fd, 0);

		if (first == 0 && rc < 0)
			first = rc;
	}
	return first;
}

/* ---- exec --------------------------------------------------------------------------------- */

static const char *get_decimal(const char *from, uint64_t *ret)
{
	*ret = 0;
	while (*from >= '0' && *from <= '9')
		*ret = *ret * 10 + (uint64_t)(*from++ - '0');
	return from;
}

/* DEVICE, then VIEW:INODE of each file that is still open, whatever its descriptors will be. */
void procview_hint(char text[PROCVIEW_HINT_BYTES])
{
	bool seen[FILES] = {false}, any = false;
	char *end = text_put_number(stpcpy(text, PROCVIEW_HINT), files_dev);

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		struct stat st;

		if (!get_stat(fd, &st) || st.st_dev != files_dev)
			continue;
		for (unsigned i = 0; i < FILES; i++) {
			if (seen[i] || load_acquire(&files[i].inode) != st.st_ino)
				continue;
			seen[i] = any = true;
			*end++ = ',';
			end = text_put_number(end, (uint64_t)files[i].view);
			*end++ = ':';
			end = text_put_number(end, st.st_ino);
		}
	}
	*end = '\0';
	if (!any)
		*text = '\0';
}

void procview_start(const char *hint)
{
	uint64_t n, inode;

	hint = get_decimal(hint, &n);
	files_dev = (dev_t)n;
	while (*hint == ',') {
		hint = get_decimal(hint + 1, &n);
		if (*hint != ':')
			return;
		hint = get_decimal(hint + 1, &inode);
		if (n < (uint64_t)view_count && inode)
			remember(inode, (int)n);
	}
}
