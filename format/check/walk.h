/* SPDX-License-Identifier: MIT
 *
 * Purpose: walks the committed tree in key order and shows every node and item, the damaged ones too. The eyes of fsck,
 * scrub and dump.
 *
 * Invariants
 *   I1  Reads by address and judges by pf_node_validate(); nothing of the engine's cache or look-ups takes part.
 *   I2  A bad node costs its own key range and no more: the walk goes on behind it.
 *   I3  Ends on every input: the level falls with each step down, and a node's bytes vouch for its address and key
 *       range, so no node is seen twice. Memory: one node for each level and PF_WALK_BATCH leaves, with
 *       bad_copy() twice as many.
 *   I4  The leaves below one node are read in one batch, in the order of their addresses.
 *   I5  Of a node with two copies the first good one is shown. With bad_copy() all copies are read, without it the second
 *       only where the first is bad.
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
	const void *bytes; /* PF_NODE_SIZE; NULL in bad() and bad_copy() */
};
static inline unsigned pf_walk_nr_copies(const struct pf_walk_node *node)
{
	return node->ptr.addr[1] ? PF_NODE_COPIES : 1;
}

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
	int (*bad)(void *arg, const struct pf_walk_node *node, int err); /* no copy is good; the first: -EIO, -PF_ENODE_* */
	int (*bad_copy)(void *arg, const struct pf_walk_node *node, unsigned copy, int err); /* beside a good one, before node() */
};

/* Walks the items in [from, to] of the tree that @super names. Returns 0, -ENOMEM, or what a callback returned. */
int pf_walk_tree(struct pf_set *set, const struct pf_super *super, struct pf_key from, struct pf_key to,
		 const struct pf_walk_ops *ops, void *arg);

/* For bad(): ends the walk with its error. */
int pf_walk_stop_at_bad(void *arg, const struct pf_walk_node *node, int err);

/* Reads one copy of a node into @buf (aligned) and validates it: 0, -EIO, -PF_ENODE_*. */
int pf_walk_read(struct pf_set *set, const struct pf_super *super, const struct pf_walk_node *node, unsigned copy, void *buf);

/* The verdict on bytes of that copy that were read elsewhere: 0 or -PF_ENODE_*. */
int pf_walk_validate(const struct pf_super *super, const struct pf_walk_node *node, unsigned copy, const void *bytes);

/* Item @index of a validated leaf. False when there is none. */
bool pf_walk_leaf_item(const void *leaf, unsigned index, struct pf_walk_item *item);

#endif
