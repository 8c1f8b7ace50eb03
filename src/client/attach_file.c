// SPDX-License-Identifier: MIT
/*
 * The files of segments; what they are for and where they lie is in the header.
 *
 *   SHM_F1  file of a segment
 *    word      segment_shm.made, 32-bit
 *    states    0 > 1
 *    writers   who attaches and finds 0
 *    order     R of make_file() pairs with A of its readers; publishes the inode number
 *    stale-ok  0 although the file is there: it is opened as if to be made, which changes nothing
 *    death     file made, not sized: sized by the next. Sized, not noted: noted by the next.
 *              Left by a segment that has gone: emptied by the next of that name, at the latest
 *    progress  lock-free; several may make it at once
 *    tests     conform/shm-life
 */
#include "client/attach_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "base/text.h"
#include "client/attach_dir.h"
#include "client/hugefile.h"
#include "client/session_priv.h"
#include "client/spare.h"
#include "ipc/shm.h"

#define LINK_BYTES   80
#define DELETED      " (deleted)"
#define MAKING_BYTE  (INT64_MAX - 1) /* locked while a file that was left is emptied */
#define MAKING_TRIES 10000
#define OPEN_FLAGS   (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_LARGEFILE)

static bool is_error(long r)
{
	return r < 0 && r > -4096;
}

static void sys_close(long fd)
{
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

dev_t attach_file_device(const struct segment_shm *s)
{
	return shm_huge_shift(s) ? (dev_t)s->device : attach_dir_device();
}

/* ---- Making and mapping ------------------------------------------------------------------ */

static bool file_limit_below(uint64_t bytes)
{
	struct rlimit limit;

	/* Beyond the limit ftruncate() would send SIGXFSZ, which kills. */
	return sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
	       limit.rlim_cur < bytes;
}

/* The segment's file, for flags beside OPEN_FLAGS. */
static long open_named(const struct segment_shm *s, const char *name, long flags)
{
	long directory, fd;

	if (!shm_huge_shift(s))
		return attach_dir_call(SYS_openat, name, flags | OPEN_FLAGS, 0, 0);
	directory = attach_dir_open();
	if (directory < 0)
		return directory;
	fd = hugefile_open((int)directory, attach_dir_huge_prefix(), name, flags | OPEN_FLAGS);
	attach_dir_close(directory);
	return fd;
}

/* Pages, as mappings count; but no further than a file can reach. */
static uint64_t file_bytes(const struct segment_shm *s)
{
	uint64_t bytes = shm_mapped_bytes(s->bytes);

	return bytes > INT64_MAX || bytes < s->bytes ? s->bytes : bytes;
}

static long lock_making(long fd, short type)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = MAKING_BYTE, .l_len = 1};
	long r = -EAGAIN;

	for (int tries = 0; r == -EAGAIN && tries < MAKING_TRIES; tries++) {
		r = sys_call(SYS_fcntl, fd, F_OFD_SETLK, (long)&lock, 0, 0, 0);
		if (r == -EAGAIN)
			sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	}
	return r == -EAGAIN ? -ENOMEM : r;
}

/*
 * A file with contents, of a segment whose file is not made: nobody writes before that, so it was
 * left by another of the same id. It is emptied by one process; who comes later finds it made.
 */
static long empty_file(const struct segment_shm *s, long fd)
{
	long r = lock_making(fd, F_WRLCK);

	if (r < 0)
		return r;
	if (!load_acquire(&s->made)) /* SHM_F1/A */
		r = sys_call(SYS_ftruncate, fd, 0, 0, 0, 0, 0);
	return r;
}

/* Is it still the segment for which a file was made? By a dead caller's helper (spare.c) it may
 * have been made too late. */
static long still(const struct segment_shm *s, int32_t id)
{
	return s->id == id ? 0 : -EIDRM;
}

/* The file that nobody had attached before. Returns a descriptor or -errno. */
static long make_file(struct segment_shm *s, int32_t id, const char *name)
{
	bool had_contents = false;
	struct stat st;
	long fd, r;

	fd = attach_dir_call(SYS_openat, name, O_RDWR | O_CREAT | OPEN_FLAGS, 0666, 0);
	if (fd == -ENOENT) {
		r = attach_dir_make();
		fd = r < 0 ? r
			   : attach_dir_call(SYS_openat, name, O_RDWR | O_CREAT | OPEN_FLAGS, 0666,
					     0);
	}
	if (fd < 0)
		return fd;
	r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r == 0 && st.st_dev != attach_dir_device())
		r = -ESTALE;
	/* In this order: who made it meanwhile may have written. SHM_F1/A */
	if (r == 0 && st.st_blocks > 0 && !load_acquire(&s->made)) {
		had_contents = true;
		st.st_size = 0;
		r = empty_file(s, fd);
	}
	if (r == 0 && (uint64_t)st.st_size < file_bytes(s))
		r = file_limit_below(file_bytes(s))
			    ? -EFBIG
			    : sys_call(SYS_ftruncate, fd, (long)file_bytes(s), 0, 0, 0, 0);
	if (r == 0 && (st.st_mode & 0666) != 0666) /* the umask took from it */
		sys_call(SYS_fchmod, fd, 0666, 0, 0, 0, 0);
	if (r == 0)
		r = still(s, id);
	if (r < 0) {
		sys_close(fd);
		return r;
	}
	s->inode = st.st_ino;
	store_release(&s->made, 1); /* SHM_F1/R */
	if (had_contents)           /* before it is mapped: the lock would stay with it */
		(void)lock_making(fd, F_UNLCK);
	return fd;
}

/* The same of a segment of huge pages. */
static long make_huge(struct segment_shm *s, int32_t id, const char *name)
{
	struct hugefile h = {
		.shift = shm_huge_shift(s),
		.bytes = shm_segment_bytes(s),
		.reserve = !(s->flags & SEGMENT_NORESERVE),
		.owner = session.owner,
	};
	struct stat st;
	long directory, fd, r = attach_dir_door() >= 0 ? 0 : attach_dir_make();

	if (r < 0)
		return r;
	directory = attach_dir_open();
	if (directory < 0)
		return directory;
	fd = hugefile_make(&h, (int)directory, attach_dir_huge_prefix(), name);
	r = fd < 0 ? fd : sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	/* Left by another segment, as in make_file(), whose file could not be removed. SHM_F1/A */
	if (r == 0 && st.st_blocks > 0 && !load_acquire(&s->made))
		r = -ESTALE;
	attach_dir_close(directory);
	if (r == 0)
		r = still(s, id);
	if (r < 0) {
		sys_close(fd);
		return r;
	}
	s->device = st.st_dev;
	s->inode = st.st_ino;
	store_release(&s->made, 1); /* SHM_F1/R */
	return fd;
}

static long make(struct segment_shm *s, int32_t id, const char *name)
{
	return shm_huge_shift(s) ? make_huge(s, id, name) : make_file(s, id, name);
}

static int make_only(void *context)
{
	struct segment_shm *s = ((struct attach_mapping *)context)->segment;
	char name[ATTACH_NAME_BYTES];
	int32_t id = s->id;
	long fd = 0;

	attach_dir_file_name(name, s->key, id);
	if (!load_acquire(&s->made)) { /* SHM_F1/A */
		fd = make(s, id, name);
		sys_close(fd);
	}
	return fd < 0 ? (int)fd : 0;
}

int attach_file_make(struct segment_shm *s)
{
	struct attach_mapping m = {.segment = s};

	return spare_run(make_only, &m, sizeof(m));
}

/*
 * Is it the file that was made? The namespace's directory lets nobody put another in its place; a
 * hugetlbfs may be open to others, so there it is asked each time, and whose the file is, too.
 */
static bool is_its_file(const struct segment_shm *s, const struct stat *st)
{
	return st->st_dev == attach_file_device(s) && st->st_ino == s->inode &&
	       (!shm_huge_shift(s) || st->st_uid == session.owner);
}

static long open_file(struct segment_shm *s, bool read_only)
{
	uint32_t ix = (uint32_t)s->id & (OBJECT_CAPACITY - 1);
	uint64_t mark = (uint64_t)(ix + 1) << 32 | s->object.gen;
	char name[ATTACH_NAME_BYTES];
	struct stat st;
	int32_t id = s->id;
	long fd, r;

	attach_dir_file_name(name, s->key, id);
	if (!load_acquire(&s->made)) { /* SHM_F1/A */
		fd = make(s, id, name);
		if (fd < 0 || !read_only)
			return fd;
		sys_close(fd);
	}
	fd = open_named(s, name, read_only ? O_RDONLY : O_RDWR);
	if (fd < 0 ||
	    (!shm_huge_shift(s) && load_relaxed(attach_dir_seen(ix)) == mark)) /* private */
		return fd;
	r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r == 0 && (!is_its_file(s, &st) || (uint64_t)st.st_size < s->bytes))
		r = -ESTALE;
	if (r == 0) {
		store_relaxed(attach_dir_seen(ix), mark); /* private */
		return fd;
	}
	sys_close(fd);
	return r;
}

static int map(void *context)
{
	struct attach_mapping *m = context;
	struct flock lock = {.l_type = m->read_only ? F_RDLCK : F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)m->byte,
			     .l_len = 1};
	long fd = open_file(m->segment, m->read_only), r;

	if (fd < 0)
		return (int)fd;
	r = sys_call(SYS_fcntl, fd, F_OFD_SETLK, (long)&lock, 0, 0, 0);
	if (r == 0)
		r = sys_call(SYS_mmap, (long)m->address, (long)m->bytes, m->protection,
			     /* what huge pages are reserved, are the file's already */
			     MAP_SHARED | m->map_flags |
				     (shm_huge_shift(m->segment) ? MAP_NORESERVE : 0),
			     fd, 0);
	sys_close(fd);
	if (is_error(r))
		return (int)r;
	if ((m->map_flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && (uint64_t)r != m->address) {
		/* a kernel that does not know MAP_FIXED_NOREPLACE (before 4.17) */
		sys_call(SYS_munmap, r, (long)m->bytes, 0, 0, 0, 0);
		return -EEXIST;
	}
	m->address = (uint64_t)r;
	return 0;
}

int attach_file_map(struct attach_mapping *m)
{
	return spare_run(map, m, sizeof(*m));
}

/* ---- Questions --------------------------------------------------------------------------- */

struct question {
	const struct segment_shm *segment;
	uint64_t byte, bytes; /* 0 bytes: all from there on */
};

static int ask(void *context)
{
	const struct question *q = context;
	const struct segment_shm *s = q->segment;
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)q->byte,
		.l_len = (off_t)q->bytes,
	};
	char name[ATTACH_NAME_BYTES];
	struct stat st;
	long fd, r;

	attach_dir_file_name(name, s->key, s->id);
	fd = open_named(s, name, O_RDONLY);
	if (fd < 0)
		return (int)fd;
	r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r == 0 && load_acquire(&s->made) && /* SHM_F1/A */
	    (shm_huge_shift(s) ? !is_its_file(s, &st) : st.st_dev != attach_dir_device()))
		r = -ESTALE;
	if (r == 0)
		r = sys_call(SYS_fcntl, fd, F_OFD_GETLK, (long)&lock, 0, 0, 0);
	sys_close(fd);
	return r < 0 ? (int)r : lock.l_type != F_UNLCK;
}

/* A look that needs no descriptor. */
static bool has_file(const struct segment_shm *s)
{
	char name[ATTACH_NAME_BYTES];
	struct stat st;

	attach_dir_file_name(name, s->key, s->id);
	return attach_dir_call(SYS_newfstatat, name, (long)&st, AT_SYMLINK_NOFOLLOW, 0) != -ENOENT;
}

int attach_file_holds(const struct segment_shm *s, uint64_t byte)
{
	struct question q = {s, byte, 1};

	return spare_run(ask, &q, sizeof(q));
}

/* A link that is there while exactly this range is one mapping of a file. The first thread, whose
 * entry "self" is, may have ended, and "thread-self" has no such links. */
static void link_name(char to[LINK_BYTES], uint64_t start, uint64_t end)
{
	const uint64_t at[2] = {start, end};

	to = text_put_number(stpcpy(to, "/proc/"),
			     (uint64_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
	to = stpcpy(to, "/map_files/");
	for (int k = 0; k < 2; k++) {
		int shift = 60;

		while (shift > 0 && at[k] >> shift == 0)
			shift -= 4;
		for (; shift >= 0; shift -= 4)
			*to++ = "0123456789abcdef"[at[k] >> shift & 15];
		*to++ = k == 0 ? '-' : 0;
	}
}

static bool ends_with(const char *text, size_t n, const char *end)
{
	size_t length = strlen(end);

	return n >= length && memcmp(text + n - length, end, length) == 0;
}

/*
 * What the kernel calls a segment's file: after a chroot, or when it has been removed meanwhile,
 * the beginning or the end differs.
 */
static bool is_its_path(const struct segment_shm *s, const char *path, size_t n)
{
	const char *directory = attach_dir_path(), *prefix = attach_dir_huge_prefix();
	char name[ATTACH_NAME_BYTES];
	size_t length = directory ? strlen(directory) : 0, k;

	if (length < ATTACH_TAG_BYTES)
		return false;
	if (ends_with(path, n, DELETED))
		n -= sizeof(DELETED) - 1;
	attach_dir_file_name(name, s->key, s->id);
	if (!shm_huge_shift(s))
		return ends_with(path, n, name) &&
		       ends_with(path, n - strlen(name), directory + length - ATTACH_TAG_BYTES);
	k = n;
	while (k > 0 && path[k - 1] != '/')
		k--;
	length = strlen(prefix);
	return n - k > length + strlen(name) && memcmp(path + k, prefix, length) == 0 &&
	       memcmp(path + k + length, name, strlen(name)) == 0 &&
	       path[k + length + strlen(name)] == '.';
}

int attach_file_is_mapped(const struct segment_shm *s, uint64_t start, uint64_t end)
{
	char link[LINK_BYTES], path[512];
	long n;

	link_name(link, start, end);
	n = sys_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, sizeof(path), 0, 0);
	if (n < 0)
		return (int)n;
	return n == sizeof(path) ? -ENAMETOOLONG : is_its_path(s, path, (size_t)n);
}

int attach_file_in_use(const struct segment_shm *s)
{
	struct question q = {s, 0, 0};
	int r;

	if (!load_acquire(&s->made) && !load_acquire(&s->attach_seq)) /* SHM_F1/A, SHM_D1/A */
		return 0;
	r = spare_run(ask, &q, sizeof(q));
	if (spare_would_help(r) && !has_file(s)) /* it did not */
		r = -ENOENT;
	/* Not made yet: whoever makes it has said so before. */
	return r == -ENOENT && !load_acquire(&s->made) ? 0 : r; /* SHM_F1/A */
}

void attach_file_drop(const struct segment_shm *s)
{
	char name[ATTACH_NAME_BYTES];
	long directory;

	attach_dir_file_name(name, s->key, s->id);
	if (shm_huge_shift(s)) {
		directory = attach_dir_open();
		if (directory >= 0)
			(void)hugefile_drop((int)directory, attach_dir_huge_prefix(),
					    name); /* as below */
		attach_dir_close(directory);
		return;
	}
	(void)attach_dir_call(SYS_unlinkat, name, 0, 0,
			      0); /* it goes with the namespace at the latest */
}

uint64_t attach_file_pages(const struct segment_shm *s)
{
	char name[ATTACH_NAME_BYTES];
	struct stat st;

	if (!load_acquire(&s->made)) /* SHM_F1/A */
		return 0;
	attach_dir_file_name(name, s->key, s->id);
	if (attach_dir_call(SYS_newfstatat, name, (long)&st,
			    shm_huge_shift(s) ? 0 : AT_SYMLINK_NOFOLLOW, 0) < 0 ||
	    st.st_ino != s->inode)
		return 0;
	return (uint64_t)st.st_blocks * 512 / PAGE_BYTES;
}
