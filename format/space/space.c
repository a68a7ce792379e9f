/* SPDX-License-Identifier: MIT
 *
 * Opening, closing and numbers; the maps as fsck sees and replaces them.
 */
#include "space/private.h"

#include <stdlib.h>
#include <string.h>

/* -- open
 * -------------------------------------------------------------------------------------------------------------- */

static int init_member(struct pf_space *space, unsigned id)
{
	struct pf_space_member *m = &space->members[id];
	const struct pf_member_row *row = &space->set->super.members[id];
	m->id = id;
	m->io = space->set->members[id].io;
	m->geo = space->set->members[id].geo;
	m->area_blocks = m->geo.data_end - m->geo.data_start;
	m->root_generation = row->root_generation;
	m->root_crc = row->root_crc;
	m->root_slot = row->root_slot;
	m->groups = calloc(m->geo.nr_groups, sizeof(*m->groups));
	m->tables = calloc(m->geo.nr_tables, sizeof(*m->tables));
	for (unsigned i = 0; i < space->nr_meta; i++)
		m->meta = m->meta || space->meta_members[i] == id;
	if (m->meta)
		m->share_blocks = row->share_blocks;
	pf_home_init(m);
	/* of the share at least the beginning was allocated on the host of an image: data comes there when it has been round */
	m->cursor[0] = m->geo.data_start + m->share_blocks;
	m->cursor[1] = m->geo.data_start;
	atomic_init(&m->epoch, 1);
	return m->groups && m->tables ? 0 : -ENOMEM;
}

static int init_lock(struct pf_space *space)
{
	pthread_condattr_t attr;
	int err = -pthread_mutex_init(&space->lock, NULL);
	if (err)
		return err;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = -pthread_cond_init(&space->release, &attr);
	pthread_condattr_destroy(&attr);
	if (err)
		pthread_mutex_destroy(&space->lock);
	return err;
}

static int new_space(struct pf_set *set, struct pf_space **out)
{
	struct pf_space *space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	int err = init_lock(space);
	if (err) {
		free(space);
		return err;
	}
	space->set = set;
	space->env = set->env;
	space->nr = set->nr;
	memcpy(space->pool_uuid, set->super.pool_uuid, sizeof(space->pool_uuid));
	space->reclaim = pf_has(&set->super.features, PF_FEAT_RECLAIM);
	space->nr_copies = pf_set_node_copies(set);
	space->nr_meta = set->super.nr_meta;
	memcpy(space->meta_members, set->super.meta_members, sizeof(space->meta_members));
	space->max_loaded = PF_SPACE_MAX_LOADED;
	for (unsigned i = 0; i < space->nr && !err; i++)
		err = init_member(space, i);
	*out = space;
	return err;
}

/* Forgets what the maps say, not where they lie: the committed slots must not be written until the new state is
 * durable. */
static void forget(struct pf_space_member *m)
{
	uint64_t marked = 0;
	for (uint32_t i = 0; i < m->geo.nr_groups; i++) {
		struct pf_group *g = &m->groups[i];
		uint32_t capacity = pf_group_capacity(&m->geo, i);
		*g = (struct pf_group){ .slot = g->slot & 1,
					.disk_free_blocks = (uint16_t)capacity,
					.disk_free_quads = (uint16_t)pf_group_quads(&m->geo, i) };
		if (capacity && marked < m->share_blocks) {
			g->flags = PF_GROUP_META;
			marked += capacity;
		}
	}
	for (uint32_t t = 0; t < m->geo.nr_tables; t++)
		m->tables[t].dirty = true;
}

int pf_space_open(struct pf_set *set, bool rebuild, struct pf_space **out, struct pf_diag *diag)
{
	struct pf_space *space = NULL;
	int err = new_space(set, &space);
	if (!err)
		err = pf_run_chunks_prepare(space);
	if (!err)
		err = pf_table_read_all(space, !rebuild, diag);
	if (err) {
		pf_space_close(space);
		return err;
	}
	for (unsigned i = 0; i < space->nr; i++) {
		struct pf_space_member *m = &space->members[i];
		if (rebuild)
			forget(m);
		for (uint32_t g = 0; g < m->geo.nr_groups; g++)
			pf_group_set_free(m, g, m->groups[g].disk_free_blocks, m->groups[g].disk_free_quads);
		pf_home_opened(m);
	}
	*out = space;
	return 0;
}

void pf_space_close(struct pf_space *space)
{
	if (!space)
		return;
	while (space->newest) {
		struct pf_maps *maps = space->newest;
		space->newest = maps->older;
		free(maps);
	}
	for (unsigned i = 0; i < space->nr; i++) {
		struct pf_space_member *m = &space->members[i];
		struct pf_run_list *lists[] = { &m->open.alloc,   &m->open.freed, &m->frozen.alloc,
						&m->frozen.freed, &m->waiting[0], &m->waiting[1] };
		for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
			pf_run_list_clear(NULL, lists[k]);
		pf_run_list_clear(NULL, &m->discard.waiting);
		free(m->discard.batch);
		free(m->groups);
		free(m->tables);
		free(m->new_maps);
	}
	struct pf_run_list spare = { .first = space->spare };
	pf_run_list_clear(NULL, &spare);
	pthread_cond_destroy(&space->release);
	pthread_mutex_destroy(&space->lock);
	free(space);
}

/* -- numbers
 * ------------------------------------------------------------------------------------------------------------ */

static uint64_t pending(const struct pf_space_member *m)
{
	return m->open.freed.blocks + m->frozen.freed.blocks + m->waiting[0].blocks + m->waiting[1].blocks +
	       m->releasing_blocks + pf_discard_blocks(&m->discard);
}

void pf_space_stats(struct pf_space *space, struct pf_space_stats *out)
{
	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr; i++) {
		const struct pf_space_member *m = &space->members[i];
		out->data_area_blocks += m->area_blocks;
		out->share_blocks += m->share_blocks;
		out->node_blocks += m->node_blocks;
		if (m->failed)
			continue;
		out->free_blocks += m->free_blocks;
		out->pending_blocks += pending(m);
		if (m->meta)
			out->meta_free_blocks += m->free_quads * PF_NODE_BLOCKS;
	}
	out->reserved_blocks = space->reserved;
	out->avail_blocks = pf_space_avail(space, PF_USE_DATA);
	out->bad_groups = space->bad_groups;
	out->dropped_blocks = space->dropped_blocks;
	pthread_mutex_unlock(&space->lock);
}

bool pf_space_retry_maps(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	bool any = pf_group_retry_all(space);
	pthread_mutex_unlock(&space->lock);
	return any;
}

void pf_space_begin_reclaim(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	space->reclaim = true;
	pthread_mutex_unlock(&space->lock);
}

void pf_space_begin_copies(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	space->nr_copies = pf_set_node_copies(space->set);
	pthread_mutex_unlock(&space->lock);
}

bool pf_space_wants_commit(struct pf_space *space)
{
	uint64_t free_blocks = 0, waiting = 0;
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr; i++) {
		free_blocks += space->members[i].failed ? 0 : space->members[i].free_blocks;
		waiting += space->members[i].failed ? 0 : space->members[i].open.freed.blocks;
	}
	pthread_mutex_unlock(&space->lock);
	return waiting > free_blocks / 4;
}

void pf_space_member_stats(struct pf_space *space, unsigned member, uint64_t *free_blocks, uint64_t *pending_blocks)
{
	pthread_mutex_lock(&space->lock);
	const struct pf_space_member *m = &space->members[member];
	*free_blocks = m->failed ? 0 : m->free_blocks;
	*pending_blocks = m->failed ? 0 : pending(m);
	pthread_mutex_unlock(&space->lock);
}

uint32_t pf_space_unreadable(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	uint32_t mask = space->unreadable;
	pthread_mutex_unlock(&space->lock);
	return mask;
}

void pf_space_fail_members(struct pf_space *space, uint32_t mask)
{
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr; i++)
		space->members[i].failed = space->members[i].failed || (mask >> i & 1);
	space->nr_copies = pf_set_node_copies(space->set);
	pthread_mutex_unlock(&space->lock);
}

/* -- check and repair
 * ------------------------------------------------------------------------------------------------------ */

int pf_space_read_map(struct pf_space *space, unsigned member, uint64_t group, uint8_t *used)
{
	assert(member < space->nr && group < space->members[member].geo.nr_groups);
	struct pf_space_member *m = &space->members[member];
	uint64_t words[PF_MAP_WORDS] = { 0 };
	pthread_mutex_lock(&space->lock);
	struct pf_map_expect expect = pf_map_expect_of(m, (uint32_t)group);
	bool untouched = !(m->groups[group].flags & PF_GROUP_INIT);
	pthread_mutex_unlock(&space->lock);
	int err = 0;
	if (untouched) {
		pf_group_fill_fixed(&m->geo, group, words);
	} else {
		uint8_t *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
		if (!block)
			return -ENOMEM;
		err = pf_io_read(m->io, (m->geo.maps_block + 2 * group + expect.slot) * PF_BLOCK_SIZE, block,
				 PF_BLOCK_SIZE);
		if (!err)
			err = pf_table_unpack_map(space, m, &expect, block, words);
		free(block);
	}
	if (!err)
		pf_bits_pack(words, used);
	return err;
}

int pf_space_replace_map(struct pf_space *space, unsigned member, uint64_t group, const uint8_t *used)
{
	assert(member < space->nr && group < space->members[member].geo.nr_groups);
	struct pf_space_member *m = &space->members[member];
	struct pf_group *g = &m->groups[group];
	uint64_t words[PF_MAP_WORDS];
	int err = 0;
	pf_bits_unpack(used, words);
	pf_group_fill_fixed(&m->geo, group, words);
	uint32_t free_blocks = pf_bits_count_clear(words), free_quads = pf_bits_count_quads(words, 0, PF_GROUP_BLOCKS);
	pthread_mutex_lock(&space->lock);
	if (!(g->flags & (PF_GROUP_INIT | PF_GROUP_BAD)) && !g->maps && free_blocks == g->free_blocks)
		goto out; /* it stays untouched (I6) */
	if (!g->maps)
		err = pf_group_new_maps(space, m, (uint32_t)group);
	if (err)
		goto out;
	if (g->flags & PF_GROUP_BAD) {
		space->retry_groups -= (g->flags & PF_GROUP_RETRY) != 0;
		g->flags &= (uint8_t) ~(PF_GROUP_BAD | PF_GROUP_RETRY);
		space->bad_groups--;
	}
	memcpy(g->maps->used, words, sizeof(words));
	memcpy(g->maps->disk, words, sizeof(words));
	m->nr_replaced += !g->maps->replaced;
	g->maps->unsaved = g->maps->replaced = true;
	pf_group_set_free(m, (uint32_t)group, free_blocks, free_quads);
out:
	pthread_mutex_unlock(&space->lock);
	return err;
}
