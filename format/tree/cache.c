/* SPDX-License-Identifier: MIT */
#include "tree/cache.h"

#include <stdlib.h>
#include <string.h>

#define MIN_BUCKET_BITS 8
#define MAX_BUCKET_BITS 24

/* -- hash ----------------------------------------------------------------------------------------------------------- */
static struct pf_node **bucket(const struct pf_tree *tree, uint64_t number)
{
	/* Fibonacci hashing: addresses of neighbours differ by PF_NODE_BLOCKS, the top bits of the product by much more. */
	return &tree->buckets[number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - tree->bucket_bits)];
}

struct pf_node *pf_cache_lookup(const struct pf_tree *tree, uint64_t number)
{
	struct pf_node *node = *bucket(tree, number);
	while (node && node->number != number)
		node = node->chain;
	return node;
}

static void hash_add(struct pf_tree *tree, struct pf_node *node)
{
	struct pf_node **head = bucket(tree, node->number);
	node->chain = *head;
	*head = node;
}

static void hash_remove(struct pf_tree *tree, struct pf_node *node)
{
	struct pf_node **p = bucket(tree, node->number);
	while (*p != node)
		p = &(*p)->chain;
	*p = node->chain;
	node->chain = NULL;
}

int pf_cache_init(struct pf_tree *tree, uint64_t cache_bytes)
{
	tree->max_clean = cache_bytes / (PF_NODE_SIZE + sizeof(struct pf_node));
	tree->bucket_bits = MIN_BUCKET_BITS;
	while (tree->bucket_bits < MAX_BUCKET_BITS && UINT64_C(1) << tree->bucket_bits < 2 * tree->max_clean)
		tree->bucket_bits++;
	tree->buckets = calloc((size_t)1 << tree->bucket_bits, sizeof(*tree->buckets));
	TAILQ_INIT(&tree->clean);
	pf_node_mem_init(&tree->mem);
	return tree->buckets ? 0 : -ENOMEM;
}

/* -- memory of nodes ------------------------------------------------------------------------------------------------ */
/* As new, whatever it was before. */
static void node_reset(struct pf_node *node)
{
	*node = (struct pf_node){ .home = node->home, .buf = node->buf, .hint = PF_NODE_NO_HINT };
	atomic_init(&node->refs, 1);
}

static void node_put(struct pf_tree *tree, struct pf_node *node)
{
	if (atomic_fetch_sub(&node->refs, 1) == 1) {
		node->chain = NULL;
		pf_cache_free_list(tree, node);
	}
}

int pf_cache_new_spares(struct pf_tree *tree, struct pf_node **list, unsigned *nr, unsigned wanted)
{
	pthread_mutex_lock(&tree->mutex);
	while (wanted && tree->pool) {
		struct pf_node *node = tree->pool;
		tree->pool = node->chain;
		tree->nr_pool--;
		node->chain = *list;
		*list = node;
		++*nr;
		wanted--;
	}
	pthread_mutex_unlock(&tree->mutex);
	for (; wanted; wanted--) {
		struct pf_node *node = pf_node_mem_get(&tree->mem);
		if (!node)
			return -ENOMEM;
		node->chain = *list;
		*list = node;
		++*nr;
	}
	return 0;
}

struct pf_node *pf_cache_new(struct pf_tree *tree)
{
	struct pf_node *node = NULL;
	unsigned nr = 0;
	if (pf_cache_new_spares(tree, &node, &nr, 1))
		return NULL;
	node_reset(node);
	return node;
}

void pf_cache_free_list(struct pf_tree *tree, struct pf_node *list)
{
	if (!list)
		return;
	struct pf_node *rest = NULL;
	pthread_mutex_lock(&tree->mutex);
	while (list) {
		struct pf_node *node = list;
		struct pf_node **to = tree->nr_pool < PF_TREE_POOL_NODES ? &tree->pool : &rest;
		list = node->chain;
		tree->nr_pool += to == &tree->pool;
		node->chain = *to;
		*to = node;
	}
	pthread_mutex_unlock(&tree->mutex);
	while (rest) {
		struct pf_node *node = rest;
		rest = node->chain;
		pf_node_mem_put(&tree->mem, node);
	}
}

void pf_cache_exit(struct pf_tree *tree)
{
	while (tree->pool) {
		struct pf_node *node = tree->pool;
		tree->pool = node->chain;
		pf_node_mem_put(&tree->mem, node);
	}
	pf_node_mem_exit(&tree->mem);
	free(tree->buckets);
}

/* -- the set of nodes ----------------------------------------------------------------------------------------------- */
uint64_t pf_cache_new_number(struct pf_tree *tree)
{
	return (uint64_t)PF_VIRTUAL_MEMBER << 56 | ++tree->next_virtual;
}

void pf_cache_insert(struct pf_tree *tree, struct pf_node *node)
{
	assert(!pf_cache_lookup(tree, node->number));
	hash_add(tree, node);
}

void pf_cache_renumber(struct pf_tree *tree, struct pf_node *node, uint64_t number)
{
	struct pf_node *stale = pf_cache_lookup(tree, number);
	if (stale) {
		assert(pf_node_is_clean(stale));
		pf_cache_unset_clean(tree, stale);
		pf_cache_drop(tree, stale);
	}
	hash_remove(tree, node);
	node->number = number;
	hash_add(tree, node);
}

void pf_cache_drop(struct pf_tree *tree, struct pf_node *node)
{
	hash_remove(tree, node);
	node_put(tree, node);
}

void pf_cache_set_clean(struct pf_tree *tree, struct pf_node *node)
{
	node->epoch = 0;
	TAILQ_INSERT_TAIL(&tree->clean, node, link);
	tree->nr_clean++;
}

void pf_cache_unset_clean(struct pf_tree *tree, struct pf_node *node)
{
	TAILQ_REMOVE(&tree->clean, node, link);
	tree->nr_clean--;
}

void pf_cache_evict(struct pf_tree *tree, unsigned tries)
{
	/* Twice round at most: the first time clears the marks, what is left the second time is pinned. */
	uint64_t left = 2 * tree->nr_clean < tries ? 2 * tree->nr_clean : tries;
	for (; left && tree->nr_clean > tree->max_clean; left--) {
		struct pf_node *node = TAILQ_FIRST(&tree->clean);
		bool touched = atomic_exchange_explicit(&node->touched, false, memory_order_relaxed);
		pf_cache_unset_clean(tree, node);
		/* A pin is taken under this lock only: a count of one cannot rise meanwhile. */
		if (touched || atomic_load(&node->refs) > 1)
			pf_cache_set_clean(tree, node);
		else
			pf_cache_drop(tree, node);
	}
}
