/* SPDX-License-Identifier: MIT */
/*
 * Atomic accesses to shared words. Thin names over the compiler's builtins, so that an
 * ordering is visible at each site and a lint can ask for the protocol label beside it.
 *
 * Order against the death of a thread is program order alone: whoever looks after the dead
 * learns of the death from the kernel, when the victim's stores have long drained. What must
 * not be reordered by the compiler before a death can cut it is separated by crash_barrier().
 */
#ifndef USYSV_BASE_ATOMIC_H
#define USYSV_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#define load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define exchange(p, v)      __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define fetch_or(p, v)      __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define fetch_add(p, v)     __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#ifdef __SANITIZE_THREAD__
/* It knows no fences. What a fence orders here are atomic loads, in which it sees no race anyway.
 */
#define fence_acquire() __atomic_signal_fence(__ATOMIC_ACQUIRE)
#else
#define fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Compare and swap, full barrier on success; false leaves the value seen in *expected. */
#define cas(p, expected, desired)                                                                  \
	__atomic_compare_exchange_n((p), (expected), (desired), false, __ATOMIC_SEQ_CST,           \
				    __ATOMIC_ACQUIRE)

/* Stores before it are in memory before those after it, as seen by who recovers this thread. */
#define crash_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/*
 * A store to shared memory that recovery may read after this thread's death, in program order
 * among its like. Costs what a plain store costs.
 */
#define store_crash(p, v)                                                                          \
	do {                                                                                       \
		crash_barrier();                                                                   \
		__atomic_store_n((p), (v), __ATOMIC_RELEASE);                                      \
		crash_barrier();                                                                   \
	} while (0)

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#else
	crash_barrier();
#endif
}

#endif
