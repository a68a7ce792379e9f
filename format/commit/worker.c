/* SPDX-License-Identifier: MIT
 * The threads of a mounted pool: one makes checkpoints, one writes out what was staged, one removes what no name leads to, one tells the
 * members what is free. */
#include "commit/commit_int.h"
#include "object/drain.h"
#include "object/orphan.h"
#include "object/stage.h"
#include "space/discard.h"

#include <time.h>

#define REAP_POLL_MS 200
#define DISCARD_POLL_MS 1000 /* what the last reader has let go of; after a checkpoint it looks at once */
#define RETRY_MS 1000 /* after a step that failed for lack of room on a host filesystem */

static struct timespec after_ms(unsigned ms)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* Waits until a checkpoint is wanted, the time is up (true), or stop. Lock held. */
static bool wait_for_work(struct pf_commit *c, unsigned ms)
{
	struct timespec end = after_ms(ms);
	int err = 0;
	while (!c->stop && c->wanted <= c->durable && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&c->changed, &c->lock, &end);
	return err == ETIMEDOUT;
}

static void pause_ms(struct pf_commit *c, unsigned ms)
{
	struct timespec end = after_ms(ms);
	while (!c->stop && pthread_cond_timedwait(&c->changed, &c->lock, &end) != ETIMEDOUT)
		;
}

static void *checkpointer(void *arg)
{
	struct pf_pool *pool = arg;
	struct pf_commit *c = pool->commit;
	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		bool interval = wait_for_work(c, c->interval_ms);
		uint64_t wanted = c->wanted;
		bool stop = c->stop;
		pthread_mutex_unlock(&c->lock);
		int err = 0;
		if (stop) {
			pthread_mutex_lock(&c->lock);
			break;
		}
		if (interval) {
			pf_stage_drain_all(pool); /* failures are kept with the inodes */
			err = pf_commit_wait(pool, atomic_load(&pool->set->suspects));
		} else {
			err = pf_commit_reach(pool, wanted);
		}
		pthread_mutex_lock(&c->lock);
		if (err)
			pause_ms(c, RETRY_MS);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void *reaper(void *arg)
{
	struct pf_pool *pool = arg;
	struct pf_commit *c = pool->commit;
	for (;;) {
		struct timespec end = after_ms(REAP_POLL_MS);
		pthread_mutex_lock(&c->lock);
		while (!c->stop && !atomic_load(&pool->reap_wanted) &&
		       pthread_cond_timedwait(&c->changed, &c->lock, &end) != ETIMEDOUT)
			;
		bool stop = c->stop;
		pthread_mutex_unlock(&c->lock);
		if (stop)
			return NULL;
		int err = pf_orphan_reap(pool);
		if (err < 0)
			pf_log(pool->env, PF_LOG_WARNING, "freeing the space of a deleted file failed: %s; run fsck.poolfs",
			       pf_strerror(err));
		/* what is still wanted then cannot be done now: a failed pool, a host filesystem without room */
		if (err <= 0 && atomic_load(&pool->reap_wanted)) {
			pthread_mutex_lock(&c->lock);
			pause_ms(c, RETRY_MS);
			pthread_mutex_unlock(&c->lock);
		}
	}
}

static void *discarder(void *arg)
{
	struct pf_pool *pool = arg;
	struct pf_commit *c = pool->commit;
	pthread_mutex_lock(&c->lock);
	while (!c->stop) {
		uint64_t durable = c->durable;
		pthread_mutex_unlock(&c->lock);
		bool more = pf_space_discard_step(pool->space);
		struct timespec end = after_ms(DISCARD_POLL_MS);
		pthread_mutex_lock(&c->lock);
		while (!more && !c->stop && c->durable == durable &&
		       pthread_cond_timedwait(&c->changed, &c->lock, &end) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static void *drainer(void *arg)
{
	struct pf_pool *pool = arg;
	while (pf_drain_wait(pool))
		pf_drain_step(pool);
	return NULL;
}

/* Without that thread whoever fills a stage writes it out. */
static void start_drainer(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	pf_drain_start(pool);
	c->drains = pf_thread_start(&c->drainer, drainer, pool) == 0;
	if (!c->drains)
		pf_drain_stop(pool);
}

static void stop_drainer(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	if (!c->drains)
		return;
	pf_drain_stop(pool);
	pf_thread_join(&c->drainer);
	c->drains = false;
}

/* A thread that cannot be had only means that freed space is not given back. */
static void start_discarder(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	if (!pf_space_discards(pool->space))
		return;
	int err = pf_thread_start(&c->discarder, discarder, pool);
	c->discards = !err;
	if (!err)
		return;
	pf_space_set_discard(pool->space, 0);
	pf_log(pool->env, PF_LOG_WARNING, "no thread for discards: %s; freed space is not given back", pf_strerror(err));
}

int pf_commit_start_workers(struct pf_pool *pool, unsigned interval_ms)
{
	struct pf_commit *c = pool->commit;
	c->interval_ms = interval_ms;
	c->stop = false;
	pthread_mutex_lock(&c->lock);
	int err = pf_thread_start(&c->checkpointer, checkpointer, pool);
	c->workers = !err;
	pthread_mutex_unlock(&c->lock);
	if (err)
		return err;
	err = pf_thread_start(&c->reaper, reaper, pool);
	if (err) {
		pthread_mutex_lock(&c->lock);
		c->stop = true;
		pthread_cond_broadcast(&c->changed);
		pthread_mutex_unlock(&c->lock);
		pf_thread_join(&c->checkpointer);
		c->workers = false;
	} else {
		start_discarder(pool);
		start_drainer(pool);
	}
	return err;
}

void pf_commit_stop_workers(struct pf_pool *pool)
{
	struct pf_commit *c = pool->commit;
	if (!c || !c->workers)
		return;
	pthread_mutex_lock(&c->lock);
	c->stop = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	stop_drainer(pool);
	/* the reaper first: it may be waiting for a checkpoint */
	pf_thread_join(&c->reaper);
	pf_thread_join(&c->checkpointer);
	if (c->discards)
		pf_thread_join(&c->discarder);
	c->workers = c->discards = false;
}
