/* SPDX-License-Identifier: MIT */
#include "object/stage.h"

#include "object/data.h"
#include "object/intent.h"
#include "object/path.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct pf_stage {
	unsigned nr;
	struct pf_dirty_block blocks[PF_STAGE_BLOCKS]; /* ascending; data is ours to change */
};

static uint8_t *page_of(const struct pf_dirty_block *b)
{
	return (uint8_t *)(uintptr_t)b->data;
}

/* Index of the first staged block >= @block. */
static unsigned position(const struct pf_stage *s, uint64_t block)
{
	unsigned lo = 0, hi = s->nr;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (s->blocks[mid].block < block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

unsigned pf_stage_blocks(const struct pf_inode *inode)
{
	return inode->stage ? inode->stage->nr : 0;
}

uint8_t *pf_stage_find(const struct pf_inode *inode, uint64_t block)
{
	const struct pf_stage *s = inode->stage;
	if (!s)
		return NULL;
	unsigned i = position(s, block);
	return i < s->nr && s->blocks[i].block == block ? page_of(&s->blocks[i]) : NULL;
}

bool pf_stage_next(const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	const struct pf_stage *s = inode->stage;
	unsigned i = s ? position(s, block) : 0;
	if (!s || i == s->nr)
		return false;
	*found = s->blocks[i].block;
	return true;
}

/* The functions on the list want the staging lock held. */
static void list_append(struct pf_pool *pool, struct pf_inode *inode)
{
	inode->staged_next = NULL;
	inode->staged_prev = pool->staged_last;
	*(pool->staged_last ? &pool->staged_last->staged_next : &pool->staged_first) = inode;
	pool->staged_last = inode;
}

static void list_remove(struct pf_pool *pool, struct pf_inode *inode)
{
	*(inode->staged_prev ? &inode->staged_prev->staged_next : &pool->staged_first) = inode->staged_next;
	*(inode->staged_next ? &inode->staged_next->staged_prev : &pool->staged_last) = inode->staged_prev;
}

int pf_stage_begin(struct pf_pool *pool, struct pf_inode *inode)
{
	inode->stage = calloc(1, sizeof(*inode->stage));
	if (!inode->stage)
		return -ENOMEM;
	pf_inode_pin(pool, inode);
	pthread_mutex_lock(&pool->staging_lock);
	list_append(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
	return 0;
}

void pf_stage_add(struct pf_pool *pool, struct pf_inode *inode, uint64_t block, uint8_t *page)
{
	struct pf_stage *s = inode->stage;
	assert(s->nr < PF_STAGE_BLOCKS);
	unsigned i = position(s, block);
	memmove(s->blocks + i + 1, s->blocks + i, (s->nr - i) * sizeof(*s->blocks));
	s->blocks[i] = (struct pf_dirty_block){ block, page };
	s->nr++;
	atomic_fetch_add(&pool->staged_blocks, 1);
}

void pf_stage_overlay(const struct pf_inode *inode, uint64_t start, unsigned nr, uint8_t *buf)
{
	const struct pf_stage *s = inode->stage;
	for (unsigned i = s ? position(s, start) : 0; s && i < s->nr && s->blocks[i].block < start + nr; i++)
		memcpy(buf + (s->blocks[i].block - start) * PF_BLOCK_SIZE, s->blocks[i].data, PF_BLOCK_SIZE);
}

void pf_stage_mask(const struct pf_inode *inode, uint64_t start, unsigned nr, uint64_t *mask)
{
	const struct pf_stage *s = inode->stage;
	for (unsigned i = s ? position(s, start) : 0; s && i < s->nr && s->blocks[i].block < start + nr; i++) {
		uint64_t bit = s->blocks[i].block - start;
		mask[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
}

/* The stage is empty on return; the caller owns a pin that pf_inode_put() has to give back, without locks. */
static void release(struct pf_pool *pool, struct pf_inode *inode)
{
	struct pf_stage *s = inode->stage;
	for (unsigned i = 0; i < s->nr; i++)
		pf_bufpool_put(pool->pages, page_of(&s->blocks[i]));
	atomic_fetch_sub(&pool->staged_blocks, s->nr);
	pthread_mutex_lock(&pool->staging_lock);
	list_remove(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
	free(s);
	inode->stage = NULL;
}

void pf_stage_drop(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!inode->stage)
		return;
	pf_space_unreserve(pool->space, inode->stage->nr);
	inode->write_error = 0;
	release(pool, inode);
	pf_inode_unpin(pool, inode);
}

void pf_stage_drop_all(struct pf_pool *pool)
{
	while (pool->staged_first) {
		struct pf_inode *inode = pool->staged_first;
		pf_inode_pin(pool, inode);
		pf_stage_drop(pool, inode);
		pf_inode_unpin(pool, inode);
	}
}

static struct pf_write write_of(struct pf_inode *inode)
{
	return (struct pf_write){
		.data_id = inode->item.data_id,
		.place = &inode->place,
		.blocks = inode->stage->blocks,
		.nr_blocks = inode->stage->nr,
	};
}

static int map_drained(struct pf_pool *pool, struct pf_inode *inode, struct pf_write *w, bool durable)
{
	struct pf_change change;
	pf_change_init(&change, inode);
	change.tree_size = inode->item.size;
	change.write = w;
	change.durable = durable;
	return pf_data_apply(pool, inode, &change);
}

static int drain(struct pf_pool *pool, struct pf_inode *inode)
{
	struct pf_write w = write_of(inode);
	int err = pf_block_write(pool, &w);
	if (err)
		return err;
	err = map_drained(pool, inode, &w, false);
	pf_block_end(pool, &w, !err);
	return err;
}

static void note_failure(struct pf_pool *pool, struct pf_inode *inode, int err)
{
	char path[512];
	if (!inode->write_error) {
		pf_path_of(pool, inode, path, sizeof(path));
		pf_log(pool->env, PF_LOG_ERROR, "%s: writing %u blocks failed: %s; they are kept in memory and tried again; "
		       "check the members' disks and their free space", path, inode->stage->nr, pf_strerror(err));
	}
	inode->write_error = err;
	atomic_store(&pool->drain_error, err);
	atomic_fetch_add(&pool->drain_failures, 1);
}

/* What was staged is in the tree (@err 0), or still staged. Returns @err. */
static int settle(struct pf_pool *pool, struct pf_inode *inode, int err)
{
	if (err) {
		note_failure(pool, inode, err);
		return err;
	}
	inode->write_error = 0;
	release(pool, inode);
	pf_inode_unpin(pool, inode);
	return 0;
}

int pf_stage_drain(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!inode->stage)
		return 0;
	int err = pf_pool_writable(pool);
	return settle(pool, inode, err ? err : drain(pool, inode));
}

/* -- an fsync in one round of I/O ------------------------------------------------------------------------------------------ */

#define COMMIT_BLOCKS_MAX 64u /* more gain nothing by leaving together with the log */
#define MAP_TRIES 3

/* The log has promised the blocks: a tree without them must never become durable. */
static int map_promised(struct pf_pool *pool, struct pf_inode *inode, struct pf_write *w)
{
	int err = -EIO;
	for (unsigned try = 0; err && try < MAP_TRIES; try++)
		err = map_drained(pool, inode, w, true);
	if (err)
		pf_pool_fail(pool, "entering in the tree what the intent log has promised", err);
	return err;
}

/* What the log has taken, or was to take, enters the tree. Returns as pf_stage_commit_end(). */
static int finish(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c, int promised)
{
	struct pf_write *w = &c->write;
	bool moved;
	if (promised)
		pf_log_take_back(pool->log, &c->log_writes);
	if (!c->log_writes.done)
		pf_aio_run(pool->set->aio, c->log_writes.reqs, c->log_writes.nr); /* each request has its result */
	int err = pf_block_complete(pool, w, &moved);
	if (!err) {
		err = promised ? map_drained(pool, inode, w, false) : map_promised(pool, inode, w);
		pf_block_end(pool, w, !err);
	}
	if (!err && !promised)
		pf_dirty_clear(&inode->dirty);
	pf_hold_leave(&pool->sync_hold);
	settle(pool, inode, err);
	return err ? err : promised ? -EAGAIN : 0;
}

int pf_stage_commit_begin(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c)
{
	if (!pool->log || !inode->stage || inode->stage->nr > COMMIT_BLOCKS_MAX || pf_pool_writable(pool) ||
	    pf_breaks(pool->env, PF_BREAK_MAP_BEFORE_DATA))
		return -EAGAIN;
	*c = (struct pf_stage_commit){ .write = write_of(inode) };
	int err = pf_block_prepare(pool, &c->write);
	if (err)
		return settle(pool, inode, err);
	pf_hold_enter(&pool->sync_hold);
	err = pf_intent_file_with(pool, inode, &c->write, &c->log_writes);
	if (err)
		return finish(pool, inode, c, err);
	pf_inode_begin_commit(inode);
	return 0;
}

int pf_stage_commit_end(struct pf_pool *pool, struct pf_inode *inode, struct pf_stage_commit *c, int promised)
{
	int err = finish(pool, inode, c, promised);
	pf_inode_end_commit(inode);
	return err;
}

/* The oldest inode with staged blocks, pinned; or NULL. */
static struct pf_inode *next_staged(struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->staging_lock);
	struct pf_inode *inode = pool->staged_first;
	if (inode)
		pf_inode_pin(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
	return inode;
}

/* A drain that fails leaves its inode on the list: it moves to the end, so that the others have their turn. */
static void move_to_end(struct pf_pool *pool, struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->staging_lock);
	list_remove(pool, inode);
	list_append(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
}

static int drain_one(struct pf_pool *pool, struct pf_inode *inode)
{
	pf_inode_lock(inode);
	int err = pf_stage_drain(pool, inode);
	if (err)
		move_to_end(pool, inode);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

static unsigned count_staged(struct pf_pool *pool)
{
	unsigned nr = 0;
	pthread_mutex_lock(&pool->staging_lock);
	for (struct pf_inode *i = pool->staged_first; i; i = i->staged_next)
		nr++;
	pthread_mutex_unlock(&pool->staging_lock);
	return nr;
}

int pf_stage_drain_all(struct pf_pool *pool)
{
	int first_err = 0;
	struct pf_inode *inode;
	uint64_t nr_failures = atomic_load(&pool->drain_failures);
	/* what is staged meanwhile is not waited for */
	for (unsigned nr = count_staged(pool); nr && (inode = next_staged(pool)); nr--) {
		int err = drain_one(pool, inode);
		if (!first_err)
			first_err = err;
	}
	/* one that failed in another thread may have moved behind those counted */
	if (!first_err && atomic_load(&pool->drain_failures) != nr_failures)
		first_err = atomic_load(&pool->drain_error);
	return first_err;
}

int pf_stage_balance(struct pf_pool *pool)
{
	struct pf_inode *inode;
	int err = 0;
	while (!err && (atomic_load(&pool->staged_blocks) > pool->staged_limit || pf_staging_presses(pool)) &&
	       (inode = next_staged(pool)))
		err = drain_one(pool, inode);
	return atomic_load(&pool->staged_blocks) > 2 * pool->staged_limit ? err : 0;
}

bool pf_stage_gives_way(struct pf_pool *pool, int err, bool *tried)
{
	if (err != -ENOSPC || *tried || !atomic_load(&pool->staged_blocks))
		return false;
	*tried = true;
	pf_stage_drain_all(pool); /* failures are kept with the inodes */
	return true;
}
