/* SPDX-License-Identifier: MIT
 *
 * Writing the frozen nodes. Level by level from the leaves, so that a parent finds addresses and CRCs of its children; in
 * order of keys, so that neighbours in the tree are neighbours on the disk; in batches, each as few runs as the free space
 * allows. Runs without the tree lock: frozen bytes never change, the frozen lists belong to the checkpoint alone, and only the
 * hash, which leads to children, is looked at under the shared lock.
 */
#include "tree/cache.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_NODES 64u

struct batch {
	struct pf_tree *tree;
	uint8_t *buf; /* BATCH_NODES packed nodes */
	struct pf_node **nodes;
	unsigned nr;
	struct pf_run runs[BATCH_NODES];
	struct pf_aio_req reqs[BATCH_NODES];
	unsigned nr_runs;
	struct pf_ptr ptrs[BATCH_NODES];
};

/* Metadata members in their order, those that failed a write of this checkpoint last. */
static unsigned candidates(const struct pf_tree *tree, unsigned members[PF_MAX_META_MEMBERS])
{
	const struct pf_super *super = &tree->set->super;
	unsigned nr = 0;
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < super->nr_meta; i++) {
			unsigned member = super->meta_members[i];
			if ((tree->bad_members >> member & 1) == pass)
				members[nr++] = member;
		}
	}
	return nr;
}

/* One run for at most @nr nodes, near @goal. */
static int allocate(struct pf_tree *tree, unsigned nr, pf_addr goal, struct pf_run *run)
{
	unsigned members[PF_MAX_META_MEMBERS], nr_members = candidates(tree, members);
	int err = -ENOSPC;
	for (unsigned i = 0; i < nr_members && err; i++) {
		struct pf_alloc_req req = {
			.use = PF_USE_NODE,
			.nr = (uint64_t)nr * PF_NODE_BLOCKS,
			.min_nr = PF_NODE_BLOCKS,
			.goal = goal && pf_addr_member(goal) == members[i] ? goal : 0,
			.member = (int)members[i],
			.only_member = true,
		};
		int one = pf_space_alloc(tree->space, &req, run);
		/* No room is the answer only if nothing worse was met. */
		if (!one || one != -ENOSPC || err == -ENOSPC)
			err = one;
	}
	if (err)
		return err;
	uint64_t rest = run->nr % PF_NODE_BLOCKS;
	run->nr -= rest;
	if (rest)
		pf_space_unalloc(tree->space, (struct pf_run){ run->addr + run->nr, rest });
	return 0;
}

static int allocate_batch(struct batch *b, pf_addr *goal)
{
	b->nr_runs = 0;
	for (unsigned nr = 0; nr < b->nr; b->nr_runs++) {
		struct pf_run *run = &b->runs[b->nr_runs];
		int err = allocate(b->tree, b->nr - nr, *goal, run);
		if (err) {
			while (b->nr_runs)
				pf_space_unalloc(b->tree->space, b->runs[--b->nr_runs]);
			return err;
		}
		nr += (unsigned)(run->nr / PF_NODE_BLOCKS);
		*goal = run->addr + run->nr;
	}
	return 0;
}

/* Addresses for numbers: children of the frozen tree are written, or were never changed. */
static void name_children(struct pf_tree *tree, struct pf_node *packed)
{
	pthread_rwlock_rdlock(&tree->lock);
	for (unsigned i = 0; i < pf_node_nr(packed); i++) {
		struct pf_ptr ptr = pf_node_child(packed, i);
		if (!pf_number_is_virtual(ptr.addr[0]))
			continue;
		const struct pf_node *child = pf_cache_lookup(tree, ptr.addr[0]);
		assert(child && child->ptr.addr[0] && "a child is written before its parent");
		pf_inner_set_ptr(packed, i, child->ptr);
	}
	pthread_rwlock_unlock(&tree->lock);
}

static void pack_batch(struct batch *b)
{
	struct pf_tree *tree = b->tree;
	unsigned nr = 0;
	for (unsigned r = 0; r < b->nr_runs; r++) {
		pf_set_req(tree->set, &b->reqs[r], PF_AIO_WRITE, b->runs[r].addr, b->buf + (size_t)nr * PF_NODE_SIZE,
			   b->runs[r].nr);
		for (unsigned i = 0; i < b->runs[r].nr / PF_NODE_BLOCKS; i++, nr++) {
			struct pf_node packed = { .buf = b->buf + (size_t)nr * PF_NODE_SIZE };
			struct pf_ptr *ptr = &b->ptrs[nr];
			pf_node_pack(b->nodes[nr], packed.buf);
			if (pf_node_level(&packed))
				name_children(tree, &packed);
			*ptr = (struct pf_ptr){ .addr = { b->runs[r].addr + (uint64_t)i * PF_NODE_BLOCKS },
						.generation = tree->frozen_generation };
			ptr->crc = pf_node_seal(packed.buf, tree->set->super.pool_uuid, ptr->addr, ptr->generation);
		}
	}
}

/* The blocks stay taken, so that the next attempt goes elsewhere, and no map names them. Not where the host has no room: any place
 * is as good then, and attempts go on for as long as that lasts. */
static void keep_bad_run(struct pf_tree *tree, struct pf_run run, int err)
{
	tree->bad_members |= UINT32_C(1) << pf_addr_member(run.addr);
	struct pf_run *runs = NULL;
	if (err != -ENOSPC)
		runs = realloc(tree->bad_runs, (tree->nr_bad_runs + 1) * sizeof(*runs));
	if (!runs) {
		pf_space_unalloc(tree->space, run);
		return;
	}
	tree->bad_runs = runs;
	tree->bad_runs[tree->nr_bad_runs++] = run;
}

static int write_batch(struct batch *b, pf_addr *goal)
{
	int err = allocate_batch(b, goal);
	if (err)
		return err;
	pack_batch(b);
	err = pf_aio_run(b->tree->set->aio, b->reqs, b->nr_runs);
	unsigned nr = 0;
	for (unsigned r = 0; r < b->nr_runs; r++) {
		unsigned end = nr + (unsigned)(b->runs[r].nr / PF_NODE_BLOCKS);
		if (b->reqs[r].result) {
			keep_bad_run(b->tree, b->runs[r], b->reqs[r].result);
			nr = end;
			continue;
		}
		pf_space_commit_frozen(b->tree->space, b->runs[r]);
		for (; nr < end; nr++)
			b->nodes[nr]->ptr = b->ptrs[nr];
	}
	return err;
}

static int by_key(const void *a, const void *b)
{
	const struct pf_node *const *x = a, *const *y = b;
	return pf_key_cmp(pf_node_lower(*x), pf_node_lower(*y));
}

/* Nodes of @level without an address, in order of keys. */
static int collect(struct pf_tree *tree, unsigned level, struct pf_node ***out, size_t *nr)
{
	struct pf_node *node, **nodes;
	*nr = 0;
	*out = NULL;
	TAILQ_FOREACH(node, &tree->frozen[level], link)
	*nr += !node->ptr.addr[0];
	if (!*nr)
		return 0;
	nodes = malloc(*nr * sizeof(struct pf_node *));
	if (!nodes)
		return -ENOMEM;
	size_t i = 0;
	TAILQ_FOREACH(node, &tree->frozen[level], link)
	{
		if (!node->ptr.addr[0])
			nodes[i++] = node;
	}
	qsort(nodes, *nr, sizeof(struct pf_node *), by_key);
	*out = nodes;
	return 0;
}

static int write_level(struct batch *b, unsigned level, pf_addr *goal)
{
	struct pf_node **nodes;
	size_t nr;
	int err = collect(b->tree, level, &nodes, &nr);
	for (size_t i = 0; i < nr && !err; i += b->nr) {
		b->nodes = nodes + i;
		b->nr = (unsigned)(nr - i < BATCH_NODES ? nr - i : BATCH_NODES);
		err = write_batch(b, goal);
	}
	free(nodes);
	return err;
}

int pf_tree_write_frozen(struct pf_tree *tree, struct pf_ptr *root, unsigned *root_level)
{
	assert(tree->freezing);
	struct batch *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;
	pf_addr goal = 0;
	if (!err) {
		b->tree = tree;
		b->buf = aligned_alloc(PF_BLOCK_SIZE, (size_t)BATCH_NODES * PF_NODE_SIZE);
		err = b->buf ? 0 : -ENOMEM;
	}
	for (unsigned level = 0; level < PF_TREE_LEVELS && !err; level++)
		err = write_level(b, level, &goal);
	if (!err) {
		*root = tree->frozen_root;
		*root_level = tree->frozen_root_level;
		if (pf_number_is_virtual(root->addr[0]))
			*root = TAILQ_FIRST(&tree->frozen[*root_level])->ptr;
	}
	if (b)
		free(b->buf);
	free(b);
	return err;
}
