// SPDX-License-Identifier: MIT
#include "ipc/msg_priv.h"

void msg_index_reset(struct queue_shm *q)
{
	q->root_ref = 0;
}

void msg_index_add(struct caller *c, struct queue_shm *q, uint32_t ref)
{
	(void)c;
	(void)q;
	(void)ref;
}

void msg_index_remove(struct caller *c, struct queue_shm *q, uint32_t ref)
{
	(void)c;
	(void)q;
	(void)ref;
}

uint32_t msg_index_find(struct caller *c, struct queue_shm *q, enum msg_kind kind, int64_t type)
{
	return msg_scan_find(c, q, kind, type);
}

void msg_index_sleep(struct caller *c, struct queue_shm *q, uint32_t thread_ix)
{
	(void)c;
	(void)q;
	(void)thread_ix;
}

void msg_index_wake(struct caller *c, struct queue_shm *q, uint32_t thread_ix)
{
	(void)c;
	(void)q;
	(void)thread_ix;
}

uint32_t msg_index_match(struct caller *c, struct queue_shm *q, int64_t type)
{
	return msg_scan_match(c, q, type);
}
