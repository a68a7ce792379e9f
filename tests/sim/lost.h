/* SPDX-License-Identifier: MIT
 *
 * Purpose: a pool of which a member failed, after its end: whether it is refused as it should be, taking the member back, and judging
 * what is left.
 *
 * Invariants
 *   I1  Files can only be unreadable when a member had failed, and only if they had changed since they were acknowledged (oracle.h).
 *
 * Uses: simpool, oracle.
 */
#ifndef PF_TEST_LOST_H
#define PF_TEST_LOST_H

#include "sim/oracle.h"
#include "sim/simpool.h"

struct lost_result {
	bool taken_back;      /* the pool was refused for a failed member */
	unsigned nr_unreadable; /* files */
};

/* Opens the closed pool on healthy disks: at once, or after fsck has taken back a member that failed. Judges it (states up to @cut of
 * the log), empties what cannot be read, closes it; then the check must find nothing. @failed: a member that may have; NULL: any.
 * 0, or -1 and @why. */
int lost_judge(struct simpool *s, struct oracle *oracle, size_t cut, const char *failed, struct lost_result *result, char *why,
	       size_t cap);
/* Only the first step of it. */
int lost_open(struct simpool *s, const char *failed, char *why, size_t cap);

#endif
