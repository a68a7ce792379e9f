/* SPDX-License-Identifier: MIT
 *
 * Purpose: blocks that a file holds before anything is written to them: unwritten extents in its holes (fallocate(2)).
 *
 * Invariants
 *   I1  What the file reads as, its size and its times do not change.
 *   I2  All blocks come from a promise (object/data.h); what an error leaves of it is still the caller's.
 *
 * Locks: the inode lock, exclusively. Uses: object/inode, object/data.
 */
#ifndef PF_OBJECT_FILL_H
#define PF_OBJECT_FILL_H

#include "object/inode.h"

/* How many blocks of [from, to) nothing is mapped to. */
int pf_fill_count(struct pf_pool *pool, const struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t *nr);

/* Maps unwritten blocks into the holes of [from, to). 0: all of the promise is used up or given back. After an error a part may have
 * been filled, and *promised is what the rest needs. */
int pf_fill_holes(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t *promised);

#endif
