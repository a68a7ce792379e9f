/* SPDX-License-Identifier: MIT */
#include "block/pressure.h"

#define DIRTY_MIN 8 /* nodes: one operation fits */
#define MARGIN_NODES 8
#define STAGED_PER_NODE 64 /* staged blocks whose extents may need a leaf of their own */

uint64_t pf_dirty_limit(struct pf_pool *pool)
{
	uint64_t room = pf_space_node_room(pool->space), home = pf_space_home_room(pool->space), frozen = pf_tree_frozen(pool->tree);
	room = (room < home ? room : home) / PF_NODE_BLOCKS;
	uint64_t by_space = room > frozen ? (room - frozen) / 4 : 0;
	uint64_t limit = pool->dirty_by_cache < by_space ? pool->dirty_by_cache : by_space;
	return limit > DIRTY_MIN ? limit : DIRTY_MIN;
}

int pf_slow_down(struct pf_pool *pool)
{
	if (pool->replaying)
		return 0; /* what the log holds was within the limits once */
	uint64_t dirty = pf_tree_dirty(pool->tree);
	return dirty > DIRTY_MIN && dirty > pf_dirty_limit(pool) / 2 ? pool->throttle(pool) : 0;
}

/* What is dirty or staged has its blocks still to get; its old ones come back only later. */
static uint64_t blocks_to_come(struct pf_pool *pool)
{
	uint64_t staged = atomic_load(&pool->staged_blocks) / STAGED_PER_NODE;
	return (pf_tree_dirty(pool->tree) + pf_tree_frozen(pool->tree) + staged + MARGIN_NODES) * PF_NODE_BLOCKS;
}

static bool has_room(struct pf_pool *pool, enum pf_growth growth)
{
	uint64_t reserve = pf_space_node_reserve(pool->space) / (growth == PF_OVERWRITES ? 2 : 1);
	return pf_space_node_room(pool->space) >= reserve + blocks_to_come(pool);
}

bool pf_staging_presses(struct pf_pool *pool)
{
	/* twice as much as the gate wants: others stage more meanwhile */
	return atomic_load(&pool->staged_blocks) &&
	       pf_space_node_room(pool->space) < pf_space_node_reserve(pool->space) + 2 * blocks_to_come(pool);
}

bool pf_node_gate_is_open(struct pf_pool *pool, enum pf_growth growth)
{
	return pool->replaying || growth == PF_SHRINKS || has_room(pool, growth);
}

int pf_node_gate(struct pf_pool *pool, enum pf_growth growth)
{
	if (pf_node_gate_is_open(pool, growth))
		return 0;
	int err = pool->make_room(pool);
	if (!err && !has_room(pool, growth))
		err = pool->checkpoint(pool);
	if (!err && !has_room(pool, growth))
		err = -ENOSPC;
	return err;
}
