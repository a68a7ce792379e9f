/* SPDX-License-Identifier: MIT
 * An fsync in one round of I/O (stage.h). */
#include "object/intent.h"
#include "object/stage_int.h"

#define COMMIT_BLOCKS_MAX 64u /* more gain nothing by leaving together with the log */
#define MAP_TRIES 3

/* The log has promised the blocks: a tree without them must never become durable. */
static int map_promised(struct pf_pool *pool, struct pf_stage *s, unsigned *nr_mapped)
{
	int err = -EIO;
	for (unsigned try = 0; err && try < MAP_TRIES; try++)
		err = pf_stage_map(pool, s, nr_mapped, PF_MAP_PROMISED);
	if (err)
		pf_pool_fail(pool, "entering in the tree what the intent log has promised", err);
	return err;
}

/* What the log has taken, or was to take, enters the tree. Returns as pf_stage_commit_end(). */
static int finish(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c, int promised)
{
	struct pf_stage *s = inode->stage;
	unsigned nr_mapped = 0;
	bool moved;
	if (promised)
		pf_log_take_back(pool->log, &c->log_writes);
	if (!c->log_writes.done)
		pf_aio_run(pool->set->aio, c->log_writes.reqs, c->log_writes.nr); /* each request has its result */
	int err = pf_block_complete(pool, &s->write, &moved);
	if (!err)
		err = promised ? pf_stage_map(pool, s, &nr_mapped, PF_MAP_HELD) : map_promised(pool, s, &nr_mapped);
	if (!err && !promised)
		pf_dirty_clear(&inode->dirty);
	pf_hold_leave(&pool->sync_hold);
	pf_stage_end_write(pool, s, nr_mapped, err);
	return err ? err : promised ? -EAGAIN : 0;
}

int pf_stage_commit_begin(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c)
{
	struct pf_stage *s = inode->stage;
	if (!pool->log || !s || inode->sealed || s->nr > COMMIT_BLOCKS_MAX || pf_pool_writable(pool) ||
	    pf_breaks(pool->env, PF_BREAK_MAP_BEFORE_DATA))
		return -EAGAIN;
	*c = (struct pf_stage_commit){ 0 };
	s->write = pf_stage_write_of(s);
	s->size = inode->item.size;
	int err = pf_block_prepare(pool, &s->write);
	if (err)
		return pf_stage_end_write(pool, s, 0, err);
	pf_hold_enter(&pool->sync_hold);
	err = pf_intent_file_with(pool, inode, &s->write, &c->log_writes);
	if (err)
		return finish(pool, inode, c, err);
	pf_inode_begin(inode, PF_COMMITTING);
	return 0;
}

int pf_stage_commit_end(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c, int promised)
{
	int err = finish(pool, inode, c, promised);
	pf_inode_end(inode);
	return err;
}
