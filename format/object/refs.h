/* SPDX-License-Identifier: MIT
 *
 * Purpose: how many references each inode number has: an open-addressing table of 16 bytes an entry.
 *
 * Invariants
 *   I1  A number without references has no entry; the table is at most 70 % full and shrinks again.
 *
 * Locks: the caller's. Uses: nothing.
 */
#ifndef PF_OBJECT_REFS_H
#define PF_OBJECT_REFS_H

#include <stddef.h>
#include <stdint.h>

struct pf_refs {
	struct pf_refs_entry {
		uint64_t ino, nr; /* ino 0: free */
	} *table;
	size_t cap, nr_used;
};

uint64_t pf_refs_get(const struct pf_refs *refs, uint64_t ino);
int pf_refs_add(struct pf_refs *refs, uint64_t ino, uint64_t nr); /* -ENOMEM */
/* Returns what is left; takes at most what is there. */
uint64_t pf_refs_drop(struct pf_refs *refs, uint64_t ino, uint64_t nr);
void pf_refs_free(struct pf_refs *refs);

#endif
