// SPDX-License-Identifier: MIT
/*
 * What msg_index.h answers, found by looking at everything: the meaning of the index, which the
 * checker and the tests compare with it.
 */
#include "ipc/msg_priv.h"

uint32_t msg_scan_find(struct caller *c, struct queue_shm *q, enum msg_kind kind, int64_t type)
{
	uint32_t ref = q->head_ref, found = 0, steps = 0, bound = msg_chain_bound(c->base);
	struct msg_shm *m;

	for (; ref && steps++ < bound && (m = msg_at(c->base, ref)); ref = m->next_ref) {
		if (!msg_kind_matches(kind, type, m->tree.key))
			continue;
		found = ref;
		if (kind != MSG_KIND_UP_TO || m->tree.key == 1)
			break;
		type = m->tree.key - 1; /* only a lower type is better than this one */
	}
	return found;
}

uint32_t msg_scan_match(struct caller *c, struct queue_shm *q, int64_t type)
{
	uint32_t threads = region_group_count(c->base) * GROUP_THREADS;
	uint32_t link = q->receiver_head_link, steps = 0;
	struct thread_shm *t;

	for (; (t = link_thread(c, link)) && steps++ < threads; link = t->next_link)
		if (msg_kind_matches((enum msg_kind)t->msg_kind, t->msg.key, type))
			return link;
	return 0;
}
