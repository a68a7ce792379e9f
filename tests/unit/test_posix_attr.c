/* SPDX-License-Identifier: MIT
 * posix.h, attributes: modes, owners, times, set-id bits, extended attributes. */
#include "unit/posix_util.h"

START_TEST(modes_and_owners)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	struct pf_attr in = { .mode = 07123, .uid = 5, .gid = UINT32_MAX - 1 }, out;
	tick();
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MODE | PF_ATTR_UID | PF_ATTR_GID, &in, &out));
	ck_assert_uint_eq(out.mode, S_IFREG | 07123);
	remount();
	struct pf_attr a = attr_of(look(PF_ROOT_INO, "f"));
	ck_assert_uint_eq(a.mode, S_IFREG | 07123);
	ck_assert_uint_eq(a.uid, 5);
	ck_assert_uint_eq(a.gid, UINT32_MAX - 1);
	ck_assert_int_eq(a.ctime.tv_sec, test_env_time(&sp->env).tv_sec);
	ck_assert_int_ne(a.mtime.tv_sec, a.ctime.tv_sec);
}
END_TEST

START_TEST(times)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	struct pf_attr in = { .atime = { -62135596800, 999999999 },
			      .mtime = { INT64_C(1) << 36, 1 },
			      .ctime = { 7, 8 } };
	ck_ok(pf_setattr(POOL, f, PF_ATTR_ATIME | PF_ATTR_MTIME | PF_ATTR_CTIME, &in, NULL));
	remount();
	f = look(PF_ROOT_INO, "f");
	struct pf_attr a = attr_of(f);
	ck_assert_int_eq(a.atime.tv_sec, -62135596800);
	ck_assert_int_eq(a.atime.tv_nsec, 999999999);
	ck_assert_int_eq(a.mtime.tv_sec, INT64_C(1) << 36);
	ck_assert_int_eq(a.mtime.tv_nsec, 1);
	ck_assert_int_eq(a.ctime.tv_sec, 7);
	ck_assert_int_eq(a.ctime.tv_nsec, 8);
	tick();
	ck_ok(pf_setattr(POOL, f, PF_ATTR_ATIME_NOW | PF_ATTR_MTIME_NOW, &in, &a));
	struct timespec now = test_env_time(&sp->env);
	ck_assert_int_eq(a.atime.tv_sec, now.tv_sec);
	ck_assert_int_eq(a.mtime.tv_sec, now.tv_sec);
	ck_assert_int_eq(a.ctime.tv_sec, now.tv_sec);
}
END_TEST

START_TEST(writing_sets_times)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	time_t made = attr_of(f).mtime.tv_sec;
	tick();
	put(f, 0, "x", 1);
	ck_assert_int_gt(attr_of(f).mtime.tv_sec, made);
	time_t written = attr_of(f).mtime.tv_sec;
	tick();
	ck_assert_int_eq(pf_write(POOL, f, 0, "y", 1, PF_WRITE_KEEP_TIMES), 1);
	ck_assert_int_eq(attr_of(f).mtime.tv_sec, written);
	ck_ok(truncate_to(f, 100));
	ck_assert_int_gt(attr_of(f).mtime.tv_sec, written);
}
END_TEST

START_TEST(set_id_bits_go)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	struct pf_attr in = { .mode = 06755, .uid = 9 }, out;
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MODE, &in, NULL));
	ck_ok(pf_setxattr(POOL, f, "security.capability", "cap", 3, 0));
	put(f, 0, "x", 1);
	ck_assert_uint_eq(attr_of(f).mode, S_IFREG | 06755); /* root's write */
	ck_assert_int_eq(pf_write(POOL, f, 0, "x", 1, PF_WRITE_KILL_SUIDGID), 1);
	ck_assert_uint_eq(attr_of(f).mode, S_IFREG | 0755);
	ck_err(pf_getxattr(POOL, f, "security.capability", NULL, 0), -ENODATA);
	/* set-gid without the group's x is mandatory locking: it stays */
	in.mode = 06745;
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MODE, &in, NULL));
	ck_ok(pf_setattr(POOL, f, PF_ATTR_UID | PF_ATTR_KILL_SUIDGID, &in, &out));
	ck_assert_uint_eq(out.mode, S_IFREG | 02745);
	ck_assert_uint_eq(out.uid, 9);
	in.mode = 04711;
	in.size_bytes = 10;
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MODE, &in, NULL));
	ck_ok(pf_setattr(POOL, f, PF_ATTR_SIZE | PF_ATTR_KILL_SUIDGID, &in, &out));
	ck_assert_uint_eq(out.mode, S_IFREG | 0711);
	ck_assert_uint_eq(out.size_bytes, 10);
}
END_TEST

START_TEST(size_of_what_has_none)
{
	uint64_t d = make_dir(PF_ROOT_INO, "d");
	struct pf_attr in = { .size_bytes = 5, .mode = 0700 };
	int err = pf_setattr(POOL, d, PF_ATTR_SIZE | PF_ATTR_MODE, &in, NULL);
	ck_assert_msg(err == -EISDIR || err == -EINVAL, "%s", pf_strerror(err));
	ck_assert_uint_eq(attr_of(d).mode, S_IFDIR | 0755); /* all or none */
}
END_TEST

START_TEST(xattrs)
{
	char buf[100];
	uint64_t f = make_file(PF_ROOT_INO, "f");
	ck_assert(!attr_of(f).has_xattr);
	ck_assert_int_eq(pf_listxattr(POOL, f, NULL, 0), 0);
	ck_err(pf_getxattr(POOL, f, "user.a", buf, 100), -ENODATA);
	ck_err(pf_setxattr(POOL, f, "user.a", "1", 1, XATTR_REPLACE), -ENODATA);
	ck_ok(pf_setxattr(POOL, f, "user.a", "first", 5, XATTR_CREATE));
	ck_err(pf_setxattr(POOL, f, "user.a", "1", 1, XATTR_CREATE), -EEXIST);
	ck_ok(pf_setxattr(POOL, f, "user.a", "second", 6, XATTR_REPLACE));
	ck_ok(pf_setxattr(POOL, f, "user.empty", "", 0, 0));
	ck_assert_int_eq(pf_getxattr(POOL, f, "user.a", NULL, 0), 6);
	ck_err(pf_getxattr(POOL, f, "user.a", buf, 5), -ERANGE);
	ck_assert_int_eq(pf_getxattr(POOL, f, "user.a", buf, 6), 6);
	ck_assert_mem_eq(buf, "second", 6);
	ck_assert_int_eq(pf_getxattr(POOL, f, "user.empty", buf, 6), 0);
	ck_assert_int_eq(pf_listxattr(POOL, f, NULL, 0), 7 + 11);
	ck_err(pf_listxattr(POOL, f, buf, 17), -ERANGE);
	ck_assert_int_eq(pf_listxattr(POOL, f, buf, 18), 18);
	ck_assert(attr_of(f).has_xattr);
	ck_err(pf_removexattr(POOL, f, "user.b"), -ENODATA);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_ok(pf_removexattr(POOL, f, "user.a"));
	ck_assert(attr_of(f).has_xattr);
	ck_ok(pf_removexattr(POOL, f, "user.empty"));
	ck_assert_int_eq(pf_listxattr(POOL, f, NULL, 0), 0);
}
END_TEST

static void ck_value(uint64_t ino, const char *name, uint64_t seed, size_t len)
{
	uint8_t *expected = pattern(seed, len), *got = malloc(len + 1);
	ck_assert_int_eq(pf_getxattr(POOL, ino, name, got, len + 1), (int64_t)len);
	ck_assert_int_eq(memcmp(expected, got, len), 0);
	free(expected);
	free(got);
}

START_TEST(xattrs_of_every_size)
{
	static const size_t sizes[] = { 1, 3499, 3500, 3501, 4096, 6999, 7000, 7001, 65535, 65536 };
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *v = pattern(1, 65537);
	ck_err(pf_setxattr(POOL, f, "user.huge", v, 65537, 0), -E2BIG);
	ck_assert(!attr_of(f).has_xattr);
	free(v);
	for (unsigned round = 0; round < 2; round++) {
		/* the second round replaces each value by one of another size */
		for (unsigned k = 0; k < 10; k++) {
			char name[32];
			size_t len = sizes[round ? 9 - k : k];
			sprintf(name, "user.%u", k);
			v = pattern(k, len);
			ck_ok(pf_setxattr(POOL, f, name, v, len, 0));
			free(v);
		}
		remount();
		f = look(PF_ROOT_INO, "f");
		for (unsigned k = 0; k < 10; k++) {
			char name[32];
			sprintf(name, "user.%u", k);
			ck_value(f, name, k, sizes[round ? 9 - k : k]);
		}
	}
}
END_TEST

START_TEST(many_xattrs)
{
	uint64_t d = make_dir(PF_ROOT_INO, "d");
	char name[300];
	for (unsigned k = 0; k < 600; k++) {
		sprintf(name, "user.%0*u", k % 3 ? 4 : 240, k);
		ck_ok(pf_setxattr(POOL, d, name, &k, sizeof(k), 0));
	}
	remount();
	d = look(PF_ROOT_INO, "d");
	for (unsigned k = 0; k < 600; k++) {
		unsigned got = 0;
		sprintf(name, "user.%0*u", k % 3 ? 4 : 240, k);
		ck_assert_int_eq(pf_getxattr(POOL, d, name, &got, sizeof(got)), sizeof(got));
		ck_assert_uint_eq(got, k);
		ck_ok(pf_removexattr(POOL, d, name));
	}
	ck_assert_int_eq(pf_listxattr(POOL, d, NULL, 0), 0);
}
END_TEST

START_TEST(read_only_pools_refuse)
{
	char why[1200];
	uint64_t f = make_file(PF_ROOT_INO, "f"), d = make_dir(PF_ROOT_INO, "d");
	put(f, 0, "bytes", 5);
	ck_ok(pf_setxattr(POOL, f, "user.a", "v", 1, 0));
	ck_ok(simpool_close(sp, why, sizeof(why)));
	ck_ok(simpool_open(sp, true, why, sizeof(why)));
	ck_assert(pf_pool_read_only(POOL));
	f = look(PF_ROOT_INO, "f");
	struct pf_attr a = { .mode = 0600 };
	ck_bytes(f, 0, "bytes", 5);
	ck_err(pf_create(POOL, d, "x", 1, S_IFREG, user, 0, 0, &a), -EROFS);
	ck_err(pf_create_unnamed(POOL, d, S_IFREG, user, &a), -EROFS);
	ck_err(pf_symlink(POOL, d, "x", 1, "t", user, &a), -EROFS);
	ck_err(link_name(f, d, "x"), -EROFS);
	ck_err(unlink_name(PF_ROOT_INO, "f"), -EROFS);
	ck_err(rmdir_name(PF_ROOT_INO, "d"), -EROFS);
	ck_err(rename_name(PF_ROOT_INO, "f", d, "x", 0), -EROFS);
	ck_err(pf_setattr(POOL, f, PF_ATTR_MODE, &a, NULL), -EROFS);
	ck_err(pf_setxattr(POOL, f, "user.a", "w", 1, 0), -EROFS);
	ck_err(pf_removexattr(POOL, f, "user.a"), -EROFS);
	ck_err(pf_write(POOL, f, 0, "x", 1, 0), -EROFS);
	ck_err(pf_fallocate(POOL, f, 0, 0, 10, 0), -EROFS);
	ck_err(pf_copy_range(POOL, f, 0, f, 4096, 5, 0), -EROFS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix attributes");
	TCase *t = tcase_create("attributes");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, modes_and_owners);
	tcase_add_test(t, times);
	tcase_add_test(t, writing_sets_times);
	tcase_add_test(t, set_id_bits_go);
	tcase_add_test(t, size_of_what_has_none);
	tcase_add_test(t, xattrs);
	tcase_add_test(t, xattrs_of_every_size);
	tcase_add_test(t, many_xattrs);
	tcase_add_test(t, read_only_pools_refuse);
	suite_add_tcase(s, t);
	return run_suite(s);
}
