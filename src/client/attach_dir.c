// SPDX-License-Identifier: MIT
/*
 * Where the files of segments lie and the ways there; see the header. Private to the process: who
 * dies leaves an empty directory at the most, which goes with its namespace.
 */
#include "client/attach_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "base/text.h"
#include "client/hugefile.h"
#include "client/spare.h"

#define SEEN        64
#define DOOR_LOWEST 512 /* above what programs count in loops and select() */

static struct {
	char directory[PATH_MAX]; /* with its last slash */
	size_t length;            /* of that */
	char huge_prefix[HUGEFILE_PREFIX_BYTES];
	dev_t dev;
	int door; /* -1: none */
	ino_t door_inode;
	/* Segments, as {index, generation}, whose file has been looked at since the way to it was
	 * last in question. */
	uint64_t seen[SEEN];
} files = {.door = -1};

static void sys_close(long fd)
{
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* By who has the process's attaches locked; who else forks or changes identity races anyway. */
uint64_t *attach_dir_seen(uint32_t ix)
{
	return &files.seen[ix % SEEN];
}

static void forget_seen(void)
{
	for (uint32_t k = 0; k < SEEN; k++)
		store_relaxed(&files.seen[k], 0); /* private */
}

/* ---- Names ------------------------------------------------------------------------------- */

static char *append_hex(char *p, uint32_t n)
{
	for (int shift = 28; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[n >> shift & 15];
	*p = 0;
	return p;
}

void attach_dir_file_name(char to[ATTACH_NAME_BYTES], int32_t key, int32_t id)
{
	text_put_number(stpcpy(append_hex(stpcpy(to, "SYSV"), (uint32_t)key), "-"), (uint32_t)id);
}

size_t attach_dir_name(char to[PATH_MAX], const char *region, uint64_t inode, int64_t created)
{
	const char *slash = strrchr(region, '/');
	size_t n = slash ? (size_t)(slash + 1 - region) : 0;

	if (n + 4 + 8 + 2 > PATH_MAX)
		n = 0;
	memcpy(to, region, n);
	memcpy(to + n, "shm-", 4);
	append_hex(to + n + 4, (uint32_t)(inode ^ inode >> 32 ^ (uint64_t)created * 2654435761u));
	to[n + 12] = '/';
	to[n + 13] = 0;
	return n + 13;
}

int attach_dir_door(void)
{
	struct stat st;
	int door = load_relaxed(&files.door); /* set before threads can differ about it */

	if (door < 0)
		return -1;
	if (sys_call(SYS_fstat, door, (long)&st, 0, 0, 0, 0) == 0 && st.st_dev == files.dev &&
	    st.st_ino == files.door_inode)
		return door;
	store_relaxed(&files.door, -1); /* closed, and perhaps used again, by the program */
	return -1;
}

void attach_dir_place(const char *region, dev_t dev, uint64_t inode, int64_t created)
{
	sys_close(attach_dir_door()); /* of another session, by what is known of that one */
	files.length = attach_dir_name(files.directory, region, inode, created);
	hugefile_prefix(files.huge_prefix, files.directory, files.length - 1);
	files.dev = dev;
	files.door = -1;
	spare_keep(-1);
	forget_seen();
}

const char *attach_dir_path(void)
{
	return files.length ? files.directory : NULL;
}

const char *attach_dir_huge_prefix(void)
{
	return files.huge_prefix;
}

dev_t attach_dir_device(void)
{
	return files.dev;
}

/* ---- The directory ----------------------------------------------------------------------- */

/* The system call nr(directory, name, a, b, c) of the openat kind. */
long attach_dir_call(long nr, const char *name, long a, long b, long c)
{
	int door = attach_dir_door();
	char path[512];
	size_t n = strlen(name);
	long fd, r;

	if (!files.length)
		return -ENOENT;
	if (door >= 0)
		return sys_call(nr, door, (long)name, a, b, c, 0);
	if (files.length + n < sizeof(path)) {
		memcpy(path, files.directory, files.length);
		memcpy(path + files.length, name, n + 1);
		return sys_call(nr, AT_FDCWD, (long)path, a, b, c, 0);
	}
	fd = sys_call(SYS_openat, AT_FDCWD, (long)files.directory,
		      O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	if (fd < 0)
		return fd;
	r = sys_call(nr, fd, (long)name, a, b, c, 0);
	sys_close(fd);
	return r;
}

long attach_dir_open(void)
{
	long door = attach_dir_door();

	if (!files.length)
		return -ENOENT;
	return door >= 0 ? door
			 : sys_call(SYS_openat, AT_FDCWD, (long)files.directory,
				    O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
}

void attach_dir_close(long fd)
{
	if (fd != load_relaxed(&files.door)) /* as attach_dir_door() */
		sys_close(fd);
}

/* 0, also when it is there already. */
long attach_dir_make(void)
{
	long r;

	if (!files.length)
		return -ENOENT;
	r = sys_call(SYS_mkdirat, AT_FDCWD, (long)files.directory, 0777, 0, 0, 0);
	if (r == 0) /* the umask may have taken from it */
		r = sys_call(SYS_fchmodat, AT_FDCWD, (long)files.directory, 0777, 0, 0, 0);
	return r == -EEXIST ? 0 : r;
}

void attach_dir_keep_door(void)
{
	struct stat st;
	struct rlimit limit;
	long fd, high;
	long lowest = DOOR_LOWEST;

	forget_seen();
	if (!files.length || attach_dir_door() >= 0 || attach_dir_make() < 0)
		return;
	fd = sys_call(SYS_openat, AT_FDCWD, (long)files.directory,
		      O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
	if (fd < 0)
		return;
	if (sys_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0) == 0 &&
	    limit.rlim_cur <= DOOR_LOWEST)
		lowest = limit.rlim_cur > 64 ? (long)limit.rlim_cur - 16 : 0;
	high = sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest, 0, 0, 0);
	if (high >= 0) {
		sys_close(fd);
		fd = high;
	}
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || st.st_dev != files.dev) {
		sys_close(fd);
		return;
	}
	files.door_inode = st.st_ino;
	spare_keep((int)fd);
	store_relaxed(&files.door, (int)fd); /* private; signals are blocked, other threads race
					      * with a change of identity anyway */
}
