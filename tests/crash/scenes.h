/* SPDX-License-Identifier: MIT */
/* What the tables of scenes share: setting a region up. */
#ifndef TESTS_CRASH_SCENES_H
#define TESTS_CRASH_SCENES_H

#include "stepper.h"
#include "unit/msg-calls.h"
#include "unit/shm-calls.h"

/* A line of a table. */
#define SCENE(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* A set, with semaphore 0 used before: an exit with a record, be it empty, sets its time, as on
 * Linux. So a death right after the record was made differs from one before by nothing else. */
void make_set(struct cast *c, int k, int n, const int *values);
/* An operation on it that must succeed. */
void do_op(struct cast *c, struct actor *a, int k, uint32_t num, int by, int flags);
/* The next waiter queues these operations and sleeps, in the kernel. */
void queue_ops(struct cast *c, int k, const struct semop_shm *ops, uint32_t n);
void queue_one(struct cast *c, int k, uint16_t num, int16_t op, int16_t flags);

/* A new waiter, the next one. Its call has said SLEEP: it sleeps in the kernel. */
struct actor *add_waiter(struct cast *c);
void put_to_sleep(struct actor *a);

/* Somebody sleeps on this lock all the time. */
void contend(struct cast *c, uint64_t lock);
void contend_object(struct cast *c, enum family family, int32_t id);

/* Queues: id[0] stays with the sets, so the queue of a scene is this. */
int32_t scene_queue(const struct cast *c);
void put_messages(struct cast *c);   /* types 1, 2, 1 */
void receivers_wait(struct cast *c); /* for 7, for 3, for any */
void senders_wait(struct cast *c);   /* full; of 9, for which one waits; of 2; of 2, larger */
void set_room(struct cast *c, uint64_t qbytes);
void receiver_sleeps(struct cast *c, uint64_t bytes, int64_t type, uint32_t flags);
void sender_sleeps(struct cast *c, long type, uint64_t bytes);

/* The first segment that lives. */
int32_t scene_segment(const struct cast *c);
void new_scene_segment(struct cast *c);

#endif
