/* SPDX-License-Identifier: MIT
 *
 * Both ends of a checkpoint, under the exclusive tree lock. What lies between them is in write.c.
 */
#include "tree/cache.h"

#include <stdlib.h>

enum { EVICT_TRIES = 4 /* for each node that has become clean */ };

void pf_tree_freeze(struct pf_tree *tree, uint64_t generation)
{
	assert(!tree->freezing && "one checkpoint at a time");
	tree->freezing = true;
	tree->epoch++;
	for (unsigned level = 0; level < PF_TREE_LEVELS; level++)
		TAILQ_CONCAT(&tree->frozen[level], &tree->dirty[level], link);
	tree->nr_frozen = atomic_exchange(&tree->nr_dirty, 0);
	tree->frozen_generation = generation;
	tree->frozen_root = tree->root;
	tree->frozen_root_level = tree->root_level;
}

/* Names @node by its address from now on, in its parent of the live tree and in the hash. The parent is found from the root:
 * it is the frozen one, or a newer one to which the pointer has moved by copies, splits and merges. */
static void settle(struct pf_tree *tree, struct pf_node *node)
{
	unsigned level = pf_node_level(node);
	if (tree->root.addr[0] == node->number) {
		tree->root = node->ptr;
	} else {
		struct pf_view v = { .tree = tree };
		struct pf_path path;
		int err = pf_find_path(&v, pf_node_key(node, 0), level + 1, &path);
		assert(!err && "the way to a changed node is in memory");
		(void)err;
		struct pf_node *parent = path.at[level + 1].node;
		unsigned i = pf_node_route(parent, pf_node_key(node, 0));
		assert(pf_node_child(parent, i).addr[0] == node->number);
		pf_inner_set_ptr(parent, i, node->ptr);
	}
	pf_cache_renumber(tree, node, node->ptr.addr[0]);
}

static void thaw(struct pf_tree *tree, struct pf_node *node)
{
	TAILQ_REMOVE(&tree->frozen[pf_node_level(node)], node, link);
	atomic_fetch_sub_explicit(&tree->nr_frozen, 1, memory_order_relaxed);
	assert(node->ptr.addr[0] && "durable, but not written");
	if (node->superseded) {
		pf_node_free_blocks(tree, node);
		pf_cache_drop(tree, node);
	} else {
		settle(tree, node);
		pf_cache_set_clean(tree, node);
	}
}

/* Between two calls a node is frozen or clean, whatever others are: a txn that wants a frozen one copies it (and it is dropped when
 * its turn comes), a clean one it changes in place, and frees its blocks in the txg of that change, as at any time after this
 * checkpoint. From the leaves up, so that above what is still frozen all is frozen or dirty (tree_priv.h I3): nothing on the way that
 * settle() goes can have been evicted, and what has been evicted is named by its address, in a frozen parent too. */
bool pf_tree_durable(struct pf_tree *tree, unsigned most)
{
	assert(tree->freezing && most);
	unsigned left = most;
	for (unsigned level = 0; level < PF_TREE_LEVELS; level++) {
		struct pf_node *node;
		while ((node = TAILQ_FIRST(&tree->frozen[level]))) {
			if (!left--) {
				pf_cache_evict(tree, EVICT_TRIES * most);
				return true;
			}
			thaw(tree, node);
		}
	}
	for (unsigned i = 0; i < tree->nr_bad_runs; i++)
		pf_space_unalloc(tree->space, tree->bad_runs[i]);
	free(tree->bad_runs);
	tree->bad_runs = NULL;
	tree->nr_bad_runs = 0;
	tree->bad_members = 0;
	tree->nr_frozen = 0;
	tree->freezing = false;
	pf_cache_evict(tree, EVICT_TRIES * most);
	return false;
}
