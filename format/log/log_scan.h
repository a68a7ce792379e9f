/* SPDX-License-Identifier: MIT
 *
 * Purpose: reads the intent log after a crash: which records are there, in order, and which of them were promised
 * (design rules 10 and 11; pitfalls 1.5, 1.7, 1.17).
 *
 * Invariants
 *   I1  A block counts when magic, CRC, pool, epoch and LSN are right, on any of the log members that can be read. Blocks of other
 *       epochs do not exist.
 *   I2  The log ends before the first LSN that is valid nowhere. If a valid block that was written later notes that LSN as
 *       durable, it is damage: -PF_ELOG_DAMAGED, and @diag says which block of which members.
 *   I3  A record is proven when all its blocks lie below the highest 'durable' that a valid block of the log notes. A record that
 *       goes on past the end of the log is not there.
 *   I4  Reads only. Holds the whole log in memory: at most 64 MiB.
 *
 * Uses: base, ondisk, member, log/log.
 */
#ifndef PF_LOG_SCAN_H
#define PF_LOG_SCAN_H

#include "log/log.h"

struct pf_log_record {
	const void *data; /* with its head (struct pf_disk_record_head), in memory of the scan, 8-byte aligned */
	uint32_t len;     /* a multiple of 8, as in the head, at least that */
	uint8_t type;
	bool proven;
	uint64_t lsn; /* of the block in which it begins */
};

struct pf_log_scan {
	uint64_t start, end; /* LSNs: [start, end) is the log */
	uint64_t proven;     /* blocks below this were durable, with their data */
	struct pf_log_record *records;
	unsigned nr_records;
	unsigned nr_one_copy; /* blocks that could be read from some of the log members only */
	uint8_t *bytes;       /* owned */
};

/* The log that @super names: from super->log_start, of epoch super->log_epoch. An empty log: 0 and no records. Errors: -EIO (no
 * log member could be read), -ENOMEM, -PF_ELOG_DAMAGED, also for a record whose head makes no sense: @out then has the records
 * before the damage. */
int pf_log_scan(struct pf_set *set, const struct pf_super *super, struct pf_log_scan *out, struct pf_diag *diag);
void pf_log_scan_free(struct pf_log_scan *scan);

#endif
