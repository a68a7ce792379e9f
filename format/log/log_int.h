/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the files of the log share: its memory, its positions, and who may write.
 *
 * Blocks wait for being written in chunks of PF_LOG_CHUNK_BLOCKS, aligned in LSN: each is contiguous in memory and in the ring of
 * every member, and leaves as one request per member. Chunks that are written are used again.
 *
 * Invariants
 *   I1  start <= durable <= written <= open. Blocks below 'open' are closed: they do not change, and nobody but the writer touches
 *       them.
 *   I2  One writer at a time ('busy'). [writing_from, writing_to) is its alone, without the lock; their chunks stay.
 *   I3  Memory is where LSNs from mem_first (aligned to a chunk) up to mem_first + ring have it; so no slot is used twice.
 *   I4  While 'gap' is set nothing is appended and nobody begins to write. Until start has reached gap_end nothing is promised.
 *   I5  'waits' has nobody whom a round could serve, unless somebody is 'busy' or has yet to call serve(). So whoever has been busy
 *       serves; who comes while somebody is, leaves his wait to him.
 *
 * Uses: base, ondisk, member, log/log.
 */
#ifndef PF_LOG_INT_H
#define PF_LOG_INT_H

#include "log/log.h"
#include "ondisk/ondisk_log.h"

#include <pthread.h>

struct pf_log_chunk; /* memory of PF_LOG_CHUNK_BLOCKS blocks, aligned to a block */

struct pf_log {
	struct pf_set *set;
	uint8_t pool_uuid[16];
	uint64_t epoch;
	uint32_t ring_blocks;
	unsigned nr_members; /* these two: the writer's */
	unsigned members[PF_MAX_META_MEMBERS]; /* ids */
	uint32_t failing;                      /* mask: of those, which could not be written last time; the writer's */

	pthread_mutex_t lock; /* all that follows */
	pthread_cond_t changed; /* a commit has ended, or somebody who sleeps has been served */

	uint64_t start, durable, written, open;
	uint32_t placed;       /* mask: where who writes next finds the log */
	uint32_t used;         /* bytes in the open block; 0: not begun */
	uint32_t data_members; /* mask: named by records that are not durable yet */
	struct pf_log_writes *writes, **last_writes; /* of records that no commit has taken yet */
	struct pf_log_writes *taken;                 /* by the commit that is under way */
	struct pf_log_wait *waits, **last_wait;      /* in the order of their targets */
	uint64_t frozen;       /* what the last freeze returned */
	uint64_t gap_end;
	bool gap;
	bool failed; /* a flush */
	bool busy;
	uint64_t writing_from, writing_to;

	struct pf_log_chunk **chunks; /* of LSN n: [n / PF_LOG_CHUNK_BLOCKS % (ring_blocks / PF_LOG_CHUNK_BLOCKS)] */
	uint64_t mem_first;
	struct pf_log_chunk *idle;
	unsigned nr_idle;

	uint64_t nr_commits, nr_waiters, nr_records, nr_lost, blocks_written;
};

/* The block of @lsn, in memory: its head, and behind it the payload. */
struct pf_disk_log_head *pf_log_block(const struct pf_log *log, uint64_t lsn);

/* With the lock: */
void pf_log_settle_members(struct pf_log *log); /* members[] by 'placed'; nobody writes */
void pf_log_close_block(struct pf_log *log); /* the open one, if it has anything */
void pf_log_open_gap(struct pf_log *log);
void pf_log_trim(struct pf_log *log); /* gives back the memory of what is written, or need not be */

#endif
