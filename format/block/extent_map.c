/* SPDX-License-Identifier: MIT */
#include "block/extent.h"

#include <string.h>

/* The first extent that ends after @block, or -ENOENT, -PF_ENODE_ABSENT, -PF_EITEM_INVALID. */
static int view_find(struct pf_view *v, uint64_t data_id, uint64_t block, struct pf_extent *extent)
{
	struct pf_item item;
	int err = pf_view_prev(v, pf_key_extent(data_id, block), &item);
	if (err && err != -ENOENT)
		return err;
	bool ours = !err && pf_key_class(item.key) == PF_CLASS_EXTENT && pf_key_object(item.key) == data_id;
	if (ours) {
		err = pf_extent_unpack(item.key, item.data, item.len, extent);
		if (err || extent->start + extent->nr > block)
			return err;
	}
	if (block >= PF_KEY_FIELD_MAX)
		return -ENOENT;
	err = pf_view_next(v, pf_key_extent(data_id, block + 1), &item);
	if (err)
		return err;
	if (pf_key_class(item.key) != PF_CLASS_EXTENT || pf_key_object(item.key) != data_id)
		return -ENOENT;
	return pf_extent_unpack(item.key, item.data, item.len, extent);
}

static void add_hole(struct pf_map *map, unsigned first, unsigned nr)
{
	if (nr)
		map->segs[map->nr_segs++] = (struct pf_seg){ .first = first, .nr = nr, .flags = PF_SEG_HOLE };
}

/* Adds the part of @e that lies in the range from its block @pos on; returns the position behind it. */
static unsigned add_extent(struct pf_map *map, unsigned pos, const struct pf_extent *e)
{
	uint64_t at = map->start + pos;
	unsigned skip = e->start < at ? (unsigned)(at - e->start) : 0;
	unsigned first = pos + (unsigned)(e->start + skip - at);
	unsigned nr = e->nr - skip;
	if (nr > map->nr - first)
		nr = map->nr - first;
	add_hole(map, pos, first - pos);
	struct pf_seg *seg = &map->segs[map->nr_segs++];
	*seg = (struct pf_seg){ .first = first, .nr = nr, .flags = e->flags, .nr_copies = e->nr_copies };
	for (unsigned i = 0; i < e->nr_copies; i++)
		seg->addr[i] = e->addr[i] + skip;
	for (unsigned i = 0; e->crc && i < nr; i++)
		map->crc[first + i] = pf_get64(e->crc[skip + i]);
	return first + nr;
}

static int view_map(struct pf_view *v, uint64_t data_id, struct pf_map *map)
{
	unsigned pos = 0;
	map->nr_segs = 0;
	while (pos < map->nr) {
		struct pf_extent e;
		int err = view_find(v, data_id, map->start + pos, &e);
		if (err == -ENOENT || (!err && e.start >= map->start + map->nr)) {
			add_hole(map, pos, map->nr - pos);
			return 0;
		}
		if (err)
			return err;
		pos = add_extent(map, pos, &e);
	}
	return 0;
}

static void enter_readers(struct pf_pool *pool, struct pf_map *map)
{
	for (unsigned i = 0; i < map->nr_segs; i++) {
		for (unsigned c = 0; c < map->segs[i].nr_copies; c++) {
			unsigned m = pf_addr_member(map->segs[i].addr[c]);
			if (m >= pool->set->nr || map->members >> m & 1)
				continue;
			map->tickets[m] = pf_space_reader_enter(pool->space, m);
			map->members |= 1u << m;
		}
	}
}

int pf_extent_map(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, struct pf_map *map)
{
	struct pf_view v;
	int err;
	map->start = start;
	map->nr = nr;
	map->members = 0;
	PF_VIEW(v, pool->tree, err) {
		err = view_map(&v, data_id, map);
		if (!err)
			enter_readers(pool, map);
	}
	return err;
}

void pf_map_release(struct pf_pool *pool, struct pf_map *map)
{
	for (unsigned m = 0; map->members; m++) {
		if (map->members >> m & 1)
			pf_space_reader_exit(pool->space, m, map->tickets[m]);
		map->members &= ~(1u << m);
	}
}

int pf_extent_neighbour(struct pf_pool *pool, uint64_t data_id, uint64_t start, pf_addr *goal, int *member)
{
	struct pf_view v;
	int err;
	*goal = 0;
	*member = -1;
	PF_VIEW(v, pool->tree, err) {
		struct pf_item item;
		struct pf_extent e;
		err = start ? pf_view_prev(&v, pf_key_extent(data_id, start - 1), &item) : -ENOENT;
		if (err == -PF_ENODE_ABSENT)
			continue;
		bool before = !err && pf_key_class(item.key) == PF_CLASS_EXTENT && pf_key_object(item.key) == data_id;
		if (before) {
			err = pf_extent_unpack(item.key, item.data, item.len, &e);
			if (err)
				continue;
			*goal = e.start + e.nr == start ? e.addr[0] + e.nr : 0;
			*member = (int)pf_addr_member(e.addr[0]);
			continue;
		}
		err = view_find(&v, data_id, start, &e);
		if (!err)
			*member = (int)pf_addr_member(e.addr[0]);
		else if (err == -ENOENT)
			err = 0;
	}
	return err;
}

int pf_extent_find(struct pf_pool *pool, uint64_t data_id, uint64_t block, struct pf_extent *extent)
{
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err)
		err = view_find(&v, data_id, block, extent);
	return err;
}

int pf_extent_batch(struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to, unsigned max_items,
		    uint64_t *batch_from, uint64_t *batch_to, unsigned *nr_items)
{
	struct pf_view v;
	int err;
	PF_VIEW(v, pool->tree, err) {
		uint64_t pos = from;
		*batch_from = *batch_to = to;
		*nr_items = 0;
		while (pos < to && *nr_items < max_items) {
			struct pf_extent e;
			err = view_find(&v, data_id, pos, &e);
			if (err || e.start >= to)
				break;
			if (!*nr_items)
				*batch_from = e.start > from ? e.start : from;
			pos = e.start + e.nr < to ? e.start + e.nr : to;
			*batch_to = pos;
			++*nr_items;
		}
		if (err == -ENOENT)
			err = 0;
	}
	return err;
}
