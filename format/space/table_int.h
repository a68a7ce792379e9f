/* SPDX-License-Identifier: MIT
 *
 * Purpose: table roots, table blocks and maps as bytes (table.c). Private to space/.
 *
 * Invariants
 *   I1  Nothing is changed in memory by what packs or judges bytes: maps can be judged and sealed without the lock, as the pool's
 *       identity and the geometry never change. Tables and the groups' committed state are the checkpoint's.
 *
 * Uses: space.
 */
#ifndef PF_SPACE_TABLE_INT_H
#define PF_SPACE_TABLE_INT_H

#include "space/space.h"

struct pf_new_map;
struct pf_space_member;

/* Reads roots and table blocks of all members as their root_* say. Not @strict: takes what is readable. */
int pf_table_read_all(struct pf_space *space, bool strict, struct pf_diag *diag);
struct pf_map_expect { /* what the table says of a map */
	uint64_t generation, crc;
	uint32_t group;
	uint16_t free_blocks, free_quads;
	uint8_t slot;
};
struct pf_map_expect pf_map_expect_of(const struct pf_space_member *m, uint32_t group);
int pf_table_unpack_map(const struct pf_space *space, const struct pf_space_member *m,
			const struct pf_map_expect *expect, const void *block, uint64_t *words);
/* These return the CRC; the caller has put the bits into a map. */
uint64_t pf_table_seal_map(const struct pf_space *space, const struct pf_space_member *m, const struct pf_new_map *new,
			   uint64_t generation, struct pf_disk_map *map);
uint64_t pf_table_pack(const struct pf_space *space, const struct pf_space_member *m, uint32_t table, void *block);
uint64_t pf_table_pack_root(const struct pf_space *space, const struct pf_space_member *m, void *root);

#endif
