/* SPDX-License-Identifier: MIT
 *
 * Purpose: memory for nodes, some at a time. One by one, malloc() would spend a quarter more on aligning them, and keep the holes.
 *
 * Invariants
 *   I1  What is not in use takes no memory but for struct pf_node: its pages go back to the system at once. So who frees and allocates
 *       often keeps some (tree_priv.h, 'pool').
 *   I2  Any number of threads.
 *
 * Uses: tree/node.h.
 */
#ifndef PF_TREE_NODE_MEM_H
#define PF_TREE_NODE_MEM_H

#include "tree/node.h"

#include <pthread.h>

struct pf_node_chunk;
LIST_HEAD(pf_node_chunks, pf_node_chunk);

struct pf_node_mem {
	pthread_mutex_t lock;
	struct pf_node_chunks open; /* that have free nodes */
};

void pf_node_mem_init(struct pf_node_mem *mem);
void pf_node_mem_exit(struct pf_node_mem *mem); /* all nodes have been freed */

/* All zeros but for 'buf' and 'home', and what is in the buffer is anything. NULL: no memory. */
struct pf_node *pf_node_mem_get(struct pf_node_mem *mem);
void pf_node_mem_put(struct pf_node_mem *mem, struct pf_node *node);

#endif
