/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the files of tree/ share: the tree itself, states of nodes, look-up inside a lock section.
 *
 * Invariants
 *   I1  A node is CLEAN (epoch 0), DIRTY (epoch of the tree) or FROZEN (the epoch before): so a freeze is a step of the
 *       tree's epoch and touches no node.
 *   I2  Everything here changes under the exclusive lock only, except: 'touched', 'refs', the counters (atomic), the
 *       pool of spare nodes and the list of reports (own mutex), and ptr of FROZEN nodes (the checkpoint writer's).
 *   I3  Only CLEAN nodes can be absent. The parent of a DIRTY or FROZEN node of the live tree is itself DIRTY or FROZEN.
 *   I4  A CLEAN node that is to change becomes DIRTY in its place; only a FROZEN one has to be copied.
 *
 * Uses: tree/tree, tree/node.
 */
#ifndef PF_TREE_PRIV_H
#define PF_TREE_PRIV_H

#include "tree/node_mem.h"
#include "tree/tree.h"

#include <pthread.h>

#define PF_TREE_LEVELS     13u /* as many as a superblock may announce */
#define PF_TREE_POOL_NODES 256u
#define PF_TREE_REPORTS    32u

struct pf_tree {
	pthread_rwlock_t lock;
	struct pf_set *set;
	struct pf_space *space;

	struct pf_ptr root; /* addr[0]: number of the root node, 0: empty tree */
	unsigned root_level;
	uint64_t epoch;
	uint64_t next_virtual;
	uint64_t next_visit;

	/* cache.c */
	struct pf_node **buckets;
	unsigned bucket_bits;
	struct pf_node_list clean; /* the clock: its hand is at the first */
	uint64_t nr_clean, max_clean;
	atomic_uint_fast64_t nr_hits, nr_misses;
	pthread_mutex_t mutex; /* of pool and reports */
	struct pf_node_mem mem;
	struct pf_node *pool; /* kept for the next who needs some */
	unsigned nr_pool;
	pf_addr reports[PF_TREE_REPORTS]; /* damaged nodes that were logged already */
	unsigned next_report;

	struct pf_node_list dirty[PF_TREE_LEVELS];
	atomic_uint_fast64_t nr_dirty;

	/* freeze.c, write.c: the checkpoint under way */
	struct pf_node_list frozen[PF_TREE_LEVELS];
	atomic_uint_fast64_t nr_frozen;
	bool freezing;
	uint64_t frozen_generation;
	struct pf_ptr frozen_root;
	unsigned frozen_root_level;
	struct pf_run *bad_runs; /* where a write failed: not tried again by this checkpoint */
	unsigned nr_bad_runs;
	uint32_t bad_members;
	uint32_t blamed; /* of the last attempt to write the frozen nodes */
};

/* From the root down to the leaf at[0], or to the level asked for. An array of pairs, not two arrays: gcc 12 at -O1 derives the
 * address in one of two from that in the other, then overlooks that callees write to it (seen in pf_find_item()). */
struct pf_path {
	struct {
		struct pf_node *node;
		unsigned idx; /* of the child taken; not in the leaf */
	} at[PF_TREE_LEVELS];
};

static inline bool pf_node_is_clean(const struct pf_node *node)
{
	return node->epoch == 0;
}
static inline bool pf_node_is_dirty(const struct pf_tree *tree, const struct pf_node *node)
{
	return node->epoch == tree->epoch;
}
static inline bool pf_node_is_frozen(const struct pf_tree *tree, const struct pf_node *node)
{
	return node->epoch && node->epoch != tree->epoch;
}

/* -- find.c: look-ups under either lock. @v takes what is absent; none of them do I/O ------------------------------- */
enum pf_find { PF_FIND_EXACT, PF_FIND_NEXT, PF_FIND_PREV };
int pf_find_item(struct pf_view *v, struct pf_key key, enum pf_find how, struct pf_item *item);
/* The way to the node of @level in which @key belongs; 0, -ENOENT (empty tree), -PF_ENODE_ABSENT. */
int pf_find_path(struct pf_view *v, struct pf_key key, unsigned level, struct pf_path *path);
/* To the leaf before or behind; -ENOENT when there is none. */
int pf_find_prev_leaf(struct pf_view *v, struct pf_path *path);
int pf_find_next_leaf(struct pf_view *v, struct pf_path *path);
/* The root node, or child @i of @parent. NULL when absent, which is noted in @v. */
struct pf_node *pf_find_root(struct pf_view *v);
struct pf_node *pf_find_child(struct pf_view *v, const struct pf_node *parent, unsigned i);

/* -- change.c: inside a txn ----------------------------------------------------------------------------------------- */
/* Memory that pf_txn_lock() has reserved. */
struct pf_node *pf_txn_spare(struct pf_txn *txn, unsigned level, struct pf_key lower, struct pf_key upper);
/* Makes the nodes of @path from the root down to @level DIRTY, so that their ranges are all that their parents allow. */
void pf_path_dirty(struct pf_txn *txn, struct pf_path *path, unsigned level);
/* @node has no parent in the live tree any more. */
void pf_node_release(struct pf_tree *tree, struct pf_node *node);
void pf_node_free_blocks(struct pf_tree *tree, const struct pf_node *node);

/* -- split.c, merge.c: the nodes of @path are DIRTY from @level up ---------------------------------------------------- */
void pf_split_leaf(struct pf_txn *txn, struct pf_path *path, unsigned at, struct pf_key key, const void *data,
		   unsigned len);
void pf_merge(struct pf_tree *tree, struct pf_path *path, unsigned level);
/* Takes the leaf of @path, which is to lose its last item, out of the tree, and what that empties above it. */
void pf_remove_leaf(struct pf_txn *txn, struct pf_path *path);
void pf_shrink_root(struct pf_tree *tree);

#endif
