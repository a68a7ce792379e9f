/* SPDX-License-Identifier: MIT
 * From some members, or a name, to all members of a pool; and what is the same thing under two names. */
#include "member/complete.h"
#include "member/same.h"
#include "set_util.h"
#include "unit/run_suite.h"

#include <sys/stat.h>
#include <unistd.h>

static char top[32], near_dir[64], far_dir[64]; /* two directories below the first */
static struct pf_complete all;

/* A path below the scratch directory; eight of them may be in use at the same time. */
static const char *at(const char *name)
{
	static char paths[8][96];
	static unsigned next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", top, name);
	return path;
}

static void save(struct simworld *w, unsigned id, const char *name)
{
	ck_assert_int_eq(simdisk_save(simworld_disk(w, id), at(name)), 0);
}

static void make_files(void)
{
	setup();
	strcpy(top, "/tmp/test_complete.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	strcpy(near_dir, at("near"));
	strcpy(far_dir, at("far"));
	ck_assert_int_eq(mkdir(near_dir, 0700), 0);
	ck_assert_int_eq(mkdir(far_dir, 0700), 0);
	save(world, 0, "near/a.img");
	save(world, 1, "near/b.img");
	save(world, 2, "near/c.img");
	all = (struct pf_complete){ 0 };
}

static void forget(void)
{
	for (unsigned i = 0; i < all.nr; i++)
		free(all.paths[i]);
	all = (struct pf_complete){ 0 };
}

static void remove_files(void)
{
	char command[64];
	forget();
	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
	teardown();
}

/* Names @name, beside what was named before. */
static void name(const char *path)
{
	all.paths[all.nr++] = strdup(path);
}

static int complete(void)
{
	memset(&diag, 0, sizeof(diag));
	return pf_complete_members(&all, &env, &diag);
}

/* Afresh: from one member. */
static int complete_from(const char *member, const char *const *search, unsigned nr_search)
{
	forget();
	name(at(member));
	all.search = search;
	all.nr_search = nr_search;
	return complete();
}

/* From the pool's name. */
static int complete_pool(const char *pool, const char *const *search, unsigned nr_search)
{
	forget();
	all.pool = pool;
	all.search = search;
	all.nr_search = nr_search;
	return complete();
}

/* It was found, wherever in the order. */
static bool has(const char *path)
{
	for (unsigned i = 0; i < all.nr; i++) {
		if (strcmp(all.paths[i], path) == 0)
			return true;
	}
	return false;
}

static void ck_members(const char *a, const char *b, const char *c)
{
	const char *const wanted[] = { a, b, c };
	unsigned nr = 0;
	for (unsigned i = 0; i < 3; i++) {
		if (!wanted[i])
			continue;
		ck_assert_msg(has(at(wanted[i])), "%s was not found", wanted[i]);
		nr++;
	}
	ck_assert_uint_eq(all.nr, nr);
}

START_TEST(beside)
{
	name(at("near/b.img"));
	ck_assert_int_eq(complete(), 0);
	ck_members("near/a.img", "near/b.img", "near/c.img");
	ck_assert_str_eq(all.paths[0], at("near/b.img"));
	ck_assert_uint_eq(all.nr_members, NR);
	/* by a link from elsewhere: the others lie where it leads to; the link stays as it was named */
	forget();
	ck_assert_int_eq(symlink(at("near/c.img"), at("far/link")), 0);
	name(at("far/link"));
	ck_assert_int_eq(complete(), 0);
	ck_members("near/a.img", "near/b.img", "far/link");
	/* and by links that lie together */
	forget();
	ck_assert_int_eq(rename(at("near/a.img"), at("a.img")), 0);
	ck_assert_int_eq(symlink(at("a.img"), at("far/a")), 0);
	name(at("far/link"));
	ck_assert_int_eq(complete(), 0);
	ck_members("far/a", "near/b.img", "far/link");
}
END_TEST

START_TEST(without_a_directory)
{
	ck_assert_int_eq(chdir(at("near")), 0);
	name("a.img");
	ck_assert_int_eq(complete(), 0);
	ck_assert_uint_eq(all.nr, NR);
	ck_assert(has("a.img") && has("./b.img") && has("./c.img"));
	ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

START_TEST(complete_is_not_searched_for)
{
	save(world, 0, "near/copy.img");
	name(at("near/c.img"));
	name(at("near/copy.img"));
	name(at("near/b.img"));
	all.search = (const char *const[]){ "/nonexistent" };
	all.nr_search = 1;
	ck_assert_int_eq(complete(), 0);
	ck_assert_uint_eq(all.nr, NR);
	ck_assert_str_eq(all.paths[1], at("near/copy.img"));
}
END_TEST

START_TEST(directories_to_search)
{
	const char *const search[] = { far_dir };
	ck_assert_int_eq(rename(at("near/c.img"), at("far/c.img")), 0);
	name(at("near/a.img"));
	ck_assert_int_eq(complete(), 0);
	ck_members("near/a.img", "near/b.img", NULL); /* what is missing is not an error here */
	ck_assert_uint_eq(all.nr_members, NR);
	ck_assert_int_eq(complete_from("near/a.img", search, 1), 0);
	ck_members("near/a.img", "near/b.img", "far/c.img");
	ck_assert_int_eq(rename(at("far"), at("away")), 0);
	ck_assert_int_eq(complete_from("near/a.img", search, 1), -ENOENT);
	ck_assert_ptr_nonnull(strstr(diag.text, "cannot be searched"));
	ck_assert_uint_eq(all.nr, 1); /* what was named is still the caller's */
}
END_TEST

START_TEST(several_of_one_member)
{
	const char *const search[] = { far_dir };
	/* just as new: a question */
	save(world, 1, "near/copy.img");
	name(at("near/a.img"));
	ck_assert_int_eq(complete(), -PF_EMEMBER_TWICE);
	ck_assert_ptr_nonnull(strstr(diag.text, at("near/b.img")));
	ck_assert_ptr_nonnull(strstr(diag.text, at("near/copy.img")));
	ck_assert_ptr_nonnull(strstr(diag.text, "both member 2"));
	ck_assert_uint_eq(all.nr, 1);
	/* older than the other: a backup, and a third one that is newer answers the question */
	checkpoint(world, 7, 7);
	save(world, 1, "near/now.img");
	forget();
	name(at("near/a.img"));
	ck_assert_int_eq(complete(), 0);
	ck_members("near/a.img", "near/now.img", "near/c.img");
	/* what lies nearer wins, whatever its age: a whole pool may have been copied */
	ck_assert_int_eq(rename(at("near/now.img"), at("far/b.img")), 0);
	ck_assert_int_eq(unlink(at("near/copy.img")), 0);
	ck_assert_int_eq(rename(at("near/c.img"), at("far/c.img")), 0);
	ck_assert_int_eq(complete_from("near/a.img", search, 1), 0);
	ck_members("near/a.img", "near/b.img", "far/c.img");
	/* two names of one file are no question */
	ck_assert_int_eq(link(at("near/b.img"), at("near/hard.img")), 0);
	ck_assert_int_eq(complete_from("near/a.img", search, 1), 0);
	ck_members("near/a.img", "near/b.img", "far/c.img");
}
END_TEST

START_TEST(named_wrongly)
{
	/* twice: as it was spelled */
	char hard[64];
	snprintf(hard, sizeof(hard), "%s/near/../near/hard.img", top);
	ck_assert_int_eq(link(at("near/a.img"), at("near/hard.img")), 0);
	name(at("near/a.img"));
	name(hard);
	ck_assert_int_eq(complete(), -PF_EMEMBER_TWICE);
	ck_assert_ptr_nonnull(strstr(diag.text, hard));
	ck_assert_ptr_nonnull(strstr(diag.text, at("near/a.img")));
	/* what opening them will refuse is left to it: nothing is added */
	forget();
	name(at("near/a.img"));
	name(at("near/none.img"));
	ck_assert_int_eq(complete(), 0);
	ck_assert_uint_eq(all.nr, 2);
	struct simworld *foreign = make_pool(0xb6);
	save(foreign, 1, "far/foreign.img");
	simworld_free(foreign);
	forget();
	name(at("near/a.img"));
	name(at("far/foreign.img"));
	ck_assert_int_eq(complete(), 0);
	ck_assert_uint_eq(all.nr, 2);
	save(world, 0, "far/copy.img");
	forget();
	name(at("near/a.img"));
	name(at("far/copy.img"));
	ck_assert_int_eq(complete(), 0);
	ck_assert_uint_eq(all.nr, 2);
	forget();
	ck_assert_int_eq(complete(), 0);
	ck_assert_uint_eq(all.nr, 0);
}
END_TEST

START_TEST(by_name)
{
	const char *const search[] = { near_dir, far_dir };
	static const char *const names[] = { "complete-test", "A5A5A5A5-a5a5-a5a5-a5a5-a5a5a5a5a5a5" };
	/* a label that no pool on this machine has */
	strcpy(cur.label, "complete-test");
	checkpoint(world, 7, 7);
	save(world, 0, "near/a.img");
	save(world, 1, "near/b.img");
	save(world, 2, "far/c.img");
	ck_assert_int_eq(unlink(at("near/c.img")), 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(complete_pool(names[i], search, 2), 0);
		ck_members("near/a.img", "near/b.img", "far/c.img");
		/* from one directory to what lies beside a link there */
		ck_assert_int_eq(complete_pool(names[i], search + 1, 1), 0);
		ck_members(NULL, NULL, "far/c.img");
		ck_assert_uint_eq(all.nr_members, NR);
	}
	ck_assert_int_eq(complete_pool("complete-test-none", search, 2), 0);
	ck_assert_uint_eq(all.nr, 0);

	/* a second pool of that label */
	struct simworld *foreign = make_pool(0xb6);
	strcpy(cur.label, "complete-test");
	checkpoint(foreign, 7, 7);
	save(foreign, 1, "far/foreign.img");
	simworld_free(foreign);
	ck_assert_int_eq(complete_pool("complete-test", search, 2), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "two pools have the label 'complete-test'"));
	ck_assert_ptr_nonnull(strstr(diag.text, "b6b6b6b6-"));
	ck_assert_uint_eq(all.nr, 0);
}
END_TEST

START_TEST(same_things)
{
	ck_assert_int_eq(symlink("a.img", at("near/link")), 0);
	ck_assert(pf_same_thing(at("near/a.img"), at("near/link")));
	ck_assert(pf_same_thing("/dev/null", "/dev/../dev/null"));
	ck_assert(!pf_same_thing(at("near/a.img"), at("near/b.img")));
	ck_assert(!pf_same_thing(at("near/none"), at("near/none")));
	const char *const paths[] = { at("near/a.img"), at("near/b.img"), at("near/none"), at("near/link") };
	memset(&diag, 0, sizeof(diag));
	ck_assert_int_eq(pf_same_check(paths, 3, &diag), 0);
	ck_assert_int_eq(pf_same_check(paths, 0, &diag), 0);
	ck_assert_str_eq(diag.text, "");
	ck_assert_int_eq(pf_same_check(paths, 4, &diag), -PF_EMEMBER_TWICE);
	ck_assert_ptr_nonnull(strstr(diag.text, paths[0]));
	ck_assert_ptr_nonnull(strstr(diag.text, paths[3]));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("complete");
	TCase *tc = tcase_create("files");
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, make_files, remove_files);
	suite_add_tcase(s, tc);
	tcase_add_test(tc, beside);
	tcase_add_test(tc, without_a_directory);
	tcase_add_test(tc, complete_is_not_searched_for);
	tcase_add_test(tc, directories_to_search);
	tcase_add_test(tc, several_of_one_member);
	tcase_add_test(tc, named_wrongly);
	tcase_add_test(tc, by_name);
	tcase_add_test(tc, same_things);
	return run_suite(s);
}
