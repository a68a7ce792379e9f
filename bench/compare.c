/* SPDX-License-Identifier: MIT
 * poolfs-bench compare: several filesystems in turn on the same members. */
#include "compare.h"

#include "mode.h"
#include "workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	OPT_VERSIONS = OPT_MODE,
	OPT_PEER,
	OPT_MEMBERS,
	OPT_PLACEMENT,
	OPT_ROUNDS,
	OPT_WORKDIR,
	OPT_LOOP,
	OPT_MEMBER_SIZE,
	OPT_TARGETS
};
enum { DEFAULT_ROUNDS = 10, MAX_ROUNDS = 10000 };

static const struct cli_option options[] = {
	{ OPT_VERSIONS, "versions", "LIST",
	  "format versions of pools, joined by commas; 6x2: with two members, 6i: on image files, 6x2i: both" },
	{ OPT_PEER, "peer", "LIST",
	  "others: ext4, xfs, btrfs, raw (the image file itself), rawloop (the loop device), empty (a FUSE "
	  "filesystem with nothing behind it), fuseraw and fuseloop (the same over these two); root only; the first candidate of all is the baseline" },
	{ OPT_MEMBERS, "members", "N",
	  "number of members (default 1) where a version does not say it; ext4 and xfs use one" },
	{ OPT_MEMBER_SIZE, "member-size", "SIZE", "size of each (default: enough for the work)" },
	{ OPT_PLACEMENT, "placement", "P", "of pools: file or stripe" },
	{ OPT_ROUNDS, "rounds", "R", "rounds, in each of which every candidate runs (default 10)" },
	{ OPT_WORKDIR, "workdir", "DIR", "where the members are made (default: the current directory)" },
	{ OPT_LOOP, "loop", NULL, "pools on loop devices with direct I/O, too; always so with --peer" },
	{ OPT_TARGETS, "targets", NULL, "say whether version 6 reaches what it wants to reach" },
	MODE_CONFIG_OPTIONS,
	{ 0 },
};
static const char *const synopsis[] = { "[--versions LIST] [--peer LIST] [OPTION]...", NULL };
static const struct cli_program program = {
	.name = "poolfs-bench compare",
	.synopsis = synopsis,
	.summary = "Compares format versions and other filesystems in paired rounds.",
	.options = options,
	.usage_exit = BENCH_USAGE,
};

/* -- running -------------------------------------------------------------------------------------------------------- */
/* Pools do not overwrite: versions before 4 never get back what was overwritten. So all that is ever written, twice. */
static uint64_t enough(const struct metric_config *config)
{
	uint64_t written = 3 * config->file_bytes + 6 * config->nr_ops * WS_BLOCK + 2 * config->nr_files * WS_BLOCK +
			   (UINT64_C(64) << 20);
	uint64_t bytes = 2 * written;
	uint64_t least = UINT64_C(320) << 20; /* XFS takes no less than 300 MiB, version 2 no less than 256 */
	bytes = bytes > least ? bytes : least;
	return (bytes + WS_PIECE - 1) / WS_PIECE * WS_PIECE;
}

static int measure(struct compare *cmp, const struct site *site, const struct candidate *candidate,
		   struct metric_result results[NR_METRICS])
{
	struct workspace ws;
	struct counter devices;
	const char *raw = candidate_raw(site, candidate);
	int err = raw ? workspace_open_raw(&ws, raw, &cmp->config) : workspace_open(&ws, site->mount_dir, &cmp->config);
	candidate_devices(site, &devices);
	ws.devices = devices.nr ? &devices : NULL;
	ws.no_reclaim = !candidate_reclaims(candidate);
	ws.keep_times = true;
	if (!err)
		err = metric_run_all(&ws, results);
	/* A filesystem that cannot even remove its files has not been measured. */
	return workspace_close(&ws) || err ? err : -EIO;
}

static int run_one(struct compare *cmp, struct site *site, unsigned round, unsigned place)
{
	unsigned c = compare_order(cmp->nr_candidates, round, place);
	const struct candidate *candidate = &cmp->candidates[c];
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rround %u of %u: %s\033[K", round + 1, cmp->nr_rounds, candidate->name);
	int err = candidate_up(site, candidate, &cmp->options);
	if (!err)
		err = measure(cmp, site, candidate, cmp->results[round * cmp->nr_candidates + c]);
	int down_err = candidate_down(site, candidate);
	return err ? err : down_err;
}

static int run_rounds(struct compare *cmp)
{
	struct site site;
	unsigned nr_members = 1;
	for (unsigned i = 0; i < cmp->nr_candidates; i++) {
		unsigned nr = candidate_members(&cmp->candidates[i], cmp->options.nr_members);
		nr_members = nr > nr_members ? nr : nr_members;
	}
	int err = site_open(&site, cmp->workdir, nr_members, cmp->member_bytes, false);
	for (unsigned round = 0; round < cmp->nr_rounds && !err; round++) {
		for (unsigned place = 0; place < cmp->nr_candidates && !err; place++)
			err = cli_interrupted() ? -EINTR : run_one(cmp, &site, round, place);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return site_close(&site) ? err : err ? err : -EIO;
}

static int compare(struct compare *cmp)
{
	if (!cmp->member_bytes)
		cmp->member_bytes = enough(&cmp->config);
	cmp->results = calloc((size_t)cmp->nr_rounds * cmp->nr_candidates, sizeof(*cmp->results));
	int err = cmp->results ? 0 : -ENOMEM;
	report_machine_before(&cmp->machine);
	if (!err)
		err = run_rounds(cmp);
	report_machine_after(&cmp->machine);
	if (!err)
		err = compare_report(cmp);
	for (unsigned i = 0; i < cmp->nr_rounds * cmp->nr_candidates && cmp->results; i++)
		metric_results_free(cmp->results[i]);
	free(cmp->results);
	return mode_end(err);
}

/* -- command line --------------------------------------------------------------------------------------------------- */
static int parse_option(struct compare *cmp, int key, const char *arg)
{
	switch (key) {
	case OPT_VERSIONS:
		return candidate_add_versions(cmp->candidates, &cmp->nr_candidates, arg) ? 0 : BENCH_USAGE;
	case OPT_PEER:
		cmp->options.loops = true;
		return candidate_add_peers(cmp->candidates, &cmp->nr_candidates, arg) ? 0 : BENCH_USAGE;
	case OPT_MEMBERS:
		return mode_number(&program, "members", arg, 1, CANDIDATE_MAX_MEMBERS, &cmp->options.nr_members);
	case OPT_ROUNDS:
		return mode_number(&program, "rounds", arg, 1, MAX_ROUNDS, &cmp->nr_rounds);
	case OPT_MEMBER_SIZE:
		if (!cli_parse_size(arg, &cmp->member_bytes) || cmp->member_bytes < WS_PIECE)
			return cli_usage(&program, "--member-size takes a size, not \"%s\"", arg);
		cmp->member_bytes -= cmp->member_bytes % WS_PIECE;
		return 0;
	case OPT_PLACEMENT:
		cmp->options.placement = arg;
		return 0;
	case OPT_WORKDIR:
		cmp->workdir = arg;
		return 0;
	case OPT_LOOP:
		cmp->options.loops = true;
		return 0;
	case OPT_TARGETS:
		cmp->targets = true;
		return 0;
	default:
		return mode_config_option(&program, key, arg, &cmp->config, &cmp->json);
	}
}

static int run(int argc, char **argv)
{
	static struct compare cmp = { .options.nr_members = 1, .nr_rounds = DEFAULT_ROUNDS, .workdir = "." };
	mode_config_init(&cmp.config);
	int key;
	while ((key = cli_next(&program, argc, argv)) >= 0) {
		int code = parse_option(&cmp, key, optarg);
		if (code)
			return code;
	}
	if (key == CLI_BAD)
		return BENCH_USAGE;
	if (optind != argc)
		return cli_usage(&program, "%s is not an option", argv[optind]);
	if (cmp.nr_candidates < 1)
		return cli_usage(&program, "nothing to compare: give --versions, --peer or both");
	if (cmp.options.loops && geteuid() != 0)
		return cli_usage(&program, "loop devices and other filesystems need root");
	return compare(&cmp);
}

const struct mode mode_compare = { &program, run };
