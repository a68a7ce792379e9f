/* SPDX-License-Identifier: MIT
 *
 * Purpose: where things lie on a member, computed from its size alone (FORMAT 3). Fixed for the member's life.
 *
 * Layout in blocks: zero block | superblock ring A | table root x2 | table blocks x2 | maps x2 | log ring | data ... |
 * superblock ring B (the last PF_SUPER_RING_BLOCKS of the member, which is cut down to whole blocks).
 *
 * Invariants
 *   I1  Both slots of a thing lie side by side: slot s of table block i is at tables_block + 2 * i + s, of the map of
 *       group g at maps_block + 2 * g + s; slot s of the root (root_blocks long) at root_block + s * root_blocks.
 *   I2  Group g covers blocks [g << PF_GROUP_SHIFT, ...) of the member, fixed places included; the last may be short.
 *       Blocks outside [data_start, data_end) are always in use.
 *   I3  A table root is one structure of root_blocks blocks, each beginning with a head. One CRC, in the first head, covers
 *       all of it.
 *
 * Uses: ondisk.
 */
#ifndef PF_ONDISK_GEOMETRY_H
#define PF_ONDISK_GEOMETRY_H

#include "ondisk/ondisk.h"

struct pf_geometry {
	uint64_t size_blocks;
	uint64_t root_block, root_blocks; /* root_blocks: of one slot */
	uint64_t tables_block, nr_tables;
	uint64_t maps_block, nr_groups;
	uint64_t log_block, log_blocks;
	uint64_t data_start, data_end; /* [data_start, data_end) */
	uint64_t backup_block;         /* start of ring B */
};

/* Log ring: 1/64 of the member, 1 to 64 MiB, in blocks. */
uint32_t pf_geometry_log_blocks(uint64_t size_blocks);

/* 0 or -PF_EMEMBER_SMALL (less than PF_MIN_MEMBER_BYTES) or -PF_ESB_INVALID (log_blocks leaves no data space, or more
 * than PF_MAX_MEMBER_BLOCKS). */
int pf_geometry_init(struct pf_geometry *geo, uint64_t size_blocks, uint32_t log_blocks);

/* Block of slot @slot of ring A (@ring 0) or B (1). */
uint64_t pf_geometry_super_block(const struct pf_geometry *geo, unsigned ring, unsigned slot);

/* Kept for nodes on each metadata member of a pool of @pool_blocks, in blocks: an allowance of 0.6 % (at least 2 MiB:
 * what an emptying pool and one checkpoint need) and a reserve of 0.1 % (1 to 256 MiB); at most a quarter of the
 * member's data space. */
uint64_t pf_geometry_share_blocks(uint64_t pool_blocks, const struct pf_geometry *member);

/* How much of a share of so many blocks, from data_start on, mkfs has the host of an image allocate: all of it up to 512 MiB, of
 * a larger one what two checkpoints take at most, 256 MiB, up to the end of a group. The rest is allocated when nodes get there. */
uint64_t pf_geometry_home_blocks(const struct pf_geometry *member, uint64_t share_blocks);

#endif
