/* SPDX-License-Identifier: MIT */
#include "object/truncate.h"

#include "object/data.h"
#include "object/orphan.h"
#include "object/stage.h"

#include <string.h>

/* Blocks that keep a part of their content: at most one at each end of the range. */
struct edges {
	struct pf_dirty_block blocks[2];
	uint8_t *pages[2];
	unsigned nr;
};

static bool is_zero(const uint8_t *bytes, unsigned nr)
{
	return nr == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, nr - 1) == 0);
}

/* Prepares block @block with bytes [from, to) zeroed, if it holds anything. Where nothing changes (behind the end of the file) the
 * block stays: one that is written anew may be lost with a member, and what was synced of the file with it. */
static int add_edge(struct pf_pool *pool, struct pf_inode *inode, struct edges *e, uint64_t block, unsigned from, unsigned to)
{
	struct pf_extent extent;
	int err = pf_extent_find(pool, inode->item.data_id, block, &extent);
	if (err == -ENOENT || (!err && (extent.start > block || extent.flags & PF_EXTENT_UNWRITTEN)))
		return 0;
	if (err)
		return err;
	uint8_t *page = pf_bufpool_get(pool->pages);
	if (!page)
		return -ENOMEM;
	e->pages[e->nr] = page;
	e->blocks[e->nr++] = (struct pf_dirty_block){ block, page };
	err = pf_data_read_block(pool, inode, block, page);
	if (!err && is_zero(page + from, to - from)) {
		e->nr--;
		pf_bufpool_put(pool->pages, page);
	} else if (!err) {
		memset(page + from, 0, to - from);
	}
	return err;
}

static int write_edges(struct pf_pool *pool, struct pf_inode *inode, struct edges *e, struct pf_write *w)
{
	int err = 0;
	*w = (struct pf_write){
		.data_id = inode->item.data_id,
		.place = &inode->place,
		.blocks = e->blocks,
		.nr_blocks = e->nr,
	};
	/* each edge overwrites a mapped block: deleting works on a full pool (rule 18) */
	for (unsigned i = 0; !err && i < e->nr; i++) {
		err = pf_data_promise(pool, inode, e->blocks[i].block, 1, 1);
		if (err && i)
			pf_space_unreserve(pool->space, i);
	}
	if (!err) {
		err = pf_block_write(pool, w);
		if (err)
			pf_space_unreserve(pool->space, e->nr);
	}
	return err;
}

/* Unmaps blocks [from, to) and makes the inode like @item, together with the edges. */
static int remove_range(struct pf_pool *pool, struct pf_inode *inode, struct edges *e, uint64_t from, uint64_t to,
			const struct pf_inode_item *item)
{
	struct pf_write w = { 0 };
	struct pf_change change;
	unsigned nr_items = 0;
	int err = 0;
	pf_change_init(&change, inode);
	change.item = *item;
	change.tree_size = item->size;
	if (from < to)
		err = pf_extent_batch(pool, inode->item.data_id, from, to, PF_REAP_ITEMS, &change.remove_from,
				      &change.remove_to, &nr_items);
	if (err)
		return err;
	bool later = nr_items == PF_REAP_ITEMS;
	if (!nr_items || later)
		change.remove_from = change.remove_to;
	if (later) {
		change.orphan_seq = pf_pool_new_id(pool);
		change.orphan = (struct pf_orphan_range){ inode->item.data_id, inode->ino, from, to };
	}
	if (e->nr) {
		err = write_edges(pool, inode, e, &w);
		change.write = &w;
	}
	if (!err) {
		err = pf_data_apply(pool, inode, &change);
		if (e->nr)
			pf_block_end(pool, &w, !err);
		if (err)
			pf_space_unreserve(pool->space, e->nr);
	}
	if (!err && later)
		pf_orphan_finish_range(pool, inode, change.orphan_seq, from, to); /* or it is owed: orphan.h I5 */
	return err;
}

static void free_edges(struct pf_pool *pool, struct edges *e)
{
	for (unsigned i = 0; i < e->nr; i++)
		pf_bufpool_put(pool->pages, e->pages[i]);
}

/* O(1) however large the file: the data id becomes an orphan, the file gets a new one (pitfalls 1.19). */
static int truncate_to_nothing(struct pf_pool *pool, struct pf_inode *inode, const struct pf_inode_item *item)
{
	struct pf_change change;
	pf_change_init(&change, inode);
	change.item = *item;
	change.tree_size = 0;
	change.drops_stage = inode->stage || inode->sealed;
	if (inode->item.blocks) {
		change.item.data_id = pf_pool_new_id(pool);
		change.orphan_seq = pf_pool_new_id(pool);
		change.orphan = (struct pf_orphan_range){ inode->item.data_id, 0, 0, PF_KEY_FIELD_MAX };
	}
	int err = pf_data_apply(pool, inode, &change);
	if (!err) {
		pf_stage_drop(pool, inode);
		inode->place.member = -1;
	}
	return err;
}

int pf_truncate_locked(struct pf_pool *pool, struct pf_inode *inode, const struct pf_inode_item *item)
{
	uint64_t size = item->size;
	if (size > (uint64_t)PF_MAX_FILE_BYTES)
		return -EFBIG;
	if (!size)
		return truncate_to_nothing(pool, inode, item);
	int err = pf_stage_drain(pool, inode);
	if (err)
		return err;
	struct edges e = { .nr = 0 };
	unsigned within = (unsigned)(size % PF_BLOCK_SIZE);
	if (within && size < inode->item.size)
		err = add_edge(pool, inode, &e, size / PF_BLOCK_SIZE, within, PF_BLOCK_SIZE);
	if (!err) {
		uint64_t from = (size + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE;
		bool shrinks = size <= inode->item.size;
		struct pf_inode_item next = *item;
		next.blocks = inode->item.blocks;
		next.data_id = inode->item.data_id;
		err = remove_range(pool, inode, &e, from, shrinks ? PF_KEY_FIELD_MAX : from, &next);
	}
	free_edges(pool, &e);
	return err;
}

int pf_punch_locked(struct pf_pool *pool, struct pf_inode *inode, uint64_t off_bytes, uint64_t len_bytes,
		    const struct pf_inode_item *item)
{
	int err = pf_stage_drain(pool, inode);
	if (err)
		return err;
	uint64_t end = off_bytes + len_bytes;
	uint64_t from = (off_bytes + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, to = end / PF_BLOCK_SIZE;
	unsigned head = (unsigned)(off_bytes % PF_BLOCK_SIZE), tail = (unsigned)(end % PF_BLOCK_SIZE);
	struct edges e = { .nr = 0 };
	struct pf_inode_item next = *item;
	if (off_bytes / PF_BLOCK_SIZE == end / PF_BLOCK_SIZE) {
		err = add_edge(pool, inode, &e, to, head, tail);
	} else {
		if (head)
			err = add_edge(pool, inode, &e, off_bytes / PF_BLOCK_SIZE, head, PF_BLOCK_SIZE);
		if (!err && tail)
			err = add_edge(pool, inode, &e, to, 0, tail);
	}
	if (!err) {
		next.blocks = inode->item.blocks;
		next.data_id = inode->item.data_id;
		err = remove_range(pool, inode, &e, from, from < to ? to : from, &next);
	}
	free_edges(pool, &e);
	return err;
}
