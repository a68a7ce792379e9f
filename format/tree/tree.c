/* SPDX-License-Identifier: MIT */
#include "tree/cache.h"

#include <stdlib.h>

int pf_tree_open(struct pf_set *set, struct pf_space *space, const struct pf_tree_config *config, struct pf_tree **out)
{
	struct pf_tree *tree = calloc(1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	int err = pf_cache_init(tree, config->cache_bytes);
	if (err) {
		free(tree);
		return err;
	}
	pthread_rwlockattr_t attr;
	pthread_rwlockattr_init(&attr);
	/* Readers come in streams (read-ahead, readdir); a writer must not wait for the gap between them. */
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&tree->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	pthread_mutex_init(&tree->mutex, NULL);
	for (unsigned i = 0; i < PF_TREE_LEVELS; i++) {
		TAILQ_INIT(&tree->dirty[i]);
		TAILQ_INIT(&tree->frozen[i]);
	}
	tree->set = set;
	tree->space = space;
	tree->root = set->super.root;
	tree->root_level = set->super.root_level;
	tree->epoch = 1;
	*out = tree;
	return 0;
}

static void drop_list(struct pf_tree *tree, struct pf_node_list *list)
{
	struct pf_node *node, *next;
	for (node = TAILQ_FIRST(list); node; node = next) {
		next = TAILQ_NEXT(node, link);
		pf_cache_drop(tree, node);
	}
}

void pf_tree_close(struct pf_tree *tree)
{
	if (!tree)
		return;
	drop_list(tree, &tree->clean);
	for (unsigned i = 0; i < PF_TREE_LEVELS; i++) {
		drop_list(tree, &tree->dirty[i]);
		drop_list(tree, &tree->frozen[i]);
	}
	pf_cache_exit(tree);
	pthread_mutex_destroy(&tree->mutex);
	pthread_rwlock_destroy(&tree->lock);
	free(tree->bad_runs);
	free(tree);
}

void pf_tree_lock(struct pf_tree *tree)
{
	pthread_rwlock_wrlock(&tree->lock);
}

void pf_tree_unlock(struct pf_tree *tree)
{
	pthread_rwlock_unlock(&tree->lock);
}

void pf_tree_stats(struct pf_tree *tree, struct pf_tree_stats *out)
{
	pthread_rwlock_rdlock(&tree->lock);
	*out = (struct pf_tree_stats){
		.dirty_nodes = atomic_load(&tree->nr_dirty),
		.frozen_nodes = tree->nr_frozen,
		.clean_nodes = tree->nr_clean,
		.hits = atomic_load(&tree->nr_hits),
		.misses = atomic_load(&tree->nr_misses),
	};
	pthread_rwlock_unlock(&tree->lock);
}

uint64_t pf_tree_frozen(struct pf_tree *tree)
{
	return atomic_load_explicit(&tree->nr_frozen, memory_order_relaxed);
}

uint64_t pf_tree_dirty(struct pf_tree *tree)
{
	return atomic_load_explicit(&tree->nr_dirty, memory_order_relaxed);
}
