/* SPDX-License-Identifier: MIT
 *
 * Purpose: the extents that scrub reads, window by window, sorted by address (private to check/).
 *
 * Invariants
 *   I1  An entry does not hold its checksums: it names the leaf and item that do. 16 bytes for each copy of an extent.
 *
 * Uses: check/scrubber.
 */
#ifndef PF_CHECK_SCRUB_PLAN_H
#define PF_CHECK_SCRUB_PLAN_H

#include "check/scrubber.h"

struct pf_scrub_entry {
	pf_addr addr;
	uint32_t leaf; /* index in leaves */
	uint16_t item; /* index in the leaf */
	uint16_t nr_blocks;
};
static_assert(sizeof(struct pf_scrub_entry) == 16, "I1");

struct pf_scrub_window {
	uint64_t from_group, to_group;
	struct pf_scrub_entry *entries; /* by address, so member by member */
	size_t nr_entries;
	struct pf_walk_node *leaves;
	size_t nr_leaves;
};

/* The next window; NULL: that was all. 0, -ENOMEM. */
int pf_scrub_next_window(struct pf_scrub_plan *plan, const struct pf_scrub_window **out);

#endif
