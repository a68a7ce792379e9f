/* SPDX-License-Identifier: MIT
 * Every operation of posix.h while the n-th allocation fails, once or from then on: it succeeds, or reports the error and has changed
 * nothing; and then it works. Those that hand out a reference also where the table of references has to grow. */
#include "unit/intent_util.h"
#include "unit/nomem_disks.h"

#define REFS_BRINK 717u /* the next reference makes the table of MIN_CAP entries larger (object/refs.c) */

static uint64_t f, g, d, sub, link_, tmp, nr_refs;
static uint8_t *bytes;

static int create_file(void)
{
	struct pf_attr a;
	return pf_create(POOL, d, "new", 3, S_IFREG | 0600, user, 0, 0, &a);
}
static int create_dir(void)
{
	struct pf_attr a;
	return pf_create(POOL, d, "new", 3, S_IFDIR | 0700, user, 0, 0, &a);
}
static int create_device(void)
{
	struct pf_attr a;
	return pf_create(POOL, d, "new", 3, S_IFCHR | 0600, user, 5, 7, &a);
}
static int create_symlink(void)
{
	struct pf_attr a;
	return pf_symlink(POOL, d, "new", 3, "there", user, &a);
}
static int create_unnamed(void)
{
	struct pf_attr a;
	return pf_create_unnamed(POOL, d, 0600, user, &a);
}
static int link_file(void)
{
	return link_name(f, d, "second");
}
static int link_unnamed(void)
{
	return link_name(tmp, d, "second");
}
static int lookup(void)
{
	struct pf_attr a;
	return pf_lookup(POOL, d, "sub", 3, &a);
}
static int reference(void)
{
	struct pf_attr a;
	return pf_ref(POOL, g, &a);
}
static int unlink_file(void)
{
	return unlink_name(d, "g");
}
static int remove_dir(void)
{
	return rmdir_name(d, "sub");
}
static int move(void)
{
	return rename_name(PF_ROOT_INO, "f", d, "f", 0);
}
static int move_over(void)
{
	return rename_name(PF_ROOT_INO, "f", d, "g", 0);
}
static int exchange(void)
{
	return rename_name(PF_ROOT_INO, "f", d, "g", RENAME_EXCHANGE);
}
static int set(unsigned mask, const struct pf_attr *in)
{
	struct pf_attr out;
	return pf_setattr(POOL, f, mask, in, &out);
}
static int set_mode(void)
{
	return set(PF_ATTR_MODE | PF_ATTR_MTIME, &(struct pf_attr){ .mode = 0640, .mtime = { 5, 6 } });
}
static int set_owner(void)
{
	return set(PF_ATTR_UID | PF_ATTR_GID | PF_ATTR_KILL_SUIDGID, &(struct pf_attr){ .uid = 1, .gid = 2 });
}
static int shorten(void)
{
	return set(PF_ATTR_SIZE, &(struct pf_attr){ .size_bytes = 7777 });
}
static int lengthen(void)
{
	return set(PF_ATTR_SIZE, &(struct pf_attr){ .size_bytes = 777777 });
}
static int empty(void)
{
	return set(PF_ATTR_SIZE | PF_ATTR_MODE, &(struct pf_attr){ .size_bytes = 0, .mode = 0600 });
}
static int set_xattr(void)
{
	return pf_setxattr(POOL, f, "user.new", bytes, 40000, 0);
}
static int replace_xattr(void)
{
	return pf_setxattr(POOL, f, "user.old", bytes, 10, XATTR_REPLACE);
}
static int remove_xattr(void)
{
	return pf_removexattr(POOL, f, "user.old");
}
static int wrote(int64_t n, int64_t len)
{
	return n == len ? 0 : n < 0 ? (int)n : -ERANGE;
}
static int write_small(void)
{
	return wrote(pf_write(POOL, f, 5000, bytes, 9000, PF_WRITE_KILL_SUIDGID), 9000);
}
static int write_large(void)
{
	return wrote(pf_write(POOL, f, 100001, bytes, 300000, PF_WRITE_KILL_SUIDGID), 300000);
}
static int copy(void)
{
	return wrote(pf_copy_range(POOL, f, 100, g, 5000, 150000, 0), 150000);
}
static int allocate(void)
{
	return pf_fallocate(POOL, f, 0, 150000, 900000, 0);
}
static int punch(void)
{
	return pf_fallocate(POOL, f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, 120000, 0);
}
static int zero(void)
{
	return pf_fallocate(POOL, f, FALLOC_FL_ZERO_RANGE, 5000, 400000, 0);
}
static int sync_file(void)
{
	return pf_fsync(POOL, f);
}

static const struct op {
	const char *name;
	int (*run)(void);
	bool refers; /* hands out a reference */
} ops[] = {
	{ "create", create_file, true }, { "mkdir", create_dir, true }, { "mknod", create_device, true },
	{ "symlink", create_symlink, true }, { "unnamed", create_unnamed, true }, { "link", link_file, true },
	{ "link of an unnamed file", link_unnamed, true }, { "lookup", lookup, true }, { "ref", reference, true },
	{ "unlink", unlink_file, false }, { "rmdir", remove_dir, false }, { "rename", move, false },
	{ "rename over", move_over, false }, { "exchange", exchange, false }, { "chmod", set_mode, false },
	{ "chown", set_owner, false }, { "truncate", shorten, false }, { "lengthen", lengthen, false },
	{ "truncate to 0", empty, false }, { "setxattr", set_xattr, false }, { "replace xattr", replace_xattr, false },
	{ "removexattr", remove_xattr, false }, { "small write", write_small, false }, { "large write", write_large, false },
	{ "copy", copy, false }, { "fallocate", allocate, false }, { "punch", punch, false }, { "zero", zero, false },
	{ "fsync", sync_file, false },
};
#define NR_OPS (sizeof(ops) / sizeof(ops[0]))

static void populate(unsigned version, bool brink)
{
	struct simpool_config config = {
		.version = version, .nr_members = 1, .size_bytes = 24 * MIB, .cache_bytes = 4 * MIB, .seed = 1
	};
	struct pf_attr a;
	char name[32];
	begin_config(&config);
	bytes = pattern(1, 400000);
	f = make(PF_ROOT_INO, "f", S_IFREG | 06755);
	d = make_dir(PF_ROOT_INO, "d");
	g = make_file(d, "g");
	sub = make_dir(d, "sub");
	ck_ok(pf_symlink(POOL, d, "link", 4, "f", user, &a));
	link_ = a.ino;
	ck_ok(pf_create_unnamed(POOL, d, 0600, user, &a));
	tmp = a.ino;
	put(tmp, 0, bytes, 5000);
	put(f, 0, bytes, 200000);
	put(g, 3, bytes, 100000);
	ck_ok(pf_setxattr(POOL, f, "user.old", bytes, 3000, 0));
	for (nr_refs = 6; brink && nr_refs < REFS_BRINK; nr_refs++) {
		sprintf(name, "%ju", (uintmax_t)nr_refs);
		make_file(d, name);
	}
	ck_ok(pf_pool_sync(POOL));
	/* something staged, something that is not durable */
	put(f, 8192, bytes, 100);
	ck_ok(pf_setxattr(POOL, f, "security.capability", bytes, 20, 0));
	tick();
}

/* False: it has fewer allocations than that. */
static bool refuse(unsigned version, const struct op *op, bool brink, unsigned after, bool once, unsigned *nr_errors)
{
	populate(version, brink);
	struct pf_attr a;
	pf_forget(POOL, sub, 1); /* looking takes a reference, too */
	struct model *was = load();
	ck_ok(pf_ref(POOL, sub, &a));
	nomem_begin(after, once);
	int err = op->run();
	bool refused = nomem_end();
	ck_assert_msg(refused ? err == 0 || err == -ENOMEM || err == -EIO : err == 0, "%s, allocation %u: %s", op->name, after,
		      pf_strerror(err));
	if (err) {
		(*nr_errors)++;
		/* posix.h I2 */
		if (pf_getxattr(POOL, f, "security.capability", NULL, 0) == -ENODATA) {
			ck_assert(model_removexattr(was, f, "security.capability") == 0);
			model_slot(was, f)->inode->ctime = attr_of(f).ctime;
		}
		struct model *is = load();
		ck_same(was, is);
		model_free(is);
	}
	if (pf_fsync(POOL, PF_ROOT_INO)) {
		ck_assert_msg(sp->env.nr_messages[PF_LOG_ERROR] > 0, "%s: the pool gave up without a word", op->name);
		crash(ALL_KEPT);
	} else if (err) {
		ck_ok(op->run());
	}
	model_free(was);
	free(bytes);
	end();
	return refused;
}

START_TEST(each_operation)
{
	unsigned version = _i % 2 ? 6 : 5;
	bool brink = _i / 2;
	for (unsigned k = 0; k < NR_OPS; k++) {
		unsigned nr_errors = 0;
		if (brink && !ops[k].refers)
			continue;
		for (unsigned once = 0; once < 2; once++) {
			unsigned after = 0;
			while (refuse(version, &ops[k], brink, after, once, &nr_errors))
				after++;
		}
		if (brink)
			ck_assert_msg(nr_errors > 0, "%s never failed", ops[k].name);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix_nomem");
	TCase *tc = tcase_create("memory");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, each_operation, 0, 4);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
