/* SPDX-License-Identifier: MIT
 * Changing attributes: owner, mode, times, size; each call one change. */
#include "object/data.h"
#include "object/orphan.h"
#include "object/truncate.h"
#include "object/xattr.h"

#include <sys/stat.h>

/* What the inode becomes. */
static void new_item(struct pf_pool *pool, const struct pf_inode *inode, unsigned mask, const struct pf_attr *in,
		     struct pf_inode_item *item)
{
	struct timespec now = pf_inode_now(pool);
	bool keeps_times = mask & PF_ATTR_KEEP_TIMES && pf_inode_is_file(inode);
	*item = inode->item;
	if (mask & PF_ATTR_MODE)
		item->mode = (item->mode & S_IFMT) | (in->mode & 07777);
	if (mask & PF_ATTR_UID)
		item->uid = in->uid;
	if (mask & PF_ATTR_GID)
		item->gid = in->gid;
	/* chown(2): a program of another owner must not run with the rights of the old one */
	bool chown = mask & (PF_ATTR_UID | PF_ATTR_GID) && !(mask & PF_ATTR_MODE) && !S_ISDIR(item->mode);
	if (chown || mask & PF_ATTR_KILL_SUIDGID)
		item->mode = pf_mode_without_setid(item->mode);
	if (mask & PF_ATTR_SIZE) {
		item->size = in->size_bytes;
		if (!keeps_times)
			item->mtime = now;
	}
	if (mask & PF_ATTR_ATIME)
		item->atime = in->atime;
	if (mask & PF_ATTR_ATIME_NOW)
		item->atime = now;
	if (mask & PF_ATTR_MTIME)
		item->mtime = in->mtime;
	if (mask & PF_ATTR_MTIME_NOW)
		item->mtime = now;
	if (mask & PF_ATTR_CTIME)
		item->ctime = in->ctime;
	else if (!keeps_times)
		item->ctime = now;
}

static int truncate_locked(struct pf_pool *pool, struct pf_inode *inode, const struct pf_inode_item *item)
{
	uint64_t size = item->size;
	int err = pf_truncate_locked(pool, inode, item);
	if (!err)
		pf_failed_clear(pool, inode, size, UINT64_MAX);
	return err;
}

static int set_locked(struct pf_pool *pool, struct pf_inode *inode, unsigned mask, const struct pf_attr *in)
{
	struct pf_inode_item item;
	int err = 0;
	if (mask & PF_ATTR_SIZE && !pf_inode_is_file(inode))
		return pf_inode_is_dir(inode) ? -EISDIR : -EINVAL;
	if (mask & PF_ATTR_SIZE)
		err = pf_orphan_settle(pool, inode);
	if (!err && mask & (PF_ATTR_UID | PF_ATTR_GID | PF_ATTR_SIZE))
		err = pf_xattr_drop_capability(pool, inode);
	if (err)
		return err;
	new_item(pool, inode, mask, in, &item);
	if (mask & PF_ATTR_SIZE)
		return truncate_locked(pool, inode, &item);
	struct pf_change change;
	pf_change_init(&change, inode);
	change.item = item;
	return pf_data_apply(pool, inode, &change);
}

int pf_setattr(struct pf_pool *pool, uint64_t ino, unsigned mask, const struct pf_attr *in, struct pf_attr *out)
{
	struct pf_inode *inode;
	int err = pf_op_begin(pool, PF_SHRINKS);
	if (!err)
		err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pf_inode_lock(pool, inode);
	err = set_locked(pool, inode, mask, in);
	if (!err && out)
		pf_inode_attr(inode, out);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}
