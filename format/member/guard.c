/* SPDX-License-Identifier: MIT
 * Calls that are not waited for for ever (aio.h I4 to I6). What has a descriptor goes through a ring, whose waiter looks up each
 * second; everything else through a proxy. */
#include "member/aio_int.h"
#include "member/io_file.h"
#include "ondisk/ondisk.h"

/* While a member does something, one request may take long: queues are, and what a host writes back from its page cache before
 * a flush ends may be gigabytes. */
#define PATIENCE 10u

/* req->result: not for the ring */
#define FOR_PROXY (PF_AIO_PENDING + 1)

/* -- who is silent ----------------------------------------------------------------------------------------------------------- */
void pf_aio_guard(struct pf_aio *aio, struct pf_io **ios, unsigned nr, unsigned ticks, unsigned tick_ms,
		  void (*silent)(void *arg, struct pf_io *io), void *arg)
{
	/* rings that were made without the guard's demands */
	while (aio->idle) {
		struct pf_ring *ring = aio->idle;
		aio->idle = ring->next;
		pf_ring_free(ring);
	}
	aio->silence = ticks;
	aio->tick_ms = tick_ms;
	aio->silent = silent;
	aio->silent_arg = arg;
	for (unsigned i = 0; i < nr; i++)
		ios[i]->guard = aio;
}

bool pf_guard_too_late(struct pf_aio *aio, const struct pf_flight *f)
{
	return atomic_load_explicit(&aio->ticks, memory_order_relaxed) - f->since > PATIENCE * aio->silence;
}

void pf_guard_declare(struct pf_aio *aio, struct pf_io *io)
{
	if (pf_io_silent(io))
		return;
	/* first whoever decides what becomes of the pool: nobody is to see an io fail of which that one does not know */
	aio->silent(aio->silent_arg, io);
	atomic_store_explicit(&io->failed, true, memory_order_release);
	atomic_store_explicit(&io->silent, true, memory_order_release);
	if (io->fd >= 0)
		pf_io_file_wake(io);
	pthread_mutex_lock(&aio->lock);
	pthread_cond_broadcast(&aio->changed);
	pthread_mutex_unlock(&aio->lock);
}

static void look_at(struct pf_aio *aio, struct pf_io *io)
{
	unsigned nr_ended = atomic_load(&io->nr_ended);
	bool busy = atomic_load(&io->nr_in_flight) > 0;
	if (!busy || nr_ended != io->nr_ended_seen)
		io->nr_quiet = 0;
	else
		io->nr_quiet++;
	io->nr_ended_seen = nr_ended;
	bool may_take_long = !io->direct && atomic_load(&io->nr_flushing) > 0;
	/* one more: what has come back is seen a tick later by who waits for it, when something else of its batch has not */
	if (!pf_io_silent(io) && io->nr_quiet > aio->silence * (may_take_long ? PATIENCE : 1) + 1)
		pf_guard_declare(aio, io);
}

void pf_aio_tick(struct pf_aio *aio, struct pf_io **ios, unsigned nr)
{
	atomic_fetch_add(&aio->ticks, 1);
	if (atomic_load(&aio->nr_lost))
		pf_flight_reap(aio);
	for (unsigned i = 0; i < nr; i++)
		look_at(aio, ios[i]);
	pthread_mutex_lock(&aio->lock);
	pthread_cond_broadcast(&aio->changed);
	pthread_mutex_unlock(&aio->lock);
}

/* -- batches ------------------------------------------------------------------------------------------------------------------ */
struct batch {
	struct pf_aio *aio;
	struct pf_ring *ring;
	int ring_err;
	struct pf_aio_req *reqs; /* or flushes */
	struct pf_flush *flushes;
	unsigned nr, next, next_for_proxy;
	struct pf_meanwhile *meanwhile;
	struct pf_flights flying; /* on the ring, in the order of submission */
	unsigned nr_flying;
};

static int *result_of(struct batch *b, unsigned index)
{
	return b->flushes ? &b->flushes[index].result : &b->reqs[index].result;
}

static struct pf_io *io_of(struct batch *b, unsigned index)
{
	return b->flushes ? b->flushes[index].io : b->reqs[index].io;
}

static struct pf_flight *new_flight(struct batch *b, unsigned index)
{
	struct pf_flight *f;
	if (b->flushes) {
		f = pf_flight_new(b->aio, io_of(b, index), PF_IO_FLUSH, 0, NULL, 0, false);
	} else {
		const struct pf_aio_req *req = &b->reqs[index];
		f = pf_flight_new(b->aio, req->io, req->op == PF_AIO_READ ? PF_IO_READ : PF_IO_WRITE, req->off_bytes, req->buf,
				  req->len_bytes, !req->straight);
	}
	if (f)
		f->index = index;
	return f;
}

/* It has ended. */
static void land(struct batch *b, struct pf_flight *f, int err)
{
	pf_flight_settle(f, err);
	*result_of(b, f->index) = err;
	pf_flight_put(b->aio, f);
}

/* What is done in this thread after all, however long it takes: there is no memory to do better. */
static int do_patiently(struct pf_io *io, enum pf_io_call call, uint64_t off_bytes, void *buf, uint64_t len_bytes)
{
	struct pf_flight f = { .io = io, .call = call, .off_bytes = off_bytes, .len_bytes = len_bytes, .buf = buf };
	if (call == PF_IO_FLUSH)
		f.nr_writes = pf_io_account_flush_begin(io);
	int err = pf_proxy_call(&f);
	pf_flight_account(&f, err);
	return err;
}

/* By a proxy; what cannot be handed to one is done here. Returns how it ended, -EIO when it is lost. @f is not the caller's any more. */
static int fly_by_proxy(struct pf_aio *aio, struct pf_flight *f)
{
	int err;
	if (pf_proxy_start(aio, f))
		err = pf_proxy_call(f);
	else if (pf_proxy_wait(aio, f))
		err = f->result;
	else
		return -EIO;
	pf_flight_settle(f, err);
	pf_flight_put(aio, f);
	return err;
}

static void finish_by_proxy(struct batch *b, struct pf_flight *f)
{
	int *result = result_of(b, f->index);
	*result = fly_by_proxy(b->aio, f);
}

static void run_by_proxy(struct batch *b, unsigned index)
{
	struct pf_io *io = io_of(b, index);
	const struct pf_aio_req *req = b->flushes ? NULL : &b->reqs[index];
	struct pf_flight *f = pf_io_failed(io) ? NULL : new_flight(b, index);
	if (pf_io_failed(io) && !f) {
		*result_of(b, index) = -EIO;
	} else if (!f) {
		*result_of(b, index) = !req ? do_patiently(io, PF_IO_FLUSH, 0, NULL, 0) :
					      do_patiently(io, req->op == PF_AIO_READ ? PF_IO_READ : PF_IO_WRITE, req->off_bytes, req->buf,
							   req->len_bytes);
	} else {
		if (!req)
			f->nr_writes = pf_io_account_flush_begin(io);
		finish_by_proxy(b, f);
	}
}

/* Request @index goes to the ring, or it is said in its result why not. */
static void prepare_next(struct batch *b, unsigned index)
{
	struct pf_io *io = io_of(b, index);
	int *result = result_of(b, index);
	const struct pf_aio_req *req = b->flushes ? NULL : &b->reqs[index];
	*result = pf_io_failed(io) ? -EIO : FOR_PROXY;
	if (pf_io_failed(io) || io->fd < 0 || !b->ring || b->ring_err)
		return;
	/* making the host allocate may take as long as anything else */
	if (req && req->op == PF_AIO_WRITE && !pf_io_file_prepared(io, req->off_bytes, req->len_bytes))
		return;
	struct pf_flight *f = new_flight(b, index);
	if (!f)
		return;
	if (!req) {
		f->nr_writes = pf_io_account_flush_begin(io);
		int err = pf_io_file_flush_lock(io);
		if (err) {
			land(b, f, err);
			return;
		}
	}
	*result = PF_AIO_PENDING;
	pf_ring_prepare(b->ring, f->call, io, f->off_bytes, f->buf, f->len_bytes, (uintptr_t)f);
	TAILQ_INSERT_TAIL(&b->flying, f, link);
	b->nr_flying++;
}

/* The ring is broken: the last @nr flights have not left. */
static void call_back(struct batch *b, unsigned nr)
{
	for (; nr; nr--) {
		struct pf_flight *f = TAILQ_LAST(&b->flying, pf_flights);
		TAILQ_REMOVE(&b->flying, f, link);
		b->nr_flying--;
		if (f->call == PF_IO_FLUSH)
			pf_io_file_flush_cancel(f->io);
		finish_by_proxy(b, f);
	}
}

/* What io_uring left over of a transfer is done, or fails, by the ops, which know how to continue and what to report. */
static void complete(struct batch *b, struct pf_flight *f, int res)
{
	TAILQ_REMOVE(&b->flying, f, link);
	b->nr_flying--;
	if (f->call == PF_IO_FLUSH) {
		land(b, f, pf_io_file_flush_unlock(f->io, res));
		return;
	}
	uint64_t done = res > 0 ? (uint64_t)res : 0;
	if (f->call == PF_IO_READ && done)
		PF_FILLED_BY_KERNEL(f->buf, done);
	if (done == f->len_bytes) {
		land(b, f, 0);
	} else if (pf_ring_is_error(res)) {
		land(b, f, pf_io_file_error(f->io, f->call == PF_IO_READ ? "read" : "write", f->off_bytes, f->len_bytes, res));
	} else {
		f->done_bytes = done - done % PF_BLOCK_SIZE;
		finish_by_proxy(b, f);
	}
}

static void take_completed(struct batch *b)
{
	uint64_t data;
	int res;
	while (pf_ring_take_any(b->ring, &data, &res)) {
		struct pf_flight *f = (struct pf_flight *)(uintptr_t)data;
		if (!f->lost) {
			complete(b, f, res);
			continue;
		}
		pthread_mutex_lock(&b->aio->lock);
		pf_flight_found(b->aio, f, &b->ring->lost); /* nobody closes an io that is in use */
		pthread_mutex_unlock(&b->aio->lock);
	}
}

static void give_up_silent(struct batch *b)
{
	struct pf_flight *f, *next;
	for (f = TAILQ_FIRST(&b->flying); f; f = next) {
		next = TAILQ_NEXT(f, link);
		if (pf_guard_too_late(b->aio, f))
			pf_guard_declare(b->aio, f->io);
		if (!pf_io_silent(f->io))
			continue;
		TAILQ_REMOVE(&b->flying, f, link);
		b->nr_flying--;
		*result_of(b, f->index) = -EIO;
		pthread_mutex_lock(&b->aio->lock);
		pf_flight_lose(b->aio, f, &b->ring->lost);
		pthread_mutex_unlock(&b->aio->lock);
	}
}

/* Those for proxies, one by one: so a test in memory is the same run each time. */
static void run_for_proxies(struct batch *b)
{
	for (; b->next_for_proxy < b->next; b->next_for_proxy++) {
		if (*result_of(b, b->next_for_proxy) == FOR_PROXY)
			run_by_proxy(b, b->next_for_proxy);
	}
}

static bool any_for_proxy(struct batch *b)
{
	for (unsigned i = b->next_for_proxy; i < b->next; i++) {
		if (*result_of(b, i) == FOR_PROXY)
			return true;
	}
	return false;
}

static void submit(struct batch *b, unsigned nr_wait)
{
	int err = pf_ring_submit_and_wait(b->ring, nr_wait, b->aio->tick_ms);
	if (!err)
		return;
	b->ring_err = err;
	pf_meanwhile(b->meanwhile);
	call_back(b, io_uring_sq_ready(&b->ring->uring));
}

static void run(struct batch *b)
{
	TAILQ_INIT(&b->flying);
	unsigned first = 0;
	while (first < b->nr && io_of(b, first)->fd < 0)
		first++;
	b->ring = first < b->nr ? pf_ring_get(b->aio) : NULL;
	while (b->next < b->nr || b->nr_flying) {
		while (b->next < b->nr && b->nr_flying < PF_RING_ENTRIES)
			prepare_next(b, b->next++);
		unsigned nr_wait = pf_ring_nr_wait(b->nr_flying, b->next < b->nr);
		bool first_submit = any_for_proxy(b) || pf_meanwhile_left(b->meanwhile);
		if (b->nr_flying)
			submit(b, first_submit ? 0 : nr_wait);
		pf_meanwhile(b->meanwhile);
		run_for_proxies(b);
		if (first_submit && b->nr_flying)
			submit(b, nr_wait < b->nr_flying ? nr_wait : b->nr_flying);
		if (!b->nr_flying)
			continue;
		take_completed(b);
		give_up_silent(b);
	}
	if (b->ring)
		pf_ring_put(b->aio, b->ring, b->ring_err);
}

void pf_guard_run(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr, struct pf_meanwhile *meanwhile)
{
	struct batch b = { .aio = aio, .reqs = reqs, .nr = nr, .meanwhile = meanwhile };
	run(&b);
}

void pf_guard_flush(struct pf_aio *aio, struct pf_flush *flushes, unsigned nr)
{
	struct batch b = { .aio = aio, .flushes = flushes, .nr = nr };
	run(&b);
}

int pf_io_guarded(struct pf_io *io, enum pf_io_call call, uint64_t off_bytes, void *buf, uint64_t len_bytes)
{
	struct pf_aio *aio = io->guard;
	if (call == PF_IO_READ || call == PF_IO_WRITE) {
		struct pf_aio_req req = { .io = io,
					  .op = call == PF_IO_READ ? PF_AIO_READ : PF_AIO_WRITE,
					  .off_bytes = off_bytes,
					  .buf = buf,
					  .len_bytes = len_bytes };
		return pf_aio_run(aio, &req, 1);
	}
	if (call == PF_IO_FLUSH)
		return pf_aio_flush(aio, &io, 1, NULL);
	struct pf_flight *f = pf_flight_new(aio, io, call, off_bytes, NULL, len_bytes, false);
	return f ? fly_by_proxy(aio, f) : do_patiently(io, call, off_bytes, NULL, len_bytes);
}
