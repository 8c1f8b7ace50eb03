// SPDX-License-Identifier: MIT
/*
 * Credentials. Read with raw calls; kept in a small ring of records, so that a thread that looks
 * at one while another refreshes sees the old or the new, never a mixture.
 */
#include "client/creds.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "client/thread.h"

#define RING          8
#define INLINE_GROUPS 64

struct record {
	struct creds creds;
	gid_t groups[INLINE_GROUPS];
	void *more;
	size_t more_bytes;
};

static struct record ring[RING];
/* A vfork child reads them at each call, into records apart: who shares its memory is another. */
static struct record borrowed[RING];
static uint32_t next_record;
static struct creds *current;
static uint32_t version; /* of what they are read from */

static long call0(long nr)
{
	return sys_call(nr, 0, 0, 0, 0, 0, 0);
}

static void read_groups(struct record *r)
{
	long n = sys_call(SYS_getgroups, 0, 0, 0, 0, 0, 0);

	r->creds.groups = r->groups;
	r->creds.group_count = 0;
	if (n > INLINE_GROUPS) {
		size_t bytes = (size_t)n * sizeof(gid_t);
		long p;

		if (r->more && r->more_bytes < bytes) {
			sys_call(SYS_munmap, (long)r->more, (long)r->more_bytes, 0, 0, 0, 0);
			r->more = NULL;
		}
		if (!r->more) {
			p = sys_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (p < 0 && p > -4096)
				return;
			r->more = (void *)p;
			r->more_bytes = bytes;
		}
		r->creds.groups = r->more;
	}
	n = sys_call(SYS_getgroups, n, (long)r->creds.groups, 0, 0, 0, 0);
	if (n > 0)
		r->creds.group_count = (size_t)n;
}

static bool has(const struct __user_cap_data_struct *data, int cap)
{
	return data[cap / 32].effective >> cap % 32 & 1;
}

static struct creds *read_creds(void)
{
	/* CREDS_P1/R: each refresh has a record of its own, until eight later ones */
	struct record *r = &(vfork_depth ? borrowed : ring)[fetch_add(&next_record, 1) % RING];
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};

	r->creds.uid = (uint32_t)call0(SYS_getuid);
	r->creds.euid = (uint32_t)call0(SYS_geteuid);
	r->creds.egid = (uint32_t)call0(SYS_getegid);
	r->creds.fsgid = (uint32_t)sys_call(SYS_setfsgid, -1, 0, 0, 0, 0, 0);
	read_groups(r);
	sys_call(SYS_capget, (long)&header, (long)data, 0, 0, 0, 0);
	r->creds.cap_ipc_lock = has(data, CAP_IPC_LOCK);
	r->creds.cap_ipc_owner = has(data, CAP_IPC_OWNER);
	r->creds.cap_sys_admin = has(data, CAP_SYS_ADMIN);
	r->creds.cap_sys_resource = has(data, CAP_SYS_RESOURCE);
	return &r->creds;
}

/*
 *   CREDS_P1  cached credentials
 *    word      current (private memory of the process)
 *    states    null (stale) > record > null
 *    writers   any thread
 *    order     R of the store pairs with A of the load; publishes the record
 *    stale-ok  null at any time: read again
 *    death     private memory: none
 *    progress  wait-free
 *    tests     conform/perm
 */
const struct creds *creds_current(void)
{
	struct creds *c;

	if (vfork_depth)
		return read_creds();
	c = load_acquire(&current); /* CREDS_P1/A */
	if (!c) {
		uint32_t before = load_acquire(&version); /* CREDS_P1/A */

		c = read_creds();
		store_release(&current, c);            /* CREDS_P1/R */
		if (fetch_add(&version, 0) != before)  /* CREDS_P1/AR: changed while we read */
			store_release(&current, NULL); /* CREDS_P1/R */
	}
	return c;
}

void creds_invalidate(void)
{
	fetch_add(&version, 1); /* CREDS_P1/AR: before, so that a reader of the old notices */
	store_release(&current, NULL); /* CREDS_P1/R */
}
