/* SPDX-License-Identifier: MIT
 * fsck, PF04xx and PF05xx: each problem is made by changing one thing in the tree, found by its id, repaired, and gone. */
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

/* -- names (PF04xx) ---------------------------------------------------------------------------------------------- */
START_TEST(root_missing)
{
	struct pf_inode_item item;
	begin();
	item = inode_get(p, PF_ROOT_INO);
	item.mode = S_IFREG | 0644;
	item.data_id = PF_ROOT_INO;
	inode_put(p, PF_ROOT_INO, &item);
	end();
	const struct found *f = fsck(false);
	ck_assert_int_eq(f->err, 0);
	ck_assert(has_id(f, "PF0401"));
	ck_assert_int_eq(fsck(true)->err, 0);
	ck_assert_uint_gt(last.result.nr_left, 0);
}
END_TEST

/* A slash, the name "..", and an item that is cut short. */
START_TEST(name_invalid)
{
	begin();
	struct name_found *n = name_get(p, in.sub, in.deep);
	n->item.name = _i == 0 ? "a/b" : "..";
	n->item.name_len = _i == 0 ? 3 : 2;
	if (_i < 2)
		name_put(p, n->key, &n->item);
	else
		poke_put(p, n->key, n->bytes, 10);
	end();
	const struct found *f = fsck(false);
	ck_assert(has_id(f, "PF0402"));
	f = fsck(true);
	ck_assert_int_eq(f->err, 0);
	ck_assert_msg(!f->result.nr_left, "left of:%s", all_messages(f));
	ck_ids(fsck(false), "");
}
END_TEST

START_TEST(name_target)
{
	begin();
	struct name_found *n = name_get(p, in.dir, in.link);
	n->item.ino = 100000;
	name_put(p, n->key, &n->item);
	hash_put(p, n->hash_key, 100000, pf_key_offset(n->key), n->item.dtype);
	end();
	/* what it led to has no name any more, and comes to lost+found */
	ck_repaired("PF0403 PF0414");
	char why[1200] = "";
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	uint64_t lost = look(PF_ROOT_INO, "lost+found");
	char name[32];
	snprintf(name, sizeof(name), "#%ju", (uintmax_t)in.link);
	ck_assert_uint_ne(lost, 0);
	ck_assert_uint_eq(look(lost, name), in.link);
}
END_TEST

START_TEST(name_type)
{
	begin();
	struct name_found *n = name_get(p, in.dir, in.link);
	n->item.dtype = DT_FIFO;
	name_put(p, n->key, &n->item);
	hash_put(p, n->hash_key, n->item.ino, pf_key_offset(n->key), DT_FIFO);
	end();
	ck_repaired("PF0404");
}
END_TEST

START_TEST(name_twice)
{
	begin();
	struct name_found *n = name_get(p, in.dir, in.link);
	struct pf_inode_item dir = inode_get(p, in.dir), link = inode_get(p, in.link);
	uint64_t cookie = dir.next_cookie++;
	dir.size++;
	link.nlink++;
	inode_put(p, in.dir, &dir);
	inode_put(p, in.link, &link);
	n->item.hash_offset++;
	name_put(p, pf_key_make(PF_CLASS_DIR, in.dir, PF_TYPE_NAME, cookie), &n->item);
	hash_put(p, pf_key_make(PF_CLASS_DIR, in.dir, PF_TYPE_HASH, n->item.hash_offset), in.link, cookie,
		 n->item.dtype);
	end();
	ck_ids(fsck(false), "PF0405");
	const struct found *f = fsck(true);
	ck_assert_uint_eq(f->result.nr_left, 0);
	ck_ids(fsck(false), "");
}
END_TEST

START_TEST(name_no_hash)
{
	begin();
	poke_del(p, name_get(p, in.sub, in.deep)->hash_key);
	end();
	ck_repaired("PF0406");
	char why[1200] = "";
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	ck_assert_uint_eq(look(in.sub, "deep"), in.deep);
}
END_TEST

START_TEST(hash_wrong)
{
	begin();
	struct name_found *n = name_get(p, in.sub, in.deep);
	if (_i == 0) {
		hash_put(p, n->hash_key, in.file, pf_key_offset(n->key), n->item.dtype);
	} else { /* where nobody looks for it */
		poke_del(p, n->hash_key);
		n->item.hash_offset = (n->item.hash_offset + 1000) & PF_KEY_FIELD_MAX;
		name_put(p, n->key, &n->item);
		hash_put(p, pf_key_make(PF_CLASS_DIR, in.sub, PF_TYPE_HASH, n->item.hash_offset), n->item.ino,
			 pf_key_offset(n->key), n->item.dtype);
	}
	end();
	ck_repaired("PF0407");
	char why[1200] = "";
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	ck_assert_uint_eq(look(in.sub, "deep"), in.deep);
}
END_TEST

START_TEST(hash_dangling)
{
	begin();
	if (_i == 0)
		hash_put(p, pf_key_make(PF_CLASS_DIR, in.sub, PF_TYPE_HASH, 12345), in.deep, 77777, DT_REG);
	else
		poke_put(p, pf_key_make(PF_CLASS_DIR, in.sub, PF_TYPE_HASH, 12345), "short", 5);
	end();
	ck_repaired("PF0408");
}
END_TEST

START_TEST(name_not_in_dir)
{
	begin();
	struct name_found *n = name_get(p, in.sub, in.deep);
	uint64_t in_what = _i ? in.file : 100000;
	name_put(p, pf_key_make(PF_CLASS_DIR, in_what, PF_TYPE_NAME, 3), &n->item);
	hash_put(p, pf_key_make(PF_CLASS_DIR, in_what, PF_TYPE_HASH, n->item.hash_offset), in.deep, 3, DT_REG);
	end();
	ck_repaired("PF0409");
}
END_TEST

START_TEST(next_cookie)
{
	begin();
	struct pf_inode_item dir = inode_get(p, in.sub);
	dir.next_cookie = 10;
	inode_put(p, in.sub, &dir);
	end();
	ck_repaired("PF0410");
}
END_TEST

START_TEST(dir_parent)
{
	begin();
	struct pf_inode_item dir = inode_get(p, in.sub);
	dir.parent = PF_ROOT_INO;
	inode_put(p, in.sub, &dir);
	end();
	ck_repaired("PF0411");
}
END_TEST

/* The name item and hash item of something, added to @dir as @name. */
static void add_name(uint64_t dir, const char *name, uint64_t ino, unsigned dtype)
{
	struct pf_inode_item item = inode_get(p, dir);
	uint64_t cookie = item.next_cookie++;
	uint64_t hash = pf_hash64(poke_super(p)->hash_seed, name, strlen(name)) >> 8;
	struct pf_name_item entry = { ino, hash, dtype, name, (unsigned)strlen(name) };
	item.size++;
	if (dtype == DT_DIR)
		item.nlink++;
	inode_put(p, dir, &item);
	name_put(p, pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_NAME, cookie), &entry);
	hash_put(p, pf_key_make(PF_CLASS_DIR, dir, PF_TYPE_HASH, hash), ino, cookie, dtype);
}

static void remove_name(uint64_t dir, uint64_t ino)
{
	struct pf_inode_item item = inode_get(p, dir);
	struct name_found *n = name_get(p, dir, ino);
	poke_del(p, n->key);
	poke_del(p, n->hash_key);
	item.size--;
	if (n->item.dtype == DT_DIR)
		item.nlink--;
	inode_put(p, dir, &item);
}

START_TEST(dir_two_names)
{
	begin();
	add_name(_i ? in.sub : PF_ROOT_INO, "again", _i ? PF_ROOT_INO : in.sub, DT_DIR);
	end();
	ck_repaired("PF0412");
	char why[1200] = "";
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	ck_assert_uint_eq(look(in.dir, "sub"), in.sub);
	ck_assert_uint_eq(look(PF_ROOT_INO, "again"), 0);
}
END_TEST

/* dir lies in sub, which lies in dir: both are cut off from the root. */
START_TEST(dir_loop)
{
	begin();
	remove_name(PF_ROOT_INO, in.dir);
	add_name(in.sub, "loop", in.dir, DT_DIR);
	struct pf_inode_item item = inode_get(p, in.dir);
	item.parent = in.sub;
	inode_put(p, in.dir, &item);
	end();
	ck_ids(fsck(false), "PF0413");
	const struct found *f = fsck(true);
	ck_assert_msg(!f->result.nr_left, "left of:%s", all_messages(f));
	ck_ids(fsck(false), "");
	char why[1200] = "", name[32];
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	uint64_t lost = look(PF_ROOT_INO, "lost+found");
	snprintf(name, sizeof(name), "#%ju", (uintmax_t)in.dir);
	uint64_t found = look(lost, name);
	snprintf(name, sizeof(name), "#%ju", (uintmax_t)in.sub);
	ck_assert(found || look(lost, name));
}
END_TEST

START_TEST(inode_no_name)
{
	begin();
	remove_name(_i ? in.dir : PF_ROOT_INO, _i ? in.sub : in.big);
	end();
	ck_repaired("PF0414");
	char why[1200] = "", name[32];
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	uint64_t lost = look(PF_ROOT_INO, "lost+found");
	snprintf(name, sizeof(name), "#%ju", (uintmax_t)(_i ? in.sub : in.big));
	ck_assert_uint_eq(look(lost, name), _i ? in.sub : in.big);
	ck_assert_uint_eq(attr_of(in.big).size_bytes, 8 * MIB);
}
END_TEST

/* -- counts (PF05xx) --------------------------------------------------------------------------------------------- */
START_TEST(nlink)
{
	begin();
	uint64_t ino = _i == 0 ? in.deep : _i == 1 ? in.dir : PF_ROOT_INO;
	struct pf_inode_item item = inode_get(p, ino);
	item.nlink += 5;
	inode_put(p, ino, &item);
	end();
	ck_repaired("PF0501");
}
END_TEST

START_TEST(nlink_zero_but_named)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.deep);
	item.nlink = 0;
	inode_put(p, in.deep, &item);
	end();
	ck_repaired("PF0501");
	char why[1200] = "";
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	ck_assert_uint_eq(attr_of(in.deep).nlink, 2);
}
END_TEST

START_TEST(dir_size)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.sub);
	item.size--;
	inode_put(p, in.sub, &item);
	end();
	ck_repaired("PF0502");
}
END_TEST

START_TEST(blocks)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.big);
	item.blocks += 7;
	inode_put(p, in.big, &item);
	end();
	ck_repaired("PF0503");
}
END_TEST

START_TEST(orphan_stale)
{
	begin();
	poke_put(p, pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_INODE, _i ? in.deep : 100000), "", 0);
	if (!_i) /* the number of an inode that was never made is too high as well */
		poke_super(p)->counters.next_id = 200000;
	end();
	ck_repaired("PF0504");
}
END_TEST

/* Unlinked, without being listed: listed it is taken away by the next mount. */
START_TEST(orphan_missing)
{
	begin();
	remove_name(PF_ROOT_INO, in.big);
	struct pf_inode_item item = inode_get(p, in.big);
	item.nlink = 0;
	inode_put(p, in.big, &item);
	end();
	const struct found *f = fsck(false);
	ck_assert(has_id(f, "PF0505"));
	f = fsck(true);
	ck_assert_msg(!f->result.nr_left, "left of:%s", all_messages(f));
	ck_ids(fsck(false), "");
	char why[1200] = "";
	struct pf_attr a;
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	ck_assert_int_eq(pf_getattr(POOL, in.big, &a), -ESTALE);
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	ck_ids(fsck(false), "");
}
END_TEST

/* The inode of a file is gone, its data is still there. */
START_TEST(data_unowned)
{
	char why[1200] = "";
	begin();
	remove_name(PF_ROOT_INO, in.big);
	poke_del(p, pf_key_inode(in.big));
	poke_super(p)->counters.nr_inodes--;
	end();
	ck_repaired("PF0506");
	/* the reaper has taken it */
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	settle();
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	ck_ids(fsck(false), "");
	ck_assert_uint_lt(last.result.data_blocks, 8 * MIB / PF_BLOCK_SIZE);
}
END_TEST

START_TEST(data_id_shared)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.sparse);
	item.data_id = in.big;
	inode_put(p, in.sparse, &item);
	end();
	const struct found *f = fsck(false);
	ck_assert(has_id(f, "PF0507"));
	ck_assert_int_eq(fsck(true)->err, 0);
	ck_assert_uint_gt(last.result.nr_left, 0);
}
END_TEST

START_TEST(counters)
{
	static const char *const ids[] = { "PF0508", "PF0509", "PF0510", "PF0511", "PF0513", "PF0512" };
	begin();
	struct pf_counters *c = &poke_super(p)->counters;
	uint64_t *fields[] = { &c->nr_inodes, &c->data_blocks, &c->orphan_blocks, &c->node_blocks, &c->no_csum_blocks };
	if (_i < 5)
		*fields[_i] += 3;
	else
		c->next_id = 5;
	end();
	ck_repaired(ids[_i]);
}
END_TEST

/* -- several at once --------------------------------------------------------------------------------------------- */
START_TEST(declined_repairs_stay)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.sub);
	item.size--;
	inode_put(p, in.sub, &item);
	end();
	/* the sink of a run that may not write says yes all the same */
	ck_ids(fsck(false), "PF0502");
	ck_assert_uint_eq(last.result.nr_left, 1);
	ck_assert_uint_eq(last.result.nr_repaired, 0);
	ck_ids(fsck(false), "PF0502");
}
END_TEST

START_TEST(only_safe_repairs)
{
	begin();
	remove_name(PF_ROOT_INO, in.big); /* lost+found: a decision */
	struct pf_inode_item item = inode_get(p, in.sub);
	item.size--;
	inode_put(p, in.sub, &item);
	end();
	only_safe = true;
	const struct found *f = fsck(true);
	only_safe = false;
	ck_assert_int_eq(f->err, 0);
	ck_ids(f, "PF0414 PF0502");
	ck_assert_uint_eq(f->result.nr_problems, 2);
	ck_assert_uint_eq(f->result.nr_left, 1);
	ck_assert_uint_eq(f->result.nr_repaired, 1);
	ck_ids(fsck(false), "PF0414");
}
END_TEST

/* Ranges that overlap and touch; the extent lies across two of them. */
START_TEST(ranges_together_cover_data)
{
	static const uint64_t bounds[][2] = { { 0, 300 }, { 200, 700 }, { 700, 1100 }, { 1000, 4096 } };
	begin();
	remove_name(PF_ROOT_INO, in.big);
	poke_del(p, pf_key_inode(in.big));
	for (unsigned i = 0; i < 4; i++) {
		struct pf_orphan_range range = { in.big, 0, bounds[i][0], bounds[i][1] };
		struct pf_disk_orphan_range disk;
		pf_orphan_range_pack(&range, &disk);
		poke_put(p, pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_RANGE, 10 + i), &disk, sizeof(disk));
	}
	poke_super(p)->counters.nr_inodes--;
	poke_super(p)->counters.orphan_blocks = 8 * 256;
	end();
	ck_ids(fsck(false), "");
}
END_TEST

/* More than fit into any table that is made at first. */
START_TEST(hundreds)
{
	begin();
	struct pf_key key = pf_key_make(PF_CLASS_DIR, in.sub, PF_TYPE_NAME, 0);
	while (poke_next(p, PF_CLASS_DIR, &key) && pf_key_object(key) == in.sub) {
		uint8_t bytes[512];
		struct pf_name_item name;
		int len = poke_get(p, key, bytes, sizeof(bytes));
		ck_ok(pf_name_item_unpack(bytes, (unsigned)len, &name));
		struct pf_inode_item item = inode_get(p, name.ino);
		item.nlink += 3;
		item.blocks += 4;
		inode_put(p, name.ino, &item);
		key.lo++;
	}
	end();
	ck_repaired("PF0501 PF0503");
}
END_TEST

/* A file in lost+found bears the name that another inode is to get. */
START_TEST(name_in_lost_found_is_taken)
{
	char why[1200] = "", name[32];
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	uint64_t lost = make_dir(PF_ROOT_INO, "lost+found");
	snprintf(name, sizeof(name), "#%ju", (uintmax_t)in.big);
	make_file(lost, name);
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	begin();
	remove_name(PF_ROOT_INO, in.big);
	end();
	ck_repaired("PF0414");
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	strcat(name, "~");
	ck_assert_uint_eq(look(lost, name), in.big);
}
END_TEST

START_TEST(many_at_once)
{
	begin();
	struct pf_inode_item item = inode_get(p, in.sub);
	item.size += 9;
	item.nlink++;
	inode_put(p, in.sub, &item);
	poke_del(p, name_get(p, in.sub, in.deep)->hash_key);
	hash_put(p, pf_key_make(PF_CLASS_DIR, in.dir, PF_TYPE_HASH, 1), in.deep, 5000, DT_REG);
	remove_name(PF_ROOT_INO, in.file);
	poke_super(p)->counters.nr_inodes = 1;
	poke_super(p)->counters.next_id = 2;
	end();
	const struct found *f = fsck(true);
	ck_assert_int_eq(f->err, 0);
	ck_assert_msg(!f->result.nr_left, "left of:%s", all_messages(f));
	ck_ids(fsck(false), "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("check_names");
	TCase *t = tcase_create("names");
	tcase_add_checked_fixture(t, setup_populated, teardown_world);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, root_missing);
	tcase_add_loop_test(t, name_invalid, 0, 3);
	tcase_add_test(t, name_target);
	tcase_add_test(t, name_type);
	tcase_add_test(t, name_twice);
	tcase_add_test(t, name_no_hash);
	tcase_add_loop_test(t, hash_wrong, 0, 2);
	tcase_add_loop_test(t, hash_dangling, 0, 2);
	tcase_add_loop_test(t, name_not_in_dir, 0, 2);
	tcase_add_test(t, next_cookie);
	tcase_add_test(t, dir_parent);
	tcase_add_loop_test(t, dir_two_names, 0, 2);
	tcase_add_test(t, dir_loop);
	tcase_add_loop_test(t, inode_no_name, 0, 2);
	suite_add_tcase(s, t);
	t = tcase_create("counts");
	tcase_add_checked_fixture(t, setup_populated, teardown_world);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, nlink, 0, 3);
	tcase_add_test(t, nlink_zero_but_named);
	tcase_add_test(t, dir_size);
	tcase_add_test(t, blocks);
	tcase_add_loop_test(t, orphan_stale, 0, 2);
	tcase_add_test(t, orphan_missing);
	tcase_add_test(t, data_unowned);
	tcase_add_test(t, data_id_shared);
	tcase_add_loop_test(t, counters, 0, 6);
	tcase_add_test(t, declined_repairs_stay);
	tcase_add_test(t, only_safe_repairs);
	tcase_add_test(t, ranges_together_cover_data);
	tcase_add_test(t, many_at_once);
	tcase_add_test(t, hundreds);
	tcase_add_test(t, name_in_lost_found_is_taken);
	suite_add_tcase(s, t);
	return run_suite(s);
}
