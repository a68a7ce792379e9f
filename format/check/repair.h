/* SPDX-License-Identifier: MIT
 *
 * Purpose: the repairs that the passes asked for, and how they are carried out.
 *
 * Invariants
 *   I1  Order: superblock copies; then, in a pool open for writing, maps before anything is allocated; then the tree
 *       and the counters in the order in which they were noted. Each repair is a transaction, so a crash leaves some
 *       of them done.
 *   I2  With maps that call used blocks free and are not to be repaired, the tree is not touched: it would be
 *       overwritten.
 *   I3  A repair names keys and numbers only and looks at the tree again: bounded memory, and no repair of what has
 *       changed.
 *
 * Uses: pool and everything below.
 */
#ifndef PF_CHECK_REPAIR_H
#define PF_CHECK_REPAIR_H

#include "ondisk/ondisk.h"

#include <stdbool.h>
#include <stddef.h>

struct pf_checker;
struct pf_pool;

enum pf_repair_kind {
	PF_FIX_SUPER,       /* a: member, b: ring, c: slot */
	PF_FIX_MAP,         /* a: member, b: group: take the map that the tree says */
	PF_FIX_DELETE,      /* delete the item with this key */
	PF_FIX_INODE,       /* a: inode, b: enum pf_inode_field, c: value */
	PF_FIX_ADD_HASH,    /* a: directory, b: cookie: give the name its hash item */
	PF_FIX_NAME_TYPE,   /* a: directory, b: cookie, c: the right DT_* */
	PF_FIX_DELETE_NAME, /* a: directory, b: cookie: the name and its hash item */
	PF_FIX_ADD_ORPHAN,  /* a: inode */
	PF_FIX_ADD_RANGE,   /* a: data id, b: inode or 0, c: from block, d: to block; nr_blocks: that nobody has */
	PF_FIX_RECONNECT,   /* a: inode: into /lost+found */
	PF_FIX_NODE,        /* a: level: write the node for this key anew, with all of its copies */
	PF_FIX_COUNTERS,    /* the counters of the superblock */
};

enum pf_inode_field {
	PF_FIELD_NLINK,
	PF_FIELD_SIZE,
	PF_FIELD_BLOCKS,
	PF_FIELD_PARENT,
	PF_FIELD_COOKIE,
	PF_FIELD_FLAGS
};

struct pf_fix {
	enum pf_repair_kind kind;
	struct pf_key key;
	uint64_t a, b, c, d;
	uint64_t nr_blocks;
};

struct pf_repairs {
	struct pf_fix *fixes;
	size_t nr, cap;
	bool rebuild;      /* group tables are damaged: all maps are made anew from the tree */
	uint32_t take_back; /* mask of failed members whose maps are among them: they are members like the others again */
	bool maps_refused; /* I2 */
};

/* Notes a repair. -ENOMEM. */
int pf_repair_note(struct pf_repairs *repairs, const struct pf_fix *fix);
void pf_repair_clear(struct pf_repairs *repairs);

/* Superblock copies: written through the set that the passes used. 0, -EIO, -ENOSPC, -ENOMEM. */
int pf_repair_supers(struct pf_checker *c);
/* Is there anything that needs a pool open for writing? */
bool pf_repair_needs_pool(const struct pf_repairs *repairs);
/* Everything else. What cannot be repaired is skipped: the next look finds it again. 0 or what makes going on
 * pointless. */
int pf_repair_pool(struct pf_checker *c, struct pf_pool *pool);

/* names_fix.c: see enum pf_repair_kind. */
int pf_repair_add_hash(struct pf_pool *pool, uint64_t dir, uint64_t cookie);
int pf_repair_name_type(struct pf_pool *pool, uint64_t dir, uint64_t cookie, unsigned dtype);
int pf_repair_delete_name(struct pf_pool *pool, uint64_t dir, uint64_t cookie);
int pf_repair_delete_bad_name(struct pf_pool *pool, struct pf_key key);
/* Gives the inode a name in /lost+found, which is made if need be. */
int pf_repair_reconnect(struct pf_pool *pool, uint64_t ino);

#endif
