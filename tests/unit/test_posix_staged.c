/* SPDX-License-Identifier: MIT
 * Staged data keeps space: its promise, blocks that it will overwrite, room for the nodes that it may need. Nobody is told that the
 * pool is full because of that alone: first it is written out. The linker leads pf_inode_get() here (tests/local.mk). */
#include "unit/posix_util.h"

#include "block/engine.h"
#include "object/inode.h"

int __real_pf_inode_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out);
int __wrap_pf_inode_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out);

static void (*meanwhile)(void); /* once */

int __wrap_pf_inode_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out)
{
	void (*now)(void) = meanwhile;
	meanwhile = NULL;
	if (now)
		now();
	return __real_pf_inode_get(pool, ino, out);
}

/* Fills the pool but for @blocks. */
static uint64_t fill_but(uint64_t blocks)
{
	uint64_t f = make_file(PF_ROOT_INO, "filler");
	uint8_t *p = calloc(1, MIB);
	uint64_t avail = avail_blocks();
	for (uint64_t at = 0, n; at + blocks < avail; at += n) {
		n = avail - blocks - at < 256 ? avail - blocks - at : 256;
		put(f, at * 4096, p, n * 4096);
	}
	settle();
	free(p);
	return f;
}

/* -- overwrites that wait: their old blocks are free only when the new ones are in the tree --------------------------- */
#define OVERWRITTEN 200u

static void setup_one(void)
{
	setup_with(5, 1, 24 * MIB);
}

static uint8_t *wait_on_a_full_pool(void)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(1, MIB);
	put(f, 0, p, OVERWRITTEN * 4096);
	fill_but(OVERWRITTEN + 100);
	for (unsigned k = 0; k < OVERWRITTEN; k++)
		put(f, k * UINT64_C(4096), p + 4096, 4096);
	ck_assert_uint_eq(atomic_load(&POOL->staged_blocks), OVERWRITTEN);
	ck_assert_uint_le(avail_blocks(), 150);
	return p;
}

START_TEST(a_write_needs_what_overwrites_hold)
{
	uint64_t g = make_file(PF_ROOT_INO, "g");
	uint8_t *p = wait_on_a_full_pool();
	put(g, 0, p, (OVERWRITTEN + 50) * 4096);
	ck_ok(pf_fsync(POOL, g));
	ck_bytes(g, 0, p, (OVERWRITTEN + 50) * 4096);
	ck_err(pf_write(POOL, g, MIB, p, 400 * 1024, 0), -ENOSPC); /* now it is full */
	free(p);
}
END_TEST

START_TEST(fallocate_needs_what_overwrites_hold)
{
	uint64_t g = make_file(PF_ROOT_INO, "g");
	uint8_t *p = wait_on_a_full_pool();
	ck_ok(pf_fallocate(POOL, g, 0, 0, (OVERWRITTEN + 50) * 4096, 0));
	ck_err(pf_fallocate(POOL, g, 0, MIB, 400 * 1024, 0), -ENOSPC);
	free(p);
}
END_TEST

/* -- many writes at the same time -------------------------------------------------------------------------------------- */
#define WRITERS 1000u
#define EACH (60u * 1024)

static uint64_t inos[WRITERS];
static unsigned nr_writing, nr_refused;
static uint8_t *bytes;

/* With room in memory for all of it. */
static void setup_three(void)
{
	struct simpool_config config = {
		.version = 5, .nr_members = 3, .size_bytes = 48 * MIB, .seed = 1, .cache_bytes = 256 * MIB
	};
	setup_config(&config);
}

/* One more has come, and found nothing staged yet; all others come before it goes on. */
static void write_one(void)
{
	uint64_t ino = inos[nr_writing++];
	if (nr_writing < WRITERS)
		meanwhile = write_one;
	int64_t n = pf_write(POOL, ino, 0, bytes, EACH, 0);
	nr_refused += n == -ENOSPC;
	ck_assert_msg(n == EACH || n == -ENOSPC, "%jd", (intmax_t)n);
}

START_TEST(all_at_once)
{
	bytes = pattern(1, EACH);
	for (unsigned k = 0; k < WRITERS; k++) {
		char name[16];
		sprintf(name, "%u", k);
		inos[k] = make_file(PF_ROOT_INO, name);
	}
	fill_but(WRITERS * (EACH / 4096) + 50);
	write_one();
	ck_assert_uint_eq(nr_writing, WRITERS);
	ck_assert_msg(!nr_refused, "%u of %u writes were told that the pool is full", nr_refused, WRITERS);
	settle();
	for (unsigned k = 0; k < WRITERS; k++)
		ck_bytes(inos[k], 0, bytes, EACH);
	free(bytes);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix staged");
	TCase *t = tcase_create("overwrites");
	tcase_add_checked_fixture(t, setup_one, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_write_needs_what_overwrites_hold);
	tcase_add_test(t, fallocate_needs_what_overwrites_hold);
	suite_add_tcase(s, t);
	t = tcase_create("many writers");
	tcase_add_checked_fixture(t, setup_three, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, all_at_once);
	suite_add_tcase(s, t);
	return run_suite(s);
}
