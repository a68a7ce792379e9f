/* SPDX-License-Identifier: MIT
 * Pass 2, items of class 2: extents, and whom their data belongs to. */
#include "check/items.h"

#include <stdlib.h>

/* -- ranges that wait for removal ---------------------------------------------------------------------------------- */
static int range_cmp(const void *a, const void *b)
{
	const struct pf_check_range *x = a, *y = b;
	if (x->data_id != y->data_id)
		return x->data_id < y->data_id ? -1 : 1;
	return x->from_block < y->from_block ? -1 : x->from_block > y->from_block;
}

/* A range must not take away what a file still has. */
static const char *range_wrong(const struct pf_checker *c, const struct pf_check_range *range)
{
	const struct pf_check_inode *owner = pf_inodes_find_data(&c->inodes, range->data_id);
	if (!range->ino)
		return owner ? "a file still has this data" : NULL;
	const struct pf_check_inode *inode = pf_inodes_find(&c->inodes, range->ino);
	if (!inode)
		return "its inode does not exist";
	return inode != owner && !(inode->seen & PF_SEEN_INVALID) ? "its inode has other data" : NULL;
}

/* Sorts them, and makes one of those that overlap or touch: a look-up then finds one. */
static void merge_ranges(struct pf_checker *c)
{
	size_t nr = 0;
	if (c->nr_ranges)
		qsort(c->ranges, c->nr_ranges, sizeof(c->ranges[0]), range_cmp);
	for (size_t i = 0; i < c->nr_ranges; i++) {
		const struct pf_check_range *range = &c->ranges[i];
		struct pf_check_range *before = nr ? &c->ranges[nr - 1] : NULL;
		if (!before || before->data_id != range->data_id || before->to_block < range->from_block)
			c->ranges[nr++] = *range;
		else if (before->to_block < range->to_block)
			before->to_block = range->to_block;
	}
	c->nr_ranges = nr;
}

int pf_check_ranges_seal(struct pf_check_items *s)
{
	struct pf_checker *c = s->c;
	pf_inodes_seal(&c->inodes);
	for (size_t i = 0; i < c->nr_orphans; i++) {
		struct pf_check_inode *inode = pf_inodes_find(&c->inodes, c->orphans[i]);
		if (inode)
			inode->seen |= PF_SEEN_ORPHAN;
	}
	size_t kept = 0;
	for (size_t i = 0; i < c->nr_ranges; i++) {
		struct pf_check_range range = c->ranges[i];
		const char *why = c->items_known ? range_wrong(c, &range) : NULL;
		if (!why) {
			c->ranges[kept++] = range;
			continue;
		}
		if (pf_check_report(c, PF_PROBLEM_ORPHAN_INVALID, "range %llu of data %llu: %s",
				    (unsigned long long)range.number, (unsigned long long)range.data_id, why)) {
			struct pf_fix fix = {
				.kind = PF_FIX_DELETE,
				.key = pf_key_make(PF_CLASS_INODE, 0, PF_TYPE_ORPHAN_RANGE, range.number),
			};
			if (pf_repair_note(&c->repairs, &fix))
				return -ENOMEM;
		}
	}
	c->nr_ranges = kept;
	merge_ranges(c);
	return 0;
}

/* Does a range say that [from, to) of @data_id waits for removal? */
static bool waits(const struct pf_checker *c, uint64_t data_id, uint64_t from, uint64_t to)
{
	struct pf_check_range key = { .data_id = data_id, .from_block = from };
	size_t lo = 0, hi = c->nr_ranges; /* the last range that is not behind the key */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (range_cmp(&c->ranges[mid], &key) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && c->ranges[lo - 1].data_id == data_id && c->ranges[lo - 1].to_block >= to;
}

/* -- extents ------------------------------------------------------------------------------------------------------- */
static const char *extent_wrong(const struct pf_checker *c, const struct pf_extent *extent)
{
	if (extent->crc && !c->data_csum)
		return "it has checksums, which the format version does not know";
	if (extent->birth > c->super->generation)
		return "it is younger than the pool";
	for (unsigned i = 0; i < extent->nr_copies; i++) {
		if (!pf_set_addr_valid(c->set, extent->addr[i], extent->nr))
			return "it lies outside the data area";
	}
	return NULL;
}

static int mark(struct pf_checker *c, const struct pf_extent *extent)
{
	for (unsigned i = 0; i < extent->nr_copies; i++) {
		pf_addr first;
		int nr_twice = pf_blockmap_mark(c->map, extent->addr[i], extent->nr, &first);
		if (nr_twice < 0)
			return nr_twice;
		struct pf_check_user user = pf_check_user_extent(extent, i);
		if (nr_twice && pf_check_twice_note(c, &user))
			return -ENOMEM;
	}
	return 0;
}

static int beyond_end(struct pf_check_items *s, const struct pf_extent *extent)
{
	struct pf_checker *c = s->c;
	uint64_t end = (s->file->size + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE, to = extent->start + extent->nr;
	uint64_t from = extent->start > end ? extent->start : end;
	if (to <= end || extent->flags & PF_EXTENT_UNWRITTEN || waits(c, extent->data_id, from, to) || !c->items_known)
		return 0;
	if (!pf_check_report(c, PF_PROBLEM_EXTENT_BEYOND_END, "inode %llu, blocks [%llu, %llu), size %llu bytes",
			     (unsigned long long)s->file->ino, (unsigned long long)from, (unsigned long long)to,
			     (unsigned long long)s->file->size))
		return 0;
	struct pf_fix fix = { .kind = PF_FIX_ADD_RANGE, .a = extent->data_id, .b = s->file->ino, .c = from, .d = to };
	return pf_repair_note(&c->repairs, &fix);
}

static int account(struct pf_check_items *s, const struct pf_extent *extent)
{
	struct pf_checker *c = s->c;
	c->seen_counters.data_blocks += extent->nr;
	if ((extent->flags & (PF_EXTENT_NO_CSUM | PF_EXTENT_UNWRITTEN)) == PF_EXTENT_NO_CSUM)
		c->seen_counters.no_csum_blocks += extent->nr;
	c->result->nr_extents++;
	c->result->data_blocks += extent->nr;
	if (!s->file) {
		if (waits(c, extent->data_id, extent->start, extent->start + extent->nr))
			c->seen_counters.orphan_blocks += extent->nr;
		else
			s->unowned_blocks += extent->nr;
		return 0;
	}
	s->file->seen_blocks += extent->nr;
	return s->file->seen & PF_SEEN_INVALID ? 0 : beyond_end(s, extent);
}

int pf_check_extent_item(struct pf_check_items *s, const struct pf_walk_item *item)
{
	struct pf_checker *c = s->c;
	struct pf_key_text text = pf_check_key_text(item->key);
	if (pf_key_type(item->key) != PF_TYPE_EXTENT || !pf_key_object(item->key)) {
		pf_check_report(c, PF_PROBLEM_ITEM_UNKNOWN, "%s, type %u", text.text, pf_key_type(item->key));
		c->blocks_known = false;
		return 0;
	}
	if (pf_key_object(item->key) != s->data_id) {
		int err = pf_check_extent_done(s);
		if (err)
			return err;
		s->data_id = pf_key_object(item->key);
		s->file = pf_inodes_find_data(&c->inodes, s->data_id);
		s->end = 0;
		if (c->seen_counters.next_id <= s->data_id)
			c->seen_counters.next_id = s->data_id + 1;
	}
	struct pf_extent extent;
	int err = pf_extent_unpack(item->key, item->data, item->len, &extent);
	const char *why = err ? pf_strerror(err) : extent_wrong(c, &extent);
	if (why) {
		pf_check_report(c, PF_PROBLEM_EXTENT_INVALID, "%s: %s", text.text, why);
		c->blocks_known = false;
		return 0;
	}
	if (extent.start < s->end)
		pf_check_report(c, PF_PROBLEM_EXTENT_OVERLAP, "%s, the one before ends at block %llu", text.text,
				(unsigned long long)s->end);
	if (s->end < extent.start + extent.nr)
		s->end = extent.start + extent.nr;
	err = mark(c, &extent);
	return err ? err : account(s, &extent);
}

int pf_check_extent_done(struct pf_check_items *s)
{
	struct pf_checker *c = s->c;
	uint64_t nr = s->unowned_blocks;
	s->unowned_blocks = 0;
	if (!nr || !c->blocks_known || !c->items_known)
		return 0;
	if (!pf_check_report(c, PF_PROBLEM_DATA_UNOWNED, "%llu blocks of data %llu", (unsigned long long)nr,
			     (unsigned long long)s->data_id))
		return 0;
	struct pf_fix fix = { .kind = PF_FIX_ADD_RANGE, .a = s->data_id, .d = PF_MAX_FILE_BLOCKS, .nr_blocks = nr };
	return pf_repair_note(&c->repairs, &fix);
}
