/* SPDX-License-Identifier: MIT */
#include "block/bufpool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct pf_bufpool {
	pthread_mutex_t lock;
	struct pf_aio *aio;
	size_t size_bytes;
	unsigned keep, nr_idle;
	void **idle;
};

int pf_bufpool_create(size_t size_bytes, unsigned keep, struct pf_aio *aio, struct pf_bufpool **out)
{
	struct pf_bufpool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->idle = calloc(keep ? keep : 1, sizeof(*pool->idle));
	if (!pool->idle) {
		free(pool);
		return -ENOMEM;
	}
	pthread_mutex_init(&pool->lock, NULL);
	pool->size_bytes = size_bytes;
	pool->keep = keep;
	pool->aio = aio;
	*out = pool;
	return 0;
}

void pf_bufpool_destroy(struct pf_bufpool *pool)
{
	if (!pool)
		return;
	for (unsigned i = 0; i < pool->nr_idle; i++)
		free(pool->idle[i]);
	pthread_mutex_destroy(&pool->lock);
	free(pool->idle);
	free(pool);
}

void *pf_bufpool_get(struct pf_bufpool *pool)
{
	void *buf = NULL;
	pthread_mutex_lock(&pool->lock);
	if (pool->nr_idle)
		buf = pool->idle[--pool->nr_idle];
	pthread_mutex_unlock(&pool->lock);
	if (!buf && posix_memalign(&buf, 4096, pool->size_bytes))
		return NULL;
	return buf;
}

void pf_bufpool_put(struct pf_bufpool *pool, void *buf)
{
	if (!buf)
		return;
	if (pf_aio_holds(pool->aio, buf, pool->size_bytes)) {
		pf_aio_free(pool->aio, buf, pool->size_bytes);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	if (pool->nr_idle < pool->keep) {
		pool->idle[pool->nr_idle++] = buf;
		buf = NULL;
	}
	pthread_mutex_unlock(&pool->lock);
	free(buf);
}
