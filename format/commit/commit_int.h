/* SPDX-License-Identifier: MIT
 *
 * Purpose: the state of the checkpoint and of its workers. Private to commit/.
 * Invariants: see checkpoint.h. Fields are guarded by 'lock', but for those of the checkpoint under way, which are the stepping
 * thread's.
 * Uses: commit/checkpoint.
 */
#ifndef PF_COMMIT_INT_H
#define PF_COMMIT_INT_H

#include "base/thread.h"
#include "commit/checkpoint.h"

#define PF_COMMIT_TRIES 8 /* of a step, before the pool gives up: reading a map may fail for a moment as well as writing a node */

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
	uint32_t recorded; /* failed members, as the superblocks that are durable say */
	/* the checkpoint under way */
	struct pf_super next;
	uint32_t changed_mask, suspects;
	uint32_t unwritten; /* mask: the last attempt to write superblocks failed there */
	uint32_t noted;     /* failed members that log and space know of */
	bool sealed;        /* superblocks with 'next' may be on members: it does not change any more */
	/* workers */
	bool workers, discards, drains, stop;
	struct pf_thread checkpointer, reaper, discarder, drainer;
	unsigned interval_ms;
};

/* -- members that fail (fail.c), all by the stepping thread ------------------------------------------------------------------ */
/* Members have failed that no durable superblock says so of: nothing may be promised. Commit lock held. */
bool pf_commit_unrecorded(struct pf_pool *pool);
/* Tells log and space of members that have failed meanwhile. True: there were such. */
bool pf_commit_note_failures(struct pf_pool *pool);
/* A step could not be done in many attempts: members that are to blame for that are given up. False: there are none. */
bool pf_commit_give_up(struct pf_pool *pool, enum pf_commit_phase phase, int err);
/* Puts the failures noted so far into c->next. */
void pf_commit_record(struct pf_pool *pool);

/* Runs steps, or waits for the thread that is at one, until @generation is durable. */
int pf_commit_reach(struct pf_pool *pool, uint64_t generation);

#endif
