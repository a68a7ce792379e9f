/* SPDX-License-Identifier: MIT
 * The arithmetic of poolfs-bench: percentiles, medians, intervals, the order of rounds, choosing metrics, targets, counters. */
#include "compare.h"
#include "counter.h"
#include "load.h"
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

START_TEST(tails_of_pooled_metrics_are_of_all_calls)
{
	/* 1 to 100 in one round, 101 to 400 in the next: the median of the two medians would be 150. */
	const double base[] = { 1, 1 }, other[] = { 1, 1 };
	struct compare cmp = comparison(2, (const double *const[]){ base, other });
	for (unsigned round = 0; round < 2; round++) {
		struct metric_result *r = &cmp.results[round * 2][METRIC_SYNC_WRITE];
		uint64_t nr = round ? 300 : 100, first = round ? 101 : 1;
		r->times_ns = calloc(nr, sizeof(*r->times_ns));
		ck_assert_ptr_nonnull(r->times_ns);
		for (uint64_t i = 0; i < nr; i++)
			r->times_ns[i] = first + i;
		r->tail.nr = nr;
		r->tail.max_ns = first + nr - 1;
		snprintf(r->note, sizeof(r->note), "round %u", round);
	}
	struct compare_summary s;
	ck_assert_int_eq(compare_summarize(&cmp, METRIC_SYNC_WRITE, 0, &s), 0);
	ck_assert_uint_eq(s.tail.nr, 400);
	ck_assert_uint_eq(s.tail.p50_ns, 200);
	ck_assert_uint_eq(s.tail.p99_ns, 396);
	ck_assert_uint_eq(s.tail.max_ns, 400);
	ck_assert_str_eq(s.note, "round 1"); /* that of the longest call */
	ck_assert(metric_is_pooled(METRIC_MIXED_READ) && !metric_is_pooled(METRIC_SEQ_READ));
	for (unsigned i = 0; i < 4; i++)
		metric_results_free(cmp.results[i]);
	free(cmp.results);
}
END_TEST

/* -- targets -------------------------------------------------------------------------------------------------------- */
static const struct target *target_of(enum metric_id metric, unsigned nr_members, const char *peer)
{
	for (unsigned i = 0; i < nr_targets; i++) {
		const struct target *t = &target_table[i];
		if (t->metric == metric && t->nr_members == nr_members && t->statistic != TARGET_MEDIAN &&
		    (peer ? t->peer && !strcmp(peer, t->peer) : !t->peer))
			return t;
	}
	ck_abort_msg("no such target");
	return NULL;
}

/* The verdict on 10 rounds with the pool @middle times the peer, @spread of that. */
static enum target_verdict verdict_of(enum metric_id metric, unsigned nr_rounds, double middle, double spread)
{
	double peer[10], pool[10];
	for (unsigned i = 0; i < 10; i++)
		peer[i] = 100 + i;
	ratios(pool, 10, middle, spread, 7);
	for (unsigned i = 0; i < 10; i++)
		pool[i] *= peer[i];
	struct compare cmp = comparison(nr_rounds, (const double *const[]){ peer, pool });
	unsigned nr = 0;
	ck_assert(candidate_add_peers(cmp.candidates, &nr, "ext4"));
	ck_assert(candidate_add_versions(cmp.candidates, &nr, "6"));
	cmp.options = (struct candidate_options){ .nr_members = 1, .loops = true };
	cmp.config.wanted[metric] = true;
	struct target_result r;
	ck_assert_int_eq(compare_target(&cmp, target_of(metric, 1, "ext4"), &r), 0);
	ck_assert(r.low <= r.value && r.value <= r.high);
	free(cmp.results);
	return r.verdict;
}

START_TEST(targets_are_missed_only_when_all_of_the_interval_is)
{
	/* Less is better. */
	ck_assert_int_eq(verdict_of(METRIC_SYNC_WRITE, 10, 0.8, 0.1), TARGET_MET);
	ck_assert_int_eq(verdict_of(METRIC_SYNC_WRITE, 10, 1.3, 0.1), TARGET_MISSED);
	ck_assert_int_eq(verdict_of(METRIC_SYNC_WRITE, 10, 1.1, 0.6), TARGET_OPEN);
	ck_assert_int_eq(verdict_of(METRIC_SYNC_WRITE, 9, 0.8, 0.1), TARGET_FEW_ROUNDS);
	/* More is better. */
	ck_assert_int_eq(verdict_of(METRIC_SYNC_PARALLEL, 10, 1.3, 0.1), TARGET_MET);
	ck_assert_int_eq(verdict_of(METRIC_SYNC_PARALLEL, 10, 0.8, 0.1), TARGET_MISSED);
}
END_TEST

START_TEST(targets_are_of_the_right_candidates)
{
	/* On loop devices: v6 is no pool on image files and none with two members. */
	const double base[10] = { 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 };
	struct compare cmp = comparison(10, (const double *const[]){ base, base });
	unsigned nr = 0;
	ck_assert(candidate_add_versions(cmp.candidates, &nr, "6"));
	ck_assert(candidate_add_peers(cmp.candidates, &nr, "raw"));
	cmp.options = (struct candidate_options){ .nr_members = 1, .loops = true };
	cmp.config.wanted[METRIC_OSYNC_WRITE] = cmp.config.wanted[METRIC_SYNC_WRITE_BYTES] = true;
	struct target_result r;
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_OSYNC_WRITE, 1, "raw"), &r), 0);
	ck_assert_int_eq(r.verdict, TARGET_NOT_MEASURED);
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_SYNC_WRITE_BYTES, 2, NULL), &r), 0);
	ck_assert_int_eq(r.verdict, TARGET_NOT_MEASURED);
	/* Without a peer it is the figure itself. */
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_SYNC_WRITE_BYTES, 1, NULL), &r), 0);
	ck_assert_int_eq(r.verdict, TARGET_MET);
	ck_assert_double_eq(r.value, 2);
	nr = 0;
	ck_assert(candidate_add_versions(cmp.candidates, &nr, "6i"));
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_OSYNC_WRITE, 1, "raw"), &r), 0);
	ck_assert_int_eq(r.verdict, TARGET_MET);
	/* Not of older versions, nor of what was not wanted. */
	cmp.candidates[0].version = 5;
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_OSYNC_WRITE, 1, "raw"), &r), 0);
	ck_assert_int_eq(r.verdict, TARGET_NOT_MEASURED);
	cmp.candidates[0].version = 6;
	cmp.config.wanted[METRIC_OSYNC_WRITE] = false;
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_OSYNC_WRITE, 1, "raw"), &r), 0);
	ck_assert_int_eq(r.verdict, TARGET_NOT_MEASURED);
	free(cmp.results);
}
END_TEST

START_TEST(targets_of_tails_are_of_all_rounds_together)
{
	const double base[5] = { 1, 1, 1, 1, 1 };
	struct compare cmp = comparison(5, (const double *const[]){ base, base });
	unsigned nr = 0;
	ck_assert(candidate_add_peers(cmp.candidates, &nr, "ext4"));
	ck_assert(candidate_add_versions(cmp.candidates, &nr, "6"));
	cmp.options = (struct candidate_options){ .nr_members = 1, .loops = true };
	cmp.config.wanted[METRIC_MIXED_READ] = true;
	for (unsigned i = 0; i < 10; i++) {
		struct metric_result *r = &cmp.results[i][METRIC_MIXED_READ];
		/* Of 5000 calls, 10 of the pool are ten times as long, all in one round: more than one in a thousand. */
		r->tail.nr = 1000;
		r->times_ns = calloc(1000, sizeof(*r->times_ns));
		ck_assert_ptr_nonnull(r->times_ns);
		for (unsigned k = 0; k < 1000; k++)
			r->times_ns[k] = i == 1 && k < 10 ? 1000 : 100;
	}
	struct target_result r;
	ck_assert_int_eq(compare_target(&cmp, target_of(METRIC_MIXED_READ, 1, "ext4"), &r), 0);
	ck_assert_double_eq(r.value, 10);
	ck_assert_int_eq(r.verdict, TARGET_MISSED);
	for (unsigned i = 0; i < 10; i++)
		metric_results_free(cmp.results[i]);
	free(cmp.results);
}
END_TEST

/* -- counters and threads ------------------------------------------------------------------------------------------- */
START_TEST(counters_of_devices_add_up)
{
	struct counter_values sum = { 0 };
	ck_assert(
		counter_add("  322154    29244 39890727    70553   212486     2027 21540450    38746        0    57588"
			    "   117285       64        0  2449452      507     1644     7477\n",
			    &sum));
	ck_assert_uint_eq(sum.bytes, UINT64_C(21540450) * 512);
	ck_assert_uint_eq(sum.flushes, 1644);
	ck_assert(counter_add("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", &sum));
	ck_assert_uint_eq(sum.bytes, UINT64_C(21540457) * 512);
	ck_assert_uint_eq(sum.flushes, 1660);
	/* Kernels before 5.5 do not count flushes. */
	ck_assert(!counter_add("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", &sum));
	ck_assert(!counter_add("", &sum));
	struct counter none = { .nr = 1, .devices = { "/dev/nonesuch" } };
	ck_assert_int_eq(counter_read(&none, &sum), -ENOENT);
}
END_TEST

static int add_thread(unsigned thread, void *arg)
{
	((unsigned *)arg)[thread]++;
	return thread == 3 ? -EDOM : 0;
}

START_TEST(threads_all_run_and_the_error_is_told)
{
	unsigned ran[8] = { 0 };
	ck_assert_int_eq(load_run(3, add_thread, ran), 0);
	ck_assert_int_eq(load_run(8, add_thread, ran), -EDOM);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(ran[i], i < 3 ? 2 : 1);
}
END_TEST

/* -- metrics -------------------------------------------------------------------------------------------------------- */
START_TEST(less_is_better_of_times_and_bytes)
{
	static const char *const more[] = { "MiB/s", "1/s" };
	for (unsigned i = 0; i < NR_METRICS; i++) {
		const char *unit = metric_unit_name(metric_table[i].unit);
		bool is_rate = !strcmp(unit, more[0]) || !strcmp(unit, more[1]);
		ck_assert_msg(metric_less_is_better(i) == !is_rate, "%s", metric_table[i].key);
		ck_assert_msg((metric_speed(i, 4) > metric_speed(i, 2)) == is_rate, "%s", metric_table[i].key);
	}
	ck_assert_str_eq(metric_verdict_text(METRIC_SYNC_WRITE, STATS_FASTER), "faster");
	ck_assert_str_eq(metric_verdict_text(METRIC_SYNC_WRITE_BYTES, STATS_FASTER), "less");
	ck_assert_str_eq(metric_verdict_text(METRIC_APPEND_BYTES, STATS_SLOWER), "more");
	ck_assert_str_eq(metric_verdict_text(METRIC_APPEND_BYTES, STATS_NO_DIFFERENCE), "no difference shown");
}
END_TEST

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
	nr = 0;
	ck_assert(candidate_add_versions(all, &nr, "6,6x2,6i,5x3i"));
	ck_assert_str_eq(all[1].name, "v6x2");
	ck_assert_str_eq(all[3].name, "v5x3i");
	ck_assert_uint_eq(candidate_members(&all[0], 4), 4);
	ck_assert_uint_eq(candidate_members(&all[1], 4), 2);
	ck_assert_uint_eq(candidate_members(&all[3], 4), 3);
	ck_assert_uint_eq(all[3].version, 5);
	ck_assert(!all[0].on_images && !all[1].on_images && all[2].on_images && all[3].on_images);
	ck_assert(candidate_add_peers(all, &nr, "raw,rawloop,xfs,btrfs"));
	ck_assert(all[4].on_images && !all[5].on_images);
	ck_assert_uint_eq(candidate_members(&all[6], 4), 1);
	ck_assert_uint_eq(candidate_members(&all[7], 4), 4);
	ck_assert(candidate_add_peers(all, &nr, "empty,fuseraw,fuseloop"));
	ck_assert(!all[8].on_images && all[9].on_images && !all[10].on_images);
	ck_assert_uint_eq(candidate_members(&all[10], 4), 1);
	nr = 0;
	ck_assert(candidate_add_versions(all, &nr, "3,4"));
	ck_assert(!candidate_reclaims(&all[0]) && candidate_reclaims(&all[1]));
	static const char *const wrong[] = { "",    "0",    "x",     "4,", "4,,5", "999", "6x",  "6x0",
					     "6x9", "6ix2", "6x2x2", "x2", "i",    "6ii", "6 x2" };
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
	tcase_add_test(tc, tails_of_pooled_metrics_are_of_all_calls);
	tcase_add_test(tc, targets_are_missed_only_when_all_of_the_interval_is);
	tcase_add_test(tc, targets_are_of_the_right_candidates);
	tcase_add_test(tc, targets_of_tails_are_of_all_rounds_together);
	tcase_add_test(tc, counters_of_devices_add_up);
	tcase_add_test(tc, threads_all_run_and_the_error_is_told);
	tcase_add_test(tc, less_is_better_of_times_and_bytes);
	tcase_add_test(tc, metrics_by_name_and_group);
	tcase_add_test(tc, versions_and_peers_by_name);
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int nr_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return nr_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
