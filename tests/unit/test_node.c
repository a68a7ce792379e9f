/* SPDX-License-Identifier: MIT
 *
 * Nodes as bytes: handling of items against a plain array, and pf_node_validate() as the gate (tree.h I5).
 */
#include "base/csum.h"
#include "tree/node.h"
#include "tree/tree.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 900

/* ck_assert() makes a system call each time, which is too much for loops like these. */
#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			ck_abort_msg("%s", #condition);                                                                \
	} while (0)

struct model_item {
	struct pf_key key;
	unsigned len;
	uint8_t fill;
};
struct model {
	struct model_item items[MAX_ITEMS];
	unsigned nr;
};

static const uint8_t uuid[16] = "0123456789abcde";

static uint64_t rnd_state;
static uint64_t rnd(uint64_t below)
{
	rnd_state = rnd_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (rnd_state >> 33) % below;
}

/* Kept for the next one: fresh memory costs page faults. */
static struct pf_node *spare;

static struct pf_node *new_node(unsigned level)
{
	struct pf_node *node = spare;
	if (node) {
		spare = node->chain;
	} else {
		node = calloc(1, sizeof(*node));
		node->buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE);
	}
	memset(node->buf, 0xa5, PF_NODE_SIZE);
	pf_node_init(node, level, PF_KEY_MIN, PF_KEY_MAX);
	return node;
}

static void free_node(struct pf_node *node)
{
	node->chain = spare;
	spare = node;
}

static void free_spares(void)
{
	while (spare) {
		struct pf_node *node = spare;
		spare = node->chain;
		free(node->buf);
		free(node);
	}
}

static struct pf_key random_key(void)
{
	return (struct pf_key){ rnd(8), rnd(1000) };
}

static unsigned random_len(void)
{
	switch (rnd(4)) {
	case 0:
		return 0;
	case 1:
		return (unsigned)rnd(PF_MAX_ITEM_BYTES + 1);
	default:
		return (unsigned)rnd(200);
	}
}

static void compare(const struct pf_node *leaf, const struct model *m, unsigned from, unsigned nr)
{
	MUST(pf_node_nr(leaf) == nr);
	for (unsigned i = 0; i < nr; i++) {
		const struct model_item *want = &m->items[from + i];
		unsigned len;
		const uint8_t *data = pf_leaf_data(leaf, i, &len);
		MUST(pf_key_cmp(pf_node_key(leaf, i), want->key) == 0);
		MUST(len == want->len);
		for (unsigned j = 0; j < len; j++)
			MUST(data[j] == want->fill);
	}
}

/* One random change of both; returns false when it did not fit. */
static bool change(struct pf_node *leaf, struct model *m)
{
	struct model_item item = { random_key(), random_len(), (uint8_t)rnd(256) };
	uint8_t data[PF_MAX_ITEM_BYTES];
	memset(data, item.fill, sizeof(data));
	bool found;
	unsigned i = pf_node_search(leaf, item.key, &found);
	if (found && (rnd(2) || item.len > m->items[i].len)) {
		pf_leaf_remove(leaf, i);
		memmove(&m->items[i], &m->items[i + 1], (m->nr - i - 1) * sizeof(item));
		m->nr--;
		return true;
	}
	if (found) {
		pf_leaf_overwrite(leaf, i, data, item.len);
		m->items[i] = item;
		return true;
	}
	if (!pf_leaf_fits(leaf, item.len))
		return false;
	pf_leaf_insert(leaf, i, item.key, data, item.len);
	memmove(&m->items[i + 1], &m->items[i], (m->nr - i) * sizeof(item));
	m->items[i] = item;
	m->nr++;
	return true;
}

static unsigned bytes_of(const struct model *m, unsigned from, unsigned to)
{
	unsigned bytes = 0;
	for (unsigned i = from; i < to; i++)
		bytes += m->items[i].len + (unsigned)sizeof(struct pf_disk_leaf_item);
	return bytes;
}

START_TEST(leaf_follows_a_plain_array)
{
	rnd_state = (uint64_t)_i + 1;
	struct pf_node *leaf = new_node(0);
	struct model *m = calloc(1, sizeof(*m));
	for (unsigned step = 0; step < 3000; step++) {
		change(leaf, m);
		MUST(pf_leaf_used(leaf) == bytes_of(m, 0, m->nr));
		if (step % 50 == 0)
			compare(leaf, m, 0, m->nr);
	}
	compare(leaf, m, 0, m->nr);

	/* the same after a round through the packed form */
	struct pf_node *packed = new_node(0);
	if (m->nr) {
		pf_node_pack(leaf, packed->buf);
		pf_addr addr[2] = { pf_addr_make(1, 77), 0 };
		uint64_t crc = pf_node_seal(packed->buf, uuid, addr, 9);
		struct pf_node_expect expect = { uuid, addr[0], 9, crc, 0, PF_KEY_MIN, PF_KEY_MAX };
		MUST(pf_node_validate(packed->buf, &expect) == 0);
		compare(packed, m, 0, m->nr);
	}

	/* in two, and joined again, into either */
	struct pf_node *right = new_node(0);
	unsigned from = m->nr / 3;
	pf_leaf_move_tail(leaf, from, right);
	compare(leaf, m, 0, from);
	compare(right, m, from, m->nr - from);
	if (_i % 2)
		pf_node_join(leaf, leaf, right);
	else
		pf_node_join(right, leaf, right);
	compare(_i % 2 ? leaf : right, m, 0, m->nr);
	free_node(leaf);
	free_node(right);
	free_node(packed);
	free(m);
}
END_TEST

START_TEST(even_split_leaves_room_on_both_sides)
{
	rnd_state = (uint64_t)_i + 1;
	struct pf_node *leaf = new_node(0);
	struct model *m = calloc(1, sizeof(*m));
	while (change(leaf, m))
		;
	for (unsigned round = 0; round < 300; round++) {
		unsigned len = (unsigned)rnd(PF_MAX_ITEM_BYTES + 1), at = (unsigned)rnd(m->nr + 1);
		if (pf_leaf_fits(leaf, len)) {
			change(leaf, m);
			continue;
		}
		unsigned from = pf_leaf_split_point(leaf, at, len),
			 item = len + (unsigned)sizeof(struct pf_disk_leaf_item);
		MUST(from >= 1);
		MUST(from <= m->nr);
		unsigned left = at < from ? bytes_of(m, 0, from - 1) + item : bytes_of(m, 0, from);
		unsigned right = bytes_of(m, 0, m->nr) + item - left;
		MUST(left + PF_LEAF_ROOM <= PF_NODE_ROOM);
		MUST(right + PF_LEAF_ROOM <= PF_NODE_ROOM);
	}
	free_node(leaf);
	free(m);
}
END_TEST

START_TEST(inner_routes)
{
	struct pf_node *inner = new_node(3);
	for (unsigned i = 0; i < PF_NODE_FANOUT; i++)
		pf_inner_insert(inner, i, (struct pf_key){ 1, 10 * i + 10 }, 100 + i);
	MUST(pf_node_route(inner, (struct pf_key){ 0, 0 }) == 0);
	MUST(pf_node_route(inner, (struct pf_key){ 1, 9 }) == 0);
	for (unsigned i = 0; i < PF_NODE_FANOUT; i++) {
		MUST(pf_node_route(inner, (struct pf_key){ 1, 10 * i + 10 }) == i);
		MUST(pf_node_route(inner, (struct pf_key){ 1, 10 * i + 19 }) == i);
		MUST(pf_node_child(inner, i).addr[0] == 100 + i);
	}
	MUST(pf_node_route(inner, PF_KEY_MAX) == PF_NODE_FANOUT - 1);
	MUST(pf_key_cmp(pf_node_child_upper(inner, 4), (struct pf_key){ 1, 60 }) == 0);
	MUST(pf_key_cmp(pf_node_child_upper(inner, PF_NODE_FANOUT - 1), PF_KEY_MAX) == 0);
	struct pf_node *right = new_node(3);
	pf_inner_move_tail(inner, 100, right);
	MUST(pf_node_nr(inner) == 100);
	MUST(pf_node_child(right, 0).addr[0] == 200);
	pf_inner_remove(right, 0);
	MUST(pf_node_child(right, 0).addr[0] == 201);
	pf_node_join(inner, inner, right);
	MUST(pf_node_nr(inner) == PF_NODE_FANOUT - 1);
	MUST(pf_node_child(inner, 100).addr[0] == 201);
	free_node(inner);
	free_node(right);
}
END_TEST

/* -- the gate ------------------------------------------------------------------------------------------------------- */
struct sealed {
	uint8_t *buf;
	struct pf_node_expect expect;
};

static void reseal(struct sealed *s)
{
	struct pf_disk_node_head *head = (void *)s->buf;
	head->crc = pf_le64(0);
	s->expect.crc = pf_crc64(s->buf, PF_NODE_SIZE);
	head->crc = pf_le64(s->expect.crc);
}

static void fresh(struct sealed *s, unsigned level)
{
	struct pf_node *node = new_node(level);
	pf_node_set_range(node, (struct pf_key){ 1, 0 }, (struct pf_key){ 5, 0 });
	uint8_t data[500];
	memset(data, 0x77, sizeof(data));
	for (unsigned i = 0; i < 30; i++) {
		struct pf_key key = { 1 + i / 10, 10 * (i % 10) + 3 };
		if (level) {
			struct pf_ptr ptr = { { pf_addr_make(i % 3, 1000 + 4 * i), 0 }, 5 + i % 3, 0x1234 + i };
			pf_inner_insert(node, i, key, ptr.addr[0]);
			pf_inner_set_ptr(node, i, ptr);
		} else {
			pf_leaf_insert(node, i, key, data, (unsigned)(i * 13 % 500));
		}
	}
	s->expect = (struct pf_node_expect){ uuid, pf_addr_make(2, 4444), 7, 0, level, { 1, 0 }, { 5, 0 } };
	pf_addr addr[2] = { s->expect.addr, 0 };
	pf_node_pack(node, s->buf);
	s->expect.crc = pf_node_seal(s->buf, uuid, addr, 7);
	free_node(node);
	MUST(pf_node_validate(s->buf, &s->expect) == 0);
}

/* Applies @change to a fresh node, seals it with a right CRC, and expects @err. */
#define REFUSED(level, err, change)                                                                                    \
	do {                                                                                                           \
		fresh(&s, level);                                                                                      \
		change;                                                                                                \
		reseal(&s);                                                                                            \
		ck_assert_msg(pf_node_validate(s.buf, &s.expect) == (err), "%s", #change);                             \
	} while (0)

START_TEST(gate_names_what_is_wrong)
{
	struct sealed s = { .buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE) };
	struct pf_disk_node_head *head = (void *)s.buf;
	struct pf_disk_leaf_item *item = (void *)(s.buf + sizeof(*head));
	struct pf_disk_child *child = (void *)item;

	for (unsigned level = 0; level < 2; level++) {
		REFUSED(level, -PF_ENODE_MAGIC, head->magic.raw ^= 1);
		REFUSED(level, -PF_ENODE_MAGIC, head->pool_uuid[15] ^= 1);
		REFUSED(level, -PF_ENODE_PLACE, head->addr[0].raw ^= 1);
		REFUSED(level, -PF_ENODE_PLACE, head->generation.raw ^= 1);
		REFUSED(level, -PF_ENODE_PLACE, head->level ^= 1);
		REFUSED(level, -PF_ENODE_PLACE, head->tree = 1);
		REFUSED(level, -PF_ENODE_PLACE, s.expect.level = 2);
		REFUSED(level, -PF_ENODE_PLACE, s.expect.lower.lo = 1);
		REFUSED(level, -PF_ENODE_PLACE, (s.expect.upper = (struct pf_key){ 4, UINT64_MAX }));
		REFUSED(level, -PF_ENODE_PLACE, head->upper = head->lower);
		REFUSED(level, 0, s.expect.lower.hi = 0);
		REFUSED(level, 0, s.expect.upper = PF_KEY_MAX);
		REFUSED(level, -PF_ENODE_INVALID, head->nr_items = pf_le16(0));
		REFUSED(level, -PF_ENODE_INVALID, head->nr_items = pf_le16(UINT16_MAX));
		REFUSED(level, -PF_ENODE_INVALID, head->data_start.raw ^= 1);
		REFUSED(level, 0, (head->addr[1] = head->addr[0], head->addr[0] = pf_le64(55)));

		/* right in itself, but not the version that the parent knows; and changed without a new CRC */
		fresh(&s, level);
		s.expect.crc ^= 1;
		MUST(pf_node_validate(s.buf, &s.expect) == -PF_ENODE_PLACE);
		fresh(&s, level);
		s.buf[PF_NODE_SIZE - 1] ^= 0x80;
		MUST(pf_node_validate(s.buf, &s.expect) == -PF_ENODE_CSUM);
		fresh(&s, level);
		head->crc.raw ^= 1;
		MUST(pf_node_validate(s.buf, &s.expect) == -PF_ENODE_CSUM);
	}
	REFUSED(0, -PF_ENODE_INVALID, item[3].key = item[4].key);
	REFUSED(0, -PF_ENODE_INVALID, item[3].key.hi = pf_le64(9));
	REFUSED(0, -PF_ENODE_INVALID, item[0].key.hi = pf_le64(0));
	REFUSED(0, -PF_ENODE_INVALID, item[29].key.hi = pf_le64(5));
	REFUSED(0, -PF_ENODE_INVALID, item[3].offset.raw ^= 1);
	REFUSED(0, -PF_ENODE_INVALID, item[3].len = pf_le16(UINT16_MAX));
	REFUSED(0, -PF_ENODE_INVALID, item[29].len = pf_le16(PF_MAX_ITEM_BYTES + 1));
	REFUSED(1, -PF_ENODE_INVALID, child[3].key = child[4].key);
	REFUSED(1, -PF_ENODE_INVALID, child[0].key.hi = pf_le64(0));
	REFUSED(1, -PF_ENODE_INVALID, child[29].key.hi = pf_le64(5));
	REFUSED(1, -PF_ENODE_INVALID, child[3].ptr.addr[0] = pf_le64(0));
	REFUSED(1, -PF_ENODE_INVALID, child[3].ptr.addr[0] = pf_le64(pf_addr_make(PF_VIRTUAL_MEMBER, 3)));
	REFUSED(1, -PF_ENODE_INVALID, child[3].ptr.addr[0] = pf_le64(UINT64_C(1) << 50));
	REFUSED(1, -PF_ENODE_INVALID, child[3].ptr.addr[1] = child[3].ptr.addr[0]);
	REFUSED(1, -PF_ENODE_INVALID, child[3].ptr.addr[1] = pf_le64(pf_addr_make(32, 3)));
	REFUSED(1, -PF_ENODE_INVALID, child[3].ptr.generation = pf_le64(8));
	REFUSED(1, 0, child[3].ptr.addr[1] = pf_le64(pf_addr_make(1, 3)));
	free(s.buf);
}
END_TEST

START_TEST(every_flipped_bit_is_found)
{
	struct sealed s = { .buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE) };
	fresh(&s, (unsigned)_i);
	for (unsigned i = 0; i < PF_NODE_SIZE * 8; i += i < 1000 * 8 ? 1 : 37) {
		s.buf[i / 8] ^= (uint8_t)(1 << i % 8);
		int err = pf_node_validate(s.buf, &s.expect);
		MUST(err == (i < 8 * 8 || (i >= 16 * 8 && i < 32 * 8) ? -PF_ENODE_MAGIC : -PF_ENODE_CSUM));
		s.buf[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	free(s.buf);
}
END_TEST

/* What the tree does with an accepted node: under ASan this is the proof that it may. */
static void use(const uint8_t *buf, const struct pf_node_expect *expect)
{
	struct pf_node *node = new_node(0);
	memcpy(node->buf, buf, PF_NODE_SIZE);
	bool found;
	MUST(pf_node_level(node) == expect->level);
	for (unsigned i = 0; i < pf_node_nr(node); i++) {
		MUST(pf_node_search(node, pf_node_key(node, i), &found) == i);
		MUST(found);
		MUST(pf_node_route(node, pf_node_key(node, i)) == i);
		if (expect->level) {
			MUST(pf_node_child(node, i).addr[0] != 0);
		} else {
			unsigned len;
			const uint8_t *data = pf_leaf_data(node, i, &len);
			volatile uint8_t sum = 0;
			for (unsigned j = 0; j < len; j++)
				sum = (uint8_t)(sum + data[j]);
		}
	}
	struct pf_node *right = new_node(expect->level);
	if (expect->level) {
		pf_inner_move_tail(node, pf_node_nr(node) / 2, right);
	} else {
		uint8_t data[PF_MAX_ITEM_BYTES] = { 0 };
		MUST(pf_leaf_used(node) <= PF_NODE_ROOM);
		if (!pf_leaf_fits(node, sizeof(data)))
			MUST(pf_leaf_split_point(node, 0, sizeof(data)) >= 1);
		pf_leaf_move_tail(node, pf_node_nr(node) / 2, right);
		pf_leaf_insert(node, 0, pf_node_lower(node), data, sizeof(data));
		while (pf_node_nr(node))
			pf_leaf_remove(node, 0);
	}
	free_node(node);
	free_node(right);
}

START_TEST(gate_withstands_forged_nodes)
{
	rnd_state = (uint64_t)_i * 977 + 1;
	struct sealed s = { .buf = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE) };
	unsigned nr_accepted = 0;
	for (unsigned round = 0; round < 3000; round++) {
		fresh(&s, round % 2);
		for (uint64_t n = rnd(4) + 1; n; n--) {
			/* mostly in the head and the entries, where the structure is */
			uint64_t at = rnd(4) ? rnd(2) ? 32 + rnd(100) : rnd(1600) : rnd(PF_NODE_SIZE);
			switch (rnd(3)) {
			case 0:
				s.buf[at] ^= (uint8_t)(1 << rnd(8));
				break;
			case 1:
				s.buf[at] = (uint8_t)(rnd(2) ? 0xff : 0);
				break;
			default:
				s.buf[at] = (uint8_t)(s.buf[at] + (rnd(2) ? 1 : 0xff));
			}
		}
		reseal(&s);
		int err = pf_node_validate(s.buf, &s.expect);
		MUST(err <= 0);
		if (!err) {
			nr_accepted++;
			use(s.buf, &s.expect);
		}
	}
	MUST(nr_accepted > 0);
	free(s.buf);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("node");
	TCase *t = tcase_create("node");
	tcase_add_loop_test(t, leaf_follows_a_plain_array, 0, 20);
	tcase_add_loop_test(t, even_split_leaves_room_on_both_sides, 0, 20);
	tcase_add_test(t, inner_routes);
	tcase_add_test(t, gate_names_what_is_wrong);
	tcase_add_loop_test(t, every_flipped_bit_is_found, 0, 2);
	tcase_add_loop_test(t, gate_withstands_forged_nodes, 0, 4);
	tcase_add_checked_fixture(t, NULL, free_spares);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
