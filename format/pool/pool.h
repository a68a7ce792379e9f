/* SPDX-License-Identifier: MIT
 *
 * Purpose: a pool as a whole: made, opened, closed, described. Composes the layers below it.
 *
 * Invariants
 *   I1  pf_pool_open() for writing makes a new epoch durable on the metadata members before anything else is written, and
 *       finishes interrupted truncations and punches before it returns; unlinked inodes go in the background.
 *   I2  pf_pool_close() of a healthy pool leaves it clean: everything durable, PF_SUPER_CLEAN set on all members. One that has gone on
 *       without failed members is left clean on the others.
 *   I4  A pool with a failed member is opened read-only, or by fsck, which takes the member back; not for writing.
 *   I3  Without pf_pool_start_workers() and a limit of silence the engine has no threads: checkpoints and the reaper run inside the calls
 *       that need them, or by pf_pool_step(), so that a seeded test is the same run each time.
 *
 * Uses: everything below pool/.
 */
#ifndef PF_POOL_H
#define PF_POOL_H

#include "base/env.h"
#include "base/error.h"
#include "member/set.h"
#include "space/discard.h"

struct pf_pool;

enum pf_discard_mode { /* which members are told of blocks that were freed */
	PF_DISCARD_NONE,
	PF_DISCARD_SPARSE, /* image files that were sparse when they were opened */
	PF_DISCARD_ALL,
};
struct pf_pool_options {
	bool read_only;
	bool no_recovery;         /* fsck: neither finish interrupted work nor start the reaper, nor redo the log, which stays */
	bool salvage_log;         /* fsck: of a damaged log what comes before the damage is redone, and the rest given up */
	unsigned set_flags;       /* further enum pf_set_flags */
	unsigned wait_ms;         /* for the lock of a daemon that is just finishing */
	uint64_t cache_bytes;     /* 0: PF_CACHE_DEFAULT */
	unsigned commit_interval_ms; /* of the checkpoint worker; 0: PF_COMMIT_INTERVAL_DEFAULT */
	/* How long a member may be silent before its files get errors and the pool goes on without it; 0: no limit. With a limit there is a
	 * thread for it from the beginning. A pool of one member has nothing to go on with, and is the fastest without: there
	 * only if it is asked for. */
	unsigned silence_seconds;
	bool guard_single;
	/* The caller asks pf_pool_holds() before it reuses or frees a buffer that a read or write had, whatever that returned: so large
	 * ones need not be copied. */
	bool lends;
	enum pf_discard_mode discard; /* no effect before the feature RECLAIM */
};
#define PF_CACHE_DEFAULT (UINT64_C(256) << 20)
#define PF_COMMIT_INTERVAL_DEFAULT 5000

/* -- making a pool (mkfs) ------------------------------------------------------------------------------------------- */
struct pf_mkfs_options {
	unsigned version;         /* 0: PF_VERSION_DEFAULT */
	const char *label;        /* up to PF_LABEL_BYTES bytes, or NULL */
	const uint8_t *pool_uuid; /* NULL: random */
	unsigned placement;       /* enum pf_placement */
	uint32_t root_mode, root_uid, root_gid; /* of the root directory; mode 0: 0755 */
	uint32_t meta_mask;       /* members nominated for metadata (bit = index); 0: the two largest */
};
struct pf_mkfs_report {
	uint8_t pool_uuid[16];
	uint64_t usable_bytes; /* what df will call the size */
	unsigned nr_meta;
	uint8_t meta_members[PF_MAX_META_MEMBERS];
};
/* Checks everything first and writes nothing when the members do not fit the version (kind, number, sizes). Then writes
 * tables, an empty root directory and superblocks; old superblocks of ours are cleared first, so a crash leaves no pool rather
 * than half of one. @report_only: stop before the first write (mkfs -n). ios[i] becomes member i. Takes the ios, also on failure.
 * Errors: -EINVAL, -PF_EMEMBER_SMALL, -EIO, -ENOSPC, with @diag. */
int pf_pool_create(struct pf_io **ios, unsigned nr, const struct pf_mkfs_options *options, const struct pf_env *env,
		   bool report_only, struct pf_mkfs_report *report, struct pf_diag *diag);

/* -- opening and closing -------------------------------------------------------------------------------------------- */
/* Errors: those of pf_set_open(); of the log (-PF_ELOG_DAMAGED, -PF_ELOG_INVALID). An unclean pool is opened at its last checkpoint,
 * and what its log holds is redone: in memory only when it is opened read-only. */
int pf_pool_open(const char *const *paths, unsigned nr_paths, const struct pf_pool_options *options,
		 const struct pf_env *env, struct pf_pool **out, struct pf_diag *diag);
int pf_pool_open_ios(struct pf_io **ios, unsigned nr, const struct pf_pool_options *options, const struct pf_env *env,
		     struct pf_pool **out, struct pf_diag *diag);
/* Checkpoint, clean flag, release. Returns 0, or the error that kept the pool from being clean; frees it all the same. */
int pf_pool_close(struct pf_pool *pool);
/* Frees everything in memory and closes the members without writing: what a crash does. */
void pf_pool_abandon(struct pf_pool *pool);

/* A request to a silent member that is still out may use some of [buf, buf + len_bytes): nobody may use it otherwise, or free it. */
bool pf_pool_holds(const struct pf_pool *pool, const void *buf, size_t len_bytes);

/* Threads for checkpoints (each commit interval, or when asked), for writing out, for the reaper and for discards. Stopped by close. */
int pf_pool_start_workers(struct pf_pool *pool);

/* Without workers: one small step of background work (of a checkpoint that is under way, else of what waits to be written out, of the
 * reaper, or a discard).
 * Returns 1 if there was something to do, 0 if not, or an error. @start_checkpoint: begin one if none is under way. */
int pf_pool_step(struct pf_pool *pool, bool start_checkpoint);

/* Everything that the pool has is durable when it returns (poolfs sync). -PF_EDATA_LOST: but for what was on its way to members that
 * have failed (design rule 9); so it is until the pool is opened anew. */
int pf_pool_sync(struct pf_pool *pool);

/* -- telling the members of all free space (poolfs trim) -------------------------------------------------------------- */
/* What was deleted before is free when it returns, and so is trimmed. Errors: -EROFS (also: the log has still to be redone), I/O. */
int pf_pool_trim_begin(struct pf_pool *pool);
/* Where @trim, zeroed but for what is wanted, begins and ends: at places on all members one behind the other. */
void pf_pool_trim_range(struct pf_pool *pool, uint64_t start_bytes, uint64_t len_bytes, struct pf_trim *trim);
/* 1: go on; 0: that was all. Beside everything else that the pool does. -EROFS, -ENOMEM. */
int pf_pool_trim_step(struct pf_pool *pool, struct pf_trim *trim);
/* How far it is, as a place on all members one behind the other, and their size. */
uint64_t pf_pool_trim_place(struct pf_pool *pool, const struct pf_trim *trim, uint64_t *total_bytes);

/* -- describing ----------------------------------------------------------------------------------------------------- */
const struct pf_super *pf_pool_super(const struct pf_pool *pool); /* as committed last; changes with each checkpoint */
struct pf_set *pf_pool_set(struct pf_pool *pool);
bool pf_pool_read_only(const struct pf_pool *pool);

struct pf_statfs {
	uint64_t total_blocks, free_blocks, avail_blocks; /* of PF_BLOCK_SIZE */
	uint64_t nr_inodes;
};
void pf_pool_statfs(struct pf_pool *pool, struct pf_statfs *out);

/* The state of the pool as one JSON object (poolfs status --json, and what a mounted pool answers). Allocated; the caller frees
 * it. NULL: no memory. Paths and the label are copied as they are: bytes that are not UTF-8 are the caller's to replace. */
char *pf_pool_status_json(struct pf_pool *pool);

/* In place: superblock version @to (>= the present one, <= PF_VERSION_NEWEST). The pool must be open for writing, clean when it
 * was opened, and without workers. 3 -> 4 rebuilds the maps from the tree. 5 -> 6 writes second copies of all nodes, if there are
 * two metadata members; interrupted, it is gone on with by another call. Errors: -EINVAL, -PF_EPOOL_DIRTY, -ENOSPC (no room
 * for the copies), I/O. */
int pf_pool_upgrade(struct pf_pool *pool, unsigned to, struct pf_diag *diag);
/* Are there nodes with one copy where new ones get two? Then an upgrade was interrupted. 0, -EIO, -ENOMEM, a damage code. */
int pf_pool_single_nodes(struct pf_set *set, bool *found);

#endif
