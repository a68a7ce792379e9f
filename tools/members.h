/* SPDX-License-Identifier: MIT
 *
 * Purpose: from the members that the user named to all members of the pool: one suffices when the others can be found.
 *
 * Invariants
 *   I1  A pool that is complete as named is never searched for.
 *   I2  Messages say which member is missing and where it was looked for.
 *
 * Uses: poolfs.h, cli.
 */
#ifndef TOOLS_MEMBERS_H
#define TOOLS_MEMBERS_H

#include "poolfs.h"

struct members {
	unsigned nr;
	char *paths[PF_MAX_MEMBERS];
};

/* 0 or a negative code, after a message. */
int members_find(char **given, unsigned nr, struct members *out);
void members_free(struct members *m);

static inline const char *const *members_paths(const struct members *m)
{
	return (const char *const *)m->paths;
}

/* Opens and locks them all. @write_hint: what the user can do when a member cannot be written ("use -n ..."); NULL: open for
 * reading. 0 or a negative code, after a message. */
int members_open_ios(const struct members *m, const char *write_hint, const struct pf_env *env,
		     struct pf_io *ios[PF_MAX_MEMBERS]);
/* A pool by its members; the same for messages. */
int members_open_pool(const struct members *m, const struct pf_pool_options *options, const char *write_hint,
		      const struct pf_env *env, struct pf_pool **out);
/* The set read-only; when another program has it, without a lock, and *in_use says so. */
int members_open_set(const struct members *m, unsigned flags, const struct pf_env *env, struct pf_set **out, bool *in_use);

#endif
