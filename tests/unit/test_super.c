/* SPDX-License-Identifier: MIT
 * The superblock codec: what is packed comes back, and every field that any code relies on is judged. */
#include "base/csum.h"
#include "sample_super.h"

#include <check.h>
#include <stdlib.h>

#define NR 3
static const uint64_t sizes[PF_MAX_MEMBERS] = { 4096, 20000, 300001 };
static uint8_t block[PF_BLOCK_SIZE];
static struct pf_super in, out;

static void setup(void)
{
	sample_super(&in, NR, sizes);
	pf_super_pack(&in, 1, block);
}

/* The same pool in version 6: two copies of the root, a log on both metadata members. */
static void setup_logged(void)
{
	struct pf_geometry geo;
	sample_super(&in, NR, sizes);
	in.version = 6;
	in.features = pf_version_features(6);
	pf_geometry_init(&geo, sizes[1], in.members[1].log_blocks);
	in.root.addr[1] = pf_addr_make(1, geo.data_start + 4);
	in.nr_log = 2;
	in.log_members[0] = 1;
	in.log_members[1] = 2;
	in.log_start = 4096;
	in.log_epoch = 33;
	pf_super_pack(&in, 1, block);
}

static void seal(void)
{
	struct pf_disk_super *disk = (void *)block;
	disk->crc = pf_le64(0);
	disk->crc = pf_le64(pf_crc64(block, PF_BLOCK_SIZE));
}

START_TEST(round_trip)
{
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	ck_assert_uint_eq(out.member_id, 1);
	ck_assert_mem_eq(out.member_uuid, in.members[1].uuid, 16);
	in.member_id = 1;
	memcpy(in.member_uuid, in.members[1].uuid, 16);
	/* no member of struct pf_super may be forgotten: compare them all, padding has been zeroed on both sides */
	ck_assert_mem_eq(&in, &out, sizeof(in));

	uint8_t again[PF_BLOCK_SIZE];
	pf_super_pack(&out, 1, again);
	ck_assert_mem_eq(block, again, PF_BLOCK_SIZE);
}
END_TEST

START_TEST(round_trip_extremes)
{
	uint64_t many[PF_MAX_MEMBERS];
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++)
		many[i] = 4096 + 7 * i;
	sample_super(&in, PF_MAX_MEMBERS, many);
	memset(in.label, 'x', PF_LABEL_BYTES); /* no room for a NUL on disk */
	memset(&in.root, 0, sizeof(in.root));
	in.root_level = 0;
	for (unsigned i = 0; i < PF_MAX_EPOCHS; i++)
		in.epochs[i] = (struct pf_epoch){ 100 + i, -1, 500 };
	pf_super_pack(&in, 31, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	ck_assert_str_eq(out.label, in.label);
	ck_assert_int_eq(out.epochs[15].time_ns, -1);
	ck_assert_uint_eq(out.members[31].size_blocks, many[31]);

	memset(in.epochs, 0, sizeof(in.epochs)); /* as mkfs may leave it */
	pf_super_pack(&in, 0, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
}
END_TEST

START_TEST(every_bit_matters)
{
	for (size_t i = 0; i < PF_BLOCK_SIZE; i++) {
		block[i] ^= (uint8_t)(1u << i % 8);
		ck_assert_int_eq(pf_super_unpack(block, &out), i < 8 ? -PF_ESB_MAGIC : -PF_ESB_CSUM);
		block[i] ^= (uint8_t)(1u << i % 8);
	}
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	memset(block, 0, sizeof(block));
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_MAGIC);
	memset(block, 0xff, sizeof(block));
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_MAGIC);
}
END_TEST

START_TEST(reserved_bytes_are_ignored)
{
	struct pf_disk_super *disk = (void *)block;
	disk->reserved1[5] = pf_le64(42);
	disk->reserved2[100] = 1;
	disk->members[2].reserved = pf_le64(9);
	disk->roots[1].addr[0] = pf_le64(99);
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
}
END_TEST

/* One wrong value each, in memory, packed with a good checksum. */
#define CASES(X)                                                                    \
	X(in.version = 0)                                                           \
	X(in.generation = 0)                                                        \
	X(in.placement = 2)                                                         \
	X(in.nr_meta = 0)                                                           \
	X(in.nr_meta = 4)                                                           \
	X(in.nr_meta = 3) /* the third, 0, is not flagged */                        \
	X(in.meta_members[0] = 3)                                                   \
	X(in.meta_members[0] = in.meta_members[1])                                  \
	X(in.members[0].flags |= PF_MEMBER_META)                                    \
	X(in.members[2].flags &= (uint8_t)~PF_MEMBER_META)                          \
	X(memset(in.pool_uuid, 0, 16))                                              \
	X(memset(in.members[2].uuid, 0, 16))                                        \
	X(memcpy(in.members[2].uuid, in.members[0].uuid, 16))                       \
	X(in.members[0].state = PF_MEMBER_UNUSED)                                   \
	X(in.members[0].state = 2)                                                  \
	X(in.members[3].state = PF_MEMBER_ACTIVE) /* beyond nr_members */           \
	X(in.members[0].class = 3)                                                  \
	X(in.members[0].size_blocks = 4095)                                         \
	X(in.members[0].size_blocks = 0)                                            \
	X(in.members[0].size_blocks = UINT64_MAX)                                   \
	X(in.members[0].size_blocks = PF_MAX_MEMBER_BLOCKS + 1)                     \
	X(in.members[0].log_blocks = 4096)                                          \
	X(in.members[0].log_blocks = UINT32_MAX)                                    \
	X(in.members[0].root_slot = 2)                                              \
	X(in.members[0].root_generation = 1001)                                     \
	X(in.members[0].share_blocks = 4096)                                        \
	X(in.members[0].share_blocks = UINT64_MAX)                                  \
	X(in.root.addr[1] = in.root.addr[0])                                        \
	X(in.root.addr[0] = pf_addr_make(3, 10000))                                 \
	X(in.root.addr[0] = pf_addr_make(2, 10))         /* in the fixed places */  \
	X(in.root.addr[0] = pf_addr_make(2, 300001 - 64)) /* in the backup ring */  \
	X(in.root.addr[0] = pf_addr_make(2, 300001 - 128 - 3))                      \
	X(in.root.addr[0] = pf_addr_make(2, UINT64_C(1) << 47))                     \
	X(in.root.addr[0] |= UINT64_C(1) << 50)          /* between the fields */   \
	X(in.root.addr[0] = 0)                           /* but a level */          \
	X(in.root.generation = 0)                                                   \
	X(in.root.generation = 1001)                                                \
	X(in.root_level = 13)                                                       \
	X(in.epochs[0].last_generation = 1001)                                      \
	X(in.epochs[1].last_generation = 901)                                       \
	X(in.epochs[1].id = 0)                           /* a gap */                \
	X(in.counters.next_id = 0)                                                  \
	X(in.counters.next_id = PF_KEY_FIELD_MAX + 1)                               \
	X(in.counters.next_orphan = PF_KEY_FIELD_MAX + 1)

#define COUNT(x) +1
enum { NR_CASES = 0 CASES(COUNT) };

static const char *spoil(int nr)
{
	int i = 0;
#define SPOIL(x)                \
	if (i++ == nr) {        \
		x;              \
		return #x;      \
	}
	CASES(SPOIL)
	return NULL;
}

START_TEST(every_field_is_judged)
{
	const char *what = spoil(_i);
	pf_super_pack(&in, 1, block);
	ck_assert_msg(pf_super_unpack(block, &out) == -PF_ESB_INVALID, "accepted: %s", what);
}
END_TEST

/* The same with a log and two copies of the root. */
#define LOGGED_CASES(X)                                                                            \
	X(in.nr_log = 3)                                          /* more than metadata members */ \
	X(in.nr_log = PF_MAX_META_MEMBERS + 1)                                                     \
	X(in.log_members[0] = 3)                                                                   \
	X(in.log_members[1] = 255)                                                                 \
	X(in.log_members[1] = in.log_members[0])                                                   \
	X(in.log_start = PF_KEY_FIELD_MAX + 1)                                                     \
	X(in.log_start = UINT64_MAX)                                                               \
	X(in.features = pf_version_features(5))                   /* knows of no log, no copies */ \
	X(in.features = pf_version_features(5); in.root.addr[1] = 0)                               \
	X(in.features = pf_version_features(5); in.nr_log = 0)                                     \
	X(in.root.addr[1] = in.root.addr[0])                                                       \
	X(in.root.addr[1] = in.root.addr[0] + PF_NODE_BLOCKS)     /* dies with the first */        \
	X(in.root.addr[0] = 0; in.root_level = 0)                 /* a second without a first */   \
	X(in.root.addr[0] = pf_addr_make(0, 0))                                                    \
	X(in.root.addr[0] = pf_addr_make(3, 10000))                                                \
	X(in.root.addr[1] = pf_addr_make(3, 10000))                                                \
	X(in.root.addr[1] = pf_addr_make(1, 10))                  /* in the fixed places */        \
	X(in.root.addr[1] = pf_addr_make(1, 20000 - 64))          /* in the backup ring */         \
	X(in.root.addr[1] = pf_addr_make(1, 20000 - 128 - 3))                                      \
	X(in.root.addr[1] |= UINT64_C(1) << 50)                                                    \
	X(in.root.generation = 1001)                                                               \
	X(in.root_level = 13)

enum { NR_LOGGED_CASES = 0 LOGGED_CASES(COUNT) };

static const char *spoil_logged(int nr)
{
	int i = 0;
	LOGGED_CASES(SPOIL)
	return NULL;
}

START_TEST(every_field_of_a_log_is_judged)
{
	setup_logged();
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	const char *what = spoil_logged(_i);
	pf_super_pack(&in, 1, block);
	ck_assert_msg(pf_super_unpack(block, &out) == -PF_ESB_INVALID, "accepted: %s", what);
}
END_TEST

START_TEST(round_trip_of_a_log)
{
	setup_logged();
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	in.member_id = 1;
	memcpy(in.member_uuid, in.members[1].uuid, 16);
	ck_assert_mem_eq(&in, &out, sizeof(in));

	/* the first copy may be the one on the other member, the second one lost, the log on one member or nowhere */
	pf_addr first = in.root.addr[0];
	in.root.addr[0] = in.root.addr[1];
	in.root.addr[1] = first;
	in.nr_log = 1;
	in.log_start = PF_KEY_FIELD_MAX;
	in.log_epoch = UINT64_MAX;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	ck_assert_mem_eq(&in, &out, sizeof(in));
	in.root.addr[1] = 0;
	in.nr_log = 0;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	ck_assert_mem_eq(&in, &out, sizeof(in));
	ck_assert_uint_eq(pf_super_node_copies(&out), 2);
	in.features = pf_version_features(5);
	ck_assert_uint_eq(pf_super_node_copies(&in), 1);

	/* members beyond nr_log do not count, as mkfs of older versions has left something there */
	setup_logged();
	in.nr_log = 1;
	in.log_members[1] = 200;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	in.features = pf_version_features(5);
	in.root.addr[1] = 0;
	in.nr_log = 0;
	in.log_start = UINT64_MAX;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
}
END_TEST

START_TEST(impossible_on_disk_only)
{
	struct pf_disk_super *disk = (void *)block;
	disk->member_id = 3;
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);
	disk->member_id = 0; /* not the one whose uuid it has */
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);
	disk->member_id = 1;
	disk->nr_members = 0;
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);
	disk->nr_members = 33;
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);
	disk->nr_members = NR;
	disk->member_uuid[15] ^= 1;
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);
	disk->member_uuid[15] ^= 1;
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	setup_logged();
	disk->nr_log = pf_le64(UINT64_C(0x100000001)); /* not 1 */
	seal();
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);
}
END_TEST

START_TEST(newer_formats_are_recognised)
{
	in.features.incompat |= UINT64_C(1) << 60;
	in.version = 9;
	in.placement = 7;
	in.root.addr[1] = 12345;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	ck_assert_uint_eq(pf_features_unknown(&out.features).incompat, UINT64_C(1) << 60);
	/* but what any reader would index with is still judged */
	in.nr_meta = 4;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), -PF_ESB_INVALID);

	setup();
	in.features.ro_compat |= UINT64_C(1) << 63;
	in.features.compat |= UINT64_C(1) << 62;
	pf_super_pack(&in, 1, block);
	ck_assert_int_eq(pf_super_unpack(block, &out), 0);
	ck_assert_uint_eq(out.features.ro_compat, in.features.ro_compat);
	ck_assert_uint_eq(out.features.compat, in.features.compat);
}
END_TEST

START_TEST(random_content_never_harms)
{
	/* with a good checksum, as a fuzzer would: whatever it says, it must not be read out of bounds */
	srand(7);
	for (int round = 0; round < 20000; round++) {
		if (round % 2)
			setup();
		else
			setup_logged();
		for (int n = rand() % 4; n >= 0; n--)
			block[16 + rand() % (int)(sizeof(struct pf_disk_super) - 16)] = (uint8_t)rand();
		seal();
		int err = pf_super_unpack(block, &out);
		ck_assert(err == 0 || err == -PF_ESB_INVALID);
		if (!err) {
			uint8_t again[PF_BLOCK_SIZE];
			pf_super_pack(&out, out.member_id, again);
			ck_assert_int_eq(pf_super_unpack(again, &in), 0);
			ck_assert_mem_eq(&in, &out, sizeof(in));
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("super");
	TCase *tc = tcase_create("codec");
	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, round_trip);
	tcase_add_test(tc, round_trip_extremes);
	tcase_add_test(tc, every_bit_matters);
	tcase_add_test(tc, reserved_bytes_are_ignored);
	tcase_add_loop_test(tc, every_field_is_judged, 0, NR_CASES);
	tcase_add_loop_test(tc, every_field_of_a_log_is_judged, 0, NR_LOGGED_CASES);
	tcase_add_test(tc, round_trip_of_a_log);
	tcase_add_test(tc, impossible_on_disk_only);
	tcase_add_test(tc, newer_formats_are_recognised);
	tcase_add_test(tc, random_content_never_harms);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
