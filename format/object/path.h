/* SPDX-License-Identifier: MIT
 *
 * Purpose: the path of an inode for a message: from the parents that directories have, and the hint that files have.
 *
 * Invariants
 *   I1  Always gives something readable: "inode 42" when the name is not found where the hint says.
 *
 * Locks: none needed; what it reads may be changing. Uses: object/inode.
 */
#ifndef PF_OBJECT_PATH_H
#define PF_OBJECT_PATH_H

#include "object/inode.h"

void pf_path_of(struct pf_pool *pool, const struct pf_inode *inode, char *buf, size_t cap);

#endif
