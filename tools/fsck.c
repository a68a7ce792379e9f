/* SPDX-License-Identifier: MIT
 * fsck.poolfs: options and exit codes of fsck(8) around pf_check(). */
#include "cli.h"
#include "json.h"
#include "members.h"

#include "poolfs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_JSON = CLI_LONG };

static const struct cli_option options[] = {
	{ 'n', "no", NULL, "repair nothing, only look" },
	{ 'p', "preen", NULL, "repair without questions what is safe to repair" },
	{ 'a', NULL, NULL, "the same as -p" },
	{ 'y', "yes", NULL, "repair everything that can be repaired, without questions" },
	{ 'f', "force", NULL, "with -p: check even if the pool is clean" },
	{ 'v', "verbose", NULL, "also show what was counted" },
	{ 'C', "progress", "[FD]", "show progress: a line on the terminal (0 or no number), or lines of numbers to FD" },
	{ OPT_JSON, "json", NULL, "print the result as JSON" },
	{ 0 },
};
static const char *const synopsis[] = { "[-n|-p|-a|-y] [OPTION]... MEMBER...", NULL };
static const struct cli_program program = {
	.name = "fsck.poolfs",
	.synopsis = synopsis,
	.summary = "Checks a pool that is not mounted, and repairs it. One member suffices when the others can be found.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

enum mode { MODE_ASK, MODE_NO, MODE_SAFE, MODE_YES };

struct fsck {
	enum mode mode;
	bool force, verbose, json_wanted;
	struct json json;
	struct cli_progress progress;
	FILE *progress_out; /* of -C FD */
	const char *pass;
	unsigned pass_nr;
	const char *name; /* first member, for progress lines */
	bool needs_decision;
};

/* -- command line --------------------------------------------------------------------------------------------------- */
static int set_mode(struct fsck *f, enum mode mode)
{
	if (f->mode != MODE_ASK && f->mode != mode)
		return cli_usage(&program, "only one of -n, -p (or -a) and -y can be given");
	f->mode = mode;
	return 0;
}

/* As e2fsck has it: "-C0" and "-C 0" are the same. */
static int take_progress(struct fsck *f, int argc, char **argv)
{
	const char *arg = optarg;
	uint64_t fd = 0;
	if (!arg && optind < argc && cli_parse_number(argv[optind], 65535, &fd))
		optind++;
	else if (arg && !cli_parse_number(arg, 65535, &fd))
		return cli_usage(&program, "-C %s: not the number of a file descriptor", arg);
	if (fd == 0) {
		cli_progress_init(&f->progress, true);
		return 0;
	}
	f->progress_out = fdopen((int)fd, "w");
	if (!f->progress_out)
		return cli_usage(&program, "-C %ju: %s", (uintmax_t)fd, strerror(errno));
	return 0;
}

static int parse(struct fsck *f, int argc, char **argv)
{
	int key, err = 0;
	while (!err && (key = cli_next(&program, argc, argv)) != CLI_END) {
		switch (key) {
		case 'n':
			err = set_mode(f, MODE_NO);
			break;
		case 'p':
		case 'a':
			err = set_mode(f, MODE_SAFE);
			break;
		case 'y':
			err = set_mode(f, MODE_YES);
			break;
		case 'f':
			f->force = true;
			break;
		case 'v':
			f->verbose = true;
			break;
		case 'C':
			err = take_progress(f, argc, argv);
			break;
		case OPT_JSON:
			f->json_wanted = true;
			break;
		default:
			err = FSCK_USAGE;
		}
	}
	if (!err && optind == argc)
		err = cli_usage(&program, "no member given");
	if (!err && (unsigned)(argc - optind) > PF_MAX_MEMBERS)
		err = cli_usage(&program, "%d members given; a pool has at most %u", argc - optind, PF_MAX_MEMBERS);
	return err;
}

/* -- sink ----------------------------------------------------------------------------------------------------------- */
static bool ask(struct fsck *f, const struct pf_problem_report *r)
{
	char line[64];
	for (;;) {
		printf("%s: %s. Repair (y)es, (n)o, (a)ll? ", r->id, r->message);
		fflush(stdout);
		if (cli_interrupted() || !fgets(line, sizeof(line), stdin))
			return false;
		switch (line[0]) {
		case 'a':
			f->mode = MODE_YES;
			return true;
		case 'y':
			return true;
		case 'n':
			return false;
		}
	}
}

static bool decide(struct fsck *f, const struct pf_problem_report *r)
{
	if (r->repair == PF_REPAIR_NONE || f->mode == MODE_NO)
		return false;
	if (f->mode == MODE_YES)
		return true;
	if (f->mode == MODE_ASK)
		return ask(f, r);
	if (r->repair == PF_REPAIR_ASK)
		f->needs_decision = true;
	return r->repair == PF_REPAIR_AUTO;
}

static const char *outcome(const struct fsck *f, const struct pf_problem_report *r, bool repair)
{
	if (r->repair == PF_REPAIR_NONE)
		return "cannot be repaired";
	if (repair)
		return "repairing";
	return f->mode == MODE_SAFE ? "needs a decision" : "not repaired";
}

static bool on_problem(void *arg, const struct pf_problem_report *r)
{
	struct fsck *f = arg;
	cli_progress_clear(&f->progress);
	bool asked = f->mode == MODE_ASK && r->repair != PF_REPAIR_NONE;
	bool repair = decide(f, r);
	if (f->json_wanted) {
		static const char *const repairs[] = { "none", "safe", "decision" };
		json_object(&f->json, NULL);
		json_string(&f->json, "id", r->id);
		json_string(&f->json, "message", r->message);
		json_string(&f->json, "repair", repairs[r->repair]);
		json_bool(&f->json, "repairing", repair);
		json_end_object(&f->json);
	} else if (!asked) {
		printf("%s: %s: %s\n", r->id, r->message, outcome(f, r, repair));
	}
	return repair;
}

static bool on_progress(void *arg, const char *pass, uint64_t done, uint64_t total)
{
	struct fsck *f = arg;
	if (!f->pass || strcmp(f->pass, pass) != 0)
		f->pass_nr++;
	f->pass = pass;
	if (f->progress_out) {
		fprintf(f->progress_out, "%u %ju %ju %s\n", f->pass_nr, (uintmax_t)done, (uintmax_t)total, f->name);
		fflush(f->progress_out);
	}
	cli_progress(&f->progress, pass, done, total);
	return !cli_interrupted();
}

/* -- result --------------------------------------------------------------------------------------------------------- */
static int exit_code(int err, const struct pf_check_result *r)
{
	int code = cli_fsck_exit(err);
	if (r->nr_repaired)
		code |= FSCK_CORRECTED;
	if (r->nr_left)
		code |= FSCK_LEFT;
	return code;
}

static void print_result_json(struct fsck *f, int err, const struct pf_diag *diag, const struct pf_check_result *r,
			      bool skipped)
{
	struct json *j = &f->json;
	json_end_array(j);
	json_bool(j, "checked", !err && !skipped);
	if (err)
		json_string(j, "error", diag->text[0] ? diag->text : pf_strerror(err));
	json_number(j, "problems", r->nr_problems);
	json_number(j, "repaired", r->nr_repaired);
	json_number(j, "left", r->nr_left);
	json_number(j, "inodes", r->nr_inodes);
	json_number(j, "directories", r->nr_directories);
	json_number(j, "extents", r->nr_extents);
	json_number(j, "data_bytes", r->data_blocks * PF_BLOCK_SIZE);
	json_number(j, "node_bytes", r->node_blocks * PF_BLOCK_SIZE);
	json_number(j, "single_nodes", r->nr_single_nodes);
	json_number(j, "orphans", r->nr_orphans);
	json_number(j, "log_records", r->nr_log_records);
	json_number(j, "exit", (uint64_t)exit_code(err, r));
	json_end_object(j);
	json_finish(j);
}

static void print_result_text(const struct fsck *f, const struct pf_check_result *r)
{
	char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN];
	if (f->verbose)
		printf("%ju inodes, %ju directories, %ju extents, %s of data, %s of tree nodes, %ju orphans\n",
		       (uintmax_t)r->nr_inodes, (uintmax_t)r->nr_directories, (uintmax_t)r->nr_extents,
		       cli_size(a, r->data_blocks * PF_BLOCK_SIZE), cli_size(b, r->node_blocks * PF_BLOCK_SIZE),
		       (uintmax_t)r->nr_orphans);
	cli_print_name(stdout, f->name);
	if (!r->nr_problems)
		printf(": clean, %ju inodes, %s of data\n", (uintmax_t)r->nr_inodes,
		       cli_size(a, r->data_blocks * PF_BLOCK_SIZE));
	else
		printf(": %ju problems, %ju repaired, %ju left\n", (uintmax_t)r->nr_problems, (uintmax_t)r->nr_repaired,
		       (uintmax_t)r->nr_left);
	if (r->nr_log_records)
		printf("Its intent log holds %ju records of after the last checkpoint, which the next mount or fsck.poolfs -p redoes.\n",
		       (uintmax_t)r->nr_log_records);
	if (r->nr_single_nodes)
		printf("%ju tree nodes have one copy only, as an upgrade was interrupted: 'poolfs upgrade --to %d' completes it.\n",
		       (uintmax_t)r->nr_single_nodes, PF_VERSION_NEWEST);
	if (f->needs_decision)
		printf("Some repairs need a decision: run fsck.poolfs without -p, or with -y.\n");
	else if (r->nr_left && (f->mode == MODE_NO || f->mode == MODE_ASK))
		printf("Nothing else was changed. Run fsck.poolfs -p for the safe repairs, or -y for all of them.\n");
}

/* -- work ----------------------------------------------------------------------------------------------------------- */
/* With -p, a pool that was unmounted cleanly is not looked at again: 1. Refusals are the same as those of a check. */
static int is_clean(const struct members *m, const struct pf_env *env)
{
	struct pf_diag diag = { 0 };
	struct pf_set *set;
	int err = pf_set_open(members_paths(m), m->nr, PF_SET_REPAIR, CLI_LOCK_WAIT_MS, env, &set, &diag);
	if (err) {
		/* Damage is for the check itself to report; all else ends here. */
		if (pf_is_damage(err))
			return 0;
		cli_fail(&diag, m->paths[0], err);
		return err;
	}
	bool clean = set->super.flags & PF_SUPER_CLEAN;
	pf_set_close(set);
	return clean;
}

/* What a crash left to be finished is no problem, but a pool that was checked and may be written is to be clean afterwards:
 * opening it finishes, closing it says so. */
static int finish_recovery(const struct members *m, const struct pf_env *env)
{
	struct pf_pool_options opts = { 0 };
	struct pf_pool *pool;
	int clean = is_clean(m, env);
	if (clean)
		return clean < 0 ? clean : 0;
	int err = members_open_pool(m, &opts, "use -n to check without repairs", env, &pool);
	if (err)
		return err;
	err = pf_pool_close(pool);
	if (err)
		cli_fail(NULL, m->paths[0], err);
	return err;
}

static int check(struct fsck *f, const struct members *m, const struct pf_env *env, struct pf_diag *diag,
		 struct pf_check_result *result)
{
	struct pf_check_options opts = { .repair = f->mode != MODE_NO };
	struct pf_check_sink sink = { .problem = on_problem, .progress = on_progress, .arg = f };
	struct pf_io *ios[PF_MAX_MEMBERS];
	int err = members_open_ios(m, opts.repair ? "use -n to check without repairs" : NULL, env, ios);
	if (err)
		return err;
	err = pf_check(ios, m->nr, &opts, env, &sink, result, diag);
	cli_progress_clear(&f->progress);
	if (err == -EINTR)
		cli_message("interrupted; what was found so far is above");
	else if (err)
		cli_fail(diag, f->name, err);
	return err;
}

static int run(struct fsck *f, char **given, unsigned nr)
{
	const struct pf_env *env = cli_env(f->verbose ? PF_LOG_INFO : PF_LOG_WARNING);
	struct pf_check_result result = { 0 };
	struct pf_diag diag = { 0 };
	struct members m;
	f->name = given[0];
	if (f->json_wanted) {
		json_init(&f->json, stdout);
		json_object(&f->json, NULL);
		json_name(&f->json, "path", f->name);
		json_array(&f->json, "problem_list");
	}
	int err = members_find(given, nr, &m);
	int clean = err || f->mode != MODE_SAFE || f->force ? 0 : is_clean(&m, env);
	if (clean < 0)
		err = clean;
	if (!err && !clean)
		err = check(f, &m, env, &diag, &result);
	if (!err && !clean && !result.nr_left && f->mode != MODE_NO)
		err = finish_recovery(&m, env);
	members_free(&m);
	if (f->json_wanted) {
		print_result_json(f, err, &diag, &result, clean > 0);
	} else if (clean > 0) {
		cli_print_name(stdout, f->name);
		printf(": clean (not checked: it was unmounted cleanly; -f checks it all the same)\n");
	} else if (!err) {
		print_result_text(f, &result);
	}
	int code = exit_code(err, &result);
	return cli_finish_stdout() ? code : code | FSCK_FAILED;
}

int main(int argc, char **argv)
{
	static struct fsck f;
	cli_set_name(program.name);
	int err = parse(&f, argc, argv);
	if (err)
		return err;
	/* Without a terminal there is nobody to ask. */
	if (f.mode == MODE_ASK && (f.json_wanted || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		f.mode = MODE_NO;
	cli_catch_signals();
	return run(&f, argv + optind, (unsigned)(argc - optind));
}
