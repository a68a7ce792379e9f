/* SPDX-License-Identifier: MIT
 *
 * Purpose: keeps a fixed number of reads or writes in flight by io_uring, and times each from submission to completion.
 *
 * Uses: workspace.h, liburing.
 */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include "workspace.h"

struct queue_work {
	bool write;
	bool in_order;      /* one after the other from the start of the file; otherwise at places by the seed */
	size_t block_bytes; /* at most WS_PIECE */
	uint64_t nr_ops;
};
/* WS_DEPTH in flight on @fd. @took_ns: from the first submission to the last completion. -ENOSYS or -EPERM: there is no
 * io_uring here. */
int queue_run(struct workspace *ws, int fd, const struct queue_work *work, int64_t *took_ns);

#endif
