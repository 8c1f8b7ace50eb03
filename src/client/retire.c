// SPDX-License-Identifier: MIT
/* The end of a namespace; the protocol is in the header. */
#include "client/retire.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "core/ids.h"
#include "core/region.h"

static uint32_t count(const unsigned char *base, uint32_t flags)
{
	/* RETIRE_P1/A: who entered before the request has been registered when it was made */
	uint32_t hi = region_proc_count(base), n = 0;

	for (uint32_t i = 0; i < hi; i++) {
		const struct proc_shm *p = region_proc(base, i);

		/* RETIRE_P1/A */
		if (p && load_acquire(&p->state) != PROC_FREE &&
		    (load_acquire(&p->flags) & PROC_REAPER) == flags)
			n++;
	}
	return n;
}

uint32_t retire_users(const unsigned char *base)
{
	return count(base, 0);
}

uint32_t retire_reapers(const unsigned char *base)
{
	return count(base, PROC_REAPER);
}

bool retire_is_final(const unsigned char *base)
{
	return load_acquire(&region_header(base)->removed) == REMOVED_FINAL; /* RETIRE_P1/A */
}

bool retire_done(int fd, const unsigned char *base)
{
	struct statx st;

	if (retire_is_final(base))
		return true;
	return sys_call(SYS_statx, fd, (long)"", AT_EMPTY_PATH, STATX_NLINK, (long)&st, 0) == 0 &&
	       st.stx_nlink == 0;
}

bool retire_cancel(const unsigned char *base)
{
	uint32_t *removed = &region_header(base)->removed;
	uint32_t seen = REMOVED_ASKED;

	/* RETIRE_P1/AR. Read by writing nothing: so a remover who comes later sees what came
	 * before. */
	if (fetch_or(removed, 0) == REMOVED_NO)
		return true;
	return cas(removed, &seen, REMOVED_NO) || seen == REMOVED_NO; /* RETIRE_P1/AR */
}

static bool has_objects(const unsigned char *base)
{
	for (int f = 0; f < FAMILY_COUNT; f++)
		if (ids_highest(base, (enum family)f) >= 0)
			return true;
	return false;
}

int retire_namespace(const struct namespace_place *place, int fd, const unsigned char *base,
		     unsigned flags)
{
	uint32_t *removed = &region_header(base)->removed;
	uint32_t seen = REMOVED_NO;
	int r = (int)sys_call(SYS_flock, fd, LOCK_EX | LOCK_NB, 0, 0, 0, 0);

	if (r < 0)
		return r == -EWOULDBLOCK ? -EBUSY : r;
	/* RETIRE_P1/AR. A request left by a dead remover is as good as a new one. */
	if (!cas(removed, &seen, REMOVED_ASKED) && seen == REMOVED_FINAL)
		goto unlink;
	seen = REMOVED_ASKED;
	if (flags & RETIRE_FORCE)
		(void)exchange(removed, REMOVED_FINAL); /* RETIRE_P1/R */
	else if (retire_users(base) > 0)
		r = -EBUSY;
	else if ((flags & RETIRE_EMPTY) && has_objects(base))
		r = -ENOTEMPTY;
	else if (!cas(removed, &seen, REMOVED_FINAL)) /* RETIRE_P1/R */
		r = -EBUSY;
	if (r < 0) {
		(void)retire_cancel(base); /* who entered meanwhile may have done it */
		goto unlock;
	}
unlink:
	r = namespace_unlink(place);
unlock:
	sys_call(SYS_flock, fd, LOCK_UN, 0, 0, 0, 0);
	return r;
}
