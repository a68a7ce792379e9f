/* SPDX-License-Identifier: MIT
 *
 * Purpose: SPEC of the command line and of fstab.
 *
 *   MEMBER[:MEMBER]...             paths; a colon in a path is written "\:", a backslash "\\"
 *   pool=X, poolfs:X               the pool with the label or UUID X, found by scanning (find.h)
 *
 * Uses: poolfs.h.
 */
#ifndef FS_SPEC_H
#define FS_SPEC_H

#include "poolfs.h"

struct spec {
	char *pool; /* label or UUID; NULL when members are given */
	unsigned nr;
	char *paths[PF_MAX_MEMBERS];
};

/* Takes @text apart; nothing is opened. Errors: -EINVAL with @diag, -ENOMEM. */
int spec_parse(const char *text, struct spec *out, struct pf_diag *diag);

/* The daemon leaves its working directory, and its status names members. Links stay: /dev/disk/by-id/... is a better name than
 * what it leads to today. */
int spec_make_absolute(struct spec *spec);

void spec_free(struct spec *spec);

#endif
