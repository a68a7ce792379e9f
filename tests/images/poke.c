/* SPDX-License-Identifier: MIT */
#include "images/poke.h"

#include "base/csum.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LEVELS 12u

struct poke {
	struct simworld *world;
	struct pf_super super;
	struct pf_geometry geo[PF_MAX_MEMBERS];
	uint8_t uuids[PF_MAX_MEMBERS][16];
	unsigned disk_of[PF_MAX_MEMBERS]; /* member -> index in the world */
	bool rings[PF_MAX_MEMBERS][2];    /* holds the newest superblock */
};

struct path { /* nodes from the root (0) down to the leaf */
	unsigned depth;
	pf_addr addr[MAX_LEVELS], copy[MAX_LEVELS]; /* copy: 0: it has none */
	unsigned child[MAX_LEVELS];
	uint8_t bytes[MAX_LEVELS][PF_NODE_SIZE];
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	fputs("poke: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

/* -- blocks ------------------------------------------------------------------------------------------------------ */
static struct simdisk *disk_of(struct poke *p, pf_addr addr)
{
	if (pf_addr_member(addr) >= p->super.nr_members)
		die("no member %u", pf_addr_member(addr));
	return simworld_disk(p->world, p->disk_of[pf_addr_member(addr)]);
}

static void read_at(struct poke *p, pf_addr addr, void *buf, unsigned nr_blocks)
{
	simdisk_peek(disk_of(p, addr), pf_addr_block(addr) * PF_BLOCK_SIZE, buf, (size_t)nr_blocks * PF_BLOCK_SIZE);
}

static void write_at(struct poke *p, pf_addr addr, const void *buf, unsigned nr_blocks)
{
	simdisk_poke(disk_of(p, addr), pf_addr_block(addr) * PF_BLOCK_SIZE, buf, (size_t)nr_blocks * PF_BLOCK_SIZE);
}

void poke_flip(struct poke *p, pf_addr addr, unsigned byte, unsigned bit)
{
	simdisk_flip_bit(disk_of(p, addr), pf_addr_block(addr) * PF_BLOCK_SIZE + byte, bit);
}

/* -- superblocks ------------------------------------------------------------------------------------------------- */
static bool read_slot(struct poke *p, unsigned disk, unsigned ring, unsigned slot, struct pf_super *super)
{
	uint8_t block[PF_BLOCK_SIZE];
	struct simdisk *d = simworld_disk(p->world, disk);
	uint64_t blocks = simdisk_size(d) / PF_BLOCK_SIZE;
	uint64_t first = ring ? blocks - PF_SUPER_RING_BLOCKS : PF_SUPER_FIRST_BLOCK;
	simdisk_peek(d, (first + slot * PF_SUPER_SPACING_BLOCKS) * PF_BLOCK_SIZE, block, sizeof(block));
	return !pf_super_unpack(block, super);
}

static void find_newest(struct poke *p)
{
	for (unsigned i = 0; i < simworld_nr_disks(p->world) * 2 * PF_SUPER_SLOTS; i++) {
		struct pf_super super;
		unsigned disk = i / (2 * PF_SUPER_SLOTS), ring = i / PF_SUPER_SLOTS % 2, slot = i % PF_SUPER_SLOTS;
		if (!read_slot(p, disk, ring, slot, &super))
			continue;
		p->disk_of[super.member_id] = disk;
		if (super.generation > p->super.generation)
			p->super = super;
	}
	if (!p->super.generation)
		die("no superblock");
}

struct poke *poke_open(struct simworld *world)
{
	struct poke *p = calloc(1, sizeof(*p));
	if (!p)
		die("no memory");
	p->world = world;
	find_newest(p);
	for (unsigned m = 0; m < p->super.nr_members; m++) {
		if (pf_geometry_init(&p->geo[m], p->super.members[m].size_blocks, p->super.members[m].log_blocks))
			die("geometry");
		for (unsigned ring = 0; ring < 2; ring++) {
			struct pf_super super;
			unsigned slot = p->super.generation % PF_SUPER_SLOTS;
			p->rings[m][ring] = read_slot(p, p->disk_of[m], ring, slot, &super) &&
					    super.generation == p->super.generation;
		}
	}
	return p;
}

void poke_close(struct poke *p)
{
	uint8_t block[PF_BLOCK_SIZE];
	for (unsigned m = 0; m < p->super.nr_members; m++) {
		for (unsigned ring = 0; ring < 2; ring++) {
			if (!p->rings[m][ring])
				continue;
			unsigned slot = p->super.generation % PF_SUPER_SLOTS;
			pf_super_pack(&p->super, m, block);
			write_at(p, pf_addr_make(m, pf_geometry_super_block(&p->geo[m], ring, slot)), block, 1);
		}
	}
	free(p);
}

struct pf_super *poke_super(struct poke *p)
{
	return &p->super;
}

const struct pf_geometry *poke_geo(struct poke *p, unsigned member)
{
	return &p->geo[member];
}

/* -- nodes ------------------------------------------------------------------------------------------------------- */
static struct pf_disk_node_head *head_of(void *node)
{
	return node;
}

static unsigned nr_of(void *node)
{
	return pf_get16(head_of(node)->nr_items);
}

static struct pf_disk_child *children_of(void *node)
{
	return (struct pf_disk_child *)(head_of(node) + 1);
}

static struct pf_disk_leaf_item *items_of(void *node)
{
	return (struct pf_disk_leaf_item *)(head_of(node) + 1);
}

static void descend(struct poke *p, struct pf_key key, struct path *path)
{
	path->depth = p->super.root_level + 1;
	path->addr[0] = p->super.root.addr[0];
	path->copy[0] = p->super.root.addr[1];
	for (unsigned i = 0;; i++) {
		void *node = path->bytes[i];
		read_at(p, path->addr[i], node, PF_NODE_BLOCKS);
		if (pf_get64(head_of(node)->magic) != PF_NODE_MAGIC)
			die("no node");
		if (!head_of(node)->level)
			return;
		unsigned c = 0;
		while (c + 1 < nr_of(node) && pf_key_cmp(pf_key_get(children_of(node)[c + 1].key), key) <= 0)
			c++;
		path->child[i] = c;
		path->addr[i + 1] = pf_get64(children_of(node)[c].ptr.addr[0]);
		path->copy[i + 1] = pf_get64(children_of(node)[c].ptr.addr[1]);
	}
}

/* Checksums from the leaf up, and everything written. */
static void seal(struct poke *p, struct path *path)
{
	uint64_t crc = 0;
	for (unsigned i = path->depth; i-- > 0;) {
		void *node = path->bytes[i];
		if (i + 1 < path->depth)
			children_of(node)[path->child[i]].ptr.crc = pf_le64(crc);
		head_of(node)->crc = pf_le64(0);
		crc = pf_crc64(node, PF_NODE_SIZE);
		head_of(node)->crc = pf_le64(crc);
		write_at(p, path->addr[i], node, PF_NODE_BLOCKS);
		if (path->copy[i])
			write_at(p, path->copy[i], node, PF_NODE_BLOCKS);
	}
	p->super.root.crc = crc;
}

int poke_get(struct poke *p, struct pf_key key, void *buf, unsigned cap)
{
	struct path path;
	descend(p, key, &path);
	void *leaf = path.bytes[path.depth - 1];
	for (unsigned i = 0; i < nr_of(leaf); i++) {
		const struct pf_disk_leaf_item *item = &items_of(leaf)[i];
		unsigned len = pf_get16(item->len);
		if (pf_key_cmp(pf_key_get(item->key), key))
			continue;
		if (len > cap)
			die("item of %u bytes", len);
		memcpy(buf, (uint8_t *)leaf + pf_get16(item->offset), len);
		return (int)len;
	}
	return -1;
}

/* Appends an item to a leaf under construction. */
static void push(uint8_t *leaf, struct pf_disk_key key, const void *data, unsigned len)
{
	struct pf_disk_node_head *head = head_of(leaf);
	unsigned nr = nr_of(leaf), offset = pf_get16(head->data_start) - len;
	if (sizeof(*head) + (nr + 1) * sizeof(struct pf_disk_leaf_item) > offset)
		die("the leaf is full");
	memcpy(leaf + offset, data, len);
	items_of(leaf)[nr] = (struct pf_disk_leaf_item){ key, pf_le16((uint16_t)offset), pf_le16((uint16_t)len) };
	head->nr_items = pf_le16((uint16_t)(nr + 1));
	head->data_start = pf_le16((uint16_t)offset);
}

static void change(struct poke *p, struct pf_key key, const void *data, unsigned len)
{
	struct path path;
	uint8_t old[PF_NODE_SIZE];
	descend(p, key, &path);
	uint8_t *leaf = path.bytes[path.depth - 1];
	memcpy(old, leaf, sizeof(old));
	memset(leaf + sizeof(struct pf_disk_node_head), 0, PF_NODE_SIZE - sizeof(struct pf_disk_node_head));
	head_of(leaf)->nr_items = pf_le16(0);
	head_of(leaf)->data_start = pf_le16(PF_NODE_SIZE);
	bool done = !data;
	for (unsigned i = 0; i < nr_of(old); i++) {
		const struct pf_disk_leaf_item *item = &items_of(old)[i];
		int cmp = pf_key_cmp(pf_key_get(item->key), key);
		if (cmp >= 0 && !done) {
			push(leaf, pf_key_le(key), data, len);
			done = true;
		}
		if (cmp)
			push(leaf, item->key, old + pf_get16(item->offset), pf_get16(item->len));
	}
	if (!done)
		push(leaf, pf_key_le(key), data, len);
	if (!nr_of(leaf))
		die("the leaf is empty");
	seal(p, &path);
}

void poke_put(struct poke *p, struct pf_key key, const void *data, unsigned len)
{
	change(p, key, data, len);
}

void poke_del(struct poke *p, struct pf_key key)
{
	change(p, key, NULL, 0);
}

pf_addr poke_leaf(struct poke *p, struct pf_key key)
{
	struct path path;
	descend(p, key, &path);
	return path.addr[path.depth - 1];
}

void poke_leaf_ptr(struct poke *p, struct pf_key key, pf_addr addr)
{
	struct path path;
	descend(p, key, &path);
	if (path.depth < 2)
		die("the root is the leaf");
	path.depth--;
	struct pf_disk_child *child = &children_of(path.bytes[path.depth - 1])[path.child[path.depth - 1]];
	child->ptr.addr[0] = pf_le64(addr);
	seal(p, &path);
}

void poke_node_bytes(struct poke *p, struct pf_key key, unsigned level, unsigned offset, const void *bytes,
		     unsigned len)
{
	struct path path;
	descend(p, key, &path);
	if (level >= path.depth || offset + len > PF_NODE_SIZE)
		die("no such node or bytes");
	path.depth -= level;
	memcpy(path.bytes[path.depth - 1] + offset, bytes, len);
	seal(p, &path);
}

unsigned poke_nodes(struct poke *p, pf_addr *addrs, unsigned cap)
{
	uint8_t node[PF_NODE_SIZE];
	unsigned nr = 0;
	addrs[nr++] = p->super.root.addr[0];
	for (unsigned i = 0; i < nr; i++) { /* the array is the queue */
		read_at(p, addrs[i], node, PF_NODE_BLOCKS);
		for (unsigned c = 0; head_of(node)->level && c < nr_of(node) && nr < cap; c++)
			addrs[nr++] = pf_get64(children_of(node)[c].ptr.addr[0]);
	}
	return nr;
}

bool poke_next(struct poke *p, unsigned class, struct pf_key *key)
{
	uint8_t node[PF_NODE_SIZE];
	pf_addr addrs[4096];
	unsigned nr = poke_nodes(p, addrs, 4096);
	struct pf_key best = PF_KEY_MAX;
	for (unsigned i = 0; i < nr; i++) {
		read_at(p, addrs[i], node, PF_NODE_BLOCKS);
		for (unsigned k = 0; !head_of(node)->level && k < nr_of(node); k++) {
			struct pf_key found = pf_key_get(items_of(node)[k].key);
			if (pf_key_class(found) == class && pf_key_cmp(found, *key) >= 0 && pf_key_cmp(found, best) < 0)
				best = found;
		}
	}
	if (!pf_key_cmp(best, PF_KEY_MAX))
		return false;
	*key = best;
	return true;
}

/* -- group tables (of members with a root of one block) ---------------------------------------------------------- */
void poke_table_places(struct poke *p, unsigned member, uint64_t group, pf_addr places[3])
{
	uint8_t block[PF_BLOCK_SIZE];
	const struct pf_geometry *geo = &p->geo[member];
	uint64_t table = group / PF_GROUPS_PER_TABLE;
	if (geo->root_blocks != 1)
		die("a long root");
	places[0] = pf_addr_make(member, geo->root_block + p->super.members[member].root_slot);
	read_at(p, places[0], block, 1);
	const struct pf_disk_table_ref *refs = (void *)(block + sizeof(struct pf_disk_table_head));
	places[1] = pf_addr_make(member, geo->tables_block + 2 * table + refs[table].slot);
	struct pf_disk_group g = poke_group(p, member, group);
	places[2] = pf_addr_make(member, geo->maps_block + 2 * group + g.slot);
}

static pf_addr table_place(struct poke *p, unsigned member, uint64_t group, uint8_t *root)
{
	const struct pf_geometry *geo = &p->geo[member];
	uint64_t table = group / PF_GROUPS_PER_TABLE;
	read_at(p, pf_addr_make(member, geo->root_block + p->super.members[member].root_slot), root, 1);
	const struct pf_disk_table_ref *refs = (void *)(root + sizeof(struct pf_disk_table_head));
	return pf_addr_make(member, geo->tables_block + 2 * table + refs[table].slot);
}

struct pf_disk_group poke_group(struct poke *p, unsigned member, uint64_t group)
{
	uint8_t root[PF_BLOCK_SIZE], block[PF_BLOCK_SIZE];
	read_at(p, table_place(p, member, group, root), block, 1);
	const struct pf_disk_group *groups = (void *)(block + sizeof(struct pf_disk_table_head));
	return groups[group % PF_GROUPS_PER_TABLE];
}

static uint64_t reseal(void *block)
{
	struct pf_disk_table_head *head = block;
	head->crc = pf_le64(0);
	uint64_t crc = pf_crc64(block, PF_BLOCK_SIZE);
	head->crc = pf_le64(crc);
	return crc;
}

void poke_set_group(struct poke *p, unsigned member, uint64_t group, const struct pf_disk_group *g)
{
	uint8_t root[PF_BLOCK_SIZE], block[PF_BLOCK_SIZE];
	pf_addr at = table_place(p, member, group, root);
	read_at(p, at, block, 1);
	struct pf_disk_group *groups = (void *)(block + sizeof(struct pf_disk_table_head));
	groups[group % PF_GROUPS_PER_TABLE] = *g;
	struct pf_disk_table_ref *refs = (void *)(root + sizeof(struct pf_disk_table_head));
	refs[group / PF_GROUPS_PER_TABLE].crc = pf_le64(reseal(block));
	write_at(p, at, block, 1);
	p->super.members[member].root_crc = reseal(root);
	write_at(p, pf_addr_make(member, p->geo[member].root_block + p->super.members[member].root_slot), root, 1);
}

void poke_map_bit(struct poke *p, unsigned member, uint64_t block, bool used)
{
	struct pf_disk_map map;
	uint64_t group = block >> PF_GROUP_SHIFT;
	unsigned bit = block % PF_GROUP_BLOCKS;
	struct pf_disk_group g = poke_group(p, member, group);
	pf_addr at = pf_addr_make(member, p->geo[member].maps_block + 2 * group + g.slot);
	if (!(g.flags & PF_GROUP_INIT))
		die("the group has no map");
	read_at(p, at, &map, 1);
	bool was = map.used[bit / 8] >> bit % 8 & 1;
	if (was == used)
		die("block %llu is so already", (unsigned long long)block);
	unsigned quad = bit % 8 < 4 ? 0x0f : 0xf0, was_whole = !(map.used[bit / 8] & quad);
	map.used[bit / 8] ^= (uint8_t)(1u << bit % 8);
	unsigned is_whole = !(map.used[bit / 8] & quad);
	g.free_blocks = pf_le16((uint16_t)(pf_get16(g.free_blocks) + (used ? -1 : 1)));
	g.free_quads = pf_le16((uint16_t)(pf_get16(g.free_quads) + is_whole - was_whole));
	g.crc = pf_le64(reseal(&map));
	write_at(p, at, &map, 1);
	poke_set_group(p, member, group, &g);
}
