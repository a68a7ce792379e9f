/* SPDX-License-Identifier: MIT
 *
 * Purpose: what home.c keeps of each member, and what the allocator asks of it. Not for other folders.
 *
 * Invariants
 *   I1  A group is marked PF_GROUP_BACKED after its host allocated all of it, never before. The mark is as old as the mount: what is
 *       in the share is never discarded (discard.h I3), what is behind it may be, and then a write finds out.
 *   I2  host_full goes when the host has allocated a group that was never used; of another one its answer proves nothing.
 *   I3  As long as it is set, the room of nodes is that of the home, and half of the home is for checkpoints and deletions.
 *
 * Locks: that of the space is held by all callers. Uses: ondisk.
 */
#ifndef PF_SPACE_HOME_INT_H
#define PF_SPACE_HOME_INT_H

#include <stdbool.h>
#include <stdint.h>

struct pf_space;
struct pf_space_member;

enum pf_host { /* what became of the requests for room in the checkpoint under way */
	PF_HOST_WILLING,
	PF_HOST_NO_MORE, /* it allocates no further group: nodes stay in those that are backed, then go home */
	PF_HOST_REFUSES, /* a write of nodes met its end all the same: they go home */
};

struct pf_home {
	uint32_t nr_groups; /* from the first on; 0: no such thing here */
	enum pf_host host;
	bool host_full; /* it is, or may be */
};

void pf_home_init(struct pf_space_member *m);
void pf_home_opened(struct pf_space_member *m); /* tables are there: has a full host left nodes at home? */
void pf_home_freeze(struct pf_space_member *m);
bool pf_home_has(const struct pf_space_member *m, uint32_t group);
bool pf_home_backs(const struct pf_space_member *m, uint32_t group); /* or might, when asked */
uint64_t pf_home_room(const struct pf_space_member *m);              /* in whole quads */
uint64_t pf_home_blocks(const struct pf_space_member *m);            /* of the data area */
/* Has the host allocate a group before nodes go there. False: it has no room. Drops the lock. */
bool pf_home_back(struct pf_space *space, struct pf_space_member *m, uint32_t group);

#endif
