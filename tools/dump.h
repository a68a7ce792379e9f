/* SPDX-License-Identifier: MIT
 *
 * Purpose: what poolfs dump shows, one function for each kind; each as text or as JSON.
 *
 * Invariants
 *   I1  Nothing is written; damage is shown, and does not end a dump.
 *   I2  Each function returns 0 or a negative code, after its own message.
 *
 * Uses: poolfs.h, json.
 */
#ifndef TOOLS_DUMP_H
#define TOOLS_DUMP_H

#include "json.h"
#include "members.h"

struct dump {
	bool json_wanted;
	struct json json; /* inside the top object */
	const struct pf_env *env;
	uint64_t nr_damaged;
};

/* All slots of both rings of the members that were named, and the newest superblock of each in full. */
int dump_supers(struct dump *d, char **paths, unsigned nr);
/* The whole tree, node by node. */
int dump_tree(struct dump *d, struct pf_set *set);
/* All items of one inode: attributes, names in it, extents. */
int dump_inode(struct dump *d, struct pf_set *set, uint64_t ino);
/* One node by its address, whatever is there. */
int dump_node(struct dump *d, struct pf_set *set, pf_addr addr);
/* Group tables and free-space maps. */
int dump_maps(struct dump *d, struct pf_set *set);
/* The intent log, record by record. */
int dump_log(struct dump *d, struct pf_set *set);

#endif
