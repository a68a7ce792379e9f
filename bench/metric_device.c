/* SPDX-License-Identifier: MIT
 * What the devices wrote for what was made durable. The filesystem's own work in the background belongs to it: it runs for some
 * time, and what is left over is written before the counting ends. */
#include "counter.h"
#include "sync_ops.h"

#include <errno.h>
#include <stdio.h>

/* More than any filesystem does in a second, so that every time has its place. */
enum { MAX_PER_SECOND = 50000 };

/* Bytes for each operation into @bytes. */
static int count(struct workspace *ws, struct metric_result *r, enum sync_how how, double *bytes)
{
	if (!ws->devices)
		return workspace_skip(r, "bytes are counted in comparisons on loop devices");
	if (ws->no_reclaim)
		return workspace_skip(r, "this version does not get overwritten space back");
	uint64_t nr = 0, max_ops = ws->config->seconds * MAX_PER_SECOND;
	int err = workspace_reserve_times(ws, max_ops);
	int fd = err ? err : sync_ops_open(ws, how);
	if (fd < 0)
		return fd;
	struct counter_values before, after;
	err = counter_read(ws->devices, &before);
	int64_t end_ns = workspace_now_ns() + (int64_t)ws->config->seconds * 1000000000;
	if (!err)
		err = sync_ops_run(ws, fd, ws->config->file_bytes, how, max_ops, end_ns, &nr);
	if (!err)
		err = workspace_sync(ws);
	if (!err)
		err = counter_read(ws->devices, &after);
	int close_err = sync_ops_close(ws, how, fd);
	if (err || close_err)
		return err ? err : close_err;
	if (after.bytes <= before.bytes)
		return -ENODATA;
	*bytes = (double)(after.bytes - before.bytes) / (double)nr;
	snprintf(r->note, sizeof(r->note), "%ju operations: %.2f flushes of the devices each", (uintmax_t)nr,
		 (double)(after.flushes - before.flushes) / (double)nr);
	return 0;
}

int metric_sync_write_bytes(struct workspace *ws, struct metric_result *r)
{
	double bytes = 0;
	int err = count(ws, r, SYNC_WRITE_FSYNC, &bytes);
	r->value = bytes / WS_BLOCK;
	return err;
}

int metric_append_bytes(struct workspace *ws, struct metric_result *r)
{
	double bytes = 0;
	int err = count(ws, r, SYNC_APPEND, &bytes);
	r->value = bytes / 1024;
	return err;
}
