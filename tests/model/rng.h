/* SPDX-License-Identifier: MIT
 *
 * Purpose: the one random generator of the seeded tests (splitmix64): small, and the same on every machine.
 * Invariants: I1 The sequence depends on the seed alone.
 * Uses: nothing.
 */
#ifndef PF_TEST_RNG_H
#define PF_TEST_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t rng_next(struct rng *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	return rng_mix(r->state);
}

/* 0 .. n - 1; n > 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}

static inline bool rng_one_in(struct rng *r, uint64_t n)
{
	return rng_below(r, n) == 0;
}

/* Small values are likely, @max is possible: lengths. */
static inline uint64_t rng_skewed(struct rng *r, uint64_t max)
{
	unsigned bits = 0;
	while (bits < 63 && max >> bits)
		bits++;
	/* one call after the other: compilers differ in the order within an expression */
	unsigned keep = bits ? 1 + (unsigned)rng_below(r, bits) : 1;
	uint64_t v = rng_next(r) >> (64 - keep);
	return v > max ? max : v;
}

static inline void rng_fill(struct rng *r, void *buf, size_t len)
{
	uint8_t *p = buf;
	while (len) {
		uint64_t v = rng_next(r);
		size_t n = len < sizeof(v) ? len : sizeof(v);
		memcpy(p, &v, n);
		p += n;
		len -= n;
	}
}

#endif
