/* SPDX-License-Identifier: MIT
 * The log without memory: what cannot be taken is a gap, never half a record; opening and scanning say so. The linker leads the
 * allocations here (tests/local.mk). */
#include "log_util.h"
#include "unit/nomem.h"

static const uint32_t rings[] = { 256, 256 };

START_TEST(append_is_whole_or_lost)
{
	for (unsigned after = 0; after < 2; after++) {
		struct rig rig;
		rig_new(&rig, 2, rings, 0);
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		/* two chunks of 16 blocks are there from the beginning; the second record needs two more */
		must_append(&rig, 100 * 1024);
		uint64_t open = rig_stats(&rig).open;
		nomem_begin(after, false);
		ck_assert(!rig_append(&rig, 100 * 1024, 0, no_extra));
		nomem_end();
		ck_assert_uint_eq(rig_stats(&rig).open, open); /* nothing of it */
		ck_assert_int_eq(pf_log_commit(rig.log), -EAGAIN);
		must_scan(&rig, 0, 0, 1, 0);
		rig_checkpoint(&rig);
		must_append(&rig, 100 * 1024);
		must_append(&rig, 64);
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		must_scan(&rig, rig.super.log_start, rig.next - 2, 2, 0);
		rig_free(&rig);
	}
}
END_TEST

/* Memory is used again: a log that writes as it goes needs no more than it had. */
START_TEST(steady_state)
{
	struct rig rig;
	rig_new(&rig, 2, rings, 0);
	for (unsigned i = 0; i < 2000; i++) {
		nomem_begin(0, false);
		must_append(&rig, 6000);
		nomem_end();
		ck_assert_int_eq(pf_log_commit(rig.log), 0);
		if (pf_log_wants_checkpoint(rig.log))
			rig_checkpoint(&rig);
	}
	rig_free(&rig);
}
END_TEST

START_TEST(open_fails)
{
	struct rig rig;
	rig_new(&rig, 2, rings, 0);
	int err = -ENOMEM;
	for (unsigned after = 0; err; after++) {
		struct pf_log *log = (void *)1;
		nomem_begin(after, false);
		err = pf_log_open(rig.set, &rig.super, 1, 0, &log);
		nomem_end();
		ck_assert(err == 0 || (err == -ENOMEM && !log));
		ck_assert(err == 0 || after < 10);
		if (!err)
			ck_assert_uint_ge(after, 4);
		if (!err)
			pf_log_close(log);
	}
	rig_free(&rig);
}
END_TEST

START_TEST(scan_fails)
{
	struct rig rig;
	struct pf_log_scan scan;
	struct pf_diag diag;
	rig_new(&rig, 2, rings, 0);
	for (unsigned i = 0; i < 60; i++)
		must_append(&rig, 8 * 1024);
	ck_assert_int_eq(pf_log_commit(rig.log), 0);
	int err = -ENOMEM;
	unsigned after;
	for (after = 0; err; after++) {
		nomem_begin(after, false);
		err = rig_scan(&rig, 0, &scan, &diag);
		nomem_end();
		ck_assert(err == 0 || err == -ENOMEM);
		ck_assert(err == 0 || (diag.text[0] && !scan.bytes && !scan.records));
	}
	ck_assert_uint_ge(after, 5);
	check_scan(&scan, 0, 60, 0);
	pf_log_scan_free(&scan);
	rig_free(&rig);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log_nomem");
	TCase *tc = tcase_create("log_nomem");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, append_is_whole_or_lost);
	tcase_add_test(tc, steady_state);
	tcase_add_test(tc, open_fails);
	tcase_add_test(tc, scan_fails);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
