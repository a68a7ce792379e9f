/* SPDX-License-Identifier: MIT
 *
 * Purpose: reading file blocks: all extents of a request in flight at once, straight into the caller's buffer, verified.
 *
 * Invariants
 *   I1  No byte leaves that did not match its CRC (versions with the feature DATA_CSUM; extents flagged no-CRC excepted).
 *   I2  Holes and unwritten extents read as zeros without I/O.
 *   I3  A block whose first copy fails is read from its other copies before it counts as bad.
 *
 * Locks: the caller holds the inode lock (shared or exclusive) or owns the data id alone.
 * Uses: block/extent.
 */
#ifndef PF_BLOCK_READ_H
#define PF_BLOCK_READ_H

#include "block/extent.h"

/* Where a read failed, for the log. */
struct pf_bad_block {
	uint64_t file_block;
	pf_addr addr;
	int err;
};

/* @buf: nr blocks, aligned. @skip (may be NULL): bit i set = block i need not be read, its content is known better.
 * Errors: -EIO, -PF_EDATA_CSUM, damage codes of the tree; *bad says where (of the first). */
int pf_block_read(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, void *buf, const uint64_t *skip,
		  struct pf_bad_block *bad);

#endif
