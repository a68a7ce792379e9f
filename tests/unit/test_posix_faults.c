/* SPDX-License-Identifier: MIT
 * posix.h on disks that fail for a while: what failed has changed nothing, and what was accepted is still there. */
#include "unit/posix_util.h"

#define NR_OTHERS 3000u

/* A tree much larger than the cache, so that nodes have to be read. */
static void setup_cold(void)
{
	struct simpool_config config = { .nr_members = 2, .size_bytes = 48 * MIB, .seed = 1, .cache_bytes = 64 * KIB };
	char name[32];
	setup_config(&config);
	uint64_t d = make_dir(PF_ROOT_INO, "others");
	for (unsigned k = 0; k < NR_OTHERS; k++) {
		sprintf(name, "%u", k);
		pf_forget(POOL, make_file(d, name), 1);
	}
	pf_forget(POOL, d, 1);
	remount();
}

/* Nodes that were read before are not in memory any more. */
static void chill(void)
{
	char name[32];
	uint64_t d = look(PF_ROOT_INO, "others");
	for (unsigned k = 0; k < NR_OTHERS; k += 7) {
		sprintf(name, "%u", k);
		pf_forget(POOL, look(d, name), 1);
	}
	pf_forget(POOL, d, 1);
}

/* One group, so that nothing can go around its map. */
static void setup_one_group(void)
{
	setup_with(5, 1, 24 * MIB);
}

static void fail_reads(void)
{
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL };
	simworld_add_fault(sp->world, &fault);
}

START_TEST(a_failed_truncation_keeps_what_was_written)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, 128 * KIB);
	put(f, 0, p, 128 * KIB);
	ck_ok(pf_fsync(POOL, f));
	put(f, 5000, "accepted", 8);
	put(f, 200000, "further", 7);
	memcpy(p + 5000, "accepted", 8);
	chill();
	fail_reads();
	int err = truncate_to(f, 0);
	simworld_clear_faults(sp->world);
	ck_assert_msg(err == 0 || err == -EIO, "%s", pf_strerror(err));
	if (err) {
		ck_assert_uint_eq(attr_of(f).size_bytes, 200007);
		ck_ok(pf_fsync(POOL, f));
		remount();
		f = look(PF_ROOT_INO, "f");
		ck_bytes(f, 0, p, 128 * KIB);
		ck_bytes(f, 200000, "further", 7);
	}
	free(p);
}
END_TEST

START_TEST(a_failed_write_keeps_bytes_and_mode)
{
	struct pf_attr in = { .mode = 04755 };
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, "old", 3);
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MODE, &in, NULL));
	ck_ok(pf_fsync(POOL, f));
	chill();
	fail_reads();
	tick();
	int64_t n = pf_write(POOL, f, 100000, "new", 3, PF_WRITE_KILL_SUIDGID);
	simworld_clear_faults(sp->world);
	ck_assert_msg(n == 3 || n == -EIO, "%jd", (intmax_t)n);
	if (n < 0) {
		ck_assert_uint_eq(attr_of(f).mode, S_IFREG | 04755);
		ck_assert_uint_eq(attr_of(f).size_bytes, 3);
		ck_assert_int_ne(attr_of(f).mtime.tv_sec, test_env_time(&sp->env).tv_sec);
	}
	ck_bytes(f, 0, "old", 3);
}
END_TEST

/* The first thing that a mount reads for a write is the map of the group: later it must be readable after all. */
START_TEST(a_map_is_read_again)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, 128 * KIB);
	remount();
	f = look(PF_ROOT_INO, "f");
	fail_reads();
	int64_t n = pf_write(POOL, f, 0, p, 128 * KIB, 0);
	ck_assert_msg(n == -EIO || n == -ENOSPC, "%jd", (intmax_t)n);
	simworld_clear_faults(sp->world);
	put(f, 0, p, 128 * KIB);
	ck_ok(pf_fsync(POOL, f));
	ck_bytes(f, 0, p, 128 * KIB);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	pf_forget(POOL, f, 1);
	settle();
	free(p);
}
END_TEST

START_TEST(names_are_whole_after_failures)
{
	uint64_t d = make_dir(PF_ROOT_INO, "d"), f = make_file(d, "f"), others = look(PF_ROOT_INO, "others");
	struct pf_attr a;
	put(f, 0, "bytes", 5);
	ck_ok(pf_fsync(POOL, f));
	unsigned nr_failed = 0;
	for (unsigned k = 0; k < 40; k++) {
		char name[32];
		sprintf(name, "%u", k * 61 % NR_OTHERS);
		chill();
		fail_reads();
		int err[] = { pf_unlink(POOL, others, name, strlen(name)),
			      rename_name(d, "f", others, name, 0),
			      link_name(f, others, name),
			      pf_create(POOL, others, name, strlen(name), S_IFREG, user, 0, 0, &a),
			      pf_setxattr(POOL, f, "user.a", "v", 1, 0),
			      rename_name(others, name, d, "g", RENAME_NOREPLACE) };
		simworld_clear_faults(sp->world);
		for (unsigned i = 0; i < 6; i++)
			nr_failed += err[i] != 0;
		if (err[0])
			ck_assert_uint_ne(look(others, name), 0);
		if (err[1])
			ck_assert_uint_eq(look(d, "f"), f);
		if (!err[1])
			break;
	}
	ck_assert_uint_gt(nr_failed, 0);
	ck_bytes(f, 0, "bytes", 5);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix faults");
	TCase *t = tcase_create("faults");
	tcase_add_checked_fixture(t, setup_cold, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_failed_truncation_keeps_what_was_written);
	tcase_add_test(t, a_failed_write_keeps_bytes_and_mode);
	tcase_add_test(t, names_are_whole_after_failures);
	suite_add_tcase(s, t);
	t = tcase_create("maps");
	tcase_add_checked_fixture(t, setup_one_group, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_map_is_read_again);
	suite_add_tcase(s, t);
	return run_suite(s);
}
