/* SPDX-License-Identifier: MIT */
/*
 * Ids, indexes and keys of one family. Card ID_P1 is in ids.c. Ids are chosen as Linux chooses
 * them: the next index after the last one used, inside a window of max(1.5 x in use, 64), the
 * sequence number going up whenever the index does not.
 */
#ifndef USYSV_CORE_IDS_H
#define USYSV_CORE_IDS_H

#include "core/caller.h"
#include "core/layout.h"

/* The live object of this id, or null. The caller looks at `live` again after reading fields. */
struct object_shm *ids_lookup(const unsigned char *base, enum family family, int32_t id,
			      uint32_t *ret_ix);

/* Offset of a family's table lock and of an object's lock. */
uint64_t ids_table_lock(enum family family);
uint64_t ids_object_lock(enum family family, uint32_t ix);

/*
 * Finds a key without a lock. True: *ret_ix and *ret_live of an object that had it at that moment.
 * False: not found, which only a search under the table's lock can make certain.
 */
bool ids_find_key(const unsigned char *base, enum family family, int32_t key, uint32_t *ret_ix,
		  uint32_t *ret_live);

/* The same under the table's lock: exact. But a removal may take the object away at any time, so
 * `live` is to be had from here, not from the object afterwards. */
bool ids_find_key_locked(struct caller *c, enum family family, int32_t key, uint32_t *ret_ix,
			 uint32_t *ret_live);

/* Takes the key of a live object away: it is found no more. Under the table's lock. */
void ids_drop_key_locked(struct caller *c, enum family family, uint32_t ix);

/*
 * Under the table's lock: chooses index and id for a new object and notes the creation in the
 * thread's slot. 0 or -ENOSPC (limit or capacity reached), OUTCOME_BUSY never. -EAGAIN: slot
 * *ret_ix does not exist yet; unlock, ids_make_slot(), start over.
 */
int ids_reserve_locked(struct caller *c, enum family family, uint64_t limit, uint32_t *ret_ix,
		       int32_t *ret_id);
int ids_make_slot(struct caller *c, enum family family, uint32_t ix);

/* A generation for an object about to be made: 24 bits, not 0, one counter a family. */
uint32_t ids_new_generation(struct caller *c, enum family family);

/* Fills the common fields (all but `live`), enters the key. Under the table's lock. */
void ids_fill_locked(struct caller *c, enum family family, uint32_t ix, uint32_t gen, int32_t key,
		     uint32_t mode, int64_t now);
/*
 * Publishes the object: the commit of the creation. `total` is added to the table's total. The
 * thread's op is still CREATE: the family takes its blocks over, then clears it.
 */
void ids_publish_locked(struct caller *c, enum family family, uint32_t ix, int32_t id,
			uint64_t total);

/*
 * Last part of a removal, for the thread whose op is PURGE on this slot (c's own, or a dead one
 * that c buries): takes the table's lock, takes the key out, frees the index, clears that op.
 * 0 or OUTCOME_BUSY.
 */
int ids_forget(struct caller *c, enum family family, uint32_t thread_ix, uint32_t ix,
	       uint64_t total);

/* Copies what there is to show of an object, without its lock. The caller has looked at `live`, and
 * looks again. */
void ids_copy_object(const struct object_shm *o, struct object_shm *ret);

/* Highest index in use; -1 when none. Sums and counts are read without a lock. */
int32_t ids_highest(const unsigned char *base, enum family family);

/*
 * Repair of a family's table whose lock the dead thread holds; `total` tells what an object counts
 * for. True: the dead one's creation (op CREATE, op_ix) is complete but for what the family does
 * after publishing; the caller does that and clears op.
 */
bool ids_repair(struct caller *c, uint32_t dead_ix, enum family family,
		uint64_t (*total)(const unsigned char *base, uint32_t ix));

#endif
