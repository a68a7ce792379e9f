/* SPDX-License-Identifier: MIT
 *
 * Purpose: memory that the daemon no longer uses goes back to the system. malloc() keeps it otherwise: with an arena for each thread, a
 * million files made at once left three times as much as was in use.
 *
 * Uses: nothing.
 */
#ifndef FS_MEMORY_H
#define FS_MEMORY_H

#include <stdint.h>

struct memory {
	uint64_t nr_done;
	int64_t since_ns; /* when that was first seen */
	unsigned nr_trims; /* since then */
};

/* Before there are threads. */
void memory_setup(void);
/* Now and then. @nr_done: requests so far; when there are no new ones for a while the daemon rests. */
void memory_tick(struct memory *m, uint64_t nr_done);

#endif
