// SPDX-License-Identifier: MIT
/*
 * Faults in copies of user memory become EFAULT: the handler looks the faulting instruction up in
 * the table of usercopy.c and goes on at its fixup, as the kernel does for its own copies. Faults
 * of the program's own are the program's: its handler runs, or the default action, raised again
 * by the same instruction, so that status and core are what they would have been. Those of a region
 * that has lost pages are lost.c's.
 */
#include "preload/signals.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sys.h"
#include "client/lost.h"
#include "client/usercopy.h"
#include "preload/symbols.h"

#if defined(__x86_64__) && !defined(__ILP32__)
#define CONTEXT_PC(u) ((u)->uc_mcontext.gregs[REG_RIP])
#endif

/*
 * A wrapper that interrupted the fault's own handler could block signals only in that handler's
 * context, which ends here. What it meant is moved to the context of the section.
 */
static void carry_capture(void *context)
{
	struct thread_block *tb = thread_self;
	uint64_t *mask = context_mask(context);

	if (!tb || !tb->ready || !tb->masked || *mask == SIGNALS_SECTION)
		return;
	memcpy(&tb->saved_mask, mask, sizeof(*mask));
	*mask = SIGNALS_SECTION;
}

bool fault_mend(int sig, const siginfo_t *info, void *context)
{
	/* The same instruction once more, on a page that is there. */
	if (sig == SIGBUS && lost_mend((uintptr_t)info->si_addr))
		return true;
#ifdef CONTEXT_PC
	ucontext_t *u = context;
	uintptr_t fixup = usercopy_fixup((uintptr_t)CONTEXT_PC(u));

	if (!fixup)
		return false;
	/* Until the return nothing more may be captured. */
	(void)signals_block_all();
	carry_capture(context);
	CONTEXT_PC(u) = (greg_t)fixup;
	return true;
#else
	(void)context;
	return false;
#endif
}

void fault_default(int sig, const siginfo_t *info)
{
	struct sigaction act;
	int saved = errno;

	memset(&act, 0, sizeof(act));
	act.sa_handler = SIG_DFL;
	(void)NEXT(sigaction)(sig, &act, NULL);
	if (info->si_code <= 0)
		signals_queue(sig, info);
	errno = saved;
}
