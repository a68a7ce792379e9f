/* SPDX-License-Identifier: MIT
 *
 * Two copies of each node: on which members, from the same bytes; all or nothing where one has no room or fails; freed together;
 * and room for nodes counted as the writer uses it.
 */
#include "tree_compare.h"

#define CACHE (1 << 20)

static struct world w;

static void world_six(unsigned version, unsigned nr_members, unsigned nr_meta, const uint64_t *sizes)
{
	w = (struct world){ .rnd = 7920, .cache_bytes = CACHE };
	rig_new(&w.rig, version, nr_members, sizes, nr_meta);
	world_open_tree(&w);
}

static const uint64_t even[3] = { 64 << 20, 64 << 20, 64 << 20 };

static void put_many(unsigned nr, unsigned from)
{
	for (unsigned i = from; i < from + nr; i++)
		MUST(!world_put_one(&w, (struct model_item){ { 1 + i % 3, i * 10 }, 500, i }));
}

static void del_all(void)
{
	while (w.model.nr)
		MUST(!world_del_one(&w, w.model.items[w.model.nr - 1].key));
}

/* -- what lies on the disks --------------------------------------------------------------------------------------- */
struct seen {
	unsigned nr;
	unsigned nr_on[2][3]; /* copies by number and member */
	unsigned nr_single;
};

static void see(struct pf_ptr ptr, unsigned level, struct seen *seen)
{
	static uint8_t other[PF_NODE_SIZE];
	struct pf_node node = { .buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE) };
	struct pf_node_expect expect = { .pool_uuid = w.rig.super.pool_uuid,
					 .generation = ptr.generation,
					 .crc = ptr.crc,
					 .level = level,
					 .upper = PF_KEY_MAX };
	for (unsigned copy = 0; copy < 2 && ptr.addr[copy]; copy++) {
		unsigned member = pf_addr_member(ptr.addr[copy]);
		simdisk_peek(simworld_disk(w.rig.world, member), pf_addr_block(ptr.addr[copy]) * PF_BLOCK_SIZE, node.buf,
			     PF_NODE_SIZE);
		expect.addr = ptr.addr[copy]; /* a reader that comes from either address can tell */
		MUST(!pf_node_validate(node.buf, &expect));
		MUST(pf_get64(pf_node_head(&node)->addr[0]) == ptr.addr[0] && pf_get64(pf_node_head(&node)->addr[1]) == ptr.addr[1]);
		MUST(!copy || !memcmp(node.buf, other, PF_NODE_SIZE));
		memcpy(other, node.buf, PF_NODE_SIZE);
		seen->nr_on[copy][member]++;
		expect.addr = pf_addr_make(member, pf_addr_block(ptr.addr[copy]) + PF_NODE_BLOCKS);
		MUST(pf_node_validate(node.buf, &expect) == -PF_ENODE_PLACE);
	}
	seen->nr++;
	seen->nr_single += !ptr.addr[1];
	for (unsigned i = 0; level && i < pf_node_nr(&node); i++)
		see(pf_node_child(&node, i), level - 1, seen);
	free(node.buf);
}

static struct seen look(void)
{
	struct seen seen = { 0 };
	if (w.rig.super.root.addr[0])
		see(w.rig.super.root, w.rig.super.root_level, &seen);
	return seen;
}

static struct pf_space_stats stats(void)
{
	struct pf_space_stats s;
	pf_space_stats(w.rig.space, &s);
	return s;
}

/* Nothing but what the tree names is in use: no copy has been forgotten or freed twice. */
static void ck_space(unsigned nr_copies)
{
	struct seen seen = look();
	struct pf_space_stats s = stats();
	MUST(s.node_blocks == (uint64_t)seen.nr * nr_copies * PF_NODE_BLOCKS);
	MUST(s.free_blocks + s.pending_blocks + s.node_blocks == s.data_area_blocks);
}

/* -- where they go -------------------------------------------------------------------------------------------------- */
START_TEST(every_node_has_two)
{
	world_six(6, (unsigned)_i, (unsigned)_i, even);
	put_many(600, 0);
	world_checkpoint(&w);
	struct seen seen = look();
	MUST(seen.nr > 20 && !seen.nr_single && seen.nr_on[0][0] == seen.nr && seen.nr_on[1][1] == seen.nr);
	ck_space(2);
	for (unsigned round = 0; round < 5; round++) { /* changed ones move, with both copies */
		put_many(50, round * 100);
		world_checkpoint(&w);
		ck_space(2);
	}
	world_reopen(&w);
	world_compare(&w);
	del_all();
	world_checkpoint(&w);
	world_checkpoint(&w);
	MUST(!stats().node_blocks && stats().free_blocks == stats().data_area_blocks);
	world_free(&w);
}
END_TEST

/* One metadata member, or a version without the feature. */
START_TEST(one_copy_elsewhere)
{
	world_six(_i ? 5 : 6, 2, _i ? 2 : 1, even);
	put_many(600, 0);
	world_checkpoint(&w);
	struct seen seen = look();
	MUST(seen.nr > 20 && seen.nr_single == seen.nr && seen.nr_on[0][0] == seen.nr);
	ck_space(1);
	world_free(&w);
}
END_TEST

/* All that a member can give to nodes, taken; to be given back by unalloc. */
static struct pf_run hogs[4096];
static unsigned nr_hogs;

static void hog(unsigned member, unsigned leave_nodes)
{
	while (pf_space_member_node_room(w.rig.space, member) > leave_nodes * PF_NODE_BLOCKS) {
		uint64_t room = pf_space_member_node_room(w.rig.space, member) - leave_nodes * PF_NODE_BLOCKS;
		struct pf_alloc_req req = { .use = PF_USE_NODE,
					    .nr = room,
					    .min_nr = PF_NODE_BLOCKS,
					    .member = (int)member,
					    .only_member = true };
		MUST(nr_hogs < 4096 && !pf_space_alloc(w.rig.space, &req, &hogs[nr_hogs++]));
	}
}

static void unhog(void)
{
	while (nr_hogs)
		pf_space_unalloc(w.rig.space, hogs[--nr_hogs]);
}

/* The third of three stands by for one that is full. */
START_TEST(the_third_takes_over)
{
	world_six(6, 3, 3, even);
	put_many(600, 0);
	world_checkpoint(&w);
	unsigned full = (unsigned)_i;
	hog(full, 5); /* some go there yet */
	put_many(600, 0);
	world_checkpoint(&w);
	struct seen seen = look();
	MUST(!seen.nr_single && seen.nr_on[0][2] + seen.nr_on[1][2] > seen.nr / 2);
	MUST(seen.nr_on[0][full] + seen.nr_on[1][full] < seen.nr / 2);
	unhog();
	ck_space(2);
	world_reopen(&w);
	world_compare(&w);
	world_free(&w);
}
END_TEST

/* Where the second member has no room nothing is written: no copies are silently single. */
START_TEST(no_room_for_the_second)
{
	world_six(6, 2, 2, even);
	put_many(300, 0);
	world_checkpoint(&w);
	struct pf_super before = w.rig.super;
	put_many(600, 0);
	unsigned full = (unsigned)_i % 2, left = _i < 2 ? 0 : 3;
	hog(full, left);
	MUST(pf_space_node_room(w.rig.space) == left * PF_NODE_BLOCKS);
	uint64_t free_blocks = stats().free_blocks;
	world_freeze(&w);
	for (unsigned try = 0; try < 3; try++) {
		MUST(world_write(&w) == -ENOSPC);
		MUST(stats().free_blocks == free_blocks);
	}
	MUST(!memcmp(&w.rig.super.root, &before.root, sizeof(before.root)) && !look().nr_single);
	unhog();
	MUST(!world_write(&w));
	world_durable(&w);
	MUST(!look().nr_single && look().nr > 20);
	ck_space(2);
	world_compare(&w);
	world_free(&w);
}
END_TEST

/* A write of either copy fails: the node goes elsewhere with both, and nothing of the first attempt stays taken. */
START_TEST(a_failed_copy)
{
	for (unsigned skip = 0; skip < 12; skip++) {
		world_six(6, 2 + (unsigned)_i / 4, 2 + (unsigned)_i / 4, even);
		struct sim_fault fault = { .disk = simworld_disk(w.rig.world, (unsigned)_i % 2),
					   .ops = SIM_WRITE,
					   .skip = skip,
					   .count = 1 + (unsigned)_i % 3,
					   .err = _i & 2 ? -ENOSPC : -EIO };
		put_many(600, 0);
		world_freeze(&w);
		unsigned number = simworld_add_fault(w.rig.world, &fault), nr_tries = 1;
		while (pf_tree_write_frozen(w.tree, &w.super.root, &w.super.root_level))
			MUST(nr_tries++ < 10);
		MUST((nr_tries > 1) == (simworld_fault_hits(w.rig.world, number) > 0));
		MUST(skip > 1 || nr_tries > 1);
		simworld_clear_faults(w.rig.world);
		MUST(!world_write(&w));
		world_durable(&w);
		MUST(!look().nr_single && look().nr > 20);
		ck_space(2);
		world_reopen(&w);
		world_compare(&w);
		world_free(&w);
	}
}
END_TEST

/* -- how many ------------------------------------------------------------------------------------------------------- */
START_TEST(room_is_where_both_have_some)
{
	static const struct {
		uint64_t room[3];
		unsigned nr_meta, nr_copies;
		uint64_t expected;
	} cases[] = {
		{ { 10 }, 1, 1, 10 },
		{ { 10, 20 }, 2, 1, 30 },
		{ { 10, 20 }, 2, 2, 10 },
		{ { 20, 0 }, 2, 2, 0 },
		{ { 10, 10, 10 }, 3, 2, 10 }, /* the third stands by */
		{ { 10, 30, 10 }, 3, 2, 20 },
		{ { 30, 10, 50 }, 3, 2, 30 },
		{ { 0, 30, 10 }, 3, 2, 10 },
		{ { 0, 0, 10 }, 3, 2, 0 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_uint_eq(pf_space_room_for_copies(cases[i].room, cases[i].nr_meta, cases[i].nr_copies),
				  cases[i].expected);
}
END_TEST

/* What node_room promises can be written, to the last node and not one more. */
START_TEST(node_room_is_exact)
{
	static const uint64_t uneven[3][3] = { { 64 << 20, 16 << 20, 0 },
					       { 16 << 20, 64 << 20, 24 << 20 },
					       { 48 << 20, 16 << 20, 16 << 20 } };
	world_six(6, _i ? 3 : 2, _i ? 3 : 2, uneven[_i]);
	for (unsigned i = 0; i < (_i ? 3 : 2); i++)
		hog(i, i == 2 ? 40 : 10 + 15 * i * (unsigned)_i);
	uint64_t room = pf_space_node_room(w.rig.space) / PF_NODE_BLOCKS;
	put_many(1, 0);
	world_freeze(&w);
	MUST(!world_write(&w));
	world_durable(&w);
	MUST(pf_space_node_room(w.rig.space) == (room - 1) * PF_NODE_BLOCKS);
	/* as many items of a third of a leaf as fill the rest, inner nodes included */
	for (unsigned n = 1;; n++) {
		MUST(!world_put_one(&w, (struct model_item){ { 9, n }, 3900, n }));
		if (pf_tree_dirty(w.tree) < room - 1)
			continue;
		world_freeze(&w);
		int err = world_write(&w);
		MUST(pf_tree_frozen(w.tree) == room - 1 ? !err : err == -ENOSPC);
		if (err)
			break;
		MUST(pf_space_node_room(w.rig.space) == 0);
		world_durable(&w);
		MUST(!look().nr_single);
		break;
	}
	world_free(&w);
	nr_hogs = 0;
}
END_TEST

/* After an open only the sum is known: half of it is on each of two. */
START_TEST(nodes_after_an_open)
{
	world_six(6, 2, 2, even);
	put_many(600, 0);
	world_checkpoint(&w);
	uint64_t avail = stats().avail_blocks, room = pf_space_node_room(w.rig.space);
	world_reopen(&w);
	MUST(stats().avail_blocks == avail && pf_space_node_room(w.rig.space) == room);
	MUST(w.rig.space->members[0].node_blocks == w.rig.space->members[1].node_blocks);
	world_free(&w);
}
END_TEST

/* -- writing anew ---------------------------------------------------------------------------------------------------- */
START_TEST(rewriting_one_node)
{
	world_six(5, 2, 2, even);
	put_many(600, 0);
	world_checkpoint(&w);
	struct pf_super old = w.rig.super;
	w.rig.super.features = w.rig.set.super.features = pf_version_features(6);
	pf_space_begin_copies(w.rig.space);
	MUST(old.root_level == 1);
	MUST(!pf_tree_rewrite(w.tree, (struct pf_key){ 2, 50 }, 0) && pf_tree_dirty(w.tree) == 2);
	MUST(!pf_tree_rewrite(w.tree, (struct pf_key){ 2, 50 }, 0) && pf_tree_dirty(w.tree) == 2);
	MUST(!pf_tree_rewrite(w.tree, PF_KEY_MIN, 5) && pf_tree_dirty(w.tree) == 2);
	world_freeze(&w);
	/* while it is being written: a copy of it */
	MUST(!pf_tree_rewrite(w.tree, (struct pf_key){ 2, 50 }, 0) && pf_tree_dirty(w.tree) == 2);
	MUST(!world_write(&w));
	world_durable(&w);
	struct seen seen = look();
	MUST(seen.nr_single == seen.nr - 2);
	world_checkpoint(&w);
	MUST(look().nr_single == seen.nr - 2);
	world_compare(&w);
	/* one by one to the end; a changed node gets its second copy by itself */
	put_many(600, 0);
	world_checkpoint(&w);
	MUST(!look().nr_single);
	ck_space(2);
	world_free(&w);
}
END_TEST

START_TEST(rewriting_what_cannot_be_read)
{
	world_six(6, 2, 2, even);
	put_many(600, 0);
	world_checkpoint(&w);
	world_reopen(&w);
	struct sim_fault fault = { .ops = SIM_READ };
	simworld_add_fault(w.rig.world, &fault);
	MUST(pf_tree_rewrite(w.tree, PF_KEY_MIN, 0) == -EIO && !pf_tree_dirty(w.tree));
	simworld_clear_faults(w.rig.world);
	fault.disk = simworld_disk(w.rig.world, 0);
	simworld_add_fault(w.rig.world, &fault);
	MUST(!pf_tree_rewrite(w.tree, PF_KEY_MIN, 0) && pf_tree_dirty(w.tree) == 2);
	simworld_clear_faults(w.rig.world);
	world_checkpoint(&w);
	world_compare(&w);
	world_free(&w);
}
END_TEST

/* A pool that works sleeps one disk. */
START_TEST(reading_asks_the_first_only)
{
	world_six(6, 2, 2, even);
	put_many(600, 0);
	world_checkpoint(&w);
	world_reopen(&w);
	uint64_t before = simdisk_count(simworld_disk(w.rig.world, 1), SIM_READ);
	world_compare(&w);
	MUST(simdisk_count(simworld_disk(w.rig.world, 1), SIM_READ) == before);
	world_free(&w);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("tree_copies");
	TCase *t = tcase_create("tree_copies");
	tcase_add_loop_test(t, every_node_has_two, 2, 4);
	tcase_add_loop_test(t, one_copy_elsewhere, 0, 2);
	tcase_add_loop_test(t, the_third_takes_over, 0, 2);
	tcase_add_loop_test(t, no_room_for_the_second, 0, 4);
	tcase_add_loop_test(t, a_failed_copy, 0, 8);
	tcase_add_test(t, room_is_where_both_have_some);
	tcase_add_loop_test(t, node_room_is_exact, 0, 3);
	tcase_add_test(t, nodes_after_an_open);
	tcase_add_test(t, rewriting_one_node);
	tcase_add_test(t, rewriting_what_cannot_be_read);
	tcase_add_test(t, reading_asks_the_first_only);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return rig_main(suite());
}
