/* SPDX-License-Identifier: MIT
 *
 * Purpose: keeps the tree's appetite for space and memory in bounds (design rules 16 and 18), so that a checkpoint can always be
 * written and deleting always works, also when names or extents have filled the pool.
 *
 * Invariants
 *   I1  Dirty nodes stay below pf_dirty_limit(): a quarter of the cache, and so few that writing them takes at most a quarter of
 *       what nodes can still have beside those of the checkpoint under way (operations that passed together may overshoot).
 *   I2  What makes the tree grow is refused (-ENOSPC) while nodes have less room than the reserve and what is dirty will need;
 *       overwrites go on to half of the reserve; deleting is never refused.
 *
 * Locks: none held by the caller of pf_slow_down() but inode locks and names_lock. Uses: block/engine.
 */
#ifndef PF_BLOCK_PRESSURE_H
#define PF_BLOCK_PRESSURE_H

#include "block/engine.h"

enum pf_growth { PF_SHRINKS, PF_OVERWRITES, PF_GROWS };

uint64_t pf_dirty_limit(struct pf_pool *pool); /* nodes */

/* Waits, or asks for a checkpoint, while more than half of the limit is dirty. 0, or the error of the checkpoint. */
int pf_slow_down(struct pf_pool *pool);

/* Staged blocks may need so many nodes that pf_node_gate() would soon refuse others because of them: they are to be written out. */
bool pf_staging_presses(struct pf_pool *pool);

/* pf_node_gate() would let it pass at once. */
bool pf_node_gate_is_open(struct pf_pool *pool, enum pf_growth growth);
/* 0 or -ENOSPC, after trying to make room; the error of a checkpoint. */
int pf_node_gate(struct pf_pool *pool, enum pf_growth growth);

#endif
