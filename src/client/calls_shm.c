// SPDX-License-Identifier: MIT
/*
 * The calls of the shared memory family as programs make them: what is checked, and in which order,
 * as Linux does it; the work is the engine's (ipc/shm.h) and attach.h's. See calls.h for the
 * contract.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys.h"
#include "base/text.h"
#include "client/attach.h"
#include "client/attach_file.h"
#include "client/attach_room.h"
#include "client/attach_used.h"
#include "client/call.h"
#include "client/calls.h"
#include "client/hugefile.h"
#include "client/report.h"
#include "client/retire.h"
#include "client/session.h"
#include "client/spare.h"
#include "core/ids.h"
#include "core/region.h"
#include "ipc/shm.h"

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif
#ifndef SHM_EXEC
#define SHM_EXEC 0100000
#endif

#define HUGE_SHIFT 26 /* SHM_HUGE_SHIFT */
#define HUGE_MASK  0x3f
#define ASK_TRIES  1000
#define LARGEST    ((uint64_t)INT64_MAX) /* of files */

/* ---- shmget ------------------------------------------------------------------------------ */

struct number {
	const char *path;
	long value;
};

static int try_number(void *context)
{
	struct number *number = context;
	char text[32];
	long n = text_read(number->path, text, sizeof(text)), value = -1;

	if (n < 0)
		return (int)n;
	for (const char *p = text; *p >= '0' && *p <= '9'; p++)
		value = (value < 0 ? 0 : value * 10) + (*p - '0');
	number->value = value;
	return 0;
}

/* A number in a file of one line; -1: there is none. */
static long read_number(const char *path)
{
	struct number number = {path, -1};

	(void)spare_run(try_number, &number, sizeof(number)); /* then there is none */
	return number.value;
}

static bool huge_size_exists(uint32_t shift)
{
	char path[64] = "/sys/kernel/mm/hugepages/hugepages-";

	stpcpy(text_put_number(path + strlen(path), 1ull << (shift - 10)), "kB");
	return sys_call(SYS_faccessat, AT_FDCWD, (long)path, F_OK, 0, 0, 0) == 0;
}

static uint64_t memlock_limit(void)
{
	struct rlimit limit;

	if (sys_call(SYS_prlimit64, 0, RLIMIT_MEMLOCK, 0, (long)&limit, 0, 0) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/* Older kernels also let pass what is within RLIMIT_MEMLOCK. */
static bool may_use_huge(const struct creds *who)
{
	long group;

	if (who->cap_ipc_lock)
		return true;
	group = read_number("/proc/sys/vm/hugetlb_shm_group");
	if (group == (long)who->fsgid)
		return true;
	for (size_t i = 0; i < who->group_count; i++)
		if (group == (long)who->groups[i])
			return true;
	return false;
}

static int admit_huge(const struct caller *c, struct shm_request *rq)
{
	uint32_t shift = rq->flags >> HUGE_SHIFT & HUGE_MASK;

	if (shift && (shift < 12 || !huge_size_exists(shift)))
		return -EINVAL;
	if (!may_use_huge(c->creds))
		return -EPERM;
	rq->huge_shift = shift ? shift : hugefile_default_shift();
	if (!rq->huge_shift ||
	    !attach_room_has_huge(rq->huge_shift, rq->bytes, !(rq->flags & SHMF_NORESERVE)))
		return -ENOMEM;
	return 0;
}

/* May a new segment of this size be? */
static int admit(const struct caller *c, struct shm_request *rq)
{
	if (rq->flags & SHMF_HUGETLB)
		return admit_huge(c, rq);
	if (rq->bytes > LARGEST)
		return -EINVAL;
	if (!(rq->flags & SHMF_NORESERVE) && !attach_room_is_enough(c->base, rq->bytes))
		return -ENOMEM;
	return 0;
}

static long remove_segment(struct thread_block *tb, int id);

/* The pages are taken when the segment is there, or it goes again: somebody was faster. */
static int finish_huge(struct thread_block *tb, int32_t id)
{
	int rc = attach_make(tb, id);

	if (rc >= 0 || rc == -EINTR || rc == -EINVAL || rc == -EIDRM || rc == -ENOTRECOVERABLE)
		return rc == -ENOTRECOVERABLE ? rc : 0;
	(void)remove_segment(tb, id); /* or somebody else does */
	return -ENOMEM;
}

static int get_segment(struct thread_block *tb, struct shm_request *rq, int32_t *ret_id)
{
	int rc;

	do {
		call_enter(tb);
		rq->now = time(NULL);
		rc = shm_get(&tb->caller, rq, ret_id);
		/* Others that create meanwhile want room, too. */
		for (int tries = 0; rc == OUTCOME_ASK; tries++) {
			rq->admitted_at = tries < ASK_TRIES ? shm_moment(tb->caller.base) : 0;
			rc = admit(&tb->caller, rq);
			rq->admitted = true;
			if (rc == 0)
				rc = shm_get(&tb->caller, rq, ret_id);
		}
	} while (call_again(tb, rc));
	return rc;
}

long call_shmget(key_t key, size_t bytes, int flags)
{
	bool created = false;
	struct shm_request rq, wanted = {.key = key,
					 .bytes = bytes,
					 .flags = (uint32_t)flags,
					 .ret_created = &created};
	int32_t id = -1;
	int error = 0, rc;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (retire_is_final(tb->caller.base))
		return -EIDRM;
	wanted.tid = region_self(&tb->caller)->tid;
	rq = wanted;
	rc = get_segment(tb, &rq, &id);
	if (rc == -ENOSPC || rc == -ENOMEM) {
		/* what was removed and only the dead had takes no room */
		(void)session_sweep(SWEEP_DOUBTFUL);
		rq = wanted;
		rc = get_segment(tb, &rq, &id);
	}
	if (rc == 0 && created && rq.huge_shift)
		rc = finish_huge(tb, id);
	return rc < 0 ? rc : id;
}

/* ---- shmat and shmdt --------------------------------------------------------------------- */

long call_shmat(int id, const void *address, int flags)
{
	struct attach_request rq = {
		.id = id,
		.wanted = flags & SHM_RDONLY ? 4 : 6,
		.read_only = flags & SHM_RDONLY,
		.execute = flags & SHM_EXEC,
		.fixed = address != NULL,
		.replace = flags & SHM_REMAP,
		.address = (uint64_t)(uintptr_t)address,
	};
	int error = 0, rc;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (id < 0)
		return -EINVAL;
	if (rq.address & (uint64_t)(SHMLBA - 1)) {
		if (flags & SHM_RND)
			rq.address &= ~(uint64_t)(SHMLBA - 1);
		else if (rq.address % PAGE_BYTES)
			return -EINVAL;
	}
	if (rq.replace && rq.address == 0)
		return -EINVAL;
	if (rq.execute)
		rq.wanted |= 1;
	attach_drop_unused(tb, id);
	rc = attach_segment(tb, &rq);
	if ((rc == -ENOENT || rc == -ESTALE) && retire_is_final(tb->caller.base)) {
		rc = -EIDRM; /* still attached somewhere, but its file is gone */
	} else if (rc == -ENOENT || rc == -ESTALE) {
		/* no way to the file, after chroot say; or somebody has removed it */
		report(REPORT_SEGMENT, "shmat: the memory of segment %d cannot be reached: %s", id,
		       report_errno(-rc));
		rc = -EACCES;
	}
	return rc < 0 ? rc : (long)rq.address;
}

long call_shmdt(const void *address)
{
	int error = 0;
	struct thread_block *tb = session_thread(&error);

	return tb ? attach_detach(tb, (uint64_t)(uintptr_t)address) : error;
}

/* ---- shmctl ------------------------------------------------------------------------------ */

static int highest(const unsigned char *base)
{
	int32_t ix = ids_highest(base, FAMILY_SHM);

	return ix < 0 ? 0 : ix;
}

static long limits(struct thread_block *tb, void *user)
{
	const struct limits_shm *l = &region_header(tb->caller.base)->limits;
	struct shminfo info;
	int rc;

	memset(&info, 0, sizeof(info));
	info.shmmax = l->shmmax;
	info.shmmin = 1;
	info.shmmni = l->shmmni;
	info.shmseg = l->shmmni;
	info.shmall = l->shmall;
	rc = call_copy_out(tb, user, &info, sizeof(info));
	return rc < 0 ? rc : highest(tb->caller.base);
}

static long usage(struct thread_block *tb, void *user)
{
	const unsigned char *base = tb->caller.base;
	struct shm_info info;
	int rc;

	memset(&info, 0, sizeof(info));
	/* the table's sums still have what somebody is just taking away */
	for (int ix = 0; ix <= highest(base); ix++) {
		const struct segment_shm *s = shm_segment(base, (uint32_t)ix);

		if (!s || !load_acquire(&s->object.live)) /* ID_P1/A */
			continue;
		info.used_ids++;
		info.shm_tot += shm_total(base, (uint32_t)ix);
		info.shm_rss += attach_file_pages(s);
	}
	rc = call_copy_out(tb, user, &info, sizeof(info));
	return rc < 0 ? rc : highest(base);
}

static long stat_segment(struct thread_block *tb, int id, int cmd, void *user)
{
	struct shmid_ds ds;
	struct shm_status st;
	uint64_t attached = 0;
	int rc = attach_stat(tb, id, cmd != IPC_STAT, cmd == SHM_STAT_ANY, NULL, &st, &attached);

	if (rc < 0)
		return rc;
	memset(&ds, 0, sizeof(ds));
	call_fill_perm(&ds.shm_perm, &st.segment.object, st.id);
	if (st.segment.object.mode & SEGMENT_DEST)
		ds.shm_perm.__key = 0;
	ds.shm_segsz = st.segment.bytes;
	ds.shm_atime = st.segment.atime;
	ds.shm_dtime = st.segment.dtime;
	ds.shm_ctime = st.segment.object.ctime;
	ds.shm_cpid = (pid_t)st.segment.cpid;
	ds.shm_lpid = (pid_t)st.segment.lpid;
	ds.shm_nattch = attached;
	rc = call_copy_out(tb, user, &ds, sizeof(ds));
	return rc < 0 ? rc : cmd == IPC_STAT ? 0 : st.id;
}

static long set_owner(struct thread_block *tb, int id, const void *user)
{
	struct shmid_ds ds;
	int rc = call_copy_in(tb, &ds, user, sizeof(ds));

	if (rc < 0)
		return rc;
	do {
		call_enter(tb);
		rc = shm_set_owner(&tb->caller, id, ds.shm_perm.uid, ds.shm_perm.gid,
				   ds.shm_perm.mode, time(NULL));
	} while (call_again(tb, rc));
	return rc;
}

static long remove_segment(struct thread_block *tb, int id)
{
	bool marked = false;
	int rc;

	do {
		call_enter(tb);
		rc = shm_mark_removed(&tb->caller, id, &marked);
	} while (call_again(tb, rc));
	if (rc == 0)
		attach_try_destroy(tb, id, true);
	return rc;
}

static long set_locked(struct thread_block *tb, int id, bool locked)
{
	uint64_t limit = memlock_limit();
	int rc;

	do {
		call_enter(tb);
		rc = shm_set_locked(&tb->caller, id, locked, limit);
	} while (call_again(tb, rc));
	return rc;
}

long call_shmctl(int id, int cmd, void *user)
{
	int error = 0;
	struct thread_block *tb = session_thread(&error);

	if (!tb)
		return error;
	if (id < 0 || cmd < 0)
		return -EINVAL;
	if (cmd == IPC_SET || cmd == IPC_RMID || cmd == SHM_LOCK || cmd == SHM_UNLOCK)
		attach_drop_unused(tb, id);
	switch (cmd) {
	case IPC_INFO:
	case SHM_INFO:
		/* no segment of the dead is counted, nor its index shown */
		(void)session_sweep(SWEEP_DOUBTFUL);
		return cmd == IPC_INFO ? limits(tb, user) : usage(tb, user);
	case IPC_STAT:
	case SHM_STAT:
	case SHM_STAT_ANY:
		return stat_segment(tb, id, cmd, user);
	case IPC_SET:
		return set_owner(tb, id, user);
	case IPC_RMID:
		return remove_segment(tb, id);
	case SHM_LOCK:
		return set_locked(tb, id, true);
	case SHM_UNLOCK:
		return set_locked(tb, id, false);
	default:
		return -EINVAL;
	}
}
