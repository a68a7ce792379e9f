/* SPDX-License-Identifier: MIT
 * posix.h, rename: moves, replacements, exchanges, and all that must not happen. */
#include "unit/posix_util.h"

START_TEST(moves_between_directories)
{
	uint64_t a = make_dir(PF_ROOT_INO, "a"), b = make_dir(PF_ROOT_INO, "b"), d = make_dir(a, "d"),
		 f = make_file(a, "f");
	tick();
	ck_ok(rename_name(a, "f", b, "g", 0));
	ck_assert_uint_eq(look(b, "g"), f);
	ck_assert_uint_eq(look(a, "f"), 0);
	struct timespec now = test_env_time(&sp->env);
	ck_assert_int_eq(attr_of(a).mtime.tv_sec, now.tv_sec);
	ck_assert_int_eq(attr_of(b).mtime.tv_sec, now.tv_sec);
	ck_assert_int_eq(attr_of(f).ctime.tv_sec, now.tv_sec);
	ck_ok(rename_name(a, "d", b, "d", 0));
	ck_assert_uint_eq(attr_of(a).nlink, 2);
	ck_assert_uint_eq(attr_of(b).nlink, 3);
	ck_assert_uint_eq(look(d, ".."), b);
	remount();
	ck_assert_uint_eq(look(look(PF_ROOT_INO, "b"), "g"), f);
	ck_assert_uint_eq(look(look(look(PF_ROOT_INO, "b"), "d"), ".."), b);
}
END_TEST

START_TEST(replaces)
{
	uint64_t from = make_file(PF_ROOT_INO, "from"), to = make_file(PF_ROOT_INO, "to");
	put(from, 0, "new", 3);
	put(to, 0, "old!", 4);
	tick();
	ck_ok(rename_name(PF_ROOT_INO, "from", PF_ROOT_INO, "to", 0));
	ck_assert_uint_eq(look(PF_ROOT_INO, "to"), from);
	ck_assert_uint_eq(look(PF_ROOT_INO, "from"), 0);
	/* the replaced file is still open */
	ck_assert_uint_eq(attr_of(to).nlink, 0);
	ck_assert_int_eq(attr_of(to).ctime.tv_sec, test_env_time(&sp->env).tv_sec);
	ck_bytes(to, 0, "old!", 4);
	/* a directory over an empty one */
	uint64_t d = make_dir(PF_ROOT_INO, "d"), e = make_dir(PF_ROOT_INO, "e");
	make_file(d, "inside");
	ck_ok(rename_name(PF_ROOT_INO, "d", PF_ROOT_INO, "e", 0));
	ck_assert_uint_eq(look(PF_ROOT_INO, "e"), d);
	ck_assert_uint_eq(attr_of(PF_ROOT_INO).nlink, 3);
	ck_assert_uint_eq(attr_of(e).nlink, 0);
}
END_TEST

START_TEST(refusals)
{
	uint64_t d = make_dir(PF_ROOT_INO, "d"), e = make_dir(d, "e"), full = make_dir(PF_ROOT_INO, "full");
	uint64_t f = make_file(PF_ROOT_INO, "f");
	make_file(full, "x");
	ck_err(rename_name(PF_ROOT_INO, "none", PF_ROOT_INO, "y", 0), -ENOENT);
	ck_err(rename_name(PF_ROOT_INO, "d", e, "sub", 0), -EINVAL);
	ck_err(rename_name(PF_ROOT_INO, "d", d, "self", 0), -EINVAL);
	ck_err(rename_name(d, "e", PF_ROOT_INO, "d", 0), -ENOTEMPTY);
	ck_err(rename_name(PF_ROOT_INO, "d", PF_ROOT_INO, "full", 0), -ENOTEMPTY);
	ck_err(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "d", 0), -EISDIR);
	ck_err(rename_name(PF_ROOT_INO, "d", PF_ROOT_INO, "f", 0), -ENOTDIR);
	ck_err(rename_name(PF_ROOT_INO, "f", f, "y", 0), -ENOTDIR);
	ck_err(rename_name(f, "y", PF_ROOT_INO, "z", 0), -ENOTDIR);
	ck_err(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "d", RENAME_NOREPLACE), -EEXIST);
	ck_err(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "none", RENAME_EXCHANGE), -ENOENT);
	ck_err(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "d", RENAME_EXCHANGE | RENAME_NOREPLACE), -EINVAL);
	ck_err(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "d", RENAME_EXCHANGE | RENAME_WHITEOUT), -EINVAL);
	ck_err(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "y", 8), -EINVAL);
	ck_err(rename_name(PF_ROOT_INO, "d", d, "e", RENAME_EXCHANGE), -EINVAL);
	ck_err(rename_name(d, "e", PF_ROOT_INO, "d", RENAME_EXCHANGE), -EINVAL);
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
	ck_assert_uint_eq(look(d, "e"), e);
	ck_assert_uint_eq(attr_of(PF_ROOT_INO).nlink, 4);
}
END_TEST

START_TEST(same_file_is_left_alone)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), d = make_dir(PF_ROOT_INO, "d");
	make_file(d, "inside");
	ck_ok(link_name(f, PF_ROOT_INO, "g"));
	ck_ok(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "g", 0));
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
	ck_assert_uint_eq(look(PF_ROOT_INO, "g"), f);
	ck_assert_uint_eq(attr_of(f).nlink, 2);
	ck_ok(rename_name(PF_ROOT_INO, "d", PF_ROOT_INO, "d", 0));
	ck_ok(rename_name(PF_ROOT_INO, "d", PF_ROOT_INO, "d", RENAME_EXCHANGE));
	ck_err(rename_name(PF_ROOT_INO, "d", PF_ROOT_INO, "d", RENAME_NOREPLACE), -EEXIST);
}
END_TEST

START_TEST(exchanges)
{
	uint64_t a = make_dir(PF_ROOT_INO, "a"), b = make_dir(PF_ROOT_INO, "b");
	uint64_t dir = make_dir(a, "x"), file = make_file(b, "y");
	make_file(dir, "inside");
	ck_ok(rename_name(a, "x", b, "y", RENAME_EXCHANGE));
	ck_assert_uint_eq(look(a, "x"), file);
	ck_assert_uint_eq(look(b, "y"), dir);
	ck_assert_uint_eq(attr_of(a).nlink, 2);
	ck_assert_uint_eq(attr_of(b).nlink, 3);
	ck_assert_uint_eq(look(dir, ".."), b);
	/* and within one directory */
	uint64_t other = make_file(b, "z");
	ck_ok(rename_name(b, "y", b, "z", RENAME_EXCHANGE));
	ck_assert_uint_eq(look(b, "z"), dir);
	ck_assert_uint_eq(look(b, "y"), other);
	ck_assert_uint_eq(attr_of(b).nlink, 3);
	remount();
	ck_assert_uint_eq(look(look(PF_ROOT_INO, "b"), "z"), dir);
}
END_TEST

static uint64_t nr_inodes(void)
{
	struct pf_statfs s;
	pf_pool_statfs(POOL, &s);
	return s.nr_inodes;
}

/* What an overlay filesystem knows a removed name by. */
START_TEST(whiteouts)
{
	uint64_t d = make_dir(PF_ROOT_INO, "d"), e = make_dir(d, "e"), f = make_file(d, "f"), full = make_dir(PF_ROOT_INO, "full");
	make_file(full, "x");
	struct pf_attr shared = { .mode = 02777, .uid = 1, .gid = 77 };
	ck_ok(pf_setattr(POOL, d, PF_ATTR_MODE | PF_ATTR_UID | PF_ATTR_GID, &shared, NULL));
	uint64_t nr = nr_inodes();
	ck_err(pf_rename(POOL, d, "e", 1, PF_ROOT_INO, "full", 4, RENAME_WHITEOUT, (struct pf_cred){ 5, 6 }), -ENOTEMPTY);
	ck_err(pf_rename(POOL, d, "none", 4, PF_ROOT_INO, "y", 1, RENAME_WHITEOUT, (struct pf_cred){ 5, 6 }), -ENOENT);
	ck_assert_uint_eq(nr_inodes(), nr); /* none is left of those that failed */
	tick();
	ck_ok(pf_rename(POOL, d, "f", 1, PF_ROOT_INO, "g", 1, RENAME_WHITEOUT, (struct pf_cred){ 5, 6 }));
	ck_assert_uint_eq(look(PF_ROOT_INO, "g"), f);
	uint64_t w = look(d, "f");
	struct pf_attr a = attr_of(w);
	ck_assert(w != f && a.mode == S_IFCHR && a.nlink == 1 && !a.rdev_major && !a.rdev_minor);
	ck_assert(a.uid == 5 && a.gid == 77); /* the directory hands its group on */
	ck_assert_int_eq(a.btime.tv_sec, test_env_time(&sp->env).tv_sec);
	ck_assert_uint_eq(nr_inodes(), nr + 1);
	/* a directory leaves no directory, and what it replaces goes */
	ck_assert_uint_eq(attr_of(d).nlink, 3);
	ck_ok(pf_rename(POOL, d, "e", 1, d, "h", 1, RENAME_WHITEOUT | RENAME_NOREPLACE, (struct pf_cred){ 5, 6 }));
	ck_ok(pf_rename(POOL, PF_ROOT_INO, "g", 1, d, "f", 1, RENAME_WHITEOUT, (struct pf_cred){ 0, 0 }));
	ck_assert_uint_eq(attr_of(d).nlink, 3);
	remount();
	d = look(PF_ROOT_INO, "d");
	ck_assert_uint_eq(look(d, "h"), e);
	ck_assert_uint_eq(look(d, "f"), f);
	ck_assert_uint_eq(attr_of(look(d, "e")).mode, S_IFCHR);
	ck_assert_uint_eq(attr_of(look(PF_ROOT_INO, "g")).mode, S_IFCHR);
	ck_ok(unlink_name(d, "e"));
	ck_ok(unlink_name(PF_ROOT_INO, "g"));
}
END_TEST

START_TEST(noreplace_moves_when_free)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	ck_ok(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "g", RENAME_NOREPLACE));
	ck_assert_uint_eq(look(PF_ROOT_INO, "g"), f);
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), 0);
}
END_TEST

START_TEST(deep_moves_keep_the_tree_a_tree)
{
	uint64_t at = PF_ROOT_INO, top = 0;
	for (int k = 0; k < 60; k++) {
		at = make_dir(at, "d");
		top = top ? top : at;
	}
	ck_err(rename_name(PF_ROOT_INO, "d", at, "loop", 0), -EINVAL);
	/* the lower half moves up, then the upper half may go below it */
	uint64_t mid = top;
	for (int k = 1; k < 29; k++)
		mid = look(mid, "d");
	ck_ok(rename_name(mid, "d", PF_ROOT_INO, "low", 0));
	ck_ok(rename_name(PF_ROOT_INO, "d", at, "up", 0));
	remount();
	at = look(PF_ROOT_INO, "low");
	for (int k = 0; k < 30; k++)
		at = look(at, "d");
	ck_assert_uint_eq(look(at, "up"), top);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix rename");
	TCase *t = tcase_create("rename");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, moves_between_directories);
	tcase_add_test(t, replaces);
	tcase_add_test(t, refusals);
	tcase_add_test(t, same_file_is_left_alone);
	tcase_add_test(t, exchanges);
	tcase_add_test(t, whiteouts);
	tcase_add_test(t, noreplace_moves_when_free);
	tcase_add_test(t, deep_moves_keep_the_tree_a_tree);
	suite_add_tcase(s, t);
	return run_suite(s);
}
