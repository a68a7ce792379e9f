/* SPDX-License-Identifier: MIT
 * What an attack on the engine found: races made certain by a clock that stops a thread where it hurts, operations that fail half
 * way, pools that have failed. */
#include "unit/posix_util.h"

#include "block/extent.h"
#include "object/orphan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

static void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
	nanosleep(&t, NULL);
}

/* -- a thread that stops in the middle of a freeze -------------------------------------------------------------------- */
static atomic_int gate; /* 1: the next one to ask for the time waits, 2: it does, 0: nobody */
static atomic_bool done;

static int64_t stopping_clock(void *arg)
{
	int one = 1;
	if (atomic_compare_exchange_strong(&gate, &one, 2)) {
		while (atomic_load(&gate) == 2)
			sleep_ms(1);
	}
	return ((struct test_env *)arg)->now_ns;
}

static void setup_five(void)
{
	setup_with(5, 2, 64 * MIB);
}

static void *sync_file(void *arg)
{
	int err = pf_fsync(POOL, *(uint64_t *)arg);
	atomic_store(&done, true);
	return (void *)(intptr_t)err;
}

/* What was frozen a moment ago is neither dirty nor durable: an fsync waits for it too. (With a log it writes a record instead:
 * test_intent_sync.) */
START_TEST(fsync_waits_for_a_freeze_that_has_just_begun)
{
	pthread_t first, second;
	void *err;
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, "bytes", 5);
	sp->env.env.now_ns = stopping_clock;
	atomic_store(&gate, 1);
	pthread_create(&first, NULL, sync_file, &f);
	while (atomic_load(&gate) != 2)
		sleep_ms(1);
	atomic_store(&done, false);
	pthread_create(&second, NULL, sync_file, &f);
	sleep_ms(200);
	bool too_early = atomic_load(&done);
	atomic_store(&gate, 0);
	pthread_join(first, &err);
	ck_ok((intptr_t)err);
	pthread_join(second, &err);
	ck_ok((intptr_t)err);
	ck_assert_msg(!too_early, "fsync has returned before the checkpoint was durable");
}
END_TEST

/* -- ranges that take several transactions ---------------------------------------------------------------------------- */
#define PIECES 1500u

/* A tree of many leaves and hardly a cache. */
static void setup_cold(void)
{
	struct simpool_config config = { .nr_members = 2, .size_bytes = 64 * MIB, .seed = 1, .cache_bytes = 64 * KIB };
	setup_config(&config);
}

/* Every second block of it holds its number. */
static uint64_t make_pieces(const char *name)
{
	uint64_t f = make_file(PF_ROOT_INO, name);
	uint8_t block[4096];
	for (uint64_t k = 0; k < PIECES; k++) {
		memset(block, (int)(k % 255) + 1, sizeof(block));
		put(f, 2 * k * 4096, block, sizeof(block));
	}
	ck_ok(pf_fsync(POOL, f));
	return f;
}

static int punch(uint64_t f, uint64_t off, uint64_t len)
{
	return pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len, 0);
}

static uint64_t reads_of_all(void)
{
	return simdisk_count(simworld_disk(sp->world, 0), SIM_READ) +
	       simdisk_count(simworld_disk(sp->world, 1), SIM_READ);
}

enum { TRUNCATE, PUNCH };
enum { REWRITE, TO_NOTHING, REMOVE, EXTEND, AGAIN, NR_AFTER };

/* Runs the operation on a cold pool with reads that fail from the @skip-th on. */
static int run_failing(uint64_t f, int op, uint64_t skip)
{
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .skip = skip };
	simworld_add_fault(sp->world, &fault);
	int err = op == TRUNCATE ? truncate_to(f, 4096) : punch(f, 4096, 2 * PIECES * 4096 - 4096);
	simworld_clear_faults(sp->world);
	return err;
}

static void go_on(uint64_t f, const char *name, int what)
{
	uint8_t mine[8192];
	memset(mine, 0xee, sizeof(mine));
	switch (what) {
	case REWRITE:
		put(f, 2000 * 4096, mine, sizeof(mine));
		break;
	case TO_NOTHING:
		ck_ok(truncate_to(f, 0));
		break;
	case REMOVE:
		ck_ok(unlink_name(PF_ROOT_INO, name));
		pf_forget(POOL, f, 1);
		return;
	case EXTEND:
		ck_ok(truncate_to(f, 2 * PIECES * 4096));
		ck_zeros(f, 4096, (2 * PIECES - 1) * 4096);
		break;
	case AGAIN:
		ck_ok(punch(f, 4096, 2 * PIECES * 4096 - 4096));
	}
	ck_ok(pf_fsync(POOL, f));
}

static void look_at(const char *name, int what)
{
	uint8_t mine[8192], first[4096];
	uint64_t f = look(PF_ROOT_INO, name);
	memset(mine, 0xee, sizeof(mine));
	memset(first, 1, sizeof(first));
	if (what == REMOVE) {
		ck_assert_uint_eq(f, 0);
		return;
	}
	ck_assert_uint_ne(f, 0);
	if (what == TO_NOTHING) {
		ck_assert_uint_eq(attr_of(f).size_bytes, 0);
		ck_assert_uint_eq(attr_of(f).blocks, 0);
		return;
	}
	ck_bytes(f, 0, first, sizeof(first));
	if (what == REWRITE) {
		ck_bytes(f, 2000 * 4096, mine, sizeof(mine));
		ck_zeros(f, 4096, 1999 * 4096);
		ck_assert_uint_eq(attr_of(f).blocks, 3);
	} else {
		ck_assert_uint_eq(attr_of(f).blocks, 1);
	}
}

/* The first transaction goes through, a later one does not: whatever is done to the file then, nothing of it may be lost when
 * the rest of the range goes, and the pool can be mounted. */
START_TEST(a_range_half_removed_takes_nothing_written_later)
{
	int op = _i / NR_AFTER, what = _i % NR_AFTER;
	bool half = false;
	uint64_t step = 1;
	for (uint64_t skip = 0;; skip += step) {
		char name[16];
		sprintf(name, "f%ju", (uintmax_t)skip);
		uint64_t before = make_pieces(name);
		pf_forget(POOL, before, 1);
		remount();
		uint64_t f = look(PF_ROOT_INO, name), reads = reads_of_all();
		int err = run_failing(f, op, skip);
		if (!err && reads_of_all() - reads <= skip)
			break;
		struct pf_attr a = attr_of(f);
		if (a.blocks == PIECES) {
			ck_assert_int_ne(err, 0);
			ck_ok(unlink_name(PF_ROOT_INO, name));
			pf_forget(POOL, f, 1);
			continue;
		}
		half = true;
		go_on(f, name, what);
		remount();
		look_at(name, what);
		settle();
	}
	ck_assert(half);
}
END_TEST

/* A truncation to nothing that fails has not thrown away what was accepted before: the stage goes with the old data id. */
START_TEST(a_failed_truncation_to_nothing_keeps_the_stage)
{
	unsigned nr_failed = 0;
	for (uint64_t skip = 0; skip < 8; skip++) {
		char name[16];
		sprintf(name, "g%ju", (uintmax_t)skip);
		pf_forget(POOL, make_pieces(name), 1);
		remount();
		uint64_t f = look(PF_ROOT_INO, name);
		uint8_t block[4096];
		memset(block, 1, sizeof(block));
		put(f, 4096, "accepted", 8);
		/* every node of the tree but those of these files' extents has to make room */
		uint8_t *buf = aligned_alloc(4096, 2 * PIECES * 4096);
		ck_assert_int_gt(pf_read(POOL, f, 8192, buf, (2 * PIECES - 2) * 4096), 0);
		free(buf);
		struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .skip = skip };
		simworld_add_fault(sp->world, &fault);
		int err = truncate_to(f, 0);
		simworld_clear_faults(sp->world);
		if (!err)
			break;
		nr_failed++;
		ck_bytes(f, 4096, "accepted", 8);
		ck_ok(pf_fsync(POOL, f));
		remount();
		f = look(PF_ROOT_INO, name);
		ck_bytes(f, 0, block, sizeof(block));
		ck_bytes(f, 4096, "accepted", 8);
	}
	ck_assert_uint_gt(nr_failed, 0);
}
END_TEST

/* -- a pool that has failed ------------------------------------------------------------------------------------------- */
static void fail_pool(void)
{
	struct sim_fault fault = { .ops = SIM_FLUSH, .kind = SIM_FAIL };
	uint64_t other = make_file(PF_ROOT_INO, "other");
	simworld_add_fault(sp->world, &fault);
	ck_err(pf_fsync(POOL, other), -EIO);
	ck_assert(pf_pool_read_only(POOL));
}

static void abandon(void)
{
	char why[1200] = "";
	simpool_abandon(sp);
	simworld_clear_faults(sp->world);
	ck_assert_msg(simpool_open(sp, false, why, sizeof(why)) == 0, "open: %s", why);
	teardown();
}

/* Deleted extents that wait for the reaper when the pool fails: it cannot do anything, and must not try without a pause. */
START_TEST(the_reaper_of_a_failed_pool_rests)
{
	struct rusage before, after;
	uint64_t f = make_pieces("f");
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	pf_forget(POOL, f, 1);
	fail_pool();
	ck_ok(pf_pool_start_workers(POOL));
	getrusage(RUSAGE_SELF, &before);
	sleep_ms(400);
	getrusage(RUSAGE_SELF, &after);
	int64_t us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) *
			     1000000 +
		     after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
		     before.ru_stime.tv_usec;
	ck_assert_msg(us < 40000, "%jd us of 400,000 were used", (intmax_t)us);
	abandon();
}
END_TEST

/* engine.h I4 */
START_TEST(a_failed_pool_says_so)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, "bytes", 5);
	fail_pool();
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_err(pf_pool_sync(POOL), -EIO);
	ck_err(pf_write(POOL, f, 0, "more", 4, 0), -EROFS);
	ck_err(unlink_name(PF_ROOT_INO, "f"), -EROFS);
	ck_bytes(f, 0, "bytes", 5);
	ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_DATA), 0);
	ck_assert_int_eq(pf_lseek(POOL, f, 0, SEEK_HOLE), 5);
	abandon();
}
END_TEST

/* What a flush could not write is lost, also when the host says that it had no room. (Version 6: test_member_fails.) */
START_TEST(a_flush_without_room_is_final)
{
	struct sim_fault fault = {
		.ops = SIM_FLUSH, .kind = SIM_FAIL, .err = -ENOSPC, .skip = (uint64_t)_i, .count = 1
	};
	uint64_t f = make_file(PF_ROOT_INO, "f");
	simworld_add_fault(sp->world, &fault);
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_assert(pf_pool_read_only(POOL));
	simworld_clear_faults(sp->world);
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_err(pf_write(POOL, f, 0, "more", 4, 0), -EROFS);
	abandon();
}
END_TEST

/* -- damage that checksums do not show -------------------------------------------------------------------------------- */

/* Extents that overlap: writing over them is refused, whichever comes first, and never ends in an assertion. */
START_TEST(overlapping_extents_are_refused)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, 100 * 4096);
	put(f, 0, p, 100 * 4096);
	ck_ok(pf_fsync(POOL, f));
	uint64_t data_id = f;
	struct pf_extent e;
	ck_ok(pf_extent_find(POOL, data_id, 0, &e));
	struct pf_txn txn;
	pf_txn_init(&txn, POOL->tree);
	pf_txn_want(&txn, pf_key_extent(data_id, 0), pf_key_extent(data_id, 100), 60 * 100);
	ck_ok(pf_txn_lock(&txn));
	for (unsigned k = 50; k < 90; k++) {
		uint8_t item[PF_EXTENT_ITEM_MAX];
		struct pf_extent inner = { .data_id = data_id,
					   .start = k,
					   .nr = 1,
					   .flags = PF_EXTENT_UNWRITTEN,
					   .nr_copies = 1,
					   .addr = { e.addr[0] + k } };
		pf_txn_put(&txn, pf_key_extent(data_id, k), item, pf_extent_pack(&inner, item));
	}
	pf_txn_end(&txn);
	ck_assert_int_lt(pf_write(POOL, f, 0, p, 100 * 4096, 0), 0);
	ck_assert_int_lt(truncate_to(f, 4096 * 10), 0);
	simpool_abandon(sp);
	simpool_free(sp);
	free(p);
}
END_TEST

static void setup_small(void)
{
	setup_with(5, 1, 16 * MIB);
}

/* However often a checkpoint is tried in vain while the host has no room, it succeeds when there is some. */
START_TEST(a_full_host_does_not_use_up_the_pool)
{
	struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_FAIL, .err = -ENOSPC };
	char name[16];
	ck_ok(pf_pool_sync(POOL));
	uint64_t before = free_blocks();
	for (unsigned k = 0; k < 400; k++) {
		sprintf(name, "%u", k);
		make_file(PF_ROOT_INO, name);
	}
	simworld_add_fault(sp->world, &fault);
	for (unsigned k = 0; k < 300; k++)
		ck_err(pf_pool_sync(POOL), -ENOSPC);
	simworld_clear_faults(sp->world);
	ck_ok(pf_pool_sync(POOL));
	remount();
	ck_assert_uint_ne(look(PF_ROOT_INO, "399"), 0);
	ck_assert_uint_eq(free_blocks(), before);
}
END_TEST

/* Directories that are each other's parents: a rename that looks for a way to the root ends. */
START_TEST(a_ring_of_parents_is_refused)
{
	uint64_t top = make_dir(PF_ROOT_INO, "top"), dir = top, moved = make_dir(PF_ROOT_INO, "moved");
	for (int k = 0; k < 5; k++)
		dir = make_dir(dir, "d");
	struct pf_inode *inode;
	ck_ok(pf_inode_get(POOL, _i ? top : dir, &inode));
	inode->item.parent = dir;
	pf_inode_put(POOL, inode);
	ck_err(rename_name(PF_ROOT_INO, "moved", dir, "m", 0), -PF_EITEM_INVALID);
	ck_assert_uint_eq(look(PF_ROOT_INO, "moved"), moved);
	simpool_abandon(sp);
	simpool_free(sp);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attack");
	TCase *t = tcase_create("races, version 5");
	tcase_add_checked_fixture(t, setup_five, teardown);
	tcase_add_test(t, fsync_waits_for_a_freeze_that_has_just_begun);
	suite_add_tcase(s, t);
	t = tcase_create("ranges");
	tcase_add_checked_fixture(t, setup_cold, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, a_range_half_removed_takes_nothing_written_later, 0, 2 * NR_AFTER);
	tcase_add_test(t, a_failed_truncation_to_nothing_keeps_the_stage);
	suite_add_tcase(s, t);
	t = tcase_create("failed");
	tcase_add_checked_fixture(t, setup_cold, NULL);
	tcase_add_test(t, the_reaper_of_a_failed_pool_rests);
	tcase_add_test(t, a_failed_pool_says_so);
	tcase_add_loop_test(t, a_ring_of_parents_is_refused, 0, 2);
	tcase_add_test(t, overlapping_extents_are_refused);
	suite_add_tcase(s, t);
	t = tcase_create("failed, version 5");
	tcase_add_checked_fixture(t, setup_five, NULL);
	tcase_add_loop_test(t, a_flush_without_room_is_final, 0, 3);
	suite_add_tcase(s, t);
	t = tcase_create("host");
	tcase_add_checked_fixture(t, setup_small, teardown);
	tcase_add_test(t, a_full_host_does_not_use_up_the_pool);
	suite_add_tcase(s, t);
	return run_suite(s);
}
