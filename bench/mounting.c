/* SPDX-License-Identifier: MIT
 * poolfs-bench mount: how long a pool takes to be there, after a kill and after a clean end. */
#include "daemon.h"
#include "mode.h"
#include "poolfs.h"
#include "recovery.h"
#include "report.h"
#include "workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPT_VERSION = OPT_MODE,
	OPT_ROUNDS,
	OPT_MEMBERS,
	OPT_MEMBER_SIZE,
	OPT_SPARSE_MEMBERS,
	OPT_SPARSE_SIZE,
	OPT_WORKDIR,
};
enum { DEFAULT_ROUNDS = 5, MAX_ROUNDS = 1000, DEFAULT_SPARSE_MEMBERS = 10, MIN_MEMBER_MIB = 16 };

static const struct cli_option option_table[] = {
	{ OPT_VERSION, "format-version", "N", "of the pools (default: the newest)" },
	{ OPT_ROUNDS, "rounds", "R", "how often each is done (default 5)" },
	{ OPT_MEMBERS, "members", "N", "members of the pool that is killed (default 1)" },
	{ OPT_MEMBER_SIZE, "member-size", "SIZE", "size of each; its log is the larger the larger it is (default 2G)" },
	{ OPT_SPARSE_MEMBERS, "sparse-members", "N",
	  "members of the pool that is clean (default 10; 0: none; root only)" },
	{ OPT_SPARSE_SIZE, "sparse-size", "SIZE", "size of each (default 2T)" },
	{ OPT_WORKDIR, "workdir", "DIR", "where the members are made (default: the current directory)" },
	{ OPT_SEED, "seed", "N", "for places of random work (default 1)" },
	{ OPT_JSON, "json", NULL, "print one JSON object instead of a table" },
	{ 0 },
};
static const char *const synopsis[] = { "[OPTION]...", NULL };
static const struct cli_program program = {
	.name = "poolfs-bench mount",
	.synopsis = synopsis,
	.summary = "Measures how long mounting takes: recovery after a kill, and many large members.",
	.options = option_table,
	.usage_exit = BENCH_USAGE,
};

enum row_id { ROW_RECOVERY_WRITES, ROW_RECOVERY_CREATES, ROW_SPARSE, NR_ROWS };

struct row {
	const char *key, *title;
	unsigned nr;
	double *seconds;
	const char *skipped; /* why; or NULL */
	uint64_t nr_ops;     /* in the log */
	uint64_t rss_bytes, peak_bytes;
};

struct mounting {
	unsigned version, nr_rounds, nr_members, nr_sparse;
	uint64_t member_bytes, sparse_bytes, seed;
	const char *workdir;
	bool json;
	struct row rows[NR_ROWS];
};

/* -- running -------------------------------------------------------------------------------------------------------- */
static int recover(struct mounting *m, struct site *site, enum recovery_kind kind, struct row *row)
{
	struct recovery r = {
		.site = site,
		.nr_members = m->nr_members,
		.version = m->version,
		.kind = kind,
		.member_bytes = m->member_bytes,
		.seed = m->seed,
	};
	int err = 0;
	for (unsigned i = 0; i < m->nr_rounds && !err; i++) {
		int64_t took_ns = 0;
		err = cli_interrupted() ? -EINTR : recovery_round(&r, &took_ns);
		if (!err)
			row->seconds[row->nr++] = (double)took_ns / 1e9;
	}
	row->nr_ops = r.nr_ops;
	return err;
}

static int recover_all(struct mounting *m)
{
	struct pf_features features = pf_version_features(m->version);
	if (!pf_has(&features, PF_FEAT_INTENT_LOG)) {
		m->rows[ROW_RECOVERY_WRITES].skipped = "this version has no log";
		m->rows[ROW_RECOVERY_CREATES].skipped = "this version has no log";
		return 0;
	}
	struct site site;
	int err = site_open(&site, m->workdir, m->nr_members, m->member_bytes, false);
	if (!err)
		err = recover(m, &site, RECOVERY_WRITES, &m->rows[ROW_RECOVERY_WRITES]);
	if (!err)
		err = recover(m, &site, RECOVERY_CREATES, &m->rows[ROW_RECOVERY_CREATES]);
	return site_close(&site) ? err : err ? err : -EIO;
}

static int mount_sparse(struct mounting *m, struct site *site, struct row *row)
{
	struct stat st;
	struct daemon daemon;
	site_settle(site);
	workspace_drop_page_cache();
	int64_t start = workspace_now_ns();
	int err = site_mount_pool(site, m->nr_sparse, NULL);
	if (err)
		return err;
	err = stat(site->mount_dir, &st) == 0 ? 0 : -errno;
	row->seconds[row->nr++] = (double)(workspace_now_ns() - start) / 1e9;
	if (!err)
		err = daemon_find(site->mount_dir, &daemon);
	if (!err)
		err = daemon_memory(&daemon, &row->rss_bytes, &row->peak_bytes);
	if (err)
		cli_message("%s: %s", site->mount_dir, strerror(-err));
	int down_err = site_unmount_pool(site);
	return err ? err : down_err;
}

/* On loop devices: of an image file, the share for metadata would have to be there in full. */
static int mount_all_sparse(struct mounting *m)
{
	struct row *row = &m->rows[ROW_SPARSE];
	if (!m->nr_sparse)
		row->skipped = "not wanted";
	else if (geteuid() != 0)
		row->skipped = "loop devices need root";
	if (row->skipped)
		return 0;
	struct site site;
	int err = site_open(&site, m->workdir, m->nr_sparse, m->sparse_bytes, true);
	if (!err)
		err = site_attach(&site, m->nr_sparse);
	if (!err)
		err = site_make_pool(&site, m->nr_sparse, m->version, NULL);
	for (unsigned i = 0; i < m->nr_rounds && !err; i++)
		err = cli_interrupted() ? -EINTR : mount_sparse(m, &site, row);
	return site_close(&site) ? err : err ? err : -EIO;
}

/* -- report --------------------------------------------------------------------------------------------------------- */
static double greatest(const struct row *row)
{
	double most = 0;
	for (unsigned i = 0; i < row->nr; i++)
		most = row->seconds[i] > most ? row->seconds[i] : most;
	return most;
}

/* stats_median() sorts; the values are shown in their order. */
static double median(const struct row *row)
{
	double *copy = malloc(row->nr * sizeof(*copy));
	if (!copy)
		return 0;
	memcpy(copy, row->seconds, row->nr * sizeof(*copy));
	double value = stats_median(copy, row->nr);
	free(copy);
	return value;
}

static void report_text(const struct mounting *m, const struct report_machine *machine)
{
	char a[REPORT_VALUE_LEN], b[REPORT_VALUE_LEN], size[CLI_SIZE_LEN], peak[CLI_SIZE_LEN];
	printf("%-20s %10s %10s\n", "metric", "median s", "longest s");
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const struct row *row = &m->rows[i];
		if (!row->nr) {
			printf("%-20s %10s %10s  %s\n", row->key, "-", "-", row->skipped ? row->skipped : "");
			continue;
		}
		printf("%-20s %10s %10s  %s", row->key, report_value(a, median(row)), report_value(b, greatest(row)),
		       row->title);
		if (row->nr_ops)
			printf("; %ju operations in the log", (uintmax_t)row->nr_ops);
		if (row->rss_bytes)
			printf("; the daemon has %s of memory, %s at most", cli_size(size, row->rss_bytes),
			       cli_size(peak, row->peak_bytes));
		putchar('\n');
	}
	printf("%u round%s, format version %u; recovery: %u member%s of %s", m->nr_rounds, m->nr_rounds == 1 ? "" : "s",
	       m->version, m->nr_members, m->nr_members == 1 ? "" : "s", cli_size(size, m->member_bytes));
	printf("; clean: %u sparse ones of %s\n", m->nr_sparse, cli_size(size, m->sparse_bytes));
	report_machine_text(machine);
}

static void report_json(const struct mounting *m, const struct report_machine *machine)
{
	struct json j;
	report_begin(&j, "mount", machine, NULL);
	json_number(&j, "version", m->version);
	json_number(&j, "rounds", m->nr_rounds);
	json_number(&j, "members", m->nr_members);
	json_number(&j, "member_bytes", m->member_bytes);
	json_number(&j, "sparse_members", m->nr_sparse);
	json_number(&j, "sparse_bytes", m->sparse_bytes);
	json_object(&j, "metrics");
	for (unsigned i = 0; i < NR_ROWS; i++) {
		const struct row *row = &m->rows[i];
		json_object(&j, row->key);
		if (row->skipped)
			json_string(&j, "note", row->skipped);
		json_array(&j, "values");
		for (unsigned k = 0; k < row->nr; k++)
			report_real(&j, NULL, row->seconds[k]);
		json_end_array(&j);
		if (row->nr) {
			report_real(&j, "median", median(row));
			report_real(&j, "max", greatest(row));
		}
		if (row->nr_ops)
			json_number(&j, "operations", row->nr_ops);
		if (row->rss_bytes) {
			json_number(&j, "rss_bytes", row->rss_bytes);
			json_number(&j, "peak_rss_bytes", row->peak_bytes);
		}
		json_end_object(&j);
	}
	json_end_object(&j);
	report_end(&j);
}

static int measure(struct mounting *m)
{
	static const struct row rows[NR_ROWS] = {
		{ .key = "recovery_s", .title = "after a kill, the log full of 4 KiB writes with fsync" },
		{ .key = "recovery_create_s", .title = "after a kill, the log full of creations of files" },
		{ .key = "mount_sparse_s", .title = "clean" },
	};
	struct report_machine machine;
	int err = 0;
	for (unsigned i = 0; i < NR_ROWS; i++) {
		m->rows[i] = rows[i];
		m->rows[i].seconds = calloc(m->nr_rounds, sizeof(double));
		err = m->rows[i].seconds ? err : -ENOMEM;
	}
	report_machine_before(&machine);
	if (!err)
		err = recover_all(m);
	if (!err)
		err = mount_all_sparse(m);
	report_machine_after(&machine);
	if (!err && m->json)
		report_json(m, &machine);
	else if (!err)
		report_text(m, &machine);
	for (unsigned i = 0; i < NR_ROWS; i++)
		free(m->rows[i].seconds);
	return mode_end(err);
}

/* -- command line --------------------------------------------------------------------------------------------------- */
static int parse_bytes(const char *name, const char *arg, uint64_t *out)
{
	if (!cli_parse_size(arg, out) || *out < (uint64_t)MIN_MEMBER_MIB << 20)
		return cli_usage(&program, "--%s takes a size of at least %dM, not \"%s\"", name, MIN_MEMBER_MIB, arg);
	*out -= *out % WS_PIECE;
	return 0;
}

static int parse_option(struct mounting *m, int key, const char *arg)
{
	switch (key) {
	case OPT_VERSION:
		return mode_number(&program, "format-version", arg, PF_VERSION_FIRST, PF_VERSION_NEWEST, &m->version);
	case OPT_ROUNDS:
		return mode_number(&program, "rounds", arg, 1, MAX_ROUNDS, &m->nr_rounds);
	case OPT_MEMBERS:
		return mode_number(&program, "members", arg, 1, SITE_MAX_MEMBERS, &m->nr_members);
	case OPT_MEMBER_SIZE:
		return parse_bytes("member-size", arg, &m->member_bytes);
	case OPT_SPARSE_MEMBERS:
		return mode_number(&program, "sparse-members", arg, 0, SITE_MAX_MEMBERS, &m->nr_sparse);
	case OPT_SPARSE_SIZE:
		return parse_bytes("sparse-size", arg, &m->sparse_bytes);
	case OPT_WORKDIR:
		m->workdir = arg;
		return 0;
	case OPT_SEED:
		return cli_parse_number(arg, UINT64_MAX, &m->seed)
			       ? 0
			       : cli_usage(&program, "--seed takes a number, not \"%s\"", arg);
	default:
		m->json = true;
		return 0;
	}
}

static int run(int argc, char **argv)
{
	static struct mounting m = {
		.version = PF_VERSION_NEWEST,
		.nr_rounds = DEFAULT_ROUNDS,
		.nr_members = 1,
		.nr_sparse = DEFAULT_SPARSE_MEMBERS,
		.member_bytes = UINT64_C(2) << 30,
		.sparse_bytes = UINT64_C(2) << 40,
		.seed = 1,
		.workdir = ".",
	};
	int key;
	while ((key = cli_next(&program, argc, argv)) >= 0) {
		int code = parse_option(&m, key, optarg);
		if (code)
			return code;
	}
	if (key == CLI_BAD)
		return BENCH_USAGE;
	if (optind != argc)
		return cli_usage(&program, "%s is not an option", argv[optind]);
	return measure(&m);
}

const struct mode mode_mount = { &program, run };
