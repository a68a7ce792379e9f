/* SPDX-License-Identifier: MIT
 *
 * The tree across checkpoints: changes before, between and behind freeze, write and durable; failed writes; space; threads.
 */
#include "tree_compare.h"

#include <pthread.h>
#include <time.h>

static struct world w;

static struct pf_key random_key(void)
{
	return (struct pf_key){ rnd(&w, 5), rnd(&w, 400) };
}

static void random_changes(unsigned nr)
{
	unsigned percent_del = 20 + (unsigned)rnd(&w, 60);
	for (unsigned i = 0; i < nr; i++) {
		struct pf_key key = random_key();
		unsigned len = (unsigned)rnd(&w, rnd(&w, 4) ? 200 : PF_MAX_ITEM_BYTES + 1);
		if (rnd(&w, 100) < percent_del)
			MUST(!world_del_one(&w, key));
		else
			MUST(!world_put_one(&w, (struct model_item){ key, len, rnd(&w, 1000) }));
		if (i % 8 == 0)
			world_compare_at(&w, random_key());
	}
}

START_TEST(changes_at_every_step_of_a_checkpoint)
{
	world_new(&w, (uint64_t)_i, (uint64_t[]){ 64 << 10, 1 << 20, 64 << 20 }[_i % 3], 1 + (unsigned)_i % 2);
	for (unsigned round = 0; round < 60; round++) {
		random_changes((unsigned)rnd(&w, 150));
		world_freeze(&w);
		random_changes((unsigned)rnd(&w, 100));
		if (rnd(&w, 12) == 0) { /* a crash: nothing of G */
			world_reopen(&w);
			world_compare(&w);
			continue;
		}
		MUST(!world_write(&w));
		random_changes((unsigned)rnd(&w, 100));
		world_compare(&w);
		world_durable(&w);
		world_walk(&w);
		world_compare(&w);
		if (rnd(&w, 12) == 0) { /* the changes of G+1 are gone, those of G are there */
			world_reopen(&w);
			world_compare(&w);
		}
		if (round % 10 == 9) {
			world_checkpoint(&w);
			world_walk_all(&w);
		}
	}
	world_free(&w);
}
END_TEST

/* The frozen nodes become clean one by one; in between some are changed that have had their turn, some that have not. */
START_TEST(changes_between_the_parts_of_durable)
{
	unsigned nr_parts = 0;
	world_new(&w, (uint64_t)_i, (uint64_t[]){ 64 << 10, 1 << 20, 64 << 20 }[_i % 3], 1 + (unsigned)_i % 2);
	for (unsigned round = 0; round < 25; round++) {
		random_changes((unsigned)rnd(&w, 150));
		world_freeze(&w);
		random_changes((unsigned)rnd(&w, 20));
		MUST(!world_write(&w));
		random_changes((unsigned)rnd(&w, 10));
		while (world_thaw(&w, 1 + (unsigned)rnd(&w, 3))) {
			nr_parts++;
			random_changes((unsigned)rnd(&w, 5));
			if (rnd(&w, 6) == 0)
				world_compare(&w);
		}
		MUST(!pf_tree_frozen(w.tree));
		world_thawed(&w);
		world_walk(&w);
		world_compare(&w);
		if (rnd(&w, 6) == 0) {
			world_reopen(&w);
			world_compare(&w);
		}
		world_checkpoint(&w);
		world_walk_all(&w);
	}
	MUST(nr_parts > 50);
	world_free(&w);
}
END_TEST

/* The committed tree still has nodes, the live one has none: they are gone with the next checkpoint. */
static void must_be_empty_soon(void)
{
	world_walk(&w);
	MUST(w.nr_nodes > 1);
	MUST(!rig_stats(&w.rig).node_blocks);
	world_checkpoint(&w);
	world_walk_all(&w);
	MUST(!w.nr_nodes);
}

/* A third of the nodes is deleted in each of the gaps: of those that have not had their turn the blocks come back all the same. */
START_TEST(emptied_between_the_parts_of_durable)
{
	world_new(&w, (uint64_t)_i, 1 << 20, 1);
	random_changes(500);
	world_freeze(&w);
	MUST(!world_write(&w));
	while (world_thaw(&w, 1)) {
		for (size_t nr = w.model.nr / 3 + 1; nr && w.model.nr; nr--)
			MUST(!world_del_one(&w, w.model.items[rnd(&w, w.model.nr)].key));
	}
	while (w.model.nr)
		MUST(!world_del_one(&w, w.model.items[0].key));
	world_thawed(&w);
	must_be_empty_soon();
	world_free(&w);
}
END_TEST

/* Nothing is left of the frozen tree in the live one when it becomes durable. */
START_TEST(emptied_while_frozen)
{
	world_new(&w, (uint64_t)_i, 1 << 20, 1);
	random_changes(500);
	if (_i % 2)
		world_checkpoint(&w);
	random_changes(100);
	world_freeze(&w);
	while (w.model.nr)
		MUST(!world_del_one(&w, w.model.items[rnd(&w, w.model.nr)].key));
	MUST(pf_tree_dirty(w.tree) == 0);
	MUST(!world_write(&w));
	world_durable(&w);
	must_be_empty_soon();
	random_changes(100);
	world_checkpoint(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

START_TEST(nothing_to_write_keeps_the_root)
{
	world_new(&w, 1, 1 << 20, 1);
	world_checkpoint(&w);
	MUST(!w.rig.super.root.addr[0]);
	random_changes(300);
	world_checkpoint(&w);
	struct pf_ptr root = w.rig.super.root;
	uint64_t writes = simdisk_count(simworld_disk(w.rig.world, 0), SIM_WRITE);
	world_freeze(&w);
	MUST(!pf_tree_write_frozen(w.tree, &w.super.root, &w.super.root_level));
	MUST(simdisk_count(simworld_disk(w.rig.world, 0), SIM_WRITE) == writes);
	MUST(memcmp(&root, &w.super.root, sizeof(root)) == 0);
	MUST(!world_write(&w));
	world_durable(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

START_TEST(writes_are_large_and_sequential)
{
	world_new(&w, 1, 64 << 20, 1);
	for (unsigned i = 0; i < 3000; i++)
		MUST(!world_put_one(&w, (struct model_item){ { 1, i * 7919 % 3000 }, 2000, i }));
	uint64_t writes = simdisk_count(simworld_disk(w.rig.world, 0), SIM_WRITE);
	uint64_t dirty = pf_tree_dirty(w.tree);
	MUST(dirty > 300);
	world_freeze(&w);
	MUST(pf_tree_dirty(w.tree) == 0);
	MUST(!pf_tree_write_frozen(w.tree, &w.super.root, &w.super.root_level));
	MUST(simdisk_count(simworld_disk(w.rig.world, 0), SIM_WRITE) - writes <= dirty / 8 + 3);
	MUST(!world_write(&w));
	world_durable(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

/* -- failing ---------------------------------------------------------------------------------------------------------- */
/* The n-th write fails, for each n; after that the call is repeated. */
START_TEST(failed_write_is_redone_elsewhere)
{
	world_new(&w, 1, 1 << 20, 2);
	for (uint64_t n = 0;; n++) {
		random_changes(200);
		world_freeze(&w);
		random_changes(20);
		struct sim_fault fault = {
			.ops = SIM_WRITE, .kind = _i ? SIM_TEAR : SIM_FAIL, .skip = n, .count = 1, .arg = 8192
		};
		unsigned number = simworld_add_fault(w.rig.world, &fault);
		int err = pf_tree_write_frozen(w.tree, &w.super.root, &w.super.root_level);
		bool hit = simworld_fault_hits(w.rig.world, number);
		MUST(err == (hit ? -EIO : 0));
		simworld_clear_faults(w.rig.world);
		random_changes(20);
		MUST(!world_write(&w));
		world_durable(&w);
		world_walk(&w);
		world_compare(&w);
		if (!hit)
			break;
	}
	/* where writes failed is free again */
	world_checkpoint(&w);
	world_walk_all(&w);
	world_reopen(&w);
	world_compare(&w);
	world_free(&w);
}
END_TEST

START_TEST(dead_member_is_left_for_the_other)
{
	world_new(&w, 1, 1 << 20, 2);
	random_changes(400);
	world_freeze(&w);
	struct sim_fault fault = { .disk = simworld_disk(w.rig.world, w.rig.super.meta_members[0]), .ops = SIM_WRITE };
	simworld_add_fault(w.rig.world, &fault);
	MUST(pf_tree_write_frozen(w.tree, &w.super.root, &w.super.root_level) == -EIO);
	MUST(!pf_tree_write_frozen(w.tree, &w.super.root, &w.super.root_level));
	MUST(pf_addr_member(w.super.root.addr[0]) == w.rig.super.meta_members[1]);
	simworld_clear_faults(w.rig.world);
	MUST(!world_write(&w));
	world_durable(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

START_TEST(full_pool_can_be_written_later)
{
	static struct pf_run runs[100000];
	unsigned nr = 0;
	world_new(&w, 1, 1 << 20, 2);
	random_changes(1000);
	/* all, but room for some nodes, in pieces between which nothing fits */
	while (!rig_alloc(&w.rig, PF_USE_NODE, 1000, PF_NODE_BLOCKS, &runs[nr]))
		nr++;
	for (unsigned i = 0; i < 5; i++) {
		runs[i].nr -= 6;
		pf_space_unalloc(w.rig.space, (struct pf_run){ runs[i].addr + runs[i].nr, 6 });
	}
	world_freeze(&w);
	random_changes(20);
	MUST(world_write(&w) == -ENOSPC);
	struct pf_space_stats stats = rig_stats(&w.rig);
	MUST(world_write(&w) == -ENOSPC); /* and nothing is lost by trying */
	MUST(rig_stats(&w.rig).free_blocks == stats.free_blocks);
	while (nr--)
		pf_space_unalloc(w.rig.space, runs[nr]);
	MUST(!world_write(&w));
	world_durable(&w);
	world_walk(&w);
	world_compare(&w);
	world_checkpoint(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

/* -- threads: readers, a writer, checkpoints ------------------------------------------------------------------------------ */
#define NR_SLOTS 2000u

static atomic_bool stop;
static atomic_uint nr_read, nr_written, nr_checkpoints;

/* Every slot has two items far from each other, which always tell the same version. */
struct slot {
	uint64_t version;
	uint8_t fill[304];
};

static struct pf_key slot_key(unsigned slot, unsigned side)
{
	return (struct pf_key){ side + 1, slot * 10 };
}

static uint64_t thread_rnd(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (*state >> 33) % below;
}

static int read_slot(struct pf_view *v, unsigned slot, unsigned side, uint64_t *version)
{
	struct pf_item item;
	int err = pf_view_get(v, slot_key(slot, side), &item);
	if (err)
		return err;
	MUST(item.len >= sizeof(uint64_t));
	memcpy(version, item.data, sizeof(*version));
	for (unsigned i = sizeof(*version); i < item.len; i++)
		MUST(((const uint8_t *)item.data)[i] == (uint8_t)*version);
	return 0;
}

static void *reader(void *arg)
{
	uint64_t state = (uintptr_t)arg;
	while (!atomic_load(&stop)) {
		unsigned slot = (unsigned)thread_rnd(&state, NR_SLOTS);
		uint64_t a, b;
		struct pf_view v;
		struct pf_item item;
		int err, err2;
		PF_VIEW (v, w.tree, err) {
			a = b = 0;
			err = read_slot(&v, slot, 0, &a);
			if (err == -PF_ENODE_ABSENT)
				continue;
			err2 = read_slot(&v, slot, 1, &b);
			if (err2 == -PF_ENODE_ABSENT) {
				err = err2;
				continue;
			}
			MUST(err == err2 && a == b);
		}
		MUST(!err || err == -ENOENT);
		PF_VIEW (v, w.tree, err) {
			err = thread_rnd(&state, 2) ? pf_view_next(&v, slot_key(slot, 0), &item)
						    : pf_view_prev(&v, slot_key(slot, 1), &item);
			MUST(err || item.key.lo % 10 == 0);
		}
		MUST(!err || err == -ENOENT);
		atomic_fetch_add(&nr_read, 1);
	}
	return NULL;
}

static void change_slots(uint64_t *state, uint64_t version)
{
	unsigned from = (unsigned)thread_rnd(state, NR_SLOTS), nr = 1 + (unsigned)thread_rnd(state, 10);
	bool del = thread_rnd(state, 3) == 0;
	unsigned len = 8 + (unsigned)thread_rnd(state, sizeof(struct slot) - 8);
	struct slot slot = { .version = version };
	memset(slot.fill, (uint8_t)version, sizeof(slot.fill));
	struct pf_txn txn;
	pf_txn_init(&txn, w.tree);
	for (unsigned side = 0; side < 2; side++)
		pf_txn_want(&txn, slot_key(from, side), slot_key(from + nr, side), nr * PF_TXN_ITEM(len));
	MUST(!pf_txn_lock(&txn));
	for (unsigned i = 0; i < nr; i++) {
		for (unsigned side = 0; side < 2; side++) {
			if (del)
				pf_txn_del(&txn, slot_key(from + i, side));
			else
				pf_txn_put(&txn, slot_key(from + i, side), &slot, len);
		}
	}
	pf_txn_end(&txn);
}

static void *writer(void *arg)
{
	uint64_t state = (uintptr_t)arg;
	for (uint64_t version = 1; !atomic_load(&stop); version++) {
		change_slots(&state, version);
		atomic_fetch_add(&nr_written, 1);
	}
	return NULL;
}

/* As world_checkpoint(), without what would have to stop the readers first. */
static void *checkpointer(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		uint32_t changed;
		struct pf_super super = w.rig.super;
		pf_tree_lock(w.tree);
		pf_tree_freeze(w.tree, ++w.rig.generation);
		pf_space_freeze(w.rig.space);
		pf_tree_unlock(w.tree);
		MUST(!pf_tree_write_frozen(w.tree, &super.root, &super.root_level));
		MUST(!pf_space_write(w.rig.space, w.rig.generation, &super, &changed));
		rig_flush(&w.rig);
		while (world_thaw(&w, 2))
			;
		pf_space_durable(w.rig.space);
		w.rig.super = super;
		atomic_fetch_add(&nr_checkpoints, 1);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t thread[5];
	world_new(&w, 1, (uint64_t[]){ 64 << 10, 1 << 20 }[_i], 1);
	atomic_store(&stop, false);
	pthread_create(&thread[0], NULL, writer, (void *)1);
	pthread_create(&thread[1], NULL, writer, (void *)2);
	pthread_create(&thread[2], NULL, checkpointer, NULL);
	pthread_create(&thread[3], NULL, reader, (void *)3);
	pthread_create(&thread[4], NULL, reader, (void *)4);
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	MUST(atomic_load(&nr_read) > 10 && atomic_load(&nr_written) > 10 && atomic_load(&nr_checkpoints) > 1);
	world_free(&w);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("tree_txg");
	TCase *t = tcase_create("tree_txg");
	tcase_add_loop_test(t, changes_at_every_step_of_a_checkpoint, 0, 9);
	tcase_add_loop_test(t, changes_between_the_parts_of_durable, 0, 9);
	tcase_add_loop_test(t, emptied_between_the_parts_of_durable, 0, 4);
	tcase_add_loop_test(t, emptied_while_frozen, 0, 6);
	tcase_add_test(t, nothing_to_write_keeps_the_root);
	tcase_add_test(t, writes_are_large_and_sequential);
	tcase_add_loop_test(t, failed_write_is_redone_elsewhere, 0, 2);
	tcase_add_test(t, dead_member_is_left_for_the_other);
	tcase_add_test(t, full_pool_can_be_written_later);
	tcase_add_loop_test(t, threads, 0, 2);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return rig_main(suite());
}
