/* SPDX-License-Identifier: MIT
 * Looking names up, reading directories and links. */
#include "object/namei.h"

#include "object/stage.h"

#include <string.h>

int pf_dir_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out)
{
	int err = pf_inode_get(pool, ino, out);
	if (err)
		return err;
	/* the links of a directory change under names_lock only: they stay as they are now */
	err = !pf_inode_is_dir(*out) ? -ENOTDIR : !pf_inode_look(*out).nlink ? -ENOENT : 0;
	if (err) {
		pf_inode_put(pool, *out);
		*out = NULL;
	}
	return err;
}

int pf_entry_get(struct pf_pool *pool, const struct pf_slot *slot, struct pf_inode **out)
{
	int err = pf_inode_get(pool, slot->ino, out);
	return err == -ESTALE ? -PF_EITEM_MISSING : err;
}

void pf_link_want_drop(struct pf_txn *txn, const struct pf_inode *inode)
{
	pf_txn_want(txn, pf_key_orphan_inode(inode->ino), pf_key_orphan_inode(inode->ino), PF_TXN_ITEM(0));
}

void pf_link_drop(struct pf_txn *txn, struct pf_pool *pool, struct pf_inode *inode, struct timespec now)
{
	inode->item.nlink = pf_inode_is_dir(inode) ? 0 : inode->item.nlink - 1;
	inode->item.ctime = now;
	if (!inode->item.nlink) {
		pf_txn_put(txn, pf_key_orphan_inode(inode->ino), "", 0);
		pool->counters.orphan_blocks += inode->item.blocks;
	}
	pf_inode_store(txn, inode);
}

void pf_link_dropped(struct pf_pool *pool, struct pf_inode *inode)
{
	if (inode->item.nlink)
		return;
	pf_inode_set_orphan(pool, inode, true);
	if (!pf_inode_is_abandoned(pool, inode))
		return;
	pf_stage_drop(pool, inode);
	pf_failed_clear(pool, inode, 0, UINT64_MAX);
	pf_orphan_settle_abandoned(pool, inode);
}

void pf_dir_changed(struct pf_inode *dir, int entries, int subdirs, struct timespec now)
{
	dir->item.size += (uint64_t)(int64_t)entries;
	dir->item.nlink += (uint32_t)subdirs;
	dir->item.mtime = dir->item.ctime = now;
}

void pf_op_half(struct pf_pool *pool, struct pf_txn *txn)
{
	if (!pf_breaks(pool->env, PF_BREAK_HALF_OPERATION))
		return;
	struct pf_txn again;
	pf_txn_init(&again, txn->tree);
	for (unsigned i = 0; i < txn->nr_wants; i++)
		pf_txn_want(&again, txn->wants[i].from, txn->wants[i].to, txn->wants[i].insert_bytes);
	pf_txn_end(txn);
	pool->checkpoint(pool);
	pf_txn_lock(&again);
	*txn = again;
}

/* "." and "..": the kernel asks for them when a file handle comes back (NFS). */
static int lookup_dots(struct pf_pool *pool, uint64_t parent, size_t len, struct pf_attr *attr)
{
	struct pf_inode *inode;
	uint64_t ino = parent;
	if (len == 2) {
		int err = pf_inode_get(pool, parent, &inode);
		if (err)
			return err;
		ino = pf_inode_look(inode).parent;
		err = pf_inode_is_dir(inode) ? 0 : -ENOTDIR;
		pf_inode_put(pool, inode);
		if (err)
			return err;
	}
	return pf_ref(pool, ino, attr);
}

static int check_dir(struct pf_pool *pool, uint64_t ino)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	err = pf_inode_is_dir(inode) ? 0 : -ENOTDIR;
	pf_inode_put(pool, inode);
	return err;
}

int pf_lookup(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, struct pf_attr *attr)
{
	if (len && len <= 2 && name[0] == '.' && name[len - 1] == '.')
		return lookup_dots(pool, parent, len, attr);
	int err = pf_name_check(name, len);
	if (!err)
		err = check_dir(pool, parent);
	/* an entry replaced by rename between the two look-ups is found on the next round: never "no such file" (ESTALE here) */
	for (unsigned i = 0; !err && i < 100; i++) {
		struct pf_slot slot;
		err = pf_slot_find(pool, parent, name, len, &slot);
		if (err || !slot.found)
			return err ? err : -ENOENT;
		err = pf_ref(pool, slot.ino, attr);
		if (err != -ESTALE)
			return err;
		err = 0;
	}
	return err ? err : -PF_EITEM_MISSING;
}

int pf_getattr(struct pf_pool *pool, uint64_t ino, struct pf_attr *attr)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pthread_rwlock_rdlock(&inode->lock);
	pf_inode_attr(inode, attr);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return 0;
}

int pf_readlink(struct pf_pool *pool, uint64_t ino, char *buf, size_t cap)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	bool is_link = pf_inode_is_symlink(inode);
	size_t len = (size_t)pf_inode_look(inode).size;
	pf_inode_put(pool, inode);
	if (!is_link)
		return -EINVAL;
	if (len > PF_MAX_SYMLINK_BYTES)
		return -PF_EITEM_INVALID;
	if (len + 1 > cap)
		return -ERANGE;
	size_t pos = 0;
	for (unsigned chunk = 0; pos < len; chunk++) {
		struct pf_key key = pf_key_make(PF_CLASS_INODE, ino, PF_TYPE_SYMLINK, chunk);
		int n = pf_tree_get(pool->tree, key, buf + pos, (unsigned)(len - pos));
		if (n == -ENOENT)
			return -PF_EITEM_MISSING;
		if (n <= 0 || (size_t)n > len - pos)
			return n < 0 ? n : -PF_EITEM_INVALID;
		pos += (size_t)n;
	}
	buf[len] = 0;
	return (int)len;
}

#define READDIR_BATCH 64 /* entries copied out under one hold of the tree lock */

struct copied {
	uint64_t ino, cookie;
	unsigned dtype, len;
	char name[PF_MAX_NAME_BYTES];
};

static int copy_entries(struct pf_pool *pool, uint64_t dir, uint64_t from, struct copied *out, unsigned *nr)
{
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err) {
		uint64_t cookie = from;
		*nr = 0;
		while (!err && *nr < READDIR_BATCH && cookie <= PF_KEY_FIELD_MAX) {
			struct pf_item item;
			struct pf_name_item entry;
			err = pf_view_next(&v, pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, cookie), &item);
			if (err || pf_key_object(item.key) != dir || pf_key_class(item.key) != PF_CLASS_DIR ||
			    pf_key_type(item.key) != PF_TYPE_NAME)
				break;
			err = pf_name_item_unpack(item.data, item.len, &entry);
			if (err)
				break;
			cookie = pf_key_offset(item.key);
			struct copied *c = &out[(*nr)++];
			c->ino = entry.ino;
			c->cookie = cookie++;
			c->dtype = entry.dtype;
			c->len = entry.name_len;
			memcpy(c->name, entry.name, entry.name_len);
		}
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}

static bool emit_dots(uint64_t ino, uint64_t parent, uint64_t cookie, pf_dirent_fn *fn, void *arg)
{
	const struct pf_dirent dots[2] = {
		{ ".", 1, ino, 1, 4 },
		{ "..", 2, parent, 2, 4 },
	};
	for (uint64_t i = cookie; i < 2; i++) {
		if (!fn(arg, &dots[i]))
			return false;
	}
	return true;
}

int pf_readdir(struct pf_pool *pool, uint64_t dir_ino, uint64_t cookie, pf_dirent_fn *fn, void *arg)
{
	struct pf_inode *dir;
	int err = pf_inode_get(pool, dir_ino, &dir);
	if (err)
		return err;
	struct copied batch[READDIR_BATCH];
	unsigned nr = READDIR_BATCH;
	err = pf_inode_is_dir(dir) ? 0 : -ENOTDIR;
	struct pf_inode_item item = pf_inode_look(dir);
	bool room = !err && item.nlink && emit_dots(dir_ino, item.parent, cookie, fn, arg);
	uint64_t next = cookie < PF_FIRST_COOKIE ? PF_FIRST_COOKIE : cookie + 1;
	while (room && !err && nr == READDIR_BATCH) {
		err = copy_entries(pool, dir_ino, next, batch, &nr);
		for (unsigned i = 0; !err && room && i < nr; i++) {
			struct pf_dirent entry = { batch[i].name, batch[i].len, batch[i].ino, batch[i].cookie, batch[i].dtype };
			room = fn(arg, &entry);
			next = batch[i].cookie + 1;
		}
	}
	pf_inode_put(pool, dir);
	return err;
}
