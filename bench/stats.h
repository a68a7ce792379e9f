/* SPDX-License-Identifier: MIT
 *
 * Purpose: what is made of measured times and rates: tails, medians, ratios of paired rounds with an interval.
 *
 * Invariants
 *   I1  Percentiles are by nearest rank: always a time that was measured, never an interpolation.
 *   I2  The interval is a percentile bootstrap over whole rounds with a generator of our own: the same samples and seed
 *       give the same interval on every machine.
 *   I3  A difference is called real only with STATS_MIN_ROUNDS rounds or more and 1 outside the interval.
 *
 * Uses: nothing.
 */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stddef.h>
#include <stdint.h>

enum { STATS_MIN_ROUNDS = 5, STATS_RESAMPLES = 10000 };

/* Times of single operations, in nanoseconds. */
struct stats_tail {
	uint64_t nr;
	double mean_ns;
	uint64_t p50_ns, p95_ns, p99_ns, p999_ns, p9999_ns, max_ns;
};
/* Sorts @ns. Without samples everything is 0. */
void stats_tail(uint64_t *ns, size_t nr, struct stats_tail *out);

/* Sorts @values; the mean of the two in the middle when there are two. 0 of none. */
double stats_median(double *values, size_t nr);

enum stats_verdict { STATS_FEW_ROUNDS, STATS_NO_DIFFERENCE, STATS_FASTER, STATS_SLOWER };
const char *stats_verdict_text(enum stats_verdict verdict);

struct stats_ratio {
	double ratio;     /* median over the rounds of speed / speed of the baseline in the same round */
	double low, high; /* 95 % */
	enum stats_verdict verdict;
};
/* @ratios: one for each round, all > 0. Returns 0 or -ENOMEM; without rounds -EINVAL. */
int stats_paired(const double *ratios, size_t nr, uint64_t seed, struct stats_ratio *out);

/* A generator for everything here that must look random and be the same each time (splitmix64). */
uint64_t stats_random(uint64_t *state);

#endif
