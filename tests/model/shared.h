/* SPDX-License-Identifier: MIT
 *
 * Purpose: files that several threads use at once, by operations that are atomic: what comes out must be what they would do one after
 * the other in some order.
 *
 * Invariants
 *   I1  A register is a file that is always written whole, by one pf_write() or by a rename over it. Who reads it gets one of the values
 *       written, whole: of a write that did not fail, had begun, and was not over before another that was over before the read began.
 *   I2  A name that is replaced by rename or exchanged is never missing, neither to lookup nor to one pf_readdir().
 *   I3  Of several who create a name only one succeeds: a counter that only he changes is exact.
 *
 * Uses: poolfs.h, sim/complain.h.
 */
#ifndef PF_TEST_SHARED_H
#define PF_TEST_SHARED_H

#include "model/rng.h"
#include "poolfs.h"

#include <stdatomic.h>

#define SHARED_REGISTERS  8 /* the first half is replaced by rename, the other written in place */
#define SHARED_BLOCKS     24
#define SHARED_MAX_VALUES (UINT64_C(1) << 21)

struct shared_register {
	atomic_uint_fast64_t latest_begin; /* of the writes that are over */
	uint64_t ino; /* of those written in place */
};

/* Of one write of a register, by its number. */
struct shared_value {
	atomic_uint_fast64_t end; /* tick; 0: not over */
	uint32_t nr_blocks;
	uint32_t reg;
	bool failed;
};

struct shared {
	struct pf_pool *pool;
	uint64_t dir, pair[2];
	struct shared_register registers[SHARED_REGISTERS];
	struct shared_value *values; /* [SHARED_MAX_VALUES] */
	atomic_uint_fast64_t nr_values, tick, nr_counted, nr_ops, nr_full;
};

/* Of one thread. */
struct shared_client {
	struct shared *s;
	struct rng rng;
	unsigned nr;
	uint8_t *buf; /* aligned, SHARED_BLOCKS and two more */
};

/* Makes directory and files in the root of @pool; what goes wrong is said by complain(), here and in the others. */
void shared_start(struct shared *s, struct pf_pool *pool);
void shared_finish(struct shared *s);
void shared_client_init(struct shared_client *c, struct shared *s, unsigned nr, uint64_t seed);
void shared_client_free(struct shared_client *c);
/* One operation, beside those of others. */
void shared_step(struct shared_client *c);
/* The pool was opened again; nobody else is at work. Everything is looked at. */
void shared_remounted(struct shared_client *c, struct pf_pool *pool);

#endif
