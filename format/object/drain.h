/* SPDX-License-Identifier: MIT
 *
 * Purpose: staged blocks on their way to the members and into the tree, while their file goes on being read and written.
 *
 *	stage --seal--> sealed --write--> on the member --map--> in the tree
 *
 * Invariants
 *   I1  A file has one drain at a time (inode.h I8). What it writes is sealed: read beneath what is staged later, and never changed.
 *       So a drain needs the inode lock to begin, for each piece of its mapping, and to end, but not for its I/O.
 *   I2  Its mapping goes into the tree in several transactions, so that nobody waits long for one. pool->sync_hold makes them one
 *       for a checkpoint: the tree that becomes durable has the file at one point of its history.
 *   I3  A mapping that fails in the middle (no memory, a damaged node) leaves what is mapped in the tree, and the rest sealed, which the
 *       next drain tries again. Until then a crash may find the file between two points of its history: fsync says so meanwhile.
 *   I4  Where nobody drains in the background (pool->drains_later) whoever fills a stage does it, as does whoever waits for a drain that
 *       nobody has begun. A drain that was begun needs nobody else to end.
 *
 * Locks: the functions here want no inode lock, unless they say so. A drain takes the lock of its inode inside sync_hold, against the order
 *        of engine.h I1: nobody else who has that lock waits for a checkpoint, or for the hold (inode.h I8).
 * Uses: object/stage.
 */
#ifndef PF_OBJECT_DRAIN_H
#define PF_OBJECT_DRAIN_H

#include "object/inode.h"

/* Seals what is staged, of which there is some, and leaves it to who drains. Exclusive lock of the idle inode, nothing sealed. */
void pf_drain_later(struct pf_pool *pool, struct pf_inode *inode);

/* Does some of the drains that nobody has begun. Returns how many. */
unsigned pf_drain_step(struct pf_pool *pool);
/* Does the drain of @inode, if there is one that nobody has begun. */
bool pf_drain_help(struct pf_pool *pool, struct pf_inode *inode);

/* For the thread that drains: from pf_drain_start() on it is left to it. pf_drain_wait() waits for something to do, until
 * pf_drain_stop() and everything is done (false). */
void pf_drain_start(struct pf_pool *pool);
bool pf_drain_wait(struct pf_pool *pool);
void pf_drain_stop(struct pf_pool *pool);

#endif
