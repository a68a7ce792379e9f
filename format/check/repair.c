/* SPDX-License-Identifier: MIT */
#include "check/repair.h"

#include "block/pressure.h"
#include "check/checker.h"
#include "check/copies.h"
#include "commit/checkpoint.h"
#include "commit/replay.h"
#include "object/orphan.h"
#include "ondisk/item.h"

#include <stdlib.h>
#include <string.h>

int pf_repair_note(struct pf_repairs *repairs, const struct pf_fix *fix)
{
	if (pf_grow(&repairs->fixes, repairs->nr, &repairs->cap, sizeof(repairs->fixes[0])))
		return -ENOMEM;
	repairs->fixes[repairs->nr++] = *fix;
	return 0;
}

void pf_repair_clear(struct pf_repairs *repairs)
{
	free(repairs->fixes);
	memset(repairs, 0, sizeof(*repairs));
}

bool pf_repair_needs_pool(const struct pf_repairs *repairs)
{
	if (repairs->rebuild)
		return true;
	for (size_t i = 0; i < repairs->nr; i++) {
		if (repairs->fixes[i].kind != PF_FIX_SUPER)
			return true;
	}
	return false;
}

/* -- superblocks --------------------------------------------------------------------------------------------------- */
/* The slot of the current generation gets the superblock; any other is emptied: what it held is history. A good copy
 * is never written over. */
static int fix_super(struct pf_checker *c, const struct pf_fix *fix, void *block)
{
	unsigned member = (unsigned)fix->a, slot = (unsigned)fix->c;
	struct pf_io *io = c->set->members[member].io;
	uint64_t at = pf_geometry_super_block(&c->set->members[member].geo, (unsigned)fix->b, slot);
	if (slot == c->super->generation % PF_SUPER_SLOTS)
		pf_super_pack(c->super, member, block);
	else
		memset(block, 0, PF_BLOCK_SIZE);
	int err = pf_io_write(io, at << PF_BLOCK_SHIFT, block, PF_BLOCK_SIZE);
	return err ? err : pf_io_flush(io);
}

int pf_repair_supers(struct pf_checker *c)
{
	void *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	int err = block ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < c->repairs.nr; i++) {
		if (c->repairs.fixes[i].kind == PF_FIX_SUPER)
			err = fix_super(c, &c->repairs.fixes[i], block);
	}
	free(block);
	return err;
}

/* -- maps ---------------------------------------------------------------------------------------------------------- */
static int fix_map(struct pf_checker *c, struct pf_pool *pool, unsigned member, uint64_t group)
{
	uint8_t used[PF_GROUP_BLOCKS / 8];
	if (!pf_check_group_map(c, member, group, used))
		return -EIO;
	return pf_space_replace_map(pool->space, member, group, used);
}

static int fix_maps(struct pf_checker *c, struct pf_pool *pool)
{
	int err = 0;
	for (size_t i = 0; !err && i < c->repairs.nr && !c->repairs.rebuild; i++) {
		const struct pf_fix *fix = &c->repairs.fixes[i];
		if (fix->kind == PF_FIX_MAP)
			err = fix_map(c, pool, (unsigned)fix->a, fix->b);
	}
	for (unsigned m = 0; !err && m < c->set->nr && c->repairs.rebuild; m++) {
		for (uint64_t g = 0; !err && g < c->set->members[m].geo.nr_groups; g++)
			err = fix_map(c, pool, m, g);
	}
	/* before anything is allocated: what a log names that has still to be redone */
	return !err && pool->log_pending ? pf_replay_pin(pool) : err;
}

/* -- items --------------------------------------------------------------------------------------------------------- */
static int delete_item(struct pf_pool *pool, struct pf_key key)
{
	if (pf_key_class(key) == PF_CLASS_DIR && pf_key_type(key) == PF_TYPE_NAME)
		return pf_repair_delete_bad_name(pool, key);
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, key, key, 0);
	int err = pf_txn_lock(&txn);
	if (!err)
		pf_txn_del(&txn, key);
	pf_txn_end(&txn);
	return err;
}

static int put_item(struct pf_pool *pool, struct pf_key key, const void *data, unsigned len, uint64_t orphan_blocks)
{
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, key, key, PF_TXN_ITEM(len));
	int err = pf_txn_lock(&txn);
	if (!err) {
		pf_txn_put(&txn, key, data, len);
		pool->counters.orphan_blocks += orphan_blocks;
	}
	pf_txn_end(&txn);
	return err;
}

static int fix_inode(struct pf_pool *pool, const struct pf_fix *fix)
{
	struct pf_disk_inode disk;
	struct pf_inode_item item;
	int len = pf_tree_get(pool->tree, pf_key_inode(fix->a), &disk, sizeof(disk));
	int err = len < 0 ? len : pf_inode_item_unpack(&disk, (unsigned)len, &item);
	if (err)
		return err;
	switch ((enum pf_inode_field)fix->b) {
	case PF_FIELD_NLINK:
		item.nlink = (uint32_t)fix->c;
		break;
	case PF_FIELD_SIZE:
		item.size = fix->c;
		break;
	case PF_FIELD_BLOCKS:
		item.blocks = fix->c;
		break;
	case PF_FIELD_PARENT:
		item.parent = fix->c;
		break;
	case PF_FIELD_COOKIE:
		item.next_cookie = fix->c;
		break;
	case PF_FIELD_FLAGS:
		item.flags = (uint32_t)fix->c;
		break;
	}
	pf_inode_item_pack(&item, &disk);
	return put_item(pool, pf_key_inode(fix->a), &disk, sizeof(disk), 0);
}

static int add_range(struct pf_pool *pool, const struct pf_fix *fix)
{
	struct pf_orphan_range range = { .data_id = fix->a, .ino = fix->b, .from_block = fix->c, .to_block = fix->d };
	struct pf_disk_orphan_range disk;
	pf_orphan_range_pack(&range, &disk);
	return put_item(pool, pf_key_orphan_range(pf_pool_new_id(pool)), &disk, sizeof(disk), fix->nr_blocks);
}

static int fix_counters(struct pf_checker *c, struct pf_pool *pool)
{
	const struct pf_counters *should = &c->seen_counters;
	pf_tree_lock(pool->tree);
	pool->counters.nr_inodes = should->nr_inodes;
	pool->counters.data_blocks = should->data_blocks;
	pool->counters.no_csum_blocks = should->no_csum_blocks;
	pool->counters.orphan_blocks = should->orphan_blocks;
	pf_space_set_node_blocks(pool->space, should->node_blocks);
	if (atomic_load(&pool->next_id) < should->next_id)
		atomic_store(&pool->next_id, should->next_id);
	pf_tree_unlock(pool->tree);
	return 0;
}

static int fix_one(struct pf_checker *c, struct pf_pool *pool, const struct pf_fix *fix)
{
	switch (fix->kind) {
	case PF_FIX_SUPER:
	case PF_FIX_MAP:
		return 0; /* done before */
	case PF_FIX_DELETE:
		return delete_item(pool, fix->key);
	case PF_FIX_INODE:
		return fix_inode(pool, fix);
	case PF_FIX_ADD_HASH:
		return pf_repair_add_hash(pool, fix->a, fix->b);
	case PF_FIX_NAME_TYPE:
		return pf_repair_name_type(pool, fix->a, fix->b, (unsigned)fix->c);
	case PF_FIX_DELETE_NAME:
		return pf_repair_delete_name(pool, fix->a, fix->b);
	case PF_FIX_ADD_ORPHAN:
		return put_item(pool, pf_key_orphan_inode(fix->a), "", 0, fix->nr_blocks);
	case PF_FIX_ADD_RANGE:
		return add_range(pool, fix);
	case PF_FIX_RECONNECT:
		return pf_repair_reconnect(pool, fix->a);
	case PF_FIX_NODE:
		return pf_tree_rewrite(pool->tree, fix->key, (unsigned)fix->a);
	case PF_FIX_COUNTERS:
		return fix_counters(c, pool);
	}
	return 0;
}

/* Errors that every further repair would meet too. */
static bool is_fatal(int err)
{
	return err == -ENOMEM || err == -EROFS;
}

static int fix_items(struct pf_checker *c, struct pf_pool *pool)
{
	int err;
	for (size_t i = 0; i < c->repairs.nr; i++) {
		err = fix_one(c, pool, &c->repairs.fixes[i]);
		if (is_fatal(err))
			return err;
		err = pf_slow_down(pool);
		if (err)
			return err;
	}
	return 0;
}

/* With the maps that the next checkpoint writes, these are members like the others. */
static void take_back(struct pf_checker *c, struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->super_lock);
	for (unsigned m = 0; m < pool->super.nr_members; m++) {
		if (c->repairs.take_back >> m & 1)
			pool->super.members[m].state = PF_MEMBER_ACTIVE;
	}
	pthread_mutex_unlock(&pool->super_lock);
}

/* Nodes that were written without it have one copy. Where there is no room for another that is no reason not to take it back. */
static int complete_copies(struct pf_pool *pool)
{
	if (pf_super_node_copies(&pool->super) == 1)
		return 0;
	int err = pf_commit_wait(pool, true);
	if (!err)
		err = pf_copies_complete(pool);
	if (err == -ENOSPC)
		pf_log(pool->env, PF_LOG_WARNING, "not all tree nodes could get their second copy for lack of room; make room, and run "
		       "'poolfs upgrade'");
	return err == -ENOSPC ? 0 : err;
}

int pf_repair_pool(struct pf_checker *c, struct pf_pool *pool)
{
	int err = fix_maps(c, pool);
	if (!err && c->repairs.take_back)
		take_back(c, pool);
	if (!err && !c->repairs.maps_refused)
		err = fix_items(c, pool);
	if (!err && c->repairs.take_back)
		err = complete_copies(pool);
	/* maps and counters make no node dirty: the checkpoint has to be asked for */
	return err ? err : pf_commit_wait(pool, true);
}
