/* SPDX-License-Identifier: MIT
 *
 * Purpose: the state of the checkpoint and of its workers. Private to commit/.
 * Invariants: see checkpoint.h. All fields but 'next' and 'changed_mask' (the stepping thread's) are guarded by 'lock'.
 * Uses: commit/checkpoint.
 */
#ifndef PF_COMMIT_INT_H
#define PF_COMMIT_INT_H

#include "commit/checkpoint.h"

enum pf_commit_phase { PF_COMMIT_IDLE, PF_COMMIT_NODES, PF_COMMIT_MAPS, PF_COMMIT_FLUSH, PF_COMMIT_SUPER, PF_COMMIT_FLUSH2,
		       PF_COMMIT_DURABLE };

struct pf_commit {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a step ended, a checkpoint is wanted, or stop */
	enum pf_commit_phase phase;
	bool stepping;
	uint64_t wanted;     /* a checkpoint of at least this generation is wanted */
	uint64_t frozen;     /* generation of the latest freeze */
	uint64_t durable;    /* generation of the latest durable checkpoint */
	uint64_t nr_failures;
	int last_error;
	/* the checkpoint under way */
	struct pf_super next;
	uint32_t changed_mask;
	/* workers */
	bool workers, discards, stop;
	pthread_t checkpointer, reaper, discarder;
	unsigned interval_ms;
};

/* Runs steps, or waits for the thread that is at one, until @generation is durable. */
int pf_commit_reach(struct pf_pool *pool, uint64_t generation);

#endif
