/* SPDX-License-Identifier: MIT
 * compare mode: medians, ratios and how they are shown. */
#include "compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

unsigned compare_order(unsigned nr_candidates, unsigned round, unsigned place)
{
	/* Each second round is the one before it backwards; each pair of rounds begins one further on. */
	unsigned forward = round % 2 ? nr_candidates - 1 - place : place;
	return (forward + round / 2) % nr_candidates;
}

/* Of all calls of all rounds. */
static int pool_tail(const struct metric_result **done, unsigned nr, struct stats_tail *out)
{
	uint64_t nr_times = 0, *times;
	for (unsigned i = 0; i < nr; i++)
		nr_times += done[i]->times_ns ? done[i]->tail.nr : 0;
	times = nr_times ? malloc(nr_times * sizeof(*times)) : NULL;
	if (nr_times && !times)
		return -ENOMEM;
	nr_times = 0;
	for (unsigned i = 0; i < nr; i++) {
		if (!done[i]->times_ns)
			continue;
		memcpy(times + nr_times, done[i]->times_ns, done[i]->tail.nr * sizeof(*times));
		nr_times += done[i]->tail.nr;
	}
	stats_tail(times, nr_times, out);
	free(times);
	return 0;
}

/* Medians over the rounds, field by field. */
static uint64_t median_ns(double *scratch, unsigned nr)
{
	return (uint64_t)stats_median(scratch, nr);
}

static void summarize_tail(const struct metric_result **done, unsigned nr, double *scratch, struct stats_tail *out)
{
#define FIELD(field)                                                                                                   \
	do {                                                                                                           \
		for (unsigned i = 0; i < nr; i++)                                                                      \
			scratch[i] = (double)done[i]->tail.field;                                                      \
		out->field = median_ns(scratch, nr);                                                                   \
	} while (0)
	FIELD(nr);
	FIELD(mean_ns);
	FIELD(p50_ns);
	FIELD(p95_ns);
	FIELD(p99_ns);
	FIELD(p999_ns);
	FIELD(p9999_ns);
#undef FIELD
	out->max_ns = 0;
	for (unsigned i = 0; i < nr; i++)
		out->max_ns = done[i]->tail.max_ns > out->max_ns ? done[i]->tail.max_ns : out->max_ns;
}

static int summarize_ratio(const struct compare *cmp, unsigned metric, unsigned candidate, double *scratch,
			   struct stats_ratio *out)
{
	unsigned nr = 0;
	for (unsigned round = 0; round < cmp->nr_rounds; round++) {
		const struct metric_result *base = compare_result(cmp, metric, 0, round);
		const struct metric_result *r = compare_result(cmp, metric, candidate, round);
		if (base->state == METRIC_DONE && r->state == METRIC_DONE)
			scratch[nr++] = metric_speed(metric, r->value) / metric_speed(metric, base->value);
	}
	return nr ? stats_paired(scratch, nr, cmp->config.seed, out) : 0;
}

static const char *choose_note(const struct compare *cmp, unsigned metric, unsigned candidate)
{
	const struct metric_result *best = NULL;
	for (unsigned round = 0; round < cmp->nr_rounds; round++) {
		const struct metric_result *r = compare_result(cmp, metric, candidate, round);
		if (r->note[0] && r->state != METRIC_DONE)
			return r->note;
		if (r->note[0] && (!best || r->tail.max_ns > best->tail.max_ns))
			best = r;
	}
	return best ? best->note : NULL;
}

int compare_summarize(const struct compare *cmp, unsigned metric, unsigned candidate, struct compare_summary *out)
{
	*out = (struct compare_summary){ 0 };
	double *scratch = calloc(cmp->nr_rounds, sizeof(*scratch));
	const struct metric_result **done = calloc(cmp->nr_rounds, sizeof(*done));
	int err = scratch && done ? 0 : -ENOMEM;
	for (unsigned round = 0; round < cmp->nr_rounds && !err; round++) {
		const struct metric_result *r = compare_result(cmp, metric, candidate, round);
		if (r->state == METRIC_DONE)
			done[out->nr_rounds++] = r;
	}
	if (!err && out->nr_rounds && metric_is_pooled(metric))
		err = pool_tail(done, out->nr_rounds, &out->tail);
	else if (!err && out->nr_rounds)
		summarize_tail(done, out->nr_rounds, scratch, &out->tail);
	out->note = choose_note(cmp, metric, candidate);
	if (!err && out->nr_rounds) {
		for (unsigned i = 0; i < out->nr_rounds; i++)
			scratch[i] = done[i]->value;
		out->median = stats_median(scratch, out->nr_rounds);
		for (unsigned i = 0; i < out->nr_rounds; i++)
			scratch[i] = done[i]->acknowledged;
		out->acknowledged = stats_median(scratch, out->nr_rounds);
		if (candidate)
			err = summarize_ratio(cmp, metric, candidate, scratch, &out->ratio);
	}
	free(scratch);
	free(done);
	return err;
}

/* -- text ----------------------------------------------------------------------------------------------------------- */
static void print_row(const struct compare *cmp, unsigned metric, unsigned candidate, const struct compare_summary *s)
{
	char value[REPORT_VALUE_LEN];
	printf("%-26s %-7s ", candidate ? "" : metric_table[metric].key, cmp->candidates[candidate].name);
	if (!s->nr_rounds) {
		printf("%10s        %s\n", "-", s->note ? s->note : "");
		return;
	}
	printf("%10s %-5s", report_value(value, s->median), metric_unit_name(metric_table[metric].unit));
	report_ms(s->tail.p50_ns);
	report_ms(s->tail.p99_ns);
	report_ms(s->tail.p999_ns);
	report_ms(s->tail.p9999_ns);
	report_ms(s->tail.max_ns);
	if (candidate && s->ratio.ratio > 0)
		printf("  %5.2f [%.2f, %.2f]  %s", s->ratio.ratio, s->ratio.low, s->ratio.high,
		       metric_verdict_text(metric, s->ratio.verdict));
	printf("%s%s\n", s->note ? "  " : "", s->note ? s->note : "");
}

static int report_text(const struct compare *cmp)
{
	printf("%-26s %-7s %10s %-5s %9s %9s %9s %9s %9s  speed against %s [95 %%]\n", "metric", "", "median", "unit",
	       "p50 ms", "p99 ms", "p99.9 ms", "p99.99 ms", "max ms", cmp->candidates[0].name);
	for (unsigned i = 0; i < NR_METRICS; i++) {
		for (unsigned c = 0; c < cmp->nr_candidates && cmp->config.wanted[i]; c++) {
			struct compare_summary s;
			int err = compare_summarize(cmp, i, c, &s);
			if (err)
				return err;
			print_row(cmp, i, c, &s);
		}
	}
	unsigned nr_members = cmp->options.nr_members;
	printf("A ratio is of speed: above 1 is better than %s, also where less of the unit is better (ms, us, x, "
	       "KiB).\n",
	       cmp->candidates[0].name);
	printf("Percentiles: of all calls of all rounds in the groups sync, device and mixed, otherwise medians of the "
	       "rounds.\n");
	printf("%u round%s, %u member%s on %s unless the name says otherwise (x: members, i: on image files)\n",
	       cmp->nr_rounds, cmp->nr_rounds == 1 ? "" : "s", nr_members, nr_members == 1 ? "" : "s",
	       cmp->options.loops ? "loop devices with direct I/O" : "image files");
	int err = cmp->targets ? compare_targets_text(cmp) : 0;
	report_machine_text(&cmp->machine);
	return err;
}

/* -- JSON ----------------------------------------------------------------------------------------------------------- */
static void candidate_json(struct json *j, const struct compare *cmp, unsigned metric, unsigned candidate,
			   const struct compare_summary *s)
{
	json_object(j, NULL);
	json_string(j, "name", cmp->candidates[candidate].name);
	json_number(j, "members", candidate_members(&cmp->candidates[candidate], cmp->options.nr_members));
	json_bool(j, "loop_devices", cmp->options.loops && !cmp->candidates[candidate].on_images);
	if (s->note)
		json_string(j, "note", s->note);
	json_array(j, "values");
	for (unsigned round = 0; round < cmp->nr_rounds; round++) {
		const struct metric_result *r = compare_result(cmp, metric, candidate, round);
		if (r->state == METRIC_DONE)
			report_real(j, NULL, r->value);
		else
			json_null(j, NULL);
	}
	json_end_array(j);
	if (s->nr_rounds) {
		report_real(j, "median", s->median);
		if (s->acknowledged > 0)
			report_real(j, "acknowledged", s->acknowledged);
		report_tail(j, &s->tail);
	}
	if (candidate && s->ratio.ratio > 0) {
		report_real(j, "ratio", s->ratio.ratio);
		report_real(j, "low", s->ratio.low);
		report_real(j, "high", s->ratio.high);
		json_string(j, "verdict", metric_verdict_text(metric, s->ratio.verdict));
	}
	json_end_object(j);
}

static int report_json(const struct compare *cmp)
{
	struct json j;
	report_begin(&j, "compare", &cmp->machine, &cmp->config);
	json_number(&j, "rounds", cmp->nr_rounds);
	json_number(&j, "members", cmp->options.nr_members);
	json_number(&j, "member_bytes", cmp->member_bytes);
	json_bool(&j, "loop_devices", cmp->options.loops);
	json_string(&j, "placement", cmp->options.placement ? cmp->options.placement : "default");
	json_array(&j, "metrics");
	int err = 0;
	for (unsigned i = 0; i < NR_METRICS && !err; i++) {
		if (!cmp->config.wanted[i])
			continue;
		json_object(&j, NULL);
		json_string(&j, "key", metric_table[i].key);
		json_string(&j, "unit", metric_unit_name(metric_table[i].unit));
		json_string(&j, "better", metric_less_is_better(i) ? "less" : "more");
		json_bool(&j, "pooled", metric_is_pooled(i));
		json_array(&j, "candidates");
		for (unsigned c = 0; c < cmp->nr_candidates && !err; c++) {
			struct compare_summary s;
			err = compare_summarize(cmp, i, c, &s);
			if (!err)
				candidate_json(&j, cmp, i, c, &s);
		}
		json_end_array(&j);
		json_end_object(&j);
	}
	json_end_array(&j);
	if (!err && cmp->targets)
		err = compare_targets_json(&j, cmp);
	report_end(&j);
	return err;
}

int compare_report(const struct compare *cmp)
{
	return cmp->json ? report_json(cmp) : report_text(cmp);
}
