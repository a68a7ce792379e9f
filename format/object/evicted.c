/* SPDX-License-Identifier: MIT */
#include "object/evicted.h"

#include <string.h>

static void note(struct pf_evicted_inos *list, uint64_t ino)
{
	if (!pf_refs_get(&list->inos, ino) && pf_refs_add(&list->inos, ino, 1))
		list->all = true;
}

static bool has(const struct pf_evicted_inos *list, uint64_t ino)
{
	return list->all || pf_refs_get(&list->inos, ino);
}

/* -- changes that are not durable --------------------------------------------------------------------------------------- */

static void add_undurable(struct pf_evicted *e, uint64_t ino, uint64_t generation)
{
	struct pf_evicted_txg *t = e->undurable;
	unsigned i = t[0].generation == generation || (t[1].generation != generation && !t[0].generation) ? 0 : 1;
	if (t[i].generation && t[i].generation != generation)
		t[i].list.all = true; /* never: two groups at most are undurable (dirty.h I3) */
	t[i].generation = generation;
	note(&t[i].list, ino);
}

static void forget_durable(struct pf_evicted *e, uint64_t generation)
{
	for (unsigned i = 0; i < 2; i++) {
		struct pf_evicted_txg *t = &e->undurable[i];
		if (t->generation > generation)
			continue;
		pf_refs_free(&t->list.inos);
		memset(t, 0, sizeof(*t));
	}
}

/* -- data that was not flushed ------------------------------------------------------------------------------------------ */

static void add_unflushed(struct pf_evicted_data *d, uint64_t ino, uint32_t members, uint64_t change)
{
	d->members |= members;
	d->change = change > d->change ? change : d->change;
	note(&d->list, ino);
}

/* Those of @from that may have lost something on the members of @mask. */
static void keep_lost(struct pf_evicted_data *lost, const struct pf_evicted_data *from, uint32_t mask)
{
	lost->members |= mask;
	lost->change = UINT64_MAX;
	lost->list.all = lost->list.all || from->list.all;
	size_t at = 0;
	for (uint64_t ino = pf_refs_next(&from->list.inos, &at); ino; ino = pf_refs_next(&from->list.inos, &at))
		add_unflushed(lost, ino, mask, UINT64_MAX);
}

static void recall_unflushed(struct pf_pool *pool, const struct pf_evicted_data *d, struct pf_inode *inode)
{
	uint32_t members = pf_set_unflushed(pool->set, d->members, d->change);
	if (!members || !has(&d->list, inode->ino))
		return;
	inode->dirty.unflushed |= members;
	inode->dirty.change = d->change > inode->dirty.change ? d->change : inode->dirty.change;
}

/* What was in 'older' had left before the checkpoint before this one was durable, so this one flushed it, or could not. */
static void age_unflushed(struct pf_pool *pool, struct pf_evicted *e)
{
	struct pf_evicted_data *older = &e->older;
	uint32_t lost = pf_set_unflushed(pool->set, older->members, older->change) & pf_set_failed(pool->set);
	if (lost)
		keep_lost(&e->lost, older, lost);
	pf_refs_free(&older->list.inos);
	*older = e->fresh;
	memset(&e->fresh, 0, sizeof(e->fresh));
}

/* -- both --------------------------------------------------------------------------------------------------------------- */

void pf_evicted_add(struct pf_pool *pool, struct pf_evicted *e, const struct pf_inode *inode)
{
	uint32_t members = pf_dirty_unflushed(pool, &inode->dirty);
	uint64_t generation = pf_dirty_generation(pool, &inode->dirty);
	if (pf_refs_get(&e->lost.list.inos, inode->ino))
		members &= ~e->lost.members; /* known for good */
	if (members)
		add_unflushed(&e->fresh, inode->ino, members, inode->dirty.change);
	if (generation)
		add_undurable(e, inode->ino, generation);
}

void pf_evicted_recall(struct pf_pool *pool, const struct pf_evicted *e, struct pf_inode *inode)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct pf_evicted_txg *t = &e->undurable[i];
		if (t->generation && has(&t->list, inode->ino))
			pf_dirty_note_whole(pool, &inode->dirty, t->generation);
	}
	recall_unflushed(pool, &e->fresh, inode);
	recall_unflushed(pool, &e->older, inode);
	recall_unflushed(pool, &e->lost, inode);
}

void pf_evicted_durable(struct pf_pool *pool, struct pf_evicted *e, uint64_t generation)
{
	age_unflushed(pool, e);
	forget_durable(e, generation);
}

void pf_evicted_free(struct pf_evicted *e)
{
	pf_refs_free(&e->undurable[0].list.inos);
	pf_refs_free(&e->undurable[1].list.inos);
	pf_refs_free(&e->fresh.list.inos);
	pf_refs_free(&e->older.list.inos);
	pf_refs_free(&e->lost.list.inos);
	memset(e, 0, sizeof(*e));
}
