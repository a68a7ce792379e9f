/* SPDX-License-Identifier: MIT
 *
 * Purpose: whether two paths lead to the same file or device: by links, by two nodes of one device, or by a loop device and
 * the file behind it; and whether somebody holds the other side of such a pair, which has a lock of its own.
 *
 * Invariants
 *   I1  stat(2) and sysfs say what is the same. What cannot be looked at is not the same, and not held.
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

/* Is a loop device claimed that shows the file of @st, or is the file behind the loop device of @st locked, so that it may not
 * be opened for writing (or for reading)? */
bool pf_loop_is_held(const struct stat *st, bool for_writing);

bool pf_same_thing(const char *a, const char *b);

/* -PF_EMEMBER_TWICE when two of @paths are the same, with both as they are spelled in @diag. Two names of one member would
 * otherwise end in a lock that we hold ourselves. */
int pf_same_check(const char *const *paths, unsigned nr, struct pf_diag *diag);

#endif
