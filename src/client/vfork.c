// SPDX-License-Identifier: MIT
/*
 * Records of vfork children. One belongs to the thread that called vfork() and to how deep it is:
 * while the child runs, nobody else runs on that stack. A child that exits gives its record back;
 * one that execs cannot, for its parent goes on at that very moment: then the next child in the
 * same place finds a record with another process's id and takes it over, with what is left to
 * unmap.
 */
#include "client/vfork.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/ident.h"
#include "base/sys.h"
#include "client/life.h"

#define RECORDS 64

__thread uint32_t vfork_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));

static struct process_record records[RECORDS];

static void unmap_block(struct process_record *r)
{
	if (r->block)
		life_unmap((unsigned char *)r->block - LIFE_NODE_BYTES);
	r->block = NULL;
}

static struct process_record *find(void)
{
	for (unsigned i = 0; i < RECORDS; i++)
		/* relaxed: only this thread writes its own address there */
		if (load_relaxed(&records[i].thread) == &vfork_depth &&
		    records[i].depth == vfork_depth)
			return &records[i];
	return NULL;
}

static pid_t own_pid(void)
{
	return (pid_t)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

struct process_record *vfork_record(void)
{
	struct process_record *r = find();

	return r && r->pid == own_pid() ? r : NULL;
}

/* Left by a child that has execed and ended since, of a thread that may be gone too. */
static bool is_left(const struct process_record *r)
{
	return !r->thread || ident_process(r->pid, 0) == IDENT_GONE;
}

struct process_record *vfork_record_made(void)
{
	struct process_record *r = find();
	pid_t pid = own_pid();

	if (r && r->pid == pid)
		return r;
	for (unsigned i = 0; !r && i < RECORDS; i++)
		if (is_left(&records[i]))
			r = &records[i];
	if (!r)
		return NULL;
	unmap_block(r);
	r->registered = r->anew = false;
	r->pid = pid;
	r->token = NULL;
	r->depth = vfork_depth;
	store_relaxed(&r->thread, &vfork_depth); /* relaxed: as above */
	return r;
}

void vfork_record_free(struct process_record *r)
{
	/* The kernel need not look for the life word: the slot has been given back. */
	sys_call(SYS_set_robust_list, 0, sizeof(struct robust_list_head), 0, 0, 0, 0);
	unmap_block(r);
	r->registered = false;
	store_relaxed(&r->thread, NULL); /* relaxed: as above */
}
