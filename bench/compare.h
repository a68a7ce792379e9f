/* SPDX-License-Identifier: MIT
 *
 * Purpose: what compare mode has measured, and what follows from it.
 *
 * Invariants
 *   I1  A ratio is of one round: candidate and baseline had the same members, minutes apart at most.
 *   I2  compare_order() is balanced: over 2 n rounds of n candidates each is at each place twice, and as often before
 *       any other as behind it.
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
	unsigned nr_members;
	uint64_t member_bytes; /* 0: enough for the work */
	const char *placement, *workdir;
	bool loops, json;
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
	struct stats_tail tail;   /* medians over the rounds; max: the greatest */
	struct stats_ratio ratio; /* not for the baseline */
	const char *note;         /* the first one; or NULL */
};
/* 0 or -ENOMEM. */
int compare_summarize(const struct compare *cmp, unsigned metric, unsigned candidate, struct compare_summary *out);

int compare_report(const struct compare *cmp);

#endif
