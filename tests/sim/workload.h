/* SPDX-License-Identifier: MIT
 *
 * Purpose: a seeded run of operations on a pool in memory whose disks record everything, and the oracle of its history.
 *
 * Invariants
 *   I1  The run depends on its configuration alone; single-threaded, with pf_pool_step() between the operations, so that they fall
 *       between the steps of a checkpoint.
 *   I2  The recording begins right after mkfs: mounts of the run are in it.
 *
 * Uses: simpool, oracle, model/ops.
 */
#ifndef PF_TEST_WORKLOAD_H
#define PF_TEST_WORKLOAD_H

#include "model/ops.h"
#include "sim/oracle.h"
#include "sim/simpool.h"

struct workload_config {
	struct simpool_config pool; /* its seed is the run's */
	unsigned nr_ops;
	int profile; /* enum workload_profile; -1: by the seed */
	bool trace;
};
enum workload_profile {
	WORKLOAD_MIXED, /* a bit of everything */
	WORKLOAD_NAMES, /* many names, little data */
	WORKLOAD_OVERWRITES, /* few files, rewritten all the time, in a pool that is nearly full: freed blocks are used again soon */
	WORKLOAD_BIG,   /* writes larger than what is kept in memory */
	WORKLOAD_HOLES, /* truncation, punching, preallocation */
	WORKLOAD_SYNCS, /* a few small files, several of them changed at a time, synced one by one all the time, also while a
			 * checkpoint is under way; fresh ones are renamed over others */
	WORKLOAD_RING, /* the same without a checkpoint until the ring of the log is full */
	WORKLOAD_NR
};

struct workload {
	struct workload_config config;
	struct simpool *s;
	struct oracle *oracle;
	struct ops ops;
	size_t opened; /* length of the log of the disks when the first mount was done */
	char why[3000];
};

/* 0, or -1 with w->why set: the run itself went wrong. @w is to be freed in both cases. */
int workload_run(struct workload *w, const struct workload_config *config);
/* The same on a pool that exists, which it takes. */
int workload_continue(struct workload *w, const struct workload_config *config, struct simpool *s);
void workload_free(struct workload *w);
/* The weights of a profile. */
void workload_ops_config(struct ops_config *c, uint64_t seed, int profile);

#endif
