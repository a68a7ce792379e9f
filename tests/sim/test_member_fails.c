/* SPDX-License-Identifier: MIT
 *
 * Purpose: design rule 9 in version 6. From its n-th write, flush, read or call on one member fails for ever, each member in turn, for
 * n = 1, 2, ... until the run does not get that far; and two of three, one after the other. The pool goes on without it: other files
 * are synced, new ones too, and what was lost is reported by fsync. Then the power fails, there or somewhere between the failure and
 * there, or the pool is closed, and all that was not flushed is lost in some way: the pool opens at its promise, or is refused with the
 * right words and is whole when fsck has taken the member back. The same with threads.
 *
 * And all of it again with a member that does not fail, but does not answer: one call hangs, or all from the n-th on, until some calls
 * later, or until the pool is closed; then what hung is done, or gives an error. It is no success of anything any more, and touches no
 * memory that has another use (this runs under ASan).
 *
 *	test_member_fails [--ops N --members M --disk D --also 1+D --placement P --seed S --op read|write|flush|any --skip N --end 0|1|2 --break B
 *	                   --hang 1..12] */
#include "block/engine.h"
#include "model/ops.h"
#include "sim/hang.h"
#include "sim/lost.h"
#include "sim/workload.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum end { END_CRASH, END_CLOSE, END_ABANDON, END_NR };

struct trial {
	unsigned nr_members, disk, placement;
	unsigned also; /* 1 + another disk that fails some calls later; 0: none */
	uint64_t seed;
	unsigned nr_ops, ops;
	uint64_t skip;
	enum end end;
	uint64_t break_rules;
	unsigned hang; /* 0: the member fails; else 1 + how it hangs: see begin_fault() */
	bool trace;
};

static uint64_t nr_trials, nr_late, nr_failed_members, nr_reported, nr_taken_back, nr_unreadable, nr_bad;

/* -- time for members that hang --------------------------------------------------------------------------------------------- */
#define SILENCE 3 /* ticks */

/* Ticks when nobody is at anything but in a call that hangs, so that no other member can be thought silent however slow this machine is. */
struct clock {
	struct simworld *world;
	struct pf_set *set;
	pthread_t thread;
	atomic_bool stop;
	bool runs;
};

static bool all_hang(const struct clock *c)
{
	unsigned nr = 0;
	for (unsigned id = 0; id < c->set->nr; id++)
		nr += atomic_load(&c->set->members[id].io->nr_in_flight);
	return simworld_all_hung(c->world) && nr == simworld_nr_hung(c->world);
}

static void *run_clock(void *arg)
{
	struct clock *c = arg;
	while (!atomic_load(&c->stop)) {
		if (all_hang(c))
			pf_set_tick(c->set);
		usleep(100);
	}
	return NULL;
}

static void clock_start(struct clock *c, struct simworld *world, struct pf_pool *pool)
{
	c->world = world;
	c->set = pf_pool_set(pool);
	pf_set_guard(c->set, SILENCE);
	c->runs = pthread_create(&c->thread, NULL, run_clock, c) == 0;
}

static void clock_stop(struct clock *c)
{
	atomic_store(&c->stop, true);
	if (c->runs)
		pthread_join(c->thread, NULL);
	c->runs = false;
}

/* The kinds of hang: one call or all; until 3 or 40 operations after the fault was met, or the pool is closed; good or failed then. */
static bool hangs_once(unsigned hang)
{
	return hang % 2;
}
static unsigned hangs_for(unsigned hang)
{
	static const unsigned nr_ops[] = { 3, 40, UINT32_MAX };
	return nr_ops[(hang - 1) / 2 % 3];
}
static bool comes_back_good(unsigned hang)
{
	return hang <= 6;
}

/* -- one run ------------------------------------------------------------------------------------------------------------- */
struct run {
	const struct trial *t;
	struct simpool *s;
	struct ops ops;
	struct oracle *oracle;
	bool met;
	struct clock clock;
	size_t failed_at; /* length of the log of the disks when a member had failed for the first time; 0: not yet */
	char why[2500];
};

static int wrong(struct run *r, const char *what, int err)
{
	say(r->why, sizeof(r->why), "%s gives %s", what, pf_strerror(err));
	return -1;
}

static int run_ops(struct run *r)
{
	struct ops *ops = &r->ops;
	unsigned nr_hung_ops = 0;
	for (unsigned k = 0; k < r->t->nr_ops; k++) {
		size_t begin = simworld_log_len(r->s->world);
		if (r->t->hang && simworld_nr_hung(r->s->world) && nr_hung_ops++ == hangs_for(r->t->hang)) {
			nr_late++;
			simworld_end_hangs(r->s->world);
			simworld_quiesce(r->s->world);
		}
		if (ops_step(ops)) {
			say(r->why, sizeof(r->why), "%s", ops->failure);
			return -1;
		}
		if (!r->failed_at && pf_set_failed(pf_pool_set(r->s->pool)))
			r->failed_at = begin + 1;
		oracle_add_op(r->oracle, begin, simworld_log_len(r->s->world), ops);
	}
	return 0;
}

/* Every file is synced: what that says has to hold. The namespace has no member of its own. */
static int sync_each(struct run *r)
{
	struct model *m = r->ops.model;
	for (size_t k = 0; k < m->nr; k++) {
		struct oracle_step step = { .log_begin = simworld_log_len(r->s->world), .synced_ino = m->slots[k].ino };
		uint64_t ino = step.synced_ino;
		int err = pf_fsync(r->s->pool, ino);
		step.log_end = simworld_log_len(r->s->world);
		if (r->t->trace)
			fprintf(stderr, "fsync of inode %ju at the end: %s\n", (uintmax_t)ino, pf_strerror(err));
		if (!err)
			oracle_add(r->oracle, &step, m, "fsync at the end");
		else if (err != -EIO && err != -ENOSPC && err != -ESTALE)
			return wrong(r, "fsync at the end", err);
		else if (err == -EIO && !model_is_file(m->slots[k].inode))
			return wrong(r, "fsync of a directory at the end", err);
		nr_reported += err == -EIO;
	}
	return 0;
}

/* A new file, without a name so that nobody has to know of it. */
static int write_new(struct pf_pool *pool)
{
	static const char data[12000] = "new";
	struct pf_attr attr;
	int err = pf_create_unnamed(pool, PF_ROOT_INO, 0100600, (struct pf_cred){ 0, 0 }, &attr);
	if (err)
		return err;
	int64_t n = pf_write(pool, attr.ino, 0, data, sizeof(data), 0);
	err = n < 0 ? (int)n : pf_fsync(pool, attr.ino);
	pf_forget(pool, attr.ino, 1);
	return err;
}

/* A member that fails only now may take the first one with it. */
static int try_new(struct pf_pool *pool, char *why, size_t cap)
{
	int err = -EIO;
	for (uint32_t before = ~pf_set_failed(pf_pool_set(pool)); err == -EIO && before != pf_set_failed(pf_pool_set(pool));) {
		before = pf_set_failed(pf_pool_set(pool));
		err = write_new(pool);
	}
	if (err && err != -ENOSPC)
		say(why, cap, "writing and syncing a new file after the failure gives %s", pf_strerror(err));
	return err == -ENOSPC ? 0 : err;
}

static int look_at_status(struct run *r, struct pf_pool *pool)
{
	bool failed = pf_set_failed(pf_pool_set(pool));
	char *json = pf_pool_status_json(pool);
	bool told = strstr(json, "\"failed\":true,\"failure\":\"");
	free(json);
	if (told == failed)
		return 0;
	say(r->why, sizeof(r->why), "status says failed: %d, and %d is right", told, failed);
	return -1;
}

/* After a checkpoint, by which all know of the failure. */
static int look_at_room(struct run *r, struct pf_pool *pool)
{
	struct pf_statfs st;
	uint64_t largest = 0;
	pf_pool_statfs(pool, &st);
	for (unsigned k = 0; k < r->t->nr_members; k++)
		largest += k == r->t->disk ? 0 : simdisk_size(simworld_disk(r->s->world, k)) / PF_BLOCK_SIZE;
	if (!pf_set_failed(pf_pool_set(pool)) || st.avail_blocks < largest)
		return 0;
	say(r->why, sizeof(r->why), "%ju blocks are available of %ju", (uintmax_t)st.avail_blocks, (uintmax_t)largest);
	return -1;
}

static int goes_on(struct run *r)
{
	struct pf_pool *pool = r->s->pool;
	int err = sync_each(r);
	if (!err && r->met && pf_pool_read_only(pool)) {
		say(r->why, sizeof(r->why), "the pool takes no more changes, although only one member fails");
		err = -1;
	}
	if (!err)
		err = try_new(pool, r->why, sizeof(r->why));
	if (!err)
		err = look_at_status(r, pool);
	int synced = err ? 0 : pf_pool_sync(pool);
	if (!err && synced && synced != -PF_EDATA_LOST && synced != -ENOSPC)
		err = wrong(r, "sync after the failure", synced);
	if (!err && !synced)
		err = look_at_room(r, pool);
	nr_failed_members += (unsigned)__builtin_popcount(pf_set_failed(pf_pool_set(pool)));
	return err;
}

/* What the disks have after a cut, the @nr-th of this run. */
static struct simworld *after_the_cut(struct run *r, size_t cut, unsigned nr_cut)
{
	size_t nr = simworld_pending(r->s->world, cut, NULL, 0);
	struct sim_fate *fates = calloc(nr + 1, sizeof(*fates));
	if (r->t->end == END_CRASH)
		sim_fates_seeded(rng_mix(r->t->seed ^ r->t->skip ^ nr_cut << 20), fates, nr);
	for (size_t k = 0; k < nr && r->t->end == END_ABANDON; k++)
		fates[k].kind = SIM_KEPT;
	struct simworld *world = simworld_crash(r->s->world, cut, fates);
	free(fates);
	return world;
}

static int judge_cut(struct run *r, size_t cut, unsigned nr_cut)
{
	char name[24];
	struct simpool_config config = r->s->config;
	struct lost_result result;
	config.break_rules = 0;
	struct simpool *after = simpool_adopt(&config, after_the_cut(r, cut, nr_cut));
	after->env.now_ns = r->s->env.now_ns;
	after->torn_supers = true;
	say(name, sizeof(name), "member%u", r->t->disk);
	int err = lost_judge(after, r->oracle, cut, r->t->also ? NULL : name, &result, r->why, sizeof(r->why));
	nr_taken_back += result.taken_back;
	nr_unreadable += result.nr_unreadable;
	simpool_free(after);
	if (r->t->trace)
		fprintf(stderr, "cut at %zu of %zu, a member failed at %zu: taken back %d, %u files unreadable: %s\n", cut,
			simworld_log_len(r->s->world), r->failed_at, result.taken_back, result.nr_unreadable, err ? r->why : "good");
	return err;
}

/* What hangs comes back when everything that it might touch is gone. */
static void end_hangs(struct run *r)
{
	clock_stop(&r->clock);
	simworld_end_hangs(r->s->world);
	simworld_quiesce(r->s->world);
}

/* A member that hangs only now is noticed by the set's own clock, since ours cannot know how long the set is there. */
static int close_pool(struct run *r)
{
	if (r->t->hang) {
		clock_stop(&r->clock);
		r->clock.set->tick_ms = 2;
		pf_set_guard(r->clock.set, 100);
		pf_set_start_watch(r->clock.set);
	}
	int err = simpool_close(r->s, r->why, sizeof(r->why));
	if (r->t->hang)
		end_hangs(r);
	return err;
}

/* At the end, and at some moments between the failure and that. */
static int judge_end(struct run *r)
{
	if (r->t->end == END_CLOSE && close_pool(r))
		return -1;
	size_t last = simworld_log_len(r->s->world);
	struct rng rng = { .state = rng_mix(r->t->seed ^ r->t->skip ^ UINT64_C(0x637574)) };
	int err = judge_cut(r, last, 0);
	for (unsigned k = 1; !err && r->failed_at && r->failed_at < last && k <= 3; k++) {
		uint64_t range = last - r->failed_at + 1;
		/* most of them close to the failure: there it is being written down */
		err = judge_cut(r, r->failed_at + (size_t)rng_below(&rng, k < 3 && range > 40 ? 40 : range), k);
	}
	return err;
}

static void start(struct run *r, const struct simpool_config *config)
{
	struct ops_config ops_config;
	workload_ops_config(&ops_config, r->t->seed, r->t->seed % 2 ? WORKLOAD_SYNCS : WORKLOAD_MIXED);
	ops_config.weight[OP_REMOUNT] = 0;
	ops_config.tolerate_errors = true;
	ops_config.strict_blocks = false;
	ops_config.trace = r->t->trace;
	r->s = simpool_bare(config);
	if (simpool_mkfs(r->s, r->why, sizeof(r->why)))
		return;
	simworld_record(r->s->world);
	if (!simpool_open(r->s, false, r->why, sizeof(r->why)) && !ops_start(&r->ops, &ops_config, &r->s->env, r->s->pool))
		r->oracle = oracle_new(r->ops.model);
}

/* Returns whether the fault was met. */
static bool try(const struct trial *t, char *why, size_t cap)
{
	struct simpool_config config = { .version = PF_VERSION_NEWEST,
					 .nr_members = t->nr_members,
					 .placement = t->placement,
					 .size_bytes = UINT64_C(20) << 20,
					 .cache_bytes = t->seed % 3 ? 0 : UINT64_C(64) << 10,
					 .seed = t->seed,
					 .break_rules = t->break_rules,
					 .verbose = t->trace };
	struct run r = { .t = t };
	start(&r, &config);
	int err = r.oracle ? 0 : -1;
	struct sim_fault fault = { .disk = simworld_disk(r.s->world, t->disk), .ops = t->ops, .kind = SIM_FAIL, .skip = t->skip };
	if (t->hang) {
		fault.kind = SIM_HANG;
		fault.count = hangs_once(t->hang);
		fault.err = comes_back_good(t->hang) ? 0 : -EIO;
		if (!err)
			clock_start(&r.clock, r.s->world, r.s->pool);
	}
	unsigned nr = simworld_add_fault(r.s->world, &fault);
	if (t->also) {
		fault.disk = simworld_disk(r.s->world, t->also - 1);
		fault.skip += 20;
		simworld_add_fault(r.s->world, &fault);
	}
	if (!err)
		err = run_ops(&r);
	r.met = simworld_fault_hits(r.s->world, nr);
	if (!err)
		err = goes_on(&r);
	if (!err)
		err = judge_end(&r);
	if (err)
		say(why, cap, "%s", r.why);
	nr_bad += err != 0;
	if (t->hang) {
		clock_stop(&r.clock);
		simpool_abandon(r.s);
		end_hangs(&r);
	}
	if (r.ops.model)
		ops_finish(&r.ops);
	oracle_free(r.oracle);
	simpool_free(r.s);
	return r.met;
}

/* -- all of them --------------------------------------------------------------------------------------------------------- */
static const char *op_text(unsigned ops)
{
	return ops == SIM_READ ? "read" : ops == SIM_WRITE ? "write" : ops == SIM_FLUSH ? "flush" : "any";
}

static void complain(const struct trial *t, const char *why)
{
	printf("FAIL: %s\nrepeat with: test_member_fails --ops %u --members %u --disk %u --also %u --placement %u --seed %ju --op %s --skip %ju "
	       "--end %d --break %ju --hang %u\n",
	       why, t->nr_ops, t->nr_members, t->disk, t->also, t->placement, (uintmax_t)t->seed, op_text(t->ops), (uintmax_t)t->skip, (int)t->end,
	       (uintmax_t)t->break_rules, t->hang);
	fflush(stdout);
}

static void series(struct trial *t, uint64_t density, bool quiet)
{
	bool met = true;
	for (uint64_t n = 0; met && nr_bad < 10; n += 1 + n / density) {
		char why[2500] = "";
		uint64_t bad = nr_bad;
		t->skip = n;
		t->end = (enum end)(nr_trials++ % END_NR);
		if (t->hang)
			t->hang = 1 + (t->hang + 4) % 12;
		alarm(60);
		met = try(t, why, sizeof(why));
		alarm(0);
		if (nr_bad > bad && !quiet)
			complain(t, why);
	}
}

static void run_matrix(uint64_t density, unsigned round, uint64_t break_rules, bool hangs, bool quiet)
{
	static const unsigned ops[] = { SIM_WRITE, SIM_FLUSH, SIM_ANY, SIM_READ };
	for (unsigned k = 0; k < 4 * 2 * 7 && nr_bad < 10; k++) {
		unsigned which = k % 7; /* both members of two, each of three, and the data member of three with each other one */
		struct trial t = { .nr_members = which < 2 ? 2 : 3,
				   .disk = which < 2 ? which : which < 5 ? which - 2 : 2,
				   .also = which < 5 ? 0 : which - 4,
				   .placement = k / 7 % 2,
				   .ops = ops[k / 14],
				   .seed = 1 + k + 100 * round,
				   .nr_ops = 140 + 60 * (round % 5),
				   .break_rules = break_rules,
				   .hang = hangs ? 1 + (k + 5 * round) % 12 : 0 };
		series(&t, density, quiet);
	}
}

/* The hooks have to be noticed. */
static bool is_noticed(uint64_t rule)
{
	uint64_t bad = nr_bad;
	nr_bad = 0;
	run_matrix(6, 0, rule, false, true);
	bool noticed = nr_bad > 0;
	nr_bad = bad + !noticed;
	if (!noticed)
		printf("FAIL: rule %#jx was left out, and nothing was found\n", (uintmax_t)rule);
	return noticed;
}

/* -- with threads -------------------------------------------------------------------------------------------------------- */
#define NR_THREADS 4
#define NR_FILES   60

struct writer {
	struct pf_pool *pool;
	unsigned number;
	pthread_t thread;
	int errs[NR_FILES]; /* of fsync */
	uint64_t inos[NR_FILES];
};

static void *write_files(void *arg)
{
	struct writer *w = arg;
	uint8_t data[20000];
	for (unsigned k = 0; k < NR_FILES; k++) {
		char name[32];
		struct pf_attr attr;
		say(name, sizeof(name), "w%u-%u", w->number, k);
		memset(data, (int)(w->number * NR_FILES + k), sizeof(data));
		w->errs[k] = pf_create(w->pool, PF_ROOT_INO, name, strlen(name), 0100644, (struct pf_cred){ 0, 0 }, 0, 0, &attr);
		if (w->errs[k])
			continue;
		w->inos[k] = attr.ino;
		int64_t n = pf_write(w->pool, attr.ino, 0, data, sizeof(data), 0);
		w->errs[k] = n < 0 ? (int)n : pf_fsync(w->pool, attr.ino);
		pf_forget(w->pool, attr.ino, 1);
	}
	return NULL;
}

static int read_file(struct pf_pool *pool, const struct writer *w, unsigned k)
{
	static _Alignas(4096) uint8_t buf[5 * 4096];
	struct pf_attr attr;
	char name[32];
	say(name, sizeof(name), "w%u-%u", w->number, k);
	int err = pf_lookup(pool, PF_ROOT_INO, name, strlen(name), &attr);
	if (err)
		return err;
	int64_t n = pf_read(pool, attr.ino, 0, buf, 20000);
	pf_forget(pool, attr.ino, 1);
	for (unsigned i = 0; n == 20000 && i < 20000; i++) {
		if (buf[i] != (uint8_t)(w->number * NR_FILES + k))
			return -EILSEQ;
	}
	return n == 20000 ? 0 : n < 0 ? (int)n : -ERANGE;
}

/* Every file that was synced is there. @lacks: what lies on the failed member gives errors. */
static int judge_files(struct pf_pool *pool, const struct writer *writers, bool lacks, char *why, size_t cap)
{
	for (unsigned t = 0; t < NR_THREADS; t++) {
		const struct writer *w = &writers[t];
		for (unsigned k = 0; k < NR_FILES; k++) {
			int synced = w->errs[k], err = synced ? 0 : read_file(pool, w, k);
			bool good = !err || (lacks && err == -EIO);
			nr_reported += lacks && synced;
			if (good && (!synced || synced == -EIO))
				continue;
			say(why, cap, "file %u of thread %u: fsync gave %s, reading gives %s", k, t, pf_strerror(synced), pf_strerror(err));
			return -1;
		}
	}
	return 0;
}

static void run_writers(struct pf_pool *pool, struct writer *writers)
{
	for (unsigned t = 0; t < NR_THREADS; t++) {
		writers[t] = (struct writer){ .pool = pool, .number = t };
		pthread_create(&writers[t].thread, NULL, write_files, &writers[t]);
	}
	for (unsigned t = 0; t < NR_THREADS; t++)
		pthread_join(writers[t].thread, NULL);
}

/* The disks are as they were left, but that the failed one has lost what it did not flush. */
static int open_after(struct simpool *s, const struct writer *writers, char *why, size_t cap)
{
	struct simworld *world = simworld_crash(s->world, simworld_log_len(s->world), NULL);
	struct simpool *after = simpool_adopt(&s->config, world);
	int err = lost_open(after, NULL, why, cap);
	if (!err)
		err = judge_files(after->pool, writers, false, why, cap);
	if (!err)
		err = simpool_close(after, why, cap);
	simpool_free(after);
	return err;
}

/* By the set's own clock: a second without an answer, however busy this machine is. */
static void guard_in_parallel(struct pf_pool *pool)
{
	struct pf_set *set = pf_pool_set(pool);
	set->tick_ms = 10;
	pf_set_guard(set, 100);
	pf_set_start_watch(set);
}

static int in_parallel(unsigned nr_members, unsigned disk, unsigned ops, uint64_t seed, bool hangs, char *why, size_t cap)
{
	struct simpool_config config = { .version = PF_VERSION_NEWEST,
					 .nr_members = nr_members,
					 .seed = seed,
					 .placement = disk % 2,
					 .commit_interval_ms = 20 };
	struct writer writers[NR_THREADS];
	struct simpool *s = simpool_bare(&config);
	struct sim_fault fault = { .kind = hangs ? SIM_HANG : SIM_FAIL, .ops = ops, .skip = 5 + 17 * seed, .disk = simworld_disk(s->world, disk) };
	nr_trials++;
	int err = simpool_mkfs(s, why, cap);
	simworld_record(s->world);
	if (!err)
		err = simpool_open(s, false, why, cap);
	if (!err && hangs)
		guard_in_parallel(s->pool);
	if (!err)
		err = pf_pool_start_workers(s->pool);
	if (!err) {
		simworld_add_fault(s->world, &fault);
		run_writers(s->pool, writers);
		err = judge_files(s->pool, writers, true, why, cap);
		if (!err)
			err = try_new(s->pool, why, cap);
	}
	if (!err)
		err = simpool_close(s, why, cap);
	simpool_abandon(s);
	simworld_end_hangs(s->world);
	simworld_quiesce(s->world);
	if (!err)
		err = open_after(s, writers, why, cap);
	simpool_free(s);
	return err;
}

static void run_threads(unsigned rounds)
{
	static const unsigned ops[] = { SIM_FLUSH, SIM_WRITE, SIM_ANY };
	for (unsigned k = 0; k < 18 * rounds && nr_bad < 10; k++) {
		char why[2500] = "";
		alarm(120);
		bool hangs = k % 18 >= 12;
		if (in_parallel(2 + k / 3 % 2, k % (2 + k / 3 % 2), ops[k % 3], k / 3, hangs, why, sizeof(why))) {
			printf("FAIL: threads, round %u%s: %s\n", k, hangs ? ", hanging" : "", why);
			nr_bad++;
		}
		alarm(0);
	}
}

/* -- command line -------------------------------------------------------------------------------------------------------- */
static unsigned parse_op(const char *text)
{
	return *text == 'r' ? SIM_READ : *text == 'w' ? SIM_WRITE : *text == 'f' ? SIM_FLUSH : SIM_ANY;
}

static bool parse(int argc, char **argv, struct trial *t)
{
	static const struct option longs[] = { { "members", 1, NULL, 'm' }, { "disk", 1, NULL, 'd' }, { "placement", 1, NULL, 'p' },
					       { "seed", 1, NULL, 's' },    { "op", 1, NULL, 'o' },   { "skip", 1, NULL, 'k' },
					       { "end", 1, NULL, 'e' },	    { "break", 1, NULL, 'b' }, { "also", 1, NULL, 'a' }, { "ops", 1, NULL, 'n' },
					       { "hang", 1, NULL, 'h' },    { NULL, 0, NULL, 0 } };
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 0) : 0;
		if (c == 'm')
			t->nr_members = (unsigned)v;
		else if (c == 'd')
			t->disk = (unsigned)v;
		else if (c == 'a')
			t->also = (unsigned)v;
		else if (c == 'n')
			t->nr_ops = (unsigned)v;
		else if (c == 'p')
			t->placement = (unsigned)v;
		else if (c == 's')
			t->seed = v;
		else if (c == 'o')
			t->ops = parse_op(optarg);
		else if (c == 'k')
			t->skip = v;
		else if (c == 'e')
			t->end = (enum end)(v % END_NR);
		else if (c == 'h')
			t->hang = (unsigned)v % 13;
		else if (c == 'b')
			t->break_rules = (uint32_t)v;
		else
			return false;
	}
	return optind == argc && t->disk < t->nr_members && t->also <= t->nr_members && t->nr_members <= SIMPOOL_MAX;
}

static int one(struct trial *t)
{
	char why[2500] = "";
	t->trace = true;
	bool met = try(t, why, sizeof(why));
	printf("%s, the fault was %smet; %s\n", nr_bad ? "FAIL" : "good", met ? "" : "not ", why);
	return nr_bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct trial t = { .nr_members = 2, .seed = 1, .nr_ops = 140, .ops = SIM_FLUSH };
	bool more = getenv("POOLFS_TEST_LONG");
	catch_hangs();
	if (!parse(argc, argv, &t)) {
		fprintf(stderr, "usage: test_member_fails [--ops N --members M --disk D --also 1+D --placement P --seed S --op read|write|flush|any --skip N "
				"--end N --break B --hang N]\n");
		return EXIT_FAILURE;
	}
	if (argc > 1)
		return one(&t);
	for (unsigned round = 0; round < (more ? 10 : 1); round++)
		run_matrix(more ? 60 : 5, round, 0, false, false);
	for (unsigned round = 0; round < (more ? 12 : 1); round++)
		run_matrix(more ? 40 : 3, round, 0, true, false);
	run_threads(more ? 40 : 1);
	bool bites = nr_failed_members && nr_reported && nr_taken_back && nr_unreadable && nr_late;
	printf("%ju trials: %ju members failed, %ju fsyncs told of it, %ju pools took one back, %ju files were lost, %ju members came back while the pool was in use, "
	       "%ju bad\n",
	       (uintmax_t)nr_trials, (uintmax_t)nr_failed_members, (uintmax_t)nr_reported, (uintmax_t)nr_taken_back,
	       (uintmax_t)nr_unreadable, (uintmax_t)nr_late, (uintmax_t)nr_bad);
	if (nr_bad || !bites)
		return EXIT_FAILURE;
	bool noticed = is_noticed(PF_BREAK_FAILURE_UNRECORDED);
	noticed = is_noticed(PF_BREAK_FAILURE_FORGOTTEN) && noticed;
	return noticed ? EXIT_SUCCESS : EXIT_FAILURE;
}
