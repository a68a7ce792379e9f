/* SPDX-License-Identifier: MIT
 *
 * Purpose: taking ranges out of files: truncate, punch, zero; each one point of the file's history however long the range.
 *
 * Invariants
 *   I1  Bytes of the last block beyond the end of the file are zero on disk, so growing a file needs no I/O.
 *   I2  Blocks cut by an edge are written anew with zeros before the transaction that maps them and changes the size.
 *   I3  A range too long for one transaction gets an orphan range item in the first one (object/orphan.h I1). With that it has
 *       happened: an error of a later one is no error of the call (I5 there).
 *
 * Locks: the inode lock, exclusively. Uses: object/data, object/stage, object/orphan.
 */
#ifndef PF_OBJECT_TRUNCATE_H
#define PF_OBJECT_TRUNCATE_H

#include "object/inode.h"

/* Makes the file @item->size long and the inode like @item, in one change. */
int pf_truncate_locked(struct pf_pool *pool, struct pf_inode *inode, const struct pf_inode_item *item);

/* [off, off + len) reads as zeros; what it held is freed. The inode becomes like @item (size included). */
int pf_punch_locked(struct pf_pool *pool, struct pf_inode *inode, uint64_t off_bytes, uint64_t len_bytes,
		    const struct pf_inode_item *item);

#endif
