/* SPDX-License-Identifier: MIT
 * Opening and closing of the workspace, probes, sync, results. The files in it: workspace_file.c. */
#include "workspace.h"

#include "cli.h"
#include "poolfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char drop_caches[] = "/proc/sys/vm/drop_caches";

int64_t workspace_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

void workspace_reset(struct workspace *ws)
{
	ws->nr_times = 0;
}

/* -- buffers -------------------------------------------------------------------------------------------------------- */
void *workspace_map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static size_t max_times_of(const struct metric_config *config)
{
	uint64_t most = 4 * config->nr_ops;
	if (config->nr_files > most)
		most = config->nr_files;
	if (config->file_bytes / WS_PIECE > most)
		most = config->file_bytes / WS_PIECE;
	return most > 1024 ? most : 1024;
}

int workspace_reserve_times(struct workspace *ws, size_t nr)
{
	if (nr <= ws->max_times)
		return 0;
	uint64_t *times = workspace_map(nr * sizeof(*times));
	if (!times)
		return -ENOMEM;
	memcpy(times, ws->times_ns, ws->nr_times * sizeof(*times));
	munmap(ws->times_ns, ws->max_times * sizeof(*times));
	ws->times_ns = times;
	ws->max_times = nr;
	return 0;
}

static int make_buffers(struct workspace *ws)
{
	ws->max_times = max_times_of(ws->config);
	ws->pattern = workspace_map(WS_PIECE);
	ws->buffers = workspace_map((size_t)WS_DEPTH * WS_PIECE);
	ws->times_ns = workspace_map(ws->max_times * sizeof(*ws->times_ns));
	if (!ws->pattern || !ws->buffers || !ws->times_ns)
		return -ENOMEM;
	uint64_t state = ws->config->seed;
	for (size_t i = 0; i < WS_PIECE; i += sizeof(uint64_t)) {
		uint64_t word = stats_random(&state);
		memcpy(ws->pattern + i, &word, sizeof(word));
	}
	for (unsigned i = 0; i < WS_DEPTH; i++)
		memcpy(ws->buffers + (size_t)i * WS_PIECE, ws->pattern, WS_PIECE);
	return 0;
}

static void free_buffers(struct workspace *ws)
{
	if (ws->pattern)
		munmap(ws->pattern, WS_PIECE);
	if (ws->buffers)
		munmap(ws->buffers, (size_t)WS_DEPTH * WS_PIECE);
	if (ws->times_ns)
		munmap(ws->times_ns, ws->max_times * sizeof(*ws->times_ns));
}

/* -- probes --------------------------------------------------------------------------------------------------------- */
static bool write_read_compare(int fd, unsigned char *buffer, size_t len)
{
	unsigned char *copy = buffer + WS_PIECE;
	memset(copy, 0, len);
	return pwrite(fd, buffer, len, 0) == (ssize_t)len && pread(fd, copy, len, 0) == (ssize_t)len &&
	       !memcmp(buffer, copy, len);
}

static int probe_direct(struct workspace *ws)
{
	const char *name = ws->raw ? "file" : "probe";
	int fd = ws->raw ? workspace_reopen(ws, name, O_RDWR) : workspace_create(ws, name, O_RDWR);
	if (fd < 0)
		return fd;
	close(fd);
	int direct_fd = workspace_reopen(ws, name, O_RDWR | O_DIRECT);
	errno = direct_fd < 0 ? -direct_fd : EIO;
	ws->direct = direct_fd >= 0 && write_read_compare(direct_fd, ws->buffers, WS_BLOCK) &&
		     write_read_compare(direct_fd, ws->buffers, WS_PIECE);
	if (!ws->direct)
		snprintf(ws->direct_why, sizeof(ws->direct_why), "O_DIRECT does not work here: %s", strerror(errno));
	if (direct_fd >= 0)
		close(direct_fd);
	return ws->raw ? 0 : workspace_remove(ws, name);
}

/* -- open and close ------------------------------------------------------------------------------------------------- */
static int make_dir(struct workspace *ws, const char *dir)
{
	if ((size_t)snprintf(ws->path, sizeof(ws->path), "%s/poolfs-bench.XXXXXX", dir) >= sizeof(ws->path))
		return -ENAMETOOLONG;
	if (!mkdtemp(ws->path)) {
		int err = -errno;
		ws->path[0] = 0;
		return err;
	}
	ws->dir_fd = open(ws->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return ws->dir_fd < 0 ? -errno : 0;
}

/* What is the same for both, when @err is 0. */
static int prepare(struct workspace *ws, const char *name, int err)
{
	if (!err)
		err = make_buffers(ws);
	if (!err) {
		ws->pool = !ws->raw && ioctl(ws->dir_fd, POOLFS_IOC_SYNC) == 0;
		ws->cold = access(drop_caches, W_OK) == 0;
		err = probe_direct(ws);
	}
	if (err)
		cli_message("%s: %s", name, strerror(-err));
	return err;
}

int workspace_open(struct workspace *ws, const char *dir, const struct metric_config *config)
{
	*ws = (struct workspace){ .config = config, .dir_fd = -1 };
	return prepare(ws, dir, make_dir(ws, dir));
}

int workspace_open_raw(struct workspace *ws, const char *raw, const struct metric_config *config)
{
	*ws = (struct workspace){ .config = config, .raw = raw };
	ws->dir_fd = open(raw, O_RDWR | O_CLOEXEC);
	return prepare(ws, raw, ws->dir_fd < 0 ? -errno : 0);
}

/* The names of small files and empty ones tell themselves; see workspace_file.c. */
static bool remove_all(struct workspace *ws)
{
	static const char *const names[] = { "probe", "file", "direct", "overwrite", "append" };
	bool good = true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		good = workspace_remove(ws, names[i]) == 0 && good;
	good = workspace_remove_set(ws) && good;
	for (; ws->nr_empty; ws->nr_empty--) {
		char name[WS_NAME_LEN];
		snprintf(name, sizeof(name), "empty%u", ws->nr_empty - 1);
		good = workspace_remove(ws, name) == 0 && good;
	}
	if (ws->nr_small) {
		struct metric_result unused = { 0 };
		good = metric_file_unlink(ws, &unused) == 0 && good;
	}
	return good;
}

bool workspace_close(struct workspace *ws)
{
	bool good = true;
	if (ws->dir_fd >= 0) {
		good = ws->raw || remove_all(ws);
		close(ws->dir_fd);
	}
	if (ws->path[0] && rmdir(ws->path) != 0)
		good = false;
	if (!good)
		cli_message("%s: not everything could be removed: %s", ws->path, strerror(errno));
	free_buffers(ws);
	metric_mixed_free(ws->mixed);
	*ws = (struct workspace){ .dir_fd = -1 };
	return good;
}

/* -- sync ----------------------------------------------------------------------------------------------------------- */
int workspace_sync(struct workspace *ws)
{
	/* Of a device, syncfs() means the filesystem that its name is in. */
	if (ws->raw && fsync(ws->dir_fd) != 0)
		return -errno;
	if (syncfs(ws->dir_fd) != 0 || (ws->pool && ioctl(ws->dir_fd, POOLFS_IOC_SYNC) != 0))
		return -errno;
	return 0;
}

int workspace_settle(struct workspace *ws)
{
	return ws->cold ? workspace_drop_caches(ws) : workspace_sync(ws);
}

static int drop(void)
{
	int fd = open(drop_caches, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = write(fd, "3\n", 2) == 2 ? 0 : -errno;
	close(fd);
	return err;
}

int workspace_drop_caches(struct workspace *ws)
{
	int err = workspace_sync(ws);
	return err ? err : drop();
}

void workspace_drop_page_cache(void)
{
	drop();
}

/* -- results -------------------------------------------------------------------------------------------------------- */
static double in_unit(enum metric_unit unit, uint64_t nr, uint64_t bytes, int64_t ns)
{
	double seconds = ns > 0 ? (double)ns / 1e9 : 1e-9;
	switch (unit) {
	case METRIC_MIB_S:
		return (double)nr * (double)bytes / WS_PIECE / seconds;
	case METRIC_PER_S:
		return (double)nr / seconds;
	case METRIC_US:
		return seconds * 1e6 / (double)nr;
	default:
		return seconds * 1e3 / (double)nr;
	}
}

void workspace_mean_us(const struct workspace *ws, struct metric_result *r)
{
	double sum_ns = 0;
	for (size_t i = 0; i < ws->nr_times; i++)
		sum_ns += (double)ws->times_ns[i];
	r->value = ws->nr_times ? sum_ns / (double)ws->nr_times / 1e3 : 0;
}

void workspace_rate(struct metric_result *r, enum metric_unit unit, uint64_t nr, uint64_t bytes, int64_t ns,
		    int64_t ack_ns)
{
	r->value = in_unit(unit, nr, bytes, ns);
	r->acknowledged = ack_ns ? in_unit(unit, nr, bytes, ack_ns) : 0;
}

int workspace_skip(struct metric_result *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->note, sizeof(r->note), fmt, ap);
	va_end(ap);
	r->state = METRIC_SKIPPED;
	return -EOPNOTSUPP;
}

int workspace_need_direct(struct workspace *ws, struct metric_result *r)
{
	return ws->direct ? 0 : workspace_skip(r, "%s", ws->direct_why);
}
