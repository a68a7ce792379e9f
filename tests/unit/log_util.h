/* SPDX-License-Identifier: MIT
 * A log on disks in memory: for the tests of log/. Every record says by its bytes which one it is: number 0, 1, 2, ... in the order of
 * appending. Behind the log members there may be data members. */
#ifndef LOG_UTIL_H
#define LOG_UTIL_H

#include "base/csum.h"
#include "log/log.h"
#include "log/log_scan.h"
#include "model/rng.h"
#include "ondisk/ondisk_log.h"
#include "sim/simdisk.h"
#include "unit/run_suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK      PF_BLOCK_SIZE
#define PAYLOAD    PF_LOG_PAYLOAD_BYTES
#define DISK_BYTES (UINT64_C(16) << 20)
struct rig {
	struct simworld *world;
	struct pf_env env;
	struct pf_set *set;
	struct pf_super super;
	struct pf_log *log;
	unsigned nr_messages;
	char message[1024]; /* the last one */
	uint64_t next;      /* number of the next record */
};

static inline void remember(void *arg, enum pf_log_level level, const char *message)
{
	struct rig *rig = arg;
	(void)level;
	rig->nr_messages++;
	snprintf(rig->message, sizeof(rig->message), "%s", message);
}

/* The set of the members that @world is, and a superblock of epoch @epoch from @start on; no log. @rings: their lengths; a member
 * of 0 has no log. */
static inline void rig_assemble(struct rig *rig, struct simworld *world, const uint32_t *rings, uint64_t epoch,
				uint64_t start)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	unsigned nr = simworld_nr_disks(world);
	memset(rig, 0, sizeof(*rig));
	rig->world = world;
	rig->env = *pf_env_system();
	rig->env.log = remember;
	rig->env.arg = rig;
	simworld_open(world, false, ios);
	ck_assert_int_eq(pf_set_new(ios, nr, &rig->env, &rig->set), 0);
	rig->super.nr_members = nr;
	memset(rig->super.pool_uuid, 0x77, 16);
	rig->super.log_start = start;
	rig->super.log_epoch = epoch;
	for (unsigned i = 0; i < nr; i++) {
		ck_assert_uint_le(rings[i], rig->set->members[i].geo.log_blocks);
		rig->super.members[i].log_blocks = rings[i];
		if (rings[i])
			rig->super.log_members[rig->super.nr_log++] = (uint8_t)i;
	}
}

/* New disks, and a log on them. */
static inline void rig_new_of(struct rig *rig, uint64_t disk_bytes, unsigned nr, const uint32_t *rings, uint64_t start)
{
	struct simworld *world = simworld_new();
	for (unsigned i = 0; i < nr; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%c.img", 'a' + (int)i);
		simdisk_new(world, name, disk_bytes);
	}
	rig_assemble(rig, world, rings, 1, start);
	ck_assert_int_eq(pf_log_open(rig->set, &rig->super, 1, start, &rig->log), 0);
}

static inline void rig_new(struct rig *rig, unsigned nr, const uint32_t *rings, uint64_t start)
{
	rig_new_of(rig, DISK_BYTES, nr, rings, start);
}

static inline void rig_free(struct rig *rig)
{
	pf_log_close(rig->log);
	pf_set_close(rig->set);
	simworld_free(rig->world);
}
/* -- records -------------------------------------------------------------------------------------------------------- */
/* Bytes of record @number: its head, its number, @extra (two words that the test may use), and a pattern. @len: at least 32. */
static inline void record_fill(uint8_t *bytes, uint32_t len, uint64_t number, const uint64_t *extra)
{
	struct pf_disk_record_head head = { .len = pf_le32(len), .type = (uint8_t)(1 + number % 200) };
	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + 8, &number, 8);
	memcpy(bytes + 16, extra, 16);
	for (uint32_t i = 32; i < len; i += 8) {
		uint64_t word = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) + i;
		memcpy(bytes + i, &word, 8);
	}
}

static const uint64_t no_extra[2];

/* Appends the next record, in parts that are cut where nothing suggests it. */
static inline bool rig_append(struct rig *rig, uint32_t len, uint32_t data_members, const uint64_t *extra)
{
	uint8_t *bytes = malloc(len);
	record_fill(bytes, len, rig->next++, extra);
	struct pf_log_part parts[3] = { { bytes, 13 }, { NULL, 0 }, { bytes + 13, len - 13 } };
	bool taken = pf_log_append(rig->log, parts, 3, data_members);
	free(bytes);
	return taken;
}

static inline void must_append(struct rig *rig, uint32_t len)
{
	ck_assert(rig_append(rig, len, 0, no_extra));
}

/* What record is it? Asserts that every byte of it is right. */
static inline uint64_t record_number(const struct pf_log_record *rec)
{
	uint64_t number, extra[2];
	ck_assert(rec->len >= 32 && (uintptr_t)rec->data % 8 == 0);
	memcpy(&number, (const uint8_t *)rec->data + 8, 8);
	memcpy(extra, (const uint8_t *)rec->data + 16, 16);
	uint8_t *expected = malloc(rec->len);
	record_fill(expected, rec->len, number, extra);
	ck_assert_msg(memcmp(expected, rec->data, rec->len) == 0, "record %lu has wrong bytes", (unsigned long)number);
	ck_assert_uint_eq(rec->type, expected[4]);
	free(expected);
	return number;
}

/* The scan has the records [first, first + nr), of which the first @nr_proven are proven. */
static inline void check_scan(const struct pf_log_scan *scan, uint64_t first, unsigned nr, unsigned nr_proven)
{
	ck_assert_uint_eq(scan->nr_records, nr);
	for (unsigned i = 0; i < nr; i++) {
		ck_assert_uint_eq(record_number(&scan->records[i]), first + i);
		ck_assert_uint_eq(scan->records[i].proven, i < nr_proven);
		ck_assert(scan->records[i].lsn >= scan->start && scan->records[i].lsn < scan->end);
	}
}

/* Scans from @start what is on the disks now. */
static inline int rig_scan(struct rig *rig, uint64_t start, struct pf_log_scan *scan, struct pf_diag *diag)
{
	struct pf_super super = rig->super;
	super.log_start = start;
	memset(diag, 0, sizeof(*diag));
	return pf_log_scan(rig->set, &super, scan, diag);
}

/* From @start there are exactly the records [first, first + nr). */
static inline void must_scan(struct rig *rig, uint64_t start, uint64_t first, unsigned nr, unsigned nr_proven)
{
	struct pf_log_scan scan;
	struct pf_diag diag;
	ck_assert_msg(rig_scan(rig, start, &scan, &diag) == 0, "%s", diag.text);
	check_scan(&scan, first, nr, nr_proven);
	pf_log_scan_free(&scan);
}

/* A checkpoint that is durable at once. */
static inline uint64_t rig_checkpoint(struct rig *rig)
{
	uint64_t lsn = pf_log_freeze(rig->log);
	pf_log_release(rig->log, lsn);
	rig->super.log_start = lsn;
	return lsn;
}

static inline struct pf_log_stats rig_stats(struct rig *rig)
{
	struct pf_log_stats stats;
	pf_log_stats(rig->log, &stats);
	return stats;
}
/* Where block @lsn lies on member @id, in bytes. */
static inline uint64_t place(struct rig *rig, unsigned id, uint64_t lsn)
{
	return (rig->set->members[id].geo.log_block + lsn % pf_log_ring_blocks(rig->set, &rig->super)) * BLOCK;
}

#endif
