/* SPDX-License-Identifier: MIT */
#include "object/orphan.h"

#include "object/data.h"
#include "object/fill.h"
#include "object/path.h"

#include <stdlib.h>

#define OWING_BATCH 64

/* Everything of an inode but its item itself: symlink and xattr chunks, a batch at a time. 1: there was something. */
static int delete_chunks(struct pf_pool *pool, uint64_t ino)
{
	struct pf_key keys[32];
	unsigned nr = 0;
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err) {
		struct pf_key key = pf_key_make(PF_CLASS_INODE, ino, PF_TYPE_SYMLINK, 0);
		struct pf_item item;
		nr = 0;
		while (nr < 32 && !(err = pf_view_next(&v, key, &item)) && item.key.hi == key.hi) {
			keys[nr++] = item.key;
			key = item.key;
			key.lo++;
		}
		if (err == -ENOENT)
			err = 0;
	}
	if (err || !nr)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, keys[0], keys[nr - 1], 0);
	err = pf_txn_lock(&txn);
	for (unsigned i = 0; !err && i < nr; i++)
		pf_txn_del(&txn, keys[i]);
	pf_txn_end(&txn);
	return err ? err : 1;
}

/* The inode item, its orphan item, and its extents: directly when they are few, else by the reaper. */
static int delete_inode(struct pf_pool *pool, struct pf_inode *inode)
{
	uint64_t from = 0, to = 0, data_id = inode->item.data_id;
	unsigned nr_items = 0;
	int err = 0;
	if (data_id && inode->item.blocks)
		err = pf_extent_batch(pool, data_id, 0, PF_KEY_FIELD_MAX, PF_REAP_ITEMS, &from, &to, &nr_items);
	if (err)
		return err;
	bool later = nr_items == PF_REAP_ITEMS, now = nr_items && !later;
	uint64_t seq = 0;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, pf_key_inode(inode->ino), pf_key_inode(inode->ino), 0);
	pf_txn_want(&txn, pf_key_orphan_inode(inode->ino), pf_key_orphan_inode(inode->ino), 0);
	if (now)
		pf_extent_want(&txn, data_id, from, to, 0, 0);
	if (later) {
		seq = pf_pool_new_id(pool);
		pf_txn_want(&txn, pf_key_orphan_range(seq), pf_key_orphan_range(seq),
			    PF_TXN_ITEM(sizeof(struct pf_disk_orphan_range)));
	}
	err = pf_txn_lock(&txn);
	if (!err && now)
		err = pf_extent_check(&txn, pool, data_id, from, to);
	if (!err) {
		pf_txn_del(&txn, pf_key_inode(inode->ino));
		pf_txn_del(&txn, pf_key_orphan_inode(inode->ino));
		pool->counters.nr_inodes--;
		if (now) {
			uint64_t removed = pf_extent_remove(&txn, pool, data_id, from, to, false);
			pool->counters.data_blocks -= removed;
			pool->counters.orphan_blocks -= removed;
		}
		if (later) {
			struct pf_disk_orphan_range disk;
			struct pf_orphan_range range = { .data_id = data_id, .to_block = PF_KEY_FIELD_MAX };
			pf_orphan_range_pack(&range, &disk);
			pf_txn_put(&txn, pf_key_orphan_range(seq), &disk, sizeof(disk));
			atomic_store(&pool->reap_wanted, true);
		}
	}
	pf_txn_end(&txn);
	return err;
}

int pf_orphan_delete(struct pf_pool *pool, struct pf_inode *inode)
{
	int err = pf_slow_down(pool);
	bool chunks = pf_inode_is_symlink(inode) || inode->item.flags & PF_INODE_HAS_XATTR;
	while (!err && chunks) {
		err = delete_chunks(pool, inode->ino);
		chunks = err > 0;
		if (chunks)
			err = pf_slow_down(pool);
	}
	return err ? err : delete_inode(pool, inode);
}

static int remove_range(struct pf_pool *pool, struct pf_inode *inode, uint64_t seq, uint64_t from, uint64_t to)
{
	bool more = true;
	int err = 0;
	while (!err && more) {
		struct pf_change change;
		unsigned nr;
		err = pf_slow_down(pool);
		if (err)
			break;
		pf_change_init(&change, inode);
		err = pf_extent_batch(pool, inode->item.data_id, from, to, PF_REAP_ITEMS, &change.remove_from,
				      &change.remove_to, &nr);
		more = nr == PF_REAP_ITEMS;
		if (!nr)
			change.remove_from = change.remove_to;
		if (!more)
			change.finished_seq = seq;
		if (!err)
			err = pf_data_apply(pool, inode, &change);
	}
	return err;
}

/* -- what is owed ------------------------------------------------------------------------------------------------------- */

static void owe(struct pf_pool *pool, struct pf_inode *inode, int err)
{
	char path[512];
	if (pf_inode_is_marked(inode, PF_MARK_OWES))
		return;
	pf_inode_mark(pool, inode, PF_MARK_OWES, true);
	pf_path_of(pool, inode, path, sizeof(path));
	pf_log(pool->env, PF_LOG_WARNING, "%s: the blocks of a range that was truncated, punched out or zeroed could not all be "
	       "changed: %s; it reads as it should, and the rest is done with the next change, fsync or unmount", path,
	       pf_strerror(err));
}

int pf_orphan_finish_range(struct pf_pool *pool, struct pf_inode *inode, uint64_t seq, uint64_t from, uint64_t to)
{
	int err = remove_range(pool, inode, seq, from, to);
	if (err && !inode->unfinished.seq) {
		inode->unfinished.seq = seq;
		inode->unfinished.from = from;
		inode->unfinished.to = to;
		owe(pool, inode, err);
	}
	return err;
}

void pf_orphan_owe_fill(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t promised, int err)
{
	if (!promised)
		return;
	inode->unfinished.fill_from = from;
	inode->unfinished.fill_to = to;
	inode->unfinished.promised = promised;
	owe(pool, inode, err);
}

int pf_orphan_settle(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!pf_inode_is_marked(inode, PF_MARK_OWES))
		return 0;
	int err = pf_pool_writable(pool);
	if (!err && inode->unfinished.seq)
		err = remove_range(pool, inode, inode->unfinished.seq, inode->unfinished.from, inode->unfinished.to);
	if (err)
		return err;
	inode->unfinished.seq = 0;
	if (inode->unfinished.promised)
		err = pf_fill_holes(pool, inode, inode->unfinished.fill_from, inode->unfinished.fill_to,
				    &inode->unfinished.promised);
	if (err)
		return err;
	pf_inode_mark(pool, inode, PF_MARK_OWES, false);
	return 0;
}

void pf_orphan_settle_abandoned(struct pf_pool *pool, struct pf_inode *inode)
{
	pf_space_unreserve(pool->space, inode->unfinished.promised);
	inode->unfinished.promised = 0;
	pf_orphan_settle(pool, inode); /* else it is for the next mount */
}

int pf_orphan_settle_for_sync(struct pf_pool *pool, struct pf_inode *inode)
{
	int err = pf_orphan_settle(pool, inode);
	return inode->unfinished.promised ? err : 0;
}

int pf_orphan_settle_all(struct pf_pool *pool)
{
	struct pf_inode *inodes[OWING_BATCH];
	unsigned nr, nr_settled;
	int first_err = 0;
	do {
		nr = pf_icache_marked(pool, PF_MARK_OWES, inodes, OWING_BATCH);
		nr_settled = 0;
		for (unsigned i = 0; i < nr; i++) {
			pf_inode_lock(pool, inodes[i]);
			int err = pf_orphan_settle_for_sync(pool, inodes[i]);
			nr_settled += !pf_inode_is_marked(inodes[i], PF_MARK_OWES);
			pthread_rwlock_unlock(&inodes[i]->lock);
			pf_inode_put(pool, inodes[i]);
			if (!first_err)
				first_err = err;
		}
	} while (nr == OWING_BATCH && nr_settled);
	return first_err;
}

/* -- the reaper --------------------------------------------------------------------------------------------------------- */

/* The first orphan range from @seq on. -ENOENT. */
static int next_range(struct pf_pool *pool, uint64_t *seq, struct pf_orphan_range *range)
{
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err) {
		struct pf_item item;
		err = pf_view_next(&v, pf_key_orphan_range(*seq), &item);
		if (err)
			continue;
		if (item.key.hi != pf_key_orphan_range(0).hi || pf_key_type(item.key) != PF_TYPE_ORPHAN_RANGE) {
			err = -ENOENT;
			continue;
		}
		*seq = pf_key_offset(item.key);
		err = pf_orphan_range_unpack(item.data, item.len, range);
	}
	return err;
}

static int reap_batch(struct pf_pool *pool, uint64_t seq, const struct pf_orphan_range *range)
{
	uint64_t from, to;
	unsigned nr;
	int err = pf_extent_batch(pool, range->data_id, range->from_block, range->to_block, PF_REAP_ITEMS, &from, &to, &nr);
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, pf_key_orphan_range(seq), pf_key_orphan_range(seq), 0);
	if (nr)
		pf_extent_want(&txn, range->data_id, from, to, 0, 0);
	err = pf_txn_lock(&txn);
	if (!err && nr)
		err = pf_extent_check(&txn, pool, range->data_id, from, to);
	if (!err) {
		uint64_t removed = nr ? pf_extent_remove(&txn, pool, range->data_id, from, to, false) : 0;
		pool->counters.data_blocks -= removed;
		pool->counters.orphan_blocks -= removed;
		if (nr < PF_REAP_ITEMS)
			pf_txn_del(&txn, pf_key_orphan_range(seq));
	}
	pf_txn_end(&txn);
	return err ? err : 1;
}

int pf_orphan_reap(struct pf_pool *pool)
{
	if (!atomic_load(&pool->reap_wanted) || pf_pool_writable(pool))
		return 0;
	int err = pf_slow_down(pool);
	if (err)
		return err;
	pthread_mutex_lock(&pool->reap_lock);
	atomic_store(&pool->reap_wanted, false);
	struct pf_orphan_range range;
	uint64_t seq = 0;
	while (!(err = next_range(pool, &seq, &range)) && range.ino)
		seq++;
	if (!err) {
		err = reap_batch(pool, seq, &range);
		/* after an error the range waits for fsck or the next mount: trying it for ever would not mend it */
		if (err > 0)
			atomic_store(&pool->reap_wanted, true);
	} else if (err == -ENOENT) {
		err = 0;
	}
	pthread_mutex_unlock(&pool->reap_lock);
	return err;
}

static int recover_range(struct pf_pool *pool, uint64_t seq, const struct pf_orphan_range *range)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, range->ino, &inode);
	if (err)
		return err;
	pf_inode_lock(pool, inode);
	if (inode->item.data_id == range->data_id)
		err = pf_orphan_finish_range(pool, inode, seq, range->from_block, range->to_block);
	else
		err = -PF_EITEM_INVALID;
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

int pf_orphan_recover_ranges(struct pf_pool *pool)
{
	struct pf_orphan_range range;
	uint64_t seq = 0;
	int err;
	for (; !(err = next_range(pool, &seq, &range)); seq++) {
		if (!range.ino) {
			atomic_store(&pool->reap_wanted, true);
			continue;
		}
		err = recover_range(pool, seq, &range);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}

static int next_orphan_inode(struct pf_pool *pool, uint64_t *ino)
{
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err) {
		struct pf_item item;
		err = pf_view_next(&v, pf_key_orphan_inode(*ino), &item);
		if (err)
			continue;
		if (item.key.hi != pf_key_orphan_inode(0).hi || pf_key_type(item.key) != PF_TYPE_ORPHAN_INODE)
			err = -ENOENT;
		else
			*ino = pf_key_offset(item.key);
	}
	return err;
}

int pf_orphan_recover(struct pf_pool *pool)
{
	uint64_t ino = 0;
	int err = pf_orphan_recover_ranges(pool);
	while (!err && !(err = next_orphan_inode(pool, &ino))) {
		struct pf_inode *inode;
		err = pf_inode_get(pool, ino, &inode);
		if (err)
			return err;
		/* the last pin of an inode without links deletes it */
		pf_inode_put(pool, inode);
		ino++;
	}
	return err == -ENOENT ? 0 : err;
}

int pf_orphan_load_pending(struct pf_pool *pool)
{
	struct pf_orphan_range range;
	uint64_t seq = 0;
	int err;
	for (; !(err = next_range(pool, &seq, &range)); seq++) {
		if (!range.ino)
			continue;
		struct pf_orphan_range *more = realloc(pool->pending, (pool->nr_pending + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		pool->pending = more;
		more[pool->nr_pending++] = range;
	}
	return err == -ENOENT ? 0 : err;
}

static void mask_range(uint64_t from, uint64_t to, uint64_t start, unsigned nr, uint64_t *mask)
{
	for (unsigned b = 0; b < nr; b++) {
		if (start + b >= from && start + b < to)
			mask[b / 64] |= UINT64_C(1) << (b % 64);
	}
}

void pf_orphan_pending(const struct pf_pool *pool, const struct pf_inode *inode, unsigned i, uint64_t *from, uint64_t *to)
{
	*from = *to = 0;
	if (i < pool->nr_pending && pool->pending[i].data_id == inode->item.data_id) {
		*from = pool->pending[i].from_block;
		*to = pool->pending[i].to_block;
	} else if (i == pool->nr_pending && inode->unfinished.seq) {
		*from = inode->unfinished.from;
		*to = inode->unfinished.to;
	}
}

void pf_orphan_mask_pending(const struct pf_pool *pool, const struct pf_inode *inode, uint64_t start, unsigned nr,
			    uint64_t *mask)
{
	uint64_t from, to;
	for (unsigned i = 0; i <= pool->nr_pending; i++) {
		pf_orphan_pending(pool, inode, i, &from, &to);
		mask_range(from, to, start, nr, mask);
	}
}
