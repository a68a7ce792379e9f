/* SPDX-License-Identifier: MIT
 *
 * Purpose: which nodes are in memory. A hash table from number to node, a clock that evicts CLEAN ones, pins that keep
 * what a look-up has loaded, a pool of memory for nodes, and the loading itself.
 *
 * Invariants
 *   I1  Hash, clock and states change under the exclusive tree lock only. So whoever holds the lock in either way can follow
 *       any pointer to a node until it lets go, and look-ups need no lock besides.
 *   I2  A look-up that loads pins what it loaded until it is done: each load brings it closer to its end, however
 *       small the cache and whatever else is evicted meanwhile. The bound is exceeded by pins only, and for a while by a part of
 *       it where all of its nodes were in use: the hand moves on by some nodes each time, for all others wait meanwhile.
 *   I3  No two nodes in the hash have the same number. A load that finds its number taken drops what it read.
 *   I4  A reader that lost a race may insert a node that nobody names any more. Its blocks cannot be given to anyone before
 *       the reader leaves (it inserts first, then exits the space's reader section); when they are,
 *       pf_cache_renumber() finds the old node under the number and drops it.
 *
 * Locks: tree lock -> tree->mutex.
 * Uses: tree/tree_priv.
 */
#ifndef PF_TREE_CACHE_H
#define PF_TREE_CACHE_H

#include "tree/tree_priv.h"

int pf_cache_init(struct pf_tree *tree, uint64_t cache_bytes);
void pf_cache_exit(struct pf_tree *tree); /* the hash is empty */

struct pf_node *pf_cache_lookup(const struct pf_tree *tree, uint64_t number);
static inline void pf_cache_touch(struct pf_node *node)
{
	/* Not written again when set: the nodes near the root would bounce between processors. */
	if (!atomic_load_explicit(&node->touched, memory_order_relaxed))
		atomic_store_explicit(&node->touched, true, memory_order_relaxed);
}

/* -- under the exclusive lock -- */
void pf_cache_insert(struct pf_tree *tree, struct pf_node *node); /* with its number; takes over the first reference */
void pf_cache_renumber(struct pf_tree *tree, struct pf_node *node, uint64_t number);
void pf_cache_drop(struct pf_tree *tree,
		   struct pf_node *node);  /* out of the hash; lives on while pinned. In no list. */
/* Down to the bound; looks at @tries nodes at most. */
void pf_cache_evict(struct pf_tree *tree, unsigned tries);
void pf_cache_set_clean(struct pf_tree *tree, struct pf_node *node); /* in no list before */
void pf_cache_unset_clean(struct pf_tree *tree, struct pf_node *node);
uint64_t pf_cache_new_number(struct pf_tree *tree);

/* -- memory for nodes; any lock or none -- */
struct pf_node *pf_cache_new(struct pf_tree *tree); /* NULL: no memory */
/* Chains @nr more nodes before *list. -ENOMEM: fewer. */
int pf_cache_new_spares(struct pf_tree *tree, struct pf_node **list, unsigned *nr, unsigned wanted);
void pf_cache_free_list(struct pf_tree *tree, struct pf_node *list);

/* -- loading -- */
/* Called with the lock held (either way) and releases it. Loads what @v says is absent, pins it in @v. 0, -EIO, -ENOMEM,
 * a node damage code. */
int pf_cache_load(struct pf_view *v);
void pf_cache_unpin(struct pf_tree *tree, struct pf_node_pins *pins);

#endif
