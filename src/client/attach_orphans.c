// SPDX-License-Identifier: MIT
/*
 * A file is removed in two steps. Under the table's lock, where no segment can come to be, one that
 * is of no segment gets another name, from which nobody opens it; then it is unlinked, which may
 * take long, with nothing held. Dead in between, a new name is left, which is an orphan's.
 */
#include "client/attach_orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include "client/attach_dir.h"
#include "client/call.h"
#include "client/hugefile.h"
#include "client/lost.h"
#include "core/ids.h"
#include "core/rlock.h"
#include "ipc/shm.h"

#define ROUNDS       100
#define TICK_SECONDS 2 /* a younger change of a directory may not be its last with this time */

#define NOREPLACE 1 /* RENAME_NOREPLACE */

static const char GONE[] = "gone-";

static bool read_hex(const char **p, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 8; i++, (*p)++) {
		char c = **p;

		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*ret = *ret << 4 | (uint32_t)(c - 'a' + 10);
		else
			return false;
	}
	return true;
}

/* SYSV<key>-<id> of a segment that is there, removed or not. */
static bool is_wanted(const unsigned char *base, const char *name)
{
	const struct segment_shm *s;
	uint32_t key, ix;
	uint64_t id = 0;

	if (strncmp(name, "SYSV", 4) != 0)
		return false;
	name += 4;
	if (!read_hex(&name, &key) || *name++ != '-')
		return false;
	for (; *name >= '0' && *name <= '9' && id <= INT32_MAX; name++)
		id = id * 10 + (uint64_t)(*name - '0');
	if (*name || id > INT32_MAX || !ids_lookup(base, FAMILY_SHM, (int32_t)id, &ix))
		return false;
	s = shm_known_segment(base, ix);
	return (uint32_t)s->key == key && s->id == (int32_t)id;
}

int attach_orphans_each(const char *directory, const unsigned char *base,
			void (*each)(void *context, const char *name), void *context)
{
	char entries[2048] __attribute__((aligned(8)));
	long n, fd = sys_call(SYS_openat, AT_FDCWD, (long)directory,
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);

	if (fd < 0)
		return fd == -ENOENT ? 0 : (int)fd;
	while ((n = sys_call(SYS_getdents64, fd, (long)entries, sizeof(entries), 0, 0, 0)) > 0)
		for (long at = 0; at < n;) {
			const struct sys_dirent *e = (const void *)(entries + at);

			at += e->bytes;
			if (e->name[0] != '.' && !is_wanted(base, e->name))
				each(context, e->name);
		}
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return (int)n;
}

/* ---- Removing ---------------------------------------------------------------------------- */

/* Zeros, which another thread has put there and not yet said so. */
static bool is_empty(const unsigned char *base)
{
	return load_relaxed(&region_header(base)->magic) == 0; /* set before anybody attaches */
}

struct sweep {
	struct thread_block *tb;
	const char *directory;
	char huge_prefix[HUGEFILE_PREFIX_BYTES];
	uint32_t count;
	bool is_lost; /* the region: nothing it says of files counts any more */
};

static bool join(char to[PATH_MAX], const char *directory, const char *prefix, const char *name)
{
	size_t a = strlen(directory), b = strlen(prefix), c = strlen(name);

	if (a + b + c >= PATH_MAX)
		return false;
	strcpy(to, directory);
	strcpy(to + a, prefix);
	strcpy(to + a + b, name);
	return true;
}

/* Not onto another that is aside already: it may be a link, by which alone its file is found. It
 * goes in this walk, this one in the next. Under the lock nobody else moves one there. */
static int move_aside(const char *path, const char *aside)
{
	struct stat st;
	long r = sys_call(SYS_renameat2, AT_FDCWD, (long)path, AT_FDCWD, (long)aside, NOREPLACE, 0);

	if (r != -EINVAL && r != -ENOSYS) /* a file system, or a kernel, that cannot */
		return (int)r;
	r = sys_call(SYS_newfstatat, AT_FDCWD, (long)aside, (long)&st, AT_SYMLINK_NOFOLLOW, 0, 0);
	if (r != -ENOENT)
		return r < 0 ? (int)r : -EEXIST;
	return (int)sys_call(SYS_renameat, AT_FDCWD, (long)path, AT_FDCWD, (long)aside, 0, 0);
}

/* Out of the way of segments to come. */
static int set_aside(struct caller *c, const char *name, const char *path, const char *aside)
{
	int rc = rlock_acquire(c, ids_table_lock(FAMILY_SHM));

	if (rc != OUTCOME_DONE)
		return rc;
	rc = is_wanted(c->base, name) ? -EEXIST : 0;
	if (lost_region() || is_empty(c->base)) /* then no file seems to be wanted */
		rc = -ENOTRECOVERABLE;
	if (rc == 0)
		rc = move_aside(path, aside);
	rlock_release(c, ids_table_lock(FAMILY_SHM));
	return rc;
}

static void remove_one(void *context, const char *name)
{
	struct sweep *w = context;
	char path[PATH_MAX], aside[PATH_MAX];
	const char *doomed = path;
	int rc = 0;

	if (w->is_lost || !join(path, w->directory, "", name))
		return;
	if (strncmp(name, GONE, sizeof(GONE) - 1) != 0) {
		if (!join(aside, w->directory, GONE, name))
			return;
		do {
			call_enter(w->tb);
			rc = set_aside(&w->tb->caller, name, path, aside);
		} while (call_again(w->tb, rc));
		w->is_lost = rc == -ENOTRECOVERABLE;
		doomed = aside;
	}
	if (rc == 0 && (hugefile_drop(AT_FDCWD, w->huge_prefix, doomed) ||
			sys_call(SYS_unlinkat, AT_FDCWD, (long)doomed, 0, 0, 0, 0) == 0))
		w->count++;
}

/* What tells that nothing has changed. */
struct moment {
	int64_t changed_s, changed_ns;
	uint32_t generation, in_use;
};

static bool look(const unsigned char *base, const char *directory, struct moment *ret)
{
	const struct table_shm *t = &region_header(base)->table[FAMILY_SHM];
	struct stat st;

	*ret = (struct moment){0};
	if (sys_call(SYS_newfstatat, AT_FDCWD, (long)directory, (long)&st, 0, 0, 0) < 0)
		return false;
	ret->changed_s = st.st_mtim.tv_sec;
	ret->changed_ns = st.st_mtim.tv_nsec;
	ret->generation = load_relaxed(&t->generation); /* of one moment; it is looked again */
	ret->in_use = load_relaxed(&t->in_use);         /* the same */
	return true;
}

uint32_t attach_orphans_remove(struct thread_block *tb)
{
	static struct moment clean; /* when there were none */
	struct sweep w = {.tb = tb, .directory = attach_dir_path()};
	struct moment now;
	uint32_t sum = 0;

	if (lost_region() || !w.directory || !look(tb->caller.base, w.directory, &now) ||
	    memcmp(&now, &clean, sizeof(now)) == 0)
		return 0;
	hugefile_prefix(w.huge_prefix, w.directory, strlen(w.directory) - 1);
	/* Again while there are some: what is removed may hide others from the walk. */
	for (int round = 0; round < ROUNDS; round++) {
		w.count = 0;
		if (attach_orphans_each(w.directory, tb->caller.base, remove_one, &w) < 0)
			return sum;
		sum += w.count;
		if (w.is_lost)
			return sum;
		if (w.count == 0)
			break;
	}
	if (sum == 0 && now.changed_s + TICK_SECONDS < time(NULL))
		clean = now;
	return sum;
}
