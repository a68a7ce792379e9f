/* SPDX-License-Identifier: MIT
 *
 * Purpose: one node in memory, and the handling of its 16 KiB, which are in disk format: search, insert, remove, move.
 *
 * Invariants
 *   I1  A node as bytes is what FORMAT 5 says, except: child pointers may hold virtual numbers, magic, pool, own address,
 *       generation and CRC are filled in only by pf_node_pack(), and a leaf may have holes (dead_bytes) between its items.
 *   I2  A leaf with room for an item takes it, compacted if need be: 'fits' never depends on holes.
 *   I3  Half of a full leaf plus an item of the maximal size leaves PF_LEAF_ROOM free in both halves of a balanced split.
 *   I4  No function here fails or allocates.
 *
 * Uses: base, ondisk.
 */
#ifndef PF_TREE_NODE_H
#define PF_TREE_NODE_H

#include "ondisk/super.h"

#include <stdatomic.h>
#include <sys/queue.h>

#define PF_NODE_ROOM    (PF_NODE_SIZE - (unsigned)sizeof(struct pf_disk_node_head))
#define PF_LEAF_ROOM    4096u
#define PF_NODE_NO_HINT UINT16_MAX

/* A virtual number stands for an address that is not known yet; no member has this id. */
#define PF_VIRTUAL_MEMBER 0xffu

struct pf_node {
	struct pf_node_chunk *home; /* node_mem.h */
	uint8_t *buf;              /* PF_NODE_SIZE bytes, aligned to PF_BLOCK_SIZE */
	uint64_t number;           /* by which parents in memory name it */
	struct pf_node *chain;     /* next in the hash bucket, or in a list of spares */
	TAILQ_ENTRY(pf_node) link; /* in one of the clean, dirty, frozen lists */
	uint64_t epoch;            /* of its change, see tree_priv.h; 0: CLEAN */
	struct pf_ptr ptr;         /* where it lies: CLEAN, and FROZEN once written */
	uint64_t visit;            /* mark of the last reservation that counted it */
	uint16_t dead_bytes;       /* leaf: bytes below data_start that belong to no item */
	uint16_t hint;             /* leaf: index of the last insertion, or PF_NODE_NO_HINT */
	bool superseded;           /* FROZEN: the live tree has a newer one, or none, in its place */
	atomic_bool touched;       /* for the eviction clock */
	atomic_uint refs;          /* one of the cache, one of each loader that has pinned it */
};
TAILQ_HEAD(pf_node_list, pf_node);

static inline struct pf_disk_node_head *pf_node_head(const struct pf_node *node)
{
	return (struct pf_disk_node_head *)node->buf;
}
static inline struct pf_disk_leaf_item *pf_node_items(const struct pf_node *node)
{
	return (struct pf_disk_leaf_item *)(node->buf + sizeof(struct pf_disk_node_head));
}
static inline struct pf_disk_child *pf_node_children(const struct pf_node *node)
{
	return (struct pf_disk_child *)(node->buf + sizeof(struct pf_disk_node_head));
}
static inline unsigned pf_node_nr(const struct pf_node *node)
{
	return pf_get16(pf_node_head(node)->nr_items);
}
static inline unsigned pf_node_level(const struct pf_node *node)
{
	return pf_node_head(node)->level;
}
static inline struct pf_key pf_node_lower(const struct pf_node *node)
{
	return pf_key_get(pf_node_head(node)->lower);
}
static inline struct pf_key pf_node_upper(const struct pf_node *node)
{
	return pf_key_get(pf_node_head(node)->upper);
}
static inline struct pf_key pf_node_key(const struct pf_node *node, unsigned i)
{
	return pf_key_get(pf_node_level(node) ? pf_node_children(node)[i].key : pf_node_items(node)[i].key);
}
static inline struct pf_ptr pf_node_child(const struct pf_node *node, unsigned i)
{
	return pf_ptr_get(pf_node_children(node)[i].ptr);
}
static inline bool pf_number_is_virtual(uint64_t number)
{
	return pf_addr_member(number) == PF_VIRTUAL_MEMBER;
}

/* An empty node for keys in [lower, upper). */
void pf_node_init(struct pf_node *node, unsigned level, struct pf_key lower, struct pf_key upper);
void pf_node_set_range(struct pf_node *node, struct pf_key lower, struct pf_key upper);

/* First index whose key is >= @key (nr when there is none). */
unsigned pf_node_search(const struct pf_node *node, struct pf_key key, bool *found);
/* Interior: index of the child in which @key belongs. */
unsigned pf_node_route(const struct pf_node *node, struct pf_key key);
/* The upper bound of what may lie below child @i. */
struct pf_key pf_node_child_upper(const struct pf_node *node, unsigned i);

/* -- leaves -- */
static inline const void *pf_leaf_data(const struct pf_node *leaf, unsigned i, unsigned *len)
{
	const struct pf_disk_leaf_item *item = pf_node_items(leaf) + i;
	*len = pf_get16(item->len);
	return leaf->buf + pf_get16(item->offset);
}
unsigned pf_leaf_used(const struct pf_node *leaf); /* bytes of items and their headers, holes not counted */
static inline bool pf_leaf_fits(const struct pf_node *leaf, unsigned len)
{
	return pf_leaf_used(leaf) + sizeof(struct pf_disk_leaf_item) + len <= PF_NODE_ROOM;
}
/* @data may lie in the leaf itself for overwrite, not for insert. */
void pf_leaf_insert(struct pf_node *leaf, unsigned i, struct pf_key key, const void *data, unsigned len);
void pf_leaf_overwrite(struct pf_node *leaf, unsigned i, const void *data, unsigned len); /* len <= the old one */
void pf_leaf_remove(struct pf_node *leaf, unsigned i);
void pf_leaf_move_tail(struct pf_node *leaf, unsigned from,
		       struct pf_node *right); /* items [from, nr) to an empty leaf */
/* Where to split so that @leaf, with a new item of @len bytes at @at, falls into two parts of even size: the new item counts
 * as one, 1 <= result <= nr. */
unsigned pf_leaf_split_point(const struct pf_node *leaf, unsigned at, unsigned len);

/* -- interior nodes -- */
void pf_inner_insert(struct pf_node *inner, unsigned i, struct pf_key key, uint64_t number);
void pf_inner_remove(struct pf_node *inner, unsigned i);
void pf_inner_set_key(struct pf_node *inner, unsigned i, struct pf_key key);
void pf_inner_set_ptr(struct pf_node *inner, unsigned i, struct pf_ptr ptr);
void pf_inner_move_tail(struct pf_node *inner, unsigned from, struct pf_node *right);

/* Both kinds: @node becomes all of @left followed by all of @right (one of which it is), which must fit. */
void pf_node_join(struct pf_node *node, const struct pf_node *left, const struct pf_node *right);
/* Part of the room that is taken, in units of 1/1024. */
unsigned pf_node_fill(const struct pf_node *node);

/* The bytes for the disk, without holes and with zeros in between; the caller then patches child pointers, and seals. */
void pf_node_pack(const struct pf_node *node, void *dst);
/* Fills the head of packed bytes; returns the CRC. */
uint64_t pf_node_seal(void *packed, const uint8_t *pool_uuid, const pf_addr addr[2], uint64_t generation);

#endif
