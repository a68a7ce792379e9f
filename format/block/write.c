/* SPDX-License-Identifier: MIT */
#include "block/write.h"

#include "base/csum.h"

#include <stdlib.h>
#include <string.h>

#define TRIES 4 /* places that a failing write is offered before it is given up */

static int make_room(struct pf_write *w, unsigned nr)
{
	if (w->nr_pieces + nr <= w->cap_pieces)
		return 0;
	unsigned cap = 2 * w->cap_pieces + nr + 8;
	struct pf_piece *p = realloc(w->pieces, cap * sizeof(*p));
	if (!p)
		return -ENOMEM;
	w->pieces = p;
	w->cap_pieces = cap;
	return 0;
}

static void unalloc(struct pf_pool *pool, const struct pf_piece *piece)
{
	if (!piece->in_place)
		pf_space_unalloc(pool->space, (struct pf_run){ piece->addr, piece->nr });
}

/* Stripes rotate over the members by 1 MiB of the file; placement 'file' stays where the file is. */
static int preferred_member(struct pf_pool *pool, const struct pf_write *w, uint64_t block)
{
	if (pool->placement == PF_PLACE_STRIPE)
		return (int)((block / PF_MAX_EXTENT_BLOCKS + w->data_id) % pool->set->nr);
	return w->place->member;
}

/* Blocks scattered over a file find no place beside their neighbours, whose next block is the one that is overwritten. They are
 * allocated together, so that they lie side by side and leave in one request. */
#define SCATTERED_RUNS 4 /* in a row; more than so many */
#define OVERWRITE_MIN 64 /* blocks; so many are worth a place of their own beside the neighbour */
#define BREATHE_RUNS  32

struct pf_scattered {
	bool any;
	unsigned left;     /* blocks of the write that have no place yet: so many are promised still */
	struct pf_run run; /* allocated for them */
};

static int add_piece(struct pf_write *w, struct pf_scattered *s, const struct pf_piece *piece)
{
	int err = make_room(w, 1);
	if (err)
		return err;
	w->pieces[w->nr_pieces++] = *piece;
	s->left -= piece->nr;
	return 0;
}

static int place_scattered(struct pf_pool *pool, struct pf_write *w, struct pf_scattered *s, uint64_t start, unsigned nr)
{
	int err = 0;
	while (!err && nr) {
		if (!s->run.nr) {
			struct pf_alloc_req req = {
				.use = PF_USE_DATA, .nr = s->left, .min_nr = 1, .member = w->place->member, .reserved = true,
			};
			err = pf_space_alloc(pool->space, &req, &s->run);
			if (err)
				break;
			w->nr_from_promise += (unsigned)s->run.nr;
			w->place->member = (int)pf_addr_member(s->run.addr);
		}
		unsigned n = s->run.nr < nr ? (unsigned)s->run.nr : nr;
		err = add_piece(w, s, &(struct pf_piece){ .start = start, .nr = n, .addr = s->run.addr });
		if (err)
			break;
		s->run.addr += n;
		s->run.nr -= n;
		start += n;
		nr -= n;
	}
	return err;
}

/* Of the blocks that were allocated for them some were not needed: what is unwritten keeps its own. */
static void end_scattered(struct pf_pool *pool, struct pf_write *w, struct pf_scattered *s)
{
	if (!s->run.nr)
		return;
	w->nr_from_promise -= (unsigned)s->run.nr;
	pf_space_unalloc_promised(pool->space, s->run);
}

/* Allocates for [start, start + nr), none of which is unwritten. */
static int place_range(struct pf_pool *pool, struct pf_write *w, struct pf_scattered *s, uint64_t start, unsigned nr, pf_addr goal)
{
	if (s->any)
		return place_scattered(pool, w, s, start, nr);
	while (nr) {
		struct pf_alloc_req req = {
			.use = PF_USE_DATA,
			.nr = nr,
			.min_nr = 1,
			.goal = goal,
			.member = preferred_member(pool, w, start),
			.reserved = true,
		};
		if (pool->placement == PF_PLACE_STRIPE) {
			unsigned unit = PF_MAX_EXTENT_BLOCKS - (unsigned)(start % PF_MAX_EXTENT_BLOCKS);
			req.nr = nr < unit ? nr : unit;
			if (goal && (int)pf_addr_member(goal) != req.member)
				req.goal = 0;
		}
		struct pf_run run;
		int err = make_room(w, 1); /* first: what is allocated has its piece */
		if (!err)
			err = pf_space_alloc(pool->space, &req, &run);
		if (err)
			return err;
		w->nr_from_promise += (unsigned)run.nr;
		add_piece(w, s, &(struct pf_piece){ .start = start, .nr = (unsigned)run.nr, .addr = run.addr });
		start += run.nr;
		nr -= (unsigned)run.nr;
		goal = run.addr + run.nr;
		w->place->member = (int)pf_addr_member(run.addr);
	}
	return 0;
}

/* Places one run of consecutive blocks: unwritten stretches keep their blocks, the rest is allocated. */
static int place_run(struct pf_pool *pool, struct pf_write *w, struct pf_scattered *s, uint64_t start, unsigned nr)
{
	pf_addr goal = 0;
	int member, err = 0;
	if (!s->any || w->place->member < 0)
		err = pf_extent_neighbour(pool, w->data_id, start, &goal, &member);
	if (err)
		return err;
	if (w->place->member < 0)
		w->place->member = member;
	while (!err && nr) {
		struct pf_extent e = { 0 };
		uint64_t end = start + nr;
		err = pf_extent_find(pool, w->data_id, start, &e);
		/* in the middle of the file nothing is won by a hole that happens to be behind the neighbour */
		if (!err && e.start <= start && nr < OVERWRITE_MIN)
			goal = 0;
		while (!err && e.start < end && !(e.flags & PF_EXTENT_UNWRITTEN))
			err = pf_extent_find(pool, w->data_id, e.start + e.nr, &e);
		if (err == -ENOENT || (!err && e.start >= end))
			return place_range(pool, w, s, start, nr, goal);
		if (err)
			return err;
		if (e.start > start) {
			unsigned before = (unsigned)(e.start - start);
			err = place_range(pool, w, s, start, before, goal);
			start += before;
			nr -= before;
		}
		if (err)
			return err;
		unsigned skip = (unsigned)(start - e.start);
		unsigned len = e.nr - skip < nr ? e.nr - skip : nr;
		err = add_piece(w, s, &(struct pf_piece){ .start = start, .nr = len, .addr = e.addr[0] + skip, .in_place = true });
		if (err)
			return err;
		start += len;
		nr -= len;
		goal = e.addr[0] + skip + len;
	}
	return err;
}

/* Length of the run of consecutive blocks that begins with the @i-th. */
static unsigned run_at(const struct pf_write *w, unsigned i)
{
	unsigned nr = 1;
	while (i + nr < w->nr_blocks && w->blocks[i + nr].block == w->blocks[i].block + nr)
		nr++;
	return nr;
}

static bool is_scattered(const struct pf_pool *pool, const struct pf_write *w)
{
	unsigned nr_runs = 0;
	if (pool->placement == PF_PLACE_STRIPE && pool->set->nr > 1)
		return false; /* each has its member */
	for (unsigned i = 0; i < w->nr_blocks && nr_runs <= SCATTERED_RUNS; nr_runs++)
		i += run_at(w, i);
	return nr_runs > SCATTERED_RUNS;
}

static int place_all(struct pf_pool *pool, struct pf_write *w)
{
	struct pf_scattered s = { .any = is_scattered(pool, w), .left = w->nr_blocks };
	int err = 0;
	for (unsigned i = 0, nr, nr_runs = 0; i < w->nr_blocks && !err; i += nr) {
		nr = run_at(w, i);
		if (w->behind && ++nr_runs % BREATHE_RUNS == 0)
			pf_thread_breathe(&pool->breath);
		err = place_run(pool, w, &s, w->blocks[i].block, nr);
	}
	end_scattered(pool, w, &s);
	return err;
}

/* Requests for all pieces. Long stretches go straight from the source where it lies aligned and in one piece; everything else is
 * gathered in buffers, filled and checksummed in one pass, and what lies side by side on a member leaves in one request however
 * many pieces it is. */
struct pf_block_io {
	struct pf_aio_req *reqs;
	unsigned *first; /* index in w->blocks of each request's first block */
	unsigned nr;
	void **buffers; /* PF_SEGMENT_BYTES each */
	unsigned nr_buffers, filled; /* blocks used of the last one */
};

#define STRAIGHT_MIN 16 /* blocks; fewer are copied rather than written by a request of their own */
#define LEND_MIN     5  /* blocks; under a guard fewer are copied rather than lent to the I/O */

static bool is_straight(const struct pf_dirty_block *b, unsigned nr)
{
	if ((uintptr_t)b->data % PF_BLOCK_SIZE)
		return false;
	for (unsigned i = 1; i < nr; i++) {
		if ((const uint8_t *)b[i].data != (const uint8_t *)b->data + (size_t)i * PF_BLOCK_SIZE)
			return false;
	}
	return true;
}

static void add_request(struct pf_pool *pool, struct pf_block_io *io, unsigned first, unsigned nr, pf_addr addr, void *buf)
{
	io->first[io->nr] = first;
	pf_set_req(pool->set, &io->reqs[io->nr++], PF_AIO_WRITE, addr, buf, nr);
}

static uint8_t *room_to_gather(struct pf_pool *pool, struct pf_block_io *io, unsigned nr)
{
	if (!io->nr_buffers || io->filled + nr > PF_MAX_EXTENT_BLOCKS) {
		io->buffers[io->nr_buffers] = pf_bufpool_get(pool->buffers);
		if (!io->buffers[io->nr_buffers])
			return NULL;
		io->nr_buffers++;
		io->filled = 0;
	}
	uint8_t *to = (uint8_t *)io->buffers[io->nr_buffers - 1] + (size_t)io->filled * PF_BLOCK_SIZE;
	io->filled += nr;
	return to;
}

/* Does a request to @addr from @buf go on where the last one ends? */
static bool continues_last(const struct pf_pool *pool, const struct pf_block_io *io, pf_addr addr, const void *buf)
{
	const struct pf_aio_req *last = io->nr ? &io->reqs[io->nr - 1] : NULL;
	return last && last->io == pool->set->members[pf_addr_member(addr)].io &&
	       last->off_bytes + last->len_bytes == pf_addr_block(addr) * PF_BLOCK_SIZE &&
	       (uint8_t *)last->buf + last->len_bytes == buf;
}

static int gather(struct pf_pool *pool, struct pf_write *w, struct pf_block_io *io, unsigned first, unsigned nr, pf_addr addr)
{
	const struct pf_dirty_block *b = w->blocks + first;
	uint8_t *to = room_to_gather(pool, io, nr);
	if (!to)
		return -ENOMEM;
	for (unsigned i = 0; i < nr; i++) {
		if (w->crc)
			pf_crc64_copy_blocks(to + (size_t)i * PF_BLOCK_SIZE, b[i].data, PF_BLOCK_SIZE, 1, w->crc + first + i);
		else
			memcpy(to + (size_t)i * PF_BLOCK_SIZE, b[i].data, PF_BLOCK_SIZE);
	}
	if (continues_last(pool, io, addr, to))
		io->reqs[io->nr - 1].len_bytes += (size_t)nr * PF_BLOCK_SIZE;
	else
		add_request(pool, io, first, nr, addr, to);
	return 0;
}

static int add_stretch(struct pf_pool *pool, struct pf_write *w, struct pf_block_io *io, unsigned first, unsigned nr, pf_addr addr)
{
	const struct pf_dirty_block *b = w->blocks + first;
	if (!is_straight(b, nr) || (nr < STRAIGHT_MIN && w->nr_pieces > 1))
		return gather(pool, w, io, first, nr, addr);
	if (w->crc)
		pf_crc64_blocks(b->data, PF_BLOCK_SIZE, nr, w->crc + first);
	add_request(pool, io, first, nr, addr, (void *)(uintptr_t)b->data);
	return 0;
}

static bool is_gathered(const struct pf_block_io *io, const uint8_t *buf)
{
	for (unsigned i = 0; i < io->nr_buffers; i++) {
		const uint8_t *begin = io->buffers[i];
		if (begin <= buf && buf < begin + PF_SEGMENT_BYTES)
			return true;
	}
	return false;
}

/* Which requests may keep their buffers (member/aio.h I5): all of ours, and others if the pool's user takes care of them. */
static void lend_buffers(const struct pf_pool *pool, struct pf_block_io *io)
{
	for (unsigned i = 0; i < io->nr; i++) {
		struct pf_aio_req *req = &io->reqs[i];
		req->straight = req->len_bytes >= LEND_MIN * PF_BLOCK_SIZE && (pool->lends || is_gathered(io, req->buf));
	}
}

static int build_requests(struct pf_pool *pool, struct pf_write *w, struct pf_block_io *io)
{
	unsigned first = 0;
	for (unsigned i = 0; i < w->nr_pieces; i++) {
		const struct pf_piece *piece = &w->pieces[i];
		if (w->behind && (i + 1) % BREATHE_RUNS == 0)
			pf_thread_breathe(&pool->breath);
		for (unsigned off = 0; off < piece->nr;) {
			unsigned nr = piece->nr - off < PF_MAX_EXTENT_BLOCKS ? piece->nr - off : PF_MAX_EXTENT_BLOCKS;
			int err = add_stretch(pool, w, io, first, nr, piece->addr + off);
			if (err)
				return err;
			first += nr;
			off += nr;
		}
	}
	return 0;
}

static unsigned find_piece(const struct pf_write *w, uint64_t block)
{
	unsigned i = 0;
	while (block >= w->pieces[i].start + w->pieces[i].nr)
		i++;
	return i;
}

/* Blocks [block, block + nr) of piece @i lie at @addr instead: the piece is split around them. Room for two is there. */
static void move_range(struct pf_write *w, unsigned i, uint64_t block, unsigned nr, pf_addr addr)
{
	struct pf_piece old = w->pieces[i];
	unsigned before = (unsigned)(block - old.start), after = old.nr - before - nr;
	unsigned extra = (before ? 1 : 0) + (after ? 1 : 0);
	struct pf_piece *p = &w->pieces[i];
	memmove(p + 1 + extra, p + 1, (w->nr_pieces - i - 1) * sizeof(*p));
	w->nr_pieces += extra;
	if (before)
		*p++ = (struct pf_piece){ .start = old.start, .nr = before, .addr = old.addr, .in_place = old.in_place };
	*p++ = (struct pf_piece){ .start = block, .nr = nr, .addr = addr };
	if (after)
		*p = (struct pf_piece){
			.start = block + nr,
			.nr = after,
			.addr = old.addr + before + nr,
			.in_place = old.in_place,
		};
}

/* Rule 9: a failed write is redone elsewhere, on the other members first. The blocks that failed are given back: the
 * allocator's cursor has moved on, and at the worst the bad spot is met once more. */
static int redo_stretch(struct pf_pool *pool, struct pf_write *w, uint64_t block, unsigned nr, const void *buf, int err)
{
	if (make_room(w, 2))
		return -ENOMEM;
	unsigned i = find_piece(w, block);
	struct pf_piece failed = w->pieces[i];
	failed.addr += block - failed.start;
	failed.nr = nr;
	for (unsigned try = 1; try <= TRIES; try++) {
		struct pf_alloc_req alloc = {
			.use = PF_USE_DATA_PRIVILEGED,
			.nr = nr,
			.min_nr = nr,
			.member = (int)((pf_addr_member(failed.addr) + try) % pool->set->nr),
		};
		struct pf_run run;
		if (pf_space_alloc(pool->space, &alloc, &run))
			continue;
		err = pf_set_write(pool->set, run.addr, buf, nr);
		if (!err) {
			move_range(w, i, block, nr, run.addr);
			unalloc(pool, &failed);
			return 0;
		}
		pf_space_unalloc(pool->space, run);
	}
	return err;
}

/* A failed request may hold several pieces: each finds a place of its own. */
static int redo_elsewhere(struct pf_pool *pool, struct pf_write *w, const struct pf_aio_req *req, unsigned first)
{
	unsigned nr = (unsigned)(req->len_bytes / PF_BLOCK_SIZE);
	for (unsigned done = 0; done < nr;) {
		uint64_t block = w->blocks[first + done].block;
		const struct pf_piece *piece = &w->pieces[find_piece(w, block)];
		unsigned left = (unsigned)(piece->start + piece->nr - block), len = left < nr - done ? left : nr - done;
		const uint8_t *from = (const uint8_t *)req->buf + (size_t)done * PF_BLOCK_SIZE;
		int err = redo_stretch(pool, w, block, len, from, req->result);
		if (err)
			return err;
		done += len;
	}
	return 0;
}

static unsigned member_of(const struct pf_pool *pool, const struct pf_aio_req *req)
{
	unsigned m = 0;
	while (pool->set->members[m].io != req->io)
		m++;
	return m;
}

struct pf_late_write {
	struct pf_late_write *next;
	pf_addr addr;
	unsigned nr;
	uint8_t *data; /* aligned */
};

static int hold_back(struct pf_pool *pool, struct pf_block_io *io)
{
	for (unsigned i = 0; i < io->nr; i++) {
		struct pf_aio_req *req = &io->reqs[i];
		struct pf_late_write *late = calloc(1, sizeof(*late));
		if (late)
			late->data = aligned_alloc(PF_BLOCK_SIZE, req->len_bytes);
		if (!late || !late->data) {
			free(late);
			return -ENOMEM;
		}
		late->nr = (unsigned)(req->len_bytes / PF_BLOCK_SIZE);
		late->addr = pf_addr_make(member_of(pool, req), req->off_bytes / PF_BLOCK_SIZE);
		memcpy(late->data, req->buf, req->len_bytes);
		late->next = pool->late_writes;
		pool->late_writes = late;
	}
	return 0;
}

static void end_late_writes(struct pf_pool *pool, bool write)
{
	while (pool->late_writes) {
		struct pf_late_write *late = pool->late_writes;
		pool->late_writes = late->next;
		if (write)
			pf_set_write(pool->set, late->addr, late->data, late->nr);
		free(late->data);
		free(late);
	}
}

void pf_block_late_writes(struct pf_pool *pool)
{
	end_late_writes(pool, true);
}

void pf_block_drop_late_writes(struct pf_pool *pool)
{
	end_late_writes(pool, false);
}

/* A member that failed after it took the data has not got it either: as long as it is in memory nothing is lost. */
static bool has_failed(struct pf_pool *pool, struct pf_aio_req *req)
{
	if (!req->result && pf_io_failed(req->io))
		req->result = -EIO;
	if (req->result == -EIO)
		pf_set_suspect(pool->set, member_of(pool, req));
	return req->result;
}

/* Everything that failed finds another place. */
static int redo_failed(struct pf_pool *pool, struct pf_write *w, struct pf_block_io *io, bool *moved)
{
	for (unsigned i = 0; i < io->nr; i++) {
		if (!has_failed(pool, &io->reqs[i]))
			continue;
		*moved = true;
		int err = redo_elsewhere(pool, w, &io->reqs[i], io->first[i]);
		if (err)
			return err;
	}
	return 0;
}

static void free_io(struct pf_pool *pool, struct pf_write *w)
{
	struct pf_block_io *io = w->io;
	w->io = NULL;
	if (!io)
		return;
	for (unsigned i = 0; i < io->nr_buffers; i++)
		pf_bufpool_put(pool->buffers, io->buffers[i]);
	free(io->reqs);
	free(io->first);
	free(io->buffers);
	free(io);
}

static int make_io(struct pf_pool *pool, struct pf_write *w)
{
	unsigned max = w->nr_pieces + w->nr_blocks / PF_MAX_EXTENT_BLOCKS + 1;
	w->io = calloc(1, sizeof(*w->io));
	if (!w->io)
		return -ENOMEM;
	w->io->reqs = calloc(max, sizeof(*w->io->reqs));
	w->io->first = calloc(max, sizeof(*w->io->first));
	w->io->buffers = calloc(max, sizeof(*w->io->buffers));
	if (!w->io->reqs || !w->io->first || !w->io->buffers)
		return -ENOMEM;
	int err = build_requests(pool, w, w->io);
	lend_buffers(pool, w->io);
	return err;
}

static void spread_crcs(struct pf_write *w)
{
	unsigned first = 0;
	for (unsigned i = 0; i < w->nr_pieces; i++) {
		w->pieces[i].crc = w->crc ? w->crc + first : NULL;
		first += w->pieces[i].nr;
	}
}

/* The requests are done with, or given up (@err, which is returned). */
static int end_io(struct pf_pool *pool, struct pf_write *w, int err)
{
	free_io(pool, w);
	if (err)
		pf_block_end(pool, w, false);
	else
		spread_crcs(w);
	return err;
}

int pf_block_prepare(struct pf_pool *pool, struct pf_write *w)
{
	w->pieces = NULL;
	w->nr_pieces = w->cap_pieces = w->nr_from_promise = 0;
	w->crc = NULL;
	w->io = NULL;
	int err = 0;
	if (pool->data_csum) {
		w->crc = malloc(w->nr_blocks * sizeof(*w->crc));
		err = w->crc ? 0 : -ENOMEM;
	}
	if (!err)
		err = place_all(pool, w);
	if (!err)
		err = make_io(pool, w);
	if (err)
		return end_io(pool, w, err);
	spread_crcs(w);
	return 0;
}

struct pf_aio_req *pf_block_requests(struct pf_write *w, unsigned *nr)
{
	*nr = w->io->nr;
	return w->io->reqs;
}

int pf_block_complete(struct pf_pool *pool, struct pf_write *w, bool *moved)
{
	*moved = false;
	return end_io(pool, w, redo_failed(pool, w, w->io, moved));
}

int pf_block_write(struct pf_pool *pool, struct pf_write *w)
{
	bool moved;
	int err = pf_block_prepare(pool, w);
	if (err)
		return err;
	if (!pf_breaks(pool->env, PF_BREAK_MAP_BEFORE_DATA)) {
		pf_aio_run(pool->set->aio, w->io->reqs, w->io->nr); /* each request has its result */
	} else {
		err = hold_back(pool, w->io);
		if (err)
			return end_io(pool, w, err);
	}
	return pf_block_complete(pool, w, &moved);
}

/* Consecutive pieces are announced together. */
void pf_block_want(struct pf_txn *txn, const struct pf_write *w)
{
	for (unsigned i = 0; i < w->nr_pieces;) {
		unsigned n = 1;
		uint64_t end = w->pieces[i].start + w->pieces[i].nr;
		while (i + n < w->nr_pieces && w->pieces[i + n].start == end)
			end += w->pieces[i + n++].nr;
		pf_extent_want(txn, w->data_id, w->pieces[i].start, end, n, end - w->pieces[i].start);
		i += n;
	}
}

int pf_block_check(struct pf_txn *txn, struct pf_pool *pool, const struct pf_write *w)
{
	for (unsigned i = 0; i < w->nr_pieces; i++) {
		const struct pf_piece *p = &w->pieces[i];
		int err = pf_extent_check(txn, pool, w->data_id, p->start, p->start + p->nr);
		if (err)
			return err;
	}
	return 0;
}

int64_t pf_block_map(struct pf_txn *txn, struct pf_pool *pool, struct pf_write *w)
{
	int64_t change = 0;
	for (unsigned i = 0; i < w->nr_pieces; i++) {
		const struct pf_piece *p = &w->pieces[i];
		change -= (int64_t)pf_extent_remove(txn, pool, w->data_id, p->start, p->start + p->nr, p->in_place);
		change += (int64_t)pf_extent_insert(txn, pool, w->data_id, p, 1);
	}
	return change;
}

/* A write in place that had to be redone elsewhere has blocks that were not promised. */
void pf_block_end_partly(struct pf_pool *pool, struct pf_write *w, unsigned nr_mapped)
{
	unsigned promised = w->nr_from_promise, unneeded = 0;
	for (unsigned i = 0; i < w->nr_pieces; i++) {
		const struct pf_piece *p = &w->pieces[i];
		unsigned nr = p->in_place ? 0 : p->nr < promised ? p->nr : promised;
		promised -= nr;
		if (i < nr_mapped) {
			unneeded += p->nr - nr;
			continue;
		}
		if (nr)
			pf_space_unalloc_promised(pool->space, (struct pf_run){ p->addr, nr });
		if (!p->in_place && nr < p->nr)
			pf_space_unalloc(pool->space, (struct pf_run){ p->addr + nr, p->nr - nr });
	}
	pf_space_unreserve(pool->space, unneeded);
	free(w->pieces);
	free(w->crc);
	w->pieces = NULL;
	w->crc = NULL;
	w->nr_pieces = 0;
}

void pf_block_end(struct pf_pool *pool, struct pf_write *w, bool mapped)
{
	pf_block_end_partly(pool, w, mapped ? w->nr_pieces : 0);
}
