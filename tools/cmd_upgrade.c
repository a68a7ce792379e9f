/* SPDX-License-Identifier: MIT
 * poolfs upgrade: a pool that is clean and not mounted gets a newer format version, in place. */
#include "cmd.h"

#include <string.h>

enum { OPT_TO = CLI_LONG };

static const struct cli_option options[] = {
	{ OPT_TO, "to", "N", "format version to upgrade to (default: the newest one)" },
	{ 'n', "dry-run", NULL, "say what would be done, write nothing" },
	{ 'q', "quiet", NULL, "print nothing but errors" },
	{ 0 },
};
static const char *const synopsis[] = { "[OPTION]... MEMBER...", NULL };
static const struct cli_program program = {
	.name = "poolfs upgrade",
	.synopsis = synopsis,
	.summary = "Gives a pool a newer format version, in place.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

struct upgrade {
	unsigned to; /* 0: not said */
	bool dry_run, quiet;
	bool go_on; /* it has that version, but was interrupted on the way */
};

/* The present version of a pool that may be upgraded; or a negative code, after a message. Completes u->to and u->go_on. */
static int judge(struct upgrade *u, const struct members *m, const struct pf_env *env)
{
	struct pf_diag diag = { 0 };
	struct pf_set *set;
	int err = pf_set_open(members_paths(m), m->nr, 0, CLI_LOCK_WAIT_MS, env, &set, &diag);
	if (err) {
		cli_fail(&diag, m->paths[0], err);
		return err;
	}
	unsigned from = set->super.version;
	if (!u->to)
		u->to = from > PF_VERSION_DEFAULT ? from : PF_VERSION_DEFAULT;
	if (!(set->super.flags & PF_SUPER_CLEAN)) {
		err = -PF_EPOOL_DIRTY;
		cli_message("%s: the pool was not unmounted cleanly; nothing was changed. Check it first: fsck.poolfs %s",
			    m->paths[0], m->paths[0]);
	} else if (from > u->to) {
		err = -EINVAL;
		cli_message("%s: the pool has format version %u; it cannot go back to %u", m->paths[0], from, u->to);
	} else if (from == u->to) {
		err = pf_pool_single_nodes(set, &u->go_on);
		if (err)
			cli_message("%s: the tree cannot be walked: %s; nothing was changed, run fsck.poolfs", m->paths[0],
				    pf_strerror(err));
	}
	pf_set_close(set);
	return err ? err : (int)from;
}

static int upgrade(const struct upgrade *u, const struct members *m, const struct pf_env *env)
{
	struct pf_pool_options opts = { 0 };
	struct pf_diag diag = { 0 };
	struct pf_pool *pool;
	int err = members_open_pool(m, &opts, "run this as its owner", env, &pool);
	if (err)
		return err;
	err = pf_pool_upgrade(pool, u->to, &diag);
	if (err)
		cli_fail(&diag, m->paths[0], err);
	int closed = pf_pool_close(pool);
	if (closed && !err) {
		cli_fail(NULL, m->paths[0], closed);
		err = closed;
	}
	return err;
}

static void say(const struct upgrade *u, const struct members *m, unsigned from)
{
	cli_print_name(stdout, m->paths[0]);
	if (from == u->to && u->go_on)
		printf(": %s\n", u->dry_run ? "some tree nodes would get their second copy: an upgrade was interrupted" :
					      "an interrupted upgrade has been completed");
	else if (from == u->to)
		printf(": has format version %u already\n", from);
	else
		printf(": %s from format version %u to %u\n", u->dry_run ? "would be upgraded" : "upgraded", from, u->to);
	for (unsigned v = from + 1; v <= u->to; v++)
		printf("  %u: %s\n", v, pf_version_sentence(v));
	struct pf_features old = pf_version_features(from), new = pf_version_features(u->to);
	if (!pf_has(&old, PF_FEAT_DATA_CSUM) && pf_has(&new, PF_FEAT_DATA_CSUM))
		printf("Data that is in the pool now is not verified until 'poolfs scrub' has computed its checksums.\n");
}

static int parse(struct upgrade *u, int argc, char **argv)
{
	int key;
	uint64_t n;
	while ((key = cli_next(&program, argc, argv)) != CLI_END) {
		switch (key) {
		case OPT_TO:
			if (!cli_parse_number(optarg, PF_VERSION_NEWEST, &n) || n < PF_VERSION_FIRST)
				return cli_usage(&program, "format version \"%s\": must be %d to %d", optarg,
						 PF_VERSION_FIRST, PF_VERSION_NEWEST);
			u->to = (unsigned)n;
			break;
		case 'n':
			u->dry_run = true;
			break;
		case 'q':
			u->quiet = true;
			break;
		default:
			return FSCK_USAGE;
		}
	}
	return 0;
}

static int run(int argc, char **argv)
{
	struct upgrade u = { 0 };
	const struct pf_env *env = cli_env(PF_LOG_WARNING);
	struct members m;
	int code = parse(&u, argc, argv);
	if (!code)
		code = cmd_members(&program, argc, argv, &m);
	if (code)
		return code;
	int from = judge(&u, &m, env), err = from < 0 ? from : 0;
	if (!err && ((unsigned)from < u.to || u.go_on) && !u.dry_run)
		err = upgrade(&u, &m, env);
	if (!err && !u.quiet)
		say(&u, &m, (unsigned)from);
	members_free(&m);
	code = cli_fsck_exit(err);
	return cli_finish_stdout() ? code : code | FSCK_FAILED;
}

const struct cmd cmd_upgrade = { &program, run };
