/* SPDX-License-Identifier: MIT */
/*
 * Attaching and detaching segments; who is attached, and the end of removed segments, is in
 * attach_used.h. What the calls check and how they answer is calls_shm.c's.
 *
 * None of these is called inside a section; all are async-signal-safe and leave errno alone.
 */
#ifndef USYSV_CLIENT_ATTACH_H
#define USYSV_CLIENT_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "client/thread.h"
#include "ipc/shm.h"

struct attach_request {
	int32_t id;
	uint32_t wanted; /* permission bits */
	bool read_only, execute;
	bool fixed, replace; /* at this address; over what is there */
	uint64_t address;
};

/* 0 with rq->address, or -errno as shmat(2). */
int attach_segment(struct thread_block *tb, struct attach_request *rq);

/*
 * Makes the file of a new segment before anybody attaches it. 0 or -errno: it could not be made;
 * -EINTR: not yet, the first attach will make it; -EINVAL, -EIDRM: the segment has gone already.
 */
int attach_make(struct thread_block *tb, int32_t id);

/* 0; -EINVAL: nothing that starts there, as shmdt(2) counts starts; -ENOMEM: what is mapped cannot
 * be told for now. */
int attach_detach(struct thread_block *tb, uint64_t address);

#endif
