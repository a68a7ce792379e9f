/* SPDX-License-Identifier: MIT
 *
 * Discards. The maps of what waits stay loaded: its bits are set in 'used' and clear in 'disk', so they are not evicted. On
 * disk the blocks are free already, and a crash loses no more than the chance to tell the member.
 */
#include "space/private.h"

#include <stdlib.h>
#include <string.h>

#define WAITING_MAX  (1u << 20) /* runs: what comes faster than a member can discard is freed without */
#define RUNS_PER_STEP 256u      /* that are not worth a discard */
#define GROUPS_PER_STEP 1024u   /* looked at by a trim without finding anything */
#define RUNS_AT_ONCE 64u        /* freed with the lock held */

static uint64_t minimum(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t maximum(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t window_start(uint64_t block)
{
	return block - block % PF_DISCARD_BLOCKS;
}

static uint64_t window_end(uint64_t block)
{
	return window_start(block + PF_DISCARD_BLOCKS - 1);
}

/* -- what is never discarded (I3) ---------------------------------------------------------------------------------- */

static uint64_t trim_from(const struct pf_space_member *m)
{
	return m->geo.data_start + m->share_blocks;
}

static uint64_t online_from(const struct pf_space_member *m)
{
	uint64_t group = 0;
	while (m->meta && group < m->geo.nr_groups && pf_group_kind(&m->groups[group]))
		group++;
	uint64_t end = minimum(group << PF_GROUP_SHIFT, m->geo.data_end);
	bool small = end < m->geo.data_start + m->area_blocks / 8;
	return maximum(trim_from(m), small ? end : 0);
}

/* -- taking and giving back ---------------------------------------------------------------------------------------- */

static void give_back(struct pf_space *space, struct pf_space_member *m, uint64_t from, uint64_t end)
{
	if (from >= end)
		return;
	pf_group_release(m, (struct pf_run){ pf_addr_make(m->id, from), end - from });
	space->released++;
	pthread_cond_broadcast(&space->release);
}

/* How many of @nr free blocks of a loaded group nobody will miss (I4). */
static uint64_t spare(const struct pf_space *space, const struct pf_space_member *m, uint64_t from, uint64_t nr)
{
	nr = minimum(nr, minimum(pf_space_member_room(m, PF_USE_DATA), pf_space_avail(space, PF_USE_DATA)));
	uint64_t kept = pf_space_kept_quads(m, PF_USE_DATA), quads = m->free_quads > kept ? m->free_quads - kept : 0;
	if (m->share_blocks && nr > quads)
		nr = pf_bits_fit_quads(m->groups[from >> PF_GROUP_SHIFT].maps->used, (uint32_t)(from % PF_GROUP_BLOCKS),
				       (uint32_t)nr, quads);
	return nr;
}

static void take(struct pf_space_member *m, uint64_t from, uint64_t end)
{
	if (from < end)
		pf_group_take(m, (uint32_t)(from >> PF_GROUP_SHIFT), (uint32_t)(from % PF_GROUP_BLOCKS), (uint32_t)(end - from));
}

/* [from, end) of one group is free, and can be had. */
static bool can_take(const struct pf_space *space, const struct pf_space_member *m, uint64_t from, uint64_t end)
{
	const uint64_t *used = m->groups[from >> PF_GROUP_SHIFT].maps->used;
	uint32_t a = (uint32_t)(from % PF_GROUP_BLOCKS), b = a + (uint32_t)(end - from);
	return pf_bits_next_set(used, a, b) == b && spare(space, m, from, end - from) == end - from;
}

static void tell(struct pf_space *space, struct pf_space_member *m, int err)
{
	bool told = m->discard.told;
	m->discard.told = true;
	if (err == -EOPNOTSUPP) {
		m->discard.unable = true;
		m->discard.wanted = false;
	}
	if (told)
		return;
	pthread_mutex_unlock(&space->lock);
	if (err == -EOPNOTSUPP)
		pf_log(space->env, PF_LOG_WARNING,
		       "%s: free space cannot be given back, discards are not supported there; it is used again by this pool only",
		       m->io->name);
	else
		pf_log(space->env, PF_LOG_WARNING,
		       "%s: free space could not be given back: %s; it is used again by this pool all the same, and 'poolfs trim' "
		       "tries once more", m->io->name, pf_strerror(err));
	pthread_mutex_lock(&space->lock);
}

/* Blocks that are ours: their bits are set, and nobody names them. They are free afterwards. Drops the lock. */
static int discard(struct pf_space *space, struct pf_space_member *m, uint64_t from, uint64_t end)
{
	assert(from >= trim_from(m) && end <= m->geo.data_end && from < end);
	m->discard.flying_blocks += end - from;
	pthread_mutex_unlock(&space->lock);
	int err = pf_io_discard(m->io, from * PF_BLOCK_SIZE, (end - from) * PF_BLOCK_SIZE);
	pthread_mutex_lock(&space->lock);
	m->discard.flying_blocks -= end - from;
	give_back(space, m, from, end);
	if (err)
		tell(space, m, err);
	return err;
}

/* -- online -------------------------------------------------------------------------------------------------------- */

void pf_space_set_discard(struct pf_space *space, uint32_t members)
{
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr; i++) {
		struct pf_space_member *m = &space->members[i];
		m->discard.wanted = members >> i & 1;
		m->discard.from = online_from(m);
	}
	pthread_mutex_unlock(&space->lock);
}

uint32_t pf_space_discards(struct pf_space *space)
{
	uint32_t members = 0;
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr; i++)
		members |= (uint32_t)space->members[i].discard.wanted << i;
	pthread_mutex_unlock(&space->lock);
	return members;
}

void pf_discard_early(struct pf_space_member *m, struct pf_run run)
{
	if (m->discard.wanted && pf_addr_block(run.addr) >= m->discard.from)
		pf_io_discard(m->io, pf_addr_block(run.addr) * PF_BLOCK_SIZE, run.nr * PF_BLOCK_SIZE);
}

bool pf_discard_accept(struct pf_space *space, struct pf_space_member *m, struct pf_run_list *list)
{
	/* with that rule broken what is in the list may be in use again */
	if (!m->discard.wanted || !list->first || m->discard.waiting.nr + list->nr > WAITING_MAX ||
	    pf_breaks(space->env, PF_BREAK_REUSE_BEFORE_DURABLE))
		return false;
	pf_run_list_move(&m->discard.waiting, list);
	return true;
}

/* Drops the lock now and then: the batch is ours alone by then, and of its blocks nobody knows before they are given back. */
static void free_batch(struct pf_space *space, struct pf_space_member *m)
{
	struct pf_discard *d = &m->discard;
	struct pf_run *batch = d->batch;
	size_t at = d->at_batch, nr = d->nr_batch;
	m->releasing_blocks += d->batch_blocks;
	d->batch = NULL;
	d->batch_blocks = d->nr_batch = d->at_batch = 0;
	for (; at < nr; at++) {
		uint64_t first = pf_addr_block(batch[at].addr);
		m->releasing_blocks -= batch[at].nr;
		give_back(space, m, first, first + batch[at].nr);
		if (at % RUNS_AT_ONCE == 0)
			pf_space_give_way(space);
	}
	free(batch);
}

static bool drop(struct pf_space *space, struct pf_space_member *m)
{
	struct pf_discard *d = &m->discard;
	struct pf_run_list list = { 0 };
	bool any = d->waiting.first || d->batch;
	free_batch(space, m);
	pf_run_list_move(&list, &d->waiting);
	pf_epoch_free_list(space, m, &list);
	return any;
}

bool pf_discard_drop(struct pf_space *space)
{
	bool any = false;
	for (unsigned i = 0; i < space->nr; i++)
		any |= drop(space, &space->members[i]);
	return any;
}

/* Sorts what waits: runs that became free one by one are often neighbours. */
static void next_batch(struct pf_space *space, struct pf_space_member *m)
{
	struct pf_discard *d = &m->discard;
	struct pf_run_list list = { 0 };
	struct pf_run *runs = NULL;
	pf_run_list_move(&list, &d->waiting);
	d->flying_blocks += list.blocks;
	pthread_mutex_unlock(&space->lock);
	int err = pf_run_list_sorted(&list, &runs);
	pthread_mutex_lock(&space->lock);
	if (err) { /* no memory */
		d->flying_blocks -= list.blocks;
		pf_epoch_free_list(space, m, &list);
		return;
	}
	size_t nr = list.nr;
	uint64_t blocks = list.blocks;
	pf_run_list_clear(space, &list); /* drops the lock: not with a batch that others could drop before the caller has seen it */
	d->flying_blocks -= blocks;
	d->batch = runs;
	d->nr_batch = nr;
	d->at_batch = 0;
	d->batch_blocks = blocks;
}

/* The next blocks of the batch that lie side by side in one group, taken off it. */
static struct pf_run next_run(struct pf_discard *d)
{
	struct pf_run *run = &d->batch[d->at_batch];
	while (d->at_batch + 1 < d->nr_batch && run[1].addr == run->addr + run->nr) {
		run[1].addr = run->addr;
		run[1].nr += run->nr;
		run = &d->batch[++d->at_batch];
	}
	struct pf_run next = { run->addr, minimum(run->nr, PF_GROUP_BLOCKS - pf_addr_block(run->addr) % PF_GROUP_BLOCKS) };
	run->addr += next.nr;
	run->nr -= next.nr;
	d->batch_blocks -= next.nr;
	if (!run->nr)
		d->at_batch++;
	if (d->at_batch == d->nr_batch) {
		free(d->batch);
		d->batch = NULL;
		d->nr_batch = d->at_batch = 0;
	}
	return next;
}

/* The windows that the run completes (I2): [*from, *end), empty if there are none. What lies in them is ours then, what of the
 * run does not is free. */
static void fit(struct pf_space *space, struct pf_space_member *m, uint64_t first, uint64_t last, uint64_t *from, uint64_t *end)
{
	uint64_t floor = m->discard.from, a = maximum(first, floor);
	*from = *end = 0;
	if (a < last && m->groups[first >> PF_GROUP_SHIFT].maps) {
		uint64_t left = maximum(window_start(a), floor), right = minimum(window_end(last), m->geo.data_end);
		bool grow_left = left < a && can_take(space, m, left, a);
		if (grow_left)
			take(m, left, a);
		bool grow_right = right > last && can_take(space, m, last, right);
		if (grow_right)
			take(m, last, right);
		*from = grow_left || left == a ? left : window_end(a);
		*end = grow_right || right == last ? right : window_start(last);
		if (*from >= *end) {
			give_back(space, m, grow_left ? left : a, a);
			give_back(space, m, last, grow_right ? right : last);
			*from = *end = last;
		}
		give_back(space, m, a, minimum(*from, last));
		give_back(space, m, maximum(*end, a), last);
	} else {
		a = last;
	}
	give_back(space, m, first, minimum(a, last));
}

static bool step(struct pf_space *space, struct pf_space_member *m)
{
	struct pf_discard *d = &m->discard;
	if (!d->batch && d->waiting.first)
		next_batch(space, m);
	if (!d->batch)
		return false;
	for (unsigned i = 0; d->batch && i < RUNS_PER_STEP; i++) {
		struct pf_run run = next_run(d);
		uint64_t first = pf_addr_block(run.addr), from, end;
		fit(space, m, first, first + run.nr, &from, &end);
		if (from < end) {
			if (discard(space, m, from, end) == -EOPNOTSUPP)
				drop(space, m);
			break;
		}
	}
	return true;
}

int pf_space_discard_step(struct pf_space *space)
{
	bool more = false;
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr && !more; i++)
		more = step(space, &space->members[i]);
	pthread_mutex_unlock(&space->lock);
	return more;
}

/* -- batch --------------------------------------------------------------------------------------------------------- */

static bool next_member(const struct pf_space *space, struct pf_trim *t)
{
	t->member++;
	t->block = 0;
	return t->member < space->nr;
}

static uint64_t end_of(const struct pf_space_member *m, const struct pf_trim *t)
{
	if (!t->end_member && !t->end_block)
		return m->geo.data_end;
	return t->member > t->end_member ? 0 : t->member < t->end_member ? m->geo.data_end : minimum(t->end_block, m->geo.data_end);
}

static bool worth_loading(const struct pf_group *g, const struct pf_trim *t)
{
	bool never_used = !(g->flags & PF_GROUP_INIT) && !g->maps;
	return g->free_blocks >= t->min_blocks && g->free_blocks && (t->unused || !never_used);
}

/* The next run in the group of t->block that is worth it, taken; t->block is behind it, or behind the group. */
static bool find_run(struct pf_space *space, struct pf_space_member *m, struct pf_trim *t, uint64_t group_end, uint64_t *from,
		     uint64_t *end)
{
	uint64_t group = t->block >> PF_GROUP_SHIFT, base = group << PF_GROUP_SHIFT;
	const struct pf_maps *maps = m->groups[group].maps;
	uint64_t min = maximum(t->min_blocks, 1), at = t->block;
	t->block = group_end;
	while (maps && at < group_end) {
		uint32_t last = (uint32_t)(group_end - base);
		*from = base + pf_bits_next_clear(maps->used, (uint32_t)(at - base), last);
		if (*from >= group_end)
			break;
		*end = base + pf_bits_next_set(maps->used, (uint32_t)(*from - base), last);
		at = *end;
		if (*end - *from < min)
			continue;
		/* others may need room just now: not more than half of what there is, and nothing of what somebody missed */
		uint64_t avail = pf_space_avail(space, PF_USE_DATA);
		uint64_t nr = avail > space->missed_blocks ? minimum(*end - *from, maximum((avail - space->missed_blocks) / 2, 1)) : 0;
		nr = spare(space, m, *from, nr);
		if (nr < min)
			continue;
		*end = *from + nr;
		take(m, *from, *end);
		t->block = *end;
		return true;
	}
	return false;
}

static int trim_member(struct pf_space *space, struct pf_space_member *m, struct pf_trim *t)
{
	uint64_t member_end = end_of(m, t), from, end;
	t->block = maximum(t->block, trim_from(m));
	for (unsigned i = 0; i < GROUPS_PER_STEP && t->block < member_end && !m->discard.unable; i++) {
		uint32_t group = (uint32_t)(t->block >> PF_GROUP_SHIFT);
		uint64_t group_end = minimum((group + UINT64_C(1)) << PF_GROUP_SHIFT, member_end);
		if (!worth_loading(&m->groups[group], t)) {
			t->block = group_end;
			continue;
		}
		int err = m->groups[group].maps ? 0 : pf_group_load(space, m, &group, 1);
		if (err)
			return err;
		if (!find_run(space, m, t, group_end, &from, &end))
			continue;
		err = discard(space, m, from, end);
		if (err)
			*(err == -EOPNOTSUPP ? &t->unable : &t->failed) |= UINT32_C(1) << m->id;
		else
			t->trimmed_blocks += end - from;
		break;
	}
	if (m->discard.unable)
		t->unable |= UINT32_C(1) << m->id;
	return t->block < member_end && !m->discard.unable;
}

int pf_space_trim_step(struct pf_space *space, struct pf_trim *t)
{
	if (t->member >= space->nr)
		return 0;
	pthread_mutex_lock(&space->lock);
	int more = trim_member(space, &space->members[t->member], t);
	pf_group_evict(space, 2);
	pthread_mutex_unlock(&space->lock);
	if (!more)
		more = next_member(space, t);
	return more;
}
