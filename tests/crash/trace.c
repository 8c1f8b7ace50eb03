// SPDX-License-Identifier: MIT
/* Stepping; see the header. */
#include "trace.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define STEPS_MOST 4000000

/* ---- By stores ---------------------------------------------------------------------------- */

#ifdef __x86_64__
const bool trace_knows_stores = true;

#define TRAP_FLAG  0x100
#define LINE_BYTES 64u
#define OPEN_MOST  4 /* pages that one instruction writes to */

static struct {
	struct engine *e, *seen;
	trace_fn *look;
	void *context;
	uint64_t stores;
	unsigned char *at;
	unsigned char *open[OPEN_MOST];
	int open_count;
} own;

static void protect(void *start, size_t bytes, int protection)
{
	if (mprotect(start, bytes, protection) < 0)
		engine_fail(__FILE__, __LINE__, "mprotect");
}

static bool is_inside(const unsigned char *p, const void *start, size_t bytes)
{
	const unsigned char *s = start;

	return p >= s && p < s + bytes;
}

/* Near the last store, in the region or beside it. Quick; the whole is looked at when in doubt. */
static bool may_differ(void)
{
	uint64_t off = (uint64_t)(own.at - own.e->base);

	if (own.open_count > 1 || !is_inside(own.at, own.e->base, REGION_BYTES))
		return true;
	off = off < LINE_BYTES ? 0 : off - LINE_BYTES;
	return memcmp(own.e->base + off, own.seen->base + off, 3 * LINE_BYTES) != 0;
}

static void on_store(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	unsigned char *at = info->si_addr;

	(void)signal;
	if (own.open_count == OPEN_MOST || (!is_inside(at, own.e->base, REGION_BYTES) &&
					    !is_inside(at, own.e->shared, sizeof(*own.e->shared))))
		engine_fail(__FILE__, __LINE__, "a fault at %p", (void *)at);
	own.at = at;
	own.open[own.open_count] = at - (uintptr_t)at % PAGE_BYTES;
	protect(own.open[own.open_count++], PAGE_BYTES, PROT_READ | PROT_WRITE);
	u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void after_store(int signal, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)signal;
	(void)info;
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (++own.stores > STEPS_MOST)
		engine_fail(__FILE__, __LINE__, "what is stepped does not end");
	if (may_differ() && engine_differs(own.seen, own.e)) {
		engine_copy(own.seen, own.e);
		own.look(own.context, own.stores);
	}
	while (own.open_count > 0)
		protect(own.open[--own.open_count], PAGE_BYTES, PROT_READ);
}

uint64_t trace_stores(void (*f)(struct cast *), struct cast *c, struct engine *seen, trace_fn *at,
		      void *context)
{
	struct sigaction store = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO};
	struct sigaction trap = {.sa_sigaction = after_store, .sa_flags = SA_SIGINFO};
	struct sigaction old_store, old_trap;

	own.e = c->e;
	own.seen = seen;
	own.look = at;
	own.context = context;
	own.stores = 0;
	engine_copy(seen, c->e);
	sigaction(SIGSEGV, &store, &old_store);
	sigaction(SIGTRAP, &trap, &old_trap);
	protect(c->e->base, REGION_BYTES, PROT_READ);
	protect(c->e->shared, sizeof(*c->e->shared), PROT_READ);
	f(c);
	protect(c->e->base, REGION_BYTES, PROT_READ | PROT_WRITE);
	protect(c->e->shared, sizeof(*c->e->shared), PROT_READ | PROT_WRITE);
	sigaction(SIGSEGV, &old_store, NULL);
	sigaction(SIGTRAP, &old_trap, NULL);
	return own.stores;
}
#else
const bool trace_knows_stores = false;

uint64_t trace_stores(void (*f)(struct cast *), struct cast *c, struct engine *seen, trace_fn *at,
		      void *context)
{
	return trace_instructions(f, c, seen, at, context);
}
#endif

/* ---- By ptrace ---------------------------------------------------------------------------- */

/* Forks a child that does f(c) and is stopped right before; 0: it cannot be stepped here. */
static pid_t begin(void (*f)(struct cast *), struct cast *c)
{
	uint64_t failures = step_failures();
	pid_t pid = fork();
	int status;

	EXPECT(pid >= 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		kill(getpid(), SIGSTOP);
		f(c);
		_exit(step_failures() == failures ? 0 : 6);
	}
	EXPECT_INT(waitpid(pid, &status, 0), pid);
	return WIFSTOPPED(status) ? pid : 0;
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) == pid && !WIFEXITED(status) && !WIFSIGNALED(status))
		;
}

uint64_t trace_instructions(void (*f)(struct cast *), struct cast *c, struct engine *seen,
			    trace_fn *at, void *context)
{
	pid_t pid = begin(f, c);
	uint64_t steps = 0;
	int status;

	engine_copy(seen, c->e);
	while (pid > 0) {
		EXPECT(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) == 0);
		EXPECT_INT(waitpid(pid, &status, 0), pid);
		if (!WIFSTOPPED(status)) {
			if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
				step_fail("what is stepped ended by itself, status %#x", status);
			break;
		}
		if (WSTOPSIG(status) != SIGTRAP || ++steps > STEPS_MOST) {
			step_fail("what is stepped got signal %d, or does not end",
				  WSTOPSIG(status));
			end(pid);
			break;
		}
		if (!engine_differs(seen, c->e))
			continue;
		engine_copy(seen, c->e);
		at(context, steps);
	}
	return steps;
}
