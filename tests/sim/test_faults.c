/* SPDX-License-Identifier: MIT
 *
 * Purpose: the n-th read, write or flush fails, once or from then on, for n = 1, 2, ... until the run does not get that far. Each
 * operation succeeds or reports the error; nothing crashes or hangs; on healthy disks afterwards everything acknowledged is there
 * and the check finds nothing. The same while mounting, and of the blocks of the intent log only. */
#include "block/engine.h"
#include "model/ops.h"
#include "sim/hang.h"
#include "sim/lost.h"
#include "sim/oracle.h"
#include "sim/simpool.h"
#include "sim/workload.h"

#include <getopt.h>
#include <stdlib.h>
#include <unistd.h>

struct trial {
	unsigned version, nr_members;
	uint64_t seed;
	unsigned nr_ops;
	struct sim_fault fault;
	int profile;
	bool in_log; /* of one member's ring only */
	unsigned log_member;
	bool while_opening;
	bool trace;
};

static uint64_t nr_trials, nr_failed_ops, nr_bad, nr_gaps;

static const char *op_text(unsigned ops)
{
	return ops == SIM_READ ? "read" : ops == SIM_WRITE ? "write" : ops == SIM_DISCARD ? "discard" : "flush";
}

static int run_ops(struct ops *ops, struct oracle *oracle, const struct trial *t)
{
	int err = 0;
	for (unsigned k = 1; !err && k <= t->nr_ops; k++) {
		err = ops_step(ops);
		if (!err)
			oracle_add_op(oracle, k, k, ops);
	}
	return err;
}

/* On healthy disks: opens, if need be when fsck has taken back a member that failed; is what it should be, and is clean. @may_leak: maps
 * could not be read for good, so that what was freed in their groups waits for fsck. */
static int afterwards(struct simpool *s, struct oracle *oracle, bool may_leak, char *why, size_t cap)
{
	struct lost_result result;
	int err = lost_judge(s, oracle, SIZE_MAX, NULL, &result, why, cap);
	return err == -PF_EITEM_INVALID && may_leak ? simpool_repair(s, why, cap) : err;
}

static void aim_at_log(struct simpool *s, const struct trial *t, struct sim_fault *fault)
{
	struct simdisk *disk = simworld_disk(s->world, t->log_member);
	struct pf_geometry geo = simpool_geometry(disk);
	fault->disk = disk;
	fault->from_bytes = geo.log_block * PF_BLOCK_SIZE;
	fault->to_bytes = (geo.log_block + geo.log_blocks) * PF_BLOCK_SIZE;
}

/* The disks are healthy again, the pool is still open. After a failed flush it goes on without that member (rule 9) or has given up; log
 * blocks or data that could not be written, and a host filesystem that was full, it gets over: everything can be synced, and nothing
 * is wrong. */
static int still_open(struct simpool *s, struct ops *ops, struct oracle *oracle, const struct trial *t, bool met, char *why,
		      size_t cap)
{
	bool given_up = atomic_load(&s->pool->failed);
	if (!met || t->while_opening)
		return 0;
	if (pf_set_failed(pf_pool_set(s->pool)) && !given_up) {
		int err = pf_fsync(s->pool, PF_ROOT_INO);
		say(why, cap, "without a member that failed, fsync of the root gives %s", pf_strerror(err));
		return err;
	}
	if (t->fault.ops == SIM_FLUSH) {
		int err = pf_fsync(s->pool, PF_ROOT_INO);
		int change = pf_unlink(s->pool, PF_ROOT_INO, "none", 4);
		say(why, cap, "after a failed flush fsync gives %s, unlink %s", pf_strerror(err), pf_strerror(change));
		return err == -EIO && change == -EROFS ? 0 : -1;
	}
	if (t->fault.ops == SIM_WRITE && given_up && (t->in_log || t->fault.err == -ENOSPC)) {
		say(why, cap, "the pool has given up");
		return -1;
	}
	if (given_up)
		return 0;
	struct pf_log_stats stats = { 0 };
	if (s->pool->log)
		pf_log_stats(s->pool->log, &stats);
	nr_gaps += stats.nr_lost > 0;
	ops->config.tolerate_errors = false;
	int err = ops_compare(ops);
	ops->config.tolerate_errors = true;
	if (err) {
		say(why, cap, "on healthy disks: %s", ops->failure);
		return err;
	}
	err = pf_pool_sync(s->pool);
	say(why, cap, "sync on healthy disks gives %s", pf_strerror(err));
	struct oracle_step step = { .log_begin = t->nr_ops + 1, .log_end = t->nr_ops + 1, .synced_all = true };
	if (!err)
		oracle_add(oracle, &step, ops->model, "sync on healthy disks");
	return err;
}

/* Returns whether the fault was met. */
static bool try(const struct trial *t, char *why, size_t cap)
{
	struct simpool_config config = {
		.version = t->version, .nr_members = t->nr_members, .size_bytes = UINT64_C(16) << 20, .seed = t->seed,
		.discard = t->fault.ops & SIM_DISCARD
	};
	struct ops_config ops_config;
	struct ops ops = { 0 };
	struct simpool *s = simpool_bare(&config);
	struct oracle *oracle = NULL;
	struct sim_fault wanted = t->fault;
	unsigned fault = 0;
	int err = simpool_mkfs(s, why, cap);
	workload_ops_config(&ops_config, t->seed, t->profile);
	if (t->in_log)
		aim_at_log(s, t, &wanted);
	ops_config.weight[OP_REMOUNT] = 0;
	ops_config.tolerate_errors = true;
	ops_config.trace = t->trace;
	s->env.verbose = t->trace;
	if (!err && t->while_opening)
		fault = simworld_add_fault(s->world, &wanted);
	/* an open that fails is an answer too: then it must work on healthy disks */
	if (!err && simpool_open(s, false, why, cap)) {
		simworld_fault_hits(s->world, fault);
		bool met = t->while_opening && simworld_fault_hits(s->world, fault);
		simworld_clear_faults(s->world);
		nr_bad += !met;
		if (met && simpool_open(s, false, why, cap) == 0)
			why[0] = 0;
		if (why[0])
			nr_bad++;
		if (!why[0] && !simpool_close(s, why, cap) && simpool_check(s, why, cap))
			nr_bad++;
		simpool_free(s);
		return met;
	}
	if (!err)
		err = ops_start(&ops, &ops_config, &s->env, s->pool);
	if (!err)
		oracle = oracle_new(ops.model);
	if (!err && !t->while_opening)
		fault = simworld_add_fault(s->world, &wanted);
	if (!err)
		err = run_ops(&ops, oracle, t);
	if (err)
		say(why, cap, "%s", ops.failure);
	char ignored[1200];
	bool met = oracle && simworld_fault_hits(s->world, fault) > 0;
	/* half of them are closed on disks that still fail */
	if (!err && t->fault.skip % 2) {
		simworld_clear_faults(s->world);
		err = still_open(s, &ops, oracle, t, met, why, cap);
	}
	if (t->fault.skip % 4 == 3)
		simpool_abandon(s);
	else
		simpool_close(s, ignored, sizeof(ignored));
	if (t->fault.skip % 2 == 0)
		met = oracle && simworld_fault_hits(s->world, fault) > 0;
	simworld_clear_faults(s->world);
	bool may_leak = t->fault.ops == SIM_READ && !t->fault.count;
	if (!err)
		err = afterwards(s, oracle, may_leak, why, cap);
	nr_failed_ops += ops.nr_tolerated;
	nr_bad += err != 0;
	if (ops.model)
		ops_finish(&ops);
	oracle_free(oracle);
	simpool_free(s);
	return met;
}

static void series(struct trial *t, uint64_t density)
{
	for (uint64_t n = 0;; n += 1 + n / density) {
		char why[2500] = "";
		uint64_t bad = nr_bad;
		t->fault.skip = n;
		nr_trials++;
		alarm(60);
		bool met = try(t, why, sizeof(why));
		alarm(0);
		if (nr_bad > bad) {
			printf("FAIL: %s\nrepeat with: test_faults --version %u --members %u --seed %ju --op %s "
			       "--count %ju --errno %d --skip %ju --ops %u --profile %d%s",
			       why, t->version, t->nr_members, (uintmax_t)t->seed, op_text(t->fault.ops),
			       (uintmax_t)t->fault.count, -t->fault.err, (uintmax_t)n, t->nr_ops, t->profile,
			       t->while_opening ? " --opening" : "");
			if (t->in_log)
				printf(" --log %u", t->log_member);
			printf("\n");
			fflush(stdout);
		}
		if (!met || nr_bad >= 10)
			return;
	}
}

static void run_matrix(uint64_t density)
{
	static const unsigned ops[] = { SIM_READ, SIM_WRITE, SIM_FLUSH }, versions[] = { 3, 5, 6 };
	for (unsigned opening = 0; opening < 2; opening++) {
		for (unsigned k = 0; k < 3; k++) {
			for (uint64_t count = 0; count < 2; count++) {
				for (unsigned v = 0; v < 3; v++) {
					struct trial t = { .version = versions[v],
							   .nr_members = v ? 2 : 1,
							   .seed = 11 + versions[v],
							   .nr_ops = opening ? 10 : 120,
							   .profile = v == 2 ? WORKLOAD_SYNCS : WORKLOAD_MIXED,
							   .while_opening = opening };
					t.fault = (struct sim_fault){
						.ops = ops[k], .kind = SIM_FAIL, .count = count, .err = -EIO
					};
					series(&t, density);
					t.fault.err = -ENOSPC;
					if (ops[k] == SIM_WRITE)
						series(&t, density);
				}
			}
		}
	}
}

/* A discard that fails costs nobody anything. */
static void run_discards(uint64_t density)
{
	static const int errors[] = { -EIO, -ENOSPC, -EOPNOTSUPP };
	for (unsigned k = 0; k < 12; k++) {
		struct trial t = { .version = 4 + k % 3, .nr_members = 1 + k % 2, .seed = 70 + k, .nr_ops = 150, .profile = WORKLOAD_BIG };
		t.fault = (struct sim_fault){ .ops = SIM_DISCARD, .kind = SIM_FAIL, .count = k / 3 % 2, .err = errors[k % 3] };
		series(&t, density);
	}
}

/* The log of one member cannot be written, once, a few times or for good. */
static void run_log(uint64_t density)
{
	static const int errors[] = { -EIO, -ENOSPC };
	for (unsigned k = 0; k < 24; k++) {
		struct trial t = { .version = PF_VERSION_NEWEST,
				   .nr_members = 1 + k % 3,
				   .seed = 30 + k,
				   .nr_ops = 150,
				   .profile = WORKLOAD_SYNCS,
				   .in_log = true,
				   .log_member = k % 3 ? k / 2 % 2 : 0 };
		t.fault = (struct sim_fault){ .ops = SIM_WRITE, .kind = SIM_FAIL, .count = k / 6 % 4, .err = errors[k / 3 % 2] };
		series(&t, density);
	}
}

/* Short disturbances all the time: what failed has changed nothing (posix.h I2), which is compared in the living pool; and it is still
 * fit to be closed cleanly. */
static int disturb(struct simpool *s, struct ops *ops, struct rng *rng, unsigned nr_ops, char *why, size_t cap)
{
	int err = 0;
	for (unsigned k = 0; !err && k < nr_ops; k++) {
		struct sim_fault fault = { .ops = rng_one_in(rng, 3) ? SIM_WRITE : SIM_READ, .kind = SIM_FAIL };
		fault.skip = rng_below(rng, 4);
		fault.count = 1 + rng_below(rng, 2);
		/* a block that cannot be read is read once more */
		if (fault.ops == SIM_READ)
			fault.count += 2;
		if (rng_one_in(rng, 2))
			simworld_add_fault(s->world, &fault);
		err = ops_step(ops);
		simworld_clear_faults(s->world);
		if (!err && k % 50 == 49) {
			ops->config.tolerate_errors = false;
			err = ops_compare(ops);
			ops->config.tolerate_errors = true;
		}
	}
	if (err)
		say(why, cap, "%s", ops->failure);
	return err;
}

static void transient(unsigned version, uint64_t seed, unsigned nr_ops, bool trace)
{
	struct simpool_config config = { .version = version,
					 .nr_members = 1 + (unsigned)(seed % 3),
					 .seed = seed,
					 .placement = (unsigned)(seed / 3 % 2),
					 .size_bytes = UINT64_C(24) << 20,
					 .cache_bytes = UINT64_C(16) << 10,
					 .verbose = trace };
	struct ops_config ops_config;
	struct ops ops = { 0 };
	struct rng rng = { .state = rng_mix(seed ^ UINT64_C(0x666c74)) };
	char why[2500] = "";
	nr_trials++;
	alarm(60);
	struct simpool *s = simpool_new(&config, why, sizeof(why));
	ops_config_default(&ops_config, seed);
	ops_config.weight[OP_REMOUNT] = 0;
	ops_config.max_inodes = 150;
	ops_config.tolerate_errors = true;
	ops_config.trace = trace;
	int err = s ? ops_start(&ops, &ops_config, &s->env, s->pool) : -1;
	if (!err)
		err = disturb(s, &ops, &rng, nr_ops, why, sizeof(why));
	if (!err && (err = pf_pool_sync(s->pool)))
		say(why, sizeof(why), "sync on healthy disks gives %s", pf_strerror(err));
	ops.config.tolerate_errors = false;
	if (!err)
		err = simpool_remount(s, why, sizeof(why));
	if (!err) {
		ops.pool = s->pool;
		model_remount(ops.model);
		err = ops_compare(&ops);
		say(why, sizeof(why), "after a remount: %s", ops.failure);
	}
	if (!err)
		err = simpool_close(s, why, sizeof(why));
	if (!err)
		err = simpool_check(s, why, sizeof(why));
	/* what was freed in a group whose map could not be read is left to fsck */
	if (err && strstr(why, "PF0306"))
		err = simpool_repair(s, why, sizeof(why));
	nr_failed_ops += ops.nr_tolerated;
	if (err) {
		printf("FAIL: %s\nrepeat with: test_faults --transient --version %u --seed %ju\n", why, version,
		       (uintmax_t)seed);
		nr_bad++;
	}
	if (ops.model)
		ops_finish(&ops);
	simpool_free(s);
	alarm(0);
}

/* An error in the second half of ZERO_RANGE. */
static void once_failed(void)
{
	transient(3, 123, 300, false);
	transient(3, 369, 300, false);
	transient(6, 526, 300, false);
}

static int usage(void)
{
	fprintf(stderr, "usage: test_faults [--version V --members M --seed S --op read|write|flush --count N --errno "
			"N --skip N "
			"--ops N --profile N [--opening] [--log M]]\n       test_faults --transient --version V --seed S\n");
	return EXIT_FAILURE;
}

struct request {
	struct trial trial;
	bool transient;
};

static bool parse(int argc, char **argv, struct request *r)
{
	static const struct option longs[] = { { "version", 1, NULL, 'v' },   { "members", 1, NULL, 'm' },
					       { "seed", 1, NULL, 's' },      { "op", 1, NULL, 'o' },
					       { "count", 1, NULL, 'c' },     { "errno", 1, NULL, 'e' },
					       { "skip", 1, NULL, 'k' },      { "opening", 0, NULL, 'p' },
					       { "transient", 0, NULL, 't' }, { "ops", 1, NULL, 'n' },
					       { "profile", 1, NULL, 'f' },   { "log", 1, NULL, 'l' },
					       { NULL, 0, NULL, 0 } };
	struct trial *t = &r->trial;
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 0) : 0;
		if (c == 'v')
			t->version = (unsigned)v;
		else if (c == 'm')
			t->nr_members = (unsigned)v;
		else if (c == 's')
			t->seed = v;
		else if (c == 'o')
			t->fault.ops = *optarg == 'r' ? SIM_READ : *optarg == 'w' ? SIM_WRITE : *optarg == 'd' ? SIM_DISCARD : SIM_FLUSH;
		else if (c == 'c')
			t->fault.count = v;
		else if (c == 'e')
			t->fault.err = -(int)v;
		else if (c == 'k')
			t->fault.skip = v;
		else if (c == 'n')
			t->nr_ops = (unsigned)v;
		else if (c == 'f')
			t->profile = (int)v;
		else if (c == 'l') {
			t->in_log = true;
			t->log_member = (unsigned)v;
		} else if (c == 't')
			r->transient = true;
		else if (c == 'p')
			t->while_opening = true;
		else
			return false;
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	struct request r = { .trial = { .version = 5,
					.nr_members = 2,
					.seed = 1,
					.nr_ops = 120,
					.trace = true,
					.fault = { .ops = SIM_WRITE, .kind = SIM_FAIL, .err = -EIO } } };
	char why[2500] = "";
	bool more = getenv("POOLFS_TEST_LONG");
	catch_hangs();
	if (!parse(argc, argv, &r))
		return usage();
	if (argc == 1) {
		run_matrix(more ? 200 : 40);
		run_log(more ? 200 : 20);
		run_discards(more ? 200 : 5);
		once_failed();
		static const unsigned versions[] = { 3, 5, 6, 6 };
		for (uint64_t seed = 1; seed <= (more ? 2000 : 40) && nr_bad < 10; seed++)
			transient(versions[seed % 4], seed, 300, false);
	} else if (r.transient) {
		transient(r.trial.version, r.trial.seed, 300, true);
	} else {
		bool met = try(&r.trial, why, sizeof(why));
		printf("%s, the fault was %smet; %s\n", nr_bad ? "FAIL" : "good", met ? "" : "not ", why);
	}
	printf("%ju trials, %ju operations answered with an error, %ju with a gap in the log, %ju bad\n", (uintmax_t)nr_trials,
	       (uintmax_t)nr_failed_ops, (uintmax_t)nr_gaps, (uintmax_t)nr_bad);
	return nr_bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
