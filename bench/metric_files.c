/* SPDX-License-Identifier: MIT
 * Many small files. */
#include "cli.h"
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int stat_one(struct workspace *ws, uint64_t i)
{
	char name[WS_NAME_LEN];
	struct stat st;
	workspace_small_name(name, i);
	if (fstatat(ws->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -errno;
	return st.st_size == WS_BLOCK ? 0 : -EIO;
}

static int read_one(struct workspace *ws, uint64_t i)
{
	char name[WS_NAME_LEN];
	workspace_small_name(name, i);
	int fd = workspace_reopen(ws, name, O_RDONLY);
	if (fd < 0)
		return fd;
	ssize_t n = read(fd, ws->buffers, WS_BLOCK);
	int err = n == WS_BLOCK ? 0 : n < 0 ? -errno : -EIO;
	close(fd);
	return err;
}

static int unlink_one(struct workspace *ws, uint64_t i)
{
	char name[WS_NAME_LEN];
	workspace_small_name(name, i);
	int err = workspace_remove(ws, name);
	if (!err && (i + 1) % WS_FILES_PER_DIR != 0 && i + 1 != ws->nr_small)
		return 0;
	workspace_small_dir(name, i);
	return err ? err : unlinkat(ws->dir_fd, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

/* @action on @nr files, each timed. */
static int each(struct workspace *ws, uint64_t nr, int (*action)(struct workspace *, uint64_t))
{
	for (uint64_t i = 0; i < nr; i++) {
		int64_t start = workspace_now_ns();
		errno = 0;
		int err = action(ws, i);
		if (err)
			return err;
		workspace_took(ws, workspace_now_ns() - start);
		/* Removal goes on: it is how we leave. */
		if (action != unlink_one && cli_interrupted())
			return -EINTR;
	}
	return 0;
}

int metric_file_create(struct workspace *ws, struct metric_result *r)
{
	uint64_t nr = ws->config->nr_files;
	workspace_fill(ws, ws->buffers, 0, WS_BLOCK);
	int64_t start = workspace_now_ns();
	int err = each(ws, nr, workspace_create_small);
	int64_t ack_ns = workspace_now_ns() - start;
	if (!err)
		err = workspace_sync(ws);
	workspace_rate(r, METRIC_PER_S, nr, WS_BLOCK, workspace_now_ns() - start, ack_ns);
	return err;
}

static int need_files(struct workspace *ws)
{
	if (ws->nr_small)
		return ws->nr_small == ws->config->nr_files ? 0 : -ENOENT;
	struct metric_result unused;
	int err = metric_file_create(ws, &unused);
	workspace_reset(ws);
	return err;
}

/* Reading, from cold caches when that is possible. */
static int visit(struct workspace *ws, struct metric_result *r, int (*action)(struct workspace *, uint64_t))
{
	int err = need_files(ws);
	if (!err && ws->cold)
		err = workspace_drop_caches(ws);
	else if (!err)
		snprintf(r->note, sizeof(r->note), "warm: caches can be dropped by root only");
	if (err)
		return err;
	int64_t start = workspace_now_ns();
	err = each(ws, ws->nr_small, action);
	workspace_rate(r, METRIC_PER_S, ws->nr_small, WS_BLOCK, workspace_now_ns() - start, 0);
	return err;
}

int metric_file_stat(struct workspace *ws, struct metric_result *r)
{
	return visit(ws, r, stat_one);
}

int metric_file_read(struct workspace *ws, struct metric_result *r)
{
	return visit(ws, r, read_one);
}

int metric_file_unlink(struct workspace *ws, struct metric_result *r)
{
	int err = need_files(ws);
	if (err && !ws->nr_small)
		return err;
	uint64_t nr = ws->nr_small;
	int64_t start = workspace_now_ns();
	err = each(ws, nr, unlink_one);
	int64_t ack_ns = workspace_now_ns() - start;
	if (!err) {
		ws->nr_small = 0;
		err = workspace_sync(ws);
	}
	workspace_rate(r, METRIC_PER_S, nr, WS_BLOCK, workspace_now_ns() - start, ack_ns);
	return err;
}
