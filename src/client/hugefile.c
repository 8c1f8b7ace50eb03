// SPDX-License-Identifier: MIT
/*
 * Files of segments in huge pages; names and links are explained in the header.
 *
 * A file is made without a name, gets its size and its pages, and only then the name that the link
 * already says: so there is no half-made one, and who fails or dies before leaves nothing. Several
 * makers take the name from the same link and the first of them wins. The link is looked at once
 * more when the file has its name, for the namespace may be on its way out: a remover takes first
 * the file, then the link, then a file that has come meanwhile.
 *
 * Pages are reserved by mapping them once. What a shared mapping reserves in a hugetlbfs belongs to
 * the file, until the file goes, and costs no memory before it is used; it is what Linux does for
 * SHM_HUGETLB. The mapping also gives the file its size, which no limit of file sizes touches.
 *
 * Called by attach_file.c for the calls, by namespace.c for the end of a namespace. If the caller
 * dies, there may be a link without a file: the next maker's, or the remover's.
 */
#include "client/hugefile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include "base/text.h"
#include "client/spare.h"

#define HUGETLBFS_TYPE 0x958458f6ul
#define PATH_BYTES     512
#define SUFFIX_BYTES   64 /* slash, segment, dot, random */
#define MAKE_TRIES     16
#define NONBLOCK       1 /* GRND_NONBLOCK */
#define OPEN_FLAGS     (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_LARGEFILE)

static bool is_error(long r)
{
	return r < 0 && r > -4096;
}

static void sys_close(long fd)
{
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

static void sys_unlink(const char *path)
{
	(void)sys_call(SYS_unlinkat, AT_FDCWD, (long)path, 0, 0, 0, 0); /* or it is not there */
}

/* ---- Names ------------------------------------------------------------------------------- */

void hugefile_prefix(char to[HUGEFILE_PREFIX_BYTES], const char *path, size_t length)
{
	size_t from = length;

	for (int parts = 0; from > 0; from--)
		if (path[from - 1] == '/' && ++parts == 3)
			break;
	if (length - from >= HUGEFILE_PREFIX_BYTES - 1)
		from = length; /* not where a namespace is */
	for (; from < length; from++)
		*to++ = path[from] == '/' ? '-' : path[from];
	*to++ = '-';
	*to = 0;
}

static uint64_t draw(void)
{
	struct timespec now = {0, 0};
	uint64_t n = 0;

	if (sys_call(SYS_getrandom, (long)&n, sizeof(n), NONBLOCK, 0, 0, 0) == (long)sizeof(n))
		return n;
	clock_gettime(CLOCK_REALTIME, &now); /* early in the life of the machine */
	return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)&n;
}

/* False: it is too long. */
static bool target_name(char to[PATH_BYTES], const char *mount, const char *prefix,
			const char *link)
{
	uint64_t random = draw();
	char *p;

	if (strlen(mount) + strlen(prefix) + strlen(link) + SUFFIX_BYTES > PATH_BYTES)
		return false;
	p = stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(to, mount), "/"), prefix), link), ".");
	for (int shift = 60; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[random >> shift & 15];
	*p = 0;
	return true;
}

/* The path in a link: 0 or -errno. */
static long read_link(int directory, const char *link, char to[PATH_BYTES])
{
	long n = sys_call(SYS_readlinkat, directory, (long)link, (long)to, PATH_BYTES, 0, 0);

	if (n < 0)
		return n;
	if (n == PATH_BYTES || to[0] != '/')
		return -ESTALE;
	to[n] = 0;
	return 0;
}

static bool is_ours(const char *target, const char *prefix)
{
	return strncmp(strrchr(target, '/') + 1, prefix, strlen(prefix)) == 0;
}

/* ---- Which hugetlbfs --------------------------------------------------------------------- */

/* A word of a line, with what \ooo stands for; empty if it is too long. What ended it. */
static int next_word(struct text_file *t, char *to, size_t bytes)
{
	size_t n = 0;
	int c;

	while ((c = text_next(t)) >= 0 && c != ' ' && c != '\n') {
		if (c == '\\') {
			c = 0;
			for (int k = 0; k < 3; k++)
				c = c << 3 | (text_next(t) & 7);
		}
		if (n < bytes)
			to[n++] = (char)c;
	}
	to[n < bytes ? n : 0] = 0;
	return c;
}

/* The next line about a hugetlbfs: where it is mounted. */
static bool next_mount(struct text_file *t, char path[PATH_BYTES])
{
	char type[16], rest[16];
	int c;

	do {
		c = next_word(t, rest, sizeof(rest));
		if (c == ' ')
			c = next_word(t, path, PATH_BYTES);
		type[0] = 0;
		if (c == ' ')
			c = next_word(t, type, sizeof(type));
		while (c == ' ')
			c = next_word(t, rest, sizeof(rest));
		if (path[0] == '/' && strcmp(type, "hugetlbfs") == 0)
			return true;
	} while (c == '\n');
	return false;
}

static int default_shift(void *context)
{
	char word[32];
	uint64_t kib = 0;
	struct text_file t;
	int c;

	(void)context;
	if (text_open(&t, "/proc/meminfo") < 0)
		return (int)t.fd;
	do
		c = next_word(&t, word, sizeof(word));
	while (c >= 0 && strcmp(word, "Hugepagesize:") != 0);
	while (c == ' ' && kib == 0) {
		c = next_word(&t, word, sizeof(word));
		for (const char *p = word; *p >= '0' && *p <= '9'; p++)
			kib = kib * 10 + (uint64_t)(*p - '0');
	}
	text_close(&t);
	return kib ? __builtin_ctzll(kib) + 10 : 0;
}

uint32_t hugefile_default_shift(void)
{
	int shift = spare_run(default_shift, NULL, 0);

	return shift > 0 ? (uint32_t)shift : 0;
}

/* ---- Making ------------------------------------------------------------------------------ */

static long size_and_reserve(const struct hugefile *h, long fd)
{
	struct statfs fs;
	struct stat st;
	long r = sys_call(SYS_fstatfs, fd, (long)&fs, 0, 0, 0, 0);

	if (r == 0)
		r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r < 0)
		return r;
	if ((unsigned long)fs.f_type != HUGETLBFS_TYPE ||
	    (uint64_t)fs.f_bsize != 1ull << h->shift || st.st_uid != h->owner)
		return -ENOMEM;
	if ((st.st_mode & 0777) != 0600) /* the umask took from it */
		sys_call(SYS_fchmod, fd, 0600, 0, 0, 0, 0);
	r = sys_call(SYS_mmap, 0, (long)h->bytes, PROT_READ | PROT_WRITE,
		     MAP_SHARED | (h->reserve ? 0 : MAP_NORESERVE), fd, 0);
	if (is_error(r))
		return -ENOMEM;
	sys_call(SYS_munmap, r, (long)h->bytes, 0, 0, 0, 0);
	return 0;
}

/* Could another user put something else in the place of a file in this directory? */
static bool is_open_to_others(const struct hugefile *h, const char *directory)
{
	struct stat st;

	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)directory, (long)&st, 0, 0, 0) < 0)
		return true;
	if (st.st_uid != 0 && st.st_uid != h->owner)
		return true;
	return (st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX);
}

/* A file without a name in this directory, which has all else. A descriptor or -errno. */
static long make_nameless(const struct hugefile *h, const char *directory)
{
	long r, fd;

	if (is_open_to_others(h, directory))
		return -ENOMEM;
	fd = sys_call(SYS_openat, AT_FDCWD, (long)directory,
		      O_TMPFILE | O_RDWR | O_CLOEXEC | O_LARGEFILE, 0600, 0, 0);
	if (fd < 0)
		return fd;
	r = size_and_reserve(h, fd);
	if (r == 0)
		return fd;
	sys_close(fd);
	return r;
}

/* In the first hugetlbfs that takes it. */
static long make_anywhere(const struct hugefile *h, char mount[PATH_BYTES])
{
	struct text_file t;
	long fd = -ENOMEM;

	if (text_open(&t, "/proc/thread-self/mounts") < 0)
		return t.fd;
	while (fd < 0 && !spare_would_help(fd) && next_mount(&t, mount))
		fd = make_nameless(h, mount);
	text_close(&t);
	return fd < 0 && !spare_would_help(fd) ? -ENOMEM : fd;
}

static int try_run(void *context)
{
	char mount[PATH_BYTES];
	long fd = make_anywhere(context, mount);

	sys_close(fd);
	return fd < 0 ? (int)fd : 0;
}

int hugefile_try(const struct hugefile *h)
{
	struct hugefile copy = *h;

	return spare_run(try_run, &copy, sizeof(copy)) < 0 ? -ENOMEM : 0;
}

static long give_name(long fd, const char *path)
{
	char own[TEXT_DESCRIPTOR_BYTES];
	long r;

	r = sys_call(SYS_linkat, fd, (long)"", AT_FDCWD, (long)path, AT_EMPTY_PATH, 0);
	if (r == 0 || r == -EEXIST)
		return r;
	/* Linux before 6.10 wants a privilege for that, but not for this. */
	text_put_descriptor(own, (int)fd);
	return sys_call(SYS_linkat, AT_FDCWD, (long)own, AT_FDCWD, (long)path, AT_SYMLINK_FOLLOW,
			0);
}

/* A nameless file and, in target, the name that it is to have by the link. */
static long make_linked(const struct hugefile *h, int directory, const char *prefix,
			const char *link, char target[PATH_BYTES])
{
	char mount[PATH_BYTES], *slash;
	long fd, r = read_link(directory, link, target);

	if (r == 0 && !is_ours(target, prefix))
		return -ESTALE;
	if (r == 0) {
		slash = strrchr(strcpy(mount, target), '/');
		*slash = 0;
		return make_nameless(h, mount);
	}
	if (r != -ENOENT)
		return r;
	fd = make_anywhere(h, mount);
	if (fd < 0)
		return fd;
	r = target_name(target, mount, prefix, link)
		    ? sys_call(SYS_symlinkat, (long)target, directory, (long)link, 0, 0, 0)
		    : -ENAMETOOLONG;
	if (r == 0)
		return fd;
	sys_close(fd);
	return r;
}

long hugefile_make(const struct hugefile *h, int directory, const char *prefix, const char *link)
{
	char target[PATH_BYTES], again[PATH_BYTES];
	long fd = -EAGAIN, r, found;

	for (int tries = 0; tries < MAKE_TRIES; tries++) {
		fd = hugefile_open(directory, prefix, link, O_RDWR | OPEN_FLAGS);
		if (fd >= 0) {
			r = size_and_reserve(h, fd);
			if (r == 0)
				return fd;
			sys_close(fd);
			return r;
		}
		if (fd != -ENOENT)
			return fd;
		fd = make_linked(h, directory, prefix, link, target);
		if (fd == -EEXIST) /* another has made the link */
			continue;
		if (fd < 0)
			return fd;
		r = give_name(fd, target);
		found = r == 0 ? read_link(directory, link, again) : 0;
		if (r == 0 && found == 0 && strcmp(again, target) == 0)
			return fd;
		sys_close(fd);
		if (r == 0) {
			sys_unlink(target); /* nobody finds it by a link */
			if (found < 0)
				return -ENOENT;
		} else if (r != -EEXIST) {
			return r;
		}
	}
	return -ESTALE;
}

long hugefile_open(int directory, const char *prefix, const char *link, long flags)
{
	char target[PATH_BYTES];
	long r = read_link(directory, link, target);

	if (r == 0 && !is_ours(target, prefix))
		r = -ESTALE;
	return r < 0 ? r : sys_call(SYS_openat, AT_FDCWD, (long)target, flags, 0, 0, 0);
}

bool hugefile_drop(int directory, const char *prefix, const char *link)
{
	char target[PATH_BYTES];

	if (read_link(directory, link, target) < 0 || !is_ours(target, prefix))
		return false;
	sys_unlink(target);
	(void)sys_call(SYS_unlinkat, directory, (long)link, 0, 0, 0, 0); /* gone is gone */
	sys_unlink(target); /* by a maker that had found the link still there */
	return true;
}
