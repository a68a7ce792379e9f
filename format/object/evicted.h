/* SPDX-License-Identifier: MIT
 *
 * Purpose: inodes that left the cache with something that an fsync must know of when they come back: changes that are not durable
 * (object/dirty.h), data that was not flushed (object/lost.h).
 *
 * Invariants
 *   I1  A number is remembered, and not what it has: the inode comes back 'whole' (dirty.h I2), or as one that may have lost something.
 *       Too much at worst; when numbers cannot be listed (no memory), that holds for every inode that is loaded.
 *   I2  Undurable changes are forgotten when the checkpoint that holds them is durable. Of these there are two at most.
 *   I3  Unflushed data is forgotten when the next checkpoint but one has flushed everything; where a member failed before that, never
 *       while the pool is open.
 *
 * Locks: the cache lock. Uses: object/inode, object/dirty, object/refs.
 */
#ifndef PF_OBJECT_EVICTED_H
#define PF_OBJECT_EVICTED_H

#include "object/inode.h"
#include "object/refs.h"

struct pf_evicted_inos {
	struct pf_refs inos;
	bool all; /* they could not be listed */
};
struct pf_evicted_txg {
	struct pf_evicted_inos list;
	uint64_t generation; /* 0: none */
};
struct pf_evicted_data {
	struct pf_evicted_inos list;
	uint32_t members; /* on which they have such data, as of change 'change' (member/set.h I6) */
	uint64_t change;
};
struct pf_evicted { /* zeroed: none */
	struct pf_evicted_txg undurable[2];
	struct pf_evicted_data fresh, older, lost;
};

void pf_evicted_add(struct pf_pool *pool, struct pf_evicted *evicted, const struct pf_inode *inode);
/* To an inode that comes back. */
void pf_evicted_recall(struct pf_pool *pool, const struct pf_evicted *evicted, struct pf_inode *inode);
/* The checkpoint of @generation has become durable. */
void pf_evicted_durable(struct pf_pool *pool, struct pf_evicted *evicted, uint64_t generation);
void pf_evicted_free(struct pf_evicted *evicted);

#endif
