/* SPDX-License-Identifier: MIT
 * fsync and sync: without an intent log both are a checkpoint, shared by all who wait at the same time. With one an fsync is a
 * record of the file, and one flush of the members that have the log and the file's new data (design rules 5 and 7). */
#include "commit/checkpoint.h"
#include "object/inode.h"
#include "object/intent.h"
#include "object/lost.h"
#include "object/stage.h"

/* Everything that is in the tree and in the log now is durable when it returns. @in_log: the file's record is. */
static int commit(struct pf_pool *pool, bool in_log)
{
	int err = pool->log && in_log ? pf_log_commit(pool->log) : -EAGAIN;
	if (err == -EAGAIN)
		return pf_commit_wait(pool, false);
	if (err) /* after a failed flush nobody knows what of the last writes is there (pitfalls 1.13) */
		pf_pool_fail(pool, "flushing the intent log", err);
	return err;
}

/* The file's data and its record. *done: all of it is durable already. The commit is made under the inode lock only by the first of
 * several who sync the same file: the others wait for each other's commits, not for the lock. */
static int sync_file(struct pf_pool *pool, struct pf_inode *inode, bool *in_log, bool *done)
{
	bool alone = atomic_fetch_add(&inode->nr_syncing, 1) == 0;
	pthread_rwlock_wrlock(&inode->lock);
	int err = alone ? pf_stage_commit(pool, inode) : -EAGAIN;
	*done = !err;
	if (err == -EAGAIN) {
		err = pf_stage_drain(pool, inode);
		*in_log = !err && !pf_intent_file(pool, inode);
	}
	pthread_rwlock_unlock(&inode->lock);
	atomic_fetch_sub(&inode->nr_syncing, 1);
	return err;
}

/* A member that failed may have taken some of the file with it: in the flush that this fsync waited for, or long ago. */
static int check_lost(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!pf_set_failed(pool->set) || !pf_inode_is_file(inode) || pf_breaks(pool->env, PF_BREAK_FAILURE_FORGOTTEN))
		return 0;
	pthread_rwlock_wrlock(&inode->lock);
	int err = pf_lost_check(pool, inode);
	pthread_rwlock_unlock(&inode->lock);
	return err;
}

int pf_fsync(struct pf_pool *pool, uint64_t ino)
{
	struct pf_inode *inode;
	bool in_log = true, done = false;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	if (!pool->read_only) {
		err = sync_file(pool, inode, &in_log, &done);
		if (!err && !done)
			err = commit(pool, in_log);
		if (!err)
			err = check_lost(pool, inode);
	}
	pf_inode_put(pool, inode);
	return atomic_load(&pool->failed) ? -EIO : err; /* engine.h I4, whatever a drain says of it */
}

int pf_commit_sync(struct pf_pool *pool)
{
	if (pool->read_only)
		return 0;
	int err = pf_stage_drain_all(pool);
	int commit_err = pf_commit_wait(pool, false);
	if (atomic_load(&pool->failed))
		return -EIO;
	if (err || commit_err)
		return err ? err : commit_err;
	return pf_set_lost(pool->set) ? -PF_EDATA_LOST : 0;
}
