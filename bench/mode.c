/* SPDX-License-Identifier: MIT */
#include "mode.h"

#include "workspace.h"

#include <errno.h>
#include <string.h>

enum { MAX_OPS = 10000000, MAX_FILES = 10000000, MAX_SECONDS = 600, DEFAULT_SECONDS = 20 };

void mode_config_init(struct metric_config *config)
{
	*config = (struct metric_config){
		.file_bytes = 256 << 20,
		.nr_ops = 10000,
		.nr_files = 20000,
		.seconds = DEFAULT_SECONDS,
		.seed = 1,
	};
	for (unsigned i = 0; i < NR_METRICS; i++)
		config->wanted[i] = true;
}

static int number(const struct cli_program *program, const char *name, const char *arg, uint64_t least, uint64_t most,
		  uint64_t *out)
{
	if (!cli_parse_number(arg, most, out) || *out < least)
		return cli_usage(program, "--%s takes a number from %ju to %ju, not \"%s\"", name, (uintmax_t)least,
				 (uintmax_t)most, arg);
	return 0;
}

int mode_number(const struct cli_program *program, const char *name, const char *arg, unsigned least, unsigned most,
		unsigned *out)
{
	uint64_t value = 0;
	int code = number(program, name, arg, least, most, &value);
	if (!code)
		*out = (unsigned)value;
	return code;
}

int mode_end(int err)
{
	if (err == -ENOMEM)
		cli_message("%s", strerror(ENOMEM));
	if (cli_interrupted())
		return BENCH_CANCELLED;
	return !err && cli_finish_stdout() ? BENCH_OK : BENCH_FAILED;
}

int mode_config_option(const struct cli_program *program, int key, const char *arg, struct metric_config *config,
		       bool *json)
{
	char bad[METRIC_NOTE_LEN];
	switch (key) {
	case OPT_SIZE:
		if (!cli_parse_size(arg, &config->file_bytes) || config->file_bytes < WS_PIECE ||
		    config->file_bytes > (uint64_t)1 << 50)
			return cli_usage(program, "--size takes a size of at least 1M, not \"%s\"", arg);
		config->file_bytes -= config->file_bytes % WS_PIECE;
		return 0;
	case OPT_OPS:
		return number(program, "ops", arg, 1, MAX_OPS, &config->nr_ops);
	case OPT_FILES:
		return number(program, "files", arg, 1, MAX_FILES, &config->nr_files);
	case OPT_SECONDS:
		return number(program, "seconds", arg, 1, MAX_SECONDS, &config->seconds);
	case OPT_SEED:
		return number(program, "seed", arg, 1, UINT64_MAX, &config->seed);
	case OPT_METRICS:
		if (!metric_select(config, arg, bad))
			return cli_usage(program, "\"%s\" is neither a metric nor a group of them", bad);
		return 0;
	case OPT_JSON:
		*json = true;
		return 0;
	default:
		return -1;
	}
}
