/* SPDX-License-Identifier: MIT
 * Pools that are refused: every reason with its words, and not one byte written. */
#include "set_util.h"

/* -- refusals ------------------------------------------------------------------------------------------------------- */
START_TEST(missing)
{
	REFUSED(world, "02", PF_SET_WRITE, -PF_EMEMBER_MISSING, "pool \"sample\" (a5a5a5a5-a5a5-",
		"1 of its 3 members is missing",
		"member 2 (image file, 19.5 MiB, uuid a5111111-1111-1111-1111-111111111111)", "name it too");
	REFUSED(world, "1", 0, -PF_EMEMBER_MISSING, "2 of its 3 members are missing", "member 1", "member 3",
		"name them too");
	REFUSED(world, "0", 0, -PF_EMEMBER_MISSING, "member 2", "member 3");
	REFUSED(world, "", 0, -EINVAL, "no members are named");
	REFUSED(world, "000000000000000000000000000000000", 0, -EINVAL, "33 members are named", "at most 32");
}
END_TEST

START_TEST(not_a_member)
{
	simdisk_new(world, "d.img", 64 << 20);
	simdisk_new(world, "tiny", 4096);
	simdisk_new(world, "empty", 0);
	REFUSED(world, "0132", 0, -PF_EMEMBER_NONE, "d.img: not a poolfs member (64.0 MiB", "check the path",
		"mkfs.poolfs");
	REFUSED(world, "4", PF_SET_WRITE, -PF_EMEMBER_NONE, "tiny: not a poolfs member");
	REFUSED(world, "5", 0, -PF_EMEMBER_NONE, "empty: not a poolfs member");
	REFUSED(world, "5", PF_SET_REPAIR, -PF_EMEMBER_NONE, "empty: not a poolfs member");
}
END_TEST

START_TEST(two_pools)
{
	struct pf_super saved = cur;
	struct simworld *other = make_pool(0xb6);
	struct simdisk *stranger = simdisk_new(world, "stranger.img", 0);
	simdisk_copy_from(stranger, simworld_disk(other, 1));
	REFUSED(world, "0132", PF_SET_WRITE, -PF_EMEMBER_FOREIGN, "members of two pools", "b.img belongs to pool",
		"a5a5a5a5", "stranger.img to pool", "b6b6b6b6", "one pool only");
	REFUSED(world, "30", 0, -PF_EMEMBER_FOREIGN, "stranger.img", "a.img");
	simworld_free(other);

	/* of this pool, but not in its table (any more) */
	cur = saved;
	memset(cur.members[0].uuid, 0x77, 16);
	simdisk_resize(stranger, 0);
	simdisk_resize(stranger, sizes[0] * BLOCK);
	write_super(stranger, 0);
	cur = saved;
	REFUSED(world, "0132", 0, -PF_EMEMBER_FOREIGN, "stranger.img", "77777777-7777", "not one of the 3 members",
		"leave it out");
}
END_TEST

START_TEST(twice)
{
	REFUSED(world, "0121", 0, -PF_EMEMBER_TWICE, "b.img and b.img are both member 2 of 3", "name it once");
	simdisk_copy_from(simdisk_new(world, "copy.img", 0), simworld_disk(world, 0));
	REFUSED(world, "0123", PF_SET_WRITE, -PF_EMEMBER_TWICE, "a.img and copy.img are both member 1",
		"leave the copy out");
}
END_TEST

START_TEST(truncated)
{
	struct simdisk *disk = simworld_disk(world, 2);
	simdisk_resize(disk, sizes[2] * BLOCK - 1);
	REFUSED(world, "012", PF_SET_WRITE, -PF_EMEMBER_TRUNCATED, "c.img: truncated", "had 78.1 MiB (81924096 bytes)",
		"made the file smaller");
	simdisk_set_kind(disk, PF_IO_BLOCK_DEVICE);
	REFUSED(world, "012", 0, -PF_EMEMBER_TRUNCATED, "made the partition smaller");
	simdisk_resize(disk, 2 << 20); /* only ring A is left */
	REFUSED(world, "012", 0, -PF_EMEMBER_TRUNCATED, "now it has 2.0 MiB");
	simdisk_resize(disk, 300 << 10); /* not even all of that */
	REFUSED(world, "012", PF_SET_REPAIR, -PF_EMEMBER_TRUNCATED, "c.img");
}
END_TEST

START_TEST(stale)
{
	struct simworld *backup = simworld_copy(world);
	for (unsigned i = 0; i < 4; i++)
		checkpoint(world, 6, 6);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(backup, 1));
	REFUSED(world, "012", PF_SET_WRITE, -PF_EMEMBER_STALE, "b.img: member 2 of pool \"sample\"",
		"is older than the pool", "last written on 2023-11-14 22:13", "c.img on 2023-11-14 22:13",
		"restored from a backup", "fsck.poolfs -y");
	struct pf_set *set;
	must_open(world, "012", PF_SET_WRITE | PF_SET_REPAIR, &set);
	ck_assert(!set->members[0].stale && set->members[1].stale && !set->members[2].stale);
	pf_set_close(set);
	/* over mounts too */
	new_epoch(102);
	checkpoint(world, 4, 4);
	checkpoint(world, 4, 4);
	REFUSED(world, "012", 0, -PF_EMEMBER_STALE, "b.img");
	/* a data member that has not changed since is as good as the original */
	simdisk_copy_from(simworld_disk(world, 0), simworld_disk(backup, 0));
	REFUSED(world, "012", 0, -PF_EMEMBER_STALE, "b.img");
	simworld_free(backup);
}
END_TEST

START_TEST(stale_from_before_the_first_mount)
{
	struct simworld *w = make_pool(0xc7);
	struct simworld *backup = simworld_copy(w);
	new_epoch(301);
	for (unsigned i = 0; i < 4; i++)
		checkpoint(w, 7, 7);
	simdisk_copy_from(simworld_disk(w, 0), simworld_disk(backup, 0));
	REFUSED(w, "012", 0, -PF_EMEMBER_STALE, "a.img");
	simworld_free(backup);
	simworld_free(w);
}
END_TEST

START_TEST(diverged)
{
	/* a clone of the whole pool was mounted and used, then the original; members of both are given */
	struct simworld *clone = simworld_copy(world);
	struct pf_super before = cur;
	new_epoch(500);
	checkpoint(clone, 0, 6);
	checkpoint(clone, 7, 7);
	checkpoint(clone, 7, 7);
	cur = before;
	new_epoch(600);
	for (unsigned i = 0; i < 8; i++)
		checkpoint(world, 7, 7);
	struct simworld *mixed = simworld_copy(world);
	simdisk_copy_from(simworld_disk(mixed, 1), simworld_disk(clone, 1));
	REFUSED(mixed, "012", PF_SET_WRITE, -PF_EMEMBER_DIVERGED, "b.img: member 2", "used apart from the others",
		"a.img", "last used together");
	struct pf_set *set;
	must_open(mixed, "012", PF_SET_WRITE | PF_SET_REPAIR, &set);
	ck_assert(set->members[1].stale);
	pf_set_close(set);
	simworld_free(mixed);

	/* the other way round: the clone has the higher generation now */
	for (unsigned i = 0; i < 20; i++) {
		cur.epochs[0].id = 500;
		checkpoint(clone, 7, 7);
	}
	mixed = simworld_copy(clone);
	simdisk_copy_from(simworld_disk(mixed, 1), simworld_disk(world, 1));
	REFUSED(mixed, "012", 0, -PF_EMEMBER_DIVERGED, "b.img: member 2", "a.img on");
	simworld_free(mixed);
	simworld_free(clone);
}
END_TEST

/* The root that the winner names may still be in its slot on a member that has gone on elsewhere: its blocks may have been
 * reused there all the same. */
START_TEST(diverged_though_its_root_verifies)
{
	struct simworld *clone = simworld_copy(world);
	struct pf_super before = cur;
	new_epoch(500);
	checkpoint(clone, 1, 7);
	cur = before;
	new_epoch(600);
	for (unsigned i = 0; i < 3; i++)
		checkpoint(world, 6, 6);
	simdisk_copy_from(simworld_disk(world, 0), simworld_disk(clone, 0));
	REFUSED(world, "012", 0, -PF_EMEMBER_DIVERGED, "a.img");
	simworld_free(clone);
}
END_TEST

/* It has seen a checkpoint of an epoch of which the others know an earlier end. */
START_TEST(diverged_ahead_in_a_common_epoch)
{
	struct simworld *ahead = simworld_copy(world);
	struct pf_super before = cur;
	checkpoint(ahead, 2, 2);
	cur = before;
	new_epoch(600);
	for (unsigned i = 0; i < 3; i++)
		checkpoint(world, 4, 4);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(ahead, 1));
	REFUSED(world, "012", 0, -PF_EMEMBER_DIVERGED, "b.img");
	simworld_free(ahead);
}
END_TEST

START_TEST(equal_generations_of_two_histories)
{
	struct simworld *clone = simworld_copy(world);
	struct pf_super before = cur;
	new_epoch(500);
	checkpoint(clone, 6, 6);
	cur = before;
	new_epoch(600);
	checkpoint(world, 6, 6);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(clone, 1));
	REFUSED(world, "012", 0, -PF_EMEMBER_DIVERGED, ".img");
	REFUSED(world, "210", 0, -PF_EMEMBER_DIVERGED, ".img");
	simworld_free(clone);
}
END_TEST

START_TEST(a_damaged_root_is_not_staleness)
{
	/* its superblock names the same root as the winner's: space/ will say that the table is damaged */
	struct pf_geometry geo = geometry(2);
	simdisk_flip_bit(simworld_disk(world, 2), (geo.root_block + cur.members[2].root_slot) * BLOCK + 9, 0);
	check_opens("012");
}
END_TEST

START_TEST(table_root_unreadable)
{
	checkpoint(world, 7, 4); /* so the roots of the others have to be looked at */
	struct pf_geometry geo = geometry(1);
	struct sim_fault fault = { .disk = simworld_disk(world, 1),
				   .ops = SIM_READ,
				   .from_bytes = geo.root_block * BLOCK,
				   .to_bytes = geo.tables_block * BLOCK };
	simworld_add_fault(world, &fault);
	REFUSED(world, "012", 0, -EIO, "b.img: its group table cannot be read");
	struct pf_set *set;
	must_open(world, "012", PF_SET_REPAIR, &set);
	ck_assert(set->members[1].stale);
	pf_set_close(set);
}
END_TEST

START_TEST(unknown_features)
{
	struct pf_set *set;
	cur.features.compat |= UINT64_C(1) << 44;
	checkpoint(world, 0, 6);
	check_opens("012");
	cur.features.ro_compat |= UINT64_C(1) << 33;
	checkpoint(world, 0, 6);
	REFUSED(world, "012", PF_SET_WRITE, -PF_EFEATURE, "b.img: pool \"sample\"", "can only read", "ro-compat bit 33",
		"use a newer poolfs, or only read it (mount -o ro");
	must_open(world, "012", 0, &set);
	pf_set_close(set);
	cur.features.incompat |= UINT64_C(5) << 40;
	cur.version = 8;
	checkpoint(world, 0, 4);
	REFUSED(world, "012", 0, -PF_EFEATURE, "c.img", "format version 8", "incompat bits 40, 42",
		"use a newer poolfs");
	REFUSED(world, "012", PF_SET_REPAIR, -PF_EFEATURE, "incompat bits 40, 42");
}
END_TEST

START_TEST(read_only_member)
{
	struct pf_set *set;
	REFUSED(world, "0R12", PF_SET_WRITE, -EROFS, "b.img: opened read-only", "mount with -o ro");
	must_open(world, "0R12", 0, &set);
	pf_set_close(set);
}
END_TEST

START_TEST(labels_do_not_reach_the_terminal)
{
	strcpy(cur.label, "a\x1b[2Jb\nc");
	checkpoint(world, 0, 6);
	REFUSED(world, "12", 0, -PF_EMEMBER_MISSING, "pool \"a?[2Jb?c\"");
	cur.label[0] = 0;
	memset(cur.label, 0, sizeof(cur.label));
	checkpoint(world, 0, 6);
	REFUSED(world, "12", 0, -PF_EMEMBER_MISSING, "pool a5a5a5a5-a5a5-a5a5-a5a5-a5a5a5a5a5a5:");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("assemble");
	TCase *tc = add_case(s, "refused");
	tcase_add_test(tc, missing);
	tcase_add_test(tc, not_a_member);
	tcase_add_test(tc, two_pools);
	tcase_add_test(tc, twice);
	tcase_add_test(tc, truncated);
	tcase_add_test(tc, stale);
	tcase_add_test(tc, stale_from_before_the_first_mount);
	tcase_add_test(tc, diverged);
	tcase_add_test(tc, diverged_though_its_root_verifies);
	tcase_add_test(tc, diverged_ahead_in_a_common_epoch);
	tcase_add_test(tc, equal_generations_of_two_histories);
	tcase_add_test(tc, a_damaged_root_is_not_staleness);
	tcase_add_test(tc, table_root_unreadable);
	tcase_add_test(tc, unknown_features);
	tcase_add_test(tc, read_only_member);
	tcase_add_test(tc, labels_do_not_reach_the_terminal);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
