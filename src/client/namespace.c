// SPDX-License-Identifier: MIT
/*
 * Namespaces as directories and files: trust, making, opening and removing.
 *
 * Every step goes by descriptor (O_PATH) from the base directory down, and what was opened is what
 * is checked, so nobody can exchange a directory between the check and the use. The base may be
 * anybody's (/dev/shm); the two directories below it must be ours.
 *
 * A region is built without a name and linked into place: there is no moment at which another
 * process sees a half-made one, and whoever dies meanwhile leaves nothing. Several may build at
 * once; the first link wins and the others use it. Directories may vanish at any time under a
 * creator, for removers clear up without asking: every path then begins again, a bounded number
 * of times. Removal itself is retire.h's; here is only what it does to the files.
 *
 * Called by the session on first use, by usysv and usysvd. Async-signal-safe but for
 * namespace_list(); leaves errno alone.
 */
#include "client/namespace.h"

#include <dirent.h>
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/memcheck.h"
#include "base/sys.h"
#include "base/text.h"
#include "client/hugefile.h"
#include "client/report.h"
#include "client/retire.h"
#include "core/region.h"

#define TMPFS_TYPE 0x01021994ul
#define ATTEMPTS   100

static const char REGION_NAME[] = "region";

static const char WHY_FULL[] = "the file system is full";
static const char WHY_LOCKED[] = "mlockall(MCL_FUTURE) locks all of it, and that is limited "
				 "(ulimit -l)";
static const char WHY_MAP[] = "its address space cannot be had: is it limited (ulimit -v)?";

/* ---- System calls, without errno and without what a preload interposes -------------------- */

static int sys_openat(int dir, const char *path, int flags, unsigned mode)
{
	return (int)sys_call(SYS_openat, dir, (long)path, flags | O_CLOEXEC | O_LARGEFILE,
			     (long)mode, 0, 0);
}

static void sys_close(int fd)
{
	if (fd >= 0)
		sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

static int sys_statx(int dir, const char *path, int flags, struct statx *ret)
{
	return (int)sys_call(SYS_statx, dir, (long)path, flags | AT_SYMLINK_NOFOLLOW,
			     STATX_BASIC_STATS, (long)ret, 0);
}

static int sys_unlinkat(int dir, const char *name, int flags)
{
	return (int)sys_call(SYS_unlinkat, dir, (long)name, flags, 0, 0, 0);
}

static uint32_t effective_uid(void)
{
#ifdef SYS_geteuid32
	return (uint32_t)sys_call(SYS_geteuid32, 0, 0, 0, 0, 0, 0);
#else
	return (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
#endif
}

/* Is the file system of fd a tmpfs, and has it room? */
static bool on_tmpfs(int fd, bool *ret_full)
{
	int saved = errno;
	struct statfs s;
	int r = fstatfs(fd, &s);

	errno = saved;
	*ret_full = r == 0 && s.f_blocks > 0 && s.f_bavail == 0;
	return r == 0 && (unsigned long)s.f_type == TMPFS_TYPE;
}

/* ---- Directories --------------------------------------------------------------------------- */

static int failed(int error, const char **ret_why)
{
	switch (-error) {
	case EACCES:
		*ret_why = "no permission";
		break;
	case ENOENT:
		*ret_why = "it does not exist";
		break;
	case ENOSPC:
	case EDQUOT:
		*ret_why = WHY_FULL;
		break;
	case EROFS:
		*ret_why = "the file system is read-only";
		break;
	case EMFILE:
	case ENFILE:
		*ret_why = "too many files are open (ulimit -n)";
		break;
	default:
		*ret_why = report_errno(-error);
	}
	return error;
}

static int check_owner(const struct statx *st, bool directory, const char **ret_why)
{
	if (st->stx_uid != effective_uid()) {
		*ret_why = directory ? "its directory belongs to another user"
				     : "its region file belongs to another user";
		return -EPERM;
	}
	if (st->stx_mode & (S_IWGRP | S_IWOTH)) {
		*ret_why = directory ? "its directory is writable by others (chmod 700 it, if you "
				       "trust what is inside)"
				     : "its region file is writable by others";
		return -EPERM;
	}
	return 0;
}

/*
 * Opens (making it, if *made is not null and it is missing) a directory that must be ours.
 * A umask may have taken the owner's rights from a new one; they are given back.
 */
static int enter(int parent, const char *name, bool *made, int *ret_fd, const char **ret_why)
{
	struct statx st;
	bool fresh = false;
	int fd, r;

	if (made) {
		r = (int)sys_call(SYS_mkdirat, parent, (long)name, 0700, 0, 0, 0);
		if (r == 0)
			*made = fresh = true;
		else if (r != -EEXIST)
			return failed(r, ret_why);
	}
	fd = sys_openat(parent, name, O_PATH | O_NOFOLLOW | O_DIRECTORY, 0);
	if (fd == -ENOTDIR || fd == -ELOOP) {
		*ret_why = sys_statx(parent, name, 0, &st) == 0 && S_ISLNK(st.stx_mode)
				   ? "its directory is a symbolic link"
				   : "a file is in the place of its directory";
		return -EPERM;
	}
	if (fd < 0)
		return failed(fd, ret_why);
	r = sys_statx(fd, "", AT_EMPTY_PATH, &st);
	r = r < 0 ? failed(r, ret_why) : check_owner(&st, true, ret_why);
	if (r == 0 && fresh && (st.stx_mode & 0777) != 0700) {
		char path[TEXT_DESCRIPTOR_BYTES];

		text_put_descriptor(path, fd);
		r = (int)sys_call(SYS_fchmodat, AT_FDCWD, (long)path, 0700, 0, 0, 0);
		if (r < 0)
			failed(r, ret_why);
	}
	if (r < 0) {
		sys_close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

struct directories {
	int base, root, dir;
	bool made_root, made_dir;
};
#define DIRECTORIES_NONE                                                                           \
	{                                                                                          \
		-1, -1, -1, false, false                                                           \
	}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void leave(struct directories *d)
{
	sys_close(d->base);
	sys_close(d->root);
	sys_close(d->dir);
	d->base = d->root = d->dir = -1;
}

static int enter_root(const struct namespace_place *place, bool create, struct directories *d,
		      const char **ret_why)
{
	size_t n = (size_t)(last_part(place->root) - place->root);
	char *base = alloca(n + 1); /* the stack may be a small one of signal handlers */

	memcpy(base, place->root, n); /* with its last slash */
	base[n] = 0;
	d->base = sys_openat(AT_FDCWD, base, O_PATH | O_DIRECTORY, 0);
	if (d->base < 0) {
		int r = d->base;

		failed(r, ret_why);
		if (r == -ENOENT || r == -ENOTDIR) {
			/* another code than that of a missing namespace: it cannot be made */
			*ret_why = "the base directory does not exist";
			r = -ENOTDIR;
		}
		return r;
	}
	return enter(d->base, last_part(place->root), create ? &d->made_root : NULL, &d->root,
		     ret_why);
}

static int enter_all(const struct namespace_place *place, bool create, struct directories *d,
		     const char **ret_why)
{
	int r = enter_root(place, create, d, ret_why);

	return r < 0 ? r
		     : enter(d->root, place->name, create ? &d->made_dir : NULL, &d->dir, ret_why);
}

/* Takes back the directories made by a creation that failed, unless somebody uses them. */
static void unmake(const struct namespace_place *place, const struct directories *d)
{
	if (d->made_dir && d->root >= 0)
		sys_unlinkat(d->root, place->name, AT_REMOVEDIR);
	if (d->made_root && d->base >= 0)
		sys_unlinkat(d->base, last_part(place->root), AT_REMOVEDIR);
}

/* ---- The region file ----------------------------------------------------------------------- */

int namespace_map(int fd, unsigned char **ret_base, const char **ret_why)
{
	bool memcheck = memcheck_listens();
	int saved = errno;
	void *p;

	if (REGION_BYTES > SIZE_MAX) {
		*ret_why = "this program's addresses are too small for it";
		return -ENOMEM;
	}
	/* Under mlockall(MCL_FUTURE) a mapping that can be read is filled at once, all of it. But
	 * Memcheck works for minutes at such an mprotect(); Helgrind, at such a mapping. */
	p = mmap(NULL, (size_t)REGION_BYTES, memcheck ? PROT_READ | PROT_WRITE : PROT_NONE,
		 MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p != MAP_FAILED && !memcheck &&
	    (munlock(p, (size_t)REGION_BYTES) < 0 ||
	     mprotect(p, (size_t)REGION_BYTES, PROT_READ | PROT_WRITE) < 0)) {
		int error = errno;

		(void)munmap(p, (size_t)REGION_BYTES);
		errno = error;
		p = MAP_FAILED;
	}
	if (p == MAP_FAILED) {
		int error = errno;

		errno = saved;
		failed(-error, ret_why);
		if (error == ENOMEM)
			*ret_why = WHY_MAP;
		if (error != EAGAIN)
			return -error;
		*ret_why = WHY_LOCKED;
		return -ENOMEM;
	}
	(void)madvise(p, (size_t)REGION_BYTES, MADV_DONTDUMP); /* only core dumps suffer */
	if (memcheck) {
		(void)memcheck_ask(MEMCHECK_NOACCESS, p, (size_t)REGION_BYTES); /* cannot fail */
		(void)memcheck_ask(MEMCHECK_IGNORE, p, (size_t)REGION_BYTES);   /* as above */
	}
	errno = saved;
	*ret_base = p;
	return 0;
}

/* Size and first pages of a new region file. */
static int fill(int fd, unsigned flags, const char **ret_why)
{
	struct rlimit64 {
		uint64_t now, most;
	} limit;
	struct timespec now = {0, 0};
	uint32_t region_flags = (flags & NAMESPACE_AUTO ? REGION_AUTO : 0) |
				(flags & NAMESPACE_PRIVATE ? REGION_PRIVATE : 0);
	unsigned char *base;
	bool full;
	int saved = errno, r;

	/* Beyond the limit ftruncate() would send SIGXFSZ, which kills. */
	if (sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
	    limit.now < REGION_BYTES) {
		*ret_why =
			"the size of files is limited (ulimit -f), and a new region, although it "
			"takes little room, is a large sparse file";
		return -EFBIG;
	}
	r = (int)sys_call(SYS_fchmod, fd, 0600, 0, 0, 0, 0);
	if (r < 0)
		return failed(r, ret_why);
	r = ftruncate(fd, (off_t)REGION_BYTES) < 0 ? -errno : 0;
	errno = saved;
	if (r < 0)
		return failed(r, ret_why);
	r = namespace_map(fd, &base, ret_why);
	if (r < 0)
		return r;
	clock_gettime(CLOCK_REALTIME, &now);
	r = region_format(base, region_flags, now.tv_sec);
	munmap(base, (size_t)REGION_BYTES);
	if (r == -ENOMEM || r == -ENOSPC) {
		(void)on_tmpfs(fd, &full);
		r = full ? -ENOSPC : -ENOMEM;
		*ret_why = full ? WHY_FULL : "not enough memory (is the control group's limited?)";
	} else if (r < 0) {
		failed(r, ret_why);
	}
	return r;
}

/* Gives the nameless file of fd its name. -EEXIST: another was faster. */
static int publish(int fd, int dir)
{
	char path[TEXT_DESCRIPTOR_BYTES];
	int r = (int)sys_call(SYS_linkat, fd, (long)"", dir, (long)REGION_NAME, AT_EMPTY_PATH, 0);

	if (r == 0 || r == -EEXIST)
		return r;
	/* Linux before 6.10 wants a privilege for that, but not for this. */
	text_put_descriptor(path, fd);
	return (int)sys_call(SYS_linkat, AT_FDCWD, (long)path, dir, (long)REGION_NAME,
			     AT_SYMLINK_FOLLOW, 0);
}

/* 0 with *ret_fd; -EEXIST; -ENOENT: the directory has been removed meanwhile. */
static int make_region(int dir, unsigned flags, int *ret_fd, const char **ret_why)
{
	struct timespec now = {0, 0};
	struct statx st;
	char temporary[80], *p;
	int fd, r;

	fd = sys_openat(dir, ".", O_TMPFILE | O_RDWR, 0600);
	if (fd >= 0) {
		r = fill(fd, flags, ret_why);
		if (r == 0) {
			r = publish(fd, dir);
			if (r == 0) {
				*ret_fd = fd;
				return 0;
			}
			failed(r, ret_why);
			if (r == -ENOENT && sys_statx(dir, "", AT_EMPTY_PATH, &st) == 0 &&
			    st.stx_nlink > 0)
				r = -EOPNOTSUPP; /* no /proc: by way of a temporary name */
		}
		sys_close(fd);
	} else {
		r = failed(fd, ret_why);
	}
	if (r != -EOPNOTSUPP && r != -EISDIR && r != -EINVAL)
		return r;

	clock_gettime(CLOCK_MONOTONIC, &now);
	p = text_put_number(stpcpy(temporary, ".new-"),
			    (uint64_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0));
	p = text_put_number(stpcpy(p, "-"), (uint64_t)now.tv_sec);
	text_put_number(stpcpy(p, "."), (uint64_t)now.tv_nsec);
	fd = sys_openat(dir, temporary, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (fd < 0)
		return failed(fd, ret_why);
	r = fill(fd, flags, ret_why);
	if (r == 0) {
		r = (int)sys_call(SYS_linkat, dir, (long)temporary, dir, (long)REGION_NAME, 0, 0);
		if (r < 0)
			failed(r, ret_why);
	}
	sys_unlinkat(dir, temporary, 0);
	if (r < 0)
		sys_close(fd);
	else
		*ret_fd = fd;
	return r;
}

static int check_header(int fd, unsigned char *page, uint64_t file_bytes, uint32_t *ret_removed,
			const char **ret_why)
{
	const struct header_shm *h = (const void *)page;
	int saved = errno, r;
	ssize_t n = pread(fd, page, sizeof(*h), 0);

	r = n < 0 ? -errno : 0;
	errno = saved;
	if (r < 0)
		return failed(r, ret_why);
	if ((size_t)n < sizeof(*h)) {
		*ret_why = n == 0 ? "its region file is empty" : "its region file is truncated";
		return -EINVAL;
	}
	r = region_validate(page, file_bytes, ret_why);
	if (r == 0)
		*ret_removed = h->removed;
	return r;
}

/*
 * The header is read, not mapped: a hole would become a page of a file system that may be full,
 * and a truncated file a SIGBUS. Not to the stack, which may be a small one.
 */
static int check_region(int fd, uint32_t *ret_removed, const char **ret_why)
{
	struct statx st;
	int saved = errno, r;
	void *page;

	r = sys_statx(fd, "", AT_EMPTY_PATH, &st);
	if (r < 0)
		return failed(r, ret_why);
	if (!S_ISREG(st.stx_mode)) {
		*ret_why = "its region is not a regular file";
		return -EINVAL;
	}
	r = check_owner(&st, false, ret_why);
	if (r < 0)
		return r;
	_Static_assert(sizeof(struct header_shm) <= PAGE_BYTES, "the header outgrew its page");
	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	if (page == MAP_FAILED) {
		*ret_why = "a page of memory cannot be had: is it limited (ulimit -d, -v)?";
		return -ENOMEM;
	}
	r = check_header(fd, page, st.stx_size, ret_removed, ret_why);
	munmap(page, PAGE_BYTES);
	return r;
}

/* Takes back a removal that was asked for but is not final: whoever opens means to use it. */
static int cancel_removal(int fd, const char **ret_why)
{
	int saved = errno;
	void *p = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, HEADER_OFF);
	int error = errno;
	bool back;

	errno = saved;
	if (p == MAP_FAILED)
		return failed(-error, ret_why);
	back = retire_cancel(p);
	munmap(p, PAGE_BYTES);
	return back ? 0 : -ENOENT;
}

static int check_file_system(const struct namespace_place *place, int fd, bool creating,
			     const char **ret_why)
{
	bool full;

	if (on_tmpfs(fd, &full))
		return 0;
	if (!namespace_base_chosen(place)) {
		*ret_why = "it is not on a tmpfs, where alone it is fast; set USYSV_DIR to a "
			   "directory on one, or to this one if you mean it";
		return -EOPNOTSUPP;
	}
	if (creating)
		report(REPORT_PLACE,
		       "namespace %s: %s is not on a tmpfs: operations may wait for the disk; "
		       "set USYSV_DIR to a directory on a tmpfs",
		       place->name, place->dir);
	return 0;
}

/* One attempt. -EAGAIN: what was found is on its way out; start over. */
static int open_once(const struct namespace_place *place, unsigned flags, struct directories *d,
		     int *ret_fd, const char **ret_why)
{
	bool create = flags & NAMESPACE_CREATE;
	uint32_t removed = REMOVED_NO;
	int fd, r = enter_all(place, create, d, ret_why);

	if (r < 0)
		return r == -ENOENT && create ? -EAGAIN : r;
	fd = sys_openat(d->dir, REGION_NAME,
			(flags & NAMESPACE_LOOK ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -ENOENT && create) {
		r = check_file_system(place, d->dir, true, ret_why);
		if (r == 0)
			r = make_region(d->dir, flags, ret_fd, ret_why);
		return r == -ENOENT || (r == -EEXIST && !(flags & NAMESPACE_PRIVATE)) ? -EAGAIN : r;
	}
	if (fd == -ELOOP) {
		*ret_why = "its region is a symbolic link";
		return -EPERM;
	}
	if (fd < 0)
		return failed(fd, ret_why);
	r = check_region(fd, &removed, ret_why);
	if (r == 0)
		r = check_file_system(place, fd, false, ret_why);
	if (r == 0 && removed == REMOVED_ASKED && !(flags & NAMESPACE_LOOK)) {
		r = cancel_removal(fd, ret_why);
		if (r == -ENOENT)
			removed = REMOVED_FINAL;
	}
	if (removed == REMOVED_FINAL) {
		*ret_why = "it is being removed";
		r = -ENOENT;
		if (create) {
			(void)namespace_unlink(place); /* its remover may be dead */
			r = -EAGAIN;
		}
	} else if (r == 0 && (flags & NAMESPACE_PRIVATE)) {
		*ret_why = "it exists already";
		r = -EEXIST;
	}
	if (r < 0)
		sys_close(fd);
	else
		*ret_fd = fd;
	return r;
}

int namespace_open(const struct namespace_place *place, unsigned flags, int *ret_fd,
		   const char **ret_why)
{
	struct directories d = DIRECTORIES_NONE;
	int r = -EAGAIN;

	*ret_why = "it is made and removed all the time";
	for (int i = 0; i < ATTEMPTS && r == -EAGAIN; i++) {
		r = open_once(place, flags, &d, ret_fd, ret_why);
		if (r < 0 && r != -EAGAIN)
			unmake(place, &d);
		leave(&d);
	}
	return r;
}

/* ---- Listing and removal ------------------------------------------------------------------- */

/* Calls back with each entry but "." and ".."; stops at what is not 0 and returns it. */
static int each_entry(int dir, int (*each)(const char *name, uint8_t type, void *context),
		      void *context)
{
	_Alignas(8) char buffer[4096];

	for (;;) {
		long n = sys_call(SYS_getdents64, dir, (long)buffer, sizeof(buffer), 0, 0, 0);

		if (n <= 0)
			return (int)n;
		for (long at = 0; at < n;) {
			const struct sys_dirent *e = (const void *)(buffer + at);

			at += e->bytes;
			if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
				continue;
			int r = each(e->name, e->type, context);
			if (r != 0)
				return r;
		}
	}
}

struct removal {
	const struct namespace_place *place;
	int dir;
	int removed; /* in this pass */
	int error;
};

struct segments {
	int dir;
	char huge_prefix[HUGEFILE_PREFIX_BYTES];
};

static int remove_file(const char *name, uint8_t type, void *context)
{
	const struct segments *s = context;

	if ((type != DT_LNK && type != DT_UNKNOWN) || !hugefile_drop(s->dir, s->huge_prefix, name))
		sys_unlinkat(s->dir, name, 0); /* what stays keeps its directory */
	return 0;
}

/* A directory in the namespace's, with the files in it: segments. */
static int remove_directory(const struct removal *rm, const char *name)
{
	char path[PATH_MAX];
	struct segments s = {
		.dir = sys_openat(rm->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)};
	int r;

	if (s.dir < 0)
		return s.dir;
	r = -ENAMETOOLONG;
	if (strlen(rm->place->dir) + strlen(name) + 2 <= sizeof(path)) {
		stpcpy(stpcpy(stpcpy(path, rm->place->dir), "/"), name);
		hugefile_prefix(s.huge_prefix, path, strlen(path));
		r = -ENOTEMPTY;
	}
	for (int i = 0; i < ATTEMPTS && r == -ENOTEMPTY; i++) {
		r = (int)sys_call(SYS_lseek, s.dir, 0, SEEK_SET, 0, 0, 0);
		if (r >= 0)
			r = each_entry(s.dir, remove_file, &s);
		if (r == 0)
			r = sys_unlinkat(rm->dir, name, AT_REMOVEDIR);
	}
	sys_close(s.dir);
	return r;
}

static int remove_entry(const char *name, uint8_t type, void *context)
{
	struct removal *rm = context;
	int r;

	(void)type;
	if (strcmp(name, REGION_NAME) == 0)
		return 0;
	r = sys_unlinkat(rm->dir, name, 0);
	if (r == -EISDIR)
		r = remove_directory(rm, name);
	if (r == 0)
		rm->removed++;
	else if (r != -ENOENT)
		rm->error = r;
	return 0;
}

/* Is the region in this directory one that works and that nobody has condemned? */
static bool still_wanted(int dir)
{
	const char *why;
	uint32_t removed;
	int fd = sys_openat(dir, REGION_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	bool wanted = fd >= 0 && check_region(fd, &removed, &why) == 0 && removed != REMOVED_FINAL;

	sys_close(fd);
	return wanted;
}

/*
 * Removers of one directory go one after the other: the second could else unlink what a creator
 * has put where the first one made room. So a region that works and is not condemned is refused
 * (-EBUSY), and who finds nothing left is content.
 */
int namespace_unlink(const struct namespace_place *place)
{
	struct directories d = DIRECTORIES_NONE;
	struct removal rm = {place, -1, 0, 0};
	const char *why;
	int r = enter_all(place, false, &d, &why);

	if (r < 0)
		goto out;
	rm.dir = sys_openat(d.dir, ".", O_RDONLY | O_DIRECTORY, 0);
	if (rm.dir < 0) {
		r = rm.dir;
		goto out;
	}
	do
		r = (int)sys_call(SYS_flock, rm.dir, LOCK_EX, 0, 0, 0, 0);
	while (r == -EINTR);
	if (r < 0)
		goto out;
	if (still_wanted(rm.dir)) {
		r = -EBUSY;
		goto out;
	}
	do {
		rm.removed = rm.error = 0;
		r = (int)sys_call(SYS_lseek, rm.dir, 0, SEEK_SET, 0, 0, 0);
		if (r >= 0)
			r = each_entry(rm.dir, remove_entry, &rm);
	} while (r == 0 && rm.removed > 0);
	if (r == 0)
		r = rm.error;
	if (r < 0)
		goto out;
	r = sys_unlinkat(rm.dir, REGION_NAME, 0);
	if (r == -ENOENT)
		r = 0;
	if (r == 0) {
		/* Not empty: a new namespace has begun there. Missing: another remover's work. */
		sys_unlinkat(d.root, place->name, AT_REMOVEDIR);
		sys_unlinkat(d.base, last_part(place->root), AT_REMOVEDIR);
	}
out:
	sys_close(rm.dir); /* and with it the lock */
	leave(&d);
	return r;
}

struct listing {
	int (*each)(const char *name, void *context);
	void *context;
};

static int list_entry(const char *name, uint8_t type, void *context)
{
	const struct listing *l = context;

	if ((type != DT_DIR && type != DT_UNKNOWN) || name[0] == '.' ||
	    strlen(name) > NAMESPACE_NAME_MAX)
		return 0;
	return l->each(name, l->context);
}

int namespace_list(int (*each)(const char *name, void *context), void *context)
{
	struct directories d = DIRECTORIES_NONE;
	struct listing l = {each, context};
	struct namespace_place place;
	const char *why;
	int dir, r = namespace_locate(NULL, &place, &why);

	if (r == -EINVAL) /* the name may be a bad one, but it matters to nobody here */
		r = namespace_locate("default", &place, &why);
	if (r == 0)
		r = enter_root(&place, false, &d, &why);
	if (r == 0) {
		r = dir = sys_openat(d.root, ".", O_RDONLY | O_DIRECTORY, 0);
		if (dir >= 0)
			r = each_entry(dir, list_entry, &l);
		sys_close(dir);
	}
	leave(&d);
	return r == -ENOENT ? 0 : r;
}
