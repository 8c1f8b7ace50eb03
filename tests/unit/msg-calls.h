/* SPDX-License-Identifier: MIT */
/* The message calls of an actor, for tests of the engine without a client. */
#ifndef TESTS_UNIT_MSG_CALLS_H
#define TESTS_UNIT_MSG_CALLS_H

#include "unit.h"

#include "ipc/msg_priv.h"

#define MSG_TEXT_MOST (256u << 10)

struct msg_buffer {
	long type;
	unsigned char text[MSG_TEXT_MOST];
};

static inline struct queue_shm *queue_of(const struct actor *a, int32_t id)
{
	return region_queue(a->e->base, (uint32_t)id & (OBJECT_CAPACITY - 1));
}

static inline int32_t new_queue(struct actor *a)
{
	int32_t id = -1;
	int rc;

	while ((rc = msg_get(&a->c, 0, 0600, NOW, &id)) == OUTCOME_BUSY)
		engine_wait(a);
	EXPECT_INT(rc, OUTCOME_DONE);
	return id;
}

/* What the client does around calls: large blocks that are used up go back. */
static inline void tidy(struct actor *a)
{
	while (!msg_is_tidy(actor_slot(a)) && msg_tidy(&a->c) == OUTCOME_BUSY)
		engine_wait(a);
}

/* A message whose text begins with its number. DONE, SLEEP or -errno. */
static inline int send_number(struct actor *a, int32_t id, long type, uint64_t bytes,
			      uint32_t number, uint32_t flags)
{
	static __thread struct msg_buffer buffer;
	struct msg_send_request rq = {
		.id = id, .user = &buffer, .bytes = bytes, .flags = flags, .now = NOW + 1};
	int rc;

	buffer.type = type;
	memset(buffer.text, (int)number, bytes);
	memcpy(buffer.text, &number, bytes < sizeof(number) ? bytes : sizeof(number));
	while ((rc = msg_send(&a->c, &rq)) == OUTCOME_BUSY)
		engine_wait(a);
	if (rc != OUTCOME_SLEEP)
		tidy(a);
	return rc;
}

struct got {
	long type;
	int64_t bytes;
	uint32_t number;
};

static inline struct msg_buffer *receive_buffer(void)
{
	static __thread struct msg_buffer buffer;

	return &buffer;
}

static inline struct got got_from(const struct msg_receive_request *rq)
{
	struct got got = {receive_buffer()->type, rq->ret_bytes, 0};

	if (got.bytes >= (int64_t)sizeof(got.number))
		memcpy(&got.number, receive_buffer()->text, sizeof(got.number));
	return got;
}

/* DONE, SLEEP or -errno. */
static inline int receive(struct actor *a, int32_t id, uint64_t bytes, int64_t type, uint32_t flags,
			  struct got *ret)
{
	struct msg_receive_request rq = {.id = id,
					 .user = receive_buffer(),
					 .bytes = bytes,
					 .type = type,
					 .flags = flags,
					 .now = NOW + 2};
	int rc;

	while ((rc = msg_receive(&a->c, &rq)) == OUTCOME_BUSY)
		engine_wait(a);
	if (rc == OUTCOME_DONE && ret)
		*ret = got_from(&rq);
	if (rc != OUTCOME_SLEEP)
		tidy(a);
	return rc;
}

/* The sleep of a receiver has ended: its result. */
static inline int receive_ended(struct actor *a, uint64_t bytes, struct got *ret)
{
	struct msg_receive_request rq = {.user = receive_buffer(), .bytes = bytes};
	int rc = msg_wait_result(&a->c);

	if (rc == 0)
		rc = msg_receive_granted(&a->c, &rq);
	if (rc == OUTCOME_DONE && ret)
		*ret = got_from(&rq);
	tidy(a);
	return rc;
}

static inline int send_ended(struct actor *a)
{
	int rc = msg_wait_result(&a->c);

	tidy(a);
	return rc;
}

static inline bool leaves(struct actor *a)
{
	bool left;

	while (msg_leave(&a->c, &left) == OUTCOME_BUSY)
		engine_wait(a);
	return left;
}

static inline int change_queue(struct actor *a, int32_t id, uint32_t uid, uint32_t mode,
			       uint64_t qbytes)
{
	int rc;

	a->creds.cap_sys_resource = true;
	while ((rc = msg_set(&a->c, id, uid, 0, mode, qbytes, NOW + 3)) == OUTCOME_BUSY)
		engine_wait(a);
	return rc;
}

static inline int remove_queue(struct actor *a, int32_t id)
{
	int rc;

	while ((rc = msg_remove(&a->c, id)) == OUTCOME_BUSY)
		engine_wait(a);
	while (rc == OUTCOME_DONE && msg_purge(&a->c, a->c.thread_ix) == OUTCOME_BUSY)
		engine_wait(a);
	return rc;
}

#endif
