/* SPDX-License-Identifier: MIT
 *
 * Purpose: writing file blocks to free space: place, checksum, write; and entering them in the tree once they are there.
 *
 * Order (design rule 14): pf_block_write() returns when the data has been written (not flushed). Only then the caller takes a
 * transaction and calls pf_block_map(). So no tree that a checkpoint freezes names a block whose write is not complete.
 *
 * Invariants
 *   I1  Live data is never overwritten: blocks come from pf_space_alloc(), or from an unwritten extent of the same range
 *       ('in place': nothing is live there).
 *   I2  A failed write is redone elsewhere (rule 9), on another member if there is one, before the caller hears of it.
 *   I3  Between write and map or abandon the new blocks belong to nobody but the struct pf_write.
 *   I4  What fails keeps the whole promise it was made from: nobody else gets those blocks before it is tried again.
 *
 * Locks: the caller holds the inode lock exclusively.
 * Uses: block/extent.
 */
#ifndef PF_BLOCK_WRITE_H
#define PF_BLOCK_WRITE_H

#include "block/extent.h"

struct pf_dirty_block { /* one block to be written */
	uint64_t block; /* of the file */
	const void *data; /* PF_BLOCK_SIZE bytes */
};

struct pf_place { /* where a file likes to lie; kept in the inode */
	int member;   /* -1: not decided */
};

struct pf_write {
	uint64_t data_id;
	struct pf_place *place;
	const struct pf_dirty_block *blocks; /* ascending, no block twice; the caller's */
	unsigned nr_blocks;
	bool behind; /* nobody waits for it, and no lock is held: others may have the processor now and then */
	/* results */
	struct pf_piece *pieces; /* ascending */
	unsigned nr_pieces, cap_pieces;
	uint64_t *crc; /* of each of the blocks; NULL without DATA_CSUM */
	unsigned nr_from_promise; /* blocks allocated from the promise */
	struct pf_block_io *io;   /* between prepare and complete */
};

/* Writes w->blocks. nr_blocks have been promised by pf_space_reserve(): pf_block_end() settles that. Errors: -ENOSPC, -EIO, -ENOMEM,
 * damage codes; nothing is left allocated then, the promise is the caller's again, and there is nothing to end. */
int pf_block_write(struct pf_pool *pool, struct pf_write *w);

/* The same in two halves, with the requests in the caller's hands in between: places and checksums, so that pieces and crc are
 * known; and, when all of pf_block_requests() have been run, looks at their results: what failed is redone elsewhere (*moved is
 * then true: pieces are not what they were). After an error nothing is left allocated, and complete is not to be called. */
int pf_block_prepare(struct pf_pool *pool, struct pf_write *w);
struct pf_aio_req *pf_block_requests(struct pf_write *w, unsigned *nr);
int pf_block_complete(struct pf_pool *pool, struct pf_write *w, bool *moved);

/* Announces the change of the tree. */
void pf_block_want(struct pf_txn *txn, const struct pf_write *w);
/* Under the transaction's lock: -PF_EITEM_INVALID before anything is changed. */
int pf_block_check(struct pf_txn *txn, struct pf_pool *pool, const struct pf_write *w);
/* Maps what was written in place of what was there. Returns the change in the number of mapped blocks. */
int64_t pf_block_map(struct pf_txn *txn, struct pf_pool *pool, struct pf_write *w);

/* Frees the arrays. @mapped: the promise is used up, whatever part of it was not needed; else the blocks are given back, and all of
 * the promise is the caller's again. */
void pf_block_end(struct pf_pool *pool, struct pf_write *w, bool mapped);
/* The same when only the first @nr_mapped pieces were mapped: of the others the blocks are given back, and their part of the promise is
 * the caller's again. Nothing is left to do for one that has failed. */
void pf_block_end_partly(struct pf_pool *pool, struct pf_write *w, unsigned nr_mapped);

/* PF_BREAK_MAP_BEFORE_DATA (tests): the data writes held back are done now. */
void pf_block_late_writes(struct pf_pool *pool);
void pf_block_drop_late_writes(struct pf_pool *pool);

#endif
