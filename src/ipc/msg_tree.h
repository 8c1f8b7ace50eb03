/* SPDX-License-Identifier: MIT */
/*
 * A search tree by type, made of nodes that lie in messages or in waiters and name each other by
 * reference or link (0 = none). A treap whose priorities are a one-to-one hash of the types: its
 * shape depends on nothing but the set of types in it, and needs no word of its own. Under the
 * queue's lock; derived, so a death in the middle costs a rebuild. Functions are inlined into
 * their two users, with the way from a name to its node.
 */
#ifndef USYSV_IPC_MSG_TREE_H
#define USYSV_IPC_MSG_TREE_H

#include "core/layout.h"

typedef struct tree_shm *tree_node_fn(const unsigned char *base, uint32_t name);

#define TREE_INLINE static inline __attribute__((always_inline))

/* A path of more steps than this is damage. */
#define TREE_DEPTH 4096u

/* Distinct types have distinct priorities. */
static inline uint64_t tree_priority(int64_t key)
{
	uint64_t h = (uint64_t)key;

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/* Where the node with this key is named; null when there is none. */
TREE_INLINE uint32_t *tree_find(const unsigned char *base, tree_node_fn *node, uint32_t *root,
				int64_t key)
{
	uint32_t *at = root;

	for (uint32_t depth = 0; *at && depth < TREE_DEPTH; depth++) {
		struct tree_shm *n = node(base, *at);

		if (!n)
			break;
		if (n->key == key)
			return at;
		at = key < n->key ? &n->left : &n->right;
	}
	return NULL;
}

/* The lowest key's node; 0 when the tree is empty. */
TREE_INLINE uint32_t tree_lowest(const unsigned char *base, tree_node_fn *node, uint32_t root)
{
	struct tree_shm *n = root ? node(base, root) : NULL;

	for (uint32_t depth = 0; n && n->left && depth < TREE_DEPTH; depth++) {
		root = n->left;
		n = node(base, root);
	}
	return n ? root : 0;
}

/* Adds a node whose key is not in the tree. */
TREE_INLINE void tree_insert(const unsigned char *base, tree_node_fn *node, uint32_t *root,
			     uint32_t name)
{
	struct tree_shm *mine = node(base, name), *n;
	uint32_t *at = root, *left, *right, cut, depth = 0;
	uint64_t priority;

	if (!mine) /* damaged meanwhile, as below */
		return;
	priority = tree_priority(mine->key);
	left = &mine->left;
	right = &mine->right;
	while (*at && (n = node(base, *at)) && tree_priority(n->key) > priority &&
	       depth++ < TREE_DEPTH)
		at = mine->key < n->key ? &n->left : &n->right;
	cut = *at;
	*at = name;
	while (cut && (n = node(base, cut)) && depth++ < TREE_DEPTH) {
		if (n->key < mine->key) {
			*left = cut;
			left = &n->right;
			cut = n->right;
		} else {
			*right = cut;
			right = &n->left;
			cut = n->left;
		}
	}
	*left = *right = 0;
}

/* Removes the node named at `at`. */
TREE_INLINE void tree_remove(const unsigned char *base, tree_node_fn *node, uint32_t *at)
{
	struct tree_shm *n = node(base, *at), *l, *r;
	uint32_t a = n ? n->left : 0, b = n ? n->right : 0, depth = 0;

	while (a && b && (l = node(base, a)) && (r = node(base, b)) && depth++ < TREE_DEPTH) {
		if (tree_priority(l->key) > tree_priority(r->key)) {
			*at = a;
			at = &l->right;
			a = l->right;
		} else {
			*at = b;
			at = &r->left;
			b = r->left;
		}
	}
	*at = a ? a : b;
}

/* Another node with the same key takes the place of the one named at `at`. */
TREE_INLINE void tree_replace(const unsigned char *base, tree_node_fn *node, uint32_t *at,
			      uint32_t name)
{
	struct tree_shm *old = node(base, *at), *mine = node(base, name);

	if (!old || !mine)
		return;
	mine->left = old->left;
	mine->right = old->right;
	*at = name;
}

#endif
