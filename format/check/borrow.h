/* SPDX-License-Identifier: MIT
 *
 * Purpose: lends the members to one set or pool after another. A set closes its members; what is lent stays open, and
 * with it the lock.
 *
 * Uses: member/io.
 *
 * Invariants
 *   I1  Whatever is lent is closed before the member itself.
 */
#ifndef PF_CHECK_BORROW_H
#define PF_CHECK_BORROW_H

#include "member/io.h"

/* @out[i] stands for @ios[i] until it is closed. -ENOMEM: nothing is lent. */
int pf_borrow_ios(struct pf_io *const *ios, unsigned nr, struct pf_io **out);

#endif
