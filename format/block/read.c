/* SPDX-License-Identifier: MIT */
#include "block/read.h"

#include "base/csum.h"

#include <string.h>

#define STRAIGHT_MIN 5 /* blocks; under a guard fewer are copied */
#define BATCH 64 /* requests in flight for one call; a range in more pieces takes several rounds */

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

static int finish_run(struct pf_pool *pool, const struct pf_map *map, const struct pf_seg *run, int result, uint8_t *buf,
		      struct pf_bad_block *bad)
{
	uint64_t crc[PF_MAP_BLOCKS];
	uint8_t *data = buf + (size_t)run->first * PF_BLOCK_SIZE;
	if (!result && !has_crc(run))
		return 0;
	if (!result)
		pf_crc64_blocks(data, PF_BLOCK_SIZE, run->nr, crc);
	for (unsigned i = 0; i < run->nr; i++) {
		unsigned block = run->first + i;
		if (!result && crc[i] == map->crc[block])
			continue;
		int err = read_again(pool, map, run, block, data + (size_t)i * PF_BLOCK_SIZE);
		if (err) {
			*bad = (struct pf_bad_block){ map->start + block, run->addr[0] + i, err };
			return err;
		}
	}
	return 0;
}

struct batch {
	const struct pf_picture *picture;
	uint8_t *buf;
	unsigned nr;
	struct pf_seg runs[BATCH];
};

static int read_batch(struct pf_pool *pool, struct batch *b, struct pf_bad_block *bad)
{
	struct pf_aio_req reqs[BATCH];
	unsigned nr = b->nr;
	b->nr = 0;
	if (!nr)
		return 0;
	for (unsigned i = 0; i < nr; i++) {
		const struct pf_seg *run = &b->runs[i];
		pf_set_req(pool->set, &reqs[i], PF_AIO_READ, run->addr[0], b->buf + (size_t)run->first * PF_BLOCK_SIZE, run->nr);
		reqs[i].straight = pool->lends && run->nr >= STRAIGHT_MIN;
	}
	pf_aio_run(pool->set->aio, reqs, nr); /* each result is looked at below */
	for (unsigned i = 0; i < nr; i++) {
		int err = finish_run(pool, &b->picture->map, &b->runs[i], reqs[i].result, b->buf, bad);
		if (err)
			return err;
	}
	return 0;
}

/* The next blocks of a segment, from its block @pos on, that are not known: as a segment of their own. */
static bool next_run(const struct pf_picture *picture, const struct pf_seg *seg, unsigned pos, struct pf_seg *run)
{
	while (pos < seg->nr && pf_picture_is_known(picture, seg->first + pos))
		pos++;
	unsigned end = pos;
	while (end < seg->nr && !pf_picture_is_known(picture, seg->first + end))
		end++;
	*run = *seg;
	run->first += pos;
	run->nr = end - pos;
	for (unsigned copy = 0; copy < seg->nr_copies; copy++)
		run->addr[copy] += pos;
	return run->nr;
}

static int read_seg(struct pf_pool *pool, const struct pf_seg *seg, struct batch *b, struct pf_bad_block *bad)
{
	const struct pf_map *map = &b->picture->map;
	struct pf_seg run;
	for (unsigned pos = 0; next_run(b->picture, seg, pos, &run); pos = run.first + run.nr - seg->first) {
		if (is_zero(seg)) {
			memset(b->buf + (size_t)run.first * PF_BLOCK_SIZE, 0, (size_t)run.nr * PF_BLOCK_SIZE);
			continue;
		}
		if (!pf_set_addr_valid(pool->set, seg->addr[0], seg->nr)) {
			*bad = (struct pf_bad_block){ map->start + seg->first, seg->addr[0], -PF_EITEM_INVALID };
			return -PF_EITEM_INVALID;
		}
		b->runs[b->nr++] = run;
		int err = b->nr == BATCH ? read_batch(pool, b, bad) : 0;
		if (err)
			return err;
	}
	return 0;
}

int pf_picture_take(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, struct pf_picture *picture,
		    struct pf_bad_block *bad)
{
	memset(picture->known, 0, sizeof(picture->known));
	int err = pf_extent_map(pool, data_id, start, nr, &picture->map);
	if (err)
		*bad = (struct pf_bad_block){ start, 0, err };
	return err;
}

int pf_picture_read(struct pf_pool *pool, struct pf_picture *picture, void *buf, struct pf_bad_block *bad)
{
	struct batch b;
	b.picture = picture;
	b.buf = buf;
	b.nr = 0;
	int err = 0;
	for (unsigned i = 0; !err && i < picture->map.nr_segs; i++)
		err = read_seg(pool, &picture->map.segs[i], &b, bad);
	if (!err)
		err = read_batch(pool, &b, bad);
	pf_picture_drop(pool, picture);
	return err;
}

void pf_picture_drop(struct pf_pool *pool, struct pf_picture *picture)
{
	pf_map_release(pool, &picture->map);
}

int pf_block_read(struct pf_pool *pool, uint64_t data_id, uint64_t start, unsigned nr, void *buf, struct pf_bad_block *bad)
{
	struct pf_picture picture;
	int err = pf_picture_take(pool, data_id, start, nr, &picture, bad);
	return err ? err : pf_picture_read(pool, &picture, buf, bad);
}
