/* SPDX-License-Identifier: MIT */
#include "object/lost.h"

#include "block/extent.h"
#include "object/path.h"

/* 1: a written extent lies on a member of @mask; 0: none; or an error. */
static int has_extent_on(struct pf_pool *pool, struct pf_inode *inode, uint32_t mask)
{
	struct pf_extent e = { 0 };
	int err;
	for (uint64_t block = 0; !(err = pf_extent_find(pool, inode->item.data_id, block, &e)); block = e.start + e.nr) {
		bool there = mask >> pf_addr_member(e.addr[0]) & 1;
		if (there && !(e.flags & PF_EXTENT_UNWRITTEN))
			return 1;
	}
	return err == -ENOENT ? 0 : err;
}

static void tell(struct pf_pool *pool, struct pf_inode *inode, uint32_t lost)
{
	char path[512];
	if (inode->dirty.told)
		return;
	inode->dirty.told = true;
	pf_path_of(pool, inode, path, sizeof(path));
	pf_log(pool->env, PF_LOG_ERROR, "%s: what was written to %s before it failed is lost; write the file anew, or restore it from a backup",
	       path, pool->set->members[__builtin_ctz(lost)].io->name);
}

int pf_lost_check(struct pf_pool *pool, struct pf_inode *inode)
{
	uint32_t lost = pf_dirty_lost(pool, &inode->dirty);
	if (!lost)
		return 0;
	int err = has_extent_on(pool, inode, lost);
	if (err > 0)
		tell(pool, inode, lost);
	else if (!err)
		pf_dirty_forget_lost(&inode->dirty, lost);
	return err > 0 ? -EIO : err;
}
