/* SPDX-License-Identifier: MIT
 *
 * A txn up to its lock: what must be in memory, how much memory it may need.
 *
 * How many splits can @bytes of new items cause? Call a node full when less than PF_LEAF_ROOM is free; only full ones split
 * (an item is smaller). An even split leaves both halves not full (node.h I3) and so takes one from the number of full nodes;
 * an uneven one may leave its left half full, and nr_uneven bounds how many there are. Other nodes get full by
 * PF_LEAF_ROOM of insertions each, or by a merge, which stops well before. So: full ones at the start (at most all that
 * are wanted) + bytes / PF_LEAF_ROOM + nr_uneven, and never more than items. The same for interior nodes, in children.
 */
#include "tree/cache.h"

#include <string.h>

#define INNER_ROOM 100u /* children, in place of PF_LEAF_ROOM */
static_assert((PF_NODE_FANOUT + 1) / 2 + 1 + INNER_ROOM <= PF_NODE_FANOUT, "half an interior node and INNER_ROOM");

/* What a walk over the wanted ranges found. */
struct reservation {
	struct pf_view v; /* takes what is absent, keeps the pins */
	unsigned nr_nodes[PF_TREE_LEVELS];
	unsigned nr_frozen;
};

void pf_txn_init(struct pf_txn *txn, struct pf_tree *tree)
{
	txn->tree = tree;
	txn->nr_wants = 0;
	txn->spare = NULL;
	txn->nr_spare = 0;
	txn->nr_uneven = 0;
	txn->locked = false;
}

void pf_txn_want(struct pf_txn *txn, struct pf_key from, struct pf_key to, unsigned insert_bytes)
{
	assert(txn->nr_wants < PF_TXN_WANTS && !txn->locked && pf_key_cmp(from, to) <= 0);
	txn->wants[txn->nr_wants].from = from;
	txn->wants[txn->nr_wants].to = to;
	txn->wants[txn->nr_wants++].insert_bytes = insert_bytes;
}

static void count(struct reservation *r, struct pf_node *node)
{
	struct pf_tree *tree = r->v.tree;
	if (node->visit == tree->next_visit)
		return;
	node->visit = tree->next_visit;
	r->nr_nodes[pf_node_level(node)]++;
	r->nr_frozen += pf_node_is_frozen(tree, node);
}

static void count_path(struct reservation *r, const struct pf_path *path)
{
	for (unsigned level = 0; level <= r->v.tree->root_level; level++)
		count(r, path->at[level].node);
}

/* Two items before the range, not one: when the nearest is deleted, its place and neighbour must still be found. */
static int walk_before(struct reservation *r, struct pf_key from, struct pf_path *path)
{
	bool found;
	unsigned nr = pf_node_search(path->at[0].node, from, &found);
	while (nr < 2) {
		int err = pf_find_prev_leaf(&r->v, path);
		if (err)
			return err == -ENOENT ? 0 : err;
		count_path(r, path);
		nr += pf_node_nr(path->at[0].node);
	}
	return 0;
}

/* From the leaf of @path to two items behind the range. */
static int walk_range(struct reservation *r, struct pf_key to, struct pf_path *path)
{
	unsigned nr_behind = 0;
	for (;;) {
		struct pf_node *leaf = path->at[0].node;
		bool found;
		unsigned i = pf_node_search(leaf, to, &found);
		count_path(r, path);
		nr_behind += pf_node_nr(leaf) - i - found;
		if (nr_behind >= 2)
			return 0;
		int err = pf_find_next_leaf(&r->v, path);
		if (err)
			return err == -ENOENT ? 0 : err;
	}
}

static int walk_wants(struct reservation *r, const struct pf_txn *txn)
{
	r->v.tree->next_visit++;
	r->nr_frozen = 0;
	memset(r->nr_nodes, 0, sizeof(r->nr_nodes));
	if (!txn->tree->root.addr[0])
		return 0;
	for (unsigned i = 0; i < txn->nr_wants; i++) {
		struct pf_path path, before;
		int err = pf_find_path(&r->v, txn->wants[i].from, 0, &path);
		if (err)
			return err;
		before = path;
		err = walk_before(r, txn->wants[i].from, &before);
		if (!err)
			err = walk_range(r, txn->wants[i].to, &path);
		if (err)
			return err;
	}
	return 0;
}

static unsigned at_most(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Sets nr_uneven; returns the number of spare nodes that suffices. */
static unsigned plan(struct pf_txn *txn, const struct reservation *r)
{
	const struct pf_tree *tree = txn->tree;
	unsigned bytes = 0;
	for (unsigned i = 0; i < txn->nr_wants; i++)
		bytes += txn->wants[i].insert_bytes;
	txn->nr_uneven = 1 + bytes / PF_LEAF_ROOM;
	unsigned need = r->nr_frozen;
	unsigned nr_new = at_most(bytes / (unsigned)sizeof(struct pf_disk_leaf_item),
				  r->nr_nodes[0] + bytes / PF_LEAF_ROOM + txn->nr_uneven);
	if (!tree->root.addr[0] && bytes)
		need++;
	for (unsigned level = 1; nr_new; level++) {
		need += nr_new;
		if (level > tree->root_level) /* a new root above what splits */
			need++;
		unsigned nr_parents = level > tree->root_level ? 0 : r->nr_nodes[level] + txn->nr_uneven;
		nr_new = at_most(nr_new, nr_parents + nr_new / INNER_ROOM);
	}
	return need;
}

int pf_txn_lock(struct pf_txn *txn)
{
	struct pf_tree *tree = txn->tree;
	struct reservation r;
	int err;
	pf_view_start(&r.v, tree);
	for (;;) {
		pthread_rwlock_wrlock(&tree->lock);
		err = walk_wants(&r, txn);
		if (err == -PF_ENODE_ABSENT) {
			err = pf_cache_load(&r.v);
			if (err)
				break;
			continue;
		}
		assert(!err);
		unsigned need = plan(txn, &r);
		if (txn->nr_spare >= need) {
			txn->locked = true;
			break;
		}
		pthread_rwlock_unlock(&tree->lock);
		err = pf_cache_new_spares(tree, &txn->spare, &txn->nr_spare, need - txn->nr_spare);
		if (err)
			break;
	}
	atomic_fetch_add_explicit(&tree->nr_hits, r.v.nr_hits, memory_order_relaxed);
	if (r.v.pins.nodes)
		pf_cache_unpin(tree, &r.v.pins);
	if (err)
		pf_txn_end(txn);
	return err;
}

void pf_txn_end(struct pf_txn *txn)
{
	if (txn->locked)
		pthread_rwlock_unlock(&txn->tree->lock);
	txn->locked = false;
	pf_cache_free_list(txn->tree, txn->spare);
	txn->spare = NULL;
	txn->nr_spare = 0;
}

int pf_tree_rewrite(struct pf_tree *tree, struct pf_key key, unsigned level)
{
	struct pf_txn txn;
	struct pf_view v;
	int err;
	pf_txn_init(&txn, tree);
	pf_view_start(&v, tree);
	for (;;) {
		struct pf_path path;
		pthread_rwlock_wrlock(&tree->lock);
		txn.locked = true;
		err = level <= tree->root_level ? pf_find_path(&v, key, level, &path) : -ENOENT;
		if (err == -PF_ENODE_ABSENT) {
			txn.locked = false;
			err = pf_cache_load(&v);
			if (err)
				break;
			continue;
		}
		unsigned need = 0; /* only those of a checkpoint under way are copied */
		for (unsigned at = level; !err && at <= tree->root_level; at++)
			need += pf_node_is_frozen(tree, path.at[at].node);
		if (err || txn.nr_spare >= need) {
			if (!err)
				pf_path_dirty(&txn, &path, level);
			break;
		}
		pthread_rwlock_unlock(&tree->lock);
		txn.locked = false;
		err = pf_cache_new_spares(tree, &txn.spare, &txn.nr_spare, need - txn.nr_spare);
		if (err)
			break;
	}
	pf_txn_end(&txn);
	if (v.pins.nodes)
		pf_cache_unpin(tree, &v.pins);
	return err == -ENOENT ? 0 : err;
}

static bool find(struct pf_txn *txn, struct pf_key key, enum pf_find how, struct pf_item *item)
{
	struct pf_view v = { .tree = txn->tree };
	assert(txn->locked);
	int err = pf_find_item(&v, key, how, item);
	assert(err != -PF_ENODE_ABSENT && "a txn looks for a key outside of the ranges that it wanted");
	return !err;
}

bool pf_txn_get(struct pf_txn *txn, struct pf_key key, struct pf_item *item)
{
	return find(txn, key, PF_FIND_EXACT, item);
}

bool pf_txn_next(struct pf_txn *txn, struct pf_key key, struct pf_item *item)
{
	return find(txn, key, PF_FIND_NEXT, item);
}

bool pf_txn_prev(struct pf_txn *txn, struct pf_key key, struct pf_item *item)
{
	return find(txn, key, PF_FIND_PREV, item);
}
