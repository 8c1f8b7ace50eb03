/* SPDX-License-Identifier: MIT */
/* Files that lost their name under a mapping; see gone.c. */
#ifndef USYSV_CLIENT_GONE_H
#define USYSV_CLIENT_GONE_H

#include <stdbool.h>

/* Has the file that is mapped at this address no name any more? False when that cannot be told.
 * Async-signal-safe; leaves errno alone. */
bool gone_mapped_file(const unsigned char *address);

#endif
