// SPDX-License-Identifier: MIT
/*
 * Tokens that the kernel keeps for a process: byte locks on the region's file whose open file
 * description is held by a mapping alone. A token goes with the last mapping, at whatever kind of
 * end, and closing descriptors does not touch it.
 *
 * The token of a process slot belongs to one image: its mapping is not inherited, but for the one
 * that a parent makes for a child.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "client/session_priv.h"
#include "client/spare.h"
#include "core/procs.h"
#include "core/region.h"

static long lock_bytes(long fd, int cmd, short type, long long start, long long length,
		       struct flock *lock)
{
	*lock = (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
	return sys_call(SYS_fcntl, fd, cmd, (long)lock, 0, 0, 0);
}

static void close_file(long fd)
{
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

long session_open_region(void)
{
	struct stat st;
	long fd = sys_call(SYS_openat, AT_FDCWD, (long)session.place.region,
			   O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);

	if (fd < 0)
		return fd;
	if (sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0) < 0 || st.st_dev != session.dev ||
	    st.st_ino != session.ino) {
		close_file(fd);
		return -ESTALE;
	}
	return fd;
}

/* The mapping that keeps the description; null when there is no room for it. */
static void *map_page(long fd)
{
	long page = sys_call(SYS_mmap, 0, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	return page < 0 && page > -4096 ? NULL : (void *)page;
}

/* What is wanted of a token, and what came of it. */
struct request {
	uint32_t ix;
	pid_t pid;
	void *token;
	bool is_free;
};

bool session_token_is_free_by(long fd, uint32_t proc_ix)
{
	struct flock lock;

	return lock_bytes(fd, F_OFD_GETLK, F_WRLCK, proc_ix, 1, &lock) == 0 &&
	       lock.l_type == F_UNLCK;
}

static int probe(void *context)
{
	struct request *rq = context;
	long fd = session_open_region();

	if (fd < 0)
		return (int)fd;
	rq->is_free = session_token_is_free_by(fd, rq->ix);
	close_file(fd);
	return 0;
}

bool session_token_is_free(uint32_t proc_ix)
{
	struct request rq = {.ix = proc_ix};

	return spare_run(probe, &rq, sizeof(rq)) == 0 && rq.is_free;
}

static int take(void *context)
{
	struct request *rq = context;
	struct flock lock;
	long fd = session_open_region();

	if (fd < 0)
		return (int)fd;
	if (lock_bytes(fd, F_OFD_SETLK, F_WRLCK, rq->ix, 1, &lock) == 0)
		rq->token = map_page(fd);
	close_file(fd);
	return 0;
}

bool session_take_token(uint32_t ix, void **ret_token)
{
	struct request rq = {.ix = ix};

	if (spare_run(take, &rq, sizeof(rq)) < 0)
		return false;
	*ret_token = rq.token;
	session_keep_from_children(rq.token);
	return rq.token != NULL;
}

static bool lock_slot(void *context, uint32_t ix)
{
	struct flock lock;

	return lock_bytes(*(long *)context, F_OFD_SETLK, F_WRLCK, ix, 1, &lock) == 0;
}

static int reserve(void *context)
{
	struct request *rq = context;
	struct flock lock;
	long fd = session_open_region();
	int rc;

	if (fd < 0)
		return (int)fd;
	rc = procs_reserve(session.base, lock_slot, &fd, (uint32_t)rq->pid, &rq->ix);
	if (rc == 0) {
		/* Bytes of slots that somebody else reserved at the same moment. */
		if (rq->ix > 0)
			(void)lock_bytes(fd, F_OFD_SETLK, F_UNLCK, 0, rq->ix, &lock);
		rq->token = map_page(fd);
		if (!rq->token) {
			procs_unreserve(session.base, rq->ix, PROC_WORD(PROC_RESERVED, rq->pid));
			rc = -ENOMEM;
		}
	}
	close_file(fd);
	return rc;
}

int session_reserve(pid_t pid, bool for_child, void **ret_token, uint32_t *ret_ix)
{
	struct request rq = {.pid = pid};
	int rc = spare_run(reserve, &rq, sizeof(rq));

	if (rc < 0)
		return rc;
	if (!for_child)
		session_keep_from_children(rq.token);
	*ret_token = rq.token;
	*ret_ix = rq.ix;
	return 0;
}

void session_keep_from_children(void *token)
{
	if (token)
		sys_call(SYS_madvise, (long)token, PAGE_BYTES, MADV_DONTFORK, 0, 0, 0);
}

void session_drop_token(void *token)
{
	if (token)
		sys_call(SYS_munmap, (long)token, PAGE_BYTES, 0, 0, 0, 0);
}
