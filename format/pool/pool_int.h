/* SPDX-License-Identifier: MIT
 *
 * Purpose: putting the layers of a pool together over an open set. Private to format/ (mkfs, open, check).
 *
 * Invariants
 *   I1  pf_pool_assemble() writes nothing.
 *   I2  A pool being made starts with an empty tree and maps built anew.
 *
 * Uses: commit, object, block and what lies below.
 */
#ifndef PF_POOL_INT_H
#define PF_POOL_INT_H

#include "block/engine.h"
#include "pool/pool.h"

/* Takes the set, also on failure. @fresh: do not read the tables (mkfs, or the caller rebuilds them). */
int pf_pool_assemble(struct pf_set *set, const struct pf_pool_options *options, bool fresh, struct pf_pool **out,
		     struct pf_diag *diag);
/* From an open set: epoch, recovery. What pf_pool_open() does after pf_set_open(). Takes the set. @rebuild_maps: all groups start
 * untouched; the caller fills them by pf_space_replace_map() before anything is allocated (implies no_recovery). */
int pf_pool_start(struct pf_set *set, const struct pf_pool_options *options, bool rebuild_maps, struct pf_pool **out,
		  struct pf_diag *diag);

/* Which members are told of freed blocks from now on. */
void pf_pool_begin_discards(struct pf_pool *pool, enum pf_discard_mode mode);
/* What is freed and waits for its discard now, as far as there is time; nobody else uses the pool. */
void pf_pool_end_discards(struct pf_pool *pool);

/* Frees memory and closes the members. NULL is ignored. */
void pf_pool_free(struct pf_pool *pool);

#endif
