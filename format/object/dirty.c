/* SPDX-License-Identifier: MIT */
#include "object/dirty.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANGES 4096u
#define KEPT_RANGES 64u /* memory for so many is not given back between two fsyncs */

static bool counts(struct pf_pool *pool, const struct pf_dirty_txg *t)
{
	return t->generation > atomic_load_explicit(&pool->durable_generation, memory_order_acquire);
}

static void empty(struct pf_dirty_txg *t)
{
	if (t->cap > KEPT_RANGES) {
		free(t->ranges);
		t->ranges = NULL;
		t->cap = 0;
	}
	t->generation = 0;
	t->whole = false;
	t->nr = 0;
}

/* The group that is open now. */
static struct pf_dirty_txg *group_of(struct pf_pool *pool, struct pf_dirty *dirty, uint64_t generation)
{
	struct pf_dirty_txg *newest = &dirty->txg[0], *older = &dirty->txg[1];
	if (newest->generation == generation)
		return newest;
	if (counts(pool, older)) {
		/* of three groups only two can be undurable; whoever counts otherwise has to be told everything */
		newest->whole = true;
		newest->generation = generation;
		return newest;
	}
	struct pf_dirty_txg t = *older;
	*older = *newest;
	*newest = t;
	empty(newest);
	newest->generation = generation;
	return newest;
}

/* Index of the first range that ends at or after @from. */
static unsigned position(const struct pf_dirty_txg *t, uint64_t from)
{
	unsigned lo = 0, hi = t->nr;
	if (hi && t->ranges[hi - 1].to < from)
		return hi; /* appends */
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (t->ranges[mid].to < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool make_room(struct pf_dirty_txg *t)
{
	if (t->nr < t->cap)
		return true;
	unsigned cap = t->cap ? 2 * t->cap : 4;
	struct pf_dirty_range *r = t->nr < MAX_RANGES ? realloc(t->ranges, cap * sizeof(*r)) : NULL;
	if (!r)
		return false;
	t->ranges = r;
	t->cap = cap;
	return true;
}

static void add(struct pf_dirty_txg *t, uint64_t from, uint64_t to)
{
	unsigned i = position(t, from), end = i;
	while (end < t->nr && t->ranges[end].from <= to)
		end++;
	if (end > i) {
		struct pf_dirty_range *r = &t->ranges[i];
		if (from < r->from)
			r->from = from;
		r->to = t->ranges[end - 1].to > to ? t->ranges[end - 1].to : to;
		memmove(r + 1, t->ranges + end, (t->nr - end) * sizeof(*r));
		t->nr -= end - i - 1;
		return;
	}
	if (!make_room(t)) {
		t->whole = true;
		t->nr = 0;
		return;
	}
	memmove(t->ranges + i + 1, t->ranges + i, (t->nr - i) * sizeof(*t->ranges));
	t->ranges[i] = (struct pf_dirty_range){ from, to };
	t->nr++;
}

void pf_dirty_note(struct pf_pool *pool, struct pf_dirty *dirty, uint64_t from, uint64_t to)
{
	struct pf_dirty_txg *t = group_of(pool, dirty, pool->open_generation);
	if (from < to && !t->whole)
		add(t, from, to);
}

void pf_dirty_note_whole(struct pf_pool *pool, struct pf_dirty *dirty, uint64_t generation)
{
	group_of(pool, dirty, generation)->whole = true;
}

void pf_dirty_note_data(struct pf_pool *pool, struct pf_dirty *dirty, uint32_t mask)
{
	/* first: what is durable by now must not count as written with this change */
	dirty->unflushed = pf_dirty_unflushed(pool, dirty) | mask;
	dirty->change = pf_set_note_data(pool->set, mask);
}

uint32_t pf_dirty_unflushed(struct pf_pool *pool, const struct pf_dirty *dirty)
{
	return pf_set_unflushed(pool->set, dirty->unflushed, dirty->change);
}

uint32_t pf_dirty_lost(struct pf_pool *pool, const struct pf_dirty *dirty)
{
	return pf_dirty_unflushed(pool, dirty) & pf_set_failed(pool->set);
}

void pf_dirty_forget_lost(struct pf_dirty *dirty, uint32_t mask)
{
	dirty->unflushed &= ~mask;
	dirty->told = false;
}

uint64_t pf_dirty_generation(struct pf_pool *pool, const struct pf_dirty *dirty)
{
	uint64_t newest = 0;
	for (unsigned i = 0; i < 2; i++) {
		if (counts(pool, &dirty->txg[i]) && dirty->txg[i].generation > newest)
			newest = dirty->txg[i].generation;
	}
	return newest;
}

int pf_dirty_collect(struct pf_pool *pool, const struct pf_dirty *dirty, struct pf_dirty_range **out, unsigned *nr)
{
	struct pf_dirty_txg all = { 0 };
	bool whole = false;
	*out = NULL;
	*nr = 0;
	for (unsigned i = 0; i < 2; i++) {
		const struct pf_dirty_txg *t = &dirty->txg[i];
		if (!counts(pool, t) ||
		    (pf_breaks(pool->env, PF_BREAK_FSYNC_FORGETS_FROZEN) && t->generation < pool->open_generation))
			continue;
		whole = whole || t->whole;
		for (unsigned r = 0; r < t->nr && !whole && !all.whole; r++)
			add(&all, t->ranges[r].from, t->ranges[r].to);
	}
	if (whole || all.whole) {
		free(all.ranges);
		return -EAGAIN;
	}
	*out = all.ranges;
	*nr = all.nr;
	return 0;
}

void pf_dirty_clear(struct pf_dirty *dirty)
{
	empty(&dirty->txg[0]);
	empty(&dirty->txg[1]);
}

void pf_dirty_free(struct pf_dirty *dirty)
{
	free(dirty->txg[0].ranges);
	free(dirty->txg[1].ranges);
	memset(dirty, 0, sizeof(*dirty));
}
