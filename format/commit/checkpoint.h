/* SPDX-License-Identifier: MIT
 *
 * Purpose: making the tree of a transaction group durable: the checkpoint, in the order of design rules 13 to 15.
 *
 *	FREEZE   exclusive tree lock, O(1): dirty nodes, allocations and frees become those of G; the next group begins
 *	NODES    the frozen nodes are written bottom-up to free space
 *	MAPS     maps, tables and roots are written to the slots that the committed ones do not name
 *	FLUSH    every member written to since its last flush, in parallel: nodes, maps and all data that G names
 *	SUPER    superblocks of G, on the metadata members and on members whose table changed
 *	FLUSH2   these members
 *	DURABLE  only now: freed(G) is released, copied nodes are dropped, the log begins at T, where the freeze was, and the next
 *	         checkpoint may begin
 *
 * Invariants
 *   I1  One checkpoint at a time; each step by one thread. Between steps nothing is locked: operations go on.
 *   I2  Data that the tree of G names was written before its mapping entered the tree (block/write.h), so FLUSH covers it.
 *   I3  A step that fails is tried again; when that does not help, the pool takes no more changes ('failed'), and what was
 *       committed last stays as it is. A failed flush or superblock write is final (pitfalls 1.13). A full host filesystem
 *       is not a failure: the step waits until there is room.
 *       A pool that can lose a member (design rule 9, member/set.h I5) gives those up that are to blame, and the checkpoint under way
 *       goes on without them: nodes have a copy elsewhere; what was on them, and their maps, are not waited for. Its superblock says
 *       which have failed, under a new epoch. Where that comes too late for it, another checkpoint follows at once; nobody who
 *       waits is told of success before the failure stands in superblocks that are durable.
 *   I4  Whoever waits is told of a failure of the attempt it waited for.
 *   I5  Whoever waits for a checkpoint takes its steps, unless another thread is at one. So a waiter may hold inode locks or
 *       names_lock: it depends on no thread that may need them (the worker drains inodes before it asks for a checkpoint).
 *
 * Locks: the commit mutex, inside the inode locks and outside the tree lock; never held across a step.
 * Uses: block/engine, object (staging).
 */
#ifndef PF_COMMIT_CHECKPOINT_H
#define PF_COMMIT_CHECKPOINT_H

#include "block/engine.h"

int pf_commit_create(struct pf_pool *pool); /* sets pool->commit, make_room and throttle */
void pf_commit_destroy(struct pf_pool *pool);

/* One step. 1: done; 0: idle and @start was false; else the error of the step. */
int pf_commit_step(struct pf_pool *pool, bool start);

/* Everything that is in the tree now is durable when it returns. Nothing dirty: returns at once. @force: even then a
 * checkpoint is made (the superblock changes). Errors: -EIO, -ENOSPC. */
int pf_commit_wait(struct pf_pool *pool, bool force);

/* A checkpoint soon, without waiting for it. */
void pf_commit_request(struct pf_pool *pool);

/* Threads: one makes checkpoints (each interval, or when asked), one reaps. */
int pf_commit_start_workers(struct pf_pool *pool, unsigned interval_ms);
void pf_commit_stop_workers(struct pf_pool *pool);

/* What is written from now on is of a new epoch, which began after generation @last. */
void pf_commit_new_epoch(const struct pf_pool *pool, struct pf_super *super, uint64_t last);

/* Superblock of the committed tree with changed fields (epoch, clean flag), generation + 1, on the members of @mask, flushed.
 * No checkpoint is under way. */
int pf_commit_super(struct pf_pool *pool, struct pf_super *super, uint32_t mask);

uint32_t pf_commit_all_mask(const struct pf_pool *pool); /* members that have not failed */

/* The last superblock of a pool that is being closed, with the clean flag, on the members that have not failed. No workers; everything
 * has been committed. */
int pf_commit_clean(struct pf_pool *pool);

/* Drains staged blocks of all files and waits for a checkpoint. */
int pf_commit_sync(struct pf_pool *pool);

#endif
