/* SPDX-License-Identifier: MIT
 *
 * Purpose: disks that lie: a write is acknowledged and lost, lands elsewhere, or is torn; a read returns with a flipped bit. In version
 * 5 and 6 each answer is right or an error, in the living pool and after a remount; nothing crashes or hangs.
 *
 * And a flush is acknowledged and lost, on one of the two members with the log, before the power fails: the other copy saves what was
 * promised, or the pool does not open, or says that something is missing. Silent it never is.
 *
 *	test_lying_disk [--seed S] [--runs N] [--flushes] [--trace] */
#include "model/ops.h"
#include "sim/hang.h"
#include "sim/simpool.h"
#include "sim/walk.h"
#include "sim/workload.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

#define NR_OPS 200

static uint64_t nr_runs, nr_harmed, nr_refused, nr_errors, nr_bad;

static struct sim_fault pick_fault(struct rng *rng)
{
	static const enum sim_fault_kind kinds[] = { SIM_DROP, SIM_MISDIRECT, SIM_TEAR, SIM_CORRUPT };
	struct sim_fault f = { .kind = kinds[rng_below(rng, 4)], .count = 1 };
	f.skip = rng_below(rng, 12);
	f.ops = f.kind == SIM_CORRUPT ? SIM_READ : SIM_WRITE;
	if (f.kind == SIM_CORRUPT) {
		f.count = 1 + rng_below(rng, 5);
	}
	f.arg = f.kind == SIM_TEAR ? 512 * (1 + rng_below(rng, 20)) : rng_below(rng, UINT64_C(16) << 20);
	return f;
}

/* What is left of the pool. 0: it cannot be opened, or each answer is right or an error. */
static int afterwards(struct simpool *s, struct model *expected, char *why, size_t cap)
{
	struct walk_result result = { 0 };
	char refusal[1200];
	if (simpool_open(s, false, refusal, sizeof(refusal)) && simpool_open(s, true, refusal, sizeof(refusal))) {
		nr_refused++;
		return 0;
	}
	int err = walk_damaged(s->pool, expected, &result, why, cap);
	nr_errors += result.nr_errors;
	nr_harmed += result.nr_errors > 0;
	simpool_close(s, refusal, sizeof(refusal));
	/* the check may find anything, but has to come to an end */
	simpool_check(s, refusal, sizeof(refusal));
	return err;
}

static int run_one(uint64_t seed, bool trace, char *why, size_t cap)
{
	struct simpool_config config = { .version = 5 + (unsigned)(seed / 3 % 2),
					 .nr_members = 1 + (unsigned)(seed % 3),
					 .size_bytes = UINT64_C(16) << 20,
					 .seed = seed,
					 .cache_bytes = UINT64_C(32) << 10,
					 .verbose = trace };
	struct ops_config ops_config;
	struct ops ops = { 0 };
	struct rng rng = { .state = rng_mix(seed ^ UINT64_C(0x6c6965)) };
	struct sim_fault fault = pick_fault(&rng);
	struct simpool *s = simpool_new(&config, why, cap);
	workload_ops_config(&ops_config, seed, (int)(seed % WORKLOAD_NR));
	ops_config.weight[OP_REMOUNT] = 0;
	ops_config.weight[OP_READ] = 60;
	ops_config.weight[OP_GETXATTR] = 20;
	ops_config.tolerate_errors = true;
	ops_config.trace = trace;
	int err = s ? ops_start(&ops, &ops_config, &s->env, s->pool) : -1;
	unsigned when = (unsigned)rng_below(&rng, NR_OPS);
	for (unsigned k = 0; !err && k < NR_OPS; k++) {
		if (k == when)
			simworld_add_fault(s->world, &fault);
		err = ops_step(&ops);
	}
	if (err && ops.failure[0])
		say(why, cap, "%s", ops.failure);
	if (s) {
		char ignored[1200];
		int sync_err = pf_pool_sync(s->pool);
		int close_err = simpool_close(s, ignored, sizeof(ignored));
		simworld_clear_faults(s->world);
		model_remount(ops.model);
		/* without a clean end the last state is not promised: the explorer and test_faults look at that */
		if (!err && !sync_err && !close_err)
			err = afterwards(s, ops.model, why, cap);
	}
	if (ops.model)
		ops_finish(&ops);
	simpool_free(s);
	return err;
}

/* -- flushes -------------------------------------------------------------------------------------------------------- */
#define CUTS_PER_RUN 12

static uint64_t nr_cuts, nr_saved, nr_lost_refused, nr_lost_damage, nr_lost_said;

/* The pool after the power failed. 0: the promise is kept, or somebody heard that it is not. */
static int judge_flush(struct workload *w, struct simworld *world, size_t cut, char *why, size_t cap)
{
	struct simpool_config config = w->config.pool;
	char text[1200];
	config.seed = rng_mix(config.seed ^ cut);
	struct simpool *s = simpool_adopt(&config, world);
	struct model *got = model_new();
	s->env.now_ns = w->s->env.now_ns;
	nr_cuts++;
	int err = 0;
	if (simpool_open(s, false, text, sizeof(text))) {
		nr_lost_refused++;
	} else if (model_load(s->pool, got, text, sizeof(text))) {
		nr_lost_damage++;
	} else if (!oracle_judge(w->oracle, cut, got, why, cap)) {
		nr_saved++;
	} else if (s->env.nr_messages[PF_LOG_WARNING] + s->env.nr_messages[PF_LOG_ERROR]) {
		nr_lost_said++;
	} else {
		err = -1;
	}
	model_free(got);
	simpool_close(s, text, sizeof(text));
	/* the check may find anything, but has to come to an end */
	simpool_check(s, text, sizeof(text));
	simpool_free(s);
	return err;
}

static int lose_flushes(uint64_t seed, bool trace, char *why, size_t cap)
{
	struct rng rng = { .state = rng_mix(seed ^ UINT64_C(0x666c7573)) };
	struct workload_config config = { .pool = { .version = PF_VERSION_NEWEST,
						    .nr_members = 2 + (unsigned)rng_below(&rng, 2),
						    .size_bytes = UINT64_C(16) << 20,
						    .seed = seed,
						    .verbose = trace },
					  .nr_ops = 150,
					  .profile = rng_one_in(&rng, 3) ? WORKLOAD_MIXED : WORKLOAD_SYNCS,
					  .trace = trace };
	struct simpool *s = simpool_bare(&config.pool);
	struct workload w = { 0 };
	if (simpool_mkfs(s, why, cap)) {
		simpool_free(s);
		return -1;
	}
	struct sim_fault fault = { .disk = simworld_disk(s->world, (unsigned)rng_below(&rng, 2)),
				   .ops = SIM_FLUSH,
				   .kind = SIM_DROP,
				   .skip = rng_below(&rng, 40),
				   .count = rng_below(&rng, 3) };
	simworld_add_fault(s->world, &fault);
	int err = workload_continue(&w, &config, s);
	say(why, cap, "%s", w.why);
	for (unsigned k = 0; !err && k < CUTS_PER_RUN; k++) {
		size_t cut = (size_t)rng_below(&rng, simworld_log_len(s->world) + 1);
		size_t nr = simworld_pending(s->world, cut, NULL, 0);
		struct sim_fate *fates = calloc(nr + 1, sizeof(*fates));
		if (rng_one_in(&rng, 2))
			sim_fates_seeded(rng_next(&rng), fates, nr);
		err = judge_flush(&w, simworld_crash(s->world, cut, fates), cut, why, cap);
		free(fates);
	}
	workload_free(&w);
	return err;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", 1, NULL, 's' },    { "runs", 1, NULL, 'n' }, { "trace", 0, NULL, 't' },
		{ "flushes", 0, NULL, 'f' }, { NULL, 0, NULL, 0 }
	};
	uint64_t seed = 1, runs = getenv("POOLFS_TEST_LONG") ? 20000 : 400;
	bool trace = false, flushes_only = false;
	int c;
	catch_hangs();
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			runs = strtoull(optarg, NULL, 0);
			break;
		case 't':
			trace = true;
			break;
		case 'f':
			flushes_only = true;
			break;
		default:
			fprintf(stderr, "usage: test_lying_disk [--seed S] [--runs N] [--flushes] [--trace]\n");
			return EXIT_FAILURE;
		}
	}
	for (; nr_runs < runs && nr_bad < 10; nr_runs++, seed++) {
		char why[1500] = "";
		alarm(60);
		if (!flushes_only && run_one(seed, trace, why, sizeof(why))) {
			printf("FAIL: %s\nrepeat with: test_lying_disk --seed %ju --runs 1 --trace\n", why,
			       (uintmax_t)seed);
			nr_bad++;
		}
		if (lose_flushes(seed, trace, why, sizeof(why))) {
			printf("FAIL: silent: %s\nrepeat with: test_lying_disk --flushes --seed %ju --runs 1 --trace\n", why,
			       (uintmax_t)seed);
			nr_bad++;
		}
		alarm(0);
	}
	printf("%ju runs: %ju pools refused to open, %ju gave errors (%ju in all), %ju bad\n", (uintmax_t)nr_runs,
	       (uintmax_t)nr_refused, (uintmax_t)nr_harmed, (uintmax_t)nr_errors, (uintmax_t)nr_bad);
	printf("flushes lost before %ju power cuts: all was there after %ju; %ju pools refused to open, %ju had damage where "
	       "something was missing, %ju said what is\n",
	       (uintmax_t)nr_cuts, (uintmax_t)nr_saved, (uintmax_t)nr_lost_refused, (uintmax_t)nr_lost_damage,
	       (uintmax_t)nr_lost_said);
	return nr_bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
