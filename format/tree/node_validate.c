/* SPDX-License-Identifier: MIT
 *
 * The gate between disk and code (tree.h I5). What passes here is searched, split and copied without further checks, so
 * everything on which those rely is checked, whoever made the bytes: CRCs keep accidents out, not authors.
 */
#include "tree/tree_priv.h"

#include "base/csum.h"

#include <string.h>

static uint64_t checksum(const void *node)
{
	uint8_t copy[PF_NODE_SIZE];
	memcpy(copy, node, PF_NODE_SIZE);
	memset(copy + offsetof(struct pf_disk_node_head, crc), 0, sizeof(struct le64));
	return pf_crc64(copy, PF_NODE_SIZE);
}

static bool ours(const struct pf_disk_node_head *head, const struct pf_node_expect *expect)
{
	return pf_get64(head->magic) == PF_NODE_MAGIC &&
	       memcmp(head->pool_uuid, expect->pool_uuid, sizeof(head->pool_uuid)) == 0;
}

static bool below_upper(struct pf_key key, struct pf_key upper)
{
	return pf_key_cmp(key, upper) < 0 || pf_key_cmp(upper, PF_KEY_MAX) == 0;
}

/* Where it should be, the very version that it should be, for the keys that it should be for. */
static bool placed(const struct pf_disk_node_head *head, const struct pf_node_expect *expect)
{
	struct pf_key lower = pf_key_get(head->lower), upper = pf_key_get(head->upper);
	return pf_get64(head->crc) == expect->crc &&
	       (pf_get64(head->addr[0]) == expect->addr || pf_get64(head->addr[1]) == expect->addr) &&
	       pf_get64(head->generation) == expect->generation && head->tree == 0 && head->level == expect->level &&
	       expect->level < PF_TREE_LEVELS && pf_key_cmp(lower, expect->lower) >= 0 &&
	       pf_key_cmp(upper, expect->upper) <= 0 && below_upper(lower, upper);
}

/* Key @i of @nr follows @prev and lies in the node's range. */
static bool key_in_order(const struct pf_disk_node_head *head, unsigned i, struct pf_key prev, struct pf_key key)
{
	return (i ? pf_key_cmp(key, prev) > 0 : pf_key_cmp(key, pf_key_get(head->lower)) >= 0) &&
	       below_upper(key, pf_key_get(head->upper));
}

static bool leaf_valid(const struct pf_disk_node_head *head)
{
	const struct pf_disk_leaf_item *items = (const void *)(head + 1);
	unsigned nr = pf_get16(head->nr_items);
	if (!nr || nr > PF_NODE_ROOM / sizeof(*items))
		return false;
	unsigned end = PF_NODE_SIZE, lowest = (unsigned)(sizeof(*head) + nr * sizeof(*items));
	struct pf_key prev = PF_KEY_MIN;
	for (unsigned i = 0; i < nr; i++) {
		struct pf_key key = pf_key_get(items[i].key);
		unsigned len = pf_get16(items[i].len);
		if (!key_in_order(head, i, prev, key) || len > PF_MAX_ITEM_BYTES || len > end - lowest ||
		    pf_get16(items[i].offset) != end - len)
			return false;
		end -= len;
		prev = key;
	}
	return pf_get16(head->data_start) == end;
}

static bool addr_valid(pf_addr addr)
{
	return addr && pf_addr_member(addr) < PF_MAX_MEMBERS &&
	       addr == pf_addr_make(pf_addr_member(addr), pf_addr_block(addr));
}

static bool inner_valid(const struct pf_disk_node_head *head)
{
	const struct pf_disk_child *children = (const void *)(head + 1);
	unsigned nr = pf_get16(head->nr_items);
	if (!nr || nr > PF_NODE_FANOUT || pf_get16(head->data_start))
		return false;
	struct pf_key prev = PF_KEY_MIN;
	for (unsigned i = 0; i < nr; i++) {
		struct pf_key key = pf_key_get(children[i].key);
		struct pf_ptr ptr = pf_ptr_get(children[i].ptr);
		/* A virtual number from a disk would lead to a node in memory: the address check is not a nicety. */
		if (!key_in_order(head, i, prev, key) || !addr_valid(ptr.addr[0]) ||
		    (ptr.addr[1] && (!addr_valid(ptr.addr[1]) ||
				     pf_addr_member(ptr.addr[0]) == pf_addr_member(ptr.addr[1]))) ||
		    ptr.generation > pf_get64(head->generation))
			return false;
		prev = key;
	}
	return true;
}

int pf_node_validate(const void *node, const struct pf_node_expect *expect)
{
	const struct pf_disk_node_head *head = node;
	if (!ours(head, expect))
		return -PF_ENODE_MAGIC;
	if (pf_get64(head->crc) != checksum(node))
		return -PF_ENODE_CSUM;
	if (!placed(head, expect))
		return -PF_ENODE_PLACE;
	if (head->level ? !inner_valid(head) : !leaf_valid(head))
		return -PF_ENODE_INVALID;
	return 0;
}
