/* SPDX-License-Identifier: MIT
 *
 * The rules of space.h one by one; I7 is in test_space_share.c. The random counterpart is test_space_model.c.
 */
#include "space_fill.h"

#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t map_off(struct rig *rig, unsigned member, uint64_t group, unsigned slot)
{
	return (rig->set.members[member].geo.maps_block + 2 * group + slot) * PF_BLOCK_SIZE;
}

/* -- bitmaps ----------------------------------------------------------------------------------------------------- */

static uint32_t slow_find(const bool *used, uint32_t from, uint32_t end, uint32_t want, uint32_t *start)
{
	uint32_t best = 0;
	*start = from;
	for (uint32_t a = from; a < end; a++) {
		uint32_t b = a;
		while (b < end && !used[b])
			b++;
		if (b - a > best) {
			best = b - a;
			*start = a;
		}
		if (best >= want)
			return best;
		if (b > a)
			a = b - 1;
	}
	return best;
}

static bool slow_whole(const bool *used, uint32_t block)
{
	const bool *quad = used + block / 4 * 4;
	return !quad[0] && !quad[1] && !quad[2] && !quad[3];
}

/* The clear run that begins at or behind @from, in which at most @quads whole quads may be broken. */
static void compare_fit(const uint64_t *words, const bool *used, uint32_t from, uint32_t quads)
{
	uint32_t nr = 0, fit = 0;
	while (from < PF_GROUP_BLOCKS && used[from])
		from++;
	while (from + nr < PF_GROUP_BLOCKS && !used[from + nr])
		nr++;
	for (; fit < nr; fit++) {
		uint32_t broken = 0; /* by the first fit + 1 blocks */
		for (uint32_t q = from / 4; q <= (from + fit) / 4; q++)
			broken += slow_whole(used, 4 * q);
		if (broken > quads)
			break;
	}
	ck_assert_uint_eq(pf_bits_fit_quads(words, from, nr, quads), fit);
}

static void compare_quads(const uint64_t *words, const bool *used, uint32_t from, uint32_t nr)
{
	uint64_t whole[PF_MAP_WORDS], broken[PF_MAP_WORDS];
	uint32_t quads = 0, wrong = 0;
	for (uint32_t q = from / 4; nr && q <= (from + nr - 1) / 4; q++)
		quads += slow_whole(used, 4 * q);
	if (nr)
		ck_assert_uint_eq(pf_bits_count_quads(words, from, nr), quads);
	pf_bits_keep_whole(words, whole);
	pf_bits_keep_broken(words, broken);
	for (uint32_t b = 0; b < PF_GROUP_BLOCKS; b++) {
		wrong += (whole[b / 64] >> b % 64 & 1) != !slow_whole(used, b);
		wrong += (broken[b / 64] >> b % 64 & 1) != (used[b] || slow_whole(used, b));
	}
	ck_assert_uint_eq(wrong, 0);
}

START_TEST(bits)
{
	static bool used[PF_GROUP_BLOCKS];
	uint64_t words[PF_MAP_WORDS] = { 0 };
	uint8_t bytes[PF_GROUP_BLOCKS / 8];
	srand(1);
	for (int round = 0; round < 2000; round++) {
		uint32_t from = (uint32_t)rand() % PF_GROUP_BLOCKS, changed = 0;
		uint32_t nr = (uint32_t)rand() % (round % 4 ? 200 : PF_GROUP_BLOCKS);
		nr = nr < PF_GROUP_BLOCKS - from ? nr : PF_GROUP_BLOCKS - from;
		bool set = rand() % 2;
		for (uint32_t b = from; b < from + nr; b++) {
			changed += used[b] != set;
			used[b] = set;
		}
		ck_assert_uint_eq((set ? pf_bits_set : pf_bits_clear)(words, from, nr), changed);
		uint32_t a = (uint32_t)rand() % PF_GROUP_BLOCKS, end = a + (uint32_t)rand() % (PF_GROUP_BLOCKS - a + 1);
		uint32_t want = 1 + (uint32_t)rand() % 500, s1, s2;
		ck_assert_uint_eq(pf_bits_find(words, a, end, want, &s1), slow_find(used, a, end, want, &s2));
		ck_assert_uint_eq(s1, s2);
		if (round % 16 == 0) {
			compare_quads(words, used, from, nr < 300 ? nr : 300);
			compare_fit(words, used, from, want % 5);
		}
	}
	uint32_t nr_clear = 0;
	pf_bits_pack(words, bytes);
	for (uint32_t b = 0; b < PF_GROUP_BLOCKS; b++) {
		ck_assert(rig_bit(bytes, b) == used[b]);
		nr_clear += !used[b];
	}
	ck_assert_uint_eq(pf_bits_count_clear(words), nr_clear);
	uint64_t back[PF_MAP_WORDS];
	pf_bits_unpack(bytes, back);
	ck_assert_mem_eq(back, words, sizeof(words));
}
END_TEST

/* -- a fresh pool ------------------------------------------------------------------------------------------------ */

START_TEST(fresh)
{
	struct rig rig;
	const uint64_t sizes[] = { 300 * MIB + 5 * 4096, 70 * MIB };
	uint8_t map[PF_GROUP_BLOCKS / 8];
	rig_new(&rig, 5, 2, sizes, 1);
	for (int i = 0; i < 2; i++) {
		struct pf_space_stats s = rig_stats(&rig);
		ck_assert_uint_eq(s.free_blocks, s.data_area_blocks);
		ck_assert_uint_eq(s.share_blocks, rig.super.members[0].share_blocks);
		ck_assert_uint_eq(s.avail_blocks, s.data_area_blocks - s.share_blocks);
		ck_assert_uint_eq(s.pending_blocks + s.reserved_blocks + s.node_blocks + s.dropped_blocks, 0);
		rig_reopen(&rig);
	}
	for (unsigned i = 0; i < 2; i++) {
		const struct pf_geometry *geo = &rig.set.members[i].geo;
		const struct pf_space_member *m = &rig.space->members[i];
		uint64_t marked = 0, zeros = 0;
		for (uint64_t g = 0; g < geo->nr_groups; g++) {
			uint8_t block[PF_BLOCK_SIZE], none[PF_BLOCK_SIZE] = { 0 };
			for (unsigned slot = 0; slot < 2; slot++) { /* I6 */
				simdisk_peek(simworld_disk(rig.world, i), map_off(&rig, i, g, slot), block,
					     sizeof(block));
				zeros += memcmp(block, none, sizeof(block)) == 0;
			}
			ck_assert_int_eq(pf_space_read_map(rig.space, i, g, map), 0);
			uint64_t wrong = 0;
			for (uint64_t b = g << PF_GROUP_SHIFT; b < (g + 1) << PF_GROUP_SHIFT; b++)
				wrong += rig_bit(map, b) != (b < geo->data_start || b >= geo->data_end);
			ck_assert_uint_eq(wrong, 0);
			if (m->groups[g].flags & PF_GROUP_META)
				marked += pf_group_capacity(geo, g);
		}
		ck_assert_uint_eq(zeros, 2 * geo->nr_groups);
		ck_assert_uint_ge(marked, m->share_blocks);
		ck_assert(i == 0 || marked == 0);
	}
	rig_free(&rig);
}
END_TEST

/* Nodes and data keep apart while there is room, and spill when there is none. */
START_TEST(kinds)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 300 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	struct pf_space_member *m = &rig.space->members[0];
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 4, 4, &run), 0);
	ck_assert(m->groups[pf_addr_block(run.addr) >> PF_GROUP_SHIFT].flags & PF_GROUP_META);
	uint64_t outside = 0, inside = 0, avail = rig_stats(&rig).avail_blocks;
	while (!rig_alloc(&rig, PF_USE_DATA, 256, 1, &run)) {
		bool meta = m->groups[pf_addr_block(run.addr) >> PF_GROUP_SHIFT].flags & PF_GROUP_META;
		ck_assert(meta || inside == 0);
		*(meta ? &inside : &outside) += run.nr;
	}
	ck_assert_uint_eq(inside + outside, avail);
	ck_assert_uint_gt(inside, 0);
	rig_free(&rig);
}
END_TEST

/* -- choice of the run ------------------------------------------------------------------------------------------- */

START_TEST(goal)
{
	struct rig rig;
	struct pf_run a, b, c;
	const uint64_t sizes[] = { 300 * MIB, 300 * MIB };
	rig_new(&rig, 5, 2, sizes, 1);
	/* so much that the pieces do not end with the group but leave 6 blocks */
	uint64_t total = (PF_GROUP_BLOCKS - rig.set.members[1].geo.data_start % PF_GROUP_BLOCKS - 6) % 256, breaks = 0;
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, total, 1, &a), 0);
	ck_assert_uint_eq(a.addr, pf_addr_make(1, rig.set.members[1].geo.data_start));
	ck_assert_uint_eq(a.nr, total);
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 256, .min_nr = 1, .member = -1, .goal = a.addr + a.nr };
	while (total < 40000) { /* over group borders, one behind the other */
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &b), 0);
		breaks += b.addr != req.goal;
		total += b.nr;
		req.goal = b.addr + b.nr;
	}
	ck_assert_uint_eq(breaks, 0);
	/* taken: near it, in the same group */
	req.goal = a.addr;
	ck_assert_int_eq(pf_space_alloc(rig.space, &req, &c), 0);
	ck_assert_uint_eq(pf_addr_member(c.addr), pf_addr_member(a.addr));
	/* a preferred member overrules the goal of another one */
	req.member = !pf_addr_member(a.addr);
	ck_assert_int_eq(pf_space_alloc(rig.space, &req, &c), 0);
	ck_assert_int_eq(pf_addr_member(c.addr), req.member);
	/* without a goal, what is allocated one after the other lies one behind the other */
	req.goal = 0;
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(pf_space_alloc(rig.space, &req, &b), 0);
		ck_assert(i == 0 || b.addr == c.addr + c.nr);
		c = b;
	}
	rig_free(&rig);
}
END_TEST

START_TEST(member_choice)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 100 * MIB, 400 * MIB, 200 * MIB };
	uint64_t taken[3] = { 0 };
	rig_new(&rig, 5, 3, sizes, 1);
	uint64_t avail = rig_stats(&rig).avail_blocks;
	for (uint64_t sum = 0; sum < avail / 2; sum += run.nr) {
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 64, 1, &run), 0);
		taken[pf_addr_member(run.addr)] += run.nr;
	}
	for (unsigned i = 0; i < 3; i++) { /* all about equally full */
		double room = (double)pf_space_member_room(&rig.space->members[i], PF_USE_DATA);
		ck_assert_double_eq_tol(room / (double)rig.space->members[i].area_blocks, 0.49, 0.03);
	}
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 1000, .min_nr = 1, .member = 2, .only_member = true };
	while (!pf_space_alloc(rig.space, &req, &run))
		ck_assert_uint_eq(pf_addr_member(run.addr), 2);
	req.only_member = false;
	ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
	ck_assert_uint_ne(pf_addr_member(run.addr), 2);
	rig_free(&rig);
}
END_TEST

/* Every second block free: a data block is found at once, a node not, and saying so is cheap the second time. */
START_TEST(fragmented)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 1024 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig.super.members[0].share_blocks = 0;
	rig_reopen(&rig);
	uint64_t first = rig.set.members[0].geo.data_start, end = rig.set.members[0].geo.data_end;
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 16384), end - first);
	for (uint64_t b = first; b < end; b += 2)
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, b), 1 }, PF_USE_DATA);
	rig_checkpoint(&rig);
	rig_reopen(&rig);
	uint64_t nr_free = (end - first + 1) / 2;
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, nr_free);
	for (int i = 0; i < 10000; i++)
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 4, 4, &run), -ENOSPC);
	/* one node's worth in the last of many groups is found, whatever it takes; then joined runs are known as what
	 * they are */
	rig_reopen(&rig);
	uint64_t last = (end - 12) & ~UINT64_C(3);
	for (uint64_t b = last; b < last + 4; b++) {
		if ((b - first) % 2)
			pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, b), 1 }, PF_USE_DATA);
	}
	rig_checkpoint(&rig);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 8, 4, &run), 0);
	ck_assert_uint_eq(run.nr, 4);
	ck_assert_uint_eq(pf_addr_block(run.addr), last);
	pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, first + 20001), 1 }, PF_USE_DATA);
	rig_checkpoint(&rig);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 3, 3, &run), 0);
	ck_assert_uint_eq(pf_addr_block(run.addr), first + 20000);
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 256), nr_free + 2 - 4 + 1 - 3);
	rig_free(&rig);
}
END_TEST

/* A member of more than one table block: whole full table blocks are passed over, nothing else is. */
START_TEST(many_tables)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 20000 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig.super.members[0].share_blocks = 0;
	rig_reopen(&rig);
	const struct pf_geometry *geo = &rig.set.members[0].geo;
	ck_assert_uint_eq(geo->nr_tables, 3);
	ck_assert_uint_eq(rig_take_all(&rig, PF_USE_DATA, 16384), geo->data_end - geo->data_start);
	for (uint64_t g = 1; g < geo->nr_groups; g += g < 4 ? 1 : 61) {
		uint64_t addr = pf_addr_make(0, (g << PF_GROUP_SHIFT) + 77);
		if (pf_addr_block(addr) < geo->data_start)
			continue;
		pf_space_free(rig.space, (struct pf_run){ addr, 1 }, PF_USE_DATA);
		rig_checkpoint(&rig);
		rig.space->members[0].cursor[0] = geo->data_end - (g % 3 << PF_GROUP_SHIFT);
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), 0);
		ck_assert_uint_eq(run.addr, addr);
	}
	rig_free(&rig);
}
END_TEST

/* The longest of what there is, not the first crumb. */
START_TEST(longest)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig.super.members[0].share_blocks = 0;
	rig_reopen(&rig);
	rig_take_all(&rig, PF_USE_DATA, 16384);
	uint64_t first = rig.set.members[0].geo.data_start;
	for (uint64_t b = first; b < first + 4000; b += 20)
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, b), b == first + 2000 ? 19 : 3 },
			      PF_USE_DATA);
	rig_checkpoint(&rig);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 256, 1, &run), 0);
	ck_assert_uint_eq(run.nr, 19);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 256, 4, &run), -ENOSPC);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 3, 3, &run), 0);
	rig_free(&rig);
}
END_TEST

START_TEST(nodes_come_whole)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig.super.members[0].share_blocks = 0;
	rig_reopen(&rig);
	rig_take_all(&rig, PF_USE_DATA, 16384);
	uint64_t first = rig.set.members[0].geo.data_start, whole = 0, nr = 0;
	for (uint64_t i = 0; i < 40; i++) { /* runs of 4 to 43 blocks, beginning anywhere */
		uint64_t from = first + 61 * i, end = from + 4 + i;
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, from), end - from }, PF_USE_DATA);
		whole += end / PF_NODE_BLOCKS - (from + PF_NODE_BLOCKS - 1) / PF_NODE_BLOCKS;
	}
	rig_checkpoint(&rig);
	ck_assert_uint_eq(pf_space_node_room(rig.space), whole * PF_NODE_BLOCKS);
	for (uint64_t i = 0;; i++) {
		struct pf_alloc_req req = { .use = PF_USE_NODE, .nr = 64, .min_nr = PF_NODE_BLOCKS, .member = -1 };
		req.goal = i % 2 ? pf_addr_make(0, first + 61 * i + i % 4) : 0;
		if (pf_space_alloc(rig.space, &req, &run))
			break;
		ck_assert_uint_eq(run.nr % PF_NODE_BLOCKS, 0);
		ck_assert_uint_eq(run.addr % PF_NODE_BLOCKS, 0);
		nr += run.nr;
	}
	ck_assert_uint_eq(nr, whole * PF_NODE_BLOCKS);
	rig_free(&rig);
}
END_TEST

/* -- freed space ------------------------------------------------------------------------------------------------- */

/* A pool full of data, of which @run is freed in the open txg. */
static void fill_and_free(struct rig *rig, struct pf_run run)
{
	rig_take_all(rig, PF_USE_DATA, 16384);
	rig_checkpoint(rig);
	pf_space_free(rig->space, run, PF_USE_DATA);
}

START_TEST(released_when_durable)
{
	struct rig rig;
	struct pf_run run;
	struct pf_super super;
	uint32_t changed;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 4, 1, sizes, 1);
	const struct pf_run freed = { pf_addr_make(0, rig.set.members[0].geo.data_end - 10), 10 };
	fill_and_free(&rig, freed);
	super = rig.super;
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 10, 1, &run), -ENOSPC);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 10);
	pf_space_freeze(rig.space);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 10, 1, &run), -ENOSPC);
	ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
	ck_assert_uint_eq(changed, 1);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 10, 1, &run), -ENOSPC);
	rig_durable(&rig, &super);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 10, 1, &run), 0);
	ck_assert_uint_eq(run.addr, freed.addr);
	ck_assert_uint_eq(run.nr, 10);
	ck_assert_uint_eq(rig_checkpoint(&rig), 0); /* nothing committed, nothing written */
	rig_free(&rig);
}
END_TEST

START_TEST(readers_hold)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 70 * MIB, 70 * MIB };
	rig_new(&rig, 4, 2, sizes, 1);
	rig_take_all(&rig, PF_USE_DATA, 16384);
	rig_checkpoint(&rig);
	uint64_t block = rig.set.members[0].geo.data_end - 20;
	unsigned hung = pf_space_reader_enter(rig.space, 0);
	unsigned brief = pf_space_reader_enter(rig.space, 1);
	for (int i = 0; i < 5; i++) { /* a hung reader on member 0: nothing of it comes back, all of member 1 does */
		unsigned t = pf_space_reader_enter(rig.space, 0);
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, block + (uint64_t)i), 1 }, PF_USE_DATA);
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(1, block + (uint64_t)i), 1 }, PF_USE_DATA);
		rig_checkpoint(&rig);
		if (i == 0) {
			ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), -ENOSPC);
			pf_space_reader_exit(rig.space, 1, brief);
		}
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), 0);
		ck_assert_uint_eq(run.addr, pf_addr_make(1, block + (uint64_t)i));
		pf_space_reader_exit(rig.space, 0, t);
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), -ENOSPC);
		uint64_t nr_free, nr_pending;
		pf_space_member_stats(rig.space, 0, &nr_free, &nr_pending);
		ck_assert_uint_eq(nr_pending, (uint64_t)i + 1);
	}
	pf_space_reader_exit(rig.space, 0, hung);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 0);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 5, 5, &run), 0);
	rig_free(&rig);
}
END_TEST

/* Who entered after the freeze looked into a tree that does not name the blocks any more: nobody waits for him. */
START_TEST(readers_after_freeze)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 4, 1, sizes, 1);
	const struct pf_run freed = { pf_addr_make(0, rig.set.members[0].geo.data_end - 10), 10 };
	fill_and_free(&rig, freed);
	struct pf_super super = rig.super;
	uint32_t changed;
	pf_space_freeze(rig.space);
	unsigned later = pf_space_reader_enter(rig.space, 0);
	ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
	rig_durable(&rig, &super);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 10, 10, &run), 0);
	pf_space_reader_exit(rig.space, 0, later);
	rig_free(&rig);
}
END_TEST

/* Readers that overlap without end do not keep space from coming back, and each one is waited for. */
START_TEST(readers_overlap)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 4, 1, sizes, 1);
	rig_take_all(&rig, PF_USE_DATA, 16384);
	rig_checkpoint(&rig);
	uint64_t block = rig.set.members[0].geo.data_end - 100;
	unsigned reader = pf_space_reader_enter(rig.space, 0);
	for (unsigned i = 0; i < 50; i++) {
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, block + i), 1 }, PF_USE_DATA);
		rig_checkpoint(&rig);
		unsigned next = pf_space_reader_enter(rig.space, 0);
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), -ENOSPC);
		pf_space_reader_exit(rig.space, 0, reader);
		reader = next;
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), 0);
		ck_assert_uint_eq(pf_addr_block(run.addr), block + i);
	}
	rig_free(&rig);
}
END_TEST

struct leaver {
	struct rig *rig;
	unsigned ticket, member;
};

static void *leave(void *arg)
{
	struct leaver *l = arg;
	usleep(20000);
	pf_space_reader_exit(l->rig->space, l->member, l->ticket);
	return NULL;
}

/* Space that only readers hold is worth waiting for, but not for ever. */
START_TEST(readers_awaited)
{
	struct rig rig;
	struct pf_run run;
	pthread_t thread;
	const uint64_t sizes[] = { 70 * MIB, 70 * MIB };
	rig_new(&rig, 4, 2, sizes, 1);
	rig_take_all(&rig, PF_USE_DATA, 16384);
	rig_checkpoint(&rig);
	uint64_t released = pf_space_released(rig.space), block = rig.set.members[1].geo.data_end - 20;
	ck_assert(!pf_space_await_release(rig.space, released)); /* nothing is held */
	struct leaver l = { .rig = &rig, .member = 1, .ticket = pf_space_reader_enter(rig.space, 1) };
	pf_space_free(rig.space, (struct pf_run){ pf_addr_make(1, block), 1 }, PF_USE_DATA);
	rig_checkpoint(&rig);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), -ENOSPC);
	ck_assert(!pf_space_await_release(rig.space, released)); /* it is, and stays so for longer than a second */
	ck_assert_int_eq(pthread_create(&thread, NULL, leave, &l), 0);
	ck_assert(pf_space_await_release(rig.space, released));
	ck_assert(pf_space_await_release(rig.space, released)); /* it has been meanwhile */
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), 0);
	pthread_join(thread, NULL);
	rig_free(&rig);
}
END_TEST

START_TEST(no_reclaim)
{
	struct rig rig;
	struct pf_run data, node;
	uint8_t map[PF_GROUP_BLOCKS / 8];
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 3, 1, sizes, 1);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 50, 1, &data), 0);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 4, 4, &node), 0);
	pf_space_commit(rig.space, data, PF_USE_DATA);
	pf_space_commit(rig.space, node, PF_USE_NODE);
	uint64_t nr_free = rig_stats(&rig).free_blocks;
	pf_space_free(rig.space, data, PF_USE_DATA);
	pf_space_free(rig.space, node, PF_USE_NODE);
	ck_assert_uint_eq(rig_stats(&rig).pending_blocks, 4);
	rig_checkpoint(&rig);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, nr_free + 4);
	rig_reopen(&rig);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, nr_free + 4);
	uint64_t block = pf_addr_block(data.addr);
	ck_assert_int_eq(pf_space_read_map(rig.space, 0, block >> PF_GROUP_SHIFT, map), 0);
	ck_assert(rig_bit(map, block));
	/* what no tree ever named comes back in every version */
	nr_free = rig_stats(&rig).free_blocks;
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 50, 1, &data), 0);
	pf_space_unalloc(rig.space, data);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, nr_free);
	rig_free(&rig);
}
END_TEST

/* A tree that is damaged where no checksum sees it may free anything: nothing outside the data area ever becomes
 * free. */
START_TEST(free_of_nonsense)
{
	struct rig rig;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 4, 1, sizes, 1);
	const struct pf_geometry *geo = &rig.set.members[0].geo;
	const struct pf_run runs[] = {
		{ pf_addr_make(0, 0), 1 },
		{ pf_addr_make(0, geo->data_start - 1), 2 },
		{ pf_addr_make(0, geo->data_end - 1), 2 },
		{ pf_addr_make(0, geo->data_end - 1), UINT64_MAX },
		{ pf_addr_make(0, geo->size_blocks + 100000), 1 },
		{ pf_addr_make(7, geo->data_start), 1 },
	};
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++)
		pf_space_free(rig.space, runs[i], PF_USE_DATA);
	/* and what is free already stays free, once */
	pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, geo->data_start), 100 }, PF_USE_DATA);
	rig_checkpoint(&rig);
	ck_assert_uint_gt(rig_stats(&rig).dropped_blocks, 0);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, geo->data_end - geo->data_start);
	rig_reopen(&rig);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, geo->data_end - geo->data_start);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space");
	TCase *tc = tcase_create("alloc");
	tcase_add_test(tc, bits);
	tcase_add_test(tc, fresh);
	tcase_add_test(tc, kinds);
	tcase_add_test(tc, goal);
	tcase_add_test(tc, member_choice);
	tcase_add_test(tc, fragmented);
	tcase_add_test(tc, many_tables);
	tcase_add_test(tc, longest);
	tcase_add_test(tc, nodes_come_whole);
	suite_add_tcase(suite, tc);
	tc = tcase_create("freed");
	tcase_add_test(tc, released_when_durable);
	tcase_add_test(tc, readers_hold);
	tcase_add_test(tc, readers_after_freeze);
	tcase_add_test(tc, readers_overlap);
	tcase_add_test(tc, readers_awaited);
	tcase_add_test(tc, no_reclaim);
	tcase_add_test(tc, free_of_nonsense);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
