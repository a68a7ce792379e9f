/* SPDX-License-Identifier: MIT
 *
 * Pass 3: the committed free-space maps against the bitmap that pass 2 built from the tree.
 *
 * Without the feature RECLAIM deleted data stays marked for ever, so there marked blocks that nothing names are no
 * problem. */
#include "check/checker.h"

#include <stdlib.h>
#include <string.h>

#define MAP_BYTES (PF_GROUP_BLOCKS / 8)

/* -- what a map should say ----------------------------------------------------------------------------------------- */
static void set_bits(uint8_t *map, uint64_t from, uint64_t to)
{
	for (uint64_t b = from; b < to; b++)
		map[b / 8] |= (uint8_t)(1u << b % 8);
}

/* Fixed places, and blocks past the end of the member. */
static void fixed_bits(const struct pf_geometry *geo, uint64_t group, uint8_t *map)
{
	uint64_t first = group << PF_GROUP_SHIFT, end = first + PF_GROUP_BLOCKS;
	memset(map, 0, MAP_BYTES);
	if (first < geo->data_start)
		set_bits(map, 0, (end < geo->data_start ? end : geo->data_start) - first);
	if (end > geo->data_end)
		set_bits(map, first > geo->data_end ? 0 : geo->data_end - first, PF_GROUP_BLOCKS);
}

static void tree_bits(const struct pf_checker *c, unsigned member, uint64_t group, uint8_t *map)
{
	fixed_bits(&c->set->members[member].geo, group, map);
	const uint8_t *marked = pf_blockmap_group(c->map, member, group);
	for (unsigned i = 0; marked && i < MAP_BYTES; i++)
		map[i] |= marked[i];
}

/* The committed map. @block: one aligned block of scratch space. */
static int committed_bits(const struct pf_checker *c, unsigned member, uint64_t group, struct pf_disk_map *block,
			  uint8_t *map)
{
	const struct pf_group_info *info = &c->tables[member].groups[group];
	if (info->lost)
		return -PF_ETABLE_INVALID;
	if (!(info->flags & PF_GROUP_INIT)) {
		fixed_bits(&c->set->members[member].geo, group, map);
		return 0;
	}
	int err = pf_tables_read_map(c->set, c->super, member, group, info, block);
	if (!err)
		memcpy(map, block->used, MAP_BYTES);
	return err;
}

static unsigned count_bits(const uint8_t *map)
{
	unsigned n = 0;
	for (unsigned i = 0; i < MAP_BYTES; i++)
		n += (unsigned)__builtin_popcount(map[i]);
	return n;
}

/* Quads of which nothing is in use. A byte is two of them. */
static unsigned count_free_quads(const uint8_t *map)
{
	unsigned n = 0;
	for (unsigned i = 0; i < MAP_BYTES; i++)
		n += (unsigned)!(map[i] & 0x0f) + (unsigned)!(map[i] & 0xf0);
	return n;
}

bool pf_check_group_map(struct pf_checker *c, unsigned member, uint64_t group, uint8_t *used)
{
	struct pf_disk_map *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	uint8_t committed[MAP_BYTES];
	bool known = block && !committed_bits(c, member, group, block, committed);
	free(block);
	tree_bits(c, member, group, used);
	if (c->blocks_known && (c->reclaim || !known))
		return true;
	/* what is marked may hold what could not be read, or wait for the upgrade to reclamation */
	for (unsigned i = 0; known && i < MAP_BYTES; i++)
		used[i] |= committed[i];
	return known;
}

/* -- comparing ----------------------------------------------------------------------------------------------------- */
static int note(struct pf_checker *c, unsigned member, uint64_t group)
{
	struct pf_fix fix = { .kind = PF_FIX_MAP, .a = member, .b = group };
	return pf_repair_note(&c->repairs, &fix);
}

/* Blocks of @a that are not in @b: their number and the first. */
static unsigned difference(const uint8_t *a, const uint8_t *b, unsigned *first)
{
	unsigned n = 0;
	for (unsigned i = 0; i < MAP_BYTES; i++) {
		unsigned bits = a[i] & ~b[i] & 0xffu;
		if (bits && !n)
			*first = i * 8 + (unsigned)__builtin_ctz(bits);
		n += (unsigned)__builtin_popcount(bits);
	}
	return n;
}

static int compare(struct pf_checker *c, unsigned member, uint64_t group, const uint8_t *committed, const uint8_t *tree)
{
	const struct pf_group_info *info = &c->tables[member].groups[group];
	unsigned first, nr = difference(tree, committed, &first);
	bool fix = false;
	if (nr) {
		struct pf_where place = pf_check_place(c->set, pf_addr_make(member, (group << PF_GROUP_SHIFT) + first));
		bool wanted = pf_check_report(c, PF_PROBLEM_BLOCK_FREE, "%u in group %llu, the first is %s", nr,
					      (unsigned long long)group, place.text);
		fix |= wanted;
		c->repairs.maps_refused |= !wanted;
	}
	nr = difference(committed, tree, &first);
	if (nr && c->reclaim && c->blocks_known) {
		struct pf_where place = pf_check_place(c->set, pf_addr_make(member, (group << PF_GROUP_SHIFT) + first));
		fix |= pf_check_report(c, PF_PROBLEM_BLOCK_LEAKED, "%u in group %llu, the first is %s", nr,
				       (unsigned long long)group, place.text);
	}
	unsigned nr_free = PF_GROUP_BLOCKS - count_bits(committed);
	if (nr_free != info->free_blocks)
		fix |= pf_check_report(c, PF_PROBLEM_FREE_COUNT, "%s, group %llu: %u, but %u blocks are free",
				       c->set->members[member].io->name, (unsigned long long)group, info->free_blocks,
				       nr_free);
	unsigned nr_quads = count_free_quads(committed);
	if (nr_quads != info->free_quads)
		fix |= pf_check_report(c, PF_PROBLEM_FREE_COUNT, "%s, group %llu: %u, but %u quads are free",
				       c->set->members[member].io->name, (unsigned long long)group, info->free_quads,
				       nr_quads);
	return fix ? note(c, member, group) : 0;
}

static int check_group(struct pf_checker *c, unsigned member, uint64_t group, struct pf_disk_map *block)
{
	uint8_t committed[MAP_BYTES], tree[MAP_BYTES];
	const struct pf_group_info *info = &c->tables[member].groups[group];
	if (info->lost) /* reported with its table */
		return 0;
	if (!(info->flags & PF_GROUP_INIT) && !pf_blockmap_group(c->map, member, group)) {
		fixed_bits(&c->set->members[member].geo, group, tree);
		return compare(c, member, group, tree, tree);
	}
	int err = committed_bits(c, member, group, block, committed);
	if (err) {
		uint64_t at = pf_tables_map_block(c->set, member, group, info);
		struct pf_where place = pf_check_place(c->set, pf_addr_make(member, at));
		if (pf_check_report(c, PF_PROBLEM_MAP_DAMAGED, "%s, of group %llu: %s", place.text,
				    (unsigned long long)group, pf_strerror(err)) &&
		    c->blocks_known)
			return note(c, member, group);
		return 0;
	}
	tree_bits(c, member, group, tree);
	return compare(c, member, group, committed, tree);
}

static void table_bad(void *arg, unsigned member, bool is_root, uint64_t index, uint64_t block, int err)
{
	struct pf_checker *c = arg;
	struct pf_where place = pf_check_place(c->set, pf_addr_make(member, block));
	bool wanted;
	if (is_root && (c->stale >> member & 1))
		wanted = pf_check_report(c, PF_PROBLEM_MEMBER_STALE,
					 "%s; its free-space maps can be made anew, its data may be out of date",
					 c->set->members[member].io->name);
	else if (is_root)
		wanted = pf_check_report(c, PF_PROBLEM_TABLE_ROOT, "%s: %s", place.text, pf_strerror(err));
	else
		wanted = pf_check_report(c, PF_PROBLEM_TABLE_DAMAGED, "%s, table block %llu: %s", place.text,
					 (unsigned long long)index, pf_strerror(err));
	wanted = wanted && c->blocks_known;
	c->repairs.rebuild |= wanted;
	c->repairs.maps_refused |= !wanted;
}

/* Its maps are those of long ago, and are made anew from the tree, if it is to be taken back. */
static int failed_member(struct pf_checker *c, unsigned member)
{
	bool wanted = pf_check_report(c, PF_PROBLEM_MEMBER_FAILED,
				      "%s; it can be taken back: its free-space maps are then made anew; files that lost something with "
				      "it give errors where that was (fsck.poolfs --data names them)",
				      c->set->members[member].io->name);
	wanted = wanted && c->blocks_known;
	c->repairs.take_back |= (uint32_t)wanted << member;
	c->repairs.rebuild |= wanted;
	c->repairs.maps_refused |= !wanted;
	return pf_tables_load(c->set, c->super, member, NULL, NULL, &c->tables[member]);
}

int pf_check_space(struct pf_checker *c)
{
	struct pf_disk_map *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	int err = block ? 0 : -ENOMEM;
	uint64_t done = 0, total = 0;
	for (unsigned m = 0; m < c->set->nr; m++)
		total += c->set->members[m].geo.nr_groups;
	for (unsigned m = 0; !err && m < c->set->nr; m++) {
		if (pf_check_has_failed(c, m)) {
			done += c->set->members[m].geo.nr_groups;
			err = failed_member(c, m);
			continue;
		}
		err = pf_tables_load(c->set, c->super, m, table_bad, c, &c->tables[m]);
		for (uint64_t g = 0; !err && g < c->set->members[m].geo.nr_groups; g++) {
			if (done++ % 256 == 0)
				err = pf_check_progress(c, "space", done, total);
			if (!err)
				err = check_group(c, m, g, block);
		}
	}
	free(block);
	return err;
}
