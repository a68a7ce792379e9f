/* SPDX-License-Identifier: MIT
 *
 * Purpose: changes what lies on the disks of a pool behind its back, so that checksums are right again afterwards:
 * what a mistake in the engine would leave, or somebody with a hex editor and patience.
 *
 * Invariants
 *   I1  Works on the bytes alone (FORMAT.md); uses nothing of the tree and of space.
 *   I2  Everything is written in place, a node with both of its copies; the generation stays. All superblocks of the newest generation are kept equal.
 *   I3  Aborts when something is not as expected: these are tests.
 *
 * Uses: sim/simdisk, ondisk.
 */
#ifndef POKE_H
#define POKE_H

#include "member/set.h"
#include "sim/simdisk.h"

struct poke;

/* Finds the newest superblock. No handles of the disks are kept. */
struct poke *poke_open(struct simworld *world);
void poke_close(struct poke *p); /* writes the superblocks if need be */

/* The superblock, to be changed at will. */
struct pf_super *poke_super(struct poke *p);
const struct pf_geometry *poke_geo(struct poke *p, unsigned member);

/* Copies an item; returns its length, or -1. */
int poke_get(struct poke *p, struct pf_key key, void *buf, unsigned cap);
/* Replaces or inserts it (into a leaf that has room), or removes it. */
void poke_put(struct poke *p, struct pf_key key, const void *data, unsigned len);
void poke_del(struct poke *p, struct pf_key key);
/* First item >= *key with this class; false: none. */
bool poke_next(struct poke *p, unsigned class, struct pf_key *key);
/* Where the leaf lies in which @key is or would be. */
pf_addr poke_leaf(struct poke *p, struct pf_key key);
/* First copies of all nodes, root first; returns their number (at most @cap). */
unsigned poke_nodes(struct poke *p, pf_addr *addrs, unsigned cap);
/* Changes the pointer to the leaf of @key in its parent (the root must not be that leaf). */
void poke_leaf_ptr(struct poke *p, struct pf_key key, pf_addr addr);

/* Writes over bytes of a node on the way to @key (@level 0: the leaf), and of its header too, checksums made right. */
void poke_node_bytes(struct poke *p, struct pf_key key, unsigned level, unsigned offset, const void *bytes,
		     unsigned len);

/* Group tables. The root is at [0], the table block at [1], the map at [2]. */
void poke_table_places(struct poke *p, unsigned member, uint64_t group, pf_addr places[3]);
struct pf_disk_group poke_group(struct poke *p, unsigned member, uint64_t group);
void poke_set_group(struct poke *p, unsigned member, uint64_t group, const struct pf_disk_group *g);
/* Sets or clears one bit of a written map, and the free count with it. */
void poke_map_bit(struct poke *p, unsigned member, uint64_t block, bool used);

/* Flips one bit at an address (a block and a byte in it). */
void poke_flip(struct poke *p, pf_addr addr, unsigned byte, unsigned bit);

#endif
