/* SPDX-License-Identifier: MIT */
/*
 * The end of a namespace. Who removes asks first, counts the registered users once more, and only
 * then makes it final and unlinks. Who enters registers first and looks at `removed` afterwards
 * (retire_cancel): finding a request it takes it back, finding the end it leaves and starts
 * over with a new namespace.
 *
 *   RETIRE_P1  end of a namespace
 *    word      header_shm.removed, 32-bit
 *    states    NO > ASKED > FINAL; ASKED > NO
 *    writers   NO > ASKED > FINAL: the one remover, under flock on the region file. ASKED > NO:
 *              whoever has entered, or the remover when somebody did
 *    order     A of the remover's CAS to ASKED pairs with R of an entering read-modify-write that
 *              came before it: the registration is then seen by the count. One that comes after
 *              reads ASKED or FINAL
 *    stale-ok  ASKED with no remover (he died): the next who enters takes it back
 *    death     remover before FINAL: the kernel drops his flock, the request is taken back or
 *              repeated. After FINAL: whoever opens the namespace finishes the unlinking
 *    progress  lock-free; a busy remover is not waited for
 */
#ifndef USYSV_CLIENT_RETIRE_H
#define USYSV_CLIENT_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/namespace.h"

#define REMOVED_NO    0u
#define REMOVED_ASKED 1u
#define REMOVED_FINAL 2u

/* Registered processes that count as users (not reapers), by the registry alone. [signal] */
uint32_t retire_users(const unsigned char *base);

/* Registered reapers: whoever waits for the end of a program that may not have registered yet. */
uint32_t retire_reapers(const unsigned char *base);

/*
 * Was the namespace removed by force? Its objects are removed then, and who is still in it gets
 * EIDRM for new ones, but for a call that is just on its way. [signal]
 */
bool retire_is_final(const unsigned char *base);

/* Is the namespace gone: removed for good, or its file unlinked? [signal] */
bool retire_done(int fd, const unsigned char *base);

/* Takes a request back; false: the removal is final. The caller has registered. [signal] */
bool retire_cancel(const unsigned char *base);

#define RETIRE_FORCE 1u /* although it has users */
#define RETIRE_EMPTY 2u /* only if it has no objects either */

/*
 * Removes the namespace of this region if it has no user. fd is the region's, opened by this
 * process. 0 removed, -EBUSY users (or another remover), -ENOTEMPTY, or as namespace_unlink().
 */
int retire_namespace(const struct namespace_place *place, int fd, const unsigned char *base,
		     unsigned flags);

#endif
