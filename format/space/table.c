/* SPDX-License-Identifier: MIT
 *
 * Table roots, table blocks and maps as bytes (FORMAT 3): the only file of space/ that knows them.
 *
 * A root is one structure of root_blocks blocks. Each block begins with a head (index = number of the block in the
 * root) that is followed by references; the CRC of the whole stands in the first head, those of the other heads are
 * zero.
 */
#include "space/private.h"

#include "base/csum.h"

#include <stdlib.h>
#include <string.h>

#define READ_BLOCKS 256u /* per member and round: 1 MiB, both slots of 128 table blocks */

struct head_expect {
	uint64_t magic, generation, crc;
	uint32_t index;
	uint8_t slot;
};

static bool head_matches(const struct pf_space *space, const struct pf_space_member *m, const void *block,
			 const struct head_expect *e)
{
	struct pf_disk_table_head head;
	memcpy(&head, block, sizeof(head));
	return pf_get64(head.magic) == e->magic && pf_get64(head.generation) == e->generation &&
	       pf_get64(head.crc) == e->crc && pf_get32(head.index) == e->index && head.member_id == m->id &&
	       head.slot == e->slot && memcmp(head.pool_uuid, space->pool_uuid, sizeof(head.pool_uuid)) == 0;
}

/* CRC of a structure with its crc field taken as zero. Leaves the field zero. */
static uint64_t crc_of(void *bytes, size_t len_bytes)
{
	((struct pf_disk_table_head *)bytes)->crc = pf_le64(0);
	return pf_crc64(bytes, len_bytes);
}

static void put_head(const struct pf_space *space, const struct pf_space_member *m, void *block,
		     const struct head_expect *e)
{
	struct pf_disk_table_head *head = block;
	memset(head, 0, sizeof(*head));
	head->magic = pf_le64(e->magic);
	memcpy(head->pool_uuid, space->pool_uuid, sizeof(head->pool_uuid));
	head->generation = pf_le64(e->generation);
	head->index = pf_le32(e->index);
	head->member_id = (uint8_t)m->id;
	head->slot = e->slot;
}

static uint64_t seal(void *bytes, size_t len_bytes)
{
	uint64_t crc = crc_of(bytes, len_bytes);
	((struct pf_disk_table_head *)bytes)->crc = pf_le64(crc);
	return crc;
}

/* -- maps
 * ------------------------------------------------------------------------------------------------------------- */

struct pf_map_expect pf_map_expect_of(const struct pf_space_member *m, uint32_t group)
{
	const struct pf_group *g = &m->groups[group];
	return (struct pf_map_expect){
		.generation = g->generation,
		.crc = g->crc,
		.group = group,
		.free_blocks = g->disk_free_blocks,
		.free_quads = g->disk_free_quads,
		.slot = g->slot,
	};
}

int pf_table_unpack_map(const struct pf_space *space, const struct pf_space_member *m,
			const struct pf_map_expect *expect, const void *block, uint64_t *words)
{
	struct pf_disk_map map;
	struct head_expect e = { PF_MAP_MAGIC, expect->generation, expect->crc, expect->group, expect->slot };
	memcpy(&map, block, sizeof(map));
	bool good = head_matches(space, m, &map, &e) && crc_of(&map, sizeof(map)) == expect->crc;
	pf_bits_unpack(map.used, words);
	pf_group_fill_fixed(&m->geo, expect->group, words);
	good = good && pf_bits_count_clear(words) == expect->free_blocks &&
	       pf_bits_count_quads(words, 0, PF_GROUP_BLOCKS) == expect->free_quads;
	return good ? 0 : -PF_EMAP_INVALID;
}

uint64_t pf_table_seal_map(const struct pf_space *space, const struct pf_space_member *m, const struct pf_new_map *new,
			   uint64_t generation, struct pf_disk_map *map)
{
	struct head_expect e = { PF_MAP_MAGIC, generation, 0, new->group, new->slot };
	put_head(space, m, map, &e);
	memset(map->reserved, 0, sizeof(map->reserved));
	return seal(map, sizeof(*map));
}

/* -- table blocks
 * ----------------------------------------------------------------------------------------------------- */

static void pack_group(const struct pf_group *g, struct pf_disk_group *d)
{
	d->generation = pf_le64(g->generation);
	d->crc = pf_le64(g->crc);
	d->free_blocks = pf_le16(g->disk_free_blocks);
	d->slot = g->slot;
	d->flags = g->flags & (PF_GROUP_INIT | PF_GROUP_META);
	d->free_quads = pf_le16(g->disk_free_quads);
}

static const struct pf_new_map *first_new_map(const struct pf_space_member *m, uint32_t group)
{
	size_t a = 0, b = m->nr_new_maps;
	while (a < b) {
		size_t mid = (a + b) / 2;
		if (m->new_maps[mid].group < group)
			a = mid + 1;
		else
			b = mid;
	}
	return m->new_maps + a;
}

uint64_t pf_table_pack(const struct pf_space *space, const struct pf_space_member *m, uint32_t table, void *block)
{
	struct head_expect e = { PF_TABLE_MAGIC, m->new_generation, 0, table, !m->tables[table].slot };
	memset(block, 0, PF_BLOCK_SIZE);
	put_head(space, m, block, &e);
	struct pf_disk_group *d = (struct pf_disk_group *)((struct pf_disk_table_head *)block + 1);
	uint32_t first = table * (uint32_t)PF_GROUPS_PER_TABLE;
	const struct pf_new_map *new = first_new_map(m, first), *end = m->new_maps + m->nr_new_maps;
	for (uint32_t g = first; g < m->geo.nr_groups && g < first + PF_GROUPS_PER_TABLE; g++, d++) {
		pack_group(&m->groups[g], d);
		if (new < end &&new->group == g) {
			d->generation = pf_le64(m->new_generation);
			d->crc = pf_le64(new->crc);
			d->free_blocks = pf_le16(new->free_blocks);
			d->free_quads = pf_le16(new->free_quads);
			d->slot = new->slot;
			d->flags |= PF_GROUP_INIT;
			new ++;
		}
	}
	return seal(block, PF_BLOCK_SIZE);
}

static bool unpack_group(const struct pf_space_member *m, uint32_t group, const struct pf_disk_group *d)
{
	struct pf_group *g = &m->groups[group];
	uint32_t capacity = pf_group_capacity(&m->geo, group);
	g->generation = pf_get64(d->generation);
	g->crc = pf_get64(d->crc);
	g->slot = d->slot;
	g->flags = d->flags & (PF_GROUP_INIT | PF_GROUP_META);
	g->disk_free_blocks = (uint16_t)capacity;
	g->disk_free_quads = (uint16_t)pf_group_quads(&m->geo, group);
	if (g->flags & PF_GROUP_INIT) {
		g->disk_free_blocks = pf_get16(d->free_blocks);
		g->disk_free_quads = pf_get16(d->free_quads);
	}
	/* one of the two is wrong then, which the map will say; the sums must not be absurd till then */
	if (g->disk_free_quads * PF_NODE_BLOCKS > g->disk_free_blocks)
		g->disk_free_quads = (uint16_t)(g->disk_free_blocks / PF_NODE_BLOCKS);
	return g->slot <= 1 && g->disk_free_blocks <= capacity;
}

static bool unpack_table(const struct pf_space *space, const struct pf_space_member *m, uint32_t table, void *block)
{
	const struct pf_table *t = &m->tables[table];
	struct head_expect e = { PF_TABLE_MAGIC, t->generation, t->crc, table, t->slot };
	if (!head_matches(space, m, block, &e) || crc_of(block, PF_BLOCK_SIZE) != t->crc)
		return false;
	const struct pf_disk_group *d = (const struct pf_disk_group *)((struct pf_disk_table_head *)block + 1);
	uint32_t first = table * (uint32_t)PF_GROUPS_PER_TABLE;
	bool good = true;
	for (uint32_t g = first; g < m->geo.nr_groups && g < first + PF_GROUPS_PER_TABLE; g++, d++)
		good = unpack_group(m, g, d) && good;
	return good;
}

/* -- roots
 * ------------------------------------------------------------------------------------------------------------ */

uint64_t pf_table_pack_root(const struct pf_space *space, const struct pf_space_member *m, void *root)
{
	memset(root, 0, m->geo.root_blocks * PF_BLOCK_SIZE);
	uint32_t table = 0;
	for (uint32_t i = 0; i < m->geo.root_blocks; i++) {
		struct pf_disk_table_head *head = (void *)((uint8_t *)root + (size_t)i * PF_BLOCK_SIZE);
		struct head_expect e = { PF_TABLE_ROOT_MAGIC, m->new_generation, 0, i, m->new_root_slot };
		put_head(space, m, head, &e);
		struct pf_disk_table_ref *ref = (struct pf_disk_table_ref *)(head + 1);
		for (unsigned k = 0; k < PF_TABLE_REFS_PER_BLOCK && table < m->geo.nr_tables; k++, table++, ref++) {
			const struct pf_table *t = &m->tables[table];
			ref->generation = pf_le64(t->written ? m->new_generation : t->generation);
			ref->crc = pf_le64(t->written ? t->new_crc : t->crc);
			ref->slot = t->written ? !t->slot : t->slot;
		}
	}
	return seal(root, m->geo.root_blocks * PF_BLOCK_SIZE);
}

static bool unpack_root(const struct pf_space *space, const struct pf_space_member *m, void *root)
{
	uint32_t table = 0;
	bool good = true;
	for (uint32_t i = 0; i < m->geo.root_blocks; i++) {
		struct pf_disk_table_head *head = (void *)((uint8_t *)root + (size_t)i * PF_BLOCK_SIZE);
		struct head_expect e = { PF_TABLE_ROOT_MAGIC, m->root_generation, i ? 0 : m->root_crc, i,
					 m->root_slot };
		good = good && head_matches(space, m, head, &e);
	}
	good = good && crc_of(root, m->geo.root_blocks * PF_BLOCK_SIZE) == m->root_crc;
	for (uint32_t i = 0; good && i < m->geo.root_blocks; i++) {
		struct pf_disk_table_head *head = (void *)((uint8_t *)root + (size_t)i * PF_BLOCK_SIZE);
		const struct pf_disk_table_ref *ref = (const struct pf_disk_table_ref *)(head + 1);
		for (unsigned k = 0; k < PF_TABLE_REFS_PER_BLOCK && table < m->geo.nr_tables; k++, table++, ref++) {
			struct pf_table *t = &m->tables[table];
			t->generation = pf_get64(ref->generation);
			t->crc = pf_get64(ref->crc);
			t->slot = ref->slot & 1;
			good = good && ref->slot <= 1;
		}
	}
	return good;
}

/* -- reading all of them
 * ------------------------------------------------------------------------------------------------ */

static int report(const struct pf_space_member *m, int err, const char *what, uint64_t index, struct pf_diag *diag)
{
	return pf_diag_set(diag, err, "%s: %s %llu: %s; run fsck.poolfs to rebuild the free-space maps", m->io->name,
			   what, (unsigned long long)index, pf_strerror(err));
}

/* The verdict on a root or table block that was read with @err. */
static int verdict(int err, bool good)
{
	if (err)
		return err;
	return good ? 0 : -PF_ETABLE_INVALID;
}

static int read_roots(struct pf_space *space, bool strict, struct pf_diag *diag)
{
	struct pf_aio_req reqs[PF_MAX_MEMBERS] = { 0 };
	int err = 0;
	for (unsigned i = 0; i < space->nr && !err; i++) {
		struct pf_space_member *m = &space->members[i];
		size_t len = m->geo.root_blocks * PF_BLOCK_SIZE;
		reqs[i] = (struct pf_aio_req){
			.io = m->io,
			.op = PF_AIO_READ,
			.off_bytes = (m->geo.root_block + m->root_slot * m->geo.root_blocks) * PF_BLOCK_SIZE,
			.buf = aligned_alloc(PF_BLOCK_SIZE, len),
			.len_bytes = len,
		};
		if (!reqs[i].buf)
			err = -ENOMEM;
	}
	if (err)
		goto out;
	pf_aio_run(space->set->aio, reqs, space->nr);
	for (unsigned i = 0; i < space->nr && !err; i++) {
		struct pf_space_member *m = &space->members[i];
		int bad = verdict(reqs[i].result, !reqs[i].result && unpack_root(space, m, reqs[i].buf));
		m->root_readable = !bad;
		if (bad && strict)
			err = report(m, bad, "group table root of generation", m->root_generation, diag);
	}
out:
	for (unsigned i = 0; i < space->nr; i++)
		free(reqs[i].buf);
	return err;
}

static int unpack_piece(struct pf_space *space, struct pf_space_member *m, uint64_t first, const struct pf_aio_req *req,
			bool strict, struct pf_diag *diag)
{
	for (uint64_t k = 0; k < req->len_bytes / PF_BLOCK_SIZE / 2; k++) {
		uint32_t table = (uint32_t)(first / 2 + k);
		uint8_t *block = (uint8_t *)req->buf + (2 * k + m->tables[table].slot) * PF_BLOCK_SIZE;
		int err = verdict(req->result, !req->result && unpack_table(space, m, table, block));
		if (err && strict)
			return report(m, err, "group table block", table, diag);
	}
	return 0;
}

/* Both slots of everything, in large sequential pieces, the members side by side: on a disk that is cheaper than
 * seeking for each committed slot. */
static int read_tables(struct pf_space *space, bool strict, struct pf_diag *diag)
{
	struct pf_aio_req reqs[PF_MAX_MEMBERS] = { 0 };
	uint64_t most = 0;
	int err = 0;
	uint8_t *buf = aligned_alloc(PF_BLOCK_SIZE, (size_t)space->nr * READ_BLOCKS * PF_BLOCK_SIZE);
	if (!buf)
		return -ENOMEM;
	for (unsigned i = 0; i < space->nr; i++) {
		uint64_t nr_tables = space->members[i].geo.nr_tables;
		most = nr_tables > most ? nr_tables : most;
	}
	for (uint64_t first = 0; first < 2 * most && !err; first += READ_BLOCKS) {
		unsigned nr = 0, of[PF_MAX_MEMBERS];
		for (unsigned i = 0; i < space->nr; i++) {
			struct pf_space_member *m = &space->members[i];
			if (!m->root_readable || first >= 2 * m->geo.nr_tables)
				continue;
			uint64_t blocks = 2 * m->geo.nr_tables - first;
			blocks = blocks < READ_BLOCKS ? blocks : READ_BLOCKS;
			reqs[nr] = (struct pf_aio_req){ .io = m->io,
							.op = PF_AIO_READ,
							.off_bytes = (m->geo.tables_block + first) * PF_BLOCK_SIZE,
							.buf = buf + (size_t)i * READ_BLOCKS * PF_BLOCK_SIZE,
							.len_bytes = blocks * PF_BLOCK_SIZE };
			of[nr++] = i;
		}
		pf_aio_run(space->set->aio, reqs, nr);
		for (unsigned k = 0; k < nr && !err; k++)
			err = unpack_piece(space, &space->members[of[k]], first, &reqs[k], strict, diag);
	}
	free(buf);
	return err;
}

int pf_table_read_all(struct pf_space *space, bool strict, struct pf_diag *diag)
{
	int err = read_roots(space, strict, diag);
	return err ? err : read_tables(space, strict, diag);
}
