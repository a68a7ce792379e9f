/* SPDX-License-Identifier: MIT */
#include "tree/tree_priv.h"

/* The smallest key above @key. */
static struct pf_key successor(struct pf_key key)
{
	return key.lo < UINT64_MAX ? (struct pf_key){ key.hi, key.lo + 1 } : (struct pf_key){ key.hi + 1, 0 };
}

static void set_upper(struct pf_node *node, struct pf_key upper)
{
	pf_node_set_range(node, pf_node_lower(node), upper);
}

/* One level up: the root above @left and @right. */
static void grow_root(struct pf_txn *txn, struct pf_node *left, struct pf_key key, struct pf_node *right)
{
	struct pf_tree *tree = txn->tree;
	assert(tree->root_level + 1 < PF_TREE_LEVELS);
	struct pf_node *root = pf_txn_spare(txn, ++tree->root_level, PF_KEY_MIN, PF_KEY_MAX);
	pf_inner_insert(root, 0, PF_KEY_MIN, left->number);
	pf_inner_insert(root, 1, key, right->number);
	tree->root = (struct pf_ptr){ .addr = { root->number } };
}

/* Hangs @right, which is for keys from @key on, behind the node of @path at @level, splitting above where it is full. */
static void insert_right(struct pf_txn *txn, struct pf_path *path, unsigned level, struct pf_key key,
			 struct pf_node *right)
{
	for (;; level++) {
		if (level == txn->tree->root_level) {
			grow_root(txn, path->at[level].node, key, right);
			return;
		}
		struct pf_node *parent = path->at[level + 1].node;
		unsigned at = path->at[level + 1].idx + 1, nr = pf_node_nr(parent);
		if (nr < PF_NODE_FANOUT) {
			pf_inner_insert(parent, at, key, right->number);
			return;
		}
		/* At the right edge, keys come in ascending order: leave the left half full. */
		bool uneven = at == nr && txn->nr_uneven;
		txn->nr_uneven -= uneven;
		unsigned from = uneven ? nr : nr / 2;
		struct pf_key middle = uneven ? key : pf_node_key(parent, from);
		struct pf_node *half = pf_txn_spare(txn, level + 1, middle, pf_node_upper(parent));
		pf_inner_move_tail(parent, from, half);
		set_upper(parent, middle);
		if (at > from || uneven)
			pf_inner_insert(half, at - from, key, right->number);
		else
			pf_inner_insert(parent, at, key, right->number);
		key = middle;
		right = half;
	}
}

/* Keys that ascend from one insertion to the next (directory entries, extents, new inodes) go on ascending: the new item
 * begins the right half and the left one stays full, where that leaves at least half of the room on either side. */
static bool goes_right(const struct pf_node *leaf, unsigned at)
{
	if (at == pf_node_nr(leaf))
		return true;
	if (leaf->hint == PF_NODE_NO_HINT || leaf->hint + 1u != at)
		return false;
	unsigned left = 0;
	for (unsigned i = 0; i < at; i++) {
		unsigned len;
		pf_leaf_data(leaf, i, &len);
		left += len + (unsigned)sizeof(struct pf_disk_leaf_item);
	}
	return left >= PF_NODE_ROOM / 2;
}

void pf_split_leaf(struct pf_txn *txn, struct pf_path *path, unsigned at, struct pf_key key, const void *data,
		   unsigned len)
{
	struct pf_node *leaf = path->at[0].node;
	bool uneven = txn->nr_uneven && goes_right(leaf, at);
	txn->nr_uneven -= uneven;
	unsigned from = uneven ? at : pf_leaf_split_point(leaf, at, len); /* the new item counted */
	bool right_gets_it = at >= from;
	unsigned move = right_gets_it ? from : from - 1;

	/* The bound lies right behind the left half when that is full, so that keys in between find room; else before the
	 * right half, so that they fill the left one. */
	struct pf_key bound = at == from ? key : pf_node_key(leaf, move);
	if (uneven)
		bound = successor(pf_node_key(leaf, at - 1));
	struct pf_node *right = pf_txn_spare(txn, 0, bound, pf_node_upper(leaf));
	pf_leaf_move_tail(leaf, move, right);
	set_upper(leaf, bound);
	if (right_gets_it)
		pf_leaf_insert(right, at - from, key, data, len);
	else
		pf_leaf_insert(leaf, at, key, data, len);
	insert_right(txn, path, 0, bound, right);
}
