/* SPDX-License-Identifier: MIT
 *
 * Purpose: the blocks of the intent log as they lie in the log ring of a member (FORMAT 7.1). What records hold: ondisk_record.h.
 *
 * A log is a stream of records, cut into blocks. Block LSN lies at block LSN % ring of the log ring of each log member, ring
 * being the largest multiple of PF_LOG_CHUNK_BLOCKS that every log member has, at most PF_LOG_MAX_BLOCKS. A record may go on in
 * the next block; a block that was closed early ends with a whole record and is filled up with zeros.
 *
 * Invariants, Uses: see ondisk.h.
 */
#ifndef PF_ONDISK_LOG_H
#define PF_ONDISK_LOG_H

#include "ondisk/ondisk.h"

#define PF_LOG_MAGIC        UINT64_C(0x474f4c5f53464c50) /* "PLFS_LOG" */
#define PF_LOG_CHUNK_BLOCKS 16u
#define PF_LOG_MAX_BLOCKS   16384u /* 64 MiB: what a longer ring has more is not used */
#define PF_LOG_NO_RECORD    0xffffu

struct pf_disk_log_head { /* begins each log block */
	struct le64 magic;
	struct le64 crc; /* of the whole block */
	uint8_t pool_uuid[16];
	struct le64 epoch;   /* id of the mount that wrote it: a block of another one is not part of the log */
	struct le64 lsn;     /* number of this block */
	struct le64 durable; /* when it was written, all blocks below this LSN were durable, and all data that their records name */
	struct le16 used;    /* bytes of the payload */
	struct le16 first;   /* where in the payload the first record begins; PF_LOG_NO_RECORD: none begins here */
	uint8_t reserved[4];
};
static_assert(sizeof(struct pf_disk_log_head) == 64, "log block head");

#define PF_LOG_PAYLOAD_BYTES (PF_BLOCK_SIZE - sizeof(struct pf_disk_log_head))

struct pf_disk_record_head { /* begins each record; records are padded with zeros to 8 bytes */
	struct le32 len; /* of the whole record, this head and the padding included; a multiple of 8 */
	uint8_t type;    /* enum pf_record_type */
	uint8_t reserved[3];
};
static_assert(sizeof(struct pf_disk_record_head) == 8, "record head");

#endif
