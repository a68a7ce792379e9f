/* SPDX-License-Identifier: MIT
 * Random 4 KiB, O_DIRECT, one at a time. With 32 in flight: metric_sequential.c has the queue. */
#include "cli.h"
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int one(struct workspace *ws, int fd, uint64_t block, bool write)
{
	off_t at = (off_t)(block * WS_BLOCK);
	if (write)
		workspace_fill(ws, ws->buffers, block, WS_BLOCK);
	int64_t start = workspace_now_ns();
	ssize_t n = write ? pwrite(fd, ws->buffers, WS_BLOCK, at) : pread(fd, ws->buffers, WS_BLOCK, at);
	workspace_took(ws, workspace_now_ns() - start);
	return n == WS_BLOCK ? 0 : n < 0 ? -errno : -EIO;
}

static int one_at_a_time(struct workspace *ws, struct metric_result *r, bool write)
{
	int err = workspace_need_direct(ws, r);
	if (!err)
		err = workspace_need_file(ws);
	if (err)
		return err;
	int fd = workspace_reopen(ws, "file", O_RDWR | O_DIRECT);
	if (fd < 0)
		return fd;
	uint64_t state = ws->config->seed, nr_blocks = ws->config->file_bytes / WS_BLOCK;
	int64_t start = workspace_now_ns();
	for (uint64_t i = 0; i < ws->config->nr_ops && !err; i++)
		err = cli_interrupted() ? -EINTR : one(ws, fd, stats_random(&state) % nr_blocks, write);
	int64_t ack_ns = workspace_now_ns() - start;
	if (write && !err)
		err = fsync(fd) == 0 ? workspace_sync(ws) : -errno;
	int64_t ns = workspace_now_ns() - start;
	close(fd);
	workspace_rate(r, METRIC_PER_S, ws->config->nr_ops, WS_BLOCK, write ? ns : ack_ns, write ? ack_ns : 0);
	return err;
}

int metric_rand_read(struct workspace *ws, struct metric_result *r)
{
	return one_at_a_time(ws, r, false);
}

int metric_rand_write(struct workspace *ws, struct metric_result *r)
{
	return one_at_a_time(ws, r, true);
}
