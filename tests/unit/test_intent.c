/* SPDX-License-Identifier: MIT
 * What the intent log holds: each operation, then the fsync of something else, then a power cut; everything is as it was. Each on
 * one member and on two, and with what was not flushed lost or there. */
#include "unit/intent_util.h"

static const struct pf_cred root_cred = { 0, 0 };

/* What is synced instead. */
static uint64_t other(void)
{
	return make_file(PF_ROOT_INO, "something else");
}

/* -- names ---------------------------------------------------------------------------------------------------------- */
START_TEST(creations)
{
	struct pf_attr a;
	char name[256], target[4096];
	begin(_i);
	uint64_t o = other(), setgid = make(PF_ROOT_INO, "setgid", S_IFDIR | 02777);
	tick();
	make_file(setgid, "file");
	make_dir(setgid, "dir");
	ck_ok(pf_create(POOL, setgid, "chr", 3, S_IFCHR | 0600, root_cred, 4095, 1048575, &a));
	ck_ok(pf_create(POOL, setgid, "blk", 3, S_IFBLK | 0660, user, 8, 1, &a));
	tick();
	ck_ok(pf_create(POOL, PF_ROOT_INO, "fifo", 4, S_IFIFO | 0622, user, 0, 0, &a));
	ck_ok(pf_create(POOL, PF_ROOT_INO, "sock", 4, S_IFSOCK | 0777, user, 0, 0, &a));
	ck_ok(pf_create(POOL, PF_ROOT_INO, "suid", 4, S_IFREG | 07755, user, 0, 0, &a));
	memset(name, 'n', 255);
	ck_ok(pf_create(POOL, setgid, name, 255, S_IFREG, user, 0, 0, &a));
	ck_ok(pf_symlink(POOL, PF_ROOT_INO, "short", 5, "x", user, &a));
	memset(target, 't', 4095);
	target[4095] = 0;
	ck_ok(pf_symlink(POOL, setgid, "long", 4, target, root_cred, &a));
	sync_by_log(o);
	crash_and_compare(_i);
	/* numbers are not given out again */
	ck_assert_uint_gt(make_file(PF_ROOT_INO, "new"), a.ino);
	sync_by_log(o);
	crash_and_compare(_i);
	end();
}
END_TEST

START_TEST(links_and_removals)
{
	begin(_i);
	uint64_t o = other(), d = make_dir(PF_ROOT_INO, "d"), e = make_dir(d, "e"), f = make_file(d, "f");
	put(f, 0, "bytes", 5);
	ck_ok(pf_pool_sync(POOL));
	tick();
	ck_ok(link_name(f, PF_ROOT_INO, "second"));
	ck_ok(link_name(f, e, "third"));
	make_file(e, "gone");
	make_dir(e, "gone too");
	tick();
	ck_ok(unlink_name(e, "gone"));
	ck_ok(rmdir_name(e, "gone too"));
	ck_ok(unlink_name(d, "f"));
	sync_by_log(o);
	crash_and_compare(_i);
	ck_ok(unlink_name(look(look(PF_ROOT_INO, "d"), "e"), "third"));
	ck_ok(rmdir_name(look(PF_ROOT_INO, "d"), "e"));
	ck_ok(rmdir_name(PF_ROOT_INO, "d"));
	ck_ok(unlink_name(PF_ROOT_INO, "second"));
	sync_by_log(look(PF_ROOT_INO, "something else"));
	crash_and_compare(_i);
	ck_assert_uint_eq(look(PF_ROOT_INO, "second"), 0);
	end();
}
END_TEST

START_TEST(renames)
{
	begin(_i);
	uint64_t o = other(), a = make_dir(PF_ROOT_INO, "a"), b = make_dir(PF_ROOT_INO, "b"), d = make_dir(a, "d");
	uint64_t f = make_file(a, "f"), g = make_file(b, "g");
	put(f, 0, "of f", 4);
	put(g, 0, "of g!", 5);
	make_file(d, "within");
	make_dir(b, "empty");
	make_file(b, "replaced");
	ck_ok(pf_fsync(POOL, f));
	ck_ok(pf_fsync(POOL, g));
	tick();
	ck_ok(rename_name(a, "f", a, "f2", 0));
	ck_ok(rename_name(a, "f2", b, "replaced", 0));
	tick();
	ck_ok(rename_name(a, "d", b, "empty", 0)); /* over an empty directory */
	ck_ok(rename_name(b, "empty", PF_ROOT_INO, "d2", 1));
	sync_by_log(o);
	crash_and_compare(_i);
	b = look(PF_ROOT_INO, "b");
	d = look(PF_ROOT_INO, "d2");
	tick();
	ck_ok(rename_name(b, "g", b, "replaced", 2)); /* two files */
	ck_ok(rename_name(b, "g", PF_ROOT_INO, "d2", 2)); /* a file and a directory with something in it */
	ck_ok(rename_name(PF_ROOT_INO, "a", d, "within", 2));
	sync_by_log(look(PF_ROOT_INO, "something else"));
	crash_and_compare(_i);
	ck_assert_uint_eq(look(PF_ROOT_INO, "d2"), f);
	end();
}
END_TEST

/* -- attributes ----------------------------------------------------------------------------------------------------- */
START_TEST(each_attribute)
{
	struct pf_attr a, in = { .mode = 04751,
				 .uid = 77,
				 .gid = 78,
				 .atime = { 1111111111, 5 },
				 .mtime = { -3, 999999999 },
				 .ctime = { 1600000000, 17 } };
	static const unsigned masks[] = {
		PF_ATTR_MODE,  PF_ATTR_UID,	  PF_ATTR_GID,
		PF_ATTR_ATIME, PF_ATTR_MTIME,	  PF_ATTR_ATIME_NOW,
		PF_ATTR_CTIME, PF_ATTR_MTIME_NOW, PF_ATTR_MODE | PF_ATTR_UID | PF_ATTR_GID,
		PF_ATTR_UID | PF_ATTR_KILL_SUIDGID, PF_ATTR_ATIME | PF_ATTR_MTIME | PF_ATTR_CTIME,
	};
	begin(_i);
	uint64_t o = other();
	for (unsigned k = 0; k < sizeof(masks) / sizeof(masks[0]); k++) {
		char name[3][16];
		sprintf(name[0], "file%u", k);
		sprintf(name[1], "dir%u", k);
		sprintf(name[2], "link%u", k);
		make(PF_ROOT_INO, name[0], S_IFREG | 06777);
		make_dir(PF_ROOT_INO, name[1]);
		ck_ok(pf_symlink(POOL, PF_ROOT_INO, name[2], strlen(name[2]), "x", user, &a));
		if (k % 2)
			ck_ok(pf_pool_sync(POOL));
		tick();
		for (unsigned t = 0; t < 3; t++)
			ck_ok(pf_setattr(POOL, look(PF_ROOT_INO, name[t]), masks[k], &in, NULL));
		sync_by_log(o);
		crash_and_compare(_i);
		o = look(PF_ROOT_INO, "something else");
	}
	end();
}
END_TEST

START_TEST(extended_attributes)
{
	static const size_t lens[] = { 0, 1, 255, 3900, 4032, 4096, 8192, 65535, 65536 };
	begin(_i);
	uint64_t o = other(), f = make_file(PF_ROOT_INO, "f"), d = make_dir(PF_ROOT_INO, "d");
	uint8_t *p = pattern(1, 65536);
	ck_ok(pf_setxattr(POOL, f, "user.before", "value", 5, 0));
	ck_ok(pf_setxattr(POOL, f, "user.goes", p, 65536, 0));
	ck_ok(pf_pool_sync(POOL));
	for (unsigned k = 0; k < 9; k++) {
		char name[32];
		sprintf(name, "user.%u", k);
		tick();
		ck_ok(pf_setxattr(POOL, f, name, p, lens[k], 0));
		ck_ok(pf_setxattr(POOL, d, name, p + k, lens[8 - k], XATTR_CREATE));
	}
	ck_ok(pf_setxattr(POOL, f, "user.before", p, 9000, XATTR_REPLACE));
	ck_ok(pf_setxattr(POOL, f, "user.7", "short", 5, 0));
	ck_ok(pf_removexattr(POOL, f, "user.goes"));
	ck_ok(pf_removexattr(POOL, f, "user.8"));
	sync_by_log(o);
	crash_and_compare(_i);
	ck_err(pf_getxattr(POOL, f, "user.8", NULL, 0), -ENODATA);
	ck_assert_int_eq(pf_getxattr(POOL, f, "user.6", NULL, 0), 8192);
	free(p);
	end();
}
END_TEST

/* What a write takes away is gone whether the write is there after the crash or not; what is set afterwards stays (pitfalls 1.20). */
START_TEST(a_write_takes_set_id_bits_and_capability)
{
	struct pf_attr in = { .mode = 04755 };
	begin(_i);
	uint64_t o = other(), f = make(PF_ROOT_INO, "f", S_IFREG | 06755), g = make(PF_ROOT_INO, "g", S_IFREG | 06755);
	ck_ok(pf_setxattr(POOL, f, "security.capability", "cap", 3, 0));
	ck_ok(pf_pool_sync(POOL));
	ck_assert_int_eq(pf_write(POOL, f, 0, "x", 1, PF_WRITE_KILL_SUIDGID), 1);
	ck_assert_int_eq(pf_write(POOL, g, 0, "x", 1, PF_WRITE_KILL_SUIDGID), 1);
	ck_ok(pf_setattr(POOL, g, PF_ATTR_MODE, &in, NULL));
	uint32_t mode = attr_of(f).mode;
	ck_assert_uint_eq(mode & 04000, 0);
	sync_by_log(o);
	crash(_i);
	f = look(PF_ROOT_INO, "f");
	g = look(PF_ROOT_INO, "g");
	ck_assert_uint_eq(attr_of(f).mode, mode);
	ck_err(pf_getxattr(POOL, f, "security.capability", NULL, 0), -ENODATA);
	ck_assert_uint_eq(attr_of(g).mode, S_IFREG | 04755);
	ck_assert_int_eq(pf_write(POOL, g, 0, "y", 1, PF_WRITE_KILL_SUIDGID), 1);
	ck_ok(pf_setattr(POOL, g, PF_ATTR_MODE, &in, NULL));
	sync_by_log(g);
	crash_and_compare(_i);
	ck_assert_uint_eq(attr_of(look(PF_ROOT_INO, "g")).mode, S_IFREG | 04755);
	end();
}
END_TEST

/* -- files without a name ------------------------------------------------------------------------------------------- */
START_TEST(unnamed_files)
{
	struct pf_attr a, b, c;
	begin(_i);
	uint64_t o = other();
	uint8_t *p = pattern(3, 50000);
	ck_ok(pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0640, user, &a));
	ck_ok(pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0640, user, &b));
	ck_ok(pf_create_unnamed(POOL, PF_ROOT_INO, S_IFREG | 0640, user, &c));
	put(a.ino, 0, p, 50000);
	put(b.ino, 0, p, 20000);
	sync_by_log(b.ino);
	put(c.ino, 0, p, 20000);
	ck_ok(pf_setxattr(POOL, a.ino, "user.x", "y", 1, 0));
	tick();
	ck_ok(link_name(a.ino, PF_ROOT_INO, "named"));
	/* its data counts from the name on (rule 6), although only something else is synced */
	sync_by_log(o);
	crash_and_compare(_i);
	uint64_t f = look(PF_ROOT_INO, "named");
	ck_assert_uint_eq(f, a.ino);
	ck_bytes(f, 0, p, 50000);
	ck_err(pf_ref(POOL, b.ino, &b), -ESTALE);
	ck_err(pf_ref(POOL, c.ino, &c), -ESTALE);
	free(p);
	end();
}
END_TEST

START_TEST(an_open_file_without_its_last_name)
{
	begin(_i);
	uint64_t o = other(), f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	uint8_t *p = pattern(3, 300000);
	ck_ok(pf_pool_sync(POOL));
	settle();
	uint64_t before = free_blocks();
	put(f, 0, p, 300000);
	put(g, 0, p, 300000);
	sync_by_log(f);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	ck_ok(rename_name(PF_ROOT_INO, "something else", PF_ROOT_INO, "g", 0));
	put(f, 100000, "more", 4);
	put(g, 100000, "more", 4);
	sync_by_log(f);
	sync_by_log(g);
	sync_by_log(o);
	crash_and_compare(_i);
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), 0);
	ck_assert_uint_eq(look(PF_ROOT_INO, "g"), o);
	settle();
	ck_assert_uint_eq(free_blocks(), before);
	free(p);
	end();
}
END_TEST

/* -- data ----------------------------------------------------------------------------------------------------------- */
enum { FILE_BYTES = 600000 };

struct change {
	const char *name;
	void (*make)(uint64_t f, uint8_t *p);
};

static void write_within(uint64_t f, uint8_t *p)
{
	put(f, 5000, p, 100);
}
static void write_blocks(uint64_t f, uint8_t *p)
{
	put(f, 8192, p, 4096);
	put(f, 40960, p + 4096, 3 * 4096);
}
static void write_much(uint64_t f, uint8_t *p)
{
	put(f, 1000, p, 500000);
}
static void append_some(uint64_t f, uint8_t *p)
{
	put(f, attr_of(f).size_bytes, p, 777);
	put(f, attr_of(f).size_bytes, p, 5000);
}
static void write_behind_a_hole(uint64_t f, uint8_t *p)
{
	put(f, 5000000, p, 10);
}
static void to_nothing(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(truncate_to(f, 0));
}
static void to_nothing_and_again(uint64_t f, uint8_t *p)
{
	ck_ok(truncate_to(f, 0));
	put(f, 300000, p, 5000);
}
static void to_less(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(truncate_to(f, 12345));
}
static void to_less_and_more(uint64_t f, uint8_t *p)
{
	ck_ok(truncate_to(f, 100000));
	put(f, 200001, p, 3);
	ck_ok(truncate_to(f, 500000));
}
static void to_more(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(truncate_to(f, 7000001));
}
static void punch(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10000, 200000, 0));
}
static void zero(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE, 10000, 700000, 0));
}
static void zero_keep_size(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 10000, 900000, 0));
}
static void allocate(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(pf_fallocate(POOL, f, 0, 500000, 400000, 0));
}
static void allocate_keep_size(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_KEEP_SIZE, 1000000, 400000, 0));
}
static void write_into_allocated(uint64_t f, uint8_t *p)
{
	ck_ok(pf_fallocate(POOL, f, 0, 1000000, 400000, 0));
	put(f, 1000000 + 8192, p, 20000);
}
static void copy_within(uint64_t f, uint8_t *p)
{
	(void)p;
	ck_assert_int_eq(pf_copy_range(POOL, f, 100, f, 300000, 100000, 0), 100000);
}
static void only_times(uint64_t f, uint8_t *p)
{
	struct pf_attr in = { .mtime = { 12345, 6 } };
	put(f, 0, p, 10);
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MTIME, &in, NULL));
	ck_assert_int_eq(pf_write(POOL, f, 1, p, 10, PF_WRITE_KEEP_TIMES), 10);
}

static const struct change changes[] = {
	{ "a write within a block", write_within },
	{ "writes of blocks", write_blocks },
	{ "a write of many blocks", write_much },
	{ "appends", append_some },
	{ "a write behind a hole", write_behind_a_hole },
	{ "truncation to 0", to_nothing },
	{ "truncation to 0 and a write", to_nothing_and_again },
	{ "truncation to less", to_less },
	{ "truncation to less and to more", to_less_and_more },
	{ "truncation to more", to_more },
	{ "punching", punch },
	{ "zeroing", zero },
	{ "zeroing past the end", zero_keep_size },
	{ "preallocation", allocate },
	{ "preallocation past the end", allocate_keep_size },
	{ "a write into what was preallocated", write_into_allocated },
	{ "a copy within the file", copy_within },
	{ "a write and times", only_times },
};
#define NR_CHANGES (sizeof(changes) / sizeof(changes[0]))

/* Where the file was before: in no checkpoint, in the log, or in a checkpoint. */
enum { FRESH, LOGGED, CHECKPOINTED, NR_PASTS };

static uint64_t file_with_past(unsigned past, const char *name)
{
	uint64_t f = make_file(PF_ROOT_INO, name);
	uint8_t *p = pattern(past, FILE_BYTES);
	put(f, 0, p, FILE_BYTES);
	if (past == LOGGED)
		sync_by_log(f);
	if (past == CHECKPOINTED)
		ck_ok(pf_pool_sync(POOL));
	free(p);
	return f;
}

START_TEST(each_change_of_data)
{
	uint8_t *p = pattern(99, FILE_BYTES);
	for (unsigned past = 0; past < NR_PASTS; past++) {
		begin(_i);
		for (unsigned k = 0; k < NR_CHANGES; k++) {
			uint64_t f = file_with_past(past, "f");
			tick();
			changes[k].make(f, p);
			sync_by_log(f);
			uint64_t blocks = attr_of(f).blocks;
			crash_and_compare(_i);
			f = look(PF_ROOT_INO, "f");
			ck_assert_msg(attr_of(f).blocks == blocks, "%s: %ju blocks, were %ju", changes[k].name,
				      (uintmax_t)attr_of(f).blocks, (uintmax_t)blocks);
			/* a crash of the recovered pool, with nothing in the log, finds it as well */
			crash(_i);
			f = look(PF_ROOT_INO, "f");
			ck_ok(unlink_name(PF_ROOT_INO, "f"));
			pf_forget(POOL, f, 1);
		}
		end();
	}
	free(p);
}
END_TEST

/* The times of a write stay although nothing else of it does. */
START_TEST(times_of_a_write_that_is_given_up)
{
	struct pf_attr none = { 0 };
	uint8_t p[1] = { 1 };
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	sync_by_log(f);
	tick();
	put(f, 79856, p, 1);
	tick();
	ck_ok(pf_setattr(POOL, f, PF_ATTR_SIZE | PF_ATTR_KEEP_TIMES, &none, NULL));
	sync_by_log(f);
	crash_and_compare(_i);
	end();
}
END_TEST

/* Changes one after the other, each synced: the log has many records of one file, the last counts. */
START_TEST(many_changes_of_one_file)
{
	uint8_t *p = pattern(98, FILE_BYTES);
	for (unsigned past = 0; past < NR_PASTS; past++) {
		begin(_i);
		uint64_t f = file_with_past(past, "f");
		for (unsigned k = 0; k < 2 * NR_CHANGES; k++) {
			tick();
			changes[k * 7 % NR_CHANGES].make(f, p + k);
			sync_by_log(f);
		}
		crash_and_compare(_i);
		end();
	}
	free(p);
}
END_TEST

/* What was not synced is at a point of its own history: here the one before, or (all kept does not matter) not at all. */
START_TEST(unsynced_data_is_not_promised)
{
	uint8_t *p = pattern(97, FILE_BYTES), *q = pattern(CHECKPOINTED, FILE_BYTES);
	begin(_i);
	for (unsigned k = 0; k < NR_CHANGES; k++) {
		uint64_t f = file_with_past(CHECKPOINTED, "f"), o = make_file(PF_ROOT_INO, "o");
		changes[k].make(f, p);
		sync_by_log(o);
		crash(_i);
		f = look(PF_ROOT_INO, "f");
		ck_assert_msg(attr_of(f).size_bytes == FILE_BYTES, "%s: %ju bytes", changes[k].name,
			      (uintmax_t)attr_of(f).size_bytes);
		ck_bytes(f, 0, q, FILE_BYTES);
		ck_ok(unlink_name(PF_ROOT_INO, "f"));
		ck_ok(unlink_name(PF_ROOT_INO, "o"));
		pf_forget(POOL, f, 1);
	}
	free(p);
	free(q);
	end();
}
END_TEST

/* Rule 6: the same changes, unsynced, and then a rename over another file. */
START_TEST(a_rename_takes_the_data_with_it)
{
	uint8_t *p = pattern(96, FILE_BYTES);
	begin(_i);
	uint64_t o = other();
	for (unsigned k = 0; k < NR_CHANGES; k++) {
		uint64_t f = file_with_past(FRESH, "new");
		uint64_t old = make_file(PF_ROOT_INO, "f");
		put(old, 0, "the old one", 11);
		sync_by_log(old);
		tick();
		changes[k].make(f, p);
		ck_ok(rename_name(PF_ROOT_INO, "new", PF_ROOT_INO, "f", k % 3 ? 0 : 2));
		sync_by_log(o);
		crash_and_compare(_i);
		o = look(PF_ROOT_INO, "something else");
		ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
		ck_ok(unlink_name(PF_ROOT_INO, "f"));
		pf_forget(POOL, f, 1);
		if (look(PF_ROOT_INO, "new"))
			ck_ok(unlink_name(PF_ROOT_INO, "new"));
	}
	free(p);
	end();
}
END_TEST

START_TEST(a_copy_into_another_file)
{
	begin(_i);
	uint64_t f = file_with_past(LOGGED, "f"), g = file_with_past(CHECKPOINTED, "g");
	ck_assert_int_eq(pf_copy_range(POOL, f, 4096, g, 8192, 300000, 0), 300000);
	sync_by_log(g);
	crash_and_compare(_i);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("intent");
	TCase *tc = tcase_create("records");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, creations, 0, NR_SCENES);
	tcase_add_loop_test(tc, links_and_removals, 0, NR_SCENES);
	tcase_add_loop_test(tc, renames, 0, NR_SCENES);
	tcase_add_loop_test(tc, each_attribute, 0, NR_SCENES);
	tcase_add_loop_test(tc, extended_attributes, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_write_takes_set_id_bits_and_capability, 0, NR_SCENES);
	tcase_add_loop_test(tc, unnamed_files, 0, NR_SCENES);
	tcase_add_loop_test(tc, an_open_file_without_its_last_name, 0, NR_SCENES);
	tcase_add_loop_test(tc, each_change_of_data, 0, NR_SCENES);
	tcase_add_loop_test(tc, times_of_a_write_that_is_given_up, 0, NR_SCENES);
	tcase_add_loop_test(tc, many_changes_of_one_file, 0, NR_SCENES);
	tcase_add_loop_test(tc, unsynced_data_is_not_promised, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_rename_takes_the_data_with_it, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_copy_into_another_file, 0, NR_SCENES);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
