/* SPDX-License-Identifier: MIT
 *
 * Purpose: does a tree hold what the model says: by its look-ups, and by walking over what was written.
 *
 * Invariants
 *   I1  world_walk() reads the written tree by itself, without the tree's look-ups and cache.
 *
 * Uses: tree_util.h.
 */
#ifndef TREE_COMPARE_H
#define TREE_COMPARE_H

#include "tree_util.h"

/* -- comparing -------------------------------------------------------------------------------------------------------- */
/* Everything in the tree, by pf_view_next(). */
static inline void world_compare(struct world *w)
{
	struct pf_key key = PF_KEY_MIN;
	for (size_t i = 0; i <= w->model.nr; i++) {
		struct pf_view v;
		struct pf_item item;
		int err;
		PF_VIEW (v, w->tree, err) {
			err = pf_view_next(&v, key, &item);
			if (!err)
				MUST(i < w->model.nr && item_is(&w->model.items[i], item.key, item.data, item.len));
		}
		MUST(err == (i < w->model.nr ? 0 : -ENOENT));
		if (err)
			return;
		key = w->model.items[i].key;
		if (key.lo++ == UINT64_MAX && key.hi++ == UINT64_MAX)
			return;
	}
}

/* The three look-ups with one key. */
static inline void world_compare_at(struct world *w, struct pf_key key)
{
	bool found;
	size_t i = model_find(&w->model, key, &found);
	const struct model_item *items = w->model.items;
	struct pf_view v;
	struct pf_item get = { .len = 0 }, next = { .len = 0 }, prev = { .len = 0 };
	int err, e[3];
	PF_VIEW (v, w->tree, err) {
		e[0] = err = pf_view_get(&v, key, &get);
		if (err == -PF_ENODE_ABSENT)
			continue;
		e[1] = err = pf_view_next(&v, key, &next);
		if (err == -PF_ENODE_ABSENT)
			continue;
		e[2] = err = pf_view_prev(&v, key, &prev);
		if (err == -PF_ENODE_ABSENT)
			continue;
		size_t before = found ? i : i - 1;
		MUST(e[0] == (found ? 0 : -ENOENT));
		MUST(e[0] || item_is(&items[i], get.key, get.data, get.len));
		MUST(e[1] == (i < w->model.nr ? 0 : -ENOENT));
		MUST(e[1] || item_is(&items[i], next.key, next.data, next.len));
		MUST(e[2] == (found || i ? 0 : -ENOENT));
		MUST(e[2] || item_is(&items[before], prev.key, prev.data, prev.len));
		err = 0;
	}
	MUST(!err);
}

static inline void walk(struct world *w, struct pf_ptr ptr, unsigned level, struct pf_key lower, struct pf_key upper)
{
	struct pf_node node = { .buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE) };
	struct pf_node_expect expect = {
		w->rig.super.pool_uuid, ptr.addr[0], ptr.generation, ptr.crc, level, lower, upper
	};
	MUST(!pf_set_read(&w->rig.set, ptr.addr[0], node.buf, PF_NODE_BLOCKS));
	MUST(!pf_node_validate(node.buf, &expect));
	MUST(!ptr.addr[1] || pf_super_node_copies(&w->rig.super) > 1);
	w->nr_nodes++;
	if (!level) {
		w->nr_leaves++;
		w->leaf_bytes += pf_leaf_used(&node);
	}
	for (unsigned i = 0; i < pf_node_nr(&node); i++) {
		if (level) {
			walk(w, pf_node_child(&node, i), level - 1, pf_node_key(&node, i),
			     pf_node_child_upper(&node, i));
		} else {
			unsigned len;
			const void *data = pf_leaf_data(&node, i, &len);
			MUST(w->nr_walked < w->committed.nr);
			MUST(item_is(&w->committed.items[w->nr_walked++], pf_node_key(&node, i), data, len));
		}
	}
	free(node.buf);
}

/* The committed tree holds what it must. */
static inline void world_walk(struct world *w)
{
	w->nr_nodes = w->nr_walked = w->nr_leaves = w->leaf_bytes = 0;
	if (w->rig.super.root.addr[0])
		walk(w, w->rig.super.root, w->rig.super.root_level, PF_KEY_MIN, PF_KEY_MAX);
	MUST(w->nr_walked == w->committed.nr);
}

/* As after a crash: what was committed last is there, in a new tree with nothing in memory. */
static inline void world_reopen(struct world *w)
{
	pf_tree_close(w->tree);
	rig_reopen(&w->rig);
	model_copy(&w->model, &w->committed);
	world_open_tree(w);
	/* What the rig keeps as the counter misses what was changed between freeze and durable. */
	world_walk(w);
	pf_space_set_node_blocks(w->rig.space, w->nr_nodes * PF_NODE_BLOCKS * pf_super_node_copies(&w->rig.super));
}

/* The same, and its nodes are all that takes space: nothing has changed since the freeze of the last checkpoint. */
static inline void world_walk_all(struct world *w)
{
	struct pf_space_stats stats = rig_stats(&w->rig);
	world_walk(w);
	MUST(stats.node_blocks == w->nr_nodes * PF_NODE_BLOCKS * pf_super_node_copies(&w->rig.super));
	MUST(stats.free_blocks + stats.pending_blocks + stats.node_blocks == stats.data_area_blocks);
}

#endif
