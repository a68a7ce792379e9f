/* SPDX-License-Identifier: MIT
 *
 * Purpose: knows what may be on disk after a power cut. It keeps the whole history of a workload: the state of the model after each
 * operation, where in the log of the disks the operation began and ended, and what it acknowledged as durable.
 *
 * Invariants
 *   I1  The promise (docs/DESIGN.md): the namespace is at one point of its history, not before the last acknowledged fsync or sync;
 *       each file's content (size, bytes, mtime) is at one point of its own history, not before its last acknowledged fsync (or
 *       sync), and not before a name that it got (rule 6): when the names are those of state k, a file that was renamed, exchanged
 *       or linked by an operation at state j <= k is as it was after j or later. So replacing a file by a rename leaves the old one
 *       or the new one, whole.
 *       What is not promised, and not judged: content that is not ahead of the names; two files at the same point; files whose
 *       directory was moved; atime and ctime of files; files without a name.
 *       Of a file that is marked unreadable only that is demanded: it changed after its last acknowledgement.
 *   I2  Nothing on disk is from a time after the cut: an operation that began after the last write before it has left no trace.
 *   I3  States are numbered; state 0 is the fresh pool, state n is after operation n.
 *
 * Uses: model, its ops.
 */
#ifndef PF_TEST_ORACLE_H
#define PF_TEST_ORACLE_H

#include "model/ops.h"

struct oracle;

/* @fresh is state 0. */
struct oracle *oracle_new(struct model *fresh);
void oracle_free(struct oracle *o);

/* One operation. */
struct oracle_step {
	size_t log_begin, log_end; /* lengths of the log of the disks */
	bool synced_all;           /* everything so far was acknowledged as durable */
	uint64_t synced_ino;       /* this file was, and the namespace; 0: none */
	uint64_t moved[2];         /* inodes that it gave a name (I1); 0: none */
};
void oracle_add(struct oracle *o, const struct oracle_step *step, struct model *after, const char *text);
/* The one that ops_step() has just done, or failed to do. */
void oracle_add_op(struct oracle *o, size_t log_begin, size_t log_end, const struct ops *ops);

/* Judges what a recovered pool holds after a cut behind the first @cut events of the log. 0, or -1 and @why. */
int oracle_judge(struct oracle *o, size_t cut, struct model *got, char *why, size_t cap);

struct oracle_stats {
	uint64_t nr_judged;
	uint64_t nr_single_point; /* names and all contents were at one and the same point */
	uint64_t nr_ahead;        /* at a later point than the last acknowledged one */
	uint64_t nr_moved;        /* files of which a name demanded more than their last fsync did */
};
void oracle_stats(const struct oracle *o, struct oracle_stats *out);

#endif
