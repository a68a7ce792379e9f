/* SPDX-License-Identifier: MIT
 * Files that are drained in the background (object/drain.h): read, written and changed meanwhile; a drain that fails before, in and after its
 * mapping; where scattered blocks lie. Here pf_pool_step() is the background. The linker leads some calls here (tests/local.mk). */
#include "unit/posix_util.h"

#include "block/extent.h"
#include "object/drain.h"
#include "object/stage.h"

#define MAX 8u  /* blocks in a stage */
#define PART 2u /* pieces in a transaction */
#define BLOCKS 64u

int __real_pf_txn_lock(struct pf_txn *txn);
int __wrap_pf_txn_lock(struct pf_txn *txn);
void __real_pf_inode_lock_busy(struct pf_inode *inode);
void __wrap_pf_inode_lock_busy(struct pf_inode *inode);

static int txn_err;          /* of every transaction */
static unsigned txns_before; /* that succeed before that */
static void (*in_between)(void); /* before each part of a mapping */
static unsigned nr_between;

void __wrap_pf_inode_lock_busy(struct pf_inode *inode)
{
	if (in_between) {
		in_between();
		nr_between++;
	}
	__real_pf_inode_lock_busy(inode);
}

int __wrap_pf_txn_lock(struct pf_txn *txn)
{
	if (txn_err && !txns_before)
		return txn_err;
	txns_before -= txns_before > 0;
	return __real_pf_txn_lock(txn);
}

static uint8_t *bytes; /* what the file should be */
static uint64_t file;

static void setup_drains(unsigned version, unsigned nr_members)
{
	struct simpool_config config = { .version = version, .nr_members = nr_members, .size_bytes = 48 * MIB, .seed = 1,
					 .stage_max = MAX, .map_max = PART };
	txn_err = 0;
	in_between = NULL;
	setup_config(&config);
	bytes = pattern(1, BLOCKS * 4 * KIB);
	file = make_file(PF_ROOT_INO, "f");
	put(file, 0, bytes, BLOCKS * 4 * KIB);
	settle();
}

static void setup_v5(void)
{
	setup_drains(5, 1);
}
static void setup_v6(void)
{
	setup_drains(6, 2);
}

static void end(void)
{
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	settle();
	ck_assert_uint_eq(atomic_load(&POOL->staged_blocks), 0);
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	teardown();
	free(bytes);
}

/* All of one block, or some bytes of it. */
static void write_some(unsigned block, unsigned from, unsigned to)
{
	static unsigned char next;
	memset(bytes + block * 4 * KIB + from, ++next, to - from);
	put(file, block * 4 * KIB + from, bytes + block * 4 * KIB + from, to - from);
}
static void write_block(unsigned block)
{
	write_some(block, 0, 4096);
}

/* One drain is left to the background, of MAX blocks; one block more is staged. */
static void begin_drain(void)
{
	for (unsigned i = 0; i <= MAX; i++)
		write_block(3 * i);
}

static uint64_t reserved(void)
{
	struct pf_space_stats s;
	pf_space_stats(POOL->space, &s);
	return s.reserved_blocks;
}

static bool waits(void)
{
	return !TAILQ_EMPTY(&POOL->drains);
}

static void fail_writes(uint64_t count)
{
	struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_FAIL, .count = count, .err = -EIO };
	simworld_add_fault(sp->world, &fault);
}

START_TEST(read_and_written_meanwhile)
{
	begin_drain();
	ck_assert(waits());
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	write_some(3, 100, 200);   /* of a sealed block: its newest bytes are in memory only */
	write_some(5, 4000, 4096); /* of one that is in the tree */
	write_block(0);
	ck_assert(waits());
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	ck_assert_int_eq(pf_pool_step(POOL, false), 1);
	ck_assert(!waits());
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	ck_assert_uint_eq(reserved(), atomic_load(&POOL->staged_blocks));
}
END_TEST

/* SEEK_DATA, and what stat(2) says. */
START_TEST(what_is_known_of_it)
{
	uint64_t g = make_file(PF_ROOT_INO, "g");
	for (unsigned i = 0; i <= MAX; i++)
		put(g, (10 + 2 * i) * 4 * KIB, "x", 1);
	ck_assert(waits());
	ck_assert_int_eq(pf_lseek(POOL, g, 0, SEEK_DATA), 10 * 4 * KIB);
	ck_assert_int_eq(pf_lseek(POOL, g, 11 * 4 * KIB, SEEK_DATA), 12 * 4 * KIB);
	ck_assert_uint_eq(attr_of(g).blocks, MAX + 1);
	ck_assert_uint_eq(attr_of(g).size_bytes, (10 + 2 * MAX) * 4 * KIB + 1);
	settle();
	ck_assert_uint_eq(attr_of(g).blocks, MAX + 1);
}
END_TEST

/* Whoever needs the file for himself does the drain that nobody has begun. */
static void by_fsync(void)
{
	ck_ok(pf_fsync(POOL, file));
}
static void by_truncate(void)
{
	ck_ok(truncate_to(file, 10 * 4 * KIB));
	memset(bytes + 10 * 4 * KIB, 0, (BLOCKS - 10) * 4 * KIB);
	ck_ok(truncate_to(file, BLOCKS * 4 * KIB));
}
static void by_large_write(void)
{
	memset(bytes + 4096, 77, 100 * KIB);
	put(file, 4096, bytes + 4096, 100 * KIB);
}
static void by_punch(void)
{
	memset(bytes, 0, 9 * 4 * KIB);
	ck_ok(pf_fallocate(POOL, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 9 * 4 * KIB, 0));
}
static void by_rename(void)
{
	ck_ok(rename_name(PF_ROOT_INO, "f", PF_ROOT_INO, "h", 0));
}
static void by_filling_another_stage(void)
{
	for (unsigned i = 0; i < 3 * MAX; i++)
		write_block(i);
}
static void by_sync(void)
{
	ck_ok(pf_pool_sync(POOL));
}
static void (*const needs[])(void) = { by_fsync, by_truncate, by_large_write, by_punch, by_rename, by_filling_another_stage, by_sync };

START_TEST(who_waits_does_it)
{
	begin_drain();
	needs[_i]();
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	settle();
	char why[1200];
	simpool_abandon(sp);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	file = look(PF_ROOT_INO, needs[_i] == by_rename ? "h" : "f");
}
END_TEST

/* Between the parts of a mapping the file is read and written. */
static void read_and_write(void)
{
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	write_some(6, 1, 9);
}

START_TEST(between_the_parts)
{
	begin_drain();
	in_between = read_and_write;
	ck_assert_int_eq(pf_pool_step(POOL, false), 1);
	in_between = NULL;
	ck_assert_uint_eq(nr_between, MAX / PART + 1);
}
END_TEST

/* The part that fails leaves the rest staged, with its promise, and the next drain does it. */
START_TEST(fails_in_the_mapping)
{
	begin_drain();
	uint64_t free_before = free_blocks();
	txn_err = -ENOMEM;
	txns_before = (unsigned)_i;
	ck_assert_int_eq(pf_pool_step(POOL, false), 1);
	unsigned mapped = (unsigned)_i * PART < MAX ? (unsigned)_i * PART : MAX;
	ck_assert_uint_eq(atomic_load(&POOL->staged_blocks), MAX + 1 - mapped);
	ck_assert_uint_eq(reserved(), MAX + 1 - mapped);
	ck_assert_uint_eq(free_blocks(), free_before + mapped); /* what they replace */
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	if (mapped < MAX)
		ck_err(pf_fsync(POOL, file), -ENOMEM);
	write_some(3, 5, 50);
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	txn_err = 0;
	ck_ok(pf_fsync(POOL, file));
	ck_assert_uint_eq(reserved(), 0);
}
END_TEST

/* Its blocks stay staged, whoever drained; a writer who needs room hears of it, and sync. */
START_TEST(fails_to_write)
{
	uint64_t free_before = free_blocks();
	begin_drain();
	fail_writes(0);
	ck_assert_int_eq(pf_pool_step(POOL, false), 1);
	ck_assert_uint_eq(reserved(), MAX + 1);
	for (unsigned i = 1; i < MAX; i++)
		write_block(3 * i);
	int64_t n = pf_write(POOL, file, 50 * 4 * KIB, bytes, 4096, 0);
	ck_err(n, -EIO);
	ck_err(pf_pool_sync(POOL), -EIO);
	ck_err(pf_fsync(POOL, file), -EIO);
	ck_bytes(file, 0, bytes, BLOCKS * 4 * KIB);
	simworld_clear_faults(sp->world);
	ck_ok(pf_pool_sync(POOL));
	ck_assert_uint_eq(reserved(), 0);
	ck_assert_uint_eq(free_blocks(), free_before);
}
END_TEST

START_TEST(dropped_while_it_waits)
{
	begin_drain();
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	pf_forget(POOL, file, 1);
	settle();
	ck_assert_uint_eq(reserved(), 0);
	file = make_file(PF_ROOT_INO, "f");
	put(file, 0, bytes, BLOCKS * 4 * KIB);
}
END_TEST

/* What a crash leaves has the bytes, the size and the times of one moment. */
START_TEST(one_moment)
{
	char why[1200];
	uint64_t g = make_file(PF_ROOT_INO, "g");
	settle();
	tick();
	for (unsigned i = 0; i < MAX; i++)
		put(g, 2 * i * 4 * KIB, "x", 1);
	struct pf_attr then = attr_of(g);
	tick();
	put(g, 40 * 4 * KIB, "later", 5);
	ck_assert(waits());
	ck_assert_uint_eq(pf_drain_step(POOL), 1);
	int got = 1;
	for (bool start = true; got == 1; start = false)
		got = pf_pool_step(POOL, start);
	ck_ok(got);
	ck_assert_int_gt(attr_of(g).mtime.tv_sec, then.mtime.tv_sec);
	simpool_abandon(sp);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	file = look(PF_ROOT_INO, "f");
	struct pf_attr now = attr_of(look(PF_ROOT_INO, "g"));
	ck_assert_uint_eq(now.size_bytes, then.size_bytes);
	ck_assert_int_eq(now.mtime.tv_sec, then.mtime.tv_sec);
	ck_assert_int_eq(now.mtime.tv_nsec, then.mtime.tv_nsec);
	ck_assert_int_eq(now.ctime.tv_sec, then.ctime.tv_sec);
}
END_TEST

/* -- where they lie --------------------------------------------------------------------------------------------------------- */
static pf_addr place_of(unsigned block)
{
	struct pf_map map;
	ck_ok(pf_extent_map(POOL, file, block, 1, &map)); /* data ids begin as inode numbers */
	pf_map_release(POOL, &map);
	ck_assert(!(map.segs[0].flags & PF_SEG_HOLE));
	return map.segs[0].addr[0];
}

static unsigned nr_data_writes(void)
{
	unsigned nr = 0;
	for (size_t i = 0; i < simworld_log_len(sp->world); i++)
		nr += simworld_event(sp->world, i)->op == SIM_WRITE;
	return nr;
}

START_TEST(scattered_blocks_lie_side_by_side)
{
	POOL->stage_max = PF_STAGE_BLOCKS;
	for (unsigned i = 0; i < 20; i++)
		write_block(3 * i);
	simworld_record(sp->world);
	ck_assert_uint_eq(nr_data_writes(), 0);
	while (pf_drain_step(POOL))
		;
	ck_ok(pf_stage_drain_all(POOL));
	ck_assert_uint_eq(nr_data_writes(), 1);
	for (unsigned i = 1; i < 20; i++)
		ck_assert_uint_eq(place_of(3 * i), place_of(3 * (i - 1)) + 1);
}
END_TEST

/* Preallocated blocks keep their places, and what was allocated in vain is given back. */
START_TEST(scattered_over_unwritten_ones)
{
	POOL->stage_max = PF_STAGE_BLOCKS;
	ck_ok(pf_fallocate(POOL, file, FALLOC_FL_ZERO_RANGE, 8 * 4 * KIB, 16 * 4 * KIB, 0));
	memset(bytes + 8 * 4 * KIB, 0, 16 * 4 * KIB);
	settle();
	uint64_t before = free_blocks();
	pf_addr kept = place_of(9);
	for (unsigned i = 0; i < 20; i++)
		write_block(3 * i);
	ck_ok(pf_pool_sync(POOL));
	ck_assert_uint_eq(place_of(9), kept);
	ck_assert_uint_eq(reserved(), 0);
	settle();
	ck_assert_uint_eq(free_blocks(), before);
}
END_TEST

/* One block synced after the other, each at a random place; then those behind them, where the blocks that they have left are free. */
START_TEST(synced_blocks_lie_side_by_side)
{
	static const unsigned at[] = { 40, 7, 33, 12, 60, 3, 41, 8, 34, 13, 61, 4 };
	pf_addr last = 0;
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		if (i == 6) {
			settle();
			last = 0;
		}
		write_block(at[i]);
		ck_ok(pf_fsync(POOL, file));
		pf_addr now = place_of(at[i]);
		ck_assert_msg(!last || now == last + 1, "the %u-th lies %jd blocks from the one before", i, (intmax_t)(now - last));
		last = now;
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("drain");
	static const struct {
		const char *name;
		void (*setup)(void);
	} pools[] = { { "version 5", setup_v5 }, { "version 6", setup_v6 } };
	for (unsigned k = 0; k < 2; k++) {
		TCase *t = tcase_create(pools[k].name);
		tcase_add_checked_fixture(t, pools[k].setup, end);
		tcase_set_timeout(t, 60);
		tcase_add_test(t, read_and_written_meanwhile);
		tcase_add_test(t, what_is_known_of_it);
		tcase_add_loop_test(t, who_waits_does_it, 0, sizeof(needs) / sizeof(needs[0]));
		tcase_add_test(t, between_the_parts);
		tcase_add_loop_test(t, fails_in_the_mapping, 0, MAX / PART + 1);
		tcase_add_test(t, fails_to_write);
		tcase_add_test(t, dropped_while_it_waits);
		tcase_add_test(t, one_moment);
		tcase_add_test(t, scattered_blocks_lie_side_by_side);
		tcase_add_test(t, scattered_over_unwritten_ones);
		tcase_add_test(t, synced_blocks_lie_side_by_side);
		suite_add_tcase(s, t);
	}
	return run_suite(s);
}
