/* SPDX-License-Identifier: MIT
 *
 * Purpose: telling members which blocks hold nothing any more, so that an image file shrinks on its host and a device can
 * reuse them (design rule 17; pitfalls 2.6, 5.9).
 *
 * Online: what was freed, is durable and has no reader left goes to a list instead of becoming free, is discarded, and is free
 * then. Batch ('trim'): free blocks are taken, discarded, and given back.
 *
 * Invariants
 *   I1  A block under a discard, or waiting for one, is not allocatable. No lock is held across the discard.
 *   I2  Whole windows are discarded online, aligned runs of PF_DISCARD_BLOCKS blocks of which none is in use; free
 *       neighbours are taken to complete one. What completes no window becomes free at once.
 *   I3  Nothing but data area is discarded, and of a metadata member nothing before the end of its share: what the host has
 *       allocated there stays, so that a full host takes no checkpoint its room. Online this goes for its first metadata groups
 *       as a whole, where they are a small part of the member: nodes come and go there all the time.
 *   I4  When somebody finds no room, what waits becomes free at once without a discard (rule 18); free blocks are taken only
 *       so far as data may have them and nobody has been promised them.
 *   I5  A member that cannot discard is asked once, and of members that fail it is told once. The blocks are free all the same.
 *
 * Uses: space.
 */
#ifndef PF_SPACE_DISCARD_H
#define PF_SPACE_DISCARD_H

#include <stdbool.h>
#include <stdint.h>

#define PF_DISCARD_BLOCKS 16 /* 64 KiB */

struct pf_space;

/* From now on freed blocks of these members (bit = id) are discarded; of the others not. */
void pf_space_set_discard(struct pf_space *space, uint32_t members);
uint32_t pf_space_discards(struct pf_space *space);
/* One discard, or a number of runs that are not worth one. 1: go on; 0: nothing waits. One caller at a time. */
int pf_space_discard_step(struct pf_space *space);

/* A trim, to be zeroed first but for what is wanted. */
struct pf_trim {
	uint64_t min_blocks;     /* of a free run; 0: 1 */
	bool unused;             /* groups that were never used as well */
	unsigned member;         /* where it goes on; or begins */
	uint64_t block;
	unsigned end_member;     /* where it ends; 0: with the last one */
	uint64_t end_block;
	uint64_t trimmed_blocks; /* so far */
	uint32_t unable, failed; /* members that cannot discard, or where a discard failed */
};
/* One discard, or a bounded search for something to discard. 1: go on; 0: that was all; -ENOMEM. */
int pf_space_trim_step(struct pf_space *space, struct pf_trim *trim);

#endif
