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

#include "client/attach_maps.h"
#include "client/thread.h"
#include "ipc/shm.h"

/*
 * A segment as IPC_STAT shows it: the dead are buried first. *ret_attached as Linux counts:
 * mappings where /proc shows them, else attaches on record; 0 only when the kernel says that nobody
 * is. 0 or -errno as shm_stat().
 */
int attach_stat(struct thread_block *tb, int32_t id, bool by_index, bool any,
		struct shm_status *ret, uint64_t *ret_attached);

/* Takes a doomed segment away if nobody is attached; patient: waits a moment for who is dying. */
void attach_try_destroy(struct thread_block *tb, int32_t id, bool patient);

/* A segment that is due to go, because nobody living has it, goes before a call finds it there. */
void attach_drop_unused(struct thread_block *tb, int32_t id);

/* The same for all segments: after somebody has died. */
void attach_sweep(struct thread_block *tb);

/* Is it a mapping of the segment's file? */
bool attach_is_of(const struct attach_vma *v, const struct segment_shm *s);

/* How much of the segment a process has mapped (pid 0: this one). 0 or -errno; -ENOSYS: /proc does
 * not say. */
int attach_count_mappings(const struct segment_shm *s, pid_t pid, uint64_t *ret_count);

#endif
