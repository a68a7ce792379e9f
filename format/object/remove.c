/* SPDX-License-Identifier: MIT
 * Taking names away: unlink and rmdir. */
#include "object/intent.h"
#include "object/namei.h"

/* names_lock and the locks of both are held. */
static int remove_locked(struct pf_pool *pool, struct pf_inode *dir, struct pf_inode *inode, const struct pf_slot *slot,
			 const char *name, size_t len)
{
	bool is_dir = pf_inode_is_dir(inode);
	struct pf_txn txn;
	if (is_dir && inode->item.size)
		return -ENOTEMPTY;
	pf_txn_init(&txn, pool->tree);
	pf_slot_want(&txn, dir->ino, slot);
	pf_inode_want(&txn, dir->ino);
	pf_inode_want(&txn, inode->ino);
	pf_link_want_drop(&txn, inode);
	int err = pf_txn_lock(&txn);
	if (!err) {
		struct timespec now = pf_inode_now(pool);
		pf_intent_remove(pool, dir->ino, inode->ino, name, len, now);
		pf_slot_del(&txn, dir->ino, slot);
		pf_op_half(pool, &txn);
		pf_dir_changed(dir, -1, is_dir ? -1 : 0, now);
		pf_inode_store(&txn, dir);
		pf_link_drop(&txn, pool, inode, now);
	}
	pf_txn_end(&txn);
	if (!err)
		pf_link_dropped(pool, inode);
	return err;
}

static int remove_name(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, bool directory)
{
	struct pf_inode *dir = NULL, *inode = NULL;
	struct pf_slot slot;
	int err = pf_name_check(name, len);
	if (!err)
		err = pf_op_begin(pool, PF_SHRINKS);
	if (err)
		return err;
	pthread_mutex_lock(&pool->names_lock);
	err = pf_dir_get(pool, parent, &dir);
	if (!err)
		err = pf_slot_find(pool, parent, name, len, &slot);
	if (!err && !slot.found)
		err = -ENOENT;
	if (!err)
		err = pf_entry_get(pool, &slot, &inode);
	if (!err && directory != pf_inode_is_dir(inode))
		err = directory ? -ENOTDIR : -EISDIR;
	if (!err) {
		struct pf_inode *both[2] = { dir, inode };
		pf_inode_lock_all(pool, both, 2);
		err = remove_locked(pool, dir, inode, &slot, name, len);
		pf_inode_unlock_all(both, 2);
	}
	pthread_mutex_unlock(&pool->names_lock);
	pf_inode_put(pool, inode);
	pf_inode_put(pool, dir);
	return err;
}

int pf_unlink(struct pf_pool *pool, uint64_t parent, const char *name, size_t len)
{
	return remove_name(pool, parent, name, len, false);
}

int pf_rmdir(struct pf_pool *pool, uint64_t parent, const char *name, size_t len)
{
	return remove_name(pool, parent, name, len, true);
}
