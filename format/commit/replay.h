/* SPDX-License-Identifier: MIT
 *
 * Purpose: what the intent log holds after a crash becomes part of the tree again (design rules 10 to 12).
 *
 * Invariants
 *   I1  Records that were promised are redone as they are. Of the others, those before the first file record whose data is not
 *       all on the members: it and what follows are dropped, and the user is told of which files.
 *   I2  No checkpoint begins in between, nothing is allocated, nothing is written: a crash finds the same log on the same tree.
 *   I3  The log is needed until a checkpoint with everything redone is durable: only that one names another beginning.
 *
 * Uses: log/log_scan, object/redo.
 */
#ifndef PF_COMMIT_REPLAY_H
#define PF_COMMIT_REPLAY_H

#include "block/engine.h"
#include "log/log_scan.h"

/* The pool was not unmounted and has a log: it may hold something. */
bool pf_replay_needed(const struct pf_super *super);

/* Redoes the records of @scan in memory. Errors: damage codes, -EIO, -ENOMEM, with @diag; the pool is of no use then. @salvage: a
 * record that cannot be redone ends the log instead. */
int pf_replay(struct pf_pool *pool, const struct pf_log_scan *scan, bool salvage, struct pf_diag *diag);

/* For a pool that changes without having redone its log (fsck): no block that the log names is given to anybody until it is closed.
 * -ENOMEM; of a log that cannot be read whole, what could be read. */
int pf_replay_pin(struct pf_pool *pool);

#endif
