/* SPDX-License-Identifier: MIT
 * fsck on pools that are in order: it finds nothing, in every version, and changes nothing. */
#include "unit/check_items.h"

START_TEST(fresh_pool_is_clean)
{
	unsigned version = PF_VERSION_FIRST + (unsigned)_i / 2;
	char why[1200] = "";
	setup_with(version, 1 + (unsigned)_i % 2, 32 * MIB);
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	ck_ids(fsck(false), "");
	ck_assert_uint_eq(last.result.nr_inodes, 1);
	ck_assert_uint_eq(last.result.nr_directories, 1);
	teardown_world();
}
END_TEST

START_TEST(populated_pool_is_clean)
{
	unsigned version = PF_VERSION_FIRST + (unsigned)_i / 3;
	setup_populated_version(version, 1 + (unsigned)_i % 3);
	ck_ids(fsck(false), "");
	ck_assert_uint_eq(last.result.nr_inodes, 109);
	ck_assert_uint_eq(last.result.nr_directories, 3);
	ck_assert_uint_gt(last.result.nr_extents, 11);
	teardown_world();
}
END_TEST

START_TEST(looking_changes_nothing)
{
	uint64_t before[2], after[2];
	for (unsigned i = 0; i < 2; i++)
		before[i] = simdisk_digest(simworld_disk(sp->world, i));
	ck_ids(fsck(false), "");
	ck_ids(fsck(true), "");
	for (unsigned i = 0; i < 2; i++) {
		after[i] = simdisk_digest(simworld_disk(sp->world, i));
		ck_assert_uint_eq(before[i], after[i]);
	}
}
END_TEST

/* Deleted data stays marked for ever without reclamation: no problem there, and none after the upgrade. */
START_TEST(deleted_data_is_clean)
{
	char why[1200] = "";
	setup_populated_version(PF_VERSION_FIRST + (unsigned)_i, 2);
	ck_assert_msg(!simpool_open(sp, false, why, sizeof(why)), "open: %s", why);
	ck_ok(unlink_name(PF_ROOT_INO, "big"));
	ck_ok(unlink_name(PF_ROOT_INO, "hard"));
	settle();
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	ck_ids(fsck(false), "");
	teardown_world();
}
END_TEST

/* Unlinked but open, when the power goes. */
START_TEST(orphans_are_clean)
{
	char why[1200] = "";
	ck_assert_msg(!simpool_open(sp, false, why, sizeof(why)), "open: %s", why);
	ck_assert_uint_ne(look(PF_ROOT_INO, "big"), 0);
	ck_ok(unlink_name(PF_ROOT_INO, "big"));
	ck_ok(pf_pool_sync(POOL));
	simpool_abandon(sp);
	ck_ids(fsck(false), "");
	ck_assert_uint_gt(last.result.nr_orphans, 0);
}
END_TEST

/* Cut to nothing, a file's data goes on under another number. */
START_TEST(rewritten_files_are_clean)
{
	char why[1200] = "";
	uint64_t files[] = { in.deep, in.big, in.file };
	ck_assert_msg(!simpool_open(sp, false, why, sizeof(why)), "open: %s", why);
	for (unsigned i = 0; i < 3; i++) {
		ck_ok(truncate_to(files[i], 0));
		put_pattern(files[i], 0, 20000);
	}
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	ck_ids(fsck(false), "");
}
END_TEST

/* Its table root is longer than a block. */
START_TEST(huge_member_is_clean)
{
	char why[1200] = "";
	setup_with(PF_VERSION_DEFAULT, 1, UINT64_C(2) << 40);
	put_pattern(make_file(PF_ROOT_INO, "file"), 0, MIB);
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	ck_ids(fsck(false), "");
	struct poke *p = poke_open(sp->world);
	const struct pf_geometry *geo = poke_geo(p, 0);
	ck_assert_uint_gt(geo->root_blocks, 1);
	uint64_t at = geo->root_block + poke_super(p)->members[0].root_slot * geo->root_blocks + 1;
	poke_flip(p, pf_addr_make(0, at), 3000, 1);
	free(p);
	ck_repaired("PF0302");
	teardown_world();
}
END_TEST

static bool stop_at_once(void *arg, const char *pass, uint64_t done, uint64_t total)
{
	(void)pass;
	(void)done;
	(void)total;
	++*(unsigned *)arg;
	return false;
}

START_TEST(progress_can_stop_it)
{
	struct pf_io *ios[2];
	unsigned calls = 0;
	struct pf_check_options options = { 0 };
	struct pf_check_sink sink = { .progress = stop_at_once, .arg = &calls };
	struct pf_check_result result;
	struct pf_diag diag = { 0 };
	simworld_open(sp->world, true, ios);
	ck_assert_int_eq(pf_check(ios, 2, &options, &sp->env.env, &sink, &result, &diag), -EINTR);
	ck_assert_uint_eq(calls, 1);
}
END_TEST

START_TEST(missing_member_is_an_error)
{
	struct pf_io *ios[2];
	struct pf_check_options options = { 0 };
	struct pf_check_sink sink = { 0 };
	struct pf_check_result result;
	struct pf_diag diag = { 0 };
	simworld_open(sp->world, true, ios);
	pf_io_close(ios[1]);
	ck_assert_int_eq(pf_check(ios, 1, &options, &sp->env.env, &sink, &result, &diag), -PF_EMEMBER_MISSING);
	ck_assert(diag.text[0] != 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("check");
	TCase *t = tcase_create("versions");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, fresh_pool_is_clean, 0, 2 * PF_VERSION_NEWEST);
	tcase_add_loop_test(t, populated_pool_is_clean, 0, 3 * PF_VERSION_NEWEST);
	tcase_add_loop_test(t, deleted_data_is_clean, 0, PF_VERSION_NEWEST);
	tcase_add_test(t, huge_member_is_clean);
	suite_add_tcase(s, t);
	t = tcase_create("populated");
	tcase_add_checked_fixture(t, setup_populated, teardown_world);
	tcase_add_test(t, looking_changes_nothing);
	tcase_add_test(t, orphans_are_clean);
	tcase_add_test(t, rewritten_files_are_clean);
	tcase_add_test(t, progress_can_stop_it);
	tcase_add_test(t, missing_member_is_an_error);
	suite_add_tcase(s, t);
	return run_suite(s);
}
