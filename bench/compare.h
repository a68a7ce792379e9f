/* SPDX-License-Identifier: MIT
 *
 * Purpose: what compare mode has measured, and what follows from it.
 *
 * Invariants
 *   I1  A ratio is of one round: candidate and baseline had the same members, minutes apart at most.
 *   I2  compare_order() is balanced: over 2 n rounds of n candidates each is at each place twice, and as often before
 *       any other as behind it.
 *   I3  A target is called missed only when the whole interval lies beyond it.
 *
 * Uses: candidate.h, metric.h, report.h.
 */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "candidate.h"
#include "metric.h"
#include "report.h"

struct compare {
	struct metric_config config;
	struct candidate candidates[CANDIDATE_MAX]; /* the first is the baseline */
	unsigned nr_candidates, nr_rounds;
	struct candidate_options options;
	uint64_t member_bytes; /* 0: enough for the work */
	const char *workdir;
	bool json, targets;
	struct report_machine machine;
	struct metric_result (*results)[NR_METRICS]; /* [round * nr_candidates + candidate] */
};

/* Which candidate is at @place (0 first) of @round. */
unsigned compare_order(unsigned nr_candidates, unsigned round, unsigned place);

static inline const struct metric_result *compare_result(const struct compare *cmp, unsigned metric, unsigned candidate,
							 unsigned round)
{
	return &cmp->results[round * cmp->nr_candidates + candidate][metric];
}

/* Over the rounds in which candidate (and, for the ratio, the baseline) did the metric. */
struct compare_summary {
	unsigned nr_rounds;
	double median, acknowledged;
	struct stats_tail
		tail; /* of all calls when they are pooled; else medians over the rounds, and the greatest max */
	struct stats_ratio ratio; /* not for the baseline */
	const char *note; /* of the first round that was not done, else of the one with the longest call; or NULL */
};
/* 0 or -ENOMEM. */
int compare_summarize(const struct compare *cmp, unsigned metric, unsigned candidate, struct compare_summary *out);

int compare_report(const struct compare *cmp);

/* -- targets (target.def) ------------------------------------------------------------------------------------------- */
enum target_statistic { TARGET_VALUE, TARGET_MEDIAN, TARGET_P999 };
enum target_bound { TARGET_AT_MOST, TARGET_AT_LEAST };

struct target {
	enum metric_id metric;
	enum target_statistic statistic;
	unsigned nr_members;
	bool on_images;
	const char *peer; /* NULL: the figure itself, not a ratio */
	enum target_bound bound;
	double limit;
};
extern const struct target target_table[];
extern const unsigned nr_targets;

enum target_verdict { TARGET_NOT_MEASURED, TARGET_FEW_ROUNDS, TARGET_MET, TARGET_MISSED, TARGET_OPEN };
const char *target_verdict_text(enum target_verdict verdict);
const char *target_statistic_text(enum target_statistic statistic);

struct target_result {
	enum target_verdict verdict;
	unsigned ours, theirs, nr_rounds;
	double value, low, high; /* of figures or of ratios of figures; without an interval low = high = value */
};
/* 0 or -ENOMEM. */
int compare_target(const struct compare *cmp, const struct target *target, struct target_result *out);
/* Below the table; and as the array "targets". */
int compare_targets_text(const struct compare *cmp);
int compare_targets_json(struct json *j, const struct compare *cmp);

#endif
