/* SPDX-License-Identifier: MIT */
#include "model/ops_internal.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)1 << 20)

static uint64_t pick_offset(struct ops *o, uint64_t max)
{
	uint64_t off = rng_below(&o->rng, max);
	switch (rng_below(&o->rng, 4)) {
	case 0:
		return off / MODEL_BLOCK * MODEL_BLOCK;
	case 1:
		return rng_skewed(&o->rng, max);
	default:
		return off;
	}
}

static size_t pick_length(struct ops *o, uint64_t max)
{
	uint64_t len = 1 + rng_skewed(&o->rng, max - 1);
	return (size_t)(rng_one_in(&o->rng, 3) ? (len + MODEL_BLOCK - 1) / MODEL_BLOCK * MODEL_BLOCK : len);
}

/* Now and then something that is no file. */
static uint64_t pick_file(struct ops *o)
{
	uint64_t ino = pick_inode(o, rng_one_in(&o->rng, 100) ? is_any : is_regular);
	o->ino = ino;
	return ino;
}

static int write_at(struct ops *o, uint64_t ino, uint64_t off, size_t len)
{
	const struct model_inode *i = model_get(o->model, ino);
	size_t shift = (size_t)(rng_one_in(&o->rng, 3) ? rng_below(&o->rng, MODEL_BLOCK) : 0);
	if (len > o->config.max_write_bytes)
		len = (size_t)o->config.max_write_bytes;
	if (off + len > o->config.max_file_bytes)
		len = off < o->config.max_file_bytes ? (size_t)(o->config.max_file_bytes - off) : 1;
	unsigned flags = (unsigned)(rng_one_in(&o->rng, 6) ? rng_below(&o->rng, 4) : 0);
	uint8_t *buf = o->data + shift;
	if (rng_one_in(&o->rng, 12))
		memset(buf, rng_one_in(&o->rng, 2) ? 0 : 'x', len);
	else
		rng_fill(&o->rng, buf, len);
	describe(o, "(%ju, %zu bytes at %ju of %ju, flags %u)", (uintmax_t)ino, len, (uintmax_t)off,
		 (uintmax_t)i->size_bytes, flags);
	int64_t got = pf_write(o->pool, ino, off, buf, len, flags);
	if (excused(o, got, true))
		return check_failed(o, ino);
	if (expect(o, model_write(o->model, ino, off, buf, len, flags), got))
		return -1;
	return check_inode(o, ino);
}

int op_write(struct ops *o)
{
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t off = pick_offset(o, o->config.max_file_bytes);
	return write_at(o, ino, off, pick_length(o, o->config.max_write_bytes));
}

int op_append(struct ops *o)
{
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, ino)->size_bytes;
	return size < o->config.max_file_bytes ? write_at(o, ino, size, pick_length(o, o->config.max_write_bytes)) : 0;
}

int op_overwrite(struct ops *o)
{
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, ino)->size_bytes;
	if (!size || size > o->config.max_file_bytes)
		return 0;
	uint64_t off = pick_offset(o, size);
	return write_at(o, ino, off, pick_length(o, size - off < 65536 ? size - off : 65536));
}

/* One block in every few, each an operation of its own, so that the file gets into more pieces than one transaction takes. */
int op_scatter(struct ops *o)
{
	struct ops_scatter *c = &o->scatter;
	if (!c->left) {
		c->ino = pick_file(o);
		if (!c->ino)
			return o->failure[0] ? -1 : 0;
		c->step = 2 + rng_below(&o->rng, 3);
		c->block = rng_below(&o->rng, c->step);
		c->left = 70 + (unsigned)rng_below(&o->rng, 60);
	}
	c->left--;
	c->block += c->step;
	uint64_t ino = c->ino, off = c->block * MODEL_BLOCK;
	if (!model_get(o->model, ino) || !model_is_file(model_get(o->model, ino)) || !model_slot(o->model, ino)->refs ||
	    off + MODEL_BLOCK > o->config.max_file_bytes) {
		c->left = 0;
		return 0;
	}
	rng_fill(&o->rng, o->data, MODEL_BLOCK);
	describe(o, "(%ju, block %ju)", (uintmax_t)ino, (uintmax_t)c->block);
	int64_t got = pf_write(o->pool, ino, off, o->data, MODEL_BLOCK, 0);
	if (excused(o, got, true))
		return check_failed(o, ino);
	if (expect(o, model_write(o->model, ino, off, o->data, MODEL_BLOCK, 0), got))
		return -1;
	return check_inode(o, ino);
}

int op_read(struct ops *o)
{
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, ino)->size_bytes;
	uint64_t off = pick_offset(o, size + 5000 < o->config.max_file_bytes ? size + 5000 : o->config.max_file_bytes);
	size_t len = pick_length(o, OPS_DATA_BYTES), at = off % MODEL_BLOCK, room = pf_read_buf_bytes(off, len);
	describe(o, "(%ju, %zu bytes at %ju of %ju)", (uintmax_t)ino, len, (uintmax_t)off, (uintmax_t)size);
	if (room > OPS_DATA_BYTES + 3 * MODEL_BLOCK || room < at + len)
		return fail(o, "wants a buffer of %zu bytes", room);
	memset(o->answer, 0xa5, room + 16);
	int64_t got = pf_read(o->pool, ino, off, o->answer, len);
	if (excused(o, got, false))
		return 0;
	if (expect(o, model_read(o->model, ino, off, o->data, len), got))
		return -1;
	for (int64_t k = 0; k < got; k++) {
		if (o->answer[at + (size_t)k] != o->data[k])
			return fail(o, "byte %ju is %02x, expected %02x", (uintmax_t)off + (uintmax_t)k,
				    o->answer[at + (size_t)k], o->data[k]);
	}
	for (size_t k = room; k < room + 16; k++) {
		if (o->answer[k] != 0xa5)
			return fail(o, "wrote past the end of the buffer");
	}
	return 0;
}

int op_truncate(struct ops *o)
{
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, ino)->size_bytes;
	struct pf_attr in = { .size_bytes = pick_offset(o, o->config.max_file_bytes) }, out;
	switch (rng_below(&o->rng, 5)) {
	case 0:
		in.size_bytes = 0;
		break;
	case 1:
	case 2:
		in.size_bytes = size ? rng_below(&o->rng, size) : 0;
		break;
	default:
		break;
	}
	unsigned mask = PF_ATTR_SIZE | (rng_one_in(&o->rng, 3) ? PF_ATTR_KEEP_TIMES : 0);
	describe(o, "(%ju, from %ju to %ju)", (uintmax_t)ino, (uintmax_t)size, (uintmax_t)in.size_bytes);
	int got = pf_setattr(o->pool, ino, mask, &in, &out);
	/* the last block is rewritten when it is cut in two: that takes space until the next checkpoint */
	if (excused(o, got, in.size_bytes % MODEL_BLOCK || size % MODEL_BLOCK))
		return check_failed(o, ino);
	if (expect(o, model_setattr(o->model, ino, mask, &in), got))
		return -1;
	return got ? 0 : check_attr(o, &out, ino);
}

int op_fallocate(struct ops *o)
{
	static const int modes[] = { 0,
				     FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_ZERO_RANGE,
				     FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_COLLAPSE_RANGE };
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, ino)->size_bytes, max = o->config.max_file_bytes;
	int mode = modes[rng_below(&o->rng, rng_one_in(&o->rng, 30) ? 7 : 6)];
	uint64_t off = pick_offset(o, size && size < max ? size + 20000 < max ? size + 20000 : size : max);
	uint64_t len = rng_one_in(&o->rng, 50) ? 0 : pick_length(o, o->config.max_write_bytes);
	if (off + len > max)
		len = max - off;
	describe(o, "(%ju, mode %d, %ju bytes at %ju of %ju)", (uintmax_t)ino, mode, (uintmax_t)len, (uintmax_t)off,
		 (uintmax_t)size);
	unsigned flags = off % 3 ? 0 : PF_WRITE_KEEP_TIMES;
	int got = pf_fallocate(o->pool, ino, mode, off, len, flags);
	bool whole = off % MODEL_BLOCK == 0 && len % MODEL_BLOCK == 0;
	if (excused(o, got, !(mode & FALLOC_FL_PUNCH_HOLE) || !whole))
		return check_failed(o, ino);
	if (expect(o, model_fallocate(o->model, ino, mode, off, len, flags), got))
		return -1;
	return check_inode(o, ino);
}

int op_lseek(struct ops *o)
{
	uint64_t ino = pick_file(o);
	if (!ino)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, ino)->size_bytes, off = pick_offset(o, size + 5000);
	int whence = rng_one_in(&o->rng, 2) ? SEEK_DATA : SEEK_HOLE;
	describe(o, "(%ju, %ju of %ju, %s)", (uintmax_t)ino, (uintmax_t)off, (uintmax_t)size,
		 whence == SEEK_DATA ? "SEEK_DATA" : "SEEK_HOLE");
	int64_t got = pf_lseek(o->pool, ino, off, whence);
	if (excused(o, got, false))
		return 0;
	const char *wrong = model_lseek_wrong(o->model, ino, off, whence, got);
	return wrong ? fail(o, "gives %jd: %s", (intmax_t)got, wrong) : 0;
}

int op_copy(struct ops *o)
{
	uint64_t from = pick_inode(o, is_regular), to = from ? pick_inode(o, is_regular) : 0,
		 max = o->config.max_file_bytes;
	if (!to)
		return o->failure[0] ? -1 : 0;
	uint64_t size = model_get(o->model, from)->size_bytes;
	uint64_t from_off = pick_offset(o, size && size < max ? size : max), to_off = pick_offset(o, max);
	if (rng_one_in(&o->rng, 2)) {
		from_off = from_off / MODEL_BLOCK * MODEL_BLOCK;
		to_off = to_off / MODEL_BLOCK * MODEL_BLOCK;
	}
	size_t len = pick_length(o, o->config.max_write_bytes);
	/* longer ones are done in pieces: the history would have points that the driver does not see */
	if (len > COPY_BYTES)
		len = COPY_BYTES;
	if (to_off + len > max)
		len = (size_t)(max - to_off);
	describe(o, "(%ju at %ju of %ju, to %ju at %ju, %zu bytes)", (uintmax_t)from, (uintmax_t)from_off,
		 (uintmax_t)size, (uintmax_t)to, (uintmax_t)to_off, len);
	unsigned flags = to_off % 3 ? 0 : PF_WRITE_KEEP_TIMES;
	int64_t got = pf_copy_range(o->pool, from, from_off, to, to_off, len, flags);
	if (excused(o, got, true))
		return check_failed(o, to);
	int64_t expected = model_copy_range(o->model, from, from_off, to, to_off, len, flags, got);
	if (expect(o, expected, got))
		return -1;
	return check_inode(o, to);
}
