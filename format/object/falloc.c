/* SPDX-License-Identifier: MIT
 * fallocate(2) and lseek(2) for data and holes. */
#include "object/data.h"
#include "object/orphan.h"
#include "object/stage.h"
#include "object/truncate.h"
#include "object/xattr.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#define BATCH_BLOCKS 4096u /* unwritten blocks mapped by one transaction */

/* The first hole in [from, to). -ENOENT: none. */
static int next_hole(struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to, uint64_t *start, uint64_t *end)
{
	struct pf_extent e;
	int err = 0;
	while (from < to) {
		err = pf_extent_find(pool, data_id, from, &e);
		if (err && err != -ENOENT)
			return err;
		if (err == -ENOENT || e.start > from) {
			*start = from;
			*end = err == -ENOENT || e.start > to ? to : e.start;
			return 0;
		}
		from = e.start + e.nr;
	}
	return -ENOENT;
}

static int count_holes(struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to, uint64_t *nr)
{
	uint64_t start, end;
	int err;
	*nr = 0;
	while (!(err = next_hole(pool, data_id, from, to, &start, &end))) {
		*nr += end - start;
		from = end;
	}
	return err == -ENOENT ? 0 : err;
}

/* Maps unwritten blocks into one stretch of a hole, as many as one run gives: *filled of those promised are used up. */
static int fill_some(struct pf_pool *pool, struct pf_inode *inode, uint64_t start, uint64_t nr, uint64_t *filled)
{
	pf_addr goal;
	int member;
	int err = pf_extent_neighbour(pool, inode->item.data_id, start, &goal, &member);
	if (err)
		return err;
	struct pf_alloc_req req = {
		.use = PF_USE_DATA,
		.nr = nr < BATCH_BLOCKS ? nr : BATCH_BLOCKS,
		.min_nr = 1,
		.goal = goal,
		.member = inode->place.member >= 0 ? inode->place.member : member,
		.reserved = true,
	};
	if (pool->placement == PF_PLACE_STRIPE) {
		uint64_t unit = PF_MAX_EXTENT_BLOCKS - start % PF_MAX_EXTENT_BLOCKS;
		req.nr = req.nr < unit ? req.nr : unit;
		req.member = (int)((start / PF_MAX_EXTENT_BLOCKS + inode->item.data_id) % pool->set->nr);
		req.goal = 0;
	}
	struct pf_run run;
	err = pf_space_alloc(pool->space, &req, &run);
	if (err)
		return err;
	*filled = run.nr;
	struct pf_piece piece = { .start = start, .nr = (unsigned)run.nr, .flags = PF_EXTENT_UNWRITTEN, .addr = run.addr };
	struct pf_write w = { .data_id = inode->item.data_id, .pieces = &piece, .nr_pieces = 1 };
	struct pf_change change;
	pf_change_init(&change, inode);
	change.write = &w;
	err = pf_data_apply(pool, inode, &change);
	if (err)
		pf_space_unalloc(pool->space, run);
	inode->place.member = (int)pf_addr_member(run.addr);
	return err;
}

/* Maps unwritten blocks into the holes of [from, to), from a promise of @promised blocks, which is used up or given back. */
static int fill_holes(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t promised)
{
	uint64_t start, end;
	int err = 0;
	while (!err && !(err = next_hole(pool, inode->item.data_id, from, to, &start, &end))) {
		uint64_t filled = 0;
		err = pf_slow_down(pool);
		if (!err)
			err = fill_some(pool, inode, start, end - start, &filled);
		promised -= filled;
		from = start + filled;
	}
	pf_space_unreserve(pool->space, promised);
	return err == -ENOENT ? 0 : err;
}

/* Blocks that fallocate will have to allocate: the holes of the range, and for ZERO_RANGE what it punches first. */
static int count_needed(struct pf_pool *pool, struct pf_inode *inode, int mode, uint64_t off, uint64_t len, uint64_t *nr)
{
	uint64_t data_id = inode->item.data_id, end = off + len, inner_holes;
	int err = count_holes(pool, data_id, off / PF_BLOCK_SIZE, (end + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, nr);
	uint64_t from = (off + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, to = end / PF_BLOCK_SIZE;
	if (err || !(mode & FALLOC_FL_ZERO_RANGE) || from >= to)
		return err;
	err = count_holes(pool, data_id, from, to, &inner_holes);
	*nr += to - from - inner_holes;
	return err;
}

static int set_item(struct pf_pool *pool, struct pf_inode *inode, struct pf_inode_item *item)
{
	struct pf_change change;
	pf_change_init(&change, inode);
	item->blocks = inode->item.blocks;
	change.item = *item;
	change.tree_size = item->size;
	return pf_data_apply(pool, inode, &change);
}

static int fallocate_locked(struct pf_pool *pool, struct pf_inode *inode, int mode, uint64_t off, uint64_t len,
			    unsigned flags)
{
	struct pf_inode_item item = inode->item;
	uint64_t needed = 0;
	if (!(flags & PF_WRITE_KEEP_TIMES))
		item.mtime = item.ctime = pf_inode_now(pool);
	if (!(mode & FALLOC_FL_KEEP_SIZE) && off + len > item.size)
		item.size = off + len;
	int err = pf_stage_drain(pool, inode);
	if (!err && mode & FALLOC_FL_PUNCH_HOLE)
		return pf_punch_locked(pool, inode, off, len, &item);
	/* all of the space is promised before anything is changed */
	if (!err)
		err = count_needed(pool, inode, mode, off, len, &needed);
	if (!err && needed)
		err = pf_data_promise(pool, inode, 0, PF_MAX_FILE_BLOCKS, needed);
	if (err)
		return err;
	if (mode & FALLOC_FL_ZERO_RANGE) {
		struct pf_inode_item zeroed = item;
		zeroed.size = inode->item.size;
		err = pf_punch_locked(pool, inode, off, len, &zeroed);
	}
	if (err)
		pf_space_unreserve(pool->space, needed);
	else
		err = fill_holes(pool, inode, off / PF_BLOCK_SIZE, (off + len + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, needed);
	return err ? err : set_item(pool, inode, &item);
}

int pf_fallocate(struct pf_pool *pool, uint64_t ino, int mode, uint64_t off_bytes, uint64_t len_bytes, unsigned flags)
{
	const int keep = FALLOC_FL_KEEP_SIZE;
	int kind = mode & ~keep;
	if (kind && kind != FALLOC_FL_PUNCH_HOLE && kind != FALLOC_FL_ZERO_RANGE)
		return -EOPNOTSUPP;
	if (kind == FALLOC_FL_PUNCH_HOLE && !(mode & keep))
		return -EOPNOTSUPP;
	if (!len_bytes)
		return -EINVAL;
	if (off_bytes > (uint64_t)PF_MAX_FILE_BYTES || len_bytes > (uint64_t)PF_MAX_FILE_BYTES - off_bytes)
		return -EFBIG;
	struct pf_inode *inode;
	int err = pf_op_begin(pool, PF_SHRINKS);
	if (!err)
		err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	bool tried = false;
	do {
		pf_inode_lock(inode);
		err = pf_inode_is_file(inode) ? 0 : pf_inode_is_dir(inode) ? -EISDIR : -ENODEV;
		if (!err)
			err = pf_orphan_settle(pool, inode);
		if (!err)
			err = pf_xattr_drop_capability(pool, inode);
		if (!err)
			err = fallocate_locked(pool, inode, mode, off_bytes, len_bytes, flags);
		pthread_rwlock_unlock(&inode->lock);
	} while (pf_stage_gives_way(pool, err, &tried));
	pf_inode_put(pool, inode);
	return err;
}

/* What is staged is data. */
static int seek_data(struct pf_pool *pool, const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	struct pf_extent e;
	uint64_t staged;
	bool is_staged = pf_stage_next(inode, block, &staged);
	int err;
	while (!(err = pf_extent_find(pool, inode->item.data_id, block, &e)) && e.flags & PF_EXTENT_UNWRITTEN)
		block = e.start + e.nr;
	if (!err)
		*found = e.start > block ? e.start : block;
	if (is_staged && (err == -ENOENT || (!err && staged < *found))) {
		*found = staged;
		err = 0;
	}
	return err;
}

static int seek_hole(struct pf_pool *pool, const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	struct pf_extent e;
	int err = 0;
	for (;;) {
		if (pf_stage_find(inode, block)) {
			block++;
			continue;
		}
		err = pf_extent_find(pool, inode->item.data_id, block, &e);
		if (err || e.start > block || e.flags & PF_EXTENT_UNWRITTEN)
			break;
		block = e.start + e.nr;
	}
	*found = block;
	return err == -ENOENT ? 0 : err;
}

int64_t pf_lseek(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, int whence)
{
	struct pf_inode *inode;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		return -EINVAL;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	uint64_t found = 0, size;
	pthread_rwlock_rdlock(&inode->lock);
	size = inode->item.size;
	err = !pf_inode_is_file(inode) ? -EINVAL : off_bytes >= size ? -ENXIO : 0;
	if (!err) {
		uint64_t block = off_bytes / PF_BLOCK_SIZE;
		err = whence == SEEK_DATA ? seek_data(pool, inode, block, &found) : seek_hole(pool, inode, block, &found);
	}
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	if (err == -ENOENT)
		return -ENXIO;
	if (err)
		return err;
	found *= PF_BLOCK_SIZE;
	if (found < off_bytes)
		found = off_bytes;
	if (found >= size)
		return whence == SEEK_DATA ? -ENXIO : (int64_t)size;
	return (int64_t)found;
}
