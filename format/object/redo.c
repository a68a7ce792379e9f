/* SPDX-License-Identifier: MIT */
#include "object/redo.h"

#include "base/csum.h"
#include "block/extent.h"
#include "object/data.h"
#include "object/orphan.h"

#include <string.h>

/* -- numbers ------------------------------------------------------------------------------------------------------------ */

static void use_id(struct pf_pool *pool, uint64_t id)
{
	if (id >= atomic_load(&pool->next_id))
		atomic_store(&pool->next_id, id + 1);
}

/* -- file records ------------------------------------------------------------------------------------------------------- */

static int new_data_id(struct pf_pool *pool, struct pf_inode *inode, uint64_t data_id)
{
	struct pf_change change;
	pf_change_init(&change, inode);
	change.item.data_id = data_id;
	change.item.size = change.tree_size = 0;
	if (inode->item.blocks) {
		change.orphan_seq = pf_pool_new_id(pool);
		change.orphan = (struct pf_orphan_range){ inode->item.data_id, 0, 0, PF_KEY_FIELD_MAX };
	}
	return pf_data_apply(pool, inode, &change);
}

/* No checkpoint sees the steps in between. */
static int unmap(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to)
{
	unsigned nr = PF_REAP_ITEMS;
	int err = 0;
	while (!err && nr == PF_REAP_ITEMS) {
		struct pf_change change;
		pf_change_init(&change, inode);
		err = pf_extent_batch(pool, inode->item.data_id, from, to, PF_REAP_ITEMS, &change.remove_from,
				      &change.remove_to, &nr);
		if (!err && nr)
			err = pf_data_apply(pool, inode, &change);
	}
	return err;
}

/* Blocks [pos, pos + nr) of the range become what the record says. @in_place: an unwritten extent has them already. */
static int map_piece(struct pf_pool *pool, struct pf_inode *inode, const struct pf_record_range *range, unsigned pos,
		     unsigned nr, bool in_place)
{
	uint64_t crc[PF_MAP_BLOCKS];
	struct pf_piece piece = {
		.start = range->start + pos,
		.nr = nr,
		.flags = range->kind == PF_RANGE_UNWRITTEN ? PF_EXTENT_UNWRITTEN : 0,
		.addr = range->addr + pos,
		.in_place = in_place,
	};
	for (unsigned i = 0; range->crc && i < nr; i++)
		crc[i] = pf_get64(range->crc[pos + i]);
	piece.crc = range->crc ? crc : NULL;
	struct pf_run run = { piece.addr, nr };
	if (!in_place && !pf_breaks(pool->env, PF_BREAK_REPLAY_UNCLAIMED)) {
		int err = pf_space_claim(pool->space, run);
		if (err)
			return err == -EEXIST ? -PF_ELOG_INVALID : err;
	}
	struct pf_write w = { .data_id = inode->item.data_id, .pieces = &piece, .nr_pieces = 1 };
	struct pf_change change;
	pf_change_init(&change, inode);
	change.write = &w;
	int err = pf_data_apply(pool, inode, &change);
	if (err && !in_place)
		pf_space_unalloc(pool->space, run);
	return err;
}

/* What of a stretch that the tree has today must change. */
static int map_stretch(struct pf_pool *pool, struct pf_inode *inode, const struct pf_record_range *range, unsigned pos,
		       const struct pf_seg *seg)
{
	bool hole = seg->flags & PF_SEG_HOLE, unwritten = seg->flags & PF_EXTENT_UNWRITTEN;
	bool same_place = !hole && seg->addr[0] == range->addr + pos;
	if (same_place && unwritten == (range->kind == PF_RANGE_UNWRITTEN))
		return 0; /* rule 12 */
	return map_piece(pool, inode, range, pos, seg->nr, same_place && unwritten);
}

static int map_range(struct pf_pool *pool, struct pf_inode *inode, const struct pf_record_range *range)
{
	int err = 0;
	for (uint64_t pos = 0; pos < range->nr && !err;) {
		struct pf_map map;
		unsigned nr = range->nr - pos < PF_MAP_BLOCKS ? (unsigned)(range->nr - pos) : PF_MAP_BLOCKS;
		err = pf_extent_map(pool, inode->item.data_id, range->start + pos, nr, &map);
		if (err)
			break;
		pf_map_release(pool, &map);
		for (unsigned i = 0; i < map.nr_segs && !err; i++)
			err = map_stretch(pool, inode, range, (unsigned)pos + map.segs[i].first, &map.segs[i]);
		pos += nr;
	}
	return err;
}

static bool ranges_fit(struct pf_pool *pool, const struct pf_record *rec)
{
	struct pf_record_range range;
	for (uint32_t pos = 0; pf_record_next_range(rec, &pos, &range);) {
		if (range.kind != PF_RANGE_HOLE && !pf_set_addr_valid(pool->set, range.addr, range.nr))
			return false;
	}
	return true;
}

static int redo_file_locked(struct pf_pool *pool, struct pf_inode *inode, const struct pf_record *rec)
{
	struct pf_record_range range;
	int err = 0;
	if (!pf_inode_is_file(inode) || !ranges_fit(pool, rec))
		return -PF_ELOG_INVALID;
	if (inode->item.data_id != rec->file.data_id && !pf_breaks(pool->env, PF_BREAK_LOG_FORGETS_DATA_ID))
		err = new_data_id(pool, inode, rec->file.data_id);
	for (uint32_t pos = 0; !err && pf_record_next_range(rec, &pos, &range);) {
		if (range.kind == PF_RANGE_HOLE)
			err = unmap(pool, inode, range.start, range.start + range.nr);
		else
			err = map_range(pool, inode, &range);
	}
	if (err)
		return err;
	struct pf_change change;
	pf_change_init(&change, inode);
	change.item.size = change.tree_size = rec->file.size;
	change.item.mtime = rec->file.mtime;
	change.item.ctime = rec->time;
	return pf_data_apply(pool, inode, &change);
}

static int redo_file(struct pf_pool *pool, const struct pf_record *rec)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, rec->ino, &inode);
	if (err == -ESTALE)
		return 0; /* unlinked and gone before the checkpoint, with a record of before it */
	if (err)
		return err;
	use_id(pool, rec->file.data_id);
	pf_inode_lock(pool, inode);
	err = redo_file_locked(pool, inode, rec);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

/* -- verifying ---------------------------------------------------------------------------------------------------------- */

static int verify_range(struct pf_pool *pool, const struct pf_record_range *range, uint8_t *buf, pf_addr *bad)
{
	for (uint64_t pos = 0; pos < range->nr;) {
		uint64_t crc[PF_MAX_EXTENT_BLOCKS];
		unsigned nr = range->nr - pos < PF_MAX_EXTENT_BLOCKS ? (unsigned)(range->nr - pos) : PF_MAX_EXTENT_BLOCKS;
		*bad = range->addr + pos;
		if (pf_set_read(pool->set, range->addr + pos, buf, nr))
			return 0;
		pf_crc64_blocks(buf, PF_BLOCK_SIZE, nr, crc);
		for (unsigned i = 0; i < nr; i++) {
			*bad = range->addr + pos + i;
			if (crc[i] != pf_get64(range->crc[pos + i]))
				return 0;
		}
		pos += nr;
	}
	return 1;
}

int pf_redo_verify(struct pf_pool *pool, const struct pf_record *rec, pf_addr *bad)
{
	struct pf_record_range range;
	if (!ranges_fit(pool, rec))
		return 0;
	uint8_t *buf = pf_bufpool_get(pool->buffers);
	int good = buf ? 1 : -ENOMEM;
	for (uint32_t pos = 0; good == 1 && pf_record_next_range(rec, &pos, &range);) {
		if (range.kind == PF_RANGE_BLOCKS)
			good = verify_range(pool, &range, buf, bad);
	}
	pf_bufpool_put(pool->buffers, buf);
	return good;
}

/* -- the others: the public operations, with the record's time ------------------------------------------------------------ */

static int redo_link(struct pf_pool *pool, const struct pf_record *rec)
{
	struct pf_attr attr;
	int err = pf_link(pool, rec->ino, rec->name.parent, rec->name.name.data, rec->name.name.len, &attr);
	if (!err)
		pf_forget(pool, attr.ino, 1);
	return err;
}

static int redo_remove(struct pf_pool *pool, const struct pf_record *rec)
{
	const struct pf_record_bytes *name = &rec->name.name;
	int err = pf_unlink(pool, rec->name.parent, name->data, name->len);
	return err == -EISDIR ? pf_rmdir(pool, rec->name.parent, name->data, name->len) : err;
}

static int redo_rename(struct pf_pool *pool, const struct pf_record *rec)
{
	return pf_rename(pool, rec->rename.old_parent, rec->rename.old_name.data, rec->rename.old_name.len,
			 rec->rename.new_parent, rec->rename.new_name.data, rec->rename.new_name.len, rec->rename.flags,
			 (struct pf_cred){ 0 });
}

static int redo_setattr(struct pf_pool *pool, const struct pf_record *rec)
{
	static const struct {
		unsigned record, engine;
	} bits[] = {
		{ PF_SET_MODE, PF_ATTR_MODE },	 { PF_SET_UID, PF_ATTR_UID },	  { PF_SET_GID, PF_ATTR_GID },
		{ PF_SET_ATIME, PF_ATTR_ATIME }, { PF_SET_MTIME, PF_ATTR_MTIME }, { PF_SET_CTIME, PF_ATTR_CTIME },
	};
	struct pf_inode *inode;
	unsigned mask = PF_ATTR_CTIME, set = rec->setattr.mask;
	int err = pf_inode_get(pool, rec->ino, &inode);
	if (err)
		return err == -ESTALE ? 0 : err;
	struct pf_inode_item item = pf_inode_look(inode);
	pf_inode_put(pool, inode);
	struct pf_attr in = {
		/* with owners goes a mode, or setting them would take set-id bits away */
		.mode = set & PF_SET_MODE ? rec->setattr.mode : item.mode & 07777,
		.uid = rec->setattr.uid,
		.gid = rec->setattr.gid,
		.atime = rec->setattr.atime,
		.mtime = rec->setattr.mtime,
		.ctime = set & PF_SET_CTIME ? rec->time : item.ctime,
	};
	if (set & (PF_SET_UID | PF_SET_GID))
		mask |= PF_ATTR_MODE;
	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		if (set & bits[i].record)
			mask |= bits[i].engine;
	}
	return pf_setattr(pool, rec->ino, mask, &in, NULL);
}

static int redo_xattr(struct pf_pool *pool, const struct pf_record *rec)
{
	char name[PF_MAX_NAME_BYTES + 1];
	memcpy(name, rec->xattr.name.data, rec->xattr.name.len);
	name[rec->xattr.name.len] = 0;
	int err = rec->xattr.remove ? pf_removexattr(pool, rec->ino, name) :
				      pf_setxattr(pool, rec->ino, name, rec->xattr.value.data, rec->xattr.value.len, 0);
	return err == -ESTALE ? 0 : err;
}

int pf_redo(struct pf_pool *pool, const struct pf_record *rec)
{
	static int (*const redo[])(struct pf_pool *, const struct pf_record *) = {
		[PF_RECORD_CREATE] = pf_redo_create, [PF_RECORD_LINK] = redo_link,	   [PF_RECORD_REMOVE] = redo_remove,
		[PF_RECORD_RENAME] = redo_rename,    [PF_RECORD_SETATTR] = redo_setattr, [PF_RECORD_XATTR] = redo_xattr,
		[PF_RECORD_FILE] = redo_file,
	};
	pool->replay_now = rec->time;
	use_id(pool, rec->ino);
	if (rec->type == PF_RECORD_CREATE)
		use_id(pool, rec->create.data_id);
	int err = redo[rec->type](pool, rec);
	if (!err && pf_breaks(pool->env, PF_BREAK_REPLAY_CHECKPOINT))
		err = pool->checkpoint(pool);
	/* what the operation could not do it did once: the tree or the record is not what it was */
	return err && err != -EIO && err != -ENOMEM && !pf_is_damage(err) ? -PF_ELOG_INVALID : err;
}
