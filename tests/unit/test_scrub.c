/* SPDX-License-Identifier: MIT
 * Scrub: reads everything, and says exactly what is damaged and whose it is. */
#include "unit/check_items.h"

#include "pool/pool_int.h"

#include <time.h>

#define MAX_ERRORS 4096u

struct scrub_found {
	unsigned nr;
	struct {
		char path[512], member[64];
		bool is_data;
		uint64_t ino, file_off, member_off;
		int err;
	} errors[MAX_ERRORS];
	unsigned nr_progress;
	uint64_t done, total;
	bool stop;
};
static struct scrub_found found;
static struct pf_scrub_result result;

static void on_error(void *arg, const struct pf_scrub_error *e)
{
	struct scrub_found *f = arg;
	ck_assert_uint_lt(f->nr, MAX_ERRORS);
	snprintf(f->errors[f->nr].path, sizeof(f->errors[0].path), "%s", e->path ? e->path : "");
	snprintf(f->errors[f->nr].member, sizeof(f->errors[0].member), "%s", e->member);
	f->errors[f->nr].is_data = e->path != NULL;
	f->errors[f->nr].ino = e->ino;
	f->errors[f->nr].file_off = e->file_off_bytes;
	f->errors[f->nr].member_off = e->member_off_bytes;
	f->errors[f->nr].err = e->err;
	f->nr++;
}

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	struct scrub_found *f = arg;
	f->nr_progress++;
	ck_assert_uint_le(f->done, done);
	ck_assert_uint_le(done, total);
	f->done = done;
	f->total = total;
	return !f->stop;
}

static int scrub_with(struct pf_scrub_options options)
{
	char why[1200] = "";
	struct pf_scrub_sink sink = { .error = on_error, .progress = on_progress, .arg = &found };
	bool stop = found.stop;
	memset(&found, 0, sizeof(found));
	found.stop = stop;
	ck_assert_msg(!simpool_open(sp, !options.fill_in, why, sizeof(why)), "open: %s", why);
	int err = pf_scrub(POOL, &options, &sink, &result);
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	return err;
}

static void scrub(void)
{
	struct pf_scrub_options options = { 0 };
	ck_ok(scrub_with(options));
}

/* Where block @block of a file lies. */
static pf_addr block_of(uint64_t data_id, uint64_t block)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct poke *p = poke_open(sp->world);
	struct pf_extent extent = { .nr = 0 };
	struct pf_key key = pf_key_extent(data_id, 0);
	while (poke_next(p, PF_CLASS_EXTENT, &key) && pf_key_object(key) == data_id) {
		int len = poke_get(p, key, bytes, sizeof(bytes));
		ck_ok(pf_extent_unpack(key, bytes, (unsigned)len, &extent));
		if (extent.start <= block && block < extent.start + extent.nr) {
			free(p);
			return extent.addr[0] + (block - extent.start);
		}
		key.lo++;
	}
	ck_abort_msg("no block %ju of %ju", (uintmax_t)block, (uintmax_t)data_id);
}

static struct simdisk *disk_of(pf_addr addr)
{
	return simworld_disk(sp->world, pf_addr_member(addr));
}

static void flip(pf_addr addr, unsigned byte)
{
	simdisk_flip_bit(disk_of(addr), pf_addr_block(addr) * PF_BLOCK_SIZE + byte, byte % 8);
}

/* The damage of a block of data is among what was found. */
static void ck_hit(const char *path, uint64_t ino, uint64_t block, pf_addr addr, int err)
{
	char name[16];
	snprintf(name, sizeof(name), "member%u", pf_addr_member(addr));
	for (unsigned i = 0; i < found.nr; i++) {
		if (!found.errors[i].is_data || found.errors[i].file_off != block * PF_BLOCK_SIZE ||
		    found.errors[i].ino != ino)
			continue;
		ck_assert_str_eq(found.errors[i].path, path);
		ck_assert_str_eq(found.errors[i].member, name);
		ck_assert_uint_eq(found.errors[i].member_off, pf_addr_block(addr) * PF_BLOCK_SIZE);
		ck_assert_int_eq(found.errors[i].err, err);
		return;
	}
	ck_abort_msg("block %ju of %s is not among %u errors", (uintmax_t)block, path, found.nr);
}

/* -- whole pools ------------------------------------------------------------------------------------------------- */
START_TEST(clean_in_all_versions)
{
	unsigned version = PF_VERSION_FIRST + (unsigned)_i / 2;
	setup_populated_version(version, 1 + (unsigned)_i % 2);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 0);
	ck_assert_uint_eq(found.nr, 0);
	ck_assert_uint_gt(result.data_bytes, 11 * MIB);
	ck_assert_uint_gt(result.metadata_bytes, 64 * KIB);
	ck_assert_uint_eq(result.unverified_bytes, version < 5 ? result.data_bytes : 0);
	ck_assert_uint_eq(found.done, found.total);
	teardown_world();
}
END_TEST

START_TEST(one_bit)
{
	static const unsigned bytes[] = { 0, 1, 2047, 4095 };
	pf_addr addr = block_of(in.big, 777);
	flip(addr, bytes[_i]);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_assert_uint_eq(result.nr_damaged_files, 1);
	ck_hit("/big", in.big, 777, addr, -PF_EDATA_CSUM);
}
END_TEST

START_TEST(several_files)
{
	pf_addr deep = block_of(in.deep, 1), big = block_of(in.big, 0), last_block = block_of(in.file, 768);
	flip(deep, 5);
	flip(big, 5);
	flip(big + 1, 5);
	flip(last_block, 4000); /* behind the end of the file, in its last block */
	scrub();
	ck_assert_uint_eq(result.nr_errors, 4);
	ck_assert_uint_eq(result.nr_damaged_files, 3);
	ck_hit("/big", in.big, 0, big, -PF_EDATA_CSUM);
	ck_hit("/big", in.big, 1, big + 1, -PF_EDATA_CSUM);
	ck_hit("/file", in.file, 768, last_block, -PF_EDATA_CSUM);
	/* of two names, the one in the directory with the lower number */
	ck_hit("/hard", in.deep, 1, deep, -PF_EDATA_CSUM);
}
END_TEST

START_TEST(path_through_directories)
{
	char why[1200] = "";
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	ck_ok(unlink_name(PF_ROOT_INO, "hard"));
	ck_ok(rename_name(PF_ROOT_INO, "dir", PF_ROOT_INO, "renamed", 0));
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	pf_addr deep = block_of(in.deep, 0);
	flip(deep, 5);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_hit("/renamed/sub/deep", in.deep, 0, deep, -PF_EDATA_CSUM);
}
END_TEST

/* The data id of a file that was cut to nothing is another than its number. */
START_TEST(rewritten_file)
{
	char why[1200] = "";
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	ck_ok(truncate_to(in.big, 0));
	put_pattern(in.big, 0, 100 * KIB);
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	struct poke *p = poke_open(sp->world);
	uint64_t data_id = inode_get(p, in.big).data_id;
	free(p);
	ck_assert_uint_ne(data_id, in.big);
	pf_addr addr = block_of(data_id, 3);
	flip(addr, 9);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_hit("/big", in.big, 3, addr, -PF_EDATA_CSUM);
}
END_TEST

/* Unlinked, but still open when the power went. */
START_TEST(file_without_name)
{
	char why[1200] = "";
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	ck_assert_uint_ne(look(PF_ROOT_INO, "big"), 0);
	ck_ok(unlink_name(PF_ROOT_INO, "big"));
	ck_ok(pf_pool_sync(POOL));
	simpool_abandon(sp);
	pf_addr addr = block_of(in.big, 3);
	flip(addr, 9);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_hit("?", in.big, 3, addr, -PF_EDATA_CSUM);
}
END_TEST

/* In an unreadable stretch exactly the blocks in it are damaged, and their neighbours are verified. */
START_TEST(unreadable_blocks)
{
	pf_addr addr = block_of(in.big, 600), before = block_of(in.big, 599);
	ck_assert_uint_eq(before + 1, addr);
	struct sim_fault fault = {
		.disk = disk_of(addr),
		.ops = SIM_READ,
		.from_bytes = pf_addr_block(addr) * PF_BLOCK_SIZE,
		.to_bytes = (pf_addr_block(addr) + 2) * PF_BLOCK_SIZE,
	};
	simworld_add_fault(sp->world, &fault);
	flip(before, 3);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 3);
	ck_hit("/big", in.big, 599, before, -PF_EDATA_CSUM);
	ck_hit("/big", in.big, 600, addr, -EIO);
	ck_hit("/big", in.big, 601, addr + 1, -EIO);
}
END_TEST

START_TEST(whole_file)
{
	for (uint64_t block = 0; block < 8 * 256; block += 2)
		flip(block_of(in.big, block), 100);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 1024);
	ck_assert_uint_eq(result.nr_damaged_files, 1);
	for (uint64_t block = 0; block < 8 * 256; block += 2)
		ck_hit("/big", in.big, block, block_of(in.big, block), -PF_EDATA_CSUM);
}
END_TEST

/* -- metadata ---------------------------------------------------------------------------------------------------- */
START_TEST(metadata)
{
	struct poke *p = poke_open(sp->world);
	pf_addr places[3], addr;
	poke_table_places(p, 0, 0, places);
	uint64_t slot = pf_geometry_super_block(poke_geo(p, 0), 1, 2);
	if (_i < 3)
		addr = places[_i];
	else if (_i == 3)
		addr = poke_leaf(p, pf_key_inode(in.file));
	else
		addr = pf_addr_make(0, slot);
	poke_flip(p, addr, 500, 1);
	free(p);
	struct pf_scrub_options options = { 0 };
	/* as fsck opens it: a damaged table or map keeps it from nothing */
	struct pf_io *ios[2];
	struct pf_set *set;
	struct pf_pool *pool;
	struct pf_diag diag = { 0 };
	struct pf_pool_options open = { .read_only = true, .no_recovery = true };
	struct pf_scrub_sink sink = { .error = on_error, .progress = on_progress, .arg = &found };
	memset(&found, 0, sizeof(found));
	simworld_open(sp->world, true, ios);
	int err = pf_set_open_ios(ios, 2, PF_SET_REPAIR, &sp->env.env, &set, &diag);
	if (!err)
		err = pf_pool_start(set, &open, true, &pool, &diag);
	ck_assert_msg(!err, "open: %s", diag.text);
	ck_ok(pf_scrub(pool, &options, &sink, &result));
	pf_pool_abandon(pool);
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_assert(!found.errors[0].is_data);
	ck_assert_uint_eq(found.errors[0].member_off, pf_addr_block(addr) * PF_BLOCK_SIZE);
	ck_assert_str_eq(found.errors[0].member, "member0");
	ck_assert(pf_is_damage(found.errors[0].err));
}
END_TEST

/* A leaf that is read well once or twice, and then not: no extent of it goes by in silence. */
START_TEST(leaf_that_goes_bad)
{
	struct poke *p = poke_open(sp->world);
	pf_addr leaf = poke_leaf(p, pf_key_extent(in.big, 1024));
	free(p);
	struct sim_fault fault = {
		.disk = disk_of(leaf),
		.ops = SIM_READ,
		.from_bytes = pf_addr_block(leaf) * PF_BLOCK_SIZE,
		.to_bytes = (pf_addr_block(leaf) + 4) * PF_BLOCK_SIZE,
		.skip = (uint64_t)_i,
	};
	simworld_add_fault(sp->world, &fault);
	scrub();
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_assert(!found.errors[0].is_data);
	ck_assert_uint_eq(found.errors[0].member_off, pf_addr_block(leaf) * PF_BLOCK_SIZE);
	ck_assert_int_eq(found.errors[0].err, -EIO);
}
END_TEST

/* -- the rest ---------------------------------------------------------------------------------------------------- */
START_TEST(progress_stops_it)
{
	struct pf_scrub_options options = { 0 };
	found.stop = true;
	ck_assert_int_eq(scrub_with(options), -EINTR);
	found.stop = false;
	ck_assert_uint_eq(found.nr_progress, 1);
}
END_TEST

START_TEST(rate_is_kept)
{
	struct pf_scrub_options options = { .rate_bytes_s = 20 << 20 };
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	ck_ok(scrub_with(options));
	clock_gettime(CLOCK_MONOTONIC, &b);
	double seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
	/* members are read at the same time: at least half of the data is on one */
	ck_assert_double_gt(seconds, (double)result.data_bytes / 2 / (20 << 20) * 0.9);
}
END_TEST

/* A pool of version 4 becomes one of version 5; its data has no checksums until a scrub fills them in. */
START_TEST(fill_in)
{
	char why[1200] = "";
	struct pf_diag diag = { 0 };
	struct pf_scrub_options look_only = { 0 }, fill = { .fill_in = true };
	setup_populated_version(4, 2);
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	int err = pf_pool_upgrade(POOL, 5, &diag);
	ck_assert_msg(!err, "upgrade: %s", diag.text);
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	ck_ok(scrub_with(look_only));
	uint64_t bytes = result.unverified_bytes;
	ck_assert_uint_gt(bytes, 11 * MIB);

	ck_ok(scrub_with(fill));
	ck_assert_uint_eq(result.filled_in_bytes, bytes);
	ck_assert_uint_eq(result.unverified_bytes, 0);
	ck_assert_uint_eq(result.nr_errors, 0);
	ck_assert_uint_eq(found.done, found.total);
	ck_ids(fsck(false), "");

	ck_ok(scrub_with(look_only));
	ck_assert_uint_eq(result.unverified_bytes, 0);
	ck_assert_uint_eq(result.data_bytes, bytes);
	pf_addr addr = block_of(in.big, 5);
	flip(addr, 17);
	ck_ok(scrub_with(look_only));
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_hit("/big", in.big, 5, addr, -PF_EDATA_CSUM);
	teardown_world();
}
END_TEST

/* What cannot be read gets no checksum, and is told. */
START_TEST(fill_in_unreadable)
{
	char why[1200] = "";
	struct pf_diag diag = { 0 };
	struct pf_scrub_options fill = { .fill_in = true };
	setup_populated_version(4, 2);
	ck_assert(!simpool_open(sp, false, why, sizeof(why)));
	ck_ok(pf_pool_upgrade(POOL, 5, &diag));
	ck_assert(!simpool_close(sp, why, sizeof(why)));
	pf_addr addr = block_of(in.big, 5);
	struct sim_fault fault = {
		.disk = disk_of(addr),
		.ops = SIM_READ,
		.from_bytes = pf_addr_block(addr) * PF_BLOCK_SIZE,
		.to_bytes = (pf_addr_block(addr) + 1) * PF_BLOCK_SIZE,
	};
	simworld_add_fault(sp->world, &fault);
	ck_ok(scrub_with(fill));
	ck_assert_uint_eq(result.nr_errors, 1);
	ck_hit("/big", in.big, 5, addr, -EIO);
	ck_assert_uint_gt(result.unverified_bytes, 0);
	simworld_clear_faults(sp->world);
	ck_ok(scrub_with(fill));
	ck_assert_uint_eq(result.nr_errors, 0);
	ck_assert_uint_gt(result.filled_in_bytes, 0);
	ck_ids(fsck(false), "");
	teardown_world();
}
END_TEST

START_TEST(fill_in_needs_writing)
{
	char why[1200] = "";
	struct pf_scrub_options fill = { .fill_in = true };
	struct pf_scrub_sink sink = { 0 };
	ck_assert(!simpool_open(sp, true, why, sizeof(why)));
	ck_assert_int_eq(pf_scrub(POOL, &fill, &sink, &result), -EROFS);
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
	Suite *s = suite_create("scrub");
	TCase *t = tcase_create("versions");
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, clean_in_all_versions, 0, 2 * PF_VERSION_NEWEST);
	tcase_add_test(t, fill_in);
	tcase_add_test(t, fill_in_unreadable);
	suite_add_tcase(s, t);
	t = tcase_create("populated");
	tcase_add_checked_fixture(t, setup_populated, teardown_world);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, one_bit, 0, 4);
	tcase_add_test(t, several_files);
	tcase_add_test(t, path_through_directories);
	tcase_add_test(t, rewritten_file);
	tcase_add_test(t, file_without_name);
	tcase_add_test(t, unreadable_blocks);
	tcase_add_test(t, whole_file);
	tcase_add_loop_test(t, metadata, 0, 5);
	tcase_add_test(t, progress_stops_it);
	tcase_add_test(t, rate_is_kept);
	tcase_add_test(t, fill_in_needs_writing);
	suite_add_tcase(s, t);
	/* there nodes have one copy; two: test_check_copies */
	void (*const single[])(void) = { setup_five, setup_one_member };
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		t = tcase_create(i ? "one member" : "version 5");
		tcase_add_checked_fixture(t, single[i], teardown_world);
		tcase_set_timeout(t, 30);
		tcase_add_loop_test(t, leaf_that_goes_bad, 0, 3);
		suite_add_tcase(s, t);
	}
	return run_suite(s);
}
