/* SPDX-License-Identifier: MIT
 *
 * Purpose: the members of a pool that the user did not name: beside those that were named, in directories to search, on block
 * devices. In this order; what is found earlier wins.
 *
 * Invariants
 *   I1  What the user named is kept. Nothing is opened for writing.
 *   I2  Members that are not found are left to pf_pool_open(), which says which they are.
 *
 * Uses: spec, member/scan (poolfs.h).
 */
#ifndef FS_FIND_H
#define FS_FIND_H

#include "spec.h"

/* Completes spec->paths, which are absolute. Errors: -ENOENT (no such pool), -EINVAL (two that fit), those of a scan, with
 * @diag. */
int find_members(struct spec *spec, char *const *search, unsigned nr_search, const struct pf_env *env,
		 struct pf_diag *diag);

#endif
