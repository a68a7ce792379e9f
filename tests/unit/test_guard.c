/* SPDX-License-Identifier: MIT
 * Members that do not answer, one layer above the disks: who waits goes on, others are not held up, and what comes back late touches
 * nothing. A file that hangs is a pipe in the place of its descriptor: reads of an empty one wait. */
#include "member/aio.h"
#include "sim/simdisk.h"
#include "unit/aio_util.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK    4096u
#define SIZE     (UINT64_C(16) << 20)
#define NR_FILES 2
#define NR_IOS   3 /* the last one is in memory */
#define SILENCE  30 /* ticks, of 10 ms */

static char dir[] = "/tmp/test_guard.XXXXXX";
static struct pf_aio *aio;
static struct simworld *world;
static struct simdisk *disk;
static struct pf_io *ios[NR_IOS];
static int write_end = -1;
static pthread_t ticker;
static atomic_bool stop;
static atomic_uint nr_silent;

static void on_silent(void *arg, struct pf_io *io)
{
	ck_assert_ptr_eq(arg, &nr_silent);
	ck_assert_ptr_eq(io->guard, aio);
	nr_silent++;
}

static void *tick(void *arg)
{
	while (!stop) {
		usleep(10000);
		pf_aio_tick(aio, ios, NR_IOS);
	}
	return arg;
}

static void setup(void)
{
	ck_assert_int_eq(pf_aio_create(&aio), 0);
	open_files(dir, ios, NR_FILES, SIZE, 0);
	world = simworld_new();
	disk = simdisk_new(world, "memory", SIZE);
	ios[NR_FILES] = simdisk_open(disk, false);
	nr_silent = 0;
	stop = false;
	pf_aio_guard(aio, ios, NR_IOS, SILENCE, 10, on_silent, &nr_silent);
	pthread_create(&ticker, NULL, tick, NULL);
}

static void teardown(void)
{
	stop = true;
	pthread_join(ticker, NULL);
	for (unsigned i = 0; i < NR_IOS; i++)
		pf_aio_close_io(aio, ios[i]);
	pf_aio_destroy(aio);
	simworld_end_hangs(world);
	simdisk_set_hang(disk, 0);
	simworld_quiesce(world);
	simworld_free(world);
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

/* Reads of file 0 do not come back. */
static void hang_file(void)
{
	int pipes[2];
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_ge(dup2(pipes[0], ios[0]->fd), 0);
	close(pipes[0]);
	write_end = pipes[1];
}

/* Now they do, and with nothing. */
static void unhang_file(void)
{
	close(write_end);
}

static bool wait_released(const void *buf, size_t len)
{
	for (unsigned i = 0; i < 300 && pf_aio_holds(aio, buf, len); i++)
		usleep(10000);
	return !pf_aio_holds(aio, buf, len);
}

START_TEST(one_file_of_three_hangs)
{
	enum { NR = 300 };
	static struct pf_aio_req reqs[NR];
	uint8_t *buf = aligned_alloc(BLOCK, (size_t)NR * BLOCK);
	memset(buf, 7, (size_t)NR * BLOCK);
	for (unsigned i = 0; i < NR; i++)
		reqs[i] = (struct pf_aio_req){ ios[i % NR_IOS], PF_AIO_WRITE, i * BLOCK, buf + (size_t)i * BLOCK, BLOCK, 0, i % 2 };
	ck_assert_int_eq(pf_aio_run(aio, reqs, NR), 0);
	hang_file();
	memset(buf, 9, (size_t)NR * BLOCK);
	for (unsigned i = 0; i < NR; i++)
		reqs[i].op = PF_AIO_READ;
	ck_assert_int_eq(pf_aio_run(aio, reqs, NR), -EIO);
	for (unsigned i = 0; i < NR; i++) {
		ck_assert_int_eq(reqs[i].result, i % NR_IOS ? 0 : -EIO);
		ck_assert_uint_eq(buf[(size_t)i * BLOCK], i % NR_IOS ? 7 : 9);
	}
	ck_assert_uint_eq(nr_silent, 1);
	ck_assert(pf_io_failed(ios[0]) && !pf_io_failed(ios[1]) && !pf_io_failed(ios[2]));
	/* of the first window of the ring some are lost; of those the straight ones keep their buffers, and nobody else does */
	ck_assert(pf_aio_holds(aio, buf, (size_t)NR * BLOCK));
	ck_assert(pf_aio_holds(aio, buf + 3 * BLOCK, BLOCK));
	ck_assert(!pf_aio_holds(aio, buf, BLOCK));
	ck_assert(!pf_aio_holds(aio, buf + BLOCK, 2 * BLOCK));
	/* at once */
	ck_assert_int_eq(pf_io_read(ios[0], 0, buf, BLOCK), -EIO);
	ck_assert_int_eq(pf_io_flush(ios[0]), -EIO);
	ck_assert_int_eq(pf_io_read(ios[1], BLOCK, buf, BLOCK), 0);
	ck_assert_int_eq(pf_aio_flush(aio, ios + 1, 2, NULL), 0);
	pf_aio_free(aio, buf, (size_t)NR * BLOCK); /* LeakSanitizer sees whether that happens in the end */
	ck_assert(pf_aio_holds(aio, buf, (size_t)NR * BLOCK));
	unhang_file();
	ck_assert(wait_released(buf, (size_t)NR * BLOCK));
	ck_assert_int_eq(pf_io_read(ios[0], 0, NULL, 0), -EIO);
}
END_TEST

static int read_one(void *buf)
{
	return pf_io_read(ios[2], 0, buf, BLOCK);
}
static int write_one(void *buf)
{
	return pf_io_write(ios[2], 0, buf, BLOCK);
}
static int flush_one(void *buf)
{
	(void)buf;
	return pf_io_flush(ios[2]);
}
static int discard_one(void *buf)
{
	(void)buf;
	return pf_io_discard(ios[2], 0, BLOCK);
}
static int allocate_one(void *buf)
{
	(void)buf;
	return pf_io_allocate(ios[2], 0, BLOCK);
}

static const struct {
	unsigned op;
	int (*call)(void *buf);
} calls[] = { { SIM_READ, read_one },
	      { SIM_WRITE, write_one },
	      { SIM_FLUSH, flush_one },
	      { SIM_DISCARD, discard_one },
	      { SIM_ALLOCATE, allocate_one } };

/* Each call of the interface, by a proxy. The buffer is the caller's again at once. */
START_TEST(every_call_comes_back)
{
	uint8_t *buf = aligned_alloc(BLOCK, BLOCK);
	memset(buf, 3, BLOCK);
	uint64_t nr_writes = ios[2]->nr_writes, nr_durable = ios[2]->nr_writes_durable;
	simdisk_set_hang(disk, calls[_i].op);
	ck_assert_int_eq(calls[_i].call(buf), -EIO);
	ck_assert(!pf_aio_holds(aio, buf, BLOCK));
	ck_assert_uint_eq(nr_silent, 1);
	ck_assert_int_eq(calls[_i].call(buf), -EIO);
	nr_writes += calls[_i].op == SIM_WRITE;
	free(buf);
	simdisk_set_hang(disk, 0);
	simworld_quiesce(world);
	/* what ended late counts nowhere */
	ck_assert_uint_eq(ios[2]->nr_writes, nr_writes);
	ck_assert_uint_eq(ios[2]->nr_writes_durable, nr_durable);
	ck_assert_int_eq(pf_io_read(ios[2], 0, NULL, 0), -EIO);
}
END_TEST

/* Closed while a call is out: that one takes down the io, and what belongs to all of them. */
START_TEST(closed_meanwhile)
{
	uint8_t *buf = aligned_alloc(BLOCK, BLOCK);
	simdisk_set_hang(disk, SIM_READ);
	ck_assert_int_eq(pf_io_read(ios[2], 0, buf, BLOCK), -EIO);
	free(buf);
}
END_TEST

static void *slow_reads(void *arg)
{
	uint8_t *buf = aligned_alloc(BLOCK, BLOCK);
	intptr_t err = 0;
	for (unsigned i = 0; i < 5 && !err; i++)
		err = pf_io_read(ios[2], 0, buf, BLOCK);
	free(buf);
	(void)arg;
	return (void *)err;
}

/* A pause is no silence, nor are many of them. */
START_TEST(a_pause)
{
	pthread_t thread;
	pthread_create(&thread, NULL, slow_reads, NULL);
	for (unsigned i = 0; i < 12; i++) {
		simdisk_set_hang(disk, i % 2 ? 0 : SIM_READ);
		usleep(SILENCE * 10000 / 3);
	}
	void *err;
	pthread_join(thread, &err);
	ck_assert_ptr_null(err);
	ck_assert_uint_eq(nr_silent, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("guard");
	TCase *tc = tcase_create("guard");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, one_file_of_three_hangs);
	tcase_add_loop_test(tc, every_call_comes_back, 0, 5);
	tcase_add_test(tc, closed_meanwhile);
	tcase_add_test(tc, a_pause);
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
