/* SPDX-License-Identifier: MIT */
#include "object/lost.h"

#include "block/extent.h"
#include "object/path.h"

#include <string.h>

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

/* -- inodes that left the cache ----------------------------------------------------------------------------------------- */

static void add(struct pf_evicted_group *g, uint64_t ino, uint32_t members, uint64_t change)
{
	g->members |= members;
	g->change = change > g->change ? change : g->change;
	if (!pf_refs_get(&g->inos, ino) && pf_refs_add(&g->inos, ino, 1))
		g->all = true;
}

static void empty(struct pf_evicted_group *g)
{
	pf_refs_free(&g->inos);
	memset(g, 0, sizeof(*g));
}

/* Those of @from that may have lost something on the members of @mask. */
static void keep_lost(struct pf_evicted_group *lost, const struct pf_evicted_group *from, uint32_t mask)
{
	lost->members |= mask;
	lost->change = UINT64_MAX;
	lost->all = lost->all || from->all;
	for (size_t i = 0; i < from->inos.cap; i++) {
		if (from->inos.table[i].ino)
			add(lost, from->inos.table[i].ino, mask, UINT64_MAX);
	}
}

void pf_evicted_add(struct pf_pool *pool, struct pf_evicted *evicted, const struct pf_inode *inode)
{
	uint32_t members = pf_dirty_unflushed(pool, &inode->dirty);
	if (pf_refs_get(&evicted->lost.inos, inode->ino))
		members &= ~evicted->lost.members; /* known for good */
	if (members)
		add(&evicted->fresh, inode->ino, members, inode->dirty.change);
}

static void recall(struct pf_pool *pool, const struct pf_evicted_group *g, struct pf_inode *inode)
{
	uint32_t members = pf_set_unflushed(pool->set, g->members, g->change);
	if (!members || (!g->all && !pf_refs_get(&g->inos, inode->ino)))
		return;
	inode->dirty.unflushed |= members;
	inode->dirty.change = g->change > inode->dirty.change ? g->change : inode->dirty.change;
}

void pf_evicted_recall(struct pf_pool *pool, const struct pf_evicted *evicted, struct pf_inode *inode)
{
	recall(pool, &evicted->fresh, inode);
	recall(pool, &evicted->older, inode);
	recall(pool, &evicted->lost, inode);
}

/* What was in 'older' had left before the checkpoint before this one was durable, so this one flushed it, or could not. */
void pf_evicted_durable(struct pf_pool *pool, struct pf_evicted *evicted)
{
	struct pf_evicted_group *older = &evicted->older;
	uint32_t lost = pf_set_unflushed(pool->set, older->members, older->change) & pf_set_failed(pool->set);
	if (lost)
		keep_lost(&evicted->lost, older, lost);
	pf_refs_free(&older->inos);
	*older = evicted->fresh;
	memset(&evicted->fresh, 0, sizeof(evicted->fresh));
}

void pf_evicted_free(struct pf_evicted *evicted)
{
	empty(&evicted->fresh);
	empty(&evicted->older);
	empty(&evicted->lost);
}
