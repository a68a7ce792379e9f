/* SPDX-License-Identifier: MIT
 *
 * The tree as a map from keys to bytes, against a sorted array: look-ups, changes, absent nodes, its shape.
 */
#include "tree_compare.h"

#define TINY_CACHE (64 << 10) /* three nodes: next to everything is absent */
#define BIG_CACHE  (64 << 20)

static struct world w;

/* Few objects, so that keys meet; some at the ends of what there is. */
static struct pf_key random_key(void)
{
	static const struct pf_key edges[] = {
		{ 0, 0 }, { UINT64_MAX, UINT64_MAX }, { UINT64_MAX, 0 }, { 0, UINT64_MAX }
	};
	if (rnd(&w, 500) == 0)
		return edges[rnd(&w, 4)];
	return (struct pf_key){ rnd(&w, 20), rnd(&w, 20) ? rnd(&w, 300) : UINT64_MAX - rnd(&w, 300) };
}

static unsigned random_len(void)
{
	switch (rnd(&w, 8)) {
	case 0:
		return 0;
	case 1:
		return (unsigned)rnd(&w, PF_MAX_ITEM_BYTES + 1);
	case 2:
		return PF_MAX_ITEM_BYTES;
	default:
		return (unsigned)rnd(&w, 300);
	}
}

static void random_change(void)
{
	struct model_item item = { random_key(), random_len(), rnd(&w, 1000) };
	if (rnd(&w, 10) < 4)
		MUST(!world_del_one(&w, item.key));
	else
		MUST(!world_put_one(&w, item));
}

/* What a txn sees at @key is what the model has. */
static void compare_in_txn(struct pf_txn *txn, struct pf_key key)
{
	struct pf_item item;
	const struct model *m = &w.model;
	bool found;
	size_t at = model_find(m, key, &found), before = found ? at : at - 1;
	MUST(pf_txn_get(txn, key, &item) == found);
	MUST(!found || item_is(&m->items[at], item.key, item.data, item.len));
	MUST(pf_txn_next(txn, key, &item) == (at < m->nr));
	MUST(at == m->nr || item_is(&m->items[at], item.key, item.data, item.len));
	MUST(pf_txn_prev(txn, key, &item) == (before != SIZE_MAX));
	MUST(before == SIZE_MAX || item_is(&m->items[before], item.key, item.data, item.len));
}

/* Several items of a range in one txn; the nearest ones outside may go, too. */
static void random_range_change(void)
{
	struct pf_key from = { rnd(&w, 20), rnd(&w, 300) }, to = { from.hi, from.lo + rnd(&w, 20) };
	struct model_item items[8];
	unsigned nr = (unsigned)rnd(&w, 8) + 1, bytes = 0;
	for (unsigned i = 0; i < nr; i++) {
		struct pf_key key = { from.hi, from.lo + rnd(&w, to.lo - from.lo + 1) };
		items[i] = (struct model_item){ key, random_len(), rnd(&w, 1000) };
		bytes += PF_TXN_ITEM(items[i].len);
	}
	struct pf_txn txn;
	pf_txn_init(&txn, w.tree);
	pf_txn_want(&txn, from, to, bytes);
	MUST(!pf_txn_lock(&txn));
	bool clear = rnd(&w, 2), clear_neighbours = rnd(&w, 4) == 0;
	struct pf_item item;
	while (clear && pf_txn_next(&txn, from, &item) && pf_key_cmp(item.key, to) <= 0)
		world_del(&w, &txn, item.key);
	if (clear_neighbours && pf_txn_prev(&txn, from, &item))
		world_del(&w, &txn, item.key);
	if (clear_neighbours && pf_txn_next(&txn, to, &item))
		world_del(&w, &txn, item.key);
	for (unsigned i = 0; i < nr; i++) {
		compare_in_txn(&txn, items[i].key);
		world_put(&w, &txn, items[i]);
	}
	pf_txn_end(&txn);
}

START_TEST(follows_a_sorted_array)
{
	world_new(&w, (uint64_t)_i, _i % 2 ? TINY_CACHE : BIG_CACHE, 1 + (unsigned)_i % 3);
	unsigned every = w.cache_bytes == TINY_CACHE ? 100 : 500;
	for (unsigned step = 0; step < 5000; step++) {
		if (rnd(&w, 6))
			random_change();
		else
			random_range_change();
		if (step % 4 == 0)
			world_compare_at(&w, random_key());
		if (step % every == every - 1) {
			world_checkpoint(&w);
			world_walk_all(&w);
			world_compare(&w);
			if (rnd(&w, 5) == 0)
				world_reopen(&w);
		}
	}
	MUST(w.rig.super.root_level > 0);
	world_compare(&w);
	struct pf_tree_stats stats;
	pf_tree_stats(w.tree, &stats);
	MUST(stats.hits && stats.misses);
	MUST(stats.dirty_nodes || stats.clean_nodes <= w.cache_bytes / PF_NODE_SIZE);
	world_free(&w);
}
END_TEST

/* A txn that puts an item it has just found under another key: the bytes lie in the very leaf that moves. */
START_TEST(puts_from_its_own_items)
{
	world_new(&w, (uint64_t)_i, BIG_CACHE, 1);
	struct model_item first = { { 5, 500 }, 3000, 77 };
	MUST(!world_put_one(&w, first));
	for (unsigned i = 0; i < 100; i++) {
		struct pf_txn txn;
		struct pf_item item;
		struct pf_key to = { 5, rnd(&w, 1000) };
		pf_txn_init(&txn, w.tree);
		pf_txn_want(&txn, PF_KEY_MIN, PF_KEY_MAX, PF_TXN_ITEM(first.len));
		MUST(!pf_txn_lock(&txn));
		MUST(pf_txn_next(&txn, (struct pf_key){ 5, rnd(&w, 500) }, &item));
		pf_txn_put(&txn, to, item.data, item.len);
		model_put(&w.model, (struct model_item){ to, first.len, first.seed });
		pf_txn_end(&txn);
		world_compare(&w);
	}
	world_free(&w);
}
END_TEST

/* -- shape ---------------------------------------------------------------------------------------------------------- */
#define NR_SHAPE 20000u

static void put_small(struct pf_key key)
{
	MUST(!world_put_one(&w, (struct model_item){ key, 40 + (unsigned)(key.lo % 9), key.lo }));
}

static unsigned fill_percent(void)
{
	world_checkpoint(&w);
	world_walk_all(&w);
	return (unsigned)(w.leaf_bytes * 100 / (w.nr_leaves * PF_NODE_ROOM));
}

START_TEST(ascending_keys_fill_leaves)
{
	world_new(&w, 1, BIG_CACHE, 1);
	for (unsigned i = 0; i < NR_SHAPE; i++)
		put_small((struct pf_key){ 1, i });
	MUST(fill_percent() >= 97);
	world_free(&w);

	/* two files or directories growing in turns, with others on both sides */
	world_new(&w, 1, BIG_CACHE, 1);
	for (unsigned i = 0; i < 40; i++)
		put_small((struct pf_key){ i, 0 });
	for (unsigned i = 1; i < NR_SHAPE / 2; i++) {
		put_small((struct pf_key){ 3, i });
		put_small((struct pf_key){ 20, i });
	}
	MUST(fill_percent() >= 90);
	world_free(&w);
}
END_TEST

START_TEST(other_orders_fill_leaves_by_half)
{
	world_new(&w, 1, BIG_CACHE, 1);
	for (unsigned i = NR_SHAPE; i; i--)
		put_small((struct pf_key){ 1, i });
	MUST(fill_percent() >= 45);
	world_free(&w);

	world_new(&w, 1, BIG_CACHE, 1);
	for (unsigned i = 0; i < NR_SHAPE; i++)
		put_small((struct pf_key){ 1, i * UINT64_C(0x9e3779b97f4a7c15) });
	MUST(fill_percent() >= 60);
	world_free(&w);

	/* descending behind a leaf that is just full: 31 items of 512 bytes with their headers */
	world_new(&w, 1, BIG_CACHE, 1);
	for (unsigned i = 0; i < 31; i++)
		MUST(!world_put_one(&w, (struct model_item){ { 1, i }, 492, i }));
	for (unsigned i = 1000; i; i--)
		MUST(!world_put_one(&w, (struct model_item){ { 2, i }, 492, i }));
	MUST(fill_percent() >= 45);
	world_free(&w);
}
END_TEST

/* Emptied leaves leave ranges that belong to nobody's own range: at the beginning, in the middle, at the end, and below
 * the first child of an interior node. Keys that come back there are written, and found after that. */
START_TEST(gaps_are_filled_again)
{
	world_new(&w, (uint64_t)_i, TINY_CACHE, 1);
	/* three levels, so that there are interior nodes that are not the root */
	for (unsigned i = 0; i < 2200; i++)
		MUST(!world_put_one(&w, (struct model_item){ { 1, i * 100 + 50 }, 3000, i }));
	for (unsigned round = 0; round < 12; round++) {
		world_checkpoint(&w);
		world_walk_all(&w);
		world_reopen(&w);
		MUST(w.rig.super.root_level == 2);
		unsigned from = round ? (unsigned)rnd(&w, 2200) : 0, nr = (unsigned)rnd(&w, 60);
		for (unsigned i = from; i < from + nr; i++)
			MUST(!world_del_one(&w, (struct pf_key){ 1, i * 100 + 50 }));
		world_checkpoint(&w);
		world_walk_all(&w);
		for (unsigned i = from; i < from + nr && i < 2200; i++) {
			unsigned at = from + (i - from) * 7 % nr;
			if (rnd(&w, 3) && at < 2200)
				MUST(!world_put_one(&w,
						    (struct model_item){ { 1, at * 100 + rnd(&w, 100) }, 3000, i }));
		}
		world_compare(&w);
	}
	world_checkpoint(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

/* In every order of deletion: no root, no blocks. Half of the deletions before the checkpoint, half behind. */
START_TEST(emptied_tree_takes_no_space)
{
	world_new(&w, (uint64_t)_i, _i % 2 ? TINY_CACHE : BIG_CACHE, 1);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 5000; i++)
			put_small((struct pf_key){ 1, i * UINT64_C(0x9e3779b97f4a7c15) });
		world_checkpoint(&w);
		world_walk_all(&w);
		while (w.model.nr) {
			size_t at = _i / 2 == 0 ? 0 : _i / 2 == 1 ? w.model.nr - 1 : rnd(&w, w.model.nr);
			MUST(!world_del_one(&w, w.model.items[at].key));
			if (w.model.nr == 500) {
				MUST(fill_percent() >= 30); /* merged, not just thinned out */
				if (round)
					world_reopen(&w);
			}
		}
		world_compare(&w);
		world_checkpoint(&w);
		MUST(!w.rig.super.root.addr[0] && w.rig.super.root_level == 0);
		world_walk_all(&w);
		struct pf_tree_stats stats;
		pf_tree_stats(w.tree, &stats);
		MUST(!stats.dirty_nodes && !stats.frozen_nodes && !stats.clean_nodes);
		world_checkpoint(&w);
		MUST(!rig_stats(&w.rig).pending_blocks);
	}
	world_free(&w);
}
END_TEST

START_TEST(last_item_is_in_the_root)
{
	world_new(&w, (uint64_t)_i, TINY_CACHE, 1);
	for (unsigned i = 0; i < 20000; i++)
		put_small((struct pf_key){ 1, i });
	world_checkpoint(&w);
	MUST(w.rig.super.root_level >= 1);
	world_reopen(&w);
	size_t keep = rnd(&w, w.model.nr);
	while (w.model.nr > 1) {
		size_t at = keep ? 0 : 1;
		keep -= keep != 0;
		MUST(!world_del_one(&w, w.model.items[at].key));
	}
	world_checkpoint(&w);
	world_walk_all(&w);
	MUST(w.rig.super.root_level == 0 && w.nr_nodes == 1);
	world_free(&w);
}
END_TEST

/* -- reservation: an assertion in the tree fails when a txn runs out of nodes ---------------------------------------- */
static struct pf_key pattern_key(unsigned pattern, unsigned i, unsigned nr)
{
	switch (pattern) {
	case 0:
		return (struct pf_key){ 7, 1000000 + i * 1000 };
	case 1:
		return (struct pf_key){ 7, 1000000 + (nr - i) * 1000 };
	case 2: /* pairs, descending */
		return (struct pf_key){ 7, 1000000 + (nr - i / 2) * 1000 + i % 2 };
	case 3: /* alternating between both ends */
		return (struct pf_key){ 7, 1000000 + (i % 2 ? nr - i : nr + i) * 1000 };
	default:
		return (struct pf_key){ 7, 1000000 + rnd(&w, nr * 1000) };
	}
}

START_TEST(reservation_suffices)
{
	world_new(&w, (uint64_t)_i, BIG_CACHE, 1);
	for (unsigned round = 0; round < 60; round++) {
		unsigned nr = 1 + (unsigned)rnd(&w, rnd(&w, 3) ? 12 : 600), bytes = 0, pattern = (unsigned)rnd(&w, 5);
		unsigned max_len = (unsigned[]){ 0, 8, 300, PF_MAX_ITEM_BYTES }[rnd(&w, 4)];
		struct model_item *items = calloc(nr, sizeof(*items));
		for (unsigned i = 0; i < nr; i++) {
			unsigned len = rnd(&w, 4) ? max_len : (unsigned)rnd(&w, max_len + 1);
			items[i] = (struct model_item){ pattern_key(pattern, i, nr), len, rnd(&w, 1000) };
			bytes += PF_TXN_ITEM(len);
		}
		struct pf_txn txn;
		pf_txn_init(&txn, w.tree);
		pf_txn_want(&txn, (struct pf_key){ 7, 0 }, (struct pf_key){ 7, UINT64_MAX }, bytes);
		MUST(!pf_txn_lock(&txn));
		for (unsigned i = 0; i < nr; i++)
			world_put(&w, &txn, items[i]);
		pf_txn_end(&txn);
		free(items);
		if (rnd(&w, 4) == 0 && w.tree->freezing) {
			MUST(!world_write(&w));
			world_durable(&w);
		} else if (rnd(&w, 4) == 0 && !w.tree->freezing) {
			world_freeze(&w); /* copies are to be paid, too */
		}
	}
	world_compare(&w);
	world_free(&w);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("tree");
	TCase *t = tcase_create("tree");
	tcase_add_loop_test(t, follows_a_sorted_array, 0, 6);
	tcase_add_loop_test(t, puts_from_its_own_items, 0, 3);
	tcase_add_test(t, ascending_keys_fill_leaves);
	tcase_add_test(t, other_orders_fill_leaves_by_half);
	tcase_add_loop_test(t, gaps_are_filled_again, 0, 4);
	tcase_add_loop_test(t, emptied_tree_takes_no_space, 0, 6);
	tcase_add_loop_test(t, last_item_is_in_the_root, 0, 3);
	tcase_add_loop_test(t, reservation_suffices, 0, 20);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return rig_main(suite());
}
