/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* -- machine -------------------------------------------------------------------------------------------------------- */
static void read_cpu(char *out, size_t cap)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");
	snprintf(out, cap, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		if (colon && !strncmp(line, "model name", 10)) {
			colon[strcspn(colon, "\n")] = 0;
			snprintf(out, cap, "%s", colon + 2);
			break;
		}
	}
	if (f)
		fclose(f);
}

static double load_now(void)
{
	double load = 0;
	return getloadavg(&load, 1) == 1 ? load : 0;
}

void report_machine_before(struct report_machine *m)
{
	*m = (struct report_machine){ .started_s = time(NULL), .load_before = load_now() };
	struct utsname u;
	if (uname(&u) == 0)
		snprintf(m->kernel, sizeof(m->kernel), "%.63s", u.release);
	read_cpu(m->cpu, sizeof(m->cpu));
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	m->nr_cpus = n > 0 ? (unsigned)n : 1;
}

void report_machine_after(struct report_machine *m)
{
	m->load_after = load_now();
}

void report_machine_text(const struct report_machine *m)
{
	printf("%u x %s, Linux %s, load before %.1f, after %.1f\n", m->nr_cpus, m->cpu, m->kernel, m->load_before,
	       m->load_after);
}

/* -- JSON ----------------------------------------------------------------------------------------------------------- */
void report_real(struct json *j, const char *key, double value)
{
	char text[REPORT_VALUE_LEN];
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "%.9g", value);
	/* json.h writes integers; a number that was read is written with its digits. */
	json_copy(j, &(struct json_value){ .type = JSON_NUMBER, .key = (char *)key, .text = text });
}

void report_begin(struct json *j, const char *mode, const struct report_machine *m, const struct metric_config *config)
{
	json_init(j, stdout);
	json_object(j, NULL);
	json_string(j, "program", "poolfs-bench");
	json_number(j, "schema", POOLFS_BENCH_SCHEMA);
	json_string(j, "version", POOLFS_VERSION);
	json_string(j, "mode", mode);
	json_object(j, "machine");
	json_string(j, "cpu", m->cpu);
	json_number(j, "cpus", m->nr_cpus);
	json_string(j, "kernel", m->kernel);
	report_real(j, "load_before", m->load_before);
	report_real(j, "load_after", m->load_after);
	json_signed(j, "started", m->started_s);
	json_end_object(j);
	if (!config)
		return;
	json_object(j, "config");
	json_number(j, "file_bytes", config->file_bytes);
	json_number(j, "ops", config->nr_ops);
	json_number(j, "files", config->nr_files);
	json_number(j, "seconds", config->seconds);
	json_number(j, "seed", config->seed);
	json_end_object(j);
}

void report_end(struct json *j)
{
	json_end_object(j);
	json_finish(j);
}

void report_tail(struct json *j, const struct stats_tail *tail)
{
	json_object(j, "latency_ms");
	json_number(j, "count", tail->nr);
	report_real(j, "mean", tail->mean_ns / 1e6);
	report_real(j, "p50", (double)tail->p50_ns / 1e6);
	report_real(j, "p95", (double)tail->p95_ns / 1e6);
	report_real(j, "p99", (double)tail->p99_ns / 1e6);
	report_real(j, "p99.9", (double)tail->p999_ns / 1e6);
	report_real(j, "p99.99", (double)tail->p9999_ns / 1e6);
	report_real(j, "max", (double)tail->max_ns / 1e6);
	json_end_object(j);
}

static const char *state_name(enum metric_state state)
{
	return state == METRIC_DONE ? "done" : state == METRIC_SKIPPED ? "skipped" : "failed";
}

/* The value stands at the top under the name of the metric, as in the prototype's harness; the rest in "details". */
void report_run_json(struct json *j, const struct metric_result results[NR_METRICS])
{
	json_object(j, "metrics");
	for (unsigned i = 0; i < NR_METRICS; i++) {
		if (results[i].state == METRIC_DONE)
			report_real(j, metric_table[i].key, results[i].value);
		else if (results[i].state != METRIC_NOT_WANTED)
			json_null(j, metric_table[i].key);
	}
	json_end_object(j);
	json_object(j, "details");
	for (unsigned i = 0; i < NR_METRICS; i++) {
		const struct metric_result *r = &results[i];
		if (r->state == METRIC_NOT_WANTED)
			continue;
		json_object(j, metric_table[i].key);
		json_string(j, "group", metric_group_name(metric_table[i].group));
		json_string(j, "unit", metric_unit_name(metric_table[i].unit));
		json_string(j, "state", state_name(r->state));
		if (r->note[0])
			json_string(j, "note", r->note);
		if (r->state == METRIC_DONE && r->acknowledged > 0)
			report_real(j, "acknowledged", r->acknowledged);
		if (r->state == METRIC_DONE)
			report_tail(j, &r->tail);
		json_end_object(j);
	}
	json_end_object(j);
}

/* -- text ----------------------------------------------------------------------------------------------------------- */
const char *report_value(char buf[REPORT_VALUE_LEN], double value)
{
	int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : value >= 1 ? 3 : 4;
	snprintf(buf, REPORT_VALUE_LEN, "%.*f", digits, value);
	return buf;
}

void report_ms(uint64_t ns)
{
	char buf[REPORT_VALUE_LEN];
	printf(" %9s", report_value(buf, (double)ns / 1e6));
}

void report_run_text(const struct metric_result results[NR_METRICS])
{
	char buf[REPORT_VALUE_LEN];
	printf("%-26s %10s %-5s  %s\n", "metric", "value", "unit", "ms of one call: p50, p95, p99, p99.9, p99.99, max");
	for (unsigned i = 0; i < NR_METRICS; i++) {
		const struct metric_result *r = &results[i];
		if (r->state == METRIC_NOT_WANTED)
			continue;
		printf("%-26s ", metric_table[i].key);
		if (r->state != METRIC_DONE) {
			printf("%10s %-5s  %s\n", "-", "", r->note);
			continue;
		}
		printf("%10s %-5s ", report_value(buf, r->value), metric_unit_name(metric_table[i].unit));
		report_ms(r->tail.p50_ns);
		report_ms(r->tail.p95_ns);
		report_ms(r->tail.p99_ns);
		report_ms(r->tail.p999_ns);
		report_ms(r->tail.p9999_ns);
		report_ms(r->tail.max_ns);
		printf("%s%s\n", r->note[0] ? "  " : "", r->note);
		if (r->acknowledged > 0)
			printf("%26s %10s %-5s  acknowledged, before the sync\n", "",
			       report_value(buf, r->acknowledged), metric_unit_name(metric_table[i].unit));
	}
}
