/* SPDX-License-Identifier: MIT
 * compare mode: whether targets are met. */
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds from which on a ratio can meet or miss a target. Tails of pooled calls need fewer, for the calls are many; so do counted
 * bytes, on which other work of the machine has no influence. */
enum { MIN_ROUNDS = 10, MIN_FEW_ROUNDS = 5, SINCE_VERSION = 6 };

const struct target target_table[] = {
#define TARGET(metric, statistic, members, on_images, peer, bound, limit)                                              \
	{ METRIC_##metric, TARGET_##statistic, members, on_images, peer, TARGET_##bound, limit },
#include "target.def"
#undef TARGET
};
const unsigned nr_targets = sizeof(target_table) / sizeof(target_table[0]);

const char *target_verdict_text(enum target_verdict verdict)
{
	static const char *const texts[] = {
		[TARGET_NOT_MEASURED] = "not measured",
		[TARGET_FEW_ROUNDS] = "too few rounds",
		[TARGET_MET] = "met",
		[TARGET_MISSED] = "missed",
		[TARGET_OPEN] = "not shown",
	};
	return texts[verdict];
}

const char *target_statistic_text(enum target_statistic statistic)
{
	static const char *const texts[] = {
		[TARGET_VALUE] = "value", [TARGET_MEDIAN] = "median", [TARGET_P999] = "p99.9"
	};
	return texts[statistic];
}

/* -- who ------------------------------------------------------------------------------------------------------------ */
static bool find_pool(const struct compare *cmp, const struct target *target, unsigned *out)
{
	for (unsigned i = 0; i < cmp->nr_candidates; i++) {
		const struct candidate *c = &cmp->candidates[i];
		bool on_images = c->on_images || !cmp->options.loops;
		if (c->peer || c->version < SINCE_VERSION || on_images != target->on_images ||
		    candidate_members(c, cmp->options.nr_members) != target->nr_members)
			continue;
		*out = i;
		return true;
	}
	return false;
}

static bool find_peer(const struct compare *cmp, const char *name, unsigned *out)
{
	for (unsigned i = 0; i < cmp->nr_candidates; i++) {
		if (!cmp->candidates[i].peer || strcmp(cmp->candidates[i].name, name) != 0)
			continue;
		*out = i;
		return true;
	}
	return false;
}

/* -- how much ------------------------------------------------------------------------------------------------------- */
static double figure(const struct metric_result *r, enum target_statistic statistic)
{
	return statistic == TARGET_MEDIAN ? (double)r->tail.p50_ns : r->value;
}

/* One figure or ratio for each round in which there is one. */
static unsigned gather(const struct compare *cmp, const struct target *target, const struct target_result *who,
		       double *out)
{
	unsigned nr = 0;
	for (unsigned round = 0; round < cmp->nr_rounds; round++) {
		const struct metric_result *ours = compare_result(cmp, target->metric, who->ours, round);
		const struct metric_result *theirs = compare_result(cmp, target->metric, who->theirs, round);
		if (ours->state != METRIC_DONE || theirs->state != METRIC_DONE)
			continue;
		double divisor = target->peer ? figure(theirs, target->statistic) : 1;
		double value = figure(ours, target->statistic) / divisor;
		if (isfinite(value) && value > 0)
			out[nr++] = value;
	}
	return nr;
}

static int by_rounds(const struct compare *cmp, const struct target *target, struct target_result *out)
{
	double *values = calloc(cmp->nr_rounds, sizeof(*values));
	if (!values)
		return -ENOMEM;
	struct stats_ratio ratio = { 0 };
	out->nr_rounds = gather(cmp, target, out, values);
	int err = out->nr_rounds ? stats_paired(values, out->nr_rounds, cmp->config.seed, &ratio) : 0;
	free(values);
	out->value = ratio.ratio;
	out->low = ratio.low;
	out->high = ratio.high;
	return err;
}

static int by_pool(const struct compare *cmp, const struct target *target, struct target_result *out)
{
	struct compare_summary ours, theirs;
	int err = compare_summarize(cmp, target->metric, out->ours, &ours);
	if (!err)
		err = compare_summarize(cmp, target->metric, out->theirs, &theirs);
	if (err)
		return err;
	out->nr_rounds = ours.nr_rounds < theirs.nr_rounds ? ours.nr_rounds : theirs.nr_rounds;
	if (!theirs.tail.p999_ns)
		out->nr_rounds = 0;
	else
		out->value = (double)ours.tail.p999_ns / (double)theirs.tail.p999_ns;
	out->low = out->high = out->value;
	return 0;
}

static enum target_verdict judge(const struct target *target, const struct target_result *r)
{
	unsigned least = target->statistic == TARGET_P999 || !target->peer ? MIN_FEW_ROUNDS : MIN_ROUNDS;
	if (!r->nr_rounds)
		return TARGET_NOT_MEASURED;
	if (r->nr_rounds < least)
		return TARGET_FEW_ROUNDS;
	bool at_most = target->bound == TARGET_AT_MOST;
	if (at_most ? r->value <= target->limit : r->value >= target->limit)
		return TARGET_MET;
	return (at_most ? r->low > target->limit : r->high < target->limit) ? TARGET_MISSED : TARGET_OPEN;
}

int compare_target(const struct compare *cmp, const struct target *target, struct target_result *out)
{
	*out = (struct target_result){ 0 };
	if (!cmp->config.wanted[target->metric] || !find_pool(cmp, target, &out->ours))
		return 0;
	out->theirs = out->ours;
	if (target->peer && !find_peer(cmp, target->peer, &out->theirs))
		return 0;
	int err = target->statistic == TARGET_P999 ? by_pool(cmp, target, out) : by_rounds(cmp, target, out);
	out->verdict = judge(target, out);
	return err;
}

/* -- how it is shown ------------------------------------------------------------------------------------------------ */
static const char *bound_text(const struct target *target)
{
	return target->bound == TARGET_AT_MOST ? "at most" : "at least";
}

static void print_target(const struct compare *cmp, const struct target *target, const struct target_result *r)
{
	char who[2 * CANDIDATE_NAME_LEN + 4];
	snprintf(who, sizeof(who), "%s%s%s", cmp->candidates[r->ours].name, target->peer ? " / " : "",
		 target->peer ? target->peer : "");
	printf("%-26s %-6s  %-14s %6.2f [%.2f, %.2f]  %-8s %5.2f  %s\n", metric_table[target->metric].key,
	       target_statistic_text(target->statistic), who, r->value, r->low, r->high, bound_text(target),
	       target->limit, target_verdict_text(r->verdict));
}

int compare_targets_text(const struct compare *cmp)
{
	puts("targets: the figure, or the figure divided by that of the other [95 %]; missed when the interval is "
	     "beyond");
	for (unsigned i = 0; i < nr_targets; i++) {
		struct target_result r;
		int err = compare_target(cmp, &target_table[i], &r);
		if (err)
			return err;
		if (r.verdict != TARGET_NOT_MEASURED)
			print_target(cmp, &target_table[i], &r);
	}
	return 0;
}

int compare_targets_json(struct json *j, const struct compare *cmp)
{
	json_array(j, "targets");
	int err = 0;
	for (unsigned i = 0; i < nr_targets && !err; i++) {
		const struct target *target = &target_table[i];
		struct target_result r;
		err = compare_target(cmp, target, &r);
		if (err || r.verdict == TARGET_NOT_MEASURED)
			continue;
		json_object(j, NULL);
		json_string(j, "key", metric_table[target->metric].key);
		json_string(j, "statistic", target_statistic_text(target->statistic));
		json_string(j, "candidate", cmp->candidates[r.ours].name);
		if (target->peer)
			json_string(j, "against", target->peer);
		json_number(j, "rounds", r.nr_rounds);
		report_real(j, "value", r.value);
		report_real(j, "low", r.low);
		report_real(j, "high", r.high);
		report_real(j, target->bound == TARGET_AT_MOST ? "at_most" : "at_least", target->limit);
		json_string(j, "verdict", target_verdict_text(r.verdict));
		json_end_object(j);
	}
	json_end_array(j);
	return err;
}
