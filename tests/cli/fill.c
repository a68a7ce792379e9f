/* SPDX-License-Identifier: MIT
 * Puts files into a pool without mounting it, for the shell tests:
 *   fill MEMBER... -- [OPERATION]...
 * Operations: mkdir PATH, write PATH BYTES (a pattern that differs in every block), rm PATH, xattr PATH NAME VALUE,
 * ino PATH (prints its inode number), fsync PATH, sync, crash (ends without closing the pool). */
#include "poolfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct pf_cred root_cred = { 0, 0 };

static void check(const char *what, int64_t err)
{
	if (err >= 0)
		return;
	fprintf(stderr, "fill: %s: %s\n", what, pf_strerror((int)err));
	exit(2);
}

/* The inode of the directory that @path lies in, and the last name. */
static uint64_t parent_of(struct pf_pool *pool, const char *path, const char **name)
{
	struct pf_attr attr = { .ino = PF_ROOT_INO };
	const char *slash;
	while (*path == '/')
		path++;
	while ((slash = strchr(path, '/'))) {
		check(path, pf_lookup(pool, attr.ino, path, (size_t)(slash - path), &attr));
		path = slash + 1;
	}
	*name = path;
	return attr.ino;
}

static uint64_t lookup(struct pf_pool *pool, const char *path)
{
	const char *name;
	struct pf_attr attr;
	uint64_t dir = parent_of(pool, path, &name);
	if (!*name)
		return dir;
	check(path, pf_lookup(pool, dir, name, strlen(name), &attr));
	return attr.ino;
}

static uint64_t create(struct pf_pool *pool, const char *path, uint32_t mode)
{
	const char *name;
	struct pf_attr attr;
	uint64_t dir = parent_of(pool, path, &name);
	check(path, pf_create(pool, dir, name, strlen(name), mode, root_cred, 0, 0, &attr));
	return attr.ino;
}

static void write_pattern(struct pf_pool *pool, const char *path, uint64_t len_bytes)
{
	enum { PIECE = 1 << 20 };
	uint64_t ino = create(pool, path, S_IFREG | 0644);
	uint64_t *buf = aligned_alloc(PF_BLOCK_SIZE, PIECE);
	if (!buf)
		check("memory", -ENOMEM);
	for (uint64_t at = 0; at < len_bytes; at += PIECE) {
		size_t n = len_bytes - at < PIECE ? (size_t)(len_bytes - at) : PIECE;
		for (size_t i = 0; i < PIECE / sizeof(*buf); i++)
			buf[i] = ino << 40 | (at / sizeof(*buf) + i);
		check(path, pf_write(pool, ino, at, buf, n, 0));
	}
	free(buf);
}

static void remove_file(struct pf_pool *pool, const char *path)
{
	const char *name;
	uint64_t dir = parent_of(pool, path, &name);
	check(path, pf_unlink(pool, dir, name, strlen(name)));
}

/* Runs one operation; returns the next word, NULL after "crash". */
static char **run_one(struct pf_pool *pool, char **w)
{
	if (!strcmp(w[0], "mkdir") && w[1]) {
		create(pool, w[1], S_IFDIR | 0755);
		return w + 2;
	}
	if (!strcmp(w[0], "write") && w[1] && w[2]) {
		write_pattern(pool, w[1], strtoull(w[2], NULL, 0));
		return w + 3;
	}
	if (!strcmp(w[0], "rm") && w[1]) {
		remove_file(pool, w[1]);
		return w + 2;
	}
	if (!strcmp(w[0], "xattr") && w[1] && w[2] && w[3]) {
		check(w[1], pf_setxattr(pool, lookup(pool, w[1]), w[2], w[3], strlen(w[3]), 0));
		return w + 4;
	}
	if (!strcmp(w[0], "ino") && w[1]) {
		printf("%ju\n", (uintmax_t)lookup(pool, w[1]));
		return w + 2;
	}
	if (!strcmp(w[0], "fsync") && w[1]) {
		check(w[1], pf_fsync(pool, lookup(pool, w[1])));
		return w + 2;
	}
	if (!strcmp(w[0], "sync")) {
		check("sync", pf_pool_sync(pool));
		return w + 1;
	}
	if (strcmp(w[0], "crash") != 0)
		check(w[0], -EINVAL);
	return NULL;
}

int main(int argc, char **argv)
{
	struct pf_pool_options opts = { 0 };
	struct pf_diag diag = { 0 };
	struct pf_pool *pool;
	unsigned nr = 0;
	while ((int)nr + 1 < argc && strcmp(argv[nr + 1], "--") != 0)
		nr++;
	int err = pf_pool_open((const char *const *)argv + 1, nr, &opts, pf_env_system(), &pool, &diag);
	if (err) {
		fprintf(stderr, "fill: %s (%s)\n", diag.text, pf_strerror(err));
		return 2;
	}
	char **w = argv + nr + 1;
	if (*w)
		w++;
	while (w && *w)
		w = run_one(pool, w);
	if (!w) {
		pf_pool_abandon(pool);
		return 0;
	}
	err = pf_pool_close(pool);
	check("close", err);
	return 0;
}
