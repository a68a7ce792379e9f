/* SPDX-License-Identifier: MIT
 *
 * Threads on one pool, with its workers: each has files of its own whose content it knows, all share a directory in which names
 * come, move and go. Every read is compared; after the end the pool is checked, opened again, and everything read once more.
 * Made for ThreadSanitizer, and useful without.
 *
 * The pool is so small that it gets full, and the workers are so quick that they are always in the way: whoever waits for space
 * holds locks that a worker wants.
 *
 *	test_parallel [--seconds N] [--seed S] [--version V] [--members M] [--mib SIZE] [--interval MS]
 */
#include "block/engine.h"
#include "sim/complain.h"
#include "sim/simpool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS 4
#define FILES 40
#define FILE_MAX (1u << 20)
#define SHARED_NAMES 24

static struct simpool *sim;
static atomic_bool stop;
static uint64_t shared_dir;
static const struct pf_cred cred = { 1000, 1000 };

/* Also when somebody has complained. */
static bool ended(void)
{
	return atomic_load(&stop) || atomic_load(&failed);
}

struct file {
	uint64_t ino; /* 0: does not exist */
	size_t size;
	uint8_t *bytes; /* FILE_MAX */
};

struct worker {
	pthread_t thread;
	struct rng rng;
	unsigned nr;
	uint64_t dir;
	struct file files[FILES];
	uint8_t *buf; /* aligned */
	unsigned long ops;
};

static void file_name(char *name, unsigned i)
{
	sprintf(name, "file-%u", i);
}

static atomic_ulong nr_full;

static bool no_space(int64_t got)
{
	if (got == -ENOSPC)
		atomic_fetch_add(&nr_full, 1);
	return got == -ENOSPC;
}

static void do_create(struct worker *w, unsigned i)
{
	struct pf_attr attr;
	char name[32];
	file_name(name, i);
	int err = pf_create(sim->pool, w->dir, name, strlen(name), S_IFREG | 0644, cred, 0, 0, &attr);
	if (no_space(err))
		return;
	if (err) {
		complain("create %s: %s", name, pf_strerror(err));
		return;
	}
	w->files[i].ino = attr.ino;
	w->files[i].size = 0;
	memset(w->files[i].bytes, 0, FILE_MAX);
}

static void do_unlink(struct worker *w, unsigned i)
{
	char name[32];
	file_name(name, i);
	int err = pf_unlink(sim->pool, w->dir, name, strlen(name));
	if (err)
		complain("unlink %s: %s", name, pf_strerror(err));
	pf_forget(sim->pool, w->files[i].ino, 1);
	w->files[i].ino = 0;
}

static void do_write(struct worker *w, struct file *f)
{
	size_t len = 1 + (size_t)rng_below(&w->rng, rng_one_in(&w->rng, 4) ? 200000 : 9000);
	size_t off = (size_t)rng_below(&w->rng, FILE_MAX - len);
	rng_fill(&w->rng, w->buf, len);
	int64_t n = pf_write(sim->pool, f->ino, off, w->buf, len, 0);
	if (no_space(n))
		return;
	if (n != (int64_t)len) {
		complain("write of %zu bytes gives %jd", len, (intmax_t)n);
		return;
	}
	memcpy(f->bytes + off, w->buf, len);
	f->size = f->size > off + len ? f->size : off + len;
}

static void do_truncate(struct worker *w, struct file *f)
{
	struct pf_attr attr = { .size_bytes = rng_one_in(&w->rng, 3) ? 0 : rng_below(&w->rng, FILE_MAX) };
	int err = pf_setattr(sim->pool, f->ino, PF_ATTR_SIZE, &attr, NULL);
	if (no_space(err))
		return;
	if (err) {
		complain("truncate: %s", pf_strerror(err));
		return;
	}
	if (attr.size_bytes < f->size)
		memset(f->bytes + attr.size_bytes, 0, FILE_MAX - attr.size_bytes);
	f->size = attr.size_bytes;
}

static void compare(struct worker *w, const struct file *f)
{
	int64_t n = pf_read(sim->pool, f->ino, 0, w->buf, FILE_MAX);
	if (n != (int64_t)f->size)
		complain("thread %u, inode %ju: read gives %jd, the size is %zu", w->nr, (uintmax_t)f->ino, (intmax_t)n, f->size);
	else if (memcmp(w->buf, f->bytes, f->size))
		complain("thread %u, inode %ju: wrong bytes", w->nr, (uintmax_t)f->ino);
}

static bool count_entry(void *arg, const struct pf_dirent *entry)
{
	(void)entry;
	++*(unsigned *)arg;
	return true;
}

/* Names that all threads fight for: any answer that another thread can have caused is right. */
static void do_shared(struct worker *w)
{
	char a[16], b[16];
	struct pf_attr attr;
	unsigned nr = 0;
	int err = 0;
	sprintf(a, "s%u", (unsigned)rng_below(&w->rng, SHARED_NAMES));
	sprintf(b, "s%u", (unsigned)rng_below(&w->rng, SHARED_NAMES));
	switch (rng_below(&w->rng, 6)) {
	case 0:
		err = pf_create(sim->pool, shared_dir, a, strlen(a), S_IFREG | 0600, cred, 0, 0, &attr);
		if (!err)
			pf_forget(sim->pool, attr.ino, 1);
		break;
	case 1:
		err = pf_unlink(sim->pool, shared_dir, a, strlen(a));
		break;
	case 2:
		err = pf_rename(sim->pool, shared_dir, a, strlen(a), shared_dir, b, strlen(b), 0, (struct pf_cred){ 0 });
		break;
	case 3:
		err = pf_lookup(sim->pool, shared_dir, a, strlen(a), &attr);
		if (!err && pf_write(sim->pool, attr.ino, rng_below(&w->rng, 20000), a, strlen(a), 0) < 0)
			err = -ENOSPC;
		if (attr.ino && err != -ENOENT)
			pf_forget(sim->pool, attr.ino, 1);
		break;
	case 4:
		err = pf_readdir(sim->pool, shared_dir, 0, count_entry, &nr);
		if (!err && (nr < 2 || nr > SHARED_NAMES + 2 + 2 * THREADS))
			complain("the shared directory shows %u entries", nr);
		break;
	default:
		err = pf_rename(sim->pool, shared_dir, a, strlen(a), shared_dir, b, strlen(b), 2 /* RENAME_EXCHANGE */, (struct pf_cred){ 0 });
	}
	if (err && err != -ENOENT && err != -EEXIST && !no_space(err))
		complain("in the shared directory: %s", pf_strerror(err));
}

static void one_op(struct worker *w)
{
	unsigned i = (unsigned)rng_below(&w->rng, FILES);
	struct file *f = &w->files[i];
	w->ops++;
	if (rng_one_in(&w->rng, 3)) {
		do_shared(w);
		return;
	}
	if (!f->ino) {
		do_create(w, i);
		return;
	}
	switch (rng_below(&w->rng, 12)) {
	case 0:
		do_unlink(w, i);
		break;
	case 1:
		do_truncate(w, f);
		break;
	case 2: {
		int err = pf_fsync(sim->pool, f->ino);
		if (err)
			complain("fsync: %s", pf_strerror(err));
		break;
	}
	case 3:
	case 4:
	case 5:
		compare(w, f);
		break;
	default:
		do_write(w, f);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	while (!ended())
		one_op(w);
	return NULL;
}

/* What status and df ask for, beside all that. */
static void *watch(void *arg)
{
	(void)arg;
	while (!ended()) {
		struct pf_statfs st;
		struct timespec t = { .tv_nsec = 20000000 };
		pf_pool_statfs(sim->pool, &st);
		if (st.free_blocks > st.total_blocks)
			complain("df shows more free than there is");
		free(pf_pool_status_json(sim->pool));
		nanosleep(&t, NULL);
	}
	return NULL;
}

static uint64_t make_dir(const char *name)
{
	struct pf_attr attr = { 0 };
	if (pf_create(sim->pool, PF_ROOT_INO, name, strlen(name), S_IFDIR | 0755, cred, 0, 0, &attr))
		complain("cannot make %s", name);
	return attr.ino;
}

static void start(struct worker *w, unsigned nr, uint64_t seed)
{
	char name[16];
	w->nr = nr;
	w->rng.state = seed * 1000 + nr;
	sprintf(name, "t%u", nr);
	w->dir = make_dir(name);
	w->buf = aligned_alloc(4096, FILE_MAX + 8192);
	for (unsigned i = 0; i < FILES; i++)
		w->files[i].bytes = calloc(1, FILE_MAX);
	pthread_create(&w->thread, NULL, work, w);
}

static void look_again(struct worker *w)
{
	for (unsigned i = 0; i < FILES && !atomic_load(&failed); i++) {
		struct pf_attr attr;
		char name[32];
		file_name(name, i);
		int err = pf_lookup(sim->pool, w->dir, name, strlen(name), &attr);
		if (err && !(err == -ENOENT && !w->files[i].ino))
			complain("after the remount %s is not there: %s", name, pf_strerror(err));
		if (!err && attr.ino != w->files[i].ino)
			complain("after the remount %s is another file", name);
		if (!err)
			compare(w, &w->files[i]);
	}
}

int main(int argc, char **argv)
{
	unsigned seconds = 3;
	unsigned interval_ms = 20;
	struct simpool_config config = { .nr_members = 2, .size_bytes = 24 << 20, .seed = 1, .cache_bytes = 4 << 20 };
	for (int i = 1; i + 1 < argc; i += 2) {
		unsigned long v = strtoul(argv[i + 1], NULL, 0);
		if (!strcmp(argv[i], "--seconds"))
			seconds = (unsigned)v;
		else if (!strcmp(argv[i], "--seed"))
			config.seed = v;
		else if (!strcmp(argv[i], "--version"))
			config.version = (unsigned)v;
		else if (!strcmp(argv[i], "--members"))
			config.nr_members = (unsigned)v;
		else if (!strcmp(argv[i], "--mib"))
			config.size_bytes = (uint64_t)v << 20;
		else if (!strcmp(argv[i], "--interval"))
			interval_ms = (unsigned)v;
	}
	/* files are always being drained */
	config.stage_max = 12;
	config.map_max = 2;
	char why[512] = "";
	static struct worker workers[THREADS];
	pthread_t watcher;
	unsigned long ops = 0;
	sim = simpool_new(&config, why, sizeof(why));
	if (sim)
		sim->pool->commit_interval_ms = interval_ms;
	if (!sim || pf_pool_start_workers(sim->pool)) {
		complain("no pool: %s", why);
		return EXIT_FAILURE;
	}
	shared_dir = make_dir("shared");
	for (unsigned i = 0; i < THREADS; i++)
		start(&workers[i], i, config.seed);
	pthread_create(&watcher, NULL, watch, NULL);
	alarm(seconds + 120); /* a deadlock ends the test */
	struct timespec t = { .tv_sec = seconds };
	nanosleep(&t, NULL);
	atomic_store(&stop, true);
	pthread_join(watcher, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		ops += workers[i].ops;
	}
	if (simpool_close(sim, why, sizeof(why)) || simpool_check(sim, why, sizeof(why)) ||
	    simpool_open(sim, false, why, sizeof(why)))
		complain("%s", why);
	for (unsigned i = 0; i < THREADS && !atomic_load(&failed); i++)
		look_again(&workers[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned k = 0; k < FILES; k++)
			free(workers[i].files[k].bytes);
		free(workers[i].buf);
	}
	simpool_free(sim);
	printf("%lu operations by %u threads in %u s, %lu times no space: %s\n", ops, THREADS, seconds, atomic_load(&nr_full),
	       atomic_load(&failed) ? "failed" : "ok");
	if (atomic_load(&failed))
		printf("repeat with: test_parallel --seed %ju --seconds %u --version %u --members %u --mib %ju --interval %u\n",
		       (uintmax_t)config.seed, seconds, config.version, config.nr_members, (uintmax_t)(config.size_bytes >> 20),
		       interval_ms);
	return atomic_load(&failed) ? EXIT_FAILURE : EXIT_SUCCESS;
}
