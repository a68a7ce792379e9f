/* SPDX-License-Identifier: MIT
 *
 * Purpose: results as a text table and as JSON.
 *
 * Invariants
 *   I1  POOLFS_BENCH_SCHEMA counts up when a reader of the JSON has to change; new keys alone do not count.
 *
 * Uses: metric.h, json.h.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "json.h"
#include "metric.h"

enum { POOLFS_BENCH_SCHEMA = 1 };

/* What the figures depend on besides the filesystem; taken before and after. */
struct report_machine {
	char kernel[64], cpu[96];
	unsigned nr_cpus;
	double load_before, load_after; /* of the last minute */
	int64_t started_s;
};
void report_machine_before(struct report_machine *m);
void report_machine_after(struct report_machine *m);
/* One line, to stand under a table. */
void report_machine_text(const struct report_machine *m);

/* Opens the one object: schema, mode, machine, configuration (if any). Close it with report_end(). */
void report_begin(struct json *j, const char *mode, const struct report_machine *m, const struct metric_config *config);
void report_end(struct json *j);

void report_real(struct json *j, const char *key, double value);
void report_tail(struct json *j, const struct stats_tail *tail);
/* "12.3", "1234", at most 5 digits where that says enough. */
enum { REPORT_VALUE_LEN = 32 };
const char *report_value(char buf[REPORT_VALUE_LEN], double value);

/* A column of a table. */
void report_ms(uint64_t ns);

/* One run. */
void report_run_text(const struct metric_result results[NR_METRICS]);
void report_run_json(struct json *j, const struct metric_result results[NR_METRICS]);

#endif
