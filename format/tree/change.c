/* SPDX-License-Identifier: MIT
 *
 * Puts and deletes. Everything that they meet is in memory and everything that they need is reserved (txn.c), so nothing
 * here can fail.
 */
#include "tree/cache.h"

#include <string.h>

static void make_dirty(struct pf_tree *tree, struct pf_node *node)
{
	unsigned level = pf_node_level(node);
	node->epoch = tree->epoch;
	TAILQ_INSERT_TAIL(&tree->dirty[level], node, link);
	atomic_fetch_add_explicit(&tree->nr_dirty, 1, memory_order_relaxed);
}

static struct pf_node *take_spare(struct pf_txn *txn)
{
	assert(txn->spare && "a txn inserts more bytes than it wanted");
	struct pf_node *node = txn->spare;
	txn->spare = node->chain;
	txn->nr_spare--;
	*node = (struct pf_node){ .home = node->home, .buf = node->buf, .number = pf_cache_new_number(txn->tree), .hint = PF_NODE_NO_HINT };
	atomic_init(&node->refs, 1);
	atomic_init(&node->touched, true);
	return node;
}

struct pf_node *pf_txn_spare(struct pf_txn *txn, unsigned level, struct pf_key lower, struct pf_key upper)
{
	struct pf_node *node = take_spare(txn);
	pf_node_init(node, level, lower, upper);
	pf_cache_insert(txn->tree, node);
	make_dirty(txn->tree, node);
	return node;
}

void pf_node_free_blocks(struct pf_tree *tree, const struct pf_node *node)
{
	for (unsigned i = 0; i < 2; i++) {
		struct pf_run run = { node->ptr.addr[i], PF_NODE_BLOCKS };
		if (run.addr)
			pf_space_free(tree->space, run, PF_USE_NODE);
	}
}

void pf_node_release(struct pf_tree *tree, struct pf_node *node)
{
	if (pf_node_is_frozen(tree, node)) {
		node->superseded = true; /* the checkpoint still writes it; pf_tree_durable() frees its blocks */
		return;
	}
	if (pf_node_is_clean(node)) {
		pf_node_free_blocks(tree, node);
		pf_cache_unset_clean(tree, node);
	} else {
		TAILQ_REMOVE(&tree->dirty[pf_node_level(node)], node, link);
		atomic_fetch_sub_explicit(&tree->nr_dirty, 1, memory_order_relaxed);
	}
	pf_cache_drop(tree, node);
}

/* The node that takes the place of @node in the live tree, under a new number unless it was DIRTY before. */
static struct pf_node *dirtied(struct pf_txn *txn, struct pf_node *node)
{
	struct pf_tree *tree = txn->tree;
	if (pf_node_is_dirty(tree, node))
		return node;
	if (pf_node_is_clean(node)) {
		pf_node_free_blocks(tree, node);
		pf_cache_unset_clean(tree, node);
		pf_cache_renumber(tree, node, pf_cache_new_number(tree));
		node->ptr = (struct pf_ptr){ 0 };
		make_dirty(tree, node);
		return node;
	}
	struct pf_node *copy = take_spare(txn);
	memcpy(copy->buf, node->buf, PF_NODE_SIZE);
	copy->dead_bytes = node->dead_bytes;
	copy->hint = node->hint;
	pf_cache_insert(tree, copy);
	make_dirty(tree, copy);
	node->superseded = true;
	return copy;
}

void pf_path_dirty(struct pf_txn *txn, struct pf_path *path, unsigned level)
{
	struct pf_tree *tree = txn->tree;
	unsigned at = tree->root_level;
	path->at[at].node = dirtied(txn, path->at[at].node);
	tree->root = (struct pf_ptr){ .addr = { path->at[at].node->number } };
	pf_node_set_range(path->at[at].node, PF_KEY_MIN, PF_KEY_MAX);
	for (; at > level; at--) {
		struct pf_node *parent = path->at[at].node;
		unsigned i = path->at[at].idx;
		if (!i)
			pf_inner_set_key(parent, 0, pf_node_lower(parent));
		struct pf_node *child = dirtied(txn, path->at[at - 1].node);
		pf_inner_set_ptr(parent, i, (struct pf_ptr){ .addr = { child->number } });
		pf_node_set_range(child, pf_node_key(parent, i), pf_node_child_upper(parent, i));
		path->at[at - 1].node = child;
	}
}

static void find_path(struct pf_txn *txn, struct pf_key key, struct pf_path *path)
{
	struct pf_view v = { .tree = txn->tree };
	int err = pf_find_path(&v, key, 0, path);
	assert(!err && "a txn changes a key outside of the ranges that it wanted");
	(void)err;
}

void pf_txn_put(struct pf_txn *txn, struct pf_key key, const void *data, unsigned len)
{
	struct pf_tree *tree = txn->tree;
	struct pf_path path;
	uint8_t copy[PF_MAX_ITEM_BYTES];
	bool found;
	assert(txn->locked && len <= PF_MAX_ITEM_BYTES);
	if (!tree->root.addr[0]) {
		struct pf_node *leaf = pf_txn_spare(txn, 0, PF_KEY_MIN, PF_KEY_MAX);
		tree->root = (struct pf_ptr){ .addr = { leaf->number } };
		tree->root_level = 0;
	}
	find_path(txn, key, &path);
	pf_path_dirty(txn, &path, 0);

	struct pf_node *leaf = path.at[0].node;
	unsigned i = pf_node_search(leaf, key, &found), old_len;
	if (found) {
		pf_leaf_data(leaf, i, &old_len);
		if (len <= old_len) {
			pf_leaf_overwrite(leaf, i, data, len);
			return;
		}
	}
	/* What follows moves the items of this leaf, of which @data may be one. */
	if ((uintptr_t)data - (uintptr_t)leaf->buf < PF_NODE_SIZE)
		data = memcpy(copy, data, len);
	if (found)
		pf_leaf_remove(leaf, i);
	if (pf_leaf_fits(leaf, len))
		pf_leaf_insert(leaf, i, key, data, len);
	else
		pf_split_leaf(txn, &path, i, key, data, len);
}

void pf_txn_del(struct pf_txn *txn, struct pf_key key)
{
	struct pf_tree *tree = txn->tree;
	struct pf_path path;
	bool found;
	assert(txn->locked);
	if (!tree->root.addr[0])
		return;
	find_path(txn, key, &path);
	unsigned i = pf_node_search(path.at[0].node, key, &found);
	if (!found)
		return;
	if (pf_node_nr(path.at[0].node) == 1) {
		pf_remove_leaf(txn, &path);
	} else {
		pf_path_dirty(txn, &path, 0);
		pf_leaf_remove(path.at[0].node, i);
		pf_merge(tree, &path, 0);
	}
	pf_shrink_root(tree);
}
