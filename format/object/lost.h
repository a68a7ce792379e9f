/* SPDX-License-Identifier: MIT
 *
 * Purpose: files that have lost data because a member failed before what was written to it was durable (design rule 9): which they
 * are, and until when.
 *
 * Invariants
 *   I1  A file with data written to a member that was not flushed there before the member failed reports it, on every fsync, until no
 *       written extent of it lies on that member any more (rewritten, truncated, punched), or the pool is mounted anew.
 *       Never too little; too much when only a part of what it has there is lost.
 *   I2  That is known by a number in the inode (object/dirty.h I4): nobody has to look for files when a member fails. Inodes that
 *       leave the cache are remembered (object/evicted.h).
 *
 * Locks: the inode lock, exclusively. Uses: object/inode.
 */
#ifndef PF_OBJECT_LOST_H
#define PF_OBJECT_LOST_H

#include "object/inode.h"

/* -EIO: it has lost something. Nothing of it is staged. Also errors of reading the tree. */
int pf_lost_check(struct pf_pool *pool, struct pf_inode *inode);

#endif
