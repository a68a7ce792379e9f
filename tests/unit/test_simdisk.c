/* SPDX-License-Identifier: MIT
 * The disk in memory: it is what other tests lean on, so its crash states and faults are checked byte by byte. */
#include "sim/simdisk.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE  (UINT64_C(32) << 20)
#define BLOCK 4096u

static struct simworld *world;
static struct pf_io *io[2];
static uint8_t *buf;

static void setup(void)
{
	world = simworld_new();
	simdisk_new(world, "a", SIZE);
	simdisk_new(world, "b", SIZE);
	simworld_open(world, false, io);
	buf = aligned_alloc(BLOCK, 1 << 20);
}

static void teardown(void)
{
	pf_io_close(io[0]);
	pf_io_close(io[1]);
	simworld_free(world);
	free(buf);
}

static int put(unsigned disk, uint64_t block, uint8_t value, unsigned nr)
{
	memset(buf, value, (size_t)nr * BLOCK);
	return pf_io_write(io[disk], block * BLOCK, buf, (size_t)nr * BLOCK);
}

/* The value that fills [off, off + len) of the disk, or -1 when it is not one value. */
static int value_at(struct simworld *w, unsigned disk, uint64_t off, size_t len)
{
	uint8_t *got = malloc(len);
	simdisk_peek(simworld_disk(w, disk), off, got, len);
	int value = got[0];
	for (size_t i = 0; i < len; i++)
		value = got[i] == value ? value : -1;
	free(got);
	return value;
}

static int block_at(struct simworld *w, unsigned disk, uint64_t block)
{
	return value_at(w, disk, block * BLOCK, BLOCK);
}

static struct sim_fate fate(enum sim_fate_kind kind, uint64_t arg)
{
	return (struct sim_fate){ .kind = kind, .arg = arg };
}

START_TEST(sparse_and_copied_on_write)
{
	struct simworld *big = simworld_new();
	struct simdisk *disk = simdisk_new(big, "big", UINT64_C(1) << 48);
	struct pf_io *h = simdisk_open(disk, false);
	memset(buf, 7, BLOCK);
	ck_assert_int_eq(pf_io_write(h, (UINT64_C(1) << 48) - BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(pf_io_read(h, UINT64_C(1) << 40, buf, BLOCK), 0);
	ck_assert_int_eq(buf[17], 0);
	ck_assert_int_eq(pf_io_read(h, (UINT64_C(1) << 48) - BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(buf[17], 7);
	ck_assert_int_eq(pf_io_write(h, UINT64_C(1) << 48, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(h, (UINT64_C(1) << 48) - BLOCK, buf, 2 * BLOCK), -EIO);
	pf_io_close(h);
	simworld_free(big);

	put(0, 5, 1, 3);
	struct simworld *copy = simworld_copy(world);
	uint64_t digest = simdisk_digest(simworld_disk(copy, 0));
	ck_assert_uint_eq(digest, simdisk_digest(simworld_disk(world, 0)));
	put(0, 6, 2, 1);
	ck_assert_uint_ne(digest, simdisk_digest(simworld_disk(world, 0)));
	ck_assert_int_eq(block_at(copy, 0, 6), 1);
	simdisk_flip_bit(simworld_disk(copy, 0), 5 * BLOCK + 9, 3);
	ck_assert_int_eq(block_at(world, 0, 5), 1);
	ck_assert_int_eq(value_at(copy, 0, 5 * BLOCK + 9, 1), 1 ^ 8);
	simworld_free(copy);
	ck_assert_int_eq(pf_io_discard(io[0], 6 * BLOCK, BLOCK), 0);
	ck_assert_int_eq(block_at(world, 0, 5), 1);
	ck_assert_int_eq(block_at(world, 0, 6), 0);
	ck_assert_int_eq(block_at(world, 0, 7), 1);
}
END_TEST

START_TEST(flushed_is_kept_and_the_rest_is_as_fated)
{
	put(0, 100, 1, 1);
	simworld_record(world); /* what is there now is durable */
	put(0, 100, 2, 1);      /* event 0 */
	put(1, 100, 3, 1);      /* event 1 */
	pf_io_flush(io[0]);     /* event 2 */
	put(0, 100, 4, 2);      /* event 3 */
	put(0, 200, 5, 1);      /* event 4 */
	ck_assert_uint_eq(simworld_log_len(world), 5);

	size_t pending[8];
	ck_assert_uint_eq(simworld_pending(world, 5, pending, 8), 3);
	ck_assert_uint_eq(pending[0], 1);
	ck_assert_uint_eq(pending[1], 3);
	ck_assert_uint_eq(pending[2], 4);
	struct simworld *c = simworld_crash(world, 5, NULL);
	ck_assert_int_eq(block_at(c, 0, 100), 2);
	ck_assert_int_eq(block_at(c, 1, 100), 0);
	ck_assert_int_eq(block_at(c, 0, 200), 0);
	simworld_free(c);

	struct sim_fate fates[] = { fate(SIM_KEPT, 0), fate(SIM_LOST, 0), fate(SIM_KEPT, 0) };
	c = simworld_crash(world, 5, fates);
	ck_assert_int_eq(block_at(c, 0, 100), 2);
	ck_assert_int_eq(block_at(c, 1, 100), 3);
	ck_assert_int_eq(block_at(c, 0, 200), 5);
	simworld_free(c);

	/* back before the flush: nothing is certain but the start; the cursor turns round */
	ck_assert_uint_eq(simworld_pending(world, 2, pending, 8), 2);
	c = simworld_crash(world, 2, NULL);
	ck_assert_int_eq(block_at(c, 0, 100), 1);
	simworld_free(c);
	c = simworld_crash(world, 0, NULL);
	ck_assert_int_eq(block_at(c, 0, 100), 1);
	simworld_free(c);
	c = simworld_crash(world, 3, NULL);
	ck_assert_int_eq(block_at(c, 0, 100), 2);
	/* a crash during recovery */
	struct pf_io *h = simdisk_open(simworld_disk(c, 0), false);
	simworld_record(c);
	memset(buf, 9, BLOCK);
	pf_io_write(h, 100 * BLOCK, buf, BLOCK);
	struct simworld *cc = simworld_crash(c, 1, NULL);
	ck_assert_int_eq(block_at(cc, 0, 100), 2);
	pf_io_close(h);
	simworld_free(cc);
	simworld_free(c);
	/* and the world itself has seen nothing of all that */
	ck_assert_int_eq(block_at(world, 0, 100), 4);
	ck_assert_int_eq(block_at(world, 0, 200), 5);
}
END_TEST

START_TEST(tears_and_reordering)
{
	put(0, 10, 1, 2);
	simworld_record(world);
	put(0, 10, 2, 2);
	put(0, 11, 3, 1);

	struct sim_fate f[] = { fate(SIM_TORN_HEAD, 1024 + 100), fate(SIM_LOST, 0) };
	struct simworld *c = simworld_crash(world, 2, f);
	ck_assert_int_eq(value_at(c, 0, 10 * BLOCK, 1024), 2);
	ck_assert_int_eq(value_at(c, 0, 10 * BLOCK + 1024, BLOCK * 2 - 1024), 1);
	simworld_free(c);

	f[0] = fate(SIM_TORN_TAIL, 5000);
	c = simworld_crash(world, 2, f);
	ck_assert_int_eq(value_at(c, 0, 10 * BLOCK, 4608), 1);
	ck_assert_int_eq(value_at(c, 0, 10 * BLOCK + 4608, BLOCK * 2 - 4608), 2);
	simworld_free(c);

	unsigned nr_kept = 0, nr_states = 0;
	for (uint64_t seed = 0; seed < 64; seed++) {
		f[0] = fate(SIM_TORN_ANY, seed);
		c = simworld_crash(world, 2, f);
		unsigned kept = 0;
		for (unsigned s = 0; s < 16; s++) {
			int v = value_at(c, 0, 10 * BLOCK + s * 512, 512);
			ck_assert(v == 1 || v == 2);
			kept += v == 2;
		}
		nr_kept += kept;
		nr_states += kept > 0 && kept < 16;
		simworld_free(c);
	}
	ck_assert(nr_kept > 300 && nr_kept < 724 && nr_states > 60);

	/* the later one first: then the earlier one covers it */
	f[0] = fate(SIM_KEPT, 0);
	f[1] = fate(SIM_KEPT, 0);
	c = simworld_crash(world, 2, f);
	ck_assert_int_eq(block_at(c, 0, 11), 3);
	simworld_free(c);
	f[1].rank = -1;
	c = simworld_crash(world, 2, f);
	ck_assert_int_eq(block_at(c, 0, 11), 2);
	simworld_free(c);
}
END_TEST

START_TEST(discards_may_be_lost)
{
	put(0, 10, 1, 1);
	simworld_record(world);
	pf_io_discard(io[0], 10 * BLOCK, BLOCK);
	struct simworld *c = simworld_crash(world, 1, NULL);
	ck_assert_int_eq(block_at(c, 0, 10), 1);
	simworld_free(c);
	struct sim_fate kept = fate(SIM_KEPT, 0);
	c = simworld_crash(world, 1, &kept);
	ck_assert_int_eq(block_at(c, 0, 10), 0);
	simworld_free(c);
}
END_TEST

/* All cuts of a random workload against a plain replay of the log, with the same fates. */
START_TEST(crash_states_equal_a_plain_replay)
{
	srand(3);
	simworld_record(world);
	for (int i = 0; i < 300; i++) {
		if (rand() % 12 == 0)
			pf_io_flush(io[rand() % 2]);
		else
			put((unsigned)rand() % 2, (uint64_t)rand() % 32, (uint8_t)rand(), 1 + (unsigned)rand() % 4);
	}
	static uint8_t plain[2][40 * BLOCK], got[40 * BLOCK];
	struct sim_fate fates[300];
	size_t pending[300];
	for (size_t n = 0; n <= simworld_log_len(world); n++) {
		size_t cut = n * 7 % (simworld_log_len(world) + 1);
		size_t nr = simworld_pending(world, cut, pending, 300);
		for (size_t i = 0; i < nr; i++)
			fates[i] = fate(rand() % 2 ? SIM_KEPT : SIM_LOST, 0);
		memset(plain, 0, sizeof(plain));
		for (size_t e = 0; e < cut; e++) {
			const struct sim_event *ev = simworld_event(world, e);
			bool flushed = false, kept = true;
			for (size_t k = e; k < cut; k++)
				flushed = flushed || (simworld_event(world, k)->op == SIM_FLUSH &&
						      simworld_event(world, k)->disk == ev->disk);
			for (size_t i = 0; i < nr; i++)
				kept = pending[i] == e ? fates[i].kind == SIM_KEPT : kept;
			if (ev->op == SIM_WRITE && (flushed || kept))
				memcpy(plain[ev->disk] + ev->off_bytes, ev->data, ev->len_bytes);
		}
		struct simworld *c = simworld_crash(world, cut, fates);
		for (unsigned d = 0; d < 2; d++) {
			simdisk_peek(simworld_disk(c, d), 0, got, sizeof(got));
			ck_assert_msg(memcmp(got, plain[d], sizeof(got)) == 0, "disk %u differs at cut %zu", d, cut);
		}
		simworld_free(c);
	}
}
END_TEST

START_TEST(seeded_fates_repeat_and_vary)
{
	struct sim_fate a[200], b[200];
	unsigned kinds[5] = { 0 };
	for (uint64_t seed = 0; seed < 50; seed++) {
		memset(a, 0, sizeof(a));
		memset(b, 0, sizeof(b));
		sim_fates_seeded(seed, a, 200);
		sim_fates_seeded(seed, b, 200);
		ck_assert_mem_eq(a, b, sizeof(a));
		for (unsigned i = 0; i < 200; i++)
			kinds[a[i].kind]++;
	}
	for (unsigned k = 0; k < 5; k++)
		ck_assert_uint_gt(kinds[k], 300);
}
END_TEST

START_TEST(errors_hit_the_nth_call)
{
	struct sim_fault fail = {
		.disk = simworld_disk(world, 0), .ops = SIM_WRITE, .skip = 2, .count = 1, .err = -ENOSPC
	};
	unsigned f = simworld_add_fault(world, &fail);
	simworld_record(world);
	ck_assert_int_eq(put(0, 1, 1, 1), 0);
	ck_assert_int_eq(put(1, 1, 1, 1), 0);                  /* another disk does not count */
	ck_assert_int_eq(pf_io_read(io[0], 0, buf, BLOCK), 0); /* nor do reads */
	ck_assert_int_eq(put(0, 2, 1, 1), 0);
	ck_assert_int_eq(put(0, 3, 1, 1), -ENOSPC);
	ck_assert_int_eq(put(0, 4, 1, 1), 0);
	ck_assert_uint_eq(simworld_fault_hits(world, f), 1);
	ck_assert_int_eq(block_at(world, 0, 3), 0);
	ck_assert_uint_eq(simworld_log_len(world), 4);
	ck_assert_uint_eq(simdisk_count(simworld_disk(world, 0), SIM_WRITE), 4);
	ck_assert_uint_eq(simdisk_count(simworld_disk(world, 0), SIM_READ | SIM_FLUSH), 1);

	simworld_clear_faults(world);
	struct sim_fault bad_sector = { .ops = SIM_READ, .from_bytes = 8 * BLOCK, .to_bytes = 9 * BLOCK };
	simworld_add_fault(world, &bad_sector);
	ck_assert_int_eq(pf_io_read(io[1], 7 * BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(pf_io_read(io[1], 7 * BLOCK, buf, 2 * BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(io[1], 8 * BLOCK, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(io[1], 9 * BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(put(1, 8, 1, 1), 0);

	struct sim_fault full = { .ops = SIM_ALLOCATE | SIM_DISCARD, .err = -ENOSPC };
	simworld_add_fault(world, &full);
	ck_assert_int_eq(pf_io_allocate(io[0], 0, BLOCK), -ENOSPC);
	ck_assert_int_eq(pf_io_discard(io[0], 0, BLOCK), -ENOSPC);
}
END_TEST

START_TEST(lying_disks)
{
	struct simdisk *a = simworld_disk(world, 0);
	simworld_record(world);
	struct sim_fault torn = { .disk = a, .ops = SIM_WRITE, .kind = SIM_TEAR, .count = 1, .arg = 1536 };
	simworld_add_fault(world, &torn);
	ck_assert_int_eq(put(0, 1, 6, 1), -EIO);
	ck_assert_int_eq(value_at(world, 0, BLOCK, 1536), 6);
	ck_assert_int_eq(value_at(world, 0, BLOCK + 1536, BLOCK - 1536), 0);
	simworld_clear_faults(world);

	struct sim_fault lost = { .disk = a, .ops = SIM_WRITE, .kind = SIM_DROP, .count = 1 };
	simworld_add_fault(world, &lost);
	ck_assert_int_eq(put(0, 2, 6, 1), 0);
	ck_assert_int_eq(block_at(world, 0, 2), 0);
	simworld_clear_faults(world);

	struct sim_fault elsewhere = {
		.disk = a, .ops = SIM_WRITE, .kind = SIM_MISDIRECT, .count = 1, .arg = 8 * BLOCK
	};
	simworld_add_fault(world, &elsewhere);
	ck_assert_int_eq(put(0, 2, 6, 1), 0);
	ck_assert_int_eq(block_at(world, 0, 2), 0);
	ck_assert_int_eq(block_at(world, 0, 10), 6);
	simworld_clear_faults(world);

	struct sim_fault wrong = { .disk = a, .ops = SIM_READ, .kind = SIM_CORRUPT, .count = 1, .arg = 8 * 100 + 2 };
	simworld_add_fault(world, &wrong);
	ck_assert_int_eq(pf_io_read(io[0], 10 * BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(buf[100], 6 ^ 4);
	ck_assert_int_eq(pf_io_read(io[0], 10 * BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(buf[100], 6);
	simworld_clear_faults(world);

	/* what was torn and misdirected is in the log as it really went */
	struct simworld *c;
	pf_io_flush(io[0]);
	c = simworld_crash(world, simworld_log_len(world), NULL);
	ck_assert_uint_eq(simdisk_digest(simworld_disk(c, 0)), simdisk_digest(a));
	simworld_free(c);
}
END_TEST

START_TEST(flushes_that_lie_or_fail)
{
	struct simdisk *a = simworld_disk(world, 0);
	simworld_record(world);
	struct sim_fault lost = { .disk = a, .ops = SIM_FLUSH, .kind = SIM_DROP, .count = 1 };
	simworld_add_fault(world, &lost);
	put(0, 1, 6, 1);
	ck_assert(pf_io_dirty(io[0]));
	ck_assert_int_eq(pf_io_flush(io[0]), 0);
	ck_assert(!pf_io_dirty(io[0]));
	struct simworld *c = simworld_crash(world, 2, NULL);
	ck_assert_int_eq(block_at(c, 0, 1), 0);
	simworld_free(c);
	ck_assert_int_eq(pf_io_flush(io[0]), 0);
	c = simworld_crash(world, 3, NULL);
	ck_assert_int_eq(block_at(c, 0, 1), 6);
	simworld_free(c);
	simworld_clear_faults(world);

	struct sim_fault fail = { .disk = a, .ops = SIM_FLUSH, .count = 1 };
	simworld_add_fault(world, &fail);
	put(0, 1, 7, 1);
	ck_assert_int_eq(pf_io_flush(io[0]), -EIO);
	ck_assert_int_eq(pf_io_flush(io[0]), -EIO); /* for ever, on this handle */
	ck_assert(pf_io_dirty(io[0]));
	c = simworld_crash(world, simworld_log_len(world), NULL);
	ck_assert_int_eq(block_at(c, 0, 1), 6);
	simworld_free(c);
	pf_io_close(io[0]);
	io[0] = simdisk_open(a, false);
	ck_assert_int_eq(pf_io_flush(io[0]), 0);
}
END_TEST

static void *write_one(void *arg)
{
	(void)arg;
	uint8_t *block = aligned_alloc(BLOCK, BLOCK);
	memset(block, 8, BLOCK);
	int err = pf_io_write(io[0], 0, block, BLOCK);
	free(block);
	return (void *)(intptr_t)err;
}

START_TEST(hangs_until_let_go)
{
	struct simdisk *a = simworld_disk(world, 0);
	pthread_t thread;
	simdisk_set_hang(a, SIM_WRITE | SIM_FLUSH);
	pthread_create(&thread, NULL, write_one, NULL);
	while (simdisk_nr_hung(a) == 0)
		usleep(1000);
	ck_assert_int_eq(pf_io_read(io[0], 0, buf, BLOCK), 0); /* others go on */
	ck_assert_int_eq(put(1, 0, 1, 1), 0);
	ck_assert_int_eq(block_at(world, 0, 0), 0);
	simdisk_set_hang(a, 0);
	void *err;
	pthread_join(thread, &err);
	ck_assert_ptr_null(err);
	ck_assert_int_eq(block_at(world, 0, 0), 8);
	ck_assert_uint_eq(simdisk_nr_hung(a), 0);
}
END_TEST

START_TEST(to_a_file_and_back)
{
	char path[] = "/tmp/test_simdisk.XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	put(0, 0, 1, 1);
	put(0, SIZE / BLOCK - 1, 2, 1);
	put(0, 700, 3, 200);
	struct simdisk *loaded;
	ck_assert_int_eq(simdisk_save(simworld_disk(world, 0), path), 0);
	ck_assert_int_eq(simdisk_load(world, path, &loaded), 0);
	ck_assert_uint_eq(simdisk_digest(loaded), simdisk_digest(simworld_disk(world, 0)));
	unlink(path);
	ck_assert_int_eq(simdisk_load(world, path, &loaded), -ENOENT);

	simdisk_resize(simworld_disk(world, 0), 5 * BLOCK + 100);
	ck_assert_uint_eq(simdisk_size(simworld_disk(world, 0)), 5 * BLOCK + 100);
	ck_assert_int_eq(pf_io_read(io[0], 5 * BLOCK, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_read(io[0], 4 * BLOCK, buf, BLOCK), 0);
	simdisk_resize(simworld_disk(world, 0), SIZE);
	ck_assert_int_eq(block_at(world, 0, 700), 0);
	ck_assert_int_eq(block_at(world, 0, 0), 1);
	simdisk_copy_from(simworld_disk(world, 1), simworld_disk(world, 0));
	ck_assert_uint_eq(simdisk_digest(simworld_disk(world, 1)), simdisk_digest(simworld_disk(world, 0)));
}
END_TEST

static void *hammer(void *arg)
{
	uint64_t first = (uint64_t)(uintptr_t)arg;
	uint8_t *block = aligned_alloc(BLOCK, BLOCK);
	for (uint64_t i = 0; i < 500; i++) {
		memset(block, (int)i, BLOCK);
		pf_io_write(io[i % 2], (first + i) * BLOCK, block, BLOCK);
		if (i % 50 == 0)
			pf_io_flush(io[i % 2]);
	}
	free(block);
	return NULL;
}

START_TEST(many_threads)
{
	pthread_t threads[4];
	simworld_record(world);
	for (uintptr_t t = 0; t < 4; t++)
		pthread_create(&threads[t], NULL, hammer, (void *)(t * 500));
	for (unsigned i = 0; i < 20; i++)
		simworld_free(simworld_crash(world, simworld_log_len(world), NULL));
	for (unsigned t = 0; t < 4; t++)
		pthread_join(threads[t], NULL);
	pf_io_flush(io[0]);
	pf_io_flush(io[1]);
	struct simworld *c = simworld_crash(world, simworld_log_len(world), NULL);
	for (unsigned d = 0; d < 2; d++)
		ck_assert_uint_eq(simdisk_digest(simworld_disk(c, d)), simdisk_digest(simworld_disk(world, d)));
	simworld_free(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("simdisk");
	TCase *tc = tcase_create("simdisk");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, sparse_and_copied_on_write);
	tcase_add_test(tc, flushed_is_kept_and_the_rest_is_as_fated);
	tcase_add_test(tc, tears_and_reordering);
	tcase_add_test(tc, discards_may_be_lost);
	tcase_add_test(tc, crash_states_equal_a_plain_replay);
	tcase_add_test(tc, seeded_fates_repeat_and_vary);
	tcase_add_test(tc, errors_hit_the_nth_call);
	tcase_add_test(tc, lying_disks);
	tcase_add_test(tc, flushes_that_lie_or_fail);
	tcase_add_test(tc, hangs_until_let_go);
	tcase_add_test(tc, to_a_file_and_back);
	tcase_add_test(tc, many_threads);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
