/* SPDX-License-Identifier: MIT */
#include "notices.h"

#include "clock.h"
#include "ops.h"
#include "transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NR_SLOTS 256
#define NR_PROBES 8
#define INTERVAL_NS 1000000000ll
#define PAGE_BYTES (uint64_t)sysconf(_SC_PAGESIZE)
/* A failed write-back counts no more when so much room was made since: that of one large request. */
#define RELIEF_BLOCKS (TRANSPORT_MAX_PAYLOAD / PF_BLOCK_SIZE)

struct slot {
	uint64_t ino; /* 0: free */
	int64_t told_ns;
	uint64_t avail_blocks; /* when it failed */
	int err;
	bool blocks; /* the kernel's count is old */
	bool failed; /* and the kernel has not been told yet */
};

struct notices {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool started, stop, urgent;
	atomic_uint nr_errors; /* slots with one: a look without the lock */
	struct slot slots[NR_SLOTS];
};

static bool idle(const struct slot *s)
{
	return !s->blocks && !s->err;
}

/* The slot of @ino; or with @make one that was free, or is of no use any more, or holds nothing but a count. */
static struct slot *find(struct notices *n, uint64_t ino, bool make)
{
	uint64_t first = ino * 0x9e3779b97f4a7c15ull >> 32;
	struct slot *best = NULL;
	for (unsigned i = 0; i < NR_PROBES; i++) {
		struct slot *s = &n->slots[(first + i) % NR_SLOTS];
		if (s->ino == ino)
			return s;
		if (!best || (idle(s) && !idle(best)) || (best->err && !s->err))
			best = s;
	}
	if (!make)
		return NULL;
	if (best->err)
		atomic_fetch_sub(&n->nr_errors, 1);
	*best = (struct slot){ .ino = ino };
	return best;
}

static void void_attributes(struct fs *fs, uint64_t ino)
{
	fuse_lowlevel_notify_inval_inode(fs->se, ino, -1, 0);
}

void notices_blocks(struct fs *fs, uint64_t ino)
{
	struct notices *n = fs->notices;
	pthread_mutex_lock(&n->lock);
	find(n, ino, true)->blocks = true;
	pthread_mutex_unlock(&n->lock);
}

void notices_failure(struct fs *fs, uint64_t ino, int err)
{
	struct notices *n = fs->notices;
	struct pf_statfs space;
	pf_pool_statfs(fs->pool, &space);
	pthread_mutex_lock(&n->lock);
	struct slot *s = find(n, ino, true);
	if (!s->err)
		atomic_fetch_add(&n->nr_errors, 1);
	s->err = err;
	s->avail_blocks = space.avail_blocks;
	s->failed = true;
	n->urgent = true;
	pthread_cond_signal(&n->more);
	pthread_mutex_unlock(&n->lock);
}

void notices_sync(struct fs *fs, uint64_t ino)
{
	struct notices *n = fs->notices;
	bool tell = false;
	pthread_mutex_lock(&n->lock);
	struct slot *s = find(n, ino, false);
	if (s && s->blocks) {
		int64_t now = clock_now_ns();
		tell = now - s->told_ns >= INTERVAL_NS;
		if (tell) {
			s->blocks = false;
			s->told_ns = now;
		}
	}
	pthread_mutex_unlock(&n->lock);
	if (tell)
		void_attributes(fs, ino);
}

int notices_take_failure(struct fs *fs, uint64_t ino)
{
	struct notices *n = fs->notices;
	struct pf_statfs space;
	int err = 0;
	if (atomic_load_explicit(&n->nr_errors, memory_order_relaxed) == 0)
		return 0;
	pf_pool_statfs(fs->pool, &space);
	pthread_mutex_lock(&n->lock);
	struct slot *s = find(n, ino, false);
	if (s && s->err) {
		atomic_fetch_sub(&n->nr_errors, 1);
		if (s->err != -ENOSPC || space.avail_blocks < s->avail_blocks + RELIEF_BLOCKS)
			err = s->err;
		s->err = 0;
	}
	pthread_mutex_unlock(&n->lock);
	return err;
}

/* The pages hold what the pool has not: whoever reads them must not take it for written. All but the last one where the file ends in
 * it: an append, and whoever writes the same once more, begins by reading that page; while the kernel has it, it succeeds, and
 * hands over all of the page, with what was lost. */
static void void_lost_pages(struct fs *fs)
{
	struct pf_lost_range r;
	while (pf_take_lost_range(fs->pool, &r)) {
		uint64_t end = (r.off_bytes + r.len_bytes) / PAGE_BYTES * PAGE_BYTES;
		if (end > r.off_bytes)
			fuse_lowlevel_notify_inval_inode(fs->se, r.ino, (off_t)r.off_bytes, (off_t)(end - r.off_bytes));
	}
}

/* -- the thread that tells ------------------------------------------------------------------------------------------- */

static unsigned collect(struct notices *n, uint64_t inos[NR_SLOTS])
{
	unsigned nr = 0;
	int64_t now = clock_now_ns();
	for (unsigned i = 0; i < NR_SLOTS; i++) {
		struct slot *s = &n->slots[i];
		bool due = s->blocks && now - s->told_ns >= INTERVAL_NS;
		if (!due && !s->failed)
			continue;
		s->blocks = s->failed = false;
		s->told_ns = now;
		inos[nr++] = s->ino;
	}
	n->urgent = false;
	return nr;
}

static void *tell(void *arg)
{
	struct fs *fs = arg;
	struct notices *n = fs->notices;
	uint64_t inos[NR_SLOTS];
	pthread_setname_np(pthread_self(), "poolfs-notices");
	pthread_mutex_lock(&n->lock);
	while (!n->stop) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec++;
		while (!n->stop && !n->urgent && pthread_cond_timedwait(&n->more, &n->lock, &until) == 0)
			;
		unsigned nr = n->stop ? 0 : collect(n, inos);
		pthread_mutex_unlock(&n->lock);
		for (unsigned i = 0; i < nr; i++)
			void_attributes(fs, inos[i]);
		void_lost_pages(fs);
		pthread_mutex_lock(&n->lock);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

int notices_start(struct fs *fs)
{
	struct notices *n = calloc(1, sizeof(*n));
	pthread_condattr_t attr;
	if (!n)
		return -ENOMEM;
	pthread_mutex_init(&n->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&n->more, &attr);
	pthread_condattr_destroy(&attr);
	fs->notices = n;
	int err = pthread_create(&n->thread, NULL, tell, fs);
	n->started = !err;
	return -err;
}

void notices_stop(struct fs *fs)
{
	struct notices *n = fs->notices;
	if (!n || !n->started)
		return;
	pthread_mutex_lock(&n->lock);
	n->stop = true;
	pthread_cond_signal(&n->more);
	pthread_mutex_unlock(&n->lock);
	pthread_join(n->thread, NULL);
	n->started = false;
}

void notices_free(struct fs *fs)
{
	if (!fs->notices)
		return;
	pthread_cond_destroy(&fs->notices->more);
	pthread_mutex_destroy(&fs->notices->lock);
	free(fs->notices);
	fs->notices = NULL;
}
