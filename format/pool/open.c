/* SPDX-License-Identifier: MIT
 * Opening and closing a pool. */
#include "block/write.h"
#include "commit/checkpoint.h"
#include "commit/replay.h"
#include "object/drain.h"
#include "object/inode.h"
#include "object/orphan.h"
#include "object/stage.h"
#include "ondisk/ondisk_log.h"
#include "pool/pool_int.h"
#include "space/discard.h"

#include <stdlib.h>
#include <string.h>

#define STAGED_MAX_BYTES (UINT64_C(64) << 20)
#define BUFFERS_KEPT 8

static void init_locks(struct pf_pool *pool)
{
	pthread_mutex_init(&pool->names_lock, NULL);
	pthread_mutex_init(&pool->super_lock, NULL);
	pthread_mutex_init(&pool->staging_lock, NULL);
	pthread_cond_init(&pool->drains_changed, NULL);
	TAILQ_INIT(&pool->drains);
	pthread_mutex_init(&pool->reap_lock, NULL);
	pf_hold_init(&pool->sync_hold);
}

static void set_state(struct pf_pool *pool, const struct pf_pool_options *options)
{
	const struct pf_super *super = &pool->set->super;
	pool->super = *super;
	pool->read_only = options->read_only;
	pool->lends = options->lends;
	pool->data_csum = pf_has(&super->features, PF_FEAT_DATA_CSUM);
	pool->reclaim = pf_has(&super->features, PF_FEAT_RECLAIM);
	pool->placement = super->placement;
	pool->hash_seed = super->hash_seed;
	pool->was_clean = super->flags & PF_SUPER_CLEAN;
	pool->counters = super->counters;
	atomic_store(&pool->next_id, super->counters.next_id);
	atomic_store(&pool->stored_id, super->counters.next_id);
	pool->open_generation = super->generation + 1;
	atomic_store(&pool->durable_generation, super->generation);
}

/* Reading needs no maps: damaged tables do not keep a pool from being opened read-only. */
static int open_space(struct pf_pool *pool, bool fresh, struct pf_diag *diag)
{
	struct pf_diag why = { "" };
	int err = pf_space_open(pool->set, fresh, &pool->space, &why);
	if (pf_is_damage(err) && pool->read_only) {
		pf_log(pool->env, PF_LOG_WARNING, "%s; free space is not known", why.text);
		err = pf_space_open(pool->set, true, &pool->space, diag);
	} else if (err) {
		pf_diag_set(diag, err, "%s", why.text);
	}
	return err;
}

int pf_pool_assemble(struct pf_set *set, const struct pf_pool_options *options, bool fresh, struct pf_pool **out,
		     struct pf_diag *diag)
{
	uint64_t cache = options->cache_bytes ? options->cache_bytes : PF_CACHE_DEFAULT;
	struct pf_pool *pool = calloc(1, sizeof(*pool));
	if (!pool) {
		pf_set_close(set);
		return pf_diag_set(diag, -ENOMEM, "out of memory");
	}
	pool->env = set->env;
	pool->set = set;
	init_locks(pool);
	set_state(pool, options);
	pool->dirty_by_cache = cache / PF_NODE_SIZE / 4;
	pool->commit_interval_ms = options->commit_interval_ms ? options->commit_interval_ms : PF_COMMIT_INTERVAL_DEFAULT;
	uint64_t staged = cache / 4 < STAGED_MAX_BYTES ? cache / 4 : STAGED_MAX_BYTES;
	pool->staged_limit = staged / PF_BLOCK_SIZE;
	pool->stage_max = PF_STAGE_BLOCKS;
	pool->map_max = PF_STAGE_MAP_PIECES;
	struct pf_tree_config config = { .cache_bytes = cache / 2 };
	int err = pf_bufpool_create(PF_SEGMENT_BYTES, BUFFERS_KEPT, set->aio, &pool->buffers);
	if (!err)
		err = pf_bufpool_create(PF_BLOCK_SIZE, (unsigned)pool->staged_limit, set->aio, &pool->pages);
	if (!err)
		err = pf_icache_create(&pool->icache);
	if (!err)
		err = open_space(pool, fresh, diag);
	if (!err) {
		pf_space_set_node_blocks(pool->space, set->super.counters.node_blocks);
		err = pf_tree_open(set, pool->space, &config, &pool->tree);
	}
	if (!err)
		err = pf_commit_create(pool);
	if (err) {
		pf_pool_free(pool);
		return pf_diag_set(diag, err, "opening the pool failed: %s", pf_strerror(err));
	}
	*out = pool;
	return 0;
}

void pf_pool_free(struct pf_pool *pool)
{
	if (!pool)
		return;
	pf_commit_stop_workers(pool);
	pf_stage_drop_all(pool);
	pf_block_drop_late_writes(pool);
	free(pool->pending);
	pf_icache_destroy(pool->icache);
	pf_log_close(pool->log);
	pf_commit_destroy(pool);
	if (pool->tree)
		pf_tree_close(pool->tree);
	if (pool->space)
		pf_space_close(pool->space);
	pf_bufpool_destroy(pool->buffers);
	pf_bufpool_destroy(pool->pages);
	pf_set_close(pool->set);
	pthread_mutex_destroy(&pool->names_lock);
	pthread_mutex_destroy(&pool->super_lock);
	pthread_mutex_destroy(&pool->staging_lock);
	pthread_cond_destroy(&pool->drains_changed);
	pthread_mutex_destroy(&pool->reap_lock);
	pf_hold_destroy(&pool->sync_hold);
	free(pool);
}

/* What was given out after the last checkpoint before a crash is not given out again (PF_ID_JUMP). It is stored with the epoch, so the
 * next crash jumps from here. */
static void skip_ids(struct pf_pool *pool, struct pf_super *super)
{
	uint64_t next = super->counters.next_id;
	if (pool->was_clean || next > PF_KEY_FIELD_MAX - PF_ID_JUMP)
		return;
	super->counters.next_id = super->counters.next_orphan = next + PF_ID_JUMP;
	atomic_store(&pool->next_id, next + PF_ID_JUMP);
}

/* Rule 19: the epoch of this mount is durable on the metadata members before anything else is written. @new_log: the log begins
 * anew under it; else what it holds has to be redone first. */
static int begin_epoch(struct pf_pool *pool, bool new_log)
{
	struct pf_super super = pool->super;
	pf_commit_new_epoch(pool, &super, super.generation);
	if (pf_breaks(pool->env, PF_BREAK_REPLAY_OLD_EPOCH))
		super.epochs[0].id = super.epochs[1].id;
	/* after a crash every member gets it: in the slot that follows the last good one a torn superblock may lie */
	uint32_t mask = pf_super_meta(&super);
	for (unsigned i = 0; i < pool->set->nr; i++) {
		if (!pool->was_clean || pool->set->members[i].super_generation != super.generation)
			mask |= 1u << i;
	}
	super.flags &= ~(uint64_t)PF_SUPER_CLEAN;
	skip_ids(pool, &super);
	if (new_log && pf_has(&super.features, PF_FEAT_INTENT_LOG)) {
		super.log_epoch = super.epochs[0].id;
		pf_log_place(&super);
	}
	return pf_commit_super(pool, &super, mask);
}

/* Where the log goes on: behind what a crash left. */
static int open_log(struct pf_pool *pool, uint64_t first_lsn)
{
	struct pf_super super = pool->super;
	if (!pf_has(&super.features, PF_FEAT_INTENT_LOG))
		return 0;
	pf_log_place(&super);
	return pf_log_open(pool->set, &super, super.epochs[0].id, first_lsn, &pool->log);
}

/* After this the log is empty, and written to under the new epoch. */
static int replay(struct pf_pool *pool, const struct pf_log_scan *scan, bool salvage, struct pf_diag *diag)
{
	int err = scan->nr_records ? pf_replay(pool, scan, salvage, diag) : 0;
	if (err || pool->read_only)
		return err;
	err = open_log(pool, scan->nr_records ? scan->end + PF_LOG_CHUNK_BLOCKS : pool->super.log_start);
	if (!err && scan->nr_records)
		err = pf_commit_wait(pool, true);
	return err ? pf_diag_set(diag, err, "the first checkpoint after the crash failed: %s; check the members' disks",
				 pf_strerror(err)) : 0;
}

static int recover(struct pf_pool *pool, const struct pf_log_scan *scan, bool salvage, struct pf_diag *diag)
{
	int err = replay(pool, scan, salvage, diag);
	if (err)
		return err;
	if (!pool->read_only) {
		err = pf_orphan_recover(pool);
		return err ? pf_diag_set(diag, err, "finishing interrupted deletions failed: %s; run fsck.poolfs, or mount read-only",
					 pf_strerror(err)) : 0;
	}
	err = pf_orphan_load_pending(pool);
	return err ? pf_diag_set(diag, err, "the tree cannot be read: %s; run fsck.poolfs", pf_strerror(err)) : 0;
}

/* Who does not want the log redone does not care for damage of it: fsck says so by itself. */
static int scan_log(struct pf_set *set, const struct pf_super *super, const struct pf_pool_options *options,
		    struct pf_log_scan *scan, bool *needed, struct pf_diag *diag)
{
	struct pf_diag why = { "" };
	int err = pf_log_scan(set, super, scan, &why);
	*needed = scan->nr_records || (err && !options->salvage_log);
	if (pf_is_damage(err) && options->salvage_log)
		pf_log(set->env, PF_LOG_WARNING, "%s: what comes after it is given up", why.text);
	if (pf_is_damage(err) && (options->salvage_log || options->no_recovery))
		return 0;
	return err ? pf_diag_set(diag, err, "%s", why.text) : 0;
}

int pf_pool_start(struct pf_set *set, const struct pf_pool_options *options, bool rebuild_maps, struct pf_pool **out,
		  struct pf_diag *diag)
{
	struct pf_pool *pool;
	struct pf_log_scan scan = { 0 };
	bool recovery = !options->no_recovery && !rebuild_maps, needed = false;
	if (set->nr > 1 || options->guard_single)
		pf_set_guard(set, options->silence_seconds);
	int err = pf_set_start_watch(set); /* without a limit there is none */
	if (err) {
		pf_set_close(set);
		return pf_diag_set(diag, err, "cannot start a thread: %s", pf_strerror(err));
	}
	err = pf_pool_assemble(set, options, rebuild_maps, &pool, diag);
	if (err)
		return err;
	/* first, because damage of the log has to be found before anything is written */
	if (pf_replay_needed(&pool->super))
		err = scan_log(set, &pool->super, options, &scan, &needed, diag);
	if (!err && !pool->read_only) {
		err = begin_epoch(pool, !needed);
		if (err)
			pf_diag_set(diag, err, "writing the superblocks failed: %s; check the members' disks", pf_strerror(err));
	}
	pool->log_pending = needed && !recovery;
	if (!err && recovery)
		err = recover(pool, &scan, options->salvage_log, diag);
	if (!err)
		pf_pool_begin_discards(pool, options->discard);
	pf_log_scan_free(&scan);
	if (err) {
		pf_pool_free(pool);
		return err;
	}
	if (pool->log)
		pf_set_allow_loss(set); /* what is written to two members, or may be lost, is from here on */
	*out = pool;
	return 0;
}

static unsigned set_flags(const struct pf_pool_options *options)
{
	return options->set_flags | (options->read_only ? 0 : PF_SET_WRITE);
}

int pf_pool_open(const char *const *paths, unsigned nr_paths, const struct pf_pool_options *options,
		 const struct pf_env *env, struct pf_pool **out, struct pf_diag *diag)
{
	struct pf_set *set;
	int err = pf_set_open(paths, nr_paths, set_flags(options), options->wait_ms, env, &set, diag);
	return err ? err : pf_pool_start(set, options, false, out, diag);
}

int pf_pool_open_ios(struct pf_io **ios, unsigned nr, const struct pf_pool_options *options, const struct pf_env *env,
		     struct pf_pool **out, struct pf_diag *diag)
{
	struct pf_set *set;
	int err = pf_set_open_ios(ios, nr, set_flags(options), env, &set, diag);
	return err ? err : pf_pool_start(set, options, false, out, diag);
}

/* What a failed member took with it is lost; everything else is written, and the pool as clean as it can be. */
static int make_clean(struct pf_pool *pool)
{
	int err = pf_commit_sync(pool);
	if (err && err != -PF_EDATA_LOST)
		return err;
	if (pool->log_pending)
		return 0; /* the next mount has to redo it */
	return pf_commit_clean(pool);
}

int pf_pool_close(struct pf_pool *pool)
{
	if (!pool)
		return 0;
	pf_commit_stop_workers(pool);
	int err = 0;
	if (!pool->read_only)
		err = atomic_load(&pool->failed) ? -EIO : make_clean(pool);
	if (!pool->read_only && !err)
		pf_pool_end_discards(pool);
	pf_pool_free(pool);
	return err;
}

void pf_pool_abandon(struct pf_pool *pool)
{
	pf_pool_free(pool);
}

int pf_pool_start_workers(struct pf_pool *pool)
{
	if (pool->read_only)
		return 0;
	return pf_commit_start_workers(pool, pool->commit_interval_ms);
}

int pf_pool_step(struct pf_pool *pool, bool start_checkpoint)
{
	if (pool->read_only)
		return 0;
	int did = pf_commit_step(pool, start_checkpoint);
	if (!did)
		did = pf_drain_step(pool) ? 1 : pf_orphan_reap(pool);
	return did ? did : pf_space_discard_step(pool->space);
}

/* Whoever asks is told no more than a number, and what is wrong may have been logged long ago, or be one error of many: so each
 * failure is in the log, with what to do. */
int pf_pool_sync(struct pf_pool *pool)
{
	int err = pf_commit_sync(pool);
	if (err && atomic_load(&pool->failed))
		pf_log(pool->env, PF_LOG_ERROR,
		       "sync: the pool has taken no changes since %s (logged when it happened); what was committed before is "
		       "safe; check the members' disks, unmount and run fsck.poolfs", pf_strerror(atomic_load(&pool->failed)));
	else if (err == -ENOSPC)
		pf_log(pool->env, PF_LOG_ERROR,
		       "sync: no space, in the pool or on the filesystem that holds an image member; what is not written stays in "
		       "memory: make room and sync again");
	else if (err == -PF_EDATA_LOST)
		pf_log(pool->env, PF_LOG_ERROR,
		       "sync: what was written last to a member before it failed is lost (fsync says of which files); everything else is "
		       "durable; check its disk, unmount and run fsck.poolfs");
	else if (err)
		pf_log(pool->env, PF_LOG_ERROR,
		       "sync: %s; what is not written stays in memory: check the members' disks and sync again", pf_strerror(err));
	return err;
}
