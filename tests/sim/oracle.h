/* SPDX-License-Identifier: MIT
 *
 * Purpose: knows what may be on disk after a power cut. It keeps the whole history of a workload: the state of the model after each
 * operation, where in the log of the disks the operation began and ended, and what it acknowledged as durable.
 *
 * Invariants
 *   I1  The promise (docs/DESIGN.md): the namespace is at one point of its history, not before the last acknowledged fsync or sync;
 *       each file's content is at one point of its own history, not before its last acknowledged fsync (or sync).
 *   I2  Nothing on disk is from a time after the cut: an operation that began after the last write before it has left no trace.
 *   I3  States are numbered; state 0 is the fresh pool, state n is after operation n.
 *
 * Uses: model.
 */
#ifndef PF_TEST_ORACLE_H
#define PF_TEST_ORACLE_H

#include "model/model.h"

struct oracle;

/* @fresh is state 0. */
struct oracle *oracle_new(struct model *fresh);
void oracle_free(struct oracle *o);

/* One operation: it began and ended at these lengths of the log; the model afterwards. @synced_all: everything so far was
 * acknowledged as durable; @synced_ino: this file was (and the namespace). */
void oracle_add(struct oracle *o, size_t log_begin, size_t log_end, struct model *after, bool synced_all,
		uint64_t synced_ino, const char *text);

/* Judges what a recovered pool holds after a cut behind the first @cut events of the log. 0, or -1 and @why. */
int oracle_judge(struct oracle *o, size_t cut, struct model *got, char *why, size_t cap);

struct oracle_stats {
	uint64_t nr_judged;
	uint64_t nr_single_point; /* names and all contents were at one and the same point */
	uint64_t nr_ahead;        /* at a later point than the last acknowledged one */
};
void oracle_stats(const struct oracle *o, struct oracle_stats *out);

#endif
