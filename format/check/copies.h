/* SPDX-License-Identifier: MIT
 *
 * Purpose: gives every node of a tree that was written with single copies its second one: what an upgrade to a version with
 * NODE_COPIES has to do, and to go on with when it was interrupted.
 *
 * Invariants
 *   I1  The feature bit is durable before the first second copy is written. It is an incompat bit: a program that knows of one
 *       address only would count the second copies as free, and must not open the pool. So a crash leaves a pool of the new
 *       version of which some nodes have one copy, which is valid (FORMAT 5.3); the other order would leave one that lies.
 *   I2  Bounded steps: a batch of nodes is made dirty, a checkpoint writes it with two copies and frees the old places.
 *
 * Uses: pool and everything below.
 */
#ifndef PF_CHECK_COPIES_H
#define PF_CHECK_COPIES_H

#include "pool/pool.h"

/* Can all nodes of the tree of @pool have two copies, as @super (the pool's, with the new features) asks for, and leave the reserve
 * as it should be? Reads and verifies every node. 0; -ENOSPC; -EIO or a damage code; -ENOMEM; @diag says which. */
int pf_copies_have_room(struct pf_pool *pool, const struct pf_super *super, struct pf_diag *diag);

/* Writes what is missing. The pool has the feature, no workers, and nothing else changes it. 0; the error of a node that cannot be
 * read, or of a checkpoint: what is done so far stays. */
int pf_copies_complete(struct pf_pool *pool);

#endif
