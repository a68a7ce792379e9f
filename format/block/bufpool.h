/* SPDX-License-Identifier: MIT
 *
 * Purpose: page-aligned buffers of one size that are kept and used again, because mapping memory on a data path costs more
 * than the I/O (shared/bench/peers.md: a page fault is 15 us on the machines measured).
 *
 * Invariants
 *   I1  At most 'keep' idle buffers stay in memory; more may be in use at a time.
 *   I2  Any number of threads.
 *   I3  One that a lost request uses (member/aio.h I5) is not used again.
 *
 * Uses: member/aio.
 */
#ifndef PF_BLOCK_BUFPOOL_H
#define PF_BLOCK_BUFPOOL_H

#include "member/aio.h"

#include <stddef.h>

struct pf_bufpool;

int pf_bufpool_create(size_t size_bytes, unsigned keep, struct pf_aio *aio, struct pf_bufpool **out); /* -ENOMEM */
void pf_bufpool_destroy(struct pf_bufpool *pool);
void *pf_bufpool_get(struct pf_bufpool *pool); /* NULL: no memory */
void pf_bufpool_put(struct pf_bufpool *pool, void *buf); /* NULL is ignored */

#endif
