/* SPDX-License-Identifier: MIT
 *
 * Several files grow, are overwritten and preallocated until the pool is full. Every byte that a write acknowledged must be there:
 * at once, after a sync (which must succeed: its space was promised), after a remount or a power cut. Overwriting goes on. The pool
 * is whole, and when everything has been deleted df says what it said at the beginning.
 *
 * With one thread the run is the same each time, without workers and with checkpoints begun in between; with more, the workers of a
 * mounted pool are in the way.
 *
 *	test_full [--seed S] [--version V] [--members M] [--placement P] [--mib TOTAL] [--threads N]
 *
 * Without any of them: all of them, on pools of 80 MiB. POOLFS_TEST_LONG: more seeds, and pools of a GiB.
 */
#include "block/engine.h"
#include "sim/complain.h"
#include "sim/simpool.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITERS 4u
#define FILES_MAX 1500u /* of a writer */
#define UNIT 512u /* what is written is whole units; each holds a pattern of its place and a seed */
#define UNITS_MAX 2048u
#define UNITS_PER_BLOCK (4096u / UNIT)
#define REFUSALS 60u /* after so many a writer believes it */

struct file {
	uint64_t ino; /* 0: not made yet */
	uint64_t units;
	uint32_t *seeds; /* 0: zeros */
};

enum profile {
	LARGE, /* a few large files, appended to */
	SMALL, /* many small ones */
	SCATTERED, /* a few, in many pieces: the tree grows as fast as the data */
	NR_PROFILES,
};

struct writer {
	pthread_t thread;
	enum profile profile;
	struct rng rng;
	unsigned nr, nr_refused;
	uint64_t dir;
	uint64_t units_max; /* of a file */
	uint32_t last_seed;
	unsigned nr_files;
	struct file files[FILES_MAX];
	uint8_t *buf;
};

struct run {
	struct simpool_config config;
	unsigned threads;
	uint64_t mib;
};

static struct simpool *sim;
static const struct pf_cred cred = { 1000, 1000 };

static bool ended(const struct writer *w)
{
	return atomic_load(&failed) || w->nr_refused >= REFUSALS;
}

/* -- content --------------------------------------------------------------------------------------------------------- */
static void fill_unit(uint8_t *to, uint32_t seed, uint64_t unit)
{
	for (unsigned i = 0; i < UNIT / 8; i++) {
		uint64_t v = seed ? rng_mix((uint64_t)seed << 32 ^ (unit * (UNIT / 8) + i)) : 0;
		memcpy(to + (size_t)i * 8, &v, 8);
	}
}

static void compare(struct writer *w, const struct file *f, uint64_t from, uint64_t units)
{
	uint8_t expected[UNIT];
	int64_t n = pf_read(sim->pool, f->ino, from * UNIT, w->buf, units * UNIT);
	if (n != (int64_t)(units * UNIT)) {
		complain("writer %u, inode %ju: reading %ju bytes at %ju gives %jd", w->nr, (uintmax_t)f->ino,
			 (uintmax_t)units * UNIT, (uintmax_t)from * UNIT, (intmax_t)n);
		return;
	}
	const uint8_t *at = w->buf + from * UNIT % 4096;
	for (uint64_t u = from; u < from + units; u++, at += UNIT) {
		fill_unit(expected, f->seeds[u], u);
		if (memcmp(at, expected, UNIT)) {
			complain("writer %u, inode %ju: wrong bytes at %ju", w->nr, (uintmax_t)f->ino, (uintmax_t)u * UNIT);
			return;
		}
	}
}

static void compare_all(struct writer *w)
{
	for (unsigned i = 0; i < w->nr_files && !atomic_load(&failed); i++) {
		const struct file *f = &w->files[i];
		struct pf_attr a;
		if (!f->ino)
			continue;
		int err = pf_getattr(sim->pool, f->ino, &a);
		if (err || a.size_bytes != f->units * UNIT)
			complain("writer %u, inode %ju: %s, %ju bytes, expected %ju", w->nr, (uintmax_t)f->ino, pf_strerror(err),
				 (uintmax_t)a.size_bytes, (uintmax_t)f->units * UNIT);
		for (uint64_t at = 0; at < f->units && !atomic_load(&failed); at += UNITS_MAX)
			compare(w, f, at, f->units - at < UNITS_MAX ? f->units - at : UNITS_MAX);
	}
}

/* -- operations ------------------------------------------------------------------------------------------------------- */
static void put(struct writer *w, struct file *f, uint64_t from, uint64_t units, bool must)
{
	uint32_t seed = ++w->last_seed;
	for (uint64_t u = 0; u < units; u++)
		fill_unit(w->buf + u * UNIT, seed, from + u);
	int64_t n = pf_write(sim->pool, f->ino, from * UNIT, w->buf, units * UNIT, 0);
	if (n == -ENOSPC && !must) {
		w->nr_refused++;
		return;
	}
	if (n != (int64_t)(units * UNIT)) {
		complain("writer %u, inode %ju: writing %ju bytes at %ju gives %jd", w->nr, (uintmax_t)f->ino,
			 (uintmax_t)units * UNIT, (uintmax_t)from * UNIT, (intmax_t)n);
		return;
	}
	for (uint64_t u = from; u < from + units; u++)
		f->seeds[u] = seed;
	f->units = f->units > from + units ? f->units : from + units;
}

static void preallocate(struct writer *w, struct file *f, uint64_t from, uint64_t units)
{
	int mode = rng_one_in(&w->rng, 2) ? FALLOC_FL_KEEP_SIZE : 0;
	int err = pf_fallocate(sim->pool, f->ino, mode, from * UNIT, units * UNIT, 0);
	if (err == -ENOSPC)
		w->nr_refused++;
	else if (err)
		complain("writer %u, inode %ju: fallocate: %s", w->nr, (uintmax_t)f->ino, pf_strerror(err));
	else if (!mode && f->units < from + units)
		f->units = from + units;
}

static void file_name(char *name, unsigned i)
{
	sprintf(name, "file-%u", i);
}

static bool make(struct writer *w, unsigned i)
{
	struct pf_attr a;
	char name[32];
	file_name(name, i);
	int err = pf_create(sim->pool, w->dir, name, strlen(name), S_IFREG | 0644, cred, 0, 0, &a);
	if (!err)
		w->files[i].ino = a.ino;
	else if (err == -ENOSPC)
		w->nr_refused++;
	else
		complain("writer %u: create: %s", w->nr, pf_strerror(err));
	return !err;
}

static void one_op(struct writer *w)
{
	static const uint64_t most[NR_PROFILES][3] = { { 16, 128, UNITS_MAX }, { 4, 16, 64 }, { 8, 8, 16 } };
	unsigned i = (unsigned)rng_below(&w->rng, w->nr_files), what = (unsigned)rng_below(&w->rng, 100);
	struct file *f = &w->files[i];
	uint64_t units = 1 + rng_below(&w->rng, most[w->profile][rng_below(&w->rng, 3)]);
	uint64_t within = f->units ? rng_below(&w->rng, f->units) : 0, beyond = f->units + rng_below(&w->rng, 1024);
	uint64_t from = what < 60 ? f->units : what < 84 ? within : beyond;
	if (!f->ino && !make(w, i))
		return;
	if (w->profile == SCATTERED && what < 90)
		from = rng_below(&w->rng, w->units_max);
	if (from + units > w->units_max) {
		from = rng_below(&w->rng, w->units_max - w->units_max / 4);
		w->nr_refused += rng_one_in(&w->rng, 1000); /* it ends even if the files are full first */
	}
	if (what < 90) {
		put(w, f, from, units, false);
	} else if (what < 94) {
		preallocate(w, f, from, units);
	} else if (what < 96) {
		int err = pf_fsync(sim->pool, f->ino);
		if (err)
			complain("writer %u: fsync: %s", w->nr, pf_strerror(err));
	} else if (within < f->units) {
		compare(w, f, within, f->units - within < units ? f->units - within : units);
	}
}

/* Blocks that hold something can be overwritten on a full pool too. */
static void overwrite_some(struct writer *w)
{
	for (unsigned k = 0; k < 100 && !atomic_load(&failed); k++) {
		struct file *f = &w->files[rng_below(&w->rng, w->nr_files)];
		if (!f->units)
			continue;
		uint64_t from = rng_below(&w->rng, f->units), units = 1 + rng_below(&w->rng, rng_one_in(&w->rng, 2) ? 256 : 16);
		units = units < f->units - from ? units : f->units - from;
		bool held = true;
		for (uint64_t b = from / UNITS_PER_BLOCK; b <= (from + units - 1) / UNITS_PER_BLOCK && held; b++) {
			held = false;
			for (uint64_t u = b * UNITS_PER_BLOCK; u < (b + 1) * UNITS_PER_BLOCK && u < f->units; u++)
				held = held || f->seeds[u];
		}
		if (held)
			put(w, f, from, units, true);
	}
}

static void *work(void *arg)
{
	struct writer *w = arg;
	while (!ended(w))
		one_op(w);
	return NULL;
}

/* -- a run ------------------------------------------------------------------------------------------------------------ */
static void ck(const char *what, int err)
{
	if (err)
		complain("%s: %s (%d)", what, pf_strerror(err), err);
}

static void begin(struct writer *w, const struct run *run, unsigned nr)
{
	char name[16];
	struct pf_attr a = { 0 };
	*w = (struct writer){ .nr = nr, .rng.state = rng_mix(run->config.seed * 64 + nr) };
	sprintf(name, "w%u", nr);
	ck("mkdir", pf_create(sim->pool, PF_ROOT_INO, name, strlen(name), S_IFDIR | 0755, cred, 0, 0, &a));
	w->dir = a.ino;
	w->profile = (enum profile)(rng_mix(run->config.seed) / 9 % NR_PROFILES);
	w->nr_files = w->profile == SMALL ? FILES_MAX : 12;
	w->units_max = w->profile == SMALL ? 512 : run->mib * 1024 * 1024 / UNIT / 8;
	w->buf = aligned_alloc(4096, UNITS_MAX * UNIT + 8192);
	for (unsigned i = 0; i < w->nr_files; i++)
		w->files[i].seeds = calloc(w->units_max + UNITS_MAX, sizeof(uint32_t));
}

static void end(struct writer *w)
{
	for (unsigned i = 0; i < w->nr_files; i++)
		free(w->files[i].seeds);
	free(w->buf);
}

static void fill_alone(struct writer *writers, struct rng *rng)
{
	bool any = true;
	while (any && !atomic_load(&failed)) {
		any = false;
		for (unsigned i = 0; i < WRITERS; i++) {
			if (ended(&writers[i]))
				continue;
			any = true;
			one_op(&writers[i]);
			if (rng_one_in(rng, 4) && pf_pool_step(sim->pool, rng_one_in(rng, 10)) < 0)
				complain("a step of the background work failed");
		}
	}
}

static void fill_together(struct writer *writers)
{
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_create(&writers[i].thread, NULL, work, &writers[i]);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);
}

static void sync_all(const char *when)
{
	struct pf_space_stats s;
	ck(when, pf_pool_sync(sim->pool));
	pf_space_stats(sim->pool->space, &s);
	if (s.reserved_blocks && !atomic_load(&failed))
		complain("%s: %ju blocks are promised to nobody", when, (uintmax_t)s.reserved_blocks);
}

static void open_again(bool power_cut)
{
	char why[1200] = "";
	if (power_cut) {
		simpool_abandon(sim);
		ck("opening after a power cut", simpool_open(sim, false, why, sizeof(why)));
	}
	if (atomic_load(&failed) || simpool_close(sim, why, sizeof(why)) || simpool_check(sim, why, sizeof(why)) ||
	    simpool_open(sim, false, why, sizeof(why)))
		complain("remount and check: %s", why);
}

static void delete_all(struct writer *w)
{
	char name[32];
	for (unsigned i = 0; i < w->nr_files && !atomic_load(&failed); i++) {
		file_name(name, i);
		if (w->files[i].ino)
			ck("unlink", pf_unlink(sim->pool, w->dir, name, strlen(name)));
	}
	sprintf(name, "w%u", w->nr);
	ck("rmdir", pf_rmdir(sim->pool, PF_ROOT_INO, name, strlen(name)));
}

static void settle(void)
{
	int got;
	while ((got = pf_pool_step(sim->pool, false)) == 1)
		;
	ck("background work", got);
	sync_all("sync of the empty pool");
}

static void fill_and_empty(const struct run *run)
{
	static struct writer writers[WRITERS];
	struct pf_statfs fresh, now;
	struct rng rng = { .state = rng_mix(run->config.seed) };
	uint64_t written = 0;
	pf_pool_statfs(sim->pool, &fresh);
	for (unsigned i = 0; i < WRITERS; i++)
		begin(&writers[i], run, i);
	if (run->threads > 1) {
		sim->pool->commit_interval_ms = 20;
		ck("workers", pf_pool_start_workers(sim->pool));
		fill_together(writers);
	} else {
		fill_alone(writers, &rng);
	}
	pf_pool_statfs(sim->pool, &now);
	for (unsigned i = 0; i < WRITERS && !atomic_load(&failed); i++)
		compare_all(&writers[i]);
	sync_all("sync of a full pool");
	bool reclaims = run->config.version >= 4;
	for (unsigned i = 0; i < WRITERS && reclaims; i++)
		overwrite_some(&writers[i]);
	sync_all("sync after overwriting");
	if (!atomic_load(&failed))
		open_again(rng_one_in(&rng, 2));
	for (unsigned i = 0; i < WRITERS && !atomic_load(&failed); i++) {
		compare_all(&writers[i]);
		for (unsigned k = 0; k < writers[i].nr_files; k++)
			written += writers[i].files[k].units * UNIT;
	}
	for (unsigned i = 0; i < WRITERS && !atomic_load(&failed); i++)
		delete_all(&writers[i]);
	if (!atomic_load(&failed)) {
		struct pf_statfs empty;
		settle();
		pf_pool_statfs(sim->pool, &empty);
		if (reclaims && (empty.free_blocks != fresh.free_blocks || empty.avail_blocks != fresh.avail_blocks))
			complain("df says %ju blocks free, %ju of the fresh pool", (uintmax_t)empty.free_blocks,
				 (uintmax_t)fresh.free_blocks);
		open_again(false);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		end(&writers[i]);
	if (now.avail_blocks > fresh.avail_blocks / 20 && !atomic_load(&failed))
		complain("no room, but df shows %ju of %ju blocks", (uintmax_t)now.avail_blocks, (uintmax_t)fresh.avail_blocks);
	if (!atomic_load(&failed) && getenv("POOLFS_TEST_VERBOSE"))
		printf("profile %u: files of %ju MiB, %ju of %ju blocks were left\n", writers[0].profile, (uintmax_t)written >> 20,
		       (uintmax_t)now.avail_blocks, (uintmax_t)fresh.avail_blocks);
}

static bool run_one(const struct run *run)
{
	char why[1200] = "";
	struct simpool_config config = run->config;
	config.size_bytes = (run->mib << 20) / (config.nr_members > 1 ? config.nr_members - 1 : 1);
	if (config.nr_members > 1)
		config.size_bytes -= config.size_bytes / 5; /* the others are smaller */
	/* 1 to 256 MiB: hardly anything is staged, or nearly all of a small pool */
	config.cache_bytes = UINT64_C(1) << (20 + rng_mix(config.seed) % 9);
	config.discard = rng_mix(config.seed) >> 8 & 1;
	atomic_store(&failed, false);
	sim = simpool_new(&config, why, sizeof(why));
	if (!sim) {
		complain("no pool: %s", why);
		return false;
	}
	alarm(600); /* a deadlock ends the test */
	fill_and_empty(run);
	alarm(0);
	simpool_free(sim);
	if (atomic_load(&failed))
		printf("repeat with: test_full --seed %ju --version %u --members %u --placement %u --mib %ju --threads %u\n",
		       (uintmax_t)config.seed, config.version, config.nr_members, config.placement, (uintmax_t)run->mib,
		       run->threads);
	return !atomic_load(&failed);
}

static unsigned run_all(uint64_t seed, uint64_t mib, unsigned *nr)
{
	static const unsigned versions[] = { 3, 4, 5 }, members[] = { 1, 3 }, threads[] = { 1, WRITERS };
	unsigned nr_failed = 0;
	for (unsigned i = 0; i < 24; i++, ++*nr) {
		struct run run = {
			.config = { .version = versions[i % 3],
				    .nr_members = members[i / 3 % 2],
				    .placement = i / 6 % 2 ? PF_PLACE_STRIPE : PF_PLACE_FILE,
				    .seed = seed + i },
			.threads = threads[i / 12],
			.mib = mib,
		};
		nr_failed += !run_one(&run);
	}
	return nr_failed;
}

int main(int argc, char **argv)
{
	struct run run = { .config = { .version = 5, .nr_members = 1, .seed = 1 }, .threads = 1, .mib = 80 };
	for (int i = 1; i + 1 < argc; i += 2) {
		unsigned long v = strtoul(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--seed"))
			run.config.seed = v;
		else if (!strcmp(argv[i], "--version"))
			run.config.version = (unsigned)v;
		else if (!strcmp(argv[i], "--members"))
			run.config.nr_members = (unsigned)v;
		else if (!strcmp(argv[i], "--placement"))
			run.config.placement = (unsigned)v;
		else if (!strcmp(argv[i], "--mib"))
			run.mib = v;
		else if (!strcmp(argv[i], "--threads"))
			run.threads = (unsigned)v;
	}
	if (argc > 1)
		return run_one(&run) ? EXIT_SUCCESS : EXIT_FAILURE;
	bool is_long = getenv("POOLFS_TEST_LONG") != NULL;
	unsigned nr = 0, nr_failed = run_all(1, 80, &nr);
	for (unsigned seed = 1000; is_long && seed < 11000; seed += 1000)
		nr_failed += run_all(seed, 80, &nr);
	if (is_long)
		nr_failed += run_all(1, 1024, &nr);
	printf("%u full pools, %u failed\n", nr, nr_failed);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
