/* SPDX-License-Identifier: MIT */
#include "metric.h"

#include "cli.h"
#include "workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct metric_info metric_table[NR_METRICS] = {
#define METRIC(NAME, group, unit, function, key, title)                                                                \
	[METRIC_##NAME] = { METRIC_##group, METRIC_##unit, key, title, function },
#include "metric.def"
#undef METRIC
};

const char *metric_group_name(enum metric_group group)
{
	static const char *const names[] = { "prototype", "sequential", "random", "files", "sync", "device", "mixed" };
	return names[group];
}

const char *metric_unit_name(enum metric_unit unit)
{
	static const char *const names[] = {
		[METRIC_MIB_S] = "MiB/s", [METRIC_PER_S] = "1/s", [METRIC_MS] = "ms",
		[METRIC_US] = "us",       [METRIC_TIMES] = "x",   [METRIC_KIB] = "KiB",
	};
	return names[unit];
}

bool metric_less_is_better(enum metric_id id)
{
	return metric_table[id].unit != METRIC_MIB_S && metric_table[id].unit != METRIC_PER_S;
}

double metric_speed(enum metric_id id, double value)
{
	return metric_less_is_better(id) ? 1 / value : value;
}

bool metric_is_pooled(enum metric_id id)
{
	enum metric_group group = metric_table[id].group;
	return group == METRIC_SYNC || group == METRIC_DEVICE || group == METRIC_MIXED;
}

const char *metric_verdict_text(enum metric_id id, enum stats_verdict verdict)
{
	bool bytes = metric_table[id].unit == METRIC_TIMES || metric_table[id].unit == METRIC_KIB;
	if (bytes && verdict == STATS_FASTER)
		return "less";
	if (bytes && verdict == STATS_SLOWER)
		return "more";
	return stats_verdict_text(verdict);
}

static bool select_word(struct metric_config *config, const char *word, size_t len)
{
	bool found = false;
	for (unsigned i = 0; i < NR_METRICS; i++) {
		const char *names[] = { metric_table[i].key, metric_group_name(metric_table[i].group) };
		for (unsigned k = 0; k < 2; k++) {
			if (strlen(names[k]) == len && !memcmp(names[k], word, len))
				found = config->wanted[i] = true;
		}
	}
	return found;
}

bool metric_select(struct metric_config *config, const char *list, char bad[METRIC_NOTE_LEN])
{
	memset(config->wanted, 0, sizeof(config->wanted));
	for (;;) {
		size_t len = strcspn(list, ",");
		if (!select_word(config, list, len)) {
			snprintf(bad, METRIC_NOTE_LEN, "%.*s", (int)len, list);
			return false;
		}
		if (!list[len])
			return true;
		list += len + 1;
	}
}

void metric_results_free(struct metric_result results[NR_METRICS])
{
	for (unsigned i = 0; i < NR_METRICS; i++) {
		free(results[i].times_ns);
		results[i].times_ns = NULL;
	}
}

/* -ENOMEM: the times cannot be kept. */
static int take_times(struct workspace *ws, enum metric_id id, struct metric_result *r)
{
	stats_tail(ws->times_ns, ws->nr_times, &r->tail);
	if (!ws->keep_times || !metric_is_pooled(id) || !ws->nr_times)
		return 0;
	r->times_ns = malloc(ws->nr_times * sizeof(*r->times_ns));
	if (!r->times_ns)
		return -ENOMEM;
	memcpy(r->times_ns, ws->times_ns, ws->nr_times * sizeof(*r->times_ns));
	return 0;
}

int metric_run_all(struct workspace *ws, struct metric_result results[NR_METRICS])
{
	for (unsigned i = 0; i < NR_METRICS; i++) {
		struct metric_result *r = &results[i];
		*r = (struct metric_result){ 0 };
		if (!ws->config->wanted[i])
			continue;
		workspace_reset(ws);
		int err = metric_table[i].run(ws, r);
		if (cli_interrupted())
			return -EINTR;
		if (err == -EOPNOTSUPP && ws->raw && r->state != METRIC_SKIPPED)
			workspace_skip(r, "there is no filesystem to do this in");
		if (!err)
			err = take_times(ws, i, r);
		if (err && r->state != METRIC_SKIPPED) {
			r->state = METRIC_FAILED;
			if (!r->note[0])
				snprintf(r->note, sizeof(r->note), "%s", strerror(-err));
		} else if (!err) {
			r->state = METRIC_DONE;
		}
	}
	return 0;
}
