/* SPDX-License-Identifier: MIT
 * Inode numbers: one that was given out is never given out again, whatever a crash forgets. */
#include "unit/intent_util.h"

static void begin_version(unsigned version)
{
	struct simpool_config config = { .version = version, .nr_members = 2, .size_bytes = 32 * MIB, .seed = 1 };
	begin_config(&config);
}

static uint64_t numbered(const char *prefix, unsigned k)
{
	char name[32];
	sprintf(name, "%s%u", prefix, k);
	return make_file(PF_ROOT_INO, name);
}

/* Nothing of what was made is durable, each time but that a mount has begun. */
START_TEST(not_after_a_crash)
{
	begin_version((unsigned)_i);
	uint64_t highest = make_file(PF_ROOT_INO, "durable"), first = highest;
	ck_ok(pf_pool_sync(POOL));
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned k = 0; k < 100; k++) {
			uint64_t ino = numbered("f", k);
			ck_assert_msg(ino > highest, "round %u: file %u is number %ju, %ju was given out", round, k, (uintmax_t)ino,
				      (uintmax_t)highest);
			highest = ino;
		}
		/* some of it is in the log, and redone under the numbers that it had */
		if (round == 2)
			ck_ok(pf_fsync(POOL, look(PF_ROOT_INO, "f40")));
		struct model *was = load();
		crash(0);
		if (round == 2)
			ck_still(was);
		model_free(was);
		ck_assert_uint_eq(look(PF_ROOT_INO, "durable"), first);
		if (round == 2) {
			for (unsigned k = 0; k < 100; k++) {
				char name[32];
				sprintf(name, "f%u", k);
				ck_ok(unlink_name(PF_ROOT_INO, name));
			}
			ck_ok(pf_pool_sync(POOL));
		}
		ck_assert_uint_eq(look(PF_ROOT_INO, "f5"), 0);
	}
	ck_assert_uint_gt(numbered("g", 0), highest);
	end();
}
END_TEST

/* A clean unmount forgets nothing, and reading changes nothing. */
START_TEST(one_after_the_other_else)
{
	begin_version((unsigned)_i);
	uint64_t ino = numbered("f", 0);
	remount();
	ck_assert_uint_eq(numbered("f", 1), ino + 1);
	ck_ok(pf_pool_sync(POOL));
	power_cut(true);
	uint64_t digest = simdisk_digest(simworld_disk(sp->world, 0));
	open_again(true);
	char why[1200];
	ck_assert_int_eq(simpool_close(sp, why, sizeof(why)), 0);
	ck_assert_uint_eq(simdisk_digest(simworld_disk(sp->world, 0)), digest);
	open_again(false);
	ck_assert_uint_eq(numbered("f", 2), ino + 2 + PF_ID_JUMP);
	end();
}
END_TEST

/* More than a crash skips are not given out between two checkpoints. */
START_TEST(so_many_and_no_more)
{
	begin_version((unsigned)_i);
	uint64_t ino = numbered("f", 0);
	ck_ok(pf_pool_sync(POOL));
	atomic_store(&POOL->next_id, ino + PF_ID_JUMP - 4096);
	uint64_t gen = generation();
	numbered("f", 1);
	ck_assert_uint_eq(generation(), gen);
	uint64_t last = numbered("f", 2);
	ck_assert_uint_gt(generation(), gen);
	crash(0);
	ck_assert_uint_gt(numbered("f", 3), last);
	/* nor any that no key can hold */
	atomic_store(&POOL->next_id, PF_KEY_FIELD_MAX - 10);
	ck_ok(pf_pool_sync(POOL));
	make_file(PF_ROOT_INO, "at the end");
	ck_ok(pf_pool_sync(POOL));
	crash(0);
	ck_assert_uint_le(numbered("f", 4), PF_KEY_FIELD_MAX);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("numbers");
	TCase *tc = tcase_create("numbers");
	tcase_set_timeout(tc, 30);
	tcase_add_loop_test(tc, not_after_a_crash, PF_VERSION_FIRST, PF_VERSION_NEWEST + 1);
	tcase_add_loop_test(tc, one_after_the_other_else, PF_VERSION_FIRST, PF_VERSION_NEWEST + 1);
	tcase_add_loop_test(tc, so_many_and_no_more, PF_VERSION_FIRST, PF_VERSION_NEWEST + 1);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
