/* SPDX-License-Identifier: MIT
 * Where things lie on a member: areas do not overlap, nothing overflows, sizes of every kind. */
#include "base/error.h"
#include "ondisk/geometry.h"

#include <check.h>
#include <stdlib.h>

static struct pf_geometry geo;

/* Each area begins where the one before ends, and all lie inside the member. */
static void check_areas(uint64_t size_blocks)
{
	uint32_t log_blocks = pf_geometry_log_blocks(size_blocks);
	ck_assert_int_eq(pf_geometry_init(&geo, size_blocks, log_blocks), 0);
	ck_assert_uint_eq(geo.size_blocks, size_blocks);
	ck_assert_uint_eq(geo.root_block, 16 + 128);
	ck_assert_uint_eq(geo.tables_block, geo.root_block + 2 * geo.root_blocks);
	ck_assert_uint_eq(geo.maps_block, geo.tables_block + 2 * geo.nr_tables);
	ck_assert_uint_eq(geo.log_block, geo.maps_block + 2 * geo.nr_groups);
	ck_assert_uint_eq(geo.data_start, geo.log_block + geo.log_blocks);
	ck_assert_uint_lt(geo.data_start, geo.data_end);
	ck_assert_uint_eq(geo.data_end, geo.backup_block);
	ck_assert_uint_eq(geo.backup_block + 128, size_blocks);

	/* what must be named can be named */
	ck_assert_uint_ge(geo.nr_groups * PF_GROUP_BLOCKS, size_blocks);
	ck_assert_uint_lt((geo.nr_groups - 1) * PF_GROUP_BLOCKS, size_blocks);
	ck_assert_uint_ge(geo.nr_tables * PF_GROUPS_PER_TABLE, geo.nr_groups);
	ck_assert_uint_ge(geo.root_blocks * PF_TABLE_REFS_PER_BLOCK, geo.nr_tables);
	ck_assert_uint_le(geo.nr_groups, UINT32_MAX);

	for (unsigned slot = 0; slot < PF_SUPER_SLOTS; slot++) {
		ck_assert_uint_eq(pf_geometry_super_block(&geo, 0, slot), 16 + 16 * slot);
		ck_assert_uint_eq(pf_geometry_super_block(&geo, 1, slot), size_blocks - 128 + 16 * slot);
		ck_assert_uint_lt(pf_geometry_super_block(&geo, 0, slot), geo.root_block);
		ck_assert_uint_lt(pf_geometry_super_block(&geo, 1, slot), size_blocks);
	}
}

START_TEST(smallest)
{
	check_areas(4096); /* 16 MiB */
	ck_assert_uint_eq(geo.nr_groups, 1);
	ck_assert_uint_eq(geo.nr_tables, 1);
	ck_assert_uint_eq(geo.root_blocks, 1);
	ck_assert_uint_eq(geo.log_blocks, 256);
	ck_assert_uint_eq(geo.data_start, 144 + 2 + 2 + 2 + 256);
	ck_assert_uint_eq(geo.data_end, 4096 - 128);
	ck_assert_int_eq(pf_geometry_init(&geo, 4095, 256), -PF_EMEMBER_SMALL);
	ck_assert_int_eq(pf_geometry_init(&geo, 0, 256), -PF_EMEMBER_SMALL);
}
END_TEST

START_TEST(odd_sizes)
{
	for (uint64_t size = 4096; size < UINT64_C(1) << 22; size += 4099)
		check_areas(size);
	/* around every border of a group and of a table block */
	for (uint64_t groups = 1; groups < 400; groups++) {
		for (int64_t d = -2; d <= 2; d++)
			check_areas(groups * PF_GROUP_BLOCKS + (uint64_t)d);
	}
	for (uint64_t tables = 1; tables < 400; tables += 3) {
		for (int64_t d = -1; d <= 1; d++)
			check_areas((tables * PF_GROUPS_PER_TABLE * PF_GROUP_BLOCKS) + (uint64_t)d);
	}
}
END_TEST

START_TEST(huge)
{
	check_areas(UINT64_C(1) << 36); /* 256 TiB */
	ck_assert_uint_eq(geo.nr_groups, UINT64_C(1) << 22);
	ck_assert_uint_eq(geo.nr_tables, ((UINT64_C(1) << 22) + 125) / 126);
	ck_assert_uint_eq(geo.root_blocks, (geo.nr_tables + 167) / 168);
	ck_assert_uint_eq(geo.log_blocks, 16384);
	/* maps and tables cost less than 0.02 % */
	ck_assert_uint_lt(geo.data_start, geo.size_blocks / 5000);
	check_areas(PF_MAX_MEMBER_BLOCKS);
	ck_assert_int_eq(pf_geometry_init(&geo, PF_MAX_MEMBER_BLOCKS + 1, 16384), -PF_ESB_INVALID);
	ck_assert_int_eq(pf_geometry_init(&geo, UINT64_MAX, 16384), -PF_ESB_INVALID);
}
END_TEST

START_TEST(log_ring)
{
	ck_assert_uint_eq(pf_geometry_log_blocks(0), 256);
	ck_assert_uint_eq(pf_geometry_log_blocks(256 * 64), 256);
	ck_assert_uint_eq(pf_geometry_log_blocks(257 * 64), 257);
	ck_assert_uint_eq(pf_geometry_log_blocks(16384 * 64), 16384);
	ck_assert_uint_eq(pf_geometry_log_blocks(UINT64_MAX), 16384);

	/* a ring that leaves room for one node, and one block more */
	ck_assert_int_eq(pf_geometry_init(&geo, 4096, 4096 - 128 - 150 - 4), 0);
	ck_assert_int_eq(pf_geometry_init(&geo, 4096, 4096 - 128 - 150 - 3), -PF_ESB_INVALID);
	ck_assert_int_eq(pf_geometry_init(&geo, 4096, UINT32_MAX), -PF_ESB_INVALID);
	ck_assert_int_eq(pf_geometry_init(&geo, 4096, 0), 0);
}
END_TEST

START_TEST(share)
{
	/* small: 2 + 1 MiB, but never more than a quarter of the data space */
	check_areas(4096);
	ck_assert_uint_eq(pf_geometry_share_blocks(4096, &geo), 768);
	check_areas(16384);
	ck_assert_uint_eq(pf_geometry_share_blocks(16384, &geo), 768);
	ck_assert_int_eq(pf_geometry_init(&geo, 4096, 2000), 0);
	ck_assert_uint_eq(pf_geometry_share_blocks(4096, &geo), (geo.data_end - geo.data_start) / 4);

	/* 1 TiB: 0.6 % and 0.1 %, which stops at 256 MiB */
	uint64_t tib = UINT64_C(1) << 28;
	check_areas(tib);
	ck_assert_uint_eq(pf_geometry_share_blocks(tib, &geo), tib / 1000 * 6 + tib % 1000 * 6 / 1000 + 65536);
	uint64_t gib16 = UINT64_C(1) << 22;
	ck_assert_uint_eq(pf_geometry_share_blocks(gib16, &geo), gib16 * 6 / 1000 + gib16 / 1000);

	/* a small fast member in a pool of 32 huge ones: a quarter, no overflow */
	check_areas(UINT64_C(1) << 18);
	ck_assert_uint_eq(pf_geometry_share_blocks(32 * PF_MAX_MEMBER_BLOCKS, &geo),
			  (geo.data_end - geo.data_start) / 4);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("geometry");
	TCase *tc = tcase_create("geometry");
	tcase_add_test(tc, smallest);
	tcase_add_test(tc, odd_sizes);
	tcase_add_test(tc, huge);
	tcase_add_test(tc, log_ring);
	tcase_add_test(tc, share);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
