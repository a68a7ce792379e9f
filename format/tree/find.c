/* SPDX-License-Identifier: MIT */
#include "tree/cache.h"

/* A CLEAN node is what this parent means, and not one of the same place that another parent of a forged tree led to: two
 * parents never allow the same keys, so of such nodes only one way leads in. */
static bool is_meant(const struct pf_node *node, struct pf_ptr ptr, unsigned level, struct pf_key lower,
		     struct pf_key upper)
{
	return !pf_node_is_clean(node) ||
	       (node->ptr.generation == ptr.generation && node->ptr.crc == ptr.crc && pf_node_level(node) == level &&
		pf_key_cmp(pf_node_lower(node), lower) >= 0 && pf_key_cmp(pf_node_upper(node), upper) <= 0);
}

static struct pf_node *look_up(struct pf_view *v, struct pf_ptr ptr, unsigned level, struct pf_key lower,
			       struct pf_key upper)
{
	struct pf_node *node = pf_cache_lookup(v->tree, ptr.addr[0]);
	if (node && is_meant(node, ptr, level, lower, upper)) {
		pf_cache_touch(node);
		v->nr_hits++;
		return node;
	}
	assert(!pf_number_is_virtual(ptr.addr[0]) && "a changed node is not in memory");
	v->absent = ptr;
	v->absent_level = level;
	v->absent_lower = lower;
	v->absent_upper = upper;
	return NULL;
}

struct pf_node *pf_find_root(struct pf_view *v)
{
	return look_up(v, v->tree->root, v->tree->root_level, PF_KEY_MIN, PF_KEY_MAX);
}

struct pf_node *pf_find_child(struct pf_view *v, const struct pf_node *parent, unsigned i)
{
	return look_up(v, pf_node_child(parent, i), pf_node_level(parent) - 1, pf_node_key(parent, i),
		       pf_node_child_upper(parent, i));
}

int pf_find_path(struct pf_view *v, struct pf_key key, unsigned level, struct pf_path *path)
{
	unsigned at = v->tree->root_level;
	if (!v->tree->root.addr[0])
		return -ENOENT;
	assert(level <= at);
	struct pf_node *node = pf_find_root(v);
	while (node) {
		path->at[at].node = node;
		if (at == level)
			return 0;
		path->at[at].idx = pf_node_route(node, key);
		node = pf_find_child(v, node, path->at[at].idx);
		at--;
	}
	return -PF_ENODE_ABSENT;
}

/* Down from path->at[level].node along its idx, then along the first or last children. */
static int descend_edge(struct pf_view *v, struct pf_path *path, unsigned level, bool last)
{
	while (level) {
		struct pf_node *node = pf_find_child(v, path->at[level].node, path->at[level].idx);
		if (!node)
			return -PF_ENODE_ABSENT;
		level--;
		path->at[level].node = node;
		path->at[level].idx = last ? pf_node_nr(node) - 1 : 0;
	}
	return 0;
}

int pf_find_prev_leaf(struct pf_view *v, struct pf_path *path)
{
	for (unsigned level = 1; level <= v->tree->root_level; level++) {
		if (path->at[level].idx > 0) {
			path->at[level].idx--;
			return descend_edge(v, path, level, true);
		}
	}
	return -ENOENT;
}

int pf_find_next_leaf(struct pf_view *v, struct pf_path *path)
{
	for (unsigned level = 1; level <= v->tree->root_level; level++) {
		if (path->at[level].idx + 1 < pf_node_nr(path->at[level].node)) {
			path->at[level].idx++;
			return descend_edge(v, path, level, false);
		}
	}
	return -ENOENT;
}

int pf_find_item(struct pf_view *v, struct pf_key key, enum pf_find how, struct pf_item *item)
{
	struct pf_path path;
	bool found;
	int err = pf_find_path(v, key, 0, &path);
	if (err)
		return err;
	unsigned i = pf_node_search(path.at[0].node, key, &found);
	if (!found && how == PF_FIND_EXACT)
		return -ENOENT;
	/* No leaf is empty, so one step leads to an item. */
	if (how == PF_FIND_NEXT && i == pf_node_nr(path.at[0].node)) {
		err = pf_find_next_leaf(v, &path);
		i = 0;
	} else if (!found && how == PF_FIND_PREV && i) {
		i--;
	} else if (!found && how == PF_FIND_PREV) {
		err = pf_find_prev_leaf(v, &path);
		i = err ? 0 : pf_node_nr(path.at[0].node) - 1;
	}
	if (err)
		return err;
	item->key = pf_node_key(path.at[0].node, i);
	item->data = pf_leaf_data(path.at[0].node, i, &item->len);
	return 0;
}
