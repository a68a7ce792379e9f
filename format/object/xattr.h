/* SPDX-License-Identifier: MIT
 *
 * Purpose: what writing needs of extended attributes: the capability of a program goes when its file is changed.
 *
 * Invariants
 *   I1  After a write, truncation or change of owner the file has no security.capability.
 *   I2  inode->capability is PF_ABSENT only when the attribute is known not to be there.
 *
 * Locks: the inode lock, exclusively. Uses: object/inode.
 */
#ifndef PF_OBJECT_XATTR_H
#define PF_OBJECT_XATTR_H

#include "object/inode.h"

/* Removes security.capability if it is there (pitfalls 8.4). The ctime is left to the change that takes it away. Costs nothing once
 * it is known to be absent. */
int pf_xattr_drop_capability(struct pf_pool *pool, struct pf_inode *inode);

/* Mode without set-user-id, and without set-group-id where the group may execute (as the VFS drops them on a write). */
static inline uint32_t pf_mode_without_setid(uint32_t mode)
{
	mode &= ~(uint32_t)04000;
	return mode & 010 ? mode & ~(uint32_t)02000 : mode;
}

#endif
