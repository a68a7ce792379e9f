/* SPDX-License-Identifier: MIT
 *
 * The home of the nodes on an image file whose share is large: the first groups, which mkfs had the host allocate. It is there for
 * the day when the host has no room, and ordinary allocations leave it alone. Elsewhere nodes have the host allocate a group as a
 * whole before they go into it; when the host refuses, they stay in what has been allocated, and then go home. So a checkpoint can
 * always be written, also the one that deletes something; what makes the tree grow is refused while only the home is left for it.
 */
#include "space/private.h"

void pf_home_init(struct pf_space_member *m)
{
	uint64_t blocks = pf_geometry_home_blocks(&m->geo, m->share_blocks);
	if (blocks < m->share_blocks && m->io->kind != PF_IO_BLOCK_DEVICE)
		m->home.nr_groups = (uint32_t)((m->geo.data_start + blocks) >> PF_GROUP_SHIFT);
}

bool pf_home_has(const struct pf_space_member *m, uint32_t group)
{
	return group < m->home.nr_groups;
}

bool pf_home_backs(const struct pf_space_member *m, uint32_t group)
{
	return m->groups[group].flags & PF_GROUP_BACKED || m->home.host == PF_HOST_WILLING;
}

uint64_t pf_home_room(const struct pf_space_member *m)
{
	uint64_t quads = 0;
	for (uint32_t g = 0; g < m->home.nr_groups; g++)
		quads += m->groups[g].free_quads;
	return quads * PF_NODE_BLOCKS;
}

uint64_t pf_home_blocks(const struct pf_space_member *m)
{
	return m->home.nr_groups ? ((uint64_t)m->home.nr_groups << PF_GROUP_SHIFT) - m->geo.data_start : 0;
}

bool pf_home_back(struct pf_space *space, struct pf_space_member *m, uint32_t group)
{
	struct pf_group *g = &m->groups[group];
	uint64_t from = (uint64_t)group << PF_GROUP_SHIFT, end = from + PF_GROUP_BLOCKS;
	if (g->flags & PF_GROUP_BACKED)
		return true;
	if (!pf_home_backs(m, group))
		return false;
	if (end > m->geo.data_end)
		end = m->geo.data_end;
	pthread_mutex_unlock(&space->lock);
	int err = pf_io_allocate(m->io, from * PF_BLOCK_SIZE, (end - from) * PF_BLOCK_SIZE);
	pthread_mutex_lock(&space->lock);
	if (!err) {
		g->flags |= PF_GROUP_BACKED;
		return true;
	}
	if (m->home.host == PF_HOST_WILLING)
		m->home.host = PF_HOST_NO_MORE;
	m->home.host_full = m->home.host_full || err == -ENOSPC;
	return false;
}

void pf_home_freeze(struct pf_space_member *m)
{
	m->home.host = PF_HOST_WILLING;
}

/* Of a group that was used before nobody knows whether the host had to find room for it now. */
static bool is_news(const struct pf_group *g)
{
	return !(g->flags & (PF_GROUP_INIT | PF_GROUP_BACKED | PF_GROUP_BAD)) && !g->maps;
}

static void ask(struct pf_space *space, struct pf_space_member *m)
{
	uint32_t group = m->home.nr_groups;
	while (group < m->geo.nr_groups && !(is_news(&m->groups[group]) && pf_group_kind(&m->groups[group])))
		group++;
	if (group == m->geo.nr_groups || pf_home_back(space, m, group))
		m->home.host_full = false;
}

void pf_space_ask_hosts(struct pf_space *space)
{
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr_meta; i++) {
		struct pf_space_member *m = &space->members[space->meta_members[i]];
		if (m->home.host_full && m->home.host == PF_HOST_WILLING && !m->failed)
			ask(space, m);
	}
	pthread_mutex_unlock(&space->lock);
}

void pf_home_opened(struct pf_space_member *m)
{
	uint64_t quads = 0;
	for (uint32_t g = 0; g < m->home.nr_groups; g++)
		quads += pf_group_quads(&m->geo, g);
	m->home.host_full = pf_home_room(m) < quads * PF_NODE_BLOCKS;
}

void pf_space_nodes_at_home(struct pf_space *space, unsigned member)
{
	struct pf_space_member *m = &space->members[member];
	pthread_mutex_lock(&space->lock);
	m->cursor[1] = m->geo.data_start;
	m->home.host = PF_HOST_REFUSES;
	m->home.host_full = m->home.nr_groups;
	pthread_mutex_unlock(&space->lock);
}

uint64_t pf_space_home_room(struct pf_space *space)
{
	uint64_t least = UINT64_MAX;
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr_meta; i++) {
		const struct pf_space_member *m = &space->members[space->meta_members[i]];
		uint64_t room = m->home.nr_groups && !m->failed ? pf_home_room(m) : UINT64_MAX;
		least = room < least ? room : least;
	}
	pthread_mutex_unlock(&space->lock);
	return least;
}
