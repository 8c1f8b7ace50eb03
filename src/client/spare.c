// SPDX-License-Identifier: MIT
/*
 * A helper with descriptors to spare; what for is in the header. clone(CLONE_VM | CLONE_VFORK)
 * without CLONE_FILES: the child has the caller's memory and a copy of the table. The caller's
 * thread waits in the kernel until it has ended; if the helper is killed, the result is that of
 * the first attempt.
 *
 * If the caller is killed meanwhile, so is the helper, by its parent's death signal. But the kernel
 * marks the caller's life word, and lets the parent of a vfork child go on, before it sends that:
 * for the rest of the caller's exit, some microseconds, the helper of somebody who counts as dead
 * may run. What it can do then:
 *
 *  - It has the caller's memory and so keeps the mapping that holds the token of the process: who
 *    waits for the token waits for the helper. Burial does so before it takes away an attach in
 *    progress (repair_bury_process()), which keeps the segment from being destroyed. So what
 *    a helper writes to a segment (`made` and what it publishes) is written to that segment; a
 *    process slot that it reserves is freed as any whose token is free; marks only rise. It writes
 *    nothing else to the region but times and pids of statistics.
 *  - In the memory of a vfork child's parent it writes to its own stack and to a copy of the
 *    context only, which the caller alone copies back. What it maps or unmaps there is what the
 *    child was about to, and so are the session's fields: the same values as the parent would
 *    store.
 *  - A process without a token (a vfork child; who cannot open the region's file any more) is
 *    buried by its life word and pid alone. For it the first point does not hold. But what it
 *    publishes of a file it does last, by three accesses, of which the first looks whether the
 *    segment is the one: in between it would have to be destroyed and another come to be in its
 *    place.
 *
 *   SPARE_P1  helper
 *    word      helper.is_done (private memory)
 *    states    false > true
 *    writers   the helper, last
 *    order     R of the helper pairs with A of the caller, whom the kernel wakes after the helper's
 *              end; publishes result and context
 *    death     helper: as if it had not been there, but for what it has done in the kernel or to
 *              the region, where each step of an attach may be its last. Caller: above
 *    progress  blocks for the time of the work
 *    tests     unit/spare, unit/shm-attach
 */
#include "client/spare.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/atomic.h"
#include "base/ident.h"
#include "base/sys.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define HELPER_STACK 262144
#define CONTEXT_MOST 32768
#define FEW          64 /* descriptors that are enough for anything here */
#define CLOSED_MOST  1024

/* What the work itself may raise; the handlers mend it, in the helper too (a lost region). */
#define BIT(sig) (1ull << ((sig)-1))
static const uint64_t faults =
	BIT(SIGBUS) | BIT(SIGSEGV) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS);

static int kept = -1;

/* At the bottom of the helper's stack. */
struct helper {
	int (*run)(void *context);
	int result;
	long caller; /* process */
	bool is_done;
	unsigned char context[] __attribute__((aligned(16)));
};

void spare_keep(int fd)
{
	store_relaxed(&kept, fd); /* private; by who also looks before each use */
}

bool spare_would_help(long result)
{
	/* EBADF: another thread closes descriptors that it does not know, at this very moment. */
	return result == -EMFILE || result == -ENFILE || result == -EFBIG || result == -EBADF;
}

static void raise_limit(int resource, rlim_t least)
{
	struct rlimit limit;

	if (sys_call(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0) < 0)
		return;
	if (limit.rlim_max < least) { /* with a privilege, that can be more */
		struct rlimit more = {least, least};

		if (sys_call(SYS_prlimit64, 0, resource, (long)&more, 0, 0, 0) == 0)
			return;
	}
	if (limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	sys_call(SYS_prlimit64, 0, resource, (long)&limit, 0, 0, 0); /* then it stays as it is */
}

void spare_raise_limits(void)
{
	raise_limit(RLIMIT_NOFILE, FEW);
	raise_limit(RLIMIT_FSIZE, 0);
}

/* The kept one is not ours to be sure of, but closing in this table hurts nobody. */
static void close_from(int first)
{
	int keep = load_relaxed(&kept); /* private */

	if (keep < first || keep < 0) {
		if (sys_call(SYS_close_range, first, ~0u, 0, 0, 0, 0) == 0)
			return;
	} else if (keep == first || sys_call(SYS_close_range, first, keep - 1, 0, 0, 0, 0) == 0) {
		if (sys_call(SYS_close_range, keep + 1, ~0u, 0, 0, 0, 0) == 0)
			return;
	}
	for (int fd = first; fd < CLOSED_MOST; fd++) /* before Linux 5.9 */
		if (fd != keep)
			sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* In the child. The first three go last: one of them may have to take a message. */
static int help(void *argument)
{
	struct helper *h = argument;
	long parent;

	sys_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0);
	parent = sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
	if (parent != h->caller && parent != 0) { /* killed before; 0: of another PID namespace */
		sys_call(SYS_exit, 0, 0, 0, 0, 0, 0);
		return 0;
	}
	spare_raise_limits();
	close_from(3);
	h->result = h->run(h->context);
	if (spare_would_help(h->result)) {
		close_from(0);
		h->result = h->run(h->context);
	}
	store_release(&h->is_done, true); /* SPARE_P1/R */
	sys_call(SYS_exit, 0, 0, 0, 0, 0, 0);
	return 0;
}

int spare_run(int (*run)(void *context), void *context, size_t bytes)
{
	uint64_t most = ~faults, old;
	struct helper *h;
	long stack;
	int pid, saved = errno, result = run(context);

	if (!spare_would_help(result) || bytes > CONTEXT_MOST || ident_forks_away())
		return result;
	stack = sys_call(SYS_mmap, 0, HELPER_STACK, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack < 0 && stack > -4096)
		return result;
	h = (struct helper *)stack;
	h->run = run;
	h->caller = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	if (bytes)
		memcpy(h->context, context, bytes);
	sys_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&most, (long)&old, sizeof(most), 0, 0);
	/* exit signal 0: neither SIGCHLD nor wait(-1) tells of it */
	pid = clone(help, (void *)(stack + HELPER_STACK), CLONE_VM | CLONE_VFORK, h);
	if (pid > 0)
		while (sys_call(SYS_wait4, pid, 0, __WALL, 0, 0, 0) == -EINTR)
			;
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, sizeof(old), 0, 0);
	if (load_acquire(&h->is_done)) { /* SPARE_P1/A */
		if (bytes)
			memcpy(context, h->context, bytes);
		result = h->result;
	}
	sys_call(SYS_munmap, stack, HELPER_STACK, 0, 0, 0, 0);
	errno = saved;
	return result;
}

struct question {
	pid_t pid;
	uint64_t start;
	enum ident_state state;
};

static int ask_start(void *context)
{
	struct question *q = context;

	return ident_try_start(q->pid, &q->start);
}

static int ask_state(void *context)
{
	struct question *q = context;

	return ident_try_process(q->pid, q->start, &q->state);
}

uint64_t spare_ident_start(pid_t pid)
{
	struct question q = {.pid = pid};

	(void)spare_run(ask_start, &q, sizeof(q)); /* 0: unknown */
	return q.start;
}

enum ident_state spare_ident_process(pid_t pid, uint64_t start)
{
	struct question q = {.pid = pid, .start = start};

	(void)spare_run(ask_state, &q, sizeof(q)); /* then it is unknown */
	return q.state;
}
