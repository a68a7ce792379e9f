/* SPDX-License-Identifier: MIT
 *
 * Purpose: how many references each inode number has: an open-addressing table of 8 bytes an entry, for there may be as many as the pool
 * has files, and most have a few references.
 *
 * Invariants
 *   I1  A number without references has no entry; the tables are at most 70 % full and shrink again.
 *   I2  A count that has come to PF_REFS_MANY stands in the table 'many', until it is 0.
 *
 * Locks: the caller's. Uses: nothing; inode numbers have 56 bits (PF_KEY_FIELD_MAX).
 */
#ifndef PF_OBJECT_REFS_H
#define PF_OBJECT_REFS_H

#include <stddef.h>
#include <stdint.h>

#define PF_REFS_MANY 255u

struct pf_refs_table {
	uint64_t *words; /* of each entry: number << 8 | count or PF_REFS_MANY; 0: free. In 'many' a second one, the count */
	size_t cap, nr_used; /* entries */
};

struct pf_refs {
	struct pf_refs_table few, many;
};

uint64_t pf_refs_get(const struct pf_refs *refs, uint64_t ino);
int pf_refs_add(struct pf_refs *refs, uint64_t ino, uint64_t nr); /* -ENOMEM */
/* Returns what is left; takes at most what is there. */
uint64_t pf_refs_drop(struct pf_refs *refs, uint64_t ino, uint64_t nr);
/* The numbers, one after the other: @at is 0 at first. 0: that was the last. */
uint64_t pf_refs_next(const struct pf_refs *refs, size_t *at);
void pf_refs_free(struct pf_refs *refs);

#endif
