/* SPDX-License-Identifier: MIT
 * What a pool says of itself: statfs and status. */
#include "object/inode.h"
#include "pool/pool_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct pf_super *pf_pool_super(const struct pf_pool *pool)
{
	return &pool->super;
}

struct pf_set *pf_pool_set(struct pf_pool *pool)
{
	return pool->set;
}

bool pf_pool_holds(const struct pf_pool *pool, const void *buf, size_t len_bytes)
{
	return pf_aio_holds(pool->set->aio, buf, len_bytes);
}

bool pf_pool_read_only(const struct pf_pool *pool)
{
	return pool->read_only || atomic_load(&pool->failed);
}

static uint64_t minimum(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void pf_pool_statfs(struct pf_pool *pool, struct pf_statfs *out)
{
	struct pf_space_stats s;
	pf_tree_lock(pool->tree);
	struct pf_counters c = pool->counters;
	pf_space_stats(pool->space, &s);
	pf_tree_unlock(pool->tree);
	out->total_blocks = s.data_area_blocks - s.share_blocks;
	out->nr_inodes = c.nr_inodes;
	uint64_t coming = s.pending_blocks, used;
	if (pool->reclaim) {
		/* nodes live inside the share; what waits for the reaper or a checkpoint is as good as free */
		used = c.data_blocks - c.orphan_blocks + s.reserved_blocks;
		coming += c.orphan_blocks;
	} else {
		used = s.data_area_blocks - s.free_blocks - s.pending_blocks - s.node_blocks + s.reserved_blocks;
	}
	out->free_blocks = out->total_blocks > used ? out->total_blocks - used : 0;
	out->avail_blocks = out->free_blocks = minimum(out->free_blocks, s.avail_blocks + coming);
}

static void print_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void print_uuid(FILE *f, const uint8_t *u)
{
	for (unsigned i = 0; i < 16; i++)
		fprintf(f, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

/* Ends the object. */
static void print_failure(FILE *f, const struct pf_member *m, const struct pf_member_row *row)
{
	int err = atomic_load(&m->error);
	bool failed = err || row->state == PF_MEMBER_FAILED;
	fprintf(f, ",\"failed\":%s", failed ? "true" : "false");
	if (failed) {
		fprintf(f, ",\"failure\":");
		print_string(f, err ? pf_strerror(err) : "it failed before this mount");
	}
	fputc('}', f);
}

static void print_member(FILE *f, struct pf_pool *pool, const struct pf_super *super, unsigned id)
{
	static const char *const kinds[] = { [PF_IO_FILE] = "image", [PF_IO_BLOCK_DEVICE] = "device", [PF_IO_MEMORY] = "memory" };
	const struct pf_member *m = &pool->set->members[id];
	const struct pf_member_row *row = &super->members[id];
	uint64_t free_blocks, pending;
	pf_space_member_stats(pool->space, id, &free_blocks, &pending);
	fprintf(f, "%s{\"id\":%u,\"path\":", id ? "," : "", id);
	print_string(f, m->io->name);
	fprintf(f, ",\"uuid\":\"");
	print_uuid(f, row->uuid);
	fprintf(f, "\",\"kind\":\"%s\",\"size_bytes\":%" PRIu64 ",\"data_bytes\":%" PRIu64 ",\"free_bytes\":%" PRIu64
		   ",\"metadata\":%s,\"direct_io\":%s,\"discard\":%s",
		kinds[m->io->kind], row->size_blocks * PF_BLOCK_SIZE, (m->geo.data_end - m->geo.data_start) * PF_BLOCK_SIZE,
		(free_blocks + pending) * PF_BLOCK_SIZE, row->flags & PF_MEMBER_META ? "true" : "false",
		m->io->direct ? "true" : "false", pf_space_discards(pool->space) >> id & 1 ? "true" : "false");
	fprintf(f, ",\"reads\":%" PRIu64 ",\"writes\":%" PRIu64 ",\"flushes\":%" PRIu64 ",\"bytes_read\":%" PRIu64
		   ",\"bytes_written\":%" PRIu64 ",\"errors\":%" PRIu64,
		(uint64_t)atomic_load(&m->io->nr_reads), (uint64_t)atomic_load(&m->io->nr_writes),
		(uint64_t)atomic_load(&m->io->nr_flushes), (uint64_t)atomic_load(&m->io->bytes_read),
		(uint64_t)atomic_load(&m->io->bytes_written), (uint64_t)atomic_load(&m->io->nr_errors));
	print_failure(f, m, row);
}

static void print_features(FILE *f, const struct pf_features *features)
{
	const char *comma = "";
	fprintf(f, "\"features\":[");
	for (unsigned i = 0; i < PF_FEAT_COUNT; i++) {
		if (!pf_has(features, (enum pf_feature)i))
			continue;
		fprintf(f, "%s\"%s\"", comma, pf_feature_info((enum pf_feature)i)->name);
		comma = ",";
	}
	fprintf(f, "],");
}

char *pf_pool_status_json(struct pf_pool *pool)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return NULL;
	struct pf_statfs st;
	struct pf_space_stats space;
	struct pf_tree_stats tree;
	pf_pool_statfs(pool, &st);
	pf_space_stats(pool->space, &space);
	pf_tree_stats(pool->tree, &tree);
	pthread_mutex_lock(&pool->super_lock);
	struct pf_super super = pool->super;
	pthread_mutex_unlock(&pool->super_lock);
	fprintf(f, "{\"pool\":\"");
	print_uuid(f, super.pool_uuid);
	fprintf(f, "\",\"label\":");
	print_string(f, super.label);
	fprintf(f, ",\"version\":%u,", super.version);
	print_features(f, &super.features);
	fprintf(f, "\"placement\":\"%s\",\"generation\":%" PRIu64 ",\"clean\":%s,\"read_only\":%s,\"failed\":%s,",
		super.placement == PF_PLACE_STRIPE ? "stripe" : "file", super.generation, pool->was_clean ? "true" : "false",
		pool->read_only ? "true" : "false", atomic_load(&pool->failed) ? "true" : "false");
	fprintf(f, "\"total_bytes\":%" PRIu64 ",\"free_bytes\":%" PRIu64 ",\"inodes\":%" PRIu64 ",", st.total_blocks * PF_BLOCK_SIZE,
		st.free_blocks * PF_BLOCK_SIZE, st.nr_inodes);
	fprintf(f, "\"metadata_bytes\":%" PRIu64 ",\"metadata_share_bytes\":%" PRIu64 ",\"pending_bytes\":%" PRIu64
		   ",\"staged_bytes\":%" PRIu64 ",\"no_csum_bytes\":%" PRIu64 ",\"bad_groups\":%u,",
		space.node_blocks * PF_BLOCK_SIZE, space.share_blocks * PF_BLOCK_SIZE, space.pending_blocks * PF_BLOCK_SIZE,
		(uint64_t)atomic_load(&pool->staged_blocks) * PF_BLOCK_SIZE,
		pool->data_csum ? super.counters.no_csum_blocks * PF_BLOCK_SIZE : 0, space.bad_groups);
	fprintf(f, "\"lost_files\":%u,", pf_icache_nr_marked(pool, PF_MARK_FAILED));
	fprintf(f, "\"dirty_nodes\":%" PRIu64 ",\"cached_nodes\":%" PRIu64 ",\"node_hits\":%" PRIu64 ",\"node_misses\":%" PRIu64
		   ",\"members\":[",
		tree.dirty_nodes, tree.clean_nodes, tree.hits, tree.misses);
	for (unsigned i = 0; i < pool->set->nr; i++)
		print_member(f, pool, &super, i);
	fprintf(f, "]}");
	return fclose(f) ? (free(text), NULL) : text;
}
