/* SPDX-License-Identifier: MIT
 *
 * Purpose: reads the committed group tables and maps of a member, without the engine's allocator (check I2).
 *
 * Invariants
 *   I1  What does not verify is marked lost and told to the caller; the rest is read all the same.
 *
 * Uses: member.
 */
#ifndef PF_CHECK_TABLES_H
#define PF_CHECK_TABLES_H

#include "member/set.h"

struct pf_group_info { /* as the table says */
	uint64_t generation, crc;
	uint16_t free_blocks, free_quads;
	uint8_t slot;
	uint8_t flags; /* enum pf_group_flags */
	bool lost;     /* its table block is damaged */
};

struct pf_tables {
	uint64_t nr_groups;
	struct pf_group_info *groups;
};

/* A table root (@is_root) or table block @index, lying at @block of @member, is damaged. */
typedef void pf_tables_bad_fn(void *arg, unsigned member, bool is_root, uint64_t index, uint64_t block, int err);

/* 0 or -ENOMEM. @out is the caller's to free, also when parts were bad. */
int pf_tables_load(struct pf_set *set, const struct pf_super *super, unsigned member, pf_tables_bad_fn *bad, void *arg,
		   struct pf_tables *out);
void pf_tables_free(struct pf_tables *tables);

/* The committed map of @group into @map (one block, aligned). -EIO or -PF_EMAP_INVALID. The group is PF_GROUP_INIT. */
int pf_tables_read_map(struct pf_set *set, const struct pf_super *super, unsigned member, uint64_t group,
		       const struct pf_group_info *info, struct pf_disk_map *map);
/* Where it lies. */
uint64_t pf_tables_map_block(const struct pf_set *set, unsigned member, uint64_t group,
			     const struct pf_group_info *info);

#endif
