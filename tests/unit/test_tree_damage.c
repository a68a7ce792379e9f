/* SPDX-License-Identifier: MIT
 *
 * The tree over bad disks: read errors, flipped bits, lost and misdirected writes, and trees that someone has forged with
 * right checksums. An operation gives the right item or an error, never a wrong item, a crash or a loop.
 */
#include "tree_compare.h"

#include "base/csum.h"

#define TINY_CACHE (64 << 10)
#define BIG_CACHE  (64 << 20)

static struct world w;
static unsigned nr_messages;
static char last_message[1024];

static void keep_message(void *arg, enum pf_log_level level, const char *message)
{
	(void)arg;
	/* with another copy that is good, nothing is lost */
	MUST(level == (strstr(message, "the other copy is good") ? PF_LOG_WARNING : PF_LOG_ERROR));
	nr_messages++;
	snprintf(last_message, sizeof(last_message), "%s", message);
}

static bool is_damage(int err)
{
	return err == -EIO || pf_is_damage(err);
}

static void fill_tree(unsigned nr, unsigned len)
{
	for (unsigned i = 0; i < nr; i++)
		MUST(!world_put_one(&w, (struct model_item){ { 1 + i % 3, i * 10 }, len, i }));
	world_checkpoint(&w);
	world_reopen(&w);
	w.rig.env.log = keep_message;
}

/* Forgets what is in memory. */
static void cold(void)
{
	pf_tree_close(w.tree);
	w.rig.set.super.root = w.rig.super.root;
	world_open_tree(&w);
}

/* Looks for every item; returns how many could not be read. */
static size_t read_all(int only)
{
	size_t nr_bad = 0;
	for (size_t i = 0; i < w.model.nr; i++) {
		const struct model_item *want = &w.model.items[i];
		uint8_t data[PF_MAX_ITEM_BYTES];
		int len = pf_tree_get(w.tree, want->key, data, sizeof(data));
		if (len >= 0) {
			MUST(item_is(want, want->key, data, (unsigned)len));
			continue;
		}
		MUST(is_damage(len) && (!only || len == only));
		nr_bad++;
	}
	return nr_bad;
}

/* -- reading fails ---------------------------------------------------------------------------------------------------- */
START_TEST(read_error_is_one_operation_s)
{
	world_new(&w, 1, TINY_CACHE, 1);
	fill_tree(600, 500);
	for (unsigned n = 0; n < 50; n++) {
		struct sim_fault fault = { .ops = SIM_READ, .skip = n, .count = 1 };
		cold();
		unsigned number = simworld_add_fault(w.rig.world, &fault);
		MUST(read_all(-EIO) == simworld_fault_hits(w.rig.world, number));
		MUST(n > 20 || simworld_fault_hits(w.rig.world, number));
		simworld_clear_faults(w.rig.world);
		MUST(!read_all(0));
	}
	world_free(&w);
}
END_TEST

START_TEST(read_error_in_a_txn_changes_nothing)
{
	world_new(&w, 1, TINY_CACHE, 1);
	fill_tree(600, 500);
	unsigned nr_failed = 0;
	for (unsigned n = 0; n < 100; n++) {
		struct sim_fault fault = { .ops = SIM_READ, .skip = n / 2 % 2, .count = 1 };
		struct model_item item = { { 1 + rnd(&w, 3), rnd(&w, 6000) }, 700, n };
		simworld_add_fault(w.rig.world, &fault);
		int err = n % 2 ? world_put_one(&w, item) : world_del_one(&w, item.key);
		MUST(!err || err == -EIO);
		nr_failed += err != 0;
		simworld_clear_faults(w.rig.world);
		world_compare(&w);
		if (n % 10 == 9)
			world_checkpoint(&w);
	}
	MUST(nr_failed > 10);
	world_checkpoint(&w);
	world_walk_all(&w);
	world_free(&w);
}
END_TEST

START_TEST(absent_root_cannot_be_read)
{
	world_new(&w, 1, TINY_CACHE, 1);
	fill_tree(100, 500);
	struct sim_fault fault = { .ops = SIM_READ };
	simworld_add_fault(w.rig.world, &fault);
	MUST(pf_tree_get(w.tree, (struct pf_key){ 1, 0 }, NULL, 0) == -EIO);
	struct pf_txn txn;
	pf_txn_init(&txn, w.tree);
	pf_txn_want(&txn, PF_KEY_MIN, PF_KEY_MAX, 1000);
	MUST(pf_txn_lock(&txn) == -EIO);
	pf_txn_end(&txn);
	simworld_clear_faults(w.rig.world);
	world_compare(&w);
	MUST(nr_messages > 0 && strstr(last_message, "disk0") && strstr(last_message, "offset"));
	world_free(&w);
}
END_TEST

/* -- bytes change ------------------------------------------------------------------------------------------------------- */
/* Addresses of all nodes, in no order. */
static unsigned node_addrs(struct pf_ptr ptr, unsigned level, pf_addr *addrs, unsigned nr)
{
	struct pf_node node = { .buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE) };
	MUST(!pf_set_read(&w.rig.set, ptr.addr[0], node.buf, PF_NODE_BLOCKS));
	addrs[nr++] = ptr.addr[0];
	for (unsigned i = 0; level && i < pf_node_nr(&node); i++)
		nr = node_addrs(pf_node_child(&node, i), level - 1, addrs, nr);
	free(node.buf);
	return nr;
}

START_TEST(flipped_bits_are_never_believed)
{
	static pf_addr addrs[1000];
	world_new(&w, (uint64_t)_i, _i % 2 ? TINY_CACHE : BIG_CACHE, 1);
	fill_tree(600, 500);
	unsigned nr = node_addrs(w.rig.super.root, w.rig.super.root_level, addrs, 0);
	MUST(nr > 20);
	struct simdisk *disk = simworld_disk(w.rig.world, 0);
	for (unsigned round = 0; round < 60; round++) {
		pf_addr addr = addrs[round < nr ? round : rnd(&w, nr)];
		uint64_t off = pf_addr_block(addr) * PF_BLOCK_SIZE + rnd(&w, PF_NODE_SIZE);
		unsigned bit = (unsigned)rnd(&w, 8);
		simdisk_flip_bit(disk, off, bit);
		cold();
		nr_messages = 0;
		size_t nr_bad = read_all(0);
		MUST(nr_bad > 0);
		MUST((nr_bad == w.model.nr) == (addr == w.rig.super.root.addr[0]));
		MUST(nr_messages == 1); /* not once for each look-up */
		simdisk_flip_bit(disk, off, bit);
		MUST(!read_all(0)); /* an error is not remembered */
	}
	world_free(&w);
}
END_TEST

/* What a node's place holds when the last write to it never came, or another node's write did. */
START_TEST(stale_and_misplaced_nodes_are_told)
{
	static pf_addr addrs[1000];
	static uint8_t old[PF_NODE_SIZE], now[PF_NODE_SIZE];
	world_new(&w, 1, BIG_CACHE, 1);
	fill_tree(600, 500);
	unsigned nr = node_addrs(w.rig.super.root, w.rig.super.root_level, addrs, 0);
	struct simdisk *disk = simworld_disk(w.rig.world, 0);
	for (unsigned i = 1; i < nr; i++) {
		uint64_t off = pf_addr_block(addrs[i]) * PF_BLOCK_SIZE;
		simdisk_peek(disk, off, now, sizeof(now));
		simdisk_peek(disk, pf_addr_block(addrs[i - 1]) * PF_BLOCK_SIZE, old, sizeof(old));
		simdisk_poke(disk, off, old, sizeof(old));
		cold();
		MUST(read_all(-PF_ENODE_PLACE) > 0);
		memset(old, 0, sizeof(old));
		simdisk_poke(disk, off, old, sizeof(old));
		cold();
		MUST(read_all(-PF_ENODE_MAGIC) > 0);
		simdisk_poke(disk, off, now, sizeof(now));
	}
	world_free(&w);
}
END_TEST

/* -- forged trees: whoever made them knows our checksum ------------------------------------------------------------------- */
static struct pf_node forged[2]; /* root and one leaf */
static uint8_t genuine[2][PF_NODE_SIZE];
static pf_addr forged_addr[2];

static void read_forged(unsigned i, pf_addr addr)
{
	forged_addr[i] = addr;
	simdisk_peek(simworld_disk(w.rig.world, 0), pf_addr_block(addr) * PF_BLOCK_SIZE, genuine[i], PF_NODE_SIZE);
	memcpy(forged[i].buf, genuine[i], PF_NODE_SIZE);
}

static void undo_forgery(void)
{
	for (unsigned i = 0; i < 2; i++) {
		uint64_t off = pf_addr_block(forged_addr[i]) * PF_BLOCK_SIZE;
		if (off)
			simdisk_poke(simworld_disk(w.rig.world, 0), off, genuine[i], PF_NODE_SIZE);
		forged_addr[i] = 0;
	}
}

static uint64_t write_forged(struct pf_node *node, pf_addr addr)
{
	struct pf_disk_node_head *head = pf_node_head(node);
	head->crc = pf_le64(0);
	uint64_t crc = pf_crc64(node->buf, PF_NODE_SIZE);
	head->crc = pf_le64(crc);
	simdisk_poke(simworld_disk(w.rig.world, 0), pf_addr_block(addr) * PF_BLOCK_SIZE, node->buf, PF_NODE_SIZE);
	return crc;
}

static void scribble(struct pf_node *node)
{
	size_t entry = pf_node_level(node) ? sizeof(struct pf_disk_child) : sizeof(struct pf_disk_leaf_item);
	size_t head = sizeof(struct pf_disk_node_head), end = head + entry * pf_node_nr(node);
	for (uint64_t n = rnd(&w, 3); n; n--) {
		uint64_t at = rnd(&w, 3) ? 56 + rnd(&w, head - 56) : head + rnd(&w, end - head);
		node->buf[at] = (uint8_t)(rnd(&w, 2) ? node->buf[at] ^ 1u << rnd(&w, 8) : rnd(&w, 256));
	}
}

/* Pointers of the root led elsewhere: to the same node, to the root itself, with another's key. */
static void redirect(struct pf_node *root)
{
	struct pf_disk_child *children = pf_node_children(root);
	unsigned nr = pf_node_nr(root), a = (unsigned)rnd(&w, nr), b = (unsigned)rnd(&w, nr);
	switch (rnd(&w, 4)) {
	case 0:
		children[a].ptr = children[b].ptr;
		break;
	case 1:
		children[a].ptr.addr[0] = pf_le64(w.rig.super.root.addr[0]);
		break;
	case 2: { /* the bound between two moved: keys beyond it lie in the wrong child */
		struct pf_disk_key key = children[a].key;
		children[a].key.lo.raw += 1u << rnd(&w, 12);
		if (a + 1 < nr && pf_key_cmp(pf_key_get(children[a].key), pf_key_get(children[a + 1].key)) >= 0)
			children[a].key = key;
		break;
	}
	default:
		children[a].ptr = children[b].ptr;
		pf_node_head(root)->nr_items = pf_le16((uint16_t)(a + 1));
	}
}

static void forge(void)
{
	pf_addr root = w.rig.super.root.addr[0];
	read_forged(0, root);
	if (rnd(&w, 2)) {
		redirect(&forged[0]);
	} else {
		unsigned i = (unsigned)rnd(&w, pf_node_nr(&forged[0]));
		struct pf_ptr ptr = pf_node_child(&forged[0], i);
		read_forged(1, ptr.addr[0]);
		scribble(&forged[1]);
		ptr.crc = write_forged(&forged[1], ptr.addr[0]);
		pf_inner_set_ptr(&forged[0], i, ptr);
	}
	if (rnd(&w, 3) == 0)
		scribble(&forged[0]);
	w.rig.super.root.crc = write_forged(&forged[0], root);
}

/* Forward and backward by next and prev: keys go one way only, so it ends. */
static void run_through(void)
{
	for (unsigned back = 0; back < 2; back++) {
		struct pf_key key = back ? PF_KEY_MAX : PF_KEY_MIN;
		for (;;) {
			struct pf_view v;
			struct pf_item item = { .len = 0 };
			volatile uint8_t sum = 0;
			int err;
			PF_VIEW (v, w.tree, err) {
				err = back ? pf_view_prev(&v, key, &item) : pf_view_next(&v, key, &item);
				for (unsigned i = 0; !err && i < item.len; i++)
					sum = (uint8_t)(sum + ((const uint8_t *)item.data)[i]);
			}
			if (err) {
				MUST(err == -ENOENT || is_damage(err));
				break;
			}
			MUST(back ? pf_key_cmp(item.key, key) <= 0 : pf_key_cmp(item.key, key) >= 0);
			key = item.key;
			if (back ? key.lo-- == 0 && key.hi-- == 0 : key.lo++ == UINT64_MAX && key.hi++ == UINT64_MAX)
				break;
		}
	}
}

START_TEST(forged_trees_do_no_harm)
{
	for (unsigned i = 0; i < 2; i++)
		forged[i].buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE);
	world_new(&w, (uint64_t)_i, _i % 2 ? TINY_CACHE : BIG_CACHE, 1);
	fill_tree(400, 300);
	MUST(w.rig.super.root_level == 1);
	struct pf_super super = w.rig.super;
	unsigned nr_refused = 0, nr_changed = 0;
	for (unsigned round = 0; round < 150; round++) {
		forge();
		cold();
		run_through();
		for (unsigned n = 0; n < 40; n++) {
			struct model_item item = { { rnd(&w, 5), rnd(&w, 4100) }, (unsigned)rnd(&w, 900), n };
			int err = n % 2 ? world_put_one(&w, item) : world_del_one(&w, item.key);
			MUST(!err || is_damage(err));
			nr_refused += err != 0;
			nr_changed += err == 0;
		}
		run_through();
		/* back to what it was; the changes were never written */
		pf_tree_close(w.tree);
		rig_detach(&w.rig);
		undo_forgery();
		w.rig.super = super;
		MUST(!rig_open(&w.rig, false));
		w.rig.env.log = keep_message;
		world_open_tree(&w);
	}
	MUST(nr_refused > 100 && nr_changed > 100);
	model_copy(&w.model, &w.committed);
	world_compare(&w);
	world_free(&w);
	free(forged[0].buf);
	free(forged[1].buf);
}
END_TEST

/* Two pointers to one place, whose content changes between their uses: each is believed only for what it says. */
START_TEST(one_place_under_two_parents)
{
	static uint8_t first[PF_NODE_SIZE];
	uint8_t data[PF_MAX_ITEM_BYTES];
	for (unsigned i = 0; i < 2; i++)
		forged[i].buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE);
	world_new(&w, 1, BIG_CACHE, 1);
	fill_tree(400, 300);
	struct simdisk *disk = simworld_disk(w.rig.world, 0);
	read_forged(0, w.rig.super.root.addr[0]);
	struct pf_ptr a = pf_node_child(&forged[0], 0), b = pf_node_child(&forged[0], 1);
	bool found;
	struct pf_key key_a = w.model.items[0].key;
	struct pf_key key_b = w.model.items[model_find(&w.model, pf_node_key(&forged[0], 1), &found)].key;
	simdisk_peek(disk, pf_addr_block(a.addr[0]) * PF_BLOCK_SIZE, first, sizeof(first));

	/* what child 1 holds, as if it had been written where child 0 lies */
	read_forged(1, b.addr[0]);
	pf_node_head(&forged[1])->addr[0] = pf_le64(a.addr[0]);
	b.addr[0] = a.addr[0];
	b.crc = write_forged(&forged[1], a.addr[0]);
	simdisk_poke(disk, pf_addr_block(a.addr[0]) * PF_BLOCK_SIZE, first, sizeof(first));
	pf_inner_set_ptr(&forged[0], 1, b);
	w.rig.super.root.crc = write_forged(&forged[0], w.rig.super.root.addr[0]);
	cold();

	MUST(pf_tree_get(w.tree, key_a, data, sizeof(data)) >= 0);
	MUST(is_damage(pf_tree_get(w.tree, key_b, data, sizeof(data))));
	MUST(pf_tree_get(w.tree, key_a, data, sizeof(data)) >= 0);
	simdisk_poke(disk, pf_addr_block(a.addr[0]) * PF_BLOCK_SIZE, forged[1].buf, PF_NODE_SIZE);
	MUST(pf_tree_get(w.tree, key_b, data, sizeof(data)) >= 0);
	MUST(is_damage(pf_tree_get(w.tree, key_a, data, sizeof(data))));
	MUST(pf_tree_get(w.tree, key_b, data, sizeof(data)) >= 0);
	world_free(&w);
	free(forged[0].buf);
	free(forged[1].buf);
}
END_TEST

/* A node in two places: one is enough, and both are told when they are bad. */
START_TEST(second_copy_helps_out)
{
	forged[0].buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE);
	world_new(&w, 1, TINY_CACHE, 1);
	fill_tree(400, 300);
	struct simdisk *disk = simworld_disk(w.rig.world, 0);
	struct pf_ptr *root = &w.rig.super.root;
	struct pf_run run;
	MUST(!rig_alloc(&w.rig, PF_USE_NODE, PF_NODE_BLOCKS, PF_NODE_BLOCKS, &run));
	read_forged(0, root->addr[0]);
	root->addr[1] = run.addr;
	pf_node_head(&forged[0])->addr[1] = pf_le64(run.addr);
	root->crc = write_forged(&forged[0], root->addr[0]);
	write_forged(&forged[0], run.addr);
	for (unsigned bad = 0; bad < 4; bad++) { /* bit i: copy i */
		for (unsigned i = 0; i < 2; i++) {
			if (bad >> i & 1)
				simdisk_flip_bit(disk, pf_addr_block(root->addr[i]) * PF_BLOCK_SIZE + 5000, 3);
		}
		nr_messages = 0;
		cold();
		uint64_t nr_errors = w.rig.set.members[0].io->nr_errors;
		MUST(read_all(0) == (bad == 3 ? w.model.nr : 0));
		MUST(nr_messages == (bad == 3 ? 2 : bad & 1));
		MUST(w.rig.set.members[0].io->nr_errors - nr_errors == nr_messages);
		MUST(!nr_messages || (strstr(last_message, "the other copy is good") != NULL) == (bad != 3));
		write_forged(&forged[0], root->addr[0]);
		write_forged(&forged[0], root->addr[1]);
	}
	world_free(&w);
	free(forged[0].buf);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("tree_damage");
	TCase *t = tcase_create("tree_damage");
	tcase_add_test(t, read_error_is_one_operation_s);
	tcase_add_test(t, read_error_in_a_txn_changes_nothing);
	tcase_add_test(t, absent_root_cannot_be_read);
	tcase_add_loop_test(t, flipped_bits_are_never_believed, 0, 2);
	tcase_add_test(t, stale_and_misplaced_nodes_are_told);
	tcase_add_loop_test(t, forged_trees_do_no_harm, 0, 6);
	tcase_add_test(t, one_place_under_two_parents);
	tcase_add_test(t, second_copy_helps_out);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return rig_main(suite());
}
