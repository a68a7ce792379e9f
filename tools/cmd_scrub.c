/* SPDX-License-Identifier: MIT
 * poolfs scrub: reads and verifies everything, and names what is damaged. */
#include "cmd.h"

#include "json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_RATE = CLI_LONG, OPT_JSON };

static const struct cli_option options[] = {
	{ OPT_RATE, "rate", "SIZE", "read at most SIZE per second from each member (K, M, G)" },
	{ 'n', "read-only", NULL, "write nothing: checksums that an upgrade left out are not filled in" },
	{ 'q', "quiet", NULL, "no progress and no summary, damage only" },
	{ OPT_JSON, "json", NULL, "print the result as JSON" },
	{ 0 },
};
static const char *const synopsis[] = { "[OPTION]... MEMBER...", NULL };
static const struct cli_program program = {
	.name = "poolfs scrub",
	.synopsis = synopsis,
	.summary = "Reads and verifies every block of a pool that is not mounted.",
	.options = options,
	.usage_exit = FSCK_USAGE,
};

/* Damaged blocks that lie one behind the other, in the file and on the member, make one line. */
struct range {
	char *path, *member;
	uint64_t ino, file_off_bytes, member_off_bytes, len_bytes;
	int err;
	bool good_copy;
};

struct scrub {
	struct pf_scrub_options opts;
	bool read_only, quiet, json_wanted;
	struct json json;
	struct cli_progress progress;
	pthread_mutex_t lock; /* the sink is called by a thread for each member */
	struct range pending[PF_MAX_MEMBERS];
	unsigned nr_pending;
};

/* -- sink ----------------------------------------------------------------------------------------------------------- */
static void print_range_json(struct scrub *s, const struct range *r)
{
	struct json *j = &s->json;
	json_object(j, NULL);
	json_name(j, "path", r->path);
	json_bool(j, "metadata", !r->path);
	if (r->path) {
		json_number(j, "inode", r->ino);
		json_number(j, "file_offset", r->file_off_bytes);
	}
	json_name(j, "member", r->member);
	json_number(j, "member_offset", r->member_off_bytes);
	json_number(j, "length", r->len_bytes);
	json_string(j, "error", pf_strerror(r->err));
	if (!r->path)
		json_bool(j, "good_copy", r->good_copy);
	json_end_object(j);
}

static void print_range(struct scrub *s, const struct range *r)
{
	cli_progress_clear(&s->progress);
	if (s->json_wanted) {
		print_range_json(s, r);
		return;
	}
	if (r->path) {
		printf("damaged: ");
		cli_print_name(stdout, r->path);
		if (!strcmp(r->path, "?"))
			printf(" (inode %ju)", (uintmax_t)r->ino);
		printf(" at offset %ju, %ju bytes, on ", (uintmax_t)r->file_off_bytes, (uintmax_t)r->len_bytes);
	} else {
		printf("damaged: metadata on ");
	}
	cli_print_name(stdout, r->member);
	printf(" at offset %ju: %s%s\n", (uintmax_t)r->member_off_bytes, pf_strerror(r->err),
	       r->good_copy ? "; another copy is good: 'fsck.poolfs -p -f' writes this one anew" : "");
}

static void free_range(struct range *r)
{
	free(r->path);
	free(r->member);
	*r = (struct range){ 0 };
}

static bool same_name(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool extends(const struct range *r, const struct pf_scrub_error *e)
{
	return r->path && same_name(r->path, e->path) && r->ino == e->ino && r->err == e->err &&
	       r->file_off_bytes + r->len_bytes == e->file_off_bytes &&
	       r->member_off_bytes + r->len_bytes == e->member_off_bytes;
}

static struct range *find_pending(struct scrub *s, const char *member)
{
	for (unsigned i = 0; i < s->nr_pending; i++) {
		if (!strcmp(s->pending[i].member, member))
			return &s->pending[i];
	}
	return s->nr_pending < PF_MAX_MEMBERS ? &s->pending[s->nr_pending++] : &s->pending[0];
}

static void on_error(void *arg, const struct pf_scrub_error *e)
{
	struct scrub *s = arg;
	pthread_mutex_lock(&s->lock);
	struct range *r = find_pending(s, e->member);
	if (r->member && extends(r, e)) {
		r->len_bytes += PF_BLOCK_SIZE;
	} else {
		if (r->member)
			print_range(s, r);
		free_range(r);
		*r = (struct range){
			.path = e->path ? strdup(e->path) : NULL,
			.member = strdup(e->member),
			.ino = e->ino,
			.file_off_bytes = e->file_off_bytes,
			.member_off_bytes = e->member_off_bytes,
			.len_bytes = PF_BLOCK_SIZE,
			.err = e->err,
			.good_copy = e->good_copy,
		};
		/* Damage must not go unreported, not even for want of memory. */
		if (!r->member || (e->path && !r->path))
			abort();
	}
	pthread_mutex_unlock(&s->lock);
}

static bool on_progress(void *arg, uint64_t done_bytes, uint64_t total_bytes)
{
	struct scrub *s = arg;
	pthread_mutex_lock(&s->lock);
	cli_progress(&s->progress, "scrub", done_bytes, total_bytes);
	pthread_mutex_unlock(&s->lock);
	return !cli_interrupted();
}

/* -- work ----------------------------------------------------------------------------------------------------------- */
static void finish_ranges(struct scrub *s)
{
	for (unsigned i = 0; i < s->nr_pending; i++) {
		print_range(s, &s->pending[i]);
		free_range(&s->pending[i]);
	}
	s->nr_pending = 0;
	cli_progress_clear(&s->progress);
}

static void print_summary(struct scrub *s, int err, const struct pf_scrub_result *r)
{
	char a[CLI_SIZE_LEN], b[CLI_SIZE_LEN];
	if (s->json_wanted) {
		json_end_array(&s->json);
		json_bool(&s->json, "complete", !err);
		if (err)
			json_string(&s->json, "error", pf_strerror(err));
		json_number(&s->json, "data_bytes", r->data_bytes);
		json_number(&s->json, "metadata_bytes", r->metadata_bytes);
		json_number(&s->json, "errors", r->nr_errors);
		json_number(&s->json, "damaged_files", r->nr_damaged_files);
		json_number(&s->json, "unverified_bytes", r->unverified_bytes);
		json_number(&s->json, "filled_in_bytes", r->filled_in_bytes);
		json_end_object(&s->json);
		json_finish(&s->json);
		return;
	}
	if (s->quiet)
		return;
	printf("read %s of data and %s of metadata: ", cli_size(a, r->data_bytes), cli_size(b, r->metadata_bytes));
	if (r->nr_errors)
		printf("%ju damaged blocks, %ju damaged files\n", (uintmax_t)r->nr_errors, (uintmax_t)r->nr_damaged_files);
	else
		printf("%s\n", err ? "not complete" : "clean");
	if (r->filled_in_bytes)
		printf("checksums filled in for %s\n", cli_size(a, r->filled_in_bytes));
	if (r->unverified_bytes)
		printf("%s have no checksum and could only be read, not verified\n", cli_size(a, r->unverified_bytes));
}

/* Checksums are only filled in where the format has them. 1, 0, or a negative code after a message. */
static int has_checksums(const struct members *m, const struct pf_env *env)
{
	struct pf_diag diag = { 0 };
	struct pf_set *set;
	int err = pf_set_open(members_paths(m), m->nr, 0, CLI_LOCK_WAIT_MS, env, &set, &diag);
	if (err) {
		cli_fail(&diag, m->paths[0], err);
		return err;
	}
	int has = pf_has(&set->super.features, PF_FEAT_DATA_CSUM);
	pf_set_close(set);
	return has;
}

static int scrub(struct scrub *s, const struct members *m, const struct pf_env *env, struct pf_scrub_result *result)
{
	struct pf_scrub_sink sink = { .error = on_error, .progress = on_progress, .arg = s };
	struct pf_pool *pool;
	int has = has_checksums(m, env);
	if (has < 0)
		return has;
	s->opts.fill_in = has && !s->read_only;
	struct pf_pool_options opts = { .read_only = !s->opts.fill_in };
	int err = members_open_pool(m, &opts, s->opts.fill_in ? "use -n to write nothing" : NULL, env, &pool);
	if (err)
		return err;
	err = pf_scrub(pool, &s->opts, &sink, result);
	finish_ranges(s);
	int closed = pf_pool_close(pool);
	if (!err)
		err = closed;
	if (err == -EINTR)
		cli_message("interrupted");
	else if (err)
		cli_fail(NULL, m->paths[0], err);
	return err;
}

static int parse(struct scrub *s, int argc, char **argv)
{
	int key;
	while ((key = cli_next(&program, argc, argv)) != CLI_END) {
		switch (key) {
		case OPT_RATE:
			if (!cli_parse_size(optarg, &s->opts.rate_bytes_s) || !s->opts.rate_bytes_s)
				return cli_usage(&program, "\"%s\" is not a size", optarg);
			break;
		case 'n':
			s->read_only = true;
			break;
		case 'q':
			s->quiet = true;
			break;
		case OPT_JSON:
			s->json_wanted = true;
			break;
		default:
			return FSCK_USAGE;
		}
	}
	return 0;
}

static int run(int argc, char **argv)
{
	static struct scrub s = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct pf_env *env = cli_env(PF_LOG_WARNING);
	struct pf_scrub_result result = { 0 };
	struct members m;
	int code = parse(&s, argc, argv);
	if (!code)
		code = cmd_members(&program, argc, argv, &m);
	if (code)
		return code;
	cli_catch_signals();
	cli_progress_init(&s.progress, !s.quiet);
	if (s.json_wanted) {
		json_init(&s.json, stdout);
		json_object(&s.json, NULL);
		json_array(&s.json, "damage");
	}
	int err = scrub(&s, &m, env, &result);
	members_free(&m);
	if (!err || err == -EINTR || s.json_wanted)
		print_summary(&s, err, &result);
	code = cli_fsck_exit(err);
	if (result.nr_errors)
		code |= FSCK_LEFT;
	return cli_finish_stdout() ? code : code | FSCK_FAILED;
}

const struct cmd cmd_scrub = { &program, run };
