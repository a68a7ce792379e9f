/* SPDX-License-Identifier: MIT
 *
 * Purpose: does again what a record of the intent log says, by the same code that did it first (design rules 2, 11, 12).
 *
 * Invariants
 *   I1  Between pool->replaying = true and false nothing else uses the pool, and no checkpoint begins. Nothing is allocated: blocks
 *       that a record names are claimed (space/space.h), whether they are free or mapped already.
 *   I2  On the tree that the superblock names, records in their order have the effect that they had. A mapping that is there
 *       already is left as it is. A file record of an inode that is gone has no effect.
 *   I3  What does not fit the tree is damage: -PF_ELOG_INVALID.
 *   I4  Numbers that records used are not given to anybody else afterwards.
 *
 * Uses: object, ondisk/record.
 */
#ifndef PF_OBJECT_REDO_H
#define PF_OBJECT_REDO_H

#include "block/engine.h"
#include "ondisk/record.h"

/* Errors: I3, -EIO, -ENOMEM, damage codes of the tree. */
int pf_redo(struct pf_pool *pool, const struct pf_record *rec);

/* All blocks that a file record names have the bytes of which it has the CRCs. 1: they have; 0: not (*bad: where); -ENOMEM. */
int pf_redo_verify(struct pf_pool *pool, const struct pf_record *rec, pf_addr *bad);

/* create.c */
int pf_redo_create(struct pf_pool *pool, const struct pf_record *rec);

#endif
