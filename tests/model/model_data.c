/* SPDX-License-Identifier: MIT */
#include "model/model.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t block_of(uint64_t off)
{
	return (size_t)(off / MODEL_BLOCK);
}
static size_t blocks_for(uint64_t size)
{
	return (size_t)((size + MODEL_BLOCK - 1) / MODEL_BLOCK);
}

static enum model_block state_of(const struct model_inode *i, size_t b)
{
	return b < i->nr_pages ? (enum model_block)i->blocks[b] : MODEL_HOLE;
}

static void want_pages(struct model_inode *i, size_t nr)
{
	if (nr <= i->nr_pages)
		return;
	i->pages = realloc(i->pages, nr * sizeof(*i->pages));
	i->blocks = realloc(i->blocks, nr);
	memset(i->pages + i->nr_pages, 0, (nr - i->nr_pages) * sizeof(*i->pages));
	memset(i->blocks + i->nr_pages, MODEL_HOLE, nr - i->nr_pages);
	i->nr_pages = nr;
}

static void drop_page(struct model_inode *i, size_t b)
{
	struct model_page *p = i->pages[b];
	if (p && !--p->refs)
		free(p);
	i->pages[b] = NULL;
}

/* The page, to be changed. */
static struct model_page *own_page(struct model_inode *i, size_t b)
{
	struct model_page *old = i->pages[b], *p = old;
	if (!old || old->refs > 1) {
		p = calloc(1, sizeof(*p));
		p->refs = 1;
		if (old) {
			memcpy(p->bytes, old->bytes, MODEL_BLOCK);
			old->refs--;
		}
		i->pages[b] = p;
	}
	p->hash = 0;
	return p;
}

void model_read_at(const struct model_inode *i, uint64_t off, void *buf, size_t len)
{
	uint8_t *out = buf;
	while (len) {
		size_t b = block_of(off), in = off % MODEL_BLOCK, n = MODEL_BLOCK - in;
		if (n > len)
			n = len;
		if (b < i->nr_pages && i->pages[b])
			memcpy(out, i->pages[b]->bytes + in, n);
		else
			memset(out, 0, n);
		off += n;
		out += n;
		len -= n;
	}
}

int64_t model_read(const struct model *m, uint64_t ino, uint64_t off, void *buf, size_t len)
{
	const struct model_inode *i = model_get(m, ino);
	if (!model_is_file(i))
		return -MODEL_EKIND;
	if (off >= i->size_bytes)
		return 0;
	if (len > i->size_bytes - off)
		len = (size_t)(i->size_bytes - off);
	model_read_at(i, off, buf, len);
	return (int64_t)len;
}

static void put_bytes(struct model_inode *i, uint64_t off, const uint8_t *buf, size_t len, enum model_block state)
{
	want_pages(i, blocks_for(off + len));
	while (len) {
		size_t b = block_of(off), in = off % MODEL_BLOCK, n = MODEL_BLOCK - in;
		if (n > len)
			n = len;
		memcpy(own_page(i, b)->bytes + in, buf, n);
		if (state > (enum model_block)i->blocks[b])
			i->blocks[b] = (uint8_t)state;
		off += n;
		buf += n;
		len -= n;
	}
}

int64_t model_write(struct model *m, uint64_t ino, uint64_t off, const void *buf, size_t len, unsigned flags)
{
	if (!model_is_file(model_get(m, ino)))
		return -MODEL_EKIND;
	if (!len)
		return 0;
	if (off > PF_MAX_FILE_BYTES || len > PF_MAX_FILE_BYTES - off)
		return -EFBIG;
	struct model_inode *i = model_edit(m, ino);
	if (flags & PF_WRITE_KILL_SUIDGID)
		model_kill_suidgid(i);
	model_drop_capability(i);
	put_bytes(i, off, buf, len, MODEL_DATA);
	if (off + len > i->size_bytes)
		i->size_bytes = off + len;
	if (!(flags & PF_WRITE_KEEP_TIMES))
		i->mtime = i->ctime = m->now;
	return (int64_t)len;
}

/* Zeroes [off, end) inside block @b; what was allocated stays so. */
static void zero_part(struct model_inode *i, size_t b, size_t from, size_t to)
{
	if (b < i->nr_pages && i->pages[b])
		memset(own_page(i, b)->bytes + from, 0, to - from);
}

void model_truncate(struct model_inode *i, uint64_t size)
{
	size_t keep = blocks_for(size);
	if (size < i->size_bytes) {
		if (size % MODEL_BLOCK)
			zero_part(i, keep - 1, size % MODEL_BLOCK, MODEL_BLOCK);
		for (size_t b = keep; b < i->nr_pages; b++)
			drop_page(i, b);
		if (keep < i->nr_pages)
			i->nr_pages = keep;
	} else {
		/* blocks kept beyond the old end: filesystems differ in what they do with them */
		for (size_t b = blocks_for(i->size_bytes); b < i->nr_pages; b++) {
			if (i->blocks[b] == MODEL_ALLOCATED)
				i->blocks[b] = MODEL_MAYBE;
		}
	}
	i->size_bytes = size;
}

static void zero_range(struct model_inode *i, uint64_t off, uint64_t end, bool punch)
{
	size_t last = blocks_for(end);
	if (punch && last > i->nr_pages)
		last = i->nr_pages;
	want_pages(i, last);
	for (size_t b = block_of(off); b < last; b++) {
		uint64_t start = (uint64_t)b * MODEL_BLOCK, stop = start + MODEL_BLOCK;
		if (off <= start && end >= stop) {
			drop_page(i, b);
			i->blocks[b] = punch ? MODEL_HOLE : MODEL_ALLOCATED;
			continue;
		}
		zero_part(i, b, off > start ? off - start : 0, end < stop ? end - start : MODEL_BLOCK);
		if (!punch && i->blocks[b] != MODEL_DATA)
			i->blocks[b] = MODEL_ALLOCATED;
		/* all that is left of the block lies beyond the end of the file */
		if (punch && off <= start && end >= i->size_bytes && i->blocks[b] != MODEL_HOLE)
			i->blocks[b] = MODEL_MAYBE;
	}
}

int model_fallocate(struct model *m, uint64_t ino, int mode, uint64_t off, uint64_t len, unsigned flags)
{
	bool keep = mode & FALLOC_FL_KEEP_SIZE;
	int what = mode & ~FALLOC_FL_KEEP_SIZE;
	if ((what && what != FALLOC_FL_PUNCH_HOLE && what != FALLOC_FL_ZERO_RANGE) ||
	    (what == FALLOC_FL_PUNCH_HOLE && !keep))
		return -EOPNOTSUPP;
	if (!model_is_file(model_get(m, ino)))
		return -MODEL_EKIND;
	if (!len)
		return -EINVAL;
	if (off > PF_MAX_FILE_BYTES || len > PF_MAX_FILE_BYTES - off)
		return -EFBIG;
	struct model_inode *i = model_edit(m, ino);
	model_drop_capability(i);
	if (what) {
		zero_range(i, off, off + len, what == FALLOC_FL_PUNCH_HOLE);
	} else {
		want_pages(i, blocks_for(off + len));
		for (size_t b = block_of(off); b < blocks_for(off + len); b++) {
			if (i->blocks[b] < MODEL_DATA)
				i->blocks[b] = MODEL_ALLOCATED;
		}
	}
	if (!keep && off + len > i->size_bytes)
		i->size_bytes = off + len;
	if (!(flags & PF_WRITE_KEEP_TIMES))
		i->mtime = i->ctime = m->now;
	return 0;
}

static bool is_zero(const uint8_t *p, size_t len)
{
	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}

int64_t model_copy_range(struct model *m, uint64_t from, uint64_t from_off, uint64_t to, uint64_t to_off, size_t len,
			 unsigned flags, int64_t copied)
{
	const struct model_inode *src = model_get(m, from);
	if (!model_is_file(src) || !model_is_file(model_get(m, to)))
		return -MODEL_EKIND;
	if (from == to && from_off < to_off + len && to_off < from_off + len && len)
		return -EINVAL;
	if (from_off >= src->size_bytes || !len)
		return 0;
	if (len > src->size_bytes - from_off)
		len = (size_t)(src->size_bytes - from_off);
	if (copied <= 0 || copied > (int64_t)len)
		return (int64_t)len;
	uint8_t *buf = malloc((size_t)copied);
	model_read_at(src, from_off, buf, (size_t)copied);
	struct model_inode *i = model_edit(m, to);
	model_drop_capability(i);
	/* a hole may be copied as a hole, block by block of the target */
	for (uint64_t done = 0; done < (uint64_t)copied;) {
		uint64_t at = to_off + done, n = MODEL_BLOCK - at % MODEL_BLOCK;
		if (n > (uint64_t)copied - done)
			n = (uint64_t)copied - done;
		enum model_block old = state_of(i, block_of(at));
		put_bytes(i, at, buf + done, n, MODEL_HOLE);
		bool whole = n == MODEL_BLOCK;
		if (!is_zero(buf + done, n))
			i->blocks[block_of(at)] = MODEL_DATA;
		else if (whole || old != MODEL_DATA)
			i->blocks[block_of(at)] = MODEL_MAYBE;
		done += n;
	}
	if (to_off + (uint64_t)copied > i->size_bytes)
		i->size_bytes = to_off + (uint64_t)copied;
	if (!(flags & PF_WRITE_KEEP_TIMES))
		i->mtime = i->ctime = m->now;
	free(buf);
	return copied;
}

/* First offset in [off, end) whose byte is not zero, or @end. */
static uint64_t next_byte(const struct model_inode *i, uint64_t off, uint64_t end)
{
	while (off < end && block_of(off) < i->nr_pages) {
		size_t b = block_of(off);
		uint64_t stop = ((uint64_t)b + 1) * MODEL_BLOCK;
		if (stop > end)
			stop = end;
		for (uint64_t at = off; i->pages[b] && at < stop; at++) {
			if (i->pages[b]->bytes[at % MODEL_BLOCK])
				return at;
		}
		off = stop;
	}
	return end;
}

static const char *data_wrong(const struct model_inode *i, uint64_t off, uint64_t got)
{
	if (got < off || got >= i->size_bytes)
		return "SEEK_DATA outside the rest of the file";
	if (next_byte(i, off, got) < got)
		return "SEEK_DATA skips data";
	if (state_of(i, block_of(got)) == MODEL_HOLE)
		return "SEEK_DATA stops in a hole";
	if (got != off && got % MODEL_BLOCK)
		return "SEEK_DATA stops inside a block";
	return NULL;
}

static const char *hole_wrong(const struct model_inode *i, uint64_t off, uint64_t got)
{
	if (got < off || got > i->size_bytes)
		return "SEEK_HOLE outside the rest of the file";
	if (got != i->size_bytes && state_of(i, block_of(got)) == MODEL_DATA)
		return "SEEK_HOLE stops in data";
	for (size_t b = block_of(off); b < block_of(got); b++) {
		if (state_of(i, b) == MODEL_HOLE)
			return "SEEK_HOLE skips a hole";
	}
	if (got != off && got != i->size_bytes && got % MODEL_BLOCK)
		return "SEEK_HOLE stops inside a block";
	return NULL;
}

const char *model_lseek_wrong(const struct model *m, uint64_t ino, uint64_t off, int whence, int64_t got)
{
	const struct model_inode *i = model_get(m, ino);
	if (!model_is_file(i))
		return model_same_error(-MODEL_EKIND, got) ? NULL : "lseek works on no file";
	if (off >= i->size_bytes)
		return got == -ENXIO ? NULL : "lseek past the end is not ENXIO";
	if (whence == SEEK_HOLE)
		return got < 0 ? "SEEK_HOLE fails" : hole_wrong(i, off, (uint64_t)got);
	if (got == -ENXIO)
		return next_byte(i, off, i->size_bytes) < i->size_bytes ? "SEEK_DATA misses data" : NULL;
	return got < 0 ? "SEEK_DATA fails" : data_wrong(i, off, (uint64_t)got);
}

void model_blocks(const struct model_inode *i, uint64_t *least, uint64_t *most)
{
	*least = *most = 0;
	for (size_t b = 0; b < i->nr_pages; b++) {
		*least += i->blocks[b] == MODEL_DATA || i->blocks[b] == MODEL_ALLOCATED;
		*most += i->blocks[b] != MODEL_HOLE;
	}
}
