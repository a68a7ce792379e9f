/* SPDX-License-Identifier: MIT
 *
 * Free space on disk: shadow slots, damage in every structure, rebuilding, hooks that break a rule, very large members.
 */
#include "base/csum.h"
#include "space_util.h"

#include <malloc.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)

static uint64_t map_off(struct rig *rig, unsigned member, uint64_t group, unsigned slot)
{
	return (rig->set.members[member].geo.maps_block + 2 * group + slot) * PF_BLOCK_SIZE;
}

static struct pf_run take_data(struct rig *rig, int member, uint64_t nr)
{
	struct pf_run run;
	struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = nr, .min_nr = nr, .member = member };
	ck_assert_int_eq(pf_space_alloc(rig->space, &req, &run), 0);
	pf_space_commit(rig->space, run, PF_USE_DATA);
	return run;
}

/* -- shadow slots ------------------------------------------------------------------------------------------------ */

/* Digest of everything that the committed superblock names on a member: root, table blocks, maps. */
static uint64_t committed_digest(struct rig *rig, const struct rig *names, unsigned member)
{
	const struct pf_space_member *m = &names->space->members[member];
	struct simdisk *disk = simworld_disk(rig->world, member);
	uint8_t block[PF_BLOCK_SIZE];
	uint64_t digest = 0;
	simdisk_peek(disk, (m->geo.root_block + m->root_slot * m->geo.root_blocks) * PF_BLOCK_SIZE, block,
		     sizeof(block));
	digest = digest * 31 + pf_crc64(block, sizeof(block));
	for (uint32_t t = 0; t < m->geo.nr_tables; t++) {
		simdisk_peek(disk, (m->geo.tables_block + 2 * t + m->tables[t].slot) * PF_BLOCK_SIZE, block,
			     sizeof(block));
		digest = digest * 31 + pf_crc64(block, sizeof(block));
	}
	for (uint32_t g = 0; g < m->geo.nr_groups; g++) {
		simdisk_peek(disk, map_off(rig, member, g, m->groups[g].slot), block, sizeof(block));
		digest = digest * 31 + pf_crc64(block, sizeof(block));
	}
	return digest;
}

static bool overwrites_committed(uint64_t break_rules)
{
	struct rig rig;
	bool overwritten = false;
	const uint64_t sizes[] = { 200 * MIB, 16 * MIB };
	rig_new(&rig, 5, 2, sizes, 1);
	rig.break_rules = break_rules;
	rig_reopen(&rig);
	for (int i = 0; i < 20; i++) {
		struct pf_super super = rig.super;
		uint32_t changed;
		take_data(&rig, 0, 10);
		if (i % 3 == 0)
			take_data(&rig, 1, 3);
		uint64_t before[2] = { committed_digest(&rig, &rig, 0), committed_digest(&rig, &rig, 1) };
		pf_space_freeze(rig.space);
		for (int attempt = 0; attempt < 1 + i % 3; attempt++) {
			ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
			ck_assert_uint_eq(changed, i % 3 ? 1 : 3);
			for (unsigned k = 0; k < 2; k++)
				overwritten = overwritten || committed_digest(&rig, &rig, k) != before[k];
		}
		rig_durable(&rig, &super);
		rig_reopen(&rig);
	}
	rig_free(&rig);
	return overwritten;
}

START_TEST(slots)
{
	ck_assert(!overwrites_committed(0));
	ck_assert(overwrites_committed(PF_BREAK_MAP_IN_PLACE));
}
END_TEST

/* Only what changed is written: one map, its table block, the root; and only on the member where it changed. */
START_TEST(writes_little)
{
	struct rig rig;
	const uint64_t sizes[] = { 200 * MIB, 200 * MIB };
	rig_new(&rig, 5, 2, sizes, 1);
	take_data(&rig, 1, 10);
	uint64_t before[2] = { simdisk_count(simworld_disk(rig.world, 0), SIM_WRITE),
			       simdisk_count(simworld_disk(rig.world, 1), SIM_WRITE) };
	ck_assert_uint_eq(rig_checkpoint(&rig), 2);
	ck_assert_uint_eq(simdisk_count(simworld_disk(rig.world, 0), SIM_WRITE) - before[0], 0);
	ck_assert_uint_eq(simdisk_count(simworld_disk(rig.world, 1), SIM_WRITE) - before[1], 3);
	rig_free(&rig);
}
END_TEST

/* Bytes without a meaning are zero (ondisk.h I3), although the buffer has held other things before. */
START_TEST(reserved_bytes)
{
	struct rig rig;
	struct pf_disk_map map;
	const uint64_t sizes[] = { 8000 * MIB, 70 * MIB };
	rig_new(&rig, 5, 2, sizes, 1);
	const struct pf_run runs[2] = { take_data(&rig, 0, 10), take_data(&rig, 1, 10) };
	rig_checkpoint(&rig);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t group = pf_addr_block(runs[i].addr) >> PF_GROUP_SHIFT;
		unsigned slot = rig.space->members[i].groups[group].slot;
		simdisk_peek(simworld_disk(rig.world, i), map_off(&rig, i, group, slot), &map, sizeof(map));
		for (size_t k = 0; k < sizeof(map.reserved); k++)
			ck_assert(map.reserved[k] == 0);
	}
	rig_free(&rig);
}
END_TEST

START_TEST(host_full)
{
	struct rig rig;
	uint32_t changed;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	struct pf_run run = take_data(&rig, 0, 10);
	pf_space_freeze(rig.space);
	struct pf_super super = rig.super;
	for (uint64_t skip = 0; skip < 3; skip++) { /* map, table block, root */
		struct sim_fault fault = {
			.ops = SIM_WRITE, .kind = SIM_FAIL, .skip = skip, .count = 1, .err = -ENOSPC
		};
		simworld_add_fault(rig.world, &fault);
		ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), -ENOSPC);
		simworld_clear_faults(rig.world);
	}
	/* given up: the next checkpoint takes over what this one could not write */
	struct pf_run more = take_data(&rig, 0, 7);
	pf_space_free(rig.space, run, PF_USE_DATA);
	rig_checkpoint(&rig);
	rig_reopen(&rig);
	struct pf_space_stats s = rig_stats(&rig);
	ck_assert_uint_eq(s.data_area_blocks - s.free_blocks, more.nr);
	rig_free(&rig);
}
END_TEST

/* An allocation that could not be noted: its block would be free in the map, so there must not be a checkpoint. */
START_TEST(lost_note)
{
	struct rig rig;
	uint32_t changed;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig.space->lost_run = true;
	pf_space_freeze(rig.space);
	ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &rig.super, &changed), -ENOMEM);
	rig_free(&rig);
}
END_TEST

/* -- damage ------------------------------------------------------------------------------------------------------ */

static uint64_t first_quad(const struct pf_geometry *geo)
{
	return (geo->data_start + PF_NODE_BLOCKS - 1) / PF_NODE_BLOCKS * PF_NODE_BLOCKS;
}

/* A pool of which every group of the only member has 100 blocks in use; nothing is loaded. */
static void new_used(struct rig *rig, uint64_t size)
{
	rig_new(rig, 5, 1, &size, 1);
	const struct pf_geometry *geo = &rig->set.members[0].geo;
	for (uint64_t g = 0; g < geo->nr_groups; g++) {
		struct pf_run run;
		uint64_t block = g == 0 ? first_quad(geo) : g << PF_GROUP_SHIFT;
		struct pf_alloc_req req = {
			.use = PF_USE_NODE, .nr = 100, .min_nr = 100, .member = 0, .goal = pf_addr_make(0, block)
		};
		if (!(rig->space->members[0].groups[g].flags & PF_GROUP_META))
			req.use = PF_USE_DATA;
		ck_assert_int_eq(pf_space_alloc(rig->space, &req, &run), 0);
		ck_assert_uint_eq(run.addr, req.goal);
		pf_space_commit(rig->space, run, PF_USE_DATA);
	}
	rig_checkpoint(rig);
	rig_reopen(rig);
}

static void check_bad_group(struct rig *rig, uint64_t group, uint64_t nr_free)
{
	struct pf_run run;
	uint8_t map[PF_GROUP_BLOCKS / 8];
	uint64_t group_free = rig->space->members[0].groups[group].free_blocks, taken = 0;
	int err;
	while (!(err = rig_alloc(rig, PF_USE_NODE, 1000, PF_NODE_BLOCKS, &run)) ||
	       !(err = rig_alloc(rig, PF_USE_DATA, 1000, 1, &run))) {
		ck_assert_uint_ne(pf_addr_block(run.addr) >> PF_GROUP_SHIFT, group);
		pf_space_commit(rig->space, run, PF_USE_DATA);
		taken += run.nr;
	}
	ck_assert_uint_eq(taken, nr_free - group_free);
	ck_assert_uint_eq(rig_stats(rig).bad_groups, 1);
	ck_assert_uint_eq(rig_stats(rig).free_blocks, 0);
	ck_assert_int_eq(rig_alloc(rig, PF_USE_NODE, 1000, PF_NODE_BLOCKS, &run), -ENOSPC);
	/* frees into it are dropped, frees elsewhere and checkpoints go on */
	uint64_t other = group ? 0 : 1, off = first_quad(&rig->set.members[0].geo);
	pf_space_free(rig->space, (struct pf_run){ pf_addr_make(0, (group << PF_GROUP_SHIFT) + (group ? 0 : off)), 5 },
		      PF_USE_DATA);
	pf_space_free(rig->space, (struct pf_run){ pf_addr_make(0, (other << PF_GROUP_SHIFT) + (other ? 0 : off)), 7 },
		      PF_USE_DATA);
	rig_checkpoint(rig);
	ck_assert_uint_eq(rig_stats(rig).dropped_blocks, 5);
	ck_assert_uint_eq(rig_stats(rig).free_blocks, 7);
	ck_assert_uint_eq(rig_stats(rig).pending_blocks, 0);
	ck_assert_int_lt(pf_space_read_map(rig->space, 0, group, map), 0);
}

START_TEST(bad_map)
{
	struct rig rig;
	uint8_t map[PF_GROUP_BLOCKS / 8];
	new_used(&rig, 200 * MIB);
	uint64_t group = 1, nr_free = rig_stats(&rig).free_blocks;
	ck_assert_int_eq(pf_space_read_map(rig.space, 0, group, map), 0);
	simdisk_flip_bit(simworld_disk(rig.world, 0),
			 map_off(&rig, 0, group, rig.space->members[0].groups[group].slot) + 300, 3);
	check_bad_group(&rig, group, nr_free);
	/* fsck puts a new one in */
	memset(map, 0, sizeof(map));
	map[12] = 0xf0;
	ck_assert_int_eq(pf_space_replace_map(rig.space, 0, group, map), 0);
	ck_assert_uint_eq(rig_stats(&rig).bad_groups, 0);
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, 7 + PF_GROUP_BLOCKS - 4);
	rig_checkpoint(&rig);
	rig_reopen(&rig);
	uint8_t back[PF_GROUP_BLOCKS / 8];
	ck_assert_int_eq(pf_space_read_map(rig.space, 0, group, back), 0);
	ck_assert_mem_eq(back, map, sizeof(map));
	ck_assert_uint_eq(rig_stats(&rig).free_blocks, 7 + PF_GROUP_BLOCKS - 4);
	/* fixed places stay, whatever a new map says; and it is written once */
	memset(map, 0, sizeof(map));
	ck_assert_int_eq(pf_space_replace_map(rig.space, 0, 0, map), 0);
	ck_assert_uint_eq(rig.space->members[0].groups[0].free_blocks, pf_group_capacity(&rig.set.members[0].geo, 0));
	ck_assert_uint_eq(rig_checkpoint(&rig), 1);
	ck_assert_uint_eq(rig_checkpoint(&rig), 0);
	rig_free(&rig);
}
END_TEST

START_TEST(unreadable_map)
{
	struct rig rig;
	new_used(&rig, 200 * MIB);
	uint64_t group = 2, nr_free = rig_stats(&rig).free_blocks;
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL };
	fault.from_bytes = map_off(&rig, 0, group, 0);
	fault.to_bytes = fault.from_bytes + 2 * PF_BLOCK_SIZE;
	simworld_add_fault(rig.world, &fault);
	check_bad_group(&rig, group, nr_free);
	rig_free(&rig);
}
END_TEST

/* An error that goes away does no harm: what was freed meanwhile, or in the checkpoint itself, is not lost. */
START_TEST(unreadable_once)
{
	for (int early = 0; early < 2; early++) {
		struct rig rig;
		struct pf_run run;
		uint8_t map[PF_GROUP_BLOCKS / 8];
		new_used(&rig, 200 * MIB);
		uint64_t group = 2, nr_free = rig_stats(&rig).free_blocks;
		struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .count = 1 };
		fault.from_bytes = map_off(&rig, 0, group, 0);
		fault.to_bytes = fault.from_bytes + 2 * PF_BLOCK_SIZE;
		unsigned number = simworld_add_fault(rig.world, &fault);
		if (early) {
			struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 1, .min_nr = 1, .member = -1 };
			req.goal = pf_addr_make(0, (group << PF_GROUP_SHIFT) + 100);
			ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
			ck_assert_uint_ne(pf_addr_block(run.addr) >> PF_GROUP_SHIFT, group);
			ck_assert_uint_eq(rig_stats(&rig).bad_groups, 1);
			pf_space_unalloc(rig.space, run);
		}
		pf_space_free(rig.space, (struct pf_run){ pf_addr_make(0, group << PF_GROUP_SHIFT), 5 }, PF_USE_DATA);
		rig_checkpoint(&rig);
		ck_assert_uint_eq(simworld_fault_hits(rig.world, number), 1);
		ck_assert_uint_eq(rig_stats(&rig).bad_groups, 0);
		ck_assert_uint_eq(rig_stats(&rig).dropped_blocks, 0);
		ck_assert_uint_eq(rig_stats(&rig).free_blocks, nr_free + 5);
		rig_reopen(&rig);
		ck_assert_int_eq(pf_space_read_map(rig.space, 0, group, map), 0);
		ck_assert_int_eq(map[0], 0xe0);
		rig_free(&rig);
	}
}
END_TEST

/* With that group the whole pool was full: the next checkpoint, or its nodes, find the room again. */
START_TEST(unreadable_pool)
{
	struct rig rig;
	struct pf_run run;
	new_used(&rig, 24 * MIB);
	const struct pf_space_stats before = rig_stats(&rig);
	for (int frozen = 0; frozen < 2; frozen++) {
		struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .count = 1 };
		rig_reopen(&rig);
		simworld_add_fault(rig.world, &fault);
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 4, 4, &run), -EIO);
		ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 4, 4, &run), -ENOSPC);
		ck_assert_uint_eq(rig_stats(&rig).free_blocks + pf_space_node_room(rig.space), 0);
		if (frozen) {
			rig_checkpoint(&rig);
			ck_assert_uint_eq(rig_stats(&rig).avail_blocks, before.avail_blocks);
			ck_assert_uint_eq(pf_space_node_room(rig.space), before.meta_free_blocks);
		}
		ck_assert_int_eq(rig_alloc(&rig, frozen ? PF_USE_DATA : PF_USE_NODE, 4, 4, &run), 0);
		ck_assert_uint_eq(rig_stats(&rig).bad_groups, 0);
		ck_assert_uint_eq(rig_stats(&rig).free_blocks, before.free_blocks - 4);
		simworld_clear_faults(rig.world);
	}
	rig_free(&rig);
}
END_TEST

/* The allocator says -EIO when there might have been room. */
START_TEST(no_map_readable)
{
	struct rig rig;
	struct pf_run run;
	new_used(&rig, 70 * MIB);
	const struct pf_geometry *geo = &rig.set.members[0].geo;
	struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .from_bytes = geo->maps_block * PF_BLOCK_SIZE };
	fault.to_bytes = geo->log_block * PF_BLOCK_SIZE;
	simworld_add_fault(rig.world, &fault);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 4, 4, &run), -EIO);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_NODE, 4, 4, &run), -ENOSPC);
	rig_free(&rig);
}
END_TEST

/* A map write that the device acknowledged and lost (pitfall 2.1): found by the next who needs it. */
START_TEST(lost_map_write)
{
	struct rig rig;
	new_used(&rig, 200 * MIB);
	struct pf_run run = { pf_addr_make(0, PF_GROUP_BLOCKS), 60 };
	for (int i = 0; i < 2; i++) { /* after two checkpoints the slot holds an older, valid map */
		pf_space_free(rig.space, (struct pf_run){ run.addr + (uint64_t)i, 1 }, PF_USE_DATA);
		if (i == 1) {
			struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_DROP };
			fault.from_bytes = map_off(&rig, 0, 1, 0);
			fault.to_bytes = fault.from_bytes + 2 * PF_BLOCK_SIZE;
			simworld_add_fault(rig.world, &fault);
		}
		rig_checkpoint(&rig);
	}
	simworld_clear_faults(rig.world);
	rig_reopen(&rig);
	check_bad_group(&rig, 1, rig_stats(&rig).free_blocks);
	rig_free(&rig);
}
END_TEST

/* Every bit of a map counts, and each field of its head by itself. */
START_TEST(map_bits)
{
	struct rig rig;
	struct pf_disk_map map, bad;
	uint64_t words[PF_MAP_WORDS];
	new_used(&rig, 200 * MIB);
	const struct pf_space_member *m = &rig.space->members[0];
	struct pf_map_expect expect = pf_map_expect_of(m, 1);
	simdisk_peek(simworld_disk(rig.world, 0), map_off(&rig, 0, 1, expect.slot), &map, sizeof(map));
	ck_assert_int_eq(pf_table_unpack_map(rig.space, m, &expect, &map, words), 0);
	for (unsigned bit = 0; bit < 8 * PF_BLOCK_SIZE; bit++) {
		bad = map;
		((uint8_t *)&bad)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(pf_table_unpack_map(rig.space, m, &expect, &bad, words), -PF_EMAP_INVALID);
	}
	/* sound by itself, but not the one that the table names */
	struct pf_map_expect other;
	for (int i = 0; i < 6; i++) {
		other = expect;
		other.generation += i == 0;
		other.crc += i == 1;
		other.group += i == 2;
		other.slot ^= i == 3;
		other.free_blocks = (uint16_t)(other.free_blocks - (i == 4));
		other.free_quads = (uint16_t)(other.free_quads - (i == 5));
		ck_assert_int_eq(pf_table_unpack_map(rig.space, m, &other, &map, words), -PF_EMAP_INVALID);
	}
	rig.space->pool_uuid[3] ^= 1;
	ck_assert_int_eq(pf_table_unpack_map(rig.space, m, &expect, &map, words), -PF_EMAP_INVALID);
	rig_free(&rig);
}
END_TEST

/* Damaged tables: the pool says so and does not open; fsck can. */
START_TEST(bad_tables)
{
	struct rig rig;
	new_used(&rig, 200 * MIB);
	const struct pf_space_member *m = &rig.space->members[0];
	uint64_t offs[2] = { (m->geo.root_block + m->root_slot) * PF_BLOCK_SIZE,
			     (m->geo.tables_block + m->tables[0].slot) * PF_BLOCK_SIZE };
	struct simdisk *disk = simworld_disk(rig.world, 0);
	rig_detach(&rig);
	for (int i = 0; i < 2; i++) {
		for (unsigned bit = 0; bit < 8 * PF_BLOCK_SIZE; bit += bit < 2000 ? 1 : 97) {
			simdisk_flip_bit(disk, offs[i] + bit / 8, bit % 8);
			ck_assert_int_eq(rig_open(&rig, false), -PF_ETABLE_INVALID);
			rig_detach(&rig);
			simdisk_flip_bit(disk, offs[i] + bit / 8, bit % 8);
		}
		struct sim_fault fault = { .ops = SIM_READ, .kind = SIM_FAIL, .from_bytes = offs[i] };
		fault.to_bytes = offs[i] + PF_BLOCK_SIZE;
		simworld_add_fault(rig.world, &fault);
		ck_assert_int_eq(rig_open(&rig, false), -EIO);
		rig_detach(&rig);
		ck_assert_int_eq(rig_open(&rig, true), 0);
		rig_detach(&rig);
		simworld_clear_faults(rig.world);
	}
	ck_assert_int_eq(rig_open(&rig, false), 0);
	rig_free(&rig);
}
END_TEST

/* fsck's rebuild: from nothing to the maps that it gives; a crash before the end leaves the old ones whole. */
START_TEST(rebuild)
{
	struct rig rig;
	enum { GROUPS = 4 };
	static uint8_t old[GROUPS][PF_GROUP_BLOCKS / 8], new[GROUPS][PF_GROUP_BLOCKS / 8], map[PF_GROUP_BLOCKS / 8];
	new_used(&rig, 200 * MIB);
	ck_assert_uint_eq(rig.set.members[0].geo.nr_groups, GROUPS);
	for (unsigned g = 0; g < GROUPS; g++) {
		ck_assert_int_eq(pf_space_read_map(rig.space, 0, g, old[g]), 0);
		memcpy(new[g], old[g], sizeof(new[g]));
		new[g][2000 - g] |= 0x55;
	}
	struct pf_space_stats before = rig_stats(&rig);
	for (int full = 0; full < 2; full++) {
		struct pf_super super = rig.super;
		uint32_t changed;
		rig_detach(&rig);
		ck_assert_int_eq(rig_open(&rig, true), 0);
		ck_assert_uint_eq(rig_stats(&rig).free_blocks, before.data_area_blocks);
		for (unsigned g = 0; g < GROUPS; g++)
			ck_assert_int_eq(pf_space_replace_map(rig.space, 0, g, new[g]), 0);
		pf_space_freeze(rig.space);
		ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
		if (full) {
			rig_durable(&rig, &super);
			rig_reopen(&rig);
		} else {
			size_t nr = simworld_pending(rig.world, simworld_log_len(rig.world), NULL, 0);
			struct sim_fate *fates = calloc(nr, sizeof(*fates));
			for (size_t i = 0; i < nr; i++)
				fates[i].kind = SIM_KEPT;
			ck_assert_uint_ge(nr, GROUPS + 2);
			rig_crash(&rig, simworld_log_len(rig.world), fates);
			free(fates);
		}
		for (unsigned g = 0; g < GROUPS; g++) {
			ck_assert_int_eq(pf_space_read_map(rig.space, 0, g, map), 0);
			ck_assert_mem_eq(map, full ? new[g] : old[g], sizeof(map));
		}
	}
	rig_free(&rig);
}
END_TEST

/* A group of which the rebuild finds nothing in use stays untouched. */
START_TEST(rebuild_untouched)
{
	struct rig rig;
	uint8_t map[PF_GROUP_BLOCKS / 8];
	const uint64_t sizes[] = { 200 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig_detach(&rig);
	ck_assert_int_eq(rig_open(&rig, true), 0);
	for (uint64_t g = 0; g < rig.set.members[0].geo.nr_groups; g++) {
		ck_assert_int_eq(pf_space_read_map(rig.space, 0, g, map), 0);
		ck_assert_int_eq(pf_space_replace_map(rig.space, 0, g, map), 0);
	}
	uint64_t before = simdisk_count(simworld_disk(rig.world, 0), SIM_WRITE);
	ck_assert_uint_eq(rig_checkpoint(&rig), 1);
	ck_assert_uint_eq(simdisk_count(simworld_disk(rig.world, 0), SIM_WRITE) - before, 2); /* table block and root */
	rig_free(&rig);
}
END_TEST

/* Many more groups than may be loaded at once. */
START_TEST(eviction)
{
	struct rig rig;
	const uint64_t sizes[] = { 4096 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	const struct pf_geometry *geo = &rig.set.members[0].geo;
	rig.space->max_loaded = 4;
	for (int round = 0; round < 3; round++) {
		for (uint64_t g = 2; g < geo->nr_groups; g++) {
			struct pf_run run;
			struct pf_alloc_req req = { .use = PF_USE_DATA, .nr = 4, .min_nr = 4, .member = 0 };
			req.goal = pf_addr_make(0, (g << PF_GROUP_SHIFT) + (uint64_t)round * 4);
			if (rig.space->members[0].groups[g].flags & PF_GROUP_META)
				req.use = PF_USE_NODE;
			ck_assert_int_eq(pf_space_alloc(rig.space, &req, &run), 0);
			ck_assert_uint_eq(run.addr, req.goal);
			if (g % 2) {
				pf_space_unalloc(rig.space, run);
			} else {
				pf_space_commit(rig.space, run, PF_USE_DATA);
				if (g % 4 == 0 && round == 2)
					pf_space_free(rig.space, (struct pf_run){ run.addr - 4, 8 }, PF_USE_DATA);
			}
		}
		rig_checkpoint(&rig);
		ck_assert_uint_le(rig.space->nr_loaded, 4);
	}
	uint64_t used = 0;
	for (uint64_t g = 2; g < geo->nr_groups; g += 2)
		used += g % 4 ? 12 : 4;
	ck_assert_uint_eq(rig_stats(&rig).data_area_blocks - rig_stats(&rig).free_blocks, used);
	rig_reopen(&rig);
	ck_assert_uint_eq(rig_stats(&rig).data_area_blocks - rig_stats(&rig).free_blocks, used);
	rig_free(&rig);
}
END_TEST

/* -- hooks that break a rule have the effect that the crash explorer has to find --------------------------------- */

START_TEST(broken_reuse)
{
	struct rig rig;
	struct pf_run run;
	const uint64_t sizes[] = { 70 * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	rig.break_rules = PF_BREAK_REUSE_BEFORE_DURABLE;
	rig.super.members[0].share_blocks = 0;
	rig_reopen(&rig);
	while (!rig_alloc(&rig, PF_USE_DATA, 16384, 1, &run))
		pf_space_commit(rig.space, run, PF_USE_DATA);
	struct pf_run freed = { pf_addr_make(0, rig.set.members[0].geo.data_end - 10), 10 };
	pf_space_free(rig.space, freed, PF_USE_DATA);
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 10, 10, &run), 0);
	ck_assert_uint_eq(run.addr, freed.addr);
	rig_checkpoint(&rig); /* does not release it a second time */
	ck_assert_int_eq(rig_alloc(&rig, PF_USE_DATA, 1, 1, &run), -ENOSPC);
	rig_free(&rig);
}
END_TEST

START_TEST(broken_next_txg)
{
	for (unsigned broken = 0; broken < 2; broken++) {
		struct rig rig;
		uint8_t map[PF_GROUP_BLOCKS / 8];
		const uint64_t sizes[] = { 70 * MIB };
		rig_new(&rig, 5, 1, sizes, 1);
		rig.break_rules = broken ? PF_BREAK_MAP_OF_NEXT_TXG : 0;
		rig_reopen(&rig);
		struct pf_super super = rig.super;
		uint32_t changed;
		struct pf_run a = take_data(&rig, 0, 10);
		pf_space_freeze(rig.space);
		struct pf_run b = take_data(&rig, 0, 10);
		ck_assert_uint_eq(b.addr, a.addr + 10);
		ck_assert_int_eq(pf_space_write(rig.space, rig.generation + 1, &super, &changed), 0);
		rig_durable(&rig, &super);
		rig_reopen(&rig);
		uint64_t block = pf_addr_block(a.addr);
		ck_assert_int_eq(pf_space_read_map(rig.space, 0, block >> PF_GROUP_SHIFT, map), 0);
		ck_assert(rig_bit(map, block));
		ck_assert(rig_bit(map, block + 10) == (broken == 1));
		rig_free(&rig);
	}
}
END_TEST

/* -- a very large member ----------------------------------------------------------------------------------------- */

static double cpu_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();
	return info.uordblks + info.hblkhd;
}

START_TEST(large_member)
{
	struct rig rig;
	const uint64_t sizes[] = { 20 * MIB * MIB };
	rig_new(&rig, 5, 1, sizes, 1);
	ck_assert_uint_gt(rig.set.members[0].geo.root_blocks, 1); /* so the long form of the root is tested here */
	for (int i = 0; i < 3; i++) {
		take_data(&rig, 0, 5000);
		rig_checkpoint(&rig);
	}
	uint64_t used = rig_stats(&rig).data_area_blocks - rig_stats(&rig).free_blocks;
	ck_assert_uint_eq(used, 15000);
	rig_detach(&rig);
	struct pf_diag diag = { 0 };
	rig_attach(&rig);
	size_t bytes = heap_bytes();
	uint64_t reads = simdisk_count(simworld_disk(rig.world, 0), SIM_READ);
	double time = cpu_s();
	ck_assert_int_eq(pf_space_open(&rig.set, false, &rig.space, &diag), 0);
	time = cpu_s() - time;
	reads = simdisk_count(simworld_disk(rig.world, 0), SIM_READ) - reads;
	bytes = heap_bytes() - bytes;
	ck_assert_uint_eq(rig_stats(&rig).data_area_blocks - rig_stats(&rig).free_blocks, used);
	ck_assert_uint_lt(bytes, 40 * MIB);
	/* 20 MiB in large pieces. It takes 10 ms; a sanitizer or valgrind needs more. */
	ck_assert_uint_le(reads, 1 + (2 * rig.set.members[0].geo.nr_tables + 255) / 256);
	ck_assert_double_lt(time, 2);
	rig_detach(&rig);
	/* damage in the second block of the root is found too */
	const struct pf_member_row *row = &rig.super.members[0];
	struct pf_geometry geo;
	ck_assert_int_eq(pf_geometry_init(&geo, row->size_blocks, row->log_blocks), 0);
	uint64_t block = geo.root_block + row->root_slot * geo.root_blocks + geo.root_blocks - 1;
	simdisk_flip_bit(simworld_disk(rig.world, 0), block * PF_BLOCK_SIZE + 70, 0);
	ck_assert_int_eq(rig_open(&rig, false), -PF_ETABLE_INVALID);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("space_disk");
	TCase *tc = tcase_create("slots");
	tcase_add_test(tc, slots);
	tcase_add_test(tc, writes_little);
	tcase_add_test(tc, reserved_bytes);
	tcase_add_test(tc, host_full);
	tcase_add_test(tc, lost_note);
	suite_add_tcase(suite, tc);
	tc = tcase_create("damage");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, bad_map);
	tcase_add_test(tc, unreadable_map);
	tcase_add_test(tc, unreadable_once);
	tcase_add_test(tc, unreadable_pool);
	tcase_add_test(tc, no_map_readable);
	tcase_add_test(tc, lost_map_write);
	tcase_add_test(tc, map_bits);
	tcase_add_test(tc, bad_tables);
	tcase_add_test(tc, rebuild);
	tcase_add_test(tc, rebuild_untouched);
	suite_add_tcase(suite, tc);
	tc = tcase_create("limits");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, eviction);
	tcase_add_test(tc, large_member);
	suite_add_tcase(suite, tc);
	tc = tcase_create("hooks");
	tcase_add_test(tc, broken_reuse);
	tcase_add_test(tc, broken_next_txg);
	suite_add_tcase(suite, tc);
	return rig_main(suite);
}
