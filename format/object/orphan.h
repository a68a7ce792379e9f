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
 *   I5  An operation whose first transaction took effect has happened. What it could not finish is noted in the inode, which 'owes'
 *       it: reading takes the range for a hole; what changes data or size calls pf_orphan_settle() first, or the range would take,
 *       at the next mount, what has been written since; so does an fsync, and a sync and the unmount for all inodes.
 *   I6  Blocks that are owed to a range (ZERO_RANGE) stay promised until they are there, or the pool is closed.
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
 * error the rest is owed. Caller holds the inode lock exclusively, and a pin. */
int pf_orphan_finish_range(struct pf_pool *pool, struct pf_inode *inode, uint64_t seq, uint64_t from, uint64_t to);

/* Unwritten blocks in the holes of [from, to) are owed, for which @promised are promised, because of @err (0: told already). */
void pf_orphan_owe_fill(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t promised, int err);

/* Finishes what is owed. Same locks. */
int pf_orphan_settle(struct pf_pool *pool, struct pf_inode *inode);
/* The same for a file that nobody can reach any more: no blocks need be put into it. */
void pf_orphan_settle_abandoned(struct pf_pool *pool, struct pf_inode *inode);
/* The same for what an fsync promises: an error only when blocks that were promised are not there. */
int pf_orphan_settle_for_sync(struct pf_pool *pool, struct pf_inode *inode);
/* That for every inode. No inode lock held. Returns the first error. */
int pf_orphan_settle_all(struct pf_pool *pool);

/* One step of the reaper: 1 if something was removed, 0 if there is nothing to do, or an error. */
int pf_orphan_reap(struct pf_pool *pool);

/* The first half of it, before a log is replayed: ranges of inodes. */
int pf_orphan_recover_ranges(struct pf_pool *pool);
/* At mount: finishes ranges of inodes, deletes orphan inodes. Nobody else uses the pool yet. */
int pf_orphan_recover(struct pf_pool *pool);

/* At a read-only mount: fills pool->pending. */
int pf_orphan_load_pending(struct pf_pool *pool);
/* The ranges of @pool in which blocks are mapped that read as zeros (I4, I5): @i from 0 to pool->nr_pending. Blocks [*from, *to), empty when
 * the range is not one of this file's. The inode lock is held. */
void pf_orphan_pending(const struct pf_pool *pool, const struct pf_inode *inode, unsigned i, uint64_t *from, uint64_t *to);
/* Of the blocks [start, start + nr) of a file: sets bit i of @mask for each block start + i that is to read as zeros (I4, I5). The
 * inode lock is held. */
void pf_orphan_mask_pending(const struct pf_pool *pool, const struct pf_inode *inode, uint64_t start, unsigned nr,
			    uint64_t *mask);
static inline bool pf_orphan_has_pending(const struct pf_pool *pool, const struct pf_inode *inode)
{
	return pool->nr_pending || inode->unfinished.seq;
}

static inline struct pf_key pf_key_orphan_inode(uint64_t ino)
{
	return pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_INODE, ino);
}
static inline struct pf_key pf_key_orphan_range(uint64_t seq)
{
	return pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_RANGE, seq);
}

#endif
