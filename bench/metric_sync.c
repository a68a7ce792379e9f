/* SPDX-License-Identifier: MIT
 * What has to be durable before the program goes on: how long each operation takes, and how many 8 threads do. */
#include "cli.h"
#include "load.h"
#include "sync_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* -- operations ----------------------------------------------------------------------------------------------------- */
static int failed_write(ssize_t n)
{
	return n < 0 ? -errno : -ENOSPC;
}

static int one(struct workspace *ws, int fd, enum sync_how how, uint64_t block)
{
	if (how == SYNC_APPEND) {
		ssize_t n = write(fd, ws->buffers, SYNC_APPEND_BYTES);
		if (n != SYNC_APPEND_BYTES)
			return failed_write(n);
		return fdatasync(fd) == 0 ? 0 : -errno;
	}
	ssize_t n = pwrite(fd, ws->buffers, WS_BLOCK, (off_t)(block * WS_BLOCK));
	if (n != WS_BLOCK)
		return failed_write(n);
	return how == SYNC_WRITE_ONLY || fsync(fd) == 0 ? 0 : -errno;
}

int sync_ops_run(struct workspace *ws, int fd, uint64_t file_bytes, enum sync_how how, uint64_t max_ops, int64_t end_ns,
		 uint64_t *nr_ops)
{
	uint64_t state = ws->config->seed, nr_blocks = file_bytes / WS_BLOCK;
	int err = 0;
	*nr_ops = 0;
	workspace_fill(ws, ws->buffers, 0, WS_BLOCK);
	while (*nr_ops < max_ops && !err) {
		uint64_t block = stats_random(&state) % nr_blocks;
		if (how != SYNC_APPEND)
			workspace_fill(ws, ws->buffers, block, WS_BLOCK);
		int64_t start = workspace_now_ns();
		err = one(ws, fd, how, block);
		int64_t end = workspace_now_ns();
		if (err)
			break;
		workspace_took(ws, end - start);
		++*nr_ops;
		if (cli_interrupted())
			err = -EINTR;
		else if (end_ns && end >= end_ns)
			break;
	}
	return err;
}

int sync_ops_open(struct workspace *ws, enum sync_how how)
{
	int err, fd;
	if (how == SYNC_APPEND) {
		fd = workspace_create(ws, "append", O_WRONLY | O_APPEND);
	} else {
		err = workspace_need_file(ws);
		fd = err ? err : workspace_reopen(ws, "file", O_WRONLY | (how == SYNC_WRITE_ONLY ? O_SYNC : 0));
	}
	if (fd < 0)
		return fd;
	err = workspace_settle(ws);
	if (!err)
		return fd;
	sync_ops_close(ws, how, fd);
	return err;
}

int sync_ops_close(struct workspace *ws, enum sync_how how, int fd)
{
	close(fd);
	return how == SYNC_APPEND ? workspace_remove(ws, "append") : 0;
}

/* -- one at a time -------------------------------------------------------------------------------------------------- */
static int latency(struct workspace *ws, struct metric_result *r, enum sync_how how)
{
	int fd = sync_ops_open(ws, how);
	if (fd < 0)
		return fd;
	uint64_t nr;
	int err = sync_ops_run(ws, fd, ws->config->file_bytes, how, metric_sync_ops(ws->config), 0, &nr);
	int close_err = sync_ops_close(ws, how, fd);
	workspace_mean_us(ws, r);
	return err ? err : close_err;
}

int metric_sync_write(struct workspace *ws, struct metric_result *r)
{
	return latency(ws, r, SYNC_WRITE_FSYNC);
}

int metric_sync_append(struct workspace *ws, struct metric_result *r)
{
	return latency(ws, r, SYNC_APPEND);
}

int metric_osync_write(struct workspace *ws, struct metric_result *r)
{
	return latency(ws, r, SYNC_WRITE_ONLY);
}

/* -- 8 at once ------------------------------------------------------------------------------------------------------ */
struct parallel {
	struct workspace *ws;
	int fds[WS_SET_FILES];
	uint64_t nr_blocks, nr_each;
	uint64_t stride_blocks; /* between the shares of threads: 0 with a file for each */
};

/* Thread i has buffer i, and the i-th share of the times. */
static int parallel_body(unsigned thread, void *arg)
{
	struct parallel *p = arg;
	struct workspace *ws = p->ws;
	uint64_t first = thread * p->stride_blocks;
	unsigned char *buffer = ws->buffers + (size_t)thread * WS_PIECE;
	uint64_t state = ws->config->seed + thread, *times = ws->times_ns + thread * p->nr_each;
	for (uint64_t i = 0; i < p->nr_each; i++) {
		uint64_t block = first + stats_random(&state) % p->nr_blocks;
		workspace_fill(ws, buffer, block, WS_BLOCK);
		int64_t start = workspace_now_ns();
		ssize_t n = pwrite(p->fds[thread], buffer, WS_BLOCK, (off_t)(block * WS_BLOCK));
		if (n != WS_BLOCK)
			return failed_write(n);
		if (fsync(p->fds[thread]) != 0)
			return -errno;
		times[i] = (uint64_t)(workspace_now_ns() - start);
		if (cli_interrupted())
			return -EINTR;
	}
	return 0;
}

int metric_sync_parallel(struct workspace *ws, struct metric_result *r)
{
	uint64_t nr_ops = metric_sync_ops(ws->config);
	struct parallel p = {
		.ws = ws,
		.nr_blocks = workspace_set_file_bytes(ws) / WS_BLOCK,
		.nr_each = (nr_ops + WS_SET_FILES - 1) / WS_SET_FILES,
	};
	/* without a filesystem each has an eighth of the one file */
	p.stride_blocks = ws->raw ? p.nr_blocks : 0;
	int err = ws->raw ? workspace_need_file(ws) : workspace_need_set(ws);
	if (!err)
		err = workspace_reserve_times(ws, WS_SET_FILES * p.nr_each);
	if (err)
		return err;
	err = workspace_open_set(ws, p.fds, O_WRONLY);
	if (!err)
		err = workspace_settle(ws);
	int64_t start = workspace_now_ns();
	if (!err)
		err = load_run(WS_SET_FILES, parallel_body, &p);
	int64_t ns = workspace_now_ns() - start;
	workspace_close_set(p.fds);
	if (err)
		return err;
	ws->nr_times = WS_SET_FILES * p.nr_each;
	workspace_rate(r, METRIC_PER_S, ws->nr_times, WS_BLOCK, ns, 0);
	return 0;
}
