/* SPDX-License-Identifier: MIT
 * fsck, PF01xx to PF03xx and PF06xx: superblocks, nodes and items, space, data. Made, found by id, and repaired where that is
 * possible. */
#include "unit/check_items.h"

#include "base/csum.h"

#include <dirent.h>

static struct poke *p;

static void begin(void)
{
	p = poke_open(sp->world);
}

static void end(void)
{
	poke_close(p);
	p = NULL;
}

static void flip_in_slot(unsigned member, unsigned ring, uint64_t generation)
{
	uint64_t block = pf_geometry_super_block(poke_geo(p, member), ring, generation % PF_SUPER_SLOTS);
	poke_flip(p, pf_addr_make(member, block), 200, 3);
}

/* -- members (PF01xx) -------------------------------------------------------------------------------------------- */
START_TEST(super_damaged)
{
	begin();
	uint64_t generation = poke_super(p)->generation;
	end();
	begin();
	flip_in_slot(_i / 2 % 2, _i % 2, generation - (unsigned)_i / 4);
	free(p); /* not closed: that would write the superblocks again */
	ck_repaired("PF0101");
}
END_TEST

/* A superblock that verifies, but is not this one's. */
START_TEST(super_of_another)
{
	uint8_t bytes[PF_BLOCK_SIZE];
	begin();
	struct pf_super other = *poke_super(p);
	other.generation -= 2;
	for (unsigned m = 0; m < 2; m++)
		other.members[m].root_generation = 1;
	other.root.generation = 1;
	memset(other.epochs, 0, sizeof(other.epochs));
	uint64_t slot = other.generation % PF_SUPER_SLOTS;
	unsigned id = 1;
	if (_i == 0)
		other.pool_uuid[3]++;
	else if (_i == 1)
		id = 0;
	else
		slot = (slot + 7) % PF_SUPER_SLOTS;
	pf_super_pack(&other, id, bytes);
	uint64_t block = pf_geometry_super_block(poke_geo(p, 1), 1, (unsigned)slot);
	end();
	simdisk_poke(simworld_disk(sp->world, 1), block * PF_BLOCK_SIZE, bytes, sizeof(bytes));
	ck_repaired("PF0101");
}
END_TEST

/* One ring of one member has nothing of the newest generation. */
START_TEST(super_missing)
{
	uint8_t zero[PF_BLOCK_SIZE] = { 0 };
	begin();
	uint64_t block = pf_geometry_super_block(poke_geo(p, 1), 1, poke_super(p)->generation % PF_SUPER_SLOTS);
	end();
	simdisk_poke(simworld_disk(sp->world, 1), block * PF_BLOCK_SIZE, zero, sizeof(zero));
	ck_repaired("PF0102");
}
END_TEST

START_TEST(super_differs)
{
	uint8_t bytes[PF_BLOCK_SIZE];
	begin();
	struct pf_super other = *poke_super(p);
	uint64_t block = pf_geometry_super_block(poke_geo(p, 1), 1, other.generation % PF_SUPER_SLOTS);
	other.counters.nr_inodes++;
	pf_super_pack(&other, 1, bytes);
	end();
	simdisk_poke(simworld_disk(sp->world, 1), block * PF_BLOCK_SIZE, bytes, sizeof(bytes));
	ck_repaired("PF0103");
}
END_TEST

START_TEST(super_unreadable)
{
	begin();
	uint64_t block = pf_geometry_super_block(poke_geo(p, 0), 0, 5);
	end();
	struct sim_fault fault = {
		.disk = simworld_disk(sp->world, 0),
		.ops = SIM_READ,
		.from_bytes = block * PF_BLOCK_SIZE,
		.to_bytes = (block + 1) * PF_BLOCK_SIZE,
	};
	simworld_add_fault(sp->world, &fault);
	ck_ids(fsck(false), "PF0104");
	simworld_clear_faults(sp->world);
	ck_ids(fsck(false), "");
}
END_TEST

/* A member as it was before the last changes; the one with the nodes stays. */
START_TEST(member_stale)
{
	char why[1200] = "", name[16];
	struct simworld *before = simworld_copy(sp->world);
	begin();
	unsigned member = !poke_super(p)->meta_members[0];
	uint64_t root = poke_super(p)->members[member].root_generation, now = root;
	end();
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	for (unsigned i = 0; i < 30 && now == root; i++) {
		snprintf(name, sizeof(name), "later%u", i);
		put_pattern(make_file(PF_ROOT_INO, name), 0, MIB / 2);
		ck_ok(pf_pool_sync(POOL));
		now = pf_pool_super(POOL)->members[member].root_generation;
	}
	ck_assert_uint_ne(now, root);
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	simdisk_copy_from(simworld_disk(sp->world, member), simworld_disk(before, member));
	simworld_free(before);
	const struct found *f = fsck(false);
	ck_assert_msg(has_id(f, "PF0105"), "found:%s", all_messages(f));
	f = fsck(true);
	ck_assert_msg(!f->err && !f->result.nr_left, "%s, left of:%s", f->diag.text, all_messages(f));
	ck_ids(fsck(false), "");
}
END_TEST

/* -- nodes and items (PF02xx) ------------------------------------------------------------------------------------ */
START_TEST(node_damaged)
{
	begin();
	pf_addr nodes[256];
	unsigned nr = poke_nodes(p, nodes, 256);
	ck_assert_uint_gt(nr, 3);
	pf_addr victim = _i ? poke_leaf(p, pf_key_extent(in.big, 4 * 256)) : nodes[0];
	poke_flip(p, victim, 5000, 1);
	end();
	ck_left("PF0201");
	/* what could not be read is not concluded to be free */
	ck_assert_uint_eq(last.nr, 1);
}
END_TEST

START_TEST(node_address)
{
	begin();
	poke_leaf_ptr(p, pf_key_extent(in.big, 4 * 256), pf_addr_make(0, 3));
	end();
	ck_left("PF0202");
}
END_TEST

START_TEST(item_unknown)
{
	static const struct pf_key keys[] = {
		{ 0x0000000000000001, 0x2200000000000000 }, /* class 0, type 34 */
		{ 0x0100000000000001, 0x1000000000000000 }, /* an inode among names */
		{ 0x0200000000000000, 0x3000000000000000 }, /* data of no id */
		{ 0x0300000000000001, 0x3000000000000000 }, /* class 3 */
		{ 0x0000000000000001, 0x1000000000000001 }, /* an inode at offset 1 */
		{ 0x0000000000000000, 0x1000000000000000 }, /* inode 0 */
	};
	begin();
	poke_put(p, keys[_i], "x", 1);
	end();
	ck_left("PF0203");
}
END_TEST

static void spoil_inode(struct pf_inode_item *item, int way)
{
	switch (way) {
	case 0:
		item->mode = 0;
		break;
	case 1:
		item->size = (uint64_t)PF_MAX_FILE_BYTES + 1;
		break;
	case 2:
		item->data_id = 0;
		break;
	case 3:
		item->mtime.tv_nsec = 2000000000;
		break;
	}
}

START_TEST(inode_invalid)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.file);
	spoil_inode(&item, _i);
	inode_put(p, in.file, &item);
	end();
	ck_left("PF0204");
}
END_TEST

START_TEST(inode_invalid_by_type)
{
	begin();
	struct pf_inode_item item = inode_get(p, _i ? in.longlink : in.sub);
	if (_i)
		item.size = 5000;
	else
		item.next_cookie = 2;
	inode_put(p, _i ? in.longlink : in.sub, &item);
	end();
	ck_left("PF0204");
}
END_TEST

START_TEST(symlink_invalid)
{
	begin();
	struct pf_key second = pf_key_make(PF_CLASS_INODE, in.longlink, PF_TYPE_SYMLINK, 1);
	struct pf_key only = pf_key_make(PF_CLASS_INODE, in.link, PF_TYPE_SYMLINK, 0);
	if (_i == 0)
		poke_del(p, second);
	else if (_i == 1)
		poke_put(p, second, "short", 5);
	else if (_i == 2)
		poke_put(p, only, "sub\0deep", 8);
	else
		poke_put(p, pf_key_make(PF_CLASS_INODE, in.file, PF_TYPE_SYMLINK, 0), "sub/deep", 8);
	end();
	ck_left("PF0205");
}
END_TEST

static struct pf_key large_xattr(unsigned chunk)
{
	uint64_t hash = pf_hash64(poke_super(p)->hash_seed, "user.large", 10) >> 16;
	return pf_key_make(PF_CLASS_INODE, in.file, PF_TYPE_XATTR, hash << 8 | chunk);
}

START_TEST(xattr_invalid)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	begin();
	int len = poke_get(p, large_xattr(0), bytes, sizeof(bytes));
	ck_assert_int_gt(len, 0);
	if (_i == 0) {
		poke_del(p, large_xattr(2));
	} else if (_i == 1) {
		poke_put(p, large_xattr(1), "short", 5);
	} else if (_i == 2) {
		poke_put(p, large_xattr(0), bytes, 20);
	} else { /* where nobody looks for it */
		for (unsigned chunk = 0; chunk < 3; chunk++) {
			struct pf_key key = large_xattr(chunk), moved = key;
			len = poke_get(p, key, bytes, sizeof(bytes));
			moved.lo += UINT64_C(100) << 8;
			poke_del(p, key);
			poke_put(p, moved, bytes, (unsigned)len);
		}
	}
	end();
	ck_left("PF0206");
}
END_TEST

START_TEST(xattr_flag)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.file);
	item.flags = 0;
	inode_put(p, in.file, &item);
	end();
	ck_repaired("PF0207");
}
END_TEST

START_TEST(item_unowned)
{
	begin();
	poke_put(p, pf_key_make(PF_CLASS_INODE, 100000, PF_TYPE_SYMLINK, 0), "target", 6);
	poke_put(p, pf_key_make(PF_CLASS_INODE, 100000, PF_TYPE_SYMLINK, 1), "target", 6);
	end();
	ck_repaired("PF0208");
}
END_TEST

START_TEST(extent_invalid)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct pf_extent extent;
	begin();
	unsigned len = extent_get(p, in.big, 256, bytes, &extent);
	switch (_i) {
	case 0: /* outside of the data area */
		extent.addr[0] = pf_addr_make(0, 10);
		extent_put(p, in.big, 256, &extent);
		break;
	case 1: /* of a member that does not exist */
		extent.addr[0] = pf_addr_make(9, 5000);
		extent_put(p, in.big, 256, &extent);
		break;
	case 2:
		extent.birth = poke_super(p)->generation + 5;
		extent_put(p, in.big, 256, &extent);
		break;
	case 3: /* fewer checksums than blocks */
		poke_put(p, pf_key_extent(in.big, 256), bytes, len - 8);
		break;
	case 4: /* no blocks */
		bytes[0] = bytes[1] = 0;
		poke_put(p, pf_key_extent(in.big, 256), bytes, len);
		break;
	}
	end();
	ck_left("PF0209");
}
END_TEST

/* Checksums where the format has none. */
START_TEST(extent_with_unknown_checksums)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct le64 crc[2] = { { 0 } };
	struct pf_extent extent;
	setup_populated_version(4, 1);
	begin();
	extent_get(p, in.deep, 0, bytes, &extent);
	extent.flags = 0;
	extent.crc = crc;
	extent_put(p, in.deep, 0, &extent);
	end();
	ck_left("PF0209");
	teardown_world();
}
END_TEST

/* One that begins inside another, with blocks that are free. */
START_TEST(extent_overlap)
{
	struct pf_extent extent = { .nr = 4, .flags = PF_EXTENT_NO_CSUM, .nr_copies = 1, .birth = 1 };
	begin();
	extent.addr[0] = pf_addr_make(1, poke_geo(p, 1)->data_end - 100);
	extent_put(p, in.big, 258, &extent);
	end();
	const struct found *f = fsck(false);
	ck_assert(has_id(f, "PF0210"));
	ck_assert_int_eq(fsck(true)->err, 0);
	ck_ids(fsck(false), "PF0210");
}
END_TEST

START_TEST(extent_beyond_end)
{
	char why[1200] = "";
	begin();
	struct pf_inode_item item = inode_get(p, in.big);
	item.size = 6 * MIB + 10;
	inode_put(p, in.big, &item);
	end();
	ck_ids(fsck(false), "PF0211");
	const struct found *f = fsck(true);
	ck_assert_msg(!f->err && !f->result.nr_left, "left of:%s", all_messages(f));
	ck_ids(fsck(false), "");
	/* the next mount takes it away */
	ck_assert_msg(!simpool_open(sp, false, why, sizeof(why)), "open: %s", why);
	ck_assert_uint_eq(attr_of(in.big).blocks, 6 * 256 + 1);
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	ck_ids(fsck(false), "");
}
END_TEST

START_TEST(orphan_invalid)
{
	struct pf_key key = pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_RANGE, 3);
	struct pf_orphan_range range = { .data_id = in.big, .ino = 0, .from_block = 0, .to_block = 100 };
	struct pf_disk_orphan_range disk = { 0 };
	begin();
	if (_i == 0) { /* would take away the data of a file */
		pf_orphan_range_pack(&range, &disk);
		poke_put(p, key, &disk, sizeof(disk));
	} else if (_i == 1) { /* of an inode that does not exist: no mount would get over it */
		range.data_id = range.ino = 77;
		poke_super(p)->counters.next_id = 200000;
		range.ino = 100000;
		pf_orphan_range_pack(&range, &disk);
		poke_put(p, key, &disk, sizeof(disk));
	} else if (_i == 2) {
		poke_put(p, key, &disk, 7);
	} else {
		poke_put(p, pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_INODE, in.big), "x", 1);
	}
	end();
	ck_repaired("PF0212");
}
END_TEST

/* -- space (PF03xx) ---------------------------------------------------------------------------------------------- */
/* What PF0301 says of two users, and what to do. */
static void ck_both_named(const struct found *f, const char *first, const char *second)
{
	bool named = false;
	for (unsigned i = 0; i < f->nr; i++) {
		const char *text = f->messages[i], *at = strstr(text, first);
		named = named || (!strcmp(f->ids[i], "PF0301") && at && strstr(at, second) &&
				  strstr(text, "; mount the pool read-only, copy your files elsewhere and make it anew"));
	}
	ck_assert_msg(named, "'%s'%s' is not said:%s", first, second, all_messages(f));
}

START_TEST(block_twice)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct pf_extent a, b;
	begin();
	extent_get(p, in.big, 0, bytes, &a);
	pf_addr shared = a.addr[0];
	if (_i == 0) {
		extent_get(p, in.big, 256, bytes, &b);
		b.addr[0] = shared;
		extent_put(p, in.big, 256, &b);
	} else { /* a node that was seen before the extent, and one that comes after it */
		a.addr[0] = poke_leaf(p, _i == 1 ? pf_key_inode(in.file) : pf_key_extent(in.deep, 0));
		a.nr = 1;
		a.flags = PF_EXTENT_NO_CSUM;
		a.crc = NULL;
		extent_put(p, _i == 1 ? in.sparse : in.file, 1000, &a);
	}
	end();
	const struct found *f = fsck(false);
	if (_i == 0)
		ck_both_named(f, ", 256 in a row: by /big from block 0", " and by /big from block 256");
	else if (_i == 1)
		ck_both_named(f, ", 1 in a row: by the tree node from ", " and by /sparse from block 1000");
	else
		ck_both_named(f, ", 1 in a row: by /file from block 1000", " and by the tree node from ");
	ck_assert_int_eq(fsck(true)->err, 0);
	if (_i == 0) { /* a node moves when something in it is repaired, and the blocks are used once again */
		ck_assert_uint_gt(last.result.nr_left, 0);
		ck_assert(has_id(fsck(false), "PF0301"));
	}
}
END_TEST

/* Of three users each pair is named, in part only where they share only a part, also what no file has. */
START_TEST(block_three_times)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct pf_extent a;
	char lost[64];
	begin();
	extent_get(p, in.big, 0, bytes, &a);
	a.flags = PF_EXTENT_NO_CSUM;
	a.crc = NULL;
	a.nr = 10;
	a.addr[0] += 100;
	extent_put(p, in.dir, 7, &a); /* a directory has no data */
	a.addr[0] += 5;
	extent_put(p, in.deep, 1000, &a);
	end();
	const struct found *f = fsck(false);
	snprintf(lost, sizeof(lost), " and by data %ju, which no file has", (uintmax_t)in.dir);
	ck_both_named(f, ", 10 in a row: by /big from block 0", lost);
	ck_both_named(f, ", 10 in a row: by /big from block 0", " from block 1000");
	ck_both_named(f, ", 5 in a row: by ", " from block 1000");
	unsigned nr = 0;
	for (unsigned i = 0; i < f->nr; i++)
		nr += !strcmp(f->ids[i], "PF0301");
	ck_assert_uint_eq(nr, 3);
}
END_TEST

START_TEST(tables_damaged)
{
	static const char *const ids[] = { "PF0302", "PF0303", "PF0304" };
	begin();
	pf_addr places[3];
	poke_table_places(p, (unsigned)_i / 3, 0, places);
	poke_flip(p, places[_i % 3], 100, 2);
	end();
	ck_repaired(ids[_i % 3]);
}
END_TEST

/* The address of the first block of a file. */
static pf_addr first_block(uint64_t ino)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct pf_extent extent;
	extent_get(p, ino, 0, bytes, &extent);
	return extent.addr[0];
}

START_TEST(block_free)
{
	begin();
	pf_addr addr = first_block(in.big);
	poke_map_bit(p, pf_addr_member(addr), pf_addr_block(addr), false);
	end();
	ck_repaired("PF0305");
}
END_TEST

START_TEST(block_leaked)
{
	begin();
	pf_addr addr = first_block(in.big);
	poke_map_bit(p, pf_addr_member(addr), poke_geo(p, pf_addr_member(addr))->data_end - 5, true);
	end();
	ck_repaired("PF0306");
}
END_TEST

START_TEST(free_count)
{
	begin();
	unsigned member = pf_addr_member(first_block(in.big));
	struct pf_disk_group g = poke_group(p, member, 0);
	if (_i == 0)
		g.free_blocks = pf_le16((uint16_t)(pf_get16(g.free_blocks) - 2));
	else /* fewer, or more than there can be */
		g.free_quads = pf_le16((uint16_t)(_i == 1 ? pf_get16(g.free_quads) - 1 : 0xffff));
	poke_set_group(p, member, 0, &g);
	end();
	ck_repaired("PF0307");
}
END_TEST

/* A table that says of a used group that it was never used. */
START_TEST(group_not_initialised)
{
	begin();
	unsigned member = pf_addr_member(first_block(in.big));
	struct pf_disk_group g = { 0 };
	const struct pf_geometry *geo = poke_geo(p, member);
	g.free_blocks = pf_le16((uint16_t)(geo->data_end - geo->data_start));
	g.free_quads = pf_le16((uint16_t)(geo->data_end / 4 - (geo->data_start + 3) / 4));
	poke_set_group(p, member, 0, &g);
	end();
	ck_repaired("PF0305");
}
END_TEST

/* Where deleted data stays marked, a repair of one map leaves the marks in it; lost tables are made anew from the tree. */
START_TEST(without_reclamation)
{
	char why[1200] = "";
	setup_populated_version(3, 2);
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	ck_ok(unlink_name(PF_ROOT_INO, "file"));
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	ck_ids(fsck(false), "");
	begin();
	pf_addr addr = first_block(in.big);
	unsigned member = pf_addr_member(addr);
	uint64_t nr_free = pf_get16(poke_group(p, member, 0).free_blocks);
	poke_map_bit(p, member, pf_addr_block(addr), false);
	end();
	ck_ids(fsck(false), "PF0305");
	ck_assert_uint_eq(fsck(true)->result.nr_left, 0);
	begin();
	ck_assert_uint_eq(pf_get16(poke_group(p, member, 0).free_blocks), nr_free);
	pf_addr places[3];
	poke_table_places(p, member, 0, places);
	poke_flip(p, places[_i], 100, 1);
	end();
	ck_repaired(_i == 0 ? "PF0302" : _i == 1 ? "PF0303" : "PF0304");
	teardown_world();
}
END_TEST

/* With a node missing nobody knows what the blocks marked hold, so they stay marked. */
START_TEST(damaged_tree_keeps_blocks_marked)
{
	begin();
	pf_addr addr = first_block(in.big);
	pf_addr leaf = poke_leaf(p, pf_key_extent(in.big, 7 * 256));
	ck_assert_uint_ne(leaf, poke_leaf(p, pf_key_extent(in.big, 0)));
	poke_map_bit(p, pf_addr_member(addr), pf_addr_block(addr), false);
	poke_flip(p, leaf, 9000, 0);
	end();
	ck_ids(fsck(false), "PF0201 PF0305");
	fsck(true);
	ck_ids(fsck(false), "PF0201");
	begin();
	struct pf_disk_group g = poke_group(p, pf_addr_member(addr), 0);
	end();
	ck_assert_uint_lt(pf_get16(g.free_blocks), 8192 - 8 * 256);
}
END_TEST

/* -- data (PF06xx) ----------------------------------------------------------------------------------------------- */
START_TEST(data_damaged)
{
	struct pf_check_options options = { .check_data = true };
	ck_ids(fsck_with(options), "");
	begin();
	poke_flip(p, first_block(in.deep) + 1, 77, 7);
	end();
	ck_ids(fsck(false), "");
	const struct found *f = fsck_with(options);
	ck_ids(f, "PF0601");
	ck_assert_msg(strstr(f->messages[0], "/dir/sub/deep, offset 4096") ||
			      strstr(f->messages[0], "/hard, offset 4096"),
		      "%s", f->messages[0]);
	ck_assert_uint_eq(f->result.nr_left, 1);
}
END_TEST

static void setup_five(void)
{
	setup_populated_version(5, 2);
}

static void setup_one_member(void)
{
	setup_populated_version(PF_VERSION_DEFAULT, 1);
}

int main(void)
{
	Suite *s = suite_create("check_tree");
	const struct {
		const char *name;
		const TTest *test;
		int loops;
	} cases[] = {
		{ "members", super_damaged, 8 },       { "members", super_of_another, 3 },
		{ "members", super_missing, 1 },       { "members", super_differs, 1 },
		{ "members", super_unreadable, 1 },    { "members", member_stale, 1 },
		{ "tree", item_unknown, 6 },           { "tree", inode_invalid, 4 },
		{ "tree", inode_invalid_by_type, 2 },  { "tree", symlink_invalid, 4 },
		{ "tree", xattr_invalid, 4 },          { "tree", xattr_flag, 1 },
		{ "tree", item_unowned, 1 },           { "tree", extent_invalid, 5 },
		{ "tree", extent_overlap, 1 },         { "tree", extent_beyond_end, 1 },
		{ "tree", orphan_invalid, 4 },         { "space", block_twice, 3 },
		{ "space", block_three_times, 1 },
		{ "space", tables_damaged, 6 },        { "space", block_free, 1 },
		{ "space", block_leaked, 1 },          { "space", free_count, 3 },
		{ "space", group_not_initialised, 1 }, { "data", data_damaged, 1 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TCase *t = tcase_create(cases[i].name);
		tcase_add_checked_fixture(t, setup_populated, teardown_world);
		tcase_set_timeout(t, 30);
		tcase_add_loop_test(t, cases[i].test, 0, cases[i].loops);
		suite_add_tcase(s, t);
	}
	/* there nodes have one copy; two: test_check_copies */
	const struct {
		const char *name;
		void (*setup)(void);
	} single[] = { { "version 5", setup_five }, { "one member", setup_one_member } };
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		TCase *t = tcase_create(single[i].name);
		tcase_add_checked_fixture(t, single[i].setup, teardown_world);
		tcase_set_timeout(t, 30);
		tcase_add_loop_test(t, node_damaged, 0, 2);
		tcase_add_test(t, node_address);
		tcase_add_test(t, damaged_tree_keeps_blocks_marked);
		suite_add_tcase(s, t);
	}
	TCase *t = tcase_create("older versions");
	tcase_add_test(t, extent_with_unknown_checksums);
	tcase_add_loop_test(t, without_reclamation, 0, 3);
	suite_add_tcase(s, t);
	return run_suite(s);
}
