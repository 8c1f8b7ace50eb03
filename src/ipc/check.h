/* SPDX-License-Identifier: MIT */
/*
 * The whole-region checker: walks everything, changes nothing, says what is inconsistent. The
 * oracle of all tests about death, and a user's command. On a namespace in use it may report what
 * is merely in flight: ask twice, or when it is at rest.
 */
#ifndef USYSV_IPC_CHECK_H
#define USYSV_IPC_CHECK_H

/* Number of inconsistencies; say is called with a line of text for each. No process memory is
 * allocated for it, but the caller's stack. */
int check_region(const unsigned char *base, void (*say)(void *context, const char *text),
		 void *context);

#endif
