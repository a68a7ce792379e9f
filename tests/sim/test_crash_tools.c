/* SPDX-License-Identifier: MIT
 *
 * Purpose: the power fails while something else than file operations goes on: an upgrade, fsck repairing maps, scrub filling in
 * checksums. Whatever is left opens (or can be repaired by a second fsck), holds exactly what it held, and is clean. */
#include "sim/explorer.h"
#include "sim/hang.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

struct scene;
struct action {
	const char *name;
	unsigned version;
	unsigned nr_members;
	/* Done before the recording begins, the pool closed. */
	int (*prepare)(struct scene *s, char *why, size_t cap);
	/* Recorded: opens what it needs, leaves it closed. */
	int (*run)(struct scene *s, char *why, size_t cap);
	bool repair_after; /* a damaged pool stays one: fsck comes first */
};
struct scene {
	const struct action *action;
	struct simpool *s;
	struct model *model;
	uint64_t nr_states, nr_bad;
};

static int upgrade(struct scene *s, unsigned to, char *why, size_t cap)
{
	struct pf_diag diag = { "" };
	int err = simpool_open(s->s, false, why, cap);
	if (!err) {
		err = pf_pool_upgrade(s->s->pool, to, &diag);
		if (err)
			say(why, cap, "upgrade to version %u: %s: %s", to, pf_strerror(err), diag.text);
	}
	return err ? err : simpool_close(s->s, why, cap);
}

static int upgrade_by_one(struct scene *s, char *why, size_t cap)
{
	return upgrade(s, s->action->version + 1, why, cap);
}
static int upgrade_to_newest(struct scene *s, char *why, size_t cap)
{
	return upgrade(s, PF_VERSION_NEWEST, why, cap);
}

static int fill_in(struct scene *s, char *why, size_t cap)
{
	struct pf_scrub_options options = { .fill_in = true };
	struct pf_scrub_sink sink = { 0 };
	struct pf_scrub_result r = { 0 };
	int err = simpool_open(s->s, false, why, cap);
	if (!err) {
		err = pf_scrub(s->s->pool, &options, &sink, &r);
		if (err || r.nr_errors || r.unverified_bytes > r.filled_in_bytes) {
			say(why, cap, "scrub: %s, %ju errors, %ju bytes filled in", pf_strerror(err),
			    (uintmax_t)r.nr_errors, (uintmax_t)r.filled_in_bytes);
			err = err ? err : -PF_EDATA_CSUM;
		}
	}
	return err ? err : simpool_close(s->s, why, cap);
}

static int nothing(struct scene *s, char *why, size_t cap)
{
	(void)s;
	(void)why;
	(void)cap;
	return 0;
}

/* Flips a bit in each copy of what lies at these blocks of member 0. */
static void damage(struct scene *s, uint64_t block)
{
	struct simdisk *disk = simworld_disk(s->s->world, 0);
	simdisk_flip_bit(disk, block * PF_BLOCK_SIZE + 77, 3);
	simdisk_flip_bit(disk, (block + 1) * PF_BLOCK_SIZE + 77, 3);
}

static struct pf_geometry geometry(struct scene *s)
{
	return simpool_geometry(simworld_disk(s->s->world, 0));
}

static int damage_map(struct scene *s, char *why, size_t cap)
{
	struct pf_geometry geo = geometry(s);
	(void)why;
	(void)cap;
	damage(s, geo.maps_block);
	return 0;
}

static int damage_table(struct scene *s, char *why, size_t cap)
{
	struct pf_geometry geo = geometry(s);
	(void)why;
	(void)cap;
	damage(s, geo.tables_block);
	return 0;
}

static int repair(struct scene *s, char *why, size_t cap)
{
	return simpool_repair(s->s, why, cap);
}

static const struct action actions[] = {
	{ "upgrade 1 to 2", 1, 2, nothing, upgrade_by_one, false },
	{ "upgrade 3 to 4", 3, 2, nothing, upgrade_by_one, false },
	{ "upgrade 4 to 5", 4, 1, nothing, upgrade_by_one, false },
	{ "upgrade 5 to 6", 5, 2, nothing, upgrade_by_one, false },
	{ "upgrade 1 to 6", 1, 3, nothing, upgrade_to_newest, false },
	{ "filling in checksums", 3, 1, upgrade_to_newest, fill_in, false },
	{ "repair of a map", 5, 2, damage_map, repair, true },
	{ "repair of a map in version 3", 3, 1, damage_map, repair, true },
	{ "repair of a group table", 5, 2, damage_table, repair, true },
};

/* A closed pool with something in it. */
static int populate(struct scene *s, uint64_t seed, char *why, size_t cap)
{
	struct workload w;
	struct workload_config config = {
		.pool = { .version = s->action->version,
			  .nr_members = s->action->nr_members,
			  .size_bytes = UINT64_C(16) << 20,
			  .seed = seed,
			  .cache_bytes = UINT64_C(64) << 10 },
		.nr_ops = 150,
		.profile = seed % 2 ? WORKLOAD_HOLES : WORKLOAD_BIG,
	};
	int err = workload_run(&w, &config);
	if (err) {
		say(why, cap, "%s", w.why);
	} else {
		model_remount(w.ops.model);
		s->model = model_snapshot(w.ops.model);
		s->s = w.s;
		w.s = NULL;
		err = simpool_close(s->s, why, cap);
	}
	workload_free(&w);
	return err;
}

/* What the same command does when it is given again. */
static int finish_upgrade(struct simpool *p, char *why, size_t cap)
{
	struct pf_diag diag = { "" };
	int err = simpool_remount(p, why, cap);
	if (!err) {
		err = pf_pool_upgrade(p->pool, pf_pool_super(p->pool)->version, &diag);
		if (err)
			say(why, cap, "going on with the upgrade: %s: %s", pf_strerror(err), diag.text);
	}
	return err ? err : simpool_close(p, why, cap);
}

static int judge(struct scene *s, struct simworld *world, char *why, size_t cap)
{
	struct simpool *p = simpool_adopt(&s->s->config, world);
	struct model *got = model_new();
	int err = 0;
	p->torn_supers = p->single_nodes = true;
	p->env.now_ns = s->s->env.now_ns;
	if (s->action->repair_after)
		err = simpool_repair(p, why, cap);
	if (!err)
		err = simpool_open(p, false, why, cap);
	if (!err)
		err = model_load(p->pool, got, why, cap);
	if (!err && model_diff_names(s->model, got, why, cap))
		err = -1;
	for (size_t k = 0; !err && k < got->nr; k++) {
		struct model_inode *i = got->slots[k].inode;
		if (model_is_file(i) && model_diff_content(model_slot(s->model, i->ino)->inode, i, why, cap))
			err = -1;
	}
	if (!err)
		err = simpool_close(p, why, cap);
	if (!err)
		err = simpool_check(p, why, cap);
	p->single_nodes = false;
	if (!err)
		err = finish_upgrade(p, why, cap);
	if (!err)
		err = simpool_check(p, why, cap);
	model_free(got);
	simpool_free(p);
	return err;
}

static void cut_everywhere(struct scene *s, uint64_t seed, uint64_t max_states)
{
	struct simworld *world = s->s->world;
	size_t len = simworld_log_len(world), step = 1 + (size_t)(4 * len / max_states);
	for (size_t cut = 0; cut <= len && s->nr_bad < 3; cut += step) {
		size_t nr = simworld_pending(world, cut, NULL, 0);
		struct sim_fate *fates = calloc(nr + 1, sizeof(*fates));
		for (unsigned sub = 0; sub < 4; sub++) {
			char why[1500] = "";
			for (size_t k = 0; k < nr; k++)
				fates[k] = (struct sim_fate){ .kind = sub ? SIM_KEPT : SIM_LOST };
			if (sub > 1)
				sim_fates_seeded(rng_mix(seed ^ cut) + sub, fates, nr);
			s->nr_states++;
			if (!judge(s, simworld_crash(world, cut, fates), why, sizeof(why)))
				continue;
			printf("FAIL: %s, seed %ju, cut %zu of %zu, sub %u: %s\n", s->action->name, (uintmax_t)seed,
			       cut, len, sub, why);
			s->nr_bad++;
		}
		free(fates);
	}
}

static bool run(const struct action *action, uint64_t seed, uint64_t max_states)
{
	struct scene s = { .action = action };
	char why[3000] = "";
	alarm(120);
	int err = populate(&s, seed, why, sizeof(why));
	if (!err)
		err = action->prepare(&s, why, sizeof(why));
	if (!err) {
		simworld_record(s.s->world);
		err = action->run(&s, why, sizeof(why));
	}
	if (err) {
		printf("FAIL: %s, seed %ju: %s\n", action->name, (uintmax_t)seed, why);
		s.nr_bad++;
	} else {
		cut_everywhere(&s, seed, max_states);
	}
	printf("%s, seed %ju: %ju states, %ju bad\n", action->name, (uintmax_t)seed, (uintmax_t)s.nr_states,
	       (uintmax_t)s.nr_bad);
	fflush(stdout);
	model_free(s.model);
	simpool_free(s.s);
	alarm(0);
	return !s.nr_bad;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "seed", 1, NULL, 's' },
					       { "states", 1, NULL, 'n' },
					       { NULL, 0, NULL, 0 } };
	bool more = getenv("POOLFS_TEST_LONG"), good = true;
	uint64_t seed = 1, states = more ? 4000 : 160;
	int c;
	catch_hangs();
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == '?') {
			fprintf(stderr, "usage: test_crash_tools [--seed S] [--states N]\n");
			return EXIT_FAILURE;
		}
		*(c == 's' ? &seed : &states) = strtoull(optarg, NULL, 0);
	}
	for (unsigned round = 0; round < (more ? 20 : 1); round++) {
		for (unsigned k = 0; k < sizeof(actions) / sizeof(actions[0]); k++)
			good = run(&actions[k], seed + round, states) && good;
	}
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
