// SPDX-License-Identifier: MIT
/*
 * mlockall(2) without the region.
 *
 * The kernel makes all of what it locks real: of a region tens of gigabytes, although next to
 * nothing of it is in use. And the region's size counts against RLIMIT_MEMLOCK. So everything is
 * locked as if on fault, which makes nothing real, and then mapping by mapping as the caller wants
 * it, but for regions, which are unlocked. They are known by their size: one that another thread is
 * just attaching, or that this process has left, is one too.
 *
 * By mlockall(MCL_FUTURE) alone nothing is made real; whoever attaches later sees to it then
 * (namespace_map()).
 *
 * mlockall(MCL_CURRENT) also ends an earlier MCL_FUTURE. Where the kernel refuses it for the
 * region's size, only munlockall() does so; all is then locked anew at once.
 *
 * A process that dies on the way takes its mappings along.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/sys.h"
#include "client/attach_maps.h"
#include "client/session.h"
#include "client/spare.h"
#include "core/layout.h"
#include "preload/entry.h"
#include "preload/symbols.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

/* One walk over the mappings: its size without regions is taken, or each is locked. */
struct walk {
	bool locks, on_fault;
	uint64_t bytes;
};

static void visit(struct walk *w, const struct attach_vma *v)
{
	uint64_t bytes = v->end - v->start;
	const void *start = (const void *)(uintptr_t)v->start;

	if (bytes == REGION_BYTES) {
		if (w->locks)
			(void)NEXT(munlock)(start, bytes); /* cannot fail: all of it is there */
		return;
	}
	w->bytes += bytes;
	if (!w->locks)
		return;
	/* What cannot be made real (PROT_NONE) or has gone meanwhile does not matter to
	 * mlockall(). */
	if (w->on_fault)
		(void)sys_call(SYS_mlock2, (long)v->start, (long)bytes, MLOCK_ONFAULT, 0, 0, 0);
	else
		(void)NEXT(mlock)(start, bytes);
}

static int walk_mappings(void *context)
{
	struct walk *w = context;
	struct attach_maps maps;
	struct attach_vma v;
	uint64_t at = 0;
	int rc = attach_maps_open(&maps, 0);

	if (rc < 0)
		return rc;
	w->bytes = 0;
	while (attach_maps_next(&maps, at, true, &v)) {
		visit(w, &v);
		at = v.end;
	}
	return attach_maps_close(&maps);
}

/* Would the limit that the kernel has applied do for all but regions? */
static bool fits(void)
{
	struct walk w = {.locks = false};
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	       spare_run(walk_mappings, &w, sizeof(w)) == 0 && w.bytes <= limit.rlim_cur;
}

PUBLIC int mlockall(int flags)
{
	struct walk w = {.locks = true, .on_fault = flags & MCL_ONFAULT};
	int saved = errno, rc;

	if (!(flags & MCL_CURRENT) || !session_attached())
		return NEXT(mlockall)(flags);
	rc = NEXT(mlockall)(flags | MCL_ONFAULT);
	if (rc < 0 && (errno != ENOMEM || !fits()))
		return rc;
	if (rc < 0 && !(flags & MCL_FUTURE))
		(void)NEXT(munlockall)(); /* cannot fail; an interrupted one is a death */
	/* Without /proc all is locked when it is touched, if the kernel has locked it. */
	if (spare_run(walk_mappings, &w, sizeof(w)) < 0 && rc < 0) {
		errno = ENOMEM;
		return -1;
	}
	errno = saved;
	return flags & MCL_FUTURE ? NEXT(mlockall)(flags & ~MCL_CURRENT) : 0;
}
