/* SPDX-License-Identifier: MIT
 *
 * Purpose: lists of runs of blocks that grow without asking for memory (txg.c). Private to space/.
 *
 * Invariants
 *   I1  Moving a list costs the same however long it is.
 *
 * Uses: space.
 */
#ifndef PF_SPACE_RUNS_H
#define PF_SPACE_RUNS_H

#include "space/space.h"

struct pf_run_chunk {
	struct pf_run_chunk *next;
	unsigned nr;
	struct pf_run runs[255];
};
struct pf_run_list {
	struct pf_run_chunk *first, *last;
	size_t nr;
	uint64_t blocks;
};

int pf_run_chunks_prepare(struct pf_space *space); /* for the first runs of all lists, and more; -ENOMEM */
/* The list is the caller's alone: drops the lock of @space, if that is not NULL, to give back memory. */
void pf_run_list_clear(struct pf_space *space, struct pf_run_list *list);
void pf_run_list_move(struct pf_run_list *to, struct pf_run_list *from); /* O(1) */
int pf_run_list_sorted(const struct pf_run_list *list, struct pf_run **out); /* a copy to be freed; -ENOMEM */

#endif
