/* SPDX-License-Identifier: MIT
 *
 * Purpose: the files and devices that mkfs is to make a pool of: looked at, locked, judged, and only then changed.
 *
 * Invariants
 *   I1  Everything before targets_prepare() writes nothing and creates nothing.
 *   I2  Existing members stay locked (pf_io_open) from targets_open() until the pool is made or refused, so that what was
 *       judged is what is overwritten.
 *   I3  targets_undo() removes the images that this run created, and only those.
 *
 * Uses: poolfs.h, probe, cli.
 */
#ifndef TOOLS_MKFS_TARGET_H
#define TOOLS_MKFS_TARGET_H

#include "poolfs.h"
#include "probe.h"

enum target_action {
	TARGET_USE,    /* as it is */
	TARGET_CREATE, /* an image file that does not exist yet */
	TARGET_RESIZE, /* an image file that gets another size */
};
struct target {
	const char *path;
	enum target_action action;
	struct stat st;          /* of the target; TARGET_CREATE: of its directory */
	const char *base;        /* TARGET_CREATE: last part of the path */
	struct pf_io *io;        /* NULL until open, and after it was handed over */
	uint64_t size_bytes;     /* that the member will have */
	bool has_table;          /* a partition table will be wiped */
	bool created;
	char found[PROBE_TEXT];  /* what will be overwritten; empty: nothing known */
};
struct targets {
	unsigned nr;
	struct target t[PF_MAX_MEMBERS];
	uint64_t image_bytes; /* --size; 0: not given */
	bool force;
};

/* Each prints its own message. 0 or -1. */
int targets_identify(struct targets *ts, char **paths, unsigned nr);
int targets_open(struct targets *ts, const struct pf_env *env);
/* Refuses what contains something, unless forced. */
int targets_judge(struct targets *ts);
/* Images are created and resized, old signatures wiped. */
int targets_prepare(struct targets *ts, const struct pf_env *env);

/* Stand-ins of the same kind and size that read as zeros and refuse writes, for rules that only need those. 0 or -ENOMEM. */
int targets_plan(const struct targets *ts, struct pf_io *ios[PF_MAX_MEMBERS]);
/* Hands the open members over. */
void targets_take(struct targets *ts, struct pf_io *ios[PF_MAX_MEMBERS]);

void targets_close(struct targets *ts);
void targets_undo(struct targets *ts);
/* Index of the member that is @path (by any name), or -1. */
int targets_find(const struct targets *ts, const char *path);

#endif
