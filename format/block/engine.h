/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the layers block, object, commit and pool share: struct pf_pool. Private to format/.
 *
 * Invariants
 *   I1  Lock order: names_lock -> inode locks (ascending inode number) -> reap_lock -> sync_hold -> commit mutex -> staging_lock ->
 *       icache lock -> tree lock -> locks inside tree, space and member. One exception: object/drain.h.
 *   I2  'counters' and 'open_generation' change under the exclusive tree lock only; next_id is atomic, and a number that a
 *       failed operation took is never used again.
 *   I3  counters.data_blocks counts the blocks that extents name; orphan_blocks the part of them that no live inode names,
 *       no_csum_blocks the written ones without a CRC.
 *   I4  'failed' is set once, when a checkpoint cannot be completed on any metadata member any more; from then on every
 *       change returns -EROFS and every fsync -EIO.
 *
 * Uses: base, ondisk, member, log, space, tree.
 */
#ifndef PF_BLOCK_ENGINE_H
#define PF_BLOCK_ENGINE_H

#include "base/hold.h"
#include "base/thread.h"
#include "block/bufpool.h"
#include "log/log.h"
#include "ondisk/super.h"
#include "space/space.h"
#include "tree/tree.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct pf_icache;
struct pf_commit;
struct pf_late_write;
struct pf_orphan_range;

struct pf_pool {
	const struct pf_env *env;
	struct pf_set *set;
	struct pf_space *space;
	struct pf_tree *tree;
	bool read_only;
	bool lends; /* buffers of callers may be lent to the I/O (member/aio.h I5) */
	/* of the superblock, never changing while the pool is open (an upgrade has it alone) */
	bool data_csum, reclaim; /* features */
	unsigned placement;      /* enum pf_placement */
	uint64_t hash_seed;
	bool was_clean; /* when it was opened */
	atomic_int failed;       /* 0 or the first error that no checkpoint can get over */

	pthread_mutex_t names_lock; /* every change of the namespace */
	struct pf_icache *icache;

	struct pf_counters counters; /* next_id: see below */
	atomic_uint_fast64_t next_id;
	atomic_uint_fast64_t stored_id; /* next_id of the superblock that is durable */
	uint64_t open_generation; /* of the checkpoint that will hold the changes made now */

	pthread_mutex_t super_lock;
	struct pf_super super; /* as committed last */

	struct pf_bufpool *buffers; /* PF_SEGMENT_BYTES each, for data on its way */
	struct pf_bufpool *pages;   /* PF_BLOCK_SIZE each, for staged blocks */
	pthread_mutex_t staging_lock;
	struct pf_inode *staged_first, *staged_last; /* inodes with staged blocks, oldest first */
	atomic_uint_fast64_t staged_blocks;
	uint64_t staged_limit; /* blocks; beyond it the oldest are written out */
	unsigned stage_max;    /* blocks of one inode; beyond it they are written out */
	unsigned map_max;      /* pieces that one transaction maps then: the tree is locked for some 100 us */
	atomic_uint_fast64_t drain_failures; /* so far, and the error of the latest */
	atomic_int drain_error;
	atomic_bool drains_later; /* what fills a stage leaves the drain to another (object/drain.h) */
	/* under staging_lock */
	TAILQ_HEAD(, pf_stage) drains; /* in the order of their numbers */
	uint64_t nr_drains;            /* so far */
	pthread_cond_t drains_changed;
	struct pf_breath breath; /* of who drains */

	/* NULL: no log (before version 6, read-only, or while its records are being redone) */
	struct pf_log *log;
	/* Held: a record is in the log whose mapping is not in the tree yet, so no freeze may come. Taken inside the inode locks,
	 * outside of the tree lock. What ends it is I/O, and the lock of the inode that it was taken for. */
	struct pf_hold sync_hold;
	atomic_uint_fast64_t durable_generation; /* of the last checkpoint that is durable */
	bool log_pending;            /* opened without recovery (fsck): the log still has to be redone */
	bool replaying;              /* records are being redone: nobody else uses the pool, no checkpoint may begin */
	struct timespec replay_now; /* the time of the record */

	struct pf_commit *commit;
	/* Installed by commit/: completes a checkpoint (and some reaping first), so that freed space comes back. No tree lock held. */
	int (*make_room)(struct pf_pool *pool);
	/* Installed by commit/: keeps the number of dirty nodes in bounds; may wait. No locks held. */
	int (*throttle)(struct pf_pool *pool);
	/* Asks for a checkpoint without waiting for it. */
	void (*request)(struct pf_pool *pool);
	/* A whole checkpoint. No tree lock held. */
	int (*checkpoint)(struct pf_pool *pool);

	uint64_t dirty_by_cache; /* nodes that may be dirty as far as memory is concerned (rule 16) */
	unsigned commit_interval_ms;
	pthread_mutex_t reap_lock; /* one reaper at a time */
	atomic_int failed_unlisted; /* the error of a write that object/failed.h I3 could not note; 0: none */
	atomic_uint failed_ranges; /* for which object/failed.h has memory */
	atomic_bool reap_wanted; /* there are orphan ranges without inode */
	/* Read-only: ranges that a crash left half removed; they read as zeros (object/orphan.h I4). */
	struct pf_orphan_range *pending;
	unsigned nr_pending;
	struct pf_late_write *late_writes; /* PF_BREAK_MAP_BEFORE_DATA only */
};

#define PF_SEGMENT_BYTES (PF_MAX_EXTENT_BLOCKS * PF_BLOCK_SIZE)

/* 0, or why nothing may be changed: -EROFS. */
static inline int pf_pool_writable(struct pf_pool *pool)
{
	if (pool->replaying)
		return 0; /* a read-only pool replays in memory */
	return pool->read_only || atomic_load_explicit(&pool->failed, memory_order_relaxed) ? -EROFS : 0;
}

/* @what cannot be done, and the pool cannot go on without (I4). The first time it says so. */
static inline void pf_pool_fail(struct pf_pool *pool, const char *what, int err)
{
	if (!atomic_exchange(&pool->failed, err))
		pf_log(pool->env, PF_LOG_ERROR, "%s failed: %s; the pool takes no more changes, what was committed is safe; check the "
		       "members' disks, unmount and run fsck.poolfs", what, pf_strerror(err));
}

/* After a crash numbers go on so much further than the superblock says, behind all that were given out since it was written; in time
 * a checkpoint is made for the sake of that: with half of them, which at the rates that were seen (30,000 a second) is no sooner than
 * it comes by itself. So a number, which programs and file servers may know, never means another file; and programs that know 32 bits of
 * it can live with 16,000 crashes. */
#define PF_ID_JUMP (UINT64_C(1) << 18)

/* A new inode number or data id. */
static inline uint64_t pf_pool_new_id(struct pf_pool *pool)
{
	return atomic_fetch_add(&pool->next_id, 1);
}

#endif
