/* SPDX-License-Identifier: MIT */
/* A set of signals that more than one place blocks. */
#ifndef USYSV_BASE_SIGNAL_SET_H
#define USYSV_BASE_SIGNAL_SET_H

#include <signal.h>
#include <stddef.h>

/* All but what the hardware raises in the thread itself, which is not to be blocked. */
static inline void signal_set_of_others(sigset_t *ret)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

	sigfillset(ret);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(ret, own[i]);
}

#endif
