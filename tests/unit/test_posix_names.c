/* SPDX-License-Identifier: MIT
 * posix.h, names: what can be made, looked up and removed, and what is refused. */
#include "unit/posix_util.h"

#include <dirent.h>

START_TEST(created_file_is_found)
{
	struct pf_attr a, b;
	tick();
	ck_ok(pf_create(POOL, PF_ROOT_INO, "file", 4, S_IFREG | 04751, user, 0, 0, &a));
	ck_ok(pf_lookup(POOL, PF_ROOT_INO, "file", 4, &b));
	ck_assert_uint_eq(a.ino, b.ino);
	ck_assert_uint_ne(a.ino, PF_ROOT_INO);
	ck_assert_uint_eq(b.mode, S_IFREG | 04751);
	ck_assert_uint_eq(b.nlink, 1);
	ck_assert_uint_eq(b.uid, 1000);
	ck_assert_uint_eq(b.gid, 100);
	ck_assert_uint_eq(b.size_bytes, 0);
	ck_assert_uint_eq(b.blocks, 0);
	struct timespec now = test_env_time(&sp->env);
	ck_assert_int_eq(b.btime.tv_sec, now.tv_sec);
	ck_assert_int_eq(b.mtime.tv_nsec, now.tv_nsec);
	ck_assert_int_eq(attr_of(PF_ROOT_INO).mtime.tv_sec, now.tv_sec);
}
END_TEST

START_TEST(every_kind_survives_a_remount)
{
	static const uint32_t kinds[] = { S_IFREG, S_IFDIR, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK };
	struct pf_attr a;
	for (unsigned k = 0; k < 6; k++) {
		char name[2] = { (char)('a' + k), 0 };
		ck_ok(pf_create(POOL, PF_ROOT_INO, name, 1, kinds[k] | 0640, user, 259, 65537, &a));
	}
	ck_ok(pf_symlink(POOL, PF_ROOT_INO, "link", 4, "../some/where", user, &a));
	remount();
	for (unsigned k = 0; k < 6; k++) {
		char name[2] = { (char)('a' + k), 0 };
		ck_ok(pf_lookup(POOL, PF_ROOT_INO, name, 1, &a));
		ck_assert_uint_eq(a.mode, kinds[k] | 0640);
		if (kinds[k] == S_IFCHR || kinds[k] == S_IFBLK) {
			ck_assert_uint_eq(a.rdev_major, 259);
			ck_assert_uint_eq(a.rdev_minor, 65537);
		}
	}
	char target[64];
	ck_assert_int_eq(pf_readlink(POOL, look(PF_ROOT_INO, "link"), target, sizeof(target)), 13);
	ck_assert_str_eq(target, "../some/where");
}
END_TEST

START_TEST(dots_are_looked_up)
{
	uint64_t a = make_dir(PF_ROOT_INO, "a"), b = make_dir(a, "b");
	ck_assert_uint_eq(look(b, "."), b);
	ck_assert_uint_eq(look(b, ".."), a);
	ck_assert_uint_eq(look(PF_ROOT_INO, ".."), PF_ROOT_INO);
}
END_TEST

START_TEST(bad_names_are_refused)
{
	struct pf_attr a;
	char name[300];
	memset(name, 'n', sizeof(name));
	uint64_t dir = make_dir(PF_ROOT_INO, "dir"), file = make_file(PF_ROOT_INO, "file");
	ck_err(pf_create(POOL, dir, name, 256, S_IFREG, user, 0, 0, &a), -ENAMETOOLONG);
	ck_err(pf_symlink(POOL, dir, name, 256, "x", user, &a), -ENAMETOOLONG);
	ck_err(pf_link(POOL, file, dir, name, 256, &a), -ENAMETOOLONG);
	ck_err(pf_lookup(POOL, dir, name, 256, &a), -ENAMETOOLONG);
	ck_err(pf_unlink(POOL, dir, name, 256), -ENAMETOOLONG);
	ck_err(pf_rmdir(POOL, dir, name, 256), -ENAMETOOLONG);
	ck_err(pf_rename(POOL, PF_ROOT_INO, "file", 4, dir, name, 256, 0, (struct pf_cred){ 0 }), -ENAMETOOLONG);
	ck_err(pf_rename(POOL, PF_ROOT_INO, name, 256, dir, "x", 1, 0, (struct pf_cred){ 0 }), -ENAMETOOLONG);
	static const char *const dots[] = { "", ".", ".." };
	for (unsigned k = 0; k < 3; k++) {
		ck_err(pf_create(POOL, dir, dots[k], k, S_IFREG, user, 0, 0, &a), -EINVAL);
		ck_err(pf_symlink(POOL, dir, dots[k], k, "x", user, &a), -EINVAL);
		ck_err(pf_link(POOL, file, dir, dots[k], k, &a), -EINVAL);
		ck_err(pf_unlink(POOL, dir, dots[k], k), -EINVAL);
		ck_err(pf_rmdir(POOL, dir, dots[k], k), -EINVAL);
		ck_err(pf_rename(POOL, PF_ROOT_INO, "file", 4, dir, dots[k], k, 0, (struct pf_cred){ 0 }), -EINVAL);
		ck_err(pf_rename(POOL, dir, dots[k], k, PF_ROOT_INO, "x", 1, 0, (struct pf_cred){ 0 }), -EINVAL);
	}
	/* the longest is fine, and bytes mean nothing */
	ck_ok(pf_create(POOL, dir, name, 255, S_IFREG, user, 0, 0, &a));
	ck_ok(pf_create(POOL, dir, "\x01\xff \n", 4, S_IFREG, user, 0, 0, &a));
	remount();
	ck_ok(pf_lookup(POOL, look(PF_ROOT_INO, "dir"), name, 255, &a));
	ck_ok(pf_lookup(POOL, look(PF_ROOT_INO, "dir"), "\x01\xff \n", 4, &a));
	ck_err(pf_lookup(POOL, look(PF_ROOT_INO, "dir"), name, 254, &a), -ENOENT);
}
END_TEST

START_TEST(symlink_targets)
{
	struct pf_attr a;
	char target[4100], back[4100];
	memset(target, 't', sizeof(target));
	target[4096] = 0;
	ck_err(pf_symlink(POOL, PF_ROOT_INO, "s", 1, target, user, &a), -ENAMETOOLONG);
	for (size_t len = 1; len <= 4095; len = len < 3400   ? len * 3
						: len < 3600 ? len + 30
						: len < 4095 ? 4095
							     : 4096) {
		char name[32];
		sprintf(name, "s%zu", len);
		target[len] = 0;
		ck_ok(pf_symlink(POOL, PF_ROOT_INO, name, strlen(name), target, user, &a));
		ck_assert_uint_eq(a.size_bytes, len);
		ck_assert_int_eq(pf_readlink(POOL, a.ino, back, sizeof(back)), (int)len);
		ck_assert_str_eq(back, target);
		target[len] = 't';
	}
	uint64_t file = make_file(PF_ROOT_INO, "file");
	ck_err(pf_readlink(POOL, file, back, sizeof(back)), -EINVAL);
}
END_TEST

START_TEST(what_exists_is_not_made_again)
{
	struct pf_attr a;
	uint64_t file = make_file(PF_ROOT_INO, "x");
	ck_err(pf_create(POOL, PF_ROOT_INO, "x", 1, S_IFREG, user, 0, 0, &a), -EEXIST);
	ck_err(pf_create(POOL, PF_ROOT_INO, "x", 1, S_IFDIR, user, 0, 0, &a), -EEXIST);
	ck_err(pf_symlink(POOL, PF_ROOT_INO, "x", 1, "y", user, &a), -EEXIST);
	ck_err(pf_link(POOL, file, PF_ROOT_INO, "x", 1, &a), -EEXIST);
	ck_err(pf_create(POOL, file, "y", 1, S_IFREG, user, 0, 0, &a), -ENOTDIR);
	ck_err(pf_lookup(POOL, file, "y", 1, &a), -ENOTDIR);
	ck_err(pf_lookup(POOL, PF_ROOT_INO, "y", 1, &a), -ENOENT);
}
END_TEST

START_TEST(removing)
{
	uint64_t dir = make_dir(PF_ROOT_INO, "dir");
	make_file(dir, "file");
	ck_err(unlink_name(PF_ROOT_INO, "none"), -ENOENT);
	ck_err(rmdir_name(PF_ROOT_INO, "none"), -ENOENT);
	ck_err(unlink_name(PF_ROOT_INO, "dir"), -EISDIR);
	ck_err(rmdir_name(dir, "file"), -ENOTDIR);
	ck_err(rmdir_name(PF_ROOT_INO, "dir"), -ENOTEMPTY);
	ck_assert_uint_eq(attr_of(PF_ROOT_INO).nlink, 3);
	ck_ok(unlink_name(dir, "file"));
	ck_ok(rmdir_name(PF_ROOT_INO, "dir"));
	ck_assert_uint_eq(attr_of(PF_ROOT_INO).nlink, 2);
	ck_assert_uint_eq(look(PF_ROOT_INO, "dir"), 0);
	/* the removed directory is still held, but nothing can be made in it */
	struct pf_attr a;
	ck_assert_uint_eq(attr_of(dir).nlink, 0);
	ck_err(pf_create(POOL, dir, "late", 4, S_IFREG, user, 0, 0, &a), -ENOENT);
	pf_forget(POOL, dir, 1);
}
END_TEST

START_TEST(hard_links)
{
	uint64_t dir = make_dir(PF_ROOT_INO, "dir"), file = make_file(PF_ROOT_INO, "a");
	put(file, 0, "content", 7);
	ck_err(link_name(dir, PF_ROOT_INO, "d2"), -EPERM);
	tick();
	ck_ok(link_name(file, dir, "b"));
	ck_assert_uint_eq(attr_of(file).nlink, 2);
	ck_assert_int_eq(attr_of(file).ctime.tv_sec, test_env_time(&sp->env).tv_sec);
	ck_ok(unlink_name(PF_ROOT_INO, "a"));
	ck_assert_uint_eq(attr_of(file).nlink, 1);
	remount();
	file = look(look(PF_ROOT_INO, "dir"), "b");
	ck_assert_uint_ne(file, 0);
	ck_bytes(file, 0, "content", 7);
	ck_assert_uint_eq(look(PF_ROOT_INO, "a"), 0);
}
END_TEST

START_TEST(set_gid_directories_hand_their_group_on)
{
	struct pf_attr in = { .mode = 02775, .gid = 77 }, a;
	uint64_t dir = make_dir(PF_ROOT_INO, "dir");
	ck_ok(pf_setattr(POOL, dir, PF_ATTR_MODE | PF_ATTR_GID, &in, NULL));
	ck_ok(pf_create(POOL, dir, "f", 1, S_IFREG | 0644, user, 0, 0, &a));
	ck_assert_uint_eq(a.gid, 77);
	ck_assert_uint_eq(a.mode, S_IFREG | 0644);
	ck_ok(pf_create(POOL, dir, "d", 1, S_IFDIR | 0755, user, 0, 0, &a));
	ck_assert_uint_eq(a.gid, 77);
	ck_assert_uint_eq(a.mode, S_IFDIR | 02755);
	ck_ok(pf_symlink(POOL, dir, "s", 1, "t", user, &a));
	ck_assert_uint_eq(a.gid, 77);
	ck_assert_uint_eq(a.uid, 1000);
}
END_TEST

START_TEST(references)
{
	struct pf_attr a;
	uint64_t file = make_file(PF_ROOT_INO, "file");
	ck_assert_uint_eq(look(PF_ROOT_INO, "file"), file);
	ck_ok(unlink_name(PF_ROOT_INO, "file"));
	ck_ok(pf_ref(POOL, file, &a)); /* three now */
	ck_assert_uint_eq(a.nlink, 0);
	pf_forget(POOL, file, 2);
	ck_ok(pf_getattr(POOL, file, &a));
	put(file, 5000, "still", 5);
	ck_bytes(file, 5000, "still", 5);
	pf_forget(POOL, file, 1);
	ck_err(pf_ref(POOL, file, &a), -ESTALE);
	ck_err(pf_ref(POOL, 123456789, &a), -ESTALE);
}
END_TEST

START_TEST(unnamed_files)
{
	struct pf_attr a;
	ck_ok(pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0600, user, &a));
	uint64_t kept = a.ino;
	ck_assert_uint_eq(a.nlink, 0);
	put(kept, 0, "kept", 4);
	ck_ok(pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0600, user, &a));
	uint64_t lost = a.ino;
	put(lost, 0, "lost", 4);
	ck_ok(link_name(kept, PF_ROOT_INO, "kept"));
	ck_assert_uint_eq(attr_of(kept).nlink, 1);
	remount();
	ck_bytes(look(PF_ROOT_INO, "kept"), 0, "kept", 4);
	ck_err(pf_ref(POOL, lost, &a), -ESTALE);
}
END_TEST

START_TEST(inode_numbers_are_never_reused)
{
	uint64_t last = PF_ROOT_INO;
	for (int k = 0; k < 50; k++) {
		uint64_t ino = make_file(PF_ROOT_INO, "again");
		ck_assert_uint_gt(ino, last);
		last = ino;
		ck_ok(unlink_name(PF_ROOT_INO, "again"));
		pf_forget(POOL, ino, 1);
		if (k % 10 == 9)
			remount();
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix names");
	TCase *t = tcase_create("names");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, created_file_is_found);
	tcase_add_test(t, every_kind_survives_a_remount);
	tcase_add_test(t, dots_are_looked_up);
	tcase_add_test(t, bad_names_are_refused);
	tcase_add_test(t, symlink_targets);
	tcase_add_test(t, what_exists_is_not_made_again);
	tcase_add_test(t, removing);
	tcase_add_test(t, hard_links);
	tcase_add_test(t, set_gid_directories_hand_their_group_on);
	tcase_add_test(t, references);
	tcase_add_test(t, unnamed_files);
	tcase_add_test(t, inode_numbers_are_never_reused);
	suite_add_tcase(s, t);
	return run_suite(s);
}
