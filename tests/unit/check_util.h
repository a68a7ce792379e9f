/* SPDX-License-Identifier: MIT
 *
 * Purpose: pools with something of everything in them, damaged on purpose, for the tests of check/.
 * Invariants: I1 What fsck says is compared as a set of ids: no more and no less than the damage.
 * Uses: unit/posix_util.h.
 */
#ifndef CHECK_UTIL_H
#define CHECK_UTIL_H

#include "unit/posix_util.h"

#define MAX_FOUND 512u

struct found {
	int err;
	unsigned nr;
	char ids[MAX_FOUND][8];
	char messages[MAX_FOUND][512];
	struct pf_check_result result;
	struct pf_diag diag;
};

static struct found last; /* of the last fsck() */
static bool only_safe;    /* as fsck -p: repair what needs no decision */

static inline bool found_problem(void *arg, const struct pf_problem_report *report)
{
	struct found *f = arg;
	if (f->nr < MAX_FOUND) {
		snprintf(f->ids[f->nr], sizeof(f->ids[0]), "%s", report->id);
		snprintf(f->messages[f->nr], sizeof(f->messages[0]), "%s", report->message);
	}
	f->nr++;
	if (getenv("CHECK_VERBOSE"))
		fprintf(stderr, "%s: %s\n", report->id, report->message);
	return !only_safe || report->repair == PF_REPAIR_AUTO;
}

static inline const struct found *fsck_with(struct pf_check_options options)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_check_sink sink = { .problem = found_problem, .arg = &last };
	memset(&last, 0, sizeof(last));
	simworld_open(sp->world, !options.repair, ios);
	last.err = pf_check(ios, simworld_nr_disks(sp->world), &options, &sp->env.env, &sink, &last.result, &last.diag);
	return &last;
}

static inline const struct found *fsck(bool repair)
{
	struct pf_check_options options = { .repair = repair };
	return fsck_with(options);
}

static inline bool has_id(const struct found *f, const char *id)
{
	for (unsigned i = 0; i < f->nr && i < MAX_FOUND; i++) {
		if (!strcmp(f->ids[i], id))
			return true;
	}
	return false;
}

static inline const char *all_messages(const struct found *f)
{
	static char text[16384];
	size_t at = 0;
	text[0] = 0;
	for (unsigned i = 0; i < f->nr && i < MAX_FOUND && at < sizeof(text) - 600; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "\n  %s %s", f->ids[i], f->messages[i]);
	return text;
}

/* Exactly the ids of @ids ("PF0501 PF0502"; "" for none) were found. */
static inline void ck_ids(const struct found *f, const char *ids)
{
	ck_assert_msg(!f->err, "fsck gives %s: %s", pf_strerror(f->err), f->diag.text);
	for (unsigned i = 0; i < f->nr && i < MAX_FOUND; i++)
		ck_assert_msg(strstr(ids, f->ids[i]) != NULL, "expected '%s', found:%s", ids, all_messages(f));
	for (const char *p = ids; *p; p += *p == ' ') {
		char id[8];
		size_t len = strcspn(p, " ");
		snprintf(id, sizeof(id), "%.*s", (int)len, p);
		ck_assert_msg(has_id(f, id), "%s is missing, found:%s", id, all_messages(f));
		p += len;
	}
}

/* fsck -n finds @ids; fsck -y repairs all of it; then nothing is found, and the pool can be used. */
static inline void ck_repaired(const char *ids)
{
	char why[1200] = "";
	ck_ids(fsck(false), ids);
	const struct found *f = fsck(true);
	ck_assert_msg(!f->err, "repair gives %s: %s", pf_strerror(f->err), f->diag.text);
	ck_assert_msg(!f->result.nr_left && f->result.nr_repaired == f->nr, "%ju left, %ju repaired of:%s",
		      (uintmax_t)f->result.nr_left, (uintmax_t)f->result.nr_repaired, all_messages(f));
	ck_ids(fsck(false), "");
	ck_assert_msg(!simpool_open(sp, false, why, sizeof(why)), "open: %s", why);
	make_file(PF_ROOT_INO, "made after the repair");
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	ck_ids(fsck(false), "");
}

/* fsck finds @ids, and can do nothing about it. */
static inline void ck_left(const char *ids)
{
	ck_ids(fsck(false), ids);
	const struct found *f = fsck(true);
	ck_assert_msg(!f->err, "repair gives %s: %s", pf_strerror(f->err), f->diag.text);
	ck_assert_uint_gt(f->result.nr_left, 0);
	ck_ids(fsck(false), ids);
}

/* -- content ----------------------------------------------------------------------------------------------------- */
struct content {
	uint64_t file, big, sparse, dir, sub, deep, link, longlink;
};
static struct content in;

static inline void put_pattern(uint64_t ino, uint64_t off, size_t len)
{
	uint8_t *bytes = pattern(ino, len);
	put(ino, off, bytes, len);
	free(bytes);
}

static inline uint64_t make_link(uint64_t dir, const char *name, const char *target)
{
	struct pf_attr a;
	ck_ok(pf_symlink(POOL, dir, name, strlen(name), target, user, &a));
	return a.ino;
}

/* Something of everything, durable; the pool is closed afterwards. */
static inline void populate(void)
{
	char why[1200] = "", target[4001], value[9000];
	memset(target, 'x', 4000);
	target[4000] = 0;
	memset(value, 'v', sizeof(value));
	in.file = make_file(PF_ROOT_INO, "file");
	put_pattern(in.file, 0, 3 * MIB + 100);
	ck_ok(pf_setxattr(POOL, in.file, "user.small", "1", 1, 0));
	ck_ok(pf_setxattr(POOL, in.file, "user.large", value, sizeof(value), 0));
	in.big = make_file(PF_ROOT_INO, "big");
	for (unsigned i = 0; i < 8; i++)
		put_pattern(in.big, i * MIB, MIB);
	in.sparse = make_file(PF_ROOT_INO, "sparse");
	put_pattern(in.sparse, 64 * KIB, 4096);
	ck_ok(pf_fallocate(POOL, in.sparse, FALLOC_FL_KEEP_SIZE, 128 * KIB, 64 * KIB, 0));
	in.dir = make_dir(PF_ROOT_INO, "dir");
	in.sub = make_dir(in.dir, "sub");
	in.deep = make_file(in.sub, "deep");
	put_pattern(in.deep, 0, 8192);
	ck_ok(link_name(in.deep, PF_ROOT_INO, "hard"));
	in.link = make_link(in.dir, "short", "sub/deep");
	in.longlink = make_link(in.dir, "long", target);
	for (unsigned i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%u", i);
		uint64_t ino = make_file(in.sub, name);
		if (i % 4 == 0)
			put_pattern(ino, 0, 1000);
	}
	ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
}

static inline void setup_populated_version(unsigned version, unsigned nr_members)
{
	setup_with(version, nr_members, 32 * MIB);
	populate();
}

static inline void setup_populated(void)
{
	setup_populated_version(PF_VERSION_DEFAULT, 2);
}

static inline void teardown_world(void)
{
	char why[1200] = "";
	if (sp->pool)
		ck_assert_msg(!simpool_close(sp, why, sizeof(why)), "close: %s", why);
	simpool_free(sp);
}

#endif
