/* SPDX-License-Identifier: MIT
 *
 * Purpose: blocks that two extents or nodes claim: who they are, for the user (private to check/).
 *
 * Invariants
 *   I1  Nothing is repaired. Which of the two is right only the user can know, and as long as both are in the tree, whatever frees
 *       the blocks for one makes them free for others to overwrite, whichever way it is done. So the advice is not to write at all.
 *   I2  The first user is looked for only when there is a second one: a walk more, on a pool that is ill.
 *
 * Uses: check/walk, check/scrubber (names).
 */
#ifndef PF_CHECK_TWICE_H
#define PF_CHECK_TWICE_H

#include "ondisk/ondisk.h"

#include <stddef.h>

struct pf_checker;
struct pf_extent;
struct pf_walk_node;

struct pf_check_user { /* of blocks: an extent or a node */
	pf_addr addr;
	unsigned nr_blocks;
	uint64_t data_id;    /* 0: a node */
	uint64_t file_block;
	struct pf_key lower; /* of a node */
};

struct pf_check_twice {
	struct pf_check_user *users; /* the second ones, in the order of the walk */
	size_t nr, cap;
};

struct pf_check_user pf_check_user_node(const struct pf_walk_node *node, unsigned copy);
struct pf_check_user pf_check_user_extent(const struct pf_extent *extent, unsigned copy);

/* Blocks of @user were marked before. -ENOMEM. */
int pf_check_twice_note(struct pf_checker *c, const struct pf_check_user *user);
/* Finds those who had them before, and reports each pair. After the walk that noted them. -ENOMEM. */
int pf_check_twice_report(struct pf_checker *c);

#endif
