/* SPDX-License-Identifier: MIT
 *
 * Purpose: where the metrics work: new files in a new directory, or a bare file or device in their place; buffers, times, sync,
 * dropping of caches.
 *
 * Invariants
 *   I1  Every file is created exclusively in a directory that was created here. workspace_close() removes what was created,
 *       by name; what somebody else put there stays, and the directory with it.
 *   I2  Buffers are aligned, and touched, before anything is timed; timed loops allocate nothing.
 *   I3  Each 4 KiB block of the file says in its first bytes which it is; overwrites write the same. So the file can be
 *       verified at any time.
 *   I4  O_DIRECT was tried by writing, reading back and comparing. Where it is refused, direct metrics do not run: buffered
 *       figures under that name would be beautiful and wrong.
 *   I5  On a bare file or device "file" is what it begins with, and there is no other name: what creates gets -EOPNOTSUPP.
 *
 * Uses: metric.h, counter.h, poolfs.h (for the ioctl by which a mounted pool is synced), libc.
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
	WS_SET_FILES = 8, /* that share the size of the large one */
	WS_WHY_LEN = 120,
	WS_NAME_LEN = 64,
};

struct counter;
struct mixed_load;

struct workspace {
	const struct metric_config *config;
	int dir_fd;                    /* of the directory made here, or of the bare file or device */
	char path[PATH_MAX];           /* its name */
	const char *raw;               /* the bare file or device, or NULL */
	bool pool;                     /* it is on a mounted pool: sync has to ask the daemon */
	bool keep_times;               /* those of pooled metrics stay in their results */
	bool no_reclaim;               /* what is overwritten is not free again: no work without bound */
	const struct counter *devices; /* what it is on; NULL: cannot be counted */
	bool direct;
	char direct_why[WS_WHY_LEN]; /* why not */
	bool cold;                   /* caches can be dropped */

	unsigned char *pattern; /* WS_PIECE bytes that do not compress */
	unsigned char *buffers; /* WS_DEPTH pieces */
	uint64_t *times_ns;
	size_t nr_times, max_times;

	bool has_file;            /* "file" is there, whole */
	bool has_set;             /* and so are the files of the set */
	struct mixed_load *mixed; /* its times, when it has run */
	uint64_t nr_small;        /* so many small files are there */
	unsigned nr_empty;
};

/* 0 or -errno after a message. The workspace may be closed in both cases. */
int workspace_open(struct workspace *ws, const char *dir, const struct metric_config *config);
/* On the file or device @raw, which has room for config->file_bytes; what is in it is lost. */
int workspace_open_raw(struct workspace *ws, const char *raw, const struct metric_config *config);
/* False, after a message, when something could not be removed. */
bool workspace_close(struct workspace *ws);
/* Forgets the times of the metric before. */
void workspace_reset(struct workspace *ws);
/* Memory that is there, for timed loops; munmap() it. NULL: none. */
void *workspace_map(size_t len);
/* Room for the times of @nr operations. Outside of what is timed. */
int workspace_reserve_times(struct workspace *ws, size_t nr);

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
/* What the times have gathered: their mean in microseconds, as the value. */
void workspace_mean_us(const struct workspace *ws, struct metric_result *r);
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
/* WS_SET_FILES files that are as large together, made and durable. */
int workspace_need_set(struct workspace *ws);
uint64_t workspace_set_file_bytes(const struct workspace *ws);
/* Without a filesystem each descriptor is of the one file, of which each user takes a share of workspace_set_file_bytes(). */
int workspace_open_set(struct workspace *ws, int fds[WS_SET_FILES], int flags);
void workspace_close_set(int fds[WS_SET_FILES]);
bool workspace_remove_set(struct workspace *ws);
/* A new file of one block that buffers[0] holds, number @i of the small ones, with its directory when it is the first in that. */
int workspace_create_small(struct workspace *ws, uint64_t i);
void workspace_small_name(char name[WS_NAME_LEN], uint64_t i);
void workspace_small_dir(char name[WS_NAME_LEN], uint64_t i);
/* What block @block of it holds, into @buffer. */
void workspace_fill(const struct workspace *ws, void *buffer, uint64_t block, size_t len);

/* Everything in the filesystem is durable: syncfs, and what "poolfs sync" asks of the daemon. */
int workspace_sync(struct workspace *ws);
/* workspace_sync(), then page cache, entries and inodes of the kernel are dropped. */
int workspace_drop_caches(struct workspace *ws);
/* The page cache, entries and inodes of the whole machine, when that is possible. */
void workspace_drop_page_cache(void);
/* Nothing is left to be written, and caches are dropped when that is possible. */
int workspace_settle(struct workspace *ws);

#endif
