/* SPDX-License-Identifier: MIT
 *
 * Purpose: the modes of poolfs-bench, a row each in main.c; the options that several of them have.
 *
 * Uses: cli.h, metric.h.
 */
#ifndef BENCH_MODE_H
#define BENCH_MODE_H

#include "cli.h"
#include "metric.h"

enum { BENCH_OK = 0, BENCH_FAILED = 1, BENCH_USAGE = 2, BENCH_CANCELLED = 3 };

struct mode {
	const struct cli_program *program;
	int (*run)(int argc, char **argv);
};
extern const struct mode mode_run, mode_compare, mode_mount;

/* How a mode ends whose work gave @err: an exit code. */
int mode_end(int err);

/* -- options that say what and how much ----------------------------------------------------------------------------- */
enum { OPT_SIZE = CLI_LONG, OPT_OPS, OPT_FILES, OPT_METRICS, OPT_SEED, OPT_SECONDS, OPT_JSON, OPT_MODE };

#define MODE_CONFIG_OPTIONS                                                                                            \
	{ OPT_SIZE, "size", "SIZE", "size of the large file, at least 1M (default 256M)" },                            \
		{ OPT_OPS, "ops", "N",                                                                                 \
		  "random reads and writes one at a time; four times as many 32 deep, a quarter synchronous" },        \
		{ OPT_FILES, "files", "N", "number of small files" },                                                  \
		{ OPT_METRICS, "metrics", "LIST",                                                                      \
		  "only these metrics or groups (prototype, sequential, random, files, sync, device, mixed), "         \
		  "joined by commas" },                                                                                \
		{ OPT_SECONDS, "seconds", "S", "how long what has to contain checkpoints runs (default 20)" },         \
		{ OPT_SEED, "seed", "N", "for places of random work, data and resampling (default 1)" },               \
	{                                                                                                              \
		OPT_JSON, "json", NULL, "print one JSON object instead of a table"                                     \
	}

/* Everything wanted, sizes for one careful run. */
void mode_config_init(struct metric_config *config);
/* 0 when @key is one of MODE_CONFIG_OPTIONS and its argument is right; -1 when it is another; BENCH_USAGE after a message.
 * Sets *@json. */
int mode_config_option(const struct cli_program *program, int key, const char *arg, struct metric_config *config,
		       bool *json);
/* The argument of option @name. 0, or BENCH_USAGE after a message. */
int mode_number(const struct cli_program *program, const char *name, const char *arg, unsigned least, unsigned most,
		unsigned *out);

#endif
