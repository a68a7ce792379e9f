/* SPDX-License-Identifier: MIT
 * poolfs trim: tells the members of a pool which space is free. A mounted pool does it itself, a piece at a time. */
#include "cmd.h"
#include "json.h"

#include "poolfs.h"

#include <string.h>
#include <unistd.h>

#define MINIMUM_DEFAULT (UINT64_C(64) << 10)

enum { OPT_MINIMUM = CLI_LONG, OPT_UNUSED, OPT_JSON };

static const struct cli_option options[] = {
	{ OPT_MINIMUM, "minimum", "SIZE", "leave shorter pieces of free space alone (default 64K)" },
	{ OPT_UNUSED, "unused", NULL, "also space that was never used since the pool was made" },
	{ 'q', "quiet", NULL, "no progress and no summary" },
	{ OPT_JSON, "json", NULL, "print the result as JSON" },
	{ 0 },
};
static const char *const synopsis[] = { "[OPTION]... DIR", "[OPTION]... MEMBER...", NULL };
static const struct cli_program program = {
	.name = "poolfs trim",
	.synopsis = synopsis,
	.summary = "Gives free space back: to the host of image files, to devices.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

struct trim {
	uint64_t min_bytes;
	bool unused, quiet, json_wanted;
	struct cli_progress progress;
	/* result */
	uint64_t trimmed_bytes;
	uint32_t unable, failed;
};

/* -- a mounted pool ------------------------------------------------------------------------------------------------- */
static int trim_mounted(struct trim *t, const char *path)
{
	struct poolfs_ioc_trim req = { .min_bytes = t->min_bytes, .flags = t->unused ? POOLFS_TRIM_UNUSED : 0 };
	int fd = cmd_open_mounted(path), err = 0;
	if (fd < 0)
		return -EINVAL;
	do {
		if (cli_interrupted())
			err = -EINTR;
		else if (ioctl(fd, POOLFS_IOC_TRIM, &req) != 0)
			err = -errno;
		if (err)
			break;
		t->trimmed_bytes += req.trimmed_bytes;
		t->unable |= req.unable;
		t->failed |= req.failed;
		cli_progress(&t->progress, "trim", req.place, req.total_bytes);
	} while (req.place < req.total_bytes);
	close(fd);
	cli_progress_clear(&t->progress);
	if (err == -EPERM)
		cli_message("%s: only root and the user who mounted the pool may trim it", path);
	else if (err == -EROFS)
		cli_message("%s: the pool is mounted read-only, or takes no changes after an error", path);
	else if (err == -ENOTTY)
		cli_message("%s: the daemon of this mount is of an older version and cannot trim; mount the pool anew", path);
	else if (err && err != -EINTR && err != -EOPNOTSUPP)
		cli_message("%s: free space could not be given back: %s; the log of the daemon says why", path, strerror(-err));
	return err;
}

/* -- members -------------------------------------------------------------------------------------------------------- */
static int trim_pool(struct trim *t, struct pf_pool *pool)
{
	struct pf_trim trim = { .min_blocks = t->min_bytes / PF_BLOCK_SIZE, .unused = t->unused };
	int more = pf_pool_trim_begin(pool);
	if (!more)
		more = 1;
	while (more > 0) {
		uint64_t total, place = pf_pool_trim_place(pool, &trim, &total);
		cli_progress(&t->progress, "trim", place, total);
		more = cli_interrupted() ? -EINTR : pf_pool_trim_step(pool, &trim);
	}
	cli_progress_clear(&t->progress);
	t->trimmed_bytes = trim.trimmed_blocks * PF_BLOCK_SIZE;
	t->unable = trim.unable;
	t->failed = trim.failed;
	if (!more && (unsigned)__builtin_popcount(t->unable) == pf_pool_super(pool)->nr_members)
		more = -EOPNOTSUPP;
	return more;
}

static int trim_members(struct trim *t, const struct members *m)
{
	struct pf_pool_options opts = { 0 };
	struct pf_pool *pool;
	int err = members_open_pool(m, &opts, "run this as its owner", cli_env(PF_LOG_ERROR), &pool);
	if (err)
		return err;
	err = trim_pool(t, pool);
	int closed = pf_pool_close(pool);
	if (!err)
		err = closed;
	if (err && err != -EINTR && err != -EOPNOTSUPP)
		cli_fail(NULL, m->paths[0], err);
	return err;
}

/* -- output --------------------------------------------------------------------------------------------------------- */
static void list_members(struct json *j, const char *name, uint32_t members)
{
	json_array(j, name);
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++) {
		if (members >> i & 1)
			json_number(j, NULL, i);
	}
	json_end_array(j);
}

static void print_json(const struct trim *t, int err)
{
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_bool(&j, "complete", !err && !t->failed);
	if (err)
		json_string(&j, "error", pf_strerror(err));
	json_number(&j, "trimmed_bytes", t->trimmed_bytes);
	list_members(&j, "unable", t->unable);
	list_members(&j, "failed", t->failed);
	json_end_object(&j);
	json_finish(&j);
}

static void complain(const char *name, uint32_t members, const char *text)
{
	for (unsigned i = 0; i < PF_MAX_MEMBERS; i++) {
		if (members >> i & 1)
			cli_message("%s: member %u %s", name, i, text);
	}
}

static int report(const struct trim *t, const char *name, int err)
{
	char size[CLI_SIZE_LEN];
	if (err == -EOPNOTSUPP)
		cli_message("%s: no member can give space back: discards are not supported there", name);
	else
		complain(name, t->unable, "cannot give space back: discards are not supported there");
	complain(name, t->failed, "did not give back all of it: discards failed; the kernel's log may say why");
	if (err == -EINTR)
		cli_message("interrupted");
	if (t->json_wanted)
		print_json(t, err);
	else if (!t->quiet && (!err || err == -EINTR))
		printf("%s of free space given back\n", cli_size(size, t->trimmed_bytes));
	return cli_fsck_exit(err) | (t->failed ? FSCK_FAILED : 0);
}

static int parse(struct trim *t, int argc, char **argv)
{
	int key;
	while ((key = cli_next(&program, argc, argv)) != CLI_END) {
		switch (key) {
		case OPT_MINIMUM:
			if (!cli_parse_size(optarg, &t->min_bytes))
				return cli_usage(&program, "\"%s\" is not a size", optarg);
			break;
		case OPT_UNUSED:
			t->unused = true;
			break;
		case 'q':
			t->quiet = true;
			break;
		case OPT_JSON:
			t->json_wanted = true;
			break;
		default:
			return FSCK_USAGE;
		}
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct trim t = { .min_bytes = MINIMUM_DEFAULT };
	struct members m;
	int err, code = parse(&t, argc, argv);
	if (code)
		return code;
	cli_progress_init(&t.progress, !t.quiet);
	cli_catch_signals();
	if (cmd_is_directory(argc, argv)) {
		err = trim_mounted(&t, argv[optind]);
	} else {
		code = cmd_members(&program, argc, argv, &m);
		if (code)
			return code;
		err = trim_members(&t, &m);
		members_free(&m);
	}
	code = report(&t, argv[optind], err);
	return cli_finish_stdout() ? code : code | FSCK_FAILED;
}

const struct cmd cmd_trim = { &program, run };
