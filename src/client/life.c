// SPDX-License-Identifier: MIT
/*
 * Life words.
 *
 * A thread's robust list is walked by the kernel at its death: SIGKILL, exit, exec, before a parent
 * can see the death. Each word on it that holds the thread's id is marked FUTEX_OWNER_DIED. So a
 * look at a word tells whether its thread lives, with no system call.
 *
 * The list's nodes hold pointers of this process, which have no place in shared memory. The kernel
 * only knows the distance between node and word, fixed by the C library for its mutexes. So two
 * pages are mapped side by side: first the page of the region at whose end the life words of a
 * group lie, then a private one; the word is in the one, the node in the other. The private page
 * also holds the thread's block: it is wiped on fork, so that a child reads "not registered".
 *
 *   LIFE_P1  life word
 *    word      32-bit word at the end of a group's page
 *    states    tid (with FUTEX_WAITERS while somebody waits for the death) > OWNER_DIED > tid of
 *              the next thread in the slot; 0 for a thread that has no list of the kernel's kind
 *    writers   the thread, once; the kernel; whoever waits adds FUTEX_WAITERS by CAS
 *    order     R of procs_enter_thread pairs with A of the reader
 *    stale-ok  not marked although the thread is gone (its list was replaced or damaged): patient
 *              callers also ask for the image's token and for the thread's id
 *    death     marked by the kernel; that is what it is for
 *    progress  wait-free
 *    tests     unit/life
 *
 * A second word on the list is for the reaper, who would like to know of deaths at once: the kernel
 * wakes a single waiter of a word, and who waits for a lock should not come second. There is one in
 * a group, before its life words, and room for its node beside the nodes of the first two threads.
 * With musl, whose nodes are nearer to their words, there is none: it has room for five.
 *
 *   WATCH_P1  notice of a death
 *    word      watch word (of a group, before its life words); header_shm.undo_owners
 *    states    watch word: 0 > tid (with FUTEX_WAITERS while it is watched) > OWNER_DIED > tid of
 *              another thread; 0 when a process takes the group
 *    writers   watch word: a thread of the group, by CAS from 0 or a marked one; who takes the
 *              group; the kernel; watchers add FUTEX_WAITERS by CAS. undo_owners: whoever comes to
 *              have undo records, by his first one or as the image that takes them over, adds one
 *    order     undo_ref is stored before undo_owners is counted up (R). A watcher reads that (A)
 *              before he looks for whom to watch, and sleeps only while it is the same
 *    stale-ok  everything: a missed notice is made up for by the region's close event, when the
 *              memory of the dead has gone (reaper/loop.h), and by looking once a second
 *    death     owner: that is what it is for. Between undo_ref and the count: not watched. Watcher:
 *              the next reaper's begins from nothing. Woken and killed before it has woken other
 *              waiters of the word: these look again by themselves
 *    progress  wait-free for all but the watcher
 *    tests     unit/life, unit/watch
 */
#include "client/life.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "client/session_priv.h"
#include "client/spare.h"
#include "core/region.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* As the C library lays its list out; the node of a mutex has `prev` right before `next`. Where the
 * words can lie decides where the nodes are: not always aligned. */
struct node {
	uintptr_t prev;
	uintptr_t next;
} __attribute__((packed, aligned(4)));

#define NODES_BYTES 40u /* at the beginning of the private page; a list of ours follows */

static bool is_error(long r)
{
	return r < 0 && r > -4096;
}

struct page {
	uint64_t off; /* in the region */
	long at;      /* where it shall be */
};

static int map_page(void *context)
{
	const struct page *p = context;
	long at, fd = session_open_region();

	if (fd < 0)
		return (int)fd;
	at = sys_call(SYS_mmap, p->at, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		      fd, (long)p->off);
	sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
	return is_error(at) ? (int)at : 0;
}

/* The page of the region once more, right before a private page. */
static int map_pair(unsigned char *base, uint64_t page_off, unsigned char **ret)
{
	long pair = sys_call(SYS_mmap, 0, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long first;

	if (is_error(pair))
		return (int)pair;
	/* That needs no descriptor and no path, but valgrind and qemu-user do not know it. */
	first = sys_call(SYS_mremap, (long)(base + page_off), 0, PAGE_BYTES,
			 MREMAP_MAYMOVE | MREMAP_FIXED, pair, 0);
	if (first == -EINVAL || first == -ENOMEM) {
		struct page page = {page_off, pair};

		first = spare_run(map_page, &page, sizeof(page));
	}
	if (!is_error(first)) {
		/* A child that has the page does nothing with it; one whose block is not wiped
		 * would take itself for its parent. */
		(void)sys_call(SYS_madvise, pair, PAGE_BYTES, MADV_DONTFORK, 0, 0, 0);
		first = sys_call(SYS_madvise, pair + PAGE_BYTES, PAGE_BYTES, MADV_WIPEONFORK, 0, 0,
				 0);
	}
	if (is_error(first)) {
		sys_call(SYS_munmap, pair, 2 * PAGE_BYTES, 0, 0, 0, 0);
		return (int)first;
	}
	*ret = (unsigned char *)pair;
	return 0;
}

/* At the head of the list, as the C library does it; one store puts it there. */
static void link_node(struct robust_list_head *head, struct node *node)
{
	uintptr_t next = (uintptr_t)head->list.next;

	node->prev = (uintptr_t)&head->list;
	node->next = next;
	crash_barrier();
	if ((next & ~(uintptr_t)1) != (uintptr_t)&head->list) {
		uintptr_t here = (uintptr_t)node + offsetof(struct node, next);

		memcpy((void *)((next & ~(uintptr_t)1) - sizeof(uintptr_t)), &here, sizeof(here));
	}
	head->list.next =
		(struct robust_list *)(void *)((unsigned char *)node + offsetof(struct node, next));
	crash_barrier();
}

/* The node of a word of the first page, which lies in the second; null: it does not, in a C library
 * with other distances. */
static struct node *node_of(unsigned char *pair, const struct robust_list_head *head,
			    uint64_t word_off)
{
	uintptr_t page = (uintptr_t)pair + PAGE_BYTES;
	uintptr_t node = (uintptr_t)pair + word_off - (uintptr_t)head->futex_offset -
			 offsetof(struct node, next);

	return node >= page && node + sizeof(struct node) <= page + NODES_BYTES
		       ? (struct node *)node
		       : NULL;
}

/*
 * The group's watch word becomes this thread's if it is nobody's and has room for a node. Not by
 * the pair, where a fault of a region that was cut off cannot be mended (lost.h).
 */
static void take_watch(uint32_t *word, unsigned char *pair, struct robust_list_head *head,
		       const struct node *own)
{
	struct node *node = node_of(pair, head, WATCH_WORD_OFF);
	uint32_t seen = load_acquire(word); /* WATCH_P1/A */

	if (!node || node + 1 > own || (seen && !(seen & LIFE_DIED)))
		return;
	if (cas(word, &seen, (uint32_t)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0))) /* WATCH_P1/R */
		link_node(head, node);
}

int life_begin(unsigned char *base, uint32_t thread_ix, void **ret_private, bool *ret_marked)
{
	struct robust_list_head *head = NULL;
	size_t length = 0;
	unsigned char *pair;
	uint64_t page = group_off(thread_ix / GROUP_SPAN);
	struct node *node;
	int rc = map_pair(base, page, &pair);

	*ret_marked = false;
	if (rc < 0)
		return rc;
	rc = (int)sys_call(SYS_get_robust_list, 0, (long)&head, (long)&length, 0, 0, 0);
	*ret_private = pair + PAGE_BYTES;
	if (rc < 0)
		return 0; /* forbidden (seccomp): deaths are found by the image's token */
	if (!head) {
		/* No list yet: one of ours, with the same distances. */
		head = (struct robust_list_head *)(void *)(pair + PAGE_BYTES + NODES_BYTES);
		head->list.next = &head->list;
		head->futex_offset = -32;
		head->list_op_pending = NULL;
		(void)sys_call(SYS_set_robust_list, (long)head, sizeof(*head), 0, 0, 0, 0);
	}
	node = node_of(pair, head, life_off(thread_ix) - page);
	if (!node)
		return 0; /* as above */
	/* The kernel begins at the head: by the time of a notice the life word is marked. */
	take_watch(region_known_watch(base, thread_ix / GROUP_SPAN), pair, head, node);
	link_node(head, node);
	*ret_marked = true;
	return 0;
}

void life_unmap(void *private_memory)
{
	sys_call(SYS_munmap, (long)((unsigned char *)private_memory - PAGE_BYTES), 2 * PAGE_BYTES,
		 0, 0, 0, 0);
}
