/* SPDX-License-Identifier: MIT */
#include "check/walk.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 256u /* a level is a byte */

struct frame { /* an interior node on the way down */
	struct pf_walk_node node;
	unsigned next; /* child to visit */
	void *bytes;
};

struct walk {
	struct pf_set *set;
	const struct pf_super *super;
	struct pf_key from, to;
	const struct pf_walk_ops *ops;
	void *arg;
	unsigned depth;
	struct frame frames[MAX_DEPTH];
	uint8_t *leaves[PF_NODE_COPIES]; /* PF_WALK_BATCH nodes; the second for those of which all copies are read */
};

int pf_walk_validate(const struct pf_super *super, const struct pf_walk_node *node, unsigned copy, const void *bytes)
{
	struct pf_node_expect expect = {
		.pool_uuid = super->pool_uuid,
		.addr = node->ptr.addr[copy],
		.generation = node->ptr.generation,
		.crc = node->ptr.crc,
		.level = node->level,
		.lower = node->lower,
		.upper = node->upper,
	};
	return pf_node_validate(bytes, &expect);
}

int pf_walk_read(struct pf_set *set, const struct pf_super *super, const struct pf_walk_node *node, unsigned copy, void *buf)
{
	if (!pf_set_addr_valid(set, node->ptr.addr[copy], PF_NODE_BLOCKS))
		return -EIO;
	int err = pf_set_read(set, node->ptr.addr[copy], buf, PF_NODE_BLOCKS);
	return err ? err : pf_walk_validate(super, node, copy, buf);
}

int pf_walk_stop_at_bad(void *arg, const struct pf_walk_node *node, int err)
{
	(void)arg;
	(void)node;
	return err;
}

static int call_bad(struct walk *w, const struct pf_walk_node *node, int err)
{
	struct pf_walk_node copy = *node;
	copy.bytes = NULL;
	return w->ops->bad ? w->ops->bad(w->arg, &copy, err) : 0;
}

/* @errs: of all copies, one of which is 0. */
static int call_bad_copies(struct walk *w, const struct pf_walk_node *node, const int *errs)
{
	struct pf_walk_node shown = *node;
	int err = 0;
	shown.bytes = NULL;
	for (unsigned copy = 0; !err && w->ops->bad_copy && copy < pf_walk_nr_copies(node); copy++) {
		if (errs[copy])
			err = w->ops->bad_copy(w->arg, &shown, copy, errs[copy]);
	}
	return err;
}

static int call_node(struct walk *w, const struct pf_walk_node *node)
{
	return w->ops->node ? w->ops->node(w->arg, node) : 0;
}

/* -- interior nodes ------------------------------------------------------------------------------------------------ */
static unsigned nr_items(const void *bytes)
{
	const struct pf_disk_node_head *head = bytes;
	return pf_get16(head->nr_items);
}

/* The child @index as its parent sees it. False when it lies outside the range of the walk. */
static bool child_get(const struct walk *w, const struct frame *frame, unsigned index, struct pf_walk_node *child)
{
	const struct pf_disk_node_head *head = frame->bytes;
	const struct pf_disk_child *children = (const struct pf_disk_child *)(head + 1);
	*child = (struct pf_walk_node){
		.ptr = pf_ptr_get(children[index].ptr),
		.lower = pf_key_get(children[index].key),
		.upper = index + 1 < nr_items(frame->bytes) ? pf_key_get(children[index + 1].key) : frame->node.upper,
		.level = frame->node.level - 1,
	};
	return pf_key_cmp(child->upper, w->from) > 0 && pf_key_cmp(child->lower, w->to) <= 0;
}

/* An interior node from its first good copy; false: none is. @errs as with leaves. */
static bool read_inner(struct walk *w, const struct pf_walk_node *node, void *bytes, int *errs)
{
	errs[0] = pf_walk_read(w->set, w->super, node, 0, bytes);
	if (pf_walk_nr_copies(node) == 1)
		return !errs[0];
	if (!errs[0] && w->ops->bad_copy) /* only to be judged: no leaf is shown just now */
		errs[1] = pf_walk_read(w->set, w->super, node, 1, w->leaves[0]);
	else if (errs[0])
		errs[1] = pf_walk_read(w->set, w->super, node, 1, bytes);
	return !errs[0] || !errs[1];
}

/* Reads an interior node and makes it the top frame. */
static int push(struct walk *w, const struct pf_walk_node *node)
{
	struct frame *frame = &w->frames[w->depth];
	if (!frame->bytes) {
		frame->bytes = aligned_alloc(PF_BLOCK_SIZE, PF_NODE_SIZE);
		if (!frame->bytes)
			return -ENOMEM;
	}
	int errs[PF_NODE_COPIES] = { 0 };
	if (!read_inner(w, node, frame->bytes, errs))
		return call_bad(w, node, errs[0]);
	int err = call_bad_copies(w, node, errs);
	if (err)
		return err;
	frame->node = *node;
	frame->node.bytes = frame->bytes;
	frame->next = 0;
	err = call_node(w, &frame->node);
	if (err)
		return err == PF_WALK_SKIP ? 0 : err;
	w->depth++;
	return 0;
}

/* -- leaves -------------------------------------------------------------------------------------------------------- */
bool pf_walk_leaf_item(const void *leaf, unsigned index, struct pf_walk_item *item)
{
	const struct pf_disk_node_head *head = leaf;
	const struct pf_disk_leaf_item *items = (const struct pf_disk_leaf_item *)(head + 1);
	if (index >= nr_items(leaf))
		return false;
	item->key = pf_key_get(items[index].key);
	item->data = (const uint8_t *)leaf + pf_get16(items[index].offset);
	item->len = pf_get16(items[index].len);
	item->index = index;
	return true;
}

static int show_leaf(struct walk *w, const struct pf_walk_node *leaf)
{
	int err = call_node(w, leaf);
	if (err)
		return err == PF_WALK_SKIP ? 0 : err;
	if (!w->ops->item)
		return 0;
	struct pf_walk_item item = { .leaf = leaf };
	for (unsigned i = 0; pf_walk_leaf_item(leaf->bytes, i, &item); i++) {
		if (pf_key_cmp(item.key, w->from) < 0)
			continue;
		if (pf_key_cmp(item.key, w->to) > 0)
			break;
		err = w->ops->item(w->arg, &item);
		if (err)
			return err;
	}
	return 0;
}

struct order { /* of reading: by address */
	pf_addr addr;
	unsigned leaf, copy;
};

static int order_cmp(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static uint8_t *leaf_bytes(const struct walk *w, unsigned leaf, unsigned copy)
{
	return w->leaves[copy] + (size_t)leaf * PF_NODE_SIZE;
}

typedef int leaf_errs[PF_NODE_COPIES];

/* Reads the first or all copies of @nr leaves in the order of their addresses; errs[i][copy] is the verdict. */
static void read_leaves(struct walk *w, const struct pf_walk_node *leaves, unsigned nr, leaf_errs *errs)
{
	struct order order[PF_WALK_BATCH * PF_NODE_COPIES];
	struct pf_aio_req reqs[PF_WALK_BATCH * PF_NODE_COPIES];
	unsigned nr_reqs = 0;
	for (unsigned i = 0; i < nr; i++) {
		for (unsigned copy = 0; copy < (w->ops->bad_copy ? pf_walk_nr_copies(&leaves[i]) : 1); copy++) {
			errs[i][copy] = -EIO;
			if (pf_set_addr_valid(w->set, leaves[i].ptr.addr[copy], PF_NODE_BLOCKS))
				order[nr_reqs++] = (struct order){ leaves[i].ptr.addr[copy], i, copy };
		}
	}
	qsort(order, nr_reqs, sizeof(order[0]), order_cmp);
	memset(reqs, 0, sizeof(reqs[0]) * nr_reqs);
	for (unsigned i = 0; i < nr_reqs; i++)
		pf_set_req(w->set, &reqs[i], PF_AIO_READ, order[i].addr, leaf_bytes(w, order[i].leaf, order[i].copy),
			   PF_NODE_BLOCKS);
	if (nr_reqs)
		pf_aio_run(w->set->aio, reqs, nr_reqs); /* each result is looked at */
	for (unsigned i = 0; i < nr_reqs; i++) {
		unsigned leaf = order[i].leaf, copy = order[i].copy;
		errs[leaf][copy] = reqs[i].result ? reqs[i].result :
						    pf_walk_validate(w->super, &leaves[leaf], copy, leaf_bytes(w, leaf, copy));
	}
}

/* The bytes of a good copy; NULL: there is none. */
static const uint8_t *good_copy(struct walk *w, const struct pf_walk_node *leaves, unsigned i, leaf_errs *errs)
{
	if (!errs[i][0])
		return leaf_bytes(w, i, 0);
	if (pf_walk_nr_copies(&leaves[i]) == 1)
		return NULL;
	if (w->ops->bad_copy)
		return errs[i][1] ? NULL : leaf_bytes(w, i, 1);
	return pf_walk_read(w->set, w->super, &leaves[i], 1, leaf_bytes(w, i, 0)) ? NULL : leaf_bytes(w, i, 0);
}

static int show_leaves(struct walk *w, struct pf_walk_node *leaves, unsigned nr)
{
	leaf_errs errs[PF_WALK_BATCH] = { 0 };
	read_leaves(w, leaves, nr, errs);
	for (unsigned i = 0; i < nr; i++) {
		const uint8_t *bytes = good_copy(w, leaves, i, errs);
		int err = bytes ? call_bad_copies(w, &leaves[i], errs[i]) : call_bad(w, &leaves[i], errs[i][0]);
		if (bytes && !err) {
			leaves[i].bytes = bytes;
			err = show_leaf(w, &leaves[i]);
		}
		if (err)
			return err;
	}
	return 0;
}

/* The next leaves below a node of level 1. */
static int step_leaves(struct walk *w, struct frame *frame)
{
	struct pf_walk_node leaves[PF_WALK_BATCH];
	unsigned nr = 0;
	while (nr < PF_WALK_BATCH && frame->next < nr_items(frame->bytes)) {
		if (child_get(w, frame, frame->next++, &leaves[nr]))
			nr++;
	}
	return show_leaves(w, leaves, nr);
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */
static int run(struct walk *w)
{
	struct pf_walk_node root = {
		.ptr = w->super->root,
		.lower = PF_KEY_MIN,
		.upper = PF_KEY_MAX,
		.level = w->super->root_level,
	};
	if (!root.ptr.addr[0])
		return 0;
	int err = root.level ? push(w, &root) : show_leaves(w, &root, 1);
	while (!err && w->depth) {
		struct frame *frame = &w->frames[w->depth - 1];
		struct pf_walk_node child;
		if (frame->next >= nr_items(frame->bytes))
			w->depth--;
		else if (frame->node.level == 1)
			err = step_leaves(w, frame);
		else if (child_get(w, frame, frame->next++, &child))
			err = push(w, &child);
	}
	return err;
}

int pf_walk_tree(struct pf_set *set, const struct pf_super *super, struct pf_key from, struct pf_key to,
		 const struct pf_walk_ops *ops, void *arg)
{
	int err = -ENOMEM;
	struct walk *w = calloc(1, sizeof(*w));
	if (!w)
		return err;
	w->set = set;
	w->super = super;
	w->from = from;
	w->to = to;
	w->ops = ops;
	w->arg = arg;
	unsigned nr_copies = ops->bad_copy ? PF_NODE_COPIES : 1;
	bool memory = true;
	for (unsigned copy = 0; copy < nr_copies; copy++) {
		w->leaves[copy] = aligned_alloc(PF_BLOCK_SIZE, (size_t)PF_WALK_BATCH * PF_NODE_SIZE);
		memory = memory && w->leaves[copy];
	}
	if (memory)
		err = run(w);
	for (unsigned copy = 0; copy < nr_copies; copy++)
		free(w->leaves[copy]);
	for (unsigned i = 0; i < MAX_DEPTH; i++)
		free(w->frames[i].bytes);
	free(w);
	return err;
}
