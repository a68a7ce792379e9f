/* SPDX-License-Identifier: MIT
 *
 * Checksums for extents that have none, after an upgrade from a version without. Item by item in the order of the
 * tree, each in a transaction of its own, so it may be interrupted at any time and goes on where it was. What is read
 * is taken for right: there is nothing that could say otherwise. */
#include "base/csum.h"
#include "block/pressure.h"
#include "check/scrubber.h"

#include <stdlib.h>
#include <string.h>

struct fill {
	struct pf_scrubber *s;
	struct pf_key key;
	unsigned len;
	uint8_t old[PF_MAX_ITEM_BYTES];
	uint8_t *buf; /* PF_MAX_EXTENT_BLOCKS */
};

/* The first extent without checksums from f->key on. -ENOENT: there is none. Long stretches are cut, so that the tree
 * lock is not held for long: *found says whether there was one. */
static int find_next(struct fill *f, bool *found)
{
	struct pf_view v;
	struct pf_key start = f->key;
	int err;
	PF_VIEW (v, f->s->pool->tree, err) {
		struct pf_item item;
		struct pf_extent extent;
		*found = false;
		f->key = start;
		for (unsigned i = 0; !err && !*found && i < 256; i++) {
			err = pf_view_next(&v, f->key, &item);
			if (err)
				break;
			f->key = item.key;
			if (pf_extent_unpack(item.key, item.data, item.len, &extent) ||
			    extent.flags != PF_EXTENT_NO_CSUM) {
				f->key.lo++;
				continue;
			}
			*found = true;
			f->len = item.len;
			memcpy(f->old, item.data, item.len);
		}
	}
	return err;
}

/* Any copy that can be read. */
static int read_extent(struct fill *f, const struct pf_extent *extent)
{
	int err = -EIO;
	for (unsigned i = 0; err && i < extent->nr_copies; i++) {
		err = -EIO;
		if (pf_set_addr_valid(f->s->set, extent->addr[i], extent->nr))
			err = pf_set_read(f->s->set, extent->addr[i], f->buf, extent->nr);
	}
	return err;
}

static int store(struct fill *f, struct pf_extent *extent)
{
	struct pf_pool *pool = f->s->pool;
	uint64_t crc[PF_MAX_EXTENT_BLOCKS];
	struct le64 disk_crc[PF_MAX_EXTENT_BLOCKS];
	uint8_t item[PF_EXTENT_ITEM_MAX];
	pf_crc64_blocks(f->buf, PF_BLOCK_SIZE, extent->nr, crc);
	for (unsigned i = 0; i < extent->nr; i++)
		disk_crc[i] = pf_le64(crc[i]);
	extent->crc = disk_crc;
	extent->flags = 0;
	unsigned len = pf_extent_pack(extent, item);
	struct pf_txn txn;
	struct pf_item now;
	pf_txn_init(&txn, pool->tree);
	pf_txn_want(&txn, f->key, f->key, PF_TXN_ITEM(len));
	int err = pf_txn_lock(&txn);
	if (!err && pf_txn_get(&txn, f->key, &now) && now.len == f->len && !memcmp(now.data, f->old, f->len)) {
		pf_txn_put(&txn, f->key, item, len);
		pool->counters.no_csum_blocks -= extent->nr;
		f->s->result->filled_in_bytes += (uint64_t)extent->nr << PF_BLOCK_SHIFT;
	}
	pf_txn_end(&txn);
	return err ? err : pf_slow_down(pool);
}

static int fill_one(struct fill *f)
{
	struct pf_scrubber *s = f->s;
	struct pf_extent extent;
	int err = pf_extent_unpack(f->key, f->old, f->len, &extent);
	if (err)
		return err;
	uint64_t bytes = (uint64_t)extent.nr << PF_BLOCK_SHIFT;
	atomic_fetch_add(&s->done_bytes, bytes);
	atomic_fetch_add(&s->data_bytes, bytes);
	if (!read_extent(f, &extent))
		return store(f, &extent);
	atomic_fetch_add(&s->unverified_bytes, bytes);
	struct pf_scrub_hit range = { extent.data_id, extent.start, extent.addr[0], extent.nr, 0 };
	return pf_scrub_unreadable(s, &range, f->buf);
}

/* The tree has moved on since the scrub began: names are looked up in the one that is on disk now. */
static int tell(struct pf_scrubber *s)
{
	if (!s->nr_hits)
		return 0;
	int err = pf_pool_sync(s->pool);
	s->super = *pf_pool_super(s->pool);
	return err ? err : pf_scrub_tell(s);
}

int pf_scrub_fill(struct pf_scrubber *s)
{
	struct fill f = { .s = s, .key = pf_key_make(PF_CLASS_EXTENT, 0, 0, 0) };
	f.buf = aligned_alloc(PF_BLOCK_SIZE, PF_MAX_EXTENT_BLOCKS * PF_BLOCK_SIZE);
	int err = f.buf ? 0 : -ENOMEM;
	while (!err) {
		bool found = false;
		err = find_next(&f, &found);
		if (!err && found) {
			err = fill_one(&f);
			f.key.lo++;
			if (!err && s->nr_hits >= PF_SCRUB_HITS)
				err = tell(s);
			if (!err)
				err = pf_scrub_progress(s);
		}
	}
	free(f.buf);
	err = err == -ENOENT ? 0 : err;
	int told = tell(s);
	int synced = pf_pool_sync(s->pool);
	return err ? err : told ? told : synced;
}
