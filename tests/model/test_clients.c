/* SPDX-License-Identifier: MIT
 *
 * Purpose: several clients at once on one pool, with its workers: each does random operations in a tree of its own, compared with its model
 * after each, and between them operations on files that all share (shared.h). Again and again all stop, everything is compared, the pool
 * is closed, checked and opened. Without arguments: a matrix of versions, placements and members. Threads make no run repeat another
 * exactly; the seed fixes what each client does.
 */
#include "block/engine.h"
#include "model/ops.h"
#include "model/shared.h"
#include "sim/complain.h"
#include "sim/hang.h"
#include "sim/simpool.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLIENTS_MAX 8

struct run {
	struct simpool_config pool;
	uint64_t seed, nr_ops; /* of each client */
	unsigned nr_clients, nr_phases;
};

struct client {
	pthread_t thread;
	struct test_env clock; /* operations of one client do not move the clock of another */
	struct ops ops;
	struct shared_client shared;
	uint64_t nr_steps;
};

struct world {
	struct simpool *s;
	struct shared shared;
	struct client clients[CLIENTS_MAX];
	struct rng rng;
};

/* -- what lies outside of the pool, for threads -------------------------------------------------------------------------- */

static __thread struct test_env *own_clock;
static pthread_mutex_t env_lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(void *arg)
{
	return own_clock ? own_clock->now_ns : test_env_now(arg);
}

static uint64_t random64(void *arg)
{
	pthread_mutex_lock(&env_lock);
	uint64_t r = test_env_random(arg);
	pthread_mutex_unlock(&env_lock);
	return r;
}

static void log_line(void *arg, enum pf_log_level level, const char *message)
{
	pthread_mutex_lock(&env_lock);
	test_env_log(arg, level, message);
	pthread_mutex_unlock(&env_lock);
}

/* -- clients ------------------------------------------------------------------------------------------------------------- */

static void *work(void *arg)
{
	struct client *c = arg;
	own_clock = &c->clock;
	for (uint64_t k = 0; k < c->nr_steps && !atomic_load(&failed); k++) {
		if (rng_one_in(&c->shared.rng, 6))
			shared_step(&c->shared);
		if (ops_step(&c->ops))
			complain("client %u: %s", c->shared.nr, c->ops.failure);
	}
	own_clock = NULL;
	return NULL;
}

static int start(struct world *w, const struct run *r, unsigned nr)
{
	struct client *c = &w->clients[nr];
	struct ops_config config;
	struct pf_attr attr = { 0 };
	char name[16];
	ops_config_default(&config, r->seed * 100 + nr);
	/* what is done with the pool as a whole is done by the workers, and between the phases */
	config.weight[OP_STEP] = config.weight[OP_CHECKPOINT] = config.weight[OP_REMOUNT] = 0;
	config.max_inodes = 150;
	config.max_write_bytes = 300000;
	test_env_init(&c->clock, r->seed * 100 + nr);
	say(name, sizeof(name), "client%u", nr);
	int err = pf_create(w->s->pool, PF_ROOT_INO, name, strlen(name), S_IFDIR | 0755, (struct pf_cred){ 0 }, 0, 0, &attr);
	config.root = attr.ino;
	if (err || ops_start(&c->ops, &config, &c->clock, w->s->pool)) {
		complain("client %u: %s%s", nr, err ? pf_strerror(err) : "", c->ops.failure);
		return -1;
	}
	shared_client_init(&c->shared, &w->shared, nr, r->seed * 100 + nr);
	return 0;
}

static void together(struct world *w, const struct run *r)
{
	for (unsigned i = 0; i < r->nr_clients; i++) {
		w->clients[i].nr_steps = r->nr_ops / r->nr_phases + 1;
		pthread_create(&w->clients[i].thread, NULL, work, &w->clients[i]);
	}
	for (unsigned i = 0; i < r->nr_clients; i++)
		pthread_join(w->clients[i].thread, NULL);
	for (unsigned i = 0; i < r->nr_clients && !atomic_load(&failed); i++) {
		if (ops_compare(&w->clients[i].ops))
			complain("client %u: %s", i, w->clients[i].ops.failure);
	}
}

static int open_pool(struct world *w, const struct run *r, char *why, size_t cap)
{
	int err = simpool_open(w->s, false, why, cap);
	if (err)
		return err;
	w->s->pool->commit_interval_ms = 5 + (unsigned)rng_below(&w->rng, 100);
	err = pf_pool_start_workers(w->s->pool);
	if (err)
		say(why, cap, "workers: %s", pf_strerror(err));
	(void)r;
	return err;
}

static int again(struct world *w, const struct run *r, char *why, size_t cap)
{
	int err = simpool_close(w->s, why, cap);
	if (!err)
		err = simpool_check(w->s, why, cap);
	if (!err)
		err = open_pool(w, r, why, cap);
	for (unsigned i = 0; !err && i < r->nr_clients; i++) {
		struct pf_attr attr;
		struct ops *o = &w->clients[i].ops;
		own_clock = &w->clients[i].clock;
		err = pf_ref(w->s->pool, o->config.root, &attr);
		if (err || ops_remounted(o, w->s->pool)) {
			say(why, cap, "client %u, after a remount: %s%s", i, err ? pf_strerror(err) : "", o->failure);
			err = -1;
		}
	}
	if (!err)
		shared_remounted(&w->clients[0].shared, w->s->pool);
	own_clock = NULL;
	return err;
}

static int phases(struct world *w, const struct run *r, char *why, size_t cap)
{
	int err = simpool_mkfs(w->s, why, cap);
	if (!err)
		err = open_pool(w, r, why, cap);
	if (err)
		return err;
	shared_start(&w->shared, w->s->pool);
	for (unsigned i = 0; i < r->nr_clients && !atomic_load(&failed); i++)
		err = start(w, r, i);
	for (unsigned p = 0; !err && p < r->nr_phases && !atomic_load(&failed); p++) {
		together(w, r);
		if (!atomic_load(&failed))
			err = again(w, r, why, cap);
	}
	return err;
}

static uint64_t total_ops, total_full;

static void run_one(const struct run *r)
{
	char why[4000] = "";
	struct world *w = calloc(1, sizeof(*w));
	struct simpool_config config = r->pool;
	w->rng.state = rng_mix(r->seed);
	simpool_choose_stages(&config);
	config.discard = rng_mix(config.seed) >> 8 & 1;
	alarm(300);
	w->s = simpool_bare(&config);
	w->s->env.env.now_ns = now_ns;
	w->s->env.env.random64 = random64;
	w->s->env.env.log = log_line;
	if (phases(w, r, why, sizeof(why)))
		complain("%s", why);
	for (unsigned i = 0; i < r->nr_clients; i++) {
		total_ops += w->clients[i].ops.nr;
		total_full += w->clients[i].ops.nr_enospc;
		if (w->clients[i].ops.model)
			ops_finish(&w->clients[i].ops);
		shared_client_free(&w->clients[i].shared);
	}
	total_ops += atomic_load(&w->shared.nr_ops);
	total_full += atomic_load(&w->shared.nr_full);
	if (atomic_load(&failed))
		printf("try again with: test_clients --seed %ju --ops %ju --clients %u --phases %u --version %u --members %u --placement %s --size %ju\n",
		       (uintmax_t)r->seed, (uintmax_t)r->nr_ops, r->nr_clients, r->nr_phases, r->pool.version, r->pool.nr_members,
		       r->pool.placement == PF_PLACE_FILE ? "file" : "stripe", (uintmax_t)r->pool.size_bytes);
	shared_finish(&w->shared);
	simpool_free(w->s);
	free(w);
	alarm(0);
}

static void run_matrix(struct run r)
{
	unsigned nr = 0;
	for (unsigned version = PF_VERSION_FIRST; version <= PF_VERSION_NEWEST; version++) {
		for (unsigned members = 1; members <= 3; members += 2) {
			for (unsigned placement = PF_PLACE_FILE; placement <= PF_PLACE_STRIPE && !atomic_load(&failed); placement++) {
				struct run one = r;
				one.seed = one.pool.seed = r.seed + nr++;
				one.pool.version = version;
				one.pool.nr_members = members;
				one.pool.placement = placement;
				if (nr % 3)
					one.pool.cache_bytes = UINT64_C(256) << 10;
				/* a small one gets full */
				if (members == 1 && placement == PF_PLACE_FILE)
					one.pool.size_bytes = UINT64_C(28) << 20;
				run_one(&one);
			}
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "seed", 1, NULL, 's' },    { "ops", 1, NULL, 'o' },       { "version", 1, NULL, 'v' }, { "members", 1, NULL, 'm' },
		{ "clients", 1, NULL, 'c' }, { "placement", 1, NULL, 'p' }, { "size", 1, NULL, 'z' },    { "phases", 1, NULL, 'h' },
		{ NULL, 0, NULL, 0 }
	};
	struct run r = {
		.pool = { .nr_members = 2, .size_bytes = UINT64_C(48) << 20 },
		.seed = 1,
		.nr_ops = getenv("POOLFS_TEST_LONG") ? 50000 : 1200,
		.nr_clients = 2,
		.nr_phases = 3,
	};
	int c;
	catch_hangs();
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 0) : 0;
		switch (c) {
		case 's':
			r.seed = r.pool.seed = v;
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
		case 'c':
			r.nr_clients = v < 1 ? 1 : v > CLIENTS_MAX ? CLIENTS_MAX : (unsigned)v;
			break;
		case 'p':
			r.pool.placement = strcmp(optarg, "stripe") ? PF_PLACE_FILE : PF_PLACE_STRIPE;
			break;
		case 'z':
			r.pool.size_bytes = v;
			break;
		case 'h':
			r.nr_phases = v ? (unsigned)v : 1;
			break;
		default:
			fprintf(stderr, "usage: test_clients [--seed S] [--ops N] [--clients C] [--phases P] [--version V] [--members M] "
					"[--placement file|stripe] [--size BYTES]\n");
			return EXIT_FAILURE;
		}
	}
	if (r.pool.version)
		run_one(&r);
	else
		run_matrix(r);
	printf("%ju operations of %u clients, %ju times no space: %s\n", (uintmax_t)total_ops, r.nr_clients, (uintmax_t)total_full,
	       atomic_load(&failed) ? "failed" : "ok");
	return atomic_load(&failed) ? EXIT_FAILURE : EXIT_SUCCESS;
}
