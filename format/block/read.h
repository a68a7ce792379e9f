/* SPDX-License-Identifier: MIT
 *
 * Purpose: reading file blocks, in two steps: a picture of a range, taken under the inode lock; and what it shows, read without any:
 * all extents of it in flight at once, straight into the caller's buffer, verified.
 *
 * Invariants
 *   I1  No byte leaves that did not match its CRC (versions with the feature DATA_CSUM; extents flagged no-CRC excepted).
 *   I2  Holes and unwritten extents read as zeros without I/O.
 *   I3  A block whose first copy fails is read from its other copies before it counts as bad.
 *   I4  A picture shows the file as it was when it was taken, whatever happens to the file until it has been read. Blocks that the file
 *       gives up meanwhile are not used again before (space.h I4); written blocks are never written in place, and unwritten ones,
 *       which are, are not read (I2).
 *   I5  Until then, what is freed on the members concerned stays out of use: a picture is read at once or dropped, and nobody has
 *       more of them than a few MiB of a file.
 *
 * Locks: a picture is taken with the inode lock held (shared or exclusive), or by who owns the data id alone. Reading it needs none, and
 * so do pictures of one moment that are taken under one hold of the lock. Who has one must not wait for space (space.h).
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

struct pf_picture {
	struct pf_map map;
	uint64_t known[PF_MAP_BLOCKS / 64]; /* bit i: block i need not be read, the caller knows its content */
};

static inline bool pf_picture_is_known(const struct pf_picture *picture, unsigned block)
{
	return picture->known[block / 64] >> (block % 64) & 1;
}

/* Step one, for at most PF_MAP_BLOCKS blocks: nothing of them is known yet, which is for the caller to change. After success either
 * pf_picture_read() or pf_picture_drop() follows. Errors: -EIO, damage codes of the tree; *bad says where. */
int pf_picture_take(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, struct pf_picture *picture,
		    struct pf_bad_block *bad);
/* Step two. @buf: map.nr blocks, aligned; those of known blocks are not touched. The picture is dropped, also after an error: -EIO,
 * -PF_EDATA_CSUM, -PF_EITEM_INVALID; *bad says where (of the first). */
int pf_picture_read(struct pf_pool *pool, struct pf_picture *picture, void *buf, struct pf_bad_block *bad);
void pf_picture_drop(struct pf_pool *pool, struct pf_picture *picture);

/* Both steps, for who holds the inode lock anyway. */
int pf_block_read(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, void *buf, struct pf_bad_block *bad);

#endif
