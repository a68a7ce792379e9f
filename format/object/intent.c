/* SPDX-License-Identifier: MIT */
#include "object/intent.h"

#include "block/extent.h"

#include <stdlib.h>
#include <string.h>

static struct pf_log_part part_of(const void *data, size_t len)
{
	return (struct pf_log_part){ data, len };
}

/* @a and @b follow the fixed part; NULL: nothing. */
static void append(struct pf_pool *pool, const struct pf_record *rec, const void *a, size_t a_len, const void *b, size_t b_len)
{
	static const uint8_t zeros[8];
	uint8_t head[PF_RECORD_HEAD_MAX];
	uint32_t total;
	unsigned head_len = pf_record_pack(rec, head, &total);
	struct pf_log_part parts[4] = {
		part_of(head, head_len),
		part_of(a, a_len),
		part_of(b, b_len),
		part_of(zeros, total - head_len - a_len - b_len),
	};
	pf_log_append(pool->log, parts, 4, 0);
}

static struct pf_record_bytes bytes_of(const char *data, size_t len)
{
	return (struct pf_record_bytes){ data, (uint32_t)len };
}

void pf_intent_create(struct pf_pool *pool, uint64_t parent, const struct pf_inode *inode, const char *name, size_t name_len,
		      const char *target, size_t target_len)
{
	if (!pool->log)
		return;
	const struct pf_inode_item *item = &inode->item;
	struct pf_record rec = {
		.type = PF_RECORD_CREATE,
		.ino = inode->ino,
		.time = item->btime,
		.create = {
			.parent = parent,
			.data_id = item->data_id,
			.mode = item->mode,
			.uid = item->uid,
			.gid = item->gid,
			.rdev_major = item->rdev_major,
			.rdev_minor = item->rdev_minor,
			.name = bytes_of(name, name ? name_len : 0),
			.target = bytes_of(target, target_len),
		},
	};
	append(pool, &rec, name, name ? name_len : 0, target, target_len);
}

static void name_record(struct pf_pool *pool, enum pf_record_type type, uint64_t parent, uint64_t ino, const char *name,
			size_t len, struct timespec now)
{
	if (!pool->log)
		return;
	struct pf_record rec = {
		.type = type,
		.ino = ino,
		.time = now,
		.name = { .parent = parent, .name = bytes_of(name, len) },
	};
	append(pool, &rec, name, len, NULL, 0);
}

void pf_intent_link(struct pf_pool *pool, uint64_t parent, uint64_t ino, const char *name, size_t len, struct timespec now)
{
	name_record(pool, PF_RECORD_LINK, parent, ino, name, len, now);
}

void pf_intent_remove(struct pf_pool *pool, uint64_t parent, uint64_t ino, const char *name, size_t len, struct timespec now)
{
	name_record(pool, PF_RECORD_REMOVE, parent, ino, name, len, now);
}

void pf_intent_rename(struct pf_pool *pool, const struct pf_record *rec)
{
	if (pool->log)
		append(pool, rec, rec->rename.old_name.data, rec->rename.old_name.len, rec->rename.new_name.data,
		       rec->rename.new_name.len);
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

void pf_intent_setattr(struct pf_pool *pool, uint64_t ino, const struct pf_inode_item *before,
		       const struct pf_inode_item *after, bool data)
{
	unsigned mask = 0;
	if (!pool->log)
		return;
	if (before->mode != after->mode)
		mask |= PF_SET_MODE;
	if (before->uid != after->uid)
		mask |= PF_SET_UID;
	if (before->gid != after->gid)
		mask |= PF_SET_GID;
	if (!same_time(before->atime, after->atime))
		mask |= PF_SET_ATIME;
	if (!data && !same_time(before->mtime, after->mtime))
		mask |= PF_SET_MTIME;
	if (!data && !same_time(before->ctime, after->ctime))
		mask |= PF_SET_CTIME;
	if (!mask)
		return;
	struct pf_record rec = {
		.type = PF_RECORD_SETATTR,
		.ino = ino,
		.time = after->ctime,
		.setattr = {
			.mask = mask,
			.mode = after->mode & 07777,
			.uid = after->uid,
			.gid = after->gid,
			.atime = after->atime,
			.mtime = after->mtime,
		},
	};
	append(pool, &rec, NULL, 0, NULL, 0);
}

void pf_intent_xattr(struct pf_pool *pool, uint64_t ino, const char *name, const void *value, uint32_t len,
		     struct timespec now)
{
	if (!pool->log)
		return;
	struct pf_record rec = {
		.type = PF_RECORD_XATTR,
		.ino = ino,
		.time = now,
		.xattr = { .remove = !value, .name = bytes_of(name, strlen(name)), .value = bytes_of(value, value ? len : 0) },
	};
	append(pool, &rec, name, strlen(name), value, value ? len : 0);
}

/* -- file records ------------------------------------------------------------------------------------------------------- */

struct building {
	struct pf_pool *pool;
	uint64_t data_id;
	uint8_t *bytes; /* ranges */
	size_t len, cap, max;
	uint32_t nr_ranges, members;
};

static int grow(struct building *b, size_t more)
{
	if (b->len + more > b->max)
		return -EAGAIN;
	if (b->len + more <= b->cap)
		return 0;
	size_t cap = 2 * b->cap + more + 256;
	uint8_t *bytes = realloc(b->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	b->bytes = bytes;
	b->cap = cap;
	return 0;
}

/* @crc: of each block, or NULL. Holes that touch become one. */
static int add_range(struct building *b, const struct pf_record_range *range, const uint64_t *crc)
{
	unsigned nr_crc = crc ? (unsigned)range->nr : 0;
	int err = grow(b, sizeof(struct pf_disk_record_range) + nr_crc * sizeof(struct le64));
	if (err)
		return err;
	b->len += pf_record_range_pack(range, b->bytes + b->len);
	for (unsigned i = 0; i < nr_crc; i++) {
		struct le64 le = pf_le64(crc[i]);
		memcpy(b->bytes + b->len, &le, sizeof(le));
		b->len += sizeof(le);
	}
	b->nr_ranges++;
	return 0;
}

static int add_seg(struct building *b, const struct pf_map *map, const struct pf_seg *seg)
{
	struct pf_record_range range = { .start = map->start + seg->first, .nr = seg->nr, .addr = seg->addr[0] };
	if (seg->flags & PF_SEG_HOLE) {
		range.kind = PF_RANGE_HOLE;
		range.addr = 0;
		return add_range(b, &range, NULL);
	}
	if (seg->flags & PF_EXTENT_UNWRITTEN) {
		range.kind = PF_RANGE_UNWRITTEN;
		return add_range(b, &range, NULL);
	}
	/* what was written in this mount has its CRCs; what has none cannot be verified after a crash */
	if (seg->flags & PF_EXTENT_NO_CSUM)
		return -EAGAIN;
	range.kind = PF_RANGE_BLOCKS;
	b->members |= 1u << pf_addr_member(range.addr);
	return add_range(b, &range, map->crc + seg->first);
}

/* Up to the next extent there is nothing: as one range, however long. Returns where to go on in *pos. */
static int skip_hole(struct building *b, uint64_t *pos, uint64_t to)
{
	struct pf_extent e;
	int err = pf_extent_find(b->pool, b->data_id, *pos, &e);
	if (err && err != -ENOENT)
		return err;
	uint64_t end = err == -ENOENT || e.start > to ? to : e.start;
	if (end <= *pos)
		return 0;
	struct pf_record_range hole = { .start = *pos, .nr = end - *pos, .kind = PF_RANGE_HOLE };
	*pos = end;
	return add_range(b, &hole, NULL);
}

static int add_mapping(struct building *b, uint64_t from, uint64_t to)
{
	uint64_t pos = from;
	int err = 0;
	while (!err && pos < to) {
		err = skip_hole(b, &pos, to);
		if (err || pos == to)
			break;
		struct pf_map map;
		unsigned nr = to - pos < PF_MAP_BLOCKS ? (unsigned)(to - pos) : PF_MAP_BLOCKS;
		err = pf_extent_map(b->pool, b->data_id, pos, nr, &map);
		if (err)
			break;
		pf_map_release(b->pool, &map);
		/* a hole at the end may be longer than was looked at */
		unsigned nr_segs = map.nr_segs && map.segs[map.nr_segs - 1].flags & PF_SEG_HOLE ? map.nr_segs - 1 : map.nr_segs;
		for (unsigned i = 0; i < nr_segs && !err; i++) {
			err = add_seg(b, &map, &map.segs[i]);
			pos = map.start + map.segs[i].first + map.segs[i].nr;
		}
	}
	return err;
}

static void append_file(struct building *b, const struct pf_inode *inode, uint64_t size, struct pf_log_writes *writes)
{
	uint8_t head[PF_RECORD_HEAD_MAX];
	uint32_t total;
	const struct pf_inode_item *item = &inode->item;
	struct pf_record rec = {
		.type = PF_RECORD_FILE,
		.ino = inode->ino,
		.time = item->ctime,
		.file = {
			.data_id = item->data_id,
			.size = size,
			.mtime = item->mtime,
			.nr_ranges = b->nr_ranges,
			.ranges_bytes = (uint32_t)b->len,
		},
	};
	unsigned head_len = pf_record_pack(&rec, head, &total);
	struct pf_log_part parts[2] = { part_of(head, head_len), part_of(b->bytes, b->len) };
	pf_log_append_with(b->pool->log, parts, 2, b->members, writes);
}

static int add_piece(struct building *b, const struct pf_piece *piece)
{
	struct pf_record_range range = { .start = piece->start, .nr = piece->nr, .kind = PF_RANGE_BLOCKS, .addr = piece->addr };
	b->members |= 1u << pf_addr_member(piece->addr);
	return add_range(b, &range, piece->crc);
}

/* What the tree has in the ranges, but where there are pieces those. Both ascend. */
static int add_union(struct building *b, struct pf_dirty_range *ranges, unsigned nr, const struct pf_write *w)
{
	unsigned nr_pieces = w ? w->nr_pieces : 0, i = 0, p = 0;
	int err = 0;
	while (!err && (i < nr || p < nr_pieces)) {
		const struct pf_piece *piece = p < nr_pieces ? &w->pieces[p] : NULL;
		if (piece && (i == nr || piece->start <= ranges[i].from)) {
			uint64_t end = piece->start + piece->nr;
			while (i < nr && ranges[i].to <= end)
				i++;
			if (i < nr && ranges[i].from < end)
				ranges[i].from = end;
			err = add_piece(b, piece);
			p++;
			continue;
		}
		uint64_t to = piece && piece->start < ranges[i].to ? piece->start : ranges[i].to;
		err = add_mapping(b, ranges[i].from, to);
		ranges[i].from = to;
		if (to == ranges[i].to)
			i++;
	}
	return err;
}

static int build(struct pf_pool *pool, struct pf_inode *inode, struct pf_write *w, struct pf_log_writes *writes)
{
	struct pf_dirty_range *ranges;
	unsigned nr;
	/* the tree has blocks that the file has no more: the orphan range beside them is in no record, but in a checkpoint */
	if (inode->unfinished.seq)
		return -EAGAIN;
	int err = pf_dirty_collect(pool, &inode->dirty, &ranges, &nr);
	if (err)
		return err;
	struct building b = {
		.pool = pool,
		.data_id = inode->item.data_id,
		.max = pf_log_max_record(pool->log) - sizeof(struct pf_disk_record_file),
	};
	err = add_union(&b, ranges, nr, w);
	if (!err)
		append_file(&b, inode, w ? inode->item.size : inode->tree_size, writes);
	free(b.bytes);
	free(ranges);
	return err;
}

void pf_intent_none(struct pf_pool *pool)
{
	if (pool->log)
		pf_log_lose(pool->log);
}

int pf_intent_file(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!pool->log || !pf_dirty_generation(pool, &inode->dirty))
		return 0;
	int err = build(pool, inode, NULL, NULL);
	if (!err)
		pf_dirty_clear(&inode->dirty);
	return err;
}

int pf_intent_file_with(struct pf_pool *pool, struct pf_inode *inode, struct pf_write *w, struct pf_log_writes *writes)
{
	writes->reqs = pf_block_requests(w, &writes->nr);
	return build(pool, inode, w, writes);
}

int pf_intent_before_name(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!pf_inode_is_file(inode) || !pool->log || pf_breaks(pool->env, PF_BREAK_RENAME_BEFORE_DATA))
		return 0;
	int err = pf_intent_file(pool, inode);
	if (err == -EAGAIN || err == -ENOMEM) {
		pf_log_lose(pool->log);
		err = 0;
	}
	return err;
}
