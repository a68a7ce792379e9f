/* SPDX-License-Identifier: MIT
 *
 * Purpose: what a member has to be told, and how the other files of space/ hand it over. Private to space/.
 * Invariants: those of discard.h. All is guarded by space->lock.
 * Uses: space.
 */
#ifndef PF_SPACE_DISCARD_INT_H
#define PF_SPACE_DISCARD_INT_H

#include "space/discard.h"
#include "space/runs.h"

struct pf_space_member;

struct pf_discard {
	bool wanted;               /* freed blocks are discarded */
	bool unable, told;         /* it cannot; its user knows of a failure */
	uint64_t from;             /* first block that is discarded online (I3) */
	struct pf_run_list waiting;
	struct pf_run *batch;      /* sorted: those of a list that are left from at_batch on; or NULL */
	size_t nr_batch, at_batch;
	uint64_t batch_blocks, flying_blocks; /* left of the batch; in the step under way */
};

/* Not in use and not free either. */
static inline uint64_t pf_discard_blocks(const struct pf_discard *d)
{
	return d->waiting.blocks + d->batch_blocks + d->flying_blocks;
}

/* All with the lock held. Takes over a list that is to become free, or returns false. */
bool pf_discard_accept(struct pf_space *space, struct pf_space_member *m, struct pf_run_list *list);
/* Frees all that waits (I4); drops the lock. False: there was nothing. */
bool pf_discard_drop(struct pf_space *space);
/* PF_BREAK_DISCARD_EARLY; without the lock. */
void pf_discard_early(struct pf_space_member *m, struct pf_run run);

#endif
