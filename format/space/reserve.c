/* SPDX-License-Identifier: MIT
 *
 * Who may take how much (I7), and promises.
 *
 * A metadata member keeps share_blocks for nodes, in whole quads, for a node fits nowhere else. What nodes already take
 * of it counts; what they freed and what waits for its release does not: then, whenever data has just been allocated,
 * share - nodes blocks are free for the next checkpoints. So a checkpoint that freed nodes lowers what data may take
 * until they are released; promises given before keep their word by going into the share (they were counted when they
 * were given).
 *
 * Where fewer whole quads are left than are kept, data has the broken ones: room = free - 4 * min(kept, whole). Nodes
 * take none of these, so they do not lower the room of data there; a quad that becomes whole again does.
 */
#include "space/private.h"

#define FEW_NODES 256       /* data blocks for a block of nodes, where files are large */
#define TELLING_BLOCKS 1024 /* of data; before there are so many, nothing can be told from them */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* In blocks. */
static uint64_t kept_for_nodes(const struct pf_space_member *m, enum pf_space_use use)
{
	uint64_t left = minus(m->share_blocks, m->node_blocks);
	/* a quarter more than what only checkpoints and deletions may use: or a pool whose nodes are many would be full as soon as
	 * promises are under way, of which nobody knows where they will lie */
	uint64_t least = pf_space_reserve_of(m->share_blocks) / 4 * 5;
	if (left < least)
		left = least;
	switch (use) {
	case PF_USE_DATA:
		return left;
	case PF_USE_DATA_PRIVILEGED:
		return left / 2;
	default:
		return 0;
	}
}

uint64_t pf_space_kept_quads(const struct pf_space_member *m, enum pf_space_use use)
{
	return kept_for_nodes(m, use) / PF_NODE_BLOCKS;
}

uint64_t pf_space_member_room(const struct pf_space_member *m, enum pf_space_use use)
{
	if (m->failed)
		return 0;
	if (use == PF_USE_NODE)
		return m->free_quads * PF_NODE_BLOCKS;
	uint64_t kept = pf_space_kept_quads(m, use);
	return m->free_blocks - PF_NODE_BLOCKS * (kept < m->free_quads ? kept : m->free_quads);
}

/* What nodes on it will want beside the share when the @free_blocks of the pool are filled as what is filled, with @data blocks:
 * where files are small that is many times what the share was made for. */
static uint64_t nodes_to_come(const struct pf_space_member *m, uint64_t data, uint64_t free_blocks)
{
	uint64_t wanted = free_blocks / FEW_NODES;
	if (data >= TELLING_BLOCKS && (double)m->node_blocks / (double)data > 1.0 / FEW_NODES)
		wanted = (uint64_t)((double)m->node_blocks / (double)data * (double)free_blocks);
	return wanted < m->area_blocks / 4 ? wanted : m->area_blocks / 4;
}

uint32_t pf_space_tight(const struct pf_space *space)
{
	uint64_t area = 0, free_blocks = 0, nodes = 0;
	uint32_t tight = 0;
	for (unsigned i = 0; i < space->nr; i++) {
		area += space->members[i].area_blocks;
		free_blocks += space->members[i].free_blocks;
		nodes += space->members[i].node_blocks;
	}
	uint64_t data = minus(area, free_blocks + nodes);
	for (unsigned i = 0; i < space->nr_meta; i++) {
		const struct pf_space_member *m = &space->members[space->meta_members[i]];
		if (m->free_quads * PF_NODE_BLOCKS < kept_for_nodes(m, PF_USE_DATA) + nodes_to_come(m, data, free_blocks))
			tight |= UINT32_C(1) << m->id;
	}
	return tight;
}

uint64_t pf_space_room(const struct pf_space *space, enum pf_space_use use)
{
	uint64_t room = 0;
	for (unsigned i = 0; i < space->nr; i++)
		room += pf_space_member_room(&space->members[i], use);
	return room;
}

uint64_t pf_space_avail(const struct pf_space *space, enum pf_space_use use)
{
	return minus(pf_space_room(space, use), space->reserved);
}

uint64_t pf_space_room_for_copies(const uint64_t *room, unsigned nr_meta, unsigned nr_copies)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < nr_meta; i++)
		sum += room[i];
	if (nr_copies == 1)
		return sum;
	/* as the writer does it: the first two together, then what one of them has left beside the third */
	uint64_t both = room[0] < room[1] ? room[0] : room[1], rest = room[0] + room[1] - 2 * both;
	uint64_t third = nr_meta > 2 ? room[2] : 0;
	return both + (rest < third ? rest : third);
}

/* Whole quads of @whole blocks, of which data leaves @safe alone, when @reserved blocks are promised and @room are there for data:
 * promises take what data may take before they go into what is kept. */
static uint64_t left_for_nodes(uint64_t whole, uint64_t safe, uint64_t reserved, uint64_t room)
{
	uint64_t least = minus(safe, minus(reserved, room));
	whole = minus(whole, reserved);
	return whole > least ? whole : least;
}

uint64_t pf_space_node_room(struct pf_space *space)
{
	uint64_t left[PF_MAX_META_MEMBERS] = { 0 }, all_whole = 0, all_safe = 0, at_home = 0;
	pthread_mutex_lock(&space->lock);
	uint64_t room = pf_space_room(space, PF_USE_DATA), reserved = space->reserved;
	for (unsigned i = 0; i < space->nr_meta; i++) {
		const struct pf_space_member *m = &space->members[space->meta_members[i]];
		uint64_t kept = pf_space_kept_quads(m, PF_USE_DATA), quads = m->failed ? 0 : m->free_quads;
		if (m->home.host_full && !m->failed) {
			left[i] = pf_home_room(m);
			at_home += left[i];
			continue;
		}
		uint64_t whole = quads * PF_NODE_BLOCKS, safe = (kept < quads ? kept : quads) * PF_NODE_BLOCKS;
		all_whole += whole;
		all_safe += safe;
		/* nobody knows to which member the promises will go: to the one in question */
		left[i] = left_for_nodes(whole, safe, reserved, room);
	}
	unsigned nr_copies = space->nr_copies;
	pthread_mutex_unlock(&space->lock);
	if (nr_copies == 1)
		return left_for_nodes(all_whole, all_safe, reserved, room) + at_home;
	return pf_space_room_for_copies(left, space->nr_meta, nr_copies);
}

uint64_t pf_space_node_reserve(struct pf_space *space)
{
	uint64_t reserve[PF_MAX_META_MEMBERS] = { 0 };
	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < space->nr_meta; i++) {
		const struct pf_space_member *m = &space->members[space->meta_members[i]];
		reserve[i] = pf_space_reserve_of(m->home.host_full ? pf_home_blocks(m) : m->share_blocks);
	}
	unsigned nr_copies = space->nr_copies;
	pthread_mutex_unlock(&space->lock);
	return pf_space_room_for_copies(reserve, space->nr_meta, nr_copies);
}

uint64_t pf_space_member_node_room(struct pf_space *space, unsigned member)
{
	assert(member < space->nr);
	pthread_mutex_lock(&space->lock);
	uint64_t room = pf_space_member_room(&space->members[member], PF_USE_NODE);
	pthread_mutex_unlock(&space->lock);
	return room;
}

int pf_space_reserve(struct pf_space *space, enum pf_space_use use, uint64_t nr)
{
	int err = 0;
	pthread_mutex_lock(&space->lock);
	if (pf_space_avail(space, use) < nr)
		pf_discard_drop(space);
	if (pf_space_avail(space, use) < nr) {
		err = -ENOSPC;
		space->missed_blocks = nr > space->missed_blocks ? nr : space->missed_blocks;
	} else {
		space->reserved += nr;
		if (nr >= space->missed_blocks)
			space->missed_blocks = 0;
	}
	pthread_mutex_unlock(&space->lock);
	return err;
}

void pf_space_unreserve(struct pf_space *space, uint64_t nr)
{
	pthread_mutex_lock(&space->lock);
	assert(space->reserved >= nr);
	space->reserved -= nr;
	pthread_mutex_unlock(&space->lock);
}

/* -- nodes per member
 * ------------------------------------------------------------------------------------------------- * The superblock
 * has only their sum. After an open it is taken to lie on the metadata members in order, each up to its share (half of it on
 * the first and half on the second where each node has two copies); nodes freed on a member that was not given so many are
 * taken off the others, so that the sum stays exact. */

void pf_space_add_nodes(struct pf_space *space, unsigned member, uint64_t nr)
{
	space->members[member].node_blocks += nr;
}

static uint64_t take_nodes(struct pf_space_member *m, uint64_t nr)
{
	uint64_t n = m->node_blocks < nr ? m->node_blocks : nr;
	m->node_blocks -= n;
	return nr - n;
}

void pf_space_sub_nodes(struct pf_space *space, unsigned member, uint64_t nr)
{
	if (member < space->nr)
		nr = take_nodes(&space->members[member], nr);
	for (unsigned i = 0; i < space->nr && nr; i++)
		nr = take_nodes(&space->members[i], nr);
}

static uint64_t give_nodes(struct pf_space_member *m, uint64_t nr)
{
	uint64_t room = minus(m->share_blocks, m->node_blocks), n = nr < room ? nr : room;
	m->node_blocks += n;
	return n;
}

void pf_space_set_node_blocks(struct pf_space *space, uint64_t node_blocks)
{
	pthread_mutex_lock(&space->lock);
	uint64_t each = node_blocks / space->nr_copies;
	for (unsigned i = 0; i < space->nr; i++)
		space->members[i].node_blocks = 0;
	for (unsigned i = 0; i < space->nr_copies; i++)
		node_blocks -= give_nodes(&space->members[space->meta_members[i]], each);
	for (unsigned i = 0; i < space->nr_meta; i++)
		node_blocks -= give_nodes(&space->members[space->meta_members[i]], node_blocks);
	/* what no share holds lies somewhere on the first one */
	space->members[space->meta_members[0]].node_blocks += node_blocks;
	pthread_mutex_unlock(&space->lock);
}
