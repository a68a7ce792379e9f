/* SPDX-License-Identifier: MIT
 *
 * FORMAT 3 read a second time, independently of space/. A root is one structure of root_blocks blocks: its CRC stands
 * in the first head, and each block begins with a head and goes on with references. */
#include "check/tables.h"

#include "base/csum.h"

#include <stdlib.h>
#include <string.h>

struct expect {
	uint64_t magic, generation, crc;
	uint32_t index;
	unsigned member;
	uint8_t slot;
};

static bool head_fits(const struct pf_super *super, const struct pf_disk_table_head *head, const struct expect *e)
{
	return pf_get64(head->magic) == e->magic && pf_get64(head->generation) == e->generation &&
	       pf_get32(head->index) == e->index && head->member_id == e->member && head->slot == e->slot &&
	       !memcmp(head->pool_uuid, super->pool_uuid, sizeof(head->pool_uuid));
}

/* Takes the crc field of @bytes as zero, and leaves it so. */
static bool verifies(const struct pf_super *super, void *bytes, size_t len_bytes, const struct expect *e)
{
	struct pf_disk_table_head *head = bytes;
	if (!head_fits(super, head, e) || pf_get64(head->crc) != e->crc)
		return false;
	head->crc = pf_le64(0);
	return pf_crc64(bytes, len_bytes) == e->crc;
}

struct load {
	struct pf_set *set;
	const struct pf_super *super;
	unsigned member;
	const struct pf_geometry *geo;
	pf_tables_bad_fn *bad;
	void *arg;
	struct pf_tables *out;
	uint8_t *root;
	void *block;
};

static void lose_table(struct load *l, uint64_t table)
{
	for (uint64_t g = table * PF_GROUPS_PER_TABLE; g < (table + 1) * PF_GROUPS_PER_TABLE && g < l->geo->nr_groups;
	     g++)
		l->out->groups[g] = (struct pf_group_info){ .lost = true };
}

static int read_blocks(struct load *l, uint64_t block, void *buf, uint64_t nr)
{
	return pf_io_read(l->set->members[l->member].io, block << PF_BLOCK_SHIFT, buf, nr << PF_BLOCK_SHIFT);
}

/* -- the root ------------------------------------------------------------------------------------------------------ */
static bool root_verifies(struct load *l)
{
	const struct pf_member_row *row = &l->super->members[l->member];
	struct expect e = { PF_TABLE_ROOT_MAGIC, row->root_generation, row->root_crc, 0, l->member, row->root_slot };
	if (!verifies(l->super, l->root, l->geo->root_blocks << PF_BLOCK_SHIFT, &e))
		return false;
	for (uint32_t i = 1; i < l->geo->root_blocks; i++) {
		e.index = i;
		if (!head_fits(l->super, (void *)(l->root + (size_t)i * PF_BLOCK_SIZE), &e))
			return false;
	}
	return true;
}

static int read_root(struct load *l)
{
	uint64_t at = l->geo->root_block + l->super->members[l->member].root_slot * l->geo->root_blocks;
	int err = read_blocks(l, at, l->root, l->geo->root_blocks);
	if (!err && !root_verifies(l))
		err = -PF_ETABLE_INVALID;
	if (err && l->bad)
		l->bad(l->arg, l->member, true, 0, at, err);
	return err;
}

static struct pf_disk_table_ref root_ref(const struct load *l, uint64_t table)
{
	const uint8_t *block = l->root + table / PF_TABLE_REFS_PER_BLOCK * PF_BLOCK_SIZE;
	const struct pf_disk_table_ref *refs = (const void *)(block + sizeof(struct pf_disk_table_head));
	return refs[table % PF_TABLE_REFS_PER_BLOCK];
}

/* -- table blocks -------------------------------------------------------------------------------------------------- */
static bool unpack(struct load *l, uint64_t table)
{
	const struct pf_disk_group *disk = (const void *)((uint8_t *)l->block + sizeof(struct pf_disk_table_head));
	uint64_t first = table * PF_GROUPS_PER_TABLE;
	for (uint64_t g = first; g < first + PF_GROUPS_PER_TABLE && g < l->geo->nr_groups; g++, disk++) {
		if (disk->slot > 1)
			return false;
		l->out->groups[g] = (struct pf_group_info){
			.generation = pf_get64(disk->generation),
			.crc = pf_get64(disk->crc),
			.free_blocks = pf_get16(disk->free_blocks),
			.free_quads = pf_get16(disk->free_quads),
			.slot = disk->slot,
			.flags = disk->flags,
		};
	}
	return true;
}

static void read_table(struct load *l, uint64_t table)
{
	struct pf_disk_table_ref ref = root_ref(l, table);
	uint64_t at = l->geo->tables_block + 2 * table + (ref.slot & 1);
	struct expect e = { PF_TABLE_MAGIC, pf_get64(ref.generation), pf_get64(ref.crc), (uint32_t)table, l->member,
			    ref.slot };
	int err = read_blocks(l, at, l->block, 1);
	if (!err && (!verifies(l->super, l->block, PF_BLOCK_SIZE, &e) || !unpack(l, table)))
		err = -PF_ETABLE_INVALID;
	if (!err)
		return;
	lose_table(l, table);
	if (l->bad)
		l->bad(l->arg, l->member, false, table, at, err);
}

int pf_tables_load(struct pf_set *set, const struct pf_super *super, unsigned member, pf_tables_bad_fn *bad, void *arg,
		   struct pf_tables *out)
{
	struct load l = {
		.set = set,
		.super = super,
		.member = member,
		.geo = &set->members[member].geo,
		.bad = bad,
		.arg = arg,
		.out = out,
	};
	int err = -ENOMEM;
	out->nr_groups = l.geo->nr_groups;
	out->groups = calloc(l.geo->nr_groups, sizeof(out->groups[0]));
	l.root = aligned_alloc(PF_BLOCK_SIZE, l.geo->root_blocks << PF_BLOCK_SHIFT);
	l.block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	if (!out->groups || !l.root || !l.block)
		goto out;
	err = 0;
	bool lost = read_root(&l) != 0;
	for (uint64_t t = 0; t < l.geo->nr_tables; t++) {
		if (lost)
			lose_table(&l, t);
		else
			read_table(&l, t);
	}
out:
	free(l.root);
	free(l.block);
	return err;
}

void pf_tables_free(struct pf_tables *tables)
{
	free(tables->groups);
	memset(tables, 0, sizeof(*tables));
}

/* -- maps ---------------------------------------------------------------------------------------------------------- */
uint64_t pf_tables_map_block(const struct pf_set *set, unsigned member, uint64_t group,
			     const struct pf_group_info *info)
{
	return set->members[member].geo.maps_block + 2 * group + info->slot;
}

int pf_tables_read_map(struct pf_set *set, const struct pf_super *super, unsigned member, uint64_t group,
		       const struct pf_group_info *info, struct pf_disk_map *map)
{
	uint64_t at = pf_tables_map_block(set, member, group, info);
	struct expect e = { PF_MAP_MAGIC, info->generation, info->crc, (uint32_t)group, member, info->slot };
	int err = pf_io_read(set->members[member].io, at << PF_BLOCK_SHIFT, map, PF_BLOCK_SIZE);
	if (err)
		return err;
	return verifies(super, map, PF_BLOCK_SIZE, &e) ? 0 : -PF_EMAP_INVALID;
}
