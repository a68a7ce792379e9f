/* SPDX-License-Identifier: MIT
 * posix.h, file data: reading and writing, holes, truncation, fallocate, lseek, copies, limits. */
#include "unit/posix_util.h"

START_TEST(reads_what_was_written)
{
	static const size_t lens[] = { 1, 511, 4095, 4096, 4097, 65536, 1048576, 1048577, 2097152 };
	static const uint64_t offs[] = { 0, 1, 4095, 4096, 8191, 1048575 };
	for (unsigned l = 0; l < 9; l++) {
		for (unsigned k = 0; k < 6; k++) {
			char name[32];
			sprintf(name, "%u-%u", l, k);
			uint64_t f = make_file(PF_ROOT_INO, name);
			uint8_t *p = pattern(l * 6 + k, lens[l]);
			put(f, offs[k], p, lens[l]);
			ck_assert_uint_eq(attr_of(f).size_bytes, offs[k] + lens[l]);
			ck_bytes(f, offs[k], p, lens[l]);
			if (offs[k])
				ck_zeros(f, 0, offs[k]);
			if (l % 3 == 0)
				remount();
			f = look(PF_ROOT_INO, name);
			ck_bytes(f, offs[k], p, lens[l]);
			free(p);
			ck_ok(unlink_name(PF_ROOT_INO, name));
			pf_forget(POOL, f, 100);
		}
	}
}
END_TEST

START_TEST(ends_of_files)
{
	int64_t n;
	uint64_t f = make_file(PF_ROOT_INO, "f");
	free(get(f, 0, 100, &n));
	ck_assert_int_eq(n, 0);
	put(f, 0, "0123456789", 10);
	free(get(f, 4, 100, &n));
	ck_assert_int_eq(n, 6);
	free(get(f, 10, 100, &n));
	ck_assert_int_eq(n, 0);
	free(get(f, UINT64_C(1) << 62, 100, &n));
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(pf_write(POOL, f, 100, "x", 0, 0), 0);
	ck_assert_uint_eq(attr_of(f).size_bytes, 10);
	uint64_t d = make_dir(PF_ROOT_INO, "d");
	ck_assert_int_lt(pf_write(POOL, d, 0, "x", 1, 0), 0);
	free(get(d, 0, 100, &n));
	ck_assert_int_lt(n, 0);
}
END_TEST

START_TEST(overwrites_change_only_their_bytes)
{
	const size_t len = 300000;
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, len);
	put(f, 0, p, len);
	struct rng r = { .state = 5 };
	for (unsigned k = 0; k < 200; k++) {
		uint64_t off = rng_below(&r, len - 1), n = 1 + rng_skewed(&r, len - off - 1);
		rng_fill(&r, p + off, n);
		put(f, off, p + off, n);
		if (k % 50 == 25)
			settle();
		if (k % 20 == 0)
			ck_bytes(f, 0, p, len);
	}
	remount();
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, len);
	free(p);
}
END_TEST

START_TEST(truncation_leaves_no_old_bytes)
{
	static const uint64_t cuts[] = { 0, 1, 4095, 4096, 4097, 100000, 262144 };
	uint8_t *p = pattern(2, 300000);
	for (unsigned k = 0; k < 7; k++) {
		char name[8];
		sprintf(name, "f%u", k);
		uint64_t f = make_file(PF_ROOT_INO, name);
		put(f, 0, p, 300000);
		if (k % 2)
			settle();
		ck_ok(truncate_to(f, cuts[k]));
		ck_assert_uint_eq(attr_of(f).size_bytes, cuts[k]);
		ck_assert_uint_eq(attr_of(f).blocks, (cuts[k] + 4095) / 4096);
		ck_ok(truncate_to(f, 310000));
		ck_bytes(f, 0, p, cuts[k]);
		ck_zeros(f, cuts[k], 310000 - cuts[k]);
		remount();
		f = look(PF_ROOT_INO, name);
		ck_bytes(f, 0, p, cuts[k]);
		ck_zeros(f, cuts[k], 310000 - cuts[k]);
	}
	free(p);
}
END_TEST

START_TEST(writing_past_the_end_leaves_a_hole)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 10, "a", 1);
	put(f, 5 * MIB + 7, "b", 1);
	ck_assert_uint_eq(attr_of(f).blocks, 2);
	ck_zeros(f, 11, 5 * MIB + 7 - 11);
	ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_DATA), 0);
	ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_HOLE), 4096);
	ck_assert_int_eq(pf_lseek(POOL, f, 5000, SEEK_DATA), 5 * MIB);
	ck_assert_int_eq(pf_lseek(POOL, f, 5000, SEEK_HOLE), 5000);
	ck_assert_int_eq(pf_lseek(POOL, f, 5 * MIB + 1, SEEK_DATA), 5 * MIB + 1);
	ck_assert_int_eq(pf_lseek(POOL, f, 5 * MIB, SEEK_HOLE), 5 * MIB + 8);
	ck_err(pf_lseek(POOL, f, 5 * MIB + 8, SEEK_DATA), -ENXIO);
	ck_err(pf_lseek(POOL, f, 5 * MIB + 8, SEEK_HOLE), -ENXIO);
	ck_err(pf_lseek(POOL, f, 0, 77), -EINVAL);
	ck_ok(truncate_to(f, 9 * MIB));
	ck_err(pf_lseek(POOL, f, 6 * MIB, SEEK_DATA), -ENXIO);
	ck_assert_int_eq(pf_lseek(POOL, f, 6 * MIB, SEEK_HOLE), 6 * MIB);
	settle();
	ck_assert_int_eq(pf_lseek(POOL, f, 5000, SEEK_DATA), 5 * MIB);
}
END_TEST

START_TEST(the_largest_file)
{
	const uint64_t max = PF_MAX_FILE_BYTES;
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	ck_assert_uint_eq(max, UINT64_C(0x7ffffffffffff000));
	put(f, max - 3, "end", 3);
	ck_assert_uint_eq(attr_of(f).size_bytes, max);
	ck_err(pf_write(POOL, f, max - 2, "end", 3, 0), -EFBIG);
	ck_err(pf_write(POOL, f, max, "x", 1, 0), -EFBIG);
	ck_err(pf_write(POOL, f, UINT64_MAX - 1, "xx", 2, 0), -EFBIG);
	ck_err(truncate_to(f, max + 1), -EFBIG);
	ck_err(pf_fallocate(POOL, f, 0, max - 1, 2, 0), -EFBIG);
	ck_err(pf_fallocate(POOL, f, 0, UINT64_MAX - 1, UINT64_MAX, 0), -EFBIG);
	ck_ok(truncate_to(g, max));
	ck_zeros(g, max - 5000, 5000);
	ck_bytes(f, max - 3, "end", 3);
	ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_DATA), (int64_t)(max - 4096));
	ck_assert_uint_eq(attr_of(f).blocks, 1);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_bytes(f, max - 3, "end", 3);
	ck_ok(truncate_to(f, 0));
	ck_assert_uint_eq(attr_of(f).blocks, 0);
}
END_TEST

START_TEST(punched_holes)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(3, 200000);
	put(f, 0, p, 200000);
	settle();
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	ck_ok(pf_fallocate(POOL, f, punch, 5000, 50000, 0));
	memset(p + 5000, 0, 50000);
	ck_bytes(f, 0, p, 200000);
	/* [8192, 53248) are whole blocks */
	ck_assert_uint_eq(attr_of(f).blocks, 49 - 11);
	ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_HOLE), 8192);
	ck_assert_int_eq(pf_lseek(POOL, f, 8192, SEEK_DATA), 53248);
	/* past the end: no change of size */
	ck_ok(pf_fallocate(POOL, f, punch, 196608, MIB, 0));
	memset(p + 196608, 0, 200000 - 196608);
	ck_assert_uint_eq(attr_of(f).size_bytes, 200000);
	ck_bytes(f, 0, p, 200000);
	ck_ok(pf_fallocate(POOL, f, punch, 10 * MIB, MIB, 0));
	ck_err(pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE, 0, 4096, 0), -EOPNOTSUPP);
	ck_err(pf_fallocate(POOL, f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096, 0), -EOPNOTSUPP);
	ck_err(pf_fallocate(POOL, f, FALLOC_FL_INSERT_RANGE, 0, 4096, 0), -EOPNOTSUPP);
	ck_err(pf_fallocate(POOL, f, punch, 0, 0, 0), -EINVAL);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_bytes(f, 0, p, 200000);
	ck_ok(pf_fallocate(POOL, f, punch, 0, 200000, 0));
	ck_zeros(f, 0, 200000);
	ck_err(pf_lseek(POOL, f, 0, SEEK_DATA), -ENXIO);
	free(p);
}
END_TEST

START_TEST(preallocation)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint64_t before = free_blocks();
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_KEEP_SIZE, 1000, 2 * MIB, 0));
	ck_assert_uint_eq(attr_of(f).size_bytes, 0);
	ck_assert_uint_eq(attr_of(f).blocks, 513);
	ck_assert_uint_eq(free_blocks(), before - 513);
	ck_ok(pf_fallocate(POOL, f, 0, 0, MIB, 0));
	ck_assert_uint_eq(attr_of(f).size_bytes, MIB);
	ck_assert_uint_eq(attr_of(f).blocks, 513);
	ck_zeros(f, 0, MIB);
	/* written in the middle of a block: its other bytes stay zeros */
	put(f, 12345, "data", 4);
	ck_assert_uint_eq(attr_of(f).blocks, 513);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_zeros(f, 0, 12345);
	ck_bytes(f, 12345, "data", 4);
	ck_zeros(f, 12349, MIB - 12349);
	ck_assert_uint_eq(attr_of(f).blocks, 513);
	ck_ok(truncate_to(f, 20000));
	ck_assert_uint_eq(attr_of(f).blocks, 5);
}
END_TEST

START_TEST(zeroed_ranges)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(4, 100000);
	put(f, 0, p, 100000);
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE, 3000, 60000, 0));
	memset(p + 3000, 0, 60000);
	ck_bytes(f, 0, p, 100000);
	ck_assert_uint_eq(attr_of(f).blocks, 25);
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 90000, 100000, 0));
	memset(p + 90000, 0, 10000);
	ck_assert_uint_eq(attr_of(f).size_bytes, 100000);
	ck_assert_uint_eq(attr_of(f).blocks, 47); /* to 190000 */
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE, 95000, 50000, 0));
	ck_assert_uint_eq(attr_of(f).size_bytes, 145000);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_bytes(f, 0, p, 100000);
	ck_zeros(f, 100000, 45000);
	free(p);
}
END_TEST

START_TEST(copies)
{
	uint64_t a = make_file(PF_ROOT_INO, "a"), b = make_file(PF_ROOT_INO, "b");
	uint8_t *p = pattern(6, 150000);
	put(a, 0, p, 150000);
	uint64_t done = 0;
	while (done < 150000) {
		int64_t n = pf_copy_range(POOL, a, done, b, 5000 + done, 1000000, 0);
		ck_assert_int_gt(n, 0);
		done += (uint64_t)n;
	}
	ck_assert_uint_eq(done, 150000);
	ck_assert_uint_eq(attr_of(b).size_bytes, 155000);
	ck_zeros(b, 0, 5000);
	ck_bytes(b, 5000, p, 150000);
	ck_assert_int_eq(pf_copy_range(POOL, a, 150000, b, 0, 100, 0), 0);
	ck_err(pf_copy_range(POOL, a, 0, a, 100, 200, 0), -EINVAL);
	/* within one file */
	ck_assert_int_eq(pf_copy_range(POOL, a, 0, a, 150000, 4096, 0), 4096);
	ck_bytes(a, 150000, p, 4096);
	ck_bytes(a, 0, p, 150000);
	/* a hole over data */
	uint64_t c = make_file(PF_ROOT_INO, "c");
	ck_ok(truncate_to(c, 60000));
	ck_assert_int_eq(pf_copy_range(POOL, c, 0, b, 10000, 60000, 0), 60000);
	ck_bytes(b, 5000, p, 5000);
	ck_zeros(b, 10000, 60000);
	ck_bytes(b, 70000, p + 65000, 85000);
	free(p);
}
END_TEST

START_TEST(copies_end_where_the_source_ended)
{
	uint64_t a = make_file(PF_ROOT_INO, "a"), b = make_file(PF_ROOT_INO, "b");
	put(a, 0, "0123456789", 10);
	ck_assert_int_eq(pf_copy_range(POOL, a, 0, b, 0, 0, 0), 0);
	ck_assert_int_eq(pf_copy_range(POOL, a, 5, b, 100, 100, 0), 5);
	ck_assert_int_eq(pf_copy_range(POOL, a, 10, b, 0, 100, 0), 0);
	ck_assert_int_eq(pf_copy_range(POOL, a, 1000, b, 0, 100, 0), 0);
	/* a copy that makes its own source longer */
	ck_assert_int_eq(pf_copy_range(POOL, a, 5, a, 20000, 100, 0), 5);
	ck_assert_uint_eq(attr_of(a).size_bytes, 20005);
	ck_bytes(a, 20000, "56789", 5);
	ck_err(pf_copy_range(POOL, a, 0, b, PF_MAX_FILE_BYTES - 2, 10, 0), -EFBIG);
}
END_TEST

START_TEST(fsync_needs_no_close)
{
	char why[1200];
	uint64_t d = make_dir(PF_ROOT_INO, "d"), f = make_file(d, "f");
	put(f, 100, "durable", 7);
	ck_ok(pf_setxattr(POOL, f, "user.a", "v", 1, 0));
	ck_ok(pf_fsync(POOL, f));
	put(f, 100, "perhaps", 7);
	simpool_abandon(sp);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	f = look(look(PF_ROOT_INO, "d"), "f");
	ck_assert_uint_ne(f, 0);
	int64_t n;
	uint8_t *got = get(f, 100, 7, &n);
	ck_assert_int_eq(n, 7);
	ck_assert(!memcmp(got, "durable", 7) || !memcmp(got, "perhaps", 7));
	free(got);
	ck_assert_int_eq(pf_getxattr(POOL, f, "user.a", NULL, 0), 1);
}
END_TEST

START_TEST(small_caches_hold_big_files)
{
	/* dirty data beyond what memory may hold has to go to disk by itself */
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(9, MIB);
	for (unsigned k = 0; k < 40; k++) {
		p[0] = (uint8_t)k;
		put(f, k * MIB, p, MIB);
	}
	for (unsigned k = 0; k < 40; k++) {
		p[0] = (uint8_t)k;
		ck_bytes(f, k * MIB, p, MIB);
	}
	free(p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix files");
	TCase *t = tcase_create("files");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, reads_what_was_written);
	tcase_add_test(t, ends_of_files);
	tcase_add_test(t, overwrites_change_only_their_bytes);
	tcase_add_test(t, truncation_leaves_no_old_bytes);
	tcase_add_test(t, writing_past_the_end_leaves_a_hole);
	tcase_add_test(t, the_largest_file);
	tcase_add_test(t, punched_holes);
	tcase_add_test(t, preallocation);
	tcase_add_test(t, zeroed_ranges);
	tcase_add_test(t, copies);
	tcase_add_test(t, copies_end_where_the_source_ended);
	tcase_add_test(t, fsync_needs_no_close);
	tcase_add_test(t, small_caches_hold_big_files);
	suite_add_tcase(s, t);
	return run_suite(s);
}
