/* SPDX-License-Identifier: MIT */
#include "block/extent.h"

#include <string.h>

/* An extent with its bytes copied out of the node: they move with the next change of the tree. */
struct held {
	struct pf_extent e;
	uint8_t bytes[PF_EXTENT_ITEM_MAX];
};

/* The part [off, off + nr) of an extent; its CRCs still lie in the extent's. */
static struct pf_extent slice(const struct pf_extent *e, unsigned off, unsigned nr)
{
	struct pf_extent part = *e;
	part.start += off;
	part.nr = nr;
	for (unsigned i = 0; i < e->nr_copies; i++)
		part.addr[i] += off;
	if (e->crc)
		part.crc += off;
	return part;
}

static bool has_no_csum(const struct pf_extent *e)
{
	return (e->flags & (PF_EXTENT_NO_CSUM | PF_EXTENT_UNWRITTEN)) == PF_EXTENT_NO_CSUM;
}

static void put(struct pf_txn *txn, const struct pf_extent *e)
{
	uint8_t buf[PF_EXTENT_ITEM_MAX];
	unsigned len = pf_extent_pack(e, buf);
	pf_txn_put(txn, pf_key_extent(e->data_id, e->start), buf, len);
}

static bool is_ours(const struct pf_item *item, uint64_t data_id)
{
	return pf_key_class(item->key) == PF_CLASS_EXTENT && pf_key_object(item->key) == data_id;
}

/* The first extent that ends after @from and starts before @to. */
static bool next_in_range(struct pf_txn *txn, uint64_t data_id, uint64_t from, uint64_t to, struct pf_item *item)
{
	struct pf_extent e;
	if (pf_txn_prev(txn, pf_key_extent(data_id, from), item) && is_ours(item, data_id) &&
	    !pf_extent_unpack(item->key, item->data, item->len, &e) && e.start + e.nr > from)
		return true;
	return pf_txn_next(txn, pf_key_extent(data_id, from + 1), item) && is_ours(item, data_id) &&
	       pf_key_offset(item->key) < to;
}

static bool hold(const struct pf_item *item, struct held *h)
{
	if (item->len > sizeof(h->bytes))
		return false;
	memcpy(h->bytes, item->data, item->len);
	return !pf_extent_unpack(item->key, h->bytes, item->len, &h->e);
}

void pf_extent_want(struct pf_txn *txn, uint64_t data_id, uint64_t from, uint64_t to, unsigned nr_pieces,
		    uint64_t nr_blocks)
{
	uint64_t first = from > PF_MAX_EXTENT_BLOCKS ? from - PF_MAX_EXTENT_BLOCKS : 0;
	uint64_t last = to + PF_MAX_EXTENT_BLOCKS < PF_KEY_FIELD_MAX ? to + PF_MAX_EXTENT_BLOCKS : PF_KEY_FIELD_MAX;
	/* one item more for the right-hand rest of an extent that the range cuts in two, and one for a merged neighbour */
	uint64_t nr_items = nr_pieces + nr_blocks / PF_MAX_EXTENT_BLOCKS + 1;
	uint64_t bytes = nr_items * PF_TXN_ITEM(sizeof(struct pf_disk_extent) + sizeof(struct le64)) +
			 nr_blocks * sizeof(struct le64) + 2 * PF_TXN_ITEM(PF_EXTENT_ITEM_MAX);
	pf_txn_want(txn, pf_key_extent(data_id, first), pf_key_extent(data_id, last), (unsigned)bytes);
}

int pf_extent_check(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to)
{
	/* what a change looks at: the extent before the range, those in it, and the one behind it that may be merged */
	struct pf_key key = pf_key_extent(data_id, from);
	struct pf_item item;
	uint64_t end = 0;
	if (from && pf_txn_prev(txn, pf_key_extent(data_id, from - 1), &item) && is_ours(&item, data_id))
		key = item.key;
	while (pf_txn_next(txn, key, &item) && is_ours(&item, data_id) && pf_key_offset(item.key) <= to) {
		struct pf_extent e;
		int err = pf_extent_unpack(item.key, item.data, item.len, &e);
		if (err)
			return err;
		for (unsigned i = 0; i < e.nr_copies; i++) {
			if (!pf_set_addr_valid(pool->set, e.addr[i], e.nr))
				return -PF_EITEM_INVALID;
		}
		if (e.start < end)
			return -PF_EITEM_INVALID;
		end = e.start + e.nr;
		key = pf_key_extent(data_id, e.start + 1); /* not end: what overlaps is to be met */
	}
	return 0;
}

/* Takes [from, to) out of one extent. */
static unsigned cut(struct pf_txn *txn, struct pf_pool *pool, const struct pf_extent *e, uint64_t from, uint64_t to,
		    bool keep_unwritten)
{
	unsigned lo = from > e->start ? (unsigned)(from - e->start) : 0;
	unsigned hi = to < e->start + e->nr ? (unsigned)(to - e->start) : e->nr;
	if (lo) {
		struct pf_extent left = slice(e, 0, lo);
		put(txn, &left);
	} else {
		pf_txn_del(txn, pf_key_extent(e->data_id, e->start));
	}
	if (hi < e->nr) {
		struct pf_extent right = slice(e, hi, e->nr - hi);
		put(txn, &right);
	}
	if (has_no_csum(e))
		pool->counters.no_csum_blocks -= hi - lo;
	if (!(keep_unwritten && e->flags & PF_EXTENT_UNWRITTEN)) {
		for (unsigned i = 0; i < e->nr_copies; i++)
			pf_space_free(pool->space, (struct pf_run){ e->addr[i] + lo, hi - lo }, PF_USE_DATA);
	}
	return hi - lo;
}

uint64_t pf_extent_remove(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, uint64_t from, uint64_t to,
			  bool keep_unwritten)
{
	struct pf_item item;
	uint64_t removed = 0;
	while (from < to && next_in_range(txn, data_id, from, to, &item)) {
		struct held h;
		if (!hold(&item, &h))
			break; /* pf_extent_check() has accepted it: cannot happen */
		removed += cut(txn, pool, &h.e, from, to, keep_unwritten);
		from = h.e.start + h.e.nr;
	}
	return removed;
}

/* Joins the extent that ends at @at with the one that begins there, when they are one on disk too. */
static void merge_at(struct pf_txn *txn, uint64_t data_id, uint64_t at)
{
	struct pf_item item;
	struct held left, right;
	if (!at || !pf_txn_get(txn, pf_key_extent(data_id, at), &item) || !hold(&item, &right))
		return;
	if (!pf_txn_prev(txn, pf_key_extent(data_id, at - 1), &item) || !is_ours(&item, data_id) || !hold(&item, &left))
		return;
	struct pf_extent *l = &left.e, *r = &right.e;
	if (l->start + l->nr != at || l->nr + r->nr > PF_MAX_EXTENT_BLOCKS || l->flags != r->flags ||
	    l->nr_copies != r->nr_copies)
		return;
	for (unsigned i = 0; i < l->nr_copies; i++) {
		if (l->addr[i] + l->nr != r->addr[i])
			return;
	}
	struct le64 crc[PF_MAX_EXTENT_BLOCKS];
	struct pf_extent both = *l;
	both.nr = l->nr + r->nr;
	/* claiming to be older is safe: the blocks are then kept for a snapshot that does not need them */
	both.birth = l->birth < r->birth ? l->birth : r->birth;
	if (l->crc) {
		memcpy(crc, l->crc, l->nr * sizeof(*crc));
		memcpy(crc + l->nr, r->crc, r->nr * sizeof(*crc));
		both.crc = crc;
	}
	pf_txn_del(txn, pf_key_extent(data_id, at));
	put(txn, &both);
}

static void insert_piece(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, const struct pf_piece *piece)
{
	for (unsigned off = 0; off < piece->nr;) {
		unsigned nr = piece->nr - off < PF_MAX_EXTENT_BLOCKS ? piece->nr - off : PF_MAX_EXTENT_BLOCKS;
		struct le64 crc[PF_MAX_EXTENT_BLOCKS];
		struct pf_extent e = {
			.data_id = data_id,
			.start = piece->start + off,
			.nr = nr,
			.flags = piece->flags,
			.nr_copies = 1,
			.birth = pool->open_generation,
			.addr = { piece->addr + off },
		};
		if (!(piece->flags & PF_EXTENT_UNWRITTEN) && !piece->crc)
			e.flags |= PF_EXTENT_NO_CSUM;
		if (has_no_csum(&e))
			pool->counters.no_csum_blocks += nr;
		for (unsigned i = 0; piece->crc && i < nr; i++)
			crc[i] = pf_le64(piece->crc[off + i]);
		if (piece->crc)
			e.crc = crc;
		put(txn, &e);
		off += nr;
	}
	if (!piece->in_place)
		pf_space_commit(pool->space, (struct pf_run){ piece->addr, piece->nr }, PF_USE_DATA);
}

uint64_t pf_extent_insert(struct pf_txn *txn, struct pf_pool *pool, uint64_t data_id, const struct pf_piece *pieces,
			  unsigned nr_pieces)
{
	uint64_t inserted = 0;
	for (unsigned i = 0; i < nr_pieces; i++) {
		insert_piece(txn, pool, data_id, &pieces[i]);
		merge_at(txn, data_id, pieces[i].start);
		inserted += pieces[i].nr;
	}
	if (nr_pieces)
		merge_at(txn, data_id, pieces[nr_pieces - 1].start + pieces[nr_pieces - 1].nr);
	return inserted;
}
