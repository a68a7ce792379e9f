/* SPDX-License-Identifier: MIT */
#include "tree/node_mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS 1
#endif
#endif
#ifdef POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, size)   ((void)(addr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#endif

#define CHUNK_NODES 16u

struct pf_node_chunk {
	LIST_ENTRY(pf_node_chunk) link;
	struct pf_node *free; /* by 'chain' */
	unsigned nr_free;
	uint8_t *bufs;
	struct pf_node nodes[CHUNK_NODES];
};

void pf_node_mem_init(struct pf_node_mem *mem)
{
	pthread_mutex_init(&mem->lock, NULL);
	LIST_INIT(&mem->open);
}

void pf_node_mem_exit(struct pf_node_mem *mem)
{
	assert(LIST_EMPTY(&mem->open));
	pthread_mutex_destroy(&mem->lock);
}

static struct pf_node_chunk *chunk_new(void)
{
	struct pf_node_chunk *c = calloc(1, sizeof(*c));
	uint8_t *bufs = aligned_alloc(PF_BLOCK_SIZE, (size_t)CHUNK_NODES * PF_NODE_SIZE);
	if (!c || !bufs) {
		free(c);
		free(bufs);
		return NULL;
	}
	c->bufs = bufs;
	c->nr_free = CHUNK_NODES;
	for (unsigned i = 0; i < CHUNK_NODES; i++) {
		c->nodes[i] = (struct pf_node){ .home = c, .buf = bufs + (size_t)i * PF_NODE_SIZE, .chain = c->free };
		c->free = &c->nodes[i];
	}
	ASAN_POISON_MEMORY_REGION(bufs, (size_t)CHUNK_NODES * PF_NODE_SIZE);
	return c;
}

static void chunk_free(struct pf_node_chunk *c)
{
	ASAN_UNPOISON_MEMORY_REGION(c->bufs, (size_t)CHUNK_NODES * PF_NODE_SIZE);
	free(c->bufs);
	free(c);
}

struct pf_node *pf_node_mem_get(struct pf_node_mem *mem)
{
	pthread_mutex_lock(&mem->lock);
	struct pf_node_chunk *c = LIST_FIRST(&mem->open);
	if (!c) {
		c = chunk_new();
		if (c)
			LIST_INSERT_HEAD(&mem->open, c, link);
	}
	struct pf_node *node = c ? c->free : NULL;
	if (node) {
		c->free = node->chain;
		if (--c->nr_free == 0)
			LIST_REMOVE(c, link);
	}
	pthread_mutex_unlock(&mem->lock);
	if (!node)
		return NULL;
	ASAN_UNPOISON_MEMORY_REGION(node->buf, PF_NODE_SIZE);
	*node = (struct pf_node){ .home = c, .buf = node->buf };
	return node;
}

void pf_node_mem_put(struct pf_node_mem *mem, struct pf_node *node)
{
	struct pf_node_chunk *c = node->home, *empty = NULL;
	/* to be given back, not to be correct: an error changes nothing */
	madvise(node->buf, PF_NODE_SIZE, MADV_DONTNEED);
	ASAN_POISON_MEMORY_REGION(node->buf, PF_NODE_SIZE);
	pthread_mutex_lock(&mem->lock);
	node->chain = c->free;
	c->free = node;
	if (c->nr_free++ == 0)
		LIST_INSERT_HEAD(&mem->open, c, link);
	if (c->nr_free == CHUNK_NODES) {
		LIST_REMOVE(c, link);
		empty = c;
	}
	pthread_mutex_unlock(&mem->lock);
	if (empty)
		chunk_free(empty);
}
