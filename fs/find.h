/* SPDX-License-Identifier: MIT
 *
 * Purpose: the members of a pool that the user did not name (member/complete.h), and what mount.poolfs says when there is no
 * such pool.
 *
 * Uses: spec, poolfs.h.
 */
#ifndef FS_FIND_H
#define FS_FIND_H

#include "spec.h"

/* Completes spec->paths. Errors: -ENOENT (no such pool), those of pf_complete_members(), with @diag. */
int find_members(struct spec *spec, char *const *search, unsigned nr_search, const struct pf_env *env,
		 struct pf_diag *diag);

#endif
