/* SPDX-License-Identifier: MIT */
#include "member/aio.h"

#include "member/io_file.h"
#include "ondisk/ondisk.h"

#include <assert.h>
#include <liburing.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* valgrind does not see what the kernel fills through io_uring; costs a few instructions outside it */
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define FILLED_BY_KERNEL(buf, len) VALGRIND_MAKE_MEM_DEFINED(buf, len)
#else
#define FILLED_BY_KERNEL(buf, len) ((void)0)
#endif

/* A batch of any size goes through in a sliding window of this many; more in flight gains nothing on any disk. */
#define RING_ENTRIES 128u
/* req->result until the request is settled. Otherwise, while a batch runs: >= 0 bytes moved, or -errno of the system. */
#define PENDING      INT_MIN
#define MAX_TRANSFER (1u << 30)
#define FLUSH_MAX    64u

struct ring {
	struct io_uring uring;
	struct ring *next;
};

struct pf_aio {
	pthread_mutex_t lock;
	struct ring *idle;
	bool no_uring; /* the kernel or a sandbox does not let us: do not ask again */
};

int pf_aio_create(struct pf_aio **out)
{
	struct pf_aio *aio = calloc(1, sizeof(*aio));
	*out = aio;
	if (!aio)
		return -ENOMEM;
	pthread_mutex_init(&aio->lock, NULL);
	return 0;
}

static void ring_free(struct ring *ring)
{
	io_uring_queue_exit(&ring->uring);
	free(ring);
}

void pf_aio_destroy(struct pf_aio *aio)
{
	if (!aio)
		return;
	while (aio->idle) {
		struct ring *ring = aio->idle;
		aio->idle = ring->next;
		ring_free(ring);
	}
	pthread_mutex_destroy(&aio->lock);
	free(aio);
}

/* -- the pool of rings ------------------------------------------------------------------------------------------- */
static int ring_init(struct ring *ring)
{
	/* without COOP_TASKRUN each completion interrupts the processor that submitted; kernels before 5.19 lack it */
	struct io_uring_params params = { .flags = IORING_SETUP_COOP_TASKRUN };
	int err = io_uring_queue_init_params(RING_ENTRIES, &ring->uring, &params);
	return err == -EINVAL ? io_uring_queue_init(RING_ENTRIES, &ring->uring, 0) : err;
}

static bool is_refusal(int err)
{
	return err == -EPERM || err == -ENOSYS || err == -EACCES;
}

/* NULL: go without, this time or for ever. Rings are made and unmade under the lock: their memory is mapped by system calls
 * that a sanitizer does not see, so it needs another way to know that one came after the other. */
static struct ring *ring_get(struct pf_aio *aio)
{
	pthread_mutex_lock(&aio->lock);
	struct ring *ring = aio->idle;
	if (ring) {
		aio->idle = ring->next;
	} else if (!aio->no_uring) {
		ring = calloc(1, sizeof(*ring));
		int err = ring ? ring_init(ring) : -ENOMEM;
		if (err) {
			free(ring);
			ring = NULL;
		}
		aio->no_uring = is_refusal(err);
	}
	pthread_mutex_unlock(&aio->lock);
	return ring;
}

/* @err: of the last submission; a ring that failed may hold requests that were never submitted. */
static void ring_put(struct pf_aio *aio, struct ring *ring, int err)
{
	pthread_mutex_lock(&aio->lock);
	if (err) {
		ring_free(ring);
		aio->no_uring = aio->no_uring || is_refusal(err);
	} else {
		ring->next = aio->idle;
		aio->idle = ring;
	}
	pthread_mutex_unlock(&aio->lock);
}

/* After a failed wait: EINTR, or memory pressure in the kernel. There is no giving up: what the kernel still owns must not
 * be given back to the caller. */
static void nap(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	nanosleep(&ms, NULL);
}

/* Sleeps until @nr completions are there. */
static void ring_wait(struct ring *ring, unsigned nr)
{
	struct io_uring_cqe *cqe;
	while (io_uring_wait_cqe_nr(&ring->uring, &cqe, nr) < 0)
		nap();
}

/* Takes one completion: *index and *res are its user data and result. */
static void ring_take(struct ring *ring, unsigned *index, int *res)
{
	struct io_uring_cqe *cqe;
	while (io_uring_wait_cqe(&ring->uring, &cqe) < 0)
		nap();
	*index = (unsigned)cqe->user_data;
	*res = cqe->res;
	io_uring_cqe_seen(&ring->uring, cqe);
}

/* Submits what was prepared, and in the same system call waits for @nr_wait completions (0: does not; the kernel does not wait either
 * when it has not taken everything). The number that the kernel took, in the order of preparation, is added to *nr_submitted. -errno:
 * the kernel takes no more (it may have taken some). */
static int ring_submit(struct ring *ring, unsigned nr_prepared, unsigned nr_wait, unsigned *nr_submitted)
{
	while (*nr_submitted < nr_prepared) {
		int n = nr_wait ? io_uring_submit_and_wait(&ring->uring, nr_wait) : io_uring_submit(&ring->uring);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? n : -EIO;
		*nr_submitted += (unsigned)n;
	}
	return 0;
}

/* -- reads and writes -------------------------------------------------------------------------------------------- */
static int run_direct(struct pf_aio_req *req)
{
	if (req->op == PF_AIO_READ)
		return pf_io_read(req->io, req->off_bytes, req->buf, req->len_bytes);
	return pf_io_write(req->io, req->off_bytes, req->buf, req->len_bytes);
}

static void prepare(struct ring *ring, struct pf_aio_req *req, unsigned index)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
	assert(sqe); /* the window is as large as the ring */
	/* a result is an int; the rest is continued */
	unsigned len = req->len_bytes > MAX_TRANSFER ? MAX_TRANSFER : (unsigned)req->len_bytes;
	if (req->op == PF_AIO_READ)
		io_uring_prep_read(sqe, req->io->fd, req->buf, len, req->off_bytes);
	else
		io_uring_prep_write(sqe, req->io->fd, req->buf, len, req->off_bytes);
	sqe->user_data = index;
}

/* What io_uring left over is done, or fails, by the ops, which know how to continue and what to report. */
static int finish(struct pf_aio_req *req)
{
	const struct pf_io_ops *ops = req->io->ops;
	size_t done = req->result > 0 ? (size_t)req->result : 0;
	if (done == req->len_bytes)
		return 0;
	int err = req->result;
	if (err < 0 && err != -EINTR && err != -EAGAIN && err != -EOPNOTSUPP && err != -EINVAL)
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
		FILLED_BY_KERNEL(req->buf, (size_t)req->result);
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
 * is still PENDING was never submitted. */
static int run_ring(struct ring *ring, struct pf_aio_req *reqs, unsigned nr, bool all_for_ring)
{
	unsigned nr_prepared = 0, nr_submitted = 0, nr_done = 0, next = 0, inline_next = 0;
	int err = 0;

	while (true) {
		while (!err && next < nr && nr_prepared - nr_done < RING_ENTRIES) {
			next = next_for_ring(reqs, next, nr);
			if (next == nr)
				break;
			prepare(ring, &reqs[next], next);
			nr_prepared++;
			next++;
		}
		/* few sleeps: for all at the end of a batch, for a quarter of the window while there is more to submit */
		unsigned nr_wait = nr_prepared - nr_done;
		if (next < nr && nr_wait > RING_ENTRIES / 4)
			nr_wait = RING_ENTRIES / 4;
		if (!err)
			err = ring_submit(ring, nr_prepared, all_for_ring ? nr_wait : 0, &nr_submitted);
		for (; inline_next < nr; inline_next++) {
			if (reqs[inline_next].io->fd < 0)
				reqs[inline_next].result = run_direct(&reqs[inline_next]);
		}
		if (nr_done == nr_submitted)
			return err;
		if (err || nr_wait > nr_submitted - nr_done)
			nr_wait = nr_submitted - nr_done;
		ring_wait(ring, nr_wait);
		for (; nr_wait > 0; nr_wait--, nr_done++) {
			unsigned index;
			int res;
			ring_take(ring, &index, &res);
			reqs[index].result = res;
			complete(&reqs[index]);
		}
	}
}

int pf_aio_run(struct pf_aio *aio, struct pf_aio_req *reqs, unsigned nr)
{
	unsigned nr_fds = 0;
	for (unsigned i = 0; i < nr; i++) {
		reqs[i].result = PENDING;
		nr_fds += reqs[i].io->fd >= 0;
	}
	struct ring *ring = nr_fds > 1 ? ring_get(aio) : NULL;
	if (ring)
		ring_put(aio, ring, run_ring(ring, reqs, nr, nr_fds == nr));

	int first = 0;
	for (unsigned i = 0; i < nr; i++) {
		if (reqs[i].result == PENDING)
			reqs[i].result = run_direct(&reqs[i]);
		if (reqs[i].result < 0 && !first)
			first = reqs[i].result;
	}
	return first;
}

/* -- flushes ----------------------------------------------------------------------------------------------------- */
struct flush {
	struct pf_io *io;
	int result;
	uint64_t nr_writes; /* that it covers */
	bool locked, on_thread;
	pthread_t thread;
};

static void *flush_direct(void *arg)
{
	struct flush *f = arg;
	f->result = pf_io_flush(f->io);
	return NULL;
}

/* Without a ring: a thread each, for the flushes of several disks take as long as the slowest, not as their sum. */
static void flush_on_threads(struct flush *flushes, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		struct flush *f = &flushes[i];
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

static void flush_prepare(struct ring *ring, struct flush *f, unsigned index)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
	assert(sqe);
	io_uring_prep_fsync(sqe, f->io->fd, IORING_FSYNC_DATASYNC);
	sqe->user_data = index;
}

/* The flush of f has ended with @sys_err in the kernel. */
static void flush_settle(struct flush *f, int sys_err)
{
	f->result = pf_io_file_flush_unlock(f->io, sys_err);
	f->locked = false;
	pf_io_account_flush_end(f->io, f->nr_writes, f->result);
}

/* @flushes in the order of their addresses, which is the order of the locks. -errno: the ring is broken. */
static int flush_on_ring(struct ring *ring, struct flush *flushes, unsigned nr, bool all_for_ring)
{
	unsigned nr_prepared = 0, nr_submitted = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct flush *f = &flushes[i];
		if (f->io->fd < 0)
			continue;
		f->nr_writes = pf_io_account_flush_begin(f->io);
		f->result = pf_io_file_flush_lock(f->io);
		f->locked = f->result == 0;
		if (f->locked) {
			flush_prepare(ring, f, i);
			nr_prepared++;
		}
	}
	int err = ring_submit(ring, nr_prepared, all_for_ring ? nr_prepared : 0, &nr_submitted);
	for (unsigned i = 0; i < nr; i++) {
		if (flushes[i].io->fd < 0)
			flush_direct(&flushes[i]);
	}
	for (unsigned done = 0; done < nr_submitted; done++) {
		unsigned index;
		int res;
		ring_take(ring, &index, &res);
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
	uintptr_t x = (uintptr_t)((const struct flush *)a)->io, y = (uintptr_t)((const struct flush *)b)->io;
	return x < y ? -1 : x > y;
}

/* Up to FLUSH_MAX members; results as in pf_aio_flush(). */
static int flush_some(struct pf_aio *aio, struct pf_io **ios, unsigned nr, int *results)
{
	struct flush flushes[FLUSH_MAX];
	unsigned nr_unique = 0, nr_fds = 0;
	for (unsigned i = 0; i < nr; i++)
		flushes[i] = (struct flush){ .io = ios[i] };
	qsort(flushes, nr, sizeof(flushes[0]), by_address);
	for (unsigned i = 0; i < nr; i++) {
		if (nr_unique > 0 && flushes[nr_unique - 1].io == flushes[i].io)
			continue;
		nr_fds += flushes[i].io->fd >= 0;
		flushes[nr_unique++] = flushes[i];
	}

	struct ring *ring = nr_fds > 1 ? ring_get(aio) : NULL;
	if (ring)
		ring_put(aio, ring, flush_on_ring(ring, flushes, nr_unique, nr_fds == nr_unique));
	else
		flush_on_threads(flushes, nr_unique);

	int first = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct flush key = { .io = ios[i] };
		const struct flush *f = bsearch(&key, flushes, nr_unique, sizeof(flushes[0]), by_address);
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
