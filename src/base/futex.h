/* SPDX-License-Identifier: MIT */
/*
 * The futex system call, on shared words (the mappings of a region differ between processes).
 * None of these touches errno; results are 0 or -errno. All are async-signal-safe.
 */
#ifndef USYSV_BASE_FUTEX_H
#define USYSV_BASE_FUTEX_H

#include <stdint.h>
#include <time.h>

/* Wakes at most count waiters of *word; returns how many were woken. Never blocks. */
int futex_wake(const void *word, int count);

/*
 * Sleeps while *word == value, until *deadline of CLOCK_MONOTONIC (null: without one).
 * 0 woken, -EAGAIN the word differs, -ETIMEDOUT, -EINTR after a handler ran: only with a
 * deadline, for without one the kernel restarts the call. See futex(2).
 */
int futex_wait(const void *word, uint32_t value, const struct timespec *deadline);

/*
 * Sleeps while *a == value_a and *b == value_b (futex_waitv, Linux 5.16), until *deadline.
 * As futex_wait(); -ENOSYS where the kernel lacks it. Restarted by the kernel after a handler.
 */
int futex_wait_either(const void *a, uint32_t value_a, const void *b, uint32_t value_b,
		      const struct timespec *deadline);

/* The same for up to FUTEX_WORDS_MOST words, without a deadline. The index of a word that was woken
 * (others may have been), or -errno. */
#define FUTEX_WORDS_MOST 128u
struct futex_word {
	const uint32_t *word;
	uint32_t value;
};
int futex_wait_any(const struct futex_word *words, unsigned count);

#endif
