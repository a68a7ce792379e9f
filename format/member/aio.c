/* SPDX-License-Identifier: MIT */
#include "member/aio_int.h"
#include "member/io_file.h"
#include "ondisk/ondisk.h"

#include <stdlib.h>
#include <unistd.h>

#define FLUSH_MAX 64u

int pf_aio_create(struct pf_aio **out)
{
	struct pf_aio *aio = calloc(1, sizeof(*aio));
	*out = aio;
	if (!aio)
		return -ENOMEM;
	pthread_mutex_init(&aio->lock, NULL);
	pthread_cond_init(&aio->wanted, NULL);
	pthread_cond_init(&aio->changed, NULL);
	TAILQ_INIT(&aio->lost_calls);
	TAILQ_INIT(&aio->spare);
	TAILQ_INIT(&aio->queue);
	return 0;
}

void pf_aio_destroy(struct pf_aio *aio)
{
	if (!aio)
		return;
	pf_flight_reap(aio);
	if (!pf_proxy_stop(aio) || aio->lost_rings)
		return; /* what is lost in the kernel is lost with its memory: the process is about to end */
	while (aio->idle) {
		struct pf_ring *ring = aio->idle;
		aio->idle = ring->next;
		pf_ring_free(ring);
	}
	pf_flight_free_spare(aio);
	pthread_cond_destroy(&aio->wanted);
	pthread_cond_destroy(&aio->changed);
	pthread_mutex_destroy(&aio->lock);
	free(aio);
}

/* -- reads and writes -------------------------------------------------------------------------------------------- */
static int run_direct(struct pf_aio_req *req)
{
	if (req->op == PF_AIO_READ)
		return pf_io_read(req->io, req->off_bytes, req->buf, req->len_bytes);
	return pf_io_write(req->io, req->off_bytes, req->buf, req->len_bytes);
}

static enum pf_io_call call_of(const struct pf_aio_req *req)
{
	return req->op == PF_AIO_READ ? PF_IO_READ : PF_IO_WRITE;
}

/* What io_uring left over is done, or fails, by the ops, which know how to continue and what to report. */
static int finish(struct pf_aio_req *req)
{
	const struct pf_io_ops *ops = req->io->ops;
	size_t done = req->result > 0 ? (size_t)req->result : 0;
	if (done == req->len_bytes)
		return 0;
	int err = req->result;
	if (pf_ring_is_error(err))
		return pf_io_file_error(req->io, req->op == PF_AIO_READ ? "read" : "write", req->off_bytes,
					req->len_bytes, err);
	done -= done % PF_BLOCK_SIZE;
	if (req->op == PF_AIO_READ)
		return ops->read(req->io, req->off_bytes + done, (char *)req->buf + done, req->len_bytes - done);
	return ops->write(req->io, req->off_bytes + done, (char *)req->buf + done, req->len_bytes - done);
}

static void complete(struct pf_aio_req *req)
{
	if (req->op == PF_AIO_READ && req->result > 0)
		PF_FILLED_BY_KERNEL(req->buf, (size_t)req->result);
	req->result = finish(req);
	if (req->op == PF_AIO_READ)
		pf_io_account_read(req->io, req->len_bytes, req->result);
	else
		pf_io_account_write(req->io, req->len_bytes, req->result);
}

/* The next request at or after *next that is for the ring, or nr. What has no space on the host, or
 * goes to a member that was given up, is settled here. */
static unsigned next_for_ring(struct pf_aio_req *reqs, unsigned from, unsigned nr)
{
	for (unsigned i = from; i < nr; i++) {
		if (reqs[i].io->fd < 0)
			continue;
		int err = pf_io_failed(reqs[i].io) ? -EIO : 0;
		if (!err && reqs[i].op == PF_AIO_WRITE)
			err = pf_io_file_prepare_write(reqs[i].io, reqs[i].off_bytes, reqs[i].len_bytes);
		if (!err)
			return i;
		reqs[i].result = err;
	}
	return nr;
}

/* Requests with descriptors through the ring, the others meanwhile through their ops. -errno: the ring is broken, and what
 * is still PF_AIO_PENDING was never submitted. */
static int run_ring(struct pf_ring *ring, struct pf_aio_req *reqs, unsigned nr, bool all_for_ring, struct pf_meanwhile *meanwhile)
{
	unsigned nr_prepared = 0, nr_submitted = 0, nr_done = 0, next = 0, inline_next = 0;
	int err = 0;

	while (true) {
		while (!err && next < nr && nr_prepared - nr_done < PF_RING_ENTRIES) {
			next = next_for_ring(reqs, next, nr);
			if (next == nr)
				break;
			struct pf_aio_req *req = &reqs[next];
			pf_ring_prepare(ring, call_of(req), req->io, req->off_bytes, req->buf, req->len_bytes, next);
			nr_prepared++;
			next++;
		}
		unsigned nr_wait = pf_ring_nr_wait(nr_prepared - nr_done, next < nr);
		if (!err)
			err = pf_ring_submit(ring, nr_prepared, all_for_ring && !pf_meanwhile_left(meanwhile) ? nr_wait : 0, &nr_submitted);
		pf_meanwhile(meanwhile);
		for (; inline_next < nr; inline_next++) {
			if (reqs[inline_next].io->fd < 0)
				reqs[inline_next].result = run_direct(&reqs[inline_next]);
		}
		if (nr_done == nr_submitted)
			return err;
		if (err || nr_wait > nr_submitted - nr_done)
			nr_wait = nr_submitted - nr_done;
		pf_ring_wait(ring, nr_wait);
		for (; nr_wait > 0; nr_wait--, nr_done++) {
			int res;
			uint64_t index = pf_ring_take(ring, &res);
			reqs[index].result = res;
			complete(&reqs[index]);
		}
	}
}

static void run_patiently(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr, struct pf_meanwhile *meanwhile)
{
	unsigned nr_fds = 0;
	for (unsigned i = 0; i < nr; i++) {
		reqs[i].result = PF_AIO_PENDING;
		nr_fds += reqs[i].io->fd >= 0;
	}
	struct pf_ring *ring = nr_fds > 1 ? pf_ring_get(aio) : NULL;
	if (ring)
		pf_ring_put(aio, ring, run_ring(ring, reqs, nr, nr_fds == nr, meanwhile));

	pf_meanwhile(meanwhile);
	for (unsigned i = 0; i < nr; i++) {
		if (reqs[i].result == PF_AIO_PENDING)
			reqs[i].result = run_direct(&reqs[i]);
	}
}

static int first_error(const struct pf_aio_req *reqs, unsigned nr)
{
	int first = 0;
	for (unsigned i = 0; i < nr && !first; i++)
		first = reqs[i].result;
	return first;
}

int pf_aio_run_and(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr, struct pf_meanwhile *meanwhile)
{
	if (aio->silence)
		pf_guard_run(aio, reqs, nr, meanwhile);
	else
		run_patiently(aio, reqs, nr, meanwhile);
	pf_meanwhile(meanwhile); /* there were none */
	return first_error(reqs, nr);
}

int pf_aio_run(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr)
{
	return pf_aio_run_and(aio, reqs, nr, NULL);
}

#define BEHIND_PIECE_BYTES (UINT64_C(128) << 10) /* some 100 us of a solid state disk */
#define BEHIND_BYTES (2 * BEHIND_PIECE_BYTES)    /* one is ready when the other ends */
#define BEHIND_REQS 8u /* the kernel works off what was submitted at once, while nobody else gets its processor */

/* What comes next of @reqs: from byte *done of request *next on, which move on. Of a request that has failed the rest is left out. */
static unsigned cut(const struct pf_aio_req *reqs, unsigned nr, unsigned *next, uint64_t *done, struct pf_aio_req *parts, unsigned *of)
{
	uint64_t left = BEHIND_BYTES;
	unsigned n = 0;
	while (*next < nr && n < BEHIND_REQS && left) {
		const struct pf_aio_req *req = &reqs[*next];
		uint64_t len = req->result ? 0 : req->len_bytes - *done;
		if (len) {
			len = len < BEHIND_PIECE_BYTES ? len : BEHIND_PIECE_BYTES;
			len = len < left ? len : left;
			parts[n] = *req;
			parts[n].off_bytes += *done;
			parts[n].buf = (char *)req->buf + *done;
			parts[n].len_bytes = len;
			of[n++] = *next;
			left -= len;
			*done += len;
		}
		if (req->result || *done == req->len_bytes) {
			++*next;
			*done = 0;
		}
	}
	return n;
}

int pf_aio_run_behind(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr)
{
	struct pf_aio_req parts[BEHIND_REQS];
	unsigned of[BEHIND_REQS], next = 0, n;
	uint64_t done = 0;
	for (unsigned i = 0; i < nr; i++)
		reqs[i].result = 0;
	while ((n = cut(reqs, nr, &next, &done, parts, of))) {
		pf_aio_run(aio, parts, n);
		for (unsigned i = 0; i < n; i++) {
			if (!reqs[of[i]].result)
				reqs[of[i]].result = parts[i].result;
		}
	}
	return first_error(reqs, nr);
}

/* -- flushes ----------------------------------------------------------------------------------------------------- */
static void *flush_direct(void *arg)
{
	struct pf_flush *f = arg;
	f->result = pf_io_flush(f->io);
	return NULL;
}

/* Without a ring: a thread each, for the flushes of several disks take as long as the slowest, not as their sum. */
static void flush_on_threads(struct pf_flush *flushes, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		struct pf_flush *f = &flushes[i];
		bool last = i + 1 == nr;
		f->on_thread = !last && f->io->fd >= 0 && pthread_create(&f->thread, NULL, flush_direct, f) == 0;
		if (!f->on_thread)
			flush_direct(f);
	}
	for (unsigned i = 0; i < nr; i++) {
		if (flushes[i].on_thread)
			pthread_join(flushes[i].thread, NULL);
	}
}

/* The flush of f has ended with @sys_err in the kernel. */
static void flush_settle(struct pf_flush *f, int sys_err)
{
	f->result = pf_io_file_flush_unlock(f->io, sys_err);
	f->locked = false;
	pf_io_account_flush_end(f->io, f->nr_writes, f->result);
}

/* @flushes in the order of their addresses, which is the order of the locks. -errno: the ring is broken. */
static int flush_on_ring(struct pf_ring *ring, struct pf_flush *flushes, unsigned nr, bool all_for_ring)
{
	unsigned nr_prepared = 0, nr_submitted = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct pf_flush *f = &flushes[i];
		if (f->io->fd < 0)
			continue;
		f->nr_writes = pf_io_account_flush_begin(f->io);
		f->result = pf_io_file_flush_lock(f->io);
		f->locked = f->result == 0;
		if (f->locked) {
			pf_ring_prepare(ring, PF_IO_FLUSH, f->io, 0, NULL, 0, i);
			nr_prepared++;
		}
	}
	int err = pf_ring_submit(ring, nr_prepared, all_for_ring ? nr_prepared : 0, &nr_submitted);
	for (unsigned i = 0; i < nr; i++) {
		if (flushes[i].io->fd < 0)
			flush_direct(&flushes[i]);
	}
	for (unsigned done = 0; done < nr_submitted; done++) {
		int res;
		uint64_t index = pf_ring_take(ring, &res);
		flush_settle(&flushes[index], res);
	}
	/* never submitted: the member is not to blame, and has to be flushed all the same */
	for (unsigned i = 0; i < nr; i++) {
		if (flushes[i].locked) {
			int ret = fdatasync(flushes[i].io->fd);
			flush_settle(&flushes[i], ret < 0 ? -errno : 0);
		}
	}
	return err;
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct pf_flush *)a)->io, y = (uintptr_t)((const struct pf_flush *)b)->io;
	return x < y ? -1 : x > y;
}

/* Up to FLUSH_MAX members; results as in pf_aio_flush(). */
static int flush_some(struct pf_aio *aio, struct pf_io **ios, unsigned nr, int *results)
{
	struct pf_flush flushes[FLUSH_MAX];
	unsigned nr_unique = 0, nr_fds = 0;
	for (unsigned i = 0; i < nr; i++)
		flushes[i] = (struct pf_flush){ .io = ios[i] };
	qsort(flushes, nr, sizeof(flushes[0]), by_address);
	for (unsigned i = 0; i < nr; i++) {
		if (nr_unique > 0 && flushes[nr_unique - 1].io == flushes[i].io)
			continue;
		nr_fds += flushes[i].io->fd >= 0;
		flushes[nr_unique++] = flushes[i];
	}

	struct pf_ring *ring = nr_fds > 1 && !aio->silence ? pf_ring_get(aio) : NULL;
	if (aio->silence)
		pf_guard_flush(aio, flushes, nr_unique);
	else if (ring)
		pf_ring_put(aio, ring, flush_on_ring(ring, flushes, nr_unique, nr_fds == nr_unique));
	else
		flush_on_threads(flushes, nr_unique);

	int first = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct pf_flush key = { .io = ios[i] };
		const struct pf_flush *f = bsearch(&key, flushes, nr_unique, sizeof(flushes[0]), by_address);
		if (results)
			results[i] = f->result;
		if (f->result < 0 && !first)
			first = f->result;
	}
	return first;
}

int pf_aio_flush(struct pf_aio *aio, struct pf_io **ios, unsigned nr, int *results)
{
	int first = 0;
	for (unsigned from = 0; from < nr; from += FLUSH_MAX) {
		unsigned some = nr - from < FLUSH_MAX ? nr - from : FLUSH_MAX;
		int err = flush_some(aio, ios + from, some, results ? results + from : NULL);
		if (!first)
			first = err;
	}
	return first;
}
