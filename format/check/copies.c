/* SPDX-License-Identifier: MIT */
#include "check/copies.h"

#include "block/pressure.h"
#include "check/walk.h"
#include "commit/checkpoint.h"
#include "pool/pool_int.h"

#include <inttypes.h>

#define BATCH_NODES 256u

/* -- is there room ------------------------------------------------------------------------------------------------ */
struct census {
	uint64_t single[PF_MAX_MEMBERS]; /* nodes with one copy, by the member on which it lies */
	uint64_t nr_single;
};

static int count_node(void *arg, const struct pf_walk_node *node)
{
	struct census *c = arg;
	if (pf_walk_nr_copies(node) == 1) {
		c->single[pf_addr_member(node->ptr.addr[0])]++;
		c->nr_single++;
	}
	return 0;
}

int pf_copies_have_room(struct pf_pool *pool, const struct pf_super *super, struct pf_diag *diag)
{
	static const struct pf_walk_ops ops = { .node = count_node, .bad = pf_walk_stop_at_bad };
	struct census c = { .nr_single = 0 };
	int err = pf_walk_tree(pool->set, &pool->super, PF_KEY_MIN, PF_KEY_MAX, &ops, &c);
	if (err)
		return pf_diag_set(diag, err, "the tree cannot be walked: %s; run fsck.poolfs", pf_strerror(err));
	/* the single copies move: what they take now is free in the end */
	uint64_t room[PF_MAX_META_MEMBERS], reserve[PF_MAX_META_MEMBERS], need = c.nr_single * PF_NODE_BLOCKS;
	unsigned least = 0;
	for (unsigned i = 0; i < super->nr_meta; i++) {
		unsigned member = super->meta_members[i];
		room[i] = pf_space_member_node_room(pool->space, member) + c.single[member] * PF_NODE_BLOCKS;
		reserve[i] = pf_space_reserve_of(super->members[member].share_blocks);
		least = room[i] < room[least] ? i : least;
	}
	need += pf_space_room_for_copies(reserve, super->nr_meta, PF_NODE_COPIES);
	if (!c.nr_single || pf_space_room_for_copies(room, super->nr_meta, PF_NODE_COPIES) >= need)
		return 0;
	return pf_diag_set(diag, -ENOSPC, "two copies of each tree node need %" PRIu64 " MiB on each of two metadata members, and %s has "
			   "%" PRIu64 " MiB for them; delete something first", (need * PF_BLOCK_SIZE >> 20) + 1,
			   pool->set->members[super->meta_members[least]].io->name, room[least] * PF_BLOCK_SIZE >> 20);
}

/* -- writing them ------------------------------------------------------------------------------------------------- */
struct batch {
	unsigned nr;
	struct pf_key from; /* nodes before it have been dealt with */
	struct {
		struct pf_key key;
		unsigned level;
	} nodes[BATCH_NODES];
};

static int note(struct batch *b, struct pf_ptr ptr, struct pf_key key, unsigned level)
{
	if (ptr.addr[1])
		return 0;
	if (b->nr == BATCH_NODES)
		return -ECANCELED;
	b->nodes[b->nr].key = key;
	b->nodes[b->nr++].level = level;
	return 0;
}

/* Leaves are known from their parents: they need not be read to be found. */
static int note_node(void *arg, const struct pf_walk_node *node)
{
	struct batch *b = arg;
	const struct pf_disk_node_head *head = node->bytes;
	const struct pf_disk_child *children = (const struct pf_disk_child *)(head + 1);
	int err = note(b, node->ptr, node->lower, node->level);
	if (node->level != 1)
		return err;
	for (unsigned i = 0; !err && i < pf_get16(head->nr_items); i++) {
		struct pf_key key = pf_key_get(children[i].key);
		if (pf_key_cmp(key, b->from) >= 0)
			err = note(b, pf_ptr_get(children[i].ptr), key, 0);
	}
	return err ? err : PF_WALK_SKIP;
}

static int next_batch(struct pf_set *set, const struct pf_super *super, struct batch *b)
{
	static const struct pf_walk_ops ops = { .node = note_node, .bad = pf_walk_stop_at_bad };
	b->nr = 0;
	int err = pf_walk_tree(set, super, b->from, PF_KEY_MAX, &ops, b);
	if (b->nr)
		b->from = b->nodes[b->nr - 1].key;
	return err == -ECANCELED ? 0 : err;
}

int pf_copies_complete(struct pf_pool *pool)
{
	struct batch b = { .from = PF_KEY_MIN };
	int err = next_batch(pool->set, &pool->super, &b);
	while (!err && b.nr) {
		for (unsigned i = 0; !err && i < b.nr; i++) {
			err = pf_tree_rewrite(pool->tree, b.nodes[i].key, b.nodes[i].level);
			if (!err)
				err = pf_slow_down(pool);
		}
		if (!err)
			err = pf_commit_wait(pool, false);
		if (!err)
			err = next_batch(pool->set, &pool->super, &b);
	}
	return err;
}

int pf_pool_single_nodes(struct pf_set *set, bool *found)
{
	struct batch b = { .from = PF_KEY_MIN };
	*found = false;
	if (pf_super_node_copies(&set->super) == 1)
		return 0;
	int err = next_batch(set, &set->super, &b);
	*found = b.nr > 0;
	return err;
}
