/* SPDX-License-Identifier: MIT
 * The gate for log records: every field that replay relies on is judged; no bytes make it read outside of the record, or
 * believe lengths that do not add up. */
#include "model/rng.h"
#include "record_util.h"
#include "unit/run_suite.h"

/* -- refusals ----------------------------------------------------------------------------------------------------------- */
/* The record of sample S in @bytes, as its structure: one wrong value each. */
#define D(type, field) (((struct pf_disk_record_##type *)bytes)->field)
#define RANGE(at) ((struct pf_disk_record_range *)(bytes + sizeof(struct pf_disk_record_file) + (at)))
/* sample_file(): where its ranges begin */
enum { R_HOLE = 0, R_BLOCKS = 32, R_UNWRITTEN = 32 + 32 + 24, R_LAST = 32 + 32 + 24 + 32 };
#define NAME_AT(type) (bytes + sizeof(struct pf_disk_record_##type))
#define TOO_BIG pf_le64(PF_KEY_FIELD_MAX + 1)
#define NSEC_BAD pf_le32(NSEC_MAX + 1)
static void set_len(uint32_t n)
{
	len = n;
	((struct pf_disk_record_head *)bytes)->len = pf_le32(n);
}
static void set_nr_and_crcs(uint64_t nr) /* of the last range, with room made for its CRCs */
{
	memset(bytes + len, 0, 4096);
	RANGE(R_LAST)->nr_blocks = pf_le64(nr);
	set_len(len + (uint32_t)(nr - 1) * 8);
}

#define CASES(X)                                                                          \
	X(create, D(create, head.type) = 0)                                               \
	X(create, D(create, head.type) = 8)                                               \
	X(create, D(create, head.type) = 255)                                             \
	X(create, D(create, head.len) = pf_le32(len + 8))                                 \
	X(create, D(create, head.len) = pf_le32(len - 8))                                 \
	X(create, D(create, head.len) = pf_le32(0))                                       \
	X(create, set_len(len + 8))                     /* 8 bytes of padding and more */ \
	X(create, set_len(len - 8))                                                       \
	X(create, set_len(len - 1))                                                       \
	X(create, set_len(64))                          /* not even its structure */      \
	X(create, set_len(8))                                                             \
	X(create, len = 7)                                                                \
	X(create, len = 0)                                                                \
	X(create, bytes[len - 1] = 1)                   /* in the padding */              \
	X(create, D(create, ino) = pf_le64(0))                                            \
	X(create, D(create, ino) = TOO_BIG)                                               \
	X(create, D(create, parent) = pf_le64(0))                                         \
	X(create, D(create, parent) = TOO_BIG)                                            \
	X(create, D(create, data_id) = pf_le64(0))                                        \
	X(create, D(create, data_id) = TOO_BIG)                                           \
	X(create, D(create, time_nsec) = NSEC_BAD)                                        \
	X(create, D(create, time_nsec) = pf_le32(UINT32_MAX))                             \
	X(create, D(create, mode) = pf_le32(0644))      /* of no type */                  \
	X(create, D(create, mode) = pf_le32(S_IFMT | 0644))                               \
	X(create, D(create, mode) = pf_le32(0x10000 | S_IFREG))                           \
	X(create, D(create, rdev_major) = pf_le32(1))   /* a file */                      \
	X(create, D(create, rdev_minor) = pf_le32(1))                                     \
	X(create, D(create, name_len) = pf_le16(5))     /* into the padding: a zero */    \
	X(create, D(create, name_len) = pf_le16(3))     /* leaves a letter over */        \
	X(create, D(create, name_len) = pf_le16(UINT16_MAX))                              \
	X(create, D(create, target_len) = pf_le16(1))   /* a file has none */             \
	X(create, NAME_AT(create)[1] = 0)                                                 \
	X(create, NAME_AT(create)[1] = '/')                                               \
	X(device, D(create, data_id) = pf_le64(1))                                        \
	X(device, D(create, mode) = pf_le32(S_IFIFO))   /* with device numbers */         \
	X(device, D(create, mode) = pf_le32(S_IFDIR))                                     \
	X(symlink, D(create, data_id) = pf_le64(1))                                       \
	X(symlink, D(create, mode) = pf_le32(S_IFDIR))  /* with a target */               \
	X(symlink, D(create, target_len) = pf_le16(0))                                    \
	X(symlink, D(create, target_len) = pf_le16(10)) /* into the padding */            \
	X(symlink, D(create, target_len) = pf_le16(8))                                    \
	X(symlink, D(create, target_len) = pf_le16(UINT16_MAX))                           \
	X(symlink, NAME_AT(create)[5] = 0)                                                \
	X(link, D(name, ino) = pf_le64(0))                                                \
	X(link, D(name, ino) = TOO_BIG)                                                   \
	X(link, D(name, parent) = pf_le64(0))                                             \
	X(link, D(name, parent) = TOO_BIG)                                                \
	X(link, D(name, time_nsec) = NSEC_BAD)                                            \
	X(link, D(name, name_len) = pf_le16(0))                                           \
	X(link, D(name, name_len) = pf_le16(7))                                           \
	X(link, D(name, name_len) = pf_le16(256))                                         \
	X(link, NAME_AT(name)[0] = '/')                                                   \
	X(remove, D(name, ino) = pf_le64(0))                                              \
	X(remove, D(name, parent) = TOO_BIG)                                              \
	X(remove, D(name, time_nsec) = NSEC_BAD)                                          \
	X(remove, D(name, name_len) = pf_le16(3))                                         \
	X(remove, NAME_AT(name)[3] = 0)                                                   \
	X(rename, D(rename, old_parent) = pf_le64(0))                                     \
	X(rename, D(rename, old_parent) = TOO_BIG)                                        \
	X(rename, D(rename, new_parent) = pf_le64(0))                                     \
	X(rename, D(rename, new_parent) = TOO_BIG)                                        \
	X(rename, D(rename, ino) = pf_le64(0))                                            \
	X(rename, D(rename, ino) = TOO_BIG)                                               \
	X(rename, D(rename, target) = pf_le64(0))       /* an exchange with nothing */    \
	X(rename, D(rename, target) = pf_le64(31))      /* with itself */                 \
	X(rename, D(rename, target) = TOO_BIG)                                            \
	X(rename, D(rename, time_nsec) = NSEC_BAD)                                        \
	X(rename, D(rename, flags) = pf_le32(1))                                          \
	X(rename, D(rename, flags) = pf_le32(3))                                          \
	X(rename, D(rename, flags) = pf_le32(0x80000002))                                 \
	X(rename, D(rename, old_len) = pf_le16(0))                                        \
	X(rename, D(rename, new_len) = pf_le16(0))                                        \
	X(rename, D(rename, old_len) = pf_le16(4))                                        \
	X(rename, D(rename, new_len) = pf_le16(4))                                        \
	X(rename, D(rename, new_len) = pf_le16(6))                                        \
	X(rename, D(rename, old_len) = pf_le16(UINT16_MAX))                               \
	X(rename, D(rename, new_len) = pf_le16(UINT16_MAX))                               \
	X(rename, NAME_AT(rename)[0] = 0)                                                 \
	X(rename, NAME_AT(rename)[7] = '/')                                               \
	X(setattr, D(setattr, ino) = pf_le64(0))                                          \
	X(setattr, D(setattr, ino) = TOO_BIG)                                             \
	X(setattr, D(setattr, mask) = pf_le32(64 | 63))                                   \
	X(setattr, D(setattr, mask) = pf_le32(63 & ~PF_SET_MODE)) /* but it has one */    \
	X(setattr, D(setattr, mask) = pf_le32(63 & ~PF_SET_UID))                          \
	X(setattr, D(setattr, mask) = pf_le32(63 & ~PF_SET_GID))                          \
	X(setattr, D(setattr, mask) = pf_le32(63 & ~PF_SET_ATIME))                        \
	X(setattr, D(setattr, mask) = pf_le32(63 & ~PF_SET_MTIME))                        \
	X(setattr, D(setattr, mask) = pf_le32(63 & ~PF_SET_CTIME))                        \
	X(setattr, memset(bytes + 16, 0, len - 16))     /* sets nothing */                \
	X(setattr, D(setattr, mode) = pf_le32(010000))                                    \
	X(setattr, D(setattr, atime_nsec) = NSEC_BAD)                                     \
	X(setattr, D(setattr, mtime_nsec) = NSEC_BAD)                                     \
	X(setattr, D(setattr, ctime_nsec) = NSEC_BAD)                                     \
	X(setattr, set_len(len + 8))                                                      \
	X(setattr, set_len(len - 8))                                                      \
	X(xattr, D(xattr, ino) = pf_le64(0))                                              \
	X(xattr, D(xattr, ino) = TOO_BIG)                                                 \
	X(xattr, D(xattr, time_nsec) = NSEC_BAD)                                          \
	X(xattr, D(xattr, flags) = PF_RECORD_XATTR_REMOVE) /* with a value */             \
	X(xattr, D(xattr, flags) = 2)                                                     \
	X(xattr, D(xattr, flags) = 0x80)                                                  \
	X(xattr, D(xattr, name_len) = pf_le16(0))                                         \
	X(xattr, D(xattr, name_len) = pf_le16(UINT16_MAX))                                \
	X(xattr, D(xattr, value_len) = pf_le32(6))                                        \
	X(xattr, D(xattr, value_len) = pf_le32(11))     /* past the padding */            \
	X(xattr, D(xattr, value_len) = pf_le32(UINT32_MAX))                               \
	X(xattr, NAME_AT(xattr)[2] = 0)                                                   \
	X(file, D(file, ino) = pf_le64(0))                                                \
	X(file, D(file, ino) = TOO_BIG)                                                   \
	X(file, D(file, data_id) = pf_le64(0))                                            \
	X(file, D(file, data_id) = TOO_BIG)                                               \
	X(file, D(file, size) = pf_le64((uint64_t)PF_MAX_FILE_BYTES + 1))                 \
	X(file, D(file, size) = pf_le64(UINT64_MAX))                                      \
	X(file, D(file, mtime_nsec) = NSEC_BAD)                                           \
	X(file, D(file, ctime_nsec) = NSEC_BAD)                                           \
	X(file, D(file, nr_ranges) = pf_le32(3))                                          \
	X(file, D(file, nr_ranges) = pf_le32(5))                                          \
	X(file, D(file, nr_ranges) = pf_le32(0))                                          \
	X(file, D(file, nr_ranges) = pf_le32(UINT32_MAX))                                 \
	X(file, set_len(len - 8))                                                         \
	X(file, set_len(len + 8))                                                         \
	X(file, RANGE(R_HOLE)->nr_blocks = pf_le64(0))                                    \
	X(file, RANGE(R_HOLE)->nr_blocks = pf_le64(11))     /* into the next one */       \
	X(file, RANGE(R_HOLE)->nr_blocks = pf_le64(PF_KEY_FIELD_MAX))                     \
	X(file, RANGE(R_HOLE)->nr_blocks = pf_le64(UINT64_MAX))                           \
	X(file, RANGE(R_HOLE)->addr = pf_le64(1))                                         \
	X(file, RANGE(R_HOLE)->kind = 3)                                                  \
	X(file, RANGE(R_HOLE)->kind = 255)                                                \
	X(file, RANGE(R_HOLE)->kind = PF_RANGE_BLOCKS)      /* what follows are no CRCs */ \
	X(file, RANGE(R_BLOCKS)->start = pf_le64(9))                                      \
	X(file, RANGE(R_BLOCKS)->start = pf_le64(18))                                     \
	X(file, RANGE(R_BLOCKS)->start = pf_le64(500))      /* behind the next one */     \
	X(file, RANGE(R_BLOCKS)->nr_blocks = pf_le64(2))                                  \
	X(file, RANGE(R_BLOCKS)->nr_blocks = pf_le64(4))                                  \
	X(file, RANGE(R_BLOCKS)->nr_blocks = pf_le64(UINT64_C(1) << 61)) /* times 8 is 0 */ \
	X(file, RANGE(R_BLOCKS)->nr_blocks = pf_le64((UINT64_C(1) << 61) + 3))            \
	X(file, RANGE(R_BLOCKS)->kind = PF_RANGE_UNWRITTEN)                               \
	X(file, RANGE(R_BLOCKS)->addr = pf_le64(0))                                       \
	X(file, RANGE(R_BLOCKS)->addr = pf_le64(pf_addr_make(1, 0)))                      \
	X(file, RANGE(R_BLOCKS)->addr = pf_le64(pf_addr_make(32, 5)))                     \
	X(file, RANGE(R_BLOCKS)->addr = pf_le64(UINT64_C(1) << 50 | 5))                   \
	X(file, RANGE(R_UNWRITTEN)->nr_blocks = pf_le64(0))                               \
	X(file, RANGE(R_UNWRITTEN)->nr_blocks = pf_le64(301))                             \
	X(file, RANGE(R_UNWRITTEN)->nr_blocks = pf_le64(PF_MAX_FILE_BLOCKS))              \
	X(file, RANGE(R_UNWRITTEN)->nr_blocks = pf_le64(UINT64_MAX))                      \
	X(file, RANGE(R_UNWRITTEN)->addr = pf_le64(0))                                    \
	X(file, RANGE(R_UNWRITTEN)->addr = pf_le64(pf_addr_make(255, 5)))                 \
	X(file, RANGE(R_UNWRITTEN)->addr = pf_le64(pf_addr_make(0, PF_MAX_MEMBER_BLOCKS - 299))) \
	X(file, RANGE(R_UNWRITTEN)->addr = pf_le64(pf_addr_make(0, (UINT64_C(1) << 48) - 1))) \
	X(file, RANGE(R_LAST)->start = pf_le64(319))                                      \
	X(file, RANGE(R_LAST)->start = pf_le64(PF_MAX_FILE_BLOCKS))                       \
	X(file, RANGE(R_LAST)->start = pf_le64(UINT64_MAX))                               \
	X(file, RANGE(R_LAST)->nr_blocks = pf_le64(0))                                    \
	X(file, RANGE(R_LAST)->addr = pf_le64(pf_addr_make(31, PF_MAX_MEMBER_BLOCKS)))    \
	X(file, RANGE(R_LAST)->start = pf_le64(PF_MAX_FILE_BLOCKS - 9); set_nr_and_crcs(10)) \
	X(file, RANGE(R_LAST)->addr = pf_le64(pf_addr_make(0, PF_MAX_MEMBER_BLOCKS - 9)); set_nr_and_crcs(10))

#define COUNT(sample, ...) +1
enum { NR_CASES = 0 CASES(COUNT) };

static const char *spoil(int nr)
{
	int i = 0;
#define SPOIL(sample, ...)                               \
	if (i++ == nr) {                                 \
		struct pf_record r = sample_##sample();  \
		build(&r);                               \
		ck_assert_int_eq(unpack_exact(bytes, len), 0); \
		__VA_ARGS__;                             \
		return #sample ": " #__VA_ARGS__;        \
	}
	CASES(SPOIL)
	return NULL;
}

START_TEST(every_field_is_judged)
{
	const char *what = spoil(_i);
	ck_assert_msg(unpack_exact(bytes, len) == -PF_ELOG_INVALID, "accepted: %s", what);
}
END_TEST

/* The two that set_nr_and_crcs() makes one block shorter are good: it is the limit that refuses them. */
START_TEST(limits_are_exact)
{
	struct pf_record r = sample_file();
	build(&r);
	RANGE(R_LAST)->start = pf_le64(PF_MAX_FILE_BLOCKS - 9);
	RANGE(R_LAST)->addr = pf_le64(pf_addr_make(0, PF_MAX_MEMBER_BLOCKS - 9));
	set_nr_and_crcs(9);
	ck_assert_int_eq(unpack_exact(bytes, len), 0);
	r = sample_file();
	build(&r);
	RANGE(R_HOLE)->start = pf_le64(PF_KEY_FIELD_MAX - 9);
	D(file, nr_ranges) = pf_le32(1);
	set_len(sizeof(struct pf_disk_record_file) + 32);
	ck_assert_int_eq(unpack_exact(bytes, len), -PF_ELOG_INVALID);
	RANGE(R_HOLE)->nr_blocks = pf_le64(9);
	ck_assert_int_eq(unpack_exact(bytes, len), 0);
}
END_TEST

START_TEST(lengths_beyond_the_limits)
{
	/* larger than pack would assert: made longer by hand */
	static const struct {
		sample_fn sample;
		uint32_t head_bytes, max;
	} all[] = {
		{ sample_create, sizeof(struct pf_disk_record_create), PF_MAX_NAME_BYTES },
		{ sample_link, sizeof(struct pf_disk_record_name), PF_MAX_NAME_BYTES },
		{ sample_symlink, sizeof(struct pf_disk_record_create), PF_MAX_SYMLINK_BYTES },
		{ sample_xattr, sizeof(struct pf_disk_record_xattr), PF_MAX_NAME_BYTES },
		{ sample_xattr, sizeof(struct pf_disk_record_xattr), PF_MAX_XATTR_BYTES },
	};
	for (unsigned i = 0; i < 5; i++) {
		for (uint32_t over = 0; over <= 1; over++) {
			struct pf_record r = all[i].sample();
			uint32_t n = all[i].max + over, rest = n;
			build(&r);
			memset(bytes + all[i].head_bytes, 'x', n + 16);
			switch (i) {
			case 0:
				D(create, name_len) = pf_le16((uint16_t)n);
				break;
			case 1:
				D(name, name_len) = pf_le16((uint16_t)n);
				break;
			case 2:
				D(create, target_len) = pf_le16((uint16_t)n);
				rest = n + 4; /* its name */
				break;
			case 3:
				D(xattr, name_len) = pf_le16((uint16_t)n);
				rest = n + 7; /* its value */
				break;
			default:
				D(xattr, value_len) = pf_le32(n);
				rest = n + 6; /* its name */
			}
			memset(bytes + all[i].head_bytes + rest, 0, 8);
			set_len((all[i].head_bytes + rest + 7) & ~7u);
			ck_assert_msg(unpack_exact(bytes, len) == (over ? -PF_ELOG_INVALID : 0), "case %u, %u bytes", i, n);
		}
	}
}
END_TEST

START_TEST(dots_are_no_names)
{
	const char *const bad[] = { ".", "..", "/", "a/b" }, *const good[] = { "...", ".a", "..a", "\xff" };
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned s = 0; s < 4; s++) {
			struct pf_record r[] = { sample_create(), sample_link(), sample_rename(), sample_rename() };
			for (unsigned ok = 0; ok <= 1; ok++) {
				struct pf_record_bytes name = text(ok ? good[i] : bad[i]);
				*(s == 0   ? &r[s].create.name
				  : s == 1 ? &r[s].name.name
				  : s == 2 ? &r[s].rename.old_name
					   : &r[s].rename.new_name) = name;
				build(&r[s]);
				ck_assert_int_eq(unpack_exact(bytes, len), ok ? 0 : -PF_ELOG_INVALID);
			}
		}
	}
	struct pf_record r = sample_symlink(); /* only files may be unnamed */
	r.create.name.len = 0;
	build(&r);
	ck_assert_int_eq(unpack_exact(bytes, len), -PF_ELOG_INVALID);
}
END_TEST

START_TEST(reserved_bytes_are_ignored)
{
	for (unsigned s = 0; s < NR_SAMPLES; s++) {
		struct pf_record r = samples[s]();
		build(&r);
		memset(D(create, head.reserved), 0xff, 3);
		switch (r.type) {
		case PF_RECORD_CREATE:
			D(create, reserved) = pf_le32(UINT32_MAX);
			break;
		case PF_RECORD_LINK:
		case PF_RECORD_REMOVE:
			D(name, reserved) = pf_le16(UINT16_MAX);
			break;
		case PF_RECORD_RENAME:
			D(rename, reserved) = pf_le32(UINT32_MAX);
			break;
		case PF_RECORD_SETATTR:
			D(setattr, reserved) = pf_le32(UINT32_MAX);
			break;
		case PF_RECORD_XATTR:
			memset(D(xattr, reserved), 0xff, 5);
			break;
		default:
			D(file, reserved) = pf_le32(UINT32_MAX);
			memset(RANGE(R_BLOCKS)->reserved, 0xff, 7);
		}
		ck_assert_msg(unpack_exact(bytes, len) == 0, "sample %u", s);
	}
}
END_TEST

/* -- fuzz -------------------------------------------------------------------------------------------------------------- */
static uint32_t checked_bytes(struct pf_record_bytes b, uint32_t min, uint32_t max)
{
	unsigned sum = 0;
	ck_assert_uint_ge(b.len, min);
	ck_assert_uint_le(b.len, max);
	for (uint32_t i = 0; i < b.len; i++) /* a sanitizer looks on */
		sum += (uint8_t)b.data[i];
	ck_assert_uint_le(sum, b.len * 255);
	return b.len;
}

static uint32_t checked_ranges(void)
{
	uint32_t pos = 0, nr = 0, total = 0;
	uint64_t end = 0, sum = 0;
	struct pf_record_range r;
	for (; pf_record_next_range(&out, &pos, &r); nr++) {
		ck_assert(r.nr >= 1 && r.start >= end && r.kind <= PF_RANGE_BLOCKS);
		end = r.start + r.nr;
		ck_assert_uint_gt(end, r.start);
		ck_assert_uint_le(end, r.kind == PF_RANGE_HOLE ? PF_KEY_FIELD_MAX : PF_MAX_FILE_BLOCKS);
		ck_assert_int_eq(r.kind == PF_RANGE_HOLE, r.addr == 0);
		ck_assert_int_eq(r.kind == PF_RANGE_BLOCKS, r.crc != NULL);
		ck_assert_uint_lt(pf_addr_member(r.addr), PF_MAX_MEMBERS);
		for (uint64_t i = 0; r.crc && i < r.nr; i++)
			sum ^= pf_get64(r.crc[i]);
		total += 32 + (r.crc ? (uint32_t)r.nr * 8 : 0);
	}
	ck_assert_uint_eq(nr, out.file.nr_ranges);
	ck_assert_uint_eq(total, out.file.ranges_bytes);
	ck_assert(sum || !sum);
	return total;
}

/* Whatever was accepted adds up, and packed again it is the same record. */
static void ck_consistent(uint32_t n)
{
	uint32_t sum = 0;
	char words[PF_RECORD_TEXT_BYTES];
	ck_assert(out.ino >= 1 && out.ino <= PF_KEY_FIELD_MAX);
	ck_assert(out.time.tv_nsec >= 0 && out.time.tv_nsec <= NSEC_MAX);
	switch (out.type) {
	case PF_RECORD_CREATE:
		sum = 72 + checked_bytes(out.create.name, 0, 255) + checked_bytes(out.create.target, 0, 4095);
		break;
	case PF_RECORD_LINK:
	case PF_RECORD_REMOVE:
		sum = 40 + checked_bytes(out.name.name, 1, 255);
		break;
	case PF_RECORD_RENAME:
		sum = 64 + checked_bytes(out.rename.old_name, 1, 255) + checked_bytes(out.rename.new_name, 1, 255);
		break;
	case PF_RECORD_SETATTR:
		sum = 72;
		break;
	case PF_RECORD_XATTR:
		sum = 40 + checked_bytes(out.xattr.name, 1, 255) + checked_bytes(out.xattr.value, 0, 65536);
		break;
	case PF_RECORD_FILE:
		sum = 64 + checked_ranges();
		break;
	default:
		ck_abort_msg("type %d", (int)out.type);
	}
	ck_assert_uint_eq((sum + 7) / 8 * 8, n);
	uint8_t head[PF_RECORD_HEAD_MAX];
	uint32_t total;
	pf_record_pack(&out, head, &total);
	ck_assert_uint_eq(total, n);
	pf_record_to_text(bytes, n, words, sizeof(words));
	ck_assert_ptr_null(strstr(words, "INVALID"));
}

/* @n bytes of @bytes; true: accepted. */
static bool fuzz_one(uint32_t n)
{
	char words[PF_RECORD_TEXT_BYTES];
	int err = unpack_exact(bytes, n);
	if (!err) {
		ck_consistent(n);
		return true;
	}
	ck_assert_int_eq(err, -PF_ELOG_INVALID);
	pf_record_to_text(bytes, n, words, sizeof(words));
	ck_assert_ptr_nonnull(strstr(words, "INVALID"));
	return false;
}

START_TEST(random_bytes)
{
	struct rng rng = { 1 };
	for (unsigned round = 0; round < 60000; round++) {
		uint32_t n = (uint32_t)rng_below(&rng, 40) * 8;
		for (uint32_t i = 0; i < n; i++)
			bytes[i] = (uint8_t)rng_below(&rng, round % 2 ? 256 : 3); /* small numbers are nearly right */
		if (n >= 8 && round % 8) { /* with a good head, or only the type is looked at */
			((struct pf_disk_record_head *)bytes)->len = pf_le32(n);
			((struct pf_disk_record_head *)bytes)->type = (uint8_t)(1 + rng_below(&rng, 7));
		}
		fuzz_one(n);
	}
}
END_TEST

START_TEST(random_flips)
{
	struct rng rng = { 2 };
	unsigned nr_accepted = 0, nr_refused = 0;
	for (unsigned round = 0; round < 40000; round++) {
		struct pf_record r = samples[rng_below(&rng, NR_SAMPLES)]();
		build(&r);
		uint32_t n = len;
		for (unsigned flips = 1 + (unsigned)rng_below(&rng, 3); flips; flips--) {
			uint32_t at = (uint32_t)rng_below(&rng, n);
			if (rng_below(&rng, 4))
				bytes[at] ^= (uint8_t)(1u << rng_below(&rng, 8));
			else
				bytes[at] = (uint8_t)rng_below(&rng, 256);
		}
		if (!rng_below(&rng, 4)) { /* another length, truly or only said */
			n = (uint32_t)rng_below(&rng, n / 8 + 4) * 8;
			memset(bytes + len, 0, 64);
		}
		if (n >= 8 && rng_below(&rng, 2))
			((struct pf_disk_record_head *)bytes)->len = pf_le32(n);
		if (fuzz_one(n))
			nr_accepted++;
		else
			nr_refused++;
	}
	/* both sides of the gate were seen */
	ck_assert_uint_gt(nr_accepted, 4000);
	ck_assert_uint_gt(nr_refused, 4000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("record_judge");
	TCase *tc = tcase_create("codec");
	tcase_add_loop_test(tc, every_field_is_judged, 0, NR_CASES);
	tcase_add_test(tc, limits_are_exact);
	tcase_add_test(tc, lengths_beyond_the_limits);
	tcase_add_test(tc, dots_are_no_names);
	tcase_add_test(tc, reserved_bytes_are_ignored);
	tcase_add_test(tc, random_bytes);
	tcase_add_test(tc, random_flips);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
