/* SPDX-License-Identifier: MIT */
#include "queue.h"

#include "cli.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>

struct queue {
	struct io_uring ring;
	struct workspace *ws;
	const struct queue_work *work;
	int fd;
	uint64_t submitted, done;
	uint64_t random;
	int64_t started_ns[WS_DEPTH];
};

static unsigned char *slot_buffer(const struct queue *q, unsigned slot)
{
	return q->ws->buffers + (size_t)slot * WS_PIECE;
}

static void submit_one(struct queue *q, unsigned slot)
{
	const struct queue_work *work = q->work;
	uint64_t nr_blocks = q->ws->config->file_bytes / work->block_bytes;
	uint64_t block = work->in_order ? q->submitted % nr_blocks : stats_random(&q->random) % nr_blocks;
	uint64_t at = block * work->block_bytes;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&q->ring);
	if (work->write) {
		workspace_fill(q->ws, slot_buffer(q, slot), at / WS_BLOCK, work->block_bytes);
		io_uring_prep_write(sqe, q->fd, slot_buffer(q, slot), (unsigned)work->block_bytes, at);
	} else {
		io_uring_prep_read(sqe, q->fd, slot_buffer(q, slot), (unsigned)work->block_bytes, at);
	}
	sqe->user_data = slot;
	q->submitted++;
	q->started_ns[slot] = workspace_now_ns();
}

/* Takes what is complete and puts new work in its place. */
static int reap(struct queue *q)
{
	struct io_uring_cqe *cqes[WS_DEPTH];
	unsigned nr = io_uring_peek_batch_cqe(&q->ring, cqes, WS_DEPTH);
	int64_t now = workspace_now_ns();
	int err = 0;
	for (unsigned i = 0; i < nr; i++) {
		unsigned slot = (unsigned)cqes[i]->user_data;
		if (cqes[i]->res != (int)q->work->block_bytes && !err)
			err = cqes[i]->res < 0 ? cqes[i]->res : -EIO;
		workspace_took(q->ws, now - q->started_ns[slot]);
		q->done++;
		if (!err && q->submitted < q->work->nr_ops && !cli_interrupted())
			submit_one(q, slot);
	}
	io_uring_cq_advance(&q->ring, nr);
	return err;
}

int queue_run(struct workspace *ws, int fd, const struct queue_work *work, int64_t *took_ns)
{
	struct queue q = { .ws = ws, .work = work, .fd = fd, .random = ws->config->seed };
	int err = io_uring_queue_init(WS_DEPTH, &q.ring, 0);
	if (err)
		return err;
	int64_t start = workspace_now_ns();
	while (q.submitted < work->nr_ops && q.submitted < WS_DEPTH)
		submit_one(&q, (unsigned)q.submitted);
	/* After an error what is in flight is waited for: it uses the buffers. */
	while (q.done < q.submitted) {
		int n = io_uring_submit_and_wait(&q.ring, 1);
		if (n < 0 && n != -EINTR) {
			err = err ? err : n;
			break;
		}
		int bad = reap(&q);
		err = err ? err : bad;
	}
	*took_ns = workspace_now_ns() - start;
	io_uring_queue_exit(&q.ring);
	return err ? err : cli_interrupted() ? -EINTR : 0;
}
