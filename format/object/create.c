/* SPDX-License-Identifier: MIT
 * Making inodes and names: create, mkdir, mknod, symlink, link, unnamed files. */
#include "object/intent.h"
#include "object/namei.h"
#include "object/redo.h"
#include "object/stage.h"

#include <string.h>
#include <sys/stat.h>

struct creation {
	struct pf_inode *dir;
	const char *name; /* NULL: unnamed */
	size_t name_len;
	const char *target; /* of a symlink */
	size_t target_len;
	struct pf_inode_item item;
	struct pf_inode *inode;
	struct pf_slot slot;
	uint64_t ino, data_id; /* != 0: what a record of the log says */
};

void pf_inherit(const struct pf_inode *dir, struct pf_cred cred, struct pf_inode_item *item)
{
	item->uid = cred.uid;
	item->gid = cred.gid;
	if (dir->item.mode & S_ISGID) {
		item->gid = dir->item.gid;
		if (S_ISDIR(item->mode))
			item->mode |= S_ISGID;
	}
}

static void want_creation(struct pf_txn *txn, const struct creation *c)
{
	pf_inode_want(txn, c->inode->ino);
	if (c->name) {
		pf_inode_want(txn, c->dir->ino);
		pf_slot_want(txn, c->dir->ino, &c->slot);
	} else {
		pf_link_want_drop(txn, c->inode);
	}
	for (unsigned i = 0; i * PF_SYMLINK_CHUNK_BYTES < c->target_len; i++) {
		struct pf_key key = pf_key_make(PF_CLASS_INODE, c->inode->ino, PF_TYPE_SYMLINK, i);
		pf_txn_want(txn, key, key, PF_TXN_ITEM(PF_SYMLINK_CHUNK_BYTES));
	}
}

static void enter_creation(struct pf_txn *txn, struct pf_pool *pool, struct creation *c)
{
	struct pf_inode *inode = c->inode;
	pf_inode_store(txn, inode);
	for (unsigned i = 0; i * PF_SYMLINK_CHUNK_BYTES < c->target_len; i++) {
		size_t pos = (size_t)i * PF_SYMLINK_CHUNK_BYTES, left = c->target_len - pos;
		pf_txn_put(txn, pf_key_make(PF_CLASS_INODE, inode->ino, PF_TYPE_SYMLINK, i), c->target + pos,
			   (unsigned)(left < PF_SYMLINK_CHUNK_BYTES ? left : PF_SYMLINK_CHUNK_BYTES));
	}
	pool->counters.nr_inodes++;
	pf_intent_create(pool, c->dir->ino, inode, c->name, c->name_len, c->target, c->target_len);
	if (!c->name) {
		pf_txn_put(txn, pf_key_orphan_inode(inode->ino), "", 0);
		pf_inode_born(inode);
		return;
	}
	pf_op_half(pool, txn);
	pf_slot_put(txn, c->dir->ino, &c->slot, inode->ino, pf_dtype_of(inode->item.mode), c->name, c->name_len);
	c->dir->item.next_cookie++;
	pf_dir_changed(c->dir, 1, S_ISDIR(inode->item.mode) ? 1 : 0, inode->item.btime);
	pf_inode_store(txn, c->dir);
	pf_inode_born(inode);
}

/* names_lock and the directory's lock are held. */
static int create_locked(struct pf_pool *pool, struct creation *c, struct pf_attr *attr)
{
	int err = 0;
	if (c->name) {
		err = pf_slot_find(pool, c->dir->ino, c->name, c->name_len, &c->slot);
		if (err || c->slot.found || c->slot.full)
			return err ? err : c->slot.found ? -EEXIST : -ENOSPC;
		if (S_ISDIR(c->item.mode) && c->dir->item.nlink == UINT32_MAX)
			return -EMLINK;
		c->slot.cookie = c->dir->item.next_cookie;
	}
	uint64_t ino = c->ino ? c->ino : pf_pool_new_id(pool);
	if (S_ISREG(c->item.mode))
		c->item.data_id = c->ino ? c->data_id : ino;
	err = pf_inode_new(pool, ino, &c->item, &c->inode);
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	err = pf_inode_ref(pool, c->inode);
	if (!err) {
		want_creation(&txn, c);
		err = pf_txn_lock(&txn);
	}
	if (!err)
		enter_creation(&txn, pool, c);
	pf_txn_end(&txn);
	if (err) {
		pf_inode_abort(pool, c->inode);
		return err;
	}
	pthread_rwlock_rdlock(&c->inode->lock);
	pf_inode_attr(c->inode, attr);
	pthread_rwlock_unlock(&c->inode->lock);
	pf_inode_put(pool, c->inode);
	return 0;
}

static int create(struct pf_pool *pool, uint64_t parent, struct creation *c, struct pf_cred cred, struct pf_attr *attr)
{
	int err = c->name ? pf_name_check(c->name, c->name_len) : 0;
	if (!err)
		err = pf_op_begin(pool, PF_GROWS);
	if (err)
		return err;
	pthread_mutex_lock(&pool->names_lock);
	err = pf_dir_get(pool, parent, &c->dir);
	if (!err) {
		struct timespec now = pf_inode_now(pool);
		pf_inode_lock(pool, c->dir);
		pf_inherit(c->dir, cred, &c->item);
		c->item.parent = parent;
		c->item.atime = c->item.mtime = c->item.ctime = c->item.btime = now;
		err = create_locked(pool, c, attr);
		pthread_rwlock_unlock(&c->dir->lock);
		pf_inode_put(pool, c->dir);
	}
	pthread_mutex_unlock(&pool->names_lock);
	return err;
}

int pf_create(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, uint32_t mode, struct pf_cred cred,
	      uint32_t rdev_major, uint32_t rdev_minor, struct pf_attr *attr)
{
	struct creation c = {
		.name = name,
		.name_len = len,
		.item = { .mode = mode & (S_IFMT | 07777), .nlink = 1 },
	};
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFIFO:
	case S_IFSOCK:
		break;
	case S_IFCHR:
	case S_IFBLK:
		c.item.rdev_major = rdev_major;
		c.item.rdev_minor = rdev_minor;
		break;
	case S_IFDIR:
		c.item.nlink = 2;
		c.item.next_cookie = PF_FIRST_COOKIE;
		break;
	default:
		return -EINVAL;
	}
	return create(pool, parent, &c, cred, attr);
}

int pf_redo_create(struct pf_pool *pool, const struct pf_record *rec)
{
	struct pf_attr attr;
	struct creation c = {
		.name = rec->create.name.len ? rec->create.name.data : NULL,
		.name_len = rec->create.name.len,
		.target = rec->create.target.data,
		.target_len = rec->create.target.len,
		.ino = rec->ino,
		.data_id = rec->create.data_id,
		.item = {
			.mode = rec->create.mode,
			.nlink = !rec->create.name.len ? 0 : S_ISDIR(rec->create.mode) ? 2 : 1,
			.rdev_major = rec->create.rdev_major,
			.rdev_minor = rec->create.rdev_minor,
			.size = rec->create.target.len,
			.next_cookie = S_ISDIR(rec->create.mode) ? PF_FIRST_COOKIE : 0,
		},
	};
	struct pf_cred cred = { rec->create.uid, rec->create.gid };
	int err = create(pool, rec->create.parent, &c, cred, &attr);
	if (!err)
		pf_forget(pool, attr.ino, 1);
	return err;
}

int pf_create_unnamed(struct pf_pool *pool, uint64_t parent, uint32_t mode, struct pf_cred cred, struct pf_attr *attr)
{
	struct creation c = { .item = { .mode = S_IFREG | (mode & 07777) } };
	return create(pool, parent, &c, cred, attr);
}

int pf_symlink(struct pf_pool *pool, uint64_t parent, const char *name, size_t len, const char *target,
	       struct pf_cred cred, struct pf_attr *attr)
{
	struct creation c = {
		.name = name,
		.name_len = len,
		.target = target,
		.target_len = strlen(target),
		.item = { .mode = S_IFLNK | 0777, .nlink = 1 },
	};
	if (c.target_len > PF_MAX_SYMLINK_BYTES)
		return -ENAMETOOLONG;
	if (!c.target_len)
		return -ENOENT;
	c.item.size = c.target_len;
	return create(pool, parent, &c, cred, attr);
}

/* names_lock and the locks of both are held. The inode gets the reference that is handed out first: it may need memory. */
static int link_locked(struct pf_pool *pool, struct pf_inode *dir, struct pf_inode *inode, const char *name, size_t len)
{
	struct pf_slot slot;
	if (pf_inode_is_dir(inode))
		return -EPERM;
	bool was_orphan = !inode->item.nlink;
	if (was_orphan && !pool->replaying && pf_inode_is_abandoned(pool, inode))
		return -ENOENT;
	if (inode->item.nlink == UINT32_MAX)
		return -EMLINK;
	int err = pf_slot_find(pool, dir->ino, name, len, &slot);
	if (err || slot.found || slot.full)
		return err ? err : slot.found ? -EEXIST : -ENOSPC;
	/* rule 6: a name that appears has the data that was there before it */
	err = pf_stage_drain(pool, inode);
	if (!err)
		err = pf_intent_before_name(pool, inode);
	if (err)
		return err;
	struct pf_txn txn;
	pf_txn_init(&txn, pool->tree);
	slot.cookie = dir->item.next_cookie;
	pf_slot_want(&txn, dir->ino, &slot);
	pf_inode_want(&txn, dir->ino);
	pf_inode_want(&txn, inode->ino);
	pf_link_want_drop(&txn, inode);
	err = pf_inode_ref(pool, inode);
	bool referred = !err;
	if (!err)
		err = pf_txn_lock(&txn);
	if (!err) {
		struct timespec now = pf_inode_now(pool);
		pf_intent_link(pool, dir->ino, inode->ino, name, len, now);
		pf_slot_put(&txn, dir->ino, &slot, inode->ino, pf_dtype_of(inode->item.mode), name, len);
		pf_op_half(pool, &txn);
		if (was_orphan) {
			pf_txn_del(&txn, pf_key_orphan_inode(inode->ino));
			pool->counters.orphan_blocks -= inode->item.blocks;
		}
		inode->item.nlink++;
		inode->item.ctime = now;
		inode->item.parent = dir->ino;
		dir->item.next_cookie++;
		pf_dir_changed(dir, 1, 0, now);
		pf_inode_store(&txn, dir);
		pf_inode_store(&txn, inode);
	}
	pf_txn_end(&txn);
	if (!err && was_orphan)
		pf_inode_set_orphan(pool, inode, false);
	if (err && referred)
		pf_inode_unref(pool, inode);
	return err;
}

int pf_link(struct pf_pool *pool, uint64_t ino, uint64_t parent, const char *name, size_t len, struct pf_attr *attr)
{
	struct pf_inode *dir = NULL, *inode = NULL;
	int err = pf_name_check(name, len);
	if (!err)
		err = pf_op_begin(pool, PF_GROWS);
	if (err)
		return err;
	pthread_mutex_lock(&pool->names_lock);
	err = pf_dir_get(pool, parent, &dir);
	if (!err)
		err = pf_inode_get(pool, ino, &inode);
	if (!err) {
		struct pf_inode *both[2] = { dir, inode };
		pf_inode_lock_all(pool, both, 2);
		err = link_locked(pool, dir, inode, name, len);
		if (!err)
			pf_inode_attr(inode, attr);
		pf_inode_unlock_all(both, 2);
	}
	pf_inode_put(pool, inode);
	pf_inode_put(pool, dir);
	pthread_mutex_unlock(&pool->names_lock);
	return err;
}
