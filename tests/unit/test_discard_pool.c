/* SPDX-License-Identifier: MIT
 * Discards of a whole pool: by steps, at the unmount, by threads; trims; and a host that is full. */
#include "unit/posix_util.h"

#include "block/engine.h"
#include "space/private.h"

#include <pthread.h>

static bool allocated; /* all images in full */

static void open_with(enum pf_discard_mode mode)
{
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag;
	struct pf_pool_options options = { .cache_bytes = 16 * MIB, .discard = mode, .commit_interval_ms = 20 };
	char why[1200] = "";
	ck_assert_msg(simpool_close(sp, why, sizeof(why)) == 0, "close: %s", why);
	simworld_open(sp->world, false, ios);
	for (unsigned i = 0; i < simworld_nr_disks(sp->world); i++)
		ios[i]->sparse = !allocated;
	ck_ok(pf_pool_open_ios(ios, simworld_nr_disks(sp->world), &options, &sp->env.env, &sp->pool, &diag));
}

static void setup_discard(void)
{
	setup_with(PF_VERSION_DEFAULT, 2, 64 * MIB);
	open_with(PF_DISCARD_ALL);
}

static void setup_newest(void)
{
	setup_with(PF_VERSION_NEWEST, 1, 48 * MIB);
	open_with(PF_DISCARD_ALL);
}

static uint64_t nr_discards(void)
{
	uint64_t nr = 0;
	for (unsigned i = 0; i < simworld_nr_disks(sp->world); i++)
		nr += simdisk_count(simworld_disk(sp->world, i), SIM_DISCARD);
	return nr;
}

static uint64_t write_file(const char *name, uint64_t mib, uint64_t seed)
{
	uint64_t ino = make_file(PF_ROOT_INO, name);
	uint8_t *buf = pattern(seed, MIB);
	for (uint64_t i = 0; i < mib; i++)
		put(ino, i * MIB, buf, MIB);
	free(buf);
	return ino;
}

static void check_file(uint64_t ino, uint64_t mib, uint64_t seed)
{
	uint8_t *buf = pattern(seed, MIB);
	for (uint64_t i = 0; i < mib; i++)
		ck_bytes(ino, i * MIB, buf, MIB);
	free(buf);
}

static void forget_all(const char *name, uint64_t ino)
{
	ck_ok(unlink_name(PF_ROOT_INO, name));
	pf_forget(POOL, ino, 1);
}

static uint64_t trim_all(bool unused, uint64_t min_bytes)
{
	struct pf_trim trim = { .unused = unused, .min_blocks = min_bytes / PF_BLOCK_SIZE };
	uint64_t before = 0, total;
	int more;
	ck_ok(pf_pool_trim_begin(POOL));
	pf_pool_trim_range(POOL, 0, UINT64_MAX, &trim);
	while ((more = pf_pool_trim_step(POOL, &trim)) > 0) {
		uint64_t place = pf_pool_trim_place(POOL, &trim, &total);
		ck_assert_uint_ge(place, before);
		ck_assert_uint_le(place, total);
		before = place;
	}
	ck_ok(more);
	ck_assert_uint_eq(pf_pool_trim_place(POOL, &trim, &total), total);
	return trim.trimmed_blocks * PF_BLOCK_SIZE;
}

/* Nothing happens by itself without threads; each step does a little. */
START_TEST(by_steps)
{
	uint64_t fresh = free_blocks(), kept = write_file("kept", 3, 1), ino = write_file("f", 20, 2);
	settle();
	ck_assert_uint_eq(nr_discards(), 0);
	forget_all("f", ino);
	settle();
	while (pf_pool_step(POOL, false) == 1)
		;
	ck_assert_uint_gt(nr_discards(), 0);
	ck_assert_uint_lt(nr_discards(), 40); /* put together */
	ck_assert_uint_eq(free_blocks(), fresh - 3 * MIB / PF_BLOCK_SIZE);
	check_file(kept, 3, 1);
	ino = write_file("g", 20, 3);
	settle();
	remount();
	ino = look(PF_ROOT_INO, "g");
	check_file(ino, 20, 3);
}
END_TEST

START_TEST(at_the_unmount)
{
	uint64_t ino = write_file("f", 10, 2);
	settle();
	forget_all("f", ino);
	open_with(PF_DISCARD_ALL);
	ck_assert_uint_gt(nr_discards(), 0);
}
END_TEST

/* Member 0 is an image file, member 1 a device. */
START_TEST(which_members)
{
	static const struct {
		enum pf_discard_mode mode;
		uint32_t members;
	} cases[] = { { PF_DISCARD_NONE, 0 }, { PF_DISCARD_SPARSE, 1 }, { PF_DISCARD_ALL, 3 } };
	for (unsigned i = 0; i < 3; i++) {
		open_with(cases[i].mode);
		ck_assert_uint_eq(pf_space_discards(POOL->space), cases[i].members);
		char *json = pf_pool_status_json(POOL);
		ck_assert_int_eq(strstr(json, "\"discard\":true") != NULL, cases[i].members != 0);
		free(json);
	}
	/* a file that its host has allocated in full is left so, unless it is said otherwise */
	allocated = true;
	open_with(PF_DISCARD_SPARSE);
	ck_assert_uint_eq(pf_space_discards(POOL->space), 0);
	open_with(PF_DISCARD_ALL);
	ck_assert_uint_eq(pf_space_discards(POOL->space), 3);
}
END_TEST

START_TEST(trims)
{
	open_with(PF_DISCARD_NONE);
	uint64_t kept = write_file("kept", 3, 1), ino = write_file("f", 20, 2);
	ck_ok(pf_pool_sync(POOL));
	uint64_t before = trim_all(false, 0);
	forget_all("f", ino);
	/* what was deleted is free when the trim begins, not just after a while */
	ck_assert_uint_ge(trim_all(false, 0), before + 19 * MIB);
	check_file(kept, 3, 1);
	uint64_t nr = nr_discards();
	ck_assert_uint_eq(trim_all(true, 1024 * MIB), 0);
	ck_assert_uint_eq(nr_discards(), nr);
	ck_assert_uint_gt(trim_all(true, 0), 80 * MIB);
	check_file(kept, 3, 1);
	/* a range of it */
	struct pf_trim trim = { .unused = true };
	uint64_t total;
	pf_pool_trim_range(POOL, 70 * MIB, 20 * MIB, &trim);
	ck_assert_uint_eq(pf_pool_trim_place(POOL, &trim, &total), 70 * MIB);
	ck_assert_uint_eq(trim.member, 1);
	while (pf_pool_trim_step(POOL, &trim) > 0)
		;
	ck_assert_uint_le(trim.trimmed_blocks, 20 * MIB / PF_BLOCK_SIZE);
	ck_assert_uint_gt(trim.trimmed_blocks, 15 * MIB / PF_BLOCK_SIZE);
	remount();
	check_file(look(PF_ROOT_INO, "kept"), 3, 1);
}
END_TEST

/* Nothing of a pool that was opened for reading, and nothing while the log has to be redone: what it names is free in the maps. */
START_TEST(no_trim)
{
	struct pf_trim trim = { .unused = true };
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag;
	char why[1200] = "";
	uint64_t ino = write_file("f", 2, 1);
	ck_ok(pf_pool_sync(POOL));
	put(ino, MIB / 2, "new", 3);
	ck_ok(pf_fsync(POOL, ino));
	simpool_abandon(sp);
	struct pf_pool_options options = { .no_recovery = true, .discard = PF_DISCARD_ALL };
	simworld_open(sp->world, false, ios);
	ck_ok(pf_pool_open_ios(ios, simworld_nr_disks(sp->world), &options, &sp->env.env, &sp->pool, &diag));
	ck_assert_uint_eq(pf_space_discards(POOL->space), 0);
	ck_err(pf_pool_trim_begin(POOL), -EROFS);
	ck_err(pf_pool_trim_step(POOL, &trim), -EROFS);
	ck_assert_msg(simpool_close(sp, why, sizeof(why)) == 0, "close: %s", why);
	ck_assert_msg(simpool_open(sp, true, why, sizeof(why)) == 0, "open: %s", why);
	ck_err(pf_pool_trim_begin(POOL), -EROFS);
	ck_err(pf_pool_trim_step(POOL, &trim), -EROFS);
	ck_assert_uint_eq(nr_discards(), 0);
	remount();
	ck_bytes(look(PF_ROOT_INO, "f"), MIB / 2, "new", 3);
}
END_TEST

/* A pool that was full, and whose space was given back, on a host where nothing is left: what mkfs had allocated is still there,
 * so names change, and checkpoints succeed. */
START_TEST(full_host)
{
	const struct pf_geometry *geo = &POOL->set->members[0].geo;
	uint64_t home_end = geo->data_start + POOL->super.members[0].share_blocks;
	uint64_t ino = write_file("f", 30, 2);
	for (unsigned i = 0; i < 300; i++) { /* nodes come around */
		char name[20];
		snprintf(name, sizeof(name), "n%u", i);
		make_file(PF_ROOT_INO, name);
		ck_ok(pf_pool_sync(POOL));
	}
	forget_all("f", ino);
	settle();
	while (pf_pool_step(POOL, false) == 1)
		;
	ck_assert_uint_gt(nr_discards(), 0);
	struct sim_fault full = { .ops = SIM_WRITE, .err = -ENOSPC, .from_bytes = home_end * PF_BLOCK_SIZE,
				  .to_bytes = geo->data_end * PF_BLOCK_SIZE };
	unsigned fault = simworld_add_fault(sp->world, &full);
	for (unsigned i = 0; i < 50; i++) {
		char name[20];
		snprintf(name, sizeof(name), "n%u", i);
		ck_ok(unlink_name(PF_ROOT_INO, name));
		ck_ok(pf_pool_sync(POOL));
	}
	ck_assert_uint_gt(simworld_fault_hits(sp->world, fault), 0);
	simworld_clear_faults(sp->world);
}
END_TEST

static atomic_bool stop;

static void *trim_for_ever(void *arg)
{
	struct pf_pool *pool = arg;
	while (!atomic_load(&stop)) {
		struct pf_trim trim = { .unused = true };
		while (!atomic_load(&stop) && pf_pool_trim_step(pool, &trim) > 0)
			;
	}
	return NULL;
}

/* With all threads, trims at the same time, and little room: every byte is what was written. */
START_TEST(beside_everything)
{
	pthread_t thread;
	ck_ok(pf_pool_start_workers(POOL));
	atomic_store(&stop, false);
	pthread_create(&thread, NULL, trim_for_ever, POOL);
	for (unsigned round = 0; round < 12; round++) {
		uint64_t a = write_file("a", 14, 10 + round), b = write_file("b", 14, 100 + round);
		check_file(a, 14, 10 + round);
		forget_all("a", a);
		uint64_t c = write_file("c", 12, 200 + round);
		check_file(b, 14, 100 + round);
		check_file(c, 12, 200 + round);
		forget_all("b", b);
		forget_all("c", c);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_gt(nr_discards(), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("discard_pool");
	TCase *tc = tcase_create("pool");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_discard, teardown);
	tcase_add_test(tc, by_steps);
	tcase_add_test(tc, at_the_unmount);
	tcase_add_test(tc, which_members);
	tcase_add_test(tc, trims);
	suite_add_tcase(s, tc);
	tc = tcase_create("newest");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup_newest, teardown);
	tcase_add_test(tc, no_trim);
	tcase_add_test(tc, full_host);
	tcase_add_test(tc, beside_everything);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
