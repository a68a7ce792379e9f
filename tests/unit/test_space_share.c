/* SPDX-License-Identifier: MIT
 *
 * The share that is kept for nodes (space.h I7), and promises.
 */
#include "space_fill.h"

#define MIB (UINT64_C(1) << 20)

START_TEST(share)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 200 * MIB, 100 * MIB };
	rig_new(&rig, 5, 2, sizes, 2);
	struct pf_space_stats s = rig_stats(&rig);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 280, 4, &run), 0);
	ck_assert_uint_eq(run.nr, 280);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, s.avail_blocks - 280); /* in flight */
	pf_space_commit(rig.space, run, PF_USE_NODE);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, s.avail_blocks); /* nodes live inside the share */
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 100), s.avail_blocks);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, 0);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, 1), -ENOSPC);
	uint64_t left = 0;
	for (unsigned i = 0; i < 2; i++)
		left += rig.space->members[i].free_blocks;
	ck_assert_uint_eq(left, s.share_blocks - 280);
	uint64_t half = 0;
	for (unsigned i = 0; i < 2; i++)
		half += rig.space->members[i].free_blocks - rig.space->members[i].free_blocks / 2;
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA_PRIVILEGED, half + 1), -ENOSPC);
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA_PRIVILEGED, 7), half);
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_NODE, PF_NODE_BLOCKS), left - half);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, 0);
	/* freed nodes go back into the share, not to data */
	pf_space_free(rig.space, run, PF_USE_NODE);
	rig_checkpoint(&rig);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, 280);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, 0);
	rig_free(&rig);
}
END_TEST

START_TEST(promises)
{
	struct rig rig;
	struct pf_run run, nodes;
	const uint64_t sizes[] = { 200 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 400, 4, &nodes), 0);
	pf_space_commit(rig.space, nodes, PF_USE_NODE);
	uint64_t avail = rig_stats(&rig).avail_blocks;
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, avail + 1), -ENOSPC);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, 1000), 0);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, avail - 1000);
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 333), avail - 1000);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), -ENOSPC);
	/* a checkpoint comes between: new nodes, the old ones wait for their release. The promise holds. */
	struct pf_run other;
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 400, 4, &other), 0);
	pf_space_commit(rig.space, other, PF_USE_NODE);
	pf_space_free(rig.space, nodes, PF_USE_NODE);
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 900, .min_nr = 1, .member = -1, .reserved = true };
	for (uint64_t left = 900; left; left -= run.nr) {
		req.nr = left;
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
	}
	ck_assert_uint_eq(rig_stats(&rig).reserved_blocks, 100);
	pf_space_unreserve(rig.space, 60);
	rig_checkpoint(&rig);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, 60);
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 333), 60);
	/* overwrites */
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA_PRIVILEGED, 100), 0);
	req.use = PF_USE_DATA_PRIVILEGED;
	req.nr = 140;
	ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
	ck_assert_uint_eq(run.nr, 140);
	ck_assert_uint_eq(rig_stats(&rig).reserved_blocks, 0);
	rig_free(&rig);
}
END_TEST

/* -- quads ------------------------------------------------------------------------------------------------------- */

static uint64_t nr_whole(struct rig *rig)
{
	uint64_t nr = 0;
	for (unsigned i = 0; i < rig->super.nr_meta; i++)
		nr += rig->space->members[i].free_quads;
	return nr;
}

/* A pool full of data, of which every @step-th block is freed: all of that is data's, and nodes get what is kept for
 * them, in any order. */
static void fill_and_punch(struct rig *rig, unsigned nr_meta, uint64_t step, uint64_t *punched)
{
	const uint64_t sizes[] = { 80 * MIB, 70 * MIB };
	rig_new(rig, 5, 2, sizes, nr_meta);
	uint64_t avail = rig_stats(rig).avail_blocks;
	ck_assert_uint_eq(rig_take_all(rig, PF_USE_DATA, 100), avail);
	ck_assert_uint_eq(nr_whole(rig) * PF_NODE_BLOCKS, rig_stats(rig).share_blocks);
	*punched = 0;
	for (unsigned i = 0; i < 2; i++) {
		const struct pf_space_member *m = &rig->space->members[i];
		for (uint64_t b = m->geo.data_start; b < m->geo.data_end; b += step) {
			const uint64_t *used = m->groups[b >> PF_GROUP_SHIFT].maps->used;
			uint32_t bit = b % PF_GROUP_BLOCKS;
			if (!(used[bit / 64] >> bit % 64 & 1))
				continue;
			pf_space_free(rig->space, (struct pf_run){ pf_addr_make(i, b), 1 }, PF_USE_DATA);
			++*punched;
		}
	}
	rig_checkpoint(rig);
	rig_reopen(rig);
}

START_TEST(punched)
{
	struct rig rig;
	struct pf_run run;
	uint64_t nr, share, nodes = 0;
	fill_and_punch(&rig, 1 + (unsigned)_i % 2, 2 + (uint64_t)_i / 2, &nr);
	share = rig_stats(&rig).share_blocks;
	ck_assert_uint_ge(nr, 5000);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, nr + share);
	ck_assert_uint_eq(rig_stats(&rig).avail_blocks, nr);
	/* nodes have their own, and take nothing of what data may have */
	while (nodes < share / 2) {
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 16, PF_NODE_BLOCKS, &run), 0);
		pf_space_commit(rig.space, run, PF_USE_NODE);
		nodes += run.nr;
		ck_assert_uint_eq(rig_stats(&rig).avail_blocks, nr);
	}
	ck_assert_uint_eq(pf_space_node_room(rig.space), share - nodes);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, nr + 1), -ENOSPC);
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, nr / 2), 0);
	ck_assert_uint_eq(pf_space_node_room(rig.space), share - nodes);
	/* data has the pieces, to the last one: what was promised, and what was not */
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = nr / 2, .min_nr = 1, .member = -1, .reserved = true };
	for (; req.nr; req.nr -= run.nr) {
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
		ck_assert_uint_eq(run.nr, 1);
	}
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 100), nr - nr / 2);
	ck_assert_uint_eq(nr_whole(&rig) * PF_NODE_BLOCKS, share - nodes);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, share - nodes);
	/* and nodes the rest */
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_NODE, 16), share - nodes);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, 0);
	rig_free(&rig);
}
END_TEST

/* With more whole quads than are kept, a long run of data is cut where it would break one too many, and the rest is
 * found in broken ones. */
START_TEST(cut)
{
	struct rig rig;
	struct pf_run run;
	uint64_t nr;
	fill_and_punch(&rig, 2, 3, &nr);
	const struct pf_space_member *m = &rig.space->members[0];
	uint64_t kept = m->free_quads;
	/* more whole quads, one free run of blocks that is not aligned */
	uint64_t from = (m->geo.data_start + 3) / 4 * 4 + 402;
	struct pf_run gone = { pf_addr_make(0, from), 103 };
	pf_space_free(rig.space, gone, PF_USE_DATA);
	rig_checkpoint(&rig);
	uint64_t avail = rig_stats(&rig).avail_blocks, more = m->free_quads - kept;
	ck_assert_uint_ge(more, 103 / 4 - 1);
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 1000, .min_nr = 1, .goal = gone.addr, .member = 0 };
	uint64_t nr_long = 0, taken = 0;
	pf_addr pieces[2] = { 0 }; /* on the member; the first and the last that were taken */
	while (!pf_space_alloc(rig.space, &req, &run)) {
		pf_space_commit(rig.space, run, PF_USE_DATA);
		taken += run.nr;
		nr_long += run.nr > 6;
		if (pf_addr_member(run.addr) == 0)
			pieces[pieces[0] ? 1 : 0] = run.addr;
		ck_assert_uint_ge(m->free_quads, kept);
	}
	ck_assert_uint_eq(taken, avail);
	ck_assert_uint_le(nr_long, 4);
	ck_assert_uint_eq(m->free_quads, kept);
	/* overwrites may have half of the rest, promised or not; they break no quad while there are pieces */
	for (int i = 0; i < 2; i++)
		pf_space_free(rig.space, (struct pf_run){ pieces[i], 1 }, PF_USE_DATA);
	rig_checkpoint(&rig);
	req.use = PF_USE_DATA_PRIVILEGED;
	req.nr = 2;
	req.goal = 0;
	req.only_member = true;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
		pf_space_commit(rig.space, run, PF_USE_DATA);
		ck_assert_uint_eq(run.nr, 1);
		ck_assert_uint_eq(m->free_quads, kept);
	}
	req.nr = 100000;
	taken = 0;
	while (!pf_space_alloc(rig.space, &req, &run))
		taken += run.nr;
	ck_assert_uint_eq(m->free_quads, kept / 2);
	ck_assert_uint_eq(taken, (kept - kept / 2) * PF_NODE_BLOCKS);
	rig_free(&rig);
}
END_TEST

/* What is promised may go into the share in the end, and node_room has said so before. */
START_TEST(promises_and_nodes)
{
	struct rig rig;
	struct pf_run run;
	uint64_t nr;
	fill_and_punch(&rig, 2, 2, &nr);
	uint64_t whole = nr_whole(&rig), reserved = nr;
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA, nr), 0);
	ck_assert_uint_eq(pf_space_node_room(rig.space), whole * PF_NODE_BLOCKS);
	/* overwrites promised beyond */
	ck_assert_int_eq(pf_space_reserve(rig.space, PF_USE_DATA_PRIVILEGED, 100), 0);
	reserved += 100;
	uint64_t room = pf_space_node_room(rig.space);
	ck_assert_uint_eq(room, whole * PF_NODE_BLOCKS - 100);
	struct pf_alloc_req req = { .use = PF_USE_DATA, .min_nr = 1, .member = -1, .reserved = true };
	for (; reserved; reserved -= run.nr) {
		req.nr = reserved < 64 ? reserved : 64;
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
		ck_assert_uint_ge(pf_space_node_room(rig.space), room / PF_NODE_BLOCKS * PF_NODE_BLOCKS);
	}
	ck_assert_uint_eq(nr_whole(&rig), whole - 100 / PF_NODE_BLOCKS);
	rig_free(&rig);
}
END_TEST

/* -- nodes per member -------------------------------------------------------------------------------------------- */

/* What the superblock says of nodes is spread over the metadata members, and their sum stays exact. */
START_TEST(node_attribution)
{
	struct rig rig;
	const uint64_t sizes[] = { 100 * MIB, 100 * MIB, 100 * MIB };
	rig_new(&rig, 5, 3, sizes, 2);
	uint64_t share = rig.super.members[0].share_blocks;
	pf_space_set_node_blocks(rig.space, share + 40);
	ck_assert_uint_eq(rig.space->members[0].node_blocks, share);
	ck_assert_uint_eq(rig.space->members[1].node_blocks, 40);
	pf_space_sub_nodes(rig.space, 1, 100);
	ck_assert_uint_eq(rig_stats(&rig).node_blocks, share - 60);
	pf_space_sub_nodes(rig.space, 2, 10);
	ck_assert_uint_eq(rig_stats(&rig).node_blocks, share - 70);
	pf_space_set_node_blocks(rig.space, 3 * share);
	ck_assert_uint_eq(rig_stats(&rig).node_blocks, 3 * share);
	rig_free(&rig);
}
END_TEST

/* Small files: many nodes for little data. Data that likes a metadata member leaves it while the others have room, and what nodes
 * may have there stays in proportion; then it goes back, and takes all that it may. */
START_TEST(tight)
{
	struct rig rig;
	struct pf_run run, nodes;
	const uint64_t sizes[] = { 100 * MIB, 100 * MIB, 200 * MIB };
	rig_new(&rig, 6, 3, sizes, 2);
	for (unsigned i = 0; i < 2; i++) {
		struct pf_alloc_req req = { .use = PF_USE_NODE, .nr = 1200, .min_nr = 4, .member = (int)i, .only_member = true };
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &nodes), 0);
		ck_assert_uint_eq(nodes.nr, 1200);
		pf_space_commit(rig.space, nodes, PF_USE_NODE);
	}
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 100, .min_nr = 1, .member = 0 };
	uint64_t avail = rig_stats(&rig).avail_blocks, taken = 0, on_first = 0;
	bool others = false;
	while (pf_space_alloc(rig.space, &req, &run) == 0) {
		taken += run.nr;
		if (pf_addr_member(run.addr) != 0 && !others) {
			/* the first time elsewhere: member 0 has room, for nodes */
			others = true;
			on_first = rig.space->members[0].free_blocks;
			ck_assert_uint_gt(on_first, 2 * rig.super.members[0].share_blocks);
		}
		if (pf_space_member_room(&rig.space->members[2], PF_USE_DATA) > 200)
			ck_assert_uint_ge(rig.space->members[0].free_blocks,
					  pf_space_kept_quads(&rig.space->members[0], PF_USE_DATA) * PF_NODE_BLOCKS);
	}
	ck_assert(others);
	ck_assert_uint_eq(taken, avail);
	ck_assert_uint_lt(rig.space->members[0].free_blocks, on_first);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space_share");
	TCase *tc = tcase_create("share");
	tcase_add_test(tc, share);
	tcase_add_test(tc, promises);
	tcase_add_loop_test(tc, punched, 0, 6);
	tcase_add_test(tc, cut);
	tcase_add_test(tc, promises_and_nodes);
	tcase_add_test(tc, node_attribution);
	tcase_add_test(tc, tight);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
