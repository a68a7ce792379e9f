/* SPDX-License-Identifier: MIT
 *
 * Writing the frozen nodes. Level by level from the leaves, so that a parent finds addresses and CRCs of its children; in
 * order of keys, so that neighbours in the tree are neighbours on the disk; in batches, each as few runs as the free space
 * allows. Where the pool has two copies of each node, both are written together, from the same bytes: a node whose second
 * copy finds no room or fails is not written at all. Runs without the tree lock: frozen bytes never change, the frozen lists belong to the checkpoint alone, and only the
 * hash, which leads to children, is looked at under the shared lock.
 */
#include "tree/cache.h"

#include <stdlib.h>
#include <string.h>

#define BATCH_NODES 64u

struct place { /* of one copy of consecutive nodes of a batch */
	struct pf_run run;
	unsigned first; /* node */
};

struct batch {
	struct pf_tree *tree;
	uint8_t *buf; /* BATCH_NODES packed nodes, each for all of its copies */
	struct pf_node **nodes;
	unsigned nr;
	unsigned nr_copies; /* of each node */
	struct place places[BATCH_NODES * PF_NODE_COPIES];
	struct pf_aio_req reqs[BATCH_NODES * PF_NODE_COPIES];
	unsigned nr_places;
	struct pf_ptr ptrs[BATCH_NODES];
	bool failed[BATCH_NODES];
};

/* Where the next node of each copy should go, so that neighbours lie together. */
struct goals {
	pf_addr addr[PF_NODE_COPIES];
};

/* Metadata members in their order, those that failed a write of this checkpoint last; without those that were given up. */
static unsigned candidates(const struct pf_tree *tree, unsigned members[PF_MAX_META_MEMBERS])
{
	const struct pf_super *super = &tree->set->super;
	unsigned nr = 0;
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < super->nr_meta; i++) {
			unsigned member = super->meta_members[i];
			if ((tree->bad_members >> member & 1) == pass && !(pf_set_failed(tree->set) >> member & 1))
				members[nr++] = member;
		}
	}
	return nr;
}

/* One run for at most @nr nodes, near @goal, not on the member @other (-1: anywhere). */
static int allocate(struct pf_tree *tree, unsigned nr, pf_addr goal, int other, struct pf_run *run)
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
		if (req.member == other)
			continue;
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

/* Places for copy @copy of @nr nodes from @first on; *covered says for how many, if @other is -1, else it is for all of them. */
static int place_copy(struct batch *b, unsigned first, unsigned nr, int other, pf_addr *goal, unsigned *covered)
{
	*covered = 0;
	do {
		struct place *place = &b->places[b->nr_places];
		place->first = first + *covered;
		int err = allocate(b->tree, nr - *covered, *goal, other, &place->run);
		if (err)
			return err;
		b->nr_places++;
		*covered += (unsigned)(place->run.nr / PF_NODE_BLOCKS);
		*goal = place->run.addr + place->run.nr;
	} while (other >= 0 && *covered < nr);
	return 0;
}

/* A node gets all of its copies, each on another member, or none. */
static int allocate_batch(struct batch *b, struct goals *goals)
{
	int err = 0;
	b->nr_places = 0;
	for (unsigned nr = 0, n, all; nr < b->nr && !err; nr += n) {
		unsigned place = b->nr_places;
		err = place_copy(b, nr, b->nr - nr, -1, &goals->addr[0], &n);
		if (!err && b->nr_copies > 1)
			err = place_copy(b, nr, n, (int)pf_addr_member(b->places[place].run.addr), &goals->addr[1], &all);
	}
	while (err && b->nr_places)
		pf_space_unalloc(b->tree->space, b->places[--b->nr_places].run);
	return err;
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

static void assign_addresses(struct batch *b)
{
	for (unsigned i = 0; i < b->nr; i++)
		b->ptrs[i] = (struct pf_ptr){ .generation = b->tree->frozen_generation };
	for (unsigned p = 0; p < b->nr_places; p++) {
		const struct place *place = &b->places[p];
		pf_set_req(b->tree->set, &b->reqs[p], PF_AIO_WRITE, place->run.addr,
			   b->buf + (size_t)place->first * PF_NODE_SIZE, place->run.nr);
		b->reqs[p].straight = true; /* an attempt that fails leaves the buffer alone from then on */
		for (unsigned i = 0; i < place->run.nr / PF_NODE_BLOCKS; i++) {
			pf_addr *addr = b->ptrs[place->first + i].addr;
			addr[addr[0] != 0] = place->run.addr + (uint64_t)i * PF_NODE_BLOCKS;
		}
	}
}

static void pack_batch(struct batch *b)
{
	struct pf_tree *tree = b->tree;
	for (unsigned i = 0; i < b->nr; i++) {
		struct pf_node packed = { .buf = b->buf + (size_t)i * PF_NODE_SIZE };
		struct pf_ptr *ptr = &b->ptrs[i];
		pf_node_pack(b->nodes[i], packed.buf);
		if (pf_node_level(&packed))
			name_children(tree, &packed);
		ptr->crc = pf_node_seal(packed.buf, tree->set->super.pool_uuid, ptr->addr, ptr->generation);
	}
}

/* The blocks stay taken, so that the next attempt goes elsewhere, and no map names them. Not where the host has no room: the next
 * attempt goes where the host has allocated, and attempts go on for as long as that lasts. */
static void keep_bad_run(struct pf_tree *tree, struct pf_run run, int err)
{
	tree->bad_members |= UINT32_C(1) << pf_addr_member(run.addr);
	tree->blamed |= err == -ENOSPC ? 0 : UINT32_C(1) << pf_addr_member(run.addr);
	struct pf_run *runs = NULL;
	if (err != -ENOSPC)
		runs = realloc(tree->bad_runs, (tree->nr_bad_runs + 1) * sizeof(*runs));
	if (!runs) {
		pf_space_unalloc(tree->space, run);
		if (err == -ENOSPC)
			pf_space_nodes_at_home(tree->space, pf_addr_member(run.addr));
		return;
	}
	tree->bad_runs = runs;
	tree->bad_runs[tree->nr_bad_runs++] = run;
}

/* What of a place nodes have taken that are written whole; the rest is given back, as those go elsewhere with all their copies. */
static void settle_place(struct batch *b, const struct place *place)
{
	for (unsigned i = 0; i < place->run.nr / PF_NODE_BLOCKS; i++) {
		struct pf_run run = { place->run.addr + (uint64_t)i * PF_NODE_BLOCKS, PF_NODE_BLOCKS };
		if (b->failed[place->first + i])
			pf_space_unalloc(b->tree->space, run);
		else
			pf_space_commit_frozen(b->tree->space, run);
	}
}

static int write_batch(struct batch *b, struct goals *goals)
{
	int err = allocate_batch(b, goals);
	if (err)
		return err;
	assign_addresses(b);
	pack_batch(b);
	err = pf_aio_run_behind(b->tree->set->aio, b->reqs, b->nr_places);
	memset(b->failed, 0, sizeof(b->failed));
	for (unsigned p = 0; p < b->nr_places; p++) {
		const struct place *place = &b->places[p];
		for (unsigned i = 0; b->reqs[p].result && i < place->run.nr / PF_NODE_BLOCKS; i++)
			b->failed[place->first + i] = true;
	}
	for (unsigned p = 0; p < b->nr_places; p++) {
		if (b->reqs[p].result)
			keep_bad_run(b->tree, b->places[p].run, b->reqs[p].result);
		else
			settle_place(b, &b->places[p]);
	}
	for (unsigned i = 0; i < b->nr; i++) {
		if (!b->failed[i])
			b->nodes[i]->ptr = b->ptrs[i];
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

static int write_level(struct batch *b, unsigned level, struct goals *goals)
{
	struct pf_node **nodes;
	size_t nr;
	int err = collect(b->tree, level, &nodes, &nr);
	for (size_t i = 0; i < nr && !err; i += b->nr) {
		b->nodes = nodes + i;
		b->nr = (unsigned)(nr - i < BATCH_NODES ? nr - i : BATCH_NODES);
		err = write_batch(b, goals);
	}
	free(nodes);
	return err;
}

uint32_t pf_tree_blamed(const struct pf_tree *tree)
{
	return tree->blamed;
}

int pf_tree_write_frozen(struct pf_tree *tree, struct pf_ptr *root, unsigned *root_level)
{
	assert(tree->freezing);
	tree->blamed = 0;
	struct batch *b = calloc(1, sizeof(*b));
	int err = b ? 0 : -ENOMEM;
	struct goals goals = { { 0 } };
	if (!err) {
		b->tree = tree;
		b->nr_copies = pf_set_node_copies(tree->set);
		b->buf = aligned_alloc(PF_BLOCK_SIZE, (size_t)BATCH_NODES * PF_NODE_SIZE);
		err = b->buf ? 0 : -ENOMEM;
	}
	for (unsigned level = 0; level < PF_TREE_LEVELS && !err; level++)
		err = write_level(b, level, &goals);
	if (!err) {
		*root = tree->frozen_root;
		*root_level = tree->frozen_root_level;
		if (pf_number_is_virtual(root->addr[0]))
			*root = TAILQ_FIRST(&tree->frozen[*root_level])->ptr;
	}
	if (b)
		pf_aio_free(tree->set->aio, b->buf, (size_t)BATCH_NODES * PF_NODE_SIZE);
	free(b);
	return err;
}
