/* SPDX-License-Identifier: MIT
 * What an attack on the engine found: races made certain by a clock that stops a thread where it hurts, operations that fail half
 * way, pools that have failed. */
#include "unit/posix_util.h"

#include "block/extent.h"
#include "object/orphan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

static void sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
	nanosleep(&t, NULL);
}

/* -- a thread that stops in the middle of a freeze -------------------------------------------------------------------- */
static atomic_int gate; /* 1: the next one to ask for the time waits, 2: it does, 0: nobody */
static atomic_bool done;

static int64_t stopping_clock(void *arg)
{
	int one = 1;
	if (atomic_compare_exchange_strong(&gate, &one, 2)) {
		while (atomic_load(&gate) == 2)
			sleep_ms(1);
	}
	return ((struct test_env *)arg)->now_ns;
}

static void *sync_file(void *arg)
{
	int err = pf_fsync(POOL, *(uint64_t *)arg);
	atomic_store(&done, true);
	return (void *)(intptr_t)err;
}

/* What was frozen a moment ago is neither dirty nor durable: an fsync waits for it too. */
START_TEST(fsync_waits_for_a_freeze_that_has_just_begun)
{
	pthread_t first, second;
	void *err;
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, "bytes", 5);
	sp->env.env.now_ns = stopping_clock;
	atomic_store(&gate, 1);
	pthread_create(&first, NULL, sync_file, &f);
	while (atomic_load(&gate) != 2)
		sleep_ms(1);
	atomic_store(&done, false);
	pthread_create(&second, NULL, sync_file, &f);
	sleep_ms(200);
	bool too_early = atomic_load(&done);
	atomic_store(&gate, 0);
	pthread_join(first, &err);
	ck_ok((intptr_t)err);
	pthread_join(second, &err);
	ck_ok((intptr_t)err);
	ck_assert_msg(!too_early, "fsync has returned before the checkpoint was durable");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attack");
	TCase *t = tcase_create("races");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, fsync_waits_for_a_freeze_that_has_just_begun);
	suite_add_tcase(s, t);
	return run_suite(s);
}
