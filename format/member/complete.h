/* SPDX-License-Identifier: MIT
 *
 * Purpose: from the members that a user named, or from a pool's label or UUID, to all members of the pool: beside those that
 * were named, in directories to search, on block devices.
 *
 * Invariants
 *   I1  What the user named is kept as it is spelled, and comes first. Nothing is locked, nothing is written.
 *   I2  What is complete is not searched for any further: disks that need not be looked at stay asleep.
 *   I3  Of one member that is found several times what lies nearest wins (in the order above), then the newest. Two that are
 *       alike are for the user to tell apart: one is a copy. A loop device and its file are one thing; when
 *       both are found the device is taken, as it has the lock.
 *   I4  What is missing or wrong is left to pf_set_open(), which has the words for it.
 *
 * Uses: member/scan, member/same.
 */
#ifndef PF_MEMBER_COMPLETE_H
#define PF_MEMBER_COMPLETE_H

#include "member/scan.h"

struct pf_complete {
	const char *pool; /* label or UUID; NULL when members are named */
	const char *const *search; /* directories */
	unsigned nr_search;
	unsigned nr; /* in: the members named; out: with those found. Each allocated, owned by the caller, also on failure */
	char *paths[PF_MAX_MEMBERS];
	/* out */
	unsigned nr_members; /* that the pool has; 0: not known */
	unsigned nr_denied;  /* files and devices that this user may not read: one of them may be a member */
};

/* 0 also when members stay missing; nr is 0 when there is no pool of that label or UUID. Errors: -PF_EMEMBER_TWICE (two paths of
 * one member), -EINVAL (two pools of one label), those of pf_scan_dir() for the directories to search, all with @diag; -ENOMEM. */
int pf_complete_members(struct pf_complete *c, const struct pf_env *env, struct pf_diag *diag);

#endif
