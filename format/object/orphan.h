/* SPDX-License-Identifier: MIT
 *
 * Purpose: removing what no name leads to, in bounded steps: inodes without links, data ids without inode, and truncations and
 * punches too long for one transaction.
 *
 * Invariants
 *   I1  Nothing leaves the tree in more than one transaction without an orphan item that finishes it after a crash:
 *       PF_TYPE_ORPHAN_INODE for an inode with nlink 0, PF_TYPE_ORPHAN_RANGE for extents.
 *   I2  A range with ino 0 belongs to the reaper; one with an inode to the call that made it (it holds the inode lock until
 *       the range is done), or to recovery at mount.
 *   I3  counters.orphan_blocks falls with each block that a range with ino 0 loses.
 *   I4  On a read-only pool the ranges of inodes that a crash interrupted cannot be finished: reading takes them for holes.
 *   I5  A range that its call could not finish is noted in the inode: what changes data or size calls pf_orphan_settle() first. Or
 *       the range would take, at the next mount, what has been written since.
 *
 * Uses: object/inode, block/extent.
 */
#ifndef PF_OBJECT_ORPHAN_H
#define PF_OBJECT_ORPHAN_H

#include "object/inode.h"

#define PF_REAP_ITEMS 64u /* extents that one transaction removes */

/* The last pin and reference of an orphan are gone: takes its items out of the tree. Caller owns the inode alone. */
int pf_orphan_delete(struct pf_pool *pool, struct pf_inode *inode);

/* Removes the extents of an inode in [from, to), whose orphan range item @seq stands in the tree, and then the item. After an
 * error the rest is noted as unfinished. Caller holds the inode lock exclusively, and a pin. */
int pf_orphan_finish_range(struct pf_pool *pool, struct pf_inode *inode, uint64_t seq, uint64_t from, uint64_t to);

/* Finishes what an earlier call could not. Same locks. */
int pf_orphan_settle(struct pf_pool *pool, struct pf_inode *inode);

/* One step of the reaper: 1 if something was removed, 0 if there is nothing to do, or an error. */
int pf_orphan_reap(struct pf_pool *pool);

/* The first half of it, before a log is replayed: ranges of inodes. */
int pf_orphan_recover_ranges(struct pf_pool *pool);
/* At mount: finishes ranges of inodes, deletes orphan inodes. Nobody else uses the pool yet. */
int pf_orphan_recover(struct pf_pool *pool);

/* At a read-only mount: fills pool->pending. */
int pf_orphan_load_pending(struct pf_pool *pool);
/* Of the blocks [start, start + nr) of @data_id: sets bit i of @mask for each block start + i that is to read as zeros. */
void pf_orphan_mask_pending(const struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, uint64_t *mask);

static inline struct pf_key pf_key_orphan_inode(uint64_t ino)
{
	return pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_INODE, ino);
}
static inline struct pf_key pf_key_orphan_range(uint64_t seq)
{
	return pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_RANGE, seq);
}

#endif
