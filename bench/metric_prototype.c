/* SPDX-License-Identifier: MIT
 * The seven metrics of the prototype's harness, by its definitions. */
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { NR_SMALL_WRITES = 128, NR_FLUSHES = 64, NR_OVERWRITES = 16, NR_OVERWRITE_READS = 9, NR_EMPTY = 40 };

static double mean_ms(const struct workspace *ws)
{
	double sum = 0;
	for (size_t i = 0; i < ws->nr_times; i++)
		sum += (double)ws->times_ns[i];
	return sum / (double)ws->nr_times / 1e6;
}

static int64_t sum_ns(const struct workspace *ws)
{
	int64_t sum = 0;
	for (size_t i = 0; i < ws->nr_times; i++)
		sum += (int64_t)ws->times_ns[i];
	return sum;
}

int metric_seq_write(struct workspace *ws, struct metric_result *r)
{
	uint64_t len = ws->config->file_bytes;
	int fd = workspace_create(ws, "file", O_WRONLY);
	if (fd < 0)
		return fd;
	int64_t start = workspace_now_ns();
	int err = workspace_write_pieces(ws, fd, len);
	int64_t ack_ns = workspace_now_ns() - start;
	if (!err && fsync(fd) != 0)
		err = -errno;
	int64_t ns = workspace_now_ns() - start;
	close(fd);
	if (err) {
		workspace_remove(ws, "file");
		return err;
	}
	ws->has_file = true;
	workspace_rate(r, METRIC_MIB_S, len / WS_PIECE, WS_PIECE, ns, ack_ns);
	return 0;
}

int metric_seq_read(struct workspace *ws, struct metric_result *r)
{
	int err = workspace_need_direct(ws, r);
	if (!err)
		err = workspace_need_file(ws);
	if (err)
		return err;
	int fd = workspace_reopen(ws, "file", O_RDONLY | O_DIRECT);
	if (fd < 0)
		return fd;
	err = workspace_read_pieces(ws, fd, ws->config->file_bytes, true);
	close(fd);
	if (err == -EBADMSG)
		snprintf(r->note, sizeof(r->note), "read other bytes than were written");
	if (!err)
		workspace_rate(r, METRIC_MIB_S, ws->nr_times, WS_PIECE, sum_ns(ws), 0);
	return err;
}

static int small_writes(struct workspace *ws, struct metric_result *r, int flags)
{
	int err = workspace_need_direct(ws, r);
	if (!err)
		err = workspace_need_file(ws);
	if (err)
		return err;
	int fd = workspace_reopen(ws, "file", O_WRONLY | O_DIRECT | flags);
	if (fd < 0)
		return fd;
	uint64_t state = ws->config->seed, nr_blocks = ws->config->file_bytes / WS_BLOCK;
	for (unsigned i = 0; i < NR_SMALL_WRITES && !err; i++) {
		uint64_t block = stats_random(&state) % nr_blocks;
		workspace_fill(ws, ws->buffers, block, WS_BLOCK);
		int64_t start = workspace_now_ns();
		if (pwrite(fd, ws->buffers, WS_BLOCK, (off_t)(block * WS_BLOCK)) != WS_BLOCK)
			err = -errno;
		workspace_took(ws, workspace_now_ns() - start);
	}
	close(fd);
	r->value = mean_ms(ws);
	return err;
}

int metric_small_write(struct workspace *ws, struct metric_result *r)
{
	return small_writes(ws, r, 0);
}

int metric_dsync_write(struct workspace *ws, struct metric_result *r)
{
	return small_writes(ws, r, O_DSYNC);
}

int metric_clean_flush(struct workspace *ws, struct metric_result *r)
{
	int err = workspace_need_file(ws);
	if (err)
		return err;
	int fd = workspace_reopen(ws, "file", O_WRONLY);
	if (fd < 0)
		return fd;
	if (fsync(fd) != 0)
		err = -errno;
	for (unsigned i = 0; i < NR_FLUSHES && !err; i++) {
		int64_t start = workspace_now_ns();
		if (fsync(fd) != 0)
			err = -errno;
		workspace_took(ws, workspace_now_ns() - start);
	}
	close(fd);
	r->value = mean_ms(ws);
	return err;
}

static int overwrite(struct workspace *ws, int fd)
{
	workspace_fill(ws, ws->buffers, 0, WS_PIECE);
	for (unsigned i = 0; i < 1 + NR_OVERWRITES; i++) {
		if (pwrite(fd, ws->buffers, WS_PIECE, 0) != WS_PIECE)
			return -errno;
	}
	return fsync(fd) == 0 ? 0 : -errno;
}

int metric_overwrite_read(struct workspace *ws, struct metric_result *r)
{
	int err = workspace_need_direct(ws, r);
	if (err)
		return err;
	int fd = workspace_create(ws, "overwrite", O_WRONLY);
	if (fd < 0)
		return fd;
	err = overwrite(ws, fd);
	close(fd);
	fd = err ? err : workspace_reopen(ws, "overwrite", O_RDONLY | O_DIRECT);
	double ms[NR_OVERWRITE_READS];
	for (unsigned i = 0; i < NR_OVERWRITE_READS && fd >= 0 && !err; i++) {
		err = workspace_read_pieces(ws, fd, WS_PIECE, true);
		if (!err)
			ms[i] = (double)ws->times_ns[i] / 1e6;
	}
	if (fd >= 0)
		close(fd);
	if (!err && fd >= 0)
		r->value = stats_median(ms, NR_OVERWRITE_READS);
	int remove_err = workspace_remove(ws, "overwrite");
	return fd < 0 ? fd : err ? err : remove_err;
}

static int create_empty(struct workspace *ws)
{
	for (unsigned i = 0; i < NR_EMPTY; i++) {
		char name[32];
		snprintf(name, sizeof(name), "empty%u", i);
		int64_t start = workspace_now_ns();
		int fd = workspace_create(ws, name, O_WRONLY);
		if (fd < 0)
			return fd;
		close(fd);
		workspace_took(ws, workspace_now_ns() - start);
		ws->nr_empty = i + 1;
	}
	return 0;
}

int metric_create(struct workspace *ws, struct metric_result *r)
{
	int err = create_empty(ws);
	if (!err)
		r->value = mean_ms(ws);
	return err;
}

int metric_delete(struct workspace *ws, struct metric_result *r)
{
	int err = ws->nr_empty ? 0 : create_empty(ws);
	workspace_reset(ws);
	while (!err && ws->nr_empty) {
		char name[32];
		snprintf(name, sizeof(name), "empty%u", ws->nr_empty - 1);
		int64_t start = workspace_now_ns();
		err = workspace_remove(ws, name);
		workspace_took(ws, workspace_now_ns() - start);
		ws->nr_empty--;
	}
	if (!err)
		r->value = mean_ms(ws);
	return err;
}
