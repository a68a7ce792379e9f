/* SPDX-License-Identifier: MIT
 * Repairs that meet with accidents: an I/O error at each of their operations, the power going at each of their writes. What is left
 * can be repaired by the next run. */
#include "unit/check_items.h"

#include <dirent.h>

static bool lost_table; /* the group tables of a member are to be lost as well */

/* A bit of everything that a repair knows how to do. */
static void damage(void)
{
	struct poke *p = poke_open(sp->world);
	struct pf_inode_item item = inode_get(p, in.sub);
	item.size += 9;
	item.nlink++;
	inode_put(p, in.sub, &item);
	poke_del(p, name_get(p, in.sub, in.deep)->hash_key);
	hash_put(p, pf_key_make(PF_CLASS_DIR, in.dir, PF_TYPE_HASH, 1), in.deep, 5000, DT_REG);
	struct name_found *n = name_get(p, PF_ROOT_INO, in.file);
	poke_del(p, n->key);
	poke_del(p, n->hash_key);
	poke_super(p)->counters.nr_inodes = 1;
	poke_super(p)->counters.next_id = 2;
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct pf_extent extent;
	extent_get(p, in.big, 0, bytes, &extent);
	poke_map_bit(p, pf_addr_member(extent.addr[0]), pf_addr_block(extent.addr[0]), false);
	uint64_t slot = pf_geometry_super_block(poke_geo(p, 0), 1, (poke_super(p)->generation + 2) % PF_SUPER_SLOTS);
	poke_flip(p, pf_addr_make(0, slot), 300, 1);
	if (lost_table) {
		pf_addr places[3];
		poke_table_places(p, 1, 0, places);
		poke_flip(p, places[0], 100, 1);
	}
	poke_close(p);
}

static void ck_repairs_now(const char *when, size_t n)
{
	const struct found *f = fsck(true);
	ck_assert_msg(!f->err, "%s %zu: repair gives %s: %s", when, n, pf_strerror(f->err), f->diag.text);
	ck_assert_msg(!f->result.nr_left, "%s %zu: left of:%s", when, n, all_messages(f));
	f = fsck(false);
	ck_assert_msg(!f->err && !f->nr, "%s %zu: then:%s", when, n, all_messages(f));
}

/* The n-th operation fails, n = 0, 1, ... until the repair does not get that far. */
START_TEST(io_errors)
{
	static const unsigned ops[] = { SIM_READ, SIM_WRITE, SIM_FLUSH };
	struct simworld *damaged = sp->world;
	size_t n = 0, nr_failed = 0, step = ops[_i] == SIM_FLUSH ? 1 : 3;
	for (bool hit = true; hit; n += step) {
		sp->world = simworld_copy(damaged);
		struct sim_fault fault = { .ops = ops[_i], .skip = n, .count = 1 };
		unsigned id = simworld_add_fault(sp->world, &fault);
		nr_failed += fsck(true)->err != 0;
		hit = simworld_fault_hits(sp->world, id) > 0;
		simworld_clear_faults(sp->world);
		ck_repairs_now("error at", n);
		simworld_free(sp->world);
	}
	ck_assert_uint_gt(n, 9);
	/* from version 6 on a write that fails is made elsewhere */
	ck_assert(nr_failed > 0 || ops[_i] == SIM_WRITE);
	sp->world = damaged;
}
END_TEST

/* The power goes after the n-th write or flush; what was not flushed is lost, or partly there. */
START_TEST(power_cuts)
{
	struct simworld *damaged = sp->world;
	struct simworld *repaired = sp->world = simworld_copy(damaged);
	struct sim_fate fates[512];
	simworld_record(repaired);
	ck_repairs_now("no cut", 0);
	size_t nr = simworld_log_len(repaired);
	ck_assert_uint_gt(nr, 20);
	for (size_t cut = 0; cut <= nr; cut++) {
		size_t nr_pending = simworld_pending(repaired, cut, NULL, 0);
		ck_assert_uint_le(nr_pending, 512);
		if (_i)
			sim_fates_seeded((uint64_t)_i * 1000 + cut, fates, nr_pending);
		sp->world = simworld_crash(repaired, cut, _i ? fates : NULL);
		ck_repairs_now("cut after", cut);
		simworld_free(sp->world);
	}
	simworld_free(repaired);
	sp->world = damaged;
}
END_TEST

static void setup_damaged(void)
{
	setup_populated();
	damage();
}

static void setup_damaged_five(void)
{
	setup_populated_version(5, 2);
	damage();
}

static void setup_lost_table(void)
{
	lost_table = true;
	setup_damaged();
}

int main(void)
{
	Suite *s = suite_create("check_repair");
	TCase *t = tcase_create("damaged");
	tcase_add_checked_fixture(t, setup_damaged, teardown_world);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, io_errors, 0, 3);
	tcase_add_loop_test(t, power_cuts, 0, 3);
	suite_add_tcase(s, t);
	t = tcase_create("version 5");
	tcase_add_checked_fixture(t, setup_damaged_five, teardown_world);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, io_errors, 0, 3);
	suite_add_tcase(s, t);
	t = tcase_create("lost table");
	tcase_add_checked_fixture(t, setup_lost_table, teardown_world);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, power_cuts, 0, 3);
	suite_add_tcase(s, t);
	return run_suite(s);
}
