/* SPDX-License-Identifier: MIT
 * fsck and scrub on pools that accident or malice has damaged anywhere: they end, they do not crash, and after a repair the rest
 * is still a pool. With checksums that fail, and, worse, with checksums that are right. */
#include "unit/check_items.h"

#define NR_FLIPS  500
#define NR_FORGED 400
#define PER_TEST  50 /* rounds of one test, so that a failure shows where */

static unsigned nr_errors;

static void count_error(void *arg, const struct pf_scrub_error *e)
{
	(void)arg;
	(void)e;
	nr_errors++;
}

/* Whatever it says, it must say it. */
static void scrub_if_it_opens(void)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_pool *pool;
	struct pf_diag diag = { 0 };
	struct pf_pool_options open = { .read_only = true, .no_recovery = true, .set_flags = PF_SET_REPAIR };
	struct pf_scrub_options options = { 0 };
	struct pf_scrub_sink sink = { .error = count_error };
	struct pf_scrub_result result;
	simworld_open(sp->world, true, ios);
	nr_errors = 0;
	if (pf_pool_open_ios(ios, simworld_nr_disks(sp->world), &open, &sp->env.env, &pool, &diag))
		return;
	ck_ok(pf_scrub(pool, &options, &sink, &result));
	ck_assert_uint_eq(result.nr_errors, nr_errors);
	pf_pool_abandon(pool);
}

/* Every block that holds metadata. */
struct places {
	pf_addr addrs[1024];
	unsigned nr;
};

static void find_places(struct places *f)
{
	struct poke *p = poke_open(sp->world);
	pf_addr nodes[200], tables[3];
	unsigned nr = poke_nodes(p, nodes, 200);
	f->nr = 0;
	for (unsigned i = 0; i < nr * PF_NODE_BLOCKS; i++)
		f->addrs[f->nr++] = nodes[i / PF_NODE_BLOCKS] + i % PF_NODE_BLOCKS;
	for (unsigned m = 0; m < simworld_nr_disks(sp->world); m++) {
		poke_table_places(p, m, 0, tables);
		for (unsigned i = 0; i < 3; i++)
			f->addrs[f->nr++] = tables[i];
		for (unsigned i = 0; i < 2 * PF_SUPER_SLOTS; i++)
			f->addrs[f->nr++] = pf_addr_make(m, pf_geometry_super_block(poke_geo(p, m), i / 8, i % 8));
	}
	free(p);
}

/* One bit anywhere in the metadata: found, if it was in use, and repaired unless it was in the tree. */
START_TEST(flipped_bits)
{
	struct simworld *good = sp->world;
	struct places places;
	struct rng rng = { .state = rng_mix((uint64_t)_i + 1) };
	find_places(&places);
	for (unsigned i = 0; i < PER_TEST; i++) {
		pf_addr addr = places.addrs[rng_below(&rng, places.nr)];
		sp->world = simworld_copy(good);
		simdisk_flip_bit(simworld_disk(sp->world, pf_addr_member(addr)),
				 pf_addr_block(addr) * PF_BLOCK_SIZE + rng_below(&rng, PF_BLOCK_SIZE),
				 (unsigned)rng_below(&rng, 8));
		const struct found *f = fsck(false);
		ck_assert_msg(!f->err, "fsck gives %s: %s", pf_strerror(f->err), f->diag.text);
		bool node = has_id(f, "PF0201");
		scrub_if_it_opens();
		f = fsck(true);
		ck_assert_msg(!f->err, "repair gives %s: %s", pf_strerror(f->err), f->diag.text);
		ck_assert_msg(node || !f->result.nr_left, "left of:%s", all_messages(f));
		if (!node)
			ck_ids(fsck(false), "");
		simworld_free(sp->world);
	}
	sp->world = good;
}
END_TEST

/* A key that exists, or one beside it. */
static struct pf_key some_key(struct poke *p, struct rng *rng)
{
	unsigned class = (unsigned)rng_below(rng, 3);
	uint64_t object = rng_below(rng, 120);
	struct pf_key key = { (uint64_t) class << 56 | object, 0 };
	return poke_next(p, class, &key) ? key : pf_key_inode(PF_ROOT_INO);
}

static void forge_bytes(struct poke *p, struct rng *rng)
{
	uint8_t bytes[8];
	unsigned len = 1 + (unsigned)rng_below(rng, sizeof(bytes));
	/* mostly near the front, where headers and items are described */
	unsigned offset = (unsigned)rng_below(rng, rng_below(rng, 2) ? 1024 : PF_NODE_SIZE - 8);
	rng_fill(rng, bytes, len);
	poke_node_bytes(p, some_key(p, rng), rng_below(rng, 4) ? 0 : 1, offset, bytes, len);
}

static void forge_item(struct poke *p, struct rng *rng)
{
	uint8_t bytes[PF_MAX_ITEM_BYTES];
	struct pf_key key = some_key(p, rng);
	int len = poke_get(p, key, bytes, sizeof(bytes));
	if (len < 0) /* deleted a moment ago */
		return;
	switch (rng_below(rng, 4)) {
	case 0:
		poke_del(p, key);
		break;
	case 1:
		poke_put(p, key, bytes, (unsigned)rng_below(rng, (uint64_t)len + 1));
		break;
	case 2:
		key.lo ^= UINT64_C(1) << rng_below(rng, 64);
		poke_put(p, key, bytes, len > 200 ? 200 : (unsigned)len);
		break;
	default:
		for (unsigned i = 0; i < 3 && len > 0; i++)
			bytes[rng_below(rng, (uint64_t)(len > 64 ? 64 : len))] = (uint8_t)rng_next(rng);
		poke_put(p, key, bytes, (unsigned)len);
	}
}

static void forge_tables(struct poke *p, struct rng *rng)
{
	unsigned member = (unsigned)rng_below(rng, simworld_nr_disks(sp->world));
	struct pf_disk_group g = poke_group(p, member, 0);
	uint8_t *bytes = (uint8_t *)&g;
	bytes[rng_below(rng, sizeof(g))] = (uint8_t)rng_next(rng);
	poke_set_group(p, member, 0, &g);
}

static void forge_super(struct poke *p, struct rng *rng)
{
	struct pf_counters *c = &poke_super(p)->counters;
	uint64_t *fields[] = { &c->next_id, &c->nr_inodes, &c->data_blocks, &c->orphan_blocks, &c->node_blocks };
	*fields[rng_below(rng, 5)] = rng_next(rng) >> (8 + rng_below(rng, 56));
	if (!c->next_id)
		c->next_id = 1;
}

/* Wrong content under right checksums. */
START_TEST(forged)
{
	struct simworld *good = sp->world;
	struct rng rng = { .state = rng_mix((uint64_t)_i + 1000) };
	for (unsigned i = 0; i < PER_TEST; i++) {
		sp->world = simworld_copy(good);
		struct poke *p = poke_open(sp->world);
		for (unsigned k = 0; k <= rng_below(&rng, 3); k++) {
			uint64_t what = rng_below(&rng, 10);
			if (what < 4)
				forge_item(p, &rng);
			else if (what < 8)
				forge_bytes(p, &rng);
			else if (what < 9)
				forge_tables(p, &rng);
			else
				forge_super(p, &rng);
			if (what >= 4 && what < 8)
				break; /* the tree may be impassable now */
		}
		poke_close(p);
		const struct found *f = fsck(false);
		ck_assert_msg(!f->err, "fsck gives %s: %s", pf_strerror(f->err), f->diag.text);
		scrub_if_it_opens();
		f = fsck(true);
		bool nothing = f->err && f->result.nr_problems; /* a repair that failed has said so */
		f = fsck(false);
		ck_assert_msg(!f->err || nothing, "fsck gives %s: %s", pf_strerror(f->err), f->diag.text);
		simworld_free(sp->world);
	}
	sp->world = good;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("check_hostile");
	TCase *t = tcase_create("hostile");
	tcase_add_checked_fixture(t, setup_populated, teardown_world);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, flipped_bits, 0, NR_FLIPS / PER_TEST);
	tcase_add_loop_test(t, forged, 0, NR_FORGED / PER_TEST);
	suite_add_tcase(s, t);
	return run_suite(s);
}
