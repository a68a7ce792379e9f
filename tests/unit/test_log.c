/* SPDX-License-Identifier: MIT
 * The log in one thread: records of every size come back in order, blocks lie where they should, commits cost what they may,
 * gaps, full rings, failing writes and flushes are what log.h says. */
#include "log_util.h"

static const uint32_t ring_small[] = { 48 };
static const uint32_t ring_256[] = { 256 };

START_TEST(every_size)
{
	struct rig rig;
	rig_new(&rig, 1, ring_256, 5);
	uint32_t max = (uint32_t)pf_log_max_record(rig.log);
	ck_assert_uint_eq(max, 256 / 8 * PAYLOAD);
	static const uint32_t sizes[] = { 32, 40, 4032 - 32, 4032, 4024, 4040, 4032 - 72, 8064, 8072, 12000, 32 };
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		must_append(&rig, sizes[i]);
	must_append(&rig, max);
	for (uint32_t len = 32; len < 1200; len += 8)
		must_append(&rig, len);
	unsigned nr = (unsigned)rig.next;
	must_scan(&rig, 5, 0, 0, 0); /* nothing is written without need */
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	must_scan(&rig, 5, 0, nr, 0); /* nothing was written later that could say so */
	must_append(&rig, 32);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	must_scan(&rig, 5, 0, nr + 1, nr);
	struct pf_log_stats stats = rig_stats(&rig);
	ck_assert_uint_eq(stats.nr_records, nr + 1);
	ck_assert_uint_eq(stats.nr_lost, 0);
	ck_assert_uint_eq(stats.durable, stats.open);
	ck_assert_uint_eq(stats.blocks_written, stats.open - 5);
	rig_free(&rig);
}
END_TEST

/* What the last block does not use is zero, whatever its memory was used for before. */
static void check_padding(struct rig *rig)
{
	static uint8_t block[BLOCK], zeros[BLOCK];
	simdisk_peek(simworld_disk(rig->world, 0), place(rig, 0, rig_stats(rig).open - 1), block, BLOCK);
	size_t end = sizeof(struct pf_disk_log_head) + pf_get16(((struct pf_disk_log_head *)block)->used);
	ck_assert_uint_le(end, BLOCK);
	ck_assert(memcmp(block + end, zeros, BLOCK - end) == 0);
}

/* Hundreds of times round a small ring, at every offset; scanned at every step. */
START_TEST(wraps)
{
	struct rig rig;
	struct rng rng = { .state = 1 };
	uint64_t first = 0;
	rig_new(&rig, 1, ring_small, 3);
	for (unsigned step = 0; step < 3000; step++) {
		uint64_t before = rig.next;
		do {
			must_append(&rig, (uint32_t)(32 + 8 * (rng_next(&rng) % (step % 7 == 0 ? 3000 : 100))));
		} while (rng_next(&rng) % 4 && !pf_log_wants_checkpoint(rig.log));
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		check_padding(&rig);
		must_scan(&rig, rig.super.log_start, first, (unsigned)(rig.next - first), (unsigned)(before - first));
		if (pf_log_wants_checkpoint(rig.log)) {
			rig_checkpoint(&rig);
			first = rig.next;
			must_scan(&rig, rig.super.log_start, first, 0, 0);
		}
	}
	ck_assert_uint_gt(rig_stats(&rig).start, 48 * 50);
	rig_free(&rig);
}
END_TEST

START_TEST(members_alike)
{
	static const uint32_t rings[] = { 256, 0, 130, 100 };
	struct rig rig;
	rig_new(&rig, 4, rings, 90);
	ck_assert_uint_eq(pf_log_mask(&rig.super), 1 | 4 | 8);
	ck_assert_uint_eq(pf_log_ring_blocks(rig.set, &rig.super), 96);
	for (unsigned i = 0; i < 20; i++)
		must_append(&rig, 4000);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	static uint8_t a[BLOCK], b[BLOCK];
	for (uint64_t lsn = 90; lsn < rig_stats(&rig).open; lsn++) {
		simdisk_peek(simworld_disk(rig.world, 0), place(&rig, 0, lsn), a, BLOCK);
		struct pf_disk_log_head *head = (void *)a;
		ck_assert_uint_eq(pf_get64(head->lsn), lsn);
		for (unsigned id = 2; id < 4; id++) {
			simdisk_peek(simworld_disk(rig.world, id), place(&rig, id, lsn), b, BLOCK);
			ck_assert(memcmp(a, b, BLOCK) == 0);
		}
	}
	ck_assert_uint_eq(simdisk_count(simworld_disk(rig.world, 1), SIM_ANY), 0);
	must_scan(&rig, 90, 0, 20, 0);
	rig_free(&rig);
}
END_TEST

START_TEST(no_log)
{
	static const uint32_t none[] = { 0, 0 };
	struct rig rig;
	struct simworld *world = simworld_new();
	simdisk_new(world, "a", DISK_BYTES);
	simdisk_new(world, "b", DISK_BYTES);
	rig_assemble(&rig, world, none, 1, 7);
	ck_assert_uint_eq(pf_log_ring_blocks(rig.set, &rig.super), 0);
	ck_assert_uint_eq(pf_log_mask(&rig.super), 0);
	ck_assert_int_eq(pf_log_open(rig.set, &rig.super, 1, 7, &rig.log), -EINVAL);
	ck_assert_ptr_null(rig.log);
	must_scan(&rig, 7, 0, 0, 0);
	rig_free(&rig);
}
END_TEST

/* -- what a commit costs -------------------------------------------------------------------------------------------- */
static uint64_t flushes(struct rig *rig, unsigned id)
{
	return simdisk_count(simworld_disk(rig->world, id), SIM_FLUSH);
}

static uint64_t writes(struct rig *rig, unsigned id)
{
	return simdisk_count(simworld_disk(rig->world, id), SIM_WRITE);
}

static void write_data(struct rig *rig, unsigned id)
{
	static uint8_t data[BLOCK] __attribute__((aligned(BLOCK)));
	ck_assert_int_eq(pf_set_write(rig->set, pf_addr_make(id, 2000), data, 1), 0);
}

START_TEST(one_flush_each)
{
	static const uint32_t rings[] = { 256, 256, 0, 0 };
	struct rig rig;
	rig_new(&rig, 4, rings, 0);
	for (unsigned i = 1; i <= 100; i++) {
		write_data(&rig, 2);
		write_data(&rig, 3);
		ck_assert(rig_append(&rig, 64, 1 << 2, no_extra));
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		for (unsigned id = 0; id < 3; id++)
			ck_assert_uint_eq(flushes(&rig, id), i);
		ck_assert_uint_eq(flushes(&rig, 3), 0); /* nobody has asked for that one */
		ck_assert_uint_eq(writes(&rig, 0), i);
		ck_assert_uint_eq(writes(&rig, 1), i);
		/* with nothing new there is nothing to do */
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		ck_assert_uint_eq(flushes(&rig, 0), i);
	}
	struct pf_log_stats stats = rig_stats(&rig);
	ck_assert_uint_eq(stats.nr_commits, 100);
	ck_assert_uint_eq(stats.nr_waiters, 100);
	ck_assert_uint_eq(stats.blocks_written, 100);
	rig_free(&rig);
}
END_TEST

/* The members of all records that were not committed yet, and each for the next commit only. */
START_TEST(data_members)
{
	static const uint32_t rings[] = { 256, 0, 0 };
	struct rig rig;
	rig_new(&rig, 3, rings, 0);
	write_data(&rig, 1);
	ck_assert(rig_append(&rig, 5000, 1 << 1, no_extra));
	write_data(&rig, 2);
	ck_assert(rig_append(&rig, 64, 1 << 2, no_extra));
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(flushes(&rig, 1), 1);
	ck_assert_uint_eq(flushes(&rig, 2), 1);
	write_data(&rig, 1);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(flushes(&rig, 1), 1);
	/* a checkpoint has made it durable, with all before it */
	write_data(&rig, 2);
	ck_assert(rig_append(&rig, 64, 1 << 2, no_extra));
	rig_checkpoint(&rig);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(flushes(&rig, 2), 1);
	rig_free(&rig);
}
END_TEST

/* -- data that the commit writes ------------------------------------------------------------------------------------ */
static uint8_t data_block[BLOCK] __attribute__((aligned(BLOCK)));

/* The next record, and @nr writes of a block to member @id that go with it. */
static bool append_with(struct rig *rig, struct pf_log_writes *writes, struct pf_aio_req *reqs, unsigned nr,
			unsigned id)
{
	uint8_t bytes[64];
	record_fill(bytes, sizeof(bytes), rig->next++, no_extra);
	struct pf_log_part part = { bytes, sizeof(bytes) };
	for (unsigned i = 0; i < nr; i++) {
		pf_set_req(rig->set, &reqs[i], PF_AIO_WRITE, pf_addr_make(id, 2000 + i), data_block, 1);
		reqs[i].result = 1;
	}
	*writes = (struct pf_log_writes){ .reqs = reqs, .nr = nr, .done = true };
	return pf_log_append_with(rig->log, &part, 1, UINT32_C(1) << id, writes);
}

START_TEST(data_with_the_log)
{
	static const uint32_t rings[] = { 256, 0, 0 };
	static struct pf_aio_req many[300], two[2];
	struct pf_log_writes first, second;
	struct rig rig;
	rig_new(&rig, 3, rings, 0);
	ck_assert(append_with(&rig, &first, many, 300, 1));
	ck_assert(append_with(&rig, &second, two, 2, 2));
	ck_assert(!first.done && !second.done);
	ck_assert_uint_eq(writes(&rig, 1), 0);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert(first.done && second.done);
	for (unsigned i = 0; i < 300; i++)
		ck_assert_int_eq(many[i].result, 0);
	ck_assert_uint_eq(writes(&rig, 0), 1);
	ck_assert_uint_eq(writes(&rig, 1), 300);
	ck_assert_uint_eq(writes(&rig, 2), 2);
	for (unsigned id = 0; id < 3; id++)
		ck_assert_uint_eq(flushes(&rig, id), 1);
	/* once */
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(writes(&rig, 1), 300);
	ck_assert_uint_eq(flushes(&rig, 1), 1);
	rig_free(&rig);
}
END_TEST

START_TEST(data_that_fails)
{
	static const uint32_t rings[] = { 256, 0 };
	struct pf_aio_req reqs[3][2];
	struct pf_log_writes w[3];
	struct rig rig;
	rig_new(&rig, 2, rings, 0);
	struct sim_fault fault = {
		.disk = simworld_disk(rig.world, 1), .ops = SIM_WRITE, .count = 1, .skip = 3, .err = -ENOSPC
	};
	simworld_add_fault(rig.world, &fault);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(append_with(&rig, &w[i], reqs[i], 2, 1));
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	/* each hears of its own */
	for (unsigned i = 0; i < 3; i++) {
		pf_log_take_back(rig.log, &w[i]);
		ck_assert(w[i].done);
		ck_assert_int_eq(reqs[i][0].result, 0);
		ck_assert_int_eq(reqs[i][1].result, i == 1 ? -ENOSPC : 0);
	}
	ck_assert_uint_eq(flushes(&rig, 1), 0);
	/* with a gap the record is lost, and the writes are the caller's again */
	ck_assert(!append_with(&rig, &w[0], reqs[0], 2, 1));
	pf_log_take_back(rig.log, &w[0]);
	ck_assert(!w[0].done);
	rig_checkpoint(&rig);
	ck_assert(append_with(&rig, &w[0], reqs[0], 2, 1));
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert(w[0].done);
	rig_free(&rig);
}
END_TEST

/* Taken back from every place in the row: the others are written, these are not. */
START_TEST(data_taken_back)
{
	static const uint32_t rings[] = { 256, 0 };
	struct pf_aio_req reqs[5][1];
	struct pf_log_writes w[5];
	struct rig rig;
	for (unsigned mask = 0; mask < 32; mask++) {
		rig_new(&rig, 2, rings, 0);
		for (unsigned i = 0; i < 4; i++)
			ck_assert(append_with(&rig, &w[i], reqs[i], 1, 1));
		for (unsigned i = 0; i < 4; i++) {
			if (mask >> i & 1)
				pf_log_take_back(rig.log, &w[i]);
		}
		ck_assert(append_with(&rig, &w[4], reqs[4], 1, 1));
		if (mask >> 4 & 1)
			pf_log_take_back(rig.log, &w[4]);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		for (unsigned i = 0; i < 5; i++)
			ck_assert_uint_eq(w[i].done, !(mask >> i & 1));
		ck_assert_uint_eq(writes(&rig, 1), 5 - (unsigned)__builtin_popcount(mask));
		rig_free(&rig);
	}
}
END_TEST

START_TEST(write_behind)
{
	static const uint32_t rings[] = { 1024 };
	struct rig rig;
	rig_new_of(&rig, UINT64_C(256) << 20, 1, rings, 0);
	for (unsigned i = 0; i < 255; i++)
		must_append(&rig, 4032);
	must_append(&rig, 4024);
	pf_log_write_behind(rig.log);
	ck_assert_uint_eq(writes(&rig, 0), 0);
	must_append(&rig, 64); /* closes the 256th, and goes on in the next */
	pf_log_write_behind(rig.log);
	ck_assert_uint_eq(writes(&rig, 0), 256 / 16);
	ck_assert_uint_eq(flushes(&rig, 0), 0);
	ck_assert_uint_eq(rig_stats(&rig).written, 256);
	ck_assert_uint_eq(rig_stats(&rig).durable, 0);
	must_scan(&rig, 0, 0, 256, 0);
	pf_log_write_behind(rig.log);
	ck_assert_uint_eq(writes(&rig, 0), 256 / 16);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(writes(&rig, 0), 256 / 16 + 1);
	ck_assert_uint_eq(flushes(&rig, 0), 1);
	must_scan(&rig, 0, 0, 257, 0);
	/* everything is written already, but not flushed */
	for (unsigned i = 0; i < 256; i++)
		must_append(&rig, 4032);
	pf_log_write_behind(rig.log);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(flushes(&rig, 0), 2);
	/* a failure shows in the commit */
	for (unsigned i = 0; i < 256; i++)
		must_append(&rig, 4032);
	struct sim_fault fault = { .ops = SIM_WRITE, .count = 1, .skip = 3 };
	simworld_add_fault(rig.world, &fault);
	pf_log_write_behind(rig.log);
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	/* nobody needs what lies before a gap */
	rig_checkpoint(&rig);
	for (unsigned i = 0; i < 300; i++)
		must_append(&rig, 4032);
	pf_log_lose(rig.log);
	uint64_t nr_writes = writes(&rig, 0);
	pf_log_write_behind(rig.log);
	ck_assert_uint_eq(writes(&rig, 0), nr_writes);
	rig_free(&rig);
}
END_TEST

/* -- gaps ----------------------------------------------------------------------------------------------------------- */
START_TEST(gap)
{
	struct rig rig;
	rig_new(&rig, 1, ring_256, 10);
	must_append(&rig, 64);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0); /* block 10 */
	must_append(&rig, 64);
	pf_log_lose(rig.log);
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	ck_assert(!rig_append(&rig, 64, 0, no_extra));
	ck_assert_uint_eq(rig_stats(&rig).nr_lost, 2);
	uint64_t lsn = pf_log_freeze(rig.log);
	ck_assert_uint_eq(lsn, 13); /* 11 was closed, 12 is left out */
	uint64_t first = rig.next;
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	/* a checkpoint that was frozen before does not help */
	pf_log_release(rig.log, 11);
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	must_scan(&rig, 11, 0, 0, 0);
	pf_log_release(rig.log, lsn);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	must_scan(&rig, lsn, first, 1, 0);
	/* a replay from before the gap, which nobody should try, does not get over it */
	struct pf_log_scan scan;
	struct pf_diag diag;
	ck_assert_int_eq(rig_scan(&rig, 10, &scan, &diag), -PF_ELOG_DAMAGED);
	ck_assert(strstr(diag.text, "block 11 ") != NULL);
	check_scan(&scan, 0, 2, 2);
	pf_log_scan_free(&scan);
	rig_free(&rig);
}
END_TEST

/* A gap, and a crash before the next checkpoint is durable: what was promised before it is there, nothing behind it is. */
START_TEST(gap_then_crash)
{
	static const uint32_t rings[] = { 1024 };
	struct rig rig;
	rig_new_of(&rig, UINT64_C(256) << 20, 1, rings, 0);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	must_append(&rig, 64);
	pf_log_lose(rig.log);
	pf_log_freeze(rig.log);
	for (unsigned i = 0; i < 300; i++)
		must_append(&rig, 4032);
	pf_log_write_behind(rig.log);
	ck_assert_uint_eq(rig_stats(&rig).blocks_written, 301);
	must_scan(&rig, 0, 0, 1, 1);
	/* a second gap while the first is not closed */
	pf_log_lose(rig.log);
	uint64_t lsn = pf_log_freeze(rig.log);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	pf_log_release(rig.log, lsn);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	must_scan(&rig, lsn, rig.next - 1, 1, 0);
	rig_free(&rig);
}
END_TEST

START_TEST(too_long)
{
	struct rig rig;
	rig_new(&rig, 1, ring_small, 0);
	uint32_t max = (uint32_t)pf_log_max_record(rig.log);
	must_append(&rig, max);
	ck_assert(!rig_append(&rig, max + 8, 0, no_extra));
	ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
	rig_checkpoint(&rig);
	must_append(&rig, 32);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	rig_free(&rig);
}
END_TEST

/* The whole ring can be filled, and what lies before 'start' is not touched before the release (I6). */
START_TEST(full_ring)
{
	struct rig rig;
	for (uint64_t start = 0; start < 20; start++) {
		rig_new(&rig, 1, ring_small, start);
		unsigned nr = 0;
		while (rig_append(&rig, 4032, 0, no_extra)) {
			nr++;
			if (nr % 3 == 0)
				ck_assert_int_eq(pf_log_commit(rig.log), 0);
			ck_assert_uint_eq(pf_log_wants_checkpoint(rig.log), nr >= 24);
		}
		ck_assert_uint_ge(nr, 48);
		ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
		must_scan(&rig, start, 0, nr, nr - 3);
		uint64_t lsn = pf_log_freeze(rig.log);
		ck_assert(!rig_append(&rig, 64, 0, no_extra)); /* still no room */
		must_scan(&rig, start, 0, nr, nr - 3);
		pf_log_release(rig.log, lsn);
		ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN); /* for that record */
		rig_checkpoint(&rig);
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		must_scan(&rig, rig.super.log_start, rig.next - 1, 1, 0);
		rig_free(&rig);
	}
}
END_TEST

/* All of the ring in memory, nothing written. */
START_TEST(full_memory)
{
	struct rig rig;
	for (uint64_t start = 0; start < 20; start++) {
		rig_new(&rig, 1, ring_small, start);
		unsigned nr = 0;
		while (rig_append(&rig, 4032, 0, no_extra))
			nr++;
		/* what a chunk has before the start is not used */
		ck_assert_uint_eq(nr, 48 - start % 16);
		ck_assert_uint_eq(writes(&rig, 0), 0);
		rig_checkpoint(&rig);
		must_append(&rig, 20000);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		must_scan(&rig, rig.super.log_start, rig.next - 1, 1, 0);
		rig_free(&rig);
	}
}
END_TEST

/* -- failures ------------------------------------------------------------------------------------------------------- */
static void failing_write(int err, unsigned member, enum sim_fault_kind kind)
{
	static const uint32_t rings[] = { 256, 256 };
	struct rig rig;
	rig_new(&rig, 2, rings, 0);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	struct sim_fault fault = { simworld_disk(rig.world, member), SIM_WRITE, kind, 0, 3, err, 512, 0, 0 };
	simworld_add_fault(rig.world, &fault);
	for (unsigned i = 0; i < 3; i++) {
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
		ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
		ck_assert_uint_eq(writes(&rig, 0), i + 2); /* the other member was tried too, and nothing twice */
		ck_assert_uint_eq(writes(&rig, 1), i + 2);
		must_scan(&rig, rig.super.log_start, i ? rig.next - 1 : 0, i ? 1 : 2, i ? 0 : 1);
		rig_checkpoint(&rig);
	}
	ck_assert_uint_eq(rig.nr_messages, 1); /* the change, not each try */
	ck_assert(strstr(rig.message, member ? "b.img" : "a.img") != NULL);
	ck_assert(strstr(rig.message, pf_strerror(err ? err : -EIO)) != NULL);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	ck_assert_uint_eq(rig.nr_messages, 2);
	ck_assert(strstr(rig.message, "again") != NULL);
	must_scan(&rig, rig.super.log_start, rig.next - 1, 1, 0);
	ck_assert_uint_eq(rig_stats(&rig).durable, rig_stats(&rig).open);
	rig_free(&rig);
}

START_TEST(a_write_fails)
{
	failing_write(0, 0, SIM_FAIL);
	failing_write(0, 1, SIM_FAIL);
	failing_write(-ENOSPC, 0, SIM_FAIL);
	failing_write(-ENOSPC, 1, SIM_FAIL);
	failing_write(0, 1, SIM_TEAR);
}
END_TEST

static void failing_flush(unsigned member)
{
	static const uint32_t rings[] = { 256, 256, 0 };
	struct rig rig;
	rig_new(&rig, 3, rings, 0);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	struct sim_fault fault = { .disk = simworld_disk(rig.world, member), .ops = SIM_FLUSH, .count = 1 };
	simworld_add_fault(rig.world, &fault);
	write_data(&rig, 2);
	ck_assert(rig_append(&rig, 64, 1 << 2, no_extra));
	uint64_t durable = rig_stats(&rig).durable;
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(pf_log_commit(rig.log), -EIO);
		ck_assert_uint_eq(rig_stats(&rig).durable, durable);
		ck_assert(!rig_append(&rig, 64, 0, no_extra));
	}
	rig_checkpoint(&rig); /* for ever */
	ck_assert_int_eq(pf_log_commit(rig.log), -EIO);
	ck_assert_uint_eq(rig.nr_messages, 1);
	char name[] = { (char)('a' + (int)member), '.', 'i', 'm', 'g', 0 };
	ck_assert(strstr(rig.message, name) != NULL);
	rig_free(&rig);
}

START_TEST(a_flush_fails)
{
	for (unsigned member = 0; member < 3; member++)
		failing_flush(member);
}
END_TEST

/* -- epochs --------------------------------------------------------------------------------------------------------- */
/* The next mount begins in the middle of what the one before has left: its blocks do not continue the new ones. */
START_TEST(stale_epoch)
{
	struct rig rig;
	rig_new(&rig, 1, ring_256, 0);
	for (unsigned i = 0; i < 10; i++) {
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
	}
	pf_log_close(rig.log);
	must_scan(&rig, 0, 0, 10, 9);
	rig.super.log_epoch = 2;
	must_scan(&rig, 0, 0, 0, 0);
	ck_assert_int_eq(pf_log_open(rig.set, &rig.super, 2, 5, &rig.log), 0);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	must_scan(&rig, 5, 10, 1, 0);
	/* the rule broken: both histories in one */
	struct pf_log_scan scan;
	struct pf_diag diag;
	rig.env.break_rules = PF_BREAK_LOG_OLD_EPOCH;
	ck_assert_int_eq(rig_scan(&rig, 5, &scan, &diag), 0);
	ck_assert_uint_eq(scan.nr_records, 5);
	pf_log_scan_free(&scan);
	rig_free(&rig);
}
END_TEST

/* Blocks of another pool in the same place (a partition that was used before). */
START_TEST(foreign_pool)
{
	struct rig rig;
	rig_new(&rig, 1, ring_256, 0);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	rig.super.pool_uuid[3] ^= 1;
	must_scan(&rig, 0, 0, 0, 0);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("log");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, every_size);
	tcase_add_test(tc, wraps);
	tcase_add_test(tc, members_alike);
	tcase_add_test(tc, no_log);
	tcase_add_test(tc, one_flush_each);
	tcase_add_test(tc, data_members);
	tcase_add_test(tc, data_with_the_log);
	tcase_add_test(tc, data_that_fails);
	tcase_add_test(tc, data_taken_back);
	tcase_add_test(tc, write_behind);
	tcase_add_test(tc, gap);
	tcase_add_test(tc, gap_then_crash);
	tcase_add_test(tc, too_long);
	tcase_add_test(tc, full_ring);
	tcase_add_test(tc, full_memory);
	tcase_add_test(tc, a_write_fails);
	tcase_add_test(tc, a_flush_fails);
	tcase_add_test(tc, stale_epoch);
	tcase_add_test(tc, foreign_pool);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
