/* SPDX-License-Identifier: MIT
 *
 * Purpose: fills the free space of a rig.
 * Invariants: none. Uses: space_util.h.
 */
#ifndef SPACE_FILL_H
#define SPACE_FILL_H

#include "space_util.h"

/* Takes everything that the use may have, in pieces of at most @nr blocks; returns how many blocks that were. */
static inline uint64_t rig_take_all(struct rig *rig, enum pf_space_use use, uint64_t nr)
{
	struct pf_run run;
	uint64_t blocks = 0, min = use == PF_USE_NODE ? PF_NODE_BLOCKS : 1;
	int err;
	while (!(err = rig_alloc(rig, use, nr, min, &run))) {
		pf_space_commit(rig->space, run, use);
		blocks += run.nr;
	}
	ck_assert_int_eq(err, -ENOSPC);
	return blocks;
}

#endif
