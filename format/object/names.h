/* SPDX-License-Identifier: MIT
 *
 * Purpose: the entries of a directory in the tree: one name item in order of creation (its offset is the readdir cookie) and
 * one small hash item for looking it up.
 *
 * Invariants
 *   I1  The hash item of a name lies at the name's 56-bit hash, or at the next free one of PF_HASH_PROBES values; all of
 *       them are looked at, so a removed entry leaves no gap that would hide another.
 *   I2  A slot found while names_lock is held stays right until it is released.
 *
 * Locks: names_lock for what is going to be changed. Uses: tree, ondisk/item.
 */
#ifndef PF_OBJECT_NAMES_H
#define PF_OBJECT_NAMES_H

#include "object/inode.h"

#define PF_FIRST_COOKIE 3 /* 1 and 2 are "." and ".." */

struct pf_slot {
	bool found, full;     /* full: not found, and all places for its hash are taken */
	uint64_t hash_offset; /* of the hash item; not found: where it would go */
	uint64_t cookie;      /* of the name item; not found: the caller sets it */
	uint64_t ino;
	unsigned dtype;
};

/* 0 or -EINVAL, -ENAMETOOLONG. */
int pf_name_check(const char *name, size_t len);

/* 0 whether or not the name is found. -EIO, damage codes. */
int pf_slot_find(struct pf_pool *pool, uint64_t dir, const char *name, size_t len, struct pf_slot *slot);

void pf_slot_want(struct pf_txn *txn, uint64_t dir, const struct pf_slot *slot);
/* Enters or replaces: both items name @ino afterwards. */
void pf_slot_put(struct pf_txn *txn, uint64_t dir, const struct pf_slot *slot, uint64_t ino, unsigned dtype,
		 const char *name, size_t len);
void pf_slot_del(struct pf_txn *txn, uint64_t dir, const struct pf_slot *slot);

static inline unsigned pf_dtype_of(uint32_t mode)
{
	return mode >> 12 & 15;
}

#endif
