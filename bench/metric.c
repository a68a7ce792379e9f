/* SPDX-License-Identifier: MIT */
#include "metric.h"

#include "cli.h"
#include "workspace.h"

#include <errno.h>
#include <string.h>

const struct metric_info metric_table[NR_METRICS] = {
#define METRIC(NAME, group, unit, function, key, title)                                                                \
	[METRIC_##NAME] = { METRIC_##group, METRIC_##unit, key, title, function },
#include "metric.def"
#undef METRIC
};

const char *metric_group_name(enum metric_group group)
{
	static const char *const names[] = { "prototype", "sequential", "random", "files" };
	return names[group];
}

const char *metric_unit_name(enum metric_unit unit)
{
	static const char *const names[] = { [METRIC_MIB_S] = "MiB/s", [METRIC_PER_S] = "1/s", [METRIC_MS] = "ms" };
	return names[unit];
}

double metric_speed(enum metric_id id, double value)
{
	return metric_table[id].unit == METRIC_MS ? 1 / value : value;
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
		if (err && r->state != METRIC_SKIPPED) {
			r->state = METRIC_FAILED;
			if (!r->note[0])
				snprintf(r->note, sizeof(r->note), "%s", strerror(-err));
		} else if (!err) {
			r->state = METRIC_DONE;
			stats_tail(ws->times_ns, ws->nr_times, &r->tail);
		}
	}
	return 0;
}
