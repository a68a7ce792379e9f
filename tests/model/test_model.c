/* SPDX-License-Identifier: MIT
 *
 * Purpose: random operations on a pool and on the model, compared after each, whole trees compared now and then and after each
 * remount, the whole pool checked in between, and at the end everything removed and the space counted. Without arguments: a
 * matrix of all versions, placements and numbers of members. A failure prints the one command that repeats it. */
#include "model/ops.h"
#include "sim/hang.h"
#include "sim/simpool.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

struct run {
	struct simpool_config pool;
	uint64_t seed;
	uint64_t nr_ops;
	uint64_t compare_each;
	bool crowded; /* names and attributes fill the pool, not data */
	bool trace;
};

struct state {
	struct simpool *s;
	struct rng rng;
	char why[1200];
	unsigned version; /* now */
	unsigned nr_upgrades;
};

/* Up by some versions; the CRCs that then are missing are filled in, now or later. */
static int upgrade(struct state *t)
{
	unsigned to = t->version + (unsigned)rng_below(&t->rng, PF_VERSION_NEWEST - t->version + 1);
	struct pf_diag diag = { "" };
	int err = pf_pool_upgrade(t->s->pool, to, &diag);
	if (err)
		say(t->why, sizeof(t->why), "upgrade from version %u to %u: %s: %s", t->version, to, pf_strerror(err),
		    diag.text);
	t->nr_upgrades += to > t->version;
	t->version = to;
	return err;
}

static int scrub(struct state *t, bool fill_in)
{
	struct pf_scrub_options options = { .fill_in = fill_in };
	struct pf_scrub_sink sink = { 0 };
	struct pf_scrub_result r = { 0 };
	int err = pf_scrub(t->s->pool, &options, &sink, &r);
	bool left = fill_in && t->version >= 5 && r.unverified_bytes > r.filled_in_bytes;
	if (err || r.nr_errors || left)
		say(t->why, sizeof(t->why), "scrub: %s, %ju errors, %ju bytes unverified, %ju filled in",
		    pf_strerror(err), (uintmax_t)r.nr_errors, (uintmax_t)r.unverified_bytes,
		    (uintmax_t)r.filled_in_bytes);
	return err ? err : r.nr_errors || left ? -PF_EDATA_CSUM : 0;
}

static int remount(void *arg, struct pf_pool **pool)
{
	struct state *t = arg;
	int err = simpool_close(t->s, t->why, sizeof(t->why));
	/* the check reads everything, so not each time */
	if (!err && rng_one_in(&t->rng, 3))
		err = simpool_check(t->s, t->why, sizeof(t->why));
	if (!err)
		err = simpool_open(t->s, false, t->why, sizeof(t->why));
	if (!err && rng_one_in(&t->rng, 3))
		err = upgrade(t);
	if (!err && rng_one_in(&t->rng, 3))
		err = scrub(t, rng_one_in(&t->rng, 2));
	*pool = t->s->pool;
	return err;
}

static void print_command(const struct run *r)
{
	printf("repeat with: test_model --seed %ju --ops %ju --version %u --members %u --placement %s --size %ju "
	       "--cache %ju%s\n",
	       (uintmax_t)r->seed, (uintmax_t)r->nr_ops, r->pool.version, r->pool.nr_members,
	       r->pool.placement == PF_PLACE_FILE ? "file" : "stripe", (uintmax_t)r->pool.size_bytes,
	       (uintmax_t)r->pool.cache_bytes, r->crowded ? " --crowded" : "");
}

static int drain(struct ops *o, char *why, size_t cap)
{
	int got;
	unsigned steps = 0;
	while ((got = pf_pool_step(o->pool, false)) == 1 && ++steps < 1000000)
		;
	if (!got)
		got = pf_pool_sync(o->pool);
	if (got)
		say(why, cap, "finishing the background work gives %s", got == 1 ? "no end" : pf_strerror(got));
	return got;
}

/* Everything removed: the space is that of the fresh pool, to the last block. */
static int end(struct ops *o, unsigned version, const struct pf_statfs *fresh, char *why, size_t cap)
{
	struct pf_statfs s;
	if (ops_compare(o) || ops_remove_all(o)) {
		say(why, cap, "%s", o->failure);
		return -1;
	}
	if (drain(o, why, cap))
		return -1;
	pf_pool_statfs(o->pool, &s);
	if (s.total_blocks != fresh->total_blocks || s.nr_inodes != fresh->nr_inodes) {
		say(why, cap, "empty again, but %ju blocks and %ju inodes, not %ju and %ju", (uintmax_t)s.total_blocks,
		    (uintmax_t)s.nr_inodes, (uintmax_t)fresh->total_blocks, (uintmax_t)fresh->nr_inodes);
		return -1;
	}
	if (version >= 4 && (s.free_blocks != fresh->free_blocks || s.avail_blocks != fresh->avail_blocks)) {
		say(why, cap, "empty again, but %ju blocks free and %ju available, not %ju and %ju",
		    (uintmax_t)s.free_blocks, (uintmax_t)s.avail_blocks, (uintmax_t)fresh->free_blocks,
		    (uintmax_t)fresh->avail_blocks);
		return -1;
	}
	return 0;
}

static int run_ops(struct state *t, const struct run *r, struct ops *o, char *why, size_t cap)
{
	struct ops_config config;
	struct pf_statfs fresh;
	ops_config_default(&config, r->seed);
	config.trace = r->trace;
	if (r->crowded) {
		config.max_inodes = 100000;
		config.max_write_bytes = 10000;
		config.weight[OP_CREATE] = 600;
		config.weight[OP_MKDIR] = 100;
		config.weight[OP_SYMLINK] = 300;
		config.weight[OP_SETXATTR] = 300;
		config.weight[OP_CURSOR] = 2;
	}
	pf_pool_statfs(t->s->pool, &fresh);
	int err = ops_start(o, &config, &t->s->env, t->s->pool);
	o->remount = remount;
	o->remount_arg = t;
	for (uint64_t k = 1; !err && k <= r->nr_ops; k++) {
		err = ops_step(o);
		if (!err && k % r->compare_each == 0)
			err = ops_compare(o);
	}
	if (err) {
		say(why, cap, "%s%s%s", o->failure, t->why[0] ? ": " : "", t->why);
		return err;
	}
	return end(o, t->version, &fresh, why, cap);
}

static int run_one(const struct run *r)
{
	struct state t = { .rng.state = rng_mix(r->seed), .version = r->pool.version };
	struct ops o = { 0 };
	char why[4000] = "";
	struct simpool_config config = r->pool;
	simpool_choose_stages(&config);
	alarm(120);
	config.discard = rng_mix(config.seed) >> 8 & 1;
	t.s = simpool_new(&config, why, sizeof(why));
	int err = t.s ? run_ops(&t, r, &o, why, sizeof(why)) : -1;
	if (t.s && o.model) {
		if (r->trace || getenv("POOLFS_TEST_VERBOSE"))
			printf("%ju operations, %ju times no space, %ju files made, %ju remounts, %u upgrades\n",
			       (uintmax_t)o.nr, (uintmax_t)o.nr_enospc, (uintmax_t)o.nr_ok[OP_CREATE],
			       (uintmax_t)o.nr_ok[OP_REMOUNT], t.nr_upgrades);
		ops_finish(&o);
	}
	if (!err)
		err = simpool_close(t.s, why, sizeof(why));
	if (!err)
		err = simpool_check(t.s, why, sizeof(why));
	if (err) {
		printf("FAIL: %s\n", why);
		print_command(r);
	}
	simpool_free(t.s);
	alarm(0);
	fflush(stdout);
	return err;
}

static int run_matrix(uint64_t seed, uint64_t nr_ops)
{
	unsigned nr_failed = 0, nr = 0;
	for (unsigned version = PF_VERSION_FIRST; version <= PF_VERSION_NEWEST; version++) {
		for (unsigned members = 1; members <= 4; members++) {
			for (unsigned placement = PF_PLACE_FILE; placement <= PF_PLACE_STRIPE; placement++) {
				struct run r = {
					.pool = { .version = version,
						  .nr_members = members,
						  .placement = placement,
						  .size_bytes = UINT64_C(32) << 20,
						  .seed = seed + nr },
					.seed = seed + nr,
					.nr_ops = nr_ops,
					.compare_each = nr_ops / 4 + 1,
				};
				/* nodes that do not fit in memory are read again and again */
				if (nr % 3)
					r.pool.cache_bytes = UINT64_C(64) << 10;
				/* a small one gets full */
				if (members == 1 && placement == PF_PLACE_FILE)
					r.pool.size_bytes = UINT64_C(20) << 20;
				nr++;
				nr_failed += run_one(&r) != 0;
			}
		}
	}
	for (unsigned version = 3; version <= PF_VERSION_NEWEST; version++) {
		struct run r = {
			.pool = { .version = version,
				  .nr_members = 1,
				  .size_bytes = UINT64_C(17) << 20,
				  .seed = seed + nr,
				  .cache_bytes = UINT64_C(256) << 10 },
			.seed = seed + nr,
			.nr_ops = 8 * nr_ops,
			.compare_each = 8 * nr_ops,
			.crowded = true,
		};
		nr++;
		nr_failed += run_one(&r) != 0;
	}
	printf("%u runs, %u failed\n", nr, nr_failed);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int usage(void)
{
	fprintf(stderr, "usage: test_model [--seed S] [--ops N] [--version V] [--members M] [--placement file|stripe] "
			"[--size BYTES] "
			"[--cache BYTES] [--crowded] [--compare-each N] [--trace]\n");
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", 1, NULL, 's' },         { "ops", 1, NULL, 'o' },       { "version", 1, NULL, 'v' },
		{ "members", 1, NULL, 'm' },      { "placement", 1, NULL, 'p' }, { "size", 1, NULL, 'z' },
		{ "compare-each", 1, NULL, 'c' }, { "trace", 0, NULL, 't' },     { "cache", 1, NULL, 'a' },
		{ "crowded", 0, NULL, 'w' },      { NULL, 0, NULL, 0 }
	};
	struct run r = {
		.pool = { .version = 0, .nr_members = 2, .size_bytes = UINT64_C(32) << 20 },
		.seed = 1,
		.nr_ops = getenv("POOLFS_TEST_LONG") ? 40000 : 1500,
		.compare_each = 500,
	};
	int c;
	catch_hangs();
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 0) : 0;
		switch (c) {
		case 's':
			r.seed = v;
			break;
		case 'o':
			r.nr_ops = v;
			break;
		case 'v':
			r.pool.version = (unsigned)v;
			break;
		case 'm':
			r.pool.nr_members = (unsigned)v;
			break;
		case 'p':
			r.pool.placement = strcmp(optarg, "stripe") ? PF_PLACE_FILE : PF_PLACE_STRIPE;
			break;
		case 'z':
			r.pool.size_bytes = v;
			break;
		case 'c':
			r.compare_each = v ? v : 1;
			break;
		case 'a':
			r.pool.cache_bytes = v;
			break;
		case 'w':
			r.crowded = true;
			break;
		case 't':
			r.trace = true;
			break;
		default:
			return usage();
		}
	}
	if (optind < argc || r.pool.nr_members > SIMPOOL_MAX || r.pool.version > PF_VERSION_NEWEST)
		return usage();
	if (!r.pool.version)
		return run_matrix(r.seed, r.nr_ops);
	r.pool.seed = r.seed;
	return run_one(&r) ? EXIT_FAILURE : EXIT_SUCCESS;
}
