/* SPDX-License-Identifier: MIT
 * Mixed load for some time, so that commits and checkpoints of all who are compared fall into it: threads that read and write,
 * and one that creates files. It runs once for its three metrics. */
#include "cli.h"
#include "load.h"
#include "workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
	NR_WORKERS = 4,
	NR_THREADS = NR_WORKERS + 1, /* the last one creates */
	READS_PERCENT = 70,
	MAX_PER_SECOND = 50000, /* operations of one thread, one at a time */
	CREATES_PER_SECOND = 200,
};
enum mixed_kind { MIXED_READ, MIXED_WRITE, MIXED_CREATE, NR_MIXED_KINDS };

struct mixed_times {
	uint64_t *ns;
	size_t nr, max;
	uint64_t worst_ns;
	int64_t worst_at_ns; /* since the start */
};

struct mixed_load {
	struct workspace *ws;
	int fds[WS_SET_FILES];
	uint64_t nr_blocks; /* of each of them */
	int64_t start_ns, end_ns;
	atomic_bool stop;
	struct mixed_times times[NR_THREADS][NR_MIXED_KINDS];
};

/* -- times ---------------------------------------------------------------------------------------------------------- */
static int reserve(struct mixed_times *t, size_t max)
{
	t->ns = workspace_map(max * sizeof(*t->ns));
	t->max = max;
	return t->ns ? 0 : -ENOMEM;
}

static void took(struct mixed_load *m, struct mixed_times *t, int64_t start)
{
	int64_t ns = workspace_now_ns() - start;
	if (t->nr < t->max)
		t->ns[t->nr++] = (uint64_t)ns;
	if ((uint64_t)ns > t->worst_ns) {
		t->worst_ns = (uint64_t)ns;
		t->worst_at_ns = start - m->start_ns;
	}
}

void metric_mixed_free(struct mixed_load *m)
{
	for (unsigned i = 0; i < NR_THREADS && m; i++) {
		for (unsigned k = 0; k < NR_MIXED_KINDS; k++) {
			if (m->times[i][k].ns)
				munmap(m->times[i][k].ns, m->times[i][k].max * sizeof(uint64_t));
		}
	}
	free(m);
}

static struct mixed_load *mixed_new(struct workspace *ws)
{
	struct mixed_load *m = calloc(1, sizeof(*m));
	int err = m ? 0 : -ENOMEM;
	for (unsigned i = 0; i < NR_WORKERS && !err; i++) {
		err = reserve(&m->times[i][MIXED_READ], ws->config->seconds * MAX_PER_SECOND);
		if (!err)
			err = reserve(&m->times[i][MIXED_WRITE], ws->config->seconds * MAX_PER_SECOND);
	}
	if (!err)
		err = reserve(&m->times[NR_WORKERS][MIXED_CREATE], ws->config->seconds * CREATES_PER_SECOND);
	if (!err) {
		m->ws = ws;
		m->nr_blocks = workspace_set_file_bytes(ws) / WS_BLOCK;
		return m;
	}
	metric_mixed_free(m);
	return NULL;
}

/* -- threads -------------------------------------------------------------------------------------------------------- */
static bool goes_on(struct mixed_load *m)
{
	return workspace_now_ns() < m->end_ns && !atomic_load(&m->stop) && !cli_interrupted();
}

static int read_and_write(struct mixed_load *m, unsigned thread)
{
	/* The first buffer is the creator's. */
	unsigned char *buffer = m->ws->buffers + (size_t)(thread + 1) * WS_PIECE;
	uint64_t state = m->ws->config->seed + thread;
	while (goes_on(m)) {
		bool is_read = stats_random(&state) % 100 < READS_PERCENT;
		int fd = m->fds[stats_random(&state) % WS_SET_FILES];
		uint64_t block = stats_random(&state) % m->nr_blocks;
		struct mixed_times *t = &m->times[thread][is_read ? MIXED_READ : MIXED_WRITE];
		if (t->nr == t->max)
			return -EOVERFLOW;
		if (!is_read)
			workspace_fill(m->ws, buffer, block, WS_BLOCK);
		off_t at = (off_t)(block * WS_BLOCK);
		int64_t start = workspace_now_ns();
		ssize_t n = is_read ? pread(fd, buffer, WS_BLOCK, at) : pwrite(fd, buffer, WS_BLOCK, at);
		took(m, t, start);
		if (n != WS_BLOCK)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

static void sleep_until(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR && !cli_interrupted())
		;
}

/* Who is slow gets less of it, never a burst. */
static int create(struct mixed_load *m)
{
	struct mixed_times *t = &m->times[NR_WORKERS][MIXED_CREATE];
	int64_t next = m->start_ns;
	workspace_fill(m->ws, m->ws->buffers, 0, WS_BLOCK);
	while (goes_on(m) && t->nr < t->max) {
		int64_t start = workspace_now_ns();
		int err = workspace_create_small(m->ws, m->ws->nr_small);
		if (err)
			return err;
		took(m, t, start);
		next += 1000000000 / CREATES_PER_SECOND;
		if (next < workspace_now_ns())
			next = workspace_now_ns();
		else
			sleep_until(next < m->end_ns ? next : m->end_ns);
	}
	return 0;
}

static int body(unsigned thread, void *arg)
{
	struct mixed_load *m = arg;
	int err = thread < NR_WORKERS ? read_and_write(m, thread) : create(m);
	if (err)
		atomic_store(&m->stop, true);
	return err;
}

/* -- the three metrics ---------------------------------------------------------------------------------------------- */
static int run_load(struct workspace *ws, struct mixed_load *m)
{
	int err = workspace_need_set(ws);
	if (err)
		return err;
	err = workspace_open_set(ws, m->fds, O_RDWR | O_DIRECT);
	if (!err)
		err = workspace_settle(ws);
	m->start_ns = workspace_now_ns();
	m->end_ns = m->start_ns + (int64_t)ws->config->seconds * 1000000000;
	if (!err)
		err = load_run(NR_THREADS, body, m);
	workspace_close_set(m->fds);
	return err ? err : cli_interrupted() ? -EINTR : 0;
}

static int need_load(struct workspace *ws, struct metric_result *r)
{
	if (ws->mixed)
		return 0;
	int err = workspace_need_direct(ws, r);
	if (err)
		return err;
	if (ws->no_reclaim)
		return workspace_skip(r, "this version does not get overwritten space back");
	struct mixed_load *m = mixed_new(ws);
	if (!m)
		return -ENOMEM;
	err = run_load(ws, m);
	/* What failed half way is no result of another metric either. */
	if (err)
		metric_mixed_free(m);
	else
		ws->mixed = m;
	workspace_reset(ws);
	return err;
}

static int take(struct workspace *ws, struct metric_result *r, enum mixed_kind kind)
{
	int err = need_load(ws, r);
	if (err)
		return err;
	size_t nr = 0;
	for (unsigned i = 0; i < NR_THREADS; i++)
		nr += ws->mixed->times[i][kind].nr;
	err = workspace_reserve_times(ws, nr);
	if (err)
		return err;
	const struct mixed_times *worst = &ws->mixed->times[0][kind];
	for (unsigned i = 0; i < NR_THREADS; i++) {
		const struct mixed_times *t = &ws->mixed->times[i][kind];
		if (t->nr)
			memcpy(ws->times_ns + ws->nr_times, t->ns, t->nr * sizeof(*t->ns));
		ws->nr_times += t->nr;
		worst = t->worst_ns > worst->worst_ns ? t : worst;
	}
	workspace_mean_us(ws, r);
	snprintf(r->note, sizeof(r->note), "%.0f a second; the longest began at %.1f s",
		 (double)nr / (double)ws->config->seconds, (double)worst->worst_at_ns / 1e9);
	return nr ? 0 : -ENODATA;
}

int metric_mixed_read(struct workspace *ws, struct metric_result *r)
{
	return take(ws, r, MIXED_READ);
}

int metric_mixed_write(struct workspace *ws, struct metric_result *r)
{
	return take(ws, r, MIXED_WRITE);
}

int metric_mixed_create(struct workspace *ws, struct metric_result *r)
{
	return take(ws, r, MIXED_CREATE);
}
