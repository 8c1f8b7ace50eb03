/* SPDX-License-Identifier: MIT */
/*
 * Who is attached, and the end of removed segments.
 *
 * None of these is called inside a section; all are async-signal-safe and leave errno alone.
 */
#ifndef USYSV_CLIENT_ATTACH_USED_H
#define USYSV_CLIENT_ATTACH_USED_H

#include <stdbool.h>
#include <stdint.h>

#include "client/attach_count.h"
#include "client/thread.h"
#include "ipc/shm.h"

/*
 * A segment as IPC_STAT shows it: the dead are buried first. *ret_attached as Linux counts:
 * mappings where /proc shows them, else attaches on record; 0 only when the kernel says that nobody
 * is. 0 or -errno as shm_stat(). k: of attach_begin_list(), or null.
 */
int attach_stat(struct thread_block *tb, int32_t id, bool by_index, bool any,
		const struct attach_census *k, struct shm_status *ret, uint64_t *ret_attached);

/* Before many segments are listed: buries the dead, and counts for all at once. Ends with
 * attach_census_end(). */
void attach_begin_list(struct thread_block *tb, struct attach_census *ret);

/* Takes a doomed segment away if nobody is attached; patient: waits a moment for who is dying. */
void attach_try_destroy(struct thread_block *tb, int32_t id, bool patient);

/* A segment that is due to go, because nobody living has it, goes before a call finds it there. */
void attach_drop_unused(struct thread_block *tb, int32_t id);

/* The same for all segments: after somebody has died. */
void attach_sweep(struct thread_block *tb);

#endif
