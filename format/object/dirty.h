/* SPDX-License-Identifier: MIT
 *
 * Purpose: which ranges of a file have changed and are neither in a durable checkpoint nor in the log (design rule 4; pitfalls 1.3,
 * 1.10). From them an fsync makes the file record (object/intent.h).
 *
 * Invariants
 *   I1  What is noted for a transaction group counts until its checkpoint is durable, or until it has been put into the log: the
 *       log keeps its records as long.
 *   I2  Noting never fails: what cannot be listed (no memory, too many ranges) makes the file 'whole', which only a checkpoint can
 *       make durable.
 *   I3  There are two groups at most: the open one, and the one whose checkpoint is under way.
 *   I4  Beside that, 'unflushed' tells on which members there may be data that no flush has made durable, in the log or not: when such a
 *       member fails, the file has lost something (design rule 9). It is not dropped with a record, and errs on the side of too much.
 *
 * Locks: the inode lock, exclusively; noting also the exclusive tree lock (it reads pool->open_generation).
 * Uses: block/engine.
 */
#ifndef PF_OBJECT_DIRTY_H
#define PF_OBJECT_DIRTY_H

#include "block/engine.h"

struct pf_dirty_range {
	uint64_t from, to; /* blocks, half open */
};

struct pf_dirty_txg {
	uint64_t generation; /* of the checkpoint that will hold it; 0: never used */
	bool whole;
	unsigned nr, cap;
	struct pf_dirty_range *ranges; /* ascending, neither overlapping nor touching */
};

struct pf_dirty { /* zeroed: nothing */
	struct pf_dirty_txg txg[2]; /* the newest first */
	uint32_t unflushed;         /* mask of members, as of change 'change' (member/set.h I6) */
	uint64_t change;
	bool told; /* the user has been told of the loss */
};

/* The mapping of [from, to) has changed; equal: only size or times have. */
void pf_dirty_note(struct pf_pool *pool, struct pf_dirty *dirty, uint64_t from, uint64_t to);
/* Something in the group of @generation has, but not known what. No tree lock needed. */
void pf_dirty_note_whole(struct pf_pool *pool, struct pf_dirty *dirty, uint64_t generation);

/* Data on the members of @mask is being mapped. Exclusive tree lock. */
void pf_dirty_note_data(struct pf_pool *pool, struct pf_dirty *dirty, uint32_t mask);
/* Members with data that is not durable; and of these the ones that have failed, so that it never will be. */
uint32_t pf_dirty_unflushed(struct pf_pool *pool, const struct pf_dirty *dirty);
uint32_t pf_dirty_lost(struct pf_pool *pool, const struct pf_dirty *dirty);
/* What was lost on the members of @mask is not part of the file any more. */
void pf_dirty_forget_lost(struct pf_dirty *dirty, uint32_t mask);

/* 0: nothing that is not durable; else the newest generation that has something. */
uint64_t pf_dirty_generation(struct pf_pool *pool, const struct pf_dirty *dirty);

/* All ranges of both groups, merged; *out is allocated, the caller frees it. -EAGAIN: the file is whole; -ENOMEM. */
int pf_dirty_collect(struct pf_pool *pool, const struct pf_dirty *dirty, struct pf_dirty_range **out, unsigned *nr);

void pf_dirty_clear(struct pf_dirty *dirty); /* it is in the log; memory is kept for the next changes */
void pf_dirty_free(struct pf_dirty *dirty);

#endif
