/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the parts of scrub share (private to check/).
 *
 *   scrub.c       order, metadata, the public function     scrub_data.c  data, a thread per member
 *   scrub_fill.c  checksums for extents without            names.c       from damaged data to paths
 *
 * Invariants
 *   I1  The sink is called by the thread that called pf_scrub() only.
 *   I2  Memory is bounded: extents are taken in windows of at most PF_SCRUB_ENTRIES (16 bytes each), checksums are
 *       looked up again in the leaves, a member's thread has a few MiB of buffers, and who finds more than
 *       PF_SCRUB_HITS damaged runs waits until they are told.
 *
 * Locks: one mutex, for hits and the condition; counters are atomics.
 * Uses: member, tree (pf_node_validate), pool.
 */
#ifndef PF_CHECK_SCRUBBER_H
#define PF_CHECK_SCRUBBER_H

#include "check/check.h"
#include "check/walk.h"
#include "ondisk/item.h"

#include <pthread.h>
#include <stdatomic.h>

#define PF_SCRUB_ENTRIES (UINT64_C(1) << 20)
#define PF_SCRUB_HITS    (UINT64_C(1) << 16)

struct pf_scrub_hit {     /* damaged blocks, one behind the other in file and member */
	uint64_t data_id; /* 0: no data, a leaf that could not be read a second time */
	uint64_t file_block;
	pf_addr addr;
	uint32_t nr_blocks;
	int err;
};

struct pf_scrubber {
	struct pf_pool *pool;
	struct pf_set *set;
	struct pf_super super; /* of the tree that is scrubbed */
	const struct pf_scrub_options *options;
	const struct pf_scrub_sink *sink;
	struct pf_scrub_result *result;
	bool fill; /* leave the extents without checksum to scrub_fill.c */

	atomic_uint_fast64_t done_bytes, data_bytes, unverified_bytes;
	uint64_t total_bytes;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned nr_running; /* threads */
	bool stop;
	int err; /* first error of a thread */
	struct pf_scrub_hit *hits;
	size_t nr_hits, cap_hits;

	uint64_t *damaged; /* data ids counted as damaged files, ascending */
	size_t nr_damaged, cap_damaged;
};

/* Any thread. -ENOMEM. Waits while there are too many. */
int pf_scrub_hit(struct pf_scrubber *s, const struct pf_scrub_hit *hit);
/* The calling thread of pf_scrub() only: names and tells what was found so far. */
int pf_scrub_tell(struct pf_scrubber *s);
/* 0 or -EINTR. */
int pf_scrub_progress(struct pf_scrubber *s);
void pf_scrub_metadata_error(struct pf_scrubber *s, pf_addr addr, int err, bool good_copy);

/* scrub_data.c: counts what there is to do (all nodes are read and verified on the way); then does it. */
struct pf_scrub_plan;
int pf_scrub_plan(struct pf_scrubber *s, struct pf_scrub_plan **out);
int pf_scrub_data(struct pf_scrubber *s, struct pf_scrub_plan *plan);
void pf_scrub_plan_free(struct pf_scrub_plan *plan);
/* Reads @nr blocks one by one and notes those that cannot be read. */
int pf_scrub_unreadable(struct pf_scrubber *s, const struct pf_scrub_hit *range, void *block);

/* scrub_fill.c */
int pf_scrub_fill(struct pf_scrubber *s);

/* names.c: tells @hits by path. Sorts them. */
typedef void pf_scrub_named_fn(void *arg, const char *path, uint64_t ino, const struct pf_scrub_hit *hit);
int pf_scrub_names(struct pf_set *set, const struct pf_super *super, struct pf_scrub_hit *hits, size_t nr,
		   pf_scrub_named_fn *fn, void *arg);

#endif
