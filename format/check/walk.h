/* SPDX-License-Identifier: MIT
 *
 * Purpose: walks the committed tree in key order and shows every node and item, the damaged ones too. The eyes of fsck,
 * scrub and dump.
 *
 * Invariants
 *   I1  Reads by address and judges by pf_node_validate(); nothing of the engine's cache or look-ups takes part.
 *   I2  A bad node costs its own key range and no more: the walk goes on behind it.
 *   I3  Ends on every input: the level falls with each step down, and a node's bytes vouch for its address and key
 *       range, so no node is seen twice. Memory: one node for each level and PF_WALK_BATCH leaves.
 *   I4  The leaves below one node are read in one batch, in the order of their addresses.
 *
 * Uses: member, tree (pf_node_validate).
 */
#ifndef PF_CHECK_WALK_H
#define PF_CHECK_WALK_H

#include "tree/tree.h"

#define PF_WALK_BATCH 128u
#define PF_WALK_SKIP  1 /* of node(): do not look inside */

struct pf_walk_node {
	struct pf_ptr ptr; /* as the parent names it */
	struct pf_key lower, upper;
	unsigned level;
	const void *bytes; /* PF_NODE_SIZE; NULL in bad() */
};

struct pf_walk_item {
	struct pf_key key;
	const void *data;
	unsigned len;
	const struct pf_walk_node *leaf;
	unsigned index; /* in the leaf */
};

/* Each returns 0 to go on or a negative code, which ends the walk and is its result. Any of them may be NULL. */
struct pf_walk_ops {
	int (*node)(void *arg, const struct pf_walk_node *node); /* before what is inside; also PF_WALK_SKIP */
	int (*item)(void *arg, const struct pf_walk_item *item);
	int (*bad)(void *arg, const struct pf_walk_node *node, int err); /* -EIO, -PF_ENODE_* */
};

/* Walks the items in [from, to] of the tree that @super names. Returns 0, -ENOMEM, or what a callback returned. */
int pf_walk_tree(struct pf_set *set, const struct pf_super *super, struct pf_key from, struct pf_key to,
		 const struct pf_walk_ops *ops, void *arg);

/* Reads one node into @buf (aligned) and validates it. */
int pf_walk_read(struct pf_set *set, const struct pf_super *super, const struct pf_walk_node *node, void *buf);

/* The verdict on bytes that were read elsewhere: 0 or -PF_ENODE_*. */
int pf_walk_validate(const struct pf_super *super, const struct pf_walk_node *node, const void *bytes);

/* Item @index of a validated leaf. False when there is none. */
bool pf_walk_leaf_item(const void *leaf, unsigned index, struct pf_walk_item *item);

#endif
