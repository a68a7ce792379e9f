/* SPDX-License-Identifier: MIT
 *
 * Purpose: reads everything in a damaged pool and compares it with what it should hold: each answer is right, or an error that says
 * "damaged"; never a wrong byte, a missing name or a name too many.
 * Invariants: I1 Only what lies in the damaged part may fail; the rest is read by other ways (block by block).
 * Uses: model.
 */
#ifndef PF_TEST_WALK_H
#define PF_TEST_WALK_H

#include "model/model.h"

struct walk_result {
	uint64_t nr_errors;     /* calls that answered with an error */
	uint64_t nr_bad_blocks; /* of files */
	uint64_t nr_checked;
};
/* 0, or -1 and @why: a wrong answer. */
int walk_damaged(struct pf_pool *pool, struct model *expected, struct walk_result *result, char *why, size_t cap);

#endif
