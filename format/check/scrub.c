/* SPDX-License-Identifier: MIT
 *
 * First the metadata: superblocks, tables and maps in their order on each member, then all nodes by a walk of the
 * tree. Then the data, in physical order on each member (scrub_data.c). Then, if wanted, checksums for what has
 * none. */
#include "check/check.h"

#include "check/checker.h"
#include "check/scrubber.h"

#include <stdlib.h>
#include <string.h>

/* -- what was found ---------------------------------------------------------------------------------------------- */
static bool follows(const struct pf_scrub_hit *a, const struct pf_scrub_hit *b)
{
	return a->data_id == b->data_id && a->err == b->err && a->file_block + a->nr_blocks == b->file_block &&
	       a->addr + a->nr_blocks == b->addr && a->nr_blocks + b->nr_blocks > a->nr_blocks;
}

int pf_scrub_hit(struct pf_scrubber *s, const struct pf_scrub_hit *hit)
{
	int err = 0;
	pthread_mutex_lock(&s->lock);
	while (s->nr_running && s->nr_hits >= PF_SCRUB_HITS && !s->stop)
		pthread_cond_wait(&s->changed, &s->lock);
	if (s->nr_hits && follows(&s->hits[s->nr_hits - 1], hit))
		s->hits[s->nr_hits - 1].nr_blocks += hit->nr_blocks;
	else if (!(err = pf_grow(&s->hits, s->nr_hits, &s->cap_hits, sizeof(s->hits[0]))))
		s->hits[s->nr_hits++] = *hit;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* Counts a damaged file once. */
static int count_file(struct pf_scrubber *s, uint64_t data_id)
{
	size_t lo = 0, hi = s->nr_damaged;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (s->damaged[mid] < data_id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < s->nr_damaged && s->damaged[lo] == data_id)
		return 0;
	if (pf_grow(&s->damaged, s->nr_damaged, &s->cap_damaged, sizeof(s->damaged[0])))
		return -ENOMEM;
	memmove(s->damaged + lo + 1, s->damaged + lo, (s->nr_damaged - lo) * sizeof(s->damaged[0]));
	s->damaged[lo] = data_id;
	s->nr_damaged++;
	s->result->nr_damaged_files++;
	return 0;
}

struct telling {
	struct pf_scrubber *s;
	int err;
};

static void tell(void *arg, const char *path, uint64_t ino, const struct pf_scrub_hit *hit)
{
	struct telling *t = arg;
	struct pf_scrubber *s = t->s;
	if (!hit->data_id) {
		pf_scrub_metadata_error(s, hit->addr, hit->err, false);
		return;
	}
	if (!t->err)
		t->err = count_file(s, hit->data_id);
	for (uint32_t i = 0; i < hit->nr_blocks; i++) {
		pf_addr addr = hit->addr + i;
		struct pf_scrub_error error = {
			.path = path,
			.ino = ino,
			.file_off_bytes = (hit->file_block + i) << PF_BLOCK_SHIFT,
			.member = s->set->members[pf_addr_member(addr)].io->name,
			.member_off_bytes = pf_addr_block(addr) << PF_BLOCK_SHIFT,
			.err = hit->err,
		};
		s->result->nr_errors++;
		if (s->sink->error)
			s->sink->error(s->sink->arg, &error);
	}
}

int pf_scrub_tell(struct pf_scrubber *s)
{
	struct telling t = { .s = s };
	pthread_mutex_lock(&s->lock);
	struct pf_scrub_hit *hits = s->hits;
	size_t nr = s->nr_hits;
	s->hits = NULL;
	s->nr_hits = s->cap_hits = 0;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	int err = nr ? pf_scrub_names(s->set, &s->super, hits, nr, tell, &t) : 0;
	free(hits);
	return err ? err : t.err;
}

int pf_scrub_progress(struct pf_scrubber *s)
{
	uint64_t done = atomic_load(&s->done_bytes);
	if (!s->sink->progress || s->sink->progress(s->sink->arg, done, s->total_bytes > done ? s->total_bytes : done))
		return 0;
	return -EINTR;
}

void pf_scrub_metadata_error(struct pf_scrubber *s, pf_addr addr, int err, bool good_copy)
{
	unsigned member = pf_addr_member(addr);
	struct pf_scrub_error error = {
		.member = member < s->set->nr ? s->set->members[member].io->name : "?",
		.member_off_bytes = pf_addr_block(addr) << PF_BLOCK_SHIFT,
		.err = err,
		.good_copy = good_copy,
	};
	s->result->nr_errors++;
	if (s->sink->error)
		s->sink->error(s->sink->arg, &error);
}

/* -- superblocks, tables, maps ----------------------------------------------------------------------------------- */
static void count_metadata(struct pf_scrubber *s, uint64_t nr_blocks)
{
	s->result->metadata_bytes += nr_blocks << PF_BLOCK_SHIFT;
	atomic_fetch_add(&s->done_bytes, nr_blocks << PF_BLOCK_SHIFT);
}

static void scrub_ring(struct pf_scrubber *s, unsigned member, unsigned ring, void *block)
{
	for (unsigned slot = 0; slot < PF_SUPER_SLOTS; slot++) {
		struct pf_super super;
		uint64_t at = pf_geometry_super_block(&s->set->members[member].geo, ring, slot);
		int err = pf_io_read(s->set->members[member].io, at << PF_BLOCK_SHIFT, block, PF_BLOCK_SIZE);
		if (!err) {
			err = pf_super_unpack(block, &super);
			if (err == -PF_ESB_MAGIC || pf_check_slot_in_flight(&s->super, slot))
				err = 0;
		}
		if (err)
			pf_scrub_metadata_error(s, pf_addr_make(member, at), err, false);
		count_metadata(s, 1);
	}
}

static void table_bad(void *arg, unsigned member, bool is_root, uint64_t index, uint64_t block, int err)
{
	(void)is_root;
	(void)index;
	pf_scrub_metadata_error(arg, pf_addr_make(member, block), err, false);
}

static int scrub_tables(struct pf_scrubber *s, unsigned member, struct pf_disk_map *map)
{
	struct pf_tables tables = { 0 };
	const struct pf_geometry *geo = &s->set->members[member].geo;
	int err = pf_tables_load(s->set, &s->super, member, table_bad, s, &tables);
	if (!err)
		count_metadata(s, geo->root_blocks + geo->nr_tables);
	for (uint64_t g = 0; !err && g < tables.nr_groups; g++) {
		const struct pf_group_info *info = &tables.groups[g];
		if (info->lost || !(info->flags & PF_GROUP_INIT))
			continue;
		int bad = pf_tables_read_map(s->set, &s->super, member, g, info, map);
		if (bad)
			pf_scrub_metadata_error(s, pf_addr_make(member, pf_tables_map_block(s->set, member, g, info)), bad,
						false);
		count_metadata(s, 1);
		if (g % 1024 == 0)
			err = pf_scrub_progress(s);
	}
	pf_tables_free(&tables);
	return err;
}

static int scrub_fixed_places(struct pf_scrubber *s)
{
	void *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	int err = block ? 0 : -ENOMEM;
	for (unsigned m = 0; !err && m < s->set->nr; m++) {
		scrub_ring(s, m, 0, block);
		err = scrub_tables(s, m, block);
		scrub_ring(s, m, 1, block);
	}
	free(block);
	return err;
}

/* ---------------------------------------------------------------------------------------------------------------- */
static int scrub(struct pf_scrubber *s)
{
	struct pf_scrub_plan *plan = NULL;
	int err = scrub_fixed_places(s);
	if (!err)
		err = pf_scrub_plan(s, &plan);
	if (!err)
		err = pf_scrub_data(s, plan);
	pf_scrub_plan_free(plan);
	if (!err)
		err = pf_scrub_tell(s);
	if (!err && s->fill)
		err = pf_scrub_fill(s);
	return err ? err : pf_scrub_progress(s);
}

int pf_scrub(struct pf_pool *pool, const struct pf_scrub_options *options, const struct pf_scrub_sink *sink,
	     struct pf_scrub_result *result)
{
	memset(result, 0, sizeof(*result));
	int err = options->fill_in && !pf_pool_read_only(pool) ? pf_pool_sync(pool) : 0;
	if (err)
		return err;
	struct pf_scrubber s = {
		.pool = pool,
		.set = pf_pool_set(pool),
		.super = *pf_pool_super(pool),
		.options = options,
		.sink = sink,
		.result = result,
	};
	s.fill = options->fill_in && pf_has(&s.super.features, PF_FEAT_DATA_CSUM);
	err = s.fill && pf_pool_read_only(pool) ? -EROFS : 0;
	if (err)
		return err;
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.changed, NULL);
	err = scrub(&s);
	result->data_bytes = atomic_load(&s.data_bytes);
	result->unverified_bytes = atomic_load(&s.unverified_bytes);
	pthread_cond_destroy(&s.changed);
	pthread_mutex_destroy(&s.lock);
	free(s.hits);
	free(s.damaged);
	return err;
}
