/* SPDX-License-Identifier: MIT
 *
 * Purpose: a pool whose log is full, its daemon killed; and whether everything is there again after the next mount.
 *
 * Invariants
 *   I1  Full means: one more part in twenty, and the pool makes a checkpoint. How much that is, is found out by filling a new
 *       pool until it does; a checkpoint that has begun and is not complete may be among what the kill interrupts.
 *   I2  What was acknowledged is compared after recovery, every byte and every name. A recovery that forgets is not fast.
 *
 * Uses: site.h, daemon.h.
 */
#ifndef BENCH_RECOVERY_H
#define BENCH_RECOVERY_H

#include "site.h"

enum recovery_kind {
	RECOVERY_WRITES,  /* 4 KiB at random places of a file, each with fsync */
	RECOVERY_CREATES, /* empty files in one directory, an fsync of it at the end */
};

struct recovery {
	struct site *site;
	unsigned nr_members, version;
	enum recovery_kind kind;
	uint64_t member_bytes, seed;
	uint64_t capacity; /* operations until a checkpoint; 0: not known yet */
	uint64_t nr_ops;   /* that were in the log in the last round */
};

/* One round: a new pool, a full log, a kill; @took_ns: the mount after it, until the first answer. Then compares, unmounts and
 * runs fsck.poolfs. 0 or -errno after a message. */
int recovery_round(struct recovery *r, int64_t *took_ns);

#endif
