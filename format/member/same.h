/* SPDX-License-Identifier: MIT
 *
 * Purpose: whether two paths lead to the same file or device: by links, by two nodes of one device, or by a loop device and
 * the file behind it.
 *
 * Invariants
 *   I1  Nothing is opened that could be a member: stat(2) and sysfs say it. What cannot be looked at is not the same.
 *
 * Uses: base.
 */
#ifndef PF_MEMBER_SAME_H
#define PF_MEMBER_SAME_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct stat;

/* A loop device, or a partition of one: true, with device and inode number of the file behind it. */
bool pf_loop_backing(const struct stat *st, dev_t *dev, ino_t *ino);

bool pf_same_thing(const char *a, const char *b);

/* -PF_EMEMBER_TWICE when two of @paths are the same, with both as they are spelled in @diag. Two names of one member would
 * otherwise end in a lock that we hold ourselves. */
int pf_same_check(const char *const *paths, unsigned nr, struct pf_diag *diag);

#endif
