/* SPDX-License-Identifier: MIT
 * The files of the workspace: created, filled, read and verified. */
#include "workspace.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int workspace_create(struct workspace *ws, const char *name, int flags)
{
	int fd = openat(ws->dir_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int workspace_reopen(struct workspace *ws, const char *name, int flags)
{
	int fd = openat(ws->dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int workspace_remove(struct workspace *ws, const char *name)
{
	return unlinkat(ws->dir_fd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

void workspace_fill(const struct workspace *ws, void *buffer, uint64_t block, size_t len)
{
	unsigned char *p = buffer;
	for (size_t at = 0; at < len; at += WS_BLOCK, block++) {
		memcpy(p + at, ws->pattern + block % (WS_PIECE / WS_BLOCK) * WS_BLOCK, WS_BLOCK);
		memcpy(p + at, &block, sizeof(block));
	}
}

/* A buffer that holds a whole piece of the pattern needs only its numbers. */
static void number_blocks(unsigned char *piece, uint64_t block)
{
	for (size_t at = 0; at < WS_PIECE; at += WS_BLOCK, block++)
		memcpy(piece + at, &block, sizeof(block));
}

static bool piece_is_right(const struct workspace *ws, const unsigned char *piece, uint64_t block)
{
	for (size_t at = 0; at < WS_PIECE; at += WS_BLOCK, block++) {
		if (memcmp(piece + at, &block, sizeof(block)) != 0 ||
		    memcmp(piece + at + sizeof(block), ws->pattern + at + sizeof(block), WS_BLOCK - sizeof(block)) != 0)
			return false;
	}
	return true;
}

int workspace_write_pieces(struct workspace *ws, int fd, uint64_t file_bytes)
{
	workspace_fill(ws, ws->buffers, 0, WS_PIECE);
	for (uint64_t at = 0; at < file_bytes; at += WS_PIECE) {
		number_blocks(ws->buffers, at / WS_BLOCK);
		int64_t start = workspace_now_ns();
		ssize_t n = pwrite(fd, ws->buffers, WS_PIECE, (off_t)at);
		workspace_took(ws, workspace_now_ns() - start);
		if (n != WS_PIECE)
			return n < 0 ? -errno : -ENOSPC;
		if (cli_interrupted())
			return -EINTR;
	}
	return 0;
}

int workspace_read_pieces(struct workspace *ws, int fd, uint64_t file_bytes, bool verify)
{
	for (uint64_t at = 0; at < file_bytes; at += WS_PIECE) {
		int64_t start = workspace_now_ns();
		ssize_t n = pread(fd, ws->buffers, WS_PIECE, (off_t)at);
		workspace_took(ws, workspace_now_ns() - start);
		if (n != WS_PIECE)
			return n < 0 ? -errno : -ENODATA;
		if (verify && !piece_is_right(ws, ws->buffers, at / WS_BLOCK))
			return -EBADMSG;
		if (cli_interrupted())
			return -EINTR;
	}
	return 0;
}

int workspace_need_file(struct workspace *ws)
{
	if (ws->has_file)
		return 0;
	int fd = workspace_create(ws, "file", O_WRONLY);
	if (fd < 0)
		return fd;
	int err = workspace_write_pieces(ws, fd, ws->config->file_bytes);
	if (!err && fsync(fd) != 0)
		err = -errno;
	close(fd);
	workspace_reset(ws);
	if (err)
		workspace_remove(ws, "file");
	ws->has_file = !err;
	return err;
}
