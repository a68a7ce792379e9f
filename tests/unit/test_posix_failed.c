/* SPDX-License-Identifier: MIT
 * What was written back (PF_WRITE_BACK) in vain: it reads as an error and fsync reports it, until it is written, truncated away,
 * punched or zeroed, or the pool is opened anew (object/failed.h). */
#include "unit/nomem.h"
#include "unit/posix_util.h"

#define LEN (64 * KIB) /* the shortest write that is not staged */

static uint8_t *p;

static void setup_v5(void)
{
	setup_with(5, 1, 64 * MIB);
	p = pattern(1, 4 * MIB);
}
static void setup_v6(void)
{
	setup_with(6, 1, 64 * MIB);
	p = pattern(1, 4 * MIB);
}
static void teardown_failed(void)
{
	teardown();
	free(p);
}

static void fail_writes(int err)
{
	struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_FAIL, .err = err };
	simworld_add_fault(sp->world, &fault);
}

/* Nothing of it arrives. */
static void lose(uint64_t f, uint64_t off, size_t len, int err)
{
	fail_writes(err);
	int64_t n = pf_write(POOL, f, off, p + off % MIB, len, PF_WRITE_BACK);
	simworld_clear_faults(sp->world);
	ck_err(n, err);
}

static void ck_lost(uint64_t f, uint64_t off, size_t len)
{
	int64_t n;
	free(get(f, off, len, &n));
	ck_err(n, -EIO);
}

static uint64_t file_of(const char *name, size_t len)
{
	uint64_t f = make_file(PF_ROOT_INO, name);
	put(f, 0, p, len);
	ck_ok(pf_fsync(POOL, f));
	return f;
}

static void ck_seek(uint64_t f, uint64_t off, int whence, uint64_t expected)
{
	ck_assert_int_eq(pf_lseek(POOL, f, off, whence), (int64_t)expected);
}

START_TEST(until_it_is_written)
{
	int err = _i ? -EIO : -ENOSPC;
	uint64_t f = file_of("f", MIB), other = file_of("other", MIB);
	struct pf_lost_range r;
	ck_assert(!pf_take_lost_range(POOL, &r));
	lose(f, 512 * KIB, MIB, err);
	ck_assert(pf_take_lost_range(POOL, &r));
	ck_assert_uint_eq(r.ino, f);
	ck_assert_uint_eq(r.off_bytes, 512 * KIB);
	ck_assert_uint_eq(r.len_bytes, MIB);
	ck_assert(!pf_take_lost_range(POOL, &r));

	ck_assert_uint_eq(attr_of(f).size_bytes, 1536 * KIB);
	ck_bytes(f, 0, p, 512 * KIB);
	ck_lost(f, 0, 512 * KIB + 1);
	ck_lost(f, MIB, 4096);
	ck_lost(f, 1536 * KIB - 1, 4096);
	ck_seek(f, MIB + 5, SEEK_DATA, MIB + 5);
	ck_seek(f, 0, SEEK_HOLE, 1536 * KIB);
	ck_err(pf_fsync(POOL, f), err);
	ck_err(pf_fsync(POOL, f), err);
	ck_ok(pf_fsync(POOL, other));
	ck_assert_int_eq(pf_copy_range(POOL, f, MIB, other, 0, 4096, 0), -EIO);

	put(f, 512 * KIB, p + 512 * KIB, 512 * KIB);
	ck_bytes(f, 0, p, MIB);
	ck_lost(f, MIB, 4096);
	ck_err(pf_fsync(POOL, f), err);
	/* in pieces, the last one first, and one that was lost to a byte */
	put(f, 1200 * KIB, p + 1200 * KIB, 336 * KIB);
	put(f, MIB, p + MIB, 176 * KIB - 1);
	ck_err(pf_fsync(POOL, f), err);
	ck_lost(f, 1200 * KIB - 1, 1);
	put(f, 1200 * KIB - 1, p + 1200 * KIB - 1, 1);
	ck_ok(pf_fsync(POOL, f));
	ck_bytes(f, 0, p, 1536 * KIB);
	remount();
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
	ck_bytes(f, 0, p, 1536 * KIB);
}
END_TEST

START_TEST(or_taken_away)
{
	uint64_t f = file_of("f", MIB);
	lose(f, MIB, MIB, -ENOSPC);
	ck_ok(truncate_to(f, 1536 * KIB));
	ck_lost(f, 1536 * KIB - 1, 1);
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, MIB, 100 * KIB, 0));
	ck_zeros(f, MIB, 100 * KIB);
	ck_ok(pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE, MIB + 100 * KIB, 100 * KIB, 0));
	ck_zeros(f, MIB, 200 * KIB);
	ck_ok(pf_fallocate(POOL, f, 0, MIB, 512 * KIB, 0)); /* gives it blocks, not bytes */
	ck_lost(f, MIB + 200 * KIB, 1);
	ck_err(pf_fsync(POOL, f), -ENOSPC);
	ck_ok(truncate_to(f, MIB + 200 * KIB));
	ck_ok(pf_fsync(POOL, f));
	lose(f, 0, LEN, -EIO);
	ck_ok(truncate_to(f, 0));
	ck_ok(pf_fsync(POOL, f));
	ck_assert_uint_eq(attr_of(f).size_bytes, 0);

	/* deleted, before and after its last reference is gone */
	lose(f, 0, LEN, -EIO);
	ck_ok(unlink_name(PF_ROOT_INO, "f"));
	ck_err(pf_fsync(POOL, f), -EIO);
	pf_forget(POOL, f, 1);
	struct pf_attr a;
	ck_err(pf_ref(POOL, f, &a), -ESTALE);
	f = file_of("g", LEN);
	lose(f, 0, LEN, -EIO);
	pf_forget(POOL, f, 1);
	ck_ok(unlink_name(PF_ROOT_INO, "g"));
	ck_err(pf_ref(POOL, f, &a), -ESTALE);
}
END_TEST

START_TEST(or_the_pool_is_opened_anew)
{
	uint64_t f = file_of("f", MIB);
	lose(f, 512 * KIB, MIB, -EIO);
	/* other changes of the file do not make it longer than what it has */
	put(f, 5, p + 5, 100);
	struct pf_attr in = { .mode = 0600 };
	ck_ok(pf_setattr(POOL, f, PF_ATTR_MODE, &in, NULL));
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_assert_uint_eq(attr_of(f).size_bytes, 1536 * KIB);
	remount();
	ck_assert_uint_eq(look(PF_ROOT_INO, "f"), f);
	ck_assert_uint_eq(attr_of(f).size_bytes, MIB);
	ck_bytes(f, 0, p, MIB);
	ck_ok(pf_fsync(POOL, f));
}
END_TEST

/* The writer is told: nothing is lost without it. */
START_TEST(not_what_was_refused)
{
	uint64_t f = file_of("f", MIB);
	struct pf_lost_range r;
	fail_writes(-EIO);
	ck_err(pf_write(POOL, f, 512 * KIB, p, MIB, 0), -EIO);
	simworld_clear_faults(sp->world);
	ck_assert_uint_eq(attr_of(f).size_bytes, MIB);
	ck_bytes(f, 0, p, MIB);
	ck_ok(pf_fsync(POOL, f));
	ck_assert(!pf_take_lost_range(POOL, &r));
}
END_TEST

/* The inode would leave the cache. */
START_TEST(not_forgotten)
{
	char name[32];
	uint64_t f = file_of("f", LEN);
	lose(f, 0, LEN, -EIO);
	pf_forget(POOL, f, 1);
	for (unsigned k = 0; k < 5000; k++) {
		sprintf(name, "%u", k);
		pf_forget(POOL, make_file(PF_ROOT_INO, name), 1);
	}
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_lost(f, 0, LEN);
	put(f, 0, p, LEN);
	ck_ok(pf_fsync(POOL, f));
}
END_TEST

/* Against bytes that know whether they are lost. */
START_TEST(any_ranges)
{
	enum { SLICE = 512, NR = 4096 };
	static bool lost[NR];
	struct rng r = { .state = (uint64_t)_i };
	uint64_t f = file_of("f", 2 * MIB);
	memset(lost, 0, sizeof(lost));
	for (unsigned k = 0; k < 400; k++) {
		bool fails = rng_one_in(&r, 3);
		unsigned nr = fails ? 128 + (unsigned)rng_below(&r, 200) : 1 + (unsigned)rng_skewed(&r, 400);
		unsigned at = (unsigned)rng_below(&r, NR - nr);
		if (fails)
			lose(f, (uint64_t)at * SLICE, nr * SLICE, -EIO);
		else
			put(f, (uint64_t)at * SLICE, p + at * SLICE, nr * SLICE);
		memset(lost + at, fails, nr);
		unsigned nr_lost = 0;
		for (unsigned s = 0; s < NR; s++)
			nr_lost += lost[s];
		for (unsigned look = 0; look < 20; look++) {
			unsigned s = (unsigned)rng_below(&r, NR - 3), any = lost[s] | lost[s + 1] | lost[s + 2];
			int64_t n;
			uint8_t *buf = get(f, (uint64_t)s * SLICE, 3 * SLICE, &n);
			ck_assert_int_eq(n, any ? -EIO : 3 * SLICE);
			free(buf);
		}
		if (k % 20 == 0)
			ck_err(pf_fsync(POOL, f), nr_lost ? -EIO : 0);
	}
	put(f, 0, p, 2 * MIB);
	ck_ok(pf_fsync(POOL, f));
	ck_bytes(f, 0, p, 2 * MIB);
}
END_TEST

/* More ranges than are listed: those that are nearest become one, and nothing that is lost can be read. */
START_TEST(many_ranges)
{
	uint64_t f = file_of("f", LEN);
	for (unsigned k = 0; k < 1100; k++)
		lose(f, (uint64_t)(k * 37 % 1100 + 1) * MIB, LEN, -EIO);
	for (unsigned k = 1; k <= 1100; k++) {
		ck_lost(f, (uint64_t)k * MIB, 1);
		ck_lost(f, (uint64_t)k * MIB + LEN - 1, 1);
	}
	ck_bytes(f, 0, p, LEN);
	ck_zeros(f, LEN, MIB - LEN);
	/* no room for what would be left on both sides of this */
	put(f, 500 * MIB + 4096, p, 4096);
	ck_lost(f, 500 * MIB, 4096);
	ck_lost(f, 500 * MIB + 8192, 4096);
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_ok(truncate_to(f, LEN));
	ck_ok(pf_fsync(POOL, f));
}
END_TEST

START_TEST(many_files)
{
	enum { NR = 8192 };
	static uint64_t files[NR];
	char name[32];
	uint64_t other = file_of("other", LEN), f = make_file(PF_ROOT_INO, "too many");
	for (unsigned k = 0; k < NR; k++) {
		sprintf(name, "%u", k);
		files[k] = make_file(PF_ROOT_INO, name);
	}
	ck_ok(pf_pool_sync(POOL));
	for (unsigned k = 0; k < NR; k++)
		lose(files[k], 0, LEN, -EIO);
	ck_ok(pf_fsync(POOL, other));
	lose(f, 0, LEN, -EIO);
	ck_assert_uint_eq(attr_of(f).size_bytes, 0);
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_err(pf_fsync(POOL, other), -EIO);
	ck_ok(pf_fsync(POOL, PF_ROOT_INO));
	ck_bytes(other, 0, p, LEN);
	remount();
	ck_assert_uint_eq(look(PF_ROOT_INO, "other"), other);
	ck_ok(pf_fsync(POOL, other));
}
END_TEST

START_TEST(without_memory)
{
	uint64_t f = file_of("f", LEN);
	nomem_begin(0, false);
	int64_t a = pf_write(POOL, f, 10 * MIB, p, LEN, PF_WRITE_BACK), b = pf_write(POOL, f, MIB, p, LEN, PF_WRITE_BACK);
	ck_assert(nomem_end());
	ck_err(a, -ENOMEM);
	ck_err(b, -ENOMEM);
	ck_lost(f, MIB, 1);
	ck_lost(f, 10 * MIB + LEN - 1, 1);
	ck_bytes(f, 0, p, LEN);
	ck_err(pf_fsync(POOL, f), -ENOMEM);
	ck_ok(truncate_to(f, LEN));
	ck_ok(pf_fsync(POOL, f));
}
END_TEST

static TCase *add(Suite *s, const char *name, void (*fixture)(void))
{
	TCase *tc = tcase_create(name);
	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, fixture, teardown_failed);
	tcase_add_loop_test(tc, until_it_is_written, 0, 2);
	tcase_add_test(tc, or_taken_away);
	tcase_add_test(tc, or_the_pool_is_opened_anew);
	tcase_add_test(tc, not_what_was_refused);
	tcase_add_test(tc, not_forgotten);
	tcase_add_loop_test(tc, any_ranges, 0, 4);
	tcase_add_test(tc, many_ranges);
	tcase_add_test(tc, without_memory);
	suite_add_tcase(s, tc);
	return tc;
}

int main(void)
{
	Suite *s = suite_create("posix_failed");
	add(s, "version 5", setup_v5);
	tcase_add_test(add(s, "version 6", setup_v6), many_files);
	return run_suite(s);
}
