/* SPDX-License-Identifier: MIT
 *
 * Purpose: the crash explorer as a program. Without arguments: a few thousand states of all versions, 1 to 3 members, both
 * placements, and of mkfs. --states N --seed S: as many as one likes, also of one version or number of members only. --replay ID:
 * the one that a failure named. */
#include "sim/explorer.h"
#include "sim/hang.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

/* The states are what CI counts; a sanitizer looks at the code that makes them, which is the same in each. */
#ifdef __SANITIZE_ADDRESS__
#define DEFAULT_STATES 3000
#else
#define DEFAULT_STATES 20000
#endif

static uint64_t nr_states, nr_bad, nr_runs, nr_discards;
static struct oracle_stats total;
static struct explorer sums; /* counters only */

static void explore(const struct workload_config *config, uint64_t states)
{
	struct explorer e;
	struct oracle_stats stats;
	alarm(300);
	if (explorer_run(&e, config)) {
		printf("FAIL: %s\n", e.first_bad);
		nr_bad++;
	} else {
		explorer_states(&e, states);
		oracle_stats(e.w.oracle, &stats);
		total.nr_judged += stats.nr_judged;
		total.nr_single_point += stats.nr_single_point;
		total.nr_ahead += stats.nr_ahead;
		total.nr_moved += stats.nr_moved;
		sums.nr_again += e.nr_again;
		sums.nr_redone += e.nr_redone;
		sums.nr_cut_epoch += e.nr_cut_epoch;
		sums.nr_cut_redoing += e.nr_cut_redoing;
		sums.nr_one_copy += e.nr_one_copy;
		for (unsigned d = 0; d < simworld_nr_disks(e.w.s->world); d++)
			nr_discards += simdisk_count(simworld_disk(e.w.s->world, d), SIM_DISCARD);
		nr_states += e.nr_states;
		nr_bad += e.nr_bad;
	}
	nr_runs++;
	explorer_free(&e);
	alarm(0);
}

/* The power fails during mkfs, once over empty disks, once over an older pool: no pool afterwards, or a whole and empty one. */
static int mkfs_state(struct simpool *s, struct simworld *crashed, char *why, size_t cap)
{
	struct simpool *t = simpool_adopt(&s->config, crashed);
	struct model *got = model_new();
	int err = 0;
	t->torn_supers = true;
	if (simpool_open(t, false, why, cap) == 0) {
		err = model_load(t->pool, got, why, cap);
		if (!err && got->nr != 1) {
			say(why, cap, "not empty");
			err = -1;
		}
		if (!err)
			err = simpool_close(t, why, cap);
		if (!err)
			err = simpool_check(t, why, cap);
	}
	model_free(got);
	simpool_free(t);
	return err;
}

static void explore_mkfs(unsigned version, unsigned nr_members)
{
	struct simpool_config config = {
		.version = version, .nr_members = nr_members, .size_bytes = UINT64_C(16) << 20, .seed = 1
	};
	struct simpool *s = simpool_bare(&config);
	char why[1200];
	for (unsigned round = 0; round < 2; round++) {
		simworld_record(s->world);
		if (simpool_mkfs(s, why, sizeof(why))) {
			printf("FAIL: %s\n", why);
			nr_bad++;
			break;
		}
		size_t len = simworld_log_len(s->world);
		for (size_t cut = 0; cut <= len; cut++) {
			size_t nr = simworld_pending(s->world, cut, NULL, 0);
			struct sim_fate *fates = calloc(nr + 1, sizeof(*fates));
			for (unsigned sub = 0; sub < 4; sub++) {
				for (size_t k = 0; k < nr; k++)
					fates[k] = (struct sim_fate){ .kind = sub ? SIM_KEPT : SIM_LOST };
				if (sub > 1)
					sim_fates_seeded(cut * 4 + sub, fates, nr);
				nr_states++;
				if (mkfs_state(s, simworld_crash(s->world, cut, fates), why, sizeof(why))) {
					printf("FAIL: mkfs of version %u, %u members, round %u, cut %zu, sub %u: %s\n",
					       version, nr_members, round, cut, sub, why);
					nr_bad++;
				}
			}
			free(fates);
		}
	}
	simpool_free(s);
}

/* The same run twice writes the same bytes: nothing depends on addresses, uninitialised memory or the clock of the machine. */
static void compare_runs(uint64_t seed)
{
	struct workload_config config = {
		.pool = { .version = PF_VERSION_NEWEST - (unsigned)(seed % 2), .nr_members = 2, .size_bytes = UINT64_C(16) << 20, .seed = seed },
		.nr_ops = 120,
		.profile = (int)(seed % WORKLOAD_NR),
	};
	struct workload a, b;
	if (workload_run(&a, &config) || workload_run(&b, &config)) {
		printf("FAIL: seed %ju: %s\n", (uintmax_t)seed, a.why);
		nr_bad++;
		return;
	}
	for (unsigned d = 0; d < config.pool.nr_members; d++) {
		if (simdisk_digest(simworld_disk(a.s->world, d)) == simdisk_digest(simworld_disk(b.s->world, d)))
			continue;
		printf("FAIL: seed %ju: two runs differ on member %u\n", (uintmax_t)seed, d);
		nr_bad++;
	}
	workload_free(&a);
	workload_free(&b);
}

static void report(void)
{
	printf("%ju states of %ju runs: %ju bad; %ju discards\n", (uintmax_t)nr_states, (uintmax_t)nr_runs, (uintmax_t)nr_bad,
	       (uintmax_t)nr_discards);
	printf("%ju judged, %ju of them at a single point, %ju ahead of the last acknowledgement; %ju files held to a new name\n",
	       (uintmax_t)total.nr_judged, (uintmax_t)total.nr_single_point, (uintmax_t)total.nr_ahead,
	       (uintmax_t)total.nr_moved);
	printf("%ju mounts found something in the log, %ju states had one copy of it; of %ju second power cuts %ju came while a "
	       "mount began its epoch, %ju while it redid the log and made its checkpoint\n",
	       (uintmax_t)sums.nr_redone, (uintmax_t)sums.nr_one_copy, (uintmax_t)sums.nr_again,
	       (uintmax_t)sums.nr_cut_epoch, (uintmax_t)sums.nr_cut_redoing);
}

static int replay(const char *text)
{
	struct explore_id id;
	struct explorer e;
	char why[2500] = "";
	if (!explore_parse(text, &id)) {
		fprintf(stderr, "test_crash: '%s' is no name of a state\n", text);
		return EXIT_FAILURE;
	}
	id.run.trace = true;
	int err = explorer_run(&e, &id.run);
	e.verbose = true;
	if (err)
		say(why, sizeof(why), "%s", e.first_bad);
	else
		err = explorer_state(&e, &id, why, sizeof(why));
	printf("%s: %s\n", err ? "FAIL" : "good", err ? why : "the promise is kept");
	explorer_free(&e);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Half of the runs are of the newest version, the others of any. */
static struct workload_config config_for(uint64_t seed)
{
	struct rng rng = { .state = rng_mix(seed ^ UINT64_C(0x72756e)) };
	struct workload_config config = { .pool = { .size_bytes = UINT64_C(16) << 20, .seed = seed } };
	config.pool.version = PF_VERSION_NEWEST;
	if (rng_one_in(&rng, 2))
		config.pool.version = PF_VERSION_FIRST + (unsigned)rng_below(&rng, PF_VERSION_NEWEST);
	config.pool.nr_members = 1 + (unsigned)rng_below(&rng, 3);
	config.pool.placement = rng_one_in(&rng, 2) ? PF_PLACE_STRIPE : PF_PLACE_FILE;
	config.pool.cache_bytes = rng_one_in(&rng, 4) ? 0 : UINT64_C(64) << 10;
	config.profile = (int)rng_below(&rng, WORKLOAD_NR);
	config.pool.discard = rng_one_in(&rng, 3);
	return config;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "states", 1, NULL, 'n' },
					       { "seed", 1, NULL, 's' },
					       { "replay", 1, NULL, 'r' },
					       { "ops", 1, NULL, 'o' },
					       { "version", 1, NULL, 'v' },
					       { "members", 1, NULL, 'm' },
					       { NULL, 0, NULL, 0 } };
	uint64_t want = getenv("POOLFS_TEST_LONG") ? 200000 : DEFAULT_STATES, seed = 1;
	unsigned nr_ops = 160, only_version = 0, only_members = 0;
	int c;
	catch_hangs();
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'n':
			want = strtoull(optarg, NULL, 0);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			nr_ops = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'v':
			only_version = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'm':
			only_members = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'r':
			return replay(optarg);
		default:
			fprintf(stderr, "usage: test_crash [--states N] [--seed S] [--ops N] [--version V] [--members N] | "
					"--replay ID\n");
			return EXIT_FAILURE;
		}
	}
	for (unsigned version = PF_VERSION_FIRST; version <= PF_VERSION_NEWEST; version++)
		explore_mkfs(version, 2);
	for (uint64_t k = 0; k < WORKLOAD_NR; k++)
		compare_runs(seed + k);
	while (nr_states < want && nr_bad < 10) {
		struct workload_config config = config_for(seed);
		config.nr_ops = nr_ops;
		if (only_version)
			config.pool.version = only_version;
		if (only_members)
			config.pool.nr_members = only_members;
		/* files in very many pieces take a while to make, and so does a full ring */
		if (config.profile == WORKLOAD_HOLES || config.profile == WORKLOAD_RING)
			config.nr_ops *= 4;
		/* with little memory the log does not get far */
		if (config.profile == WORKLOAD_RING)
			config.pool.cache_bytes = 0;
		explore(&config, 60);
		seed++;
	}
	report();
	return nr_bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
