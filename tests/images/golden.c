/* SPDX-License-Identifier: MIT
 *
 * Golden images: a small pool of each released format version, made once and kept compressed in tests/images/released. Whatever
 * becomes of the code, they must open, check clean and hold what they were given. Of a version with an intent log there is one more,
 * as a crash left it: what it was given last is in the log only.
 *
 *	golden make VERSION MEMBER...   makes the pool on empty image files (run once, when a version is released)
 *	golden crash VERSION MEMBER...  makes the one with the log
 *	golden check MEMBER...          compares everything, then changes and removes it all
 *	golden replay MEMBER...         the same with the log, which has still to be redone
 *	golden replayed MEMBER...       the same when it has been (by fsck)
 */
#include "model/testenv.h"
#include "poolfs.h"

#include <dirent.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct pf_pool *pool;
static struct test_env env;
static uint8_t want[2 << 20], got[(2 << 20) + 8192] __attribute__((aligned(4096)));
static const struct pf_cred cred = { 1000, 100 };

#define CHECK(cond)                                                                                                    \
	do {                                                                                                           \
		if (!(cond)) {                                                                                         \
			fprintf(stderr, "golden.c:%d: %s does not hold (%s)\n", __LINE__, #cond, env.last_error);      \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static char long_name[PF_MAX_NAME_BYTES + 1], long_target[PF_MAX_SYMLINK_BYTES + 1];
static uint8_t xattr_value[PF_MAX_XATTR_BYTES];

/* Content that compresses well and still says where it belongs. */
static void pattern(uint8_t *buf, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(seed + i / 512);
}

static const struct {
	const char *name;
	size_t len;
} files[] = { { "empty", 0 }, { "one", 1 }, { "block", 4096 }, { "odd", 5000 }, { "large", 300001 }, { "larger", 1500000 } };
#define NR_FILES (sizeof(files) / sizeof(files[0]))

static void init(void)
{
	test_env_init(&env, 4711);
	memset(long_name, 'n', PF_MAX_NAME_BYTES);
	memset(long_target, 't', PF_MAX_SYMLINK_BYTES);
	pattern(xattr_value, sizeof(xattr_value), 3);
}

static uint64_t create(uint64_t dir, const char *name, uint32_t mode)
{
	struct pf_attr a;
	CHECK(pf_create(pool, dir, name, strlen(name), mode, cred, 7, 8, &a) == 0);
	return a.ino;
}

static void write_pattern(uint64_t ino, uint64_t off, size_t len, unsigned seed)
{
	pattern(want, len, seed);
	CHECK(pf_write(pool, ino, off, want, len, 0) == (int64_t)len);
}

static uint64_t create_filled(uint64_t dir, const char *name, size_t len, unsigned seed)
{
	uint64_t f = create(dir, name, S_IFREG | 0640);
	write_pattern(f, 0, len, seed);
	return f;
}

static void open_pool(char **paths, int nr, bool read_only)
{
	struct pf_pool_options options = { .read_only = read_only, .cache_bytes = 8 << 20, .discard = PF_DISCARD_ALL };
	struct pf_diag diag = { "" };
	int err = pf_pool_open((const char *const *)paths, (unsigned)nr, &options, &env.env, &pool, &diag);
	if (err)
		fprintf(stderr, "%s\n", diag.text);
	CHECK(err == 0);
}

static void mkfs(unsigned version, char **paths, int nr)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_diag diag = { "" };
	struct pf_mkfs_options options = { .version = version, .label = "golden" };
	for (int i = 0; i < nr; i++)
		CHECK(pf_io_open(paths[i], PF_IO_OPEN_WRITE, 0, &env.env, &ios[i], &diag) == 0);
	CHECK(pf_pool_create(ios, (unsigned)nr, &options, &env.env, false, NULL, &diag) == 0);
}

/* Something that is deleted, and with reclamation discarded. */
static void make_and_discard(void)
{
	pf_forget(pool, create_filled(PF_ROOT_INO, "gone", 1 << 20, 77), 1);
	CHECK(pf_pool_sync(pool) == 0);
	CHECK(pf_unlink(pool, PF_ROOT_INO, "gone", 4) == 0);
	CHECK(pf_pool_sync(pool) == 0);
	int more;
	do
		more = pf_pool_step(pool, false);
	while (more > 0);
	CHECK(more == 0);
}

static void make(unsigned version, char **paths, int nr)
{
	struct pf_attr a;
	mkfs(version, paths, nr);
	open_pool(paths, nr, false);
	make_and_discard();
	uint64_t dir = create(PF_ROOT_INO, "dir", S_IFDIR | 02775);
	for (size_t i = 0; i < NR_FILES; i++)
		pf_forget(pool, create_filled(dir, files[i].name, files[i].len, (unsigned)i), 1);
	uint64_t sparse = create(dir, "sparse", S_IFREG | 0600);
	CHECK(pf_write(pool, sparse, UINT64_C(1) << 50, "far", 3, 0) == 3);
	CHECK(pf_fallocate(pool, sparse, FALLOC_FL_KEEP_SIZE, 0, 40960, 0) == 0);
	uint64_t x = create(PF_ROOT_INO, long_name, S_IFREG | 04755);
	CHECK(pf_setxattr(pool, x, "user.small", "value", 5, 0) == 0);
	CHECK(pf_setxattr(pool, x, "user.large", xattr_value, sizeof(xattr_value), 0) == 0);
	CHECK(pf_link(pool, x, dir, "hard", 4, &a) == 0);
	CHECK(pf_symlink(pool, dir, "link", 4, long_target, cred, &a) == 0);
	create(dir, "fifo", S_IFIFO | 0600);
	create(dir, "device", S_IFCHR | 0600);
	struct pf_attr times = { .mtime = { -1234567890, 123456789 }, .atime = { 9876543210, 1 } };
	CHECK(pf_setattr(pool, x, PF_ATTR_MTIME | PF_ATTR_ATIME, &times, NULL) == 0);
	for (unsigned i = 0; i < 300; i++) {
		char name[32];
		sprintf(name, "many-%u", i);
		create(PF_ROOT_INO, name, S_IFREG | 0644);
	}
	CHECK(pf_unlink(pool, PF_ROOT_INO, "many-7", 6) == 0);
	CHECK(pf_pool_sync(pool) == 0);
	CHECK(pf_pool_close(pool) == 0);
}

/* -- what is in the log only ------------------------------------------------------------------------------------------ */
static void log_data(uint64_t dir, uint64_t changed)
{
	struct pf_attr size = { .size_bytes = 65000 };
	for (size_t i = 0; i < NR_FILES; i++)
		CHECK(pf_fsync(pool, create_filled(dir, files[i].name, files[i].len, (unsigned)i)) == 0);
	write_pattern(changed, 8000, 5000, 8);
	CHECK(pf_fsync(pool, changed) == 0); /* its blocks are free again with the next one */
	write_pattern(changed, 8000, 5000, 9);
	CHECK(pf_fallocate(pool, changed, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20480, 8192, 0) == 0);
	CHECK(pf_fallocate(pool, changed, FALLOC_FL_ZERO_RANGE, 40960, 8192, 0) == 0);
	CHECK(pf_setattr(pool, changed, PF_ATTR_SIZE, &size, NULL) == 0);
	CHECK(pf_fallocate(pool, changed, FALLOC_FL_KEEP_SIZE, 1 << 20, 4096, 0) == 0);
	CHECK(pf_fsync(pool, changed) == 0);
}

static void log_names(uint64_t dir)
{
	struct pf_attr a;
	uint64_t inner = create(dir, "inner", S_IFDIR | 0700);
	CHECK(pf_symlink(pool, inner, "link", 4, long_target, cred, &a) == 0);
	create(inner, "fifo", S_IFIFO | 0600);
	create(inner, "device", S_IFCHR | 0600);
	uint64_t x = create(PF_ROOT_INO, long_name, S_IFREG | 0644);
	CHECK(pf_link(pool, x, inner, "hard", 4, &a) == 0);
	CHECK(pf_setxattr(pool, x, "user.small", "value", 5, 0) == 0);
	CHECK(pf_setxattr(pool, x, "user.large", xattr_value, sizeof(xattr_value), 0) == 0);
	CHECK(pf_setxattr(pool, x, "user.removed", "value", 5, 0) == 0);
	CHECK(pf_removexattr(pool, x, "user.removed") == 0);
	struct pf_attr in = { .mode = 04755, .uid = 5, .gid = 6, .mtime = { -1234567890, 123456789 }, .atime = { 9876543210, 1 } };
	CHECK(pf_setattr(pool, x, PF_ATTR_MODE | PF_ATTR_UID | PF_ATTR_GID, &in, NULL) == 0);
	CHECK(pf_setattr(pool, x, PF_ATTR_MODE | PF_ATTR_MTIME | PF_ATTR_ATIME, &in, NULL) == 0);
	create_filled(dir, "new", 5000, 11); /* renamed before anybody synced it */
	CHECK(pf_rename(pool, dir, "new", 3, PF_ROOT_INO, "replaced", 8, 0, (struct pf_cred){ 0 }) == 0);
	CHECK(pf_rename(pool, PF_ROOT_INO, "left", 4, PF_ROOT_INO, "right", 5, RENAME_EXCHANGE, (struct pf_cred){ 0 }) == 0);
	CHECK(pf_unlink(pool, PF_ROOT_INO, "removed", 7) == 0);
	CHECK(pf_rmdir(pool, PF_ROOT_INO, "removed-dir", 11) == 0);
	CHECK(pf_create_unnamed(pool, PF_ROOT_INO, S_IFREG | 0600, cred, &a) == 0);
	write_pattern(a.ino, 0, 9000, 12);
	CHECK(pf_link(pool, a.ino, PF_ROOT_INO, "named", 5, &a) == 0);
	CHECK(pf_create_unnamed(pool, PF_ROOT_INO, S_IFREG | 0600, cred, &a) == 0); /* gets no name: an orphan */
}

static void make_crashed(unsigned version, char **paths, int nr)
{
	mkfs(version, paths, nr);
	open_pool(paths, nr, false);
	uint64_t dir = create(PF_ROOT_INO, "dir", S_IFDIR | 02775);
	uint64_t changed = create_filled(PF_ROOT_INO, "changed", 70000, 1);
	create_filled(PF_ROOT_INO, "left", 100, 2);
	create_filled(PF_ROOT_INO, "right", 200, 3);
	create_filled(PF_ROOT_INO, "replaced", 6000, 4);
	create_filled(PF_ROOT_INO, "removed", 7000, 5);
	create(PF_ROOT_INO, "removed-dir", S_IFDIR | 0755);
	CHECK(pf_pool_sync(pool) == 0);
	log_data(dir, changed);
	log_names(dir);
	CHECK(pf_fsync(pool, dir) == 0);
	create(PF_ROOT_INO, "not-synced", S_IFREG | 0644);
	pf_pool_abandon(pool);
}

/* -- comparing -------------------------------------------------------------------------------------------------------- */
static uint64_t look(uint64_t dir, const char *name, struct pf_attr *a)
{
	CHECK(pf_lookup(pool, dir, name, strlen(name), a) == 0);
	return a->ino;
}

/* The file holds @len bytes of want. */
static void compare_bytes(uint64_t ino, size_t len)
{
	CHECK(pf_read(pool, ino, 0, got, 2 << 20) == (int64_t)len);
	CHECK(!memcmp(got, want, len));
}

static void compare_pattern(uint64_t dir, const char *name, size_t len, unsigned seed)
{
	struct pf_attr a;
	uint64_t f = look(dir, name, &a);
	CHECK(a.size_bytes == len);
	pattern(want, len, seed);
	compare_bytes(f, len);
}

static uint64_t compare_dir(void)
{
	struct pf_attr a;
	uint64_t dir = look(PF_ROOT_INO, "dir", &a);
	CHECK(a.mode == (S_IFDIR | 02775) && a.uid == cred.uid && a.gid == cred.gid);
	for (size_t i = 0; i < NR_FILES; i++) {
		compare_pattern(dir, files[i].name, files[i].len, (unsigned)i);
		look(dir, files[i].name, &a);
		CHECK(a.mode == (S_IFREG | 0640));
	}
	return dir;
}

/* What both pools have: the file of the long name, with attributes; in @dir another name of it, a symbolic link and a device. */
static void compare_special(uint64_t dir)
{
	struct pf_attr a;
	uint64_t x = look(PF_ROOT_INO, long_name, &a);
	CHECK(a.nlink == 2 && a.mode == (S_IFREG | 04755) && a.mtime.tv_sec == -1234567890 && a.mtime.tv_nsec == 123456789 &&
	      a.atime.tv_sec == 9876543210);
	CHECK(look(dir, "hard", &a) == x);
	CHECK(pf_getxattr(pool, x, "user.small", got, 100) == 5 && !memcmp(got, "value", 5));
	CHECK(pf_getxattr(pool, x, "user.large", got, sizeof(got)) == (int64_t)sizeof(xattr_value));
	CHECK(!memcmp(got, xattr_value, sizeof(xattr_value)));
	uint64_t l = look(dir, "link", &a);
	CHECK(pf_readlink(pool, l, (char *)got, 4096) == PF_MAX_SYMLINK_BYTES && !strcmp((char *)got, long_target));
	look(dir, "fifo", &a);
	CHECK(S_ISFIFO(a.mode));
	look(dir, "device", &a);
	CHECK(S_ISCHR(a.mode) && a.rdev_major == 7 && a.rdev_minor == 8);
}

static void compare(void)
{
	struct pf_attr a;
	uint64_t dir = compare_dir();
	look(PF_ROOT_INO, "dir", &a);
	CHECK(a.nlink == 2);
	compare_special(dir);
	uint64_t sparse = look(dir, "sparse", &a);
	CHECK(a.size_bytes == (UINT64_C(1) << 50) + 3 && a.blocks == 11);
	CHECK(pf_read(pool, sparse, UINT64_C(1) << 50, got, 4096) == 3 && !memcmp(got, "far", 3));
	memset(want, 0, 40960);
	CHECK(pf_read(pool, sparse, 0, got, 40960) == 40960 && !memcmp(got, want, 40960));
	look(PF_ROOT_INO, "many-299", &a);
	CHECK(pf_lookup(pool, PF_ROOT_INO, "many-7", 6, &a) == -ENOENT);
}

static void compare_crashed(void)
{
	struct pf_attr a;
	uint64_t dir = compare_dir(), inner = look(dir, "inner", &a);
	look(PF_ROOT_INO, "dir", &a);
	CHECK(a.nlink == 3);
	compare_special(inner);
	uint64_t x = look(PF_ROOT_INO, long_name, &a);
	CHECK(a.uid == 5 && a.gid == 6);
	CHECK(pf_getxattr(pool, x, "user.removed", got, 100) == -ENODATA);

	uint64_t changed = look(PF_ROOT_INO, "changed", &a);
	CHECK(a.size_bytes == 65000 && a.blocks == 16 - 2 + 1);
	pattern(want, 65000, 1);
	pattern(want + 8000, 5000, 9);
	memset(want + 20480, 0, 8192);
	memset(want + 40960, 0, 8192);
	compare_bytes(changed, 65000);

	compare_pattern(PF_ROOT_INO, "left", 200, 3);
	compare_pattern(PF_ROOT_INO, "right", 100, 2);
	compare_pattern(PF_ROOT_INO, "replaced", 5000, 11);
	compare_pattern(PF_ROOT_INO, "named", 9000, 12);
	static const struct {
		bool in_dir;
		const char *name;
	} missing[] = { { false, "removed" }, { false, "removed-dir" }, { false, "not-synced" }, { true, "new" } };
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
		CHECK(pf_lookup(pool, missing[i].in_dir ? dir : PF_ROOT_INO, missing[i].name, strlen(missing[i].name), &a) == -ENOENT);
}

/* -- changing and emptying -------------------------------------------------------------------------------------------- */
static bool remove_entry(void *arg, const struct pf_dirent *e)
{
	uint64_t dir = *(uint64_t *)arg, inner = e->ino;
	if (e->cookie <= 2)
		return true;
	if (e->dtype != DT_DIR) {
		CHECK(pf_unlink(pool, dir, e->name, e->len) == 0);
		return true;
	}
	CHECK(pf_readdir(pool, inner, 0, remove_entry, &inner) == 0);
	CHECK(pf_rmdir(pool, dir, e->name, e->len) == 0);
	return true;
}

/* What is there is overwritten, and something new comes. */
static void change(uint64_t dir)
{
	struct pf_attr a;
	write_pattern(look(dir, "larger", &a), 123456, 700000, 20);
	CHECK(pf_fsync(pool, create_filled(dir, "added", 200000, 21)) == 0);
}

static void compare_changed(uint64_t dir)
{
	struct pf_attr a;
	uint64_t f = look(dir, "larger", &a);
	pattern(want, 1500000, 5);
	pattern(want + 123456, 700000, 20);
	compare_bytes(f, 1500000);
	compare_pattern(dir, "added", 200000, 21);
}

static bool report(void *arg, const struct pf_problem_report *r)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", r->id, r->message);
	return false;
}

/* Returns the number of records in the log that have still to be redone. */
static uint64_t check_pool(char **paths, int nr)
{
	struct pf_io *ios[PF_MAX_MEMBERS];
	struct pf_check_sink sink = { .problem = report };
	struct pf_check_options options = { .check_data = true };
	struct pf_check_result result;
	struct pf_diag diag = { "" };
	for (int i = 0; i < nr; i++)
		CHECK(pf_io_open(paths[i], 0, 0, &env.env, &ios[i], &diag) == 0);
	CHECK(pf_check(ios, (unsigned)nr, &options, &env.env, &sink, &result, &diag) == 0);
	CHECK(result.nr_problems == 0 && result.nr_single_nodes == 0);
	return result.nr_log_records;
}

static void check(char **paths, int nr, bool in_log, void (*compare_all)(void))
{
	struct pf_attr a;
	for (int i = 0; i < 2; i++) { /* to look at it changes nothing */
		CHECK((check_pool(paths, nr) > 0) == in_log);
		open_pool(paths, nr, true);
		compare_all();
		CHECK(pf_pool_close(pool) == 0);
	}
	open_pool(paths, nr, false);
	compare_all();
	uint64_t root = PF_ROOT_INO, dir = look(root, "dir", &a);
	change(dir);
	CHECK(pf_pool_close(pool) == 0);
	CHECK(check_pool(paths, nr) == 0);
	open_pool(paths, nr, false);
	compare_changed(dir);
	CHECK(pf_readdir(pool, root, 0, remove_entry, &root) == 0);
	CHECK(pf_pool_close(pool) == 0);
	CHECK(check_pool(paths, nr) == 0);
}

int main(int argc, char **argv)
{
	init();
	if (argc >= 4 && !strcmp(argv[1], "make"))
		make((unsigned)atoi(argv[2]), argv + 3, argc - 3);
	else if (argc >= 4 && !strcmp(argv[1], "crash"))
		make_crashed((unsigned)atoi(argv[2]), argv + 3, argc - 3);
	else if (argc >= 3 && !strcmp(argv[1], "check"))
		check(argv + 2, argc - 2, false, compare);
	else if (argc >= 3 && !strcmp(argv[1], "replay"))
		check(argv + 2, argc - 2, true, compare_crashed);
	else if (argc >= 3 && !strcmp(argv[1], "replayed"))
		check(argv + 2, argc - 2, false, compare_crashed);
	else
		return 2;
	return 0;
}
