/* SPDX-License-Identifier: MIT */
#include "block/read.h"

#include "base/csum.h"

#include <string.h>

#define STRAIGHT_MIN 5 /* blocks; under a guard fewer are copied */
#define BATCH 64 /* requests in flight for one call; a range in more pieces takes several rounds */

static bool skipped(const uint64_t *skip, unsigned block)
{
	return skip && skip[block / 64] >> (block % 64) & 1;
}

static bool has_crc(const struct pf_seg *seg)
{
	return !(seg->flags & (PF_EXTENT_NO_CSUM | PF_EXTENT_UNWRITTEN | PF_SEG_HOLE));
}

static bool is_zero(const struct pf_seg *seg)
{
	return seg->flags & (PF_SEG_HOLE | PF_EXTENT_UNWRITTEN);
}

static int verify(const struct pf_map *map, const struct pf_seg *seg, unsigned block, const uint8_t *data)
{
	if (has_crc(seg) && pf_crc64(data, PF_BLOCK_SIZE) != map->crc[block])
		return -PF_EDATA_CSUM;
	return 0;
}

/* One block from copy @copy of its segment. */
static int read_copy(struct pf_pool *pool, const struct pf_map *map, const struct pf_seg *seg, unsigned block,
		     unsigned copy, uint8_t *data)
{
	int err = pf_set_read(pool->set, seg->addr[copy] + (block - seg->first), data, 1);
	return err ? err : verify(map, seg, block, data);
}

/* A block whose first read failed: once more by itself, then from the other copies. */
static int read_again(struct pf_pool *pool, const struct pf_map *map, const struct pf_seg *seg, unsigned block,
		      uint8_t *data)
{
	if (pf_aio_holds(pool->set->aio, data, PF_BLOCK_SIZE))
		return -EIO; /* what came from elsewhere might be overwritten at any time */
	int err = read_copy(pool, map, seg, block, 0, data);
	for (unsigned copy = 1; err && copy < seg->nr_copies; copy++)
		err = read_copy(pool, map, seg, block, copy, data);
	return err;
}

static int finish_seg(struct pf_pool *pool, const struct pf_map *map, const struct pf_seg *seg, int result, uint8_t *buf,
		      const uint64_t *skip, struct pf_bad_block *bad)
{
	uint64_t crc[PF_MAP_BLOCKS];
	uint8_t *data = buf + (size_t)seg->first * PF_BLOCK_SIZE;
	if (!result && !has_crc(seg))
		return 0;
	if (!result)
		pf_crc64_blocks(data, PF_BLOCK_SIZE, seg->nr, crc);
	for (unsigned i = 0; i < seg->nr; i++) {
		unsigned block = seg->first + i;
		if (skipped(skip, block) || (!result && crc[i] == map->crc[block]))
			continue;
		int err = read_again(pool, map, seg, block, buf + (size_t)block * PF_BLOCK_SIZE);
		if (err) {
			*bad = (struct pf_bad_block){ map->start + block, seg->addr[0] + i, err };
			return err;
		}
	}
	return 0;
}

static int read_batch(struct pf_pool *pool, const struct pf_map *map, const struct pf_seg **segs, unsigned nr, uint8_t *buf,
		      const uint64_t *skip, struct pf_bad_block *bad)
{
	struct pf_aio_req reqs[BATCH];
	for (unsigned i = 0; i < nr; i++) {
		pf_set_req(pool->set, &reqs[i], PF_AIO_READ, segs[i]->addr[0],
			   buf + (size_t)segs[i]->first * PF_BLOCK_SIZE, segs[i]->nr);
		reqs[i].straight = pool->lends && segs[i]->nr >= STRAIGHT_MIN;
	}
	pf_aio_run(pool->set->aio, reqs, nr); /* each result is looked at below */
	for (unsigned i = 0; i < nr; i++) {
		int err = finish_seg(pool, map, segs[i], reqs[i].result, buf, skip, bad);
		if (err)
			return err;
	}
	return 0;
}

static bool seg_skipped(const struct pf_seg *seg, const uint64_t *skip)
{
	for (unsigned i = 0; i < seg->nr; i++) {
		if (!skipped(skip, seg->first + i))
			return false;
	}
	return true;
}

static int read_map(struct pf_pool *pool, const struct pf_map *map, uint8_t *buf, const uint64_t *skip,
		    struct pf_bad_block *bad)
{
	const struct pf_seg *batch[BATCH];
	unsigned nr = 0;
	for (unsigned i = 0; i < map->nr_segs; i++) {
		const struct pf_seg *seg = &map->segs[i];
		if (is_zero(seg)) {
			memset(buf + (size_t)seg->first * PF_BLOCK_SIZE, 0, (size_t)seg->nr * PF_BLOCK_SIZE);
			continue;
		}
		if (skip && seg_skipped(seg, skip))
			continue;
		if (!pf_set_addr_valid(pool->set, seg->addr[0], seg->nr)) {
			*bad = (struct pf_bad_block){ map->start + seg->first, seg->addr[0], -PF_EITEM_INVALID };
			return -PF_EITEM_INVALID;
		}
		batch[nr++] = seg;
		if (nr == BATCH) {
			int err = read_batch(pool, map, batch, nr, buf, skip, bad);
			if (err)
				return err;
			nr = 0;
		}
	}
	return nr ? read_batch(pool, map, batch, nr, buf, skip, bad) : 0;
}

int pf_block_read(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, void *buf, const uint64_t *skip,
		  struct pf_bad_block *bad)
{
	struct pf_map map;
	int err = pf_extent_map(pool, data_id, start, nr, &map);
	if (err) {
		*bad = (struct pf_bad_block){ start, 0, err };
		return err;
	}
	err = read_map(pool, &map, buf, skip, bad);
	pf_map_release(pool, &map);
	return err;
}
