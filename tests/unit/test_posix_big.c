/* SPDX-License-Identifier: MIT
 * posix.h at some size: directories of many entries, cookies while they change, a file in very many pieces, damaged blocks. */
#include "unit/posix_util.h"

#define NR_ENTRIES 20000u

static void setup_big(void)
{
	setup_with(5, 2, 64 * MIB);
}
static void setup_v4(void)
{
	setup_with(4, 2, 32 * MIB);
}

static void entry_name(unsigned k, char *name)
{
	sprintf(name, "entry-%u%s", k, k % 16 ? "" : "-with-a-rather-longer-name-than-the-others-have");
}

struct walk {
	bool *seen;
	unsigned nr, nr_dots, room;
	uint64_t cookie;
};

static bool walk_entry(void *arg, const struct pf_dirent *d)
{
	struct walk *w = arg;
	if (!w->room)
		return false;
	w->room--;
	ck_assert_uint_gt(d->cookie, w->cookie);
	ck_assert_uint_lt(d->cookie, UINT64_C(1) << 63);
	w->cookie = d->cookie;
	if (d->name[0] == '.') {
		w->nr_dots++;
		return true;
	}
	char name[256] = "";
	memcpy(name, d->name, d->len);
	unsigned k = (unsigned)strtoul(name + 6, NULL, 10);
	ck_assert_uint_lt(k, NR_ENTRIES);
	ck_assert(!w->seen[k]);
	w->seen[k] = true;
	w->nr++;
	return true;
}

START_TEST(big_directories)
{
	char name[80];
	uint64_t d = make_dir(PF_ROOT_INO, "d");
	for (unsigned k = 0; k < NR_ENTRIES; k++) {
		entry_name(k, name);
		pf_forget(POOL, make_file(d, name), 1);
	}
	remount();
	d = look(PF_ROOT_INO, "d");
	struct walk w = { .seen = calloc(NR_ENTRIES, sizeof(bool)) };
	/* between the pieces, entries on both sides of the cookie go: those ahead must not come, no other may be left out */
	bool *gone = calloc(NR_ENTRIES, sizeof(bool));
	struct rng r = { .state = 3 };
	for (unsigned before = UINT32_MAX; before != w.nr + w.nr_dots;) {
		before = w.nr + w.nr_dots;
		w.room = 1 + (unsigned)rng_below(&r, 300);
		ck_ok(pf_readdir(POOL, d, w.cookie, walk_entry, &w));
		for (unsigned n = 0; n < 20; n++) {
			unsigned k = (unsigned)rng_below(&r, NR_ENTRIES);
			if (gone[k])
				continue;
			entry_name(k, name);
			ck_ok(unlink_name(d, name));
			gone[k] = true;
		}
	}
	ck_assert_uint_eq(w.nr_dots, 2);
	for (unsigned k = 0; k < NR_ENTRIES; k++) {
		entry_name(k, name);
		ck_assert_msg(w.seen[k] || gone[k], "%s never came", name);
		ck_assert_int_eq(look(d, name) != 0, !gone[k]);
		if (!gone[k])
			ck_ok(unlink_name(d, name));
	}
	ck_ok(rmdir_name(PF_ROOT_INO, "d"));
	free(gone);
	free(w.seen);
}
END_TEST

START_TEST(a_file_in_many_pieces)
{
	const size_t len = 3 * MIB;
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(11, len);
	struct rng r = { .state = 4 };
	for (size_t at = 0; at < len;) {
		size_t n = 1 + (size_t)rng_below(&r, rng_one_in(&r, 2) ? 5000 : 40);
		if (n > len - at)
			n = len - at;
		put(f, at, p + at, n);
		at += n;
		if (rng_one_in(&r, 300))
			ck_assert_int_ge(pf_pool_step(POOL, true), 0);
	}
	ck_bytes(f, 0, p, len);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_bytes(f, 0, p, len);
	ck_assert_uint_eq(attr_of(f).blocks, len / 4096);
	free(p);
}
END_TEST

START_TEST(every_other_block)
{
	/* the most extents that a file of its size can have, first backwards, then the gaps */
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(12, 4096);
	for (unsigned k = 2000; k-- > 0;) {
		memcpy(p, &k, sizeof(k));
		put(f, (2 * k + 1) * UINT64_C(4096), p, 4096);
	}
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_assert_uint_eq(attr_of(f).blocks, 2000);
	for (unsigned k = 0; k < 2000; k++) {
		memcpy(p, &k, sizeof(k));
		ck_zeros(f, 2 * k * UINT64_C(4096), 4096);
		ck_bytes(f, (2 * k + 1) * UINT64_C(4096), p, 4096);
		put(f, 2 * k * UINT64_C(4096), p, 4096);
	}
	ck_assert_uint_eq(attr_of(f).blocks, 4000);
	remount();
	f = look(PF_ROOT_INO, "f");
	for (unsigned k = 0; k < 4000; k++) {
		unsigned n = k / 2;
		memcpy(p, &n, sizeof(n));
		ck_bytes(f, k * UINT64_C(4096), p, 4096);
	}
	free(p);
}
END_TEST

/* Finds the block on disk by its content and flips a bit of it. */
static void flip_in_data(const uint8_t *block)
{
	uint8_t on_disk[4096];
	unsigned nr = 0;
	for (unsigned d = 0; d < simworld_nr_disks(sp->world); d++) {
		struct simdisk *disk = simworld_disk(sp->world, d);
		for (uint64_t at = 0; at + 4096 <= simdisk_size(disk); at += 4096) {
			simdisk_peek(disk, at, on_disk, 4096);
			if (memcmp(on_disk, block, 4096))
				continue;
			simdisk_flip_bit(disk, at + 1234, 5);
			nr++;
		}
	}
	ck_assert_uint_eq(nr, 1);
}

static uint64_t damaged_file(uint8_t *p, size_t len, unsigned block)
{
	char why[1200];
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, p, len);
	ck_ok(simpool_close(sp, why, sizeof(why)));
	flip_in_data(p + block * 4096);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	return look(PF_ROOT_INO, "f");
}

static void teardown_damaged(void)
{
	char why[1200] = "";
	ck_assert_msg(simpool_close(sp, why, sizeof(why)) == 0, "close: %s", why);
	simpool_free(sp);
}

START_TEST(a_flipped_bit_costs_one_block)
{
	const size_t len = 2 * MIB;
	uint8_t *p = pattern(13, len);
	uint64_t f = damaged_file(p, len, 300);
	int64_t n;
	for (unsigned k = 0; k < len / 4096; k++) {
		if (k != 300)
			ck_bytes(f, k * UINT64_C(4096), p + k * 4096, 4096);
	}
	uint8_t *got = get(f, 300 * 4096, 4096, &n);
	ck_assert_int_lt(n, 0);
	ck_assert_int_eq(pf_errno((int)n), EIO);
	free(got);
	free(get(f, 300 * 4096 + 17, 1, &n));
	ck_assert_int_lt(n, 0);
	/* anywhere in the range: never a short read */
	free(get(f, 0, len, &n));
	ck_assert_int_lt(n, 0);
	ck_assert_int_eq(pf_errno((int)n), EIO);
	/* part of a damaged block cannot be replaced, the whole can */
	ck_assert_int_lt(pf_write(POOL, f, 300 * 4096 + 5, "x", 1, 0), 0);
	put(f, 300 * 4096, p + 300 * 4096, 4096);
	ck_bytes(f, 0, p, len);
	free(p);
}
END_TEST

START_TEST(version_4_does_not_notice)
{
	const size_t len = 64 * KIB;
	uint8_t *p = pattern(13, len);
	uint64_t f = damaged_file(p, len, 3);
	p[3 * 4096 + 1234] ^= 1 << 5;
	ck_bytes(f, 0, p, len);
	free(p);
}
END_TEST

START_TEST(an_unreadable_block_costs_one_block)
{
	const size_t len = MIB;
	uint8_t *p = pattern(14, len);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, p, len);
	remount();
	f = look(PF_ROOT_INO, "f");
	ck_bytes(f, 0, p, 4096); /* what leads to the data is in memory now */
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL };
	int64_t n;
	simworld_add_fault(sp->world, &fault);
	free(get(f, 8192, 4096, &n));
	ck_assert_int_eq(n, -EIO);
	simworld_clear_faults(sp->world);
	ck_bytes(f, 0, p, len);
	/* what fails once is read again */
	fault.count = 1;
	simworld_add_fault(sp->world, &fault);
	ck_bytes(f, 0, p, len);
	simworld_clear_faults(sp->world);
	free(p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix at size");
	TCase *t = tcase_create("size");
	tcase_add_checked_fixture(t, setup_big, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, big_directories);
	tcase_add_test(t, a_file_in_many_pieces);
	tcase_add_test(t, every_other_block);
	suite_add_tcase(s, t);
	t = tcase_create("damage");
	tcase_add_checked_fixture(t, setup, teardown_damaged);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_flipped_bit_costs_one_block);
	tcase_add_test(t, an_unreadable_block_costs_one_block);
	suite_add_tcase(s, t);
	t = tcase_create("damage in version 4");
	tcase_add_checked_fixture(t, setup_v4, teardown_damaged);
	tcase_add_test(t, version_4_does_not_notice);
	suite_add_tcase(s, t);
	return run_suite(s);
}
