/* SPDX-License-Identifier: MIT
 *
 * Purpose: synchronous operations, one at a time, each timed: what the metrics of latency and those of device bytes do.
 *
 * Uses: workspace.h.
 */
#ifndef BENCH_SYNC_OPS_H
#define BENCH_SYNC_OPS_H

#include "workspace.h"

enum sync_how {
	SYNC_WRITE_FSYNC, /* 4 KiB at a random place, then fsync */
	SYNC_WRITE_ONLY,  /* the same without fsync: the descriptor has O_SYNC */
	SYNC_APPEND,      /* 512 bytes at the end, then fdatasync; the descriptor has O_APPEND */
};
enum { SYNC_APPEND_BYTES = 512 };

/* On @fd, of a file of @file_bytes: until @max_ops are done, or the monotonic clock passes @end_ns (0: no end). At least one.
 * *@nr_ops: how many were done. */
int sync_ops_run(struct workspace *ws, int fd, uint64_t file_bytes, enum sync_how how, uint64_t max_ops, int64_t end_ns,
		 uint64_t *nr_ops);
/* Opens what @how works on, settled, with nothing left to be written: the large file, or a new one to append to. A descriptor
 * or -errno. */
int sync_ops_open(struct workspace *ws, enum sync_how how);
/* Closes @fd; the file that was appended to is removed. */
int sync_ops_close(struct workspace *ws, enum sync_how how, int fd);

#endif
