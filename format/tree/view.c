/* SPDX-License-Identifier: MIT */
#include "tree/cache.h"

#include <string.h>

enum view_state { VIEW_NEW, VIEW_LOCKED, VIEW_DONE };

int pf_view_get(struct pf_view *v, struct pf_key key, struct pf_item *item)
{
	return pf_find_item(v, key, PF_FIND_EXACT, item);
}

int pf_view_next(struct pf_view *v, struct pf_key key, struct pf_item *item)
{
	return pf_find_item(v, key, PF_FIND_NEXT, item);
}

int pf_view_prev(struct pf_view *v, struct pf_key key, struct pf_item *item)
{
	return pf_find_item(v, key, PF_FIND_PREV, item);
}

void pf_view_start(struct pf_view *v, struct pf_tree *tree)
{
	*v = (struct pf_view){ .tree = tree, .state = VIEW_NEW };
}

bool pf_view_enter(struct pf_view *v, int *err)
{
	struct pf_tree *tree = v->tree;
	if (v->state == VIEW_LOCKED) {
		if (*err != -PF_ENODE_ABSENT) {
			pthread_rwlock_unlock(&tree->lock);
			goto out;
		}
		assert(v->absent.addr[0] && "a view was told of an absent node without having met one");
		*err = pf_cache_load(v);
		if (*err)
			goto out;
	}
	v->absent.addr[0] = 0;
	*err = 0;
	pthread_rwlock_rdlock(&tree->lock);
	v->state = VIEW_LOCKED;
	return true;
out:
	atomic_fetch_add_explicit(&tree->nr_hits, v->nr_hits, memory_order_relaxed);
	if (v->pins.nodes)
		pf_cache_unpin(tree, &v->pins);
	v->state = VIEW_DONE;
	return false;
}

int pf_tree_get(struct pf_tree *tree, struct pf_key key, void *buf, unsigned cap)
{
	struct pf_view v;
	struct pf_item item = { .len = 0 };
	int err;
	PF_VIEW (v, tree, err) {
		err = pf_view_get(&v, key, &item);
		if (!err && item.len && item.len <= cap)
			memcpy(buf, item.data, item.len);
	}
	return err ? err : (int)item.len;
}
