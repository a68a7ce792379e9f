/* SPDX-License-Identifier: MIT */
#include "tree/tree_priv.h"

/* In units of pf_node_fill(). The gap between them keeps a node from being merged and split in turns, and what is merged
 * has PF_LEAF_ROOM free, on which the reservation counts (txn.c). */
#define MERGE_BELOW 340u
#define MERGE_UP_TO 680u
static_assert(PF_NODE_ROOM - (MERGE_UP_TO + 2) * PF_NODE_ROOM / 1024 >= PF_LEAF_ROOM, "merged leaves are not full");

/* Joins the node of @path at @level with child @i of its parent (a direct neighbour), if that is in memory and both fit. */
static bool merge_with(struct pf_tree *tree, struct pf_path *path, unsigned level, unsigned i)
{
	struct pf_node *node = path->at[level].node, *parent = path->at[level + 1].node;
	unsigned at = path->at[level + 1].idx;
	if (i >= pf_node_nr(parent))
		return false;
	struct pf_view v = { .tree = tree };
	struct pf_node *other = pf_find_child(&v, parent, i);
	if (!other || pf_node_fill(node) + pf_node_fill(other) > MERGE_UP_TO)
		return false;
	/* The neighbour's items come to the node that is DIRTY already: the neighbour itself need not be copied. */
	if (i < at) {
		pf_node_join(node, other, node);
		pf_inner_set_key(parent, at, pf_node_key(parent, i));
		path->at[level + 1].idx--;
	} else {
		pf_node_join(node, node, other);
	}
	pf_inner_remove(parent, i);
	pf_node_release(tree, other);
	return true;
}

void pf_merge(struct pf_tree *tree, struct pf_path *path, unsigned level)
{
	for (; level < tree->root_level && pf_node_fill(path->at[level].node) < MERGE_BELOW; level++) {
		unsigned at = path->at[level + 1].idx;
		/* Before the first there is UINT_MAX, which is behind the last. */
		if (!merge_with(tree, path, level, at - 1) && !merge_with(tree, path, level, at + 1))
			return;
	}
}

void pf_remove_leaf(struct pf_txn *txn, struct pf_path *path)
{
	struct pf_tree *tree = txn->tree;
	unsigned level = 0;
	while (level < tree->root_level && pf_node_nr(path->at[level + 1].node) == 1)
		level++;
	if (level == tree->root_level) {
		tree->root = (struct pf_ptr){ 0 };
		tree->root_level = 0;
	} else {
		pf_path_dirty(txn, path, level + 1);
		pf_inner_remove(path->at[level + 1].node, path->at[level + 1].idx);
	}
	for (unsigned i = 0; i <= level; i++)
		pf_node_release(tree, path->at[i].node);
	if (tree->root.addr[0])
		pf_merge(tree, path, level + 1);
}

void pf_shrink_root(struct pf_tree *tree)
{
	while (tree->root.addr[0] && tree->root_level) {
		struct pf_view v = { .tree = tree };
		struct pf_node *root = pf_find_root(&v);
		if (!root || pf_node_nr(root) > 1)
			return;
		tree->root = pf_node_child(root, 0);
		tree->root_level--;
		pf_node_release(tree, root);
	}
}
