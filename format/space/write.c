/* SPDX-License-Identifier: MIT
 *
 * The checkpoint's part: lists of G -> maps -> table blocks -> roots, each into the slot that the committed parent
 * does not name (I3). What was written is noted as new_* and becomes the committed state in pf_space_durable() only;
 * a failed write leaves nothing behind but changed 'disk' bitmaps, and applying the same lists to them again changes
 * nothing.
 */
#include "space/private.h"

#include <stdlib.h>
#include <string.h>

enum { MAPS_AT_ONCE = 64 /* that become the committed ones with the lock held */ };

struct plan { /* for one member */
	struct pf_space *space;
	struct pf_space_member *m;
	struct pf_run *alloc, *freed, *next_txg; /* sorted */
	size_t nr_alloc, nr_freed, nr_next_txg;
	size_t at_alloc, at_freed, at_next_txg;
	uint32_t *groups; /* sorted, each once */
	size_t nr_groups;
};

/* -- which groups
 * --------------------------------------------------------------------------------------------------- */

static size_t add_groups(const struct pf_run *runs, size_t nr_runs, uint32_t *groups)
{
	size_t nr = 0;
	for (size_t i = 0; i < nr_runs; i++) {
		uint64_t first = pf_addr_block(runs[i].addr), last = first + runs[i].nr - 1;
		for (uint64_t g = first >> PF_GROUP_SHIFT; g <= last >> PF_GROUP_SHIFT; g++) {
			if (nr && groups && groups[nr - 1] == g)
				continue;
			if (groups)
				groups[nr] = (uint32_t)g;
			nr++;
		}
	}
	return nr;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* Groups whose maps were replaced: counts them, or stores at most @nr. */
static size_t add_replaced(const struct plan *p, uint32_t *groups, size_t nr)
{
	size_t found = 0;
	pthread_mutex_lock(&p->space->lock);
	if (!p->m->nr_replaced)
		nr = 0; /* as always but after a repair: all loaded maps are many */
	for (struct pf_maps *maps = p->space->newest; maps && found < nr; maps = maps->older) {
		if (maps->member != p->m || !maps->replaced)
			continue;
		if (groups)
			groups[found] = maps->group;
		found++;
	}
	pthread_mutex_unlock(&p->space->lock);
	return found;
}

static int list_groups(struct plan *p)
{
	struct pf_space_member *m = p->m;
	size_t replaced = add_replaced(p, NULL, SIZE_MAX);
	size_t nr = add_groups(p->alloc, p->nr_alloc, NULL) + add_groups(p->freed, p->nr_freed, NULL) + replaced;
	uint32_t *groups = p->groups = malloc((nr ? nr : 1) * sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	nr = add_groups(p->alloc, p->nr_alloc, groups);
	nr += add_groups(p->freed, p->nr_freed, groups + nr);
	nr += add_replaced(p, groups + nr, replaced);
	qsort(groups, nr, sizeof(*groups), by_number);
	for (size_t i = 0; i < nr; i++) {
		if (!i || groups[i] != groups[i - 1])
			groups[p->nr_groups++] = groups[i];
	}
	free(m->new_maps); /* of an attempt that failed */
	m->nr_new_maps = 0;
	m->new_maps = malloc((p->nr_groups ? p->nr_groups : 1) * sizeof(*m->new_maps));
	return m->new_maps ? 0 : -ENOMEM;
}

/* Without the lock: only the checkpoint changes the frozen lists, and sorting them takes long. */
static int make_plan(struct plan *p)
{
	int err = pf_run_list_sorted(&p->m->frozen.alloc, &p->alloc);
	if (!err)
		err = pf_run_list_sorted(&p->m->frozen.freed, &p->freed);
	if (!err && pf_breaks(p->space->env, PF_BREAK_MAP_OF_NEXT_TXG)) {
		pthread_mutex_lock(&p->space->lock);
		err = pf_run_list_sorted(&p->m->open.alloc, &p->next_txg);
		p->nr_next_txg = err ? 0 : p->m->open.alloc.nr;
		pthread_mutex_unlock(&p->space->lock);
	}
	if (err)
		return err;
	p->nr_alloc = p->m->frozen.alloc.nr;
	p->nr_freed = p->m->frozen.freed.nr;
	return list_groups(p);
}

static void free_plan(struct plan *p)
{
	free(p->alloc);
	free(p->freed);
	free(p->next_txg);
	free(p->groups);
}

/* -- maps
 * ------------------------------------------------------------------------------------------------------------- */

/* Changes the bits of @group that the runs from *at on name; moves *at behind the runs that end in it. Returns their
 * number. */
static uint64_t apply(const struct pf_run *runs, size_t nr, size_t *at, uint32_t group, uint64_t *words,
		      uint32_t (*change)(uint64_t *words, uint32_t from, uint32_t nr))
{
	uint64_t first = (uint64_t)group << PF_GROUP_SHIFT, last = first + PF_GROUP_BLOCKS, blocks = 0;
	for (; *at < nr; ++*at) {
		uint64_t a = pf_addr_block(runs[*at].addr), b = a + runs[*at].nr;
		if (a >= last)
			break;
		uint64_t lo = a > first ? a : first, hi = b < last ? b : last;
		if (lo < hi) {
			blocks += hi - lo;
			if (words)
				change(words, (uint32_t)(lo - first), (uint32_t)(hi - lo));
		}
		if (b > last)
			break;
	}
	return blocks;
}

/* Brings 'disk' of one group to G and puts it into @map. Without the lock: the maps are held, and slots change by
 * checkpoints only. */
static void next_map(struct plan *p, struct pf_maps *maps, struct pf_disk_map *map)
{
	struct pf_space_member *m = p->m;
	uint32_t group = maps->group;
	const struct pf_group *g = &m->groups[group];
	uint64_t words[PF_MAP_WORDS];
	apply(p->alloc, p->nr_alloc, &p->at_alloc, group, maps->disk, pf_bits_set);
	apply(p->freed, p->nr_freed, &p->at_freed, group, maps->disk, pf_bits_clear);
	memcpy(words, maps->disk, sizeof(words));
	apply(p->next_txg, p->nr_next_txg, &p->at_next_txg, group, words, pf_bits_set);
	pf_bits_pack(words, map->used);
	bool in_place = pf_breaks(p->space->env, PF_BREAK_MAP_IN_PLACE);
	m->new_maps[m->nr_new_maps++] = (struct pf_new_map){
		.group = group,
		.free_blocks = (uint16_t)pf_bits_count_clear(words),
		.free_quads = (uint16_t)pf_bits_count_quads(words, 0, PF_GROUP_BLOCKS),
		.slot = in_place ? g->slot : !g->slot,
	};
}

/* A group without maps is bad: its frees are dropped (I5). Nothing can have been allocated in it. */
static int skip_bad(struct plan *p, uint32_t group)
{
	p->space->retry_groups -= (p->m->groups[group].flags & PF_GROUP_RETRY) != 0;
	p->m->groups[group].flags &= (uint8_t)~PF_GROUP_RETRY; /* from now on its map is wrong */
	p->space->dropping_blocks += apply(p->freed, p->nr_freed, &p->at_freed, group, NULL, NULL);
	return apply(p->alloc, p->nr_alloc, &p->at_alloc, group, NULL, NULL) ? -EIO : 0;
}

/* Loads the groups and holds their maps; NULL for bad ones. */
static int hold_maps(struct plan *p, const uint32_t *groups, unsigned nr, struct pf_maps **held)
{
	pthread_mutex_lock(&p->space->lock);
	pf_group_retry(p->space, p->m, groups, nr);
	int err = pf_group_load(p->space, p->m, groups, nr);
	if (!err && pf_group_retry(p->space, p->m, groups, nr))
		err = pf_group_load(p->space, p->m, groups, nr);
	for (unsigned i = 0; i < nr && !err; i++) {
		held[i] = p->m->groups[groups[i]].maps;
		if (held[i])
			held[i]->held = true;
	}
	pthread_mutex_unlock(&p->space->lock);
	return err;
}

/* One that was bad when the others were loaded. Since then somebody may have had it tried again (pf_space_retry_maps()): then it
 * counts, and what was freed in it is not dropped. */
static int hold_late(struct plan *p, uint32_t group, struct pf_maps **held)
{
	pthread_mutex_lock(&p->space->lock);
	int err = pf_group_load(p->space, p->m, &group, 1);
	*held = p->m->groups[group].maps;
	if (!err && *held)
		(*held)->held = true;
	else if (!err)
		err = skip_bad(p, group);
	pthread_mutex_unlock(&p->space->lock);
	return err;
}

/* The 'disk' of the first @nr_done is that of G now. */
static void let_go(struct plan *p, struct pf_maps **held, unsigned nr, unsigned nr_done)
{
	pthread_mutex_lock(&p->space->lock);
	for (unsigned i = 0; i < nr; i++) {
		if (!held[i])
			continue;
		held[i]->unsaved = held[i]->unsaved || i < nr_done;
		held[i]->held = false;
	}
	pf_group_evict_batch(p->space);
	pthread_mutex_unlock(&p->space->lock);
}

/* The lock is held to look the maps up only. While their bits are changed and counted others allocate in these groups, which
 * changes 'used', and free, which changes the lists of the next txg: neither is of G. */
static int prepare_maps(struct plan *p, const uint32_t *groups, unsigned nr, struct pf_disk_map *maps)
{
	struct pf_maps *held[PF_SPACE_BATCH] = { 0 };
	size_t first = p->m->nr_new_maps;
	unsigned nr_done = 0;
	int err = hold_maps(p, groups, nr, held);
	while (!err && nr_done < nr) {
		struct pf_maps **one = &held[nr_done];
		if (!*one)
			err = hold_late(p, groups[nr_done], one);
		if (err)
			break;
		if (*one)
			next_map(p, *one, &maps[p->m->nr_new_maps - first]);
		nr_done++;
	}
	let_go(p, held, nr, nr_done);
	return err;
}

static int write_blocks(struct pf_space *space, struct pf_space_member *m, const uint64_t *blocks, uint8_t *buf,
			unsigned nr)
{
	struct pf_aio_req reqs[PF_SPACE_BATCH];
	for (unsigned i = 0; i < nr; i++) {
		reqs[i] = (struct pf_aio_req){ .io = m->io,
					       .op = PF_AIO_WRITE,
					       .off_bytes = blocks[i] * PF_BLOCK_SIZE,
					       .buf = buf + (size_t)i * PF_BLOCK_SIZE,
					       .len_bytes = PF_BLOCK_SIZE };
	}
	return nr ? pf_aio_run_behind(space->set->aio, reqs, nr) : 0;
}

static int write_maps(struct plan *p, uint8_t *buf)
{
	struct pf_space_member *m = p->m;
	struct pf_disk_map *maps = (struct pf_disk_map *)buf;
	uint64_t blocks[PF_SPACE_BATCH];
	int err = 0;
	for (size_t at = 0; at < p->nr_groups && !err; at += PF_SPACE_BATCH) {
		size_t nr = p->nr_groups - at < PF_SPACE_BATCH ? p->nr_groups - at : PF_SPACE_BATCH;
		size_t first = m->nr_new_maps;
		err = prepare_maps(p, p->groups + at, (unsigned)nr, maps);
		if (err)
			break;
		nr = m->nr_new_maps - first;
		for (size_t i = 0; i < nr; i++) {
			struct pf_new_map *new = &m->new_maps[first + i];
			new->crc = pf_table_seal_map(p->space, m, new, m->new_generation, &maps[i]);
			blocks[i] = m->geo.maps_block + 2 * (uint64_t) new->group + new->slot;
		}
		err = write_blocks(p->space, m, blocks, buf, (unsigned)nr);
	}
	return err;
}

/* -- tables and roots
 * --------------------------------------------------------------------------------------------------- */

static int write_tables(struct pf_space *space, struct pf_space_member *m, uint8_t *buf)
{
	uint64_t blocks[PF_SPACE_BATCH];
	unsigned nr = 0;
	int err = 0;
	size_t at = 0;
	m->new_root = false;
	for (uint32_t t = 0; t < m->geo.nr_tables && !err; t++) {
		uint64_t end = (t + UINT64_C(1)) * PF_GROUPS_PER_TABLE;
		bool touched = m->tables[t].dirty;
		for (; at < m->nr_new_maps && m->new_maps[at].group < end; at++)
			touched = true;
		m->tables[t].written = touched;
		if (!touched)
			continue;
		m->new_root = true;
		pthread_mutex_lock(&space->lock);
		m->tables[t].new_crc = pf_table_pack(space, m, t, buf + (size_t)nr * PF_BLOCK_SIZE);
		pthread_mutex_unlock(&space->lock);
		blocks[nr++] = m->geo.tables_block + 2 * (uint64_t)t + !m->tables[t].slot;
		if (nr == PF_SPACE_BATCH) {
			err = write_blocks(space, m, blocks, buf, nr);
			nr = 0;
		}
	}
	return err ? err : write_blocks(space, m, blocks, buf, nr);
}

static int write_root(struct pf_space *space, struct pf_space_member *m)
{
	size_t len = m->geo.root_blocks * PF_BLOCK_SIZE;
	uint8_t *root = aligned_alloc(PF_BLOCK_SIZE, len);
	if (!root)
		return -ENOMEM;
	m->new_root_slot = !m->root_slot;
	m->new_root_crc = pf_table_pack_root(space, m, root);
	struct pf_aio_req req = {
		.io = m->io,
		.op = PF_AIO_WRITE,
		.off_bytes = (m->geo.root_block + m->new_root_slot * m->geo.root_blocks) * PF_BLOCK_SIZE,
		.buf = root,
		.len_bytes = len,
	};
	int err = pf_aio_run(space->set->aio, &req, 1);
	free(root);
	return err;
}

static int write_member(struct pf_space *space, struct pf_space_member *m, uint8_t *buf)
{
	struct plan p = { .space = space, .m = m };
	int err = make_plan(&p);
	if (!err)
		err = write_maps(&p, buf);
	if (!err)
		err = write_tables(space, m, buf);
	if (!err && m->new_root)
		err = write_root(space, m);
	free_plan(&p);
	return err;
}

/* Nothing of an earlier attempt of this checkpoint is to become the committed state (I10). */
static void forget_attempt(struct pf_space_member *m)
{
	free(m->new_maps);
	m->new_maps = NULL;
	m->nr_new_maps = 0;
	m->new_root = false;
	for (uint32_t t = 0; t < m->geo.nr_tables; t++)
		m->tables[t].written = false;
}

uint32_t pf_space_blamed(const struct pf_space *space)
{
	return space->blamed;
}

int pf_space_write(struct pf_space *space, uint64_t generation, struct pf_super *super, uint32_t *changed)
{
	int err = 0;
	*changed = 0;
	uint8_t *buf = aligned_alloc(PF_BLOCK_SIZE, PF_SPACE_BATCH * PF_BLOCK_SIZE);
	if (!buf)
		return -ENOMEM;
	pthread_mutex_lock(&space->lock);
	if (space->lost_run)
		err = -ENOMEM;
	space->dropping_blocks = 0;
	pthread_mutex_unlock(&space->lock);
	space->blamed = 0;
	for (unsigned i = 0; i < space->nr && !err; i++) {
		struct pf_space_member *m = &space->members[i];
		if (pf_io_failed(m->io)) {
			forget_attempt(m);
			continue;
		}
		m->new_generation = generation;
		err = write_member(space, m, buf);
		if (err == -EIO)
			space->blamed = UINT32_C(1) << i;
		super->members[i].root_slot = m->new_root ? m->new_root_slot : m->root_slot;
		super->members[i].root_generation = m->new_root ? generation : m->root_generation;
		super->members[i].root_crc = m->new_root ? m->new_root_crc : m->root_crc;
		*changed |= (uint32_t)m->new_root << i;
	}
	free(buf);
	return err;
}

/* -- G is durable
 * --------------------------------------------------------------------------------------------------------- */

/* Drops the lock now and then. Each group is right by itself, before and behind its turn: its maps stay loaded until then, as they
 * are unsaved, so nobody reads the slot that is about to be another; and tables are the checkpoint's own. */
static void commit_maps(struct pf_space *space, struct pf_space_member *m)
{
	for (size_t i = 0; i < m->nr_new_maps; i++) {
		const struct pf_new_map *new = &m->new_maps[i];
		struct pf_group *g = &m->groups[new->group];
		g->generation = m->new_generation;
		g->crc = new->crc;
		g->slot = new->slot;
		g->disk_free_blocks = new->free_blocks;
		g->disk_free_quads = new->free_quads;
		g->flags |= PF_GROUP_INIT;
		g->maps->unsaved = false;
		m->nr_replaced -= g->maps->replaced;
		g->maps->replaced = false;
		if ((i + 1) % MAPS_AT_ONCE == 0)
			pf_space_give_way(space);
	}
	m->nr_new_maps = 0;
}

static void commit_tables(struct pf_space_member *m)
{
	for (uint32_t t = 0; t < m->geo.nr_tables && m->new_root; t++) {
		struct pf_table *table = &m->tables[t];
		if (!table->written)
			continue;
		table->generation = m->new_generation;
		table->crc = table->new_crc;
		table->slot = !table->slot;
		table->dirty = table->written = false;
	}
	if (m->new_root) {
		m->root_generation = m->new_generation;
		m->root_crc = m->new_root_crc;
		m->root_slot = m->new_root_slot;
		m->new_root = false;
	}
}

void pf_space_durable(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	space->dropped_blocks += space->dropping_blocks;
	space->dropping_blocks = 0;
	for (unsigned i = 0; i < space->nr; i++) {
		struct pf_space_member *m = &space->members[i];
		struct pf_run_list alloc = { 0 };
		commit_maps(space, m);
		commit_tables(m);
		/* what G has allocated stands in the maps now; what it freed comes back after its maps are the committed ones */
		pf_run_list_move(&alloc, &m->frozen.alloc);
		pf_run_list_clear(space, &alloc);
		pf_epoch_durable(space, m);
	}
	pf_group_evict_batch(space);
	pthread_mutex_unlock(&space->lock);
	for (unsigned i = 0; i < space->nr; i++) {
		free(space->members[i].new_maps);
		space->members[i].new_maps = NULL;
	}
}
