/* SPDX-License-Identifier: MIT
 *
 * Purpose: files that have lost data because a member failed before what was written to it was durable (design rule 9): which they
 * are, and until when.
 *
 * Invariants
 *   I1  A file with data written to a member that was not flushed there before the member failed reports it, on every fsync, until no
 *       written extent of it lies on that member any more (rewritten, truncated, punched), or the pool is mounted anew.
 *       Never too little; too much when only a part of what it has there is lost.
 *   I2  That is known by a number in the inode (object/dirty.h I4): nobody has to look for files when a member fails. An inode that
 *       leaves the cache is remembered until the next checkpoint but one has flushed everything, or for as long as the pool is
 *       open when a member failed before that.
 *
 * Locks: the inode lock, exclusively; of struct pf_evicted the cache lock.
 * Uses: object/inode, object/refs.
 */
#ifndef PF_OBJECT_LOST_H
#define PF_OBJECT_LOST_H

#include "object/inode.h"
#include "object/refs.h"

/* -EIO: it has lost something. Nothing of it is staged. Also errors of reading the tree. */
int pf_lost_check(struct pf_pool *pool, struct pf_inode *inode);

struct pf_evicted_group {
	struct pf_refs inos;
	bool all;         /* they could not be listed */
	uint32_t members; /* on which they have such data, as of change 'change' */
	uint64_t change;
};
struct pf_evicted { /* zeroed: none */
	struct pf_evicted_group fresh, older, lost;
};

void pf_evicted_add(struct pf_pool *pool, struct pf_evicted *evicted, const struct pf_inode *inode);
/* To an inode that comes back. */
void pf_evicted_recall(struct pf_pool *pool, const struct pf_evicted *evicted, struct pf_inode *inode);
/* A checkpoint has become durable. */
void pf_evicted_durable(struct pf_pool *pool, struct pf_evicted *evicted);
void pf_evicted_free(struct pf_evicted *evicted);

#endif
