/* SPDX-License-Identifier: MIT
 * Blocks that the log says are somebody's: taken where they lie, not chosen. */
#include "space/private.h"

/* [start, start + nr) of a loaded group is free. */
static bool is_free(const struct pf_space_member *m, uint32_t group, uint32_t start, uint32_t nr)
{
	return pf_bits_next_set(m->groups[group].maps->used, start, start + nr) == start + nr;
}

static int claim_part(struct pf_space *space, struct pf_space_member *m, uint32_t group, uint32_t start, uint32_t nr)
{
	int err = pf_group_load(space, m, &group, 1);
	if (err)
		return err;
	if (!m->groups[group].maps)
		return -EIO; /* a map that cannot be read (space.h I5) */
	if (!is_free(m, group, start, nr))
		return -EEXIST;
	pf_group_take(m, group, start, nr);
	return 0;
}

int pf_space_claim(struct pf_space *space, struct pf_run run)
{
	struct pf_space_member *m = &space->members[pf_addr_member(run.addr)];
	uint64_t first = pf_addr_block(run.addr), done = 0;
	int err = 0;
	pthread_mutex_lock(&space->lock);
	while (!err && done < run.nr) {
		uint32_t start = (uint32_t)((first + done) % PF_GROUP_BLOCKS), nr = PF_GROUP_BLOCKS - start;
		if (nr > run.nr - done)
			nr = (uint32_t)(run.nr - done);
		err = claim_part(space, m, (uint32_t)((first + done) >> PF_GROUP_SHIFT), start, nr);
		if (!err)
			done += nr;
	}
	if (err && done)
		pf_group_release(m, (struct pf_run){ run.addr, done });
	pf_group_evict(space, 1);
	pthread_mutex_unlock(&space->lock);
	return err;
}
