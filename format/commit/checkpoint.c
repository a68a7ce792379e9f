/* SPDX-License-Identifier: MIT */
#include "commit/checkpoint.h"

#include "block/pressure.h"
#include "block/write.h"
#include "commit/commit_int.h"
#include "object/data.h"
#include "object/orphan.h"
#include "object/stage.h"

#include <stdlib.h>
#include <string.h>

enum { NODES_AT_ONCE = 32 /* that become clean under one hold of the tree lock */ };

uint32_t pf_commit_all_mask(const struct pf_pool *pool)
{
	uint32_t all = pool->set->nr == 32 ? UINT32_MAX : (1u << pool->set->nr) - 1;
	return all & ~pf_set_failed(pool->set);
}

/* The flush that makes G's nodes, maps and data durable. */
static int flush_written(struct pf_pool *pool)
{
	uint32_t mask = pf_commit_all_mask(pool);
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_BEFORE_SUPER))
		return 0;
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_ONE_MEMBER))
		mask &= ~(1u << (pool->set->nr - 1));
	return pf_set_flush(pool->set, mask, NULL);
}

/* From T on records are of the next group (rule 13). A pool whose log has still to be redone keeps naming it. */
static void freeze_log(struct pf_pool *pool, struct pf_super *next)
{
	if (!pool->log)
		return;
	pf_log_place(next);
	pf_log_move(pool->log, next);
	next->log_start = pf_log_freeze(pool->log);
	next->log_epoch = pf_log_epoch(pool->log);
	if (pf_breaks(pool->env, PF_BREAK_LOG_START_EARLY))
		pf_log_release(pool->log, next->log_start);
}

static int freeze(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	struct pf_space_stats space;
	struct pf_tree_stats tree;
	pthread_mutex_lock(&pool->super_lock);
	c->next = pool->super;
	pthread_mutex_unlock(&pool->super_lock);
	c->sealed = false;
	c->suspects = pf_set_take_suspects(pool->set);
	pf_hold_close(&pool->sync_hold);
	pf_tree_lock(pool->tree);
	uint64_t generation = c->next.generation = pool->open_generation++;
	pf_tree_freeze(pool->tree, generation);
	pf_space_freeze(pool->space);
	pf_commit_record(pool);
	freeze_log(pool, &c->next);
	c->next.counters = pool->counters;
	pf_space_stats(pool->space, &space);
	pf_tree_unlock(pool->tree);
	pf_hold_open(&pool->sync_hold);
	pf_tree_stats(pool->tree, &tree); /* frozen nodes stay as many until this checkpoint is durable */
	c->next.flags &= ~(uint64_t)PF_SUPER_CLEAN;
	c->next.written_ns = pf_now_ns(pool->env);
	/* a number taken after the freeze is merely skipped after a crash */
	c->next.counters.next_id = c->next.counters.next_orphan = atomic_load(&pool->next_id);
	c->next.counters.node_blocks = space.node_blocks + tree.frozen_nodes * PF_NODE_BLOCKS * pf_set_node_copies(pool->set);
	pthread_mutex_lock(&c->lock);
	c->frozen = generation;
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static int write_nodes(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	int err = 0;
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_BEFORE_NODES))
		err = flush_written(pool);
	pf_space_ask_hosts(pool->space);
	return err ? err : pf_tree_write_frozen(pool->tree, &c->next.root, &c->next.root_level);
}

static int write_maps(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	int err = 0;
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_BEFORE_MAPS))
		err = flush_written(pool);
	return err ? err : pf_space_write(pool->space, c->next.generation, &c->next, &c->changed_mask);
}

static int flush_all(struct pf_pool *pool)
{
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_BEFORE_NODES | PF_BREAK_FLUSH_BEFORE_MAPS))
		return 0;
	return flush_written(pool);
}

static uint32_t super_mask(const struct pf_pool *pool)
{
	const struct pf_commit *c = pool->commit;
	return (pf_super_meta(&c->next) | c->changed_mask | c->suspects) & pf_commit_all_mask(pool);
}

static int write_super(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	int err = 0;
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_BEFORE_COMPLETION))
		err = pf_set_flush(pool->set, super_mask(pool), NULL);
	if (!c->sealed)
		pf_commit_record(pool);
	c->sealed = true;
	struct pf_super super = c->next;
	if (pf_breaks(pool->env, PF_BREAK_LOG_START_LATE))
		super.log_start++;
	return err ? err : pf_set_write_super(pool->set, &super, super_mask(pool), &c->unwritten);
}

static int flush_super(struct pf_pool *pool)
{
	if (pf_breaks(pool->env, PF_BREAK_FLUSH_AFTER_SUPER | PF_BREAK_FLUSH_BEFORE_COMPLETION))
		return 0;
	return pf_set_flush(pool->set, super_mask(pool), NULL);
}

/* All operations wait for the tree lock, and the nodes may be tens of thousands. The superblocks are on disk: whoever comes in between
 * finds nodes that are clean and others that are not yet so, and to the rest of the pool G is not durable before all are. */
static void thaw_tree(struct pf_pool *pool)
{
	bool more = true;
	while (more) {
		pf_tree_lock(pool->tree);
		more = pf_tree_durable(pool->tree, NODES_AT_ONCE);
		pf_tree_unlock(pool->tree);
	}
}

static int durable(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	thaw_tree(pool);
	atomic_store_explicit(&pool->durable_generation, c->next.generation, memory_order_release);
	atomic_store(&pool->stored_id, c->next.counters.next_id);
	pf_icache_durable(pool, c->next.generation);
	if (pool->log)
		pf_log_release(pool->log, c->next.log_start);
	pf_space_durable(pool->space); /* long lists take a while: the tree need not wait for it */
	pthread_mutex_lock(&pool->super_lock);
	pool->super = c->next;
	pthread_mutex_unlock(&pool->super_lock);
	pthread_mutex_lock(&c->lock);
	c->durable = c->next.generation;
	c->recorded = pf_super_failed(&c->next);
	pthread_mutex_unlock(&c->lock);
	pf_block_late_writes(pool);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct pf_pool *pool);
	bool final; /* a failure is not tried again */
} steps[] = {
	[PF_COMMIT_IDLE] = { "freezing the tree", freeze, false },
	[PF_COMMIT_NODES] = { "writing tree nodes", write_nodes, false },
	[PF_COMMIT_MAPS] = { "writing free-space maps", write_maps, false },
	[PF_COMMIT_FLUSH] = { "flushing the members", flush_all, true },
	[PF_COMMIT_SUPER] = { "writing superblocks", write_super, false },
	[PF_COMMIT_FLUSH2] = { "flushing the superblocks", flush_super, true },
	[PF_COMMIT_DURABLE] = { "releasing freed space", durable, true },
};

static int run_phase(struct pf_pool *pool, enum pf_commit_phase phase)
{
	int err = 0;
	pf_commit_note_failures(pool);
	for (unsigned try = 0; try < PF_COMMIT_TRIES;) {
		uint64_t released = pf_space_released(pool->space);
		err = steps[phase].run(pool);
		bool fewer = pf_commit_note_failures(pool); /* members: it is done, or can be, without them */
		if (err && fewer)
			continue;
		if (!err || steps[phase].final)
			break;
		if (err == -ENOSPC && pf_space_await_release(pool->space, released))
			continue;
		/* nodes that met a full host try once more, where it has allocated (pf_space_nodes_at_home()) */
		if (err == -ENOSPC && !pf_space_retry_maps(pool->space) && try)
			break;
		try++;
		if (try == PF_COMMIT_TRIES && pf_commit_give_up(pool, phase, err) && pf_commit_note_failures(pool))
			try = 0;
	}
	if (err == -ENOSPC && steps[phase].final)
		err = -EIO; /* what a flush could not write is lost: there is nothing to wait for */
	if (err == -ENOSPC) {
		pf_log(pool->env, PF_LOG_ERROR, "%s: no space, in the pool or on the filesystem that holds an image member; "
		       "changes are kept in memory until there is room", steps[phase].name);
	} else if (err) {
		pf_pool_fail(pool, steps[phase].name, err);
	}
	return err;
}

/* One step, after the one that another thread is at. A checkpoint is begun only when none up to @generation has been. */
static int step(struct pf_pool *pool, uint64_t generation)
{
	struct pf_commit *c = pool->commit;
	pthread_mutex_lock(&c->lock);
	while (c->stepping)
		pthread_cond_wait(&c->changed, &c->lock);
	enum pf_commit_phase phase = c->phase;
	int err = atomic_load(&pool->failed);
	bool idle = !err && phase == PF_COMMIT_IDLE && c->frozen >= generation && !pf_commit_unrecorded(pool);
	c->stepping = !err && !idle;
	pthread_mutex_unlock(&c->lock);
	if (err || idle)
		return err ? -EIO : 0;
	err = run_phase(pool, phase);
	pthread_mutex_lock(&c->lock);
	if (!err)
		c->phase = phase == PF_COMMIT_DURABLE ? PF_COMMIT_IDLE : phase + 1;
	if (err) {
		c->nr_failures++;
		c->last_error = err;
	}
	c->stepping = false;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return err ? err : 1;
}

int pf_commit_step(struct pf_pool *pool, bool start)
{
	return step(pool, start ? UINT64_MAX : 0);
}

int pf_commit_reach(struct pf_pool *pool, uint64_t generation)
{
	struct pf_commit *c = pool->commit;
	int err = 0;
	pf_env_waits(pool->env, true);
	pthread_mutex_lock(&c->lock);
	uint64_t nr_failures = c->nr_failures;
	while (!err && (c->durable < generation || pf_commit_unrecorded(pool))) {
		if (c->nr_failures != nr_failures) {
			err = c->last_error;
			break;
		}
		pthread_mutex_unlock(&c->lock);
		err = step(pool, generation);
		err = err < 0 ? err : 0;
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	pf_env_waits(pool->env, false);
	return err;
}

int pf_commit_wait(struct pf_pool *pool, bool force)
{
	if (pool->read_only)
		return 0;
	if (atomic_load(&pool->failed))
		return -EIO;
	pf_tree_lock(pool->tree);
	bool dirty = force || pf_tree_dirty(pool->tree);
	/* what is not dirty may still be in the checkpoint under way, which c->frozen names only some time after the freeze */
	uint64_t generation = pool->open_generation - (dirty ? 0 : 1);
	pf_tree_unlock(pool->tree);
	return pf_commit_reach(pool, generation);
}

void pf_commit_request(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	pthread_mutex_lock(&c->lock);
	if (c->wanted <= c->frozen) {
		c->wanted = c->frozen + 1;
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Rule 18: before ENOSPC is said, the reaper has finished and a checkpoint has released what was freed. */
static int make_room(struct pf_pool *pool)
{
	int err;
	pf_space_retry_maps(pool->space);
	while ((err = pf_orphan_reap(pool)) > 0)
		;
	struct pf_space_stats stats;
	pf_space_stats(pool->space, &stats);
	if (err || !stats.pending_blocks)
		return err;
	err = pf_commit_wait(pool, true);
	pf_space_await_release(pool->space, pf_space_released(pool->space));
	return err;
}

static int checkpoint(struct pf_pool *pool)
{
	return pf_commit_wait(pool, true);
}

/* Rule 16. Above half of the limit a checkpoint is begun; at the limit the operation waits for it. */
static int throttle(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	if (c->workers && pf_tree_dirty(pool->tree) <= pf_dirty_limit(pool)) {
		pf_commit_request(pool);
		return 0;
	}
	return pf_commit_wait(pool, false);
}

int pf_commit_create(struct pf_pool *pool)
{
	struct pf_commit *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, &attr);
	pthread_condattr_destroy(&attr);
	c->frozen = c->durable = c->wanted = pool->super.generation;
	c->recorded = pf_super_failed(&pool->super);
	pool->commit = c;
	pool->make_room = make_room;
	pool->throttle = throttle;
	pool->checkpoint = checkpoint;
	pool->request = pf_commit_request;
	return 0;
}

void pf_commit_destroy(struct pf_pool *pool)
{
	if (!pool->commit)
		return;
	pthread_cond_destroy(&pool->commit->changed);
	pthread_mutex_destroy(&pool->commit->lock);
	free(pool->commit);
	pool->commit = NULL;
}

void pf_commit_new_epoch(const struct pf_pool *pool, struct pf_super *super, uint64_t last)
{
	memmove(super->epochs + 1, super->epochs, (PF_MAX_EPOCHS - 1) * sizeof(*super->epochs));
	super->epochs[0] = (struct pf_epoch){
		.id = pool->env->random64(pool->env->arg) | 1,
		.time_ns = pf_now_ns(pool->env),
		.last_generation = last,
	};
}

int pf_commit_super(struct pf_pool *pool, struct pf_super *super, uint32_t mask)
{
	struct pf_commit *c = pool->commit;
	super->generation = pool->open_generation;
	super->written_ns = pf_now_ns(pool->env);
	/* used up even if this fails: no two superblocks of one generation say different things */
	pool->open_generation++;
	int err = pf_set_write_super(pool->set, super, mask, &c->unwritten);
	if (!err)
		err = pf_set_flush(pool->set, mask, NULL);
	if (err)
		return err;
	atomic_store_explicit(&pool->durable_generation, super->generation, memory_order_release);
	atomic_store(&pool->stored_id, super->counters.next_id);
	pthread_mutex_lock(&c->lock);
	c->frozen = c->durable = super->generation;
	c->recorded = pf_super_failed(super);
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_lock(&pool->super_lock);
	pool->super = *super;
	pthread_mutex_unlock(&pool->super_lock);
	return 0;
}
