/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include "clock.h"

#include <malloc.h>

/* What was written is on its way to the members for some seconds after the last request: hence twice. */
static const int64_t rests_ns[] = { 2000000000, 20000000000 };
#define NR_RESTS (sizeof(rests_ns) / sizeof(rests_ns[0]))

void memory_setup(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 2);
#endif
}

void memory_tick(struct memory *m, uint64_t nr_done)
{
	int64_t now = clock_now_ns();
	if (nr_done != m->nr_done) {
		*m = (struct memory){ .nr_done = nr_done, .since_ns = now };
		return;
	}
	if (m->nr_trims == NR_RESTS || now - m->since_ns < rests_ns[m->nr_trims])
		return;
	m->nr_trims++;
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
