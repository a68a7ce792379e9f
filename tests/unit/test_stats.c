/* SPDX-License-Identifier: MIT
 * The arithmetic of poolfs-bench: percentiles, medians, intervals, the order of rounds, choosing metrics. */
#include "compare.h"
#include "metric.h"
#include "stats.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -- tails ---------------------------------------------------------------------------------------------------------- */
START_TEST(tail_of_known_times)
{
	uint64_t ns[10000];
	/* 1 to 10000, in an order that is not sorted. */
	for (unsigned i = 0; i < 10000; i++)
		ns[i] = (i * 7919u) % 10000 + 1;
	struct stats_tail t;
	stats_tail(ns, 10000, &t);
	ck_assert_uint_eq(t.nr, 10000);
	ck_assert_uint_eq(t.p50_ns, 5000);
	ck_assert_uint_eq(t.p95_ns, 9500);
	ck_assert_uint_eq(t.p99_ns, 9900);
	ck_assert_uint_eq(t.p999_ns, 9990);
	ck_assert_uint_eq(t.p9999_ns, 9999);
	ck_assert_uint_eq(t.max_ns, 10000);
	ck_assert_double_eq_tol(t.mean_ns, 5000.5, 1e-9);
}
END_TEST

START_TEST(tail_of_few)
{
	struct stats_tail t;
	stats_tail(NULL, 0, &t);
	ck_assert_uint_eq(t.nr, 0);
	ck_assert_uint_eq(t.max_ns, 0);
	uint64_t one[] = { 7 };
	stats_tail(one, 1, &t);
	ck_assert_uint_eq(t.p50_ns, 7);
	ck_assert_uint_eq(t.p9999_ns, 7);
	uint64_t four[] = { 40, 10, 30, 20 };
	stats_tail(four, 4, &t);
	ck_assert_uint_eq(t.p50_ns, 20); /* two of four are not above it */
	ck_assert_uint_eq(t.p95_ns, 40);
}
END_TEST

START_TEST(one_outlier_is_seen_at_the_end_only)
{
	uint64_t ns[1000];
	for (unsigned i = 0; i < 1000; i++)
		ns[i] = 100;
	ns[500] = 4200000;
	struct stats_tail t;
	stats_tail(ns, 1000, &t);
	ck_assert_uint_eq(t.p999_ns, 100);
	ck_assert_uint_eq(t.p9999_ns, 4200000);
	ck_assert_uint_eq(t.max_ns, 4200000);
}
END_TEST

START_TEST(medians)
{
	double odd[] = { 3, 1, 2 }, even[] = { 4, 1, 3, 2 };
	ck_assert_double_eq(stats_median(odd, 3), 2);
	ck_assert_double_eq(stats_median(even, 4), 2.5);
	ck_assert_double_eq(stats_median(NULL, 0), 0);
}
END_TEST

/* -- ratios --------------------------------------------------------------------------------------------------------- */
/* @nr ratios around @middle, @spread wide. */
static void ratios(double *out, size_t nr, double middle, double spread, uint64_t seed)
{
	for (size_t i = 0; i < nr; i++)
		out[i] = middle + spread * ((double)(stats_random(&seed) % 2001) / 1000 - 1);
}

START_TEST(clear_differences_are_real)
{
	double r[20];
	struct stats_ratio s;
	ratios(r, 20, 0.8, 0.05, 3);
	ck_assert_int_eq(stats_paired(r, 20, 1, &s), 0);
	ck_assert_int_eq(s.verdict, STATS_SLOWER);
	ck_assert(s.low <= s.ratio && s.ratio <= s.high && s.high < 0.86 && s.low > 0.74);
	ratios(r, 20, 1.3, 0.1, 4);
	ck_assert_int_eq(stats_paired(r, 20, 1, &s), 0);
	ck_assert_int_eq(s.verdict, STATS_FASTER);
}
END_TEST

START_TEST(noise_is_no_difference)
{
	double r[20];
	struct stats_ratio s;
	for (unsigned i = 0; i < 20; i++)
		r[i] = i % 2 ? 0.8 : 1.25;
	ck_assert_int_eq(stats_paired(r, 20, 1, &s), 0);
	ck_assert_int_eq(s.verdict, STATS_NO_DIFFERENCE);
	ck_assert(s.low < 1 && s.high > 1);
}
END_TEST

/* Where the truth is known: the interval holds it about 95 times in 100, neither always nor seldom. */
START_TEST(interval_covers_the_truth)
{
	unsigned covered = 0, nr = 200;
	for (unsigned i = 0; i < nr; i++) {
		double r[15];
		struct stats_ratio s;
		ratios(r, 15, 1.1, 0.3, 1000 + i);
		ck_assert_int_eq(stats_paired(r, 15, i + 1, &s), 0);
		covered += s.low <= 1.1 && 1.1 <= s.high;
	}
	ck_assert_uint_ge(covered, nr * 88 / 100);
	ck_assert_uint_lt(covered, nr);
}
END_TEST

START_TEST(few_rounds_prove_nothing)
{
	double r[STATS_MIN_ROUNDS] = { 2, 2, 2, 2, 2 };
	struct stats_ratio s;
	ck_assert_int_eq(stats_paired(r, STATS_MIN_ROUNDS - 1, 1, &s), 0);
	ck_assert_int_eq(s.verdict, STATS_FEW_ROUNDS);
	ck_assert_int_eq(stats_paired(r, STATS_MIN_ROUNDS, 1, &s), 0);
	ck_assert_int_eq(s.verdict, STATS_FASTER);
	ck_assert_int_eq(stats_paired(r, 0, 1, &s), -EINVAL);
}
END_TEST

START_TEST(same_seed_same_interval)
{
	double r[12];
	struct stats_ratio a, b, c;
	ratios(r, 12, 1, 0.4, 9);
	ck_assert_int_eq(stats_paired(r, 12, 5, &a) | stats_paired(r, 12, 5, &b) | stats_paired(r, 12, 6, &c), 0);
	ck_assert(a.low == b.low && a.high == b.high && a.ratio == b.ratio);
	ck_assert(a.ratio == c.ratio);
}
END_TEST

/* -- rounds --------------------------------------------------------------------------------------------------------- */
START_TEST(order_is_balanced)
{
	unsigned nr = (unsigned)_i;
	unsigned at_place[8][8] = { 0 }, before[8][8] = { 0 };
	for (unsigned round = 0; round < 2 * nr; round++) {
		unsigned order[8];
		bool seen[8] = { false };
		for (unsigned place = 0; place < nr; place++) {
			order[place] = compare_order(nr, round, place);
			ck_assert_uint_lt(order[place], nr);
			ck_assert(!seen[order[place]]);
			seen[order[place]] = true;
			at_place[order[place]][place]++;
			for (unsigned k = 0; k < place; k++)
				before[order[k]][order[place]]++;
		}
	}
	for (unsigned a = 0; a < nr; a++) {
		for (unsigned b = 0; b < nr; b++) {
			ck_assert_uint_eq(at_place[a][b], 2);
			if (a != b)
				ck_assert_uint_eq(before[a][b], nr);
		}
	}
}
END_TEST

/* Two candidates, @nr rounds; each metric of candidate c in round r is values[c][r], 0: failed. */
static struct compare comparison(unsigned nr, const double *const values[2])
{
	struct compare cmp = { .nr_candidates = 2, .nr_rounds = nr, .config.seed = 1 };
	cmp.results = calloc(2 * nr, sizeof(*cmp.results));
	ck_assert_ptr_nonnull(cmp.results);
	for (unsigned round = 0; round < nr; round++) {
		for (unsigned c = 0; c < 2; c++) {
			for (unsigned m = 0; m < NR_METRICS; m++) {
				struct metric_result *r = &cmp.results[round * 2 + c][m];
				r->value = values[c][round];
				r->state = r->value > 0 ? METRIC_DONE : METRIC_FAILED;
				r->tail.max_ns = (uint64_t)(1000 * r->value);
				if (r->state == METRIC_FAILED)
					strcpy(r->note, "broken");
			}
		}
	}
	return cmp;
}

START_TEST(ratios_are_of_one_round_and_of_speed)
{
	/* Round by round twice as much, although the medians over all rounds would say otherwise. */
	const double base[] = { 1, 10, 100, 1000, 10000 }, other[] = { 2, 20, 200, 2000, 20000 };
	struct compare cmp = comparison(5, (const double *const[]){ base, other });
	struct compare_summary s;
	ck_assert_int_eq(compare_summarize(&cmp, METRIC_SEQ_WRITE, 1, &s), 0);
	ck_assert_double_eq_tol(s.ratio.ratio, 2, 1e-12);
	ck_assert_int_eq(s.ratio.verdict, STATS_FASTER);
	ck_assert_double_eq(s.median, 200);
	ck_assert_uint_eq(s.tail.max_ns, 20000000);
	/* Twice the milliseconds is half the speed. */
	ck_assert_int_eq(compare_summarize(&cmp, METRIC_CREATE, 1, &s), 0);
	ck_assert_double_eq_tol(s.ratio.ratio, 0.5, 1e-12);
	ck_assert_int_eq(s.ratio.verdict, STATS_SLOWER);
	free(cmp.results);
}
END_TEST

START_TEST(failed_rounds_do_not_count)
{
	const double base[] = { 1, 0, 1, 1, 1, 1, 1 }, other[] = { 3, 3, 0, 3, 3, 3, 3 };
	struct compare cmp = comparison(7, (const double *const[]){ base, other });
	struct compare_summary s;
	ck_assert_int_eq(compare_summarize(&cmp, METRIC_SEQ_READ, 1, &s), 0);
	ck_assert_uint_eq(s.nr_rounds, 6);
	ck_assert_double_eq_tol(s.ratio.ratio, 3, 1e-12);
	ck_assert_str_eq(s.note, "broken");
	free(cmp.results);
}
END_TEST

/* -- metrics -------------------------------------------------------------------------------------------------------- */
START_TEST(metrics_by_name_and_group)
{
	struct metric_config config = { 0 };
	char bad[METRIC_NOTE_LEN];
	ck_assert(metric_select(&config, "seq_read_mib_s,files", bad));
	unsigned nr = 0;
	for (unsigned i = 0; i < NR_METRICS; i++) {
		nr += config.wanted[i];
		ck_assert(config.wanted[i] == (i == METRIC_SEQ_READ || metric_table[i].group == METRIC_FILES));
	}
	ck_assert_uint_eq(nr, 5);
	ck_assert(metric_select(&config, "prototype", bad));
	nr = 0;
	for (unsigned i = 0; i < NR_METRICS; i++)
		nr += config.wanted[i];
	ck_assert_uint_eq(nr, 7);
	static const char *const wrong[] = { "", "seq", "seq_read_mib_s,", ",files", "seq_read_mib_s files" };
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_msg(!metric_select(&config, wrong[i], bad), "accepted: \"%s\"", wrong[i]);
}
END_TEST

START_TEST(versions_and_peers_by_name)
{
	struct candidate all[CANDIDATE_MAX];
	unsigned nr = 0;
	ck_assert(candidate_add_versions(all, &nr, "4,5"));
	ck_assert(candidate_add_peers(all, &nr, "ext4"));
	ck_assert_uint_eq(nr, 3);
	ck_assert_str_eq(all[0].name, "v4");
	ck_assert_uint_eq(all[1].version, 5);
	ck_assert(all[2].peer && !all[0].peer);
	static const char *const wrong[] = { "", "0", "x", "4,", "4,,5", "999" };
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		nr = 0;
		ck_assert_msg(!candidate_add_versions(all, &nr, wrong[i]), "accepted: \"%s\"", wrong[i]);
	}
	nr = 0;
	ck_assert(!candidate_add_peers(all, &nr, "ext4,nonesuch"));
	nr = CANDIDATE_MAX;
	ck_assert(!candidate_add_versions(all, &nr, "5"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("stats");
	TCase *tc = tcase_create("stats");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, tail_of_known_times);
	tcase_add_test(tc, tail_of_few);
	tcase_add_test(tc, one_outlier_is_seen_at_the_end_only);
	tcase_add_test(tc, medians);
	tcase_add_test(tc, clear_differences_are_real);
	tcase_add_test(tc, noise_is_no_difference);
	tcase_add_test(tc, interval_covers_the_truth);
	tcase_add_test(tc, few_rounds_prove_nothing);
	tcase_add_test(tc, same_seed_same_interval);
	tcase_add_loop_test(tc, order_is_balanced, 1, 7);
	tcase_add_test(tc, ratios_are_of_one_round_and_of_speed);
	tcase_add_test(tc, failed_rounds_do_not_count);
	tcase_add_test(tc, metrics_by_name_and_group);
	tcase_add_test(tc, versions_and_peers_by_name);
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int nr_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
