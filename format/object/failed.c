/* SPDX-License-Identifier: MIT */
#include "object/failed.h"

#include "object/inode.h"
#include "object/path.h"

#include <stdlib.h>
#include <string.h>

#define RANGES_MAX 1024u    /* of one file */
#define POOL_RANGES_MAX 65536u /* of all together, but for one of each file: 1 MiB */
#define FILES_MAX 8192u

void pf_failed_init(struct pf_failed *f)
{
	*f = (struct pf_failed){ .cap = 1 };
}

static struct pf_failed_range *ranges_of(struct pf_failed *f)
{
	return f->ranges ? f->ranges : &f->first;
}

static const struct pf_failed_range *const_ranges_of(const struct pf_failed *f)
{
	return f->ranges ? f->ranges : &f->first;
}

void pf_failed_free(struct pf_failed *f)
{
	free(f->ranges);
	pf_failed_init(f);
}

/* Index of the first range that ends after @from. */
static unsigned position(const struct pf_failed *f, uint64_t from)
{
	const struct pf_failed_range *r = const_ranges_of(f);
	unsigned lo = 0, hi = f->nr;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (r[mid].to <= from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool make_room(struct pf_pool *pool, struct pf_failed *f)
{
	if (f->nr < f->cap)
		return true;
	unsigned cap = 4 * f->cap, more = f->ranges ? cap - f->cap : cap;
	struct pf_failed_range *r = NULL;
	if (cap <= RANGES_MAX && atomic_fetch_add(&pool->failed_ranges, more) + more <= POOL_RANGES_MAX)
		r = realloc(f->ranges, cap * sizeof(*r));
	if (!r) {
		if (cap <= RANGES_MAX)
			atomic_fetch_sub(&pool->failed_ranges, more);
		return false;
	}
	if (!f->ranges)
		r[0] = f->first;
	f->ranges = r;
	f->cap = cap;
	return true;
}

/* Ranges [i, j) become one. */
static void join(struct pf_failed *f, unsigned i, unsigned j)
{
	struct pf_failed_range *r = ranges_of(f);
	r[i].to = r[j - 1].to;
	memmove(r + i + 1, r + j, (f->nr - j) * sizeof(*r));
	f->nr -= j - i - 1;
}

/* There is no room for one more: the two that are nearest to each other become one. */
static void join_nearest(struct pf_failed *f)
{
	const struct pf_failed_range *r = const_ranges_of(f);
	unsigned best = 1;
	for (unsigned i = 2; i < f->nr; i++) {
		if (r[i].from - r[i - 1].to < r[best].from - r[best - 1].to)
			best = i;
	}
	join(f, best - 1, best + 1);
}

static void add(struct pf_pool *pool, struct pf_failed *f, uint64_t from, uint64_t to)
{
	struct pf_failed_range *r = ranges_of(f);
	unsigned i = position(f, from ? from - 1 : 0), end = i;
	while (end < f->nr && r[end].from <= to)
		end++;
	if (end == i && !make_room(pool, f)) {
		if (f->nr == 1) { /* no memory for a second one */
			r[0].from = from < r[0].from ? from : r[0].from;
			r[0].to = to > r[0].to ? to : r[0].to;
			return;
		}
		join_nearest(f);
		add(pool, f, from, to);
		return;
	}
	r = ranges_of(f);
	if (end == i) {
		memmove(r + i + 1, r + i, (f->nr - i) * sizeof(*r));
		r[i] = (struct pf_failed_range){ from, to };
		f->nr++;
		return;
	}
	r[i].from = from < r[i].from ? from : r[i].from;
	r[end - 1].to = to > r[end - 1].to ? to : r[end - 1].to;
	join(f, i, end);
}

static void tell(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, int err)
{
	char path[512];
	pf_path_of(pool, inode, path, sizeof(path));
	pf_log(pool->env, PF_LOG_ERROR, "%s: %llu bytes at byte %llu could not be written when the system wanted them written back: %s; they "
	       "are lost, and reading them and fsync give errors until they are written again or truncated away", path,
	       (unsigned long long)(to - from), (unsigned long long)from, pf_strerror(err));
}

static bool note_locked(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, int err)
{
	struct pf_failed *f = &inode->failed;
	if (!pf_inode_is_file(inode) || pf_inode_is_abandoned(pool, inode))
		return true;
	if (!f->nr && pf_icache_nr_marked(pool, PF_MARK_FAILED) >= FILES_MAX)
		return false;
	if (!f->nr)
		tell(pool, inode, from, to, err);
	bool told = !pf_inode_is_marked(inode, PF_MARK_UNTOLD);
	f->untold.from = told || from < f->untold.from ? from : f->untold.from;
	f->untold.to = told || to > f->untold.to ? to : f->untold.to;
	f->err = err;
	add(pool, f, from, to);
	pf_inode_mark(pool, inode, PF_MARK_FAILED, true);
	pf_inode_mark(pool, inode, PF_MARK_UNTOLD, true);
	return true;
}

void pf_failed_note(struct pf_pool *pool, uint64_t ino, uint64_t from, uint64_t to, int err)
{
	struct pf_inode *inode = NULL;
	int get_err = pf_inode_get(pool, ino, &inode);
	bool listed = get_err == -ESTALE;
	if (!get_err) {
		pf_inode_lock(pool, inode);
		listed = note_locked(pool, inode, from, to, err);
		pthread_rwlock_unlock(&inode->lock);
		pf_inode_put(pool, inode);
	}
	if (!listed && !atomic_exchange(&pool->failed_unlisted, err))
		pf_log(pool->env, PF_LOG_ERROR, "inode %llu: %llu bytes could not be written when the system wanted them written back: %s; they "
		       "are lost, and there is no room to note which files have lost something: fsync of every file gives this "
		       "error until the pool is mounted anew", (unsigned long long)ino, (unsigned long long)(to - from), pf_strerror(err));
}

void pf_failed_clear(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to)
{
	struct pf_failed *f = &inode->failed;
	if (!f->nr || from >= to)
		return;
	unsigned i = position(f, from), end = i;
	struct pf_failed_range *r = ranges_of(f);
	if (i < f->nr && r[i].from < from && r[i].to > to) {
		/* its middle: without room for what is behind that, all of it stays */
		if (!make_room(pool, f))
			return;
		r = ranges_of(f);
		memmove(r + i + 1, r + i, (f->nr - i) * sizeof(*r));
		f->nr++;
		r[i].to = from;
		r[i + 1].from = to;
		return;
	}
	if (i < f->nr && r[i].from < from) {
		r[i].to = from;
		end = ++i;
	}
	while (end < f->nr && r[end].to <= to)
		end++;
	if (end < f->nr && r[end].from < to)
		r[end].from = to;
	memmove(r + i, r + end, (f->nr - end) * sizeof(*r));
	f->nr -= end - i;
	if (f->nr)
		return;
	if (f->ranges)
		atomic_fetch_sub(&pool->failed_ranges, f->cap);
	pf_failed_free(f);
	pf_inode_mark(pool, inode, PF_MARK_FAILED, false);
	pf_inode_mark(pool, inode, PF_MARK_UNTOLD, false);
}

uint64_t pf_failed_size(const struct pf_inode *inode)
{
	const struct pf_failed *f = &inode->failed;
	uint64_t end = f->nr ? const_ranges_of(f)[f->nr - 1].to : 0;
	return end > inode->item.size ? end : inode->item.size;
}

int pf_failed_read(const struct pf_inode *inode, uint64_t from, uint64_t to)
{
	const struct pf_failed *f = &inode->failed;
	unsigned i = f->nr ? position(f, from) : 0;
	return i < f->nr && const_ranges_of(f)[i].from < to ? -EIO : 0;
}

bool pf_failed_next(const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	const struct pf_failed *f = &inode->failed;
	unsigned i = f->nr ? position(f, block * PF_BLOCK_SIZE) : 0;
	if (i == f->nr)
		return false;
	uint64_t first = const_ranges_of(f)[i].from / PF_BLOCK_SIZE;
	*found = first > block ? first : block;
	return true;
}

int pf_failed_sync(struct pf_pool *pool, const struct pf_inode *inode)
{
	if (!pf_inode_is_file(inode))
		return 0;
	return inode->failed.nr ? inode->failed.err : atomic_load(&pool->failed_unlisted);
}

bool pf_take_lost_range(struct pf_pool *pool, struct pf_lost_range *range)
{
	struct pf_inode *inode;
	while (pf_icache_marked(pool, PF_MARK_UNTOLD, &inode, 1)) {
		pf_inode_lock(pool, inode);
		bool untold = pf_inode_is_marked(inode, PF_MARK_UNTOLD);
		range->ino = inode->ino;
		range->off_bytes = inode->failed.untold.from;
		range->len_bytes = inode->failed.untold.to - inode->failed.untold.from;
		pf_inode_mark(pool, inode, PF_MARK_UNTOLD, false);
		pthread_rwlock_unlock(&inode->lock);
		pf_inode_put(pool, inode);
		if (untold)
			return true;
	}
	return false;
}
