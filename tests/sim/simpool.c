/* SPDX-License-Identifier: MIT */
#include "sim/simpool.h"

#include "block/engine.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t simpool_member_bytes(const struct simpool_config *config, unsigned member)
{
	uint64_t size = config->size_bytes ? config->size_bytes : UINT64_C(32) << 20;
	if (config->last_bytes && member + 1 == config->nr_members)
		return config->last_bytes;
	if (config->version && config->version < 3)
		return size;
	/* not whole groups, and not whole MiB */
	uint64_t smaller = size - member * (size / 7) / 4096 * 4096 - (member ? 12288 : 0);
	return smaller < PF_MIN_MEMBER_BYTES ? PF_MIN_MEMBER_BYTES : smaller;
}

struct pf_geometry simpool_geometry(struct simdisk *disk)
{
	uint64_t blocks = simdisk_size(disk) / PF_BLOCK_SIZE;
	struct pf_geometry geo;
	if (pf_geometry_init(&geo, blocks, pf_geometry_log_blocks(blocks)))
		abort();
	return geo;
}

struct simpool *simpool_adopt(const struct simpool_config *config, struct simworld *world)
{
	struct simpool *s = calloc(1, sizeof(*s));
	s->config = *config;
	s->world = world;
	s->rng.state = rng_mix(config->seed ^ UINT64_C(0x706f6f6c));
	test_env_init(&s->env, config->seed);
	s->env.verbose = config->verbose || getenv("POOLFS_TEST_VERBOSE");
	return s;
}

struct simpool *simpool_bare(const struct simpool_config *config)
{
	struct simworld *world = simworld_new();
	if (config->discard && rng_mix(config->seed) % 2)
		simworld_discard_to_garbage(world);
	unsigned nr = config->nr_members ? config->nr_members : 1;
	for (unsigned k = 0; k < nr; k++) {
		char name[24];
		say(name, sizeof(name), "member%u", k);
		struct simdisk *disk = simdisk_new(world, name, simpool_member_bytes(config, k));
		/* what the version admits: files only in 1, both from 2 on */
		simdisk_set_kind(disk, config->version == 1 || k % 2 == 0 ? PF_IO_FILE : PF_IO_BLOCK_DEVICE);
	}
	return simpool_adopt(config, world);
}

static int failed(char *why, size_t cap, const char *what, int err, const struct pf_diag *diag)
{
	say(why, cap, "%s: %s (%d)%s%s", what, pf_strerror(err), err, diag && diag->text[0] ? ": " : "",
	    diag ? diag->text : "");
	return err;
}

/* Handles of all disks; in a random order unless @in_order. */
static unsigned open_disks(struct simpool *s, bool read_only, bool in_order, struct pf_io **ios)
{
	unsigned nr = simworld_nr_disks(s->world);
	simworld_open(s->world, read_only, ios);
	for (unsigned k = nr; !in_order && k > 1; k--) {
		unsigned other = (unsigned)rng_below(&s->rng, k);
		struct pf_io *io = ios[k - 1];
		ios[k - 1] = ios[other];
		ios[other] = io;
	}
	return nr;
}

int simpool_mkfs(struct simpool *s, char *why, size_t cap)
{
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag = { "" };
	struct pf_mkfs_report report;
	struct pf_mkfs_options options = { .version = s->config.version,
					   .placement = s->config.placement,
					   .meta_mask = s->config.meta_mask,
					   .label = "sim" };
	unsigned nr = open_disks(s, false, true, ios);
	int err = pf_pool_create(ios, nr, &options, &s->env.env, false, &report, &diag);
	return err ? failed(why, cap, "mkfs", err, &diag) : 0;
}

void simpool_choose_stages(struct simpool_config *c)
{
	if (c->stage_max || c->seed % 3 == 0)
		return;
	c->stage_max = 2 + (unsigned)(c->seed / 3 % 14);
	c->map_max = 1 + (unsigned)(c->seed / 3 / 14 % 3);
}

int simpool_open(struct simpool *s, bool read_only, char *why, size_t cap)
{
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag = { "" };
	struct pf_pool_options options = {
		.read_only = read_only,
		.commit_interval_ms = s->config.commit_interval_ms,
		.cache_bytes = s->config.cache_bytes ? s->config.cache_bytes : UINT64_C(16) << 20,
		.discard = s->config.discard ? PF_DISCARD_ALL : PF_DISCARD_NONE,
	};
	unsigned nr = open_disks(s, read_only, false, ios);
	s->env.env.break_rules = s->config.break_rules;
	int err = pf_pool_open_ios(ios, nr, &options, &s->env.env, &s->pool, &diag);
	if (err) {
		s->pool = NULL;
		return failed(why, cap, "open", err, &diag);
	}
	if (s->config.stage_max) {
		s->pool->stage_max = s->config.stage_max;
		s->pool->map_max = s->config.map_max;
		atomic_store(&s->pool->drains_later, true);
	}
	return 0;
}

struct simpool *simpool_new(const struct simpool_config *config, char *why, size_t cap)
{
	struct simpool *s = simpool_bare(config);
	if (simpool_mkfs(s, why, cap) || simpool_open(s, false, why, cap)) {
		simpool_free(s);
		return NULL;
	}
	return s;
}

int simpool_close(struct simpool *s, char *why, size_t cap)
{
	if (!s->pool)
		return 0;
	int err = pf_pool_close(s->pool);
	s->pool = NULL;
	return err ? failed(why, cap, "close", err, NULL) : 0;
}

int simpool_remount(struct simpool *s, char *why, size_t cap)
{
	int err = simpool_close(s, why, cap);
	return err ? err : simpool_open(s, false, why, cap);
}

void simpool_abandon(struct simpool *s)
{
	if (s->pool)
		pf_pool_abandon(s->pool);
	s->pool = NULL;
}

struct findings {
	char *text;
	size_t cap, len;
	unsigned nr, nr_ignored;
	bool torn_supers, missing_supers, repair;
};

static bool note_problem(void *arg, const struct pf_problem_report *report)
{
	struct findings *f = arg;
	if ((f->torn_supers && report->problem == PF_PROBLEM_SUPER_DAMAGED) ||
	    (f->missing_supers && report->problem == PF_PROBLEM_SUPER_MISSING)) {
		f->nr_ignored++;
		return false;
	}
	if (f->len < f->cap) {
		int n = snprintf(f->text + f->len, f->cap - f->len, "%s%s: %s", f->nr ? "; " : "", report->id,
				 report->message);
		f->len += n > 0 ? (size_t)n : 0;
	}
	f->nr++;
	return f->repair;
}

static int check(struct simpool *s, struct findings *f, struct pf_check_result *result, char *why, size_t cap)
{
	struct pf_io *ios[SIMPOOL_MAX];
	struct pf_diag diag = { "" };
	struct pf_check_options options = { .check_data = true, .repair = f->repair };
	struct pf_check_sink sink = { .problem = note_problem, .arg = f };
	unsigned nr = open_disks(s, !f->repair, false, ios);
	int err = pf_check(ios, nr, &options, &s->env.env, &sink, result, &diag);
	return err ? failed(why, cap, "check", err, &diag) : 0;
}

int simpool_check(struct simpool *s, char *why, size_t cap)
{
	struct pf_check_result result = { 0 };
	struct findings found = {
		.text = why, .cap = cap, .torn_supers = s->torn_supers, .missing_supers = s->missing_supers
	};
	int err = check(s, &found, &result, why, cap);
	if (err)
		return err;
	if (result.nr_problems != found.nr + found.nr_ignored)
		say(why, cap, "check counts %ju problems and names %u", (uintmax_t)result.nr_problems,
		    found.nr + found.nr_ignored);
	if (!found.nr && result.nr_single_nodes && !s->single_nodes) {
		say(why, cap, "%ju tree nodes have one copy only", (uintmax_t)result.nr_single_nodes);
		return -PF_EITEM_INVALID;
	}
	return found.nr || result.nr_problems != found.nr_ignored ? -PF_EITEM_INVALID : 0;
}

int simpool_repair(struct simpool *s, char *why, size_t cap)
{
	struct pf_check_result result = { 0 };
	char first[800] = "", second[800] = "";
	struct findings found = { .text = first, .cap = sizeof(first), .repair = true };
	int err = check(s, &found, &result, second, sizeof(second));
	if (!err)
		err = simpool_check(s, second, sizeof(second));
	if (err)
		say(why, cap, "%u problems, repairing them (%s) left: %s", found.nr, first, second);
	return err;
}

void simpool_free(struct simpool *s)
{
	if (!s)
		return;
	simpool_abandon(s);
	simworld_free(s->world);
	free(s);
}
