/* SPDX-License-Identifier: MIT
 *
 * Purpose: pass 2, item by item: what a single item says, and what it says beside its neighbours in key order
 * (private to check/).
 *
 * Invariants
 *   I1  Items arrive in key order, so an inode comes before its attributes, and all inodes before all extents.
 *
 * Uses: check/checker, ondisk/item.
 */
#ifndef PF_CHECK_ITEMS_H
#define PF_CHECK_ITEMS_H

#include "check/checker.h"
#include "ondisk/item.h"

struct pf_check_chunks { /* of a symbolic link or an attribute, as they come by */
	bool open;       /* a first chunk was seen, the last was not */
	uint64_t hash;   /* attribute: upper part of the offset */
	uint64_t next_chunk;
	uint64_t want_bytes, got_bytes;
};

struct pf_check_items {
	struct pf_checker *c;
	uint64_t ino;                 /* class 0: object that the items belong to */
	struct pf_check_inode *inode; /* NULL: it has none */
	bool has_xattr;
	bool unowned_reported, unowned_wanted;
	uint32_t inode_flags;
	struct pf_check_chunks symlink, xattr;

	uint64_t data_id;            /* class 2: object that the extents belong to */
	struct pf_check_inode *file; /* NULL: no inode has it */
	uint64_t end;                /* of the extent before */
	uint64_t unowned_blocks;     /* of this data id, waiting for nobody */
};

/* items_inode.c: class 0. The object changes or the class ends: _done. */
int pf_check_inode_item(struct pf_check_items *s, const struct pf_walk_item *item);
int pf_check_inode_done(struct pf_check_items *s);

/* items_extent.c: class 2. */
int pf_check_extent_item(struct pf_check_items *s, const struct pf_walk_item *item);
int pf_check_extent_done(struct pf_check_items *s);
/* After the last inode: makes ranges and data ids ready to be looked up. */
int pf_check_ranges_seal(struct pf_check_items *s);

/* "inode 5", "directory 7", "data 9 at block 12", for messages. */
struct pf_key_text {
	char text[64];
};
struct pf_key_text pf_check_key_text(struct pf_key key);

#endif
