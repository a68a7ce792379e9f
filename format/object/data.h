/* SPDX-License-Identifier: MIT
 *
 * Purpose: one change of a file's data, mapping and inode together, in one transaction; and the promise of space for it.
 *
 * Invariants
 *   I1  pf_data_apply() changes tree and memory, or neither.
 *   I2  Counters and inode.blocks follow what was mapped and unmapped.
 *
 * Locks: the inode lock, exclusively.
 * Uses: object/inode, object/orphan, block/write.
 */
#ifndef PF_OBJECT_DATA_H
#define PF_OBJECT_DATA_H

#include "block/pressure.h"
#include "block/read.h"
#include "object/inode.h"

struct pf_change {
	struct pf_inode_item item;  /* what the inode becomes (blocks is adjusted) */
	uint64_t tree_size;         /* that belongs to the data after this change */
	const struct pf_times *sealed; /* times that do, where memory is ahead of them; or NULL */
	struct pf_write *write;     /* blocks to be mapped, or NULL */
	bool durable;               /* by a commit of the log: they have been flushed */
	bool drops_stage;           /* what is staged is given up; its times stay, of which the log has not heard */
	uint64_t remove_from, remove_to; /* extents to be unmapped, a batch of pf_extent_batch(); equal: none */
	uint64_t orphan_seq;        /* != 0: enter this orphan range item ... */
	struct pf_orphan_range orphan;
	uint64_t finished_seq;      /* != 0: delete this one */
};

void pf_change_init(struct pf_change *change, const struct pf_inode *inode);
int pf_data_apply(struct pf_pool *pool, struct pf_inode *inode, struct pf_change *change);

/* Promises @nr blocks for a write to [start, start + nr_range) of the file. On a full pool: completes a checkpoint and tries
 * again; overwriting mapped blocks may use the reserve (rule 18). -ENOSPC. */
int pf_data_promise(struct pf_pool *pool, struct pf_inode *inode, uint64_t start, uint64_t nr_range, uint64_t nr);
/* The same without waiting for anything. -EAGAIN: there is room only after waiting, if at all. */
int pf_data_promise_now(struct pf_pool *pool, uint64_t nr);

/* A read of the block for changing part of it: from the stage, the disk, or zeros beyond what the file has. */
int pf_data_read_block(struct pf_pool *pool, struct pf_inode *inode, uint64_t block, uint8_t *page);

/* Tells the log which file has a damaged block. */
void pf_data_report(struct pf_pool *pool, const struct pf_inode *inode, const struct pf_bad_block *bad);

/* What every changing operation does first, without locks: -EROFS, -ENOSPC (block/pressure.h), or waits while too many nodes are
 * dirty. */
int pf_op_begin(struct pf_pool *pool, enum pf_growth growth);

#endif
