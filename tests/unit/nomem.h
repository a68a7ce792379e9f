/* SPDX-License-Identifier: MIT
 *
 * Purpose: allocations that fail when a test says so: those functions that the program is linked with --wrap= of (tests/local.mk).
 * Invariants: I1 One thread at a time.
 * Uses: nothing.
 */
#ifndef PF_TEST_NOMEM_H
#define PF_TEST_NOMEM_H

#include <stdbool.h>

/* Of the allocations from here on @after succeed, then all fail, or one does. */
void nomem_begin(unsigned after, bool once);
/* Returns whether one has failed. */
bool nomem_end(void);

/* In between: memory that is spared. */
bool nomem_pause(void);
void nomem_resume(bool was_armed);

#endif
