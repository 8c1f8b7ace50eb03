// SPDX-License-Identifier: MIT
/*
 * Handlers run between the library's sections only.
 *
 * A handler may call any operation at any moment, and may never return. So the program's handlers
 * are kept in a table, and the kernel is given a wrapper. A signal that arrives inside a section
 * is captured: the wrapper notes its siginfo, and returns into the section with all signals
 * blocked, so that what comes later stays pending in the kernel. The end of the section queues the
 * captured ones to the thread itself and restores the mask: the kernel delivers them again, with
 * a genuine context, on the right stack, with the right mask. A section costs an increment and a
 * decrement; nothing is paid for signals that do not arrive.
 *
 * What the program asked for beside the function is encoded in which of four wrappers the kernel
 * holds, so it is always that of the disposition in force. SIG_DFL and SIG_IGN go straight to the
 * kernel. SA_RESETHAND is done by the wrapper: the kernel would reset at the capture, and the
 * second delivery would kill.
 *
 * The table is one word a signal, without a lock (a handler may itself set handlers). Threads that
 * set the same signal at the same moment may end with the function of one and the flags of the
 * other; all four wrappers pass three arguments, so even that does no harm.
 *
 * Signals that the processor raises (SIGSEGV and the like) are never put off: the instruction
 * would raise them again. Those of user-memory copies are mended, see fault.c.
 */
#include "preload/signals.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/sys.h"
#include "client/session.h"
#include "client/usercopy.h"
#include "preload/cancel.h"
#include "preload/symbols.h"

#define SIGNAL_LAST     64
#define FIRST_REAL_TIME 32 /* the kernel's, of which the C library keeps some */

typedef void handler_fn(int sig, siginfo_t *info, void *context);

/* The program's functions, where the kernel holds a wrapper; null: the default action. */
static handler_fn *handlers[SIGNAL_LAST + 1];

/* Are SIGSEGV or SIGBUS blocked while the handler runs? */
static bool blocks_faults[SIGNAL_LAST + 1];

/* Our own handlers for SIGSEGV [0] and SIGBUS [1]: are they wanted, are they in force, and what
 * does a program that has the default action see? */
static bool faults_wanted;
static bool fault_wrapped[2];
static struct sigaction fault_shown[2];

/* Captures under way in this thread: one can interrupt another. */
static __thread uint32_t capture_level __attribute__((tls_model("initial-exec")));

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS;
}

static bool is_synchronous(int sig, const siginfo_t *info)
{
	return info->si_code > 0 &&
	       (is_fault(sig) || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP || sig == SIGSYS);
}

uint64_t *context_mask(void *context)
{
	/* The kernel's mask is its first word; the rest of libc's type lies beyond the frame. */
	return (uint64_t *)(void *)&((ucontext_t *)context)->uc_sigmask;
}

void signals_set_mask(uint64_t mask)
{
	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, KERNEL_SIGSET_BYTES, 0, 0);
}

uint64_t signals_block_all(void)
{
	uint64_t all = SIGNALS_ALL, before = 0;

	sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, KERNEL_SIGSET_BYTES, 0,
		 0);
	return before;
}

void signals_queue(int sig, const siginfo_t *info)
{
	long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long tid = sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);

	/* A filter or the limit of queued signals: better without its siginfo than not at all. */
	if (sys_call(SYS_rt_tgsigqueueinfo, pid, tid, sig, (long)info, 0, 0) < 0)
		sys_call(SYS_tgkill, pid, tid, sig, 0, 0, 0);
}

/* A standard signal that is pending already is not counted twice. */
static bool is_captured(const struct thread_block *tb, int sig)
{
	uint32_t n = load_relaxed(&tb->cap_count);

	for (uint32_t i = 0; i < n && i < THREAD_SIGNALS; i++)
		if (tb->cap[i].si_signo == sig)
			return true;
	return false;
}

/*
 * Several frames can be on the stack at one instant; then the wrapper of the innermost runs first,
 * and the last one to run carries the program's mask. One that interrupts another's capture sees
 * a mask that is not the program's, and leaves it to the other; so does one that got through the
 * section's own mask.
 */
static void block_in_context(struct thread_block *tb, uint64_t *mask, bool outermost)
{
	if (outermost && !(tb->masked && *mask == SIGNALS_SECTION))
		memcpy(&tb->saved_mask, mask, sizeof(*mask));
	crash_barrier();
	*mask = SIGNALS_SECTION;
	tb->masked = 1;
	crash_barrier();
}

static void capture(struct thread_block *tb, int sig, const siginfo_t *info, void *context)
{
	uint64_t *mask = context_mask(context);
	bool outermost = __atomic_fetch_add(&capture_level, 1, __ATOMIC_RELAXED) == 0;

	if (sig >= FIRST_REAL_TIME || !is_captured(tb, sig)) {
		uint32_t ix = __atomic_fetch_add(&tb->cap_count, 1, __ATOMIC_RELAXED);

		if (ix < THREAD_SIGNALS) {
			tb->cap[ix] = *info;
			tb->cap[ix].si_signo = sig;
		} else {
			/* No room: it stays with the kernel. */
			(void)signals_block_all();
			signals_queue(sig, info);
		}
	}
	crash_barrier();
	block_in_context(tb, mask, outermost);
	capture_level--;
}

/*
 * Queues a captured real-time signal in front of those of its number that came later. They lie in
 * the thread's queue in order; a marker behind them tells how many to move behind the captured.
 */
static void queue_in_order(const siginfo_t *captured, uint32_t count, int sig)
{
	uint64_t bit = SIGNALS_BIT(sig), pending = 0;
	struct timespec now = {0, 0};
	siginfo_t marker, info;
	long pid = sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
	long tid = sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
	bool marked = false;

	sys_call(SYS_rt_sigpending, (long)&pending, KERNEL_SIGSET_BYTES, 0, 0, 0, 0);
	if (pending & bit) {
		memset(&marker, 0, sizeof(marker));
		marker.si_signo = sig;
		marker.si_code = SI_QUEUE;
		marker.si_pid = (pid_t)pid;
		marker.si_value.sival_ptr = &marker;
		marked = sys_call(SYS_rt_tgsigqueueinfo, pid, tid, sig, (long)&marker, 0, 0) == 0;
	}
	for (uint32_t i = 0; i < count; i++)
		if (captured[i].si_signo == sig)
			signals_queue(sig, &captured[i]);
	while (marked && sys_call(SYS_rt_sigtimedwait, (long)&bit, (long)&info, (long)&now,
				  KERNEL_SIGSET_BYTES, 0, 0) == sig) {
		if (info.si_code == SI_QUEUE && info.si_value.sival_ptr == &marker)
			return;
		signals_queue(sig, &info);
	}
}

/* A standard signal that was sent again while the first was held back is one signal. */
static void queue_once(int sig, const siginfo_t *captured)
{
	uint64_t bit = SIGNALS_BIT(sig);
	struct timespec now = {0, 0};

	/* At most one waits for the thread, and one for the process. */
	for (int i = 0; i < 2; i++)
		if (sys_call(SYS_rt_sigtimedwait, (long)&bit, 0, (long)&now, KERNEL_SIGSET_BYTES, 0,
			     0) != sig)
			break;
	signals_queue(sig, captured);
}

void signals_flush(struct thread_block *tb)
{
	siginfo_t captured[THREAD_SIGNALS];
	uint64_t mask;
	uint32_t count;

	/* Blocked already, except under tools that do not heed a changed context. */
	(void)signals_block_all();
	count = tb->cap_count < THREAD_SIGNALS ? tb->cap_count : THREAD_SIGNALS;
	memcpy(captured, tb->cap, count * sizeof(captured[0]));
	memcpy(&mask, &tb->saved_mask, sizeof(mask));
	for (uint32_t i = 0; i < count; i++)
		tb->cap[i].si_signo = 0;
	tb->cap_count = 0;
	tb->masked = 0;
	for (uint32_t i = 0; i < count; i++) {
		int sig = captured[i].si_signo;
		bool first = true;

		if (sig < FIRST_REAL_TIME) {
			queue_once(sig, &captured[i]);
			continue;
		}
		for (uint32_t k = 0; k < i; k++)
			first = first && captured[k].si_signo != sig;
		if (first)
			queue_in_order(captured, count, sig);
	}
	/* The handlers run here, and may not come back: everything is settled. */
	signals_set_mask(mask);
}

static handler_fn *const wrappers[4];

static bool is_wrapper(const struct sigaction *a, unsigned *ret_variant)
{
	for (unsigned v = 0; v < 4; v++) {
		if (a->sa_sigaction == wrappers[v]) {
			*ret_variant = v;
			return true;
		}
	}
	return false;
}

/* SA_RESETHAND as the kernel does it: the function goes, the flags stay. */
static void reset_handler(int sig)
{
	struct sigaction now;
	unsigned variant;
	int saved = errno;

	if (NEXT(sigaction)(sig, NULL, &now) == 0 && is_wrapper(&now, &variant)) {
		now.sa_handler = SIG_DFL;
		now.sa_flags = (now.sa_flags & ~(variant & 1 ? 0 : SA_SIGINFO)) | (int)SA_RESETHAND;
		(void)NEXT(sigaction)(sig, &now, NULL);
	}
	errno = saved;
}

/* A child's end becomes known to a SIGCHLD handler before any wait. */
static void reap_child(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
	    info->si_code == CLD_DUMPED)
		session_reap(info->si_pid);
}

static inline __attribute__((always_inline)) void handle(int sig, siginfo_t *info, void *context,
							 bool reset)
{
	struct thread_block *tb;
	handler_fn *function;

	/* First of all: it may have interrupted anything. */
	if (is_fault(sig) && info->si_code > 0 && fault_mend(sig, info, context))
		return;
	tb = thread_self;
	if (tb && !tb->ready)
		tb = NULL;
	if (tb && !is_synchronous(sig, info)) {
		if (tb->depth) {
			capture(tb, sig, info, context);
			return;
		}
		if (tb->sleep) {
			struct sleep *s = tb->sleep;

			thread_leave_sleep(tb);
			cancel_uncover(s);
		}
	}
	function = load_relaxed(&handlers[sig]);
	if (!function) {
		fault_default(sig, info);
		return;
	}
	if (reset)
		reset_handler(sig);
	if (sig == SIGCHLD)
		reap_child(info);
	/* Taken back by the first copy that finds them unblocked. */
	if (tb && blocks_faults[sig])
		tb->probe = 1;
	/* The last thing done, so that the handler's caller is the kernel's frame as ever. */
	function(sig, info, context);
}

static void wrap_plain(int sig, siginfo_t *info, void *context)
{
	handle(sig, info, context, false);
}

static void wrap_info(int sig, siginfo_t *info, void *context)
{
	/* Unlike the others in its address only; the compiler must not make them one. */
	__asm__ __volatile__("");
	handle(sig, info, context, false);
}

static void wrap_plain_reset(int sig, siginfo_t *info, void *context)
{
	handle(sig, info, context, true);
}

static void wrap_info_reset(int sig, siginfo_t *info, void *context)
{
	__asm__ __volatile__("");
	handle(sig, info, context, true);
}

#define VARIANT_INFO  1u
#define VARIANT_RESET 2u

static handler_fn *const wrappers[4] = {
	[0] = wrap_plain,
	[VARIANT_INFO] = wrap_info,
	[VARIANT_RESET] = wrap_plain_reset,
	[VARIANT_INFO | VARIANT_RESET] = wrap_info_reset,
};

static bool masks_faults(const sigset_t *set)
{
	return sigismember(set, SIGSEGV) == 1 || sigismember(set, SIGBUS) == 1;
}

/* What the program would see of a disposition that the kernel reports. */
static void show(int sig, const struct sigaction *kernel, handler_fn *function,
		 struct sigaction *ret)
{
	unsigned variant;

	*ret = *kernel;
	if (!is_wrapper(kernel, &variant))
		return;
	if (!function) {
		*ret = fault_shown[sig == SIGBUS];
		return;
	}
	ret->sa_sigaction = function;
	if (!(variant & VARIANT_INFO))
		ret->sa_flags &= ~SA_SIGINFO;
	if (variant & VARIANT_RESET)
		ret->sa_flags |= (int)SA_RESETHAND;
}

static struct sigaction wrapped(const struct sigaction *act)
{
	struct sigaction mine = *act;
	unsigned variant = 0;

	if (act->sa_handler == SIG_DFL) {
		/* Ours alone: nothing may come between a fault and its mending. */
		sigfillset(&mine.sa_mask);
		mine.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
		mine.sa_sigaction = wrappers[0];
		return mine;
	}
	if (act->sa_flags & SA_SIGINFO)
		variant |= VARIANT_INFO;
	if (act->sa_flags & (int)SA_RESETHAND)
		variant |= VARIANT_RESET;
	mine.sa_sigaction = wrappers[variant];
	mine.sa_flags = (mine.sa_flags | SA_SIGINFO) & ~(int)SA_RESETHAND;
	return mine;
}

static void note_fault_wrapper(int sig, bool is_wrapped)
{
	fault_wrapped[sig == SIGBUS] = is_wrapped;
	usercopy_handlers = faults_wanted && fault_wrapped[0] && fault_wrapped[1];
}

static int set_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction mine, before;
	handler_fn *previous, *function;
	bool wrap;
	int rc;

	if (sig < 1 || sig > SIGNAL_LAST)
		return NEXT(sigaction)(sig, act, old);
	thread_flush_signals = signals_flush;
	previous = load_relaxed(&handlers[sig]);
	if (!act) {
		rc = NEXT(sigaction)(sig, NULL, &before);
		if (rc == 0 && old)
			show(sig, &before, previous, old);
		return rc;
	}
	/* A vfork child shares the table with its parent, whose handlers these are. */
	if (vfork_depth || act->sa_handler == SIG_IGN)
		wrap = false;
	else if (act->sa_handler == SIG_DFL)
		wrap = is_fault(sig) && faults_wanted;
	else
		wrap = true;
	mine = *act;
	if (wrap) {
		mine = wrapped(act);
		function = act->sa_handler == SIG_DFL ? NULL : act->sa_sigaction;
		if (!function) {
			fault_shown[sig == SIGBUS] = *act;
			blocks_faults[sig] = false;
		} else {
			blocks_faults[sig] = masks_faults(&act->sa_mask) ||
					     (is_fault(sig) && !(act->sa_flags & SA_NODEFER));
		}
		store_release(&handlers[sig], function);
	} else if (is_fault(sig) && !vfork_depth) {
		/* Before the change: from then on a fault would not be mended. */
		note_fault_wrapper(sig, false);
	}
	rc = NEXT(sigaction)(sig, &mine, &before);
	if (rc < 0) {
		if (wrap)
			store_release(&handlers[sig], previous);
		return rc;
	}
	if (wrap && is_fault(sig))
		note_fault_wrapper(sig, true);
	if (old)
		show(sig, &before, previous, old);
	return 0;
}

/* A vfork child has the action for itself; the tables are its parent's, whom it says nothing of. */
static void mend_faults_here(void)
{
	struct sigaction now;

	if (NEXT(sigaction)(SIGBUS, NULL, &now) < 0 || now.sa_handler != SIG_DFL ||
	    load_relaxed(&handlers[SIGBUS])) /* the parent's, which waits */
		return;
	now = wrapped(&now);
	(void)NEXT(sigaction)(SIGBUS, &now, NULL); /* then it is as it was */
}

void preload_install_fault_handlers(void)
{
	static const int signals[2] = {SIGSEGV, SIGBUS};
	int saved = errno;

	if (vfork_depth) {
		mend_faults_here();
		errno = saved;
		return;
	}
	faults_wanted = true;
	for (int i = 0; i < 2; i++) {
		struct sigaction now;
		unsigned variant;

		if (NEXT(sigaction)(signals[i], NULL, &now) < 0)
			continue;
		if (is_wrapper(&now, &variant))
			note_fault_wrapper(signals[i], true);
		else if (now.sa_handler == SIG_DFL)
			(void)set_action(signals[i], &now, NULL);
		else
			note_fault_wrapper(signals[i], false);
	}
	errno = saved;
}

PUBLIC int sigaction(int sig, const struct sigaction *restrict act, struct sigaction *restrict old)
{
	return set_action(sig, act, old);
}

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);

PUBLIC int __sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	return set_action(sig, act, old);
}

/* siginterrupt(3)'s note for signal(3), kept by the C library where we cannot see it. */
static uint64_t interrupting;

static sighandler_t set_handler(int sig, sighandler_t handler, int flags, bool block_itself)
{
	struct sigaction act, old;

	if (handler == SIG_ERR || sig < 1 || sig >= NSIG) {
		errno = EINVAL;
		return SIG_ERR;
	}
	memset(&act, 0, sizeof(act));
	act.sa_handler = handler;
	act.sa_flags = flags;
	sigemptyset(&act.sa_mask);
	if (block_itself && sigaddset(&act.sa_mask, sig) < 0)
		return SIG_ERR;
	return set_action(sig, &act, &old) < 0 ? SIG_ERR : old.sa_handler;
}

static sighandler_t bsd_style(int sig, sighandler_t handler)
{
	bool interrupts =
		sig >= 1 && sig <= SIGNAL_LAST && (load_relaxed(&interrupting) & SIGNALS_BIT(sig));

	return set_handler(sig, handler, interrupts ? 0 : SA_RESTART, true);
}

#ifndef SA_INTERRUPT
#define SA_INTERRUPT 0x20000000
#endif

static sighandler_t sysv_style(int sig, sighandler_t handler)
{
	return set_handler(sig, handler, (int)SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, false);
}

sighandler_t bsd_signal(int sig, sighandler_t handler);
sighandler_t ssignal(int sig, sighandler_t handler);
sighandler_t sysv_signal(int sig, sighandler_t handler);
sighandler_t __sysv_signal(int sig, sighandler_t handler);
sighandler_t sigset(int sig, sighandler_t handler);
int siginterrupt(int sig, int interrupt);
int sigignore(int sig);

PUBLIC sighandler_t signal(int sig, sighandler_t handler)
{
	return bsd_style(sig, handler);
}

PUBLIC sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return bsd_style(sig, handler);
}

PUBLIC sighandler_t ssignal(int sig, sighandler_t handler)
{
	return bsd_style(sig, handler);
}

PUBLIC sighandler_t sysv_signal(int sig, sighandler_t handler)
{
	return sysv_style(sig, handler);
}

PUBLIC sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return sysv_style(sig, handler);
}

PUBLIC int sigignore(int sig)
{
	struct sigaction act;

	memset(&act, 0, sizeof(act));
	act.sa_handler = SIG_IGN;
	sigemptyset(&act.sa_mask);
	return set_action(sig, &act, NULL);
}

/* Obsolete, but programs have it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int next_siginterrupt(int sig, int interrupt)
{
	return NEXT(siginterrupt)(sig, interrupt);
}
#pragma GCC diagnostic pop

PUBLIC int siginterrupt(int sig, int interrupt)
{
	int rc = next_siginterrupt(sig, interrupt);

	if (rc == 0 && sig >= 1 && sig <= SIGNAL_LAST) {
		if (interrupt)
			fetch_or(&interrupting, SIGNALS_BIT(sig));
		else
			__atomic_fetch_and(&interrupting, ~SIGNALS_BIT(sig), __ATOMIC_RELAXED);
	}
	return rc;
}

/*
 * Where faults are blocked they would kill: user memory is probed before it is copied. The other
 * ways to change a mask (siglongjmp, sigsuspend) restore an earlier one; only these can add.
 */
static void note_mask(int how, bool masks)
{
	struct thread_block *tb = thread_self;

	if (masks && how != SIG_UNBLOCK && tb && tb->ready)
		tb->probe = 1;
}

PUBLIC int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	bool masks = set && masks_faults(set);
	int rc = NEXT(sigprocmask)(how, set, old);

	note_mask(how, masks);
	return rc;
}

PUBLIC int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	bool masks = set && masks_faults(set);
	int rc = NEXT(pthread_sigmask)(how, set, old);

	note_mask(how, masks);
	return rc;
}

#ifndef SIG_HOLD
#define SIG_HOLD ((sighandler_t)2)
#endif

/* sigset(3): like signal(3), with "held" as one more disposition. */
PUBLIC sighandler_t sigset(int sig, sighandler_t handler)
{
	sigset_t set, old_set;
	struct sigaction act, old;

	sigemptyset(&set);
	if (handler == SIG_ERR || sigaddset(&set, sig) < 0) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (handler == SIG_HOLD) {
		if (sigprocmask(SIG_BLOCK, &set, &old_set) < 0)
			return SIG_ERR;
		if (sigismember(&old_set, sig))
			return SIG_HOLD;
		return set_action(sig, NULL, &old) < 0 ? SIG_ERR : old.sa_handler;
	}
	memset(&act, 0, sizeof(act));
	act.sa_handler = handler;
	sigemptyset(&act.sa_mask);
	if (set_action(sig, &act, &old) < 0)
		return SIG_ERR;
	if (sigprocmask(SIG_UNBLOCK, &set, &old_set) < 0)
		return SIG_ERR;
	return sigismember(&old_set, sig) ? SIG_HOLD : old.sa_handler;
}
