/* SPDX-License-Identifier: MIT
 *
 * Both ends of a checkpoint, under the exclusive tree lock. What lies between them is in write.c.
 */
#include "tree/cache.h"

#include <stdlib.h>

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

void pf_tree_durable(struct pf_tree *tree)
{
	assert(tree->freezing);
	for (unsigned level = 0; level < PF_TREE_LEVELS; level++) {
		struct pf_node *node;
		while ((node = TAILQ_FIRST(&tree->frozen[level]))) {
			TAILQ_REMOVE(&tree->frozen[level], node, link);
			assert(node->ptr.addr[0] && "durable, but not written");
			if (node->superseded) {
				pf_node_free_blocks(tree, node);
				pf_cache_drop(tree, node);
			} else {
				settle(tree, node);
				pf_cache_set_clean(tree, node);
			}
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
	pf_cache_evict(tree);
}
