/* SPDX-License-Identifier: MIT */
#include "object/fill.h"

#include "object/data.h"

#define BATCH_BLOCKS 4096u /* unwritten blocks mapped by one transaction */

/* The first hole in [from, to). -ENOENT: none. */
static int next_hole(struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to, uint64_t *start, uint64_t *end)
{
	struct pf_extent e;
	int err = 0;
	while (from < to) {
		err = pf_extent_find(pool, data_id, from, &e);
		if (err && err != -ENOENT)
			return err;
		if (err == -ENOENT || e.start > from) {
			*start = from;
			*end = err == -ENOENT || e.start > to ? to : e.start;
			return 0;
		}
		from = e.start + e.nr;
	}
	return -ENOENT;
}

int pf_fill_count(struct pf_pool *pool, const struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t *nr)
{
	uint64_t start, end;
	int err;
	*nr = 0;
	while (!(err = next_hole(pool, inode->item.data_id, from, to, &start, &end))) {
		*nr += end - start;
		from = end;
	}
	return err == -ENOENT ? 0 : err;
}

/* Maps unwritten blocks into one stretch of a hole, as many as one run gives: *filled, of those promised. */
static int fill_some(struct pf_pool *pool, struct pf_inode *inode, uint64_t start, uint64_t nr, uint64_t *filled)
{
	pf_addr goal;
	int member;
	int err = pf_extent_neighbour(pool, inode->item.data_id, start, &goal, &member);
	if (err)
		return err;
	struct pf_alloc_req req = {
		.use = PF_USE_DATA,
		.nr = nr < BATCH_BLOCKS ? nr : BATCH_BLOCKS,
		.min_nr = 1,
		.goal = goal,
		.member = inode->place.member >= 0 ? inode->place.member : member,
		.reserved = true,
	};
	if (pool->placement == PF_PLACE_STRIPE) {
		uint64_t unit = PF_MAX_EXTENT_BLOCKS - start % PF_MAX_EXTENT_BLOCKS;
		req.nr = req.nr < unit ? req.nr : unit;
		req.member = (int)((start / PF_MAX_EXTENT_BLOCKS + inode->item.data_id) % pool->set->nr);
		req.goal = 0;
	}
	struct pf_run run;
	err = pf_space_alloc(pool->space, &req, &run);
	if (err)
		return err;
	struct pf_piece piece = { .start = start, .nr = (unsigned)run.nr, .flags = PF_EXTENT_UNWRITTEN, .addr = run.addr };
	struct pf_write w = { .data_id = inode->item.data_id, .pieces = &piece, .nr_pieces = 1 };
	struct pf_change change;
	pf_change_init(&change, inode);
	change.write = &w;
	err = pf_data_apply(pool, inode, &change);
	if (err)
		pf_space_unalloc_promised(pool->space, run);
	else
		*filled = run.nr;
	inode->place.member = (int)pf_addr_member(run.addr);
	return err;
}

int pf_fill_holes(struct pf_pool *pool, struct pf_inode *inode, uint64_t from, uint64_t to, uint64_t *promised)
{
	uint64_t start, end;
	int err = 0;
	while (!err && !(err = next_hole(pool, inode->item.data_id, from, to, &start, &end))) {
		uint64_t filled = 0;
		err = pf_slow_down(pool);
		if (!err)
			err = fill_some(pool, inode, start, end - start, &filled);
		*promised -= filled;
		from = start + filled;
	}
	if (err != -ENOENT)
		return err;
	pf_space_unreserve(pool->space, *promised);
	*promised = 0;
	return 0;
}
