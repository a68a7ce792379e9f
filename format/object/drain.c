/* SPDX-License-Identifier: MIT */
#include "object/drain.h"

#include "object/data.h"
#include "object/path.h"
#include "object/stage_int.h"

#include <stdlib.h>
#include <string.h>

/* A batch has its I/O at once. One that gathers scattered blocks needs a buffer of PF_SEGMENT_BYTES, one of a single block none. */
#define BATCH_WEIGHT    64u
#define SCATTERED_WEIGHT 16u

/* -- one stage --------------------------------------------------------------------------------------------------------------- */
struct pf_write pf_stage_write_of(struct pf_stage *s)
{
	return (struct pf_write){
		.data_id = s->inode->item.data_id,
		.place = &s->inode->place,
		.blocks = s->blocks,
		.nr_blocks = s->nr,
	};
}

static void note_failure(struct pf_pool *pool, const struct pf_stage *s, int err)
{
	struct pf_inode *inode = s->inode;
	char path[512];
	if (!inode->write_error) {
		pf_path_of(pool, inode, path, sizeof(path));
		pf_log(pool->env, PF_LOG_ERROR, "%s: writing %u blocks failed: %s; they are kept in memory and tried again; "
		       "check the members' disks and their free space", path, s->nr, pf_strerror(err));
	}
	inode->write_error = err;
	atomic_store(&pool->drain_error, err);
	atomic_fetch_add(&pool->drain_failures, 1);
}

static int map_some(struct pf_pool *pool, struct pf_stage *s, unsigned from, unsigned nr, enum pf_map_how how)
{
	struct pf_inode *inode = s->inode;
	struct pf_write some = { .data_id = s->write.data_id, .pieces = s->write.pieces + from, .nr_pieces = nr };
	struct pf_change change;
	if (how == PF_MAP_LOCKING)
		pf_inode_lock_busy(inode);
	pf_change_init(&change, inode);
	change.tree_size = s->size;
	change.write = &some;
	change.durable = how == PF_MAP_PROMISED;
	if (how == PF_MAP_LOCKING)
		change.sealed = &s->times; /* what was written since then is not in it; nothing else has changed the times */
	int err = pf_data_apply(pool, inode, &change);
	if (how != PF_MAP_LOCKING)
		return err;
	pthread_rwlock_unlock(&inode->lock);
	pf_thread_breathe(&pool->breath);
	return err;
}

int pf_stage_map(struct pf_pool *pool, struct pf_stage *s, unsigned *nr_mapped, enum pf_map_how how)
{
	const struct pf_write *w = &s->write;
	bool wanted = w->nr_pieces > pool->map_max && (how == PF_MAP_LOCKED || how == PF_MAP_LOCKING);
	bool broken = wanted && pf_breaks(pool->env, PF_BREAK_DRAIN_IN_PARTS), hold = wanted && !broken;
	int err = 0;
	if (hold)
		pf_hold_enter(&pool->sync_hold);
	while (!err && *nr_mapped < w->nr_pieces) {
		unsigned left = w->nr_pieces - *nr_mapped, nr = left < pool->map_max ? left : pool->map_max;
		err = map_some(pool, s, *nr_mapped, nr, how);
		*nr_mapped += err ? 0 : nr;
		if (broken)
			pool->checkpoint(pool);
	}
	if (hold)
		pf_hold_leave(&pool->sync_hold);
	return err;
}

int pf_stage_end_write(struct pf_pool *pool, struct pf_stage *s, unsigned nr_mapped, int err)
{
	unsigned nr_blocks = 0;
	for (unsigned i = 0; err && i < nr_mapped; i++)
		nr_blocks += s->write.pieces[i].nr;
	pf_block_end_partly(pool, &s->write, nr_mapped);
	if (nr_blocks)
		pf_stage_trim(pool, s, nr_blocks);
	if (err) {
		note_failure(pool, s, err);
		return err;
	}
	s->inode->write_error = 0;
	pf_stage_release(pool, s);
	return 0;
}

/* Exclusive lock of the idle inode. */
static int drain_locked(struct pf_pool *pool, struct pf_stage *s)
{
	unsigned nr_mapped = 0;
	int err = pf_pool_writable(pool);
	s->write = pf_stage_write_of(s);
	if (!err)
		err = pf_block_write(pool, &s->write);
	if (!err)
		err = pf_stage_map(pool, s, &nr_mapped, PF_MAP_LOCKED);
	return pf_stage_end_write(pool, s, nr_mapped, err);
}

int pf_stage_drain(struct pf_pool *pool, struct pf_inode *inode)
{
	int err = inode->sealed ? drain_locked(pool, inode->sealed) : 0;
	if (err || !inode->stage)
		return err;
	inode->stage->size = inode->item.size;
	return drain_locked(pool, inode->stage);
}

/* -- a batch, which is linked by 'batch', without locks ------------------------------------------------------------------------ */
static void prepare(struct pf_pool *pool, struct pf_stage *s)
{
	s->err = pf_pool_writable(pool);
	if (s->err)
		return;
	if (pf_breaks(pool->env, PF_BREAK_MAP_BEFORE_DATA))
		s->err = pf_block_write(pool, &s->write);
	else
		s->err = pf_block_prepare(pool, &s->write);
}

static bool has_requests(const struct pf_stage *s)
{
	return !s->err && s->write.io;
}

/* @s or the next one of its batch that has requests. */
static struct pf_stage *with_requests(struct pf_stage *s)
{
	while (s && !has_requests(s))
		s = s->batch;
	return s;
}

/* Each request has its result then. */
static void run_requests(struct pf_pool *pool, struct pf_stage *batch)
{
	unsigned total = 0, nr, nr_files = 0, at = 0;
	batch = with_requests(batch);
	for (struct pf_stage *s = batch; s; s = with_requests(s->batch)) {
		pf_block_requests(&s->write, &nr);
		total += nr;
		nr_files++;
	}
	struct pf_aio_req *all = nr_files > 1 ? malloc(total * sizeof(*all)) : NULL;
	for (struct pf_stage *s = batch; s; s = with_requests(s->batch)) {
		struct pf_aio_req *reqs = pf_block_requests(&s->write, &nr);
		if (all)
			memcpy(all + at, reqs, nr * sizeof(*all));
		else
			pf_aio_run_behind(pool->set->aio, reqs, nr);
		at += nr;
	}
	if (!all)
		return;
	pf_aio_run_behind(pool->set->aio, all, total);
	at = 0;
	for (struct pf_stage *s = batch; s; s = with_requests(s->batch)) {
		struct pf_aio_req *reqs = pf_block_requests(&s->write, &nr);
		for (unsigned i = 0; i < nr; i++)
			reqs[i].result = all[at++].result;
	}
	free(all);
}

static void leave_queue(struct pf_pool *pool, struct pf_stage *s)
{
	pthread_mutex_lock(&pool->staging_lock);
	TAILQ_REMOVE(&pool->drains, s, drain);
	pthread_cond_broadcast(&pool->drains_changed);
	pthread_mutex_unlock(&pool->staging_lock);
}

static void finish(struct pf_pool *pool, struct pf_stage *s)
{
	struct pf_inode *inode = s->inode;
	unsigned nr_mapped = 0;
	bool moved;
	if (has_requests(s))
		s->err = pf_block_complete(pool, &s->write, &moved);
	if (!s->err)
		s->err = pf_stage_map(pool, s, &nr_mapped, PF_MAP_LOCKING);
	int err = s->err;
	pf_inode_lock_busy(inode);
	if (!err)
		leave_queue(pool, s); /* it is gone afterwards */
	pf_stage_end_write(pool, s, nr_mapped, err);
	if (err)
		leave_queue(pool, s); /* who waits for it finds its failure noted */
	pf_inode_end(inode);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
}

static void run_batch(struct pf_pool *pool, struct pf_stage *batch)
{
	for (struct pf_stage *s = batch; s; s = s->batch)
		prepare(pool, s);
	run_requests(pool, batch);
	while (batch) {
		struct pf_stage *s = batch;
		batch = s->batch; /* it is gone afterwards */
		finish(pool, s);
	}
}

/* -- the queue ------------------------------------------------------------------------------------------------------------------ */
void pf_drain_later(struct pf_pool *pool, struct pf_inode *inode)
{
	pf_stage_seal(inode);
	struct pf_stage *s = inode->sealed;
	s->write = pf_stage_write_of(s);
	s->write.behind = true;
	s->taken = false;
	pf_inode_pin(pool, inode);
	pf_inode_begin(inode, PF_DRAINING);
	pthread_mutex_lock(&pool->staging_lock);
	s->number = ++pool->nr_drains;
	TAILQ_INSERT_TAIL(&pool->drains, s, drain);
	pthread_cond_broadcast(&pool->drains_changed);
	pthread_mutex_unlock(&pool->staging_lock);
}

/* Staging lock held. The first that nobody has begun, up to number @last, of @inode unless that is NULL. */
static struct pf_stage *find_untaken(struct pf_pool *pool, const struct pf_inode *inode, uint64_t last)
{
	struct pf_stage *s;
	TAILQ_FOREACH(s, &pool->drains, drain)
	{
		if (s->number > last)
			break;
		if (!s->taken && (!inode || s->inode == inode))
			return s;
	}
	return NULL;
}

static struct pf_stage *take(struct pf_pool *pool, const struct pf_inode *inode, uint64_t last)
{
	pthread_mutex_lock(&pool->staging_lock);
	struct pf_stage *s = find_untaken(pool, inode, last);
	if (s) {
		s->taken = true;
		s->batch = NULL;
	}
	pthread_mutex_unlock(&pool->staging_lock);
	return s;
}

static unsigned step(struct pf_pool *pool, uint64_t last)
{
	struct pf_stage *batch = NULL, **end = &batch, *s;
	unsigned nr = 0;
	for (unsigned weight = 0; weight < BATCH_WEIGHT && (s = take(pool, NULL, last)); nr++) {
		weight += s->nr > 1 ? SCATTERED_WEIGHT : 1;
		*end = s;
		end = &s->batch;
	}
	run_batch(pool, batch);
	return nr;
}

unsigned pf_drain_step(struct pf_pool *pool)
{
	return step(pool, UINT64_MAX);
}

bool pf_drain_help(struct pf_pool *pool, struct pf_inode *inode)
{
	struct pf_stage *s = take(pool, inode, UINT64_MAX);
	if (s)
		run_batch(pool, s);
	return s;
}

void pf_drain_start(struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->staging_lock);
	atomic_store(&pool->drains_later, true);
	pthread_mutex_unlock(&pool->staging_lock);
}

bool pf_drain_wait(struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->staging_lock);
	bool more;
	while (!(more = find_untaken(pool, NULL, UINT64_MAX)) && atomic_load(&pool->drains_later))
		pthread_cond_wait(&pool->drains_changed, &pool->staging_lock);
	pthread_mutex_unlock(&pool->staging_lock);
	return more;
}

void pf_drain_stop(struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->staging_lock);
	atomic_store(&pool->drains_later, false);
	pthread_cond_broadcast(&pool->drains_changed);
	pthread_mutex_unlock(&pool->staging_lock);
}

/* All that had been left to who drains, up to now; others may go on leaving more. */
static void do_all(struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->staging_lock);
	uint64_t last = pool->nr_drains;
	pthread_mutex_unlock(&pool->staging_lock);
	while (step(pool, last))
		;
	pf_env_waits(pool->env, true);
	pthread_mutex_lock(&pool->staging_lock);
	/* they are in the order of their numbers; what was taken needs nobody */
	while (!TAILQ_EMPTY(&pool->drains) && TAILQ_FIRST(&pool->drains)->number <= last)
		pthread_cond_wait(&pool->drains_changed, &pool->staging_lock);
	pthread_mutex_unlock(&pool->staging_lock);
	pf_env_waits(pool->env, false);
}

/* -- several files ---------------------------------------------------------------------------------------------------------------- */
static int drain_one(struct pf_pool *pool, struct pf_inode *inode)
{
	pf_inode_lock(pool, inode);
	int err = pf_stage_drain(pool, inode);
	if (err)
		pf_stage_move_to_end(pool, inode);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

/* What could not be drained before is tried first, by itself. Gives back the pin. */
static unsigned leave_one(struct pf_pool *pool, struct pf_inode *inode)
{
	unsigned weight = 0;
	pf_inode_lock(pool, inode);
	if (inode->sealed && drain_locked(pool, inode->sealed)) {
		pf_stage_move_to_end(pool, inode);
	} else if (inode->stage) {
		weight = inode->stage->nr > 1 ? SCATTERED_WEIGHT : 1;
		/* in this order: another who drains all finds it at its place, or among the drains */
		pf_drain_later(pool, inode);
		pf_stage_move_to_end(pool, inode);
	}
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return weight;
}

int pf_stage_drain_all(struct pf_pool *pool)
{
	struct pf_inode *inode;
	uint64_t nr_failures = atomic_load(&pool->drain_failures);
	unsigned weight = 0;
	/* what is staged meanwhile is not waited for */
	for (unsigned nr = pf_stage_count(pool); nr && (inode = pf_stage_first(pool)); nr--) {
		weight += leave_one(pool, inode);
		if (weight < BATCH_WEIGHT)
			continue;
		weight = 0;
		pf_drain_step(pool);
	}
	do_all(pool);
	return atomic_load(&pool->drain_failures) != nr_failures ? atomic_load(&pool->drain_error) : 0;
}

int pf_stage_balance(struct pf_pool *pool)
{
	struct pf_inode *inode;
	int err = 0;
	while (!err && (atomic_load(&pool->staged_blocks) > pool->staged_limit || pf_staging_presses(pool)) &&
	       (inode = pf_stage_first(pool)))
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
