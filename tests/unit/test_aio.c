/* SPDX-License-Identifier: MIT
 * Batches over io_uring: more requests than the ring holds, files and disks in memory mixed, errors of single requests,
 * flushes that fail for ever, many threads; and all of it again in a process that may not use io_uring, and under a guard. */
#include "member/aio.h"
#include "sim/simdisk.h"
#include "unit/aio_util.h"

#include <check.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK    4096u
#define SIZE     (UINT64_C(16) << 20)
#define NR_FILES 3
#define NR_IOS   4 /* the last one is in memory */
#define NR_REQS  1000

static char dir[] = "/tmp/test_aio.XXXXXX";
static struct pf_aio *aio;
static struct simworld *world;
static struct pf_io *ios[NR_IOS];
static struct pf_aio_req reqs[NR_REQS];
static uint8_t *buf;

static void setup(void)
{
	ck_assert_int_eq(pf_aio_create(&aio), 0);
	open_files(dir, ios, NR_FILES, SIZE, 1 << 1);
	world = simworld_new();
	ios[NR_FILES] = simdisk_open(simdisk_new(world, "memory", SIZE), false);
	buf = aligned_alloc(BLOCK, (size_t)NR_REQS * 2 * BLOCK);
}

/* As a sandbox does it: the call is refused. Holds for this (forked) test only. */
static void setup_without(uint32_t call)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };
	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	setup();
}

static void setup_without_uring(void)
{
	setup_without(__NR_io_uring_setup);
}

/* A ring that is made but takes nothing: each batch finds its ring broken, and has to be finished without. */
static void setup_with_broken_rings(void)
{
	setup_without(__NR_io_uring_enter);
}

static void nobody_is_silent(void *arg, struct pf_io *io)
{
	(void)arg;
	ck_abort_msg("%s", io->name);
}

static void guard(void)
{
	pf_aio_guard(aio, ios, NR_IOS, 3600, 1000, nobody_is_silent, NULL);
}

static void setup_guarded(void)
{
	setup();
	guard();
}

static void setup_guarded_without_uring(void)
{
	setup_without_uring();
	guard();
}

static void setup_guarded_with_broken_rings(void)
{
	setup_with_broken_rings();
	guard();
}

static void teardown(void)
{
	for (unsigned i = 0; i < NR_IOS; i++)
		pf_io_close(ios[i]);
	simworld_free(world);
	pf_aio_destroy(aio);
	free(buf);
	char command[64];
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

/* Request i: two blocks, spread over all members; its bytes are a function of @salt and i. */
static void fill(unsigned i, enum pf_aio_op op, unsigned salt)
{
	uint8_t *bytes = buf + (size_t)i * 2 * BLOCK;
	for (unsigned k = 0; k < 2 * BLOCK; k += 4)
		*(uint32_t *)(bytes + k) = op == PF_AIO_READ ? 0 : (salt << 24) + (i << 12) + k / 4;
	reqs[i] = (struct pf_aio_req){ ios[i % NR_IOS], op, i / NR_IOS * 3 * BLOCK, bytes, 2 * BLOCK, 12345, false };
}

static bool is_filled(unsigned i, unsigned salt)
{
	const uint8_t *bytes = buf + (size_t)i * 2 * BLOCK;
	for (unsigned k = 0; k < 2 * BLOCK; k += 4) {
		if (*(const uint32_t *)(bytes + k) != (salt << 24) + (i << 12) + k / 4)
			return false;
	}
	return true;
}

START_TEST(batches_of_every_size)
{
	static const unsigned sizes[] = { 0, 1, 2, 3, 5, 127, 128, 129, 170, 256, 257, NR_REQS };
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		unsigned nr = sizes[s];
		for (unsigned i = 0; i < nr; i++)
			fill(i, PF_AIO_WRITE, s + 1);
		ck_assert_int_eq(pf_aio_run(aio, reqs, nr), 0);
		for (unsigned i = 0; i < nr; i++)
			ck_assert_int_eq(reqs[i].result, 0);
		for (unsigned i = 0; i < nr; i++)
			fill(i, PF_AIO_READ, 0);
		ck_assert_int_eq(pf_aio_run(aio, reqs, nr), 0);
		for (unsigned i = 0; i < nr; i++)
			ck_assert_msg(is_filled(i, s + 1), "request %u of %u", i, nr);
	}
}
END_TEST

static atomic_uint nr_meanwhile;

static void count_meanwhile(void *arg)
{
	(void)arg;
	nr_meanwhile++;
}

static void *run_and(void *arg)
{
	unsigned nr = *(unsigned *)arg;
	ck_assert_int_eq(pf_aio_run_and(aio, reqs, nr, &(struct pf_meanwhile){ .run = count_meanwhile }), 0);
	return NULL;
}

/* Once, however many there are, and before the slowest of them is waited for. */
START_TEST(something_meanwhile)
{
	static const unsigned sizes[] = { 0, 1, 2, NR_IOS, 5 * NR_IOS, 300 };
	struct simdisk *memory = simworld_disk(world, 0);
	for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		unsigned nr = sizes[s];
		bool hangs = nr >= NR_IOS;
		pthread_t thread;
		for (unsigned i = 0; i < nr; i++)
			fill(i, PF_AIO_WRITE, s);
		atomic_store(&nr_meanwhile, 0);
		simdisk_set_hang(memory, hangs ? SIM_WRITE : 0);
		pthread_create(&thread, NULL, run_and, &nr);
		while (hangs && !simdisk_nr_hung(memory))
			usleep(100);
		ck_assert(!hangs || nr_meanwhile == 1);
		simdisk_set_hang(memory, 0);
		pthread_join(thread, NULL);
		ck_assert_uint_eq(nr_meanwhile, 1);
		for (unsigned i = 0; i < nr; i++)
			ck_assert_int_eq(reqs[i].result, 0);
	}
}
END_TEST

START_TEST(counts)
{
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_WRITE, 1);
	ck_assert(!pf_io_dirty(ios[0]));
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), 0);
	for (unsigned d = 0; d < NR_IOS; d++) {
		ck_assert(pf_io_dirty(ios[d]));
		ck_assert_uint_eq(ios[d]->nr_writes, 100);
		ck_assert_uint_eq(ios[d]->bytes_written, 100 * 2 * BLOCK);
	}
	ck_assert_int_eq(pf_aio_flush(aio, ios, NR_IOS, NULL), 0);
	for (unsigned d = 0; d < NR_IOS; d++) {
		ck_assert(!pf_io_dirty(ios[d]));
		ck_assert_uint_eq(ios[d]->nr_flushes, 1);
	}
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_READ, 1);
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), 0);
	ck_assert_uint_eq(ios[2]->nr_reads, 100);
	ck_assert_uint_eq(ios[2]->bytes_read, 100 * 2 * BLOCK);
	ck_assert(!pf_io_dirty(ios[2]));
}
END_TEST

START_TEST(errors_stay_with_their_request)
{
	struct sim_fault fault = { .ops = SIM_WRITE, .skip = 10, .count = 1, .err = -ENOSPC };
	simworld_add_fault(world, &fault);
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_WRITE, 9);
	reqs[100].off_bytes = SIZE;         /* of file 0 */
	reqs[201].off_bytes = SIZE - BLOCK; /* of file 1, buffered: must not grow it */
	/* the first error in the order of the requests */
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), -ENOSPC);
	for (unsigned i = 0; i < 400; i++) {
		int expected = i == 43 ? -ENOSPC : i == 100 || i == 201 ? -EIO : 0;
		ck_assert_msg(reqs[i].result == expected, "request %u: %d", i, reqs[i].result);
	}
	ck_assert_int_eq(lseek(ios[1]->fd, 0, SEEK_END), SIZE);
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_READ, 9);
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), 0);
	for (unsigned i = 0; i < 400; i++)
		ck_assert(is_filled(i, 9) == (i != 43 && i != 100 && i != 201));
	/* single ones take another way */
	reqs[0].off_bytes = SIZE;
	ck_assert_int_eq(pf_aio_run(aio, reqs, 1), -EIO);
	ck_assert_int_eq(reqs[0].result, -EIO);
}
END_TEST

START_TEST(a_truncated_member)
{
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_WRITE, 3);
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), 0);
	/* in the middle of the request 200 of file 0, and of the block */
	ck_assert_int_eq(ftruncate(ios[0]->fd, 50 * 3 * BLOCK + BLOCK + 512), 0);
	ck_assert_int_eq(ftruncate(ios[1]->fd, 50 * 3 * BLOCK + BLOCK + 512), 0);
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_READ, 3);
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), -EIO);
	for (unsigned i = 0; i < 400; i++) {
		bool lost = i % NR_IOS < 2 && i / NR_IOS >= 50;
		ck_assert_msg(reqs[i].result == (lost ? -EIO : 0), "request %u: %d", i, reqs[i].result);
		ck_assert(lost || is_filled(i, 3));
	}
}
END_TEST

/* fdatasync() of a pipe fails: puts one in the place of the member's descriptor, and returns the real one. */
static int break_fd(struct pf_io *io)
{
	int pipes[2], saved = dup(io->fd);
	ck_assert_int_eq(pipe(pipes), 0);
	dup2(pipes[1], io->fd);
	close(pipes[0]);
	close(pipes[1]);
	return saved;
}

START_TEST(a_failed_flush_is_final_here_too)
{
	int results[NR_IOS];
	for (unsigned i = 0; i < 400; i++)
		fill(i, PF_AIO_WRITE, 3);
	ck_assert_int_eq(pf_aio_run(aio, reqs, 400), 0);
	int saved = break_fd(ios[2]);
	ck_assert_int_eq(pf_aio_flush(aio, ios, NR_IOS, results), -EIO);
	for (unsigned d = 0; d < NR_IOS; d++) {
		ck_assert_int_eq(results[d], d == 2 ? -EIO : 0);
		ck_assert(pf_io_dirty(ios[d]) == (d == 2));
	}
	dup2(saved, ios[2]->fd);
	close(saved);
	/* by the ring, and by the ops */
	ck_assert_int_eq(pf_aio_flush(aio, ios, NR_IOS, results), -EIO);
	ck_assert_int_eq(results[2], -EIO);
	ck_assert_int_eq(results[1], 0);
	ck_assert_int_eq(pf_io_flush(ios[2]), -EIO);
	ck_assert_int_eq(pf_aio_flush(aio, &ios[2], 1, results), -EIO);
	ck_assert_int_eq(pf_aio_flush(aio, ios, 2, NULL), 0);
}
END_TEST

START_TEST(a_flush_that_failed_by_the_ops_fails_in_batches)
{
	int saved = break_fd(ios[0]), results[NR_IOS];
	ck_assert_int_eq(pf_io_flush(ios[0]), -EIO);
	dup2(saved, ios[0]->fd);
	close(saved);
	ck_assert_int_eq(pf_aio_flush(aio, ios, NR_IOS, results), -EIO);
	ck_assert_int_eq(results[0], -EIO);
	ck_assert_int_eq(results[1], 0);

	struct sim_fault fault = { .ops = SIM_FLUSH, .err = -ENOSPC };
	simworld_add_fault(world, &fault);
	ck_assert_int_eq(pf_aio_flush(aio, ios + 1, NR_IOS - 1, results), -ENOSPC);
	ck_assert_int_eq(results[2], -ENOSPC);
	ck_assert_int_eq(results[0], 0);
}
END_TEST

START_TEST(flush_of_none_and_of_the_same)
{
	ck_assert_int_eq(pf_aio_flush(aio, ios, 0, NULL), 0);
	struct pf_io *many[200];
	int results[200];
	for (unsigned i = 0; i < 200; i++)
		many[i] = ios[i % NR_IOS];
	memset(results, 1, sizeof(results));
	ck_assert_int_eq(pf_aio_flush(aio, many, 200, results), 0);
	for (unsigned i = 0; i < 200; i++)
		ck_assert_int_eq(results[i], 0);
}
END_TEST

static void *reader(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	struct pf_aio_req mine[150];
	uint8_t *bytes = aligned_alloc(BLOCK, sizeof(mine) / sizeof(mine[0]) * 2 * BLOCK);
	unsigned nr_bad = 0;
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned k = 0; k < 150; k++) {
			seed = seed * 1103515245 + 12345;
			mine[k] = reqs[seed / 65536 % NR_REQS];
			mine[k].op = PF_AIO_READ;
			mine[k].buf = bytes + (size_t)k * 2 * BLOCK;
		}
		nr_bad += pf_aio_run(aio, mine, 150 - round * 14) != 0;
		for (unsigned k = 0; k < 150 - round * 14; k++) {
			const struct pf_aio_req *like = NULL;
			for (unsigned i = 0; i < NR_REQS; i++) {
				if (reqs[i].io == mine[k].io && reqs[i].off_bytes == mine[k].off_bytes)
					like = &reqs[i];
			}
			nr_bad += memcmp(mine[k].buf, like->buf, 2 * BLOCK) != 0;
		}
	}
	free(bytes);
	return (void *)(uintptr_t)nr_bad;
}

static void *flusher(void *arg)
{
	(void)arg;
	uintptr_t nr_bad = 0;
	struct pf_io *backwards[NR_IOS];
	for (unsigned i = 0; i < NR_IOS; i++)
		backwards[i] = ios[NR_IOS - 1 - i];
	for (unsigned round = 0; round < 6; round++) {
		nr_bad += pf_aio_flush(aio, round % 2 ? ios : backwards, NR_IOS, NULL) != 0;
		nr_bad += pf_io_flush(ios[round % NR_IOS]) != 0;
	}
	return (void *)nr_bad;
}

START_TEST(many_threads)
{
	for (unsigned i = 0; i < NR_REQS; i++)
		fill(i, PF_AIO_WRITE, 5);
	ck_assert_int_eq(pf_aio_run(aio, reqs, NR_REQS), 0);
	pthread_t threads[6];
	for (uintptr_t t = 0; t < 6; t++)
		pthread_create(&threads[t], NULL, t < 4 ? reader : flusher, (void *)(t + 1));
	for (unsigned t = 0; t < 6; t++) {
		void *nr_bad;
		pthread_join(threads[t], &nr_bad);
		ck_assert_ptr_null(nr_bad);
	}
	for (unsigned d = 0; d < NR_IOS; d++)
		ck_assert(!pf_io_dirty(ios[d]));
}
END_TEST

static void *hung_flush(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)pf_aio_flush(aio, ios, NR_IOS, NULL);
}

/* While a flush is under way nobody may be told that there is nothing left to make durable. */
START_TEST(dirty_until_the_flush_is_done)
{
	struct simdisk *disk = simworld_disk(world, 0);
	fill(NR_FILES, PF_AIO_WRITE, 1);
	ck_assert_int_eq(pf_aio_run(aio, &reqs[NR_FILES], 1), 0);
	simdisk_set_hang(disk, SIM_FLUSH);
	pthread_t thread;
	pthread_create(&thread, NULL, hung_flush, NULL);
	while (simdisk_nr_hung(disk) == 0)
		usleep(1000);
	ck_assert(pf_io_dirty(ios[NR_FILES]));
	/* written while it is under way: not covered by it */
	ck_assert_int_eq(pf_aio_run(aio, &reqs[NR_FILES], 1), 0);
	simdisk_set_hang(disk, 0);
	void *err;
	pthread_join(thread, &err);
	ck_assert_ptr_null(err);
	ck_assert(pf_io_dirty(ios[NR_FILES]));
	ck_assert_int_eq(pf_aio_flush(aio, ios, NR_IOS, NULL), 0);
	ck_assert(!pf_io_dirty(ios[NR_FILES]));
}
END_TEST

static TCase *add_case(const char *name, SFun before)
{
	TCase *tc = tcase_create(name);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, before, teardown);
	tcase_add_test(tc, batches_of_every_size);
	tcase_add_test(tc, something_meanwhile);
	tcase_add_test(tc, counts);
	tcase_add_test(tc, errors_stay_with_their_request);
	tcase_add_test(tc, a_truncated_member);
	tcase_add_test(tc, a_failed_flush_is_final_here_too);
	tcase_add_test(tc, a_flush_that_failed_by_the_ops_fails_in_batches);
	tcase_add_test(tc, flush_of_none_and_of_the_same);
	tcase_add_test(tc, many_threads);
	tcase_add_test(tc, dirty_until_the_flush_is_done);
	return tc;
}

int main(void)
{
	Suite *s = suite_create("aio");
	suite_add_tcase(s, add_case("io_uring", setup));
	suite_add_tcase(s, add_case("guarded", setup_guarded));
	SRunner *sr = srunner_create(s);
	/* the filter stays with the process: only where each test has its own */
	if (srunner_fork_status(sr) == CK_FORK) {
		suite_add_tcase(s, add_case("without", setup_without_uring));
		suite_add_tcase(s, add_case("broken", setup_with_broken_rings));
		suite_add_tcase(s, add_case("guarded without", setup_guarded_without_uring));
		suite_add_tcase(s, add_case("guarded, broken", setup_guarded_with_broken_rings));
	}
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
