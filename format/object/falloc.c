/* SPDX-License-Identifier: MIT
 * fallocate(2) and lseek(2) for data and holes. */
#include "object/data.h"
#include "object/fill.h"
#include "object/orphan.h"
#include "object/stage.h"
#include "object/truncate.h"
#include "object/xattr.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

/* Blocks that fallocate will have to allocate: the holes of the range, and for ZERO_RANGE what it punches first. */
static int count_needed(struct pf_pool *pool, struct pf_inode *inode, int mode, uint64_t off, uint64_t len, uint64_t *nr)
{
	uint64_t end = off + len, inner_holes;
	int err = pf_fill_count(pool, inode, off / PF_BLOCK_SIZE, (end + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, nr);
	uint64_t from = (off + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, to = end / PF_BLOCK_SIZE;
	if (err || !(mode & FALLOC_FL_ZERO_RANGE) || from >= to)
		return err;
	err = pf_fill_count(pool, inode, from, to, &inner_holes);
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

/* Blocks [from, to) get a place. An error may leave some of them with one, which no reader sees; the file is not longer then. */
static int allocate(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t promised,
		    struct pf_inode_item *item)
{
	int err = pf_fill_holes(pool, inode, from, to, &promised);
	if (err)
		pf_space_unreserve(pool->space, promised);
	return err ? err : set_item(pool, inode, item);
}

/* With its first transaction the range reads as zeros and the file is as long as it will be: it has happened. Whatever of the blocks
 * cannot be taken out or put in their place then is owed. */
static int zero(struct pf_pool *pool, struct pf_inode *inode, uint64_t off, uint64_t len, uint64_t promised,
		const struct pf_inode_item *item)
{
	uint64_t from = off / PF_BLOCK_SIZE, to = (off + len + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE;
	int err = pf_punch_locked(pool, inode, off, len, item);
	if (err) {
		pf_space_unreserve(pool->space, promised);
		return err;
	}
	bool owes = pf_inode_is_marked(inode, PF_MARK_OWES);
	if (!owes)
		err = pf_fill_holes(pool, inode, from, to, &promised);
	if (owes || err)
		pf_orphan_owe_fill(pool, inode, from, to, promised, err);
	return 0;
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
	if (mode & FALLOC_FL_ZERO_RANGE)
		return zero(pool, inode, off, len, needed, &item);
	return allocate(pool, inode, off / PF_BLOCK_SIZE, (off + len + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, needed, &item);
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
		pf_inode_lock(pool, inode);
		err = pf_inode_is_file(inode) ? 0 : pf_inode_is_dir(inode) ? -EISDIR : -ENODEV;
		if (!err)
			err = pf_orphan_settle(pool, inode);
		if (!err)
			err = pf_xattr_drop_capability(pool, inode);
		if (!err)
			err = fallocate_locked(pool, inode, mode, off_bytes, len_bytes, flags);
		if (!err && kind)
			pf_failed_clear(pool, inode, off_bytes, off_bytes + len_bytes);
		pthread_rwlock_unlock(&inode->lock);
	} while (pf_stage_gives_way(pool, err, &tried));
	pf_inode_put(pool, inode);
	return err;
}

static uint64_t behind_punched(const struct pf_pool *pool, const struct pf_inode *inode, uint64_t block)
{
	uint64_t from, to;
	for (unsigned i = 0; i <= pool->nr_pending; i++) {
		pf_orphan_pending(pool, inode, i, &from, &to);
		if (block >= from && block < to)
			block = to;
	}
	return block;
}

static uint64_t before_punched(const struct pf_pool *pool, const struct pf_inode *inode, uint64_t block, uint64_t end)
{
	uint64_t from, to;
	for (unsigned i = 0; i <= pool->nr_pending; i++) {
		pf_orphan_pending(pool, inode, i, &from, &to);
		if (from < to && from > block && from < end)
			end = from;
	}
	return end;
}

/* As pf_extent_find(), from @block on, without what is still mapped in a range that has been punched out. */
static int find_extent(struct pf_pool *pool, const struct pf_inode *inode, uint64_t block, struct pf_extent *e)
{
	for (;;) {
		int err = pf_extent_find(pool, inode->item.data_id, block, e);
		if (err)
			return err;
		uint64_t end = e->start + e->nr, start = e->start > block ? e->start : block, seen = behind_punched(pool, inode, start);
		if (seen == start) {
			e->start = start;
			e->nr = (unsigned)(before_punched(pool, inode, start, end) - start);
			return 0;
		}
		block = seen;
	}
}

/* The first block >= @block that is data and not in the tree: staged, or lost. False: none. */
static bool next_in_memory(const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	uint64_t failed;
	bool staged = pf_stage_next(inode, block, found);
	if (!pf_failed_next(inode, block, &failed))
		return staged;
	if (!staged || failed < *found)
		*found = failed;
	return true;
}

static int seek_data(struct pf_pool *pool, const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	struct pf_extent e;
	uint64_t staged;
	bool is_staged = next_in_memory(inode, block, &staged);
	int err;
	while (!(err = find_extent(pool, inode, block, &e)) && e.flags & PF_EXTENT_UNWRITTEN)
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
	uint64_t staged;
	int err = 0;
	for (;;) {
		if (next_in_memory(inode, block, &staged) && staged == block) {
			block++;
			continue;
		}
		err = find_extent(pool, inode, block, &e);
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
	size = pf_failed_size(inode);
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
