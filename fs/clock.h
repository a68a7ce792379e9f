/* SPDX-License-Identifier: MIT
 *
 * Purpose: how much time has passed. Not the time of day, which may be set.
 *
 * Uses: nothing.
 */
#ifndef FS_CLOCK_H
#define FS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}

#endif
