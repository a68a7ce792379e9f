/* SPDX-License-Identifier: MIT
 * Design rule 9, one scene at a time: what exactly is reported, to whom and until when; where log, nodes and data go. The n-th call that
 * fails, for all n, is the business of tests/sim/test_member_fails.c. */
#include "block/extent.h"
#include "object/inode.h"
#include "sim/lost.h"
#include "unit/intent_util.h"

#define LEN 204800u /* whole blocks; not staged: it is on its member when pf_write() returns */

/* Members 0 and 1 have the metadata, and 2 with @meta_mask 7. Files lie by their number. */
static void begin_three(uint32_t meta_mask)
{
	struct simpool_config config = { .version = PF_VERSION_NEWEST,
					 .nr_members = 3,
					 .placement = PF_PLACE_STRIPE,
					 .size_bytes = 48 * MIB,
					 .cache_bytes = 64 * MIB,
					 .meta_mask = meta_mask,
					 .seed = 1 };
	begin_config(&config);
}

static uint64_t data_id(uint64_t ino)
{
	struct pf_inode *inode;
	ck_ok(pf_inode_get(POOL, ino, &inode));
	uint64_t id = inode->item.data_id;
	pf_inode_put(POOL, inode);
	return id;
}

static unsigned place_of(uint64_t ino)
{
	struct pf_extent e = { 0 };
	ck_ok(pf_extent_find(POOL, data_id(ino), 0, &e));
	return pf_addr_member(e.addr[0]);
}

/* A file whose data will go to @member. */
static uint64_t file_on(unsigned member, const char *name)
{
	for (unsigned k = 0;; k++) {
		uint64_t ino = make_file(PF_ROOT_INO, name);
		if (data_id(ino) % 3 == member)
			return ino;
		ck_ok(unlink_name(PF_ROOT_INO, name));
		pf_forget(POOL, ino, 1);
		ck_assert_uint_lt(k, 10);
	}
}

static unsigned arm(unsigned member, unsigned ops, int err)
{
	struct sim_fault fault = { .disk = simworld_disk(sp->world, member), .ops = ops, .kind = SIM_FAIL, .err = err };
	return simworld_add_fault(sp->world, &fault);
}

static uint32_t failed(void)
{
	return pf_set_failed(pf_pool_set(POOL));
}

static bool status_says(const char *text)
{
	char *json = pf_pool_status_json(POOL);
	bool found = strstr(json, text);
	free(json);
	return found;
}

/* Closes (or cuts the power), takes the member back. */
static void take_back(bool cut)
{
	char why[1200] = "";
	if (!cut)
		ck_assert_msg(simpool_close(sp, why, sizeof(why)) == 0, "%s", why);
	simworld_clear_faults(sp->world);
	power_cut(false);
	ck_err(simpool_open(sp, false, why, sizeof(why)), -PF_EMEMBER_FAILED);
	ck_assert_msg(lost_open(sp, NULL, why, sizeof(why)) == 0, "%s", why);
	ck_assert_uint_eq(failed(), 0);
}

/* Empties @ino, of which data was lost. */
static void end_without(uint64_t ino)
{
	if (ino)
		ck_ok(truncate_to(ino, 0));
	settle();
	end();
}

/* -- data ------------------------------------------------------------------------------------------------------------------ */

/* _i: by want of room on the host, which for a flush is a failure like others. */
START_TEST(a_flush_fails_on_a_data_member)
{
	begin_three(0);
	uint8_t *p = pattern(1, LEN), *q = pattern(2, LEN);
	uint64_t safe = file_on(2, "safe"), lost = file_on(2, "lost"), other = file_on(1, "other");
	put(safe, 0, p, LEN);
	ck_ok(pf_fsync(POOL, safe));
	put(lost, 0, p, LEN);
	put(other, 0, p, LEN);
	ck_assert_uint_eq(place_of(lost), 2);
	ck_assert_uint_eq(place_of(other), 1);
	uint64_t before = free_blocks();
	unsigned nr_errors = sp->env.nr_messages[PF_LOG_ERROR];
	arm(2, SIM_FLUSH, _i ? -ENOSPC : -EIO);

	ck_err(pf_fsync(POOL, lost), -EIO);
	ck_assert_uint_eq(failed(), 1u << 2);
	ck_assert_uint_eq(sp->env.nr_messages[PF_LOG_ERROR], nr_errors + 2); /* of the member, and of the file */
	ck_assert_ptr_nonnull(strstr(sp->env.last_error, "lost"));
	ck_err(pf_fsync(POOL, lost), -EIO);
	ck_err(pf_fsync(POOL, lost), -EIO);
	ck_assert_uint_eq(sp->env.nr_messages[PF_LOG_ERROR], nr_errors + 2);
	/* what was durable is not lost, and nobody else has lost anything */
	ck_ok(pf_fsync(POOL, safe));
	ck_ok(pf_fsync(POOL, other));
	ck_ok(pf_fsync(POOL, PF_ROOT_INO));
	ck_err(pf_pool_sync(POOL), -PF_EDATA_LOST);
	ck_assert(!pf_pool_read_only(POOL));
	ck_assert(status_says(_i ? "\"failed\":true,\"failure\":\"No space left on device\"" :
				   "\"failed\":true,\"failure\":\"Input/output error\""));
	ck_assert_uint_lt(free_blocks(), before - 6 * MIB / PF_BLOCK_SIZE);

	/* the member is not asked any more */
	uint64_t calls = count(2, SIM_ANY);
	int64_t n;
	free(get(safe, 0, 4096, &n));
	ck_assert_int_eq(n, -EIO);
	ck_assert_ptr_nonnull(strstr(sp->env.last_error, "/safe"));
	ck_bytes(other, 0, p, LEN);
	uint64_t after = file_on(2, "after");
	put(after, 0, q, LEN);
	ck_ok(pf_fsync(POOL, after));
	ck_assert_uint_ne(place_of(after), 2);
	ck_assert_uint_eq(count(2, SIM_ANY), calls);
	/* and the log promises again, without checkpoints */
	put(after, 0, p, 5000);
	sync_by_log(after);
	put(after, 0, q, 5000);
	sync_by_log(after);

	take_back(true);
	ck_bytes(look(PF_ROOT_INO, "safe"), 0, p, LEN);
	ck_bytes(look(PF_ROOT_INO, "other"), 0, p, LEN);
	ck_bytes(look(PF_ROOT_INO, "after"), 0, q, LEN);
	lost = look(PF_ROOT_INO, "lost");
	free(get(lost, 0, LEN, &n));
	ck_assert_int_eq(pf_errno((int)n), EIO);
	free(p);
	free(q);
	end_without(lost);
}
END_TEST

/* What is still in memory when the flush fails goes elsewhere: nothing is lost. */
START_TEST(staged_data_is_not_lost)
{
	begin_three(0);
	uint8_t *p = pattern(1, 20000);
	uint64_t f = file_on(2, "f");
	put(f, 0, p, 20000);
	arm(2, SIM_FLUSH, -EIO);
	ck_ok(pf_fsync(POOL, f));
	ck_assert_uint_eq(failed(), 1u << 2);
	ck_assert_uint_ne(place_of(f), 2);
	ck_ok(pf_pool_sync(POOL));
	take_back(true);
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, 20000);
	free(p);
	end_without(0);
}
END_TEST

/* 0: rewritten; 1: truncated to nothing; 2: rewritten in part only; 3: cut short. */
START_TEST(until_it_is_rewritten)
{
	begin_three(0);
	uint8_t *p = pattern(1, LEN), *q = pattern(2, LEN);
	uint64_t f = file_on(2, "f");
	put(f, 0, p, LEN);
	arm(2, SIM_FLUSH, -EIO);
	ck_err(pf_fsync(POOL, f), -EIO);
	if (_i == 0)
		put(f, 0, q, LEN);
	if (_i == 1)
		ck_ok(truncate_to(f, 0));
	if (_i == 2)
		put(f, 0, q, 81920);
	if (_i == 3)
		ck_ok(truncate_to(f, 8192));
	if (_i < 2)
		ck_ok(pf_fsync(POOL, f));
	else
		ck_err(pf_fsync(POOL, f), -EIO);
	if (_i == 3) {
		put(f, 0, q, 8192);
		ck_ok(pf_fsync(POOL, f));
	}
	take_back(false);
	f = look(PF_ROOT_INO, "f");
	if (_i != 2)
		ck_bytes(f, 0, q, attr_of(f).size_bytes);
	free(p);
	free(q);
	end_without(_i == 2 ? f : 0);
}
END_TEST

/* An inode that left the cache: before the member failed (0), after that (1), or long before, when all was flushed (2). */
START_TEST(of_an_inode_that_left_the_cache)
{
	enum { NR = 4300 };
	begin_three(0);
	uint8_t *p = pattern(1, LEN);
	uint64_t dir = make_dir(PF_ROOT_INO, "d"), f = file_on(2, "f");
	put(f, 0, p, LEN);
	if (_i == 2)
		settle();
	for (unsigned round = 0; round < 2; round++) {
		if ((round == 1) == (_i == 1))
			for (unsigned k = 0; k < NR; k++) {
				char name[24];
				say(name, sizeof(name), "%u", k);
				pf_forget(POOL, make_file(dir, name), 1);
			}
		if (round == 0) {
			if (_i == 2)
				put(file_on(2, "g"), 0, p, LEN);
			arm(2, SIM_FLUSH, -EIO);
			ck_ok(pf_fsync(POOL, PF_ROOT_INO));
			ck_err(pf_pool_sync(POOL), -PF_EDATA_LOST);
			ck_assert_uint_eq(failed(), 1u << 2);
			if (_i == 1)
				ck_err(pf_fsync(POOL, f), -EIO);
		}
	}
	ck_ok(pf_fsync(POOL, dir));
	ck_err(pf_fsync(POOL, f), _i == 2 ? 0 : -EIO);
	ck_ok(truncate_to(f, 0));
	ck_ok(pf_fsync(POOL, f));
	free(p);
	take_back(false);
	end_without(look(PF_ROOT_INO, "g"));
}
END_TEST

/* -- what is no failure ------------------------------------------------------------------------------------------------------ */

START_TEST(a_full_host_is_no_failure)
{
	begin_three(0);
	uint8_t *p = pattern(1, 20000);
	uint64_t f = file_on(0, "f");
	ck_ok(pf_fsync(POOL, f));
	put(f, 0, p, 20000);
	for (unsigned m = 0; m < 3; m++)
		arm(m, SIM_WRITE, -ENOSPC);
	for (unsigned k = 0; k < 3; k++)
		ck_err(pf_fsync(POOL, f), -ENOSPC);
	ck_err(pf_pool_sync(POOL), -ENOSPC);
	ck_assert_uint_eq(failed(), 0);
	simworld_clear_faults(sp->world);
	ck_ok(pf_fsync(POOL, f));
	ck_ok(pf_pool_sync(POOL));
	put(f, 0, p, 5000);
	sync_by_log(f);
	free(p);
	end();
}
END_TEST

START_TEST(a_bad_sector_is_no_failure)
{
	begin_three(0);
	uint8_t *p = pattern(1, LEN);
	struct sim_fault fault = { .disk = simworld_disk(sp->world, 2),
				   .ops = SIM_WRITE | SIM_READ,
				   .kind = SIM_FAIL,
				   .from_bytes = 2 * MIB,
				   .to_bytes = 3 * MIB };
	simworld_add_fault(sp->world, &fault);
	for (unsigned k = 0; k < 20; k++) {
		char name[24];
		say(name, sizeof(name), "f%u", k);
		uint64_t f = file_on(2, name);
		put(f, 0, p, LEN);
		ck_ok(pf_fsync(POOL, f));
		ck_bytes(f, 0, p, LEN);
	}
	settle();
	ck_assert_uint_eq(failed(), 0);
	simworld_clear_faults(sp->world);
	free(p);
	end();
}
END_TEST

/* -- a member that is not there any more -------------------------------------------------------------------------------------- */

/* Nobody writes to it: the next checkpoint finds out. */
START_TEST(it_vanishes_while_files_are_read)
{
	begin_three(0);
	uint8_t *p = pattern(1, LEN);
	uint64_t f = file_on(2, "f"), g = file_on(1, "g");
	put(f, 0, p, LEN);
	put(g, 0, p, LEN);
	settle();
	arm(2, SIM_ANY, -EIO);
	int64_t n;
	free(get(f, 0, 4096, &n));
	ck_assert_int_eq(n, -EIO);
	ck_assert_uint_eq(failed(), 0);
	ck_ok(pf_fsync(POOL, g));
	int got = pf_pool_step(POOL, true);
	while (got == 1)
		got = pf_pool_step(POOL, false);
	ck_ok(got);
	ck_assert_uint_eq(failed(), 1u << 2);
	ck_bytes(g, 0, p, LEN);
	/* nothing on it had been waiting for a flush */
	ck_ok(pf_pool_sync(POOL));
	ck_ok(pf_fsync(POOL, f));
	take_back(false);
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, LEN);
	free(p);
	end_without(0);
}
END_TEST

/* Any of them, when the pool is being closed. */
START_TEST(it_fails_at_the_end)
{
	begin_three(0);
	uint8_t *p = pattern(1, LEN);
	uint64_t f = file_on(0, "f");
	put(f, 0, p, LEN);
	settle();
	arm((unsigned)_i % 3, _i < 3 ? SIM_FLUSH : SIM_ANY, -EIO);
	take_back(false);
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, LEN);
	free(p);
	end_without(0);
}
END_TEST

/* -- metadata members ----------------------------------------------------------------------------------------------------------- */

START_TEST(a_metadata_member_fails)
{
	begin_three(0);
	unsigned bad = (unsigned)_i, good = !bad;
	uint8_t *p = pattern(1, 5000);
	uint64_t f = file_on(2, "f");
	put(f, 0, p, 5000);
	sync_by_log(f);
	uint64_t epoch = pf_pool_super(POOL)->epochs[0].id;
	arm(bad, SIM_FLUSH, -EIO);
	p[0]++;
	put(f, 0, p, 5000);
	sync_by_checkpoint(f);

	const struct pf_super *super = pf_pool_super(POOL);
	ck_assert_uint_eq(failed(), 1u << bad);
	ck_assert_uint_eq(super->members[bad].state, PF_MEMBER_FAILED);
	ck_assert_uint_eq(super->nr_log, 1);
	ck_assert_uint_eq(super->log_members[0], good);
	ck_assert_uint_ne(super->epochs[0].id, epoch);
	ck_assert_uint_eq(super->epochs[1].id, epoch);
	/* the log goes on with one copy */
	uint64_t flushes = count(good, SIM_FLUSH), calls = count(bad, SIM_ANY);
	for (unsigned k = 0; k < 5; k++) {
		p[0]++;
		put(f, 0, p, 5000);
		sync_by_log(f);
	}
	ck_assert_uint_eq(count(good, SIM_FLUSH), flushes + 5);
	ck_assert_uint_eq(count(bad, SIM_ANY), calls);
	ck_assert_uint_eq(generation(), super->generation);
	/* names have one copy now, and are there */
	for (unsigned k = 0; k < 200; k++) {
		char name[24];
		say(name, sizeof(name), "n%u", k);
		make_file(PF_ROOT_INO, name);
	}
	ck_ok(pf_fsync(POOL, PF_ROOT_INO));
	p[0]++;
	put(f, 0, p, 5000);
	sync_by_log(f);
	take_back(true);
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, 5000);
	ck_assert_uint_ne(look(PF_ROOT_INO, "n199"), 0);
	ck_assert_uint_eq(pf_pool_super(POOL)->nr_log, 2);
	free(p);
	end_without(0);
}
END_TEST

/* Of three the third takes over: the log lies on two again. */
START_TEST(the_third_takes_over)
{
	begin_three(7);
	unsigned bad = (unsigned)_i;
	uint8_t *p = pattern(1, 5000);
	uint64_t f = make_file(PF_ROOT_INO, "f");
	uint8_t first = pf_pool_super(POOL)->meta_members[bad];
	put(f, 0, p, 5000);
	sync_by_log(f);
	arm(first, SIM_ANY, -EIO);
	for (unsigned k = 0; k < 4; k++) {
		p[0]++;
		put(f, 0, p, 5000);
		ck_ok(pf_fsync(POOL, f));
	}
	ck_ok(pf_pool_sync(POOL));
	ck_assert_uint_eq(failed(), 1u << first);
	const struct pf_super *super = pf_pool_super(POOL);
	ck_assert_uint_eq(super->nr_log, 2);
	ck_assert_uint_eq(pf_log_mask(super), 7 & ~(1u << first));
	p[0]++;
	put(f, 0, p, 5000);
	sync_by_log(f);
	take_back(true);
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, 5000);
	free(p);
	end_without(0);
}
END_TEST

START_TEST(the_last_one_ends_writing)
{
	begin_three(0);
	uint8_t *p = pattern(1, 5000);
	uint64_t f = file_on(2, "f");
	put(f, 0, p, 5000);
	ck_ok(pf_fsync(POOL, f));
	arm(0, SIM_FLUSH, -EIO);
	put(f, 0, p, 4000);
	ck_ok(pf_fsync(POOL, f));
	arm(1, SIM_FLUSH, -EIO);
	put(f, 0, p, 3000);
	ck_err(pf_fsync(POOL, f), -EIO);
	ck_assert_uint_eq(failed(), 1u << 0);
	ck_assert(pf_pool_read_only(POOL));
	ck_err(pf_write(POOL, f, 0, p, 100, 0), -EROFS);
	ck_err(unlink_name(PF_ROOT_INO, "f"), -EROFS);
	ck_bytes(f, 0, p, 5000); /* reading goes on */
	simpool_abandon(sp);
	simpool_free(sp);
	free(p);
}
END_TEST

/* -- afterwards ---------------------------------------------------------------------------------------------------------------- */

START_TEST(what_a_mount_says)
{
	begin_three(0);
	uint8_t *p = pattern(1, LEN);
	uint64_t f = file_on(2, "f");
	put(f, 0, p, LEN);
	ck_ok(pf_fsync(POOL, f));
	uint64_t g = file_on(2, "g");
	put(g, 0, p, LEN);
	arm(2, SIM_FLUSH, -EIO);
	ck_err(pf_pool_sync(POOL), -PF_EDATA_LOST);
	ck_ok(truncate_to(g, 0));
	ck_ok(pf_fsync(POOL, f));
	char why[1200] = "";
	ck_ok(simpool_close(sp, why, sizeof(why)));
	simworld_clear_faults(sp->world);
	ck_err(simpool_open(sp, false, why, sizeof(why)), -PF_EMEMBER_FAILED);
	ck_assert_msg(strstr(why, "member2: member 3 of pool \"sim\""), "%s", why);
	ck_assert_msg(strstr(why, "fsck.poolfs -y") && strstr(why, "read-only"), "%s", why);
	/* reading needs no maps */
	open_again(true);
	ck_assert(status_says("\"failed\":true,\"failure\":\"it failed before this mount\""));
	ck_bytes(look(PF_ROOT_INO, "f"), 0, p, LEN);
	simpool_abandon(sp);
	/* fsck says so too, and finds nothing else */
	ck_err(simpool_check(sp, why, sizeof(why)), -PF_EITEM_INVALID);
	ck_assert_msg(strstr(why, "PF0106") && !strstr(why, "; PF"), "%s", why);
	ck_assert_msg(lost_open(sp, "member2", why, sizeof(why)) == 0, "%s", why);
	ck_assert(status_says("\"failed\":false"));
	ck_assert(!status_says("\"failed\":true"));
	free(p);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("member_fails");
	TCase *tc = tcase_create("scenes");
	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, a_flush_fails_on_a_data_member, 0, 2);
	tcase_add_test(tc, staged_data_is_not_lost);
	tcase_add_loop_test(tc, until_it_is_rewritten, 0, 4);
	tcase_add_loop_test(tc, of_an_inode_that_left_the_cache, 0, 3);
	tcase_add_test(tc, a_full_host_is_no_failure);
	tcase_add_test(tc, a_bad_sector_is_no_failure);
	tcase_add_test(tc, it_vanishes_while_files_are_read);
	tcase_add_loop_test(tc, it_fails_at_the_end, 0, 6);
	tcase_add_loop_test(tc, a_metadata_member_fails, 0, 2);
	tcase_add_loop_test(tc, the_third_takes_over, 0, 2);
	tcase_add_test(tc, the_last_one_ends_writing);
	tcase_add_test(tc, what_a_mount_says);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
