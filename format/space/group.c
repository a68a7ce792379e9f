/* SPDX-License-Identifier: MIT
 *
 * Groups and their maps in memory. A group costs 40 bytes; its two bitmaps are loaded when somebody allocates from
 * it or a checkpoint changes it, and go away again, oldest first, when they say no more than the committed map on
 * disk does.
 */
#include "space/private.h"

#include <stdlib.h>
#include <string.h>

enum { EVICT_AT_ONCE = 16 };

/* The part of a group that lies in the data area, as bits [*from, *end). */
static void data_part(const struct pf_geometry *geo, uint64_t group, uint32_t *from, uint32_t *end)
{
	uint64_t first = group << PF_GROUP_SHIFT, last = first + PF_GROUP_BLOCKS;
	uint64_t a = geo->data_start > first ? geo->data_start : first;
	uint64_t b = geo->data_end < last ? geo->data_end : last;
	*from = *end = 0;
	if (a < b) {
		*from = (uint32_t)(a - first);
		*end = (uint32_t)(b - first);
	}
}

uint32_t pf_group_capacity(const struct pf_geometry *geo, uint64_t group)
{
	uint32_t from, end;
	data_part(geo, group, &from, &end);
	return end - from;
}

uint32_t pf_group_quads(const struct pf_geometry *geo, uint64_t group)
{
	uint32_t from, end;
	data_part(geo, group, &from, &end);
	uint32_t first = (from + PF_NODE_BLOCKS - 1) / PF_NODE_BLOCKS, last = end / PF_NODE_BLOCKS;
	return first < last ? last - first : 0;
}

void pf_group_fill_fixed(const struct pf_geometry *geo, uint64_t group, uint64_t *words)
{
	uint32_t from, end;
	data_part(geo, group, &from, &end);
	pf_bits_set(words, 0, from);
	pf_bits_set(words, end, PF_GROUP_BLOCKS - end);
}

void pf_group_add_free(struct pf_space_member *m, uint32_t group, int32_t blocks, int32_t quads)
{
	struct pf_group *g = &m->groups[group];
	struct pf_table *t = &m->tables[group / PF_GROUPS_PER_TABLE];
	g->free_blocks = (uint16_t)(g->free_blocks + blocks);
	g->free_quads = (uint16_t)(g->free_quads + quads);
	t->free_blocks += (uint32_t)blocks;
	t->free_quads += (uint32_t)quads;
	m->free_blocks += (uint64_t)(int64_t)blocks;
	m->free_quads += (uint64_t)(int64_t)quads;
}

static void raise_bound(uint16_t *bound, uint32_t *of_member, uint32_t nr, uint32_t all)
{
	/* what has become free may have joined the longest run before it to the longest one behind it */
	uint32_t most = 2 * (uint32_t)*bound + nr;
	*bound = (uint16_t)(most < all ? most : all);
	if (*of_member < *bound)
		*of_member = *bound;
}

/* A run of @blocks has become free, in it or at its ends @quads whole ones. */
static void raise_bounds(struct pf_space_member *m, uint32_t group, uint32_t blocks, uint32_t quads)
{
	struct pf_group *g = &m->groups[group];
	unsigned kind = pf_group_kind(g);
	raise_bound(&g->run_bound, &m->run_bound[kind], blocks, g->free_blocks);
	if (quads)
		raise_bound(&g->quads_bound, &m->quads_bound[kind], quads * PF_NODE_BLOCKS,
			    (uint32_t)g->free_quads * PF_NODE_BLOCKS);
	m->raised++;
}

void pf_group_set_free(struct pf_space_member *m, uint32_t group, uint32_t blocks, uint32_t quads)
{
	struct pf_group *g = &m->groups[group];
	pf_group_add_free(m, group, (int32_t)blocks - g->free_blocks, (int32_t)quads - g->free_quads);
	g->run_bound = g->quads_bound = 0;
	raise_bounds(m, group, blocks, quads);
}

void pf_group_take(struct pf_space_member *m, uint32_t group, uint32_t start, uint32_t nr)
{
	uint64_t *used = m->groups[group].maps->used;
	uint32_t broken = pf_bits_count_quads(used, start, nr), taken = pf_bits_set(used, start, nr);
	assert(taken == nr); /* I1 */
	pf_group_add_free(m, group, -(int32_t)taken, -(int32_t)broken);
}

/* -- the list of loaded groups, newest first
 * ------------------------------------------------------------------------- */

static void list_remove(struct pf_space *space, struct pf_maps *maps)
{
	*(maps->newer ? &maps->newer->older : &space->newest) = maps->older;
	*(maps->older ? &maps->older->newer : &space->oldest) = maps->newer;
	maps->newer = maps->older = NULL;
}

static void list_add(struct pf_space *space, struct pf_maps *maps)
{
	maps->newer = NULL;
	maps->older = space->newest;
	*(space->newest ? &space->newest->newer : &space->oldest) = maps;
	space->newest = maps;
}

void pf_group_touch(struct pf_space *space, struct pf_maps *maps)
{
	if (space->newest == maps)
		return;
	list_remove(space, maps);
	list_add(space, maps);
}

void pf_group_evict(struct pf_space *space, unsigned tries)
{
	while (space->nr_loaded > space->max_loaded && tries--) {
		struct pf_maps *maps = space->oldest;
		if (maps->held || maps->unsaved || memcmp(maps->used, maps->disk, sizeof(maps->used)) != 0) {
			pf_group_touch(space, maps); /* out of the way */
			continue;
		}
		list_remove(space, maps);
		maps->member->groups[maps->group].maps = NULL;
		space->nr_loaded--;
		free(maps);
	}
}

void pf_group_evict_batch(struct pf_space *space)
{
	/* each piece begins with the oldest there is then */
	for (unsigned i = 0; i < 2 * PF_SPACE_BATCH && space->nr_loaded > space->max_loaded; i += EVICT_AT_ONCE) {
		pf_group_evict(space, EVICT_AT_ONCE);
		pf_space_give_way(space);
	}
}

/* -- loading
 * ---------------------------------------------------------------------------------------------------------- */

static struct pf_maps *maps_alloc(struct pf_space_member *m, uint32_t group)
{
	struct pf_maps *maps = calloc(1, sizeof(*maps));
	if (maps) {
		maps->member = m;
		maps->group = group;
	}
	return maps;
}

static void maps_insert(struct pf_space *space, struct pf_maps *maps)
{
	maps->member->groups[maps->group].maps = maps;
	space->nr_loaded++;
	list_add(space, maps);
}

int pf_group_new_maps(struct pf_space *space, struct pf_space_member *m, uint32_t group)
{
	struct pf_maps *maps = maps_alloc(m, group);
	if (!maps)
		return -ENOMEM;
	maps_insert(space, maps);
	return 0;
}

static void set_bad(struct pf_space *space, struct pf_space_member *m, uint32_t group, int err)
{
	struct pf_group *g = &m->groups[group];
	pf_group_set_free(m, group, 0, 0);
	g->flags |= PF_GROUP_BAD | (err == -EIO ? PF_GROUP_RETRY : 0);
	space->bad_groups++;
	if (err == -EIO) {
		space->retry_groups++;
		space->unreadable |= UINT32_C(1) << m->id;
		pf_set_suspect(space->set, m->id);
	}
	pthread_mutex_unlock(&space->lock);
	pf_log(space->env, PF_LOG_ERROR,
	       "%s: free-space map of group %u: %s; the group counts as full until fsck.poolfs rebuilds the map",
	       m->io->name, group, pf_strerror(err));
	pthread_mutex_lock(&space->lock);
}

unsigned pf_group_retry(struct pf_space *space, struct pf_space_member *m, const uint32_t *groups, unsigned nr)
{
	unsigned nr_retry = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct pf_group *g = &m->groups[groups[i]];
		if (!(g->flags & PF_GROUP_RETRY))
			continue;
		g->flags &= (uint8_t) ~(PF_GROUP_BAD | PF_GROUP_RETRY);
		space->bad_groups--;
		space->retry_groups--;
		nr_retry++;
		/* no free into it has been dropped so far, so the committed map is what it was */
		pf_group_set_free(m, groups[i], g->disk_free_blocks, g->disk_free_quads);
	}
	return nr_retry;
}

bool pf_group_retry_all(struct pf_space *space)
{
	bool any = false;
	/* a freeze asks for it, and all wait meanwhile: not for maps that stay bad until fsck */
	for (unsigned i = 0; i < space->nr && space->retry_groups; i++) {
		struct pf_space_member *m = &space->members[i];
		for (uint32_t g = 0; g < m->geo.nr_groups && space->retry_groups; g++)
			any |= pf_group_retry(space, m, &g, 1) > 0;
	}
	return any;
}

struct read_map {
	struct pf_map_expect expect;
	struct pf_maps *maps; /* both bitmaps as on disk; of no use with an error */
	int err;
};

/* Takes over one map that was read without the lock, unless the group has changed meanwhile: the caller then looks
 * again. */
static void accept_map(struct pf_space *space, struct pf_space_member *m, struct read_map *read)
{
	const struct pf_map_expect *expect = &read->expect;
	struct pf_group *g = &m->groups[expect->group];
	if (g->maps || g->flags & PF_GROUP_BAD || g->generation != expect->generation || g->slot != expect->slot)
		return;
	if (read->err) {
		set_bad(space, m, expect->group, read->err);
		return;
	}
	space->unreadable &= ~(UINT32_C(1) << m->id);
	maps_insert(space, read->maps);
	read->maps = NULL;
}

/* Judges what was read, without the lock: the maps are nobody else's yet. -ENOMEM. */
static int unpack_map(const struct pf_space *space, struct pf_space_member *m, int err, const void *block, struct read_map *read)
{
	read->err = err;
	if (err)
		return 0;
	read->maps = maps_alloc(m, read->expect.group);
	if (!read->maps)
		return -ENOMEM;
	read->err = pf_table_unpack_map(space, m, &read->expect, block, read->maps->used);
	memcpy(read->maps->disk, read->maps->used, sizeof(read->maps->disk));
	return 0;
}

static int read_and_unpack(struct pf_space *space, struct pf_space_member *m, struct read_map *reads, unsigned nr)
{
	struct pf_aio_req *reqs = calloc(nr, sizeof(*reqs));
	uint8_t *buf = aligned_alloc(PF_BLOCK_SIZE, (size_t)nr * PF_BLOCK_SIZE);
	int err = reqs && buf ? 0 : -ENOMEM;
	if (err)
		goto out;
	for (unsigned i = 0; i < nr; i++) {
		const struct pf_map_expect *expect = &reads[i].expect;
		uint64_t block = m->geo.maps_block + 2 * (uint64_t)expect->group + expect->slot;
		reqs[i] = (struct pf_aio_req){ .io = m->io,
					       .op = PF_AIO_READ,
					       .off_bytes = block * PF_BLOCK_SIZE,
					       .buf = buf + (size_t)i * PF_BLOCK_SIZE,
					       .len_bytes = PF_BLOCK_SIZE };
	}
	pf_aio_run(space->set->aio, reqs, nr); /* each result is judged by itself */
	for (unsigned i = 0; i < nr && !err; i++)
		err = unpack_map(space, m, reqs[i].result, reqs[i].buf, &reads[i]);
out:
	free(reqs);
	free(buf);
	return err;
}

static int read_maps(struct pf_space *space, struct pf_space_member *m, struct read_map *reads, unsigned nr)
{
	pthread_mutex_unlock(&space->lock);
	int err = read_and_unpack(space, m, reads, nr);
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < nr; i++) {
		if (!err)
			accept_map(space, m, &reads[i]);
		free(reads[i].maps); /* what was not wanted */
	}
	return err;
}

int pf_group_load(struct pf_space *space, struct pf_space_member *m, const uint32_t *groups, unsigned nr)
{
	struct read_map missing[PF_SPACE_BATCH];
	for (;;) {
		unsigned nr_missing = 0;
		for (unsigned i = 0; i < nr; i++) {
			struct pf_group *g = &m->groups[groups[i]];
			if (g->maps)
				pf_group_touch(space, g->maps);
			else if (!(g->flags & (PF_GROUP_BAD | PF_GROUP_INIT))) {
				if (pf_group_new_maps(space, m, groups[i]))
					return -ENOMEM;
				pf_group_fill_fixed(&m->geo, groups[i], g->maps->used);
				pf_group_fill_fixed(&m->geo, groups[i], g->maps->disk);
			} else if (!(g->flags & PF_GROUP_BAD))
				missing[nr_missing++] = (struct read_map){ .expect = pf_map_expect_of(m, groups[i]) };
		}
		if (!nr_missing)
			return 0;
		int err = read_maps(space, m, missing, nr_missing);
		if (err)
			return err;
	}
}

void pf_group_release(struct pf_space_member *m, struct pf_run run)
{
	uint64_t block = pf_addr_block(run.addr), end = block + run.nr;
	while (block < end) {
		uint32_t group = (uint32_t)(block >> PF_GROUP_SHIFT), from = block % PF_GROUP_BLOCKS;
		uint32_t nr = PF_GROUP_BLOCKS - from;
		if (nr > end - block)
			nr = (uint32_t)(end - block);
		struct pf_maps *maps = m->groups[group].maps;
		if (maps) { /* else it was bad when the checkpoint came by: dropped (I5) */
			uint32_t before = pf_bits_count_quads(maps->used, from, nr);
			uint32_t freed = pf_bits_clear(maps->used, from, nr);
			uint32_t quads = pf_bits_count_quads(maps->used, from, nr);
			pf_group_add_free(m, group, (int32_t)freed, (int32_t)(quads - before));
			raise_bounds(m, group, nr, quads);
		}
		block += nr;
	}
}
