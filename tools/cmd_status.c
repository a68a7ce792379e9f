/* SPDX-License-Identifier: MIT
 * poolfs status: a mounted pool tells its state itself; otherwise the members are read. Both give the same JSON. */
#include "cmd.h"
#include "status_fetch.h"
#include "status_text.h"

#include "poolfs.h"

#include <stdlib.h>
#include <unistd.h>

enum { OPT_JSON = CLI_LONG };

static const struct cli_option options[] = {
	{ OPT_JSON, "json", NULL, "print as JSON" },
	{ 0 },
};
static const char *const synopsis[] = { "[--json] DIR", "[--json] MEMBER...", NULL };
static const struct cli_program program = {
	.name = "poolfs status",
	.synopsis = synopsis,
	.summary = "Shows a pool: by a directory when it is mounted, else by its members.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

/* -- a mounted pool ------------------------------------------------------------------------------------------------- */
/* The text is the caller's; NULL after a message. */
static char *fetch_mounted(const char *path)
{
	char *text = NULL;
	int fd = cmd_open_mounted(path);
	if (fd < 0)
		return NULL;
	int err = status_fetch(fd, &text);
	close(fd);
	if (err)
		cli_message("%s: the mounted pool does not tell its state: %s", path, pf_strerror(err));
	return text;
}

/* -- members -------------------------------------------------------------------------------------------------------- */
static int fetch_offline(const struct members *m, const struct pf_env *env, char **text, bool *in_use)
{
	struct pf_pool_options opts = { .read_only = true, .no_recovery = true };
	struct pf_diag diag = { 0 };
	struct pf_pool *pool;
	int err = pf_pool_open(members_paths(m), m->nr, &opts, env, &pool, &diag);
	*in_use = err == -PF_EMEMBER_BUSY;
	if (*in_use) {
		opts.set_flags = PF_SET_UNLOCKED;
		diag.text[0] = '\0';
		err = pf_pool_open(members_paths(m), m->nr, &opts, env, &pool, &diag);
	}
	if (err) {
		cli_fail(&diag, m->paths[0], err);
		return err;
	}
	*text = pf_pool_status_json(pool);
	pf_pool_abandon(pool);
	if (!*text)
		cli_fail(NULL, m->paths[0], -ENOMEM);
	return *text ? 0 : -ENOMEM;
}

/* -- output --------------------------------------------------------------------------------------------------------- */
static int show(char *text, bool json_wanted, const char *state)
{
	int code = FSCK_OK;
	struct json_value *v = json_parse(text);
	free(text);
	if (!v || v->type != JSON_OBJECT) {
		cli_message("the pool's answer is not understood; is its daemon of another version of poolfs?");
		code = FSCK_FAILED;
	} else if (json_wanted) {
		struct json j;
		json_init(&j, stdout);
		json_copy(&j, v);
		json_finish(&j);
	} else {
		status_print(v, state);
	}
	json_free(v);
	return cli_finish_stdout() ? code : FSCK_FAILED;
}

static int run(int argc, char **argv)
{
	bool json_wanted = false, in_use;
	struct members m;
	char *text = NULL;
	int key;
	while ((key = cli_next(&program, argc, argv)) != CLI_END) {
		if (key != OPT_JSON)
			return FSCK_USAGE;
		json_wanted = true;
	}
	if (cmd_is_directory(argc, argv)) {
		text = fetch_mounted(argv[optind]);
		return text ? show(text, json_wanted, "mounted") : FSCK_FAILED;
	}
	int code = cmd_members(&program, argc, argv, &m);
	if (code)
		return code;
	int err = fetch_offline(&m, cli_env(PF_LOG_WARNING), &text, &in_use);
	members_free(&m);
	if (err)
		return cli_fsck_exit(err);
	return show(text, json_wanted, in_use ? "in use" : NULL);
}

const struct cmd cmd_status = { &program, run };
