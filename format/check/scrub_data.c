/* SPDX-License-Identifier: MIT
 *
 * Data in physical order, a thread for each member. A thread takes a piece of its extents at a time: first it gets
 * their checksums from the leaves (read in the order of their addresses, each once for each piece), then it reads the
 * blocks, contiguous ones together, and verifies each. */
#include "check/scrub_plan.h"

#include "base/csum.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECE_ENTRIES  1024u
#define PIECE_BLOCKS   16384u /* 64 MiB */
#define READ_BLOCKS    256u   /* of one request: 1 MiB */
#define BUFFER_BLOCKS  1024u  /* in flight: 4 MiB */
#define BUFFER_REQS    64u
#define LEAVES_AT_ONCE 64u
#define SLEEP_NS       100000000 /* at once, so that a stop is noticed */

struct job { /* one extent of the piece */
	pf_addr addr;
	uint64_t data_id, file_block;
	uint32_t nr_blocks;
	uint32_t crc; /* index of the first in piece.crcs */
	bool has_crc;
	bool skip; /* its leaf could not be read again */
};

struct runner {
	struct pf_scrubber *s;
	const struct pf_scrub_window *window;
	size_t from, to; /* its entries */
	pthread_t thread;
	int err;
	/* the piece */
	struct job jobs[PIECE_ENTRIES];
	uint64_t crcs[PIECE_BLOCKS + PF_MAX_EXTENT_BLOCKS];
	uint8_t *leaves; /* LEAVES_AT_ONCE nodes */
	uint8_t *buffer; /* BUFFER_BLOCKS, and one more for looking at single blocks */
};

static bool stopped(struct pf_scrubber *s)
{
	pthread_mutex_lock(&s->lock);
	bool stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

static void tell_progress(struct pf_scrubber *s)
{
	pthread_mutex_lock(&s->lock);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* -- checksums of a piece ---------------------------------------------------------------------------------------- */
struct wanted { /* job @job needs leaf @leaf */
	pf_addr addr;
	uint32_t leaf, job;
};

static int wanted_cmp(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->job < y->job ? -1 : x->job > y->job;
}

static void fill_job(struct runner *r, struct job *job, const struct pf_scrub_entry *entry, const void *leaf)
{
	struct pf_walk_item item;
	struct pf_extent extent;
	if (!leaf || !pf_walk_leaf_item(leaf, entry->item, &item) ||
	    pf_extent_unpack(item.key, item.data, item.len, &extent) || extent.nr != entry->nr_blocks) {
		job->skip = true;
		return;
	}
	job->data_id = extent.data_id;
	job->file_block = extent.start;
	job->has_crc = extent.crc != NULL;
	for (unsigned i = 0; extent.crc && i < extent.nr; i++)
		r->crcs[job->crc + i] = pf_get64(extent.crc[i]);
}

/* The leaves of wanted[0..nr), which are at most LEAVES_AT_ONCE, in one batch. */
static int read_leaves(struct runner *r, const struct wanted *wanted, unsigned nr, size_t first_entry)
{
	struct pf_scrubber *s = r->s;
	struct pf_aio_req reqs[LEAVES_AT_ONCE];
	const struct pf_walk_node *nodes[LEAVES_AT_ONCE];
	unsigned nr_leaves = 0;
	memset(reqs, 0, sizeof(reqs));
	for (unsigned i = 0; i < nr; i++) {
		if (i && wanted[i].leaf == wanted[i - 1].leaf)
			continue;
		nodes[nr_leaves] = &r->window->leaves[wanted[i].leaf];
		pf_set_req(s->set, &reqs[nr_leaves], PF_AIO_READ, wanted[i].addr,
			   r->leaves + (size_t)nr_leaves * PF_NODE_SIZE, PF_NODE_BLOCKS);
		nr_leaves++;
	}
	pf_aio_run(s->set->aio, reqs, nr_leaves);
	const void *leaf = NULL;
	for (unsigned i = 0, k = 0; i < nr; i++) {
		if (!i || wanted[i].leaf != wanted[i - 1].leaf) {
			leaf = r->leaves + (size_t)k * PF_NODE_SIZE;
			struct pf_scrub_hit hit = { .addr = wanted[i].addr, .nr_blocks = 1, .err = reqs[k].result };
			if (!hit.err)
				hit.err = pf_walk_validate(&s->super, nodes[k], 0, leaf);
			if (hit.err && pf_walk_nr_copies(nodes[k]) > 1 &&
			    !pf_walk_read(s->set, &s->super, nodes[k], 1, r->leaves + (size_t)k * PF_NODE_SIZE))
				hit.err = 0; /* told by the first walk */
			/* a copy verified a moment ago; if none does now, its extents cannot be judged */
			int err = hit.err ? pf_scrub_hit(s, &hit) : 0;
			if (err)
				return err;
			if (hit.err)
				leaf = NULL;
			k++;
		}
		fill_job(r, &r->jobs[wanted[i].job], &r->window->entries[first_entry + wanted[i].job], leaf);
	}
	return 0;
}

/* Fills the jobs of the entries from @first on; *nr_jobs says how many. */
static int begin_piece(struct runner *r, size_t first, unsigned *nr_jobs)
{
	struct wanted wanted[PIECE_ENTRIES];
	unsigned nr = 0, nr_blocks = 0;
	int err = 0;
	while (nr < PIECE_ENTRIES && first + nr < r->to && nr_blocks < PIECE_BLOCKS) {
		const struct pf_scrub_entry *entry = &r->window->entries[first + nr];
		r->jobs[nr] = (struct job){ .addr = entry->addr, .nr_blocks = entry->nr_blocks, .crc = nr_blocks };
		wanted[nr] = (struct wanted){ r->window->leaves[entry->leaf].ptr.addr[0], entry->leaf, nr };
		nr_blocks += entry->nr_blocks;
		nr++;
	}
	qsort(wanted, nr, sizeof(wanted[0]), wanted_cmp);
	for (unsigned i = 0; !err && i < nr;) {
		unsigned end = i, nr_leaves = 0;
		for (; end < nr; end++) {
			if (end == i || wanted[end].leaf != wanted[end - 1].leaf)
				nr_leaves++;
			if (nr_leaves > LEAVES_AT_ONCE)
				break;
		}
		err = read_leaves(r, wanted + i, end - i, first);
		i = end;
	}
	*nr_jobs = nr;
	return err;
}

/* -- blocks ------------------------------------------------------------------------------------------------------ */
int pf_scrub_unreadable(struct pf_scrubber *s, const struct pf_scrub_hit *range, void *block)
{
	for (uint32_t i = 0; i < range->nr_blocks; i++) {
		struct pf_scrub_hit hit = {
			.data_id = range->data_id,
			.file_block = range->file_block + i,
			.addr = range->addr + i,
			.nr_blocks = 1,
		};
		hit.err = pf_set_read(s->set, hit.addr, block, 1);
		int err = hit.err ? pf_scrub_hit(s, &hit) : 0;
		if (err)
			return err;
	}
	return 0;
}

static int verify(struct runner *r, const struct job *job, const uint8_t *data)
{
	uint64_t crc[PF_MAX_EXTENT_BLOCKS];
	pf_crc64_blocks(data, PF_BLOCK_SIZE, job->nr_blocks, crc);
	for (uint32_t i = 0; i < job->nr_blocks; i++) {
		if (crc[i] == r->crcs[job->crc + i])
			continue;
		struct pf_scrub_hit hit = { job->data_id, job->file_block + i, job->addr + i, 1, -PF_EDATA_CSUM };
		int err = pf_scrub_hit(r->s, &hit);
		if (err)
			return err;
	}
	return 0;
}

/* After a request that failed: which blocks is it? The others are verified. */
static int look_closely(struct runner *r, const struct job *job)
{
	uint8_t *block = r->buffer + (size_t)BUFFER_BLOCKS * PF_BLOCK_SIZE;
	for (uint32_t i = 0; i < job->nr_blocks; i++) {
		struct job one = *job;
		one.addr += i;
		one.file_block += i;
		one.crc += i;
		one.nr_blocks = 1;
		struct pf_scrub_hit hit = { one.data_id, one.file_block, one.addr, 1, 0 };
		int err = 0;
		hit.err = pf_set_read(r->s->set, one.addr, block, 1);
		if (hit.err)
			err = pf_scrub_hit(r->s, &hit);
		else if (one.has_crc)
			err = verify(r, &one, block);
		if (err)
			return err;
	}
	return 0;
}

struct batch {
	unsigned from, to; /* jobs */
	unsigned nr_reqs;
	uint32_t nr_blocks;
	struct pf_aio_req reqs[BUFFER_REQS];
	unsigned req_of[PIECE_ENTRIES];
	uint32_t block_of[PIECE_ENTRIES]; /* in the buffer */
};

/* Requests for as many jobs from b->to on as go into the buffer. */
static void fill_batch(struct runner *r, struct batch *b, unsigned nr)
{
	pf_addr end = 0;
	uint32_t req_blocks = 0;
	b->from = b->to;
	b->nr_reqs = 0;
	b->nr_blocks = 0;
	for (; b->to < nr; b->to++) {
		const struct job *job = &r->jobs[b->to];
		if (job->skip)
			continue;
		bool joins = b->nr_reqs && job->addr == end && req_blocks + job->nr_blocks <= READ_BLOCKS;
		if (b->nr_blocks + job->nr_blocks > BUFFER_BLOCKS || (!joins && b->nr_reqs == BUFFER_REQS))
			return;
		struct pf_aio_req *req = &b->reqs[joins ? b->nr_reqs - 1 : b->nr_reqs++];
		if (!joins) {
			memset(req, 0, sizeof(*req));
			pf_set_req(r->s->set, req, PF_AIO_READ, job->addr,
				   r->buffer + (size_t)b->nr_blocks * PF_BLOCK_SIZE, job->nr_blocks);
			req_blocks = 0;
		} else {
			req->len_bytes += (size_t)job->nr_blocks << PF_BLOCK_SHIFT;
		}
		req_blocks += job->nr_blocks;
		b->req_of[b->to] = b->nr_reqs - 1;
		b->block_of[b->to] = b->nr_blocks;
		b->nr_blocks += job->nr_blocks;
		end = job->addr + job->nr_blocks;
	}
}

static int judge_batch(struct runner *r, const struct batch *b)
{
	struct pf_scrubber *s = r->s;
	int err = 0;
	for (unsigned i = b->from; !err && i < b->to; i++) {
		const struct job *job = &r->jobs[i];
		if (job->skip)
			continue;
		if (b->reqs[b->req_of[i]].result)
			err = look_closely(r, job);
		else if (job->has_crc)
			err = verify(r, job, r->buffer + (size_t)b->block_of[i] * PF_BLOCK_SIZE);
		uint64_t bytes = (uint64_t)job->nr_blocks << PF_BLOCK_SHIFT;
		atomic_fetch_add(&s->data_bytes, bytes);
		atomic_fetch_add(&s->done_bytes, bytes);
		if (!job->has_crc)
			atomic_fetch_add(&s->unverified_bytes, bytes);
	}
	return err;
}

/* Sleeps off what a batch was faster than the limit. */
static void slow_down(struct pf_scrubber *s, uint64_t bytes, int64_t began_ns)
{
	uint64_t rate = s->options->rate_bytes_s;
	if (!rate)
		return;
	int64_t due = (int64_t)((double)bytes * 1e9 / (double)rate), left = due - (pf_now_ns(s->set->env) - began_ns);
	left = left > due ? due : left; /* the clock was set back */
	while (left > 0 && !stopped(s)) {
		struct timespec t = { 0, left < SLEEP_NS ? left : SLEEP_NS };
		nanosleep(&t, NULL);
		left -= t.tv_nsec;
	}
}

static int run_piece(struct runner *r, unsigned nr)
{
	struct batch b = { .to = 0 };
	int err = 0;
	while (!err && b.to < nr && !stopped(r->s)) {
		int64_t began_ns = pf_now_ns(r->s->set->env);
		fill_batch(r, &b, nr);
		if (b.nr_reqs)
			pf_aio_run(r->s->set->aio, b.reqs, b.nr_reqs);
		err = judge_batch(r, &b);
		tell_progress(r->s);
		slow_down(r->s, (uint64_t)b.nr_blocks << PF_BLOCK_SHIFT, began_ns);
	}
	return err;
}

/* -- threads ----------------------------------------------------------------------------------------------------- */
static void *run_member(void *arg)
{
	struct runner *r = arg;
	struct pf_scrubber *s = r->s;
	for (size_t first = r->from; !r->err && first < r->to && !stopped(s);) {
		unsigned nr;
		r->err = begin_piece(r, first, &nr);
		if (!r->err)
			r->err = run_piece(r, nr);
		first += nr;
	}
	pthread_mutex_lock(&s->lock);
	s->nr_running--;
	if (r->err && !s->err)
		s->err = r->err;
	s->stop |= r->err != 0;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Until all threads have ended: tells progress, and damage when much has gathered. */
static int watch(struct pf_scrubber *s)
{
	int err = 0;
	pthread_mutex_lock(&s->lock);
	while (s->nr_running) {
		bool many = s->nr_hits >= PF_SCRUB_HITS;
		if (!many)
			pthread_cond_wait(&s->changed, &s->lock);
		pthread_mutex_unlock(&s->lock);
		if (!err)
			err = many ? pf_scrub_tell(s) : pf_scrub_progress(s);
		pthread_mutex_lock(&s->lock);
		s->stop |= err != 0;
		if (err)
			pthread_cond_broadcast(&s->changed);
	}
	err = err ? err : s->err;
	pthread_mutex_unlock(&s->lock);
	return err;
}

static struct runner *new_runner(struct pf_scrubber *s, const struct pf_scrub_window *w, size_t from, size_t to)
{
	struct runner *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->s = s;
	r->window = w;
	r->from = from;
	r->to = to;
	r->leaves = aligned_alloc(PF_BLOCK_SIZE, (size_t)LEAVES_AT_ONCE * PF_NODE_SIZE);
	r->buffer = aligned_alloc(PF_BLOCK_SIZE, (size_t)(BUFFER_BLOCKS + 1) * PF_BLOCK_SIZE);
	return r;
}

static void free_runner(struct runner *r)
{
	if (!r)
		return;
	free(r->leaves);
	free(r->buffer);
	free(r);
}

/* Starts a thread over entries [from, to). */
static int start(struct runner *r)
{
	struct pf_scrubber *s = r->s;
	if (!r->leaves || !r->buffer)
		return -ENOMEM;
	pthread_mutex_lock(&s->lock);
	s->nr_running++;
	pthread_mutex_unlock(&s->lock);
	int err = pthread_create(&r->thread, NULL, run_member, r);
	if (err) {
		pthread_mutex_lock(&s->lock);
		s->nr_running--;
		pthread_mutex_unlock(&s->lock);
	}
	return -err;
}

static int run_window(struct pf_scrubber *s, const struct pf_scrub_window *w)
{
	struct runner *runners[PF_MAX_MEMBERS];
	unsigned nr = 0;
	int err = 0;
	for (size_t from = 0; !err && from < w->nr_entries;) {
		size_t to = from;
		while (to < w->nr_entries &&
		       pf_addr_member(w->entries[to].addr) == pf_addr_member(w->entries[from].addr))
			to++;
		struct runner *r = new_runner(s, w, from, to);
		err = r ? start(r) : -ENOMEM;
		if (err)
			free_runner(r);
		else
			runners[nr++] = r;
		from = to;
	}
	pthread_mutex_lock(&s->lock);
	s->stop |= err != 0;
	pthread_mutex_unlock(&s->lock);
	int watched = watch(s);
	for (unsigned i = 0; i < nr; i++) {
		pthread_join(runners[i]->thread, NULL);
		free_runner(runners[i]);
	}
	return err ? err : watched;
}

int pf_scrub_data(struct pf_scrubber *s, struct pf_scrub_plan *plan)
{
	const struct pf_scrub_window *window;
	int err = pf_scrub_next_window(plan, &window);
	while (!err && window) {
		err = run_window(s, window);
		if (!err)
			err = pf_scrub_next_window(plan, &window);
	}
	return err;
}
