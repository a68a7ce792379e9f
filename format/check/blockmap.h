/* SPDX-License-Identifier: MIT
 *
 * Purpose: a bitmap of the whole pool, built from what the tree names: one bit for each block.
 *
 * Invariants
 *   I1  2 KiB for each 64 MiB group that has a marked block, 8 bytes for each other.
 *
 * Uses: member.
 */
#ifndef PF_CHECK_BLOCKMAP_H
#define PF_CHECK_BLOCKMAP_H

#include "member/set.h"

struct pf_blockmap;

int pf_blockmap_create(const struct pf_set *set, struct pf_blockmap **out); /* -ENOMEM */
void pf_blockmap_free(struct pf_blockmap *map);

/* Marks a run that pf_set_addr_valid() accepts. Returns how many of its blocks were marked before (*first_twice is
 * the first of them), or -ENOMEM. */
int pf_blockmap_mark(struct pf_blockmap *map, pf_addr addr, unsigned nr_blocks, pf_addr *first_twice);

/* PF_GROUP_BLOCKS bits, LSB first; NULL: nothing marked. */
const uint8_t *pf_blockmap_group(const struct pf_blockmap *map, unsigned member, uint64_t group);

#endif
