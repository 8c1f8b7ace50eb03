/* SPDX-License-Identifier: MIT */
/* The process's credentials as the kernel has them, cached until a call may have changed them. */
#ifndef USYSV_CLIENT_CREDS_H
#define USYSV_CLIENT_CREDS_H

#include "core/caller.h"

/* The credentials of now. Valid until they have been read anew eight times. [signal] */
const struct creds *creds_current(void);

/* They may have changed: read them anew at the next creds_current(). [signal] */
void creds_invalidate(void);

#endif
