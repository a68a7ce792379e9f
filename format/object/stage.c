/* SPDX-License-Identifier: MIT */
#include "object/stage_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *page_of(const struct pf_dirty_block *b)
{
	return (uint8_t *)(uintptr_t)b->data;
}

/* Index of the first staged block >= @block. */
static unsigned position(const struct pf_stage *s, uint64_t block)
{
	unsigned lo = 0, hi = s->nr;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if (s->blocks[mid].block < block)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

unsigned pf_stage_blocks(const struct pf_inode *inode)
{
	return (inode->stage ? inode->stage->nr : 0) + (inode->sealed ? inode->sealed->nr : 0);
}

bool pf_stage_has_room(const struct pf_pool *pool, const struct pf_inode *inode, unsigned nr)
{
	return !inode->stage || inode->stage->nr + nr <= pool->stage_max;
}

void pf_stage_drop_empty(struct pf_pool *pool, struct pf_inode *inode)
{
	if (inode->stage && !inode->stage->nr)
		pf_stage_release(pool, inode->stage);
}

static uint8_t *find(const struct pf_stage *s, uint64_t block)
{
	if (!s)
		return NULL;
	unsigned i = position(s, block);
	return i < s->nr && s->blocks[i].block == block ? page_of(&s->blocks[i]) : NULL;
}

uint8_t *pf_stage_find(const struct pf_inode *inode, uint64_t block)
{
	return find(inode->stage, block);
}

const uint8_t *pf_stage_look(const struct pf_inode *inode, uint64_t block)
{
	const uint8_t *newest = find(inode->stage, block);
	return newest ? newest : find(inode->sealed, block);
}

static bool next(const struct pf_stage *s, uint64_t block, uint64_t *found)
{
	unsigned i = s ? position(s, block) : 0;
	if (!s || i == s->nr)
		return false;
	*found = s->blocks[i].block;
	return true;
}

bool pf_stage_next(const struct pf_inode *inode, uint64_t block, uint64_t *found)
{
	uint64_t sealed;
	bool any = next(inode->stage, block, found);
	if (!next(inode->sealed, block, &sealed))
		return any;
	*found = any && *found < sealed ? *found : sealed;
	return true;
}

/* The functions on the list want the staging lock held. */
static void list_append(struct pf_pool *pool, struct pf_inode *inode)
{
	inode->staged_next = NULL;
	inode->staged_prev = pool->staged_last;
	*(pool->staged_last ? &pool->staged_last->staged_next : &pool->staged_first) = inode;
	pool->staged_last = inode;
}

static void list_remove(struct pf_pool *pool, struct pf_inode *inode)
{
	*(inode->staged_prev ? &inode->staged_prev->staged_next : &pool->staged_first) = inode->staged_next;
	*(inode->staged_next ? &inode->staged_next->staged_prev : &pool->staged_last) = inode->staged_prev;
}

int pf_stage_begin(struct pf_pool *pool, struct pf_inode *inode)
{
	struct pf_stage *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->inode = inode;
	inode->stage = s;
	if (inode->sealed)
		return 0; /* it is on the list */
	pf_inode_pin(pool, inode);
	pthread_mutex_lock(&pool->staging_lock);
	list_append(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
	return 0;
}

void pf_stage_add(struct pf_pool *pool, struct pf_inode *inode, uint64_t block, uint8_t *page)
{
	struct pf_stage *s = inode->stage;
	assert(s->nr < PF_STAGE_BLOCKS);
	unsigned i = position(s, block);
	memmove(s->blocks + i + 1, s->blocks + i, (s->nr - i) * sizeof(*s->blocks));
	s->blocks[i] = (struct pf_dirty_block){ block, page };
	s->nr++;
	atomic_fetch_add(&pool->staged_blocks, 1);
}

static void overlay(const struct pf_stage *s, uint64_t start, unsigned nr, uint8_t *buf)
{
	for (unsigned i = s ? position(s, start) : 0; s && i < s->nr && s->blocks[i].block < start + nr; i++)
		memcpy(buf + (s->blocks[i].block - start) * PF_BLOCK_SIZE, s->blocks[i].data, PF_BLOCK_SIZE);
}

void pf_stage_overlay(const struct pf_inode *inode, uint64_t start, unsigned nr, uint8_t *buf)
{
	overlay(inode->sealed, start, nr, buf);
	overlay(inode->stage, start, nr, buf);
}

static void mask_of(const struct pf_stage *s, uint64_t start, unsigned nr, uint64_t *mask)
{
	for (unsigned i = s ? position(s, start) : 0; s && i < s->nr && s->blocks[i].block < start + nr; i++) {
		uint64_t bit = s->blocks[i].block - start;
		mask[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
}

void pf_stage_mask(const struct pf_inode *inode, uint64_t start, unsigned nr, uint64_t *mask)
{
	mask_of(inode->sealed, start, nr, mask);
	mask_of(inode->stage, start, nr, mask);
}

void pf_stage_release(struct pf_pool *pool, struct pf_stage *s)
{
	struct pf_inode *inode = s->inode;
	*(s == inode->stage ? &inode->stage : &inode->sealed) = NULL;
	for (unsigned i = 0; i < s->nr; i++)
		pf_bufpool_put(pool->pages, page_of(&s->blocks[i]));
	atomic_fetch_sub(&pool->staged_blocks, s->nr);
	free(s);
	if (inode->stage || inode->sealed)
		return;
	pthread_mutex_lock(&pool->staging_lock);
	list_remove(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
	pf_inode_unpin(pool, inode);
}

static void drop(struct pf_pool *pool, struct pf_stage *s)
{
	if (!s)
		return;
	pf_space_unreserve(pool->space, s->nr);
	s->inode->write_error = 0;
	pf_stage_release(pool, s);
}

void pf_stage_drop(struct pf_pool *pool, struct pf_inode *inode)
{
	drop(pool, inode->sealed);
	drop(pool, inode->stage);
}

void pf_stage_drop_all(struct pf_pool *pool)
{
	while (pool->staged_first) {
		struct pf_inode *inode = pool->staged_first;
		pf_inode_pin(pool, inode);
		pf_stage_drop(pool, inode);
		pf_inode_unpin(pool, inode);
	}
}

void pf_stage_trim(struct pf_pool *pool, struct pf_stage *s, unsigned nr_blocks)
{
	assert(nr_blocks < s->nr);
	for (unsigned i = 0; i < nr_blocks; i++)
		pf_bufpool_put(pool->pages, page_of(&s->blocks[i]));
	s->nr -= nr_blocks;
	memmove(s->blocks, s->blocks + nr_blocks, s->nr * sizeof(*s->blocks));
	atomic_fetch_sub(&pool->staged_blocks, nr_blocks);
}

void pf_stage_seal(struct pf_inode *inode)
{
	assert(inode->stage && !inode->sealed);
	inode->sealed = inode->stage;
	inode->sealed->size = inode->item.size;
	inode->sealed->times = (struct pf_times){ inode->item.mtime, inode->item.ctime };
	inode->stage = NULL;
}

struct pf_inode *pf_stage_first(struct pf_pool *pool)
{
	pthread_mutex_lock(&pool->staging_lock);
	struct pf_inode *inode = pool->staged_first;
	if (inode)
		pf_inode_pin(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
	return inode;
}

void pf_stage_move_to_end(struct pf_pool *pool, struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->staging_lock);
	list_remove(pool, inode);
	list_append(pool, inode);
	pthread_mutex_unlock(&pool->staging_lock);
}

unsigned pf_stage_count(struct pf_pool *pool)
{
	unsigned nr = 0;
	pthread_mutex_lock(&pool->staging_lock);
	for (struct pf_inode *i = pool->staged_first; i; i = i->staged_next)
		nr++;
	pthread_mutex_unlock(&pool->staging_lock);
	return nr;
}
