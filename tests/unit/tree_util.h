/* SPDX-License-Identifier: MIT
 *
 * Purpose: a tree on disks in memory, beside a model that says what must be in it; its checkpoints, step by step.
 *
 * Invariants
 *   I1  After each step w->model, w->frozen and w->committed say what the live tree, the one of the checkpoint under way and
 *       the one that a crash would leave hold.
 *
 * Uses: tree, space_util.h, tree_model.h.
 */
#ifndef TREE_UTIL_H
#define TREE_UTIL_H

#include "space_util.h"
#include "tree/tree_priv.h"
#include "tree_model.h"

struct world {
	struct rig rig;
	struct pf_tree *tree;
	uint64_t cache_bytes;
	uint64_t rnd;
	struct model model;
	/* of the checkpoint that is under way, and of the last one that is durable */
	struct model frozen, committed;
	struct pf_super super;
	/* what world_walk() found */
	uint64_t nr_nodes, leaf_bytes, nr_leaves;
	size_t nr_walked;
};

static inline uint64_t rnd(struct world *w, uint64_t below)
{
	w->rnd = w->rnd * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (w->rnd >> 33) % below;
}

/* -- the world ------------------------------------------------------------------------------------------------------ */
static inline void world_open_tree(struct world *w)
{
	struct pf_tree_config config = { .cache_bytes = w->cache_bytes };
	MUST(!pf_tree_open(&w->rig.set, w->rig.space, &config, &w->tree));
}

static inline void world_new(struct world *w, uint64_t seed, uint64_t cache_bytes, unsigned nr_members)
{
	uint64_t sizes[3] = { 64 << 20, 64 << 20, 64 << 20 };
	*w = (struct world){ .rnd = seed * 7919 + 1, .cache_bytes = cache_bytes };
	/* with two members every second pair of seeds has two copies of each node */
	rig_new(&w->rig, seed & 2 ? 6 : 5, nr_members, sizes, nr_members > 1 ? 2 : 1);
	world_open_tree(w);
}

static inline void world_free(struct world *w)
{
	pf_tree_close(w->tree);
	rig_free(&w->rig);
	free(w->model.items);
	free(w->frozen.items);
	free(w->committed.items);
}

static inline void world_put(struct world *w, struct pf_txn *txn, struct model_item item)
{
	uint8_t data[PF_MAX_ITEM_BYTES];
	item_fill(&item, data);
	pf_txn_put(txn, item.key, data, item.len);
	model_put(&w->model, item);
}

static inline void world_del(struct world *w, struct pf_txn *txn, struct pf_key key)
{
	pf_txn_del(txn, key);
	model_del(&w->model, key);
}

/* One put by itself. */
static inline int world_put_one(struct world *w, struct model_item item)
{
	struct pf_txn txn;
	pf_txn_init(&txn, w->tree);
	pf_txn_want(&txn, item.key, item.key, PF_TXN_ITEM(item.len));
	int err = pf_txn_lock(&txn);
	if (!err)
		world_put(w, &txn, item);
	pf_txn_end(&txn);
	return err;
}

static inline int world_del_one(struct world *w, struct pf_key key)
{
	struct pf_txn txn;
	pf_txn_init(&txn, w->tree);
	pf_txn_want(&txn, key, key, 0);
	int err = pf_txn_lock(&txn);
	if (!err)
		world_del(w, &txn, key);
	pf_txn_end(&txn);
	return err;
}

/* -- a checkpoint in its steps ---------------------------------------------------------------------------------------- */
static inline void world_freeze(struct world *w)
{
	w->super = w->rig.super;
	pf_tree_lock(w->tree);
	pf_tree_freeze(w->tree, w->rig.generation + 1);
	pf_space_freeze(w->rig.space);
	pf_tree_unlock(w->tree);
	model_copy(&w->frozen, &w->model);
}

static inline int world_write(struct world *w)
{
	uint32_t changed;
	int err = pf_tree_write_frozen(w->tree, &w->super.root, &w->super.root_level);
	return err ? err : pf_space_write(w->rig.space, w->rig.generation + 1, &w->super, &changed);
}

/* A part of the frozen nodes. True: there are more. */
static inline bool world_thaw(struct world *w, unsigned most)
{
	pf_tree_lock(w->tree);
	bool more = pf_tree_durable(w->tree, most);
	pf_tree_unlock(w->tree);
	return more;
}

static inline void world_thawed(struct world *w)
{
	rig_durable(&w->rig, &w->super);
	model_copy(&w->committed, &w->frozen);
}

static inline void world_durable(struct world *w)
{
	while (world_thaw(w, 3))
		;
	world_thawed(w);
}

static inline void world_checkpoint(struct world *w)
{
	world_freeze(w);
	MUST(!world_write(w));
	world_durable(w);
}

#endif
