/* SPDX-License-Identifier: MIT
 * The scan of the log on damaged disks: what is one bad copy, what is the end, what is damage of something promised; and bytes that
 * mean to break it. */
#include "log_util.h"

#define NR_COMMITS 20 /* one record and one block each, LSNs from START */
#define START      1000

static const uint32_t two[] = { 256, 200 };
static const uint32_t one[] = { 64 };
static struct pf_log_scan scan;
static struct pf_diag diag;

/* Two log members unless @rings says otherwise; a log of NR_COMMITS blocks, the last of them not known to be durable. */
static void make(struct rig *rig, unsigned nr, const uint32_t *rings)
{
	rig_new(rig, nr, rings, START);
	for (unsigned i = 0; i < NR_COMMITS; i++) {
		must_append(rig, 64 + 8 * i);
		ck_assert_int_eq(pf_log_commit(rig->log), 0);
	}
}

static void spoil(struct rig *rig, unsigned id, uint64_t lsn)
{
	simdisk_flip_bit(simworld_disk(rig->world, id), place(rig, id, lsn) + lsn * 97 % BLOCK, lsn % 8);
}

/* Damage in block @lsn; what is before it is there, @nr_more records of that block too. */
static void damaged(struct rig *rig, uint64_t lsn, unsigned nr_more)
{
	unsigned nr = (unsigned)(lsn - START) + nr_more;
	char words[32];
	ck_assert_int_eq(rig_scan(rig, START, &scan, &diag), -PF_ELOG_DAMAGED);
	snprintf(words, sizeof(words), "block %lu ", (unsigned long)lsn);
	ck_assert_msg(strstr(diag.text, words) != NULL, "'%s' is not in: %s", words, diag.text);
	check_scan(&scan, 0, nr, nr < NR_COMMITS - 1 ? nr : NR_COMMITS - 1);
	pf_log_scan_free(&scan);
}

START_TEST(one_copy)
{
	struct rig rig;
	make(&rig, 2, two);
	for (unsigned i = 0; i < NR_COMMITS; i++)
		spoil(&rig, i & 1, START + i);
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), 0);
	check_scan(&scan, 0, NR_COMMITS, NR_COMMITS - 1);
	ck_assert_uint_eq(scan.nr_one_copy, NR_COMMITS);
	ck_assert_uint_eq(scan.end, START + NR_COMMITS);
	ck_assert_uint_eq(scan.proven, START + NR_COMMITS - 1);
	pf_log_scan_free(&scan);
	rig_free(&rig);
}
END_TEST

START_TEST(both_copies)
{
	for (unsigned i = 0; i < NR_COMMITS; i++) {
		struct rig rig;
		make(&rig, 2, two);
		spoil(&rig, 0, START + i);
		spoil(&rig, 1, START + i);
		if (i == NR_COMMITS - 1) {
			/* the end; the block before is now the last */
			must_scan(&rig, START, 0, i, i - 1);
		} else {
			damaged(&rig, START + i, 0);
			/* both members and both places are named */
			ck_assert(strstr(diag.text, "a.img") && strstr(diag.text, "b.img"));
		}
		rig_free(&rig);
	}
}
END_TEST

/* The part behind the hole need not be near it, nor have begun before the ring wrapped. */
START_TEST(noted_from_afar)
{
	struct rig rig;
	rig_new(&rig, 1, one, 40); /* 64 blocks: wraps after 24 */
	for (unsigned i = 0; i < 60; i++) {
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
	}
	for (unsigned i = 0; i < 59; i++)
		spoil(&rig, 0, 40 + i);
	ck_assert_int_eq(rig_scan(&rig, 40, &scan, &diag), -PF_ELOG_DAMAGED);
	ck_assert(strstr(diag.text, "block 40 ") != NULL);
	check_scan(&scan, 0, 0, 0);
	pf_log_scan_free(&scan);
	spoil(&rig, 0, 40 + 59);
	must_scan(&rig, 40, 0, 0, 0); /* nothing left that could tell */
	rig_free(&rig);
}
END_TEST

/* A commit of several blocks that the power cut left in part: blocks behind the hole do not say that it was durable. */
START_TEST(hole_in_the_tail)
{
	struct rig rig;
	make(&rig, 2, two);
	must_append(&rig, 3 * 4032);
	must_append(&rig, 64);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	spoil(&rig, 0, START + NR_COMMITS + 1);
	spoil(&rig, 1, START + NR_COMMITS + 1);
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), 0);
	check_scan(&scan, 0, NR_COMMITS, NR_COMMITS); /* a record without its end is not there */
	ck_assert_uint_eq(scan.end, START + NR_COMMITS + 1);
	pf_log_scan_free(&scan);
	rig_free(&rig);
}
END_TEST

/* A disk that lost a superblock it had acknowledged: the log went on over what the old one still needs. */
START_TEST(overtaken)
{
	struct rig rig;
	rig_new(&rig, 1, one, 0);
	for (unsigned i = 0; i < 60; i++) {
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
	}
	rig_checkpoint(&rig);
	for (unsigned i = 0; i < 30; i++) {
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
	}
	must_scan(&rig, 60, 60, 30, 29);
	ck_assert_int_eq(rig_scan(&rig, 0, &scan, &diag), -PF_ELOG_DAMAGED);
	pf_log_scan_free(&scan);
	rig_free(&rig);
}
END_TEST

/* -- reads that fail ------------------------------------------------------------------------------------------------ */
static void fail_reads(struct rig *rig, unsigned id, uint64_t from_lsn, unsigned nr)
{
	struct sim_fault fault = { .disk = simworld_disk(rig->world, id), .ops = SIM_READ };
	fault.from_bytes = place(rig, id, from_lsn);
	fault.to_bytes = fault.from_bytes + (uint64_t)nr * BLOCK;
	simworld_add_fault(rig->world, &fault);
}

START_TEST(bad_sectors)
{
	struct rig rig;
	make(&rig, 2, two);
	fail_reads(&rig, 0, START, 3);
	fail_reads(&rig, 1, START + 3, 17);
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), 0);
	check_scan(&scan, 0, NR_COMMITS, NR_COMMITS - 1);
	ck_assert_uint_eq(scan.nr_one_copy, 20);
	pf_log_scan_free(&scan);
	fail_reads(&rig, 1, START + 1, 1);
	damaged(&rig, START + 1, 0);
	/* at the end it is taken for what a power cut does, but said */
	simworld_clear_faults(rig.world);
	unsigned nr_messages = rig.nr_messages;
	fail_reads(&rig, 0, START + 19, 1);
	fail_reads(&rig, 1, START + 19, 1);
	must_scan(&rig, START, 0, NR_COMMITS - 1, NR_COMMITS - 2);
	ck_assert_uint_eq(rig.nr_messages, nr_messages + 1);
	ck_assert(strstr(rig.message, "1019") != NULL);
	rig_free(&rig);
}
END_TEST

START_TEST(dead_members)
{
	struct rig rig;
	make(&rig, 2, two);
	struct sim_fault fault = { .disk = simworld_disk(rig.world, 0), .ops = SIM_ANY };
	simworld_add_fault(rig.world, &fault);
	uint64_t reads = simdisk_count(simworld_disk(rig.world, 0), SIM_READ);
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), 0);
	check_scan(&scan, 0, NR_COMMITS, NR_COMMITS - 1);
	ck_assert_uint_eq(scan.nr_one_copy, NR_COMMITS);
	pf_log_scan_free(&scan);
	/* it is not asked for every block of the ring */
	ck_assert_uint_le(simdisk_count(simworld_disk(rig.world, 0), SIM_READ) - reads, 40);
	fault.disk = simworld_disk(rig.world, 1);
	simworld_add_fault(rig.world, &fault);
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), -EIO);
	ck_assert(diag.text[0] != 0);
	rig_free(&rig);
}
END_TEST

/* A member that is not there at all. */
START_TEST(missing_member)
{
	struct rig rig;
	make(&rig, 2, two);
	struct pf_io *io = rig.set->members[0].io;
	rig.set->members[0].io = NULL;
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), 0);
	check_scan(&scan, 0, NR_COMMITS, NR_COMMITS - 1);
	ck_assert_uint_eq(scan.nr_one_copy, NR_COMMITS);
	pf_log_scan_free(&scan);
	struct pf_io *other = rig.set->members[1].io;
	rig.set->members[1].io = NULL;
	ck_assert_int_eq(rig_scan(&rig, START, &scan, &diag), -EIO);
	rig.set->members[0].io = io;
	rig.set->members[1].io = other;
	rig_free(&rig);
}
END_TEST

/* -- hostile bytes -------------------------------------------------------------------------------------------------- */
static void seal(uint8_t *block)
{
	struct pf_disk_log_head *head = (void *)block;
	head->crc = pf_le64(0);
	head->crc = pf_le64(pf_crc64(block, BLOCK));
}

/* Block @lsn of a log of one member, changed by hand, with a good checksum. */
static void change(struct rig *rig, uint64_t lsn, unsigned off, unsigned len, uint64_t value)
{
	static uint8_t block[BLOCK];
	simdisk_peek(simworld_disk(rig->world, 0), place(rig, 0, lsn), block, BLOCK);
	memcpy(block + off, &value, len);
	seal(block);
	simdisk_poke(simworld_disk(rig->world, 0), place(rig, 0, lsn), block, BLOCK);
}

#define OFF(field) offsetof(struct pf_disk_log_head, field)
#define HEAD       sizeof(struct pf_disk_log_head)

START_TEST(crafted)
{
	static const struct {
		unsigned off, len;
		uint64_t value;
		unsigned nr_more;
	} changes[] = {
		{ OFF(used), 2, PAYLOAD + 8, 0 },
		{ OFF(used), 2, 0xfff8, 0 },
		{ OFF(used), 2, 63, 0 },
		{ OFF(used), 2, 56, 0 },  /* the record goes on in a block that is not full */
		{ OFF(used), 2, 256, 1 }, /* zeros where a record has to begin */
		{ OFF(used), 2, 0, 0 },
		{ OFF(first), 2, 8, 0 },
		{ OFF(first), 2, PF_LOG_NO_RECORD, 0 },
		{ HEAD, 4, 0, 0 },
		{ HEAD, 4, 4, 0 },
		{ HEAD, 4, 12, 0 },
		{ HEAD, 4, 0xfffffff8, 0 },
		{ HEAD, 4, 64 / 8 * PAYLOAD + 8, 0 }, /* just too long */
		{ HEAD, 4, 64 / 8 * PAYLOAD, 0 },
		{ HEAD + 4, 1, 0, 0 },
	};
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct rig rig;
		make(&rig, 1, one);
		change(&rig, START, changes[i].off, changes[i].len, changes[i].value);
		damaged(&rig, START, changes[i].nr_more);
		rig_free(&rig);
		make(&rig, 1, one);
		change(&rig, START + 7, changes[i].off, changes[i].len, changes[i].value);
		damaged(&rig, START + 7, changes[i].nr_more);
		rig_free(&rig);
		/* the same in the last block, of which nothing was promised: it is no end either, for a power cut makes no checksums */
		make(&rig, 1, one);
		change(&rig, START + NR_COMMITS - 1, changes[i].off, changes[i].len, changes[i].value);
		damaged(&rig, START + NR_COMMITS - 1, changes[i].nr_more);
		rig_free(&rig);
	}
}
END_TEST

/* Numbers of the head that make it another block: not this one, and nothing it notes can be believed. */
START_TEST(crafted_heads)
{
	struct rig rig;
	static const struct {
		unsigned off;
		uint64_t value;
	} changes[] = {
		{ OFF(lsn), START },
		{ OFF(lsn), START + NR_COMMITS },
		{ OFF(lsn), START + NR_COMMITS - 1 - 64 },
		{ OFF(durable), START + NR_COMMITS },
		{ OFF(durable), UINT64_MAX },
		{ OFF(epoch), 2 },
		{ OFF(pool_uuid), 0 },
		{ OFF(magic), PF_LOG_MAGIC + 1 },
	};
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		make(&rig, 1, one);
		change(&rig, START + NR_COMMITS - 1, changes[i].off, 8, changes[i].value);
		must_scan(&rig, START, 0, NR_COMMITS - 1, NR_COMMITS - 2);
		rig_free(&rig);
	}
	/* its own LSN may stand there: all before it */
	make(&rig, 1, one);
	change(&rig, START + NR_COMMITS - 1, OFF(durable), 8, START + NR_COMMITS - 1);
	must_scan(&rig, START, 0, NR_COMMITS, NR_COMMITS - 1);
	/* a record is as durable as its last block */
	must_append(&rig, 3 * 4032);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	change(&rig, START + NR_COMMITS + 2, OFF(durable), 8, START + NR_COMMITS + 2);
	must_scan(&rig, START, 0, NR_COMMITS + 1, NR_COMMITS);
	rig_free(&rig);
}
END_TEST

/* What a scan answers is sane, whatever it is given. */
static void check_sane(struct rig *rig)
{
	int err = rig_scan(rig, START, &scan, &diag);
	ck_assert(err == 0 || err == -PF_ELOG_DAMAGED);
	ck_assert(err == 0 || diag.text[0]);
	ck_assert_uint_le(scan.end - scan.start, 64);
	ck_assert_uint_le(scan.proven, scan.end);
	uint64_t sum = 0;
	for (unsigned i = 0; i < scan.nr_records; i++) {
		const struct pf_log_record *rec = &scan.records[i];
		ck_assert_uint_le(rec->len, 64 / 8 * PAYLOAD);
		sum += pf_crc64(rec->data, rec->len); /* for the sanitizer: all of it is there */
	}
	ck_assert(scan.nr_records == 0 || sum != 1);
	pf_log_scan_free(&scan);
}

/* Random bytes of the ring become others; in half of the rounds the checksum is made good again. */
START_TEST(fuzz)
{
	static uint8_t ring[64 * BLOCK], bytes[64 * BLOCK];
	struct rig rig;
	struct rng rng = { .state = 42 };
	rig_new(&rig, 1, one, START);
	for (unsigned i = 0; i < 40; i++) {
		must_append(&rig, (uint32_t)(32 + 8 * (rng_next(&rng) % 500)));
		if (i % 3 == 0)
			ck_assert_int_eq(pf_log_commit(rig.log), 0);
	}
	struct simdisk *disk = simworld_disk(rig.world, 0);
	uint64_t at = place(&rig, 0, 0);
	simdisk_peek(disk, at, ring, sizeof(ring));
	for (unsigned round = 0; round < 3000; round++) {
		memcpy(bytes, ring, sizeof(ring));
		for (unsigned n = 1 + rng_next(&rng) % 5; n > 0; n--) {
			uint8_t *block = bytes + rng_next(&rng) % 64 * BLOCK;
			/* mostly heads of blocks and records, mostly small changes */
			unsigned off = rng_next(&rng) % (rng_next(&rng) % 2 ? 80 : BLOCK - 8);
			uint64_t value = rng_next(&rng) >> rng_next(&rng) % 64;
			memcpy(block + off, &value, 1 + rng_next(&rng) % 8);
			if (rng_next(&rng) % 8 == 0)
				memcpy(block, bytes + rng_next(&rng) % 64 * BLOCK, BLOCK);
			if (round & 1)
				seal(block);
		}
		simdisk_poke(disk, at, bytes, sizeof(bytes));
		check_sane(&rig);
		if (round % 4 == 0) {
			rig.env.break_rules = PF_BREAK_LOG_OLD_EPOCH;
			check_sane(&rig);
			rig.env.break_rules = 0;
		}
	}
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log_scan");
	TCase *tc = tcase_create("log_scan");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, one_copy);
	tcase_add_test(tc, both_copies);
	tcase_add_test(tc, noted_from_afar);
	tcase_add_test(tc, hole_in_the_tail);
	tcase_add_test(tc, overtaken);
	tcase_add_test(tc, bad_sectors);
	tcase_add_test(tc, dead_members);
	tcase_add_test(tc, missing_member);
	tcase_add_test(tc, crafted);
	tcase_add_test(tc, crafted_heads);
	tcase_add_test(tc, fuzz);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
