/* SPDX-License-Identifier: MIT
 * poolfs-bench run: all metrics once, in a directory of the user's choice. */
#include "mode.h"
#include "report.h"
#include "workspace.h"

#include <errno.h>

static const struct cli_option options[] = {
	MODE_CONFIG_OPTIONS,
	{ 0 },
};
static const char *const synopsis[] = { "[OPTION]... DIR", NULL };
static const struct cli_program program = {
	.name = "poolfs-bench run",
	.synopsis = synopsis,
	.summary = "Measures in a directory; creates only new files there and removes them.",
	.options = options,
	.usage_exit = BENCH_USAGE,
};

static bool all_done(const struct metric_result results[NR_METRICS])
{
	bool good = true;
	for (unsigned i = 0; i < NR_METRICS; i++) {
		if (results[i].state == METRIC_FAILED) {
			cli_message("%s: %s", metric_table[i].key, results[i].note);
			good = false;
		}
	}
	return good;
}

static void report(const struct workspace *ws, const struct report_machine *machine, bool as_json,
		   const struct metric_result results[NR_METRICS])
{
	if (!as_json) {
		report_run_text(results);
		if (!ws->direct)
			printf("%s\n", ws->direct_why);
		report_machine_text(machine);
		return;
	}
	struct json j;
	report_begin(&j, "run", machine, ws->config);
	json_bool(&j, "direct", ws->direct);
	if (!ws->direct)
		json_string(&j, "direct_why", ws->direct_why);
	json_bool(&j, "cold", ws->cold);
	json_bool(&j, "pool", ws->pool);
	report_run_json(&j, results);
	report_end(&j);
}

static int measure(const char *dir, const struct metric_config *config, bool as_json)
{
	struct workspace ws;
	struct report_machine machine;
	struct metric_result results[NR_METRICS];
	report_machine_before(&machine);
	int err = workspace_open(&ws, dir, config);
	bool said = err != 0, good = false;
	if (!err)
		err = metric_run_all(&ws, results);
	if (!err) {
		report_machine_after(&machine);
		report(&ws, &machine, as_json, results);
		good = all_done(results);
	} else if (!said) {
		cli_message("interrupted");
	}
	good = workspace_close(&ws) && good;
	if (err == -EINTR)
		return BENCH_CANCELLED;
	return cli_finish_stdout() && good ? BENCH_OK : BENCH_FAILED;
}

static int run(int argc, char **argv)
{
	struct metric_config config;
	bool as_json = false;
	mode_config_init(&config);
	int key;
	while ((key = cli_next(&program, argc, argv)) >= 0) {
		int code = mode_config_option(&program, key, optarg, &config, &as_json);
		if (code)
			return code;
	}
	if (key == CLI_BAD)
		return BENCH_USAGE;
	if (optind == argc)
		return cli_usage(&program, "no directory given");
	if (optind + 1 != argc)
		return cli_usage(&program, "%s: one directory at a time", argv[optind + 1]);
	return measure(argv[optind], &config, as_json);
}

const struct mode mode_run = { &program, run };
