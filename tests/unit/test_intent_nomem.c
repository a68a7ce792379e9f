/* SPDX-License-Identifier: MIT
 * A pool with a log without memory: the n-th allocation of an operation, of an fsync, of a mount that redoes the log fails, once or
 * from then on. It succeeds or says so and has changed nothing; what was synced is there afterwards. The linker leads the
 * allocations here (tests/local.mk). */
#include "unit/intent_util.h"
#include "unit/nomem_disks.h"

/* -- operations ----------------------------------------------------------------------------------------------------- */
static uint64_t f, d;
static uint8_t *bytes;

static int one_write(void)
{
	int64_t n = pf_write(POOL, f, 5000, bytes, 9000, 0);
	return n == 9000 ? 0 : (int)n;
}
static int long_write(void)
{
	int64_t n = pf_write(POOL, f, 100000, bytes, 700000, 0);
	return n == 700000 ? 0 : (int)n;
}
static int sync_file(void)
{
	return pf_fsync(POOL, f);
}
static int sync_dir(void)
{
	return pf_fsync(POOL, d);
}
static int shorten(void)
{
	return truncate_to(f, 7777);
}
static int empty(void)
{
	return truncate_to(f, 0);
}
static int punch(void)
{
	return pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, 20000, 0);
}
static int create(void)
{
	struct pf_attr a;
	return pf_create(POOL, d, "new", 3, S_IFREG | 0600, user, 0, 0, &a);
}
static int move(void)
{
	return rename_name(PF_ROOT_INO, "f", d, "g", 0);
}
static int move_back(void)
{
	return rename_name(d, "g", PF_ROOT_INO, "f", 0);
}
static int link_it(void)
{
	return link_name(f, d, "second");
}
static int unlink_it(void)
{
	return unlink_name(d, "new");
}
static int set_mode(void)
{
	struct pf_attr in = { .mode = 0640 };
	return pf_setattr(POOL, f, PF_ATTR_MODE, &in, NULL);
}
static int set_xattr(void)
{
	return pf_setxattr(POOL, f, "user.x", bytes, 40000, 0);
}
static int remove_xattr(void)
{
	return pf_removexattr(POOL, f, "user.x");
}
static int sync_all(void)
{
	return pf_pool_sync(POOL);
}

static const struct step {
	const char *name;
	int (*run)(void);
	bool syncs; /* the names and f */
} steps[] = {
	{ "write", one_write, false },	   { "fsync", sync_file, true },       { "create", create, false },
	{ "long write", long_write, false }, { "fsync", sync_file, true },	       { "chmod", set_mode, false },
	{ "setxattr", set_xattr, false },  { "write", one_write, false },      { "rename", move, false },
	{ "fsync dir", sync_dir, true },   { "punch", punch, false },	       { "link", link_it, false },
	{ "fsync", sync_file, true },	   { "removexattr", remove_xattr, false }, { "unlink", unlink_it, false },
	{ "truncate", shorten, false },	   { "rename", move_back, false },     { "truncate to 0", empty, false },
	{ "write", one_write, false },	   { "fsync", sync_file, true },       { "write", one_write, false },
	{ "sync", sync_all, true },
};
#define NR_STEPS (sizeof(steps) / sizeof(steps[0]))

static void run_to(int scene, unsigned end)
{
	begin_with(scene & TWO_MEMBERS ? 2 : 1, 32 * MIB, 4 * MIB);
	bytes = pattern(1, 700000);
	f = make_file(PF_ROOT_INO, "f");
	d = make_dir(PF_ROOT_INO, "d");
	for (unsigned k = 0; k < end; k++) {
		tick();
		int err = steps[k].run();
		ck_assert_msg(err == 0, "%s: %s", steps[k].name, pf_strerror(err));
	}
	tick();
}

/* Something was refused: then every step from here on works, or the pool has given up, which it says. */
static void goes_on(int scene, const struct step *s, int err, struct model *was)
{
	struct model *is = load();
	if (err)
		ck_same(was, is);
	model_free(is);
	bool given_up = pf_fsync(POOL, PF_ROOT_INO) == -EIO;
	if (!given_up) {
		if (err)
			ck_ok(s->run());
		ck_ok(pf_fsync(POOL, f));
		crash_and_compare(scene);
		end();
		return;
	}
	ck_assert_msg(sp->env.nr_messages[PF_LOG_ERROR] > 0, "%s: the pool gave up without a word", s->name);
	crash(scene);
	ck_assert_uint_eq(look(PF_ROOT_INO, "d"), d);
	end();
}

/* Of one step. False: it has fewer allocations than that. */
static bool refuse(int scene, unsigned nr, unsigned after, bool once)
{
	const struct step *s = &steps[nr];
	run_to(scene, nr);
	struct model *was = load();
	nomem_begin(after, once);
	int err = s->run();
	bool refused_one = nomem_end();
	ck_assert_msg(refused_one ? err == 0 || err == -ENOMEM || err == -EIO : err == 0, "%s, allocation %u: %s", s->name, after,
		      pf_strerror(err));
	if (refused_one && !err && s->syncs) {
		crash_and_compare(ONE_MEMBER); /* what is not flushed is lost */
		end();
	} else if (refused_one) {
		goes_on(scene, s, err, was);
	} else {
		end();
	}
	model_free(was);
	free(bytes);
	return refused_one;
}

START_TEST(each_operation)
{
	unsigned nr_refused = 0;
	for (unsigned nr = 0; nr < NR_STEPS; nr++) {
		for (unsigned once = 0; once < 2; once++) {
			unsigned after = 0;
			while (refuse(_i, nr, after, once))
				after++;
			nr_refused += after;
		}
	}
	ck_assert_uint_gt(nr_refused, 100);
}
END_TEST

START_TEST(mounts)
{
	for (unsigned read_only = 0; read_only < 2; read_only++) {
		for (unsigned once = 0; once < 2; once++) {
			unsigned nr_failed = 0;
			bool more = true;
			for (unsigned after = 0; more; after++) {
				char why[1200] = "";
				run_to(_i, NR_STEPS - 2);
				struct model *was = load();
				power_cut(_i & ALL_KEPT);
				nomem_begin(after, once);
				int err = simpool_open(sp, read_only, why, sizeof(why));
				more = nomem_end();
				ck_assert_msg(!err || more, "%s", why);
				nr_failed += err != 0;
				if (err || read_only) {
					simpool_abandon(sp);
					power_cut(_i & ALL_KEPT);
					open_again(false);
				}
				ck_still(was);
				model_free(was);
				free(bytes);
				end();
			}
			ck_assert_uint_gt(nr_failed, 10);
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("intent_nomem");
	TCase *tc = tcase_create("memory");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, each_operation, ONE_MEMBER, TWO_MEMBERS + 1);
	tcase_add_loop_test(tc, mounts, ONE_MEMBER, TWO_MEMBERS + 1);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
