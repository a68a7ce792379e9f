/* SPDX-License-Identifier: MIT
 *
 * Purpose: the directory in which the metrics work: new files in a new directory, buffers, times, sync, dropping of caches.
 *
 * Invariants
 *   I1  Every file is created exclusively in a directory that was created here. workspace_close() removes what was created,
 *       by name; what somebody else put there stays, and the directory with it.
 *   I2  Buffers are aligned, and touched, before anything is timed; timed loops allocate nothing.
 *   I3  Each 4 KiB block of the file says in its first bytes which it is; overwrites write the same. So the file can be
 *       verified at any time.
 *   I4  O_DIRECT was tried by writing, reading back and comparing. Where it is refused, direct metrics do not run: buffered
 *       figures under that name would be beautiful and wrong.
 *
 * Uses: metric.h, poolfs.h (for the ioctl by which a mounted pool is synced), libc.
 */
#ifndef BENCH_WORKSPACE_H
#define BENCH_WORKSPACE_H

#include "metric.h"

#include <limits.h>
#include <sys/types.h>

enum {
	WS_BLOCK = 4096,
	WS_PIECE = 1 << 20, /* of sequential work */
	WS_DEPTH = 32,
	WS_FILES_PER_DIR = 100,
	WS_WHY_LEN = 120,
};

struct workspace {
	const struct metric_config *config;
	int dir_fd;          /* of the directory made here */
	char path[PATH_MAX]; /* its name */
	bool pool;           /* it is on a mounted pool: sync has to ask the daemon */
	bool direct;
	char direct_why[WS_WHY_LEN]; /* why not */
	bool cold;                   /* caches can be dropped */

	unsigned char *pattern; /* WS_PIECE bytes that do not compress */
	unsigned char *buffers; /* WS_DEPTH pieces */
	uint64_t *times_ns;
	size_t nr_times, max_times;

	bool has_file;     /* "file" is there, whole */
	uint64_t nr_small; /* so many small files are there */
	unsigned nr_empty;
};

/* 0 or -errno after a message. The workspace may be closed in both cases. */
int workspace_open(struct workspace *ws, const char *dir, const struct metric_config *config);
/* False, after a message, when something could not be removed. */
bool workspace_close(struct workspace *ws);
/* Forgets the times of the metric before. */
void workspace_reset(struct workspace *ws);

/* -- time ----------------------------------------------------------------------------------------------------------- */
int64_t workspace_now_ns(void);
static inline void workspace_took(struct workspace *ws, int64_t ns)
{
	if (ws->nr_times < ws->max_times)
		ws->times_ns[ws->nr_times++] = (uint64_t)ns;
}

/* -- results -------------------------------------------------------------------------------------------------------- */
/* Fills @r: @nr operations of @bytes bytes each in @ns (and in @ack_ns before the sync; 0: there was none). */
void workspace_rate(struct metric_result *r, enum metric_unit unit, uint64_t nr, uint64_t bytes, int64_t ns,
		    int64_t ack_ns);
/* The metric cannot run here, and why. Returns -EOPNOTSUPP. */
int workspace_skip(struct metric_result *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same when there is no O_DIRECT; otherwise 0. */
int workspace_need_direct(struct workspace *ws, struct metric_result *r);

/* -- files ---------------------------------------------------------------------------------------------------------- */
/* A new file, or an existing one of ours. A descriptor or -errno. */
int workspace_create(struct workspace *ws, const char *name, int flags);
int workspace_reopen(struct workspace *ws, const char *name, int flags);
int workspace_remove(struct workspace *ws, const char *name);
/* Writes all of @fd in pieces without an fsync; times each piece. */
int workspace_write_pieces(struct workspace *ws, int fd, uint64_t file_bytes);
/* Reads all in pieces, times each; @verify compares every byte (untimed). */
int workspace_read_pieces(struct workspace *ws, int fd, uint64_t file_bytes, bool verify);
/* The file of config->file_bytes, made and durable. */
int workspace_need_file(struct workspace *ws);
/* What block @block of it holds, into @buffer. */
void workspace_fill(const struct workspace *ws, void *buffer, uint64_t block, size_t len);

/* Everything in the filesystem is durable: syncfs, and what "poolfs sync" asks of the daemon. */
int workspace_sync(struct workspace *ws);
/* workspace_sync(), then page cache, entries and inodes of the kernel are dropped. */
int workspace_drop_caches(struct workspace *ws);

#endif
