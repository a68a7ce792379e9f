/* SPDX-License-Identifier: MIT
 * The pool of rings. */
#include "member/aio_int.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define MAX_TRANSFER (1u << 30) /* a result is an int */

/* Under a guard: a ring's requests may be punted to threads of the kernel, of which one that submits has 4 per processor by default. Those
 * that are stuck on one member must not take up all of them. There are no more than there are requests. */
#define KERNEL_WORKERS 4096u

void pf_ring_free(struct pf_ring *ring)
{
	io_uring_queue_exit(&ring->uring);
	free(ring);
}

static int ring_init(struct pf_ring *ring)
{
	/* without COOP_TASKRUN each completion interrupts the processor that submitted; kernels before 5.19 lack it */
	struct io_uring_params params = { .flags = IORING_SETUP_COOP_TASKRUN };
	int err = io_uring_queue_init_params(PF_RING_ENTRIES, &ring->uring, &params);
	return err == -EINVAL ? io_uring_queue_init(PF_RING_ENTRIES, &ring->uring, 0) : err;
}

/* A guard waits with a time limit (5.11). Without the other (5.15) a stuck member could hold up others. */
static int ring_init_guarded(struct pf_ring *ring)
{
	int err = ring_init(ring);
	if (err)
		return err;
	unsigned workers[2] = { KERNEL_WORKERS, 0 };
	if (ring->uring.features & IORING_FEAT_EXT_ARG && io_uring_register_iowq_max_workers(&ring->uring, workers) == 0)
		return 0;
	io_uring_queue_exit(&ring->uring);
	return -ENOSYS;
}

static bool is_refusal(int err)
{
	return err == -EPERM || err == -ENOSYS || err == -EACCES;
}

/* Rings are made and unmade under the lock: their memory is mapped by system calls that a sanitizer does not see, so it needs another
 * way to know that one came after the other. */
struct pf_ring *pf_ring_get(struct pf_aio *aio)
{
	pthread_mutex_lock(&aio->lock);
	struct pf_ring *ring = aio->idle;
	if (ring) {
		aio->idle = ring->next;
	} else if (!aio->no_uring) {
		ring = calloc(1, sizeof(*ring));
		int err = !ring ? -ENOMEM : aio->silence ? ring_init_guarded(ring) : ring_init(ring);
		if (err) {
			free(ring);
			ring = NULL;
		} else {
			TAILQ_INIT(&ring->lost);
		}
		aio->no_uring = is_refusal(err);
	}
	pthread_mutex_unlock(&aio->lock);
	return ring;
}

void pf_ring_put(struct pf_aio *aio, struct pf_ring *ring, int err)
{
	pthread_mutex_lock(&aio->lock);
	aio->no_uring = aio->no_uring || is_refusal(err);
	if (!TAILQ_EMPTY(&ring->lost)) {
		ring->next = aio->lost_rings;
		aio->lost_rings = ring;
	} else if (err) {
		pf_ring_free(ring);
	} else {
		ring->next = aio->idle;
		aio->idle = ring;
	}
	pthread_mutex_unlock(&aio->lock);
}

void pf_ring_prepare(struct pf_ring *ring, enum pf_io_call call, const struct pf_io *io, uint64_t off_bytes, void *buf,
		     uint64_t len_bytes, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
	assert(sqe); /* the window is as large as the ring */
	unsigned len = len_bytes > MAX_TRANSFER ? MAX_TRANSFER : (unsigned)len_bytes;
	if (call == PF_IO_READ)
		io_uring_prep_read(sqe, io->fd, buf, len, off_bytes);
	else if (call == PF_IO_WRITE)
		io_uring_prep_write(sqe, io->fd, buf, len, off_bytes);
	else
		io_uring_prep_fsync(sqe, io->fd, IORING_FSYNC_DATASYNC);
	sqe->user_data = data;
}

/* After a failed wait: EINTR, or memory pressure in the kernel. There is no giving up: what the kernel still owns must not
 * be given back to the caller. */
static void nap(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	nanosleep(&ms, NULL);
}

void pf_ring_wait(struct pf_ring *ring, unsigned nr)
{
	struct io_uring_cqe *cqe;
	while (io_uring_wait_cqe_nr(&ring->uring, &cqe, nr) < 0)
		nap();
}

uint64_t pf_ring_take(struct pf_ring *ring, int *res)
{
	struct io_uring_cqe *cqe;
	while (io_uring_wait_cqe(&ring->uring, &cqe) < 0)
		nap();
	uint64_t data = cqe->user_data;
	*res = cqe->res;
	io_uring_cqe_seen(&ring->uring, cqe);
	return data;
}

bool pf_ring_take_any(struct pf_ring *ring, uint64_t *data, int *res)
{
	struct io_uring_cqe *cqe;
	if (io_uring_peek_cqe(&ring->uring, &cqe) < 0)
		return false;
	*data = cqe->user_data;
	*res = cqe->res;
	io_uring_cqe_seen(&ring->uring, cqe);
	return true;
}

int pf_ring_submit(struct pf_ring *ring, unsigned nr_prepared, unsigned nr_wait, unsigned *nr_submitted)
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

int pf_ring_submit_and_wait(struct pf_ring *ring, unsigned nr, unsigned ms)
{
	struct __kernel_timespec limit = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };
	struct io_uring_cqe *cqe;
	for (;;) {
		unsigned left = io_uring_sq_ready(&ring->uring);
		int err = nr ? io_uring_submit_and_wait_timeout(&ring->uring, &cqe, nr, &limit, NULL) : io_uring_submit(&ring->uring);
		unsigned now = io_uring_sq_ready(&ring->uring);
		if (now == 0) { /* what the wait says is for the caller to see: completions, or none yet */
			if (err < 0 && err != -ETIME && err != -EINTR)
				nap();
			return 0;
		}
		if (now == left && err != -EINTR)
			return err < 0 ? err : -EIO;
	}
}
