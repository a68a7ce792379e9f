/* SPDX-License-Identifier: MIT
 *
 * The lists of a transaction group: what its tree names newly, and what it names no longer. Commit and free run
 * inside the modify phase of an operation, which cannot fail: the lists grow by chunks of which some are kept ready.
 */
#include "space/private.h"

#include <stdlib.h>
#include <string.h>

enum { SPARE_CHUNKS = 16, LISTS = 3 /* of a member that grow: open.alloc, open.freed, frozen.alloc */ };

/* However little is on it, each list takes a chunk. */
static unsigned wanted_chunks(const struct pf_space *space)
{
	return SPARE_CHUNKS + LISTS * space->nr;
}

int pf_run_chunks_prepare(struct pf_space *space)
{
	while (space->nr_spare < wanted_chunks(space)) {
		struct pf_run_chunk *chunk = malloc(sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		chunk->next = space->spare;
		space->spare = chunk;
		space->nr_spare++;
	}
	return 0;
}

static bool list_add(struct pf_space *space, struct pf_run_list *list, struct pf_run run)
{
	struct pf_run_chunk *chunk = list->last;
	if (chunk) {
		struct pf_run *before = &chunk->runs[chunk->nr - 1];
		if (before->addr + before->nr == run.addr) {
			before->nr += run.nr;
			list->blocks += run.nr;
			return true;
		}
	}
	if (!chunk || chunk->nr == sizeof(chunk->runs) / sizeof(chunk->runs[0])) {
		pf_run_chunks_prepare(space); /* no memory: the next call tries again, 4,000 runs before it matters */
		chunk = space->spare;
		if (!chunk)
			return false;
		space->spare = chunk->next;
		space->nr_spare--;
		chunk->next = NULL;
		chunk->nr = 0;
		*(list->last ? &list->last->next : &list->first) = chunk;
		list->last = chunk;
	}
	chunk->runs[chunk->nr++] = run;
	list->nr++;
	list->blocks += run.nr;
	return true;
}

void pf_run_list_clear(struct pf_space *space, struct pf_run_list *list)
{
	struct pf_run_chunk *rest = list->first;
	memset(list, 0, sizeof(*list));
	while (space && rest && space->nr_spare < wanted_chunks(space)) {
		struct pf_run_chunk *chunk = rest;
		rest = chunk->next;
		chunk->next = space->spare;
		space->spare = chunk;
		space->nr_spare++;
	}
	if (!rest)
		return;
	if (space)
		pthread_mutex_unlock(&space->lock);
	while (rest) {
		struct pf_run_chunk *chunk = rest;
		rest = chunk->next;
		free(chunk);
	}
	if (space)
		pthread_mutex_lock(&space->lock);
}

void pf_run_list_move(struct pf_run_list *to, struct pf_run_list *from)
{
	if (!from->first)
		return;
	*(to->last ? &to->last->next : &to->first) = from->first;
	to->last = from->last;
	to->nr += from->nr;
	to->blocks += from->blocks;
	memset(from, 0, sizeof(*from));
}

static int by_addr(const void *a, const void *b)
{
	const struct pf_run *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int pf_run_list_sorted(const struct pf_run_list *list, struct pf_run **out)
{
	struct pf_run *runs = malloc((list->nr ? list->nr : 1) * sizeof(*runs));
	if (!runs)
		return -ENOMEM;
	size_t nr = 0;
	for (const struct pf_run_chunk *chunk = list->first; chunk; chunk = chunk->next) {
		memcpy(runs + nr, chunk->runs, chunk->nr * sizeof(*runs));
		nr += chunk->nr;
	}
	assert(nr == list->nr);
	qsort(runs, nr, sizeof(*runs), by_addr);
	*out = runs;
	return 0;
}

/* NULL when the run is not in the data area of a member: nothing outside of it is ever allocated or freed. */
static struct pf_space_member *member_of(struct pf_space *space, struct pf_run run)
{
	unsigned id = pf_addr_member(run.addr);
	if (id >= space->nr)
		return NULL;
	struct pf_space_member *m = &space->members[id];
	uint64_t block = pf_addr_block(run.addr);
	if (block < m->geo.data_start || block >= m->geo.data_end || run.nr > m->geo.data_end - block)
		return NULL;
	return m;
}

static void commit(struct pf_space *space, struct pf_run run, enum pf_space_use use, bool frozen)
{
	struct pf_space_member *m = member_of(space, run);
	assert(m); /* it comes from pf_space_alloc() */
	pthread_mutex_lock(&space->lock);
	struct pf_txg_lists *txg = frozen ? &m->frozen : &m->open;
	/* without this note its map would call a live block free: better no checkpoint at all */
	if (run.nr && !list_add(space, &txg->alloc, run))
		space->lost_run = true;
	if (use == PF_USE_NODE)
		pf_space_add_nodes(space, m->id, run.nr);
	pthread_mutex_unlock(&space->lock);
}

void pf_space_commit(struct pf_space *space, struct pf_run run, enum pf_space_use use)
{
	commit(space, run, use, false);
}

void pf_space_commit_frozen(struct pf_space *space, struct pf_run run)
{
	commit(space, run, PF_USE_NODE, true);
}

void pf_space_free(struct pf_space *space, struct pf_run run, enum pf_space_use use)
{
	struct pf_space_member *m = member_of(space, run);
	pthread_mutex_lock(&space->lock);
	if (use == PF_USE_NODE)
		pf_space_sub_nodes(space, pf_addr_member(run.addr), run.nr);
	if (use != PF_USE_NODE && !space->reclaim)
		goto out; /* I8 */
	if (m && pf_breaks(space->env, PF_BREAK_REUSE_BEFORE_DURABLE))
		pf_group_release(m, run);
	if (!m || (run.nr && !list_add(space, &m->open.freed, run)))
		space->dropped_blocks += run.nr; /* a leak, which fsck finds */
out:
	pthread_mutex_unlock(&space->lock);
	if (m && pf_breaks(space->env, PF_BREAK_DISCARD_EARLY))
		pf_discard_early(m, run);
}

void pf_space_freeze(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	pf_run_chunks_prepare(space);
	pf_group_retry_all(space); /* whoever waits for room by a checkpoint gets that of maps readable again */
	for (unsigned i = 0; i < space->nr; i++) {
		struct pf_space_member *m = &space->members[i];
		/* after a checkpoint that failed for good its lists are still there: they belong to the next one */
		pf_run_list_move(&m->frozen.alloc, &m->open.alloc);
		pf_run_list_move(&m->frozen.freed, &m->open.freed);
		pf_epoch_freeze(m);
		pf_home_freeze(m);
	}
	pthread_mutex_unlock(&space->lock);
}
