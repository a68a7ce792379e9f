/* SPDX-License-Identifier: MIT
 *
 * Purpose: the copy-on-write B-tree of keys and bytes, and its bounded cache of nodes. It does not know what items mean.
 *
 * A node in memory has a reference number, and parents in memory name it by that: its disk address once it has one, a virtual
 * number (member byte 0xff) from its first change until a checkpoint has written it. A hash table leads from number to node, so
 * neither parent nor child pointers exist, and a frozen node and its newer copy do not get in each other's way.
 *
 * Invariants
 *   I1  States: CLEAN (as on disk, may be evicted), DIRTY (changed in the current txg), FROZEN (belongs to the checkpoint
 *       being written). The bytes of CLEAN and FROZEN nodes never change; who wants to change one copies it (path copy up to
 *       the root). The old one's blocks are freed in the txg that copied.
 *   I2  The tree lock is never held across I/O. A reader or writer that meets an absent node lets go, loads it, starts again.
 *   I3  A writer changes the tree only in a txn whose pf_txn_lock() succeeded: every node it may touch is then in memory,
 *       memory for copies and splits is at hand, and nothing between lock and unlock can fail (design "Locks", pitfall 3.5).
 *   I4  All changes of one operation lie in one lock section, so a freeze never falls between them.
 *   I5  Every node from disk passes pf_node_validate() before use: magic, pool, address, generation, level, CRC as the
 *       parent says, key range within what the parent says (less where a neighbour has gone: a node's own range is brought
 *       up to date when it changes, not for its neighbour's sake), items in order and in bounds.
 *   I6  An emptied leaf is taken out of its parent; a root with one child gives way to it: an empty tree is "no root".
 *       Underfull neighbours are merged when both are in memory (never at the price of I/O).
 *
 * Locks: one reader-writer lock (the tree lock). Order: inode locks -> tree lock -> locks inside space and cache.
 * Uses: base, ondisk, member, space.
 */
#ifndef PF_TREE_H
#define PF_TREE_H

#include "ondisk/super.h"
#include "space/space.h"

struct pf_tree;
struct pf_node;

struct pf_node_pins { /* nodes that a look-up has loaded stay in memory until it is done; filled by the tree */
	struct pf_node **nodes;
	unsigned nr, cap;
};

struct pf_tree_config {
	uint64_t cache_bytes; /* bound of clean nodes; dirty and frozen ones come on top, see pf_tree_dirty() */
};

/* The tree at set->super.root. Reads nothing yet. */
int pf_tree_open(struct pf_set *set, struct pf_space *space, const struct pf_tree_config *config, struct pf_tree **out);
void pf_tree_close(struct pf_tree *tree); /* drops dirty nodes too */

struct pf_item {
	struct pf_key key;
	const void *data; /* in the node: valid while the lock is held, and up to the next put or del */
	unsigned len;
};

/* -- reading a consistent view: several look-ups under one hold of the shared lock ---------------------------------
 *	struct pf_view v;
 *	PF_VIEW(v, tree, err) {            // runs the body again after each load; the body starts from the beginning
 *		err = pf_view_get(&v, key, &item);
 *		if (!err) ...copy what is needed...
 *	}
 * Inside the body, -PF_ENODE_ABSENT must be left in err: leave the body by 'continue' or by its end, never by 'break' or
 * 'return' (the lock would stay held). Views do not nest, nor in a txn. */
struct pf_view {
	struct pf_tree *tree;
	struct pf_ptr absent; /* node to load, as its parent names it */
	struct pf_key absent_lower, absent_upper;
	unsigned absent_level;
	unsigned nr_hits;
	int state;
	struct pf_node_pins pins;
};
/* 0, -ENOENT, -PF_ENODE_ABSENT. */
int pf_view_get(struct pf_view *v, struct pf_key key, struct pf_item *item);
/* First item with a key >= @key (next) or last one <= @key (prev). 0, -ENOENT, -PF_ENODE_ABSENT. */
int pf_view_next(struct pf_view *v, struct pf_key key, struct pf_item *item);
int pf_view_prev(struct pf_view *v, struct pf_key key, struct pf_item *item);

void pf_view_start(struct pf_view *v, struct pf_tree *tree);
bool pf_view_enter(struct pf_view *v, int *err); /* false: done, lock released; *err is final */
#define PF_VIEW(v, tree, err) for (pf_view_start(&(v), tree), (err) = 0; pf_view_enter(&(v), &(err));)

/* Convenience: copies one item out. Returns its length (may be more than @cap: then nothing is copied), or -ENOENT, -EIO,
 * a damage code. */
int pf_tree_get(struct pf_tree *tree, struct pf_key key, void *buf, unsigned cap);

/* -- changing ------------------------------------------------------------------------------------------------------- */
#define PF_TXN_WANTS 280
struct pf_txn {
	struct pf_tree *tree;
	unsigned nr_wants;
	struct {
		struct pf_key from, to; /* inclusive; also the neighbours just outside may be sought */
		unsigned insert_bytes;  /* at most this many bytes of new items (PF_TXN_ITEM) land here */
	} wants[PF_TXN_WANTS];
	struct pf_node *spare; /* memory for copies and splits */
	unsigned nr_spare;
	unsigned nr_uneven; /* splits still allowed that leave the left half full */
	bool locked;
};
#define PF_TXN_ITEM(len) ((unsigned)(len) + (unsigned)sizeof(struct pf_disk_leaf_item))

void pf_txn_init(struct pf_txn *txn, struct pf_tree *tree);
/* Keys in [from, to], and the nearest item on either side, will be looked at or changed. */
void pf_txn_want(struct pf_txn *txn, struct pf_key from, struct pf_key to, unsigned insert_bytes);
/* Loads and reserves, then takes the exclusive lock. 0; or -EIO, -ENOMEM, a damage code: no lock, nothing changed. */
int pf_txn_lock(struct pf_txn *txn);
/* While locked, within the wanted ranges: */
bool pf_txn_get(struct pf_txn *txn, struct pf_key key, struct pf_item *item);
bool pf_txn_next(struct pf_txn *txn, struct pf_key key, struct pf_item *item);          /* first >= key */
bool pf_txn_prev(struct pf_txn *txn, struct pf_key key, struct pf_item *item);          /* last <= key */
void pf_txn_put(struct pf_txn *txn, struct pf_key key, const void *data, unsigned len); /* inserts or replaces */
void pf_txn_del(struct pf_txn *txn, struct pf_key key);                                 /* no-op when absent */
/* Releases the lock if held, and the memory. */
void pf_txn_end(struct pf_txn *txn);

/* Makes the node of @level for @key dirty, and those above it: the next checkpoint writes them anew, with all their copies, and
 * frees the old places. 0, also when the tree has no such level; -EIO, -ENOMEM, a damage code. */
int pf_tree_rewrite(struct pf_tree *tree, struct pf_key key, unsigned level);

/* -- checkpoint support (commit/checkpoint.c) ----------------------------------------------------------------------- */
/* The exclusive lock by itself (freeze and completion do more than the tree's part under it). */
void pf_tree_lock(struct pf_tree *tree);
void pf_tree_unlock(struct pf_tree *tree);
/* Under the exclusive lock, O(1): dirty nodes become frozen ones of @generation. */
void pf_tree_freeze(struct pf_tree *tree, uint64_t generation);
/* Writes the frozen nodes bottom-up from private copies, in large sequential writes (not flushed): allocates their addresses
 * (pf_space_alloc PF_USE_NODE, on the metadata members in the order of set->super; pf_set_node_copies() of each node, on as
 * many members; commits them by pf_space_commit_frozen), fills *root and *root_level.
 * Errors: -EIO, -ENOSPC; may be called again (a failed write is redone elsewhere). */
int pf_tree_write_frozen(struct pf_tree *tree, struct pf_ptr *root, unsigned *root_level);
/* Members on which writes failed in the last call. */
uint32_t pf_tree_blamed(const struct pf_tree *tree);
/* Under the exclusive lock, G is durable: at most @most frozen nodes become clean under their addresses, pointers of newer nodes are
 * patched, nodes that were copied meanwhile are dropped and their blocks freed in the current txg (pf_space_free). True: there are
 * more, to be called again. The lock may be given up in between, as others wait for it; no freeze comes before the end. */
bool pf_tree_durable(struct pf_tree *tree, unsigned most);

struct pf_tree_stats {
	uint64_t dirty_nodes, frozen_nodes, clean_nodes;
	uint64_t hits, misses;
};
void pf_tree_stats(struct pf_tree *tree, struct pf_tree_stats *out);
/* Dirty nodes, and those of the checkpoint under way, now; cheap, no lock. */
uint64_t pf_tree_dirty(struct pf_tree *tree);
uint64_t pf_tree_frozen(struct pf_tree *tree);

/* -- nodes as bytes: for the tree itself, check/ and dump ------------------------------------------------------------ */
struct pf_node_expect {
	const uint8_t *pool_uuid;
	pf_addr addr; /* where it was read from: must be one of the header's */
	uint64_t generation, crc;
	unsigned level;
	struct pf_key lower, upper;
};
/* The gate between disk and code (I5). 0 or one of the -PF_ENODE_* codes. */
int pf_node_validate(const void *node, const struct pf_node_expect *expect);

#endif
