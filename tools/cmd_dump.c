/* SPDX-License-Identifier: MIT
 * poolfs dump: the structures on the members, for engineers. */
#include "cmd.h"
#include "dump.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_SUPER = CLI_LONG, OPT_TREE, OPT_MAPS, OPT_LOG, OPT_INODE, OPT_NODE, OPT_JSON };

static const struct cli_option options[] = {
	{ OPT_SUPER, "super", NULL, "superblocks of all slots (the default)" },
	{ OPT_TREE, "tree", NULL, "all nodes and items of the tree" },
	{ OPT_MAPS, "maps", NULL, "group tables and free-space maps" },
	{ OPT_LOG, "log", NULL, "the records of the intent log that the next mount redoes" },
	{ OPT_INODE, "inode", "N", "all items of inode N (1 is the root directory)" },
	{ OPT_NODE, "node", "ADDR", "the tree node at ADDR, written MEMBER:BLOCK" },
	{ OPT_JSON, "json", NULL, "print as JSON" },
	{ 0 },
};
static const char *const synopsis[] = { "[--super] [--tree] [--maps] [--log] [--inode N] [--node ADDR] [--json] MEMBER...", NULL };
static const struct cli_program program = {
	.name = "poolfs dump",
	.synopsis = synopsis,
	.summary = "Shows the structures on the members, for engineers.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

struct wanted {
	bool super, tree, maps, log, inode, node;
	uint64_t ino;
	pf_addr addr;
};

static bool parse_addr(const char *text, pf_addr *addr)
{
	char copy[64];
	uint64_t member, block;
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	char *colon = strchr(copy, ':');
	if (!colon)
		return false;
	*colon = '\0';
	if (!cli_parse_number(copy, PF_MAX_MEMBERS - 1, &member) ||
	    !cli_parse_number(colon + 1, (UINT64_C(1) << PF_ADDR_BLOCK_BITS) - 1, &block))
		return false;
	*addr = pf_addr_make((unsigned)member, block);
	return true;
}

static int parse(struct wanted *w, struct dump *d, int argc, char **argv)
{
	int key;
	while ((key = cli_next(&program, argc, argv)) != CLI_END) {
		switch (key) {
		case OPT_SUPER:
			w->super = true;
			break;
		case OPT_TREE:
			w->tree = true;
			break;
		case OPT_MAPS:
			w->maps = true;
			break;
		case OPT_LOG:
			w->log = true;
			break;
		case OPT_INODE:
			w->inode = true;
			if (!cli_parse_number(optarg, PF_KEY_FIELD_MAX, &w->ino))
				return cli_usage(&program, "\"%s\" is not an inode number", optarg);
			break;
		case OPT_NODE:
			w->node = true;
			if (!parse_addr(optarg, &w->addr))
				return cli_usage(&program, "\"%s\" is not an address; write MEMBER:BLOCK", optarg);
			break;
		case OPT_JSON:
			d->json_wanted = true;
			break;
		default:
			return FSCK_USAGE;
		}
	}
	if (!w->tree && !w->maps && !w->log && !w->inode && !w->node)
		w->super = true;
	return 0;
}

static int dump_pool(const struct wanted *w, struct dump *d, char **paths, unsigned nr)
{
	struct members m;
	struct pf_set *set;
	bool in_use;
	int err = members_find(paths, nr, &m);
	if (!err)
		err = members_open_set(&m, PF_SET_REPAIR, d->env, &set, &in_use);
	members_free(&m);
	if (err)
		return err;
	if (in_use)
		cli_message("%s: in use; what is shown may change meanwhile", paths[0]);
	if (w->maps)
		err = dump_maps(d, set);
	if (!err && w->log)
		err = dump_log(d, set);
	if (!err && w->tree)
		err = dump_tree(d, set);
	if (!err && w->inode)
		err = dump_inode(d, set, w->ino);
	if (!err && w->node)
		err = dump_node(d, set, w->addr);
	pf_set_close(set);
	return err;
}

static int run(int argc, char **argv)
{
	struct dump d = { .env = cli_env(PF_LOG_WARNING) };
	struct wanted w = { 0 };
	int code = parse(&w, &d, argc, argv);
	if (!code)
		code = cmd_operands(&program, argc);
	if (code)
		return code;
	if (d.json_wanted) {
		json_init(&d.json, stdout);
		json_object(&d.json, NULL);
	}
	char **paths = argv + optind;
	unsigned nr = (unsigned)(argc - optind);
	int err = w.super ? dump_supers(&d, paths, nr) : 0;
	if (!err && (w.tree || w.maps || w.log || w.inode || w.node))
		err = dump_pool(&w, &d, paths, nr);
	if (d.json_wanted) {
		json_number(&d.json, "damaged", d.nr_damaged);
		json_end_object(&d.json);
		json_finish(&d.json);
	}
	code = cli_fsck_exit(err);
	if (d.nr_damaged)
		code |= FSCK_LEFT;
	return cli_finish_stdout() ? code : code | FSCK_FAILED;
}

const struct cmd cmd_dump = { &program, run };
