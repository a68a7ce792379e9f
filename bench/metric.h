/* SPDX-License-Identifier: MIT
 *
 * Purpose: what is measured. One row of metric.def and one function for each metric; which are wanted, and their results.
 *
 * Invariants
 *   I1  A metric stands for itself: what it needs (a file, a directory of small ones) it makes without counting it when no
 *       earlier one has left it. So any selection can run, in the order of the table.
 *   I2  What changed something counts until it is durable; what was acknowledged until then is given apart.
 *   I3  Work is fixed by the configuration, not by time: everyone compared does the same operations at the same places. Only
 *       what has to contain checkpoints runs for config->seconds: the groups "device" and "mixed".
 *   I4  Times of a pooled metric are kept, so that the tail over several rounds is that of all single calls.
 *
 * Uses: workspace.h, stats.h.
 */
#ifndef BENCH_METRIC_H
#define BENCH_METRIC_H

#include "stats.h"

#include <stdbool.h>
#include <stdint.h>

struct workspace;

enum metric_group {
	METRIC_PROTOTYPE,
	METRIC_SEQUENTIAL,
	METRIC_RANDOM,
	METRIC_FILES,
	METRIC_SYNC,
	METRIC_DEVICE,
	METRIC_MIXED,
	NR_METRIC_GROUPS
};
enum metric_unit { METRIC_MIB_S, METRIC_PER_S, METRIC_MS, METRIC_US, METRIC_TIMES, METRIC_KIB };

enum metric_id {
#define METRIC(NAME, group, unit, function, key, title) METRIC_##NAME,
#include "metric.def"
#undef METRIC
	NR_METRICS
};

enum metric_state { METRIC_NOT_WANTED, METRIC_DONE, METRIC_SKIPPED, METRIC_FAILED };
enum { METRIC_NOTE_LEN = 160 };

struct metric_result {
	enum metric_state state;
	char note[METRIC_NOTE_LEN]; /* why not, or what has to be known about the value; may be empty */
	double value;               /* in the unit of the metric, above 0 */
	double acknowledged;        /* the same before the final sync; 0: there is none */
	struct stats_tail tail;     /* of the single calls */
	uint64_t *times_ns;         /* tail.nr of them, sorted; NULL when they are not kept */
};
void metric_results_free(struct metric_result results[NR_METRICS]);

struct metric_info {
	enum metric_group group;
	enum metric_unit unit;
	const char *key, *title;
	int (*run)(struct workspace *ws, struct metric_result *r);
};
extern const struct metric_info metric_table[NR_METRICS];
const char *metric_group_name(enum metric_group group);
const char *metric_unit_name(enum metric_unit unit);
bool metric_less_is_better(enum metric_id id);
/* How good @value is: the value itself, or its inverse where less is better. */
double metric_speed(enum metric_id id, double value);
/* Tails over several rounds are of all calls together, not medians of the tails of rounds. */
bool metric_is_pooled(enum metric_id id);
const char *metric_verdict_text(enum metric_id id, enum stats_verdict verdict);

/* What and how much. */
struct metric_config {
	bool wanted[NR_METRICS];
	uint64_t file_bytes; /* a multiple of 1 MiB */
	uint64_t
		nr_ops; /* random ones at depth 1; four times as many at depth 32, a quarter of them when synchronous */
	uint64_t seconds; /* of what runs for a time */
	uint64_t nr_files;
	uint64_t seed;
};
/* @list: keys and groups joined by commas. False, with the word in @bad, when it names none. */
bool metric_select(struct metric_config *config, const char *list, char bad[METRIC_NOTE_LEN]);

/* How many synchronous operations. */
static inline uint64_t metric_sync_ops(const struct metric_config *config)
{
	return config->nr_ops < 4 ? 1 : config->nr_ops / 4;
}

/* Runs all that are wanted; one that fails does not keep the others from running. 0, or -EINTR. Free the results in both
 * cases. */
int metric_run_all(struct workspace *ws, struct metric_result results[NR_METRICS]);

struct mixed_load;
void metric_mixed_free(struct mixed_load *mixed);

#define METRIC(NAME, group, unit, function, key, title) int function(struct workspace *ws, struct metric_result *r);
#include "metric.def"
#undef METRIC

#endif
