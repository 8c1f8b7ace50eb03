// SPDX-License-Identifier: MIT
/*
 * Records of vfork children. One belongs to the thread that called vfork() and to how deep it is:
 * while the child runs, nobody else runs on that stack. A child that exits gives its record back;
 * for one that execs or is killed the thread does it that goes on then. What is to be unmapped is
 * left to the record's next user: a helper of the child's (spare.c) may run for a moment more.
 */
#include "client/vfork.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "client/life.h"
#include "client/mutex.h"

#define RECORDS 64

__thread uint32_t vfork_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));

static struct process_record records[RECORDS];

static void unmap_block(struct process_record *r)
{
	if (r->block)
		life_unmap((unsigned char *)r->block - LIFE_NODE_BYTES);
	r->block = NULL;
}

static struct process_record *find(uint32_t depth)
{
	for (unsigned i = 0; i < RECORDS; i++)
		/* relaxed: only this thread writes its own address there */
		if (load_relaxed(&records[i].thread) == &vfork_depth && records[i].depth == depth)
			return &records[i];
	return NULL;
}

static pid_t own_pid(void)
{
	return (pid_t)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

struct process_record *vfork_record(void)
{
	struct process_record *r = find(vfork_depth);

	return r && r->pid == own_pid() ? r : NULL;
}

struct process_record *vfork_record_made(void)
{
	struct process_record *r = find(vfork_depth);
	pid_t pid = own_pid();

	if (r && r->pid == pid)
		return r;
	for (unsigned i = 0; !r && i < RECORDS; i++)
		if (!load_acquire(&records[i].thread)) /* private */
			r = &records[i];
	if (!r)
		return NULL;
	unmap_block(r);
	r->registered = r->anew = false;
	r->pid = pid;
	r->pid_view = 0;
	r->token = NULL;
	r->depth = vfork_depth;
	store_relaxed(&r->thread, &vfork_depth); /* relaxed: as above */
	return r;
}

static void free_record(struct process_record *r)
{
	r->registered = false;
	store_release(&r->thread, NULL); /* private: for other threads, whole */
}

void vfork_record_free(struct process_record *r)
{
	/* The kernel need not look for the life word: the slot has been given back. */
	sys_call(SYS_set_robust_list, 0, sizeof(struct robust_list_head), 0, 0, 0, 0);
	unmap_block(r);
	free_record(r);
}

void vfork_ended(void)
{
	struct process_record *r = find(vfork_depth + 1);

	mutex_vfork_ended();
	if (r)
		free_record(r);
}
