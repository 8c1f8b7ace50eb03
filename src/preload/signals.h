/* SPDX-License-Identifier: MIT */
/* Wrapped signal handlers; see signals.c. */
#ifndef USYSV_PRELOAD_SIGNALS_H
#define USYSV_PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/thread.h"

/* Delivers what was captured during a section (thread_flush_signals). */
void signals_flush(struct thread_block *tb);

/*
 * Puts wrappers for SIGSEGV and SIGBUS in place where the program has the default action, which
 * it goes on seeing; from then on usercopy may rely on them. Called at the first attach.
 */
void preload_install_fault_handlers(void);

/* Is this a fault of ours, now mended? Called first thing in the handler. */
bool fault_mend(int sig, const siginfo_t *info, void *context);

/* The signal's default action, at the instruction that raised it. */
void fault_default(int sig, const siginfo_t *info);

/* The 64 signals of the kernel's mask in a handler's context. */
uint64_t *context_mask(void *context);

#define SIGNALS_BIT(sig) (1ull << ((sig)-1))
#define SIGNALS_ALL      (~0ull)
#define SIGNALS_FAULTS   (SIGNALS_BIT(SIGSEGV) | SIGNALS_BIT(SIGBUS))
/*
 * What is blocked in a section once a signal was captured, as the kernel reports it: all but those
 * that the processor raises, for these would kill if they were blocked.
 */
#define SIGNALS_SECTION                                                                            \
	~(SIGNALS_FAULTS | SIGNALS_BIT(SIGFPE) | SIGNALS_BIT(SIGILL) | SIGNALS_BIT(SIGTRAP) |      \
	  SIGNALS_BIT(SIGSYS) | SIGNALS_BIT(SIGKILL) | SIGNALS_BIT(SIGSTOP))
#define KERNEL_SIGSET_BYTES (_NSIG / 8)

/* Blocks or restores all signals by a raw call, glibc's internal ones included. */
uint64_t signals_block_all(void);
void signals_set_mask(uint64_t mask);

/* Sends a signal with this siginfo to the calling thread, where it stays pending if blocked. */
void signals_queue(int sig, const siginfo_t *info);

#endif
