/* SPDX-License-Identifier: MIT
 *
 * Purpose: small writes wait in memory, per inode, until they leave as few large ones (delayed allocation).
 *
 * Invariants
 *   I1  At most PF_STAGE_BLOCKS blocks per inode, and as many that are sealed. Their space is promised (pf_space_reserve()) when they
 *       are staged.
 *   I2  They reach the tree all at once: data first, then all mappings, the size and the times (drain.h I2). What comes later than
 *       a staged write of the same inode (a direct write, a truncation) drains it first. So a tree that becomes durable
 *       always has each file at one point of its history.
 *   I3  A staged block is whole: its old content has been read, or it is zeros.
 *   I4  A drain that fails keeps the blocks (readable, tried again by the next drain) and their promise, and sets
 *       inode->write_error; one that succeeds clears it.
 *   I5  An inode with staged blocks is pinned and on the pool's list, oldest first.
 *
 * Locks: the inode lock, exclusively (reading functions: shared).
 * Uses: object/inode, object/data.
 */
#ifndef PF_OBJECT_STAGE_H
#define PF_OBJECT_STAGE_H

#include "log/log.h"
#include "object/inode.h"

#define PF_STAGE_BLOCKS 256u
#define PF_STAGE_MAP_PIECES 32u

/* Sealed ones count here, and in the other functions that read. */
unsigned pf_stage_blocks(const struct pf_inode *inode);
/* What @block is now, or NULL. */
const uint8_t *pf_stage_look(const struct pf_inode *inode, uint64_t block);
/* The page of a staged block that is not sealed, to be changed; or NULL. */
uint8_t *pf_stage_find(const struct pf_inode *inode, uint64_t block);
/* For @nr more blocks, when all of them are new. */
bool pf_stage_has_room(const struct pf_pool *pool, const struct pf_inode *inode, unsigned nr);
/* First staged block >= @block. False: none. */
bool pf_stage_next(const struct pf_inode *inode, uint64_t block, uint64_t *found);
/* Makes an empty stage (inode->stage). -ENOMEM. */
int pf_stage_begin(struct pf_pool *pool, struct pf_inode *inode);
/* Undoes that when nothing was added. */
void pf_stage_drop_empty(struct pf_pool *pool, struct pf_inode *inode);
/* Takes over @page (of pool->pages), whose block is promised and not staged yet. There is a stage, and room in it. */
void pf_stage_add(struct pf_pool *pool, struct pf_inode *inode, uint64_t block, uint8_t *page);
/* Copies staged blocks over what was read of [start, start + nr). */
void pf_stage_overlay(const struct pf_inode *inode, uint64_t start, unsigned nr, uint8_t *buf);
/* Sets bit i for each staged block start + i. */
void pf_stage_mask(const struct pf_inode *inode, uint64_t start, unsigned nr, uint64_t *mask);

/* Forgets all staged blocks (the file is being truncated to nothing or deleted). */
void pf_stage_drop(struct pf_pool *pool, struct pf_inode *inode);

/* The same for every inode of a pool that is being freed: nobody else uses it. */
void pf_stage_drop_all(struct pf_pool *pool);

/* Writes them out and enters them in the tree, under the lock of the idle inode. 0 when nothing is staged. */
int pf_stage_drain(struct pf_pool *pool, struct pf_inode *inode);

/* An fsync of few staged blocks in one round of writes and one of flushes (design idea 3): the record of the file goes into the log
 * before its blocks are written, the commit of the log writes both, and the mapping follows. */
struct pf_stage_commit {
	struct pf_log_writes log_writes;
};
/* Exclusive lock of the idle inode. 0: the record is in the log; the file is busy (inode.h I8) and no checkpoint can be frozen until
 * pf_stage_commit_end(), which follows the commit of the log. -EAGAIN: this is no such case, or the log could not take it;
 * what was staged is drained or still staged, and nothing is promised. Else the error of the drain, as pf_stage_drain(). */
int pf_stage_commit_begin(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c);
/* @promised: what pf_log_commit() said. Inode locked by pf_inode_lock_busy(), any thread. 0: all of the file is durable,
 * nothing is staged; -EAGAIN: drained only; else the error of the drain. */
int pf_stage_commit_end(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c, int promised);

/* No inode lock held: drains every inode that has staged blocks now. 0: all of that is in the tree. Else the first error, having
 * tried all; it may be that of a drain in another thread. */
int pf_stage_drain_all(struct pf_pool *pool);
/* No inode lock held: drains the oldest while more is staged than pool->staged_limit, or than a pool that gets full can bear. Where
 * that fails, memory must not grow for ever: an error once twice the limit is staged. */
int pf_stage_balance(struct pf_pool *pool);
/* No inode lock held: an operation ended with @err. True when it was -ENOSPC and is worth one more try: what was staged has been
 * written out, and keeps no promises and no nodes from it any more. */
bool pf_stage_gives_way(struct pf_pool *pool, int err, bool *tried);

#endif
