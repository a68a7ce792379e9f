/* SPDX-License-Identifier: MIT
 *
 * Purpose: the mapping of file ranges to blocks: looking it up, and changing it inside a tree transaction.
 *
 * Invariants
 *   I1  Extents of one data id never overlap; none is longer than PF_MAX_EXTENT_BLOCKS.
 *   I2  Changing functions run between pf_txn_lock() and pf_txn_end() over a range that pf_extent_want() announced and
 *       pf_extent_check() accepted; they cannot fail.
 *   I3  What they remove is freed by pf_space_free() in the same txg, what they insert enters by pf_space_commit().
 *
 * Uses: block/engine, ondisk/item.
 */
#ifndef PF_BLOCK_EXTENT_H
#define PF_BLOCK_EXTENT_H

#include "block/engine.h"
#include "ondisk/item.h"

/* A stretch of a looked-up range. flags of a hole: PF_SEG_HOLE. */
#define PF_SEG_HOLE 0x100u
struct pf_seg {
	unsigned first, nr; /* blocks, relative to the start of the range */
	unsigned flags;     /* enum pf_extent_flags, PF_SEG_HOLE */
	unsigned nr_copies;
	pf_addr addr[PF_MAX_COPIES];
};

#define PF_MAP_BLOCKS PF_MAX_EXTENT_BLOCKS
struct pf_map {
	uint64_t start;
	unsigned nr; /* blocks */
	unsigned nr_segs;
	struct pf_seg segs[PF_MAP_BLOCKS]; /* each has a block of the range at least */
	uint64_t crc[PF_MAP_BLOCKS]; /* by block of the range; meaningful where flags say that there is one */
	uint32_t members;            /* mask of those that a reader ticket is held for */
	unsigned tickets[PF_MAX_MEMBERS];
};

/* Looks up up to PF_MAP_BLOCKS blocks and takes a reader ticket for each member concerned: pf_map_release() gives them back. Until
 * then no block of the map gets another content, but those of unwritten extents. Errors (no tickets held):
 * -EIO, a damage code. */
int pf_extent_map(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, struct pf_map *map);
void pf_map_release(struct pf_pool *pool, struct pf_map *map);

/* What lies before a range that is about to be written: goal = block after the nearest extent before it (0: none), member =
 * that of the nearest extent (-1: none). */
int pf_extent_neighbour(struct pf_pool *pool, uint64_t data_id, uint64_t start, pf_addr *goal, int *member);

/* First extent that ends after @block: -ENOENT when there is none. Addresses and CRCs of @extent are not to be used. */
int pf_extent_find(struct pf_pool *pool, uint64_t data_id, uint64_t block, struct pf_extent *extent);

/* A stretch to be mapped. */
struct pf_piece {
	uint64_t start; /* file block */
	unsigned nr;    /* may exceed PF_MAX_EXTENT_BLOCKS */
	unsigned flags; /* enum pf_extent_flags */
	pf_addr addr;
	bool in_place;       /* blocks that an unwritten extent has held: already committed */
	const uint64_t *crc; /* nr of them, or NULL */
};

/* Announces a change of [from, to) into which @nr_pieces pieces of together @nr_blocks blocks will be inserted. */
void pf_extent_want(struct pf_txn *txn, uint64_t data_id, uint64_t from, uint64_t to, unsigned nr_pieces,
		    uint64_t nr_blocks);
/* Every item of the range is valid and lies in data space. -PF_EITEM_INVALID. */
int pf_extent_check(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to);
/* Unmaps [from, to). @keep_unwritten: the blocks of unwritten extents are reused by what is inserted next, do not free them.
 * Returns the number of blocks unmapped. */
uint64_t pf_extent_remove(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to,
			  bool keep_unwritten);
/* Maps the pieces (ascending, into unmapped ranges), and merges with neighbours. Returns the number of blocks mapped. */
uint64_t pf_extent_insert(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, const struct pf_piece *pieces,
			  unsigned nr_pieces);

/* For long removals: the end of a prefix of [from, to) that holds at most @max_items items, to be wanted and removed in one
 * transaction; returns @to when the rest is empty or small. *nr_items gets their number. */
int pf_extent_batch(struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to, unsigned max_items,
		    uint64_t *batch_from, uint64_t *batch_to, unsigned *nr_items);

#endif
