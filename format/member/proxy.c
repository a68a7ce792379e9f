/* SPDX-License-Identifier: MIT
 * Threads that call in place of others, for what cannot go through a ring: so that one who waits can give up. */
#include "member/aio_int.h"

#include <stdlib.h>

#define IDLE_MAX 4u

int pf_proxy_call(const struct pf_flight *f)
{
	const struct pf_io_ops *ops = f->io->ops;
	uint64_t off = f->off_bytes + f->done_bytes, len = f->len_bytes - f->done_bytes;
	uint8_t *buf = f->buf + f->done_bytes;
	switch (f->call) {
	case PF_IO_READ:
		return ops->read(f->io, off, buf, len);
	case PF_IO_WRITE:
		return ops->write(f->io, off, buf, len);
	case PF_IO_FLUSH:
		return ops->flush(f->io);
	case PF_IO_DISCARD:
		return ops->discard(f->io, off, len);
	case PF_IO_ALLOCATE:
		break;
	}
	return ops->allocate(f->io, off, len);
}

/* Lock held, but for the call. */
static void serve(struct pf_aio *aio, struct pf_flight *f)
{
	TAILQ_REMOVE(&aio->queue, f, link);
	aio->nr_queued--;
	f->taken = true;
	pthread_mutex_unlock(&aio->lock);
	int result = pf_proxy_call(f);
	pthread_mutex_lock(&aio->lock);
	f->result = result;
	f->done = true;
	struct pf_io *to_close = f->lost ? pf_flight_found(aio, f, &aio->lost_calls) : NULL;
	pthread_cond_broadcast(&aio->changed);
	if (to_close) {
		pthread_mutex_unlock(&aio->lock);
		to_close->ops->close(to_close);
		pthread_mutex_lock(&aio->lock);
	}
}

static void *proxy(void *arg)
{
	struct pf_aio *aio = arg;
	pthread_mutex_lock(&aio->lock);
	for (;;) {
		struct pf_flight *f = TAILQ_FIRST(&aio->queue);
		if (f) {
			serve(aio, f);
			continue;
		}
		if (aio->closing || aio->nr_idle_proxies >= IDLE_MAX)
			break;
		aio->nr_idle_proxies++;
		pthread_cond_wait(&aio->wanted, &aio->lock);
		aio->nr_idle_proxies--;
	}
	bool last = --aio->nr_proxies == 0 && aio->orphaned;
	pthread_cond_broadcast(&aio->changed);
	pthread_mutex_unlock(&aio->lock);
	if (last)
		pf_aio_destroy(aio);
	return NULL;
}

/* Lock held. */
static int new_proxy(struct pf_aio *aio)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, proxy, aio);
	if (err)
		return err;
	pthread_detach(thread);
	aio->nr_proxies++;
	return 0;
}

int pf_proxy_start(struct pf_aio *aio, struct pf_flight *f)
{
	pthread_mutex_lock(&aio->lock);
	f->taken = f->done = f->lost = false;
	TAILQ_INSERT_TAIL(&aio->queue, f, link);
	aio->nr_queued++;
	int err = aio->nr_queued > aio->nr_idle_proxies ? new_proxy(aio) : 0;
	if (err) {
		TAILQ_REMOVE(&aio->queue, f, link);
		aio->nr_queued--;
	}
	pthread_cond_signal(&aio->wanted);
	pthread_mutex_unlock(&aio->lock);
	return err ? -EAGAIN : 0;
}

bool pf_proxy_wait(struct pf_aio *aio, struct pf_flight *f)
{
	pthread_mutex_lock(&aio->lock);
	while (!f->done && !pf_io_silent(f->io)) {
		if (pf_guard_too_late(aio, f)) {
			pthread_mutex_unlock(&aio->lock);
			pf_guard_declare(aio, f->io);
			pthread_mutex_lock(&aio->lock);
			continue;
		}
		pthread_cond_wait(&aio->changed, &aio->lock);
	}
	bool lost = !f->done && f->taken;
	if (lost) {
		pf_flight_lose(aio, f, &aio->lost_calls);
	} else if (!f->done) { /* nobody has begun it */
		TAILQ_REMOVE(&aio->queue, f, link);
		aio->nr_queued--;
		f->result = -EIO;
	}
	pthread_mutex_unlock(&aio->lock);
	return !lost;
}

/* Proxies that are in a call which nobody waits for. Lock held. */
static unsigned count_stuck(const struct pf_aio *aio)
{
	unsigned nr = 0;
	const struct pf_flight *f;
	TAILQ_FOREACH(f, &aio->lost_calls, link)
	{
		nr++;
	}
	return nr;
}

bool pf_proxy_stop(struct pf_aio *aio)
{
	pthread_mutex_lock(&aio->lock);
	aio->closing = true;
	pthread_cond_broadcast(&aio->wanted);
	while (aio->nr_proxies > count_stuck(aio))
		pthread_cond_wait(&aio->changed, &aio->lock);
	aio->orphaned = aio->nr_proxies > 0;
	bool all = !aio->orphaned;
	pthread_mutex_unlock(&aio->lock);
	return all;
}
