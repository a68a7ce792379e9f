/* SPDX-License-Identifier: MIT
 * mkfs.poolfs: parse, look, judge, say what will be; only then write. */
#include "cli.h"
#include "json.h"
#include "mkfs_target.h"

#include "poolfs.h"

#include <stdlib.h>
#include <unistd.h>
#include <string.h>

enum { OPT_FORMAT = CLI_LONG, OPT_PLACEMENT, OPT_SIZE, OPT_META, OPT_JSON };

static const struct cli_option options[] = {
	{ 'L', "label", "LABEL", "name of the pool, up to 64 bytes" },
	{ 'U', "uuid", "UUID", "UUID of the pool instead of a random one" },
	{ OPT_FORMAT, "format-version", "N", "format version (default: the newest one)" },
	{ OPT_PLACEMENT, "placement", "P", "file: a file stays on one member while that has room (default); "
					   "stripe: files are spread in units of 1 MiB" },
	{ OPT_SIZE, "size", "SIZE", "create image files of this size (K, M, G, T: powers of 1024)" },
	{ OPT_META, "meta", "MEMBER", "keep metadata on this member (may be given up to 3 times)" },
	{ 'f', "force", NULL, "overwrite members that contain something" },
	{ 'n', "dry-run", NULL, "check everything and show the geometry, write nothing" },
	{ 'q', "quiet", NULL, "print nothing but errors" },
	{ 'v', "verbose", NULL, "also show where things lie on each member" },
	{ OPT_JSON, "json", NULL, "print the geometry as JSON" },
	{ 0 },
};
static const char *const synopsis[] = { "[OPTION]... MEMBER...", NULL };
static const struct cli_program program = {
	.name = "mkfs.poolfs",
	.synopsis = synopsis,
	.summary = "Makes a pool of partitions, disks and image files. All that they contain is lost.",
	.options = options,
	.usage_exit = MKFS_FAILED,
};

struct mkfs {
	struct targets targets;
	struct pf_mkfs_options pool;
	struct pf_mkfs_report report;
	uint8_t uuid[16];
	const char *meta[PF_MAX_META_MEMBERS];
	unsigned nr_meta;
	bool dry_run, quiet, verbose, json;
};

/* -- command line --------------------------------------------------------------------------------------------------- */
static int take_label(struct mkfs *m, const char *label)
{
	uint8_t uuid[16];
	if (!*label || strlen(label) > PF_LABEL_BYTES)
		return cli_usage(&program, "label \"%s\": must be 1 to %u bytes long", label, PF_LABEL_BYTES);
	for (const char *p = label; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return cli_usage(&program, "the label contains a control character");
	}
	if (cli_parse_uuid(label, uuid))
		return cli_usage(&program, "label \"%s\": looks like a UUID, and could be mistaken for one", label);
	m->pool.label = label;
	return 0;
}

static int take_placement(struct mkfs *m, const char *name)
{
	if (!strcmp(name, "file"))
		m->pool.placement = PF_PLACE_FILE;
	else if (!strcmp(name, "stripe"))
		m->pool.placement = PF_PLACE_STRIPE;
	else
		return cli_usage(&program, "placement \"%s\": must be file or stripe", name);
	return 0;
}

static int take_value(struct mkfs *m, int key, const char *value)
{
	uint64_t n;
	switch (key) {
	case 'L':
		return take_label(m, value);
	case 'U':
		if (!cli_parse_uuid(value, m->uuid))
			return cli_usage(&program, "\"%s\" is not a UUID", value);
		m->pool.pool_uuid = m->uuid;
		return 0;
	case OPT_FORMAT:
		if (!cli_parse_number(value, PF_VERSION_NEWEST, &n) || n < PF_VERSION_FIRST)
			return cli_usage(&program, "format version \"%s\": must be %d to %d", value, PF_VERSION_FIRST,
					 PF_VERSION_NEWEST);
		m->pool.version = (unsigned)n;
		return 0;
	case OPT_PLACEMENT:
		return take_placement(m, value);
	case OPT_SIZE:
		if (!cli_parse_size(value, &m->targets.image_bytes) || m->targets.image_bytes > INT64_MAX)
			return cli_usage(&program, "\"%s\" is not a size", value);
		if (m->targets.image_bytes < PF_MIN_MEMBER_BYTES)
			return cli_usage(&program, "--size %s: too small; a member needs at least 16 MiB", value);
		return 0;
	case OPT_META:
		if (m->nr_meta == PF_MAX_META_MEMBERS)
			return cli_usage(&program, "--meta: at most %u members can be given", PF_MAX_META_MEMBERS);
		m->meta[m->nr_meta++] = value;
		return 0;
	default:
		return -1;
	}
}

static int parse(struct mkfs *m, int argc, char **argv)
{
	int key;
	while ((key = cli_next(&program, argc, argv)) != CLI_END) {
		switch (key) {
		case CLI_BAD:
			return MKFS_FAILED;
		case 'f':
			m->targets.force = true;
			break;
		case 'n':
			m->dry_run = true;
			break;
		case 'q':
			m->quiet = true;
			break;
		case 'v':
			m->verbose = true;
			break;
		case OPT_JSON:
			m->json = true;
			break;
		default:
			if (take_value(m, key, optarg) != 0)
				return MKFS_FAILED;
		}
	}
	if (optind == argc)
		return cli_usage(&program, "no member given");
	if ((unsigned)(argc - optind) > PF_MAX_MEMBERS)
		return cli_usage(&program, "%d members given; a pool has at most %u", argc - optind, PF_MAX_MEMBERS);
	return 0;
}

static int find_meta(struct mkfs *m)
{
	for (unsigned i = 0; i < m->nr_meta; i++) {
		int index = targets_find(&m->targets, m->meta[i]);
		if (index < 0)
			return cli_usage(&program, "--meta %s: not among the members given", m->meta[i]);
		m->pool.meta_mask |= UINT32_C(1) << index;
	}
	return 0;
}

/* -- report --------------------------------------------------------------------------------------------------------- */
static bool is_meta(const struct mkfs *m, unsigned id)
{
	for (unsigned i = 0; i < m->report.nr_meta; i++) {
		if (m->report.meta_members[i] == id)
			return true;
	}
	return false;
}

struct sizes {
	struct pf_geometry geo[PF_MAX_MEMBERS];
	uint64_t share_blocks[PF_MAX_MEMBERS];
	uint64_t pool_blocks;
};

static void compute_sizes(const struct mkfs *m, struct sizes *s)
{
	s->pool_blocks = 0;
	for (unsigned i = 0; i < m->targets.nr; i++) {
		uint64_t blocks = m->targets.t[i].size_bytes / PF_BLOCK_SIZE;
		s->pool_blocks += blocks;
		/* Cannot fail: pf_pool_create() has accepted these sizes. */
		(void)pf_geometry_init(&s->geo[i], blocks, pf_geometry_log_blocks(blocks));
	}
	for (unsigned i = 0; i < m->targets.nr; i++)
		s->share_blocks[i] = is_meta(m, i) ? pf_geometry_share_blocks(s->pool_blocks, &s->geo[i]) : 0;
}

static const char *placement_name(unsigned placement)
{
	return placement == PF_PLACE_STRIPE ? "stripe" : "file";
}

static void print_places(const struct pf_geometry *g)
{
	printf("      blocks of 4 KiB: superblocks %u to %u and %ju to %ju, table root %ju, tables %ju, maps %ju,\n"
	       "      log %ju, data %ju to %ju\n",
	       PF_SUPER_FIRST_BLOCK, PF_SUPER_FIRST_BLOCK + PF_SUPER_RING_BLOCKS - 1, (uintmax_t)g->backup_block,
	       (uintmax_t)g->size_blocks - 1, (uintmax_t)g->root_block, (uintmax_t)g->tables_block,
	       (uintmax_t)g->maps_block, (uintmax_t)g->log_block, (uintmax_t)g->data_start, (uintmax_t)g->data_end - 1);
}

/* Where each node has a copy on two members, the smaller one says how many there can be. A member of much less than a hundredth of
 * the pool is too small for all data that the others could hold. */
static void print_scarce_metadata(const struct mkfs *m, const struct sizes *s)
{
	enum { NODE_BYTES_PER_MIB = 3000 }; /* one copy, leaves 0.7 full: DESIGN.md, geometry */
	struct pf_super super = { .features = pf_version_features(m->pool.version), .nr_meta = m->report.nr_meta };
	char a[CLI_SIZE_LEN];
	uint64_t room[PF_MAX_META_MEMBERS];
	unsigned least = m->report.meta_members[0];
	if (pf_super_node_copies(&super) == 1)
		return;
	for (unsigned i = 0; i < m->report.nr_meta; i++) {
		unsigned id = m->report.meta_members[i];
		room[i] = s->share_blocks[id] - pf_space_reserve_of(s->share_blocks[id]);
		least = s->share_blocks[id] < s->share_blocks[least] ? id : least;
	}
	uint64_t mib = pf_space_room_for_copies(room, super.nr_meta, PF_NODE_COPIES) * PF_BLOCK_SIZE / NODE_BYTES_PER_MIB;
	if (mib >= m->report.usable_bytes >> 20)
		return;
	printf("note: metadata is kept twice, and ");
	cli_print_name(stdout, m->targets.t[least].path);
	printf(" is sure to have room for that of %s of large files only; nominate others by --meta, or take a larger member\n",
	       cli_size(a, mib << 20));
}

static void print_text(const struct mkfs *m, const struct sizes *s)
{
	char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN], c[CLI_SIZE_LEN], uuid[CLI_UUID_LEN];
	if (m->pool.label)
		printf("pool \"%s\" %s%s\n", m->pool.label, cli_uuid(uuid, m->report.pool_uuid),
		       m->dry_run ? " (dry run: nothing was written)" : "");
	else
		printf("pool %s%s\n", cli_uuid(uuid, m->report.pool_uuid),
		       m->dry_run ? " (dry run: nothing was written)" : "");
	printf("format version %u, placement %s, blocks of 4 KiB\n", m->pool.version, placement_name(m->pool.placement));
	printf("%3s  %-11s %6s  %-10s %-11s %s\n", "id", "size", "groups", "log", "metadata", "member");
	for (unsigned i = 0; i < m->targets.nr; i++) {
		const struct pf_geometry *g = &s->geo[i];
		printf("%3u  %-11s %6ju  %-10s %-11s ", i, cli_size(a, m->targets.t[i].size_bytes), (uintmax_t)g->nr_groups,
		       cli_size(b, g->log_blocks * PF_BLOCK_SIZE),
		       is_meta(m, i) ? cli_size(c, s->share_blocks[i] * PF_BLOCK_SIZE) : "-");
		cli_print_name(stdout, m->targets.t[i].path);
		fputc('\n', stdout);
		if (m->verbose)
			print_places(g);
	}
	printf("usable: %s (%ju bytes) of %s\n", cli_size(a, m->report.usable_bytes), (uintmax_t)m->report.usable_bytes,
	       cli_size(b, s->pool_blocks * PF_BLOCK_SIZE));
	print_scarce_metadata(m, s);
}

static void print_json(const struct mkfs *m, const struct sizes *s)
{
	struct json j;
	json_init(&j, stdout);
	json_object(&j, NULL);
	json_uuid(&j, "pool_uuid", m->report.pool_uuid);
	json_string(&j, "label", m->pool.label ? m->pool.label : "");
	json_number(&j, "version", m->pool.version);
	json_string(&j, "placement", placement_name(m->pool.placement));
	json_bool(&j, "written", !m->dry_run);
	json_number(&j, "size_bytes", s->pool_blocks * PF_BLOCK_SIZE);
	json_number(&j, "usable_bytes", m->report.usable_bytes);
	json_array(&j, "members");
	for (unsigned i = 0; i < m->targets.nr; i++) {
		const struct target *t = &m->targets.t[i];
		const struct pf_geometry *g = &s->geo[i];
		json_object(&j, NULL);
		json_number(&j, "id", i);
		json_name(&j, "path", t->path);
		json_number(&j, "size_bytes", t->size_bytes);
		json_bool(&j, "metadata", is_meta(m, i));
		json_number(&j, "groups", g->nr_groups);
		json_number(&j, "log_bytes", g->log_blocks * PF_BLOCK_SIZE);
		json_number(&j, "share_bytes", s->share_blocks[i] * PF_BLOCK_SIZE);
		json_number(&j, "data_bytes", (g->data_end - g->data_start) * PF_BLOCK_SIZE);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	json_finish(&j);
}

static void print_report(const struct mkfs *m)
{
	struct sizes s;
	compute_sizes(m, &s);
	if (m->json)
		print_json(m, &s);
	else if (!m->quiet)
		print_text(m, &s);
}

/* -- work ----------------------------------------------------------------------------------------------------------- */
static int create(struct mkfs *m, const struct pf_env *env, bool report_only)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_diag diag = { 0 };
	int err = 0;
	if (report_only)
		err = targets_plan(&m->targets, ios);
	else
		targets_take(&m->targets, ios);
	if (!err)
		err = pf_pool_create(ios, m->targets.nr, &m->pool, env, report_only, &m->report, &diag);
	if (err)
		cli_fail(&diag, "cannot make the pool", err);
	return err ? -1 : 0;
}

static void announce_overwritten(const struct mkfs *m)
{
	for (unsigned i = 0; i < m->targets.nr && !m->quiet; i++) {
		if (m->targets.t[i].found[0])
			cli_message("%s: %s %s", m->targets.t[i].path, m->dry_run ? "would overwrite" : "overwriting",
				    m->targets.t[i].found);
	}
}

static int run(struct mkfs *m, char **paths, unsigned nr)
{
	const struct pf_env *env = cli_env(PF_LOG_WARNING);
	if (targets_identify(&m->targets, paths, nr) != 0 || find_meta(m) != 0)
		return MKFS_FAILED;
	int err = targets_open(&m->targets, env);
	if (!err)
		err = targets_judge(&m->targets);
	if (!err)
		err = create(m, env, true);
	if (!err) {
		announce_overwritten(m);
		if (!m->dry_run) {
			err = targets_prepare(&m->targets, env);
			if (!err)
				err = create(m, env, false);
			if (err)
				targets_undo(&m->targets);
		}
	}
	targets_close(&m->targets);
	if (err)
		return MKFS_FAILED;
	for (unsigned i = 0; i < m->targets.nr && !m->dry_run; i++) {
		if (m->targets.t[i].has_table && S_ISBLK(m->targets.t[i].st.st_mode))
			probe_reread_partitions(m->targets.t[i].path);
	}
	print_report(m);
	return cli_finish_stdout() ? MKFS_OK : MKFS_FAILED;
}

int main(int argc, char **argv)
{
	static struct mkfs m;
	cli_set_name(program.name);
	m.pool.version = PF_VERSION_DEFAULT;
	/* who makes a pool can use it: the root directory is his */
	m.pool.root_uid = geteuid();
	m.pool.root_gid = getegid();
	if (parse(&m, argc, argv) != 0)
		return MKFS_FAILED;
	return run(&m, argv + optind, (unsigned)(argc - optind));
}
