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
 *    death     file made, not sized: sized by the next. Sized, not noted: noted by the next
 *    progress  lock-free; several may make it at once
 *    tests     conform/shm-life
 */
#include "client/attach_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "ipc/shm.h"

#define NAME_BYTES   32
#define DOOR_LOWEST  512 /* above what programs count in loops and select() */
#define HELPER_STACK 65536
#define OPEN_FLAGS   (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_LARGEFILE)

static struct {
	char directory[PATH_MAX]; /* with its last slash */
	size_t length;            /* of that */
	dev_t dev;
	int door; /* -1: none */
	ino_t door_inode;
} files = {.door = -1};

static bool is_error(long r)
{
	return r < 0 && r > -4096;
}

static void sys_close(long fd)
{
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* ---- Names ------------------------------------------------------------------------------- */

static char *append_hex(char *p, uint32_t n)
{
	for (int shift = 28; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[n >> shift & 15];
	*p = 0;
	return p;
}

static void file_name(char to[NAME_BYTES], int32_t key, int32_t id)
{
	char digits[12];
	int k = 0;
	uint32_t n = (uint32_t)id;

	memcpy(to, "SYSV", 4);
	to = append_hex(to + 4, (uint32_t)key);
	*to++ = '-';
	do
		digits[k++] = (char)('0' + n % 10);
	while ((n /= 10) != 0);
	while (k > 0)
		*to++ = digits[--k];
	*to = 0;
}

void attach_file_place(const char *region, dev_t dev, uint32_t tag)
{
	const char *slash = strrchr(region, '/');
	size_t n = slash ? (size_t)(slash + 1 - region) : 0;

	if (n + 4 + 8 + 2 > sizeof(files.directory))
		n = 0;
	memcpy(files.directory, region, n);
	memcpy(files.directory + n, "shm-", 4);
	append_hex(files.directory + n + 4, tag);
	files.directory[n + 12] = '/';
	files.directory[n + 13] = 0;
	files.length = n + 13;
	files.dev = dev;
	sys_close(files.door);
	files.door = -1;
}

dev_t attach_file_device(void)
{
	return files.dev;
}

/* ---- The directory ----------------------------------------------------------------------- */

static int usable_door(void)
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

/* The system call nr(directory, name, a, b, c) of the openat kind. */
static long in_directory(long nr, const char *name, long a, long b, long c)
{
	int door = usable_door();
	char path[512];
	size_t n = strlen(name);
	long fd, r;

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

/* 0, also when it is there already. */
static long make_directory(void)
{
	char path[PATH_MAX];
	long r;

	memcpy(path, files.directory, files.length + 1);
	path[files.length - 1] = 0;
	r = sys_call(SYS_mkdirat, AT_FDCWD, (long)path, 0777, 0, 0, 0);
	if (r == 0) /* the umask may have taken from it */
		r = sys_call(SYS_fchmodat, AT_FDCWD, (long)path, 0777, 0, 0, 0);
	return r == -EEXIST ? 0 : r;
}

void attach_file_keep_door(void)
{
	struct stat st;
	struct rlimit limit;
	long fd, high;
	long lowest = DOOR_LOWEST;

	if (!files.length || usable_door() >= 0 || make_directory() < 0)
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
	store_relaxed(&files.door, (int)fd); /* private; signals are blocked, other threads race
					      * with a change of identity anyway */
}

/* ---- With descriptors to spare ----------------------------------------------------------- */

struct helper {
	int (*run)(void *context);
	void *context;
	int result;
};

static void raise_limit(int resource)
{
	struct rlimit limit;

	if (sys_call(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	sys_call(SYS_prlimit64, 0, resource, (long)&limit, 0, 0, 0); /* then it stays as it is */
}

/* In the child: memory is the caller's, limits and descriptors are its own. */
static int help(void *argument)
{
	struct helper *h = argument;

	raise_limit(RLIMIT_NOFILE);
	raise_limit(RLIMIT_FSIZE);
	for (int fd = 0; fd < 3; fd++)
		if (fd != files.door)
			sys_close(fd);
	h->result = h->run(h->context);
	sys_call(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

int attach_file_run(int (*run)(void *context), void *context)
{
	struct helper h = {run, context, 0};
	uint64_t all = ~0ull, old;
	long stack;
	int pid, saved = errno;

	h.result = run(context);
	if (h.result != -EMFILE && h.result != -ENFILE && h.result != -EFBIG)
		return h.result;
	stack = sys_call(SYS_mmap, 0, HELPER_STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (is_error(stack))
		return h.result;
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&old, sizeof(all), 0, 0);
	/* exit signal 0: neither SIGCHLD nor wait(-1) tells of it */
	pid = clone(help, (void *)(stack + HELPER_STACK), CLONE_VM | CLONE_VFORK, &h);
	if (pid > 0)
		while (sys_call(SYS_wait4, pid, 0, __WALL, 0, 0, 0) == -EINTR)
			;
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, sizeof(old), 0, 0);
	sys_call(SYS_munmap, stack, HELPER_STACK, 0, 0, 0, 0);
	errno = saved;
	return h.result;
}

/* ---- Making and mapping ------------------------------------------------------------------ */

static bool file_limit_below(uint64_t bytes)
{
	struct rlimit limit;

	/* Beyond the limit ftruncate() would send SIGXFSZ, which kills. */
	return sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
	       limit.rlim_cur < bytes;
}

/* Pages, as mappings count; but no further than a file can reach. */
static uint64_t file_bytes(const struct segment_shm *s)
{
	uint64_t bytes = shm_mapped_bytes(s->bytes);

	return bytes > INT64_MAX || bytes < s->bytes ? s->bytes : bytes;
}

/* The file that nobody had attached before. Returns a descriptor or -errno. */
static long make_file(struct segment_shm *s, const char *name)
{
	struct stat st;
	long fd, r;

	fd = in_directory(SYS_openat, name, O_RDWR | O_CREAT | OPEN_FLAGS, 0666, 0);
	if (fd == -ENOENT) {
		r = make_directory();
		fd = r < 0 ? r
			   : in_directory(SYS_openat, name, O_RDWR | O_CREAT | OPEN_FLAGS, 0666, 0);
	}
	if (fd < 0)
		return fd;
	r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r == 0 && st.st_dev != files.dev)
		r = -ESTALE;
	if (r == 0 && (uint64_t)st.st_size < file_bytes(s))
		r = file_limit_below(file_bytes(s))
			    ? -EFBIG
			    : sys_call(SYS_ftruncate, fd, (long)file_bytes(s), 0, 0, 0, 0);
	if (r == 0 && (st.st_mode & 0666) != 0666) /* the umask took from it */
		sys_call(SYS_fchmod, fd, 0666, 0, 0, 0, 0);
	if (r < 0) {
		sys_close(fd);
		return r;
	}
	s->inode = st.st_ino;
	store_release(&s->made, 1); /* SHM_F1/R */
	return fd;
}

static long open_file(struct segment_shm *s, bool read_only)
{
	char name[NAME_BYTES];
	struct stat st;
	long fd, r;

	file_name(name, s->key, s->id);
	if (!load_acquire(&s->made)) { /* SHM_F1/A */
		fd = make_file(s, name);
		if (fd < 0 || !read_only)
			return fd;
		sys_close(fd);
	}
	fd = in_directory(SYS_openat, name, (read_only ? O_RDONLY : O_RDWR) | OPEN_FLAGS, 0, 0);
	if (fd < 0)
		return fd;
	r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r == 0 &&
	    (st.st_dev != files.dev || st.st_ino != s->inode || (uint64_t)st.st_size < s->bytes))
		r = -ESTALE; /* not the file that it was */
	if (r == 0)
		return fd;
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
			     MAP_SHARED | m->map_flags, fd, 0);
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
	return attach_file_run(map, m);
}

/* ---- Questions --------------------------------------------------------------------------- */

static int ask(void *context)
{
	const struct segment_shm *s = context;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[NAME_BYTES];
	struct stat st;
	long fd, r;

	file_name(name, s->key, s->id);
	fd = in_directory(SYS_openat, name, OPEN_FLAGS, 0, 0);
	if (fd < 0)
		return (int)fd;
	r = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
	if (r == 0 && st.st_dev != files.dev)
		r = -ESTALE;
	if (r == 0)
		r = sys_call(SYS_fcntl, fd, F_OFD_GETLK, (long)&lock, 0, 0, 0);
	sys_close(fd);
	return r < 0 ? (int)r : lock.l_type != F_UNLCK;
}

int attach_file_in_use(const struct segment_shm *s)
{
	int r;

	if (!load_acquire(&s->made) && !load_acquire(&s->attach_seq)) /* SHM_F1/A, SHM_D1/A */
		return 0;
	r = attach_file_run(ask, (void *)(uintptr_t)s);
	/* Not made yet: whoever makes it has said so before. */
	return r == -ENOENT && !load_acquire(&s->made) ? 0 : r; /* SHM_F1/A */
}

void attach_file_drop(int32_t key, int32_t id)
{
	char name[NAME_BYTES];

	file_name(name, key, id);
	(void)in_directory(SYS_unlinkat, name, 0, 0,
			   0); /* it goes with the namespace at the latest */
}

uint64_t attach_file_pages(const struct segment_shm *s)
{
	char name[NAME_BYTES];
	struct stat st;

	if (!load_acquire(&s->made)) /* SHM_F1/A */
		return 0;
	file_name(name, s->key, s->id);
	if (in_directory(SYS_newfstatat, name, (long)&st, AT_SYMLINK_NOFOLLOW, 0) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512 / PAGE_BYTES;
}

/* Free bytes of the file system, UINT64_MAX: unknown. */
static uint64_t free_bytes(void)
{
	char path[PATH_MAX];
	struct statfs fs;
	struct sysinfo memory;
	int door = usable_door(), saved = errno;
	uint64_t bytes = UINT64_MAX;
	long r;

	/* The file system is that of the namespace's directory, which is there in any case. */
	memcpy(path, files.directory, files.length + 1);
	path[files.length - 13] = 0;
	r = door >= 0 ? sys_call(SYS_fstatfs, door, (long)&fs, 0, 0, 0, 0)
		      : sys_call(SYS_statfs, (long)path, (long)&fs, 0, 0, 0, 0);
	if (r == 0 && fs.f_blocks != 0)
		bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	else if (r == 0 &&
		 sysinfo(&memory) == 0) /* without a limit: as the kernel's own segments */
		bytes = ((uint64_t)memory.totalram + memory.totalswap) * memory.mem_unit;
	errno = saved;
	return bytes;
}

bool attach_file_has_room(const unsigned char *base, uint64_t bytes)
{
	uint32_t hi = region_object_count(base, FAMILY_SHM);
	uint64_t room = free_bytes();
	uint64_t most = 0;

	if (room == UINT64_MAX)
		return true;
	if (shm_mapped_bytes(bytes) < bytes || shm_mapped_bytes(bytes) > room)
		return false;
	room -= shm_mapped_bytes(bytes);
	for (int exact = 0; exact < 2; exact++) {
		most = 0;
		for (uint32_t ix = 0; ix < hi; ix++) {
			const struct segment_shm *s = shm_segment(base, ix);
			uint64_t whole, has;

			if (!load_acquire(&s->object.live) || /* ID_P1/A */
			    (s->flags & SEGMENT_NORESERVE))
				continue;
			whole = shm_mapped_bytes(s->bytes);
			has = exact ? attach_file_pages(s) * PAGE_BYTES : 0;
			most += whole > has ? whole - has : 0;
		}
		if (most <= room) /* at the latest when what they have already is taken off */
			return true;
	}
	return false;
}
