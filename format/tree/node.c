/* SPDX-License-Identifier: MIT */
#include "tree/node.h"

#include "base/csum.h"

#include <string.h>

#define HEAD_BYTES  ((unsigned)sizeof(struct pf_disk_node_head))
#define ITEM_BYTES  ((unsigned)sizeof(struct pf_disk_leaf_item))
#define CHILD_BYTES ((unsigned)sizeof(struct pf_disk_child))

static_assert((PF_NODE_ROOM + PF_MAX_ITEM_BYTES + ITEM_BYTES) / 2 + (PF_MAX_ITEM_BYTES + ITEM_BYTES) / 2 +
			      PF_LEAF_ROOM <=
		      PF_NODE_ROOM,
	      "I3");

static void set_nr(struct pf_node *node, unsigned nr)
{
	pf_node_head(node)->nr_items = pf_le16((uint16_t)nr);
}

static unsigned data_start(const struct pf_node *leaf)
{
	return pf_get16(pf_node_head(leaf)->data_start);
}

static void set_data_start(struct pf_node *leaf, unsigned offset)
{
	pf_node_head(leaf)->data_start = pf_le16((uint16_t)offset);
}

void pf_node_init(struct pf_node *node, unsigned level, struct pf_key lower, struct pf_key upper)
{
	struct pf_disk_node_head *head = pf_node_head(node);
	memset(head, 0, sizeof(*head));
	head->level = (uint8_t)level;
	set_data_start(node, level ? 0 : PF_NODE_SIZE);
	pf_node_set_range(node, lower, upper);
	node->dead_bytes = 0;
	node->hint = PF_NODE_NO_HINT;
}

void pf_node_set_range(struct pf_node *node, struct pf_key lower, struct pf_key upper)
{
	pf_node_head(node)->lower = pf_key_le(lower);
	pf_node_head(node)->upper = pf_key_le(upper);
}

/* -- searching ---------------------------------------------------------------------------------------------------- */
static bool below(const uint8_t *disk_key, struct pf_key key)
{
	struct pf_key k = pf_key_get(*(const struct pf_disk_key *)disk_key);
	return k.hi < key.hi || (k.hi == key.hi && k.lo < key.lo);
}

unsigned pf_node_search(const struct pf_node *node, struct pf_key key, bool *found)
{
	unsigned stride = pf_node_level(node) ? CHILD_BYTES : ITEM_BYTES;
	const uint8_t *base = node->buf + HEAD_BYTES; /* both kinds of entry begin with their key */
	unsigned nr = pf_node_nr(node), lo = 0, n = nr;
	while (n) {
		unsigned half = n / 2;
		if (below(base + (size_t)(lo + half) * stride, key)) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	*found = lo < nr && pf_key_cmp(pf_node_key(node, lo), key) == 0;
	return lo;
}

unsigned pf_node_route(const struct pf_node *node, struct pf_key key)
{
	bool found;
	unsigned i = pf_node_search(node, key, &found);
	return found || !i ? i : i - 1;
}

struct pf_key pf_node_child_upper(const struct pf_node *node, unsigned i)
{
	return i + 1 < pf_node_nr(node) ? pf_node_key(node, i + 1) : pf_node_upper(node);
}

/* -- leaves ------------------------------------------------------------------------------------------------------- */
unsigned pf_leaf_used(const struct pf_node *leaf)
{
	return pf_node_nr(leaf) * ITEM_BYTES + PF_NODE_SIZE - data_start(leaf) - leaf->dead_bytes;
}

/* Appends to a leaf whose free bytes lie together. */
static void push(struct pf_node *leaf, struct pf_disk_key key, const void *data, unsigned len)
{
	unsigned nr = pf_node_nr(leaf), offset = data_start(leaf) - len;
	assert(HEAD_BYTES + (nr + 1) * ITEM_BYTES <= offset);
	memcpy(leaf->buf + offset, data, len);
	pf_node_items(leaf)[nr] = (struct pf_disk_leaf_item){ key, pf_le16((uint16_t)offset), pf_le16((uint16_t)len) };
	set_data_start(leaf, offset);
	set_nr(leaf, nr + 1);
}

static void push_range(struct pf_node *dst, const struct pf_node *src, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		unsigned len;
		const void *data = pf_leaf_data(src, i, &len);
		push(dst, pf_node_items(src)[i].key, data, len);
	}
}

/* A second node over @buf with the head of @node and no items. */
static struct pf_node empty_like(const struct pf_node *node, uint8_t *buf)
{
	struct pf_node copy = { .buf = buf, .hint = PF_NODE_NO_HINT };
	memcpy(buf, node->buf, HEAD_BYTES);
	set_nr(&copy, 0);
	set_data_start(&copy, pf_node_level(node) ? 0 : PF_NODE_SIZE);
	return copy;
}

static void compact(struct pf_node *leaf)
{
	uint8_t buf[PF_NODE_SIZE];
	struct pf_node copy = empty_like(leaf, buf);
	push_range(&copy, leaf, 0, pf_node_nr(leaf));
	memcpy(leaf->buf, buf, HEAD_BYTES + pf_node_nr(&copy) * ITEM_BYTES);
	memcpy(leaf->buf + data_start(&copy), buf + data_start(&copy), PF_NODE_SIZE - data_start(&copy));
	leaf->dead_bytes = 0;
}

void pf_leaf_insert(struct pf_node *leaf, unsigned i, struct pf_key key, const void *data, unsigned len)
{
	unsigned nr = pf_node_nr(leaf);
	assert(i <= nr && len <= PF_MAX_ITEM_BYTES && pf_leaf_fits(leaf, len));
	if (HEAD_BYTES + (nr + 1) * ITEM_BYTES + len > data_start(leaf))
		compact(leaf);
	struct pf_disk_leaf_item *items = pf_node_items(leaf);
	unsigned offset = data_start(leaf) - len;
	memmove(items + i + 1, items + i, (nr - i) * (size_t)ITEM_BYTES);
	if (len)
		memcpy(leaf->buf + offset, data, len);
	items[i] = (struct pf_disk_leaf_item){ pf_key_le(key), pf_le16((uint16_t)offset), pf_le16((uint16_t)len) };
	set_data_start(leaf, offset);
	set_nr(leaf, nr + 1);
	leaf->hint = (uint16_t)i;
}

void pf_leaf_overwrite(struct pf_node *leaf, unsigned i, const void *data, unsigned len)
{
	struct pf_disk_leaf_item *item = pf_node_items(leaf) + i;
	unsigned old = pf_get16(item->len);
	assert(len <= old);
	if (len)
		memmove(leaf->buf + pf_get16(item->offset), data, len);
	item->len = pf_le16((uint16_t)len);
	leaf->dead_bytes = (uint16_t)(leaf->dead_bytes + old - len);
}

void pf_leaf_remove(struct pf_node *leaf, unsigned i)
{
	struct pf_disk_leaf_item *items = pf_node_items(leaf);
	unsigned nr = pf_node_nr(leaf), len = pf_get16(items[i].len);
	assert(i < nr);
	if (pf_get16(items[i].offset) == data_start(leaf))
		set_data_start(leaf, data_start(leaf) + len);
	else
		leaf->dead_bytes = (uint16_t)(leaf->dead_bytes + len);
	memmove(items + i, items + i + 1, (nr - i - 1) * (size_t)ITEM_BYTES);
	set_nr(leaf, nr - 1);
	leaf->hint = PF_NODE_NO_HINT;
}

void pf_leaf_move_tail(struct pf_node *leaf, unsigned from, struct pf_node *right)
{
	unsigned nr = pf_node_nr(leaf), moved = 0;
	push_range(right, leaf, from, nr);
	for (unsigned i = from; i < nr; i++)
		moved += pf_get16(pf_node_items(leaf)[i].len);
	leaf->dead_bytes = (uint16_t)(leaf->dead_bytes + moved);
	set_nr(leaf, from);
	leaf->hint = PF_NODE_NO_HINT;
}

unsigned pf_leaf_split_point(const struct pf_node *leaf, unsigned at, unsigned len)
{
	unsigned nr = pf_node_nr(leaf), total = pf_leaf_used(leaf) + ITEM_BYTES + len, left = 0;
	for (unsigned i = 0;; i++) {
		unsigned bytes = len;
		if (i != at)
			pf_leaf_data(leaf, i < at ? i : i - 1, &bytes);
		bytes += ITEM_BYTES;
		if (i == nr || 2 * (left + bytes) > total) /* the item across the middle goes to the lesser side */
			return i && left + bytes > total - left ? i : i + 1 > nr ? nr : i + 1;
		left += bytes;
	}
}

/* -- interior nodes ------------------------------------------------------------------------------------------------ */
void pf_inner_insert(struct pf_node *inner, unsigned i, struct pf_key key, uint64_t number)
{
	struct pf_disk_child *children = pf_node_children(inner);
	unsigned nr = pf_node_nr(inner);
	assert(i <= nr && nr < PF_NODE_FANOUT);
	memmove(children + i + 1, children + i, (nr - i) * (size_t)CHILD_BYTES);
	children[i] = (struct pf_disk_child){ pf_key_le(key), pf_ptr_le((struct pf_ptr){ .addr = { number } }) };
	set_nr(inner, nr + 1);
}

void pf_inner_remove(struct pf_node *inner, unsigned i)
{
	struct pf_disk_child *children = pf_node_children(inner);
	unsigned nr = pf_node_nr(inner);
	assert(i < nr);
	memmove(children + i, children + i + 1, (nr - i - 1) * (size_t)CHILD_BYTES);
	set_nr(inner, nr - 1);
}

void pf_inner_set_key(struct pf_node *inner, unsigned i, struct pf_key key)
{
	pf_node_children(inner)[i].key = pf_key_le(key);
}

void pf_inner_set_ptr(struct pf_node *inner, unsigned i, struct pf_ptr ptr)
{
	pf_node_children(inner)[i].ptr = pf_ptr_le(ptr);
}

static void push_children(struct pf_node *dst, const struct pf_node *src, unsigned from, unsigned to)
{
	unsigned nr = pf_node_nr(dst);
	assert(nr + to - from <= PF_NODE_FANOUT);
	memcpy(pf_node_children(dst) + nr, pf_node_children(src) + from, (to - from) * (size_t)CHILD_BYTES);
	set_nr(dst, nr + to - from);
}

void pf_inner_move_tail(struct pf_node *inner, unsigned from, struct pf_node *right)
{
	push_children(right, inner, from, pf_node_nr(inner));
	set_nr(inner, from);
}

/* -- both ---------------------------------------------------------------------------------------------------------- */
unsigned pf_node_fill(const struct pf_node *node)
{
	return pf_node_level(node) ? pf_node_nr(node) * 1024 / (unsigned)PF_NODE_FANOUT
				   : pf_leaf_used(node) * 1024 / PF_NODE_ROOM;
}

void pf_node_join(struct pf_node *node, const struct pf_node *left, const struct pf_node *right)
{
	uint8_t buf[PF_NODE_SIZE];
	struct pf_node both = empty_like(node, buf);
	pf_node_set_range(&both, pf_node_lower(left), pf_node_upper(right));
	if (pf_node_level(node)) {
		push_children(&both, left, 0, pf_node_nr(left));
		push_children(&both, right, 0, pf_node_nr(right));
	} else {
		push_range(&both, left, 0, pf_node_nr(left));
		push_range(&both, right, 0, pf_node_nr(right));
	}
	memcpy(node->buf, buf, PF_NODE_SIZE);
	node->dead_bytes = 0;
	node->hint = PF_NODE_NO_HINT;
}

void pf_node_pack(const struct pf_node *node, void *dst)
{
	memset(dst, 0, PF_NODE_SIZE);
	struct pf_node copy = empty_like(node, dst);
	if (pf_node_level(node))
		push_children(&copy, node, 0, pf_node_nr(node));
	else
		push_range(&copy, node, 0, pf_node_nr(node));
}

uint64_t pf_node_seal(void *packed, const uint8_t *pool_uuid, const pf_addr addr[2], uint64_t generation)
{
	struct pf_disk_node_head *head = packed;
	head->magic = pf_le64(PF_NODE_MAGIC);
	head->crc = pf_le64(0);
	memcpy(head->pool_uuid, pool_uuid, sizeof(head->pool_uuid));
	head->addr[0] = pf_le64(addr[0]);
	head->addr[1] = pf_le64(addr[1]);
	head->generation = pf_le64(generation);
	uint64_t crc = pf_crc64(packed, PF_NODE_SIZE);
	head->crc = pf_le64(crc);
	return crc;
}
