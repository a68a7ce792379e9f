/* SPDX-License-Identifier: MIT
 * Staged data that cannot be written out: fsync and sync say so as long as it is true, the space that was promised stays promised, and
 * nothing is lost when the disks work again. The linker leads some calls here (tests/local.mk). */
#include "unit/posix_util.h"

#include "block/engine.h"
#include "object/inode.h"
#include "object/stage.h"

#define TRIES 5 /* places that one stretch is offered */

int __real_pf_txn_lock(struct pf_txn *txn);
int __wrap_pf_txn_lock(struct pf_txn *txn);
void __real_pf_inode_put(struct pf_pool *pool, struct pf_inode *inode);
void __wrap_pf_inode_put(struct pf_pool *pool, struct pf_inode *inode);

static int txn_err; /* of the next transaction */
static void (*after_put)(void); /* once */

int __wrap_pf_txn_lock(struct pf_txn *txn)
{
	int err = txn_err;
	txn_err = 0;
	return err ? err : __real_pf_txn_lock(txn);
}

void __wrap_pf_inode_put(struct pf_pool *pool, struct pf_inode *inode)
{
	void (*now)(void) = after_put;
	__real_pf_inode_put(pool, inode);
	after_put = NULL;
	if (now)
		now();
}

static void setup_one(void)
{
	setup_with(5, 1, 24 * MIB);
}

static void fail_writes(uint64_t count, int err)
{
	struct sim_fault fault = { .ops = SIM_WRITE, .kind = SIM_FAIL, .count = count, .err = err };
	simworld_add_fault(sp->world, &fault);
}

static uint64_t reserved(void)
{
	struct pf_space_stats s;
	pf_space_stats(POOL->space, &s);
	return s.reserved_blocks;
}

static const int errors[] = { -EIO, -ENOSPC };

START_TEST(fsync_and_sync_say_so)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	settle();
	uint64_t before = free_blocks();
	put(f, 0, "first", 5);
	put(g, 0, "second", 6);
	fail_writes(0, errors[_i]);
	for (unsigned k = 0; k < 3; k++) {
		ck_err(pf_fsync(POOL, f), errors[_i]);
		ck_err(pf_pool_sync(POOL), errors[_i]);
		ck_err(pf_fsync(POOL, g), errors[_i]);
		ck_assert_uint_eq(reserved(), 2);
		ck_assert_uint_eq(free_blocks(), before - 2);
		ck_bytes(f, 0, "first", 5);
	}
	simworld_clear_faults(sp->world);
	ck_ok(pf_fsync(POOL, f));
	ck_assert_uint_eq(reserved(), 1);
	ck_ok(pf_pool_sync(POOL));
	ck_assert_uint_eq(reserved(), 0);
	ck_assert_uint_eq(free_blocks(), before - 2);
	simpool_abandon(sp);
	char why[1200];
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	ck_bytes(look(PF_ROOT_INO, "f"), 0, "first", 5);
	ck_bytes(look(PF_ROOT_INO, "g"), 0, "second", 6);
}
END_TEST

/* One file of several fails, then the disk works again: what the others did does not hide it. */
START_TEST(one_of_several)
{
	enum { NR = 4 };
	uint64_t inos[NR];
	char name[2] = "a";
	for (unsigned k = 0; k < NR; k++, name[0]++)
		inos[k] = make_file(PF_ROOT_INO, name);
	settle();
	for (unsigned k = 0; k < NR; k++)
		put(inos[k], 0, "bytes", 5);
	/* they are written together: the first attempts of all, and all further ones of the first file */
	fail_writes(NR + TRIES - 1, 0);
	ck_err(pf_pool_sync(POOL), -EIO);
	ck_assert_uint_eq(reserved(), 1);
	ck_ok(pf_fsync(POOL, inos[1]));
	ck_ok(pf_pool_sync(POOL));
	ck_assert_uint_eq(reserved(), 0);
}
END_TEST

START_TEST(an_unmount_says_so)
{
	char why[1200];
	uint64_t f = make_file(PF_ROOT_INO, "f");
	put(f, 0, "old", 3);
	settle();
	put(f, 0, "new", 3);
	fail_writes(TRIES, 0);
	ck_assert_int_ne(simpool_close(sp, why, sizeof(why)), 0);
	simworld_clear_faults(sp->world);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	ck_bytes(look(PF_ROOT_INO, "f"), 0, "old", 3);
}
END_TEST

/* The data was written, but its mapping cannot enter the tree. */
START_TEST(a_mapping_that_fails)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(3, 100 * KIB);
	put(f, 0, p, 10 * KIB);
	settle();
	uint64_t before = free_blocks();
	put(f, 8 * KIB, p, 10 * KIB);
	txn_err = -EIO;
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_assert_uint_eq(reserved(), 3);
	ck_assert_uint_eq(free_blocks(), before - 3);
	/* written at once, or only promised and given back */
	ck_ok(pf_fsync(POOL, f));
	before = free_blocks();
	txn_err = -EIO;
	ck_err(pf_write(POOL, f, 0, p, 100 * KIB, 0), -EIO);
	ck_assert_uint_eq(reserved(), 0);
	fail_writes(0, 0);
	ck_err(pf_write(POOL, f, 0, p, 100 * KIB, 0), -EIO);
	ck_err(truncate_to(f, 3 * KIB), -EIO);
	simworld_clear_faults(sp->world);
	txn_err = -EIO;
	ck_err(truncate_to(f, 3 * KIB), -EIO);
	ck_assert_uint_eq(reserved(), 0);
	ck_assert_uint_eq(free_blocks(), before);
	ck_bytes(f, 8 * KIB, p, 10 * KIB);
	free(p);
}
END_TEST

/* Preallocated blocks are written in place; those that fail there go elsewhere, and then the mapping fails. */
START_TEST(in_place_and_elsewhere)
{
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t *p = pattern(3, 32 * KIB);
	ck_ok(pf_fallocate(POOL, f, 0, 0, 16 * KIB, 0));
	settle();
	uint64_t before = free_blocks();
	put(f, 0, p, 32 * KIB);
	ck_assert_uint_eq(reserved(), 8);
	fail_writes(1, 0);
	txn_err = -EIO;
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_assert_uint_eq(reserved(), 8);
	ck_assert_uint_eq(free_blocks(), before - 8);
	ck_ok(pf_fsync(POOL, f));
	ck_assert_uint_eq(reserved(), 0);
	ck_assert_uint_eq(free_blocks(), before - 4);
	ck_bytes(f, 0, p, 32 * KIB);
	free(p);
}
END_TEST

/* Nobody else gets the space of what could not be written. */
START_TEST(the_promise_is_kept)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	uint8_t *p = pattern(1, 60 * KIB);
	int64_t n;
	settle();
	for (unsigned k = 0; k < 8; k++)
		put(f, k * 60 * KIB, p, 60 * KIB);
	for (uint64_t at = 0; (n = pf_write(POOL, g, at, p, 4 * KIB, 0)) > 0;)
		at += 4 * KIB;
	ck_err(n, -ENOSPC);
	ck_ok(pf_pool_sync(POOL));
	ck_ok(truncate_to(f, 0));
	settle();
	uint64_t room = free_blocks(), nr = 0;
	/* a file of which every page waits, as much as there is room */
	for (; nr < room && nr < PF_STAGE_BLOCKS; nr++) {
		if (pf_write(POOL, f, nr * 4 * KIB, p, 4 * KIB, 0) < 0)
			break;
	}
	ck_assert_uint_ge(nr, 100);
	uint64_t kept = reserved();
	ck_assert_uint_ge(kept, 1);
	fail_writes(0, 0);
	ck_err(pf_fsync(POOL, f), -EIO);
	simworld_clear_faults(sp->world);
	ck_assert_uint_eq(reserved(), kept);
	POOL->staged_limit = UINT64_MAX;
	while (pf_space_reserve(POOL->space, PF_USE_DATA_PRIVILEGED, 1) == 0)
		; /* what is not promised goes to somebody else */
	ck_ok(pf_fsync(POOL, f));
	for (uint64_t k = 0; k < nr; k++)
		ck_bytes(f, k * 4 * KIB, p, 4 * KIB);
	pf_space_unreserve(POOL->space, reserved());
	free(p);
}
END_TEST

START_TEST(what_goes_gives_its_promise_back)
{
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	settle();
	uint64_t before = free_blocks();
	put(f, 0, "first", 5);
	put(g, 0, "second", 6);
	fail_writes(0, 0);
	ck_err(pf_pool_sync(POOL), -EIO);
	simworld_clear_faults(sp->world);
	ck_ok(truncate_to(f, 0));
	ck_assert_uint_eq(reserved(), 1);
	ck_ok(pf_fsync(POOL, f));
	ck_ok(unlink_name(PF_ROOT_INO, "g"));
	pf_forget(POOL, g, 1);
	ck_assert_uint_eq(reserved(), 0);
	settle();
	ck_assert_uint_eq(free_blocks(), before);
}
END_TEST

/* -- another thread, in the middle of a sync ------------------------------------------------------------------------- */
static uint64_t newcomer;

static void meanwhile(void)
{
	uint64_t limit = POOL->staged_limit;
	put(newcomer, 0, "new", 3);
	fail_writes(TRIES, 0);
	POOL->staged_limit = 0;
	pf_stage_balance(POOL); /* the oldest fails, and moves behind the newcomer */
	POOL->staged_limit = limit;
	simworld_clear_faults(sp->world);
}

/* Between two files of a sync, another thread fails at the second one, which then comes behind those that the sync has counted. */
START_TEST(what_failed_in_another_thread)
{
	char why[1200];
	uint64_t f = make_file(PF_ROOT_INO, "f"), g = make_file(PF_ROOT_INO, "g");
	newcomer = make_file(PF_ROOT_INO, "newcomer");
	settle();
	put(f, 0, "first", 5);
	put(g, 0, "second", 6);
	after_put = meanwhile;
	int err = pf_pool_sync(POOL);
	ck_assert(!after_put);
	ck_assert_msg(err == 0 || err == -EIO, "%s", pf_strerror(err));
	simpool_abandon(sp);
	ck_ok(simpool_open(sp, false, why, sizeof(why)));
	g = look(PF_ROOT_INO, "g");
	ck_assert_msg(err || attr_of(g).size_bytes == 6, "sync has promised what it did not do");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix drain");
	TCase *t = tcase_create("failed drains");
	tcase_add_checked_fixture(t, setup_one, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, fsync_and_sync_say_so, 0, 2);
	tcase_add_test(t, one_of_several);
	tcase_add_test(t, an_unmount_says_so);
	tcase_add_test(t, a_mapping_that_fails);
	tcase_add_test(t, in_place_and_elsewhere);
	tcase_add_test(t, the_promise_is_kept);
	tcase_add_test(t, what_goes_gives_its_promise_back);
	tcase_add_test(t, what_failed_in_another_thread);
	suite_add_tcase(s, t);
	return run_suite(s);
}
