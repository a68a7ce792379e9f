/* SPDX-License-Identifier: MIT */
#include "object/data.h"

#include "object/intent.h"
#include "object/orphan.h"
#include "object/path.h"
#include "object/stage.h"

#include <string.h>

#define AWAIT_TRIES 256 /* each a release of something: enough for a group's worth of small pieces */

#define IDS_UNDER_WAY 4096 /* what operations that have passed store_ids() may still take */

/* PF_ID_JUMP. */
static int store_ids(struct pf_pool *pool)
{
	uint64_t given = atomic_load(&pool->next_id) - atomic_load(&pool->stored_id);
	if (given < PF_ID_JUMP / 2 || pool->replaying)
		return 0;
	if (given >= PF_ID_JUMP - IDS_UNDER_WAY)
		return pool->checkpoint(pool);
	pool->request(pool);
	return 0;
}

int pf_op_begin(struct pf_pool *pool, enum pf_growth growth)
{
	int err = pf_pool_writable(pool);
	if (!err)
		err = store_ids(pool);
	if (!err)
		err = pf_slow_down(pool);
	if (!err && growth != PF_SHRINKS)
		err = pf_stage_balance(pool);
	if (!err && pool->log) {
		pf_log_write_behind(pool->log);
		if (pf_log_wants_checkpoint(pool->log))
			pool->request(pool);
	}
	return err ? err : pf_node_gate(pool, growth);
}

void pf_change_init(struct pf_change *change, const struct pf_inode *inode)
{
	*change = (struct pf_change){ .item = inode->item, .tree_size = inode->tree_size };
}

static void want_all(struct pf_txn *txn, const struct pf_inode *inode, const struct pf_change *c)
{
	pf_inode_want(txn, inode->ino);
	if (c->write)
		pf_block_want(txn, c->write);
	if (c->remove_from != c->remove_to)
		pf_extent_want(txn, inode->item.data_id, c->remove_from, c->remove_to, 0, 0);
	if (c->orphan_seq)
		pf_txn_want(txn, pf_key_orphan_range(c->orphan_seq), pf_key_orphan_range(c->orphan_seq),
			    PF_TXN_ITEM(sizeof(struct pf_disk_orphan_range)));
	if (c->finished_seq)
		pf_txn_want(txn, pf_key_orphan_range(c->finished_seq), pf_key_orphan_range(c->finished_seq), 0);
}

static int check_all(struct pf_txn *txn, struct pf_pool *pool, const struct pf_inode *inode, const struct pf_change *c)
{
	int err = 0;
	if (c->remove_from != c->remove_to)
		err = pf_extent_check(txn, pool, inode->item.data_id, c->remove_from, c->remove_to);
	if (!err && c->write)
		err = pf_block_check(txn, pool, c->write);
	return err;
}

/* What the log must hear of the change, at once or with the next fsync. Before the inode becomes what it will be. */
static void tell_log(struct pf_pool *pool, struct pf_inode *inode, const struct pf_change *c)
{
	bool swapped = c->item.data_id != inode->item.data_id && !pf_breaks(pool->env, PF_BREAK_LOG_FORGETS_DATA_ID);
	bool data = swapped || c->write || c->remove_from != c->remove_to || c->orphan_seq || c->drops_stage ||
		    c->tree_size != inode->tree_size;
	if (!pool->log)
		return;
	pf_intent_setattr(pool, inode->ino, &inode->item, &c->item, data);
	if (!data)
		return;
	pf_dirty_note(pool, &inode->dirty, 0, swapped ? PF_KEY_FIELD_MAX : 0);
	pf_dirty_note(pool, &inode->dirty, c->remove_from, c->remove_to);
	if (c->orphan_seq && c->orphan.ino)
		pf_dirty_note(pool, &inode->dirty, c->orphan.from_block, c->orphan.to_block);
	uint32_t written = 0;
	for (unsigned i = 0; c->write && i < c->write->nr_pieces; i++) {
		const struct pf_piece *p = &c->write->pieces[i];
		pf_dirty_note(pool, &inode->dirty, p->start, p->start + p->nr);
		if (!(p->flags & PF_EXTENT_UNWRITTEN))
			written |= UINT32_C(1) << pf_addr_member(p->addr);
	}
	if (written && !c->durable)
		pf_dirty_note_data(pool, &inode->dirty, written);
}

static void change_all(struct pf_txn *txn, struct pf_pool *pool, struct pf_inode *inode, struct pf_change *c)
{
	int64_t blocks = 0;
	uint64_t old_data_id = inode->item.data_id;
	tell_log(pool, inode, c);
	if (c->remove_from != c->remove_to)
		blocks -= (int64_t)pf_extent_remove(txn, pool, old_data_id, c->remove_from, c->remove_to, false);
	if (c->write)
		blocks += pf_block_map(txn, pool, c->write);
	if (c->orphan_seq) {
		struct pf_disk_orphan_range disk;
		pf_orphan_range_pack(&c->orphan, &disk);
		pf_txn_put(txn, pf_key_orphan_range(c->orphan_seq), &disk, sizeof(disk));
	}
	if (c->finished_seq)
		pf_txn_del(txn, pf_key_orphan_range(c->finished_seq));
	pool->counters.data_blocks += (uint64_t)blocks;
	if (!inode->item.nlink)
		pool->counters.orphan_blocks += (uint64_t)blocks;
	if (c->item.data_id != old_data_id) {
		/* all of the old data is the reaper's now */
		if (inode->item.nlink)
			pool->counters.orphan_blocks += inode->item.blocks;
		c->item.blocks = 0;
	} else {
		c->item.blocks = inode->item.blocks + (uint64_t)blocks;
	}
	inode->item = c->item;
	inode->tree_size = c->tree_size;
	pf_inode_store_with(txn, inode, c->sealed);
}

int pf_data_apply(struct pf_pool *pool, struct pf_inode *inode, struct pf_change *change)
{
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	want_all(&txn, inode, change);
	int err = pf_txn_lock(&txn);
	if (!err) {
		err = check_all(&txn, pool, inode, change);
		if (!err)
			change_all(&txn, pool, inode, change);
	}
	pf_txn_end(&txn);
	if (!err && change->orphan_seq && !change->orphan.ino)
		atomic_store(&pool->reap_wanted, true);
	return err;
}

/* Every block of the range is mapped. */
static int is_mapped(struct pf_pool *pool, uint64_t data_id, uint64_t start, uint64_t nr, bool *mapped)
{
	uint64_t pos = start;
	*mapped = false;
	while (pos < start + nr) {
		struct pf_extent e;
		int err = pf_extent_find(pool, data_id, pos, &e);
		if (err == -ENOENT || (!err && e.start > pos))
			return 0;
		if (err)
			return err;
		pos = e.start + e.nr;
	}
	*mapped = true;
	return 0;
}

static int promise_fresh(struct pf_pool *pool, uint64_t nr)
{
	if (pf_space_wants_commit(pool->space))
		pool->request(pool);
	int err = pf_node_gate(pool, PF_GROWS);
	return err ? err : pf_space_reserve(pool->space, PF_USE_DATA, nr);
}

int pf_data_promise_now(struct pf_pool *pool, uint64_t nr)
{
	bool open = pf_node_gate_is_open(pool, PF_GROWS);
	return open && pf_space_reserve(pool->space, PF_USE_DATA, nr) == 0 ? 0 : -EAGAIN;
}

int pf_data_promise(struct pf_pool *pool, struct pf_inode *inode, uint64_t start, uint64_t nr_range, uint64_t nr)
{
	int err = promise_fresh(pool, nr);
	if (err != -ENOSPC)
		return err;
	err = pool->make_room(pool);
	/* what the checkpoint freed comes back in pieces: when readers have ended, when a discard or a trim is done with them */
	uint64_t released;
	unsigned tries = 0;
	do {
		released = pf_space_released(pool->space);
		if (!err || err == -ENOSPC)
			err = promise_fresh(pool, nr);
	} while (err == -ENOSPC && tries++ < AWAIT_TRIES && pf_space_await_release(pool->space, released));
	if (err != -ENOSPC)
		return err;
	bool mapped;
	int look = is_mapped(pool, inode->item.data_id, start, nr_range, &mapped);
	if (look || !mapped)
		return look ? look : err;
	err = pf_node_gate(pool, PF_OVERWRITES);
	return err ? err : pf_space_reserve(pool->space, PF_USE_DATA_PRIVILEGED, nr);
}

int pf_data_read_block(struct pf_pool *pool, struct pf_inode *inode, uint64_t block, uint8_t *page)
{
	const uint8_t *staged = pf_stage_look(inode, block);
	if (staged) {
		memcpy(page, staged, PF_BLOCK_SIZE);
		return 0;
	}
	if (block * PF_BLOCK_SIZE >= inode->item.size) {
		memset(page, 0, PF_BLOCK_SIZE);
		return 0;
	}
	struct pf_bad_block bad;
	int err = pf_block_read(pool, inode->item.data_id, block, 1, page, &bad);
	if (err)
		pf_data_report(pool, inode, &bad);
	return err;
}

void pf_data_report(struct pf_pool *pool, const struct pf_inode *inode, const struct pf_bad_block *bad)
{
	char path[512];
	pf_path_of(pool, inode, path, sizeof(path));
	if (!bad->addr) {
		pf_log(pool->env, PF_LOG_ERROR, "%s: block %llu cannot be looked up: %s; run fsck.poolfs", path,
		       (unsigned long long)bad->file_block, pf_strerror(bad->err));
		return;
	}
	unsigned m = pf_addr_member(bad->addr);
	if (bad->err == -EIO)
		pf_set_suspect(pool->set, m);
	if (bad->err == -PF_EDATA_CSUM && m < pool->set->nr)
		pf_io_account_error(pool->set->members[m].io);
	pf_log(pool->env, PF_LOG_ERROR, "%s: block %llu cannot be read (%s, offset %llu): %s; restore the file from a backup",
	       path, (unsigned long long)bad->file_block, m < pool->set->nr ? pool->set->members[m].io->name : "?",
	       (unsigned long long)(pf_addr_block(bad->addr) * PF_BLOCK_SIZE), pf_strerror(bad->err));
}
