/* SPDX-License-Identifier: MIT
 * Design rule 9: the checkpoint goes on without members that fail, and says so in its superblock. */
#include "commit/commit_int.h"

bool pf_commit_unrecorded(struct pf_pool *pool)
{
	return pf_set_failed(pool->set) & ~pool->commit->recorded && !pf_breaks(pool->env, PF_BREAK_FAILURE_UNRECORDED);
}

bool pf_commit_note_failures(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	uint32_t fresh = pf_set_failed(pool->set) & ~c->noted;
	if (!fresh)
		return false;
	/* records that name data there can never be promised: the log goes on behind the next freeze (pitfalls 1.14) */
	if (pool->log)
		pf_log_lose(pool->log);
	pf_space_fail_members(pool->space, fresh);
	c->noted |= fresh;
	return true;
}

/* Neither of the places where its superblocks are can be read: that is no bad sector. */
static bool is_gone(struct pf_pool *pool, unsigned id)
{
	struct pf_member *m = &pool->set->members[id];
	void *block = pf_bufpool_get(pool->pages);
	bool gone = block;
	for (unsigned ring = 0; ring < 2 && gone; ring++) {
		uint64_t at = pf_geometry_super_block(&m->geo, ring, 0) * PF_BLOCK_SIZE;
		gone = pf_io_read(m->io, at, block, PF_BLOCK_SIZE) == -EIO;
	}
	pf_bufpool_put(pool->pages, block);
	return gone;
}

/* Where no map can be read there is no room for nodes; but a member is not given up for a map or two. */
static uint32_t gone_without_room(struct pf_pool *pool)
{
	uint32_t mask = pf_space_unreadable(pool->space) & ~pf_set_failed(pool->set);
	for (unsigned id = 0; id < pool->set->nr; id++) {
		if ((mask >> id & 1) && !is_gone(pool, id))
			mask &= ~(UINT32_C(1) << id);
	}
	return mask;
}

bool pf_commit_give_up(struct pf_pool *pool, enum pf_commit_phase phase, int err)
{
	static const char *const what[] = {
		[PF_COMMIT_NODES] = "write of tree nodes (or a read of the maps that say where)",
		[PF_COMMIT_MAPS] = "write of free-space maps",
		[PF_COMMIT_SUPER] = "write of superblocks",
	};
	uint32_t mask = 0;
	if (err != -EIO && err != -ENOSPC)
		return false;
	if (phase == PF_COMMIT_NODES)
		mask = (err == -EIO ? pf_tree_blamed(pool->tree) : 0) | gone_without_room(pool);
	else if (err != -EIO)
		return false;
	else if (phase == PF_COMMIT_MAPS)
		mask = pf_space_blamed(pool->space);
	else if (phase == PF_COMMIT_SUPER)
		mask = pool->commit->unwritten;
	return mask && pf_set_fail(pool->set, mask, what[phase], -EIO) != mask;
}

void pf_commit_record(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	struct pf_super *next = &c->next;
	uint32_t fresh = c->noted & ~pf_super_failed(next);
	if (!fresh || pf_breaks(pool->env, PF_BREAK_FAILURE_UNRECORDED))
		return;
	for (unsigned id = 0; id < next->nr_members; id++) {
		if (!(fresh >> id & 1))
			continue;
		/* what it has for certain is what was committed last */
		next->members[id] = pool->super.members[id];
		next->members[id].state = PF_MEMBER_FAILED;
	}
	pf_commit_new_epoch(pool, next, next->generation - 1);
	if (next->nr_log)
		pf_log_place(next);
}

/* A member that fails only now has to be in a superblock that is not clean before one is that leaves it out. */
int pf_commit_clean(struct pf_pool *pool)
{
	unsigned tries = pool->set->may_lose ? PF_COMMIT_TRIES : 1;
	for (unsigned try = 1;; try++) {
		uint32_t failed = pf_set_failed(pool->set);
		struct pf_super super = pool->super;
		super.flags |= PF_SUPER_CLEAN;
		int err = pf_commit_super(pool, &super, pf_commit_all_mask(pool));
		if (err && try >= tries)
			pf_commit_give_up(pool, PF_COMMIT_SUPER, err);
		if (!err || (try >= tries && pf_set_failed(pool->set) == failed))
			return err;
		if (pf_set_failed(pool->set) == failed)
			continue;
		err = pf_commit_wait(pool, true);
		if (err)
			return err;
		try = 0;
	}
}
