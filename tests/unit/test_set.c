/* SPDX-License-Identifier: MIT
 * Pools that open: any order, what a crash leaves, damaged copies; and what a set does then. */
#include "member/scan.h"
#include "set_util.h"

#include <fcntl.h>
#include <unistd.h>

/* -- good pools ----------------------------------------------------------------------------------------------------- */
START_TEST(any_order)
{
	static const char *const orders[] = { "012", "021", "102", "120", "201", "210" };
	for (unsigned i = 0; i < 6; i++)
		check_opens(orders[i]);
	struct pf_set *set;
	must_open(world, "201", 0, &set);
	ck_assert(set->read_only);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation);
	ck_assert_uint_lt(set->members[0].super_generation, cur.generation);
	pf_set_close(set);
	must_open(world, "R2R0R1", PF_SET_UNLOCKED, &set);
	pf_set_close(set);
}
END_TEST

START_TEST(after_a_crash_between_superblocks)
{
	/* new epoch on one metadata member only */
	new_epoch(102);
	checkpoint(world, 0, 4);
	check_opens("012");
	check_opens("210");
	/* a checkpoint that changed all tables, of whose superblocks one came through */
	checkpoint(world, 7, 2);
	check_opens("012");
	check_opens("210");
	struct pf_set *set;
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[1].super_generation, cur.generation);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation - 1);
	pf_set_close(set);
	/* roots of the next checkpoint written, no superblock: the roots named are in the other slots */
	struct pf_super committed = cur;
	cur.generation++;
	for (unsigned id = 0; id < NR; id++)
		write_root(simworld_disk(world, id), id);
	cur = committed;
	check_opens("102");
}
END_TEST

START_TEST(data_members_lag_behind)
{
	for (unsigned i = 0; i < 40; i++) {
		if (i % 2 == 0)
			new_epoch(200 + i); /* more mounts than the list of epochs is long */
		checkpoint(world, 6, 6);
	}
	check_opens("012");
}
END_TEST

START_TEST(a_grown_file)
{
	simdisk_resize(simworld_disk(world, 1), (sizes[1] + 1000) * BLOCK);
	check_opens("012");
	/* ring A torn: ring B is where the end was, which another slot of ring A still says */
	struct pf_geometry geo = geometry(1);
	simdisk_flip_bit(simworld_disk(world, 1), pf_geometry_super_block(&geo, 0, cur.generation % 8) * BLOCK + 200,
			 1);
	struct pf_set *set;
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[1].super_generation, cur.generation);
	pf_set_close(set);
}
END_TEST

/* -- damaged copies ------------------------------------------------------------------------------------------------- */
static void damage(unsigned id, unsigned ring, unsigned slot)
{
	struct pf_geometry geo = geometry(id);
	memset(block, 0x5a, 512); /* a torn sector */
	simdisk_poke(simworld_disk(world, id), pf_geometry_super_block(&geo, ring, slot) * BLOCK + 1024, block, 512);
}

START_TEST(torn_superblocks)
{
	unsigned slot = cur.generation % 8;
	struct pf_set *set;
	damage(2, 0, slot); /* the copy in ring B counts */
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation);
	ck_assert_ptr_nonnull(strstr(logged, "c.img: 1 damaged superblock"));
	pf_set_close(set);
	damage(2, 1, slot); /* the other metadata member has the newest */
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation - 1);
	pf_set_close(set);
	check_opens("210");
}
END_TEST

START_TEST(torn_on_all_members)
{
	/* power failed while the superblocks of a generation were written: the one before counts, and its roots are there */
	struct pf_super before = cur;
	checkpoint(world, 7, 7);
	for (unsigned id = 0; id < NR; id++) {
		damage(id, 0, cur.generation % 8);
		damage(id, 1, cur.generation % 8);
	}
	cur = before;
	check_opens("120");
}
END_TEST

START_TEST(whole_ring_damaged)
{
	for (unsigned slot = 0; slot < 8; slot++)
		damage(1, 0, slot);
	check_opens("012");
	memset(block, 0, 64 * BLOCK);
	for (unsigned i = 0; i < 3; i++) /* the first MiB overwritten, all of ring A and the table root too */
		simdisk_poke(simworld_disk(world, 1), i * 64 * BLOCK, block, 64 * BLOCK);
	check_opens("012");
	for (unsigned slot = 0; slot < 8; slot++)
		damage(2, 1, slot);
	check_opens("012");
}
END_TEST

START_TEST(unreadable_superblocks)
{
	struct pf_set *set;
	struct pf_geometry geo = geometry(2);
	uint64_t at = pf_geometry_super_block(&geo, 0, cur.generation % 8) * BLOCK;
	struct sim_fault slot = {
		.disk = simworld_disk(world, 2), .ops = SIM_READ, .from_bytes = at, .to_bytes = at + BLOCK
	};
	simworld_add_fault(world, &slot);
	must_open(world, "012", 0, &set);
	ck_assert_uint_eq(set->members[2].super_generation, cur.generation);
	pf_set_close(set);
	struct sim_fault all = { .disk = simworld_disk(world, 2), .ops = SIM_READ };
	simworld_add_fault(world, &all);
	REFUSED(world, "012", 0, -EIO, "c.img: its superblocks cannot be read", "cable");
	struct pf_super super;
	struct pf_io *io = simdisk_open(simworld_disk(world, 2), true);
	ck_assert_int_eq(pf_set_read_super(io, &super, NULL), -EIO);
	pf_io_close(io);
}
END_TEST

START_TEST(no_good_superblock_at_all)
{
	for (unsigned slot = 0; slot < 8; slot++) {
		damage(0, 0, slot);
		damage(0, 1, slot);
	}
	REFUSED(world, "012", PF_SET_WRITE, -PF_ESB_CSUM, "a.img: a poolfs member",
		"all copies of its superblock are damaged", "fsck.poolfs");
	struct pf_super super;
	unsigned nr_bad;
	struct pf_io *io = simdisk_open(simworld_disk(world, 0), true);
	ck_assert_int_eq(pf_set_read_super(io, &super, &nr_bad), -PF_ESB_CSUM);
	pf_io_close(io);

	/* fsck knows it by its group table */
	struct pf_set *set;
	must_open(world, "012", PF_SET_WRITE | PF_SET_REPAIR, &set);
	ck_assert_uint_eq(set->members[0].super_generation, 0);
	ck_assert(!set->members[0].stale);
	ck_assert_ptr_nonnull(strstr(logged, "a.img: has no good superblock"));
	/* and restores it */
	ck_assert_int_eq(pf_set_write_super(set, &set->super, 1, NULL), 0);
	pf_set_close(set);
	check_opens("012");

	/* but takes no stranger for it */
	simdisk_new(world, "d.img", sizes[0] * BLOCK);
	struct simworld *copy = simworld_copy(world);
	REFUSED(copy, "312", PF_SET_REPAIR, -PF_EMEMBER_NONE, "d.img: not a poolfs member");
	simworld_free(copy);
}
END_TEST

START_TEST(misplaced_superblocks_do_not_count)
{
	/* a superblock of a higher generation that was written into the wrong slot */
	struct pf_geometry geo = geometry(2);
	cur.generation += 5;
	pf_super_pack(&cur, 2, block);
	cur.generation -= 5;
	simdisk_poke(simworld_disk(world, 2), pf_geometry_super_block(&geo, 0, cur.generation % 8) * BLOCK, block,
		     BLOCK);
	struct pf_super super;
	unsigned nr_bad;
	struct pf_io *io = simdisk_open(simworld_disk(world, 2), true);
	ck_assert_int_eq(pf_set_read_super(io, &super, &nr_bad), 0);
	ck_assert_uint_eq(super.generation, cur.generation);
	ck_assert_uint_eq(nr_bad, 1);
	pf_io_close(io);

	/* a whole disk whose last partition is a member: its end ring is at the end of the disk too */
	struct simworld *w = simworld_new();
	struct simdisk *disk = simdisk_new(w, "disk", (sizes[2] + 512) * BLOCK);
	for (uint64_t b = 0; b < sizes[2]; b += 3) {
		simdisk_peek(simworld_disk(world, 2), b * BLOCK, block, 3 * BLOCK);
		simdisk_poke(disk, (512 + b) * BLOCK, block, 3 * BLOCK);
	}
	io = simdisk_open(disk, true);
	ck_assert_int_eq(pf_set_read_super(io, &super, NULL), -PF_EMEMBER_NONE);
	pf_io_close(io);
	simworld_free(w);
}
END_TEST

/* -- using a set ---------------------------------------------------------------------------------------------------- */
START_TEST(writing_superblocks)
{
	struct pf_set *set;
	uint32_t failed = 99;
	must_open(world, "012", PF_SET_WRITE, &set);
	struct pf_super super = set->super;
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 7, &failed), 0);
	ck_assert_uint_eq(failed, 0);
	ck_assert_uint_eq(set->members[0].super_generation, super.generation);
	ck_assert_uint_eq(simdisk_count(simworld_disk(world, 0), SIM_WRITE), 2);

	/* flushed are those that were written, once */
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 2, &failed), 0);
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), 0);
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), 0);
	for (unsigned id = 0; id < NR; id++)
		ck_assert_uint_eq(simdisk_count(simworld_disk(world, id), SIM_FLUSH), 1);
	ck_assert_int_eq(pf_set_write_super(set, &super, 4, &failed), 0);
	ck_assert_int_eq(pf_set_flush(set, 3, NULL), 0);
	ck_assert_uint_eq(simdisk_count(simworld_disk(world, 2), SIM_FLUSH), 1);

	/* one ring fails: good enough; both fail: the member does */
	struct sim_fault one = { .disk = simworld_disk(world, 1), .ops = SIM_WRITE, .count = 1 };
	simworld_add_fault(world, &one);
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 7, &failed), 0);
	ck_assert_uint_eq(failed, 0);
	ck_assert_ptr_nonnull(strstr(logged, "b.img: the first copy of the superblock could not be written"));
	struct sim_fault all = { .disk = simworld_disk(world, 1), .ops = SIM_WRITE, .err = -ENOSPC };
	simworld_add_fault(world, &all);
	super.generation++;
	ck_assert_int_eq(pf_set_write_super(set, &super, 7, &failed), -ENOSPC);
	ck_assert_uint_eq(failed, 2);
	ck_assert_uint_eq(set->members[1].super_generation, super.generation - 1);
	simworld_clear_faults(world);

	struct sim_fault no_flush = { .disk = simworld_disk(world, 2), .ops = SIM_FLUSH, .count = 1 };
	simworld_add_fault(world, &no_flush);
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), -EIO);
	ck_assert_uint_eq(failed, 4);
	/* what a failed flush left is never taken for durable, though nothing was written since */
	ck_assert_int_eq(pf_set_flush(set, 7, &failed), -EIO);
	ck_assert_uint_eq(failed, 4);
	pf_set_close(set);
	cur.generation = super.generation;
	must_open(world, "012", 0, &set);
	pf_set_close(set);
}
END_TEST

START_TEST(blocks_by_address)
{
	struct pf_set *set;
	must_open(world, "012", PF_SET_WRITE, &set);
	const struct pf_geometry *geo = &set->members[2].geo;
	pf_addr a = pf_addr_make(2, geo->data_start);
	memset(block, 0x42, 2 * BLOCK);
	ck_assert_int_eq(pf_set_write(set, a, block, 2), 0);
	memset(block, 0, 2 * BLOCK);
	ck_assert_int_eq(pf_set_read(set, a, block, 2), 0);
	ck_assert_int_eq(block[2 * BLOCK - 1], 0x42);
	uint8_t byte;
	simdisk_peek(simworld_disk(world, 2), geo->data_start * BLOCK, &byte, 1);
	ck_assert_int_eq(byte, 0x42);

	struct pf_aio_req req;
	pf_set_req(set, &req, PF_AIO_READ, a, block, 2);
	ck_assert_uint_eq(req.off_bytes, geo->data_start * BLOCK);
	ck_assert_uint_eq(req.len_bytes, 2 * BLOCK);
	ck_assert_int_eq(pf_aio_run(set->aio, &req, 1), 0);

	ck_assert(pf_set_addr_valid(set, a, 1));
	ck_assert(pf_set_addr_valid(set, a, geo->data_end - geo->data_start));
	ck_assert(!pf_set_addr_valid(set, a, geo->data_end - geo->data_start + 1));
	ck_assert(!pf_set_addr_valid(set, a, UINT64_MAX));
	ck_assert(!pf_set_addr_valid(set, a - 1, 1));
	ck_assert(!pf_set_addr_valid(set, pf_addr_make(3, geo->data_start), 1));
	ck_assert(!pf_set_addr_valid(set, a | UINT64_C(1) << 52, 1));
	ck_assert(!pf_set_addr_valid(set, 0, 1));
	ck_assert_int_eq(pf_set_read(set, pf_addr_make(3, geo->data_start), block, 1), -EIO);
	ck_assert_int_eq(pf_set_read(set, pf_addr_make(2, sizes[2]), block, 1), -EIO);
	ck_assert_int_eq(pf_set_write(set, pf_addr_make(2, sizes[2] - 1), block, 2), -EIO);
	ck_assert_int_eq(pf_set_read(set, UINT64_MAX, block, 1), -EIO);
	pf_set_close(set);
}
END_TEST

START_TEST(new_sets)
{
	struct pf_set *set;
	struct pf_io *ios[NR];
	simworld_open(world, false, ios);
	ck_assert_int_eq(pf_set_new(ios, NR, &env, &set), 0);
	ck_assert_uint_eq(set->nr, NR);
	ck_assert_uint_eq(set->members[2].geo.size_blocks, sizes[2]);
	ck_assert_uint_eq(set->members[2].geo.log_blocks, pf_geometry_log_blocks(sizes[2]));
	ck_assert(!set->read_only);
	pf_set_close(set);
	simdisk_resize(simworld_disk(world, 1), 4095 * BLOCK);
	simworld_open(world, false, ios);
	ck_assert_int_eq(pf_set_new(ios, NR, &env, &set), -PF_EMEMBER_SMALL);
	ck_assert_ptr_null(set);
	pf_set_close(NULL);
}
END_TEST

/* -- by paths ------------------------------------------------------------------------------------------------------- */
static char dir[] = "/tmp/test_set.XXXXXX";
static char paths[NR][64];

static void save_pool(void)
{
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	for (unsigned i = 0; i < NR; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s/%u.img", dir, i);
		ck_assert_int_eq(simdisk_save(simworld_disk(world, i), paths[i]), 0);
	}
}

static void remove_pool(void)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

static int open_paths(const char *a, const char *b, const char *c, unsigned flags, struct pf_set **set)
{
	memset(&diag, 0, sizeof(diag));
	return pf_set_open((const char *const[]){ a, b, c }, NR, flags, 0, &env, set, &diag);
}

START_TEST(by_paths)
{
	struct pf_set *set, *second;
	save_pool();
	ck_assert_msg(open_paths(paths[2], paths[0], paths[1], PF_SET_WRITE, &set) == 0, "%s", diag.text);
	ck_assert_str_eq(set->members[1].io->name, paths[1]);
	ck_assert_int_eq(open_paths(paths[2], paths[0], paths[1], PF_SET_WRITE, &second), -PF_EMEMBER_BUSY);
	ck_assert_int_eq(open_paths(paths[2], paths[0], paths[1], 0, &second), -PF_EMEMBER_BUSY);
	ck_assert_ptr_nonnull(strstr(diag.text, "in use"));
	ck_assert_int_eq(open_paths(paths[2], paths[0], paths[1], PF_SET_UNLOCKED, &second), 0);
	pf_set_close(second);
	pf_set_close(set);
	ck_assert_int_eq(open_paths(paths[0], paths[1], paths[2], PF_SET_WRITE, &set), 0);
	pf_set_close(set);

	/* one file under two names */
	char other[80];
	snprintf(other, sizeof(other), "%s/link", dir);
	ck_assert_int_eq(symlink(paths[0], other), 0);
	ck_assert_int_eq(open_paths(paths[0], paths[1], other, PF_SET_WRITE, &set), -PF_EMEMBER_TWICE);
	ck_assert_ptr_nonnull(strstr(diag.text, "are the same file or device; name each member once"));
	snprintf(other, sizeof(other), "%s/none", dir);
	ck_assert_int_eq(open_paths(paths[0], paths[1], other, 0, &set), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "no such member"));
	ck_assert_ptr_null(set);
	ck_assert_int_eq(pf_set_open(NULL, 0, 0, 0, &env, &set, NULL), -EINVAL);
	/* the locks of the members that were opened before the refusal are gone */
	ck_assert_int_eq(open_paths(paths[0], paths[1], paths[2], PF_SET_WRITE, &set), 0);
	pf_set_close(set);
	remove_pool();
}
END_TEST

START_TEST(scanning)
{
	struct pf_scan_entry entry;
	struct pf_scan_list list = { 0 };
	char other[80];
	save_pool();
	ck_assert_int_eq(pf_scan_path(paths[1], &env, &entry, &diag), 0);
	ck_assert_mem_eq(entry.pool_uuid, cur.pool_uuid, 16);
	ck_assert_mem_eq(entry.member_uuid, cur.members[1].uuid, 16);
	ck_assert_str_eq(entry.label, "sample");
	ck_assert_uint_eq(entry.member_id, 1);
	ck_assert_uint_eq(entry.nr_members, NR);
	ck_assert_uint_eq(entry.generation, cur.generation);
	ck_assert_uint_eq(entry.version, 5);
	ck_assert_uint_eq(entry.size_bytes, sizes[1] * BLOCK + 100);
	ck_assert(entry.usable);

	/* a locked member can be looked at */
	struct pf_set *set;
	ck_assert_int_eq(open_paths(paths[0], paths[1], paths[2], PF_SET_WRITE, &set), 0);
	ck_assert_int_eq(pf_scan_path(paths[1], &env, &entry, &diag), 0);
	pf_set_close(set);

	/* among other things, and another pool */
	snprintf(other, sizeof(other), "%s/x.bin", dir);
	int fd = open(other, O_CREAT | O_RDWR, 0600);
	ck_assert_int_eq(ftruncate(fd, 32 << 20), 0);
	close(fd);
	ck_assert_int_eq(pf_scan_path(other, &env, &entry, &diag), -PF_EMEMBER_NONE);
	ck_assert_ptr_nonnull(strstr(diag.text, other));
	snprintf(other, sizeof(other), "%s/folder", dir);
	ck_assert_int_eq(symlink(dir, other), 0);
	snprintf(other, sizeof(other), "%s/z.img", dir);
	struct pf_super mine = cur;
	struct simworld *foreign = make_pool(0xb6);
	ck_assert_int_eq(simdisk_save(simworld_disk(foreign, 0), other), 0);
	simworld_free(foreign);
	ck_assert_int_eq(pf_scan_dir(dir, mine.pool_uuid, &env, &list, &diag), 0);
	ck_assert_uint_eq(list.nr, NR);
	for (unsigned i = 0; i < NR; i++) {
		ck_assert_str_eq(list.entries[i].path, paths[i]);
		ck_assert_uint_eq(list.entries[i].member_id, i);
	}
	pf_scan_free(&list);
	ck_assert_uint_eq(list.nr, 0);
	ck_assert_int_eq(pf_scan_dir(dir, NULL, &env, &list, NULL), 0);
	ck_assert_uint_eq(list.nr, NR + 1);
	ck_assert_str_eq(list.entries[NR].path, other);
	pf_scan_free(&list);

	memset(&diag, 0, sizeof(diag));
	snprintf(other, sizeof(other), "%s/none", dir);
	ck_assert_int_eq(pf_scan_dir(other, NULL, &env, &list, &diag), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot be searched"));
	/* no device has this pool; none may be harmed, hang, or make it fail */
	ck_assert_int_eq(pf_scan_devices(mine.pool_uuid, &env, &list, &diag), 0);
	ck_assert_uint_eq(list.nr, 0);
	pf_scan_free(&list);
	remove_pool();
}
END_TEST

START_TEST(only_readable)
{
	const char *const some[] = { "/nonexistent", paths[0], paths[1], paths[2] };
	memset(&diag, 0, sizeof(diag));
	save_pool();
	ck_assert(!pf_scan_only_readable(some, 4, &env, &diag));
	ck_assert_str_eq(diag.text, "");
	remove_pool();
	cur.features.ro_compat |= UINT64_C(1) << 33;
	checkpoint(world, 0, 4);
	save_pool();
	ck_assert(!pf_scan_only_readable(some, 3, &env, &diag));
	ck_assert(pf_scan_only_readable(some, 4, &env, &diag));
	ck_assert_ptr_nonnull(strstr(diag.text, paths[2]));
	ck_assert_ptr_nonnull(strstr(diag.text, "ro-compat bit 33"));
	remove_pool();
	/* that it cannot even be read is for opening it to say */
	cur.features.incompat |= UINT64_C(1) << 40;
	checkpoint(world, 0, 4);
	save_pool();
	ck_assert(!pf_scan_only_readable(some, 4, &env, &diag));
	remove_pool();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("set");
	TCase *tc = add_case(s, "good");
	tcase_add_test(tc, any_order);
	tcase_add_test(tc, after_a_crash_between_superblocks);
	tcase_add_test(tc, data_members_lag_behind);
	tcase_add_test(tc, a_grown_file);
	tc = add_case(s, "damaged");
	tcase_add_test(tc, torn_superblocks);
	tcase_add_test(tc, torn_on_all_members);
	tcase_add_test(tc, whole_ring_damaged);
	tcase_add_test(tc, unreadable_superblocks);
	tcase_add_test(tc, no_good_superblock_at_all);
	tcase_add_test(tc, misplaced_superblocks_do_not_count);
	tc = add_case(s, "used");
	tcase_add_test(tc, writing_superblocks);
	tcase_add_test(tc, blocks_by_address);
	tcase_add_test(tc, new_sets);
	tcase_add_test(tc, by_paths);
	tcase_add_test(tc, scanning);
	tcase_add_test(tc, only_readable);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
