/* SPDX-License-Identifier: MIT
 * Sequential work at 1 MiB: O_DIRECT one at a time and 32 in flight, buffered from cold and warm caches. */
#include "queue.h"
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int metric_direct_write(struct workspace *ws, struct metric_result *r)
{
	int err = workspace_need_direct(ws, r);
	if (err)
		return err;
	uint64_t len = ws->config->file_bytes;
	int fd = workspace_create(ws, "direct", O_WRONLY | O_DIRECT);
	if (fd < 0)
		return fd;
	int64_t start = workspace_now_ns();
	err = workspace_write_pieces(ws, fd, len);
	int64_t ack_ns = workspace_now_ns() - start;
	if (!err && fsync(fd) != 0)
		err = -errno;
	if (!err)
		err = workspace_sync(ws);
	int64_t ns = workspace_now_ns() - start;
	close(fd);
	int remove_err = workspace_remove(ws, "direct");
	workspace_rate(r, METRIC_MIB_S, len / WS_PIECE, WS_PIECE, ns, ack_ns);
	return err ? err : remove_err;
}

/* All of the file in pieces; opened with @flags. */
static int read_file(struct workspace *ws, struct metric_result *r, int flags)
{
	uint64_t len = ws->config->file_bytes;
	int fd = workspace_reopen(ws, "file", O_RDONLY | flags);
	if (fd < 0)
		return fd;
	int64_t start = workspace_now_ns();
	int err = workspace_read_pieces(ws, fd, len, false);
	int64_t ns = workspace_now_ns() - start;
	close(fd);
	workspace_rate(r, METRIC_MIB_S, len / WS_PIECE, WS_PIECE, ns, 0);
	return err;
}

int metric_direct_read(struct workspace *ws, struct metric_result *r)
{
	int err = workspace_need_direct(ws, r);
	if (!err)
		err = workspace_need_file(ws);
	return err ? err : read_file(ws, r, O_DIRECT);
}

int metric_cold_read(struct workspace *ws, struct metric_result *r)
{
	if (!ws->cold)
		return workspace_skip(r, "caches can be dropped by root only");
	int err = workspace_need_file(ws);
	if (!err)
		err = workspace_drop_caches(ws);
	return err ? err : read_file(ws, r, 0);
}

int metric_warm_read(struct workspace *ws, struct metric_result *r)
{
	int err = workspace_need_file(ws);
	if (!err)
		err = read_file(ws, r, 0);
	workspace_reset(ws);
	return err ? err : read_file(ws, r, 0);
}

/* -- 32 in flight --------------------------------------------------------------------------------------------------- */
static int deep(struct workspace *ws, struct metric_result *r, const struct queue_work *work, enum metric_unit unit)
{
	int err = workspace_need_direct(ws, r);
	if (!err)
		err = workspace_need_file(ws);
	if (err)
		return err;
	int fd = workspace_reopen(ws, "file", O_RDWR | O_DIRECT);
	if (fd < 0)
		return fd;
	int64_t took_ns = 0, sync_ns = 0;
	err = queue_run(ws, fd, work, &took_ns);
	if (!err && work->write) {
		int64_t start = workspace_now_ns();
		err = fsync(fd) == 0 ? workspace_sync(ws) : -errno;
		sync_ns = workspace_now_ns() - start;
	}
	close(fd);
	if (err == -ENOSYS || err == -EPERM)
		return workspace_skip(r, "io_uring is not available here");
	workspace_rate(r, unit, work->nr_ops, work->block_bytes, took_ns + sync_ns, work->write ? took_ns : 0);
	return err;
}

int metric_deep_write(struct workspace *ws, struct metric_result *r)
{
	struct queue_work work = { true, true, WS_PIECE, ws->config->file_bytes / WS_PIECE };
	return deep(ws, r, &work, METRIC_MIB_S);
}

int metric_deep_read(struct workspace *ws, struct metric_result *r)
{
	struct queue_work work = { false, true, WS_PIECE, ws->config->file_bytes / WS_PIECE };
	return deep(ws, r, &work, METRIC_MIB_S);
}

int metric_rand_read_deep(struct workspace *ws, struct metric_result *r)
{
	struct queue_work work = { false, false, WS_BLOCK, 4 * ws->config->nr_ops };
	return deep(ws, r, &work, METRIC_PER_S);
}

int metric_rand_write_deep(struct workspace *ws, struct metric_result *r)
{
	struct queue_work work = { true, false, WS_BLOCK, 4 * ws->config->nr_ops };
	return deep(ws, r, &work, METRIC_PER_S);
}
