/* SPDX-License-Identifier: MIT
 * Reading and writing files. A read holds the inode lock while it looks up, not while members read. Small writes are staged; large
 * ones go straight to the members (object/stage.h). */
#include "object/data.h"
#include "object/drain.h"
#include "object/orphan.h"
#include "object/stage.h"
#include "object/xattr.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIRECT_BYTES (64u << 10)  /* a write of at least this many bytes is not staged */
#define CHUNK_BYTES (4u << 20)    /* longer ones are taken in pieces of this size, each one point of the file's history */

size_t pf_read_buf_bytes(uint64_t off_bytes, size_t len_bytes)
{
	uint64_t first = off_bytes / PF_BLOCK_SIZE, last = (off_bytes + len_bytes + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE;
	return (size_t)(last - first) * PF_BLOCK_SIZE;
}

static void zero_pending(struct pf_pool *pool, const struct pf_inode *inode, struct pf_picture *picture, uint8_t *buf)
{
	uint64_t mask[PF_MAP_BLOCKS / 64] = { 0 };
	pf_orphan_mask_pending(pool, inode, picture->map.start, picture->map.nr, mask);
	for (unsigned b = 0; b < picture->map.nr; b++) {
		if (mask[b / 64] >> (b % 64) & 1)
			memset(buf + (size_t)b * PF_BLOCK_SIZE, 0, PF_BLOCK_SIZE);
	}
	for (unsigned i = 0; i < PF_MAP_BLOCKS / 64; i++)
		picture->known[i] |= mask[i];
}

/* What one read has found under the lock of the inode: it needs no lock for the rest (block/read.h I4). */
struct reading {
	struct pf_picture one, *pictures; /* one after the other */
	unsigned nr;
	struct pf_bad_block bad; /* err 0: none */
};

/* What is known without reading goes to @buf at once: later it may be gone. */
static int take_pictures(struct pf_pool *pool, struct pf_inode *inode, uint64_t start, uint64_t nr, uint8_t *buf, struct reading *r)
{
	if (nr > PF_MAP_BLOCKS)
		r->pictures = malloc((nr + PF_MAP_BLOCKS - 1) / PF_MAP_BLOCKS * sizeof(*r->pictures));
	if (!r->pictures)
		return -ENOMEM;
	while (nr) {
		unsigned n = nr < PF_MAP_BLOCKS ? (unsigned)nr : PF_MAP_BLOCKS;
		struct pf_picture *picture = &r->pictures[r->nr];
		int err = pf_picture_take(pool, inode->item.data_id, start, n, picture, &r->bad);
		if (err)
			return err;
		r->nr++;
		pf_stage_mask(inode, start, n, picture->known);
		pf_stage_overlay(inode, start, n, buf);
		if (pf_orphan_has_pending(pool, inode))
			zero_pending(pool, inode, picture, buf);
		start += n;
		nr -= n;
		buf += (size_t)n * PF_BLOCK_SIZE;
	}
	return 0;
}

/* @err: so far; with one the pictures are only dropped. */
static int read_pictures(struct pf_pool *pool, struct reading *r, int err, uint8_t *buf)
{
	for (unsigned i = 0; i < r->nr; i++) {
		struct pf_picture *picture = &r->pictures[i];
		if (err)
			pf_picture_drop(pool, picture);
		else
			err = pf_picture_read(pool, picture, buf, &r->bad);
		buf += (size_t)picture->map.nr * PF_BLOCK_SIZE;
	}
	if (r->pictures != &r->one)
		free(r->pictures);
	return err;
}

static int is_regular(const struct pf_inode *inode)
{
	return pf_inode_is_file(inode) ? 0 : pf_inode_is_dir(inode) ? -EISDIR : -EINVAL;
}

/* One point of the file's history, of at most CHUNK_BYTES. Nobody is kept from changing the file while the members are slow. */
static int64_t read_piece(struct pf_pool *pool, struct pf_inode *inode, uint64_t off_bytes, uint8_t *buf, size_t len_bytes)
{
	struct reading r;
	r.pictures = &r.one;
	r.nr = 0;
	r.bad.err = 0;
	pthread_rwlock_rdlock(&inode->lock);
	int err = is_regular(inode);
	uint64_t size = pf_failed_size(inode), len = size > off_bytes ? size - off_bytes : 0;
	if (len > len_bytes)
		len = len_bytes;
	if (!err && len)
		err = pf_failed_read(inode, off_bytes, off_bytes + len);
	if (!err && len)
		err = take_pictures(pool, inode, off_bytes / PF_BLOCK_SIZE, pf_read_buf_bytes(off_bytes, len) / PF_BLOCK_SIZE, buf, &r);
	pthread_rwlock_unlock(&inode->lock);
	err = read_pictures(pool, &r, err, buf);
	if (err && r.bad.err) {
		pthread_rwlock_rdlock(&inode->lock);
		pf_data_report(pool, inode, &r.bad);
		pthread_rwlock_unlock(&inode->lock);
	}
	return err ? err : (int64_t)len;
}

int64_t pf_read(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, void *buf, size_t len_bytes)
{
	struct pf_inode *inode;
	int64_t n = pf_inode_get(pool, ino, &inode);
	if (n)
		return n;
	uint64_t done = 0, len;
	uint8_t *to = buf;
	do {
		uint64_t off = off_bytes + done;
		len = len_bytes - done;
		if (len > CHUNK_BYTES) /* the next piece begins with a block, in the buffer too */
			len = CHUNK_BYTES - off % PF_BLOCK_SIZE;
		n = read_piece(pool, inode, off, to + (off / PF_BLOCK_SIZE - off_bytes / PF_BLOCK_SIZE) * PF_BLOCK_SIZE, len);
		done += n > 0 ? (uint64_t)n : 0;
	} while (n == (int64_t)len && done < len_bytes);
	pf_inode_put(pool, inode);
	return n < 0 ? n : (int64_t)done;
}

/* What the inode becomes by a write of [off, off + len). */
static void written_item(struct pf_pool *pool, const struct pf_inode *inode, uint64_t end, unsigned flags,
			 struct pf_inode_item *item)
{
	*item = inode->item;
	if (end > item->size)
		item->size = end;
	if (flags & PF_WRITE_KILL_SUIDGID)
		item->mode = pf_mode_without_setid(item->mode);
	if (!(flags & PF_WRITE_KEEP_TIMES))
		item->mtime = item->ctime = pf_inode_now(pool);
}

/* One write as the blocks it touches: whole ones point into the caller's buffer, the first and last may be pages that hold
 * old and new bytes. */
struct span {
	uint64_t off, end; /* bytes */
	uint64_t first;    /* block */
	unsigned nr;
	const uint8_t *buf;
};

static struct span make_span(uint64_t off, const void *buf, size_t len)
{
	struct span s = { .off = off, .end = off + len, .first = off / PF_BLOCK_SIZE, .buf = buf };
	s.nr = (unsigned)((s.end + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE - s.first);
	return s;
}

/* The part of block @i of the span that is written: [*from, *to) within the block, and its source. */
static const uint8_t *span_part(const struct span *s, unsigned i, unsigned *from, unsigned *to)
{
	uint64_t start = (s->first + i) * PF_BLOCK_SIZE;
	*from = s->off > start ? (unsigned)(s->off - start) : 0;
	*to = s->end < start + PF_BLOCK_SIZE ? (unsigned)(s->end - start) : PF_BLOCK_SIZE;
	return s->buf + (start + *from - s->off);
}

static bool is_partial(const struct span *s, unsigned i)
{
	unsigned from, to;
	span_part(s, i, &from, &to);
	return from || to < PF_BLOCK_SIZE;
}

/* A page of block @i with its old content around what is written. */
static int fill_page(struct pf_pool *pool, struct pf_inode *inode, const struct span *s, unsigned i, uint8_t *page)
{
	unsigned from, to;
	const uint8_t *src = span_part(s, i, &from, &to);
	if (is_partial(s, i)) {
		int err = pf_data_read_block(pool, inode, s->first + i, page);
		if (err)
			return err;
	}
	memcpy(page + from, src, to - from);
	return 0;
}

static int write_direct(struct pf_pool *pool, struct pf_inode *inode, const struct span *s, unsigned flags)
{
	uint8_t *edge[2] = { NULL, NULL };
	struct pf_dirty_block *blocks = NULL;
	struct pf_write w = { .data_id = inode->item.data_id, .place = &inode->place, .nr_blocks = s->nr };
	int err = pf_stage_drain(pool, inode);
	if (err)
		return err;
	blocks = malloc(s->nr * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	for (unsigned i = 0; !err && i < s->nr; i++) {
		unsigned from, to;
		const void *data = span_part(s, i, &from, &to);
		if (is_partial(s, i)) {
			uint8_t **page = &edge[i ? 1 : 0];
			*page = pf_bufpool_get(pool->pages);
			err = *page ? fill_page(pool, inode, s, i, *page) : -ENOMEM;
			data = *page;
		}
		blocks[i] = (struct pf_dirty_block){ s->first + i, data };
	}
	w.blocks = blocks;
	if (!err)
		err = pf_data_promise(pool, inode, s->first, s->nr, s->nr);
	bool promised = !err;
	if (!err)
		err = pf_block_write(pool, &w);
	if (!err) {
		struct pf_change change;
		pf_change_init(&change, inode);
		written_item(pool, inode, s->end, flags, &change.item);
		change.tree_size = change.item.size;
		change.write = &w;
		err = pf_data_apply(pool, inode, &change);
		pf_block_end(pool, &w, !err);
	}
	if (err && promised)
		pf_space_unreserve(pool->space, s->nr);
	pf_bufpool_put(pool->pages, edge[0]);
	pf_bufpool_put(pool->pages, edge[1]);
	free(blocks);
	return err;
}

/* Set-id bits go before the data that takes them away is accepted, and do not come back with a crash (pitfalls 1.20). */
static int store_mode(struct pf_pool *pool, struct pf_inode *inode, uint32_t mode)
{
	struct pf_change change;
	pf_change_init(&change, inode);
	change.item.mode = mode;
	return pf_data_apply(pool, inode, &change);
}

#define STAGED_MAX (DIRECT_BYTES / PF_BLOCK_SIZE + 1)

/* What fills a stage does not wait until it is written out, unless the one before is not either. */
static int make_room(struct pf_pool *pool, struct pf_inode *inode, unsigned nr)
{
	if (pf_stage_has_room(pool, inode, nr))
		return 0;
	if (inode->busy)
		return -EAGAIN;
	if (!atomic_load(&pool->drains_later) || inode->sealed)
		return pf_stage_drain(pool, inode);
	pf_drain_later(pool, inode);
	return 0;
}

static int write_staged(struct pf_pool *pool, struct pf_inode *inode, const struct span *s, unsigned flags)
{
	uint8_t *pages[STAGED_MAX] = { NULL };
	unsigned fresh = 0;
	assert(s->nr <= STAGED_MAX);
	int err = make_room(pool, inode, s->nr);
	for (unsigned i = 0; i < s->nr; i++)
		fresh += !pf_stage_find(inode, s->first + i);
	if (!err && fresh)
		err = inode->busy ? pf_data_promise_now(pool, fresh) : pf_data_promise(pool, inode, s->first, s->nr, fresh);
	if (err)
		return err;
	for (unsigned i = 0; !err && i < s->nr; i++) {
		if (pf_stage_find(inode, s->first + i))
			continue;
		pages[i] = pf_bufpool_get(pool->pages);
		err = pages[i] ? fill_page(pool, inode, s, i, pages[i]) : -ENOMEM;
	}
	if (!err && !inode->stage && fresh)
		err = pf_stage_begin(pool, inode);
	struct pf_inode_item next;
	written_item(pool, inode, s->end, flags, &next);
	if (!err && next.mode != inode->item.mode)
		err = store_mode(pool, inode, next.mode);
	if (err) {
		for (unsigned i = 0; i < s->nr; i++)
			pf_bufpool_put(pool->pages, pages[i]);
		pf_space_unreserve(pool->space, fresh);
		pf_stage_drop_empty(pool, inode);
		return err;
	}
	for (unsigned i = 0; i < s->nr; i++) {
		unsigned from, to;
		const uint8_t *src = span_part(s, i, &from, &to);
		if (pages[i])
			pf_stage_add(pool, inode, s->first + i, pages[i]);
		else
			memcpy(pf_stage_find(inode, s->first + i) + from, src, to - from);
	}
	inode->item = next;
	return 0;
}

/* Adds to *done what could be written. */
static int write_locked(struct pf_pool *pool, struct pf_inode *inode, uint64_t off_bytes, const void *buf, size_t len_bytes,
			unsigned flags, size_t *done)
{
	int err = is_regular(inode);
	if (!err)
		err = pf_orphan_settle(pool, inode);
	if (!err)
		err = pf_xattr_drop_capability(pool, inode);
	while (!err && *done < len_bytes) {
		size_t len = len_bytes - *done < CHUNK_BYTES ? len_bytes - *done : CHUNK_BYTES;
		struct span s = make_span(off_bytes + *done, (const uint8_t *)buf + *done, len);
		err = len >= DIRECT_BYTES ? write_direct(pool, inode, &s, flags) : write_staged(pool, inode, &s, flags);
		if (err)
			break;
		pf_failed_clear(pool, inode, s.off, s.end);
		*done += len;
	}
	inode->nr_written += err != -EAGAIN && inode->nr_written < UINT8_MAX;
	return err;
}

/* Nothing of it can wait for a checkpoint (inode.h I8), unless there is no room: that says -EAGAIN. */
static bool may_stage_now(const struct pf_inode *inode, size_t len_bytes, unsigned flags)
{
	bool drops_setid = flags & PF_WRITE_KILL_SUIDGID && pf_mode_without_setid(inode->item.mode) != inode->item.mode;
	return len_bytes < DIRECT_BYTES && !pf_inode_is_marked(inode, PF_MARK_OWES) && inode->capability == PF_ABSENT && !drops_setid;
}

/* Beside a drain of the file, if that is possible. */
static int write_once(struct pf_pool *pool, struct pf_inode *inode, uint64_t off_bytes, const void *buf, size_t len_bytes,
		      unsigned flags, size_t *done)
{
	enum pf_busy but = PF_COMMITTING;
	bool again;
	int err;
	do {
		pf_inode_lock_unless(pool, inode, but);
		err = -EAGAIN;
		if (!inode->busy || may_stage_now(inode, len_bytes, flags))
			err = write_locked(pool, inode, off_bytes, buf, len_bytes, flags, done);
		/* it may have begun the drain itself */
		again = err == -EAGAIN && inode->busy;
		pthread_rwlock_unlock(&inode->lock);
		but = PF_IDLE;
	} while (again);
	return err;
}

static int write_some(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, const void *buf, size_t len_bytes,
		      unsigned flags, size_t *done)
{
	struct pf_inode *inode;
	int err = pf_op_begin(pool, PF_SHRINKS);
	if (!err)
		err = pf_stage_balance(pool);
	if (!err)
		err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	bool tried = false;
	do
		err = write_once(pool, inode, off_bytes, buf, len_bytes, flags, done);
	while (pf_stage_gives_way(pool, err, &tried));
	pf_inode_put(pool, inode);
	return err;
}

int64_t pf_write(struct pf_pool *pool, uint64_t ino, uint64_t off_bytes, const void *buf, size_t len_bytes,
		 unsigned flags)
{
	size_t done = 0;
	if (off_bytes > (uint64_t)PF_MAX_FILE_BYTES || len_bytes > (uint64_t)PF_MAX_FILE_BYTES - off_bytes)
		return -EFBIG;
	int err = len_bytes ? write_some(pool, ino, off_bytes, buf, len_bytes, flags, &done) : 0;
	if (err && flags & PF_WRITE_BACK)
		pf_failed_note(pool, ino, off_bytes + done, off_bytes + len_bytes, err);
	return done ? (int64_t)done : err;
}

int64_t pf_copy_range(struct pf_pool *pool, uint64_t from, uint64_t from_off, uint64_t to, uint64_t to_off,
		      size_t len_bytes, unsigned flags)
{
	if (from == to && from_off < to_off + len_bytes && to_off < from_off + len_bytes)
		return -EINVAL;
	struct pf_attr source, target;
	int err = pf_getattr(pool, from, &source);
	if (!err)
		err = pf_getattr(pool, to, &target);
	if (!err && (!S_ISREG(source.mode) || !S_ISREG(target.mode)))
		err = S_ISDIR(source.mode) || S_ISDIR(target.mode) ? -EISDIR : -EINVAL;
	if (err)
		return err;
	/* the end of the source is where it is now: a copy that makes its own source longer does not run after it */
	if (from_off >= source.size_bytes)
		return 0;
	if (len_bytes > source.size_bytes - from_off)
		len_bytes = source.size_bytes - from_off;
	uint8_t *buf = NULL;
	size_t piece = PF_SEGMENT_BYTES, done = 0;
	if (posix_memalign((void **)&buf, PF_BLOCK_SIZE, piece + PF_BLOCK_SIZE))
		return -ENOMEM;
	int64_t n = len_bytes ? 1 : 0;
	while (done < len_bytes && n > 0) {
		size_t len = len_bytes - done < piece ? len_bytes - done : piece;
		n = pf_read(pool, from, from_off + done, buf, len);
		if (n > 0)
			n = pf_write(pool, to, to_off + done, buf + (from_off + done) % PF_BLOCK_SIZE, (size_t)n,
				     flags);
		if (n > 0)
			done += (size_t)n;
	}
	pf_aio_free(pool->set->aio, buf, piece + PF_BLOCK_SIZE);
	return done ? (int64_t)done : n;
}
