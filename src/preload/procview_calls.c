// SPDX-License-Identifier: MIT
/*
 * The functions of the C library that open files, ask whether they are there, and write: they show
 * the namespace in /proc/sysvipc and /proc/sys/kernel. See procview.c.
 *
 * open() and its like ask the kernel first, and look at the path only when the kernel did (it may
 * be no readable memory, which is EFAULT and no crash): then the kernel's file is replaced by the
 * view. stat() and its like are answered here only where the kernel lacks the file, or was asked
 * for the memory file of a view (as fstat() asks): the answer is then what stat() says of the view.
 */
#undef _FILE_OFFSET_BITS /* each name is defined here as it is */
#undef _TIME_BITS
#undef _FORTIFY_SOURCE
#include "preload/procview.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/text.h"
#include "preload/entry.h"
#include "preload/symbols.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* ---- Opening ------------------------------------------------------------------------------ */

/* Did the kernel look at the path, so that it can be looked at? */
static bool was_read(int error)
{
	return error == ENOENT || error == EACCES || error == EROFS || error == EEXIST;
}

/* fd: what the kernel answered. */
static int opened(int dirfd, const char *path, int flags, int fd)
{
	int saved = errno, view;
	long rc;

	if ((fd < 0 && !was_read(saved)) || (flags & O_PATH))
		return fd;
	view = procview_find(dirfd, path);
	if (__builtin_expect(view == VIEW_NONE, 1))
		return fd;
	rc = procview_open(view, flags, fd);
	errno = rc < 0 ? (int)-rc : saved;
	return rc < 0 ? -1 : (int)rc;
}

static bool has_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define TAKE_MODE(flags, mode)                                                                     \
	do {                                                                                       \
		if (has_mode(flags)) {                                                             \
			va_list ap;                                                                \
			va_start(ap, flags);                                                       \
			mode = va_arg(ap, mode_t);                                                 \
			va_end(ap);                                                                \
		}                                                                                  \
	} while (0)

#define DEFINE_OPEN(name)                                                                          \
	PUBLIC int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
                                                                                                   \
		TAKE_MODE(flags, mode);                                                            \
		return opened(AT_FDCWD, path, flags, NEXT(name)(path, flags, mode));               \
	}

#define DEFINE_OPENAT(name)                                                                        \
	PUBLIC int name(int dirfd, const char *path, int flags, ...)                               \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
                                                                                                   \
		TAKE_MODE(flags, mode);                                                            \
		return opened(dirfd, path, flags, NEXT(name)(dirfd, path, flags, mode));           \
	}

#define DEFINE_CREAT(name)                                                                         \
	PUBLIC int name(const char *path, mode_t mode)                                             \
	{                                                                                          \
		return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,                        \
			      NEXT(name)(path, mode));                                             \
	}

DEFINE_OPEN(open)
DEFINE_OPENAT(openat)
DEFINE_CREAT(creat)

/* The kernel's by number. */
long procview_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	long fd = NEXT(syscall)(nr, a, b, c, d, e, f);

	switch (nr) {
#ifdef SYS_open
	case SYS_open:
		return opened(AT_FDCWD, (const char *)a, (int)b, (int)fd);
	case SYS_creat:
		return opened(AT_FDCWD, (const char *)a, O_WRONLY | O_CREAT | O_TRUNC, (int)fd);
#endif
	case SYS_openat:
		return opened((int)a, (const char *)b, (int)c, (int)fd);
	case SYS_openat2:
		if (fd < 0 && !was_read(errno))
			return fd;
		return opened((int)a, (const char *)b, (int)((const struct open_how *)c)->flags,
			      (int)fd);
	default:
		return fd;
	}
}

/* ---- Streams ------------------------------------------------------------------------------ */

/* The flags of a mode, and the mode without what is done here; false: none of ours. */
static bool read_mode(const char *mode, int *ret_flags, char ret_mode[4])
{
	int flags;
	char *end = ret_mode;

	switch (*mode) {
	case 'r':
		flags = O_RDONLY;
		break;
	case 'w':
	case 'a':
		flags = O_WRONLY | O_CREAT;
		break;
	default:
		return false;
	}
	*end++ = flags == O_RDONLY ? 'r' : 'w';
	while (*++mode && *mode != ',') {
		if (*mode == '+' && (flags & O_ACCMODE) != O_RDWR) {
			flags = (flags & ~O_ACCMODE) | O_RDWR;
			*end++ = '+';
		} else if (*mode == 'x') {
			flags |= O_EXCL;
		} else if (*mode == 'e' && !(flags & O_CLOEXEC)) {
			flags |= O_CLOEXEC;
			*end++ = 'e';
		}
	}
	*end = '\0';
	*ret_flags = flags;
	return true;
}

/* A descriptor for a stream; -1 with errno. VIEW_NONE in *ret_view: none of ours. */
static int open_for_stream(const char *path, const char *mode, char ret_mode[4], int *ret_view)
{
	int flags, saved = errno;
	long fd;

	*ret_view = path && mode ? procview_find(AT_FDCWD, path) : VIEW_NONE;
	if (*ret_view != VIEW_NONE && !read_mode(mode, &flags, ret_mode))
		*ret_view = VIEW_NONE;
	if (*ret_view == VIEW_NONE)
		return -1;
	fd = procview_open(*ret_view, flags, -1);
	errno = fd < 0 ? (int)-fd : saved;
	return fd < 0 ? -1 : (int)fd;
}

typedef FILE *fopen_fn(const char *path, const char *mode);

static FILE *open_stream(const char *path, const char *mode, fopen_fn *next)
{
	char plain[4];
	int view, fd = open_for_stream(path, mode, plain, &view);
	FILE *stream;

	if (view == VIEW_NONE)
		return next(path, mode);
	if (fd < 0)
		return NULL;
	stream = fdopen(fd, plain);
	if (!stream)
		(void)close(fd);
	return stream;
}

typedef FILE *freopen_fn(const char *path, const char *mode, FILE *stream);

static FILE *reopen_stream(const char *path, const char *mode, FILE *stream, freopen_fn *next)
{
	char plain[4], link[TEXT_DESCRIPTOR_BYTES];
	int view, fd = open_for_stream(path, mode, plain, &view);

	if (view == VIEW_NONE)
		return next(path, mode, stream);
	if (fd < 0) {
		int error = errno;

		(void)fclose(stream);
		errno = error;
		return NULL;
	}
	text_put_descriptor(link, fd);
	stream = next(link, plain, stream);
	(void)close(fd);
	return stream;
}

PUBLIC FILE *fopen(const char *restrict path, const char *restrict mode)
{
	return open_stream(path, mode, NEXT(fopen));
}

PUBLIC FILE *freopen(const char *restrict path, const char *restrict mode, FILE *restrict stream)
{
	return reopen_stream(path, mode, stream, NEXT(freopen));
}

/* ---- Writing ------------------------------------------------------------------------------ */

static bool may_be_written(void)
{
	return __builtin_expect(load_relaxed(&procview_writable), 0);
}

/* After a write there, or (-1) up to the present position: what it returns. */
static ssize_t wrote(int fd, ssize_t n, int64_t begin)
{
	int saved = errno;
	long rc = 0;

	if (n > 0)
		rc = procview_settle(fd, begin >= 0 ? begin : -n);
	errno = rc < 0 ? (int)-rc : saved;
	if (rc < 0)
		return -1;
	return rc > 0 && rc < n ? rc : n;
}

PUBLIC ssize_t write(int fd, const void *buffer, size_t bytes)
{
	ssize_t n = NEXT(write)(fd, buffer, bytes);

	return may_be_written() ? wrote(fd, n, -1) : n;
}

PUBLIC ssize_t writev(int fd, const struct iovec *vector, int count)
{
	ssize_t n = NEXT(writev)(fd, vector, count);

	return may_be_written() ? wrote(fd, n, -1) : n;
}

PUBLIC ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
	ssize_t n = NEXT(pwrite)(fd, buffer, bytes, offset);

	return may_be_written() ? wrote(fd, n, offset) : n;
}

PUBLIC int close(int fd)
{
	long settled = may_be_written() ? procview_settle(fd, 0) : 0;
	int rc = NEXT(close)(fd);

	if (rc == 0 && settled < 0) {
		errno = (int)-settled;
		return -1;
	}
	return rc;
}

/* The stream has written what it had: 0, or EOF with errno and the stream's own mark. */
static int flushed(FILE *stream)
{
	int saved = errno;
	long rc = procview_settle(fileno(stream), 0);

	errno = rc < 0 ? (int)-rc : saved;
	if (rc >= 0)
		return 0;
#ifdef __GLIBC__
	stream->_flags |= _IO_ERR_SEEN;
#endif
	return EOF;
}

static int flushed_all(void)
{
	int rc = flushed(stdout) | flushed(stderr), saved = errno;
	long settled = procview_settle_all();

	errno = settled < 0 ? (int)-settled : saved;
	return settled < 0 ? EOF : rc;
}

PUBLIC int fflush(FILE *stream)
{
	int rc = NEXT(fflush)(stream);

	if (!may_be_written() || rc != 0)
		return rc;
	return stream ? flushed(stream) : flushed_all();
}

PUBLIC int fclose(FILE *stream)
{
	int saved = errno, rc;

	if (!may_be_written() || !procview_is(fileno(stream))) {
		errno = saved;
		return NEXT(fclose)(stream);
	}
	rc = fflush(stream);
	saved = errno;
	if (NEXT(fclose)(stream) != 0)
		return EOF;
	errno = saved;
	return rc;
}

/* ---- Is it there? ------------------------------------------------------------------------- */

/* After stat() and its like have failed: the view that they were asked about; VIEW_NONE. */
static int missing_view(int dirfd, const char *path)
{
	return errno == ENOENT ? procview_find(dirfd, path) : VIEW_NONE;
}

/* After they have answered: the view whose memory file that is; VIEW_NONE. */
static inline int shown_view(dev_t dev, ino_t inode, uint64_t links, int64_t seconds, int64_t ns)
{
	int view = procview_settled(links, seconds, ns);

	return view == VIEW_NONE && links == 0 && may_be_written() ? procview_written(dev, inode)
								   : view;
}

#define FILL(st, view)                                                                             \
	do {                                                                                       \
		memset(st, 0, sizeof(*(st)));                                                      \
		view_stat(view, &(st)->st_mode, &(st)->st_uid, &(st)->st_gid);                     \
		(st)->st_nlink = 1;                                                                \
		(st)->st_blksize = 1024;                                                           \
		(st)->st_ino = (ino_t)(view) + 1;                                                  \
	} while (0)

/* rc: what the kernel answered; of_view: what it answers for view_path(found). */
#define ANSWER_STAT(dirfd, path, st, rc, of_view)                                                  \
	do {                                                                                       \
		int answer = rc, saved_errno = errno, found;                                       \
                                                                                                   \
		found = __builtin_expect(answer < 0, 0)                                            \
				? missing_view(dirfd, path)                                        \
				: shown_view((st)->st_dev, (st)->st_ino, (st)->st_nlink,           \
					     (st)->st_mtim.tv_sec, (st)->st_mtim.tv_nsec);         \
		if (__builtin_expect(found == VIEW_NONE, 1))                                       \
			return answer;                                                             \
		if ((of_view) < 0)                                                                 \
			FILL(st, found);                                                           \
		errno = saved_errno;                                                               \
		return 0;                                                                          \
	} while (0)

PUBLIC int stat(const char *restrict path, struct stat *restrict st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(stat)(path, st), NEXT(stat)(view_path(found), st));
}

PUBLIC int lstat(const char *restrict path, struct stat *restrict st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(lstat)(path, st), NEXT(lstat)(view_path(found), st));
}

PUBLIC int fstat(int fd, struct stat *st)
{
	ANSWER_STAT(fd, "", st, NEXT(fstat)(fd, st), NEXT(stat)(view_path(found), st));
}

PUBLIC int fstatat(int dirfd, const char *restrict path, struct stat *restrict st, int flags)
{
	ANSWER_STAT(dirfd, path, st, NEXT(fstatat)(dirfd, path, st, flags),
		    NEXT(fstatat)(AT_FDCWD, view_path(found), st, 0));
}

#ifdef STATX_BASIC_STATS /* not every C library has it */
static int view_of_statx(const struct statx *stx)
{
	return shown_view(makedev(stx->stx_dev_major, stx->stx_dev_minor), stx->stx_ino,
			  stx->stx_nlink, stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec);
}

PUBLIC int statx(int dirfd, const char *restrict path, int flags, unsigned mask,
		 struct statx *restrict stx)
{
	int rc = NEXT(statx)(dirfd, path, flags, mask, stx), saved = errno, view;
	struct statx more;
	struct stat st;

	if (rc < 0)
		view = missing_view(dirfd, path);
	else if (__builtin_expect(stx->stx_nlink == 0, 0) && (stx->stx_mask & STATX_NLINK) &&
		 !(stx->stx_mask & STATX_MTIME)) /* tmpfs gives what times it is asked for */
		view = NEXT(statx)(dirfd, path, flags, STATX_BASIC_STATS, &more) < 0
			       ? VIEW_NONE
			       : view_of_statx(&more);
	else
		view = view_of_statx(stx);
	errno = saved;
	if (view == VIEW_NONE)
		return rc;
	if (NEXT(statx)(AT_FDCWD, view_path(view), 0, mask, stx) < 0) {
		FILL(&st, view);
		memset(stx, 0, sizeof(*stx));
		stx->stx_mask = STATX_BASIC_STATS;
		stx->stx_mode = (uint16_t)st.st_mode;
		stx->stx_uid = st.st_uid;
		stx->stx_gid = st.st_gid;
		stx->stx_nlink = 1;
		stx->stx_blksize = (uint32_t)st.st_blksize;
		stx->stx_ino = st.st_ino;
		errno = saved;
	}
	return 0;
}
#endif

/* The kernel's file may be another's, or none. */
static int accessible(int dirfd, const char *path, int mode, int rc)
{
	int saved = errno, view;
	long answer;

	if (__builtin_expect(rc == 0, 1) || !was_read(saved))
		return rc;
	view = procview_find(dirfd, path);
	if (view == VIEW_NONE) {
		errno = saved;
		return rc;
	}
	answer = view_access(view, mode);
	errno = answer < 0 ? (int)-answer : saved;
	return answer < 0 ? -1 : 0;
}

int eaccess(const char *path, int mode);
int euidaccess(const char *path, int mode);

PUBLIC int access(const char *path, int mode)
{
	return accessible(AT_FDCWD, path, mode, NEXT(access)(path, mode));
}

PUBLIC int eaccess(const char *path, int mode)
{
	return accessible(AT_FDCWD, path, mode, NEXT(eaccess)(path, mode));
}

PUBLIC int euidaccess(const char *path, int mode)
{
	return accessible(AT_FDCWD, path, mode, NEXT(euidaccess)(path, mode));
}

PUBLIC int faccessat(int dirfd, const char *path, int mode, int flags)
{
	return accessible(dirfd, path, mode, NEXT(faccessat)(dirfd, path, mode, flags));
}

/* ---- Other names of the same ---------------------------------------------------------------- */

#ifdef __GLIBC__

int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
int __close(int fd);
ssize_t __write(int fd, const void *buffer, size_t bytes);
int __xstat(int version, const char *path, struct stat *st);
int __xstat64(int version, const char *path, struct stat64 *st);
int __lxstat(int version, const char *path, struct stat *st);
int __lxstat64(int version, const char *path, struct stat64 *st);
int __fxstat(int version, int fd, struct stat *st);
int __fxstat64(int version, int fd, struct stat64 *st);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);

DEFINE_OPEN(open64)
DEFINE_OPEN(__open)
DEFINE_OPEN(__open64)
DEFINE_OPENAT(openat64)
DEFINE_CREAT(creat64)

/* As <fcntl.h> has them where no mode can be needed. */
PUBLIC int __open_2(const char *path, int flags)
{
	return opened(AT_FDCWD, path, flags, NEXT(__open_2)(path, flags));
}

PUBLIC int __open64_2(const char *path, int flags)
{
	return opened(AT_FDCWD, path, flags, NEXT(__open64_2)(path, flags));
}

PUBLIC int __openat_2(int dirfd, const char *path, int flags)
{
	return opened(dirfd, path, flags, NEXT(__openat_2)(dirfd, path, flags));
}

PUBLIC int __openat64_2(int dirfd, const char *path, int flags)
{
	return opened(dirfd, path, flags, NEXT(__openat64_2)(dirfd, path, flags));
}

PUBLIC FILE *fopen64(const char *restrict path, const char *restrict mode)
{
	return open_stream(path, mode, NEXT(fopen64));
}

PUBLIC FILE *freopen64(const char *restrict path, const char *restrict mode, FILE *restrict stream)
{
	return reopen_stream(path, mode, stream, NEXT(freopen64));
}

PUBLIC ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off64_t offset)
{
	ssize_t n = NEXT(pwrite64)(fd, buffer, bytes, offset);

	return may_be_written() ? wrote(fd, n, offset) : n;
}

PUBLIC int __close(int fd)
{
	return close(fd);
}

PUBLIC ssize_t __write(int fd, const void *buffer, size_t bytes)
{
	return write(fd, buffer, bytes);
}

PUBLIC int stat64(const char *restrict path, struct stat64 *restrict st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(stat64)(path, st), NEXT(stat64)(view_path(found), st));
}

PUBLIC int lstat64(const char *restrict path, struct stat64 *restrict st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(lstat64)(path, st),
		    NEXT(lstat64)(view_path(found), st));
}

PUBLIC int fstat64(int fd, struct stat64 *st)
{
	ANSWER_STAT(fd, "", st, NEXT(fstat64)(fd, st), NEXT(stat64)(view_path(found), st));
}

PUBLIC int fstatat64(int dirfd, const char *restrict path, struct stat64 *restrict st, int flags)
{
	ANSWER_STAT(dirfd, path, st, NEXT(fstatat64)(dirfd, path, st, flags),
		    NEXT(fstatat64)(AT_FDCWD, view_path(found), st, 0));
}

/* Programs linked before glibc 2.33. */
PUBLIC int __xstat(int version, const char *path, struct stat *st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(__xstat)(version, path, st),
		    NEXT(__xstat)(version, view_path(found), st));
}

PUBLIC int __xstat64(int version, const char *path, struct stat64 *st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(__xstat64)(version, path, st),
		    NEXT(__xstat64)(version, view_path(found), st));
}

PUBLIC int __lxstat(int version, const char *path, struct stat *st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(__lxstat)(version, path, st),
		    NEXT(__lxstat)(version, view_path(found), st));
}

PUBLIC int __lxstat64(int version, const char *path, struct stat64 *st)
{
	ANSWER_STAT(AT_FDCWD, path, st, NEXT(__lxstat64)(version, path, st),
		    NEXT(__lxstat64)(version, view_path(found), st));
}

PUBLIC int __fxstat(int version, int fd, struct stat *st)
{
	ANSWER_STAT(fd, "", st, NEXT(__fxstat)(version, fd, st),
		    NEXT(__xstat)(version, view_path(found), st));
}

PUBLIC int __fxstat64(int version, int fd, struct stat64 *st)
{
	ANSWER_STAT(fd, "", st, NEXT(__fxstat64)(version, fd, st),
		    NEXT(__xstat64)(version, view_path(found), st));
}

PUBLIC int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
	ANSWER_STAT(dirfd, path, st, NEXT(__fxstatat)(version, dirfd, path, st, flags),
		    NEXT(__fxstatat)(version, AT_FDCWD, view_path(found), st, 0));
}

PUBLIC int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags)
{
	ANSWER_STAT(dirfd, path, st, NEXT(__fxstatat64)(version, dirfd, path, st, flags),
		    NEXT(__fxstatat64)(version, AT_FDCWD, view_path(found), st, 0));
}

#endif
