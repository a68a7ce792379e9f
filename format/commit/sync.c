/* SPDX-License-Identifier: MIT
 * fsync and sync: without an intent log both are a checkpoint, shared by all who wait at the same time. With one an fsync is a
 * record of the file, and one flush of the members that have the log and the file's new data (design rules 5 and 7). */
#include "commit/checkpoint.h"
#include "object/inode.h"
#include "object/intent.h"
#include "object/lost.h"
#include "object/orphan.h"
#include "object/stage.h"

#include <stddef.h>
#include <stdlib.h>

/* One fsync on its way. No thread waits for it while the log is being written. */
struct fsync {
	struct pf_log_wait wait;
	struct pf_pool *pool;
	struct pf_inode *inode;
	struct pf_stage_commit staged;
	enum { PLAIN, STAGED, JOINED } kind; /* what the commit holds of the file: its record; its data too; another fsync's */
	enum { COMMITTED, REPORTED, MAPPED, REFUSED, SLOW } step;
	bool ahead; /* nobody has asked for it yet */
	int err;
	int failed; /* what the file had lost when it began (object/failed.h) */
	pf_fsync_done_fn *done;
	void *arg;
	void (*over)(struct fsync *s); /* gives up @s, when the file is free again */
};

static void report(struct fsync *s, int err)
{
	/* engine.h I4, whatever a drain says of it */
	s->done(s->arg, atomic_load(&s->pool->failed) ? -EIO : err ? err : s->failed);
}

static void release(struct fsync *s)
{
	pf_inode_put(s->pool, s->inode);
	s->over(s);
}

/* A member that failed may have taken some of the file with it: in the flush that this fsync waited for, or long ago. */
static int check_lost(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!pf_set_failed(pool->set) || !pf_inode_is_file(inode) || pf_breaks(pool->env, PF_BREAK_FAILURE_FORGOTTEN))
		return 0;
	pf_inode_lock(pool, inode);
	int err = pf_lost_check(pool, inode);
	pthread_rwlock_unlock(&inode->lock);
	return err;
}

#define IN_STEP 4 /* fsyncs after one write each: there will be another */

static void note_step(struct pf_inode *inode)
{
	if (inode->nr_written == 1)
		inode->nr_in_step += inode->nr_in_step < UINT8_MAX;
	else if (inode->nr_written)
		inode->nr_in_step = 0;
	inode->nr_written = 0;
}

/* Exclusive inode lock. As few threads wait for fsyncs, each says so when it does. */
static int drain(struct fsync *s)
{
	pf_env_waits(s->pool->env, true);
	int err = pf_stage_drain(s->pool, s->inode);
	pf_env_waits(s->pool->env, false);
	return err;
}

/* Drained and its record in the log, or its blocks left to the commit of the log. Only the first of several who sync the same file does the
 * latter: the others wait for each other's commits, not for the file. -EAGAIN: only a checkpoint makes it durable. */
static int begin_own(struct fsync *s, bool alone)
{
	int err = pf_orphan_settle_for_sync(s->pool, s->inode);
	if (!err)
		err = alone ? pf_stage_commit_begin(s->pool, s->inode, &s->staged) : -EAGAIN;
	s->kind = err ? PLAIN : STAGED;
	if (err != -EAGAIN)
		return err;
	err = drain(s);
	return !err && (!s->pool->log || pf_intent_file(s->pool, s->inode)) ? -EAGAIN : err;
}

static int begin(struct fsync *s)
{
	struct pf_inode *inode = s->inode;
	bool alone = atomic_fetch_add(&inode->nr_syncing, 1) == 0;
	int err = 0;
	pf_inode_lock_unless(s->pool, inode, PF_DRAINING);
	s->failed = pf_failed_sync(s->pool, inode);
	note_step(inode);
	if (inode->busy == PF_COMMITTING)
		s->kind = JOINED; /* nobody changes the file's data before that is over: what it has is what this one is to make durable */
	else
		err = begin_own(s, alone);
	pthread_rwlock_unlock(&inode->lock);
	if (s->kind != STAGED)
		atomic_fetch_sub(&inode->nr_syncing, 1);
	return err;
}

/* The log could not promise it. */
static int checkpoint(struct fsync *s)
{
	int err = 0;
	if (s->kind == JOINED) {
		pf_inode_lock(s->pool, s->inode);
		err = drain(s);
		pthread_rwlock_unlock(&s->inode->lock);
	}
	return err ? err : pf_commit_wait(s->pool, false);
}

static void end_staged(struct fsync *s, int promised)
{
	pf_inode_lock_busy(s->inode);
	s->err = pf_stage_commit_end(s->pool, s->inode, &s->staged, promised);
	pthread_rwlock_unlock(&s->inode->lock);
	atomic_fetch_sub(&s->inode->nr_syncing, 1);
}

static int finish_slowly(struct fsync *s)
{
	if (s->ahead)
		return 0; /* the fsync will find what is left to do */
	int err = s->err == -EAGAIN ? checkpoint(s) : s->err;
	return err ? err : check_lost(s->pool, s->inode);
}

/* log/log.h: the commit is done, or refused. */
static bool committed(struct pf_log_wait *wait)
{
	struct fsync *s = (struct fsync *)((char *)wait - offsetof(struct fsync, wait));
	int promised = wait->result;
	switch (s->step) {
	case COMMITTED:
		if (promised == -EIO) /* after a failed flush nobody knows what of the last writes is there (pitfalls 1.13) */
			pf_pool_fail(s->pool, "flushing the intent log", promised);
		s->err = promised;
		s->step = REFUSED;
		if (!promised && !pf_set_failed(s->pool->set)) {
			s->step = REPORTED; /* the mapping need not be waited for: it is in the log */
			report(s, 0);
		} else if (s->kind == STAGED) {
			end_staged(s, promised);
		}
		return true;
	case REPORTED:
		if (s->kind == STAGED)
			end_staged(s, 0);
		/* to give up the last of a file may wait for a checkpoint, which waits for all of this commit to be mapped */
		s->step = MAPPED;
		return true;
	case MAPPED:
		break;
	case REFUSED:
		/* a checkpoint waits for every other fsync of this commit to be mapped (sync_hold): they come first */
		s->step = SLOW;
		return true;
	case SLOW:
		report(s, finish_slowly(s));
		break;
	}
	release(s);
	return false;
}

static void commit(struct fsync *s, struct pf_meanwhile *meanwhile)
{
	s->wait.done = committed;
	pf_log_commit_start(s->pool->log, &s->wait, meanwhile);
}

static void start(struct fsync *s)
{
	s->err = s->pool->read_only ? 0 : begin(s);
	if (!s->err && !s->pool->read_only) {
		commit(s, NULL);
		return;
	}
	report(s, s->err ? finish_slowly(s) : 0);
	release(s);
}

static void free_fsync(struct fsync *s)
{
	free(s);
}

void pf_fsync_start(struct pf_pool *pool, uint64_t ino, pf_fsync_done_fn *done, void *arg)
{
	struct fsync *s = malloc(sizeof(*s));
	int err = s ? 0 : -ENOMEM;
	if (s) {
		*s = (struct fsync){ .pool = pool, .done = done, .arg = arg, .over = free_fsync };
		err = pf_inode_get(pool, ino, &s->inode);
	}
	if (!err) {
		start(s);
		return;
	}
	free(s);
	done(arg, err);
}

static void tell_nobody(void *arg, int err)
{
	(void)arg;
	(void)err;
}

/* Under the exclusive inode lock. Whatever could take long is left to the fsync. */
static bool is_expected(struct pf_inode *inode, const struct timespec *now)
{
	return inode->busy == PF_IDLE && inode->stage && inode->nr_written == 1 && inode->nr_in_step >= IN_STEP &&
	       inode->item.mtime.tv_sec == now->tv_sec && inode->item.mtime.tv_nsec == now->tv_nsec &&
	       !pf_inode_is_marked(inode, PF_MARK_OWES);
}

/* NULL: it is not expected, or nothing can be begun at once. */
static struct fsync *begin_ahead(struct pf_pool *pool, struct pf_inode *inode, const struct timespec *now)
{
	if (pthread_rwlock_trywrlock(&inode->lock))
		return NULL;
	struct fsync *s = is_expected(inode, now) ? malloc(sizeof(*s)) : NULL;
	if (s) {
		*s = (struct fsync){ .pool = pool, .inode = inode, .kind = STAGED, .ahead = true, .done = tell_nobody, .over = free_fsync };
		bool alone = atomic_fetch_add(&inode->nr_syncing, 1) == 0;
		if (!alone || pf_stage_commit_begin(pool, inode, &s->staged)) {
			atomic_fetch_sub(&inode->nr_syncing, 1);
			free(s);
			s = NULL;
		}
	}
	pthread_rwlock_unlock(&inode->lock);
	return s;
}

void pf_fsync_ahead(struct pf_pool *pool, uint64_t ino, const struct timespec *now, struct pf_meanwhile *answer)
{
	struct pf_inode *inode;
	if (pool->log && !pool->read_only && pf_inode_get(pool, ino, &inode) == 0) {
		struct fsync *s = begin_ahead(pool, inode, now);
		if (s)
			commit(s, answer);
		else
			pf_inode_put(pool, inode);
	}
	pf_meanwhile(answer);
}

/* -- for who waits ------------------------------------------------------------------------------------------------------ */

struct waiting {
	struct fsync s; /* first */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over;
	int result;
};

static void keep_result(void *arg, int err)
{
	((struct waiting *)arg)->result = err;
}

static void wake(struct fsync *s)
{
	struct waiting *w = (struct waiting *)s;
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

int pf_fsync(struct pf_pool *pool, uint64_t ino)
{
	struct waiting w = { .s = { .pool = pool, .done = keep_result, .arg = &w, .over = wake } };
	int err = pf_inode_get(pool, ino, &w.s.inode);
	if (err)
		return err;
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.changed, NULL);
	start(&w.s);
	pthread_mutex_lock(&w.lock);
	while (!w.over)
		pthread_cond_wait(&w.changed, &w.lock);
	pthread_mutex_unlock(&w.lock);
	pthread_cond_destroy(&w.changed);
	pthread_mutex_destroy(&w.lock);
	return w.result;
}

int pf_commit_sync(struct pf_pool *pool)
{
	if (pool->read_only)
		return 0;
	int err = pf_stage_drain_all(pool);
	int owing_err = pf_orphan_settle_all(pool);
	int commit_err = pf_commit_wait(pool, false);
	if (atomic_load(&pool->failed))
		return -EIO;
	if (err || owing_err || commit_err)
		return err ? err : owing_err ? owing_err : commit_err;
	return pf_set_lost(pool->set) ? -PF_EDATA_LOST : 0;
}
