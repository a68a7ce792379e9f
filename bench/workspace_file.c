/* SPDX-License-Identifier: MIT
 * The files of the workspace: created, filled, read and verified. */
#include "workspace.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int workspace_create(struct workspace *ws, const char *name, int flags)
{
	if (ws->raw)
		return -EOPNOTSUPP;
	int fd = openat(ws->dir_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int workspace_reopen(struct workspace *ws, const char *name, int flags)
{
	int fd = -1;
	if (!ws->raw)
		fd = openat(ws->dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC);
	else if (!strcmp(name, "file"))
		fd = open(ws->raw, flags | O_CLOEXEC);
	else
		errno = ENOENT;
	return fd < 0 ? -errno : fd;
}

int workspace_remove(struct workspace *ws, const char *name)
{
	return ws->raw || unlinkat(ws->dir_fd, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
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

/* All of @fd, durable; closes it. */
static int write_whole(struct workspace *ws, int fd, uint64_t len)
{
	int err = workspace_write_pieces(ws, fd, len);
	if (!err && fsync(fd) != 0)
		err = -errno;
	close(fd);
	workspace_reset(ws);
	return err;
}

int workspace_need_file(struct workspace *ws)
{
	if (ws->has_file)
		return 0;
	int fd = ws->raw ? workspace_reopen(ws, "file", O_WRONLY) : workspace_create(ws, "file", O_WRONLY);
	if (fd < 0)
		return fd;
	int err = write_whole(ws, fd, ws->config->file_bytes);
	if (err)
		workspace_remove(ws, "file");
	ws->has_file = !err;
	return err;
}

/* -- the set -------------------------------------------------------------------------------------------------------- */
static void set_name(char name[WS_NAME_LEN], unsigned i)
{
	snprintf(name, WS_NAME_LEN, "set%u", i);
}

uint64_t workspace_set_file_bytes(const struct workspace *ws)
{
	uint64_t pieces = ws->config->file_bytes / WS_PIECE / WS_SET_FILES;
	return (pieces ? pieces : 1) * WS_PIECE;
}

bool workspace_remove_set(struct workspace *ws)
{
	bool good = true;
	for (unsigned i = 0; i < WS_SET_FILES; i++) {
		char name[WS_NAME_LEN];
		set_name(name, i);
		good = workspace_remove(ws, name) == 0 && good;
	}
	return good;
}

int workspace_need_set(struct workspace *ws)
{
	int err = 0;
	for (unsigned i = 0; i < WS_SET_FILES && !ws->has_set && !err; i++) {
		char name[WS_NAME_LEN];
		set_name(name, i);
		int fd = workspace_create(ws, name, O_WRONLY);
		err = fd < 0 ? fd : write_whole(ws, fd, workspace_set_file_bytes(ws));
	}
	if (err)
		workspace_remove_set(ws);
	ws->has_set = !err;
	return err;
}

int workspace_open_set(struct workspace *ws, int fds[WS_SET_FILES], int flags)
{
	int err = 0;
	for (unsigned i = 0; i < WS_SET_FILES; i++) {
		char name[WS_NAME_LEN];
		set_name(name, i);
		fds[i] = err ? err : workspace_reopen(ws, ws->raw ? "file" : name, flags);
		err = fds[i] < 0 ? fds[i] : 0;
	}
	return err;
}

void workspace_close_set(int fds[WS_SET_FILES])
{
	for (unsigned i = 0; i < WS_SET_FILES; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

/* -- small files: small0/0 to small0/99, small1/100 and so on ------------------------------------------------------- */
int workspace_create_small(struct workspace *ws, uint64_t i)
{
	char name[WS_NAME_LEN];
	if (i % WS_FILES_PER_DIR == 0) {
		workspace_small_dir(name, i);
		if (ws->raw || mkdirat(ws->dir_fd, name, 0700) != 0)
			return ws->raw ? -EOPNOTSUPP : -errno;
	}
	/* From here on removal has to look for it, also when the directory is all that there will be. */
	ws->nr_small = i + 1;
	workspace_small_name(name, i);
	int fd = workspace_create(ws, name, O_WRONLY);
	if (fd < 0)
		return fd;
	errno = 0;
	int err = write(fd, ws->buffers, WS_BLOCK) == WS_BLOCK ? 0 : errno ? -errno : -ENOSPC;
	return close(fd) == 0 ? err : err ? err : -errno;
}

void workspace_small_name(char name[WS_NAME_LEN], uint64_t i)
{
	snprintf(name, WS_NAME_LEN, "small%ju/%ju", (uintmax_t)(i / WS_FILES_PER_DIR), (uintmax_t)i);
}

void workspace_small_dir(char name[WS_NAME_LEN], uint64_t i)
{
	snprintf(name, WS_NAME_LEN, "small%ju", (uintmax_t)(i / WS_FILES_PER_DIR));
}
