/* SPDX-License-Identifier: MIT
 * fsyncs that nobody waits for: what can be done with the file meanwhile, who is told what and when, and that nothing gets stuck. */
#include "unit/intent_util.h"

#include <pthread.h>

#define NR_FILES 6

/* -- one that is under way ------------------------------------------------------------------------------------------------ */
struct result {
	atomic_int nr, err;
};

static void told(void *arg, int err)
{
	struct result *r = arg;
	atomic_store(&r->err, err);
	atomic_fetch_add(&r->nr, 1);
}

static void wait_told(struct result *r)
{
	for (unsigned k = 0; !atomic_load(&r->nr); k++) {
		ck_assert_msg(k < 20000, "an fsync is never answered");
		usleep(500);
	}
}

static void ck_told(struct result *r, int err)
{
	wait_told(r);
	ck_assert_int_eq(atomic_load(&r->nr), 1);
	ck_assert_int_eq(atomic_load(&r->err), err);
}

static uint64_t files[NR_FILES];
static pthread_t leader;

static void *sync_first(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pf_fsync(POOL, files[0]);
}

/* The commit of the first file hangs in the flush of the first member; each file has unsynced bytes. */
static void hang(int scene)
{
	begin(scene);
	for (unsigned k = 0; k < NR_FILES; k++) {
		char name[8];
		sprintf(name, "%u", k);
		files[k] = make_file(PF_ROOT_INO, name);
		put(files[k], 0, "old", 3);
	}
	ck_ok(pf_pool_sync(POOL));
	for (unsigned k = 0; k < NR_FILES; k++)
		put(files[k], 0, "new", 3);
	simdisk_set_hang(simworld_disk(sp->world, 0), SIM_FLUSH);
	ck_assert_int_eq(pthread_create(&leader, NULL, sync_first, NULL), 0);
	while (!simdisk_nr_hung(simworld_disk(sp->world, 0)))
		usleep(100);
}

static void go_on(void)
{
	void *err;
	simdisk_set_hang(simworld_disk(sp->world, 0), 0);
	pthread_join(leader, &err);
	ck_ok((int)(intptr_t)err);
}

static void *write_second(void *arg)
{
	put(files[1], 3, "er", 2);
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

/* Read as ever; who changes it waits; who syncs it too is told with the first. */
START_TEST(the_file_meanwhile)
{
	struct result first = { 0 }, again = { 0 };
	atomic_bool written = false;
	pthread_t writer;
	struct pf_attr attr;
	hang(_i);
	pf_fsync_start(POOL, files[1], told, &first);
	pf_fsync_start(POOL, files[1], told, &again);
	ck_bytes(files[1], 0, "new", 3);
	ck_ok(pf_getattr(POOL, files[1], &attr));
	ck_assert_int_eq(pthread_create(&writer, NULL, write_second, &written), 0);
	put(files[2], 0, "others", 6); /* are written */
	usleep(20000);
	ck_assert(!atomic_load(&first.nr) && !atomic_load(&again.nr) && !atomic_load(&written));
	uint64_t flushes = count(0, SIM_FLUSH);
	go_on();
	ck_told(&first, 0);
	ck_told(&again, 0);
	pthread_join(writer, NULL);
	ck_bytes(files[1], 0, "newer", 5);
	ck_assert_uint_le(count(0, SIM_FLUSH) - flushes, 2); /* the one that hung, and one for both */
	for (unsigned k = 0; k < NR_FILES; k++)
		ck_ok(pf_fsync(POOL, files[k]));
	crash_and_compare(_i);
	end();
}
END_TEST

/* A checkpoint waits for them, and they for nobody. */
static void *sync_pool(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pf_pool_sync(POOL);
}

START_TEST(a_checkpoint_meanwhile)
{
	struct result results[NR_FILES];
	pthread_t checkpoint;
	void *err;
	memset(results, 0, sizeof(results));
	hang(_i);
	for (unsigned k = 1; k < NR_FILES; k++)
		pf_fsync_start(POOL, files[k], told, &results[k]);
	ck_assert_int_eq(pthread_create(&checkpoint, NULL, sync_pool, NULL), 0);
	usleep(20000);
	go_on();
	for (unsigned k = 1; k < NR_FILES; k++)
		ck_told(&results[k], 0);
	pthread_join(checkpoint, &err);
	ck_ok((int)(intptr_t)err);
	crash_and_compare(_i);
	end();
}
END_TEST

/* Their commit fails: a checkpoint makes the promise, when all of them have let go of it. */
static void refused(int scene, const struct sim_fault *fault, int expected)
{
	struct result results[NR_FILES][2];
	memset(results, 0, sizeof(results));
	hang(scene);
	for (unsigned k = 1; k < NR_FILES; k++) {
		pf_fsync_start(POOL, files[k], told, &results[k][0]);
		pf_fsync_start(POOL, files[k], told, &results[k][1]);
	}
	struct sim_fault f = *fault;
	f.disk = simworld_disk(sp->world, 0);
	simworld_add_fault(sp->world, &f);
	go_on();
	for (unsigned k = 1; k < NR_FILES; k++) {
		ck_told(&results[k][0], expected);
		ck_told(&results[k][1], expected);
	}
	simworld_clear_faults(sp->world);
	if (expected)
		crash(scene); /* closing would only say it again */
	else
		crash_and_compare(scene);
	end();
}

START_TEST(a_log_that_cannot_be_written)
{
	/* the first write is of the log, or of data, which leaves with it */
	refused(_i, &(struct sim_fault){ .ops = SIM_WRITE, .kind = SIM_FAIL, .count = 1 }, 0);
	refused(_i, &(struct sim_fault){ .ops = SIM_WRITE, .kind = SIM_FAIL, .count = 3 }, 0);
}
END_TEST

START_TEST(a_flush_that_fails)
{
	/* the one that hangs goes well; with a second metadata member the pool can do without this one */
	struct sim_fault fault = { .ops = SIM_FLUSH, .kind = SIM_FAIL, .skip = 1, .count = 1 };
	if (!(_i & TWO_MEMBERS))
		refused(_i, &fault, -EIO);
}
END_TEST

START_TEST(a_record_that_is_lost)
{
	struct result results[NR_FILES];
	memset(results, 0, sizeof(results));
	hang(_i);
	for (unsigned k = 1; k < NR_FILES / 2; k++)
		pf_fsync_start(POOL, files[k], told, &results[k]);
	pf_log_lose(POOL->log);
	go_on();
	for (unsigned k = NR_FILES / 2; k < NR_FILES; k++)
		pf_fsync_start(POOL, files[k], told, &results[k]);
	for (unsigned k = 1; k < NR_FILES; k++)
		ck_told(&results[k], 0);
	crash_and_compare(_i);
	end();
}
END_TEST

/* -- answered at once ------------------------------------------------------------------------------------------------------ */
START_TEST(at_once)
{
	struct result none = { 0 }, one = { 0 }, clean = { 0 };
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, "bytes", 5);
	pf_fsync_start(POOL, 12345, told, &none);
	ck_assert(none.nr == 1 && none.err == -ESTALE);
	pf_fsync_start(POOL, f, told, &one);
	ck_assert(one.nr == 1 && one.err == 0);
	pf_fsync_start(POOL, f, told, &clean);
	ck_assert(clean.nr == 1 && clean.err == 0);
	crash_and_compare(_i);
	end();
}
END_TEST

/* -- before it is asked for ------------------------------------------------------------------------------------------------ */
static struct timespec mtime_of(uint64_t ino)
{
	struct pf_attr attr;
	ck_ok(pf_getattr(POOL, ino, &attr));
	return attr.mtime;
}

/* What an attempt to sync ahead costs in flushes. */
static atomic_uint nr_answers;

static void answer(void *arg)
{
	(void)arg;
	nr_answers++;
}

static uint64_t ahead(uint64_t ino, struct timespec now)
{
	uint64_t before = count(0, SIM_FLUSH);
	unsigned answers = nr_answers;
	pf_fsync_ahead(POOL, ino, &now, &(struct pf_meanwhile){ .run = answer });
	ck_assert_uint_eq(nr_answers, answers + 1);
	return count(0, SIM_FLUSH) - before;
}

static void in_step(uint64_t f, unsigned nr)
{
	for (unsigned k = 0; k < nr; k++) {
		put(f, 4096 * k, "step", 4);
		sync_by_log(f);
	}
}

START_TEST(a_guess)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	ck_ok(pf_pool_sync(POOL));
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 0);
	ck_assert_uint_eq(ahead(12345, mtime_of(f)), 0);
	in_step(f, 3);
	put(f, 0, "three are not enough", 20);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 0);
	sync_by_log(f);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 0); /* nothing was written */
	put(f, 0, "its time is to come", 19);
	struct timespec later = mtime_of(f);
	later.tv_nsec++;
	ck_assert_uint_eq(ahead(f, later), 0);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 1);
	uint64_t flushes = count(0, SIM_FLUSH);
	sync_by_log(f); /* has been done */
	ck_assert_uint_eq(count(0, SIM_FLUSH), flushes);
	put(f, 0, "durable without an fsync", 24);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 1);
	crash_and_compare(_i);
	end();
}
END_TEST

START_TEST(a_wrong_guess)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	in_step(f, 10);
	put(f, 0, "one", 3);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 1);
	put(f, 4096, "two", 3); /* and no fsync between them */
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 0);
	sync_by_log(f);
	for (unsigned k = 0; k < 4; k++) {
		put(f, 0, "has to be in step again", 23);
		ck_assert_uint_eq(ahead(f, mtime_of(f)), 0);
		sync_by_log(f);
	}
	put(f, 0, "is", 2);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 1);
	sync_by_log(f);
	crash_and_compare(_i);
	end();
}
END_TEST

/* Nobody hears of a failure before he asks. */
START_TEST(a_guess_that_fails)
{
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	in_step(f, 10);
	put(f, 0, "not on disk", 11);
	struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_FAIL };
	simworld_add_fault(sp->world, &fault);
	ahead(f, mtime_of(f));
	ck_bytes(f, 0, "not on disk", 11);
	ck_assert_int_lt(pf_fsync(POOL, f), 0);
	simworld_clear_faults(sp->world);
	ck_ok(pf_fsync(POOL, f));
	crash_and_compare(_i);
	end();
}
END_TEST

static void *guess(void *arg)
{
	uint64_t f = *(uint64_t *)arg;
	struct timespec now = mtime_of(f);
	pf_fsync_ahead(POOL, f, &now, &(struct pf_meanwhile){ .run = answer });
	return NULL;
}

/* The write is answered whatever the disk does, and whatever others do with the file. */
START_TEST(a_guess_that_hangs)
{
	static const unsigned where[] = { SIM_WRITE, SIM_FLUSH };
	begin(_i);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	struct simdisk *disk = simworld_disk(sp->world, 0);
	for (unsigned i = 0; i < 2; i++) {
		pthread_t thread;
		in_step(f, 10);
		put(f, 0, "is answered", 11);
		unsigned answers = nr_answers;
		simdisk_set_hang(disk, where[i]);
		pthread_create(&thread, NULL, guess, &f);
		while (!simdisk_nr_hung(disk))
			usleep(100);
		ck_assert_uint_eq(nr_answers, answers + 1);
		ck_assert_uint_eq(ahead(f, mtime_of(f)), 0); /* what another has begun is left to it */
		simdisk_set_hang(disk, 0);
		pthread_join(thread, NULL);
		uint64_t flushes = count(0, SIM_FLUSH);
		sync_by_log(f);
		ck_assert_uint_eq(count(0, SIM_FLUSH), flushes);
	}
	crash_and_compare(_i);
	end();
}
END_TEST

/* Without a log, and where nothing may be written. */
START_TEST(no_guess)
{
	struct simpool_config config = { .version = 5, .nr_members = 1, .size_bytes = 32 * MIB, .cache_bytes = 64 * MIB, .seed = 1 };
	begin_config(&config);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	for (unsigned k = 0; k < 10; k++) {
		put(f, 0, "step", 4);
		ck_ok(pf_fsync(POOL, f));
	}
	put(f, 0, "more", 4);
	ck_assert_uint_eq(ahead(f, mtime_of(f)), 0);
	end();
}
END_TEST

/* -- many ------------------------------------------------------------------------------------------------------------------ */
#define NR_THREADS 4
#define NR_ROUNDS  150

static void *write_and_start(void *arg)
{
	unsigned t = (unsigned)(uintptr_t)arg;
	static struct result results[NR_THREADS][NR_ROUNDS];
	memset(results[t], 0, sizeof(results[t]));
	for (unsigned k = 0; k < NR_ROUNDS; k++) {
		char text[32];
		sprintf(text, "thread %u round %03u", t, k);
		put(files[(t + k) % NR_FILES], 4096 * (t * NR_ROUNDS + k), text, (unsigned)strlen(text));
		pf_fsync_start(POOL, files[(t + k) % NR_FILES], told, &results[t][k]);
		if (k % 40 == 7)
			pf_log_lose(POOL->log);
		if (k % 50 == t)
			ck_ok(pf_pool_sync(POOL));
		if (k % 16 == 3)
			wait_told(&results[t][k]);
	}
	for (unsigned k = 0; k < NR_ROUNDS; k++)
		ck_told(&results[t][k], 0);
	return NULL;
}

START_TEST(many_at_once)
{
	pthread_t threads[NR_THREADS];
	begin(_i);
	for (unsigned k = 0; k < NR_FILES; k++) {
		char name[8];
		sprintf(name, "%u", k);
		files[k] = make_file(PF_ROOT_INO, name);
	}
	for (uintptr_t t = 0; t < NR_THREADS; t++)
		ck_assert_int_eq(pthread_create(&threads[t], NULL, write_and_start, (void *)t), 0);
	for (unsigned t = 0; t < NR_THREADS; t++)
		pthread_join(threads[t], NULL);
	crash_and_compare(_i);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fsync_start");
	TCase *tc = tcase_create("fsync_start");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, the_file_meanwhile, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_checkpoint_meanwhile, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_log_that_cannot_be_written, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_flush_that_fails, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_record_that_is_lost, 0, NR_SCENES);
	tcase_add_loop_test(tc, at_once, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_guess, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_wrong_guess, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_guess_that_fails, 0, NR_SCENES);
	tcase_add_loop_test(tc, a_guess_that_hangs, 0, NR_SCENES);
	tcase_add_test(tc, no_guess);
	tcase_add_loop_test(tc, many_at_once, 0, NR_SCENES);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
