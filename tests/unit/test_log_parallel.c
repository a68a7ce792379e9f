/* SPDX-License-Identifier: MIT
 * Many threads on one log: groups that share a flush, and everything at once under ThreadSanitizer. */
#include "log_util.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define NR_THREADS  8
#define LONG_RECORD (20 * PAYLOAD)

static const uint32_t rings[] = { 256, 200, 0 };
static struct rig rig;

static void nap(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };
	nanosleep(&ts, NULL);
}

/* -- groups --------------------------------------------------------------------------------------------------------- */
static void append_one(uint32_t data_members)
{
	uint8_t bytes[64];
	record_fill(bytes, sizeof(bytes), 0, no_extra);
	struct pf_log_part part = { bytes, sizeof(bytes) };
	ck_assert(pf_log_append(rig.log, &part, 1, data_members));
}

static void *commit(void *arg)
{
	*(int *)arg = pf_log_commit(rig.log);
	return NULL;
}

static void *append_and_commit(void *arg)
{
	append_one(0);
	return commit(arg);
}

/* Comes back when it is in one of @ops on the disk, where it stays. */
static void start_and_hang(pthread_t *thread, void *(*run)(void *), void *arg, struct simdisk *disk, unsigned ops)
{
	simdisk_set_hang(disk, ops);
	pthread_create(thread, NULL, run, arg);
	while (simdisk_nr_hung(disk) == 0)
		nap(100);
}

/* While the flush of the first is under way seven others come: one more flush serves them all. */
static void group(int expected, unsigned failing_ops, uint64_t skip, unsigned nr_flushes)
{
	pthread_t threads[NR_THREADS];
	int results[NR_THREADS];
	rig_new(&rig, 3, rings, 0);
	struct simdisk *disk = simworld_disk(rig.world, 1);
	start_and_hang(&threads[0], append_and_commit, &results[0], disk, SIM_FLUSH);
	for (unsigned i = 1; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, append_and_commit, &results[i]);
	while (rig_stats(&rig).nr_records < NR_THREADS)
		nap(100);
	nap(30000); /* for all to be waiting; a late one would have its own flush, which the count allows for */
	struct sim_fault fault = { .disk = disk, .ops = failing_ops, .skip = skip };
	if (failing_ops)
		simworld_add_fault(rig.world, &fault);
	simdisk_set_hang(disk, 0);
	for (unsigned i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < NR_THREADS; i++)
		ck_assert_int_eq(results[i], i == 0 ? 0 : expected);
	ck_assert_uint_ge(simdisk_count(disk, SIM_FLUSH), nr_flushes);
	ck_assert_uint_lt(simdisk_count(disk, SIM_FLUSH), NR_THREADS / 2);
	ck_assert_uint_lt(simdisk_count(simworld_disk(rig.world, 0), SIM_FLUSH), NR_THREADS / 2);
	ck_assert_uint_eq(simdisk_count(simworld_disk(rig.world, 2), SIM_FLUSH), 0);
}

START_TEST(followers_share)
{
	group(0, 0, 0, 2);
	struct pf_log_stats stats = rig_stats(&rig);
	ck_assert_uint_eq(stats.nr_waiters, NR_THREADS);
	ck_assert_uint_lt(stats.nr_commits, NR_THREADS / 2);
	ck_assert_uint_lt(stats.blocks_written, NR_THREADS / 2); /* and a block */
	rig_free(&rig);
}
END_TEST

START_TEST(followers_share_failures)
{
	group(-EAGAIN, SIM_WRITE, 0, 1);
	rig_free(&rig);
	group(-EIO, SIM_FLUSH, 1, 2); /* the one that hangs still goes well */
	rig_free(&rig);
}
END_TEST

/* A gap while they wait: those of the round under way are served, the others are told after it. */
START_TEST(gap_while_waiting)
{
	pthread_t threads[3];
	int results[3];
	rig_new(&rig, 2, rings, 0);
	struct simdisk *disk = simworld_disk(rig.world, 1);
	start_and_hang(&threads[0], append_and_commit, &results[0], disk, SIM_FLUSH);
	pthread_create(&threads[1], NULL, commit, &results[1]); /* nothing new: the same round */
	nap(10000);
	append_one(0);
	pthread_create(&threads[2], NULL, commit, &results[2]);
	nap(10000);
	pf_log_lose(rig.log);
	simdisk_set_hang(disk, 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(results[0], 0);
	ck_assert(results[1] == 0 || results[1] == -EAGAIN); /* the latter if it came late */
	ck_assert_int_eq(results[2], -EAGAIN);
	rig_free(&rig);
}
END_TEST

/* A wait without a thread of its own. */
struct call {
	struct pf_log_wait wait; /* first */
	unsigned nr_calls, first, second;
	int result;
	pthread_t by;
};
static atomic_uint nr_calls;

static bool called(struct pf_log_wait *wait)
{
	struct call *c = (struct call *)wait;
	unsigned at = atomic_fetch_add(&nr_calls, 1);
	*(c->nr_calls++ ? &c->second : &c->first) = at;
	c->result = wait->result;
	c->by = pthread_self();
	return c->nr_calls < 2;
}

static atomic_uint nr_meanwhile;

static void count_meanwhile(void *arg)
{
	(void)arg;
	nr_meanwhile++;
}

/* What is to be done meanwhile does not wait for disks, nor for what others do with the same commit. */
static bool called_after_meanwhile(struct pf_log_wait *wait)
{
	ck_assert_uint_eq(nr_meanwhile, 1);
	return called(wait);
}

static void *append_and_start(void *arg)
{
	append_one(0);
	pf_log_commit_start(rig.log, arg, &(struct pf_meanwhile){ .run = count_meanwhile });
	return NULL;
}

START_TEST(meanwhile)
{
	static const unsigned where[] = { SIM_WRITE, SIM_FLUSH };
	for (unsigned i = 0; i < 2; i++) {
		struct call call = { .wait = { .done = called_after_meanwhile } };
		pthread_t thread;
		atomic_store(&nr_meanwhile, 0);
		rig_new(&rig, 2, rings, 0);
		start_and_hang(&thread, append_and_start, &call.wait, simworld_disk(rig.world, 1), where[i]);
		ck_assert_uint_eq(nr_meanwhile, 1);
		ck_assert_uint_eq(call.nr_calls, 0);
		simdisk_set_hang(simworld_disk(rig.world, 1), 0);
		pthread_join(thread, NULL);
		ck_assert(call.nr_calls == 2 && call.result == 0);
		ck_assert_uint_eq(nr_meanwhile, 1);
		rig_free(&rig);
	}
}
END_TEST

/* A checkpoint that becomes durable while they wait serves them, without another round. */
START_TEST(release_while_waiting)
{
	pthread_t thread;
	int result;
	struct call second = { .wait = { .done = called } };
	rig_new(&rig, 2, rings, 0);
	struct simdisk *disk = simworld_disk(rig.world, 1);
	start_and_hang(&thread, append_and_commit, &result, disk, SIM_FLUSH);
	append_one(0);
	pf_log_commit_start(rig.log, &second.wait, NULL);
	pf_log_release(rig.log, pf_log_freeze(rig.log));
	/* what is being written keeps its memory, and its place in the ring */
	for (unsigned i = 0; i < 40; i++)
		append_one(0);
	simdisk_set_hang(disk, 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, 0);
	ck_assert(second.nr_calls == 2 && second.result == 0);
	ck_assert_uint_eq(rig_stats(&rig).nr_commits, 1);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	rig_free(&rig);
}
END_TEST

/* Waits without a thread of their own: all of a commit have their first call before any has its second, by whoever made it. */
START_TEST(waits_without_threads)
{
	static struct call calls[NR_THREADS];
	pthread_t thread;
	int result;
	memset(calls, 0, sizeof(calls));
	atomic_store(&nr_calls, 0);
	atomic_store(&nr_meanwhile, 0);
	rig_new(&rig, 2, rings, 0);
	struct simdisk *disk = simworld_disk(rig.world, 1);
	start_and_hang(&thread, append_and_commit, &result, disk, SIM_FLUSH);
	for (unsigned i = 0; i < NR_THREADS; i++) {
		append_one(0);
		calls[i].wait.done = called;
		struct pf_meanwhile meanwhile = { .run = count_meanwhile };
		pf_log_commit_start(rig.log, &calls[i].wait, &meanwhile);
		ck_assert_uint_eq(nr_meanwhile, i + 1); /* although it waits for another's round */
		ck_assert_uint_eq(calls[i].nr_calls, 0);
	}
	simdisk_set_hang(disk, 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, 0);
	for (unsigned i = 0; i < NR_THREADS; i++) {
		ck_assert_uint_eq(calls[i].nr_calls, 2);
		ck_assert_int_eq(calls[i].result, 0);
		ck_assert_uint_lt(calls[i].first, NR_THREADS);
		ck_assert_uint_ge(calls[i].second, NR_THREADS);
		ck_assert(pthread_equal(calls[i].by, thread));
	}
	ck_assert_uint_eq(rig_stats(&rig).nr_commits, 2);
	/* nobody is at it: at once; and when there is nothing to do, or nothing can be promised */
	struct call now = { .wait = { .done = called } };
	append_one(0);
	pf_log_commit_start(rig.log, &now.wait, NULL);
	ck_assert(now.nr_calls == 2 && now.result == 0 && pthread_equal(now.by, pthread_self()));
	pf_log_commit_start(rig.log, &now.wait, &(struct pf_meanwhile){ .run = count_meanwhile });
	ck_assert(now.nr_calls == 3 && now.result == 0);
	pf_log_lose(rig.log);
	pf_log_commit_start(rig.log, &now.wait, &(struct pf_meanwhile){ .run = count_meanwhile });
	ck_assert(now.nr_calls == 4 && now.result == -EAGAIN);
	ck_assert_uint_eq(nr_meanwhile, NR_THREADS + 2);
	rig_free(&rig);
}
END_TEST

/* What is being written keeps its memory although a checkpoint has made it unnecessary, while others append as much as they can. */
static void *append_long_and_commit(void *arg)
{
	rig_append(&rig, LONG_RECORD, 0, no_extra);
	return commit(arg);
}

START_TEST(release_while_writing)
{
	static uint8_t a[BLOCK], b[BLOCK];
	pthread_t thread;
	int result;
	rig_new(&rig, 2, rings, 0);
	struct simdisk *disk = simworld_disk(rig.world, 1);
	start_and_hang(&thread, append_long_and_commit, &result, disk, SIM_WRITE);
	rig_checkpoint(&rig);
	while (rig_append(&rig, 4032, 0, no_extra))
		;
	simdisk_set_hang(disk, 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(result, 0);
	for (uint64_t lsn = 0; lsn < LONG_RECORD / PAYLOAD; lsn++) {
		simdisk_peek(simworld_disk(rig.world, 0), place(&rig, 0, lsn), a, BLOCK);
		simdisk_peek(disk, place(&rig, 1, lsn), b, BLOCK);
		ck_assert(pf_get64(((struct pf_disk_log_head *)a)->lsn) == lsn && memcmp(a, b, BLOCK) == 0);
	}
	rig_free(&rig);
}
END_TEST

/* Who is told of a gap waits for the round that has his writes. */
struct taker {
	struct pf_aio_req req;
	struct pf_log_writes writes;
	atomic_bool back;
};

static void *commit_and_take_back(void *arg)
{
	struct taker *t = arg;
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	pf_log_take_back(rig.log, &t->writes);
	atomic_store(&t->back, true);
	return NULL;
}

static void *take_back(void *arg)
{
	struct taker *t = arg;
	pf_log_take_back(rig.log, &t->writes);
	atomic_store(&t->back, true);
	return NULL;
}

START_TEST(take_back_while_writing)
{
	static uint8_t data[BLOCK] __attribute__((aligned(BLOCK)));
	pthread_t threads[2];
	static struct taker takers[2];
	memset(takers, 0, sizeof(takers));
	rig_new(&rig, 3, rings, 0);
	struct simdisk *disk = simworld_disk(rig.world, 2);
	for (unsigned i = 0; i < 2; i++) {
		uint8_t bytes[64];
		record_fill(bytes, sizeof(bytes), 0, no_extra);
		struct pf_log_part part = { bytes, sizeof(bytes) };
		pf_set_req(rig.set, &takers[i].req, PF_AIO_WRITE, pf_addr_make(2, 2000 + i), data, 1);
		takers[i].writes = (struct pf_log_writes){ .reqs = &takers[i].req, .nr = 1 };
		ck_assert(pf_log_append_with(rig.log, &part, 1, 1 << 2, &takers[i].writes));
	}
	start_and_hang(&threads[0], commit_and_take_back, &takers[0], disk, SIM_WRITE);
	pthread_create(&threads[1], NULL, take_back, &takers[1]);
	nap(10000);
	pf_log_lose(rig.log);
	nap(10000);
	ck_assert(!atomic_load(&takers[0].back) && !atomic_load(&takers[1].back));
	simdisk_set_hang(disk, 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		ck_assert(takers[i].writes.done);
		ck_assert_int_eq(takers[i].req.result, 0);
	}
	rig_free(&rig);
}
END_TEST

/* -- everything at once --------------------------------------------------------------------------------------------- */
struct worker {
	pthread_t thread;
	unsigned index;
	uint64_t acked; /* records of this thread, from 0 */
	unsigned nr_again;
};

static pthread_rwlock_t tree = PTHREAD_RWLOCK_INITIALIZER; /* held for append, as by the callers of the log */
static atomic_bool stop;
static uint64_t first_of[NR_THREADS]; /* at the last freeze that was released: the record that comes next */

/* Record n of thread t has the number n * NR_THREADS + t. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct rng rng = { .state = w->index };
	static const unsigned nr_records = 600;
	for (uint64_t n = 0; n < nr_records; n++) {
		uint32_t len = (uint32_t)(32 + 8 * (rng_next(&rng) % (n % 50 == 0 ? 2000 : 50)));
		uint8_t *bytes = malloc(len);
		record_fill(bytes, len, n * NR_THREADS + w->index, no_extra);
		struct pf_log_part part = { bytes, len };
		pthread_rwlock_rdlock(&tree);
		pf_log_append(rig.log, &part, 1, 1 << 2);
		pthread_rwlock_unlock(&tree);
		free(bytes);
		if (rng_next(&rng) % 3)
			continue;
		int err = pf_log_commit(rig.log);
		ck_assert(err == 0 || err == -EAGAIN);
		if (!err)
			w->acked = n + 1;
		w->nr_again += err != 0;
		if (err)
			nap(200); /* a checkpoint is on its way */
		if (rng_next(&rng) % 16 == 0)
			pf_log_write_behind(rig.log);
	}
	return NULL;
}

static void *checkpoints(void *arg)
{
	struct rng rng = { .state = 99 };
	(void)arg;
	while (!atomic_load(&stop)) {
		pthread_rwlock_wrlock(&tree);
		uint64_t lsn = pf_log_freeze(rig.log);
		pthread_rwlock_unlock(&tree);
		nap(300);
		pf_log_release(rig.log, lsn);
		rig.super.log_start = lsn;
		if (rng_next(&rng) % 8 == 0)
			pf_log_lose(rig.log);
		pf_log_wants_checkpoint(rig.log);
		nap(300);
	}
	return NULL;
}

static void run_workers(struct worker *workers, bool with_checkpoints)
{
	pthread_t other;
	atomic_store(&stop, false);
	if (with_checkpoints)
		pthread_create(&other, NULL, checkpoints, NULL);
	for (unsigned i = 0; i < NR_THREADS; i++) {
		workers[i] = (struct worker){ .index = i };
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < NR_THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&stop, true);
	if (with_checkpoints)
		pthread_join(other, NULL);
}

/* Each thread's records in its own order, without holes, up to what it was promised at least. */
static void check_workers(const struct worker *workers)
{
	struct pf_log_scan scan;
	struct pf_diag diag;
	uint64_t next[NR_THREADS];
	memcpy(next, first_of, sizeof(next));
	ck_assert_int_eq(rig_scan(&rig, rig.super.log_start, &scan, &diag), 0);
	for (unsigned i = 0; i < scan.nr_records; i++) {
		uint64_t number = record_number(&scan.records[i]);
		unsigned t = number % NR_THREADS;
		if (next[t] == UINT64_MAX)
			next[t] = number / NR_THREADS;
		ck_assert_uint_eq(number / NR_THREADS, next[t]);
		next[t]++;
	}
	for (unsigned t = 0; t < NR_THREADS; t++)
		ck_assert(next[t] == UINT64_MAX || next[t] >= workers[t].acked);
	pf_log_scan_free(&scan);
}

START_TEST(everything_in_the_log)
{
	static const uint32_t large[] = { 8192, 8192, 0 };
	struct worker workers[NR_THREADS];
	rig_new_of(&rig, UINT64_C(2) << 30, 3, large, 77);
	memset(first_of, 0, sizeof(first_of));
	run_workers(workers, false);
	check_workers(workers);
	for (unsigned i = 0; i < NR_THREADS; i++)
		ck_assert_uint_eq(workers[i].nr_again, 0);
	struct pf_log_stats stats = rig_stats(&rig);
	ck_assert_uint_le(stats.nr_commits, stats.nr_waiters);
	ck_assert_uint_eq(simdisk_count(simworld_disk(rig.world, 0), SIM_FLUSH), stats.nr_commits);
	rig_free(&rig);
}
END_TEST

START_TEST(with_checkpoints_and_gaps)
{
	struct worker workers[NR_THREADS];
	rig_new(&rig, 3, rings, 5);
	for (unsigned i = 0; i < NR_THREADS; i++)
		first_of[i] = UINT64_MAX; /* whatever comes first in the log */
	run_workers(workers, true);
	check_workers(workers);
	/* it has not got stuck */
	rig_checkpoint(&rig);
	append_one(0);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log_parallel");
	TCase *tc = tcase_create("log_parallel");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, followers_share);
	tcase_add_test(tc, followers_share_failures);
	tcase_add_test(tc, gap_while_waiting);
	tcase_add_test(tc, release_while_waiting);
	tcase_add_test(tc, meanwhile);
	tcase_add_test(tc, waits_without_threads);
	tcase_add_test(tc, release_while_writing);
	tcase_add_test(tc, take_back_while_writing);
	tcase_add_test(tc, everything_in_the_log);
	tcase_add_test(tc, with_checkpoints_and_gaps);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
