/* SPDX-License-Identifier: MIT
 * The codec of log records: what is packed comes back, at every limit; and their text. */
#include "record_util.h"
#include "unit/run_suite.h"

/* -- round trips ------------------------------------------------------------------------------------------------------- */
START_TEST(round_trip_create)
{
	const sample_fn kinds[] = { sample_create, sample_symlink, sample_device };
	struct pf_record r = kinds[_i]();
	ck_good(&r);
	ck_assert_uint_eq(out.create.parent, 3);
	ck_assert_uint_eq(out.create.data_id, r.create.data_id);
	ck_assert_uint_eq(out.create.mode, r.create.mode);
	ck_assert_uint_eq(out.create.uid, r.create.uid);
	ck_assert_uint_eq(out.create.gid, r.create.gid);
	ck_assert_uint_eq(out.create.rdev_major, r.create.rdev_major);
	ck_assert_uint_eq(out.create.rdev_minor, r.create.rdev_minor);
	ck_bytes(out.create.name, r.create.name);
	ck_bytes(out.create.target, r.create.target);
}
END_TEST

START_TEST(round_trip_create_kinds)
{
	const uint32_t types[] = { S_IFDIR, S_IFIFO, S_IFSOCK, S_IFCHR };
	for (unsigned i = 0; i < 4; i++) {
		struct pf_record r = sample_create();
		r.create.mode = types[i] | 07777;
		r.create.data_id = 0;
		ck_good(&r);
	}
	struct pf_record r = sample_create();
	r.create.name.len = 0; /* O_TMPFILE */
	ck_good(&r);
	ck_assert_uint_eq(out.create.name.len, 0);
}
END_TEST

START_TEST(round_trip_names)
{
	struct pf_record l = sample_link(), d = sample_remove(), r = sample_rename();
	ck_good(&l);
	ck_assert_uint_eq(out.name.parent, 5);
	ck_bytes(out.name.name, text("second"));
	ck_good(&d);
	ck_assert_uint_eq(out.name.parent, 6);
	ck_bytes(out.name.name, text("gone"));
	ck_good(&r);
	ck_assert_uint_eq(out.rename.old_parent, 7);
	ck_assert_uint_eq(out.rename.new_parent, 8);
	ck_assert_uint_eq(out.rename.target, 32);
	ck_assert_uint_eq(out.rename.flags, PF_RECORD_RENAME_EXCHANGE);
	ck_bytes(out.rename.old_name, text("old"));
	ck_bytes(out.rename.new_name, text("newer"));
	r.rename.flags = 0;
	ck_good(&r); /* over another */
	r.rename.target = 0;
	ck_good(&r);
	ck_assert_uint_eq(out.rename.flags, 0);
	ck_assert_uint_eq(out.rename.target, 0);
}
END_TEST

START_TEST(round_trip_setattr)
{
	/* one bit each, all, all but one: what is not set must not come along */
	for (unsigned mask = 1; mask < 64; mask++) {
		struct pf_record r = sample_setattr();
		r.setattr.mask = mask;
		build(&r);
		ck_assert_int_eq(unpack_exact(bytes, len), 0);
		ck_assert_uint_eq(out.ino, 41);
		ck_assert_uint_eq(out.setattr.mask, mask);
		ck_assert_uint_eq(out.setattr.mode, mask & PF_SET_MODE ? 0640 : 0);
		ck_assert_uint_eq(out.setattr.uid, mask & PF_SET_UID ? 500 : 0);
		ck_assert_uint_eq(out.setattr.gid, mask & PF_SET_GID ? 501 : 0);
		ck_assert_int_eq(out.setattr.atime.tv_sec, mask & PF_SET_ATIME ? 111 : 0);
		ck_assert_int_eq(out.setattr.atime.tv_nsec, mask & PF_SET_ATIME ? 1 : 0);
		ck_assert_int_eq(out.setattr.mtime.tv_sec, mask & PF_SET_MTIME ? 222 : 0);
		ck_assert_int_eq(out.setattr.mtime.tv_nsec, mask & PF_SET_MTIME ? 2 : 0);
		ck_assert_int_eq(out.time.tv_sec, mask & PF_SET_CTIME ? then.tv_sec : 0);
		ck_assert_int_eq(out.time.tv_nsec, mask & PF_SET_CTIME ? then.tv_nsec : 0);
	}
	struct pf_record r = sample_setattr();
	r.setattr.mode |= S_IFDIR; /* of an inode as it is in memory: only permissions go in */
	ck_good(&r);
	ck_assert_uint_eq(out.setattr.mode, 0640);
}
END_TEST

START_TEST(round_trip_xattr)
{
	struct pf_record r = sample_xattr();
	ck_good(&r);
	ck_assert(!out.xattr.remove);
	ck_bytes(out.xattr.name, text("user.x"));
	ck_bytes(out.xattr.value, text("a value"));
	r.xattr.name = text("user.a/b"); /* not a directory entry */
	ck_good(&r);
	r.xattr.remove = true;
	r.xattr.value = (struct pf_record_bytes){ 0 };
	ck_good(&r);
	ck_assert(out.xattr.remove);
	ck_bytes(out.xattr.name, text("user.a/b"));
	ck_assert_uint_eq(out.xattr.value.len, 0);
}
END_TEST

START_TEST(round_trip_file)
{
	struct pf_record r = sample_file();
	struct pf_record_range range;
	uint32_t pos = 0;
	ck_good(&r);
	ck_assert_uint_eq(out.file.data_id, 62);
	ck_assert_uint_eq(out.file.size, 123456);
	ck_assert_int_eq(out.file.mtime.tv_sec, 333);
	ck_assert_int_eq(out.file.mtime.tv_nsec, 3);
	ck_assert_uint_eq(out.file.nr_ranges, 4);

	ck_assert(pf_record_next_range(&out, &pos, &range));
	ck_assert(range.kind == PF_RANGE_HOLE && range.start == 0 && range.nr == 10 && !range.addr && !range.crc);
	ck_assert(pf_record_next_range(&out, &pos, &range));
	ck_assert(range.kind == PF_RANGE_BLOCKS && range.start == 10 && range.nr == 3 && range.addr == pf_addr_make(1, 4711));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_eq(pf_get64(range.crc[i]), crc_of(10 + i));
	ck_assert(pf_record_next_range(&out, &pos, &range));
	ck_assert(range.kind == PF_RANGE_UNWRITTEN && range.start == 20 && range.nr == 300 &&
		  range.addr == pf_addr_make(0, 999) && !range.crc);
	ck_assert(pf_record_next_range(&out, &pos, &range));
	ck_assert(range.kind == PF_RANGE_BLOCKS && range.start == 320 && range.nr == 1 && range.addr == pf_addr_make(31, 1));
	ck_assert_uint_eq(pf_get64(range.crc[0]), crc_of(320));
	ck_assert(!pf_record_next_range(&out, &pos, &range));
	ck_assert(!pf_record_next_range(&out, &pos, &range));
	ck_assert_uint_eq(pos, out.file.ranges_bytes);

	begin_file(); /* size and times only */
	ck_good(&file);
	ck_assert_uint_eq(len, sizeof(struct pf_disk_record_file));
	pos = 0;
	ck_assert(!pf_record_next_range(&out, &pos, &range));
}
END_TEST

/* The bytes are what FORMAT says: one record of each shape, spelled out. */
START_TEST(bytes_on_disk)
{
	static const uint8_t link_bytes[] = {
		48, 0, 0, 0, 2, 0, 0, 0,                    /* length, type */
		5, 0, 0, 0, 0, 0, 0, 0,                     /* parent */
		21, 0, 0, 0, 0, 0, 0, 0,                    /* ino */
		0x01, 0xf1, 0x53, 0x65, 0, 0, 0, 0,         /* seconds */
		0x15, 0xcd, 0x5b, 0x07, 6, 0, 0, 0,         /* nanoseconds, length of the name */
		's', 'e', 'c', 'o', 'n', 'd', 0, 0,
	};
	struct pf_record r = sample_link();
	build(&r);
	ck_assert_uint_eq(len, sizeof(link_bytes));
	ck_assert_mem_eq(bytes, link_bytes, len);

	static const uint8_t range_bytes[] = {
		10, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x67, 0x12, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0,
	};
	struct pf_record_range range = { .start = 10, .nr = 3, .kind = PF_RANGE_BLOCKS, .addr = pf_addr_make(1, 4711) };
	ck_assert_uint_eq(pf_record_range_pack(&range, bytes), sizeof(range_bytes));
	ck_assert_mem_eq(bytes, range_bytes, sizeof(range_bytes));
}
END_TEST

/* -- limits ------------------------------------------------------------------------------------------------------------ */
START_TEST(names_of_all_lengths)
{
	for (uint32_t n = 1; n <= PF_MAX_NAME_BYTES; n++) {
		struct pf_record_bytes name = letters(n);
		struct pf_record r = sample_create();
		r.create.name = name;
		ck_good(&r);
		ck_bytes(out.create.name, name);
		r = sample_remove();
		r.name.name = name;
		ck_good(&r);
		ck_bytes(out.name.name, name);
		r = sample_rename();
		r.rename.old_name = name;
		r.rename.new_name = letters(PF_MAX_NAME_BYTES + 1 - n);
		ck_good(&r);
		ck_bytes(out.rename.old_name, name);
		ck_assert_uint_eq(out.rename.new_name.len, PF_MAX_NAME_BYTES + 1 - n);
		r = sample_xattr();
		r.xattr.name = name;
		ck_good(&r);
		ck_bytes(out.xattr.name, name);
		ck_bytes(out.xattr.value, text("a value"));
	}
}
END_TEST

START_TEST(targets_and_values_of_all_lengths)
{
	for (uint32_t n = 1; n <= PF_MAX_SYMLINK_BYTES; n += n < 40 || n > 4050 ? 1 : 13) {
		struct pf_record r = sample_symlink();
		r.create.target = letters(n);
		ck_good(&r);
		ck_bytes(out.create.target, letters(n));
		ck_bytes(out.create.name, text("name"));
	}
	struct pf_record longest = sample_symlink();
	longest.create.target = letters(PF_MAX_SYMLINK_BYTES);
	ck_good(&longest);
	for (uint32_t n = 0; n <= PF_MAX_XATTR_BYTES; n += n < 40 || n > PF_MAX_XATTR_BYTES - 17 ? 1 : 511) {
		struct pf_record r = sample_xattr();
		r.xattr.value = letters(n);
		ck_good(&r);
		ck_bytes(out.xattr.value, letters(n));
		ck_bytes(out.xattr.name, text("user.x"));
	}
	struct pf_record largest = sample_xattr();
	largest.xattr.value = letters(PF_MAX_XATTR_BYTES);
	ck_good(&largest);
}
END_TEST

START_TEST(many_ranges)
{
	struct pf_record_range range;
	begin_file();
	uint64_t start = 0;
	for (unsigned i = 0; i < 3000; i++) {
		enum pf_record_range_kind kind = i % 3;
		uint64_t nr = 1 + i % 37;
		add_range(kind, start, nr, kind == PF_RANGE_HOLE ? 0 : pf_addr_make(i % 32, 1 + start));
		start += nr + i % 2; /* touching or not */
	}
	ck_good(&file);
	ck_assert_uint_eq(out.file.nr_ranges, 3000);
	uint32_t pos = 0;
	start = 0;
	for (unsigned i = 0; i < 3000; i++) {
		ck_assert(pf_record_next_range(&out, &pos, &range));
		ck_assert_uint_eq(range.kind, i % 3);
		ck_assert_uint_eq(range.start, start);
		ck_assert_uint_eq(range.nr, 1 + i % 37);
		if (range.kind == PF_RANGE_BLOCKS)
			ck_assert_uint_eq(pf_get64(range.crc[range.nr - 1]), crc_of(start + range.nr - 1));
		start += range.nr + i % 2;
	}
	ck_assert(!pf_record_next_range(&out, &pos, &range));
}
END_TEST

START_TEST(largest_numbers)
{
	struct pf_record r = sample_create();
	r.ino = r.create.parent = r.create.data_id = PF_KEY_FIELD_MAX;
	r.create.uid = r.create.gid = UINT32_MAX;
	r.time = (struct timespec){ INT64_MIN, NSEC_MAX };
	ck_good(&r);
	ck_assert_uint_eq(out.create.uid, UINT32_MAX);
	r = sample_device();
	r.create.rdev_major = r.create.rdev_minor = UINT32_MAX;
	r.time = (struct timespec){ INT64_MAX, 0 };
	ck_good(&r);
	ck_assert_uint_eq(out.create.rdev_minor, UINT32_MAX);
	r = sample_rename();
	r.rename.target = PF_KEY_FIELD_MAX;
	ck_good(&r);
	begin_file();
	file.file.size = (uint64_t)PF_MAX_FILE_BYTES;
	file.file.mtime = (struct timespec){ -1, NSEC_MAX };
	add_range(PF_RANGE_UNWRITTEN, PF_MAX_FILE_BLOCKS - 9, 9, pf_addr_make(PF_MAX_MEMBERS - 1, PF_MAX_MEMBER_BLOCKS - 9));
	add_range(PF_RANGE_HOLE, PF_MAX_FILE_BLOCKS, PF_KEY_FIELD_MAX - PF_MAX_FILE_BLOCKS, 0);
	ck_good(&file);
	ck_assert_int_eq(out.file.mtime.tv_sec, -1);
	begin_file(); /* all of a file, gone */
	add_range(PF_RANGE_HOLE, 0, PF_KEY_FIELD_MAX, 0);
	ck_good(&file);
	begin_file();
	add_range(PF_RANGE_BLOCKS, PF_MAX_FILE_BLOCKS - 4096, 4096, pf_addr_make(0, 1));
	ck_good(&file);
}
END_TEST

/* -- text -------------------------------------------------------------------------------------------------------------- */
START_TEST(texts)
{
	static const char *const expected[NR_SAMPLES] = {
		"create inode 17 in 3 \"name\" mode 0104755 uid 1000 gid 1001 data 18 time 1700000001.123456789",
		"create inode 17 in 3 \"name\" mode 0120777 uid 1000 gid 1001 time 1700000001.123456789 target \"../target\"",
		"create inode 19 in 3 \"sda\" mode 060600 uid 4 gid 5 device 8:17 time 1700000001.123456789",
		"link inode 21 in 5 \"second\" time 1700000001.123456789",
		"remove inode 22 in 6 \"gone\" time 1700000001.123456789",
		"rename inode 31 from 7 \"old\" to 8 \"newer\" exchanged with inode 32 time 1700000001.123456789",
		"setattr inode 41 mode 0640 uid 500 gid 501 atime 111.000000001 mtime 222.000000002 ctime 1700000001.123456789",
		"xattr inode 51 set \"user.x\" time 1700000001.123456789 length 7 value 612076616c7565",
		"file inode 61 data 62 size 123456 ranges 4 mtime 333.000000003 ctime 1700000001.123456789",
	};
	static const char *const lines[] = {
		"hole [0, 10)",
		"blocks [10, 13) at 1:4711 crc 0x2e2ac13ef8e8d8d2...",
		"unwritten [20, 320) at 0:999",
		"blocks [320, 321) at 31:1 crc 0xc55827df1d1b1a40",
	};
	char buf[PF_RECORD_TEXT_BYTES];
	for (unsigned i = 0; i < NR_SAMPLES; i++) {
		struct pf_record r = samples[i]();
		build(&r);
		ck_assert_str_eq(pf_record_to_text(bytes, len, buf, sizeof(buf)), expected[i]);
	}
	struct pf_record_range range = { .nr = PF_KEY_FIELD_MAX - 5, .start = 5 };
	uint32_t pos = 0;
	ck_assert_str_eq(pf_record_range_to_text(&range, buf, sizeof(buf)), "hole [5, end)");
	ck_assert_int_eq(unpack_exact(bytes, len), 0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(pf_record_next_range(&out, &pos, &range));
		ck_assert_str_eq(pf_record_range_to_text(&range, buf, sizeof(buf)), lines[i]);
	}
	bytes[4] = 9;
	ck_assert_ptr_nonnull(strstr(pf_record_to_text(bytes, len, buf, sizeof(buf)), "INVALID: e00000000900"));
	ck_assert_str_eq(pf_record_type_to_text(PF_RECORD_RENAME, buf, sizeof(buf)), "rename");
	ck_assert_str_eq(pf_record_type_to_text(77, buf, sizeof(buf)), "type 77");
	ck_assert_str_eq(pf_record_type_to_text(0, buf, sizeof(buf)), "type 0");
}
END_TEST

START_TEST(texts_have_room)
{
	char worst[255], buf[PF_RECORD_TEXT_BYTES], small[10];
	memset(worst, 1, sizeof(worst)); /* four characters each */
	struct pf_record r = sample_rename();
	r.rename.old_name = r.rename.new_name = (struct pf_record_bytes){ worst, 255 };
	r.ino = PF_KEY_FIELD_MAX;
	r.rename.old_parent = r.rename.new_parent = r.rename.target = PF_KEY_FIELD_MAX - 1;
	r.time = (struct timespec){ INT64_MIN, NSEC_MAX };
	build(&r);
	pf_record_to_text(bytes, len, buf, sizeof(buf));
	ck_assert_str_eq(buf + strlen(buf) - 10, ".999999999"); /* to the end */
	r = sample_symlink();
	r.create.target = letters(PF_MAX_SYMLINK_BYTES);
	build(&r);
	ck_assert_uint_eq(strlen(pf_record_to_text(bytes, len, buf, sizeof(buf))), sizeof(buf) - 1);
	ck_assert_str_eq(pf_record_to_text(bytes, len, small, sizeof(small)), "create in");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("record");
	TCase *tc = tcase_create("codec");
	tcase_add_loop_test(tc, round_trip_create, 0, 3);
	tcase_add_test(tc, round_trip_create_kinds);
	tcase_add_test(tc, round_trip_names);
	tcase_add_test(tc, round_trip_setattr);
	tcase_add_test(tc, round_trip_xattr);
	tcase_add_test(tc, round_trip_file);
	tcase_add_test(tc, bytes_on_disk);
	tcase_add_test(tc, names_of_all_lengths);
	tcase_add_test(tc, targets_and_values_of_all_lengths);
	tcase_add_test(tc, many_ranges);
	tcase_add_test(tc, largest_numbers);
	tcase_add_test(tc, texts);
	tcase_add_test(tc, texts_have_room);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
