/* SPDX-License-Identifier: MIT
 *
 * Purpose: what block devices were asked to do, as the kernel counts it.
 *
 * Uses: loop.h.
 */
#ifndef BENCH_COUNTER_H
#define BENCH_COUNTER_H

#include "loop.h"

#include <stdbool.h>
#include <stdint.h>

enum { COUNTER_MAX_DEVICES = 16 };

struct counter {
	unsigned nr;
	char devices[COUNTER_MAX_DEVICES][LOOP_NAME_LEN]; /* "/dev/loop3" */
};
struct counter_values {
	uint64_t bytes, flushes; /* bytes that were written */
};

/* The sum over the devices since the kernel knows them. 0 or -errno. */
int counter_read(const struct counter *counter, struct counter_values *out);
/* One line of /sys/block/NAME/stat is added to @sum. False when it is none. */
bool counter_add(const char *line, struct counter_values *sum);

#endif
