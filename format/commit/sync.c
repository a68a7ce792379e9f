/* SPDX-License-Identifier: MIT
 * fsync and sync: in versions without an intent log both are a checkpoint, shared by all who wait at the same time. */
#include "commit/checkpoint.h"
#include "object/inode.h"
#include "object/stage.h"

int pf_fsync(struct pf_pool *pool, uint64_t ino)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	if (!pool->read_only) {
		pthread_rwlock_wrlock(&inode->lock);
		err = pf_stage_drain(pool, inode);
		pthread_rwlock_unlock(&inode->lock);
	}
	pf_inode_put(pool, inode);
	if (atomic_load(&pool->failed))
		return -EIO; /* engine.h I4, whatever a drain says of it */
	return err ? err : pf_commit_wait(pool, false);
}

int pf_commit_sync(struct pf_pool *pool)
{
	if (pool->read_only)
		return 0;
	int err = pf_stage_drain_all(pool);
	int commit_err = pf_commit_wait(pool, false);
	if (atomic_load(&pool->failed))
		return -EIO;
	return err ? err : commit_err;
}
